//! One entry of a configuration: what its keys mean in the dialects of the clients, and what is wrong with it.

use std::time::Duration;

use http::{HeaderName, HeaderValue};
use mcpwire_proto::version;
use serde_json::{Map, Value as Json};
use url::Url;

use super::environment::Environment;
use super::expand::{Expanded, expand};
use super::file::Entry;
use super::secret::{Secret, Value};
use super::{Program, Remote, Server, Source, Transport, outline};

/// The longest time that can be meant.
const LONGEST: f64 = 366.0 * 24.0 * 3600.0 * 1000.0;

/// Who has so many variables that are not set has other worries.
const ENOUGH_NOTES: usize = 32;

/// Where a server's URL may be.
const URLS: [&str; 3] = ["url", "httpUrl", "serverUrl"];

pub(super) enum Outcome {
    Server(Box<Server>),
    Disabled,
    Invalid(String),
}

/// What an entry says, and which of its settings are left alone.
pub(super) fn read(entry: &Entry, source: &Source, environment: &Environment) -> (Outcome, Vec<String>) {
    let Json::Object(keys) = &entry.value else {
        return (Outcome::Invalid(format!("Server {:?}: expected an object", entry.name)), Vec::new());
    };
    let mut reader = Reader { keys, source, environment, faults: Vec::new(), notes: Vec::new() };
    if !reader.enabled() {
        return (Outcome::Disabled, Vec::new());
    }
    let transport = reader.transport();
    let server = transport.map(|transport| Server {
        name: entry.name.clone(),
        source: source.clone(),
        hash: entry.hash(),
        transport,
        timeout: reader.timeout(),
        protocol: reader.protocol(),
        include: reader.texts(&["include", "includeTools", "enabled_tools", "enabledTools"]),
        exclude: reader.texts(&["exclude", "excludeTools", "disabled_tools", "disabledTools"]),
    });
    let outcome = match server.filter(|_| reader.faults.is_empty()) {
        Some(server) => Outcome::Server(Box::new(server)),
        None => {
            let faults = reader.faults.iter().map(|fault| format!("Server \"{}\": {fault}", entry.name));
            Outcome::Invalid(faults.collect::<Vec<_>>().join("; "))
        }
    };
    (outcome, reader.notes)
}

struct Reader<'a> {
    keys: &'a Map<String, Json>,
    source: &'a Source,
    environment: &'a Environment,
    /// What makes the entry useless.
    faults: Vec<String>,
    /// What is left alone.
    notes: Vec<String>,
}

