//! `settings/retention.toml`: which versions of a page are kept, and applying it. Read top to bottom.
//!
//! ```toml
//! version = 1
//!
//! [[rule]]
//! match = "https://example.org/"       # a URL prefix, a URL with $ behind it, or a host; the longest that fits counts; without it, everything
//! keep = "text"                        # versions that changed the text or more; or "all"; or a number: the newest so many versions
//! thin = [                             # besides: of those older than this, one for each stretch of so long
//!   { after = "30d", every = "1d" },
//!   { after = "1y", every = "30d" },
//! ]
//! ```
//! What is not kept is removed by rewriting, as everything that disappears. The first and the newest good capture of a URL always stay, what
//! is pinned stays, and so does every body that a kept revisit stands for, in a network also one of another slice.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use serde::Deserialize;
use skep_archive::{Archive, Capture, CaptureKind, Digest, Position};
use skep_page::compare::{Class, Classes};

use crate::decided::{self, Decided};
use crate::error::{Error, Result};
use crate::event::Kept;
use crate::judge::is_judged;
use crate::limits::{RETENTION_CAPTURES_AT_ONCE, RETENTION_RULES_MAX};
use crate::log::Changes;

const FILE: &str = "retention.toml";
pub(crate) const REASON: &str = "retention";
/// The same in the details of an event.
pub(crate) const TOLD: &str = r#""reason":"retention""#;

/// What makes a capture another version of its page.
const OTHER_PAGE: [Class; 7] =
    [Class::New, Class::TextMajor, Class::TextMinor, Class::Links, Class::Meta, Class::Data, Class::Reverted];

/// What is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retention {
    rules: Decided<Rule>,
    pinned: BTreeSet<Position>,
    /// Captures that are taken in hand together.
    at_once: usize,
}

