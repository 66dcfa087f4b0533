//! QUIC through the binary: certificates, an orchestrator's place, a plugin's life, and prompt ends.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Endpoint};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use crate::support::proc::children;
use crate::support::process::Mcpwire;
use crate::support::reach::{MCPWIRE, quic_address};
use crate::support::scratch::Scratch;
use crate::support::{runs, until, within};

/// `expose --quic` in front of the reference server.
async fn front(certs: &str, at: &str) -> (Mcpwire, SocketAddr) {
    let front = Mcpwire::start(&["expose", "--quic", at, "--certs-dir", certs, "--", MCPWIRE, "reference", "--stdio"]);
    front.logged("listening on quic://").await;
    let address = quic_address(&front.stderr());
    (front, address)
}

async fn echo(client: &mut Mcpwire, id: u64, text: &str) {
    client.call(id, "echo", json!({"message": text})).await;
    let answer = client.message().await;
    assert_eq!((&answer["id"], &answer["result"]["content"][0]["text"]), (&json!(id), &json!(text)), "{answer}");
}

async fn end(mut process: Mcpwire) {
    process.signal("TERM");
    assert_eq!(process.wait().await.code(), Some(0), "{}", process.stderr());
}

#[tokio::test]
async fn a_client_on_stdio_reaches_a_server_by_either_protocol() {
    let scratch = Scratch::new();
    let certs = scratch.file("certs");
    let (front, at) = front(&certs, "localhost:0").await;
    for target in [format!("quic://{at}"), format!("quic://localhost:{}", at.port()), format!("quic+mcp://{at}")] {
        let mut client = Mcpwire::start(&["connect", &target, "--certs-dir", &certs]);
        client.open_session().await;
        echo(&mut client, 1, "grüß \u{1f642}").await;
        client.finish().await;
    }
    let at = at.to_string();
    // With two dashes, and with one as Go programs take them.
    for [address, folder] in [["--orchestrator-addr", "--certs-dir"], ["-orchestrator-addr", "-certs-dir"]] {
        let mut client = Mcpwire::start(&["connect", address, &at, folder, &certs]);
        client.open_session().await;
        echo(&mut client, 1, "by its flag").await;
        let log = client.finish().await;
        assert!(log.contains(&format!("connected to orchestrator at {at}")), "{log}");
    }
    end(front).await;
}

/// As the page on QUIC says: without `ca.key`.
#[tokio::test]
async fn a_second_machine_connects_with_the_authority_and_a_pair_of_its_own() {
    let scratch = Scratch::new();
    let (first, second) = (scratch.file("first"), scratch.file("second"));
    let (front, at) = front(&first, "127.0.0.1:0").await;
    Mcpwire::start(&["certs", "make", "laptop", "--certs-dir", &first]).wait().await;
    fs::create_dir(&second).expect("a new folder");
    fs::set_permissions(&second, fs::Permissions::from_mode(0o700)).expect("it is ours");
    for (made, needed) in [
        ("ca.crt", "ca.crt"),
        ("laptop.crt", "transport.stdio-client.crt"),
        ("laptop.key", "transport.stdio-client.key"),
    ] {
        fs::copy(format!("{first}/{made}"), format!("{second}/{needed}")).expect("a copy");
    }
    for scheme in ["quic", "quic+mcp"] {
        let mut client = Mcpwire::start(&["connect", &format!("{scheme}://{at}"), "--certs-dir", &second]);
        client.open_session().await;
        echo(&mut client, 1, "from afar").await;
        client.finish().await;
    }
    fs::set_permissions(&second, fs::Permissions::from_mode(0o777)).expect("it is ours");
    let mut refused = Mcpwire::start(&["connect", &format!("quic://{at}"), "--certs-dir", &second]);
    assert_eq!(refused.wait().await.code(), Some(1));
    refused.logged("got mode 0777; run `chmod 700").await;
    end(front).await;
}

#[tokio::test]
async fn a_restarted_orchestrator_is_found_again_and_the_client_notices_nothing() {
    let scratch = Scratch::new();
    let certs = scratch.file("certs");
    let (mut first, at) = front(&certs, "127.0.0.1:0").await;
    let mut client = Mcpwire::start(&["connect", &format!("quic://{at}"), "--certs-dir", &certs]);
    client.open_session().await;
    echo(&mut client, 1, "before").await;
    first.signal("KILL");
    first.wait().await;
    let (second, _) = front(&certs, &at.to_string()).await;
    // A list may be asked for twice, and so is never lost.
    client.request(2, "tools/list", json!({})).await;
    let mut said = client.message().await;
    while said.get("method").is_some() {
        said = client.message().await;
    }
    assert!(said["id"] == 2 && said["result"]["tools"].is_array(), "{said}");
    client.close_stdin();
    assert_eq!(client.wait().await.code(), Some(0));
    end(second).await;
}

