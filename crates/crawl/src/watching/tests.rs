//! What goes into memories, without sockets: visits are told, not made.

use super::*;
use crate::control::Question;
use crate::inquiry::{Inquiry, Step};
use crate::registry_key::RegistryKey;
use crate::settings::{Rate, Settings, SiteSettings};
use skep_archive::{Archive, OpenOptions};
use skep_page::{Link, LinkKind};
use skep_schedule::retry::Patience;
use std::sync::Arc;

const DAY_MS: i64 = 86_400_000;
const BEGIN_MS: i64 = 1_790_000_000_000;
const HOME: &str = "http://bees.test/";

struct Told {
    ledger: Ledger,
    _archive: Archive,
    _folder: tempfile::TempDir,
}

impl Told {
    fn watched(watch: Watch) -> Told {
        let folder = tempfile::tempdir().unwrap();
        let archive = Archive::open(folder.path(), OpenOptions::create()).unwrap();
        let key = RegistryKey::load(&archive.layout().settings()).unwrap();
        let mut ledger = Ledger::open(&archive, &key, Patience::default()).unwrap();
        let mut settings = Settings {
            name: "test".into(),
            number: 1,
            seeds: vec![
                HOME.into(),
                "http://dear.test/".into(),
                "http://wasps.example/".into(),
                "http://ants.example/".into(),
            ],
            watch: Some(watch.clone()),
            ..Settings::default()
        };
        settings.site.insert("dear.test".into(), SiteSettings { weight_percent: Some(900), ..SiteSettings::default() });
        let settings = Arc::new(settings);
        ledger.set_rules(settings.clone()).unwrap();
        settings.seeds.iter().for_each(|seed| assert!(ledger.seed(1, seed).unwrap()));
        ledger.watch(1, &watch, Moment::from_ms(BEGIN_MS));
        Told { ledger, _archive: archive, _folder: folder }
    }

    fn entry(&mut self, url: &str) -> u64 {
        self.ledger.registry.known(1, &canonical(url)).unwrap().expect(url)
    }

    fn memory(&mut self, url: &str) -> Memory {
        let entry = self.entry(url);
        self.ledger.registry.memory(entry).unwrap()
    }

    fn visit(&mut self, url: &str, day: i64, outcome: Outcome, found: Finding, links: &[&str]) {
        let entry = self.entry(url);
        let link = |url: &&str| Link { url: (*url).to_owned(), kind: LinkKind::Anchor, nofollow: false };
        let visited = Visited {
            url: url.into(),
            found,
            links: links.iter().map(link).collect(),
            mime: "text/html".into(),
            ..Visited::bare(entry, outcome, BEGIN_MS + day * DAY_MS, outcome.failures_after(0))
        };
        self.ledger.visited(1, 1, &visited).unwrap();
    }

    /// What waits for a host, and what of it is overdue, as people are told.
    fn queue(&mut self, host: &str) -> (u64, u64) {
        let settings = Settings::clone(self.ledger.rules(1).unwrap().settings());
        let asked = Question::Queue { host: Some(host.into()), limit: 9 };
        let mut inquiry = Inquiry::of(&asked, vec![settings]).unwrap().unwrap();
        loop {
            if let Step::Told(told) = inquiry.step(&mut self.ledger, None).unwrap() {
                let number = |name: &str| told[0][name].as_u64().unwrap();
                return (number("waiting"), number("overdue"));
            }
        }
    }

    fn ok(&mut self, url: &str, day: i64, found: Finding) {
        self.visit(url, day, Outcome(200), found, &[]);
    }
}

fn day(day: i64) -> Moment {
    Moment::from_ms(BEGIN_MS + day * DAY_MS)
}

