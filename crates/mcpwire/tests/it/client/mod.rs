//! The library's client against real servers: a program whose every line a test writes, a scripted HTTP server, the reference
//! server in both eras.

mod asking;
mod direct;
mod hostile;
mod http;
mod lists;
mod recovery;
mod requests;
mod stdio;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpwire::bridge::Reach;
use mcpwire::client::{Client, Error, Handler, Options};
use mcpwire::link::Link;
use mcpwire::reference::{self, Settings, Shared};
use mcpwire::transport::child::{self, Closing};
use mcpwire_proto::frame::DEFAULT_LIMIT;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::unix::pipe::{self, Receiver, Sender};
use tokio::task::JoinHandle;

use crate::support::scratch::Scratch;
use crate::support::script::Script;
use crate::support::{reach, until, within};

fn reach_by(open: impl Fn() -> (Link, JoinHandle<()>) + Send + Sync + 'static) -> Reach {
    Reach::new(Arc::new(move || {
        let (link, goodbye) = open();
        Ok((link, Some(goodbye)))
    }))
}

fn shell(script: &str, env: &[(&str, &str)]) -> child::Options {
    let short = Duration::from_millis(100);
    child::Options {
        name: "test".into(),
        program: "sh".into(),
        args: vec!["-c".into(), script.into()],
        env: env.iter().map(|(name, value)| (name.into(), value.into())).collect(),
        cwd: None,
        max_message: DEFAULT_LIMIT,
        closing: Closing { stdin: short, term: short, kill: Duration::from_secs(5) },
        guard: None,
    }
}

/// A program on stdio that says what the test says, and shows the test what it hears. It may be killed and started again.
struct Program {
    folder: Scratch,
    heard: Lines<BufReader<Receiver>>,
    says: Sender,
}

impl Program {
    fn new() -> Program {
        let folder = Scratch::new();
        let fifo = |name: &str| {
            let path = folder.file(name);
            let status = std::process::Command::new("mkfifo").arg(&path).status();
            assert!(status.expect("mkfifo runs").success());
            path
        };
        // Opened for both, a pipe outlives the program.
        let mut open = pipe::OpenOptions::new();
        let heard = open.read_write(true).open_receiver(fifo("heard")).unwrap();
        let says = open.read_write(true).open_sender(fifo("says")).unwrap();
        Program { heard: BufReader::new(heard).lines(), says, folder }
    }

    fn options(&self) -> child::Options {
        let script = "cd \"$FOLDER\"; echo $$ > pid.new; mv pid.new pid; cat says & exec cat > heard";
        shell(script, &[("FOLDER", self.folder.path().to_str().unwrap())])
    }

    fn reach(&self) -> Reach {
        let options = self.options();
        reach_by(move || child::connect(options.clone()))
    }

    async fn hear(&mut self) -> Value {
        let line = within("the program to hear something", self.heard.next_line()).await.unwrap().unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    async fn expect(&mut self, method: &str) -> Value {
        let message = self.hear().await;
        assert_eq!(message["method"], method, "{message}");
        message
    }

    async fn say(&mut self, line: &str) {
        within("the client to read", self.says.write_all(format!("{line}\n").as_bytes())).await.unwrap();
    }

    async fn answer(&mut self, request: &Value, result: Value) {
        self.say(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result}).to_string()).await;
    }

    async fn shake_hands(&mut self, capabilities: Value) -> Value {
        let initialize = self.expect("initialize").await;
        let info = json!({"name": "program", "version": "1"});
        let result = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info});
        self.answer(&initialize, result).await;
        self.expect("notifications/initialized").await;
        initialize
    }

    async fn connected(&mut self, options: Options) -> Client {
        let reach = self.reach();
        let (client, _) = tokio::join!(Client::connect(reach, options), self.shake_hands(json!({"tools": {}})));
        client.unwrap()
    }

    fn pid(&self) -> u32 {
        std::fs::read_to_string(self.folder.path().join("pid")).unwrap().trim().parse().unwrap()
    }
}

/// A client of a scripted HTTP server, as session `s1`.
async fn over_http(options: Options) -> (Script, Client) {
    let mut server = Script::start().await;
    let url = server.url();
    let serve = async {
        server.expect("initialize").await.initialized("s1").await;
        server.rest_of_handshake().await;
    };
    let (client, ()) = tokio::join!(Client::connect(reach_by(move || reach::http(&url)), options), serve);
    (server, client.unwrap())
}

/// The reference server in this process.
fn in_memory(settings: Settings) -> (Shared, Reach) {
    let shared = Shared::new(settings);
    let server = shared.clone();
    let reach = reach_by(move || {
        let (link, port) = Link::pair();
        (link, tokio::spawn(reference::serve(port, server.clone())))
    });
    (shared, reach)
}

/// A handler that keeps what it is told.
#[derive(Default)]
struct Ear(Mutex<Vec<String>>);

impl Ear {
    fn heard(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    async fn hears(&self, text: &str) {
        until(text, || self.heard().iter().any(|heard| heard.contains(text))).await;
    }

    fn note(&self, text: String) {
        self.0.lock().unwrap().push(text);
    }
}

impl Handler for Ear {
    fn on_notification(&self, method: &str, params: Option<&RawValue>) {
        self.note(format!("{method} {}", params.map_or("none", RawValue::get)));
    }

    fn on_close(&self, why: Option<&str>) {
        self.note(format!("closed: {}", why.unwrap_or("as wished")));
    }

    fn on_error(&self, error: &str) {
        self.note(format!("error: {error}"));
    }
}

/// The options of the client that does not recover.
fn fail_fast(handler: &Arc<Ear>) -> Options {
    Options { recover: false, handler: Arc::clone(handler) as Arc<dyn Handler>, ..Options::default() }
}

/// What an error and those behind it say.
fn chain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        text.push_str(&format!(" <- {error}"));
        source = error.source();
    }
    text
}
