//! A connection to a QUIC server that is made when it is needed, again after it was lost, and given up when the server
//! has fallen silent.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quinn::{ClientConfig, Connection, ConnectionError, Endpoint, VarInt};
use tokio::net::lookup_host;
use tokio::sync::Mutex;
use tokio::task::{self, JoinSet};
use tokio::time::{Instant, interval, timeout, timeout_at};

/// How long a server may take to accept us. Nothing tells of a port on which nobody listens.
const ACCEPTED_WITHIN: Duration = Duration::from_secs(3);
/// The first try is given this long, even to callers that would rather not wait.
const AT_LEAST: Duration = Duration::from_millis(500);
/// A server that acknowledges nothing for this long is gone, whatever the idle time says.
const SILENT: Duration = Duration::from_secs(4);
/// So many packets in a row are not merely acknowledgements of ours.
const UNANSWERED: u64 = 4;
const LOOK: Duration = Duration::from_millis(500);
/// QUIC's errors from here on are alerts of TLS.
const CRYPTO_ERROR: u64 = 0x100;
/// How long our farewell may take.
const FAREWELL: Duration = Duration::from_millis(500);

/// Where a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// A name or an IP address, without brackets.
    pub host: String,
    pub port: u16,
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// The one connection to a server.
#[derive(Debug)]
pub(super) struct Peer {
    /// What the server is, in log lines.
    what: &'static str,
    address: Address,
    config: ClientConfig,
    /// How long a caller waits for a server that cannot be reached.
    wait: Duration,
    current: Mutex<State>,
    dialled: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    connected: Option<(Endpoint, Connection)>,
    /// The last try that failed.
    failed: Option<(Instant, String)>,
    /// When the first of the tries began that have failed since somebody waits.
    failing_since: Option<Instant>,
}

impl Peer {
    pub(super) fn new(what: &'static str, address: Address, config: ClientConfig, wait: Duration) -> Peer {
        Peer { what, address, config, wait, current: Mutex::default(), dialled: AtomicU64::new(0) }
    }

    /// How many connections there have been.
    pub(super) fn dialled(&self) -> u64 {
        self.dialled.load(Ordering::Relaxed)
    }

    /// The connection, if it lives, or a new one. Those who wait for the same try share what comes of it.
    pub(super) async fn connection(&self) -> Result<Connection, String> {
        let asked = Instant::now();
        let mut current = self.current.lock().await;
        if let Some(connection) = current.live() {
            return Ok(connection);
        }
        current.connected = None;
        if let Some((when, why)) = &current.failed
            && *when >= asked
        {
            return Err(why.clone());
        }
        match self.dial(current.next_try(self.wait)).await {
            Ok((endpoint, connection)) => {
                self.dialled.fetch_add(1, Ordering::Relaxed);
                tracing::info!(target: "quic", "connected to {} at {}", self.what, self.address);
                task::spawn(watch(connection.clone()));
                *current = State { connected: Some((endpoint, connection.clone())), ..State::default() };
                Ok(connection)
            }
            Err(why) => {
                current.failed = Some((Instant::now(), why.clone()));
                Err(why)
            }
        }
    }

    /// The connection, if there is one.
    pub(super) async fn live(&self) -> Option<Connection> {
        self.current.lock().await.live()
    }

    /// Tries all addresses of the host at once; the first that answers is taken.
    async fn dial(&self, until: Instant) -> Result<(Endpoint, Connection), String> {
        let Address { host, port } = &self.address;
        let found = timeout_at(until, lookup_host((host.as_str(), *port))).await;
        let addresses = found.map_err(|_| "its name cannot be looked up in time".to_owned())?;
        let mut dials = JoinSet::new();
        for address in addresses.map_err(|error| format!("its name cannot be looked up: {error}"))? {
            let (config, host) = (self.config.clone(), host.clone());
            dials.spawn(async move {
                let dial = dial(address, &host, config);
                timeout_at(until, dial).await.unwrap_or_else(|_| Err("it does not answer".to_owned()))
            });
        }
        let mut why = "it has no address".to_owned();
        while let Some(dialled) = dials.join_next().await {
            match dialled {
                Ok(Ok(connected)) => return Ok(connected),
                Ok(Err(error)) => why = telling(why, error),
                Err(_) => {}
            }
        }
        Err(why)
    }

