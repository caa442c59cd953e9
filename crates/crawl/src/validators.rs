//! Whether a server is believed that says a page is as it was.
//!
//! ```text
//!  a page came ──▶ asked by its validators: 304, 304, 304 … ──▶ now and then asked for the page itself
//!                                                                  the same page:                        believed on
//!                                                                  another page, the same validators:    never again asked by them
//! ```
//! What was found stands in the record of the visit, so that it is known after a restart, and of a copy.

use skep_archive::{Capture, CaptureKind};
use skep_schedule::revisit::Due;
use skep_warc::http::Head;

use crate::finding::Finding;
use crate::limits::{BELIEVED_LOOKS, BELIEVED_LOOKS_MIN, BELIEVED_MS_MAX, BELIEVED_MS_MIN, BELIEVED_RECORDS};
use crate::metadata::Meta;
use crate::outcome::Outcome;
use crate::remembered::Previous;

/// What is noted of a visit that showed it.
const LIE: &str = "validators-lie";

/// What happened since a page came, and how it stands with its validators.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Since {
    /// The newest record brought no page: that it is there again is worth one.
    pub away: bool,
    /// When the server last sent the page, in milliseconds since 1970.
    came_ms: Option<i64>,
    /// Records that say that it is as it was, since then.
    unmodified: u32,
    /// The validators were the same when the page was not.
    lies: bool,
}

impl Since {
    /// Looks at a capture of the URL, the newest first.
    pub fn look(&mut self, capture: &Capture, is_newest: bool, noted: impl FnOnce() -> Option<Meta>) {
        if is_newest {
            self.away = match capture.status {
                304 => false,
                0 | 200..=299 => !noted().is_none_or(|noted| brought_page(&noted)),
                _ => true,
            };
        }
        match (self.came_ms, capture.status) {
            (None, 200) => self.came_ms = Some(capture.time_ms),
            (None, 304) if capture.kind == CaptureKind::Revisit => self.unmodified += 1,
            _ => {}
        }
    }

    /// Whether the capture that was looked at last is one to compare with: not a challenge, nor what a host shows for what is not there.
    pub fn is_page(&mut self, noted: impl FnOnce() -> Option<Meta>) -> bool {
        let noted = noted();
        self.lies = noted.as_ref().is_some_and(|noted| noted.notes.iter().any(|note| note == LIE));
        noted.is_none_or(|noted| brought_page(&noted))
    }
}

fn brought_page(noted: &Meta) -> bool {
    let outcome = Outcome::from_id(&noted.verdict);
    outcome != Some(Outcome::CHALLENGE)
        && outcome != Some(Outcome::SOFT_MISSING)
        && noted.found.as_deref().and_then(Finding::from_id) != Some(Finding::Nothing)
}

/// The capture by whose validators a URL is to be asked now; none where it is time to see the page itself.
pub fn shown<'p>(previous: Option<&'p Previous>, due: Option<&Due>, now_ms: i64) -> Option<&'p Previous> {
    previous.filter(|previous| {
        let Since { came_ms, unmodified, lies, .. } = previous.since;
        let believed_ms = match due {
            Some(due) => {
                let every_ms = i64::from(due.every_s) * 1_000;
                let most_ms = BELIEVED_MS_MAX.max(every_ms * BELIEVED_LOOKS_MIN);
                Some((every_ms * BELIEVED_LOOKS).clamp(BELIEVED_MS_MIN, most_ms))
            }
            // Nobody says how often it is looked at: by the records.
            None => None,
        };
        let long = match believed_ms {
            Some(believed_ms) => now_ms.saturating_sub(came_ms.unwrap_or(previous.time_ms)) >= believed_ms,
            None => unmodified >= BELIEVED_RECORDS,
        };
        !lies && !long
    })
}

