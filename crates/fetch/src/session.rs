//! A session with one server: connects when needed, asks, reads, keeps the connection while all is well. The spine of this
//! package.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};

use skep_url::{Url, address};
use skep_warc::http::Head;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use crate::broker::{Broker, Connected, Meter};
use crate::connect;
use crate::dns::{Dns, Resolved};
use crate::exchange::{Ask, Exchange, Note, Timings};
use crate::fault::{Fault, ProxyFault, Refusal, Stage};
use crate::gate::{Admitted, Gate, is_bad_port};
use crate::proxy::{self, Destination};
use crate::receive::{Received, ms, receive};
use crate::request::Template;
use crate::settings::{Override, Proxy, ProxyKind, Settings, SetupError, basic};
use crate::stream::Stream;
use crate::tls::{self, Tls};

/// Makes sessions. One per worker; cheap to clone.
#[derive(Clone)]
pub struct Fetcher {
    shared: Arc<Shared>,
}

struct Shared {
    settings: Arc<Settings>,
    dns: Arc<Dns>,
    gate: Gate,
    proxy_authorization: Option<String>,
    /// Made for the first https URL.
    tls: OnceLock<tls::Client>,
    /// Who connects, where this process may not.
    broker: Option<Arc<dyn Broker>>,
    /// How many bytes may be read, where that is bounded.
    meter: Option<Arc<dyn Meter>>,
}

impl Fetcher {
    /// A fetcher with these settings.
    pub fn new(settings: Arc<Settings>, dns: Arc<Dns>) -> Result<Fetcher, SetupError> {
        if settings.user_agent.is_empty() || !settings.user_agent.bytes().all(|b| (0x20..0x7f).contains(&b)) {
            return Err(SetupError("the user agent is one line of printable ASCII".to_owned()));
        }
        for rule in &settings.headers {
            rule.check()?;
        }
        if let Some(pem) = &settings.roots_pem {
            tls::read_roots(pem)?;
        }
        let proxy = settings.proxy.as_ref().filter(|proxy| proxy.kind == ProxyKind::Http);
        let proxy_authorization = proxy.and_then(|proxy| proxy.credentials.as_ref()).map(basic);
        let gate = Gate::new(settings.allow_private, &settings.own_addresses);
        Ok(Fetcher {
            shared: Arc::new(Shared {
                settings,
                dns,
                gate,
                proxy_authorization,
                tls: OnceLock::new(),
                broker: None,
                meter: None,
            }),
        })
    }

    /// The same where others connect, and say how many bytes may be read: for a process that may do neither by itself. What is read
    /// from files, the authorities to trust, is read here.
    pub fn brokered(
        settings: Arc<Settings>,
        dns: Arc<Dns>,
        broker: Arc<dyn Broker>,
        meter: Arc<dyn Meter>,
    ) -> Result<Fetcher, SetupError> {
        let Fetcher { shared } = Fetcher::new(settings, dns)?;
        let mut shared = Arc::into_inner(shared).ok_or_else(|| SetupError("a fetcher in use".to_owned()))?;
        (shared.broker, shared.meter) = (Some(broker), Some(meter));
        shared.tls.get_or_init(|| tls::Client::new(&shared.settings)).prepare();
        Ok(Fetcher { shared: Arc::new(shared) })
    }

    /// Connects to the server of `origin` for somebody else, through the gate. No TLS, and no proxy.
    pub async fn connect(&self, origin: &Url) -> Result<Connected, Fault> {
        let mut timings = Timings::default();
        let mut session = self.session(origin);
        let (targets, winner) = session.targets(&mut timings).await?;
        let began = Instant::now();
        let (shared, limits) = (&self.shared, &self.shared.settings.limits);
        let (socket, address) = connect::connect(&targets, &shared.gate, shared.dial(), limits.connect_ms).await?;
        if targets.len() > 1 && winner != Some(address.ip()) {
            shared.dns.remember_winner(origin.host_name(), address.ip());
        }
        let (resolve_ms, connect_ms) = (timings.resolve_ms, between(began, Instant::now()));
        Ok(Connected { socket, address, resolve_ms, connect_ms })
    }

    /// A session that answers with exchanges which others made, each once; what is not among them is asked for.
    pub fn session_of(&self, origin: &Url, given: Vec<(Url, Exchange)>) -> Session {
        let mut session = self.session(origin);
        for (url, exchange) in given {
            session.given.entry(url.as_str().to_owned()).or_default().push_back(exchange);
        }
        session
    }

