//! `skep get`: one capture, out of its file.

use crate::captures::{Matching, Objects, match_of};
use crate::failure::{Failure, Result, say};
use crate::job::{self, Exit, Tell};
use crate::node::originals::Originals;
use crate::owner::{self, Place};
use crate::show::Screen;
use crate::{captures, when};
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use skep_archive::captures::Query;
use skep_archive::runs::Direction;
use skep_archive::{Archive, Capture, CaptureKind, Stored};
use skep_warc::coding::{self, Bounds};
use skep_warc::http::{self, Parsed};
use std::io::{BufRead, Read};

/// Get one capture: its page, its headers, or its record
#[derive(Args)]
#[command(after_help = "\
A revisit, which holds no body of its own, is answered with the body of the capture it refers to.
Examples:
  skep get https://example.org/ > page.html          the newest capture, decoded
  skep get https://example.org/ --at 2019-06 --headers
  skep get https://example.org/ --warc > one.warc     the record (of a revisit: with the one it refers to)
Exit code 1 if there is none.")]
pub struct Typed {
    /// The URL
    url: String,
    /// The capture nearest to this time; without it the newest
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    /// The HTTP message exactly as it was received
    #[arg(long, group = "form")]
    raw: bool,
    /// Only its status line and headers
    #[arg(long, group = "form")]
    headers: bool,
    /// The body without transfer and content encoding (the default)
    #[arg(long, group = "form")]
    body: bool,
    /// The whole WARC record
    #[arg(long, group = "form")]
    warc: bool,
    /// Also captures that were made with secrets
    #[arg(long)]
    private: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Form {
    Raw,
    Headers,
    Body,
    Warc,
    Json,
}

/// As meant.
#[derive(Serialize, Deserialize)]
pub struct Job {
    url: String,
    at_ms: Option<i64>,
    form: Form,
    private: bool,
}

/// Bytes told at a time.
const PIECE_BYTES: usize = 64 << 10;

pub fn run(typed: Typed, place: &Place) -> Result<Exit> {
    let form = match (place.json, typed.raw, typed.headers, typed.warc) {
        (true, ..) => Form::Json,
        (_, true, ..) => Form::Raw,
        (_, _, true, _) => Form::Headers,
        (.., true) => Form::Warc,
        _ => Form::Body,
    };
    let at_ms = typed.at.as_deref().map(when::earliest).transpose()?;
    let what = format!("no capture of {}", typed.url);
    let job = Job { url: typed.url, at_ms, form, private: typed.private };
    let mut screen = Screen::new(place.json, captures::COLUMNS);
    let exit = owner::perform(place, false, &job::Job::Get(job), &mut screen)?;
    screen.finish()?;
    if exit == Exit::No {
        say(&what);
    }
    Ok(exit)
}

pub fn perform(archive: &Archive, others: &Originals, job: &Job, tell: &mut dyn Tell) -> Result<Exit> {
    archive.settle()?;
    // A note about a page is taken for it only where there is nothing else.
    let found = match find(archive, job, |kind| kind != CaptureKind::Metadata)? {
        None => find(archive, job, |_| true)?,
        found => found,
    };
    let Some(capture) = found else { return Ok(Exit::No) };
    let mut stored = archive.read_capture(&capture)?;
    let mut original = None;
    if capture.kind == CaptureKind::Revisit {
        original = match original_of(archive, &capture, &|_| true)? {
            Some(here) => Some((archive.read_capture(&here)?, here)),
            None => match others.named(archive, &capture)? {
                Some(there) => others.record(&there).ok().map(|record| (record, there)),
                None => None,
            },
        };
    }
    if capture.kind == CaptureKind::Revisit && original.is_none() && matches!(job.form, Form::Body | Form::Raw) {
        return Err(Failure::new(format!("the capture of {} is a revisit", capture.url))
            .because("the capture it refers to is not in this archive")
            .hint("`--headers` and `--warc` show what there is; `skep add` the file that holds the original"));
    }
    match job.form {
        Form::Warc => {
            tell_record(&mut stored, tell)?;
            if let Some((record, _)) = &mut original {
                tell_record(record, tell)?;
            }
        }
        Form::Json => {
            let mut object = Objects::new(archive).of(&capture)?;
            // Of what another node holds there is no file here to name.
            if let Some((_, original)) = &original
                && archive.file_of(original.position).is_ok()
            {
                object["original"] = Objects::new(archive).of(original)?;
            }
            object["headers"] = headers(&mut stored)?;
            tell.line(object)?;
        }
        Form::Headers | Form::Raw | Form::Body => {
            let part = match job.form {
                Form::Headers => Part::Head,
                Form::Raw => Part::Whole,
                _ => Part::Decoded,
            };
            let Some((mut record, original)) = original else {
                return tell_message(&mut stored, part, capture.is_http(), tell);
            };
            // What came this time is the head, unless whoever wrote the revisit did not keep it.
            let part = match (part, capture.is_http()) {
                (Part::Head, true) => return tell_message(&mut stored, part, true, tell),
                (Part::Whole, true) => {
                    tell_message(&mut stored, Part::Head, true, tell)?;
                    Part::Body
                }
                (part, _) => part,
            };
            return tell_message(&mut record, part, original.is_http(), tell);
        }
    }
    Ok(Exit::Done)
}

fn find(archive: &Archive, job: &Job, wanted: impl Fn(CaptureKind) -> bool) -> Result<Option<Capture>> {
    let view = &archive.views().captures;
    let key = skep_url::Key::of(&job.url);
    let fits = |c: &Capture| (job.private || !c.is_private()) && wanted(c.kind);
    if let Some(at) = job.at_ms {
        for capture in view.closest(&key, at)? {
            let capture = capture?;
            if fits(&capture) {
                return Ok(Some(capture));
            }
        }
        return Ok(None);
    }
    let mut query = Query::new(match_of(&job.url, Matching::Exact));
    query.direction = Direction::Backward;
    for capture in view.query(&query)? {
        let capture = capture?;
        if fits(&capture) {
            return Ok(Some(capture));
        }
    }
    Ok(None)
}

/// The capture that a revisit names: URL, milliseconds since 1970.
pub fn named_by(archive: &Archive, revisit: &Capture) -> Result<Option<(String, i64)>> {
    let mut stored = archive.read_capture(revisit)?;
    let record = stored.record()?;
    let head = record.head();
    let named = head.get("WARC-Refers-To-Target-URI").zip(head.get("WARC-Refers-To-Date"));
    Ok(named
        .and_then(|(uri, time)| Some((String::from_utf8_lossy(uri).into_owned(), skep_warc::date::parse_ms(time)?))))
}

/// What a revisit stands for: the capture it names, else the earliest one with the same payload. Only one that `shows` admits.
pub fn original_of(archive: &Archive, revisit: &Capture, shows: &dyn Fn(&Capture) -> bool) -> Result<Option<Capture>> {
    let (named, digest) = (named_by(archive, revisit)?, revisit.digest);
    let views = archive.views();
    if let Some((uri, time)) = named {
        for capture in views.captures.closest(&skep_url::Key::of(&uri), time)? {
            let capture = capture?;
            if capture.time_ms / 1000 != time / 1000 {
                break;
            }
            if capture.kind.has_body() && (digest.is_none() || capture.digest == digest) && shows(&capture) {
                return Ok(Some(capture));
            }
        }
    }
    let Some(digest) = digest else { return Ok(None) };
    for original in views.digests.originals(&digest, 16)? {
        for capture in views.captures.closest(&original.key, original.time_ms)? {
            let capture = capture?;
            if capture.position == original.position {
                if shows(&capture) {
                    return Ok(Some(capture));
                }
                break;
            }
            if capture.time_ms != original.time_ms {
                break;
            }
        }
    }
    Ok(None)
}

fn tell_record(stored: &mut Stored, tell: &mut dyn Tell) -> Result<()> {
    let path = stored.path().to_path_buf();
    let mut record = stored.record()?;
    let end: &[u8] = if record.head().is_arc() { b"\n" } else { b"\r\n\r\n" };
    tell.bytes(record.head().raw())?;
    tell_all(&mut record, &path, tell)?;
    tell.bytes(end)
}

fn tell_all(from: &mut dyn Read, path: &std::path::Path, tell: &mut dyn Tell) -> Result<()> {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match from.read(&mut piece).map_err(|error| Failure::reading(path, error))? {
            0 => return Ok(()),
            count => tell.bytes(&piece[..count])?,
        }
    }
}

