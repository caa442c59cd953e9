//! Cookies that the operator gives (`--cookies FILE`, the format of browsers' exports and of wget). Cookies that sites set are
//! not kept: a crawl has no session of its own. Only where an address redirects to itself and sets one, it is shown that cookie
//! once: such a site wants to know whether cookies come back before it says anything.

use skep_fetch::Exchange;
use skep_url::Url;

use crate::error::{Error, Result};

/// Cookies of a file.
#[derive(Clone, Debug, Default)]
pub struct Cookies {
    all: Vec<Cookie>,
}

#[derive(Clone, Debug)]
struct Cookie {
    domain: String,
    below: bool,
    path: String,
    secure: bool,
    pair: String,
}

/// Cookies in a file, at most.
const COOKIES_MAX: usize = 10_000;
/// Bytes of cookies sent to one host, at most.
const HEADER_BYTES_MAX: usize = 8 << 10;
/// Cookies sent to one host, at most.
const HEADER_COOKIES_MAX: usize = 50;

impl Cookies {
    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Reads a file: domain, below, path, secure, expiry, name, value, separated by tabs.
    pub fn parse(text: &str) -> Result<Cookies> {
        let mut all = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.strip_prefix("#HttpOnly_").unwrap_or(line);
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let fields: Vec<&str> = line.split('\t').collect();
            let [domain, below, path, secure, _, name, value] = fields[..] else {
                let what = format!(
                    "line {} of the cookies has {} fields separated by tabs; there are 7",
                    number + 1,
                    fields.len()
                );
                return Err(Error::Settings { what });
            };
            let pair = format!("{name}={value}");
            if all.len() >= COOKIES_MAX || pair.bytes().any(|byte| byte < 0x20 || byte == 0x7f) {
                return Err(Error::Settings { what: format!("line {} of the cookies cannot be used", number + 1) });
            }
            all.push(Cookie {
                domain: domain.trim_start_matches('.').to_ascii_lowercase(),
                below: below.eq_ignore_ascii_case("true") || domain.starts_with('.'),
                path: path.to_string(),
                secure: secure.eq_ignore_ascii_case("true"),
                pair,
            });
        }
        Ok(Cookies { all })
    }

    /// The value of the `Cookie` header for a URL.
    pub fn header(&self, url: &Url) -> Option<String> {
        let path = url.request_target().split('?').next().unwrap_or("/");
        let mut value = String::new();
        for cookie in self.all.iter().filter(|cookie| cookie.is_for(url, path)).take(HEADER_COOKIES_MAX) {
            if value.len() + cookie.pair.len() + 2 > HEADER_BYTES_MAX {
                break;
            }
            if !value.is_empty() {
                value.push_str("; ");
            }
            value.push_str(&cookie.pair);
        }
        (!value.is_empty()).then_some(value)
    }
}

/// What is to be shown to an address that redirects to itself and sets cookies; nothing where it does not, or sets none that can
/// be sent.
pub fn wanted_back(url: &Url, exchange: &Exchange) -> Option<String> {
    let head =
        exchange.head.as_ref().filter(|head| head.status().is_some_and(|status| (300..400).contains(&status)))?;
    let to = std::str::from_utf8(head.header("location")?).ok()?;
    if !url.join(to).is_ok_and(|to| to == *url) {
        return None;
    }
    let mut value = String::new();
    for set in head.headers("set-cookie").take(HEADER_COOKIES_MAX) {
        let pair = set.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        let Some(pair) = std::str::from_utf8(pair).ok().filter(|pair| is_pair(pair)) else { continue };
        if value.len() + pair.len() + 2 > HEADER_BYTES_MAX {
            break;
        }
        if !value.is_empty() {
            value.push_str("; ");
        }
        value.push_str(pair);
    }
    (!value.is_empty()).then_some(value)
}

fn is_pair(pair: &str) -> bool {
    pair.find('=').is_some_and(|at| at > 0) && pair.bytes().all(|byte| (0x20..0x7f).contains(&byte))
}

impl Cookie {
    fn is_for(&self, url: &Url, path: &str) -> bool {
        let host = url.host_name();
        let below = || host.strip_suffix(&self.domain).is_some_and(|rest| rest.ends_with('.'));
        let path_fits = path
            .strip_prefix(self.path.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || self.path.ends_with('/'));
        (host == self.domain || self.below && below()) && path_fits && (!self.secure || url.is_https())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_go_where_they_belong() {
        let cookies = Cookies::parse(
            "# Netscape HTTP Cookie File\n.a.test\tTRUE\t/\tFALSE\t0\tid\t1\n#HttpOnly_b.test\tFALSE\t/in\tTRUE\t0\tkey\tv\n",
        )
        .unwrap();
        let header = |url: &str| cookies.header(&Url::parse(url).unwrap());
        assert_eq!(header("http://a.test/"), Some("id=1".into()));
        assert_eq!(header("http://www.a.test/x?y"), Some("id=1".into()));
        assert_eq!(header("http://nota.test/"), None);
        assert_eq!(header("https://b.test/in/side"), Some("key=v".into()));
        assert_eq!(header("https://b.test/inside"), None);
        assert_eq!(header("http://b.test/in"), None, "secure");
        assert_eq!(header("https://c.b.test/in"), None);
        assert!(Cookies::parse("a b c").is_err());
    }

    #[test]
    fn only_who_redirects_to_itself_is_shown_its_cookies() {
        let url = Url::parse("http://a.test/x").unwrap();
        let wanted = |status: &str, fields: &str, to: &str| {
            let mut head = skep_warc::http::Head::new();
            head.parse_response(format!("HTTP/1.1 {status} X\r\nLocation: {to}\r\n{fields}\r\n").as_bytes(), true);
            wanted_back(&url, &Exchange { head: Some(head), ..Exchange::default() })
        };
        let set = "Set-Cookie: a=b; Path=/\r\nSet-Cookie: c=d\r\n";
        assert_eq!(wanted("302", set, "http://a.test/x").as_deref(), Some("a=b; c=d"));
        assert_eq!(wanted("302", set, "x").as_deref(), Some("a=b; c=d"));
        assert_eq!(wanted("200", set, "http://a.test/x"), None);
        assert_eq!(wanted("302", set, "http://a.test/y"), None);
        assert_eq!(wanted("302", "", "http://a.test/x"), None);
        assert_eq!(
            wanted("302", "Set-Cookie: =b\r\nSet-Cookie: n\u{1}=b\r\nSet-Cookie: none\r\n", "http://a.test/x"),
            None
        );
        let giant = format!("Set-Cookie: a={}\r\nSet-Cookie: c=d\r\n", "x".repeat(HEADER_BYTES_MAX));
        assert_eq!(wanted("302", &giant, "http://a.test/x"), None);
        assert_eq!(
            wanted("302", &"Set-Cookie: a=b\r\n".repeat(100), "http://a.test/x").unwrap().matches('=').count(),
            50
        );
    }
}
