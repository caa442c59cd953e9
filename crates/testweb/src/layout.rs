//! What stands on one generated host: its items, their paths, and when each is born, changes and dies.
//!
//! Pages form a tree: page 0 is `/`, and page `n` is linked from page `(n - 1) / fan_out`. Pages with children live for
//! ever, only leaves are born late or die, so at every moment each living page can be reached from `/`. Everything else
//! (images, styles, scripts, files, redirects, missing pages) hangs on pages with children, for the same reason.

use serde::{Deserialize, Serialize};

use crate::chance::Chance;
use crate::clock::Time;
use crate::limits;
use crate::words;

/// How large and how lively a generated host is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Shape {
    /// HTML pages, `/` included.
    pub pages: u32,
    /// PNG images.
    pub images: u32,
    /// Style sheets, which themselves need images and import each other.
    pub styles: u32,
    /// Scripts.
    pub scripts: u32,
    /// Plain text files.
    pub files: u32,
    /// Addresses that redirect, some in chains.
    pub redirects: u32,
    /// Addresses that are linked and have never been there.
    pub missing: u32,
    /// Children of one page in the tree.
    pub fan_out: u32,
    /// Further links of a page on its own host.
    pub links_more: u32,
    /// Links of a page to other generated hosts, where there are any.
    pub links_off: u32,
    /// Bytes of text of a page, from and up to; half of the pages are in the lowest eighth.
    pub text_bytes: (u32, u32),
    /// Of a thousand items, how many never change.
    pub still_permille: u32,
    /// Seconds between two changes of an item that changes, from and up to; spread evenly over the doublings.
    pub period_seconds: (u32, u32),
    /// Days after the beginning within which leaves are born and die.
    pub span_days: u32,
    /// Of a thousand leaves, how many are born after the beginning.
    pub late_permille: u32,
    /// Of a thousand leaves, how many die.
    pub mortal_permille: u32,
}

impl Default for Shape {
    fn default() -> Self {
        Shape {
            pages: 100,
            images: 20,
            styles: 2,
            scripts: 2,
            files: 5,
            redirects: 8,
            missing: 4,
            fan_out: 10,
            links_more: 6,
            links_off: 2,
            text_bytes: (1_000, 30_000),
            still_permille: 400,
            period_seconds: (600, 30 * 86_400),
            span_days: 365,
            late_permille: 300,
            mortal_permille: 200,
        }
    }
}

impl Shape {
    /// A host of about this many pages with everything else in proportion.
    pub fn pages(pages: u32) -> Shape {
        let of = |divisor: u32| pages.div_ceil(divisor);
        Shape { pages, images: of(5), files: of(20), redirects: of(12), missing: of(25), ..Shape::default() }
    }

    /// The same host on which nothing ever changes, is born or dies.
    pub fn frozen(self) -> Shape {
        Shape { still_permille: 1000, late_permille: 0, mortal_permille: 0, ..self }
    }

    /// What is wrong with it, if anything.
    pub(crate) fn fault(&self) -> Option<String> {
        let counts = [self.images, self.styles, self.scripts, self.files, self.redirects, self.missing, self.pages];
        if let Some(count) = counts.iter().find(|c| **c > limits::ITEMS_MAX) {
            return Some(format!("{count} items of one kind are more than {}", limits::ITEMS_MAX));
        }
        if self.pages == 0 {
            return Some("`pages` is 0; a host has at least its home page".into());
        }
        if self.fan_out == 0 || self.fan_out > limits::FAN_OUT_MAX {
            return Some(format!("`fan_out` is {}; it must be 1 to {}", self.fan_out, limits::FAN_OUT_MAX));
        }
        if self.links_more > limits::FAN_OUT_MAX || self.links_off > limits::FAN_OUT_MAX {
            return Some(format!("a page has at most {} links of each kind", limits::FAN_OUT_MAX));
        }
        if self.text_bytes.0 > self.text_bytes.1 || self.text_bytes.1 > limits::PAGE_BYTES_MAX {
            return Some(format!("`text_bytes` must be [from, up to], at most {}", limits::PAGE_BYTES_MAX));
        }
        if self.period_seconds.0 == 0 || self.period_seconds.0 > self.period_seconds.1 {
            return Some("`period_seconds` must be [from, up to], at least 1".into());
        }
        None
    }
}

