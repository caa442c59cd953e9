//! A relay that this node runs for the others of its network: nodes that cannot reach each other directly both connect to it, and it
//! carries packets between them. It cannot read them. Whoever connects proves its key; who is no node of the network is refused.
//!
//! ```text
//!  node ──TCP──▶ a place among those not yet known ──key proven──▶ a member? ──▶ packets from and to other members
//!       │                    │                                         │
//!       └── too many of one  └── too slow: closed                      └── no, or too many of one key: refused, counted
//!           address: refused, counted
//! ```

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::HeaderValue;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper::{HeaderMap, Method, Request};
use hyper_util::rt::TokioIo;
use iroh::EndpointId;
use iroh_relay::KeyCache;
use iroh_relay::http::{RELAY_PATH, RELAY_PROBE_PATH};
use iroh_relay::server::http_server::{BytesBody, Handlers, RelayService, RelayServiceWithNotify};
use iroh_relay::server::streams::MaybeTlsStream;
use iroh_relay::server::{Access, AccessControl, ClientRateLimit, ClientRequest, ConnectionId, Metrics};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::timeout;

use super::{Ears, Relayed};
use crate::key::Key;
use crate::limits::{
    ACCEPT_PAUSE_MS, RELAY_BYTES_PER_S_MAX, RELAY_CONNECTIONS_PER_NODE_MAX, RELAY_KEYS_KEPT, RELAY_PROVE_MS_MAX,
    RELAY_UNPROVEN_MAX, RELAY_UNPROVEN_PER_ADDRESS_MAX, RELAY_UNPROVEN_PER_NETWORK_MAX,
};

/// A relay that runs.
pub(super) struct Relay {
    at: SocketAddr,
    service: RelayService,
    members: Arc<Members>,
    metrics: Arc<Metrics>,
}

/// Who may use the relay, and who does.
struct Members {
    ears: watch::Receiver<Option<Weak<dyn Ears>>>,
    /// Connections of each.
    here: Mutex<HashMap<Key, usize>>,
    refused: AtomicU64,
    /// Connections whose keys are not known yet, by number: told when there is no more to wait for.
    unproven: Mutex<HashMap<u64, Arc<Notify>>>,
}

impl fmt::Debug for Members {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the nodes of a network")
    }
}

impl Members {
    fn here(&self) -> MutexGuard<'_, HashMap<Key, usize>> {
        self.here.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those of them who are no nodes of the network; all, before the node listens.
    async fn strangers(&self, keys: Vec<Key>) -> Vec<Key> {
        let ears = self.ears.borrow().as_ref().and_then(Weak::upgrade);
        let Some(ears) = ears else { return keys };
        // The roster may be busy for a moment.
        let asked = keys.clone();
        let looked =
            tokio::task::spawn_blocking(move || asked.into_iter().filter(|key| !ears.is_member(key)).collect());
        // Nobody looked, because the node ends.
        looked.await.unwrap_or(keys)
    }

    fn unproven(&self) -> MutexGuard<'_, HashMap<u64, Arc<Notify>>> {
        self.unproven.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place for one more connection of a node.
    fn enter(&self, key: Key) -> bool {
        let mut here = self.here();
        let connections = here.entry(key).or_default();
        *connections += 1;
        // A node has one, and another one while it has not noticed that the first has broken.
        if *connections <= RELAY_CONNECTIONS_PER_NODE_MAX {
            return true;
        }
        *connections -= 1;
        false
    }
}

impl AccessControl for Members {
    async fn on_connect(&self, request: &ClientRequest) -> Access {
        let key = Key(*request.endpoint_id().as_bytes());
        let why = match self.strangers(vec![key]).await.is_empty() {
            true if self.enter(key) => return Access::Allow,
            true => "too many connections",
            false => "not a node of this network",
        };
        self.refused.fetch_add(1, Ordering::Relaxed);
        let number = request.headers().get(CONNECTION).and_then(|number| number.to_str().ok()?.parse().ok());
        if let Some(over) = number.and_then(|number: u64| self.unproven().remove(&number)) {
            over.notify_waiters();
        }
        Access::Deny { reason: Some(why.to_owned()) }
    }

