//! What follows a commit: sidecars, then views. One thread, in the order of the commits, at most
//! [`VIEW_LAG_BYTES_MAX`](crate::limits::VIEW_LAG_BYTES_MAX) behind.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{Error, Result};
use crate::layout::{SegmentId, SegmentName, sidecar_of};
use crate::limits::{OPEN_FILES_MAX, VIEW_LAG_BYTES_MAX};
use crate::queue::Lane;
use crate::sidecar::{Entry, SidecarWriter};
use crate::views::{Mark, Views};

/// Records that were synced to one segment.
#[derive(Debug)]
pub struct SegmentCommit {
    /// The segment file.
    pub name: SegmentName,
    /// Where it is.
    pub path: PathBuf,
    /// The new records.
    pub entries: Vec<Entry>,
    /// The last of them closed the segment.
    pub sealed: bool,
    /// The sidecar is written already and this long.
    pub sidecar_bytes: Option<u64>,
}

/// Told how far a segment file is synced and seen by the views, and whether it is sealed. Must not wait.
pub type Growth = Box<dyn Fn(SegmentName, u64, bool) + Send>;

/// The lane between the committer and the thread that follows it.
pub struct Following {
    lane: Lane<Vec<SegmentCommit>>,
    turn: Mutex<()>,
    growth: Mutex<Option<Growth>>,
}

impl Default for Following {
    fn default() -> Following {
        Following { lane: Lane::new(VIEW_LAG_BYTES_MAX), turn: Mutex::new(()), growth: Mutex::new(None) }
    }
}

impl Following {
    /// Hands over what was synced; waits while the views are too far behind. `first` is told the ticket before that,
    /// so that nobody is acknowledged late because of slow views.
    pub fn put(&self, commits: Vec<SegmentCommit>, first: impl FnOnce(u64)) -> Result<()> {
        let _nobody_else_takes_this_ticket = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = commits.iter().flat_map(|commit| &commit.entries).map(|entry| entry.length).sum();
        first(self.lane.last_ticket() + 1);
        self.lane.put(commits, bytes).map(|_| ())
    }

    /// Waits until the views have seen everything up to this ticket.
    pub fn wait_for(&self, ticket: u64) -> Result<()> {
        self.lane.wait_for(ticket)
    }

    /// Waits until the views have seen everything that was acknowledged before. Not for the committer's own thread.
    pub fn settle(&self) -> Result<()> {
        // Whoever was just acknowledged may be quicker than the hand-over; it is over when the turn is free.
        drop(self.turn.lock().unwrap_or_else(PoisonError::into_inner));
        self.lane.wait_for(self.lane.last_ticket())
    }

    /// Why the views stopped following, if they did.
    pub fn failure(&self) -> Option<Error> {
        self.lane.failure()
    }

    /// Nothing more comes.
    pub fn close(&self) {
        self.lane.close();
    }

    /// Who is told of growth from now on.
    pub fn tell_growth(&self, growth: Option<Growth>) {
        *self.growth.lock().unwrap_or_else(PoisonError::into_inner) = growth;
    }

    fn grown(&self, commits: &[SegmentCommit]) {
        let growth = self.growth.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(growth) = &*growth else { return };
        for commit in commits {
            if let Some(last) = commit.entries.last() {
                growth(commit.name, last.end(), commit.sealed);
            }
        }
    }
}

/// The thread that follows.
pub struct Follower {
    /// What comes.
    pub following: Arc<Following>,
    /// What is folded.
    pub views: Arc<Views>,
    sidecars: HashMap<SegmentId, SidecarWriter>,
    tending: SyncSender<()>,
}

/// The thread that tends the views, apart from the follower: merging runs may take long.
pub struct Tender {
    following: Arc<Following>,
    views: Arc<Views>,
    asked: Receiver<()>,
}

impl Tender {
    /// Works until the follower ends.
    pub fn run(self) {
        while self.asked.recv().is_ok() {
            if let Err(error) = self.views.tend() {
                self.following.lane.fail(error);
                return;
            }
        }
    }
}

impl Follower {
    /// A follower of this lane, and the tender of its views.
    pub fn new(following: Arc<Following>, views: Arc<Views>) -> (Follower, Tender) {
        let (tending, asked) = sync_channel(1);
        let tender = Tender { following: following.clone(), views: views.clone(), asked };
        (Follower { following, views, sidecars: HashMap::new(), tending }, tender)
    }

    /// Works until the lane is closed and empty. After a failure it only drains: what was missed is replayed from the
    /// segments when the archive is opened again.
    pub fn run(mut self) {
        let following = self.following.clone();
        while let Some(taken) = following.lane.take(VIEW_LAG_BYTES_MAX, |_, _| true) {
            let count = taken.items.len();
            if following.failure().is_none() {
                let commits: Vec<SegmentCommit> = taken.items.into_iter().flatten().collect();
                if let Err(error) = self.follow(&commits) {
                    following.lane.fail(error);
                }
            }
            following.lane.finish(count, taken.bytes);
        }
    }

    fn follow(&mut self, commits: &[SegmentCommit]) -> Result<()> {
        let views = self.views.clone();
        let mut batch = views.batch();
        for commit in commits {
            let sidecar_bytes = self.write_sidecar(commit)?;
            for entry in &commit.entries {
                batch.apply(&commit.path, commit.name.id, entry)?;
            }
            if let Some(last) = commit.entries.last() {
                let mark = Mark {
                    generation: commit.name.generation,
                    records: last.record + 1,
                    bytes: last.end(),
                    sidecar_bytes,
                    sealed: commit.sealed,
                };
                batch.mark(commit.name.id, mark);
            }
        }
        batch.commit()?;
        self.following.grown(commits);
        // If one request waits already, it will see these entries too.
        let _one_waiting_is_enough = self.tending.try_send(());
        Ok(())
    }

    fn write_sidecar(&mut self, commit: &SegmentCommit) -> Result<u64> {
        if let Some(length) = commit.sidecar_bytes {
            return Ok(length);
        }
        let id = commit.name.id;
        let path = sidecar_of(&commit.path);
        if commit.entries.first().is_some_and(|entry| entry.record == 0) {
            // A copy that begins again has a new file.
            self.sidecars.remove(&id);
        }
        if !self.sidecars.contains_key(&id) {
            if self.sidecars.len() >= OPEN_FILES_MAX {
                self.sidecars.clear();
            }
            let first = commit.entries.first().is_none_or(|entry| entry.record == 0);
            let writer = match first {
                true => SidecarWriter::create(&path, commit.name)?,
                // What stands there was written by this thread or verified by recovery: all of it counts.
                false => {
                    let length = path.metadata().map_err(|error| Error::io("cannot read", &path, error))?.len();
                    SidecarWriter::resume(&path, length)?
                }
            };
            self.sidecars.insert(id, writer);
        }
        let Some(writer) = self.sidecars.get_mut(&id) else { return Ok(0) };
        writer.append(&commit.entries)?;
        let length = writer.length();
        if commit.sealed {
            writer.sync()?;
            self.sidecars.remove(&id);
        }
        Ok(length)
    }
}
