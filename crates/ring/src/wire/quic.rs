//! The way to other nodes over QUIC: a node's key is its address, proven by the handshake. Nothing of the library that does it is
//! seen outside of this file and of the relay beside it, and no server of anybody else is asked for anything: addresses come from the roster,
//! relays from whoever starts the node, or they are served by members.
//!
//! ```text
//!  one connection between two nodes, whoever opened it
//!    one stream for all frames, each way     | length 4 LE | frame |  …
//!    one stream for each question            question, end ──▶      ◀── answer, end
//! ```

use std::collections::{BTreeSet, HashMap};
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use iroh::endpoint::{
    Connection, NetReportConfig, QuicTransportConfig, ReadToEndError, RecvStream, SendStream, VarInt, presets,
};
use iroh::{
    Endpoint, EndpointAddr, PublicKey, RelayConfig, RelayMap, RelayMode, RelayUrl, SecretKey, TransportAddr, Watcher,
};
use tokio::runtime::{Handle, Runtime};
use tokio::sync::{Notify, Semaphore, mpsc, watch};
use tokio::time::timeout;

use super::relay::Relay;
use super::{Answer, Ears, Relayed, Silence, Wire};
use crate::key::Key;
use crate::limits::{
    ANSWERS_AT_ONCE_MAX, ANSWERS_PER_PEER_MAX, CONNECT_MS_MAX, CONNECTION_IDLE_MS_MAX, CONNECTION_KEEP_MS,
    FRAME_BYTES_MAX, FRAMES_WAITING_MAX, PEERS_MAX, QUESTION_BYTES_MAX, QUESTION_MS_MAX, RELAY_MEET_MS, RELAYS_MAX,
    RELAYS_MET_AT_ONCE_MAX, STRANGER_MS_MAX, STRANGER_QUESTION_BYTES_MAX, STRANGERS_AT_ONCE_MAX, STRANGERS_KEPT_MAX,
    STREAM_WINDOW_BYTES, STREAMS_PER_PEER_MAX,
};

/// Names the protocol in the handshake; what is said in it has versions of its own.
const PROTOCOL: &[u8] = b"skep/ring/1";
/// Others are told within this time that a node ends, or notice by themselves.
const CLOSE: Duration = Duration::from_secs(2);

/// A node on the network.
pub struct Quic {
    inner: Arc<Inner>,
    runtime: Mutex<Option<Runtime>>,
}

struct Inner {
    key: Key,
    endpoint: Endpoint,
    handle: Handle,
    /// Nobody, before the node listens.
    ears: watch::Sender<Option<Weak<dyn Ears>>>,
    places: Mutex<HashMap<Key, EndpointAddr>>,
    /// Relays that whoever runs the node named.
    named: BTreeSet<RelayUrl>,
    /// Relays that members say that they serve, those first that this node prefers.
    served: Mutex<Vec<(Key, RelayUrl)>>,
    /// Of these, those of members who answered at their addresses.
    believed: Mutex<BTreeSet<RelayUrl>>,
    /// Members by whose relays somebody is to be reached.
    sought: Mutex<BTreeSet<Key>>,
    seek: Notify,
    using: tokio::sync::Mutex<()>,
    /// Relays through which this node can be reached.
    used: Mutex<BTreeSet<RelayUrl>>,
    /// The relay of this node.
    relay: OnceLock<Relay>,
    peers: Mutex<HashMap<Key, Arc<Peer>>>,
    answering: Arc<Semaphore>,
    /// The same for those who are not known.
    strangers: Arc<Semaphore>,
    sent: AtomicU64,
    received: AtomicU64,
}