#[test]
fn challenges_and_outages_say_nothing_and_what_is_missing_is_looked_for_ever_more_seldom() {
    let mut told = Told::watched(Watch::default());
    told.ok(HOME, 0, Finding::First);
    told.ok(HOME, 1, Finding::Same);
    told.ok(HOME, 2, Finding::Changed);
    let before = told.memory(HOME);
    assert_eq!((before.last(), before.changes().0.round()), (Some(day(2)), 1.0));
    told.visit(HOME, 3, Outcome(200), Finding::Nothing, &[]);
    told.visit(HOME, 4, Outcome::CHALLENGE, Finding::Nothing, &[]);
    told.visit(HOME, 4, Outcome(503), Finding::Nothing, &[]);
    let after = told.memory(HOME);
    assert_eq!((after.last(), after.changes(), after.belief()), (before.last(), before.changes(), before.belief()));

    // For now it is elsewhere.
    told.visit(HOME, 5, Outcome(302), Finding::Nothing, &[]);
    let after = told.memory(HOME);
    assert_eq!((after.last(), after.changes(), after.belief()), (before.last(), before.changes(), before.belief()));
    assert!(after.due() > day(5) && after.due() <= day(6), "it is looked at again soon");
    told.ok(HOME, 6, Finding::Same);
    assert_eq!(told.memory(HOME).changes().0.round(), 1.0);

    let mut waits = Vec::new();
    let mut today = 10;
    for _ in 0..8 {
        // What stood in front of it before does not count.
        told.visit(HOME, today, Outcome(404), Finding::Nothing, &[]);
        let memory = told.memory(HOME);
        let wait = memory.due().days_since(day(today)).round() as i64;
        waits.push(wait);
        today += wait;
    }
    assert_eq!(waits[..4], [1, 7, 14, 28], "confirmed within nine days, then more and more seldom");
    assert_eq!(waits[7], 180);
    told.ok(HOME, today, Finding::Changed);
    assert_eq!(told.memory(HOME).failures(), 0);
    // The same record folded again changes nothing.
    let once = told.memory(HOME);
    told.ok(HOME, today, Finding::Changed);
    assert_eq!(told.memory(HOME), once);
}

#[test]
fn a_login_and_a_refusal_are_trouble_and_not_missing() {
    for status in [400, 401, 402, 403, 407, 451] {
        let mut told = Told::watched(Watch::default());
        told.ok(HOME, 0, Finding::First);
        told.ok(HOME, 1, Finding::Changed);
        let before = told.memory(HOME);
        let entry = told.entry(HOME);
        let mut waits = Vec::new();
        for today in 2..12 {
            // It was tried again at once, and was the same.
            let bare = Visited::bare(entry, Outcome(status), BEGIN_MS + today * DAY_MS, 2);
            told.ledger.visited(1, 1, &Visited { url: HOME.into(), found: Finding::Nothing, ..bare }).unwrap();
            waits.push((told.memory(HOME).due().days_since(day(today)) * 24.0).round() as i64);
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 168, 168], "{status}: within the hour, then ever more seldom");
        let after = told.memory(HOME);
        assert_eq!((after.last(), after.changes(), after.belief()), (before.last(), before.changes(), before.belief()));
        // What stood in front of it does not count as failures.
        told.visit(HOME, 12, Outcome(404), Finding::Nothing, &[]);
        assert_eq!(told.memory(HOME).due().days_since(day(12)).round(), 1.0, "{status}");
    }
}

#[test]
fn trouble_is_no_reason_to_ask_more_often_than_when_all_is_well() {
    const HOUR_MS: i64 = 3_600_000;
    for (watch, day_max, year_max) in [
        (Watch::default(), 6, 70),
        (Watch { every_ms: Some(2 * DAY_MS as u64), ..Watch::default() }, 10, 200),
        (Watch { budget: Some(Rate { visits: 500, seconds: 86_400 }), ..Watch::default() }, 6, 70),
    ] {
        let mut told = Told::watched(watch);
        told.ok(HOME, 0, Finding::First);
        let entry = told.entry(HOME);
        let mut looks: Vec<i64> = Vec::new();
        for hour in 72..365 * 24 {
            let now_ms = BEGIN_MS + hour * HOUR_MS;
            told.ledger.release(Moment::from_ms(now_ms)).unwrap();
            if told.ledger.registry.standing(entry).unwrap().waits {
                looks.push(hour);
                // A login comes instead of the page from now on.
                let bare = Visited::bare(entry, Outcome(200), now_ms, 0);
                let login = Visited { url: HOME.into(), found: Finding::Nothing, ..bare };
                told.ledger.visited(1, 1, &login).unwrap();
            }
        }
        let first_day = looks.iter().filter(|hour| **hour < looks[0] + 24).count();
        assert!((4..=day_max).contains(&first_day) && looks.len() <= year_max, "{looks:?}");
        // It is back.
        told.ok(HOME, 366, Finding::Same);
        assert_eq!((told.memory(HOME).failures(), told.memory(HOME).last()), (0, Some(day(366))));
    }
}

