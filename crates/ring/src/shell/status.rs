//! How a node stands, for people and machines.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use serde::Serialize;

use super::{Shell, Sums, lock};
use crate::fact::Standing;
use crate::genesis::Slice;
use crate::message::SPEAKS;
use crate::wire::Relayed;

/// A node as this one knows it.
#[derive(Clone, Debug, Serialize)]
pub struct Member {
    /// Its key.
    pub node: String,
    /// Whose it is.
    pub owner: String,
    /// Where it stands.
    pub zone: String,
    /// Room for copies, in gigabytes.
    pub capacity_gb: u32,
    /// Where it listens.
    pub addresses: Vec<String>,
    /// The relay through which it can be reached.
    pub relay: Option<String>,
    /// Where its portal answers the public.
    pub portal: Option<String>,
    /// The newest protocol that it speaks.
    pub protocol: u16,
    /// `here` (this node), `present`, `absent`, `leaving`, `left`, `retired`.
    pub state: &'static str,
    /// Slices that it holds.
    pub holds: u32,
    /// Where it stands on the circle, in thousandths of the way round.
    pub places: Vec<u16>,
}

/// A slice that is held here.
#[derive(Clone, Debug, Serialize)]
pub struct HeldSlice {
    /// Its number.
    pub slice: Slice,
    /// Since so many changes of its holders.
    pub epoch: String,
    /// Who holds it, in the order in which they should lead.
    pub holders: Vec<String>,
    /// Who leads it, as far as is known here.
    pub leader: Option<String>,
    /// Bytes of it here.
    pub bytes: u64,
    /// Holders that are known to have all of that, this node among them.
    pub copies: usize,
    /// A copy is being made there.
    pub copying_to: Option<String>,
    /// Bytes of it that are there.
    pub copied_bytes: u64,
    /// About how long that will take, in seconds.
    pub copying_left_s: Option<u64>,
    /// Holders that failed an audit.
    pub suspended: Vec<String>,
    /// The copy here is no longer wanted, and kept until others have proven theirs.
    pub surplus: bool,
}

/// How a node stands.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// The network's name …
    pub network: String,
    /// … and what names it for certain.
    pub id: String,
    /// This node.
    pub node: String,
    /// The protocols that it speaks: the newest and the oldest.
    pub speaks: (u16, u16),
    /// How many slices there are.
    pub slices: u32,
    /// How many copies each should have.
    pub copies: u8,
    /// All nodes.
    pub nodes: Vec<Member>,
    /// Whether enough others see this node, so that it may lead.
    pub acts: bool,
    /// Whether it cannot write and keeps silent.
    pub mute: bool,
    /// Whether its disk has no room: it leads nothing, and copies nothing.
    pub full: bool,
    /// Slices that this node leads.
    pub leads: u32,
    /// Slices with so many holders.
    pub held_by: BTreeMap<usize, u32>,
    /// Every slice has the holders that it should have, and all of them have all that this node has.
    pub settled: bool,
    /// Why it is not, in words.
    pub unsettled: Vec<String>,
    /// Slices held here.
    pub held: Vec<HeldSlice>,
    /// Fewer owners than copies: copies are on different nodes of the same owners.
    pub few_owners: bool,
    /// Bytes that went out and came in.
    pub traffic: (u64, u64),
    /// What the relay of this node did, if it serves one.
    pub relayed: Option<Relayed>,
    /// Bytes of segments that were copied here.
    pub pulled_bytes: u64,
    /// Bodies that slices share.
    pub bodies: Sums,
    /// How often what happened.
    pub counts: BTreeMap<String, u64>,
}

