//! Keys, case by case.

use skep_url::surt::{self, Form};

/// URL, key.
const CASES: &[(&str, &str)] = &[
    // Nothing, and what is no URL.
    ("", "-"),
    (" ", "-"),
    ("-", "-)/"),
    ("filedesc://IM-2016.arc", "filedesc://IM-2016.arc"),
    ("filedesc://a b", "filedesc://a%20b"),
    // Scheme.
    ("http://example.com/", "com,example)/"),
    ("https://example.com/", "com,example)/"),
    ("HTTP://example.com:80/A", "com,example)/a"),
    ("example.com/a", "com,example)/a"),
    ("//example.com/a", "com,example)/a"),
    ("http:/example.com/a", "com,example)/a"),
    ("http:example.com/a", "com,example)/a"),
    ("http:////example.com", "com,example)/"),
    ("http://https://example.com:443/", "com,example)/"),
    ("ftp://example.com/a/", "com,example)/a"),
    ("whois://whois.example.org/Example.com", "org,example,whois)/example.com"),
    ("metadata://example.org/X.txt", "org,example)/x.txt"),
    // Without a host.
    ("mailto:Foo@Example.com?subject=A&b", "mailto:foo@example.com?b&subject=a"),
    ("MAILTO:foo@example.com", "MAILTO:foo@example.com"),
    ("dns:Example.com", "dns:example.com"),
    ("warcinfo:/x Y", "warcinfo:/x%20y"),
    ("urn:uuid:1234-ABC", "urn:uuid:1234-abc"),
    ("urn:a//b/", "urn:a//b"),
    ("screenshot:http://www.Foo.com:80/?b&a#f", "screenshot:http://www.foo.com:80?a&b"),
    ("file:///C:/Foo", "file:/c:/foo"),
    ("javascript:alert(1)", "javascript:alert(1)"),
    ("http://", "http:"),
    ("foo.com:80/a", "foo.com:80/a"),
    // Host.
    ("http://www.example.com/", "com,example)/"),
    ("http://www34.Example.com/", "com,example)/"),
    ("http://www.www2.example.com/", "com,example,www2)/"),
    ("http://www.com/", "com)/"),
    ("http://user:pw@example.com/", "com,example)/"),
    ("http://a@b:c@example.com:8080/", "com,example:8080)/"),
    ("http://example.com.../", "com,example)/"),
    ("http://example..com/", "com,example)/"),
    ("http://foo%2Ecom/", "com,foo)/"),
    ("http://foo%3Fcom/", "foo?com)/"),
    ("http://foo]com/", "foo]com)/"),
    ("http://a b.com/", "com,a%20b)/"),
    ("http://bücher.ch:8080/", "ch,xn--bcher-kva:8080)/"),
    ("http://%C3%BC.com/", "com,xn--tda)/"),
    ("http://%FC.com/", "com,%fc)/"),
    ("http://127.0.0.1/", "1,0,0,127)/"),
    ("http://2130706433/", "1,0,0,127)/"),
    ("http://0177.1/", "1,0,0,127)/"),
    ("http://[2001:DB8::1]:8080/a", "2001:db8::1:8080)/a"),
    // Port.
    ("http://example.com:80/", "com,example)/"),
    ("https://example.com:443/", "com,example)/"),
    ("http://example.com:443/", "com,example:443)/"),
    ("https://example.com:80/", "com,example:80)/"),
    ("http://example.com:/", "com,example)/"),
    ("http://example.com:080/", "com,example)/"),
    ("http://example.com:0/", "com,example)/"),
    ("http://example.com:abc/", "http://example.com:abc/"),
    ("http://example.com:65536/A b", "http://example.com:65536/A%20b"),
    // Path.
    ("http://example.com", "com,example)/"),
    ("http://example.com/a/", "com,example)/a"),
    ("http://example.com//a///b//", "com,example)/a/b"),
    ("http://example.com/a/./b/../c", "com,example)/a/c"),
    ("http://example.com/../c", "com,example)/../c"),
    ("http://example.com/a%2Fb", "com,example)/a/b"),
    ("http://example.com/a%2520b", "com,example)/a%20b"),
    ("http://example.com/a%zz%", "com,example)/a%25zz%25"),
    ("http://example.com/é", "com,example)/%c3%a9"),
    ("http://example.com/a%23b#c", "com,example)/a%23b"),
    ("http://example.com/a\tb\r\nc", "com,example)/abc"),
    ("  http://example.com/ a ", "com,example)/%20a"),
    ("http://example.com/(S(4hqa0555fwsecu455xqckv45))/Mileg.aspx", "com,example)/mileg.aspx"),
    (
        "http://example.com/a;jsessionid=0123456789ABCDEF0123456789ABCDEF",
        "com,example)/a;jsessionid=0123456789abcdef0123456789abcdef",
    ),
    // Query.
    ("http://example.com/?", "com,example)/"),
    ("http://example.com?b&a", "com,example)/?a&b"),
    ("http://example.com/a/?a=2&b&a=1", "com,example)/a?a=1&a=2&b"),
    ("http://example.com/?A=B&a=A", "com,example)/?a=a&a=b"),
    ("http://example.com/?&&", "com,example)/?&&"),
    ("http://example.com/?a&", "com,example)/?&a"),
    ("http://example.com/?b%26a", "com,example)/?a&b"),
    ("http://example.com/?q=%C3%9C", "com,example)/?q=%c3%9c"),
    ("http://example.com/?a?b#c?d", "com,example)/?a?b"),
    ("http://example.com/?PHPSESSID=0123456789abcdefghijklemopqrstuv&a=b", "com,example)/?a=b"),
    ("http://example.com/?a&sid=0123456789abcdefghijklemopqrstuv", "com,example)/?&a"),
];

