//! Tests of certificates.
