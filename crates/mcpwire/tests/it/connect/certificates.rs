//! Certificates that are trusted as they are, and what is said of those that are not.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use super::{finish, initialize_params, open};
use crate::ask::run;
use crate::support::process::Mcpwire;
use crate::support::script::Script;

/// A certificate of a server, in a file as well.
struct Identity {
    der: CertificateDer<'static>,
    key: KeyPair,
    file: String,
}

impl Identity {
    fn self_signed(name: &str, change: impl FnOnce(&mut CertificateParams)) -> Identity {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        Identity::new(name, certificate.der().clone(), &certificate.pem(), key)
    }

    /// Issued by an authority that is in no file.
    fn issued(name: &str, change: impl FnOnce(&mut CertificateParams)) -> Identity {
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.distinguished_name.push(DnType::CommonName, "Nobody\u{1b}[31m's CA");
        let issuer = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap();
        Identity::new(name, certificate.der().clone(), &certificate.pem(), key)
    }

    fn new(name: &str, der: CertificateDer<'static>, pem: &str, key: KeyPair) -> Identity {
        let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.pem"));
        fs::write(&file, pem).unwrap();
        Identity { der, key, file: file.to_str().unwrap().to_owned() }
    }

    async fn serve(&self) -> Script {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let key = PrivateKeyDer::try_from(self.key.serialize_der()).unwrap();
        let settings = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![self.der.clone()], key)
            .unwrap();
        Script::start_tls(TlsAcceptor::from(Arc::new(settings))).await
    }
}

fn https(server: &Script) -> String {
    format!("https://localhost:{}/mcp", server.address().port())
}

fn is_authority(params: &mut CertificateParams) {
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
}

fn without_names(params: &mut CertificateParams) {
    params.subject_alt_names.clear();
    params.distinguished_name.push(DnType::CommonName, "localhost");
}

#[tokio::test]
async fn a_certificate_that_is_named_byte_for_byte_is_trusted() {
    let identities = [
        Identity::self_signed("plain", |_| {}),
        // What `openssl req -x509` makes.
        Identity::self_signed("authority", is_authority),
        Identity::issued("leaf", |_| {}),
        Identity::issued("common-name", without_names),
    ];
    for identity in identities {
        let mut server = identity.serve().await;
        let mut client = Mcpwire::start(&["connect", &https(&server), "--ca", &identity.file]);
        open(&mut client, &mut server, "2025-11-25").await;
        finish(client, server).await;
    }
}

/// The error of a client, and what the doctor finds.
async fn distrusted(identity: &Identity, ca: Option<&str>) -> (String, String) {
    let server = identity.serve().await;
    let url = https(&server);
    let ca: Vec<&str> = ca.into_iter().flat_map(|file| ["--ca", file]).collect();
    let mut client = Mcpwire::start(&[&["connect", url.as_str()], &ca[..]].concat());
    client.request(0, "initialize", initialize_params("2025-11-25")).await;
    let answer = client.message().await;
    client.finish().await;
    let text = answer["error"]["message"].as_str().unwrap().to_owned();
    let found = run(&[&["doctor", "--json", url.as_str()], &ca[..]].concat()).await;
    (text, found.stdout)
}

#[tokio::test]
async fn what_is_wrong_with_a_certificate_is_told_in_words_with_advice_that_applies() {
    let expired = |params: &mut CertificateParams| {
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2021, 2, 3);
    };
    let future = |params: &mut CertificateParams| params.not_before = date_time_ymd(2190, 1, 1);
    let elsewhere = |params: &mut CertificateParams| {
        params.subject_alt_names =
            CertificateParams::new(vec!["a.example".to_owned(), "10.1.2.3".to_owned()]).unwrap().subject_alt_names;
    };
    let cases = [
        (Identity::self_signed("w-expired", expired), true, "it expired on 2021-02-03", "needs a new certificate"),
        (
            Identity::self_signed("w-expired-ca", |p| {
                expired(p);
                is_authority(p);
            }),
            true,
            "it expired on 2021-02-03",
            "needs a new certificate",
        ),
        (Identity::issued("w-expired-leaf", expired), false, "it expired on 2021-02-03", "needs a new certificate"),
        (Identity::self_signed("w-future", future), true, "not valid before 2190-01-01", "clocks"),
        (
            Identity::self_signed("w-name", elsewhere),
            true,
            "it is for a.example, 10.1.2.3, and not for localhost",
            "in the URL",
        ),
        (
            Identity::issued("w-name-leaf", elsewhere),
            true,
            "it is for a.example, 10.1.2.3, and not for localhost",
            "in the URL",
        ),
        (Identity::issued("w-issuer", |_| {}), false, "which is not a trusted authority", "--ca FILE"),
        (Identity::self_signed("w-self", |_| {}), false, "it is self-signed", "--ca FILE"),
        (Identity::self_signed("w-self-ca", is_authority), false, "it is self-signed", "--ca FILE"),
    ];
    for (identity, named, says, advice) in cases {
        let (text, found) = distrusted(&identity, named.then_some(identity.file.as_str())).await;
        for said in [&text, &found] {
            assert!(said.contains(says) && said.contains(advice), "{}: {said}", identity.file);
            let debug = ["Other(", "Context", "NotValid", "CaUsed", "UnknownIssuer", "\u{1b}[31m"];
            assert!(!debug.iter().any(|debug| said.contains(debug)), "{said}");
            assert!(advice.contains("--ca") || !said.contains("--ca"), "advice that does not apply: {said}");
        }
    }
}