/// What is kept of another node.
struct Peer {
    frames: mpsc::Sender<Vec<u8>>,
    connection: Mutex<Option<Connection>>,
    connecting: tokio::sync::Mutex<()>,
    came: Notify,
    /// Its questions that are answered at once.
    asks: Arc<Semaphore>,
    /// Nothing is kept of it any more.
    gone: Notify,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Quic {
    /// Takes an address; port 0 takes a free one. Nobody is heard before [`Quic::listen`].
    pub fn bind(secret: &[u8; 32], listen: SocketAddr, relays: &[String]) -> Result<Arc<Quic>, Silence> {
        let wrong = |what: &str, error: &dyn std::fmt::Display| Silence(format!("{what}: {error}"));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("skep-wire")
            .enable_all()
            .build()
            .map_err(|error| wrong("no threads for the network", &error))?;
        let named: BTreeSet<RelayUrl> = relays
            .iter()
            .map(|relay| relay.parse().map_err(|error| wrong(&format!("{relay} is no relay"), &error)))
            .collect::<Result<_, _>>()?;
        let transport = QuicTransportConfig::builder()
            .max_idle_timeout(Some(
                Duration::from_millis(CONNECTION_IDLE_MS_MAX).try_into().expect("a short time is a time"),
            ))
            .keep_alive_interval(Duration::from_millis(CONNECTION_KEEP_MS))
            .max_concurrent_bidi_streams(VarInt::from_u32(STREAMS_PER_PEER_MAX))
            .max_concurrent_uni_streams(VarInt::from_u32(4))
            .stream_receive_window(VarInt::from_u32(STREAM_WINDOW_BYTES))
            .send_observed_address_reports(false)
            .receive_observed_address_reports(false)
            .build();
        // Without a relay this is as if there were none; one may be heard of later.
        let relays = RelayMap::from_iter(named.iter().map(configured));
        let mut report = NetReportConfig::default();
        // It would ask another port of the same machine, where perhaps something else answers.
        report.captive_portal_check = false;
        let builder = Endpoint::builder(presets::Minimal)
            .secret_key(SecretKey::from_bytes(secret))
            .alpns(vec![PROTOCOL.to_vec()])
            .relay_mode(RelayMode::Custom(relays))
            .net_report_config(report)
            .transport_config(transport)
            .clear_ip_transports()
            .bind_addr(listen)
            .map_err(|error| wrong(&format!("cannot listen at {listen}"), &error))?;
        let endpoint =
            runtime.block_on(builder.bind()).map_err(|error| wrong(&format!("cannot listen at {listen}"), &error))?;
        let inner = Inner {
            key: Key(*endpoint.id().as_bytes()),
            endpoint,
            handle: runtime.handle().clone(),
            ears: watch::Sender::new(None),
            places: Mutex::default(),
            used: Mutex::new(named.clone()),
            named,
            served: Mutex::default(),
            believed: Mutex::default(),
            sought: Mutex::default(),
            seek: Notify::new(),
            using: tokio::sync::Mutex::default(),
            relay: OnceLock::new(),
            peers: Mutex::default(),
            answering: Arc::new(Semaphore::new(ANSWERS_AT_ONCE_MAX)),
            strangers: Arc::new(Semaphore::new(STRANGERS_AT_ONCE_MAX)),
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
        };
        Ok(Arc::new(Quic { inner: Arc::new(inner), runtime: Mutex::new(Some(runtime)) }))
    }

    /// Serves a relay for the nodes of the network from now on, at this address. Returns its URL; `None` if the address is none that
    /// others could use.
    pub fn serve_relay(&self, listen: SocketAddr) -> Result<Option<String>, Silence> {
        let inner = &self.inner;
        let served = inner.handle.block_on(Relay::serve(listen, inner.ears.subscribe()));
        let relay = served.map_err(|error| Silence(format!("no relay can be served at {listen}: {error}")))?;
        let relay = inner.relay.get_or_init(|| relay);
        Ok(inner.own_relay().is_some().then(|| format!("http://{}", relay.at())))
    }

    /// Others are heard from now on.
    pub fn listen(&self, ears: &Arc<dyn Ears>) {
        let first = self.inner.ears.send_replace(Some(Arc::downgrade(ears))).is_none();
        if first {
            let (inner, other) = (self.inner.clone(), self.inner.clone());
            self.inner.handle.spawn(async move { inner.accept().await });
            self.inner.handle.spawn(async move { other.meet_relays().await });
        }
    }
}

/// A relay of ours answers over TCP alone.
fn configured(url: &RelayUrl) -> RelayConfig {
    RelayConfig::new(url.clone(), None)
}

impl Inner {
    fn own_relay(&self) -> Option<RelayUrl> {
        let at = self.relay.get().map(Relay::at).filter(|at| !at.ip().is_unspecified())?;
        format!("http://{at}").parse().ok()
    }

