//! Tools that take their time: waiting, progress in steps, log messages.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use super::{content, tool};
use crate::reference::args::Args;
use crate::reference::call::Call;
use crate::reference::logging::Level;
use crate::reference::reply::Reply;

/// The longest a tool waits, in milliseconds.
const LONGEST: u64 = 3_600_000;
/// How often `slow` reports progress.
const REPORTS: u64 = 10;
const MOST_STEPS: u64 = 100_000;
/// How often `again` has a client come again.
const MOST_ROUNDS: u64 = 100;

pub(super) fn tools() -> Vec<Value> {
    let ms = json!({ "type": "integer", "minimum": 0, "maximum": LONGEST });
    vec![
        tool("slow", "Waits that many milliseconds; may be cancelled; reports progress", json!({ "ms": ms }), &["ms"]),
        tool(
            "progress",
            "Reports progress in steps, that many milliseconds apart",
            json!({ "steps": { "type": "integer", "minimum": 1, "maximum": MOST_STEPS }, "ms": ms }),
            &[],
        ),
        tool(
            "log",
            "Sends one log message",
            json!({
                "level": { "type": "string", "enum": Level::names() },
                "message": { "type": "string" },
                "logger": { "type": "string" },
            }),
            &["level", "message"],
        ),
        tool(
            "again",
            "Has a client of 2026-07-28 come again that often, without a question, before it answers",
            json!({ "times": { "type": "integer", "minimum": 0, "maximum": MOST_ROUNDS } }),
            &[],
        ),
    ]
}

pub(super) async fn slow(call: &Call, args: &Args) -> Reply {
    if args.value("ms").is_none() {
        return Err(args.wrong("a whole number", "ms").into());
    }
    let ms = args.whole("ms", 0..=LONGEST, 0)?;
    let mut waited = 0;
    for report in 1..=REPORTS {
        let until = ms * report / REPORTS;
        sleep(Duration::from_millis(until - waited)).await;
        // A report without a step ahead would break the rule that progress must grow.
        if until > waited {
            call.progress(until, ms, "waiting").await;
        }
        waited = until;
    }
    Ok(content::said(format!("Waited {ms} ms.")))
}

pub(super) async fn progress(call: &Call, args: &Args) -> Reply {
    let steps = args.whole("steps", 1..=MOST_STEPS, 5)?;
    let pause = Duration::from_millis(args.whole("ms", 0..=LONGEST, 0)?);
    for step in 1..=steps {
        if !pause.is_zero() {
            sleep(pause).await;
        }
        call.progress(step, steps, &format!("step {step} of {steps}")).await;
    }
    Ok(content::said(format!("Took {steps} steps.")))
}

pub(super) async fn log(call: &Call, args: &Args) -> Reply {
    let level = Level::read(args, "level")?;
    let message = args.text("message")?;
    let logger = args.optional_text("logger")?.unwrap_or("reference");
    call.log(level, logger, json!(message)).await;
    Ok(content::said(format!("Logged as {}.", level.name())))
}

pub(super) fn again(call: &Call, args: &Args) -> Reply {
    call.again(args.whole("times", 0..=MOST_ROUNDS, 1)?)?;
    Ok(content::said("That was often enough."))
}
