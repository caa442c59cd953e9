//! Two nodes crawl one web: each fetches what it leads, links go to whoever leads there, and a slice changes hands on the way.

mod web;

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use skep_archive::{Archive, OpenOptions, Taking};
use skep_crawl::heard::{Batch, Heard as HeardOf, Put};
use skep_crawl::records::Encoders;
use skep_crawl::sharing::{Back, Leading, Link, Node, Outlet, Politeness, Referrer, Share, share};
use skep_crawl::{Control, Ending, Event, Progress, Question, Reach, Run, Settings, SiteSettings, Watch, run};
use skep_schedule::retry::Patience;
use skep_testweb::{Mix, Plan, Policy, Report, Web, World};

const BITS: u8 = 3;
const SLICES: u32 = 1 << BITS;
/// Longer than any of these tests.
const LONG: Duration = Duration::from_secs(3_600);

fn start(plan: Plan) -> Web {
    let in_flight_max = u32::from(skep_schedule::limits::ADDRESS_IN_FLIGHT_MAX);
    let policy = Policy { agent: Some("skep".into()), in_flight_max, ..Policy::polite() };
    let settings = skep_testweb::Settings { policy, ..skep_testweb::Settings::default() };
    Web::start(World::build(plan).expect("a world"), settings).expect("a web")
}

fn plan() -> Plan {
    let mix = Mix {
        hosts: 10,
        sites: 10,
        addresses: 10,
        pages: 5,
        https_permille: 0,
        robots: false,
        changing: false,
        troubled: false,
    };
    Plan::mixed(11, &mix)
}

/// One seed, and everything that links lead to.
fn settings(web: &Web) -> Settings {
    let seeds = vec![web.map().hosts[0].url.clone()];
    Settings { seeds, scope: Reach::All, ..web::polite(web) }
}

/// What one node alone captures, of the same web served elsewhere.
fn alone() -> BTreeSet<String> {
    let web = start(plan());
    let folder = tempfile::tempdir().unwrap();
    let archive = web::archive(folder.path());
    let hurried = Settings { seeds: settings(&web).seeds, scope: Reach::All, ..web::hurried(&web) };
    let (ending, _) = web::crawl(&archive, hurried, web::fetch(&web), 1_000);
    assert_eq!(ending, Ending::Finished);
    web::captures(&archive).into_keys().collect()
}

fn archive(folder: &Path) -> Arc<Archive> {
    let options = OpenOptions { copies: true, bits: BITS, ..OpenOptions::create() };
    let archive = Archive::open(folder, options).expect("an archive");
    share(&archive.layout().settings(), [5; 32], BITS).expect("a network");
    Arc::new(archive)
}

/// The network between nodes of one process.
#[derive(Default)]
struct Net {
    controls: Vec<Control>,
    leaders: Mutex<BTreeMap<u32, usize>>,
    polite: Mutex<BTreeMap<u32, (u64, Vec<u8>)>>,
    told: Condvar,
    sent: Mutex<Vec<Link>>,
}

impl Net {
    fn new(nodes: usize) -> Arc<Net> {
        Arc::new(Net { controls: (0..nodes).map(|_| Control::default()).collect(), ..Net::default() })
    }

    fn lead(&self, node: usize, slice: u32, politeness: Vec<u8>) {
        self.leaders.lock().unwrap().insert(slice, node);
        assert!(self.controls[node].lead(slice, Instant::now() + LONG, Some(vec![politeness])));
    }

    /// Takes a slice from a node, and waits until it has said how long its sites are to be left alone.
    fn take(&self, node: usize, slice: u32) -> Vec<u8> {
        let count = |polite: &BTreeMap<u32, (u64, Vec<u8>)>| polite.get(&slice).map_or(0, |(count, _)| *count);
        let mut polite = self.polite.lock().unwrap();
        let before = count(&polite);
        self.leaders.lock().unwrap().remove(&slice);
        assert!(self.controls[node].stop_leading(slice));
        while count(&polite) == before {
            polite = self.told.wait(polite).unwrap();
        }
        polite[&slice].1.clone()
    }
}

