//! Whether a server's certificate is trusted: by the authorities, or because the user named that very certificate.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, SignatureScheme};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

/// How many of a certificate's names an error shows.
const MAX_NAMES: usize = 5;

/// Why a server's certificate is not trusted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Distrust {
    #[error("it expired on {0}")]
    Expired(String),
    #[error("it is not valid before {0}")]
    NotYetValid(String),
    #[error("a certificate of an authority in its chain is expired or not valid yet")]
    ChainNotValidNow,
    #[error("it is for {names}, and not for {host}")]
    OtherName { host: String, names: String },
    #[error("it was issued by {0}, which is not a trusted authority")]
    UnknownIssuer(String),
    #[error("it is self-signed")]
    SelfSigned,
    #[error("it was revoked")]
    Revoked,
    #[error("it is not meant for servers")]
    OtherPurpose,
    #[error("its signature is not valid or not supported")]
    Signature,
    #[error("it cannot be read")]
    Malformed,
    #[error("it does not meet the rules for certificates of servers")]
    Unacceptable,
}

impl Distrust {
    /// What to do about it.
    pub fn advice(&self) -> &'static str {
        match self {
            Distrust::UnknownIssuer(_) => "if you know who issued it, trust that authority with --ca FILE",
            Distrust::SelfSigned => "if you know whose it is, trust this very certificate with --ca FILE",
            Distrust::OtherName { .. } => "use a name that the certificate is for in the URL",
            Distrust::NotYetValid(_) => "check the clocks of both machines",
            Distrust::Expired(_) | Distrust::ChainNotValidNow => "the server needs a new certificate",
            _ => "the server needs another certificate",
        }
    }
}

/// Trusts what the authorities vouch for, and the certificates that the user named byte for byte, whatever they are
/// otherwise: `openssl req -x509` makes a self-signed certificate that is an authority at the same time, which RFC 5280
/// keeps from being a server's.
#[derive(Debug)]
pub(super) struct Verifier {
    /// `None` where nobody is trusted.
    authorities: Option<Arc<WebPkiServerVerifier>>,
    named: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
}

impl Verifier {
    pub(super) fn new(
        authorities: Option<Arc<WebPkiServerVerifier>>,
        named: Vec<CertificateDer<'static>>,
        provider: Arc<CryptoProvider>,
    ) -> Verifier {
        Verifier { authorities, named, provider }
    }

    fn by_authorities(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        status: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match &self.authorities {
            Some(authorities) => authorities.verify_server_cert(certificate, chain, name, status, now),
            None => Err(CertificateError::UnknownIssuer.into()),
        }
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        status: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let error = match self.by_authorities(certificate, chain, name, status, now) {
            Err(Error::InvalidCertificate(error)) => error,
            outcome => return outcome,
        };
        let parsed = X509Certificate::from_der(certificate).map(|(_, parsed)| parsed);
        let reason = match &parsed {
            Err(_) => Some(Distrust::Malformed),
            Ok(parsed) if self.named.iter().any(|named| named == certificate) => {
                outdated(parsed, now).or_else(|| misnamed(parsed, certificate, name))
            }
            Ok(parsed) => Some(distrust(&error, parsed, name, now)),
        };
        match reason {
            None => Ok(ServerCertVerified::assertion()),
            Some(reason) => Err(CertificateError::Other(OtherError(Arc::new(reason))).into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// What an error of the library means for this certificate.
fn distrust(
    error: &CertificateError,
    certificate: &X509Certificate<'_>,
    name: &ServerName<'_>,
    now: UnixTime,
) -> Distrust {
    use CertificateError as E;
    match error {
        E::Expired | E::ExpiredContext { .. } | E::NotValidYet | E::NotValidYetContext { .. } => {
            outdated(certificate, now).unwrap_or(Distrust::ChainNotValidNow)
        }
        E::NotValidForName | E::NotValidForNameContext { .. } => other_name(certificate, name),
        E::Revoked => Distrust::Revoked,
        E::InvalidPurpose | E::InvalidPurposeContext { .. } => Distrust::OtherPurpose,
        E::BadEncoding => Distrust::Malformed,
        E::BadSignature
        | E::UnsupportedSignatureAlgorithmContext { .. }
        | E::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => Distrust::Signature,
        // An authority's own certificate ends in `Other`.
        _ if certificate.subject() == certificate.issuer() => Distrust::SelfSigned,
        E::UnknownIssuer => Distrust::UnknownIssuer(shown(&certificate.issuer().to_string())),
        _ => Distrust::Unacceptable,
    }
}

fn outdated(certificate: &X509Certificate<'_>, now: UnixTime) -> Option<Distrust> {
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let (from, until) = (certificate.validity().not_before.timestamp(), certificate.validity().not_after.timestamp());
    if now > until {
        return Some(Distrust::Expired(date(until)));
    }
    (now < from).then(|| Distrust::NotYetValid(date(from)))
}

fn date(seconds: i64) -> String {
    let since = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
    humantime::format_rfc3339_seconds(UNIX_EPOCH + since).to_string()
}

fn misnamed(parsed: &X509Certificate<'_>, certificate: &CertificateDer<'_>, name: &ServerName<'_>) -> Option<Distrust> {
    let valid = ParsedCertificate::try_from(certificate)
        .and_then(|certificate| rustls::client::verify_server_name(&certificate, name));
    // Without alternative names the common name counts, as it did before there were any.
    let common = || parsed.subject().iter_common_name().filter_map(|common| common.as_str().ok());
    let by_common_name =
        || names(parsed).is_empty() && common().any(|common| common.eq_ignore_ascii_case(&name.to_str()));
    (valid.is_err() && !by_common_name()).then(|| other_name(parsed, name))
}

fn other_name(certificate: &X509Certificate<'_>, name: &ServerName<'_>) -> Distrust {
    let all = names(certificate);
    let mut shown: Vec<String> = all.iter().take(MAX_NAMES).map(|name| self::shown(name)).collect();
    if all.len() > MAX_NAMES {
        shown.push(format!("{} more", all.len() - MAX_NAMES));
    }
    let names = if shown.is_empty() { "no host name".to_owned() } else { shown.join(", ") };
    Distrust::OtherName { host: name.to_str().into_owned(), names }
}

/// The hosts that a certificate is for.
fn names(certificate: &X509Certificate<'_>) -> Vec<String> {
    let alternative = certificate.subject_alternative_name().ok().flatten();
    let name = |name: &GeneralName<'_>| match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => match bytes.len() {
            4 => <[u8; 4]>::try_from(*bytes).ok().map(|bytes| std::net::IpAddr::from(bytes).to_string()),
            _ => <[u8; 16]>::try_from(*bytes).ok().map(|bytes| std::net::IpAddr::from(bytes).to_string()),
        },
        _ => None,
    };
    alternative.into_iter().flat_map(|names| names.value.general_names.iter().filter_map(name)).collect()
}

/// A name that a stranger has chosen, fit for one line of text.
fn shown(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(100).collect()
}
