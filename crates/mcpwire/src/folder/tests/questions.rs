//! Questions in plain words over three folders of different words and fields: which records they return, and what of them was understood.

use serde_json::{Value, json};

use super::{Client, Scratch};
use crate::folder::Folder;

/// A question and the ids of the records that it returns, in the order of the file.
type Case = (&'static str, &'static str);

/// Books as CSV with a schema, loans as JSON lines, members without anything declared.
const LIBRARY: &[(&str, &str)] = &[
    (
        "data/books/records.csv",
        "id,title,genre,year,authorId,languages,available\n\
         b1,Dune,science fiction,1965,a1,English;French,true\n\
         b2,The Left Hand of Darkness,science fiction,1969,a2,English,false\n\
         b3,A Wizard of Earthsea,fantasy,1968,a2,English;German,true\n\
         b4,Momo,fantasy,1973,a3,German,true\n\
         b5,The Neverending Story,fantasy,1979,a3,German;English,false\n",
    ),
    (
        "data/books/schemas/record.json",
        r#"{"name":"record","schema":{"type":"object","properties":{"year":{"type":"integer"},
            "languages":{"type":"array"},"available":{"type":"boolean"}}}}"#,
    ),
    (
        "data/books/relationships.json",
        r#"[{"key":"author","name":"Author","description":"Who wrote it","targetCategory":"authors","sourceField":"authorId","targetField":"id"}]"#,
    ),
    ("data/books/category.json", r#"{"name":"Books","aliases":["novels","titles on the shelf"]}"#),
    (
        "data/authors/records.json",
        r#"[{"id":"a1","name":"Frank Herbert","country":"USA","born":1920},
            {"id":"a2","name":"Ursula K. Le Guin","country":"USA","born":1929},
            {"id":"a3","name":"Michael Ende","country":"Germany","born":1929}]"#,
    ),
    (
        "data/members/records.csv",
        "id,name,city,membership,joined\nm1,Lena Vogt,Berlin,Gold,2019-05-01\nm2,Marc Petit,Paris,Silver,2021-02-11\nm3,Ida Stone,New York,gold,2021-07-30\n",
    ),
    (
        "data/loans/records.jsonl",
        "{\"id\":\"l1\",\"book_id\":\"b1\",\"member_id\":\"m1\",\"returned\":true}\n{\"id\":\"l2\",\"book_id\":\"b4\",\"member_id\":\"m1\",\"returned\":false}\n{\"id\":\"l3\",\"book_id\":\"b4\",\"member_id\":\"m3\",\"returned\":false}\n",
    ),
    (
        "data/loans/relationships.json",
        r#"[{"key":"book","targetCategory":"books","sourceField":"book_id"},
            {"key":"member","name":"Borrower","targetCategory":"members","sourceField":"member_id"}]"#,
    ),
];

/// Names of several words, nested fields, codes instead of ids, a relationship of a category with itself.
const DEPOT: &[(&str, &str)] = &[
    (
        "data/machine-tools/records.json",
        r#"[{"id":"t1","label":"Lathe 40","hall":{"name":"North","floor":1},"state":"running","voltage":400,"tags":["heavy duty"],"supplier_code":"S-7","insured":"yes"},
            {"id":"t2","label":"Laser cutter","hall":{"name":"North","floor":2},"state":"out of order","voltage":230,"tags":["laser","heavy duty"],"supplier_code":"S-9","insured":"no"},
            {"id":"t3","label":"Drill press","hall":{"name":"South","floor":1},"state":"running","voltage":230,"tags":["bench"],"supplier_code":"S-9","insured":"yes"},
            {"id":"t4","label":"Box folder","hall":{"name":"South","floor":1},"state":"in repair","voltage":110.5,"tags":[],"supplier_code":"S-7","insured":"no"}]"#,
    ),
    (
        "data/machine-tools/relationships.json",
        r#"[{"key":"supplier","targetCategory":"suppliers","sourceField":"supplier_code","targetField":"code"}]"#,
    ),
    ("data/suppliers/records.csv", "code,company,town\nS-7,Müller & Söhne,Köln\nS-9,Acme Tools,Leeds\n"),
    (
        "data/technicians/records.json",
        r#"[{"id":"p1","fullName":"Nora Quist","jobTitle":"Shift Lead","shift":"early","machineIds":["t1","t2"],"mentorId":null,"languages":["C++","Rust"]},
            {"id":"p2","fullName":"Omar Said","jobTitle":"Senior Fitter","shift":"late","machineIds":["t3"],"mentorId":"p1","languages":["C","Rust"]},
            {"id":"p3","fullName":"Pia O'Brien","jobTitle":"Fitter","shift":"late","machineIds":["t2","t4"],"mentorId":"p1","languages":["C#"]},
            {"id":"p4","fullName":"Quinn Abt","jobTitle":"Trainee","shift":"night","machineIds":[],"mentorId":"p2","languages":[]}]"#,
    ),
    (
        "data/technicians/relationships.json",
        r#"[{"key":"machines","description":"Which machines somebody operates","targetCategory":"machine-tools","sourceField":"machineIds","targetField":"id"},
            {"key":"mentor","description":"Who teaches them","targetCategory":"technicians","sourceField":"mentorId","targetField":"id"}]"#,
    ),
    (
        "data/technicians/category.json",
        r#"{"name":"Technicians","aliases":["staff"],"config":{"fieldAliases":{"qualification":"jobTitle"}}}"#,
    ),
];

