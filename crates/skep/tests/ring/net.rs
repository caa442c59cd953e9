//! Machines for nodes: network namespaces on one bridge, each with an address of its own, between which the way can be cut.

use std::net::IpAddr;
use std::process::Command;

/// A bridge and the namespaces on it; all of it goes with this.
pub struct Net {
    id: u32,
    spaces: usize,
}

fn ip(words: &str) -> bool {
    let ran = Command::new("ip").args(words.split(' ')).output().expect("`ip` is there: xtask installs iproute2");
    ran.status.success()
}

#[track_caller]
fn must(words: &str) {
    let ran = Command::new("ip").args(words.split(' ')).output().expect("`ip` is there: xtask installs iproute2");
    assert!(ran.status.success(), "ip {words}: {}", String::from_utf8_lossy(&ran.stderr));
}

impl Net {
    pub fn new() -> Net {
        // Tests run side by side, each in a process of its own.
        let net = Net { id: std::process::id() % 60_000, spaces: 0 };
        must(&format!("link add {} type bridge", net.bridge()));
        must(&format!("addr add {}/24 dev {}", net.address(1), net.bridge()));
        must(&format!("link set {} up", net.bridge()));
        net
    }

    fn bridge(&self) -> String {
        format!("skbr{}", self.id)
    }

    /// An address on the bridge.
    pub fn address(&self, last: u8) -> IpAddr {
        IpAddr::from([10, 16 + (self.id / 250) as u8, (self.id % 250) as u8, last])
    }

    /// The address of a machine.
    pub fn of(&self, machine: usize) -> IpAddr {
        self.address(11 + machine as u8)
    }

    /// An address of the web that is crawled, on this side of the bridge.
    pub fn web(&self, number: u8) -> IpAddr {
        let address = self.address(100 + number);
        // There already, if another host is at the same one.
        ip(&format!("addr add {address}/24 dev {}", self.bridge()));
        address
    }

    pub fn space(&self, machine: usize) -> String {
        format!("sk{}n{machine}", self.id)
    }

    /// One more machine.
    pub fn machine(&mut self) -> usize {
        let machine = self.spaces;
        self.spaces += 1;
        let (space, link) = (self.space(machine), format!("sk{}v{machine}", self.id));
        must(&format!("netns add {space}"));
        must(&format!("link add {link} type veth peer name eth0 netns {space}"));
        must(&format!("link set {link} master {} up", self.bridge()));
        must(&format!("-n {space} addr add {}/24 dev eth0", self.of(machine)));
        must(&format!("-n {space} link set eth0 up"));
        must(&format!("-n {space} link set lo up"));
        // Whatever goes to an address outside of the network goes nowhere, and is counted.
        let quiet = ["netns", "exec", &space, "sh", "-c", "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6"];
        let silenced = Command::new("ip").args(quiet).output().expect("a shell");
        assert!(silenced.status.success(), "{}", String::from_utf8_lossy(&silenced.stderr));
        must(&format!("-n {space} link add outside type veth peer name nowhere"));
        must(&format!("-n {space} link set outside up"));
        must(&format!("-n {space} link set nowhere up"));
        must(&format!("-n {space} route add default dev outside"));
        machine
    }

    /// Machines of the two groups do not reach each other any more.
    pub fn split(&self, one: &[usize], other: &[usize]) {
        self.routes("add", one, other);
    }

    /// They do again.
    pub fn heal(&self, one: &[usize], other: &[usize]) {
        self.routes("del", one, other);
    }

    fn routes(&self, verb: &str, one: &[usize], other: &[usize]) {
        for a in one {
            for b in other {
                must(&format!("-n {} route {verb} blackhole {}/32", self.space(*a), self.of(*b)));
                must(&format!("-n {} route {verb} blackhole {}/32", self.space(*b), self.of(*a)));
            }
        }
    }

    fn counted(&self, machine: usize, what: &str) -> u64 {
        let file = format!("/sys/class/net/{what}");
        let ran = Command::new("ip").args(["netns", "exec", &self.space(machine), "cat", &file]).output();
        let ran = ran.expect("it is read");
        String::from_utf8_lossy(&ran.stdout).trim().parse().expect("a number")
    }

    /// Bytes that a machine sent so far, everything counted.
    pub fn sent(&self, machine: usize) -> u64 {
        self.counted(machine, "eth0/statistics/tx_bytes")
    }

    /// Packets that a machine sent to addresses outside of the network.
    pub fn sent_outside(&self, machine: usize) -> u64 {
        self.counted(machine, "outside/statistics/tx_packets")
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for machine in 0..self.spaces {
            ip(&format!("netns del {}", self.space(machine)));
        }
        ip(&format!("link del {}", self.bridge()));
    }
}
