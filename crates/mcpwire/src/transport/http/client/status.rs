//! What an HTTP answer that is not a success means for the message that was sent.

use std::borrow::Cow;

use http::header::WWW_AUTHENTICATE;
use http::{HeaderMap, StatusCode};
use mcpwire_proto::{Cause, Failure, HttpStatus, Id, Message, code};
use serde::Deserialize;
use serde_json::json;

/// How much of an error's body is read, and how much of it is passed on.
pub(super) const MOST_READ: usize = 64 * 1024;
const MOST_SHOWN: usize = 300;

/// What was sent, as far as the meaning of its failure depends on it.
pub(super) struct Sent<'a> {
    pub id: Option<&'a Id>,
    pub opens_session: bool,
    pub in_session: bool,
    /// Sending it once more does no harm, even if it was executed.
    pub repeatable: bool,
}

/// How deployed servers refuse a session that they do not know with HTTP 400, before they look at the message: the exact
/// text of the body, or of the error with [`REFUSAL`] in it. The specification wants 404 (2025-03-26, transports, session
/// management). Only these prove that a message was not executed.
const LOST_SESSION: [&str; 5] = [
    // The TypeScript SDK's examples, server-everything and supergateway; as plain text the Python SDK up to 1.23.
    "Bad Request: No valid session ID provided",
    // The TypeScript SDK, where a restarted server has one transport for all.
    "Bad Request: Server not initialized",
    // mcp-go up to 0.43, and HTTP+SSE of the Python SDK.
    "Invalid session ID",
    // GET in the TypeScript SDK's older examples and in supergateway.
    "Invalid or missing session ID",
    // HTTP+SSE in the TypeScript SDK's examples.
    "No transport found for sessionId",
];
/// The code that goes with them.
const REFUSAL: i64 = -32000;

/// Whether a server that speaks only HTTP+SSE would refuse like this (2025-11-25, transports, backwards compatibility).
/// One that answers the very request is no such server.
pub(super) fn by_older(status: StatusCode, body: &[u8], sent: &Sent<'_>) -> bool {
    sent.opens_session
        && matches!(status, StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED)
        && !reported(body).is_some_and(|error| answers(&error, sent))
}

fn reported(body: &[u8]) -> Option<Message> {
    Message::parse(body.to_vec().into()).ok().filter(Message::is_response)
}

fn answers(error: &Message, sent: &Sent<'_>) -> bool {
    error.id().is_some() && error.id() == sent.id
}

pub(super) fn failure(status: StatusCode, headers: &HeaderMap, body: &[u8], sent: &Sent<'_>) -> Failure {
    let reported = reported(body);
    let text = String::from_utf8_lossy(body);
    let lost = sent.in_session && !sent.opens_session;
    // server-everything refuses a session under the id of the request.
    if lost && status == StatusCode::BAD_REQUEST && is_known_refusal(reported.as_ref(), &text) {
        return Failure::SessionLost(describe(status, &text));
    }
    if let Some(error) = &reported
        && answers(error, sent)
    {
        return Failure::refused_by_server(error.payload().unwrap_or_default());
    }
    if lost && (status == StatusCode::NOT_FOUND || (sent.repeatable && hints_at_session(status, &text))) {
        return Failure::SessionLost(describe(status, &text));
    }
    // A server that is starting, or a proxy before one that is: not yet, rather than no.
    let starting =
        matches!(status, StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT);
    if starting && sent.opens_session {
        return Failure::Unreachable(describe(status, &text));
    }
    match reported.as_ref().and_then(Message::payload) {
        Some(error) => Failure::refused_by_server(error),
        None => refused_with(status, headers, &text),
    }
}

/// A refusal by a status that comes without an error of its own. What the server says of credentials is passed on.
pub(super) fn refused_with(status: StatusCode, headers: &HeaderMap, body: &str) -> Failure {
    let header = |name: &str| headers.get(name).map(|value| excerpt(&String::from_utf8_lossy(value.as_bytes())));
    let told = HttpStatus {
        status: status.as_u16(),
        body: excerpt(body),
        www_authenticate: header(WWW_AUTHENTICATE.as_str()),
        auth_server: header("mcp-auth-server"),
    };
    by_status(&describe(status, body), told)
}

