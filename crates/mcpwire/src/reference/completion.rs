//! Completion of prompt arguments and of the template's id.

use mcpwire_proto::Fault;
use serde_json::json;

use super::args::{Args, excerpt};
use super::reply::Reply;
use super::{prompts, resources};

/// The specification's limit on the values of one answer.
const MOST_VALUES: usize = 100;
/// How many ids the template suggests: more than fit one answer, so that `hasMore` is seen.
const IDS: u32 = 150;

pub(super) fn complete(params: &Args) -> Reply {
    if params.value("ref").is_none() {
        return Err(params.wrong("an object", "ref").into());
    }
    let subject = params.object("ref")?;
    let argument = params.object("argument")?;
    let (name, value) = (argument.text("name")?, argument.text("value")?);
    let known = match subject.text("type")? {
        "ref/prompt" => of_prompt(subject.text("name")?, name)?,
        "ref/resource" => of_template(subject.text("uri")?, name)?,
        _ => return Err(subject.wrong("ref/prompt or ref/resource", "type").into()),
    };
    let fitting: Vec<String> = known.into_iter().filter(|known| known.starts_with(value)).collect();
    let (total, more) = (fitting.len(), fitting.len() > MOST_VALUES);
    let values: Vec<String> = fitting.into_iter().take(MOST_VALUES).collect();
    Ok(json!({ "completion": { "values": values, "total": total, "hasMore": more } }))
}

fn of_prompt(prompt: &str, argument: &str) -> Result<Vec<String>, Fault> {
    let values: &[&str] = match (prompt, argument) {
        (prompts::WITH_ARGUMENTS, "arg1") => &["testValue1", "testing", "paris", "park", "party"],
        (prompts::WITH_ARGUMENTS, "arg2") => &["testValue2", "london", "lisbon"],
        (prompts::WITH_RESOURCE, "resourceUri") => &[resources::STATIC_TEXT, resources::WATCHED],
        (name, _) if prompts::exists(name) => &[],
        _ => return Err(Fault::Params(format!("expected the name of a prompt, came {:?}", excerpt(prompt)))),
    };
    Ok(values.iter().map(|value| (*value).to_owned()).collect())
}

fn of_template(uri: &str, argument: &str) -> Result<Vec<String>, Fault> {
    match (uri, argument) {
        (resources::TEMPLATE, "id") => Ok((1..=IDS).map(|id| id.to_string()).collect()),
        (resources::TEMPLATE, _) => Ok(Vec::new()),
        _ => Err(Fault::Params(format!("expected the URI of a template, came {:?}", excerpt(uri)))),
    }
}
