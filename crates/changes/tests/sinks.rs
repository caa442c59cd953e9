//! Sinks against servers that are not ours, stopped under load: afterwards every event is there, once by its key.

#[path = "support/receiver.rs"]
mod receiver;
#[path = "support/servers.rs"]
mod servers;
mod support;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use receiver::{Answer, Receiver};
use servers::{Mail, Nats, Postgres};
use skep_archive::Archive;
use skep_changes::sink::{Definition, Kind, Since, Sinks, Standing, State, Template, Wanted, signature};
use skep_changes::{Changes, From};
use support::*;

/// How long a sink may take to come to where it should be, on a machine with much else to do.
const PATIENCE: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(20);
/// Parts of a page, one of which changes in a round.
const PARTS: i64 = 12;
/// Pages that change in each round.
const PAGES: usize = 300;

/// An archive, its log and its sinks.
struct House {
    folder: tempfile::TempDir,
    archive: Arc<Archive>,
    changes: Arc<Changes>,
    sinks: Sinks,
    rounds: AtomicI64,
    /// Every page is one that always changes.
    noise: AtomicBool,
}

impl House {
    fn new() -> House {
        let folder = tempfile::tempdir().unwrap();
        House::at(folder)
    }

    fn at(folder: tempfile::TempDir) -> House {
        let archive = Arc::new(open(folder.path()));
        let changes = Arc::new(Changes::default());
        House {
            sinks: Sinks::new(archive.clone(), changes.clone()),
            folder,
            archive,
            changes,
            rounds: AtomicI64::new(0),
            noise: AtomicBool::new(false),
        }
    }

    /// Every page of the site gets another text, and another link.
    fn round(&self, pages: usize) {
        let round = self.rounds.fetch_add(1, Ordering::SeqCst) + 1;
        let time_ms = START_MS + round * DAY_MS;
        let record = |page: usize| {
            let url = format!("http://example.org/{page}");
            // Another part of the page each time; one that always changes is noise, and some pages have no other.
            let parts = if page % 50 == 49 || self.noise.load(Ordering::SeqCst) { 1 } else { PARTS };
            let version = |part: i64| round - (round - part).rem_euclid(parts);
            let part = |part: i64| format!("<p>{}</p>", words(page as u64 * 1000 + version(part).max(0) as u64, 20));
            let text: String = (0..parts).map(part).collect();
            let body = format!("<title>Page {page}</title>{text}<a href=/{page}/{round}>more</a>");
            answer(&url, time_ms + page as i64, 200, "", &body)
        };
        append(&self.archive, "http://example.org/", (0..pages).map(record).collect());
        follow(&self.changes, &self.archive);
    }

    /// Changes come all the time while something else happens. Says how many rounds there were.
    fn under_load(&self, pages: usize, work: impl FnOnce()) -> i64 {
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::SeqCst) {
                    self.round(pages);
                }
            });
            // A failure inside must end the load, too.
            let worked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            over.store(true, Ordering::SeqCst);
            worked.unwrap_or_else(|failure| std::panic::resume_unwind(failure));
        });
        self.rounds.load(Ordering::SeqCst)
    }

    fn add(&self, name: &str, kind: Kind) {
        self.sinks.add(name, &Definition::new(kind, Wanted::default()), &Since::Start).unwrap();
    }

    /// Keys of everything that was told, or of what is no noise.
    fn keys(&self, noise: bool) -> BTreeSet<String> {
        let told = events(&self.changes, &self.archive, &From::Start);
        let wanted = told.iter().filter(|(_, event)| noise || !event.classes.is_silent());
        wanted.map(|(_, event)| event.key.to_string()).collect()
    }

    fn standing(&self, name: &str) -> Standing {
        let standings = self.sinks.standings().unwrap();
        standings.into_iter().find(|standing| standing.name == name).expect("the sink")
    }

    /// Waits until a sink is as it should be.
    #[track_caller]
    fn wait(&self, name: &str, wanted: impl Fn(&Standing) -> bool) {
        let until = Instant::now() + PATIENCE;
        while !wanted(&self.standing(name)) {
            assert!(Instant::now() < until, "{:?}", self.standing(name));
            std::thread::sleep(LOOK);
        }
    }
}

fn is_done(standing: &Standing) -> bool {
    standing.lag == Some(0) && standing.state.failures == 0
}

fn webhook(url: String) -> Kind {
    Kind::Webhook { url, template: Template::Json, secret: Some("whsec_c2VjcmV0".into()), token: Some("abc".into()) }
}

fn postgres(url: String) -> Kind {
    Kind::Postgres { url, schema: None }
}

