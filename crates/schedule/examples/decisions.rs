//! What deciding about revisits costs: a JSON object with CPU time of one core.
//!
//! `decisions --urls 1000000`

use skep_schedule::limits::{BLOCK_URLS, PRICE_SAMPLE};
use skep_schedule::revisit::{Budget, Calendar, Found, Memory, Moment, Policy, Pool, Revisits};

/// URLs of one site.
const SITE_URLS: usize = 100;

fn main() {
    let urls = std::env::args().skip_while(|argument| argument != "--urls").nth(1);
    let urls: usize = urls.and_then(|urls| urls.parse().ok()).unwrap_or(1_000_000);
    let mut report = serde_json::Map::new();
    for policy in [Policy::Harmonic, Policy::Fresh] {
        let figures = measured(policy, urls);
        report.insert(policy.id().into(), figures);
    }
    report.insert("urls".into(), urls.into());
    report.insert("bytes_per_url".into(), size_of::<Memory>().into());
    report.insert("bytes_per_url_on_disk".into(), Memory::BYTES.into());
    println!("{}", serde_json::Value::Object(report));
}

fn measured(policy: Policy, urls: usize) -> serde_json::Value {
    let per_day = urls as f64 / 7.0;
    let mut revisits = Revisits::new(policy, Budget::PerDay(per_day), Moment(0));
    let mut sites = vec![Pool::default(); urls.div_ceil(SITE_URLS)];
    let mut calendar = Calendar::default();
    let mut memories: Vec<Memory> =
        (0..urls).map(|url| revisits.first(0.2 + chance(url, 1), &sites[url / SITE_URLS], Moment(0), 0.5)).collect();
    // A history for each: pages that change from every hour to never.
    let mut visits = 0u32;
    let began = cpu_ns();
    for round in 1..=4u32 {
        for (url, memory) in memories.iter_mut().enumerate() {
            let changed = chance(url, 7 + u64::from(round)) < chance(url, 2).powi(3);
            let found = if changed { Found::Changed(None) } else { Found::Same };
            revisits.visited(memory, &mut sites[url / SITE_URLS], found, Moment(round * 600_000), 0.5);
            calendar.sooner(url as u32 / BLOCK_URLS, memory.due());
            visits += 1;
        }
    }
    let visited_ns = (cpu_ns() - began) as f64 / f64::from(visits);

    let sample: Vec<Memory> = (0..PRICE_SAMPLE).map(|number| memories[number * 7_919 % memories.len()]).collect();
    let began = cpu_ns();
    revisits.end_epoch(&sample, 1.0, urls as u64 / 100, Moment(2_400_000));
    let price_ms = (cpu_ns() - began) as f64 / 1e6;

    // Twice the budget: a new price, and a new moment for every URL.
    let began = cpu_ns();
    revisits.set(policy, Budget::PerDay(2.0 * per_day), &sample);
    let mut due = 0u64;
    for (block, block_memories) in memories.chunks_mut(BLOCK_URLS as usize).enumerate() {
        let mut first = Moment::NEVER;
        for memory in block_memories {
            due += u64::from(revisits.look(memory, Moment(2_400_000), 0.5));
            first = first.min(memory.due());
        }
        calendar.set(block as u32, first);
    }
    let repriced_ns = (cpu_ns() - began) as f64;
    serde_json::json!({
        "visited_ns": visited_ns,
        "decision_ns": repriced_ns / urls as f64,
        "price_ms": price_ms,
        "repriced_s_per_million": repriced_ns * 1e-3 / urls as f64,
        "due": due,
    })
}

/// A number between 0 and 1.
fn chance(url: usize, question: u64) -> f32 {
    let mut x = (url as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ question.wrapping_mul(0xd6e8_feb8_6659_fd93);
    x = (x ^ (x >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (x >> 40) as f32 / (1u64 << 24) as f32
}

/// Nanoseconds of the processor that this thread used.
fn cpu_ns() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0)
}
