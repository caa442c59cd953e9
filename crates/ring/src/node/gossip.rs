//! How news reaches everybody: spread at once to a few, compared with somebody every minute, and healed by what the comparison finds.

use std::collections::HashSet;
use std::sync::Arc;

use super::core::{Core, note};
use super::{Action, Kept, Now, What};
use crate::chance::Chance;
use crate::copy::Extent;
use crate::epoch::{Epoch, SignedHolders};
use crate::fact::Fact;
use crate::genesis::{Slice, majority};
use crate::key::{Hash, Key};
use crate::limits::{CHAIN_MAX, EXTENTS_MAX, FACTS_MAX, HOLDERS_MAX, SPREAD, WANTED_MAX};
use crate::message::{Message, Summary, Topic};
use crate::roster::{Index, Learned};
use crate::summary;
use crate::view::View;

/// Parts into which the table of holders is summed.
const TABLE_PARTS: usize = 256;

impl Core {
    /// Passes news on to a few members.
    pub(super) fn spread(
        &self,
        view: &View,
        message: &Message,
        from: Option<Key>,
        chance: &mut Chance,
        out: &mut Vec<Action>,
    ) {
        let count = view.roster.len();
        let mut chosen: Vec<Index> = Vec::with_capacity(SPREAD);
        for _ in 0..4 * SPREAD {
            let index = chance.below(count as u64) as Index;
            let key = view.roster.key(index);
            let fits = view.roster.is_present(index) && key != self.key && Some(key) != from;
            if fits && !chosen.contains(&index) {
                chosen.push(index);
                out.push(Action::Send { to: key, message: message.clone() });
                if chosen.len() == SPREAD {
                    break;
                }
            }
        }
    }

    /// Takes in facts; what is news is kept and passed on.
    pub(super) fn facts(
        &mut self,
        view: &mut View,
        from: Option<Key>,
        facts: &[Fact],
        now: Now,
        chance: &mut Chance,
        out: &mut Vec<Action>,
    ) {
        let mut news = Vec::new();
        let mut concerned: HashSet<Key> = HashSet::new();
        let mut refute = false;
        let mut misunderstood = false;
        let stranger = from.filter(|from| view.roster.index(from).is_none());
        for fact in facts {
            // Who comes by itself comes in time; of others it is known from those who let them in.
            if let Fact::Record(record) = fact
                && stranger == Some(record.node())
                && record.record.certificate.certificate.has_expired(now.wall_ms)
            {
                out.push(note(What::Refused, from, "its invitation has expired"));
                continue;
            }
            match view.take_in(fact, self.seal.as_ref(), now.mono_ms, now.wall_ms, &self.settings) {
                Learned::New => {
                    let twins = self.twins;
                    refute |= self.about_oneself(view, fact);
                    if self.twins != twins {
                        out.push(note(What::Twin, Some(self.key), "another machine uses this node's key"));
                    }
                    Core::keep(Kept::Fact(fact.clone()), out);
                    let (node, what, why) = match fact {
                        Fact::Record(record) => (record.node(), What::Present, "it says where it is"),
                        Fact::Absence(proof) => (proof.node, What::Absent, "its watchers have not heard from it"),
                        Fact::Retirement(fact) => (fact.retirement.node, What::Absent, "its owner has retired it"),
                        Fact::Split(split) => (split.split.by, What::Present, "a site is split"),
                    };
                    concerned.insert(node);
                    out.push(note(what, Some(node), why));
                    news.push(fact.clone());
                }
                Learned::Known => misunderstood |= self.is_misunderstood(fact, now),
                Learned::Early(_) => {}
                Learned::Refused(why) => out.push(note(What::Refused, from, why)),
            }
        }
        view.follow(now.mono_ms, &self.settings);
        if news.is_empty() {
            if misunderstood {
                self.sign_anew(view, now, chance, out);
            }
            return;
        }
        self.follow_members(view, now);
        for index in concerned.iter().filter_map(|node| view.roster.index(node)) {
            self.watch.recount(&view.roster, &view.watchers, self.key, Some(index), now.mono_ms);
        }
        self.look_at_those_of(&concerned, now);
        for part in news.chunks(FACTS_MAX) {
            self.spread(view, &Message::Facts(part.to_vec()), from, chance, out);
        }
        if refute || misunderstood {
            self.sign_anew(view, now, chance, out);
        }
    }

