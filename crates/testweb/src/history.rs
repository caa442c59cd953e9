//! A git repository's history served as a host: at moment `t` the host is the tree of the latest commit not after `t`.
//!
//! The history is read once (`git log --raw`) into a table of changes per file; after that every question is a look-up,
//! and only the bytes of files are asked from one `git cat-file --batch` process.
//!
//! Commits are taken along first parents from the oldest. A commit dated before its parent counts at its parent's time.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

use crate::answer::Answer;
use crate::clock::Time;
use crate::folder::INDEX_NAMES;
use crate::limits;
use crate::media;

/// A repository's history as a host.
pub struct History {
    repository: PathBuf,
    commits: Vec<Time>,
    files: BTreeMap<Vec<u8>, Vec<Change>>,
    reader: Mutex<Option<Reader>>,
    // Holds the repository unpacked from a bundle until the host goes away.
    _unpacked: Option<tempfile::TempDir>,
}

/// What a commit did to one file.
#[derive(Debug)]
struct Change {
    commit: u32,
    blob: Option<Blob>,
}

#[derive(Debug)]
struct Blob {
    id: Box<str>,
    symlink: bool,
}

/// Why a history cannot be served.
#[derive(Debug)]
pub struct HistoryError {
    what: String,
    because: String,
}

impl fmt::Display for HistoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  because: {}", self.what, self.because)
    }
}

impl std::error::Error for HistoryError {}

impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let History { repository, commits, files, .. } = self;
        write!(f, "History({}, {} commits, {} files)", repository.display(), commits.len(), files.len())
    }
}

impl History {
    /// Reads the history of a branch (or any revision) from a repository or a bundle. Without a name it is `HEAD`, or
    /// the only branch there is.
    pub fn open(source: &Path, revision: Option<&str>) -> Result<History, HistoryError> {
        let failed =
            |because: String| HistoryError { what: format!("no history to serve in {}", source.display()), because };
        let (repository, unpacked) = if source.is_file() {
            let folder = tempfile::tempdir().map_err(|e| failed(e.to_string()))?;
            let source = source.canonicalize().map_err(|e| failed(e.to_string()))?;
            let mut clone = git(folder.path());
            clone.args(["clone", "--quiet", "--bare", "--"]).arg(&source).arg("unpacked");
            run(clone).map_err(&failed)?;
            (folder.path().join("unpacked"), Some(folder))
        } else if source.is_dir() {
            (source.to_owned(), None)
        } else {
            return Err(failed("there is neither a folder nor a bundle of that name".into()));
        };
        let revision = match revision {
            Some(name) => name.to_owned(),
            None => default_revision(&repository).map_err(&failed)?,
        };
        let mut history = History {
            repository,
            commits: Vec::new(),
            files: BTreeMap::new(),
            reader: Mutex::new(None),
            _unpacked: unpacked,
        };
        history.read_log(&revision).map_err(&failed)?;
        if history.commits.is_empty() {
            return Err(failed(format!("`{revision}` has no commits")));
        }
        Ok(history)
    }

    /// The moments of all commits, in order.
    pub fn commits(&self) -> &[Time] {
        &self.commits
    }

    /// What the history says about a path at a moment; the rules of paths are those of a folder.
    pub fn answer(&self, path: &str, t: Time) -> io::Result<Answer> {
        let (Some(commit), Some(names)) = (self.commit_at(t), media::segments(path)) else {
            return Ok(Answer::status(404));
        };
        let wants_folder = names.last().is_some_and(Vec::is_empty);
        let name = names.join(&b'/');
        let file = if wants_folder {
            INDEX_NAMES.iter().find_map(|index| self.file(&[&name, index.as_bytes()].concat(), commit))
        } else {
            self.file(&name, commit)
        };
        if let Some(file) = file {
            let mut answer = Answer::plain(200, media::of(&String::from_utf8_lossy(file.name)), self.read(file.blob)?);
            answer.etag = Some(format!("\"{}\"", file.blob));
            answer.last_modified = Some(file.since);
            return Ok(answer);
        }
        if !wants_folder && self.is_folder(&name, commit) {
            let bare = path.split(['?', '#']).next().unwrap_or(path);
            return Ok(Answer::redirect(301, &format!("{bare}/{}", &path[bare.len()..])));
        }
        Ok(Answer::status(404))
    }

