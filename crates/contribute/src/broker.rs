//! The broker: resolves, refuses what its owner's rules refuse, connects, and hands the connection over. It never reads from one.

use std::cell::{Cell, RefCell};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use skep_fetch::{Connected, Dns, Fault, Fetcher, Promise, Settings};
use skep_url::Url;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::LocalSet;

use crate::addresses::Addresses;
use crate::limits::{CONNECTING_MAX, PORTS, RECEIVE_BUFFER_BYTES};
use crate::networks::Networks;
use crate::own_network::OwnNetwork;
use crate::pipe::{self, Packets, Setup};
use crate::trust::Place;

/// What the fetcher asks for.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Wanted {
    ticket: u32,
    origin: String,
}

/// What it gets; the connection comes with it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Given {
    ticket: u32,
    made: Result<(IpAddr, u16, u32, u32), (String, String)>,
}

/// How connections are made, by the owner's rules.
pub fn settings(setup: &Setup) -> Result<Settings, String> {
    let mut settings = Settings::new(&setup.user_agent);
    settings.allow_private = setup.allow_private;
    for text in &setup.resolve {
        settings.resolve.push(text.parse().map_err(|error| format!("{error}"))?);
    }
    settings.name_servers.clone_from(&setup.name_servers);
    settings.roots_pem.clone_from(&setup.roots_pem);
    settings.from = setup.from;
    settings.receive_buffer_bytes = setup.paced.then_some(RECEIVE_BUFFER_BYTES);
    Ok(settings)
}

/// Names that mean a place in somebody's own network, whatever they resolve to.
const OWN_NAMES: [&str; 7] = [".local", ".internal", ".home.arpa", ".lan", ".onion", ".localhost", ".intranet"];

/// Whether the rules of its owner let a host be asked at all; the address is judged when it is known.
pub fn is_refused(url: &Url, setup: &Setup) -> Option<Fault> {
    is_refused_at(url, &PORTS, setup.allow_private)
}

/// The same for these ports.
pub fn is_refused_at(url: &Url, ports: &[u16], allow_private: bool) -> Option<Fault> {
    if allow_private {
        return None;
    }
    let host = url.host_name().trim_end_matches('.');
    let own = !host.contains('.') && url.address().is_none() || OWN_NAMES.iter().any(|name| host.ends_with(name));
    if own {
        return Some(Fault::AddressRefused(skep_url::address::Class::Private));
    }
    (!ports.contains(&url.port())).then(|| Fault::PortRefused(url.port()))
}

/// Runs the broker: the fetcher is at its standard input, main at its standard output.
pub async fn run() -> Result<(), String> {
    let wrong = |error: std::io::Error| error.to_string();
    crate::sandbox::be_nice();
    let mut main = pipe::stream(pipe::standard_output().map_err(wrong)?).map_err(wrong)?;
    let Some(setup) = pipe::receive::<_, Setup>(&mut main).await.map_err(wrong)? else { return Ok(()) };
    let settings = Arc::new(settings(&setup)?);
    let dns = Arc::new(Dns::new(&settings).map_err(|error| error.to_string())?);
    let fetcher = Fetcher::new(settings, dns.clone()).map_err(|error| error.to_string())?;
    let socket = rustix::io::dup(rustix::stdio::stdin()).map_err(|error| error.to_string())?;
    let packets = Rc::new(Packets::new(socket).map_err(wrong)?);
    let abroad = Rc::new(Abroad::of(&setup)?);
    let setup = Rc::new(setup);
    let seen_from = Rc::new(Cell::new(None));
    let paced = Rc::new(Paced { zero: Instant::now(), addresses: RefCell::default() });
    let connecting = Rc::new(Semaphore::new(CONNECTING_MAX));
    let serve = async {
        loop {
            match packets.receive::<Wanted>().await {
                Ok(Some((wanted, _))) => {
                    let (packets, fetcher, paced) = (packets.clone(), fetcher.clone(), paced.clone());
                    let abroad = abroad.clone();
                    let (dns, setup, seen_from) = (dns.clone(), setup.clone(), seen_from.get());
                    let own = move || OwnNetwork::look().seen_from(seen_from);
                    // Whoever asks for more than that waits, and what he asks for waits with him.
                    let Ok(place) = Semaphore::acquire(&connecting).await else { return };
                    place.forget();
                    let connecting = connecting.clone();
                    let giving = async move {
                        give(wanted, &packets, &fetcher, &dns, &setup, &own, &abroad, &paced).await;
                        connecting.add_permits(1);
                    };
                    tokio::task::spawn_local(giving);
                }
                Ok(None) | Err(_) => return,
            }
        }
    };
    // When main is gone, nothing is wanted any more.
    let gone = async {
        while let Ok(Some(address)) = pipe::receive::<_, IpAddr>(&mut main).await {
            seen_from.set(Some(address));
        }
    };
    let both = async {
        tokio::select! { () = serve => {}, () = gone => {} }
    };
    LocalSet::new().run_until(both).await;
    Ok(())
}

