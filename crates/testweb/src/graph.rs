//! The links of generated hosts, as a pure function of the moment.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::chance::Chance;
use crate::clock::Time;
use crate::layout::{Alters, Item, Kind, Layout, Version};

/// By what an address is linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Element {
    /// `<a href>`.
    A,
    /// `<img src>`.
    Img,
    /// `<img srcset>`.
    Srcset,
    /// `<link rel=stylesheet>`.
    Stylesheet,
    /// `<script src>`.
    Script,
    /// `<link rel=alternate>`, to a feed.
    Alternate,
    /// `@import` in a style sheet.
    Import,
    /// `url()` in a style sheet.
    Background,
    /// The `Location` header of a redirect.
    Location,
    /// An entry of a sitemap, a feed, or the `Sitemap` line of a robots.txt.
    Listed,
}

/// One link as the truth knows it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Link {
    /// By what.
    pub element: Element,
    /// Where to, absolute and without fragment.
    pub url: String,
    /// As it stands in the document, before any escaping.
    #[serde(skip)]
    pub written: String,
}

/// Where a redirect leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// 301, 302, 303, 307 or 308.
    pub status: u16,
    /// Where to.
    pub to: Link,
}

/// A generated host among its neighbours.
#[derive(Clone, Debug)]
pub struct Graph {
    /// Its ground plan.
    pub layout: Layout,
    /// The other generated hosts it may link to.
    pub neighbours: Arc<[Layout]>,
    /// It has feeds, and its home page names them.
    pub feeds: bool,
    /// It has sitemaps.
    pub sitemaps: bool,
}

impl Graph {
    /// The links of a page, in the order they stand in it.
    pub fn page_links(&self, page: u32, version: Version, t: Time) -> Vec<Link> {
        let layout = &self.layout;
        let from = layout.path(Item { kind: Kind::Page, number: page });
        let chance = layout.chance_of(Item { kind: Kind::Page, number: page }).at(5);
        let mut links = Vec::new();
        let mut add = |element, kind, number| {
            let to = layout.path(Item { kind, number });
            links.push(self.link(&from, element, layout, &to, chance.at(1).at(links.len() as u64)));
        };

        for style in self.drawn_and_hung(page, Kind::Style, 1, chance) {
            add(Element::Stylesheet, Kind::Style, style);
        }
        for script in self.drawn_and_hung(page, Kind::Script, 1, chance) {
            add(Element::Script, Kind::Script, script);
        }
        for (place, image) in self.drawn_and_hung(page, Kind::Image, 2, chance).into_iter().enumerate() {
            add(if place % 4 == 3 { Element::Srcset } else { Element::Img }, Kind::Image, image);
        }
        for child in layout.children(page).filter(|child| self.shows(*child, t)) {
            add(Element::A, Kind::Page, child);
        }
        for kind in [Kind::File, Kind::Redirect, Kind::Missing] {
            layout.hung_on(page, kind).for_each(|number| add(Element::A, kind, number));
        }
        // Only pages that live for ever are linked from afar: a link then never depends on another page's life.
        let draw = match layout.alters(page) {
            Alters::Links => chance.at(2).at(version.number),
            Alters::Text | Alters::Markup => chance.at(2),
        };
        for more in 0..layout.shape.links_more {
            let to = draw.at(1).at(u64::from(more)).below(u64::from(layout.inner_pages())) as u32;
            add(Element::A, Kind::Page, to);
        }
        for off in 0..if self.neighbours.is_empty() { 0 } else { layout.shape.links_off } {
            let draw = draw.at(2).at(u64::from(off));
            let there = draw.at(1).pick(&self.neighbours);
            // Half of the links between hosts go to the home page, as on the web.
            let number = if draw.at(2).permille(500) { 0 } else { draw.at(3).below(u64::from(there.inner_pages())) };
            let to = there.path(Item { kind: Kind::Page, number: number as u32 });
            links.push(self.link(&from, Element::A, there, &to, draw.at(4)));
        }
        if self.feeds && page == 0 {
            for feed in ["/feed.rss", "/feed.atom"] {
                links.push(self.link(&from, Element::Alternate, layout, feed, chance.at(3)));
            }
        }
        links
    }

    /// The links of a style sheet.
    pub fn style_links(&self, style: u32) -> Vec<Link> {
        let layout = &self.layout;
        let from = layout.path(Item { kind: Kind::Style, number: style });
        let chance = layout.chance_of(Item { kind: Kind::Style, number: style }).at(5);
        let mut links = Vec::new();
        if style.is_multiple_of(3) && style + 1 < layout.count(Kind::Style) {
            let to = layout.path(Item { kind: Kind::Style, number: style + 1 });
            links.push(self.link(&from, Element::Import, layout, &to, chance.at(1)));
        }
        for draw in 0..2u64.min(u64::from(layout.count(Kind::Image))) {
            let number = chance.at(2).at(draw).below(u64::from(layout.count(Kind::Image))) as u32;
            let to = layout.path(Item { kind: Kind::Image, number });
            links.push(self.link(&from, Element::Background, layout, &to, chance.at(3).at(draw)));
        }
        links
    }