#[test]
fn postgres_stopped_under_load_has_every_event_once() {
    let mut server = Postgres::start(&["fsync=off"]);
    let house = House::new();
    house.add("db", postgres(server.url()));
    let rounds = {
        let _running = house.sinks.begin().unwrap();
        let rounds = house.under_load(PAGES, || {
            for _ in 0..3 {
                let before = house.standing("db").state.delivered;
                house.wait("db", |standing| standing.state.delivered > before);
                server.kill();
                house.wait("db", |standing| standing.state.failures > 0 && standing.lag > Some(0));
                server.up();
            }
        });
        house.wait("db", is_done);
        rounds
    };
    let (pages, all) = (PAGES as i64, PAGES as i64 * rounds);
    let keys: BTreeSet<String> = server.ask("SELECT key FROM changes").into_iter().collect();
    let told = house.keys(true);
    let (lost, more): (Vec<_>, Vec<_>) = (told.difference(&keys).collect(), keys.difference(&told).collect());
    assert!(lost.is_empty() && more.is_empty(), "lost {lost:?}, more {more:?}");
    assert_eq!(server.number("SELECT count(*) FROM changes"), all);
    assert_eq!(server.number("SELECT count(*) FROM urls"), pages);
    assert_eq!(
        server.number("SELECT count(*) FROM urls u JOIN changes c USING (key, archive) WHERE u.last_seen = c.seen"),
        pages
    );
    // Each round brought every page a link and took the one before; of noise no links are told.
    let quiet = "substring(source from '[0-9]+$')::int % 50 <> 49";
    let quiet_pages = pages - pages / 50;
    assert_eq!(server.number(&format!("SELECT count(*) FROM links WHERE {quiet}")), quiet_pages * rounds);
    let there = format!("SELECT count(*) FROM links WHERE (removed IS NULL OR added > removed) AND {quiet}");
    assert_eq!(server.number(&there), quiet_pages);
    let row = server.ask("SELECT type, classes, status, title, data #>> '{links,added,0}' FROM changes WHERE url = 'http://example.org/7' ORDER BY seen");
    assert!(row[0].starts_with("page.new|{new}|200|"), "{}", row[0]);
    assert!(row[1].contains("links") && row[1].ends_with("|200|Page 7|http://example.org/7/2"), "{}", row[1]);
    assert_eq!((row.len() as i64, row[1].split('|').next()), (rounds, Some("page.changed")));
    // Told again, nothing is doubled; a cursor in settings is all that is remembered.
    house.sinks.replay("db", &Since::Start).unwrap();
    house.sinks.once(None).unwrap();
    assert!(is_done(&house.standing("db")));
    assert!(house.standing("db").state.delivered >= 2 * all as u64);
    assert_eq!(server.number("SELECT count(*) FROM changes"), all);
    // The log is built again under another name, and nothing is lost or doubled by that either.
    let House { folder, archive, changes, sinks, .. } = house;
    drop((sinks, changes));
    Arc::try_unwrap(archive).ok().expect("nobody else has it").close().unwrap();
    Archive::rebuild(folder.path(), options(), false).unwrap().close().unwrap();
    server.ask("DELETE FROM changes WHERE url LIKE '%7'");
    let house = House::at(folder);
    house.sinks.once(Some("db")).unwrap();
    assert!(is_done(&house.standing("db")), "{:?}", house.standing("db"));
    assert_eq!(server.ask("SELECT key FROM changes").into_iter().collect::<BTreeSet<_>>(), house.keys(true));
}

#[test]
fn a_stream_of_nothing_but_noise_reaches_who_wants_it_and_passes_the_others_by() {
    let mut server = Postgres::start(&["fsync=off"]);
    let receiver = Receiver::start(|number, _| Answer::Status(if number % 3 == 1 { 500 } else { 204 }, ""));
    let house = House::new();
    house.noise.store(true, Ordering::SeqCst);
    house.add("db", postgres(server.url()));
    house.add("hook", webhook(receiver.url("/")));
    {
        let _running = house.sinks.begin().unwrap();
        house.under_load(PAGES, || {
            for _ in 0..2 {
                let before = house.standing("db").state.delivered;
                house.wait("db", |standing| standing.state.delivered >= before + 5 * PAGES as u64);
                server.kill();
                house.wait("db", |standing| standing.state.failures > 0);
                server.up();
            }
        });
        house.wait("db", is_done);
        house.wait("hook", is_done);
    }
    let (told, loud) = (house.keys(true), house.keys(false));
    assert!(told.len() > 4 * loud.len(), "{} of {} are no noise", loud.len(), told.len());
    let keys: BTreeSet<String> = server.ask("SELECT key FROM changes").into_iter().collect();
    let (lost, more): (Vec<_>, Vec<_>) = (told.difference(&keys).collect(), keys.difference(&told).collect());
    assert!(lost.is_empty() && more.is_empty(), "lost {lost:?}, more {more:?}");
    assert_eq!(receiver.keys().into_iter().collect::<BTreeSet<_>>(), loud);
    // A log that is built again says the same, whatever was judged in whichever portions.
    let House { folder, archive, changes, sinks, .. } = house;
    drop((sinks, changes));
    Arc::try_unwrap(archive).ok().expect("nobody else has it").close().unwrap();
    Archive::rebuild(folder.path(), options(), false).unwrap().close().unwrap();
    let house = House::at(folder);
    follow(&house.changes, &house.archive);
    assert_eq!((house.keys(true), house.keys(false)), (told, loud));
}

