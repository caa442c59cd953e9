//! Which events are wanted.

use skep_page::compare::{Class, Classes};
use skep_url::Url;

use crate::event::Kept;

/// Which events are wanted; by default all that are not noise.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Of this host; `*.example.org` for all hosts below one, and itself.
    pub host: Option<String>,
    /// Of URLs that begin like this, with a scheme or without one.
    pub prefix: Option<String>,
    /// Of one of these classes.
    pub classes: Option<Classes>,
    /// In which at least this share of the words changed, in ten thousandths. What is no change of a page passes.
    pub share_min: u16,
    /// Of this media type; `image/*` for all of a kind.
    pub mime: Option<String>,
    /// Of pages that were visited for this crawl or watch.
    pub watch: Option<String>,
    /// Seen at this time or later.
    pub since_ms: Option<i64>,
}

impl Filter {
    /// The same for who wants to have the text of pages: what only the host is told of changes their text too.
    pub fn with_text(self) -> Filter {
        let loud = || Class::ALL.iter().copied().filter(|class| !class.is_silent()).collect();
        let mut classes: Classes = self.classes.unwrap_or_else(loud);
        classes.insert(Class::Template);
        Filter { classes: Some(classes), ..self }
    }

    /// Is it wanted?
    pub fn admits(&self, event: &Kept<'_>) -> bool {
        self.admits_of(event, None)
    }

    /// The same for an event whose host somebody found out already.
    pub fn admits_of(&self, event: &Kept<'_>, host: Option<&str>) -> bool {
        let classes = match self.classes {
            // What takes another event back has no class: it is for those who want all of them.
            Some(classes) if event.classes.is_empty() => Class::ALL.iter().all(|class| classes.contains(*class)),
            Some(classes) => event.classes.meets(classes),
            None => !event.classes.is_silent(),
        };
        let whole: Classes = [Class::New, Class::Gone, Class::Returned, Class::Moved].into_iter().collect();
        let of_host = event.classes.first().is_some_and(Class::is_of_host);
        classes
            && (event.share >= self.share_min || event.classes.meets(whole) || of_host)
            && self.mime.as_deref().is_none_or(|mime| is_type(event.mime, mime))
            && self.since_ms.is_none_or(|since_ms| event.time_ms >= since_ms)
            // What takes another event back does not say for whom that one was.
            && self.watch.as_deref().is_none_or(|watch| event.classes.is_empty() || event.watch() == Some(watch))
            && self.prefix.as_deref().is_none_or(|prefix| begins(event.url, prefix))
            && self.host.as_deref().is_none_or(|wanted| match host {
                Some(host) => is_host(host, wanted),
                None => is_of(event.url, wanted),
            })
    }
}

/// A host as people write it, as events have it; `*.` before it stays. An error says why it is none.
pub fn host(text: &str) -> Result<String, String> {
    let (all, name) = text.strip_prefix("*.").map_or(("", text), |name| ("*.", name));
    if name.contains(['/', '?', '#', '@']) {
        return Err("it is more than a name".to_owned());
    }
    let url = Url::parse(&format!("http://{name}/")).map_err(|error| error.to_string())?;
    match url.port() == 80 && !name.ends_with(":80") {
        true => Ok(format!("{all}{}", url.host_name())),
        false => Err("hosts are chosen by name, whatever their port".to_owned()),
    }
}

fn begins(url: &str, prefix: &str) -> bool {
    let plain = url.split_once("://").map_or(url, |(_, rest)| rest);
    if prefix.contains("://") { url.starts_with(prefix) } else { plain.starts_with(prefix) }
}

fn is_type(found: &str, wanted: &str) -> bool {
    match wanted.strip_suffix('*') {
        Some(kind) => found.get(..kind.len()).is_some_and(|start| start.eq_ignore_ascii_case(kind)),
        None => found.eq_ignore_ascii_case(wanted),
    }
}

fn is_of(url: &str, host: &str) -> bool {
    Url::parse(url).is_ok_and(|url| is_host(url.host_name(), host))
}

fn is_host(found: &str, host: &str) -> bool {
    match host.strip_prefix("*.") {
        Some(domain) => found == domain || found.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.')),
        None => found == host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_as_typed() {
        for (typed, meant) in [
            ("Example.ORG", "example.org"),
            ("*.example.org", "*.example.org"),
            ("b\u{fc}cher.example", "xn--bcher-kva.example"),
            ("*.b\u{fc}cher.example", "*.xn--bcher-kva.example"),
            ("localhost", "localhost"),
            ("[::1]", "[::1]"),
        ] {
            assert_eq!(host(typed).as_deref(), Ok(meant), "{typed}");
        }
        for wrong in ["", "example.org:8080", "example.org:80", "https://example.org/", "example.org/a", "a b"] {
            assert!(host(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_what_is_wanted_passes() {
        let event = Kept {
            key: Default::default(),
            classes: Classes::of(Class::TextMinor),
            share: 100,
            time_ms: 5,
            mime: "text/html",
            url: "http://www.example.org/a/b",
            details: r#"{"host":"a","why":{"crawl":"news"}}"#,
            value: b"",
        };
        let admits = |filter: Filter| filter.admits(&event);
        assert!(admits(Filter::default()));
        assert!(!Filter::default().admits(&Kept { classes: Classes::of(Class::Volatile), ..event }));
        let back = Kept { classes: Classes::default(), ..event };
        assert!(!Filter::default().admits(&back));
        let everything = Filter { classes: Classes::from_name("all"), ..Filter::default() };
        assert!(everything.admits(&back));
        assert!(Filter { watch: Some("news".into()), ..everything }.admits(&Kept { details: "{}", ..back }));
        for (host, wanted) in
            [("www.example.org", true), ("example.org", false), ("*.example.org", true), ("*.ample.org", false)]
        {
            assert_eq!(admits(Filter { host: Some(host.into()), ..Filter::default() }), wanted, "{host}");
        }
        for (prefix, wanted) in
            [("http://www.example.org/a", true), ("www.example.org/a", true), ("https://www.example.org/", false)]
        {
            assert_eq!(admits(Filter { prefix: Some(prefix.into()), ..Filter::default() }), wanted, "{prefix}");
        }
        for (mime, wanted) in [
            ("text/html", true),
            ("Text/HTML", true),
            ("text/*", true),
            ("image/*", false),
            ("text/plain", false),
            ("*", true),
        ] {
            assert_eq!(admits(Filter { mime: Some(mime.into()), ..Filter::default() }), wanted, "{mime}");
        }
        assert!(!admits(Filter { share_min: 101, ..Filter::default() }));
        assert!(
            Filter { share_min: 101, ..Filter::default() }.admits(&Kept { classes: Classes::of(Class::Gone), ..event })
        );
        assert!(!admits(Filter { since_ms: Some(6), ..Filter::default() }));
        assert!(admits(Filter { watch: Some("news".into()), ..Filter::default() }));
        assert!(!admits(Filter { watch: Some("new".into()), ..Filter::default() }));
        assert!(!admits(Filter { classes: Classes::from_name("links"), ..Filter::default() }));
        assert!(admits(Filter { classes: Classes::from_name("text"), ..Filter::default() }));
    }
}
