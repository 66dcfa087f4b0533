//! mcpwire connects MCP clients to MCP servers: fronts, targets, and the bridge between them.
//!
//! The protocol itself, without I/O, is in [`mcpwire_proto`].

mod alarm;
mod atomic;
mod bells;
pub mod bridge;
pub mod cache;
pub mod channel;
pub mod cli;
pub mod client;
pub mod config;
pub mod expose;
pub mod folder;
pub mod health;
pub mod hub;
pub mod link;
mod outgoing;
mod rarely;
pub mod reference;
#[cfg(test)]
#[path = "../../mcpwire-proto/tests/schema/check.rs"]
mod schema;
pub mod share;
pub mod shutdown;
pub mod target;
pub mod transport;
mod watch;
