//! `--format files`: a site as a folder, for its owner. Of every URL the newest answer, its bytes as the server meant them: without
//! transfer and content encodings, otherwise unchanged. `skep-manifest.jsonl` says of each file what it is and from when.
//!
//! The folder itself remembers which paths are taken, so that nothing grows in memory with the site.

use super::Summary;
use super::names::{another, index, path_of};
use super::output::{is_free, sync_folder_of, writing};
use super::walk::{Walk, left};
use crate::failure::{Failure, Result};
use crate::get::{original_of, read_head};
use crate::job::Tell;
use serde_json::json;
use skep_archive::{Capture, CaptureKind};
use skep_warc::coding::{self, Bounds};
use skep_warc::date;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Cursor, Read, Seek, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The list of what came from where.
const MANIFEST: &str = "skep-manifest.jsonl";
/// Spellings of one URL (`http`, `https`, upper case) that are told apart.
const SPELLINGS_MAX: usize = 4096;
/// Names that are tried for a file before it is given up.
const NAMES_MAX: u32 = 10_000;
/// Bytes moved at a time.
const STEP_BYTES: usize = 256 << 10;

pub fn write(walk: &mut Walk<'_>, target: &Path, tell: &mut dyn Tell) -> Result<Summary> {
    let mut summary = Summary::default();
    let mut folder = Folder::beside(target)?;
    // Captures of one URL stand together, by time.
    let mut newest: BTreeMap<String, Capture> = BTreeMap::new();
    let mut key = None;
    walk.each_by_url(tell, |capture, tell| {
        if key.as_ref() != Some(&capture.key) {
            folder.put_all(walk, std::mem::take(&mut newest), &mut summary, tell)?;
            key = Some(capture.key.clone());
        }
        if is_wanted(capture) && (newest.len() < SPELLINGS_MAX || newest.contains_key(plain(&capture.url))) {
            newest.insert(plain(&capture.url).to_owned(), capture.clone());
        }
        Ok(())
    })?;
    folder.put_all(walk, newest, &mut summary, tell)?;
    if summary.captures == 0 {
        return Ok(summary);
    }
    summary.bytes = folder.bytes;
    folder.keep(target)?;
    summary.files.push(target.to_path_buf());
    Ok(summary)
}

/// What a file can be made of: an answer that brought what was asked for. A page that is gone since, or moved, was there before.
fn is_wanted(capture: &Capture) -> bool {
    match capture.kind {
        CaptureKind::Response => capture.status == 200,
        CaptureKind::Revisit => matches!(capture.status, 0 | 200 | 304),
        CaptureKind::Resource => true,
        _ => false,
    }
}

/// The URL without scheme: most sites moved from one to the other.
fn plain(url: &str) -> &str {
    let url = url.split('#').next().unwrap_or_default();
    url.split_once("://").map_or(url, |(_, rest)| rest)
}

/// What became of a capture.
enum Done {
    Written,
    /// A name in the DNS, for one.
    NotOfTheWeb,
}

/// A folder on its way. Dropped, it leaves nothing behind.
struct Folder {
    root: tempfile::TempDir,
    /// Lines of the manifest, by the path each file had first.
    manifest: BufWriter<File>,
    /// Files that made way for a folder of their name.
    moved: HashMap<String, String>,
    bytes: u64,
}

impl Folder {
    fn beside(target: &Path) -> Result<Folder> {
        let above = target.parent().unwrap_or(Path::new("."));
        let failed = |error| writing(above, error);
        let root = tempfile::Builder::new()
            .prefix(".skep-export-")
            .suffix(".part")
            .permissions(std::fs::Permissions::from_mode(0o777))
            .tempdir_in(above)
            .map_err(failed)?;
        let manifest = BufWriter::new(tempfile::tempfile().map_err(failed)?);
        Ok(Folder { root, manifest, moved: HashMap::new(), bytes: 0 })
    }

    fn put_all(
        &mut self,
        walk: &Walk<'_>,
        newest: BTreeMap<String, Capture>,
        summary: &mut Summary,
        tell: &mut dyn Tell,
    ) -> Result<()> {
        for capture in newest.into_values() {
            match self.put(walk, &capture)? {
                Ok(Done::Written) => {
                    summary.captures += 1;
                    summary.records += 1;
                }
                Ok(Done::NotOfTheWeb) => {}
                Err(why) => left(summary, tell, capture.position, &format!("{}: {why}", capture.url))?,
            }
        }
        Ok(())
    }

    /// Writes the body of a capture; says why where it cannot be read.
    fn put(&mut self, walk: &Walk<'_>, capture: &Capture) -> Result<std::result::Result<Done, String>> {
        let held = match capture.kind {
            CaptureKind::Revisit => original_of(walk.archive, capture, &|original| walk.shows(original))?,
            _ => Some(capture.clone()),
        };
        let Some(held) = held else { return Ok(Err("it refers to a capture that is not here".to_owned())) };
        let Some(path) = path_of(&capture.url, &held.mime) else { return Ok(Ok(Done::NotOfTheWeb)) };
        let (path, mut file) = self.create(&path)?;
        let whole = self.root.path().join(&path);
        let failed = |error| writing(&whole, error);
        let mut bytes = 0;
        let read = each_piece(walk, &held, |piece| {
            bytes += piece.len() as u64;
            file.write_all(piece).map_err(failed)
        })?;
        if let Err(why) = read {
            std::fs::remove_file(&whole).map_err(failed)?;
            return Ok(Err(why));
        }
        let age = Duration::from_millis(u64::try_from(capture.time_ms).unwrap_or(0));
        file.set_modified(SystemTime::UNIX_EPOCH + age).map_err(failed)?;
        self.bytes += bytes;
        let line = json!({
            "file": path,
            "url": capture.url,
            "time": date::rfc3339(capture.time_ms),
            "mime": (!held.mime.is_empty()).then_some(&held.mime),
            "bytes": bytes,
            "digest": capture.digest.or(held.digest).as_ref().map(ToString::to_string),
            "position": held.position.to_string(),
        });
        writeln!(self.manifest, "{line}").map_err(failed)?;
        Ok(Ok(Done::Written))
    }

