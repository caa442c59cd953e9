//! What is found, when, and what is not.

mod support;

use skep_archive::{Key, Selector};
use skep_search::{Asked, Error, Query, Text};
use skep_url::{Match, Scan};
use support::*;

#[test]
fn pages_are_found_by_words_phrases_titles_and_sites() {
    let dir = tempfile::tempdir().unwrap();
    let archive = open(dir.path());
    page(&archive, "http://a.example.org/one", 0, "The Woven Hive", "Many bees keep what they gather.");
    page(&archive, "http://b.example.org/two", 0, "Wasps", "A hive that wasps have woven of paper &amp; wood.");
    page(&archive, "http://other.example/three", 0, "蜂の巣", "東京都の蜂の巣について。");
    append(
        &archive,
        "http://c.example.org/n",
        response("http://c.example.org/n", START_MS, "text/plain", "plain bees"),
    );
    append(
        &archive,
        "http://c.example.org/i",
        response("http://c.example.org/i", START_MS, "image/png", "png of bees"),
    );
    let text = keeping(&archive);
    for (typed, found) in [
        ("bees", "a.example.org/one c.example.org/n"),
        ("BEES gather", "a.example.org/one"),
        ("woven hive", "a.example.org/one b.example.org/two"),
        ("\"woven hive\"", "a.example.org/one"),
        ("hive -wasps", "a.example.org/one"),
        ("title:hive", "a.example.org/one"),
        ("title:wasps woven", "b.example.org/two"),
        ("hive site:example.org", "a.example.org/one b.example.org/two"),
        ("hive -site:b.example.org", "a.example.org/one"),
        ("bees host:c.example.org", "c.example.org/n"),
        ("host:example.org hive", ""),
        ("東京都", "other.example/three"),
        ("京都の", "other.example/three"),
        ("蜂の巣 -title:蜂の巣", ""),
        ("unseen", ""),
        ("paper wood", "b.example.org/two"),
    ] {
        assert_eq!(urls(&text, typed, None), found, "{typed}");
    }
    let found = ask(&text, "\"many bees\"", None, &everything);
    let hit = &found.hits[0];
    assert_eq!((hit.title.as_str(), hit.passage.text.as_str()), ("The Woven Hive", "Many bees keep what they gather."));
    assert_eq!(hit.passage.marks, [(0, 4), (5, 9)]);
    // A word in the title says more than one in the text.
    assert_eq!(ask(&text, "hive", None, &everything).hits[0].capture.url, "http://a.example.org/one");
    let query = Query::parse("hive").unwrap();
    let within = Scan::of("http://b.example.org/", Match::Prefix);
    let asked = Asked { query: &query, at_ms: None, within: Some(&within), shows: &everything, skip: 0, limit: 5 };
    let found = text.search(&asked).unwrap();
    assert_eq!(found.hits.iter().map(|hit| hit.capture.url.as_str()).collect::<Vec<_>>(), ["http://b.example.org/two"]);
    let deep = Asked { skip: usize::MAX, ..asked };
    assert!(matches!(text.search(&deep), Err(Error::Query(why)) if why.contains("first 10000")));
}

