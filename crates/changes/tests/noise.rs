//! Pages with the noise of the real web: what is told of them while nothing happens, and what is missed when something does.
//!
//! The model: 40 % of the pages carry nonces, tokens, stamps, counters and cache busters that differ in every answer; 10 % show
//! one of two to five teasers in turn; one answer in a hundred is a test for robots, an outage or an empty shell; each host gets another
//! header and footer every ninety days. What differs by the place from which one looks is not here: an archive looks from one.

mod support;

use std::collections::HashMap;

use skep_changes::{Changes, Event, From};
use skep_page::compare::Class;
use support::*;

const PAGES: usize = 160;
const VISITS: usize = 40;
/// What rotates is learned from visits. What it comes to after so many is told beside; the bound holds from the first.
const LEARNING_VISITS: i64 = 16;
/// False `text.*` events in a thousand fetches of unchanged pages.
const FALSE_MAX: f64 = 5.0;

/// From this number of a record on, a key is that of an event of its host.
const OF_HOST: u32 = 1 << 30;
const HOSTS: usize = 12;
/// A host's pages share their header and footer for so many days.
const TEMPLATE_DAYS: usize = 90;

/// A page and its noise.
struct Page {
    url: String,
    host: usize,
    paragraphs: Vec<String>,
    noisy: bool,
    teasers: usize,
    /// Edits happen at these visits, and change so many of a hundred words.
    edits: HashMap<usize, usize>,
}

impl Page {
    fn draw(number: usize, chance: &mut Chance) -> Page {
        let length = 20 + chance.below(60);
        let edited = number % 2 == 1;
        let mut edits = HashMap::new();
        if edited {
            for visit in 1..VISITS {
                if chance.percent(10) {
                    edits.insert(visit, if chance.percent(50) { 1 } else { 6 + chance.below(40) });
                }
            }
        }
        Page {
            url: format!("http://host-{}.example/page/{number}", number % HOSTS),
            host: number % HOSTS,
            paragraphs: (0..length).map(|n| words((number * 1000 + n) as u64, 10 + n % 20)).collect(),
            noisy: chance.percent(40),
            teasers: if chance.percent(10) { 2 + chance.below(4) } else { 0 },
            edits,
        }
    }

    fn edit(&mut self, share: usize, chance: &mut Chance) {
        let all: usize = self.paragraphs.iter().map(|text| text.split(' ').count()).sum();
        let mut left = (all * share / 100).max(1);
        while left > 0 {
            let at = chance.below(self.paragraphs.len());
            let mut text: Vec<String> = self.paragraphs[at].split(' ').map(str::to_owned).collect();
            for word in text.iter_mut().take(left) {
                *word = format!("edited{}", chance.below(100_000));
            }
            left -= left.min(text.len());
            self.paragraphs[at] = text.join(" ");
        }
    }

    fn answer(&self, visit: usize, chance: &mut Chance) -> (u16, String) {
        if visit > 0 && chance.percent(1) {
            return match chance.below(3) {
                0 => (403, "<title>Just a moment...</title><script>window._cf_chl_opt={}</script>".to_owned()),
                1 => (503, "<h1>Server busy</h1>".to_owned()),
                _ => (200, format!("<title>Title of {}</title><div id=app></div>", self.url)),
            };
        }
        let mut drawn = |bound: usize| chance.below(bound);
        let noise = |on: bool, text: String| if on { text } else { String::new() };
        let head = noise(
            self.noisy,
            format!(
                "<script nonce=\"{0}\">var t={0}</script><link rel=stylesheet href=\"/s.css?v={0}\"><!-- served in {0} ms -->",
                drawn(1 << 30)
            ),
        );
        let top = noise(
            self.noisy,
            format!(
                "<form><input type=hidden name=csrf value={:x}></form><p>Posted {} hours ago, {} views</p><a href=\"/next?sid={:x}\">Next</a>",
                drawn(1 << 30),
                2 + drawn(20),
                drawn(10_000),
                drawn(1 << 30)
            ),
        );
        let bottom = noise(
            self.noisy,
            format!(
                "<p>Generated on 2026-{:02}-{:02} {:02}:{:02}:{:02}</p>",
                1 + drawn(12),
                1 + drawn(28),
                drawn(24),
                drawn(60),
                drawn(60)
            ),
        );
        let teaser = match self.teasers {
            0 => String::new(),
            count => {
                let shown = drawn(count);
                format!("<aside><a href=\"/offer/{shown}\">{}</a></aside>", words(9_000_000 + shown as u64, 12))
            }
        };
        // Hosts take turns: a third of them does it within the visits.
        let edition = (visit + self.host * 37 % TEMPLATE_DAYS) / TEMPLATE_DAYS;
        let shared = |part: usize| words((8_000_000 + (self.host * 10 + edition) * 2 + part) as u64, 8);
        let (header, footer) = (shared(0), shared(1));
        let half = self.paragraphs.len() / 2;
        let text = |some: &[String]| some.iter().map(|text| format!("<p>{text}</p>")).collect::<String>();
        let (before, after) = (text(&self.paragraphs[..half]), text(&self.paragraphs[half..]));
        let body = format!(
            "<!doctype html><html><head><title>Title of {}</title>{head}</head><body><header><p>{header}</p></header><h1>{}</h1>{top}{before}{teaser}{after}{bottom}<footer><p>{footer}</p></footer></body></html>",
            self.url, self.url
        );
        (200, body)
    }
}

