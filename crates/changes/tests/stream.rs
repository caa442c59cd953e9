//! The stream: what is told of captures, in which order, and from where one can go on.

mod support;

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

use skep_archive::{Archive, Position, Selector};
use skep_changes::{Changes, Cursor, Event, Filter, From};
use support::*;

fn told(events: &[(Cursor, Event)]) -> Vec<String> {
    let name = |event: &Event| event.classes.iter().map(|class| class.name()).collect::<Vec<_>>().join(" ");
    events.iter().map(|(_, event)| name(event)).collect()
}

#[test]
fn a_page_that_leads_elsewhere_each_time_has_moved_once() {
    let (_folder, archive, changes) = fresh(Changes::default());
    let url = "http://example.org/a";
    page(&archive, url, START_MS, &text(&["first"]));
    for n in 1..20 {
        let fields = format!("Location: /session/{n}\r\n");
        append(&archive, url, vec![answer(url, START_MS + n * DAY_MS, 301, &fields, "")]);
    }
    // To and fro between two places.
    for n in 20..30 {
        let fields = format!("Location: /session/{}\r\n", if n % 2 == 0 { 1 } else { 2 });
        append(&archive, url, vec![answer(url, START_MS + n * DAY_MS, 301, &fields, "")]);
    }
    page(&archive, url, START_MS + 30 * DAY_MS, &text(&["first"]));
    follow(&changes, &archive);
    assert_eq!(told(&events(&changes, &archive, &From::Start)), ["new", "moved", "returned"]);
}

#[test]
fn a_life_is_told_in_classes() {
    let (_folder, archive, changes) = fresh(Changes::default());
    let url = "http://example.org/a";
    let day = |n: i64| START_MS + n * DAY_MS;
    let give = |n: i64, status: u16, fields: &str, body: &str| {
        append(&archive, url, vec![answer(url, day(n), status, fields, body)])
    };
    give(0, 404, "", "not yet");
    give(1, 200, "", &text(&["first"]));
    give(2, 200, "", &text(&["first"]));
    give(3, 200, "", &format!("<!-- x -->{}", text(&["first"])));
    give(4, 200, "", &text(&["second"]));
    give(5, 503, "", "busy");
    give(6, 503, "", "busy");
    give(7, 200, "", &text(&["first"]));
    give(8, 404, "", "no");
    give(9, 404, "", "no");
    give(16, 404, "", "no");
    give(17, 404, "", "no");
    give(18, 200, "", &text(&["first"]));
    give(19, 301, "Location: /b\r\n", "");
    give(20, 301, "Location: /b\r\n", "");
    give(21, 301, "Location: /c\r\n", "");
    give(22, 301, "Location: /c\r\n", "");
    give(23, 410, "", "");
    give(24, 410, "", "");
    follow(&changes, &archive);
    let events = events(&changes, &archive, &From::Start);
    assert_eq!(
        told(&events),
        ["new", "bytes", "text.minor", "suspect", "reverted", "gone", "returned", "moved", "moved", "gone"]
    );
    let changed = &events[2].1;
    assert_eq!(changed.details.window, Some([day(3), day(4)].map(skep_warc::date::rfc3339)));
    assert_eq!(changed.details.text.as_ref().map(|text| (text.added_tokens, text.removed_tokens)), Some((1, 1)));
    assert_eq!(changed.details.text.as_ref().map(|text| text.snippet.as_str()), Some("second"));
    assert_eq!(events[4].1.details.reverted_to.as_deref(), Some(events[1].1.key.to_string().as_str()));
    assert_eq!(events[7].1.details.http.redirect.as_deref(), Some("http://example.org/b"));
    assert_eq!(
        (events[8].1.time_ms, events[8].1.details.http.redirect.as_deref()),
        (day(22), Some("http://example.org/c"))
    );
    assert_eq!(events[3].1.details.reason.as_deref(), Some("outage"));
    // Nobody hears of noise who does not ask for it.
    let mut heard = Vec::new();
    let listen = |_: &Cursor, kept: &skep_changes::Kept<'_>| {
        heard.push(kept.kind());
        ControlFlow::Continue(())
    };
    changes.read(&archive, &From::Start, &Filter::default(), listen).unwrap();
    assert_eq!(
        heard,
        [
            "page.new",
            "page.changed",
            "page.changed",
            "page.gone",
            "page.returned",
            "page.moved",
            "page.moved",
            "page.gone"
        ]
    );
}

#[test]
fn two_captures_from_elsewhere_are_an_event_and_the_order_of_files_does_not_matter() {
    let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let url = "http://example.org/";
    let file = |name: &str, day: i64, body: &str| {
        let path = elsewhere.path().join(name);
        foreign(&path, vec![answer(url, START_MS + day * DAY_MS, 200, "", body)]);
        path
    };
    let archive = open(folder.path());
    let changes = Changes::default();
    add(&archive, &file("later.warc.gz", 5, &text(&["later"])));
    assert_eq!(follow(&changes, &archive), 1);
    add(&archive, &file("same.warc.gz", 6, &text(&["later"])));
    assert_eq!(follow(&changes, &archive), 0);
    let first = events(&changes, &archive, &From::Start);
    assert_eq!(told(&first), ["new"]);
    // The earlier one comes last: what was new is a change, and is told again under its key.
    add(&archive, &file("earlier.warc.gz", 1, &text(&["earlier"])));
    assert_eq!(follow(&changes, &archive), 2);
    let after = events(&changes, &archive, &From::After(first[0].0.clone()));
    assert_eq!(told(&after), ["new", "text.minor"]);
    assert_eq!(after[1].1.key, first[0].1.key);
    // What was told and is so no longer is taken back.
    add(&archive, &file("before.warc.gz", 3, &text(&["later"])));
    follow(&changes, &archive);
    let last = events(&changes, &archive, &From::After(after[1].0.clone()));
    assert_eq!(told(&last), ["text.minor", ""]);
    assert_eq!(last[1].1.key, first[0].1.key);
}