    fn on_disconnect(&self, node: EndpointId, _: ConnectionId) {
        let mut here = self.here();
        let key = Key(*node.as_bytes());
        if let Some(connections) = here.get_mut(&key) {
            *connections -= 1;
            if *connections == 0 {
                here.remove(&key);
            }
        }
    }
}

impl Relay {
    /// Takes an address and serves there, on the runtime that this is called in, as long as that runs.
    pub(super) async fn serve(listen: SocketAddr, ears: watch::Receiver<Option<Weak<dyn Ears>>>) -> io::Result<Relay> {
        let listener = TcpListener::bind(listen).await?;
        let at = listener.local_addr()?;
        let members =
            Arc::new(Members { ears, here: Mutex::default(), refused: AtomicU64::new(0), unproven: Mutex::default() });
        let metrics = Arc::new(Metrics::default());
        let mut handlers = Handlers::default();
        // Nodes measure by it how far the relay is.
        let probe = |_, answer: hyper::http::response::Builder| Ok(answer.body(Box::new(String::new()) as BytesBody)?);
        handlers.insert((Method::GET, RELAY_PROBE_PATH), Box::new(probe));
        let rate = NonZeroU32::new(RELAY_BYTES_PER_S_MAX).map(ClientRateLimit::new);
        let keys = KeyCache::new(RELAY_KEYS_KEPT);
        let service = RelayService::new(handlers, HeaderMap::new(), rate, keys, members.clone(), metrics.clone());
        tokio::spawn(accept(listener, service.clone(), members.clone()));
        Ok(Relay { at, service, members, metrics })
    }

    /// Where it is.
    pub(super) fn at(&self) -> SocketAddr {
        self.at
    }

    /// Those who are no longer nodes of the network are sent away.
    pub(super) async fn look(&self) {
        let here = self.members.here().keys().copied().collect();
        for stranger in self.members.strangers(here).await {
            if let Ok(node) = EndpointId::from_bytes(&stranger.0) {
                self.service.clients().disconnect(node, None);
            }
        }
    }

    pub(super) fn relayed(&self) -> Relayed {
        Relayed {
            nodes: self.members.here().len() as u64,
            bytes: self.metrics.bytes_sent.get(),
            refused: self.members.refused.load(Ordering::Relaxed),
        }
    }
}

/// By this header, which nobody else can set, a connection is known again when it turns out whose it is.
const CONNECTION: &str = "skep-connection";

/// An address, or all that begin with so many of its bits.
type Origin = (IpAddr, u32);

/// An address and the network around it: who has one address of IPv6 has a network of them, and many customers of providers have 65,536 such
/// networks.
fn origins(address: IpAddr) -> [Origin; 2] {
    match address.to_canonical() {
        IpAddr::V4(it) => {
            [32, 24].map(|bits| (Ipv4Addr::from_bits(it.to_bits() & (u32::MAX << (32 - bits))).into(), bits))
        }
        IpAddr::V6(it) => {
            [64, 48].map(|bits| (Ipv6Addr::from_bits(it.to_bits() & (u128::MAX << (128 - bits))).into(), bits))
        }
    }
}

/// Who has a place before it is known whose connection it is.
#[derive(Default)]
struct Origins(Mutex<HashMap<Origin, usize>>);

/// A place of an address, and of the network around it; given back when this goes.
struct Place(Arc<Origins>, [Origin; 2]);

impl Origins {
    fn lock(&self) -> MutexGuard<'_, HashMap<Origin, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn place(self: &Arc<Origins>, address: IpAddr) -> Option<Place> {
        let (origins, mut all) = (origins(address), self.lock());
        let most = [RELAY_UNPROVEN_PER_ADDRESS_MAX, RELAY_UNPROVEN_PER_NETWORK_MAX];
        let has_room = |(origin, most): (&Origin, usize)| all.get(origin).is_none_or(|taken| *taken < most);
        if !origins.iter().zip(most).all(has_room) {
            return None;
        }
        origins.iter().for_each(|origin| *all.entry(*origin).or_default() += 1);
        Some(Place(self.clone(), origins))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut all = self.0.lock();
        for origin in &self.1 {
            if let Some(taken) = all.get_mut(origin) {
                *taken -= 1;
                if *taken == 0 {
                    all.remove(origin);
                }
            }
        }
    }
}

