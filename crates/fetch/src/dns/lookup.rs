//! Look-ups: a thread with a runtime of its own, which asks the name servers and tells the cache.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolverConfig, ResolverOpts};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::{Record, RecordType};
use tokio::sync::{Semaphore, mpsc};

use super::cache::{Answer, Cache};
use crate::fault::DnsFault;
use crate::limits::{
    ADDRESSES_MAX, LOOKUP_MS, LOOKUPS_MAX, LOOKUPS_WAITING_MAX, QUESTION_MS, REFUSED_MS, REFUSED_TRIES,
};

const REFUSED: &str = "the name server refused to answer";
const SYSTEM_CONFIG: &str = "/etc/resolv.conf";

/// Starts the thread. It ends when the sender is dropped.
pub(super) fn start(name_servers: Vec<SocketAddr>, cache: Arc<Mutex<Cache>>) -> mpsc::Sender<String> {
    let (sender, mut names) = mpsc::channel::<String>(LOOKUPS_WAITING_MAX);
    let settle = move |name: &str, result| {
        cache.lock().unwrap_or_else(PoisonError::into_inner).settle(name, result, Instant::now());
    };
    let work = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = match runtime {
            Ok(runtime) => runtime,
            Err(error) => {
                while let Some(name) = names.blocking_recv() {
                    settle(&name, Err((DnsFault::NoResolver(error.to_string()), 0)));
                }
                return;
            }
        };
        runtime.block_on(async move {
            let settle = Arc::new(settle);
            let places = Arc::new(Semaphore::new(LOOKUPS_MAX));
            let mut servers = Servers { given: name_servers, resolver: None };
            while let Some(name) = names.recv().await {
                let resolver = match servers.resolver() {
                    Ok(resolver) => resolver,
                    Err(why) => {
                        settle(&name, Err((DnsFault::NoResolver(why), 0)));
                        continue;
                    }
                };
                let Ok(place) = places.clone().acquire_owned().await else { return };
                let settle = settle.clone();
                tokio::spawn(async move {
                    let asked =
                        tokio::time::timeout(Duration::from_millis(LOOKUP_MS), patiently(&resolver, &name)).await;
                    settle(&name, asked.unwrap_or(Err((DnsFault::Timeout, 0))));
                    drop(place);
                });
            }
        });
    };
    // Where no thread can be started the receiver goes with it, and who sends is told.
    let _ = std::thread::Builder::new().name("skep-dns".to_owned()).spawn(work);
    sender
}

/// The resolver, made anew when the system's list of name servers has changed: laptops move between networks.
struct Servers {
    given: Vec<SocketAddr>,
    resolver: Option<(Arc<TokioResolver>, Option<SystemTime>)>,
}

impl Servers {
    fn resolver(&mut self) -> Result<Arc<TokioResolver>, String> {
        let changed = if self.given.is_empty() {
            std::fs::metadata(SYSTEM_CONFIG).and_then(|file| file.modified()).ok()
        } else {
            None
        };
        if let Some((resolver, made_for)) = &self.resolver
            && *made_for == changed
        {
            return Ok(resolver.clone());
        }
        let (config, mut options) = self.config()?;
        options.timeout = Duration::from_millis(QUESTION_MS);
        options.attempts = 2;
        options.cache_size = 0; // ours stands above
        options.max_active_requests = 2 * LOOKUPS_MAX;
        let mut builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
        *builder.options_mut() = options;
        let resolver = Arc::new(builder.build().map_err(|error| error.to_string())?);
        self.resolver = Some((resolver.clone(), changed));
        Ok(resolver)
    }

