//! TLS and proxies.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use serde_json::json;
use tokio::io::{AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::{finish, initialize_params, open};
use crate::support::process::Mcpwire;
use crate::support::script::Script;

/// An authority of our own, and the files that a user would have of it.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: PathBuf,
}

impl Authority {
    pub fn new(name: &str) -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&folder).unwrap();
        let authority = Authority { issuer, folder };
        authority.write("ca.pem", &authority.issuer.pem());
        let (chain, key) = authority.issue("client");
        authority.write("client.pem", &chain.pem());
        authority.write("client.key", &key.serialize_pem());
        authority
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.join(name), text).unwrap();
    }

    pub fn file(&self, name: &str) -> String {
        self.folder.join(name).to_str().unwrap().to_owned()
    }

    fn issue(&self, name: &str) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        (params.signed_by(&key, &self.issuer).unwrap(), key)
    }

    pub fn acceptor(&self, host: &str, wants_certificate: bool) -> TlsAcceptor {
        TlsAcceptor::from(Arc::new(self.settings(host, wants_certificate)))
    }

    /// The settings of a server that speaks HTTP/2 only.
    pub fn http2_acceptor(&self, host: &str) -> TlsAcceptor {
        let mut settings = self.settings(host, false);
        settings.alpn_protocols = vec![b"h2".to_vec()];
        TlsAcceptor::from(Arc::new(settings))
    }

    fn settings(&self, host: &str, wants_certificate: bool) -> ServerConfig {
        let (certificate, key) = self.issue(host);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder =
            ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions().unwrap();
        let builder = if wants_certificate {
            let mut roots = RootCertStore::empty();
            roots.add(self.issuer.der().clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
            builder.with_client_cert_verifier(verifier)
        } else {
            builder.with_no_client_auth()
        };
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        builder.with_single_cert(vec![certificate.der().clone()], key).unwrap()
    }
}

fn https(server: &Script) -> String {
    format!("https://localhost:{}/mcp", server.address().port())
}

#[tokio::test]
async fn an_authority_of_our_own_is_trusted_when_named() {
    let authority = Authority::new("named");
    let mut server = Script::start_tls(authority.acceptor("localhost", false)).await;
    let mut client = Mcpwire::start(&["connect", &https(&server), "--ca", &authority.file("ca.pem")]);
    open(&mut client, &mut server, "2025-11-25").await;
    finish(client, server).await;
}

#[tokio::test]
async fn an_unknown_authority_is_refused_at_once_and_the_flag_named() {
    let authority = Authority::new("unknown");
    let server = Script::start_tls(authority.acceptor("localhost", false)).await;
    let mut client = Mcpwire::start(&["connect", &https(&server)]);
    client.request(0, "initialize", initialize_params("2025-11-25")).await;
    let answer = client.message().await;
    let text = answer["error"]["message"].as_str().unwrap();
    assert!(text.contains("not trusted") && text.contains("--ca"), "{answer}");
    let log = client.finish().await;
    assert!(!log.contains("next try"), "trying again cannot help: {log}");
}

#[tokio::test]
async fn any_certificate_will_do_if_the_user_insists() {
    let authority = Authority::new("insecure");
    let mut server = Script::start_tls(authority.acceptor("another.name", false)).await;
    let mut client = Mcpwire::start(&["connect", &https(&server), "--insecure"]);
    open(&mut client, &mut server, "2025-11-25").await;
    let log = finish(client, server).await;
    assert!(log.contains("[WARN] [connect] --insecure"), "{log}");
}

