//! What happens to whom: worlds ready to run, and reports of what came of them.

use std::sync::Arc;

use super::Keyed;
use super::actor::{Actor, LIARS};
use super::auditor::Broken;
use super::plan::Plan;
use super::rates::{Rates, losses_per_slice_year};
use super::split;
use super::world::{Figures, Options, World};
use crate::chance::Chance;
use crate::copy::{Extent, Segment};
use crate::epoch::{Epoch, Holders, SignedHolders};
use crate::fact::{Fact, NodeRecord, SignedRecord, SignedSplit, Standing};
use crate::genesis::{GENESIS_VERSION, Genesis};
use crate::key::{Ed25519, Hash, Key, SealRef};
use crate::placement::earned;
use crate::settings::Settings;
use crate::ticket::{Admission, Certificate, SignedCertificate, SignedInvitation, Ticket};
use crate::view::View;

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Which world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// Nodes die for good, and others join.
    Churn,
    /// The network falls in two and heals.
    Split,
    /// A whole region goes dark and comes back.
    Region,
    /// A tenth of the weight lies.
    Byzantine,
}

/// What is asked of a run.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Nodes at the beginning.
    pub nodes: usize,
    /// Slices, as bits.
    pub slice_bits: u8,
    /// Copies wanted.
    pub copies: u8,
    /// Days that pass.
    pub days: f64,
    /// Mean life of a node, in days.
    pub life_days: f64,
    /// The seed.
    pub seed: u64,
    /// What happens.
    pub scenario: Scenario,
    /// Bytes of each slice at the beginning.
    pub slice_bytes: u64,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Report {
    /// What was asked.
    pub asked: Asked,
    /// Rules that were broken.
    pub broken: Vec<Broken>,
    /// Counts.
    pub figures: Figures,
    /// Nodes that died or fell away.
    pub departures: u64,
    /// Bytes that roster, watchers, ring and table take in one node.
    pub view_bytes: usize,
    /// Beside what their capacity earns: standard deviation of what nodes hold, and the most.
    pub load: (f64, f64),
    /// Bytes per second that a node receives for repair, on average.
    pub repair_bytes_per_s: f64,
    /// Losses per slice and year by the rate model, with the times measured here.
    pub loss_rate: f64,
    /// How long a copy takes beside the delay, in hours.
    pub copy_h: f64,
    /// Whether nodes had views of their own, and watched each other.
    pub full: bool,
}

/// Nodes with a view of their own up to here; beyond, all share one.
pub const FULL_NODES_MAX: usize = 1000;

/// A network of owners that are all invited: each node has its own.
pub struct Founding {
    /// The genesis.
    pub genesis: Arc<Genesis>,
    seed: u64,
    real: bool,
    ticket: Ticket,
}

impl Founding {
    /// A network; `real` signs with Ed25519.
    pub fn new(seed: u64, slice_bits: u8, copies: u8, real: bool) -> Founding {
        let seal = |number: u64| -> SealRef { new_seal(seed, number, real) };
        // The first node is long gone: every slice has moved on.
        let (founder, bearer, first) = (seal(u64::MAX), seal(u64::MAX - 1), seal(u64::MAX - 2));
        let genesis = Genesis {
            version: GENESIS_VERSION,
            name: "simulated".into(),
            slice_bits,
            copies,
            suffixes: Hash::default(),
            admission: vec![founder.key()],
            first: first.key(),
            made_ms: 0,
        };
        let invitation = SignedInvitation::new(genesis.id(), bearer.key(), u32::MAX, u64::MAX, founder.as_ref());
        let ticket = Ticket { invitation, secret: [0; 32], bootstrap: Vec::new(), name: None };
        Founding { genesis: Arc::new(genesis), seed, real, ticket }
    }

    /// One site is split by so many bits, if by any.
    fn split(&self, bits: u8, since_ms: u64) -> Option<Fact> {
        let founder = new_seal(self.seed, u64::MAX, self.real);
        let split = SignedSplit::new(self.genesis.id(), split::SITE, bits, since_ms, founder.as_ref());
        (bits > 0).then(|| Fact::Split(Arc::new(split)))
    }

