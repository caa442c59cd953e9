//! A site whose history is known, commit by commit: what the stream of changes tells after each pass is what the commit did.

#[path = "../src/watch/judged.rs"]
mod judged;

use judged::Judged;
use skep_archive::{Archive, OpenOptions};
use skep_changes::{Changes, Filter, From};
use skep_crawl::{Control, Ending, Run, Settings, Speed, run};
use skep_page::Input;
use skep_page::compare::{Class, Classes};
use skep_schedule::retry::Patience;
use skep_testweb::{Clock, HostPlan, Plan, Policy, Settings as WebSettings, Time, Web, World};
use skep_url::Url;
use skep_warc::http::{Head, Parsed};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

const HOST: &str = "past.test";
const HOME: &str = "http://past.test/";
/// Everything but that host: asking for names of 1996 takes longer than all the rest, and says nothing about the site.
const ELSEWHERE: &str = "~ ^https?://(?:[^p]|p[^a]|pa[^s]|pas[^t]|past[^.])";

/// What happened to a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Did {
    New,
    Changed,
    Gone,
    Returned,
}

/// What was there when it was last looked at.
#[derive(Default)]
struct Truth {
    /// The digest of the last good copy, and whether the page is there now.
    pages: BTreeMap<String, (String, bool)>,
}

impl Truth {
    /// What a commit did to pages that can be reached from the start page, or from those that once could.
    fn step(&mut self, web: &Web) -> BTreeSet<(Did, String)> {
        let urls = reachable(web, self.pages.keys().cloned());
        let mut did = BTreeSet::new();
        for url in urls.into_iter().filter(|url| !url.ends_with("/robots.txt")) {
            let now = web.world().entry(&url, web.now()).expect("a host").expect("an entry");
            let before = self.pages.get_mut(&url);
            match (before, now.status) {
                (None, 200) => {
                    self.pages.insert(url.clone(), (now.digest, true));
                    did.insert((Did::New, url));
                }
                (Some((digest, there)), 200) => {
                    if !std::mem::replace(there, true) {
                        did.insert((Did::Returned, url));
                    } else if *digest != now.digest {
                        did.insert((Did::Changed, url));
                    }
                    *digest = now.digest;
                }
                (Some((_, there)), _) if *there => {
                    *there = false;
                    did.insert((Did::Gone, url));
                }
                _ => {}
            }
        }
        did
    }
}

/// What can be reached now from the start page and from pages that are known, by asking for it as anybody would.
fn reachable(web: &Web, known: impl Iterator<Item = String>) -> BTreeSet<String> {
    let address = web.map().hosts[0].resolve[0].rsplit('=').next().expect("an address").to_owned();
    let mut seen: BTreeSet<String> = known.chain([HOME.to_owned()]).collect();
    let mut waiting: Vec<String> = seen.iter().cloned().collect();
    while let Some(url) = waiting.pop() {
        let parsed = Url::parse(&url).expect("a URL");
        let mut stream = std::net::TcpStream::connect(&address).expect("somebody listens");
        let target = parsed.request_target();
        write!(stream, "GET {target} HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n").expect("it is sent");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("an answer");
        let mut head = Head::new();
        let Parsed::Complete { body } = head.parse_response(&answer, true) else { panic!("{url}: no answer") };
        let page = skep_page::read(&Input { url: &parsed, head: Some(&head), body: &answer[body..] });
        for link in page.links {
            if link.url.starts_with(HOME) && seen.insert(link.url.clone()) {
                waiting.push(link.url);
            }
        }
    }
    seen
}

/// What an event says about its page.
fn told(classes: Classes) -> Option<Did> {
    [(Class::New, Did::New), (Class::Gone, Did::Gone), (Class::Returned, Did::Returned)]
        .into_iter()
        .find(|(class, _)| classes.contains(*class))
        .map(|(_, did)| did)
        .or((!classes.is_empty() && !classes.contains(Class::Suspect)).then_some(Did::Changed))
}

/// Looks after which a page that lost nearly all of its text is believed to be what it is: until then it may be a wall in front of it.
const BELIEVED: usize = 3;

/// Right, told but wrong, not told.
#[derive(Default)]
struct Score {
    counts: BTreeMap<Did, [u64; 3]>,
    silent: u64,
    /// Pages that lost nearly all of their text, and since which commit that was told as a doubt.
    doubted: BTreeMap<String, usize>,
    believed: u64,
    wrong: Vec<String>,
}

