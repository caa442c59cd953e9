//! What is exported can be taken back, holds what was selected and nothing else, and other people's programs read it.

mod python;
mod site;

use python::Peers;
use site::files::{HOME, Warc, arc, history, package, revisits};
use site::{Ran, Site};
use skep_warc::wacz;
use skep_warc::write::Compression;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

const NOTES: &str = "http://plain.example/";

/// Every kind of file in one archive: plain, zstd, ARC and a package besides what `skep` writes itself, in two collections.
fn filled() -> Site {
    let site = Site::new();
    let page = |compression: Compression, host: &str| {
        let (url, time) = (format!("http://{host}/"), "2010-01-01T00:00:00Z");
        Warc::new(compression).info().request(&url, time).page(&url, time, &format!("<title>of {host}</title>{host}"))
    };
    let inside = page(Compression::GZIP, "wacz.example").bytes;
    site.write("old/plain.warc", page(Compression::Plain, "plain.example").bytes);
    site.write("old/packed.warc.zst", page(Compression::ZSTD, "zstd.example").bytes);
    site.write("old/old.arc", arc("http://arc.example/a b", "20100101000000", "<title>of arc</title>arc.example"));
    site.write("old/gift.wacz", package(&[("datapackage.json", b"{}"), ("archive/data.warc.gz", &inside)]));
    site.write("history.warc.gz", history().bytes);
    site.write("revisits.warc.gz", revisits().bytes);
    site.skep(&["add", "--collection", "old", "old"]).exits(0);
    site.skep(&["add", "history.warc.gz", "revisits.warc.gz"]).exits(0);
    site
}

/// What an archive has: URL, time, type, status, digest.
fn captures(site: &Site) -> BTreeSet<Vec<String>> {
    let listed = site.skep(&["captures", "*.example.org", "--json"]).exits(0).json();
    let more = ["plain", "zstd", "arc", "wacz"].map(|host| format!("http://{host}.example/*"));
    let more = more.iter().flat_map(|url| site.skep(&["captures", url, "--json"]).exits_below(2).json());
    let field = |value: &serde_json::Value, name: &str| value[name].to_string();
    let names = ["url", "time", "type", "status", "digest"];
    listed.into_iter().chain(more).map(|value| names.iter().map(|name| field(&value, name)).collect()).collect()
}

/// A new archive of one file.
fn taken_back(file: &Path) -> Site {
    let site = Site::new();
    let added = site.skep(&["add", "--json", file.to_str().unwrap()]).exits(0).json();
    assert_eq!(added[0]["findings"], serde_json::json!([]), "{file:?}");
    site
}

/// The files inside a package, by name.
fn inside(package: &Path) -> Vec<(String, Vec<u8>)> {
    let read = |entry: &wacz::Entry| {
        let mut bytes = Vec::new();
        entry.open(package).unwrap().read_to_end(&mut bytes).unwrap();
        (entry.name.clone(), bytes)
    };
    wacz::entries(package).unwrap().iter().map(read).collect()
}

fn named<'f>(files: &'f [(String, Vec<u8>)], name: &str) -> &'f [u8] {
    &files.iter().find(|(found, _)| found == name).unwrap_or_else(|| panic!("{name} is in it")).1
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The heads and blocks of all records of a file.
fn unpacked(file: &Path) -> Vec<String> {
    let mut reader = skep_warc::Reader::open(file, skep_warc::Options::recover()).unwrap();
    let mut records = Vec::new();
    while let Some(mut record) = reader.next().unwrap() {
        let mut bytes = record.head().raw().to_vec();
        record.read_to_end(&mut bytes).unwrap();
        records.push(String::from_utf8_lossy(&bytes).into_owned());
    }
    assert!(reader.take_findings().is_empty(), "{file:?}");
    records
}

fn export(site: &Site, typed: &[&str]) -> Ran {
    site.skep(&[&["export", "--json"], typed].concat())
}

