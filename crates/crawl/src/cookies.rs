//! Cookies that the operator gives (`--cookies FILE`, the format of browsers' exports and of wget). Cookies that sites set are
//! not kept: a crawl has no session of its own.

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
}
