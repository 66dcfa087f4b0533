//! The machines of both eras from outside: transcripts as data, and a simulation of both ends.

mod judge;
#[path = "../schema/check.rs"]
mod schema;
mod simulation;
mod transcript;
