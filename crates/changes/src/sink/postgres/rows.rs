//! Events as rows, in the binary form of `COPY`, which the server takes in without reading times and numbers from texts. Of rows with one
//! key the last counts, because a statement may touch a row only once.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use skep_page::compare::Class;
use skep_warc::date;

use super::super::batch::Told;
use crate::event::Details;
use crate::limits::POSTGRES_URL_BYTES_MAX;

/// The rows of some events; nothing at all for a table that has none.
#[derive(Debug)]
pub struct Rows {
    pub archive: String,
    pub changes: Bytes,
    pub urls: Bytes,
    pub url_count: u64,
    pub links: Bytes,
    /// Keys of events that are no longer so.
    pub taken_back: Vec<String>,
}

/// What a link came to in these events: when it was last seen to come and to go.
type Link = [Option<i64>; 2];

impl Rows {
    /// Rows of these events of the archive of this name, from the log of that one.
    pub fn of(archive: &str, node: &str, events: &[Told]) -> Rows {
        let mut last = HashMap::with_capacity(events.len());
        for (number, event) in events.iter().enumerate() {
            last.insert(event.key, number);
        }
        let mut changes = Table::with_room(events.iter().map(|event| event.details.len() + 512).sum());
        // In the order of their keys, which is that of the index they go into.
        let mut urls: BTreeMap<&str, (i64, &Told, Details)> = BTreeMap::new();
        let mut links: BTreeMap<(&str, String), Link> = BTreeMap::new();
        let mut taken_back = Vec::new();
        for (number, event) in events.iter().enumerate() {
            if last.get(&event.key) != Some(&number) {
                continue;
            }
            if event.takes_back() {
                taken_back.push(event.key_text());
                continue;
            }
            let mut details = event.read();
            change(&mut changes, archive, node, event, &details);
            if let Some(named) = details.links.take() {
                for (which, targets) in [named.added, named.removed].into_iter().enumerate() {
                    for target in targets.into_iter().filter(|target| target.len() <= POSTGRES_URL_BYTES_MAX) {
                        let seen = &mut links.entry((&event.url, target)).or_default()[which];
                        *seen = (*seen).max(Some(event.time_ms));
                    }
                }
            }
            for target in event.links.iter().filter(|target| target.len() <= POSTGRES_URL_BYTES_MAX) {
                let [added, _] = links.entry((&event.url, target.clone())).or_default();
                *added = (*added).max(Some(event.time_ms));
            }
            // What is told of a host says nothing of the page that stands at its address.
            if event.is_of_host() {
                continue;
            }
            match urls.entry(&event.url) {
                std::collections::btree_map::Entry::Vacant(entry) => {
                    entry.insert((event.time_ms, event, details));
                }
                std::collections::btree_map::Entry::Occupied(mut entry) => {
                    let (first, newest, _) = entry.get();
                    let first = (*first).min(event.time_ms);
                    if (event.time_ms, event.number) >= (newest.time_ms, newest.number) {
                        let mut details = details;
                        // What the newer event does not say stays as it was.
                        details.meta = details.meta.or(entry.get_mut().2.meta.take());
                        entry.insert((first, event, details));
                    } else {
                        entry.get_mut().0 = first;
                    }
                }
            }
        }
        let url_count = urls.len() as u64;
        let mut url_rows = Table::with_room(urls.len() * 384);
        for (first_ms, event, details) in urls.into_values() {
            url(&mut url_rows, archive, first_ms, event, &details);
        }
        let mut link_rows = Table::with_room(links.len() * 128);
        for ((source, target), [added, removed]) in links {
            link_rows.row(4).text(source).text(&target).time(added).time(removed);
        }
        Rows {
            archive: archive.to_owned(),
            changes: changes.end(),
            urls: url_rows.end(),
            url_count,
            links: link_rows.end(),
            taken_back,
        }
    }
}

