//! What an answer will be judged to be, before it is kept: for whoever must know at the visit. The view is asked for what it learned
//! of the URL and is not changed.

use skep_archive::{Archive, Key, Position};
use skep_page::Input;
use skep_page::compare::{Class, Classes, compare, suspect};
use skep_page::version::Version;
use skep_url::Url;
use skep_warc::http::Head;

use crate::bodies::Bodies;
use crate::error::Result;
use crate::follow::key_of;
use crate::log::URLS;
use crate::settings::Settings;
use crate::state::State;

/// An answer beside the capture before it.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    /// The URL.
    pub url: &'a Url,
    /// The record of the capture before.
    pub before: Position,
    /// The head of the answer.
    pub head: &'a Head,
    /// The body without its codings.
    pub body: &'a [u8],
}

/// The classes of a good answer with other bytes; `None` where no page came.
pub fn ahead(archive: &Archive, settings: &Settings, answer: &Answer<'_>) -> Result<Option<Classes>> {
    let rules = settings.rules(answer.url).0;
    let new = Version::read(&Input { url: answer.url, head: Some(answer.head), body: answer.body }, rules);
    let old = archive.at(answer.before)?.map(|body| body.version_beside(answer.url, settings, &new));
    let key = key_of(&Key::of(answer.url.as_str()), answer.url.as_str());
    let learned = archive.views().get(URLS, &key)?.and_then(|value| State::decode(&value)).unwrap_or_default();
    if let Some(reason) = suspect(200, answer.head, answer.body, &new, old.as_ref().map(|old| &old.print))
        && !learned.health.believes(reason, new.print.text)
    {
        return Ok(None);
    }
    // What was removed cannot be compared; that it is another is all that can be said.
    let Some(old) = old else { return Ok(Some(Classes::of(Class::TextMajor))) };
    let mut mask = learned.mask;
    Ok(Some(compare(&old, &new, &mut mask).classes))
}
