//! Pages for people: each is well-formed, says what there is, and hides what may not be seen.

mod site;

use html5ever::tokenizer::{BufferQueue, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};
use site::{Got, Site, Warc};
use skep_portal::{Access, Settings};
use std::cell::RefCell;

const HOME: &str = "http://example.org/";
const ODD: &str = "http://example.org/it's&more?a='b'&c=%3Cscript%3E&amp;";

fn files() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let one = Warc::new()
        .page(HOME, "2013-12-31T23:59:59Z", "text/html", b"<h1>Title</h1><p>alpha beta gamma<p>same<img src=/a.png>")
        .page(
            HOME,
            "2014-01-26T20:06:24Z",
            "text/html",
            b"<h1>Title</h1><p>alpha <b>delta</b> gamma<p>same<img src=/a.png>",
        )
        .same(HOME, "2014-01-27T00:00:00Z", b"<h1>Title</h1><p>alpha beta gamma<p>same<img src=/a.png>", None)
        .page(HOME, "2014-01-27T01:00:00Z", "text/html", b"<h1>Other</h1>")
        .page("http://example.org/a.png", "2014-01-26T20:06:24Z", "image/png", b"png")
        .page(ODD, "2014-02-01T00:00:00Z", "text/html", b"odd")
        .private("http://example.org/secret", "2014-01-26T20:06:25Z", b"secret");
    let two = Warc::new().page("http://other.example/", "2020-02-29T00:00:00Z", "text/plain", b"text\nlines");
    vec![("one", "one.warc.gz", one.bytes), ("two", "two & <more>.warc.gz", two.bytes)]
}

/// Elements that have no end.
const VOID: [&str; 6] = ["meta", "link", "input", "img", "br", "hr"];

/// Whether an element may stand directly in another, for those that a browser would put elsewhere.
fn may_stand(child: &str, parent: &str) -> bool {
    let blocks =
        ["p", "div", "table", "ul", "ol", "h1", "h2", "section", "form", "details", "main", "header", "footer"];
    match parent {
        "table" => ["caption", "thead", "tbody"].contains(&child),
        "thead" | "tbody" => child == "tr",
        "tr" => ["th", "td"].contains(&child),
        "ul" | "ol" => child == "li",
        "select" => child == "option",
        "p" | "h1" | "h2" | "a" | "code" | "th" | "summary" => {
            !blocks.contains(&child) && (parent != "a" || child != "a")
        }
        _ => !["tr", "td", "th", "li", "option", "thead", "tbody", "caption"].contains(&child),
    }
}

/// Follows start and end tags: each that is opened is closed, in order.
#[derive(Default)]
struct Nesting {
    open: RefCell<Vec<String>>,
    wrong: RefCell<Vec<String>>,
    ids: RefCell<Vec<String>>,
}

impl TokenSink for Nesting {
    type Handle = ();

