//! Whatever is typed and whatever the disk does: one clear message, the right exit code, nothing damaged.

mod site;

use site::Site;
use site::files::{HOME, Warc, history, package, packed_package};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn filled() -> Site {
    let site = Site::new();
    site.write("history.warc.gz", history().bytes);
    site.skep(&["add", "history.warc.gz"]).exits(0);
    site
}

// ── what is typed ────────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn wrong_use_is_explained() {
    let site = filled();
    for (typed, about) in [
        ([].as_slice(), "Usage: skep"),
        (&["fetch"], "unrecognized subcommand 'fetch'"),
        (&["add"], "<FILE>"),
        (&["index"], "<FILE>"),
        (&["captures"], "<URL>"),
        (&["captures", HOME, "--match", "planet"], "exact, prefix, host, domain"),
        (&["captures", HOME, "--status", "two hundred"], "--status"),
        (&["captures", HOME, "--status", "70000"], "--status"),
        (&["captures", HOME, "--limit=-1"], "--limit"),
        (&["get", HOME, "--raw", "--headers"], "cannot be used with"),
        (&["get"], "<URL>"),
        (&["index", "history.warc.gz", "--format", "cdx9"], "cdxj, cdx11"),
        (&["remove", HOME], "--reason"),
        (&["remove", "--reason", "x"], "URL"),
        (&["remove", HOME, "--prefix", HOME, "--reason", "x"], "cannot be used with"),
        (&["stats", "--colection", "x"], "--collection"),
    ] {
        let ran = site.skep(typed).exits(2);
        assert!(ran.out.is_empty() && ran.talk.contains(about), "{typed:?}: {}", ran.talk);
    }
    for typed in [["help", "add"], ["get", "--help"]] {
        let ran = site.skep(&typed).exits(0);
        assert!(ran.text().contains("Examples:"), "{}", ran.text());
    }
    assert!(site.skep(&["--version"]).exits(0).text().starts_with("skep 0."));
}

#[test]
fn values_that_mean_nothing_are_explained() {
    let site = filled();
    for time in ["yesterday", "2019-13", "2019-02-30", "", "20190", "99999-01-01", "-1"] {
        for typed in [
            ["captures", HOME, &format!("--from={time}")],
            ["captures", HOME, &format!("--to={time}")],
            ["get", HOME, &format!("--at={time}")],
        ] {
            site.skep(&typed).fails("is not a time").hints("2019-06");
        }
    }
    for digest in ["sha1:short", "first", "", "sha1:!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!"] {
        site.skep(&["remove", "--digest", digest, "--reason", "x"]).fails("is not a digest").hints("sha1:");
    }
    site.skep(&["remove", HOME, "--reason", "  "]).fails("needs a reason").hints("--reason");
    site.skep(&["add", "history.warc.gz", "--collection", "../out"]).fails("cannot name a collection").hints("letters");
    site.skep(&["add", "history.warc.gz", "--collection", ""]).fails("cannot name a collection");
    site.is_sound();
}

#[test]
fn urls_of_any_shape_are_looked_up() {
    let site = filled();
    let long = format!("http://example.org/{}", "a".repeat(100_000));
    for url in ["", " ", "*", "*.", "**", ":", "http://", "http://[::1", "\u{1f41d}.example", "urn:x", "//", "%", &long]
    {
        for matching in ["exact", "prefix", "host", "domain"] {
            let code = site.skep(&["captures", url, "--match", matching]).code;
            assert!(code <= 1, "{url:?} {matching}: {code}");
        }
        let code = site.skep(&["get", url]).code;
        assert!(code <= 1, "{url:?}: {code}");
    }
}

