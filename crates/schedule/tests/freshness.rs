//! A budget of visits keeps copies nearly as fresh as if every page's rate of change were known, and fresher than other policies
//! do. Twenty thousand pages of the changing web, one seed, what matters changing sooner; one test per budget.

mod watching;

use skep_schedule::revisit::hint::{Source, Trust};
use skep_schedule::revisit::{Budget, Found, Memory, Moment, Policy, Pool, Revisits};
use skep_testweb::changing::{Changing, Freshness, Model};
use watching::Watch;

fn watched(web: &Changing, policy: Policy, oracle: bool, period: f64) -> Freshness {
    let watch = Watch { policy, oracle, visits_per_page: 1.0 / period, equal: false, learning: 16.0, judged: 8.0 };
    watching::run(web, watch)
}

fn learned_against_oracle(period: f64, least: f64) {
    let web = Changing::new(1, 20_000, Model::open_web());
    let oracle = watched(&web, Policy::Fresh, true, period);
    let ours = watched(&web, Policy::Harmonic, false, period);
    println!("every {period} days: oracle {oracle:?}, harmonic {ours:?}");
    assert!(ours.fresh / oracle.fresh >= least, "{} of the oracle's freshness", ours.fresh / oracle.fresh);
    assert!(ours.hourly_used >= 0.97, "{} of each hour's budget", ours.hourly_used);
    let visits = 8 * u64::from(web.pages());
    assert!(ours.visits <= visits, "{} visits of {visits}", ours.visits);
    for policy in [Policy::Uniform, Policy::Daily, Policy::Anansi, Policy::Hyperdog, Policy::HyperdogTimed] {
        let theirs = watched(&web, policy, false, period);
        println!("{}: {theirs:?}", policy.id());
        assert!(ours.fresh > theirs.fresh, "{} is {} fresh, we are {}", policy.id(), theirs.fresh, ours.fresh);
    }
    let fresh = watched(&web, Policy::Fresh, false, period);
    println!("fresh: {fresh:?}");
    assert!(fresh.fresh / oracle.fresh >= least, "{}", fresh.fresh / oracle.fresh);
    assert!(ours.within_a_day > fresh.within_a_day, "harmonic misses fewer changes: {ours:?} {fresh:?}");
}

#[test]
fn a_visit_per_page_and_thirty_days() {
    learned_against_oracle(30.0, 0.96);
}

#[test]
fn a_visit_per_page_and_week() {
    learned_against_oracle(7.0, 0.98);
}

#[test]
fn a_visit_per_page_and_two_days() {
    learned_against_oracle(2.0, 0.99);
}

#[test]
fn a_new_budget_takes_effect_at_once() {
    let day = |days: u32| Moment(days * 86_400);
    let mut revisits = Revisits::new(Policy::Harmonic, Budget::PerDay(100.0), day(0));
    let mut site = Pool::default();
    let mut pages: Vec<Memory> = (0..1_000).map(|_| revisits.first(1.0, &site, day(0), 0.5)).collect();
    for (number, page) in pages.iter_mut().enumerate() {
        let found = if number % 3 == 0 { Found::Changed(None) } else { Found::Same };
        revisits.visited(page, &mut site, found, day(10), 0.5);
    }
    let due_by = |revisits: &Revisits, pages: &[Memory], by: Moment| {
        pages.iter().filter(|page| revisits.due(page, 0.5) <= by).count()
    };
    revisits.end_epoch(&pages, 1.0, 10, day(10));
    let before = due_by(&revisits, &pages, day(12));
    revisits.set(Policy::Harmonic, Budget::PerDay(1_000.0), &pages);
    assert!(due_by(&revisits, &pages, day(12)) > 3 * before.max(50), "ten times the visits, from now on");
    revisits.set(Policy::Harmonic, Budget::EveryDays(1.0), &pages);
    assert_eq!(due_by(&revisits, &pages, day(11)), 1_000);
}

#[test]
fn a_hint_brings_a_page_forward_as_far_as_it_is_believed() {
    let mut revisits = Revisits::new(Policy::Harmonic, Budget::PerDay(0.02), Moment(0));
    let mut site = Pool::default();
    let mut page = revisits.first(1.0, &site, Moment(0), 0.5);
    revisits.end_epoch(&[page], 1.0, 0, Moment(0));
    revisits.visited(&mut page, &mut site, Found::Changed(None), Moment(20 * 86_400), 0.5);
    let before = revisits.due(&page, 0.5);
    let mut doubted = page;
    doubted.told(Source::Sitemap, 0.05);
    page.told(Source::Sitemap, 1.0);
    assert!(revisits.due(&page, 0.5) < revisits.due(&doubted, 0.5) && revisits.due(&doubted, 0.5) < before);
    revisits.visited(&mut page, &mut site, Found::Changed(None), Moment(21 * 86_400), 0.5);
    assert_eq!(page.evidence(), 0.0, "a visit answers what was told");
}

#[test]
fn silence_lets_a_page_wait_only_where_changes_were_told() {
    let day = |day: u32| Moment(day * 86_400);
    let (mut honest, mut mute) = (Trust::default(), Trust::default());
    for n in 0..40 {
        honest.observe(n % 2 == 0, n % 2 == 0, day(n));
        mute.observe(false, n % 2 == 0, day(n));
    }
    for policy in [Policy::Harmonic, Policy::Fresh] {
        let mut revisits = Revisits::new(policy, Budget::PerDay(0.2), Moment(0));
        let page = revisits.first(1.0, &Pool::default(), Moment(0), 0.5);
        revisits.end_epoch(&[page], 1.0, 0, Moment(0));
        let due = |trust: &Trust, changed: bool| {
            let mut page = page;
            revisits.told(&mut page, Source::Feed, trust, changed, day(1), 0.5);
            revisits.due(&page, 0.5)
        };
        let alone = revisits.due(&page, 0.5);
        assert_eq!(due(&mute, false), alone, "what never told of changes replaces no visit");
        let (silent, told) = (due(&honest, false), due(&honest, true));
        // Freshness is best served by pages that change seldom: there, silence would rather bring a visit forward, and is not let to.
        let waits = if policy == Policy::Fresh { silent >= alone } else { silent > alone };
        assert!(waits && told < alone, "{policy:?}: {told:?} {alone:?} {silent:?}");
        let mut every = Revisits::new(policy, Budget::EveryDays(2.0), Moment(0));
        let mut page = every.first(1.0, &Pool::default(), Moment(0), 0.5);
        every.told(&mut page, Source::Feed, &honest, false, day(1), 0.5);
        assert_eq!(every.due(&page, 0.5), day(2), "whoever wants every page after so long gets it");
    }
}

#[test]
fn what_is_dropped_leaves_no_trace() {
    let mut revisits = Revisits::new(Policy::Harmonic, Budget::PerDay(10.0), Moment(0));
    let (mut site, fresh) = (Pool::default(), Pool::default());
    let mut page = revisits.first(1.0, &site, Moment(0), 0.5);
    revisits.visited(&mut page, &mut site, Found::Changed(None), Moment(86_400), 0.5);
    let kept = Memory::decode(&page.encode());
    revisits.dropped(&mut page, &mut site);
    assert_eq!((revisits.pages(), page, site), (0, Memory::UNKNOWN, fresh));
    let mut again = Revisits::new(Policy::Harmonic, Budget::PerDay(10.0), Moment(0));
    again.recalled(&kept, &mut site);
    assert_eq!(again.pages(), 1);
    assert_ne!(site, fresh, "what comes back from the disk counts again");
}
