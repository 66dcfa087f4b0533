//! Values that may be secret, and what they turn into right before they are used.

use std::collections::HashMap;
use std::fmt;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::sync::OnceCell;

use super::environment::Environment;

/// How long a command may take to print a value.
const COMMAND_LIMIT: Duration = Duration::from_secs(10);
/// More than any header or variable can hold.
const LONGEST_VALUE: u64 = 64 << 10;

/// Text that no log and no report shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// The value of a variable or a header as it is configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// As it is.
    Text(Secret),
    /// The name of one of our variables if one is called so, else as it is.
    Name(Secret),
    /// What this shell command prints.
    Command(Secret),
    /// There is nothing to be given.
    Nothing,
}

/// Turns configured values into real ones. What a command printed is kept; clones share it.
#[derive(Debug, Clone)]
pub struct Resolver {
    environment: Environment,
    printed: Arc<Mutex<HashMap<String, Arc<OnceCell<Secret>>>>>,
    limit: Duration,
}

impl Resolver {
    pub fn new(environment: Environment) -> Resolver {
        Resolver { environment, printed: Arc::default(), limit: COMMAND_LIMIT }
    }

    /// `None` if the variable or header is to be left out.
    pub async fn resolve(&self, value: &Value) -> Option<Secret> {
        match value {
            Value::Text(text) => Some(text.clone()),
            Value::Name(name) => {
                Some(self.environment.variable(name.reveal()).map_or_else(|| name.clone(), Secret::new))
            }
            Value::Command(command) => self.printed_by(command.reveal()).await,
            Value::Nothing => None,
        }
    }

    /// However many ask at once, the command runs once; it is run again only if it failed.
    async fn printed_by(&self, command: &str) -> Option<Secret> {
        let cell = {
            let mut printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(printed.entry(command.to_owned()).or_default())
        };
        match cell.get_or_try_init(|| run(command, &self.environment, self.limit)).await {
            Ok(secret) => Some(secret.clone()),
            Err(why) => {
                tracing::warn!(target: "config", "a command for a value is of no use, so the value is left out: {why}");
                None
            }
        }
    }
}

/// What a shell command prints, trimmed. Nothing of it is told in errors.
async fn run(command: &str, environment: &Environment, limit: Duration) -> Result<Secret, String> {
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(command).current_dir(&environment.cwd);
    shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true).process_group(0);
    let mut child = shell.spawn().map_err(|e| format!("cannot start a shell: {e}"))?;
    // Whatever the command has left running ends with it.
    let _group = Group(child.id().and_then(|id| Pid::from_raw(id.cast_signed())));
    let Some(stdout) = child.stdout.take() else { return Err("its output cannot be read".to_owned()) };
    let work = async {
        let text = read(stdout).await?;
        let status = child.wait().await.map_err(|e| e.to_string())?;
        if status.success() { Ok(text) } else { Err(format!("it ended with {status}")) }
    };
    let text = tokio::time::timeout(limit, work).await.map_err(|_| format!("it took longer than {limit:?}"))??;
    match text.trim() {
        "" => Err("it printed nothing".to_owned()),
        text => Ok(Secret::new(text)),
    }
}

async fn read(stdout: impl AsyncRead + Unpin) -> Result<String, String> {
    let mut bytes = Vec::new();
    stdout.take(LONGEST_VALUE + 1).read_to_end(&mut bytes).await.map_err(|e| e.to_string())?;
    if bytes.len() as u64 > LONGEST_VALUE {
        return Err(format!("it printed more than {LONGEST_VALUE} bytes"));
    }
    String::from_utf8(bytes).map_err(|_| "it printed no text".to_owned())
}

struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(pid) = self.0 {
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolver() -> Resolver {
        let variable = |name: &str| (name == "MY_TOKEN").then(|| "t0p".to_owned());
        Resolver::new(Environment::new(None, std::env::temp_dir(), variable))
    }

    async fn printed(resolver: &Resolver, command: &str) -> Option<String> {
        resolver.resolve(&Value::Command(Secret::new(command))).await.map(|secret| secret.reveal().to_owned())
    }

    #[tokio::test]
    async fn a_name_stands_for_a_variable_if_there_is_one() {
        let name = |text: &str| Value::Name(Secret::new(text));
        assert_eq!(resolver().resolve(&name("MY_TOKEN")).await.unwrap().reveal(), "t0p");
        assert_eq!(resolver().resolve(&name("literal")).await.unwrap().reveal(), "literal");
        assert_eq!(resolver().resolve(&Value::Text(Secret::new("MY_TOKEN"))).await.unwrap().reveal(), "MY_TOKEN");
    }

    #[tokio::test]
    async fn what_a_command_prints_is_trimmed_and_kept() {
        let resolver = resolver();
        let file = std::env::temp_dir().join(format!("mcpwire-runs-{:016x}", fastrand::u64(..)));
        let command = format!("echo x >> {0}; echo '  s3cret '", file.display());
        let (first, second) = tokio::join!(printed(&resolver, &command), printed(&resolver, &command));
        assert_eq!((first.as_deref(), second.as_deref()), (Some("s3cret"), Some("s3cret")));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "x\n", "it ran once");
        std::fs::remove_file(file).unwrap();
    }

    #[tokio::test]
    async fn failures_drop_the_value_and_are_tried_again() {
        let resolver = resolver();
        let file = std::env::temp_dir().join(format!("mcpwire-later-{:016x}", fastrand::u64(..)));
        let command = format!("cat {}", file.display());
        assert_eq!(printed(&resolver, &command).await, None);
        std::fs::write(&file, "now").unwrap();
        assert_eq!(printed(&resolver, &command).await.as_deref(), Some("now"));
        std::fs::remove_file(file).unwrap();
        assert_eq!(printed(&resolver, "echo").await, None, "nothing printed");
        assert_eq!(printed(&resolver, "echo x; exit 3").await, None, "failed");
        assert_eq!(printed(&resolver, "yes").await, None, "too much");
        assert_eq!(printed(&resolver, "printf '\\377'").await, None, "no text");
    }

    #[tokio::test]
    async fn a_command_that_hangs_is_given_up_with_all_it_started() {
        let resolver = Resolver { limit: Duration::from_millis(100), ..resolver() };
        let file = std::env::temp_dir().join(format!("mcpwire-pid-{:016x}", fastrand::u64(..)));
        assert_eq!(printed(&resolver, &format!("sleep 60 & echo $! > {}; wait", file.display())).await, None);
        let pid = std::fs::read_to_string(&file).unwrap();
        let stat = format!("/proc/{}/stat", pid.trim());
        let gone = || std::fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z"));
        while !gone() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        std::fs::remove_file(file).unwrap();
    }

    #[test]
    fn secrets_are_not_shown() {
        let text = format!("{:?}", [Value::Text(Secret::new("s3cret")), Value::Command(Secret::new("cat s3cret"))]);
        assert!(!text.contains("s3cret"), "{text}");
    }
}
