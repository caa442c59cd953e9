//! Sites: the registrable domain of a host name, by the public suffix list.
//!
//! The list has two parts. Politeness counts by the whole of it: two shops on one shop platform are two sites. Placement counts
//! by the ICANN part alone, which changes little and late, because moving a site means moving its records.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use psl::Psl;

use crate::limits;

/// A public suffix list: the one compiled in, or one read from a file in the list's own format.
#[derive(Clone, Debug, Default)]
pub struct Suffixes {
    loaded: Option<Arc<Node>>,
}

/// Which rules of the list count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All of them: the unit of politeness.
    Whole,
    /// Those of registries only: the unit of placement.
    Icann,
}

/// One label of the list, as a tree from the last label of a name to its first.
#[derive(Clone, Debug, Default)]
struct Node {
    /// A rule ends here.
    rule: Option<Part>,
    /// A rule `*.` ends below here.
    wildcard: Option<Part>,
    /// A rule `!` ends here: this name is registrable although a wildcard says otherwise.
    exception: Option<Part>,
    below: HashMap<Box<[u8]>, Node>,
}

/// Why bytes are no public suffix list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SuffixListError {
    /// Longer than [`limits::SUFFIX_LIST_BYTES_MAX`].
    TooLong,
    /// Not UTF-8.
    NotText,
    /// No line between the marks of the ICANN part.
    NoIcannPart,
}

impl fmt::Display for SuffixListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SuffixListError::TooLong => {
                write!(f, "the public suffix list is longer than {} bytes", limits::SUFFIX_LIST_BYTES_MAX)
            }
            SuffixListError::NotText => write!(f, "the public suffix list is not UTF-8 text"),
            SuffixListError::NoIcannPart => write!(
                f,
                "no rule between '===BEGIN ICANN DOMAINS===' and '===END ICANN DOMAINS===': is it a public_suffix_list.dat?"
            ),
        }
    }
}

impl std::error::Error for SuffixListError {}

impl Suffixes {
    /// Which list is compiled in: nodes that are to agree on what a site is compare it.
    pub const COMPILED: &'static str = "psl 2.1.246";

    /// The list compiled in.
    pub const fn compiled() -> Suffixes {
        Suffixes { loaded: None }
    }

    /// Reads a `public_suffix_list.dat`.
    pub fn parse(file: &[u8]) -> Result<Suffixes, SuffixListError> {
        if file.len() > limits::SUFFIX_LIST_BYTES_MAX {
            return Err(SuffixListError::TooLong);
        }
        let text = std::str::from_utf8(file).map_err(|_| SuffixListError::NotText)?;
        let mut root = Node::default();
        let (mut part, mut found_icann) = (Part::Whole, false);
        for line in text.lines() {
            if line.starts_with("//") {
                match line {
                    _ if line.contains("===BEGIN ICANN DOMAINS===") => part = Part::Icann,
                    _ if line.contains("===END ICANN DOMAINS===") => part = Part::Whole,
                    _ => {}
                }
                continue;
            }
            let Some(rule) = line.split_whitespace().next() else { continue };
            found_icann |= part == Part::Icann;
            root.add(rule, part);
        }
        if !found_icann {
            return Err(SuffixListError::NoIcannPart);
        }
        Ok(Suffixes { loaded: Some(Arc::new(root)) })
    }

    /// The site of a host name: its registrable domain, or the name itself if it is a public suffix, an address or a
    /// single label. The name is lower-case ASCII, as hosts of [`crate::Url`] are.
    pub fn site<'a>(&self, host: &'a str, part: Part) -> &'a str {
        let name = host.strip_suffix('.').unwrap_or(host);
        if is_address(name) {
            return host;
        }
        let suffix = self.suffix_bytes(name.rsplit('.').map(str::as_bytes), part);
        let Some(before) = name.len().checked_sub(suffix + 1) else { return name };
        let label = name.as_bytes()[..before].iter().rposition(|&b| b == b'.').map_or(0, |dot| dot + 1);
        &name[label..]
    }

    /// Length of the public suffix of a name whose labels come last first.
    pub(crate) fn suffix_bytes<'a>(&self, labels: impl Iterator<Item = &'a [u8]>, part: Part) -> usize {
        let mut few = [&b""[..]; limits::SUFFIX_LABELS_MAX];
        let mut count = 0;
        for (place, label) in few.iter_mut().zip(labels) {
            *place = label;
            count += 1;
        }
        match &self.loaded {
            Some(root) => root.suffix_bytes(&few[..count], part),
            None => compiled_suffix_bytes(&few[..count], part),
        }
    }
}

/// Takes a slice, not any iterator: the list is code, two megabytes of it, made anew for each type it is asked with.
fn compiled_suffix_bytes(labels: &[&[u8]], part: Part) -> usize {
    let find = |labels: &[&[u8]]| psl::List.find(labels.iter().copied());
    let mut found = find(labels);
    // The list answers with the longest rule. When that one is private, the registry's rule is found above it.
    while part == Part::Icann && found.typ == Some(psl::Type::Private) {
        let mut bytes = 0;
        let above = labels.iter().enumerate().take_while(|(i, label)| {
            bytes += label.len() + usize::from(*i > 0);
            bytes < found.len
        });
        match above.count() {
            0 => break,
            count => found = find(&labels[..count]),
        }
    }
    found.len
}

