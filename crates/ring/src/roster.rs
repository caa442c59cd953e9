//! Everybody: signed facts about nodes, the same on every node in the end.
//!
//! A fact is signed by whom it concerns (a record by its node, a retirement by its owner) or by those who may judge (an
//! absence by its watchers). Of two facts about one thing one is newer by its own numbers, never by when it arrived, so
//! rosters that have heard the same facts are equal. The digest is the sum of the hashes of all facts held.

mod finder;

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;

use skep_url::Splits;
use skep_url::limits::SPLIT_BITS_MAX;

use self::finder::Finder;

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

/// Why a node is not waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    /// It has been absent for long, and may come back.
    Absent,
    /// It left, or was taken out.
    ForGood,
}

/// Counters beside what is shared.
const COUNTERS: usize = 2 * size_of::<usize>();

/// What a piece of memory takes of the system: its length before it, in steps of sixteen bytes.
fn piece(bytes: usize) -> usize {
    if bytes == 0 { 0 } else { (bytes + size_of::<usize>()).next_multiple_of(16).max(32) }
}

/// A small number for a node, good in this process only; a node keeps its number for ever.
pub type Index = u32;

/// What is known of one node: 20,000 of them are kept in memory by everybody, so what is rare lies elsewhere.
#[derive(Clone)]
struct Entry {
    record: Arc<SignedRecord>,
    record_hash: Hash,
    owner: u32,
    zone: u32,
    /// Others used its invitation earlier, and there were no more uses.
    displaced: bool,
    absence: Option<Box<Absence>>,
    retired: Option<Box<(Arc<SignedRetirement>, Hash)>>,
}

#[derive(Clone)]
struct Absence {
    proof: Arc<AbsenceProof>,
    hash: Hash,
    /// Known since then, by the own monotonic clock.
    since_ms: u64,
}

