//! One slice at one node: what is promised, led, copied, repaired and let go. The lease and the epoch are in `holding/lead.rs`, the
//! bytes in `holding/copies.rs`; this file says what is done when.

mod copies;
mod lead;

use crate::audit::Audits;
use crate::chance::Chance;
use crate::copy::{Extent, Inventory, Segment, Told};
use crate::epoch::{Chain, Epoch, Holders, SignedHolders};
use crate::fact::Standing;
use crate::genesis::Slice;
use crate::key::{Key, Seal, Signature};
use crate::lease::{Grantor, Leader};
use crate::limits::HOLDERS_MAX;
use crate::message::{Ballot, Message, Politeness};
use crate::node::{Action, Kept, Note, Now, What};
use crate::repair::{self, State, Step};
use crate::settings::{Mutation, Settings};
use crate::view::View;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A proof counts for so many answers' time: what was there yesterday may be gone.
pub(crate) const PROOF_ANSWERS: u64 = 60;
/// A holder that has not said what it has is asked again after so many answers' time.
const HEAR_ANSWERS: u64 = 6;
/// Who was asked to copy a slice and has not been asked again for so many answers' time is no longer needed: whoever asked no longer
/// leads, or asks somebody else by now.
const ADOPTED_ANSWERS: u64 = 60;

/// What a holding sees of its node while it handles something.
pub(crate) struct Context<'c> {
    pub view: &'c mut View,
    pub settings: &'c Settings,
    pub seal: &'c dyn Seal,
    pub key: Key,
    pub now: Now,
    pub chance: &'c mut Chance,
    pub audits: &'c mut Audits,
    /// Enough watchers were heard: this node may grant.
    pub in_view: bool,
    /// Its clock agrees with others: it may lead.
    pub clock_fits: bool,
    /// It is on its way out: its copies go to others, and nothing is deleted here.
    pub leaving: bool,
    /// Pulls under way in all slices.
    pub pulls: &'c mut Pulls,
    /// Epochs that everybody should hear of.
    pub news: &'c mut Vec<Arc<SignedHolders>>,
    pub out: &'c mut Vec<Action>,
}

impl Context<'_> {
    pub fn send(&mut self, to: Key, message: Message) {
        if to != self.key {
            self.out.push(Action::Send { to, message });
        }
    }

    pub fn note(&mut self, what: What, peer: Option<Key>, slice: Slice, why: &'static str) {
        self.out.push(Action::Note(Note { what, peer, slice: Some(slice), why }));
    }

    /// Whether a node is proven absent, or gone for good.
    pub fn is_away(&self, node: &Key) -> bool {
        self.view.roster.index(node).is_none_or(|index| !self.view.roster.is_present(index))
    }
}

/// Pulls under way, by whom they are from.
#[derive(Default)]
pub(crate) struct Pulls(BTreeMap<Key, usize>);

impl Pulls {
    pub fn all(&self) -> usize {
        self.0.values().sum()
    }

    pub fn from(&self, peer: &Key) -> usize {
        self.0.get(peer).copied().unwrap_or(0)
    }

    pub fn begin(&mut self, from: Key) {
        *self.0.entry(from).or_default() += 1;
    }

    pub fn end(&mut self, from: &Key) {
        let left = self.from(from).saturating_sub(1);
        if left == 0 {
            self.0.remove(from);
        } else if let Some(count) = self.0.get_mut(from) {
            *count = left;
        }
    }
}

/// The next epoch, while holders are asked to agree.
struct Proposal {
    holders: Holders,
    signatures: Vec<(Key, Signature)>,
    asked_ms: u64,
    begun_ms: u64,
}

/// A copy in the making at another node.
struct Copying {
    to: Key,
    instead_of: Option<Key>,
    begun_ms: u64,
    asked_ms: u64,
    /// How much it had when it last had more, and when that was.
    progress: (u64, u64),
    audited: bool,
}

