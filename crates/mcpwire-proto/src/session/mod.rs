//! Conversations between one client and one server, as state machines without I/O.
