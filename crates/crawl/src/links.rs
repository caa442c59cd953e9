//! The links of a page from visit to visit: the whole set once, then what came and what went, with a digest of the set.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::limits::{LINK_CHAIN_MAX, LINK_LINES_BYTES_MAX, LINKS_MAX};
use crate::lines::{is_word, push_word};

/// A link as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link<'a> {
    /// Where it leads, in fetch form.
    pub url: &'a str,
    /// The short word for its kind.
    pub code: &'a str,
    /// The page asked not to follow it.
    pub nofollow: bool,
}

/// A link as it was read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReadLink {
    /// Where it leads.
    pub url: String,
    /// The short word for its kind.
    pub code: String,
    /// The page asked not to follow it.
    pub nofollow: bool,
}

impl ReadLink {
    /// The link as it is written.
    pub fn as_link(&self) -> Link<'_> {
        Link { url: &self.url, code: &self.code, nofollow: self.nofollow }
    }
}

/// The digest of a set of links: the first 16 bytes of the BLAKE3 of their lines in the order of their URLs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LinksDigest(pub [u8; 16]);

impl fmt::Display for LinksDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("blake3:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for LinksDigest {
    type Err = ();

    fn from_str(text: &str) -> Result<LinksDigest, ()> {
        let digits = text.strip_prefix("blake3:").ok_or(())?;
        let plain = digits.len() == 32 && digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        let number = u128::from_str_radix(digits, 16).map_err(|_| ())?;
        if plain { Ok(LinksDigest(number.to_be_bytes())) } else { Err(()) }
    }
}

/// The links that a record has room for: a prefix of what the page has.
pub fn kept<'a, 'l>(links: &'l [Link<'a>]) -> &'l [Link<'a>] {
    // Mostly there is room even if every byte had to be escaped.
    let most: usize = links.iter().map(|link| LINE_FRAME_BYTES + 3 * (link.url.len() + link.code.len())).sum();
    if links.len() <= LINKS_MAX && most <= LINK_LINES_BYTES_MAX {
        return links;
    }
    let mut bytes = 0;
    let fits = |link: &&Link<'_>| {
        bytes += line_bytes(link);
        bytes <= LINK_LINES_BYTES_MAX
    };
    let count = links.iter().take(LINKS_MAX).take_while(fits).count();
    &links[..count]
}

/// What the line of a link takes, at most.
fn line_bytes(link: &Link<'_>) -> usize {
    let word = |text: &str| if is_word(text) { text.len() } else { text.len() * 3 };
    LINE_FRAME_BYTES + word(link.url) + word(link.code)
}

/// What stands in the line of a link beside its words, at most.
const LINE_FRAME_BYTES: usize = "outlink:   nofollow\r\n".len();

/// Appends `URL code` or `URL code nofollow`.
pub fn push_link(out: &mut Vec<u8>, link: &Link<'_>) {
    push_word(out, link.url);
    out.push(b' ');
    push_word(out, if link.code.is_empty() { "-" } else { link.code });
    if link.nofollow {
        out.extend_from_slice(b" nofollow");
    }
}

/// Reads what [`push_link`] wrote, and what other crawlers write: a third word of theirs is not ours.
pub fn read_link(text: &str) -> Option<ReadLink> {
    let mut words = text.split(' ');
    let url = words.next().filter(|word| is_word(word))?;
    let code = words.next().filter(|word| is_word(word)).unwrap_or("-");
    Some(ReadLink { url: url.to_owned(), code: code.to_owned(), nofollow: words.next() == Some("nofollow") })
}

