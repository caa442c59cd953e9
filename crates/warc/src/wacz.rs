//! WARC files inside a WACZ package (a ZIP file): read in place, and written.

mod index;
mod write;

pub use index::{BLOCKS, Index, LIST};
pub use write::{About, Package, Resource};

use crate::options::Options;
use crate::read::Reader;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// One file of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name inside the package.
    pub name: String,
    /// Where its bytes begin in the package.
    pub start: u64,
    /// How many bytes it takes there.
    pub stored_bytes: u64,
    /// How many bytes it has.
    pub bytes: u64,
    /// Compressed once more by the ZIP file, so that its records cannot be read at random.
    pub deflated: bool,
}

/// Whether a file is a ZIP file, by content.
pub fn is_package(path: impl AsRef<Path>) -> io::Result<bool> {
    let mut first = [0u8; 4];
    let got = File::open(path)?.take(4).read(&mut first)?;
    Ok(matches!(&first[..got], [b'P', b'K', 3, 4] | [b'P', b'K', 5, 6]))
}

/// Every file in the package. A package whose directory is damaged is an error of kind `InvalidData`.
pub fn entries(path: impl AsRef<Path>) -> io::Result<Vec<Entry>> {
    let broken = |error: zip::result::ZipError| {
        io::Error::new(io::ErrorKind::InvalidData, format!("not a readable ZIP file: {error}"))
    };
    let mut archive = zip::ZipArchive::new(BufReader::new(File::open(path)?)).map_err(broken)?;
    let mut found = Vec::new();
    for index in 0..archive.len() {
        let file = archive.by_index_raw(index).map_err(broken)?;
        if file.is_dir() {
            continue;
        }
        let name = file.name().map_err(broken)?.into_owned();
        let Some(start) = file.data_start() else { continue };
        let deflated = match file.compression() {
            zip::CompressionMethod::Stored => false,
            zip::CompressionMethod::Deflated => true,
            other => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("{name}: compression {other} is not supported"),
                ));
            }
        };
        found.push(Entry { name, start, stored_bytes: file.compressed_size(), bytes: file.size(), deflated });
    }
    Ok(found)
}

/// The entries that hold records.
pub fn archives(path: impl AsRef<Path>) -> io::Result<Vec<Entry>> {
    let mut all = entries(path)?;
    all.retain(Entry::holds_records);
    Ok(all)
}

impl Entry {
    /// A WARC or ARC file by its name and place.
    pub fn holds_records(&self) -> bool {
        let name = self.name.to_ascii_lowercase();
        let stem = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(&name);
        stem.ends_with(".warc") || stem.ends_with(".arc")
    }

    /// Whether the name would lead out of a folder it is unpacked into.
    pub fn name_is_unsafe(&self) -> bool {
        self.name.starts_with('/')
            || self.name.contains('\\')
            || self.name.split('/').any(|part| part == "..")
            || self.name.contains('\0')
    }

    /// Reads its records. Offsets of records count from the beginning of the package, unless the entry is deflated; then from its own.
    pub fn reader(&self, package: impl AsRef<Path>, options: Options) -> io::Result<Reader> {
        if !self.deflated {
            return Reader::at(package, self.start, Some(self.stored_bytes), options);
        }
        Reader::new(self.open(package)?, options)
    }

    /// Its bytes.
    pub fn open(&self, package: impl AsRef<Path>) -> io::Result<Box<dyn Read + Send>> {
        let mut file = File::open(package)?;
        file.seek(SeekFrom::Start(self.start))?;
        let stored = BufReader::new(file).take(self.stored_bytes);
        Ok(if self.deflated { Box::new(flate2::bufread::DeflateDecoder::new(stored)) } else { Box::new(stored) })
    }
}
