//! In which era a shared server is used: the one of its first opening, and never both.
//!
//! A program of both eras may commit itself to the first opening that it gets, for as long as it runs. So the opening of the
//! other era does not reach it: it is refused the way a server of one era refuses it, and the client's own bridge
//! translates from then on. An opening that got no answer commits nobody, but it may have been read: then the server is
//! replaced before it gets `initialize`.

use super::{Effect, Handshake, Member, Share};
use crate::era::{self, Era};
use crate::{Fault, Id, Kind, Lane, Message, meta, method};

#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Opened {
    /// Whether one server must not see both openings.
    is_limited: bool,
    /// The opening that the present server has got, and has not declined.
    seen: Option<Era>,
    /// The server has accepted it. Its successors are used the same way.
    proven: bool,
}

/// What is to be done with an opening.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Pass,
    /// The server is used in the other era.
    Refuse,
    /// An `initialize` is under way that decides.
    Hold,
    /// The server may have seen the opening of the other era: another one gets this.
    Replace,
}

impl Opened {
    pub(super) fn limited() -> Opened {
        Opened { is_limited: true, ..Opened::default() }
    }

    /// A client opens in this era. `is_opening` says whether an `initialize` is with the server.
    pub(super) fn open(&mut self, era: Era, is_opening: bool) -> Verdict {
        if !self.is_limited {
            return Verdict::Pass;
        }
        let verdict = match self.seen {
            Some(seen) if seen != era && self.proven => return Verdict::Refuse,
            Some(seen) if seen != era && is_opening => return Verdict::Hold,
            Some(seen) if seen != era => Verdict::Replace,
            _ => Verdict::Pass,
        };
        self.seen = Some(era);
        verdict
    }

    /// The server answers `initialize`.
    pub(super) fn saw_session(&mut self, answer: &Message) {
        match answer.kind() {
            Kind::Result { .. } => self.accept(Era::Session),
            // The params may be at fault, and not the era.
            _ if era::is_inconclusive(answer) => {}
            _ => self.decline(Era::Session),
        }
    }

    /// The server answers a request that stands for itself.
    pub(super) fn saw_stateless(&mut self, discovers: bool, answer: &Message) {
        let accepts = match answer.kind() {
            Kind::Result { .. } if !discovers => true,
            _ => era::era_by(answer) == Era::Stateless,
        };
        if accepts {
            self.accept(Era::Stateless);
        } else if discovers && !era::is_inconclusive(answer) {
            self.decline(Era::Stateless);
        }
    }

    /// The server is gone. Its successor has seen nothing.
    pub(super) fn after_loss(self) -> Opened {
        Opened { seen: self.seen.filter(|_| self.proven), ..self }
    }

    fn accept(&mut self, era: Era) {
        if self.seen == Some(era) {
            self.proven = true;
        }
    }

    fn decline(&mut self, era: Era) {
        if self.seen == Some(era) {
            (self.seen, self.proven) = (None, false);
        }
    }
}

impl Share {
    /// A request that stands for itself.
    pub(super) fn stateless(&mut self, member: Member, id: Id, message: &Message) {
        if self.may_open(Era::Stateless, member, &id, message) {
            self.forward(member, id, message, false);
        }
    }

    /// Whether the server may get a request by which a client opens in an era. Otherwise it is refused or held.
    pub(super) fn may_open(&mut self, era: Era, member: Member, id: &Id, message: &Message) -> bool {
        let is_opening = matches!(self.handshake, Handshake::Opening(_));
        match self.opened.open(era, is_opening) {
            Verdict::Pass => return true,
            Verdict::Refuse => {
                let refusal = Fault::UnknownMethod(message.method().map(ToString::to_string).unwrap_or_default());
                self.tell_client(member, Lane::Request(id.clone()), refusal.to_message(Some(id)));
            }
            Verdict::Hold => self.held.push((member, id.clone(), message.clone())),
            Verdict::Replace => {
                let opened = self.opened;
                self.effects.retain(|effect| !matches!(effect, Effect::ToServer(_)));
                self.handle_server_gone();
                self.opened = opened;
                self.effects.push_back(Effect::Replace(member));
                return true;
            }
        }
        false
    }

    /// Serves what is held, once no `initialize` is under way.
    pub(super) fn release(&mut self) {
        if self.held.is_empty() || matches!(self.handshake, Handshake::Opening(_)) {
            return;
        }
        let mut replaced_by = None;
        for (member, id, message) in std::mem::take(&mut self.held) {
            // The others hear that the server is gone, and repeat what they want.
            if replaced_by.is_some_and(|by| by != member) {
                continue;
            }
            let generation = self.generation;
            self.stateless(member, id, &message);
            if self.generation != generation {
                replaced_by = Some(member);
            }
        }
    }
}

/// Whether a request of a client opens in the stateless era, as each of its requests may.
pub(super) fn is_stateless(request: &Message) -> bool {
    request.is(method::DISCOVER) || meta::declared(request).is_some()
}
