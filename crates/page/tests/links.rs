//! Which links a page has, by hand-made pages.

use skep_page::{Cut, Input, Kind, Page, limits, read};
use skep_url::Url;
use skep_warc::http::{Head, Parsed};

fn page_of(url: &str, head: &str, body: &[u8]) -> Page {
    let url: Url = url.parse().unwrap();
    let mut parsed = Head::new();
    let text = format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n");
    assert!(matches!(parsed.parse_response(text.as_bytes(), true), Parsed::Complete { .. }));
    read(&Input { url: &url, head: Some(&parsed), body })
}

fn html(body: &str) -> Page {
    page_of("http://example.org/a/b?c", "Content-Type: text/html; charset=utf-8", body.as_bytes())
}

/// Each link as `kind path`, those on the page's own host without it.
fn links(page: &Page) -> Vec<String> {
    let short = |url: &str| url.strip_prefix("http://example.org").unwrap_or(url).to_owned();
    page.links
        .iter()
        .map(|link| {
            format!("{} {}{}", link.kind.code(), short(&link.url), if link.nofollow { " nofollow" } else { "" })
        })
        .collect()
}

#[track_caller]
fn check(body: &str, wanted: &[&str]) {
    assert_eq!(links(&html(body)), wanted, "{body}");
}

#[test]
fn elements() {
    check("<a href=x>1</a><area href=y><a name=z>", &["anchor /a/x", "area /a/y"]);
    check("<a href=x rel='me NOFOLLOW'><a href=y rel=no>", &["anchor /a/x nofollow", "anchor /a/y"]);
    check("<a href=x rel=nofollow><a href=x>", &["anchor /a/x"]);
    check(
        "<img src=1 srcset='2 1x, 3 2x' data-src=4 data-srcset='5 2x'>",
        &["image /a/1", "image /a/2", "image /a/3", "guess /a/4", "guess /a/5"],
    );
    check("<picture><source srcset=1><source src=2></picture>", &["image /a/1", "media /a/2"]);
    check(
        "<iframe src=1></iframe><frame src=2><embed src=3><object data=4></object>",
        &["frame /a/1", "frame /a/2", "object /a/3", "object /a/4"],
    );
    check(
        "<video src=1 poster=2><track src=3></video><audio src=4>",
        &["media /a/1", "image /a/2", "media /a/3", "media /a/4"],
    );
    check(
        "<form action=1><form action=2></form><form method=Post action=3></form><form method=x action=4>",
        &["form /a/1", "form /a/4"],
    );
    check("<script src=1></script><body background=2><td background=3>", &["script /a/1", "image /a/2", "image /a/3"]);
    check("<input type=image src=1><input type=text src=2><image src=3>", &["image /a/1", "image /a/3"]);
    check("<meta http-equiv=Refresh content='0; url=1'><meta http-equiv=refresh content=5>", &["refresh /a/1"]);
    check(
        "<link rel=stylesheet href=1><link rel=next href=2><link rel=preconnect href=3><link rel=alternate type=application/atom+xml href=4>",
        &["style /a/1", "anchor /a/2", "feed /a/4"],
    );
    check(
        "<link rel=preload as=image imagesrcset='1 1x, 2 2x'><link rel='shortcut icon' href=3>",
        &["image /a/1", "image /a/2", "icon /a/3"],
    );
    check(
        "<svg><image href=1 /><use xlink:href='2#x'/><a xlink:href=3>x</a></svg>",
        &["image /a/1", "image /a/2", "anchor /a/3"],
    );
    check("<noscript><img src=1></noscript><template><a href=2></template>", &["image /a/1", "anchor /a/2"]);
}

#[test]
fn a_page_inside_a_page() {
    let inner = "<base href=/z/><a href=1?é><iframe srcdoc=\"<a href=2>\"></iframe>";
    check(&format!("<iframe srcdoc='{inner}'></iframe><a href=3>"), &["anchor /a/1?%C3%A9", "anchor /a/3"]);
}

#[test]
fn one_url_is_one_link_of_the_strongest_kind() {
    check("<a href=x><a href=y><img src='x#z'><a href='/a/x'>", &["image /a/x", "anchor /a/y"]);
    check("<a href=''><a href=#top><a href=b?c>", &[]);
}

#[test]
fn what_is_not_fetched_is_no_link() {
    check(
        "<a href=mailto:a@b><a href='javascript:x'><img src='data:image/gif,x'><a href='http://'><a href=ftp://x/>",
        &[],
    );
    let long = "x".repeat(limits::URL_BYTES_MAX);
    check(&format!("<a href={long}><a href=y>"), &["anchor /a/y"]);
}

