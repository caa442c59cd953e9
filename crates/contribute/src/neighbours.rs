//! Other nodes of the network: contributors of one node work for all of them.
//!
//! ```text
//!  nothing to do here ─▶ who has bundles waiting? ─▶ its portal takes contributors: they go there
//!                                                └─▶ else, or if they come back: they speak to it through this node
//! ```
//! Whoever speaks through a node signs for the one that he means, and hears what that one has signed: a node in between sees what goes to
//! and fro, and can alter none of it. Who is believed is decided where the bundles are.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::envelope;
use crate::limits::{NEIGHBOURS_MAX, NEIGHBOURS_MS, PASSED_BYTES_MAX, PASSED_MAX, SENT_MAX, SENT_MS};
use crate::link::PATH;
use crate::node::{Node, hex};
use crate::trust::Key;

/// Other nodes, and the way to them. Calls may take a while, and end.
pub trait Others: Send + Sync {
    /// Those that are there, with their public portals.
    fn nodes(&self) -> Vec<(Key, Option<String>)>;
    /// What one of them says of what waits there: its [`Node::waiting`].
    fn waiting(&self, node: &Key) -> Result<Vec<u8>, String>;
    /// Passes on what a contributor says from this address: to its [`Node::handle_through`].
    fn pass_on(&self, node: &Key, address: IpAddr, message: &[u8]) -> Result<Vec<u8>, String>;
}

/// What waits at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// Bundles that nobody has taken.
    pub bundles: u32,
    /// Contributors who are there.
    pub there: u32,
    /// Its portal takes contributors.
    pub open: bool,
}

/// Why a message is not passed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotPassed {
    /// It is longer than what is passed on.
    TooLong,
    /// It is signed by nobody who is known here, or not for that node.
    Unknown,
    /// So many are passed on already, or another of the same contributor.
    Busy,
    /// That node is not there, or does not answer.
    Silent(String),
}

#[derive(Clone, Debug)]
struct Neighbour {
    key: Key,
    portal: Option<String>,
    waiting: Waiting,
}

#[derive(Default)]
struct Known {
    /// Those of the last look at which something waits.
    waiting: Vec<Neighbour>,
    /// Who was sent to whose portal, and when.
    sent: HashMap<(Key, Key), u64>,
    /// Whose messages are on their way.
    passing: HashSet<Key>,
}

/// Other nodes, as they were last seen.
pub(crate) struct Neighbours {
    others: Box<dyn Others>,
    known: Mutex<Known>,
}

impl Neighbours {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Do bundles wait somewhere where nobody is?
    pub fn anybody_waits_in_vain(&self) -> bool {
        self.lock().waiting.iter().any(|one| one.waiting.there == 0)
    }

    /// Where a contributor is sent: first where nobody is. `None` where nothing waits.
    pub fn next(&self, who: &Key, drawn: u64, now_ms: u64) -> Option<String> {
        let mut known = self.lock();
        let in_vain = known.waiting.iter().any(|one| one.waiting.there == 0);
        let fits: Vec<usize> =
            (0..known.waiting.len()).filter(|at| !in_vain || known.waiting[*at].waiting.there == 0).collect();
        let at = *fits.get(usize::try_from(drawn % fits.len().max(1) as u64).ok()?)?;
        let one = known.waiting[at].clone();
        // Not everybody goes to the same one before it was asked again.
        let waiting = &mut known.waiting[at].waiting;
        (waiting.bundles, waiting.there) = (waiting.bundles.saturating_sub(1), waiting.there.saturating_add(1));
        if waiting.bundles == 0 {
            known.waiting.remove(at);
        }
        let sent = known.sent.get(&(*who, one.key)).is_some_and(|then_ms| now_ms < then_ms + SENT_MS);
        match one.portal.filter(|_| one.waiting.open && !sent) {
            Some(portal) => {
                if known.sent.len() >= SENT_MAX {
                    known.sent.retain(|_, then_ms| now_ms < *then_ms + SENT_MS);
                }
                if known.sent.len() >= SENT_MAX {
                    known.sent.clear(); // some try in vain once more
                }
                known.sent.insert((*who, one.key), now_ms);
                Some(portal)
            }
            None => Some(through(&one.key)),
        }
    }

    /// Asks some of the others what waits there.
    fn look(&self, mut drawn: u64) {
        let mut nodes = self.others.nodes();
        while nodes.len() > NEIGHBOURS_MAX {
            drawn = drawn.rotate_left(7).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            nodes.swap_remove((drawn % nodes.len() as u64) as usize);
        }
        let said = std::thread::scope(|scope| {
            let ask = |(key, portal): (Key, Option<String>)| {
                scope.spawn(move || {
                    let waiting = postcard::from_bytes(&self.others.waiting(&key).ok()?).ok()?;
                    Some(Neighbour { key, portal, waiting })
                })
            };
            let asked: Vec<_> = nodes.into_iter().map(ask).collect();
            asked.into_iter().filter_map(|asked| asked.join().ok().flatten()).collect::<Vec<_>>()
        });
        self.lock().waiting = said.into_iter().filter(|one| one.waiting.bundles > 0).collect();
    }
}

