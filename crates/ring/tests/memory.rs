//! What a node keeps in memory of a network of 20,000: counted by itself, and as the system sees it.

use std::sync::Arc;

use skep_ring::Settings;
use skep_ring::epoch::Epoch;
use skep_ring::fact::{Fact, SignedRecord};
use skep_ring::simulate::scenario::Founding;
use skep_ring::view::View;

const NODES: usize = 20_000;
const SLICE_BITS: u8 = 18;
const WALL_MS: u64 = 1_800_000_000_000;
/// Roster, watchers, ring and the table of holders.
const VIEW_BYTES_MAX: usize = 30_000_000;

/// Bytes of this process that are in memory; nothing where the system does not say.
fn resident_bytes() -> Option<usize> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    pages.split(' ').nth(1)?.parse::<usize>().ok().map(|pages| pages * 4096)
}

#[test]
fn a_network_of_20000_nodes_fits_into_30_mb() {
    let founding = Founding::new(1, SLICE_BITS, 3, false);
    // As they come from the network: nothing in one of them is shared with another.
    let facts: Vec<Vec<u8>> = (0..NODES)
        .map(|number| {
            let mut record =
                founding.record(number, 500 + (number % 1000) as u32, &format!("z{}", number % 16), WALL_MS);
            record.watchers = (0..8).map(|watcher| (number as u64 + watcher) << 40).collect();
            let signed = SignedRecord::new(record, founding.seal(number).as_ref());
            postcard::to_allocvec(&Fact::Record(Arc::new(signed))).expect("plain data encodes")
        })
        .collect();
    let before = resident_bytes();
    let settings = Settings::default();
    let judge = founding.seal(0);
    let mut view = View::new(founding.genesis.clone());
    let watchers = view.watchers.clone();
    for fact in &facts {
        let fact: Fact = postcard::from_bytes(fact).expect("what was encoded");
        view.roster.learn(&fact, &watchers, judge.as_ref(), 0, WALL_MS);
    }
    view.refresh(0, &settings);
    for slice in 0..founding.genesis.slices() {
        let (wish, _) = view.wish(slice, |_| true);
        view.table.set(slice, Epoch { generation: 0, number: 1 }, &wish);
    }
    let counted = view.memory_bytes();
    println!("counted {counted} bytes, of which roster {}", view.roster.memory_bytes());
    assert_eq!(view.members().count(), NODES);
    assert!(counted < VIEW_BYTES_MAX, "{counted} bytes");
    if let (Some(before), Some(after)) = (before, resident_bytes()) {
        let taken = after - before;
        println!("taken from the system {taken} bytes");
        // What was built and given back on the way may still be counted; what is kept is never more than what was taken.
        assert!(counted < taken + taken / 20, "{counted} bytes were counted, {taken} taken");
    }
}