#[test]
fn a_row_that_a_database_rejects_is_put_aside_and_the_rest_goes_on() {
    let server = Postgres::start(&["fsync=off"]);
    let house = House::new();
    house.add("db", postgres(server.url()));
    house.sinks.once(None).unwrap();
    house.round(1);
    house.sinks.once(None).unwrap();
    server.ask("ALTER TABLE changes ADD CHECK (url NOT LIKE '%/13')");
    server.ask("CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not this one'; END $$");
    server.ask("CREATE TRIGGER no BEFORE INSERT ON urls FOR EACH ROW WHEN (NEW.url LIKE '%/77') EXECUTE FUNCTION no()");
    house.round(100);
    // A URL that no index can hold, and a text that no text of PostgreSQL can hold.
    let long = format!("http://example.org/{}", (0..900).map(|n| format!("{:x}", n * 7919)).collect::<String>());
    page(&house.archive, &long, START_MS + 9 * DAY_MS, "<p>a page with a very long address</p>");
    page(
        &house.archive,
        "http://example.org/nul",
        START_MS + 9 * DAY_MS,
        "<title>a&#0;b</title><p>nul: \0 and \\u0000 \t tab</p>",
    );
    follow(&house.changes, &house.archive);
    house.sinks.once(None).unwrap();
    let standing = house.standing("db");
    assert!(is_done(&standing), "{standing:?}");
    assert_eq!(standing.state.rejected, 3, "{standing:?}");
    assert_eq!(standing.state.delivered, 1 + 97 + 1 + 1, "{standing:?}");
    assert_eq!(server.number("SELECT count(*) FROM changes"), 1 + 97 + 1 + 1);
    let rejected = server.ask("SELECT right(url, 3), reason FROM rejected ORDER BY 1");
    assert!(rejected[0].starts_with("/13|") && rejected[0].contains("check constraint"), "{rejected:?}");
    assert!(rejected[1].starts_with("/77|not this one"), "{rejected:?}");
    assert!(rejected[2].contains("more than an index"), "{rejected:?}");
    assert_eq!(server.number("SELECT count(*) FROM changes WHERE url = 'http://example.org/nul'"), 1);
    // Once the rule is gone, they can be had again.
    server.ask("DROP TRIGGER no ON urls");
    house.sinks.replay("db", &Since::Start).unwrap();
    house.sinks.once(None).unwrap();
    assert_eq!(server.number("SELECT count(*) FROM changes WHERE url LIKE '%/77'"), 1);
    // A database that refuses everything is not right; nothing is given up for that.
    server.ask("ALTER TABLE changes ADD COLUMN whose text, ADD CONSTRAINT whose CHECK (whose IS NOT NULL) NOT VALID");
    house.round(100);
    house.sinks.once(None).unwrap();
    let standing = house.standing("db");
    assert!(
        standing.lag > Some(0) && standing.state.error.as_ref().is_some_and(|why| why.contains("whose")),
        "{standing:?}"
    );
    server.ask("ALTER TABLE changes DROP COLUMN whose");
    house.sinks.once(None).unwrap();
    assert!(house.standing("db").lag == Some(0));
}

#[test]
fn what_is_judged_again_is_corrected_in_the_database() {
    let server = Postgres::start(&["fsync=off"]);
    let house = House::new();
    house.add("db", Kind::Postgres { url: server.url(), schema: Some("two words".into()) });
    let elsewhere = tempfile::tempdir().unwrap();
    let url = "http://example.org/";
    let give = |day: i64, text: &str| {
        let path = elsewhere.path().join(format!("{day}.warc.gz"));
        let filler = words(1, 200);
        foreign(&path, vec![answer(url, START_MS + day * DAY_MS, 200, "", &format!("<p>{filler}</p><p>{text}</p>"))]);
        add(&house.archive, &path);
        house.sinks.once(None).unwrap();
        server.ask("SELECT seen::date, array_to_string(classes, ' ') FROM \"two words\".changes ORDER BY seen")
    };
    assert_eq!(give(5, "later"), ["2026-01-06|new"]);
    assert_eq!(give(1, "earlier"), ["2026-01-02|new", "2026-01-06|text.minor"]);
    // The text was there before: what was a change is none.
    assert_eq!(give(3, "later"), ["2026-01-02|new", "2026-01-04|text.minor"]);
    let row = server.ask("SELECT last_seen::date, first_seen::date, state FROM \"two words\".urls");
    assert_eq!(row, ["2026-01-04|2026-01-02|well"]);
    // Tables of a newer Skep are left alone.
    server.ask("INSERT INTO \"two words\".skep_schema VALUES (99)");
    page(&house.archive, url, START_MS + 9 * DAY_MS, "<p>something else</p>");
    house.sinks.once(None).unwrap();
    assert!(house.standing("db").state.error.is_some_and(|why| why.contains("version 99")));
}

#[test]
fn what_is_removed_is_removed_from_the_database_and_told_to_who_heard_of_it() {
    let server = Postgres::start(&["fsync=off"]);
    let receiver = Receiver::start(|_, _| Answer::Status(204, ""));
    let house = House::new();
    house.add("db", postgres(server.url()));
    house.add("hook", webhook(receiver.url("/")));
    let (url, other) = ("http://example.org/a", "http://example.org/b");
    let body =
        |title: &str, links: &str| format!("<title>{title}</title><p>{}</p>{links}", words(title.len() as u64, 200));
    page(&house.archive, url, START_MS, &body("one", "<a href=/1>1</a><a href=/2>2</a>"));
    page(&house.archive, url, START_MS + DAY_MS, &body("second", "<a href=/2>2</a><a href=/secret>3</a>"));
    page(&house.archive, other, START_MS, &body("other", "<a href=/4>4</a>"));
    house.sinks.once(None).unwrap();
    assert_eq!(server.number("SELECT count(*) FROM changes"), 3);
    assert_eq!(
        server.ask("SELECT title FROM urls ORDER BY url"),
        ["second", "other"],
        "titles are there from the start"
    );
    let newest = house.archive.views().captures.exact(&skep_archive::Key::of(url)).unwrap().last().unwrap().unwrap();
    let key = newest.position.to_string();
    house.archive.remove_captures(&[newest], "asked").unwrap();
    house.archive.remove(&skep_archive::Selector::Url(other.into()), "asked").unwrap();
    house.sinks.once(None).unwrap();
    assert_eq!(server.ask("SELECT url, title FROM changes"), ["http://example.org/a|one"]);
    assert_eq!(server.ask("SELECT url, title, state FROM urls"), ["http://example.org/a|one|well"]);
    let there = server.ask("SELECT target FROM links WHERE removed IS NULL OR added >= removed ORDER BY 1");
    assert_eq!(there, ["http://example.org/1", "http://example.org/2"]);
    assert_eq!(server.number("SELECT count(*) FROM links"), 2);
    let bodies: Vec<String> =
        receiver.taken().iter().map(|came| String::from_utf8_lossy(&came.body).into_owned()).collect();
    let last = bodies.last().unwrap();
    assert!(last.contains("page.withdrawn") && last.contains(&key) && !last.contains("second"), "{last}");
}

