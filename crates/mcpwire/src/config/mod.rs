//! Which servers there are: read from `mcp.json` files of many clients, expanded and checked, each with where it came from.
//!
//! Nothing here reads the environment or the arguments: `cli` does, and hands over an [`Environment`]. Nothing here
//! starts a server either; a [`Server`] says what it would take.

mod entry;
mod environment;
mod expand;
mod file;
pub(crate) mod jsonc;
mod outline;
mod place;
mod secret;
mod target;
#[cfg(test)]
mod tests;
mod watch;

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use url::Url;

pub use self::environment::Environment;
pub use self::secret::{Resolver, Secret, Value};
pub use self::watch::Watch;

use self::entry::Outcome;
use self::file::{Entry, Fault};
use self::place::Place;

/// A server as it is configured, expanded and checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Server {
    pub name: String,
    pub source: Source,
    /// SHA-256 of the entry as it is written, with sorted keys: no variable and no secret has a part in it.
    pub hash: String,
    pub transport: Transport,
    /// How long a request may take; not said if the default is to hold.
    pub timeout: Option<Duration>,
    /// The protocol version to speak, if one is laid down.
    pub protocol: Option<&'static str>,
    /// Patterns of the tools that are offered; all, if there are none. `*` stands for any characters.
    pub include: Vec<String>,
    /// Patterns of tools that are not.
    pub exclude: Vec<String>,
}

impl Server {
    /// Whether commands have to be run to know all of its values, which takes time.
    pub fn runs_commands(&self) -> bool {
        let values = match &self.transport {
            Transport::Stdio(program) => &program.env,
            Transport::Http(remote) | Transport::Sse(remote) => &remote.headers,
        };
        values.iter().any(|(_, value)| matches!(value, Value::Command(_)))
    }
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq)]
pub enum Transport {
    Stdio(Program),
    Http(Remote),
    Sse(Remote),
}

impl Transport {
    pub fn name(&self) -> &'static str {
        match self {
            Transport::Stdio(_) => "stdio",
            Transport::Http(_) => "http",
            Transport::Sse(_) => "sse",
        }
    }
}

/// A program on its stdin and stdout.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    pub command: String,
    pub args: Vec<Secret>,
    pub env: Vec<(String, Value)>,
    pub cwd: PathBuf,
    /// The command line without what may be secret in it.
    pub outline: String,
}

/// A server behind a URL.
#[derive(Clone, PartialEq)]
pub struct Remote {
    pub url: Url,
    /// The URL as it is written, with the names of variables and not their values, and without what may be secret in it.
    pub outline: String,
    pub headers: Vec<(String, Value)>,
}

/// The URL without what may be secret in it.
impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").field("url", &self.outline).field("headers", &self.headers).finish()
    }
}

/// Where a server is configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    pub path: PathBuf,
    /// Whose file it is, as in `claude`.
    pub client: &'static str,
    pub scope: Scope,
}

/// Who has a say in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The user has named it.
    Given,
    /// It is in the user's home, at a place where the user's programs keep such things.
    User,
    /// It is in the project, and may have come with it from anywhere.
    Project,
}

impl Scope {
    pub fn name(self) -> &'static str {
        match self {
            Scope::Given => "given",
            Scope::User => "user",
            Scope::Project => "project",
        }
    }

    /// Whether its values may be commands to run, or bare names of variables.
    fn may_resolve(self) -> bool {
        self != Scope::Project
    }
}

/// What is to be read.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// These files and no others, if there are any.
    pub files: Vec<PathBuf>,
    /// Take in the servers that the project brings along.
    pub project: bool,
}

/// What there is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    /// In the order of the places, then in that of the files.
    pub servers: Vec<Server>,
    /// What was left alone, and why.
    pub ignored: Vec<Ignored>,
}

/// A file, an entry, or a setting of an entry that was left alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Ignored {
    pub source: Source,
    /// The name of the server; none if it is the file.
    pub entry: Option<String>,
    pub why: Why,
}

impl fmt::Display for Ignored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.source.path.display())?;
        match (&self.entry, &self.why) {
            (None, why) | (Some(_), why @ Why::Invalid(_)) => write!(f, "{why}"),
            (Some(name), why) => write!(f, "Server \"{name}\": {why}"),
        }
    }
}

