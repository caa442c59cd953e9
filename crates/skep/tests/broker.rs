//! The broker of a contributor, as a process of its own: whatever it is asked for, it connects to public addresses only.

use skep_contribute::broker::Asking;
use skep_contribute::pipe::{self, Packets, Setup};
use skep_fetch::{Broker, Class, Connected, Fault};
use skep_testweb::{Behaviour, HostPlan, Hostile, Plan, Row, Settings, Shape, Web, World, loopback};
use skep_url::Url;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};

/// The IANA special-purpose registries, and multicast: all that is not reachable by everybody.
const RANGES: &[&str] = &[
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    // Of 192.0.0.0/24 and 2001::/23 what is not said to be reachable by everybody.
    "192.0.0.0/29",
    "192.0.0.16/28",
    "192.0.0.128/25",
    "192.0.2.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "255.255.255.255/32",
    "::/128",
    "::1/128",
    "64:ff9b:1::/48",
    "100::/64",
    "100:0:0:1::/64",
    "2001::/32",
    "2001:2::/48",
    "2001:10::/28",
    "2001:5::/32",
    "2001:100::/24",
    "2001:db8::/32",
    "3fff::/20",
    "5f00::/16",
    "fc00::/7",
    "fe80::/10",
    "fec0::/10",
    "ff00::/8",
];

/// An IPv4 address within: what is reached through them is judged.
fn carrying(inner: Ipv4Addr) -> [Ipv6Addr; 3] {
    let bits = u128::from(inner.to_bits());
    [
        inner.to_ipv6_mapped(),
        Ipv6Addr::from_bits(0x64_ff9b << 96 | bits),
        Ipv6Addr::from_bits(0x2002 << 112 | bits << 80 | 1),
    ]
}

/// The first, the last, and some between.
fn of_range(range: &str) -> Vec<IpAddr> {
    let (first, bits) = range.split_once('/').expect("a prefix");
    let (first, bits): (IpAddr, u32) = (first.parse().expect("an address"), bits.parse().expect("bits"));
    let (from, free) = match first {
        IpAddr::V4(first) => (u128::from(first.to_bits()), 32 - bits),
        IpAddr::V6(first) => (first.to_bits(), 128 - bits),
    };
    let last = if free == 0 { 0 } else { u128::MAX >> (128 - free) };
    let some = (1..=6u128).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835));
    [0, 1, last / 2, last]
        .into_iter()
        .chain(some)
        .map(|at| from | at & last)
        .map(|address| match first {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from_bits(address as u32)),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from_bits(address)),
        })
        .collect()
}

/// A broker that runs, and asks of it. It ends with this.
struct Running {
    child: Child,
    asking: Asking,
    _main: tokio::net::UnixStream,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ended_already = self.child.kill();
        let _reaped = self.child.wait();
    }
}

impl Running {
    /// Has to be called, and asked, within a set of local tasks.
    async fn begin(setup: &Setup) -> Running {
        let (ours, theirs) = pipe::packets().expect("sockets");
        let (main, their_main) = std::os::unix::net::UnixStream::pair().expect("sockets");
        let mut command = Command::new(env!("CARGO_BIN_EXE_skep"));
        command.args(["contribute", "--role", "broker"]).env_clear();
        command.stdin(Stdio::from(theirs)).stdout(Stdio::from(OwnedFd::from(their_main)));
        let child = command.spawn().expect("skep starts");
        drop(command);
        let mut main = pipe::stream(main.into()).expect("a socket");
        pipe::send(&mut main, setup).await.expect("it is told");
        let (asking, serving) = Asking::new(Packets::new(ours).expect("a socket"));
        tokio::task::spawn_local(serving);
        Running { child, asking, _main: main }
    }

    async fn connect(&self, url: &str) -> Result<Connected, Fault> {
        self.asking.connect(&Url::parse(url).expect("a URL")).await
    }

    async fn refuses(&self, url: &str) {
        match self.connect(url).await {
            Ok(connected) => panic!("{url} was connected to at {}", connected.address),
            Err(fault) => {
                assert!(fault.class() == Class::Refused || fault.id() == "no-address", "{url}: {fault}");
            }
        }
    }
}

fn here<T>(asked: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    tokio::task::LocalSet::new().block_on(&runtime, asked)
}

