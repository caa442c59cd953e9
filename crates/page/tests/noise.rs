//! Noise against change, on pages that nobody here wrote: captures of live pages over months, each labelled by people who
//! extract the text that matters to them. The labels are silver: a third of the changes they tell cannot be seen on the page.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use skep_page::Input;
use skep_page::compare::{Class, Difference, Mask, compare, suspect};
use skep_page::version::{Rules, Version};
use skep_url::Url;
use skep_warc::http::{Head, Parsed};

/// What became of the captures of a site.
#[derive(Clone, Copy, Default)]
struct Count {
    /// Captures whose bytes changed.
    bytes: u32,
    silenced: u32,
    /// A change of the text was told, and the label says so too.
    right: u32,
    /// It was told, and the label says nothing.
    wrong: u32,
    /// It was not told, and the label says that the text changed.
    missed: u32,
}

impl Count {
    fn add(&mut self, other: &Count) {
        self.bytes += other.bytes;
        self.silenced += other.silenced;
        self.right += other.right;
        self.wrong += other.wrong;
        self.missed += other.missed;
    }

    fn precision(&self) -> f64 {
        f64::from(self.right) / f64::from((self.right + self.wrong).max(1))
    }

    fn recall(&self) -> f64 {
        f64::from(self.right) / f64::from((self.right + self.missed).max(1))
    }

    fn silenced(&self) -> f64 {
        f64::from(self.silenced) / f64::from(self.bytes.max(1))
    }
}

impl std::fmt::Display for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Count { bytes, right, wrong, missed, .. } = self;
        write!(f, "{bytes:5} byte changes, {:5.1} % silenced, ", self.silenced() * 100.0)?;
        write!(f, "{right:3} right, {wrong:3} more than labelled, {missed:3} missed: ")?;
        write!(f, "precision {:.3}, recall {:.3}", self.precision(), self.recall())
    }
}

/// One page through time.
struct Watched {
    version: Version,
    mask: Mask,
}

