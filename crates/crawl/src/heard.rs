//! URLs that were heard of otherwise than by a link of a kept page (seeds, sitemaps, feeds): one record per batch.
//!
//! ```text
//! skep-heard: 1
//! crawl: docs
//! source: https://example.org/sitemap.xml    where they were heard, numbered in base 36 from 1
//!
//! = 0 seed 0                                 what follows: depth, class, source (0: none)
//! 0 https://example.org/                     bytes shared with the URL before, base 36, and the rest
//! = 1 page 1
//! k a/1.html
//! m 2.html
//! ```

use crate::limits::{
    HEARD_BYTES_MAX, HEARD_READ_URLS_MAX, HEARD_SOURCES_MAX, HEARD_TEXT_BYTES_MAX, HEARD_URLS_MAX,
    META_VALUE_BYTES_MAX, URL_BYTES_MAX,
};
use crate::lines::{base36, is_word, lines, push_base36, push_line, push_number, push_word};
use crate::metadata::Unreadable;

const VERSION: u32 = 1;

/// A URL that was heard of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heard<'a> {
    /// The URL in fetch form.
    pub url: &'a str,
    /// Links from a seed.
    pub depth: u16,
    /// The short word of its class.
    pub class: &'a str,
    /// Where it was heard.
    pub source: Option<&'a str>,
}

/// What became of a URL that was put into a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// It is in the batch.
    Taken,
    /// The batch is full: finish it and put the URL into the next.
    Full,
    /// Not a URL that is ever fetched: empty, too long or not in fetch form.
    NotAUrl,
}

/// A batch of heard URLs about to be written.
#[derive(Debug, Default)]
pub struct Batch {
    crawl: String,
    sources: Vec<String>,
    sources_bytes: usize,
    lines: Vec<u8>,
    urls: usize,
    last: String,
    /// Depth, class and source of the last URL.
    now: Option<(u16, String, usize)>,
}

impl Batch {
    /// An empty batch of a crawl.
    pub fn new(crawl: &str) -> Batch {
        Batch { crawl: crawl.to_owned(), ..Batch::default() }
    }

    /// How many URLs it holds.
    pub fn len(&self) -> usize {
        self.urls
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.urls == 0
    }

    /// Adds a URL.
    pub fn put(&mut self, heard: &Heard<'_>) -> Put {
        if !is_word(heard.url) || heard.url.len() > URL_BYTES_MAX {
            return Put::NotAUrl;
        }
        // A source that is not in fetch form is no page of ours: then none is named.
        let source = heard.source.filter(|source| is_word(source) && source.len() <= URL_BYTES_MAX);
        let known = match source {
            None => Some(0),
            // The last one is nearly always the one.
            Some(source) => self.sources.iter().rposition(|other| other == source).map(|at| at + 1),
        };
        let room = self.sources_bytes
            + self.lines.len()
            + heard.url.len()
            + source.map_or(0, str::len)
            + heard.class.len() * 3
            + 256;
        if self.urls == HEARD_URLS_MAX
            || room > HEARD_BYTES_MAX - 2 * META_VALUE_BYTES_MAX
            || known.is_none() && self.sources.len() == HEARD_SOURCES_MAX
        {
            return if self.is_empty() { Put::NotAUrl } else { Put::Full };
        }
        let number = known.unwrap_or_else(|| {
            let source = source.unwrap_or_default();
            self.sources.push(source.to_owned());
            self.sources_bytes += source.len() + 16;
            self.sources.len()
        });
        let class = if heard.class.is_empty() { "-" } else { heard.class };
        if self.now.as_ref().is_none_or(|(depth, of, at)| (*depth, of.as_str(), *at) != (heard.depth, class, number)) {
            self.lines.extend_from_slice(b"= ");
            push_number(&mut self.lines, u64::from(heard.depth));
            self.lines.push(b' ');
            push_word(&mut self.lines, class);
            self.lines.push(b' ');
            push_base36(&mut self.lines, number as u64);
            self.lines.push(b'\n');
            self.now = Some((heard.depth, class.to_owned(), number));
        }
        let shared = self.last.bytes().zip(heard.url.bytes()).take_while(|(a, b)| a == b).count();
        push_base36(&mut self.lines, shared as u64);
        self.lines.push(b' ');
        self.lines.extend_from_slice(&heard.url.as_bytes()[shared..]);
        self.lines.push(b'\n');
        self.last.truncate(shared);
        self.last.push_str(&heard.url[shared..]);
        self.urls += 1;
        Put::Taken
    }