/// Countries that the owner avoids, by a table of his.
#[derive(Default)]
struct Abroad {
    networks: Networks,
    avoid: Vec<Place>,
}

impl Abroad {
    fn of(setup: &Setup) -> Result<Abroad, String> {
        let Some(path) = setup.networks.as_ref().filter(|_| !setup.avoid.is_empty()) else {
            return Ok(Abroad::default());
        };
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Abroad { networks: Networks::parse(&text).0, avoid: setup.avoid.clone() })
    }

    fn is_empty(&self) -> bool {
        self.avoid.is_empty()
    }

    fn holds(&self, address: IpAddr) -> bool {
        !self.is_empty() && self.avoid.contains(&self.networks.of(address).1)
    }
}

/// How often each address is connected to.
struct Paced {
    zero: Instant,
    addresses: RefCell<Addresses>,
}

impl Paced {
    /// Waits until a connection to this address may be used: nothing has been asked over it yet.
    async fn turn(&self, address: IpAddr) {
        let now_ms = self.zero.elapsed().as_millis() as u64;
        let at_ms = self.addresses.borrow_mut().turn(address, now_ms);
        tokio::time::sleep(Duration::from_millis(at_ms - now_ms)).await;
    }
}

/// How long a name may take.
const NAME_MS: u64 = 10_000;

/// Connects to what is neither in the owner's own network nor where he wants nobody asked: judged before anybody is, and by what it came to.
async fn connect(
    url: &Url,
    fetcher: &Fetcher,
    dns: &Dns,
    is_refused: &dyn Fn(IpAddr) -> bool,
) -> Result<Connected, Fault> {
    let refused = || Fault::AddressRefused(skep_url::address::Class::Private);
    let found = dns.ahead(url, NAME_MS).await.map(|found| found.addresses).unwrap_or_default();
    if found.into_iter().chain(url.address()).any(is_refused) {
        return Err(refused());
    }
    let connected = fetcher.connect(url).await?;
    if is_refused(connected.address.ip()) { Err(refused()) } else { Ok(connected) }
}

async fn give(
    wanted: Wanted,
    packets: &Packets,
    fetcher: &Fetcher,
    dns: &Dns,
    setup: &Setup,
    own: &dyn Fn() -> OwnNetwork,
    abroad: &Abroad,
    paced: &Paced,
) {
    let made = match Url::parse(&wanted.origin) {
        Ok(url) => match is_refused(&url, setup) {
            Some(fault) => Err(fault),
            None if setup.allow_private && abroad.is_empty() => fetcher.connect(&url).await,
            None if setup.allow_private => connect(&url, fetcher, dns, &|address| abroad.holds(address)).await,
            None => {
                let own = own();
                let is_refused = |address| own.holds(address) || abroad.holds(address);
                let made = connect(&url, fetcher, dns, &is_refused).await;
                if let Ok(connected) = &made {
                    paced.turn(connected.address.ip()).await;
                }
                made
            }
        },
        Err(_) => Err(Fault::Request),
    };
    let told = |made| Given { ticket: wanted.ticket, made };
    let sent = match made {
        Ok(Connected { socket, address, resolve_ms, connect_ms }) => {
            let given = told(Ok((address.ip(), address.port(), resolve_ms, connect_ms)));
            match socket.into_std() {
                Ok(socket) => packets.send(&given, Some(&socket.into())).await,
                Err(error) => packets.send(&told(Err(("local-resources".into(), error.to_string()))), None).await,
            }
        }
        Err(fault) => {
            let text: String = match &fault {
                Fault::PortRefused(port) => port.to_string(),
                other => other.to_string().chars().take(200).collect(),
            };
            packets.send(&told(Err((fault.id().to_owned(), text))), None).await
        }
    };
    // A fetcher that is gone wants nothing.
    drop(sent);
}

