//! Pages, style sheets and scripts before and after rewriting. In what is expected, `»` stands for prefix and time.

use skep_page::rewrite::{Charset, Kind, Place, Rewriter, charset, kind, link};
use skep_url::Url;

const PREFIX: &str = "http://replay.localhost:7070/web/";
const TIME: &str = "20200102030405";

fn rewritten(kind: Kind, url: &str, content_type: Option<&[u8]>, body: &[u8], scripts: bool) -> Vec<u8> {
    let url: Url = url.parse().unwrap();
    let place = Place { prefix: PREFIX, time: TIME, url: &url, scripts };
    let charset = charset(kind, content_type, body, &url);
    let mut whole = Vec::new();
    let mut rewriter = Rewriter::new(kind, &place, charset);
    rewriter.write(body, &mut whole);
    rewriter.end(&mut whole);
    // However it is cut, the same comes out.
    for size in [1, 2, 3, 7, 64] {
        let mut pieces = Vec::new();
        let mut rewriter = Rewriter::new(kind, &place, charset);
        body.chunks(size).for_each(|piece| rewriter.write(piece, &mut pieces));
        rewriter.end(&mut pieces);
        assert_eq!(String::from_utf8_lossy(&pieces), String::from_utf8_lossy(&whole), "in pieces of {size}");
    }
    whole
}

fn short(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap().replace(&format!("{PREFIX}{TIME}"), "»")
}

/// Without scripts, so that ours is not in the way.
#[track_caller]
fn html(before: &str, after: &str) {
    let found =
        rewritten(Kind::Html, "http://example.org/a/b?c", Some(b"text/html; charset=utf-8"), before.as_bytes(), false);
    assert_eq!(short(found), after, "{before}");
}

#[track_caller]
fn css(before: &str, after: &str) {
    let found = rewritten(Kind::Css, "http://example.org/a/s.css", None, before.as_bytes(), false);
    assert_eq!(short(found), after, "{before}");
}

#[track_caller]
fn js(before: &str, after: &str) {
    let found = rewritten(Kind::Module, "http://example.org/a/s.js", None, before.as_bytes(), true);
    assert_eq!(short(found), after, "{before}");
}

