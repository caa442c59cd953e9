//! One node: what happens comes in, what is to be done goes out. Same state, same event, same time, same chance: same actions.
//!
//! ```text
//!           Event                                      Action
//!  network ───────▶ ┌───────────────────────────────┐ ───────▶ Send
//!  archive ───────▶ │ roster, watch, ring, holdings │ ───────▶ Pull, Hash, Delete
//!  crawl   ───────▶ │                               │ ───────▶ Lead, Stop, Acknowledged
//!  clock   ───────▶ └───────────────────────────────┘ ───────▶ Keep (before what follows is done), Note
//! ```
//! The shell does the actions in their order. After [`Action::Keep`] nothing that follows may leave the machine before it is durable.

mod core;
mod gossip;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::chance::Chance;
use crate::copy::{Extent, Segment};
use crate::epoch::{Chain, Epoch, Holders, SignedHolders};
use crate::fact::{Fact, NodeRecord};
use crate::genesis::{Genesis, Slice};
use crate::holding::Holding;
use crate::key::{Hash, Key, SealRef};
use crate::lease::Grantor;
use crate::message::{Ballot, Message, Politeness, Range};
use crate::pace::Site;
use crate::settings::Settings;
use crate::view::View;

pub use self::core::Core;

/// A node whole: what it knows of everybody, and the machine.
pub struct Node {
    /// Roster, ring, holders of every slice.
    pub view: View,
    /// The machine.
    pub core: Core,
}

impl Node {
    /// A node, new or after a restart; `kept` is everything that [`Action::Keep`] asked to keep, in that order.
    pub fn new(
        genesis: Arc<Genesis>,
        seal: SealRef,
        record: NodeRecord,
        settings: Settings,
        kept: Vec<Kept>,
        now: Now,
    ) -> Node {
        let mut view = View::new(genesis.clone());
        let mut links: BTreeMap<Slice, Vec<Arc<SignedHolders>>> = BTreeMap::new();
        let mut promises: BTreeMap<Slice, Grantor> = BTreeMap::new();
        let mut gone: Vec<Slice> = Vec::new();
        for kept in kept {
            match kept {
                // What was believed once is believed again, whatever the date is now.
                Kept::Fact(fact) => {
                    view.take_in(&fact, seal.as_ref(), now.mono_ms, u64::MAX / 2, &settings);
                }
                Kept::Epoch(link) => {
                    gone.retain(|slice| *slice != link.holders.slice);
                    links.entry(link.holders.slice).or_default().push(link);
                }
                Kept::Promise { slice, ballot, accepted } => {
                    promises.insert(slice, Grantor::restored(ballot, accepted, now.mono_ms, &settings));
                }
                Kept::Dropped { slice } => {
                    links.remove(&slice);
                    promises.remove(&slice);
                    gone.push(slice);
                }
            }
        }
        view.follow(now.mono_ms, &settings);
        let key = seal.key();
        let mut core = Core::new(seal, record, settings);
        if key == genesis.first {
            for slice in (0..genesis.slices()).filter(|slice| !gone.contains(slice)) {
                links.entry(slice).or_default().insert(0, Arc::new(view.first_epoch(slice)));
            }
        }
        for (slice, links) in links {
            let Some(chain) = Chain::restore(links) else { continue };
            view.note_epoch(chain.latest());
            core.adopt(Holding::new(chain));
            if let Some(grantor) = promises.remove(&slice) {
                core.restore(slice, grantor);
            }
        }
        Node { view, core }
    }

    /// Handles one event; what is to be done is added to `out`, to be done in that order.
    pub fn handle(&mut self, event: Event, now: Now, chance: &mut Chance, out: &mut Vec<Action>) {
        self.core.handle(&mut self.view, event, now, chance, out);
    }

    /// When [`Event::Tick`] has something to do, by the monotonic clock.
    pub fn due_ms(&self) -> u64 {
        self.core.due_ms()
    }
}