struct Way(Arc<Net>);

impl Outlet for Way {
    fn give_up(&self, slice: u32) {
        panic!("slice {slice} can be read");
    }

    fn leader(&self, slice: u32) -> Option<Node> {
        self.0.leaders.lock().unwrap().get(&slice).map(|node| [*node as u8 + 1; 32])
    }

    fn send(&self, crawl: &str, to: Node, links: Vec<Link>, back: Back) {
        assert_eq!(crawl, "test");
        self.0.sent.lock().unwrap().extend(links.iter().cloned());
        self.0.controls[usize::from(to[0]) - 1].hear(links, back);
    }

    fn polite(&self, slice: u32, politeness: Vec<u8>, out: bool) {
        assert!(Politeness::decode(&politeness).is_some());
        let mut polite = self.0.polite.lock().unwrap();
        let told = polite.entry(slice).or_default();
        *told = (told.0 + u64::from(!out), politeness);
        self.0.told.notify_all();
    }
}

/// All nodes stop when it is dropped, also where a test fails.
struct Stops<'n>(&'n Net);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.controls.iter().for_each(Control::stop);
    }
}

type Heard = (usize, Event);

/// Runs a node until it is stopped.
fn node(number: usize, archive: &Arc<Archive>, web: &Web, watch: Option<Watch>, net: &Arc<Net>, say: Sender<Heard>) {
    let share = Share { leading: Arc::new(Leading::new(BITS)), outlet: Arc::new(Way(net.clone())) };
    let run_of = Run {
        settings: Settings { watch: watch.clone(), ..settings(web) },
        fetch: web::fetch(web),
        cookies: Default::default(),
        workers: 1,
        patience: Default::default(),
        watch: watch.is_some(),
        judges: None,
        others: None,
        share: Some(share),
    };
    let ending = run(archive, run_of, &net.controls[number], &mut |event| {
        let _main_ended = say.send((number, event));
    });
    assert_eq!(ending.expect("a crawl"), Ending::Stopped);
}

/// What both said, as far as tests ask for it.
struct Ears {
    heard: Receiver<Heard>,
    visits: BTreeMap<String, u32>,
    quiet: BTreeSet<usize>,
}

impl Ears {
    fn next(&mut self) -> Heard {
        let (node, event) = self.heard.recv_timeout(Duration::from_secs(120)).expect("something happens");
        match &event {
            Event::Visited { url, .. } if !url.ends_with("/robots.txt") => {
                *self.visits.entry(url.clone()).or_default() += 1;
            }
            Event::Progress(Progress { waiting: 0, out: 0, unsent: 0, .. }) => {
                self.quiet.insert(node);
            }
            Event::Progress(_) => {
                self.quiet.remove(&node);
            }
            _ => {}
        }
        (node, event)
    }

    fn begun(&mut self, nodes: usize) {
        let mut begun = BTreeSet::new();
        while begun.len() < nodes {
            if let (node, Event::Began { .. }) = self.next() {
                begun.insert(node);
            }
        }
    }

    /// Until so many pages were visited.
    fn visits(&mut self, count: usize) {
        while self.visits.len() < count {
            self.next();
        }
    }

    /// Until all of this was visited and nobody has anything left to do.
    fn done(&mut self, expected: &BTreeSet<String>, nodes: usize) {
        while !expected.iter().all(|url| self.visits.contains_key(url)) {
            self.next();
        }
        self.quiet.clear();
        while self.quiet.len() < nodes {
            self.next();
        }
    }
}

/// Two nodes with their archives; returns what they captured and what the auditor says.
fn together(play: impl FnOnce(&Net, &mut Ears, [&Archive; 2])) -> ([BTreeMap<String, usize>; 2], Report, Arc<Net>) {
    together_as(None, play)
}