    pub(super) async fn close(&self) {
        if let Some((endpoint, connection)) = self.current.lock().await.connected.take() {
            connection.close(VarInt::from_u32(0), b"client closed");
            let _ = timeout(FAREWELL, endpoint.wait_idle()).await;
        }
    }
}

impl State {
    /// When the next try has to succeed: the tries of one wait end with it.
    fn next_try(&mut self, wait: Duration) -> Instant {
        let now = Instant::now();
        let waited = self.failing_since.map_or(Duration::ZERO, |since| now - since);
        let left = match wait.checked_sub(waited) {
            Some(left) if !waited.is_zero() && !left.is_zero() => left,
            _ => {
                self.failing_since = Some(now);
                wait.max(AT_LEAST)
            }
        };
        now + left.min(ACCEPTED_WITHIN)
    }

    fn live(&self) -> Option<Connection> {
        let (_, connection) = self.connected.as_ref()?;
        connection.close_reason().is_none().then(|| connection.clone())
    }
}

async fn dial(address: SocketAddr, host: &str, config: ClientConfig) -> Result<(Endpoint, Connection), String> {
    let from: SocketAddr = match address {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let endpoint = Endpoint::client(from).map_err(|error: io::Error| error.to_string())?;
    let connecting = endpoint.connect_with(config, address, host).map_err(|error| error.to_string())?;
    let connection = connecting.await.map_err(|error| lost(&error))?;
    Ok((endpoint, connection))
}

/// Of several failures, one that tells more than silence.
fn telling(known: String, new: String) -> String {
    let says_nothing = |text: &str| text.starts_with("it ");
    if says_nothing(&new) && !says_nothing(&known) { known } else { new }
}

/// Why a connection ended, in words.
pub(super) fn lost(error: &ConnectionError) -> String {
    match error {
        ConnectionError::TimedOut => "it does not answer any more".to_owned(),
        ConnectionError::LocallyClosed => "the connection was given up: it had fallen silent".to_owned(),
        ConnectionError::ApplicationClosed(_) => "it closed the connection".to_owned(),
        ConnectionError::Reset => "it does not know the connection any more".to_owned(),
        ConnectionError::ConnectionClosed(close) => match alert(u64::from(close.error_code)) {
            Some(why) => format!("{why} ({error})"),
            None => error.to_string(),
        },
        other => other.to_string(),
    }
}

/// What a server means that refuses the handshake with an alert of TLS, of which QUIC tells the number.
fn alert(code: u64) -> Option<&'static str> {
    match code.checked_sub(CRYPTO_ERROR)? {
        // bad_certificate, unsupported_certificate, certificate_unknown, unknown_ca, decrypt_error
        42 | 43 | 46 | 48 | 51 => Some("it does not take our certificate; is it of another authority?"),
        44 | 45 => Some("our certificate is not valid any more"),
        116 => Some("it wants a certificate"),
        120 => Some("it does not speak this protocol"),
        _ => None,
    }
}

/// Gives up a connection whose packets stay unacknowledged: QUIC itself would wait for the idle time to pass.
async fn watch(connection: Connection) {
    let mut looks = interval(LOOK);
    let (mut heard, mut sent_by_then) = (0, 0);
    let mut silent_since: Option<Instant> = None;
    loop {
        tokio::select! {
            _ = connection.closed() => return,
            _ = looks.tick() => {}
        }
        let stats = connection.stats();
        if stats.udp_rx.datagrams != heard {
            (heard, sent_by_then, silent_since) = (stats.udp_rx.datagrams, stats.udp_tx.datagrams, None);
        } else if stats.udp_tx.datagrams >= sent_by_then + UNANSWERED {
            let since = *silent_since.get_or_insert_with(Instant::now);
            if since.elapsed() >= SILENT {
                return connection.close(VarInt::from_u32(0), b"silent");
            }
        }
    }
}