#[tokio::test]
async fn signals_and_the_end_of_stdin_end_it_at_once() {
    let scratch = Scratch::new();
    let certs = scratch.file("certs");
    let (front, at) = front(&certs, "127.0.0.1:0").await;
    for signal in [None, Some("TERM"), Some("INT")] {
        let mut client = Mcpwire::start(&["connect", &format!("quic://{at}"), "--certs-dir", &certs]);
        client.open_session().await;
        let asked = Instant::now();
        match signal {
            Some(signal) => client.signal(signal),
            None => client.close_stdin(),
        }
        assert_eq!(client.wait().await.code(), Some(0));
        assert!(asked.elapsed().as_secs() < 5, "{signal:?} took {:?}", asked.elapsed());
    }
    end(front).await;
}

#[tokio::test]
async fn two_that_start_at_once_trust_each_other() {
    let scratch = Scratch::new();
    let certs = scratch.file("certs");
    let port = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port();
    let at = format!("127.0.0.1:{port}");
    let mut client = Mcpwire::start(&["connect", &format!("quic://{at}"), "--certs-dir", &certs]);
    let server =
        Mcpwire::start(&["expose", "--quic", &at, "--certs-dir", &certs, "--", MCPWIRE, "reference", "--stdio"]);
    client.open_session().await;
    echo(&mut client, 1, "hi").await;
    client.finish().await;
    end(server).await;
}

#[tokio::test]
async fn certificates_are_shown_made_and_renewed() {
    let scratch = Scratch::new();
    let certs = scratch.file("certs");
    let run = async |args: &[&str]| {
        let mut process = Mcpwire::start(&[&["certs"], args, &["--certs-dir", &certs]].concat());
        let mut lines = Vec::new();
        while let Some(line) = process.line().await {
            lines.push(line);
        }
        (process.wait().await.code(), lines)
    };
    assert_eq!(run(&[]).await, (Some(0), vec![certs.clone()]));
    let (_, made) = run(&["make", "orchestrator", "--host", "mcp.example.com"]).await;
    assert!(
        made[1].contains("ca ") && made[2].contains("orchestrator") && made[2].contains("mcp.example.com"),
        "{made:?}"
    );
    let leaf = || fs::read(scratch.path().join("certs/orchestrator.crt")).expect("a leaf");
    let first = leaf();
    run(&["make", "orchestrator", "--host", "mcp.example.com"]).await;
    assert_eq!(leaf(), first, "a good certificate was made anew");
    let (code, renewed) = run(&["renew"]).await;
    assert!(code == Some(0) && leaf() != first && renewed[2].contains("mcp.example.com"), "{renewed:?}");
    let authority = fs::read(scratch.path().join("certs/ca.crt")).expect("an authority");
    run(&["renew", "--ca"]).await;
    assert_ne!(fs::read(scratch.path().join("certs/ca.crt")).expect("an authority"), authority);
    assert_eq!(run(&["renew", "nobody"]).await.0, Some(1));
    assert_eq!(run(&["make", "../out"]).await.0, Some(1));
}

/// Nothing tells of a port on which nobody listens, so each try takes its time.
#[tokio::test]
async fn an_orchestrator_that_is_not_there_is_waited_for_as_long_as_asked() {
    let scratch = Scratch::new();
    let certs = scratch.file("certs");
    let nobody = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    let at = nobody.local_addr().expect("an address");
    for scheme in ["quic", "quic+mcp"] {
        let (target, wait) = (format!("{scheme}://{at}"), Duration::from_secs(1));
        let mut client = Mcpwire::start(&["connect", &target, "--wait", "1s", "--certs-dir", &certs]);
        let asked = Instant::now();
        client.request(1, "initialize", json!({"protocolVersion": "2025-11-25", "capabilities": {}})).await;
        let answer = client.message().await;
        assert!(answer["error"]["message"].as_str().expect("an error").contains("gave up after 1s"), "{answer}");
        assert!((wait..wait * 2).contains(&asked.elapsed()), "{scheme}: {:?}", asked.elapsed());
        client.finish().await;
        let asked = Instant::now();
        let mut tools = Mcpwire::start(&["tools", &target, "--wait", "1s", "--certs-dir", &certs]);
        assert_eq!(tools.wait().await.code(), Some(1));
        assert!(asked.elapsed() < wait * 2, "{scheme}: {:?}", asked.elapsed());
    }
}

