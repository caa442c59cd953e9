//! Documentation behind nginx, crawled and served by the real binary, read in a real browser.

#[path = "../../portal/tests/browser/driver.rs"]
mod driver;
#[path = "site/nginx.rs"]
mod nginx;
#[path = "site/portal.rs"]
mod portal;
mod site;
#[path = "../../portal/tests/browser/web.rs"]
mod web;

use driver::{Browser, pictures};
use nginx::{Host, Nginx};
use portal::Portal;
use site::Site;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Everything of the page that should show: whether it does.
const PARTS: &str = "
    const images = [...document.images].map((one) => Boolean(one.complete && one.naturalWidth));
    const drawn = [...document.querySelectorAll('object[data]')].map((one) => Boolean(one.contentDocument && one.contentDocument.querySelector('svg')));
    const sheets = [...document.querySelectorAll('link[rel~=stylesheet]')].map((one) => Boolean(one.sheet && one.sheet.cssRules.length));
    return [images, drawn, sheets].map((all) => all.filter(Boolean).length + ' of ' + all.length).join(', ');
";

#[test]
fn documentation_that_was_crawled_can_be_read_through() {
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    let (Some(documentation), Some(nginx)) = (variable("SKEP_DOCUMENTATION"), variable("SKEP_NGINX")) else {
        eprintln!("documentation tests not run: SKEP_DOCUMENTATION and SKEP_NGINX are not set");
        return;
    };
    let web = web::Web::of(&[]);
    let Some(browser) = Browser::start(web.port) else { return };
    let site = Site::new();
    let folder = site.path("nginx");
    std::fs::create_dir_all(&folder).expect("a folder");
    let root = documentation.join("postgresql-doc-15/usr/share/doc/postgresql-doc-15/html");
    let hosts = [Host { name: "postgres.test", root: &root }];
    let live = Nginx::start(&nginx, &folder, &hosts, false).expect("nginx starts");
    let address = format!("postgres.test={}", live.address());
    let start = "http://postgres.test/index.html";
    let crawl = ["crawl", start, "--pace", "none", "--allow-private", "--own", "postgres.test", "--resolve", &address];
    site.skep(&crawl).exits(0);
    live.stop().expect("a log");

    let served = Portal::begin(&site, &[]);
    let replay =
        |path: &str| format!("http://replay.localhost:{}/web/2099mp_/http://postgres.test/{path}.html", served.port());
    for (name, parts) in [
        ("storage-page-layout", "0 of 0, 1 of 1, 1 of 1"),
        ("gin-implementation", "0 of 0, 1 of 1, 1 of 1"),
        ("sql-select", "0 of 0, 0 of 0, 1 of 1"),
    ] {
        browser.go(&replay(name));
        assert_eq!(browser.run(PARTS).as_str(), Some(parts), "{name}");
        browser.picture(&pictures().join(format!("documentation-{name}.png")));
    }
    // From page to page by the links of the pages themselves.
    browser.go(&replay("index"));
    let mut read = BTreeSet::new();
    for _ in 0..12 {
        let next =
            browser.run("return document.querySelector('a[accesskey=n]').href").as_str().expect("a link").to_owned();
        browser.click("a[accesskey=n]");
        browser.until(&format!("document.URL === '{next}' && document.readyState === 'complete'"));
        assert!(read.insert(next.clone()), "{next} again");
        assert!(browser.run(PARTS).as_str().is_some_and(|parts| parts.ends_with("1 of 1")), "{next} has its style");
    }
    let asked: Vec<String> = web.asked().into_iter().filter(|request| request.contains(".test")).collect();
    assert!(asked.is_empty(), "{asked:?}");
}
