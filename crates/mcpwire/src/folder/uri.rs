//! The URIs of a folder: written for paths, and read back without ever becoming a path of the disk.
//!
//! What is read is only ever compared with the names of known files, so nothing in a URI can lead anywhere else.

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use url::form_urlencoded;

/// What may stand in a path segment as it is: RFC 3986 `pchar`, without what readers of URIs stumble over.
const SEGMENT: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'/')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// The last part of a URI that asks for a match.
pub(super) const MATCH: &str = "match";
pub(super) const REGISTRY: &str = "registry";

/// What a URI asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    /// A name without slashes: the registry, or a category.
    Name(String),
    /// A file, by its decoded path.
    Path(String),
    /// Whatever fits a query, in one category or in all.
    Match { category: Option<String>, query: Option<String> },
}

/// Writes the URI of a path.
pub(super) fn write(scheme: &str, path: &str) -> String {
    let segments: Vec<String> = path.split('/').map(|part| utf8_percent_encode(part, SEGMENT).to_string()).collect();
    format!("{scheme}://{}", segments.join("/"))
}

/// Reads a URI of this scheme; `None` if it can name nothing here.
pub(super) fn read(scheme: &str, uri: &str) -> Option<Target> {
    let (found, rest) = uri.split_once("://")?;
    if !found.eq_ignore_ascii_case(scheme) {
        return None;
    }
    let (path, query) = match rest.split_once('?') {
        Some((path, query)) => (path, Some(query.to_owned())),
        None => (rest, None),
    };
    let path = path.strip_suffix('/').unwrap_or(path);
    let segments: Vec<String> = path.split('/').map(segment).collect::<Option<_>>()?;
    match segments.as_slice() {
        [name] if name == MATCH => Some(Target::Match { category: None, query }),
        [category, name] if name == MATCH => Some(Target::Match { category: Some(category.clone()), query }),
        _ if query.is_some() => None,
        [name] => Some(Target::Name(name.clone())),
        _ => Some(Target::Path(segments.join("/"))),
    }
}

/// One part of a path, decoded once. A part that would mean another place is no part.
fn segment(text: &str) -> Option<String> {
    let sound =
        text.split('%').skip(1).all(|after| after.len() >= 2 && after.bytes().take(2).all(|b| b.is_ascii_hexdigit()));
    if !sound || text.contains('#') {
        return None;
    }
    let decoded = percent_decode_str(text).decode_utf8().ok()?;
    let elsewhere = matches!(&*decoded, "" | "." | "..") || decoded.contains(['/', '\\', '\0']);
    (!elsewhere).then(|| decoded.into_owned())
}

/// The parameters of a query, the first of each name; `+` is a space.
pub(super) fn parameters(query: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        if !found.iter().any(|(known, _)| *known == name) {
            found.push((name.into_owned(), value.into_owned()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn path(uri: &str) -> Option<Target> {
        read("orchestr8", uri)
    }

    #[test]
    fn each_kind_is_told_apart() {
        let named = |name: &str| Some(Target::Name(name.into()));
        assert_eq!(path("orchestr8://registry"), named("registry"));
        assert_eq!(path("ORCHESTR8://agents/"), named("agents"));
        assert_eq!(path("orchestr8://Agents"), named("Agents"));
        assert_eq!(path("orchestr8://agents/_fragments/a%20b"), Some(Target::Path("agents/_fragments/a b".into())));
        let query = Some("query=a+b".to_owned());
        assert_eq!(path("orchestr8://match?query=a+b"), Some(Target::Match { category: None, query: query.clone() }));
        let category = Some("agents".to_owned());
        assert_eq!(
            path("orchestr8://agents/match?query=a+b"),
            Some(Target::Match { category: category.clone(), query })
        );
        assert_eq!(path("orchestr8://agents/match"), Some(Target::Match { category, query: None }));
    }

    #[test]
    fn nothing_leads_elsewhere() {
        let uris = [
            "orchestr8://agents/../../etc/passwd",
            "orchestr8://agents/%2e%2e/x",
            "orchestr8://agents/..%2f..%2fetc",
            "orchestr8://agents/a%5c..%5cb",
            "orchestr8://agents//etc/passwd",
            "orchestr8:///etc/passwd",
            "orchestr8://agents/a%00b",
            "orchestr8://agents/%zz",
            "orchestr8://agents/%",
            "orchestr8://agents/%ff",
            "orchestr8://agents/a#b",
            "orchestr8://agents/a?x=1",
            "file:///etc/passwd",
            "/etc/passwd",
            "not a uri",
            "orchestr8://",
            "",
        ];
        for uri in uris {
            assert_eq!(path(uri), None, "{uri}");
        }
    }

    #[test]
    fn parameters_are_decoded_once() {
        let found = parameters("query=100%2525+sure&tags=a%2Cb&query=second&empty");
        let expected = [("query", "100%25 sure"), ("tags", "a,b"), ("empty", "")];
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(parts in prop::collection::vec("[^/\\\\\0]{1,12}", 2..5)) {
            prop_assume!(!parts.iter().any(|part| part == "." || part == ".."));
            prop_assume!(parts.last().map(String::as_str) != Some(MATCH));
            let whole = parts.join("/");
            prop_assert_eq!(path(&write("orchestr8", &whole)), Some(Target::Path(whole)));
        }

        #[test]
        fn no_text_panics_or_climbs(text in "(orchestr8://)?[a-z%2eEfF./\\\\?#=&+ ]{0,60}") {
            if let Some(Target::Path(found)) = path(&text) {
                prop_assert!(found.split('/').all(|part| !part.is_empty() && part != "." && part != ".."));
            }
        }
    }
}
