//! Servers of both eras, each of whose connections keeps the era it was opened in: clients are served in their own.

use mcpwire::link::{Event, Port};
use mcpwire_proto::version::V2026_07_28;
use mcpwire_proto::{Message, Packet};

use super::*;

/// A server that asks its user the way of the session era alone, as most tools do, and says in which era it was called.
#[derive(Clone, Default)]
struct Dual {
    /// The methods of each connection, in order.
    seen: Arc<Mutex<Vec<Vec<String>>>>,
}

impl Dual {
    fn spec(&self, name: &str) -> Spec {
        let dual = self.clone();
        let reach = Reach::new(Arc::new(move || {
            let (link, port) = Link::pair();
            let mut seen = dual.seen.lock().unwrap();
            seen.push(Vec::new());
            let number = seen.len() - 1;
            tokio::spawn(dual.clone().serve(number, port));
            Ok((link, None))
        }));
        // On stdio nothing says to which call a question belongs.
        Spec::new(name, reach, Config::default())
    }

    async fn serve(self, number: usize, mut port: Port) {
        let mut session = None;
        let mut asked = None;
        while let Some(packet) = port.rx.recv().await {
            let message: Value = serde_json::from_slice(packet.message.as_bytes()).unwrap();
            let Some(method) = message["method"].as_str() else {
                let text = format!("session: {}", message["result"]["action"].as_str().unwrap());
                let content = json!({ "content": [{ "type": "text", "text": text }] });
                send(&port, &json!({ "jsonrpc": "2.0", "id": asked.take(), "result": content })).await;
                continue;
            };
            self.seen.lock().unwrap()[number].push(method.to_owned());
            let session = *session.get_or_insert(method == "initialize");
            let id = &message["id"];
            if method == "tools/call" && session {
                asked = Some(id.clone());
                let params = json!({ "message": "sure?", "requestedSchema": { "type": "object", "properties": {} } });
                let question = json!({ "jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params });
                send(&port, &question).await;
            } else if !id.is_null() {
                let mut answer = answer(method, session);
                answer["jsonrpc"] = json!("2.0");
                answer["id"] = id.clone();
                send(&port, &answer).await;
            }
        }
    }

    fn connections(&self) -> Vec<Vec<String>> {
        self.seen.lock().unwrap().clone()
    }
}

fn answer(method: &str, session: bool) -> Value {
    let capabilities = json!({ "tools": {} });
    let info = json!({ "name": "dual", "version": "1" });
    let mut result = match (method, session) {
        ("initialize", true) => {
            json!({ "protocolVersion": V2025_11_25, "capabilities": capabilities, "serverInfo": info })
        }
        ("server/discover", false) => {
            json!({ "supportedVersions": [V2026_07_28, V2025_11_25], "capabilities": capabilities })
        }
        ("tools/list", _) => json!({ "tools": [{ "name": "ask", "inputSchema": { "type": "object" } }] }),
        ("tools/call", false) => json!({ "content": [{ "type": "text", "text": "stateless" }] }),
        _ => return json!({ "error": { "code": -32601, "message": "no such method" } }),
    };
    if !session {
        result["resultType"] = json!("complete");
        result["ttlMs"] = json!(0);
        result["cacheScope"] = json!("private");
    }
    json!({ "result": result })
}

async fn send(port: &Port, message: &Value) {
    let message = Message::parse(message.to_string().into()).unwrap();
    let _ = port.tx.send(Event::Packet(Packet::from(message))).await;
}

async fn call(client: &mut Client, tool: &str) -> String {
    let id = client.start(tool, json!({})).await;
    let question = client.expect("elicitation/create").await;
    client.answer(&question, json!({ "action": "accept", "content": {} })).await;
    client.said(id).await
}

#[tokio::test]
async fn a_server_of_both_eras_is_spoken_to_in_the_era_of_the_client() {
    let dual = Dual::default();
    let rig = Rig::new(vec![dual.spec("dual")]);
    let mut old = rig.session().await;
    assert_eq!(names(&mut old, "tools/list", "tools", "name").await, ["dual__ask"]);
    assert_eq!(call(&mut old, "dual__ask").await, "session: accept");
    assert_eq!(call(&mut old, "dual__ask").await, "session: accept", "and again, on the same connection");
    assert_eq!(dual.connections().len(), 1, "the hub asks for lists in the client's name: {:?}", dual.connections());

    let mut new = rig.stateless();
    assert_eq!(new.call("dual__ask", json!({})).await, "stateless");
    assert_eq!(call(&mut old, "dual__ask").await, "session: accept");
    assert_eq!(new.call("dual__ask", json!({})).await, "stateless");
    let connections = dual.connections();
    assert_eq!(connections.len(), 2, "one for each era: {connections:?}");
    for methods in connections {
        let opened = methods.iter().any(|method| method == "initialize");
        let discovered = methods.iter().any(|method| method == "server/discover");
        assert!(opened != discovered, "a connection stays in its era: {methods:?}");
    }
    old.close().await;
    new.close().await;
    rig.end().await;
}

#[tokio::test]
async fn a_session_era_client_that_comes_second_gets_a_session_as_well() {
    let dual = Dual::default();
    let rig = Rig::new(vec![dual.spec("a"), dual.spec("b")]);
    let mut new = rig.stateless();
    assert_eq!(new.call("a__ask", json!({})).await, "stateless");
    let mut old = rig.session().await;
    for tool in ["a__ask", "b__ask"] {
        assert_eq!(call(&mut old, tool).await, "session: accept");
        assert_eq!(new.call(tool, json!({})).await, "stateless");
    }
    old.close().await;
    new.close().await;
    rig.end().await;
}
