//! Events in the order of their time. Everything that happens follows from the seed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use super::actor::Actor;
use super::auditor::{Auditor, Rule};
use super::disk::Disk;
use crate::chance::Chance;
use crate::copy::{Extent, Segment};
use crate::epoch::{Chain, SignedHolders};
use crate::genesis::{Slice, majority};
use crate::holding::Holding;
use crate::key::{Hash, Key, SealRef};
use crate::lease::Grantor;
use crate::message::{self, Ballot, Message};
use crate::node::{Action, Core, Event, Kept, Now, PullFault, What};
use crate::roster::Index;
use crate::settings::Settings;
use crate::view::View;

/// When a world begins, by its own clock and by true clocks in it.
pub const BEGIN_MS: u64 = 10_000_000;
const WALL_MS: u64 = 1_800_000_000_000;
/// Between two visits to the site of a slice.
pub const GAP_MS: u64 = 20_000;
/// A visit brings so many bytes.
const VISIT_BYTES: u64 = 50_000;
/// Visits after which a segment is sealed.
const SEAL_VISITS: u64 = 40;

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
    /// Whether slices are crawled.
    pub crawl: bool,
    /// Bytes per second that a node gives to copying.
    pub copy_bytes_per_s: u64,
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
            crawl: true,
            copy_bytes_per_s: 1_250_000,
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
    pub record: crate::fact::NodeRecord,
    /// What is on its disk.
    pub disk: Disk,
    /// How it behaves.
    pub actor: Actor,
    /// Will not come back, and its disk is lost.
    pub dead: Option<u64>,
    links: BTreeMap<Slice, Vec<Arc<SignedHolders>>>,
    promises: BTreeMap<Slice, (Ballot, Option<(Ballot, crate::epoch::Holders)>)>,
    tick_ms: u64,
    life: u32,
    rate_ppm: i64,
    /// Its wall clock is off by so much.
    pub off_ms: i64,
    writing: BTreeMap<Slice, (u32, u64)>,
    next_number: u32,
    busy_ms: u64,
    leading: BTreeSet<Slice>,
}

enum Happening {
    Tick { node: usize, life: u32 },
    Deliver { to: usize, from: usize, message: Message },
    Tell { to: usize, life: u32, event: Box<Event> },
    Visit { node: usize, life: u32, slice: Slice },
    Mischief { node: usize },
    Planned(Plan),
}

/// What a scenario has in store.
#[derive(Clone, Debug)]
pub enum Plan {
    /// A machine stops; its disk stays.
    Crash(usize),
    /// It starts again.
    Restart(usize),
    /// It is lost with its disk.
    Lose(usize),
    /// A node joins: one that was made but is not known yet.
    Join(usize),
    /// A node wants to leave.
    Leave(usize),
    /// The network falls into parts: nodes of different numbers do not reach each other.
    Split(Vec<u8>),
    /// One direction between two nodes is cut.
    OneWay(usize, usize),
    /// All cuts are gone.
    Heal,
    /// A bit flips in some sealed segment of a node.
    Flip(usize),
    /// Rosters of all nodes that are there must be equal now.
    CompareRosters,
    /// In a world that shares one view: the watchers of a node find it silent.
    Notice(usize),
    /// Everything acknowledged is looked for.
    CheckLosses,
}

/// Counts and sums.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Events handled.
    pub events: u64,
    /// Messages sent.
    pub messages: u64,
    /// Notes of each kind.
    pub notes: BTreeMap<What, u64>,
    /// Bytes copied.
    pub copied_bytes: u64,
    /// From the moment a node fell silent to when its absence was known, in milliseconds.
    pub noticed_ms: Vec<u64>,
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
    queue: BinaryHeap<Reverse<(u64, u64)>>,
    waiting: HashMap<u64, Happening>,
    next: u64,
    of_key: HashMap<Key, usize>,
    part: Vec<u8>,
    cut: HashSet<(usize, usize)>,
    replayed: VecDeque<(usize, Message)>,
    /// When copies of slices were lost, and whose: for the time that repair takes.
    missing: BTreeMap<(Slice, Key), u64>,
    silent_ms: HashMap<Key, u64>,
}

