//! What is measured on, made once under `target/bench` and kept: an archive of real pages, and an index of many captures.

use crate::chance::Chance;
use crate::limits;
use crate::long::Options;
use crate::needs;
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Debian's documentation packages: some 52,000 real pages of many authors and ages, with their images and scripts.
const PACKAGES: [&str; 9] = [
    "rust-doc",
    "postgresql-doc-15",
    "python3.11-doc",
    "libboost1.81-doc",
    "libgtk-4-doc",
    "debian-handbook",
    "python-django-doc",
    "sqlite3-doc",
    "git-doc",
];

/// Where material is kept between runs.
pub fn folder(workspace: &Workspace) -> Result<PathBuf> {
    let folder = workspace.target().join("bench");
    std::fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    Ok(folder)
}

/// An archive of real pages of at least this many compressed bytes: the one given, or one made from the packages.
pub fn pages(workspace: &Workspace, options: &Options, bytes: u64) -> Result<PathBuf> {
    if let Some(file) = &options.file {
        if !file.is_file() {
            bail!("{} is no file", file.display());
        }
        return Ok(file.clone());
    }
    let folder = folder(workspace)?;
    let archive = folder.join(format!("pages-{}m.warc.gz", bytes / 1_000_000));
    if std::fs::metadata(&archive).is_ok_and(|found| found.len() >= bytes) {
        return Ok(archive);
    }
    needs::system()?;
    needs::venv(workspace)?;
    let unpacked = unpack(&folder)?;
    println!("writing {} (minutes, once)", archive.display());
    let mut make = Command::new(workspace.python());
    make.arg(workspace.root.join("crates/xtask/peers/make_warc.py")).arg(&unpacked).arg(&archive);
    must(make.args(["--bytes", &bytes.to_string()]), "make_warc.py")?;
    Ok(archive)
}

/// Fetches and unpacks the packages, each into a folder of its name.
fn unpack(folder: &Path) -> Result<PathBuf> {
    let unpacked = folder.join("pages");
    let hint = "on a system without Debian's packages, give an archive of your own with --file";
    for package in PACKAGES {
        let own = unpacked.join(package);
        if own.is_dir() {
            continue;
        }
        if !needs::on_path("apt-get") || !needs::on_path("dpkg-deb") {
            bail!("apt-get and dpkg-deb are needed to fetch {package}; {hint}");
        }
        println!("fetching {package}");
        let packages = folder.join("packages");
        std::fs::create_dir_all(&packages)?;
        let download = || {
            let mut command = Command::new("apt-get");
            command.args(["--quiet", "--quiet", "download", package]).current_dir(&packages);
            command
        };
        if !download().status().is_ok_and(|status| status.success()) {
            // The usual reason on a fresh machine: no package lists yet.
            must(Command::new("apt-get").args(["--quiet", "--quiet", "update"]), "apt-get update")?;
            must(&mut download(), "apt-get download").context(hint)?;
        }
        let prefix = format!("{package}_");
        let file = std::fs::read_dir(&packages)?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&prefix)))
            .with_context(|| format!("apt-get left no file for {package}"))?;
        let part = unpacked.join(format!("{package}.part"));
        std::fs::create_dir_all(&part)?;
        must(Command::new("dpkg-deb").arg("-x").arg(&file).arg(&part), "dpkg-deb")?;
        std::fs::rename(&part, &own)?;
        std::fs::remove_file(&file)?;
    }
    Ok(unpacked)
}

/// An index of many captures, and the URLs to look up in it.
pub struct Captures {
    /// CDXJ, sorted.
    pub cdxj: PathBuf,
    /// Lines of URL, tab, 14 digits.
    pub urls: PathBuf,
    pub captures: u64,
}

/// Makes the index: `captures` captures, about three of each URL over ten years, in the lengths and shapes that crawls bring.
pub fn captures(workspace: &Workspace, captures: u64, seed: u64) -> Result<Captures> {
    let folder = folder(workspace)?;
    let made = Captures {
        cdxj: folder.join(format!("captures-{captures}-{seed}.cdxj")),
        urls: folder.join(format!("captures-{captures}-{seed}.urls")),
        captures,
    };
    if made.cdxj.is_file() && made.urls.is_file() {
        return Ok(made);
    }
    println!("writing {}", made.cdxj.display());
    let part = made.cdxj.with_extension("part");
    let mut out = BufWriter::with_capacity(1 << 20, File::create(&part)?);
    let urls = write_captures(&mut out, captures, seed)?;
    out.flush()?;
    std::fs::write(&made.urls, urls.join("\n") + "\n")?;
    std::fs::rename(&part, &made.cdxj)?;
    Ok(made)
}

