//! Records into WARC files: a warcinfo record first, another file when one is full.

use super::output::writing;
use super::ready::{Ready, id_of};
use crate::failure::{Failure, Result};
use skep_warc::date;
use skep_warc::write::{Compression, Encoder, Record};
use std::io::{self, Write};
use std::path::PathBuf;

/// Where files come from.
pub trait Files: Write {
    /// Begins the n-th file, which will have at least so many bytes; returns its name.
    fn begin(&mut self, number: u32, announced_bytes: u64) -> io::Result<String>;
}

/// Files being filled.
pub struct Pour<F> {
    files: F,
    /// For messages.
    target: PathBuf,
    description: String,
    file_bytes_max: u64,
    number: u32,
    name: String,
    written: u64,
}

/// The name of the program in what it writes.
pub const SOFTWARE: &str = concat!("skep ", env!("CARGO_PKG_VERSION"));

impl<F: Files> Pour<F> {
    pub fn new(files: F, target: PathBuf, description: String, file_bytes_max: u64) -> Pour<F> {
        Pour { files, target, description, file_bytes_max, number: 0, name: String::new(), written: 0 }
    }

    /// Writes a record; returns the name of its file, and where in it the record begins.
    pub fn put(&mut self, ready: &Ready) -> Result<(&str, u64)> {
        let full = self.written.saturating_add(ready.length) > self.file_bytes_max;
        if self.number == 0 || full {
            self.begin(ready)?;
        }
        let offset = self.written;
        ready.pour(&mut self.files).map_err(|error| writing(&self.target, error))?;
        self.written += ready.length;
        Ok((&self.name, offset))
    }

    fn begin(&mut self, first: &Ready) -> Result<()> {
        let failed = |error| writing(&self.target, error);
        self.number += 1;
        self.name = self.files.begin(self.number, first.length).map_err(failed)?;
        // The same content gives the same bytes, so a file is as old as the first record in it.
        let time = date::rfc3339(first.time_ms);
        let id = id_of(&["warcinfo", &self.description, &self.number.to_string(), &first.id, &time]);
        let about = [
            ("software", SOFTWARE),
            ("format", "WARC File Format 1.1"),
            ("conformsTo", "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"),
            ("description", self.description.trim()),
        ];
        let mut member = Vec::new();
        Record::warcinfo(&id, &time, &about)
            .and_then(|record| record.encode(&mut Encoder::new(Compression::GZIP), &mut member))
            .map_err(|error| Failure::new("cannot write a warcinfo record").because(error))?;
        self.files.write_all(&member).map_err(failed)?;
        self.written = member.len() as u64;
        Ok(())
    }

    pub fn into_files(self) -> F {
        self.files
    }
}
