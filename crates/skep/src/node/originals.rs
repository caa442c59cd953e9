//! What revisits stand for, where other nodes hold it: a body that slices share is with the holders of one of them.

use super::Node;
use crate::failure::Result;
use crate::get::named_by;
use skep_archive::captures::{Match, Query};
use skep_archive::{Archive, Capture, Stored};
use std::sync::Arc;

/// The other nodes, if this process is one of many.
#[derive(Clone, Default)]
pub struct Originals(Option<Arc<Node>>);

impl Originals {
    pub fn of(node: Option<Arc<Node>>) -> Originals {
        Originals(node)
    }

    /// The capture that a revisit names, where it is with others only; `None` where nobody answers or has it.
    pub fn named(&self, archive: &Archive, revisit: &Capture) -> Result<Option<Capture>> {
        let (Some(node), Some(digest)) = (&self.0, revisit.digest) else { return Ok(None) };
        let Some((url, time_ms)) = named_by(archive, revisit)? else { return Ok(None) };
        let mut query = Query::new(Match::Exact(skep_url::Key::of(&url)));
        let second = time_ms.div_euclid(1000) * 1000;
        (query.from_ms, query.to_ms) = (Some(second), Some(second + 999));
        // Who does not answer has nothing for whoever asks.
        let mut found = node.shell.captures_of_places(&query).unwrap_or_default().into_iter();
        Ok(found.find(|capture| capture.kind.has_body() && capture.digest == Some(digest)))
    }

    /// The record of such a capture.
    pub fn record(&self, capture: &Capture) -> std::result::Result<Stored, String> {
        let node = self.0.as_ref().ok_or("nobody else holds anything")?;
        node.shell.record(capture)
    }
}
