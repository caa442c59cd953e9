//! `--format cdxj`: the index of what is selected, as `skep index` writes that of files.

use super::Summary;
use super::output::{Part, writing};
use super::walk::{Walk, left};
use crate::failure::{Failure, Result};
use crate::job::Tell;
use crate::sorted::Sorted;
use skep_archive::{Capture, cdxj, is_listed};
use skep_warc::wacz::{self, Entry};
use std::collections::HashMap;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Bytes told at a time.
const PIECE_BYTES: usize = 64 << 10;

pub fn write(walk: &mut Walk<'_>, target: Option<&Path>, tell: &mut dyn Tell) -> Result<Summary> {
    let mut summary = Summary::default();
    let mut lines = Sorted::default();
    let mut names = Names::default();
    walk.each_capture(tell, |capture, tell| {
        if !is_listed(capture) {
            return Ok(());
        }
        match line(walk, capture, &mut names) {
            Ok(line) => {
                summary.captures += 1;
                summary.records += 1;
                lines.extend(line)
            }
            Err(failure) => left(&mut summary, tell, capture.position, &failure.because.unwrap_or(failure.what)),
        }
    })?;
    if summary.records == 0 {
        return Ok(summary);
    }
    let Some(target) = target else {
        let mut piece = Vec::with_capacity(PIECE_BYTES);
        lines.each(|line| {
            piece.extend_from_slice(line.as_bytes());
            piece.push(b'\n');
            if piece.len() < PIECE_BYTES { Ok(()) } else { tell.bytes(&std::mem::take(&mut piece)) }
        })?;
        tell.bytes(&piece)?;
        return Ok(summary);
    };
    let failed = |error: io::Error| writing(target, error);
    let part = Part::beside(target)?;
    let mut out = BufWriter::new(part.file()?);
    lines.each(|line| writeln!(out, "{line}").map_err(failed))?;
    out.flush().map_err(failed)?;
    summary.bytes = part.keep(target)?;
    summary.files.push(target.to_path_buf());
    Ok(summary)
}

/// The line of a capture, from its record, so that every field is what an index of the file has.
fn line(walk: &Walk<'_>, capture: &Capture, names: &mut Names) -> Result<Option<String>> {
    let mut stored = walk.archive.read_capture(capture)?;
    let (path, offset) = (stored.path().to_path_buf(), stored.offset());
    let failed = |error| Failure::reading(&path, error);
    let mut record = stored.record()?;
    let about = record.head().target_uri().map(skep_archive::Key::of_bytes);
    if about.as_ref().map(skep_archive::Key::surt) != Some(capture.key.surt()) {
        return Err(Failure::new("the record there is about something else"));
    }
    let (head_bytes, plain) = (record.head().raw().len() as u64, record.is_plain());
    let Some(line) = cdxj::line_of(&mut record).map_err(failed)? else { return Ok(None) };
    let end = record.finish().map_err(failed)?;
    // In a plain file the line ends between records belong to none.
    let length = if plain { head_bytes + end.block_bytes } else { end.length };
    let (name, begin) = names.of(&path, offset).map_err(failed)?;
    Ok(Some(line.text(offset - begin, length, name)))
}

/// What files are called in an index. In a package it is the file inside that counts, and offsets are its own.
#[derive(Default)]
struct Names {
    known: HashMap<PathBuf, Vec<(String, u64)>>,
}

impl Names {
    /// The name of the file that holds this byte, and where that file begins.
    fn of(&mut self, path: &Path, offset: u64) -> io::Result<(&str, u64)> {
        if !self.known.contains_key(path) {
            let last = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
            let inside = if wacz::is_package(path)? { wacz::archives(path)? } else { Vec::new() };
            let mut names: Vec<(String, u64)> = inside
                .iter()
                .filter(|entry| !entry.deflated)
                .map(|Entry { name, start, .. }| (last(name), *start))
                .collect();
            names.sort_by_key(|(_, start)| *start);
            if names.is_empty() {
                names.push((last(&path.to_string_lossy()), 0));
            }
            self.known.insert(path.to_path_buf(), names);
        }
        let names = &self.known[path];
        let at = names.partition_point(|(_, start)| *start <= offset).saturating_sub(1);
        Ok((names[at].0.as_str(), names[at].1))
    }
}