    /// A session with the server of `origin`; nothing is connected yet.
    pub fn session(&self, origin: &Url) -> Session {
        let template = self.shared.template(origin);
        Session {
            shared: self.shared.clone(),
            origin: origin.clone(),
            template,
            connection: None,
            resolved: None,
            given: HashMap::new(),
        }
    }

    /// Is somebody there? Connects to the server of `origin` and leaves without a word.
    pub async fn knock(&self, origin: &Url) -> Result<(), Fault> {
        self.session(origin).connect(&mut Timings::default()).await.map(drop)
    }
}

impl Shared {
    fn dial(&self) -> connect::Dial {
        connect::Dial { from: self.settings.from, receive_buffer_bytes: self.settings.receive_buffer_bytes }
    }

    fn template(&self, origin: &Url) -> Template {
        let absolute =
            !origin.is_https() && self.settings.proxy.as_ref().is_some_and(|proxy| proxy.kind == ProxyKind::Http);
        let authorization = self.proxy_authorization.as_deref().filter(|_| absolute);
        Template::new(&self.settings, origin, absolute, authorization)
    }
}

/// A session with one server.
pub struct Session {
    shared: Arc<Shared>,
    origin: Url,
    template: Template,
    connection: Option<Connection>,
    resolved: Option<Resolved>,
    /// Exchanges made by others, by URL.
    given: HashMap<String, VecDeque<Exchange>>,
}

/// A connection that stands.
struct Connection {
    stream: Stream,
    address: Option<SocketAddr>,
    tls: Option<Arc<Tls>>,
}

impl Session {
    /// What the host's name was resolved to when the session last connected; `None` for addresses in URLs and through proxies.
    pub fn resolved(&self) -> Option<&Resolved> {
        self.resolved.as_ref()
    }

    /// Is there an exchange for this URL that others made?
    pub fn brings(&self, url: &Url) -> bool {
        self.given.contains_key(url.as_str())
    }

    /// Does a connection stand?
    pub fn is_connected(&self) -> bool {
        self.connection.is_some()
    }

    /// One GET. Every outcome is an [`Exchange`]. A connection that stood and died before the first byte is made anew, once.
    pub async fn get(&mut self, ask: &Ask<'_>) -> Exchange {
        if let Some(made) = self.given.get_mut(ask.url.as_str()) {
            let exchange = made.pop_front();
            if made.is_empty() {
                self.given.remove(ask.url.as_str());
            }
            if let Some(exchange) = exchange {
                return exchange;
            }
        }
        let started = Instant::now();
        let mut exchange = Exchange { cookie_is_theirs: ask.cookie_is_theirs, ..Exchange::default() };
        self.go_to(ask.url);
        let Some(request) = self.template.write(ask) else {
            exchange.fault = Some(Fault::Request);
            return exchange;
        };
        let mut kept = self.connection.take();
        if let Some(connection) = &mut kept
            && !connection.stream.is_quiet().await
        {
            kept = None;
        }
        loop {
            exchange.reused = kept.is_some();
            let mut connection = match kept.take() {
                Some(connection) => connection,
                None => match self.connect(&mut exchange.timings).await {
                    Ok(connection) => connection,
                    Err(fault) => {
                        exchange.fault = Some(fault);
                        break;
                    }
                },
            };
            let sent = Instant::now();
            let received = self.ask(&mut connection, &request, ask, sent).await;
            if exchange.reused && received.first_byte.is_none() && received.fault == Some(Fault::Closed) {
                exchange.notes.push(Note::Reconnected);
                continue;
            }
            exchange.request = request;
            exchange.secrets = self.template.secrets.clone();
            exchange.address = connection.address;
            exchange.tls = connection.tls.clone();
            if received.is_reusable {
                self.connection = Some(connection);
            } else if !received.is_closed && received.is_abuse() {
                connection.stream.abandon();
            }
            exchange.timings.first_byte_ms = received.first_byte.map_or(0, |at| between(sent, at));
            // Through a proxy nobody else asks for a proxy's credentials; it is no answer of the server's.
            let is_refusal = self.template.absolute && received.head.as_ref().and_then(Head::status) == Some(407);
            match is_refusal {
                true => exchange.fault = Some(Fault::Proxy(ProxyFault::Credentials)),
                false => fill(&mut exchange, received),
            }
            break;
        }
        exchange.timings.total_ms = between(started, Instant::now());
        exchange
    }

