//! Every bound of the chores, with its unit.

use std::time::Duration;

/// Lines of code (blank lines and comments aside) above which a source file is no longer one thing.
pub const FILE_CODE_LINES_MAX: usize = 900;

/// The least size of the archive of real pages that reading and indexing are measured on.
pub const PAGES_BYTES_MIN: u64 = 500_000_000;

/// How long one run of a program, ours or a peer's, may take in a bench.
pub const BENCH_RUN_MAX: Duration = Duration::from_secs(30 * 60);

/// How long one crawl of the bench may take, whoever crawls.
pub const CRAWL_RUN_MAX: Duration = Duration::from_secs(10 * 60);

/// Captures in the index that look-ups are measured on, unless `--count` says otherwise.
pub const LOOKUP_CAPTURES: u64 = 10_000_000;

/// Look-ups of each kind that we are measured with.
pub const LOOKUPS: u64 = 200_000;

/// Memory for decoded blocks while look-ups are measured, well within the 512 MB that are allowed in all.
pub const LOOKUP_CACHE_MB: u64 = 405;
/// How long a peer is measured with each kind of look-up: it may not come to the end of the list.
pub const LOOKUP_PEER_SECONDS: u64 = 20;

/// Bytes on disk that one capture may take in the captures view.
pub const LOOKUP_BYTES_PER_CAPTURE_MAX: f64 = 60.0;

/// Memory that looking up may hold.
pub const LOOKUP_RSS_BYTES_MAX: u64 = 512_000_000;

/// Captures of the collection that statistics are measured on, unless `--count` says otherwise.
pub const STATS_CAPTURES: u64 = 1_000_000;

/// How long statistics may take, from the start of a process.
pub const STATS_MAX: Duration = Duration::from_millis(300);

/// Of a file that made-up captures are said to be in: more than their offsets.
pub const STATS_FILE_BYTES: u64 = 1 << 32;

/// URLs that the registry knows when it is measured, unless `--count` says otherwise.
pub const REGISTRY_URLS: u64 = 10_000_000;

/// Links checked in each measurement of the registry.
pub const REGISTRY_CHECKS: u64 = 2_000_000;

/// How long the registry's peer is filled: it may not come to the end.
pub const REGISTRY_PEER_SECONDS: u64 = 300;

/// Links that the registry must check per second and core.
pub const REGISTRY_CHECKS_PER_S_MIN: f64 = 300_000.0;

/// What a check among all URLs may cost, in times a check among a tenth of them.
pub const REGISTRY_COST_RATIO_MAX: f64 = 2.0;

/// Bytes on disk that one URL may take in the registry.
pub const REGISTRY_BYTES_PER_URL_MAX: f64 = 100.0;

/// Memory that the registry may hold while links are checked.
pub const REGISTRY_RSS_BYTES_MAX: u64 = 400_000_000;

/// How long opening half of the URLs may take.
pub const REGISTRY_OPEN_SECONDS_MAX: f64 = 5.0;

/// Bytes that a forwarded link may take in batches of 100 …
pub const FORWARD_BYTES_100_MAX: f64 = 25.0;
/// … and of 1,000.
pub const FORWARD_BYTES_1000_MAX: f64 = 20.0;
/// Links that a node on two cores must forward per minute, each until it is acknowledged.
pub const FORWARD_LINKS_PER_MINUTE_MIN: f64 = 1_000_000.0;
/// Links that go the whole way, unless `--count` says otherwise: fewer than two senders may bring at once, so that no budget is used up.
pub const FORWARD_LINKS: u64 = 300_000;

/// Megabytes that are copied from one node to another, unless `--count` says otherwise.
pub const COPY_MEGABYTES: u64 = 512;
/// What copying may cost: at least this share of a bare stream per CPU second.
pub const COPY_SHARE_MIN: f64 = 0.8;

/// Pages of each site that nodes crawl together.
pub const RING_PAGES: usize = 400;
/// What five nodes on one machine crawl per CPU second, as a share of one node: with one copy …
pub const RING_SHARE_1_MIN: f64 = 0.7;
/// … and with three.
pub const RING_SHARE_3_MIN: f64 = 0.45;
/// How far a follower may be behind its leader, in seconds.
pub const RING_BEHIND_S_MAX: f64 = 2.0;

/// Bytes of archive that the memory soak adds, checks and rebuilds, unless `--count` says otherwise (in megabytes).
pub const MEMORY_MEGABYTES: u64 = 2000;

/// Memory that adding, checking and rebuilding may hold, whatever the size of the archive.
pub const MEMORY_RSS_BYTES_MAX: u64 = 300_000_000;

/// How long the fuzz soak runs, unless `--minutes` says otherwise.
pub const FUZZ_MINUTES: f64 = 10.0;

/// How often the kill soak kills, unless `--count` says otherwise.
pub const KILLS: u64 = 1000;

/// The open segment that a kill leaves behind when the time to open is measured.
pub const KILL_OPEN_BYTES: u64 = 1 << 30;
/// How long opening may take then, in milliseconds.
pub const KILL_OPEN_MS_MAX: u64 = 2_000;

