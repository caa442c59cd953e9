//! Leading one slice: the lease, the epoch after this one, copies at new holders, and what is done when too many are absent.

use super::{ADOPTED_ANSWERS, Context, Copying, Due, Holding, LeftIt, Proposal};
use crate::copy::{Extent, Inventory};
use crate::epoch::{Doubt, Epoch, Holders, SignedHolders, differ_by_one};
use crate::genesis::majority;
use crate::key::{Key, Signature};
use crate::lease::{Dead, Leader};
use crate::limits::{CHAIN_KEPT_MAX, CHAIN_MAX, EXTENTS_MAX, HOLDERS_MAX, PULL_SLOW_BYTES_PER_MS, TERM_STEP_MAX};
use crate::message::{Ballot, Message, Politeness, Refusal};
use crate::node::{Action, Kept, What};
use crate::repair::Step;
use crate::settings::Mutation;
use crate::watch::Witnessed;
use std::sync::Arc;

/// A proposal to which too few agree is given up after so many answers' time.
const PROPOSAL_ANSWERS: u64 = 6;
/// Who was asked to copy and did not is asked again after so many times the patience that it was given.
const SLOW_PATIENCES: u64 = 4;
/// Whoever comes to lead waits so many answers' time for what others have, and then begins without it.
const BEGIN_ANSWERS: u64 = 3;
/// How often the time doubles after which who did not take a lease is offered it again.
const OFFER_DOUBLINGS_MAX: u32 = 6;

impl Holding {
    // --- the lease ------------------------------------------------------------------------------------------------------

    /// Asks for the lease, renews it, or gives it back.
    pub(crate) fn keep_lease(&mut self, ctx: &mut Context<'_>, step: &Step, due: &mut Due) {
        let now_ms = ctx.now.mono_ms;
        let to_do =
            matches!(step, Step::Copy { .. } | Step::Remove(_)) || self.grantor.accepted(self.epoch()).is_some();
        let wanted = self.wanted || to_do;
        let older =
            |leader: &Leader| leader.epoch != self.latest().epoch && ctx.settings.mutation != Mutation::EpochCheck;
        if self.leader.as_ref().is_some_and(|leader| older(leader) || (leader.until_ms != 0 && !leader.leads(now_ms))) {
            self.stop_leading(ctx);
        }
        let fit = ctx.in_view && ctx.clock_fits;
        if self.leader.is_some() && (!wanted || !ctx.clock_fits) {
            self.give_back(ctx);
            due.at(self.try_ms);
            return;
        }
        if self.leads(now_ms).is_some()
            && let Some(to) = self.hands_over(ctx)
        {
            self.offer(ctx, to);
            due.at(self.try_ms);
            return;
        }
        if let Some(leader) = self.leader.as_mut() {
            due.at(if leader.until_ms == 0 { u64::MAX } else { leader.until_ms });
            let again_ms = leader.renew_ms(ctx.settings).max(leader.asked_ms + ctx.settings.answer_ms);
            if now_ms < again_ms {
                due.at(again_ms);
            } else if fit {
                leader.ask_again(now_ms);
                self.ask(ctx);
                due.at(now_ms + ctx.settings.answer_ms);
            }
            return;
        }
        if !wanted || !fit {
            self.try_ms = 0;
            if wanted {
                due.at(now_ms + ctx.settings.ping_ms);
            }
            return;
        }
        let rank = self.rank(ctx, |node| !ctx.is_away(node));
        let held = self.grantor.granted().filter(|(_, until_ms)| now_ms < *until_ms);
        // Nobody else may lead while its own lease of the epoch before would have run.
        let wait_ms = if held.is_some_and(|(by, _)| by == ctx.key) { 0 } else { rank * ctx.settings.rank_ms };
        if self.try_ms == 0 {
            self.try_ms = now_ms + wait_ms;
        }
        if let Some((_, until_ms)) = held.filter(|(by, _)| *by != ctx.key) {
            self.try_ms = self.try_ms.max(until_ms + wait_ms);
        }
        if now_ms < self.try_ms {
            due.at(self.try_ms);
            return;
        }
        self.try_ms = now_ms + 3 * ctx.settings.answer_ms * (rank + 1);
        self.term = self.term.max(self.grantor.ballot().map_or(0, |ballot| ballot.term)).saturating_add(1);
        let ballot = Ballot { term: self.term, by: ctx.key };
        self.leader = Some(Box::new(Leader::new(ballot, self.epoch(), now_ms)));
        self.offered = false;
        self.leads_since_ms = now_ms;
        self.ask(ctx);
        due.at(now_ms + ctx.settings.answer_ms);
    }

