//! The auditor catches what is planted, and nothing else.

use std::net::IpAddr;

use skep_testweb::{
    Behaviour, HostPlan, Mix, Offence, Plan, Policy, Refused, Robots, Scheme, Settings, Shape, Trouble, Web, loopback,
};

use crate::client::{Client, serve_with};

fn web(policy: Policy) -> Web {
    let host = |name: &str| HostPlan::generated(name, Shape::pages(20)).robots(Robots::Allow);
    let plan = Plan::new(1)
        .host(host("a.one.test"))
        .host(host("b.one.test").on(&[loopback(1)]))
        .host(host("a.two.test").robots(Robots::Disallow(vec!["/private/".into()])))
        .host(host("a.three.test").robots(Robots::CrawlDelay(3600)))
        .host(host("a.four.test").robots(Robots::Redirect(2)))
        .host(host("a.five.test").robots(Robots::Status(503)))
        .host(host("a.six.test").robots(Robots::RedirectTo("http://a.two.test/robots.txt".into())))
        .host(host("a.seven.test").robots(Robots::Only("goodbot".into())));
    serve_with(plan, Settings { policy, ..Settings::default() })
}

fn get(web: &Web, host: &str, path: &str) -> u16 {
    Client::plain(web.address(host).unwrap()).get(host, path, &[]).status
}

#[test]
fn a_gap_that_is_too_short_is_found_across_the_hosts_of_a_site() {
    let web = web(Policy { site_gap_ms: 3_600_000, robots_first: false, ..Policy::default() });
    get(&web, "a.one.test", "/");
    get(&web, "a.two.test", "/");
    assert!(web.report().polite());
    get(&web, "b.one.test", "/");
    let report = web.report();
    assert_eq!(report.count(Offence::SiteGap), 1, "{}", report.table());
    let finding = &report.findings[0];
    assert_eq!((finding.host.as_str(), finding.site.as_str(), finding.request), ("b.one.test", "one.test", 2));
    assert!(report.sites["one.test"].gap_ms_min.is_some() && report.hosts["a.one.test"].gap_ms_min.is_none());
    assert!(report.table().contains("site-gap"));
}

#[test]
fn what_robots_forbids_is_found_with_its_line() {
    let web = web(Policy::default());
    get(&web, "a.two.test", "/robots.txt");
    get(&web, "a.two.test", "/news/");
    assert!(web.report().polite(), "{}", web.report().table());
    get(&web, "a.two.test", "/private/x");
    get(&web, "a.one.test", "/");
    let report = web.report();
    assert_eq!((report.count(Offence::Robots), report.count(Offence::RobotsUnasked)), (1, 1));
    assert!(report.findings[0].because.contains("Disallow: /private/"), "{}", report.findings[0].because);
}

#[test]
fn robots_that_redirect_or_fail_count_as_what_they_mean() {
    let web = web(Policy::default());
    for path in ["/robots.txt", "/robots-1.txt", "/robots-2.txt"] {
        get(&web, "a.four.test", path);
    }
    get(&web, "a.six.test", "/robots.txt");
    get(&web, "a.five.test", "/robots.txt");
    get(&web, "a.seven.test", "/robots.txt");
    get(&web, "a.four.test", "/news/");
    get(&web, "a.six.test", "/news/");
    assert!(web.report().polite(), "{}", web.report().table());
    for (host, path, expected) in [
        ("a.four.test", "/private/", 1),
        ("a.six.test", "/private/", 2),
        ("a.five.test", "/", 3),
        ("a.seven.test", "/", 4),
    ] {
        get(&web, host, path);
        assert_eq!(web.report().count(Offence::Robots), expected, "{host}");
    }
    let good = [("User-Agent", "goodbot/2")];
    Client::plain(web.address("a.seven.test").unwrap()).get("a.seven.test", "/", &good);
    assert_eq!(web.report().count(Offence::Robots), 4);
}

#[test]
fn a_crawl_delay_is_minded() {
    let web = web(Policy::default());
    get(&web, "a.three.test", "/robots.txt");
    get(&web, "a.three.test", "/");
    let report = web.report();
    assert_eq!(report.count(Offence::CrawlDelay), 1);
    assert!(report.findings[0].because.contains("wanted 3600000"));
}

#[test]
fn too_many_at_once_are_found_per_address() {
    let web = web(Policy { in_flight_max: 2, robots_first: false, ..Policy::default() });
    // Four are in flight before any is answered; three of them to one address.
    let hosts = ["a.one.test", "a.two.test", "b.one.test", "a.three.test"];
    let mut clients = Vec::new();
    for (place, host) in hosts.iter().enumerate() {
        web.behave(host, Behaviour::hold()).unwrap();
        let mut client = Client::plain(web.address(host).unwrap());
        client.send("GET", host, "/", &[]);
        clients.push(client);
        while web.report().requests <= place as u64 {
            std::thread::yield_now();
        }
    }
    for host in hosts {
        web.behave(host, Behaviour::default()).unwrap();
    }
    for client in &mut clients {
        assert_eq!(client.receive(false).unwrap().status, 200);
    }
    drop(clients);
    let report = web.report();
    let first = IpAddr::from([127, 0, 0, 1]);
    assert_eq!(report.count(Offence::InFlight), 1, "{}", report.table());
    assert_eq!((report.addresses[&first].in_flight_max, report.addresses[&loopback(1)].in_flight_max), (3, 1));
    assert_eq!(report.addresses[&first].connections_max, 3);
    assert_eq!(report.sites["one.test"].rest_ms_min, Some(0.0));
}

