//! What an indexer receives in a month: every page every day, or the stream of changes with deltas of texts. The pages of a synthetic web
//! change as `skep_testweb::changing` says; an archive looks at each of them once a day, and what it makes of them is the product's code.
//! One JSON object on stdout; no side is compressed.
//!
//! As on the open web, four pages of ten differ in every answer (nonces, tokens, dates, counters), one of ten shows one of a few
//! teasers in turn, each host gets another header and footer every ninety days, a change of content brings two links and takes one or
//! two, and some pages are born and some die. Left out are answers that are no pages (tests for robots, outages) and what differs by
//! the place from which one looks.

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::ops::ControlFlow;

use serde_json::{Value, json};
use skep_archive::{Append, Archive, Encoded, Key, OpenOptions};
use skep_changes::{Changes, Delta, Filter, From, Settings};
use skep_testweb::changing::{Changing, Model};
use skep_warc::date::rfc3339;
use skep_warc::deflate::Level;
use skep_warc::write::{Compression, Encoder, Record, RecordId};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const START_MS: i64 = 1_767_225_600_000;
const DAY_MS: i64 = 86_400_000;
const DAYS: i64 = 30;
/// Paragraphs of a page, and words of each: about 10 kB of text, in about 30 kB of page.
const PARAGRAPHS: usize = 60;
const WORDS: usize = 25;
const SCRIPT_BYTES: usize = 15_000;
/// Links of a page that are its host's, and those that are its own: three of five are shared.
const NAV_LINKS: usize = 40;
const OWN_LINKS: usize = 27;
/// Each host changes what its pages share after so many days.
const TEMPLATE_DAYS: i64 = 90;
/// Pages of ten thousand that are born in a month, three of a thousand in a week; and that die, eight of a hundred in a year.
const BORN_PER_10_000: usize = 130;
const DEAD_PER_10_000: usize = 66;

struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound.max(1)
    }
}

fn words(chance: &mut Chance) -> Vec<String> {
    let word = |chance: &mut Chance| {
        let letters = 2 + chance.below(9);
        (0..letters).map(|_| char::from(b'a' + chance.below(26) as u8)).collect()
    };
    (0..WORDS).map(|_| word(chance)).collect()
}

/// A page as it stands.
struct Page {
    paragraphs: Vec<Vec<String>>,
    /// Numbers of the pages that it links to.
    links: Vec<usize>,
    markup: usize,
    stamp: usize,
    /// Every answer is different.
    noisy: bool,
    /// Teasers that take turns.
    teasers: usize,
    /// The days from which it is there, and from which it is not any more.
    born: i64,
    dies: i64,
    /// Of what kind its changes usually are.
    kind: usize,
    /// Up to when its changes are made.
    at: f64,
}

impl Page {
    /// Kinds of changes by their share: markup only, dates and counts, few words, up to a third, all of it.
    fn kind(chance: &mut Chance) -> usize {
        match chance.below(100) {
            0..35 => 0,
            35..65 => 1,
            65..90 => 2,
            90..98 => 3,
            _ => 4,
        }
    }

    fn change(&mut self, chance: &mut Chance) {
        // Pages change as they used to, four times of five.
        let kind = if chance.below(5) < 4 { self.kind } else { Page::kind(chance) };
        match kind {
            0 => return self.markup += 1,
            1 => return self.stamp += 1,
            _ => self.relink(chance),
        }
        let edited = match kind {
            // At most 5 % of the words, in one to three places.
            2 => {
                for _ in 0..1 + chance.below(3) {
                    let (at, fresh) = (chance.below(PARAGRAPHS), words(chance));
                    let some = 1 + chance.below(WORDS);
                    self.paragraphs[at].splice(..some, fresh.into_iter().take(some));
                }
                return;
            }
            3 => PARAGRAPHS / 20 + chance.below(PARAGRAPHS / 4),
            _ => PARAGRAPHS,
        };
        if edited == PARAGRAPHS {
            return self.paragraphs.fill_with(|| words(chance));
        }
        for _ in 0..edited {
            let at = chance.below(PARAGRAPHS);
            self.paragraphs[at] = words(chance);
        }
    }

    /// Two links come, and one or two go.
    fn relink(&mut self, chance: &mut Chance) {
        for _ in 0..1 + chance.below(2) {
            let at = chance.below(self.links.len());
            self.links.remove(at);
        }
        for _ in 0..2 {
            let at = chance.below(self.links.len() + 1);
            self.links.insert(at, chance.below(1 << 20));
        }
    }