/// Pages of three hosts that change, move, fail and are checked, partly late and partly removed; a host whose pages get another footer, now and
/// then one of them late; and one that is out of reach for days.
fn live(archive: &Archive, changes: &Changes, seed: u64, mut told: impl FnMut()) {
    let mut chance = Chance(seed);
    let footers = |round: i64, n: i64| {
        let url = format!("http://footers.example/{n}");
        let time_ms = START_MS + round * 5 * DAY_MS + n;
        page(archive, &url, time_ms, &text(&[&words(n as u64, 9), &format!("Footer of round {round}")]));
    };
    let away = "http://away.example/";
    let fails = |round: i64, day: i64| {
        let time_ms = START_MS + (round * 5 + day) * DAY_MS;
        checks(archive, "away.example:80", &[(away, time_ms, "connect-refused"), (away, time_ms + 1, "dns-not-found")]);
    };
    for step in 0..200_i64 {
        let (round, at) = (step / 40, step % 40);
        match at {
            5..=10 if at - 5 != round => footers(round, at - 5),
            30 => footers(round, round),
            12 => page(archive, away, START_MS + round * 5 * DAY_MS, &text(&["here"])),
            13 | 15 => fails(round, at - 12),
            // This one becomes known when the host has answered again.
            14 if round > 0 => fails(round - 1, 2),
            _ => {}
        }
        let host = chance.below(3);
        let url = format!("http://host-{host}.example/{}", chance.below(6));
        // One in ten is late.
        let time_ms =
            START_MS + (step - if chance.percent(10) { chance.below(100) as i64 } else { 0 }) * DAY_MS / 8 + step;
        if chance.percent(20) {
            let what = if chance.percent(50) { "same" } else { "connect-refused" };
            checks(archive, &format!("host-{host}.example:80"), &[(&url, time_ms, what)]);
            continue;
        }
        let (status, fields) = match chance.below(20) {
            0 | 1 => (404, ""),
            2 => (301, "Location: /moved\r\n"),
            3 => (503, ""),
            _ => (200, ""),
        };
        let body = match chance.below(10) {
            0 => "<title>Just a moment...</title><script>window._cf_chl_opt={}</script>".to_owned(),
            1 => String::new(),
            _ => text(&[&words(chance.below(4) as u64, 9), &format!("Visit {} of many", chance.below(3))]),
        };
        append(archive, &url, vec![answer(&url, time_ms, status, fields, &body)]);
        if host == 2 && chance.percent(3) {
            archive.remove(&Selector::Url(url), "asked").unwrap();
        }
        if chance.percent(15) {
            follow(changes, archive);
            told();
        }
    }
    follow(changes, archive);
    told();
}

#[test]
fn what_is_followed_live_is_what_is_built_again() {
    let mut classes = std::collections::BTreeSet::new();
    for seed in 0..3 {
        let folder = tempfile::tempdir().unwrap();
        let archive = open(folder.path());
        std::fs::write(archive.layout().settings().join("changes.toml"), "version = 1\nhost-down-days = 1\n").unwrap();
        let changes = Changes::new(TestChecks);
        let mut seen: Vec<(Cursor, Event)> = Vec::new();
        live(&archive, &changes, seed, || {
            let from = seen.last().map_or(From::Start, |(cursor, _)| From::After(cursor.clone()));
            seen.extend(events(&changes, &archive, &from));
        });
        let live = outcome(&changes, &archive);
        assert!(live.len() > 60, "{}", live.len());
        let log = events(&changes, &archive, &From::Start);
        // What was told stays, but for what was removed since.
        let numbers: std::collections::BTreeSet<u64> = seen.iter().map(|(cursor, _)| cursor.number).collect();
        assert!(log.iter().all(|(cursor, _)| numbers.contains(&cursor.number)), "seed {seed}");
        archive.close().unwrap();
        for reparse in [false, true] {
            let archive = Archive::rebuild(folder.path(), options(), reparse).unwrap();
            let changes = Changes::new(TestChecks);
            follow(&changes, &archive);
            let built = outcome(&changes, &archive);
            for (key, event) in &live {
                assert_eq!(built.get(key), Some(event), "seed {seed}");
            }
            assert_eq!(built.len(), live.len(), "seed {seed}");
            archive.close().unwrap();
        }
        classes.extend(live.values().flat_map(|event| event.classes.iter().map(|class| class.name())));
    }
    // The comparison is worth something only if all of these happened.
    for class in ["new", "moved", "suspect", "reverted", "template", "host.template", "host.down", "host.up"] {
        assert!(classes.contains(class), "{class} of {classes:?}");
    }
}

#[test]
fn a_check_narrows_the_window_of_a_change() {
    let (_folder, archive, changes) = fresh(Changes::new(TestChecks));
    let url = "http://example.org/";
    let day = |n: i64| START_MS + n * DAY_MS;
    let window = || events(&changes, &archive, &From::Start).last().unwrap().1.details.window.clone();
    page(&archive, url, day(0), &text(&["one"]));
    checks(&archive, "example.org:80", &[(url, day(1), "same"), ("http://example.org/other", day(6), "same")]);
    checks(&archive, "example.org:80", &[(url, day(5), "same"), (url, day(6), "connect-refused")]);
    page(&archive, url, day(9), &text(&["two"]));
    checks(&archive, "example.org:80", &[(url, day(10), "same")]);
    follow(&changes, &archive);
    assert_eq!(window(), Some([day(5), day(9)].map(skep_warc::date::rfc3339)));
    // One that becomes known late counts all the same, and the change is told again.
    checks(&archive, "example.org:80", &[(url, day(7), "same")]);
    assert_eq!(follow(&changes, &archive), 1);
    assert_eq!(window(), Some([day(7), day(9)].map(skep_warc::date::rfc3339)));
    let told = events(&changes, &archive, &From::Start);
    assert_eq!(told[1].1.key, told[2].1.key);
}

