//! Who may talk to us: `Host` and `Origin` of every request, against web pages that reach for local servers, and the
//! token, if there is one.

use std::fmt;
use std::net::IpAddr;

use http::header::{
    AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderName, ORIGIN, TRANSFER_ENCODING, WWW_AUTHENTICATE,
};
use http::request::Parts;
use http::uri::{Authority, Scheme};
use http::{HeaderValue, StatusCode};

use subtle::ConstantTimeEq;

use super::answer::Refusal;
use super::options::Options;
use crate::transport::http::LAST_EVENT_ID;

/// A bearer token. It is compared in constant time and never shown.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// `None` if the text cannot be a token: it is empty, or has characters that a header cannot carry (RFC 6750).
    pub fn new(text: &str) -> Option<Token> {
        (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())).then(|| Token(text.to_owned()))
    }

    fn is(&self, other: &str) -> bool {
        self.0.as_bytes().ct_eq(other.as_bytes()).into()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Checks that a request carries the token.
pub(super) fn check_token(request: &Parts, options: &Options) -> Result<(), Refusal> {
    let Some(token) = &options.token else { return Ok(()) };
    let given = request.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let given =
        given.and_then(|value| value.split_once(' ')).filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    if given.is_some_and(|(_, given)| token.is(given.trim())) {
        return Ok(());
    }
    let text = "expected the header Authorization: Bearer TOKEN with the token of this server";
    Err(Refusal::new(StatusCode::UNAUTHORIZED, text).with(WWW_AUTHENTICATE, "Bearer"))
}

/// Headers that say one thing. Of several, a proxy before us may have gone by another than we would.
const SINGLE: [HeaderName; 6] =
    [HOST, ORIGIN, AUTHORIZATION, CONTENT_TYPE, CONTENT_LENGTH, HeaderName::from_static(LAST_EVENT_ID)];
/// So do the protocol's own, as in `Mcp-Session-Id`.
const PROTOCOL: &str = "mcp-";

/// Checks a request before anything else is done with it (2025-11-25, Transports, Security Warning).
pub(super) fn check_source(request: &Parts, options: &Options) -> Result<(), Refusal> {
    check_unambiguous(request)?;
    if !host_allowed(host_of(request)?, &options.allowed_hosts) {
        return Err(Refusal::new(
            StatusCode::FORBIDDEN,
            "this Host is not allowed; --allow-host NAME allows it (loopback names are allowed always)",
        ));
    }
    let origin = request.headers.get(ORIGIN).map(HeaderValue::to_str);
    let allowed = match origin {
        None => true,
        Some(Ok(origin)) => origin_allowed(origin, &options.allowed_origins),
        Some(Err(_)) => false,
    };
    if !allowed {
        return Err(Refusal::new(
            StatusCode::FORBIDDEN,
            "this Origin is not allowed; --allow-origin ORIGIN allows it (loopback origins are allowed always)",
        ));
    }
    Ok(())
}

/// Refuses a request that others on its way may have understood in another way.
fn check_unambiguous(request: &Parts) -> Result<(), Refusal> {
    let headers = &request.headers;
    // Most requests repeat no header at all.
    if headers.len() > headers.keys_len() {
        let single = |name: &&HeaderName| SINGLE.contains(name) || name.as_str().starts_with(PROTOCOL);
        let repeated = |name: &&HeaderName| headers.get_all(*name).iter().nth(1).is_some();
        if let Some(name) = headers.keys().filter(single).find(repeated) {
            return Err(bad_request(&format!("expected at most one header {name}")));
        }
    }
    // RFC 9112, section 6.3: this ought to be handled as an error.
    if headers.contains_key(TRANSFER_ENCODING) && headers.contains_key(CONTENT_LENGTH) {
        return Err(bad_request("expected Content-Length or Transfer-Encoding, got both"));
    }
    Ok(())
}

/// The host that a request is for (RFC 9112, sections 3.2 and 3.2.2; RFC 9110, section 7.2).
fn host_of(request: &Parts) -> Result<&str, Refusal> {
    let header = match request.headers.get(HOST).map(HeaderValue::to_str) {
        None => None,
        Some(Ok(host)) if is_host(host) => Some(host),
        Some(_) => return Err(bad_request("expected Host to be a name and an optional port")),
    };
    if request.uri.scheme().is_some_and(|scheme| *scheme != Scheme::HTTP && *scheme != Scheme::HTTPS) {
        return Err(bad_request("expected a target of http or https"));
    }
    match (header, request.uri.authority().map(Authority::as_str)) {
        (Some(host), Some(target)) if !host.eq_ignore_ascii_case(target) => {
            Err(bad_request("expected Host to be that of the request's target"))
        }
        (_, Some(target)) => Ok(target),
        (Some(host), None) => Ok(host),
        (None, None) => Err(bad_request("expected the header Host")),
    }
}

fn bad_request(text: &str) -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, text)
}