#[test]
fn a_page_keeps_its_links_in_the_database_when_its_first_versions_go() {
    let server = Postgres::start(&["fsync=off"]);
    let house = House::new();
    house.add("db", postgres(server.url()));
    let url = "http://example.org/";
    let links: String = (0..120).map(|n| format!("<a href=/{n}>{n}</a> ")).collect();
    for day in 0..3 {
        let parts: String =
            (0..12).map(|part| format!("<p>{}</p>", words(part + 1 + 99 * u64::from(part == day), 20))).collect();
        page(&house.archive, url, START_MS + day as i64 * DAY_MS, &format!("{parts}{links}"));
    }
    house.sinks.once(None).unwrap();
    let there = || server.number("SELECT count(*) FROM links WHERE removed IS NULL OR added >= removed");
    assert_eq!(there(), 120);
    let retention = skep_changes::Retention::read("version = 1\n[[rule]]\nkeep = 1").unwrap();
    let now_ms = START_MS + 9 * DAY_MS;
    assert_eq!(house.changes.retain(&house.archive, &retention, now_ms, false).unwrap().removed, 2);
    house.sinks.once(None).unwrap();
    assert_eq!(server.ask("SELECT array_to_string(classes, ' ') FROM changes"), ["bytes"]);
    assert_eq!(there(), 120, "the page that is left has them all");
}

