//! Checks that brought nothing: one line each, one record per bundle.
//!
//! ```text
//! skep-checks: 1
//! crawl: docs
//! host: example.org:443
//! base: 2026-11-15T22:10:04.120Z             the earliest time of a check
//! outcome: 0 not-modified                    the outcomes met, numbered in base 36
//! outcome: 1 fault dns-no-name
//!
//! 3q2-7wEjRWeJq83vEjRWeA 0 0 0
//! 3q2-7wEjRWeJq83vEjRWeQ 2s 1 3              fingerprint, ms since base, outcome, failures in a row
//! 3q2-7wEjRWeJq83vEjRWeg 7ps 2.1a 0          an outcome with its parameter: robots line 46
//! ```
//! Numbers are base 36, the fingerprint is base64url without padding; a line has at most 40 bytes.

use std::borrow::Cow;

use data_encoding::BASE64URL_NOPAD;
use skep_warc::date::{parse_ms, rfc3339};

use crate::limits::{
    CHECK_OUTCOMES_MAX, CHECK_PARAMETER_MAX, CHECKS_MAX, CHECKS_SPAN_MS_MAX, META_VALUE_BYTES_MAX, REVISIT_AGAIN_MS,
};
use crate::lines::{base36, is_word, lines, push_base36, push_line, push_word};
use crate::metadata::Unreadable;

const VERSION: u32 = 1;

/// The word for a fault or a rule; a longer one is cut.
const WORD_BYTES_MAX: usize = 48;

/// One check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Of the URL, as the registry computes it.
    pub fingerprint: [u8; 16],
    /// When, in milliseconds since 1970.
    pub time_ms: i64,
    /// What came of it.
    pub outcome: Outcome,
    /// Failures in a row, this one included.
    pub failures: u8,
}

/// What came of a check that brought nothing.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// 304: it is as it was.
    NotModified,
    /// robots.txt says no, in that line; 0 where no line does. Lines beyond 46,655 count as that one.
    Robots {
        /// Counted from 1.
        line: u16,
    },
    /// The exchange failed: the fault's short name.
    Fault(Cow<'static, str>),
    /// It was not tried: the short name of the rule, trap or budget that says so.
    Refused(Cow<'static, str>),
}

impl Outcome {
    fn words(&self) -> (&'static str, &str) {
        match self {
            Outcome::NotModified => ("not-modified", ""),
            Outcome::Robots { .. } => ("robots", ""),
            Outcome::Fault(id) => ("fault", id),
            Outcome::Refused(id) => ("refused", id),
        }
    }

    fn parameter(&self) -> u16 {
        match self {
            Outcome::Robots { line } => (*line).min(CHECK_PARAMETER_MAX),
            _ => 0,
        }
    }
}

/// The checks of a bundle.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checks {
    /// The crawl's name.
    pub crawl: String,
    /// The host, with its port.
    pub host: String,
    /// In the order in which they were made.
    pub checks: Vec<Check>,
}