#[test]
fn a_package_comes_back_as_it_went_and_is_the_same_each_time() {
    let site = filled();
    let told = export(&site, &["--format", "wacz", "-o", "all.wacz"]).exits(0).json();
    assert_eq!(told[0]["captures"], 19, "{told:?}");
    assert_eq!((&told[0]["left_out"], &told[0]["without_original"]), (&0.into(), &1.into()), "{told:?}");
    export(&site, &["--format", "wacz", "-o", "again.wacz"]).exits(0);
    assert_eq!(std::fs::read(site.path("all.wacz")).unwrap(), std::fs::read(site.path("again.wacz")).unwrap());

    let back = taken_back(&site.path("all.wacz"));
    // A URL with a space cannot stand in a WARC file.
    let spelled = |mut all: BTreeSet<Vec<String>>| -> BTreeSet<Vec<String>> {
        let spaced = all.extract_if(.., |capture| capture[0].contains("a b")).collect::<Vec<_>>();
        all.extend(spaced.into_iter().map(|mut capture| {
            capture[0] = capture[0].replace(' ', "%20");
            capture
        }));
        all
    };
    assert_eq!(captures(&back), spelled(captures(&site)));
    for url in [
        HOME,
        NOTES,
        "http://zstd.example/",
        "http://arc.example/a%20b",
        "http://wacz.example/",
        "http://example.org/copy",
    ] {
        for form in ["--body", "--raw"] {
            let bytes = |site: &Site| site.skep(&["get", url, form]).exits(0).out;
            assert_eq!(bytes(&back), bytes(&site), "{url} {form}");
        }
    }
    back.is_sound();
    // And what was taken back is exported to the same records.
    export(&back, &["--format", "warc", "-o", "back.warc.gz"]).exits(0);
    export(&site, &["--format", "warc", "-o", "all.warc.gz"]).exits(0);
    let records = |file: PathBuf| unpacked(&file).into_iter().skip(1).collect::<BTreeSet<_>>();
    assert_eq!(records(back.path("back.warc.gz")), records(site.path("all.warc.gz")));
}

#[test]
fn a_package_lists_its_pages_and_files_and_its_index_finds_the_records() {
    let site = filled();
    export(&site, &["--format", "wacz", "-o", "all.wacz"]).exits(0);
    let files = inside(&site.path("all.wacz"));
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    let expected = [
        "archive/data-00001.warc.gz",
        "indexes/index.cdx.gz",
        "indexes/index.idx",
        "pages/pages.jsonl",
        "datapackage.json",
        "datapackage-digest.json",
    ];
    assert_eq!(names, expected);
    let list: serde_json::Value = serde_json::from_slice(named(&files, "datapackage.json")).unwrap();
    assert_eq!(list["wacz_version"], "1.1.1");
    assert_eq!(list["created"], "2022-05-07T00:00:00Z", "as old as the newest record");
    assert_eq!(list["resources"].as_array().unwrap().len(), 4);

    let pages = text(named(&files, "pages/pages.jsonl"));
    let pages: Vec<serde_json::Value> = pages.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(pages[0]["format"], "json-pages-1.0");
    let page = |url: &str| pages.iter().find(|page| page["url"] == url).unwrap_or_else(|| panic!("{url}: {pages:?}"));
    assert_eq!(
        (&page(NOTES)["title"], &page(NOTES)["ts"]),
        (&"of plain.example".into(), &"2010-01-01T00:00:00Z".into())
    );
    assert_eq!(page("http://arc.example/a b")["title"], "of arc");
    assert!(!pages.iter().any(|page| page["url"] == "http://example.org/logo.png"));
    let ids: BTreeSet<String> = pages.iter().map(|page| page["id"].to_string()).collect();
    assert_eq!(ids.len(), pages.len());

    // The index inside is that of the records inside.
    let warc = site.write("data-00001.warc.gz", named(&files, "archive/data-00001.warc.gz"));
    site.write("index.cdx.gz", named(&files, "indexes/index.cdx.gz"));
    let lines = site.shell("zcat index.cdx.gz").exits(0).text();
    assert_eq!(lines, python::skep_index(&[warc]).0);
    let listed = text(named(&files, "indexes/index.idx"));
    assert_eq!(listed.lines().count(), 2, "one block");
    assert!(listed.lines().nth(1).unwrap().starts_with(&lines[..lines.find(" {").unwrap()]), "{listed}");
}