impl<'a> Reader<'a> {
    /// The first of these keys that is there and not null.
    fn get(&self, keys: &[&'static str]) -> Option<(&'static str, &'a Json)> {
        let there = |key: &&'static str| Some((*key, self.keys.get(*key).filter(|value| !value.is_null())?));
        keys.iter().find_map(there)
    }

    fn expand(&mut self, text: &str) -> Expanded {
        let expanded = expand(text, self.environment);
        for name in &expanded.unset {
            let note = format!("${{{name}}} is not set");
            if self.notes.len() < ENOUGH_NOTES && !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        expanded
    }

    /// A string that is not empty.
    fn text(&mut self, keys: &[&'static str]) -> Option<String> {
        let (key, value) = self.get(keys)?;
        match value {
            Json::String(text) => Some(self.expand(text).text).filter(|text| !text.is_empty()),
            _ => {
                self.faults.push(format!("\"{key}\" must be a string"));
                None
            }
        }
    }

    fn texts(&mut self, keys: &[&'static str]) -> Vec<String> {
        let Some((key, value)) = self.get(keys) else { return Vec::new() };
        let texts = value.as_array().and_then(|items| items.iter().map(plain).collect::<Option<Vec<_>>>());
        match texts {
            Some(texts) => texts.iter().map(|text| self.expand(text).text).collect(),
            None => {
                self.faults.push(format!("\"{key}\" must be an array of strings"));
                Vec::new()
            }
        }
    }

    fn enabled(&mut self) -> bool {
        self.flag("enabled").unwrap_or(true) && !self.flag("disabled").unwrap_or(false)
    }

    fn flag(&mut self, key: &'static str) -> Option<bool> {
        let (_, value) = self.get(&[key])?;
        let flag = match value {
            Json::Bool(flag) => Some(*flag),
            Json::String(text) => match self.expand(text).text.to_ascii_lowercase().as_str() {
                "true" | "1" => Some(true),
                "false" | "0" => Some(false),
                _ => None,
            },
            _ => None,
        };
        if flag.is_none() {
            self.notes.push(format!("\"{key}\" must be true or false"));
        }
        flag
    }

    fn timeout(&mut self) -> Option<Duration> {
        let (key, value) = self.get(&["timeout", "tool_timeout_sec"])?;
        let number = match value {
            Json::String(text) => self.expand(text).text.trim().parse().ok(),
            other => other.as_f64(),
        };
        let unit = if key == "timeout" { 1.0 } else { 1000.0 };
        let milliseconds = number.map(|number: f64| number * unit).filter(|ms| *ms > 0.0 && *ms <= LONGEST);
        if milliseconds.is_none() {
            self.notes.push(format!("\"{key}\" must be a number above 0"));
        }
        milliseconds.map(|ms| Duration::from_secs_f64(ms / 1000.0))
    }

    fn protocol(&mut self) -> Option<&'static str> {
        let (_, value) = self.get(&["protocol"])?;
        let text = self.expand(value.as_str().unwrap_or_default()).text;
        let known = version::ALL.iter().find(|version| **version == text);
        if known.is_none() && text != "auto" {
            self.notes.push(format!("\"protocol\" must be auto or one of {}", version::ALL.join(", ")));
        }
        known.copied()
    }

    fn transport(&mut self) -> Option<Transport> {
        let command = self.text(&["command"]);
        let url = self.text(&URLS);
        if self.get(&["envFile"]).is_some() {
            self.notes.push("\"envFile\" is not read".to_owned());
        }
        if command.is_some() && url.is_some() {
            let both = "both \"command\" and \"url\" are set - server should be either stdio (command) OR http/sse (url), not both";
            self.faults.push(both.to_owned());
        }
        let kind = match self.get(&["type", "transport"]) {
            Some((_, Json::String(text))) => self.expand(text).text,
            Some((_, other)) => other.to_string(),
            None if command.is_some() || url.is_none() => "stdio".to_owned(),
            None => "http".to_owned(),
        };
        match kind.as_str() {
            "stdio" => match command {
                Some(command) => Some(Transport::Stdio(self.program(command))),
                None => self.lacks("stdio server requires \"command\" field"),
            },
            "http" | "streamable-http" | "streamableHttp" | "streamable_http" => match url {
                Some(url) => self.remote(&url).map(Transport::Http),
                None => self.lacks("http server requires \"url\" field"),
            },
            "sse" => match url {
                Some(url) => self.remote(&url).map(Transport::Sse),
                None => self.lacks("sse server requires \"url\" field"),
            },
            _ => {
                // As it is written: what a variable holds is not told.
                let written = self.get(&["type", "transport"]).map(|(_, kind)| kind);
                let written = written.map(|kind| kind.as_str().map_or_else(|| kind.to_string(), str::to_owned));
                self.lacks(&format!("unknown server type \"{}\"", written.unwrap_or(kind)))
            }
        }
    }

    fn lacks(&mut self, fault: &str) -> Option<Transport> {
        self.faults.push(fault.to_owned());
        None
    }

    fn program(&mut self, command: String) -> Program {
        let written = self.get(&["args"]).and_then(|(_, args)| args.as_array());
        let written: Vec<String> = written.into_iter().flatten().filter_map(plain).collect();
        let outline = outline::command(self.keys.get("command").and_then(Json::as_str).unwrap_or(&command), &written);
        let args = self.texts(&["args"]).into_iter().map(Secret::new).collect();
        let mut env = self.values("env");
        if env.iter().any(|(name, _)| name.is_empty() || name.contains(['=', '\0'])) {
            self.faults.push("\"env\" has a name that no variable can have".to_owned());
        }
        // All of ours are handed on anyway; here they win over what `env` says.
        for name in self.texts(&["env_vars"]) {
            if let Some(value) = self.environment.variable(&name) {
                env.retain(|(other, _)| *other != name);
                env.push((name, Value::Text(Secret::new(value))));
            }
        }
        let cwd =
            self.text(&["cwd"]).map_or_else(|| self.environment.cwd.clone(), |cwd| self.environment.cwd.join(cwd));
        Program { command, args, env, cwd, outline }
    }

    fn remote(&mut self, text: &str) -> Option<Remote> {
        let mut headers = self.values("headers");
        headers.extend(self.values("http_headers"));
        headers.extend(self.headers_by_variable());
        for (name, value) in &headers {
            let sound = HeaderName::try_from(name.as_str()).is_ok();
            let text = if let Value::Text(text) = value { text.reveal() } else { "" };
            // A name that cannot be one may be a whole header, with its value.
            if !sound {
                self.faults.push("\"headers\" has a name that no header can have".to_owned());
            } else if HeaderValue::from_str(text).is_err() {
                self.faults.push(format!("header {name:?} cannot be sent"));
            }
        }
        match Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host()) {
            Some(url) => {
                let written = self.get(&URLS).and_then(|(_, url)| url.as_str()).unwrap_or_default();
                Some(Remote { url, outline: outline::url(written), headers })
            }
            None => {
                self.faults.push("\"url\" must be an http or https URL".to_owned());
                None
            }
        }
    }

    /// Codex' headers that name the variables with their values.
    fn headers_by_variable(&mut self) -> Vec<(String, Value)> {
        let mut named: Vec<(String, String, &str)> = Vec::new();
        if let Some((_, Json::Object(headers))) = self.get(&["env_http_headers"]) {
            let text = |(header, variable): (&String, &Json)| Some((header.clone(), variable.as_str()?.to_owned(), ""));
            named.extend(headers.iter().filter_map(text));
        }
        if let Some((_, Json::String(variable))) = self.get(&["bearer_token_env_var"]) {
            named.push(("Authorization".to_owned(), variable.clone(), "Bearer "));
        }
        let mut headers = Vec::new();
        for (header, variable, before) in named {
            match self.environment.variable(&variable).filter(|value| !value.is_empty()) {
                Some(value) => headers.push((header, Value::Text(Secret::new(format!("{before}{value}"))))),
                None => self.notes.push(format!("header {header:?} is left out: {variable} is not set")),
            }
        }
        headers
    }

    /// The values of variables or headers.
    fn values(&mut self, key: &'static str) -> Vec<(String, Value)> {
        let Some((_, value)) = self.get(&[key]) else { return Vec::new() };
        let Json::Object(values) = value else {
            self.faults.push(format!("\"{key}\" must be an object of strings"));
            return Vec::new();
        };
        let mut read = Vec::with_capacity(values.len());
        for (name, value) in values {
            match plain(value) {
                Some(text) => read.push((name.clone(), self.value(key, name, &text))),
                // VS Code unsets a variable so; what is not said is not sent.
                None if value.is_null() => {}
                None => self.faults.push(format!("\"{key}\" must be an object of strings")),
            }
        }
        read
    }

    /// What stands in the file decides: a variable whose value looks like a command is still no command, and the shell knows
    /// `${VAR}` by itself, so nothing has to be put into its text.
    fn value(&mut self, key: &str, name: &str, text: &str) -> Value {
        let may = self.source.scope.may_resolve();
        if let Some(command) = text.strip_prefix('!') {
            if may {
                return Value::Command(Secret::new(command));
            }
            self.notes.push(format!("{key} {name:?} is left out: commands of a project are not run"));
            return Value::Nothing;
        }
        let Expanded { text, touched, .. } = self.expand(text);
        if may && !touched { Value::Name(Secret::new(text)) } else { Value::Text(Secret::new(text)) }
    }
}

/// A string, or what is as good as one.
fn plain(value: &Json) -> Option<String> {
    match value {
        Json::String(text) => Some(text.clone()),
        Json::Number(number) => Some(number.to_string()),
        Json::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}
