//! The volunteer's side, main process: takes bundles, has them fetched, returns what came. The spine of this side.
//!
//! ```text
//!  node ──bundles──▶ carry: one bundle at its pace ──errands──▶ fetcher (locked in) ◀──connections── broker (the owner's rules)
//!   ▲                   │ finished: on disk
//!   └── results, wanted bodies ── give back
//! ```

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use skep_url::{Part as SitePart, Suffixes, Url};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::LocalSet;

use crate::limits::STUCK_MS;
use crate::link::Link;
use crate::message::Fetched;
use crate::meter::{Asks, Lately, Machine, Meter, Used, Wishes};
use crate::pipe::{self, Answered, Errand, Order, Setup, Told};
use crate::turns;
use crate::work::{Whose, Work};

/// What a contributor is asked to be.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The node.
    pub node: Url,
    /// Where its key, its results and its socket are.
    pub folder: PathBuf,
    /// What the owner allows.
    pub wishes: Wishes,
    /// What the other two processes are told.
    pub setup: Setup,
    /// The team it belongs to.
    pub team: String,
    /// Where the page about it is, on this machine.
    pub page: Option<SocketAddr>,
    /// This program: it is started again as broker and as fetcher, with these words before the role.
    pub program: (PathBuf, Vec<String>),
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Told to finish, and finished.
    Finished,
    /// Told to finish, but the node does not answer: so many bundles wait on disk for the next start.
    Unreturned(usize),
    /// The node wants no more of it.
    Stopped(String),
}

/// Everything that the tasks of main share.
pub(crate) struct Main {
    pub meter: RefCell<Meter>,
    /// As they were last written.
    asks: RefCell<Asks>,
    pub lately: RefCell<Lately>,
    pub work: Work,
    pub zero: Instant,
    pub offset_ms: Cell<i64>,
    /// From where it speaks, as the node sees it; and that this is another address than before.
    pub seen_from: Cell<Option<IpAddr>>,
    pub moved: Notify,
    pub suffixes: Suffixes,
    orders: mpsc::UnboundedSender<Order>,
    /// Who waits for the fetcher, and what he hears if it is gone.
    waiting: RefCell<HashMap<u32, (oneshot::Sender<Answered>, Answered)>>,
    ticket: Cell<u32>,
    /// Bundles in hand, by number: host and what is being done.
    pub hand: RefCell<BTreeMap<u64, (String, String)>>,
    /// Bundles that its owner's rules forbid: to be given back.
    pub declined: RefCell<Vec<(Whose, u64)>>,
    pub changed: Notify,
    /// Short bundles that wait for a connection.
    pub short: Cell<usize>,
    pub pages: Cell<u64>,
    pub returned: Cell<u64>,
    pub sandbox: RefCell<Vec<String>>,
    tried: RefCell<Vec<oneshot::Sender<Vec<(String, bool, String)>>>>,
    pub node: RefCell<String>,
    pub name: RefCell<String>,
    pub said: RefCell<String>,
    tell: Box<dyn Fn(&str)>,
    pub over: Notify,
    /// The fetcher has not answered for so long that it never will.
    stuck: Notify,
    folder: PathBuf,
}

impl Main {
    pub fn now_ms(&self) -> u64 {
        self.zero.elapsed().as_millis() as u64
    }

    /// By the node's clock.
    pub fn time_ms(&self) -> i64 {
        skep_archive::system_clock().saturating_add(self.offset_ms.get())
    }

    /// Something that its owner may want to know.
    pub fn note(&self, line: String) {
        (self.tell)(&line);
        self.lately.borrow_mut().say(line);
    }

    /// Has the fetcher fetch something; `None` when it is gone for good. One that is stuck, for a page was too much for it, heeds no wish of
    /// its owner's any more: it is ended.
    pub async fn fetch(&self, errand: Errand) -> Option<Answered> {
        let ticket = self.ticket.get().wrapping_add(1);
        self.ticket.set(ticket);
        let (answer, answered) = oneshot::channel();
        let (patience, unfetched) = (Duration::from_millis(u64::from(errand.most_ms) + STUCK_MS), unfetched(&errand));
        self.waiting.borrow_mut().insert(ticket, (answer, unfetched.clone()));
        self.orders.send(Order::Fetch(Errand { ticket, ..errand })).ok()?;
        match tokio::time::timeout(patience, answered).await {
            Ok(answered) => answered.ok(),
            Err(_) => {
                self.waiting.borrow_mut().remove(&ticket);
                self.stuck.notify_one();
                Some(unfetched)
            }
        }
    }

