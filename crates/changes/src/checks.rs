//! Check lines: visits that brought nothing. Whoever writes them reads them, and knows by which names they call URLs; here is
//! what they say about changes.
//!
//! ```text
//!  keyspace view-changes-checks  | fingerprint 16 | time 8 BE |  ─▶  nothing     a visit at which the page was as before
//!  keyspace view-changes-names   | fingerprint 16 |              ─▶  | URL … |   of a URL that has captures
//! ```

use skep_archive::{Archive, Batch};

use crate::error::Result;

pub(crate) const CHECKS: &str = "changes-checks";
pub(crate) const NAMES: &str = "changes-names";

/// By what a check line names a URL.
pub type Fingerprint = [u8; 16];

/// Reads check lines.
pub trait Checks: Send + Sync {
    /// What the block of a record of checks says; nothing for one that cannot be read.
    fn read(&self, block: &[u8]) -> Option<Checked>;

    /// By what check lines of this archive may name a URL, always in the same order.
    fn names(&self, archive: &Archive, url: &str) -> Vec<Fingerprint>;
}

/// An archive without check lines, or one whose check lines do not matter.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoChecks;

impl Checks for NoChecks {
    fn read(&self, _: &[u8]) -> Option<Checked> {
        None
    }

    fn names(&self, _: &Archive, _: &str) -> Vec<Fingerprint> {
        Vec::new()
    }
}

/// The checks of one record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checked {
    /// The host, `name:port`.
    pub host: String,
    /// One after the other.
    pub lines: Vec<Check>,
}

/// One check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Check {
    /// Of what.
    pub fingerprint: Fingerprint,
    /// When, in milliseconds since 1970.
    pub time_ms: i64,
    /// What came of it.
    pub said: Said,
}

/// What came of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    /// The page is as it was.
    Same,
    /// The host could not be reached: no name, no connection, no answer.
    Unreachable,
    /// Anything else: it was not tried, or it is nobody's fault.
    Nothing,
}

impl Said {
    /// What a fault says, by its short name: whether the host was out of reach. What happened on this side says nothing of it.
    pub fn of_fault(id: &str) -> Said {
        const OUT_OF_REACH: &[&str] =
            &["dns-not-found", "dns-failed", "dns-timeout", "no-address", "tls-closed", "closed", "host-given-up"];
        match OUT_OF_REACH.contains(&id) || id.starts_with("connect-") || id.starts_with("timeout-") {
            true => Said::Unreachable,
            false => Said::Nothing,
        }
    }
}

/// The last check before `before_ms`, and after `after_ms`, at which the page was as before.
pub(crate) fn last_same(
    archive: &Archive,
    names: &[Fingerprint],
    after_ms: i64,
    before_ms: i64,
) -> Result<Option<i64>> {
    let mut last = None;
    for name in names {
        let rows = archive.views().keyspace(CHECKS)?;
        let (from, to) = (row(name, after_ms.saturating_add(1)), row(name, before_ms));
        if from >= to {
            continue;
        }
        if let Some(item) = rows.range(from..to).next_back() {
            let key = item.key().map_err(skep_archive::Error::from)?;
            last = last.max(key.last_chunk::<8>().map(|time| unbiased(u64::from_be_bytes(*time))));
        }
    }
    Ok(last)
}

/// Keeps a check at which the page was as before.
pub(crate) fn keep(batch: &mut Batch<'_>, check: &Check) {
    batch.put(CHECKS, &row(&check.fingerprint, check.time_ms), &[]);
}

fn row(name: &Fingerprint, time_ms: i64) -> Vec<u8> {
    let mut row = Vec::with_capacity(24);
    row.extend_from_slice(name);
    // Times before 1970 stand before those after it.
    row.extend_from_slice(&((time_ms as u64) ^ 1 << 63).to_be_bytes());
    row
}

fn unbiased(time: u64) -> i64 {
    (time ^ 1 << 63) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_fault_it_is() {
        for (id, said) in [
            ("dns-not-found", Said::Unreachable),
            ("connect-refused", Said::Unreachable),
            ("timeout-first-byte", Said::Unreachable),
            ("network-down", Said::Nothing),
            ("dns-no-resolver", Said::Nothing),
            ("broken", Said::Nothing),
        ] {
            assert_eq!(Said::of_fault(id), said, "{id}");
        }
    }

    #[test]
    fn rows_stand_in_the_order_of_time() {
        let rows: Vec<_> = [i64::MIN, -5, 0, 5, i64::MAX].map(|time_ms| row(&[1; 16], time_ms)).into();
        assert!(rows.is_sorted());
        assert_eq!(unbiased(u64::from_be_bytes(*rows[1].last_chunk::<8>().unwrap())), -5);
    }
}
