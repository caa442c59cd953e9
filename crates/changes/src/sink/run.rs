//! Starts and ends the sinks of an archive, in the process that owns it.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use skep_archive::{Archive, settings, system_clock};
use skep_page::compare::Classes;
use tokio::sync::watch;

use super::carrier;
use super::definition::{Definition, check_name, folder};
use super::deliver::{Delivery, Wish, deliver};
use super::state::State;
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::limits::{
    SINK_ARCHIVE_MS, SINK_CURSOR_LOOKED_MAX, SINK_FINISH_MS_MAX, SINK_FOLLOW_MS, SINK_OVERLAP_MS, SINKS_MAX,
};
use crate::log::{Changes, From};

/// How often it is looked whether a sink has ended.
const FINISH_STEP_MS: u64 = 10;

/// The sinks of an archive. They work while somebody has them run.
pub struct Sinks {
    archive: Arc<Archive>,
    changes: Arc<Changes>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// How many have them run.
    users: usize,
    at_work: BTreeMap<String, AtWork>,
    following: Option<(Sender<()>, JoinHandle<()>)>,
}

struct AtWork {
    wish: watch::Sender<Wish>,
    thread: JoinHandle<Result<()>>,
}

/// Sinks work at least as long as this lives.
pub struct Running<'s> {
    sinks: &'s Sinks,
    left_out: Vec<Error>,
}

impl Running<'_> {
    /// Why some do not: each by its name, and what to do about it.
    pub fn left_out(&self) -> &[Error] {
        &self.left_out
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut inner = self.sinks.lock();
        inner.users -= 1;
        if inner.users == 0 {
            self.sinks.finish(&mut inner);
        }
    }
}

/// How a sink stands, for people.
#[derive(Debug, Clone)]
pub struct Standing {
    /// Its name.
    pub name: String,
    /// What it is; nothing where that cannot be read, and `state.error` says why.
    pub definition: Option<Definition>,
    /// How far it got.
    pub state: State,
    /// Events of the log behind its cursor, whether it wants them or not; unknown where the cursor is of another log.
    pub lag: Option<u64>,
    /// Whether it works now.
    pub at_work: bool,
}