    /// The block; the batch is empty again.
    pub fn finish(&mut self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64 + self.sources_bytes + self.lines.len());
        out.extend_from_slice(b"skep-heard: 1\n");
        push_line(&mut out, "crawl", &self.crawl, META_VALUE_BYTES_MAX);
        for source in &self.sources {
            out.extend_from_slice(b"source: ");
            out.extend_from_slice(source.as_bytes());
            out.push(b'\n');
        }
        out.push(b'\n');
        out.append(&mut self.lines);
        *self = Batch::new(&std::mem::take(&mut self.crawl));
        out
    }
}

/// Reads the block of a record of heard URLs and gives each URL to `each`. Returns the crawl's name. Memory is bounded by
/// the block and one URL.
pub fn parse(block: &[u8], each: &mut dyn FnMut(Heard<'_>)) -> Result<String, Unreadable> {
    if block.len() > skep_archive::limits::NOTE_BYTES_MAX {
        return Err(Unreadable::TooLarge);
    }
    let text = std::str::from_utf8(block).map_err(|_| Unreadable::Malformed("it is not UTF-8"))?;
    let mut lines = lines(text);
    let version = lines.next().and_then(|line| line.strip_prefix("skep-heard: ")?.parse::<u32>().ok());
    match version {
        Some(VERSION) => {}
        Some(newer) if newer > VERSION => return Err(Unreadable::Newer(newer)),
        _ => return Err(Unreadable::Malformed("it does not begin with skep-heard")),
    }
    let mut crawl = String::new();
    let mut sources = Vec::new();
    for line in lines.by_ref().take_while(|line| !line.is_empty()) {
        match line.split_once(": ") {
            Some(("crawl", name)) => crawl = name.to_owned(),
            Some(("source", url)) if sources.len() < HEARD_SOURCES_MAX => sources.push(url),
            Some(("source", _)) => return Err(Unreadable::TooLarge),
            _ => {}
        }
    }
    let mut url = String::new();
    let mut now = None;
    let (mut urls, mut bytes) = (0, 0);
    for line in lines {
        if let Some(words) = line.strip_prefix("= ") {
            now = Some(read_attributes(words, &sources).ok_or(Unreadable::Malformed("a line of attributes"))?);
            continue;
        }
        let (depth, class, source) = now.ok_or(Unreadable::Malformed("a URL before its attributes"))?;
        extend(&mut url, line).ok_or(Unreadable::Malformed("a line of a URL"))?;
        urls += 1;
        bytes += url.len();
        if urls > HEARD_READ_URLS_MAX || bytes > HEARD_TEXT_BYTES_MAX {
            return Err(Unreadable::TooLarge);
        }
        each(Heard { url: &url, depth, class, source });
    }
    Ok(crawl)
}

fn read_attributes<'b>(words: &'b str, sources: &[&'b str]) -> Option<(u16, &'b str, Option<&'b str>)> {
    let mut words = words.split(' ');
    let depth = words.next()?.parse().ok()?;
    let class = words.next().filter(|class| is_word(class))?;
    let source = match base36(words.next()?)? {
        0 => None,
        number => Some(*sources.get(usize::try_from(number - 1).ok()?)?),
    };
    words.next().is_none().then_some((depth, class, source))
}

/// Brings the URL before to the next one.
fn extend(url: &mut String, line: &str) -> Option<()> {
    let (shared, rest) = line.split_once(' ')?;
    let shared = usize::try_from(base36(shared)?).ok().filter(|shared| *shared <= url.len())?;
    let fits = rest.bytes().all(|b| b.is_ascii_graphic()) && (1..=URL_BYTES_MAX).contains(&(shared + rest.len()));
    if !fits {
        return None;
    }
    url.truncate(shared);
    url.push_str(rest);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(block: &[u8]) -> Vec<(String, u16, String, Option<String>)> {
        let mut all = Vec::new();
        let mut each = |heard: Heard<'_>| {
            all.push((heard.url.into(), heard.depth, heard.class.into(), heard.source.map(str::to_owned)));
        };
        assert_eq!(parse(block, &mut each).unwrap(), "docs");
        all
    }

    #[test]
    fn urls_are_read_back_in_their_order() {
        let heard = [
            Heard { url: "https://example.org/", depth: 0, class: "seed", source: None },
            Heard {
                url: "https://example.org/a/1.html",
                depth: 1,
                class: "page",
                source: Some("https://example.org/sitemap.xml"),
            },
            Heard {
                url: "https://example.org/a/2.html",
                depth: 1,
                class: "page",
                source: Some("https://example.org/sitemap.xml"),
            },
            Heard { url: "http://b.example/", depth: 1, class: "page", source: Some("https://example.org/feed") },
            Heard { url: "http://b.example/", depth: 1, class: "page", source: None },
        ];
        let mut batch = Batch::new("docs");
        assert!(heard.iter().all(|heard| batch.put(heard) == Put::Taken));
        let block = batch.finish();
        assert!(String::from_utf8_lossy(&block).contains("= 1 page 1\nk a/1.html\nm 2.html\n"));
        let expected: Vec<_> = heard
            .iter()
            .map(|h| (h.url.to_string(), h.depth, h.class.to_string(), h.source.map(str::to_owned)))
            .collect();
        assert_eq!(read(&block), expected);
        assert!(batch.is_empty());
        assert_eq!(batch.put(&heard[0]), Put::Taken);
        assert_eq!(read(&batch.finish()), expected[..1]);
    }

    #[test]
    fn nothing_forges_a_line() {
        let mut batch = Batch::new("docs\n\n= 0 seed 0");
        let evil = "http://a.example/\n0 http://evil/";
        assert_eq!(batch.put(&Heard { url: evil, depth: 0, class: "seed", source: None }), Put::NotAUrl);
        assert_eq!(batch.put(&Heard { url: "", depth: 0, class: "seed", source: None }), Put::NotAUrl);
        let heard = Heard { url: "http://a.example/", depth: 0, class: "a b\n", source: Some(evil) };
        assert_eq!(batch.put(&heard), Put::Taken);
        let mut all = Vec::new();
        parse(&batch.finish(), &mut |heard| all.push((heard.url.to_string(), heard.class.to_string()))).unwrap();
        assert_eq!(all, [("http://a.example/".to_string(), "a%20b%0A".to_string())]);
    }

    #[test]
    fn a_full_batch_says_so() {
        let mut batch = Batch::new("docs");
        let mut taken = 0;
        loop {
            let url = format!("http://a.example/{taken}");
            match batch.put(&Heard { url: &url, depth: 1, class: "page", source: None }) {
                Put::Taken => taken += 1,
                Put::Full => break,
                Put::NotAUrl => panic!(),
            }
        }
        assert_eq!((taken, read(&batch.finish()).len()), (HEARD_URLS_MAX, HEARD_URLS_MAX));
        let long = "x".repeat(URL_BYTES_MAX - 30);
        loop {
            let url = format!("http://{:03}.example/{long}", batch.len());
            if batch.put(&Heard { url: &url, depth: 1, class: "page", source: Some(&url) }) == Put::Full {
                break;
            }
        }
        let (count, block) = (batch.len(), batch.finish());
        assert!(block.len() <= HEARD_BYTES_MAX && block.len() > HEARD_BYTES_MAX / 2);
        assert_eq!(read(&block).len(), count);
    }

    #[test]
    fn a_block_that_expands_without_end_is_refused() {
        let mut block = format!("skep-heard: 1\ncrawl: a\n\n= 0 seed 0\n0 {}\n", "x".repeat(URL_BYTES_MAX));
        for _ in 0..20_000 {
            block.push_str("6bk \n");
        }
        let mut urls = 0;
        assert_eq!(parse(block.as_bytes(), &mut |_| urls += 1), Err(Unreadable::TooLarge));
        assert!(urls * URL_BYTES_MAX <= HEARD_TEXT_BYTES_MAX);
    }
}
