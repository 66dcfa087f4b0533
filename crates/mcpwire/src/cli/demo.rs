//! `mcpwire demo`: a client, a bridge and a server that dies in the middle, as three real processes.

use std::io::{self, Write};
use std::process::{ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Args as ClapArgs;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// No step of the demo takes longer, or it has failed.
const LIMIT: Duration = Duration::from_secs(20);

/// Show it all working: a client, a bridge, and a server that is killed and comes back
#[derive(Debug, ClapArgs)]
pub(super) struct Args {}

pub(super) fn run(_: Args) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    runtime.block_on(async {
        play().await?;
        play_folder().await
    })?;
    Ok(ExitCode::SUCCESS)
}

async fn play() -> Result<()> {
    show("", "An MCP client on stdio, `mcpwire connect`, and a Streamable HTTP server: three processes.")?;
    let server = Server::start("127.0.0.1:0", 1).await?;
    show("server", &format!("{} (process {})", server.url, server.id()))?;

    let started = Instant::now();
    let mut client = Client::start(&server.url)?;
    let params =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "demo", "version": "1"}});
    let opened = client.request("initialize", params).await?.result()?;
    let name = opened["serverInfo"]["name"].as_str().unwrap_or_default();
    show("initialize", &format!("{name} answered {} after the bridge's process was started", since(started)))?;
    client.notify("notifications/initialized").await?;

    let asked = Instant::now();
    let tools = client.request("tools/list", json!({})).await?.result()?;
    let count = tools["tools"].as_array().map_or(0, Vec::len);
    ensure!(count > 0, "expected some tools, came none");
    show("tools/list", &format!("{count} tools in {}", since(asked)))?;

    let (text, took) = client.call("echo", json!({"message": "hello"})).await?;
    ensure!(text == "hello", "expected the echo hello, came {text:?}");
    show("echo", &format!("{text:?} in {took}"))?;

    let asked = Instant::now();
    let params = json!({"name": "progress", "arguments": {"steps": 5, "ms": 20}, "_meta": {"progressToken": "demo"}});
    let answer = client.request("tools/call", params).await?;
    let steps: Vec<String> = answer.before.iter().map(|told| told["params"]["progress"].to_string()).collect();
    ensure!(steps.len() >= 5, "expected 5 steps of progress, came {steps:?}");
    answer.result()?;
    show("progress", &format!("steps {} as they came, all in {}", steps.join(" "), since(asked)))?;

    let (before, _) = client.call("count", json!({"name": "demo"})).await?;
    client.send("tools/call", json!({"name": "slow", "arguments": {"ms": 60_000}})).await?;
    // One more answer on the same pipe: by then the server works on the slow call.
    client.call("echo", json!({"message": "still there"})).await?;
    let address = server.address.clone();
    server.kill().await?;
    let killed = Instant::now();
    show("kill", "the server is killed in the middle of a call")?;
    let lost = client.answer(client.last_slow).await?;
    let why = lost.message["error"]["message"].as_str().context("expected an error for the call that was cut")?;
    show("slow", &format!("answered after {}: {why}", since(killed)))?;

    client.send("tools/call", json!({"name": "count", "arguments": {"name": "demo"}})).await?;
    let server = Server::start(&address, 2).await?;
    show("restart", &format!("a new server on the same port (process {})", server.id()))?;
    let answer = client.answer(client.last_id).await?;
    let after = text_of(&answer.result()?);
    ensure!(before == after, "expected a new server that counts from the start, came {before:?} and then {after:?}");
    let (info, _) = client.call("info", json!({})).await?;
    ensure!(info.contains("\"starts\":2") || info.contains("\"starts\": 2"), "expected the second server, came {info}");
    show("count", &format!("sent while the server was down, answered {} after the kill", since(killed)))?;

    client.finish().await?;
    show("", "The client noticed nothing but the one lost call: same pipe, same session, no restart.")
}

/// The second part: a folder as a server, the one inside this program.
async fn play_folder() -> Result<()> {
    show("", "A folder is a server, too; `mcpwire connect sample:` serves the one inside this program.")?;
    let started = Instant::now();
    let mut client = Client::start("sample:")?;
    let params = json!({"protocolVersion": "2024-11-05", "capabilities": {}});
    let opened = client.request("initialize", params).await?.result()?;
    let name = opened["serverInfo"]["name"].as_str().unwrap_or_default();
    show("initialize", &format!("{name} answered {} after its process was started", since(started)))?;

    let asked = Instant::now();
    let params = json!({"uri": "orchestr8://match?query=build+a+rest+api&mode=full&maxTokens=100"});
    let found = client.request("resources/read", params).await?.result()?;
    let text = found["contents"][0]["text"].as_str().unwrap_or_default();
    let titles: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    ensure!(!titles.is_empty(), "expected texts that fit, came none");
    show("match", &format!("\"build a rest api\": {} in {}", titles.join(", "), since(asked)))?;

    let params = json!({"question": "List people with python skills", "criteria": {"skill": "Python"}});
    let (answer, took) = client.call("relevant-data.ask", params).await?;
    let answer: Value = serde_json::from_str(&answer).context("expected JSON as answer")?;
    let summary = answer["summary"].as_str().unwrap_or_default();
    ensure!(summary == "Returned 2 records from People", "expected two people, came {summary:?}");
    show("ask", &format!("\"List people with python skills\": {summary} in {took}"))?;
    client.finish().await
}

