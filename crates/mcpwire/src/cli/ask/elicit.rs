//! What a server wants to know of the person, asked at the terminal field by field; declined where there is none.

use std::io::{self, IsTerminal, Write};

use serde_json::{Map, Value, json};
use tokio::sync::Mutex;

use super::terminal::{Style, Terminal};
use super::values;
use crate::cli::say;

/// How often a field is asked again that got something else than it takes.
const TRIES: usize = 5;

/// The person at the terminal, who is asked one thing at a time.
#[derive(Debug, Default)]
pub(super) struct Person(Mutex<()>);

impl Person {
    /// Gives the result of `elicitation/create`.
    pub(super) async fn ask(&self, params: Value) -> Value {
        let _turn = self.0.lock().await;
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            say(
                "mcpwire: the server asked for something that only a person can tell, and there is no terminal: declined",
            );
            return declined();
        }
        // Reading a line blocks; the thread is left behind if nobody answers.
        let asked = tokio::task::spawn_blocking(move || match params["mode"].as_str() {
            Some("url") => visit(&params, &mut AtTerminal),
            _ => form(&params, &mut AtTerminal),
        });
        asked.await.unwrap_or_else(|_| declined())
    }
}

fn declined() -> Value {
    json!({"action": "decline"})
}

fn cancelled() -> Value {
    json!({"action": "cancel"})
}

/// Where a person reads and answers.
trait Dialogue {
    fn tell(&mut self, text: &str);
    /// `None` when the person has closed the input.
    fn answer(&mut self, prompt: &str) -> Option<String>;
}

/// The terminal this program runs in.
struct AtTerminal;

impl Dialogue for AtTerminal {
    fn tell(&mut self, text: &str) {
        say(&Terminal::stderr().safe(text));
    }

    fn answer(&mut self, prompt: &str) -> Option<String> {
        let terminal = Terminal::stderr();
        let prompt = terminal.styled(Style::Name, &terminal.safe(prompt));
        let mut stderr = io::stderr();
        let _ = write!(stderr, "{prompt} ").and_then(|()| stderr.flush());
        let mut line = String::new();
        match io::stdin().read_line(&mut line) {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(line.trim().to_owned()),
        }
    }
}

/// Something that is to be done in a browser: we show where, and open nothing by ourselves.
fn visit(params: &Value, dialogue: &mut dyn Dialogue) -> Value {
    dialogue.tell(&format!("\nThe server asks: {}", text(&params["message"])));
    dialogue.tell(&format!("It wants you to open this page:\n  {}", text(&params["url"])));
    match dialogue.answer("Go on? [y/N]") {
        Some(answer) if is_yes(&answer) => json!({"action": "accept"}),
        Some(_) => declined(),
        None => cancelled(),
    }
}

fn form(params: &Value, dialogue: &mut dyn Dialogue) -> Value {
    dialogue.tell(&format!("\nThe server asks: {}", text(&params["message"])));
    let schema = &params["requestedSchema"];
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut content = Map::new();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        match fill(name, field, required.contains(&name.as_str()), dialogue) {
            Answer::Value(value) => drop(content.insert(name.clone(), value)),
            Answer::Nothing => {}
            Answer::Refused => return declined(),
            Answer::Closed => return cancelled(),
        }
    }
    match dialogue.answer("Send this? [Y/n]") {
        Some(answer) if answer.is_empty() || is_yes(&answer) => json!({"action": "accept", "content": content}),
        Some(_) => declined(),
        None => cancelled(),
    }
}

enum Answer {
    Value(Value),
    Nothing,
    Refused,
    Closed,
}

