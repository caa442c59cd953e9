//! Worlds in which everything goes wrong, on fixed seeds: small ones in which all of it happens at once and mutants are sought, 500 nodes
//! that watch each other, and 20,000 over days.

use skep_ring::simulate::auditor::Rule;
use skep_ring::simulate::plan::Plan;
use skep_ring::simulate::scenario::{Asked, Filling, Report, SLICE_BYTES, Scenario, brisk, run, shortened, world};
use skep_ring::simulate::split::COUNTED_AS;
use skep_ring::simulate::world::{Options, World};
use skep_ring::{Chance, Mutation, Settings};

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;
/// Seeds of worlds in which all rules hold, and in which mutants are sought.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=5;
/// So long after everything is as it should be, those lead who should: until who leads hands over, the next offer to who has left one lie.
const QUIET_MS: u64 = 40 * MINUTE;
/// The seed of the world with real signatures and encoded messages.
const REAL_SEED: u64 = 6;

fn filling(nodes: usize, spare: usize) -> Filling {
    Filling {
        nodes,
        spare,
        slice_bits: 4,
        copies: 3,
        real: false,
        shared: false,
        liars: 0.0,
        slice_bytes: 1_000_000,
        capacity_gb: 250,
    }
}

fn options(seed: u64, mutation: Mutation) -> Options {
    Options { seed, settings: Settings { mutation, ..brisk() }, loss: 0.02, torn: 0.00002, ..Options::default() }
}

/// Three hours: crashes, lost disks, joins, leaves, splits, one-way cuts, flipped bits, a clock that is off by hours.
fn rough(seed: u64, mutation: Mutation, real: bool) -> World {
    rough_with(seed, mutation, real, 0)
}

/// The same, where one site is split by so many bits.
fn rough_with(seed: u64, mutation: Mutation, real: bool, split_bits: u8) -> World {
    let mut chance = Chance::new(seed);
    let filling = Filling { real, ..filling(9, 3) };
    let mut world = world(Options { encode: real, split_bits, ..options(seed, mutation) }, &filling);
    world.nodes[8].off_ms = 5 * HOUR as i64;
    world.run(20 * MINUTE);
    for round in 0..4 {
        let begin = round * 35 * MINUTE;
        match chance.below(3) {
            0 => {
                let part = (0..12).map(|_| chance.below(2) as u8).collect();
                world.plan(begin, Plan::Split(part));
                world.plan(begin + chance.below(20 * MINUTE), Plan::Heal);
            }
            1 => {
                for _ in 0..8 {
                    let (from, to) = (chance.below(9) as usize, chance.below(9) as usize);
                    world.plan(begin + chance.below(5 * MINUTE), Plan::OneWay(from, to));
                }
                world.plan(begin + 15 * MINUTE, Plan::Heal);
            }
            _ => {
                for _ in 0..2 {
                    let node = chance.below(9) as usize;
                    let at = begin + chance.below(10 * MINUTE);
                    world.plan(at, Plan::Crash(node));
                    world.plan(at + chance.below(15 * MINUTE), Plan::Restart(node));
                }
            }
        }
        let node = chance.below(9) as usize;
        match chance.below(3) {
            0 => world.plan(begin + chance.below(10 * MINUTE), Plan::Flip(node)),
            1 if round == 1 => world.plan(begin + chance.below(10 * MINUTE), Plan::Lose(node)),
            _ => world.plan(begin + chance.below(10 * MINUTE), Plan::Join(9 + (round % 3) as usize)),
        }
    }
    world.plan(60 * MINUTE, Plan::Leave(chance.below(4) as usize));
    world.run(150 * MINUTE);
    world.plan(0, Plan::Heal);
    world.options.torn = 0.0;
    world.plan(10 * MINUTE, Plan::CompareRosters);
    world.run(15 * MINUTE);
    world.check_losses();
    world.plan(QUIET_MS, Plan::CompareLeaders);
    world.run(QUIET_MS);
    world
}

/// Two nodes become five while they crawl: each slice goes to those whom the ring wishes for, and with it the lead.
fn growing(seed: u64, mutation: Mutation) -> World {
    let mut world = world(options(seed, mutation), &filling(2, 3));
    for node in 2..5 {
        world.plan(node as u64 * 5 * MINUTE, Plan::Join(node));
    }
    world.run(30 * MINUTE);
    world.options.torn = 0.0;
    world.plan(QUIET_MS, Plan::CompareLeaders);
    world.run(QUIET_MS);
    world
}

