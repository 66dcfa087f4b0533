//! Every era of client with every era of server, over every transport.
//!
//! Clients with sessions run the suite of [`crate::table`]; clients without have a suite of their own.

mod old_clients;
