//! A small web without sockets: hosts on sites on addresses, answers that take their time, servers that refuse, fail and ask
//! for delays, workers that die. One seed replays it. The world audits by its own books: it knows when each request began and
//! ended, and asks the schedule nothing.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::net::{IpAddr, Ipv4Addr};

use skep_schedule::pace::{Pace, gap_ms};
use skep_schedule::{AddressKey, BundleReport, Config, Event, Fault, HostId, LeaseId, Order, Park, Schedule, SiteId};

/// SplitMix64: all chance of a world comes from its seed.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

struct Host {
    site: SiteId,
    address: AddressKey,
    waiting: u32,
    done: u32,
    crawl_delay_ms: Option<u64>,
    answer_ms: u64,
    own: bool,
    /// Fails this many more times before it answers.
    failures_left: u32,
    /// Refuses this many more times.
    refusals_left: u32,
    given_up: bool,
}

/// What the auditor knows of a site.
#[derive(Default)]
struct Site {
    /// When the last answer ended, and the gap that is due after it.
    last: Option<(u64, u64)>,
    parked_until: u64,
    /// Leases being worked on.
    out: u32,
}

enum Next {
    /// The worker of this lease goes on.
    Worker(LeaseId),
    /// The lease's report arrives.
    Report(LeaseId, BundleReport),
    Wake,
}

struct Work {
    host: HostId,
    urls: u32,
    pace: Pace,
    deadline_ms: u64,
    done: u32,
    ended_ms: Option<u64>,
    answer_ms: u64,
    answering: bool,
    counted_address: Option<AddressKey>,
}

struct World {
    chance: Chance,
    now_ms: u64,
    config: Config,
    schedule: Schedule,
    hosts: BTreeMap<HostId, Host>,
    sites: BTreeMap<SiteId, Site>,
    on_address: BTreeMap<AddressKey, u32>,
    work: BTreeMap<LeaseId, Work>,
    /// Worked on by a worker that died: URLs to give back when the lease lapses.
    orphans: BTreeMap<LeaseId, u32>,
    queue: BinaryHeap<Reverse<(u64, u64)>>,
    nexts: BTreeMap<u64, Next>,
    numbered: u64,
    workers_die: bool,
    restarted_ms: u64,
    served: BTreeMap<HostId, u64>,
    requests: u64,
    out_most: usize,
    own_most: u32,
    lapses: u32,
}

impl World {
    fn new(seed: u64, config: Config, hosts: u32, sites: u32, addresses: u32) -> World {
        let mut chance = Chance(seed);
        let mut world_hosts = BTreeMap::new();
        for n in 0..hosts {
            let site = SiteId(if n < sites { n } else { chance.below(u64::from(sites)) as u32 });
            let own = chance.one_in(20);
            world_hosts.insert(
                HostId(n),
                Host {
                    site,
                    address: AddressKey::of(IpAddr::V4(Ipv4Addr::from(
                        0xc000_0200 + chance.below(u64::from(addresses)) as u32,
                    ))),
                    waiting: 1 + chance.below(60) as u32,
                    done: 0,
                    crawl_delay_ms: chance.one_in(5).then(|| 200 + chance.below(8_000)),
                    answer_ms: if chance.one_in(8) { 500 + chance.below(20_000) } else { 5 + chance.below(150) },
                    own,
                    failures_left: if chance.one_in(6) { 1 + chance.below(3) as u32 } else { 0 },
                    refusals_left: if chance.one_in(6) { 1 + chance.below(5) as u32 } else { 0 },
                    given_up: false,
                },
            );
        }
        World {
            chance,
            now_ms: config.started_ms,
            config,
            schedule: Schedule::new(config),
            sites: (0..sites).map(|n| (SiteId(n), Site::default())).collect(),
            hosts: world_hosts,
            on_address: BTreeMap::new(),
            work: BTreeMap::new(),
            orphans: BTreeMap::new(),
            queue: BinaryHeap::new(),
            nexts: BTreeMap::new(),
            numbered: 0,
            workers_die: false,
            restarted_ms: config.started_ms,
            served: BTreeMap::new(),
            requests: 0,
            out_most: 0,
            own_most: 0,
            lapses: 0,
        }
    }

