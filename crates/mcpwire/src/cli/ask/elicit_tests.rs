//! Forms and pages, answered by a script.

use std::collections::VecDeque;

use super::*;

struct Script {
    answers: VecDeque<&'static str>,
    told: String,
}

impl Dialogue for Script {
    fn tell(&mut self, text: &str) {
        self.told.push_str(text);
        self.told.push('\n');
    }

    fn answer(&mut self, prompt: &str) -> Option<String> {
        self.tell(prompt);
        self.answers.pop_front().map(str::to_owned)
    }
}

fn asked(properties: Value, required: &[&str], answers: &[&'static str]) -> (Value, String) {
    let params =
        json!({"message": "m", "requestedSchema": {"type": "object", "properties": properties, "required": required}});
    let mut script = Script { answers: answers.iter().copied().collect(), told: String::new() };
    (form(&params, &mut script), script.told)
}

#[test]
fn fields_are_asked_by_their_schema() {
    let fields = json!({
        "a_name": {"type": "string", "title": "Your name", "minLength": 2},
        "b_age": {"type": "integer", "minimum": 18},
        "c_ok": {"type": "boolean"},
        "d_colour": {"type": "string", "enum": ["r", "g"], "enumNames": ["red", "green"]},
        "e_sizes": {"type": "array", "items": {"anyOf": [{"const": "s", "title": "small"}, {"const": "l", "title": "large"}]}},
        "f_left": {"type": "string"},
        "g_default": {"type": "number", "default": 1.5},
    });
    let answers = ["x", "xy", "ten", "17", "18", "yes", "2", "1, large", "", "", ""];
    let (answer, told) = asked(fields, &["a_name", "b_age"], &answers);
    let content = json!({
        "a_name": "xy", "b_age": 18, "c_ok": true, "d_colour": "g", "e_sizes": ["s", "l"], "g_default": 1.5,
    });
    assert_eq!(answer, json!({"action": "accept", "content": content}));
    for text in ["Your name:", "at least 2 characters", "expected an integer", "at least 18", "2) green", "[1.5]"] {
        assert!(told.contains(text), "{text}: {told}");
    }
}

#[test]
fn a_person_can_say_no() {
    let field = || json!({"a": {"type": "string"}});
    assert_eq!(asked(field(), &[], &["x", "n"]).0, json!({"action": "decline"}));
    assert_eq!(asked(field(), &[], &[]).0, json!({"action": "cancel"}));
    assert_eq!(asked(field(), &["a"], &["", "", "", "", ""]).0, json!({"action": "decline"}));
    assert_eq!(asked(json!({}), &[], &["y"]).0, json!({"action": "accept", "content": {}}));
}

#[test]
fn a_page_is_shown_before_it_is_agreed_to() {
    let params = json!({"mode": "url", "message": "m", "url": "https://a.example/x"});
    for (answer, action) in [(Some("y"), "accept"), (Some(""), "decline"), (None, "cancel")] {
        let mut script = Script { answers: answer.into_iter().collect(), told: String::new() };
        assert_eq!(visit(&params, &mut script)["action"], action);
        assert!(script.told.contains("https://a.example/x"));
    }
}
