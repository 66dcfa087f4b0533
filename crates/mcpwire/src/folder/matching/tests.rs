//! The scores, by their definition and by known values, and the budget.

use std::sync::Arc;

use proptest::prelude::*;

use super::keywords::keywords;
use super::similarity::points;
use super::*;

fn fragment(id: &str, tags: &[&str], capabilities: &[&str], use_when: &[&str], tokens: u32) -> Fragment {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    Fragment {
        id: id.to_owned(),
        uri: format!("orchestr8://{id}"),
        folder: id.split('/').next().unwrap_or_default().to_owned(),
        tags: owned(tags),
        capabilities: owned(capabilities),
        use_when: owned(use_when),
        tokens,
        declared_tokens: None,
        declared_id: None,
    }
}

fn alpha() -> Fragment {
    fragment("agents/alpha", &["typescript", "rest-api"], &["REST API design"], &["Building a TypeScript REST API"], 50)
}

fn query(text: &str) -> Query {
    Query::read(None, Some(&format!("minScore=0&query={}", text.replace(' ', "+")))).unwrap()
}

fn index(fragments: Vec<Fragment>) -> Index {
    Index::new(fragments.into_iter().map(Arc::new).collect())
}

fn scores(index: &Index, query: &Query) -> Vec<(String, u32)> {
    index
        .search(query, Tokens::Counted)
        .iter()
        .map(|hit| (index.fragment(hit.fragment).id.clone(), hit.score))
        .collect()
}

#[test]
fn known_scores() {
    let other = fragment("skills/beta", &["painting"], &["Colour theory"], &["Hanging a picture"], 50);
    let index = index(vec![other, alpha()]);
    let expect = |query: &Query, first: u32, second: u32| {
        assert_eq!(scores(&index, query), [("agents/alpha".to_owned(), first), ("skills/beta".to_owned(), second)]);
    };
    expect(&query("typescript rest api"), 111, 5);
    expect(&query("typescript"), 25, 5);
    expect(&Query { kinds: vec!["agent".into()], ..query("typescript rest api") }, 126, 5);
    let tagged = |tag: &str| Query { tags: vec![tag.into()], ..query("typescript") };
    assert_eq!(scores(&index, &tagged("TypeScript")), []);
    assert_eq!(scores(&index, &tagged("typescript")), [("agents/alpha".to_owned(), 25)]);
    assert_eq!(scores(&index, &Query { folder: Some("skills".into()), ..query("typescript") }).len(), 1);
    assert_eq!(scores(&index, &Query { min_score: 10, ..query("typescript") }).len(), 1);
}

#[test]
fn declared_sizes_count_behind_the_index_mode() {
    let index = index(vec![Fragment { declared_tokens: Some(1234), ..alpha() }]);
    assert_eq!(index.search(&query("typescript"), Tokens::Counted)[0].score, 25);
    assert_eq!(index.search(&query("typescript"), Tokens::Declared)[0].score, 20);
}

#[test]
fn the_first_entry_that_contains_a_keyword_counts() {
    let index = index(vec![fragment("skills/x", &["api-design", "api"], &["an api", "api"], &[], 2000)]);
    assert_eq!(scores(&index, &query("api")), [("skills/x".to_owned(), 18)]);
}

#[test]
fn the_best_three_stay_whatever_they_cost() {
    let hits: Vec<Hit> = (0..6).map(|at| Hit { fragment: at, score: 100 - at as u32 }).collect();
    let chosen = |costs: [u32; 6], budget| -> Vec<usize> {
        within_budget(&hits, budget, |at| costs[at]).iter().map(|hit| hit.fragment).collect()
    };
    assert_eq!(chosen([900; 6], 1000), [0, 1, 2]);
    assert_eq!(chosen([100, 100, 100, 900, 100, 100], 1000), [0, 1, 2, 4, 5]);
    assert_eq!(chosen([200, 200, 200, 250, 10, 10], 1000), [0, 1, 2, 3]);
}

