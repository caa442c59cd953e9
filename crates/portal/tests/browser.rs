//! Archived pages in a real browser. Everything but this machine is behind a proxy that is the live web: it would answer, and writes
//! down who asks.

#[path = "browser/driver.rs"]
mod driver;
#[path = "browser/picture.rs"]
mod picture;
mod site;
#[path = "browser/web.rs"]
mod web;

use driver::{Browser, pictures};
use picture::Picture;
use site::{Site, Warc, add};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use web::{File, Web, files};

const SEEN: &str = include_str!("browser/seen.js");
const TIME: &str = "2020-01-02T03:04:05Z";
const DIGITS: &str = "20200102030405";

fn warc(files: &[File], time: &str) -> Vec<u8> {
    files.iter().fold(Warc::new(), |warc, file| warc.page(&file.url, time, &file.media_type, &file.body)).bytes
}

/// What the browser itself asks of its makers, whatever page is shown.
fn is_the_browsers_own(request: &str) -> bool {
    const HOSTS: [&str; 7] = [
        "accounts.google.com",
        "android.clients.google.com",
        "clients2.google.com",
        "content-autofill.googleapis.com",
        "optimizationguide-pa.googleapis.com",
        "start.duckduckgo.com",
        "update.googleapis.com",
    ];
    let address = request.split(' ').nth(1).unwrap_or_default().trim_start_matches("http://");
    HOSTS.contains(&address.split(['/', ':']).next().unwrap_or_default())
}

fn leaks(web: &Web) -> Vec<String> {
    web.asked().into_iter().filter(|request| !is_the_browsers_own(request)).collect()
}

fn portal(site: &Site) -> String {
    format!("http://127.0.0.1:{}", site.serving.address().port())
}

fn replay(site: &Site) -> String {
    format!("http://replay.localhost:{}", site.serving.address().port())
}

#[test]
fn pages_that_build_themselves_are_the_same_as_when_they_were_live() {
    let files = files(include_str!("browser/pages.txt"));
    let web = Web::of(&files);
    let Some(browser) = Browser::start(web.port) else { return };
    let site = Site::new(&[("pages", "pages.warc.gz", warc(&files, TIME))]);
    for name in [
        "start", "modules", "imports", "workers", "images", "write", "history", "messages", "blobs", "requests",
        "storage",
    ] {
        let url = format!("http://pages.example/{name}/");
        browser.go(&url);
        browser.ready();
        let live = browser.run(SEEN).as_str().unwrap().to_owned();
        assert!(!live.contains("error:") && !live.contains("rejected:"), "{name} is at fault itself:\n{live}");
        assert!(!web.asked().is_empty(), "{name} was live");
        browser.go(&format!("{}/web/{DIGITS}mp_/{url}", replay(&site)));
        browser.ready();
        let archived = browser.run(SEEN).as_str().unwrap().to_owned();
        browser.picture(&pictures().join(format!("replay-{name}.png")));
        assert_eq!(archived, live, "{name}");
        assert_eq!(leaks(&web), [""; 0], "{name}");
    }
}