/// The block of a record of checks, and how many of them it holds: those that follow belong in another record.
pub fn encode(crawl: &str, host: &str, checks: &[Check]) -> (Vec<u8>, usize) {
    let mut base = checks.first().map_or(0, |check| check.time_ms);
    let mut last = base;
    let mut outcomes: Vec<(&'static str, String)> = Vec::new();
    let mut numbers = Vec::with_capacity(checks.len().min(CHECKS_MAX));
    for check in checks.iter().take(CHECKS_MAX) {
        let (from, to) = (base.min(check.time_ms), last.max(check.time_ms));
        if to.abs_diff(from) > CHECKS_SPAN_MS_MAX {
            break;
        }
        let (kind, id) = check.outcome.words();
        let id = word(id);
        let known = outcomes.iter().position(|(k, i)| *k == kind && *i == id);
        let number = known.unwrap_or(outcomes.len());
        if number == CHECK_OUTCOMES_MAX {
            break;
        }
        if known.is_none() {
            outcomes.push((kind, id));
        }
        numbers.push(number);
        (base, last) = (from, to);
    }
    let mut out = Vec::with_capacity(160 + numbers.len() * 32);
    out.extend_from_slice(b"skep-checks: 1\n");
    push_line(&mut out, "crawl", crawl, META_VALUE_BYTES_MAX);
    push_line(&mut out, "host", host, META_VALUE_BYTES_MAX);
    push_line(&mut out, "base", &rfc3339(base), META_VALUE_BYTES_MAX);
    for (number, (kind, id)) in outcomes.iter().enumerate() {
        out.extend_from_slice(b"outcome: ");
        push_base36(&mut out, number as u64);
        out.push(b' ');
        out.extend_from_slice(kind.as_bytes());
        if !id.is_empty() {
            out.push(b' ');
            out.extend_from_slice(id.as_bytes());
        }
        out.push(b'\n');
    }
    out.push(b'\n');
    for (check, number) in checks.iter().zip(&numbers) {
        push_check(&mut out, check, check.time_ms.abs_diff(base), *number);
    }
    (out, numbers.len())
}

/// A short name as it stands in the list of outcomes.
fn word(id: &str) -> String {
    let mut out = Vec::new();
    push_word(&mut out, &id[..id.floor_char_boundary(WORD_BYTES_MAX / 3)]);
    if is_word(id) {
        out = id.as_bytes()[..id.len().min(WORD_BYTES_MAX)].to_vec();
    }
    String::from_utf8(out).unwrap_or_default()
}

fn push_check(out: &mut Vec<u8>, check: &Check, since_base_ms: u64, outcome: usize) {
    let mut fingerprint = [0; 22];
    BASE64URL_NOPAD.encode_mut(&check.fingerprint, &mut fingerprint);
    out.extend_from_slice(&fingerprint);
    out.push(b' ');
    push_base36(out, since_base_ms);
    out.push(b' ');
    push_base36(out, outcome as u64);
    if check.outcome.parameter() > 0 {
        out.push(b'.');
        push_base36(out, u64::from(check.outcome.parameter()));
    }
    out.push(b' ');
    push_base36(out, u64::from(check.failures));
    out.push(b'\n');
}

/// Reads the block of a record of checks.
pub fn parse(block: &[u8]) -> Result<Checks, Unreadable> {
    if block.len() > skep_archive::limits::NOTE_BYTES_MAX {
        return Err(Unreadable::TooLarge);
    }
    let text = std::str::from_utf8(block).map_err(|_| Unreadable::Malformed("it is not UTF-8"))?;
    let mut lines = lines(text);
    let version = lines.next().and_then(|line| line.strip_prefix("skep-checks: ")?.parse::<u32>().ok());
    match version {
        Some(VERSION) => {}
        Some(newer) if newer > VERSION => return Err(Unreadable::Newer(newer)),
        _ => return Err(Unreadable::Malformed("it does not begin with skep-checks")),
    }
    let mut read = Checks::default();
    let mut base = None;
    let mut outcomes = Vec::new();
    for line in lines.by_ref().take_while(|line| !line.is_empty()) {
        match line.split_once(": ") {
            Some(("crawl", name)) => read.crawl = name.to_owned(),
            Some(("host", host)) => read.host = host.to_owned(),
            Some(("base", date)) => base = parse_ms(date.as_bytes()),
            Some(("outcome", words)) => {
                outcomes.push(read_outcome(words, outcomes.len()).ok_or(Unreadable::Malformed("an outcome"))?);
                if outcomes.len() > CHECK_OUTCOMES_MAX {
                    return Err(Unreadable::TooLarge);
                }
            }
            _ => {}
        }
    }
    let base = base.ok_or(Unreadable::Malformed("it has no base time"))?;
    for line in lines {
        if read.checks.len() == CHECKS_MAX {
            return Err(Unreadable::TooLarge);
        }
        read.checks.push(read_check(line, base, &outcomes).ok_or(Unreadable::Malformed("a check line"))?);
    }
    Ok(read)
}

/// The latest time in the block of a record of checks.
pub fn last_ms(block: &[u8]) -> Option<i64> {
    parse(block).ok()?.checks.iter().map(|check| check.time_ms).max()
}

fn read_outcome(words: &str, number: usize) -> Option<Outcome> {
    let mut words = words.split(' ');
    if base36(words.next()?)? != number as u64 {
        return None;
    }
    let (kind, id) = (words.next()?, words.next());
    let id = || id.filter(|id| is_word(id)).map(|id| Cow::Owned(id.to_owned()));
    match kind {
        "not-modified" => Some(Outcome::NotModified),
        "robots" => Some(Outcome::Robots { line: 0 }),
        "fault" => id().map(Outcome::Fault),
        "refused" => id().map(Outcome::Refused),
        _ => None,
    }
}

fn read_check(line: &str, base: i64, outcomes: &[Outcome]) -> Option<Check> {
    let mut words = line.split(' ');
    let mut fingerprint = [0; 16];
    let text = words.next().filter(|text| text.len() == 22)?;
    BASE64URL_NOPAD.decode_mut(text.as_bytes(), &mut fingerprint).ok()?;
    let since = base36(words.next()?).filter(|ms| *ms <= CHECKS_SPAN_MS_MAX)?;
    let outcome = words.next()?;
    let (number, parameter) = outcome.split_once('.').unwrap_or((outcome, "0"));
    let mut outcome = outcomes.get(usize::try_from(base36(number)?).ok()?)?.clone();
    if let Outcome::Robots { line } = &mut outcome {
        *line = u16::try_from(base36(parameter)?).ok().filter(|line| *line <= CHECK_PARAMETER_MAX)?;
    }
    let failures = u8::try_from(base36(words.next()?)?).ok()?;
    let time_ms = base.checked_add(since as i64)?;
    words.next().is_none().then_some(Check { fingerprint, time_ms, outcome, failures })
}

/// When a 304 is worth a record of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RevisitPolicy {
    /// At most once per URL and 30 days; else it is a check line.
    #[default]
    Sparing,
    /// Every time.
    Always,
}

