//! One rule of the schedule at a time: each test fails without its rule.

use skep_schedule::{
    AddressKey, BundleReport, Config, Event, Fault, GaveUp, HostId, LeaseId, Order, Pace, Park, Schedule, SiteId,
    Standing,
};

struct Desk {
    schedule: Schedule,
    now_ms: u64,
}

type Leased = Vec<(LeaseId, HostId, u32)>;

impl Desk {
    fn new(config: Config) -> Desk {
        Desk { schedule: Schedule::new(config), now_ms: config.started_ms }
    }

    fn orders(&mut self, event: Event) -> Vec<Order> {
        let mut out = Vec::new();
        self.schedule.step(event, self.now_ms, &mut out);
        out
    }

    fn step(&mut self, event: Event) -> Leased {
        leases(&self.orders(event))
    }

    fn at(&mut self, now_ms: u64) -> Leased {
        self.now_ms = now_ms;
        self.step(Event::Tick)
    }

    fn waiting(&mut self, host: u32, site: u32, urls: u32) -> Leased {
        self.step(Event::Waiting { host: HostId(host), site: SiteId(site), urls, own_pace_none: false })
    }

    fn own(&mut self, host: u32, urls: u32) -> Leased {
        self.step(Event::Waiting { host: HostId(host), site: SiteId(host), urls, own_pace_none: true })
    }

    fn located(&mut self, host: u32, address: [u8; 4]) -> Leased {
        self.step(Event::Located { host: HostId(host), address: AddressKey::of(address.into()) })
    }

    /// The bundle ends now, well, with so many URLs left.
    fn finish(&mut self, lease: LeaseId, waiting: u32) -> Leased {
        let report = self.well(waiting);
        self.step(Event::Finished { lease, report })
    }

    fn well(&self, waiting: u32) -> BundleReport {
        BundleReport { ended_ms: Some(self.now_ms), answer_ms: 10, waiting, done: 1, ..BundleReport::default() }
    }

    fn failed(&self, waiting: u32) -> BundleReport {
        BundleReport { done: 0, fault: Some(Fault::Host), ..self.well(waiting) }
    }
}

fn leases(orders: &[Order]) -> Leased {
    let lease = |order: &Order| match order {
        Order::Lease { lease, host, urls_max, .. } => Some((*lease, *host, *urls_max)),
        _ => None,
    };
    orders.iter().filter_map(lease).collect()
}

fn hosts(leases: &Leased) -> Vec<u32> {
    leases.iter().map(|(_, host, _)| host.0).collect()
}

#[test]
fn a_site_is_not_visited_in_the_first_half_second_and_then_by_one() {
    let mut desk = Desk::new(Config { started_ms: 1_000, ..Config::default() });
    assert!(desk.waiting(1, 1, 5).is_empty());
    assert!(desk.waiting(2, 1, 5).is_empty());
    assert!(desk.at(1_499).is_empty());
    assert_eq!(hosts(&desk.at(1_500)), [1]);
    assert!(desk.at(300_000).is_empty(), "the other host of the site waits");
}

#[test]
fn the_wake_up_is_for_the_next_moment_and_asked_for_once() {
    let mut desk = Desk::new(Config::default());
    let event = |host| Event::Waiting { host: HostId(host), site: SiteId(host), urls: 1, own_pace_none: false };
    assert_eq!(desk.orders(event(1)), [Order::Wake { at_ms: 500 }]);
    assert_eq!(desk.orders(event(2)), []);
    assert_eq!(desk.orders(Event::Tick), [Order::Wake { at_ms: 500 }], "who ticks too early is told again");
}

#[test]
fn the_gap_counts_from_the_end_of_the_last_answer() {
    let mut desk = Desk::new(Config::default());
    desk.waiting(1, 1, 5);
    let lease = desk.at(500)[0].0;
    desk.now_ms = 9_000;
    let report = BundleReport { ended_ms: Some(8_000), answer_ms: 700, ..desk.well(4) };
    assert!(desk.step(Event::Finished { lease, report }).is_empty());
    assert!(desk.at(11_499).is_empty());
    let lease = desk.at(11_500)[0].0;
    let report = BundleReport { ended_ms: Some(11_500), crawl_delay_ms: Some(20_000), ..desk.well(4) };
    desk.step(Event::Finished { lease, report });
    assert!(desk.at(31_499).is_empty());
    assert_eq!(desk.at(31_500).len(), 1);
}

