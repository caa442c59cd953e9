//! Segments copied from one node to another on this machine, beside the same bytes over a bare stream of the same library and over
//! TLS on TCP: `cargo xtask bench copy` runs it.
//!
//! ```text
//! copy MEGABYTES        prints one JSON object: megabytes per CPU second and per second of each
//! ```

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use skep_archive::{Append, Archive, Encoded, Key as UrlKey, OpenOptions};
use skep_ring::key::Seal;
use skep_ring::shell::membership::{Founding, Newcomer};
use skep_ring::shell::{Back, Membership, Parts, Running, Shell, Taken, Work};
use skep_ring::wire::quic::Quic;
use skep_ring::{Ears, Ed25519, Hash, Key, Slice, Wire};
use skep_warc::write::{Compression, Encoder, Record, RecordId};

type Failed = Box<dyn std::error::Error>;
const CHUNK: usize = 256 << 10;

fn main() -> Result<(), Failed> {
    let megabytes: u64 = std::env::args().nth(1).ok_or("usage: copy MEGABYTES")?.parse()?;
    let mut figures = BTreeMap::new();
    let bytes = megabytes << 20;
    for (name, work) in [("tls", tls as fn(u64) -> Result<(), Failed>), ("quic", quic)] {
        let (cpu, begun) = (cpu_seconds(), Instant::now());
        work(bytes)?;
        figures.insert(format!("{name}_per_cpu_s"), megabytes as f64 / (cpu_seconds() - cpu));
        figures.insert(format!("{name}_per_s"), megabytes as f64 / begun.elapsed().as_secs_f64());
    }
    let (copied, cpu, seconds) = copy(bytes)?;
    figures.insert("copy_per_cpu_s".into(), copied as f64 / f64::from(1 << 20) / cpu);
    figures.insert("copy_per_s".into(), copied as f64 / f64::from(1 << 20) / seconds);
    let fields: Vec<String> = figures.iter().map(|(name, value)| format!("\"{name}\": {value:.1}")).collect();
    println!("{{{}}}", fields.join(", "));
    Ok(())
}

/// Of all threads of this process, those that have ended among them; in hundredths of a second.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let words: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| words.get(at).and_then(|word| word.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}

/// The bytes over TLS on TCP, with the cipher that QUIC would take.
fn tls(bytes: u64) -> Result<(), Failed> {
    let certified = rcgen::generate_simple_self_signed(vec!["node.test".to_owned()])?;
    let der = certified.cert.der().clone();
    let key = rustls::pki_types::PrivateKeyDer::try_from(certified.signing_key.serialize_der())?;
    let server = rustls::ServerConfig::builder().with_no_client_auth().with_single_cert(vec![der.clone()], key)?;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(der)?;
    let client = rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let sending = std::thread::spawn(move || -> Result<(), String> {
        let failed = |error: &dyn std::fmt::Display| error.to_string();
        let (stream, _) = listener.accept().map_err(|error| failed(&error))?;
        let connection = rustls::ServerConnection::new(Arc::new(server)).map_err(|error| failed(&error))?;
        let mut stream = rustls::StreamOwned::new(connection, stream);
        let chunk = vec![7; CHUNK];
        for _ in 0..bytes / CHUNK as u64 {
            stream.write_all(&chunk).map_err(|error| failed(&error))?;
        }
        stream.conn.send_close_notify();
        stream.flush().map_err(|error| failed(&error))
    });
    let connection = rustls::ClientConnection::new(Arc::new(client), "node.test".try_into()?)?;
    let mut stream = rustls::StreamOwned::new(connection, TcpStream::connect(address)?);
    let mut buffer = vec![0; CHUNK];
    let mut come = 0;
    while come < bytes {
        come += stream.read(&mut buffer)? as u64;
    }
    sending.join().map_err(|_| "a thread panicked")??;
    Ok(())
}

