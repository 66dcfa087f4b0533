//! Requests and their answers: order, deadlines, withdrawal, progress.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mcpwire::client::{Cancel, Error, Options, RequestOptions};
use serde_json::json;

use super::{Ear, Program};
use crate::support::within;

#[tokio::test]
async fn answers_may_come_in_any_order_and_unknown_ones_are_ignored() {
    let mut program = Program::new();
    let client = program.connected(Options::default()).await;
    let calls: Vec<_> = (0..10)
        .map(|n| {
            let client = client.clone();
            tokio::spawn(async move { client.request("x", json!({"n": n}), RequestOptions::default()).await })
        })
        .collect();
    let mut asked = Vec::new();
    for _ in 0..10 {
        asked.push(program.expect("x").await);
    }
    let mut ids: Vec<String> = asked.iter().map(|request| request["id"].to_string()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 10, "ids are unique");
    for request in asked.iter().rev() {
        let id = request["id"].as_u64().unwrap();
        // Ids that nobody uses, and ours as another type.
        for odd in
            [json!(9999), json!("nobody"), json!(id.to_string()), json!(id as f64 + 0.5), json!(null), json!([id])]
        {
            program.say(&json!({"jsonrpc": "2.0", "id": odd, "result": {"n": "wrong"}}).to_string()).await;
        }
        program.answer(request, json!({"n": request["params"]["n"]})).await;
        // The second answer to the same request.
        program.answer(request, json!({"n": "twice"})).await;
    }
    for (n, call) in calls.into_iter().enumerate() {
        assert_eq!(call.await.unwrap().unwrap().raw(), json!({"n": n}).to_string());
    }
    client.close().await;
}

