//! A bridge between a front and the reference server: the processes it takes, and the way for clients to get in.

use std::net::SocketAddr;

use mcpwire::link::Link;
use tokio::task::JoinHandle;

use super::process::Mcpwire;
use super::scratch::Scratch;
use super::{proc, reach};

/// Where the client comes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Front {
    /// `connect`, on its stdin and stdout.
    Connect,
    /// `expose --http`, asked by Streamable HTTP.
    Streamable,
    /// `expose --http`, asked by HTTP+SSE.
    Sse,
    /// `expose --unix`.
    Unix,
    /// `expose --quic`, asked by MCP over QUIC.
    Quic,
}

/// Where the reference server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// A program on stdio.
    Child,
    Streamable,
    Sse,
    /// A Unix socket.
    Unix,
    /// MCP over QUIC.
    Quic,
}

/// The versions that the server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaks {
    Both,
    Session,
    Stateless,
}

impl Speaks {
    fn name(self) -> &'static str {
        match self {
            Speaks::Both => "both",
            Speaks::Session => "session",
            Speaks::Stateless => "stateless",
        }
    }
}

/// What is to be set up.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    pub front: Front,
    pub target: Target,
    pub server: Speaks,
    /// More arguments of the front.
    pub options: &'static [&'static str],
}

pub struct Rig {
    reach: Reach,
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
    async fn start(plan: Plan, scratch: &Scratch) -> Option<Server> {
        let certs = scratch.file("certs");
        let (listen, address): (&[&str], _) = match plan.target {
            Target::Child => return None,
            Target::Streamable | Target::Sse => (&["--sse", "--http"], "127.0.0.1:0".to_owned()),
            Target::Unix => (&["--unix"], scratch.file("server")),
            Target::Quic => (&["--certs-dir", &certs, "--quic"], "127.0.0.1:0".to_owned()),
        };
        let listen = ["--era", plan.server.name()].iter().chain(listen).map(ToString::to_string).collect::<Vec<_>>();
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
    pub async fn start(plan: Plan) -> Rig {
        let scratch = Scratch::new();
        let server = Server::start(plan, &scratch).await;
        let target = target(plan, server.as_ref(), &scratch);
        let (front, reach) = open_front(plan, &target, &scratch).await;
        Rig { reach, front, server, _scratch: scratch }
    }

    /// A connection for a client.
    pub fn connect(&self) -> (Link, JoinHandle<()>) {
        match &self.reach {
            Reach::Stdio(args) => reach::stdio(args),
            Reach::Http(url) => reach::http(url),
            Reach::Sse(url) => reach::sse(url),
            Reach::Unix(path) => reach::unix(path),
            Reach::Quic { address, certs } => reach::quic_mcp(*address, certs),
        }
    }

    /// Where the front listens, as in 127.0.0.1:8080; nothing if it is not HTTP.
    pub fn address(&self) -> &str {
        match &self.reach {
            Reach::Http(url) | Reach::Sse(url) => {
                let address = url.trim_start_matches("http://");
                address.split_once('/').map_or(address, |(address, _)| address)
            }
            Reach::Stdio(_) | Reach::Unix(_) | Reach::Quic { .. } => "",
        }
    }

    /// Kills the server; one that is not started by the bridge is started anew.
    pub async fn kill_server(&mut self, process: u32) {
        proc::kill(process);
        if let Some(server) = &mut self.server {
            server.restart().await;
        }
    }

    /// Ends everything that is not a client. What runs ends when it is asked to.
    pub async fn finish(self) {
        for mut process in self.front.into_iter().chain(self.server.map(|server| server.process)) {
            process.signal("TERM");
            assert_eq!(process.wait().await.code(), Some(0), "{}", process.stderr());
        }
    }
}

/// How a client reaches the front.
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

/// Starts the front, if it is not the client that does.
async fn open_front(plan: Plan, target: &[String], scratch: &Scratch) -> (Option<Mcpwire>, Reach) {
    let (socket, certs) = (scratch.file("front"), scratch.file("certs"));
    let listen: &[&str] = match plan.front {
        Front::Connect => {
            let args = ["connect"].iter().chain(plan.options).map(|arg| (*arg).to_owned());
            return (None, Reach::Stdio(args.chain(target.iter().cloned()).collect()));
        }
        Front::Streamable | Front::Sse => &["--http", "127.0.0.1:0", "--print-url"],
        Front::Unix => &["--unix", &socket],
        Front::Quic if plan.target == Target::Quic => &["--quic", "127.0.0.1:0"],
        Front::Quic => &["--quic", "127.0.0.1:0", "--certs-dir", &certs],
    };
    let target: Vec<&str> = target.iter().map(String::as_str).collect();
    let mut front = Mcpwire::start(&[&["expose"], listen, plan.options, &target].concat());
    let reach = match plan.front {
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
fn target(plan: Plan, server: Option<&Server>, scratch: &Scratch) -> Vec<String> {
    let address = server.map(|server| server.address.as_str()).unwrap_or_default();
    match plan.target {
        Target::Child => {
            ["--", reach::MCPWIRE, "reference", "--stdio", "--era", plan.server.name()].map(str::to_owned).to_vec()
        }
        Target::Streamable => vec![format!("http://{address}/mcp")],
        Target::Sse => vec!["--transport".to_owned(), "sse".to_owned(), format!("http://{address}/sse")],
        Target::Unix => vec![format!("unix:{address}")],
        Target::Quic => vec!["--certs-dir".to_owned(), scratch.file("certs"), format!("quic+mcp://{address}")],
    }
}