    /// Through which relays this node can be reached: its own, and those that were named; if there is none, those of others.
    async fn use_relays(&self) {
        let _one_at_a_time = self.using.lock().await;
        let mut wanted: BTreeSet<RelayUrl> = self.named.iter().cloned().chain(self.own_relay()).collect();
        if wanted.is_empty() {
            let (served, believed) = (lock(&self.served), lock(&self.believed));
            for (_, url) in served.iter().filter(|(_, url)| believed.contains(url)) {
                wanted.insert(url.clone());
                if wanted.len() == RELAYS_MAX {
                    break;
                }
            }
        }
        let used = lock(&self.used).clone();
        for url in wanted.difference(&used) {
            self.endpoint.insert_relay(url.clone(), Arc::new(configured(url))).await;
        }
        for url in used.difference(&wanted) {
            self.endpoint.remove_relay(url).await;
        }
        *lock(&self.used) = wanted;
    }

    /// Finds out who answers where a relay is said to be, before anybody connects to it: else a record could lead all nodes to any machine.
    async fn meet_relays(self: Arc<Inner>) {
        let mut turn = 0;
        loop {
            for (node, url) in self.unmet(&mut turn) {
                let Some(peer) = self.peer(node) else { continue };
                let Ok(connection) = self.connection(node, &peer).await else { continue };
                let Some(at) = url.host_str().and_then(|host| host.parse::<IpAddr>().ok()) else { continue };
                let answers = |address: &TransportAddr| matches!(address, TransportAddr::Ip(it) if it.ip() == at);
                if connection.paths().iter().any(|path| answers(path.remote_addr())) {
                    lock(&self.believed).insert(url);
                    self.use_relays().await;
                }
            }
            let again = Duration::from_millis(RELAY_MEET_MS);
            // Too soon is as good as in time.
            let _sought = timeout(again, self.seek.notified()).await;
        }
    }

    /// Relays that are of use if they are what their records say: enough of those that this node prefers, and those by which others are reached.
    /// Each call goes on where the one before left off, round and round: those that do not answer keep it from none.
    fn unmet(&self, turn: &mut usize) -> Vec<(Key, RelayUrl)> {
        let (served, believed, mut sought) = (lock(&self.served), lock(&self.believed), lock(&self.sought));
        let sought = std::mem::take(&mut *sought);
        let own = !self.named.is_empty() || self.own_relay().is_some();
        let lacking = if own { 0 } else { RELAYS_MAX.saturating_sub(believed.len()) };
        let mut unmet: Vec<&(Key, RelayUrl)> = served.iter().filter(|(_, url)| !believed.contains(url)).collect();
        *turn %= unmet.len().max(1);
        unmet.rotate_left(*turn);
        *turn += lacking;
        let wanted = unmet.iter().enumerate().filter(|(at, (node, _))| *at < lacking || sought.contains(node));
        wanted.take(RELAYS_MET_AT_ONCE_MAX).map(|(_, relay)| (*relay).clone()).collect()
    }

    /// Where a node is, but for relays that nobody here has reason to trust.
    fn place_of(&self, node: Key) -> Option<EndpointAddr> {
        let mut place = lock(&self.places).get(&node).cloned()?;
        let (served, believed, own) = (lock(&self.served), lock(&self.believed), self.own_relay());
        place.addrs.retain(|address| match address {
            TransportAddr::Relay(url) if self.named.contains(url) || own.as_ref() == Some(url) => true,
            TransportAddr::Relay(url) => {
                let mut of = served.iter().filter(|(_, served)| served == url).map(|(node, _)| *node).peekable();
                let known = of.peek().is_some();
                if known && !believed.contains(url) {
                    lock(&self.sought).extend(of.filter(|server| *server != node));
                    self.seek.notify_one();
                }
                known && believed.contains(url)
            }
            _ => true,
        });
        Some(place)
    }

    async fn accept(self: Arc<Inner>) {
        while let Some(incoming) = self.endpoint.accept().await {
            let inner = self.clone();
            tokio::spawn(async move {
                let patience = Duration::from_millis(CONNECT_MS_MAX);
                let Ok(Ok(connection)) = timeout(patience, async { incoming.await }).await else { return };
                let from = Key(*connection.remote_id().as_bytes());
                let Some(peer) = inner.peer(from) else {
                    // So many strangers at once are no newcomers.
                    return connection.close(VarInt::from_u32(2), b"full");
                };
                {
                    // Who connects anew has lost what there was, perhaps by a crash of which nothing is known here yet.
                    *lock(&peer.connection) = Some(connection.clone());
                    peer.came.notify_waiters();
                }
                inner.clone().serve(from, connection).await;
                inner.forget(from);
            });
        }
    }

