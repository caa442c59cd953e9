//! From names to addresses: overrides first, then a cache, then one look-up for all who wait for it.
//!
//! Look-ups have a thread and a runtime of their own, started by the first: workers come and go, and none of them waits for an
//! answer that another one would have had to drive.

mod cache;
mod lookup;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use skep_url::{Url, address};
use tokio::sync::mpsc::{self, error::TrySendError};

use cache::{Cache, Found};

use crate::fault::{DnsFault, Fault};
use crate::gate::Gate;
use crate::limits::{ADDRESSES_MAX, NAMES_MAX};
use crate::settings::{Override, Proxy, Settings, SetupError};

/// What a name was resolved to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// The name.
    pub host: String,
    /// Its addresses, as answered, not yet through the gate.
    pub addresses: Vec<IpAddr>,
    /// The block of a `dns:` record, `text/dns`: the date, then a line for each record. Empty for addresses given by hand.
    pub text: String,
    /// Nobody was asked for it now.
    pub from_cache: bool,
}

impl Resolved {
    pub(crate) fn given(host: &str, overrides: &[Override]) -> Resolved {
        let addresses = overrides.iter().map(|o| o.address).collect();
        Resolved { host: host.to_owned(), addresses, text: String::new(), from_cache: true }
    }
}

/// Names and addresses, shared by all workers of a process.
pub struct Dns {
    overrides: Vec<Override>,
    name_servers: Vec<SocketAddr>,
    cache: Arc<Mutex<Cache>>,
    lookups: OnceLock<mpsc::Sender<String>>,
}

impl Dns {
    /// With the overrides and name servers of these settings. Nothing is started or read before the first look-up.
    pub fn new(settings: &Settings) -> Result<Dns, SetupError> {
        Ok(Dns {
            overrides: settings.resolve.clone(),
            name_servers: settings.name_servers.clone(),
            cache: Arc::new(Mutex::new(Cache::new(NAMES_MAX))),
            lookups: OnceLock::new(),
        })
    }

    /// The addresses given by hand for this host; those that name it come before those with a star.
    pub(crate) fn overrides(&self, host: &str) -> Vec<Override> {
        if self.overrides.is_empty() {
            return Vec::new();
        }
        let host = host.trim_end_matches('.');
        let of = |exact: bool| {
            let fits = move |o: &&Override| o.is_exact() == exact && o.matches(host);
            self.overrides.iter().filter(fits).take(ADDRESSES_MAX).cloned().collect::<Vec<_>>()
        };
        let exact = of(true);
        if exact.is_empty() { of(false) } else { exact }
    }

    /// The addresses of a host, from the cache or by asking.
    pub(crate) async fn resolve(&self, host: &str, gate: &Gate, wait_ms: u64) -> Result<Resolved, Fault> {
        let name = host.trim_end_matches('.');
        if is_local_name(name) {
            // Names for this machine are never asked for: a resolver could say anything.
            if !gate.allows_private() {
                return Err(Fault::AddressRefused(address::Class::Loopback));
            }
            let addresses = vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
            return Ok(Resolved { host: host.to_owned(), addresses, text: String::new(), from_cache: true });
        }
        let (answer, from_cache) = self.look_up(name, wait_ms).await;
        let answer = answer.map_err(Fault::Dns)?;
        if answer.addresses.is_empty() {
            return Err(Fault::NoAddress);
        }
        Ok(Resolved {
            host: host.to_owned(),
            addresses: answer.addresses.clone(),
            text: answer.text.clone(),
            from_cache,
        })
    }

    /// Where a proxy is. The operator named it, so it may be this machine.
    pub(crate) async fn resolve_proxy(&self, proxy: &Proxy, wait_ms: u64) -> Result<Vec<SocketAddr>, Fault> {
        let bare = proxy.host.trim_start_matches('[').trim_end_matches(']');
        let addresses = match bare.parse::<IpAddr>() {
            Ok(address) => vec![address],
            Err(_) => self.resolve(&proxy.host, &Gate::open(), wait_ms).await?.addresses,
        };
        Ok(addresses.into_iter().map(|address| SocketAddr::new(address, proxy.port)).collect())
    }

    async fn look_up(&self, name: &str, wait_ms: u64) -> (Result<Arc<cache::Answer>, DnsFault>, bool) {
        let found = self.cache().get(name, Instant::now());
        let (waiting, first) = match found {
            Found::Known(answer) => return (answer, true),
            Found::Wait { waiting, first } => (waiting, first),
        };
        if first {
            let lookups = self.lookups.get_or_init(|| lookup::start(self.name_servers.clone(), self.cache.clone()));
            // Not awaited: whoever entered the name as asked for must not be dropped before it is.
            if let Err(error) = lookups.try_send(name.to_owned()) {
                let why = match error {
                    TrySendError::Full(_) => "too many names wait to be looked up",
                    TrySendError::Closed(_) => "the thread that looks names up could not be started",
                };
                self.cache().settle(name, Err((DnsFault::NoResolver(why.to_owned()), 0)), Instant::now());
            }
        }
        // The look-up has a deadline of its own; this one also covers its time in the queue.
        match tokio::time::timeout(Duration::from_millis(wait_ms), waiting).await {
            Ok(answer) => (answer.unwrap_or(Err(DnsFault::Timeout)), false),
            Err(_) => (Err(DnsFault::Timeout), false),
        }
    }

    /// The address of this host that was connected to the last time.
    pub(crate) fn winner(&self, host: &str) -> Option<IpAddr> {
        self.cache().winner(host.trim_end_matches('.'))
    }

    pub(crate) fn remember_winner(&self, host: &str, address: IpAddr) {
        self.cache().remember_winner(host.trim_end_matches('.'), address);
    }

    /// Resolves a URL's host ahead of time, for those who want to know its address before they ask it.
    pub async fn ahead(&self, url: &Url, wait_ms: u64) -> Result<Resolved, Fault> {
        let overrides = self.overrides(url.host_name());
        if !overrides.is_empty() {
            return Ok(Resolved::given(url.host_name(), &overrides));
        }
        if let Some(address) = url.address() {
            let host = url.host_name().to_owned();
            return Ok(Resolved { host, addresses: vec![address], text: String::new(), from_cache: true });
        }
        self.resolve(url.host_name(), &Gate::open(), wait_ms).await
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Names that mean this machine, whatever a resolver says.
pub(crate) fn is_local_name(host: &str) -> bool {
    let host = host.trim_end_matches('.');
    host == "localhost" || host.ends_with(".localhost") || host == "localhost.localdomain" || host == "ip6-localhost"
}

/// Endings under which only a network's own name server, or none, knows anybody: RFC 6762 with its appendix G, RFC 8375, and what ICANN set aside.
const PRIVATE_ENDINGS: [&str; 9] =
    ["local", "localdomain", "internal", "intranet", "private", "corp", "home", "lan", "home.arpa"];

/// Names that mean something in somebody's own network only: those without a dot, and those under endings that are for nothing else. One that
/// resolves them for us would lead us into its network.
pub(crate) fn is_private_name(host: &str) -> bool {
    let host = host.trim_end_matches('.');
    let is_under = |ending: &str| host.strip_suffix(ending).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    !host.contains('.') || PRIVATE_ENDINGS.into_iter().any(is_under)
}
