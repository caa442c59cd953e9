//! Sitemaps and feeds, by hand-made files.

use skep_page::{Cut, Input, Kind, LinkKind, feed, read, sitemap};
use skep_url::Url;

fn url() -> Url {
    "http://example.org/feeds/x.xml".parse().unwrap()
}

#[test]
fn a_sitemap_lists_pages() {
    let file = br#"<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:image="i" xmlns:video="v" xmlns:xhtml="h">
 <url><loc> http://example.org/a?b&amp;c#d </loc><lastmod>2024-05-01</lastmod>
  <image:image><image:loc>http://example.org/i.png</image:loc></image:image>
  <video:video><video:thumbnail_loc>http://example.org/t.png</video:thumbnail_loc><video:content_loc>http://example.org/v.mp4</video:content_loc></video:video>
  <xhtml:link rel="alternate" hreflang="de" href="http://example.org/de"/></url>
 <url><loc><![CDATA[http://example.org/e?f&g]]></loc></url>
 <url><loc>/relative</loc></url><url><loc>mailto:x@y</loc></url><url/>
 <url><loc>http://example.org/unescaped?a=1&b=2</loc></url>
</urlset>"#;
    let found = sitemap(file);
    let entries: Vec<_> = found.entries.iter().map(|entry| (entry.url.as_str(), entry.lastmod.as_deref())).collect();
    assert_eq!(
        entries,
        [
            ("http://example.org/a?b&c", Some("2024-05-01")),
            ("http://example.org/e?f&g", None),
            ("http://example.org/unescaped?a=1&b=2", None),
        ]
    );
    let also: Vec<_> = found.also.iter().map(|link| (link.kind, link.url.as_str())).collect();
    assert_eq!(
        also,
        [
            (LinkKind::Image, "http://example.org/i.png"),
            (LinkKind::Image, "http://example.org/t.png"),
            (LinkKind::Media, "http://example.org/v.mp4"),
            (LinkKind::Alternate, "http://example.org/de"),
        ]
    );
    assert_eq!((found.more.len(), found.cut), (0, None));
    let page = read(&Input { url: &url(), head: None, body: file });
    assert_eq!((page.kind, page.links.len(), page.links[0].kind), (Kind::Sitemap, 7, LinkKind::Anchor));
}

#[test]
fn an_index_lists_sitemaps() {
    let found = sitemap(b"<s:sitemapindex xmlns:s='x'><s:sitemap><s:loc>http://example.org/1.xml.gz</s:loc><s:lastmod>2024</s:lastmod></s:sitemap></s:sitemapindex>");
    assert_eq!((found.entries.len(), found.more), (0, vec!["http://example.org/1.xml.gz".to_owned()]));
}

#[test]
fn what_is_there_is_taken() {
    let urls = |file: &str| {
        let found = sitemap(file.as_bytes());
        found.entries.into_iter().map(|entry| entry.url).chain(found.more).collect::<Vec<_>>()
    };
    assert_eq!(
        urls("<sitemapindex><sitemap>\nhttp://example.org/1\n</sitemap></sitemapindex>"),
        ["http://example.org/1"]
    );
    assert_eq!(
        urls("<sitemapindex><sitemap><loc>http://example.org/1</loc><loc>http://example.org/2</loc></sitemap>").len(),
        2
    );
    assert_eq!(urls("<urlset><url><loc>http://example.org/1</loc><las"), ["http://example.org/1"]);
    assert_eq!(
        urls("<urlset><url><loc><url><![CDATA[http://example.org/1]]></url></loc></url>"),
        ["http://example.org/1"]
    );
    assert_eq!(urls("<urlset><url><loc>http://example.org/1</loc><url><loc>http://example.org/2</loc></url>").len(), 2);
}

#[test]
fn a_sitemap_of_lines() {
    let found = sitemap("\u{feff}http://example.org/a\r\n\nhttps://example.org/é\nnone\n".as_bytes());
    let entries: Vec<_> = found.entries.iter().map(|entry| entry.url.as_str()).collect();
    assert_eq!(entries, ["http://example.org/a", "https://example.org/%C3%A9"]);
}

#[test]
fn sixteen_bits_are_read_and_entities_refused() {
    let text = "<?xml version=\"1.0\"?><urlset><url><loc>http://example.org/</loc></url></urlset>";
    let sixteen: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(sitemap(&sixteen).entries.len(), 1);
    let bomb = "<!DOCTYPE x [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;'>]><urlset><url><loc>http://example.org/&b;</loc></url></urlset>";
    assert_eq!((sitemap(bomb.as_bytes()).entries.len(), sitemap(bomb.as_bytes()).cut), (0, Some(Cut::Xml)));
    assert_eq!(feed(&url(), bomb.as_bytes()).cut, Some(Cut::Xml));
}

#[test]
fn a_sitemap_is_bounded() {
    let many: String = (0..60_000).map(|n| format!("<url><loc>http://example.org/{n}</loc></url>")).collect();
    let found = sitemap(format!("<urlset>{many}</urlset>").as_bytes());
    assert_eq!((found.entries.len(), found.cut), (50_000, Some(Cut::Entries)));
    let page = read(&Input { url: &url(), head: None, body: format!("<urlset>{many}</urlset>").as_bytes() });
    assert_eq!((page.links.len(), page.cut), (50_000, Some(Cut::Entries)));
}

#[track_caller]
fn check_feed(file: &str, title: &str, wanted: &[(&str, Option<&str>, Option<&str>)], also: &[(&str, &str)]) {
    let found = feed(&url(), file.as_bytes());
    assert_eq!(found.title.as_deref(), Some(title));
    let entries: Vec<_> =
        found.entries.iter().map(|e| (e.url.as_str(), e.title.as_deref(), e.updated.as_deref())).collect();
    assert_eq!(entries, wanted);
    let links: Vec<_> = found.also.iter().map(|link| (link.kind.code(), link.url.as_str())).collect();
    assert_eq!(links, also);
    assert_eq!(read(&Input { url: &url(), head: None, body: file.as_bytes() }).kind, Kind::Feed);
}

#[test]
fn feeds() {
    check_feed(
        "<?xml version='1.0'?><rss version='2.0'><channel><title>T &amp; U</title><link>http://example.org/</link>\
         <atom:link rel='next' href='?page=2'/><image><url>/logo.png</url></image>\
         <item><title><![CDATA[A <b>]]></title><link>/a</link><pubDate>Mon, 01 Jan 2024 00:00:00 GMT</pubDate><enclosure url='m.mp3'/></item>\
         <item><guid>http://example.org/b</guid></item><item><guid isPermaLink='false'>http://example.org/c</guid></item></channel></rss>",
        "T & U",
        &[
            ("http://example.org/a", Some("A <b>"), Some("Mon, 01 Jan 2024 00:00:00 GMT")),
            ("http://example.org/b", None, None),
        ],
        &[
            ("anchor", "http://example.org/"),
            ("feed", "http://example.org/feeds/x.xml?page=2"),
            ("image", "http://example.org/logo.png"),
            ("media", "http://example.org/feeds/m.mp3"),
        ],
    );
    check_feed(
        "<feed xmlns='http://www.w3.org/2005/Atom'><title>T</title><link href='/'/><link rel='self' href='/self'/>\
         <entry><title type='html'>A &amp;amp; B</title><link href='a'/><published>2023</published><updated>2024</updated></entry></feed>",
        "T",
        &[("http://example.org/feeds/a", Some("A &amp; B"), Some("2024"))],
        &[("anchor", "http://example.org/")],
    );
    check_feed(
        "{\"version\":\"https://jsonfeed.org/version/1.1\",\"title\":\"T\",\"home_page_url\":\"/\",\"other\":[1,{}],\
          \"items\":[{\"id\":1,\"url\":\"a\",\"title\":\"A\",\"date_published\":\"2024\",\"attachments\":[{\"url\":\"m\"}]},{\"id\":2}]}",
        "T",
        &[("http://example.org/feeds/a", Some("A"), Some("2024"))],
        &[("anchor", "http://example.org/"), ("media", "http://example.org/feeds/m")],
    );
}

#[test]
fn robots_txt_names_sitemaps() {
    let url: Url = "http://example.org/robots.txt".parse().unwrap();
    let page = read(&Input {
        url: &url,
        head: None,
        body: b"User-agent: *\nDisallow: /x\nSitemap: /map.xml\nsitemap: http://other.example/m\n",
    });
    let links: Vec<_> = page.links.iter().map(|link| (link.kind, link.url.as_str())).collect();
    assert_eq!(
        links,
        [(LinkKind::Sitemap, "http://example.org/map.xml"), (LinkKind::Sitemap, "http://other.example/m")]
    );
    assert_eq!(page.kind, Kind::Robots);
}
