//! First in, first out: one queue of entry numbers for each host and class, in chained blocks of one file.
//!
//! ```text
//!   queues   | next block 4 | entry 5 × 24 | 0 4 |      31 to a page; a free block's `next` is the next free one
//!   a queue  | head block 4 | tail block 4 | length 4 | first in the head 1 | used in the tail 1 | 0 2 |     in its host's record
//! ```
//! Blocks are numbered from 1; 0 is none. A block that was emptied is used again at once: going back to a checkpoint undoes
//! pages as a whole, the chain of free blocks with them.

use super::codec::{get, set};
use super::error::{Error, Result};
use super::limits::{QUEUE_BLOCK_BYTES, QUEUE_BLOCK_ENTRIES};
use super::pages::{CONTENT_BYTES, In, Pages};

const PER_PAGE: u32 = (CONTENT_BYTES / QUEUE_BLOCK_BYTES) as u32;

/// Where a queue begins and ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Queue {
    head: u32,
    tail: u32,
    pub length: u32,
    first: u8,
    used: u8,
}

impl Queue {
    pub const BYTES: usize = 16;

    pub fn decode(bytes: &[u8]) -> Queue {
        Queue {
            head: get(bytes, 0, 4) as u32,
            tail: get(bytes, 4, 4) as u32,
            length: get(bytes, 8, 4) as u32,
            first: bytes[12].min(QUEUE_BLOCK_ENTRIES as u8),
            used: bytes[13].min(QUEUE_BLOCK_ENTRIES as u8),
        }
    }

    pub fn encode(&self, bytes: &mut [u8]) {
        set(bytes, 0, 4, self.head.into());
        set(bytes, 4, 4, self.tail.into());
        set(bytes, 8, 4, self.length.into());
        (bytes[12], bytes[13]) = (self.first, self.used);
    }
}

/// Which blocks are free.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Free {
    pub blocks: u32,
    pub first: u32,
}

fn place(block: u32) -> (u64, usize) {
    let index = block - 1;
    ((index / PER_PAGE).into(), (index % PER_PAGE) as usize * QUEUE_BLOCK_BYTES)
}

fn damaged(pages: &Pages, what: &str) -> Error {
    Error::damaged(pages.path(In::Queues), what)
}

fn read(pages: &mut Pages, block: u32) -> Result<&[u8]> {
    if block == 0 {
        return Err(damaged(pages, "a queue ends before its length"));
    }
    let (page, at) = place(block);
    Ok(&pages.read(In::Queues, page)?[at..at + QUEUE_BLOCK_BYTES])
}

fn change(pages: &mut Pages, block: u32) -> Result<&mut [u8]> {
    if block == 0 {
        return Err(damaged(pages, "a queue ends before its length"));
    }
    let (page, at) = place(block);
    Ok(&mut pages.change(In::Queues, page)?[at..at + QUEUE_BLOCK_BYTES])
}

impl Free {
    fn claim(&mut self, pages: &mut Pages) -> Result<u32> {
        if self.first != 0 {
            let block = self.first;
            self.first = get(read(pages, block)?, 0, 4) as u32;
            return Ok(block);
        }
        let Some(block) = self.blocks.checked_add(1) else {
            return Err(Error::Refused { why: "the queues are full".into() });
        };
        if place(block).0 == pages.count(In::Queues) {
            pages.add(In::Queues)?;
        }
        self.blocks = block;
        Ok(block)
    }

    fn release(&mut self, pages: &mut Pages, block: u32) -> Result<()> {
        set(change(pages, block)?, 0, 4, self.first.into());
        self.first = block;
        Ok(())
    }
}

/// Puts an entry at the end.
pub(super) fn push(pages: &mut Pages, free: &mut Free, queue: &mut Queue, entry: u64) -> Result<()> {
    if queue.length == 0 {
        let block = free.claim(pages)?;
        *queue = Queue { head: block, tail: block, ..Queue::default() };
    } else if usize::from(queue.used) == QUEUE_BLOCK_ENTRIES {
        let block = free.claim(pages)?;
        set(change(pages, queue.tail)?, 0, 4, block.into());
        (queue.tail, queue.used) = (block, 0);
    }
    set(change(pages, queue.tail)?, 4 + usize::from(queue.used) * 5, 5, entry);
    queue.used += 1;
    queue.length += 1;
    Ok(())
}

/// Puts an entry at the beginning: it was taken from there and comes back.
pub(super) fn push_front(pages: &mut Pages, free: &mut Free, queue: &mut Queue, entry: u64) -> Result<()> {
    if queue.length == 0 {
        return push(pages, free, queue, entry);
    }
    if queue.first == 0 {
        let block = free.claim(pages)?;
        set(change(pages, block)?, 0, 4, queue.head.into());
        (queue.head, queue.first) = (block, QUEUE_BLOCK_ENTRIES as u8);
    }
    queue.first -= 1;
    set(change(pages, queue.head)?, 4 + usize::from(queue.first) * 5, 5, entry);
    queue.length += 1;
    Ok(())
}

/// Takes the first entry.
pub(super) fn pop(pages: &mut Pages, free: &mut Free, queue: &mut Queue) -> Result<Option<u64>> {
    if queue.length == 0 {
        return Ok(None);
    }
    if usize::from(queue.first) >= QUEUE_BLOCK_ENTRIES {
        return Err(damaged(pages, "a queue begins beyond its block"));
    }
    let block = read(pages, queue.head)?;
    let (next, entry) = (get(block, 0, 4) as u32, get(block, 4 + usize::from(queue.first) * 5, 5));
    queue.first += 1;
    queue.length -= 1;
    if queue.length == 0 {
        free.release(pages, queue.head)?;
        *queue = Queue::default();
    } else if usize::from(queue.first) == QUEUE_BLOCK_ENTRIES {
        free.release(pages, queue.head)?;
        (queue.head, queue.first) = (next, 0);
    }
    Ok(Some(entry))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    #[test]
    fn queues_keep_their_order_and_reuse_their_blocks() {
        let folder = tempfile::tempdir().unwrap();
        let mut pages = Pages::open(folder.path(), 0, [0; 4], 1 << 20).unwrap();
        let mut free = Free::default();
        let mut queues = [(Queue::default(), VecDeque::new()), (Queue::default(), VecDeque::new())];
        let mut chance = 7u64;
        for n in 0..40_000u64 {
            chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (queue, model) = &mut queues[(chance >> 33) as usize % 2];
            // Grows, then shrinks, again and again.
            let growing = (n / 1_000).is_multiple_of(2);
            match (chance >> 40) % 4 {
                0 if growing => {
                    push_front(&mut pages, &mut free, queue, n).unwrap();
                    model.push_front(n);
                }
                1 | 2 if growing => {
                    push(&mut pages, &mut free, queue, n).unwrap();
                    model.push_back(n);
                }
                _ => assert_eq!(pop(&mut pages, &mut free, queue).unwrap(), model.pop_front()),
            }
            assert_eq!(queue.length as usize, model.len());
            let mut bytes = [0; Queue::BYTES];
            queue.encode(&mut bytes);
            assert_eq!(Queue::decode(&bytes), *queue);
        }
        assert!(free.blocks < 400, "{} blocks", free.blocks);
    }
}