#[tokio::test]
async fn our_own_certificate_is_shown_to_servers_that_want_one() {
    let authority = Authority::new("mutual");
    let mut server = Script::start_tls(authority.acceptor("localhost", true)).await;
    let (ca, chain, key) = (authority.file("ca.pem"), authority.file("client.pem"), authority.file("client.key"));
    let url = https(&server);
    let mut client = Mcpwire::start(&["connect", &url, "--ca", &ca, "--client-cert", &chain, "--client-key", &key]);
    open(&mut client, &mut server, "2025-11-25").await;
    finish(client, server).await;

    let server = Script::start_tls(authority.acceptor("localhost", true)).await;
    let mut client = Mcpwire::start(&["connect", &https(&server), "--ca", &ca, "--wait", "200ms"]);
    client.request(0, "initialize", initialize_params("2025-11-25")).await;
    assert_eq!(client.message().await["error"]["code"], -32603);
    client.finish().await;
}

#[tokio::test]
async fn plain_requests_go_through_the_proxy_of_the_environment() {
    let mut proxy = Script::start().await;
    let address = format!("http://user:pw@{}", proxy.address());
    let mut client = Mcpwire::start_with(&["connect", "http://mcp.test/mcp"], &[("HTTP_PROXY", &address)]);
    client.request(1, "ping", json!({})).await;
    let request = proxy.expect("ping").await;
    assert_eq!(request.target, "http://mcp.test/mcp");
    assert_eq!(request.header("proxy-authorization"), Some("Basic dXNlcjpwdw=="));
    request.result(json!({})).await;
    assert_eq!(client.message().await["id"], 1);
    let log = client.finish().await;
    assert!(!log.contains("pw@"), "{log}");
}

#[tokio::test]
async fn secure_connections_go_through_a_tunnel() {
    let authority = Authority::new("tunnel");
    let mut server = Script::start_tls(authority.acceptor("mcp.test", false)).await;
    let target = server.address();
    let mut proxy = Script::start().await;
    let tunnels = {
        let address = proxy.address();
        let proxying = tokio::spawn(async move {
            loop {
                let mut request = proxy.next().await;
                assert_eq!((request.method.as_str(), request.target.as_str()), ("CONNECT", "mcp.test:443"));
                tokio::spawn(async move {
                    request.stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                    let mut server = TcpStream::connect(target).await.unwrap();
                    let _ = copy_bidirectional(&mut request.stream, &mut server).await;
                });
            }
        });
        (address, proxying)
    };
    let (ca, address) = (authority.file("ca.pem"), format!("http://{}", tunnels.0));
    let args = ["connect", "https://mcp.test/mcp", "--ca", &ca];
    let mut client = Mcpwire::start_with(&args, &[("HTTPS_PROXY", &address)]);
    open(&mut client, &mut server, "2025-11-25").await;
    finish(client, server).await;
    tunnels.1.abort();
}

#[tokio::test]
async fn a_server_on_this_machine_is_never_behind_a_proxy() {
    let mut proxy = Script::start().await;
    let mut server = Script::start().await;
    let address = format!("http://{}", proxy.address());
    let mut client = Mcpwire::start_with(&["connect", &server.url()], &[("HTTP_PROXY", &address)]);
    open(&mut client, &mut server, "2025-11-25").await;
    finish(client, server).await;
    proxy.assert_idle();
}

/// A server whose machine does not answer: here one that has more connections waiting than it takes.
#[tokio::test]
async fn a_server_that_accepts_no_connection_is_waited_for_as_long_as_asked() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut waiting = Vec::new();
    while let Ok(Ok(stream)) = timeout(Duration::from_millis(300), TcpStream::connect(address)).await {
        waiting.push(stream);
    }
    let wait = Duration::from_secs(1);
    let mut client = Mcpwire::start(&["connect", &format!("http://{address}/mcp"), "--wait", "1s"]);
    let asked = Instant::now();
    client.request(1, "initialize", initialize_params("2025-11-25")).await;
    let answer = client.message().await;
    assert!(answer["error"]["message"].as_str().unwrap().contains("gave up after 1s"), "{answer}");
    assert!((wait..wait * 2).contains(&asked.elapsed()), "{:?}", asked.elapsed());
    client.finish().await;
}
