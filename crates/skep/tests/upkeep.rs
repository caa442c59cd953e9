//! Checking, repairing, removing, rebuilding: what keeps an archive true.

mod site;

use site::Site;
use site::files::{HOME, Warc, digest, history, message, package, revisits};

fn filled() -> Site {
    let site = Site::new();
    site.write("history.warc.gz", history().bytes);
    site.write("revisits.warc.gz", revisits().bytes);
    site.skep(&["add", "history.warc.gz", "revisits.warc.gz"]).exits(0);
    site
}

/// The history with three things wrong: bytes between records, a record whose bytes were overwritten, and a cut at the end.
fn hurt() -> (Vec<u8>, [usize; 3]) {
    let written = history();
    let at = &written.offsets;
    let inside = at[5] - 20;
    let mut bytes = written.bytes[..at[3]].to_vec();
    bytes.extend(b"these bytes belong to nobody");
    let moved = bytes.len() - at[3];
    bytes.extend(&written.bytes[at[3]..]);
    bytes[inside + moved..inside + moved + 6].fill(0);
    bytes.truncate(at[14] + moved + 60);
    (bytes, [at[3], at[4] + moved, at[14] + moved])
}

// ── check ────────────────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn a_good_file_has_nothing_wrong() {
    let site = Site::new();
    site.write("a.warc.gz", history().bytes);
    site.write("b.wacz", package(&[("archive/a.warc.gz", &history().bytes)]));
    for name in ["a.warc.gz", "b.wacz"] {
        let checked = site.skep(&["check", "--quiet", name]).exits(0);
        assert_eq!(checked.text(), "");
        assert!(checked.talk.contains("15 records, 15 block and "), "{}", checked.talk);
        assert!(checked.talk.contains("nothing is wrong"), "{}", checked.talk);
    }
    // A file is not checked for its archive: none is needed, none is made.
    assert!(!site.archive().exists());
}

#[test]
fn each_finding_names_file_offset_and_rule() {
    let site = Site::new();
    let (bytes, offsets) = hurt();
    site.write("hurt.warc.gz", bytes);
    let checked = site.skep(&["check", "hurt.warc.gz", "--json"]).exits(1);
    for finding in checked.json() {
        assert_eq!(finding["file"], "hurt.warc.gz");
        let what = finding["what"].as_str().unwrap();
        assert!(!what.is_empty() && finding["rule"].is_string() && finding["severity"].is_string(), "{finding}");
    }
    let damage: Vec<usize> = checked
        .json()
        .iter()
        .filter(|finding| finding["severity"] == "damage")
        .map(|finding| finding["offset"].as_u64().unwrap() as usize)
        .collect();
    for offset in offsets {
        assert!(damage.contains(&offset), "{offset} in {damage:?}: {}", checked.text());
    }
    let table = site.skep(&["check", "hurt.warc.gz"]).exits(1).cells();
    assert_eq!(table[0][..3], ["damage", "hurt.warc.gz", &offsets[0].to_string()]);
}

#[test]
fn a_wrong_digest_is_a_finding_and_a_notice_is_none() {
    let site = Site::new();
    let record = |field: &str, block: &str| {
        format!(
            "WARC/1.1\r\nWARC-Type: resource\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-000000000001>\r\n\
             WARC-Date: 2021-01-01T00:00:00Z\r\nWARC-Target-URI: http://a.example/\r\nContent-Type: text/plain\r\n\
             {field}\r\nContent-Length: {}\r\n\r\n{block}\r\n\r\n",
            block.len()
        )
    };
    let lying = record(&format!("WARC-Block-Digest: {}", digest(b"something else")), "block");
    site.write("lying.warc.gz", Warc::gzip().member(lying.as_bytes()).bytes);
    assert_eq!(site.skep(&["check", "lying.warc.gz", "--json"]).exits(1).each("rule"), ["digest-block"]);
    let strange = record("WARC-Block-Digest: md17:AAAA", "block");
    site.write("strange.warc.gz", Warc::gzip().member(strange.as_bytes()).bytes);
    assert_eq!(site.skep(&["check", "strange.warc.gz", "--json"]).exits(0).each("severity"), ["notice"]);
    assert_eq!(site.skep(&["check", "strange.warc.gz", "--quiet"]).exits(0).text(), "");
}