/// Why something was left alone.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Why {
    #[error("{0}")]
    Unreadable(String),
    #[error("goes on as it was before, because it cannot be read now: {0}")]
    Stale(String),
    #[error("{0}")]
    Invalid(String),
    #[error("disabled")]
    Disabled,
    #[error("shadowed by the one in {}", .0.path.display())]
    Shadowed(Source),
    #[error("came with the project, and is taken with --project only")]
    Project,
    /// The server itself is taken.
    #[error("{0}")]
    Setting(String),
}

impl Why {
    /// A word for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Why::Unreadable(_) => "unreadable",
            Why::Stale(_) => "stale",
            Why::Invalid(_) => "invalid",
            Why::Disabled => "disabled",
            Why::Shadowed(_) => "shadowed",
            Why::Project => "project",
            Why::Setting(_) => "setting",
        }
    }

    /// Whether somebody should mend something.
    pub fn is_fault(&self) -> bool {
        matches!(self, Why::Unreadable(_) | Why::Stale(_) | Why::Invalid(_) | Why::Setting(_))
    }
}

/// Reads what there is now.
pub fn load(environment: &Environment, options: &Options) -> Found {
    Loader::new(environment.clone(), options).load()
}

/// Reads again and again, and remembers what was good.
#[derive(Debug)]
struct Loader {
    environment: Environment,
    project: bool,
    places: Vec<Place>,
    /// The entries of each place when it could be read the last time.
    last: Vec<Option<Vec<Entry>>>,
}

impl Loader {
    fn new(environment: Environment, options: &Options) -> Loader {
        let places = match options.files.is_empty() {
            true => place::known(&environment),
            false => options.files.iter().map(|file| place::given(file, &environment)).collect(),
        };
        let last = vec![None; places.len()];
        Loader { environment, project: options.project, places, last }
    }

    fn load(&mut self) -> Found {
        let mut found = Found::default();
        let mut claims = HashMap::new();
        let mut had_servers = false;
        for (place, last) in self.places.iter().zip(&mut self.last) {
            if place.stands_in && had_servers {
                continue;
            }
            // A pipe says what it has to say once.
            if last.is_none() || !place.is_pipe() {
                match file::read(place, &self.environment) {
                    Ok(entries) => *last = entries,
                    Err(Fault(why)) => {
                        let why = if last.is_some() { Why::Stale(why) } else { Why::Unreadable(why) };
                        let ignored = Ignored { source: place.source.clone(), entry: None, why };
                        // One file can have two places.
                        if !found.ignored.contains(&ignored) {
                            found.ignored.push(ignored);
                        }
                    }
                }
            }
            let entries = last.as_deref().unwrap_or_default();
            had_servers = !entries.is_empty();
            for entry in entries {
                self::claim(entry, &place.source, self.project, &self.environment, &mut claims, &mut found);
            }
        }
        found
    }
}

/// The first to have a name has it. What is disabled has its name, too, so that a server can be switched off by a nearer file;
/// what is broken, or may not be taken, leaves it to others.
fn claim(
    entry: &Entry,
    source: &Source,
    project: bool,
    environment: &Environment,
    claims: &mut HashMap<String, Source>,
    found: &mut Found,
) {
    let mut ignore = |why| found.ignored.push(Ignored { source: source.clone(), entry: Some(entry.name.clone()), why });
    if source.scope == Scope::Project && !project {
        return ignore(Why::Project);
    }
    if let Some(first) = claims.get(&entry.name) {
        return ignore(Why::Shadowed(first.clone()));
    }
    let (outcome, notes) = entry::read(entry, source, environment);
    if !matches!(outcome, Outcome::Invalid(_)) {
        claims.insert(entry.name.clone(), source.clone());
    }
    match outcome {
        Outcome::Invalid(why) => ignore(Why::Invalid(why)),
        Outcome::Disabled => ignore(Why::Disabled),
        Outcome::Server(server) => {
            notes.into_iter().for_each(|note| ignore(Why::Setting(note)));
            found.servers.push(*server);
        }
    }
}
