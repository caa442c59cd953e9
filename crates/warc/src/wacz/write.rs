//! A package written in one pass: each file as its bytes come, then the list of all of them.
//!
//! ```text
//!   archive/data.warc.gz        stored as it is, so that records can be read at random
//!   indexes/index.cdx.gz        blocks of lines (see `index`), and where each begins:
//!   indexes/index.idx
//!   pages/pages.jsonl
//!   datapackage.json            path, SHA-256 and length of every file above
//!   datapackage-digest.json     SHA-256 of datapackage.json
//! ```
//! Nothing in it depends on when or where it is written: the same content gives the same bytes.

use crate::digest::{Algorithm, Digest, Hasher};
use serde::Serialize;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use zip::write::{SimpleFileOptions, ZipWriter};

/// The version of the format that is written.
const WACZ_VERSION: &str = "1.1.1";
/// From this length on an entry is announced as a large one, in bytes. The limit of the old form is 4 GiB.
const LARGE_BYTES: u64 = 2 << 30;
/// Bytes gathered before they are written.
const BUFFER_BYTES: usize = 256 << 10;

/// What a package says of itself.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// For people.
    pub title: &'a str,
    /// What is in it.
    pub description: &'a str,
    /// Who wrote it, such as `skep 1.0`.
    pub software: &'a str,
    /// `2024-05-06T07:08:09Z`.
    pub created: &'a str,
}

/// A package on its way into a file.
pub struct Package {
    zip: ZipWriter<BufWriter<File>>,
    open: Option<Open>,
    resources: Vec<Resource>,
}

/// The file of the package that is being written.
struct Open {
    path: String,
    bytes: u64,
    hasher: Hasher,
}

/// A file of the package, as its list has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Resource {
    /// The last part of its path.
    pub name: String,
    /// Where it is in the package.
    pub path: String,
    /// `sha256:` and hex.
    pub hash: String,
    /// Its length.
    pub bytes: u64,
}

#[derive(Serialize)]
struct DataPackage<'a> {
    profile: &'a str,
    wacz_version: &'a str,
    title: &'a str,
    description: &'a str,
    software: &'a str,
    created: &'a str,
    resources: &'a [Resource],
}

#[derive(Serialize)]
struct DataPackageDigest<'a> {
    path: &'a str,
    hash: String,
}

impl Package {
    /// Begins a package in an empty file.
    pub fn new(file: File) -> Package {
        let zip = ZipWriter::new(BufWriter::with_capacity(BUFFER_BYTES, file));
        Package { zip, open: None, resources: Vec::new() }
    }

    /// Begins a file of the package; what is written to the package until [`end`](Self::end) is its content. It may become
    /// longer than 4 GiB only if at least 2 GiB are announced.
    pub fn begin(&mut self, path: &str, announced_bytes: u64) -> io::Result<()> {
        self.end()?;
        let options = SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Stored)
            .last_modified_time(zip::DateTime::default())
            .unix_permissions(0o644)
            .large_file(announced_bytes >= LARGE_BYTES);
        self.zip.start_file(path, options).map_err(io::Error::from)?;
        self.open = Some(Open { path: path.to_owned(), bytes: 0, hasher: Hasher::new(Algorithm::Sha256) });
        Ok(())
    }

    /// How much of the present file is written.
    pub fn written(&self) -> u64 {
        self.open.as_ref().map_or(0, |open| open.bytes)
    }

    /// Ends the present file, if there is one.
    pub fn end(&mut self) -> io::Result<()> {
        if let Some(open) = self.open.take() {
            let name = open.path.rsplit('/').next().unwrap_or_default().to_owned();
            let hash = hash_of(&open.hasher.finish());
            self.resources.push(Resource { name, path: open.path, hash, bytes: open.bytes });
        }
        Ok(())
    }

    /// Writes the list of all files and closes the package.
    pub fn finish(mut self, about: &About<'_>) -> io::Result<File> {
        self.end()?;
        let resources = std::mem::take(&mut self.resources);
        let list = DataPackage {
            profile: "data-package",
            wacz_version: WACZ_VERSION,
            title: about.title,
            description: about.description,
            software: about.software,
            created: about.created,
            resources: &resources,
        };
        let list = serde_json::to_vec_pretty(&list)?;
        self.begin("datapackage.json", 0)?;
        self.write_all(&list)?;
        let digest =
            DataPackageDigest { path: "datapackage.json", hash: hash_of(&Digest::of(Algorithm::Sha256, &list)) };
        self.begin("datapackage-digest.json", 0)?;
        self.write_all(&serde_json::to_vec_pretty(&digest)?)?;
        self.end()?;
        self.zip.finish().map_err(io::Error::from)?.into_inner().map_err(io::IntoInnerError::into_error)
    }
}

impl Write for Package {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(open) = &mut self.open else { return Err(io::Error::other("no file of the package was begun")) };
        let written = self.zip.write(bytes)?;
        open.hasher.update(&bytes[..written]);
        open.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.zip.flush()
    }
}

fn hash_of(digest: &Digest) -> String {
    format!("sha256:{}", digest.hex())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn package() -> Vec<u8> {
        let mut package = Package::new(tempfile::tempfile().unwrap());
        package.begin("archive/data.warc.gz", 0).unwrap();
        package.write_all(b"records").unwrap();
        package.begin("pages/pages.jsonl", 5 << 30).unwrap();
        package.write_all(b"{}\n").unwrap();
        let about = About { title: "t", description: "d", software: "s", created: "2024-05-06T07:08:09Z" };
        let mut file = package.finish(&about).unwrap();
        let mut bytes = Vec::new();
        io::Seek::rewind(&mut file).unwrap();
        file.read_to_end(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn every_file_is_listed_with_its_hash_and_the_list_with_its_own() {
        let bytes = package();
        assert_eq!(bytes, package(), "the same content gives the same bytes");
        let mut zip = zip::ZipArchive::new(io::Cursor::new(bytes)).unwrap();
        let mut text = |name: &str| {
            let mut text = String::new();
            let mut file = zip.by_name(name).unwrap();
            assert_eq!(file.compression(), zip::CompressionMethod::Stored);
            file.read_to_string(&mut text).unwrap();
            text
        };
        let list = text("datapackage.json");
        let told: serde_json::Value = serde_json::from_str(&list).unwrap();
        assert_eq!(told["wacz_version"], "1.1.1");
        assert_eq!(told["resources"][0]["path"], "archive/data.warc.gz");
        assert_eq!(told["resources"][0]["name"], "data.warc.gz");
        assert_eq!(told["resources"][0]["bytes"], 7);
        assert_eq!(told["resources"][0]["hash"], hash_of(&Digest::of(Algorithm::Sha256, b"records")));
        assert_eq!(told["resources"].as_array().unwrap().len(), 2);
        let digest: serde_json::Value = serde_json::from_str(&text("datapackage-digest.json")).unwrap();
        assert_eq!(digest["hash"], hash_of(&Digest::of(Algorithm::Sha256, list.as_bytes())));
    }
}