    /// How many of those who should lead rather than this node are such.
    fn rank(&self, ctx: &Context<'_>, such: impl Fn(&Key) -> bool) -> u64 {
        let order = ctx.view.in_order(self.slice, &self.latest().nodes);
        order.iter().take_while(|node| **node != ctx.key).filter(|node| such(node)).count() as u64
    }

    /// Who should lead rather than this node, is there, and has everything: it gets the lease. Not before this node has led for a while,
    /// or whoever sees the ring differently would have it back at once.
    fn hands_over(&self, ctx: &Context<'_>) -> Option<Key> {
        let since_ms = ctx.now.mono_ms.saturating_sub(self.leads_since_ms);
        if !self.wanted
            || self.copying.is_some()
            || self.proposal.is_some()
            || since_ms <= ctx.settings.refuse_ms()
            || ctx.settings.mutation == Mutation::Wish
        {
            return None;
        }
        let able = |node: &Key| {
            self.counts(node)
                && ctx.view.roster.index(node).is_some_and(|index| ctx.view.may_adopt(index))
                && self.told.get(node).is_some_and(|told| told.covers(&self.floor))
                && self.left_it.iter().all(|left| left.by != *node || left.until_ms <= ctx.now.mono_ms)
        };
        let order = ctx.view.in_order(self.slice, &self.latest().nodes);
        order.into_iter().take_while(|node| *node != ctx.key).find(able)
    }

    /// A node is offered the lease. If it leaves it where it lies, because its clock is off or its disk is full, it is offered ever more
    /// seldom.
    fn offer(&mut self, ctx: &mut Context<'_>, to: Key) {
        let times = self.left_it.iter().find(|left| left.by == to).map_or(0, |left| left.times);
        let until_ms = ctx.now.mono_ms + (ctx.settings.refuse_ms() << times.min(OFFER_DOUBLINGS_MAX));
        let holders = &self.chain.latest().holders.nodes;
        self.left_it.retain(|left| left.by != to && holders.contains(&left.by));
        self.left_it.push(LeftIt { by: to, times: times + 1, until_ms });
        self.give_back(ctx);
        // Until nothing is out any more, or nobody waits for that.
        self.try_ms = ctx.now.mono_ms + ctx.settings.refuse_ms();
        self.offered = true;
    }

    fn ask(&mut self, ctx: &mut Context<'_>) {
        let Some(leader) = self.leader.as_ref() else { return };
        let (ballot, epoch) = (leader.ballot, leader.epoch);
        // Who has not begun knows less than others do, and says nothing.
        let begun = leader.until_ms != 0 && leader.beginning.is_none();
        let politeness = self.politeness.get(&ctx.key).filter(|_| begun).cloned().unwrap_or_default();
        for other in self.others(&ctx.key) {
            let politeness = politeness.clone();
            ctx.send(other, Message::LeaseAsk { slice: self.slice, epoch, ballot, politeness });
        }
        match self.grantor.ask(ballot, ctx.now.mono_ms, ctx.settings) {
            Ok(new) => {
                if new {
                    self.keep_promise(ctx);
                }
                let accepted = self.grantor.accepted(epoch).cloned();
                if let Some(leader) = self.leader.as_mut() {
                    leader.grant(ctx.key, accepted);
                }
                self.count_grants(ctx);
            }
            Err(_) => self.leader = None,
        }
    }

    fn keep_promise(&self, ctx: &mut Context<'_>) {
        if let Some(ballot) = self.grantor.ballot() {
            let accepted = self.grantor.accepted(self.epoch()).cloned();
            ctx.out.push(Action::Keep(Kept::Promise { slice: self.slice, ballot, accepted }));
        }
    }

    fn count_grants(&mut self, ctx: &mut Context<'_>) {
        let now_ms = ctx.now.mono_ms;
        let holders = self.latest().nodes.clone();
        let Some(leader) = self.leader.as_mut() else { return };
        let fresh = leader.until_ms == 0;
        if !leader.count(&holders, now_ms, ctx.settings, |holder| ctx.is_away(holder)) || !leader.leads(now_ms) {
            return;
        }
        if fresh {
            let mut politeness = std::mem::take(&mut leader.politeness);
            politeness.extend(self.politeness.values().cloned());
            politeness.sort_unstable();
            politeness.dedup();
            leader.beginning = Some((now_ms, politeness));
            self.settled = vec![ctx.key];
            self.floor = self.own.clone();
            self.asked_ms = now_ms;
            self.ask_others(ctx);
            ctx.note(What::Lease, None, self.slice, "this node leads");
            self.begin_to_lead(ctx);
        } else if leader.beginning.is_none() {
            let (epoch, until_ms) = (leader.epoch, leader.until_ms);
            ctx.out.push(Action::Lead { slice: self.slice, epoch, until_ms, politeness: None });
        }
    }

