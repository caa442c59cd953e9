//! Pages about changes: what they say, and what a browser makes of them.

#[path = "browser/driver.rs"]
mod driver;
mod site;
#[path = "browser/web.rs"]
mod web;

use driver::{Browser, pictures};
use site::{Site, Warc, add};
use skep_portal::{Access, Settings, Watched};
use std::sync::Arc;
use std::time::{Duration, Instant};
use web::Web;

const URL: &str = "http://example.org/news";

/// Enough that stays for a changed word to be a small change.
fn body(title: &str, said: &str) -> Vec<u8> {
    let filler: String = (0..40).map(|n| format!("<p>Paragraph {n} stays as it is.</p>")).collect();
    format!("<title>{title}</title><h1>News</h1>{filler}{said}<p>The end.</p>").into_bytes()
}

fn page(warc: Warc, url: &str, time: &str, said: &str) -> Warc {
    warc.page(url, time, "text/html; charset=utf-8", &body("A page", said))
}

const FIRST: &str = "<p>The hives stand under the old linden.</p><p>Twelve of them, and a skep.</p>";
const SECOND: &str = "<p>The hives stand under the young linden.</p><p>Fourteen of them, and a skep.</p>";

fn files() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let warc = page(Warc::new(), URL, "2024-01-01T00:00:00Z", FIRST);
    let warc = page(warc, URL, "2024-02-01T10:00:00Z", SECOND);
    let warc = page(warc, "http://www.example.org/", "2024-02-01T11:00:00Z", "<p>Home</p>");
    let warc = page(warc, "http://other.example/b", "2024-02-01T12:00:00Z", "<p>b</p>");
    vec![("c", "a.warc.gz", warc.bytes)]
}

/// A version that comes while somebody looks.
fn comes(site: &Site, name: &str, time: &str, said: &str) {
    let path = site.path(name);
    std::fs::write(&path, page(Warc::new(), URL, time, said).bytes).unwrap();
    add(&site.archive, "c", &path);
}

#[test]
fn the_newest_changes_come_first_and_filters_hold() {
    let site = Site::new(&files());
    let got = site.get("/changes/live").is(200);
    let policy = got.header("content-security-policy").unwrap().to_owned();
    assert!(policy.contains("script-src 'self'; connect-src 'self'") && !policy.contains("unsafe"), "{policy}");
    let html = got.text();
    let order: Vec<usize> = ["http://other.example/b", "http://www.example.org/", "<b>text.minor"]
        .iter()
        .map(|told| html.find(told).unwrap_or_else(|| panic!("{told} in {html}")))
        .collect();
    assert!(order.is_sorted(), "{html}");
    let rows = |query: &str| site.get(&format!("/changes/live?{query}")).is(200).text().matches("<li>").count();
    assert_eq!(rows(""), 4);
    assert_eq!(rows("class=text"), 1);
    assert_eq!(rows("host=*.example.org"), 3);
    assert_eq!(rows("prefix=http://other.example/&class=new"), 1);
    assert_eq!(rows("class=text&min_change=0.5"), 0);
    // Rows are known by their keys, and the script knows which classes it shows: what is taken back or turns out to be noise goes.
    let html = site.get("/changes/live?class=text,gone").is(200).text();
    assert!(html.contains("data-wanted=\"gone text.major text.minor\""), "{html}");
    let told = site.get("/changes?class=text").is(200).text();
    let told: serde_json::Value = serde_json::from_str(told.trim()).unwrap();
    assert!(html.contains(&format!("data-key=\"{}\"", told["key"].as_str().unwrap())), "{html}");
    assert!(site.get("/changes/live").is(200).text().contains(" links meta\" data-rows"), "noise is not shown unasked");
    // The stream goes on behind what the page shows, and is filtered as it is.
    let html = site.get("/changes/live?class=text&host=example.org").is(200).text();
    let stream = html.split("data-stream=\"").nth(1).unwrap().split('"').next().unwrap().replace("&amp;", "&");
    assert!(stream.ends_with("&host=example.org&class=text"), "{stream}");
    assert_eq!(site.get(&stream).is(200).text(), "");
    comes(&site, "later.warc.gz", "2024-03-01T00:00:00Z", "<p>The hives are empty.</p>");
    assert_eq!(site.get(&stream).is(200).text().lines().count(), 1);
    // Pages of a collection are of that collection; there is no stream of one, so they do not go on.
    let html = site.get("/changes/live?collection=c").is(200).text();
    assert!(!html.contains("live.js") && html.contains("In the collection <strong>c</strong>"), "{html}");
}

