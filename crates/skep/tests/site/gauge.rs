//! A gauge on the line between a contributor and everybody it speaks to: what passes when, and over how many connections at once. It keeps
//! almost nothing that has not been taken, so that what it has passed is what the contributor has taken or sent.
#![allow(missing_docs)]

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Bytes that are passed on at once.
const PIECE_BYTES: usize = 2 << 10;
/// The system's room for what a contributor has not taken yet: what is asked for here, doubled, and what the contributor asks for, doubled.
pub const ROOM_BYTES: u64 = 2 * (SEND_BYTES as u64 + skep_contribute::limits::RECEIVE_BUFFER_BYTES as u64);
const SEND_BYTES: u32 = 2 << 10;

#[derive(Clone, Default)]
pub struct Gauge(Arc<Mutex<Passed>>);

#[derive(Default)]
struct Passed {
    /// When so many bytes passed, in either direction.
    bytes: Vec<(Instant, u64)>,
    /// Connections to sites whose ends have not been seen, and the most at once.
    open: Vec<Arc<TcpStream>>,
    at_once: usize,
}

impl Gauge {
    fn lock(&self) -> MutexGuard<'_, Passed> {
        self.0.lock().expect("no panic")
    }

    /// An address at which `to` is reached through the gauge. Connections to sites are counted, those to a node are not.
    pub fn before(&self, to: SocketAddr, is_site: bool) -> SocketAddr {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let listener: TcpListener = runtime.block_on(async {
            let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
            // What is accepted has as little room.
            socket.set_send_buffer_size(SEND_BYTES).expect("it is set");
            socket.bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
            socket.listen(64).expect("it listens").into_std().expect("a listener")
        });
        listener.set_nonblocking(false).expect("it waits");
        let (at, gauge) = (listener.local_addr().expect("an address"), self.clone());
        std::thread::spawn(move || {
            for theirs in listener.incoming().flatten() {
                let (gauge, theirs) = (gauge.clone(), Arc::new(theirs));
                if is_site {
                    gauge.opened(&theirs);
                }
                std::thread::spawn(move || gauge.pass_on(&theirs, to));
            }
        });
        at
    }

    /// One more: who has closed another one before is seen by its end, whether or not anybody here has come to read that far.
    fn opened(&self, theirs: &Arc<TcpStream>) {
        let mut passed = self.lock();
        passed.open.retain(is_open);
        passed.open.push(theirs.clone());
        passed.at_once = passed.at_once.max(passed.open.len());
    }

    fn pass_on(&self, theirs: &Arc<TcpStream>, to: SocketAddr) {
        let Ok(ours) = TcpStream::connect(to) else { return };
        let _small_pieces_wait_otherwise = (theirs.set_nodelay(true), ours.set_nodelay(true));
        let copy = |mut from: &TcpStream, mut into: &TcpStream| {
            let mut piece = [0; PIECE_BYTES];
            while let Ok(read @ 1..) = from.read(&mut piece) {
                if into.write_all(&piece[..read]).is_err() {
                    break;
                }
                self.lock().bytes.push((Instant::now(), read as u64));
            }
            let _closed = into.shutdown(Shutdown::Write);
        };
        std::thread::scope(|scope| {
            scope.spawn(|| copy(theirs, &ours));
            copy(&ours, theirs);
        });
        self.lock().open.retain(|open| !Arc::ptr_eq(open, theirs));
    }

    /// The most connections to sites at once.
    pub fn at_once(&self) -> usize {
        self.lock().at_once
    }

    pub fn bytes(&self) -> u64 {
        self.lock().bytes.iter().map(|(_, bytes)| bytes).sum()
    }

    /// The most bytes that passed in any span of time of this length.
    pub fn most_within(&self, span: Duration) -> u64 {
        let passed = self.lock();
        let (mut most, mut sum, mut from) = (0, 0, 0);
        for (at, bytes) in &passed.bytes {
            sum += bytes;
            while at.duration_since(passed.bytes[from].0) >= span {
                sum -= passed.bytes[from].1;
                from += 1;
            }
            most = most.max(sum);
        }
        most
    }
}

/// Has the other end not closed it? A half that is closed counts as closed: nobody asks anything over it any more.
fn is_open(stream: &Arc<TcpStream>) -> bool {
    // The states of this connection's socket, as the system tells them: 01 is ESTABLISHED.
    let Ok(link) = std::fs::read_link(format!("/proc/self/fd/{}", stream.as_raw_fd())) else { return false };
    let inode = link.display().to_string().trim_start_matches("socket:[").trim_end_matches(']').to_owned();
    let table = std::fs::read_to_string("/proc/net/tcp").expect("the system's table");
    let line = table.lines().find(|line| line.split_whitespace().nth(9) == Some(&inode));
    line.is_some_and(|line| line.split_whitespace().nth(3) == Some("01"))
}
