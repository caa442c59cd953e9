//! Everybody: signed facts about nodes, the same on every node in the end.
//!
//! A fact is signed by whom it concerns (a record by its node, a retirement by its owner) or by those who may judge (an
//! absence by its watchers). Of two facts about one thing one is newer by its own numbers, never by when it arrived, so
//! rosters that have heard the same facts are equal. The digest is the sum of the hashes of all facts held.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;

use crate::fact::{Fact, NodeRecord, SignedRecord, SignedRetirement, SignedSplit, Split, Standing};
use crate::genesis::{Genesis, NetworkId};
use crate::key::{Hash, Key, Seal, signed};
use crate::limits::{ADDRESSES_MAX, AHEAD_MS_MAX, NODES_MAX, RECORD_URL_BYTES_MAX, WATCHERS};
use crate::ticket::{Admission, SignedCertificate};
use crate::watch::{AbsenceProof, Watchers};

/// What became of a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learned {
    /// It is news, and was taken in.
    New,
    /// It was known, or something newer was.
    Known,
    /// It is not believed; the reason is for the log.
    Refused(&'static str),
    /// It cannot be judged before more is known.
    Early(&'static str),
}

/// A small number for a node, good in this process only; a node keeps its number for ever.
pub type Index = u32;

#[derive(Clone)]
struct Entry {
    record: Arc<SignedRecord>,
    record_hash: Hash,
    owner: u32,
    zone: u32,
    /// Others used its invitation earlier, and there were no more uses.
    displaced: bool,
    absence: Option<(Arc<AbsenceProof>, Hash, u64)>,
    retired: Option<(Arc<SignedRetirement>, Hash)>,
}

/// All facts, by node.
#[derive(Clone)]
pub struct Roster {
    genesis: Arc<Genesis>,
    network: NetworkId,
    entries: Vec<Entry>,
    index: HashMap<Key, Index>,
    marks: HashMap<u64, Index>,
    owners: HashMap<Key, u32>,
    zones: HashMap<String, u32>,
    /// By bearer of an invitation: who used it, the first first.
    users: HashMap<Key, BTreeSet<(u64, Key, Index)>>,
    splits: BTreeMap<(u32, u8), (Arc<SignedSplit>, Hash)>,
    digest: [u64; 4],
    facts: usize,
    members_version: u64,
}

impl Roster {
    /// Nobody yet.
    pub fn new(genesis: Arc<Genesis>) -> Roster {
        let network = genesis.id();
        Roster {
            genesis,
            network,
            entries: Vec::new(),
            index: HashMap::new(),
            marks: HashMap::new(),
            owners: HashMap::new(),
            zones: HashMap::from([(String::new(), 0)]),
            users: HashMap::new(),
            splits: BTreeMap::new(),
            digest: [0; 4],
            facts: 0,
            members_version: 0,
        }
    }

    /// What the network is.
    pub fn genesis(&self) -> &Genesis {
        &self.genesis
    }

    /// Its name.
    pub fn network(&self) -> NetworkId {
        self.network
    }

    /// Counts comings and goings of members, so that what is derived from them knows when to look again.
    pub fn members_version(&self) -> u64 {
        self.members_version
    }

    /// A small number for the owner of a node, equal for nodes of one owner.
    pub fn owner_number(&self, index: Index) -> u32 {
        self.entries[index as usize].owner
    }

    /// A small number for the zone of a node; 0 if it names none.
    pub fn zone_number(&self, index: Index) -> u32 {
        self.entries[index as usize].zone
    }

    /// The sum of the hashes of all facts: equal digests, equal rosters.
    pub fn digest(&self) -> Hash {
        let mut bytes = [0; 32];
        for (part, lane) in bytes.chunks_exact_mut(8).zip(self.digest) {
            part.copy_from_slice(&lane.to_be_bytes());
        }
        Hash(bytes)
    }

    /// Nodes known, whatever their standing.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nobody is known.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The number of a node.
    pub fn index(&self, node: &Key) -> Option<Index> {
        self.index.get(node).copied()
    }

    /// The node whose key begins with these bytes.
    pub fn marked(&self, mark: u64) -> Option<Index> {
        self.marks.get(&mark).copied()
    }

    /// The node of a number.
    pub fn key(&self, index: Index) -> Key {
        self.entries[index as usize].record.node()
    }

    /// What a node says of itself.
    pub fn record(&self, index: Index) -> &Arc<SignedRecord> {
        &self.entries[index as usize].record
    }

    /// What a node says of itself.
    pub fn record_of(&self, node: &Key) -> Option<&Arc<SignedRecord>> {
        self.index(node).map(|index| self.record(index))
    }

    /// Since when a node is known to be absent, by the own monotonic clock.
    pub fn absent_since(&self, index: Index) -> Option<u64> {
        self.entries[index as usize].absence.as_ref().map(|(_, _, since)| *since)
    }

    /// The proof that a node is absent.
    pub fn absence(&self, index: Index) -> Option<&Arc<AbsenceProof>> {
        self.entries[index as usize].absence.as_ref().map(|(proof, ..)| proof)
    }

    /// Whether its owner took it out, or it left by itself.
    pub fn is_gone(&self, index: Index) -> bool {
        let entry = &self.entries[index as usize];
        entry.displaced || entry.retired.is_some() || entry.record.record.standing == Standing::Left
    }

    /// Whether it is known to be neither gone nor absent.
    pub fn is_present(&self, index: Index) -> bool {
        !self.is_gone(index) && self.entries[index as usize].absence.is_none()
    }

    /// Members that count: neither gone nor proven absent for longer than `expire_ms`.
    pub fn members(&self, now_ms: u64, expire_ms: u64) -> impl Iterator<Item = Index> + '_ {
        (0..self.entries.len() as Index).filter(move |index| {
            !self.is_gone(*index)
                && self.absent_since(*index).is_none_or(|since| now_ms.saturating_sub(since) < expire_ms)
        })
    }

    /// Sites that are split, and by how many bits.
    pub fn splits(&self) -> impl Iterator<Item = &Split> + '_ {
        self.splits.values().map(|(split, _)| &split.split)
    }

    /// Takes in a fact, or says why not. `mono_ms` is remembered as the beginning of an absence, `wall_ms` judges dates.
    pub fn learn(&mut self, fact: &Fact, watchers: &Watchers, seal: &dyn Seal, mono_ms: u64, wall_ms: u64) -> Learned {
        match fact {
            Fact::Record(record) => self.learn_record(record, seal, wall_ms),
            Fact::Absence(proof) => self.learn_absence(proof, watchers, seal, mono_ms),
            Fact::Retirement(retirement) => self.learn_retirement(retirement, seal),
            Fact::Split(split) => self.learn_split(split, seal),
        }
    }

    fn learn_record(&mut self, signed_record: &Arc<SignedRecord>, seal: &dyn Seal, wall_ms: u64) -> Learned {
        let record = &signed_record.record;
        let node = signed_record.node();
        let known = self.index(&node);
        if let Some(index) = known {
            let held = &self.entries[index as usize];
            if held.displaced {
                return Learned::Refused("the invitation is used up");
            }
            let order = |r: &NodeRecord| (r.certificate.certificate.not_after_ms, r.sequence);
            // Two records of one sequence: two machines with one key, or a node that says two things. One of them is kept
            // everywhere, by its hash, so that rosters still agree.
            let (ours, theirs) = (order(&held.record.record), order(record));
            if theirs < ours || (theirs == ours && Fact::Record(signed_record.clone()).hash() <= held.record_hash) {
                return Learned::Known;
            }
        } else if self.entries.len() >= NODES_MAX {
            return Learned::Refused("the roster is full");
        }
        if record.addresses.len() > ADDRESSES_MAX
            || record.watchers.len() > WATCHERS
            || [&record.relay, &record.portal].into_iter().flatten().any(|url| url.len() > RECORD_URL_BYTES_MAX)
        {
            return Learned::Refused("the record is larger than records are");
        }
        if record.signed_ms > wall_ms.saturating_add(AHEAD_MS_MAX) {
            return Learned::Refused("the record is from the future");
        }
        let certificate = &record.certificate;
        let same_certificate =
            known.is_some_and(|index| self.record(index).record.certificate.as_ref() == certificate.as_ref());
        if !same_certificate && let Err(reason) = certificate.check(&self.genesis, &self.network, seal) {
            return Learned::Refused(reason);
        }
        if certificate.certificate.not_after_ms <= record.signed_ms {
            return Learned::Refused("the certificate has run out");
        }
        if !seal.verify(&node, &signed("skep record", record), &signed_record.signature) {
            return Learned::Refused("the node's signature is wrong");
        }
        if known.is_none() && !self.invitation_has_room(certificate) {
            return Learned::Refused("the invitation is used up");
        }
        let hash = Fact::Record(signed_record.clone()).hash();
        match known {
            Some(index) => {
                let left = record.standing == Standing::Left;
                self.members_version += u64::from(left);
                let entry = &mut self.entries[index as usize];
                let before = std::mem::replace(&mut entry.record_hash, hash);
                entry.record = signed_record.clone();
                // It has answered what was said about an earlier record of it.
                let refuted =
                    entry.absence.take_if(|(proof, ..)| proof.sequence < record.sequence).map(|(_, hash, _)| hash);
                self.subtract(before);
                if let Some(refuted) = refuted {
                    self.subtract(refuted);
                }
            }
            None => {
                let index = self.entries.len() as Index;
                let (owners, zones) = (self.owners.len() as u32, self.zones.len() as u32);
                let zone = &certificate.certificate.zone;
                self.entries.push(Entry {
                    record: signed_record.clone(),
                    record_hash: hash,
                    owner: *self.owners.entry(signed_record.owner()).or_insert(owners),
                    zone: self.zones.get(zone).copied().unwrap_or(zones),
                    displaced: false,
                    absence: None,
                    retired: None,
                });
                self.zones.entry(zone.clone()).or_insert(zones);
                self.index.insert(node, index);
                self.marks.insert(crate::watch::mark(&node), index);
                self.members_version += 1;
            }
        }
        self.add(hash);
        if known.is_none() {
            self.displace(certificate, self.entries.len() as Index - 1);
        }
        Learned::New
    }

    /// Somebody used the invitation earlier than others that are here: the last of them goes, as if it had never been let in.
    fn displace(&mut self, certificate: &SignedCertificate, index: Index) {
        let Admission::Invited { invitation, used_ms, .. } = &certificate.certificate.admission else { return };
        let users = self.users.entry(invitation.invitation.bearer).or_default();
        users.insert((*used_ms, certificate.certificate.node, index));
        if users.len() <= invitation.invitation.uses as usize {
            return;
        }
        if let Some((_, _, last)) = users.pop_last() {
            let entry = &mut self.entries[last as usize];
            entry.displaced = true;
            let (absence, retired) = (entry.absence.take(), entry.retired.take());
            let hashes = [Some(entry.record_hash), absence.map(|(_, hash, _)| hash), retired.map(|(_, hash)| hash)];
            hashes.into_iter().flatten().for_each(|hash| self.subtract(hash));
            self.members_version += 1;
        }
    }

    /// Of more nodes than an invitation has uses, those that used it first stay. The order is by time and key, so that all agree.
    fn invitation_has_room(&self, certificate: &SignedCertificate) -> bool {
        let Admission::Invited { invitation, used_ms, .. } = &certificate.certificate.admission else { return true };
        let Some(users) = self.users.get(&invitation.invitation.bearer) else { return invitation.invitation.uses > 0 };
        let full = users.len() >= invitation.invitation.uses as usize;
        let mine = (*used_ms, certificate.certificate.node);
        !full || users.last().is_some_and(|(used_ms, node, _)| mine < (*used_ms, *node))
    }

    fn learn_absence(
        &mut self,
        proof: &Arc<AbsenceProof>,
        watchers: &Watchers,
        seal: &dyn Seal,
        mono_ms: u64,
    ) -> Learned {
        let Some(index) = self.index(&proof.node) else { return Learned::Early("nobody has heard of this node") };
        let entry = &self.entries[index as usize];
        if entry.displaced {
            return Learned::Known;
        }
        if proof.sequence < entry.record.record.sequence {
            return Learned::Known;
        }
        if proof.sequence > entry.record.record.sequence {
            return Learned::Early("it is about a newer record");
        }
        let hash = Fact::Absence(proof.clone()).hash();
        if entry.absence.as_ref().is_some_and(|(_, held, _)| *held <= hash) {
            return Learned::Known;
        }
        if let Err(refusal) = watchers.check(self, index, proof, seal) {
            return refusal;
        }
        let entry = &mut self.entries[index as usize];
        let since = entry.absence.as_ref().map_or(mono_ms, |(_, _, since)| *since);
        let before = entry.absence.replace((proof.clone(), hash, since));
        if let Some((_, before, _)) = before {
            self.subtract(before);
        }
        self.add(hash);
        Learned::New
    }

    fn learn_retirement(&mut self, fact: &Arc<SignedRetirement>, seal: &dyn Seal) -> Learned {
        let retirement = &fact.retirement;
        let Some(index) = self.index(&retirement.node) else { return Learned::Early("nobody has heard of this node") };
        let hash = Fact::Retirement(fact.clone()).hash();
        let entry = &self.entries[index as usize];
        if entry.displaced {
            return Learned::Known;
        }
        if entry.retired.as_ref().is_some_and(|(_, held)| *held <= hash) {
            return Learned::Known;
        }
        let may = retirement.by == entry.record.owner() || self.genesis.admission.contains(&retirement.by);
        if retirement.network != self.network || !may {
            return Learned::Refused("only its owner retires a node");
        }
        if !seal.verify(&retirement.by, &signed("skep retirement", retirement), &fact.signature) {
            return Learned::Refused("the owner's signature is wrong");
        }
        if let Some((_, before)) = self.entries[index as usize].retired.replace((fact.clone(), hash)) {
            self.subtract(before);
        }
        self.members_version += 1;
        self.add(hash);
        Learned::New
    }

    fn learn_split(&mut self, fact: &Arc<SignedSplit>, seal: &dyn Seal) -> Learned {
        let split = &fact.split;
        let hash = Fact::Split(fact.clone()).hash();
        let held = self.splits.get(&(split.site, split.bits));
        if held.is_some_and(|(_, held)| *held <= hash) {
            return Learned::Known;
        }
        if split.network != self.network || split.bits > 16 || !self.genesis.admission.contains(&split.by) {
            return Learned::Refused("only an admission key splits a site");
        }
        if !seal.verify(&split.by, &signed("skep split", split), &fact.signature) {
            return Learned::Refused("the signature of the split is wrong");
        }
        if let Some((_, before)) = self.splits.insert((split.site, split.bits), (fact.clone(), hash)) {
            self.subtract(before);
        }
        self.add(hash);
        Learned::New
    }

    /// Every fact with the hash that names it.
    pub fn facts(&self) -> impl Iterator<Item = (Hash, Fact)> + '_ {
        let of_nodes = self.entries.iter().filter(|entry| !entry.displaced).flat_map(|entry| {
            let record = Some((entry.record_hash, Fact::Record(entry.record.clone())));
            let absence = entry.absence.as_ref().map(|(proof, hash, _)| (*hash, Fact::Absence(proof.clone())));
            let retired = entry.retired.as_ref().map(|(fact, hash)| (*hash, Fact::Retirement(fact.clone())));
            record.into_iter().chain(absence).chain(retired)
        });
        of_nodes.chain(self.splits.values().map(|(split, hash)| (*hash, Fact::Split(split.clone()))))
    }

    /// The hashes of all facts.
    pub fn hashes(&self) -> impl Iterator<Item = Hash> + '_ {
        let of_nodes = self.entries.iter().filter(|entry| !entry.displaced).flat_map(|entry| {
            let absence = entry.absence.as_ref().map(|(_, hash, _)| *hash);
            let retired = entry.retired.as_ref().map(|(_, hash)| *hash);
            std::iter::once(entry.record_hash).chain(absence).chain(retired)
        });
        of_nodes.chain(self.splits.values().map(|(_, hash)| *hash))
    }

    /// How many facts there are.
    pub fn count(&self) -> usize {
        self.facts
    }

    /// Bytes in memory, counted field by field.
    pub fn memory_bytes(&self) -> usize {
        let records: usize = self
            .entries
            .iter()
            .map(|entry| {
                let record = &entry.record.record;
                let urls = [&record.relay, &record.portal].into_iter().flatten().map(String::capacity).sum::<usize>();
                let certificate = size_of::<SignedCertificate>() + record.certificate.certificate.zone.capacity();
                let invitation = match record.certificate.certificate.admission {
                    Admission::Own => 0,
                    Admission::Invited { .. } => size_of::<crate::ticket::SignedInvitation>(),
                };
                let absence = entry.absence.as_ref().map_or(0, |(proof, ..)| proof.memory_bytes());
                size_of::<SignedRecord>()
                    + record.addresses.capacity() * size_of::<SocketAddr>()
                    + record.watchers.capacity() * size_of::<u64>()
                    + urls
                    + certificate
                    + invitation
                    + absence
                    + 32 // two counters of each of the two shared parts
            })
            .sum();
        let index = (self.index.capacity() + self.owners.capacity()) * (size_of::<(Key, Index)>() + 1);
        let users: usize =
            self.users.values().map(BTreeSet::len).sum::<usize>() * size_of::<(u64, Key, Index)>() * 4 / 3;
        self.entries.capacity() * size_of::<Entry>() + records + index + users
    }

    fn add(&mut self, hash: Hash) {
        for (lane, part) in self.digest.iter_mut().zip(hash.0.chunks_exact(8)) {
            *lane = lane.wrapping_add(u64::from_be_bytes(part.try_into().expect("eight bytes")));
        }
        self.facts += 1;
    }

    fn subtract(&mut self, hash: Hash) {
        for (lane, part) in self.digest.iter_mut().zip(hash.0.chunks_exact(8)) {
            *lane = lane.wrapping_sub(u64::from_be_bytes(part.try_into().expect("eight bytes")));
        }
        self.facts -= 1;
    }
}

#[cfg(test)]
pub(crate) mod tests {
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
        assert_eq!(learn(&mut roster, &Fact::Record(Arc::new(record(0, 2)))), Learned::New);
        assert_eq!(roster.absent_since(index), None);
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
    }
}