/// The digest of a set, given in any order. Of two links to one URL the first counts.
pub fn digest_of(links: &[Link<'_>]) -> LinksDigest {
    if !links.iter().all(|link| is_word(link.url) && is_word(link.code)) {
        return digest_of_odd(links);
    }
    let mut order: Vec<u32> = (0..links.len() as u32).collect();
    order.sort_by(|a, b| links[*a as usize].url.cmp(links[*b as usize].url));
    let mut text = Vec::with_capacity(links.len() * 64);
    let mut last = None;
    for link in order.iter().map(|at| &links[*at as usize]) {
        if last != Some(link.url) {
            push_link(&mut text, link);
            text.push(b'\n');
        }
        last = Some(link.url);
    }
    let mut digest = [0; 16];
    digest.copy_from_slice(&blake3::hash(&text).as_bytes()[..16]);
    LinksDigest(digest)
}

/// The digest of what will be read: links that are not in fetch form change when they are written.
fn digest_of_odd(links: &[Link<'_>]) -> LinksDigest {
    let written = links.iter().filter(|link| !link.url.is_empty()).filter_map(|link| {
        let mut line = Vec::new();
        push_link(&mut line, link);
        read_link(std::str::from_utf8(&line).ok()?)
    });
    let written: Vec<ReadLink> = written.collect();
    digest_of(&written.iter().map(ReadLink::as_link).collect::<Vec<_>>())
}

/// The links of a page as read from its records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkSet {
    links: BTreeMap<String, (String, bool)>,
}

impl LinkSet {
    /// The set of these links; of two to one URL the first counts.
    pub fn of<'l>(links: impl IntoIterator<Item = Link<'l>>) -> LinkSet {
        let mut set = LinkSet::default();
        for link in links {
            set.links.entry(link.url.to_owned()).or_insert_with(|| (link.code.to_owned(), link.nofollow));
        }
        set
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.links.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// In the order of their URLs.
    pub fn iter(&self) -> impl Iterator<Item = Link<'_>> {
        self.links.iter().map(|(url, (code, nofollow))| Link { url, code, nofollow: *nofollow })
    }

    /// The link to a URL.
    pub fn get(&self, url: &str) -> Option<Link<'_>> {
        self.links.get_key_value(url).map(|(url, (code, nofollow))| Link { url, code, nofollow: *nofollow })
    }

    /// The digest of the set.
    pub fn digest(&self) -> LinksDigest {
        digest_of(&self.iter().collect::<Vec<_>>())
    }

    /// Brings the set to the state of a later visit. False, and nothing changed, if the result is not the set that the
    /// visit saw: then a record in between is missing.
    pub fn apply(&mut self, read: &ReadLinks) -> bool {
        let mut next = if read.since.is_some() { self.clone() } else { LinkSet::default() };
        read.gone.iter().for_each(|url| drop(next.links.remove(url)));
        next.links.extend(LinkSet::of(read.links.iter().map(ReadLink::as_link)).links);
        let whole = read.since.is_some() || read.count.is_none_or(|count| count == read.links.len() as u64);
        let right = whole && next.len() <= LINKS_MAX && read.digest.is_none_or(|digest| digest == next.digest());
        if right {
            *self = next;
        }
        right
    }
}

/// The links part of a metadata block as read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadLinks {
    /// The links of the page or, with `since`, those that came or changed their kind.
    pub links: Vec<ReadLink>,
    /// URLs that the page no longer links to.
    pub gone: Vec<String>,
    /// What these lines build on; `None`: they are the whole set.
    pub since: Option<Since>,
    /// How many links the page has, those left out apart; `None` where links were not looked for.
    pub count: Option<u64>,
    /// The digest of the whole set; a full list needs none.
    pub digest: Option<LinksDigest>,
    /// Links that had no room.
    pub left_out: u64,
}

/// The state that a difference builds on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Since {
    /// When the earlier capture of the same URL was made, whose metadata stands beside it. Milliseconds since 1970.
    pub time_ms: i64,
    /// How many differences lead from a full list to this visit, 1 to [`LINK_CHAIN_MAX`].
    pub chain: u8,
}

/// The links that a page had at a visit, put together from its records: `read` gives the links part of the metadata of the
/// visit at a time. With the set comes the number of differences that led to it. `None` where a record in between is
/// missing, or links were not looked for.
pub fn restore(time_ms: i64, read: &mut dyn FnMut(i64) -> Option<ReadLinks>) -> Option<(LinkSet, u8)> {
    let mut parts = vec![read(time_ms)?];
    let mut at = time_ms;
    while let Some(since) = parts.last().and_then(|part| part.since) {
        if since.time_ms >= at || parts.len() > usize::from(LINK_CHAIN_MAX) {
            return None;
        }
        at = since.time_ms;
        parts.push(read(at)?);
    }
    let chain = (parts.len() - 1) as u8;
    let mut set = LinkSet::default();
    let whole = parts.iter().rev().all(|part| part.count.is_some() && part.left_out == 0 && set.apply(part));
    whole.then_some((set, chain))
}

/// What an earlier visit left.
#[derive(Debug, Clone, Copy)]
pub struct Before<'a> {
    /// The links it saw.
    pub set: &'a LinkSet,
    /// When it was.
    pub time_ms: i64,
    /// How many differences led to it; 0 if its metadata has the full list.
    pub chain: u8,
}

