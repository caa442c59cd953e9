//! How fresh a budget of visits keeps copies of a changing web: every policy beside one that knows each page's rate of change, on
//! the same webs; the schedule of the product, in virtual time. And what its decisions cost.

mod plot;

use super::best;
use crate::limits;
use crate::long::{self, Options};
use crate::material;
use crate::measure;
use crate::table::{Table, count};
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;

/// Days per visit and page, and what is asked of the learned schedule there: its share of the oracle's freshness, and of the way
/// from an even schedule to the oracle, with pages worth the same and with pages of different worth.
const ASKED: [(f64, f64, f64, f64); 3] = [(30.0, 0.96, 0.50, 0.75), (7.0, 0.98, 0.70, 0.88), (2.0, 0.99, 0.80, 0.93)];

/// The policies in the order of the table.
const POLICIES: [&str; 9] =
    ["oracle", "oracle-harmonic", "harmonic", "fresh", "uniform", "daily", "anansi", "hyperdog", "hyperdog-timed"];

/// What the webs of this table leave out of the changing web that is described; said beside the figures, which are without it.
const LEFT_OUT: &str = "\
these webs leave out: births and deaths of pages and hosts (the same pages are there from beginning to end), outages of whole hosts
(a visit fails by itself, 15 of 1 000), how much of a page changes, templates and noise (each change counts, and nothing else looks
like one), and the clocks of sites: a budget is spent on any page at any moment, however large its host";
const OURS: &str = "harmonic";
const OTHERS: [&str; 5] = ["uniform", "daily", "anansi", "hyperdog", "hyperdog-timed"];

/// One policy at one budget, the mean over all webs.
#[derive(Clone, Copy, Default)]
struct Mean {
    fresh: f64,
    soon: f64,
    used: f64,
    hourly: f64,
    webs: f64,
}

/// Means by importance, days and policy.
struct Means(BTreeMap<(String, u32, String), Mean>);

impl Means {
    fn read(text: &str) -> Result<Means> {
        let mut means: BTreeMap<(String, u32, String), Mean> = BTreeMap::new();
        for line in text.lines() {
            let value: Value = serde_json::from_str(line).with_context(|| format!("no JSON object: {line}"))?;
            let number = |name: &str| value[name].as_f64().with_context(|| format!("no number `{name}` in {line}"));
            let word = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
            let mean = means.entry((word("importance"), number("days")? as u32, word("policy"))).or_default();
            mean.fresh += number("fresh")?;
            mean.soon += number("within_a_day")?;
            mean.used += number("used")?;
            mean.hourly += number("hourly_used")?;
            mean.webs += 1.0;
        }
        for mean in means.values_mut() {
            let webs = mean.webs;
            for sum in [&mut mean.fresh, &mut mean.soon, &mut mean.used, &mut mean.hourly] {
                *sum /= webs;
            }
        }
        Ok(Means(means))
    }

    fn of(&self, importance: &str, days: f64, policy: &str) -> Result<Mean> {
        let key = (importance.to_owned(), days as u32, policy.to_owned());
        self.0.get(&key).copied().with_context(|| format!("no figures of {policy} at {days} days"))
    }
}

pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let program = long::build_dist(workspace, "skep-schedule", "--example", "freshness")?;
    let pages = options.count.unwrap_or(limits::FRESHNESS_PAGES);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut command = Command::new(&program);
    command.args(["--pages", &pages.to_string(), "--seeds", &limits::FRESHNESS_SEEDS.to_string()]);
    command.args(["--threads", &threads.to_string()]);
    let run = measure::measure(&command, limits::FRESHNESS_RUN_MAX, None)?.ok()?;
    let folder = material::folder(workspace)?;
    std::fs::write(folder.join("freshness.jsonl"), &run.stdout)?;
    let means = Means::read(&run.stdout)?;

    let webs = limits::FRESHNESS_SEEDS;
    println!("{webs} webs of {} pages; judged after 16 mean revisit periods, for 8", count(pages));
    println!(
        "fresh: share of importance and time in which a copy is up to date; soon: changes captured within a day\n"
    );
    for importance in ["equal", "skewed"] {
        let mut table = Table::new(&[
            &format!("{importance} importance"),
            "30 days: fresh",
            "soon",
            "7 days: fresh",
            "soon",
            "2 days: fresh",
            "soon",
            "used",
        ]);
        for policy in POLICIES {
            let mut row = vec![policy.to_owned()];
            let mut used = 1f64;
            for (days, ..) in ASKED {
                let mean = means.of(importance, days, policy)?;
                row.extend([format!("{:.4}", mean.fresh), format!("{:.3}", mean.soon)]);
                used = used.min(mean.used);
            }
            row.push(format!("{used:.3}"));
            table.row(&row);
        }
        println!("{}", table.render());
    }
    judge(&means)?;
    kept(workspace, pages)?;
    println!("\n{}", LEFT_OUT);
    let plot = folder.join("freshness.svg");
    std::fs::write(&plot, plot::draw(&plot_series(&means)?))?;
    println!("\nthe plot is {}, the figures are beside it", plot.display());
    Ok(())
}