#[test]
fn what_a_revisit_refers_to_goes_along_although_it_was_not_selected() {
    let site = filled();
    let typed = ["--format", "wacz", "--url-prefix", "http://example.org/copy", "-o", "copy.wacz"];
    let told = export(&site, &typed).exits(0).json();
    assert_eq!((&told[0]["captures"], &told[0]["originals"]), (&1.into(), &1.into()), "{told:?}");
    let back = taken_back(&site.path("copy.wacz"));
    assert_eq!(back.skep(&["get", "http://example.org/copy"]).exits(0).text(), "first");
    // In time, too.
    export(&site, &["--format", "warc", "--from", "2022-05-07", "-o", "late.warc.gz"]).exits(0);
    let back = taken_back(&site.path("late.warc.gz"));
    assert_eq!(back.skep(&["get", "http://example.org/news/a", "--at", "2022"]).exits(0).text(), "news a");
}

#[test]
fn what_was_removed_or_made_with_secrets_or_forbidden_stays() {
    let site = Site::new();
    let (time, shown, secret) = ("2020-01-01T00:00:00Z", "http://a.example/shown", "http://a.example/secret");
    let file = Warc::gzip()
        .info()
        .page(shown, time, "for all")
        .private(secret, time, "with a cookie")
        .request("http://a.example/gone", time)
        .page("http://a.example/gone", time, "to be removed")
        .page("http://b.example/", "2021-01-01T00:00:00Z", "a rule says no");
    // Its only original is private.
    let file = file.same_as("http://a.example/same", "2020-02-01T00:00:00Z", "with a cookie", None);
    site.write("a.warc.gz", file.bytes);
    site.skep(&["add", "a.warc.gz"]).exits(0);
    site.skep(&["remove", "http://a.example/gone", "--reason", "asked"]).exits(0);
    site.write("rules.toml", "[[rule]]\nurls = [\"*.b.example\"]\naction = \"block\"");
    for format in ["wacz", "warc", "cdxj", "files"] {
        let out = format!("out.{format}");
        let told = export(&site, &["--format", format, "--rules", "rules.toml", "-o", &out]);
        // What refers to a private capture has no body to be a file.
        let (code, captures) = if format == "files" { (3, 1) } else { (0, 2) };
        let told = told.exits(code).json();
        assert_eq!(told[0]["captures"], captures, "{format}: {told:?}");
        let all = match format {
            "wacz" => {
                let files = inside(&site.path(&out));
                let warc = site.write("inside.warc.gz", named(&files, "archive/data-00001.warc.gz"));
                unpacked(&warc).concat() + &text(named(&files, "pages/pages.jsonl"))
            }
            "warc" => unpacked(&site.path(&out)).concat(),
            "files" => {
                let manifest = std::fs::read_to_string(site.path(&out).join("skep-manifest.jsonl")).unwrap();
                manifest
                    + &tree(&site.path(&out)).into_iter().map(|(path, content)| path + &content).collect::<String>()
            }
            _ => std::fs::read_to_string(site.path(&out)).unwrap(),
        };
        assert!(all.contains(shown), "{format}");
        for never in ["a.example/secret", "cookie", "a.example/gone", "to be removed", "b.example", "says no"] {
            assert!(!all.contains(never), "{format}: {never} in {all}");
        }
    }
    // The archive's own rules hold without being typed, behind those that are.
    let own = site.archive().join("settings/access.toml");
    std::fs::write(&own, "version = 1\n[[rule]]\nurls = [\"*.b.example\"]\naction = \"block\"\n").unwrap();
    let lines =
        |words: &[&str]| site.skep(&[&["export", "--format", "cdxj", "-o", "-"], words].concat()).exits(0).text();
    assert!(lines(&[]).contains("a.example") && !lines(&[]).contains("b.example"), "{}", lines(&[]));
    site.write("all.toml", "[[rule]]\nurls = [\"*\"]\naction = \"allow\"");
    assert!(lines(&["--rules", "all.toml"]).contains("b.example"));
    std::fs::write(&own, "version = 1\n[[rule]]\nurls = [\"*\"]\naction = \"hide\"\n").unwrap();
    site.skep(&["export", "--format", "cdxj", "-o", "-"]).fails("access.toml makes no sense");
    std::fs::write(&own, "version = 2\n").unwrap();
    site.skep(&["export", "--format", "cdxj", "-o", "-"]).fails("has format version 2");
    std::fs::remove_file(&own).unwrap();
    site.write("no.toml", "[[rule]]\nurls = [\"*\"]\naction = \"block\"");
    let none = site.skep(&["export", "--format", "wacz", "--rules", "no.toml", "-o", "none.wacz"]).exits(1);
    assert!(none.talk.contains("nothing is selected"), "{}", none.talk);
    assert!(!site.path("none.wacz").exists());
}

