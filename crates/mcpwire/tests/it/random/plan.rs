//! What a seed decides, before anything runs.

use fastrand::Rng;
use mcpwire_proto::version::V2026_07_28;

/// What is between the client and the reference server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// `connect -- server`
    Child,
    /// `connect URL`, with the server on HTTP.
    Http,
    /// `connect URL`, with `expose -- server` there.
    Exposed,
    /// The same with `--share`.
    Shared,
    /// `connect` to a server on HTTP and another on stdio, as one.
    Hub,
}

/// What goes wrong after a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A server is killed.
    Kill,
    /// All connections are cut.
    Cut,
    /// A connection is cut after so many more bytes from the server.
    CutAfter(u32),
}

/// What a client does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Calls the tool that keeps a ledger.
    Count,
    Echo,
    /// Calls a tool that takes so many milliseconds and reports progress.
    Slow(u32),
    /// Calls a tool that asks the user.
    Ask,
    List,
    Read,
    Unknown,
    /// Cancels the oldest request that waits.
    Cancel,
    Garbage,
}

/// The turns of one client: what it writes at once, and whether it then waits for all answers.
#[derive(Debug, Clone)]
pub struct Script {
    pub turns: Vec<(Vec<Step>, bool)>,
    /// Closes its side without waiting for the answers.
    pub leaves_early: bool,
}

#[derive(Debug)]
pub struct Plan {
    pub seed: u64,
    pub way: Way,
    /// The version that the clients speak.
    pub version: &'static str,
    /// What the servers speak, as `reference --era` takes it.
    pub server: &'static str,
    pub scripts: Vec<Script>,
    pub turns: usize,
    /// What happens after each turn.
    pub faults: Vec<Option<Fault>>,
}

impl Plan {
    pub fn new(seed: u64) -> Plan {
        let mut rng = Rng::with_seed(seed);
        let way = *pick(&mut rng, &[Way::Child, Way::Http, Way::Exposed, Way::Shared, Way::Hub]);
        let version = *pick(&mut rng, &[V2026_07_28, V2026_07_28, "2025-11-25", "2025-06-18", "2025-03-26"]);
        let server = *pick(&mut rng, &["both", "session", "stateless"]);
        let turns = rng.usize(2..8);
        let troubled = rng.bool();
        let faults = (0..turns).map(|_| (troubled && rng.u8(..3) == 0).then(|| fault(&mut rng, way))).collect();
        let clients = if matches!(way, Way::Exposed | Way::Shared) { rng.usize(1..3) } else { 1 };
        let scripts = (0..clients).map(|_| script(&mut rng, turns, version)).collect();
        Plan { seed, way, version, server, scripts, turns, faults }
    }

    pub fn stateless(&self) -> bool {
        self.version == V2026_07_28
    }

    /// Whether something goes wrong, so that calls may fail.
    pub fn troubled(&self) -> bool {
        self.faults.iter().any(Option::is_some)
    }
}

fn pick<'a, T>(rng: &mut Rng, from: &'a [T]) -> &'a T {
    &from[rng.usize(..from.len())]
}

fn fault(rng: &mut Rng, way: Way) -> Fault {
    match rng.u8(..3) {
        0 if way != Way::Child => Fault::Cut,
        1 if way != Way::Child => Fault::CutAfter(rng.u32(..400)),
        _ => Fault::Kill,
    }
}

fn script(rng: &mut Rng, turns: usize, version: &str) -> Script {
    let leaves_early = rng.u8(..3) == 0;
    let asks = !leaves_early && version >= "2025-06-18";
    let turn = |rng: &mut Rng| {
        let steps = (0..rng.usize(..6)).map(|_| step(rng, asks)).collect();
        (steps, rng.u8(..3) == 0)
    };
    Script { turns: (0..turns).map(|_| turn(rng)).collect(), leaves_early }
}

fn step(rng: &mut Rng, asks: bool) -> Step {
    match rng.u8(..16) {
        0..=4 => Step::Count,
        5..=7 => Step::Echo,
        8 | 9 => Step::Slow(rng.u32(..200)),
        10 if asks => Step::Ask,
        10 | 11 => Step::List,
        12 => Step::Read,
        13 => Step::Unknown,
        14 => Step::Cancel,
        _ => Step::Garbage,
    }
}
