//! Nodes that lie. Each runs the honest machine, and the world bends what goes in or out of it.

use crate::chance::Chance;
use crate::key::{Key, Seal};
use crate::message::Message;
use crate::view::View;
use crate::watch::Vote;

/// How a node behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actor {
    /// As it should.
    Honest,
    /// Calls others absent who are there.
    VotesFalsely,
    /// Says that it has copies, and stores nothing.
    Claims,
    /// Serves bytes that nobody wrote.
    Alters,
    /// Grants a lease to whoever asks, and agrees to whatever is proposed.
    Equivocates,
    /// Takes no copies from others, and hands none over.
    Refuses,
    /// Says again what it or others said before.
    Replays,
    /// Says far too much.
    Floods,
}

/// Every way to lie.
pub const LIARS: [Actor; 7] = [
    Actor::VotesFalsely,
    Actor::Claims,
    Actor::Alters,
    Actor::Equivocates,
    Actor::Refuses,
    Actor::Replays,
    Actor::Floods,
];

impl Actor {
    /// What it says instead of what its machine would say; nothing, if it keeps silent.
    pub fn bend(self, message: Message) -> Option<Message> {
        match (self, message) {
            (Actor::Equivocates, Message::LeaseRefuse { slice, ballot, .. }) => Some(Message::LeaseGrant {
                slice,
                epoch: Default::default(),
                ballot,
                accepted: None,
                politeness: Default::default(),
            }),
            (Actor::Refuses, Message::Adopt { .. } | Message::Propose { .. } | Message::Agree { .. }) => None,
            (_, message) => Some(message),
        }
    }

    /// Whether it does not hear a message.
    pub fn ignores(self, message: &Message) -> bool {
        self == Actor::Refuses && matches!(message, Message::Adopt { .. } | Message::Propose { .. })
    }

    /// What it answers at once, beside what its machine does.
    pub fn retort(self, message: &Message, seal: &dyn Seal) -> Option<Message> {
        match (self, message) {
            (Actor::Equivocates, Message::Propose { ballot, holders }) => Some(Message::Agree {
                slice: holders.slice,
                epoch: holders.epoch,
                ballot: *ballot,
                signature: seal.sign(&holders.ballot()),
            }),
            _ => None,
        }
    }

    /// What it does unasked, every few seconds.
    pub fn mischief(self, seal: &dyn Seal, view: &View, wall_ms: u64, chance: &mut Chance) -> Vec<(Key, Message)> {
        let count = view.roster.len() as u64;
        let anybody = |chance: &mut Chance| view.roster.key(chance.below(count) as u32);
        match self {
            Actor::VotesFalsely => {
                let Some(own) = view.roster.index(&seal.key()) else { return Vec::new() };
                let mut said = Vec::new();
                for watched in view.watchers.watched_by(&view.roster, own) {
                    let (node, sequence) = (view.roster.key(watched), view.roster.record(watched).record.sequence);
                    let vote = Vote::new(&view.roster.network(), &node, sequence, wall_ms, seal);
                    for watcher in view.watchers.judges(&view.roster, watched) {
                        let message = Message::Absent { node, sequence, vote: vote.clone() };
                        said.push((view.roster.key(watcher), message));
                    }
                }
                said
            }
            Actor::Floods => {
                let to = anybody(chance);
                let slice = chance.below(u64::from(view.table.slices())) as u32;
                (0..300).map(|_| (to, Message::HasAsk { slice })).collect()
            }
            _ => Vec::new(),
        }
    }
}