    /// Fetching begins when every holder that is there has told what it has and all of it is here: what the leader before this one
    /// fetched last is not fetched again. Nobody waits for that longer than for a few answers.
    pub(crate) fn begin_to_lead(&mut self, ctx: &mut Context<'_>) {
        let Some(leader) = self.leader.as_ref() else { return };
        let Some(&(since_ms, _)) = leader.beginning.as_ref().filter(|_| leader.leads(ctx.now.mono_ms)) else { return };
        let told = |node: &Key| self.settled.contains(node) || !self.counts(node) || ctx.is_away(node);
        let complete = self.latest().nodes.iter().all(told) && self.is_caught_up(ctx);
        if !complete && ctx.now.mono_ms < since_ms + BEGIN_ANSWERS * ctx.settings.answer_ms {
            return;
        }
        let Some(leader) = self.leader.as_mut() else { return };
        let politeness = leader.beginning.take().map(|(_, politeness)| politeness);
        let (epoch, until_ms) = (leader.epoch, leader.until_ms);
        ctx.out.push(Action::Lead { slice: self.slice, epoch, until_ms, politeness });
    }

    /// Asks again those who have not told what they have, while that is waited for.
    fn wait_to_begin(&mut self, ctx: &mut Context<'_>, due: &mut Due) {
        self.begin_to_lead(ctx);
        if self.leader.as_ref().is_none_or(|leader| leader.beginning.is_none()) {
            return;
        }
        let again_ms = ctx.settings.answer_ms;
        if ctx.now.mono_ms >= self.asked_ms + again_ms {
            self.asked_ms = ctx.now.mono_ms;
            self.ask_others(ctx);
        }
        due.at(self.asked_ms + again_ms);
    }

    pub(crate) fn stop_leading(&mut self, ctx: &mut Context<'_>) {
        let Some(leader) = self.leader.take() else { return };
        self.proposal = None;
        // Who copies meanwhile is not slow because nobody leads.
        self.copying = None;
        self.try_ms = 0;
        if leader.until_ms != 0 {
            ctx.out.push(Action::Stop { slice: self.slice });
        }
    }

    fn give_back(&mut self, ctx: &mut Context<'_>) {
        let Some(leader) = self.leader.take() else { return };
        self.try_ms = ctx.now.mono_ms + 3 * ctx.settings.rank_ms;
        self.proposal = None;
        self.copying = None;
        self.grantor.release(leader.ballot);
        if leader.until_ms != 0 {
            ctx.out.push(Action::Stop { slice: self.slice });
        }
        // Who never led knows nothing of its sites that others do not know better.
        let led = leader.until_ms != 0;
        let politeness = self.politeness.get(&ctx.key).cloned().filter(|_| led).unwrap_or_default();
        for other in self.others(&ctx.key) {
            let (ballot, politeness) = (leader.ballot, politeness.clone());
            ctx.send(other, Message::LeaseRelease { slice: self.slice, ballot, politeness });
        }
    }

    /// A holder wants to lead.
    pub(crate) fn lease_asked(
        &mut self,
        ctx: &mut Context<'_>,
        from: Key,
        epoch: Epoch,
        ballot: Ballot,
        politeness: Politeness,
    ) {
        let refuse = |highest: u64, why| Message::LeaseRefuse { slice: self.slice, ballot, highest, why };
        let highest = self.grantor.ballot().map_or(0, |held| held.term);
        let newest = self.epoch();
        let other_epoch = epoch != newest && ctx.settings.mutation != Mutation::EpochCheck;
        if other_epoch {
            if epoch < newest {
                ctx.send(from, Message::Epochs(self.chain.after(epoch, CHAIN_MAX)));
            } else {
                ctx.send(from, Message::EpochAsk { slice: self.slice, after: newest });
            }
        }
        let stranger = ballot.by != from || (!self.is_holder(&from) && ctx.settings.mutation != Mutation::EpochCheck);
        // Nobody gets that far by trying; and above the highest there would be no ballot left for others.
        let beyond = ballot.term > self.term.max(highest).saturating_add(TERM_STEP_MAX);
        if beyond {
            ctx.note(What::Refused, Some(from), self.slice, "the ballot it asks with is out of all bounds");
        }
        let why = match () {
            () if stranger || beyond || !self.is_holder(&ctx.key) => Some(Refusal::Stranger),
            () if other_epoch => Some(Refusal::Epoch),
            () if !ctx.in_view => Some(Refusal::Unseen),
            () => None,
        };
        if let Some(why) = why {
            ctx.send(from, refuse(highest, why));
            return;
        }
        // Also of what is refused: else the own next try would be too low for those who granted it.
        self.term = self.term.max(ballot.term);
        match self.grantor.ask(ballot, ctx.now.mono_ms, ctx.settings) {
            Err(why) => ctx.send(from, Message::LeaseRefuse { slice: self.slice, ballot, highest, why }),
            Ok(new) => {
                if new {
                    self.keep_promise(ctx);
                    self.left_it.retain(|left| left.by != from);
                    // Its own try ends here.
                    if self.leader.as_ref().is_some_and(|leader| leader.ballot.by != from) {
                        self.stop_leading(ctx);
                    }
                }
                let accepted = self.grantor.accepted(newest).cloned();
                // All that is known, for whoever has not begun: what was said before may have been lost. A grant counts once, however often
                // it is said.
                let begins = new || politeness.is_empty();
                let mut told: Vec<Politeness> = vec![Politeness::default()];
                if begins && !self.politeness.is_empty() && ctx.settings.mutation != Mutation::Politeness {
                    told = self.politeness.values().cloned().collect();
                }
                for politeness in told {
                    let (slice, epoch, accepted) = (self.slice, newest, accepted.clone());
                    ctx.send(from, Message::LeaseGrant { slice, epoch, ballot, accepted, politeness });
                }
                // Who renews has begun with all that others knew, and tells it with what came since.
                if !begins {
                    self.politeness.retain(|node, _| *node == from || *node == ctx.key);
                }
                self.hear_polite(from, politeness);
            }
        }
    }

