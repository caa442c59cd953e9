//! How much memory the registry may use, and its key.

use super::limits::{PAGE_BYTES, PAGES_MIN};
use super::seen::Room;

/// How a registry is opened.
#[derive(Clone)]
pub struct Options {
    /// The key of the fingerprints. It must stay the same, and nobody who serves pages may know it.
    pub key: [u8; 32],
    /// The newest URLs, whose fingerprints are all in memory: 24 bytes each.
    pub active_urls: usize,
    /// URLs found on disk lately: 24 bytes each.
    pub recent_urls: usize,
    /// Memory for filters, ten bits a URL; beyond it the oldest runs are searched without.
    pub filter_bytes: usize,
    /// Memory for blocks of runs.
    pub block_bytes: usize,
    /// Memory for pages of states, hosts and queues.
    pub page_bytes: usize,
}

impl Options {
    /// About 128 MB in all.
    pub fn new(key: [u8; 32]) -> Options {
        Options {
            key,
            active_urls: 1 << 20,
            recent_urls: 1 << 21,
            filter_bytes: 20 << 20,
            block_bytes: 2 << 20,
            page_bytes: 32 << 20,
        }
    }

    pub(super) fn urls_room(&self) -> Room {
        Room {
            active_keys: self.active_urls,
            recent_keys: self.recent_urls,
            filter_bytes: self.filter_bytes,
            block_bytes: self.block_bytes,
        }
    }

    /// Hosts are a hundredth of the URLs or fewer: a sixteenth of the room is plenty.
    pub(super) fn hosts_room(&self) -> Room {
        Room {
            active_keys: self.active_urls / 16,
            recent_keys: self.recent_urls / 16,
            filter_bytes: self.filter_bytes / 16,
            block_bytes: self.block_bytes / 16,
        }
    }

    /// What the registry holds at most with these options, whatever the number of URLs: what was asked for, and the fixed parts
    /// beside it (buffers of files and merges, kept frames, fences of runs).
    pub fn memory_bytes_max(&self) -> usize {
        const FIXED_BYTES: usize = 32 << 20;
        let keys = self.active_urls.max(64) * 32 + self.recent_urls.next_power_of_two() * 24;
        let pages = self.page_bytes.max(PAGES_MIN * PAGE_BYTES);
        (keys + self.filter_bytes + self.block_bytes) / 16 * 17 + pages + pages / 64 + FIXED_BYTES
    }
}

impl std::fmt::Debug for Options {
    /// Without the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options").field("memory_bytes_max", &self.memory_bytes_max()).finish_non_exhaustive()
    }
}
