//! robots.txt, with the line that decided.

use skep_url::limits;
use skep_url::robots::{Because, Robots};

/// Path, and the answer in words: `+` or `-`, then the line.
#[track_caller]
fn check(file: &str, agent: &str, cases: &[(&str, &str)]) {
    let robots = Robots::parse(file.as_bytes());
    for (path, wanted) in cases {
        let decision = robots.decide(agent, &format!("http://example.org{path}"));
        let because = match decision.because {
            Because::Line(line) => format!("{}: {}", line.number, line.text),
            other => format!("{other:?}"),
        };
        assert_eq!(format!("{} {because}", if decision.allowed { '+' } else { '-' }), *wanted, "{path}");
    }
}

#[test]
fn the_longest_match_decides_and_allow_wins_a_tie() {
    check(
        "user-agent: *\ndisallow: /a\nallow: /a/b # here\ndisallow: /a/b/c\nallow: /same\ndisallow: /same\n",
        "skep",
        &[
            ("/", "+ NoRuleMatches"),
            ("/ax", "- 2: disallow: /a"),
            ("/a/b", "+ 3: allow: /a/b"),
            ("/a/b/c?d", "- 4: disallow: /a/b/c"),
            ("/same", "+ 5: allow: /same"),
        ],
    );
}

#[test]
fn groups_of_one_agent_are_one_and_the_own_group_replaces_that_for_all() {
    let file = "User-agent: *\nDisallow: /all\n\nUser-agent: Skep\nUser-agent: Other\nDisallow: /one\n\nUser-Agent: skep/2.0\nDisallow: /two\n";
    check(
        file,
        "Skep/1.0",
        &[("/all", "+ NoRuleMatches"), ("/one", "- 6: Disallow: /one"), ("/two", "- 9: Disallow: /two")],
    );
    check(file, "other", &[("/one", "- 6: Disallow: /one"), ("/two", "+ NoRuleMatches")]);
    check(file, "nobody", &[("/all", "- 2: Disallow: /all"), ("/one", "+ NoRuleMatches")]);
    check("user-agent: a\ndisallow: /", "skep", &[("/", "+ NoGroup")]);
    check("user-agent: *\ndisallow: /\nuser-agent: skep\n", "skep", &[("/", "+ NoRuleMatches")]);
    check("disallow: /early\nuser-agent: *\n", "skep", &[("/early", "+ NoRuleMatches")]);
}

#[test]
fn other_records_never_end_a_group() {
    let file = "user-agent: a\nsitemap: http://example.org/s\ncrawl-delay: 5\nuser-agent: b\ndisallow: /x\nnoindex: /y\ndisallow: /z\n";
    for agent in ["a", "b"] {
        check(file, agent, &[("/x", "- 5: disallow: /x"), ("/z", "- 7: disallow: /z")]);
    }
}

#[test]
fn stars_and_ends() {
    check(
        "user-agent: *\ndisallow: /*.gif$\ndisallow: /private*/\ndisallow: *?sort=\nallow: /$\ndisallow: /a$b\n",
        "skep",
        &[
            ("/x/y.gif", "- 2: disallow: /*.gif$"),
            ("/x.gif?y", "+ NoRuleMatches"),
            ("/private1/", "- 3: disallow: /private*/"),
            ("/private", "+ NoRuleMatches"),
            ("/x?sort=up", "- 4: disallow: *?sort="),
            ("/", "+ 5: allow: /$"),
            ("/a$b", "- 6: disallow: /a$b"),
        ],
    );
}