#[test]
fn an_end_in_the_future_is_now() {
    let mut desk = Desk::new(Config::default());
    desk.waiting(1, 1, 5);
    let lease = desk.at(500)[0].0;
    let report = BundleReport { ended_ms: Some(u64::MAX), ..desk.well(4) };
    desk.step(Event::Finished { lease, report });
    assert_eq!(desk.at(1_000).len(), 1);
}

#[test]
fn hosts_of_a_site_take_turns() {
    let mut desk = Desk::new(Config::default());
    (1..=3).for_each(|host| drop(desk.waiting(host, 1, 9)));
    let mut turns = Vec::new();
    for round in 1..=6 {
        let leased = desk.at(round * 1_000);
        turns.extend(hosts(&leased));
        desk.finish(leased[0].0, 9);
    }
    assert_eq!(turns, [1, 2, 3, 1, 2, 3]);
}

#[test]
fn an_address_has_two_visitors_and_the_next_comes_when_one_leaves() {
    let mut desk = Desk::new(Config::default());
    for host in 1..=4 {
        desk.waiting(host, host, 9);
        desk.located(host, [192, 0, 2, 1]);
    }
    desk.waiting(5, 5, 9);
    desk.located(5, [192, 0, 2, 2]);
    let leased = desk.at(500);
    assert_eq!(hosts(&leased), [1, 2, 5]);
    assert_eq!(desk.schedule.host(HostId(3)).map(|host| host.standing), Some(Standing::Address));
    assert_eq!(hosts(&desk.finish(leased[0].0, 0)), [3]);
    // Who stands in line and is dropped lets the next one pass.
    desk.step(Event::Drop { host: HostId(4) });
    desk.step(Event::Pause { host: HostId(6) });
    desk.waiting(6, 6, 9);
    desk.located(6, [192, 0, 2, 1]);
    assert!(desk.step(Event::Resume { host: HostId(6) }).is_empty());
    assert_eq!(hosts(&desk.finish(leased[1].0, 0)), [6]);
}

#[test]
fn a_site_with_hosts_elsewhere_does_not_wait_for_a_full_address() {
    let mut desk = Desk::new(Config { address_in_flight_max: 1, ..Config::default() });
    desk.waiting(1, 1, 9);
    desk.located(1, [192, 0, 2, 1]);
    desk.waiting(2, 2, 9);
    desk.located(2, [192, 0, 2, 1]);
    desk.waiting(3, 2, 9);
    desk.located(3, [192, 0, 2, 9]);
    assert_eq!(hosts(&desk.at(500)), [1, 3]);
}

#[test]
fn an_address_learned_on_the_way_counts_too() {
    let mut desk = Desk::new(Config { address_in_flight_max: 1, ..Config::default() });
    desk.waiting(1, 1, 9);
    let first = desk.at(500)[0].0;
    desk.located(1, [192, 0, 2, 1]);
    desk.now_ms = 600;
    desk.waiting(2, 2, 9);
    assert_eq!(desk.schedule.overview().out, 2, "an unknown address limits nobody");
    desk.waiting(3, 3, 9);
    let mut desk = Desk::new(Config { address_in_flight_max: 1, locate_first: true, ..Config::default() });
    desk.waiting(1, 1, 9);
    desk.now_ms = 500;
    assert_eq!(desk.orders(Event::Tick)[0], Order::Locate { host: HostId(1) });
    let leased = desk.located(1, [192, 0, 2, 1]);
    assert_eq!(hosts(&leased), [1]);
    let asked = desk.orders(Event::Waiting { host: HostId(2), site: SiteId(2), urls: 1, own_pace_none: false });
    assert!(asked.contains(&Order::Locate { host: HostId(2) }), "{asked:?}");
    assert!(desk.located(2, [192, 0, 2, 1]).is_empty());
    assert_eq!(hosts(&desk.finish(leased[0].0, 0)), [2]);
    assert_ne!(first, LeaseId(0));
}

#[test]
fn a_look_up_that_is_never_answered_holds_nobody_for_ever() {
    let mut desk = Desk::new(Config { locate_first: true, ..Config::default() });
    desk.waiting(1, 1, 9);
    assert!(desk.at(500).is_empty());
    assert!(desk.at(30_499).is_empty());
    assert_eq!(hosts(&desk.at(30_500)), [1]);
}

