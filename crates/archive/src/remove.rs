//! Removal: a signed record that hides other records at once and for ever, whether or not their bytes are already gone.
//!
//! A `metadata` record whose block is
//! ```text
//!  skep-removal: 1
//!  time: 2026-11-15T22:10:04.120Z
//!  selector: url http://example.com/a      or: prefix http://example.com/   digest sha1:…   positions
//!  reason: asked by the owner
//!  position: c41f22ab:1:17                  as often as needed
//!  writer: <64 hexadecimal digits>
//!  signature: <128 digits>                  over all lines before this one
//! ```

use skep_url::{Match, Scan};
use skep_warc::date::rfc3339;
use skep_warc::write::{Record, RecordId};

use crate::capture::{Capture, Digest, Position, WriterKey};
use crate::closing::{Signed, sign};
use crate::error::Result;
use crate::identity::{self, Identity};
use crate::own::{self, Encoded, FieldsBlock, once};
use crate::sidecar::Note;

const VERSION: &str = "1";
/// How the block of every removal begins.
pub const TITLE: &str = "skep-removal: ";

/// What is to be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selector {
    /// Every record about this URL, by key.
    Url(String),
    /// Every record about a URL whose key begins like that of this one; if this one is no more than a public suffix
    /// (`http://co.uk`), or says `*.example.com` itself, every record of the hosts below it.
    Prefix(String),
    /// Every record with this payload, and the other records of those fetches.
    Digest(Digest),
}

impl std::fmt::Display for Selector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Selector::Url(url) => write!(f, "url {url}"),
            Selector::Prefix(prefix) => write!(f, "prefix {prefix}"),
            Selector::Digest(digest) => write!(f, "digest {digest}"),
        }
    }
}

impl std::str::FromStr for Selector {
    type Err = String;

    /// Reads what [`Selector`] writes of itself.
    fn from_str(text: &str) -> Result<Selector, String> {
        let (kind, what) = text.split_once(' ').ok_or("a removal says what it removes")?;
        match kind {
            "url" => Ok(Selector::Url(what.to_owned())),
            "prefix" => Ok(Selector::Prefix(what.to_owned())),
            "digest" => what.parse().map(Selector::Digest).map_err(|error: crate::ParseError| error.to_string()),
            _ => Err(format!("{kind} is nothing that can be removed")),
        }
    }
}

/// Which records of a segment a selector means. Fed with all captures of a segment, in order.
#[derive(Debug)]
pub enum Matcher {
    /// This SURT, wherever it is filed.
    Surt(String),
    /// SURTs of this range, in one site or all.
    Scan(Scan),
    /// Payloads equal to this.
    Digest(Digest),
}

impl Matcher {
    /// The matcher of a selector.
    pub fn new(selector: &Selector) -> Matcher {
        match selector {
            Selector::Url(url) => Matcher::Surt(skep_url::Key::of(url).surt().to_owned()),
            Selector::Prefix(prefix) => Matcher::Scan(below(prefix)),
            Selector::Digest(digest) => Matcher::Digest(*digest),
        }
    }

    /// Whether the selector means this record by itself.
    pub fn matches(&self, capture: &Capture) -> bool {
        match self {
            Matcher::Surt(surt) => capture.key.surt() == surt,
            Matcher::Scan(scan) => scan.contains_key(&capture.key),
            Matcher::Digest(digest) => capture.digest.as_ref() == Some(digest),
        }
    }
}

/// Everything below a prefix. A public suffix alone has no pages of its own: what is meant is all sites below it.
fn below(prefix: &str) -> Scan {
    let scan = Scan::of(prefix, Match::Prefix);
    let host_only = scan.kind == Match::Prefix && scan.start.ends_with(")/") && !prefix.ends_with('/');
    let domain = Scan::of(prefix, Match::Domain);
    if host_only && domain.site_hash.is_none() { domain } else { scan }
}

/// What a removal record says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    /// When, RFC 3339.
    pub time: String,
    /// What was asked for.
    pub selector: String,
    /// Why.
    pub reason: String,
    /// The records that are hidden.
    pub positions: Vec<Position>,
    /// Who signed it.
    pub writer: WriterKey,
}

impl Removal {
    /// Reads a block; an error says what is missing, wrong, or not signed by who it says.
    pub fn parse(block: &[u8]) -> Result<Removal, String> {
        let signed = Signed::parse(block, "skep-removal", VERSION)?;
        let positions = signed.lines.iter().filter(|(name, _)| *name == "position");
        let positions = positions.map(|(_, value)| value.parse::<Position>().map_err(|error| error.to_string()));
        Ok(Removal {
            time: once(&signed.lines, "time")?.to_string(),
            selector: once(&signed.lines, "selector")?.to_string(),
            reason: once(&signed.lines, "reason")?.to_string(),
            positions: positions.collect::<Result<_, _>>()?,
            writer: signed.writer,
        })
    }

