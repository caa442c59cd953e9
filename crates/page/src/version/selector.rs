//! Selectors over a stream of tags: `main`, `#clock`, `.ad`, `div.box[data-kind=news] p`, several with commas.
//!
//! No tree is built. An element is open until as many end tags of its name came as start tags since; that is right for the
//! containers that people name in rules.

use std::fmt;

use crate::element::Element;
use crate::limits;
use crate::scan::Tag;

/// Selectors of one kind, and where on the page each of them stands.
#[derive(Debug, Clone, Default)]
pub struct Selectors {
    chains: Vec<Chain>,
}

/// Parts that stand inside each other, the outermost first.
#[derive(Debug, Clone)]
struct Chain {
    parts: Vec<Part>,
    /// Outer parts that are open, in the order of their tags.
    open: Vec<Open>,
}

#[derive(Debug, Clone, Default)]
struct Part {
    name: Option<String>,
    id: Option<String>,
    classes: Vec<String>,
    attributes: Vec<(String, Option<Value>)>,
}

#[derive(Debug, Clone)]
struct Value {
    how: How,
    text: String,
}

#[derive(Debug, Clone, Copy)]
enum How {
    Is,
    Begins,
    Ends,
    Contains,
    Word,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    part: usize,
    element: Element,
    depth: u32,
}

/// Why a selector is not understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoSelector {
    selector: String,
    why: &'static str,
}

impl fmt::Display for NoSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the selector {:?} is not understood: {}", self.selector, self.why)
    }
}

impl std::error::Error for NoSelector {}

impl Selectors {
    /// Reads selectors, each of which may be several with commas.
    pub fn read(selectors: &[String]) -> Result<Selectors, NoSelector> {
        let mut chains = Vec::new();
        for selector in selectors {
            let wrong = |why| NoSelector { selector: selector.chars().take(120).collect(), why };
            for one in split(selector, ',') {
                chains.push(Chain { parts: parts(one.trim()).map_err(wrong)?, open: Vec::new() });
            }
            if chains.len() > limits::SITE_RULES_MAX {
                return Err(wrong("there are too many"));
            }
        }
        Ok(Selectors { chains })
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.chains.is_empty()
    }

    /// Takes a start tag in. Does one of them mean this element?
    pub fn start(&mut self, tag: &Tag<'_>, leaves_open: bool) -> bool {
        let mut found = false;
        for chain in &mut self.chains {
            found |= chain.start(tag, leaves_open);
        }
        found
    }

    /// Takes an end tag in.
    pub fn end(&mut self, element: Element) {
        for chain in &mut self.chains {
            for open in chain.open.iter_mut().filter(|open| open.element == element) {
                open.depth = open.depth.saturating_sub(1);
            }
            if let Some(at) = chain.open.iter().position(|open| open.depth == 0) {
                chain.open.truncate(at);
            }
        }
    }
}

impl Chain {
    fn start(&mut self, tag: &Tag<'_>, leaves_open: bool) -> bool {
        let reached = self.open.iter().map(|open| open.part + 1).max().unwrap_or(0);
        if leaves_open {
            self.open.iter_mut().filter(|open| open.element == tag.element).for_each(|open| open.depth += 1);
        }
        let last = self.parts.len() - 1;
        let mut found = false;
        for part in 0..=reached.min(last) {
            if !self.parts[part].fits(tag) {
                continue;
            }
            if part == last {
                found = true;
            } else if leaves_open && self.open.len() < limits::SELECTOR_OPEN_MAX {
                self.open.push(Open { part, element: tag.element, depth: 1 });
            }
        }
        found
    }
}

impl Part {
    fn fits(&self, tag: &Tag<'_>) -> bool {
        let words = |name: &str| tag.attribute(name).unwrap_or_default();
        self.name.as_ref().is_none_or(|name| tag.name.eq_ignore_ascii_case(name.as_bytes()))
            && self.id.as_ref().is_none_or(|id| words("id") == id.as_bytes())
            && self.classes.iter().all(|class| has_word(words("class"), class))
            && self.attributes.iter().all(|(name, value)| match (tag.attribute(name), value) {
                (Some(_), None) => true,
                (Some(found), Some(value)) => value.fits(found),
                (None, _) => false,
            })
    }
}

impl Value {
    fn fits(&self, found: &[u8]) -> bool {
        let text = self.text.as_bytes();
        match self.how {
            How::Is => found == text,
            How::Begins => found.starts_with(text),
            How::Ends => found.ends_with(text),
            How::Contains => memchr::memmem::find(found, text).is_some(),
            How::Word => has_word(found, &self.text),
        }
    }
}

fn has_word(words: &[u8], word: &str) -> bool {
    words.split(u8::is_ascii_whitespace).any(|found| found == word.as_bytes())
}