/// A redirect that is not followed, for this reason.
pub(super) fn not_followed(status: StatusCode, why: &str) -> Failure {
    let told = HttpStatus { status: status.as_u16(), body: why.to_owned(), ..HttpStatus::default() };
    by_status(&format!("HTTP {status}: {why}"), told)
}

fn by_status(text: &str, told: HttpStatus) -> Failure {
    let mut data = json!({"status": told.status});
    for (member, value) in [("wwwAuthenticate", &told.www_authenticate), ("mcpAuthServer", &told.auth_server)] {
        if let Some(value) = value {
            data[member] = value.as_str().into();
        }
    }
    let error = json!({"code": code::INTERNAL_ERROR, "message": text, "data": data});
    Failure::refused(error.to_string(), Cause::Http(Box::new(told)))
}

/// A refusal in our own words.
pub(super) fn refused(text: &str, status: Option<StatusCode>) -> Failure {
    let mut error = json!({"code": code::INTERNAL_ERROR, "message": text});
    if let Some(status) = status {
        error["data"] = json!({"status": status.as_u16()});
    }
    Failure::refused(error.to_string(), Cause::Unusable)
}

/// Whether this is one of the refusals of a session that are known word for word.
fn is_known_refusal(reported: Option<&Message>, body: &str) -> bool {
    #[derive(Deserialize)]
    struct Error<'a> {
        code: i64,
        #[serde(borrow)]
        message: Cow<'a, str>,
    }
    match reported {
        Some(error) => error
            .read::<Error<'_>>()
            .is_some_and(|error| error.code == REFUSAL && LOST_SESSION.contains(&&*error.message)),
        None => LOST_SESSION.contains(&body.trim()),
    }
}

/// Whether a 400 may be about the session. That is a guess: good enough to open a new one for a message that does no harm
/// when it is sent twice, and for no other.
fn hints_at_session(status: StatusCode, body: &str) -> bool {
    status == StatusCode::BAD_REQUEST && body.to_ascii_lowercase().contains("session")
}

pub(super) fn describe(status: StatusCode, body: &str) -> String {
    let shown = excerpt(body);
    let colon = if shown.is_empty() { "" } else { ": " };
    format!("HTTP {status}{}{colon}{shown}", advice(status))
}

fn advice(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED => "; the server wants credentials: give them with --header 'Authorization: Bearer …'",
        StatusCode::FORBIDDEN => "; the server refuses access: check what is given with --header",
        _ => "",
    }
}

/// The status and the body out of what was said of them: what [`describe`] has put together.
pub(crate) fn described(text: &str) -> Option<(StatusCode, &str)> {
    let rest = text.strip_prefix("HTTP ")?;
    let status = StatusCode::from_bytes(rest.get(..3)?.as_bytes()).ok()?;
    let said = rest.strip_prefix(&status.to_string())?.strip_prefix(advice(status))?;
    Some((status, said.strip_prefix(": ").unwrap_or_default()))
}