    fn at(&mut self, at_ms: u64, next: Next) {
        self.numbered += 1;
        self.nexts.insert(self.numbered, next);
        self.queue.push(Reverse((at_ms, self.numbered)));
    }

    fn step(&mut self, event: Event) {
        let mut orders = Vec::new();
        self.schedule.step(event, self.now_ms, &mut orders);
        for order in orders {
            match order {
                Order::Lease { lease, host, urls_max, pace, not_before_ms, deadline_ms } => {
                    self.begin(lease, host, urls_max, pace, not_before_ms, deadline_ms);
                }
                Order::Lapsed { lease, host } => {
                    self.lapses += 1;
                    let urls = self.orphans.remove(&lease).expect("only what nobody reported lapses");
                    self.leave(host);
                    let state = self.hosts.get_mut(&host).expect("a host");
                    state.waiting += urls;
                    self.tell(host);
                }
                Order::Locate { host } => {
                    let address = self.hosts[&host].address;
                    self.step(Event::Located { host, address });
                }
                Order::GiveUp { host, .. } => self.hosts.get_mut(&host).expect("a host").given_up = true,
                Order::Wake { at_ms } => {
                    assert!(at_ms > self.now_ms, "a wake-up for the past");
                    self.at(at_ms, Next::Wake);
                }
            }
        }
        self.out_most = self.out_most.max(self.schedule.overview().out);
        assert!(self.schedule.overview().out <= self.config.concurrency as usize);
    }

    /// Tells how many URLs of a host wait.
    fn tell(&mut self, id: HostId) {
        let host = &self.hosts[&id];
        let (site, urls, own) = (host.site, host.waiting, host.own);
        self.step(Event::Waiting { host: id, site, urls, own_pace_none: own });
    }

    fn begin(&mut self, lease: LeaseId, id: HostId, urls_max: u32, pace: Pace, not_before_ms: u64, deadline_ms: u64) {
        let host = self.hosts.get_mut(&id).expect("a host");
        let urls = host.waiting.min(urls_max);
        host.waiting -= urls;
        assert!(urls > 0, "a lease for nothing");
        assert_eq!(pace == Pace::None, host.own);
        let site = self.sites.get_mut(&host.site).expect("a site");
        let mut counted_address = None;
        if host.own {
            let out = self.work.values().filter(|work| work.host == id).count() as u32 + 1;
            assert!(out <= self.config.own_concurrency);
            self.own_most = self.own_most.max(out);
        } else {
            site.out += 1;
            assert_eq!(site.out, 1, "two leases on {:?}", host.site);
            let on_address = self.on_address.entry(host.address).or_insert(0);
            *on_address += 1;
            assert!(*on_address <= u32::from(self.config.address_in_flight_max), "too many on {:?}", host.address);
            counted_address = Some(host.address);
        }
        let work = Work {
            host: id,
            urls,
            pace,
            deadline_ms,
            done: 0,
            ended_ms: None,
            answer_ms: 0,
            answering: false,
            counted_address,
        };
        self.work.insert(lease, work);
        self.at(not_before_ms.max(self.now_ms), Next::Worker(lease));
    }

    /// The auditor sees a worker leave.
    fn leave(&mut self, id: HostId) {
        let host = &self.hosts[&id];
        if !host.own {
            self.sites.get_mut(&host.site).expect("a site").out -= 1;
            *self.on_address.get_mut(&host.address).expect("counted") -= 1;
        }
    }