#[test]
fn what_happened_on_a_day_is_told_by_site() {
    let site = Site::new(&files());
    let html = site.get("/changes/day?day=2024-02-01").is(200).text();
    let row = |site: &str, numbers: &str| {
        let cells: String = numbers.split(' ').map(|number| format!("<td class=\"number\">{number}</td>")).collect();
        let row = format!(">{site}</a></th>{cells}</tr>");
        assert!(html.contains(&row), "{row} in {html}");
    };
    row("example.org", "1 1 0 0 0");
    row("other.example", "1 0 0 0 0");
    assert!(html.contains("href=\"/changes/day?day=2024-01-01\"") && !html.contains("changes after"), "{html}");
    let further = site.get("/changes/day?day=2024-02-01&before=1").is(200).text();
    assert!(!further.contains("<table>") && further.contains("Nothing changed"), "those before that event: {further}");
    let today = site.get("/changes/day").is(200).text();
    assert!(today.contains("What changed today") && today.contains("Nothing changed"), "{today}");
}

#[test]
fn the_history_of_a_url_is_told_word_by_word() {
    let site = Site::new(&files());
    let html = site.get(&format!("/history?url={URL}")).is(200).text();
    for told in [
        "<b>2</b>captures",
        "<b>2</b>changes",
        "under the <del>old</del> linden",
        "under the <ins>young</ins> linden",
        "<del>Twelve</del> of them",
        "href=\"/web/20240101000000/http://example.org/news\">The page before</a>",
        "href=\"/web/20240201100000/http://example.org/news\">The page after</a>",
        "It happened between",
    ] {
        assert!(html.contains(told), "{told} in {html}");
    }
    let newest = html.find("<section class=\"change\">").unwrap();
    assert!(html[newest..].find("text.minor").unwrap() < html[newest..].find("<b>new</b>").unwrap(), "{html}");
}

#[test]
fn rules_for_a_site_hold_where_versions_are_compared() {
    let site = Site::new(&[]);
    let rules = "version = 1\n[[site]]\nmatch = \"example.org\"\nignore = [\".clock\"]\n";
    std::fs::create_dir_all(site.archive.layout().settings()).unwrap();
    std::fs::write(site.archive.layout().settings().join("changes.toml"), rules).unwrap();
    comes(&site, "one.warc.gz", "2024-01-01T00:00:00Z", "<p class=clock>noon of yesterday</p><p>one word</p>");
    comes(&site, "two.warc.gz", "2024-01-02T00:00:00Z", "<p class=clock>evening of today</p><p>another word</p>");
    for target in [format!("/history?url={URL}"), format!("/compare?url={URL}")] {
        let html = site.get(&target).is(200).text();
        assert!(html.contains("<ins>another</ins> word") && !html.contains("evening"), "{target}: {html}");
    }
}

