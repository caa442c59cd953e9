//! What is remembered of a crawl beside its URLs: part of every checkpoint, in the line behind the traps.
//!
//! ```text
//!  {"1": {"learned": ["https://www.example.org/"], "rules": 7…, "widened": 2, "spent": {"": {"pages": 12, "bytes": 3456}, "example.org": …}}}
//! ```

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Of each crawl, by its number.
pub type Memos = BTreeMap<u16, Memo>;

/// The name under which the crawl as a whole is counted, among those of sites.
pub const ALL: &str = "";

/// What is remembered of a crawl.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memo {
    /// Where seeds redirected to, outside the scope as it was typed.
    pub learned: Vec<String>,
    /// The mark of the rules by which links were judged; 0 if that is not known.
    pub rules: u64,
    /// The pass in which other rules came to count.
    pub widened: u16,
    /// What this pass took so far: all of it, and that of each site or host with a budget.
    pub spent: BTreeMap<String, Spent>,
}

/// What was taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// Answers.
    pub pages: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Spent {
    /// So much more.
    pub fn add(&mut self, pages: u64, bytes: u64) {
        (self.pages, self.bytes) = (self.pages.saturating_add(pages), self.bytes.saturating_add(bytes));
    }
}

/// What stands behind the traps in a checkpoint: the two parts apart. One that was written without memos has the first only.
pub fn apart(extra: &[u8]) -> (&[u8], Memos) {
    match memchr::memchr(b'\n', extra) {
        Some(at) => (&extra[..at], serde_json::from_slice(&extra[at + 1..]).unwrap_or_default()),
        None => (extra, Memos::new()),
    }
}

/// Both parts together.
pub fn together(mut traps: Vec<u8>, memos: &Memos) -> Vec<u8> {
    traps.push(b'\n');
    // Strings and numbers can always be written.
    let _written = serde_json::to_writer(&mut traps, memos);
    traps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_with_or_without_memos_is_read() {
        let mut memo =
            Memo { learned: vec!["https://www.a.test/\n".into()], rules: u64::MAX, widened: 3, ..Memo::default() };
        memo.spent.entry(ALL.into()).or_default().add(1, 2);
        let memos = Memos::from([(7, memo)]);
        let extra = together(b"{\"sites\":{}}".to_vec(), &memos);
        assert_eq!(apart(&extra), (&b"{\"sites\":{}}"[..], memos));
        assert_eq!(apart(b"{\"sites\":{}}"), (&b"{\"sites\":{}}"[..], Memos::new()));
        assert_eq!(apart(b""), (&b""[..], Memos::new()));
    }
}