#[test]
fn whom_the_ring_wishes_for_leads_when_nodes_have_come() {
    for seed in SEEDS {
        let world = growing(seed, Mutation::None);
        assert_eq!(world.auditor.broken, [], "seed {seed}");
        assert!(world.auditor.compared >= 12, "seed {seed}: {} slices compared", world.auditor.compared);
    }
}

/// Two hours in which all nodes get a newer program, one after the other, while they crawl; a disk is lost on the way.
fn upgraded(seed: u64, mutation: Mutation) -> World {
    let older = Options { encode: true, torn: 0.0, protocol: (1, 1), ..options(seed, mutation) };
    let mut world = world(older, &filling(7, 0));
    world.run(10 * MINUTE);
    for node in 0..7 {
        world.plan(node as u64 * 10 * MINUTE, Plan::Upgrade(node));
    }
    world.plan(35 * MINUTE, Plan::Lose(6));
    world.run(80 * MINUTE);
    world.plan(0, Plan::CompareRosters);
    world.run(30 * MINUTE);
    world.check_losses();
    world
}

#[test]
fn a_rolling_upgrade_loses_nothing_and_everybody_is_understood() {
    for seed in SEEDS {
        let world = upgraded(seed, Mutation::None);
        assert_eq!(world.auditor.broken, [], "seed {seed}");
        assert_eq!((world.figures.lost, world.figures.unreadable), (0, 0), "seed {seed}");
        assert!(world.auditor.visits > 1000, "seed {seed}");
        let roster = &world.view_of(0).roster;
        let speaks = |node: usize| roster.record_of(&world.nodes[node].seal.key()).map(|signed| signed.record.protocol);
        assert!((0..6).all(|node| speaks(node) == Some(skep_ring::message::SPEAKS)), "seed {seed}");
    }
    assert!(upgraded(1, Mutation::Protocol).figures.unreadable > 100, "who speaks as it likes is not understood");
}

/// Says how often somebody came to lead a site that was to be left alone, and knew it from others.
fn nothing_breaks(seed: u64, real: bool) -> u64 {
    let world = rough(seed, Mutation::None, real);
    assert_eq!(world.auditor.broken, [], "seed {seed}");
    assert_eq!(world.figures.lost, 0, "seed {seed}");
    assert!(world.auditor.visits > 1000, "seed {seed}");
    assert!(world.auditor.compared > 0, "seed {seed}: nobody looked who leads");
    world.auditor.waited
}

#[test]
fn nothing_breaks_in_rough_worlds() {
    // A soak asks for more of them.
    let seeds = std::env::var("SKEP_WORLDS").ok().map(|count| 1..=count.parse().expect("a number of seeds"));
    let seeds = seeds.unwrap_or(SEEDS);
    let (count, waited) = (seeds.clone().count() as u64, seeds.map(|seed| nothing_breaks(seed, false)).sum::<u64>());
    assert!(waited >= count, "{waited} times somebody led a site that was to be left alone");
}

#[test]
fn nothing_breaks_with_real_signatures_and_encoded_messages() {
    assert!(nothing_breaks(REAL_SEED, true) > 0, "nobody led a site that was to be left alone");
}

#[test]
fn mutants_are_found() {
    for (mutation, rules) in [
        (Mutation::Majority, &[Rule::OneLease, Rule::Hurried, Rule::Majority][..]),
        (Mutation::EpochCheck, &[Rule::OldEpoch, Rule::OneLease, Rule::Hurried][..]),
        (Mutation::Audit, &[Rule::Deleted, Rule::NothingLost][..]),
        (Mutation::Politeness, &[Rule::Hurried][..]),
        (Mutation::Wish, &[Rule::Unwished][..]),
    ] {
        let found = SEEDS.into_iter().find_map(|seed| {
            let world = rough(seed, mutation, false);
            rules.iter().find(|rule| world.auditor.has_broken(**rule)).map(|rule| (seed, *rule))
        });
        assert!(found.is_some(), "{mutation:?} goes unnoticed");
    }
}

