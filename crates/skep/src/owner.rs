//! One process owns an archive. A command asks the owner, if there is one; else it becomes the owner for as long as it runs and answers
//! others meanwhile.

use crate::checked::CheckLines;
use crate::contributors::Contributors;
use crate::crawls::Crawls;
use crate::failure::{Failure, Result, say};
use crate::job::{self, Exit, Job, Tell};
use crate::node::Ring;
use crate::serve::Portals;
use serde_json::{Value, json};
use skep_archive::control::{self, Answer, Answering, Ask};
use skep_archive::{Archive, OpenOptions};
use skep_changes::Changes;
use skep_changes::sink::Sinks;
use skep_crawl::Question;
use skep_search::Text;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Which archive, and how answers are wanted.
pub struct Place {
    pub archive: PathBuf,
    /// Memory for what is kept at hand, if this process becomes the owner.
    pub memory_bytes: u64,
    pub json: bool,
}

impl Place {
    /// How this process opens the archive.
    pub fn options(&self) -> OpenOptions {
        OpenOptions { cache_bytes: self.memory_bytes, ..OpenOptions::default() }
    }
}

/// What the owner of an archive has.
pub struct Owned {
    pub archive: Arc<Archive>,
    pub crawls: Arc<Crawls>,
    pub portals: Portals,
    /// Where this process listens: no crawl asks there.
    pub listening: skep_fetch::Listening,
    pub text: Arc<Text>,
    pub changes: Arc<Changes>,
    pub sinks: Sinks,
    pub contributors: Contributors,
    pub ring: Ring,
}

impl Owned {
    /// Answers a question about crawls.
    pub fn ask(&self, question: &Question) -> Result<Vec<Value>> {
        self.crawls.ask(&self.archive, question)
    }
}

/// How long to wait for an owner that is just starting, or just stopping.
const HANDOVER: Duration = Duration::from_secs(10);
const HANDOVER_STEP: Duration = Duration::from_millis(20);
/// How long an owner that is done waits for those who are still reading its answer. Shorter than others wait for the handover.
const READERS_WAIT: Duration = Duration::from_secs(5);
const _: () = assert!(READERS_WAIT.as_millis() < HANDOVER.as_millis());
const JOBS: &str = "/api/v1/jobs";
/// The status of an answer from an owner that is on its way out.
const LEAVING: u16 = 503;

/// Does a job: by the owner of the archive, or as its owner.
pub fn perform(place: &Place, create: bool, job: &Job, tell: &mut dyn Tell) -> Result<Exit> {
    let folder = &place.archive;
    let since = Instant::now();
    loop {
        if let Some(exit) = ask(folder, job, tell)? {
            return Ok(exit);
        }
        match Archive::open(folder, OpenOptions { create, ..place.options() }) {
            Err(skep_archive::Error::Locked { .. }) if since.elapsed() < HANDOVER => std::thread::sleep(HANDOVER_STEP),
            Err(error) => return Err(error.into()),
            Ok(archive) => return as_owner(archive, |owned| job::perform(owned, job, tell)),
        }
    }
}

/// Opens an archive for whoever means to own it for long; waits for an owner that is just stopping.
pub fn open(folder: &Path, options: impl Fn() -> OpenOptions) -> Result<Archive> {
    let since = Instant::now();
    loop {
        match Archive::open(folder, options()) {
            Err(skep_archive::Error::Locked { .. }) if since.elapsed() < HANDOVER => std::thread::sleep(HANDOVER_STEP),
            opened => return Ok(opened?),
        }
    }
}

/// Serves others while `work` runs, then closes the archive.
pub fn as_owner(archive: Archive, work: impl FnOnce(&Owned) -> Result<Exit>) -> Result<Exit> {
    for finding in archive.opened() {
        say(&format!("note: {finding}"));
    }
    let socket = archive.layout().control();
    let archive = Arc::new(archive);
    let text = Arc::new(Text::open(archive.clone())?);
    let changes = Arc::new(Changes::new(CheckLines::default()));
    let owned = Arc::new(Owned {
        sinks: Sinks::new(archive.clone(), changes.clone()),
        archive,
        crawls: Arc::default(),
        portals: Portals::default(),
        listening: skep_fetch::Listening::default(),
        text,
        changes,
        contributors: Contributors::default(),
        ring: Ring::default(),
    });
    let guests = Arc::new(Guests::default());
    let (shared, counted) = (Arc::clone(&owned), Arc::clone(&guests));
    let server = control::serve(
        &socket,
        Arc::new(move |ask: Ask, answer: &mut Answering| answer_to(&shared, &counted, &ask, answer)),
    )?;
    let result = work(&owned);
    if let Some(name) = owned.crawls.running() {
        say(&format!("note: this process stays until the crawl {name} ends, which was typed elsewhere"));
    }
    guests.wait();
    server.finish(READERS_WAIT);
    owned.text.stop();
    // A request under way may still hold the archive; closing waits for what was appended either way.
    let archive = Arc::try_unwrap(owned).map(|Owned { archive, text, sinks, .. }| {
        drop((text, sinks));
        Arc::try_unwrap(archive)
    });
    match archive {
        Ok(Ok(archive)) => archive.close()?,
        Ok(Err(archive)) => archive.settle()?,
        Err(shared) => shared.archive.settle()?,
    }
    result
}

/// Those for whom this process is writing. It does not leave before they are done; one who comes later asks the next owner.
#[derive(Default)]
struct Guests {
    writing: Mutex<(usize, Leaving)>,
    fewer: Condvar,
}

type Leaving = bool;

