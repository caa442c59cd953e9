//! Lines of an index sent to us: `POST /COLLECTION` adds captures, `POST /COLLECTION/delete` takes captures away, as with OutbackCDX.
//!
//! A line names the file that holds its record. Where that file stands beside files of the collection, its captures can be replayed from then
//! on. Else the lines are kept under `collections/posted` in the archive's folder, as the CDXJ file that they amount to: the index answers
//! with them, and whoever has the file replays.

use super::line;
use crate::find::Looking;
use crate::portal::{POSTED, Scope, posted_name};
use crate::time;
use crate::trouble::Trouble;
use axum::http::StatusCode;
use skep_archive::cdxj::{self, Imported};
use skep_archive::{Addition, Capture, CaptureKind, FLAG_HTTP, Key, Note, Position};
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

/// What cannot name a collection, for it means something else in addresses.
pub const RESERVED: [&str; 19] = [
    "web",
    "cdx",
    "api",
    "health",
    "metrics",
    "search",
    "static",
    "collections",
    "url",
    "compare",
    "completeness",
    "changes",
    "history",
    "freshness",
    "watches",
    "statistics",
    "files",
    "-",
    "_",
];

/// Whether somebody may make a collection of this name by sending lines to it.
pub fn can_name(name: &str) -> bool {
    !RESERVED.contains(&name)
        && !name.is_empty()
        && name.len() <= 100
        && !name.starts_with('.')
        && name.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c))
}

/// Reads all lines, or says which one is wrong.
fn read(body: &[u8]) -> Result<Vec<Imported>, Trouble> {
    let text = String::from_utf8_lossy(body);
    let mut all = Vec::new();
    for row in text.lines() {
        let wrong = |why: &str| {
            let shown: String = row.chars().take(500).collect();
            Trouble::bad(format!("At line: {shown}\n{why}"))
        };
        if row.trim().is_empty() || row.starts_with(" CDX") {
            continue;
        }
        if row.starts_with("@alias ") {
            return Err(wrong("aliases are not kept here"));
        }
        let read = if row.split(' ').nth(2).is_some_and(|third| third.starts_with('{')) {
            cdxj::parse_line(row).map_err(|why| wrong(&why))?
        } else {
            Some(cdx_line(row).map_err(wrong)?)
        };
        all.extend(read);
    }
    Ok(all)
}

/// A line of a CDX file with 9, 10, 11 or 14 fields.
///
/// ```text
///  N b a m s k r V g                 key time url type status digest redirect offset file
///  N b a m s k r M V g               … redirect robotflags offset file
///  N b a m s k r M S V g             … redirect robotflags length offset file
///  and three more                    those of the original of a revisit
/// ```
fn cdx_line(row: &str) -> Result<Imported, &'static str> {
    let fields: Vec<&str> = row.split(' ').collect();
    let (length, offset, filename) = match fields.len() {
        9 => ("-", fields[7], fields[8]),
        10 => ("-", fields[8], fields[9]),
        11 | 14 => (fields[8], fields[9], fields[10]),
        _ => return Err("a CDX line has 9, 10, 11 or 14 fields"),
    };
    let number = |text: &str| if text == line::NOTHING { Ok(0) } else { text.parse::<u64>() };
    let (url, mime) = (fields[2], fields[3]);
    let status = match fields[4] {
        line::NOTHING => 0,
        text => text.parse().map_err(|_| "the status is not a number")?,
    };
    let kind = match mime {
        "warc/revisit" => CaptureKind::Revisit,
        _ if status == 0 => CaptureKind::Resource,
        _ => CaptureKind::Response,
    };
    let capture = Capture {
        key: Key::of(url),
        url: url.to_owned(),
        time_ms: time::earliest(fields[1]).ok_or("the time does not have 1 to 14 digits")?,
        position: Position::default(),
        kind,
        status,
        mime: if kind == CaptureKind::Revisit || mime == line::NOTHING { String::new() } else { mime.to_owned() },
        digest: fields[5].parse().ok(),
        offset: number(offset).map_err(|_| "the offset is not a number")?,
        length: number(length).map_err(|_| "the length is not a number")?,
        flags: if status > 0 || kind == CaptureKind::Revisit { FLAG_HTTP } else { 0 },
    };
    if filename.is_empty() || filename == line::NOTHING {
        return Err("the line names no file");
    }
    Ok(Imported { capture, filename: filename.to_owned() })
}