#[test]
fn repair_writes_beside_and_never_over() {
    let site = Site::new();
    let (bytes, _) = hurt();
    site.write("hurt.warc.gz", &bytes);
    let repaired = site.skep(&["check", "hurt.warc.gz", "--repair"]).exits(3);
    assert!(repaired.talk.contains("hurt.repaired.warc.gz"), "{}", repaired.talk);
    assert_eq!(std::fs::read(site.path("hurt.warc.gz")).unwrap(), bytes, "the damaged file is as it was");

    // Only what a block that is not whole cannot mend is left to say.
    let again = site.skep(&["check", "hurt.repaired.warc.gz", "--json"]);
    for finding in again.json() {
        let rule = finding["rule"].as_str().unwrap();
        let of_content = rule.starts_with("digest-") || rule == "http-malformed" || finding["severity"] == "notice";
        assert!(of_content, "{finding}");
    }
    site.skep(&["add", "hurt.repaired.warc.gz"]).exits(0);
    assert_eq!(site.skep(&["get", HOME]).exits(0).text(), "unpacked");
    assert_eq!(site.skep(&["get", HOME, "--at", "2017"]).exits(0).text(), "first");

    let first = std::fs::read(site.path("hurt.repaired.warc.gz")).unwrap();
    site.skep(&["check", "hurt.warc.gz", "--repair"]).exits(2).hints("nothing is ever written over");
    assert_eq!(std::fs::read(site.path("hurt.repaired.warc.gz")).unwrap(), first);

    site.write("good.warc.gz", history().bytes);
    site.skep(&["check", "good.warc.gz", "--repair", "--quiet"]).exits(0);
    assert!(!site.path("good.repaired.warc.gz").exists());
}

#[test]
fn every_kind_of_file_is_repaired_into_one_of_its_kind() {
    let site = Site::new();
    let cut = |bytes: Vec<u8>| bytes[..bytes.len() - 12].to_vec();
    let arc = site::files::arc("http://arc.example/", "20100101000000", "a page of an old archive");
    site.write("old.arc", cut(arc));
    let plain = Warc::new(skep_warc::write::Compression::Plain).page(HOME, "2020-01-01T00:00:00Z", "x").bytes;
    site.write("plain.warc", [plain.as_slice(), &cut(plain.clone())].concat());
    let zstd = || Warc::new(skep_warc::write::Compression::ZSTD).page(HOME, "2020-01-01T00:00:00Z", "x");
    site.write("packed.warc.zst", cut(zstd().page(HOME, "2021-01-01T00:00:00Z", "y").bytes));
    for (name, beside, url) in [
        ("old.arc", "old.repaired.arc.gz", "arc.example"),
        ("plain.warc", "plain.repaired.warc.gz", HOME),
        ("packed.warc.zst", "packed.repaired.warc.gz", HOME),
    ] {
        site.skep(&["check", name, "--repair"]).exits(3);
        site.skep(&["add", beside]).exits(0);
        site.skep(&["captures", url]).exits(0);
    }
    site.write("broken.wacz", cut(package(&[("archive/a.warc.gz", &history().bytes)])));
    assert!(site.skep(&["check", "broken.wacz"]).exits(1).text().contains("package-damaged"));
    site.skep(&["check", "broken.wacz", "--repair"]).exits(2).hints("unpack");
    let way_out = package(&[("../../archive/a.warc.gz", &history().bytes)]);
    site.write("way-out.wacz", way_out);
    assert!(site.skep(&["check", "way-out.wacz"]).exits(1).text().contains("package-name"));
}

#[test]
fn an_archive_whose_sidecars_were_hurt_is_repaired_from_its_records() {
    let site = filled();
    site.skep(&["remove", "http://example.org/news/b", "--reason", "a record of our own"]).exits(0);
    let sidecar = segment_sidecar(&site);
    let mut bytes = std::fs::read(&sidecar).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    std::fs::write(&sidecar, bytes).unwrap();
    let checked = site.skep(&["check", "--json"]);
    if checked.code == 1 {
        site.skep(&["check", "--repair"]).exits(3);
    }
    site.is_sound();
    site.skep(&["captures", "http://example.org/news/b"]).exits(1);
}

fn segment_sidecar(site: &Site) -> std::path::PathBuf {
    let mut folders = vec![site.archive().join("segments")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            match entry.path() {
                path if path.is_dir() => folders.push(path),
                path if path.to_string_lossy().ends_with(".idx") => return path,
                _ => {}
            }
        }
    }
    panic!("no sidecar of a segment");
}

// ── remove ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/// Both ways of building the views again change no answer.
#[track_caller]
fn holds_after_rebuilding(site: &Site, holds: impl Fn()) {
    holds();
    for typed in [["rebuild"].as_slice(), &["rebuild", "--reparse"]] {
        site.skep(typed).exits(0);
        holds();
    }
    site.is_sound();
}

