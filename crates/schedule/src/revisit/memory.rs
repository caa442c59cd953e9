//! What the schedule remembers of one URL: a few numbers, however often it was visited.
//!
//! ```text
//!   | last 4 | due 4 | same 4 | roots 4 | inverses 4 | rate 2 | spread 1 | importance 1 | evidence 1 | flags 1 | ratio 1 | failures 1 |
//!   last, due    seconds since 2020: of the last good visit, and when the URL is looked at again
//!   same         days over which visits found nothing new
//!   roots        of those that did: the sum of 1/√days;  inverses: the sum of 1/days
//!                all three fade, so that a page may become another
//!   rate         the logarithm of changes per day, in 1/1024;  spread: how uncertain it is, in 1/32
//!   importance   the logarithm to base two, in eighths around 128
//!   evidence     what others say since: expected changes, in 1/64; where they tell of none, by how much fewer there are, a logarithm in 1/64
//!   flags        bit 0: visited;  bit 1: out, waiting to be fetched;  bit 2: counted in its site's prior
//!                what a sitemap says since, bit 3: something;  bit 4: that it changed;  bits 5, 6: the same of a feed
//!                bit 7: the failures say nothing of the page: an outage, a wall
//!   ratio        how much of its links the last visit found changed, in 1/255
//!   failures     visits in a row that brought no page
//! ```

use super::belief::{Belief, Prior};
use super::hint::Source;
use crate::limits;

/// Seconds between 1970 and 2020, from which a [`Moment`] counts.
const EPOCH_S: i64 = 1_577_836_800;
const DAY_S: f32 = 86_400.0;

/// A moment, in seconds since 2020; what lies before is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub u32);

impl Moment {
    /// Never.
    pub const NEVER: Moment = Moment(u32::MAX);

    /// From milliseconds since 1970.
    pub fn from_ms(ms: i64) -> Moment {
        let seconds = ms.div_euclid(1_000).saturating_sub(EPOCH_S);
        Moment(seconds.clamp(0, i64::from(u32::MAX - 1)) as u32)
    }

    /// In milliseconds since 1970.
    pub fn ms(self) -> i64 {
        (i64::from(self.0) + EPOCH_S) * 1_000
    }

    /// So many days later, at least a second.
    pub fn plus_days(self, days: f32) -> Moment {
        let seconds = (f64::from(days.max(0.0)) * f64::from(DAY_S)).clamp(1.0, f64::from(u32::MAX - 1));
        Moment(self.0.saturating_add(seconds as u32).min(u32::MAX - 1))
    }

    /// Days since an earlier moment; none where that is later.
    pub fn days_since(self, earlier: Moment) -> f32 {
        self.0.saturating_sub(earlier.0) as f32 / DAY_S
    }
}

/// What a visit found, as far as change is concerned. A visit that failed, or brought a challenge instead of the page, is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The same as last time.
    Same,
    /// Something else. The moment of the change, where a trusted server told it.
    Changed(Option<Moment>),
}

/// What is remembered of one URL.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Memory {
    pub(super) last: Moment,
    pub(super) due: Moment,
    pub(super) same_days: f32,
    roots: f32,
    inverses: f32,
    rate: i16,
    spread: u8,
    importance: u8,
    evidence: u8,
    flags: u8,
    ratio: u8,
    failures: u8,
}

const VISITED: u8 = 1;
const OUT: u8 = 2;
const COUNTED: u8 = 4;
const NAMED: u8 = 8;
const TOLD: u8 = 16;
/// From what sitemaps say to what feeds say.
const FEED_SHIFT: u8 = 2;
const TOLD_BY_ANY: u8 = TOLD | TOLD << FEED_SHIFT;
const SAID: u8 = (NAMED | TOLD) | (NAMED | TOLD) << FEED_SHIFT;
const UNANSWERED: u8 = 128;
const RATE_STEPS: f32 = 1_024.0;
const SPREAD_STEPS: f32 = 32.0;
const IMPORTANCE_STEPS: f32 = 8.0;
const EVIDENCE_STEPS: f32 = 64.0;

impl Memory {
    /// Bytes of a memory on disk.
    pub const BYTES: usize = 28;

    /// A URL that was never visited: nobody waits for its second visit yet.
    pub const UNKNOWN: Memory = Memory {
        last: Moment(0),
        due: Moment::NEVER,
        same_days: 0.0,
        roots: 0.0,
        inverses: 0.0,
        rate: 0,
        spread: 0,
        importance: 128,
        evidence: 0,
        flags: 0,
        ratio: 255,
        failures: 0,
    };