#[test]
fn a_date_shows_what_was_current_then() {
    let dir = tempfile::tempdir().unwrap();
    let archive = open(dir.path());
    let url = "http://news.example/";
    for (day, words) in [
        (0, "spring flowers"),
        (1, "spring flowers"),
        (3, "summer flowers"),
        (6, "autumn leaves"),
        (9, "spring flowers"),
    ] {
        page(&archive, url, day, "News", words);
    }
    append(&archive, url, revisit(url, START_MS + 10 * DAY_MS, &html("News", "spring flowers")));
    page(&archive, "http://other.example/", 5, "Other", "flowers");
    let text = keeping(&archive);
    // One document for each text, not for each capture.
    assert_eq!(documents(&text, "title:news").len(), 3);
    let times = |typed: &str, day| {
        let found = ask(&text, typed, day, &everything);
        let told = |hit: &skep_search::Hit| {
            let days = [hit.first_ms, hit.capture.time_ms, hit.last_ms].map(|ms| (ms - START_MS) / DAY_MS);
            format!("{} {days:?} {}", hit.capture.url.trim_start_matches("http://"), hit.captures)
        };
        found.hits.iter().map(told).collect::<Vec<_>>().join("; ")
    };
    assert_eq!(times("spring", None), "news.example/ [0, 0, 1] 2");
    assert_eq!(times("spring", Some(0)), "news.example/ [0, 0, 1] 2");
    assert_eq!(times("spring", Some(2)), "news.example/ [0, 1, 1] 2");
    assert_eq!(times("spring", Some(4)), "");
    assert_eq!(times("spring", Some(20)), "news.example/ [9, 10, 10] 2");
    assert_eq!(times("summer", Some(4)), "news.example/ [3, 3, 3] 1");
    assert_eq!(times("flowers", Some(-1)), "");
    assert_eq!(urls(&text, "flowers", Some(5)), "news.example/ other.example/");
    assert_eq!(urls(&text, "flowers", Some(7)), "other.example/");
    // Each URL once, however many of its texts have the word.
    assert_eq!(urls(&text, "flowers", None), "news.example/ other.example/");
}

#[test]
fn what_may_not_be_shown_leaves_no_trace() {
    let dir = tempfile::tempdir().unwrap();
    let archive = open(dir.path());
    page(&archive, "http://a.example/", 0, "A", "secret plans");
    page(&archive, "http://a.example/", 5, "A", "public plans");
    page(&archive, "http://b.example/", 0, "B", "public plans");
    let text = keeping(&archive);
    let late = |capture: &skep_archive::Capture| capture.time_ms >= START_MS + 3 * DAY_MS;
    let found = |typed: &str, day| ask(&text, typed, day, &late).hits.len();
    assert_eq!((found("plans", None), found("secret", None), found("public", None)), (1, 0, 1));
    // What is hidden was not current either.
    assert_eq!((found("public", Some(1)), found("public", Some(9))), (0, 1));
}

#[test]
fn removed_captures_vanish_at_once_and_their_words_after_them() {
    let dir = tempfile::tempdir().unwrap();
    let archive = open(dir.path());
    for day in 0..3 {
        page(&archive, "http://a.example/", day, "A", "zyzzyva one");
    }
    page(&archive, "http://a.example/", 4, "A", "zyzzyva two");
    page(&archive, "http://b.example/", 0, "A", "zyzzyva one");
    let text = keeping(&archive);
    assert_eq!(documents(&text, "zyzzyva").len(), 3);
    let first = archive.views().captures.exact(&Key::of("http://a.example/")).unwrap().next().unwrap().unwrap();
    archive.remove(&Selector::Digest(first.digest.unwrap()), "asked").unwrap();
    assert_eq!(urls(&text, "zyzzyva one", None), "");
    assert_eq!(urls(&text, "zyzzyva", None), "a.example/");
    // Whatever was removed is in the index no more.
    let left = documents(&text, "zyzzyva");
    assert_eq!(left.iter().map(|document| document.key.surt()).collect::<Vec<_>>(), ["example,a)/"]);
    archive.remove(&Selector::Url("http://a.example/".into()), "asked").unwrap();
    assert_eq!((urls(&text, "zyzzyva", None).as_str(), documents(&text, "zyzzyva").len()), ("", 0));
    let (archive, text) = rebuilt(dir.path(), archive, text);
    assert_eq!(documents(&text, "zyzzyva").len(), 0);
    drop((text, archive));
}

