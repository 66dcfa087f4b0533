//! Business data: describing, searching, asking.

use serde_json::{Value, json};

use super::{SAMPLE, ask, everywhere, refused, with_version};
use crate::support::client::Client;
use crate::support::scratch::Scratch;

async fn call(client: &mut Client, tool: &str, arguments: Value) -> Value {
    ask(client, "tools/call", json!({"name": format!("relevant-data.{tool}"), "arguments": arguments})).await
}

/// The records that a search gives as text, by their ids.
async fn search(client: &mut Client, arguments: Value) -> Vec<String> {
    let result = call(client, "searchRecords", arguments).await;
    let records: Vec<Value> = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    records.iter().map(|record| record["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn tools_have_schemas_that_clients_know() {
    everywhere(SAMPLE, async |client| {
        let list = ask(client, "tools/list", json!({})).await;
        let tools = list["tools"].as_array().unwrap();
        let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        let expected =
            ["describeCategory", "searchRecords", "ask", "insight"].map(|name| format!("relevant-data.{name}"));
        assert_eq!(names, expected);
        for tool in tools {
            assert_eq!(tool["inputSchema"]["type"], "object");
            assert_eq!(tool["outputSchema"]["type"], "object");
            assert!(tool.get("input_schema").is_none());
        }
        assert_eq!(tools[0]["inputSchema"]["required"], json!(["categoryId"]));
    })
    .await;
    with_version(SAMPLE, "2025-03-26", async |client| {
        let list = ask(client, "tools/list", json!({})).await;
        assert!(list["tools"][0].get("outputSchema").is_none() && list["tools"][0].get("title").is_none());
        let found = call(client, "searchRecords", json!({"categoryId": "people"})).await;
        assert!(found.get("structuredContent").is_none());
    })
    .await;
}

#[tokio::test]
async fn a_category_is_described_as_it_is_written() {
    everywhere(SAMPLE, async |client| {
        let result = call(client, "describeCategory", json!({"categoryId": "people"})).await;
        let text = result["content"][0]["text"].as_str().unwrap();
        let keys = ["category", "relationships", "schemas", "examples", "queries"];
        let places: Vec<usize> = keys.iter().map(|key| text.find(&format!("\n  \"{key}\": ")).unwrap()).collect();
        assert!(places.is_sorted(), "{text}");
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), result["structuredContent"]);
        assert_eq!(result["structuredContent"]["relationships"].as_array().unwrap().len(), 5);
    })
    .await;
}

