//! The files of the archive, and what is in them. No answer says where on this machine a file lies.

use super::asked::{Asked, cursor_of};
use super::{BASE, capture};
use crate::answer;
use crate::find::Looking;
use crate::limits::PAGE_ROWS;
use crate::portal::{POSTED, Scope};
use crate::replay;
use crate::reply::Reply;
use crate::trouble::Trouble;
use crate::visit::Visit;
use axum::body::Body;
use axum::http::{HeaderValue, Response, header};
use serde::Serialize;
use serde_json::{Value, json};
use skep_archive::layout::{SegmentName, sidecar_of};
use skep_archive::sidecar::SidecarReader;
use skep_archive::{Capture, Note, Position, State, WriterKey, is_listed};
use skep_warc::date;
use std::fs::File;
use std::io::{BufReader, Read};
use std::ops::ControlFlow;
use std::path::PathBuf;

/// A file, as lists tell of it.
#[derive(Clone, Debug, Serialize)]
pub struct FileTold {
    /// Its name in this archive, for ever.
    pub file: String,
    /// What it is called.
    pub name: String,
    /// Its collection; none for what was crawled here.
    pub collection: Option<String>,
    /// What it is.
    pub kind: String,
    /// Its bytes: when it was added, or now for what was crawled here.
    pub bytes: u64,
    /// When it was last modified, for a file from elsewhere.
    pub modified: Option<String>,
    /// `open` while this portal's process writes to it, else `closed`.
    pub state: &'static str,
    /// Where to go from here.
    pub links: Links,
}

/// Addresses on this portal.
#[derive(Clone, Debug, Serialize)]
pub struct Links {
    /// The captures in it.
    pub captures: String,
    /// The file itself.
    pub download: String,
}

/// Where a file and what is known of it are.
struct Found {
    path: PathBuf,
    sidecar: PathBuf,
    name: SegmentName,
}

fn links(file: &str) -> Links {
    Links { captures: format!("{BASE}/files/{file}/captures"), download: format!("{BASE}/files/{file}/download") }
}

fn id(name: SegmentName) -> String {
    format!("{}:{}", name.id.writer, name.id.number)
}

/// The files in scope: those from elsewhere by number, then what was crawled here.
pub fn all(look: &Looking<'_>) -> Vec<FileTold> {
    let mut all = Vec::new();
    for file in look.portal.archive.collections().files() {
        if matches!(look.scope, Scope::Collection(name) if **name != *file.collection) {
            continue;
        }
        let (name, id) = (file.name(), id(file.name()));
        let position = Position { writer: name.id.writer, segment: name.id.number, record: 0 };
        all.push(FileTold {
            name: look.portal.name_of(position).to_string(),
            collection: Some(file.collection.clone()),
            kind: file.kind.clone(),
            bytes: file.size,
            modified: Some(date::rfc3339(file.modified_ms)),
            state: "closed",
            links: links(&id),
            file: id,
        });
    }
    if *look.scope == Scope::Everything {
        for segment in look.portal.archive.segments() {
            let id = id(segment.name);
            all.push(FileTold {
                name: segment.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
                collection: None,
                kind: "warc".to_owned(),
                bytes: segment.path.metadata().map_or(0, |meta| meta.len()),
                modified: None,
                state: if segment.state == State::Open { "open" } else { "closed" },
                links: links(&id),
                file: id,
            });
        }
    }
    all
}

/// One page of files, and where the next begins.
pub fn page(look: &Looking<'_>, asked: &Asked) -> (Vec<FileTold>, Option<String>) {
    let (limit, cursor) = (asked.number("limit", PAGE_ROWS), asked.cursor());
    let skipped = cursor.iter().fold(0usize, |sum, byte| sum.saturating_mul(256).saturating_add(usize::from(*byte)));
    let all = all(look);
    let end = skipped.saturating_add(limit).min(all.len());
    let next = (end < all.len()).then(|| cursor_of(&(end as u64).to_be_bytes()));
    (all.into_iter().skip(skipped).take(limit).collect(), next)
}

/// Answers with the list.
pub fn list(look: &Looking<'_>, asked: &Asked, _: &Visit) -> Result<Value, Trouble> {
    let (files, next) = page(look, asked);
    Ok(json!({ "files": files, "next": next }))
}

/// The file of this name.
pub fn one(look: &Looking<'_>, file: &str) -> Result<FileTold, Trouble> {
    all(look).into_iter().find(|told| told.file == file).ok_or_else(missing)
}

fn missing() -> Trouble {
    Trouble::missing("There is no such file; /api/v1/files lists them.")
}

/// Answers with one file.
pub fn tell(look: &Looking<'_>, asked: &Asked, _: &Visit) -> Result<Value, Trouble> {
    let told = one(look, asked.text("file"))?;
    Ok(serde_json::to_value(told).unwrap_or_default())
}

