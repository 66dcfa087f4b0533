//! Ids and progress tokens on the one link that all clients share: a client's own as long as no two use the same.

use std::collections::{HashMap, VecDeque};

use mcpwire_proto::Id;

/// How many names of cancelled requests are kept from being used again.
const RETIRED: usize = 4096;

/// A name on the link, and as the client wrote it.
#[derive(Debug, Clone)]
pub(super) struct Name {
    pub(super) ours: Id,
    pub(super) theirs: Id,
}

impl Name {
    pub(super) fn is_renamed(&self) -> bool {
        self.ours != self.theirs
    }
}

/// The ids, or the tokens, that are in use, each with the exchange it belongs to; `None` if that was cancelled. A server
/// may still answer a cancelled request, and that answer must reach nobody.
#[derive(Debug, Default)]
pub(super) struct Names {
    used: HashMap<Id, Option<u64>>,
    retired: VecDeque<Id>,
    next: u64,
}

impl Names {
    /// Takes a name for an exchange: the client's own, or a fresh one if that is in use.
    pub(super) fn take(&mut self, theirs: Id, exchange: u64) -> Name {
        let mut ours = theirs.clone();
        while self.used.contains_key(&ours) {
            self.next += 1;
            ours = Id::from(format!("mcpwire:{}", self.next).as_str());
        }
        self.used.insert(ours.clone(), Some(exchange));
        Name { ours, theirs }
    }

    /// The exchange that has this name.
    pub(super) fn owner(&self, ours: &Id) -> Option<u64> {
        self.used.get(ours).copied().flatten()
    }

    /// Nothing more comes under this name.
    pub(super) fn release(&mut self, ours: &Id) {
        self.used.remove(ours);
    }

    /// Something may still come under this name.
    pub(super) fn retire(&mut self, ours: Id) {
        self.used.insert(ours.clone(), None);
        self.retired.push_back(ours);
        if self.retired.len() > RETIRED
            && let Some(oldest) = self.retired.pop_front()
            && self.used.get(&oldest) == Some(&None)
        {
            self.used.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_unless_two_use_the_same() {
        let mut names = Names::default();
        let one = Id::from(1);
        assert!(!names.take(one.clone(), 10).is_renamed());
        let other = names.take(Id::from_json("1.0").unwrap(), 11);
        assert!(other.is_renamed());
        assert_eq!((names.owner(&one), names.owner(&other.ours)), (Some(10), Some(11)));
        names.release(&one);
        assert!(!names.take(one, 12).is_renamed());
    }

    #[test]
    fn a_cancelled_name_is_not_used_again_for_long() {
        let mut names = Names::default();
        let cancelled = names.take(Id::from(1), 10);
        names.retire(cancelled.ours);
        assert_eq!(names.owner(&Id::from(1)), None);
        assert!(names.take(Id::from(1), 11).is_renamed());
        for number in 0..RETIRED as u64 {
            names.retire(Id::from(number + 100));
        }
        assert!(!names.take(Id::from(1), 12).is_renamed());
        assert!(names.used.len() <= RETIRED + 2);
    }
}