    /// The seal of a node.
    pub fn seal(&self, number: usize) -> SealRef {
        new_seal(self.seed, number as u64, self.real)
    }

    /// The record of a node with its own owner.
    pub fn record(&self, number: usize, capacity_gb: u32, zone: &str, wall_ms: u64) -> NodeRecord {
        let (node, owner) = (self.seal(number), new_seal(self.seed, 1 << 40 | number as u64, self.real));
        let bearer = new_seal(self.seed, u64::MAX - 1, self.real);
        let admission = Admission::invited(&self.ticket, bearer.as_ref(), node.key(), owner.key(), number as u64);
        let certificate = Certificate {
            network: self.genesis.id(),
            node: node.key(),
            owner: owner.key(),
            capacity_gb,
            zone: zone.into(),
            not_after_ms: u64::MAX,
            admission,
        };
        NodeRecord {
            certificate: Arc::new(SignedCertificate::new(certificate, owner.as_ref())),
            sequence: 1,
            signed_ms: wall_ms,
            addresses: vec![std::net::SocketAddr::from(([10, 0, (number >> 8) as u8, number as u8], 7000))],
            relay: None,
            portal: None,
            protocol: crate::message::SPEAKS,
            standing: Standing::Staying,
            watchers: Vec::new(),
        }
    }
}

fn new_seal(seed: u64, number: u64, real: bool) -> SealRef {
    if real {
        let secret = Hash::of("secret", &[seed, number].map(u64::to_be_bytes).concat());
        Arc::new(Ed25519::from_secret(&secret.0))
    } else {
        Arc::new(Keyed::new(seed, number))
    }
}

/// How a world is filled.
#[derive(Clone, Debug)]
pub struct Filling {
    /// Nodes that are members from the beginning …
    pub nodes: usize,
    /// … and nodes that exist and may join later.
    pub spare: usize,
    /// Slices, as bits.
    pub slice_bits: u8,
    /// Copies wanted.
    pub copies: u8,
    /// Real signatures.
    pub real: bool,
    /// One view for all.
    pub shared: bool,
    /// Share of the weight that lies.
    pub liars: f64,
    /// Bytes of each slice at the beginning.
    pub slice_bytes: u64,
    /// Capacity of a node.
    pub capacity_gb: u32,
}

/// Slices of a world are where they are wished for: the genesis gave all of them to the first node, and epochs went by since.
const GROWN_EPOCH: Epoch = Epoch { generation: 0, number: 2 };

