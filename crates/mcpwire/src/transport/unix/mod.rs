//! Unix sockets with a message a line, as target and as front: the stdio framing on a socket file.

mod front;
mod socket;
mod target;

pub use self::front::{Options, serve};
pub use self::socket::Listener;
pub use self::target::connect;
