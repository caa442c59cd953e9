//! The hosts of the crawls: fixed-width records by number, and a log of their names.
//!
//! ```text
//!   hosts   | crawl 2 | flags 1, trust 1 | failures 2 | last error 2 | pace 4 | crawl delay 4 | parked until 6 | last visit 6 |
//!           | retry due 6 | name: offset 6, length 2 | trust 2 | waiting 4 | visited 4 | failed 4 | refused 4 | pages 4 | bytes 8 |
//!           | queue 16 × 4 | slowest 4 | queue of what is looked at again 16 | trust 4 |                       25 to a page
//!   names   | key: length varint, bytes | site: length varint, bytes | checksum 4 |
//!
//!   trust   how often what its sitemaps and feeds say was right, as the schedule writes it: all zero at first; the first byte, the four at the end, the two
//!           behind the name
//!   flags   bit 0 paused, bit 1 dropped.  Times are milliseconds since 1970; of pace and delay FFFFFFFF is none
//! ```
//! A host is looked up by the fingerprint of its crawl and key, in a seen-set of its own.

use super::append::Append;
use super::codec::{Reader, get, put_bytes, set};
use super::error::{Error, Result};
use super::pages::{CONTENT_BYTES, In, Pages};
use super::queues::Queue;
use super::states::{Class, Outcome};
use skep_schedule::revisit::hint::Trusts;
use xxhash_rust::xxh3::xxh3_64;

const RECORD_BYTES: usize = 160;
const PER_PAGE: u32 = (CONTENT_BYTES / RECORD_BYTES) as u32;

const RETRY_AT: usize = 28;
const NAME_AT: usize = 34;
const NAME_LENGTH_AT: usize = 40;
const WAITING_AT: usize = 44;
const VISITED_AT: usize = 48;
const FAILED_AT: usize = 52;
const REFUSED_AT: usize = 56;
const QUEUES_AT: usize = 72;
const SLOWEST_AT: usize = 136;
const AGAIN_AT: usize = 140;
const TRUST_AT: [usize; Trusts::BYTES] = [3, 156, 157, 158, 159, 42, 43];
const NO_MS: u64 = u32::MAX as u64;
const TIME_MS_MAX: i64 = (1 << 48) - 1;

/// The number of a host within the registry. The same host has one for each crawl that heard of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub u32);

/// All that is known of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Its number.
    pub id: HostId,
    /// The crawl that it belongs to.
    pub crawl: u16,
    /// The key it was heard with.
    pub key: String,
    /// The site it was heard with.
    pub site: String,
    /// Entries that wait, those not yet due included.
    pub waiting: u32,
    /// Of these, those that were visited before and are looked at again; at most, for some may have been settled meanwhile.
    pub again: u32,
    /// Entries that are out.
    pub out: u32,
    /// Entries that were visited.
    pub visited: u32,
    /// Entries that failed, for now or for good.
    pub failed: u32,
    /// Entries that a rule, a trap or a budget keeps from being fetched.
    pub refused: u32,
    /// Entries that wait for another try.
    pub retries: u32,
    /// Before this time no retry is due. `None`: none waits.
    pub retry_due_ms: Option<i64>,
    /// What the crawler decides and observes.
    pub conduct: Conduct,
}

/// What the crawler decides about a host and observes of it; the registry only keeps it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Conduct {
    /// Nothing is taken until it is resumed.
    pub paused: bool,
    /// Nothing is taken any more.
    pub dropped: bool,
    /// The pace that was asked for instead of the crawl's.
    pub pace_ms: Option<u32>,
    /// The Crawl-delay of its robots.txt.
    pub crawl_delay_ms: Option<u32>,
    /// It asked to be left alone until then; milliseconds since 1970, 0 for not at all.
    pub parked_until_ms: i64,
    /// Failures in a row.
    pub failures: u16,
    /// A code for the last failure; 0 for none.
    pub last_error: u16,
    /// The last visit; milliseconds since 1970, 0 for none.
    pub last_visit_ms: i64,
    /// Pages counted against its budget.
    pub pages: u32,
    /// Bytes counted against its budget.
    pub bytes: u64,
    /// Its slowest answer, in milliseconds.
    pub slowest_ms: u32,
    /// How often what its sitemaps and feeds say was right.
    pub trust: [u8; Trusts::BYTES],
}