fn change(out: &mut Table, archive: &str, node: &str, event: &Told, details: &Details) {
    let window = |at: usize| details.window.as_ref().and_then(|window| date::parse_ms(window[at].as_bytes()));
    let links = details.links.as_ref().map_or((0, 0), |links| (links.n_added, links.n_removed));
    let classes: Vec<&str> = event.classes.iter().map(|class| class.name()).collect();
    let row = out.row(16);
    row.text(archive).text(&event.key_text()).text(&format!("{node}:{}", event.number)).text(&event.url);
    row.text(&details.host).text(event.kind).texts(&classes);
    row.real(f32::from(event.share) / 10_000.0).time(Some(event.time_ms)).time(window(0)).time(window(1));
    row.number(details.http.status.into()).maybe(details.meta.as_ref().and_then(|meta| meta.title.as_deref()));
    row.number(links.0).number(links.1).json(&event.details);
}

fn url(out: &mut Table, archive: &str, first_ms: i64, event: &Told, details: &Details) {
    let states = [(Class::Gone, "gone"), (Class::Moved, "moved"), (Class::Suspect, "suspect")];
    let state = states.iter().find(|(class, _)| event.classes.contains(*class)).map_or("well", |(_, state)| state);
    let content_type = Some(details.http.content_type.as_str()).filter(|text| !text.is_empty());
    let hash = details.hash.as_ref();
    let row = out.row(14);
    row.text(&event.url).text(&details.url_key).text(&details.host).text(state);
    row.time(Some(first_ms)).time(Some(event.time_ms)).number(details.http.status.into()).maybe(content_type);
    row.maybe(details.meta.as_ref().and_then(|meta| meta.title.as_deref()));
    row.maybe(hash.and_then(|hash| hash.raw.as_deref())).maybe(hash.and_then(|hash| hash.text.as_deref()));
    row.maybe(details.http.redirect.as_deref()).text(archive).text(&event.key_text());
}

/// What `COPY` begins with: a signature, no flags, no more of a head.
const HEAD: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// Of the type `text`, in arrays.
const TEXT: u32 = 25;
/// Midnight of 1 January 2000, from which PostgreSQL counts, in milliseconds since 1970.
const EPOCH_MS: i64 = 946_684_800_000;

/// Rows of a table as they are sent: the number of columns, then each with its length before it; numbers are big-endian.
struct Table(Vec<u8>);

impl Table {
    fn with_room(bytes: usize) -> Table {
        let mut table = Vec::with_capacity(HEAD.len() + bytes + 2);
        table.extend_from_slice(HEAD);
        Table(table)
    }

    /// The rows; nothing where there are none.
    fn end(mut self) -> Bytes {
        if self.0.len() == HEAD.len() {
            return Bytes::new();
        }
        self.0.extend_from_slice(&(-1_i16).to_be_bytes());
        self.0.into()
    }

    fn row(&mut self, columns: u16) -> &mut Table {
        self.0.extend_from_slice(&columns.to_be_bytes());
        self
    }

