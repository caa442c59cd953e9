//! What counts as a change of a page, case by case.

use skep_page::Input;
use skep_page::compare::{Class, Classes, Difference, Mask, compare, suspect};
use skep_page::version::{Rules, Version};
use skep_url::Url;
use skep_warc::http::{Head, Parsed};

fn head(status: u16, media_type: &str) -> Head {
    let mut head = Head::new();
    let bytes = format!("HTTP/1.1 {status} X\r\nContent-Type: {media_type}\r\n\r\n");
    assert!(matches!(head.parse_response(bytes.as_bytes(), true), Parsed::Complete { .. }));
    head
}

fn read_as(media_type: &str, body: &str, rules: &Rules) -> Version {
    let url = Url::parse("http://example.org/a/").unwrap();
    Version::read(&Input { url: &url, head: Some(&head(200, media_type)), body: body.as_bytes() }, rules)
}

fn read(body: &str) -> Version {
    read_as("text/html", body, &Rules::default())
}

fn between(old: &str, new: &str) -> Difference {
    compare(&read(old), &read(new), &mut Mask::default())
}

fn page(inside: &str) -> String {
    let filler: String =
        (0..40).map(|n| format!("<p>Paragraph {n} says what paragraph {n} always said.</p>")).collect();
    format!(
        "<!doctype html><html lang=en><head><title>A page</title></head><body><h1>Head</h1>{inside}{filler}<footer>End</footer></body></html>"
    )
}

fn classes(names: &str) -> Classes {
    names.split_whitespace().map(|name| Class::from_name(name).unwrap()).collect()
}

#[test]
fn noise_is_no_change() {
    for (what, old, new, wanted) in [
        ("comments", "<!-- 1 -->", "<!-- 2 -->", "bytes"),
        ("scripts", "<script>a=1</script>", "<script>a=2</script>", "bytes"),
        ("a nonce", "<script nonce=a></script>", "<script nonce=b></script>", "bytes"),
        ("a hidden token", "<input type=hidden name=csrf value=a1>", "<input type=hidden name=csrf value=b2>", "bytes"),
        ("a cache buster", "<img src='/a.png?v=1'>", "<img src='/a.png?v=2'>", "bytes"),
        ("made-up classes", "<p class='css-1x2y'>x</p>", "<p class='css-9z8y'>x</p>", "bytes"),
        ("order of attributes", "<p class=a title=b>x</p>", "<p title=b class=a>x</p>", "bytes"),
        ("white space", "<p>a  b</p>", "<p>a\n b</p>", "bytes"),
        ("a stamp", "<p>Generated 2026-11-16 10:22:33</p>", "<p>Generated 2026-11-17 11:23:34</p>", "bytes"),
        ("an age", "<p>posted 2 hours ago</p>", "<p>posted 3 hours ago</p>", "bytes"),
        ("a counter", "<p>1,204 views</p>", "<p>1,310 views</p>", "bytes"),
        ("a link with a session", "<a href='/b?sid=1'>b</a>", "<a href='/b?sid=2'>b</a>", "bytes"),
        ("emphasis", "<p>a word</p>", "<p>a <b>word</b></p>", "markup"),
        ("blocks divided otherwise", "<div>a<br>b</div>", "<div>a b</div>", "markup"),
        (
            "order of blocks",
            "<p>first of two</p><p>second of two</p>",
            "<p>second of two</p><p>first of two</p>",
            "markup",
        ),
    ] {
        assert_eq!(between(&page(old), &page(new)).classes, classes(wanted), "{what}");
    }
}

#[test]
fn changes_are_what_they_are() {
    for (what, old, new, wanted) in [
        ("a word", "<p>red house</p>", "<p>blue house</p>", "text.minor"),
        ("a day", "<p>Last updated: 25 April 2026</p>", "<p>Last updated: 26 April 2026</p>", "text.minor"),
        (
            "a checksum",
            "<p>sha256 0a1b2c3d4e5f60718293a4b5c6d7e8f9</p>",
            "<p>sha256 ff1b2c3d4e5f60718293a4b5c6d7e8f9</p>",
            "text.minor",
        ),
        ("a link", "<a href='/b'>there</a>", "<a href='/c'>there</a>", "links"),
        ("a link and its text", "<a href='/b'>b</a>", "<a href='/c'>c</a>", "text.minor links"),
        ("a price for programs", "<meta itemprop=price content=12>", "<meta itemprop=price content=13>", "data"),
        (
            "an offer",
            r#"<script type="application/ld+json">{"offers":{"price":1}}</script>"#,
            r#"<script type="application/ld+json">{"offers":{"price":2}}</script>"#,
            "data",
        ),
        ("a description", "<meta name=description content=a>", "<meta name=description content=b>", "meta"),
        ("directives", "", "<meta name=robots content=noindex>", "meta"),
    ] {
        assert_eq!(between(&page(old), &page(new)).classes, classes(wanted), "{what}");
    }
    let renamed = page("").replace("A page", "Another");
    assert_eq!(between(&page(""), &renamed).classes, classes("meta"));
    let much: String = (0..20).map(|n| format!("<p>Something entirely new, number {n}</p>")).collect();
    let found = between(&page(""), &page(&much));
    assert_eq!(found.classes, classes("text.major"));
    assert_eq!((found.added.len(), found.removed.len(), found.words_removed), (20, 0, 0));
    assert!(found.share > 2_000 && found.share < 4_000, "{}", found.share);
}

