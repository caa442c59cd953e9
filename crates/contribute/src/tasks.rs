//! URLs of a bundle as they travel: column by column, so that what they have in common costs nothing.
//!
//! ```text
//! URLs, a line each | a byte for each: 1 keyed, 2 thorough | and, for those that have one, their place and: entity tag | date
//! ```

use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::limits::BUNDLE_URLS_MAX;
use crate::message::{Task, blob};

const KEYED: u8 = 1;
const THOROUGH: u8 = 2;

#[derive(Default, Serialize, Deserialize)]
struct Columns {
    urls: String,
    #[serde(with = "blob")]
    looks: Vec<u8>,
    etags: Vec<(u16, Vec<u8>)>,
    dates: Vec<(u16, Vec<u8>)>,
}

pub fn serialize<S: Serializer>(tasks: &[Task], out: S) -> Result<S::Ok, S::Error> {
    let mut columns = Columns::default();
    for (place, task) in tasks.iter().enumerate() {
        let place = u16::try_from(place).map_err(S::Error::custom)?;
        if task.url.contains('\n') {
            return Err(S::Error::custom("a URL of two lines is none"));
        }
        columns.urls.push_str(&task.url);
        columns.urls.push('\n');
        columns.looks.push(if task.keyed { KEYED } else { 0 } | if task.thorough { THOROUGH } else { 0 });
        for (list, value) in [(&mut columns.etags, &task.etag), (&mut columns.dates, &task.last_modified)] {
            list.extend(value.clone().map(|value| (place, value)));
        }
    }
    columns.serialize(out)
}

pub fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Vec<Task>, D::Error> {
    let columns = Columns::deserialize(from)?;
    columns.rows().ok_or_else(|| D::Error::custom("columns of different lengths"))
}

impl Columns {
    /// The URLs, if all columns have as many.
    fn rows(self) -> Option<Vec<Task>> {
        // No more are made than can be meant, whatever was sent.
        if self.looks.len() > BUNDLE_URLS_MAX {
            return None;
        }
        let mut rows = Vec::with_capacity(self.looks.len());
        let mut urls = self.urls.split_terminator('\n');
        for look in &self.looks {
            if look & !(KEYED | THOROUGH) != 0 {
                return None;
            }
            let url = urls.next()?.to_owned();
            rows.push(Task { url, keyed: look & KEYED != 0, thorough: look & THOROUGH != 0, ..Task::default() });
        }
        for (place, etag) in self.etags {
            rows.get_mut(usize::from(place))?.etag = Some(etag);
        }
        for (place, date) in self.dates {
            rows.get_mut(usize::from(place))?.last_modified = Some(date);
        }
        urls.next().is_none().then_some(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envelope::{plain, read_plain};
    use crate::message::{Answer, Bundle, Together, Wrong};
    use skep_schedule::Pace;

    #[test]
    fn urls_come_back_as_they_went_and_columns_that_do_not_fit_are_no_message() {
        let task = |n: u8| Task {
            url: format!("http://a.test/{n}"),
            etag: (n == 1).then(|| b"\"one\"".to_vec()),
            last_modified: (n == 2).then(|| b"Tue, 17 Nov 2026 04:50:00 GMT".to_vec()),
            keyed: n == 1,
            thorough: n > 0,
        };
        let bundle = Bundle {
            id: 1,
            host: "a.test:80".into(),
            urls: (0..4).map(task).collect(),
            pace: Pace::None,
            robots: None,
            lease_ms: 1,
            nonce: [0; 16],
        };
        let answers = Together(vec![Answer::Bundles(vec![bundle])]);
        let bytes = plain(&answers);
        assert_eq!(read_plain::<Together<Answer>>(&bytes).unwrap(), answers);
        for at in 0..bytes.len() {
            assert_eq!(read_plain::<Together<Answer>>(&bytes[..at]).unwrap_err(), Wrong::NotOne, "{at}");
        }
        let columns =
            |urls: &str, looks: &[u8]| Columns { urls: urls.into(), looks: looks.into(), ..Columns::default() };
        assert!(columns("a\nb\n", &[0, 3]).rows().is_some());
        for (urls, looks) in [("a\nb\n", &[0][..]), ("a\n", &[0, 0]), ("a\n", &[4])] {
            assert!(columns(urls, looks).rows().is_none(), "{urls:?} {looks:?}");
        }
        let strange = Columns { etags: vec![(1, Vec::new())], ..columns("a\n", &[0]) };
        assert!(strange.rows().is_none());
    }
}