impl Looking<'_> {
    /// What the index has of a line already.
    fn known(&self, wanted: &Imported) -> Result<Option<Capture>, Trouble> {
        let same = |capture: &Capture| {
            capture.offset == wanted.capture.offset
                && capture.url == wanted.capture.url
                && self.scope.holds(capture, self.portal)
                && *self.portal.file_name(capture) == *wanted.filename
        };
        for capture in self.portal.archive.views().captures.closest(&wanted.capture.key, wanted.capture.time_ms)? {
            let capture = capture?;
            if capture.time_ms.div_euclid(1000) != wanted.capture.time_ms.div_euclid(1000) {
                break;
            }
            if same(&capture) {
                return Ok(Some(capture));
            }
        }
        Ok(None)
    }

    /// Adds the captures of these lines. Returns how many lines there were.
    pub fn post(&self, body: &[u8]) -> Result<usize, Trouble> {
        let Scope::Collection(collection) = self.scope else {
            return Err(Trouble::bad("Lines belong to a collection; /web is everything"));
        };
        let lines = read(body)?;
        let count = lines.len();
        let mut by_file: BTreeMap<String, Vec<Capture>> = BTreeMap::new();
        for line in lines {
            if self.known(&line)?.is_none() {
                by_file.entry(line.filename).or_default().push(line.capture);
            }
        }
        if by_file.is_empty() {
            return Ok(count);
        }
        let archive = &self.portal.archive;
        let folders = self.folders(collection);
        let mut additions = archive.additions()?;
        for (filename, captures) in by_file {
            let begun = match beside(&folders, &filename) {
                Some(path) => Some(additions.begin(&path, collection, "cdxj", false)?),
                None => None,
            };
            let (mut adding, here) = match begun {
                Some(Addition::New(adding)) => (adding, true),
                _ => {
                    let path = self.keep(&filename, &captures)?;
                    match additions.begin(&path, collection, "cdxj", false)? {
                        Addition::New(adding) => (adding, false),
                        _ => {
                            return Err(Trouble::damaged(
                                "The lines could not be kept.",
                                "a file of posted lines was there already",
                            ));
                        }
                    }
                }
            };
            let size = adding.file().size;
            for (number, mut capture) in (0u32..).zip(captures) {
                if here {
                    let rest = size.saturating_sub(capture.offset);
                    capture.length = if capture.length == 0 { rest } else { capture.length.min(rest) };
                }
                let (offset, length) = (capture.offset, capture.length);
                adding.push(number, offset, length, Note::Capture(Box::new(capture)))?;
            }
            additions.end(adding)?;
        }
        additions.commit()?;
        Ok(count)
    }

    /// Takes away the captures of these lines. Returns how many there were.
    pub fn delete(&self, body: &[u8]) -> Result<usize, Trouble> {
        if *self.scope == Scope::Everything {
            return Err(Trouble::bad("Lines belong to a collection; `skep remove` removes from everything"));
        }
        let mut found = Vec::new();
        for line in read(body)? {
            found.extend(self.known(&line)?);
        }
        if found.is_empty() {
            return Ok(0);
        }
        let removed = self.portal.archive.remove_captures(&found, "taken out of the index by a client")?;
        Ok(removed.positions.len())
    }

    /// The folders in which files of a collection stand.
    fn folders(&self, collection: &str) -> Vec<PathBuf> {
        let archive = &self.portal.archive;
        let posted = archive.layout().collections().join(POSTED);
        let mut folders: Vec<PathBuf> = Vec::new();
        for file in archive.collections().files().iter().filter(|file| file.collection == collection) {
            let Some(folder) = file.from.parent() else { continue };
            if !folders.iter().any(|known| known == folder) && !folder.starts_with(&posted) {
                folders.push(folder.to_path_buf());
            }
        }
        folders
    }

    /// Keeps lines about a file that is not here.
    fn keep(&self, filename: &str, captures: &[Capture]) -> Result<PathBuf, Trouble> {
        let failed = |error: std::io::Error| Trouble {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            told: "The lines could not be kept; the reason is in the log.".to_owned(),
            log: Some(format!("cannot keep posted lines: {error}")),
        };
        let below = self.portal.archive.layout().collections().join(POSTED);
        std::fs::create_dir_all(&below).map_err(failed)?;
        let stamp = time::digits(self.now_ms);
        let folder = (0u32..)
            .map(|number| below.join(format!("{stamp}-{number}")))
            .find(|folder| std::fs::create_dir(folder).is_ok());
        let path = folder.unwrap_or(below).join(posted_name(filename));
        let text: String = captures.iter().map(|capture| kept_line(capture, filename)).collect();
        std::fs::write(&path, text).and_then(|()| std::fs::File::open(&path)?.sync_all()).map_err(failed)?;
        Ok(path)
    }
}