/// The beginning of a body, on one line.
fn excerpt(body: &str) -> String {
    let mut shown = String::new();
    for word in body.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        if !shown.is_empty() {
            shown.push(' ');
        }
        shown.push_str(word);
        if shown.chars().count() > MOST_SHOWN {
            return shown.chars().take(MOST_SHOWN).chain("…".chars()).collect();
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use mcpwire_proto::Refusal;

    use super::*;

    fn check(status: u16, body: &str, in_session: bool, opens_session: bool) -> Failure {
        let id = Id::from(7);
        let sent = Sent { id: Some(&id), opens_session, in_session, repeatable: false };
        failure(StatusCode::from_u16(status).unwrap(), &HeaderMap::new(), body.as_bytes(), &sent)
    }

    #[test]
    fn a_lost_session_is_told_from_other_refusals() {
        let lost = |failure| matches!(failure, Failure::SessionLost(_));
        assert!(lost(check(404, "", true, false)));
        assert!(lost(check(400, "Bad Request: No valid session ID provided", true, false)));
        assert!(lost(check(400, "Invalid session ID\n", true, false)));
        let refusal = |code: i32, text: &str, id: &str| {
            let error = json!({"code": code, "message": text});
            check(400, &format!(r#"{{"jsonrpc":"2.0","error":{error}{id}}}"#), true, false)
        };
        for id in ["", r#","id":null"#, r#","id":7"#] {
            assert!(lost(refusal(-32000, "Bad Request: Server not initialized", id)));
            assert!(lost(refusal(-32000, "Bad Request: No valid session ID provided", id)));
            assert!(!lost(refusal(-32603, "Bad Request: Server not initialized", id)));
            assert!(!lost(refusal(-32000, "Server not initialized", id)));
        }
        assert!(!lost(check(400, "bad JSON", true, false)));
        assert!(!lost(check(404, "", false, false)));
        assert!(!lost(check(404, "", true, true)));
        assert!(!lost(check(500, "no session", true, false)));
        let own = r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"no such method"}}"#;
        assert_eq!(
            check(404, own, true, false),
            Failure::refused_by_server(r#"{"code":-32601,"message":"no such method"}"#)
        );
    }

    #[test]
    fn a_400_that_mentions_a_session_counts_only_where_sending_twice_does_no_harm() {
        let id = Id::from(7);
        let lost = |body: &str, repeatable| {
            let sent = Sent { id: Some(&id), opens_session: false, in_session: true, repeatable };
            let failure = failure(StatusCode::BAD_REQUEST, &HeaderMap::new(), body.as_bytes(), &sent);
            matches!(failure, Failure::SessionLost(_))
        };
        for body in [
            "cannot book the session: the room is taken",
            "Session expired",
            "Bad Request: No valid session ID provided, sorry",
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Unknown Mcp-Session-Id header"}}"#,
        ] {
            assert!(!lost(body, false) && lost(body, true), "{body}");
        }
        let own = r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"no such session"}}"#;
        assert!(!lost(own, true), "an answer to the request is an answer");
    }

    #[test]
    fn an_older_server_is_suspected_unless_it_answers_the_request() {
        let id = Id::from(7);
        let check = |status: u16, body: &str, opens_session| {
            let sent = Sent { id: Some(&id), opens_session, in_session: false, repeatable: opens_session };
            by_older(StatusCode::from_u16(status).unwrap(), body.as_bytes(), &sent)
        };
        assert!([400, 404, 405].iter().all(|status| check(*status, "Cannot POST /mcp", true)));
        assert!([401, 403, 406, 500, 503].iter().all(|status| !check(*status, "", true)));
        assert!(check(400, r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"x"}}"#, true));
        assert!(!check(400, r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"x"}}"#, true));
        assert!(!check(404, "", false));
    }

    #[test]
    fn an_error_in_the_body_passes_as_it_is() {
        let error = r#"{"code":-32000,"message":"x","data":1.10}"#;
        for id in [r#","id":7"#, r#","id":null"#, ""] {
            let body = format!(r#"{{"jsonrpc":"2.0","error":{error}{id}}}"#);
            assert_eq!(check(500, &body, true, false), Failure::refused_by_server(error));
        }
    }

    #[test]
    fn other_bodies_are_shown_in_part() {
        let Failure::Refused(Refusal { error, cause }) =
            check(500, &format!("<h1>\n Oops  </h1>{}", "x".repeat(10_000)), true, false)
        else {
            panic!("not refused")
        };
        assert!(error.contains("HTTP 500 Internal Server Error: <h1> Oops </h1>xx"), "{error}");
        assert!(error.contains(r#""status":500"#) && error.contains("-32603") && error.len() < 500, "{error}");
        assert!(matches!(cause.as_deref(), Some(Cause::Http(told)) if told.status == 500));
    }

    #[test]
    fn missing_credentials_say_what_to_do() {
        assert!(check(401, "", true, false).to_string().contains("--header 'Authorization"));
        assert!(check(403, "", true, false).to_string().contains("--header"));
    }

    #[test]
    fn what_was_described_can_be_read_again() {
        for (status, body) in [(401, "who: are you?"), (403, ""), (404, "gone"), (500, ""), (599, "odd: {}")] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(described(&describe(status, body)), Some((status, body)));
        }
        for text in ["", "HTTP", "HTTP 4", "HTTP 404", "HTTP 99 x", "HTTP 4\u{e9}4 x", "connection refused"] {
            assert_eq!(described(text), None, "{text}");
        }
    }

    #[test]
    fn a_server_that_is_starting_is_waited_for() {
        assert!(matches!(check(503, "", false, true), Failure::Unreachable(_)));
        assert!(matches!(check(503, "", true, false), Failure::Refused(_)));
    }
}