fn together_as(
    watch: Option<Watch>,
    play: impl FnOnce(&Net, &mut Ears, [&Archive; 2]),
) -> ([BTreeMap<String, usize>; 2], Report, Arc<Net>) {
    let web = start(plan());
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let archives = folders.each_ref().map(|folder| archive(folder.path()));
    let net = Net::new(2);
    let (say, heard) = channel();
    let mut ears = Ears { heard, visits: BTreeMap::new(), quiet: BTreeSet::new() };
    std::thread::scope(|scope| {
        for (number, archive) in archives.iter().enumerate() {
            let (web, watch, net, say) = (&web, watch.clone(), &net, say.clone());
            scope.spawn(move || node(number, archive, web, watch, net, say));
        }
        ears.begun(2);
        let _stops = Stops(&net);
        play(&net, &mut ears, archives.each_ref().map(|archive| &**archive));
    });
    let captured = archives.each_ref().map(|archive| {
        web::is_sound(archive);
        let own = archive.writer();
        let captures = web::captures(archive).into_iter();
        let own = captures.map(|(url, all)| (url, all.iter().filter(|it| it.position.writer == own).count()));
        own.filter(|(_, count)| *count > 0).collect()
    });
    (captured, web.report(), net)
}

/// Brings what one archive has of another's segments up to date.
fn copy(from: &Archive, to: &Archive) {
    from.settle().unwrap();
    for held in from.held(0, u32::MAX).unwrap() {
        if held.name.id.writer == to.writer() {
            continue;
        }
        let mut at = to.copied(held.name, Taking::Tail).unwrap();
        while let Some(piece) = from.piece(held.name, at, 1 << 20).unwrap() {
            let mut bytes = vec![0; piece.length() as usize];
            from.piece_file(&piece).unwrap().read_exact_at(&mut bytes, piece.from).unwrap();
            let mut copying = to.copy(piece, Taking::Tail).unwrap();
            copying.write(&bytes).unwrap();
            at = copying.finish().unwrap().bytes;
        }
    }
}

#[test]
fn two_nodes_fetch_what_one_does_and_each_page_once() {
    let expected = alone();
    let sites: BTreeSet<&str> = expected.iter().filter_map(|url| url.split('/').nth(2)).collect();
    assert!(sites.len() >= 8 && expected.len() > 40, "{} pages of {} sites", expected.len(), sites.len());
    let ([a, b], report, net) = together(|net, ears, _| {
        (0..SLICES).for_each(|slice| net.lead(slice as usize % 2, slice, Vec::new()));
        ears.done(&expected, 2);
    });
    let union: BTreeSet<String> = a.keys().chain(b.keys()).cloned().collect();
    assert_eq!(union, expected);
    assert!(a.len() > 10 && b.len() > 10, "{} and {}", a.len(), b.len());
    for (url, count) in a.iter().chain(&b) {
        assert_eq!((*count, a.contains_key(url) && b.contains_key(url)), (1, false), "{url}");
    }
    assert!(report.polite(), "{}", report.table());
    let sent = net.sent.lock().unwrap();
    let mut once: Vec<&Link> = sent.iter().collect();
    once.sort();
    once.dedup_by_key(|link| &link.url);
    assert!(!once.is_empty() && once.len() == sent.len(), "a link is sent once to the other node");
}

/// Brings links to a node, and waits until they are safe there.
fn bring(control: &Control, links: Vec<Link>) {
    let (say, heard) = channel();
    control.hear(links, Box::new(move |safe| say.send(safe).unwrap()));
    assert!(heard.recv_timeout(Duration::from_secs(60)).unwrap());
}

