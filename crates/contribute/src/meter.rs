//! The owner's wishes, and whether they allow something now. Pure: the time comes in.
//!
//! Every byte that the contributor reads from sites or exchanges with nodes passes here, and every request. What is not allowed now
//! has a reason that can be shown, and a time at which to look again.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::limits::{GRANT_BYTES, MONTHS_MAX, OWN_GAP_MS, OWN_SITE_DAY_MAX, SITES_MAX};

/// What the owner allows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wishes {
    /// Bytes a second, both ways and all connections together; 0: no bound.
    pub rate: u64,
    /// Bytes a calendar month (UTC); 0: no bound.
    pub month_bytes: u64,
    /// Hours of the day, local time: from, to; may pass midnight.
    pub hours: Option<(u8, u8)>,
    /// Connections to sites at once.
    pub connections: usize,
    /// Hundredths of one processor.
    pub cpu_percent: u32,
    /// Bytes of results on disk.
    pub disk_bytes: u64,
    /// Only while the machine is not on battery.
    pub mains_only: bool,
    /// Hosts, domains (`*.example.org`) and countries (`.cn`, by the ending of the name) that are not visited.
    pub avoid: Vec<String>,
}

impl Default for Wishes {
    fn default() -> Wishes {
        Wishes {
            rate: 0,
            month_bytes: 0,
            hours: None,
            connections: 8,
            cpu_percent: 100,
            disk_bytes: 1 << 30,
            mains_only: false,
            avoid: Vec::new(),
        }
    }
}

/// Why nothing more is done now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhyNot {
    /// The owner said so.
    Paused,
    /// Not at this hour.
    Hours(u8, u8),
    /// The month's bytes are used.
    Month(u64),
    /// The machine is on battery.
    Battery,
    /// Results that no node has taken yet fill the room for them.
    Disk(u64),
    /// The share of the processor is used.
    Processor(u32),
    /// As many connections as allowed.
    Connections(usize),
    /// What is in hand is to be finished, and nothing new begun.
    Finishing,
}

impl fmt::Display for WhyNot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WhyNot::Paused => f.write_str("paused; `skep contribute --resume` goes on"),
            WhyNot::Hours(from, to) => write!(f, "only between {from:02}:00 and {to:02}:00"),
            WhyNot::Month(bytes) => write!(f, "the {bytes} bytes of this month are used"),
            WhyNot::Battery => f.write_str("on battery, and only mains power is allowed"),
            WhyNot::Disk(bytes) => write!(f, "{bytes} bytes of results wait for the node, no more room is allowed"),
            WhyNot::Processor(percent) => write!(f, "{percent} % of a processor are used, no more is allowed"),
            WhyNot::Connections(count) => write!(f, "{count} connections are open, no more are allowed"),
            WhyNot::Finishing => f.write_str("finishing what is in hand, then stopping"),
        }
    }
}

/// What is known of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// The hour of the day, local time.
    pub hour: u8,
    /// Months since 1970 (UTC).
    pub month: u32,
    /// Days since 1970 (UTC).
    pub day: u32,
    /// It runs on battery.
    pub on_battery: bool,
    /// Bytes of results on disk.
    pub disk_bytes: u64,
}

/// What was used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Used {
    /// Which month.
    pub month: u32,
    /// Bytes in it.
    pub month_bytes: u64,
    /// Bytes in others: a clock that was wrong for a while gives nobody a second month.
    #[serde(default)]
    pub months: BTreeMap<u32, u64>,
    /// Bytes ever.
    pub bytes: u64,
    /// Requests ever.
    pub requests: u64,
}

/// Requests of a day to sites that were asked often, over a restart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asks {
    /// Which day: days since 1970 (UTC).
    pub day: u32,
    /// By site.
    pub sites: BTreeMap<String, u32>,
}

/// A site that was asked less often today may be forgotten over a restart.
const ASKS_KEPT_MIN: u32 = 50;

/// Holds the wishes against what is done.
#[derive(Clone, Debug)]
pub struct Meter {
    wishes: Wishes,
    used: Used,
    machine: Machine,
    /// Said by the owner meanwhile.
    pub paused: bool,
    /// See [`WhyNot::Finishing`].
    pub finishing: bool,
    /// This month no more is fetched.
    month_over: bool,
    /// When bytes may next be taken, in microseconds: what was granted is paid for before more is.
    paid_until_us: u64,
    cpu_free_at_ms: u64,
    open: usize,
    sites: HashMap<String, Site>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Site {
    next_ms: u64,
    day: u32,
    asked: u32,
}

/// A grant is at most this much of a second's bytes, so that it comes evenly.
const GRANTS_PER_SECOND: u64 = 20;

impl Meter {
    /// Nothing was done yet but what `used` says.
    pub fn new(wishes: Wishes, used: Used) -> Meter {
        Meter {
            wishes,
            used,
            machine: Machine::default(),
            paused: false,
            finishing: false,
            month_over: false,
            paid_until_us: 0,
            cpu_free_at_ms: 0,
            open: 0,
            sites: HashMap::new(),
        }
    }

