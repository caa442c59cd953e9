//! Every way in which an exchange can fail, and what follows from it.

use std::fmt;
use std::io;

use skep_url::address;

/// What a fault says about trying again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// The host is in trouble: try it later.
    Host,
    /// This URL is in trouble, the host is not.
    Url,
    /// Never: a rule of ours forbids it.
    Refused,
    /// Our own machine is in trouble: slow down, and do not count it against anybody.
    Local,
}

/// Why an exchange is not a complete, well-framed answer. What was received is kept in every case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The name could not be resolved.
    Dns(DnsFault),
    /// The name exists and has no address.
    NoAddress,
    /// The address does not belong to the public Internet.
    AddressRefused(address::Class),
    /// The address is one on which we listen ourselves.
    OwnAddress,
    /// The port belongs to another protocol.
    PortRefused(u16),
    /// The request cannot be written without harm: control bytes or bytes outside ASCII.
    Request,
    /// No connection.
    Connect(ConnectFault),
    /// No TLS session.
    Tls(TlsFault),
    /// A clock ran out.
    Timeout(Stage),
    /// Bytes came more slowly than accepted.
    TooSlow,
    /// The connection was closed before the first byte.
    Closed,
    /// The answer is not HTTP, or its status is no number.
    Malformed,
    /// The head is longer than accepted, in bytes or lines.
    HeadTooLarge,
    /// More interim answers than accepted.
    InterimFlood,
    /// The framing of the answer is broken.
    Broken(Break),
    /// The proxy did not lead through.
    Proxy(ProxyFault),
    /// Descriptors, ports, memory or disk of this machine are used up.
    LocalResources(String),
}

/// Why a name was not resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DnsFault {
    /// There is no such name.
    NotFound,
    /// The name servers failed.
    ServerFailed(String),
    /// No answer in time.
    Timeout,
    /// This machine knows no name server.
    NoResolver(String),
}

/// Why there is no connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectFault {
    /// Nobody listens.
    Refused,
    /// No way there.
    Unreachable,
    /// Reset while connecting.
    Reset,
    /// Something else.
    Other(io::ErrorKind),
}

/// Why there is no TLS session. Bad certificates are no reason: see [`crate::Tls::fault`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TlsFault {
    /// The server offers only versions or ciphers that are no longer spoken.
    Legacy(String),
    /// What answers does not speak TLS.
    NotTls,
    /// The certificates are longer than accepted.
    ChainTooLarge,
    /// The server closed the connection in the handshake.
    Closed,
    /// Something else.
    Other(String),
}

/// The clock that ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Connecting.
    Connect,
    /// The TLS handshake.
    Handshake,
    /// The first byte.
    FirstByte,
    /// The whole answer.
    Total,
}

/// What broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Break {
    /// The connection ended inside the head.
    Head,
    /// The connection ended after interim answers only.
    OnlyInterim,
    /// The connection ended before the length was reached.
    Length,
    /// The connection ended inside a chunk or before the last one.
    ChunksCut,
    /// The chunks are malformed; everything up to the end of the connection was kept.
    Chunks,
    /// The trailer behind the last chunk is longer than accepted.
    Trailer,
    /// The connection failed where its end would have been the end of the body.
    Connection,
}

/// Why a proxy did not lead through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProxyFault {
    /// The proxy itself cannot be reached.
    Unreachable(String),
    /// The proxy wants other credentials.
    Credentials,
    /// The proxy refused this host.
    Refused(String),
    /// What answers does not speak the proxy's protocol.
    Protocol,
    /// The proxy did not answer in time.
    Timeout,
}

impl Fault {
    /// What follows for trying again.
    pub fn class(&self) -> Class {
        match self {
            Fault::LocalResources(_) => Class::Local,
            Fault::Dns(_) | Fault::NoAddress | Fault::Connect(_) | Fault::Tls(_) | Fault::Closed => Class::Host,
            Fault::Timeout(Stage::Connect | Stage::Handshake | Stage::FirstByte) => Class::Host,
            Fault::AddressRefused(_) | Fault::OwnAddress | Fault::PortRefused(_) | Fault::Request => Class::Refused,
            Fault::Timeout(Stage::Total)
            | Fault::TooSlow
            | Fault::Malformed
            | Fault::HeadTooLarge
            | Fault::InterimFlood
            | Fault::Broken(_) => Class::Url,
            // Nobody can be reached without it; what it says when it was reached may be about the host.
            Fault::Proxy(ProxyFault::Unreachable(_) | ProxyFault::Credentials) => Class::Local,
            Fault::Proxy(_) => Class::Host,
        }
    }

