//! Large bodies that another slice has already: looked for before they are kept once more, and never waited for long.
//!
//! ```text
//!  nobody in this slice has it ──▶ who may? ──▶ proven over every byte, pinned there, and that acknowledged ──▶ revisit, and a reference beside it
//!                                     └──────────── slow, uncertain, not the same, nobody ──────────▶ response; others hear that it is here
//! ```

use std::time::Duration;

use skep_archive::limits::{SHARED_BLOCK_BYTES_MAX, SHARED_BODY_BYTES_MAX, SHARED_BODY_BYTES_MIN};
use skep_archive::{Append, Pin, Referring, Role, Same, Sum, system_clock};
use skep_url::Url;
use skep_warc::http::Body;
use skep_warc::write::RecordId;

use crate::answer::{Answer, Block, FromFile};
use crate::limits::SHARED_BODY_MS_MAX;
use crate::worker::Parts;

/// A body that a visit brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Brought {
    /// What it comes to; the key is new, and is told to whoever is to prove that the same is there.
    pub sum: Sum,
    /// The key.
    pub key: [u8; 32],
    /// The URL.
    pub url: String,
}

/// Told which record of another slice has the body, when that is pinned; or that there is none.
pub type Back = Box<dyn FnOnce(Option<Same>) + Send>;

/// A body of another slice for which a revisit is to stand.
pub(crate) struct Elsewhere {
    /// What stands beside the revisit.
    pub pin: Pin,
    /// The record's name.
    pub record: Option<RecordId>,
    /// Nobody here says that nothing refers to it before the revisit is synced.
    pub referring: Referring,
}

/// What looking for a body came to.
pub(crate) enum Found {
    /// It is there.
    Elsewhere(Box<Elsewhere>),
    /// It is to be kept here, and is large enough that others may refer to it.
    Large([u8; 32], u64),
    /// It is to be kept here.
    Small,
}

/// Looks whether another slice of the network has a body that this one has not.
pub(crate) async fn look(answer: &Answer<'_>, url: &Url, parts: &Parts) -> Found {
    let Some(outlet) = &parts.outlet else { return Found::Small };
    // A revisit needs a head; what is too short with its head is too short without, and a record that is too long nobody proves.
    let length = answer.block().length();
    if answer.head().is_none() || !(SHARED_BODY_BYTES_MIN..=SHARED_BLOCK_BYTES_MAX).contains(&length) {
        return Found::Small;
    }
    let mut key = [0; 32];
    key[..16].copy_from_slice(&parts.id());
    key[16..].copy_from_slice(&parts.id());
    // What cannot be read now will not be written either, and that is said.
    let Ok(sum) = sum_of(answer, &key) else { return Found::Small };
    if !(SHARED_BODY_BYTES_MIN..=SHARED_BODY_BYTES_MAX).contains(&sum.length) || sum.payload != answer.payload() {
        return Found::Small;
    }
    let large = Found::Large(sum.sha256, sum.length);
    let Some(referring) = parts.archive.referred().hold(sum.payload) else { return large };
    let (say, said) = tokio::sync::oneshot::channel();
    let brought = Brought { sum, key, url: url.as_str().to_owned() };
    outlet.same_body(brought, Box::new(move |same| drop(say.send(same))));
    match tokio::time::timeout(Duration::from_millis(SHARED_BODY_MS_MAX), said).await {
        Ok(Ok(Some(same))) => Found::Elsewhere(Box::new(Elsewhere {
            record: RecordId::parse(&same.record).ok(),
            pin: pin_of(same, &sum, url.as_str()),
            referring,
        })),
        _ => large,
    }
}

fn sum_of(answer: &Answer<'_>, key: &[u8; 32]) -> std::io::Result<Sum> {
    let Some(head) = answer.head() else { return Sum::of(&mut std::io::empty(), key) };
    match answer.block() {
        Block::Memory(bytes) => Sum::of(&mut Body::new(head, &bytes[answer.head_bytes()..]), key),
        Block::File(file, length) => {
            let mut from = std::io::BufReader::with_capacity(1 << 16, FromFile::new(file, length));
            std::io::copy(&mut std::io::Read::take(&mut from, answer.head_bytes() as u64), &mut std::io::sink())?;
            Sum::of(&mut Body::new(head, from), key)
        }
    }
}

/// What is said of a body that was found.
fn pin_of(same: Same, sum: &Sum, referrer: &str) -> Pin {
    let Same { position, url, time_ms, .. } = same;
    let Sum { payload, sha256, length, .. } = *sum;
    Pin { position, original: url, original_ms: time_ms, referrer: referrer.to_owned(), payload, sha256, length }
}

/// Puts what is known of the body in front of the records of a visit.
pub(crate) fn refer(append: &mut Append, pin: &Pin) -> skep_archive::Result<()> {
    append.records.insert(0, pin.encode(Role::Reference, system_clock())?);
    Ok(())
}
