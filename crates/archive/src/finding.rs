//! What is not as it should be, where, and what was done about it.

use std::fmt;
use std::path::PathBuf;

/// One thing that is, or was, not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The file.
    pub path: PathBuf,
    /// Where in it, if at one place.
    pub offset: Option<u64>,
    /// A short name for this kind of finding, stable for programs.
    pub rule: &'static str,
    /// What is wrong, and what was done about it.
    pub what: String,
    /// Nothing is left to be done.
    pub mended: bool,
}

impl Finding {
    /// Something that is wrong.
    pub fn wrong(
        path: impl Into<PathBuf>,
        offset: Option<u64>,
        rule: &'static str,
        what: impl Into<String>,
    ) -> Finding {
        Finding { path: path.into(), offset, rule, what: what.into(), mended: false }
    }

    /// Something that was wrong and is mended.
    pub fn mended(
        path: impl Into<PathBuf>,
        offset: Option<u64>,
        rule: &'static str,
        what: impl Into<String>,
    ) -> Finding {
        Finding { mended: true, ..Finding::wrong(path, offset, rule, what) }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some(offset) = self.offset {
            write!(f, " at byte {offset}")?;
        }
        write!(f, ": {} [{}]", self.what, self.rule)
    }
}
