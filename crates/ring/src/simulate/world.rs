//! Events in the order of their time. Everything that happens follows from the seed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use super::actor::Actor;
use super::auditor::Auditor;
use super::crawl::{close_all, until_in};
use super::disk::Disk;
use super::plan::Plan;
use super::split::{self, Visits};
use crate::chance::Chance;
use crate::copy::Extent;
use crate::epoch::{Chain, Holders, SignedHolders};
use crate::fact::{Fact, NodeRecord};
use crate::genesis::{Genesis, Slice};
use crate::holding::Holding;
use crate::key::{Hash, Key, SealRef};
use crate::lease::Grantor;
use crate::message::{Ballot, Message, SPEAKS, Speaks};
use crate::node::{Action, Core, Event, Kept, Node, Now, What};
use crate::settings::Settings;
use crate::view::View;

/// When a world begins, by its own clock and by true clocks in it.
pub const BEGIN_MS: u64 = 10_000_000;
const WALL_MS: u64 = 1_800_000_000_000;

/// How a world differs from a perfect one.
#[derive(Clone, Debug)]
pub struct Options {
    /// The seed of everything.
    pub seed: u64,
    /// Times of the machines, and mistakes on purpose.
    pub settings: Settings,
    /// Messages lost.
    pub loss: f64,
    /// A message takes at least this long, in milliseconds …
    pub delay_ms: u64,
    /// … and up to so much longer.
    pub jitter_ms: u64,
    /// A crash in the middle of what a machine wants done, per event handled.
    pub torn: f64,
    /// Clocks run so many parts per million fast or slow at most.
    pub drift_ppm: i64,
    /// Whether every message goes through its encoding.
    pub encode: bool,
    /// Every slice whose number this divides is crawled; none if it is zero.
    pub crawl_every: u32,
    /// Bytes per second that a node gives to copying.
    pub copy_bytes_per_s: u64,
    /// What the nodes speak in the beginning.
    pub protocol: Speaks,
    /// One site is split by so many bits; none if it is zero.
    pub split_bits: u8,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            seed: 1,
            settings: Settings::default(),
            loss: 0.01,
            delay_ms: 10,
            jitter_ms: 150,
            torn: 0.0,
            drift_ppm: 20_000,
            encode: false,
            crawl_every: 1,
            copy_bytes_per_s: 1_250_000,
            protocol: SPEAKS,
            split_bits: 0,
        }
    }
}

/// One machine with its disk and its clocks.
pub struct Sim {
    /// The machine, while it runs.
    pub core: Option<Core>,
    /// What it knows, unless all share one view.
    pub view: Option<View>,
    /// Its seal.
    pub seal: SealRef,
    /// What it says of itself.
    pub record: NodeRecord,
    /// What is on its disk.
    pub disk: Disk,
    /// Facts that it kept; a start begins with them.
    pub(super) facts: Vec<Fact>,
    /// How it behaves.
    pub actor: Actor,
    /// Will not come back, and its disk is lost.
    pub dead: Option<u64>,
    pub(super) links: BTreeMap<Slice, Vec<Arc<SignedHolders>>>,
    promises: BTreeMap<Slice, (Ballot, Option<(Ballot, Holders)>)>,
    tick_ms: u64,
    pub(super) life: u32,
    started_ms: u64,
    pub(super) rate_ppm: i64,
    /// Its wall clock is off by so much.
    pub off_ms: i64,
    pub(super) writing: BTreeMap<Slice, (u32, u64)>,
    pub(super) next_number: u32,
    pub(super) busy_ms: u64,
    pub(super) leading: BTreeSet<Slice>,
    /// Until when sites of slices that it led want to be left alone, in true time.
    pub(super) parked: BTreeMap<Slice, u64>,
    /// What its last request for a lease said of that.
    pub(super) asked: BTreeMap<Slice, u64>,
    /// What it knows of the site that is split.
    pub(super) large: Visits,
}

