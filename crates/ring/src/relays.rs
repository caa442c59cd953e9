//! Which relays a node may use that nobody has named to it: those that other nodes serve, as their signed records say.

use crate::fact::NodeRecord;
use crate::key::{Hash, Key};
use crate::roster::Roster;
use std::net::SocketAddr;

/// The relay that a node says that it serves itself: one at an address of its own. A record that names any other says only by which relay its
/// node is reached. Addresses are what a record says: nobody connects to a relay before the node itself has answered at its address.
pub fn of(record: &NodeRecord) -> Option<&str> {
    let relay = record.relay.as_deref()?;
    let at: SocketAddr = relay.strip_prefix("http://")?.parse().ok()?;
    record.addresses.iter().any(|address| address.ip() == at.ip()).then_some(relay)
}

/// Relays of other nodes that are there, in an order that follows from this node's key. It is to be reached through one of the first
/// [`crate::limits::RELAYS_MAX`]: so all are used, and who brings many nodes in takes only their share. Others may be reached through any.
pub fn served(roster: &Roster, node: &Key) -> Vec<(Key, String)> {
    let mut found: Vec<(u64, Key, &str)> = (0..roster.len() as u32)
        .filter(|index| roster.is_present(*index) && roster.key(*index) != *node)
        .filter_map(|index| {
            let relay = of(&roster.record(index).record)?;
            let key = roster.key(index);
            Some((Hash::of("skep relay", &[node.0, key.0].concat()).number(), key, relay))
        })
        .collect();
    found.sort_unstable();
    found.into_iter().map(|(_, key, relay)| (key, relay.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::{Fact, SignedRecord, Standing};
    use crate::key::{Ed25519, SealRef};
    use crate::limits::RELAYS_MAX;
    use crate::roster::{Learned, tests::network};
    use crate::watch::Watchers;
    use std::collections::BTreeSet;
    use std::sync::Arc;

    fn learn(roster: &mut Roster, record: NodeRecord, seal: &SealRef) {
        let wall_ms = record.signed_ms;
        let fact = Fact::Record(Arc::new(SignedRecord::new(record, seal.as_ref())));
        let watchers = Watchers::new(roster, roster.members(0, u64::MAX));
        assert_eq!(roster.learn(&fact, &watchers, &Ed25519::from_secret(&[99; 32]), 1000, wall_ms), Learned::New);
    }

    #[test]
    fn a_relay_counts_at_an_address_of_the_node_that_names_it() {
        let (_, _, record) = network(1);
        let named = |relay: &str| {
            let record = NodeRecord { relay: Some(relay.into()), ..record(0, 1).record };
            of(&record).map(str::to_owned)
        };
        assert_eq!(named("http://10.0.0.1:7080").as_deref(), Some("http://10.0.0.1:7080"));
        for other in [
            "http://10.0.0.2:7080",
            "https://10.0.0.1:7080",
            "http://relay.example:7080",
            "http://10.0.0.1",
            "http://10.0.0.1:7080/somewhere",
            "http://me@10.0.0.1:7080",
            "http://",
            "",
        ] {
            assert_eq!(named(other), None, "{other}");
        }
    }

    #[test]
    fn all_relays_may_be_used_and_each_node_prefers_others() {
        let (genesis, seals, record) = network(30);
        let mut roster = Roster::new(Arc::new(genesis));
        let said = |node: usize, serves: bool| {
            let relay = Some(if serves { "http://10.0.0.1:70" } else { "http://10.9.9.9:70" });
            let relay = relay.map(|relay| format!("{relay}{node:02}"));
            NodeRecord { relay, ..record(node, 1).record }
        };
        for (node, seal) in seals.iter().enumerate() {
            learn(&mut roster, said(node, node % 3 == 0), seal);
        }
        let at = |node: usize| format!("http://10.0.0.1:70{node:02}");
        let all: BTreeSet<String> = (0..30).step_by(3).map(at).collect();
        let mut preferred = BTreeSet::new();
        for (node, seal) in seals.iter().enumerate() {
            let relays: Vec<String> = served(&roster, &seal.key()).into_iter().map(|(_, relay)| relay).collect();
            preferred.extend(relays.iter().take(RELAYS_MAX).cloned());
            let mut others = all.clone();
            others.remove(&at(node));
            assert_eq!(relays.into_iter().collect::<BTreeSet<_>>(), others, "its own is none of another");
        }
        assert_eq!(preferred, all);

        // Who has left serves nobody.
        for node in (0..30).step_by(3).skip(1) {
            let left = NodeRecord { sequence: 2, standing: Standing::Left, ..said(node, true) };
            learn(&mut roster, left, &seals[node]);
        }
        assert_eq!(served(&roster, &seals[7].key()), [(seals[0].key(), "http://10.0.0.1:7000".to_owned())]);
    }
}
