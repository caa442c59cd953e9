//! One event, as it is kept and as it is told.
//!
//! ```text
//!   value | 2 | classes 4 | share 2 | time 8 | writer 4 | segment 4 | record 4 | URL length 2 | media type length 1 |
//!         | URL … | media type … | details as JSON … |
//!   told as something else before: 3, with | classes it had 4 | before the URL
//!   before: 1, without length and media type
//! ```
//! Numbers are little-endian. The head is what filters look at; the details are the `data` of the event as told, byte for byte,
//! so that telling an event again costs a copy.

use serde::{Deserialize, Serialize};
use skep_archive::{Position, WriterKey};
use skep_page::compare::{Class, Classes};

/// The version of the schema of [`Details`]. Fields are only ever added.
pub const SCHEMA: &str = "urn:skep:change:1";

const VERSION: u8 = 2;
const HEAD_BYTES: usize = 29;
/// An event that says what it is no longer.
const VERSION_WAS: u8 = 3;

/// In the record number of a key: the event is not about the page of that record but about its host, which is out of reach or
/// back. No segment has so many records.
pub const HOST: u32 = 1 << 31;

/// The same for what many pages of the host share.
pub const TEMPLATE: u32 = 1 << 30;

/// What was seen on a visit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// The record of the capture: the key of the event.
    pub key: Position,
    /// What it is; none if what was told under this key before is taken back.
    pub classes: Classes,
    /// The share of the words that changed, in ten thousandths.
    pub share: u16,
    /// When it was seen, in milliseconds since 1970.
    pub time_ms: i64,
    /// The media type.
    pub mime: String,
    /// Of what.
    pub url: String,
    /// Everything else.
    pub details: Details,
}

/// What is told of a change besides URL, class and time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", default)]
pub struct Details {
    /// The SURT key of the URL.
    pub url_key: String,
    /// Its host.
    pub host: String,
    /// Names of the classes, the strongest first.
    pub classes: Vec<String>,
    /// The share of the words that changed, from 0 to 1.
    pub magnitude: Magnitude,
    /// The change lies between these moments: it was last seen as before, and first seen otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<[String; 2]>,
    /// The version of the rules by which pages are compared.
    #[serde(skip_serializing_if = "is_zero")]
    pub norm_ver: u16,
    /// What the page comes to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<Hash>,
    /// The capture it was compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prev: Option<Previous>,
    /// The capture whose text is back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reverted_to: Option<String>,
    /// What the server said.
    pub http: Http,
    /// What changed of the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<Text>,
    /// What changed of the links.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub links: Option<Links>,
    /// What the page says of itself now, as far as it says otherwise than before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Facts that changed: property, before, now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub data: Vec<Fact>,
    /// Where the capture is.
    pub archive: Place,
    /// Why it is no page to be compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why it was visited, where the records say so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<Why>,
    /// What was believed of the page when it was visited again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub est: Option<Estimate>,
    /// On how much it rests, where that is more than one visit by the archive's own hands, or less.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
    /// Who fetched it, where it was not the archive's own process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<By>,
}

/// On how much an event rests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confidence {
    /// Visits that found the same.
    pub obs: u32,
    /// Networks from which they were made.
    pub vantages: u32,
}

/// Who fetched a page.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct By {
    /// Whose hands, as the record names them.
    pub hands: String,
    /// What others saw from elsewhere that differs by place: network, place, status, digest.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub elsewhere: Vec<String>,
}

/// What was believed of a page when it was visited again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Estimate {
    /// How often it changes.
    pub rate_per_day: Rate,
    /// When it would be looked at next, by the price of then.
    pub next_due: String,
}

/// Changes a day, exact in millionths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rate(pub u64);

impl Rate {
    /// As records have it.
    pub fn read(text: &str) -> Option<Rate> {
        let rate = text.parse::<f64>().ok().filter(|rate| rate.is_finite() && *rate >= 0.0)?;
        Some(Rate((rate * 1e6).round() as u64))
    }
}