// ── what is in files ─────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn files_that_are_not_there_or_not_archives_are_named() {
    let site = Site::new();
    for command in ["add", "index", "check"] {
        site.skep(&[command, "absent.warc.gz"]).fails("absent.warc.gz");
        site.skep(&[command, "history.warc.gz/below"]).fails("history.warc.gz/below");
    }
    assert!(!site.archive().exists(), "nothing was added, so nothing was made");
    site.write("text.warc.gz", "neither gzip nor a record");
    site.write("empty.warc.gz", "");
    site.write("zeros.warc", [0; 4096]);
    std::fs::create_dir(site.path("nothing-below")).unwrap();
    site.skep(&["add", "nothing-below"]).fails("there is no archive file").hints(".warc.gz");
    for name in ["text.warc.gz", "empty.warc.gz", "zeros.warc"] {
        site.skep(&["add", name]).fails("holds no record");
        site.skep(&["check", name]).exits(1);
        let code = site.skep(&["index", name]).code;
        assert!(code == 0 || code == 3, "{name}: {code}");
    }
    site.skep(&["check", "nothing-below"]).fails("nothing-below");
    site.skep(&["index", "nothing-below"]).fails("nothing-below");
    // Among others, the bad one is left out.
    site.write("good.warc.gz", history().bytes);
    let added = site.skep(&["add", "--json", "text.warc.gz", "good.warc.gz"]).exits(3);
    assert_eq!(added.each("records"), ["0", "15"]);
    assert!(added.each("result")[0].contains("holds no record"));
    site.is_sound();
}

#[test]
fn a_damaged_file_gives_what_it_has() {
    let site = Site::new();
    let mut file = history();
    let hurt = (file.offsets[8] + file.offsets[9]) / 2;
    file.bytes[hurt..hurt + 20].fill(0);
    file.bytes.truncate(file.bytes.len() - 30);
    site.write("hurt.warc.gz", &file.bytes);
    let added = site.skep(&["add", "--json", "hurt.warc.gz"]).exits(3);
    assert!(added.talk.contains("offset"), "{}", added.talk);
    assert!(!added.json()[0]["findings"].as_array().unwrap().is_empty());
    assert_eq!(site.skep(&["captures", HOME, "--json"]).exits(0).json().len(), 5);
    assert_eq!(site.skep(&["get", HOME]).exits(0).text(), "unpacked");
    site.is_sound();
}

#[test]
fn broken_packages_and_indexes_are_explained() {
    let site = Site::new();
    let whole = package(&[("archive/a.warc.gz", &history().bytes)]);
    site.write("cut.wacz", &whole[..whole.len() - 40]);
    site.skep(&["add", "cut.wacz"]).fails("cut.wacz");
    // A package that compresses its files has no places for their records: what to type instead is said, alone and among others.
    site.write("it's twice.wacz", packed_package(&[("archive/a.warc.gz", &history().bytes)]));
    let refused = site.skep(&["add", "it's twice.wacz"]).fails("compresses archive/a.warc.gz a second time");
    refused.hints("/it'\\''s twice.wacz' 'archive/*' -d '").hints("then `skep add '");
    let among = site.skep(&["add", "--json", "it's twice.wacz", "cut.wacz"]).exits(3);
    assert!(among.each("result")[0].contains("`unzip '"), "{}", among.text());
    assert!(!site.skep(&["index", "it's twice.wacz"]).exits(0).text().is_empty(), "who only reads it once can");
    site.write("wrong.cdxj", "this is no index\n".repeat(200));
    site.skep(&["add", "wrong.cdxj"]).fails("is not a CDXJ index");
    site.write("binary.cdxj", [0xff, 0xfe, b'\n', 0x80, 0]);
    site.skep(&["add", "binary.cdxj"]).exits(3);
    // One line that is no text, and one that does not end for long, cost no more than themselves.
    site.write("a.warc.gz", history().bytes);
    let index = site.skep(&["index", "a.warc.gz"]).exits(0).text();
    site.write("a.cdxj", [b"\xff\xfe {}\n", "a".repeat(3 << 20).as_bytes(), b"\n", index.as_bytes()].concat());
    let added = site.skep(&["add", "--json", "a.cdxj"]).exits(3);
    assert!(added.talk.contains("line 1: ") && added.talk.contains("line 2: "), "{}", added.talk);
    assert_eq!(added.each("records"), [index.lines().count().to_string()]);
}

