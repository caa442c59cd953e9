//! What can go wrong with a search.

use std::fmt;

/// The result of everything in this package.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong.
#[derive(Debug, Clone)]
pub enum Error {
    /// The archive keeps no texts.
    Off,
    /// The query makes no sense: what to type instead.
    Query(String),
    /// The archive failed.
    Archive(skep_archive::Error),
    /// The index failed.
    Index(String),
}

impl Error {
    /// What to type next.
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::Off => Some(
                "`skep rebuild --text` reads the texts of all captures, and those that come later are read too"
                    .to_owned(),
            ),
            Error::Query(_) => {
                Some("words, \"a phrase\", title:word, site:example.org, host:news.example.org, -word".to_owned())
            }
            Error::Archive(error) => error.hint(),
            Error::Index(_) => Some("`skep rebuild --text` makes the index of texts anew".to_owned()),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Off => write!(f, "this archive has no index of texts"),
            Error::Query(what) => write!(f, "{what}"),
            Error::Archive(error) => write!(f, "{error}"),
            Error::Index(what) => write!(f, "the index of texts failed: {what}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<skep_archive::Error> for Error {
    fn from(error: skep_archive::Error) -> Error {
        Error::Archive(error)
    }
}

impl From<tantivy::TantivyError> for Error {
    fn from(error: tantivy::TantivyError) -> Error {
        Error::Index(error.to_string())
    }
}
