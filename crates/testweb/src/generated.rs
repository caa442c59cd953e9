//! A generated host as a whole: items, sitemaps and feeds answered at any moment.

use std::fmt::Write as _;
use std::io::Write as _;

use flate2::{Compression, GzBuilder};

use crate::answer::Answer;
use crate::clock::Time;
use crate::graph::{Element, Graph, Link};
use crate::layout::{Item, Kind};
use crate::limits::{FEED_ENTRIES, SITEMAP_URLS};
use crate::page;

/// The path of the index of sitemaps.
pub const SITEMAP_PATH: &str = "/sitemap.xml";
/// The paths of the feeds.
pub const FEED_PATHS: [&str; 2] = ["/feed.rss", "/feed.atom"];

impl Graph {
    /// What the host says about a path (with its query) at a moment.
    pub fn answer(&self, path: &str, t: Time) -> Answer {
        if t < self.layout.begin {
            return Answer::status(404);
        }
        if self.feeds && path == FEED_PATHS[0] {
            return self.rss(t);
        }
        if self.feeds && path == FEED_PATHS[1] {
            return self.atom(t);
        }
        if self.sitemaps
            && let Some(answer) = self.sitemap(path, t)
        {
            return answer;
        }
        let Some(item) = self.layout.item(path) else {
            return Answer::status(404);
        };
        self.item_answer(item, t)
    }

    /// What the host says about an item at a moment.
    pub fn item_answer(&self, item: Item, t: Time) -> Answer {
        let Item { kind, number } = item;
        let Some(version) = self.layout.version(item, t) else {
            let dead = self.layout.life(item).dies.is_some_and(|dies| t >= dies);
            return Answer::status(if dead { self.layout.life(item).dead_status } else { 404 });
        };
        let layout = &self.layout;
        match kind {
            Kind::Page => {
                let links = self.page_links(number, version, t);
                let body = page::html(layout, number, version, &links);
                Answer::found("text/html; charset=utf-8", body, self.page_since(number, version, t))
            }
            Kind::Style => {
                let body = page::css(version, &self.style_links(number));
                Answer::found("text/css; charset=utf-8", body, version.since)
            }
            Kind::Script => {
                Answer::found("text/javascript; charset=utf-8", page::script(layout, number, version), version.since)
            }
            Kind::File => {
                Answer::found("text/plain; charset=utf-8", page::text(layout, number, version), version.since)
            }
            Kind::Image => Answer::found("image/png", page::png(layout, number, version), version.since),
            Kind::Redirect => {
                let redirect = self.redirect(number);
                Answer::redirect(redirect.status, &redirect.to.written)
            }
            Kind::Missing | Kind::Robots | Kind::Sitemap | Kind::Feed => Answer::status(404),
        }
    }

    /// The links of an item at a moment.
    pub fn links(&self, item: Item, t: Time) -> Vec<Link> {
        match (item.kind, self.layout.version(item, t)) {
            (Kind::Page, Some(version)) => self.page_links(item.number, version, t),
            (Kind::Style, Some(_)) => self.style_links(item.number),
            (Kind::Redirect, Some(_)) => vec![self.redirect(item.number).to],
            _ => Vec::new(),
        }
    }

    /// The paths of the sitemaps below the index; every second is compressed.
    pub fn sitemap_paths(&self) -> impl Iterator<Item = String> + use<> {
        let parts = (self.layout.shape.pages as usize).div_ceil(SITEMAP_URLS);
        (0..parts).map(|part| format!("/sitemap-{}.xml{}", part, if part % 2 == 1 { ".gz" } else { "" }))
    }

    /// What a sitemap or feed lists at a moment.
    pub fn listed(&self, path: &str, t: Time) -> Vec<Link> {
        let listed = |url: String| Link { element: Element::Listed, written: url.clone(), url };
        if path == SITEMAP_PATH {
            return self.sitemap_paths().map(|path| listed(format!("{}{path}", self.layout.base))).collect();
        }
        if FEED_PATHS.contains(&path) {
            return self.latest(t).into_iter().map(|(page, _)| listed(self.page_url(page))).collect();
        }
        match self.sitemap_paths().position(|p| p == path) {
            Some(part) => self.living(part, t).map(|(page, _)| listed(self.page_url(page))).collect(),
            None => Vec::new(),
        }
    }

