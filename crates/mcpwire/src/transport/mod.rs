//! The ways a connection is made. Each hands out a [`crate::link::Link`]; none knows another. What those with a message
//! a line have in common is in `lines`.

pub mod child;
pub mod http;
mod lines;
pub mod quic;
pub mod stdio;
pub mod unix;
