//! What people decided, as files of settings say it: read in one way, and about URLs in one way.
//!
//! A rule is about URLs that begin like its `match`, about that URL alone where `$` stands behind it, or about a host; the longest that fits is
//! the most particular, and counts. One that names nothing is about everything.

use serde::de::DeserializeOwned;
use skep_archive::Archive;

use crate::error::{Error, Result};

/// Behind what a rule is about: nothing follows.
pub const END: char = '$';

/// The version of these files.
pub const VERSION: u32 = 1;

/// What the file of this name says; `None` where there is none.
pub fn load<T: DeserializeOwned>(archive: &Archive, file: &str) -> Result<Option<T>> {
    Ok(skep_archive::settings::load(&archive.layout().settings().join(file), VERSION)?)
}

/// The same from text.
pub fn read<T: DeserializeOwned>(text: &str, wrong: fn(String) -> Error) -> Result<T> {
    toml::from_str(text).map_err(|error| wrong(error.to_string()))
}

/// Rules by what they are about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided<R>(Vec<(String, R)>);

impl<R> Default for Decided<R> {
    fn default() -> Decided<R> {
        Decided(Vec::new())
    }
}

impl<R> Decided<R> {
    /// So many at most, each with what it is about.
    pub fn new(mut rules: Vec<(String, R)>, most: usize) -> std::result::Result<Decided<R>, String> {
        if rules.len() > most {
            return Err(format!("there are more than {most} rules"));
        }
        rules.sort_by_key(|(about, _)| std::cmp::Reverse(about.len()));
        Ok(Decided(rules))
    }

    /// The rule that counts for a URL.
    pub fn of(&self, url: &str) -> Option<&R> {
        self.0.iter().find(|(about, _)| is_about(about, url)).map(|(_, rule)| rule)
    }

    /// Every rule with what it is about, the most particular first.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &R)> {
        self.0.iter().map(|(about, rule)| (about.as_str(), rule))
    }
}

fn is_about(about: &str, url: &str) -> bool {
    if about.is_empty() || about.contains("://") {
        return url.starts_with(about) || about.strip_suffix(END) == Some(url);
    }
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest).split(['/', '?', '#']).next();
    let host = authority.map_or("", |authority| authority.rsplit('@').next().unwrap_or_default());
    let without_port = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|digit| digit.is_ascii_digit()));
    host == about || without_port.is_some_and(|(name, _)| name == about)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_particular_rule_counts() {
        let rules = ["", "example.org", "https://example.org/news/", "example.org:8080"];
        let decided = Decided::new(rules.iter().map(|about| ((*about).to_owned(), *about)).collect(), 9).unwrap();
        for (url, about) in [
            ("https://example.org/news/1", "https://example.org/news/"),
            ("http://example.org/news/1", "example.org"),
            ("http://example.org:81?q", "example.org"),
            ("http://example.org:8080/", "example.org:8080"),
            ("http://www.example.org/", ""),
            ("http://example.org.evil.test/", ""),
            ("http://[::1]:80/", ""),
        ] {
            assert_eq!(decided.of(url), Some(&about), "{url}");
        }
        let one = Decided::new(vec![("https://example.org/$".to_owned(), ())], 9).unwrap();
        assert!(one.of("https://example.org/").is_some() && one.of("https://example.org/a").is_none());
        assert!(one.of("https://example.org/$a").is_some(), "a URL may have that in it");
        assert!(Decided::new(vec![(String::new(), ()), (String::new(), ())], 1).is_err());
        assert_eq!(Decided::<()>::default().of("http://a/"), None);
    }
}