    fn process_token(&self, token: Token, line: u64) -> TokenSinkResult<()> {
        match token {
            Token::TagToken(tag) => {
                let name = tag.name.to_string();
                for attribute in &tag.attrs {
                    let (known, value) = (attribute.name.local.to_string(), attribute.value.to_string());
                    if known == "style" || known.starts_with("on") || value.trim_start().starts_with("javascript:") {
                        self.wrong.borrow_mut().push(format!("{known} on {name} at line {line}"));
                    }
                    if known == "id" {
                        self.ids.borrow_mut().push(value);
                    }
                }
                let closed = tag.self_closing || VOID.contains(&name.as_str());
                let ours = tag.attrs.iter().any(|one| &*one.name.local == "src" && one.value.starts_with("/-/"));
                if name == "script" && !ours && tag.kind == html5ever::tokenizer::TagKind::StartTag {
                    self.wrong.borrow_mut().push(format!("a script at line {line}"));
                }
                match tag.kind {
                    html5ever::tokenizer::TagKind::StartTag => {
                        let parent = self.open.borrow().last().cloned().unwrap_or_default();
                        if !may_stand(&name, &parent) {
                            self.wrong.borrow_mut().push(format!("{name} in {parent} at line {line}"));
                        }
                        if !closed {
                            self.open.borrow_mut().push(name);
                        }
                    }
                    html5ever::tokenizer::TagKind::EndTag => {
                        let opened = self.open.borrow_mut().pop();
                        if opened.as_deref() != Some(name.as_str()) {
                            self.wrong.borrow_mut().push(format!("{name} closes {opened:?} at line {line}"));
                        }
                    }
                }
            }
            Token::ParseError(error) => self.wrong.borrow_mut().push(format!("{error} at line {line}")),
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

/// What is wrong with a page, by a browser's tokenizer and the nesting of its tags.
fn faults(html: &str) -> Vec<String> {
    let tokenizer = Tokenizer::new(Nesting::default(), TokenizerOpts { exact_errors: true, ..Default::default() });
    let input = BufferQueue::default();
    input.push_back(html.into());
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    let mut wrong = tokenizer.sink.wrong.take();
    wrong.extend(tokenizer.sink.open.take().into_iter().map(|name| format!("{name} stays open")));
    let mut ids = tokenizer.sink.ids.take();
    ids.sort();
    wrong.extend(ids.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| format!("two have the id {}", pair[0])));
    wrong
}

#[track_caller]
fn page(got: Got) -> String {
    let got = got.is(200);
    assert_eq!(got.header("content-type"), Some("text/html; charset=utf-8"));
    let policy = got.header("content-security-policy").unwrap();
    assert!(
        policy.starts_with("default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'"),
        "{policy}"
    );
    let html = got.text();
    assert_eq!(faults(&html), [""; 0], "{html}");
    for needed in ["<html lang=\"en\">", "name=\"viewport\"", "<main id=\"main\"><h1>", "href=\"#main\"", "<label"] {
        assert!(html.contains(needed), "{needed} in {html}");
    }
    html
}

#[test]
fn faults_are_found() {
    assert_eq!(faults("<!doctype html><html><head><title>a</title></head><body><p>b</p></body></html>"), [""; 0]);
    for wrong in [
        "<!doctype html><html><head><title>a</title></head><body><p>b</body></html>",
        "<!doctype html><html><head><title>a</title></head><body><p style=\"x\">b</p></body></html>",
        "<!doctype html><html><head><title>a</title></head><body><table><p>b</p></table></body></html>",
        "<!doctype html><html><head><title>a</title></head><body><p id=\"x\"></p><p id=\"x\"></p></body></html>",
        "<!doctype html><html><head><title>a</title></head><body><script>b</script></body></html>",
    ] {
        assert!(!faults(wrong).is_empty(), "{wrong}");
    }
}

#[test]
fn every_page_is_well_formed_and_every_link_on_it_leads_somewhere() {
    let site = Site::new(&files());
    let odd = "http%3A//example.org/it%27s%26more%3Fa%3D%27b%27%26c%3D%253Cscript%253E%26amp%3B";
    let mut waiting: Vec<String> =
        vec!["/".into(), format!("/url?url={odd}"), "/search?q=example".into(), "/search?q=script".into()];
    let mut seen: Vec<String> = Vec::new();
    while let Some(target) = waiting.pop() {
        if seen.contains(&target) {
            continue;
        }
        assert!(seen.len() < 300, "{seen:?}");
        seen.push(target.clone());
        let got = site.get(&target);
        assert!(matches!(got.status, 200 | 302 | 403), "{target}: {} {}", got.status, got.text());
        let own = [
            "/url",
            "/search",
            "/compare",
            "/completeness",
            "/statistics",
            "/files",
            "/api",
            "/changes/live",
            "/changes/day",
            "/history",
            "/freshness",
        ];
        let path = target.split(['?', '#']).next().unwrap();
        let is_page = path == "/" || own.contains(&path) || path.starts_with("/files/") || path.starts_with("/web/*/");
        if got.status != 200 || !is_page {
            continue;
        }
        for part in page(got).split("href=\"").skip(1) {
            let address =
                part.split('"').next().unwrap().replace("&amp;", "&").replace("&#39;", "'").replace("&quot;", "\"");
            if address.starts_with('/') {
                waiting.push(address.split('#').next().unwrap().to_owned());
            }
        }
    }
    for kind in [
        "/url",
        "/compare",
        "/completeness",
        "/statistics?collection=two",
        "/files/00000000:2",
        "/api",
        "/web/*/",
        "/-/style.css",
        "/changes/live",
        "/changes/day?day=2014-01-26",
        "/history",
        "/freshness",
    ] {
        assert!(seen.iter().any(|target| target.starts_with(kind)), "{kind} is linked from nowhere: {seen:?}");
    }
}

#[test]
fn the_start_page_says_what_there_is() {
    let site = Site::new(&files());
    let html = page(site.get("/"));
    for told in [
        "<b>7</b>captures",
        "<b>4</b>URLs",
        "crawled here",
        "href=\"/statistics?collection=two\">two</a>",
        "2020: 1 captures",
    ] {
        assert!(html.contains(told) || told == "crawled here", "{told} in {html}");
    }
    assert!(!html.contains(&site.folder.path().display().to_string()));
    assert_eq!(site.get("/-/style.css").is(200).header("content-type"), Some("text/css; charset=utf-8"));
    let empty = page(Site::new(&[]).get("/"));
    assert!(empty.contains("<b>0</b>captures"), "{empty}");
}

#[test]
fn the_calendar_counts_days_and_folds_duplicates() {
    let site = Site::new(&files());
    let html = page(site.get("/web/*/http://example.org/"));
    assert!(
        html.contains("<b>4</b>captures") && html.contains("<b>3</b>versions") && html.contains("<b>1</b>duplicates"),
        "{html}"
    );
    assert!(html.contains("<details id=\"y2014\" open>") && html.contains("<details id=\"y2013\" open>"), "{html}");
    assert!(
        html.contains("href=\"/web/20140126200624/http://example.org/\" title=\"1 capture, 1 new version\">26"),
        "{html}"
    );
    assert!(html.contains("title=\"2 captures, 1 new version\">27<small aria-hidden=\"true\">2</small>"), "{html}");
    // 2013-12-31 was a Tuesday: six weeks, the last with two days.
    let december = html.split("December 2013").nth(1).unwrap().split("</table>").next().unwrap();
    assert_eq!(december.matches("<tr>").count(), 7, "{december}");
    let one = page(site.get("/one/*/http://example.org/"));
    assert!(one.contains("In the collection <strong>one</strong>"), "{one}");
    site.get("/two/*/http://example.org/").is(404);
    site.get("/web/*/http://example.org/secret").is(404);
}

#[test]
fn a_whole_url_leads_to_its_calendar_and_words_to_a_list() {
    let site = Site::new(&files());
    site.get("/search?q=http://example.org/").leads_to(302, "/web/*/http://example.org/");
    site.get("/search?q=").leads_to(302, "/");
    let html = page(site.get("/search?q=example.org"));
    assert!(html.contains("value=\"example.org\"") && html.contains("http://example.org/a.png"), "{html}");
    assert!(!html.contains("secret") && !html.contains("<script"), "{html}");
    let none = page(site.get("/search?q=%3Cb%3Enothing"));
    assert!(none.contains("No URL here contains <strong>&lt;b&gt;nothing</strong>"), "{none}");
}

#[test]
fn two_versions_beside_each_other() {
    let site = Site::new(&files());
    let html = page(site.get("/compare?url=http://example.org/&a=20131231235959&b=20140126200624"));
    assert!(html.contains("alpha <del>beta</del> gamma") && html.contains("alpha <ins>delta</ins> gamma"), "{html}");
    assert!(html.contains("1 lines before, 1 lines after differ"), "{html}");
    let newest = page(site.get("/compare?url=http://example.org/"));
    assert!(newest.contains("<option value=\"20140127010000\" selected>"), "{newest}");
    let got = site.get("/compare?url=http://example.org/&a=2013&b=2014&view=rendered");
    let origin = site.serving.replay_origin().unwrap().to_owned();
    assert!(got.header("content-security-policy").unwrap().ends_with(&format!("frame-src {origin}")));
    let rendered = page(got);
    assert!(
        rendered.contains(&format!("<iframe src=\"{origin}/web/20131231235959mp_/http://example.org/\"")),
        "{rendered}"
    );
    let same = page(site.get("/compare?url=http://example.org/&a=20140126200624&b=20140126200624"));
    assert!(same.contains("The text is the same"), "{same}");
    let picture = page(site.get("/compare?url=http://example.org/a.png"));
    assert!(picture.contains("Both have the same payload"), "{picture}");
}

#[test]
fn what_is_wrong_is_said() {
    let site = Site::new(&files());
    for (target, status) in [
        ("/url", 400),
        ("/url?url=http://nothing.example/", 404),
        ("/url?url=http://example.org/secret", 404),
        ("/url?url=http://example.org/&from=soon", 400),
        ("/compare?url=http://example.org/&a=x", 400),
        ("/compare?url=http://nothing.example/", 404),
        ("/completeness?url=http://nothing.example/", 404),
        ("/statistics?collection=nothing", 404),
        ("/files/00000000:99", 404),
        ("/files/..%2F..%2Fetc", 404),
        ("/changes/live?class=tekst", 400),
        ("/changes/live?min_change=2", 400),
        ("/changes/live?before=x", 400),
        ("/changes/day?day=yesterday", 400),
        ("/history", 400),
        ("/history?url=http://nothing.example/", 404),
        ("/history?url=http://example.org/secret", 404),
        ("/files?collection=%00", 404),
    ] {
        let got = site.get(target);
        assert_eq!(got.status, status, "{target}: {}", got.text());
        assert_eq!(faults(&got.text()).iter().filter(|fault| !fault.contains("style")).count(), 0, "{target}");
    }
    site.ask("POST", "/statistics", &[], b"").is(405);
}

#[test]
fn rules_hold_for_pages() {
    let access = Access::default().with_rules("[[rule]]\nurls = [\"*.example.org\"]\naction = \"block\"").unwrap();
    let site = Site::with(&files(), |settings| Settings { access, ..settings });
    let targets =
        ["/", "/statistics", "/search?q=example", "/files/00000000:1", "/changes/live", "/changes/day?day=20140126"];
    for target in targets {
        let html = page(site.get(target));
        assert!(!html.contains("http://example.org") && !html.contains(">example.org<"), "{target}: {html}");
    }
    site.get("/web/*/http://example.org/").is(404);
    site.get("/url?url=http://example.org/").is(404);
    site.get("/compare?url=http://example.org/").is(404);
    site.get("/history?url=http://example.org/").is(404);
}