    /// What the owner allows.
    pub fn wishes(&self) -> &Wishes {
        &self.wishes
    }

    /// What was used.
    pub fn used(&self) -> &Used {
        &self.used
    }

    /// Connections that are open.
    pub fn open(&self) -> usize {
        self.open
    }

    /// The machine is like this now.
    pub fn look(&mut self, machine: Machine) {
        if machine.month != self.used.month {
            let Used { month, month_bytes, months, .. } = &mut self.used;
            if *month_bytes > 0 {
                months.insert(*month, *month_bytes);
            }
            (*month, *month_bytes) = (machine.month, months.remove(&machine.month).unwrap_or(0));
            while months.len() > MONTHS_MAX {
                months.pop_first();
            }
            self.month_over = false;
        }
        self.machine = machine;
        self.look_at_month();
    }

    /// What was fetched has to go over the line once more: when no more than that is left, nothing else is fetched in this month.
    fn look_at_month(&mut self) {
        self.month_over |= self.month_left() <= self.machine.disk_bytes && self.wishes.month_bytes > 0;
    }

    /// Is no more fetched in this month?
    pub fn is_month_over(&self) -> bool {
        self.month_over
    }

    /// Is not a byte of the month left, also not for the node?
    pub fn is_month_used(&self) -> bool {
        self.month_left() == 0
    }

    /// What is to be remembered of today.
    pub fn asks(&self) -> Asks {
        let day = self.machine.day;
        let often = self.sites.iter().filter(|(_, site)| site.day == day && site.asked >= ASKS_KEPT_MIN);
        Asks { day, sites: often.map(|(name, site)| (name.clone(), site.asked)).collect() }
    }

    /// What was remembered of a day.
    pub fn remember(&mut self, asks: Asks) {
        let day = asks.day;
        let sites = asks.sites.into_iter().take(SITES_MAX);
        self.sites.extend(sites.map(|(name, asked)| (name, Site { next_ms: 0, day, asked })));
    }

    /// Why nothing at all may go to sites now; nothing if it may.
    pub fn why_not(&self) -> Option<WhyNot> {
        if self.paused {
            return Some(WhyNot::Paused);
        }
        if let Some((from, to)) = self.wishes.hours.filter(|(from, to)| !is_within(*from, *to, self.machine.hour)) {
            return Some(WhyNot::Hours(from, to));
        }
        if self.month_over {
            return Some(WhyNot::Month(self.wishes.month_bytes));
        }
        (self.wishes.mains_only && self.machine.on_battery).then_some(WhyNot::Battery)
    }

    /// Why no new bundle is asked for.
    pub fn why_no_more(&self) -> Option<WhyNot> {
        if self.finishing {
            return Some(WhyNot::Finishing);
        }
        let full = self.machine.disk_bytes >= self.wishes.disk_bytes;
        self.why_not().or(full.then_some(WhyNot::Disk(self.machine.disk_bytes)))
    }

    fn month_left(&self) -> u64 {
        match self.wishes.month_bytes {
            0 => u64::MAX,
            most => most.saturating_sub(self.used.month_bytes),
        }
    }

    /// So many of `bytes` of sites may be taken now; or none, and when to ask again. What is granted counts as used.
    pub fn take(&mut self, bytes: u64, now_us: u64) -> Result<u64, u64> {
        // Bytes of an answer under way are taken also outside the hours; those beyond the quota are not.
        self.look_at_month();
        let left = self.month_left().saturating_sub(self.machine.disk_bytes);
        if self.month_over || self.paused {
            return Err(now_us + 1_000_000);
        }
        let granted = match self.wishes.rate {
            0 => bytes.min(GRANT_BYTES),
            rate => {
                if self.paid_until_us > now_us {
                    return Err(self.paid_until_us);
                }
                let granted = bytes.min((rate / GRANTS_PER_SECOND).max(1)).min(left);
                // Time that was not used is lost: nothing is saved up for a burst.
                self.paid_until_us = now_us + (granted * 1_000_000).div_ceil(rate);
                granted
            }
        }
        .min(left);
        self.count(granted);
        Ok(granted)
    }

