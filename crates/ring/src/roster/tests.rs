use super::*;
use crate::key::{Ed25519, SealRef};
use crate::ticket::{Certificate, SignedInvitation, Ticket};
use crate::watch::Vote;

const WALL_MS: u64 = 1_800_000_000_000;

/// A network of so many nodes with real keys; node 0's owner is the founder, who owns all of them.
pub(crate) fn network(nodes: u8) -> (Genesis, Vec<SealRef>, impl Fn(usize, u64) -> SignedRecord) {
    let founder = Ed25519::from_secret(&[200; 32]);
    let seals: Vec<SealRef> =
        (0..nodes).map(|node| Arc::new(Ed25519::from_secret(&[node + 1; 32])) as SealRef).collect();
    let genesis = Genesis {
        version: crate::genesis::GENESIS_VERSION,
        name: "test".into(),
        slice_bits: 4,
        copies: 3,
        suffixes: Hash::default(),
        admission: vec![founder.key()],
        first: seals[0].key(),
        made_ms: WALL_MS,
    };
    let id = genesis.id();
    let keys = seals.clone();
    let record = move |node: usize, sequence: u64| {
        let certificate = Certificate {
            network: id,
            node: keys[node].key(),
            owner: founder.key(),
            capacity_gb: 1000,
            zone: String::new(),
            not_after_ms: u64::MAX,
            admission: Admission::Own,
        };
        let certificate = Arc::new(SignedCertificate::new(certificate, &founder));
        SignedRecord::new(
            NodeRecord {
                certificate,
                sequence,
                signed_ms: WALL_MS,
                addresses: vec!["10.0.0.1:7000".parse().expect("an address")],
                relay: None,
                portal: None,
                protocol: (1, 1),
                standing: Standing::Staying,
                watchers: Vec::new(),
            },
            keys[node].as_ref(),
        )
    };
    (genesis, seals, record)
}

fn learn(roster: &mut Roster, fact: &Fact) -> Learned {
    let watchers = Watchers::new(roster, roster.members(0, u64::MAX));
    roster.learn(fact, &watchers, &Ed25519::from_secret(&[99; 32]), 1000, WALL_MS)
}

fn full(nodes: u8) -> (Roster, Vec<SealRef>, impl Fn(usize, u64) -> SignedRecord) {
    let (genesis, seals, record) = network(nodes);
    let mut roster = Roster::new(Arc::new(genesis));
    for node in 0..usize::from(nodes) {
        assert_eq!(learn(&mut roster, &Fact::Record(Arc::new(record(node, 1)))), Learned::New);
    }
    (roster, seals, record)
}

