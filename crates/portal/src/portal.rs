//! What all requests share: the archive, who may see what, and what files and collections are called.

use crate::access::Access;
use crate::api::statistics::Kept;
use crate::changes::Hub;
use crate::elsewhere::Elsewhere;
use crate::fresh::Fresh;
use crate::limits::BODIES_AT_ONCE_MAX;
use crate::metrics::Metrics;
use crate::reply::Turns;
use crate::settings::Lines;
use skep_archive::{Archive, Capture, Clock, Position, WriterKey};
use skep_contribute::Node;
use skep_search::Text;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, PoisonError, RwLock};
use tokio::sync::{Semaphore, watch};

/// The name under which everything is found, whatever its collection.
pub const EVERYTHING: &str = "web";

/// The folder, below that of collections, where lines about files that are not here are kept.
pub const POSTED: &str = "posted";

/// The name of a file that is not here, as the name of one that is.
pub fn posted_name(filename: &str) -> String {
    let mut out = String::with_capacity(filename.len());
    for (at, c) in filename.char_indices() {
        match c {
            '/' => out.push_str("%2F"),
            '%' => out.push_str("%25"),
            '\0' => out.push_str("%00"),
            '.' if at < 2 && filename.starts_with('.') => out.push_str("%2E"),
            c => out.push(c),
        }
    }
    // Longer names than file systems have are told apart by their end.
    let cut = out.len().saturating_sub(240);
    out.char_indices().find(|(at, _)| *at >= cut).map_or(out.clone(), |(at, _)| out[at..].to_owned())
}

/// The portal while it serves.
pub struct Portal {
    /// The archive.
    pub archive: Arc<Archive>,
    /// Who may see what.
    pub access: Access,
    /// Counters.
    pub metrics: Metrics,
    /// The time.
    pub clock: Clock,
    /// Takes what whoever runs the portal should know.
    pub talk: Lines,
    /// Where archived pages are shown.
    pub origin: Origin,
    /// Whether their scripts run.
    pub scripts: bool,
    /// Who reads the archive at once.
    pub turns: Turns,
    /// Who sends a long body at once.
    pub bodies: Semaphore,
    /// What was counted lately.
    pub statistics: Kept,
    /// The texts of the archive.
    pub text: Option<Arc<Text>>,
    /// Who follows the stream of changes.
    pub hub: Hub,
    /// How the watches stand.
    pub fresh: Fresh,
    /// Takes contributors.
    pub contributors: Option<Arc<Node>>,
    /// The other nodes of a network.
    pub elsewhere: Option<Arc<dyn Elsewhere>>,
    /// Says when the portal stops: who would stay for ever leaves then.
    pub ending: watch::Receiver<bool>,
    names: RwLock<Arc<Names>>,
}

/// Where archived pages are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// On the portal's own, in a sandbox.
    Own,
    /// On another one.
    Other {
        /// `scheme://host[:port]`.
        origin: String,
        /// `host[:port]`, lower case, as it stands in the header Host.
        host: String,
    },
}

/// What files and collections are called.
#[derive(Default)]
pub struct Names {
    files: HashMap<u32, (Arc<str>, Arc<str>)>,
    collections: BTreeSet<Arc<str>>,
}

/// Which captures a request is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All of them.
    Everything,
    /// Those of one collection.
    Collection(Arc<str>),
}

impl Scope {
    /// Its name in addresses.
    pub fn name(&self) -> &str {
        match self {
            Scope::Everything => EVERYTHING,
            Scope::Collection(name) => name,
        }
    }

    /// Whether a capture belongs.
    pub fn holds(&self, capture: &Capture, portal: &Portal) -> bool {
        self.holds_position(capture.position, portal)
    }

    /// Whether the capture at a position belongs.
    pub fn holds_position(&self, position: Position, portal: &Portal) -> bool {
        match self {
            Scope::Everything => true,
            Scope::Collection(name) => portal.file(position).is_some_and(|(_, found)| found == *name),
        }
    }
}