/// A path inside one of the folders, if a file is there.
fn beside(folders: &[PathBuf], filename: &str) -> Option<PathBuf> {
    // A name in an index is somebody else's word: it must not lead out of the folder.
    let inside = Path::new(filename).components().all(|part| matches!(part, Component::Normal(_)));
    folders.iter().map(|folder| folder.join(filename)).find(|path| inside && path.is_file())
}

fn kept_line(capture: &Capture, filename: &str) -> String {
    let mut fields = vec![("url", capture.url.clone())];
    let mime = if capture.kind == CaptureKind::Revisit { "warc/revisit" } else { &capture.mime };
    fields.push(("mime", mime.to_owned()));
    if capture.status > 0 {
        fields.push(("status", capture.status.to_string()));
    }
    if let Some(digest) = &capture.digest {
        fields.push(("digest", line::digest(digest)));
    }
    fields.extend([
        ("length", capture.length.to_string()),
        ("offset", capture.offset.to_string()),
        ("filename", filename.to_owned()),
    ]);
    let mut out = format!("{} {} {{", capture.key.surt(), time::digits(capture.time_ms));
    for (index, (name, value)) in fields.iter().enumerate() {
        out.push_str(if index > 0 { ", " } else { "" });
        skep_archive::cdxj::quoted(&mut out, name);
        out.push_str(": ");
        skep_archive::cdxj::quoted(&mut out, value);
    }
    out.push_str("}\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_every_length_are_read() {
        let body = b" CDX N b a m s k r M S V g\n\
            - 20140101000000 http://a.example/ text/html 200 3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ - - 10 20 a.warc.gz\n\
            - 20140101000000 http://a.example/ warc/revisit - 3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ - 20 a.warc.gz\n\
            - 20140101000000 http://a.example/ text/html 200 - - - 20 a.warc.gz\n\
            - 20140101000000 http://a.example/ text/html 200 - - - - 20 a.warc.gz 1 2 b.warc.gz\n\
            example)/ 20140101 {\"url\": \"http://a.example/\", \"offset\": 3, \"filename\": \"b.warc.gz\"}\n\n";
        let lines = read(body).unwrap();
        assert_eq!(lines.len(), 5);
        assert_eq!(
            (lines[0].capture.length, lines[0].capture.offset, lines[0].filename.as_str()),
            (10, 20, "a.warc.gz")
        );
        assert_eq!(lines[1].capture.kind, CaptureKind::Revisit);
        for wrong in
            ["one two", "a b c d e f g h i", "- 2014 u m x d r 1 f", "@alias a b", "- 2014 u m 200 d - - - x f"]
        {
            assert!(read(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_stay_inside() {
        assert!(can_name("crawl-2014") && !can_name("api") && !can_name("..") && !can_name("a/b") && !can_name(""));
        assert_eq!(posted_name("a/b%c.warc.gz"), "a%2Fb%25c.warc.gz");
        assert_eq!(posted_name("../x"), "%2E%2E%2Fx");
    }
}
