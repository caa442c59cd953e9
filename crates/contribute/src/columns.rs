//! Results as they travel: column by column, so that what is the same in all lines costs nothing, and what is not is not mixed with it.
//!
//! ```text
//! numbers (each less the one before) | statuses | times (each less the one before) | durations | lengths |
//! kinds: 0 no digest, 1 SHA-1, 2 keyed, 3 short, and 4 more where text, links and headers are told | SHA-1, 20 each | keyed, 16 each |
//! short, 8 each | texts, 8 each | links, 8 each | heads, 8 each | media types | addresses | too large |
//! and, for those that have one, their place and: URL | fault
//! ```

use std::net::IpAddr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::limits::{BUNDLE_URLS_MAX, ROBOTS_HOPS_MAX};
use crate::message::{Digest, Fetched, blob};

#[derive(Default, Serialize, Deserialize)]
struct Columns {
    numbers: Vec<u16>,
    statuses: Vec<u16>,
    times: Vec<i64>,
    took: Vec<u32>,
    lengths: Vec<u64>,
    kinds: Vec<u8>,
    #[serde(with = "blob")]
    plain: Vec<u8>,
    #[serde(with = "blob")]
    keyed: Vec<u8>,
    #[serde(with = "blob")]
    short: Vec<u8>,
    #[serde(with = "blob")]
    texts: Vec<u8>,
    #[serde(with = "blob")]
    links: Vec<u8>,
    #[serde(with = "blob")]
    heads: Vec<u8>,
    mimes: Vec<String>,
    addresses: Vec<Option<IpAddr>>,
    too_large: Vec<bool>,
    urls: Vec<(u16, String)>,
    faults: Vec<(u16, String)>,
}

/// Text, links and headers are told.
const THOROUGH: u8 = 4;

pub fn serialize<S: Serializer>(results: &[Fetched], out: S) -> Result<S::Ok, S::Error> {
    let mut columns = Columns::default();
    let (mut number, mut time_ms) = (0u16, 0i64);
    for (place, fetched) in results.iter().enumerate() {
        let place = u16::try_from(place).map_err(serde::ser::Error::custom)?;
        columns.numbers.push(fetched.number.wrapping_sub(number));
        columns.times.push(fetched.time_ms.wrapping_sub(time_ms));
        (number, time_ms) = (fetched.number, fetched.time_ms);
        columns.statuses.push(fetched.status);
        columns.took.push(fetched.took_ms);
        columns.lengths.push(fetched.length);
        let mut kind = match &fetched.digest {
            Digest::None => 0,
            Digest::Plain(digest) => {
                columns.plain.extend_from_slice(digest);
                1
            }
            Digest::Keyed(digest) => {
                columns.keyed.extend_from_slice(digest);
                2
            }
            Digest::Short(digest) => {
                columns.short.extend_from_slice(digest);
                3
            }
        };
        if fetched.text != 0 || fetched.links != 0 || fetched.head != 0 {
            kind |= THOROUGH;
            columns.texts.extend_from_slice(&fetched.text.to_le_bytes());
            columns.links.extend_from_slice(&fetched.links.to_le_bytes());
            columns.heads.extend_from_slice(&fetched.head.to_le_bytes());
        }
        columns.kinds.push(kind);
        columns.mimes.push(fetched.mime.clone());
        columns.addresses.push(fetched.address);
        columns.too_large.push(fetched.too_large);
        for (list, text) in [(&mut columns.urls, &fetched.url), (&mut columns.faults, &fetched.fault)] {
            if !text.is_empty() {
                list.push((place, text.clone()));
            }
        }
    }
    columns.serialize(out)
}

pub fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Vec<Fetched>, D::Error> {
    let columns = Columns::deserialize(from)?;
    columns.rows().ok_or_else(|| D::Error::custom("columns of different lengths"))
}

