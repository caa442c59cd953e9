//! What sitemaps and feeds say about when a page changed, believed as far as it was right before.
//!
//! One [`Trust`] for each source of hints of a host. Most hosts with dates in their sitemap tell the truth, a fifth write the time at
//! which it was generated; both show within a few visits, because a visit tells whether the page did change. A source that tells of most
//! changes lets pages of which it tells nothing wait; one that never told of any changes nothing.

use super::memory::Moment;
use crate::limits;

/// Who says when pages changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// A sitemap, by its `lastmod`.
    #[default]
    Sitemap,
    /// A feed, by the dates of its items.
    Feed,
}

impl Source {
    /// All of them.
    pub const ALL: [Source; 2] = [Source::Sitemap, Source::Feed];
}

/// How often hints were right.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Trust {
    told_changed: f32,
    told_same: f32,
    untold_changed: f32,
    at: Moment,
}

impl Trust {
    /// A visit showed whether the page had changed, and a hint had said that it did, or that it had not.
    pub fn observe(&mut self, told: bool, changed: bool, now: Moment) {
        self.fade(now);
        match (told, changed) {
            (true, true) => self.told_changed += 1.0,
            (true, false) => self.told_same += 1.0,
            (false, true) => self.untold_changed += 1.0,
            (false, false) => {}
        }
    }

    fn fade(&mut self, now: Moment) {
        let fade = 0.5f32.powf(now.days_since(self.at) / limits::TRUST_FADE_DAYS);
        self.told_changed *= fade;
        self.told_same *= fade;
        self.untold_changed *= fade;
        self.at = now;
    }

    /// Of the hints, those that were right.
    pub fn precision(&self) -> f32 {
        (self.told_changed + 1.0) / (self.told_changed + self.told_same + 2.0)
    }

    /// Of the changes, those that were hinted at, as far as that is certain: none before any was.
    pub fn recall(&self) -> f32 {
        self.told_changed / (self.told_changed + self.untold_changed + limits::UNTOLD_BEFORE)
    }

    /// How many changes a hint is worth: a page that changed with probability π is as stale as after −ln(1−π) expected changes.
    pub fn expected_changes(&self) -> f32 {
        -(1.0 - self.precision()).ln()
    }

    /// What it is worth that nothing is hinted at: of the changes, the share 1−ρ goes untold; its logarithm, without the sign.
    pub fn silence(&self) -> f32 {
        (-(1.0 - self.recall()).ln()).min(limits::SILENCE_MAX)
    }

    /// The counts in steps of which no more than `most` can be written; larger ones in proportion.
    fn counts(&self, per_one: f32, most: f32) -> [f32; 3] {
        let counts = [self.told_changed, self.told_same, self.untold_changed].map(|count| count * per_one);
        let largest = counts.iter().fold(most, |largest, count| largest.max(*count));
        counts.map(|count| (count * most / largest).round())
    }
}

/// How far the sources of a host are believed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Trusts {
    sitemap: Trust,
    feed: Trust,
}

/// What is kept of sitemaps is exact to a quarter, of feeds to one.
const SITEMAP_STEPS: (f32, f32) = (4.0, 255.0);
const FEED_STEPS: (f32, f32) = (1.0, 31.0);

impl Trusts {
    /// Bytes that they take on a disk.
    pub const BYTES: usize = 7;

    /// How far a source is believed.
    pub fn of(&self, source: Source) -> &Trust {
        match source {
            Source::Sitemap => &self.sitemap,
            Source::Feed => &self.feed,
        }
    }

    /// A visit showed whether a source was right.
    pub fn observe(&mut self, source: Source, told: bool, changed: bool, now: Moment) {
        let trust = match source {
            Source::Sitemap => &mut self.sitemap,
            Source::Feed => &mut self.feed,
        };
        trust.observe(told, changed, now);
    }

    /// As bytes: `| told changed 1 | told same 1 | untold changed 1 | day 2 | the same of feeds, five bits each 2 |`, counts of sitemaps in
    /// quarters. All zero before anything was seen.
    pub fn encode(&self) -> [u8; Trusts::BYTES] {
        let Trusts { mut sitemap, mut feed } = *self;
        let day = sitemap.at.max(feed.at);
        sitemap.fade(day);
        feed.fade(day);
        let [changed, same, untold] = sitemap.counts(SITEMAP_STEPS.0, SITEMAP_STEPS.1).map(|count| count as u8);
        let [low, high] = ((day.0 / 86_400).min(u16::MAX.into()) as u16).to_le_bytes();
        let feeds = feed.counts(FEED_STEPS.0, FEED_STEPS.1).map(|count| count as u16);
        let [feed_low, feed_high] = (feeds[0] | feeds[1] << 5 | feeds[2] << 10).to_le_bytes();
        [changed, same, untold, low, high, feed_low, feed_high]
    }