/// A world whose nodes are members, and whose slices are where they are wished for.
pub fn world(options: Options, filling: &Filling) -> World {
    let founding = Founding::new(options.seed, filling.slice_bits, filling.copies, filling.real);
    let (settings, protocol) = (options.settings.clone(), options.protocol);
    let mut chance = Chance::new(options.seed ^ 0x5eed);
    let mut world = World::new(options, founding.genesis.clone());
    let (mono_ms, wall_ms) = (world.now_ms, world.wall_ms());
    let mut base = View::new(founding.genesis.clone());
    let all = filling.nodes + filling.spare;
    let mut records: Vec<NodeRecord> = (0..all)
        .map(|number| {
            let zone = format!("z{}", number % 16);
            // Half of the capacity up to twice of it: places follow what is declared.
            let capacity = filling.capacity_gb / 2 + chance.below(u64::from(filling.capacity_gb)) as u32;
            NodeRecord { protocol, ..founding.record(number, capacity, &zone, wall_ms) }
        })
        .collect();
    let judge = founding.seal(0);
    if let Some(split) = founding.split(world.options.split_bits, wall_ms) {
        base.roster.learn(&split, &base.watchers, judge.as_ref(), mono_ms, wall_ms);
    }
    for (number, record) in records.iter().take(filling.nodes).enumerate() {
        let fact = Fact::Record(Arc::new(SignedRecord::new(record.clone(), founding.seal(number).as_ref())));
        base.roster.learn(&fact, &base.watchers, judge.as_ref(), mono_ms, wall_ms);
    }
    base.refresh(mono_ms, &settings);
    for (number, record) in records.iter_mut().take(filling.nodes).enumerate() {
        record.sequence += 1;
        record.watchers = base.watchers.marks_of(&base.roster, number as u32);
        let fact = Fact::Record(Arc::new(SignedRecord::new(record.clone(), founding.seal(number).as_ref())));
        base.roster.learn(&fact, &base.watchers, judge.as_ref(), mono_ms, wall_ms);
    }
    let network = founding.genesis.id();
    let links: Vec<Arc<SignedHolders>> = (0..founding.genesis.slices())
        .map(|slice| {
            let (wish, _) = base.wish(slice, |_| true);
            let nodes: Vec<Key> = wish.iter().map(|index| base.roster.key(*index)).collect();
            let holders = Holders { network, slice, epoch: GROWN_EPOCH, before: Hash::default(), nodes };
            // Signed by one of them, so that who comes later believes it.
            let first = founding.seal(wish[0] as usize);
            let signatures = vec![(first.key(), first.sign(&holders.ballot()))];
            let link = Arc::new(SignedHolders { holders, signatures, proofs: Vec::new() });
            base.note_epoch(&link);
            link
        })
        .collect();
    let actors = actors(&records[..filling.nodes], filling.liars, &mut chance);
    for (number, record) in records.into_iter().enumerate() {
        let actor = actors.get(number).copied().unwrap_or(Actor::Honest);
        world.add(founding.seal(number), record, Vec::new(), actor);
    }
    for link in &links {
        let extent = Extent {
            segment: Segment { writer: 1, number: 1, half: 0, generation: 0 },
            bytes: filling.slice_bytes,
            seal: Some(Hash::of("sealed", &link.holders.slice.to_be_bytes())),
        };
        let extents = if filling.slice_bytes == 0 { &[][..] } else { std::slice::from_ref(&extent) };
        for key in &link.holders.nodes {
            if let Some(node) = world.number(key) {
                world.give(node, link, extents);
            }
        }
        if filling.slice_bytes > 0 {
            world.auditor.acknowledged.insert((link.holders.slice, extent.segment), extent.bytes);
        }
    }
    if filling.shared {
        world.shared = Some(base);
        (0..filling.nodes).for_each(|node| world.start(node));
    } else {
        (0..filling.nodes).for_each(|node| world.start_with(node, Some(base.clone())));
    }
    world
}

/// Who lies, and how: nodes drawn by lot until they have this share of all weight, every way to lie as often as any other.
fn actors(records: &[NodeRecord], share: f64, chance: &mut Chance) -> Vec<Actor> {
    let weight = |record: &NodeRecord| f64::from(earned(record.certificate.certificate.capacity_gb));
    let mut actors = vec![Actor::Honest; records.len()];
    let mut left = share * records.iter().map(weight).sum::<f64>();
    let mut lot: Vec<(u64, usize)> = (0..records.len()).map(|number| (chance.number(), number)).collect();
    lot.sort_unstable();
    for ((_, number), liar) in lot.into_iter().zip(LIARS.into_iter().cycle()) {
        left -= weight(&records[number]);
        if left < 0.0 {
            break;
        }
        actors[number] = liar;
    }
    actors
}

/// Times for worlds of minutes instead of days.
pub fn brisk() -> Settings {
    Settings {
        ping_ms: 5000,
        silence_ms: 15_000,
        unseen_ms: MINUTE,
        compare_ms: 20_000,
        renew_ms: 2 * HOUR,
        expire_ms: DAY,
        lease_ms: 2 * MINUTE,
        rank_ms: 5000,
        recover_ms: 5 * MINUTE,
        repair_late_ms: 15 * MINUTE,
        repair_soon_ms: 5 * MINUTE,
        keep_ms: 20 * MINUTE,
        summary_ms: 10 * MINUTE,
        audit_ms: 20 * MINUTE,
        answer_ms: 3000,
        tail_ms: 500,
        ..Settings::default()
    }
}