impl Shell {
    /// How this node stands.
    pub fn status(&self) -> Status {
        let now_ms = self.clock.now().mono_ms;
        let machine = lock(&self.machine);
        let (view, core) = (&machine.node.view, &machine.node.core);
        let roster = &view.roster;
        let genesis = self.genesis();
        let mut holds: BTreeMap<crate::key::Key, u32> = BTreeMap::new();
        let mut held_by: BTreeMap<usize, u32> = BTreeMap::new();
        let mut unsettled = Vec::new();
        let members = (0..roster.len() as u32).filter(|index| !roster.is_gone(*index));
        let present = members.clone().filter(|index| roster.is_present(*index)).count();
        let copies = usize::from(genesis.copies).min(present);
        for slice in 0..genesis.slices() {
            let holders = view.holders(slice);
            let there = holders.iter().filter(|node| roster.index(node).is_some_and(|index| roster.is_present(index)));
            if there.count() < copies || holders.len() != copies {
                unsettled.push(format!("slice {slice} has {} of {copies} holders", holders.len()));
            }
            *held_by.entry(holders.len()).or_default() += 1;
            holders.into_iter().for_each(|node| *holds.entry(node).or_default() += 1);
        }
        let held: Vec<HeldSlice> = core
            .holdings()
            .map(|(slice, holding)| HeldSlice {
                slice,
                epoch: holding.epoch().to_string(),
                holders: view.in_order(slice, &holding.latest().nodes).iter().map(|node| node.to_string()).collect(),
                leader: match core.leads(slice, now_ms) {
                    Some(_) => Some(self.key.to_string()),
                    // What this node granted to itself is not yet a lease.
                    None => {
                        holding.leader(now_ms).filter(|leader| *leader != self.key).map(|leader| leader.to_string())
                    }
                },
                bytes: holding.inventory().bytes(),
                copies: holding.copies(&self.key),
                copying_to: holding.copying().map(|(to, _)| to.to_string()),
                copied_bytes: holding.copied(now_ms).0,
                copying_left_s: holding.copied(now_ms).1.map(|ms| ms.div_ceil(1000)),
                suspended: (holding.suspended())
                    .filter(|node| holding.latest().nodes.contains(node))
                    .map(|node| node.to_string())
                    .collect(),
                surplus: holding.is_surplus(),
            })
            .collect();
        for one in held.iter().filter(|one| one.holders.contains(&self.key.to_string())) {
            if one.copies < one.holders.len() || one.copying_to.is_some() {
                unsettled.push(format!("slice {} is whole at {} of {}", one.slice, one.copies, one.holders.len()));
            }
            if !one.suspended.is_empty() {
                unsettled.push(format!("slice {}: the copy of {} is in doubt", one.slice, one.suspended.join(", ")));
            }
        }
        if self.full.load(Ordering::Relaxed) {
            unsettled.insert(0, "the disk of this node is full: it leads nothing, and copies nothing".into());
        }
        let owners: std::collections::BTreeSet<_> = members.map(|index| roster.record(index).owner()).collect();
        let nodes = (0..roster.len() as u32)
            .map(|index| {
                let (key, record) = (roster.key(index), &roster.record(index).record);
                let certificate = &record.certificate.certificate;
                let places = view.ring.places(roster, index).into_iter();
                Member {
                    node: key.to_string(),
                    owner: certificate.owner.to_string(),
                    zone: certificate.zone.clone(),
                    capacity_gb: certificate.capacity_gb,
                    addresses: record.addresses.iter().map(|address| address.to_string()).collect(),
                    relay: record.relay.clone(),
                    portal: record.portal.clone(),
                    protocol: record.protocol.0,
                    state: match record.standing {
                        Standing::Left => "left",
                        _ if roster.is_gone(index) => "retired",
                        _ if key == self.key => "here",
                        _ if !roster.is_present(index) => "absent",
                        Standing::Leaving => "leaving",
                        Standing::Staying => "present",
                    },
                    holds: holds.get(&key).copied().unwrap_or(0),
                    places: places.map(|place| ((u64::from(place) * 1000) >> 32) as u16).collect(),
                }
            })
            .collect();
        unsettled.truncate(16);
        let counts =
            lock(&self.counts).iter().map(|(what, count)| (format!("{what:?}").to_lowercase(), *count)).collect();
        Status {
            network: genesis.name.clone(),
            id: genesis.id().to_string(),
            node: self.key.to_string(),
            speaks: SPEAKS,
            slices: genesis.slices(),
            copies: genesis.copies,
            nodes,
            acts: core.may_act(),
            mute: self.mute.load(Ordering::Relaxed),
            full: self.full.load(Ordering::Relaxed),
            leads: core.holdings().filter(|(slice, _)| core.leads(*slice, now_ms).is_some()).count() as u32,
            held_by,
            settled: unsettled.is_empty(),
            unsettled,
            held,
            few_owners: owners.len() < usize::from(genesis.copies),
            traffic: self.wire.traffic(),
            relayed: self.wire.relayed(),
            pulled_bytes: self.pulled_bytes.load(Ordering::Relaxed),
            bodies: self.bodies.sums(),
            counts,
        }
    }
}
