//! A node that runs: takes what waits, steps the machine, makes what must last durable, then does what is to be done. Everything that
//! decides is in [`crate::node`]; here is what it needs a clock, a disk and others for.
//!
//! ```text
//!  wire ──▶ heard ─┐                                ┌──▶ journal, synced, before all else
//!  archive ─▶ grown ├──▶ one thread: Node::handle ──┼──▶ crawl: lead, stop
//!  pulls, hashes ───┘                               ├──▶ pulls and hashes, on threads of their own
//!                                                   └──▶ wire: what is said
//! ```

mod answers;
mod bodies;
mod clock;
mod coming;
mod contributors;
mod everywhere;
mod follow;
mod found;
mod hints;
mod instead;
mod instructions;
mod journal;
pub mod membership;
mod pool;
mod proof;
mod pull;
pub mod question;
mod relays;
mod scan;
mod split;
mod status;
mod tend;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use skep_archive::layout::{HalfSlice, SegmentId, SegmentName};
use skep_archive::{Archive, WriterKey};
use skep_url::Splits;

use crate::chance::Chance;
use crate::copy::{Extent, Segment};
use crate::fact::{Fact, Standing};
use crate::genesis::{Genesis, Slice};
use crate::instruction::SignedInstruction;
use crate::key::{Ed25519, Hash, Key, SealRef};
use crate::limits::{EVENTS_AT_ONCE_MAX, EVENTS_WAITING_MAX, HASHES_AT_ONCE, PULLS_MAX};
use crate::links;
use crate::message::{self, Ballot, Message, PROTOCOL_OLDEST, Politeness, SPEAKS};
use crate::node::{Action, Event, Kept, Node, Note, What};
use crate::pace::Site;
use crate::settings::Settings;
use crate::wire::{Ears, Wire};

pub use bodies::{Body, Owned, Proven, Sums};
pub use everywhere::Everywhere;
pub use follow::{Led, NoAnswer};
pub use membership::Membership;
pub use proof::Proof;
pub use question::{Question, Taken};
pub use scan::Scan;
pub use split::Places;
pub use status::{HeldSlice, Member, Status};

use bodies::Bodies;
use clock::Clock;
use hints::Hints;
use journal::Journal;
use pool::Pool;

/// Told what became of links: everything is safe here, or nothing was taken.
pub type Back = Box<dyn FnOnce(Taken) + Send>;

/// What a node does with what it leads. Calls return at once.
pub trait Work: Send + Sync {
    /// This node leads a slice until then; with politeness, the lease is new, and that is what everybody told who led before.
    fn lead(&self, slice: Slice, until: Instant, politeness: Option<Vec<Politeness>>);
    /// It no longer does; nothing begins there any more when this returns. True if [`Shell::polite`] will yet be told how its sites stand
    /// and that nothing is out there: whoever leads next hears of the end of this lease only then.
    fn stop(&self, slice: Slice) -> bool;
    /// From now on these sites are split. Told when the node begins, and whenever there is news.
    fn split(&self, _splits: &Arc<Splits>) {}
    /// This node may visit a site that is split until then, as far as it leads slices of its URLs; those who visited before told this. Without a
    /// time it no longer may, or never could.
    fn visit(&self, _site: Site, _until: Option<Instant>, _politeness: Vec<Politeness>) {}
    /// Another node has visited a site that is split, and its home is held here: this is to be heard by whoever leads it next.
    fn heed(&self, _site: Site, _politeness: Politeness) {}
    /// Links that another node found.
    fn links(&self, from: Key, batch: links::Batch, back: Back);
    /// What all nodes are told to crawl, as far as it is known here: when the node begins, and whenever there is news.
    fn instructed(&self, instructions: &[Arc<SignedInstruction>]);
    /// What the portal of another node asks, about sites of these slices as far as they are held here.
    fn answer(&self, target: &str, slices: &[Slice]) -> Result<Vec<u8>, String>;
    /// What waits here for contributors.
    fn bundles(&self) -> Result<Vec<u8>, String> {
        Err(NO_CONTRIBUTORS.into())
    }
    /// What a contributor says to this node through another one, and from which address, as that one says.
    fn contributor(&self, _through: Key, _address: IpAddr, _message: &[u8]) -> Result<Vec<u8>, String> {
        Err(NO_CONTRIBUTORS.into())
    }
    /// Who leads a slice of which this node has a copy wants something fetched from here.
    fn follow(&self, _from: &Led, _message: &[u8]) -> Result<Telling, String> {
        Err(NOT_FOLLOWING.into())
    }
    /// Looks for the file by which a host, of a site that is led here, says whose it is.
    fn prove(&self, _host: &str) -> Proof {
        Proof::No(NOT_VISITING.into())
    }
    /// Something worth telling.
    fn note(&self, note: &Note);
}