    /// A holder said yes.
    pub(crate) fn lease_granted(
        &mut self,
        ctx: &mut Context<'_>,
        from: Key,
        ballot: Ballot,
        accepted: Option<(Ballot, Holders)>,
        politeness: Politeness,
    ) {
        if !self.is_holder(&from) {
            return;
        }
        let Some(leader) = self.leader.as_mut().filter(|leader| leader.ballot == ballot) else { return };
        leader.grant(from, accepted);
        if !politeness.is_empty() && leader.politeness.len() < HOLDERS_MAX * HOLDERS_MAX {
            match &mut leader.beginning {
                _ if leader.until_ms == 0 => leader.politeness.push(politeness),
                Some((_, known)) => known.push(politeness),
                None => {}
            }
        }
        self.count_grants(ctx);
    }

    /// A holder said no.
    pub(crate) fn lease_refused(&mut self, ctx: &mut Context<'_>, ballot: Ballot, highest: u64, why: Refusal) {
        if highest <= self.term.saturating_add(TERM_STEP_MAX) {
            self.term = self.term.max(highest);
        }
        let Some(leader) = self.leader.as_ref().filter(|leader| leader.ballot == ballot) else { return };
        if leader.until_ms != 0 {
            return;
        }
        let (now_ms, rank_ms) = (ctx.now.mono_ms, ctx.settings.rank_ms);
        match why {
            Refusal::Ballot => {
                // Begin again with a higher one, later. Until then nobody is kept from leading by what was granted to this one, here
                // or elsewhere.
                self.give_back(ctx);
                self.try_ms = now_ms + ctx.settings.answer_ms + ctx.chance.below(ctx.settings.answer_ms + 1);
            }
            Refusal::Taken => {
                // Somebody else has it, or tries just now: two who each hold on to their own grant would do so for ever.
                self.give_back(ctx);
                let before = self.rank(ctx, |_| true);
                let chance_ms = ctx.chance.below((before + 1) * ctx.settings.answer_ms + 1);
                self.try_ms = now_ms + ctx.settings.answer_ms + before * rank_ms + chance_ms;
            }
            Refusal::Epoch | Refusal::Unseen | Refusal::Stranger => {}
        }
    }

    /// The leader gives the lease back.
    pub(crate) fn lease_released(&mut self, from: Key, ballot: Ballot, politeness: Politeness) {
        // Only who had the lease here has something to say.
        if ballot.by == from && self.grantor.ballot() == Some(ballot) {
            self.grantor.release(ballot);
            self.hear_polite(from, politeness);
            self.try_ms = 0;
        }
    }

    // --- the work of a leader -------------------------------------------------------------------------------------------

