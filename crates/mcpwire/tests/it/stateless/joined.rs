//! Our client and our front, joined: what comes in at one end comes out at the other.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::time::Duration;

use mcpwire::link::{Event, Link};
use mcpwire::transport::http::client::Transport;
use mcpwire::transport::http::server::{Options, serve};
use mcpwire_proto::{Failure, Id, Lane, Message, Packet, meta};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::{SUBSCRIPTION, call, cancel, connect, event, failure, message, modern, send};
use crate::support::within;

/// A front, and the server's end of its link once there is one.
struct Rig {
    address: SocketAddr,
    links: mpsc::Receiver<Link>,
    stop: oneshot::Sender<()>,
    served: JoinHandle<()>,
}

impl Rig {
    async fn start() -> Rig {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (links_tx, links) = mpsc::channel(4);
        let (stop, stopped) = oneshot::channel();
        let options = Options { grace: Duration::from_millis(50), ..Options::default() };
        let served = tokio::spawn(serve(listener, options, links_tx, async { drop(stopped.await) }));
        Rig { address, links, stop, served }
    }

    fn client(&self) -> Link {
        connect(&format!("http://{}/mcp", self.address), Transport::Auto).0
    }

    async fn server(&mut self) -> Link {
        within("the link", self.links.recv()).await.unwrap()
    }
}

async fn received(server: &mut Link) -> Message {
    match event(server).await {
        Event::Packet(packet) => packet.message,
        other => panic!("unexpected {other:?}"),
    }
}

async fn reply(server: &Link, id: &Id, message: Message) {
    server.tx.send(Packet::new(Lane::Request(id.clone()), message)).await.unwrap();
}

async fn answer(server: &Link, request: &Message, result: Value) {
    let id = request.id().unwrap();
    reply(server, id, Message::result(id, &result.to_string())).await;
}