#[test]
fn names_in_an_index_do_not_lead_out_of_its_folder() {
    let site = Site::new();
    site.write("outside.warc.gz", history().bytes);
    site.write("in/inside.warc.gz", history().bytes);
    let index = site.skep(&["index", "outside.warc.gz"]).exits(0).text();
    let outside = site.path("outside.warc.gz").display().to_string();
    for (number, name) in
        ["../outside.warc.gz", "x/../../outside.warc.gz", &outside, "absent.warc.gz", "..", ""].into_iter().enumerate()
    {
        let file = format!("in/{number}.cdxj");
        site.write(&file, index.replace("outside.warc.gz", name));
        let added = site.skep(&["add", &file, "--json"]).exits(3);
        assert_eq!(added.each("records"), ["0"], "{name}");
        assert!(added.talk.contains("not beside the index") || name.is_empty(), "{name}: {}", added.talk);
        site.skep(&["stats"]).exits(1);
    }
    // Offsets are somebody else's word too.
    let far = index.replace("\"offset\": \"", "\"offset\": \"9").replace("outside.warc.gz", "inside.warc.gz");
    site.write("in/far.cdxj", far);
    let added = site.skep(&["add", "in/far.cdxj"]).exits(3);
    assert!(added.talk.contains("behind the end"), "{}", added.talk);
    let off = index.replace("\"offset\": \"", "\"offset\": \"1").replace("outside.warc.gz", "also.warc.gz");
    site.write("in/also.warc.gz", history().bytes);
    site.write("in/off.cdxj", off);
    site.skep(&["add", "in/off.cdxj"]);
    let got = site.skep(&["get", HOME]).code;
    assert!(got <= 2, "{got}");
}

#[test]
fn a_pipe_or_a_device_is_not_added() {
    let site = Site::new();
    let made = Command::new("mkfifo").arg(site.path("pipe.warc.gz")).status().expect("mkfifo");
    assert!(made.success());
    site.skep(&["add", "pipe.warc.gz"]).fails("is not a file");
    site.skep(&["add", "/dev/null"]).fails("is not a file");
    site.skep(&["add", "."]).fails("there is no archive file");
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    let site = Site::new();
    let record = |uri: &str, block: &str| {
        format!(
            "WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-000000000001>\r\n\
             WARC-Date: 2021-01-01T00:00:00Z\r\nWARC-Target-URI: {uri}\r\nContent-Type: application/http\r\n\
             Content-Length: {}\r\n\r\n{block}\r\n\r\n",
            block.len()
        )
    };
    let block = "HTTP/1.1 200 OK\r\nContent-Type: text/\x1b[2Jhtml\r\n\r\nx";
    let evil = record("http://evil.example/\x1b]0;owned\x07\u{9b}31m", block);
    let broken = record("http://evil.example/2\x1b[31m", block).replace("Content-Length: ", "Content-Length: \x1b[31m");
    site.write("evil.warc.gz", Warc::gzip().member(evil.as_bytes()).member(broken.as_bytes()).bytes);
    site.skep(&["add", "evil.warc.gz"]);
    for typed in [
        ["add", "evil.warc.gz"].as_slice(),
        &["captures", "*.evil.example"],
        &["stats"],
        &["check", "evil.warc.gz"],
        &["index", "evil.warc.gz"],
        &["captures", "http://\x1b[31m.example/"],
        &["get", "http://\x1b[31m.example/"],
        &["check", "absent\x1b[31m"],
    ] {
        let ran = site.skep(typed);
        for text in [ran.text(), ran.talk] {
            assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{typed:?}: {text:?}");
        }
    }
    let listed = site.skep(&["captures", "*.evil.example", "--json"]).exits(0);
    assert!(!listed.out.contains(&0x1b));
    assert!(listed.each("url")[0].contains("evil.example"));
}

// ── what the system refuses ──────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn a_folder_that_is_no_archive_is_not_made_one_by_asking() {
    let site = Site::new();
    std::fs::create_dir(site.archive()).unwrap();
    site.write("archive/notes.txt", "mine");
    for typed in [
        ["captures", HOME].as_slice(),
        &["get", HOME],
        &["stats"],
        &["check"],
        &["rebuild"],
        &["remove", HOME, "--reason", "x"],
    ] {
        site.skep(typed).fails("is not an archive").hints("skep add");
        site.skep(&[&["--archive", "absent"], typed].concat()).fails("absent is not an archive");
    }
    let names: Vec<_> = std::fs::read_dir(site.archive()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["notes.txt"]);
    assert!(!site.path("absent").exists());
}

