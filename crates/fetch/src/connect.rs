//! Connecting: IPv6 and IPv4 race, with a head start for the address that won the last time.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::Poll;

use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::fault::{Fault, Stage, is_local};
use crate::gate::{Admitted, Gate};
use crate::limits::STAGGER_MS;
use crate::receive::ms;

/// The order in which addresses are tried: the last winner, then the families in turn, IPv6 first.
pub(crate) fn order<T: Copy>(targets: &[T], ip: impl Fn(T) -> IpAddr, winner: Option<IpAddr>) -> Vec<T> {
    let mut six = targets.iter().copied().filter(|&t| ip(t).is_ipv6() && Some(ip(t)) != winner);
    let mut four = targets.iter().copied().filter(|&t| ip(t).is_ipv4() && Some(ip(t)) != winner);
    let mut out: Vec<T> = targets.iter().copied().filter(|&t| Some(ip(t)) == winner).collect();
    loop {
        let (a, b) = (six.next(), four.next());
        if a.is_none() && b.is_none() {
            return out;
        }
        out.extend(a.into_iter().chain(b));
    }
}

/// How sockets are made before they connect.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Dial {
    /// The source address.
    pub from: Option<IpAddr>,
    /// See [`crate::Settings::receive_buffer_bytes`].
    pub receive_buffer_bytes: Option<u32>,
}

/// Connects to the first of these that answers. Each gets a head start before the next is tried beside it.
pub(crate) async fn connect(
    targets: &[Admitted],
    gate: &Gate,
    dial_as: Dial,
    connect_ms: u64,
) -> Result<(TcpStream, SocketAddr), Fault> {
    let deadline = Instant::now() + ms(connect_ms);
    let raced = match targets {
        [] => return Err(Fault::NoAddress),
        [one] => timeout_at(deadline, dial(*one, dial_as)).await,
        many => timeout_at(deadline, race(many, dial_as)).await,
    };
    let (stream, target) =
        raced.map_err(|_| Fault::Timeout(Stage::Connect))?.map_err(|error| Fault::of_connect(&error))?;
    // Which addresses are ours is known only now, where we listen on all of them.
    if gate.is_own(target, stream.local_addr().ok().map(|local| local.ip())) {
        return Err(Fault::OwnAddress);
    }
    let _ = stream.set_nodelay(true); // costs speed when it fails, nothing else
    Ok((stream, target))
}

async fn dial(to: Admitted, how: Dial) -> io::Result<(TcpStream, SocketAddr)> {
    let target = to.target();
    let socket = if target.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    if let Some(bytes) = how.receive_buffer_bytes {
        socket.set_recv_buffer_size(bytes)?;
    }
    if let Some(from) = how.from.filter(|from| from.is_ipv4() == target.is_ipv4()) {
        socket.bind(SocketAddr::new(from, 0))?;
    }
    socket.connect(target).await.map(|stream| (stream, target))
}

type Dialling = Pin<Box<dyn Future<Output = io::Result<(TcpStream, SocketAddr)>> + Send>>;

async fn race(targets: &[Admitted], how: Dial) -> io::Result<(TcpStream, SocketAddr)> {
    let mut waiting = targets.iter().copied();
    let mut running: Vec<Dialling> = Vec::new();
    let mut last_error = io::Error::from(io::ErrorKind::NotFound);
    let mut next_at = Instant::now();
    loop {
        if Instant::now() >= next_at || running.is_empty() {
            match waiting.next() {
                Some(target) => running.push(Box::pin(dial(target, how))),
                None if running.is_empty() => return Err(last_error),
                None => {}
            }
            next_at = Instant::now() + ms(STAGGER_MS);
        }
        tokio::select! {
            result = first_of(&mut running) => match result {
                Ok(connected) => return Ok(connected),
                Err(error) if is_local(&error) => return Err(error), // the next one would fail alike
                Err(error) => {
                    last_error = error;
                    next_at = Instant::now(); // who failed needs no head start
                }
            },
            () = sleep_until(next_at), if waiting.len() > 0 => {}
        }
    }
}

/// The first that ends; it is taken out.
async fn first_of(running: &mut Vec<Dialling>) -> io::Result<(TcpStream, SocketAddr)> {
    std::future::poll_fn(|context| {
        for at in 0..running.len() {
            if let Poll::Ready(result) = running[at].as_mut().poll(context) {
                drop(running.swap_remove(at));
                return Poll::Ready(result);
            }
        }
        Poll::Pending
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_take_turns_and_the_winner_goes_first() {
        let ips: Vec<IpAddr> =
            ["192.0.2.1", "192.0.2.2", "192.0.2.3", "2001:db8::1"].iter().map(|ip| ip.parse().unwrap()).collect();
        let text = |winner: Option<&str>| {
            let ordered = order(&ips, |ip| ip, winner.map(|w| w.parse().unwrap()));
            ordered.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(text(None), "2001:db8::1 192.0.2.1 192.0.2.2 192.0.2.3");
        assert_eq!(text(Some("192.0.2.3")), "192.0.2.3 2001:db8::1 192.0.2.1 192.0.2.2");
        assert_eq!(text(Some("192.0.2.9")), "2001:db8::1 192.0.2.1 192.0.2.2 192.0.2.3");
    }

    #[tokio::test]
    async fn a_dead_address_does_not_keep_us_from_a_living_one() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let living = listener.local_addr().unwrap();
        let refused = {
            let other = tokio::net::TcpListener::bind("127.0.0.2:0").await.unwrap();
            other.local_addr().unwrap()
        };
        let gate = Gate::open();
        let targets = [refused, living].map(|target| gate.admit(target, false).unwrap());
        let (_, winner) = connect(&targets, &gate, Dial::default(), 10_000).await.unwrap();
        assert_eq!(winner, living);
        let fault = connect(&targets[..1], &gate, Dial::default(), 10_000).await.unwrap_err();
        assert_eq!(fault.id(), "connect-refused");
    }
}
