//! Everything that a portal is asked for, and what must hold of each answer while a crawl writes.

use crate::client::{Client, Got};
use crate::truth::{Page, Truth, now_ms};
use skep_warc::digest::{Algorithm, Digest};
use std::collections::BTreeSet;

/// Somebody who asks.
pub struct Asker<'t> {
    pub client: Client,
    pub truth: &'t Truth,
    /// `replay.localhost:PORT`.
    pub replay: String,
}

/// A line of an index: time and digest.
type Line = (String, String);

/// What can be asked for, by name.
pub const ALL: [&str; 12] = [
    "newest",
    "listed",
    "raw",
    "rewritten",
    "timegate",
    "timemap",
    "url",
    "statistics",
    "completeness",
    "records",
    "pages",
    "service",
];

fn must(holds: bool, told: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(told()) }
}

fn sha1(bytes: &[u8]) -> String {
    Digest::of(Algorithm::Sha1, bytes).base32()
}

/// A URL as the value of a parameter.
fn value(url: &str) -> String {
    let escape = |byte: u8| match byte {
        b'?' | b'&' | b'=' | b'%' | b'+' | b'#' => format!("%{byte:02X}"),
        _ => char::from(byte).to_string(),
    };
    url.bytes().map(escape).collect()
}

fn second_ms(digits: &str) -> Result<i64, String> {
    skep_warc::date::parse_ms(digits.as_bytes()).ok_or_else(|| format!("{digits:?} is no time"))
}

fn json(got: &Got) -> Result<serde_json::Value, String> {
    serde_json::from_slice(&got.body).map_err(|error| format!("{error}: {}", got.text()))
}

