//! The fuzz functions over kept inputs and seeded mutations of them, and references over many made for the purpose.

use std::path::Path;

use skep_page::fuzz::{fuzz_compare, fuzz_listing, fuzz_page, fuzz_reference, fuzz_rewrite};

struct Seeded(u64);

impl Seeded {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound.max(1)
    }
}

fn kept(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz").join(name);
    let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().map(|file| std::fs::read(file).unwrap()).collect()
}

fn mutations(name: &str, run: fn(&[u8]), rounds: usize, tokens: &[&str]) {
    let kept = kept(name);
    kept.iter().for_each(|input| run(input));
    let mut chance = Seeded(7);
    for _ in 0..rounds {
        let mut bytes = kept[chance.below(kept.len())].clone();
        for _ in 0..1 + chance.below(5) {
            let at = chance.below(bytes.len() + 1);
            match chance.below(6) {
                0 => bytes.truncate(at),
                1 => {
                    let other = &kept[chance.below(kept.len())];
                    bytes.splice(at.., other[chance.below(other.len())..].iter().copied());
                }
                2 if at < bytes.len() => bytes[at] = chance.below(256) as u8,
                3 if at < bytes.len() => bytes[at] ^= 0x20,
                4 => {
                    let copy = bytes[at..(at + chance.below(12)).min(bytes.len())].to_vec();
                    bytes.splice(at..at, copy);
                }
                _ => {
                    bytes.splice(at..at, tokens[chance.below(tokens.len())].bytes());
                }
            }
        }
        run(&bytes);
    }
}

#[test]
fn pages() {
    let tokens = [
        "<",
        ">",
        "<!--",
        "-->",
        "<script>",
        "</script>",
        "<svg>",
        "<style>",
        "url(",
        "\\",
        "&amp;",
        "<base href=",
        "\0",
        "\u{feff}",
        "]]>",
        "'",
        "\"",
        "srcset='",
        "@import ",
    ];
    mutations("page", fuzz_page, 20_000, &tokens);
}

#[test]
fn listings() {
    let tokens = [
        "<loc>",
        "</loc>",
        "<url>",
        "</url>",
        "<![CDATA[",
        "]]>",
        "<!ENTITY",
        "&amp;",
        "&",
        "http://",
        "<link href='",
        "<item>",
        "</item>",
    ];
    mutations("listing", fuzz_listing, 20_000, &tokens);
}

#[test]
fn references() {
    let tokens = [
        "../",
        "./",
        "..",
        "//",
        "/",
        "\\",
        "?",
        "#",
        "%2e",
        "%2E%2e/",
        ":",
        "http:",
        "a:",
        ";",
        " ",
        "\t",
        "é",
        "'",
        "@",
        "&",
        "|",
        "x",
        "http://example.org",
        "C|/",
    ];
    mutations("reference", fuzz_reference, 60_000, &tokens);
    // Every short reference of the signs that matter, on bases of every shape.
    let signs = ["a", ".", "..", "/", "//", "\\", "?", "#", "%2e", ":", "%", "&", ";x", "@", "~"];
    for base in [
        "http://example.org/",
        "http://example.org/a",
        "http://example.org/a/b/c?d",
        "http://example.org//a//b",
        "https://example.org:8443/a/./b/",
        "http://[::1]/a/b;c/d%2Fe",
        "http://example.org/?/a/b",
    ] {
        let mut references = vec![String::new()];
        let mut from = 0;
        for _ in 0..4 {
            let to = references.len();
            for index in from..to {
                for sign in signs {
                    let longer = format!("{}{sign}", references[index]);
                    references.push(longer);
                }
            }
            from = to;
        }
        for some in references.chunks(200) {
            fuzz_reference(format!("{base}\n{}", some.join("\n")).as_bytes());
        }
    }
}

#[test]
fn rewriting() {
    let tokens = [
        "<",
        ">",
        "<!--",
        "-->",
        "<script>",
        "</script>",
        "<svg>",
        "<style>",
        "</style>",
        "url(",
        ")",
        "\\",
        "&amp;",
        "<base href=",
        "\0",
        "]]>",
        "'",
        "\"",
        "`",
        "${",
        "}",
        "{",
        "/",
        "/*",
        "*/",
        "//",
        "\n",
        "srcset='",
        "@import ",
        "location",
        "top",
        ".",
        "import(",
        "import ",
        "from ",
        "postMessage(",
        "\u{e9}",
        "image-set(",
        "javascript:",
        "=",
    ];
    mutations("rewrite", fuzz_rewrite, 20_000, &tokens);
}

#[test]
fn comparing() {
    let tokens = [
        "\0",
        "<",
        ">",
        "<p>",
        "</p>",
        "<div>",
        "</div>",
        "<li>",
        "<a href=x>",
        "</a>",
        "<script>",
        "</script>",
        " 12 views ",
        " 3 hours ago ",
        "2026-01-01 10:00:00",
        "class=x",
        " word ",
        "\u{e9}",
        "\u{6f22}",
        "&amp;",
        "<!--",
        "-->",
        "<title>",
        "</title>",
        "\n",
    ];
    mutations("compare", fuzz_compare, 5_000, &tokens);
}