#[test]
fn own_hosts_without_pace_are_visited_at_once_by_several() {
    let mut desk = Desk::new(Config { own_concurrency: 3, ..Config::default() });
    let leased = desk.own(1, 300);
    assert_eq!(leased.len(), 3);
    assert!(leased.iter().all(|(_, _, urls)| *urls == 100));
    assert!(desk.own(1, 300).is_empty());
    assert_eq!(desk.finish(leased[0].0, 300).len(), 1);
    let few = Desk::new(Config { own_concurrency: 4, ..Config::default() }).own(1, 40);
    assert_eq!(few.iter().map(|(_, _, urls)| *urls).collect::<Vec<_>>(), [10, 10, 10, 10], "few URLs are shared");
}

#[test]
fn a_slow_site_gets_small_bundles() {
    let mut desk = Desk::new(Config::default());
    desk.waiting(1, 1, 500);
    let leased = desk.at(500);
    assert_eq!(leased[0].2, 100);
    let report = BundleReport { crawl_delay_ms: Some(10_000), ..desk.well(400) };
    desk.step(Event::Finished { lease: leased[0].0, report });
    assert_eq!(desk.at(20_000)[0].2, 6);
}

#[test]
fn concurrency_room_and_stop_hold_leases_back() {
    let mut desk = Desk::new(Config { concurrency: 2, ..Config::default() });
    (1..=4).for_each(|host| drop(desk.waiting(host, host, 9)));
    let leased = desk.at(500);
    assert_eq!(hosts(&leased), [1, 2]);
    desk.step(Event::Room(false));
    assert!(desk.finish(leased[0].0, 0).is_empty());
    assert_eq!(hosts(&desk.step(Event::Room(true))), [3]);
    desk.step(Event::Stop);
    assert!(desk.finish(leased[1].0, 0).is_empty());
    assert!(desk.at(100_000).is_empty());
}

#[test]
fn a_parked_site_comes_back_by_itself_and_not_before() {
    let mut desk = Desk::new(Config::default());
    desk.waiting(1, 1, 9);
    desk.waiting(2, 1, 9);
    let lease = desk.at(500)[0].0;
    let report = BundleReport { park: Some(Park::Until(90_000)), done: 0, ..desk.well(9) };
    let orders = desk.orders(Event::Finished { lease, report });
    assert_eq!(orders, [Order::Wake { at_ms: 90_000 }]);
    assert_eq!(desk.schedule.host(HostId(2)).map(|host| host.standing), Some(Standing::Parked { until_ms: 90_000 }));
    assert!(desk.at(89_999).is_empty());
    assert_eq!(hosts(&desk.at(90_000)), [2]);
}

#[test]
fn a_site_can_be_parked_before_anything_of_it_waits() {
    let mut desk = Desk::new(Config::default());
    desk.step(Event::Parked { site: SiteId(1), until_ms: 50_000 });
    desk.waiting(1, 1, 9);
    assert!(desk.at(49_999).is_empty());
    assert_eq!(desk.at(50_000).len(), 1);
    desk.step(Event::Parked { site: SiteId(2), until_ms: u64::MAX });
    desk.waiting(2, 2, 9);
    assert_eq!(hosts(&desk.at(50_000 + 7 * 86_400_000)), [2], "a week at most");
}

#[test]
fn refusals_without_a_time_double_and_end_in_giving_up() {
    let mut desk = Desk::new(Config::default());
    desk.waiting(1, 1, 9);
    let mut lease = desk.at(500)[0].0;
    for refusal in 1..10_u32 {
        let report = BundleReport { park: Some(Park::Doubling), done: 0, ..desk.well(9) };
        assert!(desk.step(Event::Finished { lease, report }).is_empty());
        let wait_ms = (30_000 << (refusal - 1)).min(3_600_000);
        let back_ms = desk.now_ms + wait_ms;
        assert!(desk.at(back_ms - 1).is_empty(), "refusal {refusal}");
        lease = desk.at(back_ms)[0].0;
    }
    let report = BundleReport { park: Some(Park::Doubling), done: 0, ..desk.well(9) };
    let orders = desk.orders(Event::Finished { lease, report });
    assert!(orders.contains(&Order::GiveUp { host: HostId(1), why: GaveUp::Refusing }), "{orders:?}");
}

