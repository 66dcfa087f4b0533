//! What mcpwire promises to reach, and whether this run saw it reached.

use serde::Serialize;

#[derive(Serialize)]
pub struct Goal {
    pub what: String,
    pub wanted: String,
    pub got: String,
    /// Absent if one side of the comparison was not measured.
    pub reached: Option<bool>,
}

#[derive(Clone, Copy)]
pub enum At {
    Most(f64),
    Least(f64),
}

pub fn at_most(what: &str, limit: f64, unit: &str, got: Option<f64>) -> Goal {
    Goal {
        what: what.to_string(),
        wanted: format!("<= {limit} {unit}").trim_end().to_string(),
        got: got.map_or_else(not_measured, |got| format!("{got:.2} {unit}").trim_end().to_string()),
        reached: got.map(|got| got <= limit),
    }
}

/// A comparison of calls, on one core and on all cores: it counts as reached only if it holds both ways.
pub fn ratios(what: &str, got: Option<[f64; 2]>, at: At) -> Goal {
    let wanted = match at {
        At::Most(limit) => format!("<= {limit} x"),
        At::Least(limit) => format!(">= {limit} x"),
    };
    let holds = |ratio: f64| match at {
        At::Most(limit) => ratio <= limit,
        At::Least(limit) => ratio >= limit,
    };
    Goal {
        what: what.to_string(),
        wanted,
        got: got.map_or_else(not_measured, |[one, all]| format!("{one:.2} x on one core, {all:.2} x on all")),
        reached: got.map(|both| both.into_iter().all(holds)),
    }
}

pub fn not_measured() -> String {
    "not measured".to_string()
}