/// Who was offered the lease and has not taken it so far: how often, and until when it is not offered again.
struct LeftIt {
    by: Key,
    times: u32,
    until_ms: u64,
}

/// One slice at one node.
pub struct Holding {
    slice: Slice,
    chain: Chain,
    own: Inventory,
    told: Told,
    grantor: Grantor,
    leader: Option<Box<Leader>>,
    leads_since_ms: u64,
    /// The lease was offered to another, who hears of it when nothing is out under it any more.
    offered: bool,
    left_it: Vec<LeftIt>,
    proposal: Option<Box<Proposal>>,
    recovery: Option<Box<Proposal>>,
    copying: Option<Box<Copying>>,
    /// Who copies what is written while a holder is absent, and when it was last asked to.
    stand_in: Option<(Key, u64)>,
    /// Who told everything it has since this node leads.
    settled: Vec<Key>,
    /// What was acknowledged, or there when this node came to lead: whoever becomes a holder must have it.
    floor: Inventory,
    /// Whose copies did not stand up to an audit, and since when.
    suspended: Vec<(Key, u64)>,
    /// Who was asked to copy and did not, and until when somebody else is asked instead.
    slow: Vec<(Key, u64)>,
    unanswered: Vec<(Key, u8)>,
    distrusted: Vec<Key>,
    /// How often bytes of a peer did not verify.
    altered: BTreeMap<Key, u8>,
    pulling: Vec<(Segment, Key, u64)>,
    /// What is here of these does not fit what others have: they are copied from their beginning.
    afresh: Vec<Segment>,
    /// How sites were visited, by who led then and told of it.
    politeness: BTreeMap<Key, Politeness>,
    wanted: bool,
    urgent: bool,
    /// Who asked this node to copy, and when last, while it is not a holder.
    adopter: Option<(Key, u64)>,
    /// Since when the copy here is no longer wanted.
    surplus_ms: Option<u64>,
    /// Holders that have proven their copies since, and when.
    proven: Vec<(Key, u64)>,
    dirty: Vec<Segment>,
    told_ms: u64,
    asked_ms: u64,
    try_ms: u64,
    term: u64,
    audit_ms: u64,
}

impl Holding {
    /// A slice whose newest epoch is known.
    pub fn new(chain: Chain) -> Holding {
        Holding {
            slice: chain.latest().holders.slice,
            chain,
            own: Inventory::default(),
            told: Told::new(),
            grantor: Grantor::default(),
            leader: None,
            leads_since_ms: 0,
            offered: false,
            left_it: Vec::new(),
            proposal: None,
            recovery: None,
            copying: None,
            stand_in: None,
            settled: Vec::new(),
            floor: Inventory::default(),
            suspended: Vec::new(),
            slow: Vec::new(),
            unanswered: Vec::new(),
            distrusted: Vec::new(),
            altered: BTreeMap::new(),
            pulling: Vec::new(),
            afresh: Vec::new(),
            politeness: BTreeMap::new(),
            wanted: false,
            urgent: false,
            adopter: None,
            surplus_ms: None,
            proven: Vec::new(),
            dirty: Vec::new(),
            told_ms: 0,
            asked_ms: 0,
            try_ms: 0,
            term: 0,
            audit_ms: 0,
        }
    }

    /// What was promised before a restart.
    pub fn restore(&mut self, grantor: Grantor) {
        self.term = grantor.ballot().map_or(0, |ballot| ballot.term);
        self.grantor = grantor;
    }

    /// The newest epoch.
    pub fn epoch(&self) -> Epoch {
        self.latest().epoch
    }

    /// The newest holders.
    pub fn latest(&self) -> &Holders {
        &self.chain.latest().holders
    }

    /// The chain of epochs.
    pub fn chain(&self) -> &Chain {
        &self.chain
    }

    /// What is here.
    pub fn inventory(&self) -> &Inventory {
        &self.own
    }

    /// Puts something into the inventory without telling anybody: how a simulation and a restart begin.
    pub fn stock(&mut self, extent: Extent) {
        self.own.put(extent);
    }