#[test]
fn freshness_is_what_the_watches_say() {
    let watch = |name: &str, pages: u64, fresh: f64| Watched {
        name: name.into(),
        tags: vec!["<b>".into()],
        policy: "harmonic".into(),
        budget: "5/s".into(),
        seeds: vec![URL.into()],
        pages,
        sampled: pages.min(1_000),
        fresh,
        oldest_check_ms: Some(1_700_000_000_000),
        waiting: 7,
        overdue: 150,
        overdue_bundles: 2,
        out: 3,
    };
    let told = vec![watch("one", 3_000, 0.9), watch("two", 1_000, 0.5)];
    let site = Site::with(&[], |settings| Settings { watches: Some(Arc::new(move || Ok(told.clone()))), ..settings });
    let html = site.get("/freshness").is(200).text();
    for told in [
        "<b>80.0 %</b>up to date",
        "<b>90.0 %</b>up to date",
        "<b>300</b>overdue",
        "<b>2</b>bundles overdue",
        "at <time datetime=\"2023-11-14T22:13:20",
        "By a sample of 1,000 pages",
        "<code>&lt;b&gt;</code>",
    ] {
        assert!(html.contains(told), "{told} in {html}");
    }
    let none = Site::new(&[]).get("/freshness").is(200).text();
    assert!(none.contains("Nothing here is watched"), "{none}");
    let broken = |settings| Settings { watches: Some(Arc::new(|| Err("/secret/path".into()))), ..settings };
    let told = Site::with(&[], broken).get("/freshness").is(500).text();
    assert!(!told.contains("secret"), "{told}");
}

/// Two seconds from a capture to the eye of whoever looks.
const SEEN_WITHIN: Duration = Duration::from_secs(2);

#[test]
fn the_live_page_shows_a_change_within_two_seconds_of_its_capture() {
    let web = Web::of(&[]);
    let Some(browser) = Browser::start(web.port) else { return };
    let site = Site::new(&[("c", "a.warc.gz", page(Warc::new(), URL, "2024-01-01T00:00:00Z", FIRST).bytes)]);
    let portal = format!("http://127.0.0.1:{}", site.serving.address().port());
    browser.go(&format!("{portal}/changes/live?host=example.org"));
    browser.until("document.getElementById('state').dataset.state === 'live'");
    let wait_for = |what: &str| {
        browser.run(&format!(
            "window.seen = new Promise((seen) => {{ const list = document.getElementById('changes');
             new MutationObserver((_, all) => {{ if (list.firstElementChild.textContent.includes({what:?})) {{ all.disconnect(); seen(); }} }})
             .observe(list, {{ childList: true }}); }})"
        ));
    };
    wait_for("green linden");
    // Keeping it counts, too.
    let captured = Instant::now();
    comes(&site, "live.warc.gz", "2024-03-01T00:00:00Z", "<p>The hives stand under the green linden.</p>");
    browser.run_until("window.seen.then(done)");
    let seen = captured.elapsed();
    eprintln!("shown {} ms after its capture", seen.as_millis());
    assert!(seen < SEEN_WITHIN, "{seen:?}");
    browser.picture(&pictures().join("changes-live.png"));

    // Whoever pauses is told that something waits, and gets it when going on. Words of a page stay words.
    browser.click("#pause");
    let rows = browser.run("return document.querySelectorAll('#changes > li').length");
    let hostile = "<p>&lt;img src=x onerror=alert(1)&gt; stands there now</p>";
    comes(&site, "hostile.warc.gz", "2024-04-01T00:00:00Z", hostile);
    browser.until("document.getElementById('state').textContent.includes('Paused, 1 waiting')");
    assert_eq!(browser.run("return document.querySelectorAll('#changes > li').length"), rows);
    browser.click("#pause");
    browser.until("document.querySelector('#changes > li').textContent.includes('<img src=x onerror=alert(1)>')");
    assert_eq!(browser.run("return document.querySelectorAll('main img').length"), 0);
    // By script and by the portal a change looks the same.
    let drawn = "return [...document.querySelectorAll('#changes > li')].slice(0, 3).map((one) => one.innerHTML)";
    let by_script = browser.run(drawn);
    browser.go(&format!("{portal}/changes/live?host=example.org"));
    let by_portal = browser.run(drawn);
    let same = |rows: &serde_json::Value| rows.to_string().replace("%3A", ":").replace("%2F", "/");
    assert_eq!(same(&by_script), same(&by_portal));
    // What is taken back goes, and nothing else does.
    let rows = browser.run("return document.querySelectorAll('#changes > li').length").as_u64().unwrap();
    let known = site.archive.views().captures.exact(&skep_archive::Key::of(URL)).unwrap();
    let newest = known.map(Result::unwrap).last().unwrap();
    site.archive.remove_captures(&[newest], "asked").unwrap();
    browser.until("!document.getElementById('changes').textContent.includes('onerror')");
    assert_eq!(browser.run("return document.querySelectorAll('#changes > li').length"), rows - 1);
    // A click leads to the history.
    browser.click("#changes > li a");
    browser.until("location.pathname === '/history' && document.querySelector('.differences')");
}