    /// One step towards the holders that are wished for.
    pub(crate) fn work(&mut self, ctx: &mut Context<'_>, step: &Step, due: &mut Due) {
        self.wait_to_begin(ctx, due);
        let now_ms = ctx.now.mono_ms;
        let again_ms = ctx.settings.answer_ms;
        if let Some(proposal) = self.proposal.as_mut() {
            if now_ms >= proposal.begun_ms + PROPOSAL_ANSWERS * again_ms {
                // Too few agree: the next lease shows who did, and whether something else may be proposed.
                self.give_back(ctx);
                return;
            }
            if now_ms >= proposal.asked_ms + again_ms {
                proposal.asked_ms = now_ms;
                self.ask_to_agree(ctx);
            }
            due.at(now_ms + again_ms);
            return;
        }
        let latest = self.epoch();
        let nodes = self.latest().nodes.clone();
        let inherited = self.leader.as_mut().map(|leader| leader.take_inherited(&nodes, ctx.settings));
        let inherited = match inherited {
            Some(Ok(inherited)) => inherited,
            Some(Err(Dead)) => {
                self.grantor.forget();
                self.keep_promise(ctx);
                None
            }
            None => None,
        };
        if let Some(holders) = inherited.filter(|holders| holders.epoch > latest) {
            self.propose(ctx, holders);
            return;
        }
        let heard = self.latest().nodes.iter().filter(|node| self.settled.contains(node)).count();
        if !ctx.settings.suffices(heard, self.latest().nodes.len()) || !self.is_caught_up(ctx) {
            if now_ms >= self.asked_ms + again_ms {
                self.asked_ms = now_ms;
                self.ask_others(ctx);
            }
            due.at(now_ms + again_ms);
            return;
        }
        // What was there before this node led is kept by whoever comes next; what it writes itself, once acknowledged.
        let sealed = |extent: &&Extent| extent.seal.is_some();
        let before: Vec<Extent> = self.floor.lacking(&self.own).filter(sealed).copied().collect();
        before.into_iter().for_each(|extent| {
            self.floor.put(extent);
        });
        match step {
            Step::Copy { to, instead_of } => self.copy_to(ctx, *to, *instead_of, due),
            Step::Remove(goes) => {
                let nodes = self.latest().nodes.iter().filter(|node| *node != goes).copied().collect();
                self.propose_nodes(ctx, nodes);
            }
            Step::Rest(_) => {
                self.copying = None;
                self.urgent = false;
                self.replace_for_a_while(ctx, due);
            }
        }
    }

    fn copy_to(&mut self, ctx: &mut Context<'_>, to: Key, instead_of: Option<Key>, due: &mut Due) {
        let now_ms = ctx.now.mono_ms;
        let again_ms = ctx.settings.answer_ms;
        if self.copying.as_ref().is_none_or(|copying| copying.to != to) {
            ctx.note(What::Repair, Some(to), self.slice, "a copy is made here");
            // What it said when it held the slice before may be gone since.
            self.told.remove(&to);
            let progress = (0, now_ms);
            let begun_ms = now_ms;
            self.copying = Some(Box::new(Copying { to, instead_of, begun_ms, asked_ms: 0, progress, audited: false }));
        }
        let complete = self.told.get(&to).is_some_and(|told| told.covers(&self.floor));
        let nothing = self.floor.extents().is_empty();
        let Some(copying) = self.copying.as_mut() else { return };
        copying.instead_of = instead_of;
        if nothing && self.told.contains_key(&to) || complete && copying.audited {
            let mut nodes: Vec<Key> =
                self.latest().nodes.iter().filter(|node| Some(**node) != instead_of).copied().collect();
            nodes.push(to);
            // Who audits whom goes by this order: so that, too, is spread over all.
            let nodes = ctx.view.in_order(self.slice, &nodes);
            self.propose_nodes(ctx, nodes);
            return;
        }
        if complete {
            due.at(now_ms + again_ms);
            self.challenge(ctx, to);
            return;
        }
        let patience_ms = ctx.settings.repair_soon_ms + self.floor.bytes() / PULL_SLOW_BYTES_PER_MS;
        if now_ms.saturating_sub(copying.progress.1) > patience_ms {
            // It takes the request and does nothing: somebody else is asked, and this one again much later.
            self.slow.retain(|(node, _)| *node != to);
            self.slow.push((to, now_ms + SLOW_PATIENCES * patience_ms));
            due.at(now_ms + again_ms);
            self.copying = None;
            ctx.note(What::Suspended, Some(to), self.slice, "it was asked to copy and does not");
            return;
        }
        // It tells when it has more; only a request that was lost is repeated.
        let asked_again = copying.asked_ms == 0 || now_ms >= copying.asked_ms + 6 * again_ms;
        if asked_again {
            copying.asked_ms = now_ms;
        }
        due.at(copying.asked_ms + 6 * again_ms);
        if asked_again {
            self.send_chain(ctx, to);
            let epoch = self.chain.latest().clone();
            let extents: Vec<Extent> = self.own.extents().to_vec();
            if extents.is_empty() {
                ctx.send(to, Message::Adopt { epoch, extents });
            } else {
                for part in extents.chunks(EXTENTS_MAX) {
                    ctx.send(to, Message::Adopt { epoch: epoch.clone(), extents: part.to_vec() });
                }
            }
        }
    }

    /// Whoever is asked to copy believes it by the chain.
    fn send_chain(&self, ctx: &mut Context<'_>, to: Key) {
        for links in self.chain.after(Epoch::default(), CHAIN_KEPT_MAX).chunks(CHAIN_MAX) {
            ctx.send(to, Message::Epochs(links.to_vec()));
        }
    }

