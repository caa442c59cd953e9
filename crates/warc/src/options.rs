//! How to read: in which mode, and which records.

use crate::head::{Head, RecordKind};

/// Which records are wanted. Everything else is passed over, where the file allows it without inflating the block: see
/// [`Options::skim`].
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only these types; empty means all.
    pub kinds: Vec<RecordKind>,
    /// Only targets that begin with this.
    pub uri_prefix: Option<Vec<u8>>,
    /// Not before (milliseconds since 1970).
    pub from_ms: Option<i64>,
    /// Not after.
    pub to_ms: Option<i64>,
}

impl Filter {
    pub(crate) fn is_empty(&self) -> bool {
        self.kinds.is_empty() && self.uri_prefix.is_none() && self.from_ms.is_none() && self.to_ms.is_none()
    }

    /// Whether a record with this head is wanted.
    pub fn wants(&self, head: &Head) -> bool {
        (self.kinds.is_empty() || self.kinds.contains(&head.kind()))
            && self.uri_prefix.as_ref().is_none_or(|p| head.target_uri().is_some_and(|uri| uri.starts_with(p)))
            && self.from_ms.is_none_or(|from| head.date_ms().is_some_and(|t| t >= from))
            && self.to_ms.is_none_or(|to| head.date_ms().is_some_and(|t| t <= to))
    }
}

/// How to read.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Report every violation of the standard, not only what concerns getting at the records.
    pub strict: bool,
    /// Which records are wanted.
    pub filter: Filter,
    /// Bodies that nobody reads are stepped over, where it is certain how long they are: see [`Options::skim`].
    pub skim: bool,
}

impl Options {
    /// Get every record that can be had; report what was skipped.
    pub fn recover() -> Options {
        Options::default()
    }
    /// The same, for whoever wants little more than heads. In a gzip file with a member for each record, a body that is not read is not
    /// inflated either, and so not verified: damage in it goes unnoticed. A body that is read is inflated and verified as ever.
    ///
    /// Where a member says how long it is (the `sl` field, which this package, wget and others write), that is believed if it agrees
    /// with the record's own length, if the member's trailer says the same, and if a member or the end of the file follows; otherwise
    /// it is reported and the member inflated. A file made to deceive can hide records behind a wrong length. Where a member does not
    /// say it, its end is where the trailer with the record's length and the beginning of another member stand together, if that is so
    /// in one place only; otherwise the member is inflated.
    pub fn skim() -> Options {
        Options { skim: true, ..Options::default() }
    }
    /// The same as [`Options::recover`], and report every violation of the standard.
    pub fn strict() -> Options {
        Options { strict: true, ..Options::default() }
    }
    /// Only records that pass `filter`.
    pub fn filtered(self, filter: Filter) -> Options {
        Options { filter, ..self }
    }
}
