//! Entries in and out of JSON with comments.

use proptest::prelude::*;

use super::*;

fn entry() -> Entry {
    Entry { typed: false, command: "/m".to_owned(), args: vec!["connect".to_owned(), "x".to_owned()] }
}

#[track_caller]
fn check(before: &str, after: &str) {
    let made = put(before, "mcpServers", "n", &entry()).unwrap();
    assert_eq!(made, after);
    assert_eq!(find(&made, "mcpServers", "n").unwrap(), Some(entry().value()));
}

#[track_caller]
fn check_both(before: &str, after: &str) {
    check(before, after);
    assert_eq!(remove(after, "mcpServers", "n").unwrap(), before);
}

const LINES: &str = "{\n      \"command\": \"/m\",\n      \"args\": [\"connect\", \"x\"]\n    }";

#[test]
fn an_entry_goes_behind_the_last() {
    check_both(
        "{\n  \"mcpServers\": {\n    \"a\": {}\n  }\n}\n",
        &format!("{{\n  \"mcpServers\": {{\n    \"a\": {{}},\n    \"n\": {LINES}\n  }}\n}}\n"),
    );
}

#[test]
fn comments_stay_with_what_they_are_about() {
    check_both(
        "// top\n{\n  \"mcpServers\": {\n    \"a\": 1 // one\n    // end\n  },\n  \"b\": /* b */ 2\n}",
        &format!(
            "// top\n{{\n  \"mcpServers\": {{\n    \"a\": 1, // one\n    \"n\": {LINES}\n    // end\n  }},\n  \"b\": /* b */ 2\n}}"
        ),
    );
    check(
        "{\n  \"mcpServers\": {\n    // none yet\n  }\n}",
        &format!("{{\n  \"mcpServers\": {{\n    // none yet\n    \"n\": {LINES}\n  }}\n}}"),
    );
}

#[test]
fn trailing_commas_stay_and_are_taken_up() {
    let entry = LINES.replace("]\n", "],\n");
    check_both(
        "{\n  \"mcpServers\": {\n    \"a\": {},\n  },\n}",
        &format!("{{\n  \"mcpServers\": {{\n    \"a\": {{}},\n    \"n\": {entry},\n  }},\n}}"),
    );
}

#[test]
fn a_file_on_one_line_gets_lines_for_its_servers() {
    check("{\"mcpServers\":{\"a\":{}}}", &format!("{{\"mcpServers\":{{\n    \"a\":{{}},\n    \"n\": {LINES}\n  }}}}"));
    check_both("{\"mcpServers\": {}}", &format!("{{\"mcpServers\": {{\n    \"n\": {LINES}\n  }}}}"));
    check("{\"a\":1}", &format!("{{\n  \"a\":1,\n  \"mcpServers\": {{\n    \"n\": {LINES}\n  }}\n}}"));
}

#[test]
fn the_layout_is_that_of_the_file() {
    check_both(
        "\u{feff}{\r\n\t\"a\": \"}\\\"//\",\r\n\t\"mcpServers\": {}\r\n}\r\n",
        "\u{feff}{\r\n\t\"a\": \"}\\\"//\",\r\n\t\"mcpServers\": {\r\n\t\t\"n\": {\r\n\t\t\t\"command\": \"/m\",\r\n\t\t\t\"args\": \
         [\"connect\", \"x\"]\r\n\t\t}\r\n\t}\r\n}\r\n",
    );
}

#[test]
fn a_file_that_says_nothing_gets_a_whole_document() {
    let whole = format!("{{\n  \"mcpServers\": {{\n    \"n\": {LINES}\n  }}\n}}\n");
    check("", &whole);
    check("// mine\n", &format!("// mine\n{whole}"));
    check("{}", whole.trim_end());
}

#[test]
fn an_entry_of_the_name_is_replaced_where_it_is() {
    check(
        "{\n  \"mcpServers\": {\n    \"n\": [1], // mine\n    \"b\": 2\n  }\n}",
        &format!("{{\n  \"mcpServers\": {{\n    \"n\": {LINES}, // mine\n    \"b\": 2\n  }}\n}}"),
    );
}

