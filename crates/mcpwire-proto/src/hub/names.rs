//! Under which names the tools and prompts of many servers are offered. Who owns which is left to the merged catalogue.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::str::FromStr;

/// How a server's name becomes part of the names of its tools and prompts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Prefix {
    /// `server__tool`
    #[default]
    Always,
    /// `server__tool` where several servers have a tool of that name, `tool` elsewhere.
    Conflict,
    /// `tool`; later ones of the same name are numbered.
    Never,
    /// `mcp__server_tool`, of lower-case letters and underscores alone.
    Mcp,
}

impl Prefix {
    pub const ALL: [Prefix; 4] = [Prefix::Always, Prefix::Conflict, Prefix::Never, Prefix::Mcp];

    fn join(self, server: &str, item: &str, contested: bool) -> String {
        match self {
            Prefix::Never => item.to_owned(),
            Prefix::Conflict if !contested => item.to_owned(),
            Prefix::Always | Prefix::Conflict => format!("{}__{item}", plain(server)),
            Prefix::Mcp => {
                let server = lower(server, "server");
                let item = lower(item, "tool");
                let rest = item.strip_prefix(&server).and_then(|rest| rest.strip_prefix('_')).unwrap_or(&item);
                format!("mcp__{server}_{rest}")
            }
        }
    }

    /// The name of an item at its server, if this is a name that the server's items get; it need not be listed.
    pub(super) fn strip<'a>(self, server: &str, name: &'a str) -> Option<&'a str> {
        match self {
            Prefix::Always | Prefix::Conflict => name.strip_prefix(&plain(server))?.strip_prefix("__"),
            // Nothing to strip, or not reversible.
            Prefix::Never | Prefix::Mcp => None,
        }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Prefix::Always => "always",
            Prefix::Conflict => "conflict",
            Prefix::Never => "never",
            Prefix::Mcp => "mcp",
        })
    }
}

impl FromStr for Prefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Prefix, String> {
        let found = Prefix::ALL.into_iter().find(|prefix| prefix.to_string() == text);
        found.ok_or_else(|| format!("expected always, conflict, never or mcp, came {text:?}"))
    }
}

/// A name for each item, given as its server and its own name: different from all others, and the same whenever the
/// same items come in the same order.
pub(super) fn assign(prefix: Prefix, items: &[(&str, &str)], collisions: &mut BTreeSet<String>) -> Vec<String> {
    let mut owners: HashMap<&str, usize> = HashMap::new();
    items.iter().for_each(|(_, item)| *owners.entry(item).or_default() += 1);
    let wanted: Vec<String> = items
        .iter()
        .map(|(server, item)| prefix.join(server, item, owners.get(item).is_some_and(|n| *n > 1)))
        .collect();
    // Whoever comes first has the name itself; the numbers of others must not take a name that somebody has.
    let mut taken: HashSet<String> = wanted.iter().cloned().collect();
    let mut given: HashSet<&str> = HashSet::new();
    let mut names = Vec::with_capacity(wanted.len());
    for (name, (server, item)) in wanted.iter().zip(items) {
        if given.insert(name) {
            names.push(name.clone());
            continue;
        }
        let numbered = (2..).map(|number| format!("{name}_{number}")).find(|numbered| !taken.contains(numbered));
        let numbered = numbered.unwrap_or_default();
        collisions.insert(format!("{item:?} of {server} is offered as {numbered}: {name} is another's"));
        taken.insert(numbered.clone());
        names.push(numbered);
    }
    names
}

/// A server's name with the characters that a tool's name may have (2025-11-25, Tools).
pub(super) fn plain(server: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let name: String = server.chars().map(|c| if fits(c) { c } else { '_' }).collect();
    if name.is_empty() { "server".to_owned() } else { name }
}

/// Lower-case letters; runs of anything else are one underscore, and none stands at an end.
fn lower(text: &str, otherwise: &str) -> String {
    let lower = text.to_lowercase();
    let parts: Vec<&str> = lower.split(|c: char| !c.is_ascii_lowercase()).filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { otherwise.to_owned() } else { parts.join("_") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(prefix: Prefix, items: &[(&str, &str)]) -> Vec<String> {
        let mut collisions = BTreeSet::new();
        let names = assign(prefix, items, &mut collisions);
        let numbered = names.iter().filter(|name| collisions.iter().any(|told| told.contains(*name))).count();
        assert_eq!(collisions.is_empty(), numbered == 0);
        names
    }

    #[test]
    fn names_in_the_form_of_mcp() {
        for (server, tool, name) in [
            ("github", "create_issue", "mcp__github_create_issue"),
            ("GitHub", "CreateIssue", "mcp__github_createissue"),
            ("my-server.v2", "get-weather 3d", "mcp__my_server_v_get_weather_d"),
            ("github", "github_search", "mcp__github_search"),
            ("github", "github_github_x", "mcp__github_github_x"),
            ("github", "githubx", "mcp__github_githubx"),
            ("github", "GitHub-Search", "mcp__github_search"),
            ("123", "456", "mcp__server_tool"),
            ("", "", "mcp__server_tool"),
            ("__a__b__", "--c__d--", "mcp__a_b_c_d"),
            ("ünï", "çx", "mcp__n_x"),
        ] {
            assert_eq!(named(Prefix::Mcp, &[(server, tool)]), [name], "{server} {tool}");
        }
    }

    #[test]
    fn each_mode_names_in_its_way() {
        let items = [("a", "x"), ("a", "y"), ("b b", "x")];
        assert_eq!(named(Prefix::Always, &items), ["a__x", "a__y", "b_b__x"]);
        assert_eq!(named(Prefix::Conflict, &items), ["a__x", "y", "b_b__x"]);
        assert_eq!(named(Prefix::Never, &items), ["x", "y", "x_2"]);
        assert_eq!(named(Prefix::Mcp, &items), ["mcp__a_x", "mcp__a_y", "mcp__b_b_x"]);
    }

    #[test]
    fn a_number_never_takes_the_name_of_another() {
        let items = [("a", "x"), ("b", "x"), ("c", "x_2"), ("d", "x")];
        assert_eq!(named(Prefix::Never, &items), ["x", "x_3", "x_2", "x_4"]);
        assert_eq!(named(Prefix::Mcp, &[("a", "t1"), ("a", "t2")]), ["mcp__a_t", "mcp__a_t_2"]);
        assert_eq!(named(Prefix::Always, &[("a__b", "c"), ("a", "b__c")]), ["a__b__c", "a__b__c_2"]);
    }

    #[test]
    fn modes_are_read_as_they_are_written() {
        for prefix in Prefix::ALL {
            assert_eq!(prefix.to_string().parse(), Ok(prefix));
        }
        assert!("sometimes".parse::<Prefix>().is_err());
    }
}