#[test]
fn what_is_told_of_a_host_is_not_what_its_start_page_is() {
    let server = Postgres::start(&["fsync=off"]);
    let folder = tempfile::tempdir().unwrap();
    let archive = Arc::new(open(folder.path()));
    let changes = Arc::new(Changes::new(TestChecks));
    let sinks = Sinks::new(archive.clone(), changes.clone());
    sinks.add("db", &Definition::new(postgres(server.url()), Wanted::default()), &Since::Start).unwrap();
    let (start, deep) = ("http://example.org/", "http://deep.example/a/b");
    for (url, host) in [(start, "example.org:80"), (deep, "deep.example:80")] {
        page(&archive, url, START_MS, "<title>Here</title><p>a page</p>");
        for n in 1..20 {
            checks(&archive, host, &[(url, START_MS + n * DAY_MS, "dns-not-found")]);
        }
    }
    sinks.once(None).unwrap();
    assert_eq!(server.number("SELECT count(*) FROM changes WHERE type = 'host.down'"), 2);
    let rows = server.ask("SELECT url, state, status, title FROM urls ORDER BY url DESC");
    assert_eq!(rows, ["http://example.org/|well|200|Here", "http://deep.example/a/b|well|200|Here"]);
    // Keys are those of the stream.
    let keys: BTreeSet<String> = server.ask("SELECT key FROM changes").into_iter().collect();
    let mut told = BTreeSet::new();
    changes
        .read(&archive, &From::Start, &all(), |_, kept| {
            told.insert(kept.key_text());
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(keys, told);
    assert_eq!(keys.iter().filter(|key| key.ends_with("/host")).count(), 2);
    // Tables of the first version have other keys for them, and their start pages are what was told of the host.
    server.ask("UPDATE changes SET key = regexp_replace(key, ':[0-9]+/host$', ':' || (2147483648 + substring(key from ':([0-9]+)/host$')::bigint)) WHERE key LIKE '%/host'");
    server.ask("UPDATE urls SET status = 0, state = 'well', key = c.key FROM changes c WHERE c.url = urls.url AND c.type = 'host.down'");
    server.ask("INSERT INTO urls SELECT url, '', host, 'well', seen, seen, 0, NULL, NULL, NULL, NULL, NULL, archive, key FROM changes c WHERE type = 'host.down' AND NOT EXISTS (SELECT FROM urls u WHERE u.url = c.url)");
    server.ask("DELETE FROM skep_schema WHERE version > 1");
    assert_eq!(server.number("SELECT count(*) FROM urls WHERE status = 0"), 2);
    page(&archive, start, START_MS + 30 * DAY_MS, "<title>Here</title><p>another page</p>");
    sinks.once(None).unwrap();
    assert_eq!(server.number("SELECT count(*) FROM changes WHERE key LIKE '%/host'"), 3, "down, down, up");
    let room = server.ask("SELECT array_to_string(reloptions, ' ') FROM pg_class WHERE relname = 'urls'");
    assert_eq!(room, ["fillfactor=80"], "rows have room to become others");
    let rows = server.ask("SELECT url, state, status, title FROM urls ORDER BY url DESC");
    assert_eq!(rows, ["http://example.org/|well|200|Here", "http://deep.example/a/b|well|200|Here"]);
}

#[test]
fn many_events_that_can_never_be_there_are_put_aside_at_once() {
    let server = Postgres::start(&["fsync=off"]);
    let house = House::new();
    house.add("db", postgres(server.url()));
    for n in 0..20 {
        let long =
            format!("http://example.org/{n}/{}", (0..900).map(|n| format!("{:x}", n * 7919)).collect::<String>());
        page(&house.archive, &long, START_MS + n, "<p>a page with a very long address</p>");
    }
    house.sinks.once(None).unwrap();
    let standing = house.standing("db");
    assert!(is_done(&standing), "{standing:?}");
    assert_eq!((standing.state.rejected, server.number("SELECT count(*) FROM rejected")), (20, 20));
}

#[test]
fn a_cursor_that_cannot_be_read_is_not_a_beginning() {
    let receiver = Receiver::start(|_, _| Answer::Status(204, ""));
    let house = House::new();
    house.add("hook", webhook(receiver.url("/")));
    house.round(10);
    house.sinks.once(None).unwrap();
    assert_eq!(receiver.keys().len(), 10);
    let file = house.folder.path().join("settings/sinks/hook.cursor");
    let whole = std::fs::read_to_string(&file).unwrap();
    let garbled = whole.replace("cursor = \"", "cursor = \"?");
    assert_ne!(garbled, whole);
    for wrong in [&whole[..whole.len() / 2], "version = 99\n", &garbled] {
        std::fs::write(&file, wrong).unwrap();
        let _told_by_how_it_stands = house.sinks.once(None);
        let error = house.standing("hook").state.error.unwrap_or_default();
        assert!(error.contains("cursor"), "{error}");
        assert_eq!(receiver.keys().len(), 10, "nothing comes a second time");
    }
    house.sinks.replay("hook", &Since::Now).unwrap();
    house.round(10);
    house.sinks.once(None).unwrap();
    assert_eq!(receiver.keys().len(), 20);
    assert!(is_done(&house.standing("hook")));
}

#[test]
fn a_sink_that_is_sent_nowhere_works_on() {
    let receiver = Receiver::start(|_, _| Answer::Status(204, ""));
    let house = House::new();
    house.add("hook", webhook(receiver.url("/")));
    let _running = house.sinks.begin().unwrap();
    house.round(10);
    house.wait("hook", is_done);
    let foreign = Since::Cursor("abc:3".parse().unwrap());
    assert_eq!(house.sinks.replay("hook", &foreign).unwrap_err().id(), "foreign-cursor");
    house.round(10);
    house.wait("hook", |standing| standing.at_work && is_done(standing));
    assert_eq!(receiver.keys().len(), 20);
}

#[test]
fn a_sink_that_wants_what_comes_gets_nothing_else_though_the_log_is_built_again() {
    let receiver = Receiver::start(|_, _| Answer::Status(204, ""));
    let house = House::new();
    house.round(10);
    let hook = Definition::new(webhook(receiver.url("/")), Wanted::default());
    house.sinks.add("hook", &hook, &Since::Now).unwrap();
    house.sinks.add("later", &hook, &Since::Time(START_MS + 2 * DAY_MS)).unwrap();
    let House { folder, archive, changes, sinks, .. } = house;
    drop((sinks, changes));
    Arc::try_unwrap(archive).ok().expect("nobody else has it").close().unwrap();
    Archive::rebuild(folder.path(), options(), false).unwrap().close().unwrap();
    let house = House::at(folder);
    house.sinks.once(None).unwrap();
    assert!(receiver.keys().is_empty(), "{:?}", receiver.keys());
    house.rounds.store(1, Ordering::SeqCst);
    house.round(10);
    house.sinks.once(None).unwrap();
    assert_eq!(receiver.keys().len(), 20, "what came since, for both");
}

#[test]
fn a_sink_without_a_place_to_begin_is_none_and_one_that_makes_no_sense_can_go() {
    let house = House::new();
    let folder = house.folder.path().join("settings/sinks");
    // Where the cursor should be, something is in the way.
    std::fs::create_dir_all(folder.join("hook.cursor")).unwrap();
    let hook = Definition::new(webhook("http://127.0.0.1:1/".into()), Wanted::default());
    house.sinks.add("hook", &hook, &Since::Now).unwrap_err();
    assert!(house.sinks.standings().unwrap().is_empty());
    std::fs::write(folder.join("odd.toml"), "version = 1\nkind = \"fax\"\n").unwrap();
    // It is told, and keeps no other from working.
    let receiver = Receiver::start(|_, _| Answer::Status(200, ""));
    house.add("hook-2", webhook(receiver.url("/")));
    house.round(3);
    {
        let running = house.sinks.begin().unwrap();
        let told: Vec<String> = running.left_out().iter().map(ToString::to_string).collect();
        assert!(told.len() == 1 && told[0].contains("sink odd ") && told[0].contains("odd.toml"), "{told:?}");
        house.wait("hook-2", |standing| is_done(standing) && standing.state.delivered == 3);
        assert_eq!(house.sinks.begin().unwrap().left_out().len(), 1, "whoever comes second hears of it, too");
    }
    let odd = house.standing("odd");
    assert!(odd.definition.is_none() && !odd.at_work);
    assert!(odd.state.error.as_ref().is_some_and(|told| told.contains("skep sink remove odd")), "{odd:?}");
    assert_eq!(house.sinks.once(Some("odd")).unwrap_err().id(), "archive");
    house.sinks.once(None).unwrap();
    let taken = Definition::new(webhook(receiver.url("/")), Wanted::default());
    assert_eq!(house.sinks.add("odd", &taken, &Since::Now).unwrap_err().id(), "sink", "its name is taken");
    house.sinks.remove("hook-2").unwrap();
    house.sinks.remove("odd").unwrap();
    assert!(house.sinks.standings().unwrap().is_empty());
    assert_eq!(house.sinks.remove("odd").unwrap_err().id(), "sink");
}

#[test]
fn what_can_never_be_reached_is_no_sink() {
    let house = House::new();
    let mail = |url: &str, to: &str| Kind::Smtp {
        url: url.into(),
        from: "skep@example.org".into(),
        to: vec![to.into()],
        every_ms: 1_000,
    };
    let (stream, subject) = ("SKEP".to_owned(), "skep.changes".to_owned());
    for wrong in [
        webhook("http:///hook".into()),
        webhook("https://b\u{fc}cher.example/".into()),
        mail("smtp://mail.example.org", "somebody"),
        mail("smtp://mail.example.org:port", "me@example.org"),
        Kind::Nats { url: "nats://".into(), stream, subject, token: None, nkey: None },
        postgres("postgresql://me:SECRET@db:port/skep".into()),
    ] {
        let target = wrong.target();
        let added = house.sinks.add("sink", &Definition::new(wrong, Wanted::default()), &Since::Now);
        let error = added.expect_err(&target);
        assert!(error.id() == "sink" && error.hint().is_some() && !error.to_string().contains("SECRET"), "{error}");
    }
    house.add("mail", mail("smtps://me:p%2Fw@mail.example.org:465", "Me <me@example.org>"));
    assert_eq!(house.sinks.standings().unwrap().len(), 1);
}

#[test]
fn what_stood_in_front_of_a_page_is_not_brought_back_for_it() {
    let server = Postgres::start(&["fsync=off"]);
    let house = House::new();
    house.add("db", postgres(server.url()));
    let url = "http://example.org/a";
    page(&house.archive, url, START_MS, &text(&["a page"]));
    page(&house.archive, url, START_MS + DAY_MS, "<title>A page</title><p>Please wait.</p>");
    page(&house.archive, "http://example.org/b", START_MS, &text(&["another"]));
    house.sinks.once(None).unwrap();
    assert_eq!(server.ask("SELECT state FROM urls ORDER BY url"), ["suspect", "well"]);
    let known = house.archive.views().captures.exact(&skep_archive::Key::of(url)).unwrap().next().unwrap().unwrap();
    let mut back = Vec::new();
    skep_changes::sink::read_back(&server.url(), None, |known| back.push(known)).unwrap();
    assert_eq!(back.len(), 2);
    assert_eq!((back[0].last_seen_ms, back[0].status), (Some(START_MS), 200));
    assert_eq!((&back[0].digest, known.time_ms), (&known.digest.map(|digest| digest.to_string()), START_MS));
    assert!(back[1].digest.is_some() && back[1].last_seen_ms == Some(START_MS));
}

#[test]
fn what_is_taken_back_reaches_nats_also_from_a_process_that_did_not_tell_it() {
    let server = Nats::start();
    let house = House::new();
    let (stream, subject) = ("SKEP".to_owned(), "skep.changes".to_owned());
    house.add("nats", Kind::Nats { url: server.url(), stream, subject, token: None, nkey: None });
    house.round(3);
    house.sinks.once(None).unwrap();
    house.archive.remove(&skep_archive::Selector::Url("http://example.org/1".into()), "asked").unwrap();
    // Whoever works now has sent nothing yet.
    house.sinks.once(None).unwrap();
    assert!(is_done(&house.standing("nats")), "{:?}", house.standing("nats"));
    let messages = stream_of(&server.url());
    let types: Vec<&str> = messages.iter().filter_map(|(_, _, event)| event["type"].as_str()).collect();
    assert_eq!(types, ["page.new", "page.new", "page.new", "page.withdrawn"]);
    assert_eq!(messages[3].2["key"], messages[1].2["key"]);
}

#[test]
fn a_mail_from_the_future_keeps_no_other_waiting() {
    let Some(server) = Mail::start() else { return };
    let house = House::new();
    let kind = Kind::Smtp {
        url: server.url(),
        from: "skep@example.org".into(),
        to: vec!["me@example.org".into()],
        every_ms: 1_000,
    };
    house.add("mail", kind);
    let file = house.folder.path().join("settings/sinks/mail.cursor");
    let future_ms = skep_archive::system_clock() + 365 * DAY_MS;
    let kept = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("delivered-ms = {future_ms}\n{kept}")).unwrap();
    let _running = house.sinks.begin().unwrap();
    house.round(5);
    house.wait("mail", |standing| standing.state.delivered > 0);
}

#[test]
fn a_message_that_nats_can_never_take_is_put_aside() {
    let server = Nats::start();
    let house = House::new();
    let (stream, subject) = ("SKEP".to_owned(), "skep.changes".to_owned());
    house.add("nats", Kind::Nats { url: server.url(), stream, subject, token: None, nkey: None });
    house.round(5);
    house.sinks.once(None).unwrap();
    // Whoever owns the stream takes no message of more than some bytes.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let context = async_nats::jetstream::new(async_nats::connect(server.url()).await.unwrap());
        let mut config = context.get_stream("SKEP").await.unwrap().cached_info().config.clone();
        config.max_message_size = 4_000;
        context.update_stream(config).await.unwrap();
    });
    for n in 0..30 {
        let links: String = (0..50).map(|link| format!("<a href=/{n}/{link}/{}>x</a>", "long".repeat(40))).collect();
        page(
            &house.archive,
            &format!("http://long.example/{n}"),
            START_MS + 5 * DAY_MS + n,
            &format!("<p>x</p>{links}"),
        );
    }
    house.round(5);
    house.sinks.once(None).unwrap();
    let standing = house.standing("nats");
    assert!(is_done(&standing), "{standing:?}");
    assert_eq!((standing.state.rejected, stream_of(&server.url()).len()), (30, 10));
}