/// What a page says, whatever its addresses have become.
fn words(html: &str) -> String {
    let (mut out, mut rest) = (String::new(), html);
    while let Some(open) = rest.find('<') {
        out.push_str(&rest[..open]);
        rest = &rest[open..];
        let end = if rest.starts_with("<script") { "</script>" } else { ">" };
        rest = rest.find(end).map_or("", |at| &rest[at + end.len()..]);
    }
    out.push_str(rest);
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Asker<'_> {
    /// Asks for one thing about a page; an error says what does not hold.
    pub fn ask(&mut self, what: &str, page: &Page, draw: u64) -> Result<(), String> {
        let asked = match what {
            "newest" => self.newest(page, draw),
            "listed" => self.listed(page, draw).map(drop),
            "raw" => self.raw(page, draw),
            "rewritten" => self.rewritten(page, draw),
            "timegate" => self.timegate(page),
            "timemap" => self.timemap(page, draw),
            "url" => self.url(page),
            "statistics" => self.statistics(),
            "completeness" => self.completeness(page),
            "records" => self.records(page),
            "pages" => self.pages(page, draw),
            "service" => self.service(),
            other => Err(format!("nobody knows how to ask for {other}")),
        };
        asked.map_err(|why| format!("{what} of {} (pass {}, {} captures): {why}", page.url, page.pass, page.captures))
    }

    fn get(&mut self, target: &str) -> Result<Got, String> {
        self.expect(200, None, target, "")
    }

    fn expect(&mut self, status: u16, host: Option<&str>, target: &str, more: &str) -> Result<Got, String> {
        let got = self.client.get(host, target, more)?;
        must(got.status == status, || format!("{target}: {}\n{}", got.head, got.text()))?;
        Ok(got)
    }

    /// What an address leads to.
    fn led(&mut self, target: &str, more: &str) -> Result<(String, Got), String> {
        let led = self.expect(302, None, target, more)?;
        let to = led.header("location").ok_or_else(|| led.head.clone())?.to_owned();
        let path = to.strip_prefix(&format!("http://{}", self.client.address())).unwrap_or(&to);
        let got = self.get(path)?;
        Ok((to, got))
    }

    /// Lines of the index in one of its dialects.
    fn lines(&mut self, url: &str, dialect: u64, newest: bool) -> Result<Vec<Line>, String> {
        let url = value(url);
        let (target, time, digest) = match (dialect % 3, newest) {
            (0, false) => (format!("/cdx/search/cdx?url={url}&fl=timestamp,digest"), 0, 1),
            (0, true) => (format!("/cdx/search/cdx?url={url}&fl=timestamp,digest&limit=-1"), 0, 1),
            (1, false) => (format!("/cdx?url={url}&output=text&fields=timestamp,digest"), 0, 1),
            (1, true) => (format!("/cdx?url={url}&output=text&fields=timestamp,digest&sort=reverse&limit=1"), 0, 1),
            (_, false) => (format!("/web?url={url}"), 1, 5),
            (_, true) => (format!("/web?url={url}&sort=reverse&limit=1"), 1, 5),
        };
        let got = self.get(&target)?;
        let line = |line: &str| {
            let fields: Vec<&str> = line.split(' ').collect();
            match (fields.get(time), fields.get(digest)) {
                (Some(time), Some(digest)) => Ok(((*time).to_owned(), (*digest).to_owned())),
                _ => Err(format!("{target}: {line:?}")),
            }
        };
        got.text().lines().map(line).collect()
    }

    /// The newest capture is at least as new as what was acknowledged before it was asked for.
    fn newest(&mut self, page: &Page, draw: u64) -> Result<(), String> {
        let lines = self.lines(&page.url, draw, true)?;
        let wanted = self.truth.newest(page);
        must(lines.len() == 1 && wanted.contains(&lines[0].1), || format!("stale: {lines:?}, not {wanted:?}"))
    }

    /// All captures are listed, each with the digest of what was said at its time; they are told.
    fn listed(&mut self, page: &Page, draw: u64) -> Result<Vec<Line>, String> {
        let lines = self.lines(&page.url, draw, false)?;
        must(lines.len() as u64 >= page.captures, || format!("stale: {} captures: {lines:?}", lines.len()))?;
        must(lines.is_sorted_by(|a, b| a.0 <= b.0), || format!("out of order: {lines:?}"))?;
        // One of them, and the last.
        let one = (draw >> 8) as usize % lines.len().max(1);
        for (time, digest) in lines.iter().skip(one).take(1).chain(lines.last()) {
            self.is_of_its_time(&page.url, time, digest)?;
        }
        Ok(lines)
    }

    fn is_of_its_time(&self, url: &str, time: &str, digest: &str) -> Result<(), String> {
        let wanted = self.truth.at(url, second_ms(time)?);
        must(wanted.contains(digest), || format!("{digest} at {time}, when the web said {wanted:?}"))
    }

    /// One of the captures of a page: its time, and the digests of those of the same second.
    fn one(&mut self, page: &Page, draw: u64) -> Result<(String, BTreeSet<String>), String> {
        let lines = self.listed(page, draw)?;
        // Every other time the newest, where there is most to do.
        let at = if draw & 1 == 0 { lines.len() - 1 } else { (draw >> 16) as usize % lines.len() };
        let time = lines[at].0.clone();
        let digests = lines.iter().filter(|line| line.0 == time).map(|line| line.1.clone()).collect();
        Ok((time, digests))
    }

    fn raw(&mut self, page: &Page, draw: u64) -> Result<(), String> {
        let (time, digests) = self.one(page, draw)?;
        let got = self.get(&format!("/web/{time}id_/{}", page.url))?;
        let digest = sha1(&got.body);
        must(digests.contains(&digest), || format!("torn: {digest} at {time}, listed as {digests:?}"))?;
        must(got.header("memento-datetime").is_some(), || got.head.clone())?;
        // The newest there is, without having asked when that is.
        let (to, got) = self.led(&format!("/web/2099id_/{}", page.url), "")?;
        let (digest, wanted) = (sha1(&got.body), self.truth.newest(page));
        must(wanted.contains(&digest), || format!("stale: {to} is {digest}, not {wanted:?}"))
    }

    /// Led to where the archive is, a page says what it said.
    fn rewritten(&mut self, page: &Page, draw: u64) -> Result<(), String> {
        let (time, digests) = self.one(page, draw)?;
        let replay = self.replay.clone();
        let got = self.expect(200, Some(&replay), &format!("/web/{time}mp_/{}", page.url), "")?;
        if digests.len() > 1 || !got.header("content-type").is_some_and(|kind| kind.starts_with("text/html")) {
            return Ok(());
        }
        let raw = self.get(&format!("/web/{time}id_/{}", page.url))?;
        let (shown, said) = (words(&got.text()), words(&raw.text()));
        must(shown == said, || format!("torn: at {time} it shows\n{shown}\nwhere it said\n{said}"))?;
        must(got.text().trim_end().ends_with("</html>"), || got.text())
    }

    fn timegate(&mut self, page: &Page) -> Result<(), String> {
        let more = "Accept-Datetime: Thu, 31 Dec 2099 00:00:00 GMT\r\n";
        let (to, got) = self.led(&format!("/web/{}", page.url), more)?;
        let (digest, wanted) = (sha1(&got.body), self.truth.newest(page));
        must(wanted.contains(&digest), || format!("stale: {to} is {digest}, not {wanted:?}"))
    }

    fn timemap(&mut self, page: &Page, draw: u64) -> Result<(), String> {
        let format = ["link", "json"][(draw % 2) as usize];
        let got = self.get(&format!("/web/timemap/{format}/{}", page.url))?;
        let count = match format {
            "json" => json(&got)?["mementos"]["list"].as_array().map_or(0, Vec::len),
            _ => got.text().matches("rel=\"memento\"").count(),
        };
        must(count as u64 >= page.captures, || format!("stale: {count} mementos:\n{}", got.text()))
    }

    fn url(&mut self, page: &Page) -> Result<(), String> {
        let told = json(&self.get(&format!("/api/v1/url?url={}", value(&page.url)))?)?;
        must(told["captures_total"].as_u64() >= Some(page.captures), || format!("stale: {told}"))?;
        let versions = told["versions"].as_array().map_or(0, Vec::len) as u64;
        if told["versions_total"].as_u64() > Some(versions) {
            return Ok(());
        }
        let digest = told["versions"].as_array().and_then(|all| all.last()).map(|last| last["digest"].clone());
        let digest = digest.as_ref().and_then(|digest| digest.as_str()).unwrap_or_default().to_owned();
        let wanted = self.truth.newest(page);
        must(wanted.contains(digest.trim_start_matches("sha1:")), || format!("stale: {digest}, not {wanted:?}"))
    }

    /// Sums may be some seconds old, and say so; of that time they are right.
    fn statistics(&mut self) -> Result<(), String> {
        let told = json(&self.get("/api/v1/statistics")?)?;
        let counted = told["counted"].as_str().unwrap_or_default();
        let counted_ms = skep_warc::date::parse_ms(counted.as_bytes()).ok_or_else(|| format!("{counted:?}"))?;
        let least = self.truth.captures_by(counted_ms);
        let most_old_ms = 60_000;
        must(now_ms() - counted_ms < most_old_ms, || format!("counted {counted}"))?;
        must(told["captures"].as_u64() >= Some(least), || format!("stale: {} of {least} captures", told["captures"]))
    }

    fn completeness(&mut self, page: &Page) -> Result<(), String> {
        // Only pages have parts.
        let got = self.client.get(None, &format!("/api/v1/completeness?url={}", value(&page.url)), "")?;
        let told = json(&got)?;
        must(matches!(got.status, 200 | 404 | 422), || format!("{}: {told}", got.status))
    }

    fn records(&mut self, page: &Page) -> Result<(), String> {
        let got = self.get(&format!("/api/v1/records?url={}&limit=3", value(&page.url)))?;
        let mut file = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
        std::io::Write::write_all(&mut file, &got.body).map_err(|error| error.to_string())?;
        let strict = skep_warc::Options::strict();
        let mut reader = skep_warc::Reader::open(file.path(), strict).map_err(|error| error.to_string())?;
        let mut count = 0;
        while let Some(record) = reader.next().map_err(|error| error.to_string())? {
            let end = record.finish().map_err(|error| error.to_string())?;
            must(end.block_bytes > 0, || "an empty record".to_owned())?;
            count += 1;
        }
        must(count >= page.captures.min(3), || format!("{count} records"))
    }

    fn pages(&mut self, page: &Page, draw: u64) -> Result<(), String> {
        let host = page.url.trim_start_matches("http://").split('/').next().unwrap_or_default().to_owned();
        let (time, _) = self.one(page, draw)?;
        let targets = [
            "/".to_owned(),
            format!("/web/*/{}", page.url),
            format!("/url?url={}", value(&page.url)),
            format!("/compare?url={}", value(&page.url)),
            "/statistics".to_owned(),
            format!("/search?q={host}"),
            "/files".to_owned(),
            format!("/web/{time}/{}", page.url),
        ];
        let target = &targets[draw as usize % targets.len()];
        let got = self.get(target)?;
        must(got.text().trim_end().ends_with("</html>"), || format!("torn: {target}\n{}", got.text()))
    }

    fn service(&mut self) -> Result<(), String> {
        let told = json(&self.get("/health")?)?;
        must(told["status"] == "ok", || told.to_string())?;
        let metrics = self.get("/metrics")?.text();
        must(metrics.contains("skep_captures"), || metrics)
    }
}
