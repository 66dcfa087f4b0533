//! The ways a connection is made. Each hands out a [`crate::link::Link`]; none knows another.

pub mod http;
pub mod stdio;
