//! The binary as an MCP client sees it: a child process on pipes.

use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

use super::{until, within};

pub struct Mcpwire {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Option<Lines<BufReader<ChildStdout>>>,
    stderr: Arc<Mutex<String>>,
    stderr_done: JoinHandle<()>,
}

impl Mcpwire {
    /// Starts `mcpwire` with these arguments.
    pub fn start(args: &[&str]) -> Mcpwire {
        Mcpwire::start_with(args, &[])
    }

    pub fn start_with(args: &[&str], env: &[(&str, &str)]) -> Mcpwire {
        let (mut mcpwire, pipe) = Mcpwire::spawn(args, env);
        let mut lines = BufReader::new(pipe).lines();
        let seen = Arc::clone(&mcpwire.stderr);
        mcpwire.stderr_done = tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                let mut seen = seen.lock().unwrap();
                seen.push_str(&line);
                seen.push('\n');
            }
        });
        mcpwire
    }

    /// Starts it with a stderr that is open, and that nobody ever reads.
    pub fn start_deaf(args: &[&str]) -> Mcpwire {
        let (mut mcpwire, pipe) = Mcpwire::spawn(args, &[]);
        mcpwire.stderr_done = tokio::spawn(async move {
            let _open = pipe;
            std::future::pending::<()>().await;
        });
        mcpwire
    }

    fn spawn(args: &[&str], env: &[(&str, &str)]) -> (Mcpwire, ChildStderr) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mcpwire"));
        command.args(args);
        for name in ["DEBUG", "LOG_LEVEL", "HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY"] {
            command.env_remove(name);
        }
        command.envs(env.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("the binary starts");
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().map(|stdout| BufReader::new(stdout).lines());
        let stderr = Arc::new(Mutex::new(String::new()));
        let pipe = child.stderr.take().expect("stderr is piped");
        (Mcpwire { child, stdin, stdout, stderr, stderr_done: tokio::spawn(async {}) }, pipe)
    }

    pub async fn send(&mut self, message: Value) {
        self.send_text(&message.to_string()).await;
    }

    pub async fn send_text(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        within("stdin to take a line", stdin.write_all(format!("{line}\n").as_bytes())).await.expect("stdin is open");
    }

    pub async fn request(&mut self, id: impl Into<Value>, method: &str, params: Value) {
        self.send(json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params})).await;
    }

    pub async fn notify(&mut self, method: &str) {
        self.send(json!({"jsonrpc": "2.0", "method": method})).await;
    }

    /// The next line on stdout, which must be a JSON-RPC message.
    pub async fn message(&mut self) -> Value {
        let line = self.line().await.unwrap_or_else(|| panic!("stdout ended; stderr:\n{}", self.stderr()));
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("not JSON: {e}: {line}"))
    }

    /// The next line on stdout, as it is; `None` at its end.
    pub async fn line(&mut self) -> Option<String> {
        let stdout = self.stdout.as_mut().expect("stdout is open");
        match tokio::time::timeout(super::LIMIT, stdout.next_line()).await {
            Ok(line) => line.expect("stdout can be read"),
            Err(_) => panic!("waited for a line on stdout; stderr:\n{}", self.stderr()),
        }
    }

    /// Does the handshake.
    pub async fn open_session(&mut self) {
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
        self.request("open", "initialize", params).await;
        let answer = self.message().await;
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
        self.notify("notifications/initialized").await;
    }

    pub async fn call(&mut self, id: impl Into<Value>, tool: &str, arguments: Value) {
        self.request(id, "tools/call", json!({"name": tool, "arguments": arguments})).await;
    }

    /// The number of the process.
    pub fn id(&self) -> u32 {
        self.child.id().expect("still running")
    }

    /// Its stdout, for whoever reads it beside the writing.
    pub fn take_stdout(&mut self) -> Lines<BufReader<ChildStdout>> {
        self.stdout.take().expect("stdout is open")
    }

    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    pub fn close_stdout(&mut self) {
        self.stdout = None;
    }

    pub fn signal(&self, name: &str) {
        let pid = self.child.id().expect("still running").to_string();
        let status = std::process::Command::new("kill").args(["-s", name, &pid]).status().expect("kill runs");
        assert!(status.success());
    }

    pub async fn wait(&mut self) -> ExitStatus {
        within("the process to end", self.child.wait()).await.expect("the process can be waited for")
    }

    /// Closes stdin, expects nothing more on stdout and exit code 0; gives what was logged.
    pub async fn finish(mut self) -> String {
        self.close_stdin();
        if self.stdout.is_some() {
            assert_eq!(self.line().await, None, "something was left on stdout");
        }
        assert_eq!(self.wait().await.code(), Some(0), "{}", self.stderr());
        within("stderr to end", &mut self.stderr_done).await.expect("stderr was read");
        self.stderr()
    }

    pub fn stderr(&self) -> String {
        self.stderr.lock().unwrap().clone()
    }

    /// Waits until the log says something.
    pub async fn logged(&self, text: &str) {
        until(&format!("{text:?} in the log"), || self.stderr().contains(text)).await;
    }
}
