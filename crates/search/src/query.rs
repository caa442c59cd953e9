//! What is looked for, as typed. Pure.
//!
//! ```text
//!   words                all of them, in title or text, in any order
//!   "two words"          next to each other
//!   title:word           in the title; title:"two words"
//!   site:example.org     on this site and on all hosts below it
//!   host:news.example.org on this host
//!   -word                not with it; also -"two words", -title:word, -site:example.org
//! ```

use crate::limits::{QUERY_CHARS_MAX, QUERY_PARTS_MAX, QUERY_WORDS_MAX};
use crate::words::Words;
use skep_url::Key;

/// What is looked for: every part that is wanted, and none that is not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// Its parts.
    pub parts: Vec<Part>,
}

/// One condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// It must hold; or it must not.
    pub wanted: bool,
    /// What.
    pub ask: Ask,
}

/// What a condition is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Words next to each other, in title or text.
    Words(Vec<String>),
    /// The same in the title alone.
    Title(Vec<String>),
    /// A host and all below it, as in SURTs: `org,example`.
    Site(String),
    /// A host, as in SURTs.
    Host(String),
}

const FIELDS: &str = "title:word, site:example.org and host:news.example.org";
/// What other programs call something; here it would silently be a word.
const ELSEWHERE: [&str; 14] = [
    "allintext",
    "allintitle",
    "allinurl",
    "body",
    "content",
    "date",
    "domain",
    "filetype",
    "intext",
    "intitle",
    "inurl",
    "text",
    "type",
    "url",
];

impl Query {
    /// Reads a query; what is wrong with one is said so that it can be typed again.
    pub fn parse(text: &str) -> Result<Query, String> {
        if text.chars().count() > QUERY_CHARS_MAX {
            return Err(format!("the query is longer than {QUERY_CHARS_MAX} characters"));
        }
        let mut query = Query::default();
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            let (part, behind) = next_part(rest)?;
            query.parts.extend(part);
            rest = behind.trim_start();
        }
        let words: usize = query.parts.iter().map(|part| part.words().len()).sum();
        if query.parts.is_empty() {
            return Err("the query holds no word: type some letters or digits to look for".to_owned());
        }
        if query.parts.len() > QUERY_PARTS_MAX || words > QUERY_WORDS_MAX {
            return Err(format!("the query has more than {QUERY_PARTS_MAX} parts or {QUERY_WORDS_MAX} words"));
        }
        if !query.parts.iter().any(|part| part.wanted) {
            return Err("the query says only what to leave out: also type what to look for".to_owned());
        }
        Ok(query)
    }

    /// The words that a passage should show.
    pub fn shown(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter(|part| part.wanted).flat_map(|part| part.words()).map(String::as_str)
    }
}

impl Part {
    fn words(&self) -> &[String] {
        match &self.ask {
            Ask::Words(words) | Ask::Title(words) => words,
            Ask::Site(_) | Ask::Host(_) => &[],
        }
    }
}

/// The part that a text begins with, none if it is only punctuation; and what is behind it.
fn next_part(text: &str) -> Result<(Option<Part>, &str), String> {
    let (wanted, rest) = match text.strip_prefix('-') {
        Some(rest) if !rest.starts_with(char::is_whitespace) && !rest.is_empty() => (false, rest),
        _ => (true, text),
    };
    let name_end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
    let (name, field) = match rest[name_end..].strip_prefix(':') {
        Some(value) if name_end > 0 => (rest[..name_end].to_ascii_lowercase(), Some(value)),
        _ => (String::new(), None),
    };
    let known = matches!(name.as_str(), "title" | "site" | "host");
    if ELSEWHERE.contains(&name.as_str()) {
        return Err(format!("there is no {name}: here; there are {FIELDS}"));
    }
    let (value, behind) = match (known, field) {
        (true, Some(value)) => taken(value)?,
        _ => taken(rest)?,
    };
    if known && value.is_empty() {
        return Err(format!("{name}: is followed by nothing; there are {FIELDS}"));
    }
    let ask = match name.as_str() {
        "site" => Some(Ask::Site(host_of(value)?)),
        "host" => Some(Ask::Host(host_of(value)?)),
        "title" => Some(Words::all(value)).filter(|words| !words.is_empty()).map(Ask::Title),
        _ => Some(Words::all(value)).filter(|words| !words.is_empty()).map(Ask::Words),
    };
    Ok((ask.map(|ask| Part { wanted, ask }), behind))
}

