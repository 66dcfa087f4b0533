//! Tests of QUIC.