/// What an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// An HTML page.
    Page,
    /// A PNG image.
    Image,
    /// A style sheet.
    Style,
    /// A script.
    Script,
    /// A text file; on a served folder or history, any file.
    File,
    /// A redirect.
    Redirect,
    /// An address that has never been there.
    Missing,
    /// robots.txt and what it redirects to.
    Robots,
    /// A sitemap or the index of them.
    Sitemap,
    /// An RSS or Atom feed.
    Feed,
}

/// The kinds that a layout counts.
pub const KINDS: [Kind; 7] =
    [Kind::Page, Kind::Image, Kind::Style, Kind::Script, Kind::File, Kind::Redirect, Kind::Missing];

/// One item of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Item {
    /// What it is.
    pub kind: Kind,
    /// Which of them.
    pub number: u32,
}

/// When an item is there and how it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    /// There from this moment.
    pub born: Time,
    /// Not there from this moment.
    pub dies: Option<Time>,
    /// Time between two changes; changes come late by up to half of it.
    pub period_ms: Option<i64>,
    /// Status of an item that died: 404 or 410.
    pub dead_status: u16,
    /// Its parent goes on linking to it after its death.
    pub mourned: bool,
}

/// What alters when a page changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Alters {
    /// One paragraph.
    Text,
    /// The further links.
    Links,
    /// A comment nobody sees.
    Markup,
}

/// The state an item is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// Changes since birth.
    pub number: u64,
    /// The moment of the latest one.
    pub since: Time,
}

/// The first segments of paths; robots.txt variants refer to them.
pub const SECTIONS: [&str; 8] = ["news", "docs", "shop", "blog", "archive", "people", "private", "search"];

/// The ground plan of one generated host.
#[derive(Clone, Debug)]
pub struct Layout {
    /// `scheme://name[:port]`, without a slash at its end.
    pub base: String,
    /// From which everything about the host is drawn.
    pub chance: Chance,
    /// When the host appears.
    pub begin: Time,
    /// How large and lively it is.
    pub shape: Shape,
}

impl Layout {
    /// How many items of a kind there are.
    pub fn count(&self, kind: Kind) -> u32 {
        match kind {
            Kind::Page => self.shape.pages,
            Kind::Image => self.shape.images,
            Kind::Style => self.shape.styles,
            Kind::Script => self.shape.scripts,
            Kind::File => self.shape.files,
            Kind::Redirect => self.shape.redirects,
            Kind::Missing => self.shape.missing,
            Kind::Robots | Kind::Sitemap | Kind::Feed => 0,
        }
    }