impl Columns {
    /// The lines, if all columns have as many.
    fn rows(self) -> Option<Vec<Fetched>> {
        let count = self.numbers.len();
        let (mut plain, mut keyed) = (Pieces(&self.plain), Pieces(&self.keyed));
        let (mut short, mut texts) = (Pieces(&self.short), Pieces(&self.texts));
        let (mut links, mut heads) = (Pieces(&self.links), Pieces(&self.heads));
        let fits = [self.statuses.len(), self.times.len(), self.took.len(), self.lengths.len(), self.kinds.len()]
            .into_iter()
            .chain([self.mimes.len(), self.addresses.len(), self.too_large.len()])
            .all(|length| length == count);
        // No more lines are made than can be meant, whatever was sent.
        if !fits || count > BUNDLE_URLS_MAX + ROBOTS_HOPS_MAX {
            return None;
        }
        let mut rows = Vec::with_capacity(count);
        let (mut number, mut time_ms) = (0u16, 0i64);
        for (place, mime) in self.mimes.into_iter().enumerate() {
            number = number.wrapping_add(self.numbers[place]);
            time_ms = time_ms.wrapping_add(self.times[place]);
            let kind = self.kinds[place];
            let told = |column: &mut Pieces<'_>| match kind & THOROUGH != 0 {
                true => column.next().map(u64::from_le_bytes),
                false => Some(0),
            };
            let (text, links, head) = (told(&mut texts)?, told(&mut links)?, told(&mut heads)?);
            rows.push(Fetched {
                number,
                url: String::new(),
                status: self.statuses[place],
                fault: String::new(),
                time_ms,
                took_ms: self.took[place],
                length: self.lengths[place],
                digest: match kind & !THOROUGH {
                    0 => Digest::None,
                    1 => Digest::Plain(plain.next()?),
                    2 => Digest::Keyed(keyed.next()?),
                    3 => Digest::Short(short.next()?),
                    _ => return None,
                },
                text,
                links,
                head,
                mime,
                address: self.addresses[place],
                too_large: self.too_large[place],
            });
        }
        for (place, url) in self.urls {
            rows.get_mut(usize::from(place))?.url = url;
        }
        for (place, fault) in self.faults {
            rows.get_mut(usize::from(place))?.fault = fault;
        }
        let all = [plain, keyed, short, texts, links, heads].iter().all(|column| column.0.is_empty());
        all.then_some(rows)
    }
}

/// What is left of a column.
struct Pieces<'c>(&'c [u8]);

impl Pieces<'_> {
    fn next<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (piece, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envelope::{plain, read_plain};
    use crate::message::{Request, Together, Wrong};

    #[test]
    fn lines_come_back_as_they_went_and_columns_that_do_not_fit_are_no_message() {
        let digests = [
            Digest::None,
            Digest::Plain([1; 20]),
            Digest::Keyed([2; 16]),
            Digest::Plain([3; 20]),
            Digest::Short([4; 8]),
        ];
        let results: Vec<Fetched> = digests
            .iter()
            .enumerate()
            .map(|(at, digest)| Fetched {
                number: [3, 0, 102, 7, 8][at],
                url: if at == 2 { "http://a.test/robots.txt".into() } else { String::new() },
                fault: if at == 0 { "too-slow".into() } else { String::new() },
                time_ms: 1_790_000_000_000 - 5 * at as i64,
                digest: *digest,
                text: if at == 4 { 0 } else { u64::MAX - at as u64 },
                links: if at == 4 { 0 } else { at as u64 },
                head: if at == 4 { 0 } else { 7 + at as u64 },
                address: (at > 1).then(|| "2001:db8::1".parse().unwrap()),
                too_large: at == 3,
                ..Fetched::default()
            })
            .collect();
        let requests = Together(vec![Request::Results { bundle: 9, results }]);
        let bytes = plain(&requests);
        assert_eq!(read_plain::<Together<Request>>(&bytes).unwrap(), requests);
        // Cut anywhere, it is none; and never a panic.
        for at in 0..bytes.len() {
            assert_eq!(read_plain::<Together<Request>>(&bytes[..at]).unwrap_err(), Wrong::NotOne, "{at}");
        }
        let short = Columns { numbers: vec![1, 2], ..Columns::default() };
        assert!(short.rows().is_none());
    }
}