#[tokio::test]
async fn notifications_reach_the_handler_in_order() {
    let mut program = Program::new();
    let ear = Arc::new(Ear::default());
    let client = program.connected(Options { handler: ear.clone(), ..Options::default() }).await;
    for n in 0..3 {
        program.say(&json!({"jsonrpc": "2.0", "method": "notifications/n", "params": {"n": n}}).to_string()).await;
    }
    program.say(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#).await;
    ear.hears("list_changed").await;
    assert_eq!(
        ear.heard(),
        [
            r#"notifications/n {"n":0}"#,
            r#"notifications/n {"n":1}"#,
            r#"notifications/n {"n":2}"#,
            "notifications/tools/list_changed none"
        ]
    );
    client.close().await;
}

#[tokio::test]
async fn a_timeout_says_how_long_it_was_and_tells_the_server() {
    let mut program = Program::new();
    let client = program.connected(Options { timeout: Duration::from_millis(150), ..Options::default() }).await;
    for (options, text, least) in [
        (RequestOptions::default(), "Request timeout after 150ms", 150),
        (RequestOptions::within(Duration::from_millis(60)), "Request timeout after 60ms", 60),
    ] {
        let started = Instant::now();
        let error = client.request("x", (), options).await.unwrap_err();
        assert_eq!(error.to_string(), text);
        assert!(started.elapsed() >= Duration::from_millis(least), "{:?}", started.elapsed());
        let request = program.expect("x").await;
        assert_eq!(request["params"], json!({}), "params are always sent");
        let cancelled = program.expect("notifications/cancelled").await;
        assert_eq!(cancelled["params"], json!({"requestId": request["id"], "reason": "timed out"}));
        // Too late.
        program.answer(&request, json!({})).await;
    }
    let serve = async {
        let ping = program.expect("ping").await;
        program.answer(&ping, json!({})).await;
    };
    tokio::join!(client.ping(), serve).0.unwrap();
    client.close().await;
}

#[tokio::test]
async fn a_request_is_withdrawn_before_and_while_it_is_under_way() {
    let mut program = Program::new();
    let client = program.connected(Options::default()).await;
    let cancel = Cancel::new();
    let options = RequestOptions::default().cancelled_by(&cancel);
    let asking = tokio::spawn({
        let (client, options) = (client.clone(), options.clone());
        async move { client.request("during", (), options).await }
    });
    let request = program.expect("during").await;
    cancel.cancel_because("the user went home");
    let error = asking.await.unwrap().unwrap_err();
    assert!(matches!(&error, Error::Aborted(reason) if reason == "the user went home"), "{error:?}");
    let cancelled = program.expect("notifications/cancelled").await;
    assert_eq!(cancelled["params"], json!({"requestId": request["id"], "reason": "the user went home"}));

    assert_eq!(client.request("before", (), options).await.unwrap_err().to_string(), "the user went home");
    let plain = Cancel::new();
    plain.cancel();
    let before = client.request("before", (), RequestOptions::default().cancelled_by(&plain)).await;
    assert_eq!(before.unwrap_err().to_string(), "Aborted");

    // Dropping the future is withdrawing it, too.
    let asking = tokio::spawn({
        let client = client.clone();
        async move { client.request("dropped", (), RequestOptions::default()).await }
    });
    let dropped = program.expect("dropped").await;
    asking.abort();
    let cancelled = program.expect("notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], dropped["id"]);
    client.close().await;
}

#[tokio::test]
async fn progress_is_told_and_starts_the_clock_anew_if_asked() {
    let mut program = Program::new();
    let client = program.connected(Options::default()).await;
    let told = Arc::new(Mutex::new(Vec::new()));
    let note = Arc::clone(&told);
    let mut options = RequestOptions::within(Duration::from_millis(1000))
        .on_progress(move |progress| note.lock().unwrap().push((progress.progress, progress.total)));
    options.reset_on_progress = true;
    let serve = async {
        let request = program.expect("x").await;
        let token = &request["params"]["_meta"]["progressToken"];
        assert_eq!(request["params"]["a"], 1);
        for n in 1..=4 {
            tokio::time::sleep(Duration::from_millis(400)).await;
            let params = json!({"progressToken": token, "progress": n, "total": 4});
            program
                .say(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}).to_string())
                .await;
        }
        program.answer(&request, json!({})).await;
    };
    let (answer, ()) = tokio::join!(client.request("x", json!({"a": 1}), options), serve);
    answer.unwrap();
    assert_eq!(*told.lock().unwrap(), [1.0, 2.0, 3.0, 4.0].map(|n| (n, Some(4.0))));

    // Otherwise the clock runs on.
    let (answer, ()) = tokio::join!(
        client.request("x", (), RequestOptions::within(Duration::from_millis(300)).on_progress(|_| {})),
        async {
            let request = program.expect("x").await;
            let params = json!({"progressToken": request["params"]["_meta"]["progressToken"], "progress": 1});
            let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
            program.say(&progress.to_string()).await;
            program.expect("notifications/cancelled").await;
        }
    );
    assert_eq!(answer.unwrap_err().to_string(), "Request timeout after 300ms");
    client.close().await;
}

#[tokio::test]
async fn an_error_of_the_server_is_told_as_it_is() {
    let mut program = Program::new();
    let client = program.connected(Options::default()).await;
    let serve = async {
        let request = program.expect("x").await;
        let error = json!({"code": -32601, "message": "Method not found", "data": {"why": 1.5}});
        program.say(&json!({"jsonrpc": "2.0", "id": request["id"], "error": error}).to_string()).await;
    };
    let (answer, ()) = tokio::join!(client.request("x", (), RequestOptions::default()), serve);
    let error = answer.unwrap_err();
    assert_eq!((error.to_string().as_str(), error.code()), ("MCP error -32601: Method not found", Some(-32601)));
    let Error::Rpc(error) = error else { panic!("{error:?}") };
    assert_eq!(error.data.unwrap().get(), r#"{"why":1.5}"#);
    client.close().await;
}

#[tokio::test]
async fn params_that_are_no_object_are_refused_here() {
    let mut program = Program::new();
    let client = program.connected(Options::default()).await;
    for params in [json!(1), json!("x"), json!([1])] {
        let error = client.request("x", &params, RequestOptions::default()).await.unwrap_err();
        assert_eq!(error.to_string(), format!("expected an object as params, came {params}"));
    }
    within("the end", client.close()).await;
}