    /// Until when this node leads, by its monotonic clock, and in which epoch.
    pub fn leads(&self, now_ms: u64) -> Option<(Epoch, u64)> {
        self.leader.as_ref().filter(|leader| leader.leads(now_ms)).map(|leader| (leader.epoch, leader.until_ms))
    }

    /// Until when this node leads and may fetch, if it has begun to.
    pub fn fetches(&self) -> Option<u64> {
        let leader = self.leader.as_ref().filter(|leader| leader.until_ms != 0 && leader.beginning.is_none());
        leader.map(|leader| leader.until_ms)
    }

    /// How politely its sites were visited, as far as is known here: what each who led has told.
    pub fn politeness(&self) -> Vec<Politeness> {
        self.politeness.values().cloned().collect()
    }

    /// The same as this node has told it.
    pub fn politeness_of(&self, node: &Key) -> Option<Politeness> {
        self.politeness.get(node).cloned()
    }

    /// A holder tells how it visited the sites. What others told is kept beside it: nobody makes sites forget that they were just asked.
    fn hear_polite(&mut self, from: Key, politeness: Politeness) {
        if politeness.is_empty() || !self.is_holder(&from) {
            return;
        }
        self.politeness.insert(from, politeness);
        if self.politeness.len() > HOLDERS_MAX {
            let holders = self.latest().nodes.clone();
            self.politeness.retain(|node, _| holders.contains(node));
        }
    }

    /// Who leads, as far as is known here.
    pub fn leader(&self, now_ms: u64) -> Option<Key> {
        self.grantor.granted().filter(|(_, until_ms)| now_ms < *until_ms).map(|(by, _)| by)
    }

    /// The lease that was granted here, and for how many milliseconds whoever has it leads for certain: it stops by the time at which it asked,
    /// which was no later than when it was granted here.
    pub fn led(&self, now_ms: u64, settings: &Settings) -> Option<(Ballot, u64)> {
        let (_, until_ms) = self.grantor.granted().filter(|(_, until_ms)| now_ms < *until_ms)?;
        let left_ms = (until_ms - now_ms).saturating_sub(settings.refuse_ms() - settings.lead_ms());
        self.grantor.ballot().map(|ballot| (ballot, left_ms))
    }

