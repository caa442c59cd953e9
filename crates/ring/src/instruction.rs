//! What owners tell all nodes: what is crawled, what sites want, what is removed. Signed by whoever may say so, kept by every node, and
//! compared like the roster: who was away hears of it later, and nobody has to believe who passed it on.
//!
//! ```text
//!  what                          signed by                                            of two, what counts
//!  crawl, stop                   the owner of the node where it was said,             the newer one
//!                                or an admission key
//!  seeds, wishes of sites        the same                                             both: each node has a list of its own
//!  remove                        an admission key                                     the newer one, of one selector
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::genesis::{Genesis, NetworkId};
use crate::key::{Hash, Key, Seal, Signature, signed};
use crate::limits::{
    AHEAD_MS_MAX, BATCH_CRAWL_BYTES_MAX, CRAWL_BYTES_MAX, INSTRUCTIONS_BYTES_MAX, INSTRUCTIONS_MAX,
    OWNER_INSTRUCTIONS_BYTES_MAX, REASON_BYTES_MAX, URL_BYTES_MAX,
};

/// What is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// This is crawled from now on.
    Crawl {
        /// What it is called.
        name: String,
        /// Its settings; this package carries them and does not look inside.
        settings: String,
    },
    /// It is no longer crawled.
    Stop {
        /// What it is called.
        name: String,
    },
    /// Where else a crawl begins: everything that was given at one node.
    Seeds {
        /// The crawl.
        name: String,
        /// URLs.
        seeds: Vec<String>,
    },
    /// How owners want their sites to be visited: everything that was asked for at one node.
    Sites {
        /// The crawl.
        name: String,
        /// This package does not look inside.
        sites: String,
    },
    /// Something is gone from the archive of all, as far as it was captured before.
    Remove {
        /// `url`, `prefix` or `digest`, and what.
        selector: String,
        /// Why.
        reason: String,
    },
}

/// Something that all nodes are told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instruction {
    /// The network.
    pub network: NetworkId,
    /// Where it was said.
    pub node: Key,
    /// Higher is newer: when it was said, in milliseconds since 1970.
    pub version: u64,
    /// Who signs.
    pub by: Key,
    /// What.
    pub what: What,
}

/// An instruction and its signature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedInstruction {
    /// What is signed.
    pub instruction: Instruction,
    /// By an owner, or an admission key.
    pub signature: Signature,
}

/// What an instruction is about; of two about the same the newer one counts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct About(u8, String, Option<Key>);

impl What {
    /// The crawl that it is about.
    pub fn crawl(&self) -> Option<&str> {
        match self {
            What::Crawl { name, .. } | What::Stop { name } | What::Seeds { name, .. } | What::Sites { name, .. } => {
                Some(name)
            }
            What::Remove { .. } => None,
        }
    }

    fn is_bounded(&self) -> bool {
        let named = self.crawl().is_none_or(|name| !name.is_empty() && name.len() <= BATCH_CRAWL_BYTES_MAX);
        named
            && match self {
                What::Crawl { settings: text, .. } | What::Sites { sites: text, .. } => text.len() <= CRAWL_BYTES_MAX,
                What::Stop { .. } => true,
                What::Seeds { seeds, .. } => {
                    seeds.iter().map(String::len).sum::<usize>() <= CRAWL_BYTES_MAX
                        && seeds.iter().all(|seed| seed.len() <= URL_BYTES_MAX)
                }
                What::Remove { selector, reason } => {
                    selector.len() <= URL_BYTES_MAX && !reason.trim().is_empty() && reason.len() <= REASON_BYTES_MAX
                }
            }
    }
}

impl SignedInstruction {
    /// Signs an instruction; `owner` is the seal of the node's owner, or an admission key.
    pub fn new(network: NetworkId, node: Key, version: u64, what: What, owner: &dyn Seal) -> SignedInstruction {
        let instruction = Instruction { network, node, version, by: owner.key(), what };
        let signature = owner.sign(&signed("skep instruction", &instruction));
        SignedInstruction { instruction, signature }
    }