/// Whether the text can be a host and a port (RFC 3986, section 3.2, without user information).
fn is_host(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+;=:[]".contains(&byte);
    text.bytes().all(allowed) && name_of(text).is_some()
}

fn host_allowed(host: &str, allowed: &[String]) -> bool {
    let Some(name) = name_of(host) else { return false };
    is_loopback(name)
        || allowed.iter().any(|a| a == "*" || a.eq_ignore_ascii_case(host) || a.eq_ignore_ascii_case(name))
}

fn origin_allowed(origin: &str, allowed: &[String]) -> bool {
    let host = match origin.split_once("://") {
        // Other schemes are those of apps and extensions, whose hosts are names of their own.
        Some(("http" | "https", host)) => name_of(host),
        _ => None,
    };
    host.is_some_and(is_loopback) || allowed.iter().any(|a| a == "*" || a.eq_ignore_ascii_case(origin))
}

/// The name in `name[:port]`; an IPv6 address is in brackets and keeps them.
fn name_of(host: &str) -> Option<&str> {
    let end = if host.starts_with('[') { host.find(']')? + 1 } else { host.find(':').unwrap_or(host.len()) };
    let (name, port) = host.split_at(end);
    let port_is_sound = match port.strip_prefix(':') {
        Some(digits) => digits.bytes().all(|b| b.is_ascii_digit()),
        None => port.is_empty(),
    };
    (port_is_sound && !name.is_empty()).then_some(name)
}

fn is_loopback(name: &str) -> bool {
    if name == "127.0.0.1" || name.eq_ignore_ascii_case("localhost") {
        return true;
    }
    let bare = name.strip_prefix('[').and_then(|n| n.strip_suffix(']')).unwrap_or(name);
    bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_hosts_pass_with_any_port() {
        for host in ["localhost", "LOCALHOST:80", "127.0.0.1:1", "127.1.2.3", "[::1]", "[::1]:8080", "localhost:"] {
            assert!(host_allowed(host, &[]), "{host}");
        }
    }

    #[test]
    fn other_hosts_need_to_be_named() {
        let others = [
            "",
            "evil.example.com",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "[::2]",
            "[::1",
            "localhost:80x",
            "localhost@evil.example",
            "[::1]evil.example",
        ];
        for host in others {
            assert!(!host_allowed(host, &[]), "{host}");
        }
        let allowed = ["mcp.example".to_owned(), "one.example:8080".to_owned()];
        assert!(host_allowed("mcp.example:1234", &allowed));
        assert!(host_allowed("MCP.example", &allowed));
        assert!(host_allowed("one.example:8080", &allowed));
        assert!(!host_allowed("one.example:8081", &allowed));
        assert!(host_allowed("any.example", &["*".to_owned()]));
        assert!(!host_allowed("", &["*".to_owned()]));
    }

    #[test]
    fn a_host_is_a_name_and_a_port() {
        for host in ["localhost", "a.example:80", "[::1]:1", "10.0.0.1"] {
            assert!(is_host(host), "{host}");
        }
        for text in ["", "a b", "localhost, evil.example", "user@localhost", "localhost/evil", "[::1", "a:b", "mün"] {
            assert!(!is_host(text), "{text}");
        }
    }

    #[test]
    fn origins_are_compared_whole() {
        for origin in ["http://localhost:6274", "https://127.0.0.1", "http://[::1]:3000"] {
            assert!(origin_allowed(origin, &[]), "{origin}");
        }
        for origin in [
            "null",
            "",
            "http://evil.example.com",
            "http://localhost.evil.example",
            "localhost",
            "evil://localhost",
            "chrome-extension://127.0.0.1",
            "http://evil@localhost",
            "http://localhost/evil",
            "http://evil://localhost",
        ] {
            assert!(!origin_allowed(origin, &[]), "{origin}");
        }
        let allowed = ["https://app.example".to_owned()];
        assert!(origin_allowed("https://app.example", &allowed));
        assert!(!origin_allowed("http://app.example", &allowed));
        assert!(!origin_allowed("https://app.example:444", &allowed));
    }
}
