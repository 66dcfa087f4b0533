//! Questions: recognised, routed to the agent they are for, and answered with a summary, data and Markdown.

use serde_json::{Map, Value, json};

use super::category::Category;
use super::classify::{Intent, Verdict, classify};
use super::insight::insight;
use super::question::{Known, Understood};
use super::relations::{relations, title};
use super::search::{Search, query};
use super::tools::{ToolFault, excerpt};
use crate::folder::catalog::Catalog;

/// How many records are told in words.
const MOST_TOLD: usize = 20;

/// Words that ask for the shape of the data.
const SHAPE_WORDS: [&str; 20] = [
    "schema",
    "schemas",
    "field",
    "fields",
    "column",
    "columns",
    "attribute",
    "attributes",
    "property",
    "properties",
    "relationship",
    "relationships",
    "metadata",
    "structure",
    "types",
    "folder",
    "describe",
    "definition",
    "catalogue",
    "catalog",
];

/// Words that ask what records tell together.
const INSIGHT_WORDS: [&str; 14] = [
    "plan",
    "overview",
    "summary",
    "summarize",
    "summarise",
    "explain",
    "connections",
    "insight",
    "insights",
    "narrative",
    "analyze",
    "analyse",
    "statistics",
    "distribution",
];

/// Words that ask for records.
const REQUEST_WORDS: [&str; 21] = [
    "list", "find", "show", "fetch", "get", "give", "display", "search", "return", "retrieve", "select", "count",
    "query", "filter", "who", "whom", "whose", "which", "what", "where", "many",
];

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
    let known = Known::new(catalog, question.text);
    let category = match topic {
        Some(topic) => catalog.category(topic),
        None => known.category(),
    };
    let verdict = classify(question.text, category.map(|category| &**category));
    if question.text.trim().is_empty() {
        return Ok(clarification(catalog, &verdict, "Empty question"));
    }
    let mut understood = category.map(|category| known.understand(category)).unwrap_or_default();
    if !question.criteria.is_empty() {
        understood.relax();
    }
    let intent = match category {
        Some(category) => settle(verdict.intent, &known, &understood, category),
        None => verdict.intent,
    };
    let Some(category) = category else {
        return Ok(match topic {
            Some(topic) => unknown(catalog, intent, topic),
            None if intent == Intent::Clarification => clarification(catalog, &verdict, "No known signals"),
            None => clarification(catalog, &verdict, "Missing topic"),
        });
    };
    let said = match intent {
        Intent::Metadata => metadata(category)?,
        Intent::Records => records(catalog, category, question, &understood)?,
        Intent::Insight => exploration(catalog, category)?,
        Intent::Clarification => return Ok(clarification(catalog, &verdict, "No known signals")),
    };
    let rationale = match verdict.matched.is_empty() {
        true => said.rationale,
        false => format!("{} (signals: {})", said.rationale, verdict.matched.join("; ")),
    };
    Ok(answer(intent, intent.agent(), &said.summary, &rationale, said.payload, &said.markdown))
}

/// The intent of a question, now that its words are understood. Words of a category's agents are only a guess: a question
/// that asks for records gets records, unless it speaks of schemas, plans and the like itself.
fn settle(guess: Intent, known: &Known<'_>, understood: &Understood, category: &Category) -> Intent {
    let is_shape = known.says_apart_from_names(&SHAPE_WORDS, category);
    let is_insight = known.says_apart_from_names(&INSIGHT_WORDS, category);
    let is_bare = known.names_a_category() && !known.says(&["tell", "more"]);
    let is_request = known.says(&REQUEST_WORDS) || !understood.is_empty();
    match guess {
        Intent::Metadata if !is_shape && is_request => Intent::Records,
        Intent::Insight if !is_insight && is_request => Intent::Records,
        Intent::Records if is_shape && understood.is_empty() => Intent::Metadata,
        Intent::Clarification if is_shape => Intent::Metadata,
        Intent::Clarification if is_insight => Intent::Insight,
        Intent::Clarification if is_request || is_bare => Intent::Records,
        guess => guess,
    }
}

fn answer(intent: Intent, agent: &str, summary: &str, rationale: &str, payload: Value, markdown: &str) -> Value {
    json!({
        "intent": intent.name(), "agent": agent, "summary": summary, "rationale": rationale, "payload": payload,
        "markdown": markdown,
    })
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

fn records(
    catalog: &Catalog,
    category: &Category,
    question: &Question<'_>,
    understood: &Understood,
) -> Result<Said, ToolFault> {
    let search = Search { limit: question.limit, ..Search::default() };
    let found = query(category, &question.criteria, understood, &search)?;
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
    let mut criteria = understood.criteria();
    criteria.extend(question.criteria.clone());
    let explained = explained(question, understood, found.total);
    let mut markdown = format!("### {summary}\n\n{}", bullets(&lines));
    if !links.is_empty() {
        markdown.push_str(&format!("\n\nConnections:\n{}", bullets(&links)));
    }
    if !explained.is_empty() {
        markdown.push_str(&format!("\n\n{}", explained.join("\n\n")));
    }
    let not_understood: Vec<&str> = understood.not_understood().collect();
    let unmatched: Vec<&str> = understood.unmatched.iter().map(|unmatched| unmatched.value.as_str()).collect();
    let mut payload = json!({
        "records": listed, "total": found.total, "criteria": criteria, "understood": understood.told(),
        "notUnderstood": not_understood, "unmatched": unmatched, "narratives": links,
    });
    if let Some(next) = found.next {
        payload["nextCursor"] = json!(next);
    }
    let rationale = [vec!["The question asks for records.".to_owned()], explained].concat().join(" ");
    Ok(Said { summary, rationale, payload, markdown })
}

/// Which criteria were used, which words were not, and why nothing was found.
fn explained(question: &Question<'_>, understood: &Understood, total: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let given = question.criteria.iter().map(|(field, wanted)| format!("{field} = {wanted}"));
    let used: Vec<String> = understood.told().into_iter().chain(given).collect();
    if !used.is_empty() {
        lines.push(format!("Criteria: {}.", used.join("; ")));
    }
    for unmatched in &understood.unmatched {
        let value = excerpt(&unmatched.value);
        lines.push(match &unmatched.field {
            Some(field) => {
                format!("No record has \"{value}\" as {field}. Known are, for example: {}.", unmatched.known.join(", "))
            }
            None => format!("No record has \"{value}\"."),
        });
    }
    if total == 0 && understood.unmatched.is_empty() {
        lines.push("No record fulfils all criteria.".to_owned());
    }
    if !understood.unknown.is_empty() {
        lines.push(format!("Not understood: {}.", understood.unknown.join(", ")));
    }
    lines
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
