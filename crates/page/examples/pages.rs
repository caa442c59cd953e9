//! Reads every page of a folder: what it costs, and, with `--compare`, where html5ever finds other links.
//!
//! ```text
//! cargo run --release --package skep-page --example pages -- FOLDER [--compare]
//! ```

#[path = "../tests/oracle/mod.rs"]
mod oracle;

use std::path::{Path, PathBuf};

use skep_page::{Input, read};
use skep_url::Url;

/// Each page is read so often, and the cheapest round counts.
const ROUNDS: usize = 10;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().expect("a folder of pages"));
    let compare = arguments.any(|word| word == "--compare");
    let mut files = Vec::new();
    collect(&folder, &mut files);
    let mut head = skep_warc::http::Head::new();
    let _ = head.parse_response(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n", true);
    let pages: Vec<(Url, Vec<u8>)> = files
        .iter()
        .map(|file| {
            let path =
                file.strip_prefix(&folder).expect("it is below the folder").to_string_lossy().replace('#', "%23");
            (format!("http://docs.example/{path}").parse().expect("a URL"), std::fs::read(file).expect("a file"))
        })
        .collect();
    let bytes: usize = pages.iter().map(|(_, body)| body.len()).sum();
    let mut best = f64::MAX;
    let mut links = 0;
    for _ in 0..ROUNDS {
        let begin = cpu_seconds();
        links = 0;
        for (url, body) in &pages {
            links += read(&Input { url, head: Some(&head), body }).links.len();
        }
        best = best.min(cpu_seconds() - begin);
    }
    let count = pages.len() as f64;
    println!(
        "{} pages of {:.1} kB, {:.1} links each: {:.1} CPU µs a page, {:.0} MB per CPU second",
        pages.len(),
        bytes as f64 / count / 1e3,
        links as f64 / count,
        best / count * 1e6,
        bytes as f64 / best / 1e6
    );
    if compare {
        let mut different = 0;
        for (url, body) in &pages {
            let text = String::from_utf8_lossy(body);
            let Some(scan) = oracle::scanned(url, &text) else {
                println!("{url} was cut");
                continue;
            };
            let tree = oracle::links(url, &text);
            if tree != scan {
                different += 1;
                println!("{url}");
                tree.difference(&scan).take(5).for_each(|link| println!("  only html5ever: {link}"));
                scan.difference(&tree).take(5).for_each(|link| println!("  only the scanner: {link}"));
            }
        }
        println!("{different} of {} pages differ", pages.len());
    }
}

/// Time that this program has spent computing, whatever else the machine does.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").expect("Linux keeps count");
    text.split(' ').next().and_then(|word| word.parse::<f64>().ok()).expect("a number") / 1e9
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> =
        std::fs::read_dir(folder).expect("a folder").filter_map(|entry| Some(entry.ok()?.path())).collect();
    entries.sort();
    for path in entries {
        if path.is_symlink() {
            continue;
        } else if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|ending| ending == "html" || ending == "htm") {
            files.push(path);
        }
    }
}