impl Guests {
    /// Does the work, unless this process is leaving.
    fn write(&self, work: impl FnOnce()) -> bool {
        let mut writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        if writing.1 {
            return false;
        }
        writing.0 += 1;
        drop(writing);
        work();
        self.writing.lock().unwrap_or_else(PoisonError::into_inner).0 -= 1;
        self.fewer.notify_all();
        true
    }

    fn wait(&self) {
        let writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let busy = self.fewer.wait_while(writing, |(count, _)| *count > 0);
        busy.unwrap_or_else(PoisonError::into_inner).1 = true;
    }
}

/// Asks the process that runs this crawl, this one or another, to finish what is in flight and to end. Asks again while the crawl is just
/// beginning; whoever waits for its end ends with it.
pub fn stop_crawl(folder: &Path, name: &str) {
    stop(folder, &Job::Stop { name: name.to_owned() });
}

/// The same for a portal.
pub fn stop_portal(folder: &Path, name: &str) {
    stop(folder, &Job::StopServing { name: name.to_owned() });
}

fn stop(folder: &Path, job: &Job) {
    let heard = || ask(folder, job, &mut crate::show::Collected::default());
    while !matches!(heard(), Ok(Some(Exit::Done))) {
        std::thread::sleep(HANDOVER_STEP);
    }
}

/// `None` if nobody owns the archive.
pub fn ask(folder: &Path, job: &Job, tell: &mut dyn Tell) -> Result<Option<Exit>> {
    let socket = folder.join("control");
    let body = serde_json::to_vec(job).map_err(|error| Failure::new("the request cannot be written").because(error))?;
    // A socket that nobody answers, or that breaks off before the first line, is that of an owner on its way out.
    let Ok(Some(mut answer)) = control::ask(&socket, Ask::post(JOBS, body)) else { return Ok(None) };
    if answer.status() == LEAVING {
        return Ok(None);
    }
    hear(&mut answer, tell)
}

fn hear(answer: &mut Answer, tell: &mut dyn Tell) -> Result<Option<Exit>> {
    let mut heard = false;
    loop {
        let line = match answer.next_line() {
            Ok(Some(line)) => line,
            Ok(None) | Err(_) if !heard => return Ok(None),
            Ok(None) | Err(_) => {
                return Err(Failure::new("the process that owns the archive stopped in the middle of its answer")
                    .hint("type the command again: it will be done by whoever owns the archive then"));
            }
        };
        heard = true;
        let mut told: Value = serde_json::from_str(&line)
            .map_err(|error| Failure::new("the owner's answer makes no sense").because(error))?;
        match told.get("tell").and_then(Value::as_str) {
            Some("line") => tell.line(told["value"].take())?,
            Some("bytes") => tell.bytes(&unhex(told["value"].as_str().unwrap_or_default()))?,
            Some("talk") => tell.talk(told["value"].as_str().unwrap_or_default()),
            Some("progress") => tell.progress(told["done"].as_u64().unwrap_or(0), told["of"].as_u64().unwrap_or(0)),
            Some("exit") => {
                let exit = serde_json::from_value(told["value"].take()).unwrap_or(Exit::Failed);
                return Ok(Some(exit));
            }
            Some("failure") => {
                let text = |name: &str| told[name].as_str().map(str::to_owned);
                return Err(Failure {
                    what: text("what").unwrap_or_default(),
                    because: text("because"),
                    hint: text("hint"),
                    reader_left: false,
                });
            }
            _ => return Err(Failure::new("the owner's answer makes no sense").because(line)),
        }
    }
}

fn answer_to(owned: &Owned, guests: &Guests, ask: &Ask, answer: &mut Answering) {
    if (ask.method.as_str(), ask.path.as_str()) != ("POST", JOBS) {
        let _ = answer.begin(404, "application/json");
        let _ = answer.line(&json!({ "error": format!("there is no {} {}", ask.method, ask.path) }).to_string());
        return;
    }
    let job: Job = match serde_json::from_slice(&ask.body) {
        Ok(job) => job,
        Err(error) => {
            let _ = answer.begin(400, "application/json");
            let _ = answer.line(&json!({ "tell": "failure", "what": format!("not a job: {error}") }).to_string());
            return;
        }
    };
    let mut asked = || perform_for(owned, &job, answer);
    if !job.writes() {
        asked();
    } else if !guests.write(asked) {
        let _ = answer.begin(LEAVING, "application/json");
    }
}

fn perform_for(owned: &Owned, job: &Job, answer: &mut Answering) {
    let mut line = Line { answer };
    let last = match job::perform(owned, job, &mut line) {
        Ok(exit) => json!({ "tell": "exit", "value": exit }),
        Err(failure) => {
            json!({ "tell": "failure", "what": failure.what, "because": failure.because, "hint": failure.hint })
        }
    };
    let _ = line.answer.line(&last.to_string());
}

/// Tells over the socket.
struct Line<'a> {
    answer: &'a mut Answering,
}

impl Line<'_> {
    fn send(&mut self, value: &Value) -> Result<()> {
        let gone = |_| Failure { reader_left: true, ..Failure::new("the asker went away") };
        self.answer.line(&value.to_string()).map_err(gone)
    }
}

impl Tell for Line<'_> {
    fn line(&mut self, value: Value) -> Result<()> {
        self.send(&json!({ "tell": "line", "value": value }))
    }
    fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.send(&json!({ "tell": "bytes", "value": hex(bytes) }))
    }
    fn talk(&mut self, text: &str) {
        let _ = self.send(&json!({ "tell": "talk", "value": text }));
    }
    fn progress(&mut self, done: u64, of: u64) {
        let _ = self.send(&json!({ "tell": "progress", "done": done, "of": of }));
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

fn unhex(text: &str) -> Vec<u8> {
    let digit = |b: u8| char::from(b).to_digit(16).unwrap_or(0) as u8;
    text.as_bytes().chunks_exact(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}