const SAMPLE_CASES: &[Case] = &[
    // The questions that the described system gives as its examples.
    ("Show me all applications in the Engineering department", "app-portal app-warehouse"),
    ("What company policies apply to remote work?", "policy-remote"),
    ("Find all people with the title \"Senior Developer\"", ""),
    ("Find all people with the title Senior Developer", ""),
    ("Find all people with the title \"Data Engineer\"", "person-003"),
    ("Find all people with the title data engineer", "person-003"),
    ("find people whose role is Controller", "person-005"),
    ("List people in Milan", "person-003"),
    ("list PEOPLE in MILAN", "person-003"),
    ("Who works in Malmö?", "person-004"),
    ("Who works in Malmo?", "person-004"),
    ("List people with python skills", "person-001 person-003"),
    ("List everyone who knows Python and SQL", "person-003"),
    ("Show staff who know kubernetes or typescript", "person-002 person-007"),
    ("People in the engineering department", "person-001 person-002 person-003 person-007"),
    ("show employees of People & Culture", "person-004 person-006"),
    ("show employees of People and Culture", "person-004 person-006"),
    ("Show the People & Culture applications", "app-hr"),
    ("List all engineers", "person-002 person-003 person-007"),
    ("In the Finance department, which applications are there?", "app-ledger"),
    ("Which apps are of high criticality?", "app-portal app-warehouse app-ledger"),
    ("List high criticality applications in Engineering", "app-portal app-warehouse"),
    ("Which applications are not owned by Engineering?", "app-ledger app-hr"),
    ("Find policies about security", "policy-security"),
    ("Which policies apply to the Data Warehouse?", "policy-security policy-data"),
    ("Which applications does Ana Ribeiro work with?", "app-portal app-ledger"),
    ("Who reports to Ana Ribeiro?", "person-002 person-003 person-006 person-007"),
    ("Who is Ana Ribeiro?", "person-001"),
    ("Who is the manager of Ben Okafor?", "person-001"),
    ("What is Ben Okafor's email?", "person-002"),
    ("Which departments are led by Emi Tanaka?", "dept-finance"),
    ("Which person leads the Finance department?", "person-005"),
    ("Show departments without a parent", "dept-eng dept-people"),
    ("Find documents of Engineering", "res-runbooks"),
    ("List resources of type document", "res-handbook res-runbooks res-templates"),
    ("List the tools of the Engineering department", "res-runbooks res-styleguide res-vpn"),
    ("List people in Milan or Lagos", "person-002 person-003"),
    ("List people in 'Osaka'", "person-005"),
    ("Show people in the \"Legal\" department", ""),
    ("Show me all applications in the Legal department", ""),
    ("show people in atlantis", ""),
    ("Find \u{201c}Ledger\u{201d} in applications", "app-ledger"),
    ("List people", "person-001 person-002 person-003 person-004 person-005 person-006 person-007"),
    ("How many applications are there?", "app-portal app-warehouse app-ledger app-hr"),
    ("List all applications please", "app-portal app-warehouse app-ledger app-hr"),
    ("Give me the application app-hr", "app-hr"),
    ("Who works in Finance?", "person-005"),
    ("who owns the customer portal?", "dept-eng"),
    ("Who does Farah Haddad report to?", "person-001"),
    ("List applications owned by the department led by Ana Ribeiro", "app-portal app-warehouse"),
    ("@mybusiness Which apps are in Finance?", "app-ledger"),
    ("ana.ribeiro@example.com", "person-001"),
    ("Which people use the portal?", "person-001 person-002 person-007"),
    ("Which people have acknowledged the data protection policy?", "person-003 person-005 person-006"),
];