impl Score {
    /// A change that was told as a doubt is due when the doubt ends.
    fn settle(
        &mut self,
        commit: usize,
        truth: &mut BTreeSet<(Did, String)>,
        told: &BTreeSet<(Did, String)>,
        doubts: BTreeSet<String>,
    ) {
        self.doubted.retain(|url, since| {
            let change = (Did::Changed, url.clone());
            let ends = commit >= *since + BELIEVED - 1 || told.contains(&change) || truth.contains(&change);
            if ends {
                self.believed += u64::from(told.contains(&change));
                truth.insert(change);
            }
            !ends
        });
        self.doubted.extend(
            doubts.into_iter().filter(|url| truth.remove(&(Did::Changed, url.clone()))).map(|url| (url, commit)),
        );
    }

    fn add(&mut self, commit: usize, truth: &BTreeSet<(Did, String)>, told: &BTreeSet<(Did, String)>) {
        for (did, url) in truth.union(told) {
            let place = match (truth.contains(&(*did, url.clone())), told.contains(&(*did, url.clone()))) {
                (true, true) => 0,
                (false, _) => 1,
                (_, false) => 2,
            };
            self.counts.entry(*did).or_default()[place] += 1;
            if place > 0 {
                self.wrong.push(format!("commit {commit}: {} {did:?} {url}", ["", "told", "not told"][place]));
            }
        }
    }

    fn print(&self, commits: usize) {
        eprintln!("{commits} commits      right     wrong  not told  precision    recall");
        for (did, [right, wrong, missed]) in &self.counts {
            let share = |part: u64, of: u64| if of == 0 { 1.0 } else { part as f64 / of as f64 };
            eprintln!(
                "{:<14}{right:>9}{wrong:>10}{missed:>10}{:>11.4}{:>10.4}",
                format!("{did:?}"),
                share(*right, right + wrong),
                share(*right, right + missed)
            );
        }
        eprintln!("{} of the changes are told only when noise is asked for", self.silent);
        eprintln!("{} were told as a doubt first: pages that lost nearly all of their text", self.believed);
    }
}

/// Makes a pass at each of the first commits, and compares.
fn follow(repository: &Path, commits_max: usize) -> Score {
    let history = skep_testweb::History::open(repository, None).expect("a history");
    let mut moments: Vec<Time> = history.commits().to_vec();
    // Commits of one moment are one to whoever looks.
    moments.dedup();
    moments.truncate(commits_max);
    drop(history);
    let plan = Plan::new(1).host(HostPlan::history(HOST, repository));
    let settings =
        WebSettings { clock: Some(Clock::still(moments[0])), policy: Policy::default(), ..WebSettings::default() };
    let web = Web::start(World::build(plan).expect("a world"), settings).expect("a web");
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir_all(folder.path().join("settings")).expect("a folder");
    std::fs::write(folder.path().join("settings/changes.toml"), "version = 1\ndeath = \"at-once\"\n")
        .expect("settings");
    let archive = Arc::new(Archive::open(folder.path(), OpenOptions::create()).expect("an archive"));
    let (changes, mut truth, mut score) = (Changes::default(), Truth::default(), Score::default());
    let mut from = From::Start;
    for (number, moment) in moments.iter().enumerate() {
        web.set_clock(Some(*moment), None);
        pass(&archive, &web);
        changes.follow(&archive, skep_archive::system_clock(), &mut |_| ()).expect("the stream follows");
        let (mut events, mut doubts) = (BTreeSet::new(), BTreeSet::new());
        let filter = Filter { classes: Some(Class::ALL.iter().copied().collect()), ..Filter::default() };
        let cursor = changes.read(&archive, &from, &filter, |_, event| {
            if let Some(did) = told(event.classes).filter(|_| !event.url.ends_with("/robots.txt")) {
                score.silent += u64::from(event.classes.is_silent());
                events.insert((did, event.url.to_owned()));
            } else if event.classes.contains(Class::Suspect) {
                doubts.insert(event.url.to_owned());
            }
            ControlFlow::Continue(())
        });
        from = From::After(cursor.expect("events"));
        let mut did = truth.step(&web);
        score.settle(number + 1, &mut did, &events, doubts);
        score.add(number + 1, &did, &events);
    }
    score.print(moments.len());
    score
}

