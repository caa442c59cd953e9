//! URLs as they are fetched: the WHATWG form, `http` and `https` only, without fragment and credentials.

use std::fmt;
use std::net::IpAddr;

use crate::key::Key;
use crate::limits;
use crate::site::{Part, Suffixes};

/// A URL that can be fetched, in the one spelling that a browser would send.
///
/// The fragment is dropped because no server sees it. Credentials are dropped because a URL is shown, stored and sent on; who
/// wants to use them takes them from [`Url::with_credentials`] and keeps them apart.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Url {
    inner: url::Url,
}

/// What stood before the `@` of a URL, decoded. Never part of any output.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The user.
    pub user: Vec<u8>,
    /// The password; empty when there was none.
    pub password: Vec<u8>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(redacted)")
    }
}

/// A server: name and port, whatever the scheme. The name is lower-case ASCII; an IPv6 address stands in brackets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Host {
    /// `example.org`, `127.0.0.1`, `[::1]`.
    pub name: String,
    /// Always there, also when it is the scheme's own.
    pub port: u16,
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.name, self.port)
    }
}

/// Why text is no URL that can be fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UrlError {
    /// Longer than [`limits::URL_BYTES_MAX`], as given or as a browser would send it.
    TooLong,
    /// A scheme that is not fetched, such as `mailto`.
    Scheme(String),
    /// No URL by the WHATWG standard.
    Syntax(url::ParseError),
}

impl fmt::Display for UrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UrlError::TooLong => write!(f, "longer than {} bytes", limits::URL_BYTES_MAX),
            UrlError::Scheme(scheme) => write!(f, "'{scheme}' is not fetched, only http and https are"),
            UrlError::Syntax(url::ParseError::RelativeUrlWithoutBase) => {
                write!(f, "no scheme: write https:// (or http://) in front")
            }
            UrlError::Syntax(error) => write!(f, "not a URL: {error}"),
        }
    }
}

impl std::error::Error for UrlError {}

impl Url {
    /// Reads a URL as a browser's address bar would, except that the scheme must be there.
    pub fn parse(text: &str) -> Result<Url, UrlError> {
        Url::with_credentials(text).map(|(url, _)| url)
    }

    /// Reads a URL and hands its credentials over apart.
    pub fn with_credentials(text: &str) -> Result<(Url, Option<Credentials>), UrlError> {
        check_length(text)?;
        Url::finish(url::Url::parse(text).map_err(UrlError::Syntax)?)
    }

    /// Resolves a reference found on this page.
    pub fn join(&self, reference: &str) -> Result<Url, UrlError> {
        check_length(reference)?;
        // However many slashes there are, a host follows; the crate stumbles over the third.
        let trimmed = reference.trim_start_matches(|c: char| c <= ' ');
        let rest = trimmed.trim_start_matches(['/', '\\']);
        if trimmed.len() - rest.len() > 2 {
            return Url::parse(&format!("{}://{rest}", self.scheme()));
        }
        Url::finish(self.inner.join(reference).map_err(UrlError::Syntax)?).map(|(url, _)| url)
    }

    fn finish(mut inner: url::Url) -> Result<(Url, Option<Credentials>), UrlError> {
        if !matches!(inner.scheme(), "http" | "https") {
            return Err(UrlError::Scheme(inner.scheme().to_owned()));
        }
        inner.set_fragment(None);
        let decoded = |text: &str| once_unescaped(text.as_bytes());
        let credentials = (!inner.username().is_empty() || inner.password().is_some()).then(|| Credentials {
            user: decoded(inner.username()),
            password: decoded(inner.password().unwrap_or_default()),
        });
        if credentials.is_some() {
            // Both only fail without a host, which http and https always have.
            let _ = inner.set_password(None);
            let _ = inner.set_username("");
        }
        check_length(inner.as_str())?;
        Ok((Url { inner }, credentials))
    }

    /// The URL as sent.
    pub fn as_str(&self) -> &str {
        self.inner.as_str()
    }

    /// `http` or `https`.
    pub fn scheme(&self) -> &str {
        self.inner.scheme()
    }

    /// Is it fetched over TLS?
    pub fn is_https(&self) -> bool {
        self.scheme() == "https"
    }

    /// The name of the server, lower-case ASCII; an IPv6 address in brackets.
    pub fn host_name(&self) -> &str {
        self.inner.host_str().unwrap_or_default()
    }

    /// The port, written or implied.
    pub fn port(&self) -> u16 {
        self.inner.port_or_known_default().unwrap_or(0)
    }

    /// Name and port.
    pub fn host(&self) -> Host {
        Host { name: self.host_name().to_owned(), port: self.port() }
    }

