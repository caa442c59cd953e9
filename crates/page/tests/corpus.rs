//! The package against pages that nobody here wrote. Where they are not at hand the tests say so and pass; the behaviours have
//! fixtures of their own elsewhere.

mod oracle;

use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

use skep_page::{Input, Kind, challenge, feed, read, sitemap, text};
use skep_url::Url;
use skep_warc::coding::{self, Bounds};
use skep_warc::http::{Head, Parsed};
use skep_warc::{Options, Reader, RecordKind};

fn corpora() -> Option<PathBuf> {
    let folder = std::env::var_os("SKEP_CORPORA");
    if folder.is_none() {
        eprintln!("corpus tests not run: SKEP_CORPORA is not set");
    }
    folder.map(PathBuf::from)
}

fn file(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn files(folder: &Path, out: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() { files(&path, out) } else { out.push(path) }
    }
    out.sort();
}

/// Every page of the archives, with its head and URL.
fn archived(mut visit: impl FnMut(&Url, &Head, &[u8])) -> Option<usize> {
    let mut paths = Vec::new();
    files(&corpora()?.join("archives"), &mut paths);
    let mut pages = 0;
    for path in paths {
        let Ok(mut reader) = Reader::open(&path, Options::recover()) else { continue };
        while let Ok(Some(mut record)) = reader.next() {
            let url = record.head().target_uri().and_then(|uri| Url::parse(std::str::from_utf8(uri).ok()?).ok());
            let is_answer = record.head().is_arc() || record.head().kind() == RecordKind::Response;
            let (Some(url), true) = (url, is_answer) else { continue };
            let mut block = Vec::new();
            if record.by_ref().take(8 << 20).read_to_end(&mut block).is_err() {
                continue;
            }
            let mut head = Head::new();
            let Parsed::Complete { body } = head.parse_response(&block, true) else { continue };
            let mut bytes = Vec::new();
            let decoded = coding::decode(&head, Cursor::new(&block[body..]), Bounds::default());
            let _ = decoded.take(16 << 20).read_to_end(&mut bytes);
            visit(&url, &head, &bytes);
            pages += 1;
        }
    }
    Some(pages)
}

#[test]
fn archived_pages_have_the_links_that_html5ever_finds() {
    let (mut compared, mut links, mut wrong) = (0, 0, Vec::new());
    let pages = archived(|url, head, body| {
        let page = read(&Input { url, head: Some(head), body });
        let Ok(content) = std::str::from_utf8(body) else { return };
        if page.kind != Kind::Html || page.cut.is_some() {
            return;
        }
        let scan = oracle::scanned(url, content).expect("a page that was read whole");
        let tree = oracle::links(url, content);
        compared += 1;
        links += tree.len();
        if tree != scan {
            let only = |a: &std::collections::BTreeSet<String>, b| {
                a.difference(b).take(4).cloned().collect::<Vec<_>>().join("\n    ")
            };
            wrong.push(format!(
                "{url}\n  only html5ever:\n    {}\n  only scanner:\n    {}",
                only(&tree, &scan),
                only(&scan, &tree)
            ));
        }
    });
    let Some(pages) = pages else { return };
    eprintln!("{compared} pages of {pages} answers compared, {links} links");
    assert!(compared > 500, "only {compared} pages were compared");
    assert!(wrong.is_empty(), "{} of {compared} pages differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Archives hold what crawlers kept as content; a test for robots among it would be rare.
#[test]
fn archived_pages_are_read_whole_and_are_no_challenges() {
    let (mut cut, mut challenges, mut titled) = (0, Vec::new(), 0);
    let pages = archived(|url, head, body| {
        let page = read(&Input { url, head: Some(head), body });
        cut += usize::from(page.cut.is_some());
        titled += usize::from(page.title.is_some());
        let _ = text(&Input { url, head: Some(head), body });
        challenges.extend(challenge(head.status().unwrap_or(200), head, body).map(|who| format!("{who}: {url}")));
    });
    let Some(pages) = pages else { return };
    eprintln!("{pages} answers, {titled} with a title, {cut} cut; challenges: {challenges:?}");
    assert!(cut * 100 < pages, "{cut} of {pages} were cut");
    assert!(challenges.len() * 200 < pages, "{challenges:?}");
}

/// The pages name the charset of others and are themselves in UTF-8, which they declare.
#[test]
fn charset_vectors() {
    let Some(folder) = corpora() else { return };
    let mut paths = Vec::new();
    files(&folder.join("vectors/charset"), &mut paths);
    assert!(!paths.is_empty(), "there are no vectors");
    let url: Url = "http://example.org/".parse().unwrap();
    for path in paths {
        let body = file(&path);
        let declared = String::from_utf8_lossy(&body).to_ascii_lowercase().contains("charset=\"utf-8\"");
        let page = read(&Input { url: &url, head: None, body: &body });
        assert!(!declared || page.charset == "UTF-8", "{}: {}", path.display(), page.charset);
    }
}

#[test]
fn sitemap_vectors() {
    let Some(folder) = corpora() else { return };
    let folder = folder.join("vectors/sitemaps");
    for (name, entries, more, also) in [
        ("atom.xml", 0, 0, 5),
        ("hebdenbridgetimes-articles-sitemap.xml", 74, 0, 106),
        ("pagemaps-sitemap.xml", 2, 0, 0),
        ("shinpaideshou-news-sitemap.xml", 3, 0, 0),
        ("sitemap-images.xml", 1, 0, 2),
        ("sitemap-links.xml", 3, 0, 9),
        ("sitemap-mobile.xml", 3, 0, 0),
        ("sitemap-news.xml", 2, 0, 0),
        ("sitemap-videos-tvshow.xml", 1, 0, 3),
        ("sitemap-videos.xml", 3, 0, 7),
        ("sitemap-with-bom.txt", 2, 0, 0),
        ("sitemap.badns.xml", 2, 0, 0),
        ("sitemap.index.xml", 0, 15, 0),
        ("sitemap.ns.xml", 2, 0, 0),
        ("sitemap.txt", 2, 0, 0),
    ] {
        let found = sitemap(&file(&folder.join(name)));
        assert_eq!((found.entries.len(), found.more.len(), found.also.len()), (entries, more, also), "{name}");
        assert_eq!(found.cut, None, "{name}");
    }
    let url: Url = "http://example.org/".parse().unwrap();
    assert_eq!(feed(&url, &file(&folder.join("atom.xml"))).entries[0].url, "http://example.org/2003/12/13/atom03");
}