/// What is told to whoever asked, as it comes.
pub type Telling = Box<dyn FnOnce(&mut dyn Write) -> io::Result<()>>;

/// What a node says that fetches nothing for others.
pub const NOT_FOLLOWING: &str = "this node fetches nothing for others";
/// What a node says that visits no sites.
const NOT_VISITING: &str = "this node visits no sites";
/// What a node says that hands nothing out.
pub const NO_CONTRIBUTORS: &str = "no bundles are handed out here";

/// What a node is made of.
pub struct Parts {
    /// Its place in the network.
    pub membership: Membership,
    /// The secret of its key.
    pub secret: [u8; 32],
    /// Where the records are.
    pub archive: Arc<Archive>,
    /// The way to the others.
    pub wire: Arc<dyn Wire>,
    /// What it does with what it leads.
    pub work: Arc<dyn Work>,
    /// Who is there, as it was told when it joined.
    pub facts: Vec<Fact>,
    /// Where its portal answers the public.
    pub portal: Option<String>,
    /// The relay that it serves.
    pub relay: Option<String>,
}

/// A node that runs.
pub struct Shell {
    key: Key,
    seal: SealRef,
    membership: Membership,
    settings: Settings,
    archive: Arc<Archive>,
    wire: Arc<dyn Wire>,
    work: Arc<dyn Work>,
    clock: Clock,
    machine: Mutex<Machine>,
    events: SyncSender<Event>,
    /// How far segments have grown since the machine heard of it.
    grown: Mutex<BTreeMap<SegmentId, (SegmentName, u64, bool)>>,
    /// Steps of the machine so far, for those who wait for one.
    steps: Mutex<u64>,
    stepped: Condvar,
    counts: Mutex<BTreeMap<What, u64>>,
    hints: Mutex<Hints>,
    /// How quickly nodes answered lately, in microseconds.
    quickness: Mutex<HashMap<Key, u64>>,
    /// Slices whose copies are being deleted: nothing is copied there, and nothing of them counts, before that has ended.
    deleting: Mutex<BTreeSet<Slice>>,
    deleted: Condvar,
    /// Leases that were given back, and who hears of it when it is known how their sites stand.
    given_back: Mutex<HashMap<Slice, Vec<(Key, Ballot)>>>,
    /// What the crawl was told that it leads. Where the machine leads and this does not say so, it is told again.
    told: Mutex<BTreeSet<Slice>>,
    codec: links::Codec,
    budgets: Mutex<links::Budgets<Key>>,
    pulls: Pool,
    hashes: Pool,
    releases: Pool,
    pulled_bytes: AtomicU64,
    /// Sites that are split.
    splits: Mutex<Arc<Splits>>,
    /// Bodies that slices share.
    bodies: Bodies,
    /// What owners told all nodes.
    told_to_all: Mutex<instructions::Told>,
    telling: Mutex<()>,
    saying: Mutex<()>,
    removing: Mutex<()>,
    /// The relay that this node serves.
    serves: Option<String>,
    wanted: AtomicBool,
    /// Slices that this node does not want to lead before then, because it cannot read what it has of them.
    declined: Mutex<BTreeMap<Slice, Instant>>,
    /// The disk has no room: nothing is led here, because nothing could be kept.
    full: AtomicBool,
    left: AtomicBool,
    mute: AtomicBool,
    stopped: Mutex<bool>,
    stopping: Condvar,
}