#[test]
fn webhooks_are_signed_tried_again_and_complete() {
    let house = House::new();
    let receiver = Receiver::start(|number, came| {
        let header = |name: &str| came.headers.get(name).map_or("", String::as_str);
        let timestamp = header("webhook-timestamp").parse().unwrap_or(0);
        let signed = signature("whsec_c2VjcmV0", header("webhook-id"), timestamp, &came.body);
        if signed != header("webhook-signature") || header("authorization") != "Bearer abc" {
            return Answer::Status(403, "");
        }
        match number {
            1 => Answer::Status(500, ""),
            2 => Answer::Break,
            3 => Answer::Status(429, "Retry-After: 1\r\n"),
            4 => Answer::Status(307, "Location: http://127.0.0.1:1/\r\n"),
            _ => Answer::Status(204, ""),
        }
    });
    house.add("hook", webhook(receiver.url("/hook?a=b")));
    {
        let _running = house.sinks.begin().unwrap();
        house.round(450);
        house.wait("hook", |standing| {
            standing.state.error.as_ref().is_some_and(|why| why.contains("redirects are not followed"))
        });
        house.wait("hook", is_done);
    }
    let keys = receiver.keys();
    assert_eq!(keys.len(), 450, "once");
    assert_eq!(keys.into_iter().collect::<BTreeSet<_>>(), house.keys(false));
    let first = &receiver.taken()[0];
    assert_eq!(first.line, "POST /hook?a=b HTTP/1.1");
    assert!(first.headers["content-type"].starts_with("application/cloudevents-batch+json"));
    let events: Vec<serde_json::Value> = serde_json::from_slice(&first.body).unwrap();
    assert_eq!((events.len(), events[0]["specversion"].as_str()), (100, Some("1.0")));
    let ids: BTreeSet<String> = receiver.taken().iter().map(|came| came.headers["webhook-id"].clone()).collect();
    assert_eq!(ids.len(), receiver.taken().len(), "each has a name of its own");
}

