//! `skep sink`, by the binary: added, listed, run, replayed, removed; also in a process that somebody else started.

#[path = "site/portal.rs"]
mod portal;
#[path = "../../changes/tests/support/receiver.rs"]
mod receiver;
#[path = "../../changes/tests/support/servers.rs"]
mod servers;
mod site;

use portal::Portal;
use receiver::{Answer, Receiver};
use servers::{Mail, Nats, Postgres, Shown};
use site::Site;
use site::files::{Warc, message};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

fn pages(count: usize, month: u32) -> Vec<u8> {
    (0..count)
        .fold(Warc::gzip().info(), |warc, page| {
            let url = format!("http://example.org/{page}");
            let time = format!("2024-{month:02}-01T00:00:{page:02}Z");
            warc.page(
                &url,
                &time,
                &format!("<title>{page}</title><p>Text {month} of page {page}, which says something.</p>"),
            )
        })
        .bytes
}

fn filled() -> Site {
    let site = Site::new();
    site.write("first.warc.gz", pages(20, 1));
    site.skep(&["add", "first.warc.gz"]).exits(0);
    site
}

fn good() -> Receiver {
    Receiver::start(|_, _| Answer::Status(200, ""))
}

#[track_caller]
fn wait_for(what: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !what() {
        assert!(Instant::now() < until, "it does not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn sinks_are_added_listed_run_replayed_and_removed() {
    let site = filled();
    let receiver = good();
    assert!(site.skep(&["sink", "list"]).exits(0).talk.contains("no sink"));
    let added = site
        .skep(&["sink", "add", "webhook", &receiver.url("/hook/TOKEN"), "--since", "start", "--class", "new"])
        .exits(0);
    assert!(added.talk.contains("shown this once: whsec_") && added.talk.contains("added webhook"), "{}", added.talk);
    let secret = added.talk.split("whsec_").nth(1).and_then(|rest| rest.split_whitespace().next()).unwrap().to_owned();
    site.skep(&["sink", "add", "postgres", "postgresql://me:SECRET@127.0.0.1:1/x", "--name", "db", "--schema", "skep"])
        .exits(0);
    let listed = site.skep(&["sink", "list", "--json"]).exits(0);
    assert_eq!(
        (listed.each("name"), listed.each("kind")),
        (vec!["db".into(), "webhook".into()], vec!["postgres".into(), "webhook".into()])
    );
    assert_eq!(listed.each("lag"), ["20", "20"]);
    for shown in [listed.text(), site.skep(&["sink", "list"]).exits(0).text()] {
        assert!(!shown.contains("SECRET") && !shown.contains("TOKEN") && !shown.contains(&secret), "{shown}");
    }
    assert_eq!(listed.each("target")[0], "postgresql://me@127.0.0.1:1/x skep");
    // One is down: it lags, says why and when it is tried again, and the other is done.
    let ran = site.skep(&["sink", "run", "--once", "--json"]).exits(3);
    assert_eq!(ran.each("lag"), ["20", "0"]);
    assert!(ran.each("last_error")[0].contains("refused"), "{}", ran.text());
    assert!(ran.each("next_try")[0].starts_with("20"), "{}", ran.text());
    assert_eq!(receiver.keys().len(), 20);
    site.skep(&["sink", "run", "--once", "webhook"]).exits(0);
    assert_eq!(receiver.keys().len(), 20);
    // What comes later comes, and no more than is wanted.
    site.write("second.warc.gz", pages(22, 2));
    site.skep(&["add", "second.warc.gz"]).exits(0);
    site.skep(&["sink", "run", "--once", "webhook"]).exits(0);
    let keys = receiver.keys();
    assert_eq!((keys.len(), keys.iter().collect::<BTreeSet<_>>().len()), (22, 22));
    // Again, since a time.
    site.skep(&["sink", "replay", "webhook", "--since", "2024-02"]).exits(0);
    site.skep(&["sink", "run", "--once", "webhook"]).exits(0);
    assert_eq!(receiver.keys().len(), 24);
    site.skep(&["sink", "replay", "webhook", "--since", "now"]).exits(0);
    site.skep(&["sink", "run", "--once", "webhook"]).exits(0);
    assert_eq!(receiver.keys().len(), 24);
    site.skep(&["sink", "remove", "db"]).exits(0);
    assert_eq!(site.skep(&["sink", "list", "--json"]).exits(0).each("name"), ["webhook"]);
    site.is_sound();
}

#[test]
fn what_makes_no_sense_is_told() {
    let site = filled();
    let add = |more: &[&str]| site.skep(&[&["sink", "add"], more].concat());
    add(&["webhook", "hooks.example"]).fails("hooks.example").hints("https://");
    add(&["webhook", "http://h/", "--template", "irc"]).fails("irc").hints("slack");
    add(&["webhook", "http://h/", "--class", "texts"]).fails("texts").hints("text.major");
    add(&["webhook", "http://h/", "--name", "A/B"]).fails("A/B").hints("small letters");
    add(&["webhook", "http://h/", "--since", "yesterday"]).fails("yesterday");
    add(&["webhook", "http://h/", "--since", "abc:3"]).fails("abc:3").hints("by time");
    add(&["smtp", "mail.example", "--from", "a@b", "--to", "c@d"]).fails("mail.example").hints("smtp://");
    add(&["smtp", "smtp://h", "--from", "a@b", "--to", "c@d", "--every", "soon"]).fails("soon");
    add(&["smtp", "smtp://h", "--from", "a@b.test", "--to", "somebody"]).fails("somebody").hints("smtp://");
    add(&["webhook", "https://", "--host", "a.test:8080"]).fails("a.test:8080").hints("--prefix");
    add(&["webhook", "https://"]).fails("webhook").hints("https://");
    add(&["nats", "nats://h", "--subject", "a.*"]).fails("a.*");
    add(&["postgres", "mysql://h/x"]).fails("no address of a database").hints("postgresql://");
    site.write("password", "s3cret\n");
    add(&["postgres", "postgresql://h/x", "--password-file", "password"]).fails("needs a user");
    add(&["postgres", "postgresql://me@h/x", "--password-file", "password"]).exits(0);
    let kept = std::fs::read_to_string(site.archive().join("settings/sinks/postgres.toml")).unwrap();
    assert!(kept.contains("me:s3cret@h"), "{kept}");
    add(&["postgres", "postgresql://h/y", "--name", "postgres"]).fails("already").hints("remove");
    add(&["postgres", "postgresql://h/y"]).exits(0);
    assert_eq!(site.skep(&["sink", "list", "--json"]).exits(0).each("name"), ["postgres", "postgres-2"]);
    site.skep(&["sink", "remove", "none"]).fails("none").hints("sink list");
    site.skep(&["sink", "replay", "none", "--since", "now"]).fails("none");
    site.skep(&["sink", "run", "--once", "none"]).fails("none");
    // A file that somebody spoilt is named, and harms nothing else.
    site.write("archive/settings/sinks/odd.toml", "version = 1\nkind = \"fax\"\n");
    let listed = site.skep(&["sink", "list", "--json"]).exits(0);
    assert_eq!(listed.each("name"), ["odd", "postgres", "postgres-2"]);
    assert!(listed.each("last_error")[0].contains("odd.toml"), "{}", listed.text());
    site.skep(&["captures", "http://example.org/1"]).exits(0);
    site.skep(&["sink", "replay", "odd", "--since", "now"]).fails("odd.toml");
    for name in ["postgres", "postgres-2"] {
        site.skep(&["sink", "remove", name]).exits(0);
    }
    // The portal answers, and who makes sense works.
    let receiver = good();
    site.skep(&["sink", "add", "webhook", &receiver.url("/"), "--since", "start"]).exits(0);
    let portal = Portal::begin(&site, &[]);
    assert_eq!(portal.get("/changes?limit=1").0, 200);
    wait_for(|| receiver.keys().len() == 20);
    let (code, _, said) = portal.end();
    assert!(code == 0 && said.contains("odd.toml") && said.contains("skep sink remove odd"), "{said}");
    assert!(site.skep(&["sink", "run", "--once"]).exits(3).text().contains("odd.toml"), "something is left undone");
    site.skep(&["sink", "remove", "odd"]).exits(0);
    site.skep(&["sink", "run", "--once"]).exits(0);
    assert_eq!(site.skep(&["sink", "list", "--json"]).exits(0).each("name"), ["webhook"]);
}

#[test]
fn sinks_work_in_the_process_that_serves_and_survive_its_death() {
    let site = filled();
    let receiver = good();
    let portal = Portal::begin(&site, &[]);
    // It begins with what comes from now on, in the process that runs already.
    site.skep(&["sink", "add", "webhook", &receiver.url("/"), "--name", "hook"]).exits(0);
    site.write("second.warc.gz", pages(20, 2));
    site.skep(&["add", "second.warc.gz"]).exits(0);
    wait_for(|| receiver.keys().len() == 20);
    wait_for(|| site.skep(&["sink", "list", "--json"]).exits(0).each("lag") == ["0"]);
    assert_eq!(site.skep(&["sink", "list", "--json"]).each("at_work"), ["true"]);
    let mut portal = portal;
    portal.child.kill().unwrap();
    portal.child.wait().unwrap();
    site.write("third.warc.gz", pages(20, 3));
    site.skep(&["add", "third.warc.gz"]).exits(0);
    assert_eq!(receiver.keys().len(), 20, "nobody is there to carry it");
    let portal = Portal::begin(&site, &[]);
    wait_for(|| receiver.keys().len() >= 40);
    assert_eq!(portal.end().0, 0);
    let told = site.skep(&["changes", "--json", "--class", "text"]).exits(0).each("key");
    let (came, told): (BTreeSet<String>, BTreeSet<String>) =
        (receiver.keys().into_iter().collect(), told.into_iter().collect());
    assert_eq!(came, told);
    site.is_sound();
}

#[test]
fn what_a_database_knows_of_urls_comes_back_into_the_registry() {
    let server = Postgres::start(&["fsync=off"]);
    let site = Site::new();
    let later = Warc::gzip()
        .info()
        .page("http://example.org/", "2024-04-01T00:00:00Z", "<p>See</p>")
        .page("http://example.org/", "2024-05-01T00:00:00Z", "<p>See</p><a href=/new>this</a> <a href=/0>that</a>")
        .answer("http://example.org/1", "2024-05-01T00:00:00Z", &message("410 Gone", "text/html", b"gone"))
        .answer("http://example.org/1", "2024-05-09T00:00:00Z", &message("410 Gone", "text/html", b"gone"));
    site.write("first.warc.gz", pages(20, 1));
    site.write("later.warc.gz", later.bytes);
    site.skep(&["add", "first.warc.gz", "later.warc.gz"]).exits(0);
    site.skep(&["sink", "add", "postgres", &server.url(), "--schema", "bridge"]).exits(0);
    site.skep(&["sink", "run", "--once"]).exits(0);
    assert_eq!(server.number("SELECT count(*) FROM bridge.urls"), 21);
    // All is lost but the database.
    let empty = Site::new();
    empty
        .skep(&["rebuild", "--from-postgres", "postgresql://127.0.0.1:1/x"])
        .fails("does not answer")
        .hints("--schema");
    empty.skep(&["rebuild", "--from-postgres", &server.url()]).fails("does not answer");
    let came = empty
        .skep(&["rebuild", "--json", "--from-postgres", &server.url(), "--schema", "bridge", "--name", "again"])
        .exits(0);
    let told = &came.json()[0];
    let counted = ["urls", "seen", "digests", "left_out"].map(|name| told[name].as_u64().unwrap());
    assert_eq!(counted, [22, 21, 20, 0], "one of them is gone");
    let fate = |url: &str| empty.skep(&["why", url, "--json"]).exits(0).text();
    for (url, says) in [
        ("http://example.org/3", "2024-01-01T00:00:03"),
        ("http://example.org/1", "soft-404"),
        ("http://example.org/new", "wait"),
    ] {
        assert!(fate(url).contains(says), "{url}: {}", fate(url));
    }
    // It is in the records now: another rebuild knows it as well.
    let before = fate("http://example.org/3");
    empty.skep(&["rebuild"]).exits(0);
    assert_eq!(fate("http://example.org/3"), before);
    empty.is_sound();
    // Pages come again: one is as it was when all was lost, another is not.
    let again = Warc::gzip()
        .info()
        .page("http://example.org/", "2024-06-01T00:00:00Z", "<p>See</p><a href=/new>this</a> <a href=/0>that</a>")
        .page("http://example.org/3", "2024-06-01T00:00:00Z", "<p>It is something else altogether now.</p>");
    empty.write("again.warc.gz", again.bytes);
    empty.skep(&["add", "again.warc.gz"]).exits(0);
    let since = ["changes", "--json", "--since", "2024-05-31T00:00:00Z"];
    let told = empty.skep(&since).exits(0).json();
    let told: Vec<_> = told.iter().map(|event| (event["subject"].as_str(), event["type"].as_str())).collect();
    assert_eq!(told, [(Some("http://example.org/3"), Some("page.changed"))]);
}

#[test]
fn sinks_speak_tls_and_check_who_answers() {
    let Some(python) = std::env::var_os("SKEP_PYTHON") else {
        eprintln!("third-party checks not run: SKEP_PYTHON is not set");
        return;
    };
    let site = filled();
    let authority = skep_testweb::Authority::new().expect("an authority");
    let [certificate, key] = authority.for_server("localhost").expect("a certificate");
    let (certificate, key) = (site.write("certificate.pem", certificate), site.write("key.pem", key));
    site.write("authority.pem", authority.pem());
    let shown = || Shown { certificate: certificate.clone(), key: key.clone() };
    let (database, database_url) = Postgres::start_secure(&shown());
    let nats = Nats::start_secure(shown());
    let mail = Mail::start_secure(shown()).expect("the same environment");
    let heard = site.path("heard");
    std::fs::create_dir(&heard).expect("a folder");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../changes/tests/python/hook.py");
    let mut hook = std::process::Command::new(python);
    hook.arg(script).args([&heard, &certificate, &key]).stdout(std::process::Stdio::piped());
    let mut hook = Ended(hook.spawn().expect("the receiver starts"));
    let mut port = String::new();
    let said = hook.0.stdout.take().expect("its output");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(said), &mut port).expect("its port");
    let hook_url = format!("https://localhost:{}/", port.trim());
    for added in [
        &["sink", "add", "webhook", &hook_url, "--since", "start"][..],
        &["sink", "add", "nats", &nats.url(), "--since", "start"],
        &["sink", "add", "smtp", &mail.url(), "--from", "a@example.org", "--to", "b@example.org", "--since", "start"],
        &["sink", "add", "postgres", &database_url],
    ] {
        site.skep(added).exits(0);
    }
    // Nobody vouches for them.
    let refused = site.skep(&["sink", "run", "--once", "--json"]).exits(3).json();
    assert_eq!(refused.len(), 4);
    for sink in &refused {
        assert!(sink["delivered"] == 0 && sink["last_error"].is_string(), "{sink}");
    }
    let done = site.shell("SSL_CERT_FILE=authority.pem skep sink run --once --json").exits(0);
    for sink in done.json() {
        assert_eq!((&sink["delivered"], &sink["lag"]), (&20.into(), &0.into()), "{sink}");
    }
    assert_eq!(database.number("SELECT count(*) FROM changes"), 20);
    assert_eq!(mail.mails()[0]["events"].as_array().map(Vec::len), Some(20));
    let events = std::fs::read(heard.join("0.json")).expect("what was sent");
    assert_eq!(serde_json::from_slice::<Vec<serde_json::Value>>(&events).expect("events").len(), 20);
}

/// Ends with the test.
struct Ended(std::process::Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _code = self.0.wait();
    }
}
