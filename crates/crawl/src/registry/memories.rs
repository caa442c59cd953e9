//! What is remembered of each watched entry, and a hint of how many sites link to it. Pages come into being when something is
//! written: a crawl that nobody watches has none.
//!
//! ```text
//!   memories   | memory 28 × 128 | sites 3 × 128 | 0 112 |          by entry number, 128 to a page
//!   sites      24 bits: each linking site sets the one that its hash names; a page that drops the link clears it, until a page
//!              of that site says it anew, at the latest with its next full list
//! ```
//! The memory is drawn beside `skep_schedule::revisit::Memory`.

use skep_schedule::limits::BLOCK_URLS;
use skep_schedule::revisit::Memory;

use super::error::Result;
use super::pages::{CONTENT_BYTES, In, Pages};
use super::{EntryNumber, Registry};

const PER_PAGE: u64 = BLOCK_URLS as u64;
const SITES_AT: usize = PER_PAGE as usize * Memory::BYTES;
const SITES_BYTES: usize = 3;
const SITES_BITS: u32 = 24;
const _: () = assert!(SITES_AT + PER_PAGE as usize * SITES_BYTES <= CONTENT_BYTES);

fn page_of(entry: EntryNumber) -> (u64, usize) {
    (entry / PER_PAGE, (entry % PER_PAGE) as usize)
}

fn memory_at(page: &[u8], place: usize) -> Memory {
    let mut bytes = [0; Memory::BYTES];
    bytes.copy_from_slice(&page[place * Memory::BYTES..][..Memory::BYTES]);
    Memory::decode(&bytes)
}

/// The page of an entry, made if it is not there.
fn change(pages: &mut Pages, page: u64) -> Result<&mut [u8]> {
    while pages.count(In::Memories) <= page {
        pages.add(In::Memories)?;
    }
    pages.change(In::Memories, page)
}

/// A site that links to an entry: the bit that its hash names, 0 to 23.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Referrer(u8);

impl Referrer {
    /// Of a site; `site` is whatever number tells sites apart.
    pub fn of(site: u32) -> Referrer {
        Referrer((site.wrapping_mul(0x9e37_79b1) % SITES_BITS) as u8)
    }

    /// As others say it; nothing if it is none.
    pub fn from_bit(bit: u8) -> Option<Referrer> {
        (u32::from(bit) < SITES_BITS).then_some(Referrer(bit))
    }

    /// As it is said to others.
    pub fn bit(self) -> u8 {
        self.0
    }

    /// Where it stands for an entry: page, byte, mask.
    fn place(self, entry: EntryNumber) -> (u64, usize, u8) {
        let (page, place) = page_of(entry);
        (page, SITES_AT + place * SITES_BYTES + usize::from(self.0) / 8, 1 << (self.0 % 8))
    }
}

impl Registry {
    /// What is remembered of an entry.
    pub fn memory(&mut self, entry: EntryNumber) -> Result<Memory> {
        self.check_entry(entry)?;
        self.doing(|registry| {
            let (page, place) = page_of(entry);
            if registry.pages.count(In::Memories) <= page {
                return Ok(Memory::UNKNOWN);
            }
            Ok(memory_at(registry.pages.read(In::Memories, page)?, place))
        })
    }

    /// What is remembered of 128 neighbours, the first of which has this number.
    pub fn memories(&mut self, block: u32, into: &mut Vec<Memory>) -> Result<()> {
        into.clear();
        self.doing(|registry| {
            let from = u64::from(block) * PER_PAGE;
            let entries = registry.urls.entries().saturating_sub(from).min(PER_PAGE) as usize;
            if registry.pages.count(In::Memories) <= u64::from(block) {
                into.resize(entries, Memory::UNKNOWN);
                return Ok(());
            }
            let page = registry.pages.read(In::Memories, block.into())?;
            into.extend((0..entries).map(|place| memory_at(page, place)));
            Ok(())
        })
    }

    /// What is remembered from now on.
    pub fn remember(&mut self, entry: EntryNumber, memory: &Memory) -> Result<()> {
        self.check_entry(entry)?;
        self.doing(|registry| {
            let (page, place) = page_of(entry);
            let bytes = change(&mut registry.pages, page)?;
            bytes[place * Memory::BYTES..][..Memory::BYTES].copy_from_slice(&memory.encode());
            Ok(())
        })
    }

