//! Who gets a session when all are taken: calls that wait for input give way, those of the client with the most first.
//!
//! Clients are told apart by what their requests declare, as everywhere here. So one that abandons its calls loses
//! them, the oldest first, and keeps nobody else out.

use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use super::OldServer;
use super::parked::Parked;
use super::seats::{Seat, Sort, Whose, what_counts};
use crate::conversation::Upstream;
use crate::method::Method;
use crate::{Fault, Message};

/// How long a call that waits for input is safe from others that need its place: a program answers within that time.
const SAFE_FOR: Duration = Duration::from_secs(2);

/// A request for which there is no session yet, because there are too many.
#[derive(Debug)]
pub(super) struct Waiting {
    pub request: Message,
    sort: Sort,
    pub until: Instant,
}

/// A request that got no session, and when one can be taken from a call that waits for input, if ever.
struct Unplaced {
    request: Message,
    room_at: Option<Instant>,
}

impl OldServer {
    /// Gives a request to a session, opens one for it, or lets it wait for one. If nothing that holds a session is going
    /// to end by itself, the request fails at once.
    pub(super) fn place(&mut self, request: Message, now: Instant) {
        let Err(Unplaced { request, room_at }) = self.try_to_place(request, now) else { return };
        if room_at.is_none() && !self.seats.iter().any(Seat::is_at_work) {
            return self.refuse_for_room(&request);
        }
        self.room_at = self.room_at.into_iter().chain(room_at).min();
        let (sort, until) = (Sort::of(&request), now + self.config.relay.wait);
        self.waiting.push_back(Waiting { request, sort, until });
    }

    fn refuse_for_room(&mut self, request: &Message) {
        let text = format!("all {} sessions with the server are taken", self.config.most_sessions);
        self.refuse(request, &Fault::Upstream(text));
    }

    fn try_to_place(&mut self, request: Message, now: Instant) -> Result<(), Unplaced> {
        // A question that comes without saying for which call must find only one that it can be for.
        let may_confuse = self.config.relay.attribute && request.method().is_some_and(Method::may_ask);
        let client = what_counts(&request);
        let is_alone = |seat: &Seat| !seat.sort.answers_questions || !self.is_taken(seat);
        let free = |seat: &&Seat| seat.sort.fits(client) && (!may_confuse || is_alone(seat));
        let upstream = match self.seats.iter().find(free).map(|seat| seat.upstream) {
            Some(upstream) => upstream,
            None => {
                let sort = Sort::of(&request);
                if self.seats.len() >= self.config.most_sessions
                    && let Err(room_at) = self.make_room(&sort, now)
                {
                    return Err(Unplaced { request, room_at });
                }
                self.open(sort, now)
            }
        };
        self.give(upstream, request, now);
        Ok(())
    }

    /// Ends a session for a client that needs one: one that nobody uses, or else one whose calls all wait for input. If
    /// such calls are too young for that, says when they are not.
    fn make_room(&mut self, sort: &Sort, now: Instant) -> Result<(), Option<Instant>> {
        let unused = self.seats.iter().filter(|seat| self.is_spare(seat)).min_by_key(|seat| seat.used);
        if let Some(upstream) = unused.map(|seat| seat.upstream) {
            self.drop_seat(upstream, "");
            return Ok(());
        }
        let holders = self.seats.iter().filter(|seat| seat.only_waits() && !self.is_listened_to(seat));
        let holders = holders.map(|seat| (seat.upstream, &seat.sort, self.waits_since(seat)));
        let upstream = choose(holders, self.seats.iter().map(|seat| &seat.sort), sort, now)?;
        tracing::info!(target: "era", "a call that waits for input loses its session: another client needs one");
        for number in self.parked_in(upstream) {
            self.give_up(number, now);
        }
        self.drop_seat(upstream, "");
        Ok(())
    }