#[test]
fn a_receiver_that_asks_for_patience_or_an_end_gets_it() {
    let house = House::new();
    let patient = Receiver::start(|_, _| Answer::Status(503, "Retry-After: 7200\r\n"));
    let over = Receiver::start(|_, _| Answer::Status(410, ""));
    let picky = Receiver::start(|_, came| match String::from_utf8_lossy(&came.body).contains("example.org/42\"") {
        true => Answer::Status(422, ""),
        false => Answer::Status(200, ""),
    });
    house.add("patient", webhook(patient.url("/")));
    house.add("over", webhook(over.url("/")));
    house.add("picky", webhook(picky.url("/")));
    house.round(150);
    let before = skep_archive::system_clock();
    house.sinks.once(None).unwrap();
    let state = house.standing("patient").state;
    assert!(state.next_ms.is_some_and(|next| next >= before + 7_200_000), "{state:?}");
    assert!(house.standing("over").state.paused);
    // Of what is refused, what the receiver can take is what it gets.
    let standing = house.standing("picky");
    assert!(is_done(&standing), "{standing:?}");
    assert_eq!((standing.state.rejected, picky.keys().len()), (1, 149));
    assert!(
        standing.state.last_rejected.is_some_and(|why| why.contains("http://example.org/42") && why.contains("422"))
    );
    // Sent back on purpose, the one that had ended begins again.
    house.sinks.replay("over", &Since::Time(START_MS + DAY_MS + 100)).unwrap();
    let state = State::load(&house.archive, "over").unwrap();
    assert!(!state.paused);
    assert_eq!((state.since_ms, state.since_until), (Some(START_MS + DAY_MS + 100), 150));
}

#[test]
fn a_sink_that_hangs_slows_nobody_else() {
    let house = House::new();
    let stalling = Receiver::start(|_, _| Answer::Stall);
    let quick = Receiver::start(|_, _| Answer::Status(200, ""));
    house.add("stalling", webhook(stalling.url("/")));
    house.add("quick", webhook(quick.url("/")));
    {
        let running = house.sinks.begin().unwrap();
        house.round(300);
        house.wait("quick", is_done);
        assert_eq!(house.standing("stalling").lag, Some(300));
        house.sinks.remove("stalling").unwrap();
        drop(running);
    }
    assert_eq!(quick.keys().len(), 300);
    assert_eq!(house.sinks.standings().unwrap().len(), 1);
    assert_eq!(file_names(house.folder.path()), ["quick.cursor", "quick.toml"]);
    use std::os::unix::fs::PermissionsExt;
    for name in file_names(house.folder.path()) {
        let facts = std::fs::metadata(house.folder.path().join("settings/sinks").join(name)).unwrap();
        assert_eq!(facts.permissions().mode() & 0o777, 0o600);
    }
}