    fn config(&self) -> Result<(ResolverConfig, ResolverOpts), String> {
        if self.given.is_empty() {
            let (config, options) = hickory_resolver::system_conf::read_system_conf()
                .map_err(|error| format!("{SYSTEM_CONFIG}: {error}"))?;
            if config.name_servers().is_empty() {
                return Err(format!("{SYSTEM_CONFIG} names none"));
            }
            return Ok((config, options));
        }
        let servers = self.given.iter().map(|server| {
            let with_port = |mut connection: ConnectionConfig| {
                connection.port = server.port();
                connection
            };
            let connections = vec![with_port(ConnectionConfig::udp()), with_port(ConnectionConfig::tcp())];
            NameServerConfig::new(server.ip(), true, connections)
        });
        Ok((ResolverConfig::from_name_servers(servers.collect()), ResolverOpts::default()))
    }
}

/// A server that will not answer at all is asked again a little later, and not by all at the same moment: many refuse whoever
/// asks too much.
async fn patiently(resolver: &TokioResolver, name: &str) -> Result<Answer, (DnsFault, u64)> {
    let spread_ms = name.bytes().fold(0u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into())) % REFUSED_MS;
    for wait in 0..REFUSED_TRIES {
        match look_up(resolver, name).await {
            Err((DnsFault::ServerFailed(why), _)) if why == REFUSED => {
                tokio::time::sleep(Duration::from_millis((REFUSED_MS << wait) + spread_ms)).await;
            }
            other => return other,
        }
    }
    look_up(resolver, name).await
}

/// Asks for both kinds of address at once.
async fn look_up(resolver: &TokioResolver, name: &str) -> Result<Answer, (DnsFault, u64)> {
    let whole = format!("{name}."); // else the system's search domains would be tried, too
    let (four, six) = tokio::join!(resolver.lookup(&*whole, RecordType::A), resolver.lookup(&*whole, RecordType::AAAA));
    let mut records: Vec<Record> = Vec::new();
    let mut fault = None;
    for result in [four, six] {
        match result {
            Ok(found) => {
                for record in found.answers() {
                    if !records.contains(record) {
                        records.push(record.clone());
                    }
                }
            }
            Err(error) => {
                let (next, ttl_ms) = judge(&error);
                // One family in trouble says more than the other one's "none"; "no such name" says most.
                if let Some(next) = next
                    && (fault.is_none() || next == DnsFault::NotFound)
                {
                    fault = Some((next, ttl_ms));
                }
            }
        }
    }
    let addresses: Vec<_> = records.iter().filter_map(|record| record.data.ip_addr()).take(ADDRESSES_MAX).collect();
    match fault {
        Some(fault) if addresses.is_empty() => Err(fault),
        _ => Ok(answer(&records, addresses)),
    }
}

fn answer(records: &[Record], addresses: Vec<std::net::IpAddr>) -> Answer {
    let ttl = records.iter().map(|record| record.ttl).min().unwrap_or(0);
    let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64);
    let mut text = format!("{}\n", skep_warc::date::timestamp14(now_ms));
    for record in records.iter().take(2 * ADDRESSES_MAX) {
        text.push_str(&format!("{}\t{}\tIN\t{}\t{}\n", record.name, record.ttl, record.record_type(), record.data));
    }
    Answer { addresses, text, ttl_ms: u64::from(ttl) * 1000 }
}

/// `None`: the name is there and has no address of this kind.
fn judge(error: &NetError) -> (Option<DnsFault>, u64) {
    match error {
        NetError::Dns(DnsError::NoRecordsFound(none)) => {
            let ttl_ms = u64::from(none.negative_ttl.unwrap_or(0)) * 1000;
            (error.is_nx_domain().then_some(DnsFault::NotFound), ttl_ms)
        }
        NetError::Timeout => (Some(DnsFault::Timeout), 0),
        // Nobody could be asked, for want of a socket or of a server: that says nothing about the name.
        NetError::Io(_) | NetError::NoConnections | NetError::Busy => {
            (Some(DnsFault::NoResolver(error.to_string())), 0)
        }
        NetError::Dns(DnsError::ResponseCode(ResponseCode::Refused)) => {
            (Some(DnsFault::ServerFailed(REFUSED.to_owned())), 0)
        }
        NetError::Proto(_) => (Some(DnsFault::NotFound), 0), // no name that could be asked for
        other => (Some(DnsFault::ServerFailed(other.to_string())), 0),
    }
}