/// The links part of a metadata block about to be written.
#[derive(Debug, Clone, Default)]
pub enum Links<'a> {
    /// Links were not looked for.
    #[default]
    Unknown,
    /// All of them, in the page's order.
    Full(&'a [Link<'a>]),
    /// What came and went.
    Difference(Difference<'a>),
}

/// What came and went between two visits.
#[derive(Debug, Clone)]
pub struct Difference<'a> {
    /// What it builds on.
    pub since: Since,
    /// Links that came, or changed their kind, in the page's order.
    pub came: Vec<Link<'a>>,
    /// URLs that went.
    pub gone: Vec<&'a str>,
    /// How many links there are now.
    pub count: u64,
    /// The digest of the whole set now.
    pub digest: LinksDigest,
}

impl<'a> Links<'a> {
    /// The shorter way to say what a page links to: the difference, unless the full list takes fewer bytes, the chain of
    /// differences would get too long, or not all links have room.
    pub fn choose(now: &'a [Link<'a>], before: Option<&Before<'a>>) -> Links<'a> {
        let Some(before) = before.filter(|before| before.chain < LINK_CHAIN_MAX) else { return Links::Full(now) };
        if kept(now).len() < now.len() || !now.iter().all(|link| is_word(link.url) && is_word(link.code)) {
            return Links::Full(now);
        }
        let set: BTreeMap<&str, usize> = now.iter().enumerate().rev().map(|(at, link)| (link.url, at)).collect();
        let first = |at: usize, link: &Link<'_>| set.get(link.url) == Some(&at);
        let came: Vec<Link<'a>> = now
            .iter()
            .enumerate()
            .filter(|(at, link)| first(*at, link) && before.set.get(link.url) != Some(**link))
            .map(|(_, link)| *link)
            .collect();
        let gone: Vec<&'a str> =
            before.set.links.keys().map(String::as_str).filter(|url| !set.contains_key(url)).collect();
        let full: usize = now.iter().map(line_bytes).sum();
        let less: usize =
            came.iter().map(line_bytes).sum::<usize>() + gone.iter().map(|url| url.len() + 16).sum::<usize>();
        if less + "links-since: 2026-11-15T22:10:04.120Z 10\r\n".len() >= full {
            return Links::Full(now);
        }
        let since = Since { time_ms: before.time_ms, chain: before.chain + 1 };
        Links::Difference(Difference { since, came, gone, count: set.len() as u64, digest: digest_of(now) })
    }

    /// Which of the links of a page came since the visit before, by their place, and which went. Where the record has the full list all
    /// are said anew, so that what was lost on the way is heard after all.
    pub fn news(&self, now: &[Link<'_>], before: Option<&Before<'_>>) -> (Option<Vec<u32>>, Vec<String>) {
        match self {
            Links::Unknown => (None, Vec::new()),
            Links::Difference(found) => {
                let mut came = found.came.iter().peekable();
                let mut is_next = |link: &Link<'_>| came.next_if(|next| **next == *link).is_some();
                let places = (0..).zip(now).filter_map(|(place, link)| is_next(link).then_some(place));
                (Some(places.collect()), found.gone.iter().map(|url| (*url).to_owned()).collect())
            }
            Links::Full(_) => {
                // Most pages are visited for the first time: then nothing can have gone.
                let Some(before) = before else { return (None, Vec::new()) };
                let has: std::collections::HashSet<&str> = now.iter().map(|link| link.url).collect();
                (None, before.set.links.keys().filter(|url| !has.contains(url.as_str())).cloned().collect())
            }
        }
    }

    /// The length of the chain of differences after this visit; see [`Before::chain`].
    pub fn chain(&self) -> u8 {
        match self {
            Links::Difference(difference) => difference.since.chain,
            _ => 0,
        }
    }
}

/// How many links a page has, and how many of them are others than at the visit before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Turnover {
    /// How many there are.
    pub count: u64,
    /// Of the links of both visits together, the share that only one of them has; nothing where the record has the full list.
    pub ratio: Option<f32>,
}

impl Turnover {
    fn of(count: u64, came: usize, gone: usize) -> Turnover {
        let (both, all) = (count.saturating_sub(came as u64), count + gone as u64);
        Turnover { count, ratio: Some(if all == 0 { 1.0 } else { 1.0 - both as f32 / all as f32 }) }
    }

    /// What a record is about to say.
    pub fn said(links: &Links<'_>) -> Option<Turnover> {
        match links {
            Links::Unknown => None,
            Links::Full(links) => Some(Turnover { count: kept(links).len() as u64, ratio: None }),
            Links::Difference(found) => Some(Turnover::of(found.count, found.came.len(), found.gone.len())),
        }
    }