    /// What bytes stand for.
    pub fn decode(bytes: [u8; Trusts::BYTES]) -> Trusts {
        let [changed, same, untold, low, high, feed_low, feed_high] = bytes;
        let at = Moment(u32::from(u16::from_le_bytes([low, high])) * 86_400);
        let trust = |[told_changed, told_same, untold_changed]: [u16; 3], per_one: f32| Trust {
            told_changed: f32::from(told_changed) / per_one,
            told_same: f32::from(told_same) / per_one,
            untold_changed: f32::from(untold_changed) / per_one,
            at,
        };
        let feeds = u16::from_le_bytes([feed_low, feed_high]);
        Trusts {
            sitemap: trust([changed, same, untold].map(u16::from), SITEMAP_STEPS.0),
            feed: trust([feeds & 31, feeds >> 5 & 31, feeds >> 10 & 31], FEED_STEPS.0),
        }
    }
}

/// Does a date say that the page changed since the last visit, or that it did not? One in the future says nothing, nor does one that may
/// be before that visit or after it: that of a day, told without the time.
pub fn says_changed(from: Moment, to: Moment, last_visit: Moment, now: Moment) -> Option<bool> {
    let is_known = from <= now && (from > last_visit || to <= last_visit);
    is_known.then_some(from > last_visit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_tells_the_truth_is_believed_and_who_says_it_always_is_not() {
        let (mut honest, mut liar) = (Trust::default(), Trust::default());
        for day in 0..60u32 {
            let (now, changed) = (Moment(day * 86_400), day % 10 == 0);
            honest.observe(changed, changed, now);
            liar.observe(true, changed, now);
        }
        assert!(honest.precision() > 0.8 && honest.recall() > 0.65);
        assert!(liar.precision() < 0.2);
        assert!(honest.expected_changes() > 1.5 && liar.expected_changes() < 0.25);
    }

    #[test]
    fn the_silence_of_who_never_told_of_a_change_says_nothing() {
        let (mut honest, mut mute) = (Trust::default(), Trust::default());
        assert_eq!(mute.silence(), 0.0, "nobody knows yet");
        for day in 0..60u32 {
            honest.observe(day % 3 == 0, day % 3 == 0, Moment(day * 86_400));
            mute.observe(false, day % 3 == 0, Moment(day * 86_400));
        }
        assert_eq!((mute.recall(), mute.silence()), (0.0, 0.0));
        assert!(honest.silence() > 1.0 && honest.silence() <= limits::SILENCE_MAX, "{}", honest.silence());
    }

    #[test]
    fn what_is_kept_is_believed_as_before_each_source_for_itself() {
        assert_eq!(Trusts::decode([0; Trusts::BYTES]), Trusts::default());
        let mut trusts = Trusts::default();
        for day in 0..400 {
            let now = Moment((20_000 + day / 10) * 86_400);
            trusts.observe(Source::Sitemap, day % 5 != 0, day % 3 != 0, now);
            trusts.observe(Source::Feed, day % 2 != 0, day % 4 != 0, now);
        }
        let back = Trusts::decode(trusts.encode());
        for source in Source::ALL {
            let (now, then) = (trusts.of(source), back.of(source));
            let near = |a: f32, b: f32| (a - b).abs() < 0.05;
            assert!(near(now.precision(), then.precision()) && near(now.recall(), then.recall()), "{now:?} {then:?}");
        }
        assert_eq!(back.encode(), trusts.encode());
        // As it was kept before feeds had a trust of their own.
        let [changed, same, untold, low, high, ..] = trusts.encode();
        let before = Trusts::decode([changed, same, untold, low, high, 0, 0]);
        assert_eq!((before.of(Source::Sitemap), before.feed.recall()), (back.of(Source::Sitemap), 0.0));
    }

    #[test]
    fn a_host_that_changed_its_ways_is_believed_again() {
        let mut trust = Trust::default();
        (0..50).for_each(|day| trust.observe(true, false, Moment(day * 86_400)));
        let before = trust.precision();
        (0..50).for_each(|day| trust.observe(true, true, Moment((800 + day) * 86_400)));
        assert!(before < 0.1 && trust.precision() > 0.9);
    }

    #[test]
    fn only_dates_between_the_last_visit_and_now_count() {
        let says = |from, to| says_changed(Moment(from), Moment(to), Moment(40), Moment(60));
        assert_eq!((says(50, 50), says(40, 40), says(61, 61)), (Some(true), Some(false), None));
        assert_eq!((says(41, 50), says(30, 40), says(30, 50)), (Some(true), Some(false), None), "a span");
    }
}
