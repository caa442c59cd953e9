//! How much memory the registry may use, and its key.

use super::limits::{MEMORY_BYTES, PAGE_BYTES, PAGES_MIN};
use super::seen::Room;

/// Buffers of files and merges, kept frames, fences of runs.
const FIXED_BYTES: usize = 32 << 20;

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
    /// What is enough for tens of millions of URLs.
    pub fn new(key: [u8; 32]) -> Options {
        Options::within(key, MEMORY_BYTES)
    }

    /// About so many bytes in all: a quarter each for the newest URLs and for pages, three eighths for URLs found lately, the rest
    /// for filters and blocks.
    pub fn within(key: [u8; 32], bytes: usize) -> Options {
        let part = bytes / 64;
        Options {
            key,
            active_urls: part / 2,
            // It is a table of a power of two.
            recent_urls: part.checked_ilog2().map_or(1, |log| 1 << log),
            filter_bytes: part * 10,
            block_bytes: part,
            page_bytes: part * 16,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_about_what_is_used() {
        for bytes in [MEMORY_BYTES, 16 << 20, 1 << 30] {
            let most = Options::within([0; 32], bytes).memory_bytes_max() - FIXED_BYTES;
            assert!(most > bytes / 2 && most < bytes + bytes / 4, "{most} of {bytes}");
        }
        // With nothing at all it works all the same.
        assert!(Options::within([0; 32], 0).memory_bytes_max() < FIXED_BYTES + (1 << 20));
    }
}
