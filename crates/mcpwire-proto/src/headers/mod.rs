//! The headers in which an HTTP request of 2026-07-28 repeats parts of its body: what a client has to send, and what a
//! server has to refuse (2026-07-28, Streamable HTTP, Request Metadata).

mod params;
mod tools;
mod value;

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

pub use self::params::{Parameter, parameters};
pub use self::tools::{Invalid, Tools};
pub use self::value::{decode, encode};
use crate::version::STATELESS_ERA;
use crate::{Fault, Id, Message, method};

pub const PROTOCOL_VERSION: &str = "mcp-protocol-version";
pub const METHOD: &str = "mcp-method";
pub const NAME: &str = "mcp-name";
/// What the names of headers for tool parameters begin with.
pub const PARAM: &str = "mcp-param-";

/// What a request says that its headers repeat, or that a front has to know of it: read in one pass.
#[derive(Debug, Default)]
pub struct Said<'a> {
    pub version: Option<Cow<'a, str>>,
    pub capabilities: Option<&'a RawValue>,
    pub progress_token: Option<Id>,
    /// It asks for log messages.
    pub wants_log: bool,
    /// What `Mcp-Name` repeats.
    pub name: Option<Cow<'a, str>>,
    arguments: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct Params<'a> {
    #[serde(borrow, default, rename = "_meta")]
    meta: Option<&'a RawValue>,
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    uri: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "taskId")]
    task_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct Meta<'a> {
    #[serde(borrow, default, rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<Text<'a>>,
    #[serde(borrow, default, rename = "io.modelcontextprotocol/clientCapabilities")]
    capabilities: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "progressToken")]
    progress_token: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "io.modelcontextprotocol/logLevel")]
    log_level: Option<&'a RawValue>,
}

/// `Cow` alone does not borrow inside an `Option`.
#[derive(Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> Said<'a> {
    /// Reads a request. What does not fit is as good as not said.
    pub fn by(request: &'a Message) -> Said<'a> {
        let params: Params<'a> = request.read().unwrap_or_default();
        let meta: Meta<'a> = params.meta.and_then(|meta| serde_json::from_str(meta.get()).ok()).unwrap_or_default();
        let name = match source(request) {
            Some(Source::Name) => params.name,
            Some(Source::Uri) => params.uri,
            Some(Source::TaskId) => params.task_id,
            None => None,
        };
        Said {
            version: meta.version.map(|version| version.0),
            capabilities: meta.capabilities,
            progress_token: meta.progress_token.and_then(|token| Id::from_json(token.get())),
            wants_log: meta.log_level.is_some(),
            name: name.and_then(|name| serde_json::from_str::<Text<'a>>(name.get()).ok()).map(|name| name.0),
            arguments: params.arguments,
        }
    }

    /// Whether the required parts of `_meta` are there.
    fn is_whole(&self) -> Result<(), Fault> {
        let missing = |name: &str| Err(Fault::Params(format!("expected params._meta with {name}, came none")));
        if self.version.is_none() {
            return missing(crate::meta::key::PROTOCOL_VERSION);
        }
        match self.capabilities {
            Some(capabilities) if capabilities.get().starts_with('{') => Ok(()),
            _ => missing(crate::meta::key::CLIENT_CAPABILITIES),
        }
    }
}

/// Which parameter `Mcp-Name` repeats. The tasks extension has it for its own methods, too.
enum Source {
    Name,
    Uri,
    TaskId,
}

fn source(request: &Message) -> Option<Source> {
    match &**request.method()? {
        method::TOOLS_CALL | method::PROMPTS_GET => Some(Source::Name),
        method::RESOURCES_READ => Some(Source::Uri),
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some(Source::TaskId),
        _ => None,
    }
}

/// The headers of a request of the stateless era: their names and their values as they go on the wire.
pub fn derive(request: &Message, tools: &Tools) -> Vec<(Cow<'static, str>, String)> {
    let said = Said::by(request);
    let mut headers = Vec::with_capacity(3);
    headers.extend(said.version.as_deref().map(|version| (PROTOCOL_VERSION.into(), version.to_owned())));
    headers.extend(request.method().map(|method| (METHOD.into(), method.to_string())));
    headers.extend(said.name.as_deref().map(|name| (NAME.into(), encode(name).into_owned())));
    for (parameter, value) in mirrored(request, &said, tools) {
        let value = value.map(|value| encode(&value.to_string()).into_owned());
        headers.extend(value.map(|value| (format!("{PARAM}{}", parameter.header).into(), value)));
    }
    headers
}

/// The parameters of the called tool that have a header, each with its value in this call.
fn mirrored<'t>(
    request: &Message,
    said: &Said<'_>,
    tools: &'t Tools,
) -> impl Iterator<Item = (&'t Parameter, Option<params::Value>)> {
    let tool = said.name.as_deref().filter(|_| request.is(method::TOOLS_CALL));
    let parameters = tool.map_or(&[][..], |tool| tools.parameters_of(tool));
    let arguments = said.arguments;
    parameters.iter().map(move |parameter| (parameter, arguments.and_then(|all| parameter.value_in(all.get()))))
}