#[test]
fn a_host_goes_down_and_comes_back() {
    let (_folder, archive, changes) = fresh(Changes::new(TestChecks));
    let url = "https://example.org/a";
    let day = |n: i64| START_MS + n * DAY_MS;
    page(&archive, url, day(0), "<p>here</p>");
    for n in 1..20 {
        checks(&archive, "example.org:443", &[(url, day(n), "dns-not-found"), (url, day(n) + 1, "network-down")]);
        follow(&changes, &archive);
    }
    page(&archive, url, day(20), "<p>here</p>");
    follow(&changes, &archive);
    let told = events(&changes, &archive, &From::Start);
    let told: Vec<_> = told.iter().map(|(_, event)| (event.details.classes.join(" "), event.time_ms)).collect();
    let [new, down, up] = [("new", 0), ("host.down", 15), ("host.up", 20)].map(|(name, n)| (name.to_owned(), day(n)));
    assert_eq!(told, [new, down, up]);
    let mut kinds = Vec::new();
    let host = Filter { classes: skep_page::compare::Classes::from_name("host"), ..Filter::default() };
    let listen = |_: &Cursor, kept: &skep_changes::Kept<'_>| {
        kinds.push((kept.kind(), kept.url.to_owned(), kept.key_text().ends_with("/host")));
        ControlFlow::Continue(())
    };
    changes.read(&archive, &From::Start, &host, listen).unwrap();
    let site = "https://example.org/".to_owned();
    assert_eq!(kinds, [("host.down", site.clone(), true), ("host.up", site, true)]);
}

#[test]
fn what_many_pages_share_is_one_event_of_their_host() {
    let (_folder, archive, changes) = fresh(Changes::default());
    let url = |n: usize| format!("http://example.org/{n}");
    let body = |n: usize, own: &str, footer: &str| {
        format!("<title>{n}</title><p>{}</p><p>{own}</p><footer>{footer}</footer>", words(n as u64, 80))
    };
    for n in 0..10 {
        page(&archive, &url(n), START_MS + n as i64, &body(n, "own", "Copyright 2025"));
    }
    follow(&changes, &archive);
    let start = From::After(changes.newest(&archive).unwrap());
    // Eight of ten get a new footer, one of them also another text, one by one; two stay.
    for n in 0..10 {
        let own = if n == 7 { "edited" } else { "own" };
        let footer = if n < 8 { "Copyright 2026" } else { "Copyright 2025" };
        page(&archive, &url(n), START_MS + DAY_MS + n as i64, &body(n, own, footer));
        follow(&changes, &archive);
    }
    let all = events(&changes, &archive, &start);
    let last: BTreeMap<Position, Event> = all.iter().map(|(_, event)| (event.key, event.clone())).collect();
    let of = |wanted: &str| last.values().filter(|event| event.details.classes == [wanted]).count();
    assert_eq!((of("template"), of("host.template"), of("text.minor")), (7, 1, 1), "{:?}", told(&all));
    // Those who do not ask for noise hear of the first pages, then that it is the whole host and these are no news, then of the one edit.
    let heard = |filter: &Filter| {
        let mut heard: Vec<(Position, &str, bool)> = Vec::new();
        let listen = |_: &Cursor, kept: &skep_changes::Kept<'_>| {
            heard.push((kept.record(), kept.kind(), kept.was.is_empty()));
            ControlFlow::Continue(())
        };
        changes.read(&archive, &start, filter, listen).unwrap();
        heard
    };
    let by_default = heard(&Filter::default());
    assert_eq!(by_default.iter().filter(|(_, kind, _)| *kind == "host.template").count(), 1);
    let told_so = |news: bool| by_default.iter().filter(move |(.., is_news)| *is_news == news).collect::<Vec<_>>();
    let (news, mended) = (told_so(true), told_so(false));
    assert!(news.len() <= 6 && mended.len() == 4, "{by_default:?}");
    for (key, ..) in &mended {
        assert!(news.iter().any(|(known, ..)| known == key), "only what was told: {by_default:?}");
        assert_eq!(last[key].details.classes, ["template"]);
    }
    // Who asks for text only hears the same of them; who asks for links hears nothing.
    let of =
        |class: &str| heard(&Filter { classes: skep_page::compare::Classes::from_name(class), ..Filter::default() });
    assert_eq!((of("text").iter().filter(|(.., is_news)| !is_news).count(), of("links").len()), (4, 0));
    // Judged once more, nothing is told once more.
    assert_eq!(follow(&changes, &archive), 0);
}

#[test]
fn robots_sitemaps_and_start_pages_tell_of_their_host() {
    let (_folder, archive, changes) = fresh(Changes::default());
    let give = |path: &str, n: i64, status: u16, fields: &str, body: &str| {
        let url = format!("http://example.org{path}");
        append(&archive, &url, vec![answer(&url, START_MS + n * DAY_MS, status, fields, body)]);
    };
    give("/robots.txt", 0, 200, "", "User-agent: *\nDisallow: /a\n");
    give("/robots.txt", 1, 200, "", "User-agent: *\nDisallow: /\n");
    give("/sitemap.xml", 0, 200, "", "<urlset><url><loc>http://example.org/a</loc></url></urlset>");
    give("/sitemap.xml", 2, 200, "", "<urlset><url><loc>http://example.org/b</loc></url></urlset>");
    give("/", 0, 200, "", "<p>Hello</p>");
    give("/", 3, 301, "Location: https://www.example.com/\r\n", "");
    give("/a", 0, 200, "", "<p>Hello</p>");
    give("/a", 4, 301, "Location: https://www.example.com/a\r\n", "");
    follow(&changes, &archive);
    let told: Vec<String> = told(&events(&changes, &archive, &From::Start));
    assert_eq!(told.iter().filter(|classes| *classes == "new").count(), 4);
    assert_eq!(
        told[4..].iter().map(|classes| classes.split(' ').next().unwrap()).collect::<Vec<_>>(),
        ["host.robots", "host.sitemap", "host.moved", "moved"],
        "{told:?}"
    );
}