    /// Is nothing said to the node either? What is used up is used up.
    pub fn is_at_rest(&self) -> bool {
        let meter = self.meter.borrow();
        meter.paused || meter.is_month_used()
    }

    /// Waits so long, or until it is to stop; then not for long.
    pub async fn waits(&self, long: Duration) {
        let longest = if self.meter.borrow().finishing { FINISH_WAIT } else { long };
        tokio::select! {
            () = tokio::time::sleep(long.min(longest)) => {}
            () = self.over.notified() => {}
        }
    }

    /// The fetcher is gone: what it had in hand is for the node itself.
    fn gone(&self) {
        for (_, (waiting, unfetched)) in std::mem::take(&mut *self.waiting.borrow_mut()) {
            let _gave_up = waiting.send(unfetched);
        }
    }

    /// The connection with a host is not needed any more.
    pub fn close(&self, origin: String) {
        let _fetcher_is_gone = self.orders.send(Order::Close { origin });
    }

    /// So many bytes have gone over the line: waits until they are paid for.
    pub async fn spend(&self, bytes: u64) {
        let until_us = self.meter.borrow_mut().spent(bytes, self.zero.elapsed().as_micros() as u64);
        tokio::time::sleep(Duration::from_micros(until_us).saturating_sub(self.zero.elapsed())).await;
    }

    /// The site of a URL, as politeness counts.
    pub fn site(&self, url: &Url) -> String {
        url.site(&self.suffixes, SitePart::Whole).to_owned()
    }

    /// How it stands.
    pub fn status(&self) -> Value {
        let meter = self.meter.borrow();
        let used = meter.used();
        let doing: Vec<Value> = self
            .hand
            .borrow()
            .iter()
            .map(|(id, (host, doing))| json!({ "bundle": id, "host": host, "doing": doing }))
            .collect();
        let why = meter.why_no_more().map(|why| why.to_string());
        json!({
            "node": *self.node.borrow(),
            "name": *self.name.borrow(),
            "seen-from": self.seen_from.get().map(|address| address.to_string()),
            "state": match (meter.paused, meter.finishing) {
                (_, true) => "finishing",
                (true, false) => "paused",
                (false, false) if why.is_some() => "waiting",
                (false, false) => "working",
            },
            "why-not-more": why.unwrap_or_else(|| self.said.borrow().clone()),
            "pages": self.pages.get(),
            "bundles-returned": self.returned.get(),
            "connections": meter.open(),
            "bytes": used.bytes,
            "month-bytes": used.month_bytes,
            "rate": meter.wishes().rate,
            "disk-bytes": self.work.bytes(),
            "in-hand": doing,
            "sandbox": *self.sandbox.borrow(),
            "lately": self.lately.borrow().lines().collect::<Vec<_>>(),
        })
    }

    /// What the owner says meanwhile; what is answered.
    pub fn hear(&self, word: &str) -> Value {
        let mut meter = self.meter.borrow_mut();
        let paused = self.folder.join(PAUSED);
        match word {
            "status" => {}
            "pause" => {
                meter.paused = true;
                // Where it cannot be written it holds until the end of this process.
                let _until_then = std::fs::write(paused, b"");
            }
            "resume" => {
                meter.paused = false;
                let _was_none = std::fs::remove_file(paused);
            }
            // Whoever ends with the machine was not told to go on.
            "finish" => (meter.finishing, meter.paused) = (true, false),
            "finish-and-stop" => {
                (meter.finishing, meter.paused) = (true, false);
                let _was_none = std::fs::remove_file(paused);
            }
            other => {
                let words = "status, pause, resume, finish or finish-and-stop";
                return json!({ "error": format!("{other:?} is not {words}") });
            }
        }
        if meter.finishing {
            self.over.notify_waiters();
        }
        drop(meter);
        self.changed.notify_waiters();
        self.status()
    }

    /// Has the fetcher try what must not be possible.
    pub async fn try_sandbox(&self) -> Vec<(String, bool, String)> {
        let (answer, answered) = oneshot::channel();
        self.tried.borrow_mut().push(answer);
        let _fetcher_is_gone = self.orders.send(Order::Try);
        answered.await.unwrap_or_default()
    }
}