#[test]
fn a_removed_url_is_in_no_answer() {
    let site = filled();
    let removed = site.skep(&["remove", HOME, "--reason", "asked by its owner", "--json"]).exits(0);
    let object = &removed.json()[0];
    // Five captures, and the request and the metadata of the first.
    assert_eq!((object["removed"].as_u64(), object["only_hidden"].as_u64()), (Some(7), Some(7)));
    assert_eq!(object["positions"].as_array().unwrap().len(), 7);
    holds_after_rebuilding(&site, || {
        site.skep(&["captures", HOME]).exits(1);
        site.skep(&["get", HOME]).exits(1);
        site.skep(&["get", HOME, "--at", "2018"]).exits(1);
        assert_eq!(site.skep(&["captures", "example.org", "--match", "host", "--json"]).exits(0).json().len(), 7);
        assert_eq!(site.skep(&["stats", "--json"]).exits(0).json()[0]["captures"], 10);
        // Nor does another URL's revisit lead to it.
        site.skep(&["get", "http://example.org/copy"]).fails("is a revisit");
    });
    let again = site.skep(&["remove", HOME, "--reason", "asked by its owner"]).exits(1);
    assert_eq!(again.talk, "nothing to remove\n");
    assert_eq!(
        std::fs::read(site.path("history.warc.gz")).unwrap(),
        history().bytes,
        "others' files are never changed"
    );
    // Adding the file again does not bring it back.
    site.skep(&["add", "history.warc.gz"]).exits(0);
    site.skep(&["captures", HOME]).exits(1);
}

#[test]
fn a_removed_prefix_takes_everything_below_it() {
    let site = filled();
    let removed = site.skep(&["remove", "--prefix", "http://example.org/news/", "--reason", "not public"]).exits(0);
    assert!(removed.text().starts_with("removed 3 records  3 of them in files from elsewhere"), "{}", removed.text());
    holds_after_rebuilding(&site, || {
        site.skep(&["captures", "http://example.org/news*"]).exits(1);
        site.skep(&["get", "http://example.org/news/a"]).exits(1);
        assert_eq!(site.skep(&["captures", "*.example.org", "--json"]).exits(0).json().len(), 10);
        assert_eq!(site.skep(&["stats", "--json"]).exits(0).json()[0]["statuses"]["404"], serde_json::Value::Null);
    });
}

#[test]
fn a_removed_payload_is_gone_under_every_url() {
    let site = filled();
    site.skep(&["remove", "--digest", &digest(b"first"), "--reason", "unlawful"]).exits(0);
    holds_after_rebuilding(&site, || {
        site.skep(&["captures", "http://example.org/copy"]).exits(1);
        let left = site.skep(&["captures", HOME, "--json"]).exits(0);
        assert_eq!(left.json().len(), 4);
        assert!(!left.text().contains(&digest(b"first")));
        assert_eq!(site.skep(&["get", HOME, "--at", "2017"]).exits(0).text(), "second");
    });
}

#[test]
fn what_is_removed_stays_removed_when_it_comes_in_another_file_only_if_it_is_removed_there() {
    let site = filled();
    site.skep(&["remove", HOME, "--reason", "asked by its owner"]).exits(0);
    site.write("later.warc.gz", Warc::gzip().page(HOME, "2024-01-01T00:00:00Z", "later").bytes);
    site.skep(&["add", "later.warc.gz"]).exits(0);
    assert_eq!(site.skep(&["captures", HOME, "--json"]).exits(0).each("time"), ["2024-01-01T00:00:00Z"]);
    site.skep(&["remove", HOME, "--reason", "again"]).exits(0);
    site.skep(&["captures", HOME]).exits(1);
}

// ── rebuild ──────────────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn rebuilt_views_answer_the_same() {
    let site = filled();
    site.skep(&["remove", "http://example.org/news/b", "--reason", "a removal to remember"]).exits(0);
    let answers = || {
        let listed = |url| site.skep(&["captures", url, "--json"]).exits(0).text();
        [listed("*.example.org"), listed("*.co.uk"), site.skep(&["stats", "--json"]).exits(0).text()]
    };
    let before = answers();
    let rebuilt = site.skep(&["rebuild"]).exits(0);
    assert_eq!(rebuilt.text(), "14 captures of 1 segments and 2 added files\n");
    assert_eq!(answers(), before);
    let reparsed = site.skep(&["rebuild", "--reparse", "--json"]).exits(0);
    assert_eq!(reparsed.json(), [serde_json::json!({ "captures": 14, "segments": 1, "files": 2 })]);
    assert_eq!(answers(), before);
    // Deleted by hand, they are built again by whoever comes next.
    std::fs::remove_dir_all(site.archive().join("views")).unwrap();
    assert_eq!(answers(), before);
}

#[test]
fn a_message_of_every_status_and_type_is_found_again() {
    let site = Site::new();
    let mut file = Warc::gzip();
    let statuses = [200, 204, 301, 302, 307, 403, 404, 410, 429, 500, 503, 999];
    for status in statuses {
        let message = message(&format!("{status} Something"), "Text/HTML;x=\"y\"", b"x");
        file = file.answer(&format!("http://a.example/{status}"), "2020-01-01T00:00:00Z", &message);
    }
    site.write("a.warc.gz", file.bytes);
    site.skep(&["add", "a.warc.gz"]).exits(0);
    for status in statuses.map(|status| status.to_string()) {
        let listed = site.skep(&["captures", "a.example/*", "--status", &status, "--json"]).exits(0);
        assert_eq!(listed.each("url"), [format!("http://a.example/{status}")]);
        assert_eq!(listed.each("mime"), ["text/html"]);
    }
}