impl Node {
    fn add(&mut self, rule: &str, part: Part) {
        let (rule, exception) = rule.strip_prefix('!').map_or((rule, false), |rule| (rule, true));
        let (rule, wildcard) = rule.strip_prefix("*.").map_or((rule, false), |rule| (rule, true));
        let Ok(name) = idna::domain_to_ascii(rule) else { return };
        let mut node = self;
        for label in name.rsplit('.') {
            node = node.below.entry(label.as_bytes().into()).or_default();
        }
        let end = match (exception, wildcard) {
            (true, _) => &mut node.exception,
            (_, true) => &mut node.wildcard,
            _ => &mut node.rule,
        };
        if *end != Some(Part::Icann) {
            *end = Some(part);
        }
    }

    fn suffix_bytes(&self, labels: &[&[u8]], part: Part) -> usize {
        let counts = |rule: Option<Part>| rule.is_some_and(|of| part == Part::Whole || of == Part::Icann);
        let (mut node, mut suffix, mut bytes) = (Some(self), 0, 0);
        for (i, &label) in labels.iter().enumerate() {
            let Some(above) = node else { break };
            let shorter = bytes;
            bytes += label.len() + usize::from(i > 0);
            // A last label that the list does not know is a suffix all the same.
            if i == 0 || counts(above.wildcard) {
                suffix = bytes;
            }
            node = above.below.get(label);
            if let Some(node) = node {
                if counts(node.exception) {
                    return shorter;
                }
                if counts(node.rule) {
                    suffix = bytes;
                }
            }
        }
        suffix
    }
}

/// An IPv4 or IPv6 address, which has no labels.
fn is_address(name: &str) -> bool {
    name.contains(':') || (name.ends_with(|c: char| c.is_ascii_digit()) && name.parse::<std::net::Ipv4Addr>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_list_is_that_of_the_one_compiled_in() {
        let (name, version) = Suffixes::COMPILED.split_once(' ').expect("a name and a version");
        let line = format!("{name} = \"={version}\"");
        assert!(include_str!("../Cargo.toml").lines().any(|known| known == line), "{line}");
    }

    const LIST: &str = "// ===BEGIN ICANN DOMAINS===\ncom\nuk\nco.uk\n*.ck\n!www.ck\njp\n*.kawasaki.jp\n!city.kawasaki.jp\nрф\nio\n\
                        // ===END ICANN DOMAINS===\n// ===BEGIN PRIVATE DOMAINS===\ngithub.io\n*.hosting.com\n!own.hosting.com\n";

    const CASES: &[(&str, &str, &str)] = &[
        ("example.com", "example.com", "example.com"),
        ("a.b.example.com", "example.com", "example.com"),
        ("a.example.co.uk", "example.co.uk", "example.co.uk"),
        ("co.uk", "co.uk", "co.uk"),
        ("com", "com", "com"),
        ("localhost", "localhost", "localhost"),
        ("a.unlisted-suffix", "a.unlisted-suffix", "a.unlisted-suffix"),
        ("b.a.unlisted-suffix", "a.unlisted-suffix", "a.unlisted-suffix"),
        ("x.y.z.ck", "y.z.ck", "y.z.ck"),
        ("x.www.ck", "www.ck", "www.ck"),
        ("a.b.c.kawasaki.jp", "b.c.kawasaki.jp", "b.c.kawasaki.jp"),
        ("a.city.kawasaki.jp", "city.kawasaki.jp", "city.kawasaki.jp"),
        ("a.xn--e1afmkfd.xn--p1ai", "xn--e1afmkfd.xn--p1ai", "xn--e1afmkfd.xn--p1ai"),
        ("pages.someone.github.io", "someone.github.io", "github.io"),
        ("github.io", "github.io", "github.io"),
        ("127.0.0.1", "127.0.0.1", "127.0.0.1"),
        ("[::1]", "[::1]", "[::1]"),
        ("", "", ""),
    ];

    #[test]
    fn sites_by_the_list_compiled_in() {
        for &(host, whole, icann) in CASES {
            let list = Suffixes::compiled();
            assert_eq!((list.site(host, Part::Whole), list.site(host, Part::Icann)), (whole, icann), "{host}");
        }
    }

    #[test]
    fn sites_by_a_list_from_a_file() {
        let list = Suffixes::parse(LIST.as_bytes()).unwrap();
        for &(host, whole, icann) in CASES {
            assert_eq!((list.site(host, Part::Whole), list.site(host, Part::Icann)), (whole, icann), "{host}");
        }
        assert_eq!(list.site("a.b.c.hosting.com", Part::Whole), "b.c.hosting.com");
        assert_eq!(list.site("a.own.hosting.com", Part::Whole), "own.hosting.com");
        assert_eq!(list.site("a.b.c.hosting.com", Part::Icann), "hosting.com");
    }

    #[test]
    fn what_is_no_list_is_refused() {
        assert_eq!(Suffixes::parse(b"<html>").unwrap_err(), SuffixListError::NoIcannPart);
        assert_eq!(Suffixes::parse(b"\xff").unwrap_err(), SuffixListError::NotText);
        assert!(SuffixListError::NoIcannPart.to_string().contains("public_suffix_list.dat"));
    }
}