    /// A URL of another server moves the session there.
    fn go_to(&mut self, url: &Url) {
        let same = (url.scheme(), url.host_name(), url.port())
            == (self.origin.scheme(), self.origin.host_name(), self.origin.port());
        if !same {
            self.connection = None;
            self.resolved = None;
            self.template = self.shared.template(url);
            self.origin = url.clone();
        }
    }

    async fn ask(&self, connection: &mut Connection, request: &[u8], ask: &Ask<'_>, sent: Instant) -> Received {
        let limits = &self.shared.settings.limits;
        let writing = async {
            connection.stream.write_all(request).await?;
            connection.stream.flush().await
        };
        // A server that does not take the request may have answered already: what it says decides, not the write.
        let _ = timeout_at(sent + ms(limits.first_byte_ms), writing).await;
        let (max, wanted) = (ask.body_bytes_max, ask.wanted);
        receive(&mut connection.stream, limits, max, wanted, sent, self.shared.meter.as_deref()).await
    }

    async fn connect(&mut self, timings: &mut Timings) -> Result<Connection, Fault> {
        let shared = self.shared.clone();
        let (socket, address) = match &shared.settings.proxy {
            None if shared.broker.is_some() => {
                let broker = shared.broker.as_deref().ok_or(Fault::NoAddress)?;
                let Connected { socket, address, resolve_ms, connect_ms } = broker.connect(&self.origin).await?;
                (timings.resolve_ms, timings.connect_ms) = (resolve_ms, connect_ms);
                (socket, Some(address))
            }
            None => {
                let (targets, winner) = self.targets(timings).await?;
                let began = Instant::now();
                let connected =
                    connect::connect(&targets, &shared.gate, shared.dial(), shared.settings.limits.connect_ms).await;
                timings.connect_ms = between(began, Instant::now());
                let (socket, address) = connected?;
                if targets.len() > 1 && winner != Some(address.ip()) {
                    shared.dns.remember_winner(self.origin.host_name(), address.ip());
                }
                (socket, Some(address))
            }
            Some(proxy) => {
                let began = Instant::now();
                let connected = self.connect_through(proxy).await;
                timings.connect_ms = between(began, Instant::now());
                (connected?, None)
            }
        };
        if !self.origin.is_https() {
            return Ok(Connection { stream: Stream::Plain(socket), address, tls: None });
        }
        let began = Instant::now();
        let client = shared.tls.get_or_init(|| tls::Client::new(&shared.settings));
        let deadline = began + ms(shared.settings.limits.handshake_ms);
        let shaken = timeout_at(deadline, client.connect(&self.origin, socket)).await;
        timings.tls_ms = between(began, Instant::now());
        let (stream, tls) = shaken.map_err(|_| Fault::Timeout(Stage::Handshake))??;
        Ok(Connection { stream: Stream::Tls(Box::new(stream)), address, tls: Some(Arc::new(tls)) })
    }

    /// Where the server may be, through the gate, in the order in which to try.
    async fn targets(&mut self, timings: &mut Timings) -> Result<(Vec<Admitted>, Option<IpAddr>), Fault> {
        let shared = self.shared.clone();
        let (host, port) = (self.origin.host_name(), self.origin.port());
        let overrides = shared.dns.overrides(host);
        check_port(port, &overrides)?;
        let private_too = shared.settings.may_be_private(host) || !overrides.is_empty() && shared.settings.is_own(host);
        let (found, winner) = if !overrides.is_empty() {
            self.resolved = Some(Resolved::given(host, &overrides));
            let targets = overrides.iter().map(|o| SocketAddr::new(o.address, o.port.unwrap_or(port))).collect();
            (targets, shared.dns.winner(host))
        } else if let Some(address) = self.origin.address() {
            self.resolved = None;
            (vec![SocketAddr::new(address, port)], None)
        } else {
            let began = Instant::now();
            let answer = shared.dns.resolve(host, &shared.gate, shared.settings.limits.lookup_wait_ms).await;
            timings.resolve_ms = between(began, Instant::now());
            let resolved = answer?;
            let targets: Vec<SocketAddr> = resolved.addresses.iter().map(|&ip| SocketAddr::new(ip, port)).collect();
            self.resolved = Some(resolved);
            (targets, shared.dns.winner(host))
        };
        let mut refusal = None;
        let mut targets = Vec::with_capacity(found.len());
        for target in found {
            match shared.gate.admit(target, private_too) {
                Ok(admitted) => targets.push(admitted),
                // A name that points nowhere has no address; one written into a URL was meant, and is refused.
                Err(r) if r.class == address::Class::ThisNetwork && self.origin.address().is_none() && !r.own => {}
                Err(r) => {
                    refusal.get_or_insert(r);
                }
            }
        }
        match (targets.is_empty(), refusal) {
            (true, Some(refusal)) => Err(refusal.fault()),
            (true, None) => Err(Fault::NoAddress),
            _ => Ok((connect::order(&targets, |t| t.target().ip(), winner), winner)),
        }
    }