#[test]
fn the_index_of_scenarios_answers_or_leaves_it_to_others() {
    let use_when = r#"{"index":{
        "s1":{"scenario":"building apis","keywords":["building","apis"],"uri":"orchestr8://agents/a","category":"agent","estimatedTokens":10},
        "s2":{"scenario":"api design","keywords":["api","design"],"uri":"orchestr8://skills/b","category":"skill","estimatedTokens":20}}}"#;
    let by_keyword = r#"{"keywords":{"api":["s1","s2","gone"],"design":["s2"]}}"#;
    let scenarios = Scenarios::read(use_when, by_keyword).unwrap();
    let text = scenarios.answer(&query("api design"), "orchestr8").unwrap();
    assert!(text.starts_with("# Resource Matches: api design\n"), "{text}");
    assert!(text.contains("1. **Skill: b** (~20 tokens)\n   @orchestr8://skills/b\n"), "{text}");
    assert!(text.contains("2. **Agent: a** (~10 tokens)"), "{text}");
    assert_eq!(scenarios.answer(&query("design"), "orchestr8"), None, "one candidate is too few");
    let narrowed = Query { kinds: vec!["agent".into()], ..query("api") };
    assert_eq!(scenarios.answer(&narrowed, "orchestr8"), None);
    assert!(Scenarios::read("{}", by_keyword).is_err());
}

/// The definition of a score, word for word, without any index.
fn defined(fragment: &Fragment, query: &Query) -> u32 {
    let lower = |texts: &[String]| texts.iter().map(|text| text.to_lowercase()).collect::<Vec<_>>();
    let fields = [lower(&fragment.tags), lower(&fragment.capabilities), lower(&fragment.use_when)];
    let words = keywords(&query.text);
    let mut score = if fragment.tokens < 1000 { 5 } else { 0 };
    for word in &words {
        let first = |field: usize| fields[field].iter().find(|text| text.contains(word.as_str()));
        let points = [(15, 10), (12, 8), (5, 5)];
        let hits: u32 = (0..3)
            .filter_map(|field| first(field).map(|text| if text == word { points[field].0 } else { points[field].1 }))
            .sum();
        score += hits;
        if hits == 0 && words.len() <= 5 && word.len() > 2 {
            let texts = fields[0].iter().chain(&fields[1]).flat_map(|text| text.split_whitespace());
            let alike = texts.filter(|text| text.len() > 2).map(|text| points_of(word, text));
            score += alike.max().unwrap_or(0);
        }
    }
    for text in fields.iter().flatten() {
        let phrase = words.windows(2).any(|pair| text.contains(&format!("{} {}", pair[0], pair[1])));
        score += if phrase { 20 } else { 0 };
    }
    score
}

fn points_of(a: &str, b: &str) -> u32 {
    u32::from(points(a.as_bytes(), b.as_bytes()))
}

proptest! {
    #[test]
    fn the_index_scores_by_the_definition(
        fields in prop::collection::vec(prop::collection::vec("(api|rest|rests|apis|x1|typed|typo|typos)( (api|rest|typed|x1)){0,2}", 0..4), 3..4),
        text in "(api|rest|typed|typo|x1|rest-api|zzz)( (api|rest|typed|typo|x1)){0,5}",
        tokens in prop_oneof![Just(10_u32), Just(5000)],
    ) {
        let borrow = |at: usize| fields[at].iter().map(String::as_str).collect::<Vec<_>>();
        let one = fragment("agents/a", &borrow(0), &borrow(1), &borrow(2), tokens);
        let query = query(&text);
        let expected = defined(&one, &query);
        let index = index(vec![alpha(), one]);
        let found = scores(&index, &query).into_iter().find(|(id, _)| id == "agents/a");
        prop_assert_eq!(found.map(|(_, score)| score), Some(expected));
    }
}
