//! `skep simulate`: a network that does not exist, run by the machines of one that does.

use crate::failure::{Failure, Result};
use crate::job::Exit;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use skep_ring::Settings;
use skep_ring::simulate::rates::{Rates, losses_per_slice_year};
use skep_ring::simulate::scenario::{
    Asked, FULL_NODES_MAX, Report, SLICE_BYTES, Scenario, mean, percentile, run as simulate,
};

/// Run a network of thousands of nodes in virtual time: what is lost, how long repair takes, how even the load is
#[derive(Args)]
#[command(after_help = "\
Up to 1,000 nodes each have a roster of their own and watch each other as real nodes do; in larger runs all share one,
and the world tells watchers who is silent. The same seed gives the same run. One thread; nothing is written.
Exit code 1 if a rule was broken: something acknowledged lost while an honest holder lives, two leaders, a site
hurried, a copy deleted too early, rosters that stay different.")]
pub struct Typed {
    /// Nodes at the beginning
    #[arg(long, value_name = "N", default_value_t = 2000)]
    nodes: usize,
    /// Days that pass; fractions are allowed [default: 0.04 up to 1,000 nodes, else 3]
    #[arg(long, value_name = "D", allow_negative_numbers = true)]
    days: Option<f64>,
    /// Mean life of a node in days; then it is gone with its disk
    #[arg(long, value_name = "DAYS", default_value_t = 365.0)]
    life: f64,
    /// The seed of everything
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Slices, a power of two; also as 2^18 [default: at least four a node]
    #[arg(long, value_name = "N")]
    slices: Option<String>,
    /// What happens
    #[arg(long, value_enum, default_value_t = Happens::Churn)]
    scenario: Happens,
}

#[derive(Clone, Copy, ValueEnum)]
enum Happens {
    /// Nodes die for good, and others join
    Churn,
    /// The network falls in two and heals
    Split,
    /// A region goes dark and comes back
    Region,
    /// A tenth of the nodes lie
    Byzantine,
}

/// The notes' table: mean life in days, repair mean in hours, traffic in bytes a second, losses per slice and year.
const EXPECTED: [(f64, f64, f64, f64); 2] = [(365.0, 25.3, 32_000.0, 4.8e-6), (90.0, 25.0, 129_000.0, 2.8e-4)];

pub fn run(typed: &Typed, json: bool) -> Result<Exit> {
    let asked = meant(typed)?;
    let report = simulate(&asked, Settings::default());
    let value = object(&report);
    if json {
        println!("{value}");
    } else {
        print!("{}", table(&report));
    }
    Ok(if report.broken.is_empty() { Exit::Done } else { Exit::No })
}

fn meant(typed: &Typed) -> Result<Asked> {
    let nodes = typed.nodes;
    if !(3..=60_000).contains(&nodes) {
        return Err(Failure::new(format!("--nodes {nodes}: a simulation has 3 to 60,000 nodes")));
    }
    let slices = match &typed.slices {
        None => (4 * nodes).next_power_of_two() as u64,
        Some(text) => parse_slices(text)?,
    };
    let days = typed.days.unwrap_or(if nodes <= FULL_NODES_MAX { 0.04 } else { 3.0 });
    if !(days > 0.0 && days <= 3650.0 && typed.life > 0.0 && typed.life.is_finite()) {
        return Err(Failure::new("--days is above 0 and at most 3,650, --life above 0".to_owned()));
    }
    let scenario = match typed.scenario {
        Happens::Churn => Scenario::Churn,
        Happens::Split => Scenario::Split,
        Happens::Region => Scenario::Region,
        Happens::Byzantine => Scenario::Byzantine,
    };
    if nodes > FULL_NODES_MAX && scenario == Scenario::Split {
        return Err(Failure::new("a split needs nodes with rosters of their own".to_owned())
            .hint(format!("`--nodes {FULL_NODES_MAX}` or fewer")));
    }
    Ok(Asked {
        nodes,
        slice_bits: slices.trailing_zeros() as u8,
        copies: 3,
        days,
        life_days: typed.life,
        seed: typed.seed,
        scenario,
        slice_bytes: if nodes <= FULL_NODES_MAX { 1_000_000 } else { SLICE_BYTES },
    })
}

fn parse_slices(text: &str) -> Result<u64> {
    let number = match text.split_once('^') {
        Some(("2", power)) => power.parse::<u32>().ok().filter(|power| *power <= 20).map(|power| 1u64 << power),
        _ => text.parse().ok(),
    };
    number.filter(|slices| slices.is_power_of_two() && *slices <= 1 << 20).ok_or_else(|| {
        Failure::new(format!("--slices {text}: not a power of two up to 2^20"))
            .hint("`--slices 4096` or `--slices 2^12`")
    })
}

/// Losses over ten years by the rate model, for the rule and for what others would do.
fn model(report: &Report) -> Vec<(&'static str, f64)> {
    let copy_h = report.copy_h;
    let rates = |late_h, soon_h| {
        let life_days = report.asked.life_days;
        losses_per_slice_year(&Rates { copies: usize::from(report.asked.copies), life_days, late_h, soon_h })
    };
    // A node that is full has larger slices to copy, unless there are more of them.
    let slices = f64::from(1u32 << report.asked.slice_bits);
    let full_bytes = 1e12 * report.asked.nodes as f64 / slices / f64::from(report.asked.copies);
    let full_h = copy_h * full_bytes / report.asked.slice_bytes.max(1) as f64;
    vec![
        ("24 h, 1 h with one copy left", rates(24.0 + copy_h, 1.0 + copy_h)),
        ("the same, 1 TB in each node", rates(24.0 + full_h, 1.0 + full_h)),
        ("always 24 h", rates(24.0 + copy_h, 24.0 + copy_h)),
        ("always 6 h", rates(6.0 + copy_h, 6.0 + copy_h)),
        ("always 7 days", rates(168.0 + copy_h, 168.0 + copy_h)),
    ]
}