/// What is to be noted of an answer beside the capture before: that its validators are the same, and the page is not.
pub fn lie(previous: Option<&Previous>, head: Option<&Head>, found: Finding) -> Option<&'static str> {
    let (previous, head) = (previous?, head?);
    let is = |name: &str, before: &Option<Vec<u8>>| before.is_some() && head.header(name) == before.as_deref();
    let same = match previous.etag {
        Some(_) => is("etag", &previous.etag),
        None => is("last-modified", &previous.last_modified),
    };
    // Once found out, it stays so until its validators change with it.
    (same && (found == Finding::Changed || previous.since.lies)).then_some(LIE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use skep_archive::{Key, Position};
    use skep_schedule::revisit::Reason;

    const DAY_MS: i64 = 86_400_000;

    fn capture(day: i64, kind: CaptureKind, status: u16) -> Capture {
        let url = "http://bees.test/".to_owned();
        Capture {
            key: Key::of(&url),
            url,
            time_ms: day * DAY_MS,
            position: Position::default(),
            kind,
            status,
            mime: String::new(),
            digest: None,
            offset: 0,
            length: 0,
            flags: 0,
        }
    }

    fn noted(verdict: &str, found: &str, notes: &[&str]) -> Option<Meta> {
        let notes = notes.iter().map(|note| (*note).to_owned()).collect();
        Some(Meta { verdict: verdict.into(), found: Some(found.into()), notes, ..Meta::default() })
    }

    fn previous(since: Since) -> Previous {
        Previous {
            time_ms: 0,
            newest_ms: 0,
            url: String::new(),
            position: Position::default(),
            digest: None,
            etag: Some(b"\"a\"".to_vec()),
            last_modified: Some(b"then".to_vec()),
            since,
        }
    }

    #[test]
    fn what_brought_no_page_is_nothing_to_compare_with() {
        let mut since = Since::default();
        assert!(since.is_page(|| None) && since.is_page(|| noted("200", "changed", &[])));
        assert!(!since.is_page(|| noted("soft-404", "changed", &[])));
        assert!(!since.is_page(|| noted("challenge", "nothing", &[])));
        assert!(!since.is_page(|| noted("200", "nothing", &[])));
        for (status, verdict, away) in
            [(200, "200", false), (304, "304", false), (404, "404", true), (503, "503", true), (200, "soft-404", true)]
        {
            let mut since = Since::default();
            since.look(&capture(1, CaptureKind::Response, status), true, || noted(verdict, "same", &[]));
            assert_eq!(since.away, away, "{status} {verdict}");
        }
    }

    #[test]
    fn the_page_itself_is_asked_for_now_and_then() {
        let due = |every_s| Due { why: Reason::Price, changes_per_day_millionths: 0, every_s };
        let mut since = Since::default();
        since.look(&capture(20, CaptureKind::Revisit, 304), true, || None);
        since.look(&capture(10, CaptureKind::Response, 200), false, || None);
        let previous = previous(since);
        let asked = |day: i64, due: Option<Due>| shown(Some(&previous), due.as_ref(), day * DAY_MS).is_some();
        let hourly = Some(due(3_600));
        assert!(asked(11, hourly) && !asked(12, hourly), "one in thirty-two looks");
        let came_ms = 10 * DAY_MS;
        let at = |later_ms: i64| shown(Some(&previous), Some(&due(1)), came_ms + later_ms).is_some();
        assert!(at(BELIEVED_MS_MIN - 1) && !at(BELIEVED_MS_MIN), "not every half minute");
        let daily = Some(due(86_400));
        assert!(asked(39, daily) && !asked(40, daily), "and every month");
        let quarterly = Some(due(90 * 86_400));
        assert!(asked(200, quarterly) && !asked(370, quarterly), "but not at every look");
        assert!(asked(9_999, None), "one record says that it is as it was");
    }

    #[test]
    fn whoever_was_found_out_is_not_asked_again_until_he_mends_his_ways() {
        let head = |etag: &str| {
            let mut head = Head::new();
            head.parse_response(format!("HTTP/1.1 200 OK\r\nETag: {etag}\r\n\r\n").as_bytes(), true);
            head
        };
        let honest = previous(Since::default());
        assert_eq!(lie(Some(&honest), Some(&head("\"a\"")), Finding::Same), None);
        assert_eq!(lie(Some(&honest), Some(&head("\"b\"")), Finding::Changed), None);
        assert_eq!(lie(None, Some(&head("\"a\"")), Finding::Changed), None);
        assert_eq!(lie(Some(&honest), Some(&head("\"a\"")), Finding::Changed), Some(LIE));
        let mut since = Since::default();
        assert!(since.is_page(|| noted("200", "changed", &[LIE])));
        let liar = previous(since);
        assert!(shown(Some(&honest), None, DAY_MS).is_some() && shown(Some(&liar), None, DAY_MS).is_none());
        assert_eq!(lie(Some(&liar), Some(&head("\"a\"")), Finding::Same), Some(LIE));
        assert_eq!(lie(Some(&liar), Some(&head("\"b\"")), Finding::Changed), None);
    }
}