impl Portal {
    pub(crate) fn new(
        archive: Arc<Archive>,
        access: Access,
        clock: Clock,
        talk: Lines,
        origin: Origin,
        scripts: bool,
        turns: Turns,
        text: Option<Arc<Text>>,
        hub: Hub,
        fresh: Fresh,
        contributors: Option<Arc<Node>>,
        elsewhere: Option<Arc<dyn Elsewhere>>,
        ending: watch::Receiver<bool>,
    ) -> Portal {
        let names = RwLock::new(Arc::new(Names::of(&archive)));
        let bodies = Semaphore::new(BODIES_AT_ONCE_MAX);
        Portal {
            archive,
            access,
            metrics: Metrics::default(),
            clock,
            talk,
            origin,
            scripts,
            turns,
            bodies,
            statistics: Kept::default(),
            text,
            hub,
            fresh,
            contributors,
            elsewhere,
            ending,
            names,
        }
    }

    fn names(&self) -> Arc<Names> {
        self.names.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Files are added while we serve and never taken away: what is not known yet is looked for again.
    fn names_anew(&self) -> Arc<Names> {
        let fresh = Arc::new(Names::of(&self.archive));
        *self.names.write().unwrap_or_else(PoisonError::into_inner) = fresh.clone();
        fresh
    }

    /// The collection that a capture belongs to; none for what was crawled here.
    pub fn collection_of(&self, capture: &Capture) -> Option<Arc<str>> {
        self.file(capture.position).map(|(_, collection)| collection)
    }

    fn file(&self, position: Position) -> Option<(Arc<str>, Arc<str>)> {
        if position.writer != WriterKey::FOREIGN {
            return None;
        }
        let number = position.segment;
        self.names().files.get(&number).cloned().or_else(|| self.names_anew().files.get(&number).cloned())
    }

    /// The name of the file that holds a capture, without its folder.
    pub fn file_name(&self, capture: &Capture) -> Arc<str> {
        self.name_of(capture.position)
    }

    /// The name of the file that holds a record, without its folder.
    pub fn name_of(&self, position: Position) -> Arc<str> {
        if let Some((name, _)) = self.file(position) {
            return name;
        }
        let path = self.archive.file_of(position).ok();
        let name = path.as_deref().and_then(|path| path.file_name()).map(|name| name.to_string_lossy().into_owned());
        name.map_or_else(|| "-".into(), Into::into)
    }

    /// What a name in an address stands for.
    pub fn scope(&self, name: &str) -> Option<Scope> {
        if name == EVERYTHING {
            return Some(Scope::Everything);
        }
        let known = |names: &Names| names.collections.get(name).cloned().map(Scope::Collection);
        known(&self.names()).or_else(|| known(&self.names_anew()))
    }

    /// The names of all collections.
    pub fn collections(&self) -> Vec<Arc<str>> {
        self.names_anew().collections.iter().cloned().collect()
    }

    /// The time.
    pub fn now_ms(&self) -> i64 {
        (self.clock)()
    }

    /// The log gets to know why something failed.
    pub fn note(&self, trouble: &crate::trouble::Trouble) {
        if let Some(log) = &trouble.log {
            self.metrics.trouble();
            (self.talk)(log);
        }
    }
}

impl Names {
    fn of(archive: &Archive) -> Names {
        let mut names = Names::default();
        let posted = archive.layout().collections().join(POSTED);
        // The archive keeps the paths of files whole.
        let posted = posted.canonicalize().unwrap_or(posted);
        for file in archive.collections().files() {
            let collection: Arc<str> = match names.collections.get(file.collection.as_str()) {
                Some(known) => known.clone(),
                None => file.collection.as_str().into(),
            };
            names.collections.insert(collection.clone());
            // A copy inside the archive has a number in front; the name it came with is the one that indexes use.
            let name = file.from.file_name().map_or_else(|| "-".into(), |name| name.to_string_lossy());
            let name = match file.from.starts_with(&posted) {
                true => percent_encoding::percent_decode_str(&name).decode_utf8_lossy().into_owned().into(),
                false => name,
            };
            names.files.insert(file.number, (name.into(), collection));
        }
        names
    }
}