/// Cuts at a sign that stands outside of brackets.
fn split(text: &str, at: char) -> impl Iterator<Item = &str> {
    let mut inside = false;
    text.split(move |c| {
        inside = c == '[' || inside && c != ']';
        c == at && !inside
    })
}

fn parts(selector: &str) -> Result<Vec<Part>, &'static str> {
    let parts: Vec<Part> = split(selector, ' ').filter(|part| !part.is_empty()).map(part).collect::<Result<_, _>>()?;
    match parts.len() {
        0 => Err("it is empty"),
        count if count > limits::SELECTOR_PARTS_MAX => Err("it has too many parts"),
        _ => Ok(parts),
    }
}

fn part(text: &str) -> Result<Part, &'static str> {
    let name_end = text.find(['.', '#', '[']).unwrap_or(text.len());
    let (name, mut rest) = text.split_at(name_end);
    let is_name = |text: &str| text.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'));
    if !is_name(name) && name != "*" {
        return Err("it may be made of names, #ids, .classes and [attributes], with spaces for what is inside what");
    }
    let mut part =
        Part { name: (!name.is_empty() && name != "*").then(|| name.to_ascii_lowercase()), ..Part::default() };
    let mut pieces = 0;
    while let Some(sign) = rest.chars().next() {
        pieces += 1;
        if pieces > limits::SELECTOR_PARTS_MAX {
            return Err("it has too many parts");
        }
        if sign == '[' {
            let end = rest.find(']').ok_or("a [ has no ]")?;
            part.attributes.push(attribute(&rest[1..end])?);
            rest = &rest[end + 1..];
            continue;
        }
        let end = rest[1..].find(['.', '#', '[']).map_or(rest.len(), |at| at + 1);
        let name = &rest[1..end];
        if name.is_empty() || !is_name(name) {
            return Err("after # and . stands a name");
        }
        match sign {
            '#' => part.id = Some(name.to_owned()),
            _ => part.classes.push(name.to_owned()),
        }
        rest = &rest[end..];
    }
    Ok(part)
}

fn attribute(text: &str) -> Result<(String, Option<Value>), &'static str> {
    let Some((name, value)) = text.split_once('=') else {
        return Ok((text.trim().to_ascii_lowercase(), None));
    };
    let (name, how) = match name.as_bytes().last() {
        Some(b'^') => (&name[..name.len() - 1], How::Begins),
        Some(b'$') => (&name[..name.len() - 1], How::Ends),
        Some(b'*') => (&name[..name.len() - 1], How::Contains),
        Some(b'~') => (&name[..name.len() - 1], How::Word),
        _ => (name, How::Is),
    };
    let text = value.trim().trim_matches(['"', '\'']).to_owned();
    if name.trim().is_empty() || text.is_empty() && !matches!(how, How::Is) {
        return Err("an attribute has a name, and a part of its value is not empty");
    }
    Ok((name.trim().to_ascii_lowercase(), Some(Value { how, text })))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::{Options, Scanner, Token};

    fn found(selector: &str, markup: &str) -> Vec<String> {
        let mut selectors = Selectors::read(&[selector.to_owned()]).unwrap();
        let mut scanner = Scanner::new(markup.as_bytes(), Options::default());
        let mut found = Vec::new();
        while let Some(token) = scanner.next() {
            match token {
                Token::Start if selectors.start(&scanner.tag, true) => {
                    found.push(String::from_utf8_lossy(scanner.tag.attribute("n").unwrap_or_default()).into_owned());
                }
                Token::End => selectors.end(scanner.tag.element),
                _ => {}
            }
        }
        found
    }

    #[test]
    fn elements_are_found_by_what_they_are_and_where_they_stand() {
        let page = "<main n=1><div class='a b' n=2><p n=3></p></div></main><p n=4></p>\
                    <div id=x data-kind='news item' n=5><div n=6><p n=7></p></div><p n=8></p></div><p n=9></p>";
        for (selector, wanted) in [
            ("p", "3 4 7 8 9"),
            ("main p", "3"),
            (".b", "2"),
            ("div.a.b p, #x", "3 5"),
            ("#x p", "7 8"),
            ("#x div p", "7"),
            ("[data-kind]", "5"),
            ("[data-kind~=item]", "5"),
            ("div[data-kind^=\"news\"] p", "7 8"),
            ("*[data-kind$=x]", ""),
        ] {
            assert_eq!(found(selector, page).join(" "), wanted, "{selector}");
        }
    }

    #[test]
    fn what_is_no_selector_is_told() {
        for wrong in ["", "a > b", "a:hover", "[x", ".", "a b c d e f g h i", ",a"] {
            assert!(Selectors::read(&[wrong.to_owned()]).is_err(), "{wrong}");
        }
    }
}