#[test]
fn whoever_clicks_through_stays_in_the_archive_and_at_the_date() {
    let old = files(include_str!("browser/pages.txt"));
    let new: Vec<File> = old
        .iter()
        .map(|file| File {
            body: String::from_utf8_lossy(&file.body).replace("Next", "Later").into_bytes(),
            ..file.clone()
        })
        .collect();
    let web = Web::of(&new);
    let Some(browser) = Browser::start(web.port) else { return };
    let site = Site::new(&[
        ("pages", "old.warc.gz", warc(&old, TIME)),
        ("pages", "new.warc.gz", warc(&new, "2024-01-02T03:04:05Z")),
    ]);
    let start = || {
        browser.go(&format!("{}/web/{DIGITS}/http://pages.example/start/", portal(&site)));
        browser.enter(Some("iframe"));
        browser.ready();
    };
    let in_page = |body: &str| browser.run(body).as_str().unwrap_or_default().to_owned();
    let arrived = |wanted: &str, title: &str| {
        browser.until(&format!("document.readyState === 'complete' && document.URL === '{wanted}'"));
        assert_eq!(in_page("return document.querySelector('h1').textContent"), title);
        let real = in_page("return performance.getEntriesByType('navigation')[0].toJSON().name || ''");
        assert!(real.contains(wanted), "{real}");
        assert_eq!(leaks(&web), [""; 0]);
    };

    start();
    assert_eq!(browser.run("return document.querySelector('img').naturalWidth"), 7);
    assert_eq!(in_page("return getComputedStyle(document.querySelector('.marked')).color"), "rgb(1, 2, 3)");
    assert_eq!(in_page("return getComputedStyle(document.querySelector('.marked')).borderTopColor"), "rgb(4, 5, 6)");
    browser.enter(None);
    browser.picture(&pictures().join("frame.png"));
    browser.enter(Some("iframe"));

    browser.click("#next");
    arrived("http://pages.example/next/", "Next");
    // The frame around it follows.
    browser.enter(None);
    browser.until("document.title === 'Next'");
    assert_eq!(in_page("return location.pathname"), format!("/web/{DIGITS}/http://pages.example/next/"));
    browser.enter(Some("iframe"));
    browser.click("#back");
    browser.until("document.title === 'Start'");

    start();
    browser.click("#top");
    arrived("http://pages.example/next/", "Next");
    start();
    browser.click("#blank");
    arrived("http://pages.example/next/", "Next");
    start();
    browser.click("#scripted");
    arrived("http://pages.example/next/?scripted", "Scripted");
    start();
    browser.run("document.getElementById('form').requestSubmit()");
    arrived("http://pages.example/next/?q=bee", "Asked for a bee");

    // Four years later, the same page leads to another.
    browser.go(&format!("{}/web/20240102030405mp_/http://pages.example/start/", replay(&site)));
    browser.ready();
    browser.click("#next");
    arrived("http://pages.example/next/", "Later");
}

#[test]
fn the_frame_says_how_far_apart_the_parts_of_a_page_are() {
    let web = Web::of(&[]);
    let Some(browser) = Browser::start(web.port) else { return };
    let page = |title: &str| {
        format!("<!doctype html><title>{title}</title><link rel=stylesheet href=/gone.css><img src=/a.svg><a id=next href=/next>next</a>").into_bytes()
    };
    let image = b"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"7\" height=\"5\"/>";
    let warc = Warc::new()
        .page("http://apart.example/", TIME, "text/html", &page("First"))
        .page("http://apart.example/a.svg", "2020-01-02T06:04:05Z", "image/svg+xml", image)
        .page("http://apart.example/next", TIME, "text/html", b"<!doctype html><title>Next</title>");
    let site = Site::new(&[("pages", "apart.warc.gz", warc.bytes)]);
    browser.go(&format!("{}/web/{DIGITS}/http://apart.example/", portal(&site)));
    let says = |text: &str| browser.until(&format!("document.getElementById('parts').textContent === '{text}'"));
    says("this page’s parts are 3 hours apart, 1 missing");
    let to = browser.run("return document.getElementById('parts').pathname + document.getElementById('parts').search");
    assert!(to.as_str().unwrap().starts_with("/completeness?url=http%3A%2F%2Fapart.example%2F&time="), "{to}");
    browser.picture(&pictures().join("frame-parts.png"));
    // It follows whoever clicks on.
    browser.enter(Some("iframe"));
    browser.click("#next");
    browser.enter(None);
    says("this page has no parts of its own");
    assert_eq!(leaks(&web), [""; 0]);
}

