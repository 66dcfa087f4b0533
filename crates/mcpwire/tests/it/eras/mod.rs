//! Every era of client with every era of server, over every transport.
//!
//! Clients with sessions run the suite of [`crate::table`]; clients without have a suite of their own.

mod abandoned;
mod asking;
mod edges;
mod listening;
mod new_clients;
mod old_clients;
mod one_process;
mod opening;
mod suite;
mod together;
