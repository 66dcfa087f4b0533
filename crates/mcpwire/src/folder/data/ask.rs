//! Questions: recognised, routed to the agent they are for, and answered with a summary, data and Markdown.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::category::Category;
use super::classify::{Intent, Verdict, classify};
use super::insight::insight;
use super::relations::{relations, title};
use super::search::{Search, query};
use super::tools::{ToolFault, excerpt};
use crate::folder::catalog::Catalog;

/// How many records are told in words.
const MOST_TOLD: usize = 20;

/// A question as it came.
#[derive(Debug)]
pub(super) struct Question<'a> {
    pub(super) text: &'a str,
    pub(super) topic: Option<&'a str>,
    pub(super) criteria: Map<String, Value>,
    pub(super) limit: Option<usize>,
}

/// What an agent has to say.
struct Said {
    summary: String,
    rationale: String,
    payload: Value,
    markdown: String,
}

pub(super) fn ask(catalog: &Catalog, question: &Question<'_>) -> Result<Value, ToolFault> {
    let topic = question.topic.map(str::trim).filter(|topic| !topic.is_empty());
    let category = match topic {
        Some(topic) => catalog.category(topic),
        None => mentioned(catalog, question.text),
    };
    let verdict = classify(question.text, category.map(|category| &**category));
    let intent = verdict.intent;
    if question.text.trim().is_empty() {
        return Ok(clarification(catalog, &verdict, "Empty question"));
    }
    let Some(category) = category else {
        return Ok(match topic {
            Some(topic) => unknown(catalog, intent, topic),
            None if intent == Intent::Clarification => clarification(catalog, &verdict, "No known signals"),
            None => clarification(catalog, &verdict, "Missing topic"),
        });
    };
    let said = match intent {
        Intent::Metadata => metadata(category)?,
        Intent::Records => records(catalog, category, question)?,
        Intent::Insight => exploration(catalog, category)?,
        Intent::Clarification => return Ok(clarification(catalog, &verdict, "No known signals")),
    };
    let rationale = match verdict.matched.is_empty() {
        true => said.rationale,
        false => format!("{} (signals: {})", said.rationale, verdict.matched.join("; ")),
    };
    Ok(answer(intent, intent.agent(), &said.summary, &rationale, said.payload, &said.markdown))
}

fn answer(intent: Intent, agent: &str, summary: &str, rationale: &str, payload: Value, markdown: &str) -> Value {
    json!({
        "intent": intent.name(), "agent": agent, "summary": summary, "rationale": rationale, "payload": payload,
        "markdown": markdown,
    })
}

/// The category that a question names; of several the first.
fn mentioned<'a>(catalog: &'a Catalog, question: &str) -> Option<&'a Arc<Category>> {
    let text = spaced(question);
    let place = |category: &Category| category.names().filter_map(|name| text.find(&spaced(name))).min();
    let named = catalog.data.iter().filter_map(|category| Some((place(category)?, category)));
    named.min_by_key(|(place, _)| *place).map(|(_, category)| category)
}

/// The words of a text, each between spaces, so that a part of it is found only as whole words.
fn spaced(text: &str) -> String {
    let lower = text.to_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    format!(" {} ", words.join(" "))
}

fn clarification(catalog: &Catalog, verdict: &Verdict, why: &str) -> Value {
    let topics: Vec<&str> = catalog.data.iter().map(|category| category.id.as_str()).collect();
    let markdown = format!(
        "**More is needed to answer this: {}.**\n\nName one of the topics {} and say what you want of it, for example:\n{}",
        why.to_lowercase(),
        topics.join(", "),
        bullets(&verdict.missing)
    );
    let payload = json!({ "missingSignals": verdict.missing, "topics": topics });
    answer(Intent::Clarification, Intent::Clarification.agent(), why, why, payload, &markdown)
}

fn unknown(catalog: &Catalog, intent: Intent, topic: &str) -> Value {
    let topics: Vec<&str> = catalog.data.iter().map(|category| category.id.as_str()).collect();
    let summary = format!("Unknown category: {}", excerpt(topic));
    let markdown = format!("**{summary}**\n\nKnown are: {}.", topics.join(", "));
    answer(intent, "orchestrator", &summary, "Category not recognised", json!({ "topics": topics }), &markdown)
}

fn metadata(category: &Category) -> Result<Said, ToolFault> {
    let count = category.records().map_err(ToolFault::Failed)?.len();
    let summary = format!("{} snapshot with {count} records", category.name());
    let payload: Value = serde_json::from_str(&super::tools::describe(category))
        .map_err(|_| ToolFault::Failed("the description cannot be read".into()))?;
    let purpose =
        category.about.description.as_deref().or(category.about.config.purpose.as_deref()).unwrap_or_default();
    let links: Vec<String> = category
        .relationships
        .iter()
        .map(|link| format!("{}: {} → {}.{}", link.key, link.source_field, link.target_category, link.target_field))
        .collect();
    let markdown = format!("### {summary}\n\n{purpose}\n\nRelationships:\n{}", bullets(&links));
    let mut payload = payload;
    payload["recordCount"] = json!(count);
    Ok(Said { summary, rationale: "The question is about the shape of the data".into(), payload, markdown })
}

fn records(catalog: &Catalog, category: &Category, question: &Question<'_>) -> Result<Said, ToolFault> {
    let found = query(category, &question.criteria, &Search { limit: question.limit, ..Search::default() })?;
    let summary = format!("Returned {} records from {}", found.total, category.name());
    let relations = relations(catalog, category);
    let (mut listed, mut lines, mut links) = (Vec::new(), Vec::new(), Vec::new());
    for at in &found.numbers {
        let record = found.records.record(*at as usize);
        if lines.len() < MOST_TOLD {
            lines.push(title(&record));
            links.extend(relations.iter().filter_map(|relation| relation.narrative(&record)));
        }
        listed.push(Value::Object(record));
    }
    if found.total > lines.len() {
        lines.push(format!("… and {} more", found.total - lines.len()));
    }
    let mut markdown = format!("### {summary}\n\n{}", bullets(&lines));
    if !links.is_empty() {
        markdown.push_str(&format!("\n\nConnections:\n{}", bullets(&links)));
    }
    let mut payload =
        json!({ "records": listed, "total": found.total, "criteria": question.criteria, "narratives": links });
    if let Some(next) = found.next {
        payload["nextCursor"] = json!(next);
    }
    Ok(Said { summary, rationale: "The question asks for records".into(), payload, markdown })
}

fn exploration(catalog: &Catalog, category: &Category) -> Result<Said, ToolFault> {
    let payload = insight(catalog, category, None)?;
    let summary = format!("Exploration plan for {}", category.name());
    let texts = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(|text| Some(text.as_str()?.to_owned())).collect()
    };
    let (plan, narratives) = (texts(&payload["plan"]), texts(&payload["narratives"]));
    let numbered: Vec<String> = plan.iter().enumerate().map(|(at, step)| format!("{}. {step}", at + 1)).collect();
    let markdown = format!("### {summary}\n\n{}\n\nConnections:\n{}", numbered.join("\n"), bullets(&narratives));
    Ok(Said { summary, rationale: "The question asks what the data tells together".into(), payload, markdown })
}

fn bullets(lines: &[String]) -> String {
    lines.iter().map(|line| format!("- {line}")).collect::<Vec<_>>().join("\n")
}
