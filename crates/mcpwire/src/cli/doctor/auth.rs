//! A server that wants credentials: what it says of where they come from (2025-06-18, Authorization; RFC 9728).

use std::time::Duration;

use bytes::Bytes;
use http::header::WWW_AUTHENTICATE;
use http::{HeaderMap, Method};
use serde_json::{Value, json};
use url::Url;

use super::report::{Report, excerpt};
use crate::transport::http::client::{Options, Probe};

/// Where servers describe themselves as protected.
const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// Tells of a 401, with all hints there are.
pub(super) async fn examine(options: &Options, answer: &HeaderMap, patience: Duration, report: &mut Report) {
    let challenge = answer.get(WWW_AUTHENTICATE).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let given = options.headers.contains_key(http::header::AUTHORIZATION);
    let mut facts = json!({"required": true, "given": given});
    let text = match given {
        true => "the server does not take the credentials that it was given (HTTP 401)",
        false => "the server wants credentials (HTTP 401)",
    };
    let advice = match given {
        true => "check that the token is meant for this server, and that it has not expired",
        false => "give them with --header 'Authorization: Bearer ${TOKEN}'",
    };
    report.bad("unauthorized", text, advice);
    match &challenge {
        Some(challenge) => {
            facts["challenge"] = challenge.as_str().into();
            report.note("challenge", format!("it says WWW-Authenticate: {}", excerpt(challenge)));
        }
        None => report.warn(
            "no-challenge",
            "it does not say which credentials it wants",
            "a server should send WWW-Authenticate with its 401, so that clients can find out",
        ),
    }
    let named = challenge.as_deref().and_then(|challenge| parameter(challenge, "resource_metadata"));
    let (places, elsewhere) = places(&options.url, named.as_deref());
    if let Some(url) = elsewhere {
        // It may name any address in our network, and would be told what is there.
        let host = url.origin().ascii_serialization();
        facts["metadataElsewhere"] = host.as_str().into();
        report.note("metadata-elsewhere", format!("it says that its metadata are at {host}, which was not asked"));
    }
    for url in places {
        if let Some(metadata) = fetch(options, &url, patience).await {
            tell(&url, &metadata, report);
            facts["metadata"] = metadata;
            facts["metadataUrl"] = url.as_str().into();
            break;
        }
    }
    if facts.get("metadata").is_none() {
        let text = "it publishes no protected-resource metadata, so clients cannot find out where tokens are issued";
        report.note("no-metadata", text);
    }
    report.fact("auth", facts);
}

fn tell(url: &Url, metadata: &Value, report: &mut Report) {
    let texts = |name: &str| {
        let values = metadata[name].as_array().into_iter().flatten().filter_map(Value::as_str);
        values.collect::<Vec<_>>().join(", ")
    };
    let issuers = texts("authorization_servers");
    let scopes = texts("scopes_supported");
    let mut text = format!("its metadata at {} name", crate::target::without_secrets(url));
    text.push_str(&if issuers.is_empty() {
        " no authorization server".to_owned()
    } else {
        format!(" {issuers} as issuer of tokens")
    });
    if !scopes.is_empty() {
        text.push_str(&format!("; scopes: {scopes}"));
    }
    report.note("metadata", text);
}

/// Where the metadata may be: where the server says, else where everybody looks. What it says is followed on its own origin
/// only; another place is given apart.
fn places(server: &Url, named: Option<&str>) -> (Vec<Url>, Option<Url>) {
    let at = |path: &str| {
        let mut url = server.clone();
        url.set_path(path);
        url.set_query(None);
        url
    };
    let path = server.path().trim_end_matches('/');
    let named = named.and_then(|named| server.join(named).ok()).filter(|url| matches!(url.scheme(), "http" | "https"));
    let (named, elsewhere) = match named {
        Some(url) if url.origin() == server.origin() => (Some(url), None),
        other => (None, other),
    };
    let mut places: Vec<Url> = named.into_iter().chain([at(&format!("{WELL_KNOWN}{path}")), at(WELL_KNOWN)]).collect();
    places.dedup();
    (places, elsewhere)
}

async fn fetch(options: &Options, url: &Url, patience: Duration) -> Option<Value> {
    // Metadata are public: what proves who we are goes to the server itself only.
    let options = Options { url: url.clone(), headers: HeaderMap::new(), ..options.clone() };
    let seen = Probe::new(options).ok()?.ask(Method::GET, &[], &Bytes::new(), |_| false, patience).await?.ok()?;
    let metadata: Value = serde_json::from_slice(&seen.body).ok()?;
    (seen.status.is_success() && metadata.is_object()).then_some(metadata)
}

/// A parameter of a challenge: `name="value"` or `name=value`.
fn parameter(challenge: &str, name: &str) -> Option<String> {
    let lower = challenge.to_ascii_lowercase();
    let sought = format!("{name}=");
    let mut places = lower.match_indices(&sought).map(|(at, _)| at);
    let start = places.find(|at| *at == 0 || matches!(lower.as_bytes()[at - 1], b' ' | b','))?;
    let rest = &challenge[start + name.len() + 1..];
    match rest.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next().map(str::to_owned),
        None => rest.split([',', ' ']).next().map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_found_in_a_challenge() {
        let challenge = r#"Bearer realm="x", Resource_Metadata="https://a.example/m, n" scope=a"#;
        assert_eq!(parameter(challenge, "resource_metadata").as_deref(), Some("https://a.example/m, n"));
        assert_eq!(parameter(challenge, "scope").as_deref(), Some("a"));
        assert_eq!(parameter(challenge, "metadata"), None);
    }

    #[test]
    fn metadata_are_looked_for_where_the_server_says_and_where_everybody_looks() {
        let server: Url = "https://a.example/team/mcp?x=1".parse().unwrap();
        let (found, elsewhere) = places(&server, Some("/meta"));
        assert_eq!(elsewhere, None);
        let found: Vec<String> = found.iter().map(Url::to_string).collect();
        let expected =
            ["/meta", "/.well-known/oauth-protected-resource/team/mcp", "/.well-known/oauth-protected-resource"];
        assert_eq!(found, expected.map(|path| format!("https://a.example{path}")));
        for other in ["http://169.254.169.254/meta", "https://a.example:444/meta", "http://a.example/meta"] {
            let (found, elsewhere) = places(&server, Some(other));
            assert_eq!(elsewhere.map(String::from).as_deref(), Some(other));
            assert!(found.iter().all(|url| url.origin() == server.origin()), "{found:?}");
        }
    }
}
