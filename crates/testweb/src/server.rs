//! The server: listens, asks the world, and tells the auditor. Everything it decides is decided elsewhere.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use skep_url::{Part, Suffixes};
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::{Semaphore, watch};

use crate::audit::{Auditor, Request};
use crate::behaviour::Behaviour;
use crate::clock::{Clock, Time};
use crate::policy::Policy;
use crate::proof::{self, Proof, Proofs};
use crate::report::Report;
use crate::tls::{self, Authority};
use crate::world::{Host, World};
use crate::{answering, control, dns, limits, pits};

/// How a world is served.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Ports on every address; each speaks HTTP and HTTPS. 0 lets the system choose.
    pub ports: Vec<u16>,
    /// Port of the control server on 127.0.0.1; 0 lets the system choose.
    pub control_port: u16,
    /// Port of the name server on 127.0.0.1; 0 lets the system choose.
    pub dns_port: u16,
    /// The clock; without one it begins 180 days after the world and runs naturally.
    pub clock: Option<Clock>,
    /// What the auditor counts as impolite.
    pub policy: Policy,
    /// Every request is appended to this file as a line of JSON when it ends.
    pub request_log: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            ports: vec![0],
            control_port: 0,
            dns_port: 0,
            clock: None,
            policy: Policy::default(),
            request_log: None,
        }
    }
}

/// A web that is being served, until it is dropped.
///
/// It has threads of its own, so it may be held in plain tests and in asynchronous ones.
pub struct Web {
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

/// Where the hosts of a web are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Map {
    /// The control server.
    pub control: String,
    /// `ADDRESS:PORT` of the name server, which knows these hosts and no others, over UDP and TCP.
    pub dns: String,
    /// Hosts by name.
    pub hosts: Vec<Place>,
}

/// Where one host is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Its name.
    pub host: String,
    /// Its site.
    pub site: String,
    /// Its home page, as its own links say it.
    pub url: String,
    /// Where it answers, HTTP and HTTPS alike.
    pub addresses: Vec<SocketAddr>,
    /// `HOST=ADDRESS:PORT`, one for each; then `*.HOST=ADDRESS:PORT` where names below it are it, too.
    pub resolve: Vec<String>,
}

/// Why a web cannot be served.
#[derive(Debug)]
pub struct StartError {
    what: String,
    because: String,
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  because: {}", self.what, self.because)
    }
}

impl std::error::Error for StartError {}

/// What the parts of a running server share.
pub(crate) struct Shared {
    pub world: Arc<World>,
    pub authority: Arc<Authority>,
    pub map: Map,
    pub began: Instant,
    pub suffixes: Suffixes,
    pub stop: watch::Sender<bool>,
    pub tls: Arc<rustls::ServerConfig>,
    pub connections: Arc<Semaphore>,
    clock: Mutex<Clock>,
    auditor: Mutex<Auditor>,
    log: Mutex<Option<BufWriter<File>>>,
    behaviours: RwLock<HashMap<String, Behaviour>>,
    behaviours_changed: watch::Sender<()>,
    /// Nobody can be reached: see [`Web::cut`].
    pub cut: watch::Sender<bool>,
    counts: HashMap<String, AtomicU64>,
    counts_at: HashMap<IpAddr, AtomicU64>,
    questions: Mutex<Questions>,
    pub proofs: Proofs,
}

/// Questions to the name server.
#[derive(Default)]
struct Questions {
    by_name: HashMap<String, u64>,
    second: u64,
    in_second: u64,
}

