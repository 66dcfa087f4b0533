//! What the reading of configurations may know of the machine: made by `cli` from the real thing, by tests as they like.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The value of a variable by its name.
type Lookup = dyn Fn(&str) -> Option<String> + Send + Sync;

/// The user's home, the project's directory, and the variables.
#[derive(Clone)]
pub struct Environment {
    pub home: Option<PathBuf>,
    /// The project: where we were started.
    pub cwd: PathBuf,
    variables: Arc<Lookup>,
}

impl Environment {
    pub fn new(
        home: Option<PathBuf>,
        cwd: PathBuf,
        variables: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Environment {
        Environment { home, cwd, variables: Arc::new(variables) }
    }

    /// The value of a variable, if it is set.
    pub fn variable(&self, name: &str) -> Option<String> {
        (self.variables)(name)
    }

    /// Where the user's configurations are.
    pub(super) fn config_home(&self) -> Option<PathBuf> {
        self.base("XDG_CONFIG_HOME", ".config")
    }

    /// Where catalogues are kept between runs.
    pub fn cache_dir(&self) -> Option<PathBuf> {
        Some(self.base("XDG_CACHE_HOME", ".cache")?.join("mcpwire"))
    }

    fn base(&self, variable: &str, below_home: &str) -> Option<PathBuf> {
        // The specification of these variables has relative paths ignored.
        let named = self.variable(variable).map(PathBuf::from).filter(|path| path.is_absolute());
        named.or_else(|| Some(self.home.as_ref()?.join(below_home)))
    }

    /// A path as a person would write it.
    pub fn shown(&self, path: &Path) -> String {
        if let Ok(below) = path.strip_prefix(&self.cwd) {
            return below.display().to_string();
        }
        match self.home.as_ref().and_then(|home| path.strip_prefix(home).ok()) {
            Some(below) => format!("~/{}", below.display()),
            None => path.display().to_string(),
        }
    }
}

/// Variables are not shown: most secrets are in some.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment").field("home", &self.home).field("cwd", &self.cwd).finish_non_exhaustive()
    }
}
