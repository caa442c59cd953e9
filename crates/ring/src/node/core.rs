//! The machine of one node, without what it knows of everybody: that is the [`View`], which a large simulation shares.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::{Action, Event, Kept, Note, Now, What};
use crate::audit::{Audits, Job, proof_key};
use crate::chance::Chance;
use crate::epoch::{Chain, Epoch, SignedHolders};
use crate::fact::{Fact, NodeRecord, SignedRecord, Standing};
use crate::genesis::Slice;
use crate::holding::{Context, Holding, Pulls};
use crate::key::{Hash, Key, SealRef};
use crate::lease::Grantor;
use crate::limits::{
    CHAIN_KEPT_MAX, CLOCK_OFF_MS_MAX, CLOCKS_MAX, PEER_MESSAGES_BURST, PEER_MESSAGES_PER_S, STRANGERS_MESSAGES_BURST,
    STRANGERS_MESSAGES_PER_S, SUMMARIES_MAX,
};
use crate::message::{Message, Summary, Topic};
use crate::pace::{At, Done, Paces, Site};
use crate::settings::Settings;
use crate::view::View;
use crate::watch::{Watch, Watched};

/// After a start the clocks of others are waited for this many pings before the own date is believed.
const DATE_PINGS: u64 = 10;
/// How often from one ping to the next it is looked whether this node may act.
const ACTS_PER_PING: u64 = 3;

pub(super) struct Slot {
    pub holding: Holding,
    pub due_ms: u64,
}

/// What is said of a slice and does not follow from what is known of it.
#[derive(Default)]
pub(super) struct Unlinked {
    /// By those who watch this node.
    pub claims: BTreeMap<Key, (Epoch, Vec<Key>)>,
    pub tries: u32,
    /// Nobody is asked before then.
    pub again_ms: u64,
}

/// Everything of a node but its view.
pub struct Core {
    pub(super) seal: SealRef,
    pub(super) key: Key,
    pub(super) settings: Settings,
    pub(super) record: NodeRecord,
    pub(super) watch: Watch,
    pub(super) slots: BTreeMap<Slice, Slot>,
    paces: Paces,
    /// Splits that were looked at, as the roster counts them.
    splits_version: u64,
    audits: Audits,
    pulls: Pulls,
    clocks: BTreeMap<Key, i64>,
    /// How far the clocks of others are ahead.
    clock_off_ms: i64,
    own_wall_ms: u64,
    /// Of members each, and of all others together.
    budgets: HashMap<Option<Key>, (u64, u64)>,
    /// Slices of which others know epochs that do not follow from what is known here.
    pub(super) unlinked: BTreeMap<Slice, Unlinked>,
    pub(super) members_version: u64,
    pub(super) compare_ms: u64,
    pub(super) reconcile_ms: u64,
    pub(super) table_ms: u64,
    renew_ms: u64,
    rename_ms: u64,
    summary_ms: u64,
    pub(super) twins: u32,
    left: bool,
    acts: bool,
    /// When it was last looked whether this node may act.
    acts_ms: Option<u64>,
    signed_ms: u64,
    /// When the first event was handled.
    began_ms: Option<u64>,
    /// The own record is to be signed anew as soon as the date is known.
    unsigned: bool,
    /// No slice is due before this.
    due_floor_ms: u64,
}

impl Core {
    /// A node with its own record, as its owner certified it.
    pub fn new(seal: SealRef, record: NodeRecord, settings: Settings) -> Core {
        Core {
            key: seal.key(),
            seal,
            settings,
            record,
            watch: Watch::default(),
            slots: BTreeMap::new(),
            paces: Paces::default(),
            splits_version: 0,
            audits: Audits::default(),
            pulls: Pulls::default(),
            clocks: BTreeMap::new(),
            clock_off_ms: 0,
            own_wall_ms: 0,
            budgets: HashMap::new(),
            unlinked: BTreeMap::new(),
            members_version: u64::MAX,
            compare_ms: 0,
            reconcile_ms: 0,
            table_ms: 0,
            renew_ms: 0,
            rename_ms: 0,
            summary_ms: 0,
            twins: 0,
            left: false,
            acts: false,
            acts_ms: None,
            signed_ms: 0,
            began_ms: None,
            unsigned: false,
            due_floor_ms: 0,
        }
    }

    /// The node's key.
    pub fn key(&self) -> Key {
        self.key
    }

    /// What the node says of itself, or will say when the date is known.
    pub fn record(&self) -> &NodeRecord {
        &self.record
    }

    /// A slice held here.
    pub fn holding(&self, slice: Slice) -> Option<&Holding> {
        self.slots.get(&slice).map(|slot| &slot.holding)
    }

    /// Whether a slice is held here, or being copied to here.
    pub fn has(&self, slice: Slice) -> bool {
        self.slots.contains_key(&slice)
    }