    /// The records that it hides, standing in a segment of `stands_in`. In a segment nobody speaks but its writer, and in a file from
    /// elsewhere nobody does. Files from elsewhere are numbered by each archive for itself, so their positions count only in what
    /// this archive said.
    pub fn hides(self, stands_in: WriterKey, heard_by: Listener) -> Vec<Position> {
        let Removal { mut positions, writer, .. } = self;
        if writer != stands_in || stands_in == WriterKey::FOREIGN {
            return Vec::new();
        }
        let may_hide = |of: WriterKey| match of {
            _ if writer == heard_by.own => true,
            WriterKey::FOREIGN => false,
            of => of == writer || !heard_by.joint,
        };
        positions.retain(|position| may_hide(position.writer));
        positions
    }
}

/// Whose archive hears of a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Who writes there.
    pub own: WriterKey,
    /// It is one of a network: what others wrote comes by itself, from people whom nobody here chose. They take back what is theirs,
    /// and nothing else. Segments that somebody put together by hand are trusted as whoever did that is.
    pub joint: bool,
}

/// The record id of the removal with this block.
pub fn record_id(block: &[u8]) -> RecordId {
    identity::record_id(&[b"removal", block])
}

/// A removal ready to be appended.
pub fn encode(
    selector: &dyn std::fmt::Display,
    reason: &str,
    positions: &[Position],
    identity: &Identity,
    now_ms: i64,
) -> Result<Encoded> {
    let mut block = FieldsBlock::default();
    block
        .line("skep-removal", VERSION)
        .line("time", &rfc3339(now_ms))
        .line("selector", &selector.to_string())
        .line("reason", reason);
    for position in positions {
        block.line("position", &position.to_string());
    }
    let block = sign(block, identity).into_bytes();
    let id = record_id(&block);
    let bytes = own::encode(&Record::metadata(&id, &rfc3339(now_ms), own::FIELDS, block.as_slice()))?;
    Ok(Encoded::new(bytes, Note::Removal(block)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removal_reads_back_and_a_reason_cannot_add_positions() {
        let identity = Identity::from_secret([5; 32]);
        let positions = [Position { writer: WriterKey(7), segment: 1, record: 2 }];
        let selector = Selector::Url("http://example.com/".into());
        let reason = "asked\r\nposition: 00000007:9:9";
        let encoded = encode(&selector, reason, &positions, &identity, 0).unwrap();
        let Note::Removal(block) = &encoded.note else { panic!("{:?}", encoded.note) };
        let removal = Removal::parse(block).unwrap();
        assert_eq!(removal.positions, positions);
        assert_eq!(removal.reason, "asked  position: 00000007:9:9");
        assert_eq!(
            (removal.selector.as_str(), removal.time.as_str()),
            ("url http://example.com/", "1970-01-01T00:00:00Z")
        );
        assert_eq!(removal.writer, identity.writer());
        let mut forged = block.clone();
        let at = forged.windows(2).position(|window| window == b":2").unwrap();
        forged[at + 1] = b'3';
        assert_eq!(Removal::parse(&forged), Err("the signature does not hold".into()));
    }

    #[test]
    fn a_removal_hides_only_where_its_signer_writes() {
        let identity = Identity::from_secret([5; 32]);
        let (signer, other) = (identity.writer(), WriterKey(7));
        let positions = [other, WriterKey::FOREIGN, signer].map(|writer| Position { writer, segment: 1, record: 2 });
        let hides_in = |stands_in, own, joint| {
            let encoded = encode(&"positions", "asked", &positions, &identity, 0).unwrap();
            let Note::Removal(block) = &encoded.note else { panic!("{:?}", encoded.note) };
            Removal::parse(block).unwrap().hides(stands_in, Listener { own, joint })
        };
        let hides = |stands_in, own| hides_in(stands_in, own, false);
        assert_eq!(hides(signer, signer), positions);
        assert_eq!(hides(signer, other), [positions[0], positions[2]], "merged into an archive of somebody else");
        assert_eq!(hides(other, signer), []);
        assert_eq!(hides(WriterKey::FOREIGN, signer), []);
        assert_eq!(hides_in(signer, signer, true), positions);
        assert_eq!(hides_in(signer, other, true), [positions[2]], "a node of a network takes back what it wrote");
    }

    #[test]
    fn prefixes_end_where_they_say() {
        let means = |prefix: &str, surt: &str| below(prefix).contains(surt);
        assert!(means("http://example.com/a", "com,example)/ab") && !means("http://example.com/a/", "com,example)/ab"));
        assert!(means("http://example.com/", "com,example)/") && !means("http://example.com/", "com,example,a)/"));
        assert!(means("http://example.com", "com,example)/x") && !means("http://example.com", "com,example,a)/"));
        assert!(means("http://co.uk", "uk,co,example)/x") && !means("http://co.uk/", "uk,co,example)/x"));
        assert!(means("*.example.com", "com,example,a)/") && !means("*.example.com", "com,examples)/"));
        assert!(means("http://a", "a,b)/") && !means("http://a", "ab,c)/"));
    }
}
