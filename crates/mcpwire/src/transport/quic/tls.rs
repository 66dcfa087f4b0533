//! QUIC settings and mutual TLS for both sides; where the certificates come from is left to [`super::certs`].

use std::sync::Arc;
use std::time::Duration;

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, EndpointConfig, IdleTimeout, ServerConfig, TransportConfig, VarInt};
use quinn_proto::HashedConnectionIdGenerator;
use ring::hmac;
use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::server::WebPkiClientVerifier;
use rustls::version::TLS13;

use super::certs::Identity;

/// A connection on which nothing comes for this long is gone, to a server.
const SERVER_IDLE: Duration = Duration::from_secs(5 * 60);
/// And to a client, which has calls to answer for.
const CLIENT_IDLE: Duration = Duration::from_secs(45);
const SERVER_KEEP_ALIVE: Duration = Duration::from_secs(15);
/// A client that waits for an answer notices within this time, and a little more, that nobody works on it any more.
const CLIENT_KEEP_ALIVE: Duration = Duration::from_secs(5);
/// How many calls a peer may have under way on one connection; more wait for their stream.
const MOST_STREAMS: u32 = 1024;
/// What a peer may send on one connection before we have read it.
const RECEIVE_WINDOW: u32 = 32 * 1024 * 1024;
const STREAM_WINDOW: u32 = 2 * 1024 * 1024;

/// Why an endpoint cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    #[error("TLS settings: {0}")]
    Tls(#[from] rustls::Error),
    #[error("TLS settings: {0}")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
    #[error("TLS settings: {0}")]
    Cipher(#[from] quinn::crypto::rustls::NoInitialCipherSuite),
}

pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn roots(identity: &Identity) -> Result<Arc<RootCertStore>, rustls::Error> {
    let mut roots = RootCertStore::empty();
    roots.add(identity.authority.clone())?;
    Ok(Arc::new(roots))
}

/// A client that shows its certificate and trusts the authority alone.
pub(super) fn client(identity: &Identity, alpn: &[u8]) -> Result<ClientConfig, Unusable> {
    let mut tls = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .with_root_certificates(roots(identity)?)
        .with_client_auth_cert(identity.chain.clone(), identity.key.clone_key())?;
    tls.alpn_protocols = vec![alpn.to_vec()];
    let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    config.transport_config(transport(CLIENT_IDLE, CLIENT_KEEP_ALIVE));
    Ok(config)
}

/// A server. Clients must show a certificate of the authority; with `anonymous` they may as well show none.
pub(super) fn server(identity: &Identity, alpns: &[&[u8]], anonymous: bool) -> Result<ServerConfig, Unusable> {
    let verifier = WebPkiClientVerifier::builder_with_provider(roots(identity)?, provider());
    let verifier = if anonymous { verifier.allow_unauthenticated() } else { verifier }.build()?;
    let mut tls = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(verifier)
        .with_single_cert(identity.chain.clone(), identity.key.clone_key())?;
    tls.alpn_protocols = alpns.iter().map(|alpn| alpn.to_vec()).collect();
    // No early data: what it carries can be replayed by others, and a tool call must not be.
    tls.max_early_data_size = 0;
    let mut config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    config.transport_config(transport(SERVER_IDLE, SERVER_KEEP_ALIVE));
    Ok(config)
}

fn transport(idle: Duration, keep_alive: Duration) -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport
        .max_idle_timeout(IdleTimeout::try_from(idle).ok())
        .keep_alive_interval(Some(keep_alive))
        .max_concurrent_bidi_streams(VarInt::from_u32(MOST_STREAMS))
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .receive_window(VarInt::from_u32(RECEIVE_WINDOW))
        .stream_receive_window(VarInt::from_u32(STREAM_WINDOW))
        .datagram_receive_buffer_size(None);
    Arc::new(transport)
}

/// Settings by which a server that was started anew can tell the clients of the one before that it does not know them
/// (RFC 9000, section 10.3): both have the same secret, which comes from the private key.
pub(super) fn endpoint(identity: &Identity) -> EndpointConfig {
    let secret = hmac::Key::new(hmac::HMAC_SHA256, identity.key.secret_der());
    let reset = hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&secret, b"mcpwire stateless reset").as_ref());
    let mut cid_key = [0; 8];
    cid_key.copy_from_slice(&hmac::sign(&secret, b"mcpwire connection ids").as_ref()[..8]);
    let cid_key = u64::from_be_bytes(cid_key);
    let mut config = EndpointConfig::new(Arc::new(reset));
    config.cid_generator(move || Box::new(HashedConnectionIdGenerator::from_key(cid_key)));
    config
}
