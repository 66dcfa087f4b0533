//! The lower bound: lines from stdin are POSTed as they are and answer bodies are written as lines, with no thought of MCP.

mod stdio;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use clap::{Parser, ValueEnum};
use http_body_util::{BodyExt, Full};
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use hyper::{Request, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::sync::mpsc;

/// How many lines may wait between the pipe and the network, each way.
const QUEUE: usize = 256;
const SESSION: &str = "mcp-session-id";

#[derive(Parser)]
struct Args {
    url: Uri,
    /// How stdin and stdout are read and written.
    #[arg(long, value_enum, default_value_t = Io::Pipe, hide = true)]
    io: Io,
    /// Which tokio runtime carries the rest.
    #[arg(long, value_enum, default_value_t = Rt::Current, hide = true)]
    rt: Rt,
}

/// The variants that were compared before the default was chosen; kept so that the choice can be checked elsewhere.
#[derive(Clone, Copy, ValueEnum)]
enum Io {
    Tokio,
    Threads,
    Pipe,
}

#[derive(Clone, Copy, ValueEnum)]
enum Rt {
    Current,
    Multi,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let mut builder = match args.rt {
        Rt::Current => tokio::runtime::Builder::new_current_thread(),
        Rt::Multi => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = builder.enable_all().build()?;
    let outcome = runtime.block_on(run(args.url, args.io));
    // A reader may still sit in a blocking read of stdin: it is not waited for.
    runtime.shutdown_background();
    outcome
}

async fn run(url: Uri, io: Io) -> Result<()> {
    let (line_tx, mut lines) = mpsc::channel(QUEUE);
    let (answers, answer_rx) = mpsc::channel(QUEUE);
    let written = match io {
        Io::Tokio => stdio::tokio_std(line_tx, answer_rx),
        Io::Threads => stdio::threads(line_tx, answer_rx),
        Io::Pipe => stdio::pipe(line_tx, answer_rx)?,
    };

    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let mut upstream = Upstream { url, client: Client::builder(TokioExecutor::new()).build(connector), session: None };

    let first = lines.recv().await.context("stdin ended before the first line")?;
    upstream.session = upstream.post(first, &answers).await?;
    while let Some(line) = lines.recv().await {
        let (upstream, answers) = (upstream.clone(), answers.clone());
        tokio::spawn(async move {
            if let Err(error) = upstream.post(line, &answers).await {
                eprintln!("bare: {error:#}");
            }
        });
    }
    drop(answers);
    written.await.context("the writer went away")
}

#[derive(Clone)]
struct Upstream {
    url: Uri,
    client: Client<HttpConnector, Full<Bytes>>,
    session: Option<HeaderValue>,
}

impl Upstream {
    /// Sends one line, hands the answer's body on, and says which session the answer named.
    async fn post(&self, line: Bytes, answers: &mpsc::Sender<stdio::Answer>) -> Result<Option<HeaderValue>> {
        let mut request = Request::post(&self.url)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream");
        if let Some(session) = &self.session {
            request = request.header(SESSION, session);
        }
        let response = self.client.request(request.body(Full::new(line))?).await?;
        if !response.status().is_success() {
            bail!("the server answered {}", response.status());
        }
        let (mut head, mut body) = response.into_parts();
        let mut answer = stdio::Answer::new();
        while let Some(frame) = body.frame().await {
            answer.extend(frame?.into_data());
        }
        if !answer.is_empty() {
            answers.send(answer).await?;
        }
        Ok(head.headers.remove(SESSION))
    }
}