impl Serialize for Rate {
    fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_f64(self.0 as f64 / 1e6)
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Rate, D::Error> {
        Ok(Rate((f64::deserialize(from)?.max(0.0) * 1e6).round() as u64))
    }
}

/// Why a page was visited: what the crawler wrote down about it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Why {
    /// For which crawl or watch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crawl: Option<String>,
    /// Why it was due: the price, a signal, a watch, an audit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due_reason: Option<String>,
    /// The page it was heard on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// How it was heard: the kind of the link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

/// A share from 0 to 1, exact in ten thousandths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Magnitude(pub u16);

impl Serialize for Magnitude {
    fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_f64(f64::from(self.0) / 10_000.0)
    }
}

impl<'de> Deserialize<'de> for Magnitude {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Magnitude, D::Error> {
        let share = f64::deserialize(from)?;
        Ok(Magnitude((share * 10_000.0).round().clamp(0.0, 10_000.0) as u16))
    }
}

/// What a page comes to, in hexadecimal digits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hash {
    /// The payload digest of the record.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub raw: Option<String>,
    /// The normalised markup.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub dom: Option<String>,
    /// The visible text.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub text: Option<String>,
}

/// The capture before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Previous {
    /// Its record.
    pub key: String,
    /// When that version was first seen.
    pub since: String,
    /// The record whose text whoever follows the stream has: that of the last version that was told.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub told: Option<String>,
}

/// What the server said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Http {
    /// The status; 0 where there was none.
    pub status: u16,
    /// The media type.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub content_type: String,
    /// Where it leads now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect: Option<String>,
    /// By what the server knows this version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// Since when it has been so, if the server is believed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
}

/// What changed of the text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Text {
    /// Words that came.
    pub added_tokens: u32,
    /// Words that went.
    pub removed_tokens: u32,
    /// Blocks that came.
    pub blocks_added: usize,
    /// Blocks that went.
    pub blocks_removed: usize,
    /// Blocks that stand elsewhere.
    pub blocks_moved: u32,
    /// The beginning of what came, or of what went if nothing came.
    pub snippet: String,
}

/// What changed of the links.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Links {
    /// Some that came.
    pub added: Vec<String>,
    /// Some that went.
    pub removed: Vec<String>,
    /// How many came.
    pub n_added: usize,
    /// How many went.
    pub n_removed: usize,
}

/// What the page says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Meta {
    /// The title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The title before, if it was another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title_before: Option<String>,
    /// The canonical URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canonical: Option<String>,
    /// The language.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lang: Option<String>,
}

/// A fact that changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// Which.
    pub name: String,
    /// What it was.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub before: Option<String>,
    /// What it is.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub now: Option<String>,
}

/// Where a record is, as far as it is known for ever.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Its position.
    pub position: String,
    /// Bytes of the record as stored.
    pub length: u64,
    /// The record that holds the body, where it is another.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub body: Option<String>,
}

fn is_zero(number: &u16) -> bool {
    *number == 0
}

/// The head of an event as kept, which is what filters look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept<'v> {
    /// The record of the capture.
    pub key: Position,
    /// What it is.
    pub classes: Classes,
    /// What it was told as before and is not; noise only where that is taken back.
    pub was: Classes,
    /// The share of the words that changed.
    pub share: u16,
    /// When it was seen.
    pub time_ms: i64,
    /// The media type.
    pub mime: &'v str,
    /// Of what.
    pub url: &'v str,
    /// The details, as JSON.
    pub details: &'v str,
    /// All of it, as kept.
    pub value: &'v [u8],
}

/// Names of classes, the strongest first.
pub(crate) fn names(classes: Classes) -> Vec<String> {
    classes.iter().map(|class| class.name().to_owned()).collect()
}

impl Event {
    /// As kept.
    pub fn encode(&self) -> Vec<u8> {
        self.encode_after(Classes::default())
    }

