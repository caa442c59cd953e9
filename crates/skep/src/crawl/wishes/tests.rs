use super::*;
use clap::Parser;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    wishes: Wishes,
}

fn typed(words: &[&str]) -> Wishes {
    Line::try_parse_from([&["crawl"], words].concat()).unwrap_or_else(|error| panic!("{error}")).wishes
}

fn meant(words: &[&str]) -> Result<Job> {
    let archive = tempfile::tempdir().unwrap();
    typed(words).meant(archive.path(), false)
}

#[test]
fn every_flag_means_something() {
    let job = meant(&[
        "example.org",
        "--name",
        "n",
        "--scope",
        "site",
        "--include",
        "*.a.test",
        "--include",
        "*.b.test",
        "--exclude",
        "*/x/*",
        "--types",
        "html,Image",
        "--depth",
        "3",
        "--pages",
        "10",
        "--bytes",
        "1GB",
        "--time",
        "2h",
        "--pace",
        "2000",
        "--concurrency",
        "9",
        "--workers",
        "3",
        "--strip-query",
        "--resolve",
        "a.test=127.0.0.1:81",
        "--own",
        "A.test",
        "--ignore-robots",
        "--allow-private",
        "--private-host",
        "*.B.test",
        "--contact",
        "me@example.org",
        "--header",
        "X-A: b",
        "--header",
        "a.test Authorization: Basic c",
        "--proxy",
        "socks5://localhost:1080",
        "--dns",
        "192.0.2.1",
        "--revisit",
        "always",
        "--reserve",
        "5GB",
    ])
    .unwrap();
    let s = &job.settings;
    assert_eq!((s.name.as_str(), s.seeds.as_slice()), ("n", ["https://example.org/".to_owned()].as_slice()));
    assert_eq!((s.scope, s.include.len(), s.exclude.len()), (Reach::Site, 2, 1));
    assert_eq!(s.types, [Type::Html, Type::Image]);
    assert_eq!((s.depth, s.pages, s.bytes, s.time_ms), (Some(3), Some(10), Some(1_000_000_000), Some(7_200_000)));
    assert_eq!((s.pace, s.concurrency, s.strip_query), (Speed::Millis(2000), 9, true));
    assert_eq!((s.own.as_slice(), s.ignore_robots, s.allow_private), (["a.test".to_owned()].as_slice(), true, true));
    assert_eq!(
        (s.contact.as_deref(), s.revisit_always, s.reserve_bytes),
        (Some("me@example.org"), true, Some(5_000_000_000))
    );
    assert_eq!(job.fetch.headers[1].host.as_deref(), Some("a.test"));
    assert_eq!((job.fetch.headers[0].name.as_str(), job.fetch.headers[0].value.as_str()), ("X-A", "b"));
    assert_eq!(s.private_host, ["*.b.test"]);
    let run = job.run().unwrap();
    assert_eq!((run.workers, run.fetch.own_hosts.as_slice()), (3, ["a.test".to_owned()].as_slice()));
    assert!(run.fetch.proxy.is_some() && run.fetch.resolve[0].matches("a.test") && run.fetch.allow_private);
    assert!(run.fetch.user_agent.contains("me@example.org"));
}

#[test]
fn values_that_mean_nothing_are_explained() {
    for (words, about, hint) in [
        ([].as_slice(), "place to begin", "https://example.org/"),
        (&["--name", "n"], "no crawl called n", "--name n"),
        (&["a.test", "--pages", "many"], "not a number", "500"),
        (&["a.test", "--bytes", "much"], "not a size", "10GB"),
        (&["a.test", "--time", "long"], "not a duration", "2h"),
        (&["a.test", "--depth", "99999"], "links away", "none"),
        (&["a.test", "--pace", "fast"], "no pace", "2000"),
        (&["a.test", "--pace", "none"], "--own", "add --own a.test"),
        (&["a.test", "--ignore-robots"], "--own", "add --own a.test"),
        (&["a.test", "--types", "html,poems"], "no type", "document"),
        (&["a.test", "--own", "a.test:80"], "names no host", "all its ports"),
        (&["a.test", "--own", "a.*.test"], "names no host", "--own example.org"),
        (&["a.test", "--own", "http://a.test"], "names no host", "--own example.org"),
        (&["a.test", "--contact", "me"], "no contact", "crawl@example.org"),
        (&["a.test", "--contact", "me@a.test; evil"], "no contact", "--contact"),
        (&["a.test", "--header", "X-A"], "--header", "Accept-Language"),
        (&["a.test", "--header", "Cookie: a=b"], "--header", "example.org Authorization"),
        (&["a.test", "--cookies", "absent.txt"], "cannot read absent.txt", ""),
        (&["a.test", "--ca", "absent.pem"], "cannot read absent.pem", ""),
        (&["a.test", "--proxy", "proxy:8080"], "--proxy", ""),
        (&["a.test", "--resolve", "a.test"], "--resolve", ""),
        (&["a.test", "--dns", "dns.test"], "name server", "192.0.2.53"),
        (&["a.test", "--workers", "0"], "workers", "from 1"),
        (&["a.test", "--concurrency", "0"], "concurrency", ""),
        (&["a.test", "--name", "../x"], "no name for a crawl", ""),
    ] {
        let failure = meant(words).unwrap_err();
        let said = format!("{} {}", failure.what, failure.because.unwrap_or_default());
        assert!(said.contains(about), "{words:?}: {said}");
        assert!(failure.hint.as_deref().unwrap_or_default().contains(hint), "{words:?}: {:?}", failure.hint);
    }
}

