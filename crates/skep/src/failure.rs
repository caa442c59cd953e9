//! What a person is told when something cannot be done: what, because of what, and what to type next.

use std::fmt::Display;
use std::io::{self, Write};

/// An error on its way to the person who typed the command.
#[derive(Debug, Default)]
pub struct Failure {
    pub what: String,
    pub because: Option<String>,
    pub hint: Option<String>,
    /// Standard output was closed by its reader: nothing to report.
    pub reader_left: bool,
}

pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    pub fn new(what: impl Into<String>) -> Failure {
        Failure { what: what.into(), ..Failure::default() }
    }

    pub fn because(mut self, why: impl Display) -> Failure {
        self.because = Some(why.to_string());
        self
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hint = Some(hint.into());
        self
    }

    pub fn print(&self) {
        say(&format!("error: {}", self.what));
        if let Some(why) = &self.because {
            say(&format!("  because: {why}"));
        }
        if let Some(hint) = &self.hint {
            say(&format!("hint: {hint}"));
        }
    }

    /// A file that could not be read, with the hint that fits.
    pub fn reading(path: &std::path::Path, error: io::Error) -> Failure {
        Failure::new(format!("cannot read {}", path.display())).because(error)
    }
}

/// Tells a person. What comes out of files is shown without its control characters; that nobody listens is no failure.
pub fn say(text: &str) {
    let mut line: String = text.chars().map(printable).collect();
    line.push('\n');
    let _nobody_listens = io::stderr().write_all(line.as_bytes());
}

/// A character as a terminal may get it.
pub fn printable(c: char) -> char {
    if c.is_control() { '\u{fffd}' } else { c }
}

/// Writing to standard output failed.
pub fn output(error: io::Error) -> Failure {
    let reader_left = error.kind() == io::ErrorKind::BrokenPipe;
    Failure { reader_left, ..Failure::new("cannot write the answer").because(error) }
}

impl From<skep_crawl::Error> for Failure {
    fn from(error: skep_crawl::Error) -> Failure {
        Failure { hint: error.hint(), ..Failure::new(error.to_string()) }
    }
}

impl From<skep_archive::Error> for Failure {
    fn from(error: skep_archive::Error) -> Failure {
        Failure { hint: error.hint(), ..Failure::new(error.to_string()) }
    }
}

impl From<skep_changes::Error> for Failure {
    fn from(error: skep_changes::Error) -> Failure {
        Failure { hint: error.hint(), ..Failure::new(error.to_string()) }
    }
}
