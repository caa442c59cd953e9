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
    /// Seen at this time or later.
    pub since_ms: Option<i64>,
}

impl Filter {
    /// Is it wanted?
    pub fn admits(&self, event: &Kept<'_>) -> bool {
        let classes = match self.classes {
            // What takes another event back has no class: it is for those who want all of them.
            Some(classes) if event.classes.is_empty() => Class::ALL.iter().all(|class| classes.contains(*class)),
            Some(classes) => event.classes.meets(classes),
            None => !event.classes.is_silent(),
        };
        let whole = [Class::New, Class::Gone, Class::Returned, Class::Moved].into_iter().collect();
        classes
            && (event.share >= self.share_min || event.classes.meets(whole))
            && self.since_ms.is_none_or(|since_ms| event.time_ms >= since_ms)
            && self.prefix.as_deref().is_none_or(|prefix| begins(event.url, prefix))
            && self.host.as_deref().is_none_or(|host| is_of(event.url, host))
    }
}

fn begins(url: &str, prefix: &str) -> bool {
    let plain = url.split_once("://").map_or(url, |(_, rest)| rest);
    if prefix.contains("://") { url.starts_with(prefix) } else { plain.starts_with(prefix) }
}

fn is_of(url: &str, host: &str) -> bool {
    let Ok(url) = Url::parse(url) else { return false };
    let found = url.host_name();
    match host.strip_prefix("*.") {
        Some(domain) => found == domain || found.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.')),
        None => found == host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_wanted_passes() {
        let event = Kept {
            key: Default::default(),
            classes: Classes::of(Class::TextMinor),
            share: 100,
            time_ms: 5,
            url: "http://www.example.org/a/b",
            details: "",
            value: b"",
        };
        let admits = |filter: Filter| filter.admits(&event);
        assert!(admits(Filter::default()));
        assert!(!Filter::default().admits(&Kept { classes: Classes::of(Class::Volatile), ..event }));
        let back = Kept { classes: Classes::default(), ..event };
        assert!(!Filter::default().admits(&back));
        assert!(Filter { classes: Classes::from_name("all"), ..Filter::default() }.admits(&back));
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
        assert!(!admits(Filter { share_min: 101, ..Filter::default() }));
        assert!(
            Filter { share_min: 101, ..Filter::default() }.admits(&Kept { classes: Classes::of(Class::Gone), ..event })
        );
        assert!(!admits(Filter { since_ms: Some(6), ..Filter::default() }));
        assert!(!admits(Filter { classes: Classes::from_name("links"), ..Filter::default() }));
        assert!(admits(Filter { classes: Classes::from_name("text"), ..Filter::default() }));
    }
}