#[test]
fn what_an_earlier_command_said_stays_until_it_is_changed() {
    let archive = tempfile::tempdir().unwrap();
    let first =
        typed(&["a.test", "--pages", "10", "--depth", "2", "--strip-query"]).meant(archive.path(), false).unwrap();
    let mut stored = first.settings;
    stored.pass.number = 3;
    stored.store(archive.path()).unwrap();
    let again = typed(&["https://a.test/"]).meant(archive.path(), false).unwrap().settings;
    assert_eq!(again, stored);
    let changed =
        typed(&["a.test", "--pages", "none", "--strip-query=false"]).meant(archive.path(), false).unwrap().settings;
    assert_eq!((changed.pages, changed.depth, changed.strip_query, changed.pass.number), (None, Some(2), false, 3));
    let by_name = typed(&["--name", &stored.name]).meant(archive.path(), false).unwrap().settings;
    assert_eq!(by_name.seeds, ["https://a.test/"]);
}

#[test]
fn a_file_says_what_flags_say_and_flags_win() {
    let archive = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = archive.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    write("more.txt", "b.test\n");
    write("cookies.txt", ".a.test\tTRUE\t/\tFALSE\t0\tid\t1\n");
    let path = write(
        "crawl.toml",
        "seeds = ['https://a.test/', 'more.txt']\nscope = 'site'\npages = 100\nbytes = '10GB'\ntime = '2h'\ntypes = ['html']\n\
         own = ['a.test']\nheader = ['X-A: b']\ncookies = 'cookies.txt'\n[site.'a.test']\npace = 'none'\n[site.'B.test']\npace = 5000\n\
         bytes = '1MB'\npause = true\n",
    );
    let flags = typed(&["--pages", "7", "--scope", "all"]);
    let job = flags.over(Wishes::load(&path).unwrap()).meant(archive.path(), false).unwrap();
    let s = &job.settings;
    assert_eq!(s.seeds, ["https://a.test/", "https://b.test/"]);
    assert_eq!((s.scope, s.pages, s.bytes, s.time_ms), (Reach::All, Some(7), Some(10_000_000_000), Some(7_200_000)));
    assert_eq!(s.site["a.test"].pace, Some(Speed::None));
    let b = &s.site["b.test"];
    assert_eq!((b.pace, b.bytes, b.pause), (Some(Speed::Millis(5000)), Some(1_000_000), true));
    assert!(job.fetch.cookies.contains("a.test"));
    // The archive's own file of a crawl is understood as well.
    s.store(archive.path()).unwrap();
    let copy = Wishes::load(&Settings::path(archive.path(), &s.name)).unwrap();
    assert_eq!(copy.meant(&archive.path().join("elsewhere"), false).unwrap().settings, *s);

    for (text, about) in [
        ("seeds = ['a.test']\ncolour = 'red'\n", "line 2"),
        ("seeds = 'a.test'\n", "line 1"),
        ("seeds = [\n", "line"),
        ("[site.'a.test']\nspeed = 1\n", "line 2"),
    ] {
        let failure = Wishes::load(&write("wrong.toml", text)).err().expect("it is wrong");
        assert!(failure.what.contains(about) && failure.hint.is_some(), "{text}: {failure:?}");
    }
    assert!(Wishes::load(&archive.path().join("absent.toml")).is_err());
}

#[test]
fn a_secret_for_a_host_goes_in_clear_only_to_a_seed_that_is_plain_http() {
    let headers = |words: &[&str]| meant(words).unwrap().fetch.headers.into_iter().map(|header| header.host.unwrap());
    let secret = ["--header", "a.test X-Key: 1"];
    let with = |seeds: &[&'static str]| headers(&[seeds, &secret[..]].concat()).collect::<Vec<_>>();
    assert_eq!(with(&["https://a.test/"]), ["a.test"]);
    assert_eq!(with(&["http://b.test/"]), ["a.test"]);
    assert_eq!(with(&["http://a.test:8080/", "http://a.test:8080/x"]), ["a.test", "http://a.test:8080"]);
    let plain = ["http://a.test/", "--header", "a.test Accept-Language: de"];
    assert_eq!(headers(&plain).collect::<Vec<_>>(), ["a.test"], "that goes there anyway");
}

#[test]
fn credentials_in_a_seed_become_a_header_for_its_host() {
    let job = meant(&["https://me:secret@a.test/in/"]).unwrap();
    assert_eq!(job.settings.seeds, ["https://a.test/in/"]);
    let header = &job.fetch.headers[0];
    assert_eq!((header.host.as_deref(), header.name.as_str()), (Some("https://a.test:443"), "Authorization"));
    assert!(header.value.starts_with("Basic "));
}

#[test]
fn a_job_passes_a_socket_unchanged() {
    let job =
        meant(&["a.test", "--pace", "700", "--types", "html,font", "--scope", "prefix", "--header", "X: y"]).unwrap();
    let passed: Job = serde_json::from_slice(&serde_json::to_vec(&job).unwrap()).unwrap();
    assert_eq!(passed.settings, job.settings);
    assert_eq!(passed.fetch.headers[0].value, "y");
}
