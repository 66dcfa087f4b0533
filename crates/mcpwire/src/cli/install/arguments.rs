//! The arguments of `install` as arguments of `connect` that mean the same wherever a client starts us.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{ArgMatches, Args as _, Command};

use super::super::address::is_name;
use super::super::connect;
use super::super::targets::of_command;

/// Our own flags with a value, and without.
const VALUED: [&str; 2] = ["--name", "--scope"];
const PLAIN: [&str; 3] = ["--dry-run", "--print", "--force"];
/// The arguments of `connect` that may be paths, by their names in clap.
const PATHS: [&str; 6] = ["target", "cwd", "ca", "client_cert", "client_key", "config"];

/// What `connect` is given.
#[derive(Debug)]
pub(super) struct Arguments {
    pub(super) args: Vec<OsString>,
    /// What a server may be called if nobody says.
    pub(super) name: String,
}

impl Arguments {
    /// Takes the arguments after `install CLIENT`, which clap has understood already.
    pub(super) fn read(argv: &[OsString], client: &str) -> Result<Arguments> {
        let mut own = own(argv, client);
        if own.is_empty() {
            own.push("sample:".into());
        }
        let command = connect::Args::augment_args(Command::new("connect").no_binary_name(true));
        let matches = command.try_get_matches_from(&own).map_err(|e| anyhow::anyhow!("{e}"))?;
        let here = std::env::current_dir().context("cannot tell the current directory")?;
        let name = name(&own, &matches);
        Ok(Arguments { args: absolute(own, &matches, &here), name })
    }

    pub(super) fn texts(self) -> Result<Vec<String>> {
        let text = |arg: OsString| arg.into_string().map_err(|arg| anyhow::anyhow!("expected UTF-8, came {arg:?}"));
        self.args.into_iter().map(text).collect()
    }
}

/// What is left when `mcpwire install CLIENT` and our own flags are gone.
fn own(argv: &[OsString], client: &str) -> Vec<OsString> {
    let mut rest = argv.iter().skip(2);
    let mut own = Vec::new();
    let mut named = false;
    while let Some(arg) = rest.next() {
        let text = arg.to_string_lossy();
        if text == "--" {
            own.push(arg.clone());
            own.extend(rest.cloned());
            break;
        }
        let flag = text.split('=').next().unwrap_or_default();
        match () {
            () if VALUED.contains(&flag) => drop((!text.contains('=')).then(|| rest.next())),
            () if PLAIN.contains(&&*text) => {}
            // The client is the first argument of its own: a value of the same text would follow its flag.
            () if !named && text == client => named = true,
            () => own.push(arg.clone()),
        }
    }
    own
}

fn absolute(own: Vec<OsString>, matches: &ArgMatches, here: &Path) -> Vec<OsString> {
    let paths: Vec<&OsStr> = PATHS.iter().filter_map(|id| matches.try_get_raw(id).ok().flatten()).flatten().collect();
    let split = own.iter().position(|arg| arg == "--");
    let (before, command) = own.split_at(split.unwrap_or(own.len()));
    let mut args: Vec<OsString> = before.iter().map(|arg| made_absolute(arg, &paths, here)).collect();
    if let [dashes, program, rest @ ..] = command {
        // A program is found, and finds its files, as it did when this was typed.
        let local = |arg: &OsString| !arg.is_empty() && Path::new(arg).is_relative() && here.join(arg).exists();
        let cwd = matches.try_get_raw("cwd").ok().flatten().is_some();
        if !cwd && rest.iter().any(local) {
            args.extend(["--cwd".into(), here.into()]);
        }
        let path = Path::new(program);
        let program = if path.is_relative() && path.components().count() > 1 && !cwd {
            tidy(&here.join(path)).into()
        } else {
            program.clone()
        };
        args.extend([dashes.clone(), program]);
        args.extend(rest.iter().cloned());
    }
    args
}

fn made_absolute(arg: &OsStr, paths: &[&OsStr], here: &Path) -> OsString {
    let Some(text) = arg.to_str() else { return arg.to_owned() };
    let (flag, value) = match text.split_once('=').filter(|_| text.starts_with("--")) {
        Some((flag, value)) => (format!("{flag}="), value),
        None => (String::new(), text),
    };
    if !paths.contains(&OsStr::new(value)) {
        return arg.to_owned();
    }
    // A target may be given a name: NAME=TARGET.
    let named = value.split_once('=').filter(|(name, _)| is_name(name));
    let (flag, value) = named.map_or((flag.clone(), value), |(name, value)| (format!("{flag}{name}="), value));
    let (scheme, path) = ["unix:", "folder:"]
        .iter()
        .find_map(|scheme| value.strip_prefix(scheme).map(|path| (*scheme, path)))
        .unwrap_or(("", value));
    let is_path = !scheme.is_empty() || here.join(path).exists();
    if !is_path || path.starts_with('~') || Path::new(path).is_absolute() || value == "sample:" {
        return arg.to_owned();
    }
    format!("{flag}{scheme}{}", tidy(&here.join(path)).display()).into()
}

