//! Conversations between one client and one server, as state machines without I/O.

pub mod backoff;
pub mod legacy;
pub mod share;