    /// Holders whose copies failed an audit.
    pub fn suspended(&self) -> impl Iterator<Item = &Key> + '_ {
        self.suspended.iter().map(|(node, _)| node)
    }

    fn is_suspended(&self, node: &Key) -> bool {
        self.suspended().any(|suspended| suspended == node)
    }

    /// Whether a node is out of the question because of what its copy was like. Who is no longer a holder may try again after the time of
    /// an audit: it has to prove its copy before it enters, and a ring with few nodes has nobody else.
    fn is_doubtful(&self, node: &Key, ctx: &Context<'_>) -> bool {
        let since = self.suspended.iter().find(|(suspended, _)| suspended == node).map(|(_, since_ms)| *since_ms);
        since.is_some_and(|since_ms| {
            self.is_holder(node)
                || self.distrusted.contains(node)
                || ctx.now.mono_ms.saturating_sub(since_ms) < ctx.settings.audit_ms
        })
    }

    /// From whom bytes of this slice are being pulled, once for each pull.
    pub(crate) fn pulls(&self) -> impl Iterator<Item = &Key> {
        self.pulling.iter().map(|(_, from, _)| from)
    }

    /// Whom a copy is being made at, and for whom.
    pub fn copying(&self) -> Option<(Key, Option<Key>)> {
        self.copying.as_ref().map(|copying| (copying.to, copying.instead_of))
    }

    /// How much of a copy is there, and in how many milliseconds the rest will be at the pace so far.
    pub fn copied(&self, now_ms: u64) -> (u64, Option<u64>) {
        let Some(copying) = self.copying.as_ref() else { return (0, None) };
        let (copied, took_ms) = (copying.progress.0, now_ms.saturating_sub(copying.begun_ms));
        let left = u128::from(self.floor.bytes().saturating_sub(copied)) * u128::from(took_ms);
        let left_ms = left.checked_div(u128::from(copied)).map(|ms| u64::try_from(ms).unwrap_or(u64::MAX));
        (copied, left_ms)
    }

    /// Holders that are known to have everything that is here, this node among them.
    pub fn copies(&self, own: &Key) -> usize {
        let covers = |node: &Key| self.counts(node) && self.told.get(node).is_some_and(|told| told.covers(&self.own));
        self.latest().nodes.iter().filter(|node| *node == own || covers(node)).count()
    }

    /// How much of a segment a majority of the holders has synced, as far as they told.
    pub fn acknowledged(&self, segment: &Segment, own: &Key, settings: &Settings) -> u64 {
        let nodes = &self.latest().nodes;
        let here = nodes.contains(own).then_some(&self.own);
        let holders: Vec<&Inventory> = self.witnesses(segment, own).chain(here).collect();
        crate::copy::acknowledged(segment, &holders, nodes.len(), settings)
    }

    /// What other holders told whose word counts of a segment. Of what is written here, nobody has more than is here.
    fn witnesses<'h>(&'h self, segment: &Segment, own: &'h Key) -> impl Iterator<Item = &'h Inventory> + 'h {
        let segment = *segment;
        let written = self.own.get(&segment).copied().filter(|_| crate::copy::writer_of(own) == segment.writer);
        let others = self.latest().nodes.iter().filter(move |node| *node != own && self.counts(node));
        others.filter_map(|node| self.told.get(node)).filter(move |told| {
            let held = told.get(&segment);
            written.is_none_or(|written| held.is_none_or(|held| written.is_copied_by(held)))
        })
    }

    /// Whether everything that other holders told of is here, but for tails that still grow.
    pub fn is_current(&self, own: &Key) -> bool {
        let here = |extent: &Extent| self.own.get(&extent.segment).is_some();
        let others = self.latest().nodes.iter().filter(|node| *node != own);
        others.filter_map(|node| self.told.get(node)).all(|told| told.extents().iter().all(here))
    }

    /// Whether this node waits to let its copy go.
    pub fn is_surplus(&self) -> bool {
        self.surplus_ms.is_some()
    }

    fn is_adopter(&self, node: &Key) -> bool {
        self.adopter.is_some_and(|(adopter, _)| adopter == *node)
    }

    fn is_holder(&self, node: &Key) -> bool {
        self.latest().nodes.contains(node)
    }

    /// Whether a node has or had a copy, by the chain: only from such a one is anything pulled.
    fn is_source(&self, node: &Key) -> bool {
        self.chain.links().iter().any(|link| link.holders.nodes.contains(node))
    }

    /// Others who hold the slice now.
    fn others(&self, own: &Key) -> Vec<Key> {
        self.latest().nodes.iter().filter(|node| *node != own).copied().collect()
    }

    /// Something is wanted of the slice, or no longer.
    pub fn want(&mut self, wanted: bool) {
        self.wanted = wanted;
    }

    /// Repair without patience. Whoever leads does it.
    pub(crate) fn hurry(&mut self, ctx: &mut Context<'_>) {
        self.urgent = true;
        if self.leads(ctx.now.mono_ms).is_none() {
            for other in self.others(&ctx.key) {
                ctx.send(other, Message::Hurry { slice: self.slice });
            }
        }
    }

    /// A holder wants that.
    pub(crate) fn hurried(&mut self, from: Key) {
        self.urgent |= self.is_holder(&from);
    }

    /// Whether a node holds the slice, held it, or is to hold it.
    pub fn concerns(&self, node: &Key) -> bool {
        self.is_source(node) || self.copying.as_ref().is_some_and(|copying| copying.to == *node)
    }

    /// A holder asks this node for a copy.
    pub(crate) fn adopted(&mut self, ctx: &mut Context<'_>, from: Key, epoch: &Arc<SignedHolders>, extents: &[Extent]) {
        self.epochs(ctx, from, std::slice::from_ref(epoch));
        if self.is_holder(&ctx.key) {
            return;
        }
        if ctx.leaving {
            return;
        }
        self.adopter = Some((from, ctx.now.mono_ms));
        self.surplus_ms = None;
        let told = self.told.entry(from).or_default();
        extents.iter().for_each(|extent| {
            told.put(*extent);
        });
        let own = self.own.extents().to_vec();
        self.send_has(ctx, from, &own, true);
    }

    /// A copy that was asked for is no longer needed.
    pub(crate) fn dismissed(&mut self, from: Key) {
        if self.is_source(&from) {
            self.adopter = None;
        }
    }

    /// How politely its sites were visited by this node, and whether it is still out there. True if a lease that was offered to another lies
    /// there for it from now on.
    pub fn polite(&mut self, own: Key, politeness: Politeness, out: bool) -> bool {
        self.politeness.insert(own, politeness);
        let lies_there = self.offered && !out;
        if lies_there {
            self.offered = false;
            self.try_ms = 0;
        }
        lies_there
    }

    /// Looks at everything that may be due; says when to look again. `None`: the slice is no longer here.
    pub(crate) fn look(&mut self, ctx: &mut Context<'_>) -> Option<u64> {
        let now_ms = ctx.now.mono_ms;
        let mut due = Due(u64::MAX);
        self.tell_tail(ctx, &mut due);
        if !self.is_holder(&ctx.key) {
            self.stop_leading(ctx);
            self.adopter = self.adopter.filter(|(_, asked_ms)| {
                let until_ms = asked_ms + ADOPTED_ANSWERS * ctx.settings.answer_ms;
                due.at(until_ms);
                !ctx.leaving && now_ms < until_ms
            });
            if self.adopter.is_some() {
                self.pull_more(ctx, &mut due);
            } else if self.let_go(ctx, &mut due) {
                return None;
            }
            return Some(due.0);
        }
        self.surplus_ms = None;
        self.adopter = None;
        if self.asked_ms == 0 {
            self.asked_ms = now_ms.max(1);
            self.ask_others(ctx);
        } else if self.has_not_heard(ctx) {
            let again_ms = self.asked_ms + HEAR_ANSWERS * ctx.settings.answer_ms;
            if now_ms >= again_ms {
                self.asked_ms = now_ms;
                self.ask_others(ctx);
                self.tell_again(ctx);
            }
            due.at(again_ms.max(now_ms + 1));
        }
        self.pull_more(ctx, &mut due);
        self.recover(ctx, &mut due);
        let step = self.plan(ctx);
        if let Step::Rest(Some(wait_ms)) = step {
            due.at(now_ms + wait_ms.max(1));
        }
        // Who was slow may be asked again.
        self.slow.iter().filter(|(_, until_ms)| now_ms < *until_ms).for_each(|(_, until_ms)| due.at(*until_ms));
        self.keep_lease(ctx, &step, &mut due);
        if self.leads(now_ms).is_some() {
            self.work(ctx, &step, &mut due);
        }
        self.audit_others(ctx, &mut due);
        Some(due.0)
    }

    /// Whether some holder that is there has not said that it has all that is here: it, or this node, may not have been heard.
    fn has_not_heard(&self, ctx: &Context<'_>) -> bool {
        self.unsure(ctx).next().is_some()
    }

    fn unsure<'h>(&'h self, ctx: &'h Context<'_>) -> impl Iterator<Item = Key> + 'h {
        let sure = |node: &Key| self.told.get(node).is_some_and(|told| told.covers(&self.own));
        let others = self.latest().nodes.iter().copied().filter(|node| *node != ctx.key);
        others.filter(move |node| !sure(node) && self.counts(node) && !ctx.is_away(node))
    }

    /// Whether what a node says of its copy is believed.
    fn counts(&self, node: &Key) -> bool {
        !self.is_suspended(node) && !self.distrusted.contains(node)
    }

    /// Says again what such holders have not taken.
    fn tell_again(&self, ctx: &mut Context<'_>) {
        let nodes: Vec<Key> = self.unsure(ctx).collect();
        for node in nodes {
            let lacking =
                self.told.get(&node).map_or_else(|| self.own.extents().to_vec(), |told| told.lacks(&self.own));
            self.send_has(ctx, node, &lacking, false);
        }
    }

    /// How the holders fare, and what follows.
    fn plan(&self, ctx: &Context<'_>) -> Step {
        let roster = &ctx.view.roster;
        let state = |key: &Key| {
            let Some(index) = roster.index(key) else { return State::Gone };
            if roster.is_gone(index) {
                State::Gone
            } else if let Some(since) = roster.absent_since(index) {
                State::Absent(ctx.now.mono_ms.saturating_sub(since))
            } else if self.is_suspended(key) {
                State::Suspended
            } else if roster.record(index).record.standing == Standing::Leaving {
                State::Leaving
            } else {
                State::Sound
            }
        };
        let holders: Vec<(Key, State)> = self.latest().nodes.iter().map(|key| (*key, state(key))).collect();
        let copies = usize::from(roster.genesis().copies);
        repair::plan(&holders, copies, self.urgent, ctx.settings, |excluded| self.wish(ctx, excluded))
    }

    /// Who should hold the slice: the ring's wish, without those excluded here, suspended, or newly absent.
    fn wish(&self, ctx: &Context<'_>, excluded: &[Key]) -> Vec<Key> {
        let view = &ctx.view;
        let may = |index| {
            let key = view.roster.key(index);
            !excluded.contains(&key)
                && !self.is_doubtful(&key, ctx)
                && (self.is_holder(&key) || view.may_adopt(index) && !self.is_slow(&key, ctx.now.mono_ms))
        };
        view.wish(self.slice, may).0.into_iter().map(|index| view.roster.key(index)).collect()
    }

    /// Whether a node was asked to copy lately and did not.
    fn is_slow(&self, node: &Key, now_ms: u64) -> bool {
        self.slow.iter().any(|(slow, until_ms)| slow == node && now_ms < *until_ms)
    }

    /// A copy that is no longer wanted: kept for a while, then until enough holders have proven theirs. True when it may go.
    fn let_go(&mut self, ctx: &mut Context<'_>, due: &mut Due) -> bool {
        let now_ms = ctx.now.mono_ms;
        if self.surplus_ms.is_none() {
            self.proven.clear();
        }
        let since = *self.surplus_ms.get_or_insert(now_ms);
        let keep_until = if ctx.leaving { since } else { since + ctx.settings.keep_ms };
        if ctx.settings.mutation != Mutation::Audit {
            if now_ms < keep_until {
                due.at(keep_until);
                return false;
            }
            let holders = self.latest().nodes.clone();
            let fresh_ms = PROOF_ANSWERS * ctx.settings.answer_ms;
            self.proven.retain(|(node, at)| holders.contains(node) && !ctx.is_away(node) && now_ms - at <= fresh_ms);
            let enough = self.proofs_needed(ctx);
            if self.proven.len() < enough && !self.own.extents().is_empty() {
                let proven = |holder: &Key| self.proven.iter().any(|(node, _)| node == holder);
                let ask: Vec<Key> = holders.iter().filter(|holder| !proven(holder)).copied().collect();
                ask.into_iter().for_each(|holder| self.prove(ctx, holder));
                due.at(now_ms + 6 * ctx.settings.answer_ms);
                return false;
            }
        }
        if ctx.leaving {
            return true;
        }
        ctx.note(What::Deleted, None, self.slice, "enough holders have proven their copies");
        ctx.out.push(Action::Keep(Kept::Dropped { slice: self.slice }));
        ctx.out.push(Action::Delete { slice: self.slice });
        true
    }

    /// Holders that must have proven their copies before this one goes: as many as there should be copies. Who leaves deletes nothing,
    /// and goes when all who could hold the slice do.
    fn proofs_needed(&self, ctx: &Context<'_>) -> usize {
        let copies = usize::from(ctx.view.roster.genesis().copies);
        if !ctx.leaving {
            return copies;
        }
        let able = |index: &crate::roster::Index| ctx.view.may_adopt(*index) && ctx.view.roster.key(*index) != ctx.key;
        copies.min(ctx.view.members().filter(able).count()).max(1)
    }

    /// Asks a holder for proof that it has what is here; first, whether it says so at all.
    fn prove(&mut self, ctx: &mut Context<'_>, holder: Key) {
        if ctx.is_away(&holder) {
            return;
        }
        if self.told.get(&holder).is_some_and(|told| told.covers(&self.own)) {
            self.challenge(ctx, holder);
        } else {
            let extents = self.own.extents().to_vec();
            self.send_has(ctx, holder, &extents, false);
            ctx.send(holder, Message::HasAsk { slice: self.slice });
        }
    }
}