    /// Compares digests with somebody, whoever it is: also with those who seem absent, so that halves find each other again.
    pub(super) fn compare(&mut self, view: &mut View, now: Now, chance: &mut Chance, out: &mut Vec<Action>) {
        self.compare_ms = now.mono_ms + self.settings.compare_ms;
        view.refresh(now.mono_ms, &self.settings);
        for _ in 0..4 {
            let Some(index) = (!view.roster.is_empty()).then(|| chance.below(view.roster.len() as u64) as Index) else {
                return;
            };
            let to = view.roster.key(index);
            if to != self.key && !view.roster.is_gone(index) {
                out.push(Action::Send { to, message: self.ping(view) });
                return;
            }
        }
    }

    /// A peer told its sums: where they differ, the difference is sought.
    pub(super) fn compared(
        &mut self,
        view: &View,
        from: Key,
        wall_ms: u64,
        roster: u64,
        table: u64,
        now: Now,
        out: &mut Vec<Action>,
    ) {
        let fitted = self.clock_fits();
        self.clock(from, wall_ms);
        if fitted && !self.clock_fits() {
            out.push(note(What::Clock, None, "the clock of this machine is off: it does not lead"));
        }
        if roster != view.roster.digest().number() && now.mono_ms >= self.reconcile_ms {
            self.reconcile_ms = now.mono_ms + self.settings.answer_ms / 2;
            if let Some(frame) = summary::begin(view.roster.hashes()) {
                let message = Message::Reconcile { topic: Topic::Roster, answer: false, frame };
                out.push(Action::Send { to: from, message });
            }
        }
        if table == view.table.sum() {
            self.watch.agrees(from);
        } else if now.mono_ms >= self.table_ms {
            // After a start nothing can be led before the tables agree.
            let wait_ms = if self.may_act() { 2 * self.settings.answer_ms } else { self.settings.answer_ms / 4 };
            self.table_ms = now.mono_ms + wait_ms;
            out.push(Action::Send { to: from, message: Message::TableSums(table_sums(view)) });
        }
    }

    /// One frame of a comparison of sets.
    pub(super) fn reconcile(
        &mut self,
        view: &View,
        from: Key,
        topic: Topic,
        answer: bool,
        frame: &[u8],
        out: &mut Vec<Action>,
    ) {
        let set: Vec<Hash> = match topic {
            Topic::Roster => view.roster.hashes().collect(),
            Topic::Slice(slice) => match self.holding(slice) {
                Some(holding) => holding.inventory().sealed().map(Extent::hash).collect(),
                None => return,
            },
        };
        if !answer {
            match summary::answer(set.into_iter(), frame) {
                Some(frame) => {
                    let message = Message::Reconcile { topic, answer: true, frame };
                    out.push(Action::Send { to: from, message });
                }
                None => out.push(note(What::Refused, Some(from), "a frame of a comparison is damaged")),
            }
            return;
        }
        let Some(found) = summary::read(set.into_iter(), frame) else {
            out.push(note(What::Refused, Some(from), "a frame of a comparison is damaged"));
            return;
        };
        match topic {
            Topic::Roster => {
                self.facts_asked(view, from, &found.only_here, out);
                for part in found.only_there.chunks(WANTED_MAX) {
                    out.push(Action::Send { to: from, message: Message::FactsAsk(part.to_vec()) });
                }
            }
            Topic::Slice(slice) => {
                let only_here: HashSet<Hash> = found.only_here.into_iter().collect();
                let extents: Vec<Extent> = self
                    .holding(slice)
                    .into_iter()
                    .flat_map(|holding| holding.inventory().sealed())
                    .filter(|extent| only_here.contains(&extent.hash()))
                    .copied()
                    .collect();
                for part in extents.chunks(EXTENTS_MAX) {
                    let message = Message::Has { slice, whole: false, extents: part.to_vec() };
                    out.push(Action::Send { to: from, message });
                }
                if !found.only_there.is_empty() {
                    out.push(Action::Send { to: from, message: Message::HasAsk { slice } });
                }
            }
        }
        if let Some(frame) = found.next {
            out.push(Action::Send { to: from, message: Message::Reconcile { topic, answer: false, frame } });
        }
    }