#[test]
fn keys() {
    for (url, wanted) in CASES {
        assert_eq!(surt::key(url), *wanted, "{url:?}");
        assert_eq!(surt::key_in(url, Form::default()), *wanted, "{url:?}, the thorough way");
    }
}

#[test]
fn forms() {
    let plain = Form::default();
    for (form, wanted) in [
        (Form { scheme: true, ..plain }, "https://(com,example)/?a=b"),
        (Form { trailing_comma: true, ..plain }, "com,example,)/?a=b"),
        (Form { strip_www: false, ..plain }, "com,example,www)/?a=b"),
        (Form { lower_query: false, ..plain }, "com,example)/?A=B"),
        (
            Form { scheme: true, trailing_comma: true, strip_www: false, lower_query: false },
            "https://(com,example,www,)/?A=B",
        ),
    ] {
        assert_eq!(surt::key_in("https://www.example.com/?A=B", form), wanted);
    }
    assert_eq!(surt::key_in("mailto:a@b.org", Form { scheme: true, trailing_comma: true, ..plain }), "mailto:a@b.org");
}

#[test]
fn bytes_that_are_no_utf8_are_escaped_one_by_one() {
    assert_eq!(surt::key_of_bytes(b"http://example.com/\xe9?\xce\xd2"), "com,example)/%e9?%ce%d2");
    assert_eq!(surt::key_of_bytes(b"http://example.com/%E9?%ce%D2"), "com,example)/%e9?%ce%d2");
    assert_eq!(surt::key_of_bytes("http://example.com/é".as_bytes()), "com,example)/%c3%a9");
    assert_eq!(surt::key_of_bytes(b"http://a\xe9b.com/"), "com,ab)/");
    assert_eq!(surt::key_of_bytes(b"\x00\xff"), "%00)/");
}

#[test]
fn endless_urls_take_no_time() {
    let deep = format!("http://example.com/{}", "%25".repeat(200_000));
    assert_eq!(surt::key(&deep).len(), "com,example)/".len() + 3 * 200_000);
    let nested = format!("http://example.com/%{}41", "25".repeat(500_000));
    assert_eq!(surt::key(&nested), "com,example)/a");
    let sessions = format!("http://example.com/x.aspx{}", "/(4hqa0555fwsecu455xqckv45)".repeat(40_000));
    assert!(surt::key(&sessions).len() > 1_000_000);
    let pairs = format!("http://example.com/?{}", "cfid=".repeat(200_000));
    assert!(surt::key(&pairs).len() > 1_000_000);
    let dots = format!("http://{}.com/", ".".repeat(1_000_000));
    assert!(surt::key(&dots).ends_with(")/"));
    let host = format!("http://{}.com/", "ü".repeat(500_000));
    assert!(surt::key(&host).starts_with("com,%c3%bc"));
}