impl Web {
    /// Listens on all addresses of the world's hosts. Returns when connections are taken.
    pub fn start(world: World, settings: Settings) -> Result<Web, StartError> {
        let failed =
            |what: &str, because: &dyn fmt::Display| StartError { what: what.into(), because: because.to_string() };
        let world = Arc::new(world);
        let authority = Arc::new(Authority::new().map_err(|e| failed("no certificates can be made", &e))?);
        let tls = tls::settings(authority.clone(), world.clone(), None)
            .map_err(|e| failed("no certificates can be made", &e))?;
        let log = match &settings.request_log {
            None => None,
            Some(path) => {
                let file = File::options().append(true).create(true).open(path);
                let what = format!("the request log {} cannot be written", path.display());
                Some(BufWriter::new(file.map_err(|e| failed(&what, &e))?))
            }
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("testweb")
            .enable_all()
            .build()
            .map_err(|e| failed("no threads to serve with", &e))?;
        let entered = runtime.enter();
        let (listeners, control) = listen(&world, &settings)?;
        let traps = pits::listen_on_bad_ports(&world);
        let black_hole = pits::black_hole(&world, &listeners);
        let dns = dns::listen(settings.dns_port).map_err(|e| failed("the name server has no port", &e))?;
        drop(entered);

        let (stop, stopped) = watch::channel(false);
        let begin = world.begin();
        let shared = Arc::new(Shared {
            map: map(&world, &listeners, &control, dns.address)
                .map_err(|because| failed("a host is nowhere", &because))?,
            clock: Mutex::new(settings.clock.unwrap_or_else(|| Clock::new(begin.plus_days(180), 1.0))),
            auditor: Mutex::new(Auditor::new(settings.policy)),
            log: Mutex::new(log),
            behaviours: RwLock::new(
                world.hosts().iter().map(|host| (host.plan.name.clone(), host.plan.behaviour.clone())).collect(),
            ),
            behaviours_changed: watch::Sender::new(()),
            cut: watch::Sender::new(false),
            counts: world.hosts().iter().map(|host| (host.plan.name.clone(), AtomicU64::new(0))).collect(),
            counts_at: addresses(&world).into_iter().map(|address| (address, AtomicU64::new(0))).collect(),
            questions: Mutex::default(),
            proofs: Proofs::new(world.hosts().iter().map(|host| host.plan.name.as_str())),
            began: Instant::now(),
            suffixes: Suffixes::default(),
            stop: stop.clone(),
            connections: Arc::new(Semaphore::new(limits::CONNECTIONS_MAX)),
            tls,
            authority,
            world,
        });
        let thread = std::thread::Builder::new().name("testweb".into()).spawn({
            let shared = shared.clone();
            move || {
                runtime.block_on(serve(shared, listeners, traps, control, dns, stopped));
                drop(black_hole);
                runtime.shutdown_timeout(Duration::from_millis(limits::STOP_MS));
            }
        });
        let thread = thread.map_err(|e| failed("no thread to serve with", &e))?;
        Ok(Web { shared, stop, thread: Some(thread) })
    }

    /// The world that is served, for its truth.
    pub fn world(&self) -> &Arc<World> {
        &self.shared.world
    }

    /// Where the hosts are.
    pub fn map(&self) -> &Map {
        &self.shared.map
    }

    /// Where a host answers first.
    pub fn address(&self, host: &str) -> Option<SocketAddr> {
        self.shared.map.hosts.iter().find(|place| place.host == host)?.addresses.first().copied()
    }

    /// The certificate of its authority.
    pub fn authority_pem(&self) -> &str {
        self.shared.authority.pem()
    }

    /// What its clock shows.
    pub fn now(&self) -> Time {
        self.shared.now(Instant::now())
    }

    /// Microseconds from its beginning to this moment, as its requests have them.
    pub fn us(&self, at: Instant) -> u64 {
        self.shared.us(at)
    }

    /// Sets its clock: the moment, the speed, or both.
    pub fn set_clock(&self, to: Option<Time>, speed: Option<f64>) {
        self.shared.set_clock(to, speed);
    }

    /// Changes how a host behaves from the next request on, or, for `*`, how all do; an error when there is no such host or
    /// no such behaviour.
    pub fn behave(&self, host: &str, behaviour: Behaviour) -> Result<(), String> {
        self.shared.behave(host, behaviour)
    }

    /// Cuts the cable, or mends it. While it is cut nobody listens, connections that stood are gone, and the name server is silent.
    pub fn cut(&self, cut: bool) {
        self.shared.cut.send_replace(cut);
    }

    /// What the server knows of a host's misdeeds; `*` for those of the web as a whole.
    pub fn proof(&self, host: &str) -> Option<Proof> {
        self.shared.proofs.of(host)
    }

    /// What the server knows of the misdeeds of every host.
    pub fn proofs(&self) -> BTreeMap<String, Proof> {
        self.shared.proofs.all()
    }

    /// What the auditor has seen so far.
    pub fn report(&self) -> Report {
        self.shared.auditor().report()
    }

    /// The requests the auditor still keeps one by one.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.auditor().requests().cloned().collect()
    }