    /// Who listens; waited for, because others may speak before this node does. `None` when it has ended.
    async fn ears(&self) -> Option<Arc<dyn Ears>> {
        let mut ears = self.ears.subscribe();
        let ears = ears.wait_for(Option::is_some).await.ok()?;
        ears.as_ref().and_then(Weak::upgrade)
    }

    /// Hears what comes over a connection, until it ends.
    async fn serve(self: Arc<Inner>, from: Key, connection: Connection) {
        loop {
            tokio::select! {
                stream = connection.accept_uni() => {
                    let Ok(stream) = stream else { return };
                    let inner = self.clone();
                    tokio::spawn(async move { inner.hear(from, stream).await });
                }
                stream = connection.accept_bi() => {
                    let Ok((send, recv)) = stream else { return };
                    let inner = self.clone();
                    tokio::spawn(async move { inner.answer(from, send, recv).await });
                }
            }
        }
    }

    async fn hear(&self, from: Key, mut stream: RecvStream) {
        let mut length = [0; 4];
        while stream.read_exact(&mut length).await.is_ok() {
            let length = u32::from_le_bytes(length) as usize;
            if length > FRAME_BYTES_MAX {
                // Nothing that follows can be made sense of.
                let _closed_already = stream.stop(VarInt::from_u32(1));
                if let Some(ears) = self.ears().await {
                    ears.too_long(from, "a frame that is longer than frames are");
                }
                return;
            }
            let mut frame = vec![0; length];
            if stream.read_exact(&mut frame).await.is_err() {
                return;
            }
            self.received.fetch_add(length as u64 + 4, Ordering::Relaxed);
            let Some(ears) = self.ears().await else { return };
            ears.hear(from, frame);
        }
    }

    async fn answer(self: Arc<Inner>, from: Key, send: SendStream, mut recv: RecvStream) {
        // Who is nobody's node yet has little to ask, and takes no place from others.
        let known = lock(&self.places).contains_key(&from);
        let (places, patience_ms, bytes_max) = match known {
            true => (&self.answering, QUESTION_MS_MAX, QUESTION_BYTES_MAX),
            false => (&self.strangers, STRANGER_MS_MAX, STRANGER_QUESTION_BYTES_MAX),
        };
        // One that asks much waits for itself first, and only then for others.
        let own = self.peer(from).map(|peer| peer.asks.clone());
        let _own_place = match own {
            Some(own) => own.acquire_owned().await.ok(),
            None => return,
        };
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let patience = Duration::from_millis(patience_ms);
        let question = match timeout(patience, recv.read_to_end(bytes_max)).await {
            Ok(Ok(question)) => question,
            Ok(Err(ReadToEndError::TooLong)) => {
                if let Some(ears) = self.ears().await {
                    ears.too_long(from, "a question that is longer than questions are");
                }
                return;
            }
            Ok(Err(_)) | Err(_) => return,
        };
        let _place = place;
        self.received.fetch_add(question.len() as u64, Ordering::Relaxed);
        let Some(ears) = self.ears().await else { return };
        let (handle, inner) = (self.handle.clone(), self.clone());
        let answered = tokio::task::spawn_blocking(move || {
            let mut out = Sending { send, handle, inner };
            let answered = ears.answer(from, question, &mut out);
            match answered {
                Ok(()) => drop(out.send.finish()),
                // Whoever asked must not take a part for the whole.
                Err(_) => drop(out.send.reset(VarInt::from_u32(1))),
            }
        });
        let _answered_or_not = answered.await;
    }

    /// What is kept of a node; `None` when there are too many.
    fn peer(self: &Arc<Inner>, node: Key) -> Option<Arc<Peer>> {
        let mut peers = lock(&self.peers);
        if let Some(peer) = peers.get(&node) {
            return Some(peer.clone());
        }
        let known = lock(&self.places).contains_key(&node);
        let strangers = || peers.keys().filter(|peer| !lock(&self.places).contains_key(peer)).count();
        if peers.len() >= PEERS_MAX || !known && peers.len() >= STRANGERS_KEPT_MAX && strangers() >= STRANGERS_KEPT_MAX
        {
            return None;
        }
        let (frames, waiting) = mpsc::channel(FRAMES_WAITING_MAX);
        let peer = Arc::new(Peer {
            frames,
            connection: Mutex::default(),
            connecting: tokio::sync::Mutex::default(),
            came: Notify::new(),
            asks: Arc::new(Semaphore::new(ANSWERS_PER_PEER_MAX)),
            gone: Notify::new(),
        });
        peers.insert(node, peer.clone());
        let (inner, spoken) = (self.clone(), peer.clone());
        self.handle.spawn(async move { inner.speak(node, spoken, waiting).await });
        Some(peer)
    }