/// A header as it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Given<'a> {
    Absent,
    Text(&'a str),
    /// It came twice, or with characters that no such header may have.
    Unreadable,
}

/// Checks a request of the stateless era: that it says what it has to, in a version that is served, and that its headers
/// say the same. `supported` is what is told to a client of another version.
pub fn check<'h>(
    request: &Message,
    said: &Said<'_>,
    given: impl Fn(&str) -> Given<'h>,
    tools: &Tools,
    supported: &'static [&'static str],
) -> Result<(), Fault> {
    let version = said.version.as_deref();
    if let (Some(version), header @ (Given::Text(_) | Given::Unreadable)) = (version, given(PROTOCOL_VERSION)) {
        same("MCP-Protocol-Version", version, header)?;
    }
    if let Some(version) = version.filter(|version| !STATELESS_ERA.contains(version)) {
        // A version of the session era is served, but not in this form.
        let supported = if supported.contains(&version) { &STATELESS_ERA } else { supported };
        return Err(Fault::Version { requested: excerpt(version), supported });
    }
    said.is_whole()?;
    same("MCP-Protocol-Version", version.unwrap_or_default(), given(PROTOCOL_VERSION))?;
    let method = request.method().map_or("", |method| method);
    same("Mcp-Method", method, given(METHOD))?;
    if let Some(method) = request.method().filter(|method| method.is_gone()) {
        return Err(Fault::UnknownMethod(format!("{method} is no method of this version")));
    }
    check_name(request, said, given(NAME))?;
    for (parameter, value) in mirrored(request, said, tools) {
        let header = given(&format!("{PARAM}{}", parameter.header));
        parameter.check(value.as_ref(), header)?;
    }
    Ok(())
}

/// `Mcp-Name` must be there where the specification says so, and fit wherever it is.
fn check_name(request: &Message, said: &Said<'_>, header: Given<'_>) -> Result<(), Fault> {
    let required = request.method().is_some_and(|method| method.may_ask());
    match (said.name.as_deref(), header) {
        (Some(name), header) if required || header != Given::Absent => same_decoded("Mcp-Name", name, header),
        (None, Given::Text(_) | Given::Unreadable) if source(request).is_some() => {
            Err(Fault::Headers("expected no Mcp-Name: the body has no such value".into()))
        }
        _ => Ok(()),
    }
}

fn same(name: &str, expected: &str, header: Given<'_>) -> Result<(), Fault> {
    match header {
        Given::Text(text) if text == expected => Ok(()),
        header => Err(mismatch(name, expected, header)),
    }
}

fn same_decoded(name: &str, expected: &str, header: Given<'_>) -> Result<(), Fault> {
    match header {
        Given::Text(text) if decode(text).is_some_and(|text| text == expected) => Ok(()),
        header => Err(mismatch(name, expected, header)),
    }
}

fn mismatch(name: &str, expected: &str, header: Given<'_>) -> Fault {
    let came = match header {
        Given::Absent => "none".to_owned(),
        Given::Text(text) => format!("{:?}", excerpt(text)),
        Given::Unreadable => "something that is not one line of ASCII".to_owned(),
    };
    Fault::Headers(format!("expected {name} to be {:?} as in the body, came {came}", excerpt(expected)))
}

/// Short enough for an error message.
fn excerpt(text: &str) -> String {
    const LONGEST: usize = 60;
    match text.char_indices().nth(LONGEST) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests;