const LIBRARY_CASES: &[Case] = &[
    ("List members in Berlin", "m1"),
    ("list members in new york", "m3"),
    ("Which members live in Paris?", "m2"),
    ("Who lives in Berlin?", "m1"),
    ("Show gold members", "m1 m3"),
    ("Show members with membership \"GOLD\"", "m1 m3"),
    ("Show members with membership Platinum", ""),
    ("Which members joined in 2021?", "m2 m3"),
    ("Which books are science fiction?", "b1 b2"),
    ("List fantasy novels", "b3 b4 b5"),
    ("List fantasies", "b3 b4 b5"),
    ("books by Ursula K. Le Guin", "b2 b3"),
    ("Which books did Michael Ende write?", "b4 b5"),
    ("Show me books by \"Ende\"", "b4 b5"),
    ("Which books by authors from Germany are there?", "b4 b5"),
    ("Which author wrote Dune?", "a1"),
    ("authors of fantasy books", "a2 a3"),
    ("Find the book \"The Left Hand of Darkness\"", "b2"),
    ("Find the book the left hand of darkness", "b2"),
    ("books available in German", "b3 b4"),
    ("Which books are available?", "b1 b3 b4"),
    ("Which books are not available?", "b2 b5"),
    ("books in German and English", "b3 b5"),
    ("books in French or German", "b1 b3 b4 b5"),
    ("books from the year 1968", "b3"),
    ("Books published after 1968", "b2 b4 b5"),
    ("books with year between 1966 and 1970", "b2 b3"),
    ("List books in \"Klingon\"", ""),
    ("List books by Stephen King", ""),
    ("Which loans are not returned?", "l2 l3"),
    ("loans of Lena Vogt", "l1 l2"),
    ("Which loans are for Momo?", "l2 l3"),
    ("Show loans by borrower Ida Stone", "l3"),
    ("Which members borrowed Momo?", "m1 m3"),
    ("Show all books", "b1 b2 b3 b4 b5"),
    ("unavailable books", "b2 b5"),
    ("Which books are about wizardry?", ""),
    ("books about wizards", "b3"),
    ("USA books", "b1 b2 b3"),
    ("Books by authors born before 1925", "b1"),
    ("authors born before 1925", "a1"),
];

const DEPOT_CASES: &[Case] = &[
    ("List machine tools in the North hall", "t1 t2"),
    ("Which machine tools are out of order?", "t2"),
    ("Which machines are running?", "t1 t3"),
    ("Show the machine tools of Acme Tools", "t2 t3"),
    ("Show machine tools from Müller & Söhne", "t1 t4"),
    ("show machine tools from mueller", ""),
    ("machine-tools with a voltage of 230", "t2 t3"),
    ("machine tools with voltage above 200", "t1 t2 t3"),
    ("machine tools with less than 200 volts", "t4"),
    ("Which machine tools have a voltage of at most 110.5?", "t4"),
    ("Show heavy duty machine tools", "t1 t2"),
    ("insured machine tools", "t1 t3"),
    ("Which machine tools are not insured?", "t2 t4"),
    ("machine tools on floor 2", "t2"),
    ("Machine tools whose supplier is in Leeds", "t2 t3"),
    ("Which suppliers are in Köln?", "S-7"),
    ("Which supplier delivered the Drill press?", "S-9"),
    ("Technicians with the title Fitter", "p3"),
    ("Technicians whose role is \"senior fitter\"", "p2"),
    ("Staff with qualification trainee", "p4"),
    ("technicians on the late shift", "p2 p3"),
    ("Which technicians operate the laser cutter?", "p1 p3"),
    ("Technicians without a mentor", "p1"),
    ("technicians with mentor Nora Quist", "p2 p3"),
    ("Find technician O'Brien", "p3"),
    ("technicians who know C++", "p1"),
    ("technicians who know C#", "p3"),
    ("Technicians who know C", "p2"),
    ("technicians who know rust but not C++", "p2"),
    ("Show technicians with title \"Astronaut\"", ""),
    ("Which technicians are asleep?", ""),
    ("Technicians who speak Rust fluently", "p1 p2"),
    ("Which suppliers supply machines in the North hall?", "S-7 S-9"),
];

