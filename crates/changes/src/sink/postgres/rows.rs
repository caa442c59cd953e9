//! Events as rows, in the text form of `COPY`: tabs between columns, `\N` for nothing. Of rows with one key the last counts, because a
//! statement may touch a row only once.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use bytes::Bytes;
use skep_page::compare::Class;
use skep_warc::date;

use super::super::batch::Told;
use crate::event::Details;
use crate::limits::POSTGRES_URL_BYTES_MAX;

/// The rows of some events.
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
        let mut changes = String::with_capacity(events.iter().map(|event| event.details.len() + 512).sum());
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
        let mut url_rows = String::with_capacity(urls.len() * 256);
        for (first_ms, event, details) in urls.into_values() {
            url(&mut url_rows, archive, first_ms, event, &details);
        }
        let mut link_rows = String::new();
        for ((source, target), [added, removed]) in links {
            let mut row = Row::on(&mut link_rows);
            row.text(source).text(&target).time(added).time(removed).end();
        }
        Rows {
            archive: archive.to_owned(),
            changes: changes.into(),
            urls: url_rows.into(),
            url_count,
            links: link_rows.into(),
            taken_back,
        }
    }
}

fn change(out: &mut String, archive: &str, node: &str, event: &Told, details: &Details) {
    let window = |at: usize| details.window.as_ref().map(|window| window[at].as_str());
    let links = details.links.as_ref().map_or((0, 0), |links| (links.n_added, links.n_removed));
    let mut row = Row::on(out);
    row.text(archive).text(&event.key_text()).shown(format_args!("{node}:{}", event.number)).text(&event.url);
    row.text(&details.host).text(event.kind);
    let classes = event.classes.iter().map(|class| class.name()).collect::<Vec<_>>().join(",");
    row.shown(format_args!("{{{classes}}}")).shown(f64::from(event.share) / 10_000.0).time(Some(event.time_ms));
    row.maybe(window(0)).maybe(window(1)).shown(details.http.status);
    row.maybe(details.meta.as_ref().and_then(|meta| meta.title.as_deref()));
    row.shown(links.0).shown(links.1).json(&event.details).end();
}

fn url(out: &mut String, archive: &str, first_ms: i64, event: &Told, details: &Details) {
    let states = [(Class::Gone, "gone"), (Class::Moved, "moved"), (Class::Suspect, "suspect")];
    let state = states.iter().find(|(class, _)| event.classes.contains(*class)).map_or("well", |(_, state)| state);
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let hash = details.hash.as_ref();
    let mut row = Row::on(out);
    row.text(&event.url).text(&details.url_key).text(&details.host).text(state);
    row.time(Some(first_ms)).time(Some(event.time_ms)).shown(details.http.status);
    row.maybe(some(&details.http.content_type).as_deref());
    row.maybe(details.meta.as_ref().and_then(|meta| meta.title.as_deref()));
    row.maybe(hash.and_then(|hash| hash.raw.as_deref())).maybe(hash.and_then(|hash| hash.text.as_deref()));
    row.maybe(details.http.redirect.as_deref()).text(archive).text(&event.key_text()).end();
}

/// A row as it is written.
struct Row<'o> {
    out: &'o mut String,
    first: bool,
}

impl<'o> Row<'o> {
    fn on(out: &'o mut String) -> Row<'o> {
        Row { out, first: true }
    }

    fn column(&mut self) -> &mut String {
        if !std::mem::take(&mut self.first) {
            self.out.push('\t');
        }
        self.out
    }

    fn text(&mut self, text: &str) -> &mut Self {
        let out = self.column();
        for c in text.chars() {
            match c {
                '\\' => out.push_str("\\\\"),
                '\t' => out.push_str("\\t"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                // PostgreSQL has no text with this in it.
                '\0' => out.push('\u{fffd}'),
                c => out.push(c),
            }
        }
        self
    }

    /// JSON in one line, as the stream has it: a backslash is the only thing in it that `COPY` would take for its own.
    fn json(&mut self, json: &str) -> &mut Self {
        let out = self.column();
        let mut rest = json;
        while let Some(at) = rest.find('\\') {
            let (plain, escape) = rest.split_at(at);
            out.push_str(plain);
            if let Some(behind) = escape.strip_prefix("\\u0000") {
                out.push('\u{fffd}');
                rest = behind;
                continue;
            }
            out.push_str("\\\\");
            // The sign behind it belongs to it, also where it is a backslash itself.
            let Some(next) = escape[1..].chars().next() else { return self };
            if next == '\\' {
                out.push('\\');
            }
            out.push(next);
            rest = &escape[1 + next.len_utf8()..];
        }
        out.push_str(rest);
        self
    }

    fn shown(&mut self, value: impl std::fmt::Display) -> &mut Self {
        let _in_memory = write!(self.column(), "{value}");
        self
    }

    fn maybe(&mut self, text: Option<&str>) -> &mut Self {
        match text {
            Some(text) => self.text(text),
            None => self.shown("\\N"),
        }
    }

    fn time(&mut self, time_ms: Option<i64>) -> &mut Self {
        match time_ms {
            Some(time_ms) => self.shown(date::rfc3339(time_ms)),
            None => self.shown("\\N"),
        }
    }

    fn end(&mut self) {
        self.out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_copy_would_take_for_its_own_is_written_so_that_it_does_not() {
        let mut out = String::new();
        Row::on(&mut out).text("a\tb\\c\nd\0e").maybe(None).json(r#"{"a":"\n\\u0000\u0000\"x"}"#).time(Some(0)).end();
        assert_eq!(
            out,
            "a\\tb\\\\c\\nd\u{fffd}e\t\\N\t{\"a\":\"\\\\n\\\\\\\\u0000\u{fffd}\\\\\"x\"}\t1970-01-01T00:00:00Z\n"
        );
    }
}
