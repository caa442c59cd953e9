//! The texts of an archive: kept up to date by a thread of their own while the archive is open, if its settings say so.

use crate::error::{Error, Result};
use crate::follow;
use crate::index::Index;
use crate::limits::{TICK, TRY_AGAIN};
use crate::tables;
use serde::{Deserialize, Serialize};
use skep_archive::{Archive, settings};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tantivy::IndexWriter;

/// `settings/text.toml`: the archive keeps texts.
#[derive(Serialize, Deserialize)]
struct TextSettings {
    version: u32,
}

const SETTINGS_FILE: &str = "text.toml";
const SETTINGS_VERSION: u32 = 1;

/// The texts of an archive.
pub struct Text {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

pub(crate) struct Shared {
    pub archive: Arc<Archive>,
    index: Mutex<Option<Arc<Index>>>,
    turn: Mutex<Turn>,
    changed: Condvar,
}

/// Whose turn it is: those who wait, and the thread that reads.
#[derive(Default)]
struct Turn {
    /// How often somebody asked for everything to be read.
    asked: u64,
    /// Which of these is done.
    done: u64,
    /// Up to which of these it was tried.
    tried: u64,
    stop: bool,
    /// Why the last try failed; what is asked again, or a while later, is tried again.
    failure: Option<Error>,
}

impl Text {
    /// The texts of an open archive. If it keeps them, a thread begins to read what is new.
    pub fn open(archive: Arc<Archive>) -> Result<Text> {
        let shared = Arc::new(Shared {
            archive,
            index: Mutex::new(None),
            turn: Mutex::new(Turn::default()),
            changed: Condvar::new(),
        });
        let text = Text { shared, thread: Mutex::new(None) };
        if text.shared.is_kept()? {
            text.start()?;
        }
        Ok(text)
    }

    /// From now on the archive keeps texts, also those of what it has already.
    pub fn keep(&self) -> Result<()> {
        if !self.shared.is_kept()? {
            settings::store(&self.shared.settings(), &TextSettings { version: SETTINGS_VERSION }, 0o644)?;
        }
        self.start()
    }

    /// Whether the archive keeps texts.
    pub fn is_kept(&self) -> bool {
        self.lock_thread().is_some()
    }

    fn lock_thread(&self) -> MutexGuard<'_, Option<JoinHandle<()>>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&self) -> Result<()> {
        let mut thread = self.lock_thread();
        if thread.is_none() {
            let shared = self.shared.clone();
            let spawned = std::thread::Builder::new().name("skep-text".into()).spawn(move || shared.run());
            *thread = Some(spawned.map_err(|error| Error::Index(format!("cannot start a thread: {error}")))?);
        }
        Ok(())
    }

    /// Waits until the texts of everything acknowledged so far can be found.
    pub fn settle(&self) -> Result<()> {
        if !self.is_kept() {
            return Err(Error::Off);
        }
        self.shared.archive.settle()?;
        let mut turn = self.shared.turn();
        turn.asked += 1;
        let ticket = turn.asked;
        self.shared.changed.notify_all();
        while turn.tried < ticket && !turn.stop {
            turn = self.shared.changed.wait(turn).unwrap_or_else(PoisonError::into_inner);
        }
        match &turn.failure {
            Some(error) if turn.done < ticket => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// How many documents there are.
    pub fn documents(&self) -> Result<u64> {
        Ok(tables::documents(self.shared.archive.views())?)
    }

    pub(crate) fn shared(&self) -> Result<&Shared> {
        if self.is_kept() { Ok(&self.shared) } else { Err(Error::Off) }
    }

    /// Ends the thread; what it has read is kept.
    pub fn stop(&self) {
        self.shared.turn().stop = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.lock_thread().take() {
            let _panicked_threads_have_said_so = thread.join();
        }
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn turn(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settings(&self) -> PathBuf {
        self.archive.layout().settings().join(SETTINGS_FILE)
    }

    fn is_kept(&self) -> Result<bool> {
        Ok(settings::load::<TextSettings>(&self.settings(), SETTINGS_VERSION)?.is_some())
    }

    /// The index; made anew, and everything read again, if it is not there or not what it was.
    pub fn index(&self) -> Result<Arc<Index>> {
        let mut open = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = &*open {
            return Ok(index.clone());
        }
        let views = self.archive.views();
        let folder = views.folder().join("text");
        let known = if tables::are_known(views)? { Index::open(&folder) } else { None };
        let index = match known {
            Some(index) => index,
            None => {
                tables::clear(views)?;
                match std::fs::remove_dir_all(&folder) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                        return Err(skep_archive::Error::io("cannot delete", &folder, error).into());
                    }
                    _ => settings::create_folder(&folder)?,
                }
                let index = Index::create(&folder)?;
                tables::begin(views)?;
                index
            }
        };
        Ok(open.insert(Arc::new(index)).clone())
    }

    /// Reads what is new until it is told to stop.
    fn run(&self) {
        let mut writer: Option<IndexWriter> = None;
        let (mut seen, mut failing) = (None, false);
        loop {
            let (asked, waited_for) = {
                let pause = if seen.is_some() { TICK } else { Duration::ZERO };
                let pause = if failing { TRY_AGAIN } else { pause };
                let quiet = |turn: &mut Turn| !turn.stop && turn.asked == turn.tried;
                let waited = self.changed.wait_timeout_while(self.turn(), pause, quiet);
                let (turn, _) = waited.unwrap_or_else(PoisonError::into_inner);
                if turn.stop {
                    return;
                }
                (turn.asked, turn.asked > turn.tried)
            };
            let now = self.archive.views().commits();
            if seen == Some(now) && !waited_for {
                // Nobody writes: its memory is given back, and small files are merged in peace.
                let _the_next_commit_merges_again = writer.take().map(IndexWriter::wait_merging_threads);
                continue;
            }
            let stopped = || self.turn().stop;
            let followed = self.index().and_then(|index| follow::follow(&self.archive, &index, &mut writer, &stopped));
            failing = followed.is_err();
            // A full disk gets room again: what was not committed is read again, as after a crash.
            seen = (!failing).then_some(now);
            if failing {
                writer = None;
                *self.index.lock().unwrap_or_else(PoisonError::into_inner) = None;
            }
            let mut turn = self.turn();
            match followed {
                Ok(true) => (turn.done, turn.tried, turn.failure) = (asked, asked, None),
                Ok(false) => {}
                Err(error) => (turn.tried, turn.failure) = (asked, Some(error)),
            }
            drop(turn);
            self.changed.notify_all();
        }
    }
}