    /// While a holder is absent, the next on the ring copies what is written meanwhile. It is asked again and again, and stops when nobody
    /// asks any more.
    fn replace_for_a_while(&mut self, ctx: &mut Context<'_>, due: &mut Due) {
        let now_ms = ctx.now.mono_ms;
        let away: Vec<Key> = self.latest().nodes.iter().filter(|node| ctx.is_away(node)).copied().collect();
        if away.is_empty() {
            if let Some((stand_in, _)) = self.stand_in.take() {
                ctx.send(stand_in, Message::Dismiss { slice: self.slice });
            }
            return;
        }
        let open: Vec<Extent> = self.own.open().copied().collect();
        if open.is_empty() {
            return;
        }
        let again_ms = ADOPTED_ANSWERS / 3 * ctx.settings.answer_ms;
        if let Some((node, asked_ms)) = self.stand_in
            && ctx.view.roster.index(&node).is_some_and(|index| ctx.view.may_adopt(index))
            && now_ms < asked_ms + again_ms
        {
            due.at(asked_ms + again_ms);
            return;
        }
        let stand_in = self.wish(ctx, &away).into_iter().find(|node| !self.is_holder(node));
        self.stand_in = stand_in.map(|node| (node, now_ms));
        if let Some(stand_in) = stand_in {
            due.at(now_ms + again_ms);
            self.send_chain(ctx, stand_in);
            let epoch = self.chain.latest().clone();
            open.chunks(EXTENTS_MAX).for_each(|part| {
                ctx.send(stand_in, Message::Adopt { epoch: epoch.clone(), extents: part.to_vec() });
            });
        }
    }

    // --- the next epoch -------------------------------------------------------------------------------------------------

    fn propose_nodes(&mut self, ctx: &mut Context<'_>, nodes: Vec<Key>) {
        let before = self.latest();
        let epoch = Epoch { generation: before.epoch.generation, number: before.epoch.number + 1 };
        let holders = Holders { network: before.network, slice: self.slice, epoch, before: before.hash(), nodes };
        self.propose(ctx, holders);
    }

    fn propose(&mut self, ctx: &mut Context<'_>, holders: Holders) {
        let Some(ballot) = self.leader.as_ref().map(|leader| leader.ballot) else { return };
        if !self.grantor.accept(ballot, &holders) {
            return;
        }
        self.keep_promise(ctx);
        let signature = ctx.seal.sign(&holders.ballot());
        let signatures = vec![(ctx.key, signature)];
        self.proposal =
            Some(Box::new(Proposal { holders, signatures, asked_ms: ctx.now.mono_ms, begun_ms: ctx.now.mono_ms }));
        self.ask_to_agree(ctx);
        self.conclude(ctx);
    }

    fn ask_to_agree(&mut self, ctx: &mut Context<'_>) {
        let (Some(leader), Some(proposal)) = (self.leader.as_ref(), self.proposal.as_ref()) else { return };
        let signed = |node: &Key| proposal.signatures.iter().any(|(signer, _)| signer == node);
        let ask: Vec<Key> = self.latest().nodes.iter().filter(|node| !signed(node)).copied().collect();
        let (ballot, holders) = (leader.ballot, proposal.holders.clone());
        for node in ask {
            ctx.send(node, Message::Propose { ballot, holders: holders.clone() });
        }
    }

    /// A leader asks to agree to the next epoch. Only what the own eyes confirm is signed.
    pub(crate) fn proposed(&mut self, ctx: &mut Context<'_>, from: Key, ballot: Ballot, holders: &Holders) {
        let before = self.latest();
        let follows = holders.before == before.hash()
            && holders.epoch.number == before.epoch.number + 1
            && holders.epoch.generation == before.epoch.generation
            && differ_by_one(&before.nodes, &holders.nodes);
        if ballot.by != from || !follows || !ctx.in_view || !self.is_holder(&ctx.key) {
            return;
        }
        let again = self.grantor.accepted(before.epoch).is_some_and(|(_, accepted)| accepted == holders);
        if !again && !self.is_sound(ctx, holders) {
            ctx.note(What::Refused, Some(from), self.slice, "the holders it proposes are not what this node sees");
            return;
        }
        if self.grantor.accept(ballot, holders) {
            self.keep_promise(ctx);
            let signature = ctx.seal.sign(&holders.ballot());
            ctx.send(from, Message::Agree { slice: self.slice, epoch: holders.epoch, ballot, signature });
        }
    }

