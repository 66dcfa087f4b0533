//! `mcpwire.toml`: who the server says it is, how its URIs begin, and its limits.

use serde::Deserialize;

use super::flaw::Flaw;

pub(super) const FILE: &str = "mcpwire.toml";

/// The categories of resources in the order in which their files are listed.
const CATEGORIES: [&str; 6] = ["examples", "patterns", "guides", "workflows", "agents", "skills"];

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Config {
    pub(super) name: String,
    pub(super) title: Option<String>,
    pub(super) version: String,
    pub(super) instructions: Option<String>,
    /// What resource URIs begin with.
    pub(super) scheme: String,
    /// Folders below `resources/` in the order of the list; others follow them.
    pub(super) categories: Vec<String>,
    pub(super) limits: Limits,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Limits {
    /// The largest prompt or resource, in bytes.
    pub(super) file: usize,
    /// The largest file of records, in bytes.
    pub(super) records_file: usize,
    /// How many entries a page of a list holds.
    pub(super) page: usize,
    /// How many records an answer holds if it was not asked for fewer.
    pub(super) records: usize,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            name: "mcpwire-folder".into(),
            title: None,
            version: env!("CARGO_PKG_VERSION").into(),
            instructions: None,
            scheme: "orchestr8".into(),
            categories: CATEGORIES.map(str::to_owned).to_vec(),
            limits: Limits::default(),
        }
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { file: 8 << 20, records_file: 1 << 30, page: 1000, records: 500 }
    }
}

impl Config {
    pub(super) fn parse(text: &str) -> Result<Config, Flaw> {
        let config: Config = toml::from_str(text).map_err(|e| {
            let line = e.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
            Flaw { line, reason: e.message().replace('\n', " ") }
        })?;
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<(), Flaw> {
        let mut scheme = self.scheme.bytes();
        let sound = scheme.next().is_some_and(|b| b.is_ascii_lowercase())
            && scheme.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"+-.".contains(&b));
        if !sound {
            return Err(Flaw::new(format!("expected a URI scheme as in \"orchestr8\", came {:?}", self.scheme)));
        }
        if self.name.trim().is_empty() {
            return Err(Flaw::new("expected a name, came an empty one"));
        }
        let Limits { file, records_file, page, records } = self.limits;
        if [file, records_file, page, records].contains(&0) {
            return Err(Flaw::new("expected limits above 0"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_has_its_default() {
        let config = Config::parse("name = \"acme\"\n[limits]\npage = 10\n").unwrap();
        assert_eq!((config.name.as_str(), config.scheme.as_str(), config.limits.page), ("acme", "orchestr8", 10));
        assert_eq!(config.limits.records, 500);
        assert_eq!(config.categories.len(), 6);
    }

    #[test]
    fn faults_name_their_line() {
        let flaw = Config::parse("name = \"acme\"\nnmae = 1\n").unwrap_err();
        assert_eq!(flaw.line, Some(2), "{flaw:?}");
        assert!(Config::parse("scheme = \"Bad Scheme\"").is_err());
        assert!(Config::parse("[limits]\npage = 0").is_err());
    }
}