    /// As kept where the same key was told before, as these classes.
    pub(crate) fn encode_after(&self, before: Classes) -> Vec<u8> {
        let is_over = |class: &Class| !class.is_silent() && !self.classes.contains(*class);
        let was: Classes = before.iter().filter(|class| self.classes.is_empty() || is_over(class)).collect();
        let mut out = Vec::with_capacity(512);
        out.push(if was.is_empty() { VERSION } else { VERSION_WAS });
        out.extend_from_slice(&self.classes.0.to_le_bytes());
        out.extend_from_slice(&self.share.to_le_bytes());
        out.extend_from_slice(&self.time_ms.to_le_bytes());
        for part in [self.key.writer.0, self.key.segment, self.key.record] {
            out.extend_from_slice(&part.to_le_bytes());
        }
        let mime = &self.mime[..self.mime.floor_char_boundary(u8::MAX.into())];
        out.extend_from_slice(&(self.url.len() as u16).to_le_bytes());
        out.push(mime.len() as u8);
        if !was.is_empty() {
            out.extend_from_slice(&was.0.to_le_bytes());
        }
        out.extend_from_slice(self.url.as_bytes());
        out.extend_from_slice(mime.as_bytes());
        // Texts and numbers alone: writing them into memory cannot fail.
        let _never = serde_json::to_writer(&mut out, &self.details);
        out
    }
}

impl<'v> Kept<'v> {
    /// Reads what was kept; `None` for what was not written here.
    pub fn decode(value: &'v [u8]) -> Option<Kept<'v>> {
        let (head, rest) = value.split_first_chunk::<HEAD_BYTES>()?;
        let (mime_bytes, rest) = match head[0] {
            VERSION | VERSION_WAS => rest.split_first().map(|(length, rest)| (usize::from(*length), rest))?,
            1 => (0, rest),
            _ => return None,
        };
        let (was, rest) = match head[0] {
            VERSION_WAS => rest.split_first_chunk().map(|(was, rest)| (Classes(u32::from_le_bytes(*was)), rest))?,
            _ => (Classes::default(), rest),
        };
        let four = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (url, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes([head[27], head[28]])))?;
        let (mime, details) = rest.split_at_checked(mime_bytes)?;
        Some(Kept {
            classes: Classes(four(1)),
            was,
            share: u16::from_le_bytes([head[5], head[6]]),
            time_ms: (u64::from(four(7)) | u64::from(four(11)) << 32) as i64,
            key: Position { writer: WriterKey(four(15)), segment: four(19), record: four(23) },
            mime: std::str::from_utf8(mime).ok()?,
            url: std::str::from_utf8(url).ok()?,
            details: std::str::from_utf8(details).ok()?,
            value,
        })
    }

    /// The whole event.
    pub fn event(&self) -> Option<Event> {
        let Kept { key, classes, share, time_ms, mime, url, details, .. } = *self;
        let details = serde_json::from_str(details).ok()?;
        Some(Event { key, classes, share, time_ms, mime: mime.to_owned(), url: url.to_owned(), details })
    }

    /// The record that it is about: that of the key, also where the event is the host's.
    pub fn record(&self) -> Position {
        Position { record: self.key.record & !(HOST | TEMPLATE), ..self.key }
    }