/// The file of host records, seen through the cache of pages, and the log of names.
pub(super) struct Hosts {
    pub names: Append,
    pub count: u32,
}

fn place(host: u32) -> (u64, usize) {
    ((host / PER_PAGE).into(), (host % PER_PAGE) as usize * RECORD_BYTES)
}

fn read(pages: &mut Pages, host: u32) -> Result<&[u8]> {
    let (page, at) = place(host);
    Ok(&pages.read(In::Hosts, page)?[at..at + RECORD_BYTES])
}

fn change(pages: &mut Pages, host: u32) -> Result<&mut [u8]> {
    let (page, at) = place(host);
    Ok(&mut pages.change(In::Hosts, page)?[at..at + RECORD_BYTES])
}

fn time(ms: i64) -> u64 {
    ms.clamp(0, TIME_MS_MAX) as u64
}

fn queue_at(class: Class) -> usize {
    match class {
        Class::Again => AGAIN_AT,
        class => QUEUES_AT + class as usize * Queue::BYTES,
    }
}

pub(super) fn crawl(pages: &mut Pages, host: u32) -> Result<u16> {
    Ok(get(read(pages, host)?, 0, 2) as u16)
}

pub(super) fn queue(pages: &mut Pages, host: u32, class: Class) -> Result<Queue> {
    Ok(Queue::decode(&read(pages, host)?[queue_at(class)..]))
}

pub(super) fn set_queue(pages: &mut Pages, host: u32, class: Class, queue: &Queue) -> Result<()> {
    queue.encode(&mut change(pages, host)?[queue_at(class)..]);
    Ok(())
}

pub(super) fn retry_due_ms(pages: &mut Pages, host: u32) -> Result<i64> {
    Ok(get(read(pages, host)?, RETRY_AT, 6) as i64)
}

pub(super) fn set_retry_due_ms(pages: &mut Pages, host: u32, due_ms: i64) -> Result<()> {
    set(change(pages, host)?, RETRY_AT, 6, time(due_ms));
    Ok(())
}

/// Counts entries that begin (1) or cease (-1) to wait.
pub(super) fn count_waiting(pages: &mut Pages, host: u32, change_by: i64) -> Result<()> {
    count(pages, host, WAITING_AT, change_by)
}

/// Counts an entry with another outcome than before.
pub(super) fn count_outcome(pages: &mut Pages, host: u32, from: Outcome, to: Outcome) -> Result<()> {
    let field = |outcome| match outcome {
        Outcome::None => None,
        Outcome::Visited => Some(VISITED_AT),
        Outcome::Failed | Outcome::Dead => Some(FAILED_AT),
        Outcome::Refused | Outcome::Trap | Outcome::Parked => Some(REFUSED_AT),
    };
    let (from, to) = (field(from), field(to));
    if from != to {
        from.map_or(Ok(()), |at| count(pages, host, at, -1))?;
        to.map_or(Ok(()), |at| count(pages, host, at, 1))?;
    }
    Ok(())
}

fn count(pages: &mut Pages, host: u32, at: usize, change_by: i64) -> Result<()> {
    let record = change(pages, host)?;
    let counted = get(record, at, 4).saturating_add_signed(change_by).min(u32::MAX.into());
    set(record, at, 4, counted);
    Ok(())
}

impl Hosts {
    /// Adds the next host.
    pub fn add(&mut self, pages: &mut Pages, crawl: u16, key: &str, site: &str) -> Result<u32> {
        let mut name = Vec::with_capacity(key.len() + site.len() + 8);
        put_bytes(&mut name, key.as_bytes());
        put_bytes(&mut name, site.as_bytes());
        let sum = xxh3_64(&name) as u32;
        name.extend_from_slice(&sum.to_le_bytes());
        let at = self.names.append(&name)?;
        let host = self.count;
        if place(host).0 == pages.count(In::Hosts) {
            pages.add(In::Hosts)?;
        }
        let record = change(pages, host)?;
        record.fill(0);
        set(record, 0, 2, crawl.into());
        set(record, NAME_AT, 6, at);
        set(record, NAME_LENGTH_AT, 2, name.len() as u64);
        put_conduct(record, &Conduct::default());
        self.count += 1;
        Ok(host)
    }

