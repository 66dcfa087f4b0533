//! Framing: bytes in, texts out. What the texts mean is left to [`crate::message`].

pub mod glimpse;
pub mod line;
pub mod sse;

/// The largest message taken by default, in bytes.
pub const DEFAULT_LIMIT: usize = 10 * 1024 * 1024;
