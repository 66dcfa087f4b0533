//! A case set up: the processes it takes, and the client that asks.

use std::net::SocketAddr;

use super::{Case, Front, Target};
use crate::support::client::Client;
use crate::support::process::Mcpwire;
use crate::support::scratch::Scratch;
use crate::support::{proc, reach};

pub(super) struct Rig {
    pub(super) case: Case,
    pub(super) client: Client,
    /// Where the server is shared: another client, which sees nothing but what is for all.
    pub(super) bystander: Option<Client>,
    front: Option<Mcpwire>,
    /// The server, if it is not the bridge that starts it.
    server: Option<Server>,
    /// Where the sockets are.
    _scratch: Scratch,
}

struct Server {
    process: Mcpwire,
    /// Where it listens: 127.0.0.1 and a port, or a path.
    address: String,
    /// The arguments before the address.
    listen: Vec<String>,
}

impl Server {
    async fn start(target: Target, scratch: &Scratch) -> Option<Server> {
        let certs = scratch.file("certs");
        let (listen, address): (&[&str], _) = match target {
            Target::Child => return None,
            Target::Streamable | Target::Sse => (&["--sse", "--http"], "127.0.0.1:0".to_owned()),
            Target::Unix => (&["--unix"], scratch.file("server")),
            Target::Quic => (&["--certs-dir", &certs, "--quic"], "127.0.0.1:0".to_owned()),
        };
        let listen: Vec<String> = listen.iter().map(ToString::to_string).collect();
        let (process, address) = Server::run(&listen, &address).await;
        Some(Server { process, address, listen })
    }

    async fn run(listen: &[String], address: &str) -> (Mcpwire, String) {
        let listen = listen.iter().map(String::as_str);
        let args: Vec<&str> = ["reference"].into_iter().chain(listen).chain([address]).collect();
        let mut process = Mcpwire::start(&args);
        let url = process.line().await.expect("where it listens");
        let address = ["http://", "unix:", "quic+mcp://"].into_iter().find_map(|scheme| url.strip_prefix(scheme));
        let address = address.expect("a known scheme").trim_end_matches("/mcp").to_owned();
        (process, address)
    }

    /// Starts it again where it was, after it was killed.
    async fn restart(&mut self) {
        self.process.wait().await;
        (self.process, _) = Server::run(&self.listen, &self.address).await;
    }
}

impl Rig {
    pub(super) async fn start(case: Case) -> Rig {
        let scratch = Scratch::new();
        let server = Server::start(case.target, &scratch).await;
        let target = target(case.target, server.as_ref(), &scratch);
        let (front, reach) = open_front(case, &target, &scratch).await;
        let bystander = match case.shared {
            true => Some(Client::open(reach.connect(), case.version).await),
            false => None,
        };
        let client = Client::open(reach.connect(), case.version).await;
        Rig { case, client, bystander, front, server, _scratch: scratch }
    }

    /// Kills the server; one that is not started by the bridge is started anew.
    pub(super) async fn kill_server(&mut self, process: u32) {
        proc::kill(process);
        if let Some(server) = &mut self.server {
            server.restart().await;
        }
    }

    pub(super) async fn assert_quiet(&mut self) {
        self.client.assert_quiet().await;
        if let Some(bystander) = &mut self.bystander {
            bystander.assert_quiet().await;
        }
    }

    /// Ends everything. Nobody has anything left to say, and what runs ends when it is asked to.
    pub(super) async fn finish(self) {
        self.client.close().await;
        if let Some(bystander) = self.bystander {
            bystander.close().await;
        }
        for mut process in self.front.into_iter().chain(self.server.map(|server| server.process)) {
            process.signal("TERM");
            assert_eq!(process.wait().await.code(), Some(0), "{}", process.stderr());
        }
    }
}

/// Starts the front, if it is not the client that does.
async fn open_front(case: Case, target: &[String], scratch: &Scratch) -> (Option<Mcpwire>, Reach) {
    let (socket, certs) = (scratch.file("front"), scratch.file("certs"));
    let listen: &[&str] = match case.front {
        Front::Connect => {
            return (None, Reach::Stdio(["connect".to_owned()].into_iter().chain(target.iter().cloned()).collect()));
        }
        Front::Streamable | Front::Sse => &["--http", "127.0.0.1:0", "--print-url"],
        Front::Unix => &["--unix", &socket],
        Front::Quic if case.target == Target::Quic => &["--quic", "127.0.0.1:0"],
        Front::Quic => &["--quic", "127.0.0.1:0", "--certs-dir", &certs],
    };
    let share: &[&str] = if case.shared { &["--share"] } else { &[] };
    let target: Vec<&str> = target.iter().map(String::as_str).collect();
    let mut front = Mcpwire::start(&[&["expose"], listen, share, &target].concat());
    let reach = match case.front {
        Front::Unix => {
            front.logged("listening on unix:").await;
            Reach::Unix(socket)
        }
        Front::Quic => {
            front.logged("listening on quic://").await;
            Reach::Quic { address: reach::quic_address(&front.stderr()), certs }
        }
        Front::Sse => Reach::Sse(front.line().await.expect("the URL").replace("/mcp", "/sse")),
        _ => Reach::Http(front.line().await.expect("the URL")),
    };
    (Some(front), reach)
}

/// The arguments that name a target.
fn target(target: Target, server: Option<&Server>, scratch: &Scratch) -> Vec<String> {
    let address = server.map(|server| server.address.as_str()).unwrap_or_default();
    match target {
        Target::Child => ["--", reach::MCPWIRE, "reference", "--stdio"].map(str::to_owned).to_vec(),
        Target::Streamable => vec![format!("http://{address}/mcp")],
        Target::Sse => vec!["--transport".to_owned(), "sse".to_owned(), format!("http://{address}/sse")],
        Target::Unix => vec![format!("unix:{address}")],
        Target::Quic => vec!["--certs-dir".to_owned(), scratch.file("certs"), format!("quic+mcp://{address}")],
    }
}

/// How the client reaches the front.
enum Reach {
    /// By starting it with these arguments.
    Stdio(Vec<String>),
    Http(String),
    Sse(String),
    Unix(String),
    Quic {
        address: SocketAddr,
        certs: String,
    },
}

impl Reach {
    fn connect(&self) -> (mcpwire::link::Link, tokio::task::JoinHandle<()>) {
        match self {
            Reach::Stdio(args) => reach::stdio(args),
            Reach::Http(url) => reach::http(url),
            Reach::Sse(url) => reach::sse(url),
            Reach::Unix(path) => reach::unix(path),
            Reach::Quic { address, certs } => reach::quic_mcp(*address, certs),
        }
    }
}
