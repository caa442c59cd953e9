//! Keys: where a URL stands in every table of an archive.
//!
//! ```text
//! | site hash 4 | SURT … |        bytes of a key, in the order in which keys sort
//! ```
//! The site hash is the first four bytes of the BLAKE3 of the site's name in ASCII. The site is read off the SURT, so that one
//! SURT has one key, whatever spelling of the URL it came from: the registrable domain of its host by the ICANN part of the
//! public suffix list; of a URL without host the host of the URL inside it (`screenshot:http://…`, `dns:…`), else its scheme.

use std::fmt;

use crate::limits;
use crate::site::{Part, Suffixes};
use crate::surt;

const HASH_BYTES: usize = 4;
/// A cut SURT ends in `~` and 64 hexadecimal digits.
const DIGEST_TAIL_BYTES: usize = 65;

/// The key of a URL: four bytes of site hash, then its SURT. Keys sort as their bytes do.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    bytes: Vec<u8>,
}

impl Key {
    /// The key of a URL, by the suffix list compiled in.
    pub fn of(url: &str) -> Key {
        Key::of_bytes(url.as_bytes())
    }

    /// The key of whatever stands where an archive has a URL; see [`surt::key_of_bytes`].
    pub fn of_bytes(url: &[u8]) -> Key {
        Key::of_bytes_in(url, &Suffixes::compiled())
    }

    /// The key of a URL by a given suffix list.
    pub fn of_bytes_in(url: &[u8], suffixes: &Suffixes) -> Key {
        let mut bytes = Vec::with_capacity(HASH_BYTES + url.len() + 8);
        bytes.extend_from_slice(&[0; HASH_BYTES]);
        surt::key_into(url, &mut bytes);
        Key::finish(bytes, suffixes)
    }

    /// The key of a SURT, by the suffix list compiled in.
    pub fn of_surt(surt: &str) -> Key {
        Key::of_surt_in(surt, &Suffixes::compiled())
    }

    /// The key of a SURT by a given suffix list.
    pub fn of_surt_in(surt: &str, suffixes: &Suffixes) -> Key {
        Key::finish([&[0; HASH_BYTES], surt.as_bytes()].concat(), suffixes)
    }

    /// The key of parts that are known to belong together.
    pub fn from_parts(site_hash: u32, surt: &str) -> Key {
        let mut bytes = [&site_hash.to_be_bytes(), surt.as_bytes()].concat();
        cut(&mut bytes);
        Key { bytes }
    }

    /// The key in `bytes`; `None` if they are no key that [`Key::as_bytes`] could have given.
    pub fn from_bytes(bytes: &[u8]) -> Option<Key> {
        let surt = bytes.get(HASH_BYTES..)?;
        let fits = surt.len() <= limits::KEY_SURT_BYTES_MAX && std::str::from_utf8(surt).is_ok();
        fits.then(|| Key { bytes: bytes.to_vec() })
    }

    fn finish(mut bytes: Vec<u8>, suffixes: &Suffixes) -> Key {
        let hash = site_hash(&bytes[HASH_BYTES..], suffixes);
        bytes[..HASH_BYTES].copy_from_slice(&hash);
        cut(&mut bytes);
        Key { bytes }
    }

    /// The hash of the site, or the place of a URL whose site is split ([`crate::split`]); a slice is a range of it.
    pub fn site_hash(&self) -> u32 {
        self.bytes.first_chunk().map_or(0, |hash| u32::from_be_bytes(*hash))
    }

    /// The same key in another place of its site: with this hash in front.
    pub fn at_place(mut self, place: u32) -> Key {
        self.bytes[..HASH_BYTES].copy_from_slice(&place.to_be_bytes());
        self
    }

    /// The key as it is filed in a half-slice, by the top bits of that one: those of its site, or of a place of a site that is split.
    pub fn in_place(self, top: u32, bits: u32) -> Key {
        let site = self.site_hash();
        let rest = site & u32::MAX.checked_shr(bits).unwrap_or(0);
        let place = top.checked_shl(32 - bits.min(32)).unwrap_or(0) | rest;
        if place == site { self } else { self.at_place(place) }
    }