#[test]
fn the_order_in_which_facts_arrive_does_not_matter() {
    let (genesis, _, record) = network(4);
    let mut facts: Vec<Fact> = (0..8).map(|at| Fact::Record(Arc::new(record(at % 4, 1 + at as u64 / 4)))).collect();
    let mut digests = Vec::new();
    for _ in 0..8 {
        facts.rotate_left(3);
        let mut roster = Roster::new(Arc::new(genesis.clone()));
        facts.iter().for_each(|fact| {
            learn(&mut roster, fact);
        });
        assert_eq!(roster.count(), 4, "an older record gives way");
        digests.push(roster.digest());
    }
    assert!(digests.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn records_of_strangers_forgers_and_the_future_are_refused() {
    let (mut roster, seals, record) = full(3);
    let refused = |learned: Learned| assert!(matches!(learned, Learned::Refused(_)), "{learned:?}");
    let mut forged = record(1, 2);
    forged.record.addresses.clear();
    refused(learn(&mut roster, &Fact::Record(Arc::new(forged))));
    let mut other = record(1, 2);
    other.signature = seals[2].sign(b"something else");
    refused(learn(&mut roster, &Fact::Record(Arc::new(other))));
    let mut early = record(1, 2).record;
    early.signed_ms = WALL_MS + AHEAD_MS_MAX + 1;
    refused(learn(&mut roster, &Fact::Record(Arc::new(SignedRecord::new(early, seals[1].as_ref())))));
    let stranger = Ed25519::from_secret(&[77; 32]);
    let mut certificate = record(1, 2).record.certificate.certificate.clone();
    certificate.owner = stranger.key();
    let mut of_stranger = record(1, 2).record;
    of_stranger.certificate = Arc::new(SignedCertificate::new(certificate, &stranger));
    refused(learn(&mut roster, &Fact::Record(Arc::new(SignedRecord::new(of_stranger, seals[1].as_ref())))));
    assert_eq!(learn(&mut roster, &Fact::Record(Arc::new(record(1, 1)))), Learned::Known);
}

#[test]
fn absence_needs_a_majority_of_watchers_and_a_newer_record_refutes_it() {
    let (mut roster, seals, record) = full(6);
    let network = roster.network();
    let node = seals[0].key();
    let proof = |voters: &[usize]| {
        let mut votes: Vec<Vote> =
            voters.iter().map(|voter| Vote::new(&network, &node, 1, WALL_MS, seals[*voter].as_ref())).collect();
        votes.sort_by_key(|vote| vote.by);
        Fact::Absence(Arc::new(AbsenceProof { node, sequence: 1, votes }))
    };
    assert!(matches!(learn(&mut roster, &proof(&[1, 2])), Learned::Refused(_)), "two of five are too few");
    assert!(matches!(learn(&mut roster, &proof(&[1, 2, 2])), Learned::Refused(_)), "nobody counts twice");
    assert!(matches!(learn(&mut roster, &proof(&[0, 1, 2])), Learned::Early(_)), "nobody watches itself");
    assert_eq!(learn(&mut roster, &proof(&[1, 2, 4])), Learned::New);
    let index = roster.index(&node).expect("a member");
    assert_eq!(roster.absent_since(index), Some(1000));
    assert_eq!([1999, 2000].map(|now_ms| roster.gone(index, now_ms, 1000)), [None, Some(Gone::Absent)]);
    assert_eq!(learn(&mut roster, &Fact::Record(Arc::new(record(0, 2)))), Learned::New);
    assert_eq!((roster.absent_since(index), roster.gone(index, u64::MAX, 1)), (None, None));
    assert_eq!(learn(&mut roster, &proof(&[1, 2, 4])), Learned::Known, "and it stays refuted");
}

#[test]
fn an_invitation_admits_as_many_as_it_says_whoever_is_heard_first() {
    let (genesis, seals, record) = network(3);
    let founder = Ed25519::from_secret(&[200; 32]);
    let bearer = Ed25519::from_secret(&[50; 32]);
    let ticket = Ticket {
        invitation: SignedInvitation::new(genesis.id(), bearer.key(), 1, WALL_MS + 1000, &founder),
        secret: [50; 32],
        bootstrap: vec![(seals[0].key(), "10.0.0.1:7000".parse().expect("an address"))],
        name: None,
    };
    assert_eq!(Ticket::parse(&ticket.to_text()).as_ref(), Ok(&ticket));
    assert!(Ticket::parse(&ticket.to_text()[..60]).is_err());
    let invited = |node: usize, used_ms: u64| {
        let owner = Ed25519::from_secret(&[60 + node as u8; 32]);
        let mut new = record(node, 1).record;
        let mut certificate = new.certificate.certificate.clone();
        certificate.owner = owner.key();
        certificate.admission = Admission::invited(&ticket, &bearer, certificate.node, owner.key(), used_ms);
        new.certificate = Arc::new(SignedCertificate::new(certificate, &owner));
        Fact::Record(Arc::new(SignedRecord::new(new, seals[node].as_ref())))
    };
    let (first, second) = (invited(1, WALL_MS), invited(2, WALL_MS + 1));
    let mut digests = Vec::new();
    for order in [[&first, &second], [&second, &first]] {
        let mut roster = Roster::new(Arc::new(genesis.clone()));
        for fact in order {
            learn(&mut roster, fact);
        }
        assert_eq!(roster.members(0, 1).map(|index| roster.key(index)).collect::<Vec<_>>(), [seals[1].key()]);
        digests.push(roster.digest());
    }
    assert_eq!(digests[0], digests[1]);
    let mut roster = Roster::new(Arc::new(genesis.clone()));
    assert!(matches!(learn(&mut roster, &invited(1, WALL_MS + 1000)), Learned::Refused(_)), "expired");
}

#[test]
fn only_the_owner_retires_a_node() {
    let (mut roster, seals, _) = full(3);
    let (network, node) = (roster.network(), seals[1].key());
    let by = |seal: &dyn Seal| Fact::Retirement(Arc::new(SignedRetirement::new(network, node, seal)));
    assert!(matches!(learn(&mut roster, &by(seals[2].as_ref())), Learned::Refused(_)));
    assert_eq!(learn(&mut roster, &by(&Ed25519::from_secret(&[200; 32]))), Learned::New);
    assert_eq!(roster.members(0, 1).count(), 2);
    let index = roster.index(&node).expect("a member once");
    assert_eq!(roster.gone(index, 0, u64::MAX), Some(Gone::ForGood));
}

#[test]
fn of_two_splits_of_a_site_the_earlier_counts_and_both_are_known_whoever_is_heard_first() {
    let (genesis, ..) = network(1);
    let (id, founder) = (genesis.id(), Ed25519::from_secret(&[200; 32]));
    let split = |bits: u8, since_ms: u64| Fact::Split(Arc::new(SignedSplit::new(id, 7, bits, since_ms, &founder)));
    let mut facts: Vec<Fact> = (1..=8).map(|part| split(3, WALL_MS + part)).chain([split(2, WALL_MS + 4)]).collect();
    let mut digests = Vec::new();
    for _ in 0..facts.len() {
        facts.rotate_left(2);
        let mut roster = Roster::new(Arc::new(genesis.clone()));
        facts.iter().for_each(|fact| {
            learn(&mut roster, fact);
        });
        let table = roster.split_table();
        assert_eq!(table.of(7), Some(skep_url::Split { bits: 3, since_ms: WALL_MS + 1 }));
        assert_eq!(table.also(7).collect::<Vec<_>>(), [2]);
        assert_eq!(roster.count(), 2);
        digests.push(roster.digest());
    }
    assert!(digests.windows(2).all(|pair| pair[0] == pair[1]));
}