#[test]
fn which_sites_link_to_a_page_is_known_where_it_is_led_and_what_went_counts_no_more() {
    let expected = alone();
    let watch = Watch { every_ms: Some(LONG.as_millis() as u64), ..Watch::default() };
    let (_, _, net) = together_as(Some(watch), |net, ears, _| {
        (0..SLICES).for_each(|slice| net.lead(slice as usize % 2, slice, Vec::new()));
        ears.done(&expected, 2);
        let leading = Leading::new(BITS);
        let slice_of = |url: &str| leading.slice_of(&skep_url::Url::parse(url).unwrap());
        let url = expected.iter().find(|url| slice_of(url) % 2 == 1).expect("a page of the second node");
        let sites = || {
            let asked = net.controls[1].ask(&Question::Schedule { what: url.clone() }).unwrap().unwrap();
            asked[0]["referring_sites"].as_u64().unwrap()
        };
        let all = |gone: bool| -> Vec<Link> {
            (0..24).map(|bit| Link { site: Referrer::from_bit(bit), gone, ..Link::to(url, 3) }).collect()
        };
        bring(&net.controls[1], all(false));
        assert!(sites() >= 24, "{}", sites());
        bring(&net.controls[1], all(true));
        assert_eq!(sites(), 0);
        // What is not known there cannot go, and is not known by that.
        let never = format!("{url}/never");
        bring(&net.controls[1], vec![Link { site: Referrer::from_bit(1), gone: true, ..Link::to(&never, 3) }]);
        let why = net.controls[1].ask(&Question::Why { url: never, name: None }).unwrap().unwrap();
        assert_eq!(why[0]["fate"], "unknown", "{why:?}");
    });
    let sent = net.sent.lock().unwrap();
    assert!(sent.iter().any(|link| link.site.is_some()), "links tell of their sites");
}

#[test]
fn a_slice_that_changes_hands_loses_nothing_and_hurries_nobody() {
    let expected = alone();
    let ([a, b], report, _) = together(|net, ears, [first, second]| {
        (0..SLICES).for_each(|slice| net.lead(0, slice, Vec::new()));
        ears.visits(expected.len() / 3);
        // All odd slices go over, with all that was written of them.
        for slice in (1..SLICES).step_by(2) {
            let politeness = net.take(0, slice);
            copy(first, second);
            net.lead(1, slice, politeness);
        }
        ears.visits(expected.len() / 2);
        // And one of them back, with what the other wrote.
        let politeness = net.take(1, 1);
        copy(second, first);
        net.lead(0, 1, politeness);
        ears.done(&expected, 2);
    });
    let union: BTreeSet<String> = a.keys().chain(b.keys()).cloned().collect();
    assert_eq!(union, expected);
    assert!(!b.is_empty());
    // What was in flight when a slice was taken may have been fetched by both: one page of a site at most.
    let twice: Vec<&String> = a.keys().filter(|url| b.contains_key(*url)).collect();
    let sites: BTreeSet<&str> = twice.iter().filter_map(|url| url.split('/').nth(2)).collect();
    assert_eq!(sites.len(), twice.len(), "{twice:?}");
    assert!(report.polite(), "{}", report.table());
}

#[test]
fn nothing_is_fetched_without_a_lease_or_after_it() {
    let ([a, b], report, _) = together(|net, ears, _| {
        let until = Instant::now() + Duration::from_secs(2);
        for slice in 0..SLICES {
            net.leaders.lock().unwrap().insert(slice, 0);
            assert!(net.controls[0].lead(slice, until, Some(Vec::new())));
        }
        ears.visits(3);
        // Progress is told every second: the fifth after the lease has run out has seen whatever was still under way, and more.
        let mut after = 0;
        while after < 5 {
            if let (0, Event::Progress(progress)) = ears.next() {
                after += u32::from(Instant::now() > until && progress.out == 0);
            }
        }
    });
    assert!(a.len() >= 3 && b.is_empty(), "{a:?} {b:?}");
    // Half a second between two requests: whoever went on after the lease had time for more than twice as many.
    let most = report.sites.values().map(|visits| visits.requests).max();
    assert!(most <= Some(5), "{}", report.table());
    assert!(report.polite(), "{}", report.table());
}

