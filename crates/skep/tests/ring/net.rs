//! Machines for nodes: network namespaces on one bridge, each with an address of its own, between which the way can be cut.

use std::io::{BufRead, BufReader};
use std::net::IpAddr;
use std::process::{Child, Command, Stdio};

/// A bridge and the namespaces on it; all of it goes with this.
pub struct Net {
    id: u32,
    spaces: usize,
    /// What makes ways longer.
    ways: Vec<Child>,
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
        let net = Net { id: std::process::id() % 60_000, spaces: 0, ways: Vec::new() };
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

    /// An address of the later kind, with its prefix; nodes are told nothing of it.
    fn of_later(&self, machine: usize) -> String {
        format!("fd00:{:x}::{:x}/64", self.id, 11 + machine)
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
        // Whatever goes to an address outside of the network goes nowhere, and is counted: IPv4 and IPv6. There nothing asks for neighbours, or
        // makes itself known, so that what is counted is what the node sent.
        must(&format!("-n {space} addr add {} dev eth0 nodad", self.of_later(machine)));
        must(&format!("-n {space} link add outside type veth peer name nowhere"));
        for end in ["outside", "nowhere"] {
            must(&format!("-n {space} link set {end} addrgenmode none"));
            must(&format!("-n {space} link set {end} arp off"));
        }
        must(&format!("-n {space} link set outside up"));
        must(&format!("-n {space} link set nowhere up"));
        must(&format!("-n {space} route add default dev outside"));
        must(&format!("-n {space} -6 route add default dev outside"));
        machine
    }

    /// The way from a machine to the web takes so much longer from now on, and that to other machines does not.
    pub fn far(&mut self, machine: usize, ms: u32) {
        let (into, out) = (format!("sk{}i{machine}", self.id), format!("sk{}o{machine}", self.id));
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ring/far.py");
        let mut way = Command::new("python3")
            .args([script, &into, &out, &ms.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("`python3` is there: xtask installs it");
        let mut line = String::new();
        BufReader::new(way.stdout.take().expect("its output")).read_line(&mut line).expect("text");
        self.ways.push(way);
        assert_eq!(line.trim(), "ready", "no tunnel for a longer way");
        let space = self.space(machine);
        must(&format!("link set {into} netns {space}"));
        must(&format!("-n {space} link set {into} up"));
        must(&format!("link set {out} up"));
        // Answers come back over the bridge: what comes by one way and goes by another is let through.
        std::fs::write(format!("/proc/sys/net/ipv4/conf/{out}/rp_filter"), "0").expect("it is set");
        // The web is at 100 and above, see `web`.
        must(&format!("-n {space} route add {}/27 dev {into} src {}", self.address(96), self.of(machine)));
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

    /// Bytes that a machine sent and received so far, everything counted.
    pub fn carried(&self, machine: usize) -> (u64, u64) {
        let bytes = |way: &str| self.counted(machine, &format!("eth0/statistics/{way}_bytes"));
        (bytes("tx"), bytes("rx"))
    }

    /// Packets that a machine sent to addresses outside of the network.
    pub fn sent_outside(&self, machine: usize) -> u64 {
        self.counted(machine, "outside/statistics/tx_packets")
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for way in &mut self.ways {
            let _ended_already = way.kill();
            let _reaped = way.wait();
        }
        for machine in 0..self.spaces {
            ip(&format!("netns del {}", self.space(machine)));
        }
        ip(&format!("link del {}", self.bridge()));
    }
}
