//! What lies between machines: delay, loss and cuts; and copies, which take their time.

use super::actor::Actor;
use super::world::{Happening, World};
use crate::copy::{Extent, writer_of};
use crate::genesis::Slice;
use crate::key::Key;
use crate::message::{self, Message, PROTOCOL, PROTOCOL_OLDEST};
use crate::node::{Event, PullFault};
use crate::settings::Mutation;

impl World {
    pub(super) fn reaches(&self, from: usize, to: usize) -> bool {
        self.part[from] == self.part[to] && !self.cut.contains(&(from, to))
    }

    pub(super) fn send(&mut self, from: usize, to: usize, message: Message) {
        self.figures.messages += 1;
        if !self.reaches(from, to) || self.chance.happens(self.options.loss) {
            return;
        }
        let messages = if self.options.encode { self.carried(from, to, message) } else { vec![message] };
        let delay = self.options.delay_ms + self.chance.below(self.options.jitter_ms + 1);
        for message in messages {
            self.at(self.now_ms + delay, Happening::Deliver { to, from, message });
        }
    }

    /// As it is written in the protocol that the sender believes both speak, and read in those that the other one speaks. Newer programs say
    /// more than older ones know.
    fn carried(&mut self, from: usize, to: usize, message: Message) -> Vec<Message> {
        let theirs =
            self.nodes[from].view.as_ref().or(self.shared.as_ref()).and_then(|view| {
                view.roster.record_of(&self.nodes[to].seal.key()).map(|signed| signed.record.protocol)
            });
        let (own, heard) = (self.nodes[from].record.protocol, self.nodes[to].record.protocol);
        let spoken = match self.options.settings.mutation {
            Mutation::Protocol => Some(own.0),
            _ => theirs.map_or(Some(own.1), |theirs| message::common(own, theirs)),
        };
        let Some(spoken) = spoken else { return Vec::new() };
        let mut frame = message::encode(std::slice::from_ref(&message), spoken);
        if spoken == PROTOCOL && own.0 > PROTOCOL_OLDEST {
            frame.extend_from_slice(&[0x7f, 1, 2, 3]);
        }
        match message::read(&frame, heard) {
            Ok((messages, _)) => messages,
            Err(_) => {
                self.figures.unreadable += 1;
                Vec::new()
            }
        }
    }

    /// A copy takes its time; who claims without storing is quick.
    pub(super) fn pull(&mut self, node: usize, slice: Slice, from: Key, extent: Extent, have: u64) {
        let Some(source) = self.of_key.get(&from).copied() else { return };
        let segment = extent.segment;
        if self.nodes[node].actor == Actor::Claims {
            self.tell(node, 100, Event::Pulled { slice, from, extent });
            return;
        }
        let reachable = self.nodes[source].core.is_some() && self.reaches(source, node) && self.reaches(node, source);
        let failed = |why| Event::PullFailed { slice, from, segment, why };
        if !reachable {
            self.tell(node, 5000, failed(PullFault::Unreachable));
            return;
        }
        if segment.writer == writer_of(&self.nodes[node].seal.key()) && extent.seal.is_none() {
            // How its own segment ends only its writer can say, and it no longer knows.
            self.tell(node, 1000, failed(PullFault::Own));
            return;
        }
        let there = self.nodes[source].disk.get(slice, &segment).copied();
        match there {
            Some(blob) if blob.extent.bytes >= extent.bytes => {
                let altered = blob.altered || (self.nodes[source].actor == Actor::Alters && extent.seal.is_some());
                if altered && extent.seal.is_some() {
                    self.tell(node, 1000, failed(PullFault::Altered));
                    return;
                }
                let bytes = extent.bytes.saturating_sub(have);
                let takes = 20 + bytes * 1000 / self.options.copy_bytes_per_s.max(1);
                let begin = self.nodes[node].busy_ms.max(self.now_ms);
                self.nodes[node].busy_ms = begin + takes;
                let after = begin + takes - self.now_ms;
                self.tell(node, after, Event::Pulled { slice, from, extent });
            }
            _ => self.tell(node, 200, failed(PullFault::Missing)),
        }
    }

    /// Something that a machine waited for.
    pub(super) fn told(&mut self, node: usize, event: Event) {
        if let Event::Pulled { slice, from, extent } = &event
            && self.nodes[node].actor != Actor::Claims
        {
            // Whether the source lived to the end of it.
            let source = self.of_key.get(from).copied();
            let blob = source.and_then(|source| {
                let sim = &self.nodes[source];
                let lives = sim.core.is_some() && self.reaches(source, node);
                sim.disk.get(*slice, &extent.segment).filter(|_| lives).copied()
            });
            let Some(blob) = blob.filter(|blob| blob.extent.bytes >= extent.bytes) else {
                let (slice, from, segment) = (*slice, *from, extent.segment);
                self.handle(node, Event::PullFailed { slice, from, segment, why: PullFault::Unreachable });
                return;
            };
            let have = self.nodes[node].disk.get(*slice, &extent.segment).map_or(0, |blob| blob.extent.bytes);
            self.figures.copied_bytes += extent.bytes.saturating_sub(have);
            self.nodes[node].disk.put(*slice, *extent, blob.altered);
            self.auditor.held.entry(*slice).or_default().insert(node);
        }
        self.handle(node, event);
    }
}
