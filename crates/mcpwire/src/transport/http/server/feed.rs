//! The events of one stream: numbered, kept in the log, and sent to whoever is connected.

use bytes::Bytes;
use tokio::time::Instant;

use super::log::{EventId, EventLog, Record};
use super::stream::Outlet;

/// A stream that outlives its connections: one at a time is attached, or none.
#[derive(Debug)]
pub(super) struct Feed {
    stream: u64,
    /// The number of the newest event.
    sequence: u64,
    /// The number of the newest event that was handed to a connection.
    handed: u64,
    outlet: Option<Outlet>,
    /// When the first connection was attached, if one ever was.
    opened_at: Option<Instant>,
    resumed: bool,
    /// When the connection before the attached one ended.
    left_at: Option<Instant>,
}

impl Feed {
    pub(super) fn new(stream: u64) -> Feed {
        Feed { stream, sequence: 0, handed: 0, outlet: None, opened_at: None, resumed: false, left_at: None }
    }

    pub(super) fn push(&mut self, data: Bytes, log: &mut EventLog) {
        self.sequence += 1;
        let record = Record::new(EventId { stream: self.stream, sequence: self.sequence }, data);
        match &self.outlet {
            Some(outlet) if outlet.offer(&record) => self.handed = self.sequence,
            // Gone, or it reads too slowly: the client may come back for the rest.
            Some(_) => self.detach(),
            None => {}
        }
        log.push(record);
    }

    /// Sends to this connection from now on, beginning with what came after the event of that number. A connection
    /// that was attached before ends.
    pub(super) fn attach(&mut self, outlet: Outlet, after: u64, log: &EventLog) {
        self.detach();
        self.resumed = self.opened_at.is_some();
        self.opened_at.get_or_insert_with(Instant::now);
        let mut expected = after + 1;
        for record in log.after(EventId { stream: self.stream, sequence: after }) {
            if record.id.sequence != expected {
                tracing::warn!(target: "http", after = %record.id, "events were lost: the log of the session is too small for them");
            }
            expected = record.id.sequence + 1;
            if !outlet.offer(record) {
                self.left_at = Some(Instant::now());
                return;
            }
            self.handed = record.id.sequence;
        }
        self.handed = self.sequence;
        self.outlet = Some(outlet);
    }

    pub(super) fn detach(&mut self) {
        if let Some(outlet) = self.outlet.take() {
            self.left_at = Some(outlet.ended_at().unwrap_or_else(Instant::now));
        }
    }

    /// When the last connection ended, if there was one; while one is attached, the one before.
    pub(super) fn left_at(&self) -> Option<Instant> {
        self.outlet.as_ref().and_then(Outlet::ended_at).or(self.left_at)
    }

    /// Whether there ever was a connection.
    pub(super) fn was_attached(&self) -> bool {
        self.opened_at.is_some()
    }

    /// When its connection was attached, if it is still the first one.
    pub(super) fn opened_at(&self) -> Option<Instant> {
        self.opened_at.filter(|_| self.is_attached() && !self.resumed)
    }

    /// Whether there was a connection, and there is none any more.
    pub(super) fn was_left(&self) -> bool {
        self.opened_at.is_some() && !self.is_attached()
    }

    pub(super) fn is_attached(&self) -> bool {
        self.outlet.as_ref().is_some_and(Outlet::is_open)
    }

    /// Where a connection that was told of no event begins.
    pub(super) fn position(&self) -> EventId {
        EventId { stream: self.stream, sequence: self.handed }
    }

    /// Whether an event of that number was ever made.
    pub(super) fn reaches(&self, sequence: u64) -> bool {
        sequence <= self.sequence
    }

    pub(super) fn was_handed(&self, sequence: u64) -> bool {
        sequence <= self.handed
    }
}