#[tokio::test]
async fn searches_follow_the_strict_rules() {
    everywhere(SAMPLE, async |client| {
        let of = |filters: Value| json!({"categoryId": "people", "filters": filters});
        let people = |numbers: &[u8]| numbers.iter().map(|n| format!("person-00{n}")).collect::<Vec<_>>();
        let all = people(&[1, 2, 3, 4, 5, 6, 7]);
        for (filters, expected) in [
            (json!({"departmentId": "dept-eng", "location": "Milan"}), people(&[3])),
            (json!({"location": ""}), all.clone()),
            (json!({"location": "milan"}), vec![]),
            (json!({"skills": "python"}), people(&[1, 3])),
            (json!({"skills": "Python"}), vec![]),
            (json!({"managerId": null}), people(&[1])),
            (json!({"skills": ["python"]}), vec![]),
            (json!({}), all.clone()),
            (json!(null), all.clone()),
            (json!("location"), vec![]),
            (json!({"department": "Engineering"}), vec![]),
        ] {
            assert_eq!(search(client, of(filters.clone())).await, expected, "{filters}");
        }
        assert_eq!(search(client, json!({"categoryId": "people"})).await, all);
        assert_eq!(
            search(client, json!({"categoryId": " Team Members "})).await,
            all,
            "aliases, however they are spelt"
        );
        assert_eq!(
            search(client, json!({"categoryId": "companyResources", "filters": {"linkedPolicyIds": "policy-data"}}))
                .await,
            ["res-templates"]
        );
        let first = call(client, "searchRecords", of(json!({"id": "person-002"}))).await;
        let text = first["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with("[\n  {\n    \"id\": \"person-002\",\n    \"name\": \"Ben Okafor\",\n"), "{text}");
        assert_eq!(first["structuredContent"]["total"], 1);
    })
    .await;
}

#[tokio::test]
async fn large_results_are_sorted_and_cut_into_pages() {
    everywhere(SAMPLE, async |client| {
        let mut arguments = json!({"categoryId": "people", "sort": "-location", "limit": 3});
        let first = call(client, "searchRecords", arguments.clone()).await;
        let found = &first["structuredContent"];
        assert_eq!((&found["total"], &found["records"][0]["location"]), (&json!(7), &json!("Skopje")));
        assert!(first["content"][1]["text"].as_str().unwrap().starts_with("3 of 7 records"));
        arguments["cursor"] = found["nextCursor"].clone();
        let second = call(client, "searchRecords", arguments.clone()).await["structuredContent"].take();
        assert_eq!(second["records"].as_array().unwrap().len(), 3);
        arguments["cursor"] = second["nextCursor"].clone();
        let third = call(client, "searchRecords", arguments.clone()).await["structuredContent"].take();
        assert_eq!((third["records"].as_array().unwrap().len(), &third["nextCursor"]), (1, &Value::Null));
        arguments["cursor"] = json!("beef-1");
        let stale = call(client, "searchRecords", arguments).await;
        assert_eq!(stale["isError"], true, "{stale}");
    })
    .await;
}

#[tokio::test]
async fn questions_go_to_the_agent_they_are_for() {
    everywhere(SAMPLE, async |client| {
        let said = async |client: &mut Client, question: &str, topic: &str, criteria: Value| {
            let arguments = json!({"question": question, "topic": topic, "criteria": criteria});
            call(client, "ask", arguments).await["structuredContent"].take()
        };
        let python = said(client, "List people with python skills", "people", json!({"skill": "python"})).await;
        assert_eq!((&python["intent"], &python["agent"]), (&json!("records"), &json!("database-agent")));
        assert_eq!(python["summary"], "Returned 2 records from People");
        let ids: Vec<&Value> = python["payload"]["records"].as_array().unwrap().iter().map(|r| &r["id"]).collect();
        assert_eq!(ids, [&json!("person-001"), &json!("person-003")]);
        assert!(python["markdown"].as_str().unwrap().contains("Chiara Conti → manager: Ana Ribeiro"));

        let plan = said(client, "Create an exploration plan", "departments", json!({})).await;
        assert_eq!((&plan["intent"], &plan["agent"]), (&json!("insight"), &json!("data-agent")));
        assert_eq!(plan["summary"], "Exploration plan for Departments");

        let vague = said(client, "Tell me more", "people", json!({})).await;
        assert_eq!((&vague["intent"], &vague["agent"]), (&json!("clarification"), &json!("clarification-agent")));
        assert_eq!(vague["payload"]["missingSignals"].as_array().unwrap().len(), 3);

        let title = said(client, "Find all people with the title Senior Developer", "people", json!({})).await;
        assert_eq!((&title["intent"], &title["agent"]), (&json!("records"), &json!("database-agent")));
        assert_eq!(title["summary"], "Returned 0 records from People");
        assert_eq!(title["payload"]["unmatched"], json!(["Senior Developer"]));

        let apps = said(client, "list apps", "Apps", json!({"criticality": " HIGH "})).await;
        assert_eq!((&apps["intent"], &apps["payload"]["total"]), (&json!("records"), &json!(3)));

        let unknown = said(client, "list everything", "general", json!({})).await;
        assert_eq!(
            (&unknown["agent"], &unknown["summary"]),
            (&json!("orchestrator"), &json!("Unknown category: general"))
        );
        assert_eq!(unknown["rationale"], "Category not recognised");
        assert_eq!(said(client, " ", "people", json!({})).await["rationale"], "Empty question");
        assert_eq!(said(client, "show records", "", json!({})).await["rationale"], "Missing topic");
        let named = said(client, "Show me all applications in the Engineering department", "", json!({})).await;
        assert_eq!(named["summary"], "Returned 2 records from Applications");
        assert_eq!(named["payload"]["criteria"], json!({"ownerDepartmentId": "dept-eng"}));
    })
    .await;
}

#[tokio::test]
async fn insight_counts_and_connects() {
    everywhere(SAMPLE, async |client| {
        let people = call(client, "insight", json!({"categoryId": "people"})).await["structuredContent"].take();
        assert_eq!((&people["count"], &people["name"]), (&json!(7), &json!("People")));
        assert_eq!(people["distributions"]["departmentId"][0], json!({"value": "dept-eng", "count": 4}));
        let department = people["relationships"].as_array().unwrap().iter().find(|link| link["key"] == "department");
        assert_eq!(department.unwrap()["danglingReferences"], 0);
        assert!(!people["plan"].as_array().unwrap().is_empty());
        let ana = call(client, "insight", json!({"categoryId": "people", "recordId": "person-001"})).await;
        let reports =
            ana["structuredContent"]["referredBy"].as_array().unwrap().iter().find(|link| link["key"] == "manager");
        assert_eq!(reports.unwrap()["records"].as_array().unwrap().len(), 4);
        let none = call(client, "insight", json!({"categoryId": "people", "recordId": "nobody"})).await;
        assert_eq!(none["isError"], true);
    })
    .await;
}

#[tokio::test]
async fn faults_of_calls_are_told_as_the_version_has_it() {
    let tool = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments});
    for version in ["2024-11-05", "2025-06-18"] {
        with_version(SAMPLE, version, async |client| {
            let id = client.request("tools/call", tool("relevant-data.describeCategory", json!({}))).await;
            let error = client.refusal(id).await;
            let expected = json!({
                "code": -32000, "message": "Tool execution error: 'categoryId' is required.",
                "data": {"tool": "relevant-data.describeCategory", "originalError": "'categoryId' is required."},
            });
            assert_eq!(error, expected);
        })
        .await;
    }
    everywhere(SAMPLE, async |client| {
        for category in ["nothing", "../data/people", "../../etc", "/etc", "people/../people", "..%2fdata", "people\0"]
        {
            let result = call(client, "searchRecords", json!({"categoryId": category})).await;
            let text = result["content"][0]["text"].as_str().unwrap();
            assert!(
                result["isError"] == true && text.starts_with("Tool execution error: Unknown category"),
                "{result}"
            );
            assert!(!text.contains(SAMPLE), "{text}");
        }
        let faulty = [
            json!({}),
            json!({"categoryId": 7}),
            json!({"categoryId": "people", "filters": 7}),
            json!({"categoryId": "people", "limit": 0}),
            json!({"categoryId": "people", "sort": {}}),
        ];
        for arguments in faulty {
            assert_eq!(call(client, "searchRecords", arguments.clone()).await["isError"], true, "{arguments}");
        }
        let (code, told) = refused(client, "tools/call", json!({})).await;
        assert_eq!((code, told.as_str()), (-32602, "Invalid params: tool name is required"));
        let (code, told) = refused(client, "tools/call", tool("none", json!({}))).await;
        assert!(
            code == -32602 && told.starts_with("Invalid params: unknown tool 'none'. Available tools: relevant-data.")
        );
    })
    .await;
}

