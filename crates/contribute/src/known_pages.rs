//! Known pages: pages of sites that take part, whose content nobody can guess and the node knows without looking.
//!
//! ```text
//! settings/known-pages.txt        URL SECRET        a line each, `#` begins a remark
//! what stands there               the SHA-256 of `SECRET:HOUR` in lower-case hexadecimal digits, HOUR being the hours since 1970
//! ```
//! Now and then such a page is put among the URLs of a bundle of its host. Whoever says something else than what must stand there has
//! not looked, or the page is out of order: the node looks, as for every difference. Where the node does not see either what must stand there,
//! nobody is judged by it.

use std::collections::HashMap;

use skep_url::Url;
use skep_warc::digest::{Algorithm, Hasher};

use crate::limits::KNOWN_PAGES_MAX;
use crate::message::{Digest, keyed};

/// The table: by host, URL and secret.
#[derive(Clone, Debug, Default)]
pub struct KnownPages {
    by_host: HashMap<String, Vec<(String, String)>>,
}

const HOUR_MS: i64 = 3_600_000;

impl KnownPages {
    /// Reads a table. Lines that are none are counted, not fatal.
    pub fn parse(text: &str) -> (KnownPages, usize) {
        let (mut pages, mut wrong, mut count) = (KnownPages::default(), 0, 0);
        for line in text.lines() {
            let line = line.split(" #").next().unwrap_or_default().trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let read = line.split_once(char::is_whitespace).and_then(|(url, secret)| {
                let url = Url::parse(url).ok()?;
                let secret = secret.trim();
                (secret.len() >= 8).then(|| (host(&url), url.as_str().to_owned(), secret.to_owned()))
            });
            match read.filter(|_| count < KNOWN_PAGES_MAX) {
                Some((host, url, secret)) => {
                    count += 1;
                    pages.by_host.entry(host).or_default().push((url, secret));
                }
                None => wrong += 1,
            }
        }
        (pages, wrong)
    }

    /// One of a host's, where it has some: URL and secret.
    pub fn of(&self, host: &str, drawn: u64) -> Option<(&str, &str)> {
        let pages = self.by_host.get(host)?;
        let (url, secret) = pages.get(usize::try_from(drawn % pages.len() as u64).ok()?)?;
        Some((url, secret))
    }
}

fn host(url: &Url) -> String {
    format!("{}:{}", url.host_name(), url.port())
}

/// What stands on a page with this secret at this hour.
pub fn token(secret: &str, hour: i64) -> String {
    let mut hasher = Hasher::new(Algorithm::Sha256);
    hasher.update(format!("{secret}:{hour}").as_bytes());
    crate::node::hex(hasher.finish().as_bytes())
}

/// Is that the digest of what stands there, or stood there or will within the hour?
pub fn is_right(secret: &str, said: &Digest, nonce: &[u8; 16], now_ms: i64) -> bool {
    let hour = now_ms.div_euclid(HOUR_MS);
    (hour - 1..=hour + 1).any(|hour| {
        let token = token(secret, hour);
        [token.clone(), format!("{token}\n")].iter().any(|body| match said {
            Digest::Keyed(digest) => *digest == keyed(nonce, body.as_bytes()),
            other => other.is_of(&crate::seen::sha1(body.as_bytes()), nonce),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_there_is_known_without_looking() {
        let text = "# taking part\nhttps://a.test/known.txt correct-horse\nhttp://b.test short\nnonsense\n";
        let (pages, wrong) = KnownPages::parse(text);
        assert_eq!(wrong, 2);
        let (url, secret) = pages.of("a.test:443", 7).unwrap();
        assert_eq!((url, secret), ("https://a.test/known.txt", "correct-horse"));
        assert!(pages.of("b.test:80", 0).is_none());
        // As `printf %s correct-horse:480000 | sha256sum` has it.
        let now_ms = 480_000 * HOUR_MS + 5;
        let stands = token(secret, 480_000);
        assert_eq!(stands.len(), 64);
        let nonce = [7; 16];
        for body in [stands.clone(), format!("{stands}\n"), token(secret, 479_999)] {
            assert!(is_right(secret, &Digest::Keyed(keyed(&nonce, body.as_bytes())), &nonce, now_ms));
            assert!(is_right(secret, &Digest::Plain(crate::seen::sha1(body.as_bytes())), &nonce, now_ms));
        }
        let old = token(secret, 479_998);
        assert!(!is_right(secret, &Digest::Keyed(keyed(&nonce, old.as_bytes())), &nonce, now_ms));
        assert!(!is_right(secret, &Digest::None, &nonce, now_ms));
    }
}