/// What stands between quotation marks, or up to the next blank; and what is behind it.
fn taken(text: &str) -> Result<(&str, &str), String> {
    // Word processors make pairs of them.
    let quote = |c: char| matches!(c, '"' | '\u{201c}' | '\u{201d}' | '\u{201e}');
    let Some(inside) = text.strip_prefix(quote) else {
        let end = text.find(|c: char| c.is_whitespace() || quote(c)).unwrap_or(text.len());
        return Ok(text.split_at(end));
    };
    let Some(end) = inside.find(quote) else {
        let shown: String = inside.chars().take(40).collect();
        return Err(format!("the quotation mark before {shown:?} is not closed: \"two words\" has two of them"));
    };
    let behind = inside[end..].chars().next().map_or(0, char::len_utf8);
    Ok((&inside[..end], &inside[end + behind..]))
}

/// `news.example.org` → `org,example,news`.
fn host_of(typed: &str) -> Result<String, String> {
    let plain = typed.trim_start_matches("*.");
    let plain = plain.split_once("://").map_or(plain, |(_, behind)| behind);
    let plain = plain.split(['/', '?', '#']).next().unwrap_or_default();
    let key = Key::of(&format!("http://{plain}/"));
    let wrong = || format!("{typed:?} is not a host such as news.example.org");
    let (host, _) = key.surt().split_once(')').ok_or_else(wrong)?;
    let fine = !plain.is_empty() && !host.is_empty() && !host.contains(char::is_whitespace);
    fine.then(|| host.to_owned()).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> String {
        let query = match Query::parse(text) {
            Ok(query) => query,
            Err(wrong) => return format!("error: {wrong}"),
        };
        let part = |part: &Part| {
            let sign = if part.wanted { "+" } else { "-" };
            match &part.ask {
                Ask::Words(words) => format!("{sign}{}", words.join("_")),
                Ask::Title(words) => format!("{sign}title={}", words.join("_")),
                Ask::Site(site) => format!("{sign}site={site}"),
                Ask::Host(host) => format!("{sign}host={host}"),
            }
        };
        query.parts.iter().map(part).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn queries_are_taken_apart() {
        for (typed, meant) in [
            ("Bees  and HIVES", "+bees +and +hives"),
            ("\"woven hive\" -wasp", "+woven_hive -wasp"),
            ("-\"two words\" x", "-two_words +x"),
            ("title:Bees TITLE:\"the hive\"", "+title=bees +title=the_hive"),
            ("site:example.org host:News.Example.org:8080 x", "+site=org,example +host=org,example,news:8080 +x"),
            ("site:*.example.org -site:https://a.example.org/b", "+site=org,example -site=org,example,a"),
            ("well-known C++ & a - b", "+well_known +c +a +b"),
            ("at 12:30 http://a.example/b", "+at +12_30 +http_a_example_b"),
            ("\u{201c}curly marks\u{201d}", "+curly_marks"),
            ("東京都", "+東京_京都"),
            ("word\"stuck phrase\"", "+word +stuck_phrase"),
        ] {
            assert_eq!(told(typed), meant, "{typed}");
        }
    }

    #[test]
    fn what_is_wrong_is_told() {
        let long = "a ".repeat(400);
        for (typed, says) in [
            ("", "no word"),
            (" !? - ", "no word"),
            ("-bees", "only what to leave out"),
            ("\"not closed", "not closed"),
            ("title: bees", "followed by nothing"),
            ("title:", "followed by nothing"),
            ("inurl:bees", "there is no inurl: here"),
            ("site:/", "is not a host"),
            (long.as_str(), "more than"),
            ("x".repeat(QUERY_CHARS_MAX + 1).as_str(), "longer than"),
        ] {
            let told = told(typed);
            assert!(told.starts_with("error: ") && told.contains(says), "{typed:?}: {told}");
        }
    }

    #[test]
    fn no_query_panics() {
        let pieces = ["\"", "-", ":", "title:", "site:", "a", " ", "é", "東", "\u{201d}", "://", "\0", "[", "%"];
        for a in pieces {
            for b in pieces {
                for c in pieces {
                    for d in pieces {
                        let _either_way = Query::parse(&[a, b, c, d].concat());
                    }
                }
            }
        }
    }
}