#[test]
fn deltas_lead_from_text_to_text_for_who_follows() {
    let (_folder, archive, changes) = fresh(Changes::default());
    let mut chance = Chance(5);
    let settings = skep_changes::Settings::of(&archive).unwrap();
    let mut texts: HashMap<String, String> = HashMap::new();
    let mut cursor = From::Start;
    let (mut applied, mut bytes, mut whole) = (0, 0, 0);
    let mut pages: Vec<Vec<String>> = (0..8).map(|n| (0..40).map(|line| words(n * 100 + line, 12)).collect()).collect();
    for step in 0..200_i64 {
        let n = chance.below(8);
        let url = format!("http://example.org/{n}");
        // A clock, which nobody hears of; edits; bytes only.
        let clock =
            format!("<p>It is {}:{:02} o'clock, {} views</p>", chance.below(24), chance.below(60), chance.below(999));
        if chance.percent(60) {
            let line = chance.below(40);
            pages[n][line] = words(1000 + step as u64, 12);
        }
        let shown: String = pages[n].iter().map(|line| format!("<p>{line}</p>")).collect();
        page(&archive, &url, START_MS + step * 60_000, &format!("<title>A page</title>{shown}{clock}<!-- {step} -->"));
        if chance.percent(20) || step == 199 {
            follow(&changes, &archive);
            let read = changes.read(&archive, &cursor, &Filter::default().with_text(), |_, kept| {
                let delta = skep_changes::Delta::of(&archive, &settings, kept).unwrap().expect("a page has a text");
                let before = texts.get(kept.url).map(String::as_str).unwrap_or_default();
                assert_eq!(delta.from.is_none(), before.is_empty(), "what is new is told whole");
                let now = delta.apply(before).expect("it begins with what was told before");
                applied += 1;
                if delta.from.is_some() {
                    bytes += delta.json().len();
                    whole += now.len();
                }
                texts.insert(kept.url.to_owned(), now);
                ControlFlow::Continue(())
            });
            cursor = From::After(read.unwrap());
        }
    }
    assert!(applied > 60 && bytes * 5 < whole, "{applied} {bytes} {whole}");
    for n in 0..8 {
        let url = format!("http://example.org/{n}");
        let mut newest = archive.views().captures.exact(&skep_archive::Key::of(&url)).unwrap().last().unwrap().unwrap();
        newest.url.clone_from(&url);
        let version = skep_changes::text_of(&archive, &newest, &settings).unwrap().unwrap();
        let plain =
            |text: &str| text.lines().filter(|line| !line.contains("o'clock")).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(plain(&texts[&url]), plain(&version.text));
    }
}

