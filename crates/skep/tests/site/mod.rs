//! Archive files made on the spot, and the binary that is run on them.
#![allow(dead_code, missing_docs)]

pub mod files;

use serde_json::Value;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;

/// A folder with files to add, and an archive in it.
pub struct Site {
    pub folder: TempDir,
}

/// What a run of the binary left.
pub struct Ran {
    pub code: i32,
    pub out: Vec<u8>,
    pub talk: String,
    typed: String,
}

impl Site {
    /// One whose archive has a page with a history, and revisits.
    pub fn filled() -> Site {
        let site = Site::new();
        site.write("history.warc.gz", files::history().bytes);
        site.write("revisits.warc.gz", files::revisits().bytes);
        site.skep(&["add", "history.warc.gz", "revisits.warc.gz"]).exits(0);
        site
    }

    pub fn new() -> Site {
        Site { folder: tempfile::tempdir().expect("a folder") }
    }

    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    pub fn archive(&self) -> PathBuf {
        self.path("archive")
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a folder above")).expect("a folder");
        std::fs::write(&path, bytes).expect("a file");
        path
    }

    /// The binary, in this folder, about this archive.
    pub fn command(&self, typed: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_skep"));
        command.args(typed).current_dir(self.root()).env("SKEP_ARCHIVE", self.archive()).stdin(Stdio::null());
        command
    }

    pub fn skep(&self, typed: &[&str]) -> Ran {
        ran(&mut self.command(typed))
    }

    /// Runs a line of shell in which `skep` is the binary.
    pub fn shell(&self, line: &str) -> Ran {
        let mut command = Command::new("bash");
        let skep = Path::new(env!("CARGO_BIN_EXE_skep")).parent().expect("a folder");
        let path = format!("{}:{}", skep.display(), std::env::var("PATH").unwrap_or_default());
        command.args(["-c", line]).current_dir(self.root()).env("SKEP_ARCHIVE", self.archive()).env("PATH", path);
        ran(&mut command)
    }

    /// A run that reads nothing yet: once it has printed a byte it owns the archive, or is being answered, and it stays so
    /// until it is heard out.
    pub fn begin(&self, typed: &[&str]) -> Begun {
        let mut child = self.command(typed).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("skep starts");
        let mut first = [0; 1];
        let got = child.stdout.as_mut().expect("its output").read(&mut first).expect("its output can be read");
        Begun { child, first: first[..got].to_vec() }
    }

    /// The archive is as it should be.
    #[track_caller]
    pub fn is_sound(&self) {
        let checked = self.skep(&["check"]);
        assert_eq!(checked.text(), "", "findings");
        checked.exits(0);
    }
}

/// A run that has begun to print.
pub struct Begun {
    pub child: Child,
    first: Vec<u8>,
}

impl Begun {
    /// Reads the rest and waits for the end.
    pub fn hear(mut self) -> Ran {
        let mut out = std::mem::take(&mut self.first);
        self.child.stdout.take().expect("its output").read_to_end(&mut out).expect("its output can be read");
        let mut output = self.child.wait_with_output().expect("it ends");
        output.stdout = out;
        of_output("(begun earlier)".into(), output)
    }

    /// `kill -9`.
    pub fn kill(mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it ends");
    }
}

pub fn ran(command: &mut Command) -> Ran {
    let typed = format!("{:?}", command.get_args().collect::<Vec<_>>());
    of_output(typed, command.output().expect("the command starts"))
}

/// The same where standard output goes elsewhere.
pub fn ran_to(command: &mut Command) -> Ran {
    let typed = format!("{:?}", command.get_args().collect::<Vec<_>>());
    let child = command.spawn().expect("the command starts");
    of_output(typed, child.wait_with_output().expect("it ends"))
}

pub fn of_output(typed: String, output: Output) -> Ran {
    let talk = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!talk.contains("panicked"), "{typed}: {talk}");
    let code = output.status.code().unwrap_or_else(|| panic!("{typed}: ended by a signal: {talk}"));
    Ran { code, out: output.stdout, talk, typed }
}

impl Ran {
    #[track_caller]
    pub fn exits(self, code: i32) -> Ran {
        assert_eq!(self.code, code, "{}\nstdout: {}\nstderr: {}", self.typed, self.text(), self.talk);
        self
    }

    /// It failed with one message that says what, and names `about`.
    #[track_caller]
    pub fn fails(self, about: &str) -> Ran {
        let ran = self.exits(2);
        assert!(ran.talk.starts_with("error: "), "{}: {}", ran.typed, ran.talk);
        assert_eq!(ran.talk.matches("error:").count(), 1, "{}: {}", ran.typed, ran.talk);
        assert!(ran.talk.contains(about), "{}: nothing of {about:?} in {}", ran.typed, ran.talk);
        ran
    }

    #[track_caller]
    pub fn exits_below(self, code: i32) -> Ran {
        assert!(self.code < code, "{}: {}\nstderr: {}", self.typed, self.code, self.talk);
        self
    }

    #[track_caller]
    pub fn hints(self, about: &str) -> Ran {
        let hint = self.talk.lines().find_map(|line| line.strip_prefix("hint: ")).unwrap_or_default();
        assert!(hint.contains(about), "{}: no hint of {about:?} in {}", self.typed, self.talk);
        self
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.out).into_owned()
    }

    /// One object a line.
    #[track_caller]
    pub fn json(&self) -> Vec<Value> {
        let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        self.text().lines().map(parse).collect()
    }

    /// The cells of a table whose columns are two spaces apart.
    pub fn cells(&self) -> Vec<Vec<String>> {
        let cells = |line: &str| {
            line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect::<Vec<_>>()
        };
        self.text().lines().map(cells).collect()
    }

    /// A field of every object.
    #[track_caller]
    pub fn each(&self, name: &str) -> Vec<String> {
        let text = |object: &Value| match &object[name] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        self.json().iter().map(text).collect()
    }
}
