//! Tests of the built binary against real sockets and processes.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that meets the unexpected has failed")]

mod ask;
mod child;
mod client;
mod connect;
mod curl;
mod docs;
mod doctor;
mod eras;
mod folder;
mod hub;
mod install;
mod policy;
mod quic;
mod random;
mod reference;
mod servers;
mod sharp;
mod stateless;
mod status;
mod support;
mod table;
mod tidy;
mod unix;
