//! QUIC on real sockets: the wire byte by byte, each side against a peer by hand, and peers that misbehave.

mod agreement;
mod front;
mod hostile;
mod peers;
mod pieces;
mod streams;
mod target;
mod wire;