    fn work_on(&mut self, lease: LeaseId) {
        let Some(mut work) = self.work.remove(&lease) else { return };
        let host = self.hosts.get_mut(&work.host).expect("a host");
        let site = self.sites.get_mut(&host.site).expect("a site");
        if !work.answering {
            // A request goes out: this is what the server sees.
            self.requests += 1;
            assert!(self.now_ms >= site.parked_until || host.own, "parked");
            if let (Some((ended_ms, gap)), false) = (site.last, host.own) {
                let gap = if ended_ms <= self.restarted_ms { self.config.first_gap_ms } else { gap };
                let since_ms = if ended_ms <= self.restarted_ms { self.restarted_ms } else { ended_ms };
                assert!(self.now_ms >= since_ms + gap, "hurried: {} ms after, {gap} ms due", self.now_ms - since_ms);
            }
            if !host.own {
                assert!(self.now_ms >= self.restarted_ms + self.config.first_gap_ms, "hurried after a restart");
            }
            self.served.insert(work.host, self.now_ms);
            if self.workers_die && self.chance.one_in(150) {
                // It never comes back. The auditor knows that nobody is at the site, but the lease holds it.
                self.orphans.insert(lease, work.urls);
                return;
            }
            work.answering = true;
            let answer_ms = host.answer_ms;
            self.work.insert(lease, work);
            let at = self.now_ms + answer_ms;
            return self.at(at, Next::Worker(lease));
        }
        work.answering = false;
        work.ended_ms = Some(self.now_ms);
        work.answer_ms = host.answer_ms;
        let gap = gap_ms(&work.pace, host.crawl_delay_ms, host.answer_ms);
        if !host.own {
            site.last = Some((self.now_ms, gap));
        }
        if host.failures_left > 0 {
            host.failures_left -= 1;
            return self.report(lease, work, Some(Fault::Host), None);
        }
        if host.refusals_left > 0 && !host.own {
            host.refusals_left -= 1;
            let park = if self.chance.one_in(2) { Park::Doubling } else { Park::Until(self.now_ms + 40_000) };
            site.parked_until = self.now_ms + if park == Park::Doubling { 30_000 } else { 40_000 };
            return self.report(lease, work, None, Some(park));
        }
        work.urls -= 1;
        work.done += 1;
        host.done += 1;
        let at = self.now_ms + gap;
        // Nothing is begun that might not end before the lease does, and nobody sits on a lease to wait for that.
        if work.urls == 0 || at + 60_000 > work.deadline_ms {
            return self.report(lease, work, None, None);
        }
        self.work.insert(lease, work);
        self.at(at, Next::Worker(lease));
    }

    /// The report takes a moment to arrive.
    fn report(&mut self, lease: LeaseId, work: Work, fault: Option<Fault>, park: Option<Park>) {
        let report = BundleReport {
            ended_ms: work.ended_ms,
            answer_ms: work.answer_ms,
            crawl_delay_ms: self.hosts[&work.host].crawl_delay_ms,
            waiting: 0,
            done: work.done,
            fault,
            park,
        };
        let at = self.now_ms + self.chance.below(80);
        self.hosts.get_mut(&work.host).expect("a host").waiting += work.urls;
        self.work.insert(lease, Work { urls: 0, ..work });
        self.at(at, Next::Report(lease, report));
    }

    fn run(&mut self, until_ms: u64) {
        while let Some(Reverse((at_ms, number))) = self.queue.peek().copied() {
            if at_ms > until_ms {
                break;
            }
            self.queue.pop();
            self.now_ms = self.now_ms.max(at_ms);
            match self.nexts.remove(&number).expect("queued") {
                Next::Wake => self.step(Event::Tick),
                Next::Worker(lease) => self.work_on(lease),
                Next::Report(lease, mut report) => {
                    let Some(work) = self.work.remove(&lease) else { continue };
                    self.leave(work.host);
                    assert!(work.counted_address.is_none_or(|address| address == self.hosts[&work.host].address));
                    report.waiting = self.hosts[&work.host].waiting;
                    self.step(Event::Finished { lease, report });
                }
            }
        }
        self.now_ms = self.now_ms.max(until_ms.min(self.now_ms + 86_400_000));
    }