fn fill(name: &str, field: &Value, required: bool, dialogue: &mut dyn Dialogue) -> Answer {
    let title = field["title"].as_str().unwrap_or(name);
    let choices = choices(field);
    if let Some(description) = field["description"].as_str() {
        dialogue.tell(&format!("  {description}"));
    }
    for (number, (_, shown)) in choices.iter().enumerate() {
        dialogue.tell(&format!("  {}) {shown}", number + 1));
    }
    let default = field.get("default").filter(|default| !default.is_null());
    let hint = match (default, field["type"].as_str()) {
        (Some(default), _) => format!(" [{}]", text(default)),
        (None, Some("boolean")) => " [y/n]".to_owned(),
        (None, _) if !required => " (may be empty)".to_owned(),
        (None, _) => String::new(),
    };
    for _ in 0..TRIES {
        let Some(answer) = dialogue.answer(&format!("{title}{hint}:")) else { return Answer::Closed };
        if answer.is_empty() {
            match (default, required) {
                (Some(default), _) => return Answer::Value(default.clone()),
                (None, false) => return Answer::Nothing,
                (None, true) => {
                    dialogue.tell("  this one is needed (Ctrl-D to give up)");
                    continue;
                }
            }
        }
        match value(&answer, field, &choices) {
            Ok(value) => return Answer::Value(value),
            Err(fault) => dialogue.tell(&format!("  {fault}")),
        }
    }
    Answer::Refused
}

/// The values that a field may have, each with how it is shown.
fn choices(field: &Value) -> Vec<(Value, String)> {
    let list = if field["type"] == "array" { &field["items"] } else { field };
    let titled = list["oneOf"].as_array().or(list["anyOf"].as_array()).into_iter().flatten();
    let titled = titled.filter_map(|one| {
        let value = one.get("const")?;
        Some((value.clone(), one["title"].as_str().map_or_else(|| text(value), str::to_owned)))
    });
    let names = list["enumNames"].as_array();
    let plain = list["enum"].as_array().into_iter().flatten().enumerate().map(|(at, value)| {
        let name = names.and_then(|names| names.get(at)?.as_str());
        (value.clone(), name.map_or_else(|| text(value), str::to_owned))
    });
    titled.chain(plain).collect()
}

fn value(answer: &str, field: &Value, choices: &[(Value, String)]) -> Result<Value, String> {
    let choose = |answer: &str| {
        let number = answer.parse::<usize>().ok().and_then(|number| choices.get(number.checked_sub(1)?));
        let named = choices.iter().find(|(value, shown)| shown == answer || text(value) == answer);
        let found = named.or(number).map(|(value, _)| value.clone());
        found.ok_or_else(|| format!("expected one of 1 to {}, came {answer:?}", choices.len()))
    };
    if field["type"] == "array" && !choices.is_empty() {
        return answer.split(',').map(|part| choose(part.trim())).collect::<Result<_, _>>().map(Value::Array);
    }
    if !choices.is_empty() {
        return choose(answer);
    }
    if field["type"] == "boolean" {
        return match answer.to_ascii_lowercase().as_str() {
            "y" | "yes" | "true" => Ok(true.into()),
            "n" | "no" | "false" => Ok(false.into()),
            _ => Err(format!("expected y or n, came {answer:?}")),
        };
    }
    let json = values::typed(answer, field, &Value::Null)?;
    let value: Value = serde_json::from_str(&json).map_err(|e| e.to_string())?;
    within(&value, field)?;
    Ok(value)
}

/// The limits that forms may have.
fn within(value: &Value, field: &Value) -> Result<(), String> {
    let (size, what, least, most) = match value {
        Value::String(text) => (Some(text.chars().count() as f64), " characters", "minLength", "maxLength"),
        value => (value.as_f64(), "", "minimum", "maximum"),
    };
    let Some(size) = size else { return Ok(()) };
    match (field[least].as_f64(), field[most].as_f64()) {
        (Some(least), _) if size < least => Err(format!("expected at least {least}{what}")),
        (_, Some(most)) if size > most => Err(format!("expected at most {most}{what}")),
        _ => Ok(()),
    }
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.to_ascii_lowercase().as_str(), "y" | "yes")
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
#[path = "elicit_tests.rs"]
mod tests;