    /// Every item that is ever there, and the missing ones.
    pub fn items(&self) -> impl Iterator<Item = Item> + '_ {
        KINDS.iter().flat_map(|&kind| (0..self.count(kind)).map(move |number| Item { kind, number }))
    }

    /// Pages with children: there from the beginning, for ever.
    pub fn inner_pages(&self) -> u32 {
        (self.shape.pages - 1).div_ceil(self.shape.fan_out).max(1)
    }

    /// The children of a page in the tree, living or not.
    pub fn children(&self, page: u32) -> impl Iterator<Item = u32> + use<> {
        let first = u64::from(page) * u64::from(self.shape.fan_out) + 1;
        let end = (first + u64::from(self.shape.fan_out)).min(u64::from(self.shape.pages));
        (first..end).map(|n| n as u32)
    }

    /// The items of a kind that hang on a page.
    pub fn hung_on(&self, page: u32, kind: Kind) -> impl Iterator<Item = u32> + use<> {
        let inner = self.inner_pages();
        let end = if page < inner { self.count(kind) } else { 0 };
        (page..end).step_by(inner as usize)
    }

    pub(crate) fn chance_of(&self, item: Item) -> Chance {
        self.chance.at(item.kind as u64).at(u64::from(item.number))
    }

    /// Path and query of an item.
    pub fn path(&self, item: Item) -> String {
        let n = item.number;
        if (item.kind, n) == (Kind::Page, 0) {
            return "/".into();
        }
        let chance = self.chance_of(item).at(1);
        let word = words::word(chance.at(1));
        match item.kind {
            Kind::Page => {
                let section = chance.at(2).pick(&SECTIONS);
                match chance.at(3).below(10) {
                    0..5 => format!("/{section}/{word}-{n}.html"),
                    5..7 => format!("/{section}/{word}-{n}/"),
                    7 => format!("/{section}/view?id={n}"),
                    8 => format!("/{section}/view?lang=en&id={n}"),
                    _ => format!("/{section}/{word}%20{}-{n}.html", words::word(chance.at(4))),
                }
            }
            Kind::Image => format!("/images/{word}-{n}.png"),
            Kind::Style => format!("/styles/{word}-{n}.css"),
            Kind::Script => format!("/scripts/{word}-{n}.js"),
            Kind::File => format!("/files/{word}-{n}.txt"),
            Kind::Redirect => format!("/moved/{word}-{n}"),
            Kind::Missing => format!("/missing/{word}-{n}.html"),
            Kind::Robots | Kind::Sitemap | Kind::Feed => String::new(),
        }
    }

    /// The item at a path with its query: the inverse of [`Layout::path`].
    pub fn item(&self, path: &str) -> Option<Item> {
        if path == "/" {
            return Some(Item { kind: Kind::Page, number: 0 });
        }
        let kind = match path.get(1..)?.split('/').next()? {
            "images" => Kind::Image,
            "styles" => Kind::Style,
            "scripts" => Kind::Script,
            "files" => Kind::File,
            "moved" => Kind::Redirect,
            "missing" => Kind::Missing,
            _ => Kind::Page,
        };
        // The number is the last run of digits in every form of path.
        let tail = path.trim_end_matches(|c: char| !c.is_ascii_digit());
        let digits = &tail[tail.trim_end_matches(|c: char| c.is_ascii_digit()).len()..];
        let item = Item { kind, number: digits.parse().ok()? };
        (item.number < self.count(kind) && self.path(item) == path).then_some(item)
    }

    /// When an item is there and how it changes.
    pub fn life(&self, item: Item) -> Life {
        let chance = self.chance_of(item).at(2);
        let shape = &self.shape;
        let span_ms = u64::from(shape.span_days) * 86_400_000;
        let leaf = item.kind == Kind::Page && item.number >= self.inner_pages();
        let late = leaf && chance.at(1).permille(shape.late_permille);
        let born = if late { self.begin.plus_ms(whole_seconds(chance.at(2).below(span_ms))) } else { self.begin };
        let mortal = leaf && chance.at(3).permille(shape.mortal_permille);
        let dies = mortal.then(|| born.plus_ms(1_000 + whole_seconds(chance.at(4).below(span_ms))));
        let changes = !matches!(item.kind, Kind::Redirect | Kind::Missing);
        let period_ms = (changes && !chance.at(5).permille(shape.still_permille)).then(|| self.period_ms(chance.at(6)));
        Life {
            born,
            dies,
            period_ms,
            dead_status: if chance.at(7).permille(300) { 410 } else { 404 },
            mourned: chance.at(8).permille(250),
        }
    }

    fn period_ms(&self, chance: Chance) -> i64 {
        let (least, most) = (u64::from(self.shape.period_seconds.0), u64::from(self.shape.period_seconds.1));
        let doublings = u64::from((most / least).ilog2());
        let from = least << chance.at(1).below(doublings + 1);
        let seconds = (from + chance.at(2).below(from)).min(most);
        seconds as i64 * 1_000
    }

    /// What alters when this page changes.
    pub fn alters(&self, page: u32) -> Alters {
        match self.chance_of(Item { kind: Kind::Page, number: page }).at(3).below(10) {
            0..7 => Alters::Text,
            7..9 => Alters::Links,
            _ => Alters::Markup,
        }
    }

    /// The item's version at a moment; `None` before birth and after death.
    ///
    /// Change `k` happens at `born + k × period + lateness(k)`, lateness below half a period, always on a whole second,
    /// so that `Last-Modified` tells every version from the next.
    pub fn version(&self, item: Item, t: Time) -> Option<Version> {
        let life = self.life(item);
        if t < life.born || life.dies.is_some_and(|dies| t >= dies) {
            return None;
        }
        let Some(period) = life.period_ms else {
            return Some(Version { number: 0, since: life.born });
        };
        let chance = self.chance_of(item).at(4);
        let change = |k: i64| {
            let lateness = whole_seconds(chance.at(k as u64).below(period as u64 / 2));
            life.born.plus_ms(k.saturating_mul(period).saturating_add(lateness))
        };
        let mut k = (t.ms() - life.born.ms()) / period;
        if k > 0 && change(k) > t {
            k -= 1;
        }
        Some(Version { number: k as u64, since: if k == 0 { life.born } else { change(k) } })
    }
}

