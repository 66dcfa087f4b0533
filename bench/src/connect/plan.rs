//! How much is measured: the counts of a full and of a quick run.

use crate::places::Pace;

/// Calls under way at once in the throughput measurement.
pub const WINDOW: usize = 64;
/// The text in the large answer: 8 MB.
pub const BIG: usize = 8_000_000;

#[derive(Clone, Copy)]
pub struct Plan {
    /// Turns with calls on one core, and as many on all cores.
    pub rounds: usize,
    pub starts: usize,
    /// Calls before anything is timed. Node and Python compile as they go, so theirs are not few.
    pub warm_up: usize,
    pub sequential: usize,
    pub flood: usize,
    /// Memory is read after this many calls, and again after that many.
    pub memory: [usize; 2],
    pub big: usize,
}

impl Plan {
    pub fn of(pace: Pace, quick: bool) -> Self {
        match (pace, quick) {
            (Pace::Fast, false) => Self {
                rounds: 11,
                starts: 30,
                warm_up: 1_000,
                sequential: 1_000,
                flood: 8_000,
                memory: [2_000, 20_000],
                big: 5,
            },
            (Pace::Fast, true) => Self {
                rounds: 3,
                starts: 10,
                warm_up: 500,
                sequential: 500,
                flood: 4_000,
                memory: [2_000, 20_000],
                big: 1,
            },
            (Pace::Slow, false) => {
                Self { rounds: 3, starts: 5, warm_up: 800, sequential: 300, flood: 800, memory: [1_000, 4_000], big: 2 }
            }
            (Pace::Slow, true) => {
                Self { rounds: 1, starts: 1, warm_up: 200, sequential: 100, flood: 400, memory: [250, 500], big: 1 }
            }
        }
    }
}