    /// Sends facts by their hashes.
    pub(super) fn facts_asked(&self, view: &View, to: Key, hashes: &[Hash], out: &mut Vec<Action>) {
        if hashes.is_empty() {
            return;
        }
        let wanted: HashSet<&Hash> = hashes.iter().collect();
        let facts: Vec<Fact> =
            view.roster.facts().filter(|(hash, _)| wanted.contains(hash)).map(|(_, fact)| fact).collect();
        // Records first: an absence says nothing about a node that is not known.
        let (records, others): (Vec<Fact>, Vec<Fact>) =
            facts.into_iter().partition(|fact| matches!(fact, Fact::Record(_)));
        for part in records.chunks(FACTS_MAX).chain(others.chunks(FACTS_MAX)) {
            out.push(Action::Send { to, message: Message::Facts(part.to_vec()) });
        }
    }

    /// A peer summed up its table: parts that differ are told slice by slice.
    pub(super) fn table_sums(&self, view: &View, from: Key, sums: &[u64], out: &mut Vec<Action>) {
        let mine = table_sums(view);
        if mine.len() != sums.len() {
            return;
        }
        let step = view.table.slices().div_ceil(mine.len() as u32);
        let differing = (0..mine.len()).filter(|part| mine[*part] != sums[*part]);
        // As many slices as one message may name: a node that was just started differs in all of them.
        for part in differing.take(WANTED_MAX.div_ceil(step as usize).max(16)) {
            let first = part as u32 * step;
            let end = (first + step).min(view.table.slices());
            for start in (first..end).step_by(WANTED_MAX) {
                let epochs = (start..end.min(start + WANTED_MAX as u32)).map(|slice| view.table.epoch(slice)).collect();
                out.push(Action::Send { to: from, message: Message::TableEpochs { from: start, epochs } });
            }
        }
    }

    /// A peer told its epochs: older ones are sent what is newer, newer ones asked for.
    pub(super) fn table_epochs(&self, view: &View, from: Key, first: Slice, epochs: &[Epoch], out: &mut Vec<Action>) {
        for (slice, theirs) in (first..view.table.slices()).zip(epochs) {
            let mine = view.table.epoch(slice);
            if *theirs > mine {
                out.push(Action::Send { to: from, message: Message::EpochAsk { slice, after: mine } });
            } else if *theirs < mine {
                self.epoch_asked(view, from, slice, *theirs, out);
            }
        }
    }

    /// What follows an epoch: sent if the slice is held here, else who should know.
    pub(super) fn epoch_asked(&self, view: &View, from: Key, slice: Slice, after: Epoch, out: &mut Vec<Action>) {
        match self.chain_after(slice, after) {
            Some(links) if !links.is_empty() => {
                for part in links.chunks(CHAIN_MAX) {
                    out.push(Action::Send { to: from, message: Message::Epochs(part.to_vec()) });
                }
            }
            _ => {
                let epoch = view.table.epoch(slice);
                if epoch > after {
                    let nodes = view.holders(slice);
                    out.push(Action::Send { to: from, message: Message::EpochHint { slice, epoch, nodes } });
                }
            }
        }
    }

    /// Epochs of slices, held here or not.
    pub(super) fn epochs(
        &mut self,
        view: &mut View,
        from: Key,
        links: &[Arc<SignedHolders>],
        now: Now,
        chance: &mut Chance,
        out: &mut Vec<Action>,
    ) {
        for links in links.chunk_by(|one, next| one.holders.slice == next.holders.slice).take(CHAIN_MAX) {
            let slice = links[0].holders.slice;
            if slice >= view.table.slices() {
                continue;
            }
            if self.slots.contains_key(&slice) {
                self.with(view, slice, now, chance, out, |holding, ctx| holding.epochs(ctx, from, links));
                continue;
            }
            for link in links {
                if link.holders.epoch <= view.table.epoch(slice) {
                    continue;
                }
                if self.believes(view, link) {
                    if view.note_epoch(link) {
                        self.unlinked.remove(&slice);
                        self.spread(view, &Message::Epochs(vec![link.clone()]), Some(from), chance, out);
                    }
                } else {
                    self.claimed(view, from, slice, link.holders.epoch, &link.holders.nodes, now, out);
                }
            }
        }
    }

