//! A Streamable HTTP MCP server that does almost nothing, so that what is measured is the bridge in front of it.

mod mcp;

use std::convert::Infallible;
use std::io::Write;
use std::sync::LazyLock;

use anyhow::Result;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::mcp::{Reply, Server};

const SESSION: &str = "bench-session";
static SERVER: LazyLock<Server> = LazyLock::new(Server::default);

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
    match mcp::reply(&SERVER, body) {
        Reply::Welcome(body) => {
            let mut response = json(body);
            response.headers_mut().insert("mcp-session-id", HeaderValue::from_static(SESSION));
            response
        }
        Reply::Answer(body) => json(body),
        Reply::Nothing => empty(StatusCode::ACCEPTED),
        Reply::Nonsense => empty(StatusCode::BAD_REQUEST),
    }
}

fn json(body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn empty(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}
