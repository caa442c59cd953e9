//! How others speak to a crawl that runs: to stop it, to ask about it, to change it.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::sharing::{Back, Link};
use crate::worker::Said;

/// A question about crawls, answered by the crawl that runs, or from what is on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "question")]
pub enum Question {
    /// The fate of a URL.
    Why {
        /// The URL as typed.
        url: String,
        /// Only in this crawl.
        name: Option<String>,
    },
    /// Hosts with waiting URLs, or one host.
    Queue {
        /// `name` or `name:port`.
        host: Option<String>,
        /// At most so many hosts.
        limit: usize,
    },
    /// What a crawl came to.
    Report {
        /// Its name; all crawls if none.
        name: Option<String>,
        /// Broken links with the pages that hold them.
        broken: bool,
    },
    /// How the watches of the archive stand.
    Watches,
    /// When a URL, or the URLs of a host, are looked at again, and why.
    Schedule {
        /// A URL, or `name` or `name:port`.
        what: String,
    },
    /// What watching would come to with this budget and policy.
    Plan {
        /// The crawl.
        name: String,
        /// As it would be watched.
        watch: crate::settings::Watch,
    },
    /// The crawl's file was changed: it is read now, not later.
    Reread,
    /// Change how a host is treated.
    Set {
        /// `name` or `name:port`.
        host: String,
        /// What.
        change: Change,
    },
}

/// What can be changed about a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// Its pace: `polite`, `none`, or milliseconds.
    Pace(String),
    /// Not now.
    Pause,
    /// Go on.
    Resume,
    /// Nothing of it any more.
    Drop,
}

/// Something said to the engine by others than workers.
#[derive(Debug)]
pub enum Asked {
    /// Finish what is in flight, then end.
    Stop,
    /// Answer this.
    Question(Question, Sender<Result<Vec<Value>>>),
}

/// Something about what is led by whom, and about links that come and go.
pub enum Shared {
    /// This node leads a slice until then. With politeness, the lease is new.
    Lead(u32, std::time::Instant, Option<Vec<Vec<u8>>>),
    /// It no longer does.
    Stop(u32),
    /// A site that is split may be visited until then, and this is how it was so far.
    Visit(u32, std::time::Instant, Vec<Vec<u8>>),
    /// Another node visited a site whose home is led here, and this is how.
    Heed(u32, Vec<u8>),
    /// Links of a batch that were passed on to where they belong are safe there, or not.
    Passed(u64, bool),
    /// Links that others found.
    Links(Vec<Link>, Back),
    /// A batch of links is safe where it was sent to, or is not.
    Sent(u64, bool),
    /// Links are recorded as heard, or could not be.
    Heard(u64, Option<skep_archive::Position>),
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Shared::Lead(slice, ..) => write!(f, "Lead({slice})"),
            Shared::Stop(slice) => write!(f, "Stop({slice})"),
            Shared::Visit(site, ..) => write!(f, "Visit({site:08x})"),
            Shared::Heed(site, _) => write!(f, "Heed({site:08x})"),
            Shared::Passed(batch, safe) => write!(f, "Passed({batch}, {safe})"),
            Shared::Links(links, _) => write!(f, "Links({})", links.len()),
            Shared::Sent(number, safe) => write!(f, "Sent({number}, {safe})"),
            Shared::Heard(number, position) => write!(f, "Heard({number}, {position:?})"),
        }
    }
}

/// A handle on a crawl; clones speak to the same one. Before the crawl begins and after it ended nobody answers.
#[derive(Clone, Default)]
pub struct Control {
    engine: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    engine: Option<Sender<Said>>,
    stopped: bool,
}

impl Control {
    /// Asks the crawl to finish what is in flight and to end.
    pub fn stop(&self) {
        let mut state = self.lock();
        state.stopped = true;
        if let Some(engine) = &state.engine {
            let _ended_already = engine.send(Said::Asked(Asked::Stop));
        }
    }

    /// Asks the crawl that runs; `None` if none does.
    pub fn ask(&self, question: &Question) -> Option<Result<Vec<Value>>> {
        let engine = self.lock().engine.clone()?;
        let (answer, answered): (_, Receiver<Result<Vec<Value>>>) = channel();
        engine.send(Said::Asked(Asked::Question(question.clone(), answer))).ok()?;
        answered.recv().ok()
    }

    /// This node leads a slice until then. With politeness, of everybody who led it before, the lease is new: the crawl takes it over.
    /// Says whether there is a crawl that heard it.
    pub fn lead(&self, slice: u32, until: std::time::Instant, politeness: Option<Vec<Vec<u8>>>) -> bool {
        self.tell(Shared::Lead(slice, until, politeness)).is_none()
    }

    /// This node no longer leads a slice.
    pub fn stop_leading(&self, slice: u32) -> bool {
        self.tell(Shared::Stop(slice)).is_none()
    }

    /// A site that is split, by its hash, may be visited from here until then; others tell how it was visited so far.
    pub fn visit(&self, site: u32, until: std::time::Instant, politeness: Vec<Vec<u8>>) {
        self.tell(Shared::Visit(site, until, politeness));
    }

    /// Another node visited such a site, whose home is held here: whoever leads it next is to hear how.
    pub fn heed(&self, site: u32, politeness: Vec<u8>) {
        self.tell(Shared::Heed(site, politeness));
    }

    /// Links that others found. `back` hears when they are recorded and synced, or that nothing was taken.
    pub fn hear(&self, links: Vec<Link>, back: Back) {
        if let Some(Shared::Links(_, back)) = self.tell(Shared::Links(links, back)) {
            back(false);
        }
    }

    /// Returns what nobody was there to hear.
    fn tell(&self, shared: Shared) -> Option<Shared> {
        let engine = self.lock().engine.clone();
        match engine {
            Some(engine) => match engine.send(Said::Shared(shared)) {
                Ok(()) => None,
                Err(std::sync::mpsc::SendError(Said::Shared(shared))) => Some(shared),
                Err(_) => None,
            },
            None => Some(shared),
        }
    }

    /// Whether a crawl runs.
    pub fn is_running(&self) -> bool {
        self.lock().engine.is_some()
    }

    pub(crate) fn begin(&self, engine: Sender<Said>) -> Result<()> {
        let mut state = self.lock();
        if state.engine.is_some() {
            return Err(Error::Settings { what: "another crawl of this archive runs already".into() });
        }
        if state.stopped {
            let _told = engine.send(Said::Asked(Asked::Stop));
        }
        state.engine = Some(engine);
        Ok(())
    }

    pub(crate) fn end(&self) {
        self.lock().engine = None;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