fn object(report: &Report) -> Value {
    let figures = &report.figures;
    let hours = |ms: Option<f64>| ms.map(|ms| ms / 3_600_000.0);
    json!({
        "nodes": report.asked.nodes, "slices": 1u64 << report.asked.slice_bits, "days": report.asked.days,
        "life_days": report.asked.life_days, "seed": report.asked.seed, "full_liveness": report.full,
        "departures": report.departures, "events": figures.events, "messages": figures.messages,
        "lost": figures.lost, "deleted": figures.deleted, "copied_bytes": figures.copied_bytes,
        "repairs": figures.repaired_ms.len(),
        "repair_hours_mean": hours(mean(&figures.repaired_ms)),
        "repair_hours_p99": hours(percentile(&figures.repaired_ms, 0.99).map(|ms| ms as f64)),
        "repair_bytes_per_s_and_node": report.repair_bytes_per_s,
        "absence_known_s_mean": mean(&figures.noticed_ms).map(|ms| ms / 1000.0),
        "absence_known_s_max": figures.noticed_ms.iter().max().map(|ms| *ms as f64 / 1000.0),
        "absence_heard_by_all_s_max": figures.heard_ms.iter().max().map(|ms| *ms as f64 / 1000.0),
        "slice_bytes": report.asked.slice_bytes,
        "load_deviation": report.load.0, "load_most": report.load.1, "view_bytes": report.view_bytes,
        "losses_per_slice_year": report.loss_rate,
        "model": model(report).into_iter().map(|(rule, rate)| json!({ "rule": rule, "losses_per_slice_year": rate })).collect::<Vec<_>>(),
        "broken": report.broken.iter().map(|broken| json!({
            "rule": format!("{:?}", broken.rule), "at_s": broken.at_ms / 1000, "slice": broken.slice, "what": broken.what,
        })).collect::<Vec<_>>(),
    })
}

fn table(report: &Report) -> String {
    let (asked, figures) = (&report.asked, &report.figures);
    let mut out = String::new();
    let mut row = |name: &str, value: String| out += &format!("{name:<44}{value}\n");
    let hours = |ms: f64| format!("{:.1} h", ms / 3_600_000.0);
    let slices = 1u64 << asked.slice_bits;
    let kind = if report.full { "every node watches others" } else { "one roster for all, watchers are told" };
    row("nodes, slices, days", format!("{}, {slices}, {} ({kind})", asked.nodes, asked.days));
    row("departed", report.departures.to_string());
    row("acknowledged and lost", figures.lost.to_string());
    let expected = EXPECTED.iter().find(|row| row.0 == asked.life_days).filter(|_| !report.full);
    let beside = |text: String| expected.map_or(String::new(), |_| format!("   (notes: {text})"));
    let notes = expected.copied().unwrap_or_default();
    let repaired = match (mean(&figures.repaired_ms), percentile(&figures.repaired_ms, 0.99)) {
        (Some(mean), Some(p99)) => format!(
            "{}, 99 % within {}, {} of them{}",
            hours(mean),
            hours(p99 as f64),
            figures.repaired_ms.len(),
            beside(format!("{} h", notes.1))
        ),
        _ => "nothing was repaired in this time".into(),
    };
    row("repaired after", repaired);
    let traffic = report.repair_bytes_per_s / 1000.0;
    row(
        "repair traffic a node",
        format!("{traffic:.1} kB/s{}", beside(format!("{:.0} kB/s at 1 TB", notes.2 / 1000.0))),
    );
    let noticed = match (mean(&figures.noticed_ms), figures.noticed_ms.iter().max()) {
        (Some(mean), Some(most)) => {
            let proven = format!("{:.0} s, at most {:.0} s", mean / 1000.0, *most as f64 / 1000.0);
            match figures.heard_ms.iter().max() {
                Some(heard) => format!("{proven}; heard by everybody after {:.0} s", *heard as f64 / 1000.0),
                None => proven,
            }
        }
        _ => "nobody was absent".into(),
    };
    row("absence known after", noticed);
    row("load beside share of capacity", format!("± {:.1} %, most {:.2}", report.load.0 * 100.0, report.load.1));
    row("roster and ring in one node", format!("{:.1} MB", report.view_bytes as f64 / 1e6));
    row("events, messages", format!("{}, {}", figures.events, figures.messages));
    row("losses per slice and year:", beside(format!("{:e}", notes.3)));
    for (rule, rate) in model(report) {
        row(&format!("  repair after {rule}"), format!("{rate:.1e}, in ten years {:.1e}", rate * 10.0));
    }
    if report.broken.is_empty() {
        row("rules broken", "none".into());
    }
    for broken in &report.broken {
        row("rule broken", format!("{:?}, slice {}, {}", broken.rule, broken.slice, broken.what));
    }
    out
}
