//! One address becomes its replay: `<prefix><time><modifier>/<url>`.

use encoding_rs::Encoding;

use super::Place;
use crate::resolve::Resolver;

/// Everything that addresses on one page are rewritten with.
#[derive(Debug)]
pub struct Addresses {
    prefix: String,
    time: String,
    resolver: Resolver,
    scratch: String,
}

impl Addresses {
    pub fn new(place: &Place<'_>, charset: &'static Encoding) -> Addresses {
        Addresses {
            prefix: place.prefix.to_owned(),
            time: place.time.to_owned(),
            resolver: Resolver::new(place.url, charset),
            scratch: String::new(),
        }
    }

    /// Takes the base that a page names. One that cannot be fetched from does not count.
    pub fn set_base(&mut self, reference: &str) {
        if let Some(resolver) = self.resolver.with_base(reference) {
            self.resolver = resolver;
        }
    }

    /// The page's base, in WHATWG form.
    pub fn base(&self) -> &str {
        self.resolver.base()
    }

    /// `http://host:port` of the replay.
    pub fn origin(&self) -> &str {
        origin(&self.prefix)
    }

    /// The prefix of all replayed addresses.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The time of the page.
    pub fn time(&self) -> &str {
        &self.time
    }

    /// Appends the replay of an address: printable ASCII without quotation marks, `<` and `>`. `false`: it stays as it is, for it
    /// leads nowhere (`#top`, `data:`, `mailto:`, nonsense) or to a replay already.
    pub fn write(&mut self, modifier: &str, reference: &str, out: &mut String) -> bool {
        let reference = reference.trim_matches(|c: char| c <= ' ');
        if reference.is_empty() || reference.starts_with('#') || reference.starts_with(&self.prefix) {
            return false;
        }
        let (address, fragment) = match reference.find('#') {
            Some(at) => reference.split_at(at),
            None => (reference, ""),
        };
        if !self.resolver.resolve(address, &mut self.scratch) {
            return false;
        }
        out.reserve(self.prefix.len() + self.time.len() + modifier.len() + 1 + self.scratch.len() + fragment.len());
        out.push_str(&self.prefix);
        out.push_str(&self.time);
        out.push_str(modifier);
        out.push('/');
        out.push_str(&self.scratch);
        push_fragment(fragment, out);
        true
    }

    /// The same as a text of its own.
    pub fn get(&mut self, modifier: &str, reference: &str) -> Option<String> {
        let mut out = String::new();
        self.write(modifier, reference, &mut out).then_some(out)
    }
}

fn origin(prefix: &str) -> &str {
    let host = prefix.find("://").map_or(0, |colon| colon + 3);
    &prefix[..prefix[host..].find('/').map_or(prefix.len(), |slash| host + slash)]
}

/// As browsers write a fragment, and no character that would end the text it stands in.
fn push_fragment(fragment: &str, out: &mut String) {
    use std::fmt::Write;
    for character in fragment.chars() {
        match character {
            '\t' | '\n' | '\r' => {}
            '\0'..=' ' | '"' | '<' | '>' | '`' | '\x7f'.. => {
                for byte in character.encode_utf8(&mut [0; 4]).bytes() {
                    // Writing into a text never fails.
                    let _ = write!(out, "%{byte:02X}");
                }
            }
            _ => out.push(character),
        }
    }
}