    /// A URL that has just been captured for the first time.
    pub fn first(now: Moment, importance: f32, prior: &Prior) -> Memory {
        let mut memory = Memory { last: now, flags: VISITED, ..Memory::UNKNOWN };
        memory.set_importance(importance);
        memory.believe(Belief::of(&memory, prior));
        memory
    }

    /// Takes in what a visit found. Call [`Memory::believe`] afterwards with what follows from it.
    pub fn observe(&mut self, found: Found, now: Moment) {
        let days = now.days_since(self.last).max(limits::OBSERVED_DAYS_MIN);
        let fade = 0.5f32.powf(days / limits::FADE_DAYS).max(limits::FADE_LEAST);
        self.same_days *= fade;
        self.roots *= fade;
        self.inverses *= fade;
        match found {
            Found::Same => self.same_days += days,
            Found::Changed(at) => {
                // From the change to the visit nothing changed: that much is known where the moment is.
                let after = at.map_or(0.0, |at| now.days_since(at.max(self.last)));
                self.same_days += after;
                let wait = (days - after).max(limits::OBSERVED_DAYS_MIN);
                self.roots += 1.0 / wait.sqrt();
                self.inverses += 1.0 / wait;
            }
        }
        self.last = now;
        self.ratio = if found == Found::Same { 0 } else { u8::MAX };
        self.flags = self.flags & !(OUT | SAID | UNANSWERED) | VISITED;
        (self.evidence, self.failures) = (0, 0);
    }

    /// Somebody says that the page changed: so many changes are expected beyond those that time brings. The same said twice, as
    /// sitemaps do, is said once.
    pub fn told(&mut self, by: Source, expected: f32) {
        let before = if self.flags & TOLD_BY_ANY != 0 { self.evidence } else { 0 };
        self.evidence = before.max(steps(expected));
        self.flags |= (NAMED | TOLD) << shift(by);
    }

    /// Somebody who would have told of a change, as far as this is worth, tells of none. Whoever tells of one is heard before.
    pub fn untold(&mut self, by: Source, silence: f32) {
        self.flags |= NAMED << shift(by);
        if self.flags & TOLD_BY_ANY == 0 {
            self.evidence = self.evidence.max(steps(silence));
        }
    }

    /// What somebody says of the page since the last visit: that it changed, that it did not; nothing where it is not named.
    pub fn said(&self, by: Source) -> Option<bool> {
        let said = self.flags >> shift(by);
        (said & NAMED != 0).then_some(said & TOLD != 0)
    }

    /// A visit that brought nothing: the URL waits again.
    pub fn given_back(&mut self) {
        self.flags &= !OUT;
    }

    /// A visit that brought no page although one was there, or none ever: the URL waits again. Says nothing about change.
    pub fn failed(&mut self) {
        if self.is_unanswered() {
            self.failures = 0;
        }
        self.flags &= !UNANSWERED;
        self.failures = self.failures.saturating_add(1);
        self.given_back();
    }

    /// A visit that brought no page and says nothing of it: an outage, a wall. Of a page that was not there before, it still is not known
    /// to be back.
    pub fn unanswered(&mut self) {
        if self.failures == 0 {
            self.flags |= UNANSWERED;
        }
        if self.is_unanswered() {
            self.failures = self.failures.saturating_add(1);
        }
        self.given_back();
    }

    /// The visits in a row that brought no page say nothing of it.
    pub fn is_unanswered(&self) -> bool {
        self.flags & UNANSWERED != 0
    }

    /// Visits in a row that brought no page.
    pub fn failures(&self) -> u8 {
        self.failures
    }

    /// The last good visit; nothing where there was none.
    pub fn last(&self) -> Option<Moment> {
        (self.flags & VISITED != 0).then_some(self.last)
    }

    /// When it is looked at again.
    pub fn due(&self) -> Moment {
        if self.is_out() { Moment::NEVER } else { self.due }
    }

    /// It waits to be fetched.
    pub fn is_out(&self) -> bool {
        self.flags & OUT != 0
    }

    pub(super) fn set_out(&mut self) {
        self.flags |= OUT;
    }

    pub(super) fn is_counted(&self) -> bool {
        self.flags & COUNTED != 0
    }

    pub(super) fn set_counted(&mut self) {
        self.flags |= COUNTED;
    }

    /// How much of its links the last visit found changed, between none and all; a page seen once changed wholly.
    pub fn change_ratio(&self) -> f32 {
        f32::from(self.ratio) / 255.0
    }

    /// The last visit found so much of its links changed.
    pub fn set_change_ratio(&mut self, ratio: f32) {
        self.ratio = (ratio * 255.0).round().clamp(0.0, 255.0) as u8;
    }

