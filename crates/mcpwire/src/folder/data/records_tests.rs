//! Records of every form, their indexes, and what is kept of answers.

use serde_json::json;

use super::*;

fn text_cells(_: &str) -> CellType {
    CellType::Text
}

fn read(text: &str, form: Form) -> Result<Records, Flaw> {
    Records::read(text.to_owned(), form, text_cells)
}

#[test]
fn every_form_gives_the_same_records() {
    let json = read("[{\"id\":\"a\",\"n\":\"1\"},\n {\"id\":\"b\"}]", Form::Json).unwrap();
    let lines = read("{\"id\":\"a\",\"n\":\"1\"}\n\n{\"id\":\"b\"}\n", Form::Lines).unwrap();
    let csv = read("id,n\na,1\nb,\n", Form::Csv).unwrap();
    for records in [&json, &lines, &csv] {
        assert_eq!(records.len(), 2);
        assert_eq!(Value::Object(records.record(0)), json!({"id": "a", "n": "1"}));
        assert_eq!(records.text(1), r#"{"id":"b"}"#);
        assert_eq!(records.field(0, "n"), Some(json!("1")));
    }
    assert_eq!((json.line(1), lines.line(1), csv.line(1)), (2, 3, 3));
    assert_ne!(json.hash, lines.hash);
}

#[test]
fn cells_are_what_the_schema_says() {
    let kind = |column: &str| match column {
        "n" => CellType::Number,
        "on" => CellType::Boolean,
        "tags" => CellType::List,
        _ => CellType::Text,
    };
    let text = "id,n,on,tags,note\nx,1.5,true,a; b,\"two\nlines, and a \"\"quote\"\"\"\ny,many,maybe,c,\n";
    let records = Records::read(text.to_owned(), Form::Csv, kind).unwrap();
    let first = json!({"id": "x", "n": 1.5, "on": true, "tags": ["a", "b"], "note": "two\nlines, and a \"quote\""});
    assert_eq!(Value::Object(records.record(0)), first);
    assert_eq!(Value::Object(records.record(1)), json!({"id": "y", "n": "many", "on": "maybe", "tags": ["c"]}));
}

#[test]
fn faults_name_their_line() {
    assert_eq!(read("[{}\n,{]", Form::Json).unwrap_err().line, Some(2));
    assert_eq!(read("[{},\n1]", Form::Json).unwrap_err().line, Some(2));
    assert!(read("{}", Form::Json).is_err());
    assert_eq!(read("{}\n{\n", Form::Lines).unwrap_err().line, Some(2));
    assert_eq!(read("a\n1\n1,2\n", Form::Csv).unwrap_err().line, Some(3));
}

#[test]
fn an_index_finds_what_a_scan_finds() {
    let all: Vec<Value> = (0..500)
        .map(|n| match n % 5 {
            0 => json!({"id": n, "group": (n % 7).to_string()}),
            1 => json!({"id": n, "group": [(n % 7).to_string(), "x"]}),
            2 => json!({"id": n, "group": null}),
            3 => json!({"id": n, "group": n % 7}),
            _ => json!({"id": n}),
        })
        .collect();
    let records = read(&Value::Array(all).to_string(), Form::Json).unwrap();
    for value in [json!("3"), json!("x"), json!(null), json!(3), json!(3.0), json!("nothing")] {
        let filters = Map::from_iter([("group".to_owned(), value.clone())]);
        let test = |record: &Map<String, Value>| crate::folder::data::filter::strict(&filters, record);
        let (fast, slow) = (records.select(Some(("group", &value)), test), records.select(None, test));
        assert_eq!(fast, slow, "{value}");
    }
    assert_eq!(records.with_text("id", "42"), [42]);
    assert_eq!(records.with_text("group", "x").len(), 100);
}

#[test]
fn large_answers_push_others_out() {
    let records = read("[{}]", Form::Json).unwrap();
    records.answer("small".into(), || vec![0]);
    for key in ["a", "b"] {
        records.answer(key.into(), || vec![0; MOST_NUMBERS / 2 + 1]);
    }
    assert_eq!(*records.answer("small".into(), || vec![7]), [7]);
    assert_eq!(records.answer("b".into(), || panic!("it is known")).len(), MOST_NUMBERS / 2 + 1);
}

#[test]
fn answers_are_made_once() {
    let records = read("[{}]", Form::Json).unwrap();
    assert_eq!(*records.answer("k".into(), || vec![0]), [0]);
    assert_eq!(*records.answer("k".into(), || panic!("it is known")), [0]);
}