    fn sitemap(&self, path: &str, t: Time) -> Option<Answer> {
        if path == SITEMAP_PATH {
            let mut out = String::from(
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
                 <sitemapindex xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n",
            );
            let mut since = self.layout.begin;
            for (part, path) in self.sitemap_paths().enumerate() {
                let part_since = self.part_since(part, t);
                since = since.max(part_since);
                let url = page::escape(&format!("{}{path}", self.layout.base));
                let _ = writeln!(out, "<sitemap><loc>{url}</loc><lastmod>{part_since}</lastmod></sitemap>");
            }
            out.push_str("</sitemapindex>\n");
            return Some(Answer::found("application/xml", out, since));
        }
        if !path.starts_with("/sitemap-") {
            return None;
        }
        let part = self.sitemap_paths().position(|p| p == path)?;
        let mut out = String::from(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n",
        );
        for (page, since) in self.living(part, t) {
            let url = page::escape(&self.page_url(page));
            let _ = writeln!(out, "<url><loc>{url}</loc><lastmod>{since}</lastmod></url>");
        }
        out.push_str("</urlset>\n");
        let since = self.part_since(part, t);
        if !path.ends_with(".gz") {
            return Some(Answer::found("application/xml", out, since));
        }
        let mut gzip = GzBuilder::new().mtime(0).write(Vec::new(), Compression::new(6));
        gzip.write_all(out.as_bytes()).expect("a Vec takes everything");
        Some(Answer::found("application/gzip", gzip.finish().expect("a Vec takes everything"), since))
    }

    /// The living pages of a part of the sitemap, each with the moment it became what it is.
    fn living(&self, part: usize, t: Time) -> impl Iterator<Item = (u32, Time)> + '_ {
        let first = part * SITEMAP_URLS;
        let end = (first + SITEMAP_URLS).min(self.layout.shape.pages as usize);
        (first as u32..end as u32).filter_map(move |number| {
            let version = self.layout.version(Item { kind: Kind::Page, number }, t)?;
            Some((number, self.page_since(number, version, t)))
        })
    }

    /// A part of the sitemap changes with each of its pages, also when one dies.
    fn part_since(&self, part: usize, t: Time) -> Time {
        let first = part * SITEMAP_URLS;
        let end = (first + SITEMAP_URLS).min(self.layout.shape.pages as usize);
        let deaths = (first as u32..end as u32)
            .filter_map(|number| self.layout.life(Item { kind: Kind::Page, number }).dies)
            .filter(|dies| *dies <= t);
        self.living(part, t).map(|(_, since)| since).chain(deaths).fold(self.layout.begin, Time::max)
    }

    /// The pages that changed last, newest first.
    fn latest(&self, t: Time) -> Vec<(u32, Time)> {
        let parts = (self.layout.shape.pages as usize).div_ceil(SITEMAP_URLS);
        let mut pages: Vec<(u32, Time)> = (0..parts).flat_map(|part| self.living(part, t)).collect();
        pages.sort_by_key(|(page, since)| (std::cmp::Reverse(*since), *page));
        pages.truncate(FEED_ENTRIES);
        pages
    }

    fn rss(&self, t: Time) -> Answer {
        let base = page::escape(&self.layout.base);
        let mut out = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<rss version=\"2.0\"><channel>\n<title>{base}</title>\
             <link>{base}/</link><description>What changed last</description>\n"
        );
        let latest = self.latest(t);
        for (number, since) in &latest {
            let (url, title) = (page::escape(&self.page_url(*number)), page::title(&self.layout, *number));
            let _ = writeln!(
                out,
                "<item><title>{title}</title><link>{url}</link><guid>{url}</guid><pubDate>{}</pubDate></item>",
                since.rss()
            );
        }
        out.push_str("</channel></rss>\n");
        Answer::found("application/rss+xml", out, self.feed_since(t))
    }

    fn atom(&self, t: Time) -> Answer {
        let base = page::escape(&self.layout.base);
        let since = self.feed_since(t);
        let mut out = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\">\n\
             <title>{base}</title><id>{base}/</id><updated>{since}</updated>\n"
        );
        for (number, since) in self.latest(t) {
            let (url, title) = (page::escape(&self.page_url(number)), page::title(&self.layout, number));
            let _ = writeln!(
                out,
                "<entry><title>{title}</title><id>{url}</id><link href=\"{url}\"/><updated>{since}</updated></entry>"
            );
        }
        out.push_str("</feed>\n");
        Answer::found("application/atom+xml", out, since)
    }

    // A death can bring an older page back into the feed, so deaths date it too.
    fn feed_since(&self, t: Time) -> Time {
        let parts = (self.layout.shape.pages as usize).div_ceil(SITEMAP_URLS);
        (0..parts).map(|part| self.part_since(part, t)).fold(self.layout.begin, Time::max)
    }

    fn page_url(&self, number: u32) -> String {
        format!("{}{}", self.layout.base, self.layout.path(Item { kind: Kind::Page, number }))
    }
}