/// The earliest of several times.
pub(crate) struct Due(pub u64);

impl Due {
    pub fn at(&mut self, ms: u64) {
        self.0 = self.0.min(ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copy::writer_of;
    use crate::key::Hash;
    use crate::limits::PULLS_PER_PEER_MAX;

    fn extent(writer: u32, bytes: u64, seal: Option<Hash>) -> Extent {
        Extent { segment: Segment { writer, number: 1, half: 0, generation: 0 }, bytes, seal }
    }

    /// A slice of three holders, of which the first is this node and has so much.
    fn held(own: Extent) -> (Holding, [Key; 3]) {
        let nodes = [1, 2, 3].map(|byte| Key([byte; 32]));
        let first = SignedHolders::first(Hash::default(), 0, nodes.to_vec());
        let mut holding = Holding::new(Chain::new(Arc::new(first)));
        holding.stock(own);
        (holding, nodes)
    }

    /// What a node sees beside its slices.
    struct Around {
        view: View,
        seal: crate::key::SealRef,
        chance: Chance,
        audits: Audits,
        pulls: Pulls,
    }

    impl Around {
        fn at(&mut self, mono_ms: u64, act: impl FnOnce(&mut Context<'_>)) {
            act(&mut Context {
                view: &mut self.view,
                settings: &Settings::default(),
                seal: self.seal.as_ref(),
                key: self.seal.key(),
                now: Now { mono_ms, wall_ms: 1_800_000_000_000 },
                chance: &mut self.chance,
                audits: &mut self.audits,
                in_view: true,
                clock_fits: true,
                leaving: false,
                pulls: &mut self.pulls,
                news: &mut Vec::new(),
                out: &mut Vec::new(),
            });
        }
    }

    #[test]
    fn one_peer_leaves_room_for_others_and_what_it_keeps_for_ever_is_given_up() {
        let (genesis, seals, record) = crate::roster::tests::network(3);
        let [here, liar, other] = [0, 1, 2].map(|node: usize| seals[node].key());
        let mut view = View::new(Arc::new(genesis));
        let settings = Settings::default();
        for node in 0..3 {
            let fact = crate::fact::Fact::Record(Arc::new(record(node, 1)));
            view.learn(&fact, seals[0].as_ref(), 1, 1_800_000_000_000, &settings);
        }
        let (seal, chance) = (seals[0].clone(), Chance::new(1));
        let mut around = Around { view, seal, chance, audits: Audits::default(), pulls: Pulls::default() };
        // It says that it has what nobody else has, in each slice.
        let wanted = extent(7, 100, Some(Hash([7; 32])));
        let made_up = [101, 102, 103].map(|writer| extent(writer, 100, Some(Hash([8; 32]))));
        let hold = |slice| {
            let first = SignedHolders::first(Hash::default(), slice, vec![here, liar, other]);
            let mut holding = Holding::new(Chain::new(Arc::new(first)));
            holding.told.insert(liar, Inventory::new(made_up));
            holding.told.insert(other, Inventory::new([wanted]));
            holding
        };
        let mut slices: Vec<Holding> = (0..4).map(hold).collect();
        around.at(1, |ctx| {
            let mut due = Due(u64::MAX);
            slices.iter_mut().for_each(|holding| holding.pull_more(ctx, &mut due));
            assert_eq!((ctx.pulls.from(&liar), ctx.pulls.from(&other)), (PULLS_PER_PEER_MAX, 4));
            assert!(due.0 < u64::MAX, "the rest is tried again");
            slices.iter_mut().for_each(|holding| holding.pulled(ctx, wanted));
            assert_eq!((ctx.pulls.all(), ctx.pulls.from(&other)), (PULLS_PER_PEER_MAX, 0));
        });
        // Nothing is heard of its pulls.
        let late_ms = 1 + 400 * settings.answer_ms;
        around.at(late_ms, |ctx| {
            let mut due = Due(u64::MAX);
            slices[..3].iter_mut().for_each(|holding| holding.pull_more(ctx, &mut due));
            assert_eq!(ctx.pulls.all(), 0);
        });
        for holding in &slices[..3] {
            assert!(!holding.told.contains_key(&liar) && holding.told.contains_key(&other));
            assert_eq!(holding.asked_ms, late_ms, "it is heard anew");
        }
    }

    #[test]
    fn who_is_suspended_counts_for_nothing() {
        let (settings, own) = (Settings::default(), extent(9, 100, None));
        let (mut holding, [here, there, _]) = held(own);
        holding.told.insert(there, Inventory::new([own]));
        assert_eq!((holding.copies(&here), holding.acknowledged(&own.segment, &here, &settings)), (2, 100));
        // It says again and again what it has.
        holding.suspended.push((there, 0));
        holding.told.insert(there, Inventory::new([own]));
        assert_eq!((holding.copies(&here), holding.acknowledged(&own.segment, &here, &settings)), (1, 0));
    }

    #[test]
    fn who_proves_a_mended_copy_is_believed_again_and_a_liar_is_not_for_ever() {
        let (mut holding, [_, there, _]) = held(extent(9, 100, None));
        for time in 1..=3 {
            holding.doubt(there);
            assert!(!holding.counts(&there));
            holding.forgive(&there);
            assert_eq!(holding.counts(&there), time < 3, "after {time} times");
        }
    }

    #[test]
    fn nobody_has_more_of_a_segment_than_its_writer_or_another_end() {
        let settings = Settings::default();
        let here = Key([1; 32]);
        let own = extent(writer_of(&here), 100, None);
        let acknowledged = |copy: Extent| {
            let (mut holding, [here, there, _]) = held(own);
            holding.told.insert(there, Inventory::new([copy]));
            holding.acknowledged(&own.segment, &here, &settings)
        };
        assert_eq!(acknowledged(extent(own.segment.writer, 60, None)), 60);
        assert_eq!(acknowledged(extent(own.segment.writer, 1 << 30, None)), 0, "something else, under the same name");
        assert_eq!(acknowledged(extent(own.segment.writer, 90, Some(Hash([7; 32])))), 0, "of an earlier life");
        let mut rewritten = extent(own.segment.writer, 90, None);
        rewritten.segment.generation = 1;
        assert_eq!(acknowledged(rewritten), 0);
    }

    #[test]
    fn what_one_who_led_said_of_sites_is_not_forgotten_for_another() {
        let (mut holding, [_, two, three]) = held(extent(9, 1, None));
        let said = |byte: u8| -> Politeness { Arc::from(&[byte][..]) };
        holding.hear_polite(two, said(2));
        holding.hear_polite(three, said(3));
        holding.hear_polite(three, Politeness::default());
        holding.hear_polite(Key([9; 32]), said(9));
        assert_eq!(holding.politeness(), [said(2), said(3)]);
    }
}
