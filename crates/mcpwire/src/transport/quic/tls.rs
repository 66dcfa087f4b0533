//! QUIC settings and mutual TLS for both sides; where the certificates come from is left to [`super::certs`].

use std::sync::Arc;
use std::time::Duration;

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, IdleTimeout, ServerConfig, TransportConfig, VarInt};
use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::server::WebPkiClientVerifier;
use rustls::version::TLS13;

use super::certs::Identity;

/// A connection on which nothing comes for this long is gone, to a server.
const SERVER_IDLE: Duration = Duration::from_secs(5 * 60);
/// And to a client, which has calls to answer for: three signs of life in a row have stayed away.
const CLIENT_IDLE: Duration = Duration::from_secs(45);
const KEEP_ALIVE: Duration = Duration::from_secs(15);
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
    config.transport_config(transport(CLIENT_IDLE));
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
    config.transport_config(transport(SERVER_IDLE));
    Ok(config)
}

fn transport(idle: Duration) -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport
        .max_idle_timeout(IdleTimeout::try_from(idle).ok())
        .keep_alive_interval(Some(KEEP_ALIVE))
        .max_concurrent_bidi_streams(VarInt::from_u32(MOST_STREAMS))
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .receive_window(VarInt::from_u32(RECEIVE_WINDOW))
        .stream_receive_window(VarInt::from_u32(STREAM_WINDOW))
        .datagram_receive_buffer_size(None);
    Arc::new(transport)
}