/// Without `.` parts; `..` stays, since what it means depends on links.
fn tidy(path: &Path) -> PathBuf {
    path.components().collect()
}

/// A name from the target: the folder's, the host's, or the program's.
fn name(own: &[OsString], matches: &ArgMatches) -> String {
    let command: Vec<String> =
        own.iter().skip_while(|arg| *arg != "--").skip(1).map(|arg| arg.to_string_lossy().into_owned()).collect();
    let targets = matches.try_get_raw("target").ok().flatten().into_iter().flatten();
    let mut targets: Vec<String> = targets.map(|target| target.to_string_lossy().into_owned()).collect();
    if targets.len() + usize::from(!command.is_empty()) != 1 {
        return "mcpwire".to_owned();
    }
    let target = targets.pop();
    if let Some((name, _)) = target.as_ref().and_then(|target| target.split_once('=')).filter(|(name, _)| is_name(name))
    {
        return name.replace('.', "-");
    }
    let found = match target {
        Some(target) if target == "sample:" => "mybusiness".to_owned(),
        Some(target) => match url::Url::parse(&target).ok().filter(url::Url::has_host) {
            Some(url) => url.host_str().unwrap_or_default().to_owned(),
            None => {
                let path = target.split_once(':').map_or(target.as_str(), |(_, path)| path);
                let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.into());
                path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
            }
        },
        None => of_command(&command).unwrap_or_default(),
    };
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' };
    let name: String = found.chars().map(plain).take(100).collect();
    let name = name.trim_matches('-');
    if name.is_empty() { "mcpwire".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> (String, String) {
        let argv: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let read = Arguments::read(&argv, "cursor").unwrap();
        let name = read.name.clone();
        (name, read.texts().unwrap().join(" "))
    }

    #[test]
    fn own_flags_are_taken_out_wherever_they_are() {
        let line = "mcpwire install --name x cursor --dry-run https://a.example/mcp --scope=user -H X:1 --force";
        assert_eq!(read(line).1, "https://a.example/mcp -H X:1");
        let line = "mcpwire install cursor -- prog --name x cursor --print";
        assert_eq!(read(line).1, "-- prog --name x cursor --print");
    }

    #[test]
    fn paths_mean_the_same_everywhere() {
        let here = std::env::current_dir().unwrap();
        let here = here.display();
        assert_eq!(read("mcpwire install cursor ./src").1, format!("{here}/src"));
        assert_eq!(read("mcpwire install cursor folder:src --timeout 5s").1, format!("folder:{here}/src --timeout 5s"));
        assert_eq!(read("mcpwire install cursor a=./src sample:").1, format!("a={here}/src sample:"));
        assert_eq!(read("mcpwire install cursor unix:a.sock").1, format!("unix:{here}/a.sock"));
        assert_eq!(
            read("mcpwire install cursor https://x --ca=Cargo.toml").1,
            format!("https://x --ca={here}/Cargo.toml")
        );
        assert_eq!(read("mcpwire install cursor -- ./run it").1, format!("-- {here}/run it"));
        assert_eq!(read("mcpwire install cursor -- node src/lib.rs").1, format!("--cwd {here} -- node src/lib.rs"));
        assert_eq!(read("mcpwire install cursor -- npx -y pkg").1, "-- npx -y pkg");
    }

    #[test]
    fn a_server_is_called_after_its_target() {
        for (line, name) in [
            ("https://docs.example.com/mcp", "docs-example-com"),
            ("./src", "src"),
            ("-- npx -y @scope/server-everything@1.2 stdio", "server-everything"),
            ("-- uvx mcp-server-time", "mcp-server-time"),
            ("-- /opt/bin/thing.sh", "thing"),
            ("-- node build/index.js", "index"),
            ("sample:", "mybusiness"),
            ("docs=https://a.example", "docs"),
            ("sample: https://a.example", "mcpwire"),
            ("--all", "mcpwire"),
        ] {
            assert_eq!(read(&format!("mcpwire install cursor {line}")).0, name);
        }
    }
}