#[tokio::test]
async fn a_check_tells_what_does_not_fit() {
    let folder = Scratch::new();
    let schema = json!({"name": "record", "schema": {"type": "object", "required": ["name"], "properties": {"level": {"type": "integer"}}}});
    let links = json!([
        {"key": "boss", "targetCategory": "staff", "sourceField": "bossId", "targetField": "id"},
        {"key": "room", "targetCategory": "rooms", "sourceField": "roomId", "targetField": "id"},
    ]);
    let records = "[\n{\"id\":\"a\",\"name\":\"A\",\"bossId\":\"x\"},\n{\"id\":\"a\",\"level\":\"high\"}\n]";
    let (schema, links) = (schema.to_string(), links.to_string());
    super::write(
        &folder,
        &[
            ("data/staff/schemas/record.json", schema.as_str()),
            ("data/staff/relationships.json", &links),
            ("data/staff/records.json", records),
        ],
    );
    let run = |args: &[&str]| std::process::Command::new(crate::support::reach::MCPWIRE).args(args).output().unwrap();
    let output = run(&["check", &folder.file("")]);
    let told = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{told}");
    for expected in [
        "data/staff/relationships.json: room: there is no category \"rooms\"",
        "data/staff/records.json:3: a: another record has the same id",
        "data/staff/records.json:3: a: name is missing",
        "data/staff/records.json:3: a: level: expected integer, came string",
        "data/staff/records.json:2: a: bossId refers to \"x\", which is not in staff",
        "staff: 2 records: fail",
    ] {
        assert!(told.contains(expected), "{expected} in\n{told}");
    }
    let report: Value = serde_json::from_slice(&run(&["check", "--json", &folder.file("")]).stdout).unwrap();
    assert_eq!((&report["status"], &report["data"][0]["status"]), (&json!("fail"), &json!("fail")));
    let sample = run(&["check", "sample:"]);
    assert_eq!(sample.status.code(), Some(0), "{}", String::from_utf8_lossy(&sample.stdout));
}