#[test]
fn nobody_gets_out() {
    let web = Web::of(&files(include_str!("browser/escape.txt")));
    let Some(browser) = Browser::start(web.port) else { return };
    // The portal's address must be in what is archived before there is a portal.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let text = include_str!("browser/escape.txt").replace("PORTAL/", &format!("http://127.0.0.1:{port}/"));
    let archived: Vec<File> = files(&text).into_iter().filter(|file| !file.url.contains("live.example")).collect();
    let site = Site::with(&[("pages", "evil.warc.gz", warc(&archived, TIME))], |mut settings| {
        settings.listen.set_port(port);
        settings
    });
    browser.go(&format!("{}/health", portal(&site)));
    browser.run("document.cookie = 'portal-secret=1'; localStorage.setItem('portal-secret', '1')");
    browser.go(&format!("{}/web/{DIGITS}/http://evil.example/", portal(&site)));
    browser.enter(Some("iframe"));
    browser.ready();
    let told = browser.run("return document.querySelector('pre').textContent").as_str().unwrap().to_owned();
    eprintln!("{told}");
    for line in told.lines() {
        let what = line.split_once(": ").map_or("", |(_, what)| what);
        let out = ["READ", "ANSWERED 200", "LOADED", "OPEN", "REGISTERED"];
        assert!(!out.iter().any(|word| what.starts_with(word)), "{line}");
    }
    assert_eq!(leaks(&web), [""; 0], "{told}");
    browser.enter(None);
    let top = browser.run("return location.href");
    assert!(top.as_str().unwrap().starts_with(&portal(&site)), "the top frame is where it was: {top}");

    // A page that leaves by itself, alone in a window and in its frame.
    for address in [
        format!("{}/web/{DIGITS}mp_/http://leaving.example/", replay(&site)),
        format!("{}/web/{DIGITS}/http://leaving.example/", portal(&site)),
    ] {
        let asked = |log: &[String]| log.iter().filter(|line| line.contains("live.example/leaving")).count();
        let before = asked(&site.log.lock().unwrap());
        browser.go(&address);
        // It arrives in the archive instead, where there is no such page.
        while asked(&site.log.lock().unwrap()) == before {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        assert_eq!(leaks(&web), [""; 0], "{address}");
    }
}

/// A peer that serves the same files: pywb.
struct Pywb {
    child: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

impl Pywb {
    fn start(python: &Path, file: &Path) -> Pywb {
        let folder = tempfile::tempdir().unwrap();
        let tools = python.parent().unwrap();
        let run = |arguments: &[&str]| {
            let status = Command::new(tools.join("wb-manager"))
                .args(arguments)
                .current_dir(folder.path())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
            assert!(status.unwrap().success(), "wb-manager {arguments:?}");
        };
        run(&["init", "acid"]);
        run(&["add", "acid", file.to_str().unwrap()]);
        // Without its frame, the page is the window's own as ours is.
        std::fs::write(folder.path().join("config.yaml"), "framed_replay: false\n").unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut child = Command::new(tools.join("wayback"))
            .args(["-b", "127.0.0.1", "-p", &port.to_string()])
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let listens = lines.by_ref().map_while(Result::ok).any(|line| line.contains("Starting Gevent Server"));
        assert!(listens, "pywb says where it listens");
        std::thread::spawn(move || lines.for_each(drop));
        // It says so a moment before it does.
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(child.try_wait().unwrap().is_none(), "pywb ended");
            std::thread::yield_now();
        }
        Pywb { child, port, _folder: folder }
    }
}

impl Drop for Pywb {
    fn drop(&mut self) {
        let _killed = self.child.kill();
        let _gone = self.child.wait();
    }
}

/// How many of the acid test's little squares are blue, and how many there are.
fn acid_score(browser: &Browser, url: &str, picture: &Path) -> (usize, usize) {
    browser.go(url);
    // Some of them change after two seconds, and one when the page is scrolled.
    browser.run_until("scrollTo(0, 50); setTimeout(() => { scrollTo(0, 0); setTimeout(done, 500); }, 3000)");
    let squares = browser.run(
        "return [...document.querySelectorAll('#test1 > *, #scriptParent > *, #html5Parent > *')]\
         .filter((one) => one.getClientRects().length && one.localName !== 'script')\
         .map((one) => { const { left, top, width, height } = one.getBoundingClientRect(); return [left + width / 2, top + height / 2]; })",
    );
    browser.picture(picture);
    let picture = Picture::read(&std::fs::read(picture).unwrap());
    let squares = squares.as_array().unwrap();
    let blue = squares.iter().filter(|square| {
        let [red, green, blue] = picture.at(square[0].as_f64().unwrap() as usize, square[1].as_f64().unwrap() as usize);
        blue > 128 && red < 128 && green < 200
    });
    (blue.count(), squares.len())
}

fn corpora() -> Option<PathBuf> {
    let folder = std::env::var_os("SKEP_CORPORA").map(PathBuf::from);
    if folder.is_none() {
        eprintln!("corpus tests not run: SKEP_CORPORA is not set");
    }
    folder
}

#[test]
fn acid_tests_are_passed_as_well_as_by_pywb() {
    let (Some(corpora), Some(python)) = (corpora(), std::env::var_os("SKEP_PYTHON")) else { return };
    let web = Web::of(&[]);
    let Some(browser) = Browser::start(web.port) else { return };
    for (name, time) in
        [("acid.matkelly.com-20140716200357", "20140716200243"), ("acidtest-20180203004221", "20180203004147")]
    {
        let file = corpora.join("archives/acid").join(format!("{name}.warc.gz"));
        let site = Site::new(&[]);
        add(&site.archive, "acid", &file);
        let ours = format!("{}/web/{time}mp_/http://acid.matkelly.com/", replay(&site));
        let ours = acid_score(&browser, &ours, &pictures().join(format!("acid-{}.png", &time[..4])));
        assert_eq!(leaks(&web), [""; 0], "{name}");
        let pywb = Pywb::start(Path::new(&python), &file);
        let theirs = format!("http://localhost:{}/acid/{time}/http://acid.matkelly.com/", pywb.port);
        let theirs = acid_score(&browser, &theirs, &pictures().join(format!("acid-{}-pywb.png", &time[..4])));
        web.asked();
        eprintln!("{name}: {} of {}, pywb {} of {}", ours.0, ours.1, theirs.0, theirs.1);
        assert!(ours.0 >= theirs.0 && ours.1 == theirs.1, "{name}: {ours:?}, pywb {theirs:?}");
        assert!(theirs.0 >= 10, "{name}: pywb showed the page: {theirs:?}");
    }
}

/// Images and style sheets of the page that is shown, and those of them that are not there although the archive has them.
const PARTS: &str = "
    const images = [...document.images].filter((one) => one.src && !one.src.startsWith('data:') && one.loading !== 'lazy');
    const sheets = [...document.querySelectorAll('link[rel~=stylesheet]')].filter((one) => one.href && !one.disabled && !/alternate/.test(one.rel));
    const absent = [];
    const isThere = async (address) => (await fetch(address, { method: 'HEAD' })).ok;
    (async () => {
      for (const one of images) if (!(one.complete && one.naturalWidth) && await isThere(one.src)) absent.push(one.src);
      const drawn = [...document.querySelectorAll('object[data]')].filter((one) => one.contentDocument && one.contentDocument.querySelector('svg'));
      for (const one of sheets) if (!one.sheet && await isThere(one.href)) absent.push(one.href);
      done({ images: images.filter((one) => one.naturalWidth).length + drawn.length, sheets: sheets.filter((one) => one.sheet).length, absent, title: document.title });
    })().catch((error) => done({ absent: [String(error)] }));
";

#[test]
fn pages_of_other_peoples_archives_show_with_images_and_styles() {
    let Some(corpora) = corpora() else { return };
    let web = Web::of(&[]);
    let Some(browser) = Browser::start(web.port) else { return };
    let site = Site::new(&[]);
    for file in [
        "archives/pywb/iana.warc.gz",
        "archives/pywb/example.warc.gz",
        "archives/replayweb.page/example.wacz",
        "archives/replayweb.page/netpreserve-twitter.warc",
    ] {
        add(&site.archive, "others", &corpora.join(file));
    }
    let mut shown = (0, 0);
    for (name, time, url, images, sheets) in [
        ("iana", "20140126200624", "http://www.iana.org/", 1, 2),
        ("iana-numbers", "20140126200651", "http://www.iana.org/numbers", 1, 1),
        ("iana-about", "20140126200706", "http://www.iana.org/about", 1, 1),
        ("iana-domains", "20140126200825", "http://www.iana.org/domains", 1, 1),
        ("example", "20140103030321", "http://example.com?example=1", 0, 0),
        ("webrecorder", "20220916191507", "https://webrecorder.net/", 5, 2),
        ("twitter", "20190603053135", "https://twitter.com/netpreserve", 3, 1),
        ("blog", "20190603053157", "https://netpreserveblog.wordpress.com/2019/05/29/warc-10th-anniversary/", 1, 1),
    ] {
        browser.go(&format!("{}/web/{time}mp_/{url}", replay(&site)));
        let found = browser.run_until(PARTS);
        browser.picture(&pictures().join(format!("corpus-{name}.png")));
        eprintln!("{name}: {found}");
        assert_eq!(found["absent"].as_array().map(Vec::len), Some(0), "{name}: {found}");
        let counts = (found["images"].as_u64().unwrap(), found["sheets"].as_u64().unwrap());
        assert!(counts.0 >= images && counts.1 >= sheets, "{name}: {found}");
        shown = (shown.0 + counts.0, shown.1 + counts.1);
        assert_eq!(leaks(&web), [""; 0], "{name}");
    }
    eprintln!("{} images and {} style sheets", shown.0, shown.1);
}