async fn accept(listener: TcpListener, service: RelayService, members: Arc<Members>) {
    let (unproven, origins) = (Arc::new(Semaphore::new(RELAY_UNPROVEN_MAX)), Arc::new(Origins::default()));
    for number in 0_u64.. {
        let Ok(place) = unproven.clone().acquire_owned().await else { return };
        let Ok((stream, from)) = listener.accept().await else {
            // Too many files are open, or it has ended before it was seen: neither is cured by haste.
            tokio::time::sleep(Duration::from_millis(ACCEPT_PAUSE_MS)).await;
            continue;
        };
        let Some(origin) = origins.place(from.ip()) else {
            members.refused.fetch_add(1, Ordering::Relaxed);
            continue;
        };
        let (service, members) = (service.clone(), members.clone());
        tokio::spawn(async move {
            admit(stream, service, number, &members).await;
            members.unproven().remove(&number);
            drop((place, origin));
        });
    }
}

/// Serves a connection until it is known whose it is. From then on the relay has it; one that does not come so far is closed.
async fn admit(stream: TcpStream, service: RelayService, number: u64, members: &Members) {
    let Ok(stream) = stream.into_std() else { return };
    let (Ok(kept), Ok(stream)) = (stream.try_clone(), TcpStream::from_std(stream)) else { return };
    let proven = Arc::new(Notify::new());
    members.unproven().insert(number, proven.clone());
    let service = RelayServiceWithNotify::new(service, proven.clone());
    let known = proven.notified();
    tokio::pin!(known);
    // Whoever is quick is heard of, too.
    known.as_mut().enable();
    let wants_packets = Arc::new(AtomicBool::new(false));
    let wants = wants_packets.clone();
    let answer = service_fn(move |mut request: Request<Incoming>| {
        request.headers_mut().insert(CONNECTION, HeaderValue::from(number));
        wants.fetch_or(request.uri().path() == RELAY_PATH, Ordering::Relaxed);
        let answered = service.call(request).into_inner();
        std::future::ready(answered.map_err(|error| io::Error::other(error.to_string())))
    });
    let served = async {
        let stream = TokioIo::new(MaybeTlsStream::Plain(stream));
        let ended = http1::Builder::new().keep_alive(false).serve_connection(stream, answer).with_upgrades().await;
        // What is not about packets has ended with its connection.
        if ended.is_ok() && wants_packets.load(Ordering::Relaxed) {
            known.await;
        }
    };
    if timeout(Duration::from_millis(RELAY_PROVE_MS_MAX), served).await.is_err() {
        let _closed_already = kept.shutdown(Shutdown::Both);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_network_takes_all_places_however_many_addresses_it_has() {
        let origins = Arc::new(Origins::default());
        let place = |address: &str| origins.place(address.parse().unwrap());
        let address: Vec<Place> = (0..).map_while(|n| place(&format!("2001:db8:7:1::{n:x}"))).collect();
        assert_eq!(address.len(), RELAY_UNPROVEN_PER_ADDRESS_MAX, "one address");
        let customer: Vec<Place> = (2..).map_while(|n| place(&format!("2001:db8:7:{n:x}::1"))).collect();
        assert_eq!(address.len() + customer.len(), RELAY_UNPROVEN_PER_NETWORK_MAX, "one network");
        assert!(place("2001:db8:8::1").is_some(), "its neighbour");
        let street: Vec<Place> = (0..256).map_while(|n| place(&format!("::ffff:192.0.2.{n}"))).collect();
        assert_eq!(street.len(), RELAY_UNPROVEN_PER_NETWORK_MAX);
        assert!(place("192.0.2.0").is_none() && place("192.0.3.0").is_some());
        drop((address, customer, street));
        assert!(origins.lock().is_empty(), "all are given back");
    }
}
