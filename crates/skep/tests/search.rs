//! `skep search`: the real binary, alone and beside an owner.

mod site;

use site::Site;
use site::files::{HOME, Warc};

fn filled() -> Site {
    let site = Site::new();
    let warc = Warc::gzip()
        .page(HOME, "2017-01-01T10:00:00Z", "<title>Hives</title><p>woven of straw")
        .page(HOME, "2019-01-01T10:00:00Z", "<title>Hives</title><p>made of wood")
        .page("http://shop.example.org/", "2018-01-01T00:00:00Z", "<title>Shop</title><p>straw and wood");
    site.write("pages.warc.gz", warc.bytes);
    site
}

#[test]
fn texts_are_kept_from_the_first_time_they_are_asked_for() {
    let site = filled();
    site.skep(&["add", "pages.warc.gz"]).exits(0);
    site.skep(&["search", "straw"]).fails("no index of texts").hints("skep rebuild --text");
    site.skep(&["rebuild", "--text"]).exits(0);
    let found = site.skep(&["search", "straw", "--json"]).exits(0);
    let mut urls = found.each("url");
    urls.sort();
    assert_eq!(urls, [HOME, "http://shop.example.org/"]);
    assert_eq!(
        site.skep(&["search", "straw", "--at", "2020", "--json"]).exits(0).each("url"),
        ["http://shop.example.org/"]
    );
    assert_eq!(site.skep(&["search", "straw", "--url-prefix", HOME, "--json"]).exits(0).each("title"), ["Hives"]);
    assert_eq!(
        site.skep(&["search", "title:hives", "--at", "2018", "--json"]).exits(0).each("passage"),
        ["woven of straw"]
    );
    let table = site.skep(&["search", "shop"]).exits(0);
    assert_eq!(table.cells(), [["2018-01-01T00:00:00Z", "Shop", "http://shop.example.org/", "straw and wood"]]);
    site.skep(&["search", "nothinglikeit"]).exits(1);
    site.skep(&["search", "\"open"]).fails("not closed").hints("a phrase");
    site.skep(&["search", "straw", "--collection", "none"]).fails("no collection").hints("added");
    assert_eq!(site.skep(&["search", "straw", "--collection", "added", "--json"]).exits(0).json().len(), 2);
    // What comes later is read too, without being asked for.
    site.write(
        "more.warc.gz",
        Warc::gzip().page("http://late.example/", "2021-01-01T00:00:00Z", "<p>late straw").bytes,
    );
    site.skep(&["add", "more.warc.gz"]).exits(0);
    assert_eq!(site.skep(&["search", "late", "--json"]).exits(0).each("url"), ["http://late.example/"]);
    site.skep(&["remove", HOME, "--reason", "asked"]).exits(0);
    assert_eq!(site.skep(&["search", "hives", "--json"]).exits(1).json().len(), 0);
    site.is_sound();
}

#[test]
fn an_owner_answers_for_others() {
    let site = filled();
    site.skep(&["add", "--text", "pages.warc.gz"]).exits(0);
    let owner = site.begin(&["serve", "--json", "--listen", "127.0.0.1:0"]);
    assert_eq!(site.skep(&["search", "wood -shop", "--json"]).exits(0).each("url"), [HOME]);
    site.write(
        "more.warc.gz",
        Warc::gzip().page("http://late.example/", "2021-01-01T00:00:00Z", "<p>late straw").bytes,
    );
    site.skep(&["add", "more.warc.gz"]).exits(0);
    assert_eq!(site.skep(&["search", "late", "--json"]).exits(0).each("url"), ["http://late.example/"]);
    owner.kill();
    // Killed, it left nothing that the next owner cannot go on with.
    assert_eq!(site.skep(&["search", "late", "--json"]).exits(0).each("url"), ["http://late.example/"]);
}
