//! Places where no visitor should end: ports of other protocols, and an address where connections are never taken.

use std::io;
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;

use crate::hostile::{BAD_PORTS_HEARD, Row};
use crate::limits;
use crate::server::{Shared, bind, told_to_stop};
use crate::world::{Host, World};

/// Ports where no visitor should come, of hosts that lead visitors there. One that is taken is left to whoever has it.
pub(crate) fn listen_on_bad_ports(world: &World) -> Vec<(String, TcpListener)> {
    let leading = |host: &&Host| host.plan.behaviour.as_hostile().is_some_and(|h| h.row == Row::Ports);
    let mut traps = Vec::new();
    for host in world.hosts().iter().filter(leading) {
        for (address, port) in
            host.plan.addresses.iter().flat_map(|address| BAD_PORTS_HEARD.map(|port| (*address, port)))
        {
            if let Ok(listener) = bind(SocketAddr::new(address, port)) {
                traps.push((host.plan.name.clone(), listener));
            }
        }
    }
    traps
}

/// A place on `::1` where connections are never taken, on the ports where the web listens: its queue is full already.
pub(crate) struct BlackHole {
    _listener: TcpListener,
    _waiting: Vec<std::net::TcpStream>,
}

pub(crate) fn black_hole(world: &World, listeners: &[TcpListener]) -> Vec<BlackHole> {
    let hidden = |host: &Host| host.plan.behaviour.as_hostile().is_some_and(|h| h.row == Row::BlackHole);
    let mut ports: Vec<u16> = Vec::new();
    for host in world.hosts().iter().filter(|host| hidden(host)) {
        let bound = listeners.iter().filter_map(|listener| listener.local_addr().ok());
        ports.extend(bound.filter(|bound| host.plan.addresses.contains(&bound.ip())).map(|bound| bound.port()));
    }
    ports.sort_unstable();
    ports.dedup();
    ports.into_iter().filter_map(|port| dig(SocketAddr::new(Ipv6Addr::LOCALHOST.into(), port)).ok()).collect()
}

fn dig(address: SocketAddr) -> io::Result<BlackHole> {
    let socket = TcpSocket::new_v6()?;
    socket.bind(address)?;
    let listener = socket.listen(1)?;
    let mut waiting = Vec::new();
    let patience = Duration::from_millis(limits::QUEUE_FULL_MS);
    while waiting.len() < limits::QUEUE_FULL_MAX
        && let Ok(stream) = std::net::TcpStream::connect_timeout(&address, patience)
    {
        waiting.push(stream);
    }
    Ok(BlackHole { _listener: listener, _waiting: waiting })
}

/// Whoever comes to a bad port is counted and sent away.
pub(crate) async fn count_visitors(
    shared: Arc<Shared>,
    host: String,
    listener: TcpListener,
    mut stopped: watch::Receiver<bool>,
) {
    loop {
        tokio::select! {
            taken = listener.accept() => match taken {
                Ok(_) => shared.proofs.count(&host, "bad-port"),
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            },
            () = told_to_stop(&mut stopped) => return,
        }
    }
}