#[test]
fn large_exports_become_several_files() {
    let site = Site::new();
    let page = |n: usize| {
        let body: String = (0..2000).map(|i| char::from(b'a' + ((i * i * 7 + n * 13 + i / 3) % 26) as u8)).collect();
        (format!("http://a.example/{n}"), body)
    };
    let file =
        (0..12).map(page).fold(Warc::gzip().info(), |file, (url, body)| file.page(&url, "2020-01-01T00:00:00Z", &body));
    site.write("a.warc.gz", file.bytes);
    site.skep(&["add", "a.warc.gz"]).exits(0);
    let told = export(&site, &["--format", "warc", "--warc-size", "4096", "-o", "out.warc.gz"]).exits(0).json();
    let files: Vec<PathBuf> = told[0]["files"].as_array().unwrap().iter().map(|f| f.as_str().unwrap().into()).collect();
    assert!(files.len() > 1 && files[1].ends_with("out-00002.warc.gz"), "{told:?}");
    assert!(!site.path("out.warc.gz").exists());
    let mut pages = 0;
    for file in &files {
        let records = unpacked(file);
        assert!(records[0].contains("WARC-Type: warcinfo"), "{file:?}");
        assert!(file.metadata().unwrap().len() <= 4096 || records.len() == 2, "{file:?}");
        pages += records.len() - 1;
    }
    assert_eq!(pages, 12);
    export(&site, &["--format", "wacz", "--warc-size", "4096", "-o", "out.wacz"]).exits(0);
    let back = taken_back(&site.path("out.wacz"));
    assert_eq!(back.skep(&["get", "http://a.example/11"]).exits(0).text(), page(11).1);
    // Names that would be taken are looked at before the work begins.
    export(&site, &["--format", "warc", "--warc-size", "4096", "-o", "out.warc.gz"])
        .fails("out-00001.warc.gz exists already");
}

#[test]
fn the_index_of_a_part_is_that_part_of_the_index() {
    let site = filled();
    let files = ["history.warc.gz", "revisits.warc.gz", "old/plain.warc", "old/packed.warc.zst", "old/gift.wacz"];
    let whole = python::skep_index(&files.map(|name| site.path(name))).0;
    let typed = ["--format", "cdxj", "--url-prefix", "*.example.org", "-o", "part.cdxj"];
    let told = export(&site, &typed).exits(0).json();
    let part = std::fs::read_to_string(site.path("part.cdxj")).unwrap();
    let expected: String =
        whole.lines().filter(|line| line.starts_with("org,example")).map(|l| format!("{l}\n")).collect();
    assert_eq!(part, expected);
    assert_eq!(told[0]["captures"], part.lines().count());
    // To standard output, by collection and time.
    let said =
        site.skep(&["export", "--format", "cdxj", "--collection", "old", "--to", "2010", "-o", "-"]).exits(0).text();
    let old = python::skep_index(
        &["old/plain.warc", "old/packed.warc.zst", "old/gift.wacz", "old/old.arc"].map(|name| site.path(name)),
    )
    .0;
    assert_eq!(said, old);
}

#[test]
fn a_record_that_cannot_be_read_is_left_out_and_told() {
    let site = Site::new();
    let file = Warc::gzip().info().page("http://a.example/1", "2020-01-01T00:00:00Z", "one").page(
        "http://a.example/2",
        "2020-01-02T00:00:00Z",
        &"two".repeat(100),
    );
    let path = site.write("a.warc.gz", &file.bytes);
    site.skep(&["add", "a.warc.gz"]).exits(0);
    let mut damaged = file.bytes.clone();
    let at = damaged.len() - 30;
    damaged[at] ^= 0x55;
    let modified = path.metadata().unwrap().modified().unwrap();
    std::fs::write(&path, damaged).unwrap();
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
    let told = export(&site, &["--format", "wacz", "-o", "a.wacz"]).exits(3);
    assert!(told.talk.contains("is left out"), "{}", told.talk);
    assert_eq!((&told.json()[0]["captures"], &told.json()[0]["left_out"]), (&1.into(), &1.into()));
    assert_eq!(taken_back(&site.path("a.wacz")).skep(&["get", "http://a.example/1"]).exits(0).text(), "one");
}

