//! What a page says to people: charset, visible text, and whether it is a page at all.

use skep_page::{Input, Kind, challenge, read, text};
use skep_url::Url;
use skep_warc::http::Head;

fn head_of(status: u16, fields: &str) -> Head {
    let mut head = Head::new();
    let _ = head.parse_response(format!("HTTP/1.1 {status} X\r\n{fields}\r\n\r\n").as_bytes(), true);
    head
}

fn charset(media_type: &str, body: &[u8]) -> &'static str {
    let url: Url = "http://example.org/".parse().unwrap();
    read(&Input { url: &url, head: Some(&head_of(200, &format!("Content-Type: {media_type}"))), body }).charset
}

#[test]
fn charsets_in_order() {
    for (media_type, body, wanted) in [
        ("text/html; charset=koi8-r", &b"\xef\xbb\xbf<meta charset=big5>"[..], "UTF-8"),
        ("text/html; charset=koi8-r", b"<meta charset=big5>", "KOI8-R"),
        ("text/html; charset=\"Shift_JIS\"; x=y", b"", "Shift_JIS"),
        ("text/html; charset=nonsense", b"<meta charset=big5>", "Big5"),
        ("text/html", b"<!-- <meta charset=big5> --><META foo='>' CharSet = 'koi8-u'>", "KOI8-U"),
        ("text/html", b"<meta http-equiv=Content-Type content='text/html; charset=iso-8859-2'>", "ISO-8859-2"),
        ("text/html", b"<meta content='text/html; charset=iso-8859-2'>", "windows-1252"),
        ("text/html", b"<meta content='text/html; charset=utf-16' http-equiv='content-type'>", "UTF-8"),
        ("text/html", b"<?xml version='1.0' encoding='gbk'?><html>", "GBK"),
        ("text/html", b"<p title='<meta charset=big5>'>\xe9t\xe9", "windows-1252"),
        ("text/html", "<p>déjà vu".as_bytes(), "UTF-8"),
        ("text/html", b"<p>ASCII", "windows-1252"),
        ("text/html", b"<p>\x1b$B%F%9%H\x1b(B", "ISO-2022-JP"),
        ("text/html", b"\xff\xfe<\0p\0>\0", "UTF-16LE"),
        ("application/xhtml+xml", b"<?xml version='1.0' encoding='koi8-r'?><html/>", "KOI8-R"),
        ("application/xhtml+xml", b"<html/>", "UTF-8"),
        ("text/css", b"@charset \"gbk\";", "GBK"),
        ("text/css", b"", "UTF-8"),
    ] {
        assert_eq!(charset(media_type, body), wanted, "{media_type} {:?}", String::from_utf8_lossy(body));
    }
    let late = [&b"<p>".repeat(400)[..], b"<meta charset=koi8-r>"].concat();
    assert_eq!(charset("text/html", &late), "windows-1252", "a declaration counts only at the beginning");
}

#[test]
fn charsets_are_guessed() {
    for (charset, words) in [
        ("windows-1251", "Привет, мир! Это страница о погоде в городе."),
        ("KOI8-U", "Привіт, світе! Це сторінка про погоду в місті та її зміни."),
        ("windows-1253", "Καλημέρα κόσμε, αυτή είναι μια σελίδα για τον καιρό"),
        ("Shift_JIS", "こんにちは世界。これは天気についてのページです。"),
        ("EUC-JP", "こんにちは世界。これは天気についてのページです。"),
        ("EUC-KR", "안녕하세요 세계. 이것은 날씨에 관한 페이지입니다."),
        ("GBK", "你好，世界。这是关于天气的页面，欢迎阅读。"),
        ("Big5", "你好，世界。這是關於天氣的頁面，歡迎閱讀。"),
        ("windows-874", "สวัสดีชาวโลก นี่คือหน้าเกี่ยวกับสภาพอากาศ"),
        ("windows-1255", "שלום עולם, זהו דף על מזג האוויר"),
        ("windows-1256", "مرحبا بالعالم هذه صفحة عن الطقس في المدينة"),
        ("windows-1250", "Zażółć gęślą jaźń, to jest strona o pogodzie w mieście"),
        ("windows-1254", "Merhaba dünya, bu sayfa şehirdeki hava durumu hakkında, ığdır"),
        ("windows-1252", "Voilà une page sur la météo à l'été dernier, déjà vue"),
    ] {
        let encoding = encoding_rs::Encoding::for_label(charset.as_bytes()).unwrap();
        let (bytes, _, _) = encoding.encode(words);
        let body = [b"<title>", &bytes[..], b"</title><p>", &bytes[..]].concat();
        assert_eq!(self::charset("text/html", &body), charset, "{words}");
        let url: Url = "http://example.org/".parse().unwrap();
        assert_eq!(
            read(&Input { url: &url, head: None, body: &[b"<html>", &body[..]].concat() }).title.as_deref(),
            Some(words)
        );
    }
}