impl World {
    /// An empty world.
    pub fn new(options: Options, shared: Option<View>) -> World {
        World {
            chance: Chance::new(options.seed),
            options,
            nodes: Vec::new(),
            shared,
            auditor: Auditor::default(),
            figures: Figures::default(),
            now_ms: BEGIN_MS,
            queue: BinaryHeap::new(),
            waiting: HashMap::new(),
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

    /// One machine more; it does not run yet.
    pub fn add(&mut self, seal: SealRef, record: crate::fact::NodeRecord, view: Option<View>, actor: Actor) -> usize {
        let node = self.nodes.len();
        self.of_key.insert(seal.key(), node);
        let drift = self.options.drift_ppm;
        let rate_ppm = 1_000_000 - drift + self.chance.below(2 * drift as u64 + 1) as i64;
        self.nodes.push(Sim {
            core: None,
            view,
            seal,
            record,
            disk: Disk::default(),
            actor,
            dead: None,
            links: BTreeMap::new(),
            promises: BTreeMap::new(),
            tick_ms: u64::MAX,
            life: 0,
            rate_ppm,
            off_ms: 0,
            writing: BTreeMap::new(),
            next_number: 1,
            busy_ms: 0,
            leading: BTreeSet::new(),
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
        let now = self.clock(node);
        let sim = &mut self.nodes[node];
        if sim.dead.is_some() || sim.core.is_some() {
            return;
        }
        sim.life += 1;
        let mut core = Core::new(sim.seal.clone(), sim.record.clone(), self.options.settings.clone());
        for (slice, links) in &sim.links {
            let Some(chain) = Chain::restore(links.clone()) else { continue };
            let mut holding = Holding::new(chain);
            sim.disk.slice(*slice).for_each(|blob| holding.stock(blob.extent));
            holding.want(self.options.crawl);
            core.adopt(holding);
            if let Some((ballot, accepted)) = sim.promises.get(slice) {
                let grantor = Grantor::restored(*ballot, accepted.clone(), now.mono_ms, &self.options.settings);
                core.restore(*slice, grantor);
            }
        }
        // A writer begins a new segment after any restart.
        sim.writing.clear();
        sim.leading.clear();
        sim.core = Some(core);
        sim.tick_ms = u64::MAX;
        let (life, key) = (sim.life, sim.seal.key());
        self.silent_ms.remove(&key);
        let at = self.now_ms + 1 + self.chance.below(1000);
        self.nodes[node].tick_ms = at;
        self.at(at, Happening::Tick { node, life });
        if self.nodes[node].actor != Actor::Honest {
            self.at(at, Happening::Mischief { node });
        }
    }

    /// Stops a machine; what was not kept is forgotten.
    pub fn crash(&mut self, node: usize) {
        let sim = &mut self.nodes[node];
        if sim.core.take().is_some() {
            sim.leading.clear();
            let key = sim.seal.key();
            self.silent_ms.insert(key, self.now_ms);
        }
    }

    /// Plans something, so many milliseconds from now.
    pub fn plan(&mut self, after_ms: u64, plan: Plan) {
        self.at(self.now_ms + after_ms, Happening::Planned(plan));
    }

    fn at(&mut self, at_ms: u64, happening: Happening) {
        self.next += 1;
        self.queue.push(Reverse((at_ms, self.next)));
        self.waiting.insert(self.next, happening);
    }

    /// Lets so much time pass.
    pub fn run(&mut self, ms: u64) {
        let end = self.now_ms + ms;
        while let Some(Reverse((at_ms, number))) = self.queue.peek().copied() {
            if at_ms > end {
                break;
            }
            self.queue.pop();
            self.now_ms = self.now_ms.max(at_ms);
            if let Some(happening) = self.waiting.remove(&number) {
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
                self.handle(to, Event::Received { from, message });
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
            Happening::Mischief { node } => self.mischief(node),
            Happening::Planned(plan) => self.do_plan(plan),
        }
    }

    /// What a machine's clocks show.
    fn clock(&self, node: usize) -> Now {
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
                Action::Lead { slice, politeness, .. } => {
                    self.check_leaders(node, slice);
                    if politeness.is_some() && self.nodes[node].leading.insert(slice) {
                        let (life, at) = (self.nodes[node].life, self.own_gap(node));
                        self.at(self.now_ms + at, Happening::Visit { node, life, slice });
                    }
                }
                Action::Stop { .. } => {}
                Action::Acknowledged { slice, segment, bytes } => self.acknowledged(node, slice, segment, bytes),
                Action::Delete { slice } => self.delete(node, slice),
                Action::Follow { .. } => {}
                Action::Left => self.plan(120_000, Plan::Crash(node)),
                Action::Note(note) => *self.figures.notes.entry(note.what).or_default() += 1,
            }
        }
    }

    fn tell(&mut self, node: usize, after_ms: u64, event: Event) {
        let life = self.nodes[node].life;
        self.at(self.now_ms + after_ms, Happening::Tell { to: node, life, event: Box::new(event) });
    }

    fn keep(&mut self, node: usize, kept: Kept) {
        match kept {
            Kept::Fact(crate::fact::Fact::Absence(proof)) => {
                if let Some(since) = self.silent_ms.remove(&proof.node) {
                    self.figures.noticed_ms.push(self.now_ms - since);
                }
            }
            Kept::Fact(_) => {}
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

    fn reaches(&self, from: usize, to: usize) -> bool {
        self.part[from] == self.part[to] && !self.cut.contains(&(from, to))
    }

    fn send(&mut self, from: usize, to: usize, message: Message) {
        self.figures.messages += 1;
        if !self.reaches(from, to) || self.chance.happens(self.options.loss) {
            return;
        }
        let messages = if self.options.encode {
            let frame = message::encode(std::slice::from_ref(&message));
            message::decode(&frame).expect("what nodes say is readable")
        } else {
            vec![message]
        };
        let delay = self.options.delay_ms + self.chance.below(self.options.jitter_ms + 1);
        for message in messages {
            self.at(self.now_ms + delay, Happening::Deliver { to, from, message });
        }
    }

    /// A copy takes its time; who claims without storing is quick.
    fn pull(&mut self, node: usize, slice: Slice, from: Key, extent: Extent, have: u64) {
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
    fn told(&mut self, node: usize, event: Event) {
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

    // --- crawling -------------------------------------------------------------------------------------------------------

    fn own_gap(&self, node: usize) -> u64 {
        GAP_MS * 1_000_000 / self.nodes[node].rate_ppm as u64
    }

    /// One visit to the site of a slice, if the lease allows it: the gate that every leader asks before it fetches.
    fn visit(&mut self, node: usize, slice: Slice) {
        let now = self.clock(node);
        let leads = self.nodes[node].core.as_ref().and_then(|core| core.leads(slice, now.mono_ms));
        let Some((epoch, _)) = leads else {
            self.nodes[node].leading.remove(&slice);
            return;
        };
        let life = self.nodes[node].life;
        self.at(self.now_ms + self.own_gap(node), Happening::Visit { node, life, slice });
        if self.nodes[node].actor != Actor::Honest {
            return;
        }
        self.auditor.visit(slice, node, self.now_ms, GAP_MS);
        self.check_leaders(node, slice);
        if let Some((newest, since)) = self.auditor.epochs.get(&slice).copied()
            && epoch < newest
            && self.now_ms - since > self.options.settings.refuse_ms() * 5 / 4
        {
            let what =
                format!("node {node} leads in {epoch}, and {newest} began {} s ago", (self.now_ms - since) / 1000);
            self.auditor.broke(Rule::OldEpoch, self.now_ms, slice, what);
        }
        let sim = &mut self.nodes[node];
        let writer = Hash::of("writer", &sim.seal.key().0).number() as u32;
        let next = sim.next_number;
        let (number, visits) = sim.writing.entry(slice).or_insert((next, 0));
        if *visits == 0 {
            sim.next_number += 1;
        }
        *visits += 1;
        let segment = Segment { writer, number: *number, half: 0, generation: 0 };
        let bytes = *visits * VISIT_BYTES;
        let sealed = *visits >= SEAL_VISITS;
        let seal =
            sealed.then(|| Hash::of("sealed", &[u64::from(writer), u64::from(*number)].map(u64::to_be_bytes).concat()));
        if sealed {
            sim.writing.remove(&slice);
        }
        let extent = Extent { segment, bytes, seal };
        sim.disk.put(slice, extent, false);
        self.auditor.held.entry(slice).or_default().insert(node);
        self.tell(node, 50, Event::Grown { slice, extent });
    }

    /// At most one honest node leads.
    fn check_leaders(&mut self, node: usize, slice: Slice) {
        if self.nodes[node].actor != Actor::Honest {
            return;
        }
        let holders: Vec<usize> =
            self.auditor.held.get(&slice).into_iter().flatten().copied().filter(|other| *other != node).collect();
        for other in holders {
            let now = self.clock(other);
            let sim = &self.nodes[other];
            let leads = sim.core.as_ref().and_then(|core| core.leads(slice, now.mono_ms));
            if sim.actor == Actor::Honest && leads.is_some() {
                let what = format!("nodes {node} and {other}");
                self.auditor.broke(Rule::OneLease, self.now_ms, slice, what);
            }
        }
    }

    fn acknowledged(&mut self, node: usize, slice: Slice, segment: Segment, bytes: u64) {
        if self.nodes[node].actor != Actor::Honest {
            return;
        }
        let holders = match self.nodes[node].core.as_ref().and_then(|core| core.holding(slice)) {
            Some(holding) => holding.latest().nodes.clone(),
            None => return,
        };
        let has = |key: &Key| {
            self.of_key.get(key).is_some_and(|holder| {
                let sim = &self.nodes[*holder];
                sim.actor != Actor::Honest || sim.dead.is_some() || sim.disk.holds(slice, &segment, bytes)
            })
        };
        let count = holders.iter().filter(|key| has(key)).count();
        if count < majority(holders.len()) {
            let what = format!("{segment:?} up to {bytes} is at {count} of {}", holders.len());
            self.auditor.broke(Rule::Majority, self.now_ms, slice, what);
        }
        let known = self.auditor.acknowledged.entry((slice, segment)).or_default();
        *known = (*known).max(bytes);
    }

    fn delete(&mut self, node: usize, slice: Slice) {
        self.figures.deleted += 1;
        let copies = usize::from(self.view_of(node).roster.genesis().copies);
        let held: Vec<Extent> =
            self.nodes[node].disk.slice(slice).filter(|blob| !blob.altered).map(|blob| blob.extent).collect();
        let others: Vec<usize> =
            self.auditor.held.get(&slice).into_iter().flatten().copied().filter(|other| *other != node).collect();
        if self.nodes[node].actor == Actor::Honest {
            for extent in held {
                self.auditor.let_go.entry((slice, extent.segment)).or_default().push(node);
                let holds = |other: &&usize| {
                    let sim = &self.nodes[**other];
                    // Who died a moment ago had proven its copy, and nobody can know yet.
                    let rotten = self.auditor.rotten.get(&(**other, slice, extent.segment));
                    let lately = [sim.dead, rotten.copied()].into_iter().flatten().any(|at| self.now_ms - at < 900_000);
                    lately || sim.disk.holds(slice, &extent.segment, extent.bytes)
                };
                let count = others.iter().filter(holds).count();
                if count < copies {
                    let what = format!("node {node} deletes what {count} others hold");
                    self.auditor.broke(Rule::Deleted, self.now_ms, slice, what);
                }
            }
        }
        self.nodes[node].disk.delete(slice);
    }

    /// The view of a machine.
    pub fn view_of(&self, node: usize) -> &View {
        self.nodes[node].view.as_ref().or(self.shared.as_ref()).expect("own or shared")
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
        let after = 20_000 + self.chance.below(20_000);
        self.at(self.now_ms + after, Happening::Mischief { node });
    }

    // --- what a scenario does -------------------------------------------------------------------------------------------

    fn do_plan(&mut self, plan: Plan) {
        match plan {
            Plan::Crash(node) => self.crash(node),
            Plan::Restart(node) => self.start(node),
            Plan::Lose(node) => self.lose(node),
            Plan::Join(node) => self.join(node),
            Plan::Leave(node) => self.handle(node, Event::Leave),
            Plan::Split(part) => self.part = part,
            Plan::OneWay(from, to) => {
                self.cut.insert((from, to));
            }
            Plan::Heal => {
                self.part.iter_mut().for_each(|part| *part = 0);
                self.cut.clear();
            }
            Plan::Flip(node) => self.flip(node),
            Plan::CompareRosters => self.compare_rosters(),
            Plan::Notice(node) => self.notice(node),
            Plan::CheckLosses => self.check_losses(),
        }
    }

    fn lose(&mut self, node: usize) {
        self.crash(node);
        let key = self.nodes[node].seal.key();
        let slices: Vec<Slice> = self.nodes[node].links.keys().copied().collect();
        for slice in slices {
            let holds = self.nodes[node].links[&slice].last().is_some_and(|link| link.holders.nodes.contains(&key));
            if holds {
                self.missing.insert((slice, key), self.now_ms);
            }
        }
        let sim = &mut self.nodes[node];
        sim.disk.lose();
        sim.dead = Some(self.now_ms);
        if self.shared.is_some() {
            // Three pings without an answer, then votes; as long as the full machinery takes.
            let after = 30_000 + self.chance.below(30_000);
            self.plan(after, Plan::Notice(node));
        }
    }

    /// A node that was made enters: it begins with nothing, and tells its record.
    fn join(&mut self, node: usize) {
        self.start(node);
        if self.nodes[node].view.is_some() {
            // Its ticket names somebody who is there.
            let there = self
                .nodes
                .iter()
                .position(|sim| sim.core.is_some() && sim.view.as_ref().is_some_and(|view| view.roster.len() > 1));
            let known = there.and_then(|there| {
                let key = self.nodes[there].seal.key();
                self.view_of(there).roster.record_of(&key).cloned()
            });
            let facts = known.map(crate::fact::Fact::Record).into_iter().collect();
            self.handle(node, Event::Learn(facts));
        }
        if self.shared.is_some() {
            let now = self.clock(node);
            let sim = &mut self.nodes[node];
            sim.record.sequence += 1;
            sim.record.signed_ms = now.wall_ms;
            let record = crate::fact::SignedRecord::new(sim.record.clone(), sim.seal.as_ref());
            let (seal, settings) = (sim.seal.clone(), self.options.settings.clone());
            let fact = crate::fact::Fact::Record(Arc::new(record));
            let key = sim.seal.key();
            let Some(view) = self.shared.as_mut() else { return };
            view.learn(&fact, seal.as_ref(), now.mono_ms, now.wall_ms, &settings);
            self.tell_whom_it_concerns(key, true);
        }
    }

    /// In a shared view: watchers vote, the proof is made by their machines, and everybody concerned is told.
    fn notice(&mut self, node: usize) {
        let key = self.nodes[node].seal.key();
        if self.nodes[node].core.is_some() {
            return;
        }
        let Some(view) = self.shared.as_ref() else { return };
        let Some(index) = view.roster.index(&key) else { return };
        let watchers: Vec<Index> = view.watchers.judges(&view.roster, index);
        let watchers: Vec<usize> =
            watchers.into_iter().filter_map(|index| self.of_key.get(&view.roster.key(index)).copied()).collect();
        for watcher in watchers {
            self.handle(watcher, Event::Silent { node: key });
        }
        // Votes travel for a moment, then the absence is known.
        self.at(self.now_ms + 2000, Happening::Planned(Plan::CheckLosses));
        self.tell_whom_it_concerns(key, false);
    }

    fn tell_whom_it_concerns(&mut self, key: Key, joined: bool) {
        let Some(view) = self.shared.as_ref() else { return };
        let Some(index) = view.roster.index(&key) else { return };
        let slices = if joined { affected(view, index) } else { Vec::new() };
        let mut hearers: BTreeSet<usize> = BTreeSet::new();
        if joined {
            for slice in slices {
                let holders = view.table.holders(slice);
                hearers.extend(holders.iter().filter_map(|holder| self.of_key.get(&view.roster.key(*holder)).copied()));
            }
        } else if let Some(node) = self.of_key.get(&key) {
            for slice in self.nodes[*node].links.keys() {
                let holders = view.table.holders(*slice);
                hearers.extend(holders.iter().filter_map(|holder| self.of_key.get(&view.roster.key(*holder)).copied()));
            }
        }
        for hearer in hearers {
            let life = self.nodes[hearer].life;
            let event = if joined { Event::Rewish } else { Event::Changed { node: key } };
            let after = 5000 + self.chance.below(5000);
            self.at(self.now_ms + after, Happening::Tell { to: hearer, life, event: Box::new(event) });
        }
    }

    fn flip(&mut self, node: usize) {
        let sealed: Vec<(Slice, Segment)> = self.nodes[node]
            .disk
            .all()
            .filter(|(_, blob)| blob.extent.seal.is_some())
            .map(|(slice, blob)| (slice, blob.extent.segment))
            .collect();
        if let Some((slice, segment)) = self.chance.pick(&sealed).copied() {
            if let Some(blob) = self.nodes[node].disk.get_mut(slice, &segment) {
                blob.altered = true;
            }
            self.auditor.rotten.insert((node, slice, segment), self.now_ms);
            // Its own check finds it within the hour, and takes the segment out.
            self.nodes[node].disk.remove(slice, &segment);
            let after = self.chance.below(3_600_000);
            self.tell(node, after, Event::Damaged { slice, segment });
        }
    }

    fn compare_rosters(&mut self) {
        let up = self.nodes.iter().enumerate().filter(|(_, sim)| sim.core.is_some() && sim.actor == Actor::Honest);
        // Who has left is no longer talked to.
        let left = |node: usize| {
            let key = self.nodes[node].seal.key();
            self.nodes.iter().enumerate().any(|(other, sim)| {
                let view = sim.view.as_ref().filter(|_| other != node && sim.core.is_some());
                view.is_some_and(|view| view.roster.index(&key).is_some_and(|index| view.roster.is_gone(index)))
            })
        };
        let up = up.filter(|(node, _)| !left(*node));
        let digests: Vec<(usize, Hash)> =
            up.filter_map(|(node, sim)| Some((node, sim.view.as_ref()?.roster.digest()))).collect();
        let Some((_, first)) = digests.first() else { return };
        if let Some((node, _)) = digests.iter().find(|(_, digest)| digest != first) {
            let differing = digests.iter().filter(|(_, digest)| digest != first).count();
            // What one has and the other has not, for whoever looks for the reason.
            let facts = |node: usize| self.view_of(node).roster.facts().collect::<BTreeMap<_, _>>();
            let (mine, theirs) = (facts(digests[0].0), facts(*node));
            let names = |one: &BTreeMap<Hash, crate::fact::Fact>, other: &BTreeMap<Hash, crate::fact::Fact>| {
                let only = one.iter().filter(|(hash, _)| !other.contains_key(hash)).map(|(_, fact)| match fact {
                    crate::fact::Fact::Record(record) => format!("record {}", self.of_key[&record.node()]),
                    crate::fact::Fact::Absence(proof) => {
                        let voters: Vec<usize> = proof.votes.iter().map(|vote| self.of_key[&vote.by]).collect();
                        format!("absence {} {voters:?}", self.of_key[&proof.node])
                    }
                    _ => "other".into(),
                });
                only.take(4).collect::<Vec<_>>()
            };
            let what = format!(
                "node {node} and {} others differ: {:?} {:?}",
                differing - 1,
                names(&mine, &theirs),
                names(&theirs, &mine)
            );
            self.auditor.broke(Rule::Rosters, self.now_ms, 0, what);
        }
    }

    /// Looks for everything that was acknowledged, on all disks that are left.
    pub fn check_losses(&mut self) {
        let mut lost: Vec<(Slice, Segment, bool)> = Vec::new();
        for ((slice, segment), bytes) in &self.auditor.acknowledged {
            let mut held = self.auditor.held.get(slice).into_iter().flatten();
            let somewhere = held.any(|node| self.nodes[*node].disk.holds(*slice, segment, *bytes));
            if !somewhere {
                let mut let_go = self.auditor.let_go.get(&(*slice, *segment)).into_iter().flatten();
                let lives = let_go.any(|node| self.nodes[*node].dead.is_none());
                lost.push((*slice, *segment, lives));
            }
        }
        for (slice, segment, lives) in lost {
            self.auditor.acknowledged.remove(&(slice, segment));
            self.figures.lost += 1;
            if lives {
                self.auditor.broke(Rule::NothingLost, self.now_ms, slice, format!("{segment:?}"));
            }
        }
    }
}

/// Slices in whose wish a node is.
pub fn affected(view: &View, node: Index) -> Vec<Slice> {
    let genesis = view.roster.genesis();
    let copies = usize::from(genesis.copies);
    let mut slices = BTreeSet::new();
    for place in view.ring.places(&view.roster, node) {
        let mut slice = genesis.slice_of(place);
        loop {
            let (wish, _) = view.ring.wish(slice, genesis.slice_bits, copies, |index| view.roster.is_present(index));
            if !wish.contains(&node) || !slices.insert(slice) {
                break;
            }
            slice = if slice == 0 { genesis.slices() - 1 } else { slice - 1 };
        }
    }
    slices.into_iter().collect()
}