#[test]
fn an_archive_cannot_be_below_a_file() {
    let site = Site::new();
    site.write("history.warc.gz", history().bytes);
    site.write("file", "mine");
    site.skep(&["--archive", "file/archive", "add", "history.warc.gz"]).fails("cannot create file");
    site.skep(&["--archive", "file", "add", "history.warc.gz"]).fails("file");
    site.skep(&["--archive", "file", "captures", HOME]).fails("is not an archive");
    assert_eq!(std::fs::read(site.path("file")).unwrap(), b"mine");
}

#[test]
fn settings_that_cannot_be_read_are_named() {
    let site = filled();
    let path = site.archive().join("settings/collections.toml");
    let good = std::fs::read(&path).unwrap();
    for bad in ["not toml = = =", "version = 99\n", "", "version = 1\nfile = 3\n"] {
        std::fs::write(&path, bad).unwrap();
        site.skep(&["captures", HOME]).fails("collections.toml");
    }
    std::fs::write(&path, good).unwrap();
    site.skep(&["captures", HOME]).exits(0);
    site.is_sound();
}

/// A file system of its own that is gone when the test ends.
struct Mounted {
    at: PathBuf,
}

impl Mounted {
    /// `None` where this user may not mount.
    fn tmpfs(at: &Path, options: &str) -> Option<Mounted> {
        std::fs::create_dir_all(at).expect("a folder");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", options, "none"]).arg(at).output();
        mounted.is_ok_and(|output| output.status.success()).then(|| Mounted { at: at.to_path_buf() })
    }

    fn remount(&self, options: &str) {
        let done = Command::new("mount").args(["-o", &format!("remount,{options}")]).arg(&self.at).status();
        assert!(done.expect("mount").success());
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _gone_with_the_test = Command::new("umount").arg("-l").arg(&self.at).status();
    }
}

/// Pages that do not compress, so that a disk can be filled with them.
fn noise(pages: usize, bytes: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'!' + (state % 90) as u8)
    };
    let mut file = Warc::gzip();
    for page in 0..pages {
        let body: String = (0..bytes).map(|_| next()).collect();
        file = file.page(&format!("http://noise.example/{page}"), "2020-01-01T00:00:00Z", &body);
    }
    file.bytes
}

#[test]
fn a_disk_that_cannot_be_written_is_named_and_nothing_changes() {
    let site = Site::new();
    site.write("history.warc.gz", history().bytes);
    let Some(disk) = Mounted::tmpfs(&site.archive(), "size=64m") else {
        eprintln!("not run: this user cannot mount");
        return;
    };
    site.skep(&["add", "history.warc.gz"]).exits(0);
    site.write("more.warc.gz", Warc::gzip().page("http://more.example/", "2020-01-01T00:00:00Z", "x").bytes);
    disk.remount("ro");
    for typed in [["add", "more.warc.gz"].as_slice(), &["remove", HOME, "--reason", "x"], &["rebuild"]] {
        site.skep(typed).fails("Read-only file system");
    }
    disk.remount("rw");
    site.is_sound();
    assert_eq!(site.skep(&["captures", HOME, "--json"]).exits(0).json().len(), 5);
    site.skep(&["add", "more.warc.gz"]).exits(0);
}