    /// What a record says.
    pub fn read(links: &ReadLinks) -> Option<Turnover> {
        match (links.count, links.since) {
            (None, _) => None,
            (Some(_), None) => Some(Turnover { count: links.links.len() as u64, ratio: None }),
            (Some(count), Some(_)) => Some(Turnover::of(count, links.links.len(), links.gone.len())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(url: &str) -> Link<'_> {
        Link { url, code: "L", nofollow: false }
    }

    #[test]
    fn turnover_is_the_share_of_links_that_only_one_visit_has() {
        let urls: Vec<String> = (0..40).map(|n| format!("http://a.test/{n}")).collect();
        let links: Vec<Link<'_>> = urls.iter().map(|url| link(url)).collect();
        let set = LinkSet::of(links[..30].iter().copied());
        let before = Before { set: &set, time_ms: 0, chain: 0 };
        let now = Links::choose(&links[5..], Some(&before));
        let turnover = Turnover::said(&now).unwrap();
        assert_eq!(turnover.count, 35);
        assert!((turnover.ratio.unwrap() - 15.0 / 40.0).abs() < 1e-6, "{turnover:?}");
        assert_eq!(Turnover::said(&Links::Full(&links)), Some(Turnover { count: 40, ratio: None }));
        assert_eq!(Turnover::said(&Links::Unknown), None);
    }

    #[test]
    fn the_digest_is_of_the_set_not_of_its_order() {
        let (a, b) = (link("http://a/"), link("http://b/"));
        assert_eq!(digest_of(&[a, b]), digest_of(&[b, a]));
        assert_eq!(digest_of(&[a, b, Link { code: "E", ..a }]), digest_of(&[a, b]));
        assert_ne!(digest_of(&[a, Link { nofollow: true, ..b }]), digest_of(&[a, b]));
        assert_ne!(digest_of(&[]), digest_of(&[a]));
        assert_eq!(LinkSet::of([b, a]).digest(), digest_of(&[a, b]));
        let digest = digest_of(&[a]);
        assert_eq!(digest.to_string().parse(), Ok(digest));
        assert!("blake3:00".parse::<LinksDigest>().is_err());
    }

    #[test]
    fn the_difference_is_written_only_where_it_is_shorter() {
        let urls: Vec<String> = (0..40).map(|n| format!("http://a.example/page/{n}")).collect();
        let all: Vec<Link<'_>> = urls.iter().map(|url| link(url)).collect();
        let set = LinkSet::of(all[..38].iter().copied());
        let before = Before { set: &set, time_ms: 5, chain: 3 };
        let mut now = all[2..].to_vec();
        now[0].code = "E";
        let links = Links::choose(&now, Some(&before));
        assert_eq!(links.chain(), 4);
        let Links::Difference(difference) = &links else { panic!("{links:?}") };
        assert_eq!(difference.came, [now[0], all[38], all[39]]);
        assert_eq!(difference.gone, [urls[0].as_str(), urls[1].as_str()]);

        let none = all[..1].to_vec();
        assert!(matches!(Links::choose(&none, Some(&before)), Links::Full(_)), "38 lines are longer than one");
        assert!(matches!(Links::choose(&now, None), Links::Full(_)));
        let long = Before { chain: LINK_CHAIN_MAX, ..before };
        assert!(matches!(Links::choose(&now, Some(&long)), Links::Full(_)), "the chain is at its end");
    }

    #[test]
    fn what_came_is_known_by_its_place_and_a_full_list_says_all_anew() {
        let urls: Vec<String> = (0..40).map(|n| format!("http://a.example/page/{n}")).collect();
        let all: Vec<Link<'_>> = urls.iter().map(|url| link(url)).collect();
        let set = LinkSet::of(all[..38].iter().copied());
        let before = Before { set: &set, time_ms: 5, chain: 3 };
        let mut now = all[2..].to_vec();
        now[0].code = "E";
        let said = Links::choose(&now, Some(&before));
        assert_eq!(said.news(&now, Some(&before)), (Some(vec![0, 36, 37]), urls[..2].to_vec()));
        let few = all[..1].to_vec();
        let said = Links::choose(&few, Some(&before));
        let (came, gone) = said.news(&few, Some(&before));
        assert_eq!((came, gone.len()), (None, 37));
        assert_eq!(Links::Unknown.news(&[], Some(&before)), (None, Vec::new()));
    }

    #[test]
    fn a_set_follows_its_differences_and_notices_a_gap() {
        let urls: Vec<String> = (0..20).map(|n| format!("http://a.example/page/{n}")).collect();
        let (old, new): (Vec<Link<'_>>, Vec<Link<'_>>) =
            (urls[..18].iter().map(|url| link(url)).collect(), urls[1..].iter().map(|url| link(url)).collect());
        let before = LinkSet::of(old.iter().copied());
        let links = Links::choose(&new, Some(&Before { set: &before, time_ms: 5, chain: 0 }));
        let Links::Difference(difference) = links else { panic!() };
        let owned =
            |link: &Link<'_>| ReadLink { url: link.url.into(), code: link.code.into(), nofollow: link.nofollow };
        let read = ReadLinks {
            links: difference.came.iter().map(owned).collect(),
            gone: difference.gone.iter().map(|url| url.to_string()).collect(),
            since: Some(difference.since),
            count: Some(difference.count),
            digest: Some(difference.digest),
            left_out: 0,
        };
        let mut set = before.clone();
        assert!(set.apply(&read));
        assert_eq!(set, LinkSet::of(new.iter().copied()));
        let mut other = LinkSet::of(old[..17].iter().copied());
        let kept = other.clone();
        assert!(!other.apply(&read));
        assert_eq!(other, kept);
    }

    #[test]
    fn a_set_is_put_together_from_its_records() {
        let urls: Vec<String> = (0..30).map(|n| format!("http://a.example/page/{n}")).collect();
        let all: Vec<Link<'_>> = urls.iter().map(|url| link(url)).collect();
        let owned =
            |link: &Link<'_>| ReadLink { url: link.url.into(), code: link.code.into(), nofollow: link.nofollow };
        let mut records: BTreeMap<i64, ReadLinks> = BTreeMap::new();
        let mut before: Option<(LinkSet, i64, u8)> = None;
        for visit in 0..15 {
            let now = &all[visit as usize..visit as usize + 15];
            let earlier = before.as_ref().map(|(set, time_ms, chain)| Before { set, time_ms: *time_ms, chain: *chain });
            let links = Links::choose(now, earlier.as_ref());
            let read = match &links {
                Links::Difference(difference) => ReadLinks {
                    links: difference.came.iter().map(owned).collect(),
                    gone: difference.gone.iter().map(|url| url.to_string()).collect(),
                    since: Some(difference.since),
                    count: Some(difference.count),
                    digest: Some(difference.digest),
                    left_out: 0,
                },
                _ => ReadLinks { links: now.iter().map(owned).collect(), count: Some(15), ..ReadLinks::default() },
            };
            let chain = links.chain();
            records.insert(visit, read);
            let (set, found) = restore(visit, &mut |time_ms| records.get(&time_ms).cloned()).unwrap();
            assert_eq!((&set, found), (&LinkSet::of(now.iter().copied()), chain), "visit {visit}");
            before = Some((set, visit, chain));
        }
        assert_eq!(
            records.values().filter(|read| read.since.is_none()).count(),
            2,
            "after ten differences a full list"
        );
        records.remove(&12);
        assert_eq!(restore(14, &mut |time_ms| records.get(&time_ms).cloned()), None);
        let circle = ReadLinks { since: Some(Since { time_ms: 5, chain: 1 }), ..ReadLinks::default() };
        assert_eq!(restore(5, &mut |_| Some(circle.clone())), None);
    }

    #[test]
    fn a_page_with_too_many_links_keeps_the_first_ones() {
        let long = format!("http://a.example/{}", "x".repeat(8_000));
        let links = vec![link(&long); 2_000];
        let count = kept(&links).len();
        assert!(
            count > 100
                && count * long.len() <= LINK_LINES_BYTES_MAX
                && (count + 1) * (long.len() + 30) > LINK_LINES_BYTES_MAX
        );
        assert_eq!(kept(&vec![link("http://a/"); LINKS_MAX + 1]).len(), LINKS_MAX);
        assert!(matches!(Links::choose(&links, None), Links::Full(_)));
    }

    #[test]
    fn lines_of_other_crawlers_are_read() {
        let read = read_link("http://a.example/b L a/@href").unwrap();
        assert_eq!((read.url.as_str(), read.code.as_str(), read.nofollow), ("http://a.example/b", "L", false));
        assert_eq!(read_link("http://a.example/b").unwrap().code, "-");
        assert_eq!(read_link(""), None);
        assert_eq!(read_link("ü L"), None);
    }
}