    /// All slices held here.
    pub fn holdings(&self) -> impl Iterator<Item = (Slice, &Holding)> + '_ {
        self.slots.iter().map(|(slice, slot)| (*slice, &slot.holding))
    }

    /// Takes over a slice as it stands: how a restart and a simulation begin.
    pub fn adopt(&mut self, holding: Holding) {
        self.slots.insert(holding.latest().slice, Slot { holding, due_ms: 0 });
        self.due_by(0);
    }

    /// What was kept about promises before a restart.
    pub fn restore(&mut self, slice: Slice, grantor: Grantor) {
        if let Some(slot) = self.slots.get_mut(&slice) {
            slot.holding.restore(grantor);
        }
    }

    /// Whether this node leads a slice, in which epoch, and until when by its monotonic clock. Asked before every fetch.
    pub fn leads(&self, slice: Slice, now_ms: u64) -> Option<(Epoch, u64)> {
        self.holding(slice)?.leads(now_ms)
    }

    /// Whether this node may visit a site that is split. Asked before every request, beside the lease.
    pub fn may_visit(&self, site: Site, now_ms: u64) -> bool {
        self.paces.may(site, now_ms, &self.settings)
    }

    /// Who visits a site that is split, where this node leads its home.
    pub fn visitor(&self, site: Site, now_ms: u64) -> Option<Key> {
        self.paces.visitor(site, now_ms)
    }

    /// When [`Event::Tick`] has something to do.
    pub fn due_ms(&self) -> u64 {
        let slices = self.due_floor_ms.min(self.paces.due_ms());
        let own = if self.settings.watching {
            self.watch.due_ms().min(self.compare_ms).min(self.renew_ms).min(self.summary_ms)
        } else {
            u64::MAX
        };
        let audits = self.audits.due_ms(self.settings.answer_ms * 6).unwrap_or(u64::MAX);
        slices.min(own).min(audits)
    }

    /// Whether this node may lead and grant.
    pub fn may_act(&self) -> bool {
        self.acts
    }

    /// Whether enough watchers were heard lately.
    pub fn is_in_view(&self, view: &View, now_ms: u64) -> bool {
        !self.settings.watching
            || (self.twins <= 3 && self.watch.in_view(&view.roster, &self.key, &self.settings, now_ms))
    }

    /// Whether the own clock agrees with those of others.
    pub fn clock_fits(&self) -> bool {
        self.clock_off_ms.abs() <= CLOCK_OFF_MS_MAX
    }

    /// How far the clocks of others are ahead: the median, once two or more are known.
    fn median_off_ms(&self) -> i64 {
        if self.clocks.len() < 2 {
            return 0;
        }
        let mut offsets: Vec<i64> = self.clocks.values().copied().collect();
        offsets.sort_unstable();
        let middle = offsets[offsets.len() / 2];
        let below = offsets[(offsets.len() - 1) / 2];
        // Of two in the middle the one that is nearer to the own clock: a single peer that is off convinces nobody.
        if below.abs() < middle.abs() { below } else { middle }
    }

    /// A node whose clock is off goes by that of the others: it does not lead, and is otherwise of use.
    fn corrected(&self, now: Now) -> Now {
        let off_ms = self.clock_off_ms;
        let wall_ms =
            if off_ms.abs() > CLOCK_OFF_MS_MAX { now.wall_ms.saturating_add_signed(off_ms) } else { now.wall_ms };
        Now { wall_ms, ..now }
    }

    /// Bytes in memory of what the node has beside its view and inventories.
    pub fn memory_bytes(&self) -> usize {
        self.slots.len() * (size_of::<Slot>() + size_of::<SignedHolders>() + 256)
    }

    /// Handles one event.
    pub fn handle(&mut self, view: &mut View, event: Event, now: Now, chance: &mut Chance, out: &mut Vec<Action>) {
        self.own_wall_ms = now.wall_ms;
        self.began_ms.get_or_insert(now.mono_ms);
        let now = self.corrected(now);
        self.look_whether_to_act(view, now.mono_ms);
        self.look_at_paces(view, now, out);
        match event {
            Event::Tick => self.tick(view, now, chance, out),
            Event::Received { from, message } => self.received(view, from, message, now, chance, out),
            Event::Silent { node } => {
                if let Some(index) = view.roster.index(&node) {
                    let mut watched = Vec::new();
                    self.watch.silent(&view.roster, index, now.wall_ms, self.seal.as_ref(), &mut watched);
                    self.do_watched(view, watched, now, chance, out);
                }
            }
            Event::Changed { node } => self.changed(&node, now),
            Event::Rewish => self.look_at_all(0),
            Event::Grown { slice, extent } => {
                self.with(view, slice, now, chance, out, |holding, ctx| holding.grown(ctx, extent));
            }
            Event::Pulled { slice, extent, .. } => {
                self.with(view, slice, now, chance, out, |holding, ctx| holding.pulled(ctx, extent));
            }
            Event::PullFailed { slice, from, segment, why } => {
                self.with(view, slice, now, chance, out, |holding, ctx| holding.pull_failed(ctx, from, segment, why));
            }
            Event::Hashed { job, digest } => self.hashed(view, job, digest, now, chance, out),
            Event::Damaged { slice, segment } => {
                self.with(view, slice, now, chance, out, |holding, ctx| holding.damaged(ctx, segment));
            }
            Event::Wanted { slice, wanted } => {
                self.with(view, slice, now, chance, out, |holding, _| holding.want(wanted));
            }
            Event::Polite { slice, politeness, out } => {
                if let Some(slot) = self.slots.get_mut(&slice)
                    && slot.holding.polite(self.key, politeness, out)
                {
                    slot.due_ms = now.mono_ms;
                    self.due_by(now.mono_ms);
                }
            }
            Event::Pace { site, wanted, out: is_out, back } => {
                self.pace(view, now, out, |paces, at, done| paces.want(site, wanted, is_out, back, at, done));
            }
            Event::Remind { site, politeness } => {
                self.pace(view, now, out, |paces, _, done| paces.remind(site, politeness, done));
            }
            Event::Learn(facts) => self.facts(view, None, &facts, now, chance, out),
            Event::Moved { addresses, relay, portal } => {
                self.record.addresses = addresses;
                self.record.relay = relay;
                self.record.portal = portal;
                self.sign_anew(view, now, chance, out);
            }
            Event::Leave => {
                self.record.standing = Standing::Leaving;
                self.sign_anew(view, now, chance, out);
                self.look_at_all(0);
            }
            Event::Repair { slice } => {
                self.with(view, slice, now, chance, out, |holding, ctx| holding.hurry(ctx));
            }
        }
    }

    /// Whether this node may act changes with pings, not with every message; a part of the time between two is nothing beside what a
    /// recovery waits.
    fn look_whether_to_act(&mut self, view: &View, now_ms: u64) {
        if self.acts_ms.is_some_and(|at| now_ms < at + self.settings.ping_ms / ACTS_PER_PING) {
            return;
        }
        self.acts_ms = Some(now_ms);
        self.acts = !self.settings.watching
            || (self.twins <= 3 && self.watch.may_act(&view.roster, &self.key, &self.settings, now_ms));
    }

    /// Something about slices has changed: they are looked at no later than then.
    fn due_by(&mut self, due_ms: u64) {
        self.due_floor_ms = self.due_floor_ms.min(due_ms);
    }

    /// Looks at a slice after something was done to it.
    pub(super) fn with(
        &mut self,
        view: &mut View,
        slice: Slice,
        now: Now,
        chance: &mut Chance,
        out: &mut Vec<Action>,
        act: impl FnOnce(&mut Holding, &mut Context<'_>),
    ) {
        let (in_view, clock_fits) = (self.acts, self.clock_fits());
        let Some(slot) = self.slots.get_mut(&slice) else { return };
        let mut news = Vec::new();
        let mut ctx = Context {
            view,
            settings: &self.settings,
            seal: self.seal.as_ref(),
            key: self.key,
            now,
            chance,
            audits: &mut self.audits,
            in_view,
            clock_fits,
            leaving: self.record.standing != Standing::Staying,
            pulls: &mut self.pulls,
            news: &mut news,
            out,
        };
        act(&mut slot.holding, &mut ctx);
        let again = slot.holding.look(&mut ctx);
        // The table follows the chain, however that came here: others compare epochs alone, and would find nothing to mend.
        if !view.has_noted(slot.holding.chain().latest()) {
            view.note_epoch(slot.holding.chain().latest());
        }
        match again {
            Some(due_ms) => {
                slot.due_ms = due_ms.max(now.mono_ms + 1);
                self.due_floor_ms = self.due_floor_ms.min(slot.due_ms);
            }
            None => {
                // What comes of its pulls is nobody's any more.
                let gone = self.slots.remove(&slice);
                gone.iter().flat_map(|slot| slot.holding.pulls()).for_each(|from| self.pulls.end(from));
            }
        }
        for link in news {
            self.spread(view, &Message::Epochs(vec![link]), None, chance, out);
        }
    }

    /// Sites that are split: new ones, and who leads their homes.
    fn look_at_paces(&mut self, view: &View, now: Now, out: &mut Vec<Action>) {
        if self.splits_version != view.roster.splits_version() {
            self.splits_version = view.roster.splits_version();
            for (site, split) in view.roster.split_table().iter() {
                self.paces.split(site, view.roster.genesis().slice_of(site), split.since_ms);
            }
        }
        if !self.paces.is_empty() {
            self.pace(view, now, out, |_, _, _| ());
        }
    }

    /// Does something about sites that are split.
    fn pace(
        &mut self,
        view: &View,
        now: Now,
        out: &mut Vec<Action>,
        act: impl FnOnce(&mut Paces, &At<'_>, &mut Vec<Done>),
    ) {
        let mut paces = std::mem::take(&mut self.paces);
        let leads = |slice: Slice| self.leads(slice, now.mono_ms).is_some();
        let polite = |slice: Slice| self.holding(slice)?.politeness_of(&self.key);
        let (key, settings) = (self.key, &self.settings);
        let at = At { key, now_ms: now.mono_ms, wall_ms: now.wall_ms, leads: &leads, polite: &polite, settings };
        let mut done = Vec::new();
        paces.look(&at);
        act(&mut paces, &at, &mut done);
        self.paces = paces;
        for done in done {
            match done {
                Done::Ask(site, number) => self.tell_home(view, site, &Message::PaceAsk { site, number }, out),
                Done::Back(site, number, politeness) => {
                    self.tell_home(view, site, &Message::PaceBack { site, number, politeness }, out);
                }
                Done::Grant(to, site, number, politeness) => {
                    out.push(Action::Send { to, message: Message::PaceGrant { site, number, politeness } });
                }
                Done::Visit(site, until_ms, politeness) => out.push(Action::Visit { site, until_ms, politeness }),
                Done::Heed(site, politeness) => out.push(Action::Heed { site, politeness }),
            }
        }
    }

    /// To those who hold the home of a site: who of them leads knows that best itself.
    fn tell_home(&self, view: &View, site: Site, message: &Message, out: &mut Vec<Action>) {
        let there = |node: &Key| view.roster.index(node).is_some_and(|index| view.roster.is_present(index));
        let holders = view.holders(view.roster.genesis().slice_of(site)).into_iter();
        let others = holders.filter(|node| *node != self.key && there(node));
        out.extend(others.map(|to| Action::Send { to, message: message.clone() }));
    }

    /// Only who holds the home of a site grants it, and only who holds some of its URLs asks: nobody else has a reason to.
    fn paced(&mut self, view: &View, from: Key, message: Message, now: Now, out: &mut Vec<Action>) {
        let genesis = view.roster.genesis();
        let holds = |place: u32| view.holders(genesis.slice_of(place)).contains(&from);
        let visits = |site: Site| view.roster.split_table().places(site).into_iter().any(holds);
        match message {
            Message::PaceAsk { site, number } if visits(site) => {
                self.pace(view, now, out, |paces, at, done| paces.asked(site, from, number, at, done));
            }
            Message::PaceGrant { site, number, politeness } if holds(site) => {
                self.pace(view, now, out, |paces, at, done| paces.granted(site, from, number, politeness, at, done));
            }
            Message::PaceBack { site, number, politeness } if visits(site) => {
                self.pace(view, now, out, |paces, at, done| {
                    paces.given_back(site, from, number, politeness, at, done);
                });
            }
            _ => out.push(note(What::Refused, Some(from), "it holds nothing of this site, as far as is known here")),
        }
    }

    fn tick(&mut self, view: &mut View, now: Now, chance: &mut Chance, out: &mut Vec<Action>) {
        let now_ms = now.mono_ms;
        if !self.paces.is_empty() {
            self.pace(view, now, out, |paces, at, done| paces.tick(at, done));
        }
        if self.settings.watching {
            if now_ms >= self.compare_ms {
                self.compare(view, now, chance, out);
            }
            if self.renew_ms == 0
                && let Some(record) = view.roster.record_of(&self.key)
            {
                // After a restart: others are heard first, so that the date is right; and a fresh record need not be renewed.
                let age_ms = now.wall_ms.saturating_sub(record.record.signed_ms);
                let left_ms = self.settings.renew_ms.saturating_sub(age_ms).max(2 * self.settings.ping_ms);
                self.renew_ms = now_ms + left_ms + chance.below(self.settings.renew_ms / 10 + 1);
            }
            if now_ms >= self.renew_ms || self.unsigned && self.knows_date(view, now_ms) {
                self.sign_anew(view, now, chance, out);
            }
            self.follow_members(view, now);
            if now_ms >= self.rename_ms {
                self.rename_ms = now_ms + self.settings.ping_ms;
                self.rename_watchers(view, now, chance, out);
            }
            let mut watched = Vec::new();
            self.watch.tick(&view.roster, &self.settings, now_ms, now.wall_ms, self.seal.as_ref(), &mut watched);
            self.do_watched(view, watched, now, chance, out);
            if now_ms >= self.summary_ms {
                self.sum_up(view, now_ms, chance, out);
            }
        }
        for (slice, peer, verdict) in self.audits.overdue(now_ms, self.settings.answer_ms * 6) {
            self.with(view, slice, now, chance, out, |holding, ctx| holding.judged(ctx, peer, verdict));
        }
        let due: Vec<Slice> =
            self.slots.iter().filter(|(_, slot)| slot.due_ms <= now_ms).map(|(slice, _)| *slice).collect();
        for slice in due {
            self.with(view, slice, now, chance, out, |_, _| {});
        }
        self.due_floor_ms = self.slots.values().map(|slot| slot.due_ms).min().unwrap_or(u64::MAX);
        if self.record.standing == Standing::Leaving && self.slots.is_empty() && !self.left {
            self.left = true;
            self.record.standing = Standing::Left;
            self.sign_anew(view, now, chance, out);
            out.push(Action::Left);
        }
    }

    /// Members came or went: other watchers, other wishes.
    pub(super) fn follow_members(&mut self, view: &View, now: Now) {
        if self.members_version == view.version() {
            return;
        }
        self.members_version = view.version();
        if self.settings.watching {
            self.watch.recount(&view.roster, &view.watchers, self.key, None, now.mono_ms);
        }
        self.look_at_all(now.mono_ms);
    }

    fn look_at_all(&mut self, due_ms: u64) {
        self.slots.values_mut().for_each(|slot| slot.due_ms = slot.due_ms.min(due_ms));
        self.due_by(due_ms);
    }

    /// The circle has changed: other watchers are written into the own record, unless this node may already be out of view.
    fn rename_watchers(&mut self, view: &mut View, now: Now, chance: &mut Chance, out: &mut Vec<Action>) {
        let Some(own) = view.roster.index(&self.key) else { return };
        let before = view.roster.record(own).record.watchers.clone();
        let after = view.watchers.of(&view.roster, own);
        let marks = view.watchers.marks_of(&view.roster, own);
        if marks == before || (!before.is_empty() && !self.is_in_view(view, now.mono_ms)) {
            return;
        }
        let after: Vec<Key> = after.into_iter().map(|index| view.roster.key(index)).collect();
        let until_ms = now.mono_ms + self.settings.recover_ms;
        self.watch.renamed(before, &after, until_ms, now.mono_ms);
        self.record.watchers = marks;
        self.sign_anew(view, now, chance, out);
    }

    /// Something about a node changed: slices that it holds are looked at.
    pub(super) fn changed(&mut self, node: &Key, now: Now) {
        for slot in self.slots.values_mut().filter(|slot| slot.holding.concerns(node)) {
            slot.due_ms = slot.due_ms.min(now.mono_ms);
        }
        self.due_by(now.mono_ms);
    }

    /// Whether the date of a record can be right. After a start others are heard first: a record of a clock that is hours ahead would be
    /// refused everywhere but here, and nobody could say so.
    fn knows_date(&self, view: &View, now_ms: u64) -> bool {
        let waited_ms = now_ms.saturating_sub(self.began_ms.unwrap_or(now_ms));
        self.clocks.len() >= 2 || view.roster.len() <= 2 || waited_ms >= DATE_PINGS * self.settings.ping_ms
    }

    /// Signs the own record with a higher sequence, and spreads it; later, while the date is not known.
    pub(super) fn sign_anew(&mut self, view: &mut View, now: Now, chance: &mut Chance, out: &mut Vec<Action>) {
        self.unsigned = self.settings.watching && !self.knows_date(view, now.mono_ms);
        if self.unsigned {
            self.renew_ms = now.mono_ms + DATE_PINGS * self.settings.ping_ms;
            return;
        }
        let known = view.roster.record_of(&self.key).map_or(0, |record| record.record.sequence);
        if let Some(record) = view.roster.record_of(&self.key).filter(|_| self.record.watchers.is_empty()) {
            self.record.watchers = record.record.watchers.clone();
        }
        self.record.sequence = known.max(self.record.sequence) + 1;
        self.record.signed_ms = now.wall_ms;
        self.signed_ms = now.mono_ms;
        self.renew_ms = now.mono_ms + self.settings.renew_ms;
        let fact = Fact::Record(Arc::new(SignedRecord::new(self.record.clone(), self.seal.as_ref())));
        self.facts(view, None, &[fact], now, chance, out);
    }

    fn do_watched(
        &mut self,
        view: &mut View,
        watched: Vec<Watched>,
        now: Now,
        chance: &mut Chance,
        out: &mut Vec<Action>,
    ) {
        for one in watched {
            match one {
                Watched::Ping(nodes) => {
                    for index in nodes {
                        out.push(Action::Send { to: view.roster.key(index), message: self.ping(view) });
                    }
                }
                Watched::Voted { node, sequence, vote } => {
                    let key = view.roster.key(node);
                    for watcher in view.watchers.judges(&view.roster, node) {
                        let to = view.roster.key(watcher);
                        if to != self.key {
                            let message = Message::Absent { node: key, sequence, vote: vote.clone() };
                            out.push(Action::Send { to, message });
                        }
                    }
                }
                Watched::Proven(proof) => self.facts(view, None, &[Watch::fact(proof)], now, chance, out),
            }
        }
    }

    pub(super) fn ping(&self, view: &View) -> Message {
        Message::Ping {
            network: view.roster.network(),
            wall_ms: self.own_wall_ms,
            roster: view.roster.digest().number(),
            table: view.table.sum(),
        }
    }

    fn pong(&self, view: &View) -> Message {
        let (roster, table) = (view.roster.digest().number(), view.table.sum());
        Message::Pong { wall_ms: self.own_wall_ms, roster, table }
    }

    /// Whether a peer says more than it may.
    fn is_flooding(&mut self, from: Option<Key>, now_ms: u64) -> bool {
        let (burst, per_s) = match from {
            Some(_) => (PEER_MESSAGES_BURST, PEER_MESSAGES_PER_S),
            None => (STRANGERS_MESSAGES_BURST, STRANGERS_MESSAGES_PER_S),
        };
        let (left, at) = self.budgets.entry(from).or_insert((burst, now_ms));
        let earned = now_ms.saturating_sub(*at) * per_s / 1000;
        if earned > 0 {
            *left = (*left + earned).min(burst);
            *at = now_ms;
        }
        if *left == 0 {
            return true;
        }
        *left -= 1;
        false
    }

    fn received(
        &mut self,
        view: &mut View,
        from: Key,
        message: Message,
        now: Now,
        chance: &mut Chance,
        out: &mut Vec<Action>,
    ) {
        if from == self.key {
            self.twins += 1;
            out.push(note(What::Twin, Some(from), "another machine uses this node's key"));
            return;
        }
        let whose = view.roster.index(&from).map(|_| from);
        if self.is_flooding(whose, now.mono_ms) {
            if self.budgets.get(&whose).is_some_and(|(_, at)| *at == now.mono_ms) {
                out.push(note(What::Flood, Some(from), "it says more than anybody has to say"));
            }
            return;
        }
        if let Some(index) = view.roster.index(&from) {
            // Who left by itself may be on its way back.
            if view.roster.is_out(index) && !matches!(message, Message::Facts(_) | Message::Reconcile { .. }) {
                return;
            }
            self.watch.heard(from, now.mono_ms);
        } else {
            return self.of_a_stranger(view, from, message, now, chance, out);
        }
        if let Some(slice) = message.slice()
            && slice >= view.table.slices()
        {
            out.push(note(What::Refused, Some(from), "there is no such slice"));
            return;
        }
        match message {
            Message::Ping { network, wall_ms, roster, table } => {
                if network != view.roster.network() {
                    out.push(note(What::Refused, Some(from), "it is of another network"));
                    return;
                }
                let index = view.roster.index(&from);
                index.into_iter().for_each(|index| self.watch.asked(index, from, now.mono_ms));
                out.push(Action::Send { to: from, message: self.pong(view) });
                self.compared(view, from, wall_ms, roster, table, now, out);
            }
            Message::Pong { wall_ms, roster, table } => self.compared(view, from, wall_ms, roster, table, now, out),
            Message::Facts(facts) => self.facts(view, Some(from), &facts, now, chance, out),
            Message::Absent { node, sequence, vote } => {
                let mut watched = Vec::new();
                let seal = self.seal.as_ref();
                let learned = self.watch.voted(&view.roster, &view.watchers, node, sequence, &vote, seal, &mut watched);
                if let crate::roster::Learned::Refused(why) = learned {
                    out.push(note(What::Refused, Some(from), why));
                }
                self.do_watched(view, watched, now, chance, out);
            }
            Message::Reconcile { topic, answer, frame } => self.reconcile(view, from, topic, answer, &frame, out),
            // It does not know who asks here: see `of_a_stranger`.
            Message::FactsAsk(hashes) if hashes.is_empty() => {
                let own = view.roster.record_of(&self.key).map(|record| Fact::Record(record.clone()));
                out.extend(own.map(|own| Action::Send { to: from, message: Message::Facts(vec![own]) }));
            }
            Message::FactsAsk(hashes) => self.facts_asked(view, from, &hashes, out),
            Message::TableSums(sums) => self.table_sums(view, from, &sums, out),
            Message::TableEpochs { from: first, epochs } => self.table_epochs(view, from, first, &epochs, out),
            Message::Epochs(links) => self.epochs(view, from, &links, now, chance, out),
            Message::EpochAsk { slice, after } => self.epoch_asked(view, from, slice, after, out),
            Message::EpochHint { slice, epoch, nodes } => {
                self.claimed(view, from, slice, epoch, &nodes, now, out);
            }
            Message::Adopt { epoch, extents } => {
                let slice = epoch.holders.slice;
                let (number, nodes) = (epoch.holders.epoch, &epoch.holders.nodes);
                if !nodes.contains(&from) || !self.believes(view, &epoch) {
                    self.claimed(view, from, slice, number, nodes, now, out);
                    out.push(note(
                        What::Refused,
                        Some(from),
                        "it asks to copy what it does not hold, as far as is known here",
                    ));
                    return;
                }
                let new = || Slot { holding: Holding::new(Chain::new(epoch.clone())), due_ms: 0 };
                self.slots.entry(slice).or_insert_with(new);
                self.with(view, slice, now, chance, out, |holding, ctx| holding.adopted(ctx, from, &epoch, &extents));
            }
            Message::Summaries(summaries) => self.summaries(view, from, &summaries, out),
            Message::Challenge { id, slice, nonce, ranges } => {
                // Only a member may ask, and so much at once: reading costs.
                if self.slots.contains_key(&slice) {
                    // Who has too much to do says nothing: that is not to say that nothing is here.
                    if self.audits.may_answer(&from) {
                        let job = self.audits.job(Job::Answer(from, id));
                        out.push(Action::Hash { job, slice, key: proof_key(&nonce, &self.key), ranges });
                    }
                } else {
                    out.push(Action::Send { to: from, message: Message::Proof { id, digest: None } });
                }
            }
            Message::Proof { id, digest } => {
                if let Some((slice, peer, verdict)) = self.audits.theirs(id, &from, digest) {
                    self.with(view, slice, now, chance, out, |holding, ctx| holding.judged(ctx, peer, verdict));
                }
            }
            message @ (Message::PaceAsk { .. } | Message::PaceGrant { .. } | Message::PaceBack { .. }) => {
                self.paced(view, from, message, now, out);
            }
            // What is removed is told by owners, not by nodes; older ones still speak of it.
            Message::Removal { .. } | Message::Removals { .. } => {}
            message => self.about_slice(view, from, message, now, chance, out),
        }
    }

    /// Who is not known may say who it is, with its own record, and is told nothing before that. A newcomer asks like everybody: by the answer
    /// to a ping it sees that rosters differ and compares them, and then is asked who it is; what it said of itself first may have been lost.
    fn of_a_stranger(
        &mut self,
        view: &mut View,
        from: Key,
        message: Message,
        now: Now,
        chance: &mut Chance,
        out: &mut Vec<Action>,
    ) {
        match message {
            Message::Ping { network, .. } if network == view.roster.network() => {
                out.push(Action::Send { to: from, message: self.pong(view) });
            }
            Message::Reconcile { topic: Topic::Roster, .. } => {
                out.push(Action::Send { to: from, message: Message::FactsAsk(Vec::new()) });
            }
            Message::Facts(facts) => {
                let own = |fact: &&Fact| matches!(fact, Fact::Record(record) if record.node() == from);
                match facts.iter().find(own) {
                    Some(own) => self.facts(view, Some(from), std::slice::from_ref(own), now, chance, out),
                    None => out.push(note(What::Refused, Some(from), "it is not a member")),
                }
            }
            _ => out.push(note(What::Refused, Some(from), "it is not a member")),
        }
    }

    fn about_slice(
        &mut self,
        view: &mut View,
        from: Key,
        message: Message,
        now: Now,
        chance: &mut Chance,
        out: &mut Vec<Action>,
    ) {
        let Some(slice) = message.slice() else { return };
        if !self.slots.contains_key(&slice) {
            if let Message::LeaseAsk { ballot, .. } = message {
                let why = crate::message::Refusal::Stranger;
                out.push(Action::Send { to: from, message: Message::LeaseRefuse { slice, ballot, highest: 0, why } });
            }
            return;
        }
        self.with(view, slice, now, chance, out, |holding, ctx| match message {
            Message::LeaseAsk { epoch, ballot, politeness, .. } => {
                holding.lease_asked(ctx, from, epoch, ballot, politeness);
            }
            Message::LeaseGrant { ballot, accepted, politeness, .. } => {
                holding.lease_granted(ctx, from, ballot, accepted, politeness);
            }
            Message::LeaseRefuse { ballot, highest, why, .. } => holding.lease_refused(ctx, ballot, highest, why),
            Message::LeaseRelease { ballot, politeness, .. } => holding.lease_released(from, ballot, politeness),
            Message::Propose { ballot, holders } => holding.proposed(ctx, from, ballot, &holders),
            Message::Agree { epoch, signature, .. } => holding.agreed(ctx, from, epoch, signature),
            Message::RecoverAsk { holders, bytes } => holding.recovery_asked(ctx, from, &holders, bytes),
            Message::RecoverAgree { epoch, signature, .. } => holding.recovery_agreed(ctx, from, epoch, signature),
            Message::Dismiss { .. } => holding.dismissed(from),
            Message::Hurry { .. } => holding.hurried(from),
            Message::Has { whole, extents, .. } => holding.told(ctx, from, whole, &extents),
            Message::HasAsk { .. } => {
                let extents = holding.inventory().extents().to_vec();
                holding.send_has(ctx, from, &extents, true);
            }
            _ => {}
        });
    }

    fn hashed(
        &mut self,
        view: &mut View,
        job: u64,
        digest: Option<Hash>,
        now: Now,
        chance: &mut Chance,
        out: &mut Vec<Action>,
    ) {
        match self.audits.done(job) {
            Some(Job::Answer(to, id)) => out.push(Action::Send { to, message: Message::Proof { id, digest } }),
            Some(Job::Compare(id)) => {
                if let Some((slice, peer, verdict)) = self.audits.mine(id, digest) {
                    self.with(view, slice, now, chance, out, |holding, ctx| holding.judged(ctx, peer, verdict));
                }
            }
            None => {}
        }
    }

    /// Sums of sealed segments to every other holder of a slice.
    fn sum_up(&mut self, view: &View, now_ms: u64, chance: &mut Chance, out: &mut Vec<Action>) {
        let first = self.summary_ms == 0;
        self.summary_ms = now_ms + self.settings.summary_ms;
        if first {
            self.summary_ms = now_ms + 1 + chance.below(self.settings.summary_ms);
            return;
        }
        let mut to: BTreeMap<Key, Vec<Summary>> = BTreeMap::new();
        for (slice, slot) in &self.slots {
            let (count, sum) = slot.holding.inventory().sum();
            for node in slot.holding.latest().nodes.iter().filter(|node| **node != self.key) {
                to.entry(*node).or_default().push(Summary { slice: *slice, count, sum });
            }
        }
        for (node, summaries) in to {
            if view.roster.index(&node).is_some_and(|index| view.roster.is_present(index)) {
                for part in summaries.chunks(SUMMARIES_MAX) {
                    out.push(Action::Send { to: node, message: Message::Summaries(part.to_vec()) });
                }
            }
        }
    }

    /// Learns how far a peer's clock is from the own one.
    pub(super) fn clock(&mut self, from: Key, wall_ms: u64) {
        if self.clocks.len() >= CLOCKS_MAX && !self.clocks.contains_key(&from) {
            self.clocks.pop_first();
        }
        self.clocks.insert(from, wall_ms as i64 - self.own_wall_ms as i64);
        self.clock_off_ms = self.median_off_ms();
    }

    /// Others still believe an older absence: they have not taken in the newer record.
    pub(super) fn is_misunderstood(&self, fact: &Fact, now: Now) -> bool {
        let absent = matches!(fact, Fact::Absence(proof) if proof.node == self.key);
        absent && !self.left && now.mono_ms >= self.signed_ms + self.settings.ping_ms
    }

    /// What others told about the own key: an absence to refute, or a twin.
    pub(super) fn about_oneself(&mut self, view: &View, fact: &Fact) -> bool {
        let Some(index) = view.roster.index(&self.key) else { return false };
        match fact {
            Fact::Absence(proof) if proof.node == self.key => {
                !self.left && proof.sequence >= view.roster.record(index).record.sequence
            }
            Fact::Record(record) if record.node() == self.key && record.record.sequence > self.record.sequence => {
                self.twins += 1;
                true
            }
            _ => false,
        }
    }

    /// Slices held here that several facts concern.
    pub(super) fn look_at_those_of(&mut self, nodes: &HashSet<Key>, now: Now) {
        for slot in self.slots.values_mut() {
            if nodes.iter().any(|node| slot.holding.concerns(node)) {
                slot.due_ms = slot.due_ms.min(now.mono_ms);
                self.due_floor_ms = self.due_floor_ms.min(slot.due_ms);
            }
        }
    }

    /// The chain of a slice held here, after an epoch.
    pub(super) fn chain_after(&self, slice: Slice, after: Epoch) -> Option<Vec<Arc<SignedHolders>>> {
        self.holding(slice).map(|holding| holding.chain().after(after, CHAIN_KEPT_MAX))
    }

    /// Keeps what survives a restart.
    pub(super) fn keep(kept: Kept, out: &mut Vec<Action>) {
        out.push(Action::Keep(kept));
    }
}

pub(super) fn note(what: What, peer: Option<Key>, why: &'static str) -> Action {
    Action::Note(Note { what, peer, slice: None, why })
}