#[test]
fn a_page_that_was_missing_before_there_was_trouble_is_looked_for_ever_more_seldom() {
    const HOUR_MS: i64 = 3_600_000;
    for (watch, year_max) in [
        (Watch { every_ms: Some(30 * DAY_MS as u64), ..Watch::default() }, 30),
        (Watch { budget: Some(Rate { visits: 500, seconds: 86_400 }), ..Watch::default() }, 70),
    ] {
        let mut told = Told::watched(watch);
        told.ok(HOME, 0, Finding::First);
        let entry = told.entry(HOME);
        let mut looks = 0;
        for hour in 72..365 * 24 {
            let now_ms = BEGIN_MS + hour * HOUR_MS;
            told.ledger.release(Moment::from_ms(now_ms)).unwrap();
            if told.ledger.registry.standing(entry).unwrap().waits {
                looks += 1;
                // It is taken away, and then nobody may look there any more. It was tried again at once, and was the same.
                let outcome = if looks <= 2 { Outcome(404) } else { Outcome(403) };
                let bare = Visited::bare(entry, outcome, now_ms, 2);
                told.ledger.visited(1, 1, &Visited { url: HOME.into(), ..bare }).unwrap();
            }
        }
        assert!((8..=year_max).contains(&looks), "{looks} looks in a year");
    }
}

#[test]
fn a_page_that_moved_for_good_has_changed_once() {
    let mut told = Told::watched(Watch::default());
    told.ok(HOME, 0, Finding::First);
    told.visit(HOME, 2, Outcome(301), Finding::First, &[]);
    assert_eq!(told.memory(HOME).changes().0.round(), 1.0);
    told.visit(HOME, 4, Outcome(301), Finding::Changed, &[]);
    told.visit(HOME, 6, Outcome(302), Finding::Changed, &[]);
    let memory = told.memory(HOME);
    assert_eq!((memory.last(), memory.changes().0.round()), (Some(day(6)), 1.0), "as before, and seen to be so");
}

/// A date that says the time as well.
fn at(ms: i64) -> crate::dates::Told {
    crate::dates::Told { from_ms: ms, to_ms: ms }
}

#[test]
fn a_date_of_a_sitemap_lets_a_page_be_due_sooner_as_far_as_such_dates_were_right() {
    let budget = Some(Rate { visits: 4, seconds: 86_400 });
    for honest in [true, false] {
        let mut told = Told::watched(Watch { budget, ..Watch::default() });
        told.ok(HOME, 0, Finding::First);
        for visit in 1..30 {
            // Always told; right only where it is honest.
            told.ledger.told(1, HOME, Source::Sitemap, at(BEGIN_MS + visit * DAY_MS - 1_000), day(visit)).unwrap();
            told.ok(HOME, visit, if honest && visit % 3 == 0 { Finding::Changed } else { Finding::Same });
            if honest && visit % 3 != 0 {
                // It would not have been told.
                let entry = told.entry(HOME);
                let host = told.ledger.registry.host_of(entry).unwrap();
                told.ledger.watching.as_mut().unwrap().trusts.entry(host).or_default().observe(
                    Source::Sitemap,
                    true,
                    true,
                    day(visit),
                );
            }
        }
        let before = told.memory(HOME);
        told.ledger.told(1, HOME, Source::Sitemap, at(BEGIN_MS + 30 * DAY_MS), day(30)).unwrap();
        let after = told.memory(HOME);
        assert!(after.evidence() > 0.0 && after.due() <= before.due().max(Moment(day(30).0 + 1)), "{honest}");
        let worth = after.evidence();
        assert!(if honest { worth > 0.5 } else { worth < 0.1 }, "{honest}: {worth}");
        // Dates of the future, and of before the last look, say nothing.
        told.ok(HOME, 31, Finding::Same);
        told.ledger.told(1, HOME, Source::Sitemap, at(BEGIN_MS + 40 * DAY_MS), day(32)).unwrap();
        told.ledger.told(1, HOME, Source::Sitemap, at(BEGIN_MS + 30 * DAY_MS), day(32)).unwrap();
        // Nor does the day of the last look, as long as nobody says the time.
        let that_day = crate::dates::Told { from_ms: BEGIN_MS + 31 * DAY_MS - 1_000, to_ms: BEGIN_MS + 32 * DAY_MS };
        told.ledger.told(1, HOME, Source::Sitemap, that_day, day(32)).unwrap();
        assert_eq!(told.memory(HOME).evidence(), 0.0);
    }
}

