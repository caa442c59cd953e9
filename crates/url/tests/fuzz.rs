//! The fuzz functions over seeded mutations of kept inputs.

use skep_url::fuzz::{fuzz_robots, fuzz_surt};

const ROUNDS: u64 = 60_000;

struct Seeded(u64);

impl Seeded {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound.max(1)
    }

    /// Cuts, repeats, flips and splices, a few at a time.
    fn mutate(&mut self, seeds: &[&[u8]], tokens: &[&[u8]]) -> Vec<u8> {
        let mut bytes = seeds[self.below(seeds.len())].to_vec();
        for _ in 0..1 + self.below(4) {
            let at = self.below(bytes.len() + 1);
            match self.below(6) {
                0 => bytes.truncate(at),
                1 => {
                    let other = seeds[self.below(seeds.len())];
                    bytes.splice(at.., other[self.below(other.len())..].iter().copied());
                }
                2 if at < bytes.len() => bytes[at] = self.below(256) as u8,
                3 if at < bytes.len() => bytes[at] ^= 0x20,
                4 => {
                    let copy = bytes[at..(at + self.below(12)).min(bytes.len())].to_vec();
                    bytes.splice(at..at, copy);
                }
                _ => {
                    bytes.splice(at..at, tokens[self.below(tokens.len())].iter().copied());
                }
            }
        }
        bytes
    }
}

#[test]
fn keys_of_anything() {
    let seeds: &[&[u8]] = &[
        b"http://www.example.com/a/b.html?x=1&y=2#z",
        b"https://user:pw@sub.example.co.uk:8443/%7Ea/../b//c?sid=0123456789ABCDEF0123456789ABCDEF&a",
        b"http://example.com/(S(4hqa0555fwsecu455xqckv45))/x.aspx?CFID=1&CFTOKEN=2",
        "http://bücher.example/straße?ä=ö".as_bytes(),
        b"http://[2001:db8::1]:80/",
        b"http://0177.0.0.1/",
        b"dns:example.com",
        b"urn:uuid:0b2ad2bb",
        b"screenshot:https://example.org/",
        b"mailto:a@example.org?subject=B",
        b"javascript:alert(1)",
        b"*.example.org/a*",
    ];
    let tokens: &[&[u8]] = &[
        b"%",
        b"%25",
        b"%2e",
        b"/",
        b"//",
        b"/../",
        b"?",
        b"&",
        b"=",
        b"#",
        b":",
        b"@",
        b".",
        b"..",
        b" ",
        b"\t",
        b"\0",
        b"\xff",
        b"www.",
        b"http://",
        b"[",
        b"]",
        b")",
        b"(",
        b",",
        "\u{3002}".as_bytes(),
        "\u{5d0}".as_bytes(),
        "\u{1f600}".as_bytes(),
        b"xn--",
        b"1.2",
    ];
    for seed in 0..ROUNDS {
        fuzz_surt(&Seeded(seed).mutate(seeds, tokens));
    }
}

#[test]
fn robots_of_anything() {
    let seeds: &[&[u8]] = &[
        b"User-agent: *\nDisallow: /private/\nAllow: /private/x\nCrawl-delay: 10\n\nSitemap: https://example.org/s.xml\n",
        b"\xef\xbb\xbfuser-agent: skep\r\nuser-agent: Other/1.0\r\ndisallow: /*.gif$\r\nallow: /a*b*c\r\n",
        b"user agent *\rdisalow /x\rallow: /index.html\r",
        b"<!DOCTYPE html><title>404</title>",
    ];
    let tokens: &[&[u8]] = &[
        b"\n",
        b"\r",
        b"\r\n",
        b":",
        b"#",
        b"*",
        b"$",
        b"/",
        b"%",
        b"%2F",
        b"%41",
        b"\xff",
        b"\0",
        b" ",
        b"user-agent: *\n",
        b"disallow: ",
        b"allow: ",
        b"crawl-delay: 1e9",
        b"sitemap: x\n",
    ];
    for seed in 0..ROUNDS {
        fuzz_robots(&Seeded(seed).mutate(seeds, tokens));
    }
}