/// A line of the story.
fn show(what: &str, text: &str) -> Result<()> {
    writeln!(io::stdout(), "{what:>10}  {text}").context("cannot write to stdout")
}

fn since(start: Instant) -> String {
    format!("{:.1} ms", start.elapsed().as_secs_f64() * 1000.0)
}

fn text_of(result: &Value) -> String {
    result["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

/// This program, as another process.
fn program(args: &[&str]) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe().context("cannot tell where this program is")?);
    command.args(args).stdout(Stdio::piped()).stdin(Stdio::piped()).kill_on_drop(true);
    Ok(command)
}

struct Server {
    child: Child,
    url: String,
    address: String,
}

impl Server {
    async fn start(address: &str, starts: u64) -> Result<Server> {
        let args = ["reference", "--http", address, "--starts", &starts.to_string(), "--log-level", "error"];
        let mut child = program(&args)?.spawn().context("cannot start the server")?;
        let stdout = child.stdout.take().context("the server has no stdout")?;
        let line =
            timeout(LIMIT, BufReader::new(stdout).lines().next_line()).await.context("the server did not start")?;
        let url = line.context("cannot read from the server")?.context("the server ended at once")?;
        let address = url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
        Ok(Server { child, url, address })
    }

    fn id(&self) -> u32 {
        self.child.id().unwrap_or_default()
    }

    async fn kill(mut self) -> Result<()> {
        self.child.kill().await.context("cannot kill the server")
    }
}

/// An MCP client of the simplest kind.
struct Client {
    child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    last_id: u64,
    last_slow: u64,
}

/// An answer, and what the server said before it.
struct Answer {
    message: Value,
    before: Vec<Value>,
}

impl Answer {
    fn result(&self) -> Result<Value> {
        match self.message.get("result") {
            Some(result) => Ok(result.clone()),
            None => bail!("expected a result, came {}", self.message),
        }
    }
}

impl Client {
    fn start(url: &str) -> Result<Client> {
        let mut child =
            program(&["connect", url, "--log-level", "error"])?.spawn().context("cannot start the bridge")?;
        let stdin = child.stdin.take().context("the bridge has no stdin")?;
        let lines = BufReader::new(child.stdout.take().context("the bridge has no stdout")?).lines();
        Ok(Client { child, stdin, lines, last_id: 0, last_slow: 0 })
    }

    async fn write(&mut self, message: Value) -> Result<()> {
        self.stdin.write_all(format!("{message}\n").as_bytes()).await.context("the bridge is gone")
    }

    async fn notify(&mut self, method: &str) -> Result<()> {
        self.write(json!({"jsonrpc": "2.0", "method": method})).await
    }

    async fn send(&mut self, method: &str, params: Value) -> Result<()> {
        self.last_id += 1;
        if params["name"] == "slow" {
            self.last_slow = self.last_id;
        }
        self.write(json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params})).await
    }

    async fn request(&mut self, method: &str, params: Value) -> Result<Answer> {
        self.send(method, params).await?;
        self.answer(self.last_id).await
    }

    async fn call(&mut self, tool: &str, arguments: Value) -> Result<(String, String)> {
        let asked = Instant::now();
        let result = self.request("tools/call", json!({"name": tool, "arguments": arguments})).await?.result()?;
        Ok((text_of(&result), since(asked)))
    }

    /// Reads up to the answer to a request.
    async fn answer(&mut self, id: u64) -> Result<Answer> {
        let mut before = Vec::new();
        loop {
            let line =
                timeout(LIMIT, self.lines.next_line()).await.with_context(|| format!("no answer within {LIMIT:?}"))?;
            let line = line.context("cannot read from the bridge")?.context("the bridge ended")?;
            let message: Value = serde_json::from_str(&line).with_context(|| format!("expected JSON, came {line}"))?;
            if message["id"] == id && message.get("method").is_none() {
                return Ok(Answer { message, before });
            }
            before.push(message);
        }
    }

    async fn finish(mut self) -> Result<()> {
        drop(self.stdin);
        let status = timeout(LIMIT, self.child.wait()).await.context("the bridge did not end")?;
        let status = status.context("cannot wait for the bridge")?;
        ensure!(status.success(), "expected the bridge to end with code 0, came {status}");
        Ok(())
    }
}
