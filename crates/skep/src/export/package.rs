//! `--format wacz`: records, index and list of pages in one package.

use super::output::{Part, writing};
use super::pages::Pages;
use super::pour::{Files, Pour, SOFTWARE};
use super::walk::Walk;
use super::{Job, Summary};
use crate::failure::Result;
use crate::job::Tell;
use crate::sorted::Sorted;
use skep_warc::date;
use skep_warc::wacz::{self, About, Package};
use std::io::{self, Write};
use std::path::Path;

/// WARC files inside the package.
struct Inside(Package);

impl Files for Inside {
    fn begin(&mut self, number: u32, announced_bytes: u64) -> io::Result<String> {
        let name = format!("data-{number:05}.warc.gz");
        self.0.begin(&format!("archive/{name}"), announced_bytes)?;
        Ok(name)
    }
}

impl Write for Inside {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

pub fn write(walk: &mut Walk<'_>, job: &Job, target: &Path, tell: &mut dyn Tell) -> Result<Summary> {
    let failed = |error: io::Error| writing(target, error);
    let mut summary = Summary::default();
    let mut lines = Sorted::default();
    let mut pages = Pages::new().map_err(failed)?;
    let mut newest_ms = i64::MIN;
    let part = Part::beside(target)?;
    let inside = Inside(Package::new(part.file()?));
    let mut pour = Pour::new(inside, target.to_path_buf(), job.description(), job.warc_bytes);
    walk.each_record(&mut summary, tell, |ready, capture| {
        let (name, offset) = pour.put(ready)?;
        lines.extend(ready.line.as_ref().map(|line| line.text(offset, ready.length, name)))?;
        newest_ms = newest_ms.max(ready.time_ms);
        match capture {
            Some(capture) => pages.look(capture, ready).map_err(failed),
            None => Ok(()),
        }
    })?;
    if summary.records == 0 {
        return Ok(summary);
    }
    let mut package = pour.into_files().0;
    package.begin(&format!("indexes/{}", wacz::BLOCKS), lines.total_bytes()).map_err(failed)?;
    let mut index = wacz::Index::new(&mut package);
    lines.each(|line| index.push(line).map_err(failed))?;
    let list = index.finish().map_err(failed)?;
    package.begin(&format!("indexes/{}", wacz::LIST), 0).map_err(failed)?;
    package.write_all(list.as_bytes()).map_err(failed)?;
    package.begin("pages/pages.jsonl", pages.bytes()).map_err(failed)?;
    summary.pages = Some(pages.pour(&mut package).map_err(failed)?);
    // As old as the newest record in it: the same content gives the same bytes.
    let created = date::rfc3339(newest_ms.div_euclid(1000) * 1000);
    let title = job.collection.as_deref().or(job.url_prefix.as_deref()).unwrap_or("Web archive");
    let about = About { title, description: &job.description(), software: SOFTWARE, created: &created };
    package.finish(&about).map_err(failed)?;
    summary.bytes = part.keep(target)?;
    summary.files.push(target.to_path_buf());
    Ok(summary)
}
