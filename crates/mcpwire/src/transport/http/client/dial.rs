//! Making TCP connections to the server: directly, or through a proxy.

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{HeaderValue, Uri};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower_service::Service;

/// How long a server may take to accept a connection, and how long at least to callers that would rather not wait.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
const CONNECT_LEAST: Duration = Duration::from_millis(500);
/// How a dead peer is noticed on a stream that is silent by nature, for instance after a laptop's sleep.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// A proxy between us and the server.
#[derive(Clone)]
pub struct Proxy {
    pub uri: Uri,
    /// The value of `Proxy-Authorization`.
    pub authorization: Option<HeaderValue>,
    /// The same, as SOCKS wants it.
    pub credentials: Option<(String, String)>,
}

impl std::fmt::Debug for Proxy {
    /// A proxy's address may hold a password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Proxy({}:{:?})", self.uri.host().unwrap_or_default(), self.uri.port_u16())
    }
}

/// Connects to wherever the proxy settings say.
#[derive(Clone, Debug)]
pub(super) struct Dial {
    tcp: HttpConnector,
    proxy: Option<Proxy>,
}

impl Dial {
    /// `wait` is how long a request waits for a server that cannot be reached.
    pub(super) fn new(proxy: Option<Proxy>, wait: Duration) -> Dial {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(wait.clamp(CONNECT_LEAST, CONNECT_LIMIT)));
        tcp.set_keepalive(Some(KEEP_ALIVE));
        tcp.set_keepalive_interval(Some(KEEP_ALIVE / 3));
        tcp.set_keepalive_retries(Some(3));
        Dial { tcp, proxy }
    }
}

type BoxError = Box<dyn Error + Send + Sync>;

impl Service<Uri> for Dial {
    type Response = Stream;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Stream, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        let mut tcp = self.tcp.clone();
        let proxy = self.proxy.clone();
        Box::pin(async move {
            let Some(proxy) = proxy else {
                return Ok(Stream { io: tcp.call(target).await?, forwarded: false });
            };
            let secure = target.scheme_str() == Some("https");
            let (io, forwarded) = match proxy.uri.scheme_str() {
                Some("socks5" | "socks5h") => {
                    let mut socks = SocksV5::new(proxy.uri, tcp);
                    if let Some((user, password)) = proxy.credentials {
                        socks = socks.with_auth(user, password);
                    }
                    (socks.call(target).await?, false)
                }
                Some("http") | None if secure => {
                    let mut tunnel = Tunnel::new(proxy.uri, tcp);
                    if let Some(authorization) = proxy.authorization {
                        tunnel = tunnel.with_auth(authorization);
                    }
                    (tunnel.call(target).await?, false)
                }
                Some("http") | None => (tcp.call(proxy.uri).await?, true),
                Some(other) => return Err(format!("expected an http or socks5 proxy, came {other}").into()),
            };
            Ok(Stream { io, forwarded })
        })
    }
}

/// A connection, and whether a proxy forwards single requests on it (they then carry the whole URL).
#[derive(Debug)]
pub(super) struct Stream {
    io: TokioIo<TcpStream>,
    forwarded: bool,
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        self.io.inner().connected().proxy(self.forwarded)
    }
}

impl Read for Stream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl Write for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, bufs)
    }
}
