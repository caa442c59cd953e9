//! Bodies of captures, as they are compared.

use std::collections::HashSet;
use std::io::{BufRead, Read};

use skep_archive::{Archive, Capture, CaptureKind, Position};
use skep_page::Input;
use skep_page::version::Version;
use skep_url::Url;
use skep_warc::coding::{self, Bounds};
use skep_warc::date;
use skep_warc::http::{Head, Parsed};

use crate::at_hand::Hands;
use crate::error::{Error, Result};
use crate::event::{By, Confidence, Estimate, Rate, Why};
use crate::limits::{BODY_BYTES_MAX, DECODE_RATIO_MAX, ORIGINALS_MAX, RATIO_FROM_BYTES, VISIT_BYTES_MAX};
use crate::settings::Settings;

/// What a server sent.
#[derive(Debug, Clone, Default)]
pub struct Body {
    /// The record that holds it.
    pub position: Position,
    /// The head of the answer, where there is one.
    pub head: Head,
    /// The body without its codings, or its beginning.
    pub bytes: Vec<u8>,
    /// The record stands for another one, and has no body of its own.
    pub is_elsewhere: bool,
}

/// What is noted of a visit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Noted {
    /// What became of it, in a word.
    pub verdict: String,
    /// Why it was made.
    pub why: Option<Why>,
    /// What was believed of the page then.
    pub est: Option<Estimate>,
    /// Who made it, where it was somebody else.
    pub by: Option<By>,
    /// On how much it rests, where it was somebody else.
    pub confidence: Option<Confidence>,
}

/// Where bodies are.
pub trait Bodies {
    /// The body that a record holds; `None` if it cannot be read: removed, damaged, not there.
    fn at(&self, position: Position) -> Result<Option<Body>>;
    /// The body of a capture; that of a revisit is the one it stands for.
    fn of(&self, capture: &Capture) -> Result<Option<Body>>;
    /// What is noted of the visit that brought a capture, as far as its records say so.
    fn noted(&self, capture: &Capture) -> Result<Noted>;
}

impl Bodies for Archive {
    fn at(&self, position: Position) -> Result<Option<Body>> {
        match read(self, position) {
            Ok(body) => Ok(Some(body)),
            // What is judged now is judged once: who has no descriptor left tries again, instead of telling of a page that it was not there.
            Err(error) if is_passing(&error) => Err(error),
            // A record that cannot be read is for `skep check` to report; the stream goes on.
            Err(_) => Ok(None),
        }
    }

    fn of(&self, capture: &Capture) -> Result<Option<Body>> {
        if capture.kind != CaptureKind::Revisit {
            return self.at(capture.position);
        }
        let Some(digest) = capture.digest else { return Ok(None) };
        for original in self.views().digests.originals(&digest, ORIGINALS_MAX)? {
            if let Some(body) = self.at(original.position)? {
                return Ok(Some(body));
            }
        }
        Ok(None)
    }

    fn noted(&self, capture: &Capture) -> Result<Noted> {
        match noted(self, capture) {
            Err(error) if is_passing(&error) => Err(error),
            noted => Ok(noted.ok().flatten().unwrap_or_default()),
        }
    }
}

/// Bodies of an archive of whose captures it is known, for some, that nothing is noted behind them.
pub struct Known<'k> {
    /// Where bodies are.
    pub archive: &'k Archive,
    /// Captures behind which a record of another page or moment stands.
    pub bare: &'k HashSet<Position>,
    /// What is needed to read records.
    pub hands: &'k Hands,
}

impl Bodies for Known<'_> {
    fn at(&self, position: Position) -> Result<Option<Body>> {
        match self.hands.read(|hand| hand.at(self.archive, position)) {
            Some(body) => Ok(Some(body)),
            None => self.archive.at(position),
        }
    }

    fn of(&self, capture: &Capture) -> Result<Option<Body>> {
        let plain = capture.kind == CaptureKind::Response;
        match plain.then(|| self.hands.read(|hand| hand.of(self.archive, capture))).flatten() {
            Some(body) => Ok(Some(body)),
            None => self.archive.of(capture),
        }
    }

    fn noted(&self, capture: &Capture) -> Result<Noted> {
        match self.bare.contains(&capture.position) {
            true => Ok(Noted::default()),
            false => self.archive.noted(capture),
        }
    }
}