pub(super) enum Happening {
    Tick { node: usize, life: u32 },
    Deliver { to: usize, from: usize, message: Message },
    Tell { to: usize, life: u32, event: Box<Event> },
    Visit { node: usize, life: u32, slice: Slice },
    VisitLarge { node: usize, life: u32 },
    Mischief { node: usize },
    Planned(Plan),
}

/// Counts and sums.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Events handled.
    pub events: u64,
    /// Messages sent.
    pub messages: u64,
    /// Frames that whoever heard them could not read.
    pub unreadable: u64,
    /// Notes of each kind.
    pub notes: BTreeMap<What, u64>,
    /// Bytes copied.
    pub copied_bytes: u64,
    /// From the moment a node fell silent to when its absence was proven, in milliseconds.
    pub noticed_ms: Vec<u64>,
    /// The same to when each of the others had heard of it; only where nodes have views of their own.
    pub heard_ms: Vec<u64>,
    /// From the loss of a copy to its replacement, in milliseconds.
    pub repaired_ms: Vec<u64>,
    /// Slices of which no copy is left.
    pub lost: u64,
    /// Copies deleted.
    pub deleted: u64,
}

/// Many machines.
pub struct World {
    /// How it was made.
    pub options: Options,
    /// All machines, by number.
    pub nodes: Vec<Sim>,
    /// The view that all share, in large worlds.
    pub shared: Option<View>,
    /// What must hold.
    pub auditor: Auditor,
    /// What came of it.
    pub figures: Figures,
    /// The true time.
    pub now_ms: u64,
    /// Chance.
    pub chance: Chance,
    pub(super) genesis: Arc<Genesis>,
    /// When, the how many-th, and where in `waiting`.
    queue: BinaryHeap<Reverse<(u64, u64, u32)>>,
    waiting: Vec<Option<Happening>>,
    free: Vec<u32>,
    next: u64,
    pub(super) of_key: HashMap<Key, usize>,
    pub(super) part: Vec<u8>,
    pub(super) cut: HashSet<(usize, usize)>,
    replayed: VecDeque<(usize, Message)>,
    /// When copies of slices were lost, and whose: for the time that repair takes.
    pub(super) missing: BTreeMap<(Slice, Key), u64>,
    /// Since when nodes are silent, and who has heard that they are absent.
    silent_ms: HashMap<Key, (u64, HashSet<usize>)>,
}

impl World {
    /// An empty world.
    pub fn new(options: Options, genesis: Arc<Genesis>) -> World {
        World {
            chance: Chance::new(options.seed),
            options,
            nodes: Vec::new(),
            shared: None,
            auditor: Auditor::default(),
            figures: Figures::default(),
            now_ms: BEGIN_MS,
            genesis,
            queue: BinaryHeap::new(),
            waiting: Vec::new(),
            free: Vec::new(),
            next: 0,
            of_key: HashMap::new(),
            part: Vec::new(),
            cut: HashSet::new(),
            replayed: VecDeque::new(),
            missing: BTreeMap::new(),
            silent_ms: HashMap::new(),
        }
    }

    /// The wall clock of a machine whose clock is right.
    pub fn wall_ms(&self) -> u64 {
        WALL_MS + self.now_ms
    }

    /// One machine more, which knows these facts; it does not run yet.
    pub fn add(&mut self, seal: SealRef, record: NodeRecord, facts: Vec<Fact>, actor: Actor) -> usize {
        let node = self.nodes.len();
        self.of_key.insert(seal.key(), node);
        let drift = self.options.drift_ppm;
        let rate_ppm = 1_000_000 - drift + self.chance.below(2 * drift as u64 + 1) as i64;
        self.nodes.push(Sim {
            core: None,
            view: None,
            seal,
            record,
            disk: Disk::default(),
            facts,
            actor,
            dead: None,
            links: BTreeMap::new(),
            promises: BTreeMap::new(),
            tick_ms: u64::MAX,
            life: 0,
            started_ms: 0,
            rate_ppm,
            off_ms: 0,
            writing: BTreeMap::new(),
            next_number: 1,
            busy_ms: 0,
            leading: BTreeSet::new(),
            parked: BTreeMap::new(),
            asked: BTreeMap::new(),
            large: Visits::default(),
        });
        self.part.push(0);
        node
    }

