//! Gives finished bundles back: digests of all that are ready first, then the bodies that the node wants, from where they were left.

use std::collections::VecDeque;
use std::time::Duration;

use crate::contributor::Main;
use crate::limits::{NO_ROOM_TRIES, PASSED_PIECE_BYTES, PIECE_BYTES_MAX, TOGETHER_MAX};
use crate::link::{Link, NoAnswer};
use crate::message::{Answer, Refusal, Request};
use crate::work::Ready;

/// Bundles whose digests travel together.
const BUNDLES: usize = 32;
/// Bodies that travel together.
const BODIES: usize = 64;

/// How long until a node may have room again.
const NO_ROOM: Duration = Duration::from_secs(2);

const _: () = assert!(BUNDLES < TOGETHER_MAX && BODIES <= TOGETHER_MAX);

/// What the node said to the digests of a bundle.
pub enum Heard {
    /// It has all that it wants of it.
    Over,
    /// It wants these bodies, each from a byte on.
    Wanted(Ready, Vec<(u16, u64)>),
    /// It does not know us any more.
    Forgotten,
    /// It wants no more of us.
    Stop(String),
}

/// What is ready, oldest first, or the oldest alone. What is damaged is gone, and given out again by the node.
pub fn load(main: &Main, alone: bool) -> Result<Vec<Ready>, String> {
    let ids = main.work.ready().into_iter().take(if alone { 1 } else { BUNDLES });
    let loaded = ids.filter_map(|id| main.work.load(id).transpose());
    loaded.collect::<Result<_, _>>().map_err(|error| format!("results cannot be read: {error}"))
}

/// The node has heard the digests of a bundle.
pub fn heard(ready: Ready, answer: Option<Answer>, main: &Main) -> Result<Heard, String> {
    match answer {
        Some(Answer::Want { bodies, .. }) => return Ok(Heard::Wanted(ready, bodies)),
        Some(Answer::Done { .. }) => done(ready, main)?,
        Some(Answer::Refused { why: Refusal::Unknown }) => return Ok(Heard::Forgotten),
        Some(Answer::Refused { why }) => forget(ready, main, why.text())?,
        Some(Answer::Stop { why }) => return Ok(Heard::Stop(why)),
        _ => forget(ready, main, "the node answers something else than it was asked")?,
    }
    Ok(Heard::Over)
}

/// The node has all of it.
fn done(ready: Ready, main: &Main) -> Result<(), String> {
    main.returned.set(main.returned.get() + 1);
    main.work.forget(ready).map_err(|error| format!("results cannot be removed: {error}"))
}

fn forget(ready: Ready, main: &Main, why: &str) -> Result<(), String> {
    main.note(format!("a bundle is not taken: {why}"));
    main.work.forget(ready).map_err(|error| format!("results cannot be removed: {error}"))
}

/// Sends the bodies that are wanted, many in a message and long ones in pieces, as long as its owner lets it. What the node has not got then it
/// wants again when it is told the digests again.
pub async fn bodies(ready: Ready, wanted: Vec<(u16, u64)>, link: &mut Link, main: &Main) -> Result<(), NoAnswer> {
    let mut left: VecDeque<(u16, u64)> = wanted.into();
    // Where a rate is bounded, no message is more than a quarter of a second's bytes.
    let most = if link.is_through() { PASSED_PIECE_BYTES } else { PIECE_BYTES_MAX };
    let most = match main.meter.borrow().wishes().rate {
        0 => most,
        rate => ((rate / 4) as usize).clamp(4 << 10, most),
    };
    let mut no_room = 0;
    while !left.is_empty() && !main.is_at_rest() {
        let (mut requests, mut sent, mut bytes_left) = (Vec::new(), Vec::new(), most);
        while let Some((number, offset)) = left.pop_front() {
            let Some((total, bytes)) = ready.piece(number, offset, bytes_left) else {
                return forget(ready, main, "the node wants what is not there").map_err(NoAnswer::Never);
            };
            bytes_left -= bytes.len();
            sent.push((number, offset, total));
            requests.push(Request::Body { bundle: ready.id, number, offset, total, bytes });
            if bytes_left == 0 || requests.len() == BODIES {
                break;
            }
        }
        let answers = link.say(&requests, skep_archive::system_clock).await;
        main.spend(link.spent()).await;
        let (answers, mut again, mut is_full) = (answers?, Vec::new(), false);
        for ((number, offset, total), answer) in sent.into_iter().zip(answers) {
            match answer {
                Answer::Taken { offset: next } if next == total => {}
                Answer::Taken { offset: next } if (offset + 1..total).contains(&next) => again.push((number, next)),
                // Nobody is made to send the same for ever.
                Answer::Taken { offset: next } if next <= offset => {
                    return Err(NoAnswer::Broken("the node has lost what it had of a body".into()));
                }
                Answer::Done { .. } => return done(ready, main).map_err(NoAnswer::Never),
                Answer::Refused { why: Refusal::TooMuch } => {
                    is_full = true;
                    again.push((number, offset));
                }
                Answer::Refused { why: Refusal::Unknown } => {
                    return Err(NoAnswer::Broken("the node has forgotten us".into()));
                }
                Answer::Refused { why } => return forget(ready, main, why.text()).map_err(NoAnswer::Never),
                _ => return forget(ready, main, "the node does not take it").map_err(NoAnswer::Never),
            }
        }
        no_room = if is_full { no_room + 1 } else { 0 };
        if no_room > if main.meter.borrow().finishing { 0 } else { NO_ROOM_TRIES } {
            return Err(NoAnswer::Broken(Refusal::TooMuch.text().into()));
        }
        if is_full {
            main.waits(NO_ROOM * (1 << (no_room - 1))).await;
        }
        again.into_iter().rev().for_each(|one| left.push_front(one));
    }
    Ok(())
}
