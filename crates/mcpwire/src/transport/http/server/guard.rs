//! Who may talk to us: `Host` and `Origin` of every request, against web pages that reach for local servers, and the
//! token, if there is one.

use std::fmt;
use std::net::IpAddr;

use http::header::{AUTHORIZATION, HOST, ORIGIN, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{HeaderValue, StatusCode};

use subtle::ConstantTimeEq;

use super::answer::Refusal;
use super::options::Options;

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

/// Checks a request before anything else is done with it (2025-11-25, Transports, Security Warning).
pub(super) fn check_source(request: &Parts, options: &Options) -> Result<(), Refusal> {
    let host = match (request.headers.get(HOST), request.uri.authority()) {
        (Some(host), _) => host.to_str().unwrap_or_default(),
        (None, Some(authority)) => authority.as_str(),
        (None, None) => "",
    };
    if !host_allowed(host, &options.allowed_hosts) {
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

fn host_allowed(host: &str, allowed: &[String]) -> bool {
    let Some(name) = name_of(host) else { return false };
    is_loopback(name)
        || allowed.iter().any(|a| a == "*" || a.eq_ignore_ascii_case(host) || a.eq_ignore_ascii_case(name))
}

fn origin_allowed(origin: &str, allowed: &[String]) -> bool {
    let host = origin.split_once("://").and_then(|(_, host)| name_of(host));
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
    fn origins_are_compared_whole() {
        for origin in ["http://localhost:6274", "https://127.0.0.1", "http://[::1]:3000"] {
            assert!(origin_allowed(origin, &[]), "{origin}");
        }
        for origin in ["null", "", "http://evil.example.com", "http://localhost.evil.example", "localhost"] {
            assert!(!origin_allowed(origin, &[]), "{origin}");
        }
        let allowed = ["https://app.example".to_owned()];
        assert!(origin_allowed("https://app.example", &allowed));
        assert!(!origin_allowed("http://app.example", &allowed));
        assert!(!origin_allowed("https://app.example:444", &allowed));
    }
}