    /// The paths of all files at a moment as URLs write them, sorted; an index also as its folder.
    pub fn paths(&self, t: Time) -> Vec<String> {
        let Some(commit) = self.commit_at(t) else {
            return Vec::new();
        };
        let mut paths = Vec::new();
        for (name, changes) in &self.files {
            // A link that leads nowhere is no file.
            if latest(changes, commit).is_none() || self.file(name, commit).is_none() {
                continue;
            }
            let url = format!("/{}", media::encode(name));
            let (folder, file) = url.split_at(url.rfind('/').unwrap_or(0) + 1);
            if INDEX_NAMES.contains(&file) {
                paths.push(folder.to_string());
            }
            paths.push(url);
        }
        paths.sort_unstable();
        paths.dedup();
        paths
    }

    fn commit_at(&self, t: Time) -> Option<u32> {
        let after = self.commits.partition_point(|time| *time <= t);
        after.checked_sub(1).map(|commit| commit as u32)
    }

    /// The file of a name in a commit, symbolic links followed; dated by the last commit that touched it.
    fn file<'h>(&'h self, name: &[u8], commit: u32) -> Option<Found<'h>> {
        let mut since = None;
        let (mut key, mut changes) = self.files.get_key_value(name)?;
        for _ in 0..limits::HISTORY_LINKS_MAX {
            let change = latest(changes, commit)?;
            let blob = change.blob.as_ref()?;
            since = since.max(Some(self.commits[change.commit as usize]));
            if !blob.symlink {
                return Some(Found { name: key, blob: &blob.id, since: since? });
            }
            let target = self.read(&blob.id).ok()?;
            (key, changes) = self.files.get_key_value(&beside(key, &target)?)?;
        }
        None
    }

    fn is_folder(&self, name: &[u8], commit: u32) -> bool {
        let prefix = [name, b"/"].concat();
        self.files
            .range(prefix.clone()..)
            .take_while(|(file, _)| file.starts_with(&prefix))
            .any(|(_, changes)| latest(changes, commit).is_some())
    }

    fn read(&self, id: &str) -> io::Result<Bytes> {
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        if reader.is_none() {
            *reader = Some(Reader::start(&self.repository)?);
        }
        let bytes = reader.as_mut().map_or(Err(io::ErrorKind::BrokenPipe.into()), |reader| reader.read(id));
        if bytes.is_err() {
            *reader = None; // its place in the conversation is lost; the next question starts another
        }
        bytes
    }

    fn read_log(&mut self, revision: &str) -> Result<(), String> {
        let mut log = git(&self.repository);
        log.args(["log", "--first-parent", "--reverse", "--diff-merges=first-parent", "--raw", "--no-renames"]);
        log.args(["--no-abbrev", "-z", "--format=format:commit %ct", "--end-of-options", revision, "--"]);
        let mut child = log.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(no_git)?;
        let mut out = BufReader::new(child.stdout.take().ok_or("git has no output")?);
        let read = self.fold_log(&mut out);
        drop(out);
        if read.is_err() {
            let _ = child.kill();
        }
        let output = child.wait_with_output().map_err(|e| e.to_string())?;
        read?;
        if output.status.success() { Ok(()) } else { Err(said(&output.stderr)) }
    }

    /// Tokens end with NUL. `commit SECONDS`, then on a new line the first `:modes ids letter`, its path as the next
    /// token, then further pairs; commits are parted by an empty token.
    fn fold_log(&mut self, out: &mut impl BufRead) -> Result<(), String> {
        let mut changes = 0;
        let mut pending: Option<Option<Blob>> = None;
        let mut token = Vec::new();
        loop {
            token.clear();
            let line_bytes_max = 64 * 1024;
            if out.by_ref().take(line_bytes_max).read_until(0, &mut token).map_err(|e| e.to_string())? == 0 {
                return Ok(());
            }
            if token.last() == Some(&0) {
                token.pop();
            } else if token.len() as u64 == line_bytes_max {
                return Err("git log wrote a line longer than 64 KiB".into());
            }
            if let Some(blob) = pending.take() {
                let commit = self.commits.len().checked_sub(1).ok_or("git log wrote a change before a commit")? as u32;
                changes += 1;
                if changes > limits::HISTORY_CHANGES_MAX {
                    return Err(format!("more than {} changes", limits::HISTORY_CHANGES_MAX));
                }
                self.files.entry(std::mem::take(&mut token)).or_default().push(Change { commit, blob });
                continue;
            }
            let text = std::str::from_utf8(&token).map_err(|e| e.to_string())?;
            let mut change = text;
            if let Some(rest) = text.strip_prefix("commit ") {
                let (seconds, rest) = rest.split_once('\n').unwrap_or((rest, ""));
                let time = Time::from_seconds(seconds.parse().map_err(|_| format!("no time in `{text}`"))?);
                self.commits.push(self.commits.last().map_or(time, |before| time.max(*before)));
                change = rest;
            }
            if !change.is_empty() {
                pending = Some(blob_of(change).ok_or_else(|| format!("git log wrote `{change}`"))?);
            }
        }
    }
}

