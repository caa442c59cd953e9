//! Crawls the same hosts again and again in one process, and tells every second what the process holds; for whoever wants to
//! know whether that grows.
//!
//! ```text
//! steady ARCHIVE SECONDS HOST=ADDRESS:PORT...
//!
//! sample 12 61440000 41 9        second, resident bytes, open descriptors, threads
//! pass 3 412                     number, visits
//! ```

use std::sync::Arc;
use std::time::{Duration, Instant};

use skep_archive::{Archive, OpenOptions};
use skep_crawl::{Control, Event, Run, Settings, Speed, run};
use skep_schedule::retry::Patience;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [folder, seconds, hosts @ ..] = &words[..] else { panic!("steady ARCHIVE SECONDS HOST=ADDRESS:PORT...") };
    let seconds: u64 = seconds.parse().expect("a number of seconds");
    let begun = Instant::now();
    let control = Control::default();
    let watch = {
        let control = control.clone();
        std::thread::spawn(move || {
            for second in 1..=seconds {
                std::thread::sleep(Duration::from_secs(second).saturating_sub(begun.elapsed()));
                let (resident, descriptors, threads) = held();
                println!("sample {second} {resident} {descriptors} {threads}");
            }
            control.stop();
        })
    };
    // What may be held is set so small that it is full long before the end.
    let options = OpenOptions { cache_bytes: 8 << 20, ..OpenOptions::create() };
    let archive = Arc::new(Archive::open(std::path::Path::new(folder), options).expect("an archive"));
    while !watch.is_finished() {
        let mut visits = 0;
        let run_of = run_of(hosts);
        let ended =
            run(&archive, run_of, &control, &mut |event| visits += u64::from(matches!(event, Event::Visited { .. })));
        ended.expect("a crawl");
        let name = Settings::load(&archive.layout().settings(), "steady").expect("its settings").expect("its settings");
        println!("pass {} {visits}", name.pass.number);
    }
    watch.join().expect("it ends");
}

fn run_of(hosts: &[String]) -> Run {
    let names: Vec<String> = hosts.iter().filter_map(|host| Some(host.split_once('=')?.0.to_owned())).collect();
    let mut fetch = skep_fetch::Settings::new("skep/0 (steady)");
    fetch.allow_private = true;
    fetch.resolve = hosts.iter().map(|host| host.parse().expect("HOST=ADDRESS:PORT")).collect();
    let settings = Settings {
        name: "steady".into(),
        seeds: names.iter().map(|name| format!("http://{name}/")).collect(),
        own: names,
        pace: Speed::Millis(1),
        allow_private: true,
        concurrency: 16,
        ..Settings::default()
    };
    // Half an hour has no room for waits of half an hour.
    let patience = Patience { scale_permille: 1, ..Patience::default() };
    Run {
        settings,
        fetch,
        cookies: Default::default(),
        workers: 1,
        patience,
        watch: false,
        judges: None,
        others: None,
        share: None,
    }
}

/// Resident bytes, open descriptors and threads of this process.
fn held() -> (u64, usize, u64) {
    let status = std::fs::read_to_string("/proc/self/status").expect("procfs");
    let figure = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.split_whitespace().next().and_then(|word| word.parse::<u64>().ok()).unwrap_or(0)
    };
    let descriptors = std::fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count());
    (figure("VmRSS:") * 1024, descriptors, figure("Threads:"))
}
