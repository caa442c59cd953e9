//! A name server for the hosts of a web, over UDP and TCP, that misbehaves where a host says so.
//!
//! It answers for the web's own names and for nothing else, on 127.0.0.1; a visitor is pointed to it by its address
//! ([`Map::dns`](crate::Map::dns)). Names carry no ports: plan the web with the port it listens on.

mod message;
mod naming;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::{Mutex, watch};
use tokio::task::JoinSet;

use crate::chance::Chance;
use crate::hostile::Row;
use crate::limits;
use crate::proof;
use crate::server::{Shared, bind, told_to_stop};
use message::{Question, Record};
use naming::{Asked, Reply};

/// Both sockets of the name server, on one port.
pub(crate) struct Sockets {
    udp: UdpSocket,
    tcp: TcpListener,
    pub address: SocketAddr,
}

/// Bytes of a message over TCP.
const TCP_BYTES_MAX: usize = u16::MAX as usize;
/// Times that a port is looked for that is free for both.
const PORT_TRIES: usize = 20;

/// Binds both; with port 0, to one that is free for both. Asked within a runtime.
pub(crate) fn listen(port: u16) -> io::Result<Sockets> {
    let mut tries = 0;
    loop {
        let tcp = bind(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port))?;
        let address = tcp.local_addr()?;
        match std::net::UdpSocket::bind(address) {
            Ok(udp) => {
                udp.set_nonblocking(true)?;
                return Ok(Sockets { udp: UdpSocket::from_std(udp)?, tcp, address });
            }
            Err(e) if port != 0 || tries == PORT_TRIES => return Err(e),
            Err(_) => tries += 1,
        }
    }
}

/// Answers until told to stop.
pub(crate) async fn serve(shared: Arc<Shared>, sockets: Sockets, mut stopped: watch::Receiver<bool>) {
    let Sockets { udp, tcp, .. } = sockets;
    let udp = Arc::new(udp);
    let mut answering = JoinSet::new();
    let mut message = vec![0; TCP_BYTES_MAX];
    loop {
        tokio::select! {
            came = udp.recv_from(&mut message) => {
                let Ok((bytes, from)) = came else { continue };
                if *shared.cut.borrow() {
                    continue;
                }
                if answering.len() < limits::DNS_UNDER_WAY_MAX {
                    answering.spawn(datagram(shared.clone(), udp.clone(), message[..bytes].to_vec(), from));
                }
            }
            came = tcp.accept() => {
                let Ok((stream, _)) = came else { continue };
                if *shared.cut.borrow() {
                    continue;
                }
                if answering.len() < limits::DNS_UNDER_WAY_MAX {
                    let (shared, mut stopped) = (shared.clone(), stopped.clone());
                    answering.spawn(async move {
                        tokio::select! {
                            _ = connection(shared, stream) => {}
                            () = told_to_stop(&mut stopped) => {}
                        }
                    });
                }
            }
            () = told_to_stop(&mut stopped) => return,
        }
        while answering.try_join_next().is_some() {}
    }
}

async fn datagram(shared: Arc<Shared>, udp: Arc<UdpSocket>, message: Vec<u8>, from: SocketAddr) {
    let Some(question) = Question::read(&message) else {
        return;
    };
    for answer in answers(&shared, &question, question.udp_bytes, false).await {
        let _ = udp.send_to(&answer, from).await;
    }
}

/// Messages over TCP, each after its length. One that is answered late holds up no other.
async fn connection(shared: Arc<Shared>, stream: TcpStream) -> io::Result<()> {
    let (mut read, write) = stream.into_split();
    let write = Arc::new(Mutex::new(write));
    let mut answering = JoinSet::new();
    loop {
        let patience = Duration::from_millis(limits::REQUEST_HEAD_MS);
        let length = tokio::time::timeout(patience, read.read_u16()).await??;
        let mut message = vec![0; usize::from(length)];
        tokio::time::timeout(patience, read.read_exact(&mut message)).await??;
        let Some(question) = Question::read(&message) else {
            return Ok(());
        };
        while answering.try_join_next().is_some() {}
        if answering.len() < limits::DNS_UNDER_WAY_MAX {
            let (shared, write) = (shared.clone(), write.clone());
            answering.spawn(async move {
                for answer in answers(&shared, &question, TCP_BYTES_MAX, true).await {
                    let length = u16::try_from(answer.len()).unwrap_or(u16::MAX).to_be_bytes();
                    let _who_asked_may_be_gone = write.lock().await.write_all(&[&length, &answer[..]].concat()).await;
                }
            });
        }
    }
}

/// What is sent to a question, noted in the proofs.
async fn answers(shared: &Shared, question: &Question, bytes_max: usize, tcp: bool) -> Vec<Vec<u8>> {
    let host = naming::host_of(&shared.world, &question.name);
    let behaviour = host.map(|host| shared.behaviour(&host.plan.name)).unwrap_or_default();
    let hijacker = if host.is_none() { shared.hijacker() } else { None };
    let (number, in_second) = shared.count_question(&question.name);
    let said = naming::say(&Asked { question, number, in_second }, host, &behaviour, hijacker);
    shared.proofs.named(said.host.as_deref().unwrap_or(proof::WEB), &said.form);
    let answer = |records: &[Record]| question.answer(message::NO_ERROR, records, bytes_max);
    match said.reply {
        Reply::Answer { code, records } => vec![question.answer(code, &records, bytes_max)],
        Reply::Late { ms, records } => {
            tokio::time::sleep(Duration::from_millis(ms)).await;
            vec![answer(&records)]
        }
        Reply::Forged { records } => {
            let address = message::forbidden("metadata").map(|address| Record::address(address, 86_400));
            let forged = question.of_another().answer(message::NO_ERROR, &Vec::from_iter(address), bytes_max);
            vec![forged, answer(&records)]
        }
        Reply::Cut { .. } if !tcp => vec![question.cut()],
        Reply::Cut { records } => vec![answer(&records)],
        Reply::Garbage => {
            let chance = Chance::new(u64::from(question.id)).of(&question.name);
            let noise = (0..12).flat_map(|n| chance.at(n).bits().to_be_bytes());
            vec![question.id.to_be_bytes().into_iter().chain(noise).collect()]
        }
        Reply::Nothing => Vec::new(),
    }
}

/// The row whose host lends its address to names that are not there.
pub(crate) fn hijacks(behaviour: &crate::behaviour::Behaviour) -> bool {
    behaviour.as_hostile().is_some_and(|hostile| hostile.row == Row::Dns && hostile.whole() == "hijack")
}