    /// An answer, under the `template`-th look of its host.
    fn html(&self, number: u32, template: i64, chance: &mut Chance) -> String {
        let mut drawn = |bound: usize| chance.below(bound);
        let nonce = if self.noisy { drawn(1 << 30) } else { 0 };
        let mut out = format!("<!doctype html><html><head><title>Page {number}</title><script nonce=\"{nonce:x}\">/*");
        out.extend((0..SCRIPT_BYTES).map(|at| char::from(b'a' + (at * 7 % 26) as u8)));
        out.push_str(&format!("*/</script><link rel=stylesheet href=\"/s.css?v={nonce:x}\"></head>"));
        out.push_str(&format!("<body class=\"layout-{}\"><header>Edition {template}</header><nav>", self.markup));
        (0..NAV_LINKS).for_each(|link| {
            // One of them gives way to another with each edition.
            let link = if link == 7 { NAV_LINKS + template as usize } else { link };
            out.push_str(&format!("<a class=\"nav-item nav-item-top\" href=\"/section/{link}\">Section {link}</a> "))
        });
        out.push_str("</nav>");
        let (hours, views) = match self.noisy {
            true => (2 + drawn(20), drawn(10_000)),
            false => (2 + self.stamp % 20, 100 + self.stamp * 7),
        };
        if self.noisy {
            let (token, session) = (drawn(1 << 30), drawn(1 << 30));
            out.push_str(&format!(
                "<form><input type=hidden name=csrf value={token:x}></form><a href=\"/next?sid={session:x}\">Next</a>"
            ));
        }
        out.push_str(&format!("<p>Posted {hours} hours ago, {views} views</p>"));
        for (at, paragraph) in self.paragraphs.iter().enumerate() {
            if self.teasers > 0 && at == PARAGRAPHS / 2 {
                let shown = drawn(self.teasers);
                let teaser = words(&mut Chance(9_000_000 + shown as u64)).join(" ");
                out.push_str(&format!("<aside><a href=\"/offer/{shown}\">{teaser}</a></aside>"));
            }
            out.push_str(&format!("<div class=\"paragraph body-text\"><p>{}</p></div>", paragraph.join(" ")));
        }
        out.push_str("<ul>");
        for link in &self.links {
            out.push_str(&format!("<li><a class=\"related\" href=\"/related/{link}\">See {link}</a></li>"));
        }
        out.push_str("</ul>");
        if self.noisy {
            let time = [drawn(24), drawn(60), drawn(60)];
            out.push_str(&format!(
                "<p>Generated on 2026-{:02}-{:02} {:02}:{:02}:{:02}</p>",
                1 + drawn(12),
                1 + drawn(28),
                time[0],
                time[1],
                time[2]
            ));
        }
        out.push_str(&format!("<footer>All of it made up, edition {template}</footer></body></html>"));
        out
    }
}

/// What a kind of event came to.
#[derive(Default)]
struct Cost {
    events: u64,
    bytes: u64,
    /// Of these, those of text deltas.
    deltas: u64,
}