fn head() -> Head {
    let mut head = Head::new();
    let parsed = head.parse_response(b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n", true);
    assert!(matches!(parsed, Parsed::Complete { .. }));
    head
}

/// Shows the captures of a bundle, one for each label: its URL and what came.
fn each_capture(bundle: &Path, labels: &[serde_json::Value], mut visit: impl FnMut(&serde_json::Value, Vec<u8>)) {
    let folder = tempfile::tempdir().unwrap();
    let git = |arguments: &[&str]| {
        let out = Command::new("git").current_dir(folder.path()).args(arguments).output().unwrap();
        assert!(out.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    };
    git(&["init", "--quiet", "--bare", "."]);
    git(&["fetch", "--quiet", bundle.to_str().unwrap(), "refs/heads/main:refs/heads/main"]);
    let log = git(&["log", "--reverse", "--format=%H %s", "refs/heads/main"]);
    let mut reading = Command::new("git")
        .current_dir(folder.path())
        .args(["cat-file", "--batch"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut ask, mut answer) = (reading.stdin.take().unwrap(), BufReader::new(reading.stdout.take().unwrap()));
    assert_eq!(log.lines().count(), labels.len());
    for (line, label) in log.lines().zip(labels) {
        let (commit, url) = line.split_once(' ').unwrap();
        assert_eq!(label["url"], url, "{commit}");
        writeln!(ask, "{commit}:{}", label["file"].as_str().unwrap()).unwrap();
        let mut line = String::new();
        answer.read_line(&mut line).unwrap();
        let length: usize = line.trim().rsplit(' ').next().unwrap().parse().unwrap();
        let mut body = vec![0; length + 1];
        answer.read_exact(&mut body).unwrap();
        body.pop();
        visit(label, body);
    }
    drop(ask);
    reading.wait().unwrap();
}

#[test]
fn changes_of_real_pages_are_told_from_their_noise() {
    let Some(corpora) = std::env::var_os("SKEP_CORPORA") else {
        eprintln!("corpus tests not run: SKEP_CORPORA is not set");
        return;
    };
    let sites = Path::new(&corpora).join("sites");
    let labels = std::fs::read_to_string(sites.join("ota-sample-labels.jsonl")).unwrap();
    let labels: Vec<serde_json::Value> = labels.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut pages: HashMap<String, Watched> = HashMap::new();
    let mut counts: BTreeMap<String, Count> = BTreeMap::new();
    let (head, rules) = (head(), Rules::default());
    let (mut unseen, mut unexplained) = (0, Vec::new());
    each_capture(&sites.join("ota-sample.bundle"), &labels, |label, body| {
        let (number, url, file) = (&label["n"], label["url"].as_str().unwrap(), label["file"].as_str().unwrap());
        let labelled = label["text_changed"] == true;
        let parsed = Url::parse(url).unwrap();
        let version = Version::read(&Input { url: &parsed, head: Some(&head), body: &body }, &rules);
        let Some(page) = pages.get_mut(file) else {
            pages.insert(file.to_owned(), Watched { version, mask: Mask::default() });
            return;
        };
        let reason = suspect(200, &head, &body, &version, Some(&page.version.print));
        let found = match reason {
            Some(_) => Difference { classes: [Class::Suspect].into_iter().collect(), ..Difference::default() },
            None => compare(&page.version, &version, &mut page.mask),
        };
        let told = found.classes.contains(Class::TextMajor) || found.classes.contains(Class::TextMinor);
        let count = counts.entry(file.split('/').next().unwrap().to_owned()).or_default();
        count.bytes += 1;
        count.silenced += u32::from(found.classes.is_silent());
        match (told, labelled) {
            (true, true) => count.right += 1,
            (true, false) => count.wrong += 1,
            (false, true) => {
                count.missed += 1;
                let plainly = compare(&page.version, &version, &mut Mask::default());
                let why = match (reason, plainly.share) {
                    (Some(reason), _) => format!("no page to be compared: {reason}"),
                    (None, 0) => "no word that a reader sees came or went".to_owned(),
                    (None, share) => {
                        format!("{:.1} % of the words, in a place that always changes", f64::from(share) / 100.0)
                    }
                };
                unseen += u32::from(reason.is_none() && plainly.share == 0);
                if reason.is_none() && plainly.share >= 500 {
                    unexplained.push(format!("capture {number} of {file}: {why}"));
                }
                println!("missed: capture {number} of {file}: {:?}; {why}", found.classes);
            }
            (false, false) => {}
        }
        if reason.is_none() {
            page.version = version;
        }
    });
    assert_eq!(counts.values().map(|count| count.bytes).sum::<u32>() as usize + pages.len(), labels.len());
    let mut all = Count::default();
    counts.values().for_each(|count| all.add(count));
    let mut worst = Count { right: 1, ..Count::default() };
    let mut worst_without = "";
    for (site, count) in &counts {
        println!("{site:34} {count}");
        let mut without = Count::default();
        counts.iter().filter(|(other, _)| *other != site).for_each(|(_, other)| without.add(other));
        println!("{:34} {without}", format!("without {site}"));
        if without.precision() + without.recall() < worst.precision() + worst.recall() {
            (worst, worst_without) = (without, site);
        }
    }
    println!("{:34} {all}", "all");
    println!("{:34} {worst}", format!("without {worst_without}, the worst"));
    println!("of the missed, {unseen} changed no word that a reader sees");
    assert!(unexplained.is_empty(), "{unexplained:?}");
    // A little below what it came to when this was written: .910 silenced, precision .336, recall .617; without a site .320 and .593.
    assert!(all.silenced() >= 0.90 && all.precision() >= 0.32 && all.recall() >= 0.60, "{all}");
    assert!(worst.precision() >= 0.31 && worst.recall() >= 0.58, "without {worst_without}: {worst}");
}