#[test]
fn who_names_a_short_time_again_and_again_is_not_believed_for_ever() {
    let mut desk = Desk::new(Config::default());
    desk.waiting(1, 1, 9);
    let mut lease = desk.at(500)[0].0;
    for _ in 0..3 {
        let report = BundleReport { park: Some(Park::Until(desk.now_ms + 2_000)), done: 0, ..desk.well(9) };
        desk.step(Event::Finished { lease, report });
        lease = desk.at(desk.now_ms + 2_000)[0].0;
    }
    let report = BundleReport { park: Some(Park::Until(desk.now_ms + 2_000)), done: 0, ..desk.well(9) };
    desk.step(Event::Finished { lease, report });
    assert!(desk.at(desk.now_ms + 29_999).is_empty());
    assert_eq!(desk.at(desk.now_ms + 1).len(), 1);
}

#[test]
fn a_host_that_fails_rests_while_its_sibling_goes_on_and_is_given_up_at_last() {
    let mut desk = Desk::new(Config::default());
    desk.waiting(1, 1, 9);
    let lease = desk.at(500)[0].0;
    desk.waiting(2, 1, 9);
    let report = desk.failed(9);
    desk.step(Event::Finished { lease, report });
    assert_eq!(desk.schedule.host(HostId(1)).map(|host| host.standing), Some(Standing::Resting { until_ms: 30_500 }));
    let sibling = desk.at(1_000);
    assert_eq!(hosts(&sibling), [2]);
    desk.finish(sibling[0].0, 0);
    assert!(desk.at(30_499).is_empty());
    let mut lease = desk.at(30_500)[0].0;
    for wait_ms in [60_000, 120_000, 240_000] {
        let report = desk.failed(9);
        desk.step(Event::Finished { lease, report });
        assert!(desk.at(desk.now_ms + wait_ms - 1).is_empty());
        lease = desk.at(desk.now_ms + 1)[0].0;
    }
    let report = desk.failed(9);
    let orders = desk.orders(Event::Finished { lease, report });
    assert!(orders.contains(&Order::GiveUp { host: HostId(1), why: GaveUp::Failing }), "{orders:?}");
    assert!(desk.schedule.is_idle());
}

#[test]
fn our_own_trouble_lowers_concurrency_for_a_while_and_blames_nobody() {
    let mut desk = Desk::new(Config { concurrency: 8, ..Config::default() });
    (1..=8).for_each(|host| drop(desk.waiting(host, host, 99)));
    let leased = desk.at(500);
    assert_eq!(leased.len(), 8);
    let report = BundleReport { fault: Some(Fault::Local), done: 0, ..desk.well(99) };
    desk.step(Event::Finished { lease: leased[0].0, report });
    assert_eq!(desk.schedule.overview().out_max, 4);
    assert_eq!(desk.schedule.host(HostId(1)).map(|host| host.failures), Some(0));
    desk.step(Event::Finished { lease: leased[3].0, report });
    assert_eq!(desk.schedule.overview().out_max, 4, "who ran out with it says the same");
    desk.now_ms = 10_000;
    desk.finish(leased[1].0, 99);
    assert_eq!(desk.schedule.overview().out_max, 4, "not yet");
    desk.now_ms = 40_000;
    desk.finish(leased[2].0, 99);
    assert_eq!(desk.schedule.overview().out_max, 5);
}

#[test]
fn a_lapsed_lease_is_over_and_its_late_report_still_moves_the_clock() {
    let mut desk = Desk::new(Config::default());
    desk.waiting(1, 1, 9);
    let lease = desk.at(500)[0].0;
    desk.waiting(1, 1, 9);
    assert!(desk.at(600_499).is_empty());
    desk.now_ms = 600_500;
    assert_eq!(desk.orders(Event::Tick)[0], Order::Lapsed { lease, host: HostId(1) });
    desk.now_ms = 600_800;
    let report = BundleReport { crawl_delay_ms: Some(5_000), ..desk.well(9) };
    assert!(desk.step(Event::Finished { lease, report }).is_empty());
    assert!(desk.at(605_799).is_empty());
    assert_eq!(desk.at(605_800).len(), 1);
}