#[test]
fn attributes_as_the_standard_reads_them() {
    check("<a href=1 href=2>", &["anchor /a/1"]);
    check(
        "<A HREF = '1' ><a title=a'b href=2><a\thref=3/><a/href=4>",
        &["anchor /a/1", "anchor /a/2", "anchor /a/3/", "anchor /a/4"],
    );
    check(
        "<a title='x>y' href=1><a x=\"a\"href=2><a =href=3 href=4><a href>",
        &["anchor /a/1", "anchor /a/2", "anchor /a/4"],
    );
    check("<a href='x&amp;y&#x2f;&copy=1&copy;&notit;'>", &["anchor /a/x&y/&copy=1%C2%A9&notit;"]);
    check("<a href=' \n x\ty\n '><a href='\u{1}z'>", &["anchor /a/xy", "anchor /a/z"]);
    check("<a href='a\0b'>", &["anchor /a/a%EF%BF%BDb"]);
    check("<a href=x", &[]);
    check("<a href='x>y</a>", &[]);
}

#[test]
fn text_that_looks_like_markup() {
    check(
        "<!-- <a href=1> --><a href=2><!--><a href=3><!---><a href=4><!-- --!><a href=5><!-- -> <a href=6>",
        &["anchor /a/2", "anchor /a/3", "anchor /a/4", "anchor /a/5"],
    );
    check("<script>'<a href=1>'</script><a href=2>", &["anchor /a/2"]);
    check("<script><!-- <script> </script> <a href=1> --></script><a href=2>", &["anchor /a/2"]);
    check("<script><!-- </script><a href=2>", &["anchor /a/2"]);
    check("<script><!--><script></script><a href=2>", &["anchor /a/2"]);
    check(
        "<style><a href=1></style><title><a href=2></title><textarea><a href=3></textarea ><xmp><a href=4></xmp><a href=5>",
        &["anchor /a/5"],
    );
    check(
        "<iframe><a href=1></iframe><noembed><a href=2></noembed><noframes><a href=3></NOFRAMES><a href=4>",
        &["anchor /a/4"],
    );
    check("<title></titlex><a href=1></title/><a href=2><plaintext><a href=3>", &["anchor /a/2"]);
    check(
        "<?php <a href=1> ?><a href=2></ <a href=3><a href=4></><a href=5><<a href=6>",
        &["anchor /a/2", "anchor /a/4", "anchor /a/5", "anchor /a/6"],
    );
}

#[test]
fn drawings_and_formulas() {
    check(
        "<svg><style><a href=1></style><title><a href=2></title></svg><a href=3>",
        &["anchor /a/1", "anchor /a/2", "anchor /a/3"],
    );
    check("<svg><![CDATA[<a href=1>]]></svg><![CDATA[<a href=2>]]><a href=3>", &["anchor /a/3"]);
    check("<svg><foreignObject><style><a href=1></style></foreignObject></svg>", &[]);
    check("<svg><p><style><a href=1></style>", &[]);
    check("<div><svg></div><style><a href=1></style>", &[]);
    check("<svg/><style><a href=1></style>", &[]);
    check("<math><mtext><style><a href=1></style></mtext><style><a href=2></style></math>", &["anchor /a/2"]);
    check("<svg><script xlink:href=1 /><a href=2 /></svg>", &["script /a/1", "anchor /a/2"]);
}

#[test]
fn the_base_counts_for_all_links() {
    check("<base href=/z/><a href=1><base href=/y/><a href=2>", &["anchor /z/1", "anchor /z/2"]);
    check(
        "<a href=1><link rel=canonical href=c><base href=/z/><a href=2>",
        &["anchor /z/1", "canonical /z/c", "anchor /z/2"],
    );
    check("<template><base href=/y/></template><svg><base href=/x/></svg><a href=1>", &["anchor /a/1"]);
    check("<base href=data:,x><a href=1>", &["anchor /a/1"]);
    check("<base href=http://other.example/><a href=1>", &["anchor http://other.example/1"]);
    let page = html("<a href=1><base href=/z/><link rel=canonical href=c>");
    assert_eq!(page.base.as_deref(), Some("http://example.org/z/"));
    assert_eq!(page.canonical.as_deref(), Some("http://example.org/z/c"));
}

