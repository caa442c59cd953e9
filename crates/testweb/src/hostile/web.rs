//! A web in which every row of the table has its host.

use super::{Hostile, Row, Side, endless};
use crate::behaviour::Behaviour;
use crate::layout::Shape;
use crate::plan::{HostPlan, Plan, Scheme, loopback};
use crate::robots::Robots;

/// Ordinary pages of each hostile host.
const PAGES: u32 = 8;
/// Hosts that share one address with those that are banned together.
const BANNED: u32 = 5;
/// The first of the loopback addresses on which hostile hosts are, one per host.
const FIRST_ADDRESS: u32 = 100;

impl Plan {
    /// A web with at least one host per row of the hostile table (three rows are no server's matter and have none):
    /// `row-NN-NAME.test`, and `row-NN-NAME-FORM.test` for each form that takes a whole host. Each is a site and an address
    /// of its own, so that a visitor who is held up at one can go on at the others. The front page of each leads to
    /// ordinary pages and into the trouble.
    pub fn hostile(seed: u64) -> Plan {
        let mut plan = Plan::new(seed);
        for row in Row::all().filter(|row| !matches!(row.side(), Side::Visitor(_))) {
            let stem = format!("row-{:02}-{}", row.number(), row.name());
            match row {
                Row::Mirrors => {
                    for number in 0..endless::MIRRORS {
                        plan.hosts.push(host(&format!("{stem}-{number:02}.test"), Hostile::new(row)));
                    }
                    continue;
                }
                Row::ProviderBan => {
                    for form in row.forms() {
                        for number in 0..BANNED {
                            let name = format!("{stem}-{}-{number}.test", form.name);
                            plan.hosts.push(host(&name, Hostile::new(row).form(form.name)));
                        }
                    }
                    continue;
                }
                _ => {}
            }
            if row.forms().iter().any(|form| !form.whole) {
                plan.hosts.push(host(&format!("{stem}.test"), Hostile::new(row)));
            }
            for form in row.forms().iter().filter(|form| form.whole) {
                plan.hosts.push(host(&format!("{stem}-{}.test", form.name), Hostile::new(row).form(form.name)));
            }
        }
        let mut shared: Option<(String, u32)> = None;
        for (number, host) in (FIRST_ADDRESS..).zip(&mut plan.hosts) {
            // Those of one ban, and the mirrors, are on one address: their names agree up to the last number.
            let together = ["row-35-", "row-38-"].iter().any(|row| host.name.starts_with(row));
            let group = host.name.rsplit_once('-').map(|(group, _)| group).filter(|_| together);
            let number = match (group, &shared) {
                (Some(group), Some((before, number))) if before == group => *number,
                (Some(group), _) => shared.insert((group.to_string(), number)).1,
                (None, _) => number,
            };
            host.addresses = vec![loopback(number)];
        }
        // Where the robots.txt of another leads, and who listens at the address that nobody should be led to.
        for name in ["row-24-elsewhere.test", "row-21-inner.test"] {
            plan.hosts.push(HostPlan::generated(name, Shape::pages(PAGES)).robots(Robots::Allow));
        }
        plan
    }
}

fn host(name: &str, hostile: Hostile) -> HostPlan {
    let mut host = HostPlan::generated(name, Shape { links_off: 0, ..Shape::pages(PAGES) }).robots(Robots::Allow);
    let handshake = hostile.row == Row::Tls || hostile.form.as_deref() == Some("handshake");
    host.scheme = if handshake { Scheme::Https } else { Scheme::Http };
    host.wildcard = match hostile.row {
        Row::Subdomains | Row::PrivateAddresses | Row::Credentials => true,
        Row::Dns => hostile.form.as_deref() == Some("hijack"),
        _ => false,
    };
    host.sitemaps = false;
    host.feeds = false;
    host.behaviour = Behaviour::hostile(hostile);
    host
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::behaviour::Trouble;
    use crate::world::World;

    #[test]
    fn every_row_that_a_server_can_do_has_a_host() {
        let plan = Plan::hostile(1);
        let rows: BTreeSet<usize> = plan
            .hosts
            .iter()
            .filter_map(|host| match &host.behaviour.trouble {
                Some(Trouble::Hostile(hostile)) => Some(hostile.row.number()),
                _ => None,
            })
            .collect();
        let missing: Vec<usize> = (1..=48).filter(|number| !rows.contains(number)).collect();
        assert_eq!(missing, [43, 44, 48], "those of the visitor's side");
        let banned: Vec<_> = plan.hosts.iter().filter(|host| host.name.contains("ban-reset")).collect();
        assert!(banned.len() == BANNED as usize && banned.iter().all(|host| host.addresses == banned[0].addresses));
        let world = World::build(plan).unwrap();
        assert!(world.host("any.thing.row-05-subdomains.test").is_some());
        assert!(world.host("any.row-01-maze.test").is_none());
    }
}