/// URLs of one site that are heard of together.
const HEARD_OF_SITE: u64 = 1_000;

fn library(site: u64) -> String {
    format!("library-{site}.test")
}

fn book(site: u64, number: u64) -> String {
    format!("http://{}/shelf-{}/book-{number}.html", library(site), number % 20)
}

/// Writes down what a leader heard of: so many URLs, in all slices.
fn hear_of(archive: &Archive, sites: u64) {
    let level = skep_warc::deflate::Level::new(1);
    let mut encoders = Encoders::new(level, archive.layout().root().to_path_buf());
    let mut pending = Vec::new();
    for site in 0..sites {
        let mut batch = Batch::new("test");
        for number in 0..HEARD_OF_SITE {
            let url = book(site, number);
            let heard = HeardOf { url: &url, depth: 1, class: "link", source: None };
            assert_eq!(batch.put(&heard), Put::Taken);
        }
        let mut id = [7; 16];
        id[..8].copy_from_slice(&site.to_le_bytes());
        let hash = skep_url::Url::parse(&book(site, 0)).unwrap().key().site_hash();
        let append = encoders.heard(hash, skep_archive::system_clock(), batch.finish(), id).expect("a record");
        pending.push(archive.append(append).expect("it is open"));
        if pending.len() == 64 {
            pending.drain(..).for_each(|one| drop(one.wait().expect("it is synced")));
        }
    }
    pending.into_iter().for_each(|one| drop(one.wait().expect("it is synced")));
}

/// `cargo xtask soak restart` asks for a million, and for how soon.
#[test]
fn who_comes_to_lead_soon_knows_what_others_wrote() {
    let number = |name: &str| std::env::var(name).ok().map(|value| value.parse::<u64>().expect("a number"));
    let sites = number("SKEP_TAKE_OVER_URLS").unwrap_or(20_000).div_ceil(HEARD_OF_SITE);
    let (folders, urls) = ([tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()], sites * HEARD_OF_SITE);
    let [first, second] = folders.each_ref().map(|folder| archive(folder.path()));
    hear_of(&first, sites);
    copy(&first, &second);
    drop(first);

    let (net, leading) = (Net::new(1), Arc::new(Leading::new(BITS)));
    // Nothing is fetched: what is known waits.
    let paused = |site| (library(site), SiteSettings { pause: true, ..SiteSettings::default() });
    let settings = Settings {
        name: "test".into(),
        seeds: vec![book(0, 0)],
        scope: Reach::All,
        site: (0..sites).map(paused).collect(),
        ..Settings::default()
    };
    let mut fetch = skep_fetch::Settings::new("skep/0 (test)");
    fetch.proxy = Some("http://127.0.0.1:1".parse().unwrap());
    let run_of = Run {
        settings,
        fetch,
        cookies: Default::default(),
        workers: 1,
        patience: Default::default(),
        watch: false,
        judges: None,
        others: None,
        share: Some(Share { leading: leading.clone(), outlet: Arc::new(Way(net.clone())) }),
    };
    let (say, heard) = channel();
    let next = || heard.recv_timeout(Duration::from_secs(120)).expect("something happens");
    std::thread::scope(|scope| {
        let (second, control) = (&second, &net.controls[0]);
        scope.spawn(move || {
            let ending = run(second, run_of, control, &mut |event| {
                let _main_ended = say.send(event);
            });
            assert_eq!(ending.expect("a crawl"), Ending::Stopped);
        });
        let _stops = Stops(&net);
        loop {
            if let Event::Began { known, .. } = next() {
                assert_eq!(known, 0, "what is not led is not folded");
                break;
            }
        }
        let begun = Instant::now();
        (0..SLICES).for_each(|slice| net.lead(0, slice, Vec::new()));
        // Answered when everything that was said before is done.
        let asked = Question::Why { url: book(sites - 1, HEARD_OF_SITE - 1), name: None };
        let why = net.controls[0].ask(&asked).expect("it runs").expect("an answer");
        assert_ne!(why[0]["fate"], "unknown", "{why:?}");
        assert!((0..SLICES).all(|slice| leading.may(slice)), "{:?}", leading.slices());
        while !matches!(next(), Event::Progress(Progress { known, .. }) if known == urls) {}
        let took = begun.elapsed();
        eprintln!("{urls} URLs that others wrote of are known and led after {:.1} s", took.as_secs_f64());
        if let Some(seconds) = number("SKEP_TAKE_OVER_SECONDS") {
            assert!(took < Duration::from_secs(seconds), "{took:?}; {seconds} s are allowed");
        }
    });
}

