//! The scanner against html5ever on tag soup: pieces of markup in any order, whole, cut and damaged.
//!
//! The scanner builds no tree, so it guesses one thing: where an `svg` or `math` ends that its own end tag does not close. Which HTML
//! elements are open around it or inside it decides that; soup in which drawings are left open therefore differs in some
//! cases. All other soup gives the same links.

mod oracle;

use std::collections::BTreeSet;

use skep_url::Url;

struct Seeded(u64);

impl Seeded {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound.max(1)
    }
}

/// HTML in which every way of reading text occurs. `%` becomes a number of its own.
const PIECES: &[&str] = &[
    "<a href=%>",
    "</a>",
    "<a href='%'>x</a>",
    "<a href=\"%\" href=%>",
    "<A HREF=%/>",
    "<a title='>' href=%>",
    "<a x=\"a\"href=%>",
    "<a href=%",
    "<a href='%",
    "<a href=\"%",
    "<img src=%>",
    "<img srcset='% 1x, % 2x'>",
    "<area href=%>",
    "<link rel=next href=%>",
    "<!--",
    "-->",
    "--!>",
    "<!-->",
    "<!--->",
    "<!-- <a href=%> -->",
    "<!doctype html>",
    "<!x <a href=%>",
    "<?x <a href=%> ?>",
    "</ %>",
    "</>",
    "<>",
    "<",
    "<<a href=%>",
    ">",
    "'",
    "\"",
    "=",
    "/",
    "&amp;",
    "<a href='%&amp;x&copy=1&#x41;&#0;&notin;&notx'>",
    "<script>",
    "</script>",
    "<script src=%></script>",
    "<script><!--",
    "<script><!--<script>",
    "</script >",
    "</script/>",
    "<style>",
    "</style>",
    "<style>a{b:url(%)}</style>",
    "<title>",
    "</title>",
    "<textarea>",
    "</textarea>",
    "<xmp>",
    "</xmp>",
    "<iframe src=%>",
    "</iframe>",
    "<noembed>",
    "</noembed>",
    "<noscript>",
    "</noscript>",
    "<noscript><img src=%></noscript>",
    "<p>",
    "</p>",
    "<div>",
    "</div>",
    "<b>",
    "</b>",
    "<ul><li>",
    "</ul>",
    "<table><tr><td>",
    "</table>",
    "<p style='a:url(%)'>",
    "<form action=%>",
    "</form>",
    "<input type=image src=%>",
    "<video src=% poster=%></video>",
    "<object data=%></object>",
    "<br>",
    "<embed src=%>",
    "text",
    " ",
    "\n",
    "\t",
    "<h1>",
    "</h1>",
    "<span>",
    "</span>",
    "<base target=x>",
    "<meta name=a content=b>",
];

/// Drawings and formulas that are closed.
const CLOSED: &[&str] = &[
    "<svg/>",
    "<svg><title><a href=%></a></title></svg>",
    "<svg><![CDATA[<a href=%>]]></svg>",
    "<svg><image href=% /></svg>",
    "<svg><a xlink:href=%></a></svg>",
    "<math><mi><style><a href=%></style></mi></math>",
    "<svg><style><a href=%></style></svg>",
    "<svg><foreignObject><style><a href=%></style></foreignObject><style><a href=%></style></svg>",
    "<svg><script xlink:href=% /><use href=% /></svg>",
    "<math><style><a href=%></style></math>",
];

/// Parts of drawings and formulas, with which any may be left open.
const OPEN: &[&str] = &[
    "<svg>",
    "</svg>",
    "<svg><style><a href=%></style>",
    "<![CDATA[",
    "]]>",
    "<foreignObject>",
    "</foreignObject>",
    "<math>",
    "</math>",
    "<g>",
    "</g>",
    "<desc>",
    "</desc>",
];

fn soup(chance: &mut Seeded, pieces: &[&[&str]], damaged: bool) -> String {
    let mut text = String::from(if chance.below(2) == 0 { "<!doctype html><body>" } else { "" });
    let mut number = 0;
    for _ in 0..1 + chance.below(24) {
        let some = pieces[chance.below(pieces.len())];
        for part in some[chance.below(some.len())].split_inclusive('%') {
            number += 1;
            text.push_str(&part.replace('%', &format!("n{number}")));
        }
        let at = text.floor_char_boundary(chance.below(text.len() + 1));
        match chance.below(12) {
            0 if damaged => text.truncate(at),
            1 if damaged => text.insert(at, ['<', '>', '"', '\'', '/', '-', '!', '\0', ' ', 'é'][chance.below(10)]),
            _ => {}
        }
    }
    text
}

/// The difference, where there is one.
fn difference(text: &str) -> Option<String> {
    let url: Url = "http://example.org/a/b".parse().unwrap();
    let (tree, scan) = (oracle::links(&url, text), oracle::scanned(&url, text).expect("soup is small"));
    let only = |a: &BTreeSet<String>, b| a.difference(b).cloned().collect::<Vec<_>>().join(" ");
    (tree != scan)
        .then(|| format!("{text:?}\n  only html5ever: {}\n  only scanner: {}", only(&tree, &scan), only(&scan, &tree)))
}

fn differences(seed: u64, rounds: usize, pieces: &[&[&str]], damaged: bool) -> Vec<String> {
    let mut chance = Seeded(seed);
    (0..rounds).filter_map(|_| difference(&soup(&mut chance, pieces, damaged))).collect()
}

#[test]
fn damaged_markup() {
    let wrong = differences(1, 40_000, &[PIECES], true);
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong[..wrong.len().min(12)].join("\n"));
}

#[test]
fn drawings_that_are_closed() {
    let wrong = differences(2, 20_000, &[PIECES, CLOSED], false);
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong[..wrong.len().min(12)].join("\n"));
}

#[test]
fn drawings_left_open_are_mostly_guessed_right() {
    let rounds = 20_000;
    let wrong = differences(3, rounds, &[PIECES, PIECES, PIECES, CLOSED, OPEN], true);
    assert!(wrong.len() * 30 < rounds, "{} differences:\n{}", wrong.len(), wrong[..wrong.len().min(12)].join("\n"));
}
