//! The same crawl under other rules and budgets: what they let in is fetched, what they throw out is not, and nothing that was
//! learned is forgotten between two runs.

mod web;

use skep_archive::Archive;
use skep_crawl::{Ending, Event, Question, Reach, Settings, SiteSettings, Type, answer_question};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use web::scripted::{Said, index, missing, start, start_hearing};

fn settings(seed: String) -> Settings {
    Settings { name: "test".into(), seeds: vec![seed], allow_private: true, ..Settings::default() }
}

fn at(address: SocketAddr) -> Settings {
    settings(format!("http://{address}/"))
}

fn crawl(archive: &Arc<Archive>, settings: Settings) -> (Ending, Vec<Event>) {
    let mut fetch = skep_fetch::Settings::new("skep/0 (test)");
    fetch.allow_private = settings.allow_private;
    web::crawl(archive, settings, fetch, 1)
}

/// The paths that are kept, of all servers.
fn paths(archive: &Arc<Archive>) -> BTreeSet<String> {
    let path = |url: &String| format!("/{}", url.splitn(4, '/').nth(3).unwrap_or_default());
    web::captures(archive).keys().map(path).collect()
}

fn set(paths: &[&str]) -> BTreeSet<String> {
    paths.iter().map(|path| (*path).to_owned()).collect()
}

/// `/` leads to `/1`, that to `/2`, and so on up to `/4`.
fn chain(path: &str) -> Said {
    match path.trim_start_matches('/') {
        "" => index(["/1".to_owned()]),
        "4" => index([]),
        number => match number.parse::<u32>() {
            Ok(number) if number < 4 => index([format!("/{}", number + 1)]),
            _ => missing(),
        },
    }
}

fn two_folders(path: &str) -> Said {
    let all = ["/a/1", "/a/2", "/b/1", "/b/2"];
    match path {
        "/" => index(all.map(str::to_owned)),
        path if all.contains(&path) => index([path.to_owned()]),
        _ => missing(),
    }
}

#[test]
fn what_was_too_deep_is_fetched_when_the_crawl_goes_deeper() {
    let (folder, address) = (tempfile::tempdir().unwrap(), start(chain));
    let archive = web::archive(folder.path());
    crawl(&archive, Settings { depth: Some(1), ..at(address) });
    assert_eq!(paths(&archive), set(&["/", "/1"]));
    crawl(&archive, Settings { depth: Some(3), ..at(address) });
    assert_eq!(paths(&archive), set(&["/", "/1", "/2", "/3"]));
}

#[test]
fn what_waits_goes_by_the_rules_of_now() {
    let (folder, address) = (tempfile::tempdir().unwrap(), start(two_folders));
    let archive = web::archive(folder.path());
    let (ending, _) = crawl(&archive, Settings { pages: Some(1), ..at(address) });
    assert_eq!(ending, Ending::Budget("pages"));
    crawl(&archive, Settings { exclude: vec!["*/b/*".into()], ..at(address) });
    assert_eq!(paths(&archive), set(&["/", "/a/1", "/a/2"]));
    let question = Question::Why { url: format!("http://{address}/b/1"), name: None };
    let why = answer_question(&archive, &question).unwrap();
    assert_eq!((why[0]["fate"].as_str(), why[0]["rule"].as_str()), (Some("refused"), Some("excluded")));
    let because = why[0]["because"].as_str().unwrap();
    assert!(because.contains("*/b/*"), "{because} names no rule");
    crawl(&archive, at(address));
    assert_eq!(paths(&archive), set(&["/", "/a/1", "/a/2", "/b/1", "/b/2"]), "and of then, when they are lifted");
}

#[test]
fn a_seed_that_moved_takes_the_crawl_along_also_after_a_restart() {
    let there = start(chain);
    let here = start(move |path| match path {
        "/" => {
            let head = format!("HTTP/1.1 302 Found\r\nLocation: http://{there}/\r\nContent-Length: 0\r\n\r\n");
            Said { bytes: head.into_bytes(), close: false }
        }
        _ => missing(),
    });
    let folder = tempfile::tempdir().unwrap();
    let archive = web::archive(folder.path());
    let (ending, _) = crawl(&archive, Settings { pages: Some(2), ..at(here) });
    assert_eq!((ending, paths(&archive)), (Ending::Budget("pages"), set(&["/"])));
    let (ending, _) = crawl(&archive, at(here));
    assert_eq!((ending, paths(&archive)), (Ending::Finished, set(&["/", "/1", "/2", "/3", "/4"])));
}

#[test]
fn a_wider_scope_is_found_on_pages_that_have_not_changed() {
    let there = start(chain);
    let here = start_hearing(move |head| match head.split(' ').nth(1) {
        Some("/") if head.contains("If-None-Match") => {
            Said { bytes: b"HTTP/1.1 304 Not Modified\r\n\r\n".to_vec(), close: false }
        }
        Some("/") => {
            let page = format!("<!DOCTYPE html><a href=\"http://{there}/3\">there</a>");
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nETag: \"one\"\r\nContent-Length: {}\r\n\r\n",
                page.len()
            );
            Said { bytes: [head, page].concat().into_bytes(), close: false }
        }
        _ => missing(),
    });
    let folder = tempfile::tempdir().unwrap();
    let archive = web::archive(folder.path());
    crawl(&archive, at(here));
    assert_eq!(paths(&archive), set(&["/"]));
    let (_, events) = crawl(&archive, Settings { scope: Reach::All, ..at(here) });
    let unchanged = |event: &Event| matches!(event, Event::Visited { outcome, .. } if outcome == "304");
    assert!(events.iter().any(unchanged));
    assert_eq!(paths(&archive), set(&["/", "/3", "/4"]));
}