/// A site is to be left alone for as long as any of these tests.
fn left_alone(url: &str) -> Vec<u8> {
    let url = skep_url::Url::parse(url).unwrap();
    let site = url.site(&skep_url::Suffixes::compiled(), skep_url::Part::Whole).to_owned();
    let (made_ms, wait_ms) = (skep_archive::system_clock(), LONG.as_millis() as u32);
    Politeness { run: [9; 16], made_ms, waits: vec![(site, wait_ms)] }.encode()
}

#[test]
fn a_node_that_has_no_way_out_waits_for_one() {
    let folder = tempfile::tempdir().unwrap();
    let archive = archive(folder.path());
    let mut fetch = skep_fetch::Settings::new("skep/0 (test)");
    fetch.proxy = Some("http://127.0.0.1:1".parse().unwrap());
    let net = Net::new(1);
    let share = Share { leading: Arc::new(Leading::new(BITS)), outlet: Arc::new(Way(net.clone())) };
    let run_of = Run {
        settings: Settings { name: "test".into(), seeds: vec!["http://bees.test/".into()], ..Settings::default() },
        fetch,
        cookies: Default::default(),
        workers: 1,
        patience: Patience { scale_permille: 1, ..Patience::default() },
        watch: false,
        judges: None,
        others: None,
        share: Some(share),
    };
    // A crawl of its own would have ended by then.
    let mut after = None;
    let ending = run(&archive, run_of, &net.controls[0], &mut |event| match event {
        Event::Began { .. } => (0..SLICES).for_each(|slice| net.lead(0, slice, Vec::new())),
        Event::Paused { .. } => after = Some(0),
        Event::Progress(_) => {
            after = after.map(|told| told + 1);
            if after == Some(3) {
                net.controls[0].stop();
            }
        }
        _ => {}
    });
    assert_eq!(ending.expect("a crawl"), Ending::Stopped);
}

/// How often each page was looked at by each node.
type Looks = BTreeMap<(usize, String), u32>;

/// When a node knows that a page was looked at last.
fn last_look(control: &Control, url: &str) -> Option<i64> {
    let told = control.ask(&Question::Schedule { what: url.to_owned() }).unwrap().unwrap();
    skep_warc::date::parse_ms(told.first()?["last"].as_str()?.as_bytes())
}