    /// So many bytes have gone over the line, to nodes or beside what was granted. Returns when they are paid for.
    pub fn spent(&mut self, bytes: u64, now_us: u64) -> u64 {
        self.count(bytes);
        let us = bytes.saturating_mul(1_000_000).checked_div(self.wishes.rate).unwrap_or(0);
        self.paid_until_us = self.paid_until_us.max(now_us).saturating_add(us);
        self.paid_until_us
    }

    /// Granted, but not taken.
    pub fn back(&mut self, bytes: u64) {
        self.used.bytes = self.used.bytes.saturating_sub(bytes);
        self.used.month_bytes = self.used.month_bytes.saturating_sub(bytes);
        let unpaid_us = bytes.saturating_mul(1_000_000).checked_div(self.wishes.rate).unwrap_or(0);
        self.paid_until_us = self.paid_until_us.saturating_sub(unpaid_us);
    }

    fn count(&mut self, bytes: u64) {
        self.used.bytes = self.used.bytes.saturating_add(bytes);
        self.used.month_bytes = self.used.month_bytes.saturating_add(bytes);
    }

    /// A connection may be opened for a bundle.
    pub fn connect(&mut self) -> Result<(), WhyNot> {
        if let Some(why) = self.why_not() {
            return Err(why);
        }
        if self.is_full() {
            return Err(WhyNot::Connections(self.open));
        }
        self.open += 1;
        Ok(())
    }

    /// Are as many connections open as may be?
    pub fn is_full(&self) -> bool {
        self.open >= self.wishes.connections
    }

    /// The bundle's connection is closed.
    pub fn closed(&mut self) {
        self.open = self.open.saturating_sub(1);
    }

    /// A site may be asked now; or why not, and when to try again. `gap_ms`: what the bundle asks for.
    pub fn ask(&mut self, site: &str, now_ms: u64) -> Result<(), Asked> {
        if let Some(why) = self.why_not() {
            return Err(Asked::NotNow(why, now_ms + 500));
        }
        if self.cpu_free_at_ms > now_ms {
            return Err(Asked::NotNow(WhyNot::Processor(self.wishes.cpu_percent), self.cpu_free_at_ms));
        }
        let day = self.machine.day;
        if self.sites.len() >= SITES_MAX && !self.sites.contains_key(site) {
            self.sites.retain(|_, site| site.next_ms > now_ms || (site.day == day && site.asked > 1));
        }
        let known = self.sites.entry(site.to_owned()).or_default();
        if known.day != day {
            (known.day, known.asked) = (day, 0);
        }
        if known.asked >= OWN_SITE_DAY_MAX {
            return Err(Asked::Enough);
        }
        if known.next_ms > now_ms {
            return Err(Asked::Wait(known.next_ms));
        }
        known.asked += 1;
        // Until the answer is here nobody else asks.
        known.next_ms = now_ms + 3_600_000;
        self.used.requests += 1;
        Ok(())
    }

    /// The answer is complete: the site rests for the gap, and never less than our own.
    pub fn answered(&mut self, site: &str, gap_ms: u64, cpu_ms: u64, now_ms: u64) {
        if let Some(known) = self.sites.get_mut(site) {
            known.next_ms = now_ms + gap_ms.max(OWN_GAP_MS);
        }
        if self.wishes.cpu_percent < 100 {
            let wall_ms = cpu_ms.saturating_mul(100) / u64::from(self.wishes.cpu_percent.max(1));
            self.cpu_free_at_ms = self.cpu_free_at_ms.max(now_ms.saturating_sub(1_000)) + wall_ms;
        }
    }

    /// Is a host one that the owner avoids?
    pub fn avoids(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        self.wishes.avoid.iter().any(|avoid| {
            let avoid = avoid.to_ascii_lowercase();
            match avoid.strip_prefix("*.") {
                Some(domain) => host == domain || host.ends_with(&format!(".{domain}")),
                None if avoid.starts_with('.') => host.ends_with(&avoid),
                None => host == avoid || host.ends_with(&format!(".{avoid}")),
            }
        })
    }
}

/// Why a site is not asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Its gap is not over before then.
    Wait(u64),
    /// The owner's wishes; look again then.
    NotNow(WhyNot, u64),
    /// Today no more.
    Enough,
}