    /// The type of the event.
    pub fn kind(&self) -> &'static str {
        match self.classes.first() {
            None => "page.withdrawn",
            Some(class) if class.is_of_host() => class.name(),
            Some(Class::New) => "page.new",
            Some(Class::Gone) => "page.gone",
            Some(Class::Returned) => "page.returned",
            Some(Class::Moved) => "page.moved",
            Some(Class::Suspect) => "page.suspect",
            Some(_) => "page.changed",
        }
    }

    /// For which crawl or watch its page was visited, as the details name it: a name has nothing in it that JSON would write otherwise.
    pub fn watch(&self) -> Option<&str> {
        let (_, rest) = self.details.split_once("\"why\":{\"crawl\":\"")?;
        rest.split_once('"').map(|(watch, _)| watch)
    }

    /// The host that it is about: as the details name it, whose texts hold no bare quotation mark.
    pub(crate) fn host(&self) -> &str {
        let host = self.details.split_once("\"host\":\"").map_or("", |(_, rest)| rest);
        host.split_once('"').map_or("", |(host, _)| host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cursor::Cursor;

    #[test]
    fn what_is_kept_is_read_back_and_told_as_json() {
        let event = Event {
            key: "c41f22ab:1:17".parse().unwrap(),
            classes: [Class::TextMinor, Class::Links].into_iter().collect(),
            share: 123,
            time_ms: 1_778_052_489_123,
            mime: "text/html".into(),
            url: "http://example.org/ä\"".into(),
            details: Details {
                url_key: "org,example)/\"host\":\"x\"".into(),
                host: "example.org".into(),
                magnitude: Magnitude(123),
                reason: Some("\n\u{2028}".into()),
                ..Details::default()
            },
        };
        let bytes = event.encode();
        let kept = Kept::decode(&bytes).unwrap();
        assert_eq!(kept.event().as_ref(), Some(&event));
        let cursor: Cursor = "abc:5".parse().unwrap();
        let mut line = String::new();
        kept.json(&cursor, &mut line);
        let told: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!((told["id"].as_str(), told["type"].as_str()), (Some("abc:5"), Some("page.changed")));
        assert_eq!(
            (told["subject"].as_str(), told["partitionkey"].as_str()),
            (Some(event.url.as_str()), Some("example.org"))
        );
        assert_eq!(told["data"]["magnitude"], 0.0123);
        assert!(!line.contains('\n'));
        for cut in 0..HEAD_BYTES + 1 + event.url.len() + event.mime.len() {
            assert_eq!(Kept::decode(&bytes[..cut]), None);
        }
        // What was told as more says so, what was told as less does not; what is taken back is known as whatever it was, and tells nothing.
        let louder: Classes = [Class::TextMajor, Class::TextMinor, Class::Bytes].into_iter().collect();
        let corrected = event.encode_after(louder);
        let again = Kept::decode(&corrected).unwrap();
        assert_eq!((again.was, again.event()), (Classes::of(Class::TextMajor), Some(event.clone())));
        let mut line = String::new();
        again.json(&cursor, &mut line);
        let told: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(
            (&told["data"]["was"], &told["data"]["magnitude"]),
            (&serde_json::json!(["text.major"]), &0.0123.into())
        );
        assert_eq!(event.encode_after(Classes::of(Class::Bytes)), bytes);
        let back = Event { classes: Classes::default(), details: Details::default(), ..event.clone() };
        let back = back.encode_after(louder);
        let back = Kept::decode(&back).unwrap();
        assert_eq!((back.was, back.kind()), (louder, "page.withdrawn"));
        line.clear();
        back.json(&cursor, &mut line);
        assert!(!line.contains("was"), "{line}");
        for cut in 0..HEAD_BYTES + 5 + event.url.len() + event.mime.len() {
            assert_eq!(Kept::decode(&corrected[..cut]), None);
        }
        // As it was kept before media types were.
        let mut old = bytes.clone();
        old[0] = 1;
        old.remove(HEAD_BYTES);
        old.drain(HEAD_BYTES + event.url.len()..HEAD_BYTES + event.url.len() + event.mime.len());
        let kept = Kept::decode(&old).unwrap();
        assert_eq!(kept.event(), Some(Event { mime: String::new(), ..event.clone() }));
        for record in [0, 1, 17, (1 << 30) - 1] {
            let key = Position { writer: WriterKey(0xab), segment: u32::MAX, record };
            assert_eq!(Kept { key, ..kept }.key_text(), key.to_string());
        }
        let host = Kept { key: Position { record: event.key.record | HOST, ..event.key }, ..kept };
        assert_eq!((host.record(), host.key_text().as_str()), (event.key, "c41f22ab:1:17/host"));
    }
}
