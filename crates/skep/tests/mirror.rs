//! Real documentation behind nginx, crawled by the real binary: the same pages as wget fetches, by the server's log; sound and readable
//! for warcio and FastWARC; and what pywb shows of it is what was on the disk.

#[path = "site/mirror.rs"]
mod mirror;
#[path = "site/nginx.rs"]
mod nginx;
mod python;
mod site;

use mirror::{Exception, Mirror, Only};

/// What the two crawlers do not agree on, and why: here, nothing.
const DIFFERENT: &[Exception] = &[];

#[test]
fn documentation_is_mirrored_as_wget_does() {
    let Some(mut mirror) = Mirror::find(&["git-doc", "postgresql-doc-15"]) else { return };
    mirror.serve("git.test", "git-doc/usr/share/doc/git-doc");
    mirror.serve("postgres.test", "postgresql-doc-15/usr/share/doc/postgresql-doc-15/html");
    mirror.serve_page(
        "start.test",
        "<title>Documentation</title><link rel=stylesheet href='http://postgres.test/stylesheet.css'>\
         <a href='http://git.test/'>git</a> <a href='http://postgres.test/'>PostgreSQL</a>",
    );
    let pages = mirror.crawled_as_by_wget("http://start.test/", DIFFERENT);
    assert!(pages.len() > 1300, "{} pages", pages.len());
    mirror.is_sound_for_everybody();
    mirror.is_replayed_by_pywb(&pages, 20);
}

/// The same for a large documentation.
const DIFFERENT_LARGE: &[Exception] = &[Exception {
    only: Only::Wget,
    because: "it takes the quotes of <meta http-equiv=refresh content=\"0;URL='there'\"> for a part of the URL",
    urls: Mirror::quoted_refreshes,
}];

/// The same with a documentation that is too large for every day: `cargo xtask soak mirror` says how many pages there must be.
#[test]
fn a_large_documentation_is_mirrored_as_wget_does() {
    let Some(wanted) = std::env::var("SKEP_MIRROR_PAGES").ok().and_then(|text| text.parse::<usize>().ok()) else {
        eprintln!("not run: SKEP_MIRROR_PAGES is not set; `cargo xtask soak mirror` sets it");
        return;
    };
    let Some(mut mirror) = Mirror::find(&["rust-doc"]) else { return };
    mirror.serve("rust.test", "rust-doc/usr/share/doc/rust-doc/html");
    // A third of it is linked from nowhere.
    mirror.serve_list("start.test", "rust.test");
    let pages = mirror.crawled_as_by_wget("http://start.test/", DIFFERENT_LARGE);
    assert!(pages.len() >= wanted, "{} pages", pages.len());
    mirror.is_sound_for_everybody();
    mirror.is_replayed_by_pywb(&pages, 20);
}