    /// The auditor forgets everything and judges by this from now on. Requests in flight are not counted again.
    pub fn audit_anew(&self, policy: Policy) {
        *self.shared.auditor() = Auditor::new(policy);
    }

    /// Stops: no new connections; answers in flight have two seconds. Dropping it does the same.
    pub fn stop(self) {}

    /// Waits until someone asks it to stop through the control server, or `signal` comes. Not for asynchronous callers.
    pub fn wait(&self, signal: impl Future<Output = ()>) -> io::Result<()> {
        let mut stopped = self.stop.subscribe();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            tokio::select! {
                () = signal => {}
                () = told_to_stop(&mut stopped) => {}
            }
        });
        Ok(())
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        let _ = self.stop.send(true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let _ = self.shared.log().as_mut().map(BufWriter::flush);
    }
}

impl Shared {
    pub fn now(&self, at: Instant) -> Time {
        self.clock().time(at.saturating_duration_since(self.began))
    }

    pub fn set_clock(&self, to: Option<Time>, speed: Option<f64>) {
        self.clock().set(self.began.elapsed(), to, speed);
    }

    pub fn clock(&self) -> MutexGuard<'_, Clock> {
        self.clock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn auditor(&self) -> MutexGuard<'_, Auditor> {
        self.auditor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn log(&self) -> MutexGuard<'_, Option<BufWriter<File>>> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn us(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.began).as_micros()).unwrap_or(u64::MAX)
    }

    pub fn site<'h>(&self, host: &'h str) -> &'h str {
        self.suffixes.site(host, Part::Whole)
    }

    pub fn behaviour(&self, host: &str) -> Behaviour {
        let behaviours = self.behaviours.read().unwrap_or_else(PoisonError::into_inner);
        behaviours.get(host).cloned().unwrap_or_default()
    }

    pub fn behave(&self, host: &str, behaviour: Behaviour) -> Result<(), String> {
        if let Some(fault) = behaviour.fault() {
            return Err(fault);
        }
        let mut behaviours = self.behaviours.write().unwrap_or_else(PoisonError::into_inner);
        if host == proof::WEB {
            behaviours.values_mut().for_each(|each| *each = behaviour.clone());
        } else {
            *behaviours.get_mut(host).ok_or_else(|| format!("there is no host `{host}`"))? = behaviour;
        }
        drop(behaviours);
        self.behaviours_changed.send_replace(());
        Ok(())
    }

    /// How a host behaves, once it no longer holds its answers back or the web stops.
    pub async fn behaviour_to_answer(&self, host: &str) -> Behaviour {
        let mut changed = self.behaviours_changed.subscribe();
        let mut stopped = self.stop.subscribe();
        loop {
            let behaviour = self.behaviour(host);
            if !behaviour.hold || *stopped.borrow() {
                return behaviour;
            }
            tokio::select! {
                _ = changed.changed() => {}
                () = told_to_stop(&mut stopped) => {}
            }
        }
    }

    /// The number of this request to a host, from 1.
    pub fn count(&self, host: &str) -> u64 {
        self.counts.get(host).map_or(0, |count| count.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// The number of this question about a name, from 1, and that of all questions in this second.
    pub fn count_question(&self, name: &str) -> (u64, u64) {
        let second = self.began.elapsed().as_secs();
        let mut questions = self.questions.lock().unwrap_or_else(PoisonError::into_inner);
        if questions.second != second {
            (questions.second, questions.in_second) = (second, 0);
        }
        questions.in_second += 1;
        let in_second = questions.in_second;
        if questions.by_name.len() >= limits::DNS_NAMES_MAX {
            questions.by_name.clear();
        }
        let number = questions.by_name.entry(name.to_string()).or_default();
        *number += 1;
        (*number, in_second)
    }

    /// The host whose address is given for names that are not there.
    pub fn hijacker(&self) -> Option<&Host> {
        let behaviours = self.behaviours.read().unwrap_or_else(PoisonError::into_inner);
        let mut hijacking = behaviours.iter().filter(|(_, behaviour)| dns::hijacks(behaviour));
        self.world.host(hijacking.next()?.0)
    }

    /// The number of this request to an address, from 1.
    pub fn count_at(&self, address: IpAddr) -> u64 {
        self.counts_at.get(&address).map_or(0, |count| count.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

/// A port that is free on all loopback addresses now, for a plan whose links carry the port that the web listens on.
pub fn free_port() -> io::Result<u16> {
    Ok(std::net::TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0))?.local_addr()?.port())
}

/// All addresses of a world, each once.
fn addresses(world: &World) -> Vec<IpAddr> {
    let mut addresses: Vec<IpAddr> = world.hosts().iter().flat_map(|host| host.plan.addresses.clone()).collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

/// Binds every address; one of IPv6 that the machine does not have is left out.
fn listen(world: &World, settings: &Settings) -> Result<(Vec<TcpListener>, TcpListener), StartError> {
    let mut listeners = Vec::new();
    for address in addresses(world) {
        for &port in &settings.ports {
            match bind(SocketAddr::new(address, port)) {
                Ok(listener) => listeners.push(listener),
                Err(e) if address.is_ipv6() && no_such_address(&e) => {}
                Err(e) => return Err(cannot_bind(SocketAddr::new(address, port), &e)),
            }
        }
    }
    let control = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), settings.control_port);
    let control = bind(control).map_err(|e| cannot_bind(control, &e))?;
    Ok((listeners, control))
}

fn no_such_address(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::AddrNotAvailable | io::ErrorKind::Unsupported) || e.raw_os_error() == Some(97) // EAFNOSUPPORT: a kernel without IPv6
}