/// What is said of an errand during which the fetcher ended: this machine could not do it.
fn unfetched(errand: &Errand) -> Answered {
    let fetched = Fetched {
        number: errand.number,
        url: if errand.decide.is_some() { errand.url.clone() } else { String::new() },
        fault: "local-resources".to_owned(),
        ..Fetched::default()
    };
    Answered { fetched, stop: true, ..Answered::default() }
}

/// Processes of ours that end with us.
struct Others {
    children: Vec<Child>,
    /// The broker ends when this is closed.
    broker: Option<tokio::net::UnixStream>,
}

impl Drop for Others {
    fn drop(&mut self) {
        self.broker = None;
        for child in &mut self.children {
            let _gone_already = child.kill();
            let _reaped = child.wait();
        }
    }
}

/// A fetcher that ran for so long before it ended did not end because of how it began.
const CALM: Duration = Duration::from_secs(60);
/// It is started anew so often in a row.
const FETCHERS_MAX: u32 = 5;
/// How often the machine is looked at.
const LOOK: Duration = Duration::from_millis(500);
/// Whoever is to finish waits no longer for a node that is in trouble.
const FINISH_WAIT: Duration = Duration::from_secs(2);
const USED: &str = "used.json";
/// Is there while it is to rest, also over a restart.
const PAUSED: &str = "paused";
const ASKS: &str = "asks.json";

/// Runs until it is told to stop. `tell` takes what happens, a line each; `stop` ends it when it is done.
pub async fn run(
    settings: Settings,
    tell: Box<dyn Fn(&str)>,
    stop: impl Future<Output = ()>,
) -> Result<Ending, String> {
    let wrong = |what: &str| {
        let what = what.to_owned();
        move |error: io::Error| format!("{what}: {error}")
    };
    std::fs::create_dir_all(&settings.folder).map_err(wrong("the folder cannot be made"))?;
    let socket = crate::control::listen(&settings.folder)?;
    let (used, asks): (Used, Asks) = (kept(&settings.folder.join(USED)), kept(&settings.folder.join(ASKS)));
    let mut meter = Meter::new(settings.wishes.clone(), used);
    meter.remember(asks);
    meter.paused = settings.folder.join(PAUSED).exists();
    crate::sandbox::be_nice();
    crate::sandbox::hand_nothing_down();
    let local = LocalSet::new();
    let work = Work::open(&settings.folder).map_err(wrong("results cannot be kept"))?;
    let (orders, mut ordered) = mpsc::unbounded_channel();
    let main = Rc::new(Main {
        meter: RefCell::new(meter),
        asks: RefCell::default(),
        lately: RefCell::default(),
        work,
        zero: Instant::now(),
        offset_ms: Cell::new(0),
        seen_from: Cell::new(None),
        moved: Notify::new(),
        suffixes: Suffixes::compiled(),
        orders,
        waiting: RefCell::default(),
        ticket: Cell::new(0),
        hand: RefCell::default(),
        declined: RefCell::default(),
        changed: Notify::new(),
        short: Cell::new(0),
        pages: Cell::new(0),
        returned: Cell::new(0),
        sandbox: RefCell::default(),
        tried: RefCell::default(),
        node: RefCell::new(settings.node.to_string()),
        name: RefCell::default(),
        said: RefCell::default(),
        tell,
        over: Notify::new(),
        stuck: Notify::new(),
        folder: settings.folder.clone(),
    });
    look(&main);
    let link = Link::new(&settings.node, settings.folder.clone(), &settings.setup)?;
    let ended = local
        .run_until(async {
            let page = match settings.page {
                Some(address) => crate::control::page(address, &main).await,
                None => None,
            };
            if let Some(address) = page {
                main.note(format!("a page about it is at http://{address}/"));
            }
            if main.meter.borrow().paused {
                main.note("paused, as it was when it ended; `skep contribute --resume` goes on".to_owned());
            }
            tokio::task::spawn_local(crate::control::serve(socket, main.clone()));
            tokio::task::spawn_local(watch(main.clone()));
            let contributing = turns::contribute(link, main.clone(), &settings.team);
            tokio::pin!(contributing, stop);
            let mut in_a_row = 0;
            loop {
                let began = Instant::now();
                let (mut others, fetcher) = begin(&settings).await?;
                let mut broker = others.broker.take();
                let telling = async {
                    while let Some(broker) = &mut broker {
                        if let Some(address) = main.seen_from.get()
                            && pipe::send(broker, &address).await.is_err()
                        {
                            return;
                        }
                        main.moved.notified().await;
                    }
                };
                let (from_fetcher, mut to_fetcher) = fetcher.into_split();
                let ordering = async {
                    while let Some(order) = ordered.recv().await {
                        if pipe::send(&mut to_fetcher, &order).await.is_err() {
                            return;
                        }
                    }
                };
                tokio::select! {
                    () = ordering => {}
                    () = hear(from_fetcher, main.clone()) => {}
                    () = telling => {}
                    () = main.stuck.notified() => main.note("the fetcher does not answer".to_owned()),
                    ended = &mut contributing => return ended,
                    () = &mut stop => return Ok(Ending::Finished),
                }
                // A page may have been too much for it. What it was to do is not done by the next one.
                drop((broker, others));
                while ordered.try_recv().is_ok() {}
                main.gone();
                in_a_row = if began.elapsed() > CALM { 1 } else { in_a_row + 1 };
                if in_a_row > FETCHERS_MAX {
                    return Err("the fetcher ends again and again".to_owned());
                }
                main.note("the fetcher has ended, and is started anew".to_owned());
                tokio::time::sleep(Duration::from_secs(1 << in_a_row)).await;
            }
        })
        .await;
    keep_used(&main);
    crate::control::gone(&settings.folder);
    ended
}

