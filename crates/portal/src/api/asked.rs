//! A request taken apart by what the table says of its parameters. Pure.

use super::table::{Endpoint, Kind, Parameter, Place};
use crate::time;
use crate::trouble::Trouble;

/// Values by the names of their parameters, each as its kind wants it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked(Vec<(&'static str, String)>);

fn decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned()
}

impl Asked {
    /// Checks the values of a path and a query against the table.
    pub fn of(endpoint: &Endpoint, values: &[String], query: &str) -> Result<Asked, Trouble> {
        let mut asked = Vec::new();
        let in_path = endpoint.parameters.iter().filter(|parameter| parameter.place == Place::Path);
        for (parameter, value) in in_path.zip(values) {
            parameter.check(value).map_err(Trouble::bad)?;
            asked.push((parameter.name, value.clone()));
        }
        let in_query: Vec<&Parameter> =
            endpoint.parameters.iter().filter(|parameter| parameter.place == Place::Query).collect();
        for part in query.split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let (name, value) = (decoded(name), decoded(value));
            let Some(parameter) = in_query.iter().find(|parameter| parameter.name == name) else {
                let names: Vec<&str> = in_query.iter().map(|parameter| parameter.name).collect();
                let known = if names.is_empty() {
                    "there is none here".to_owned()
                } else {
                    format!("here are: {}", names.join(", "))
                };
                let name: String = name.chars().take(100).collect();
                return Err(Trouble::bad(format!("There is no parameter {name:?}; {known}.")));
            };
            if asked.iter().any(|(known, _)| *known == parameter.name) {
                return Err(Trouble::bad(format!("The parameter {} is given twice.", parameter.name)));
            }
            parameter.check(&value).map_err(Trouble::bad)?;
            asked.push((parameter.name, value));
        }
        let missing = in_query.iter().find(|p| p.required && !asked.iter().any(|(name, _)| *name == p.name));
        if let Some(missing) = missing {
            return Err(Trouble::bad(format!("The parameter {} is missing: {}.", missing.name, missing.about)));
        }
        Ok(Asked(asked))
    }

    /// For pages, which ask in their own words.
    pub fn with(mut self, name: &'static str, value: &str) -> Asked {
        self.0.push((name, value.to_owned()));
        self
    }

    /// With another value of a parameter, or its first.
    pub fn instead(mut self, name: &'static str, value: String) -> Asked {
        self.0.retain(|(known, _)| *known != name);
        self.0.push((name, value));
        self
    }

    /// All of it as the query of an address.
    pub fn query(&self) -> String {
        let one = |(name, value): &(&str, String)| {
            format!("{name}={}", percent_encoding::utf8_percent_encode(value, percent_encoding::NON_ALPHANUMERIC))
        };
        self.0.iter().map(one).collect::<Vec<_>>().join("&")
    }

    /// A value.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    /// A value that is always there.
    pub fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }

    /// A whole number, or what is meant without one.
    pub fn number(&self, name: &str, otherwise: usize) -> usize {
        self.get(name).and_then(|text| text.parse().ok()).unwrap_or(otherwise)
    }

    /// The first moment that digits name.
    pub fn earliest(&self, name: &str) -> Option<i64> {
        self.get(name).map(|digits| time::earliest(digits).unwrap_or(i64::MIN))
    }

    /// The last moment that digits name.
    pub fn latest(&self, name: &str) -> Option<i64> {
        self.get(name).map(|digits| time::latest(digits).unwrap_or(i64::MAX))
    }

    /// The bytes of a cursor.
    pub fn cursor(&self) -> Vec<u8> {
        bytes_of(self.text("after")).unwrap_or_default()
    }
}

/// The bytes in a cursor; `None` if it is none.
pub fn bytes_of(cursor: &str) -> Option<Vec<u8>> {
    let value = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
    let pairs = cursor.as_bytes().chunks(2);
    pairs.map(|pair| Some(value(pair[0])? << 4 | value(*pair.get(1)?)?)).collect()
}

/// Bytes as a cursor.
pub fn cursor_of(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _strings_take_everything = write!(text, "{byte:02x}");
        text
    })
}

impl Parameter {
    /// Whether a value is what the table says.
    fn check(&self, value: &str) -> Result<(), String> {
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let (length, fits) = (value.chars().count(), |most: usize| !value.is_empty() && value.chars().count() <= most);
        let good = match self.kind {
            Kind::Url(most) | Kind::Text(most) => fits(most),
            Kind::Moment => digits(value) && (4..=14).contains(&length),
            Kind::Number { least, most } => {
                digits(value) && length <= 10 && value.parse().is_ok_and(|number: u64| (least..=most).contains(&number))
            }
            Kind::Choice(words) => words.contains(&value),
            Kind::Cursor(most) => {
                length >= 2
                    && length <= most
                    && length.is_multiple_of(2)
                    && value.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
            }
            Kind::File => file_parts(value, 1),
            Kind::Position => file_parts(value, 2),
        };
        let shown: String = value.chars().take(100).collect();
        good.then_some(())
            .ok_or_else(|| format!("{}={shown} cannot be: {} is {}.", self.name, self.name, self.kind.told()))
    }
}

fn file_parts(value: &str, numbers: usize) -> bool {
    let mut parts = value.split(':');
    let writer = parts.next().unwrap_or_default();
    let rest: Vec<&str> = parts.collect();
    writer.len() == 8
        && writer.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
        && rest.len() == numbers
        && rest.iter().all(|n| (1..=10).contains(&n.len()) && n.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::super::table::ENDPOINTS;
    use super::*;

    fn asked(id: &str, query: &str) -> Result<Asked, String> {
        let endpoint = ENDPOINTS.iter().find(|endpoint| endpoint.id == id).unwrap();
        Asked::of(endpoint, &[], query).map_err(|trouble| trouble.told)
    }

    #[test]
    fn what_the_table_says_is_checked() {
        let good = asked("searchUrls", "q=a+b%26c&limit=5&after=00ff").unwrap();
        assert_eq!((good.text("q"), good.number("limit", 1)), ("a b&c", 5));
        assert_eq!((good.cursor(), cursor_of(&[0, 255])), (vec![0, 255], "00ff".to_owned()));
        for (query, told) in [
            ("", "q is missing"),
            ("q=", "q= cannot be"),
            ("q=a&q=b", "given twice"),
            ("q=a&Q=b", "no parameter \"Q\""),
            ("q=a&limit=0", "limit=0 cannot be"),
            ("q=a&limit=1e3", "limit=1e3 cannot be"),
            ("q=a&limit=99999999999999999999", "cannot be"),
            ("q=a&after=0", "after=0 cannot be"),
            ("q=a&after=0G", "after=0G cannot be"),
        ] {
            let wrong = asked("searchUrls", query).unwrap_err();
            assert!(wrong.contains(told), "{query}: {wrong}");
        }
        assert!(asked("tellUrl", "url=http://a/&from=20x").is_err());
        assert_eq!(asked("tellUrl", "url=http://a/&from=2014").unwrap().earliest("from"), Some(1_388_534_400_000));
    }
}
