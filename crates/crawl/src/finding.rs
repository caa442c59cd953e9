//! What a look at a page brought, beside the look before: that is what the schedule learns from.

use skep_archive::Position;
use skep_url::Url;
use skep_warc::http::Head;

/// What a visit found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Finding {
    /// There is nothing to compare it with.
    #[default]
    First,
    /// The same, or what counts as the same: other bytes, other markup, other noise.
    Same,
    /// Something else.
    Changed,
    /// No page: a challenge, a shell, a wall. It says nothing about the page behind it.
    Nothing,
}

impl Finding {
    const ALL: [Finding; 4] = [Finding::First, Finding::Same, Finding::Changed, Finding::Nothing];

    /// Its name in records.
    pub fn id(self) -> &'static str {
        match self {
            Finding::First => "first",
            Finding::Same => "same",
            Finding::Changed => "changed",
            Finding::Nothing => "nothing",
        }
    }

    /// The one with this name.
    pub fn from_id(id: &str) -> Option<Finding> {
        Finding::ALL.into_iter().find(|finding| finding.id() == id)
    }
}

/// An answer with other bytes than the one before.
pub struct Read<'r> {
    /// The URL.
    pub url: &'r Url,
    /// The record of the one before.
    pub before: Position,
    /// The head of the answer.
    pub head: &'r Head,
    /// Its body, decoded.
    pub body: &'r [u8],
}

/// Says whether other bytes are another page. The crawl itself never looks into pages.
pub trait Judges: Send + Sync {
    /// What the answer is beside the one before.
    fn judge(&self, read: &Read<'_>) -> Finding;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_have_names() {
        for finding in Finding::ALL {
            assert_eq!(Finding::from_id(finding.id()), Some(finding));
        }
        assert_eq!(Finding::from_id("other"), None);
    }
}