/// The fetcher's side: asks the broker for connections.
pub struct Asking {
    ask: mpsc::UnboundedSender<(String, oneshot::Sender<Result<Connected, Fault>>)>,
}

impl Asking {
    /// Over this socket. What it returns has to run.
    pub fn new(socket: Packets) -> (Asking, impl Future<Output = ()>) {
        let (ask, mut asked) = mpsc::unbounded_channel::<(String, oneshot::Sender<Result<Connected, Fault>>)>();
        let run = async move {
            let mut waiting = std::collections::HashMap::new();
            let mut ticket = 0u32;
            loop {
                tokio::select! {
                    asked = asked.recv() => {
                        let Some((origin, answer)) = asked else { return };
                        ticket = ticket.wrapping_add(1);
                        waiting.insert(ticket, answer);
                        if socket.send(&Wanted { ticket, origin }, None).await.is_err() {
                            return;
                        }
                    }
                    given = socket.receive::<Given>() => {
                        let Ok(Some((given, connection))) = given else { return };
                        if let Some(answer) = waiting.remove(&given.ticket) {
                            let _gave_up = answer.send(made(given.made, connection));
                        }
                    }
                }
            }
        };
        (Asking { ask }, run)
    }
}

fn made(
    made: Result<(IpAddr, u16, u32, u32), (String, String)>,
    connection: Option<std::os::fd::OwnedFd>,
) -> Result<Connected, Fault> {
    let local = |why: String| Fault::LocalResources(why);
    match (made, connection) {
        (Ok((ip, port, resolve_ms, connect_ms)), Some(connection)) => {
            let socket = std::net::TcpStream::from(connection);
            socket.set_nonblocking(true).map_err(|error| local(error.to_string()))?;
            let socket = tokio::net::TcpStream::from_std(socket).map_err(|error| local(error.to_string()))?;
            Ok(Connected { socket, address: SocketAddr::new(ip, port), resolve_ms, connect_ms })
        }
        (Ok(_), None) => Err(local("the broker gave no connection".into())),
        (Err((id, text)), _) => Err(Fault::named(&id, &text).unwrap_or(Fault::NoAddress)),
    }
}

impl skep_fetch::Broker for Asking {
    fn connect<'a>(&'a self, origin: &'a Url) -> Promise<'a, Result<Connected, Fault>> {
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            let gone = || Fault::LocalResources("the broker is gone".into());
            self.ask.send((origin.as_str().to_owned(), answer)).map_err(|_| gone())?;
            answered.await.map_err(|_| gone())?
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(url: &str) -> Option<&'static str> {
        is_refused(&Url::parse(url).unwrap(), &Setup::default()).map(|fault| fault.id())
    }

    #[test]
    fn odd_ports_and_names_of_ones_own_network_are_refused_before_anybody_is_asked() {
        for url in
            ["http://router/", "http://printer.local/", "http://db.internal/", "http://nas.lan/", "http://x.localhost/"]
        {
            assert_eq!(refused(url), Some("address-refused"), "{url}");
        }
        for url in
            ["http://example.org:22/", "http://example.org:8080/", "https://example.org:444/", "http://192.0.2.1:6379/"]
        {
            assert_eq!(refused(url), Some("port-refused"), "{url}");
        }
        for url in ["http://example.org/", "https://example.org/", "http://example.org:443/"] {
            assert_eq!(refused(url), None, "{url}");
        }
    }
}