    /// A short name for machines; stable.
    pub fn id(&self) -> &'static str {
        match self {
            Fault::Dns(DnsFault::NotFound) => "dns-not-found",
            Fault::Dns(DnsFault::ServerFailed(_)) => "dns-failed",
            Fault::Dns(DnsFault::Timeout) => "dns-timeout",
            Fault::Dns(DnsFault::NoResolver(_)) => "dns-no-resolver",
            Fault::NoAddress => "no-address",
            Fault::AddressRefused(_) => "address-refused",
            Fault::OwnAddress => "own-address",
            Fault::PortRefused(_) => "port-refused",
            Fault::Request => "request-refused",
            Fault::Connect(ConnectFault::Refused) => "connect-refused",
            Fault::Connect(ConnectFault::Unreachable) => "connect-unreachable",
            Fault::Connect(ConnectFault::Reset) => "connect-reset",
            Fault::Connect(ConnectFault::Other(_)) => "connect-failed",
            Fault::Tls(TlsFault::Legacy(_)) => "legacy-tls",
            Fault::Tls(TlsFault::NotTls) => "not-tls",
            Fault::Tls(TlsFault::ChainTooLarge) => "tls-chain-too-large",
            Fault::Tls(TlsFault::Closed) => "tls-closed",
            Fault::Tls(TlsFault::Other(_)) => "tls-failed",
            Fault::Timeout(Stage::Connect) => "timeout-connect",
            Fault::Timeout(Stage::Handshake) => "timeout-handshake",
            Fault::Timeout(Stage::FirstByte) => "timeout-first-byte",
            Fault::Timeout(Stage::Total) => "timeout-total",
            Fault::TooSlow => "too-slow",
            Fault::Closed => "closed",
            Fault::Malformed => "malformed",
            Fault::HeadTooLarge => "head-too-large",
            Fault::InterimFlood => "interim-flood",
            Fault::Broken(Break::Head) => "broken-head",
            Fault::Broken(Break::OnlyInterim) => "broken-only-interim",
            Fault::Broken(Break::Length) => "broken-length",
            Fault::Broken(Break::ChunksCut) => "broken-chunks-cut",
            Fault::Broken(Break::Chunks) => "broken-chunks",
            Fault::Broken(Break::Trailer) => "broken-trailer",
            Fault::Broken(Break::Connection) => "broken-connection",
            Fault::Proxy(ProxyFault::Unreachable(_)) => "proxy-unreachable",
            Fault::Proxy(ProxyFault::Credentials) => "proxy-credentials",
            Fault::Proxy(ProxyFault::Refused(_)) => "proxy-refused",
            Fault::Proxy(ProxyFault::Protocol) => "proxy-protocol",
            Fault::Proxy(ProxyFault::Timeout) => "proxy-timeout",
            Fault::LocalResources(_) => "local-resources",
        }
    }

    /// The fault of this [`Fault::id`], as it was told by whoever made the exchange; `detail` is its text, as far as it has one.
    pub fn named(id: &str, detail: &str) -> Option<Fault> {
        let text = || detail.to_owned();
        Some(match id {
            "dns-not-found" => Fault::Dns(DnsFault::NotFound),
            "dns-failed" => Fault::Dns(DnsFault::ServerFailed(text())),
            "dns-timeout" => Fault::Dns(DnsFault::Timeout),
            "dns-no-resolver" => Fault::Dns(DnsFault::NoResolver(text())),
            "no-address" => Fault::NoAddress,
            "address-refused" => Fault::AddressRefused(address::Class::Private),
            "own-address" => Fault::OwnAddress,
            "port-refused" => Fault::PortRefused(detail.parse().unwrap_or(0)),
            "request-refused" => Fault::Request,
            "connect-refused" => Fault::Connect(ConnectFault::Refused),
            "connect-unreachable" => Fault::Connect(ConnectFault::Unreachable),
            "connect-reset" => Fault::Connect(ConnectFault::Reset),
            "connect-failed" => Fault::Connect(ConnectFault::Other(io::ErrorKind::Other)),
            "legacy-tls" => Fault::Tls(TlsFault::Legacy(text())),
            "not-tls" => Fault::Tls(TlsFault::NotTls),
            "tls-chain-too-large" => Fault::Tls(TlsFault::ChainTooLarge),
            "tls-closed" => Fault::Tls(TlsFault::Closed),
            "tls-failed" => Fault::Tls(TlsFault::Other(text())),
            "timeout-connect" => Fault::Timeout(Stage::Connect),
            "timeout-handshake" => Fault::Timeout(Stage::Handshake),
            "timeout-first-byte" => Fault::Timeout(Stage::FirstByte),
            "timeout-total" => Fault::Timeout(Stage::Total),
            "too-slow" => Fault::TooSlow,
            "closed" => Fault::Closed,
            "malformed" => Fault::Malformed,
            "head-too-large" => Fault::HeadTooLarge,
            "interim-flood" => Fault::InterimFlood,
            "broken-head" => Fault::Broken(Break::Head),
            "broken-only-interim" => Fault::Broken(Break::OnlyInterim),
            "broken-length" => Fault::Broken(Break::Length),
            "broken-chunks-cut" => Fault::Broken(Break::ChunksCut),
            "broken-chunks" => Fault::Broken(Break::Chunks),
            "broken-trailer" => Fault::Broken(Break::Trailer),
            "broken-connection" => Fault::Broken(Break::Connection),
            "proxy-unreachable" => Fault::Proxy(ProxyFault::Unreachable(text())),
            "proxy-credentials" => Fault::Proxy(ProxyFault::Credentials),
            "proxy-refused" => Fault::Proxy(ProxyFault::Refused(text())),
            "proxy-protocol" => Fault::Proxy(ProxyFault::Protocol),
            "proxy-timeout" => Fault::Proxy(ProxyFault::Timeout),
            "local-resources" => Fault::LocalResources(text()),
            _ => return None,
        })
    }

    /// The fault of a socket that could not be made or connected.
    pub(crate) fn of_connect(error: &io::Error) -> Fault {
        if is_local(error) {
            return Fault::LocalResources(error.to_string());
        }
        Fault::Connect(match error.kind() {
            io::ErrorKind::ConnectionRefused => ConnectFault::Refused,
            io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted => ConnectFault::Reset,
            io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable | io::ErrorKind::NetworkDown => {
                ConnectFault::Unreachable
            }
            io::ErrorKind::TimedOut => return Fault::Timeout(Stage::Connect),
            other => ConnectFault::Other(other),
        })
    }
}