#[test]
fn wrong_use_is_told_and_leaves_nothing_behind() {
    let site = filled();
    let before = site.root().read_dir().unwrap().count();
    let wacz = ["--format", "wacz", "-o"];
    export(&site, &[&wacz[..], &["history.warc.gz"]].concat()).fails("exists already");
    export(&site, &[&wacz[..], &["nowhere/a.wacz"]].concat()).fails("nowhere");
    export(&site, &[&wacz[..], &["-"]].concat()).fails("standard output");
    export(&site, &[&wacz[..], &["a.wacz", "--collection", "new"]].concat()).fails("no collection").hints("added, old");
    export(&site, &[&wacz[..], &["a.wacz", "--warc-size", "1"]].concat()).fails("too small");
    export(&site, &[&wacz[..], &["a.wacz", "--from", "soon"]].concat()).fails("not a time");
    export(&site, &[&wacz[..], &["a.wacz", "--url-prefix", "http://nobody.example/"]].concat()).exits(1);
    export(&site, &[&wacz[..], &["a.wacz", "--from", "2030"]].concat()).exits(1);
    assert_eq!(site.root().read_dir().unwrap().count(), before);
}

#[test]
fn a_full_disk_leaves_nothing_behind() {
    let site = filled();
    // A limit on the length of files stands for a full disk.
    let line = "trap '' XFSZ; ulimit -f 1; skep export --format wacz -o a.wacz";
    let ran = site.shell(line);
    assert_eq!(ran.code, 2, "{}", ran.talk);
    assert!(ran.talk.contains("cannot write"), "{}", ran.talk);
    let left: Vec<_> = site.root().read_dir().unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().contains("part") || name == "a.wacz"), "{left:?}");
}

// ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────────

/// Paths and contents of all files below a folder, without the manifest.
fn tree(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut waiting = vec![folder.to_path_buf()];
    while let Some(next) = waiting.pop() {
        for entry in next.read_dir().unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().display().to_string();
                found.push((name, String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned()));
            }
        }
    }
    found.retain(|(name, _)| name != "skep-manifest.jsonl");
    found.sort();
    found
}

fn listed(files: &[(String, String)]) -> Vec<(&str, &str)> {
    files.iter().map(|(name, content)| (name.as_str(), content.as_str())).collect()
}

#[test]
fn an_owner_gets_his_site_back_as_it_was_last_or_at_a_time() {
    let site = filled();
    let typed = ["--format", "files", "--url-prefix", "http://example.org/", "-o"];
    let told = export(&site, &[&typed[..], &["site"]].concat()).exits(3);
    assert!(told.talk.contains("http://example.org/lost"), "whose only capture refers to nothing: {}", told.talk);
    let files = tree(&site.path("site"));
    let expected = [
        ("example.org/copy", "first"),
        ("example.org/index.html", "unpacked"),
        ("example.org/logo.png", "\u{fffd}PNG not really"),
        ("example.org/news/a", "news a"),
        ("example.org/notes.txt", "HTTP/1.1 is a protocol"),
    ];
    assert_eq!(listed(&files), expected);
    let manifest = std::fs::read_to_string(site.path("site/skep-manifest.jsonl")).unwrap();
    let lines: Vec<serde_json::Value> = manifest.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), expected.len());
    let home = lines.iter().find(|line| line["file"] == "example.org/index.html").unwrap();
    assert_eq!(
        (&home["url"], &home["time"], &home["bytes"]),
        (&HOME.into(), &"2020-02-02T02:02:02Z".into(), &8.into())
    );

    export(&site, &[&typed[..], &["then", "--to", "2018"]].concat()).exits(0);
    assert_eq!(listed(&tree(&site.path("then"))), [("example.org/index.html", "second once more")]);
    export(&site, &[&typed[..], &["then"]].concat()).fails("exists already");
}