    /// The address, where the URL has one in place of a name.
    pub fn address(&self) -> Option<IpAddr> {
        match self.inner.host()? {
            url::Host::Domain(_) => None,
            url::Host::Ipv4(address) => Some(address.into()),
            url::Host::Ipv6(address) => Some(address.into()),
        }
    }

    /// The registrable domain of the host; see [`Suffixes::site`].
    pub fn site(&self, suffixes: &Suffixes, part: Part) -> &str {
        suffixes.site(self.host_name(), part)
    }

    /// Path and query: what stands in the first line of the request.
    pub fn request_target(&self) -> &str {
        &self.inner[url::Position::BeforePath..url::Position::AfterQuery]
    }

    /// Where the rules of this server are.
    pub fn robots_txt(&self) -> Url {
        let mut inner = self.inner.clone();
        inner.set_path("/robots.txt");
        inner.set_query(None);
        Url { inner }
    }

    /// The key under which captures of this URL are filed.
    pub fn key(&self) -> Key {
        Key::of(self.as_str())
    }
}

fn check_length(text: &str) -> Result<(), UrlError> {
    if text.len() > limits::URL_BYTES_MAX { Err(UrlError::TooLong) } else { Ok(()) }
}

fn once_unescaped(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let [byte, tail @ ..] = rest {
        let escaped = match rest {
            [b'%', high, low, ..] => crate::surt::escape::hex(*high).zip(crate::surt::escape::hex(*low)),
            _ => None,
        };
        match escaped {
            Some((high, low)) => {
                out.push(high << 4 | low);
                rest = &rest[3..];
            }
            None => {
                out.push(*byte);
                rest = tail;
            }
        }
    }
    out
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{}>", self.as_str())
    }
}

impl std::str::FromStr for Url {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Url, UrlError> {
        Url::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_spelling() {
        for (text, wanted) in [
            ("http://EXAMPLE.org", "http://example.org/"),
            (" https://example.org:443/a/../b?c#d ", "https://example.org/b?c"),
            ("http://example.org:80/é", "http://example.org/%C3%A9"),
            ("http://bücher.example/", "http://xn--bcher-kva.example/"),
            ("http://0x7f.1/", "http://127.0.0.1/"),
            ("http://[::0:1]:8080/", "http://[::1]:8080/"),
            ("http:\\\\example.org\\a b", "http://example.org/a%20b"),
            ("http://user:secret@example.org/", "http://example.org/"),
        ] {
            assert_eq!(Url::parse(text).unwrap().as_str(), wanted, "{text}");
        }
    }

    #[test]
    fn credentials_are_handed_over_apart_and_never_shown() {
        let (url, credentials) = Url::with_credentials("https://us%40er:p%3Aw@example.org/x").unwrap();
        let credentials = credentials.unwrap();
        assert_eq!(url.as_str(), "https://example.org/x");
        assert_eq!((&credentials.user[..], &credentials.password[..]), (&b"us@er"[..], &b"p:w"[..]));
        assert!(!format!("{credentials:?}").contains("us"));
        assert_eq!(Url::with_credentials("https://example.org/").unwrap().1, None);
    }

    #[test]
    fn parts() {
        let url = Url::parse("https://a.example.co.uk/p?q#f").unwrap();
        assert_eq!((url.host().to_string().as_str(), url.request_target()), ("a.example.co.uk:443", "/p?q"));
        assert_eq!(url.site(&Suffixes::compiled(), Part::Whole), "example.co.uk");
        assert_eq!(url.robots_txt().as_str(), "https://a.example.co.uk/robots.txt");
        assert_eq!(url.key().surt(), "uk,co,example,a)/p?q");
        assert_eq!(url.join("../x?y#z").unwrap().as_str(), "https://a.example.co.uk/x?y");
        assert_eq!(url.join("//b.example/x").unwrap().as_str(), "https://b.example/x");
        assert_eq!(url.join(" ///b.example/x").unwrap().as_str(), "https://b.example/x");
        assert_eq!(url.address(), None);
        assert_eq!(Url::parse("http://[::1]/").unwrap().address(), Some("::1".parse().unwrap()));
    }

    #[test]
    fn what_is_not_fetched_says_why() {
        for (text, wanted) in [
            ("mailto:a@b.org", "'mailto' is not fetched, only http and https are"),
            ("example.org", "no scheme: write https:// (or http://) in front"),
            ("http://", "not a URL: empty host"),
            ("http://a b/", "not a URL: invalid international domain name"),
        ] {
            assert_eq!(Url::parse(text).unwrap_err().to_string(), wanted);
        }
        let long = format!("http://example.org/{}", "a".repeat(limits::URL_BYTES_MAX));
        assert_eq!(Url::parse(&long), Err(UrlError::TooLong));
        let grows = format!("http://example.org/{}", "é".repeat(limits::URL_BYTES_MAX / 3));
        assert_eq!(Url::parse(&grows), Err(UrlError::TooLong));
    }
}