fn pass(archive: &Arc<Archive>, web: &Web) {
    let mut fetch = skep_fetch::Settings::new("skep/0 (test)");
    fetch.allow_private = true;
    let resolve = web.map().hosts.iter().flat_map(|place| &place.resolve);
    fetch.resolve = resolve.map(|resolve| resolve.parse().expect("an override")).collect();
    let settings = Settings {
        name: "history".into(),
        seeds: vec![HOME.into()],
        exclude: vec![ELSEWHERE.into()],
        own: vec![HOST.into()],
        pace: Speed::None,
        ..Settings::default()
    };
    let patience = Patience { scale_permille: 1, failures_max: 1 };
    let run_of = Run {
        settings,
        fetch,
        cookies: Default::default(),
        workers: 1,
        patience,
        watch: false,
        judges: Some(Arc::new(Judged::new(archive.clone()))),
        others: None,
        share: None,
    };
    assert_eq!(run(archive, run_of, &Control::default(), &mut |_| ()).expect("a pass"), Ending::Finished);
}

fn git(folder: &Path, date: &str, arguments: &[&str]) {
    let output = Command::new("git")
        .args(["-c", "user.name=Tester", "-c", "user.email=tester@a.test", "-c", "commit.gpgSign=false"])
        .args(arguments)
        .current_dir(folder)
        .envs([("GIT_AUTHOR_DATE", date), ("GIT_COMMITTER_DATE", date), ("GIT_CONFIG_GLOBAL", "/dev/null")])
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env_remove("GIT_DIR")
        .output()
        .expect("git starts");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn commit(folder: &Path, day: u32, files: &[(&str, &str)]) {
    for (name, body) in files {
        match body.is_empty() {
            true => std::fs::remove_file(folder.join(name)).expect("a file"),
            false => std::fs::write(folder.join(name), body).expect("a file"),
        }
    }
    let date = format!("2001-01-{day:02}T12:00:00Z");
    git(folder, &date, &["add", "--all"]);
    git(folder, &date, &["commit", "--quiet", "--message", "x"]);
}

#[test]
fn a_small_history_is_told_as_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path();
    let page = |text: &str| {
        format!("<!DOCTYPE html><title>t</title><p>{text}</p><a href=\"a.html\">a</a> <a href=\"b.html\">b</a>")
    };
    git(root, "", &["init", "--quiet", "--initial-branch=main"]);
    commit(root, 1, &[("index.html", &page("The first page of the valley")), ("a.html", &page("About the bees"))]);
    commit(root, 2, &[("b.html", &page("A page that was linked before it was there"))]);
    commit(root, 3, &[("a.html", &page("About the bumble bees")), ("alone.html", "nobody links to it")]);
    commit(root, 4, &[("b.html", "")]);
    commit(root, 5, &[("a.html", &page("About the bees"))]);
    commit(root, 6, &[("b.html", &page("It is there again, and says something else"))]);
    commit(root, 7, &[("index.html", &page("The first page of the valley").replace("<p>", "<p class=\"wide\">"))]);
    // It may be a wall in front of the page, until it is there for the third time.
    let long: String = (0..200).map(|n| format!("word{n} ")).collect();
    commit(root, 8, &[("a.html", &page(&long))]);
    commit(root, 9, &[("a.html", "<!DOCTYPE html><title>t</title><p>Out of date")]);
    (10..13).for_each(|day| commit(root, day, &[("alone.html", &day.to_string())]));
    let score = follow(root, usize::MAX);
    assert!(score.wrong.is_empty(), "{:#?}", score.wrong);
    let right = |did: Did| score.counts[&did][0];
    assert_eq!([Did::New, Did::Changed, Did::Gone, Did::Returned].map(right), [3, 5, 1, 1]);
    assert_eq!(score.believed, 1);
    assert_eq!(score.silent, 1, "markup alone is noise");
}

/// Commits of the real history; `cargo xtask soak history` takes all of them.
const COMMITS: usize = 300;

#[test]
fn a_real_history_is_told_as_it_was() {
    let Some(corpora) = std::env::var_os("SKEP_CORPORA") else {
        eprintln!("corpus tests not run: SKEP_CORPORA is not set");
        return;
    };
    let bundle = Path::new(&corpora).join("sites/openbsd-www-1996-2001.bundle");
    assert!(bundle.is_file(), "{} is missing", bundle.display());
    let commits = std::env::var("SKEP_HISTORY_COMMITS").ok().and_then(|text| text.parse().ok()).unwrap_or(COMMITS);
    let score = follow(&bundle, commits);
    assert!(
        score.wrong.is_empty(),
        "{} wrong, such as {:#?}",
        score.wrong.len(),
        &score.wrong[..score.wrong.len().min(20)]
    );
    let changed = score.counts[&Did::Changed][0];
    assert!(changed > 100);
    // 52 of 479 when this was written: a stream that took everything for noise would tell as much to who asks for noise.
    assert!(commits != COMMITS || score.silent <= changed / 8, "{} of {changed} are silent", score.silent);
}