#[test]
fn a_rebuilt_index_has_the_documents_of_the_live_one() {
    let dir = tempfile::tempdir().unwrap();
    let archive = open(dir.path());
    let text = keeping(&archive);
    for number in 0..120i64 {
        let url = format!("http://host{}.example/{}", number % 7, number % 5);
        // Not in the order of time, so that earlier captures come later.
        page(&archive, &url, (number * 37) % 100, "Hives", &format!("hive of text {}", number % 11));
        if number % 40 == 39 {
            text.settle().unwrap();
        }
    }
    let moved = html("Hives", "hive that came by another way");
    append(&archive, "http://moved.example/", response("http://moved.example/", START_MS, "text/html", &moved));
    append(&archive, "http://again.example/", revisit("http://again.example/", START_MS + 5, &moved));
    archive.remove(&Selector::Url("http://host3.example/3".into()), "asked").unwrap();
    let live = documents(&text, "hive");
    assert!(live.len() > 100, "{}", live.len());
    assert!(urls(&text, "another way", None) == "again.example/ moved.example/");
    let (archive, text) = rebuilt(dir.path(), archive, text);
    assert_eq!(documents(&text, "hive"), live);
    // The library's files alone are gone, or rubbish: made again from the records.
    drop(text);
    std::fs::remove_dir_all(dir.path().join("views/text")).unwrap();
    let text = Text::open(archive.clone()).unwrap();
    assert_eq!(documents(&text, "hive"), live);
    drop(text);
    std::fs::write(dir.path().join("views/text/meta.json"), "rubbish").unwrap();
    let text = Text::open(archive.clone()).unwrap();
    assert_eq!(documents(&text, "hive"), live);
}

#[test]
fn a_revisit_that_comes_before_its_payload_is_found_when_that_has_come() {
    let dir = tempfile::tempdir().unwrap();
    let archive = open(&dir.path().join("archive"));
    let text = keeping(&archive);
    let body = html("Late", "a payload that comes later");
    for (name, record) in [
        ("revisit.warc.gz", revisit("http://early.example/", START_MS, &body)),
        ("payload.warc.gz", response("http://late.example/", START_MS, "text/html", &body)),
    ] {
        let path = dir.path().join(name);
        std::fs::write(&path, record).unwrap();
        let mut additions = archive.additions().unwrap();
        additions.add(&path, "added", false, &mut |_| ()).unwrap();
        additions.commit().unwrap();
        text.settle().unwrap();
    }
    assert_eq!(urls(&text, "payload", None), "early.example/ late.example/");
    let live = documents(&text, "payload");
    let (_archive, text) = rebuilt(&dir.path().join("archive"), archive, text);
    assert_eq!(documents(&text, "payload"), live);
}

#[test]
fn an_index_that_could_not_be_written_is_when_it_can_be_again() {
    let dir = tempfile::tempdir().unwrap();
    let archive = open(dir.path());
    let text = keeping(&archive);
    page(&archive, "http://a.example/", 0, "Before", "bees before");
    text.settle().unwrap();
    let (folder, aside) = (dir.path().join("views/text"), dir.path().join("aside"));
    std::fs::rename(&folder, &aside).unwrap();
    std::fs::write(&folder, "no folder").unwrap();
    page(&archive, "http://b.example/", 0, "After", "bees after");
    text.settle().unwrap_err();
    text.settle().unwrap_err();
    std::fs::remove_file(&folder).unwrap();
    text.settle().unwrap();
    assert_eq!(urls(&text, "bees", None), "a.example/ b.example/");
}

#[test]
fn without_an_index_it_is_said_what_to_type() {
    let dir = tempfile::tempdir().unwrap();
    let archive = open(dir.path());
    let text = Text::open(archive.clone()).unwrap();
    let query = Query::parse("a").unwrap();
    let asked = Asked { query: &query, at_ms: None, within: None, shows: &everything, skip: 0, limit: 1 };
    let error = text.search(&asked).unwrap_err();
    assert!(matches!(error, Error::Off) && error.hint().unwrap().contains("skep rebuild --text"));
    assert!(matches!(text.settle(), Err(Error::Off)));
}
