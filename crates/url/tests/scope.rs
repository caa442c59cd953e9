//! Scope rules, with the rule that decided.

use skep_url::{Scope, Suffixes, Url};

fn scope(rules: &[&str]) -> Scope {
    Scope::parse(rules.iter().copied(), Suffixes::compiled()).unwrap()
}

/// URL, and the verdict in words.
#[track_caller]
fn check(rules: &[&str], cases: &[(&str, &str)]) {
    let scope = scope(rules);
    for (url, wanted) in cases {
        assert_eq!(scope.decide(&Url::parse(url).unwrap()).to_string(), *wanted, "{url}");
    }
}

#[test]
fn one_host() {
    check(
        &["host Example.org", "host ports.example.org:8080"],
        &[
            ("http://example.org/", "in scope by 'host example.org'"),
            ("https://example.org:8443/", "in scope by 'host example.org'"),
            ("http://www.example.org/", "out of scope: no rule takes it in"),
            ("http://ports.example.org:8080/", "in scope by 'host ports.example.org:8080'"),
            ("http://ports.example.org/", "out of scope: no rule takes it in"),
        ],
    );
}

#[test]
fn one_site() {
    check(
        &["site www.example.co.uk", "site someone.github.io"],
        &[
            ("http://example.co.uk/", "in scope by 'site example.co.uk'"),
            ("https://a.b.example.co.uk/", "in scope by 'site example.co.uk'"),
            ("http://other.co.uk/", "out of scope: no rule takes it in"),
            ("http://x.someone.github.io/", "in scope by 'site someone.github.io'"),
            ("http://other.github.io/", "out of scope: no rule takes it in"),
        ],
    );
}

#[test]
fn one_domain_and_below() {
    check(
        &["domain *.docs.example.org", "domain co.uk"],
        &[
            ("http://docs.example.org/", "in scope by 'domain docs.example.org'"),
            ("http://a.docs.example.org/", "in scope by 'domain docs.example.org'"),
            ("http://notdocs.example.org/", "out of scope: no rule takes it in"),
            ("http://example.co.uk/", "in scope by 'domain co.uk'"),
        ],
    );
}

#[test]
fn prefixes_and_single_urls() {
    check(
        &["prefix https://example.org/docs/", "prefix example.net", "url https://example.com/one"],
        &[
            ("http://example.org/docs/a?b", "in scope by 'prefix example.org/docs/'"),
            ("https://example.org/docs", "out of scope: no rule takes it in"),
            ("https://example.org:8080/docs/", "out of scope: no rule takes it in"),
            ("https://example.net/x", "in scope by 'prefix example.net/'"),
            ("https://example.net.evil.org/x", "out of scope: no rule takes it in"),
            ("https://example.com/one#two", "in scope by 'url https://example.com/one'"),
            ("https://example.com/one/two", "out of scope: no rule takes it in"),
        ],
    );
}

#[test]
fn patterns_and_what_wins() {
    check(
        &[
            "exclude *.pdf",
            "site example.org",
            "include *://cdn.example.net/*?v=*",
            "exclude ~ /calendar/\\d{4}",
            "include ~ ^https://[a-z]+\\.example\\.com/$",
        ],
        &[
            ("http://example.org/", "in scope by 'site example.org'"),
            ("http://example.org/a.pdf", "out of scope by 'exclude *.pdf'"),
            ("http://example.org/a.pdf?x", "in scope by 'site example.org'"),
            ("http://example.org/calendar/2024/01", "out of scope by 'exclude ~ /calendar/\\d{4}'"),
            ("http://cdn.example.net/x.js?v=1", "in scope by 'include *://cdn.example.net/*?v=*'"),
            ("http://cdn.example.net/x.js", "out of scope: no rule takes it in"),
            ("https://abc.example.com/", "in scope by 'include ~ ^https://[a-z]+\\.example\\.com/$'"),
        ],
    );
}

#[test]
fn all_and_the_first_of_several() {
    check(
        &["# everything but one", "", "host example.org", "all", "exclude example.org/private*"],
        &[
            ("http://example.org/", "in scope by 'host example.org'"),
            ("http://elsewhere.net/", "in scope by 'all'"),
            ("http://example.org/private/x", "out of scope by 'exclude example.org/private*'"),
        ],
    );
    check(&[], &[("http://example.org/", "out of scope: no rule takes it in")]);
}

#[test]
fn rules_are_written_back_as_they_are_read() {
    for rule in [
        "all",
        "host a.org",
        "host a.org:80",
        "site a.org",
        "domain a.org",
        "prefix a.org/b",
        "include *x",
        "exclude ~ ^a+",
    ] {
        let again = scope(&[rule]).rules()[0].to_string();
        assert_eq!(again, rule);
    }
}

#[test]
fn wrong_rules_say_what_to_write() {
    let error = |rule: &str| Scope::parse([rule], Suffixes::compiled()).unwrap_err().to_string();
    assert!(error("hosts example.org").contains("one of host, site, domain, prefix, url, include, exclude"));
    assert!(error("host").contains("one of host"));
    assert!(error("all of it").contains("'all' stands alone"));
    assert!(error("host a b").starts_with("scope rule 'host a b': a b: not a URL"));
    assert!(error("url example.org").contains("write https://"));
    assert!(error("include ~ (").contains("not a regular expression"));
    assert!(error("include ~ a{1000}{1000}").contains("too large"));
}

#[test]
fn patterns_run_in_linear_time() {
    let scope = scope(&["include *a*a*a*a*a*a*a*a*a*a*b", "include ~ (a*)*c$"]);
    let url = Url::parse(&format!("http://example.org/{}", "a".repeat(8_000))).unwrap();
    assert!(!scope.decide(&url).inside);
}
