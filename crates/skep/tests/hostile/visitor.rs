//! What happens on the visitor's side: rows 43 and 44.

use crate::trial::Setup;
use skep_testweb::{HostPlan, Plan, Robots, Shape};

fn many_hosts(count: u32) -> Plan {
    let host = |number: u32| {
        HostPlan::generated(&format!("www.example-{number}.test"), Shape { links_off: 0, ..Shape::pages(6).frozen() })
            .robots(Robots::Allow)
            .on(&[skep_testweb::loopback(number)])
    };
    Plan { hosts: (0..count).map(host).collect(), ..Plan::new(43) }
}

#[test]
fn row_43_few_descriptors_make_a_crawl_slower_not_poorer() {
    let trial = Setup::with(many_hosts(60)).with_descriptors(160).run();
    for number in 0..60 {
        trial.kept_ordinary_pages(&format!("www.example-{number}.test"));
    }
}

#[test]
fn row_44_a_machine_that_slept_goes_on_where_it_was() {
    let trial = Setup::with(many_hosts(8)).that_sleeps(5_000).run();
    for number in 0..8 {
        trial.kept_ordinary_pages(&format!("www.example-{number}.test"));
    }
}
