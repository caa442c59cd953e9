//! What is kept at hand between questions is bounded by one number, whatever the size of the archive. It is shared out here.
//!
//! ```text
//!   1/2    whoever folds the records beside the archive: the registry of a crawl
//!   1/4    decoded blocks of the captures view
//!   1/16   decoded blocks of the digests view
//!   1/16   blocks of the store
//!   1/16   fresh entries of both views
//!   1/16   where the records of segments begin
//! ```
//! Beside it stands what is on its way: records that wait to be written ([`QUEUE_BYTES_MAX`](crate::limits::QUEUE_BYTES_MAX)) or to be
//! folded ([`VIEW_LAG_BYTES_MAX`](crate::limits::VIEW_LAG_BYTES_MAX)).

use crate::limits::{CACHE_BYTES_MAX, FRESH_ENTRIES_MAX, FRESH_ENTRIES_MIN, FRESH_ENTRY_BYTES};

/// The parts of the memory that an archive keeps at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shares {
    /// For others beside the archive.
    pub others_bytes: u64,
    /// The captures view.
    pub captures: Room,
    /// The digests view.
    pub digests: Room,
    /// Blocks of the store.
    pub store_bytes: u64,
    /// Where records begin.
    pub places_bytes: u64,
}

/// What one view of sorted runs may keep at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Decoded blocks and pages of runs.
    pub block_bytes: u64,
    /// Entries in the store before they move into a run.
    pub fresh_entries: u64,
}

impl Shares {
    /// Shares so many bytes out.
    pub fn of(bytes: u64) -> Shares {
        let sixteenth = bytes.min(CACHE_BYTES_MAX) / 16;
        let fresh_entries = (sixteenth / 2 / FRESH_ENTRY_BYTES).clamp(FRESH_ENTRIES_MIN, FRESH_ENTRIES_MAX);
        let room = |block_bytes| Room { block_bytes, fresh_entries };
        Shares {
            others_bytes: sixteenth * 8,
            captures: room(sixteenth * 4),
            digests: room(sixteenth),
            store_bytes: sixteenth,
            places_bytes: sixteenth,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::CACHE_BYTES;

    #[test]
    fn the_shares_are_what_there_is_to_share() {
        for bytes in [CACHE_BYTES, 8 << 20, 1 << 30] {
            let shares = Shares::of(bytes);
            let fresh_bytes = (shares.captures.fresh_entries + shares.digests.fresh_entries) * FRESH_ENTRY_BYTES;
            let blocks = shares.captures.block_bytes + shares.digests.block_bytes + shares.store_bytes;
            assert!(shares.others_bytes + blocks + fresh_bytes + shares.places_bytes <= bytes, "{shares:?}");
        }
        assert_eq!(Shares::of(u64::MAX), Shares::of(CACHE_BYTES_MAX));
        // However little there is, a run is worth its file.
        assert_eq!(Shares::of(0).captures, Room { block_bytes: 0, fresh_entries: FRESH_ENTRIES_MIN });
    }
}
