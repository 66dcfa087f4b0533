//! Conversations as data: the files in `tests/transcripts`, and the one function that checks them.
//!
//! A file holds scenarios, each after a line `== its name`:
//!
//! ```text
//! client> MESSAGE             the client says this
//! >server MESSAGE             and this is to reach the server (`>server#2`: over that connection)
//! server> MESSAGE             the server says this (`server#2[7]>`: on the stream of request 7)
//! >client MESSAGE             and this is to reach the client (`>client[7]`: on the stream of request 7)
//! open #2, close #2           a connection is to be opened, closed
//! learned session=yes         the finding that is to be passed on
//! + 3s                        time passes
//! gone #0 WHY                 the server is gone; `lost`: it forgot the session; `closed`: it cannot be had any more
//! failed #0 ID KIND WHY       the request under that id did not get through: unreachable, interrupted, lost, refused
//! config NAME=VALUE …         how the conversation is set up; before everything else
//! quiet                       nothing may be remembered of what was under way
//! do NAME                     the lines of that block, as in `block NAME … end`
//! ```
//!
//! `@name` and `@name(a|b)` stand for the text of a line `def name = text`, with `%1` and `%2` replaced. In what is expected
//! `"*"` fits everything, `"$name"` what it fitted before; in what is said `"$name"` is what it fitted. A `~` before a line says
//! that it may come later than others of its kind. A `!` after `client` or `server` says that it is against the protocol.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use mcpwire_proto::conversation::{Config, Conversation, Effect, Known, Upstream};
use mcpwire_proto::{Cause, Failure, HttpStatus, Id, Lane, Message, Packet, Policy, version};
use serde_json::Value;

use crate::judge::{By, Judge};

