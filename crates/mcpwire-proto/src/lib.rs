//! The Model Context Protocol without I/O: bytes and `now` come in, messages and effects go out.
//!
//! Sockets, processes, clocks, threads and configuration are left to the `mcpwire` crate.

pub mod conversation;
pub mod era;
pub mod error;
pub mod failure;
mod filter;
pub mod frame;
pub mod headers;
pub mod hub;
pub mod id;
mod identity;
pub mod json;
pub mod message;
pub mod meta;
pub mod method;
pub mod object;
pub mod packet;
pub mod pending;
pub mod policy;
pub mod session;
pub mod version;

pub use error::{Fault, code};
pub use failure::{Cause, Failure, HttpStatus, Refusal};
pub use id::{Id, IdMap};
pub use message::{Kind, Message, Rejected};
pub use object::Object;
pub use packet::{Lane, Packet};
pub use policy::Policy;
