//! Signs the `requestState` that a client carries from one round to the next, so that nobody but us can write one.

use std::fmt;

use ring::hmac;
use subtle::ConstantTimeEq;

/// The key of one server, or of all that were given the same secret.
pub(super) struct Seal(hmac::Key);

impl Seal {
    pub(super) fn new(secret: &[u8]) -> Seal {
        Seal(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    /// The text with a signature that holds for it and for what it is bound to.
    pub(super) fn seal(&self, text: &str, bound_to: &str) -> String {
        format!("{text}.{}", self.signature(text, bound_to))
    }

    /// The text that was sealed; `None` unless it is as it was, and bound to the same.
    pub(super) fn open<'a>(&self, sealed: &'a str, bound_to: &str) -> Option<&'a str> {
        let (text, signature) = sealed.rsplit_once('.')?;
        let genuine = self.signature(text, bound_to);
        bool::from(genuine.as_bytes().ct_eq(signature.as_bytes())).then_some(text)
    }

    fn signature(&self, text: &str, bound_to: &str) -> String {
        let mut context = hmac::Context::with_key(&self.0);
        // The length keeps what is signed from being divided elsewhere.
        context.update(&(text.len() as u64).to_be_bytes());
        context.update(text.as_bytes());
        context.update(bound_to.as_bytes());
        context.sign().as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_sealed_is_opened() {
        let seal = Seal::new(b"secret");
        let sealed = seal.seal("a.b", "request");
        assert_eq!(seal.open(&sealed, "request"), Some("a.b"));
        assert_eq!(seal.open(&sealed, "another"), None);
        assert_eq!(Seal::new(b"other").open(&sealed, "request"), None);
        for at in 0..sealed.len() {
            let mut bytes = sealed.clone().into_bytes();
            bytes[at] ^= 1;
            assert_eq!(seal.open(&String::from_utf8(bytes).unwrap(), "request"), None, "byte {at}");
        }
        for cut in 0..sealed.len() {
            assert_eq!(seal.open(&sealed[..cut], "request"), None);
        }
        assert_eq!(seal.open(&format!("{sealed}0"), "request"), None);
        assert_eq!(seal.open(&seal.seal("a", ".brequest"), "request"), None);
    }
}
