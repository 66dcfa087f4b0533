//! A Streamable HTTP MCP server that does almost nothing, so that what is measured is the bridge in front of it.

use std::convert::Infallible;
use std::io::Write;

use anyhow::Result;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

const VERSIONS: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];
const SESSION: &str = "bench-session";
/// No `big` answer is longer than this, whatever is asked for.
const BIG_LIMIT: usize = 64 << 20;

const TOOLS: &str = concat!(
    r#"{"tools":[{"name":"echo","description":"Says it again","inputSchema":{"type":"object","#,
    r#""properties":{"text":{"type":"string"}},"required":["text"]}},"#,
    r#"{"name":"big","description":"A long text","inputSchema":{"type":"object","#,
    r#""properties":{"size":{"type":"integer"}},"required":["size"]}}]}"#,
);

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: Option<&'a str>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ToolCall<'a> {
    name: &'a str,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Echo<'a> {
    #[serde(borrow)]
    text: &'a RawValue,
}

#[derive(Deserialize)]
struct Big {
    size: usize,
}

#[derive(Deserialize)]
struct Initialize<'a> {
    #[serde(rename = "protocolVersion")]
    version: &'a str,
}

// One thread: the machine's other cores belong to the bridge and to the driver.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let mut stdout = std::io::stdout();
    writeln!(stdout, "http://{}/mcp", listener.local_addr()?)?;
    stdout.flush()?;
    // Whoever started us holds our stdin: when it ends, so do we.
    let (sender, mut ended) = oneshot::channel::<()>();
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        drop(sender);
    });
    loop {
        let (stream, _) = tokio::select! {
            accepted = listener.accept() => accepted?,
            _ = &mut ended => return Ok(()),
        };
        stream.set_nodelay(true)?;
        // A connection that breaks is the client's business: it is measured there.
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(handle)));
    }
}

async fn handle(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(match *request.method() {
        Method::POST => match request.into_body().collect().await {
            Ok(body) => answer(&body.to_bytes()),
            Err(_) => empty(StatusCode::BAD_REQUEST),
        },
        Method::DELETE => empty(StatusCode::OK),
        _ => empty(StatusCode::METHOD_NOT_ALLOWED),
    })
}

fn answer(body: &[u8]) -> Response<Full<Bytes>> {
    let Ok(call) = serde_json::from_slice::<Call>(body) else {
        return empty(StatusCode::BAD_REQUEST);
    };
    let (Some(id), Some(method)) = (call.id, call.method) else {
        return empty(StatusCode::ACCEPTED);
    };
    let params = call.params.map_or("{}", RawValue::get);
    match method {
        "initialize" => {
            let mut response = json(id, "result", &initialized(params));
            response.headers_mut().insert("mcp-session-id", HeaderValue::from_static(SESSION));
            response
        }
        "ping" => json(id, "result", "{}"),
        "tools/list" => json(id, "result", TOOLS),
        "tools/call" => match tool(params) {
            Some(result) => json(id, "result", &result),
            None => json(id, "error", r#"{"code":-32602,"message":"unknown tool or arguments"}"#),
        },
        _ => json(id, "error", r#"{"code":-32601,"message":"method not found"}"#),
    }
}

fn initialized(params: &str) -> String {
    let asked = serde_json::from_str::<Initialize>(params).map_or(VERSIONS[0], |params| params.version);
    let version = if VERSIONS.contains(&asked) { asked } else { VERSIONS[0] };
    format!(
        r#"{{"protocolVersion":"{version}","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"fast-server","version":"1"}}}}"#
    )
}

/// The text of `echo` goes back as it came, still quoted: nothing is unescaped and escaped again.
fn tool(params: &str) -> Option<String> {
    let call: ToolCall = serde_json::from_str(params).ok()?;
    let arguments = call.arguments?.get();
    match call.name {
        "echo" => {
            let echo: Echo = serde_json::from_str(arguments).ok()?;
            Some(format!(r#"{{"content":[{{"type":"text","text":{}}}]}}"#, echo.text))
        }
        "big" => {
            let big: Big = serde_json::from_str(arguments).ok()?;
            let text = "x".repeat(big.size.min(BIG_LIMIT));
            Some(format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#))
        }
        _ => None,
    }
}

fn json(id: &RawValue, member: &str, value: &str) -> Response<Full<Bytes>> {
    let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"{member}":{value}}}"#);
    let mut response = Response::new(Full::from(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn empty(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}