#[test]
fn what_is_measured_is_what_changed() {
    let found = between(
        &page("<p>one two three four</p><a href=/x>x</a><p>moves along</p>"),
        &page("<p>one two three five</p><a href=/y>x</a>").replace("<footer>", "<p>moves along</p><footer>"),
    );
    assert_eq!((found.words_added, found.words_removed, found.moved), (1, 1, 1));
    assert_eq!(found.links_added, ["http://example.org/y"]);
    assert_eq!(found.links_removed, ["http://example.org/x"]);
}

#[test]
fn other_types_are_watched_as_what_they_are() {
    let rules = Rules::default();
    let mut mask = Mask::default();
    let mut judged = |media_type: &str, old: &str, new: &str| {
        compare(&read_as(media_type, old, &rules), &read_as(media_type, new, &rules), &mut mask).classes
    };
    assert_eq!(judged("text/plain", "one\ntwo", "one\nthree"), classes("text.major"));
    assert_eq!(judged("application/json", "{\"a\":1}", "{\"a\":2}"), classes("text.major"));
    assert_eq!(judged("image/png", "one", "two"), classes("data"));
    assert_eq!(judged("application/pdf", "one", "two"), classes("data"));
    assert_eq!(judged("text/css", "a{}", "b{}"), classes("markup"));
    assert_eq!(judged("text/javascript", "a()", "b()"), classes("markup"));
    let feed = |item: &str| {
        format!(
            "<rss><channel><title>t</title><lastBuildDate>Mon, 16 Nov 2026 10:22:33 GMT</lastBuildDate><item><title>{item}</title><link>http://example.org/{item}</link></item></channel></rss>"
        )
    };
    assert_eq!(judged("application/rss+xml", &feed("a"), &feed("b")), classes("text.major links"));
    assert_eq!(judged("application/rss+xml", &feed("a"), &feed("a").replace("10:22", "11:00")), classes("bytes"));
}

#[test]
fn parts_that_always_change_are_learned() {
    let mut mask = Mask::default();
    let version = |visit: u32| {
        read(&page(&format!("<p>before</p><aside>Buy thing {visit} <a href=/buy/{visit}>now</a></aside><p>after</p>")))
    };
    let mut told = Vec::new();
    for visit in 0..8 {
        told.push(compare(&version(visit), &version(visit + 1), &mut mask).classes);
    }
    assert_eq!(told[..2], [classes("text.minor links"); 2], "the first times nobody can know");
    assert_eq!(told[2..], [classes("volatile"); 6]);
    // An edit beside it is still seen, and is all that is measured.
    let edited = read(&page("<p>before</p><aside>Buy thing 99 <a href=/buy/99>now</a></aside><p>after the edit</p>"));
    let found = compare(&version(8), &edited, &mut mask);
    assert!(found.classes.contains(Class::TextMinor), "{found:?}");
}

#[test]
fn rules_of_a_site_say_what_counts() {
    let list = |items: &[&str]| items.iter().map(|item| (*item).to_owned()).collect::<Vec<_>>();
    let rules = Rules::read(&list(&["main"]), &list(&[".ticker, #clock"]), &list(&[r"Visitor \d+"])).unwrap();
    let text = |body: &str| read_as("text/html", body, &rules);
    let (old, new) = (
        "<nav><a href=/1>menu</a></nav><main><p>text</p><div class='a ticker'>1<div>2</div>3</div><p id=clock>4</p><p>Visitor 5 came</p></main><footer>6</footer>",
        "<nav><a href=/2>menue</a></nav><main><p>text</p><div class='a ticker'>9<div>8</div>7</div><p id=clock>6</p><p>Visitor 99 came</p></main><footer>7</footer>",
    );
    assert_eq!(text(old).text, "text\nVisitor 5 came");
    assert_eq!(text(old).print.text, text(new).print.text);
    assert_eq!(compare(&text(old), &text(new), &mut Mask::default()).classes, classes("bytes"));
    assert!(Rules::read(&list(&["a:hover"]), &[], &[]).is_err());
    assert!(Rules::read(&[], &[], &list(&["("])).is_err());
    assert!(Rules::read(&[], &[], &list(&[r"(\w{1,500}){1,500}"])).is_err(), "a pattern has bounded size");
}

#[test]
fn what_is_no_page_is_suspect() {
    let url = Url::parse("http://example.org/a/").unwrap();
    let before = read(&page(""));
    let judged = |status: u16, body: &str| {
        let head = head(status, "text/html");
        let version = Version::read(&Input { url: &url, head: Some(&head), body: body.as_bytes() }, &Rules::default());
        suspect(status, &head, body.as_bytes(), &version, Some(&before.print))
    };
    assert_eq!(judged(200, &page("<p>more</p>")), None);
    assert_eq!(judged(503, "<h1>Busy</h1>"), Some("outage"));
    assert_eq!(judged(500, &page("")), Some("outage"));
    assert_eq!(judged(429, "slow down"), Some("busy"));
    assert_eq!(judged(403, "no"), Some("refused"));
    assert_eq!(judged(200, "<title>A page</title><div id=app></div>"), Some("near-empty"));
    assert_eq!(judged(200, "<title>Page not found | Example</title><p>Sorry.</p>"), Some("soft-404"));
    let challenge = "<title>Just a moment...</title><script>window._cf_chl_opt={}</script>";
    assert_eq!(judged(403, challenge), Some("cloudflare"));
    let short = read("<p>short</p>");
    let head = head(200, "text/html");
    assert_eq!(suspect(200, &head, b"", &read(""), Some(&short.print)), None, "what was short may become shorter");
}
