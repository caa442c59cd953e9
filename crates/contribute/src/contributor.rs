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
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use skep_url::{Part as SitePart, Suffixes, Url};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::LocalSet;

use crate::link::Link;
use crate::meter::{Lately, Machine, Meter, Used, Wishes};
use crate::pipe::{self, Answered, Errand, Order, Setup, Told};
use crate::turns;
use crate::work::Work;

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
    pub lately: RefCell<Lately>,
    pub work: Work,
    pub zero: Instant,
    pub offset_ms: Cell<i64>,
    pub suffixes: Suffixes,
    orders: mpsc::UnboundedSender<Order>,
    waiting: RefCell<HashMap<u32, oneshot::Sender<Answered>>>,
    ticket: Cell<u32>,
    /// Bundles in hand, by number: host and what is being done.
    pub hand: RefCell<BTreeMap<u64, (String, String)>>,
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
    leaving: Cell<bool>,
    folder: PathBuf,
}

impl Main {
    pub fn now_ms(&self) -> u64 {
        self.zero.elapsed().as_millis() as u64
    }

    /// By the node's clock.
    pub fn time_ms(&self) -> i64 {
        skep_archive::system_clock() + self.offset_ms.get()
    }

    /// Something that its owner may want to know.
    pub fn note(&self, line: String) {
        (self.tell)(&line);
        self.lately.borrow_mut().say(line);
    }

    /// Has the fetcher fetch something; `None` when it is gone.
    pub async fn fetch(&self, errand: Errand) -> Option<Answered> {
        let ticket = self.ticket.get().wrapping_add(1);
        self.ticket.set(ticket);
        let (answer, answered) = oneshot::channel();
        self.waiting.borrow_mut().insert(ticket, answer);
        self.orders.send(Order::Fetch(Errand { ticket, ..errand })).ok()?;
        answered.await.ok()
    }

    /// The connection with a host is not needed any more.
    pub fn close(&self, origin: String) {
        let _fetcher_is_gone = self.orders.send(Order::Close { origin });
    }