/// The bytes over a bare stream of the library that carries the ring.
fn quic(bytes: u64) -> Result<(), Failed> {
    struct Source(u64);
    impl Ears for Source {
        fn too_long(&self, _: Key, _: &'static str) {}
        fn hear(&self, _: Key, _: Vec<u8>) {}
        fn is_member(&self, _: &Key) -> bool {
            true
        }
        fn answer(&self, _: Key, _: Vec<u8>, out: &mut dyn Write) -> std::io::Result<()> {
            let chunk = vec![7; CHUNK];
            (0..self.0 / CHUNK as u64).try_for_each(|_| out.write_all(&chunk))
        }
    }
    let (one, two) = (Quic::bind(&[1; 32], anywhere(), &[])?, Quic::bind(&[2; 32], anywhere(), &[])?);
    let source: Arc<dyn Ears> = Arc::new(Source(bytes));
    one.listen(&source);
    two.place(one.key(), &one.addresses(), None);
    let mut answer = two.ask(one.key(), b"all", Duration::from_secs(60))?;
    let mut buffer = vec![0; CHUNK];
    let mut come = 0;
    while come < bytes {
        match answer.read(&mut buffer)? {
            0 => return Err("the stream ended early".into()),
            read => come += read as u64,
        }
    }
    one.close();
    two.close();
    Ok(())
}

fn anywhere() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// A node that crawls nothing.
struct Idle;

impl Work for Idle {
    fn lead(&self, _: Slice, _: Instant, _: Option<Vec<skep_ring::message::Politeness>>) {}
    fn stop(&self, _: Slice) -> bool {
        false
    }
    fn links(&self, _: Key, _: skep_ring::links::Batch, back: Back) {
        back(Taken::default());
    }
    fn instructed(&self, _: &[Arc<skep_ring::instruction::SignedInstruction>]) {}
    fn answer(&self, _: &str, _: &[Slice]) -> Result<Vec<u8>, String> {
        Err("nobody asks here".into())
    }
    fn note(&self, _: &skep_ring::node::Note) {}
}

/// Everything that one node has, to another that joins: bytes, CPU seconds, seconds.
fn copy(bytes: u64) -> Result<(u64, f64, f64), Failed> {
    let folders = [tempfile::tempdir()?, tempfile::tempdir()?];
    let (first, second) = ([1; 32], [2; 32]);
    let archive = open(folders[0].path(), first)?;
    fill(&archive, bytes)?;
    let owner = Ed25519::from_secret(&[9; 32]);
    let now_ms = skep_archive::system_clock() as u64;
    let new = Newcomer { capacity_gb: 1000, zone: String::new(), listen: anywhere(), relays: Vec::new() };
    let times = [("rank", 100), ("answer", 500), ("compare", 1_000), ("ping", 1_000), ("silence", 10_000)];
    let times = times.into_iter().map(|(name, ms)| (name.to_owned(), ms)).collect();
    let founding = Founding { name: "bench".into(), slice_bits: 4, copies: 2, suffixes: Hash::default(), times };
    let membership = Membership::found(founding, &new, Ed25519::from_secret(&first).key(), &owner, [5; 32], now_ms)?;
    let wire = Quic::bind(&first, anywhere(), &[])?;
    let ticket = membership.invite(&owner, [8; 32], 1, now_ms + 600_000, vec![(wire.key(), wire.addresses()[0])])?;
    let (running, _ears) = start(membership, first, archive, wire, Vec::new())?;
    let wire = Quic::bind(&second, anywhere(), &[])?;
    let node = Ed25519::from_secret(&second);
    let (membership, facts) =
        Membership::join(&ticket, &new, &node, &Ed25519::from_secret(&[10; 32]), &*wire as &dyn Wire, now_ms)?;
    let (cpu, begun) = (cpu_seconds(), Instant::now());
    let (joined, _joined_ears) = start(membership, second, open(folders[1].path(), second)?, wire, facts)?;
    while !(joined.shell.status().settled && running.shell.status().settled) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let done = (joined.shell.status().pulled_bytes, cpu_seconds() - cpu, begun.elapsed().as_secs_f64());
    joined.stop();
    running.stop();
    Ok(done)
}

fn open(folder: &Path, secret: [u8; 32]) -> Result<Arc<Archive>, Failed> {
    let options = OpenOptions { bits: 4, secret: Some(secret), copies: true, ..OpenOptions::create() };
    Ok(Arc::new(Archive::open(folder, options)?))
}

fn start(
    membership: Membership,
    secret: [u8; 32],
    archive: Arc<Archive>,
    wire: Arc<Quic>,
    facts: Vec<skep_ring::fact::Fact>,
) -> Result<(Running, Arc<dyn Ears>), Failed> {
    let (way, work) = (wire.clone(), Arc::new(Idle));
    let parts = Parts { membership, secret, archive, wire: way, work, facts, portal: None, relay: None };
    let running = Shell::start(parts)?;
    let ears = running.ears();
    wire.listen(&ears);
    Ok((running, ears))
}

/// Pages that do not compress, sealed.
fn fill(archive: &Archive, bytes: u64) -> Result<(), Failed> {
    const BODY: usize = 64 << 10;
    let mut pending = Vec::new();
    for number in 0..bytes / BODY as u64 {
        let url = format!("http://site{}.test/{number}", number % 97);
        let mut body = Vec::with_capacity(BODY + 64);
        write!(body, "HTTP/1.1 200 OK\r\nContent-Length: {BODY}\r\n\r\n")?;
        let mut noise = Hash::of("noise", &number.to_le_bytes());
        while body.len() < BODY {
            body.extend_from_slice(&noise.0);
            noise = Hash::of("noise", &noise.0);
        }
        let mut id = [3; 16];
        id[..8].copy_from_slice(&number.to_le_bytes());
        let mut record = Vec::new();
        Record::response(&RecordId::uuid(id), "2026-01-01T00:00:00Z", &url, body.as_slice())
            .encode(&mut Encoder::new(Compression::GZIP), &mut record)?;
        let append = Append { site_hash: UrlKey::of(&url).site_hash(), records: vec![Encoded::describing(record)?] };
        pending.push(archive.append(append)?);
        if pending.len() >= 64 {
            pending.drain(..).try_for_each(|one| one.wait().map(|_| ()))?;
        }
    }
    pending.drain(..).try_for_each(|one| one.wait().map(|_| ()))?;
    archive.seal()?;
    Ok(archive.settle()?)
}
