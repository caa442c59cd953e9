//! Crawls of generated webs, without sockets: real sites of which nothing may be refused, and webs without end of which little
//! may be fetched. The crawl takes its URLs first in, first out, in bundles, and learns only when a bundle is over: as the
//! engine does, only worse.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use skep_schedule::SiteId;
use skep_schedule::trap::{Candidate, Gate, Novelty, PageSeen, Trap, Traps, Visit, text_digest};
use skep_url::{Part, Suffixes, Url};

/// What a URL answers.
#[derive(Default)]
struct Page {
    links: Vec<String>,
    text: String,
    answer_ms: u64,
}

struct Crawl<'a> {
    web: &'a dyn Fn(&str) -> Option<Page>,
    traps: Traps,
    bundle: usize,
    seen: HashSet<String>,
    hosts: HashSet<String>,
    sites: HashMap<String, SiteId>,
    queue: VecDeque<(String, u16, Option<String>)>,
    fetched: Vec<String>,
    refused: BTreeMap<Trap, Vec<String>>,
    suffixes: Suffixes,
}

impl<'a> Crawl<'a> {
    fn new(web: &'a dyn Fn(&str) -> Option<Page>) -> Crawl<'a> {
        Crawl {
            web,
            traps: Traps::new(),
            bundle: 100,
            seen: HashSet::new(),
            hosts: HashSet::new(),
            sites: HashMap::new(),
            queue: VecDeque::new(),
            fetched: Vec::new(),
            refused: BTreeMap::new(),
            suffixes: Suffixes::default(),
        }
    }

    fn site(&mut self, url: &Url) -> SiteId {
        let next = SiteId(self.sites.len() as u32);
        *self.sites.entry(url.site(&self.suffixes, Part::Whole).to_owned()).or_insert(next)
    }

    fn hear(&mut self, text: &str, depth: u16, via: Option<&str>) -> bool {
        if !self.seen.insert(text.to_owned()) {
            return false;
        }
        let url = Url::parse(text).expect(text);
        let site = self.site(&url);
        let new_host = self.hosts.insert(url.host_name().to_owned());
        let candidate = Candidate { url: &url, site, new_host, asked_for: depth == 0, foreign: false };
        match self.traps.admit(&candidate) {
            Ok(()) => self.queue.push_back((text.to_owned(), depth, via.map(str::to_owned))),
            Err(trap) => self.refused.entry(trap).or_default().push(text.to_owned()),
        }
        true
    }

    /// Crawls to the end, or until so many have been fetched.
    fn run(&mut self, seed: &str, most: usize) {
        self.hear(seed, 0, None);
        let mut idle = 0;
        while !self.queue.is_empty() && self.fetched.len() < most && idle < 10_000 {
            let mut taken = Vec::new();
            for _ in 0..self.queue.len().min(4 * self.bundle) {
                if taken.len() == self.bundle {
                    break;
                }
                let (text, depth, via) = self.queue.pop_front().expect("not empty");
                let url = Url::parse(&text).expect("heard");
                let site = self.site(&url);
                match self.traps.gate(url.as_str(), site, depth) {
                    Gate::Go => taken.push((text, depth, via)),
                    Gate::Later => self.queue.push_back((text, depth, via)),
                    Gate::Never(trap) => self.refused.entry(trap).or_default().push(text),
                }
            }
            idle = if taken.is_empty() { idle + 1 } else { 0 };
            for (text, depth, via) in taken {
                self.visit(&text, depth, via.as_deref());
            }
        }
    }

    fn visit(&mut self, text: &str, depth: u16, via: Option<&str>) {
        self.fetched.push(text.to_owned());
        let url = Url::parse(text).expect("heard");
        let site = self.site(&url);
        let page = (self.web)(text);
        let mut novelty = Novelty::of(text, via);
        if let Some(page) = &page {
            for link in &page.links {
                let new = self.hear(link, depth + 1, Some(text));
                novelty.link(link, new);
            }
        }
        let seen = page.as_ref().map(|page| PageSeen {
            novelty: Some(&novelty),
            digest: text_digest(&page.text),
            answer_ms: page.answer_ms,
            bytes: 2_000,
        });
        self.traps.learn(&Visit { url: &url, site, depth, page: seen });
    }

    fn fetched_in(&self, part: &str) -> usize {
        self.fetched.iter().filter(|url| url.contains(part)).count()
    }

    fn refused_by(&self, trap: Trap) -> usize {
        self.refused.get(&trap).map_or(0, Vec::len)
    }
}

/// SplitMix64 of a text and a number: a web is a function of its addresses.
fn chance(text: &str, n: u64) -> u64 {
    let mut z = text
        .bytes()
        .fold(n.wrapping_mul(0x9e37_79b9_7f4a_7c15), |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn word(n: u64) -> String {
    const SYLLABLES: [&str; 16] =
        ["ka", "lo", "mi", "ter", "san", "ve", "ru", "qui", "dor", "fe", "nal", "po", "gri", "tu", "bel", "ash"];
    (0..3).map(|i| SYLLABLES[(n >> (4 * i)) as usize % 16]).collect()
}

/// A site of `pages` pages in `folders` folders: a front page links to all folders, a folder's index to its pages, a page to
/// the front page, to its folder, and to five pages somewhere.
fn real_site(url: &str, pages: u64, folders: u64) -> Option<Page> {
    let path = url.strip_prefix("https://real.example")?;
    let mut links = vec!["https://real.example/".to_owned()];
    let page = |n: u64| format!("https://real.example/docs/f{}/{}{n}.html", word(n % folders), word(n));
    if path == "/" {
        links.extend((0..folders).map(|f| format!("https://real.example/docs/f{}/", word(f))));
        links.push("https://real.example/maze/".to_owned());
    } else if let Some(folder) = (0..folders).find(|f| path == format!("/docs/f{}/", word(*f))) {
        links.extend((0..pages).filter(|n| n % folders == folder).map(page));
    } else {
        let n = path.rsplit('/').next()?.trim_end_matches(".html").trim_start_matches(|c: char| !c.is_ascii_digit());
        let n: u64 = n.parse().ok().filter(|n| *n < pages)?;
        links.push(format!("https://real.example/docs/f{}/", word(n % folders)));
        links.extend((0..5).map(|i| page(chance(url, i) % pages)));
    }
    Some(Page { links, text: url.to_owned(), answer_ms: 30 })
}

/// Where the ten links of a page of a maze lead.
#[derive(Clone, Copy, Debug)]
enum Maze {
    /// `/maze/word/word-123`, as if written by hand.
    Flat,
    /// Ever deeper: `/maze/word/word/word/…`, and round again after six.
    Nested,
    /// Half of the links lead back to pages of the maze, and there is a menu of the real site.
    Disguised,
    /// `/maze/word.html`.
    Files,
    /// One page in ten is a dead end.
    DeadEnds,
    /// Two links a page only.
    Narrow,
    /// Every page links back to where it was found, and up.
    Backward,
}

/// A tree of folders, ten levels deep, three in each, with five files: a mirror of files, listed by the server.
fn listing(url: &str) -> Option<Page> {
    let path = url.strip_prefix("https://files.example")?;
    if !path.ends_with('/') {
        return Some(Page { text: url.to_owned(), ..Page::default() });
    }
    let depth = path.matches('/').count();
    let mut links: Vec<String> = Vec::new();
    links.extend(path[..path.len() - 1].rfind('/').map(|up| format!("https://files.example{}", &path[..=up])));
    links.extend((0..if depth < 9 { 3 } else { 0 }).map(|n| format!("{url}{}/", word(chance(url, n)))));
    links.extend((0..5).map(|n| format!("{url}{}.tar", word(n + 7))));
    Some(Page { links, text: url.to_owned(), answer_ms: 10 })
}

fn maze(kind: Maze, url: &str) -> Option<Page> {
    let path = url.strip_prefix("https://real.example")?.strip_prefix("/maze/")?;
    let fan = if matches!(kind, Maze::Narrow) { 2 } else { 10 };
    let mut links: Vec<String> = (0..fan)
        .map(|i| {
            let (one, two, n) = (word(chance(url, i)), word(chance(url, 100 + i)), chance(url, 200 + i) % 1_000_000);
            match kind {
                Maze::Nested if path.matches('/').count() < 6 => format!("{}/{one}-{two}", url.trim_end_matches('/')),
                Maze::Nested => format!("https://real.example/maze/{one}/{two}"),
                Maze::Backward => format!("{}/{one}-{two}", url.trim_end_matches('/')),
                Maze::Files => format!("https://real.example/maze/{one}{two}.html"),
                _ => format!("https://real.example/maze/{one}/{two}-{n}"),
            }
        })
        .collect();
    match kind {
        Maze::Disguised => {
            let back = (0..8).map(|i| format!("https://real.example/maze/hub/{}", word(i)));
            links.extend(back);
            links.extend((0..12).map(|f| format!("https://real.example/docs/f{}/", word(f))));
        }
        Maze::Backward => {
            let up = url.trim_end_matches('/').rsplit_once('/').map_or("", |(up, _)| up);
            links.extend([format!("{up}/"), up.to_owned()]);
            links.retain(|link| link.contains("/maze/"));
        }
        Maze::DeadEnds if chance(url, 77).is_multiple_of(10) => links.clear(),
        _ => {}
    }
    Some(Page { links, text: format!("{} {}", word(chance(url, 8)), word(chance(url, 9))), answer_ms: 40 })
}

const MAZES: [Maze; 7] =
    [Maze::Flat, Maze::Nested, Maze::Disguised, Maze::Files, Maze::DeadEnds, Maze::Narrow, Maze::Backward];

#[test]
fn of_a_maze_beside_a_real_site_hardly_anything_is_fetched() {
    for kind in MAZES {
        for (pages, bundle) in [(2_000, 100), (2_000, 8), (1_000, 30)] {
            let web = |url: &str| maze(kind, url).or_else(|| real_site(url, pages, 12));
            let mut crawl = Crawl::new(&web);
            crawl.bundle = bundle;
            crawl.run("https://real.example/", 4_000);
            let (inside, all) = (crawl.fetched_in("/maze/"), crawl.fetched.len());
            println!("{kind:?} {pages} {bundle}: {inside} of {all}");
            assert!(crawl.queue.is_empty(), "{kind:?}: the crawl ends by itself");
            assert_eq!(crawl.fetched_in("/docs/"), pages as usize + 12, "{kind:?}: nothing real is missed");
            assert!(inside * 20 <= all, "{kind:?} {pages} {bundle}: {inside} of {all} fetches");
            assert!(crawl.refused_by(Trap::Maze) > 0, "{kind:?}");
            let real: Vec<_> = crawl.refused.values().flatten().filter(|url| !url.contains("/maze/")).collect();
            assert!(real.is_empty(), "{kind:?}: {real:?}");
        }
    }
}

#[test]
fn a_host_that_is_all_maze_is_left_soon() {
    let web = |url: &str| {
        let links =
            (0..12).map(|i| format!("https://lost.example/{}/{}", word(chance(url, i)), word(chance(url, 50 + i))));
        Some(Page { links: links.collect(), text: url.to_owned(), answer_ms: 40 })
    };
    let mut crawl = Crawl::new(&web);
    crawl.run("https://lost.example/", 2_000);
    assert!(crawl.queue.is_empty());
    assert!(crawl.fetched.len() < 150, "{}", crawl.fetched.len());
}

#[test]
fn a_maze_strewn_over_the_whole_host_costs_the_real_pages_nothing() {
    let web = |url: &str| {
        real_site(url, 2_000, 12)
            .map(|mut page| {
                page.links.extend(url.ends_with(".example/").then(|| "https://real.example/enter".to_owned()));
                page
            })
            .or_else(|| {
                let links = (0..10)
                    .map(|i| format!("https://real.example/{}/{}", word(chance(url, i)), word(chance(url, 50 + i))));
                Some(Page { links: links.collect(), text: url.to_owned(), answer_ms: 40 })
            })
    };
    let mut crawl = Crawl::new(&web);
    crawl.run("https://real.example/", 20_000);
    let (real, all) = (crawl.fetched_in("/docs/"), crawl.fetched.len());
    println!("strewn: {} of {all}", all - real);
    assert!(crawl.queue.is_empty());
    assert_eq!(real, 2_012);
    assert!((all - real) * 20 <= all, "{} of {all}", all - real);
}

#[test]
fn a_tarpit_is_left_sooner_and_called_by_its_name() {
    let web = |url: &str| {
        maze(Maze::Flat, url).map(|page| Page { answer_ms: 20_000, ..page }).or_else(|| real_site(url, 500, 5))
    };
    let mut crawl = Crawl::new(&web);
    crawl.run("https://real.example/", 4_000);
    assert!(crawl.fetched_in("/maze/") <= 25, "{}", crawl.fetched_in("/maze/"));
    assert!(crawl.refused_by(Trap::Tarpit) > 0 && crawl.refused_by(Trap::Maze) == 0);
}

#[test]
fn large_real_sites_lose_nothing() {
    for (pages, folders) in [(300, 3), (5_000, 40), (30_000, 200)] {
        let web = |url: &str| real_site(url, pages, folders);
        let mut crawl = Crawl::new(&web);
        crawl.run("https://real.example/", usize::MAX);
        assert!(crawl.refused.is_empty(), "{:?}", crawl.refused.keys());
        assert_eq!(crawl.fetched.len() as u64, pages + folders + 2);
    }
}

/// The worst real site: a front page, 300 classes, each with a hundred pages that nothing else links to.
#[test]
fn a_site_whose_index_pages_all_come_first_loses_nothing() {
    let web = |url: &str| {
        let path = url.strip_prefix("https://api.example/")?;
        let links: Vec<String> = match path.split('/').collect::<Vec<_>>()[..] {
            [""] => (0..300).map(|c| format!("https://api.example/class/{}/", word(c))).collect(),
            ["class", class, ""] => {
                (0..100).map(|m| format!("https://api.example/class/{class}/fn.{}.html", word(m))).collect()
            }
            _ => vec!["https://api.example/".to_owned()],
        };
        Some(Page { links, text: url.to_owned(), answer_ms: 30 })
    };
    for bundle in [100, 7] {
        let mut crawl = Crawl::new(&web);
        crawl.bundle = bundle;
        crawl.run("https://api.example/", usize::MAX);
        assert!(crawl.refused.is_empty(), "{:?}", crawl.refused.keys());
        assert_eq!(crawl.fetched.len(), 1 + 300 + 300 * 100);
    }
}

#[test]
fn a_tree_of_files_loses_nothing() {
    let mut crawl = Crawl::new(&listing);
    crawl.run("https://files.example/", usize::MAX);
    assert!(crawl.refused.is_empty(), "{:?}", crawl.refused.keys());
    assert_eq!(crawl.fetched.len(), (3_usize.pow(9) - 1) / 2 * 6);
}

/// A list of a thousand pages, each with twenty things and the next page; the things lead nowhere.
#[test]
fn a_long_list_loses_nothing() {
    let web = |url: &str| {
        let path = url.strip_prefix("https://shop.example/")?;
        let n = path.strip_prefix("list?page=").map(|n| n.parse::<u64>().expect("a number"));
        let mut links: Vec<String> = (0..20).map(|i| format!("https://shop.example/section/{i}")).collect();
        if let Some(n) = n.or((path.is_empty()).then_some(0)) {
            links.extend((0..20).map(|i| format!("https://shop.example/thing/{}-{}", word(n * 20 + i), n * 20 + i)));
            links.extend((n < 1_000).then(|| format!("https://shop.example/list?page={}", n + 1)));
        }
        Some(Page { links, text: format!("{}{}", word(chance(url, 1)), word(chance(url, 2))), answer_ms: 30 })
    };
    let mut crawl = Crawl::new(&web);
    crawl.run("https://shop.example/", usize::MAX);
    assert!(crawl.refused.is_empty(), "{:?}", crawl.refused.keys());
    assert!(crawl.fetched.len() > 20_000);
}

#[test]
fn a_calendar_filters_and_sessions_come_to_an_end() {
    let calendar = |url: &str| {
        let mut parts =
            url.strip_prefix("https://cal.example/c/")?.split(['/', '?']).filter_map(|part| part.parse::<i64>().ok());
        let (year, month) = (parts.next()?, parts.next()?);
        let mut links = vec![
            format!("https://cal.example/c/{}/{month:02}", year + 1),
            format!("https://cal.example/c/{year}/{:02}", month % 12 + 1),
        ];
        links.extend((1..=28).map(|day| format!("https://cal.example/c/{year}/{month:02}/{day:02}?view=day")));
        Some(Page { links, text: format!("{year}-{month:02}: no events"), answer_ms: 30 })
    };
    let filters = |url: &str| {
        let query = url.split_once('?').map_or("", |(_, query)| query);
        let chosen: Vec<&str> = query.split('&').filter(|pair| !pair.is_empty()).collect();
        let links = ["colour", "size", "brand", "price", "rating", "sort"].iter().flat_map(|name| {
            let others: Vec<&str> = chosen.iter().copied().filter(|pair| !pair.starts_with(name)).collect();
            (1..=4).map(move |value| {
                let mut pairs = others.clone();
                let pair = format!("{name}={value}");
                pairs.push(&pair);
                format!("https://cal.example/c?{}", pairs.join("&"))
            })
        });
        Some(Page { links: links.collect(), text: format!("{} things", chance(url, 1) % 500), answer_ms: 30 })
    };
    let sessions = |url: &str| {
        let links = (0..5).map(|n| format!("https://cal.example/s/{n}?SID={:016x}", chance(url, n)));
        let page = url.rsplit('/').next()?.split('?').next()?.to_owned();
        Some(Page { links: links.collect(), text: format!("page {}", word(page.parse().unwrap_or(0))), answer_ms: 30 })
    };
    let webs: [(&str, &dyn Fn(&str) -> Option<Page>); 3] = [
        ("https://cal.example/c/2024/01", &calendar),
        ("https://cal.example/c", &filters),
        ("https://cal.example/s/0", &sessions),
    ];
    for (seed, web) in webs {
        let mut crawl = Crawl::new(web);
        crawl.run(seed, 20_000);
        println!("{seed}: {} fetched", crawl.fetched.len());
        assert!(crawl.queue.is_empty(), "{seed}");
        assert!(crawl.fetched.len() < 1_500, "{seed}: {}", crawl.fetched.len());
    }
}

/// Five hundred pages that say the same but for a number, listed on one.
#[test]
fn a_closed_set_of_pages_alike_loses_nothing() {
    let web = |url: &str| {
        let index = url.ends_with("/index.html");
        let links = (0..500 * u32::from(index)).map(|n| format!("https://api.example/const.DOTS_{n}.html"));
        Some(Page {
            links: links.collect(),
            text: format!("DOTS_{} is a constant", chance(url, 1) % 1_000),
            answer_ms: 10,
        })
    };
    let mut crawl = Crawl::new(&web);
    crawl.run("https://api.example/index.html", usize::MAX);
    assert!(crawl.refused.is_empty(), "{:?}", crawl.refused.keys());
    assert_eq!(crawl.fetched.len(), 501);
}

#[test]
fn hosts_without_end_are_not_followed_and_the_real_host_is() {
    let web = |url: &str| {
        let parsed = Url::parse(url).ok()?;
        let host = parsed.host_name().to_owned();
        let flood = (0..10)
            .map(|i| format!("https://{}-{:06x}.flood.example/", word(chance(url, i)), chance(url, i) % (1 << 24)));
        let mut links: Vec<String> = Vec::new();
        if host == "www.flood.example" {
            links.extend((0..400).map(|n| format!("https://www.flood.example/page/{}", word(n))));
        }
        if host != "www.flood.example" || parsed.request_target() == "/" {
            links.extend(flood);
        }
        Some(Page { links, text: url.to_owned(), answer_ms: 30 })
    };
    let mut crawl = Crawl::new(&web);
    crawl.run("https://www.flood.example/", 5_000);
    assert!(crawl.queue.is_empty());
    assert_eq!(crawl.fetched_in("www.flood.example"), 401);
    assert!(crawl.fetched.len() - 401 < 60, "{}", crawl.fetched.len());
    assert!(crawl.refused_by(Trap::SubdomainFlood) > 0);
}

#[test]
fn a_flood_is_known_even_when_no_more_hosts_are_taken_in() {
    // All hosts that a site may have are heard of at once: no page of a later generation is ever seen.
    let web = |url: &str| {
        let hosts = if url == "https://flood.example/" { 1_100 } else { 10 };
        let links = (0..hosts).map(|i| format!("https://{}-{i}.flood.example/", word(chance(url, i)))).collect();
        Some(Page { links, text: url.to_owned(), answer_ms: 30 })
    };
    let mut crawl = Crawl::new(&web);
    crawl.run("https://flood.example/", 5_000);
    assert!(crawl.queue.is_empty());
    assert!(crawl.fetched.len() < 150, "{}", crawl.fetched.len());
}

#[test]
fn a_site_with_more_hosts_than_are_taken_in_keeps_those() {
    // Every page links to new hosts, and to some that others link to as well.
    let web = |url: &str| {
        let hosts = if url == "https://many.example/" { 1_100 } else { 6 };
        let host = |from: &str, i: u64| format!("https://{}-{i}.many.example/", word(chance(from, i)));
        let mut links: Vec<String> = (0..hosts).map(|i| host(url, i)).collect();
        links.extend((0..4).map(|i| host("https://many.example/", chance(url, 100 + i) % 1_000)));
        Some(Page { links, text: url.to_owned(), answer_ms: 30 })
    };
    let mut crawl = Crawl::new(&web);
    crawl.run("https://many.example/", 5_000);
    assert!(crawl.fetched.len() >= 1_000, "{}", crawl.fetched.len());
}

#[test]
fn many_real_hosts_of_one_site_lose_nothing() {
    // Three hundred languages that all link to each other.
    let web = |url: &str| {
        let host = Url::parse(url).ok()?.host_name().to_owned();
        let mut links: Vec<String> = (0..300).map(|n| format!("https://{}.many.example/", word(n))).collect();
        links.extend((0..20).map(|n| format!("https://{host}/article/{}", word(chance(&host, n)))));
        Some(Page { links, text: url.to_owned(), answer_ms: 30 })
    };
    let mut crawl = Crawl::new(&web);
    crawl.run(&format!("https://{}.many.example/", word(0)), usize::MAX);
    assert!(crawl.refused.is_empty(), "{:?}", crawl.refused.keys());
    assert!(crawl.fetched.len() > 5_000);
}

#[test]
fn what_was_learned_survives_a_restart() {
    let web = |url: &str| maze(Maze::Flat, url).or_else(|| real_site(url, 500, 5));
    let mut crawl = Crawl::new(&web);
    crawl.run("https://real.example/", 4_000);
    let stored = serde_json::to_string(&crawl.traps).expect("serialisable");
    assert!(stored.len() < 64_000, "{} bytes", stored.len());
    let mut traps: Traps = serde_json::from_str(&stored).expect("readable");
    assert_eq!(traps.mazes(), crawl.traps.mazes());
    let url = Url::parse("https://real.example/maze/never/seen").expect("a URL");
    let candidate = Candidate { url: &url, site: SiteId(0), new_host: false, asked_for: false, foreign: false };
    assert_eq!(traps.admit(&candidate), Err(Trap::Maze));
    assert_eq!(traps.gate(url.as_str(), SiteId(0), 3), Gate::Never(Trap::Maze));
    assert_eq!(traps.admit(&Candidate { asked_for: true, ..candidate }), Ok(()), "whoever asks by name gets it");
}

#[test]
fn every_trap_has_a_name_that_finds_it_again() {
    for trap in Trap::ALL {
        assert_eq!(Trap::from_id(trap.id()), Some(trap));
        assert!(!trap.text().is_empty());
    }
}