    /// The SURT.
    pub fn surt(&self) -> &str {
        std::str::from_utf8(&self.bytes[HASH_BYTES..]).unwrap_or_default()
    }

    /// The key as it stands in tables.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The key as it stands in tables.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}:{}", self.site_hash(), self.surt())
    }
}

/// The site of a SURT by the ICANN part of a list, as a name: `example.co.uk`, `127.0.0.1`, `urn:`.
pub fn site_of_surt(surt: &str, suffixes: &Suffixes) -> String {
    let mut name = Vec::new();
    site_into(surt.as_bytes(), suffixes, &mut name);
    String::from_utf8_lossy(&name).into_owned()
}

/// The hash of a site's name, as it stands in front of keys.
pub fn hash_of_site(site: &str) -> u32 {
    u32::from_be_bytes(hash(site.as_bytes()))
}

fn hash(site: &[u8]) -> [u8; HASH_BYTES] {
    let digest = blake3::hash(site);
    let [a, b, c, d, ..] = *digest.as_bytes();
    [a, b, c, d]
}

fn site_hash(surt: &[u8], suffixes: &Suffixes) -> [u8; HASH_BYTES] {
    let mut name = Vec::with_capacity(64);
    site_into(surt, suffixes, &mut name);
    hash(&name)
}

fn site_into(surt: &[u8], suffixes: &Suffixes, out: &mut Vec<u8>) {
    let Some(host) = host_of_surt(surt) else { return out.extend_from_slice(opaque_site(surt, suffixes)) };
    // A port belongs to the host, not to the site. Two colons are an IPv6 address, which is its own site.
    let host = match memchr::memchr(b':', host) {
        Some(colon) if memchr::memchr(b':', &host[colon + 1..]).is_none() => &host[..colon],
        Some(_) => return out.extend_from_slice(host),
        None => host,
    };
    let labels = || host.split(|&b| b == b',');
    let site = if is_ipv4(host) {
        host
    } else {
        let suffix = suffixes.suffix_bytes(labels(), Part::Icann);
        let label = host.get(suffix + 1..).map_or(0, |rest| 1 + memchr::memchr(b',', rest).unwrap_or(rest.len()));
        &host[..(suffix + label).min(host.len())]
    };
    for (i, label) in site.rsplit(|&b| b == b',').enumerate() {
        if i > 0 {
            out.push(b'.');
        }
        out.extend_from_slice(label);
    }
}

/// `org,example:8080` of `org,example:8080)/path`.
fn host_of_surt(surt: &[u8]) -> Option<&[u8]> {
    let end = memchr::memchr(b')', surt)?;
    // The host of a key is in front of everything; `urn:x(y)z` has none.
    let host = &surt[..end];
    let opaque = host.first().is_some_and(u8::is_ascii_alphabetic) && {
        let colon = memchr::memchr(b':', host);
        colon.is_some_and(|colon| {
            host[colon + 1..].iter().any(|b| !b.is_ascii_digit()) && !host[..colon].contains(&b',')
        })
    };
    let address = host.iter().all(|b| b.is_ascii_hexdigit() || matches!(b, b':' | b',' | b'.'));
    (!opaque || address).then_some(host)
}

/// The site of a URL without host: that of the URL or name inside it, else its scheme with the colon.
fn opaque_site<'a>(surt: &'a [u8], suffixes: &Suffixes) -> &'a [u8] {
    let inside = match memchr::memmem::find(surt, b"://") {
        Some(at) => &surt[at + 3..],
        None => surt.strip_prefix(b"dns:").unwrap_or_default(),
    };
    let end = inside
        .iter()
        .position(|b| !b.is_ascii_alphanumeric() && !matches!(b, b'.' | b'-' | b'_'))
        .unwrap_or(inside.len());
    match std::str::from_utf8(&inside[..end]) {
        Ok(host) if !host.is_empty() => suffixes.site(host, Part::Icann).as_bytes(),
        _ => &surt[..memchr::memchr(b':', surt).map_or(surt.len(), |colon| colon + 1)],
    }
}

