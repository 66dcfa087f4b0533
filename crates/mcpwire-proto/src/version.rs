//! The published protocol versions; what each of them changes is left to the code that depends on it.

pub const V2024_11_05: &str = "2024-11-05";
pub const V2025_03_26: &str = "2025-03-26";
pub const V2025_06_18: &str = "2025-06-18";
pub const V2025_11_25: &str = "2025-11-25";

/// The versions that open with `initialize` and live in a session, oldest first.
pub const SESSION_ERA: [&str; 4] = [V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25];

/// The first version without a handshake and without sessions: every request says by itself what it needs.
pub const V2026_07_28: &str = "2026-07-28";

/// The versions in which every request stands for itself, oldest first.
pub const STATELESS_ERA: [&str; 1] = [V2026_07_28];

/// All versions, newest first: what a server that speaks both eras names.
pub const ALL: [&str; 5] = [V2026_07_28, V2025_11_25, V2025_06_18, V2025_03_26, V2024_11_05];

/// JSON-RPC batches came with 2025-03-26 and went with the next version.
pub fn allows_batches(version: &str) -> bool {
    version == V2025_03_26
}