    /// Whether a proposal is what this node would do too: nobody who is sound and wished for goes, nobody unwished comes.
    fn is_sound(&mut self, ctx: &mut Context<'_>, holders: &Holders) -> bool {
        let gone: Vec<Key> = self.latest().nodes.iter().filter(|node| !holders.nodes.contains(node)).copied().collect();
        let come: Vec<Key> = holders.nodes.iter().filter(|node| !self.is_holder(node)).copied().collect();
        // Whom this node found slow, the leader may have found quick.
        let slow = std::mem::take(&mut self.slow);
        let mut wished = self.wish(ctx, &gone);
        // … and the other way round: then those who come after them on the ring are as good.
        let passed: Vec<Key> = wished.iter().filter(|node| !self.is_holder(node)).chain(&gone).copied().collect();
        wished.extend(self.wish(ctx, &passed));
        self.slow = slow;
        if !come.iter().all(|node| wished.contains(node)) {
            return false;
        }
        let Some(goes) = gone.first() else { return true };
        let without = self.wish(ctx, &[]);
        let there = !ctx.is_away(goes)
            && !self.is_suspended(goes)
            && ctx.view.roster.index(goes).is_some_and(|index| ctx.view.may_adopt(index));
        if there && without.contains(goes) {
            // Perhaps the leader has audited it: so does this node, before it agrees.
            self.challenge(ctx, *goes);
            return false;
        }
        true
    }

    /// A holder agreed.
    pub(crate) fn agreed(&mut self, ctx: &mut Context<'_>, from: Key, epoch: Epoch, signature: Signature) {
        let is_holder = self.is_holder(&from);
        let Some(proposal) = self.proposal.as_mut().filter(|proposal| proposal.holders.epoch == epoch) else { return };
        let known = proposal.signatures.iter().any(|(signer, _)| *signer == from);
        if known || !is_holder || !ctx.seal.verify(&from, &proposal.holders.ballot(), &signature) {
            return;
        }
        proposal.signatures.push((from, signature));
        self.conclude(ctx);
    }

    /// Enough agreed: the epoch begins, and this node leads in it only when its holders have granted anew.
    fn conclude(&mut self, ctx: &mut Context<'_>) {
        let of = self.latest().nodes.len();
        let enough =
            self.proposal.as_ref().is_some_and(|proposal| ctx.settings.suffices(proposal.signatures.len(), of));
        if !enough {
            return;
        }
        let Some(proposal) = self.proposal.take() else { return };
        let link = SignedHolders { holders: proposal.holders, signatures: proposal.signatures, proofs: Vec::new() };
        self.copying = None;
        self.begin(ctx, Arc::new(link));
    }

    /// An epoch that is believed begins.
    fn begin(&mut self, ctx: &mut Context<'_>, link: Arc<SignedHolders>) {
        let mut hearers = self.latest().nodes.clone();
        hearers.extend(&link.holders.nodes);
        self.chain.push(link.clone());
        self.entered(ctx, &link);
        for hearer in hearers {
            ctx.send(hearer, Message::Epochs(vec![link.clone()]));
        }
        ctx.news.push(link);
    }

    fn entered(&mut self, ctx: &mut Context<'_>, link: &Arc<SignedHolders>) {
        ctx.out.push(Action::Keep(Kept::Epoch(link.clone())));
        ctx.view.note_epoch(link);
        ctx.note(What::Epoch, None, self.slice, "other holders from now on");
        self.proposal = None;
        self.recovery = None;
        self.try_ms = 0;
        let stays = link.holders.nodes.contains(&ctx.key);
        if ctx.settings.mutation != Mutation::EpochCheck {
            match stays {
                true => self.stop_leading(ctx),
                // Those who hold it now need not wait until the lease would have lapsed.
                false => self.give_back(ctx),
            }
        }
        if !stays {
            ctx.out.push(Action::Seal { slice: self.slice });
            self.surplus_ms.get_or_insert(ctx.now.mono_ms);
            self.proven.clear();
        } else if self.stand_in.is_some_and(|(node, _)| link.holders.nodes.contains(&node)) {
            self.stand_in = None;
        }
    }

    /// Epochs that others tell of.
    pub(crate) fn epochs(&mut self, ctx: &mut Context<'_>, from: Key, links: &[Arc<SignedHolders>]) {
        for link in links {
            let view = &ctx.view;
            let extended = self.chain.extend(link, &view.roster, &view.watchers, ctx.settings, ctx.seal);
            match extended {
                Ok(true) => {
                    ctx.news.push(link.clone());
                    if !link.proofs.is_empty() {
                        ctx.note(What::Recovery, None, self.slice, "what remained of the holders went on");
                    }
                    self.entered(ctx, link);
                }
                Ok(false) => {}
                Err(Doubt::Gap) => {
                    ctx.send(from, Message::EpochAsk { slice: self.slice, after: Epoch::default() });
                    return;
                }
                Err(Doubt::Wrong(why)) => {
                    ctx.note(What::Refused, Some(from), self.slice, why);
                    return;
                }
            }
        }
    }