fn find(look: &Looking<'_>, file: &str) -> Result<Found, Trouble> {
    let archive = &look.portal.archive;
    let position: Position = format!("{file}:0").parse().map_err(|_| missing())?;
    if position.writer == WriterKey::FOREIGN {
        let files = archive.collections();
        let file = files.get(position.segment).ok_or_else(missing)?;
        let (path, sidecar) = (file.location(archive.layout()), archive.layout().collection_sidecar(file.number));
        return Ok(Found { path, sidecar, name: file.name() });
    }
    let same = |name: SegmentName| (name.id.writer, name.id.number) == (position.writer, position.segment);
    let segment = archive.segments().into_iter().find(|segment| same(segment.name)).ok_or_else(missing)?;
    Ok(Found { sidecar: sidecar_of(&segment.path), path: segment.path, name: segment.name })
}

/// Shows every record of a file about a URL, in order.
fn each(found: &Found, mut see: impl FnMut(&Capture) -> ControlFlow<()>) -> Result<(), Trouble> {
    let Some(mut reader) = SidecarReader::open(&found.sidecar, found.name)? else { return Ok(()) };
    while let Some(entries) = reader.next_frame()? {
        for entry in &entries {
            if let Note::Capture(capture) = &entry.note
                && see(capture).is_break()
            {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn shows(look: &Looking<'_>, capture: &Capture) -> bool {
    !look.portal.archive.views().is_hidden(capture.position) && look.portal.access.shows(capture, look.may, look.now_ms)
}

/// One page of a file's captures, and where the next begins.
pub fn captures_page(look: &Looking<'_>, asked: &Asked) -> Result<(Vec<capture::Told>, Option<String>), Trouble> {
    let found = find(look, asked.text("file"))?;
    let (limit, cursor) = (asked.number("limit", PAGE_ROWS), asked.cursor());
    let after = (!cursor.is_empty())
        .then(|| cursor.iter().fold(0u64, |sum, byte| sum.saturating_mul(256).saturating_add(u64::from(*byte))));
    let (mut captures, mut next) = (Vec::new(), None);
    each(&found, |capture| {
        let record = u64::from(capture.position.record);
        if after.is_some_and(|after| record <= after) || !is_listed(capture) || !shows(look, capture) {
            return ControlFlow::Continue(());
        }
        if captures.len() == limit {
            next = captures.last().map(|(record, _): &(u64, capture::Told)| cursor_of(&record.to_be_bytes()));
            return ControlFlow::Break(());
        }
        captures.push((record, capture::told(look, capture)));
        ControlFlow::Continue(())
    })?;
    Ok((captures.into_iter().map(|(_, told)| told).collect(), next))
}

/// Answers with a file's captures.
pub fn captures(look: &Looking<'_>, asked: &Asked, _: &Visit) -> Result<Value, Trouble> {
    let (captures, next) = captures_page(look, asked)?;
    Ok(json!({ "captures": captures, "next": next }))
}

/// Sends a whole file, if everything in it may be seen.
pub fn download(look: &Looking<'_>, asked: &Asked, visit: &Visit, reply: &mut Option<Reply>) -> Result<(), Trouble> {
    let (told, found) = (one(look, asked.text("file"))?, find(look, asked.text("file"))?);
    if found.path.starts_with(look.portal.archive.layout().collections().join(POSTED)) {
        return Err(Trouble::missing("This file is known by its index only; it is not here."));
    }
    let mut hidden = false;
    each(&found, |capture| {
        hidden = !shows(look, capture);
        if hidden { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    if hidden {
        let told = "This file holds records that may not be shown; /api/v1/records sends those that may.";
        return Err(Trouble::forbidden(told));
    }
    let gone = |error: std::io::Error| Trouble::damaged("The file is not where it was.", error.to_string());
    let file = File::open(&found.path).map_err(gone)?;
    let length = file.metadata().map_err(gone)?.len();
    let mut head = Response::new(Body::empty());
    let headers = head.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    headers.insert(header::CONTENT_DISPOSITION, attached(&told.name));
    let Some(reply) = reply.take() else { return Ok(()) };
    if visit.head_only {
        reply.send(head);
        return Ok(());
    }
    let mut body = BufReader::new(file).take(length);
    if let Some(sink) = replay::pour(look, &mut body, reply.begin(head), u64::MAX) {
        let _hung_up = sink.end();
    }
    Ok(())
}

/// To be saved under this name.
pub fn attached(name: &str) -> HeaderValue {
    let plain: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || ".-_ ".contains(c) { c } else { '_' }).collect();
    answer::value(&format!("attachment; filename=\"{plain}\""))
}
