//! What a fetcher is told, as meant: everything that was text has been read.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use skep_url::{Credentials, Url};

use crate::gate::Listening;
use crate::limits::Limits;

/// How exchanges are made.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The value of `User-Agent`: names the program, the contact and a page about it.
    pub user_agent: String,
    /// Offer `gzip, br, zstd`; bodies are kept as sent.
    pub encodings: bool,
    /// Let private, loopback and other special addresses through the gate.
    pub allow_private: bool,
    /// Host names that may be at such an address, `*.NAME` for all below one.
    pub private_hosts: Vec<String>,
    /// Where this process listens: refused always.
    pub own_addresses: Listening,
    /// Host names that the operator owns, `*.NAME` for all below one: an override may lead them to a private address.
    pub own_hosts: Vec<String>,
    /// Addresses given by hand. They pass the gate like any other.
    pub resolve: Vec<Override>,
    /// Name servers to ask instead of the system's.
    pub name_servers: Vec<SocketAddr>,
    /// Through which proxy, if any.
    pub proxy: Option<Proxy>,
    /// Further request headers.
    pub headers: Vec<HeaderRule>,
    /// Certificates of further authorities to trust, in PEM.
    pub roots_pem: Option<Vec<u8>>,
    /// The source address of connections, where this machine has several.
    pub from: Option<IpAddr>,
    /// Room that the system has for bytes that nobody read yet, per connection; what is kept small here cannot run ahead of whoever
    /// reads slowly on purpose.
    pub receive_buffer_bytes: Option<u32>,
    /// Bounds.
    pub limits: Limits,
}

impl Settings {
    /// Defaults: encodings offered, the public Internet only, no proxy.
    pub fn new(user_agent: &str) -> Settings {
        Settings {
            user_agent: user_agent.to_owned(),
            encodings: true,
            allow_private: false,
            private_hosts: Vec::new(),
            own_addresses: Listening::default(),
            own_hosts: Vec::new(),
            resolve: Vec::new(),
            name_servers: Vec::new(),
            proxy: None,
            headers: Vec::new(),
            roots_pem: None,
            from: None,
            receive_buffer_bytes: None,
            limits: Limits::default(),
        }
    }

    /// Does the operator own this host?
    pub(crate) fn is_own(&self, host: &str) -> bool {
        names(&self.own_hosts, host)
    }

    /// May this host be at a private address, whoever says where it is?
    pub(crate) fn may_be_private(&self, host: &str) -> bool {
        names(&self.private_hosts, host)
    }
}

/// Is a host among those named?
fn names(named: &[String], host: &str) -> bool {
    named.iter().any(|name| name.strip_prefix('*').map_or(name == host, |below| host.ends_with(below)))
}

/// Why settings cannot be used. The text says what to write instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetupError(pub(crate) String);

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SetupError {}

/// An address given by hand: `HOST=ADDRESS[:PORT]`; `*.example.test=ADDRESS` for all names below one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    /// Lower-case name; for `*.NAME` what follows the star, with its dot.
    pattern: String,
    /// Where the host is.
    pub address: IpAddr,
    /// Where it listens, when not on the port of the URL.
    pub port: Option<u16>,
}

impl Override {
    /// An override for one host, or for all below it when `host` begins with `*.`.
    pub fn new(host: &str, address: IpAddr, port: Option<u16>) -> Result<Override, SetupError> {
        let (star, name) = host.strip_prefix("*.").map_or((false, host), |rest| (true, rest));
        let url = Url::parse(&format!("http://{name}/"))
            .ok()
            .filter(|url| url.request_target() == "/" && !name.is_empty())
            .ok_or_else(|| SetupError(format!("'{host}' is no host name; write HOST=ADDRESS or HOST=ADDRESS:PORT")))?;
        let name = url.host_name().trim_end_matches('.');
        Ok(Override { pattern: if star { format!(".{name}") } else { name.to_owned() }, address, port })
    }

    /// Does it speak of this host?
    pub fn matches(&self, host: &str) -> bool {
        if self.pattern.starts_with('.') { host.ends_with(&self.pattern) } else { host == self.pattern }
    }

    /// Does it speak of one host only? Such overrides come before those with a star.
    pub fn is_exact(&self) -> bool {
        !self.pattern.starts_with('.')
    }
}

impl FromStr for Override {
    type Err = SetupError;

    fn from_str(text: &str) -> Result<Override, SetupError> {
        let wrong = || {
            SetupError(format!("'{text}' is not HOST=ADDRESS or HOST=ADDRESS:PORT, as in example.org=192.0.2.7:8080"))
        };
        let (host, target) = text.split_once('=').ok_or_else(wrong)?;
        let (address, port) = if let Ok(target) = target.parse::<SocketAddr>() {
            (target.ip(), Some(target.port()))
        } else {
            let bare = target.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(target);
            (bare.parse().map_err(|_| wrong())?, None)
        };
        if port == Some(0) {
            return Err(wrong());
        }
        Override::new(host.trim(), address, port)
    }
}