fn cannot_bind(address: SocketAddr, e: &io::Error) -> StartError {
    let because = match e.kind() {
        io::ErrorKind::AddrInUse => "another program listens there; choose another port, or 0 for any".into(),
        io::ErrorKind::PermissionDenied => "ports below 1024 need rights this program does not have".into(),
        _ if no_such_address(e) => {
            format!(
                "{e}; only Linux has all of 127.0.0.0/8, elsewhere each address must be added to the loopback device"
            )
        }
        _ => e.to_string(),
    };
    StartError { what: format!("cannot listen on {address}"), because }
}

pub(crate) fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(1_024)
}

fn map(world: &World, listeners: &[TcpListener], control: &TcpListener, dns: SocketAddr) -> Result<Map, String> {
    let suffixes = Suffixes::default();
    let bound: Vec<SocketAddr> = listeners.iter().filter_map(|listener| listener.local_addr().ok()).collect();
    let mut hosts = Vec::new();
    for host in world.hosts() {
        let name = &host.plan.name;
        let mut addresses: Vec<SocketAddr> = Vec::new();
        for address in &host.plan.addresses {
            addresses.extend(bound.iter().filter(|bound| bound.ip() == *address));
        }
        if addresses.is_empty() {
            return Err(format!("none of the addresses of `{name}` can be listened on"));
        }
        hosts.push(Place {
            host: name.clone(),
            site: suffixes.site(name, Part::Whole).to_string(),
            url: format!("{}/", host.base),
            resolve: {
                let below =
                    addresses.iter().filter(|_| host.plan.wildcard).map(|address| format!("*.{name}={address}"));
                addresses.iter().map(|address| format!("{name}={address}")).chain(below).collect()
            },
            addresses,
        });
    }
    let control = control.local_addr().map_err(|e| e.to_string())?;
    Ok(Map { control: format!("http://{control}/"), dns: dns.to_string(), hosts })
}

async fn serve(
    shared: Arc<Shared>,
    listeners: Vec<TcpListener>,
    traps: Vec<(String, TcpListener)>,
    control: TcpListener,
    dns: dns::Sockets,
    mut stopped: watch::Receiver<bool>,
) {
    let mut accepting = tokio::task::JoinSet::new();
    for listener in listeners {
        accepting.spawn(answering::accept(shared.clone(), listener, stopped.clone()));
    }
    for (host, listener) in traps {
        accepting.spawn(pits::count_visitors(shared.clone(), host, listener, stopped.clone()));
    }
    accepting.spawn(dns::serve(shared.clone(), dns, stopped.clone()));
    accepting.spawn(control::accept(shared.clone(), control, stopped.clone()));
    told_to_stop(&mut stopped).await;
    // Each acceptor ends with its last connection, and every connection has been told to end.
    let all = async { while accepting.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(Duration::from_millis(limits::STOP_MS), all).await;
}

/// Returns when the web is to stop, or nobody is left who could say so.
pub(crate) async fn told_to_stop(stopped: &mut watch::Receiver<bool>) {
    let _ = stopped.wait_for(|stop| *stop).await;
}