/// The least number of pages of the documentation that the mirror soak crawls.
pub const MIRROR_PAGES: u64 = 30_000;

/// How long the politeness soak crawls, unless `--minutes` says otherwise.
pub const POLITE_MINUTES: f64 = 10.0;

/// Hosts of the politeness soak, unless `--count` says otherwise; with the sites and addresses they share.
pub const POLITE_HOSTS: u64 = 2000;
/// Their sites.
pub const POLITE_SITES: u64 = 300;
/// Their addresses.
pub const POLITE_ADDRESSES: u64 = 50;
/// Pages of each of them, on average.
pub const POLITE_PAGES: u64 = 100;
/// Hosts visited at once.
pub const POLITE_CONCURRENCY: u64 = 256;

/// How often the soak of killed crawls kills, unless `--count` says otherwise.
pub const CRAWL_KILLS: u64 = 50;
/// Over so many pages.
pub const CRAWL_KILL_PAGES: u64 = 20_000;

/// Contributors of their soak, and hosts that they visit, unless `--count` says otherwise.
pub const CONTRIBUTORS: u64 = 20;
/// Pages of each of those hosts.
pub const CONTRIBUTORS_PAGES: u64 = 20;
/// Pages of each host where they work for a ring.
pub const CONTRIBUTORS_RING_PAGES: u64 = 12;
/// How long a contributor's limits are looked at, unless `--minutes` says otherwise.
pub const CONTRIBUTOR_LIMITS_MINUTES: f64 = 10.0;
/// Hosts of the bench of a node's bytes, unless `--count` says otherwise.
pub const BANDWIDTH_HOSTS: u64 = 40;
/// Pages of each: a full bundle.
pub const BANDWIDTH_PAGES: u64 = 100;
/// Contributors of it, each in a network of its own.
pub const BANDWIDTH_CONTRIBUTORS: u64 = 6;
/// Pages of each host where processor time is compared.
pub const CONTRIBUTOR_CPU_PAGES: u64 = 50;
/// Hosts of the bench of handing out, unless `--count` says otherwise.
pub const DISPATCH_HOSTS: u64 = 200;
/// Pages of each: a full bundle.
pub const DISPATCH_PAGES: u64 = 100;
/// Worlds in which contributors lie.
pub const LIARS_SEEDS: u64 = 100;
/// URLs that a crawl knows when it is killed and begun again, unless `--count` says otherwise.
pub const RESTART_URLS: u64 = 5_000_000;
/// How soon it must then fetch again, from the start of the process.
pub const RESTART_SECONDS_MAX: f64 = 5.0;
/// URLs of others that a node comes to lead, unless `--count` says otherwise.
pub const TAKE_OVER_URLS: u64 = 1_000_000;
/// How soon it must know all of them.
pub const TAKE_OVER_SECONDS_MAX: u64 = 30;

/// How long the soak of steadiness runs, unless `--minutes` says otherwise.
pub const STEADY_MINUTES: f64 = 30.0;

/// How long the soak of the portal under load runs, unless `--minutes` says otherwise.
pub const SERVE_LOAD_MINUTES: f64 = 60.0;

/// How long a crawl of the whole hostile web may take, unless `--minutes` says otherwise.
pub const HOSTILE_MINUTES: f64 = 60.0;

/// Compressed pages that are served by both servers.
pub const SERVED_BYTES: u64 = 40_000_000;
/// Pages asked for.
pub const SERVED_PAGES: usize = 1_000;
/// How long each server is asked before anything counts, and then.
pub const SERVED_WARM_SECONDS: u64 = 4;
pub const SERVED_SECONDS: u64 = 10;

/// How long all policies may take on all webs.
pub const FRESHNESS_RUN_MAX: Duration = Duration::from_secs(3 * 3600);
/// Webs on which policies of revisiting are compared.
pub const FRESHNESS_SEEDS: u64 = 10;
/// Pages of each, unless `--count` says otherwise.
pub const FRESHNESS_PAGES: u64 = 100_000;
/// URLs about which decisions are measured, unless `--count` says otherwise.
pub const REVISIT_COST_URLS: u64 = 1_000_000;

/// Pages that become events of the stream when it is measured, unless `--count` says otherwise: once new, once changed.
pub const STREAM_PAGES: u64 = 200_000;

/// Check lines that the stream takes in when it is measured.
pub const STREAM_LINES: u64 = 1_000_000;

/// How long consumers follow when the stream is measured.
pub const STREAM_SECONDS: u64 = 20;

/// Pages of the web whose changes an indexer hears of, unless `--count` says otherwise.
pub const INDEXER_PAGES: u64 = 1_000;

/// Changes that are carried into PostgreSQL in the bench.
pub const POSTGRES_CHANGES: u64 = 800_000;

/// Changes per second that PostgreSQL must take, each a row of `changes` and an upsert of `urls`.
pub const POSTGRES_CHANGES_PER_S_MIN: f64 = 20_000.0;

/// Nodes of the ring that is simulated at full size.
pub const SIMULATE_NODES: u64 = 20_000;
/// Small worlds of the same soak, each with its own seed.
pub const SIMULATE_WORLDS: u64 = 200;
