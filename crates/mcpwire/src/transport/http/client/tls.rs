//! Whom we trust, and who we are, on an https connection.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

use super::ConnectError;
use super::verify::Verifier;

/// What the user said about certificates, as PEM.
#[derive(Clone, Default)]
pub struct Tls {
    /// Authorities trusted besides the system's, and certificates of servers that are trusted as they are.
    pub authorities: Option<Vec<u8>>,
    /// Our own certificate chain and its key.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
    /// Take any certificate.
    pub insecure: bool,
}

impl std::fmt::Debug for Tls {
    /// The identity holds a private key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").field("insecure", &self.insecure).finish_non_exhaustive()
    }
}

impl Tls {
    /// The settings for a connection. The system's trust roots take some 20 ms to load, so a plain http target, which
    /// never uses them, goes without.
    pub(super) fn config(&self, secure: bool) -> Result<ClientConfig, ConnectError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(ConnectError::Tls)?;
        let config = if self.insecure {
            config.dangerous().with_custom_certificate_verifier(Arc::new(TakeAny(provider)))
        } else if secure {
            config.dangerous().with_custom_certificate_verifier(Arc::new(self.verifier(provider)?))
        } else {
            config.with_root_certificates(RootCertStore::empty())
        };
        let Some((chain, key)) = &self.identity else { return Ok(config.with_no_client_auth()) };
        let chain = certificates(chain)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|e| ConnectError::Pem("a private key", e.to_string()))?;
        config.with_client_auth_cert(chain, key).map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => ConnectError::KeyMismatch,
            error => ConnectError::Tls(error),
        })
    }

    fn verifier(&self, provider: Arc<CryptoProvider>) -> Result<Verifier, ConnectError> {
        let named = self.authorities.as_deref().map(certificates).transpose()?.unwrap_or_default();
        let roots = Arc::new(roots(&named)?);
        let trusted = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider)).build();
        // Without any trust roots there is none: only certificates that are named are trusted.
        Ok(Verifier::new(trusted.ok(), named, provider))
    }
}

/// The system's trust roots, and those that the user named.
fn roots(named: &[CertificateDer<'static>]) -> Result<RootCertStore, ConnectError> {
    let mut roots = RootCertStore::empty();
    let system = rustls_native_certs::load_native_certs();
    for error in &system.errors {
        tracing::debug!(target: "http", "a system trust root was passed over: {error}");
    }
    roots.add_parsable_certificates(system.certs);
    for certificate in named {
        let unreadable = |_| ConnectError::Pem("certificates", "one of them cannot be read".into());
        roots.add(certificate.clone()).map_err(unreadable)?;
    }
    Ok(roots)
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, ConnectError> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let certificates = certificates.map_err(|e| ConnectError::Pem("certificates", e.to_string()))?;
    if certificates.is_empty() {
        return Err(ConnectError::Pem("certificates", "found none".into()));
    }
    Ok(certificates)
}

/// For `--insecure`: any certificate will do. Signatures are still checked.
#[derive(Debug)]
struct TakeAny(Arc<CryptoProvider>);

impl ServerCertVerifier for TakeAny {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
