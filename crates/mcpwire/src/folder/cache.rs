//! Answers that are kept for a while: the least used goes first, and what has not been asked for in time is forgotten.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use lru::LruCache;

#[derive(Debug)]
pub(super) struct Cache<V> {
    entries: Mutex<LruCache<String, (Instant, V)>>,
    keep: Duration,
}

impl<V: Clone> Cache<V> {
    /// A cache of so many entries; none at all keeps nothing.
    pub(super) fn new(size: usize, keep: Duration) -> Option<Cache<V>> {
        Some(Cache { entries: Mutex::new(LruCache::new(NonZeroUsize::new(size)?)), keep })
    }

    pub(super) fn get(&self, key: &str, now: Instant) -> Option<V> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let (used, value) = entries.get_mut(key)?;
        if now.saturating_duration_since(*used) > self.keep {
            entries.pop(key);
            return None;
        }
        *used = now;
        Some(value.clone())
    }

    pub(super) fn put(&self, key: String, value: V, now: Instant) {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).put(key, (now, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_used_goes_first_and_time_passes() {
        let cache = Cache::new(2, Duration::from_secs(10)).unwrap();
        let start = Instant::now();
        cache.put("a".into(), 1, start);
        cache.put("b".into(), 2, start);
        assert_eq!(cache.get("a", start), Some(1));
        cache.put("c".into(), 3, start);
        assert_eq!((cache.get("b", start), cache.get("a", start)), (None, Some(1)));
        let later = start + Duration::from_secs(8);
        assert_eq!(cache.get("a", later), Some(1), "being asked for keeps it");
        assert_eq!(cache.get("a", later + Duration::from_secs(8)), Some(1));
        assert_eq!(cache.get("c", later + Duration::from_secs(8)), None);
        assert!(Cache::<u8>::new(0, Duration::ZERO).is_none());
    }
}