    /// The number of a machine.
    pub fn number(&self, key: &Key) -> Option<usize> {
        self.of_key.get(key).copied()
    }

    /// Gives a machine a slice at the beginning.
    pub fn give(&mut self, node: usize, link: &Arc<SignedHolders>, extents: &[Extent]) {
        let slice = link.holders.slice;
        self.nodes[node].links.insert(slice, vec![link.clone()]);
        for extent in extents {
            self.nodes[node].disk.put(slice, *extent, false);
        }
        self.auditor.held.entry(slice).or_default().insert(node);
        self.auditor.epoch(slice, link.holders.epoch, self.now_ms);
    }

    /// Starts a machine, for the first time or again, from what is on its disk.
    pub fn start(&mut self, node: usize) {
        self.start_with(node, None);
    }

    /// The same, in full knowledge of everybody: how a world begins.
    pub fn start_with(&mut self, node: usize, view: Option<View>) {
        if self.nodes[node].dead.is_some() || self.nodes[node].core.is_some() {
            return;
        }
        let sim = &mut self.nodes[node];
        sim.life += 1;
        sim.started_ms = self.now_ms;
        // After any restart a writer closes what it was writing, and begins anew.
        close_all(sim);
        sim.leading.clear();
        sim.tick_ms = u64::MAX;
        let (life, key) = (sim.life, sim.seal.key());
        self.silent_ms.remove(&key);
        if self.shared.is_some() {
            self.start_core(node);
        } else {
            self.start_node(node, view);
        }
        let at = self.now_ms + 1 + self.chance.below(1000);
        self.nodes[node].tick_ms = at;
        self.at(at, Happening::Tick { node, life });
        if self.nodes[node].actor != Actor::Honest {
            self.at(at, Happening::Mischief { node });
        }
    }

    /// As a real node starts: from what it kept; then it is told what is in its archive.
    fn start_node(&mut self, node: usize, view: Option<View>) {
        let now = self.clock(node);
        let sim = &mut self.nodes[node];
        let facts = sim.facts.iter().filter(|_| view.is_none()).cloned().map(Kept::Fact);
        let links = sim.links.values().flatten().cloned().map(Kept::Epoch);
        let promises = sim.promises.iter().map(|(slice, (ballot, accepted))| Kept::Promise {
            slice: *slice,
            ballot: *ballot,
            accepted: accepted.clone(),
        });
        let kept = facts.chain(links).chain(promises).collect();
        let (seal, record) = (sim.seal.clone(), sim.record.clone());
        let made = Node::new(self.genesis.clone(), seal, record, self.options.settings.clone(), kept, now);
        let view = view.unwrap_or(made.view);
        // What newer facts replaced need not be kept on. Records first: an absence says nothing about a node that is not known.
        let (records, others): (Vec<Fact>, Vec<Fact>) =
            view.roster.facts().map(|(_, fact)| fact).partition(|fact| matches!(fact, Fact::Record(_)));
        sim.facts = records;
        sim.facts.extend(others);
        (sim.core, sim.view) = (Some(made.core), Some(view));
        let slices: Vec<Slice> = sim.links.keys().copied().collect();
        for slice in slices {
            let extents: Vec<Extent> = self.nodes[node].disk.slice(slice).map(|blob| blob.extent).collect();
            for extent in extents {
                self.handle(node, Event::Grown { slice, extent });
            }
            let wanted = self.is_crawled(slice);
            self.handle(node, Event::Wanted { slice, wanted });
        }
    }

    /// In a world that shares one view only the machine itself begins anew.
    fn start_core(&mut self, node: usize) {
        let now = self.clock(node);
        let sim = &self.nodes[node];
        let mut core = Core::new(sim.seal.clone(), sim.record.clone(), self.options.settings.clone());
        for (slice, links) in &sim.links {
            let Some(chain) = Chain::restore(links.clone()) else { continue };
            let mut holding = Holding::new(chain);
            sim.disk.slice(*slice).for_each(|blob| holding.stock(blob.extent));
            holding.want(self.is_crawled(*slice));
            core.adopt(holding);
            if let Some((ballot, accepted)) = sim.promises.get(slice) {
                let grantor = Grantor::restored(*ballot, accepted.clone(), now.mono_ms, &self.options.settings);
                core.restore(*slice, grantor);
            }
        }
        self.nodes[node].core = Some(core);
    }