impl RevisitPolicy {
    /// Whether a 304 now becomes a `revisit` record; `recorded_ms` is when the URL last had a record, of whatever kind.
    /// A clock that went backwards makes no record.
    pub fn records(self, recorded_ms: Option<i64>, now_ms: i64) -> bool {
        match self {
            RevisitPolicy::Always => true,
            RevisitPolicy::Sparing => recorded_ms.is_none_or(|last| now_ms.saturating_sub(last) >= REVISIT_AGAIN_MS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::CHECK_LINE_BYTES_MAX;

    fn check(n: u8, time_ms: i64, outcome: Outcome) -> Check {
        Check { fingerprint: [n; 16], time_ms, outcome, failures: n }
    }

    #[test]
    fn checks_are_read_back_in_their_order() {
        let checks = vec![
            check(0, 1_778_052_489_123, Outcome::NotModified),
            check(3, 1_778_052_489_100, Outcome::Fault("dns-no-name".into())),
            check(255, 1_778_052_589_100, Outcome::Robots { line: 46 }),
            check(7, 1_778_052_589_100, Outcome::Robots { line: 0 }),
            check(9, 1_778_052_589_100, Outcome::Refused("repeating-segments".into())),
            check(1, 1_778_052_489_123, Outcome::NotModified),
        ];
        let (block, count) = encode("docs", "example.org:443", &checks);
        assert_eq!(count, checks.len());
        let read = parse(&block).unwrap();
        assert_eq!(read, Checks { crawl: "docs".into(), host: "example.org:443".into(), checks });
    }

    #[test]
    fn no_line_is_longer_than_forty_bytes() {
        let mut checks: Vec<Check> = (0..CHECK_OUTCOMES_MAX)
            .map(|n| check(255, (n as i64) * 1_000_000, Outcome::Fault(format!("fault-{n}").into())))
            .collect();
        checks.last_mut().unwrap().outcome = Outcome::Robots { line: u16::MAX };
        checks.last_mut().unwrap().time_ms = CHECKS_SPAN_MS_MAX as i64;
        let (block, count) = encode("docs", "example.org:443", &checks);
        assert_eq!(count, checks.len());
        let text = String::from_utf8(block.clone()).unwrap();
        let lines: Vec<&str> = text.split_once("\n\n").unwrap().1.split_inclusive('\n').collect();
        assert_eq!(lines.iter().map(|line| line.len()).max(), Some(CHECK_LINE_BYTES_MAX));
        let read = parse(&block).unwrap().checks;
        assert_eq!(read[..count - 1], checks[..count - 1]);
        assert_eq!(read[count - 1].outcome, Outcome::Robots { line: CHECK_PARAMETER_MAX });
    }

    #[test]
    fn what_has_no_room_is_left_for_the_next_record() {
        let far = [check(1, 0, Outcome::NotModified), check(2, CHECKS_SPAN_MS_MAX as i64 + 1, Outcome::NotModified)];
        assert_eq!(encode("a", "b", &far).1, 1);
        let many = vec![check(1, 5, Outcome::NotModified); CHECKS_MAX + 1];
        let (block, count) = encode("a", "b", &many);
        assert_eq!((count, parse(&block).unwrap().checks.len()), (CHECKS_MAX, CHECKS_MAX));
        let (empty, none) = encode("a", "b", &[]);
        assert_eq!((none, parse(&empty).unwrap().checks.len()), (0, 0));
    }

    #[test]
    fn names_forge_no_line() {
        let evil = "a\n\nAAAAAAAAAAAAAAAAAAAAAA 0 0 0";
        let (block, _) = encode(evil, evil, &[check(1, 0, Outcome::Fault(evil.into()))]);
        let read = parse(&block).unwrap();
        assert_eq!((read.checks.len(), read.crawl.as_str()), (1, "a  AAAAAAAAAAAAAAAAAAAAAA 0 0 0"));
        assert_eq!(read.checks[0].outcome, Outcome::Fault("a%0A%0AAAAAAAAAAAAAA".into()));
    }

    #[test]
    fn damage_is_named() {
        let (block, _) = encode("docs", "example.org:443", &[check(1, 5, Outcome::NotModified)]);
        let text = String::from_utf8(block).unwrap();
        for (from, to) in [
            ("AQEB", "A*EB"),
            (" 0 0 1", " 0 1 1"),
            (" 0 0 1", " 0 0 1 1"),
            ("base", "bass"),
            ("checks: 1", "checks: x"),
        ] {
            let damaged = text.replace(from, to);
            assert_ne!(damaged, text, "{from}");
            assert!(matches!(parse(damaged.as_bytes()), Err(Unreadable::Malformed(_))), "{damaged}");
        }
        assert_eq!(parse(text.replace("checks: 1", "checks: 7").as_bytes()), Err(Unreadable::Newer(7)));
    }

    #[test]
    fn an_unchanged_page_is_recorded_once_in_thirty_days() {
        let day = 24 * 60 * 60 * 1000;
        assert!(RevisitPolicy::Sparing.records(None, 0));
        assert!(!RevisitPolicy::Sparing.records(Some(0), 30 * day - 1));
        assert!(RevisitPolicy::Sparing.records(Some(0), 30 * day));
        assert!(!RevisitPolicy::Sparing.records(Some(30 * day), 0));
        assert!(RevisitPolicy::Always.records(Some(30 * day), 0));
    }
}