/// What the noise of one draw came to.
#[derive(Default)]
struct Told {
    quiet: u32,
    wrong: u32,
    /// The same, of visits after the learning.
    quiet_learned: u32,
    wrong_learned: u32,
    small: (u32, u32),
    large: (u32, u32),
    /// Changes of what a host's pages share, told once for the host.
    templates: u32,
}

/// Draws that nothing was tuned on.
#[test]
fn noise_is_told_rarely_and_changes_are_missed_hardly_ever() {
    let mut all = Told::default();
    for seed in [977, 2311, 40009] {
        let told = noise(seed);
        all.quiet += told.quiet;
        all.wrong += told.wrong;
        all.quiet_learned += told.quiet_learned;
        all.wrong_learned += told.wrong_learned;
        all.templates += told.templates;
        for (sum, some) in [(&mut all.small, told.small), (&mut all.large, told.large)] {
            *sum = (sum.0 + some.0, sum.1 + some.1);
        }
    }
    let Told { quiet, wrong, quiet_learned, wrong_learned, small, large, templates } = all;
    let per_thousand = |wrong: u32, quiet: u32| f64::from(wrong) * 1000.0 / f64::from(quiet);
    let (from_the_first, learned) = (per_thousand(wrong, quiet), per_thousand(wrong_learned, quiet_learned));
    println!(
        "all draws: {wrong} false text events in {quiet} fetches of unchanged pages, {from_the_first:.2} in a thousand; {learned:.2} after {LEARNING_VISITS} visits"
    );
    assert!(quiet_learned > 5_000 && small.0 > 200 && large.0 > 200, "{quiet_learned} {small:?} {large:?}");
    assert!(templates >= 3, "{templates} changes of templates");
    assert!(from_the_first <= FALSE_MAX, "{from_the_first}");
    assert!(f64::from(small.1) <= f64::from(small.0) * 0.02 && f64::from(large.1) <= f64::from(large.0) * 0.001);
}

fn noise(seed: u64) -> Told {
    let folder = tempfile::tempdir().unwrap();
    let archive = open(folder.path());
    let changes = Changes::default();
    let mut chance = Chance(seed);
    let mut pages: Vec<Page> = (0..PAGES).map(|number| Page::draw(number, &mut chance)).collect();
    // Per capture: how many of a hundred words changed since the last good one.
    let mut truth: HashMap<(String, i64), usize> = HashMap::new();
    let mut pending: HashMap<usize, usize> = HashMap::new();
    for visit in 0..VISITS {
        let mut answers = Vec::with_capacity(PAGES);
        for (number, page) in pages.iter_mut().enumerate() {
            if let Some(share) = page.edits.get(&visit).copied() {
                page.edit(share, &mut chance);
                *pending.entry(number).or_default() += share;
            }
            let (status, body) = page.answer(visit, &mut chance);
            let time_ms = START_MS + visit as i64 * DAY_MS + number as i64 * 1000;
            answers.push(answer(&page.url, time_ms, status, "", &body));
            let good = body.contains("</h1>") && status == 200;
            if visit > 0 {
                truth.insert((page.url.clone(), time_ms), if good { pending.remove(&number).unwrap_or(0) } else { 0 });
            }
        }
        append(&archive, "http://host-0.example/", answers);
        follow(&changes, &archive);
    }
    let mut told: HashMap<(String, i64), Event> = HashMap::new();
    let mut templates = 0;
    for (_, event) in events(&changes, &archive, &From::Start) {
        templates += u32::from(event.classes.contains(Class::HostTemplate));
        // Events of hosts are told of the record of a page, beside its own.
        if event.key.record >= OF_HOST {
            continue;
        }
        told.insert((event.url.clone(), event.time_ms), event);
    }
    let is_text =
        |event: &Event| [Class::TextMajor, Class::TextMinor].iter().any(|class| event.classes.contains(*class));
    let (mut quiet, mut wrong) = (0_u32, 0_u32);
    let (mut quiet_learned, mut wrong_learned) = (0_u32, 0_u32);
    let mut missed: [(u32, u32); 2] = [(0, 0); 2];
    let mut loud = 0_u32;
    for (key, share) in &truth {
        let event = told.get(key);
        let text = event.is_some_and(is_text);
        match share {
            0 => {
                quiet += 1;
                wrong += u32::from(text);
                let learned = key.1 >= START_MS + LEARNING_VISITS * DAY_MS;
                quiet_learned += u32::from(learned);
                wrong_learned += u32::from(learned && text);
                loud += u32::from(event.is_some_and(|event| !event.classes.is_silent() && !text));
            }
            share => {
                let (count, lost) = &mut missed[usize::from(*share >= 5)];
                *count += 1;
                *lost += u32::from(!text);
            }
        }
    }
    let per_thousand = f64::from(wrong) * 1000.0 / f64::from(quiet);
    println!(
        "seed {seed}: {quiet} fetches of unchanged pages: {wrong} false text events, {per_thousand:.2} in a thousand; {wrong_learned} of them after {LEARNING_VISITS} visits"
    );
    println!("{loud} events of another class that is not silent (links, reverted)");
    let [(small, small_missed), (large, large_missed)] = missed;
    println!(
        "changes of less than 5 % of the words: {small}, missed {small_missed}; of more: {large}, missed {large_missed}"
    );
    println!("{templates} changes of templates were told of hosts");
    let (small, large) = ((small, small_missed), (large, large_missed));
    Told { quiet, wrong, quiet_learned, wrong_learned, small, large, templates }
}