/// `:100644 120000 OLD-ID NEW-ID M`: what the file is afterwards; nothing when deleted or a submodule.
fn blob_of(change: &str) -> Option<Option<Blob>> {
    let mut fields = change.strip_prefix(':')?.split(' ');
    let (_, mode, _, id) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    Some(match mode {
        "000000" | "160000" => None,
        mode => Some(Blob { id: id.into(), symlink: mode == "120000" }),
    })
}

struct Found<'h> {
    name: &'h [u8],
    blob: &'h str,
    since: Time,
}

fn latest(changes: &[Change], commit: u32) -> Option<&Change> {
    let after = changes.partition_point(|change| change.commit <= commit);
    after.checked_sub(1).map(|place| &changes[place]).filter(|change| change.blob.is_some())
}

/// Where a symbolic link leads; `None` when out of the repository.
fn beside(link: &[u8], target: &[u8]) -> Option<Vec<u8>> {
    if target.starts_with(b"/") {
        return None;
    }
    let mut names: Vec<&[u8]> = link.split(|byte| *byte == b'/').collect();
    names.pop();
    for name in target.split(|byte| *byte == b'/') {
        match name {
            b"" | b"." => {}
            b".." => drop(names.pop()?),
            name => names.push(name),
        }
    }
    Some(names.join(&b'/'))
}

fn default_revision(repository: &Path) -> Result<String, String> {
    let mut head = git(repository);
    head.args(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]);
    if run(head).is_ok() {
        return Ok("HEAD".into());
    }
    let mut branches = git(repository);
    branches.args(["for-each-ref", "--count=20", "--format=%(refname)", "refs/heads"]);
    let names = run(branches)?;
    match names.lines().collect::<Vec<_>>()[..] {
        [] => Err("it has no branch".into()),
        [one] => Ok(one.into()),
        _ => Err(format!("it has no HEAD and several branches; name one of: {}", names.trim().replace('\n', ", "))),
    }
}

/// A git command in a folder that listens to no settings of the environment it runs in.
fn git(folder: &Path) -> Command {
    let mut git = Command::new("git");
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE"] {
        git.env_remove(name);
    }
    git.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_TERMINAL_PROMPT", "0").env("GIT_OPTIONAL_LOCKS", "0");
    git.env("LC_ALL", "C").stdin(Stdio::null());
    // A history is only read here, so whose it is does not matter.
    git.args(["-c", "safe.directory=*", "-c", "log.showSignature=false", "-C"]).arg(folder);
    git
}

fn run(mut command: Command) -> Result<String, String> {
    let output = command.output().map_err(no_git)?;
    if !output.status.success() {
        return Err(said(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn no_git(e: io::Error) -> String {
    format!("the command `git` cannot be run: {e}")
}

fn said(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let text = text.trim();
    if text.is_empty() { "git failed without a word".into() } else { format!("git says: {text}") }
}

/// A `git cat-file --batch` process: `ID LF` in; `ID SP blob SP SIZE LF bytes LF` out.
struct Reader {
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Reader {
    fn start(repository: &Path) -> io::Result<Reader> {
        let mut command = git(repository);
        command.args(["cat-file", "--batch"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let (Some(questions), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        Ok(Reader { child, questions, answers: BufReader::new(answers) })
    }

    fn read(&mut self, id: &str) -> io::Result<Bytes> {
        writeln!(self.questions, "{id}")?;
        self.questions.flush()?;
        let mut head = String::new();
        self.answers.by_ref().take(1024).read_line(&mut head)?;
        let size: Option<u64> = head.trim_end().rsplit_once(" blob ").map_or(head.trim_end(), |(_, n)| n).parse().ok();
        let Some(size) = size else {
            return Err(io::Error::other(format!("git cat-file says: {}", head.trim_end())));
        };
        if size > limits::HISTORY_FILE_BYTES_MAX {
            let most = limits::HISTORY_FILE_BYTES_MAX;
            return Err(io::Error::other(format!("{id} has {size} bytes, more than {most}")));
        }
        let mut bytes = vec![0; size as usize + 1];
        self.answers.read_exact(&mut bytes)?;
        bytes.pop();
        Ok(bytes.into())
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_within_the_repository() {
        let to = |link: &str, target: &str| {
            beside(link.as_bytes(), target.as_bytes()).map(|b| String::from_utf8(b).unwrap())
        };
        assert_eq!(to("a/b/l", "../c.html"), Some("a/c.html".into()));
        assert_eq!(to("l", "./x//y"), Some("x/y".into()));
        assert_eq!(to("a/l", "../../x"), None);
        assert_eq!(to("a/l", "/etc/passwd"), None);
    }
}