/// Writes sorted CDXJ and returns what to look up: nine of ten URLs are there, one is not.
fn write_captures(out: &mut impl Write, captures: u64, seed: u64) -> Result<Vec<String>> {
    const WORDS: [&str; 24] = [
        "about", "archive", "article", "blog", "calendar", "category", "contact", "download", "events", "forum",
        "gallery", "help", "images", "index", "library", "members", "news", "people", "products", "projects",
        "reports", "research", "software", "weather",
    ];
    const MIMES: [(&str, u64); 5] =
        [("text/html", 70), ("image/jpeg", 12), ("application/pdf", 6), ("text/css", 6), ("application/javascript", 6)];
    const STATUSES: [(&str, u64); 4] = [("200", 88), ("301", 5), ("404", 6), ("500", 1)];
    let mut chance = Chance::new(seed);
    let mut wanted = Vec::new();
    let (mut written, mut host) = (0_u64, 0_u64);
    let mut offset = 0_u64;
    while written < captures {
        // Zero-padded numbers keep hosts in the order of their keys.
        let name = format!("{:07}-{}", host, WORDS[(host % 24) as usize]);
        host += 1;
        let pages = 1 + chance.below(chance_of_size(host));
        let mut paths: Vec<String> = (0..pages)
            .map(|_| {
                let (first, second) = (WORDS[chance.below(24) as usize], WORDS[chance.below(24) as usize]);
                match chance.below(4) {
                    0 => format!("{first}/{second}/{}.html", chance.below(100_000)),
                    1 => format!("{first}/{}/{second}-{}", 2000 + chance.below(25), chance.below(10_000)),
                    2 => format!("{first}/view?id={}&page={second}", chance.below(1_000_000)),
                    _ => format!("{first}-{second}-{}.php", chance.below(100_000)),
                }
            })
            .collect();
        paths.sort_unstable();
        paths.dedup();
        for path in paths {
            let visits = 1 + chance.below(5);
            let mut day = chance.below(3650 - 5 * 400);
            let url = format!("https://www.{name}.example.com/{path}");
            for _ in 0..visits {
                if written == captures {
                    break;
                }
                let time = fourteen_digits(day, chance.below(86_400));
                if chance.below(captures) < limits::LOOKUP_URLS {
                    let absent = if chance.below(10) == 0 { "-absent" } else { "" };
                    wanted
                        .push(format!("{url}{absent}\t{}", fourteen_digits(chance.below(3650), chance.below(86_400))));
                }
                let scale = chance.below(12);
                let length = 300 + chance.below(64 << scale);
                let (mime, status) = (weighted(&MIMES, &mut chance), weighted(&STATUSES, &mut chance));
                let digest = digest(&mut chance);
                let file = format!("crawl-{:05}.warc.gz", offset >> 30);
                writeln!(
                    out,
                    "com,example,{name})/{path} {time} {{\"url\": \"{url}\", \"mime\": \"{mime}\", \"status\": \"{status}\", \
                     \"digest\": \"sha1:{digest}\", \"length\": \"{length}\", \"offset\": \"{}\", \"filename\": \"{file}\"}}",
                    offset & 0x3FFF_FFFF
                )?;
                offset += length + 900;
                written += 1;
                day += 1 + chance.below(400);
            }
        }
    }
    // Looked up in no order, as visitors come.
    for index in (1..wanted.len()).rev() {
        wanted.swap(index, chance.below(index as u64 + 1) as usize);
    }
    Ok(wanted)
}

/// Few hosts are large: one in fifty has up to five thousand pages, the others up to sixty.
fn chance_of_size(host: u64) -> u64 {
    if host.is_multiple_of(50) { 5000 } else { 60 }
}

fn weighted(choices: &[(&'static str, u64)], chance: &mut Chance) -> &'static str {
    let mut drawn = chance.below(100);
    for (choice, weight) in choices {
        if drawn < *weight {
            return choice;
        }
        drawn -= weight;
    }
    choices[0].0
}

/// A day after 2014-01-01 and a second of it. Months of 28 days are as good as others to a sort key.
fn fourteen_digits(day: u64, second: u64) -> String {
    let (year, rest) = (2014 + day / 336, day % 336);
    let (month, day) = (1 + rest / 28, 1 + rest % 28);
    format!("{year}{month:02}{day:02}{:02}{:02}{:02}", second / 3600, second / 60 % 60, second % 60)
}

/// 160 random bits in base32, as a digest of content never seen before.
fn digest(chance: &mut Chance) -> String {
    const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    (0..32).map(|_| ALPHABET[chance.below(32) as usize] as char).collect()
}

fn must(command: &mut Command, what: &str) -> Result<()> {
    let status = command.status().with_context(|| format!("{what} could not be started"))?;
    if !status.success() {
        bail!("{what} failed ({status}); its messages are above");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_is_sorted_complete_and_the_same_for_the_same_seed() {
        let made = |seed| {
            let mut text = Vec::new();
            let urls = write_captures(&mut text, 5000, seed).expect("memory takes it");
            (String::from_utf8(text).expect("text"), urls)
        };
        let (text, urls) = made(3);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 5000);
        assert!(lines.is_sorted());
        assert_eq!(made(3), (text, urls.clone()));
        assert_ne!(made(4).1, urls);
        assert!(urls.iter().any(|line| line.contains("-absent")) && urls.iter().any(|line| !line.contains("-absent")));
    }

    #[test]
    fn times_are_dates_that_exist() {
        assert_eq!(fourteen_digits(0, 0), "20140101000000");
        assert_eq!(fourteen_digits(336 + 28, 86_399), "20150201235959");
    }
}