fn file_names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder.join("settings/sinks")).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn nats_stopped_under_load_has_every_event_once() {
    let mut server = Nats::start();
    let house = House::new();
    let (stream, subject) = ("SKEP".to_owned(), "skep.changes".to_owned());
    house.add("nats", Kind::Nats { url: server.url(), stream, subject, token: None, nkey: None });
    {
        let _running = house.sinks.begin().unwrap();
        house.under_load(PAGES, || {
            for _ in 0..2 {
                let before = house.standing("nats").state.delivered;
                house.wait("nats", |standing| standing.state.delivered > before);
                server.kill();
                house.wait("nats", |standing| standing.state.failures > 0);
                server.up();
            }
        });
        house.wait("nats", is_done);
    }
    let messages = stream_of(&server.url());
    assert_eq!(messages.len(), house.keys(false).len(), "the server dropped what came a second time");
    let keys: BTreeSet<String> = messages.iter().map(|(id, _, _)| id.clone()).collect();
    assert_eq!(keys, house.keys(false));
    let (id, subject, event) = &messages[0];
    assert_eq!((subject.as_str(), event["key"].as_str()), ("skep.changes.page.new", Some(id.as_str())));
}

/// A server that knows its users by their keys lets in who signs what it asks with the right one, and nobody else.
#[test]
fn nats_knows_us_by_a_key_that_never_leaves_the_machine() {
    let keys = [3, 4].map(|byte| nkeys::KeyPair::new_from_raw(nkeys::KeyPairType::User, [byte; 32]).unwrap());
    let [right, wrong] = keys.each_ref().map(|key| key.seed().unwrap());
    assert_eq!(skep_changes::sink::public_nkey(&right).unwrap(), keys[0].public_key());
    let server = Nats::start_knowing(&keys[0].public_key());
    let house = House::new();
    for (name, nkey) in [("stranger", Some(wrong)), ("nobody", None), ("known", Some(right.clone()))] {
        let (stream, subject) = ("SKEP".to_owned(), "skep.changes".to_owned());
        house.add(name, Kind::Nats { url: server.url(), stream, subject, token: None, nkey });
    }
    house.round(10);
    {
        let _running = house.sinks.begin().unwrap();
        house.wait("known", is_done);
        for name in ["stranger", "nobody"] {
            house.wait(name, |standing| standing.state.failures > 0);
            let state = house.standing(name).state;
            assert_eq!(state.delivered, 0, "{name}");
            let error = state.error.unwrap_or_default();
            assert!(error.contains("uthoriz"), "{name}: {error}");
        }
    }
    let messages = stream_by(async_nats::ConnectOptions::with_nkey(right), &server.url());
    let keys: BTreeSet<String> = messages.iter().map(|(id, _, _)| id.clone()).collect();
    assert_eq!((messages.len(), keys), (house.keys(false).len(), house.keys(false)));
}

/// What a stream holds: names, subjects and events.
fn stream_of(url: &str) -> Vec<(String, String, serde_json::Value)> {
    stream_by(async_nats::ConnectOptions::new(), url)
}

fn stream_by(options: async_nats::ConnectOptions, url: &str) -> Vec<(String, String, serde_json::Value)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let context = async_nats::jetstream::new(options.connect(url).await.unwrap());
        let mut stream = context.get_stream("SKEP").await.unwrap();
        let facts = stream.info().await.unwrap().state.clone();
        let mut messages = Vec::new();
        for sequence in facts.first_sequence..=facts.last_sequence {
            let message = stream.get_raw_message(sequence).await.unwrap();
            let id = message.headers.get("Nats-Msg-Id").map(|id| id.to_string()).unwrap_or_default();
            messages.push((id, message.subject.to_string(), serde_json::from_slice(&message.payload).unwrap()));
        }
        messages
    })
}

#[test]
fn mails_put_a_flood_together_and_none_is_lost_when_the_server_stops() {
    let Some(mut server) = Mail::start() else { return };
    let house = House::new();
    let to = vec!["Me <me@example.org>".to_owned(), "you@example.org".to_owned()];
    let kind = Kind::Smtp { url: server.url(), from: "Skep <skep@example.org>".into(), to, every_ms: 200 };
    house.add("mail", kind);
    {
        let _running = house.sinks.begin().unwrap();
        house.under_load(PAGES, || {
            house.wait("mail", |standing| standing.state.delivered > 0);
            server.kill();
            house.wait("mail", |standing| standing.state.failures > 0);
            server.up();
        });
        house.wait("mail", is_done);
    }
    let (mails, all) = (server.mails(), house.keys(false));
    assert!(mails.len() * 50 < all.len(), "{} mails for {} changes", mails.len(), all.len());
    // A mail that came twice has one name.
    let ids: BTreeSet<&str> = mails.iter().map(|mail| mail["id"].as_str().unwrap()).collect();
    let mut keys = Vec::new();
    for id in ids {
        let mail = mails.iter().find(|mail| mail["id"] == id).unwrap();
        assert_eq!(mail["to"], serde_json::json!(["me@example.org", "you@example.org"]));
        assert!(mail["subject"].as_str().unwrap().contains("changes at example.org"), "{}", mail["subject"]);
        let text = mail["text"].as_str().unwrap();
        assert!(text.contains("http://example.org/"), "{text}");
        keys.extend(mail["events"].as_array().unwrap().iter().map(|event| event["key"].as_str().unwrap().to_owned()));
    }
    assert_eq!(keys.len(), all.len(), "once");
    assert_eq!(keys.into_iter().collect::<BTreeSet<_>>(), all);
}
