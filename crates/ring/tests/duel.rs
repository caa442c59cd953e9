//! Holders that all ask for a lease in the same moment: one of them gets it.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

use skep_ring::epoch::{Epoch, Holders, SignedHolders};
use skep_ring::fact::{Fact, SignedRecord};
use skep_ring::key::Seal;
use skep_ring::message::{Ballot, Refusal, Topic};
use skep_ring::node::What;
use skep_ring::shell::Membership;
use skep_ring::shell::membership::{Founding, Newcomer, first_record};
use skep_ring::summary;
use skep_ring::ticket::{Admission, Certificate, SignedCertificate};
use skep_ring::{Action, Chance, Ed25519, Event, Hash, Key, Message, Node, Now, Settings};

const SLICES: u32 = 8;
const LATENCY_MS: u64 = 20;
const STEP_MS: u64 = 10;
/// As long as holders usually wait for each other.
const RANK_MS: u64 = 20_000;

/// Machines and what is on its way between them, in virtual time.
struct World {
    nodes: Vec<(Key, Node)>,
    chance: Chance,
    sent: VecDeque<(u64, Key, Key, Message)>,
    now_ms: u64,
    /// A member that holds nothing, and its seal.
    outside: Option<(Arc<Ed25519>, Node)>,
    seals: Vec<Arc<Ed25519>>,
    heard: Vec<Message>,
    /// Who asked whom whether it is there.
    pings: Vec<(Key, Key)>,
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
                if matches!(message, Message::Ping { .. }) {
                    self.pings.push((from, to));
                }
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
                if matches!(message, Message::LeaseAsk { .. } | Message::Hurry { .. }) {
                    self.heard.push(message.clone());
                }
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

/// Three nodes that hold everything, and nobody has a lease. Nobody waits for anybody: all try in the same moment.
fn settled() -> World {
    settled_with(1)
}

/// The same, where each waits so long for everybody who should lead before it.
fn settled_with(rank_ms: u64) -> World {
    let listen: SocketAddr = "127.0.0.1:1".parse().unwrap();
    let new = Newcomer { capacity_gb: 1000, zone: String::new(), listen, relays: Vec::new() };
    let times: BTreeMap<String, u64> = [("rank".to_owned(), rank_ms)].into();
    let founding = Founding { name: "duel".into(), slice_bits: 3, copies: 3, suffixes: Hash([0; 32]), times };
    let owner = Ed25519::from_secret(&[200; 32]);
    let seals: Vec<Arc<Ed25519>> = (1..5).map(|number| Arc::new(Ed25519::from_secret(&[number; 32]))).collect();
    let founded =
        Membership::found(founding, &new, seals[0].key(), &owner, [7; 32], 1_767_225_600_000).expect("a network");
    let settings: Settings = founded.settings().expect("settings");
    let genesis = founded.genesis.clone();
    let (nodes, sent) = (Vec::new(), VecDeque::new());
    let mut world = World {
        nodes,
        chance: Chance::new(3),
        sent,
        now_ms: 1_000,
        outside: None,
        seals: seals.clone(),
        heard: Vec::new(),
        pings: Vec::new(),
    };
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
        let now = world.now();
        let node = Node::new(genesis.clone(), seal.clone(), record.clone(), settings.clone(), Vec::new(), now);
        if world.nodes.len() == 3 {
            // Nobody is told of it: the three go on by themselves.
            let mut node = node;
            let mut all = facts.clone();
            all.push(Fact::Record(Arc::new(SignedRecord::new(record, seal.as_ref()))));
            node.handle(Event::Learn(all), now, &mut world.chance, &mut Vec::new());
            world.outside = Some((seal.clone(), node));
            continue;
        }
        facts.push(Fact::Record(Arc::new(SignedRecord::new(record, seal.as_ref()))));
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

/// Slices that each of the three leads, and whether each is led by whom the ring wishes for.
fn shares(world: &World) -> (Vec<usize>, bool) {
    let view = &world.nodes[0].1.view;
    let leaders = world.leaders();
    let wished = |slice: u32| view.roster.key(view.wish(slice, |_| true).0[0]);
    let as_wished = leaders.iter().all(|(slice, leading)| leading[..] == [wished(*slice)]);
    let share = |key: &Key| leaders.values().filter(|leading| leading.contains(key)).count();
    (world.nodes.iter().map(|(key, _)| share(key)).collect(), as_wished)
}

#[test]
fn who_led_before_the_others_came_hands_over_to_them() {
    let mut world = settled_with(RANK_MS);
    // The others hear of it too late to lead from the beginning.
    (0..SLICES).for_each(|slice| world.tell(0, Event::Wanted { slice, wanted: true }));
    world.run(60_000);
    assert_eq!(shares(&world).0, [SLICES as usize, 0, 0]);
    world.one_leads();
    world.run(1_200_000);
    let (shares, as_wished) = shares(&world);
    assert!(as_wished && shares.iter().all(|share| *share > 0), "{shares:?}");
    // Nobody asks for more than that: leases are renewed by who has them.
    let asked = world.heard.len();
    world.run(3_600_000);
    let ballots = |heard: &[Message]| -> std::collections::BTreeSet<Ballot> {
        let asked = heard.iter().filter_map(|message| match message {
            Message::LeaseAsk { ballot, .. } => Some(*ballot),
            _ => None,
        });
        asked.collect()
    };
    let (before, since) = (ballots(&world.heard[..asked]), ballots(&world.heard[asked..]));
    assert!(since.is_subset(&before), "leading went to and fro");
}

#[test]
fn who_leaves_a_lease_where_it_lies_is_offered_it_ever_more_seldom() {
    let mut world = settled_with(RANK_MS);
    let view = &world.nodes[0].1.view;
    let first: Vec<Key> = (0..SLICES).map(|slice| view.roster.key(view.wish(slice, |_| true).0[0])).collect();
    // The last of them wants nothing.
    for at in 0..2 {
        (0..SLICES).for_each(|slice| world.tell(at, Event::Wanted { slice, wanted: true }));
    }
    world.run(7_200_000);
    let idle = world.nodes[2].0;
    for (slice, leaders) in world.leaders() {
        assert!(leaders.len() <= 1 && !leaders.contains(&idle), "slice {slice} is led by {leaders:?}");
        assert!(first[slice as usize] == idle || leaders == [first[slice as usize]], "slice {slice}");
    }
    let its = |slice: u32| first[slice as usize] == idle;
    assert!((0..SLICES).any(its), "some slice should be led by it");
    // Three offers by each of two, in ten leases' time; each ends a lease, and somebody begins another.
    for slice in (0..SLICES).filter(|slice| its(*slice)) {
        let ballots: std::collections::BTreeSet<Ballot> = (world.heard.iter())
            .filter_map(|message| match message {
                Message::LeaseAsk { slice: of, ballot, .. } if *of == slice => Some(*ballot),
                _ => None,
            })
            .collect();
        assert!(ballots.len() <= 12, "slice {slice}: {} leases in two hours", ballots.len());
    }
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

fn linked(slice: u32, epoch: (u32, u32), before: Hash, nodes: Vec<Key>, network: Hash, by: &Ed25519) -> SignedHolders {
    let epoch = Epoch { generation: epoch.0, number: epoch.1 };
    let holders = Holders { network, slice, epoch, before, nodes };
    let signatures = vec![(by.key(), by.sign(&holders.ballot()))];
    SignedHolders { holders, signatures, proofs: Vec::new() }
}

#[test]
fn an_epoch_that_one_member_made_up_is_believed_by_nobody() {
    let mut world = settled();
    let now = world.now();
    let (_, mut node) = world.outside.take().expect("one is outside");
    let [first, liar, other] = [0, 1, 2].map(|at: usize| world.seals[at].clone());
    let network = node.view.roster.network();
    let mut chance = Chance::new(1);
    let mut tell = |node: &mut Node, from: &Ed25519, message: Message| {
        let mut out = Vec::new();
        node.handle(Event::Received { from: from.key(), message }, now, &mut chance, &mut out);
        out
    };
    let known = |node: &Node| (node.view.table.epoch(0), node.view.holders(0));
    let begun = (Epoch::default(), vec![first.key()]);
    assert_eq!(known(&node), begun);
    for epoch in [(1000, 1), (1000, 1000), (0, 1), (0, 7), (1, 1)] {
        let forged = Arc::new(linked(0, epoch, Hash::default(), vec![liar.key()], network, &liar));
        tell(&mut node, &liar, Message::Epochs(vec![forged.clone()]));
        tell(&mut node, &liar, Message::EpochHint { slice: 0, epoch: forged.holders.epoch, nodes: vec![liar.key()] });
        tell(&mut node, &liar, Message::Adopt { epoch: forged, extents: Vec::new() });
        assert_eq!(known(&node), begun, "{epoch:?}");
        assert!(!node.core.has(0), "{epoch:?}");
    }
    // Also one that is known already has only the holders that are known.
    let forged = Arc::new(linked(0, (0, 0), Hash::default(), vec![liar.key()], network, &liar));
    tell(&mut node, &liar, Message::Adopt { epoch: forged, extents: Vec::new() });
    assert!(!node.core.has(0));

    // What follows from what is known is believed, whoever passes it on.
    let zero = node.view.first_epoch(0).holders.hash();
    let one = Arc::new(linked(0, (0, 1), zero, vec![first.key(), other.key()], network, &first));
    tell(&mut node, &liar, Message::Epochs(vec![one.clone()]));
    assert_eq!(known(&node), (one.holders.epoch, vec![first.key(), other.key()]));
    tell(&mut node, &other, Message::Adopt { epoch: one, extents: Vec::new() });
    assert!(node.core.has(0));

    // Where the links between are forgotten, the word of a majority of the watchers counts, and no single one.
    let (slice, epoch) = (1, Epoch { generation: 0, number: 99 });
    let hint = || Message::EpochHint { slice, epoch, nodes: vec![other.key()] };
    tell(&mut node, &liar, hint());
    tell(&mut node, &liar, hint());
    assert_eq!(node.view.table.epoch(slice), Epoch::default());
    tell(&mut node, &other, hint());
    assert_eq!((node.view.table.epoch(slice), node.view.holders(slice)), (epoch, vec![other.key()]));
}

#[test]
fn a_holder_whose_record_comes_after_its_epoch_is_found_in_the_table() {
    let mut world = settled();
    let (seal, newcomer) = world.outside.take().expect("one is outside");
    let before = world.nodes[2].1.core.holding(0).expect("it is held").latest().clone();
    let nodes: Vec<Key> = before.nodes.iter().copied().chain([seal.key()]).collect();
    let epoch = Epoch { generation: before.epoch.generation, number: before.epoch.number + 1 };
    let holders = Holders { network: before.network, slice: 0, epoch, before: before.hash(), nodes: nodes.clone() };
    let signatures = world.seals[..2].iter().map(|seal| (seal.key(), seal.sign(&holders.ballot()))).collect();
    let link = Arc::new(SignedHolders { holders, signatures, proofs: Vec::new() });
    let from = world.nodes[0].0;
    let known = |world: &World| (world.nodes[2].1.view.table.epoch(0), world.nodes[2].1.view.holders(0));
    world.tell(2, Event::Received { from, message: Message::Epochs(vec![link]) });
    assert_eq!(known(&world), (epoch, before.nodes), "it has no number yet");
    // Tables agree by now, as far as anybody compares them: nobody tells of the epoch again.
    let record = newcomer.view.roster.record_of(&seal.key()).expect("its record").clone();
    world.tell(2, Event::Received { from, message: Message::Facts(vec![Fact::Record(record)]) });
    world.tell(2, Event::Tick);
    assert_eq!(known(&world), (epoch, nodes));
}

#[test]
fn an_epoch_that_came_with_the_wish_for_a_copy_stands_in_the_table_and_its_holders_are_asked_in_turn() {
    let mut world = settled();
    let mut now = world.now();
    let (_, mut node) = world.outside.take().expect("one is outside");
    let [first, other] = [0, 2].map(|at: usize| world.seals[at].clone());
    let mut chance = Chance::new(1);
    let mut tell = |node: &mut Node, now: Now, message: Message| {
        let mut out = Vec::new();
        node.handle(Event::Received { from: first.key(), message }, now, &mut chance, &mut out);
        out
    };
    let zero = node.view.first_epoch(0).holders.hash();
    let holders = vec![first.key(), other.key()];
    let one = Arc::new(linked(0, (0, 1), zero, holders.clone(), node.view.roster.network(), &first));
    // What was said before it is lost.
    tell(&mut node, now, Message::Adopt { epoch: one.clone(), extents: Vec::new() });
    assert!(node.core.has(0));
    assert_eq!((node.view.table.epoch(0), node.view.holders(0)), (one.holders.epoch, holders.clone()));

    // Of an epoch between which and its own links are missing it asks one holder after the other: each of them may be away.
    let epoch = Epoch { generation: 0, number: 9 };
    let mut asked: Vec<Key> = Vec::new();
    for _ in 0..4 {
        now.mono_ms += 60_000;
        let out = tell(&mut node, now, Message::EpochHint { slice: 0, epoch, nodes: holders.clone() });
        asked.extend(out.into_iter().filter_map(|action| match action {
            Action::Send { to, message: Message::EpochAsk { .. } } => Some(to),
            _ => None,
        }));
    }
    assert!(holders.iter().all(|holder| asked.contains(holder)), "{asked:?}");
}

#[test]
fn who_does_not_lead_says_nothing_about_politeness_and_hands_on_what_is_to_be_repaired() {
    let mut world = settled();
    world.one_leads();
    let leader = world.leaders()[&0][0];
    let at = world.nodes.iter().position(|(key, _)| *key != leader).expect("another holder");
    let said = |world: &World| world.nodes[at].1.core.holding(0).expect("it is held").politeness();
    let politeness = |byte: u8| -> skep_ring::message::Politeness { Arc::from(&[byte][..]) };
    let ballot = |world: &World, by: Key| {
        let asked = world.heard.iter().rev().find_map(|message| match message {
            Message::LeaseAsk { slice: 0, ballot, .. } if ballot.by == by => Some(*ballot),
            _ => None,
        });
        asked.unwrap_or(Ballot { term: 1, by })
    };
    let before = said(&world);
    let others = [world.seals[3].key(), world.nodes[at].0].into_iter().chain(world.nodes.iter().map(|(key, _)| *key));
    for from in others.filter(|key| *key != leader).collect::<Vec<_>>() {
        let message = Message::LeaseRelease { slice: 0, ballot: ballot(&world, from), politeness: politeness(9) };
        world.tell(at, Event::Received { from, message });
        assert_eq!(said(&world), before, "only who leads knows");
    }
    let message = Message::LeaseRelease { slice: 0, ballot: ballot(&world, leader), politeness: politeness(7) };
    world.tell(at, Event::Received { from: leader, message });
    assert!(said(&world).contains(&politeness(7)));

    let follower = world.nodes.iter().position(|(key, _)| world.leaders()[&1][0] != *key).expect("a follower");
    world.tell(follower, Event::Repair { slice: 1 });
    world.run(1_000);
    assert!(world.heard.contains(&Message::Hurry { slice: 1 }), "the leader hears of it");
}

#[test]
fn a_node_whose_key_another_machine_uses_says_so_and_leads_no_more() {
    let mut world = settled();
    world.one_leads();
    let key = world.leaders()[&0][0];
    let at = world.nodes.iter().position(|(node, _)| *node == key).expect("it leads");
    let now = world.now();
    let mut noted = 0;
    for _ in 0..4 {
        let mut out = Vec::new();
        let event = Event::Received { from: key, message: Message::HasAsk { slice: 0 } };
        world.nodes[at].1.handle(event, now, &mut world.chance, &mut out);
        noted += out.iter().filter(|action| matches!(action, Action::Note(note) if note.what == What::Twin)).count();
    }
    // A record that this machine did not sign is a sign of it, too.
    let mut record = world.nodes[at].1.view.roster.record_of(&key).expect("its record").record.clone();
    record.sequence += 100;
    let seal = world.seals.iter().find(|seal| seal.key() == key).expect("its seal");
    let foreign = Fact::Record(Arc::new(SignedRecord::new(record, seal.as_ref())));
    let mut out = Vec::new();
    let event = Event::Received { from: world.nodes[(at + 1) % 3].0, message: Message::Facts(vec![foreign]) };
    world.nodes[at].1.handle(event, now, &mut world.chance, &mut out);
    noted += out.iter().filter(|action| matches!(action, Action::Note(note) if note.what == What::Twin)).count();
    assert_eq!(noted, 5);
    world.run(1_800_000);
    assert!(!world.nodes[at].1.core.may_act());
    assert!(world.leaders().values().all(|leaders| !leaders.contains(&key)), "{:?}", world.leaders());
}

#[test]
fn a_stranger_learns_nothing_before_it_has_said_who_it_is() {
    let mut world = settled();
    let (seal, mut stranger) = world.outside.take().expect("one is outside");
    let (key, asked) = (seal.key(), world.nodes[0].0);
    let now = world.now();
    let told = |world: &mut World, message: Message| -> Vec<Message> {
        world.tell(0, Event::Received { from: key, message });
        let (theirs, others): (VecDeque<_>, VecDeque<_>) = world.sent.drain(..).partition(|(_, _, to, _)| *to == key);
        world.sent = others;
        theirs.into_iter().map(|(.., message)| message).collect()
    };
    let hashes: Vec<Hash> = world.nodes[0].1.view.roster.hashes().collect();
    assert_eq!(told(&mut world, Message::FactsAsk(hashes)), []);
    let sealed = summary::begin(std::iter::empty()).expect("a frame");
    let compare = |topic| Message::Reconcile { topic, answer: false, frame: sealed.clone() };
    assert_eq!(told(&mut world, compare(Topic::Slice(0))), []);
    // Facts about others are not taken from it either.
    let about_others = world.nodes[1].1.view.roster.record_of(&world.nodes[1].0).expect("a record").clone();
    let nobody = Ed25519::from_secret(&[66; 32]).key();
    world.tell(0, Event::Received { from: nobody, message: Message::Facts(vec![Fact::Record(about_others)]) });
    assert_eq!(told(&mut world, compare(Topic::Roster)), [Message::FactsAsk(Vec::new())], "it is asked who it is");

    // A newcomer whose record was lost says it then, and compares like everybody.
    let mut out = Vec::new();
    let mut chance = Chance::new(1);
    stranger.handle(
        Event::Received { from: asked, message: Message::FactsAsk(Vec::new()) },
        now,
        &mut chance,
        &mut out,
    );
    let said = out.into_iter().find_map(|action| match action {
        Action::Send { to, message: message @ Message::Facts(_) } if to == asked => Some(message),
        _ => None,
    });
    told(&mut world, said.expect("its record"));
    assert!(world.nodes[0].1.view.roster.index(&key).is_some());
    let answers = told(&mut world, compare(Topic::Roster));
    assert!(answers.iter().any(|it| matches!(it, Message::Reconcile { answer: true, .. })), "{answers:?}");
}

#[test]
fn of_two_who_watch_each_other_one_asks_whether_the_other_is_there() {
    let mut world = settled();
    let ping_ms = Settings::default().ping_ms;
    // Who asks whom how often within twenty times that long; what one of them says may get lost.
    let asked = |world: &mut World, lost: Option<Key>| {
        world.pings.clear();
        for _ in 0..20 * ping_ms / STEP_MS {
            world.sent.retain(|(_, from, ..)| Some(*from) != lost);
            world.run(STEP_MS);
        }
        let mut asked: BTreeMap<(Key, Key), usize> = BTreeMap::new();
        world.pings.iter().for_each(|pair| *asked.entry(*pair).or_default() += 1);
        asked
    };
    let mut keys: Vec<Key> = world.nodes.iter().map(|(key, _)| *key).collect();
    keys.sort();
    let pairs = [(keys[0], keys[1]), (keys[0], keys[2]), (keys[1], keys[2])];
    let quiet = asked(&mut world, None);
    // Now and then one compares what it knows with somebody, which looks the same.
    for (lower, higher) in pairs {
        assert!(quiet[&(lower, higher)] >= 19, "as often as ever: {quiet:?}");
        assert!(
            quiet.get(&(higher, lower)).is_none_or(|times| *times <= 8),
            "the lower key asks the higher: {quiet:?}"
        );
    }
    assert!(world.nodes.iter().all(|(_, node)| node.core.may_act()), "all have heard each other");
    // Whoever is not asked any more asks.
    let lost = asked(&mut world, Some(keys[0]));
    for higher in [keys[1], keys[2]] {
        assert!(lost[&(higher, keys[0])] >= 16, "{lost:?}");
    }
    assert!(lost.get(&(keys[2], keys[1])).is_none_or(|times| *times <= 8), "the others need no more: {lost:?}");
}