/// Two clocks: durations are measured by the first, dates compared by the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Milliseconds on a clock that only goes forward, and goes on while the machine sleeps.
    pub mono_ms: u64,
    /// Milliseconds since 1970, as this machine believes.
    pub wall_ms: u64,
}

/// What happens.
#[derive(Clone, Debug)]
pub enum Event {
    /// Time has passed. At least once a second, or at [`Node::due_ms`].
    Tick,
    /// A message of a peer whose key the connection proved.
    Received {
        /// The peer.
        from: Key,
        /// What it said.
        message: Message,
    },
    /// A node that this one watches is silent; only where [`crate::Settings::watching`] is off.
    Silent {
        /// The node.
        node: Key,
    },
    /// The roster has changed what it says about a node; only where the view is shared, else the machine notices by itself.
    Changed {
        /// The node.
        node: Key,
    },
    /// Members came or went; only where the view is shared, else the machine notices by itself.
    Rewish,
    /// This archive has so much of a segment, synced: written here, or there since before.
    Grown {
        /// The slice.
        slice: Slice,
        /// The segment and its length.
        extent: Extent,
    },
    /// What was to be pulled is here, verified and synced.
    Pulled {
        /// The slice.
        slice: Slice,
        /// From whom.
        from: Key,
        /// How much of the segment is here now.
        extent: Extent,
    },
    /// What was to be pulled did not come.
    PullFailed {
        /// The slice.
        slice: Slice,
        /// From whom.
        from: Key,
        /// The segment.
        segment: Segment,
        /// Why.
        why: PullFault,
    },
    /// A hash that was asked for.
    Hashed {
        /// The number of the action.
        job: u64,
        /// `None` if the bytes are not here.
        digest: Option<Hash>,
    },
    /// A segment of this archive was found to be bad or gone.
    Damaged {
        /// The slice.
        slice: Slice,
        /// The segment.
        segment: Segment,
    },
    /// Whether there is something to fetch in a slice, so that a lease is worth having.
    Wanted {
        /// The slice.
        slice: Slice,
        /// Whether there is.
        wanted: bool,
    },
    /// How politely the sites of a slice were visited so far; travels with the lease.
    Polite {
        /// The slice.
        slice: Slice,
        /// For whoever leads next.
        politeness: Politeness,
        /// Whether something is out there.
        out: bool,
    },
    /// A site that is split is worth visiting, or no longer.
    Pace {
        /// Its hash.
        site: Site,
        /// Whether there is something to visit.
        wanted: bool,
        /// Whether something is out there.
        out: bool,
        /// How it was visited: nothing is out there any more, and the right to visit goes back.
        back: Option<Politeness>,
    },
    /// How a site that is split was visited in an earlier turn still holds: it is said once more.
    Remind {
        /// Its hash.
        site: Site,
        /// How it was visited.
        politeness: Politeness,
    },
    /// Facts from the operator or from the files: records, retirements, splits.
    Learn(Vec<Fact>),
    /// What the node says of itself has changed: addresses, relay, portal.
    Moved {
        /// Where it listens.
        addresses: Vec<std::net::SocketAddr>,
        /// A relay.
        relay: Option<String>,
        /// The public address of its portal.
        portal: Option<String>,
    },
    /// This node wants to leave: copies first.
    Leave,
    /// Repair this slice now, whatever the delays.
    Repair {
        /// The slice.
        slice: Slice,
    },
}