#[test]
fn each_source_of_hints_is_believed_by_its_own_record_and_silence_counts_where_changes_were_told() {
    let budget = Some(Rate { visits: 4, seconds: 86_400 });
    let mut told = Told::watched(Watch { budget, ..Watch::default() });
    told.ok(HOME, 0, Finding::First);
    for visit in 1..40 {
        let (changed, now_ms) = (visit % 2 == 0, BEGIN_MS + visit * DAY_MS);
        // The sitemap tells of every change and of nothing else; the feed names the page and never says that it changed.
        let date = if changed { now_ms - 1_000 } else { BEGIN_MS };
        told.ledger.told(1, HOME, Source::Sitemap, at(date), day(visit)).unwrap();
        told.ledger.told(1, HOME, Source::Feed, at(BEGIN_MS), day(visit)).unwrap();
        told.ok(HOME, visit, if changed { Finding::Changed } else { Finding::Same });
    }
    let entry = told.entry(HOME);
    let host = told.ledger.registry.host_of(entry).unwrap();
    let kept = Trusts::decode(told.ledger.registry.host(host).unwrap().conduct.trust);
    let (sitemap, feed) = (kept.of(Source::Sitemap), kept.of(Source::Feed));
    assert!(sitemap.precision() > 0.9 && sitemap.recall() > 0.8, "{sitemap:?}");
    assert_eq!((feed.recall(), feed.silence()), (0.0, 0.0), "{feed:?}");
    // What the feed does not tell replaces no visit; what the sitemap does not tell does.
    let (before, soon) = (told.memory(HOME), Moment(day(39).0 + 60));
    told.ledger.told(1, HOME, Source::Feed, at(BEGIN_MS), soon).unwrap();
    assert_eq!((told.memory(HOME).unheard(), told.memory(HOME).due()), (before.unheard(), before.due()));
    told.ledger.told(1, HOME, Source::Sitemap, at(BEGIN_MS), soon).unwrap();
    let silent = told.memory(HOME);
    assert!(silent.unheard().rate() < 0.5 * before.belief().rate() && silent.due() > before.due());
    told.ledger.told(1, HOME, Source::Sitemap, at(BEGIN_MS + 39 * DAY_MS + 30_000), soon).unwrap();
    assert!(told.memory(HOME).due() < before.due());
}

#[test]
fn links_from_other_sites_and_the_operator_make_a_page_worth_more() {
    let mut told = Told::watched(Watch::default());
    told.visit("http://wasps.example/", 0, Outcome(200), Finding::First, &[HOME]);
    told.visit("http://ants.example/", 0, Outcome(200), Finding::First, &[HOME]);
    told.visit(HOME, 0, Outcome(200), Finding::First, &["http://bees.test/a", HOME]);
    told.visit("http://bees.test/a", 0, Outcome(200), Finding::First, &[HOME]);
    told.ok("http://dear.test/", 0, Finding::First);
    let worth = |told: &mut Told, url: &str| told.memory(url).importance();
    let (linked, alone, dear) =
        (worth(&mut told, HOME), worth(&mut told, "http://bees.test/a"), worth(&mut told, "http://dear.test/"));
    assert!(linked > 1.3 * alone, "{linked} {alone}");
    assert!(dear > 5.0 * alone, "{dear} {alone}");
}