#[test]
fn noise_and_walls_change_no_text_of_who_wants_to_hear_of_them() {
    let (_folder, archive, changes) = fresh(Changes::default());
    let settings = skep_changes::Settings::of(&archive).unwrap();
    let url = "http://example.org/";
    let bodies = [
        text(&["first"]),
        format!("<!-- x -->{}", text(&["first"])),
        "<title>A page</title><p>Please wait.</p>".to_owned(),
        text(&["second"]),
    ];
    for (n, body) in bodies.iter().enumerate() {
        page(&archive, url, START_MS + n as i64 * DAY_MS, body);
    }
    follow(&changes, &archive);
    let (mut shown, mut heard) = (String::new(), Vec::new());
    changes
        .read(&archive, &From::Start, &all(), |_, kept| {
            let delta = skep_changes::Delta::of(&archive, &settings, kept).unwrap();
            heard.push((kept.classes.first().map_or("", |class| class.name()), delta.is_some()));
            if let Some(delta) = delta {
                shown = delta.apply(&shown).expect("it begins with what was told before");
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(heard, [("new", true), ("bytes", false), ("suspect", false), ("text.minor", true)]);
    assert!(shown.contains("second") && !shown.contains("first"), "{shown}");
}

#[test]
fn a_consumer_that_is_killed_again_and_again_sees_every_key_in_order() {
    let (_folder, archive, changes) = fresh(Changes::default());
    let mut chance = Chance(3);
    let (mut cursor, mut heard): (From, Vec<Event>) = (From::Start, Vec::new());
    let mut stops = 0;
    for step in 0..400_i64 {
        let url = format!("http://example.org/{}", chance.below(20));
        page(&archive, &url, START_MS + step * 1000, &text(&[&format!("version {step}")]));
        if chance.percent(30) {
            follow(&changes, &archive);
            // The consumer acknowledges what it heard up to a moment that is drawn, and comes back.
            let mut room = chance.below(9);
            let listened = changes.read(&archive, &cursor, &all(), |_, kept| {
                if room == 0 {
                    return ControlFlow::Break(());
                }
                room -= 1;
                heard.push(kept.event().unwrap());
                ControlFlow::Continue(())
            });
            let got = heard.last().map(|last| last.key);
            let reached = listened.unwrap();
            let known = events(&changes, &archive, &From::Start);
            let place = known.iter().rev().find(|(_, event)| Some(event.key) == got).map(|(cursor, _)| cursor.clone());
            assert!(place.as_ref().is_none_or(|place| place.number <= reached.number));
            cursor = place.map_or(From::Start, From::After);
            stops += 1;
        }
    }
    assert!(stops >= 100, "{stops}");
    follow(&changes, &archive);
    changes
        .read(&archive, &cursor, &all(), |_, kept| {
            heard.push(kept.event().unwrap());
            ControlFlow::Continue(())
        })
        .unwrap();
    let mut last: HashMap<&str, i64> = HashMap::new();
    for event in &heard {
        let before = last.insert(&event.url, event.time_ms);
        assert!(before.is_none_or(|before| before <= event.time_ms), "in order per URL");
    }
    let keys: std::collections::BTreeSet<Position> = heard.iter().map(|event| event.key).collect();
    assert_eq!(keys.len(), 400, "every one of them is an event");
}

#[test]
fn cursors_that_lead_nowhere_are_named() {
    let (folder, archive, changes) = fresh(Changes::default());
    page(&archive, "http://example.org/", START_MS, "<p>x</p>");
    follow(&changes, &archive);
    let newest = changes.newest(&archive).unwrap();
    assert_eq!(newest.number, 1);
    let wrong = |cursor: Cursor| {
        let error = changes.read(&archive, &From::After(cursor), &all(), |_, _| ControlFlow::Continue(())).unwrap_err();
        assert!(error.hint().is_some());
        error.id()
    };
    assert_eq!(wrong(Cursor { number: 2, ..newest.clone() }), "cursor-ahead");
    assert_eq!(wrong("abc:1".parse().unwrap()), "foreign-cursor");
    // What was opened again is the same log; what was built again is another.
    archive.close().unwrap();
    let archive = open(folder.path());
    assert_eq!((follow(&changes, &archive), changes.newest(&archive).unwrap()), (0, newest.clone()));
    archive.close().unwrap();
    let archive = Archive::rebuild(folder.path(), options(), false).unwrap();
    changes.follow(&archive, START_MS + 1, &mut |_| ()).unwrap();
    let read = changes.read(&archive, &From::After(newest), &all(), |_, _| ControlFlow::Continue(()));
    assert_eq!(read.unwrap_err().id(), "foreign-cursor");
}

#[test]
fn a_page_that_is_there_between_failures_is_not_gone() {
    let url = "http://example.org/a";
    let day = |n: i64| START_MS + n * DAY_MS;
    let lives = |late: bool| {
        let folder = tempfile::tempdir().unwrap();
        let archive = open(folder.path());
        let changes = Changes::new(TestChecks);
        let fails = |n: i64| append(&archive, url, vec![answer(url, day(n), 404, "", "no")]);
        let is_there = |n: i64| checks(&archive, "example.org:80", &[(url, day(n), "same")]);
        page(&archive, url, day(0), &text(&["here"]));
        for n in [1, 5, 9] {
            fails(n);
            if !late {
                is_there(n + 2);
            }
            follow(&changes, &archive);
        }
        if late {
            [3, 7, 11].into_iter().for_each(is_there);
            follow(&changes, &archive);
        }
        assert!(outcome(&changes, &archive).values().all(|event| told_as(event) == "new"), "late: {late}");
        // From here on it is away for good.
        [12, 15, 19].into_iter().for_each(fails);
        follow(&changes, &archive);
        let last = outcome(&changes, &archive).into_values().max_by_key(|event| event.time_ms).unwrap();
        assert_eq!((told_as(&last), last.time_ms), ("gone".to_owned(), day(19)));
        assert_eq!(last.details.meta.and_then(|meta| meta.title).as_deref(), Some("A page"), "by the title it had");
        last.time_ms
    };
    assert_eq!(lives(false), lives(true), "whenever it becomes known");
}

#[test]
fn an_outage_between_failures_brings_nothing_back() {
    let (_folder, archive, changes) = fresh(Changes::default());
    let url = "http://example.org/";
    let day = |n: i64| START_MS + n * DAY_MS;
    page(&archive, url, day(0), &text(&["a page"]));
    for (n, status) in [(1, 404), (2, 503), (3, 404), (5, 429), (9, 404), (12, 404)] {
        append(&archive, url, vec![answer(url, day(n), status, "", "no")]);
    }
    follow(&changes, &archive);
    let events = events(&changes, &archive, &From::Start);
    assert_eq!((told(&events), events[1].1.time_ms), (vec!["new".to_owned(), "gone".to_owned()], day(9)));
    let confidence = events[1].1.details.confidence.as_ref().unwrap();
    assert_eq!((confidence.obs, confidence.vantages), (3, 1), "it was not found three times");
}

#[test]
fn a_death_that_two_networks_saw_says_so() {
    let (_folder, archive, changes) = fresh(Changes::default());
    let url = "http://example.org/";
    let day = |n: i64| START_MS + n * DAY_MS;
    page(&archive, url, day(0), &text(&["a page"]));
    for n in [1, 3] {
        append(&archive, url, vec![answer(url, day(n), 404, "", "no")]);
    }
    append(&archive, url, vec![answer(url, day(9), 404, "", "no"), noted(url, day(9), "sources: two\r\n")]);
    follow(&changes, &archive);
    let events = events(&changes, &archive, &From::Start);
    assert_eq!(told(&events), ["new", "gone"]);
    let confidence = events[1].1.details.confidence.as_ref().unwrap();
    assert_eq!((confidence.obs, confidence.vantages), (3, 2), "three visits, the last of them from two networks");
}

#[test]
fn a_page_that_moved_and_fails_now_and_then_has_moved_once_and_returns() {
    let (_folder, archive, changes) = fresh(Changes::new(TestChecks));
    let url = "http://example.org/a";
    let day = |n: i64| START_MS + n * DAY_MS;
    let leads = "Location: /b\r\n";
    page(&archive, url, day(0), &text(&["here"]));
    for (n, status, fields) in
        [(1, 301, leads), (2, 404, ""), (3, 301, leads), (4, 404, ""), (5, 503, ""), (7, 404, ""), (8, 301, leads)]
    {
        append(&archive, url, vec![answer(url, day(n), status, fields, "")]);
        follow(&changes, &archive);
    }
    // A check at which it was as before is no capture by which it could be told to be back.
    append(&archive, url, vec![answer(url, day(9), 404, "", "")]);
    checks(&archive, "example.org:80", &[(url, day(10), "same")]);
    page(&archive, url, day(11), &text(&["here"]));
    follow(&changes, &archive);
    assert_eq!(told(&events(&changes, &archive, &From::Start)), ["new", "moved", "returned"]);
}

#[test]
fn what_has_very_many_captures_is_not_new_again_when_one_becomes_known_late() {
    let (_folder, archive, changes) = fresh(Changes::new(TestChecks));
    let url = "http://example.org/";
    let count = skep_changes::limits::REFOLDED_CAPTURES_MAX as i64 + 20;
    let minute = |n: i64| START_MS + n * 60_000;
    // Another part each time: one that always changes would be noise.
    let edition = |n: i64| -> String {
        let part = |part: i64| format!("<p>{}</p>", words((n - (n - part).rem_euclid(12)).max(0) as u64, 20));
        (0..12).map(part).collect()
    };
    for from in (0..count).step_by(500) {
        let some = (from..count.min(from + 500)).map(|n| answer(url, minute(n), 200, "", &edition(n)));
        append(&archive, url, some.collect());
    }
    follow(&changes, &archive);
    let before: BTreeMap<Position, String> =
        outcome(&changes, &archive).iter().map(|(key, event)| (*key, told_as(event))).collect();
    assert_eq!(before.values().filter(|told| *told == "new").count(), 1);
    checks(&archive, "example.org:80", &[(url, minute(0) + 1, "same")]);
    follow(&changes, &archive);
    let after: BTreeMap<Position, String> =
        outcome(&changes, &archive).iter().map(|(key, event)| (*key, told_as(event))).collect();
    assert_eq!(after, before);
}

#[test]
fn a_new_page_is_told_with_its_title_and_where_it_leads() {
    let (_folder, archive, changes) = fresh(Changes::default());
    let url = "http://example.org/";
    let links: String = (10..80).map(|n| format!("<a href=/{n}>{n}</a>")).collect();
    let body = format!("<html lang=en><title>Bees</title><link rel=canonical href=/bees><p>{links}</p>");
    page(&archive, url, START_MS, &body);
    append(&archive, url, vec![answer(url, START_MS + DAY_MS, 301, "Location: /b\r\n", "")]);
    page(&archive, url, START_MS + 2 * DAY_MS, &body);
    follow(&changes, &archive);
    let told = events(&changes, &archive, &From::Start);
    let titles: Vec<_> = told
        .iter()
        .map(|(_, event)| (told_as(event), event.details.meta.as_ref().and_then(|meta| meta.title.clone())))
        .collect();
    let named = |class: &str| (class.to_owned(), Some("Bees".to_owned()));
    assert_eq!(titles, [named("new"), named("moved"), named("returned")]);
    let new = &told[0].1.details;
    let meta = new.meta.as_ref().unwrap();
    assert_eq!((meta.canonical.as_deref(), meta.lang.as_deref()), (Some("http://example.org/bees"), Some("en")));
    let links = new.links.as_ref().unwrap();
    assert_eq!((links.n_added, links.added.len(), links.n_removed), (70, 50, 0));
    assert_eq!(links.added[0], "http://example.org/10");
    assert!(new.hash.as_ref().is_some_and(|hash| hash.text.is_some()) && new.norm_ver > 0);
}

#[test]
fn a_new_and_a_changed_page_are_told_with_what_their_server_knows_them_by() {
    let (_folder, archive, changes) = fresh(Changes::default());
    let url = "http://example.org/";
    let fields = |n: u32| format!("ETag:  W/\"v{n}\"\r\nLast-Modified: Thu, 0{n} Jan 2026 00:00:00 GMT\r\n");
    for (n, said) in [(1, "one"), (2, "two")] {
        let time_ms = START_MS + i64::from(n) * DAY_MS;
        append(&archive, url, vec![answer(url, time_ms, 200, &fields(n), &text(&[said]))]);
    }
    // One that is too long to be of use is left out.
    let long = format!("ETag: {}\r\n", "x".repeat(skep_changes::limits::VALIDATOR_BYTES_MAX + 1));
    append(&archive, url, vec![answer(url, START_MS + 3 * DAY_MS, 200, &long, &text(&["three"]))]);
    follow(&changes, &archive);
    let events = events(&changes, &archive, &From::Start);
    assert_eq!(told(&events), ["new", "text.minor", "text.minor"]);
    let https: Vec<_> = events.iter().map(|(_, event)| &event.details.http).collect();
    assert_eq!((https[0].etag.as_deref(), https[1].etag.as_deref()), (Some("W/\"v1\""), Some("W/\"v2\"")));
    assert_eq!(https[1].last_modified.as_deref(), Some("Thu, 02 Jan 2026 00:00:00 GMT"));
    assert_eq!((&https[2].etag, &https[2].last_modified), (&None, &None));
}

#[test]
fn who_is_led_to_the_start_page_found_nothing() {
    let (_folder, archive, changes) = fresh(Changes::default());
    let give = |path: &str, day: i64, status: u16, fields: &str, body: &str| {
        let url = format!("http://example.org{path}");
        append(&archive, &url, vec![answer(&url, START_MS + day * DAY_MS, status, fields, body)]);
    };
    for path in ["/news/1", "/news/2", "/index.html"] {
        give(path, 0, 200, "", &text(&[path]));
    }
    give("/news/1", 1, 301, "Location: /\r\n", "");
    give("/news/2", 2, 301, "Location: /news/two\r\n", "");
    give("/index.html", 3, 301, "Location: /\r\n", "");
    give("/news/1", 4, 200, "", &text(&["/news/1"]));
    follow(&changes, &archive);
    let all = events(&changes, &archive, &From::Start);
    assert_eq!(told(&all[3..]), ["suspect", "moved", "moved"]);
    assert_eq!(all[3].1.details.reason.as_deref(), Some("soft-404"));
}

/// For a day nobody reaches it, or gets an error, or is led home, or is told that nothing is there.
#[test]
fn a_site_that_vanishes_for_a_day_and_returns_makes_no_noise() {
    let (folder, archive, changes) = fresh(Changes::new(TestChecks));
    let at = |hours: i64| START_MS + hours * 3_600_000;
    let url = |n: usize| format!("http://example.org/{n}");
    let said = |n: usize| text(&[&format!("page {n} says something")]);
    let pages = 8;
    (0..pages).for_each(|n| page(&archive, &url(n), at(0), &said(n)));
    for hour in 24..48 {
        for n in 0..pages {
            let (url, time_ms) = (url(n), at(hour) + n as i64);
            match n % 4 {
                0 => checks(&archive, "example.org:80", &[(&url, time_ms, "connect-refused")]),
                1 => append(&archive, &url, vec![answer(&url, time_ms, 503, "", "<p>Back soon.</p>")]),
                2 => append(&archive, &url, vec![answer(&url, time_ms, 301, "Location: /\r\n", "")]),
                _ => append(&archive, &url, vec![answer(&url, time_ms, 404, "", "<p>Not found.</p>")]),
            }
        }
        follow(&changes, &archive);
    }
    // The last of them is another page now.
    for n in 0..pages {
        let is = if n + 1 < pages { said(n) } else { text(&["it says something else altogether"]) };
        page(&archive, &url(n), at(49) + n as i64, &is);
    }
    follow(&changes, &archive);
    let mut loud = Vec::new();
    let listen = |_: &Cursor, kept: &skep_changes::Kept<'_>| {
        loud.push((kept.kind(), kept.url.to_owned(), kept.event().unwrap().details.window));
        ControlFlow::Continue(())
    };
    changes.read(&archive, &From::Start, &Filter::default(), listen).unwrap();
    let changed = loud.pop().unwrap();
    assert_eq!(loud.iter().map(|(kind, ..)| *kind).collect::<Vec<_>>(), vec!["page.new"; pages]);
    assert_eq!((changed.0, changed.1), ("page.changed", url(pages - 1)));
    let day = |time_ms: i64| skep_warc::date::rfc3339(time_ms);
    assert_eq!(changed.2, Some([day(at(0)), day(at(49) + 7)]), "it was last seen before the site vanished");
    // Who wants to hear of everything hears once that something was wrong.
    let walls = events(&changes, &archive, &From::Start);
    let walls: Vec<&str> =
        walls.iter().filter(|(_, event)| told_as(event) == "suspect").map(|(_, event)| &*event.url).collect();
    assert_eq!(walls.len(), 4, "{walls:?}");
    // Everything that came is there.
    let known = |n: usize| archive.views().captures.exact(&skep_archive::Key::of(&url(n))).unwrap().count();
    assert_eq!((known(0), known(1), known(2), known(3)), (2, 26, 26, 26));
    let live = outcome(&changes, &archive);
    archive.close().unwrap();
    let archive = Archive::rebuild(folder.path(), options(), false).unwrap();
    let changes = Changes::new(TestChecks);
    follow(&changes, &archive);
    assert_eq!(outcome(&changes, &archive), live);
}

#[test]
fn a_clock_that_was_far_ahead_for_one_pass_makes_no_noise_and_hides_nothing() {
    let (folder, archive, changes) = fresh(Changes::default());
    let day = |n: i64| START_MS + n * DAY_MS;
    let (changing, still, born) =
        ("http://example.org/changing", "http://example.org/still", "http://example.org/born");
    // Every edition has one more paragraph that was written anew.
    let edition = |n: i64| -> String {
        let paragraph =
            |k: i64| format!("paragraph {k} of the first edition{}", if k <= n { ", but better" } else { "" });
        let all: Vec<String> = (0..12).map(paragraph).collect();
        text(&all.iter().map(String::as_str).collect::<Vec<_>>())
    };
    for n in 0..10 {
        // On the fourth day it is ten years later.
        let time_ms = if n == 3 { day(3_650) } else { day(n) };
        page(&archive, changing, time_ms, &edition(n));
        page(&archive, still, time_ms, &text(&["as ever"]));
        if n >= 3 {
            page(&archive, born, time_ms, &text(&["born in the future"]));
        }
        follow(&changes, &archive);
    }
    let told_of = |changes: &Changes, archive: &Archive, url: &str| -> Vec<(i64, String)> {
        let of = outcome(changes, archive).into_values().filter(|event| event.url == url && !event.classes.is_silent());
        let mut told: Vec<_> = of.map(|event| ((event.time_ms - START_MS) / DAY_MS, told_as(&event))).collect();
        told.sort();
        told
    };
    let told = told_of(&changes, &archive, changing);
    assert_eq!(told.iter().map(|(day, _)| *day).collect::<Vec<_>>(), [0, 1, 2, 4, 5, 6, 7, 8, 9], "{told:?}");
    assert!(told[1..].iter().all(|(_, class)| class.starts_with("text.")), "{told:?}");
    assert_eq!(told_of(&changes, &archive, still), [(0, "new".into())]);
    assert_eq!(told_of(&changes, &archive, born), [(4, "new".into())]);
    // Soon after it is set right, nothing is told twice any more.
    let newest = changes.newest(&archive).unwrap();
    page(&archive, changing, day(11), &edition(11));
    page(&archive, still, day(11), &text(&["as ever"]));
    follow(&changes, &archive);
    let later = events(&changes, &archive, &From::After(newest));
    assert_eq!(later.iter().map(|(_, event)| &*event.url).collect::<Vec<_>>(), [changing]);
    let live = outcome(&changes, &archive);
    archive.close().unwrap();
    let archive = Archive::rebuild(folder.path(), options(), false).unwrap();
    let changes = Changes::default();
    follow(&changes, &archive);
    assert_eq!(outcome(&changes, &archive), live);
}

#[test]
fn five_failures_are_five_of_any_kind() {
    let folder = tempfile::tempdir().unwrap();
    let archive = open(folder.path());
    std::fs::write(archive.layout().settings().join("changes.toml"), "version = 1\ndeath = \"five-failures\"\n")
        .unwrap();
    let changes = Changes::default();
    let url = "http://example.org/a";
    page(&archive, url, START_MS, &text(&["here"]));
    for (n, status) in [503, 404, 500, 403, 410].into_iter().enumerate() {
        append(&archive, url, vec![answer(url, START_MS + (n as i64 + 1) * 1_000, status, "", "no")]);
    }
    follow(&changes, &archive);
    let all = events(&changes, &archive, &From::Start);
    assert_eq!(
        all.last().map(|(_, event)| (told_as(event), event.details.http.status)),
        Some(("gone".to_owned(), 410))
    );
}

#[test]
fn rules_in_the_settings_count() {
    let (_folder, archive, changes) = fresh(Changes::default());
    let url = "http://example.org/";
    let body = |clock: &str, said: &str| format!("<main><p>{said}</p><p id=clock>{clock}</p></main><nav>{clock}</nav>");
    let file = archive.layout().settings().join("changes.toml");
    std::fs::write(&file, "version = 1\n[[site]]\nmatch = \"example.org\"\nkeep = [\"main\"]\nignore = [\"#clock\"]\n")
        .unwrap();
    page(&archive, url, START_MS, &body("one", "said"));
    page(&archive, url, START_MS + 1000, &body("two", "said"));
    page(&archive, url, START_MS + 2000, &body("three", "other"));
    follow(&changes, &archive);
    assert_eq!(told(&events(&changes, &archive, &From::Start)), ["new", "bytes", "text.major"]);
    std::fs::write(&file, "version = 1\n[[site]]\nmatch = \"example.org\"\nkeep = [\"a:b\"]\n").unwrap();
    let error = changes.follow(&archive, 0, &mut |_| ()).unwrap_err();
    assert!(error.id() == "rules" && error.to_string().contains("a:b") && error.hint().is_some(), "{error}");
}

#[test]
fn who_wants_events_of_a_time_begins_where_they_begin() {
    let (_folder, archive, changes) = fresh(Changes::default());
    // Not in the order of time: some became known late.
    for (part, day) in [5_i64, 2, 7, 6, 9].into_iter().enumerate() {
        let page = |n: usize| {
            let url = format!("http://example.org/{part}/{n}");
            answer(&url, START_MS + day * DAY_MS + n as i64, 200, "", "<p>a page</p>")
        };
        append(&archive, "http://example.org/", (0..900).map(page).collect());
        follow(&changes, &archive);
    }
    let all = events(&changes, &archive, &From::Start);
    assert_eq!(all.len(), 4_500);
    let mut begun = Vec::new();
    for hour in 0..12 * 24 {
        let since_ms = START_MS + hour * 3_600_000;
        let filter = Filter { since_ms: Some(since_ms), ..Filter::default() };
        let mut found = Vec::new();
        let reached = changes.read(&archive, &From::Start, &filter, |cursor, _| {
            found.push(cursor.number);
            ControlFlow::Continue(())
        });
        let wanted: Vec<u64> =
            all.iter().filter(|(_, event)| event.time_ms >= since_ms).map(|(cursor, _)| cursor.number).collect();
        assert_eq!((found, reached.unwrap().number), (wanted, 4_500), "hour {hour}");
        begun.push(changes.first(&archive, &From::Start, &filter).unwrap().number);
    }
    assert!(begun.is_sorted() && begun[0] == 0 && begun[begun.len() - 1] >= 4_000, "{begun:?}");
}

/// The store may show a batch in part while it writes tables out: whoever went on from what he saw then would have lost the rest.
#[test]
fn who_reads_while_events_are_told_passes_none_over() {
    const ROUNDS: usize = 60;
    const PAGES: usize = 300;
    let (_folder, archive, changes) = fresh(Changes::default());
    follow(&changes, &archive);
    let over = std::sync::atomic::AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut from, mut last) = (From::Start, 0);
            loop {
                let ends = over.load(std::sync::atomic::Ordering::SeqCst);
                let reached = changes.read(&archive, &from, &all(), |cursor, _| {
                    assert_eq!(cursor.number, last + 1, "none is passed over");
                    last = cursor.number;
                    ControlFlow::Continue(())
                });
                from = From::After(reached.unwrap());
                if ends {
                    return last;
                }
            }
        });
        for round in 0..ROUNDS {
            let page = |n: usize| {
                let url = format!("http://example.org/{}", round % 20 * PAGES + n);
                answer(&url, START_MS + round as i64 * DAY_MS + n as i64, 200, "", &format!("<p>page {n} {round}</p>"))
            };
            append(&archive, "http://example.org/", (0..PAGES).map(page).collect());
            follow(&changes, &archive);
        }
        over.store(true, std::sync::atomic::Ordering::SeqCst);
        reader.join().unwrap()
    });
    assert_eq!(seen, changes.newest(&archive).unwrap().number);
    assert!(seen >= (ROUNDS * PAGES) as u64);
}