/// Why a pull failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PullFault {
    /// No connection, or it broke.
    Unreachable,
    /// The peer does not have it.
    Missing,
    /// What came does not verify: the peer is not asked for this slice again.
    Altered,
    /// The own disk is full or failing.
    Own,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Make this durable before anything that follows.
    Keep(Kept),
    /// Say this to a peer; it may be lost.
    Send {
        /// The peer.
        to: Key,
        /// What to say.
        message: Message,
    },
    /// Copy a segment from a peer, from this byte on; then [`Event::Pulled`] or [`Event::PullFailed`].
    Pull {
        /// The slice.
        slice: Slice,
        /// From whom.
        from: Key,
        /// The segment, how much of it there is, and its seal to compare with.
        extent: Extent,
        /// Bytes that are here already. Zero although some are here: they do not fit; the whole is copied beside them, and takes their
        /// place when it verifies.
        have: u64,
    },
    /// Hash bytes of this archive under [`crate::audit::proof_key`]; then [`Event::Hashed`].
    Hash {
        /// To tell which.
        job: u64,
        /// The slice.
        slice: Slice,
        /// The key of the hash.
        key: [u8; 32],
        /// Which bytes, in this order.
        ranges: Vec<Range>,
    },
    /// This node leads: it may schedule and fetch until then by its monotonic clock, not a moment longer.
    Lead {
        /// The slice.
        slice: Slice,
        /// In which epoch.
        epoch: Epoch,
        /// Until then.
        until_ms: u64,
        /// As told by everybody who led before, when the lease is new: whoever names the longest wait of a site is right. `None` when it
        /// is renewed.
        politeness: Option<Vec<Politeness>>,
    },
    /// It no longer leads.
    Stop {
        /// The slice.
        slice: Slice,
    },
    /// This node may visit a site that is split, as far as it leads slices of its URLs, until then by its monotonic clock.
    Visit {
        /// The hash of the site.
        site: Site,
        /// Until then.
        until_ms: u64,
        /// As told by who visited before, and by who leads its home.
        politeness: Vec<Politeness>,
    },
    /// Another node has visited a site whose home is led here: whoever leads it next is to hear how.
    Heed {
        /// The hash of the site.
        site: Site,
        /// As it was told.
        politeness: Politeness,
    },
    /// So much of a segment is synced at a majority of holders.
    Acknowledged {
        /// The slice.
        slice: Slice,
        /// The segment.
        segment: Segment,
        /// Up to this length.
        bytes: u64,
    },
    /// Other nodes hold this slice from now on: what was written here is closed, so that they have all of it, and this node can have it
    /// back from them.
    Seal {
        /// The slice.
        slice: Slice,
    },
    /// Others have proven that they hold this slice: its copy here may go.
    Delete {
        /// The slice.
        slice: Slice,
    },
    /// This node has left: nothing depends on it any more.
    Left,
    /// For the log and the metrics.
    Note(Note),
}

/// What survives a restart, beside the archive itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kept {
    /// A fact of the roster.
    Fact(Fact),
    /// An epoch of a slice that is held here.
    Epoch(Arc<SignedHolders>),
    /// What was promised in a slice.
    Promise {
        /// The slice.
        slice: Slice,
        /// Granted to this ballot, and to none below.
        ballot: Ballot,
        /// Holders agreed to.
        accepted: Option<(Ballot, Holders)>,
    },
    /// The slice is no longer held here.
    Dropped {
        /// The slice.
        slice: Slice,
    },
}

/// Something worth telling.
#[derive(Clone, Debug, PartialEq)]
pub struct Note {
    /// For metrics: what kind of thing it is.
    pub what: What,
    /// Who caused it.
    pub peer: Option<Key>,
    /// Which slice it is about.
    pub slice: Option<Slice>,
    /// In words.
    pub why: &'static str,
}

/// Kinds of notes; each has a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum What {
    /// A message or fact was refused.
    Refused,
    /// A peer says too much.
    Flood,
    /// A node is absent.
    Absent,
    /// A node came, or came back.
    Present,
    /// A new epoch began.
    Epoch,
    /// A new epoch began without a majority: logged for everybody.
    Recovery,
    /// A lease was gained or lost.
    Lease,
    /// A copy is made.
    Repair,
    /// An audit was passed.
    Audited,
    /// An audit was failed: the holder is suspended.
    Suspended,
    /// Bytes did not verify.
    Altered,
    /// Another machine uses this node's key.
    Twin,
    /// The clock is off.
    Clock,
    /// A copy was let go.
    Deleted,
    /// The disk is full, or no longer.
    Full,
    /// Something of a kind that this program does not know.
    Newer,
    /// Something about a body that slices share: proven falsely, waiting to go, or lost.
    Body,
}