impl Sinks {
    /// Nothing runs yet.
    pub fn new(archive: Arc<Archive>, changes: Arc<Changes>) -> Sinks {
        Sinks { archive, changes, inner: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has all sinks work until the answer is dropped. Then they get a little time for what is there.
    pub fn begin(&self) -> Result<Running<'_>> {
        let mut inner = self.lock();
        let mut left_out = Vec::new();
        for (name, definition) in Definition::all(&self.archive) {
            match definition {
                Ok(definition) if inner.users == 0 => self.start(&mut inner, name, definition)?,
                Ok(_) => {}
                Err(error) => left_out.push(error),
            }
        }
        inner.users += 1;
        Ok(Running { sinks: self, left_out })
    }

    /// Has all sinks, or the one of this name, deliver what is there, once.
    pub fn once(&self, name: Option<&str>) -> Result<()> {
        if let Some(name) = name {
            self.known(name)?;
        }
        self.changes.follow(&self.archive, system_clock(), &mut |_| ())?;
        let mut asked = Vec::new();
        for (known, definition) in Definition::all(&self.archive) {
            if let (true, Ok(definition)) = (name.is_none_or(|name| name == known), definition) {
                let mut inner = self.lock();
                // Who works already does not wait for its next try.
                end(inner.at_work.remove(&known));
                inner.at_work.insert(known.clone(), self.spawn(known.clone(), definition, Wish::Finish)?);
                asked.push(known);
            }
        }
        for name in asked {
            while self.lock().at_work.get(&name).is_some_and(|at_work| !at_work.thread.is_finished()) {
                std::thread::sleep(Duration::from_millis(FINISH_STEP_MS));
            }
            let mut inner = self.lock();
            end(inner.at_work.remove(&name));
            if inner.users > 0
                && let Some(definition) = Definition::load(&self.archive, &name)?
            {
                self.start(&mut inner, name, definition)?;
            }
        }
        Ok(())
    }

    /// Makes a sink, which begins `from` there.
    pub fn add(&self, name: &str, definition: &Definition, from: &Since) -> Result<()> {
        check_name(name)?;
        definition.wanted.filter()?;
        carrier::check(&definition.kind)?;
        let mut inner = self.lock();
        let all = Definition::all(&self.archive);
        if all.iter().any(|(known, _)| known == name) {
            return Err(Error::Sink {
                what: format!("there is a sink {name} already"),
                hint: format!("`skep sink remove {name}` first, or --name for another one"),
            });
        }
        if all.len() >= SINKS_MAX {
            return Err(Error::Sink {
                what: format!("there are {SINKS_MAX} sinks already"),
                hint: "`skep sink remove NAME`".into(),
            });
        }
        let mut state = State::default();
        self.set(&mut state, from)?;
        // A sink without a cursor would begin with the first event: the cursor is there before the sink is.
        settings::create_folder(&folder(&self.archive))?;
        state.store(&self.archive, name)?;
        definition.store(&self.archive, name)?;
        if inner.users > 0 {
            self.start(&mut inner, name.to_owned(), definition.clone())?;
        }
        Ok(())
    }

    /// Forgets a sink and its cursor. What was delivered stays where it is.
    pub fn remove(&self, name: &str) -> Result<()> {
        // One that makes no sense can be done without all the same.
        if !Definition::is_there(&self.archive, name)? {
            return Err(unknown(name));
        }
        let mut inner = self.lock();
        end(inner.at_work.remove(name));
        Definition::remove(&self.archive, name)?;
        State::remove(&self.archive, name)
    }

    /// Sends a sink back, or forward.
    pub fn replay(&self, name: &str, from: &Since) -> Result<()> {
        let definition = self.known(name)?;
        let mut inner = self.lock();
        end(inner.at_work.remove(name));
        let sent = self.send_back(name, from);
        // One that stays where it is works on, too.
        if inner.users > 0 {
            self.start(&mut inner, name.to_owned(), definition)?;
        }
        sent
    }

    fn send_back(&self, name: &str, from: &Since) -> Result<()> {
        // Where it begins is said now: that it cannot be read where it was does not matter any more.
        let mut state = match State::load(&self.archive, name) {
            Err(error) if !matches!(error, Error::Archive(skep_archive::Error::Newer { .. })) => State::default(),
            state => state?,
        };
        self.set(&mut state, from)?;
        (state.paused, state.failures, state.error, state.next_ms) = (false, 0, None, None);
        state.store(&self.archive, name)
    }

    /// How all of them stand.
    pub fn standings(&self) -> Result<Vec<Standing>> {
        let newest = self.changes.newest(&self.archive)?;
        let inner = self.lock();
        let mut standings = Vec::new();
        for (name, definition) in Definition::all(&self.archive) {
            let mut state = State::load(&self.archive, &name).unwrap_or_else(|error| State::unreadable(&error, &name));
            let definition = match definition {
                Ok(definition) => Some(definition),
                Err(error) => {
                    let hint = error.hint().unwrap_or_default();
                    (state.error, state.next_ms) = (Some(format!("{error}; {hint}")), None);
                    None
                }
            };
            let lag = match state.cursor.as_deref().map(str::parse::<Cursor>) {
                None => state.error.is_none().then_some(newest.number),
                Some(Ok(cursor)) if cursor.node == newest.node => Some(newest.number.saturating_sub(cursor.number)),
                Some(Ok(cursor)) if cursor.number == 0 => Some(newest.number),
                Some(_) => None,
            };
            let at_work = inner.at_work.get(&name).is_some_and(|at_work| !at_work.thread.is_finished());
            standings.push(Standing { name, definition, state, lag, at_work });
        }
        Ok(standings)
    }

    fn known(&self, name: &str) -> Result<Definition> {
        Definition::load(&self.archive, name)?.ok_or_else(|| unknown(name))
    }

    fn set(&self, state: &mut State, from: &Since) -> Result<()> {
        self.changes.follow(&self.archive, system_clock(), &mut |_| ())?;
        let newest = self.changes.newest(&self.archive)?;
        let start = Cursor { number: 0, ..newest.clone() };
        (state.since_ms, state.since_until) = (None, 0);
        (state.seen_ms, state.from_ms) = (None, None);
        let cursor = match from {
            Since::Start => start,
            Since::Now => {
                state.from_ms = Some(system_clock());
                newest
            }
            Since::Cursor(cursor) => {
                let cursor = self.changes.check(&self.archive, &From::After(cursor.clone()))?;
                state.from_ms = self.time_of(&cursor)?;
                cursor
            }
            Since::Time(time_ms) => {
                (state.since_ms, state.since_until) = (Some(*time_ms), newest.number);
                state.from_ms = Some(time_ms.saturating_add(SINK_OVERLAP_MS));
                start
            }
        };
        state.cursor = Some(cursor.to_string());
        Ok(())
    }

    /// When the event of a cursor was seen, or one not long before it; nothing before the first.
    fn time_of(&self, cursor: &Cursor) -> Result<Option<i64>> {
        let everything = Filter { classes: Classes::from_name("all"), ..Filter::default() };
        let (behind, mut time_ms) = (Some(cursor.number.saturating_add(1)), None);
        self.changes.newest_first(&self.archive, behind, SINK_CURSOR_LOOKED_MAX, &everything, |_, kept| {
            time_ms = Some(kept.time_ms);
            ControlFlow::Break(())
        })?;
        Ok(time_ms)
    }

    fn start(&self, inner: &mut Inner, name: String, definition: Definition) -> Result<()> {
        if inner.at_work.get(&name).is_some_and(|at_work| !at_work.thread.is_finished()) {
            return Ok(());
        }
        if inner.following.is_none() {
            inner.following = Some(self.follow()?);
        }
        let at_work = self.spawn(name.clone(), definition, Wish::Stay)?;
        inner.at_work.insert(name, at_work);
        Ok(())
    }

    fn spawn(&self, name: String, definition: Definition, first: Wish) -> Result<AtWork> {
        let (wish, heard) = watch::channel(first);
        let (archive, changes) = (self.archive.clone(), self.changes.clone());
        let thread = std::thread::Builder::new().name(format!("skep-sink-{name}")).spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(no_thread)?;
            runtime.block_on(keep_delivering(Delivery { archive, changes, name, definition, wish: heard }))
        });
        Ok(AtWork { wish, thread: thread.map_err(no_thread)? })
    }

    /// Keeps the log up to date while sinks work.
    fn follow(&self) -> Result<(Sender<()>, JoinHandle<()>)> {
        let (archive, changes) = (self.archive.clone(), self.changes.clone());
        let (stop, stopped) = channel();
        let thread = std::thread::Builder::new().name("skep-sinks".into()).spawn(move || {
            while stopped.recv_timeout(Duration::from_millis(SINK_FOLLOW_MS)) == Err(RecvTimeoutError::Timeout) {
                // What cannot be judged now is tried again; whoever asks for changes is told why.
                let _again = changes.follow(&archive, system_clock(), &mut |_| ());
            }
        });
        Ok((stop, thread.map_err(no_thread)?))
    }

    fn finish(&self, inner: &mut Inner) {
        if let Some((stop, thread)) = inner.following.take() {
            drop(stop);
            let _ended = thread.join();
            let _told_when_asked = self.changes.follow(&self.archive, system_clock(), &mut |_| ());
        }
        for at_work in inner.at_work.values() {
            at_work.wish.send_replace(Wish::Finish);
        }
        let until = Instant::now() + Duration::from_millis(SINK_FINISH_MS_MAX);
        while Instant::now() < until && inner.at_work.values().any(|at_work| !at_work.thread.is_finished()) {
            std::thread::sleep(Duration::from_millis(FINISH_STEP_MS));
        }
        for (_, at_work) in std::mem::take(&mut inner.at_work) {
            end(Some(at_work));
        }
    }
}

