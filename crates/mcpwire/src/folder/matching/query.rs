//! What a match URI asks for.

use super::fragment::kind;
use crate::folder::uri;

const MAX_TOKENS: u64 = 3000;
const MAX_RESULTS: usize = 15;
const MIN_SCORE: u32 = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::folder) enum Mode {
    /// A list of what fits, to choose from.
    Catalog,
    /// The texts themselves, as far as the budget goes.
    Full,
    /// A short list by the prepared index of scenarios.
    Index,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::folder) struct Query {
    pub(in crate::folder) text: String,
    pub(in crate::folder) mode: Mode,
    pub(in crate::folder) max_tokens: u64,
    pub(in crate::folder) max_results: usize,
    pub(in crate::folder) min_score: u32,
    /// Tags that a fragment must have.
    pub(in crate::folder) tags: Vec<String>,
    /// Kinds that are preferred: `agent`. In index mode only these are searched.
    pub(in crate::folder) kinds: Vec<String>,
    /// The folder that alone is searched: `agents`.
    pub(in crate::folder) folder: Option<String>,
}

impl Query {
    /// Reads the part of a URI behind the question mark. The error is a text for the client.
    pub(in crate::folder) fn read(folder: Option<&str>, query: Option<&str>) -> Result<Query, String> {
        let parameters = uri::parameters(query.unwrap_or_default());
        let value = |name: &str| {
            parameters
                .iter()
                .find(|(known, _)| known == name)
                .map(|(_, value)| value.as_str())
                .filter(|v| !v.is_empty())
        };
        let text = value("query").map(str::trim).filter(|text| !text.is_empty());
        let Some(text) = text else {
            return Err("Invalid dynamic URI. \"query\" parameter is required for match URIs.".to_owned());
        };
        let number = |name: &str| match value(name).map(|text| (text, leading_number(text))) {
            None => Ok(None),
            Some((_, Some(number))) => Ok(Some(number)),
            Some((text, None)) => {
                let came: String = text.chars().take(60).collect();
                Err(format!("Invalid {name} parameter. Expected number, got: {came}"))
            }
        };
        let list = |name: &str| {
            let items = value(name).unwrap_or_default().split(',').map(str::trim);
            items.filter(|item| !item.is_empty()).map(str::to_owned).collect::<Vec<_>>()
        };
        Ok(Query {
            text: text.to_owned(),
            mode: match value("mode") {
                Some("full") => Mode::Full,
                Some("index") => Mode::Index,
                _ => Mode::Catalog,
            },
            max_tokens: number("maxTokens")?.filter(|n| *n > 0).unwrap_or(MAX_TOKENS),
            max_results: number("maxResults")?
                .filter(|n| *n > 0)
                .map_or(MAX_RESULTS, |n| usize::try_from(n).unwrap_or(usize::MAX)),
            min_score: number("minScore")?.map_or(MIN_SCORE, |n| u32::try_from(n).unwrap_or(u32::MAX)),
            tags: list("tags"),
            kinds: list("categories").iter().map(|name| kind(&name.to_lowercase()).to_owned()).collect(),
            folder: folder.map(str::to_owned),
        })
    }

    /// Whether resources of this folder and kind are among the `categories`, if there are any. This is a filter in index
    /// mode, both for the prepared index and for the matcher behind it; elsewhere it is a preference.
    pub(super) fn admits(&self, folder: &str, kind: &str) -> bool {
        let is_of = |wanted: &String| wanted == kind || folder.strip_suffix('s') == Some(wanted);
        self.kinds.is_empty() || self.kinds.iter().any(is_of)
    }

    /// Whether a kind is preferred. Where the kinds are a filter, all that is left has an equal right.
    pub(super) fn prefers(&self, kind: &str) -> bool {
        self.mode != Mode::Index && self.kinds.iter().any(|wanted| wanted == kind)
    }
}

/// The number a text begins with, whatever follows it.
fn leading_number(text: &str) -> Option<u64> {
    let text = text.trim_start();
    let digits = text.strip_prefix('+').unwrap_or(text);
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    match &digits[..end] {
        "" => None,
        number => Some(number.parse().unwrap_or(u64::MAX)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Result<Query, String> {
        Query::read(None, Some(query))
    }

    #[test]
    fn what_is_not_said_has_its_default() {
        let query = read("query=api").unwrap();
        assert_eq!((query.max_tokens, query.max_results, query.min_score), (3000, 15, 10));
        assert_eq!((query.mode, query.tags.len(), query.kinds.len()), (Mode::Catalog, 0, 0));
    }

    #[test]
    fn lists_numbers_and_modes() {
        let query =
            read("query=a+b&tags=x,%20y,,&categories=agent,skills,guide&maxTokens=12abc&minScore=0&mode=full").unwrap();
        assert_eq!((query.tags.join("|"), query.kinds.join("|")), ("x|y".into(), "agent|skill|guide".into()));
        assert_eq!((query.max_tokens, query.min_score, query.mode), (12, 0, Mode::Full));
        assert_eq!(read("query=a&mode=other").unwrap().mode, Mode::Catalog);
        assert_eq!(read("query=a&maxResults=99999999999999999999").unwrap().max_results, usize::MAX);
        assert_eq!(read("query=100%25+sure").unwrap().text, "100% sure");
    }

    #[test]
    fn faults_say_what_was_expected() {
        for query in ["", "query=", "query=+", "tags=a"] {
            assert!(read(query).unwrap_err().contains("\"query\" parameter is required"), "{query}");
        }
        let told = read("query=a&maxTokens=abc").unwrap_err();
        assert_eq!(told, "Invalid maxTokens parameter. Expected number, got: abc");
        assert!(read("query=a&maxResults=-1").is_err());
    }
}
