//! The events a session keeps so that a stream that was cut can be resumed; how they are sent is left to `stream`.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

/// The stream of messages that belong to no request.
pub(super) const MAIN: u64 = 0;

/// The id of an event, which names its stream: `<stream>-<sequence>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EventId {
    pub(super) stream: u64,
    pub(super) sequence: u64,
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.stream, self.sequence)
    }
}

impl FromStr for EventId {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<EventId, Self::Err> {
        let (stream, sequence) = text.split_once('-').unwrap_or((text, ""));
        Ok(EventId { stream: stream.parse()?, sequence: sequence.parse()? })
    }
}

#[derive(Debug, Clone)]
pub(super) struct Record {
    pub(super) id: EventId,
    pub(super) data: Bytes,
    at: Instant,
}

impl Record {
    pub(super) fn new(id: EventId, data: Bytes) -> Record {
        Record { id, data, at: Instant::now() }
    }
}

/// The newest events of all streams of a session, bounded in number and bytes; the newest one is always kept.
#[derive(Debug)]
pub(super) struct EventLog {
    records: VecDeque<Record>,
    bytes: usize,
    max_events: usize,
    max_bytes: usize,
}

impl EventLog {
    pub(super) fn new(max_events: usize, max_bytes: usize) -> EventLog {
        EventLog { records: VecDeque::new(), bytes: 0, max_events, max_bytes }
    }

    pub(super) fn push(&mut self, record: Record) {
        self.bytes += record.data.len();
        self.records.push_back(record);
        while self.records.len() > 1 && (self.records.len() > self.max_events || self.bytes > self.max_bytes) {
            let Some(oldest) = self.records.pop_front() else { break };
            self.bytes -= oldest.data.len();
        }
    }

    /// What is kept of the stream that came after that event.
    pub(super) fn after(&self, id: EventId) -> impl Iterator<Item = &Record> {
        self.records.iter().filter(move |r| r.id.stream == id.stream && r.id.sequence > id.sequence)
    }

    pub(super) fn knows(&self, stream: u64) -> bool {
        self.records.iter().any(|r| r.id.stream == stream)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Forgets what is older than `age`, except what is still needed.
    pub(super) fn expire(&mut self, age: Duration, needed: impl Fn(EventId) -> bool) {
        let now = Instant::now();
        self.records.retain(|r| now.duration_since(r.at) < age || needed(r.id));
        self.records.shrink_to(self.records.len() * 2);
        self.bytes = self.records.iter().map(|r| r.data.len()).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(stream: u64, sequence: u64, len: usize) -> Record {
        Record::new(EventId { stream, sequence }, Bytes::from(vec![b'x'; len]))
    }

    fn after(log: &EventLog, stream: u64, sequence: u64) -> Vec<u64> {
        log.after(EventId { stream, sequence }).map(|r| r.id.sequence).collect()
    }

    #[test]
    fn event_ids_round_trip_and_nothing_else_parses() {
        assert_eq!("7-12".parse(), Ok(EventId { stream: 7, sequence: 12 }));
        assert_eq!(EventId { stream: 7, sequence: 12 }.to_string(), "7-12");
        for text in ["", "7", "7-", "-1", "a-b", "7-1-2", "99999999999999999999-1"] {
            assert!(text.parse::<EventId>().is_err(), "{text}");
        }
    }

    #[test]
    fn streams_are_kept_apart() {
        let mut log = EventLog::new(10, 1000);
        for (stream, sequence) in [(1, 1), (2, 1), (1, 2), (2, 2)] {
            log.push(record(stream, sequence, 1));
        }
        assert_eq!(after(&log, 1, 0), [1, 2]);
        assert_eq!(after(&log, 2, 1), [2]);
        assert!(after(&log, 3, 0).is_empty());
    }

    #[test]
    fn the_oldest_go_when_a_limit_is_reached() {
        let mut log = EventLog::new(2, 10);
        for sequence in 1..=3 {
            log.push(record(1, sequence, 1));
        }
        assert_eq!(after(&log, 1, 0), [2, 3]);
        log.push(record(1, 4, 10));
        assert_eq!(after(&log, 1, 0), [4]);
        log.push(record(1, 5, 11));
        assert_eq!(after(&log, 1, 0), [5], "the newest is kept whatever its size");
    }

    #[test]
    fn what_is_needed_does_not_expire() {
        let mut log = EventLog::new(10, 100);
        log.push(record(1, 1, 1));
        log.push(record(2, 1, 1));
        log.expire(Duration::ZERO, |id| id.stream == 2);
        assert!(!log.knows(1));
        assert!(log.knows(2));
    }
}
