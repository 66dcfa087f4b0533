//! Tests of the built binary against real sockets and processes.

mod connect;
mod support;