    /// Visits that found a change and have not faded, and the days before each, as one number for all. After a long wait a change
    /// says little: where waits differ, the short ones count.
    pub fn changes(&self) -> (f32, f32) {
        if self.inverses > 0.0 {
            (self.roots * self.roots / self.inverses, (self.roots / self.inverses).powi(2))
        } else {
            (0.0, 0.0)
        }
    }

    /// What is believed about its changes.
    pub fn belief(&self) -> Belief {
        Belief { rate_ln: f32::from(self.rate) / RATE_STEPS, spread: f32::from(self.spread) / SPREAD_STEPS }
    }

    /// What is believed from now on.
    pub fn believe(&mut self, belief: Belief) {
        self.rate = (belief.rate_ln * RATE_STEPS).round().clamp(f32::from(i16::MIN), f32::from(i16::MAX)) as i16;
        self.spread = (belief.spread * SPREAD_STEPS).round().clamp(0.0, 255.0) as u8;
    }

    /// What a look at it is worth, against one for an ordinary page.
    pub fn importance(&self) -> f32 {
        ((f32::from(self.importance) - 128.0) / IMPORTANCE_STEPS).exp2()
    }

    /// What a look at it is worth from now on.
    pub fn set_importance(&mut self, importance: f32) {
        let steps = importance.max(f32::MIN_POSITIVE).log2() * IMPORTANCE_STEPS;
        self.importance = (steps + 128.0).round().clamp(0.0, 255.0) as u8;
    }

    /// Changes expected on top of those that time brings, by what others say.
    pub fn evidence(&self) -> f32 {
        if self.flags & TOLD_BY_ANY != 0 { f32::from(self.evidence) / EVIDENCE_STEPS } else { 0.0 }
    }

    /// What is believed of its changes that nobody told of: all of them, where nobody would.
    pub fn unheard(&self) -> Belief {
        let silence = if self.flags & TOLD_BY_ANY != 0 { 0.0 } else { f32::from(self.evidence) / EVIDENCE_STEPS };
        let belief = self.belief();
        Belief { rate_ln: belief.rate_ln - silence, ..belief }
    }

    /// As it is kept on disk.
    pub fn encode(&self) -> [u8; Memory::BYTES] {
        let mut bytes = [0; Memory::BYTES];
        bytes[0..4].copy_from_slice(&self.last.0.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.due.0.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.same_days.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.roots.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.inverses.to_le_bytes());
        bytes[20..22].copy_from_slice(&self.rate.to_le_bytes());
        bytes[22..26].copy_from_slice(&[self.spread, self.importance, self.evidence, self.flags]);
        bytes[26] = self.ratio;
        bytes[27] = self.failures;
        bytes
    }