#[tokio::test]
async fn two_clients_with_equal_ids_and_tokens() {
    let mut rig = Rig::start().await;
    let mut clients = [rig.client(), rig.client()];
    let mut requests = Vec::new();
    let mut server = None;
    for (n, client) in clients.iter().enumerate() {
        let params = json!({"name": "t", "arguments": {"n": n}, "_meta": {"progressToken": 5}});
        send(client, modern(json!(1), "tools/call", params)).await;
        if server.is_none() {
            server = Some(rig.server().await);
        }
        requests.push(received(server.as_mut().unwrap()).await);
    }
    let server = server.unwrap();
    for (n, request) in requests.iter().enumerate().rev() {
        let token = meta::progress_token(request).unwrap();
        let params = format!(r#"{{"progressToken":{token},"progress":{n}}}"#);
        let progress = Message::notification("notifications/progress", Some(&params));
        server.tx.send(Packet::new(Lane::Unsorted, progress)).await.unwrap();
        answer(&server, request, json!({"n": n})).await;
    }
    for (n, client) in clients.iter_mut().enumerate() {
        let told = message(client, &Id::from(1)).await;
        assert_eq!(told["params"], json!({"progressToken": 5, "progress": n}));
        let result = message(client, &Id::from(1)).await;
        assert_eq!((&result["id"], &result["result"]), (&json!(1), &json!({"n": n})));
    }
}

#[tokio::test]
async fn subscriptions_are_kept_apart_cancelled_and_ended() {
    let mut rig = Rig::start().await;
    let mut clients = [rig.client(), rig.client()];
    let listen = modern(json!("listen:0"), "subscriptions/listen", json!({"notifications": {}}));
    let mut server = None;
    let mut ids = Vec::new();
    for client in &mut clients {
        send(client, listen.clone()).await;
        if server.is_none() {
            server = Some(rig.server().await);
        }
        let server = server.as_mut().unwrap();
        let id = received(server).await.id().unwrap().clone();
        let params = format!(r#"{{"_meta":{{"{SUBSCRIPTION}":{id}}},"notifications":{{}}}}"#);
        let acknowledged = Message::notification("notifications/subscriptions/acknowledged", Some(&params));
        reply(server, &id, acknowledged).await;
        let told = message(client, &Id::from("listen:0")).await;
        assert_eq!(told["params"]["_meta"][SUBSCRIPTION], "listen:0");
        ids.push(id);
    }
    let mut server = server.unwrap();
    let [first, mut second] = clients;
    cancel(&first, &Id::from("listen:0")).await;
    let told = received(&mut server).await;
    assert_eq!(meta::cancelled_request(&told).as_ref(), Some(&ids[0]));
    let _ = rig.stop.send(());
    let end = message(&mut second, &Id::from("listen:0")).await;
    assert_eq!(end["result"]["resultType"], "complete");
    assert_eq!(end["result"]["_meta"][SUBSCRIPTION], "listen:0");
    within("the front to end", rig.served).await.unwrap();
}

#[tokio::test]
async fn a_call_is_cancelled_before_and_after_its_stream_has_begun() {
    let mut rig = Rig::start().await;
    let mut client = rig.client();
    send(&client, call(1, json!({}))).await;
    let mut server = rig.server().await;
    received(&mut server).await;
    cancel(&client, &Id::from(1)).await;
    assert_eq!(meta::cancelled_request(&received(&mut server).await), Some(Id::from(1)));
    send(&client, call(2, json!({}))).await;
    let id = received(&mut server).await.id().unwrap().clone();
    reply(&server, &id, Message::notification("notifications/progress", None)).await;
    message(&mut client, &Id::from(2)).await;
    cancel(&client, &Id::from(2)).await;
    assert_eq!(meta::cancelled_request(&received(&mut server).await), Some(id));
}

#[tokio::test]
async fn errors_come_through_as_they_are() {
    let mut rig = Rig::start().await;
    let mut client = rig.client();
    let mut server = None;
    for code in [-32601, -32021, -32602, -7] {
        send(&client, call(1, json!({}))).await;
        if server.is_none() {
            server = Some(rig.server().await);
        }
        let server = server.as_mut().unwrap();
        received(server).await;
        reply(server, &Id::from(1), Message::error(Some(&Id::from(1)), code, "no")).await;
        assert_eq!(message(&mut client, &Id::from(1)).await["error"], json!({"code": code, "message": "no"}));
    }
    // What the front itself refuses.
    send(&client, modern(json!(2), "ping", json!({}))).await;
    assert_eq!(message(&mut client, &Id::from(2)).await["error"]["code"], -32601);
    let unknown = json!({"_meta": {super::VERSION: "2099-01-01"}});
    send(&client, modern(json!(3), "tools/list", unknown)).await;
    let error = message(&mut client, &Id::from(3)).await["error"].clone();
    assert_eq!((&error["code"], &error["data"]["requested"]), (&json!(-32022), &json!("2099-01-01")));
    // A server that ends is told from one that answers.
    send(&client, call(4, json!({}))).await;
    let mut server = server.unwrap();
    received(&mut server).await;
    drop(server);
    assert_eq!(message(&mut client, &Id::from(4)).await["error"]["code"], -32603);
    let _ = rig.stop.send(());
    within("the front to end", rig.served).await.unwrap();
    send(&client, call(5, json!({}))).await;
    assert!(matches!(failure(&mut client).await, Failure::NotConnected(_)));
}

#[tokio::test]
async fn parameters_are_repeated_as_soon_as_both_sides_know_of_them() {
    let mut rig = Rig::start().await;
    let mut client = rig.client();
    send(&client, modern(json!(1), "tools/list", json!({}))).await;
    let mut server = rig.server().await;
    let schema = |header: &str| json!({"properties": {"a": {"type": "string", "x-mcp-header": header}}});
    let list = |header: &str| json!({"tools": [{"name": "t", "inputSchema": schema(header)}]});
    let request = received(&mut server).await;
    answer(&server, &request, list("First")).await;
    message(&mut client, &Id::from(1)).await;
    send(&client, call(2, json!({"a": "ü"}))).await;
    let request = received(&mut server).await;
    answer(&server, &request, json!({})).await;
    message(&mut client, &Id::from(2)).await;

    // Another client has seen a newer list: the front knows of it, and ours finds out by itself.
    let mut other = rig.client();
    send(&other, modern(json!(1), "tools/list", json!({}))).await;
    let request = received(&mut server).await;
    answer(&server, &request, list("Second")).await;
    message(&mut other, &Id::from(1)).await;
    send(&client, call(3, json!({"a": "ü"}))).await;
    let request = received(&mut server).await;
    assert!(request.is("tools/list"), "{request}");
    answer(&server, &request, list("Second")).await;
    let request = received(&mut server).await;
    assert_eq!(request.id(), Some(&Id::from(3)));
    answer(&server, &request, json!({"done": true})).await;
    assert_eq!(message(&mut client, &Id::from(3)).await["result"]["done"], true);
}

#[tokio::test]
async fn ten_megabytes_each_way() {
    let mut rig = Rig::start().await;
    let mut client = rig.client();
    let request = call(1, json!({"a": "x".repeat(10_000_000)}));
    send(&client, request.clone()).await;
    let mut server = rig.server().await;
    let got = received(&mut server).await;
    assert!(got.as_bytes() == request.as_bytes());
    reply(&server, &Id::from(1), Message::notification("notifications/progress", None)).await;
    answer(&server, &got, json!({"a": "y".repeat(10_000_000)})).await;
    message(&mut client, &Id::from(1)).await;
    assert_eq!(message(&mut client, &Id::from(1)).await["result"]["a"].as_str().unwrap().len(), 10_000_000);
}

#[tokio::test]
async fn two_hundred_in_flight() {
    const MANY: u64 = 200;
    let mut rig = Rig::start().await;
    let mut client = rig.client();
    for id in 0..MANY {
        send(&client, call(id, json!({"id": id}))).await;
    }
    let mut server = rig.server().await;
    let mut requests = Vec::new();
    for _ in 0..MANY {
        requests.push(received(&mut server).await);
    }
    for request in requests.iter().rev() {
        answer(&server, request, json!({"id": request.id().unwrap().as_json()})).await;
    }
    let mut answered = HashSet::new();
    for _ in 0..MANY {
        let Event::Packet(packet) = event(&mut client).await else { panic!("no packet") };
        let id = packet.message.id().unwrap().clone();
        assert_eq!(packet.message.payload(), Some(json!({"id": id.as_json()}).to_string().as_str()));
        assert!(answered.insert(id));
    }
    assert_eq!(answered.len(), 200);
}