/// Is it the fault of this machine? Descriptors, ports, buffers or disk are used up.
pub(crate) fn is_local(error: &io::Error) -> bool {
    // EMFILE, ENFILE, ENOBUFS, ENOMEM have no kind of their own that is stable.
    const LOCAL: [i32; 4] = [24, 23, 105, 12];
    matches!(
        error.kind(),
        io::ErrorKind::AddrNotAvailable
            | io::ErrorKind::OutOfMemory
            | io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::ReadOnlyFilesystem
    ) || error.raw_os_error().is_some_and(|code| LOCAL.contains(&code))
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Dns(DnsFault::NotFound) => write!(f, "there is no such host name"),
            Fault::Dns(DnsFault::ServerFailed(why)) => write!(f, "the name servers failed: {why}"),
            Fault::Dns(DnsFault::Timeout) => write!(f, "the name servers did not answer in time"),
            Fault::Dns(DnsFault::NoResolver(why)) => write!(
                f,
                "this machine knows no name server ({why}); write one into /etc/resolv.conf, or name the address with --resolve HOST=ADDRESS"
            ),
            Fault::NoAddress => write!(f, "the host name has no usable address"),
            Fault::AddressRefused(address::Class::ThisNetwork) => {
                write!(f, "0.0.0.0 and :: are no addresses of a server")
            }
            Fault::AddressRefused(class) => write!(
                f,
                "the address is not on the public Internet ({class}); --allow-private allows it where that is meant"
            ),
            Fault::OwnAddress => write!(f, "the address is one on which this process listens itself"),
            Fault::PortRefused(port) => write!(
                f,
                "port {port} belongs to another protocol; --resolve HOST=ADDRESS:{port} connects to it all the same"
            ),
            Fault::Request => write!(f, "the request would hold bytes other than printable ASCII"),
            Fault::Connect(ConnectFault::Refused) => write!(f, "the connection was refused: nobody listens there"),
            Fault::Connect(ConnectFault::Unreachable) => write!(f, "there is no way to the host's addresses"),
            Fault::Connect(ConnectFault::Reset) => write!(f, "the connection was reset while it was made"),
            Fault::Connect(ConnectFault::Other(kind)) => write!(f, "no connection: {kind}"),
            Fault::Tls(TlsFault::Legacy(why)) => {
                write!(f, "the server speaks only old TLS, which is not supported: {why}")
            }
            Fault::Tls(TlsFault::NotTls) => write!(f, "what answers on this port does not speak TLS"),
            Fault::Tls(TlsFault::ChainTooLarge) => write!(f, "the server's certificates are longer than accepted"),
            Fault::Tls(TlsFault::Closed) => write!(f, "the server closed the connection in the TLS handshake"),
            Fault::Tls(TlsFault::Other(why)) => write!(f, "the TLS handshake failed: {why}"),
            Fault::Timeout(Stage::Connect) => write!(f, "no connection in time"),
            Fault::Timeout(Stage::Handshake) => write!(f, "the TLS handshake took too long"),
            Fault::Timeout(Stage::FirstByte) => {
                write!(f, "the server took the request and did not begin to answer in time")
            }
            Fault::Timeout(Stage::Total) => write!(f, "the answer did not end in time; what came is kept"),
            Fault::TooSlow => write!(f, "the answer came too slowly; what came is kept"),
            Fault::Closed => write!(f, "the server closed the connection without an answer"),
            Fault::Malformed => write!(f, "the answer is not HTTP; its bytes are kept"),
            Fault::HeadTooLarge => write!(f, "the head of the answer is larger than accepted; its bytes are kept"),
            Fault::InterimFlood => write!(f, "the server sent more interim answers than accepted"),
            Fault::Broken(Break::Head) => write!(f, "the connection ended inside the head of the answer"),
            Fault::Broken(Break::OnlyInterim) => write!(f, "the connection ended after an interim answer"),
            Fault::Broken(Break::Length) => write!(f, "the connection ended before the body had its length"),
            Fault::Broken(Break::ChunksCut) => write!(f, "the connection ended before the last chunk"),
            Fault::Broken(Break::Chunks) => write!(f, "the chunks of the body are malformed; all bytes are kept"),
            Fault::Broken(Break::Trailer) => write!(f, "the trailer of the body is longer than accepted"),
            Fault::Broken(Break::Connection) => write!(f, "the connection failed inside the body"),
            Fault::Proxy(ProxyFault::Unreachable(why)) => write!(f, "the proxy cannot be reached: {why}"),
            Fault::Proxy(ProxyFault::Credentials) => write!(
                f,
                "the proxy wants credentials: write them into its URL, as in --proxy http://USER:PASSWORD@HOST:PORT"
            ),
            Fault::Proxy(ProxyFault::Refused(why)) => write!(f, "the proxy does not lead to this host: {why}"),
            Fault::Proxy(ProxyFault::Protocol) => write!(f, "what answers at the proxy's address is no such proxy"),
            Fault::Proxy(ProxyFault::Timeout) => write!(f, "the proxy did not answer in time"),
            Fault::LocalResources(why) => write!(
                f,
                "this machine has no more descriptors, ports, memory or disk ({why}); `skep doctor` says which and what to change"
            ),
        }
    }
}

impl std::error::Error for Fault {}

/// An address that was not let through, for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub class: address::Class,
    pub own: bool,
}

impl Refusal {
    pub fn fault(self) -> Fault {
        if self.own { Fault::OwnAddress } else { Fault::AddressRefused(self.class) }
    }
}