/// Is an hour within hours that may pass midnight? From 0 to 0 is always.
fn is_within(from: u8, to: u8, hour: u8) -> bool {
    match from.cmp(&to) {
        std::cmp::Ordering::Equal => true,
        std::cmp::Ordering::Less => (from..to).contains(&hour),
        std::cmp::Ordering::Greater => hour >= from || hour < to,
    }
}

/// The last things that happened, for a screen.
#[derive(Clone, Debug, Default)]
pub struct Lately {
    lines: VecDeque<String>,
}

impl Lately {
    /// One more; the oldest goes.
    pub fn say(&mut self, line: String) {
        self.lines.push_back(line);
        if self.lines.len() > 20 {
            self.lines.pop_front();
        }
    }

    /// The newest last.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meter(wishes: Wishes) -> Meter {
        Meter::new(wishes, Used::default())
    }

    #[test]
    fn no_window_of_time_sees_more_bytes_than_the_rate_allows() {
        let rate = 200_000;
        let mut meter = meter(Wishes { rate, ..Wishes::default() });
        let (mut now_us, mut taken) = (5_000_000, Vec::new());
        let mut seed = 1u64;
        while now_us < 65_000_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            match meter.take(seed >> 48, now_us) {
                Ok(bytes) => {
                    let came = bytes.saturating_sub(seed >> 60);
                    meter.back(bytes - came);
                    taken.push((now_us, came));
                }
                Err(at) => now_us = at.max(now_us + 1),
            }
            if seed >> 58 == 0 {
                now_us += 700_000; // nobody wants anything for a while
            }
        }
        for window_us in [1_000_000, 10_000_000] {
            for (at, _) in &taken {
                let bytes: u64 =
                    taken.iter().filter(|(t, _)| (*at..*at + window_us).contains(t)).map(|(_, bytes)| bytes).sum();
                let most = rate * window_us / 1_000_000 + rate / GRANTS_PER_SECOND;
                assert!(bytes <= most, "{bytes} in {window_us} us from {at}");
            }
        }
        assert!(taken.iter().map(|(_, bytes)| bytes).sum::<u64>() > 20 * rate, "and it is used");
    }

    #[test]
    fn the_month_ends_the_bytes_and_the_next_one_begins_anew() {
        let mut meter = meter(Wishes { month_bytes: 1_000, ..Wishes::default() });
        meter.look(Machine { month: 600, ..Machine::default() });
        assert_eq!(meter.take(700, 0), Ok(700));
        assert_eq!(meter.take(700, 0), Ok(300));
        assert!(meter.take(1, 0).is_err());
        assert!(meter.is_month_used());
        assert_eq!(meter.why_not(), Some(WhyNot::Month(1_000)));
        assert_eq!(meter.connect(), Err(WhyNot::Month(1_000)));
        meter.look(Machine { month: 601, ..Machine::default() });
        assert_eq!((meter.why_not(), meter.take(10, 0)), (None, Ok(10)));
        assert_eq!(meter.used().bytes, 1_010);
    }

    #[test]
    fn a_clock_that_is_wrong_for_a_while_gives_no_second_month() {
        let wishes = || Wishes { month_bytes: 1_000, ..Wishes::default() };
        let at = |month| Machine { month, ..Machine::default() };
        let mut before = meter(wishes());
        before.look(at(600));
        assert_eq!(before.take(1_000, 0), Ok(1_000));
        // A machine without a battery for its clock begins in another year, until somebody tells it better.
        let mut after =
            Meter::new(wishes(), serde_json::from_slice(&serde_json::to_vec(before.used()).unwrap()).unwrap());
        after.look(at(1));
        assert_eq!(after.take(10, 0), Ok(10));
        after.look(at(600));
        assert_eq!((after.why_not(), after.used().month_bytes), (Some(WhyNot::Month(1_000)), 1_000));
        assert!(after.take(1, 0).is_err());
        (700..800).for_each(|month| after.look(at(month)));
        assert!(after.used().months.len() <= MONTHS_MAX);
    }

    #[test]
    fn what_goes_to_the_node_is_counted_and_room_is_left_for_it() {
        let mut meter = meter(Wishes { month_bytes: 1_000, rate: 100, ..Wishes::default() });
        let on_disk = |disk_bytes| Machine { month: 600, disk_bytes, ..Machine::default() };
        meter.look(on_disk(0));
        assert_eq!(meter.spent(300, 0), 3_000_000, "three seconds at that rate");
        assert_eq!(meter.take(1, 2_999_999), Err(3_000_000));
        meter.look(on_disk(690));
        assert_eq!(meter.take(700, 3_000_000), Ok(5), "a part of a second");
        meter.look(on_disk(695));
        assert_eq!(meter.why_not(), Some(WhyNot::Month(1_000)), "the rest is for what was fetched");
        assert!(!meter.is_month_used());
        meter.spent(695, 4_000_000);
        meter.look(on_disk(0));
        assert!(meter.is_month_used() && meter.why_not().is_some());
        meter.spent(400, 4_000_000);
        assert_eq!(meter.used().month_bytes, 1_400, "what has gone has gone");
    }

    #[test]
    fn hours_battery_disk_and_words_of_the_owner() {
        let wishes = Wishes { hours: Some((22, 6)), mains_only: true, disk_bytes: 100, ..Wishes::default() };
        let mut meter = meter(wishes);
        let at = |hour| Machine { hour, ..Machine::default() };
        for (hour, works) in [(21, false), (22, true), (0, true), (5, true), (6, false), (12, false)] {
            meter.look(at(hour));
            assert_eq!(meter.why_not().is_none(), works, "{hour}");
        }
        meter.look(Machine { on_battery: true, ..at(23) });
        assert_eq!(meter.why_not(), Some(WhyNot::Battery));
        meter.look(Machine { disk_bytes: 100, ..at(23) });
        assert_eq!((meter.why_not(), meter.why_no_more()), (None, Some(WhyNot::Disk(100))));
        meter.look(at(23));
        meter.paused = true;
        assert_eq!(meter.why_not(), Some(WhyNot::Paused));
        (meter.paused, meter.finishing) = (false, true);
        assert_eq!((meter.why_not(), meter.why_no_more()), (None, Some(WhyNot::Finishing)));
    }

    #[test]
    fn a_site_is_asked_at_our_own_gap_whatever_the_bundle_says_and_not_for_ever() {
        let mut meter = meter(Wishes::default());
        meter.look(Machine { day: 20_000, ..Machine::default() });
        let mut now_ms = 86_400_000;
        assert_eq!(meter.ask("a.test", now_ms), Ok(()));
        assert!(matches!(meter.ask("a.test", now_ms + 1), Err(Asked::Wait(_))), "the answer is not here");
        meter.answered("a.test", 0, 0, now_ms);
        assert_eq!(meter.ask("a.test", now_ms + 499), Err(Asked::Wait(now_ms + 500)));
        assert_eq!(meter.ask("b.test", now_ms), Ok(()));
        for _ in 1..OWN_SITE_DAY_MAX {
            now_ms += 500;
            assert_eq!(meter.ask("a.test", now_ms), Ok(()));
            meter.answered("a.test", 1, 0, now_ms);
        }
        assert_eq!(meter.ask("a.test", now_ms + 500), Err(Asked::Enough));
        // Who begins anew has not forgotten it.
        let mut after = Meter::new(Wishes::default(), Used::default());
        after.look(Machine { day: 20_000, ..Machine::default() });
        after.remember(serde_json::from_slice(&serde_json::to_vec(&meter.asks()).unwrap()).unwrap());
        assert_eq!(after.ask("a.test", 0), Err(Asked::Enough));
        assert_eq!(after.ask("b.test", 0), Ok(()));
        for mut meter in [meter, after] {
            meter.look(Machine { day: 20_001, ..Machine::default() });
            assert_eq!(meter.ask("a.test", now_ms + 500), Ok(()), "tomorrow again");
        }
    }

    #[test]
    fn connections_processor_and_avoided_hosts() {
        let avoid = vec!["example.org".into(), "*.shop.test".into(), ".cn".into()];
        let mut meter = meter(Wishes { connections: 2, cpu_percent: 25, avoid, ..Wishes::default() });
        assert_eq!((meter.connect(), meter.connect()), (Ok(()), Ok(())));
        assert_eq!(meter.connect(), Err(WhyNot::Connections(2)));
        meter.closed();
        assert_eq!(meter.connect(), Ok(()));
        assert_eq!(meter.ask("a.test", 10_000), Ok(()));
        meter.answered("a.test", 500, 1_000, 10_000);
        let why = WhyNot::Processor(25);
        assert_eq!(meter.ask("b.test", 10_100), Err(Asked::NotNow(why, 13_000)), "a second of work is four of time");
        for (host, avoided) in [
            ("example.org", true),
            ("www.example.org", true),
            ("notexample.org", false),
            ("a.shop.test", true),
            ("news.example.cn", true),
            ("cn.test", false),
            ("example.org.", true),
            ("news.example.cn.", true),
        ] {
            assert_eq!(meter.avoids(host), avoided, "{host}");
        }
    }
}