#[test]
fn a_full_disk_is_named_and_adding_works_again_when_there_is_room() {
    let site = Site::new();
    site.write("history.warc.gz", history().bytes);
    site.write("noise.warc.gz", noise(200, 100_000));
    let Some(disk) = Mounted::tmpfs(&site.archive(), "size=12m") else {
        eprintln!("not run: this user cannot mount");
        return;
    };
    site.skep(&["add", "--copy", "history.warc.gz"]).exits(0);
    site.skep(&["add", "--copy", "noise.warc.gz"]).fails("no room left").hints("free some space");
    let copies: Vec<_> = std::fs::read_dir(site.archive().join("collections/files")).unwrap().collect();
    assert_eq!(copies.len(), 1, "half a copy is of no use to anybody");

    // Not one byte left.
    let mut ballast = std::fs::File::create(site.archive().join("ballast")).unwrap();
    for bytes in [1 << 16, 1 << 12, 1] {
        while ballast.write_all(&vec![0; bytes]).is_ok() {}
    }
    site.write("more.warc.gz", Warc::gzip().page("http://more.example/", "2020-01-01T00:00:00Z", "x").bytes);
    site.skep(&["add", "more.warc.gz"]).fails("no room left").hints("free some space");
    site.skep(&["remove", HOME, "--reason", "x"]).fails("no room left");
    std::fs::remove_file(site.archive().join("ballast")).unwrap();
    assert_eq!(site.skep(&["get", HOME]).exits(0).text(), "unpacked");
    site.is_sound();

    disk.remount("size=256m");
    site.skep(&["add", "--copy", "noise.warc.gz", "more.warc.gz"]).exits(0);
    site.skep(&["remove", HOME, "--reason", "x"]).exits(0);
    site.skep(&["captures", HOME]).exits(1);
    assert_eq!(site.skep(&["stats", "--json"]).exits(0).json()[0]["urls"], 7 + 200 + 1);
    site.is_sound();
}

#[test]
fn a_file_that_may_not_grow_further_is_a_message_too() {
    let site = Site::new();
    site.write("noise.warc.gz", noise(20, 100_000));
    // In blocks of 1024 bytes; the signal that usually comes with it is ignored, as on a disk that is full.
    site.shell("trap '' XFSZ; ulimit -f 512; skep add --copy noise.warc.gz").fails("error");
    site.skep(&["add", "--copy", "noise.warc.gz"]).exits(0);
    site.is_sound();
}

#[test]
fn a_repair_that_finds_no_room_leaves_nothing_behind() {
    let site = Site::new();
    let bytes = noise(40, 100_000);
    let Some(_disk) = Mounted::tmpfs(&site.path("small"), "size=5m") else {
        eprintln!("not run: this user cannot mount");
        return;
    };
    site.write("small/hurt.warc.gz", &bytes[..bytes.len() - 10]);
    let ran = site.skep(&["check", "--repair", "small/hurt.warc.gz"]).exits(2);
    assert!(ran.talk.contains("error: cannot write small/hurt.repaired.warc.gz"), "{}", ran.talk);
    assert!(!site.path("small/hurt.repaired.warc.gz").exists());
}

// ── who reads ────────────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn a_reader_that_leaves_is_no_error() {
    let site = Site::new();
    let mut file = Warc::gzip();
    for page in 0..3000 {
        file = file.page(&format!("http://many.example/{page:04}"), "2020-01-01T00:00:00Z", "x");
    }
    site.write("many.warc.gz", file.bytes);
    site.skep(&["add", "many.warc.gz"]).exits(0);
    for typed in ["captures '*.many.example' --json", "captures '*.many.example'", "index many.warc.gz"] {
        let ran = site.shell(&format!("set -o pipefail; skep {typed} | head -1")).exits(0);
        assert_eq!((ran.text().lines().count(), ran.talk.as_str()), (1, ""), "{typed}");
    }
    // Nobody reads at all, not even what is said.
    for typed in
        ["stats", "rebuild", "rebuild --json", "check", "get http://many.example/0001", "captures absent.example"]
    {
        site.shell(&format!("skep {typed} 2>&1 | true; exit ${{PIPESTATUS[0]}}")).exits_below(2);
        site.shell(&format!("skep {typed} >/dev/null 2>&-")).exits_below(2);
    }
    site.shell("skep add absent.warc.gz 2>&1 | true; exit ${PIPESTATUS[0]}").exits(2);
    site.is_sound();
}

#[test]
fn an_answer_that_cannot_be_written_is_a_failure() {
    let site = filled();
    for typed in
        [["captures", HOME].as_slice(), &["get", HOME], &["stats"], &["index", "history.warc.gz"], &["rebuild"]]
    {
        let full = std::fs::File::options().write(true).open("/dev/full").expect("/dev/full");
        let ran = site::ran_to(site.command(typed).stdout(Stdio::from(full)).stderr(Stdio::piped()));
        ran.fails("cannot write the answer");
    }
    site.is_sound();
}
