//! A folder of real files served as a host. Its files are as they stand on disk; the web's clock does not move them.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use crate::answer::{Answer, Body};
use crate::clock::Time;
use crate::limits;
use crate::media;

/// Files that answer for their folder, in this order.
pub(crate) const INDEX_NAMES: [&str; 2] = ["index.html", "index.htm"];

/// A folder of real files.
#[derive(Debug)]
pub struct Folder {
    root: PathBuf,
}

impl Folder {
    /// The folder at `root`.
    pub fn open(root: &Path) -> io::Result<Folder> {
        let root = root.canonicalize()?;
        if !root.is_dir() {
            return Err(io::Error::new(io::ErrorKind::NotADirectory, "not a folder"));
        }
        Ok(Folder { root })
    }

    /// What stands at a path: a file, the index of a folder, a redirect to the folder with its slash, or 404.
    pub fn answer(&self, path: &str) -> io::Result<Answer> {
        let Some(names) = media::segments(path) else {
            return Ok(Answer::status(404));
        };
        let wants_folder = names.last().is_some_and(Vec::is_empty);
        let mut file = self.root.clone();
        file.extend(names.into_iter().filter(|name| !name.is_empty()).map(OsString::from_vec));
        let file = match file.canonicalize() {
            Ok(file) if file.starts_with(&self.root) => file,
            Ok(_) => return Ok(Answer::status(404)),
            Err(e) => return absent(e),
        };
        match (fs::metadata(&file)?.is_dir(), wants_folder) {
            (true, false) => {
                let bare = path.split(['?', '#']).next().unwrap_or(path);
                Ok(Answer::redirect(301, &format!("{bare}/{}", &path[bare.len()..])))
            }
            (true, true) => match INDEX_NAMES.iter().map(|name| file.join(name)).find(|index| index.is_file()) {
                Some(index) => self.file(&index),
                None => Ok(Answer::status(404)),
            },
            (false, true) => Ok(Answer::status(404)),
            (false, false) => self.file(&file),
        }
    }

    fn file(&self, path: &Path) -> io::Result<Answer> {
        let about = fs::metadata(path)?;
        if !about.is_file() {
            return Ok(Answer::status(404));
        }
        let modified = Time::from_system(about.modified()?);
        let mut answer = Answer::plain(200, media::of(&path.to_string_lossy()), "");
        answer.etag = Some(format!("\"{:x}-{:x}\"", about.len(), modified.ms()));
        answer.last_modified = Some(modified);
        answer.body = Body::File { path: path.to_owned(), offset: 0, bytes: about.len() };
        Ok(answer)
    }

    /// The paths of all files as URLs write them, sorted; an index also as its folder.
    pub fn paths(&self) -> io::Result<Vec<String>> {
        let mut paths = Vec::new();
        let mut folders = vec![(self.root.clone(), 0)];
        while let Some((folder, depth)) = folders.pop() {
            for entry in fs::read_dir(&folder)? {
                let entry = entry?;
                let path = entry.path();
                let kind = entry.file_type()?;
                if kind.is_dir() && depth < limits::FOLDER_DEPTH_MAX {
                    folders.push((path, depth + 1));
                } else if path.is_file() {
                    let below = path.strip_prefix(&self.root).map_err(io::Error::other)?;
                    let url = format!("/{}", media::encode(below.as_os_str().as_bytes()));
                    if INDEX_NAMES.contains(&entry.file_name().to_string_lossy().as_ref()) {
                        paths.push(url[..=url.rfind('/').unwrap_or(0)].to_string());
                    }
                    paths.push(url);
                }
                if paths.len() > limits::FOLDER_FILES_MAX {
                    return Err(io::Error::other(format!("more than {} files", limits::FOLDER_FILES_MAX)));
                }
            }
        }
        paths.sort_unstable();
        paths.dedup();
        Ok(paths)
    }
}

fn absent(e: io::Error) -> io::Result<Answer> {
    use io::ErrorKind::{InvalidFilename, NotADirectory, NotFound, PermissionDenied};
    match e.kind() {
        NotFound | NotADirectory | InvalidFilename => Ok(Answer::status(404)),
        PermissionDenied => Ok(Answer::status(403)),
        _ => Err(e),
    }
}