    /// A page of another site links to it, or does no longer.
    pub fn refer(&mut self, entry: EntryNumber, site: Referrer, links: bool) -> Result<()> {
        if self.is_referred(entry, site)? == links {
            return Ok(());
        }
        self.doing(|registry| {
            let (page, at, mask) = site.place(entry);
            let byte = &mut change(&mut registry.pages, page)?[at];
            *byte = if links { *byte | mask } else { *byte & !mask };
            Ok(())
        })
    }

    /// Whether a page of this site links to it, or of one that cannot be told from it.
    pub fn is_referred(&mut self, entry: EntryNumber, site: Referrer) -> Result<bool> {
        self.check_entry(entry)?;
        self.doing(|registry| {
            let (page, at, mask) = site.place(entry);
            Ok(registry.pages.count(In::Memories) > page && registry.pages.read(In::Memories, page)?[at] & mask != 0)
        })
    }

    /// About so many sites link to it. Beyond fifty or so it is that many.
    pub fn referring_sites(&mut self, entry: EntryNumber) -> Result<u32> {
        self.check_entry(entry)?;
        self.doing(|registry| {
            let (page, place) = page_of(entry);
            if registry.pages.count(In::Memories) <= page {
                return Ok(0);
            }
            let bytes = &registry.pages.read(In::Memories, page)?[SITES_AT + place * SITES_BYTES..][..SITES_BYTES];
            let set: u32 = bytes.iter().map(|byte| byte.count_ones()).sum();
            // How many throws leave so few of the bits unset.
            let unset = f64::from(SITES_BITS - set).max(0.5) / f64::from(SITES_BITS);
            Ok((-f64::from(SITES_BITS) * unset.ln()).round() as u32)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Class, Heard, Options, Registry};
    use super::Referrer;
    use skep_schedule::revisit::{Memory, Moment, Prior};

    #[test]
    fn memories_are_there_after_a_checkpoint_and_only_where_something_was_kept() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Registry::open(folder.path(), Options::within([7; 32], 1 << 20)).unwrap().0;
        let mut registry = open();
        for number in 0..300 {
            let url = format!("http://a.test/{number}");
            let heard = Heard {
                url: &url,
                known_as: &url,
                host_key: "http://a.test",
                site: "a.test",
                depth: 0,
                via: None,
                crawl: 1,
                class: Class::Page,
                kind: 0,
            };
            registry.hear(&heard).unwrap();
        }
        assert_eq!(registry.memory(299).unwrap(), Memory::UNKNOWN);
        let before = registry.disk_bytes();
        let memory = Memory::first(Moment(77), 2.0, &Prior::default());
        registry.remember(130, &memory).unwrap();
        let site = |number: u32| Referrer::of(number * 1_000_003);
        (0..4).for_each(|number| registry.refer(130, site(number), true).unwrap());
        (0..4).for_each(|number| registry.refer(130, site(number), true).unwrap());
        registry.refer(7, site(1), false).unwrap();
        assert_eq!(registry.disk_bytes() - before, 2 * 4_096);
        registry.checkpoint(&[], b"").unwrap();
        registry.remember(131, &memory).unwrap();
        drop(registry);

        let mut registry = open();
        let mut block = Vec::new();
        registry.memories(1, &mut block).unwrap();
        assert_eq!(
            (block.len(), block[2], block[3]),
            (128, memory, Memory::UNKNOWN),
            "what came after the checkpoint is not"
        );
        registry.memories(2, &mut block).unwrap();
        assert_eq!(block, vec![Memory::UNKNOWN; 300 - 256]);
        assert!((3..=5).contains(&registry.referring_sites(130).unwrap()));
        (0..4).for_each(|number| registry.refer(130, site(number), false).unwrap());
        assert_eq!((registry.referring_sites(130).unwrap(), Referrer::from_bit(24)), (0, None));
        assert_eq!(registry.referring_sites(7).unwrap(), 0);
        assert!(registry.memory(300).is_err());
    }
}