    /// Whether one more call may wait for input, if need be in place of another.
    pub(super) fn make_room_to_park(&mut self, upstream: Upstream, now: Instant) -> bool {
        if self.parked.len() < self.config.most_parked {
            return true;
        }
        let Some(sort) = self.seats.iter().find(|seat| seat.upstream == upstream).map(|seat| &seat.sort) else {
            return false;
        };
        let holders = self.parked.iter().map(|(number, parked)| (*number, &parked.sort, parked.since));
        let chosen = choose(holders, self.parked.values().map(|parked| &parked.sort), sort, now);
        if let Ok(number) = chosen {
            self.give_up(number, now);
        }
        chosen.is_ok()
    }

    fn parked_in(&self, upstream: Upstream) -> Vec<u64> {
        let seat = self.seats.iter().find(|seat| seat.upstream == upstream);
        let whose = seat.into_iter().flat_map(|seat| seat.under_way.values());
        whose.filter_map(|whose| if let Whose::Parked(number) = whose { Some(*number) } else { None }).collect()
    }

    /// When the last call of a session began to wait.
    fn waits_since(&self, seat: &Seat) -> Instant {
        let parked = self.parked_in(seat.upstream).into_iter().filter_map(|number| self.parked.get(&number));
        parked.map(|parked: &Parked| parked.since).max().unwrap_or(seat.used)
    }

    /// Somebody may have made room for those that wait. Who uses the fewest sessions is next, and of one client's
    /// requests the oldest.
    pub(super) fn seat_waiting(&mut self, now: Instant) {
        self.room_at = None;
        if self.waiting.is_empty() {
            return;
        }
        let mut waiting: Vec<Waiting> = std::mem::take(&mut self.waiting).into();
        let used = count(self.seats.iter().filter(|seat| !self.is_spare(seat)).map(|seat| &seat.sort));
        waiting.sort_by_cached_key(|waiting| used.get(&waiting.sort).copied().unwrap_or_default());
        let (mut kept, mut room_at): (VecDeque<Waiting>, Option<Instant>) = Default::default();
        // Where one of a sort finds no room, the next finds none, either.
        let mut hopeless: HashMap<Sort, Vec<Option<Method>>> = HashMap::new();
        for Waiting { request, sort, until } in waiting {
            if until <= now {
                self.refuse_for_room(&request);
                continue;
            }
            let failed = hopeless.get(&sort).into_iter().flatten();
            let is_hopeless = failed.map(Option::as_ref).any(|method| method == request.method());
            let request = if is_hopeless {
                request
            } else {
                let Err(unplaced) = self.try_to_place(request, now) else { continue };
                hopeless.entry(sort.clone()).or_default().push(unplaced.request.method().cloned());
                room_at = room_at.into_iter().chain(unplaced.room_at).min();
                unplaced.request
            };
            kept.push_back(Waiting { request, sort, until });
        }
        kept.append(&mut self.waiting);
        self.waiting = kept;
        self.room_at = self.room_at.into_iter().chain(room_at).min();
    }
}

/// Chooses who gives way to a client: a holder of its own, or of a client that has more. Of those the client with the most
/// loses what it holds the longest. If all are still safe, says until when.
fn choose<'a, K>(
    holders: impl Iterator<Item = (K, &'a Sort, Instant)>,
    all: impl Iterator<Item = &'a Sort>,
    client: &Sort,
    now: Instant,
) -> Result<K, Option<Instant>> {
    let held = count(all);
    let share = |sort: &Sort| held.get(sort).copied().unwrap_or_default();
    let own = share(client);
    let (mut chosen, mut room_at): (Option<(K, _)>, Option<Instant>) = (None, None);
    for (key, sort, since) in holders.filter(|(_, sort, _)| *sort == client || share(sort) > own) {
        if since + SAFE_FOR > now {
            room_at = room_at.into_iter().chain([since + SAFE_FOR]).min();
            continue;
        }
        let rank = (Reverse(share(sort)), since);
        if chosen.as_ref().is_none_or(|(_, best)| rank < *best) {
            chosen = Some((key, rank));
        }
    }
    chosen.map(|(key, _)| key).ok_or(room_at)
}

fn count<'a>(sorts: impl Iterator<Item = &'a Sort>) -> HashMap<&'a Sort, usize> {
    let mut counted: HashMap<&Sort, usize> = HashMap::new();
    sorts.for_each(|sort| *counted.entry(sort).or_default() += 1);
    counted
}