    async fn connect_through(&mut self, proxy: &Proxy) -> Result<TcpStream, Fault> {
        let shared = self.shared.clone();
        let limits = &shared.settings.limits;
        self.resolved = None;
        let destination = self.destination()?;
        let unreachable = |fault: Fault| match fault {
            Fault::LocalResources(_) => fault,
            other => Fault::Proxy(ProxyFault::Unreachable(other.to_string())),
        };
        let targets = shared.dns.resolve_proxy(proxy, limits.lookup_wait_ms).await.map_err(unreachable)?;
        let targets: Vec<Admitted> = targets.into_iter().map(Gate::admit_proxy).collect();
        // Which process of ours listens at the proxy's address is the operator's business.
        let open = Gate::open();
        let (mut socket, _) =
            connect::connect(&targets, &open, shared.dial(), limits.connect_ms).await.map_err(unreachable)?;
        let authorization = shared.proxy_authorization.as_deref();
        let handshake = async {
            match proxy.kind {
                ProxyKind::Http if !self.origin.is_https() => Ok(()),
                ProxyKind::Http => {
                    proxy::tunnel(&mut socket, &destination, authorization, &shared.settings.user_agent).await
                }
                ProxyKind::Socks5 => proxy::socks5(&mut socket, &destination, proxy.credentials.as_ref()).await,
            }
        };
        match timeout_at(Instant::now() + ms(limits.handshake_ms), handshake).await {
            Ok(Ok(())) => Ok(socket),
            Ok(Err(fault)) => Err(Fault::Proxy(fault)),
            Err(_) => Err(Fault::Proxy(ProxyFault::Timeout)),
        }
    }

    /// What the proxy is asked for. Where it resolves the name, the gate sees only what stands in the URL: addresses, and names
    /// that mean this machine or somebody in the proxy's own network.
    fn destination(&self) -> Result<Destination, Fault> {
        let shared = &self.shared;
        let (host, port) = (self.origin.host_name(), self.origin.port());
        let overrides = shared.dns.overrides(host);
        let given = overrides.first().map(|o| (o.address, o.port)).or_else(|| self.origin.address().map(|a| (a, None)));
        check_port(port, &overrides)?;
        let may_be_private = || shared.settings.may_be_private(host);
        match given {
            Some((address, other_port)) => {
                let target = SocketAddr::new(address, other_port.unwrap_or(port));
                let private_too = may_be_private() || !overrides.is_empty() && shared.settings.is_own(host);
                let admitted = shared.gate.admit(target, private_too).map_err(Refusal::fault)?;
                Ok(Destination::Address(admitted.target()))
            }
            None if crate::dns::is_local_name(host) && !shared.gate.allows_private() => {
                Err(Fault::AddressRefused(address::Class::Loopback))
            }
            None if crate::dns::is_private_name(host) && !(shared.gate.allows_private() || may_be_private()) => {
                Err(Fault::AddressRefused(address::Class::Private))
            }
            None => Ok(Destination::Name(host.to_owned(), port)),
        }
    }
}

/// Ports of other protocols are refused, unless all overrides of the host name the port to connect to.
fn check_port(port: u16, overrides: &[Override]) -> Result<(), Fault> {
    let is_named = !overrides.is_empty() && overrides.iter().all(|o| o.port.is_some());
    if is_bad_port(port) && !is_named { Err(Fault::PortRefused(port)) } else { Ok(()) }
}

fn fill(exchange: &mut Exchange, received: Received) {
    let Received { response, head, head_bytes, interim, surplus_bytes, fault, truncated, notes, .. } = received;
    exchange.response = response;
    exchange.head = head;
    exchange.head_bytes = head_bytes;
    exchange.interim = interim;
    exchange.surplus_bytes = surplus_bytes;
    exchange.fault = fault;
    exchange.truncated = truncated;
    exchange.notes.extend(notes);
}

fn between(from: Instant, to: Instant) -> u32 {
    u32::try_from(to.saturating_duration_since(from).as_millis()).unwrap_or(u32::MAX)
}