    // --- too many are absent --------------------------------------------------------------------------------------------

    /// A majority can no longer come together, and has been absent long enough: what remains goes on.
    pub(crate) fn recover(&mut self, ctx: &mut Context<'_>, due: &mut Due) {
        let now_ms = ctx.now.mono_ms;
        let nodes = self.latest().nodes.clone();
        let remaining: Vec<Key> = nodes.iter().filter(|node| !ctx.is_away(node)).copied().collect();
        if remaining.len() >= majority(nodes.len()) || !remaining.contains(&ctx.key) {
            self.recovery = None;
            return;
        }
        let roster = &ctx.view.roster;
        let since = |node: &Key| match roster.index(node) {
            Some(index) if roster.is_gone(index) => 0,
            Some(index) => roster.absent_since(index).unwrap_or(now_ms),
            None => now_ms,
        };
        let newest = nodes.iter().filter(|node| !remaining.contains(node)).map(since).max().unwrap_or(now_ms);
        let at = newest + ctx.settings.recover_ms;
        if now_ms < at || !ctx.in_view {
            due.at(at.max(now_ms + ctx.settings.ping_ms));
            return;
        }
        let again_ms = ctx.settings.answer_ms;
        if self.recovery.as_ref().is_some_and(|recovery| now_ms < recovery.asked_ms + again_ms) {
            due.at(now_ms + again_ms);
            return;
        }
        let before = self.latest();
        let epoch = Epoch { generation: before.epoch.generation + 1, number: before.epoch.number + 1 };
        let (network, hash) = (before.network, before.hash());
        let holders = Holders { network, slice: self.slice, epoch, before: hash, nodes: remaining.clone() };
        if self.recovery.as_ref().is_none_or(|recovery| recovery.holders != holders) {
            let signature = ctx.seal.sign(&holders.ballot());
            let signatures = vec![(ctx.key, signature)];
            self.recovery =
                Some(Box::new(Proposal { holders: holders.clone(), signatures, asked_ms: now_ms, begun_ms: now_ms }));
        } else if let Some(recovery) = self.recovery.as_mut() {
            recovery.asked_ms = now_ms;
        }
        for node in remaining {
            ctx.send(node, Message::RecoverAsk { holders: holders.clone(), bytes: self.own.bytes() });
        }
        due.at(now_ms + again_ms);
        self.conclude_recovery(ctx);
    }

    /// Another remaining holder wants to go on: it may, unless more is here.
    pub(crate) fn recovery_asked(&mut self, ctx: &mut Context<'_>, from: Key, holders: &Holders, bytes: u64) {
        let Some(recovery) = self.recovery.as_ref().filter(|recovery| recovery.holders == *holders) else { return };
        let (mine, theirs) = ((self.own.bytes(), ctx.key), (bytes, from));
        if theirs > mine {
            let signature = ctx.seal.sign(&recovery.holders.ballot());
            ctx.send(from, Message::RecoverAgree { slice: self.slice, epoch: recovery.holders.epoch, signature });
        }
    }

    /// A remaining holder agrees.
    pub(crate) fn recovery_agreed(&mut self, ctx: &mut Context<'_>, from: Key, epoch: Epoch, signature: Signature) {
        let is_holder = self.is_holder(&from);
        let Some(recovery) = self.recovery.as_mut().filter(|recovery| recovery.holders.epoch == epoch) else { return };
        let known = recovery.signatures.iter().any(|(signer, _)| *signer == from);
        if !known && is_holder && ctx.seal.verify(&from, &recovery.holders.ballot(), &signature) {
            recovery.signatures.push((from, signature));
            self.conclude_recovery(ctx);
        }
    }

    fn conclude_recovery(&mut self, ctx: &mut Context<'_>) {
        let all = self.recovery.as_ref().is_some_and(|recovery| {
            recovery.holders.nodes.iter().all(|node| recovery.signatures.iter().any(|(signer, _)| signer == node))
        });
        if !all {
            return;
        }
        let Some(recovery) = self.recovery.take() else { return };
        let roster = &ctx.view.roster;
        let absent = self.latest().nodes.iter().filter(|node| !recovery.holders.nodes.contains(node));
        let proofs = absent.filter_map(|node| {
            let index = roster.index(node)?;
            Some(Witnessed { proof: roster.absence(index)?.clone(), record: roster.record(index).clone() })
        });
        let link =
            SignedHolders { proofs: proofs.collect(), holders: recovery.holders, signatures: recovery.signatures };
        ctx.note(What::Recovery, None, self.slice, "too many holders are absent: what remains goes on");
        self.begin(ctx, Arc::new(link));
    }

    /// What the floor is, for those who look.
    pub fn required(&self) -> &Inventory {
        &self.floor
    }
}
