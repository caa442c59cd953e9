//! Holders that all ask for a lease in the same moment: one of them gets it.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

use skep_ring::fact::{Fact, SignedRecord};
use skep_ring::key::Seal;
use skep_ring::message::{Ballot, Refusal};
use skep_ring::shell::Membership;
use skep_ring::shell::membership::{Founding, Newcomer, first_record};
use skep_ring::ticket::{Admission, Certificate, SignedCertificate};
use skep_ring::{Action, Chance, Ed25519, Event, Hash, Key, Message, Node, Now, Settings};

const SLICES: u32 = 8;
const LATENCY_MS: u64 = 20;
const STEP_MS: u64 = 10;

/// Machines and what is on its way between them, in virtual time.
struct World {
    nodes: Vec<(Key, Node)>,
    chance: Chance,
    sent: VecDeque<(u64, Key, Key, Message)>,
    now_ms: u64,
}

impl World {
    fn now(&self) -> Now {
        Now { mono_ms: self.now_ms, wall_ms: 1_767_225_600_000 + self.now_ms }
    }

    fn tell(&mut self, at: usize, event: Event) {
        let now = self.now();
        let mut out = Vec::new();
        self.nodes[at].1.handle(event, now, &mut self.chance, &mut out);
        let from = self.nodes[at].0;
        for action in out {
            if let Action::Send { to, message } = action {
                self.sent.push_back((self.now_ms + LATENCY_MS, from, to, message));
            }
        }
    }

    fn run(&mut self, ms: u64) {
        let end = self.now_ms + ms;
        while self.now_ms < end {
            self.now_ms += STEP_MS;
            while self.sent.front().is_some_and(|(at, ..)| *at <= self.now_ms) {
                let (_, from, to, message) = self.sent.pop_front().expect("one is there");
                if let Some(at) = self.nodes.iter().position(|(key, _)| *key == to) {
                    self.tell(at, Event::Received { from, message });
                }
            }
            (0..self.nodes.len()).for_each(|at| self.tell(at, Event::Tick));
        }
    }

    /// Who leads each slice.
    fn leaders(&self) -> BTreeMap<u32, Vec<Key>> {
        let leads = |slice: u32| {
            let leading = self.nodes.iter().filter(|(_, node)| node.core.leads(slice, self.now_ms).is_some());
            leading.map(|(key, _)| *key).collect()
        };
        (0..SLICES).map(|slice| (slice, leads(slice))).collect()
    }
}

/// Three nodes that hold everything, and nobody has a lease.
fn settled() -> World {
    let listen: SocketAddr = "127.0.0.1:1".parse().unwrap();
    let new = Newcomer { capacity_gb: 1000, zone: String::new(), listen, relays: Vec::new() };
    // Nobody waits for anybody: all try in the same moment.
    let times: BTreeMap<String, u64> = [("rank".to_owned(), 1)].into();
    let founding = Founding { name: "duel".into(), slice_bits: 3, copies: 3, suffixes: Hash([0; 32]), times };
    let owner = Ed25519::from_secret(&[200; 32]);
    let seals: Vec<Arc<Ed25519>> = (1..4).map(|number| Arc::new(Ed25519::from_secret(&[number; 32]))).collect();
    let founded =
        Membership::found(founding, &new, seals[0].key(), &owner, [7; 32], 1_767_225_600_000).expect("a network");
    let settings: Settings = founded.settings().expect("settings");
    let genesis = founded.genesis.clone();
    let mut world = World { nodes: Vec::new(), chance: Chance::new(3), sent: VecDeque::new(), now_ms: 1_000 };
    let mut facts = Vec::new();
    for seal in &seals {
        let certificate = Certificate {
            network: genesis.id(),
            node: seal.key(),
            owner: owner.key(),
            capacity_gb: 1000,
            zone: String::new(),
            not_after_ms: u64::MAX / 4,
            admission: Admission::Own,
        };
        let certificate = Arc::new(SignedCertificate::new(certificate, &owner));
        let record = first_record(certificate, vec![listen], 1_767_225_600_000);
        facts.push(Fact::Record(Arc::new(SignedRecord::new(record.clone(), seal.as_ref()))));
        let now = world.now();
        let node = Node::new(genesis.clone(), seal.clone(), record, settings.clone(), Vec::new(), now);
        world.nodes.push((seal.key(), node));
    }
    (0..3).for_each(|at| world.tell(at, Event::Learn(facts.clone())));
    world.run(600_000);
    assert!(world.nodes.iter().all(|(_, node)| node.core.holdings().count() == SLICES as usize), "all hold all");
    // Leases lapse, because nobody wants them.
    world.run(1_200_000);
    world
}

impl World {
    /// Everybody wants to lead everything: one does.
    fn one_leads(&mut self) {
        for at in 0..3 {
            (0..SLICES).for_each(|slice| self.tell(at, Event::Wanted { slice, wanted: true }));
        }
        self.run(600_000);
        for (slice, leaders) in self.leaders() {
            assert_eq!(leaders.len(), 1, "slice {slice} is led by {leaders:?}");
        }
    }
}

#[test]
fn of_holders_that_ask_at_once_one_leads() {
    settled().one_leads();
}

#[test]
fn a_holder_that_names_the_highest_of_all_ballots_keeps_nobody_from_leading() {
    let mut world = settled();
    let liar = world.nodes[2].0;
    for (at, slice) in (0..2).flat_map(|at| (0..SLICES).map(move |slice| (at, slice))) {
        let epoch = world.nodes[at].1.core.holding(slice).expect("it is held").epoch();
        let ballot = Ballot { term: u64::MAX, by: liar };
        let asked = Message::LeaseAsk { slice, epoch, ballot, politeness: Default::default() };
        world.tell(at, Event::Received { from: liar, message: asked });
        let mine = Ballot { term: 1, by: world.nodes[at].0 };
        let refused = Message::LeaseRefuse { slice, ballot: mine, highest: u64::MAX, why: Refusal::Ballot };
        world.tell(at, Event::Received { from: liar, message: refused });
    }
    world.one_leads();
}