    /// Where a redirect leads: every fourth ends a chain, most others go on to the next, some leave the host.
    pub fn redirect(&self, number: u32) -> Redirect {
        let layout = &self.layout;
        let item = Item { kind: Kind::Redirect, number };
        let chance = layout.chance_of(item).at(5);
        let from = layout.path(item);
        let status = *chance.at(1).pick(&[301, 302, 303, 307, 308]);
        let chained = number % 4 != 3 && number + 1 < layout.count(Kind::Redirect) && chance.at(2).permille(400);
        let (there, to) = if chained {
            (layout, Item { kind: Kind::Redirect, number: number + 1 })
        } else if !self.neighbours.is_empty() && layout.shape.links_off > 0 && chance.at(3).permille(200) {
            (chance.at(4).pick(&self.neighbours), Item { kind: Kind::Page, number: 0 })
        } else {
            let inner = chance.at(5).below(u64::from(layout.inner_pages()));
            (layout, Item { kind: Kind::Page, number: inner as u32 })
        };
        Redirect { status, to: self.link(&from, Element::Location, there, &there.path(to), chance.at(6)) }
    }

    /// When the page last became what it is at `t`: its own change, or a child appearing or vanishing.
    pub fn page_since(&self, page: u32, version: Version, t: Time) -> Time {
        self.layout.children(page).fold(version.since, |since, child| {
            let life = self.layout.life(Item { kind: Kind::Page, number: child });
            let vanished = life.dies.filter(|_| !life.mourned);
            [Some(life.born), vanished].into_iter().flatten().filter(|event| *event <= t).fold(since, Time::max)
        })
    }

    fn shows(&self, child: u32, t: Time) -> bool {
        let life = self.layout.life(Item { kind: Kind::Page, number: child });
        life.born <= t && (life.mourned || life.dies.is_none_or(|dies| t < dies))
    }

    /// What hangs on the page, after up to `drawn` that it shares with others.
    fn drawn_and_hung(&self, page: u32, kind: Kind, drawn: u64, chance: Chance) -> Vec<u32> {
        let count = u64::from(self.layout.count(kind));
        let chance = chance.at(4).at(kind as u64);
        let mut numbers: Vec<u32> = (0..drawn.min(count)).map(|draw| chance.at(draw).below(count) as u32).collect();
        numbers.extend(self.layout.hung_on(page, kind));
        numbers.dedup();
        numbers
    }

    fn link(&self, from: &str, element: Element, there: &Layout, to: &str, chance: Chance) -> Link {
        let url = format!("{}{to}", there.base);
        let fragment = if element == Element::A && chance.at(1).permille(100) { "#part-2" } else { "" };
        let same_host = there.base == self.layout.base;
        let written = match chance.at(2).below(10) {
            0..4 if same_host => format!("{}{fragment}", relative(from, to)),
            4..8 if same_host => format!("{to}{fragment}"),
            // Without a scheme it stays within the scheme of the page, so only where both are the same.
            8 if scheme(&there.base) == scheme(&self.layout.base) => {
                format!("{}{to}{fragment}", &there.base[scheme(&there.base).len() + 1..])
            }
            _ => format!("{url}{fragment}"),
        };
        Link { element, url, written }
    }
}

fn scheme(base: &str) -> &str {
    base.split(':').next().unwrap_or_default()
}

/// How a document at `from` writes a path on its own host relative to itself.
fn relative(from: &str, to: &str) -> String {
    let folder = |path: &str| path.split('?').next().unwrap_or_default().rfind('/').unwrap_or(0) + 1;
    let (from_folder, to_folder) = (&from[..folder(from)], &to[..folder(to)]);
    let mut shared = 0;
    for (place, (a, b)) in from_folder.bytes().zip(to_folder.bytes()).enumerate() {
        if a != b {
            break;
        }
        if a == b'/' {
            shared = place + 1;
        }
    }
    let up = from_folder[shared..].matches('/').count();
    let rest = &to[shared..];
    match (up, rest) {
        (0, "") => "./".into(),
        (0, rest) if rest.starts_with('?') => format!("./{rest}"),
        (up, rest) => format!("{}{rest}", "../".repeat(up)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_addresses() {
        for (from, to, written) in [
            ("/", "/", "./"),
            ("/a/b.html", "/a/c.html", "c.html"),
            ("/a/b/", "/a/c.html", "../c.html"),
            ("/a/b/c.html", "/", "../../"),
            ("/a/view?id=1/2", "/a/view?id=2", "view?id=2"),
            ("/ab/c", "/a/c", "../a/c"),
            ("/", "/ab/c", "ab/c"),
        ] {
            assert_eq!(relative(from, to), written, "{from} {to}");
        }
    }
}
