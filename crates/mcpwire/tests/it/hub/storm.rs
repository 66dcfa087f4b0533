//! Many clients call while programs are killed at random.

use super::*;
use crate::support::proc;

const CLIENTS: usize = 12;
const ROUNDS: usize = 60;

#[tokio::test]
async fn every_call_is_answered_by_its_server_while_servers_die() {
    let rig = Rig::new(vec![program("a", "session"), program("b", "stateless"), program("c", "both")]);
    let mut clients = Vec::new();
    for n in 0..CLIENTS {
        let mut client = if n % 3 == 0 { rig.session().await } else { rig.stateless() };
        clients.push(tokio::spawn(async move {
            let (mut fine, mut lost) = (0, 0);
            for round in 0..ROUNDS {
                let message = format!("{n}/{round}");
                let server = ["a", "b", "c"][(n + round) % 3];
                let id = client.start(&format!("{server}__echo"), json!({ "message": message })).await;
                let answer = client.take("an answer", |told| told["id"] == id).await;
                match answer["result"]["content"][0]["text"].as_str() {
                    Some(text) => {
                        assert_eq!(text, message);
                        fine += 1;
                    }
                    None => {
                        let text = answer["error"]["message"].as_str().unwrap();
                        assert!(text.contains(&format!("MCP server not connected: {server}")), "{answer}");
                        lost += 1;
                    }
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            (fine, lost)
        }));
    }
    let mut killer = rig.stateless();
    for round in 0..6 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let server = ["a", "b", "c"][round % 3];
        let id = killer.start(&format!("{server}__info"), json!({})).await;
        let told = killer.take("an answer", |told| told["id"] == id).await;
        let info =
            told["result"]["content"][0]["text"].as_str().map(|text| serde_json::from_str::<Value>(text).unwrap());
        if let Some(pid) = info.and_then(|info| info["process"].as_u64()) {
            proc::kill(u32::try_from(pid).unwrap());
        }
    }
    drop(killer);
    let mut sum = (0, 0);
    for client in clients {
        let (fine, lost) = client.await.unwrap();
        sum = (sum.0 + fine, sum.1 + lost);
    }
    assert_eq!(sum.0 + sum.1, CLIENTS * ROUNDS);
    assert!(sum.0 > CLIENTS * ROUNDS / 2, "{sum:?}");
    rig.end().await;
}