    /// A connection has ended: of somebody who is no node nothing is kept.
    fn forget(&self, node: Key) {
        if lock(&self.places).contains_key(&node) {
            return;
        }
        let mut peers = lock(&self.peers);
        let ended = |peer: &Peer| lock(&peer.connection).as_ref().is_none_or(|open| open.close_reason().is_some());
        if peers.get(&node).is_some_and(|peer| ended(peer))
            && let Some(peer) = peers.remove(&node)
        {
            peer.gone.notify_one();
        }
    }

    /// Carries frames to one node, in their order. What cannot be carried is dropped: others say it again when it matters.
    async fn speak(self: Arc<Inner>, to: Key, peer: Arc<Peer>, mut frames: mpsc::Receiver<Vec<u8>>) {
        let patience = Duration::from_millis(CONNECT_MS_MAX);
        let mut open: Option<(usize, SendStream)> = None;
        loop {
            let frame = tokio::select! {
                frame = frames.recv() => frame,
                () = peer.gone.notified() => None,
            };
            let Some(frame) = frame else { return };
            let said = timeout(patience, async {
                let connection = self.connection(to, &peer).await?;
                let id = connection.stable_id();
                if open.as_ref().is_none_or(|(known, _)| *known != id) {
                    let stream = connection.open_uni().await.map_err(|error| Silence(error.to_string()))?;
                    open = Some((id, stream));
                }
                let Some((_, stream)) = &mut open else { return Err(Silence("no stream".into())) };
                let mut bytes = (frame.len() as u32).to_le_bytes().to_vec();
                bytes.extend_from_slice(&frame);
                stream.write_all(&bytes).await.map_err(|error| Silence(error.to_string()))?;
                self.sent.fetch_add(bytes.len() as u64, Ordering::Relaxed);
                Ok(())
            });
            if !matches!(said.await, Ok(Ok(()))) {
                open = None;
                if let Some(connection) = lock(&peer.connection).take() {
                    connection.close(VarInt::from_u32(0), b"silent");
                }
                while frames.try_recv().is_ok() {}
            }
        }
    }

    /// The connection to a node, there already or made now.
    async fn connection(self: &Arc<Inner>, to: Key, peer: &Arc<Peer>) -> Result<Connection, Silence> {
        let current = || lock(&peer.connection).clone().filter(|connection| connection.close_reason().is_none());
        if let Some(connection) = current() {
            return Ok(connection);
        }
        let came = peer.came.notified();
        let made = async {
            let _one_at_a_time = peer.connecting.lock().await;
            if let Some(connection) = current() {
                return Ok(connection);
            }
            let place = self.place_of(to);
            let place = place.ok_or_else(|| Silence(format!("nobody knows where {} is", to.short())))?;
            let connected = self.endpoint.connect(place, PROTOCOL).await;
            let connection = connected.map_err(|error| Silence(format!("{} is not reached: {error}", to.short())))?;
            *lock(&peer.connection) = Some(connection.clone());
            let (inner, served) = (self.clone(), connection.clone());
            tokio::spawn(async move { inner.serve(to, served).await });
            Ok(connection)
        };
        let patience = Duration::from_millis(CONNECT_MS_MAX);
        tokio::select! {
            made = timeout(patience, made) => {
                made.unwrap_or_else(|_| Err(Silence(format!("{} does not answer", to.short()))))
            }
            // It was quicker.
            () = came => current().ok_or_else(|| Silence("the connection ended as it began".into())),
        }
    }
}

impl Wire for Quic {
    fn key(&self) -> Key {
        self.inner.key
    }

    fn addresses(&self) -> Vec<SocketAddr> {
        let mut bound = self.inner.endpoint.bound_sockets();
        if bound.iter().any(|address| address.ip().is_unspecified()) {
            bound = self.inner.endpoint.addr().ip_addrs().copied().collect();
        }
        bound.sort_unstable();
        bound
    }