/// Where a contributor speaks to a node through the one that he speaks to.
pub fn through(node: &Key) -> String {
    format!("{PATH}/{}", hex(node))
}

impl Node {
    /// Contributors for whom there is nothing to do here work for these.
    pub fn know_others(&self, others: Box<dyn Others>) -> Result<(), String> {
        let neighbours = Neighbours { others, known: Mutex::default() };
        if self.neighbours.set(neighbours).is_err() {
            return Ok(()); // they are known already
        }
        let me = self.weak();
        std::thread::Builder::new()
            .name("skep-neighbours".into())
            .spawn(move || look(&me))
            .map(drop)
            .map_err(|error| format!("no thread to ask other nodes: {error}"))
    }

    /// What waits here, for other nodes.
    pub fn waiting(&self) -> Vec<u8> {
        let now_ms = self.elapsed_ms();
        let state = self.lock();
        let (bundles, there) = (state.dispatch.wants(now_ms), state.dispatch.there(now_ms));
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        envelope::plain(&Waiting { bundles: count(bundles), there: count(there), open: self.is_open() })
    }

    /// Messages that are being passed on.
    pub fn passing(&self) -> usize {
        self.neighbours.get().map_or(0, |neighbours| neighbours.lock().passing.len())
    }

    /// Passes on what a contributor says to another node, if he is known here; or answers it, if it is for this one.
    pub fn pass_on(&self, node: &Key, address: IpAddr, message: &[u8]) -> Result<Vec<u8>, NotPassed> {
        if *node == self.key() {
            return Ok(self.handle(address, message));
        }
        if message.len() > PASSED_BYTES_MAX {
            return Err(NotPassed::TooLong);
        }
        let who = envelope::sender(message, node).ok_or(NotPassed::Unknown)?;
        let now_ms = self.now_ms();
        let is_welcome = |known: &mut crate::trust::Standing| known.suspended_until_ms <= now_ms;
        if !self.lock().trust.of(&who).is_some_and(is_welcome) {
            return Err(NotPassed::Unknown);
        }
        let silent = || NotPassed::Silent("this node knows no others".into());
        let neighbours = self.neighbours.get().ok_or_else(silent)?;
        {
            let mut known = neighbours.lock();
            if known.passing.len() >= PASSED_MAX || !known.passing.insert(who) {
                return Err(NotPassed::Busy);
            }
        }
        let said = neighbours.others.pass_on(node, address, message);
        neighbours.lock().passing.remove(&who);
        said.map_err(NotPassed::Silent)
    }
}

fn look(node: &Weak<Node>) {
    loop {
        std::thread::sleep(Duration::from_millis(NEIGHBOURS_MS));
        let Some(node) = node.upgrade() else { return };
        let drawn = {
            let mut state = node.lock();
            (state.dispatch.there(node.elapsed_ms()) > 0).then(|| state.draw())
        };
        if let (Some(neighbours), Some(drawn)) = (node.neighbours.get(), drawn) {
            neighbours.look(drawn);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Two;

    const NEAR: Key = [1; 32];
    const FAR: Key = [2; 32];

    impl Others for Two {
        fn nodes(&self) -> Vec<(Key, Option<String>)> {
            vec![(NEAR, Some("https://near.example/".into())), (FAR, Some("https://far.example/".into()))]
        }
        fn waiting(&self, node: &Key) -> Result<Vec<u8>, String> {
            let open = *node == NEAR;
            Ok(envelope::plain(&Waiting { bundles: 2, there: u32::from(!open), open }))
        }
        fn pass_on(&self, _: &Key, _: IpAddr, _: &[u8]) -> Result<Vec<u8>, String> {
            Err("nobody".into())
        }
    }

    fn two() -> Neighbours {
        let neighbours = Neighbours { others: Box::new(Two), known: Mutex::default() };
        neighbours.look(0);
        neighbours
    }

    #[test]
    fn who_has_nothing_to_do_goes_where_nobody_is_and_through_this_node_if_he_comes_back() {
        let (neighbours, who) = (two(), [9; 32]);
        assert!(neighbours.anybody_waits_in_vain());
        assert_eq!(neighbours.next(&who, 0, 0).as_deref(), Some("https://near.example/"));
        assert!(!neighbours.anybody_waits_in_vain(), "somebody is on his way there");
        neighbours.look(0);
        assert_eq!(neighbours.next(&who, 0, 1), Some(through(&NEAR)), "its portal cannot be reached by him");
        neighbours.look(0);
        assert_eq!(neighbours.next(&[8; 32], 0, 1).as_deref(), Some("https://near.example/"));
        neighbours.look(0);
        assert_eq!(neighbours.next(&who, 0, SENT_MS).as_deref(), Some("https://near.example/"), "tried again later");
    }

    #[test]
    fn a_portal_that_takes_no_contributors_is_no_place_to_go() {
        let (neighbours, who) = (two(), [9; 32]);
        neighbours.lock().waiting.retain(|one| one.key == FAR);
        assert_eq!(neighbours.next(&who, 7, 0), Some(through(&FAR)));
        assert_eq!(neighbours.next(&who, 7, 0), Some(through(&FAR)));
        assert_eq!(neighbours.next(&who, 7, 0), None, "nothing waits any more, as far as is known");
    }
}