#[test]
fn urls_that_want_the_same_place_each_get_one() {
    let site = Site::new();
    let time = "2020-01-01T00:00:00Z";
    let urls = [
        "http://a.example/a",
        "http://a.example/a/b",
        "http://a.example/a/index.html",
        "http://a.example/a/index.html/deeper",
        "http://a.example/c/",
        "http://a.example/c/index.html",
        "https://a.example/c/",
        "http://a.example/%2e%2e/%2e%2e/up",
        "http://a.example/x?y=../../z",
        "http://a.example:8080/",
    ];
    let file = urls.iter().fold(Warc::gzip().info(), |file, url| file.page(url, time, url));
    site.write("a.warc.gz", file.bytes);
    site.skep(&["add", "a.warc.gz"]).exits(0);
    export(&site, &["--format", "files", "-o", "site"]).exits(0);
    let files = tree(&site.path("site"));
    let content: BTreeSet<&str> = files.iter().map(|(_, content)| content.as_str()).collect();
    // One page by two schemes is one page; every other URL has a file of its own.
    assert_eq!(content.len(), urls.len() - 1, "{files:?}");
    assert_eq!(files.len(), content.len(), "{files:?}");
    let manifest = std::fs::read_to_string(site.path("site/skep-manifest.jsonl")).unwrap();
    for line in manifest.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()) {
        let path = line["file"].as_str().unwrap();
        let held = std::fs::read_to_string(site.path("site").join(path)).unwrap_or_else(|_| panic!("{line}"));
        assert_eq!(held, line["url"].as_str().unwrap(), "{line}");
    }
    export(&site, &["--format", "files", "-o", "again"]).exits(0);
    assert_eq!(tree(&site.path("again")), files);
}

// ── other people's programs ──────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn wacz_validates_it_and_pywb_replays_it() {
    let Some(peers) = Peers::find() else { return };
    let site = filled();
    let again = "http://again.example/";
    let origin = Some((HOME, "2017-01-01T10:00:00Z"));
    site.write("again.warc.gz", Warc::gzip().same_as(again, "2022-01-01T00:00:00Z", "first", origin).bytes);
    site.skep(&["add", "again.warc.gz"]).exits(0);
    export(&site, &["--format", "wacz", "-o", "all.wacz"]).exits(0);
    let told = python::text(&python::run(peers.program("wacz").args(["validate", "-f"]).arg(site.path("all.wacz"))));
    assert!(!told.to_lowercase().contains("invalid") && !told.contains("Fail"), "{told}");

    let files = inside(&site.path("all.wacz"));
    site.write("unpacked/data-00001.warc.gz", named(&files, "archive/data-00001.warc.gz"));
    site.write("index.cdx.gz", named(&files, "indexes/index.cdx.gz"));
    site.shell("zcat index.cdx.gz > index.cdxj").exits(0);
    let mut pywb = peers.script("replay.py");
    let pywb = pywb.arg(site.path("index.cdxj")).arg(site.path("unpacked"));
    let mut child = pywb.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let urls = [NOTES, "http://wacz.example/", "http://zstd.example/", again];
    child.stdin.take().unwrap().write_all(urls.map(|url| format!("{url}\n")).concat().as_bytes()).unwrap();
    let answers = python::text(&child.wait_with_output().unwrap());
    for (url, answer) in urls.iter().zip(answers.lines()) {
        let answer: serde_json::Value = serde_json::from_str(answer).unwrap();
        let body = site.skep(&["get", url]).exits(0).out;
        let digest = skep_warc::digest::Digest::of(skep_warc::digest::Algorithm::Sha256, &body).hex();
        assert_eq!((&answer["status"], &answer["body"]), (&200.into(), &digest.into()), "{url}: {answer}");
    }
    assert_eq!(answers.lines().count(), urls.len());
}

#[test]
fn warcio_checks_the_records_and_everybody_finds_them_in_the_same_places() {
    let Some(peers) = Peers::find() else { return };
    let site = filled();
    // Of a chunked body warcio takes the digest with its chunks, Skep without, as the standard says: none before 2020.
    export(&site, &["--format", "warc", "--to", "2019", "-o", "early.warc.gz"]).exits(0);
    let checked = python::run(peers.program("warcio").args(["check", "-v"]).arg(site.path("early.warc.gz")));
    let said = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success() && said.matches("digest pass").count() > 10, "{said}");
    export(&site, &["--format", "warc", "-o", "all.warc.gz"]).exits(0);
    let file = site.path("all.warc.gz");
    let judged = peers.judge(std::slice::from_ref(&file)).remove(0);
    assert_eq!(judged.why, None);
    let ours = python::places(&file);
    assert_eq!(judged.warcio.as_ref(), Some(&ours));
    assert_eq!(judged.fastwarc, Some(ours.iter().map(|place| place.0).collect()));
    assert_eq!(judged.index, Some(python::skep_index(&[&file]).0));
}