struct Machine {
    node: Node,
    chance: Chance,
    /// Slices whose inventory was handed over.
    stocked: BTreeSet<Slice>,
    /// What was said about wanting to lead.
    wanted: BTreeMap<Slice, bool>,
    ticked_ms: u64,
    /// Splits that were told on, as the roster counts them.
    splits_version: u64,
}

/// The threads of a node; it ends with [`Running::stop`].
pub struct Running {
    /// The node.
    pub shell: Arc<Shell>,
    threads: Vec<JoinHandle<()>>,
}

const TICK_MS: u64 = 1_000;
/// What a node cannot lead it leaves to others for so many leases' time.
const DECLINED_LEASES: u64 = 3;
const LOG: &str = "ring.log";

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shell {
    /// Begins to be a node. Whoever has the wire lets the node hear from then on.
    pub fn start(parts: Parts) -> Result<Running, String> {
        let Parts { membership, secret, archive, wire, work, facts, portal, relay: serves } = parts;
        let path = archive.layout().settings().join(LOG);
        let (mut journal, mut kept) =
            Journal::open(&path).map_err(|error| format!("{} cannot be opened: {error}", path.display()))?;
        let told_to_all = instructions::Told::open(&archive.layout().settings())
            .map_err(|error| format!("the instructions of this node cannot be read: {error}"))?;
        let told: Vec<Kept> = facts.into_iter().map(Kept::Fact).collect();
        if !told.is_empty() {
            journal.keep(&told).map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
            kept.extend(told);
        }
        let (clock, settings) = (Clock::start(), membership.settings()?);
        let seal: SealRef = Arc::new(Ed25519::from_secret(&secret));
        let (key, now) = (seal.key(), clock.now());
        let addresses = wire.addresses();
        let known = kept.iter().rev().find_map(|kept| match kept {
            Kept::Fact(Fact::Record(record)) if record.node() == key => Some(record.record.clone()),
            _ => None,
        });
        // That of another node which was used before is likely to be used again.
        let used = || {
            let known =
                known.as_ref().filter(|known| membership.relays.is_empty() && crate::relays::of(known).is_none());
            known.and_then(|known| known.relay.clone())
        };
        let relay = serves.clone().or_else(|| membership.relays.first().cloned()).or_else(used);
        let mut record = membership::first_record(membership.certificate.clone(), addresses.clone(), now.wall_ms);
        let mut moved = false;
        if let Some(known) = known {
            moved = known.addresses != addresses || known.portal != portal || known.relay != relay;
            // Others speak as the record says.
            moved |= known.protocol != SPEAKS;
            record = known;
            record.protocol = SPEAKS;
            record.certificate = membership.certificate.clone();
            if record.standing == Standing::Left {
                return Err("this node has left its network; a new one begins in an archive of its own".into());
            }
        }
        (record.addresses, record.portal, record.relay) = (addresses.clone(), portal.clone(), relay.clone());
        let node = Node::new(membership.genesis.clone(), seal.clone(), record, settings.clone(), kept, now);
        let seed = Hash::of("skep chance", &[&key.0[..], &now.wall_ms.to_le_bytes()].concat()).number();
        let (events, heard) = sync_channel(EVENTS_WAITING_MAX);
        let shell = Arc::new(Shell {
            key,
            seal,
            settings,
            archive,
            wire,
            work,
            clock,
            machine: Mutex::new(Machine {
                node,
                chance: Chance::new(seed),
                stocked: BTreeSet::new(),
                wanted: BTreeMap::new(),
                ticked_ms: 0,
                splits_version: 0,
            }),
            events,
            grown: Mutex::default(),
            steps: Mutex::new(0),
            stepped: Condvar::new(),
            counts: Mutex::default(),
            hints: Mutex::default(),
            quickness: Mutex::default(),
            deleting: Mutex::default(),
            deleted: Condvar::new(),
            given_back: Mutex::default(),
            told: Mutex::default(),
            codec: links::Codec::default(),
            budgets: Mutex::default(),
            pulls: Pool::new("skep-pull", PULLS_MAX),
            hashes: Pool::new("skep-hash", HASHES_AT_ONCE),
            releases: Pool::new("skep-release", 1),
            pulled_bytes: AtomicU64::new(0),
            splits: Mutex::default(),
            bodies: Bodies::new(),
            told_to_all: Mutex::new(told_to_all),
            telling: Mutex::default(),
            saying: Mutex::default(),
            removing: Mutex::default(),
            serves,
            wanted: AtomicBool::new(false),
            declined: Mutex::default(),
            full: AtomicBool::new(false),
            left: AtomicBool::new(false),
            mute: AtomicBool::new(false),
            stopped: Mutex::new(false),
            stopping: Condvar::new(),
            membership,
        });
        shell.place_everybody();
        shell.follow_splits();
        shell.archive.obey_own_removals_only();
        shell.judge_removals();
        shell.work.instructed(&shell.instructions());
        let grown = Arc::downgrade(&shell);
        shell.archive.tell_growth(Some(Box::new(move |name, bytes, sealed| {
            if let Some(shell) = grown.upgrade() {
                lock(&shell.grown).insert(name.id, (name, bytes, sealed));
                // If it is full, the machine wakes up anyway.
                let _awake_already = shell.events.try_send(Event::Tick);
            }
        })));
        if moved {
            shell.tell(Event::Moved { addresses, relay, portal });
        }
        let (one, two, three) = (shell.clone(), shell.clone(), shell.clone());
        let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
            std::thread::Builder::new().name(name.into()).spawn(work).map_err(|error| error.to_string())
        };
        let threads = vec![
            spawn("skep-ring", Box::new(move || one.run(&heard, journal)))?,
            spawn("skep-tend", Box::new(move || two.tend()))?,
            spawn("skep-bodies", Box::new(move || three.tend_bodies()))?,
        ];
        Ok(Running { shell, threads })
    }

    fn place_everybody(&self) {
        let machine = lock(&self.machine);
        let roster = &machine.node.view.roster;
        for index in 0..roster.len() as u32 {
            let record = &roster.record(index).record;
            self.wire.place(roster.key(index), &record.addresses, record.relay.as_deref());
            self.archive.know_writer(roster.key(index).0);
        }
    }

    /// Tells the machine something; waits while too much waits already.
    pub fn tell(&self, event: Event) {
        let _ended = self.events.send(event);
    }

    /// Who this node is.
    pub fn key(&self) -> Key {
        self.key
    }

    /// What the network is.
    pub fn genesis(&self) -> &Genesis {
        &self.membership.genesis
    }

    /// The node's place in the network.
    pub fn membership(&self) -> &Membership {
        &self.membership
    }

    /// Where the records are.
    pub fn archive(&self) -> &Arc<Archive> {
        &self.archive
    }

    /// There is something to fetch, so that leading is worth it; or no longer.
    pub fn want(&self, wanted: bool) {
        self.wanted.store(wanted, Ordering::Relaxed);
        let _awake_already = self.events.try_send(Event::Tick);
    }

    /// This node cannot lead a slice for now: its lease goes to somebody else.
    pub fn decline(&self, slice: Slice) {
        let until = Instant::now() + Duration::from_millis(DECLINED_LEASES * self.settings.lease_ms);
        lock(&self.declined).insert(slice, until);
        let _awake_already = self.events.try_send(Event::Tick);
    }

    /// How politely the sites of a slice were visited so far. Whoever leads next hears that a lease was given back when nothing is out
    /// there any more: then it also gets what was fetched last.
    pub fn polite(self: &Arc<Shell>, slice: Slice, politeness: Vec<u8>, out: bool) {
        let politeness: Politeness = politeness.into();
        let given_back = if out { None } else { lock(&self.given_back).remove(&slice) };
        if let Some(hearers) = given_back.filter(|hearers| !hearers.is_empty()) {
            let (shell, politeness) = (self.clone(), politeness.clone());
            self.releases.run(move || shell.release(slice, hearers, &politeness));
        }
        self.tell(Event::Polite { slice, politeness, out });
    }

    /// Others hear of the end of a lease when the machine here knows of everything that was fetched under it: they will ask for that.
    fn release(&self, slice: Slice, hearers: Vec<(Key, Ballot)>, politeness: &Politeness) {
        // What cannot be known any more is waited for by nobody.
        let _known_or_not = self.archive.settle();
        for (to, ballot) in hearers {
            let message = Message::LeaseRelease { slice, ballot, politeness: politeness.clone() };
            self.say(to, &[message]);
        }
    }

    /// Says something in the newest protocol that whoever hears it understands.
    fn say(&self, to: Key, messages: &[Message]) {
        match self.spoken(&to) {
            Some(protocol) => {
                message::frames(messages, protocol).into_iter().for_each(|frame| self.wire.say(to, frame));
            }
            None => {
                let why = "it speaks no protocol that this program knows";
                self.note(&Note { what: What::Newer, peer: Some(to), slice: None, why });
            }
        }
    }

    /// The newest protocol that this node and another understand; of one that is not known yet the oldest is hoped for.
    fn spoken(&self, node: &Key) -> Option<u16> {
        let machine = lock(&self.machine);
        let record = machine.node.view.roster.record_of(node).map(|signed| signed.record.protocol);
        record.map_or(Some(PROTOCOL_OLDEST), |theirs| message::common(SPEAKS, theirs))
    }

    /// This node has left: nothing depends on it any more.
    pub fn has_left(&self) -> bool {
        self.left.load(Ordering::Relaxed)
    }

    fn run(self: &Arc<Shell>, heard: &Receiver<Event>, mut journal: Journal) {
        let mut unkept = Vec::new();
        self.step(Vec::new(), &mut journal, &mut unkept);
        while !*lock(&self.stopped) {
            let due_ms = lock(&self.machine).node.due_ms();
            let wait_ms = due_ms.saturating_sub(self.clock.now().mono_ms).clamp(1, TICK_MS);
            let mut events = match heard.recv_timeout(Duration::from_millis(wait_ms)) {
                Ok(first) => vec![first],
                Err(RecvTimeoutError::Timeout) => Vec::new(),
                Err(RecvTimeoutError::Disconnected) => return,
            };
            events.extend(heard.try_iter().take(EVENTS_AT_ONCE_MAX));
            self.step(events, &mut journal, &mut unkept);
        }
    }

    /// Takes what waits, steps the machine, makes it durable, does it.
    fn step(self: &Arc<Shell>, events: Vec<Event>, journal: &mut Journal, unkept: &mut Vec<Kept>) {
        let mut out = Vec::new();
        let grown = std::mem::take(&mut *lock(&self.grown));
        let grown: Vec<Event> =
            grown.into_values().filter_map(|(name, bytes, sealed)| self.grew(name, bytes, sealed)).collect();
        let mut machine = lock(&self.machine);
        for event in grown.into_iter().chain(events) {
            machine.handle(event, &self.clock, &mut out);
        }
        let now_ms = self.clock.now().mono_ms;
        if now_ms >= machine.node.due_ms() || now_ms >= machine.ticked_ms + TICK_MS {
            machine.ticked_ms = now_ms;
            machine.handle(Event::Tick, &self.clock, &mut out);
        }
        self.follow_slices(&mut machine, &mut out);
        drop(machine);
        self.follow_splits();
        if self.clock.slept() {
            // Leases were counted by a clock that stood still meanwhile.
            self.stop_all();
        }
        if self.perform(out, journal, unkept) {
            self.follow_leases();
        }
        *lock(&self.steps) += 1;
        self.stepped.notify_all();
    }

    /// Slices that came are told what the archive has of them; all are told whether leading is worth it.
    fn follow_slices(&self, machine: &mut Machine, out: &mut Vec<Action>) {
        // One that went and came back within one step knows nothing of what was told before.
        for action in &*out {
            if let Action::Keep(Kept::Dropped { slice }) = action {
                machine.stocked.remove(slice);
                machine.wanted.remove(slice);
            }
        }
        let here: BTreeSet<Slice> = machine.node.core.holdings().map(|(slice, _)| slice).collect();
        machine.stocked.retain(|slice| here.contains(slice));
        machine.wanted.retain(|slice, _| here.contains(slice));
        let deleting = lock(&self.deleting).clone();
        let new: Vec<Slice> =
            here.difference(&machine.stocked).filter(|slice| !deleting.contains(slice)).copied().collect();
        for slice in new {
            machine.stocked.insert(slice);
            for extent in self.extents(slice) {
                machine.handle(Event::Grown { slice, extent }, &self.clock, out);
            }
        }
        let wanted = self.wanted.load(Ordering::Relaxed) && !self.full.load(Ordering::Relaxed);
        let declined: BTreeSet<Slice> = {
            let (mut declined, now) = (lock(&self.declined), Instant::now());
            declined.retain(|_, until| now < *until);
            declined.keys().copied().collect()
        };
        for slice in here {
            let wanted = wanted && !declined.contains(&slice);
            if machine.wanted.get(&slice).copied().unwrap_or(false) == wanted {
                continue;
            }
            machine.wanted.insert(slice, wanted);
            machine.handle(Event::Wanted { slice, wanted }, &self.clock, out);
        }
    }

    /// What the crawl leads is made what the machine leads, whatever came between: a clock that stood still, a disk that took nothing.
    fn follow_leases(&self) {
        let (mut ended, mut untold) = (lock(&self.told).clone(), Vec::new());
        for (slice, holding) in lock(&self.machine).node.core.holdings() {
            if let Some(until_ms) = holding.fetches()
                && !ended.remove(&slice)
            {
                untold.push((slice, until_ms, holding.politeness()));
            }
        }
        for slice in ended {
            self.stop_work(slice);
        }
        for (slice, until_ms, politeness) in untold {
            self.lead(slice, until_ms, Some(politeness));
        }
    }

    /// The crawl leads a slice until then; with politeness, it did not before.
    fn lead(&self, slice: Slice, until_ms: u64, politeness: Option<Vec<Politeness>>) {
        let mut told = lock(&self.told);
        // What it never heard of cannot be renewed; it hears of it when leases are followed.
        if politeness.is_some() || told.contains(&slice) {
            told.insert(slice);
            self.work.lead(slice, self.clock.instant(until_ms), politeness);
        }
    }

    fn stop_work(&self, slice: Slice) -> bool {
        let mut told = lock(&self.told);
        told.remove(&slice);
        self.work.stop(slice)
    }

    /// What the archive has of a slice.
    fn extents(&self, slice: Slice) -> Vec<Extent> {
        let (first, last) = self.sites(slice);
        let held = self.archive.held(first, last).unwrap_or_default();
        let whole = |half: HalfSlice| half.bits() == self.genesis().slice_bits;
        held.into_iter()
            .filter(|held| held.bytes > 0 && whole(held.half) && held.name.id.writer != WriterKey::FOREIGN)
            .map(|held| self.extent(held.name, held.half, held.bytes, held.sealed))
            .collect()
    }

    /// The first and the last hash of sites of a slice.
    fn sites(&self, slice: Slice) -> (u32, u32) {
        let bits = u32::from(self.genesis().slice_bits);
        if bits == 0 {
            return (0, u32::MAX);
        }
        (slice << (32 - bits), (slice << (32 - bits)) | (u32::MAX >> bits))
    }

    fn extent(&self, name: SegmentName, half: HalfSlice, bytes: u64, sealed: bool) -> Extent {
        let closing = sealed.then(|| self.archive.closing(name.id).ok().flatten()).flatten();
        let segment = Segment {
            writer: name.id.writer.0,
            number: name.id.number,
            half: half.half(),
            generation: name.generation,
        };
        Extent { segment, bytes, seal: closing.map(|closing| Hash(closing.blake3)) }
    }

    /// More of a segment is synced here.
    fn grew(&self, name: SegmentName, bytes: u64, sealed: bool) -> Option<Event> {
        let half = self.archive.half_of(name.id)?;
        let whole = half.bits() == self.genesis().slice_bits && name.id.writer != WriterKey::FOREIGN;
        whole.then(|| Event::Grown { slice: half.prefix(), extent: self.extent(name, half, bytes, sealed) })
    }

    /// Does what is to be done. What must last is durable first; what ends is ended before others hear of it. Says whether this node can
    /// write.
    fn perform(self: &Arc<Shell>, actions: Vec<Action>, journal: &mut Journal, unkept: &mut Vec<Kept>) -> bool {
        for action in &actions {
            if let Action::Keep(kept) = action {
                if let Kept::Fact(Fact::Record(record)) = kept {
                    let said = &record.record;
                    self.wire.place(record.node(), &said.addresses, said.relay.as_deref());
                    self.archive.know_writer(record.node().0);
                }
                unkept.push(kept.clone());
            }
        }
        // A node that cannot write says nothing more, and others do without it.
        let kept = unkept.is_empty() || journal.keep(unkept).is_ok();
        if kept {
            unkept.clear();
        } else {
            self.stop_all();
        }
        self.mute.store(!kept, Ordering::Relaxed);
        let mut said: BTreeMap<Key, Vec<Message>> = BTreeMap::new();
        let mut stopping: BTreeSet<Slice> = BTreeSet::new();
        let mut actions = actions.into_iter();
        while let Some(action) = actions.next() {
            match action {
                Action::Keep(_) => {}
                Action::Send { message: Message::LeaseRelease { slice, .. }, .. } if stopping.contains(&slice) => {}
                Action::Send { to, message } => said.entry(to).or_default().push(message),
                Action::Pull { slice, from, extent, have } => {
                    let shell = self.clone();
                    self.pulls.run(move || {
                        let event = shell.pull(slice, from, extent, have);
                        shell.tell(event);
                    });
                }
                Action::Hash { job, slice: _, key, ranges } => {
                    let shell = self.clone();
                    self.hashes.run(move || {
                        let digest = shell.hash(&key, &ranges);
                        let missing = digest.is_none();
                        shell.tell(Event::Hashed { job, digest });
                        if missing {
                            shell.look_at_those(&ranges);
                        }
                    });
                }
                Action::Lead { slice, until_ms, politeness, .. } if kept => self.lead(slice, until_ms, politeness),
                Action::Lead { .. } => {}
                Action::Visit { site, until_ms, politeness } if kept => {
                    self.work.visit(site, Some(self.clock.instant(until_ms)), politeness);
                }
                Action::Visit { .. } => {}
                Action::Heed { site, politeness } => self.work.heed(site, politeness),
                Action::Stop { slice } => {
                    // Before the crawl hears of it: how its sites stand may be told before this goes on.
                    lock(&self.given_back).insert(slice, given_back(slice, actions.as_slice()));
                    if self.stop_work(slice) {
                        stopping.insert(slice);
                    } else {
                        lock(&self.given_back).remove(&slice);
                    }
                }
                // Who waits for it asks the machine after every step.
                Action::Acknowledged { .. } => {}
                Action::Seal { slice } => {
                    let shell = self.clone();
                    self.hashes.run(move || {
                        let (first, last) = shell.sites(slice);
                        if shell.archive.seal_sites(first, last).is_err() {
                            // Closed when the archive is opened the next time.
                            shell.refused(None, "what was written here could not be closed yet");
                        }
                    });
                }
                Action::Delete { slice } if kept => self.delete(slice),
                Action::Delete { .. } => {}
                Action::Left => self.left.store(true, Ordering::Relaxed),
                Action::Note(note) => self.note(&note),
            }
        }
        if kept {
            for (to, messages) in said {
                self.say(to, &messages);
            }
        }
        kept
    }

    /// Nothing is led any more, whatever the machine says.
    fn stop_all(&self) {
        for slice in 0..self.genesis().slices() {
            self.stop_work(slice);
        }
        for (site, _) in self.splits().iter() {
            self.work.visit(site, None, Vec::new());
        }
    }

    fn delete(self: &Arc<Shell>, slice: Slice) {
        lock(&self.deleting).insert(slice);
        let shell = self.clone();
        self.pulls.run(move || {
            let (first, last) = shell.sites(slice);
            if shell.archive.let_go(first, last).is_err() {
                // The bytes stay, and are found again when the slice comes back.
                let why = "its copy could not be deleted";
                shell.note(&Note { what: What::Refused, peer: None, slice: Some(slice), why });
            }
            lock(&shell.deleting).remove(&slice);
            shell.deleted.notify_all();
            let _awake_already = shell.events.try_send(Event::Tick);
        });
    }

    /// Waits until what was here of a slice is gone. It was begun before anybody could be asked for the slice anew, so it is not waited
    /// for by the threads that it needs itself.
    fn wait_deleted(&self, slice: Slice) {
        let deleting = lock(&self.deleting);
        drop(self.deleted.wait_while(deleting, |deleting| deleting.contains(&slice)));
    }

    fn note(&self, note: &Note) {
        *lock(&self.counts).entry(note.what).or_default() += 1;
        self.work.note(note);
    }

    /// Something came that is not taken.
    fn refused(&self, from: Option<Key>, why: &'static str) {
        self.note(&Note { what: What::Refused, peer: from, slice: None, why });
    }
}

