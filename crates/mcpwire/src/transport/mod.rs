//! The transports: each turns a connection of its kind into a [`crate::link::Link`]; they never import one another.

pub mod http;