    /// Whether an epoch of a slice that is not held here is believed: it is the one that is known, or its holders agreed to it.
    pub(super) fn believes(&self, view: &View, link: &SignedHolders) -> bool {
        let holders = &link.holders;
        if holders.network != view.roster.network() || holders.slice >= view.table.slices() {
            return false;
        }
        let (known, nodes) = (view.table.epoch(holders.slice), view.holders(holders.slice));
        if holders.epoch == known {
            // Who is not in the roster is not in the table either.
            let there = |node: &Key| nodes.contains(node) || view.roster.index(node).is_none();
            return nodes.iter().all(|node| holders.nodes.contains(node)) && holders.nodes.iter().all(there);
        }
        // Whoever is not known yet is heard of soon; the table has no place for them before.
        let members = holders.nodes.iter().all(|node| view.roster.index(node).is_some());
        let seal = self.seal.as_ref();
        holders.epoch > known
            && members
            && link.is_agreed(known, &nodes, &view.roster, &view.watchers, &self.settings, seal).is_ok()
    }

    /// Somebody says who holds a slice, and nothing that is known here leads there. Its holders may have the links between; where they have
    /// forgotten them, the word of a majority of the own watchers counts, as it does for what happened while this node was away.
    pub(super) fn claimed(
        &mut self,
        view: &mut View,
        from: Key,
        slice: Slice,
        epoch: Epoch,
        nodes: &[Key],
        now: Now,
        out: &mut Vec<Action>,
    ) {
        let after = view.table.epoch(slice);
        if epoch <= after || nodes.is_empty() || nodes.len() > HOLDERS_MAX {
            return;
        }
        let watchers: Vec<Key> = match view.roster.index(&self.key) {
            Some(own) => view.watchers.of(&view.roster, own).into_iter(),
            None => Vec::new().into_iter(),
        }
        .filter(|index| view.roster.is_present(*index))
        .map(|index| view.roster.key(index))
        .collect();
        let held = self.slots.contains_key(&slice);
        let unlinked = self.unlinked.entry(slice).or_default();
        unlinked.claims.retain(|node, _| watchers.contains(node));
        if watchers.contains(&from) {
            unlinked.claims.insert(from, (epoch, nodes.to_vec()));
        }
        let claim = (epoch, nodes.to_vec());
        let members = nodes.iter().all(|node| view.roster.index(node).is_some());
        let same = unlinked.claims.values().filter(|other| **other == claim).count();
        // Of what is held here the chain counts, and nobody's word.
        if !held && members && !watchers.is_empty() && same >= majority(watchers.len()) {
            self.unlinked.remove(&slice);
            let known: Vec<Index> = nodes.iter().filter_map(|node| view.roster.index(node)).collect();
            view.table.set(slice, epoch, &known);
            return;
        }
        if now.mono_ms < unlinked.again_ms {
            return;
        }
        unlinked.again_ms = now.mono_ms + self.settings.answer_ms / 2;
        unlinked.tries = unlinked.tries.wrapping_add(1);
        // In turn those who are said to hold it, who have the chain, and the watchers. Of the holders one after the other: the first may
        // be the one that is away.
        let own = self.key;
        let holders: Vec<Key> =
            nodes.iter().filter(|node| **node != own && view.roster.index(node).is_some()).copied().collect();
        let turn = if held { unlinked.tries } else { unlinked.tries / 2 } as usize;
        let asked: Vec<Key> = match holders.get(turn % holders.len().max(1)) {
            Some(holder) if held || unlinked.tries % 2 == 1 => vec![*holder],
            None if held => Vec::new(),
            _ => watchers,
        };
        out.extend(asked.into_iter().map(|to| Action::Send { to, message: Message::EpochAsk { slice, after } }));
    }

    /// Sums of sealed segments that a co-holder told.
    pub(super) fn summaries(&mut self, view: &View, from: Key, summaries: &[Summary], out: &mut Vec<Action>) {
        for summary in summaries {
            let Some(slot) = self.slots.get(&summary.slice) else { continue };
            let (count, sum) = slot.holding.inventory().sum();
            if (count, sum) == (summary.count, summary.sum) || view.roster.index(&from).is_none() {
                continue;
            }
            let set = slot.holding.inventory().sealed().map(Extent::hash);
            if let Some(frame) = summary::begin(set) {
                let message = Message::Reconcile { topic: Topic::Slice(summary.slice), answer: false, frame };
                out.push(Action::Send { to: from, message });
            }
        }
    }
}

fn table_sums(view: &View) -> Vec<u64> {
    let slices = view.table.slices();
    let step = slices.div_ceil(TABLE_PARTS as u32).max(1);
    (0..slices).step_by(step as usize).map(|first| view.table.sum_of(first..(first + step).min(slices))).collect()
}