fn setup() -> Setup {
    Setup { user_agent: "skep/0 (test)".into(), ..Setup::default() }
}

fn in_brackets(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

#[test]
fn no_address_of_the_special_purpose_registries_is_connected_to() {
    here(async {
        let broker = Running::begin(&setup()).await;
        let mut tried = 0;
        for address in RANGES.iter().flat_map(|range| of_range(range)) {
            broker.refuses(&format!("http://{}/", in_brackets(address))).await;
            tried += 1;
            if let IpAddr::V4(inner) = address {
                for outer in carrying(inner) {
                    broker.refuses(&format!("https://[{outer}]/")).await;
                    tried += 1;
                }
            }
        }
        // Secrets of machines that stand in a cloud, and odd ways to write an address.
        for url in [
            "http://169.254.169.254/latest/meta-data/",
            "http://168.63.129.16/",
            "http://192.0.0.192/",
            "http://[fd00:ec2::254]/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://127.1/",
            "http://017700000001/",
        ] {
            broker.refuses(url).await;
            tried += 1;
        }
        println!("{tried} addresses refused");
    });
}

#[test]
fn names_that_lead_there_or_change_their_mind_are_not_followed() {
    let host = "a.test";
    let behaviour = Behaviour::hostile(Hostile::new(Row::PrivateAddresses));
    let plan = HostPlan::generated(host, Shape::pages(3).frozen()).on(&[loopback(7)]).behaving(behaviour);
    let plan = Plan::new(1).host(HostPlan { wildcard: true, ..plan });
    let web = Web::start(World::build(plan).expect("a world"), Settings::default()).expect("a web");
    let dns: SocketAddr = web.map().dns.parse().expect("an address");
    here(async {
        let broker = Running::begin(&Setup { name_servers: vec![dns], ..setup() }).await;
        let forms = [
            "loopback",
            "private",
            "link-local",
            "metadata",
            "cgnat",
            "zero",
            "mapped",
            "nat64",
            "six",
            "unique-local",
            "mixed",
        ];
        for form in forms {
            broker.refuses(&format!("http://{form}.{host}/")).await;
        }
        // Once this, once that: each connection goes to an address that was judged, whatever the next answer is.
        for _ in 0..4 {
            broker.refuses(&format!("http://rebinding.{host}/")).await;
            broker.refuses(&format!("https://rebinding.{host}/")).await;
        }
        // What a redirect of a page leads to is asked for like everything else.
        for url in ["http://localhost/", "http://router/", "http://printer.local/", "http://example.org:6379/"] {
            broker.refuses(url).await;
        }
    });
    assert_eq!(web.report().requests, 0, "nobody came");
    assert!(web.proof(host).expect("a proof").dns["rebinding"] > 0);
    // Where the owner allows it, the same question is answered with a connection.
    here(async {
        let setup = Setup { name_servers: vec![dns], allow_private: true, ..setup() };
        let broker = Running::begin(&setup).await;
        let port = web.address(host).expect("it is there").port();
        let connected = broker.connect(&format!("http://{host}:{port}/")).await.expect("a connection");
        assert!(connected.address.ip().is_loopback());
    });
}

#[test]
fn a_country_that_is_avoided_is_told_by_where_a_host_stands() {
    let host = "a.test";
    let plan = HostPlan::generated(host, Shape::pages(3).frozen()).on(&[loopback(7)]);
    let web = Web::start(World::build(Plan::new(1).host(plan)).expect("a world"), Settings::default()).expect("a web");
    let place = &web.map().hosts[0];
    let folder = tempfile::tempdir().expect("a folder");
    let networks = folder.path().join("networks.txt");
    std::fs::write(&networks, "127.0.0.0/8 64500 FR\n127.0.0.0/16 64501 DE\n").expect("a table");
    here(async {
        let avoiding = |country: [u8; 2]| Setup {
            allow_private: true,
            resolve: place.resolve.clone(),
            networks: Some(networks.clone()),
            avoid: vec![skep_contribute::trust::Place(country)],
            ..setup()
        };
        let url = format!("http://{host}:{}/", place.addresses[0].port());
        Running::begin(&avoiding(*b"DE")).await.refuses(&url).await;
        assert_eq!(web.report().requests, 0, "nobody came");
        Running::begin(&avoiding(*b"FR")).await.connect(&url).await.expect("a connection");
    });
}