    fn place(&self, node: Key, addresses: &[SocketAddr], relay: Option<&str>) {
        let Ok(id) = PublicKey::from_bytes(&node.0) else { return };
        let relay = relay.and_then(|relay| relay.parse().ok()).map(TransportAddr::Relay);
        let addresses = addresses.iter().copied().map(TransportAddr::Ip).chain(relay);
        let mut places = lock(&self.inner.places);
        if places.len() < PEERS_MAX || places.contains_key(&node) {
            places.insert(node, EndpointAddr::from_parts(id, addresses));
        }
    }

    fn relays(&self, served: &[(Key, String)]) {
        let served = served.iter().filter_map(|(node, url)| Some((*node, url.parse().ok()?)));
        let served: Vec<(Key, RelayUrl)> = served.collect();
        lock(&self.inner.believed).retain(|url| served.iter().any(|(_, served)| served == url));
        *lock(&self.inner.served) = served;
        self.inner.handle.block_on(self.inner.use_relays());
        self.inner.seek.notify_one();
        if let Some(relay) = self.inner.relay.get() {
            self.inner.handle.block_on(relay.look());
        }
    }

    fn relay(&self) -> Option<String> {
        let relays = self.inner.endpoint.home_relay_status().get();
        let there = relays.iter().find(|relay| relay.is_connected())?;
        Some(there.url().to_string().trim_end_matches('/').to_owned())
    }

    fn relayed(&self) -> Option<Relayed> {
        self.inner.relay.get().map(Relay::relayed)
    }

    fn say(&self, to: Key, frame: Vec<u8>) {
        if let Some(peer) = self.inner.peer(to) {
            // A node that does not keep up misses something.
            let _dropped_when_full = peer.frames.try_send(frame);
        }
    }

    fn ask(&self, to: Key, question: &[u8], patience: Duration) -> Result<Answer, Silence> {
        let peer = self.inner.peer(to).ok_or_else(|| Silence("too many nodes".into()))?;
        let asked = async {
            let connection = self.inner.connection(to, &peer).await?;
            let broken = |error: &dyn std::fmt::Display| Silence(format!("{} broke off: {error}", to.short()));
            let (mut send, recv) = connection.open_bi().await.map_err(|error| broken(&error))?;
            send.write_all(question).await.map_err(|error| broken(&error))?;
            send.finish().map_err(|error| broken(&error))?;
            Ok(recv)
        };
        let asked = self.inner.handle.block_on(async { timeout(patience, asked).await });
        let recv = asked.unwrap_or_else(|_| Err(Silence(format!("{} does not answer", to.short()))))?;
        self.inner.sent.fetch_add(question.len() as u64, Ordering::Relaxed);
        Ok(Box::new(Coming { recv, inner: self.inner.clone(), patience }))
    }

    fn traffic(&self) -> (u64, u64) {
        (self.inner.sent.load(Ordering::Relaxed), self.inner.received.load(Ordering::Relaxed))
    }

    fn close(&self) {
        let Some(runtime) = lock(&self.runtime).take() else { return };
        let _said_or_not = runtime.block_on(async { timeout(CLOSE, self.inner.endpoint.close()).await });
        lock(&self.inner.peers).clear();
        runtime.shutdown_background();
    }
}

impl Drop for Quic {
    fn drop(&mut self) {
        if let Some(runtime) = lock(&self.runtime).take() {
            runtime.shutdown_background();
        }
    }
}

/// An answer that goes out.
struct Sending {
    send: SendStream,
    handle: Handle,
    inner: Arc<Inner>,
}

impl Write for Sending {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let patience = Duration::from_millis(QUESTION_MS_MAX);
        let written = self.handle.block_on(async { timeout(patience, self.send.write_all(bytes)).await });
        written.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?.map_err(io::Error::other)?;
        self.inner.sent.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An answer that comes in.
struct Coming {
    recv: RecvStream,
    inner: Arc<Inner>,
    patience: Duration,
}

impl Read for Coming {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.handle.block_on(async { timeout(self.patience, self.recv.read(buffer)).await });
        let read = read.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?.map_err(io::Error::other)?;
        let read = read.unwrap_or(0);
        self.inner.received.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}
