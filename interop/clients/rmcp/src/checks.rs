//! What is tried with every server.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use futures::future::{BoxFuture, try_join, try_join_all};
use rmcp::ServiceError;
use rmcp::model::{
    ErrorCode, GetPromptRequestParams, ReadResourceRequestParams, ServerNotification, SubscribeRequestParams,
    SubscriptionFilter, UnsubscribeRequestParams,
};
use serde_json::{Value, json};

use crate::handler::ROOT;
use crate::{Args, Connection};

pub struct Check {
    pub name: &'static str,
    pub applies: fn(&Args) -> bool,
    /// server-everything asks whoever has roots for them soon after a session began: in the middle of whatever is called.
    pub offers_roots: bool,
    pub run: for<'a> fn(&'a mut Connection) -> BoxFuture<'a, Result<()>>,
}

macro_rules! check {
    ($name:literal, $run:ident $(, $field:ident: $value:expr)?) => {
        Check { $($field: $value,)? ..Check { name: $name, applies: |_| true, offers_roots: true, run: |c| Box::pin($run(c)) } }
    };
}

pub const CHECKS: &[Check] = &[
    check!("the version is the client's", its_version),
    check!("list and read", list_and_read),
    check!("call a tool", call_a_tool),
    check!("error", error),
    check!("many at once", many_at_once),
    check!("progress", progress, offers_roots: false),
    check!("elicitation", elicitation),
    check!("two elicitations at once", two_elicitations),
    check!("sampling", sampling),
    check!("roots", roots),
    check!("subscription", subscription),
    check!("list changed", list_changed, applies: |args| !args.server.starts_with("everything")),
    check!("cancel", cancel),
];

/// What a tool, prompt or resource is called at the servers of the suite, and at those like server-everything.
fn name(c: &Connection, of_the_suite: &'static str, of_everything: &'static str) -> &'static str {
    match &*c.kind {
        "everything" | "python" => of_everything,
        _ => of_the_suite,
    }
}

async fn its_version(c: &mut Connection) -> Result<()> {
    let info = c.client.peer_info().context("the server told nothing of itself")?;
    let version = info.protocol_version.to_string();
    let expected = if c.old { "2025-11-25" } else { "2026-07-28" };
    ensure!(version == expected, "{version}");
    Ok(())
}

async fn list_and_read(c: &mut Connection) -> Result<()> {
    let prompt = name(c, "test_simple_prompt", "simple-prompt");
    ensure!(c.client.list_all_tools().await?.iter().any(|tool| tool.name == "echo"), "no echo in the list");
    ensure!(c.client.list_all_prompts().await?.iter().any(|found| found.name == prompt), "no prompt");
    ensure!(!c.client.get_prompt(GetPromptRequestParams::new(prompt)).await?.messages.is_empty(), "no message");
    let resources = c.client.list_all_resources().await?;
    let uri = resources.first().context("no resource")?.uri.clone();
    let read = c.client.read_resource(ReadResourceRequestParams::new(uri.clone())).await?;
    let read = serde_json::to_value(read)?;
    ensure!(read["contents"][0]["uri"] == uri, "{read}");
    Ok(())
}

async fn call_a_tool(c: &mut Connection) -> Result<()> {
    c.echo("grüße, 世界 \u{2028} \n").await
}

async fn error(c: &mut Connection) -> Result<()> {
    match c.client.get_prompt(GetPromptRequestParams::new("no-such-prompt")).await {
        Err(ServiceError::McpError(error)) if error.code == ErrorCode::INVALID_PARAMS => Ok(()),
        other => bail!("{other:?}"),
    }
}

async fn many_at_once(c: &mut Connection) -> Result<()> {
    let texts: Vec<String> = (0..8).map(|i| format!("text {i}")).collect();
    try_join_all(texts.iter().map(|text| c.echo(text))).await?;
    Ok(())
}

async fn progress(c: &mut Connection) -> Result<()> {
    let tool = name(c, "test_tool_with_progress", "trigger-long-running-operation");
    let steps = name(c, "[0.0, 50.0, 100.0]", "[1.0, 2.0, 3.0]");
    let arguments = if tool.starts_with("trigger") { json!({ "duration": 0.3, "steps": 3 }) } else { json!({}) };
    c.call(tool, arguments).await?;
    // The SDK hands notifications to tasks of their own.
    c.heard.until(steps, |notes| format!("{:?}", notes.progress) == steps).await
}

