//! The front over real sockets: a client that speaks raw HTTP on one side, a server in the test on the other.

mod guarding;
mod harness;
mod legacy;
mod lifecycle;
mod posts;
mod stateless;
mod stateless_ends;
mod streams;
