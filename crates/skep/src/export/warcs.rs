//! `--format warc`: records as they stand, in one file or several.

use super::output::{Part, is_free, numbered};
use super::pour::{Files, Pour};
use super::walk::Walk;
use super::{Job, Summary};
use crate::failure::{Failure, Result};
use crate::job::Tell;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Files that are there when all of them are whole.
struct Parts {
    target: PathBuf,
    parts: Vec<Part>,
    out: Option<BufWriter<File>>,
}

impl Files for Parts {
    fn begin(&mut self, number: u32, _: u64) -> io::Result<String> {
        self.flush()?;
        let told = |failure: Failure| io::Error::other(failure.because.unwrap_or(failure.what));
        let part = Part::beside(&self.target).map_err(told)?;
        self.out = Some(BufWriter::with_capacity(1 << 18, part.file().map_err(told)?));
        self.parts.push(part);
        Ok(numbered(&self.target, number).display().to_string())
    }
}

impl Write for Parts {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.as_mut().map_or(Ok(0), |out| out.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.as_mut().map_or(Ok(()), |out| out.flush())
    }
}

pub fn write(walk: &mut Walk<'_>, job: &Job, target: &Path, tell: &mut dyn Tell) -> Result<Summary> {
    is_free(&numbered(target, 1))?;
    let mut summary = Summary::default();
    let parts = Parts { target: target.to_path_buf(), parts: Vec::new(), out: None };
    let mut pour = Pour::new(parts, target.to_path_buf(), job.description(), job.warc_bytes);
    walk.each_record(&mut summary, tell, |ready, _| pour.put(ready).map(|_| ()))?;
    let mut parts = pour.into_files();
    parts.flush().map_err(|error| super::output::writing(target, error))?;
    let names: Vec<PathBuf> = match parts.parts.len() {
        1 => vec![target.to_path_buf()],
        count => (1..=count as u32).map(|number| numbered(target, number)).collect(),
    };
    names.iter().try_for_each(|name| is_free(name))?;
    for (part, name) in parts.parts.into_iter().zip(names) {
        summary.bytes += part.keep(&name)?;
        summary.files.push(name);
    }
    Ok(summary)
}
