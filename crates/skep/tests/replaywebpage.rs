//! A package that was exported opens in ReplayWeb.page, in a real browser: pages with their images, styles and scripts.

#[path = "../../portal/tests/browser/driver.rs"]
mod driver;
#[path = "../../portal/tests/browser/web.rs"]
mod live;
mod site;

use driver::{Browser, pictures};
use site::Site;
use site::files::{Warc, message};
use skep_testweb::{HostPlan, Plan, Settings, Web, World};
use std::path::PathBuf;
use std::time::Duration;

/// The page that ReplayWeb.page shows stands in a frame below several shadow roots; this finds it, or nothing.
const FIND: &str = "
    const find = (root) => {
      for (const one of root.querySelectorAll('*')) {
        if (one.localName === 'iframe' && one.src.includes('/w/')) return one;
        const below = one.shadowRoot && find(one.shadowRoot);
        if (below) return below;
      }
      return null;
    };
    const frame = find(document);
    const page = frame && frame.contentDocument;
";

/// How long the viewer is given to show a page, and how often it is opened.
const OPENING: Duration = Duration::from_secs(40);
const OPENED_MAX: usize = 3;

#[test]
fn an_exported_package_opens_in_replaywebpage() {
    let Some(viewer) = std::env::var_os("SKEP_REPLAYWEBPAGE").map(PathBuf::from) else {
        eprintln!("tests in ReplayWeb.page not run: SKEP_REPLAYWEBPAGE is not set");
        return;
    };
    let elsewhere = live::Web::of(&[]);
    let Some(browser) = Browser::start(elsewhere.port) else { return };
    let site = Site::new();
    let files = live::files(include_str!("../../portal/tests/browser/pages.txt"));
    let warc = |time: &str, old: &str, new: &str| {
        files.iter().fold(Warc::gzip(), |warc, file| {
            let body = String::from_utf8_lossy(&file.body).replace(old, new);
            warc.answer(&file.url, time, &message("200 OK", &file.media_type, body.as_bytes()))
        })
    };
    site.write("old.warc.gz", warc("2020-01-02T03:04:05Z", "", "").bytes);
    site.write("new.warc.gz", warc("2024-01-02T03:04:05Z", "<h1>Next", "<h1>Later").bytes);
    site.skep(&["add", "old.warc.gz", "new.warc.gz"]).exits(0);
    std::fs::create_dir(site.path("served")).expect("a folder");
    for number in 0..OPENED_MAX {
        site.skep(&["export", "--format", "wacz", "-o", &format!("served/{number}.wacz")]).exits(0);
    }

    for name in ["index.html", "ui.js", "sw.js"] {
        let file = viewer.join(name);
        std::fs::copy(&file, site.path("served").join(name))
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }
    let plan = Plan::new(1).host(HostPlan::folder("localhost", site.path("served")));
    let web = Web::start(World::build(plan).expect("a world"), Settings::default()).expect("a web");
    let port = web.address("localhost").expect("an address").port();
    let show = |url: &str, time: &str| {
        let place = format!("#view=resources&url={url}&ts={time}");
        let shown = format!(
            "(() => {{ {FIND} return page && page.readyState === 'complete' && page.documentElement.hasAttribute('data-done')
               && page.querySelector('img').naturalWidth === 7 }})()"
        );
        // Where others are busy the viewer now and then stops before it shows anything, or leaves out a picture; opened again, as a
        // reader would, it shows all. Under another name, for it keeps what it has read of one.
        let opened = (0..OPENED_MAX).any(|number| {
            // What stands behind the hash is not another page; this is.
            browser.go("about:blank");
            browser.go(&format!("http://localhost:{port}/?source=http://localhost:{port}/{number}.wacz{place}"));
            browser.until_within(&shown, OPENING).is_ok()
        });
        let seen = || {
            let parts = "[...page.querySelectorAll('img')].map((one) => [one.src, one.complete, one.naturalWidth])";
            browser.run(&format!("{FIND} return page && [page.readyState, page.title, {parts}]"))
        };
        assert!(opened, "{url} of {time} is not shown, but {}", seen());
    };
    let in_page = |body: &str| browser.run(&format!("{FIND} return {body}"));

    for (time, next) in [("20200102030405", "Next"), ("20240102030405", "Later")] {
        show("http://pages.example/start/", time);
        assert_eq!(in_page("page.title"), "Start");
        let marked = "frame.contentWindow.getComputedStyle(page.querySelector('.marked'))";
        assert_eq!(in_page(&format!("{marked}.color")), "rgb(1, 2, 3)");
        assert_eq!(in_page(&format!("{marked}.borderTopColor")), "rgb(4, 5, 6)", "also what the style imports");
        browser.picture(&pictures().join(format!("replaywebpage-{}.png", &time[..4])));
        // From page to page, at the date.
        in_page("page.querySelector('#next').click()");
        browser.until(&format!(
            "(() => {{ {FIND} const title = page && page.querySelector('h1'); return title && title.textContent === '{next}' }})()"
        ));
    }
    let leaks: Vec<String> = elsewhere.asked().into_iter().filter(|asked| asked.contains(".example")).collect();
    assert!(leaks.is_empty(), "{leaks:?}");
}
