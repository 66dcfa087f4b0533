//! The MCP server behind every measurement: `initialize`, `tools/list`, `echo` and `big`, and as little work as can be.

use serde::Deserialize;
use serde_json::value::RawValue;

const VERSIONS: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];
/// No `big` answer is longer than this, whatever is asked for.
const BIG_LIMIT: usize = 64 << 20;

const TOOLS: &str = concat!(
    r#"{"name":"echo","description":"Says it again","inputSchema":{"type":"object","#,
    r#""properties":{"text":{"type":"string"}},"required":["text"]}},"#,
    r#"{"name":"big","description":"A long text","inputSchema":{"type":"object","#,
    r#""properties":{"size":{"type":"integer"}},"required":["size"]}}"#,
);
const OTHER: &str = concat!(
    r#",{"name":"other-NUMBER","description":"Finds what fits the query, and sorts it by date or by how well it fits","#,
    r#""inputSchema":{"type":"object","properties":{"query":{"type":"string","description":"What to look for"},"#,
    r#""limit":{"type":"integer","description":"How many to give at most"}},"required":["query"]}}"#,
);
const DISCOVERED: &str = concat!(
    r#""supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"#,
    r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"fast-server","version":"1"}}"#,
);

/// What one message from the client is met with.
pub enum Reply {
    /// The answer to `initialize`.
    Welcome(String),
    Answer(String),
    /// The message was a notification.
    Nothing,
    /// The message was not JSON-RPC.
    Nonsense,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: Option<&'a str>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ToolCall<'a> {
    name: &'a str,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Echo<'a> {
    #[serde(borrow)]
    text: &'a RawValue,
}

#[derive(Deserialize)]
struct Big {
    size: usize,
}

#[derive(Deserialize)]
struct Initialize<'a> {
    #[serde(rename = "protocolVersion")]
    version: &'a str,
}

/// What is served: how many tools, and in which era.
pub struct Server {
    tools: String,
    stateless: bool,
}

impl Default for Server {
    fn default() -> Self {
        Self { tools: format!("[{TOOLS}]"), stateless: false }
    }
}

impl Server {
    /// `echo`, `big`, and as many others that can only be listed.
    #[allow(dead_code, reason = "not all programs here have such servers")]
    pub fn of(tools: usize, stateless: bool) -> Self {
        let mut list = TOOLS.to_string();
        for number in 2..tools {
            list += &OTHER.replace("NUMBER", &number.to_string());
        }
        Self { tools: format!("[{list}]"), stateless }
    }

    /// A result with the members that the era wants.
    fn result(&self, id: &RawValue, members: &str, cacheable: bool) -> String {
        let more = match (self.stateless, cacheable) {
            (false, _) => "",
            (true, false) => r#","resultType":"complete""#,
            (true, true) => r#","resultType":"complete","ttlMs":60000,"cacheScope":"public""#,
        };
        answer(id, "result", &format!("{{{members}{more}}}"))
    }
}

pub fn reply(server: &Server, message: &[u8]) -> Reply {
    let Ok(call) = serde_json::from_slice::<Call>(message) else {
        return Reply::Nonsense;
    };
    let (Some(id), Some(method)) = (call.id, call.method) else {
        return Reply::Nothing;
    };
    let params = call.params.map_or("{}", RawValue::get);
    Reply::Answer(match method {
        "initialize" if !server.stateless => return Reply::Welcome(server.result(id, &initialized(params), false)),
        "server/discover" if server.stateless => server.result(id, DISCOVERED, true),
        "ping" => answer(id, "result", "{}"),
        "tools/list" => server.result(id, &format!(r#""tools":{}"#, server.tools), true),
        "tools/call" => match tool(params) {
            Some(result) => server.result(id, &result, false),
            None => answer(id, "error", r#"{"code":-32602,"message":"unknown tool or arguments"}"#),
        },
        _ => answer(id, "error", r#"{"code":-32601,"message":"method not found"}"#),
    })
}

/// The members of a result.
fn initialized(params: &str) -> String {
    let asked = serde_json::from_str::<Initialize>(params).map_or(VERSIONS[0], |params| params.version);
    let version = if VERSIONS.contains(&asked) { asked } else { VERSIONS[0] };
    format!(
        r#""protocolVersion":"{version}","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"fast-server","version":"1"}}"#
    )
}

/// The members of a result. The text of `echo` goes back as it came, still quoted: nothing is unescaped and escaped again.
fn tool(params: &str) -> Option<String> {
    let call: ToolCall = serde_json::from_str(params).ok()?;
    let arguments = call.arguments?.get();
    match call.name {
        "echo" => {
            let echo: Echo = serde_json::from_str(arguments).ok()?;
            Some(format!(r#""content":[{{"type":"text","text":{}}}]"#, echo.text))
        }
        "big" => {
            let big: Big = serde_json::from_str(arguments).ok()?;
            let text = "x".repeat(big.size.min(BIG_LIMIT));
            Some(format!(r#""content":[{{"type":"text","text":"{text}"}}]"#))
        }
        _ => None,
    }
}

fn answer(id: &RawValue, member: &str, value: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"{member}":{value}}}"#)
}