#[test]
fn conversations_go_as_written() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/transcripts");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut shared = Shared::default();
    let (mut failures, mut count) = (String::new(), 0);
    for path in paths.iter().filter(|path| path.extension().is_some_and(|ext| ext == "txt")) {
        let text = std::fs::read_to_string(path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        for (title, lines) in shared.scenarios(&text) {
            count += 1;
            let run = std::panic::AssertUnwindSafe(|| check(&shared, &lines));
            if let Err(panic) = std::panic::catch_unwind(run) {
                let why = panic.downcast_ref::<String>().cloned().unwrap_or_default();
                writeln!(failures, "--- {name}: {title}\n{why}\n").unwrap();
            }
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
    assert!(count > 60, "only {count} scenarios were found");
}

type Line = (usize, String);

/// What scenarios share: texts and blocks under names.
#[derive(Default)]
struct Shared {
    texts: HashMap<String, String>,
    blocks: HashMap<String, Vec<Line>>,
}

impl Shared {
    /// Takes in what is defined in a file, and gives its scenarios.
    fn scenarios(&mut self, text: &str) -> Vec<(String, Vec<Line>)> {
        let mut found: Vec<(String, Vec<Line>)> = Vec::new();
        let mut block: Option<(String, Vec<Line>)> = None;
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
            } else if let Some((name, text)) = line.strip_prefix("def ").and_then(|rest| rest.split_once(" = ")) {
                self.texts.insert(name.to_owned(), text.to_owned());
            } else if let Some(name) = line.strip_prefix("block ") {
                block = Some((name.to_owned(), Vec::new()));
            } else if line == "end" {
                self.blocks.extend(block.take());
            } else if let Some(title) = line.strip_prefix("== ") {
                found.push((title.to_owned(), Vec::new()));
            } else {
                let lines = block.as_mut().map(|(_, lines)| lines).or(found.last_mut().map(|(_, lines)| lines));
                lines.expect("a line before the first scenario").push((number + 1, line.to_owned()));
            }
        }
        found
    }

    /// Replaces `@name(…)` by what it stands for, until nothing is left to replace.
    fn expand(&self, line: &str) -> String {
        let Some(at) = line.find('@') else { return line.to_owned() };
        let (before, rest) = line.split_at(at);
        let rest = &rest[1..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(rest.len());
        let (name, mut rest) = rest.split_at(end);
        let mut arguments = Vec::new();
        if rest.starts_with('(') {
            let mut depth = 0;
            let close = rest.char_indices().find(|(_, c)| {
                depth += i32::from(*c == '(') - i32::from(*c == ')');
                depth == 0
            });
            let (close, _) = close.unwrap_or_else(|| panic!("no end of @{name}( in {line}"));
            // What is inside may hold bars of its own.
            arguments = self.expand_arguments(&rest[1..close]);
            rest = &rest[close + 1..];
        }
        let mut text = self.texts.get(name).unwrap_or_else(|| panic!("no text @{name}")).clone();
        for number in 1..=9 {
            text = text.replace(&format!("%{number}"), arguments.get(number - 1).map_or("", String::as_str));
        }
        format!("{before}{}", self.expand(&format!("{text}{rest}")))
    }

    fn expand_arguments(&self, text: &str) -> Vec<String> {
        let (mut parts, mut depth) = (vec![String::new()], 0);
        for c in text.chars() {
            depth += i32::from(c == '(') - i32::from(c == ')');
            match c {
                '|' if depth == 0 => parts.push(String::new()),
                c => parts.last_mut().unwrap().push(c),
            }
        }
        parts.iter().map(|part| self.expand(part)).collect()
    }
}

/// Runs one scenario. Fails on anything that is missing and on anything that nobody expected.
fn check(shared: &Shared, lines: &[Line]) {
    let mut lines: VecDeque<Line> = lines.iter().cloned().collect();
    let (mut config, mut policy) = (Config { sorted: true, ..Config::default() }, Policy::default());
    let sets_up = |(_, line): &Line| line.starts_with("config ") || line.starts_with("do ");
    while lines.front().is_some_and(sets_up)
        && let Some((number, line)) = lines.pop_front()
    {
        match line.strip_prefix("do ") {
            Some(block) => prepend(&mut lines, shared, block),
            None => line.split(' ').skip(1).for_each(|setting| match setting.strip_prefix("exclude=") {
                Some(pattern) => policy = Policy::new(&[], &[pattern.to_owned()]),
                None => configure(&mut config, setting, number),
            }),
        }
    }
    let mut stage = Stage::new(config, policy);
    while let Some((number, line)) = lines.pop_front() {
        if let Some(block) = line.strip_prefix("do ") {
            prepend(&mut lines, shared, block);
            continue;
        }
        let line = shared.expand(&line);
        let run = std::panic::AssertUnwindSafe(|| stage.step(&line));
        if let Err(panic) = std::panic::catch_unwind(run) {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or(panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default();
            panic!("line {number}: {line}\n{text}");
        }
    }
    stage.expect_nothing("at the end");
}

fn prepend(lines: &mut VecDeque<Line>, shared: &Shared, block: &str) {
    let block = shared.blocks.get(block).unwrap_or_else(|| panic!("no block {block}"));
    block.iter().rev().for_each(|line| lines.push_front(line.clone()));
}

fn configure(config: &mut Config, setting: &str, number: usize) {
    let (name, value) = setting.split_once('=').unwrap_or_else(|| panic!("line {number}: no setting: {setting}"));
    let yes = || Some(value == "yes");
    match name {
        "attribute" => (config.relay.attribute, config.sorted) = (value == "yes", value != "yes"),
        "sorted" => config.sorted = value == "yes",
        "timeout" => config.relay.timeout = Some(duration(value)),
        "wait" => config.relay.wait = duration(value),
        "inflight" => config.relay.max_in_flight = value.parse().unwrap(),
        "session" => config.known.session = yes(),
        "stateless" => config.known.stateless = yes(),
        "protocol" => config.protocol = version::ALL.into_iter().find(|known| *known == value),
        "sessions" => config.most_sessions = value.parse().unwrap(),
        "parked" => config.most_parked = value.parse().unwrap(),
        "park" => config.park_for = duration(value),
        "probe" => config.probe_for = duration(value),
        _ => panic!("line {number}: no setting: {setting}"),
    }
}

fn duration(text: &str) -> Duration {
    match text.strip_suffix("ms") {
        Some(millis) => Duration::from_millis(millis.parse().unwrap()),
        None => Duration::from_secs(text.trim_end_matches('s').parse().unwrap()),
    }
}

/// A conversation with its peers played by the transcript.
struct Stage {
    conversation: Conversation,
    now: Instant,
    judge: Judge,
    /// What came out and was not expected yet, by where it goes.
    to_client: VecDeque<Packet>,
    to_server: BTreeMap<u32, VecDeque<Packet>>,
    other: VecDeque<String>,
    /// What was sent to each connection, for those that fail.
    sent: HashMap<(u32, Id), Message>,
    bound: HashMap<String, Value>,
    unsorted: bool,
}

impl Stage {
    #[allow(clippy::disallowed_methods, reason = "any instant will do to begin with")]
    fn new(config: Config, policy: Policy) -> Stage {
        Stage {
            unsorted: !config.sorted,
            conversation: Conversation::new(config).limited(policy).opened_first(),
            now: Instant::now(),
            judge: Judge::default(),
            to_client: VecDeque::new(),
            to_server: BTreeMap::new(),
            other: VecDeque::new(),
            sent: HashMap::new(),
            bound: HashMap::new(),
        }
    }

    fn step(&mut self, line: &str) {
        let (later, line) = line.strip_prefix('~').map_or((false, line), |line| (true, line));
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        if let Some(place) = word.strip_prefix(">client") {
            return self.expect_at_client(lane(place), rest, later);
        }
        if let Some(place) = word.strip_prefix(">server") {
            let upstream = place.strip_prefix('#').map_or(0, number_of);
            return self.expect_at_server(upstream, rest, later);
        }
        match word {
            "open" | "close" | "learned" => return self.expect_other(line, later),
            _ => self.expect_nothing("before this"),
        }
        if let Some(place) = word.strip_suffix('>') {
            self.say(place, rest);
        } else {
            self.happen(word, rest);
        }
        self.drain();
    }

    /// A peer says something.
    fn say(&mut self, place: &str, text: &str) {
        let text = self.substitute(text);
        let by = if place.contains('!') { By::Rogue } else { By::Peer };
        let place = place.replace('!', "");
        if let Some(rest) = place.strip_prefix("server") {
            let (number, stream) =
                rest.split_once('[').map_or((rest, ""), |(number, _)| (number, &rest[number.len()..]));
            let upstream = number.strip_prefix('#').map_or(0, number_of);
            let lane = lane(stream).unwrap_or(if self.unsorted { Lane::Unsorted } else { Lane::Main });
            let message = Message::parse(text.into()).expect("servers' garbage does not come this far");
            self.judge.at_server(upstream, by, &message);
            return self.conversation.handle_server(Upstream(upstream), Packet::new(lane, message), self.now);
        }
        assert_eq!(place, "client", "who is that?");
        if text.starts_with('[') {
            let parts: Vec<Value> = serde_json::from_str(&text).unwrap();
            let parts = parts.iter().filter_map(|part| Message::parse(part.to_string().into()).ok());
            parts.for_each(|part| self.judge.at_client(by, &part));
            return self.conversation.handle_client_batch(&text.into(), self.now);
        }
        match Message::parse(text.into()) {
            Ok(message) => {
                self.judge.at_client(by, &message);
                self.conversation.handle_client(message, self.now);
            }
            Err(rejected) => {
                rejected.id.iter().for_each(|id| self.judge.garbage_from_client(id));
                self.conversation.handle_garbage(rejected);
            }
        }
    }

    fn happen(&mut self, word: &str, rest: &str) {
        let (target, why) = rest.split_once(' ').unwrap_or((rest, "no reason"));
        let number: Option<u32> = target.strip_prefix('#').map(number_of);
        let upstream = Upstream(number.unwrap_or_default());
        match word {
            "+" => self.pass(duration(rest)),
            "gone" => {
                self.judge.server_lost(upstream.0);
                self.conversation.handle_server_gone(upstream, why, self.now);
            }
            "lost" => {
                self.judge.server_lost(upstream.0);
                self.conversation.handle_session_lost(upstream, why, self.now);
            }
            "closed" => self.conversation.handle_closed(upstream, why, self.now),
            "failed" => self.fail(upstream, why),
            "quiet" => assert_eq!(self.conversation.load(), 0, "something is remembered: {:#?}", self.conversation),
            "owed" => assert_eq!(self.conversation.owed_to_client(), rest.parse::<usize>().unwrap()),
            "over" => assert!(self.conversation.is_over()),
            _ => panic!("what is {word}?"),
        }
    }

    fn fail(&mut self, upstream: Upstream, what: &str) {
        let what = self.substitute(what);
        let mut words = what.splitn(3, ' ');
        let id = Id::from_json(words.next().unwrap()).expect("an id");
        let (kind, why) = (words.next().unwrap_or_default(), words.next().unwrap_or("no reason").to_owned());
        let message = self.sent.get(&(upstream.0, id.clone())).unwrap_or_else(|| panic!("{id} was not sent")).clone();
        let failure = match kind {
            "unreachable" => Failure::Unreachable(why),
            "interrupted" => Failure::Interrupted(why),
            "lost" => Failure::SessionLost(why),
            "refused" => refused(&why),
            _ => panic!("no failure: {kind}"),
        };
        // Its answer will not come: it may be sent again under the same id.
        self.judge.request_lost(upstream.0, &id);
        self.conversation.handle_failed(upstream, message, failure, self.now);
    }

    /// Lets time pass, with every alarm rung in its time.
    fn pass(&mut self, span: Duration) {
        let end = self.now + span;
        for _ in 0..10_000 {
            match self.conversation.poll_timeout().filter(|at| *at <= end) {
                Some(at) => {
                    self.now = self.now.max(at);
                    self.conversation.handle_timeout(self.now);
                }
                None => {
                    self.now = end;
                    return;
                }
            }
        }
        panic!("an alarm rings for ever");
    }

    fn drain(&mut self) {
        while let Some(effect) = self.conversation.poll_effect() {
            match effect {
                Effect::ToClient(packet) => {
                    self.judge.at_client(By::Us, &packet.message);
                    self.to_client.push_back(packet);
                }
                Effect::ToServer(Upstream(number), packet) => {
                    self.judge.at_server(number, By::Us, &packet.message);
                    if let Some(id) = packet.message.id() {
                        self.sent.insert((number, id.clone()), packet.message.clone());
                    }
                    self.to_server.entry(number).or_default().push_back(packet);
                }
                Effect::Open(upstream) => self.other.push_back(format!("open #{}", name_of(upstream))),
                Effect::Close(upstream) => {
                    self.judge.server_lost(upstream.0);
                    self.other.push_back(format!("close #{}", name_of(upstream)));
                }
                Effect::Learned(Known { session, stateless, .. }) => {
                    let word = |known: Option<bool>| known.map_or("unknown", |yes| if yes { "yes" } else { "no" });
                    self.other.push_back(format!("learned session={} stateless={}", word(session), word(stateless)));
                }
            }
        }
    }

    fn expect_at_client(&mut self, lane: Option<Lane>, text: &str, later: bool) {
        let expected: Value = serde_json::from_str(text).unwrap_or_else(|e| panic!("no JSON: {e}"));
        let packet = take(&mut self.to_client, &mut self.bound, &expected, later);
        match lane {
            Some(lane) => assert_eq!(packet.lane, lane, "it came on another stream"),
            None if packet.message.is_response() => {
                let other = matches!(&packet.lane, Lane::Request(id) if Some(id) != packet.message.id());
                assert!(!other, "the answer came on the stream of another request: {:?}", packet.lane);
            }
            None => {
                assert!(!matches!(packet.lane, Lane::Request(_)), "it came on a request's stream: {:?}", packet.lane)
            }
        }
    }

    fn expect_at_server(&mut self, upstream: u32, text: &str, later: bool) {
        let expected: Value = serde_json::from_str(text).unwrap_or_else(|e| panic!("no JSON: {e}"));
        take(self.to_server.entry(upstream).or_default(), &mut self.bound, &expected, later);
    }

    fn expect_other(&mut self, line: &str, later: bool) {
        let at = if later { self.other.iter().position(|other| other == line) } else { Some(0) };
        let found = at.and_then(|at| self.other.remove(at));
        assert_eq!(found.as_deref(), Some(line), "expected the right");
    }

    fn expect_nothing(&self, when: &str) {
        let mut left = String::new();
        for packet in &self.to_client {
            writeln!(left, ">client ({:?}) {}", packet.lane, text_of(&packet.message)).unwrap();
        }
        for (upstream, packets) in &self.to_server {
            for packet in packets {
                writeln!(left, ">server#{upstream} {}", text_of(&packet.message)).unwrap();
            }
        }
        for other in &self.other {
            writeln!(left, "{other}").unwrap();
        }
        assert!(left.is_empty(), "nobody expected, {when}:\n{left}");
    }

    fn substitute(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, value) in &self.bound {
            text = text.replace(&format!("\"{name}\""), &value.to_string());
        }
        text
    }
}

/// Takes the first packet, or the first that fits, which must fit.
/// A refusal: by HTTP if its data name a status, as the transport writes it, else the server's own.
fn refused(error: &str) -> Failure {
    let read: Value = serde_json::from_str(error).expect("JSON");
    match read["data"]["status"].as_u64().and_then(|status| u16::try_from(status).ok()) {
        Some(status) => Failure::refused(error, Cause::Http(Box::new(HttpStatus { status, ..HttpStatus::default() }))),
        None => Failure::refused_by_server(error),
    }
}

fn take(queue: &mut VecDeque<Packet>, bound: &mut HashMap<String, Value>, expected: &Value, later: bool) -> Packet {
    let mut came = String::new();
    for at in 0..queue.len() {
        let text = text_of(&queue[at].message);
        let value: Value = serde_json::from_str(&text).unwrap();
        let mut names = bound.clone();
        if fits(expected, &value, &mut names) {
            *bound = names;
            return queue.remove(at).unwrap();
        }
        writeln!(came, "{text}").unwrap();
        if !later {
            break;
        }
    }
    panic!("expected {expected}\ncame     {came}");
}

fn fits(expected: &Value, value: &Value, bound: &mut HashMap<String, Value>) -> bool {
    match (expected, value) {
        (Value::String(text), _) if text == "*" => true,
        (Value::String(text), _) if text.starts_with('$') => {
            bound.entry(text.clone()).or_insert_with(|| value.clone()) == value
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| fits(a, b, bound)))
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| fits(a, b, bound)),
        (a, b) => a == b,
    }
}

/// Connections have numbers; the one on which `initialize` is tried is called `spare`.
fn number_of(name: &str) -> u32 {
    if name == "spare" { Upstream::SPARE.0 } else { name.parse().unwrap() }
}

fn name_of(upstream: Upstream) -> String {
    if upstream == Upstream::SPARE { "spare".into() } else { upstream.0.to_string() }
}

fn lane(place: &str) -> Option<Lane> {
    let id = place.strip_prefix('[')?.strip_suffix(']')?;
    Some(Lane::Request(Id::from_json(id).expect("the id of a stream")))
}

fn text_of(message: &Message) -> String {
    String::from_utf8_lossy(message.as_bytes()).into_owned()
}
