//! What can be shown of a command line or a URL although there may be secrets in it.

use std::path::Path;

use super::expand::names_only;
use crate::target::text_without_secrets;

/// Programs whose first argument is what they are to run.
const RUNNERS: [&str; 9] = ["npx", "bunx", "uvx", "pipx", "node", "bun", "deno", "python", "python3"];
const HIDDEN: &str = "…";

/// Options that have no value, so that what follows is still what to run.
const BARE: [&str; 4] = ["-y", "--yes", "-q", "--quiet"];

/// The program, the names of its options, and what a runner is to run. Anything else may be a token or hold a password.
pub(super) fn command(command: &str, args: &[String]) -> String {
    let name = Path::new(command).file_name().and_then(|name| name.to_str()).unwrap_or(command);
    let mut is_next_to_run = RUNNERS.contains(&name);
    let mut shown = command.to_owned();
    for arg in args {
        let is_option = arg.strip_prefix("--").is_some_and(is_word) || (arg.len() == 2 && arg.starts_with('-'));
        let part = if is_option {
            is_next_to_run &= BARE.contains(&arg.as_str());
            arg.clone()
        } else if std::mem::take(&mut is_next_to_run) && !arg.contains([':', '=', '$', ' ']) {
            arg.clone()
        } else {
            let option = arg.split_once('=').filter(|(name, _)| name.strip_prefix("--").is_some_and(is_word));
            option.map_or(HIDDEN.to_owned(), |(name, _)| format!("{name}={HIDDEN}"))
        };
        shown.push(' ');
        shown.push_str(&part);
    }
    shown
}

/// The URL as it is written: variables by their names, and neither passwords nor queries.
pub(super) fn url(written: &str) -> String {
    text_without_secrets(&names_only(written))
}

fn is_word(text: &str) -> bool {
    text.len() <= 32 && text.bytes().all(|b| b.is_ascii_lowercase() || b == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &[&str], expected: &str) {
        let args: Vec<String> = line[1..].iter().map(|&arg| arg.to_owned()).collect();
        assert_eq!(command(line[0], &args), expected);
    }

    #[test]
    fn enough_is_shown_to_know_a_server_by() {
        check(
            &["npx", "-y", "@modelcontextprotocol/server-everything"],
            "npx -y @modelcontextprotocol/server-everything",
        );
        check(&["/usr/bin/python3", "server.py", "--port", "80"], "/usr/bin/python3 server.py --port …");
        check(&["my-server"], "my-server");
    }

    #[test]
    fn a_url_is_shown_with_the_names_of_its_variables() {
        assert_eq!(url("https://u:${PW}@h.example/${TOKEN:-x?y}/mcp?k=s3cret"), "https://h.example/${TOKEN}/mcp?...");
        assert_eq!(url("${URL:-https://u:pw@h/?k=v}"), "${URL}");
    }

    #[test]
    fn what_may_be_secret_is_not_shown() {
        check(&["npx", "-y", "server-postgres", "postgres://u:pw@h/d"], "npx -y server-postgres …");
        check(
            &["npx", "mcp-remote", "https://h/?k=v", "--header", "Authorization: s3cret"],
            "npx mcp-remote … --header …",
        );
        check(&["server", "s3cret", "--api-key=s3cret", "-ps3cret", "--S3CRET"], "server … --api-key=… … …");
        check(&["npx", "-p", "s3cret", "--token", "s3cret"], "npx -p … --token …");
        check(&["python", "--token", "s3cret"], "python --token …");
    }
}