#[test]
fn escapes() {
    check(
        "user-agent: *\ndisallow: /caf\u{e9}\ndisallow: /%7euser\ndisallow: /a%2fb\nallow: /%62\n",
        "skep",
        &[
            ("/caf%C3%A9", "- 2: disallow: /caf\u{e9}"),
            ("/caf%c3%a9", "- 2: disallow: /caf\u{e9}"),
            ("/~user", "- 3: disallow: /%7euser"),
            ("/%7Euser", "- 3: disallow: /%7euser"),
            ("/a/b", "+ NoRuleMatches"),
            ("/a%2Fb", "- 4: disallow: /a%2fb"),
            ("/b", "+ NoRuleMatches"),
            ("/%62", "+ 5: allow: /%62"),
        ],
    );
}

#[test]
fn odd_files() {
    check("\u{feff}user-agent: *\r\ndisallow: /x\r\n", "skep", &[("/x", "- 2: disallow: /x")]);
    check("user-agent *\rdisalow /x", "skep", &[("/x", "- 2: disalow /x")]);
    check("user-agent: *\ndisallow:\n", "skep", &[("/x", "+ NoRuleMatches")]);
    check("<html><body>Not found</body></html>", "skep", &[("/x", "+ NoGroup")]);
    check(
        "user-agent: *\nallow: /d/index.html\ndisallow: /\n",
        "skep",
        &[("/d/", "+ 2: allow: /d/index.html"), ("/d/x", "- 3: disallow: /")],
    );
    check(
        "user-agent: *\ndisallow: /\n",
        "skep",
        &[("/robots.txt", "+ RobotsTxt"), ("/robots.txt?x", "- 2: disallow: /")],
    );
    assert!(!Robots::parse(b"user-agent: *\ndisallow: /\xff").decide("skep", "http://example.org/%FF").allowed);
}

#[test]
fn delays_and_sitemaps() {
    let robots = Robots::parse(
        b"Sitemap: https://example.org/one.xml\nuser-agent: *\ncrawl-delay: 2.5\nuser-agent: skep\nCrawl-delay: 10\n\
          crawl-delay: 99\ndisallow: /x\nuser-agent: quick\ndisallow: /y\nsitemap: /two.xml # here\nsitemap:\n",
    );
    let delay = |agent| robots.crawl_delay(agent).map(|delay| (delay.seconds, delay.line.number));
    assert_eq!(delay("skep"), Some((10.0, 5)));
    assert_eq!(delay("anybody"), Some((2.5, 3)));
    assert_eq!(delay("quick"), None);
    let sitemaps: Vec<_> = robots.sitemaps().iter().map(|sitemap| (sitemap.line, &*sitemap.url)).collect();
    assert_eq!(sitemaps, [(1, "https://example.org/one.xml"), (10, "/two.xml")]);
}

#[test]
fn only_the_first_half_megabyte_counts() {
    let mut file = b"user-agent: *\ndisallow: /early\n".to_vec();
    file.resize(limits::ROBOTS_BYTES_MAX, b'\n');
    assert!(!Robots::parse(&file).was_cut());
    file.extend_from_slice(b"disallow: /late\n");
    let robots = Robots::parse(&file);
    assert!(robots.was_cut());
    assert!(!robots.decide("skep", "http://example.org/early").allowed);
    assert!(robots.decide("skep", "http://example.org/late").allowed);
}

#[test]
fn hostile_files_stay_small_and_quick() {
    let stars = format!("user-agent: *\ndisallow: /{}\n", "*a".repeat(8_000));
    assert!(Robots::parse(stars.as_bytes()).decide("skep", &format!("/{}", "a".repeat(7_999))).allowed);
    let crowd = format!("{}{}", "user-agent: a\n".repeat(15_000), "disallow: /x\n".repeat(15_000));
    assert!(!Robots::parse(crowd.as_bytes()).decide("a", "/x").allowed);
    let names: String = (0..9_000u32)
        .map(|i| format!("user-agent: b{}\n", ["a", "b", "c"][i as usize % 3].repeat(1 + i as usize % 30)))
        .collect();
    let rules = "disallow: /x\n".repeat(20_000);
    assert!(!Robots::parse(format!("{names}{rules}").as_bytes()).decide("baaaa", "/x").allowed);
}