fn main() -> Result<()> {
    let (mut count, mut seed) = (1_000_u32, 1_u64);
    let mut words_typed = std::env::args().skip(1);
    while let (Some(name), value) = (words_typed.next(), words_typed.next().unwrap_or_default()) {
        match name.as_str() {
            "--pages" => count = value.parse()?,
            "--seed" => seed = value.parse()?,
            other => return Err(format!("there is no {other}").into()),
        }
    }
    let web = Changing::new(seed, count, Model { host_pages_max: 200, ..Model::open_web() });
    let mut chance = Chance(seed);
    let mut pages: Vec<Page> = (0..count)
        .map(|_| {
            let mut some_day =
                |per_10_000: usize| (chance.below(10_000) < per_10_000).then(|| 1 + chance.below(DAYS as usize) as i64);
            let (born, dies) = (some_day(BORN_PER_10_000).unwrap_or(0), some_day(DEAD_PER_10_000).unwrap_or(DAYS + 1));
            Page {
                paragraphs: (0..PARAGRAPHS).map(|_| words(&mut chance)).collect(),
                links: (0..OWN_LINKS).map(|_| chance.below(1 << 20)).collect(),
                markup: 0,
                stamp: 0,
                noisy: chance.below(100) < 40,
                teasers: if chance.below(100) < 10 { 2 + chance.below(4) } else { 0 },
                born,
                dies,
                kind: Page::kind(&mut chance),
                at: 0.0,
            }
        })
        .collect();
    let folder = tempfile::tempdir()?;
    let archive = Archive::open(folder.path(), OpenOptions { disk_reserve_bytes: 0, ..OpenOptions::create() })?;
    let (changes, settings) = (Changes::default(), Settings::of(&archive)?);
    let (mut daily, mut stream, mut first_load, mut events, mut applied, mut wrong) = (0_u64, 0_u64, 0_u64, 0, 0, 0);
    let mut texts: HashMap<String, String> = HashMap::new();
    let mut sent: HashMap<u32, String> = HashMap::new();
    let mut kinds: BTreeMap<String, Cost> = BTreeMap::new();
    let (mut asked, mut died) = (0_u64, 0_u64);
    let mut from = From::Start;
    for day in 0..=DAYS {
        let mut pending = Vec::new();
        for number in 0..count {
            let law = web.page(number);
            let page = &mut pages[number as usize];
            if day < page.born {
                continue;
            }
            let until = 10.0 + day as f64;
            page.at = page.at.max(10.0);
            loop {
                let next = law.next_change(page.at);
                if next > until {
                    break;
                }
                page.change(&mut chance);
                page.at = next + 1e-6;
            }
            let is_dead = day >= page.dies;
            died += u64::from(day == page.dies);
            // Hosts take turns.
            let template = (day + i64::from(law.host) * 37 % TEMPLATE_DAYS) / TEMPLATE_DAYS;
            let body = match is_dead {
                true => "<h1>Not found</h1>".to_owned(),
                false => page.html(number, template, &mut chance),
            };
            if day > 0 {
                daily += body.len() as u64;
                asked += 1;
            }
            // The same bytes: a visit that brought nothing. That a page is not there is written down each time.
            if !is_dead && sent.get(&number) == Some(&body) {
                continue;
            }
            let url = format!("https://host-{}.example/{number}", law.host);
            let time_ms = START_MS + day * DAY_MS + i64::from(number);
            let status = if is_dead { "404 Not Found" } else { "200 OK" };
            let message =
                format!("HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            let mut id = [5; 16];
            id[..8].copy_from_slice(&((day as u64) << 32 | u64::from(number)).to_le_bytes());
            let mut bytes = Vec::new();
            Record::response(&RecordId::uuid(id), &rfc3339(time_ms), &url, message.as_bytes())
                .encode(&mut Encoder::new(Compression::Gzip(Level::LOWEST)), &mut bytes)?;
            let records = vec![Encoded::describing(bytes)?];
            pending.push(archive.append(Append { site_hash: Key::of(&url).site_hash(), records })?);
            sent.insert(number, body);
        }
        pending.into_iter().try_for_each(|pending| pending.wait().map(drop))?;
        changes.follow(&archive, START_MS, &mut |_| ())?;
        let mut failed = None;
        let reached = changes.read(&archive, &from, &Filter::default().with_text(), |cursor, kept| {
            let mut line = String::new();
            let delta = match Delta::of(&archive, &settings, kept) {
                Ok(delta) => delta,
                Err(error) => {
                    failed = Some(error);
                    return ControlFlow::Break(());
                }
            };
            kept.json_with(cursor, delta.as_ref(), &mut line);
            *(if day == 0 { &mut first_load } else { &mut stream }) += line.len() as u64 + 1;
            events += u64::from(day > 0);
            // From here on with what came over the wire alone.
            let told: Value = serde_json::from_str(&line).unwrap_or_default();
            if day > 0 {
                let class = kept.classes.first().map_or("taken back", |class| class.name());
                let cost = kinds.entry(class.to_owned()).or_default();
                let delta = &told["data"]["delta"];
                cost.events += 1;
                cost.bytes += line.len() as u64 + 1;
                cost.deltas += if delta.is_null() { 0 } else { delta.to_string().len() as u64 };
            }
            if let Some(delta) = Delta::read(&told["data"]["delta"]) {
                let text = texts.entry(kept.url.to_owned()).or_default();
                match delta.apply(text) {
                    Ok(now) => (*text, applied) = (now, applied + 1),
                    Err(_) => wrong += 1,
                }
            }
            ControlFlow::Continue(())
        })?;
        if let Some(error) = failed {
            return Err(error.into());
        }
        from = From::After(reached);
    }
    let page_bytes = daily / asked.max(1);
    let kinds: Vec<Value> = kinds
        .into_iter()
        .map(|(class, Cost { events, bytes, deltas })| {
            json!({ "class": class, "events": events, "bytes": bytes, "deltas": deltas })
        })
        .collect();
    let born = pages.iter().filter(|page| page.born > 0).count();
    let told = json!({
        "pages": count, "days": DAYS, "visits_per_day": 1, "page_bytes": page_bytes, "events": events, "applied": applied, "wrong": wrong,
        "daily": daily, "stream": stream, "first_load": first_load, "texts": texts.len(), "kinds": kinds, "born": born, "died": died,
    });
    println!("{told}");
    Ok(())
}