    pub(super) fn is_crawled(&self, slice: Slice) -> bool {
        slice.checked_rem(self.options.crawl_every) == Some(0)
    }

    /// Stops a machine; what was not kept is forgotten.
    pub fn crash(&mut self, node: usize) {
        let sim = &mut self.nodes[node];
        if sim.core.take().is_some() {
            sim.leading.clear();
            (sim.parked, sim.asked, sim.large) = (BTreeMap::new(), BTreeMap::new(), Visits::default());
            sim.view = None;
            let key = sim.seal.key();
            self.silent_ms.insert(key, (self.now_ms, HashSet::new()));
            // What a holder was told of sites does not outlive it; what its own lease told does, at those who granted it.
            self.auditor.confirmed.retain(|slice, confirmed| {
                confirmed.by == node || !self.auditor.held.get(slice).is_some_and(|held| held.contains(&node))
            });
        }
    }

    /// Plans something, so many milliseconds from now.
    pub fn plan(&mut self, after_ms: u64, plan: Plan) {
        self.at(self.now_ms + after_ms, Happening::Planned(plan));
    }

    pub(super) fn at(&mut self, at_ms: u64, happening: Happening) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.waiting.push(None);
            self.waiting.len() as u32 - 1
        });
        self.waiting[place as usize] = Some(happening);
        self.next += 1;
        self.queue.push(Reverse((at_ms, self.next, place)));
    }

    /// Lets so much time pass.
    pub fn run(&mut self, ms: u64) {
        let end = self.now_ms + ms;
        while let Some(Reverse((at_ms, _, place))) = self.queue.peek().copied() {
            if at_ms > end {
                break;
            }
            self.queue.pop();
            self.now_ms = self.now_ms.max(at_ms);
            self.free.push(place);
            if let Some(happening) = self.waiting[place as usize].take() {
                self.happen(at_ms, happening);
            }
        }
        self.now_ms = end;
    }

    fn happen(&mut self, at_ms: u64, happening: Happening) {
        match happening {
            Happening::Tick { node, life } => {
                let sim = &self.nodes[node];
                if sim.life == life && sim.tick_ms == at_ms {
                    self.nodes[node].tick_ms = u64::MAX;
                    self.handle(node, Event::Tick);
                }
            }
            Happening::Deliver { to, from, message } => {
                let sim = &self.nodes[to];
                if sim.core.is_none() || sim.actor.ignores(&message) {
                    return;
                }
                if let Some(retort) = sim.actor.retort(&message, sim.seal.as_ref()) {
                    self.send(to, from, retort);
                }
                if self.nodes[to].actor == Actor::Replays && self.chance.happens(0.01) {
                    self.replayed.push_back((to, message.clone()));
                    self.replayed.truncate(64);
                }
                let from = self.nodes[from].seal.key();
                let adopted = match &message {
                    Message::Adopt { epoch, .. } => Some(epoch.holders.slice),
                    _ => None,
                };
                let new = adopted.filter(|slice| self.nodes[to].core.as_ref().is_some_and(|core| !core.has(*slice)));
                self.handle(to, Event::Received { from, message });
                // A slice that comes is told what the disk has of it: a crash may have come between a promise to delete and the deed.
                let left: Vec<(Slice, Extent)> = new
                    .into_iter()
                    .flat_map(|slice| self.nodes[to].disk.slice(slice).map(move |blob| (slice, blob.extent)))
                    .collect();
                for (slice, extent) in left {
                    self.handle(to, Event::Grown { slice, extent });
                }
            }
            Happening::Tell { to, life, event } => {
                if self.nodes[to].life == life {
                    self.told(to, *event);
                }
            }
            Happening::Visit { node, life, slice } => {
                if self.nodes[node].life == life {
                    self.visit(node, slice);
                }
            }
            Happening::VisitLarge { node, life } => {
                if self.nodes[node].life == life {
                    self.visit_large(node);
                }
            }
            Happening::Mischief { node } => self.mischief(node),
            Happening::Planned(plan) => self.do_plan(plan),
        }
    }

    /// What a machine's clocks show.
    pub(super) fn clock(&self, node: usize) -> Now {
        let sim = &self.nodes[node];
        let mono_ms = (self.now_ms as i128 * i128::from(sim.rate_ppm) / 1_000_000) as u64;
        Now { mono_ms, wall_ms: (self.wall_ms() as i64 + sim.off_ms) as u64 }
    }

    /// Lets a machine handle an event, and does what it wants done.
    pub fn handle(&mut self, node: usize, event: Event) {
        let now = self.clock(node);
        let sim = &mut self.nodes[node];
        let (Some(core), Some(view)) = (sim.core.as_mut(), sim.view.as_mut().or(self.shared.as_mut())) else { return };
        self.figures.events += 1;
        let mut actions = Vec::new();
        core.handle(view, event, now, &mut self.chance, &mut actions);
        if self.options.torn > 0.0 && self.chance.happens(self.options.torn) {
            // The machine dies in the middle of it, and comes back.
            let done = self.chance.below(actions.len() as u64 + 1) as usize;
            actions.truncate(done);
            self.act(node, actions);
            self.crash(node);
            let after = 1000 + self.chance.below(120_000);
            self.plan(after, Plan::Restart(node));
            return;
        }
        self.act(node, actions);
        let sim = &self.nodes[node];
        let Some(core) = sim.core.as_ref() else { return };
        let due_ms = core.due_ms();
        if due_ms == u64::MAX {
            return;
        }
        let at = ((due_ms as i128 * 1_000_000 / i128::from(sim.rate_ppm)) as u64 + 1).max(self.now_ms + 1);
        if at < sim.tick_ms {
            let life = sim.life;
            self.nodes[node].tick_ms = at;
            self.at(at, Happening::Tick { node, life });
        }
    }

    fn act(&mut self, node: usize, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Keep(kept) => self.keep(node, kept),
                Action::Send { to, message } => {
                    if let Message::LeaseAsk { slice, politeness, .. } = &message {
                        // Who has not begun has nothing to say.
                        let asked = &mut self.nodes[node].asked;
                        match politeness.is_empty() {
                            true => drop(asked.remove(slice)),
                            false => drop(asked.insert(*slice, until_in(politeness))),
                        }
                    }
                    if let (Some(to), Some(message)) =
                        (self.of_key.get(&to).copied(), self.nodes[node].actor.bend(message))
                    {
                        self.send(node, to, message);
                    }
                }
                Action::Pull { slice, from, extent, have } => self.pull(node, slice, from, extent, have),
                Action::Hash { job, slice, key, ranges } => {
                    let sim = &self.nodes[node];
                    let digest = match sim.actor {
                        Actor::Claims => Some(Hash::of("made up", &job.to_be_bytes())),
                        _ => sim.disk.hash(slice, &key, &ranges),
                    };
                    self.tell(node, 5, Event::Hashed { job, digest });
                }
                Action::Lead { slice, epoch, politeness, .. } => {
                    self.check_leaders(node, slice);
                    self.auditor_hears(node, slice, epoch, politeness.is_none());
                    if let Some(politeness) = politeness {
                        self.begin_visits(node, slice, &politeness);
                        self.look_at_places(node, slice);
                    }
                }
                Action::Stop { slice } => {
                    self.end_visits(node, slice);
                    self.look_at_places(node, slice);
                }
                Action::Visit { site, politeness, .. } if site == split::SITE => self.begin_large(node, &politeness),
                Action::Visit { .. } => {}
                Action::Heed { politeness, .. } => {
                    let large = &mut self.nodes[node].large;
                    large.heed(until_in(&politeness));
                }
                Action::Acknowledged { slice, segment, bytes } => self.acknowledged(node, slice, segment, bytes),
                Action::Seal { slice } => self.seal(node, slice),
                Action::Delete { slice } => self.delete(node, slice),
                Action::Left => self.plan(120_000, Plan::Crash(node)),
                Action::Note(note) => *self.figures.notes.entry(note.what).or_default() += 1,
            }
        }
    }

    pub(super) fn tell(&mut self, node: usize, after_ms: u64, event: Event) {
        let life = self.nodes[node].life;
        self.at(self.now_ms + after_ms, Happening::Tell { to: node, life, event: Box::new(event) });
    }

    fn keep(&mut self, node: usize, kept: Kept) {
        match kept {
            Kept::Fact(fact) => {
                if let Fact::Absence(proof) = &fact
                    && let Some((since, heard)) = self.silent_ms.get_mut(&proof.node)
                    && heard.insert(node)
                {
                    if heard.len() == 1 {
                        self.figures.noticed_ms.push(self.now_ms - *since);
                    }
                    // Who came later hears it with everything else.
                    if self.shared.is_none() && self.nodes[node].started_ms <= *since {
                        self.figures.heard_ms.push(self.now_ms - *since);
                    }
                }
                if self.shared.is_none() {
                    self.nodes[node].facts.push(fact);
                }
            }
            Kept::Epoch(link) => {
                let slice = link.holders.slice;
                let (epoch, nodes) = (link.holders.epoch, link.holders.nodes.clone());
                if self.auditor.epochs.get(&slice).is_none_or(|known| known.0 < epoch) {
                    let repaired: Vec<(Slice, Key)> = self
                        .missing
                        .range((slice, Key([0; 32]))..=(slice, Key([255; 32])))
                        .map(|(key, _)| *key)
                        .filter(|(_, key)| !nodes.contains(key))
                        .collect();
                    for key in repaired {
                        if let Some(since) = self.missing.remove(&key) {
                            self.figures.repaired_ms.push(self.now_ms - since);
                        }
                    }
                }
                if self.nodes[node].actor == Actor::Honest {
                    self.auditor.epoch(slice, epoch, self.now_ms);
                }
                self.nodes[node].links.entry(slice).or_default().push(link);
                if nodes.contains(&self.nodes[node].seal.key()) {
                    let wanted = self.is_crawled(slice);
                    self.tell(node, 50, Event::Wanted { slice, wanted });
                }
            }
            Kept::Promise { slice, ballot, accepted } => {
                self.nodes[node].promises.insert(slice, (ballot, accepted));
            }
            Kept::Dropped { slice } => {
                self.nodes[node].links.remove(&slice);
                self.nodes[node].promises.remove(&slice);
            }
        }
    }

    /// The view of a machine that runs.
    pub fn view_of(&self, node: usize) -> &View {
        self.nodes[node].view.as_ref().or(self.shared.as_ref()).expect("own or shared")
    }

    /// The view that all share, or that of the first machine that runs.
    pub fn any_view(&self) -> Option<&View> {
        self.shared.as_ref().or_else(|| self.nodes.iter().find_map(|sim| sim.view.as_ref()))
    }

    fn mischief(&mut self, node: usize) {
        if self.nodes[node].core.is_none() {
            return;
        }
        let wall_ms = self.clock(node).wall_ms;
        let sim = &self.nodes[node];
        let Some(view) = sim.view.as_ref().or(self.shared.as_ref()) else { return };
        let said = sim.actor.mischief(sim.seal.as_ref(), view, wall_ms, &mut self.chance);
        for (to, message) in said {
            if let Some(to) = self.of_key.get(&to).copied() {
                self.send(node, to, message);
            }
        }
        if self.nodes[node].actor == Actor::Replays
            && let Some((_, message)) = self.replayed.pop_front()
        {
            for _ in 0..8 {
                let to = self.chance.below(self.nodes.len() as u64) as usize;
                self.send(node, to, message.clone());
            }
        }
        // In runs of days liars have more patience, or most of what is simulated would be their noise.
        let pause = if self.shared.is_some() { 240 * 20_000 } else { 20_000 };
        let after = pause + self.chance.below(pause);
        self.at(self.now_ms + after, Happening::Mischief { node });
    }
}