impl Machine {
    fn handle(&mut self, event: Event, clock: &Clock, out: &mut Vec<Action>) {
        self.node.handle(event, clock.now(), &mut self.chance, out);
    }
}

impl Running {
    /// Who listens to the wire.
    pub fn ears(&self) -> Arc<dyn Ears> {
        self.shell.clone()
    }

    /// Stops: nothing is led any more, nothing is said, and what was begun comes to its end.
    pub fn stop(self) {
        let shell = self.shell;
        *lock(&shell.stopped) = true;
        shell.stopping.notify_all();
        let _awake_already = shell.events.try_send(Event::Tick);
        self.threads.into_iter().for_each(|thread| drop(thread.join()));
        shell.stop_all();
        shell.releases.stop();
        shell.bodies.stop();
        shell.archive.tell_growth(None);
        shell.wire.close();
        shell.pulls.stop();
        shell.hashes.stop();
    }
}

/// Who hears that a lease of a slice was given back, and under which ballot it was held.
fn given_back(slice: Slice, actions: &[Action]) -> Vec<(Key, Ballot)> {
    let release = |action: &Action| match action {
        Action::Send { to, message: Message::LeaseRelease { slice: given, ballot, .. } } if *given == slice => {
            Some((*to, *ballot))
        }
        _ => None,
    };
    actions.iter().filter_map(release).collect()
}

/// The address at which others find a node that listens anywhere: its first one.
pub fn first_address(addresses: &[SocketAddr]) -> Option<SocketAddr> {
    addresses.iter().find(|address| !address.ip().is_loopback()).or(addresses.first()).copied()
}