#[test]
fn kinds() {
    let url: Url = "http://example.org/a".parse().unwrap();
    for (media_type, body, wanted) in [
        ("text/html", &b"plain"[..], Kind::Html),
        ("TEXT/HTML; x", b"<?xml version='1.0'?><rss>", Kind::Feed),
        ("text/html", b"<?xml version='1.0'?><html>", Kind::Html),
        ("", b"  <!-- x --><HTML>", Kind::Html),
        ("", b"<p>x", Kind::Html),
        ("", b"plain", Kind::Other),
        ("text/plain", b"<html>", Kind::Other),
        ("application/xml", b"<!-- x --><urlset>", Kind::Sitemap),
        ("text/xml", b"<?xml version='1.0'?><!DOCTYPE svg><svg>", Kind::Svg),
        ("application/xml", b"<other>", Kind::Other),
        ("image/png", b"<html>", Kind::Other),
        ("application/json", b"{\"version\": \"https://jsonfeed.org/version/1\"}", Kind::Feed),
        ("application/json", b"{}", Kind::Other),
    ] {
        let head = head_of(200, &format!("Content-Type: {media_type}"));
        assert_eq!(
            read(&Input { url: &url, head: Some(&head), body }).kind,
            wanted,
            "{media_type} {:?}",
            String::from_utf8_lossy(body)
        );
    }
}

#[track_caller]
fn check_text(body: &str, wanted: &str) {
    let url: Url = "http://example.org/".parse().unwrap();
    let head = head_of(200, "Content-Type: text/html; charset=utf-8");
    assert_eq!(text(&Input { url: &url, head: Some(&head), body: body.as_bytes() }).text, wanted, "{body}");
}

#[test]
fn visible_text() {
    check_text("<title>no</title><h1>A  &amp;\n B</h1><p>C <b>d</b>e<br>f", "A & B\nC de\nf");
    check_text("<script>x</script><style>y</style><!-- z --><noscript>n</noscript>a<template>t</template>", "a");
    check_text("<p hidden>no<p>yes<div style='color:red; Display : none'>no<div>no</div>no</div>also", "yes\nalso");
    check_text("<pre>a\n  b\nc</pre><p>d\ne", "a\nb\nc\nd e");
    check_text("<ul><li>a<li hidden>b<li>c</ul><table><tr><td>d<td>e<tr><td>f</table>", "a\nc\nd e\nf");
    check_text("a<textarea>b &lt;</textarea><svg><title>no</title><text>c</text></svg><img hidden>d", "ab <c d");
    check_text("caf&eacute; &notit; 1 &lt 2", "café ¬it; 1 < 2");
}

/// Answers that are tests, as their makers send them in short.
#[test]
fn challenges_are_known() {
    for (status, fields, body, wanted) in [
        (403, "Server: cloudflare\r\nCf-Mitigated: challenge", "", "cloudflare"),
        (
            503,
            "Server: cloudflare",
            "<title>Just a moment...</title><script>(function(){window._cf_chl_opt={cvId:'3'}})()</script>",
            "cloudflare",
        ),
        (
            200,
            "",
            "<title>Making sure you&#39;re not a bot!</title><script id=\"anubis_challenge\" type=\"application/json\">{}</script>",
            "anubis",
        ),
        (403, "Server: ddos-guard", "<script src='https://check.ddos-guard.net/check.js'></script>", "ddos-guard"),
        (
            403,
            "Server: AkamaiGHost",
            "<TITLE>Access Denied</TITLE><h1>Access Denied</h1>You don't have permission",
            "akamai",
        ),
        (428, "", "<div id=sec-if-cpt-container></div>", "akamai"),
        (403, "", "<script src='https://js.hcaptcha.com/1/api.js' async></script><form></form>", "hcaptcha"),
        (
            429,
            "",
            "<form><div class=g-recaptcha></div></form><script src='https://www.google.com/recaptcha/api.js'></script>",
            "recaptcha",
        ),
        (403, "", "<script>var dd={'host':'geo.captcha-delivery.com'}</script>", "datadome"),
        (405, "X-Amzn-Waf-Action: captcha", "", "aws-waf"),
        (200, "", "<script src=\"/_Incapsula_Resource?SWJIYLWA=1\"></script>", "incapsula"),
        (503, "", "<title>DDoS Protection</title><p>Checking your browser.", "generic"),
        (200, "", "<title>Just a moment...</title><p>Please wait<script src=/check.js></script>", "generic"),
    ] {
        assert_eq!(challenge(status, &head_of(status, fields), body.as_bytes()), Some(wanted), "{body}");
    }
}

/// Pages about such tests, pages with a form that has one, and plain refusals.
#[test]
fn pages_that_mention_challenges_are_pages() {
    let article = format!(
        "<title>How Anubis and Cloudflare challenges work</title><h1>Just a moment...</h1><p>{}<pre>&lt;script id=\"anubis_challenge\"&gt; window._cf_chl_opt \
         https://js.hcaptcha.com/1/api.js /cdn-cgi/challenge-platform/ /.well-known/ddos-guard/js-challenge/</pre>",
        "Words about captchas. ".repeat(200)
    );
    let contact = "<title>Contact</title><form><div class=g-recaptcha></div></form><script src='https://www.google.com/recaptcha/api.js'></script>";
    let long = format!("<title>Security check</title><p>{}", "What to look at in an audit. ".repeat(100));
    for (status, fields, body) in [
        (200, "Server: cloudflare", article.as_str()),
        (403, "Server: cloudflare", &article),
        (200, "", contact),
        (403, "", "<title>403 Forbidden</title><center>nginx</center>"),
        (403, "Server: Apache", "<title>Access Denied</title><p>Members only."),
        (503, "", "<title>Maintenance</title><p>Back soon"),
        (503, "", &long),
        (200, "", "<title>Captcha</title><p>CAPTCHA is a test that tells people and machines apart. <a href=1>1</a>"),
        (404, "", "<title>Just a moment...</title>"),
    ] {
        assert_eq!(challenge(status, &head_of(status, fields), body.as_bytes()), None, "{body}");
    }
}