    /// Key and site of a host.
    pub fn name(&self, pages: &mut Pages, host: u32) -> Result<(String, String)> {
        let record = read(pages, host)?;
        let (at, length) = (get(record, NAME_AT, 6), get(record, NAME_LENGTH_AT, 2) as usize);
        let mut bytes = vec![0; length];
        self.names.read(at, &mut bytes)?;
        let decode = || {
            let (name, sum) = bytes.split_last_chunk::<4>()?;
            let mut reader = Reader::new(name);
            let (key, site) = (reader.bytes()?, reader.bytes()?);
            let whole = xxh3_64(name) as u32 == u32::from_le_bytes(*sum);
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
            whole.then(|| Some((text(key)?, text(site)?)))?
        };
        decode().ok_or_else(|| Error::damaged(self.names.path(), format!("the name of host {host} is wrong")))
    }

    pub fn get(&self, pages: &mut Pages, host: u32, out: u32) -> Result<Host> {
        let (key, site) = self.name(pages, host)?;
        let record = read(pages, host)?;
        let number = |at: usize| get(record, at, 4) as u32;
        let retries = Queue::decode(&record[queue_at(Class::Retry)..]).length;
        Ok(Host {
            id: HostId(host),
            crawl: get(record, 0, 2) as u16,
            key,
            site,
            waiting: number(WAITING_AT),
            out,
            visited: number(VISITED_AT),
            failed: number(FAILED_AT),
            refused: number(REFUSED_AT),
            again: Queue::decode(&record[AGAIN_AT..]).length,
            retries,
            retry_due_ms: (retries > 0).then(|| get(record, RETRY_AT, 6) as i64),
            conduct: get_conduct(record),
        })
    }
}

pub(super) fn waiting(pages: &mut Pages, host: u32) -> Result<u32> {
    Ok(get(read(pages, host)?, WAITING_AT, 4) as u32)
}

pub(super) fn conduct(pages: &mut Pages, host: u32) -> Result<Conduct> {
    Ok(get_conduct(read(pages, host)?))
}

pub(super) fn set_conduct(pages: &mut Pages, host: u32, conduct: &Conduct) -> Result<()> {
    put_conduct(change(pages, host)?, conduct);
    Ok(())
}

fn get_conduct(record: &[u8]) -> Conduct {
    let ms = |at: usize| Some(get(record, at, 4)).filter(|ms| *ms != NO_MS).map(|ms| ms as u32);
    Conduct {
        paused: record[2] & 1 != 0,
        dropped: record[2] & 2 != 0,
        failures: get(record, 4, 2) as u16,
        last_error: get(record, 6, 2) as u16,
        pace_ms: ms(8),
        crawl_delay_ms: ms(12),
        parked_until_ms: get(record, 16, 6) as i64,
        last_visit_ms: get(record, 22, 6) as i64,
        pages: get(record, 60, 4) as u32,
        bytes: get(record, 64, 8),
        slowest_ms: get(record, SLOWEST_AT, 4) as u32,
        trust: TRUST_AT.map(|at| record[at]),
    }
}

fn put_conduct(record: &mut [u8], conduct: &Conduct) {
    record[2] = u8::from(conduct.paused) | u8::from(conduct.dropped) << 1;
    set(record, 4, 2, conduct.failures.into());
    set(record, 6, 2, conduct.last_error.into());
    set(record, 8, 4, conduct.pace_ms.map_or(NO_MS, |ms| u64::from(ms).min(NO_MS - 1)));
    set(record, 12, 4, conduct.crawl_delay_ms.map_or(NO_MS, |ms| u64::from(ms).min(NO_MS - 1)));
    set(record, 16, 6, time(conduct.parked_until_ms));
    set(record, 22, 6, time(conduct.last_visit_ms));
    set(record, 60, 4, conduct.pages.into());
    set(record, 64, 8, conduct.bytes);
    set(record, SLOWEST_AT, 4, conduct.slowest_ms.into());
    for (at, byte) in TRUST_AT.into_iter().zip(conduct.trust) {
        record[at] = byte;
    }
}
