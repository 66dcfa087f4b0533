//! The machines of both eras from outside: transcripts as data, and a simulation of both ends.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that meets the unexpected has failed")]

mod judge;
#[path = "../schema/check.rs"]
mod schema;
mod simulation;
mod transcript;