/// Real times for what nodes do every few seconds, shorter ones for what takes days: for hundreds of nodes over an hour.
pub fn shortened() -> Settings {
    Settings {
        unseen_ms: 3 * MINUTE,
        lease_ms: 4 * MINUTE,
        recover_ms: 9 * MINUTE,
        repair_late_ms: 20 * MINUTE,
        repair_soon_ms: 9 * MINUTE,
        keep_ms: 15 * MINUTE,
        summary_ms: 20 * MINUTE,
        audit_ms: 30 * MINUTE,
        ..Settings::default()
    }
}

/// Slices that are crawled where every node watches others, as bits: all others only change hands …
const CRAWLED_BITS: u8 = 8;
/// … and in runs of days.
const CRAWLED_LONG_BITS: u8 = 2;

/// Bytes of a slice in large runs: a terabyte a node at 20,000 nodes, 2^20 slices and three copies.
pub const SLICE_BYTES: u64 = 6_360_000_000;

/// Runs a scenario and reports.
pub fn run(asked: &Asked, settings: Settings) -> Report {
    let full = asked.nodes <= FULL_NODES_MAX;
    let deaths = asked.nodes as f64 * asked.days / asked.life_days;
    let spare = match asked.scenario {
        Scenario::Churn => (deaths * 1.3) as usize + 16,
        _ => 0,
    };
    let options = Options {
        seed: asked.seed,
        settings: Settings { watching: full, ..settings },
        crawl_every: 1 << asked.slice_bits.saturating_sub(if full { CRAWLED_BITS } else { CRAWLED_LONG_BITS }),
        loss: if full { 0.01 } else { 0.0 },
        ..Options::default()
    };
    let filling = Filling {
        nodes: asked.nodes,
        spare,
        slice_bits: asked.slice_bits,
        copies: asked.copies,
        real: false,
        shared: !full,
        liars: if asked.scenario == Scenario::Byzantine { 0.1 } else { 0.0 },
        slice_bytes: asked.slice_bytes.max(1),
        capacity_gb: if full { 250 } else { 1000 },
    };
    let mut world = world(options, &filling);
    let load = load(&world, asked);
    let span_ms = (asked.days * DAY as f64) as u64;
    let departures = schedule(&mut world, asked, span_ms);
    world.run(span_ms);
    world.check_losses();
    report(world, asked, load, departures, full)
}

fn schedule(world: &mut World, asked: &Asked, span_ms: u64) -> u64 {
    let mut departures = 0;
    let mut chance = Chance::new(asked.seed ^ 0xfa11);
    match asked.scenario {
        Scenario::Churn | Scenario::Byzantine => {
            let life_ms = asked.life_days * DAY as f64;
            let mut spare = asked.nodes;
            let mut changes = Vec::new();
            for node in 0..asked.nodes {
                let after = chance.waiting(life_ms) as u64;
                if after >= span_ms {
                    continue;
                }
                departures += 1;
                world.plan(after, Plan::Lose(node));
                changes.push(after);
                if asked.scenario == Scenario::Churn && spare < world.nodes.len() {
                    // Somebody else joins within the day.
                    let joins = after + chance.below(DAY.min(span_ms / 2));
                    world.plan(joins, Plan::Join(spare));
                    changes.push(joins);
                    spare += 1;
                }
            }
            // Where nothing changes for a while, all know the same: who is gone is known to be after two minutes, and to everybody ten later.
            changes.push(span_ms);
            changes.sort_unstable();
            let quiet = changes.windows(2).filter(|two| two[1] - two[0] > 12 * MINUTE);
            quiet.for_each(|two| world.plan(two[0] + 12 * MINUTE, Plan::CompareRosters));
        }
        Scenario::Split => {
            let part: Vec<u8> = (0..asked.nodes).map(|_| u8::from(chance.happens(0.4))).collect();
            world.plan(span_ms / 6, Plan::Split(part));
            world.plan(span_ms / 2, Plan::Heal);
            world.plan(span_ms / 2 + 10 * MINUTE, Plan::CompareRosters);
        }
        Scenario::Region => {
            for node in (0..asked.nodes).filter(|node| node % 16 < 3) {
                departures += 1;
                world.plan(span_ms / 6, Plan::Crash(node));
                world.plan(span_ms / 2 + chance.below(5 * MINUTE), Plan::Restart(node));
                if world.shared.is_some() {
                    world.plan(span_ms / 6 + 30_000 + chance.below(30_000), Plan::Notice(node));
                }
            }
            world.plan(span_ms / 2 + 15 * MINUTE, Plan::CompareRosters);
        }
    }
    departures
}