/// Sends a frame as an orchestrator would, and gives the answer.
async fn send(certs: &str, at: SocketAddr, frame: &[u8]) -> Vec<u8> {
    let file = |name: &str| fs::read(format!("{certs}/{name}")).expect("a file");
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&file("ca.crt")).expect("PEM")).expect("an authority");
    let chain = vec![CertificateDer::from_pem_slice(&file("orchestrator.crt")).expect("PEM")];
    let key = PrivateKeyDer::from_pem_slice(&file("orchestrator.key")).expect("PEM");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key)
        .expect("a key that fits");
    tls.alpn_protocols = vec![b"orchestra-plugin".to_vec()];
    let config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).expect("TLS for QUIC")));
    let endpoint = Endpoint::client("127.0.0.1:0".parse().expect("an address")).expect("a socket");
    within("an answer", async {
        let connection = endpoint.connect_with(config, at, "localhost").expect("settings").await.expect("a connection");
        let (mut output, mut input) = connection.open_bi().await.expect("a stream");
        output.write_all(frame).await.expect("it is read");
        output.finish().expect("it is open");
        input.read_to_end(1 << 20).await.expect("an answer")
    })
    .await
}

/// As an orchestrator starts its plugins: with its flags behind everything else.
#[tokio::test]
async fn any_program_becomes_a_plugin_that_registers_and_ends_when_told() {
    let scratch = Scratch::new();
    let certs = scratch.file("certs");
    let (orchestrator, at) = front(&certs, "127.0.0.1:0").await;
    let flags =
        [format!("--orchestrator-addr={at}"), "--listen-addr=localhost:0".into(), format!("--certs-dir={certs}")];
    let args = ["expose", "--plugin", "--plugin-id", "tools.reference", "--", MCPWIRE, "reference", "--stdio"];
    let args: Vec<&str> = args.into_iter().chain(flags.iter().map(String::as_str)).collect();
    let mut plugin = Mcpwire::start(&args);
    plugin.logged("READY ").await;
    let stderr = plugin.stderr();
    let ready = stderr.lines().find_map(|line| line.strip_prefix("READY ")).expect("a line of its own").to_owned();
    let ready: SocketAddr = ready.parse().expect("an IP address and a port");
    plugin.logged("registered with the orchestrator").await;
    // Boot, then Shutdown, each under the id `s`.
    assert_eq!(
        send(&certs, ready, b"\x00\x00\x00\x05\x0a\x01s\x5a\x00").await,
        b"\x00\x00\x00\x07\x0a\x01s\x5a\x02\x08\x01"
    );
    assert_eq!(
        send(&certs, ready, b"\x00\x00\x00\x05\x0a\x01s\x62\x00").await,
        b"\x00\x00\x00\x07\x0a\x01s\x62\x02\x08\x01"
    );
    assert_eq!(plugin.wait().await.code(), Some(0), "{}", plugin.stderr());
    end(orchestrator).await;
}

#[tokio::test]
async fn a_plugin_without_its_orchestrator_says_so_and_its_manifest_needs_none() {
    let scratch = Scratch::new();
    let certs = scratch.file("certs");
    let mut manifest = Mcpwire::start(&["expose", "--plugin-id", "p", "--manifest", "--", "no-such-program"]);
    let said: Value = serde_json::from_str(&manifest.line().await.expect("a line")).expect("JSON");
    assert_eq!((&said["id"], &said["language"]), (&json!("p"), &json!("rust")));
    assert_eq!((manifest.line().await, manifest.wait().await.code()), (None, Some(0)));
    let nobody = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    let at = nobody.local_addr().expect("an address").to_string();
    let mut plugin = Mcpwire::start(&[
        "expose",
        "--plugin",
        "--orchestrator-addr",
        &at,
        "--certs-dir",
        &certs,
        "--",
        MCPWIRE,
        "reference",
        "--stdio",
    ]);
    assert_eq!(plugin.wait().await.code(), Some(1));
    assert!(plugin.stderr().contains("cannot register with the orchestrator"), "{}", plugin.stderr());
}

/// A killed orchestrator has told nobody anything.
#[tokio::test]
async fn a_plugin_does_not_outlive_the_orchestrator_that_started_it() {
    let scratch = Scratch::new();
    let certs = scratch.file("certs");
    let mut parent = Command::new("sh")
        .args(["-c", "\"$@\" & wait", "sh", MCPWIRE, "expose", "--plugin", "--certs-dir", &certs])
        .args(["--", MCPWIRE, "reference", "--stdio"])
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("a shell");
    let mut said = BufReader::new(parent.stderr.take().expect("stderr is piped")).lines();
    let mut ready = None;
    while ready.is_none() {
        let line = within("READY", said.next_line()).await.expect("text").expect("it goes on");
        ready = line.strip_prefix("READY ").map(|at| at.parse::<SocketAddr>().expect("an IP address and a port"));
    }
    let plugin = children(parent.id().expect("it runs"))[0];
    // Boot, which starts the server behind it.
    Mcpwire::start(&["certs", "make", "orchestrator", "--certs-dir", &certs]).wait().await;
    send(&certs, ready.expect("an address"), b"\x00\x00\x00\x05\x0a\x01s\x5a\x00").await;
    let server = children(plugin)[0];
    within("the parent to end", async { parent.kill().await.expect("it runs") }).await;
    until("the plugin and its server to end", || ![plugin, server].into_iter().any(runs)).await;
}
