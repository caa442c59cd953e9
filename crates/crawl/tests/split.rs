//! One node of many, where a site is split: what it takes in, what it passes on, and when it asks for its turn. Nothing is fetched: nobody grants it one.

use std::collections::BTreeSet;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use skep_archive::{Archive, OpenOptions};
use skep_crawl::sharing::{Back, Leading, Link, Node, Outlet, Share, share};
use skep_crawl::{Control, Ending, Event, Question, Reach, Run, Settings, SiteSettings, run};
use skep_url::{Split, Splits, Url};

const BITS: u8 = 3;
const SITE: &str = "large.test";
/// Whoever leads what this node does not.
const OTHER: Node = [9; 32];
const LONG: Duration = Duration::from_secs(3_600);

/// What was told of a turn: whether it is wanted, whether something is out there, and whether it goes back.
type Told = (bool, bool, bool);

/// What the node says to the others.
#[derive(Default)]
struct Others {
    /// What this node leads: all else is led by another.
    led: Mutex<BTreeSet<u32>>,
    sent: Mutex<Vec<Vec<Link>>>,
    told: Mutex<Vec<Told>>,
}

impl Outlet for Others {
    fn leader(&self, slice: u32) -> Option<Node> {
        (!self.led.lock().unwrap().contains(&slice)).then_some(OTHER)
    }

    fn send(&self, _: &str, to: Node, links: Vec<Link>, back: Back) {
        assert_eq!(to, OTHER);
        self.sent.lock().unwrap().push(links);
        back(true);
    }

    fn polite(&self, _: u32, _: Vec<u8>, _: bool) {}

    fn give_up(&self, slice: u32) {
        panic!("slice {slice} can be read");
    }

    fn pace(&self, site: u32, wanted: bool, out: bool, back: Option<Vec<u8>>) {
        assert_eq!(site, skep_url::key::hash_of_site(SITE));
        self.told.lock().unwrap().push((wanted, out, back.is_some()));
    }
}

fn until(what: &str, so: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !so() {
        assert!(Instant::now() < end, "never {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Brings links, and says whether all of them are safe.
fn bring(control: &Control, urls: &[String]) -> bool {
    let (say, heard) = channel();
    control.hear(urls.iter().map(|url| Link::to(url, 1)).collect(), Box::new(move |safe| say.send(safe).unwrap()));
    heard.recv_timeout(Duration::from_secs(60)).unwrap()
}

#[test]
fn links_to_a_site_that_is_split_go_to_its_places_together_and_turns_are_asked_for_where_something_may_be_fetched() {
    let folder = tempfile::tempdir().unwrap();
    let options = OpenOptions { copies: true, bits: BITS, ..OpenOptions::create() };
    let archive = Arc::new(Archive::open(folder.path(), options).unwrap());
    let settings_folder = archive.layout().settings();
    share(&settings_folder, [5; 32], BITS).unwrap();
    let (others, leading, control) = (Arc::new(Others::default()), Arc::new(Leading::new(BITS)), Control::default());
    let home = leading.slice_of(&Url::parse(&format!("http://{SITE}/")).unwrap());
    let elsewhere = (0..).map(|number| format!("http://small-{number}.test/"));
    let seed = elsewhere.into_iter().find(|url| leading.slice_of(&Url::parse(url).unwrap()) != home).unwrap();
    let of = Run {
        settings: Settings { name: "test".into(), seeds: vec![seed], scope: Reach::All, ..Settings::default() },
        fetch: skep_fetch::Settings::new("skep/0 (test)"),
        cookies: Default::default(),
        workers: 1,
        patience: Default::default(),
        watch: false,
        judges: None,
        others: None,
        share: Some(Share { leading: leading.clone(), outlet: others.clone() }),
    };
    let (began, begun) = channel();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            let ended = run(&archive, of, &control, &mut |event| {
                if matches!(event, Event::Began { .. }) {
                    began.send(()).unwrap();
                }
            });
            assert_eq!(ended.unwrap(), Ending::Stopped);
        });
        begun.recv().unwrap();
        let lead = |slices: &[u32]| {
            let led = std::mem::replace(&mut *others.led.lock().unwrap(), slices.iter().copied().collect());
            led.into_iter().for_each(|slice| assert!(control.stop_leading(slice)));
            slices.iter().for_each(|slice| assert!(control.lead(*slice, Instant::now() + LONG, Some(Vec::new()))));
        };
        let last = || others.told.lock().unwrap().last().copied();
        let knows = |url: &String| {
            let why = Question::Why { url: url.clone(), name: None };
            control.ask(&why).unwrap().unwrap()[0]["fate"] != "unknown"
        };
        let urls = |word: &str| (0..64).map(|number| format!("http://{SITE}/{word}/{number}")).collect::<Vec<_>>();
        let site = skep_url::key::hash_of_site(SITE);
        let since = |since_ms: u64| {
            let mut splits = Splits::default();
            splits.add(site, Split { bits: BITS, since_ms });
            Arc::new(splits)
        };
        let splits = since(0);
        let is_at_home = |url: &&String| splits.place(&Url::parse(url).unwrap().key(), i64::MAX) == site;

        // Whoever begins says that there is nothing to do: perhaps an earlier run had something to do.
        leading.split(since(u64::MAX));
        until("told that there is nothing", || last() == Some((false, false, false)));
        // Before that time everything is heard at home.
        let old = urls("old");
        lead(&[home]);
        assert!(bring(&control, &old) && old.iter().all(knows));
        assert_eq!(others.sent.lock().unwrap().len(), 0);

        // Since then the home keeps what it knows, and brings the rest to their leaders: one message for each of these.
        leading.split(splits.clone());
        let new = urls("new");
        assert!(bring(&control, &[old.clone(), new.clone()].concat()));
        let sent: Vec<usize> = others.sent.lock().unwrap().iter().map(Vec::len).collect();
        assert_eq!(sent, [new.iter().filter(|url| !is_at_home(url)).count()]);
        assert!(new.iter().all(|url| knows(url) == is_at_home(&url)));
        until("a turn is asked for", || last() == Some((true, false, false)));

        // Nobody waits for a turn that comes to nothing.
        let settings = Settings::load(&settings_folder, "test").unwrap().unwrap();
        let pause = |pause: bool| {
            let section = SiteSettings { pause, ..SiteSettings::default() };
            Settings { site: [(SITE.to_owned(), section)].into(), ..settings.clone() }.store(&settings_folder).unwrap();
            control.ask(&Question::Reread).unwrap().unwrap();
        };
        pause(true);
        until("nothing is wanted", || last() == Some((false, false, false)));
        pause(false);
        until("wanted again", || last() == Some((true, false, false)));

        // Who led the home takes what the next one brings to places, whatever it knows of it. What goes elsewhere it does not take.
        let places: Vec<u32> = (0..1 << BITS).filter(|slice| *slice != home).collect();
        lead(&places);
        let brought = [urls("newer"), old].concat();
        let (at_home, elsewhere): (Vec<String>, Vec<String>) = brought.into_iter().partition(|url| is_at_home(&url));
        assert!(elsewhere.len() > 64 && bring(&control, &elsewhere));
        assert!(elsewhere.iter().all(knows));
        assert!(!bring(&control, &at_home), "that is for who leads there");
        control.stop();
        running.join().unwrap();
        assert_eq!(last(), Some((false, false, true)), "the last word");
    });
}