async fn elicit(c: &Connection) -> Result<()> {
    let tool = name(c, "test_elicitation", "trigger-elicitation-request");
    let arguments = if tool.starts_with("trigger") { json!({}) } else { json!({ "message": "Who are you?" }) };
    let answer = c.call(tool, arguments).await?;
    ensure!(answer.contains("elicited-4711"), "{answer}");
    Ok(())
}

async fn elicitation(c: &mut Connection) -> Result<()> {
    elicit(c).await?;
    ensure!(c.heard.notes().elicitations == 1, "asked more than once");
    Ok(())
}

async fn two_elicitations(c: &mut Connection) -> Result<()> {
    try_join(elicit(c), elicit(c)).await?;
    ensure!(c.heard.notes().elicitations == 2, "asked too often");
    Ok(())
}

async fn sampling(c: &mut Connection) -> Result<()> {
    let tool = name(c, "test_sampling", "trigger-sampling-request");
    let answer = c.call(tool, json!({ "prompt": "prompt-0815", "maxTokens": 10 })).await?;
    ensure!(answer.contains("sampled-4711"), "{answer}");
    ensure!(c.heard.notes().sampled.contains("prompt-0815"), "the prompt did not come");
    Ok(())
}

async fn roots(c: &mut Connection) -> Result<()> {
    let answer = c.call(name(c, "test_input_required_result_list_roots", "get-roots-list"), json!({})).await?;
    let expected = if c.kind == "ts2" { "root" } else { ROOT };
    ensure!(answer.contains(expected), "{answer}");
    Ok(())
}

async fn subscription(c: &mut Connection) -> Result<()> {
    let uri = name(c, "test://watched-resource", "demo://resource/dynamic/text/1");
    if c.old {
        c.client.subscribe(SubscribeRequestParams::new(uri)).await?;
        touch(c).await?;
        c.heard.until(uri, |notes| notes.updated.first().is_some_and(|updated| updated == uri)).await?;
        c.client.unsubscribe(UnsubscribeRequestParams::new(uri)).await?;
    } else {
        let filter = SubscriptionFilter::builder().resource_subscription(uri).build();
        let mut listen = c.client.listen(filter).await?;
        touch(c).await?;
        match listen.next().await? {
            Some(ServerNotification::ResourceUpdatedNotification(updated)) if updated.params.uri == uri => {}
            other => bail!("{other:?}"),
        }
        listen.cancel().await?;
    }
    c.echo("after").await
}

/// Clients without a session share those that the bridge has: another may have started the updates, and this stops them.
async fn touch(c: &Connection) -> Result<()> {
    let tool = name(c, "touch", "toggle-subscriber-updates");
    if c.call(tool, Value::Null).await?.contains("Stopped") {
        c.call(tool, Value::Null).await?;
    }
    Ok(())
}

async fn list_changed(c: &mut Connection) -> Result<()> {
    let tool = name(c, "test_trigger_tool_change", "change-the-tools");
    if c.old {
        c.call(tool, json!({})).await?;
        return c.heard.until("a change of the tools", |notes| notes.tools_changed > 0).await;
    }
    let mut listen = c.client.listen(SubscriptionFilter::builder().tools_list_changed().build()).await?;
    c.call(tool, json!({})).await?;
    match listen.next().await? {
        Some(ServerNotification::ToolListChangedNotification(_)) => Ok(listen.cancel().await?),
        other => bail!("{other:?}"),
    }
}

async fn cancel(c: &mut Connection) -> Result<()> {
    let (tool, arguments) = match &*c.kind {
        "reference" => ("slow", json!({ "ms": 5000 })),
        "ts2" => ("slow", json!({})),
        _ => ("trigger-long-running-operation", json!({ "duration": 5, "steps": 50 })),
    };
    let called = tokio::time::timeout(Duration::from_millis(500), c.call(tool, arguments)).await;
    ensure!(called.is_err(), "it was faster than the limit");
    c.echo("still here").await
}