/// Where a sink begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Since {
    /// With the first event that is known.
    Start,
    /// With what comes.
    Now,
    /// Behind this event.
    Cursor(Cursor),
    /// With what was seen at this time or later.
    Time(i64),
}

/// Where the archive itself does not answer, or settings cannot be written, the sink says so as well as it can and tries again.
async fn keep_delivering(delivery: Delivery) -> Result<()> {
    let mut wish = delivery.wish.clone();
    loop {
        match deliver(delivery.clone()).await {
            Ok(()) => return Ok(()),
            Err(error) => {
                // How it stands is not forgotten because it cannot be read: whoever asks for it is told why.
                if let Ok(mut state) = State::load(&delivery.archive, &delivery.name) {
                    state.failed(error.to_string(), system_clock(), SINK_ARCHIVE_MS);
                    let _as_well_as_it_can = state.store(&delivery.archive, &delivery.name);
                }
                if *wish.borrow_and_update() != Wish::Stay {
                    return Err(error);
                }
                let _either = tokio::time::timeout(Duration::from_millis(SINK_ARCHIVE_MS), wish.changed()).await;
            }
        }
    }
}

fn end(at_work: Option<AtWork>) {
    if let Some(AtWork { wish, thread }) = at_work {
        wish.send_replace(Wish::Stop);
        let _its_state_tells = thread.join();
    }
}

fn unknown(name: &str) -> Error {
    Error::Sink { what: format!("there is no sink {name}"), hint: "`skep sink list` tells which there are".into() }
}

fn no_thread(error: std::io::Error) -> Error {
    Error::Sink { what: format!("a sink cannot be started: {error}"), hint: "`skep doctor` tells about limits".into() }
}
