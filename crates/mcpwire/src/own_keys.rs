//! Maps by keys of our own making, counted up or random, which nobody can choose so that they collide.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map from keys that we made up ourselves.
pub(crate) type OwnKeys<K, V> = HashMap<K, V, BuildHasherDefault<Spread>>;

/// Spreads a key over all bits.
#[derive(Debug, Default)]
pub(crate) struct Spread(u64);

impl Hasher for Spread {
    fn write_u64(&mut self, number: u64) {
        // By the golden ratio: neighbours end up far apart, and the upper bits, by which the map tells them apart, differ.
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut number = [0; 8];
            number[..part.len()].copy_from_slice(part);
            self.write_u64(u64::from_le_bytes(number));
        }
    }

    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::BuildHasher;

    use super::*;

    #[test]
    fn neighbours_differ_in_the_bits_that_count() {
        let hash = |number: u64| BuildHasherDefault::<Spread>::default().hash_one(number);
        let lower: HashSet<u64> = (0..1024).map(|number| hash(number) & 0xfff).collect();
        let upper: HashSet<u64> = (0..1024).map(|number| hash(number) >> 57).collect();
        assert!(lower.len() > 850, "{} of 1024", lower.len());
        assert_eq!(upper.len(), 128);
    }
}
