//! Filters of lines, in the ways of the three dialects. Pure. Expressions are matched in linear time and bounded in size.

use super::line::{Field, Line};
use crate::trouble::Trouble;
use regex::{Regex, RegexBuilder};

/// Bytes that a compiled expression may take.
const EXPRESSION_BYTES_MAX: usize = 1 << 20;
/// Filters of one request.
pub const FILTERS_MAX: usize = 50;
/// Bytes of one filter.
const FILTER_BYTES_MAX: usize = 4096;

#[derive(Clone)]
enum Test {
    Contains(String),
    Equals(String),
    Matches(Regex),
}

/// Lets lines through, or holds them back.
#[derive(Clone)]
pub struct Filter {
    /// `None`: the whole line.
    field: Option<Field>,
    test: Test,
    inverted: bool,
}

/// How much of a value an expression must match.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Anchor {
    Whole,
    Start,
}

fn expression(text: &str, anchor: Anchor) -> Result<Test, Trouble> {
    let anchored = match anchor {
        Anchor::Whole => format!("^(?:{text})$"),
        Anchor::Start => format!("^(?:{text})"),
    };
    let built =
        RegexBuilder::new(&anchored).size_limit(EXPRESSION_BYTES_MAX).dfa_size_limit(EXPRESSION_BYTES_MAX).build();
    built.map(Test::Matches).map_err(|error| {
        let why = match error {
            regex::Error::CompiledTooBig(_) => "it is too large".to_owned(),
            other => other.to_string().lines().last().unwrap_or_default().trim().to_owned(),
        };
        Trouble::bad(format!("The expression {text:?} cannot be used: {why}"))
    })
}

impl Filter {
    fn bounded(spec: &str) -> Result<&str, Trouble> {
        match spec.len() <= FILTER_BYTES_MAX {
            true => Ok(spec),
            false => Err(Trouble::bad(format!("A filter has at most {FILTER_BYTES_MAX} bytes"))),
        }
    }

    /// The Internet Archive's: `[!]field:expression` or `[!]expression` for the whole line; the expression matches all of it.
    pub fn internet_archive(spec: &str) -> Result<Filter, Trouble> {
        let (inverted, rest) = inversion(Filter::bounded(spec)?);
        let (field, text) = split(rest);
        Ok(Filter { field, test: expression(text, Anchor::Whole)?, inverted })
    }

    /// pywb's: `[!][=|~]field:text`. Without a sign the value contains the text, with `=` it is the text, with `~` the expression
    /// matches its beginning.
    pub fn pywb(spec: &str) -> Result<Filter, Trouble> {
        let (inverted, rest) = inversion(Filter::bounded(spec)?);
        let (kind, rest) = match rest.chars().next() {
            Some(sign @ ('=' | '~')) => (sign, &rest[1..]),
            _ => (' ', rest),
        };
        let (field, text) = split(rest);
        let test = match kind {
            '=' => Test::Equals(text.to_owned()),
            '~' => expression(text, Anchor::Start)?,
            _ => Test::Contains(text.to_owned()),
        };
        Ok(Filter { field, test, inverted })
    }

    /// OutbackCDX's: `[~][!]field:text`. The expression matches all of the value, or with `~` the value contains the text.
    pub fn outback(spec: &str) -> Result<Filter, Trouble> {
        let (contains, rest) = Filter::bounded(spec)?.strip_prefix('~').map_or((false, spec), |rest| (true, rest));
        let (inverted, rest) = inversion(rest);
        let (contains, rest) = rest.strip_prefix('~').map_or((contains, rest), |rest| (true, rest));
        let (equals, rest) = rest.strip_prefix('=').map_or((false, rest), |rest| (true, rest));
        let (field, text) = split(rest);
        if field.is_none() {
            return Err(Trouble::bad(format!("Invalid filter: {spec}")));
        }
        let test = match (equals, contains) {
            (true, _) => Test::Equals(text.to_owned()),
            (_, true) => Test::Contains(text.to_owned()),
            _ => expression(text, Anchor::Whole)?,
        };
        Ok(Filter { field, test, inverted })
    }

    /// Whether a line passes.
    pub fn admits(&self, line: &Line) -> bool {
        let value = match self.field {
            Some(field) => line.get(field).unwrap_or_default(),
            None => whole(line).into(),
        };
        let matched = match &self.test {
            Test::Contains(text) => value.contains(text.as_str()),
            Test::Equals(text) => value == text.as_str(),
            Test::Matches(expression) => expression.is_match(&value),
        };
        matched != self.inverted
    }
}

fn inversion(spec: &str) -> (bool, &str) {
    spec.strip_prefix('!').map_or((false, spec), |rest| (true, rest))
}

/// What stands before the first colon, if it could be a name.
fn split(spec: &str) -> (Option<Field>, &str) {
    match spec.split_once(':') {
        Some((name, text)) if name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_')) => {
            (Some(Field::of(name)), text)
        }
        _ => (None, spec),
    }
}

/// A line as text.
pub fn whole(line: &Line) -> String {
    let fields =
        [Field::UrlKey, Field::Timestamp, Field::Url, Field::Mime, Field::Status, Field::Digest, Field::Length];
    fields.map(|field| line.text(field)).join(" ")
}
