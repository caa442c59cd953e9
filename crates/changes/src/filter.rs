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
        let mut classes = self.wanted();
        classes.insert(Class::Template);
        Filter { classes: Some(classes), ..self }
    }

    /// The classes of which one is enough.
    pub fn wanted(&self) -> Classes {
        let loud = || Class::ALL.iter().copied().filter(|class| !class.is_silent()).collect();
        self.classes.unwrap_or_else(loud)
    }

    /// Is it wanted?
    pub fn admits(&self, event: &Kept<'_>) -> bool {
        self.admits_of(event, None)
    }

    /// The same for an event whose host somebody found out already.
    pub fn admits_of(&self, event: &Kept<'_>, host: Option<&str>) -> bool {
        // What was told and is no longer so is for everybody who may have heard it, whatever was asked of shares and times. Where it is not
        // known as what it was told, that is everybody.
        let sets_right = self.wants(event.was) || event.classes.is_empty() && event.was.is_empty();
        (sets_right || self.is_news(event)) && self.is_of(event, host)
    }

    /// Is it wanted by who sees each capture once, as it was told last, or cannot be told that something is no longer so?
    pub fn shows(&self, event: &Kept<'_>) -> bool {
        self.is_news(event) && self.is_of(event, None)
    }

    fn wants(&self, classes: Classes) -> bool {
        match self.classes {
            Some(wanted) => classes.meets(wanted),
            None => !classes.is_silent(),
        }
    }

    /// Is it something that happened, of the kind that is wanted?
    fn is_news(&self, event: &Kept<'_>) -> bool {
        let whole: Classes = [Class::New, Class::Gone, Class::Returned, Class::Moved].into_iter().collect();
        let of_host = event.classes.first().is_some_and(Class::is_of_host);
        self.wants(event.classes)
            && (event.share >= self.share_min || event.classes.meets(whole) || of_host)
            && self.since_ms.is_none_or(|since_ms| event.time_ms >= since_ms)
    }

    /// Is it about what is asked for?
    fn is_of(&self, event: &Kept<'_>, host: Option<&str>) -> bool {
        self.mime.as_deref().is_none_or(|mime| is_type(event.mime, mime))
            // What takes another event back does not say for whom that one was.
            && self.watch.as_deref().is_none_or(|watch| event.classes.is_empty() || event.watch() == Some(watch))
            && self.prefix.as_deref().is_none_or(|prefix| begins(event.url, prefix))
            && self.host.as_deref().is_none_or(|wanted| match host {
                Some(host) => is_host(host, wanted),
                None => is_url_of(event.url, wanted),
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

fn is_url_of(url: &str, host: &str) -> bool {
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
            was: Classes::default(),
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
        // What takes an event back is for everybody who may have heard of that one, and nothing to show.
        let was = Classes::of(Class::TextMinor);
        let back = Kept { classes: Classes::default(), was, share: 0, details: "{}", ..event };
        let of = |class: &str| Filter { classes: Classes::from_name(class), ..Filter::default() };
        for filter in [
            Filter::default(),
            Filter::default().with_text(),
            of("all"),
            of("text"),
            Filter { share_min: 5_000, since_ms: Some(6), watch: Some("news".into()), ..Filter::default() },
            Filter { host: Some("*.example.org".into()), mime: Some("text/*".into()), ..Filter::default() },
        ] {
            assert!(filter.admits(&back) && !filter.shows(&back), "{filter:?}");
        }
        for filter in [
            of("new"),
            Filter { host: Some("example.org".into()), ..Filter::default() },
            Filter { prefix: Some("www.example.org/b".into()), ..Filter::default() },
            Filter { mime: Some("image/*".into()), ..Filter::default() },
        ] {
            assert!(!filter.admits(&back), "{filter:?}");
            // One that was kept before it was known as what the other was told.
            let unknown = Kept { was: Classes::default(), ..back };
            assert_eq!(filter.admits(&unknown), filter == of("new"), "{filter:?}");
        }
        let noise = Kept { was: Classes::of(Class::Bytes), ..back };
        assert!(!Filter::default().admits(&noise) && of("bytes").admits(&noise) && of("all").admits(&noise));
        // So is what was told as something that was wanted.
        let less = Kept { classes: Classes::of(Class::Template), was: Classes::of(Class::TextMinor), ..event };
        for (class, wanted) in [("text", true), ("all", true), ("template", true), ("links", false), ("bytes", false)] {
            assert_eq!(of(class).admits(&less), wanted, "{class}");
        }
        let filter = Filter { share_min: 5_000, since_ms: Some(6), ..Filter::default() };
        assert!(filter.admits(&less) && !filter.shows(&less));
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
