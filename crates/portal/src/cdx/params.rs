//! The query of an address, as pairs. Pure.

use crate::trouble::Trouble;

/// The parameters of a request, in order; a name may come several times.
#[derive(Clone, Debug, Default)]
pub struct Params(Vec<(String, String)>);

/// Parameters of one request; more are not looked at.
const PARAMS_MAX: usize = 200;

fn decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned()
}

impl Params {
    /// Reads a query.
    pub fn of(query: &str) -> Params {
        let pair = |part: &str| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            (decoded(name), decoded(value))
        };
        Params(query.split('&').filter(|part| !part.is_empty()).take(PARAMS_MAX).map(pair).collect())
    }

    /// The first value of this name; an empty one is none.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(found, _)| found == name)
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }

    /// The names that were given.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// All values of this name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// `true` and `1` mean yes.
    pub fn is(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| matches!(value.to_ascii_lowercase().as_str(), "true" | "1" | "yes" | "on"))
    }

    /// A whole number.
    pub fn number(&self, name: &str) -> Result<Option<i64>, Trouble> {
        let Some(text) = self.get(name) else { return Ok(None) };
        // More digits than fit mean as many as there are.
        let digits = text.strip_prefix('-').unwrap_or(text);
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(Trouble::bad(format!("{name}={text} is not a whole number")));
        }
        let most = if text.starts_with('-') { i64::MIN } else { i64::MAX };
        Ok(Some(text.parse().unwrap_or(most)))
    }

    /// A moment from 1 to 14 digits.
    pub fn moment(&self, name: &str, read: fn(&str) -> Option<i64>) -> Result<Option<i64>, Trouble> {
        let Some(text) = self.get(name) else { return Ok(None) };
        read(text).map(Some).ok_or_else(|| Trouble::bad(format!("{name}={text} is not a time of 1 to 14 digits")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_read() {
        let params = Params::of(
            "url=http%3A%2F%2Fa%2F%3Fb&filter=a:b&filter=!c%3Ad+e&limit=-5&page=&x&big=99999999999999999999&y=1a",
        );
        assert_eq!(params.get("url"), Some("http://a/?b"));
        assert_eq!(params.all("filter").collect::<Vec<_>>(), ["a:b", "!c:d e"]);
        assert_eq!((params.get("page"), params.get("z")), (None, None));
        assert_eq!(params.number("limit").unwrap(), Some(-5));
        assert_eq!(params.number("big").unwrap(), Some(i64::MAX));
        assert!(params.number("y").is_err());
    }
}