    /// A column of as many bytes as are written.
    fn column(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> &mut Table {
        let at = self.0.len();
        self.0.extend_from_slice(&[0; 4]);
        write(&mut self.0);
        let length = (self.0.len() - at - 4) as u32;
        self.0[at..at + 4].copy_from_slice(&length.to_be_bytes());
        self
    }

    fn nothing(&mut self) -> &mut Table {
        self.0.extend_from_slice(&(-1_i32).to_be_bytes());
        self
    }

    fn text(&mut self, text: &str) -> &mut Table {
        self.column(|out| put_text(text, out))
    }

    fn maybe(&mut self, text: Option<&str>) -> &mut Table {
        match text {
            Some(text) => self.text(text),
            None => self.nothing(),
        }
    }

    /// An array of texts.
    fn texts(&mut self, texts: &[&str]) -> &mut Table {
        self.column(|out| {
            // Dimensions, flags, the type; of the dimension how many there are, and the number of the first.
            let shape = [u32::from(!texts.is_empty()), 0, TEXT, texts.len() as u32, 1];
            let shape = if texts.is_empty() { &shape[..3] } else { &shape };
            shape.iter().for_each(|number| out.extend_from_slice(&number.to_be_bytes()));
            for text in texts {
                out.extend_from_slice(&(text.len() as u32).to_be_bytes());
                out.extend_from_slice(text.as_bytes());
            }
        })
    }

    /// JSON behind the number of its form.
    fn json(&mut self, json: &str) -> &mut Table {
        self.column(|out| {
            out.push(1);
            put_json(json, out);
        })
    }

    fn number(&mut self, number: usize) -> &mut Table {
        self.column(|out| out.extend_from_slice(&i32::try_from(number).unwrap_or(i32::MAX).to_be_bytes()))
    }

    fn real(&mut self, number: f32) -> &mut Table {
        self.column(|out| out.extend_from_slice(&number.to_be_bytes()))
    }

    fn time(&mut self, time_ms: Option<i64>) -> &mut Table {
        let Some(time_ms) = time_ms else { return self.nothing() };
        // The ends of what can be counted mean for ever: what is beyond is refused instead.
        let since = time_ms.saturating_sub(EPOCH_MS).saturating_mul(1_000).clamp(i64::MIN + 1, i64::MAX - 1);
        self.column(|out| out.extend_from_slice(&since.to_be_bytes()))
    }
}

/// PostgreSQL has no text with a zero in it.
fn put_text(text: &str, out: &mut Vec<u8>) {
    for (number, part) in text.split('\0').enumerate() {
        out.extend_from_slice(if number > 0 { "\u{fffd}".as_bytes() } else { b"" });
        out.extend_from_slice(part.as_bytes());
    }
}

/// The same for JSON, in which it is written as an escape.
fn put_json(json: &str, out: &mut Vec<u8>) {
    let mut rest = json;
    while let Some(at) = rest.find("\\u0000") {
        let (before, escape) = rest.split_at(at);
        let slashes = before.bytes().rev().take_while(|byte| *byte == b'\\').count();
        out.extend_from_slice(before.as_bytes());
        // A backslash that is written itself is no escape of what stands behind it.
        out.extend_from_slice(if slashes % 2 == 0 { "\u{fffd}".as_bytes() } else { b"\\u0000" });
        rest = &escape[6..];
    }
    out.extend_from_slice(rest.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_their_lengths_and_what_is_nothing_has_none() {
        let mut table = Table::with_room(0);
        table.row(7).text("a\tb\0c").maybe(None).texts(&["x", "yz"]).number(404).real(0.5);
        table.time(Some(EPOCH_MS + 1)).time(None);
        let mut wanted = HEAD.to_vec();
        wanted.extend_from_slice(b"\0\x07\0\0\0\x07a\tb\xef\xbf\xbdc\xff\xff\xff\xff");
        wanted.extend_from_slice(b"\0\0\0\x1f\0\0\0\x01\0\0\0\0\0\0\0\x19\0\0\0\x02\0\0\0\x01\0\0\0\x01x\0\0\0\x02yz");
        wanted.extend_from_slice(b"\0\0\0\x04\0\0\x01\x94\0\0\0\x04\x3f\0\0\0\0\0\0\x08\0\0\0\0\0\0\x03\xe8");
        wanted.extend_from_slice(b"\xff\xff\xff\xff\xff\xff");
        assert_eq!(table.end(), wanted);
        assert!(Table::with_room(9).end().is_empty());
    }

    #[test]
    fn a_zero_in_json_is_told_from_a_backslash_before_something_like_it() {
        let mut out = Vec::new();
        put_json(r#"{"a":"\n\\u0000\u0000\\\u0000\"x"}"#, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), "{\"a\":\"\\n\\\\u0000\u{fffd}\\\\\u{fffd}\\\"x\"}");
    }
}
