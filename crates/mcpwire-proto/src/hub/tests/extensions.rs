//! A hub of several servers offers the extensions whose methods it can route.

use super::*;

/// Servers with these capabilities, and a client.
fn hub(capabilities: &[Value]) -> (Rig, Vec<Server>, Client) {
    let names = ["a", "b", "c", "d"];
    let (mut rig, servers) = Rig::new(names.iter().take(capabilities.len()).map(|name| spec(name)).collect());
    rig.pass(ms(250));
    for (server, capabilities) in servers.iter().zip(capabilities) {
        rig.offer(*server, capabilities, &[]);
    }
    let client = rig.join(1);
    (rig, servers, client)
}

fn offered(rig: &mut Rig, client: Client) -> Value {
    rig.asks(client, 77, method::DISCOVER, "");
    rig.got_json(client)["result"]["capabilities"].clone()
}

fn goes_to(rig: &mut Rig, client: Client, method: &str, server: Server) {
    rig.asks(client, 1, method, r#""any":"thing""#);
    let asked = rig.asked(server, method);
    rig.answers(server, &asked, &json!({ "by": server.0 }));
    assert_eq!(rig.got_json(client)["result"]["by"], server.0, "{method}");
}

fn is_unknown(rig: &mut Rig, client: Client, method: &str) {
    rig.asks(client, 2, method, "");
    assert_eq!(rig.got_json(client)["error"]["code"], -32601, "{method}");
}

fn skills() -> Value {
    json!({ "extensions": { "io.modelcontextprotocol/skills": { "n": 1.5 } } })
}

#[test]
fn skills_of_one_server_are_offered_and_routed_and_those_of_two_are_neither() {
    let (mut rig, servers, client) = hub(&[json!({}), skills()]);
    assert_eq!(offered(&mut rig, client)["extensions"], skills()["extensions"]);
    for method in ["skills/list", "skills/get", "resources/directory/read"] {
        goes_to(&mut rig, client, method, servers[1]);
    }
    is_unknown(&mut rig, client, "no/such");
    let (mut rig, _, client) = hub(&[skills(), skills()]);
    assert!(offered(&mut rig, client).get("extensions").is_none());
    is_unknown(&mut rig, client, "skills/list");
}

#[test]
fn methods_of_an_extension_nobody_knows_go_to_the_only_server_that_declares_one() {
    let other = json!({ "extensions": { "com.example/x": {}, "io.modelcontextprotocol/ui": { "m": [] } } });
    let (mut rig, servers, client) = hub(&[skills(), other, json!({ "experimental": {} })]);
    let told = offered(&mut rig, client);
    let names: Vec<&String> = told["extensions"].as_object().expect("extensions").keys().collect();
    assert_eq!(names, ["com.example/x", "io.modelcontextprotocol/skills", "io.modelcontextprotocol/ui"]);
    goes_to(&mut rig, client, "x/list", servers[1]);
    goes_to(&mut rig, client, "skills/list", servers[0]);
    // Whose a method is cannot be known once two servers have such extensions.
    let (mut rig, _, client) = hub(&[
        json!({ "extensions": { "com.example/x": {} } }),
        json!({ "experimental": { "y": {} }, "extensions": { "io.modelcontextprotocol/ui": {} } }),
    ]);
    let told = offered(&mut rig, client);
    assert_eq!(told["extensions"], json!({ "io.modelcontextprotocol/ui": {} }));
    assert!(told.get("experimental").is_none());
    is_unknown(&mut rig, client, "x/list");
}

#[test]
fn tasks_are_offered_by_a_single_server_only() {
    let tasks = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let (mut rig, servers, client) = hub(std::slice::from_ref(&tasks));
    assert_eq!(offered(&mut rig, client)["extensions"], tasks["extensions"]);
    goes_to(&mut rig, client, "tasks/get", servers[0]);
    let (mut rig, _, client) = hub(&[tasks, json!({ "extensions": { "com.example/x": {} } })]);
    assert_eq!(offered(&mut rig, client)["extensions"], json!({ "com.example/x": {} }));
    is_unknown(&mut rig, client, "tasks/get");
}

#[test]
fn a_method_nobody_knows_waits_for_servers_that_are_not_known_yet() {
    let (mut rig, servers) = Rig::new(vec![spec("a"), spec("b")]);
    let client = rig.join(1);
    rig.asks(client, 1, "skills/list", "");
    rig.offer(servers[0], &json!({}), &[]);
    assert!(rig.next(client).is_none());
    rig.offer(servers[1], &skills(), &[]);
    rig.asked(servers[1], "skills/list");
}
