//! The bytes of one slice: told, pulled, acknowledged, audited.

use super::{Context, Due, Holding};
use crate::audit::{self, UNANSWERED_MAX, Verdict, proof_key};
use crate::copy::{Extent, Inventory, Segment, acknowledged, source, writer_of};
use crate::key::Key;
use crate::limits::{AUDIT_RANGES, EXTENTS_MAX, PULL_SLOW_BYTES_PER_MS, PULLS_MAX, PULLS_PER_PEER_MAX};
use crate::message::Message;
use crate::node::{Action, PullFault, What};

/// Whose bytes did not verify so often is not believed again, whatever it proves.
const ALTERED_MAX: u8 = 3;
/// Pulls of one slice at once.
const SLICE_PULLS_MAX: usize = 4;
/// A pull of which nothing was heard for so many answers' time, and for as long again as its bytes take at the slowest pace, is given up.
const PULL_ANSWERS_MAX: u64 = 360;

impl Holding {
    /// So much of a segment is here now, synced.
    pub(crate) fn grown(&mut self, ctx: &mut Context<'_>, extent: Extent) {
        if self.own.put(extent) {
            self.changed(ctx, extent.segment);
        }
    }

    /// A pull has ended well.
    pub(crate) fn pulled(&mut self, ctx: &mut Context<'_>, extent: Extent) {
        self.end_pull(ctx, &extent.segment);
        self.afresh.retain(|segment| *segment != extent.segment);
        self.grown(ctx, extent);
        self.begin_to_lead(ctx);
    }

    fn changed(&mut self, ctx: &mut Context<'_>, segment: Segment) {
        self.proven.clear();
        if !self.dirty.contains(&segment) {
            self.dirty.push(segment);
        }
        self.acknowledge(ctx, segment);
    }

    fn end_pull(&mut self, ctx: &mut Context<'_>, segment: &Segment) {
        self.pulling.retain(|(pulled, from, _)| {
            if pulled == segment {
                ctx.pulls.end(from);
            }
            pulled != segment
        });
    }

    /// A pull has failed; another source is tried.
    pub(crate) fn pull_failed(&mut self, ctx: &mut Context<'_>, from: Key, segment: Segment, why: PullFault) {
        self.end_pull(ctx, &segment);
        match why {
            // What came was put behind what is here, and either may be wrong: it is copied whole before anybody is blamed.
            PullFault::Altered if self.begun(&segment) > 0 && !self.afresh.contains(&segment) => {
                self.afresh.push(segment);
                ctx.note(
                    What::Altered,
                    None,
                    self.slice,
                    "a copy does not verify, and is made anew from its beginning",
                );
            }
            PullFault::Altered => {
                self.distrust(ctx, from);
                ctx.note(What::Altered, Some(from), self.slice, "bytes of this peer do not verify");
            }
            // It said that it has something which it has not, or it cannot be reached: until it says so again.
            PullFault::Missing | PullFault::Unreachable => self.forget(ctx, &from),
            PullFault::Own => {}
        }
    }

    /// What a peer said that it has is believed again when it says so again.
    fn forget(&mut self, ctx: &Context<'_>, peer: &Key) {
        self.told.remove(peer);
        self.asked_ms = ctx.now.mono_ms;
    }

    /// Bytes of a segment that are here, of the same generation.
    fn begun(&self, segment: &Segment) -> u64 {
        self.own.get(segment).filter(|own| own.segment == *segment).map_or(0, |own| own.bytes)
    }

    /// Nothing more is pulled from a peer whose bytes do not verify, and its copy does not count, until it has proven that it mended it.
    fn distrust(&mut self, ctx: &mut Context<'_>, peer: Key) {
        self.doubt(peer);
        self.suspend(ctx, peer);
    }

    pub(super) fn doubt(&mut self, peer: Key) {
        if !self.distrusted.contains(&peer) {
            self.distrusted.push(peer);
            let times = self.altered.entry(peer).or_default();
            *times = times.saturating_add(1);
        }
    }

    /// Who proves its copy is believed again: a disk that lost a bit makes nobody a liar. Who sends other bytes than it proves, time and
    /// again, is.
    pub(super) fn forgive(&mut self, peer: &Key) {
        if self.altered.get(peer).is_none_or(|times| *times < ALTERED_MAX) {
            self.distrusted.retain(|node| node != peer);
        }
        if !self.distrusted.contains(peer) {
            self.suspended.retain(|(node, _)| node != peer);
        }
    }

