//! The lower bound of a gateway: a POST's body goes to a child's stdin as a line, and the line that comes back is the answer.
//! Of MCP it knows the session header, which picks the child, and that what has no id is answered with 202.

mod own;
mod shared;

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use bytes::{BufMut, Bytes, BytesMut};
use clap::Parser;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use crate::own::Own;
use crate::shared::Shared;

const SESSION: &str = "mcp-session-id";
/// What every message that wants an answer holds.
const ID: &[u8] = b"\"id\":";

#[derive(Parser)]
struct Args {
    #[arg(long)]
    http: SocketAddr,
    /// One child for all sessions, instead of one for each
    #[arg(long)]
    share: bool,
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

struct Gateway {
    command: Vec<String>,
    shared: Option<Shared>,
    sessions: Mutex<Sessions>,
}

#[derive(Default)]
struct Sessions {
    last: u64,
    children: HashMap<HeaderValue, Arc<Own>>,
}

// One thread, as `bare`: passing bytes on is too little work to share.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let args = Args::parse();
    let shared = args.share.then(|| Shared::spawn(&args.command)).transpose()?;
    let gateway = Arc::new(Gateway { command: args.command, shared, sessions: Mutex::default() });
    let listener = TcpListener::bind(args.http).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let gateway = gateway.clone();
        let service = service_fn(move |request| {
            let gateway = gateway.clone();
            async move { Ok::<_, Infallible>(gateway.handle(request).await) }
        });
        // A connection that breaks is the client's business: it is measured there.
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

impl Gateway {
    async fn handle(&self, mut request: Request<Incoming>) -> Response<Full<Bytes>> {
        let session = request.headers_mut().remove(SESSION);
        let outcome = match *request.method() {
            Method::POST => self.post(session, request.into_body()).await,
            Method::DELETE => {
                session.and_then(|session| self.sessions().children.remove(&session));
                Ok(empty(StatusCode::OK))
            }
            _ => Ok(empty(StatusCode::METHOD_NOT_ALLOWED)),
        };
        outcome.unwrap_or_else(|error| {
            eprintln!("bare-gateway: {error:#}");
            empty(StatusCode::BAD_GATEWAY)
        })
    }

    /// A POST without a session opens one.
    async fn post(&self, session: Option<HeaderValue>, body: Incoming) -> Result<Response<Full<Bytes>>> {
        let body = body.collect().await?.to_bytes();
        let (new, child) = match session {
            None => {
                let (name, child) = self.open()?;
                (Some(name), child)
            }
            Some(session) => (None, self.sessions().children.get(&session).cloned()),
        };
        let answer = match (&self.shared, child) {
            (Some(shared), _) => shared.exchange(&body).await?,
            (None, Some(child)) => child.exchange(&body).await?,
            (None, None) => return Ok(empty(StatusCode::NOT_FOUND)),
        };
        let mut response = answer.map_or_else(|| empty(StatusCode::ACCEPTED), json);
        if let Some(name) = new {
            response.headers_mut().insert(SESSION, name);
        }
        Ok(response)
    }

    fn open(&self) -> Result<(HeaderValue, Option<Arc<Own>>)> {
        let mut sessions = self.sessions();
        sessions.last += 1;
        let name = HeaderValue::from(sessions.last);
        if self.shared.is_some() {
            return Ok((name, None));
        }
        let child = Arc::new(Own::spawn(&self.command)?);
        sessions.children.insert(name.clone(), child.clone());
        Ok((name, Some(child)))
    }

    fn sessions(&self) -> std::sync::MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn line_of(body: &[u8]) -> BytesMut {
    let mut line = BytesMut::with_capacity(body.len() + 1);
    line.put_slice(body.trim_ascii_end());
    line.put_u8(b'\n');
    line
}

fn json(body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn empty(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}