    /// A new file at this path, or at the next that is free. A folder may be where a file should go (`/a/b` came before `/a`), and
    /// the other way round.
    fn create(&mut self, path: &str) -> Result<(String, File)> {
        let mut wanted = path.to_owned();
        for number in 2..NAMES_MAX {
            let whole = self.root.path().join(&wanted);
            let failed = |error| writing(&whole, error);
            self.make_folders(&wanted).map_err(failed)?;
            if whole.is_dir() {
                wanted = format!("{wanted}/{}", index(""));
                continue;
            }
            match File::create_new(&whole) {
                Ok(file) => return Ok((wanted, file)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => wanted = another(path, number),
                Err(error) => return Err(failed(error)),
            }
        }
        Err(Failure::new(format!("there is no free name for {path}")))
    }

    /// Makes the folders above a path. A file that is where one should be becomes that folder's own page.
    fn make_folders(&mut self, path: &str) -> io::Result<()> {
        let root = self.root.path();
        for (end, _) in path.match_indices('/') {
            let above = &path[..end];
            let whole = root.join(above);
            match std::fs::create_dir(&whole) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && whole.is_dir() => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    // No host has a name that begins with a dot.
                    let aside = root.join(".moved");
                    std::fs::rename(&whole, &aside)?;
                    std::fs::create_dir(&whole)?;
                    let now = format!("{above}/{}", index(""));
                    std::fs::rename(&aside, root.join(&now))?;
                    self.moved.insert(above.to_owned(), now);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes the manifest and gives the folder its name.
    fn keep(mut self, target: &Path) -> Result<()> {
        let failed = |error: io::Error| writing(target, error);
        self.make_folders(MANIFEST).map_err(failed)?;
        let mut lines = self.manifest.into_inner().map_err(|error| failed(error.into_error()))?;
        lines.rewind().map_err(failed)?;
        let mut out = BufWriter::new(File::create_new(self.root.path().join(MANIFEST)).map_err(failed)?);
        for line in BufReader::new(lines).lines() {
            let mut line = line.map_err(failed)?;
            if !self.moved.is_empty() {
                line = led(&self.moved, line).map_err(failed)?;
            }
            writeln!(out, "{line}").map_err(failed)?;
        }
        out.flush().map_err(failed)?;
        // One sync for all files: one each would take longer than writing them.
        let synced =
            File::open(self.root.path()).and_then(|folder| rustix::fs::syncfs(&folder).map_err(io::Error::from));
        synced.map_err(failed)?;
        is_free(target)?;
        let folder: PathBuf = self.root.keep();
        std::fs::rename(&folder, target).map_err(|error| {
            let _told_anyway = std::fs::remove_dir_all(&folder);
            failed(error)
        })?;
        sync_folder_of(target)
    }
}

/// A line of the manifest with the path where its file went.
fn led(moved: &HashMap<String, String>, line: String) -> io::Result<String> {
    let mut value: serde_json::Value = serde_json::from_str(&line)?;
    let mut now = value["file"].as_str().and_then(|path| moved.get(path));
    // It may have had to make way more than once.
    while let Some(next) = now.and_then(|path| moved.get(path)) {
        now = Some(next);
    }
    let Some(now) = now else { return Ok(line) };
    value["file"] = now.as_str().into();
    Ok(value.to_string())
}

/// The body of a capture, without its encodings, piece by piece; says why where it cannot be read.
fn each_piece(
    walk: &Walk<'_>,
    capture: &Capture,
    look: impl FnMut(&[u8]) -> Result<()>,
) -> Result<std::result::Result<(), String>> {
    let unread = |error: skep_archive::Error| Ok(Err(error.to_string()));
    let mut stored = match walk.archive.read_capture(capture) {
        Ok(stored) => stored,
        Err(error) => return unread(error),
    };
    let path = stored.path().to_path_buf();
    let mut record = match stored.record() {
        Ok(record) => record,
        Err(error) => return unread(error),
    };
    let about = record.head().target_uri().map(skep_archive::Key::of_bytes);
    if about.as_ref().map(skep_archive::Key::surt) != Some(capture.key.surt()) {
        return Ok(Err("the record there is about something else".to_owned()));
    }
    if !capture.is_http() {
        return pour(&mut record, look);
    }
    let (head, begun) = match read_head(&mut record, &path) {
        Ok(read) => read,
        Err(failure) => return Ok(Err(failure.because.unwrap_or(failure.what))),
    };
    let mut rest = Cursor::new(begun).chain(record);
    match head {
        Some(head) => pour(&mut coding::decode(&head, rest, Bounds::default()), look),
        None => pour(&mut rest, look),
    }
}

fn pour(from: &mut dyn Read, mut look: impl FnMut(&[u8]) -> Result<()>) -> Result<std::result::Result<(), String>> {
    let mut step = vec![0; STEP_BYTES];
    loop {
        match from.read(&mut step) {
            Ok(0) => return Ok(Ok(())),
            Ok(count) => look(&step[..count])?,
            Err(error) => return Ok(Err(error.to_string())),
        }
    }
}