#[test]
fn the_difference_page_marks_exactly_the_edited_words() {
    let web = Web::of(&[]);
    let Some(browser) = Browser::start(web.port) else { return };
    let said = |linden: &str, count: &str, more: &str| {
        format!("<p>The hives stand under the {linden} linden.</p><p>{count} of them, &lt;b&gt; and a skep.</p>{more}")
    };
    let warc = page(Warc::new(), URL, "2024-01-01T00:00:00Z", &said("old", "Twelve", ""));
    let added = "<p>&lt;script&gt;top.hacked = 1&lt;/script&gt;</p>";
    let warc = page(warc, URL, "2024-02-01T10:00:00Z", &said("young", "Fourteen", added));
    let site = Site::new(&[("c", "a.warc.gz", warc.bytes)]);
    let portal = format!("http://127.0.0.1:{}", site.serving.address().port());
    for (name, target) in [("history", format!("/history?url={URL}")), ("compare", format!("/compare?url={URL}"))] {
        browser.resize(1100, 800);
        browser.go(&format!("{portal}{target}"));
        let marked = browser.run(
            "const words = (name) => [...document.querySelectorAll(`.differences ${name}`)].map((one) => one.textContent);
             return [words('del'), words('ins')]",
        );
        let wanted = serde_json::json!([["old", "Twelve"], ["young", "Fourteen", "<script>top.hacked = 1</script>"]]);
        assert_eq!(marked, wanted, "{name}");
        assert_eq!(browser.run("return [typeof top.hacked, document.scripts.length].join()"), "undefined,0", "{name}");
        browser.picture(&pictures().join(format!("changes-{name}.png")));
        // It fits on a phone.
        browser.resize(400, 800);
        let fits = browser.run("return document.documentElement.scrollWidth <= innerWidth");
        browser.picture(&pictures().join(format!("changes-{name}-phone.png")));
        assert_eq!(fits, true, "{name}");
    }
}

const TOKEN: &str = "sesame";

fn watched() -> Vec<Watched> {
    let watch = |name: &str, tag: &str| Watched {
        name: name.into(),
        tags: vec![tag.into()],
        policy: "harmonic".into(),
        budget: "5/s".into(),
        seeds: vec![URL.into()],
        ..Watched::default()
    };
    vec![watch("press", "news"), watch("prices", "shop")]
}

fn watching(said: &str) -> Site {
    let warc = page(Warc::new(), URL, "2024-01-01T00:00:00Z", said);
    Site::with(&[("c", "a.warc.gz", warc.bytes)], |settings| {
        let users = format!("[[token]]\nsha256 = \"{}\"\nmay = \"write\"\n", sha256(TOKEN));
        let access = Access::default().with_users(&users).unwrap();
        Settings { watches: Some(Arc::new(|| Ok(watched()))), access, ..settings }
    })
}

/// As `sha256sum` has it.
fn sha256(text: &str) -> String {
    skep_warc::digest::Digest::of(skep_warc::digest::Algorithm::Sha256, text.as_bytes()).hex()
}

