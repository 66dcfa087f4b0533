//! TLS and proxies.