    fn suspend(&mut self, ctx: &mut Context<'_>, peer: Key) {
        self.told.remove(&peer);
        self.proven.retain(|(node, _)| *node != peer);
        if !self.is_suspended(&peer) {
            self.suspended.push((peer, ctx.now.mono_ms));
            ctx.note(What::Suspended, Some(peer), self.slice, "its copy does not stand up to an audit");
        }
        if self.copying.as_ref().is_some_and(|copying| copying.to == peer) {
            self.copying = None;
        }
    }

    /// A segment here is bad or gone: it is pulled anew.
    pub(crate) fn damaged(&mut self, ctx: &mut Context<'_>, segment: Segment) {
        if self.own.remove(&segment) {
            self.proven.clear();
            ctx.note(What::Altered, None, self.slice, "a segment here is damaged, and is copied anew");
            let extents = self.own.extents().to_vec();
            for other in self.others(&ctx.key) {
                self.send_has(ctx, other, &extents, true);
                ctx.send(other, Message::HasAsk { slice: self.slice });
            }
        }
    }

    /// Who has what, says a peer.
    pub(crate) fn told(&mut self, ctx: &mut Context<'_>, from: Key, whole: bool, extents: &[Extent]) {
        let candidate = self.copying.as_ref().is_some_and(|copying| copying.to == from)
            || self.stand_in.is_some_and(|(node, _)| node == from);
        if !candidate && !self.is_source(&from) && !self.is_adopter(&from) {
            return;
        }
        if whole {
            self.told.insert(from, Inventory::new(extents.iter().copied()));
            if !self.settled.contains(&from) {
                self.settled.push(from);
            }
        } else {
            let inventory = self.told.entry(from).or_default();
            extents.iter().for_each(|extent| {
                inventory.put(*extent);
            });
        }
        let now_ms = ctx.now.mono_ms;
        if let Some(copying) = self.copying.as_mut().filter(|copying| copying.to == from) {
            let bytes = self.told.get(&from).map_or(0, Inventory::bytes);
            if bytes > copying.progress.0 {
                copying.progress = (bytes, now_ms);
            }
        }
        if self.is_holder(&from) {
            extents.iter().for_each(|extent| self.acknowledge(ctx, extent.segment));
            self.begin_to_lead(ctx);
        }
    }

    /// Counts how many holders have synced a segment, while this node leads.
    fn acknowledge(&mut self, ctx: &mut Context<'_>, segment: Segment) {
        if self.leads(ctx.now.mono_ms).is_none() {
            return;
        }
        let Some(own) = self.own.get(&segment).copied() else { return };
        let nodes = &self.latest().nodes;
        let holders: Vec<&Inventory> = self.witnesses(&segment, &ctx.key).chain([&self.own]).collect();
        let bytes = acknowledged(&segment, &holders, nodes.len(), ctx.settings).min(own.bytes);
        let seal = own.seal.filter(|_| bytes == own.bytes);
        if bytes > 0 && self.floor.put(Extent { segment, bytes, seal }) {
            ctx.out.push(Action::Acknowledged { slice: self.slice, segment, bytes });
        }
    }

    /// Tells others what grew here, a few times a second at most.
    pub(crate) fn tell_tail(&mut self, ctx: &mut Context<'_>, due: &mut Due) {
        if self.dirty.is_empty() {
            return;
        }
        let at = self.told_ms + ctx.settings.tail_ms;
        if ctx.now.mono_ms < at {
            due.at(at);
            return;
        }
        self.told_ms = ctx.now.mono_ms;
        let dirty = std::mem::take(&mut self.dirty);
        let extents: Vec<Extent> = dirty.iter().filter_map(|segment| self.own.get(segment)).copied().collect();
        let mut hearers = self.others(&ctx.key);
        hearers.extend(self.copying.as_ref().map(|copying| copying.to));
        hearers.extend(self.stand_in.map(|(node, _)| node));
        hearers.extend(self.adopter.map(|(adopter, _)| adopter));
        hearers.sort_unstable();
        hearers.dedup();
        for hearer in hearers {
            self.send_has(ctx, hearer, &extents, false);
        }
    }