fn is_ipv4(host: &[u8]) -> bool {
    let mut count = 0;
    host.split(|&b| b == b',').all(|part| {
        count += 1;
        (1..=3).contains(&part.len()) && part.iter().all(u8::is_ascii_digit)
    }) && count == 4
}

fn cut(bytes: &mut Vec<u8>) {
    let surt = &bytes[HASH_BYTES..];
    if surt.len() <= limits::KEY_SURT_BYTES_MAX {
        return;
    }
    let digest = blake3::hash(surt).to_hex();
    let mut keep = limits::KEY_SURT_BYTES_MAX - DIGEST_TAIL_BYTES;
    while keep > 0 && surt[keep] & 0xc0 == 0x80 {
        keep -= 1; // never in the middle of a character
    }
    bytes.truncate(HASH_BYTES + keep);
    bytes.push(b'~');
    bytes.extend_from_slice(digest.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_the_hash_of_its_site_and_its_surt() {
        let key = Key::of("http://www.Example.co.uk/A?b&a");
        assert_eq!(key.surt(), "uk,co,example)/a?a&b");
        assert_eq!(key.site_hash(), hash_of_site("example.co.uk"));
        assert_eq!(key.as_bytes()[..4], blake3::hash(b"example.co.uk").as_bytes()[..4]);
        assert_eq!(Key::from_bytes(key.as_bytes()), Some(key.clone()));
        assert_eq!(Key::from_parts(key.site_hash(), key.surt()), key);
        assert_eq!(Key::of_surt(key.surt()), key);
    }

    #[test]
    fn hosts_of_one_site_share_a_hash() {
        let sites = |urls: &[&str]| urls.iter().map(|url| Key::of(url).site_hash()).collect::<Vec<_>>();
        let one = hash_of_site("example.org");
        assert_eq!(sites(&["http://example.org/", "https://a.b.example.org:8443/x", "http://EXAMPLE.org./"]), [one; 3]);
        assert_eq!(
            sites(&["dns:www.example.org", "screenshot:https://example.org/x", "urn:text:http://a.example.org/"]),
            [one; 3]
        );
    }

    #[test]
    fn the_site_is_read_off_the_surt() {
        for (surt, site) in [
            ("org,example)/", "example.org"),
            ("org,example,a:8080)/x", "example.org"),
            ("io,github,someone)/", "github.io"),
            ("ck,www)/", "www.ck"),
            ("com)/", "com"),
            ("1,0,0,127)/", "127.0.0.1"),
            ("localhost:8000)/x", "localhost"),
            ("::1)/", "::1"),
            ("fe80::1)/", "fe80::1"),
            ("mailto:a@b.org", "mailto:"),
            ("urn:uuid:1", "urn:"),
            ("javascript:alert(1)", "javascript:"),
            ("dns:a.example.org", "example.org"),
            ("dns:", "dns:"),
            ("-", "-"),
            ("", ""),
        ] {
            assert_eq!(site_of_surt(surt, &Suffixes::compiled()), site, "{surt}");
        }
    }

    #[test]
    fn an_endless_url_has_a_short_key_of_its_own() {
        let long = |end: &str| format!("http://example.org/{}{end}", "a/b".repeat(20_000));
        let (one, other) = (Key::of(&long("1")), Key::of(&long("2")));
        assert_ne!(one, other);
        assert_eq!(one.surt().len(), limits::KEY_SURT_BYTES_MAX);
        assert_eq!(one.site_hash(), hash_of_site("example.org"));
        assert_eq!(Key::from_parts(one.site_hash(), &surt::key(&long("1"))), one);
    }

    #[test]
    fn bytes_that_are_no_key_are_refused() {
        assert_eq!(Key::from_bytes(b"abc"), None);
        assert_eq!(Key::from_bytes(b"abcd\xff"), None);
    }
}