    fn start(&mut self) {
        let ids: Vec<HostId> = self.hosts.keys().copied().collect();
        for id in ids {
            self.tell(id);
            let address = self.hosts[&id].address;
            self.step(Event::Located { host: id, address });
        }
    }

    /// The process dies and comes back: what was out waits again, nothing is remembered.
    fn restart(&mut self) {
        for (_, work) in std::mem::take(&mut self.work) {
            self.hosts.get_mut(&work.host).expect("a host").waiting += work.urls;
        }
        self.orphans.clear();
        self.queue.clear();
        self.nexts.clear();
        self.on_address.clear();
        self.sites.values_mut().for_each(|site| (site.out, site.parked_until) = (0, 0));
        self.restarted_ms = self.now_ms;
        self.config.started_ms = self.now_ms;
        self.schedule = Schedule::new(self.config);
        self.start();
    }

    fn left(&self) -> u32 {
        self.hosts.values().filter(|host| !host.given_up).map(|host| host.waiting).sum::<u32>()
            + self.work.values().map(|work| work.urls).sum::<u32>()
            + self.orphans.values().sum::<u32>()
    }
}

fn config(concurrency: u32) -> Config {
    // Addresses are asked for first, so that the auditor may count from the first request on.
    Config { concurrency, locate_first: true, ..Config::default() }
}

const DAY_MS: u64 = 86_400_000;

#[test]
fn nobody_is_hurried_and_everything_gets_done() {
    let (mut out_most, mut own_most) = (0, 0);
    for seed in 0..120 {
        let mut world = World::new(seed, config(24), 80, 30, 12);
        world.start();
        world.run(3 * DAY_MS);
        assert_eq!(world.left(), 0, "seed {seed}");
        assert!(world.schedule.is_idle(), "seed {seed}");
        assert_eq!(world.schedule.overview().hosts, 0, "hosts without URLs are forgotten, seed {seed}");
        assert!(world.requests > 1_000, "seed {seed}");
        out_most = out_most.max(world.out_most);
        own_most = own_most.max(world.own_most);
    }
    assert_eq!(out_most, 24, "the places are used");
    assert_eq!(own_most, 8, "own hosts are visited by several");
}

#[test]
fn workers_that_die_cost_time_and_nothing_else() {
    let mut lapses = 0;
    for seed in 1_000..1_060 {
        let mut world = World::new(seed, config(16), 60, 25, 10);
        world.workers_die = true;
        world.start();
        world.run(6 * DAY_MS);
        assert_eq!(world.left(), 0, "seed {seed}");
        assert_eq!(world.schedule.overview().out, 0, "seed {seed}");
        lapses += world.lapses;
    }
    assert!(lapses > 100, "workers died: {lapses}");
}

#[test]
fn a_restart_hurries_nobody() {
    for seed in 2_000..2_060 {
        let mut world = World::new(seed, Config { started_ms: 5_000, ..config(16) }, 60, 25, 10);
        world.start();
        for _ in 0..6 {
            let pause = 200 + world.chance.below(90_000);
            world.run(world.now_ms + pause);
            world.restart();
        }
        world.run(world.now_ms + 6 * DAY_MS);
        assert_eq!(world.left(), 0, "seed {seed}");
    }
}

#[test]
fn the_longest_ready_goes_first_so_nobody_starves() {
    // 200 sites, 2 places: within one round everybody has been served once.
    let mut world = World::new(7, Config { concurrency: 2, bundle_urls_max: 3, ..config(2) }, 200, 200, 200);
    for host in world.hosts.values_mut() {
        (host.own, host.failures_left, host.refusals_left, host.answer_ms, host.crawl_delay_ms) =
            (false, 0, 0, 20, None);
        host.waiting = 1_000;
    }
    world.start();
    // A bundle of three takes about 1.6 s; 200 sites in two lanes need 160 s a round.
    world.run(180_000);
    let served: BTreeSet<HostId> = world.served.keys().copied().collect();
    assert_eq!(served.len(), 200);
    world.run(380_000);
    assert!(world.served.values().all(|at| *at > 180_000), "everybody had a second turn");
}
