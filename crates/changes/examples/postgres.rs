//! `cargo xtask bench postgres`: changes a second that go into a real PostgreSQL, from the log of an archive, by the sink that users have.
//! Prints figures as `name=value`.

#[path = "../tests/support/servers.rs"]
mod servers;
#[path = "../tests/support/mod.rs"]
mod support;

use servers::Postgres;
use skep_archive::Archive;
use skep_changes::Changes;
use skep_changes::sink::{Definition, Kind, Since, Sinks, Wanted};
use std::sync::Arc;
use std::time::Instant;
use support::{DAY_MS, START_MS, answer, append, open, words};

/// As the program has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Pages appended at once.
const PORTION: usize = 2_000;
/// PostgreSQL as it comes, but for memory and for how often it makes checkpoints: what anybody sets who writes much. Every commit is synced.
const SERVER: &[&str] = &["shared_buffers=512MB", "max_wal_size=4GB"];

fn main() {
    let mut typed = std::env::args().skip(1);
    let mut number = |default: usize| typed.next().map_or(default, |text| text.parse().expect("a number"));
    let (pages, rounds) = (number(100_000), number(4));
    let folder = tempfile::tempdir().expect("a folder");
    let archive = Arc::new(open(folder.path()));
    let changes = Arc::new(Changes::default());
    let began = Instant::now();
    for round in 0..rounds {
        fill(&archive, pages, round);
        support::follow(&changes, &archive);
        eprintln!("round {} of {rounds} is in the log after {:.0} s", round + 1, began.elapsed().as_secs_f64());
    }
    let events = changes.newest(&archive).expect("the log").number;
    let server = Postgres::start(SERVER);
    let sinks = Sinks::new(archive.clone(), changes);
    let kind = Kind::Postgres { url: server.url(), schema: None };
    sinks.add("postgres", &Definition::new(kind, Wanted::default()), &Since::Start).expect("a sink");
    let began = Instant::now();
    sinks.once(None).expect("it works");
    let seconds = began.elapsed().as_secs_f64();
    let standing = sinks.standings().expect("how it stands").remove(0);
    assert_eq!((standing.lag, standing.state.rejected), (Some(0), 0), "{:?}", standing.state);
    let rows = |table: &str| server.number(&format!("SELECT count(*) FROM {table}"));
    assert_eq!((rows("changes") as u64, rows("urls") as usize), (events, pages), "every row is there");
    let version = server.ask("SHOW server_version").remove(0);
    let bytes: i64 = server.number("SELECT pg_database_size(current_database())");
    println!("changes={events}\nurls={pages}\nlinks={}\nseconds={seconds:.2}", rows("links"));
    println!("changes_per_s={:.0}\ndatabase_bytes={bytes}", events as f64 / seconds);
    println!("settings={}", SERVER.join(" "));
    println!("version={version}");
}

/// Another version of every page, in an order that is not that of the index.
fn fill(archive: &Archive, pages: usize, round: usize) {
    let time_ms = START_MS + round as i64 * DAY_MS;
    let mut chance = support::Chance(round as u64 + 7);
    let start = chance.below(pages);
    for portion in 0..pages.div_ceil(PORTION) {
        let record = |at: usize| {
            // Steps of a prime go round all pages.
            let page = (start + at * 7_919) % pages;
            let url = format!("http://www{}.example.org/section-{}/page-{page}.html", page % 50, page % 997);
            let body = format!(
                "<title>Page {page}</title><p>{}</p><a href=/index.html>home</a>",
                words((page * 31 + round) as u64, 12)
            );
            answer(&url, time_ms + at as i64, 200, "", &body)
        };
        let some = (portion * PORTION..((portion + 1) * PORTION).min(pages)).map(record).collect();
        append(archive, "http://www.example.org/", some);
    }
}