    /// What names it when nodes compare.
    pub fn hash(&self) -> Hash {
        Hash::of("skep instruction", &postcard::to_allocvec(self).expect("plain data encodes"))
    }

    /// What it is about.
    pub fn about(&self) -> About {
        let said_at = Some(self.instruction.node);
        match &self.instruction.what {
            What::Crawl { name, .. } => About(0, name.clone(), None),
            What::Stop { name } => About(1, name.clone(), None),
            What::Seeds { name, .. } => About(2, name.clone(), said_at),
            What::Sites { name, .. } => About(3, name.clone(), said_at),
            What::Remove { selector, .. } => About(4, selector.clone(), None),
        }
    }

    /// Whether whoever signed it may say so. `owner` is that of the node where it was said, if that is a member.
    pub fn check(
        &self,
        genesis: &Genesis,
        network: &NetworkId,
        owner: Option<Key>,
        seal: &dyn Seal,
        wall_ms: u64,
    ) -> Result<(), &'static str> {
        let Instruction { by, version, what, .. } = &self.instruction;
        let founder = genesis.admission.contains(by);
        match () {
            () if self.instruction.network != *network => Err("the instruction is for another network"),
            () if !what.is_bounded() => Err("the instruction is longer than instructions are"),
            () if *version > wall_ms.saturating_add(AHEAD_MS_MAX) => Err("the instruction is from the future"),
            () if !founder && matches!(what, What::Remove { .. }) => {
                Err("only who made the network removes something for all")
            }
            () if !founder && owner != Some(*by) => Err("the instruction is signed by nobody who may say so"),
            () if !seal.verify(by, &signed("skep instruction", &self.instruction), &self.signature) => {
                Err("the signature of the instruction is wrong")
            }
            () => Ok(()),
        }
    }

    fn bytes(&self) -> usize {
        postcard::to_allocvec(self).expect("plain data encodes").len()
    }
}

/// Everything that was told, as far as it still counts.
#[derive(Clone, Debug, Default)]
pub struct Instructions {
    held: BTreeMap<About, Arc<SignedInstruction>>,
    /// Bytes by who signed.
    bytes: BTreeMap<Key, usize>,
}

impl Instructions {
    /// Takes in an instruction that was checked; true if it is news. What one owner says has a bound, so that it leaves room for others.
    pub fn learn(&mut self, signed: Arc<SignedInstruction>, founder: bool) -> bool {
        let (about, by, bytes) = (signed.about(), signed.instruction.by, signed.bytes());
        let known = self.held.get(&about);
        // Two of one moment: one of them is kept everywhere, by its hash.
        let order = |one: &SignedInstruction| (one.instruction.version, one.hash());
        if known.is_some_and(|known| order(known) >= order(&signed)) {
            return false;
        }
        if known.is_none() && self.held.len() >= INSTRUCTIONS_MAX {
            return false;
        }
        let all: usize = self.bytes.values().sum();
        let own = self.bytes.get(&by).copied().unwrap_or(0);
        if all + bytes > INSTRUCTIONS_BYTES_MAX || !founder && own + bytes > OWNER_INSTRUCTIONS_BYTES_MAX {
            return false;
        }
        if let Some(before) = self.held.insert(about, signed) {
            let left = self.bytes.entry(before.instruction.by).or_default();
            *left = left.saturating_sub(before.bytes());
        }
        *self.bytes.entry(by).or_default() += bytes;
        true
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Arc<SignedInstruction>> + '_ {
        self.held.values()
    }

    /// What is told about this.
    pub fn get(&self, about: &About) -> Option<&Arc<SignedInstruction>> {
        self.held.get(about)
    }