fn noted(archive: &Archive, capture: &Capture) -> Result<Option<Noted>> {
    // What is noted of a visit stands behind what came of it.
    let position = Position { record: capture.position.record.saturating_add(1), ..capture.position };
    let mut stored = archive.read(position)?;
    let mut record = stored.record()?;
    let head = record.head();
    let of_it = head.target_uri().is_some_and(|uri| uri == capture.url.as_bytes())
        && head.date_ms() == Some(capture.time_ms)
        && head.get("Content-Type").is_some_and(|found| found.starts_with(b"application/warc-fields"));
    if !of_it {
        return Ok(None);
    }
    let mut block = Vec::new();
    let _as_far_as_it_goes = (&mut record as &mut dyn BufRead).take(VISIT_BYTES_MAX).read_to_end(&mut block);
    let (mut noted, mut why) = (Noted::default(), Why::default());
    let (mut rate, mut every_ms, mut by) = (None, None, By::default());
    for line in String::from_utf8_lossy(&block).lines() {
        let Some((name, value)) = line.split_once(": ") else { continue };
        let field = match name {
            "crawl" => &mut why.crawl,
            "due" => &mut why.due_reason,
            "via" => &mut why.via,
            "kind" => &mut why.kind,
            "verdict" => {
                value.clone_into(&mut noted.verdict);
                continue;
            }
            "changes-per-day" => {
                rate = Rate::read(value);
                continue;
            }
            "every-s" => {
                every_ms = value.parse::<u32>().ok().map(|seconds| i64::from(seconds) * 1_000);
                continue;
            }
            "hands" => {
                value.clone_into(&mut by.hands);
                continue;
            }
            "sources" => {
                let seen = if value == "two" { 2 } else { 1 };
                noted.confidence = Some(Confidence { obs: seen, vantages: seen });
                continue;
            }
            "vantage" => {
                by.elsewhere.push(value.to_owned());
                continue;
            }
            // Links may be many, and stand behind all of these.
            "outlink" => break,
            _ => continue,
        };
        field.get_or_insert_with(|| value.to_owned());
    }
    noted.why = (why != Why::default()).then_some(why);
    noted.by = (!by.hands.is_empty()).then_some(by);
    noted.est = rate.zip(every_ms).map(|(rate_per_day, every_ms)| Estimate {
        rate_per_day,
        next_due: date::rfc3339(capture.time_ms.saturating_add(every_ms)),
    });
    Ok(Some(noted))
}

/// What this process is short of says nothing of a record: Linux's ENOMEM, ENFILE and EMFILE.
const SHORT_OF: [i32; 3] = [12, 23, 24];

fn is_passing(error: &Error) -> bool {
    let Error::Archive(skep_archive::Error::Io { source, .. }) = error else { return false };
    source.raw_os_error().is_some_and(|code| SHORT_OF.contains(&code))
}

fn read(archive: &Archive, position: Position) -> Result<Body> {
    let mut stored = archive.read(position)?;
    let mut record = stored.record()?;
    let is_elsewhere = record.head().get("WARC-Type").is_some_and(|kind| kind.eq_ignore_ascii_case(b"revisit"));
    let mut bytes = Vec::new();
    let limit = BODY_BYTES_MAX + skep_archive::limits::HTTP_HEAD_BYTES_MAX as u64;
    // What came before the damage is compared.
    let _as_far_as_it_goes = (&mut record as &mut dyn BufRead).take(limit).read_to_end(&mut bytes);
    Ok(Body::of_block(position, &bytes, is_elsewhere))
}

impl Body {
    /// What the block of a record holds.
    pub(crate) fn of_block(position: Position, block: &[u8], is_elsewhere: bool) -> Body {
        let mut head = Head::new();
        let body = match block.starts_with(b"HTTP/").then(|| head.parse_response(block, true)) {
            Some(Parsed::Complete { body }) => &block[body..],
            _ => return Body { position, head: Head::new(), bytes: block.to_vec(), is_elsewhere },
        };
        let coded = head.is_chunked() || head.header("content-encoding").is_some();
        let bytes = match coded {
            false => body.to_vec(),
            true => {
                let bounds = Bounds {
                    output_bytes_max: BODY_BYTES_MAX,
                    ratio_max: DECODE_RATIO_MAX,
                    ratio_free_bytes: RATIO_FROM_BYTES,
                };
                let mut decoded = Vec::new();
                let _as_far_as_it_goes = coding::decode(&head, body, bounds).read_to_end(&mut decoded);
                decoded
            }
        };
        Body { position, head, bytes, is_elsewhere }
    }

    /// The page as it is compared.
    pub fn version(&self, url: &Url, settings: &Settings) -> Version {
        Version::read(&self.input(url), settings.rules(url).0)
    }

    /// The same with another version of it at hand.
    pub fn version_beside(&self, url: &Url, settings: &Settings, other: &Version) -> Version {
        Version::read_beside(&self.input(url), settings.rules(url).0, other)
    }

    fn input<'b>(&'b self, url: &'b Url) -> Input<'b> {
        let head = (!self.head.raw().is_empty()).then_some(&self.head);
        Input { url, head, body: &self.bytes }
    }
}

/// The text of a capture as it is compared; `None` for what is none, or cannot be read.
pub fn text_of(archive: &Archive, capture: &Capture, settings: &Settings) -> Result<Option<Version>> {
    let (Ok(url), Some(body)) = (Url::parse(&capture.url), archive.of(capture)?) else { return Ok(None) };
    Ok(Some(body.version(&url, settings)))
}
