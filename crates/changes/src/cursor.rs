//! Cursors: `node:number`, the name of an event in the log of one node.

use std::fmt;
use std::str::FromStr;

/// The place of an event in a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    /// Whose log: the writer's key, and when the log began. A log that was built again is another one.
    pub node: String,
    /// Which event, counted from 1; 0 stands before the first.
    pub number: u64,
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.node, self.number)
    }
}

/// It does not look like a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoCursor;

impl FromStr for Cursor {
    type Err = NoCursor;

    fn from_str(text: &str) -> Result<Cursor, NoCursor> {
        let (node, number) = text.split_once(':').ok_or(NoCursor)?;
        let is_node =
            !node.is_empty() && node.len() <= 64 && node.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_lowercase());
        let digits = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
        match (is_node && digits, number.parse()) {
            (true, Ok(number)) => Ok(Cursor { node: node.to_owned(), number }),
            _ => Err(NoCursor),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_told_from_times() {
        let cursor: Cursor = "c41f22ab0mi2k3l4m:17".parse().unwrap();
        assert_eq!((cursor.number, cursor.to_string()), (17, "c41f22ab0mi2k3l4m:17".to_owned()));
        for time in ["2026", "2026-11-16T10:22:33Z", "20261116", "10:22:33", "", ":", "a:", "A:1", "a:-1", "a:1:2"] {
            assert_eq!(time.parse::<Cursor>(), Err(NoCursor), "{time}");
        }
        assert_eq!("a:99999999999999999999".parse::<Cursor>(), Err(NoCursor));
    }
}
