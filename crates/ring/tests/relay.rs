//! Relays that nodes serve, over real sockets: who may use them, and that nothing else leads from one node to another.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use skep_ring::wire::quic::Quic;
use skep_ring::{Ears, Key, Wire};

/// How long anything may take before it counts as a hang.
const PATIENCE: Duration = Duration::from_secs(60);

/// Answers what it is asked, and knows who belongs to the network.
#[derive(Default)]
struct Echo(Mutex<BTreeSet<Key>>);

impl Ears for Echo {
    fn hear(&self, _: Key, _: Vec<u8>) {}
    fn too_long(&self, _: Key, _: &'static str) {}
    fn is_member(&self, key: &Key) -> bool {
        self.0.lock().unwrap().contains(key)
    }
    fn answer(&self, _: Key, question: Vec<u8>, out: &mut dyn Write) -> std::io::Result<()> {
        out.write_all(&question)
    }
}

fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

fn node(number: u8) -> Arc<Quic> {
    Quic::bind(&[number; 32], loopback(), &[]).unwrap()
}

#[track_caller]
fn until(what: &str, so: impl Fn() -> bool) {
    let since = Instant::now();
    while !so() {
        assert!(since.elapsed() < PATIENCE, "never {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn asked(one: &Quic, other: &Quic, patience: Duration) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    one.ask(other.key(), b"are you there", patience).ok()?.read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

#[test]
fn members_reach_each_other_through_a_relay_and_strangers_are_refused() {
    let (relay, one, two, stranger) = (node(1), node(2), node(3), node(4));
    let echo = Arc::new(Echo(Mutex::new([relay.key(), one.key(), two.key()].into())));
    let ears: Arc<dyn Ears> = echo.clone();
    let url = relay.serve_relay(loopback()).unwrap().expect("an address that others can use");
    [&relay, &one, &two, &stranger].iter().for_each(|node| node.listen(&ears));

    // Where the others are, nobody knows but for the relay; and a relay that only a record names is not used.
    one.place(two.key(), &[], Some(&url));
    two.place(one.key(), &[], Some(&url));
    assert_eq!(asked(&one, &two, Duration::from_millis(300)), None, "nobody said that this relay is of the network");
    let named = [(relay.key(), url.clone())];
    let there = relay.addresses();
    for node in [&one, &two] {
        node.place(relay.key(), &there, None);
        node.relays(&named);
        until("at the relay", || node.relay().as_deref() == Some(url.as_str()));
    }
    until("asked through the relay", || asked(&one, &two, PATIENCE).as_deref() == Some(b"are you there"));
    let relayed = relay.relayed().unwrap();
    assert!(relayed.bytes > 0 && relayed.refused == 0, "{relayed:?}");

    // Who is no node of the network gets nowhere by it.
    stranger.place(relay.key(), &there, None);
    stranger.relays(&named);
    stranger.place(two.key(), &[], Some(&url));
    until("refused", || relay.relayed().unwrap().refused > 0);
    assert_eq!(stranger.relay(), None);
    assert_eq!(asked(&stranger, &two, Duration::from_secs(1)), None);

    // Nor who has ceased to be one.
    echo.0.lock().unwrap().remove(&two.key());
    let refused = relay.relayed().unwrap().refused;
    relay.relays(&[]);
    until("sent away", || two.relay().is_none());
    until("refused when it comes back", || relay.relayed().unwrap().refused > refused);
    assert!(one.relay().is_some());
    [&relay, &one, &two, &stranger].iter().for_each(|node| node.close());
}

#[test]
fn a_relay_gives_little_room_to_who_does_not_say_who_it_is() {
    use std::net::TcpStream;
    let (relay, one) = (node(5), node(6));
    let ears: Arc<dyn Ears> = Arc::new(Echo(Mutex::new([relay.key(), one.key()].into())));
    let url = relay.serve_relay(loopback()).unwrap().unwrap();
    [&relay, &one].iter().for_each(|node| node.listen(&ears));
    let at: SocketAddr = url.strip_prefix("http://").unwrap().parse().unwrap();
    // They come from one machine, and are more than there is room for.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let many = skep_ring::limits::RELAY_UNPROVEN_MAX + 100;
    let connected = |_| {
        let connecting = async {
            let socket = tokio::net::TcpSocket::new_v4()?;
            socket.bind("127.0.0.2:0".parse().unwrap())?;
            socket.connect(at).await?.into_std()
        };
        runtime.block_on(connecting).unwrap()
    };
    let mut silent: Vec<TcpStream> = (0..many).map(connected).collect();
    for (number, stream) in silent.iter_mut().enumerate() {
        stream.set_nonblocking(false).unwrap();
        let said: &[u8] = match number % 3 {
            0 => b"",
            1 => b"GET /relay HTTP/1.1\r\nHost: a\r\n",
            _ => &[0xff; 200],
        };
        let _closed_already = stream.write_all(said);
    }
    // Most are not even listened to, and members find a place.
    until("sent away", || relay.relayed().unwrap().refused >= (many - 64) as u64);
    one.place(relay.key(), &relay.addresses(), None);
    one.relays(&[(relay.key(), url)]);
    until("at the relay", || one.relay().is_some());
    // And the silent ones are not waited for for ever.
    for stream in &mut silent {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut rest = Vec::new();
        let ended = stream.read_to_end(&mut rest);
        assert!(ended.is_ok() || ended.is_err_and(|error| error.kind() != std::io::ErrorKind::WouldBlock));
    }
    [&relay, &one].iter().for_each(|node| node.close());
}

#[test]
fn nobody_is_led_to_a_machine_where_the_node_that_names_it_does_not_answer() {
    let (liar, relay, one) = (node(7), node(8), node(9));
    let ears: Arc<dyn Ears> = Arc::new(Echo(Mutex::new([liar.key(), relay.key(), one.key()].into())));
    let url = relay.serve_relay(loopback()).unwrap().unwrap();
    [&liar, &relay, &one].iter().for_each(|node| node.listen(&ears));
    // Somebody else's machine, at an address that the liar's record has beside its own.
    let trap = std::net::TcpListener::bind("127.0.0.3:0").unwrap();
    trap.set_nonblocking(true).unwrap();
    let theirs = trap.local_addr().unwrap();
    one.place(liar.key(), &[liar.addresses()[0], theirs], None);
    one.place(relay.key(), &relay.addresses(), None);
    one.relays(&[(liar.key(), format!("http://{theirs}")), (relay.key(), url.clone())]);
    until("at the relay that is one", || one.relay().as_deref() == Some(url.as_str()));
    assert!(asked(&one, &liar, PATIENCE).is_some(), "the liar is there");
    assert_eq!(trap.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    [&liar, &relay, &one].iter().for_each(|node| node.close());
}

#[test]
fn relays_that_do_not_answer_keep_no_node_from_one_that_does() {
    let (relay, one) = (node(10), node(11));
    let ears: Arc<dyn Ears> = Arc::new(Echo(Mutex::new([relay.key(), one.key()].into())));
    let url = relay.serve_relay(loopback()).unwrap().unwrap();
    [&relay, &one].iter().for_each(|node| node.listen(&ears));
    one.place(relay.key(), &relay.addresses(), None);
    // More than a node looks at, all of them preferred, and nobody there.
    let gone = 1..2 * skep_ring::limits::RELAYS_MAX as u8 + 2;
    let gone = gone.map(|number| (Key([number; 32]), format!("http://127.0.0.4:{number}")));
    let served: Vec<(Key, String)> = gone.chain([(relay.key(), url.clone())]).collect();
    until("at the relay", || {
        // It looks again whenever it is told of them.
        one.relays(&served);
        one.relay().as_deref() == Some(url.as_str())
    });
    [&relay, &one].iter().for_each(|node| node.close());
}