#[test]
fn watches_are_listed_by_tag_and_rules_come_from_those_who_may_write() {
    let site = watching(FIRST);
    let html = site.get("/watches").is(200).text();
    for told in [
        "<h2 id=\"press\">press</h2>",
        "href=\"/watches?tag=news\">news</a>",
        "href=\"/changes/live?watch=press\"",
        "href=\"/changes/feed.atom?watch=press\"",
        "href=\"/watches/pick?url=http://example.org/news\"",
        "There are none",
    ] {
        assert!(html.contains(told), "{told} in {html}");
    }
    let html = site.get("/watches?tag=shop").is(200).text();
    assert!(html.contains("id=\"prices\"") && !html.contains("id=\"press\""), "{html}");

    let form = [("content-type", "application/x-www-form-urlencoded")];
    let (rule, bearer) = ("about=example.org&ignore=.clock", format!("Bearer {TOKEN}"));
    let token = [form[0], ("authorization", bearer.as_str())];
    site.ask("POST", "/watches/rules", &form, rule.as_bytes()).is(403);
    site.ask("POST", "/watches/rules", &token, rule.as_bytes()).is(200);
    let wrong = site.ask("POST", "/watches/rules", &token, b"about=example.org&keep=a+%3E+b").is(400).text();
    assert!(wrong.contains("a > b"), "{wrong}");
    for wrong in ["", "about=example.org", "keep=main", "about=a&keep="] {
        site.ask("POST", "/watches/rules", &token, wrong.as_bytes()).is(400);
    }
    site.ask("POST", "/watches/rules", &token, &[b'a'; 100_000]).is(413);
    let html = site.get("/watches").is(200).text();
    assert!(html.contains("<td><code>example.org</code></td><td></td><td><code>.clock</code></td>"), "{html}");
    site.get("/watches/pick?url=http://nobody.example/").is(404);
    // A feed is that of its watch, and of nothing else.
    assert!(!site.get("/changes/feed.atom?watch=press").is(200).text().contains("<entry>"));
}

#[test]
fn parts_of_a_page_are_chosen_by_pointing_at_them() {
    let web = Web::of(&[]);
    let Some(browser) = Browser::start(web.port) else { return };
    let said = "<div id=\"side\"><p class=\"clock\">noon</p></div><script>top.postMessage('hacked', '*'); document.title = 'ran'</script>";
    let site = watching(said);
    let portal = format!("http://127.0.0.1:{}", site.serving.address().port());
    browser.go(&format!("{portal}/watches/pick?url={URL}"));
    // What a hand does in the frame, whose page is a stranger to ours.
    browser.enter(Some("#page"));
    browser.click(".clock");
    assert_ne!(browser.run("return document.title"), "ran", "none of its own scripts run");
    browser.enter(None);
    browser.until("document.querySelector('#rule [name=part]').value !== ''");
    let chosen = browser.run("return document.querySelector('#rule [name=part]').value");
    assert_eq!(chosen, "p.clock");
    let toml = browser.run("return document.getElementById('toml').textContent");
    assert!(toml.as_str().unwrap().contains("ignore = [\"p.clock\"]"), "{toml}");
    browser.run(&format!("document.querySelector('#rule [name=token]').value = '{TOKEN}'"));
    browser.click("#rule button");
    browser.until("document.getElementById('told').textContent.startsWith('kept')");
    browser.picture(&pictures().join("watches-pick.png"));
    assert!(site.get("/watches").is(200).text().contains("<code>p.clock</code>"));
    // Rules go by the page as it was sent: what only the browser puts into it is not named.
    let said =
        "<table class=\"prices\"><thead><tr class=\"top\"><td>head</td></tr></thead><tr><td>low</td></tr></table>";
    let site = watching(said);
    browser.go(&format!("http://127.0.0.1:{}/watches/pick?url={URL}", site.serving.address().port()));
    browser.enter(Some("#page"));
    browser.click("tbody td");
    browser.enter(None);
    browser.until("document.querySelector('#rule [name=part]').value !== ''");
    assert_eq!(browser.run("return document.querySelector('#rule [name=part]').value"), "td");
}