    /// What somebody lacks who knows these.
    pub fn without(&self, known: &[Hash]) -> Vec<Arc<SignedInstruction>> {
        let known: std::collections::HashSet<&Hash> = known.iter().collect();
        self.all().filter(|signed| !known.contains(&signed.hash())).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Ed25519;
    use crate::roster::tests::network;

    const NOW_MS: u64 = 1_000_000;

    fn crawl(settings: &str) -> What {
        What::Crawl { name: "bees".into(), settings: settings.into() }
    }

    #[test]
    fn only_who_may_say_so_is_believed() {
        let (genesis, seals, _) = network(3);
        let id = genesis.id();
        let (node, founder, owner) = (seals[1].key(), &genesis.admission[0], Ed25519::from_secret(&[77; 32]));
        let check = |signed: &SignedInstruction, owner| signed.check(&genesis, &id, owner, seals[0].as_ref(), NOW_MS);
        let said = |version, what| SignedInstruction::new(id, node, version, what, &owner);
        let fine = said(NOW_MS, crawl("a"));
        assert_eq!(check(&fine, Some(owner.key())), Ok(()));
        for other in [None, Some(*founder), Some(node)] {
            assert!(check(&fine, other).is_err(), "another owner's node, or nobody's");
        }
        let mut forged = fine.clone();
        forged.instruction.what = crawl("b");
        assert_eq!(check(&forged, Some(owner.key())), Err("the signature of the instruction is wrong"));
        // A version that nobody could ever follow.
        let late = said(u64::MAX, crawl("a"));
        assert_eq!(check(&late, Some(owner.key())), Err("the instruction is from the future"));
        let remove = What::Remove { selector: "prefix http://".into(), reason: "out of spite".into() };
        assert!(check(&said(NOW_MS, remove), Some(owner.key())).is_err(), "an owner removes nothing for all");
        let long = What::Seeds { name: "bees".into(), seeds: vec!["x".repeat(URL_BYTES_MAX + 1)] };
        assert!(check(&said(NOW_MS, long), Some(owner.key())).is_err());
        let elsewhere = SignedInstruction::new(Hash([9; 32]), node, NOW_MS, crawl("a"), &owner);
        assert!(check(&elsewhere, Some(owner.key())).is_err());
    }

    #[test]
    fn what_is_newer_counts_and_seeds_undo_no_stop() {
        let (genesis, seals, _) = network(3);
        let owner = Ed25519::from_secret(&[77; 32]);
        let said = |node: usize, version, what| {
            Arc::new(SignedInstruction::new(genesis.id(), seals[node].key(), version, what, &owner))
        };
        let seeds = |url: &str| What::Seeds { name: "bees".into(), seeds: vec![url.into()] };
        let mut instructions = Instructions::default();
        assert!(instructions.learn(said(0, 5, crawl("a")), false));
        assert!(!instructions.learn(said(1, 4, crawl("older")), false));
        assert!(instructions.learn(said(1, 6, What::Stop { name: "bees".into() }), false));
        assert!(instructions.learn(said(0, 9, seeds("http://a/")), false));
        assert!(instructions.learn(said(1, 8, seeds("http://b/")), false), "each node has a list of its own");
        assert_eq!(instructions.all().count(), 4);
        let hashes: Vec<Hash> = instructions.all().map(|signed| signed.hash()).collect();
        assert_eq!(instructions.without(&hashes[1..]).len(), 1);
        // Two of one moment: whichever comes first, one is kept.
        let both = [said(0, 7, crawl("x")), said(0, 7, crawl("y"))];
        let kept = |order: [usize; 2]| {
            let mut instructions = Instructions::default();
            for at in order {
                instructions.learn(both[at].clone(), false);
            }
            instructions.all().next().cloned()
        };
        assert_eq!(kept([0, 1]), kept([1, 0]));
    }

    #[test]
    fn one_owner_leaves_room_for_others() {
        let (genesis, seals, _) = network(3);
        let [one, other] = [77, 78].map(|byte| Ed25519::from_secret(&[byte; 32]));
        let mut instructions = Instructions::default();
        let mut taken = 0;
        let said = |number: usize, owner: &Ed25519| {
            let what = What::Crawl { name: format!("crawl-{number}"), settings: "x".repeat(CRAWL_BYTES_MAX) };
            Arc::new(SignedInstruction::new(genesis.id(), seals[0].key(), 1, what, owner))
        };
        while instructions.learn(said(taken, &one), false) {
            taken += 1;
        }
        assert!(taken * CRAWL_BYTES_MAX <= OWNER_INSTRUCTIONS_BYTES_MAX);
        assert!(instructions.learn(said(1_000, &other), false));
    }
}