/// The visitor sends the next request as soon as it has the last byte, which is before the server has heard that it was
/// taken; that must never look like two at once, nor like robots.txt not asked.
#[test]
fn one_after_the_other_is_never_two_at_once() {
    let large = Shape { text_bytes: (200_000, 3_000_000), ..Shape::pages(4) };
    let host = |name: &str| HostPlan::generated(name, Shape::pages(4)).robots(Robots::Allow);
    let plan = Plan::new(1)
        .host(host("a.one.test"))
        .host(host("a.two.test").scheme(Scheme::Https))
        .host(HostPlan::generated("a.three.test", large).robots(Robots::Allow));
    let policy = Policy { in_flight_max: 1, ..Policy::default() };
    let web = serve_with(plan, Settings { policy, ..Settings::default() });
    for round in 0..300 {
        let host = if round % 10 == 0 { "a.three.test" } else { "a.one.test" };
        if round < 10 {
            get(&web, host, "/robots.txt");
        }
        get(&web, host, "/");
    }
    let secure = || Client::secure(web.address("a.two.test").unwrap(), "a.two.test", web.authority_pem()).unwrap();
    secure().get("a.two.test", "/robots.txt", &[]);
    for _ in 0..50 {
        secure().get("a.two.test", "/", &[]);
    }
    let report = web.report();
    assert!(report.polite(), "{}", report.table());
    assert_eq!(report.in_flight_max, 1);
}

#[test]
fn coming_back_before_retry_after_is_found_for_the_site() {
    let web = web(Policy { robots_first: false, ..Policy::default() });
    web.behave("a.one.test", Behaviour::refuse(429, Some(3_600), 2)).unwrap();
    let mut client = Client::plain(web.address("a.one.test").unwrap());
    assert_eq!(client.get("a.one.test", "/", &[]).status, 200);
    let refused = client.get("a.one.test", "/", &[]);
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("3600")));
    // The end of an answer is noted when its bytes are out, so asking on the same connection comes after it.
    client.get("a.one.test", "/", &[]);
    get(&web, "a.two.test", "/");
    let report = web.report();
    assert_eq!(report.count(Offence::RetryAfter), 1, "{}", report.table());
}

#[test]
fn every_request_is_noted() {
    let web = web(Policy { robots_first: false, ..Policy::default() });
    let mut client = Client::plain(web.address("a.one.test").unwrap());
    let page = client.get("a.one.test", "/", &[("User-Agent", "skep/0.1")]);
    client.send("HEAD", "a.one.test", "/news/?q=1", &[]);
    assert_eq!(client.receive(true).unwrap().status, 404);
    client.write(b"POST /form HTTP/1.1\r\nHost: a.one.test\r\nContent-Length: 5\r\n\r\nhello");
    assert_eq!(client.receive(false).unwrap().status, 405);
    // Two in one piece.
    client.write(b"GET /1 HTTP/1.1\r\nHost: a.one.test\r\n\r\nGET /2 HTTP/1.1\r\nHost: a.one.test\r\n\r\n");
    client.receive(false).unwrap();
    client.receive(false).unwrap();
    drop(client);
    get(&web, "a.two.test", "/3");

    let requests = web.requests();
    let seen: Vec<_> = requests.iter().map(|r| (r.method.as_str(), r.path.as_str(), r.status)).collect();
    assert_eq!(
        seen[..5],
        [
            ("GET", "/", 200),
            ("HEAD", "/news/?q=1", 404),
            ("POST", "/form", 405),
            ("GET", "/1", 404),
            ("GET", "/2", 404)
        ]
    );
    assert_eq!((requests[0].agent.as_str(), requests[0].bytes), ("skep/0.1", page.body.len() as u64));
    assert_eq!((requests[1].bytes, requests[0].site.as_str(), requests[0].secure), (0, "one.test", false));
    for pair in requests[..5].windows(2) {
        assert!(pair[0].start_us <= pair[1].start_us);
        assert!(pair[0].start_us <= pair[0].end_us.unwrap());
    }
    assert_eq!(requests[3].start_us, requests[4].start_us, "one piece, one receive time");
    web.audit_anew(Policy::default());
    assert_eq!(web.report().requests, 0);
}

#[test]
fn requests_are_logged_line_by_line() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("requests.jsonl");
    let plan = Plan::new(1).host(HostPlan::generated("a.test", Shape::pages(5)));
    let web = serve_with(plan, Settings { request_log: Some(log.clone()), ..Settings::default() });
    get(&web, "a.test", "/");
    get(&web, "a.test", "/robots.txt");
    web.stop();
    let lines = std::fs::read_to_string(log).unwrap();
    let mut requests: Vec<skep_testweb::Request> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    requests.sort_by_key(|request| request.number); // lines come in the order in which requests end
    assert_eq!(requests.iter().map(|r| r.status).collect::<Vec<_>>(), [200, 404]);
    assert!(requests.iter().all(|r| r.end_us.is_some()));
}

