//! Tables in and out of TOML.

use proptest::prelude::*;

use super::*;

fn entry() -> Entry {
    Entry { typed: false, command: "/m".to_owned(), args: vec!["connect".to_owned(), "x \"y\"".to_owned()] }
}

const BLOCK: &str = "[mcp_servers.n]\ncommand = \"/m\"\nargs = [\"connect\", \"x \\\"y\\\"\"]\n";

#[track_caller]
fn check(before: &str, after: &str) {
    assert_eq!(put(before, "mcp_servers", "n", &entry()).unwrap(), after);
}

#[test]
fn a_table_goes_in_at_the_end_and_out_again() {
    for before in ["model = \"o\" # mine\n", "[mcp_servers.a]\ncommand = \"a\"\n", "a = '''\n[mcp_servers.n]\n'''\n"] {
        let after = format!("{before}\n{BLOCK}");
        check(before, &after);
        assert_eq!(remove(&after, "mcp_servers", "n").unwrap(), before);
    }
    check("", BLOCK);
    check("a = 1", &format!("a = 1\n\n{BLOCK}"));
}

#[test]
fn a_table_of_the_name_is_replaced_with_its_own_tables() {
    let before = "a = 1\n[mcp_servers.n]\ncommand = \"z\"\n[mcp_servers.n.env]\nX = \"1\" # x\n# next\n[b]\nc = 1\n";
    check(before, &format!("a = 1\n{BLOCK}# next\n[b]\nc = 1\n"));
    assert_eq!(remove(before, "mcp_servers", "n").unwrap(), "a = 1\n# next\n[b]\nc = 1\n");
}

#[test]
fn line_ends_stay() {
    let made = put("a = 1\r\n", "mcp_servers", "n", &entry()).unwrap();
    assert!(!made.replace("\r\n", "").contains('\n'), "{made:?}");
}

#[test]
fn what_is_not_understood_is_refused_with_its_line() {
    for (text, line, what) in [
        ("a = 1\nb =\n", 2, "value"),
        ("a = 1\nmcp_servers = 5\n", 2, "by hand"),
        ("\nmcp_servers = {a = {command = \"x\"}}\n", 2, "by hand"),
        ("[mcp_servers]\nn = {command = \"x\"}\n", 2, "by hand"),
        ("mcp_servers.n.command = \"x\"\n", 1, "by hand"),
    ] {
        let fault = put(text, "mcp_servers", "n", &entry()).unwrap_err();
        assert_eq!(fault.line, line, "{text}: {fault}");
        assert!(fault.what.contains(what), "{text}: {fault}");
    }
}

proptest! {
    #[test]
    fn nothing_else_is_ever_changed(parts in prop::collection::vec(0usize..8, 0..8)) {
        let all = ["# note", "", "[t0]", "k = \"[x]\"", "l = [\n 1, # one\n]", "[mcp_servers.b]", "m = '''\n[mcp_servers.n]\n'''", "[[l2]]"];
        let text: String = parts.iter().map(|part| format!("{}\n", all[*part])).collect();
        let Ok(before) = toml::from_str::<Table>(&text) else { return Ok(()) };
        let made = put(&text, "mcp_servers", "n", &entry()).unwrap();
        prop_assert!(made.starts_with(&text));
        let without = remove(&made, "mcp_servers", "n").unwrap();
        prop_assert_eq!(&without, &text);
        prop_assert_eq!(toml::from_str::<Table>(&without).unwrap(), before);
    }
}