#[test]
fn nobody_is_sent_to_a_site_where_somebody_may_still_be() {
    let mut desk = Desk::new(Config { late_ms: 3_600_000, ..Config::default() });
    desk.waiting(1, 1, 9);
    let lease = desk.at(500)[0].0;
    desk.waiting(1, 1, 9);
    for now_ms in [600_500, 700_000, 4_200_499] {
        assert!(desk.at(now_ms).is_empty(), "a large file is still on its way at {now_ms}");
    }
    desk.finish(lease, 9);
    assert_eq!(desk.at(4_300_000).len(), 1);
    let mut gone = Desk::new(Config { late_ms: 3_600_000, ..Config::default() });
    gone.waiting(1, 1, 9);
    let lease = gone.at(500)[0].0;
    gone.now_ms = 4_200_500;
    assert_eq!(gone.orders(Event::Tick)[0], Order::Lapsed { lease, host: HostId(1) });
}

#[test]
fn what_counts_for_all_can_be_changed() {
    let mut desk = Desk::new(Config { concurrency: 1, ..Config::default() });
    (1..=4).for_each(|host| drop(desk.waiting(host, host, 9)));
    assert_eq!(desk.at(500).len(), 1);
    let more = desk.step(Event::Configured { concurrency: 3, pace: Pace::Fixed(9_000) });
    assert_eq!(more.len(), 2);
    desk.waiting(5, 5, 9);
    assert_eq!(desk.schedule.host(HostId(5)).map(|host| host.pace), Some(Pace::Fixed(9_000)));
}

#[test]
fn pause_pace_and_drop_are_kept_also_for_hosts_that_are_not_there() {
    let mut desk = Desk::new(Config::default());
    desk.step(Event::Pause { host: HostId(1) });
    desk.step(Event::Pace { host: HostId(2), pace: Pace::Fixed(7_000) });
    desk.waiting(1, 1, 9);
    desk.waiting(2, 2, 9);
    assert!(desk.at(6_999).is_empty());
    assert_eq!(hosts(&desk.at(7_000)), [2]);
    assert_eq!(hosts(&desk.step(Event::Resume { host: HostId(1) })), [1]);
    desk.waiting(3, 3, 9);
    desk.step(Event::Drop { host: HostId(3) });
    assert!(desk.schedule.host(HostId(3)).is_none());
}

#[test]
fn pace_none_given_while_it_waits_takes_effect_at_once() {
    let mut desk = Desk::new(Config { own_concurrency: 2, ..Config::default() });
    desk.waiting(1, 1, 500);
    let lease = desk.at(500)[0].0;
    let report = BundleReport { crawl_delay_ms: Some(60_000), ..desk.well(400) };
    desk.step(Event::Finished { lease, report });
    assert!(desk.step(Event::Pace { host: HostId(1), pace: Pace::None }).is_empty(), "the old gap still runs out");
    assert_eq!(desk.at(60_500).len(), 2);
}

#[test]
fn priority_is_a_head_start_and_not_a_privilege() {
    let mut desk = Desk::new(Config { concurrency: 1, ..Config::default() });
    desk.waiting(1, 1, 9);
    let lease = desk.at(500)[0].0;
    desk.waiting(2, 2, 9);
    desk.now_ms = 40_000;
    desk.waiting(3, 3, 9);
    desk.step(Event::Priority { site: SiteId(3), priority: 1 });
    let next = desk.finish(lease, 0);
    assert_eq!(hosts(&next), [3]);
    desk.now_ms = 90_000;
    desk.waiting(4, 4, 9);
    desk.step(Event::Priority { site: SiteId(4), priority: 1 });
    assert_eq!(hosts(&desk.finish(next[0].0, 0)), [2], "who has been ready for long enough goes first");
}

#[test]
fn time_does_not_run_backwards() {
    let mut desk = Desk::new(Config::default());
    desk.waiting(1, 1, 9);
    let lease = desk.at(5_000)[0].0;
    desk.now_ms = 10;
    let report = BundleReport { ended_ms: Some(5_000), ..desk.well(9) };
    assert!(desk.step(Event::Finished { lease, report }).is_empty());
    assert!(desk.at(5_499).is_empty());
    assert_eq!(desk.at(5_500).len(), 1);
}