/// Starts broker and fetcher, and tells them what the owner allows.
async fn begin(settings: &Settings) -> Result<(Others, tokio::net::UnixStream), String> {
    let wrong = |what: &'static str| move |error: io::Error| format!("{what}: {error}");
    let (fetcher_end, main_end) = std::os::unix::net::UnixStream::pair().map_err(wrong("no sockets"))?;
    let (broker_main, main_broker) = std::os::unix::net::UnixStream::pair().map_err(wrong("no sockets"))?;
    let (fetcher_broker, broker_fetcher) = pipe::packets().map_err(wrong("no sockets"))?;
    let start = |role: &str, input: Stdio, output: Stdio| {
        let (program, words) = &settings.program;
        let mut command = Command::new(program);
        command.args(words).arg(role).env_clear().current_dir("/").stdin(input).stdout(output);
        // Ctrl-C is for main, which finishes with them what is in hand.
        command.process_group(0);
        command.spawn().map_err(|error| format!("{} cannot be started as {role}: {error}", program.display()))
    };
    let broker = start("broker", broker_fetcher.into(), Stdio::from(std::os::fd::OwnedFd::from(broker_main)))?;
    let mut others = Others { children: vec![broker], broker: None };
    others.children.push(start(
        "fetcher",
        std::os::fd::OwnedFd::from(fetcher_end).into(),
        Stdio::from(fetcher_broker),
    )?);
    let mut fetcher = pipe::stream(main_end.into()).map_err(wrong("no fetcher"))?;
    let mut broker = pipe::stream(main_broker.into()).map_err(wrong("no broker"))?;
    pipe::send(&mut broker, &settings.setup).await.map_err(wrong("no broker"))?;
    pipe::send(&mut fetcher, &settings.setup).await.map_err(wrong("no fetcher"))?;
    others.broker = Some(broker);
    Ok((others, fetcher))
}

