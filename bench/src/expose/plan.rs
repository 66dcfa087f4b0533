//! How much is measured: the counts of a full and of a quick run.

use std::time::Duration;

use crate::places::Pace;

/// The clients in the two throughput measurements.
pub const SOME: usize = 16;
pub const MANY: usize = 64;
/// Sessions that are opened and left.
pub const ABANDONED: usize = 20;
/// What gateways are told to let sessions idle for.
pub const IDLE: Duration = Duration::from_secs(2);
/// What they may take longer, to notice it and to end a child.
pub const SLACK: Duration = Duration::from_secs(3);

#[derive(Clone, Copy)]
pub struct Plan {
    /// Turns with calls on one core, and as many on all cores.
    pub rounds: usize,
    /// Calls before anything is timed, by all clients together.
    pub warm_up: usize,
    pub sequential: usize,
    pub flood: usize,
    /// Memory is read with this many idle sessions, and again with that many.
    pub idle: [usize; 2],
    /// Memory is read after this many calls of one client, and again after that many.
    pub busy: [usize; 2],
    /// How often sessions are abandoned; the last time is reported.
    pub abandon: usize,
}

impl Plan {
    pub fn of(pace: Pace, quick: bool) -> Self {
        match (pace, quick) {
            (Pace::Fast, false) => Self {
                rounds: 7,
                warm_up: 2_000,
                sequential: 1_000,
                flood: 6_000,
                idle: [50, 250],
                busy: [2_000, 20_000],
                abandon: 4,
            },
            (Pace::Fast, true) => Self {
                rounds: 3,
                warm_up: 1_000,
                sequential: 500,
                flood: 4_000,
                idle: [50, 250],
                busy: [2_000, 20_000],
                abandon: 2,
            },
            (Pace::Slow, false) => Self {
                rounds: 2,
                warm_up: 600,
                sequential: 200,
                flood: 600,
                idle: [20, 120],
                busy: [500, 2_000],
                abandon: 4,
            },
            (Pace::Slow, true) => Self {
                rounds: 1,
                warm_up: 256,
                sequential: 60,
                flood: 256,
                idle: [10, 40],
                busy: [100, 400],
                abandon: 2,
            },
        }
    }
}