#[test]
fn attributes() {
    for (before, after) in [
        ("<a href=x>1</a>", r#"<a href="»mp_/http://example.org/a/x">1</a>"#),
        ("<a href='/x'>", r#"<a href="»mp_/http://example.org/x">"#),
        ("<A  HREF = \"//cdn.example/x?a&amp;b\" >", r#"<A  HREF = "»mp_/http://cdn.example/x?a&amp;b" >"#),
        ("<a href='https://other.example'>", r#"<a href="»mp_/https://other.example/">"#),
        ("<a href=?d>", r#"<a href="»mp_/http://example.org/a/b?d">"#),
        ("<a href='x#y z'>", r#"<a href="»mp_/http://example.org/a/x#y%20z">"#),
        ("<a href='it&apos;s'>", r#"<a href="»mp_/http://example.org/a/it's">"#),
        ("<a href=' \n x\ny '>", r#"<a href="»mp_/http://example.org/a/xy">"#),
        ("<a href=''><a href><a href='#top'>", "<a href=''><a href><a href='#top'>"),
        ("<a href=mailto:a@b><a href=tel:1><a href=data:,x>", "<a href=mailto:a@b><a href=tel:1><a href=data:,x>"),
        ("<a href='http://[nonsense'>", "<a href='http://[nonsense'>"),
        ("<a href=x ping='/count http://t.example/'>", r#"<a href="»mp_/http://example.org/a/x" >"#),
        (
            "<area href=x><img src=x.png alt=y>",
            r#"<area href="»mp_/http://example.org/a/x"><img src="»im_/http://example.org/a/x.png" alt=y>"#,
        ),
        ("<img data-src=x.png title='src=y'>", "<img data-src=x.png title='src=y'>"),
        ("<img src=x src=y>", r#"<img src="»im_/http://example.org/a/x" src="»im_/http://example.org/a/y">"#),
        (
            "<img srcset='a.png 1x, /b.png 2x,, data:image/png;base64,A= 3x'>",
            r#"<img srcset="»im_/http://example.org/a/a.png 1x, »im_/http://example.org/b.png 2x,, data:image/png;base64,A= 3x">"#,
        ),
        (
            "<source srcset='a(1,2).png 100w' src=c.mp4>",
            r#"<source srcset="»im_/http://example.org/a/a(1,2).png 100w" src="»im_/http://example.org/a/c.mp4">"#,
        ),
        (
            "<link rel=preload as=image imagesrcset='a 1x' href=b>",
            r#"<link rel=preload as=image imagesrcset="»im_/http://example.org/a/a 1x" href="»im_/http://example.org/a/b">"#,
        ),
        ("<iframe src=f><frame src=f>", "<iframe src=\"»if_/http://example.org/a/f\"><frame src=f>"),
        ("<frameset><frame src=f></frameset>", "<frameset><frame src=\"»if_/http://example.org/a/f\"></frameset>"),
        ("<iframe src=about:blank></iframe>", "<iframe src=about:blank></iframe>"),
        (
            "<video poster=p src=v><track src=t></video>",
            r#"<video poster="»im_/http://example.org/a/p" src="»im_/http://example.org/a/v"><track src="»im_/http://example.org/a/t"></video>"#,
        ),
        (
            "<object data=o codebase=/c/><embed src=e>",
            r#"<object data="»if_/http://example.org/a/o" codebase="»im_/http://example.org/c/"><embed src="»if_/http://example.org/a/e">"#,
        ),
        ("<applet codebase=c code=X>", r#"<applet codebase="»im_/http://example.org/a/c" code=X>"#),
        (
            "<param name=movie value=m.swf><param name=wmode value=opaque>",
            r#"<param name=movie value="»im_/http://example.org/a/m.swf"><param name=wmode value=opaque>"#,
        ),
        (
            "<form action=/go><button formaction=x><input type=image src=i>",
            r#"<form action="»mp_/http://example.org/go"><button formaction="»mp_/http://example.org/a/x"><input type=image src="»im_/http://example.org/a/i">"#,
        ),
        (
            "<body background=b.gif><td background=c>",
            r#"<body background="»im_/http://example.org/a/b.gif"><td background="»im_/http://example.org/a/c">"#,
        ),
        ("<html manifest=/m.appcache>", "<html >"),
        (
            "<script src=s integrity='sha256-x' nonce=n crossorigin></script>",
            "<script src=\"»js_/http://example.org/a/s\"   crossorigin></script>",
        ),
        (
            "<script type=module src=m.mjs></script>",
            r#"<script type=module src="»esm_/http://example.org/a/m.mjs"></script>"#,
        ),
        (
            "<div style='background:url(b.png)' class=x>",
            r#"<div style="background:url(&quot;»im_/http://example.org/a/b.png&quot;)" class=x>"#,
        ),
        ("<div style='color:red'>", "<div style='color:red'>"),
        (
            "<div style='content:\"é\";background:url(b)'>",
            "<div style=\"content:&quot;&#233;&quot;;background:url(&quot;»im_/http://example.org/a/b&quot;)\">",
        ),
        ("<blockquote cite=/x>", "<blockquote cite=/x>"),
    ] {
        html(before, after);
    }
}

#[test]
fn relations() {
    for (before, after) in [
        ("<link rel=stylesheet href=s integrity=x>", "<link rel=stylesheet href=\"»cs_/http://example.org/a/s\" >"),
        (
            "<link rel='alternate stylesheet' href=s>",
            "<link rel='alternate stylesheet' href=\"»cs_/http://example.org/a/s\">",
        ),
        ("<link rel='shortcut icon' href=i>", "<link rel='shortcut icon' href=\"»im_/http://example.org/a/i\">"),
        ("<link rel=preload as=script href=s>", "<link rel=preload as=script href=\"»js_/http://example.org/a/s\">"),
        ("<link rel=preload as=style href=s>", "<link rel=preload as=style href=\"»cs_/http://example.org/a/s\">"),
        ("<link rel=preload as=font href=s>", "<link rel=preload as=font href=\"»im_/http://example.org/a/s\">"),
        ("<link rel=preload as=fetch href=s>", "<link rel=preload as=fetch href=\"»xr_/http://example.org/a/s\">"),
        ("<link rel=modulepreload href=s>", "<link rel=modulepreload href=\"»esm_/http://example.org/a/s\">"),
        ("<link rel=manifest href=s>", "<link rel=manifest href=\"»mp_/http://example.org/a/s\">"),
        ("<link rel=canonical href=s>", "<link rel=canonical href=\"»mp_/http://example.org/a/s\">"),
        ("<link rel=preconnect href=//x.example>", "<link rel=preconnect >"),
        ("<link rel='dns-prefetch' href=//x.example>", "<link rel='dns-prefetch' >"),
    ] {
        html(before, after);
    }
}

#[test]
fn what_stands_in_the_head() {
    for (before, after) in [
        (
            "<base href=/x/><a href=y>",
            "<base href=\"»mp_/http://example.org/x/\"><a href=\"»mp_/http://example.org/x/y\">",
        ),
        ("<base target=_top><a href=y>", "<base target=_top><a href=\"»mp_/http://example.org/a/y\">"),
        ("<base href=data:,x><a href=y>", "<base href=data:,x><a href=\"»mp_/http://example.org/a/y\">"),
        (
            "<base href=//c.example/><base href=/x/><a href=y>",
            "<base href=\"»mp_/http://c.example/\"><base href=\"»mp_/http://c.example/x/\"><a href=\"»mp_/http://c.example/y\">",
        ),
        (
            "<meta http-equiv=refresh content='0;url=/x'>",
            "<meta http-equiv=refresh content=\"0;url=»mp_/http://example.org/x\">",
        ),
        (
            "<meta http-equiv=Refresh content=\"5; URL='x y'\">",
            "<meta http-equiv=Refresh content=\"5; URL='»mp_/http://example.org/a/x%20y'\">",
        ),
        ("<meta http-equiv=refresh content=5>", "<meta http-equiv=refresh content=5>"),
        (
            "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'\">",
            "<meta http-equiv=Content-Security-Policy >",
        ),
        ("<meta property=og:image content=http://x.example/>", "<meta property=og:image content=http://x.example/>"),
        (
            "<style>@import 'x';a{b:url(y)}</style>z(url(y))",
            "<style>@import '»cs_/http://example.org/a/x';a{b:url(\"»im_/http://example.org/a/y\")}</style>z(url(y))",
        ),
        (
            "<script type=importmap>{\"imports\":{\"a\":\"/m/a.js\",\"b/\":\"./b/\"},\"integrity\":{}}</script>",
            "<script type=importmap>{\"imports\":{\"a\":\"»esm_/http://example.org/m/a.js\",\"b/\":\"»esm_/http://example.org/a/b/\"}}</script>",
        ),
        ("<script type=importmap>{nonsense</script>", "<script type=importmap>{nonsense</script>"),
        ("<script type=speculationrules>{\"prefetch\":[]}</script>x", "<script type=speculationrules></script>x"),
        ("<noscript><img src=x></noscript>", "<noscript><img src=\"»im_/http://example.org/a/x\"></noscript>"),
    ] {
        html(before, after);
    }
}

#[test]
fn drawings() {
    for (before, after) in [
        (
            "<svg><a href=x/><use xlink:href=s.svg#i /><image href=i.png></svg>",
            "<svg><a href=\"»mp_/http://example.org/a/x/\"><use xlink:href=\"»im_/http://example.org/a/s.svg#i\" /><image href=\"»im_/http://example.org/a/i.png\"></svg>",
        ),
        ("<svg><use href=#i></svg>", "<svg><use href=#i></svg>"),
        (
            "<svg><style>a{b:url(x)}</style></svg><a href=y>",
            "<svg><style>a{b:url(\"»im_/http://example.org/a/x\")}</style></svg><a href=\"»mp_/http://example.org/a/y\">",
        ),
        ("<svg><title><a href=x></title></svg>", "<svg><title><a href=\"»mp_/http://example.org/a/x\"></title></svg>"),
        ("<title><a href=x></title>", "<title><a href=x></title>"),
    ] {
        html(before, after);
    }
}

#[test]
fn what_is_no_markup_stays() {
    for text in [
        "<!-- <a href=x> --><!doctype html><?php <a href=x ?>",
        "<!--[if IE]><img src=x><![endif]-->",
        "<textarea><img src=x></textarea><xmp><img src=x></xmp>",
        "<script>'<img src=x>'</script><script type=text/template><img src=x></script>",
        "<script><!-- <script> </script> <img src=x> --></script>",
        "a < b <> </ > <1 <=",
        "<plaintext><img src=x>",
        "<a href=x",
        "<!-- never closed <a href=x>",
        "<style>never closed",
        "<script>never closed",
        "<",
        "</",
        "<!",
        "<!-",
        "</a",
        "",
        "\0<\0>\u{feff}",
    ] {
        html(text, text);
    }
}

#[test]
fn what_is_rewritten_stays() {
    let page = "<a href=x><img srcset='a 1x,b 2x'><div style='a:url(b)'><base href=/c/><meta http-equiv=refresh content='1;/d'>\
        <iframe srcdoc='<a href=e>'></iframe><style>@import \"f\"</style>";
    let rewrite = |body: &[u8]| rewritten(Kind::Html, "http://example.org/", None, body, false);
    let once = rewrite(page.as_bytes());
    assert_eq!(short(rewrite(&once)), short(once));
    // The replay of a page that was an archive itself is something else.
    html("<a href=/web/2014/http://x/>", "<a href=\"»mp_/http://example.org/web/2014/http://x/\">");
}

#[test]
fn our_script_is_before_all_others() {
    let ours = "<script src=\"http://replay.localhost:7070/-/replay.js\" data-skep-prefix=\"http://replay.localhost:7070/web/\" \
        data-skep-time=\"20200102030405\" data-skep-url=\"http://example.org/a/b?c&amp;d\"></script>";
    for (before, after) in [
        ("<!doctype html><html><head><title>", "<!doctype html><html><head>@<title>"),
        ("<!-- c --> <HTML>\n<HEAD lang=x>\n", "<!-- c --> <HTML>\n<HEAD lang=x>@\n"),
        ("<!doctype html><script>1</script>", "<!doctype html>@<script>1</script>"),
        ("<html><body>", "<html>@<body>"),
        ("<html><frameset>", "<html>@<frameset>"),
        ("text <b>", "text @<b>"),
        ("no tags", "no tags"),
    ] {
        let found = rewritten(Kind::Html, "http://example.org/a/b?c&d", None, before.as_bytes(), true);
        assert_eq!(String::from_utf8(found).unwrap(), after.replace('@', ours), "{before}");
    }
}

#[test]
fn scripts_in_pages() {
    let ours = |text: &str| text.split_once("</script>").unwrap().1.to_owned();
    for (before, after) in [
        ("<script>location.href</script>", "<script>skep$location.href</script>"),
        ("<script type='Text/JavaScript'>location</script>", "<script type='Text/JavaScript'>skep$location</script>"),
        ("<script type=application/json>{location}</script>", "<script type=application/json>{location}</script>"),
        ("<script type=text/x-template>location</script>", "<script type=text/x-template>location</script>"),
        (
            "<p onclick='location=\"x\"' title=location>",
            "<p onclick=\"window.skep$location=&quot;x&quot;\" title=location>",
        ),
        ("<a href='javascript:location.reload()'>", "<a href=\"javascript:skep$location.reload()\">"),
        ("<a href='JavaScript:void(0)'>", "<a href='JavaScript:void(0)'>"),
        (
            "<script type=module>import a from './x.js'</script>",
            "<script type=module>import a from \"»esm_/http://example.org/a/x.js\"</script>",
        ),
        ("<script>import('./x.js')</script>", "<script>skep$import(\"\",'./x.js')</script>"),
    ] {
        let found = rewritten(Kind::Html, "http://example.org/a/b?c", None, before.as_bytes(), true);
        assert_eq!(ours(&short(found)), after, "{before}");
    }
    let inner = rewritten(Kind::Html, "http://example.org/a/b?c", None, b"<iframe srcdoc='<p><a href=x>'>", true);
    let inner = ours(&short(inner));
    assert!(inner.contains("/-/replay.js&quot;"), "{inner}");
    assert!(inner.contains("&lt;a href=&quot;»mp_/http://example.org/a/x&quot;&gt;\">"), "{inner}");
}

#[test]
fn style_sheets() {
    for (before, after) in [
        ("a{b:url(c.png)}", "a{b:url(\"»im_/http://example.org/a/c.png\")}"),
        ("a{b:URL( 'c.png' )}", "a{b:URL( '»im_/http://example.org/a/c.png' )}"),
        ("a{b:url(\"c d\")}", "a{b:url(\"»im_/http://example.org/a/c%20d\")}"),
        ("a{b:url(c\\29 d)}", "a{b:url(\"»im_/http://example.org/a/c)d\")}"),
        ("a{b:u\\72l(c)}", "a{b:u\\72l(\"»im_/http://example.org/a/c\")}"),
        ("a{b:url('it\\'s')}", "a{b:url('»im_/http://example.org/a/it\\'s')}"),
        (
            "@import 'a';@import url(b) screen;@IMPORT url('c');",
            "@import '»cs_/http://example.org/a/a';@import url(\"»cs_/http://example.org/a/b\") screen;@IMPORT url('»cs_/http://example.org/a/c');",
        ),
        (
            "@import \"a\" layer(x) supports(url(y));",
            "@import \"»cs_/http://example.org/a/a\" layer(x) supports(url(\"»im_/http://example.org/a/y\"));",
        ),
        ("@namespace url(http://www.w3.org/1999/xhtml);", "@namespace url(http://www.w3.org/1999/xhtml);"),
        (
            "@font-face{src:url(f.woff) format('woff'),local('x')}",
            "@font-face{src:url(\"»im_/http://example.org/a/f.woff\") format('woff'),local('x')}",
        ),
        (
            "a{b:image-set('c' 1x, url(d) 2x, type('e'))}",
            "a{b:image-set('»im_/http://example.org/a/c' 1x, url(\"»im_/http://example.org/a/d\") 2x, type('e'))}",
        ),
        ("a{b:-webkit-image-set(url(c) 1x)}", "a{b:-webkit-image-set(url(\"»im_/http://example.org/a/c\") 1x)}"),
        ("/* url(a) */b{c:\"url(d)\"}", "/* url(a) */b{c:\"url(d)\"}"),
        ("a{b:url(#c);d:url(data:image/png;base64,AA==)}", "a{b:url(#c);d:url(data:image/png;base64,AA==)}"),
        ("a{b:myurl(c)}", "a{b:myurl(c)}"),
        ("a{b:url(c d)}e{f:url(g)}", "a{b:url(c d)}e{f:url(\"»im_/http://example.org/a/g\")}"),
        ("a{b:url(c", "a{b:url(\"»im_/http://example.org/a/c\""),
        ("a{b:'never closed\n;c:url(d)}", "a{b:'never closed\n;c:url(\"»im_/http://example.org/a/d\")}"),
        ("a{b:url()}", "a{b:url()}"),
        ("/* never closed url(a)", "/* never closed url(a)"),
        ("\\", "\\"),
        ("url", "url"),
        ("url(", "url("),
    ] {
        css(before, after);
    }
}

#[test]
fn words_of_scripts() {
    for (before, after) in [
        ("location", "skep$location"),
        ("location.href = 'x'", "skep$location.href = 'x'"),
        ("window.location='x'", "window.skep$location='x'"),
        ("document . location", "document . skep$location"),
        ("a?.location", "a?.skep$location"),
        ("window['location'], x[\"location\"]", "window['skep$location'], x[\"skep$location\"]"),
        ("f({location: 1, b: location})", "f({location: 1, b: skep$location})"),
        ("f({a, location})", "f({a, location:skep$location})"),
        ("const {location} = window", "const {skep$location} = window"),
        ("const {location: l, a: {location}} = x", "const {skep$location: l, a: {skep$location}} = x"),
        ("function f(location) { return location }", "function f(skep$location) { return skep$location }"),
        ("var a, location, b;", "var a, skep$location, b;"),
        ("function f() { var a, location, b }", "function f() { var a, skep$location, b }"),
        ("x ? location : y", "x ? skep$location : y"),
        ("class A { location() {} get location() {} }", "class A { location() {} get location() {} }"),
        ("$location + locations + a_location + location2", "$location + locations + a_location + location2"),
        ("this.#location", "this.#location"),
        ("'location' + \"location\" + `location`", "'location' + \"location\" + `location`"),
        ("`${location}location${`${a.location}`}`", "`${skep$location}location${`${a.skep$location}`}`"),
        ("// location\n/* location */location", "// location\n/* location */skep$location"),
        ("<!-- don't\nlocation\n-->", "<!-- don't\nskep$location\n-->"),
        ("/location/.test(location)", "/location/.test(skep$location)"),
        ("a = b / location / c", "a = b / skep$location / c"),
        ("if (a) /'/.test(location)", "if (a) /'/.test(skep$location)"),
        ("f(a) / location / 1", "f(a) / skep$location / 1"),
        ("x = {}\n/ location / 1", "x = {}\n/ skep$location / 1"),
        ("return /[/'\"]location/g, location", "return /[/'\"]location/g, skep$location"),
        ("'it\\'s location', location", "'it\\'s location', skep$location"),
        ("'never closed\nlocation", "'never closed\nskep$location"),
        ("1..location, 0x1f/location", "1..location, 0x1f/skep$location"),
        ("top.location", "skep$top(top).skep$location"),
        (
            "if (top != self) top.location = self.location",
            "if (skep$top(top) != self) skep$top(top).skep$location = self.skep$location",
        ),
        ("self === top && a", "self === skep$top(top) && a"),
        ("window.self !== window.top", "window.self !== skep$top(window.top)"),
        ("if(self.top){}", "if(skep$top(self.top)){}"),
        (
            "self.top = 1; self.top += 2; self.top ||= 3; self.top++",
            "self.top = 1; self.top += 2; self.top ||= 3; self.top++",
        ),
        (
            "var top = 1, left; f(top, left); ({top, left}); e.style.top = top + 'px'",
            "var top = 1, left; f(top, left); ({top, left}); e.style.top = top + 'px'",
        ),
        ("function f(top) {}", "function f(top) {}"),
        ("parent.postMessage(a, '*')", "parent.skep$post(skep$window).postMessage(a, '*')"),
        (
            "postMessage(a); p = w.postMessage; class W { postMessage(m) {} }",
            "postMessage(a); p = w.postMessage; class W { postMessage(m) {} }",
        ),
        ("import('./x.js').then(f)", "skep$import(\"http://example.org/a/s.js\",'./x.js').then(f)"),
        ("a.import(b), {import(c) {}}", "a.import(b), {import(c) {}}"),
        ("import './x.js'", "import \"»esm_/http://example.org/a/x.js\""),
        ("import a, {b as c} from '/x.js';", "import a, {b as c} from \"»esm_/http://example.org/x.js\";"),
        ("import*as a from\"https://c.example/x\"", "import*as a from\"»esm_/https://c.example/x\""),
        ("import a from 'react'", "import a from 'react'"),
        (
            "export {a} from './a.js'; export * from './b.js'",
            "export {a} from \"»esm_/http://example.org/a/a.js\"; export * from \"»esm_/http://example.org/a/b.js\"",
        ),
        ("import {location} from './l.js'", "import {skep$location} from \"»esm_/http://example.org/a/l.js\""),
        ("x.from('a'); from = './b.js'", "x.from('a'); from = './b.js'"),
        ("new URL('x', import.meta.url)", "new URL('x', \"http://example.org/a/s.js\")"),
        ("import.meta.env", "import.meta.env"),
        ("'é' + ünlocation + location", "'é' + ünlocation + skep$location"),
        ("", ""),
        ("`${", "`${"),
        ("`\\", "`\\"),
        ("/*", "/*"),
        ("}})])location", "}})])skep$location"),
        ("'\r\n", "'\r\n"),
    ] {
        js(before, after);
    }
}

#[test]
fn workers_load_ours_first() {
    let worker =
        |kind, body: &[u8]| String::from_utf8(rewritten(kind, "http://example.org/w.js", None, body, true)).unwrap();
    assert_eq!(
        worker(Kind::Worker, b"f(location)"),
        "importScripts(\"http://replay.localhost:7070/-/replay.js\");f(skep$location)"
    );
    assert_eq!(worker(Kind::ModuleWorker, b"f()"), "import \"http://replay.localhost:7070/-/replay.js\";f()");
    assert_eq!(
        worker(Kind::Worker, b"\xef\xbb\xbff()"),
        "\u{feff}importScripts(\"http://replay.localhost:7070/-/replay.js\");f()"
    );
    assert_eq!(worker(Kind::Worker, b""), "importScripts(\"http://replay.localhost:7070/-/replay.js\");");
}

#[test]
fn no_byte_is_changed_for_its_charset() {
    // Latin-1, Shift_JIS with a second byte that looks like a backslash, GBK with one that looks like a brace, bytes of no charset.
    for (content_type, body) in [
        (&b"text/html; charset=iso-8859-1"[..], &b"<p title=\xe9>\xff<b alt='\xe9'>\x80"[..]),
        (b"text/html; charset=shift_jis", b"<p>\x83\x5c<style>a{b:'\x83\x5c'}</style><script>'\x83\x5c'</script>"),
        (b"text/html; charset=gbk", b"<script>'\x81\x7b\x81\x5c'</script>\xa0"),
        (b"text/html; charset=utf-8", b"<script>'\xc3\x28\xff'</script>\xf0\x9f<style>\xff</style><p x='\xff'>"),
    ] {
        assert_eq!(rewritten(Kind::Html, "http://example.org/", Some(content_type), body, false), body);
    }
    let script = b"a='\x83\x5c';location;'\xff'";
    let url: Url = "http://example.org/".parse().unwrap();
    let place = Place { prefix: PREFIX, time: TIME, url: &url, scripts: true };
    let mut out = Vec::new();
    let mut rewriter = Rewriter::new(Kind::Script, &place, Charset::for_label(b"shift_jis").unwrap());
    rewriter.write(script, &mut out);
    rewriter.end(&mut out);
    assert_eq!(out, b"a='\x83\x5c';skep$location;'\xff'");
}

#[test]
fn addresses_are_resolved_in_the_charset_of_the_page() {
    let found = rewritten(
        Kind::Html,
        "http://example.org/",
        Some(b"text/html; charset=iso-8859-1"),
        b"<a href='\xe9?\xe9'>",
        false,
    );
    assert_eq!(short(found), "<a href=\"»mp_/http://example.org/%C3%A9?%E9\">");
}

#[test]
fn sixteen_bits() {
    for big in [true, false] {
        let encode = |text: &str| -> Vec<u8> {
            text.encode_utf16().flat_map(|unit| if big { unit.to_be_bytes() } else { unit.to_le_bytes() }).collect()
        };
        let page = encode("\u{feff}<p>é🐝</p><img src='x'>");
        let found = rewritten(Kind::Html, "http://example.org/", None, &page, false);
        let wanted = format!("\u{feff}<p>é🐝</p><img src=\"{PREFIX}{TIME}im_/http://example.org/x\">");
        assert_eq!(found, encode(&wanted));
    }
}

#[test]
fn markup_of_xml() {
    let xml = |body: &str| short(rewritten(Kind::Xml, "http://example.org/a/b", None, body.as_bytes(), true));
    let ours = "<script xmlns=\"http://www.w3.org/1999/xhtml\" src=\"http://replay.localhost:7070/-/replay.js\" \
        data-skep-prefix=\"http://replay.localhost:7070/web/\" data-skep-time=\"20200102030405\" \
        data-skep-url=\"http://example.org/a/b\"></script>";
    assert_eq!(
        xml(
            "<?xml version='1.0'?><svg xmlns='http://www.w3.org/2000/svg'><image href='x'/><style><![CDATA[a{b:url(c?d&e)}]]></style></svg>"
        ),
        format!(
            "<?xml version='1.0'?><svg xmlns='http://www.w3.org/2000/svg'>{ours}<image href=\"»im_/http://example.org/a/x\"/><style><![CDATA[a{{b:url(\"»im_/http://example.org/a/c?d\\26 e\")}}]]></style></svg>"
        )
    );
    assert_eq!(
        xml("<html><head/><body><script src='x'/><a href='y'/></body></html>"),
        format!(
            "<html><head/>{ours}<body><script src=\"»js_/http://example.org/a/x\"/><a href=\"»mp_/http://example.org/a/y\"/></body></html>"
        )
    );
    assert_eq!(xml("<rss><link>x</link></rss>"), "<rss><link>x</link></rss>");
    assert_eq!(
        xml("<?xml-stylesheet type='text/css' href='x.css'?><rss/>"),
        "<?xml-stylesheet type='text/css' href=\"»cs_/http://example.org/a/x.css\"?><rss/>"
    );
}

#[test]
fn kinds() {
    for (modifier, media_type, first, wanted) in [
        ("", "text/html", "", Kind::Html),
        ("", "Text/HTML; charset=x", "", Kind::Html),
        ("mp_", "application/xhtml+xml", "", Kind::Xml),
        ("if_", "image/svg+xml", "", Kind::Xml),
        ("im_", "image/svg+xml", "<svg", Kind::Other),
        ("im_", "text/html", "<html>", Kind::Html),
        ("im_", "image/png", "", Kind::Other),
        ("", "", "<!DOCTYPE html>", Kind::Html),
        ("", "", "GIF89a", Kind::Other),
        ("cs_", "text/plain", "a{}", Kind::Css),
        ("cs_", "text/html", "<html>", Kind::Html),
        ("js_", "text/plain", "f()", Kind::Script),
        ("js_", "text/html", "f()", Kind::Script),
        ("js_", "text/html", "<html>", Kind::Other),
        ("esm_", "text/javascript", "", Kind::Module),
        ("esm_", "application/json", "{}", Kind::Other),
        ("wkr_", "application/javascript", "", Kind::Worker),
        ("", "application/x-javascript", "", Kind::Script),
        ("id_", "text/html", "", Kind::Other),
        ("xr_", "text/html", "", Kind::Other),
        ("", "text/css", "", Kind::Css),
        ("", "application/json", "", Kind::Other),
        ("", "application/pdf", "", Kind::Other),
    ] {
        assert_eq!(kind(modifier, media_type, first.as_bytes()), wanted, "{modifier} {media_type} {first}");
    }
}

#[test]
fn links() {
    let url: Url = "http://example.org/a/b".parse().unwrap();
    let place = Place { prefix: PREFIX, time: TIME, url: &url, scripts: true };
    assert_eq!(link(&place, "mp_", "../c").unwrap(), format!("{PREFIX}{TIME}mp_/http://example.org/c"));
    assert_eq!(link(&place, "mp_", &format!("{PREFIX}{TIME}/http://x/")), None);
}

#[test]
fn memory_is_bounded_and_time_is_linear() {
    let url: Url = "http://example.org/".parse().unwrap();
    let place = Place { prefix: PREFIX, time: TIME, url: &url, scripts: true };
    for start in
        ["<a href='", "<!--", "<script>", "<style>", "<title>", "<script>`", "<style>a{b:url(", "<svg><![CDATA["]
    {
        let mut rewriter = Rewriter::new(Kind::Html, &place, charset(Kind::Html, None, b"", &url));
        let mut out = Vec::new();
        rewriter.write(start.as_bytes(), &mut out);
        let mut written = out.len();
        let piece = vec![b'x'; 64 << 10];
        for number in 1..=400 {
            out.clear();
            rewriter.write(&piece, &mut out);
            written += out.len();
            assert!(
                number * piece.len() < written + skep_page::limits::HELD_BYTES_MAX + (1 << 20),
                "{start} is held back"
            );
        }
        out.clear();
        rewriter.end(&mut out);
        assert!(written + out.len() >= 400 * piece.len(), "{start}");
    }
    // Pieces of one byte do not make a long token cost its square.
    let mut rewriter = Rewriter::new(Kind::Html, &place, charset(Kind::Html, None, b"", &url));
    let mut out = Vec::new();
    rewriter.write(b"<a title='", &mut out);
    (0..2 << 20).for_each(|_| rewriter.write(b"x", &mut out));
    rewriter.end(&mut out);
}