#[test]
fn what_is_watched_together_is_looked_at_again_by_whoever_leads_it() {
    let expected = alone();
    let watch = Watch { every_ms: Some(6_000), ..Watch::default() };
    let leading = Leading::new(BITS);
    let slice_of = |url: &str| leading.slice_of(&skep_url::Url::parse(url).unwrap());
    let is_page = |url: &str| expected.contains(url) && url.ends_with(".html") && !url.contains("/missing/");
    let (_, report, _) = together_as(Some(watch), |net, ears, [first, second]| {
        // The pages in the order of their last looks.
        let (mut looks, mut order) = (Looks::new(), Vec::<String>::new());
        let mut hear = |ears: &mut Ears, so: &dyn Fn(&Looks) -> bool| {
            let end = Instant::now() + Duration::from_secs(60);
            while !so(&looks) {
                assert!(Instant::now() < end, "{looks:?}");
                if let (node, Event::Visited { url, .. }) = ears.next()
                    && is_page(&url)
                {
                    order.retain(|known| *known != url);
                    order.push(url.clone());
                    *looks.entry((node, url)).or_default() += 1;
                }
            }
            let odd = order.iter().rev().find(|url| slice_of(url) % 2 == 1);
            odd.expect("a page of an odd slice").clone()
        };
        let again = |looks: &Looks, node: usize| looks.iter().filter(|((by, _), n)| *by == node && **n >= 2).count();
        (0..SLICES).for_each(|slice| net.lead(0, slice, Vec::new()));
        let page = hear(ears, &|looks| again(looks, 0) >= 12);
        // Who comes to lead knows of the looks of who led before, and asks for nothing before its time.
        for slice in (1..SLICES).step_by(2) {
            let politeness = net.take(0, slice);
            copy(first, second);
            net.lead(1, slice, politeness);
        }
        let handed_ms = skep_archive::system_clock();
        until(ears, "known", |_| last_look(&net.controls[1], &page).is_some());
        assert!(last_look(&net.controls[1], &page) <= Some(handed_ms), "{page} was looked at once more");
        let page = hear(ears, &|looks| again(looks, 1) >= 4);
        // And back: what was seen meanwhile is known here, too, and what is due is looked at from here.
        let (slice, before) = (slice_of(&page), last_look(&net.controls[0], &page));
        let politeness = net.take(1, slice);
        copy(second, first);
        net.lead(0, slice, politeness);
        let handed_ms = skep_archive::system_clock();
        until(ears, "known", |_| last_look(&net.controls[0], &page) > before);
        assert!(last_look(&net.controls[0], &page) <= Some(handed_ms), "{page} was looked at once more");
        until(ears, "looked at", |_| last_look(&net.controls[0], &page) > Some(handed_ms));
        assert!(last_look(&net.controls[1], &page) <= Some(handed_ms), "both look at {page}");
    });
    assert!(report.polite(), "{}", report.table());
}

/// Hears until something is so.
fn until(ears: &mut Ears, what: &str, so: impl Fn(&Ears) -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !so(ears) {
        assert!(Instant::now() < end, "never {what}");
        ears.next();
    }
}

#[test]
fn what_comes_of_a_slice_while_it_is_led_is_known_there_and_told_to_others() {
    let expected = alone();
    let seed = format!("http://{}/", plan().hosts[0].name);
    assert!(expected.contains(&seed), "{expected:?}");
    let (heard, leading) = (format!("{seed}only-heard"), Leading::new(BITS));
    let slice = leading.slice_of(&skep_url::Url::parse(&seed).unwrap());
    let elsewhere = |link: &Link| leading.slice_of(&skep_url::Url::parse(&link.url).unwrap()) != slice;
    together(|net, ears, [first, second]| {
        // The first visits a page and hears of another; then it is gone, before anybody has copied what it wrote or heard of its links.
        net.lead(0, slice, Vec::new());
        ears.visits(1);
        net.take(0, slice);
        net.lead(0, slice, left_alone(&seed));
        bring(&net.controls[0], vec![Link::to(&heard, 1)]);
        net.take(0, slice);
        // The second begins without it, and cannot ask the site itself.
        net.lead(1, slice, left_alone(&seed));
        (0..SLICES).filter(|other| *other != slice).for_each(|other| net.lead(0, other, Vec::new()));
        // Who takes links has folded what was there.
        bring(&net.controls[1], vec![Link::to(&format!("{seed}known"), 1)]);
        let why = |url: &str| net.controls[1].ask(&Question::Why { url: url.to_owned(), name: None }).unwrap().unwrap();
        let told = || net.sent.lock().unwrap().iter().any(elsewhere);
        assert!(why(&heard)[0]["fate"] == "unknown" && !told());
        copy(first, second);
        until(ears, "heard of", |_| why(&heard)[0]["fate"] != "unknown");
        until(ears, "told", |_| told());
    });
}