/// A header that is sent to one host, or to all.
#[derive(Clone, PartialEq, Eq)]
pub struct HeaderRule {
    /// `example.org`, `*.example.org` or `example.org:8080`, each with `http://` or `https://` before it where one of both is meant;
    /// `None` for all hosts.
    pub host: Option<String>,
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

impl fmt::Debug for HeaderRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HeaderRule({:?}, {}: …)", self.host, self.name) // values are secrets
    }
}

impl HeaderRule {
    /// A rule for `host`, or for all.
    pub fn new(host: Option<&str>, name: &str, value: &str) -> HeaderRule {
        HeaderRule { host: host.map(str::to_ascii_lowercase), name: name.to_owned(), value: value.to_owned() }
    }

    /// `Authorization: Basic` for the server of this URL, and nobody else: not for its other ports, and not in clear what was given
    /// for https.
    pub fn basic(url: &Url, credentials: &Credentials) -> HeaderRule {
        HeaderRule::new(Some(&origin(url)), "Authorization", &basic(credentials))
    }

    /// Is it sent to the server of this URL? A secret for which no scheme was named goes over https only.
    pub fn matches(&self, url: &Url) -> bool {
        let Some(pattern) = &self.host else { return true };
        let (scheme, place) = match pattern.split_once("://") {
            Some((scheme, place)) => (Some(scheme), place),
            None => (None, pattern.as_str()),
        };
        let (name, port) = match place.rsplit_once(':').map(|(name, port)| (name, port.parse::<u16>())) {
            Some((name, Ok(port))) if !name.ends_with(':') => (name, Some(port)),
            _ => (place, scheme.map(default_port)),
        };
        let host = url.host_name();
        let named =
            name.strip_prefix('*').filter(|rest| rest.starts_with('.')).map_or(name == host, |s| host.ends_with(s));
        let safe = scheme.map_or(url.is_https() || !self.is_secret(), |scheme| scheme == url.scheme());
        named && safe && port.is_none_or(|port| port == url.port())
    }

    /// May its value be a secret? All are but those that only say what one would like to have.
    pub fn is_secret(&self) -> bool {
        !PLAIN_HEADERS.iter().any(|plain| self.name.eq_ignore_ascii_case(plain))
    }

    pub(crate) fn check(&self) -> Result<(), SetupError> {
        let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        if self.name.is_empty() || !self.name.bytes().all(is_token) {
            return Err(SetupError(format!("'{}' is no name of a header; write NAME: VALUE", self.name)));
        }
        if !self.value.bytes().all(|b| b == b'\t' || (0x20..0x7f).contains(&b)) {
            return Err(SetupError(format!(
                "the value of header {} holds bytes other than printable ASCII",
                self.name
            )));
        }
        let is = |names: &[&str]| names.iter().any(|name| self.name.eq_ignore_ascii_case(name));
        if is(&["host", "connection", "content-length", "transfer-encoding", "expect", "upgrade", "te", "range"])
            || self.name.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("proxy-"))
        {
            return Err(SetupError(format!("header {} is set by Skep itself and cannot be given", self.name)));
        }
        if self.host.is_none() && is(&["authorization", "cookie"]) {
            return Err(SetupError(format!("header {} is a secret: say for which host it is meant", self.name)));
        }
        Ok(())
    }
}

/// Headers whose values are no secrets.
const PLAIN_HEADERS: [&str; 11] = [
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "cache-control",
    "dnt",
    "pragma",
    "referer",
    "sec-gpc",
    "upgrade-insecure-requests",
    "user-agent",
];

/// Scheme, name and port of a server, the port always written.
pub fn origin(url: &Url) -> String {
    format!("{}://{}:{}", url.scheme(), url.host_name(), url.port())
}

fn default_port(scheme: &str) -> u16 {
    if scheme == "https" { 443 } else { 80 }
}

/// The value of a header with credentials.
pub(crate) fn basic(credentials: &Credentials) -> String {
    use base64::Engine as _;
    let pair = [&credentials.user[..], b":", &credentials.password[..]].concat();
    format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(pair))
}

/// Which protocol a proxy speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyKind {
    /// HTTP: absolute URLs for http, CONNECT for https.
    Http,
    /// SOCKS version 5; names are resolved by the proxy.
    Socks5,
}

/// A proxy: `http://[USER:PASSWORD@]HOST[:PORT]` or `socks5://…`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxy {
    /// Its protocol.
    pub kind: ProxyKind,
    /// Its name or address; IPv6 in brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// What it wants to know.
    pub credentials: Option<Credentials>,
}

impl FromStr for Proxy {
    type Err = SetupError;