#[test]
fn a_site_that_is_split_is_hurried_by_nobody_in_rough_worlds() {
    let mut many = 0;
    for seed in SEEDS {
        let world = rough_with(seed, Mutation::None, false, 2);
        assert_eq!(world.auditor.broken, [], "seed {seed}");
        many += u32::from(world.auditor.large.len() > 3);
        assert!(world.auditor.visited_ms.contains_key(&COUNTED_AS), "seed {seed}: nobody went there");
    }
    assert!(many > 0, "more than a few nodes go there in turn");
    let world = rough_with(REAL_SEED, Mutation::None, true, 3);
    assert_eq!(world.auditor.broken, [], "with real signatures and encoded messages");
    assert!(world.auditor.large.len() > 1);
}

#[test]
fn who_visits_a_site_that_is_split_out_of_turn_is_found() {
    for mutation in [Mutation::Outstayed, Mutation::Forgotten] {
        // Who forgets is found in one world of three: more of them are looked at than elsewhere, up to the first.
        let found = (1..=20).any(|seed| {
            let world = rough_with(seed, mutation, false, 2);
            world.auditor.broken.iter().any(|broken| (broken.rule, broken.slice) == (Rule::Hurried, COUNTED_AS))
        });
        assert!(found, "{mutation:?} goes unnoticed");
    }
}

/// Real times for what nodes do every few seconds; what takes a day takes 20 minutes, so lives are as much shorter.
const SHORTENED: f64 = 1.0 / 72.0;

/// 500 nodes that each have a roster of their own and watch each other, for an hour.
fn full(scenario: Scenario, life_days: f64, seed: u64) -> Report {
    let asked = Asked {
        nodes: 500,
        slice_bits: 10,
        copies: 3,
        days: 1.0 / 24.0,
        life_days: life_days * SHORTENED,
        seed,
        scenario,
        slice_bytes: 1_000_000,
    };
    let report = run(&asked, shortened());
    assert_eq!(report.broken, [], "{scenario:?}, a life of {life_days} days, seed {seed}");
    assert!(report.figures.heard_ms.len() > 400 || scenario == Scenario::Split);
    report
}

/// 20,000 nodes that share one view, for days; what is silent is told to its watchers.
fn large(scenario: Scenario, life_days: f64, days: f64, seed: u64) -> Report {
    let asked =
        Asked { nodes: 20_000, slice_bits: 13, copies: 3, days, life_days, seed, scenario, slice_bytes: SLICE_BYTES };
    let report = run(&asked, Settings::default());
    assert_eq!(report.broken, [], "{scenario:?}, a life of {life_days} days, seed {seed}");
    assert!(report.departures > 0);
    report
}

#[test]
fn five_hundred_nodes_live_a_year_on_average() {
    let report = full(Scenario::Churn, 365.0, 11);
    assert!(report.departures > 0 && !report.figures.repaired_ms.is_empty());
    let heard_ms = report.figures.heard_ms.iter().copied().max().unwrap_or(0);
    assert!(heard_ms <= 2 * MINUTE, "somebody heard of an absence after {heard_ms} ms");
}

#[test]
fn five_hundred_nodes_live_three_months_on_average() {
    let report = full(Scenario::Churn, 90.0, 12);
    assert!(report.departures > 8 && report.figures.repaired_ms.len() > 20);
    let heard_ms = report.figures.heard_ms.iter().copied().max().unwrap_or(0);
    assert!(heard_ms <= 2 * MINUTE, "somebody heard of an absence after {heard_ms} ms");
}

#[test]
fn a_region_of_five_hundred_nodes_goes_dark() {
    assert!(full(Scenario::Region, 365.0, 13).departures > 80);
}

#[test]
fn five_hundred_nodes_fall_in_two_and_heal() {
    full(Scenario::Split, 365.0, 14);
}

#[test]
fn a_tenth_of_five_hundred_nodes_lies() {
    full(Scenario::Byzantine, 90.0, 15);
}

#[test]
fn twenty_thousand_nodes_live_a_year_on_average() {
    let report = large(Scenario::Churn, 365.0, 2.0, 21);
    assert!(report.figures.repaired_ms.len() > 20);
}

#[test]
fn twenty_thousand_nodes_live_three_months_on_average() {
    let report = large(Scenario::Churn, 90.0, 1.5, 22);
    assert!(report.figures.repaired_ms.len() > 100);
}

#[test]
fn a_region_of_twenty_thousand_nodes_goes_dark() {
    assert!(large(Scenario::Region, 365.0, 0.15, 23).departures > 3000);
}

#[test]
fn a_tenth_of_twenty_thousand_nodes_lies() {
    large(Scenario::Byzantine, 90.0, 1.0, 24);
}