/// Whoever waits as the rule says is polite; whoever does not is found, by the server's clock.
#[test]
fn the_rest_of_a_site_is_minded_by_its_answers() {
    let rest_ms = 40;
    let policy = Policy { site_rest_ms: rest_ms, answer_time_factor: 5, tolerance_ms: 5, ..Policy::default() };
    for polite in [true, false] {
        let web = web(policy.clone());
        web.behave("a.one.test", Behaviour::slow(if polite { 20 } else { 400 })).unwrap();
        for path in ["/robots.txt", "/", "/"] {
            let began = std::time::Instant::now();
            get(&web, "a.one.test", path);
            if polite {
                // The rule, by the visitor's clock, which sees an answer for longer than the server does.
                std::thread::sleep(began.elapsed().max(std::time::Duration::from_millis(rest_ms)) * 5);
            }
        }
        let report = web.report();
        assert_eq!(report.polite(), polite, "{}", report.table());
        assert_eq!(report.count(Offence::SiteRest) > 0, !polite);
    }
}

#[test]
fn robots_older_than_a_day_are_found_by_the_web_s_clock() {
    let policy = Policy { robots_age_seconds_max: 86_400, ..Policy::default() };
    let web = web(policy);
    get(&web, "a.one.test", "/robots.txt");
    get(&web, "a.one.test", "/");
    assert!(web.report().polite(), "{}", web.report().table());
    web.set_clock(Some(web.now().plus_days(2)), None);
    get(&web, "a.one.test", "/");
    assert_eq!(web.report().count(Offence::RobotsStale), 1);
    get(&web, "a.one.test", "/robots.txt");
    get(&web, "a.one.test", "/");
    assert_eq!(web.report().count(Offence::RobotsStale), 1);
}

#[test]
fn retry_after_counts_as_seconds_as_a_date_and_when_it_is_missing() {
    for (seconds, as_date) in [(Some(3_600), false), (Some(3_600), true), (None, false)] {
        for scope in [Refused::Site, Refused::Host] {
            let policy = Policy { robots_first: false, refused_ms_min: 30_000, refused: scope, ..Policy::default() };
            let web = web(policy);
            let refuse = Trouble::Refuse { status: 429, retry_after_seconds: seconds, as_date, one_in: 1 };
            web.behave("a.one.test", Behaviour { trouble: Some(refuse), ..Behaviour::default() }).unwrap();
            let mut client = Client::plain(web.address("a.one.test").unwrap());
            let refused = client.get("a.one.test", "/", &[]);
            assert_eq!(refused.header("retry-after").is_some_and(|value| value.ends_with(" GMT")), as_date);
            assert!(web.report().polite());
            get(&web, "a.two.test", "/");
            get(&web, "b.one.test", "/");
            assert_eq!(web.report().polite(), scope == Refused::Host, "a host of the same site");
            client.get("a.one.test", "/", &[]);
            let expected = if scope == Refused::Site { 2 } else { 1 };
            assert_eq!(web.report().count(Offence::RetryAfter), expected, "{}", web.report().table());
        }
    }
    // A time that is over asks for nothing.
    let web = web(Policy { robots_first: false, ..Policy::default() });
    web.behave("a.one.test", Behaviour::refuse(503, Some(0), 1)).unwrap();
    get(&web, "a.one.test", "/");
    get(&web, "a.one.test", "/");
    assert!(web.report().polite());
}

#[test]
fn a_mixed_web_of_many_hosts_has_some_that_are_slow_and_some_that_refuse() {
    let mix = Mix { hosts: 2_000, sites: 300, addresses: 50, pages: 10, troubled: true, ..Mix::default() };
    let plan = Plan::mixed(3, &mix);
    let sites: std::collections::BTreeSet<&str> =
        plan.hosts.iter().map(|host| host.name.rsplit('.').nth(1).unwrap()).collect();
    let addresses: std::collections::BTreeSet<IpAddr> =
        plan.hosts.iter().flat_map(|host| host.addresses.clone()).collect();
    assert_eq!((plan.hosts.len(), sites.len(), addresses.len()), (2_000, 300, 50));
    let count = |wanted: &dyn Fn(&Behaviour) -> bool| plan.hosts.iter().filter(|host| wanted(&host.behaviour)).count();
    let refuses = |dated: bool| move |behaviour: &Behaviour| matches!(behaviour.trouble, Some(Trouble::Refuse { as_date, .. }) if as_date == dated);
    assert!((300..500).contains(&count(&|behaviour| behaviour.delay_ms > 0)));
    assert!(count(&refuses(true)) > 50 && count(&refuses(false)) > 50);
    let web = serve_with(plan, Settings::default());
    let slow = web.world().hosts().iter().find(|host| host.plan.behaviour.delay_ms > 0).unwrap();
    get(&web, &slow.plan.name, "/robots.txt");
    assert_eq!(web.report().requests, 1);
}