    pub(crate) fn send_has(&self, ctx: &mut Context<'_>, to: Key, extents: &[Extent], whole: bool) {
        if extents.is_empty() && whole {
            ctx.send(to, Message::Has { slice: self.slice, whole: true, extents: Vec::new() });
        }
        for (at, part) in extents.chunks(EXTENTS_MAX).enumerate() {
            let whole = whole && at == 0;
            ctx.send(to, Message::Has { slice: self.slice, whole, extents: part.to_vec() });
        }
    }

    /// Asks the other holders what they have.
    pub(crate) fn ask_others(&mut self, ctx: &mut Context<'_>) {
        for other in self.others(&ctx.key) {
            ctx.send(other, Message::HasAsk { slice: self.slice });
        }
    }

    /// What trusted holders have, as far as they told, and is not here.
    fn lacking(&self, ctx: &Context<'_>) -> Inventory {
        let trusted = |node: &Key| {
            !self.distrusted.contains(node) && (self.is_source(node) || self.is_adopter(node)) && !ctx.is_away(node)
        };
        let mut lacking = Inventory::default();
        for (node, told) in &self.told {
            let mut more = self.own.lacking(told).peekable();
            if more.peek().is_some() && trusted(node) {
                more.filter(|extent| self.is_likely(ctx, node, extent)).for_each(|extent| {
                    lacking.put(*extent);
                });
            }
        }
        lacking
    }

    /// Whether what a node says of a segment can be. One that is sealed proves itself; of an open one its writer says how much there is, as
    /// long as it holds the slice and is there. The own ones nobody can bring back.
    fn is_likely(&self, ctx: &Context<'_>, node: &Key, extent: &Extent) -> bool {
        if extent.seal.is_some() || writer_of(node) == extent.segment.writer {
            return true;
        }
        if writer_of(&ctx.key) == extent.segment.writer {
            return false;
        }
        let writer = self.latest().nodes.iter().find(|node| writer_of(node) == extent.segment.writer);
        let told = writer.filter(|writer| !ctx.is_away(writer)).and_then(|writer| self.told.get(writer));
        told.and_then(|told| told.get(&extent.segment)).is_none_or(|written| written.is_copied_by(extent))
    }

    /// Whether everything that is known elsewhere is here.
    pub(crate) fn is_caught_up(&self, ctx: &Context<'_>) -> bool {
        self.lacking(ctx).extents().is_empty()
    }

    /// Begins pulls, the newest first.
    pub(crate) fn pull_more(&mut self, ctx: &mut Context<'_>, due: &mut Due) {
        let now_ms = ctx.now.mono_ms;
        let given_up = PULL_ANSWERS_MAX * ctx.settings.answer_ms;
        let stale: Vec<(Segment, Key)> = self
            .pulling
            .iter()
            .filter(|(segment, from, since)| {
                let wanted = self.told.get(from).and_then(|told| told.get(segment));
                let bytes = wanted.map_or(0, |extent| extent.bytes);
                now_ms.saturating_sub(*since) > given_up + bytes / PULL_SLOW_BYTES_PER_MS
            })
            .map(|(segment, from, _)| (*segment, *from))
            .collect();
        for (segment, from) in stale {
            self.end_pull(ctx, &segment);
            self.forget(ctx, &from);
        }
        if self.told.is_empty() {
            return;
        }
        let lacking = self.own.lacks(&self.lacking(ctx));
        for extent in lacking {
            if self.pulling.len() >= SLICE_PULLS_MAX || ctx.pulls.all() >= PULLS_MAX {
                due.at(now_ms + ctx.settings.answer_ms);
                break;
            }
            if self.pulling.iter().any(|(segment, ..)| *segment == extent.segment) {
                continue;
            }
            let number = ctx.chance.number();
            let reachable = self.told.iter().filter(|(node, _)| !ctx.is_away(node));
            // What is open is had from its writer, if that is there: nothing else vouches for it yet.
            let open = extent.seal.is_none();
            let writer = reachable.clone().filter(|(node, _)| open && writer_of(node) == extent.segment.writer);
            let from = source(&extent, writer, &self.distrusted, number);
            let has_room = |node: &Key| ctx.pulls.from(node) < PULLS_PER_PEER_MAX;
            let others = reachable.clone().filter(|(node, _)| has_room(node));
            let from = from.or_else(|| source(&extent, others, &self.distrusted, number));
            let Some(from) = from.filter(has_room) else {
                if reachable.clone().any(|(node, _)| !has_room(node)) {
                    due.at(now_ms + ctx.settings.answer_ms);
                }
                continue;
            };
            let have = if self.afresh.contains(&extent.segment) { 0 } else { self.begun(&extent.segment) };
            self.pulling.push((extent.segment, from, now_ms));
            ctx.pulls.begin(from);
            ctx.out.push(Action::Pull { slice: self.slice, from, extent, have });
        }
    }