#[test]
fn what_is_not_understood_is_refused_with_its_line() {
    for (text, line, what) in [
        ("{\n\"a\": 1,,\n}", 2, "unexpected token"),
        ("{\n  \"a\": tru\n}", 2, "unexpected word"),
        ("{\n\n/* x", 3, "unterminated comment"),
        ("[]", 1, "expected the file to be an object"),
        ("{\n\"mcpServers\": []}", 2, "expected \"mcpServers\" to be an object"),
        ("{\"mcpServers\": {},\n\"mcpServers\": {}}", 2, "twice"),
        ("{\"mcpServers\": {\"n\": 1,\n \"\\u006e\": 2}}", 2, "twice"),
        ("{,}", 1, "unexpected token"),
        ("{\"a\n\": 1}", 1, "control character"),
        ("{}{}", 1, "more than one"),
    ] {
        let fault = put(text, "mcpServers", "n", &entry()).unwrap_err();
        assert_eq!(fault.line, line, "{text}: {fault}");
        assert!(fault.what.contains(what), "{text}: {fault}");
    }
    assert!(put(&"[".repeat(100_000), "mcpServers", "n", &entry()).is_err());
}

/// Blanks and comments, as people leave them anywhere.
fn trivia() -> impl Strategy<Value = String> {
    let one = prop_oneof![
        5 => Just(String::new()),
        2 => Just(" ".to_owned()),
        2 => Just("\n  ".to_owned()),
        1 => Just("\r\n\t".to_owned()),
        1 => Just(" // a \"comment\" {,}\n".to_owned()),
        1 => Just("/* b, } \n */".to_owned()),
    ];
    prop::collection::vec(one, 0..3).prop_map(|parts| parts.concat())
}

fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("1.50".to_owned()),
        Just("null".to_owned()),
        Just("123456789012345678901234567890".to_owned()),
        "[a-z\"\\\\/*,{}ä]{0,6}".prop_map(|text| Value::from(text).to_string()),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let list =
            (prop::collection::vec((trivia(), inner.clone(), trivia()), 0..4), any::<bool>()).prop_map(close_list);
        prop_oneof![list, members(inner)]
    })
}

fn close_list((items, comma): (Vec<(String, String, String)>, bool)) -> String {
    let last = if comma && !items.is_empty() { "," } else { "" };
    let items: Vec<String> = items.into_iter().map(|(a, item, b)| format!("{a}{item}{b}")).collect();
    format!("[{}{last}]", items.join(","))
}

fn members(inner: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    let member = ("[a-f]{1,3}", trivia(), trivia(), inner, trivia());
    (prop::collection::btree_map("[a-f]{1,3}", member, 0..4), any::<bool>(), trivia()).prop_map(
        |(members, comma, end)| {
            let last = if comma && !members.is_empty() { "," } else { "" };
            let texts: Vec<String> =
                members.iter().map(|(key, (_, a, b, value, c))| format!("{a}\"{key}\"{b}:{value}{c}")).collect();
            format!("{{{}{last}{end}}}", texts.join(","))
        },
    )
}

fn document() -> impl Strategy<Value = String> {
    let servers = prop_oneof![
        1 => Just(None),
        3 => members(json()).prop_map(Some),
    ];
    let rest = (members(json()), servers, trivia(), trivia(), any::<bool>());
    rest.prop_map(|(rest, servers, a, b, first)| {
        let Some(servers) = servers else { return format!("{a}{rest}{b}") };
        let servers = format!("{b}\"mcpServers\"{a}:{b}{servers}");
        match first {
            true => format!("{a}{{{servers}}}{b}"),
            false => format!("{a}{{\"zz\":{rest},{servers}{a},}}{b}"),
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn nothing_else_is_ever_changed(text in document()) {
        let before = read(&text, "mcpServers", "n").unwrap();
        let made = put(&text, "mcpServers", "n", &entry()).unwrap();
        let again = put(&made, "mcpServers", "n", &entry()).unwrap();
        prop_assert_eq!(find(&again, "mcpServers", "n").unwrap(), Some(entry().value()));
        for comment in ["// a \"comment\" {,}", "/* b, } \n */"] {
            prop_assert_eq!(text.matches(comment).count(), made.matches(comment).count());
        }
        let without = remove(&made, "mcpServers", "n").unwrap();
        for comment in ["// a \"comment\" {,}", "/* b, } \n */"] {
            prop_assert_eq!(text.matches(comment).count(), without.matches(comment).count());
        }
        let mut after = read(&without, "mcpServers", "n").unwrap();
        if before.get("mcpServers").is_none() {
            after.as_object_mut().unwrap().remove("mcpServers");
        }
        prop_assert_eq!(before, after);
    }

    #[test]
    fn any_text_is_edited_or_refused(text in "[\\{\\}\\[\\]\":,/*a1 \n\\\\n]{0,24}") {
        if let Ok(made) = put(&text, "mcpServers", "n", &entry()) {
            prop_assert_eq!(find(&made, "mcpServers", "n").unwrap(), Some(entry().value()));
        }
        let _ = remove(&text, "mcpServers", "n");
    }
}