impl Default for Retention {
    fn default() -> Retention {
        Retention { rules: Decided::default(), pinned: BTreeSet::new(), at_once: RETENTION_CAPTURES_AT_ONCE }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    keep: Keep,
    /// Older than the first, one in each stretch of the second, in milliseconds; the oldest age first.
    thin: Vec<(i64, i64)>,
}

/// How many versions of a URL are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keep {
    All,
    Text,
    Newest(usize),
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Typed {
    #[serde(rename = "version")]
    _version: u32,
    #[serde(default)]
    rule: Vec<TypedRule>,
    /// Positions of captures that stay whatever the rules say.
    #[serde(default)]
    pinned: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct TypedRule {
    #[serde(rename = "match", default)]
    matching: String,
    keep: TypedKeep,
    #[serde(default)]
    thin: Vec<TypedThin>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum TypedKeep {
    Number(usize),
    Word(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TypedThin {
    after: String,
    every: String,
}

/// A capture as retention sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version {
    /// Its record.
    pub position: Position,
    /// When, in milliseconds since 1970.
    pub time_ms: i64,
    /// It brought a page, not an error or a redirect.
    pub good: bool,
    /// It is an event that is told to everybody.
    pub told: bool,
    /// It brought another page than the one before, by what was told of it.
    pub other: bool,
    /// The digest of its payload.
    pub digest: Option<Digest>,
}

/// What retention came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Retained {
    /// URLs that were looked at because a rule is about them.
    pub urls: u64,
    /// Captures of these.
    pub captures: u64,
    /// Captures that went, or would go.
    pub removed: u64,
    /// Bytes of their records as stored.
    pub bytes: u64,
}

impl Retention {
    /// What was decided for this archive; nothing if nothing was.
    pub fn of(archive: &Archive) -> Result<Option<Retention>> {
        decided::load(archive, FILE)?.map(Retention::meant).transpose()
    }

    /// The same from text.
    pub fn read(text: &str) -> Result<Retention> {
        Retention::meant(decided::read(text, Error::Retention)?)
    }

    fn meant(typed: Typed) -> Result<Retention> {
        let mut rules = Vec::new();
        for TypedRule { matching, keep, thin } in typed.rule {
            let wrong = |what: String| Error::Retention(format!("for {matching:?}, {what}"));
            let keep = match keep {
                TypedKeep::Number(0) => {
                    return Err(wrong("keep = 0 would keep nothing; `skep remove` removes pages".into()));
                }
                TypedKeep::Number(count) => Keep::Newest(count),
                TypedKeep::Word(word) => match word.as_str() {
                    "all" => Keep::All,
                    "text" => Keep::Text,
                    other => return Err(wrong(format!("keep = {other:?} is not \"all\", \"text\" or a number"))),
                },
            };
            let span = |text: &str| {
                duration_ms(text).ok_or_else(|| wrong(format!("{text:?} is not a time such as 12h, 30d, 2w or 1y")))
            };
            let mut ages = Vec::new();
            for TypedThin { after, every } in &thin {
                ages.push((span(after)?, span(every)?));
            }
            ages.sort_by_key(|(after_ms, _)| std::cmp::Reverse(*after_ms));
            rules.push((matching, Rule { keep, thin: ages }));
        }
        let rules = Decided::new(rules, RETENTION_RULES_MAX).map_err(Error::Retention)?;
        let pin = |text: &String| {
            text.parse()
                .map_err(|_| Error::Retention(format!("pinned: {text:?} is not a position such as c41f22ab:1:17")))
        };
        let pinned = typed.pinned.iter().map(pin).collect::<Result<_>>()?;
        Ok(Retention { rules, pinned, ..Retention::default() })
    }

    /// The same with so many captures in hand at once; what goes is the same.
    pub fn at_once(self, captures: usize) -> Retention {
        Retention { at_once: captures.max(1), ..self }
    }

    /// Of the captures of a URL, in the order of time, those that go.
    pub fn goes(&self, url: &str, versions: &[Version], now_ms: i64) -> Vec<Position> {
        let Some(rule) = self.rules.of(url) else { return Vec::new() };
        let good: Vec<&Version> = versions.iter().filter(|version| version.good).collect();
        let first_and_last: [Option<Position>; 3] = [
            good.first().map(|version| version.position),
            good.last().map(|version| version.position),
            versions.last().map(|version| version.position),
        ];
        let counted: Vec<&Version> = match rule.keep {
            Keep::All => versions.iter().collect(),
            Keep::Text => versions.iter().filter(|version| version.told).collect(),
            Keep::Newest(count) => newest(versions, count),
        };
        let mut kept: BTreeSet<Position> = BTreeSet::new();
        let mut stretches: BTreeSet<(i64, i64)> = BTreeSet::new();
        let mut counted = counted;
        counted.sort_by_key(|version| (version.time_ms, version.position));
        for version in counted {
            let age_ms = now_ms.saturating_sub(version.time_ms);
            match rule.thin.iter().find(|(after_ms, _)| age_ms >= *after_ms) {
                // Of each stretch the first stays, so that thinning again tomorrow changes nothing.
                Some((_, every_ms)) if !stretches.insert((*every_ms, version.time_ms.div_euclid(*every_ms))) => {}
                _ => drop(kept.insert(version.position)),
            }
        }
        let stays = |version: &&Version| {
            kept.contains(&version.position)
                || self.pinned.contains(&version.position)
                || first_and_last.contains(&Some(version.position))
        };
        // With a number of versions, the first good one is not kept for its own sake.
        let newest_only = matches!(rule.keep, Keep::Newest(_));
        let goes = |version: &&Version| {
            let only_first = newest_only
                && Some(version.position) == first_and_last[0]
                && !first_and_last[1..].contains(&Some(version.position))
                && !kept.contains(&version.position)
                && !self.pinned.contains(&version.position);
            only_first || !stays(version)
        };
        versions.iter().filter(goes).map(|version| version.position).collect()
    }
}

/// The newest so many versions. Captures that found the page as it was, noise, errors and walls are none, however many there are of them;
/// a page that came back is one version, and counts when it came last.
fn newest(versions: &[Version], count: usize) -> Vec<&Version> {
    let mut known = BTreeSet::new();
    // Whether the first good one is another page than before is not known, but that it is a page.
    let first = versions.iter().find(|version| version.good).map(|version| version.position);
    let is_version = |version: &&Version| version.good && (version.other || Some(version.position) == first);
    let is_new = |version: &&Version| version.digest.is_none_or(|digest| known.insert(digest));
    versions.iter().rev().filter(is_version).filter(is_new).take(count).collect()
}

/// `12h`, `30d`, `2w`, `1y` in milliseconds.
fn duration_ms(text: &str) -> Option<i64> {
    let text = text.trim();
    let unit = text.chars().next_back()?;
    let number: i64 = text[..text.len() - unit.len_utf8()].trim().parse().ok().filter(|number| *number > 0)?;
    let hours = match unit {
        'h' => 1,
        'd' => 24,
        'w' => 24 * 7,
        'y' => 24 * 365,
        _ => return None,
    };
    number.checked_mul(hours * 3_600_000)
}

impl Changes {
    /// Applies what was decided about retention, or says what it would come to. The stream is up to date when this begins.
    ///
    /// What goes is taken in hand so many at once. Where there is more, it goes in parts by digest: a body and the revisits that stand for it
    /// are in the same one, so that each part can be judged by itself.
    pub fn retain(&self, archive: &Archive, retention: &Retention, now_ms: i64, dry: bool) -> Result<Retained> {
        let mut done = Retained::default();
        let (mut gone, mut from) = (Vec::new(), Vec::new());
        let mut going = 0;
        while self.some_that_go(archive, retention, now_ms, Part::ALL, &mut from, &mut done, &mut gone)? {
            going += std::mem::take(&mut gone).len();
        }
        if going == 0 {
            remove(archive, gone, dry, &mut done)?;
            return Ok(done);
        }
        // Half full, so that parts that are not quite alike all find room.
        let of = u32::try_from((2 * (going + gone.len())).div_ceil(retention.at_once)).unwrap_or(u32::MAX);
        for number in 0..of {
            from.clear();
            loop {
                gone.clear();
                let (part, mut looked) = (Part { number, of }, Retained::default());
                let more = self.some_that_go(archive, retention, now_ms, part, &mut from, &mut looked, &mut gone)?;
                // Where one body stands for so many that they are no part, those that go later spare it until the next time.
                remove(archive, std::mem::take(&mut gone), dry, &mut done)?;
                if !more {
                    break;
                }
            }
        }
        Ok(done)
    }

    /// Of the captures from a key on, those that go, until there are enough of them. Says whether there may be more, from which key on.
    #[expect(clippy::too_many_arguments, reason = "what is looked at, and what comes of it")]
    fn some_that_go(
        &self,
        archive: &Archive,
        retention: &Retention,
        now_ms: i64,
        part: Part,
        from: &mut Vec<u8>,
        done: &mut Retained,
        gone: &mut Vec<Capture>,
    ) -> Result<bool> {
        let mut some: Vec<Capture> = Vec::new();
        let mut wrong = None;
        let (start, mut more) = (std::mem::take(from), false);
        archive.views().captures.each_between(&start, None, |row| {
            let capture = row.capture();
            if some.first().is_some_and(|first| first.key != capture.key) {
                if let Err(error) = self.retain_url(archive, retention, now_ms, part, &mut some, done, gone) {
                    wrong = Some(error);
                    return ControlFlow::Break(());
                }
                if gone.len() >= retention.at_once {
                    (*from, more) = (capture.key.as_bytes().to_vec(), true);
                    return ControlFlow::Break(());
                }
            }
            if is_judged(&capture) && !archive.views().is_hidden(capture.position) {
                some.push(capture);
            }
            ControlFlow::Continue(())
        })?;
        if let Some(error) = wrong {
            return Err(error);
        }
        self.retain_url(archive, retention, now_ms, part, &mut some, done, gone)?;
        Ok(more)
    }

    /// Decides about the captures of one key, which may be of several URLs.
    #[expect(clippy::too_many_arguments, reason = "what is looked at, and what comes of it")]
    fn retain_url(
        &self,
        archive: &Archive,
        retention: &Retention,
        now_ms: i64,
        part: Part,
        some: &mut Vec<Capture>,
        done: &mut Retained,
        gone: &mut Vec<Capture>,
    ) -> Result<()> {
        let mut urls: BTreeMap<String, Vec<Capture>> = BTreeMap::new();
        for capture in some.drain(..) {
            urls.entry(capture.url.clone()).or_default().push(capture);
        }
        for (url, mut captures) in urls {
            captures.sort_by_key(|capture| (capture.time_ms, capture.position));
            if retention.rules.of(&url).is_none() {
                continue;
            }
            let mut versions = Vec::with_capacity(captures.len());
            let mut page: Option<Option<Digest>> = None;
            for capture in &captures {
                let told = self.last_of(archive, capture.position)?;
                let classes = told.as_deref().and_then(Kept::decode).map_or_else(Classes::default, |kept| kept.classes);
                let came = matches!(capture.status, 0 | 200..=299 | 304) && !classes.contains(Class::Suspect);
                // Of walls that follow each other only the first is told; a page of which nothing is told is the one before.
                let same = page.is_none_or(|page| capture.digest.is_none() || capture.digest == page);
                let good = came && (same || !classes.is_empty());
                if good && !classes.is_empty() {
                    page = Some(capture.digest);
                }
                versions.push(Version {
                    position: capture.position,
                    time_ms: capture.time_ms,
                    good,
                    told: !classes.is_silent(),
                    other: classes.meets(OTHER_PAGE.into_iter().collect()),
                    digest: capture.digest,
                });
            }
            let goes: BTreeSet<Position> = retention.goes(&url, &versions, now_ms).into_iter().collect();
            done.urls += 1;
            done.captures += captures.len() as u64;
            let goes = |capture: &Capture| goes.contains(&capture.position) && part.holds(capture);
            gone.extend(captures.into_iter().filter(goes));
        }
        Ok(())
    }
}

/// Some of the captures of an archive, by digest.
#[derive(Debug, Clone, Copy)]
struct Part {
    number: u32,
    of: u32,
}

impl Part {
    const ALL: Part = Part { number: 0, of: 1 };

    fn holds(self, capture: &Capture) -> bool {
        let hash = capture.digest.map_or(0, |digest| xxhash_rust::xxh3::xxh3_64(digest.bytes()));
        hash % u64::from(self.of) == u64::from(self.number)
    }
}

/// Removes captures that go, or counts them.
fn remove(archive: &Archive, mut gone: Vec<Capture>, dry: bool, done: &mut Retained) -> Result<()> {
    // From here on until they are gone, nobody begins to refer to these bodies; who did before is seen once all is settled.
    let going =
        archive.referred().going(gone.iter().filter(|capture| has_body(capture)).filter_map(|capture| capture.digest));
    gone.retain(|capture| !has_body(capture) || capture.digest.is_none_or(|digest| going.contains(&digest)));
    if gone.is_empty() {
        return Ok(());
    }
    archive.settle()?;
    spare_originals(archive, &mut gone)?;
    spare_pinned(archive, &mut gone)?;
    done.removed += gone.len() as u64;
    done.bytes += gone.iter().map(|capture| capture.length).sum::<u64>();
    if !dry && !gone.is_empty() {
        archive.remove_captures(&gone, REASON)?;
    }
    drop(going);
    Ok(())
}

fn has_body(capture: &Capture) -> bool {
    capture.kind != CaptureKind::Revisit
}

/// Leaves out the captures whose bodies revisits that stay stand for.
fn spare_originals(archive: &Archive, gone: &mut Vec<Capture>) -> Result<()> {
    let going: BTreeSet<Position> = gone.iter().map(|capture| capture.position).collect();
    let bodies: BTreeSet<Digest> =
        gone.iter().filter(|capture| has_body(capture)).filter_map(|capture| capture.digest).collect();
    let mut needed: BTreeSet<Digest> = BTreeSet::new();
    archive.views().captures.each(&skep_archive::captures::Match::All, |row| {
        let capture = row.capture();
        if capture.kind == CaptureKind::Revisit
            && !going.contains(&capture.position)
            && let Some(digest) = capture.digest.filter(|digest| bodies.contains(digest))
        {
            needed.insert(digest);
        }
        ControlFlow::Continue(())
    })?;
    gone.retain(|capture| !has_body(capture) || capture.digest.is_none_or(|digest| !needed.contains(&digest)));
    Ok(())
}

/// Leaves out the captures whose bodies revisits of other slices stand for, wherever they are.
fn spare_pinned(archive: &Archive, gone: &mut Vec<Capture>) -> Result<()> {
    let positions: Vec<Position> = gone.iter().map(|capture| capture.position).collect();
    let pinned = archive.views().pinned(&positions)?;
    gone.retain(|capture| !pinned.contains(&capture.position));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use skep_archive::WriterKey;

    const DAY_MS: i64 = 86_400_000;

    fn left(text: &str, days: &[(i64, bool)], now: i64) -> Vec<i64> {
        let retention = Retention::read(&format!("version = 1\n{text}")).unwrap();
        let position = |day: i64| Position { writer: WriterKey(1), segment: 1, record: day as u32 };
        let versions: Vec<Version> = days
            .iter()
            .map(|(day, told)| Version {
                position: position(*day),
                time_ms: day * DAY_MS,
                good: true,
                told: *told,
                other: *told,
                digest: None,
            })
            .collect();
        let gone = retention.goes("https://example.org/a", &versions, now * DAY_MS);
        days.iter().map(|(day, _)| *day).filter(|day| !gone.contains(&position(*day))).collect()
    }

    #[test]
    fn what_is_kept_by_rule() {
        let days: Vec<(i64, bool)> = (0..10).map(|day| (day, day % 3 == 0)).collect();
        let all: Vec<i64> = (0..10).collect();
        assert_eq!(left("", &days, 10), all, "nothing was decided");
        assert_eq!(left("[[rule]]\nkeep = \"all\"", &days, 10), all);
        assert_eq!(left("[[rule]]\nkeep = \"text\"", &days, 10), [0, 3, 6, 9]);
        assert_eq!(left("[[rule]]\nkeep = 2", &days, 10), [6, 9]);
        assert_eq!(left("[[rule]]\nmatch = \"other.example\"\nkeep = 2", &days, 10), all);
        assert_eq!(
            left("[[rule]]\nkeep = 1\n[[rule]]\nmatch = \"https://example.org/\"\nkeep = 3", &days, 10),
            [3, 6, 9]
        );
        assert_eq!(left("pinned = [\"00000001:1:4\"]\n[[rule]]\nkeep = 1", &days, 10), [4, 9]);
    }

    #[test]
    fn a_number_counts_versions_and_not_looks() {
        let retention = Retention::read("version = 1\n[[rule]]\nkeep = 3").unwrap();
        let position = |number: usize| Position { writer: WriterKey(1), segment: 1, record: number as u32 };
        // A letter is a page, `.` finds it as it was, `~` is noise, `!` an error, `?` a wall.
        let left = |looks: &str| {
            let (mut versions, mut page) = (Vec::new(), 0);
            for (number, look) in looks.bytes().enumerate() {
                let other = look.is_ascii_alphabetic();
                page = if other { look } else { page };
                versions.push(Version {
                    position: position(number),
                    time_ms: number as i64 * DAY_MS,
                    good: !matches!(look, b'!' | b'?'),
                    told: other || look == b'!',
                    other,
                    digest: Digest::from_parts(2, &[if look == b'~' { number as u8 } else { page }; 20]),
                });
            }
            let gone = retention.goes("https://example.org/a", &versions, 100 * DAY_MS);
            looks
                .char_indices()
                .map(|(at, look)| if gone.contains(&position(at)) { ' ' } else { look })
                .collect::<String>()
        };
        assert_eq!(left("ab.c.d......"), " b c d     .");
        assert_eq!(left("abcd!!!!!!!!"), " bcd       !");
        assert_eq!(left("abcd~~~??~??"), " bcd     ~ ?");
        assert_eq!(left("aaaaa"), "    a", "the same page again is the same version");
        // One that comes and goes does not push out the others.
        assert_eq!(left("xabcbcbcbc"), " a      bc");
        assert_eq!(left(".b.c"), ".b c", "what the first one was before does not matter");
    }

    #[test]
    fn thinning_again_changes_nothing() {
        let rule = "[[rule]]\nkeep = \"all\"\nthin = [{ after = \"10d\", every = \"5d\" }, { after = \"4w\", every = \"2w\" }]";
        let days: Vec<(i64, bool)> = (0..60).map(|day| (day, true)).collect();
        let once = left(rule, &days, 60);
        assert_eq!(once[..6], [0, 14, 28, 33, 35, 40]);
        assert_eq!(once[once.len() - 9..], [51, 52, 53, 54, 55, 56, 57, 58, 59]);
        let again: Vec<(i64, bool)> = once.iter().map(|day| (*day, true)).collect();
        assert_eq!(left(rule, &again, 60), once);
    }

    #[test]
    fn what_makes_no_sense_is_told() {
        for wrong in [
            "[[rule]]\nkeep = 0",
            "[[rule]]\nkeep = \"some\"",
            "[[rule]]\nkeep = \"all\"\nthin = [{ after = \"soon\", every = \"1d\" }]",
            "[[rule]]",
            "pinned = [\"x\"]",
            "other = 1",
        ] {
            let error = Retention::read(&format!("version = 1\n{wrong}")).unwrap_err();
            assert!(error.id() == "retention" && error.hint().is_some(), "{wrong}");
        }
    }
}