fn ids(said: &Value) -> String {
    let records = said["payload"]["records"].as_array().map(Vec::as_slice).unwrap_or_default();
    let id = |record: &Value| ["id", "code"].iter().find_map(|field| record[*field].as_str().map(str::to_owned));
    records.iter().filter_map(id).collect::<Vec<_>>().join(" ")
}

async fn ask(client: &mut Client, arguments: Value) -> Value {
    let params = json!({ "name": "relevant-data.ask", "arguments": arguments });
    client.request("tools/call", params).await["structuredContent"].take()
}

async fn check(folder: &Folder, cases: &[Case]) {
    let mut client = Client::open(folder, "2025-11-25").await;
    let mut wrong = Vec::new();
    for (question, expected) in cases {
        let said = ask(&mut client, json!({ "question": question })).await;
        let (intent, got) = (said["intent"].as_str().unwrap_or_default(), ids(&said));
        if intent != "records" || got != *expected {
            let payload = &said["payload"];
            wrong.push(format!(
                "{question}\n  expected {expected:?}\n  got      {got:?} ({intent}: {}) {} {}",
                said["summary"], payload["criteria"], payload["notUnderstood"]
            ));
        }
        // An empty answer says why it is empty.
        if got.is_empty() && intent == "records" {
            let payload = &said["payload"];
            let explained = payload["unmatched"].as_array().is_some_and(|words| !words.is_empty())
                || payload["criteria"].as_object().is_some_and(|criteria| !criteria.is_empty());
            assert!(explained && said["markdown"].as_str().unwrap().contains("No record"), "{question}: {said}");
        }
    }
    client.close().await;
    assert!(wrong.is_empty(), "{} of {}\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[tokio::test]
async fn questions_over_the_sample() {
    check(&Folder::sample(), SAMPLE_CASES).await;
}

#[tokio::test]
async fn questions_over_a_library() {
    check(&Scratch::new(LIBRARY).open(), LIBRARY_CASES).await;
}

#[tokio::test]
async fn questions_over_a_depot() {
    check(&Scratch::new(DEPOT).open(), DEPOT_CASES).await;
}

#[tokio::test]
async fn answers_report_the_criteria_and_the_words_that_were_not_understood() {
    let folder = Folder::sample();
    let mut client = Client::open(&folder, "2025-11-25").await;
    let said = ask(&mut client, json!({"question": "List purple applications in the Engineering department"})).await;
    let payload = &said["payload"];
    assert_eq!(payload["criteria"], json!({"ownerDepartmentId": "dept-eng"}));
    assert_eq!(payload["understood"], json!(["ownerDepartmentId = dept-eng (departments.name = Engineering)"]));
    assert_eq!((&payload["notUnderstood"], &payload["unmatched"]), (&json!(["purple"]), &json!([])));
    for told in [&said["rationale"], &said["markdown"]] {
        let told = told.as_str().unwrap();
        assert!(told.contains("Criteria: ownerDepartmentId = dept-eng (departments.name = Engineering)."), "{told}");
        assert!(told.contains("Not understood: purple."), "{told}");
    }

    let said = ask(&mut client, json!({"question": "Find all people with the title \"Senior Developer\""})).await;
    assert_eq!((&said["payload"]["total"], &said["payload"]["unmatched"]), (&json!(0), &json!(["Senior Developer"])));
    let told = said["markdown"].as_str().unwrap();
    assert!(told.contains("No record has \"Senior Developer\" as role. Known are, for example: Head of"), "{told}");

    // Criteria that are given count beside those in the question; only quoted words must be values then.
    let given =
        json!({"question": "Find the Atlantis people with SQL", "topic": "people", "criteria": {"location": "MILAN"}});
    let said = ask(&mut client, given).await;
    assert_eq!((ids(&said).as_str(), &said["payload"]["notUnderstood"]), ("person-003", &json!(["Atlantis"])));
    let given =
        json!({"question": "Find the \"Atlantis\" people", "topic": "people", "criteria": {"location": "Milan"}});
    assert_eq!(ids(&ask(&mut client, given).await), "");

    let said = ask(&mut client, json!({"question": "List people in Lagos", "limit": 1, "topic": "staff"})).await;
    assert_eq!(ids(&said), "person-002");
    client.close().await;
}

#[tokio::test]
async fn criteria_have_the_types_of_the_records() {
    let folder = Scratch::new(&[
        ("data/shops/records.json", r#"[{"id":1,"name":"North"},{"id":2,"name":"South"}]"#),
        (
            "data/clerks/records.json",
            r#"[{"id":"x","shopId":1,"level":7,"keyholder":true},{"id":"y","shopId":2,"level":9.5,"keyholder":false}]"#,
        ),
        ("data/clerks/relationships.json", r#"[{"key":"shop","targetCategory":"shops","sourceField":"shopId"}]"#),
    ]);
    let mut client = Client::open(&folder.open(), "2025-11-25").await;
    for (question, id, criteria) in [
        ("clerks in the North shop", "x", json!({"shopId": 1})),
        ("clerks of level 7", "x", json!({"level": 7})),
        ("clerks with a level above 8", "y", json!({"level": {">": 8}})),
        ("clerks who are not keyholder", "y", json!({"keyholder": {"not": true}})),
        ("clerks not in North", "y", json!({"shopId": {"not": 1}})),
    ] {
        let said = ask(&mut client, json!({ "question": question })).await;
        assert_eq!((ids(&said).as_str(), &said["payload"]["criteria"]), (id, &criteria), "{question}");
    }
    client.close().await;
}

#[tokio::test]
async fn questions_about_shape_and_meaning_stay_so() {
    let scratch = Scratch::new(LIBRARY);
    let library = scratch.open();
    let sample = Folder::sample();
    for (folder, question, intent) in [
        (&sample, "Which fields do people have?", "metadata"),
        (&sample, "Show the schema of applications", "metadata"),
        (&sample, "Explain how people share applications", "insight"),
        (&sample, "Create a plan to get to know a department", "insight"),
        (&sample, "hello", "clarification"),
        (&sample, "Tell me more", "clarification"),
        (&library, "Which fields do books have?", "metadata"),
        (&library, "Describe the members", "metadata"),
        (&library, "Give me an overview of loans", "insight"),
        (&library, "Show everything", "clarification"),
        (&library, "books", "records"),
    ] {
        let mut client = Client::open(folder, "2025-11-25").await;
        assert_eq!(ask(&mut client, json!({ "question": question })).await["intent"], intent, "{question}");
        client.close().await;
    }
}

#[tokio::test]
async fn odd_questions_are_answered_too() {
    let scratch = Scratch::new(&[
        ("data/empty/records.json", "[]"),
        (
            "data/odd/records.json",
            r#"[{"id":"1","":"x","a":{"b":{"c":{"d":{"e":{"f":"deep"}}}}},"n":null,"l":[[1,"two"],{"k":"v"}]},{}]"#,
        ),
        (
            "data/odd/relationships.json",
            r#"[{"key":"","targetCategory":"nowhere","sourceField":"x"},{"key":"self","targetCategory":"odd","sourceField":"id"}]"#,
        ),
        ("data/broken/records.json", "[{"),
    ]);
    let folder = scratch.open();
    let mut client = Client::open(&folder, "2025-11-25").await;
    let long = "list odd ".to_owned() + &"'\"\u{201c} in x, y & z ".repeat(3000);
    for question in [
        "list odd",
        "list empty",
        "odd \"",
        "odd ''",
        "odd \"\"",
        "@",
        "@x",
        "???",
        "odd 💥 İ ß",
        "list odd without self",
        &long,
    ] {
        let said = ask(&mut client, json!({ "question": question })).await;
        assert!(said["intent"].is_string(), "{question}: {said}");
    }
    let params = json!({"name": "relevant-data.ask", "arguments": {"question": "list broken"}});
    assert_eq!(client.answer("tools/call", params).await["error"]["code"], -32000);
    client.close().await;
}
