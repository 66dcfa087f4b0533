//! How often clients hear that a list changed: at once, and then no more than once in a while, the last change included.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::Hub;
use crate::Message;

/// The `list_changed` notifications, by method.
#[derive(Debug, Default)]
pub(super) struct Announcements {
    sent: BTreeMap<&'static str, Instant>,
    /// Changes since then, which are announced later, all at once.
    due: BTreeSet<&'static str>,
}

impl Announcements {
    pub(super) fn poll_timeout(&self, pause: Duration) -> Option<Instant> {
        self.due.iter().filter_map(|change| self.sent.get(change)).min().map(|sent| *sent + pause)
    }
}

impl Hub {
    /// Tells who listens that a list changed, now or when the pause since the last time is over.
    pub(super) fn announce(&mut self, change: &'static str, now: Instant) {
        let notification = Message::notification(change, None);
        let heard = self.listens.values().any(|listen| listen.wants(&notification));
        let Announcements { sent, due } = &mut self.announcements;
        due.remove(change);
        if !heard {
            return;
        }
        if sent.get(change).is_some_and(|sent| *sent + self.config.coalesce > now) {
            due.insert(change);
            return;
        }
        sent.insert(change, now);
        self.publish(&notification, None);
    }

    pub(super) fn announce_timeout(&mut self, now: Instant) {
        for change in self.announcements.due.clone() {
            self.announce(change, now);
        }
    }
}