fn whole_seconds(ms: u64) -> i64 {
    (ms / 1_000 * 1_000) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(shape: Shape) -> Layout {
        Layout { base: "http://a.test".into(), chance: Chance::new(1).of("a.test"), begin: Time::BEGIN, shape }
    }

    #[test]
    fn every_path_leads_back_to_its_item() {
        let layout = layout(Shape::pages(3_000));
        for item in layout.items() {
            assert_eq!(layout.item(&layout.path(item)), Some(item));
        }
        for path in ["", "/x", "/news/wrong-1.html", "/images/x-99999999999999.png", "/moved/", "nonsense", "/é7"] {
            assert_eq!(layout.item(path), None, "{path}");
        }
    }

    #[test]
    fn versions_follow_each_other_without_gaps() {
        let layout = layout(Shape { period_seconds: (2, 100), ..Shape::pages(200) });
        let mut changes = 0;
        for number in 0..200 {
            let item = Item { kind: Kind::Page, number };
            let mut before: Option<Version> = None;
            for s in 0..2_000 {
                let now = layout.version(item, Time::BEGIN.plus_ms(s * 1_000));
                if let (Some(b), Some(n)) = (before, now) {
                    assert!(
                        n.number == b.number && n.since == b.since || n.number == b.number + 1 && n.since > b.since
                    );
                    assert!(n.since <= Time::BEGIN.plus_ms(s * 1_000));
                    changes += n.number - b.number;
                }
                before = now;
            }
        }
        assert!(changes > 1_000, "{changes}");
    }

    #[test]
    fn everything_hangs_somewhere_once() {
        let layout = layout(Shape::pages(777));
        let mut pages: Vec<u32> = (0..777).flat_map(|p| layout.children(p)).collect();
        let mut images: Vec<u32> = (0..777).flat_map(|p| layout.hung_on(p, Kind::Image)).collect();
        pages.sort_unstable();
        images.sort_unstable();
        assert_eq!(pages, (1..777).collect::<Vec<_>>());
        assert_eq!(images, (0..layout.shape.images).collect::<Vec<_>>());
        assert!((0..777).all(|p| (p < layout.inner_pages()) == (layout.children(p).count() > 0)));
    }

    #[test]
    fn a_tree_of_one_page_is_a_tree() {
        let layout = layout(Shape { pages: 1, ..Shape::default() });
        assert_eq!(layout.inner_pages(), 1);
        assert_eq!(layout.children(0).count(), 0);
        assert_eq!(layout.hung_on(0, Kind::Image).count(), 20);
    }
}