    /// Now and then the first holder that is there audits the others, and the second the first; and whoever has doubts about a holder
    /// asks it again, for nobody else can end them.
    pub(crate) fn audit_others(&mut self, ctx: &mut Context<'_>, due: &mut Due) {
        let now_ms = ctx.now.mono_ms;
        if self.audit_ms == 0 {
            self.audit_ms = now_ms + 1 + ctx.chance.below(ctx.settings.audit_ms);
        }
        if now_ms >= self.audit_ms {
            self.audit_ms = now_ms + ctx.settings.audit_ms;
            let own = ctx.key;
            let there: Vec<Key> =
                self.latest().nodes.iter().filter(|node| **node == own || !ctx.is_away(node)).copied().collect();
            let mut audited = match there.iter().position(|node| *node == own) {
                Some(0) => self.others(&own),
                Some(1) => vec![there[0]],
                _ => Vec::new(),
            };
            let doubted = there.iter().filter(|node| self.is_suspended(node) && !audited.contains(node));
            audited.extend(doubted.copied().collect::<Vec<Key>>());
            for other in audited {
                if self.told.get(&other).is_some_and(|told| told.covers(&self.own)) {
                    self.challenge(ctx, other);
                } else {
                    ctx.send(other, Message::HasAsk { slice: self.slice });
                }
            }
        }
        due.at(self.audit_ms);
    }

    /// Asks for proof of random bytes that are here.
    pub(crate) fn challenge(&mut self, ctx: &mut Context<'_>, peer: Key) {
        if ctx.audits.is_asking(self.slice, &peer) || !ctx.audits.has_room() || ctx.is_away(&peer) {
            return;
        }
        let Some(told) = self.told.get(&peer) else { return };
        let ranges = audit::ranges(&self.own, told, AUDIT_RANGES, ctx.chance);
        if ranges.is_empty() {
            return;
        }
        let mut nonce = [0; 16];
        nonce[..8].copy_from_slice(&ctx.chance.number().to_be_bytes());
        nonce[8..].copy_from_slice(&ctx.chance.number().to_be_bytes());
        let (id, job) = ctx.audits.ask(self.slice, peer, ctx.now.mono_ms);
        ctx.send(peer, Message::Challenge { id, slice: self.slice, nonce, ranges: ranges.clone() });
        ctx.out.push(Action::Hash { job, slice: self.slice, key: proof_key(&nonce, &peer), ranges });
    }

    /// How an audit of a peer ended.
    pub(crate) fn judged(&mut self, ctx: &mut Context<'_>, peer: Key, verdict: Verdict) {
        match verdict {
            Verdict::Passed => {
                self.unanswered.retain(|(node, _)| *node != peer);
                self.forgive(&peer);
                self.proven.retain(|(node, _)| *node != peer);
                self.proven.push((peer, ctx.now.mono_ms));
                if let Some(copying) = self.copying.as_mut().filter(|copying| copying.to == peer) {
                    copying.audited = true;
                }
                ctx.note(What::Audited, Some(peer), self.slice, "it has proven its copy");
            }
            Verdict::Failed => self.suspend(ctx, peer),
            Verdict::Silent | Verdict::Missing => {
                if ctx.is_away(&peer) {
                    return;
                }
                if verdict == Verdict::Missing {
                    // What it said before is not so any more; it may know better what it has by now.
                    self.told.remove(&peer);
                    self.proven.retain(|(node, _)| *node != peer);
                    ctx.send(peer, Message::HasAsk { slice: self.slice });
                }
                let at = self.unanswered.iter().position(|(node, _)| *node == peer).unwrap_or_else(|| {
                    self.unanswered.push((peer, 0));
                    self.unanswered.len() - 1
                });
                self.unanswered[at].1 += 1;
                if self.unanswered[at].1 >= UNANSWERED_MAX {
                    self.unanswered.remove(at);
                    self.suspend(ctx, peer);
                }
            }
        }
    }
}