/// All facts, by node.
#[derive(Clone)]
pub struct Roster {
    genesis: Arc<Genesis>,
    network: NetworkId,
    entries: Vec<Entry>,
    by_key: Finder,
    by_mark: Finder,
    /// The first node of each owner.
    by_owner: Finder,
    owners: u32,
    zones: HashMap<String, u32>,
    /// By bearer of an invitation: who used it, the first first.
    users: HashMap<Key, Vec<Index>>,
    splits: BTreeMap<(u32, u8), (Arc<SignedSplit>, Hash)>,
    splits_version: u64,
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
            by_key: Finder::default(),
            by_mark: Finder::default(),
            by_owner: Finder::default(),
            owners: 0,
            zones: HashMap::from([(String::new(), 0)]),
            users: HashMap::new(),
            splits: BTreeMap::new(),
            splits_version: 0,
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
        self.by_key.find(node, |index| self.key(index))
    }

    /// The node whose key begins with these bytes.
    pub fn marked(&self, mark: u64) -> Option<Index> {
        self.by_mark.find(&mark, |index| crate::watch::mark(&self.key(index)))
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
        self.entries[index as usize].absence.as_ref().map(|absence| absence.since_ms)
    }

    /// The proof that a node is absent.
    pub fn absence(&self, index: Index) -> Option<&Arc<AbsenceProof>> {
        self.entries[index as usize].absence.as_ref().map(|absence| &absence.proof)
    }

    /// Whether its owner took it out, or it left by itself.
    pub fn is_gone(&self, index: Index) -> bool {
        let entry = &self.entries[index as usize];
        entry.displaced || entry.retired.is_some() || entry.record.record.standing == Standing::Left
    }

    /// Whether and why a node is no longer waited for, when one is that has been absent for less than `expire_ms`.
    pub fn gone(&self, index: Index, now_ms: u64, expire_ms: u64) -> Option<Gone> {
        let expired = |since: u64| now_ms.saturating_sub(since) >= expire_ms;
        match self.absent_since(index) {
            _ if self.is_gone(index) => Some(Gone::ForGood),
            Some(since) if expired(since) => Some(Gone::Absent),
            _ => None,
        }
    }

    /// Whether others took it out: its owner, or who used its invitation earlier. Nothing that it says counts any more.
    pub fn is_out(&self, index: Index) -> bool {
        let entry = &self.entries[index as usize];
        entry.displaced || entry.retired.is_some()
    }

    /// Whether others used its invitation earlier: it was never let in.
    pub fn is_displaced(&self, index: Index) -> bool {
        self.entries[index as usize].displaced
    }

    /// Whether a node with this certificate could be a member, as far as others of its invitation and its owner have a say.
    pub fn admits(&self, certificate: &SignedCertificate) -> Result<(), &'static str> {
        match self.index(&certificate.certificate.node) {
            Some(index) if self.is_displaced(index) => Err("the invitation is used up"),
            Some(index) if self.is_out(index) => Err("the node was retired"),
            None if !self.invitation_has_room(certificate) => Err("the invitation is used up"),
            _ => Ok(()),
        }
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

    /// The same as it counts, for whoever wants to know where a URL goes: no site is spread over more places than there are slices.
    pub fn split_table(&self) -> Splits {
        let mut table = Splits::default();
        let sound = self.splits().filter(|split| split.bits <= self.genesis.slice_bits);
        sound.for_each(|split| {
            table.add(split.site, skep_url::Split { bits: split.bits, since_ms: split.since_ms });
        });
        table
    }

    /// Counts splits that were heard of, so that what is derived from them knows when to look again.
    pub fn splits_version(&self) -> u64 {
        self.splits_version
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
        let slim = self.sharing(signed_record, known.filter(|_| same_certificate));
        match known {
            Some(index) => {
                // Who left may come back, with a newer record that says so.
                let left = |record: &NodeRecord| record.standing == Standing::Left;
                let before = left(&self.entries[index as usize].record.record);
                self.members_version += u64::from(before != left(record));
                let entry = &mut self.entries[index as usize];
                let before = std::mem::replace(&mut entry.record_hash, hash);
                entry.record = slim;
                // It has answered what was said about an earlier record of it.
                let refuted = entry.absence.take_if(|absence| absence.proof.sequence < record.sequence);
                let refuted = refuted.map(|absence| absence.hash);
                self.subtract(before);
                if let Some(refuted) = refuted {
                    self.subtract(refuted);
                }
            }
            None => {
                let index = self.entries.len() as Index;
                let zones = self.zones.len() as u32;
                let zone = *self.zones.entry(certificate.certificate.zone.clone()).or_insert(zones);
                let owner = signed_record.owner();
                let first = self.by_owner.find(&owner, |index| self.entries[index as usize].record.owner());
                let number = first.map_or(self.owners, |first| self.entries[first as usize].owner);
                if self.entries.len() == self.entries.capacity() {
                    // In eighths, not by doubling: what is unused is memory too.
                    self.entries.reserve_exact(self.entries.len() / 8 + 8);
                }
                self.entries.push(Entry {
                    record: slim,
                    record_hash: hash,
                    owner: number,
                    zone,
                    displaced: false,
                    absence: None,
                    retired: None,
                });
                let entries = &self.entries;
                let key_of = |index: Index| entries[index as usize].record.node();
                self.by_key.insert(index, key_of);
                self.by_mark.insert(index, |index| crate::watch::mark(&key_of(index)));
                if first.is_none() {
                    self.by_owner.insert(index, |index| entries[index as usize].record.owner());
                    self.owners += 1;
                }
                self.members_version += 1;
            }
        }
        self.add(hash);
        if known.is_none() {
            self.displace(certificate, self.entries.len() as Index - 1);
        }
        Learned::New
    }

    /// The record as it is kept: what it has in common with others is there once.
    fn sharing(&self, signed_record: &Arc<SignedRecord>, same_certificate: Option<Index>) -> Arc<SignedRecord> {
        let mut slim = SignedRecord::clone(signed_record);
        if let Some(index) = same_certificate {
            slim.record.certificate = self.record(index).record.certificate.clone();
            return Arc::new(slim);
        }
        let mut certificate = SignedCertificate::clone(&slim.record.certificate);
        if let Admission::Invited { invitation, .. } = &mut certificate.certificate.admission
            && let Some(user) = self.users.get(&invitation.invitation.bearer).and_then(|users| users.first())
            && let Admission::Invited { invitation: held, .. } =
                &self.record(*user).record.certificate.certificate.admission
            && held == invitation
        {
            *invitation = held.clone();
        }
        slim.record.certificate = Arc::new(certificate);
        Arc::new(slim)
    }

    /// When a node used its invitation; of two at one time the lower key was first, so that all agree.
    fn used(&self, index: Index) -> (u64, Key) {
        let certificate = &self.record(index).record.certificate.certificate;
        match &certificate.admission {
            Admission::Own => (0, certificate.node),
            Admission::Invited { used_ms, .. } => (*used_ms, certificate.node),
        }
    }

    /// Somebody used the invitation earlier than others that are here: the last of them goes, as if it had never been let in.
    fn displace(&mut self, certificate: &SignedCertificate, index: Index) {
        let Admission::Invited { invitation, .. } = &certificate.certificate.admission else { return };
        let mut users = self.users.remove(&invitation.invitation.bearer).unwrap_or_default();
        let used = self.used(index);
        users.insert(users.partition_point(|user| self.used(*user) < used), index);
        let last = if users.len() > invitation.invitation.uses as usize { users.pop() } else { None };
        self.users.insert(invitation.invitation.bearer, users);
        if let Some(last) = last {
            let entry = &mut self.entries[last as usize];
            entry.displaced = true;
            let (absence, retired) = (entry.absence.take(), entry.retired.take());
            let hashes =
                [Some(entry.record_hash), absence.map(|absence| absence.hash), retired.map(|retired| retired.1)];
            hashes.into_iter().flatten().for_each(|hash| self.subtract(hash));
            self.members_version += 1;
        }
    }

    /// Of more nodes than an invitation has uses, those that used it first stay.
    fn invitation_has_room(&self, certificate: &SignedCertificate) -> bool {
        let Admission::Invited { invitation, used_ms, .. } = &certificate.certificate.admission else { return true };
        let Some(users) = self.users.get(&invitation.invitation.bearer) else { return invitation.invitation.uses > 0 };
        let full = users.len() >= invitation.invitation.uses as usize;
        let mine = (*used_ms, certificate.certificate.node);
        !full || users.last().is_some_and(|last| mine < self.used(*last))
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
        if entry.absence.as_ref().is_some_and(|absence| absence.hash <= hash) {
            return Learned::Known;
        }
        if let Err(refusal) = watchers.check(self, index, proof, seal) {
            return refusal;
        }
        let entry = &mut self.entries[index as usize];
        let since_ms = entry.absence.as_ref().map_or(mono_ms, |absence| absence.since_ms);
        let before = entry.absence.replace(Box::new(Absence { proof: proof.clone(), hash, since_ms }));
        if let Some(before) = before {
            self.subtract(before.hash);
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
        if entry.retired.as_ref().is_some_and(|retired| retired.1 <= hash) {
            return Learned::Known;
        }
        let may = retirement.by == entry.record.owner() || self.genesis.admission.contains(&retirement.by);
        if retirement.network != self.network || !may {
            return Learned::Refused("only its owner retires a node");
        }
        if !seal.verify(&retirement.by, &signed("skep retirement", retirement), &fact.signature) {
            return Learned::Refused("the owner's signature is wrong");
        }
        if let Some(before) = self.entries[index as usize].retired.replace(Box::new((fact.clone(), hash))) {
            self.subtract(before.1);
        }
        self.members_version += 1;
        self.add(hash);
        Learned::New
    }

    fn learn_split(&mut self, fact: &Arc<SignedSplit>, seal: &dyn Seal) -> Learned {
        let split = &fact.split;
        let hash = Fact::Split(fact.clone()).hash();
        // Of two by the same bits the earlier counts, as of any two; of two of one date one is kept everywhere, by its hash.
        let held = self.splits.get(&(split.site, split.bits));
        if held.is_some_and(|(held, known_as)| (held.split.since_ms, *known_as) <= (split.since_ms, hash)) {
            return Learned::Known;
        }
        if split.network != self.network || split.bits > SPLIT_BITS_MAX || !self.genesis.admission.contains(&split.by) {
            return Learned::Refused("only an admission key splits a site");
        }
        if !seal.verify(&split.by, &signed("skep split", split), &fact.signature) {
            return Learned::Refused("the signature of the split is wrong");
        }
        if let Some((_, before)) = self.splits.insert((split.site, split.bits), (fact.clone(), hash)) {
            self.subtract(before);
        }
        self.splits_version += 1;
        self.add(hash);
        Learned::New
    }

    /// Every fact with the hash that names it.
    pub fn facts(&self) -> impl Iterator<Item = (Hash, Fact)> + '_ {
        let of_nodes = self.entries.iter().filter(|entry| !entry.displaced).flat_map(|entry| {
            let record = Some((entry.record_hash, Fact::Record(entry.record.clone())));
            let absence = entry.absence.as_ref().map(|held| (held.hash, Fact::Absence(held.proof.clone())));
            let retired = entry.retired.as_ref().map(|held| (held.1, Fact::Retirement(held.0.clone())));
            record.into_iter().chain(absence).chain(retired)
        });
        of_nodes.chain(self.splits.values().map(|(split, hash)| (*hash, Fact::Split(split.clone()))))
    }

    /// The hashes of all facts.
    pub fn hashes(&self) -> impl Iterator<Item = Hash> + '_ {
        let of_nodes = self.entries.iter().filter(|entry| !entry.displaced).flat_map(|entry| {
            let absence = entry.absence.as_ref().map(|absence| absence.hash);
            let retired = entry.retired.as_ref().map(|retired| retired.1);
            std::iter::once(entry.record_hash).chain(absence).chain(retired)
        });
        of_nodes.chain(self.splits.values().map(|(_, hash)| *hash))
    }

    /// How many facts there are.
    pub fn count(&self) -> usize {
        self.facts
    }

    /// Bytes in memory, counted piece by piece; a test compares it with what is taken from the system.
    pub fn memory_bytes(&self) -> usize {
        let of_record = |signed_record: &SignedRecord| {
            let record = &signed_record.record;
            let urls = [&record.relay, &record.portal].into_iter().flatten().map(|url| piece(url.capacity()));
            piece(COUNTERS + size_of::<SignedRecord>())
                + piece(record.addresses.capacity() * size_of::<SocketAddr>())
                + piece(record.watchers.capacity() * size_of::<u64>())
                + urls.sum::<usize>()
                + piece(COUNTERS + size_of::<SignedCertificate>())
                + piece(record.certificate.certificate.zone.capacity())
        };
        let of_entry = |entry: &Entry| {
            let absence = entry
                .absence
                .as_ref()
                .map_or(0, |absence| piece(size_of::<Absence>()) + piece(COUNTERS) + absence.proof.memory_bytes());
            let retired =
                entry.retired.as_ref().map_or(0, |_| piece(160) + piece(COUNTERS + size_of::<SignedRetirement>()));
            of_record(&entry.record) + absence + retired
        };
        let finders = self.by_key.memory_bytes() + self.by_mark.memory_bytes() + self.by_owner.memory_bytes();
        let users: usize = self.users.values().map(|users| 256 + users.capacity() * size_of::<Index>()).sum();
        self.entries.capacity() * size_of::<Entry>()
            + self.entries.iter().map(of_entry).sum::<usize>()
            + finders
            + users
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
pub(crate) mod tests;