/// What of a message is wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Head,
    Whole,
    /// The body as it came.
    Body,
    /// The body without its encodings.
    Decoded,
}

/// A part of the HTTP message of a record. A record without one is all body.
fn tell_message(stored: &mut Stored, part: Part, http: bool, tell: &mut dyn Tell) -> Result<Exit> {
    let path = stored.path().to_path_buf();
    let mut record = stored.record()?;
    if part == Part::Whole || !http {
        if part != Part::Head {
            tell_all(&mut record, &path, tell)?;
        }
        return Ok(Exit::Done);
    }
    let (head, begun) = read_head(&mut record, &path)?;
    let mut rest = std::io::Cursor::new(begun).chain(record);
    match (head, part) {
        (None, Part::Head) => {}
        (Some(head), Part::Head) => tell.bytes(head.raw())?,
        (Some(head), Part::Decoded) => tell_all(&mut coding::decode(&head, rest, Bounds::default()), &path, tell)?,
        _ => tell_all(&mut rest, &path, tell)?,
    }
    Ok(Exit::Done)
}

/// The head of the message and what of the body was read with it; no head where there is none, then all that was read.
pub fn read_head(record: &mut dyn BufRead, path: &std::path::Path) -> Result<(Option<http::Head>, Vec<u8>)> {
    let mut head = http::Head::new();
    let mut bytes = Vec::new();
    loop {
        let part = record.fill_buf().map_err(|error| Failure::reading(path, error))?;
        let (count, ended) = (part.len(), part.is_empty());
        bytes.extend_from_slice(part);
        record.consume(count);
        match head.parse_response(&bytes, ended) {
            Parsed::Complete { body } => return Ok((Some(head), bytes.split_off(body))),
            Parsed::NotHttp => return Ok((None, bytes)),
            Parsed::NeedMore if ended => return Ok((None, bytes)),
            Parsed::NeedMore => {}
        }
    }
}

fn headers(stored: &mut Stored) -> Result<Value> {
    let path = stored.path().to_path_buf();
    let mut record = stored.record()?;
    let (head, _) = read_head(&mut record, &path)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let fields = head
        .iter()
        .flat_map(|head| head.fields().map(|f| json!([text(f.name), text(&f.unfolded())])).collect::<Vec<_>>());
    Ok(Value::Array(fields.collect()))
}