#[test]
fn styles() {
    check("<p style='background:url(1)'><p style='x:url(\"2\")'>", &["image /a/1", "image /a/2"]);
    check(
        "<style>@import '1';@import url(2) screen;a{b:url( 3 );c:url('4')}/*url(5)*/</style>",
        &["import /a/1", "import /a/2", "image /a/3", "image /a/4"],
    );
    check(
        "<style>@font-face{src:url(1) format('x'),url(2)}b{c:url(3)}</style>",
        &["font /a/1", "font /a/2", "image /a/3"],
    );
    check(
        "<style>@namespace svg url(http://x.example/);a{b:url(#c);d:image-set('1' 1x,url(2) 2x,'3' type('image/png'))}</style>",
        &["image /a/1", "image /a/2", "image /a/3"],
    );
    check(
        "<style>a{b:url(x\\29y);c:u\\72l(z);d:url(a b);e:url(a'b);f:'url(g)'}</style>",
        &["image /a/x)y", "image /a/z"],
    );
    check("<style>a{content:'\nurl(1);b:url(2)}</style>", &["image /a/1", "image /a/2"]);
    check("<svg><style>a{b:url(1)}</style></svg><style>a{b:url(2)}</style>", &["image /a/1", "image /a/2"]);
    let sheet = page_of(
        "http://example.org/s/x.css",
        "Content-Type: text/css",
        b"@charset 'x';@import \"y.css\";a{b:url(../i.png)}",
    );
    assert_eq!((sheet.kind, links(&sheet)), (Kind::Css, vec!["import /s/y.css".to_owned(), "image /i.png".to_owned()]));
}

#[test]
fn heads() {
    let head = "Content-Type: text/html\r\nLink: <1>; rel=preload; as=font, <2>; rel=\"next\"; title=\"a, <b>\"\r\nLink: </c>; rel=canonical\r\nRefresh: 3; url=r";
    let page = page_of("http://example.org/a/b", head, b"<base href=/z/><a href=x>");
    assert_eq!(links(&page), ["refresh /a/r", "font /a/1", "header /a/2", "canonical /c", "anchor /z/x"]);
    assert_eq!(page.canonical.as_deref(), Some("http://example.org/c"));
}

#[test]
fn queries_are_written_in_the_charset_of_the_page() {
    for (charset, body, wanted) in [
        ("windows-1252", &b"<a href='/\xe9?\xe9'>"[..], "/%C3%A9?%E9"),
        ("utf-8", "<a href='/é?é'>".as_bytes(), "/%C3%A9?%C3%A9"),
        ("shift_jis", b"<a href='?\x83\x5c'>", "/a/b?%83\\"),
        ("windows-1252", b"<a href='?&#1073;'>", "/a/b?%26%231073%3B"),
        ("utf-16le", b"<\0a\0 \0h\0r\0e\0f\0=\0?\0\xe9\0>\0", "/a/b?%C3%A9"),
    ] {
        let page = page_of("http://example.org/a/b", &format!("Content-Type: text/html; charset={charset}"), body);
        assert_eq!(links(&page), [format!("anchor {wanted}")], "{charset}");
    }
}

#[test]
fn bounds_are_met_and_told() {
    let many: String = (0..limits::LINKS_MAX + 10).map(|n| format!("<a href={n}>")).collect();
    let page = html(&many);
    assert_eq!((page.links.len(), page.cut), (limits::LINKS_MAX, Some(Cut::Links)));
    let page = html(&format!("<a href='{}'><a href=1>", " ".repeat(limits::ATTRIBUTE_BYTES_MAX + 1)));
    assert_eq!((links(&page), page.cut), (vec!["anchor /a/1".to_owned()], Some(Cut::Attribute)));
    let page = html(&format!("<p {} style='x:url(1)'><a href=2>", "a ".repeat(limits::ATTRIBUTES_MAX)));
    assert_eq!((links(&page), page.cut), (vec!["anchor /a/2".to_owned()], Some(Cut::Attributes)));
    let page = html(&format!("<img src='data:image/png,{}'><a href=1>", "x".repeat(limits::ATTRIBUTE_BYTES_MAX)));
    assert_eq!((links(&page), page.cut), (vec!["anchor /a/1".to_owned()], None));
    let page = html(&"<a href=1>".repeat(1_500_000));
    assert_eq!(page.cut, Some(Cut::Work));
}

#[test]
fn metadata() {
    let page = html(
        "<html lang=de-AT><title>\n A &lt; B\n </title><svg><title>no</title></svg><title>C</title><meta name=robots content='noarchive, nofollow'>",
    );
    assert_eq!((page.title.as_deref(), page.language.as_deref()), (Some("A < B"), Some("de-AT")));
    assert!(page.directives.noarchive && page.directives.nofollow && !page.directives.noindex);
    let page = page_of(
        "http://example.org/",
        "Content-Type: text/html\r\nContent-Language: fr, en\r\nX-Robots-Tag: skep: noindex\r\nContent-Signal: ai-train=no",
        b"",
    );
    assert_eq!(page.language.as_deref(), Some("fr"));
    assert!(page.directives.noindex);
    assert_eq!(page.signals, [("content-signal".to_owned(), "ai-train=no".to_owned())]);
}