#[test]
fn what_the_gate_refused_is_fetched_when_it_is_opened() {
    let (folder, address) = (tempfile::tempdir().unwrap(), start(chain));
    let archive = web::archive(folder.path());
    let (ending, _) = crawl(&archive, Settings { allow_private: false, ..at(address) });
    assert_eq!((ending, paths(&archive)), (Ending::Finished, set(&[])));
    crawl(&archive, at(address));
    assert_eq!(paths(&archive).len(), 5);
}

fn bounded(address: SocketAddr, pages: u64) -> Settings {
    let section = SiteSettings { pages: Some(pages), ..SiteSettings::default() };
    Settings { site: [(address.ip().to_string(), section)].into(), ..at(address) }
}

#[test]
fn the_budget_of_a_site_is_that_of_a_pass_and_nothing_is_forgotten_when_it_is_spent() {
    let (folder, address) = (tempfile::tempdir().unwrap(), start(chain));
    let archive = web::archive(folder.path());
    let (ending, _) = crawl(&archive, bounded(address, 2));
    assert_eq!((ending, paths(&archive)), (Ending::Finished, set(&["/", "/1"])));
    let question = Question::Why { url: format!("http://{address}/2"), name: None };
    assert_eq!(answer_question(&archive, &question).unwrap()[0]["fate"], "budget");
    let (ending, _) = crawl(&archive, bounded(address, 4));
    assert_eq!(ending, Ending::Finished);
    assert!(paths(&archive).len() > 2, "the next pass goes on with what waited: {:?}", paths(&archive));
    crawl(&archive, at(address));
    assert_eq!(paths(&archive), set(&["/", "/1", "/2", "/3", "/4"]));
}

#[test]
fn two_hosts_of_a_site_share_its_budget() {
    let (one, other) = (start(chain), start(chain));
    let folder = tempfile::tempdir().unwrap();
    let archive = web::archive(folder.path());
    let seeds = [one, other].map(|address| format!("http://{address}/")).to_vec();
    crawl(&archive, Settings { seeds, ..bounded(one, 3) });
    assert_eq!(web::captures(&archive).len(), 3);
}

#[test]
fn bytes_are_counted_over_all_runs_of_a_pass() {
    let (folder, address) = (tempfile::tempdir().unwrap(), start(chain));
    let archive = web::archive(folder.path());
    let tight = Settings { bytes: Some(1), ..at(address) };
    assert_eq!(crawl(&archive, tight.clone()).0, Ending::Budget("bytes"));
    let kept = web::captures(&archive).len();
    let (ending, events) = crawl(&archive, tight);
    assert_eq!((ending, web::captures(&archive).len()), (Ending::Budget("bytes"), kept));
    assert!(!events.iter().any(|event| matches!(event, Event::Visited { .. })), "nothing more is asked for");
    assert_eq!(crawl(&archive, at(address)).0, Ending::Finished);
}

#[test]
fn a_crawl_without_a_way_out_waits_says_so_and_ends() {
    let folder = tempfile::tempdir().unwrap();
    let archive = web::archive(folder.path());
    let mut fetch = skep_fetch::Settings::new("skep/0 (test)");
    fetch.proxy = Some("http://127.0.0.1:1".parse().unwrap());
    let (ending, events) = web::crawl(&archive, settings("http://bees.test/".into()), fetch, 1);
    assert!(matches!(ending, Ending::Offline(_)), "{ending:?}");
    let told = |event: &Event| matches!(event, Event::Paused { why, .. } if why.contains("proxy"));
    assert!(events.iter().any(told));
}

#[test]
fn what_comes_is_held_against_the_types_that_are_wanted() {
    let file = |mime: &str, body: &str| {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {mime}\r\nContent-Length: {}\r\n\r\n", body.len());
        Said { bytes: [head, body.to_owned()].concat().into_bytes(), close: false }
    };
    let address = start(move |path| match path {
        "/" => index(["/page", "/paper", "/script", "/notes.txt"].map(str::to_owned)),
        "/page" => index([]),
        "/paper" => file("application/pdf", &format!("%PDF-1.4{}", "x".repeat(4 << 20))),
        // Nobody hears of what it leads to.
        "/script" => file("text/css", "@import url(/style.css); a { background: url(/picture) }"),
        _ => file("text/plain", "some notes"),
    });
    let folder = tempfile::tempdir().unwrap();
    let archive = web::archive(folder.path());
    let only = Settings { types: vec![Type::Html], ..at(address) };
    let (ending, events) = crawl(&archive, only);
    assert_eq!((ending, paths(&archive)), (Ending::Finished, set(&["/", "/page"])));
    let refused =
        events.iter().filter(|event| matches!(event, Event::Visited { outcome, .. } if outcome == "type-refused"));
    assert_eq!(refused.count(), 2, "{events:?}");
    let fetched = events.iter().map(|event| if let Event::Visited { bytes, .. } = event { *bytes } else { 0 });
    assert!(fetched.sum::<u64>() < 256 << 10, "what is not wanted is not fetched: {events:?}");
    let question = Question::Why { url: format!("http://{address}/paper"), name: None };
    let told = answer_question(&archive, &question).unwrap();
    assert!(told[0]["because"].as_str().is_some_and(|because| because.contains("--types")), "{told:?}");
}