    /// From what was kept. Numbers that cannot be are taken for nothing known.
    pub fn decode(bytes: &[u8; Memory::BYTES]) -> Memory {
        if bytes[25] & VISITED == 0 {
            return Memory::UNKNOWN;
        }
        let four = |at: usize| [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        let number = |at: usize| {
            let number = f32::from_le_bytes(four(at));
            if number.is_finite() && number >= 0.0 { number } else { 0.0 }
        };
        // Before it was kept who said something, it was taken for the sitemap.
        let unnamed = bytes[24] > 0 && bytes[25] & SAID == 0;
        Memory {
            last: Moment(u32::from_le_bytes(four(0))),
            due: Moment(u32::from_le_bytes(four(4))),
            same_days: number(8),
            roots: number(12),
            inverses: number(16),
            rate: i16::from_le_bytes([bytes[20], bytes[21]]),
            spread: bytes[22],
            importance: bytes[23],
            evidence: bytes[24],
            flags: bytes[25] | if unnamed { NAMED | TOLD } else { 0 },
            ratio: bytes[26],
            failures: bytes[27],
        }
    }
}

fn shift(by: Source) -> u8 {
    match by {
        Source::Sitemap => 0,
        Source::Feed => FEED_SHIFT,
    }
}

fn steps(evidence: f32) -> u8 {
    (evidence.max(0.0) * EVIDENCE_STEPS).round().min(255.0) as u8
}

const _: () = assert!(size_of::<Memory>() <= 32 && Memory::BYTES <= 32);

/// What a page is worth: by the root of the sites that link to it, so that many cheap sites cannot buy visits, times what the
/// operator says.
pub fn importance(referring_sites: u32, weight: f32) -> f32 {
    (1.0 + referring_sites as f32).sqrt() * weight.max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_survives_the_disk() {
        let mut memory = Memory::first(Moment(1_000), 3.0, &Prior::default());
        memory.observe(Found::Changed(None), Moment(90_000));
        memory.observe(Found::Same, Moment(200_000));
        memory.told(Source::Feed, 1.5);
        memory.failed();
        memory.set_out();
        memory.due = Moment(500_000);
        assert_eq!(Memory::decode(&memory.encode()), memory);
        let broken = Memory::decode(&[255; Memory::BYTES]);
        assert_eq!((broken.same_days, broken.changes()), (0.0, (0.0, 0.0)));
        assert_eq!(Memory::decode(&[0; Memory::BYTES]), Memory::UNKNOWN, "what was never written is not known");
    }

    #[test]
    fn who_tells_of_a_change_is_heard_before_who_tells_of_none() {
        let first = Memory::first(Moment(1_000), 3.0, &Prior::default());
        let (mut memory, rate) = (first, first.belief().rate());
        memory.untold(Source::Sitemap, 1.0);
        assert_eq!((memory.said(Source::Sitemap), memory.said(Source::Feed)), (Some(false), None));
        assert!((memory.unheard().rate() / rate - (-1.0f32).exp()).abs() < 0.01 && memory.evidence() == 0.0);
        memory.told(Source::Feed, 0.5);
        memory.untold(Source::Sitemap, 1.0);
        assert_eq!((memory.said(Source::Sitemap), memory.said(Source::Feed)), (Some(false), Some(true)));
        assert_eq!((memory.evidence(), memory.unheard()), (0.5, memory.belief()));
        assert_eq!(Memory::decode(&memory.encode()), memory);
        memory.observe(Found::Same, Moment(90_000));
        assert_eq!((memory.said(Source::Feed), memory.evidence()), (None, 0.0));
        // As it was kept before.
        let mut before = first.encode();
        before[24] = 64;
        let before = Memory::decode(&before);
        assert_eq!((before.said(Source::Sitemap), before.evidence()), (Some(true), 1.0));
    }

    #[test]
    fn what_is_missing_is_told_from_what_did_not_answer() {
        let mut memory = Memory::first(Moment(1_000), 3.0, &Prior::default());
        (0..3).for_each(|_| memory.unanswered());
        assert_eq!((memory.failures(), memory.is_unanswered()), (3, true));
        assert_eq!(Memory::decode(&memory.encode()), memory);
        memory.failed();
        assert_eq!((memory.failures(), memory.is_unanswered()), (1, false), "its death begins now");
        memory.failed();
        memory.unanswered();
        assert_eq!((memory.failures(), memory.is_unanswered()), (2, false), "an outage brings nothing back");
        memory.observe(Found::Same, Moment(90_000));
        memory.unanswered();
        memory.observe(Found::Same, Moment(91_000));
        assert_eq!((memory.failures(), memory.is_unanswered()), (0, false));
    }

    #[test]
    fn a_known_moment_of_change_splits_the_time() {
        let mut memory = Memory::first(Moment(0), 1.0, &Prior::default());
        memory.observe(Found::Changed(Some(Moment(86_400))), Moment(10 * 86_400));
        let (changes, wait) = memory.changes();
        assert!((memory.same_days - 9.0).abs() < 0.01 && (changes - 1.0).abs() < 0.01 && (wait - 1.0).abs() < 0.01);
    }

    #[test]
    fn short_waits_count_more_than_long_ones() {
        let mut memory = Memory::first(Moment(0), 1.0, &Prior::default());
        let mut now = Moment(0);
        for days in [2.0, 2.0, 2.0, 2.0, 2.0, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2] {
            now = now.plus_days(days);
            memory.observe(Found::Changed(None), now);
        }
        let (changes, wait) = memory.changes();
        assert!((11.0..14.0).contains(&changes) && (0.2..0.3).contains(&wait), "{changes} {wait}");
    }

    #[test]
    fn moments_are_held_within_their_bounds() {
        assert_eq!(Moment::from_ms(-5), Moment(0));
        assert_eq!(Moment::from_ms(i64::MAX), Moment(u32::MAX - 1));
        assert_eq!(Moment::from_ms(Moment(77).ms()), Moment(77));
        assert_eq!(Moment(5).plus_days(f32::INFINITY), Moment(u32::MAX - 1));
        assert_eq!(Moment(5).plus_days(f32::NAN), Moment(6));
        assert_eq!(Moment(5).days_since(Moment(9)), 0.0);
    }

    #[test]
    fn importance_is_kept_to_a_twentieth() {
        for importance in [0.01f32, 0.5, 1.0, 7.0, 3_000.0] {
            let mut memory = Memory::UNKNOWN;
            memory.set_importance(importance);
            assert!((memory.importance() / importance - 1.0).abs() < 0.05);
        }
        assert!(super::importance(99, 1.0) > super::importance(3, 1.0));
        assert_eq!(super::importance(0, 1.0), 1.0);
    }
}
