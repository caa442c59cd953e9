//! Whether other bytes are another page, as the stream of changes will judge it.

use skep_archive::Archive;
use skep_changes::{Answer, SettingsAtHand, ahead};
use skep_crawl::{Finding, Judges, Read};
use std::sync::Arc;

/// Judges by the rules of the archive, and by what its stream of changes has learned of each page.
pub struct Judged {
    archive: Arc<Archive>,
    settings: SettingsAtHand,
}

impl Judged {
    pub fn new(archive: Arc<Archive>) -> Judged {
        Judged { archive, settings: SettingsAtHand::default() }
    }
}

impl Judges for Judged {
    fn judge(&self, read: &Read<'_>) -> Finding {
        // Rules that make no sense are told to whoever asks for changes; here they are none.
        let settings = self.settings.of(&self.archive).unwrap_or_default();
        let answer = Answer { url: read.url, before: read.before, head: read.head, body: read.body };
        match ahead(&self.archive, &settings, &answer) {
            Ok(None) => Finding::Nothing,
            Ok(Some(classes)) if classes.is_silent() => Finding::Same,
            Ok(Some(_)) | Err(_) => Finding::Changed,
        }
    }
}