fn judge(means: &Means) -> Result<()> {
    let say = |name: &str, found: f64, least: f64| {
        println!("{name:<72} {found:.4}: {} (asked {least})", if found >= least { "reached" } else { "SHORT" });
    };
    for (days, ratio, closed_equal, closed_skewed) in ASKED {
        for (importance, closed) in [("equal", closed_equal), ("skewed", closed_skewed)] {
            let of = |policy: &str| means.of(importance, days, policy);
            let (oracle, ours, even) = (of("oracle")?.fresh, of(OURS)?.fresh, of("uniform")?.fresh);
            let at = format!("a visit per page and {days} days, {importance} importance:");
            say(&format!("{at} share of the oracle's freshness"), ours / oracle, ratio);
            say(&format!("{at} of the way from even visits"), (ours - even) / (oracle - even), closed);
            for other in OTHERS {
                let theirs = of(other)?.fresh;
                if theirs >= ours {
                    println!("{at} {other} is fresher: {theirs:.4} against {ours:.4}: SHORT");
                }
            }
        }
    }
    let ours = means.of("skewed", 7.0, OURS)?;
    let even = means.of("skewed", 7.0, "uniform-x5")?;
    say("even visits need more than five times ours: our freshness less theirs", ours.fresh - even.fresh, 0.0);
    say("changes captured within a day, a visit per page and week", ours.soon, 0.90);
    say("the hour's budget used, a visit per page and week", ours.hourly, 0.97);
    Ok(())
}

/// The first of the webs once more, each visit written into an archive and judged by the times that are read back from there.
fn kept(workspace: &Workspace, pages: u64) -> Result<()> {
    let program = long::build_dist(workspace, "skep-crawl", "--example", "freshness_kept")?;
    let mut command = Command::new(&program);
    command.args(["--pages", &pages.to_string(), "--seed", "1"]);
    let run = measure::measure(&command, limits::FRESHNESS_RUN_MAX, None)?.ok()?;
    println!("\nthe first web, skewed importance, judged by the times that its archive tells:");
    for (line, (days, asked, ..)) in run.stdout.lines().zip(ASKED) {
        let told: Value = serde_json::from_str(line).with_context(|| format!("no JSON object: {line}"))?;
        let number = |name: &str| told[name].as_f64().with_context(|| format!("no number `{name}` in {line}"));
        let (archive, by_the_loop) = (number("archive")?, number("loop")?);
        let share = archive / number("oracle")?;
        println!(
            "a visit per page and {days} days: {} responses, {} revisits, {} check lines; fresh {archive:.6}, by the loop's clock {by_the_loop:.6}; \
             {share:.4} of the oracle's: {} (asked {asked})",
            count(number("responses")? as u64),
            count(number("revisits")? as u64),
            count(number("checks")? as u64),
            if share >= asked { "reached" } else { "SHORT" },
        );
    }
    Ok(())
}

/// Freshness over visits per page and day, by policy, where pages are of different worth.
fn plot_series(means: &Means) -> Result<Vec<plot::Series>> {
    let series = |policy: &&str| -> Result<plot::Series> {
        let points = ASKED.iter().map(|(days, ..)| Ok((1.0 / days, means.of("skewed", *days, policy)?.fresh)));
        Ok(plot::Series { name: (*policy).to_owned(), points: points.collect::<Result<_>>()? })
    };
    POLICIES.iter().map(series).collect()
}

/// `cargo xtask bench revisit-cost`.
pub fn cost(workspace: &Workspace, options: &Options) -> Result<()> {
    let program = long::build_dist(workspace, "skep-schedule", "--example", "decisions")?;
    let urls = options.count.unwrap_or(limits::REVISIT_COST_URLS);
    let mut command = Command::new(&program);
    command.args(["--urls", &urls.to_string()]);
    let run = best(&command, options.runs, None)?;
    let told: Value = serde_json::from_str(run.stdout.trim()).context("no JSON object was printed")?;
    println!("{} URLs, CPU time of one core\n", count(urls));
    let mut table = Table::new(&["", "a decision", "a visit learned", "a price", "a million re-priced"]);
    let figure = |policy: &str, name: &str| told[policy][name].as_f64().with_context(|| format!("no `{name}`"));
    for policy in ["harmonic", "fresh"] {
        table.row(&[
            policy.to_owned(),
            format!("{:.0} ns", figure(policy, "decision_ns")?),
            format!("{:.0} ns", figure(policy, "visited_ns")?),
            format!("{:.1} ms", figure(policy, "price_ms")?),
            format!("{:.2} s", figure(policy, "repriced_s_per_million")?),
        ]);
    }
    println!("{}", table.render());
    let say = |what: &str, held: bool, asked: &str| {
        println!("{what}: {} (asked {asked})", if held { "reached" } else { "SHORT" });
    };
    let worst = |name: &str| -> Result<f64> { Ok(figure("harmonic", name)?.max(figure("fresh", name)?)) };
    let decision_ns = worst("decision_ns")?.max(worst("visited_ns")?);
    say(&format!("{decision_ns:.0} ns per decision"), decision_ns <= 2_000.0, "at most 2 000");
    let bytes = told["bytes_per_url"].as_f64().unwrap_or(f64::NAN);
    say(&format!("{bytes} bytes of schedule state per URL"), bytes <= 32.0, "at most 32");
    let seconds = worst("repriced_s_per_million")?;
    say(&format!("{seconds:.2} s for a million URLs re-priced"), seconds < 1.0, "less than 1");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_several_webs_become_their_mean() {
        let line = |seed: u32, fresh: f64| {
            format!(
                r#"{{"seed":{seed},"policy":"harmonic","days":7.0,"importance":"equal","fresh":{fresh},"within_a_day":0.5,"used":1.0,"hourly_used":0.99}}"#
            )
        };
        let means = Means::read(&format!("{}\n{}\n", line(1, 0.8), line(2, 0.9))).unwrap();
        let mean = means.of("equal", 7.0, "harmonic").unwrap();
        assert!((mean.fresh - 0.85).abs() < 1e-9 && mean.webs == 2.0);
        assert!(means.of("skewed", 7.0, "harmonic").is_err());
        assert!(Means::read("nonsense").is_err());
    }
}