    fn from_str(text: &str) -> Result<Proxy, SetupError> {
        let wrong = || {
            SetupError("a proxy is written http://HOST:PORT or socks5://HOST:PORT, with USER:PASSWORD@ before the host if it wants them".to_owned())
        };
        let (scheme, rest) = text.split_once("://").ok_or_else(wrong)?;
        let (kind, port) = match scheme.to_ascii_lowercase().as_str() {
            "http" => (ProxyKind::Http, 80),
            "socks5" | "socks5h" => (ProxyKind::Socks5, 1080),
            _ => return Err(wrong()),
        };
        // Read under a scheme of which every port can be told from its default.
        let (url, credentials) = Url::with_credentials(&format!("http://{rest}")).map_err(|_| wrong())?;
        if url.request_target() != "/" {
            return Err(wrong());
        }
        let written = rest.trim_end_matches('/').rsplit_once(':').is_some_and(|(_, p)| p.parse::<u16>().is_ok());
        let port = if written { url.port() } else { port };
        if let Some(credentials) = &credentials
            && (credentials.user.len() > 255 || credentials.password.len() > 255)
        {
            return Err(SetupError("a proxy's user and password have at most 255 bytes each".to_owned()));
        }
        Ok(Proxy { kind, host: url.host_name().to_owned(), port, credentials })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overrides_as_typed() {
        let read = |text: &str| text.parse::<Override>();
        let plain = read("Example.org=192.0.2.7").unwrap();
        assert_eq!((plain.address, plain.port), ("192.0.2.7".parse().unwrap(), None));
        assert!(plain.matches("example.org") && !plain.matches("www.example.org"));
        let below = read("*.example.org=[::1]:8080").unwrap();
        assert_eq!((below.address, below.port), ("::1".parse().unwrap(), Some(8080)));
        assert!(below.matches("a.b.example.org") && !below.matches("example.org") && !below.matches("notexample.org"));
        assert_eq!(read("bücher.example=::1").unwrap().pattern, "xn--bcher-kva.example");
        for wrong in ["example.org", "=1.2.3.4", "a=b", "a=1.2.3.4:0", "a/b=1.2.3.4", "a=1.2.3.4:99999", "*.=1.2.3.4"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn proxies_as_typed() {
        let read = |text: &str| text.parse::<Proxy>();
        let proxy = read("http://us%40er:p@proxy.example:3128").unwrap();
        assert_eq!((proxy.kind, proxy.host.as_str(), proxy.port), (ProxyKind::Http, "proxy.example", 3128));
        assert_eq!(proxy.credentials.unwrap().user, b"us@er");
        assert_eq!(read("socks5://[::1]").unwrap().port, 1080);
        assert_eq!(read("socks5://[::1]").unwrap().host, "[::1]");
        assert_eq!(read("SOCKS5://a:80/").unwrap().port, 80);
        assert_eq!(read("http://a").unwrap().port, 80);
        for wrong in ["proxy.example:3128", "ftp://a", "http://a/path", "http://"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn rules_reach_the_hosts_they_name() {
        let sent = |name: &str, host: Option<&str>, url: &str| {
            HeaderRule::new(host, name, "secret").matches(&Url::parse(url).unwrap())
        };
        for (host, url, wanted) in [
            (None, "http://a.example/", true),
            (Some("A.example"), "https://a.example:8080/", true),
            (Some("a.example"), "https://b.example/", false),
            (Some("*.example"), "https://a.example/", true),
            (Some("*.example"), "https://example/", false),
            (Some("a.example:81"), "https://a.example:81/", true),
            (Some("a.example:81"), "https://a.example:82/", false),
            (Some("[::1]"), "https://[::1]/", true),
            (Some("https://[::1]:80"), "https://[::1]:80/", true),
        ] {
            assert_eq!(sent("X-Key", host, url), wanted, "{host:?} {url}");
        }
        assert!(!format!("{:?}", HeaderRule::new(None, "X-Key", "secret")).contains("secret"));
        assert!(!sent("X-Key", Some("a.example"), "http://a.example/"), "nobody said that it may go in clear");
        assert!(sent("X-Key", Some("http://a.example"), "http://a.example/"));
        assert!(sent("Accept-Language", Some("a.example"), "http://a.example/"));
    }

    #[test]
    fn credentials_reach_the_server_they_were_given_for_and_no_other() {
        let (url, credentials) = Url::with_credentials("https://user:secret@a.example/x").unwrap();
        let rule = HeaderRule::basic(&url, &credentials.unwrap());
        for (url, wanted) in [
            ("https://a.example/y", true),
            ("https://a.example:8443/", false),
            ("http://a.example/", false),
            ("http://a.example:443/", false),
            ("https://www.a.example/", false),
        ] {
            assert_eq!(rule.matches(&Url::parse(url).unwrap()), wanted, "{url}");
        }
    }

    #[test]
    fn rules_that_would_do_harm_are_refused() {
        for (host, name, value) in [
            (None, "Authorization", "x"),
            (None, "Cookie", "a=b"),
            (Some("a.example"), "Host", "b.example"),
            (Some("a.example"), "Proxy-Authorization", "x"),
            (Some("a.example"), "X", "a\r\nY: b"),
            (Some("a.example"), "X Y", "a"),
            (Some("a.example"), "", "a"),
        ] {
            assert!(HeaderRule::new(host, name, value).check().is_err(), "{name}: {value}");
        }
        assert!(HeaderRule::new(Some("a.example"), "Authorization", "Basic eA==").check().is_ok());
        assert!(HeaderRule::new(None, "Accept-Language", "de, en;q=0.5").check().is_ok());
    }
}