    /// Waits until so many bytes may go over the line.
    pub async fn spend(&self, mut bytes: u64) {
        while bytes > 0 {
            let taken = self.meter.borrow_mut().take(bytes, self.zero.elapsed().as_micros() as u64);
            match taken {
                Ok(taken) => bytes -= taken.min(bytes),
                Err(until_us) => {
                    let wait = until_us.saturating_sub(self.zero.elapsed().as_micros() as u64).max(1_000);
                    tokio::time::sleep(Duration::from_micros(wait)).await;
                    if self.leaving.get() || self.meter.borrow().why_not().is_some() {
                        return;
                    }
                }
            }
        }
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
        match word {
            "status" => {}
            "pause" => meter.paused = true,
            "resume" => meter.paused = false,
            "finish" => (meter.finishing, meter.paused) = (true, false),
            other => return json!({ "error": format!("{other:?} is not status, pause, resume or finish") }),
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

/// Processes of ours that end with us.
struct Others(Vec<Child>);

impl Drop for Others {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _gone_already = child.kill();
            let _reaped = child.wait();
        }
    }
}

/// How often the machine is looked at.
const LOOK: Duration = Duration::from_millis(500);
const USED: &str = "used.json";

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
    let used: Used = std::fs::read(settings.folder.join(USED))
        .ok()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .unwrap_or_default();
    crate::sandbox::be_nice();
    let local = LocalSet::new();
    let work = Work::open(&settings.folder).map_err(wrong("results cannot be kept"))?;
    let (fetcher_end, main_end) = std::os::unix::net::UnixStream::pair().map_err(wrong("no sockets"))?;
    let (broker_main, main_broker) = std::os::unix::net::UnixStream::pair().map_err(wrong("no sockets"))?;
    let (fetcher_broker, broker_fetcher) = pipe::packets().map_err(wrong("no sockets"))?;
    let start = |role: &str, input: Stdio, output: Stdio| {
        let (program, words) = &settings.program;
        let mut command = Command::new(program);
        command.args(words).arg(role).env_clear().current_dir("/").stdin(input).stdout(output);
        command.spawn().map_err(|error| format!("{} cannot be started as {role}: {error}", program.display()))
    };
    let _others = Others(vec![
        start("broker", broker_fetcher.into(), Stdio::from(std::os::fd::OwnedFd::from(broker_main)))?,
        start("fetcher", std::os::fd::OwnedFd::from(fetcher_end).into(), Stdio::from(fetcher_broker))?,
    ]);
    let (orders, mut ordered) = mpsc::unbounded_channel();
    let main = Rc::new(Main {
        meter: RefCell::new(Meter::new(settings.wishes.clone(), used)),
        lately: RefCell::default(),
        work,
        zero: Instant::now(),
        offset_ms: Cell::new(0),
        suffixes: Suffixes::compiled(),
        orders,
        waiting: RefCell::default(),
        ticket: Cell::new(0),
        hand: RefCell::default(),
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
        leaving: Cell::new(false),
        folder: settings.folder.clone(),
    });
    look(&main);
    let link =
        Link::new(&settings.node, settings.folder.clone(), settings.setup.from, settings.setup.roots_pem.as_deref())?;
    let ended = local
        .run_until(async {
            let mut fetcher = pipe::stream(main_end.into()).map_err(wrong("no fetcher"))?;
            let mut broker = pipe::stream(main_broker.into()).map_err(wrong("no broker"))?;
            pipe::send(&mut broker, &settings.setup).await.map_err(wrong("no broker"))?;
            pipe::send(&mut fetcher, &settings.setup).await.map_err(wrong("no fetcher"))?;
            let (from_fetcher, mut to_fetcher) = fetcher.into_split();
            let ordering = async {
                while let Some(order) = ordered.recv().await {
                    if pipe::send(&mut to_fetcher, &order).await.is_err() {
                        return;
                    }
                }
            };
            let page = match settings.page {
                Some(address) => crate::control::page(address, &main).await,
                None => None,
            };
            if let Some(address) = page {
                main.note(format!("a page about it is at http://{address}/"));
            }
            tokio::task::spawn_local(crate::control::serve(socket, main.clone()));
            tokio::task::spawn_local(watch(main.clone()));
            tokio::select! {
                () = ordering => Err("the fetcher has ended".to_owned()),
                () = hear(from_fetcher, main.clone()) => Err("the fetcher has ended".to_owned()),
                ended = turns::contribute(link, main.clone(), &settings.team) => ended,
                () = stop => Ok(Ending::Finished),
            }
        })
        .await;
    keep_used(&main);
    crate::control::gone(&settings.folder);
    ended
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
                if let Some(waiting) = main.waiting.borrow_mut().remove(&answered.ticket) {
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
            Err(_)
                if main.meter.borrow().why_not().is_some_and(|why| matches!(why, crate::meter::WhyNot::Month(_))) =>
            {
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
    let machine = Machine {
        hour: now.hour().unsigned_abs(),
        month,
        on_battery: main.meter.borrow().wishes().mains_only && on_battery(Path::new("/sys/class/power_supply")),
        disk_bytes: main.work.bytes(),
    };
    main.meter.borrow_mut().look(machine);
}

/// Is there a battery, and does no mains supply feed the machine?
pub fn on_battery(supplies: &Path) -> bool {
    let read = |path: PathBuf| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let (mut battery, mut mains) = (false, false);
    for entry in std::fs::read_dir(supplies).into_iter().flatten().flatten() {
        match read(entry.path().join("type")).as_str() {
            "Battery" => battery |= read(entry.path().join("status")) == "Discharging",
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
    let used = serde_json::to_vec(&main.meter.borrow().used()).unwrap_or_default();
    let _tried_again_soon = crate::book::write_whole(&main.folder.join(USED), &used);
}

/// The address that contributors come from, where the owner chose one.
pub fn from(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| format!("{text:?} is no address"))
}