#[test]
fn what_is_due_waits_in_the_queue_of_its_host_and_what_got_lost_waits_again() {
    let mut told = Told::watched(Watch { every_ms: Some(2 * DAY_MS as u64), ..Watch::default() });
    told.ok(HOME, 0, Finding::First);
    assert_eq!(told.ledger.release(day(1)).unwrap(), (0, false));
    assert_eq!(told.ledger.release(day(3)).unwrap(), (1, false));
    let entry = told.entry(HOME);
    assert!(told.memory(HOME).is_out() && told.ledger.registry.standing(entry).unwrap().waits);
    assert_eq!(told.ledger.overdue(1).unwrap(), (1, 1));
    assert_eq!(told.queue("bees.test"), (1, 1), "it waits, and is overdue");
    assert_eq!(told.queue("ants.example"), (1, 0), "nobody was there yet");
    assert_eq!(told.ledger.release(day(3)).unwrap(), (0, false), "it is out already");
    // Its host is given up: nobody comes back from it.
    let host = told.ledger.registry.host_of(entry).unwrap();
    told.ledger.given_up(host, Outcome::HOST_GIVEN_UP).unwrap();
    assert_eq!(told.ledger.overdue(1).unwrap().0, 0);
    let again: u32 = (4..20).map(|today| told.ledger.release(day(today)).unwrap().0).sum();
    assert_eq!(again, 1, "and then it waits again");
    // A new interval holds at once for whoever rests.
    told.ok(HOME, 20, Finding::Same);
    told.ledger.watch_otherwise(&Watch { every_ms: Some(3_600_000), ..Watch::default() }, day(21)).unwrap();
    assert_eq!(told.ledger.release(day(21)).unwrap().0, 1);
}

#[test]
fn anansi_counts_links_that_come_in_that_go_out_and_that_changed() {
    let mut told = Told::watched(Watch { policy: Policy::Anansi, ..Watch::default() });
    told.visit("http://wasps.example/", 0, Outcome(200), Finding::First, &[HOME]);
    let mut look = |day: i64, outcome: Outcome, found: Finding, turnover: Option<Turnover>| {
        let entry = told.entry(HOME);
        let bare = Visited::bare(entry, outcome, BEGIN_MS + day * DAY_MS, 0);
        told.ledger.visited(1, 1, &Visited { url: HOME.into(), found, turnover, ..bare }).unwrap();
        told.memory(HOME)
    };
    let first = look(1, Outcome(200), Finding::First, Some(Turnover { count: 30, ratio: None }));
    assert!((first.importance() / 31.0 - 1.0).abs() < 0.1, "one in, thirty out: {}", first.importance());
    let changed = look(3, Outcome(200), Finding::Changed, Some(Turnover { count: 60, ratio: Some(0.25) }));
    assert!((changed.importance() / 61.0 - 1.0).abs() < 0.1, "{}", changed.importance());
    assert!((changed.change_ratio() - 0.25).abs() < 0.01);
    let same = look(5, Outcome(304), Finding::Same, None);
    assert_eq!((same.importance(), same.change_ratio()), (changed.importance(), 0.0), "links were not looked for");
}

#[test]
fn a_clock_that_was_a_year_ahead_parks_nothing() {
    let watch = Watch { every_ms: Some(2 * DAY_MS as u64), ..Watch::default() };
    let mut told = Told::watched(watch.clone());
    told.ok(HOME, 0, Finding::First);
    assert_eq!(told.ledger.release(day(366)).unwrap().0, 1);
    told.ok(HOME, 366, Finding::Same);
    // It is set right while the watch runs.
    assert_eq!(told.ledger.release(day(3)).unwrap().0, 0);
    assert_eq!((told.memory(HOME).last(), told.memory(HOME).due()), (Some(day(3)), day(5)));
    assert_eq!(told.ledger.release(day(6)).unwrap().0, 1);
    told.ok(HOME, 6, Finding::Same);
    assert_eq!(told.memory(HOME).last(), Some(day(6)), "a look counts again");
    // It is set right before the next run.
    assert_eq!(told.ledger.release(day(366)).unwrap().0, 1);
    told.ok(HOME, 366, Finding::Same);
    told.ledger.watch(1, &watch, day(7));
    while told.ledger.recall_some(day(7)).unwrap() {}
    assert_eq!((told.memory(HOME).last(), told.memory(HOME).due()), (Some(day(7)), day(9)));
    assert_eq!(told.ledger.release(day(10)).unwrap().0, 1);
}
