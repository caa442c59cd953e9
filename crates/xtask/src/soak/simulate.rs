//! The ring at its full size: 20,000 nodes and 2^18 slices, by the binary itself. A broken rule is its exit code. How soon absence is
//! known by everybody is seen where nodes watch each other; and small worlds in which everything goes wrong run on many more seeds
//! than the test has time for.

use crate::limits;
use crate::long::{self, Options};
use crate::table::{Table, count};
use crate::workspace::Workspace;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::process::Command;

/// Mean life in days, and what the notes found: repair mean in hours, traffic in kB a second and node at 1 TB, losses.
const LIVES: [(&str, &str, &str, &str); 2] = [("365", "25.3", "32", "4.8e-6"), ("90", "25.0", "129", "2.8e-4")];

pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let skep = long::build(workspace, "skep", "--bin", "skep")?;
    let nodes = options.count.unwrap_or(limits::SIMULATE_NODES).to_string();
    let seed = options.seed.to_string();
    let simulated = |words: &[&str]| -> Result<Value> {
        println!("skep simulate {}", words.join(" "));
        let run = Command::new(&skep).arg("simulate").args(words).args(["--json", "--seed", &seed]).output()?;
        let told = String::from_utf8_lossy(&run.stdout).into_owned();
        ensure!(run.status.success(), "a rule was broken: {told}{}", String::from_utf8_lossy(&run.stderr));
        serde_json::from_str(&told).context("no JSON object was printed")
    };
    let watching = simulated(&["--nodes", "1000", "--life", "2", "--days", "0.04"])?;
    let mut held = Vec::new();
    for (life, repair, traffic, losses) in LIVES {
        let told = simulated(&["--nodes", &nodes, "--slices", "2^18", "--days", "2", "--life", life])?;
        let figure = |name: &str| told[name].as_f64().with_context(|| format!("no number `{name}` in {told}"));
        let mut table = Table::new(&["a mean life of", life, "days"]);
        let mut row = |what: &str, seen: String, beside: String| table.row(&[what.to_owned(), seen, beside]);
        row("departed, joined nodes in their place", count(figure("departures")? as u64), String::new());
        row("acknowledged and lost", count(figure("lost")? as u64), String::new());
        let repaired = format!("{:.1} h, 99 % {:.1} h", figure("repair_hours_mean")?, figure("repair_hours_p99")?);
        row("repaired after", repaired, format!("notes {repair} h"));
        let slice_bytes = figure("slice_bytes")?;
        let at_1_tb = 1e12 * figure("nodes")? / figure("slices")? / 3.0;
        let bytes_per_s = figure("repair_bytes_per_s_and_node")?;
        let scaled = bytes_per_s * at_1_tb / slice_bytes / 1000.0;
        let seen = format!("{:.1} kB/s, at 1 TB {scaled:.1} kB/s", bytes_per_s / 1000.0);
        row("repair traffic a node", seen, format!("notes {traffic} kB/s"));
        row(
            "losses per slice and year",
            format!("{:.1e}", figure("losses_per_slice_year")?),
            format!("notes {losses}"),
        );
        for rule in told["model"].as_array().into_iter().flatten() {
            let rate = rule["losses_per_slice_year"].as_f64().unwrap_or(f64::NAN);
            let what = format!("  repair after {}", rule["rule"].as_str().unwrap_or_default());
            row(&what, format!("{rate:.1e}, in ten years {:.1e}", 10.0 * rate), String::new());
        }
        print!("{}", table.render());
        let known = figure("absence_known_s_max")?;
        held.push(verdict(
            format!("{:.1} MB of roster and ring", figure("view_bytes")? / 1e6),
            "below 30",
            figure("view_bytes")? < 30e6,
        ));
        held.push(verdict(format!("absence proven within {known:.0} s"), "at most 120", known <= 120.0));
        let load = figure("load_deviation")?;
        let seen =
            format!("load ± {:.1} % of the share of capacity, at most {:.2} of it", 100.0 * load, figure("load_most")?);
        held.push(verdict(seen, "within 20 %", load <= 0.2));
        if life == "365" {
            let rate = figure("losses_per_slice_year")?;
            let seen = format!("{rate:.1e} losses per slice and year, slices of {:.1} GB", slice_bytes / 1e9);
            held.push(verdict(seen, "at most 4.8e-6", rate <= 4.8e-6));
        }
    }
    let heard = watching["absence_heard_by_all_s_max"].as_f64().context("nobody died among those who watch")?;
    let seen = format!("absence heard by everybody within {heard:.0} s, where 1,000 nodes watch each other");
    held.push(verdict(seen, "at most 120", heard <= 120.0));
    let seeds = limits::SIMULATE_WORLDS.to_string();
    let worlds = [("SKEP_WORLDS", seeds.as_str())];
    long::test(workspace, "skep-ring", "worlds", "nothing_breaks_in_rough_worlds", &worlds)?;
    ensure!(held.iter().all(|held| *held), "something asked was not reached, see above");
    Ok(())
}

fn verdict(seen: String, asked: &str, held: bool) -> bool {
    println!("{seen}: {} (asked {asked})", if held { "reached" } else { "SHORT" });
    held
}