/// What nodes hold beside what their capacity earns.
fn load(world: &World, asked: &Asked) -> (f64, f64) {
    let Some(view) = world.any_view() else { return (0.0, 0.0) };
    let mut held = vec![0u32; asked.nodes];
    for slice in 0..view.table.slices() {
        for index in view.table.holders(slice).iter() {
            held[*index as usize] += 1;
        }
    }
    let share =
        |index: usize| f64::from(earned(view.roster.record(index as u32).record.certificate.certificate.capacity_gb));
    let whole: f64 = (0..asked.nodes).map(share).sum();
    let copies = f64::from(view.table.slices()) * f64::from(asked.copies);
    // Weighted by share: what a terabyte of the network meets.
    let (mut variance, mut most) = (0.0, 0.0f64);
    for (index, count) in held.iter().enumerate() {
        let expected = copies * share(index) / whole;
        let ratio = f64::from(*count) / expected;
        variance += (ratio - 1.0).powi(2) * share(index) / whole;
        most = most.max(ratio);
    }
    (variance.sqrt(), most)
}

fn report(world: World, asked: &Asked, load: (f64, f64), departures: u64, full: bool) -> Report {
    let seconds = asked.days * 86_400.0;
    let repair_bytes_per_s = world.figures.copied_bytes as f64 / seconds / asked.nodes as f64;
    let settings = &world.options.settings;
    let hours = |ms: u64| ms as f64 / HOUR as f64;
    // How long the copy itself takes, beside the delay: as measured where two copies were left, else by bandwidth alone.
    let patient: Vec<u64> =
        world.figures.repaired_ms.iter().copied().filter(|ms| *ms >= settings.repair_late_ms).collect();
    let by_bandwidth = asked.slice_bytes as f64 / world.options.copy_bytes_per_s as f64 / 3600.0;
    let copy_h = mean(&patient).map_or(by_bandwidth, |ms| ms / HOUR as f64 - hours(settings.repair_late_ms));
    let late = hours(settings.repair_late_ms) + copy_h;
    let rates = Rates {
        copies: usize::from(asked.copies),
        life_days: asked.life_days,
        late_h: late,
        soon_h: hours(settings.repair_soon_ms) + copy_h,
    };
    Report {
        loss_rate: losses_per_slice_year(&rates),
        copy_h,
        view_bytes: world.any_view().map_or(0, View::memory_bytes),
        broken: world.auditor.broken,
        figures: world.figures,
        asked: asked.clone(),
        departures,
        load,
        repair_bytes_per_s,
        full,
    }
}

/// The mean of times.
pub fn mean(times: &[u64]) -> Option<f64> {
    if times.is_empty() { None } else { Some(times.iter().map(|time| *time as f64).sum::<f64>() / times.len() as f64) }
}

/// The time that this share of all are below.
pub fn percentile(times: &[u64], share: f64) -> Option<u64> {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    sorted.get(((sorted.len() as f64 * share) as usize).min(sorted.len().saturating_sub(1))).copied()
}