/// What was kept over a restart, as far as it can be read.
fn kept<T: serde::de::DeserializeOwned + Default>(path: &Path) -> T {
    std::fs::read(path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}

/// What the fetcher says.
async fn hear(from: tokio::net::unix::OwnedReadHalf, main: Rc<Main>) {
    let mut from = pipe::gathered(from);
    while let Ok(Some(told)) = pipe::receive::<_, Told>(&mut from).await {
        match told {
            Told::Ready(how) => {
                how.iter().for_each(|line| main.note(format!("sandbox: {line}")));
                main.sandbox.replace(how);
                main.changed.notify_waiters();
            }
            Told::Fetched(answered) => {
                if let Some((waiting, _)) = main.waiting.borrow_mut().remove(&answered.ticket) {
                    let _gave_up = waiting.send(*answered);
                }
            }
            Told::Want { bytes } => {
                let main = main.clone();
                tokio::task::spawn_local(async move { grant(bytes, &main).await });
            }
            Told::Tried(tried) => main.tried.borrow_mut().drain(..).for_each(|asked| drop(asked.send(tried.clone()))),
        }
    }
}

/// Lets the fetcher read some bytes, when the owner's wishes allow it.
async fn grant(bytes: u64, main: &Main) {
    loop {
        let now_us = main.zero.elapsed().as_micros() as u64;
        let taken = main.meter.borrow_mut().take(bytes, now_us);
        match taken {
            Ok(bytes) => {
                let _fetcher_is_gone = main.orders.send(Order::Grant { bytes });
                return;
            }
            Err(_) if main.meter.borrow().is_month_over() => {
                let _fetcher_is_gone = main.orders.send(Order::Grant { bytes: 0 });
                return;
            }
            Err(until_us) => tokio::time::sleep(Duration::from_micros((until_us - now_us).max(200))).await,
        }
    }
}

/// Looks at the machine.
fn look(main: &Main) {
    let now = jiff::Zoned::now();
    let utc = now.with_time_zone(jiff::tz::TimeZone::UTC);
    let month = u32::try_from(i32::from(utc.year()) * 12 + i32::from(utc.month())).unwrap_or(0);
    let day = skep_archive::system_clock().div_euclid(86_400_000);
    let machine = Machine {
        day: u32::try_from(day).unwrap_or(0),
        hour: now.hour().unsigned_abs(),
        month,
        on_battery: main.meter.borrow().wishes().mains_only && on_battery(Path::new("/sys/class/power_supply")),
        disk_bytes: main.work.bytes(),
    };
    main.meter.borrow_mut().look(machine);
}

/// Is there a battery, and does no mains supply feed the machine? That of a mouse or a phone feeds no machine.
pub fn on_battery(supplies: &Path) -> bool {
    let read = |path: PathBuf| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let (mut battery, mut mains) = (false, false);
    for entry in std::fs::read_dir(supplies).into_iter().flatten().flatten() {
        match read(entry.path().join("type")).as_str() {
            _ if read(entry.path().join("scope")) == "Device" => {}
            "Battery" | "UPS" => battery |= read(entry.path().join("status")) == "Discharging",
            "Mains" | "USB" => mains |= read(entry.path().join("online")) == "1",
            _ => {}
        }
    }
    battery && !mains
}

async fn watch(main: Rc<Main>) {
    let mut kept = Instant::now();
    loop {
        tokio::time::sleep(LOOK).await;
        let before = main.meter.borrow().why_not();
        look(&main);
        let after = main.meter.borrow().why_not();
        if before != after {
            main.note(after.map_or_else(|| "working again".to_owned(), |why| format!("nothing is fetched: {why}")));
            main.changed.notify_waiters();
        }
        if kept.elapsed() > Duration::from_secs(5) {
            kept = Instant::now();
            keep_used(&main);
        }
    }
}

fn keep_used(main: &Main) {
    let meter = main.meter.borrow();
    let used = serde_json::to_vec(meter.used()).unwrap_or_default();
    let _tried_again_soon = crate::book::write_whole(&main.folder.join(USED), &used);
    let asks = meter.asks();
    if main.asks.replace(asks.clone()) != asks {
        let asks = serde_json::to_vec(&asks).unwrap_or_default();
        let _tried_again_soon = crate::book::write_whole(&main.folder.join(ASKS), &asks);
    }
}

/// The address that contributors come from, where the owner chose one.
pub fn from(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| format!("{text:?} is no address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_feeds_the_machine_decides_and_not_what_feeds_a_mouse() {
        let folder = tempfile::tempdir().unwrap();
        let supply = |name: &str, files: &[(&str, &str)]| {
            std::fs::create_dir_all(folder.path().join(name)).unwrap();
            for (file, text) in files {
                std::fs::write(folder.path().join(name).join(file), format!("{text}\n")).unwrap();
            }
        };
        assert!(!on_battery(folder.path()), "a machine without a battery");
        supply("mouse", &[("type", "Battery"), ("scope", "Device"), ("status", "Discharging")]);
        assert!(!on_battery(folder.path()));
        supply("BAT0", &[("type", "Battery"), ("scope", "System"), ("status", "Discharging")]);
        assert!(on_battery(folder.path()));
        supply("AC", &[("type", "Mains"), ("online", "1")]);
        assert!(!on_battery(folder.path()));
        supply("AC", &[("online", "0")]);
        supply("BAT0", &[("status", "Full")]);
        supply("ups", &[("type", "UPS"), ("status", "Discharging")]);
        assert!(on_battery(folder.path()));
    }
}
