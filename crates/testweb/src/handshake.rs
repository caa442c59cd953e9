//! The TLS handshake of a connection, by the name that the visitor asks for.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::server::Acceptor;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;

use crate::hostile::Row;
use crate::hostile::script::{Script, Then};
use crate::limits;
use crate::playing::{self, Ended, Told};
use crate::server::Shared;
use crate::tls::{self, Fault};

/// A fatal alert of TLS 1.0 by its number.
fn alert(description: u8) -> [u8; 7] {
    [0x15, 3, 1, 0, 2, 2, description]
}

/// RFC 8446, section 6: what a server says that knows only versions older than the visitor's.
const PROTOCOL_VERSION: u8 = 70;
/// What a server says that does not know the name.
const UNRECOGNISED_NAME: u8 = 112;
/// Silence, and time between two bytes, unless said otherwise.
const HOLD_MS: u64 = 600_000;
const DRIP_MS: u64 = 10_000;

/// Takes the handshake; `None` when it came to nothing, as it sometimes should. With the stream: the connection is in the
/// proofs already.
pub(crate) async fn take(
    shared: &Arc<Shared>,
    stream: TcpStream,
    stopped: watch::Receiver<bool>,
) -> io::Result<Option<(TlsStream<TcpStream>, bool)>> {
    let patience = Duration::from_millis(limits::REQUEST_HEAD_MS);
    let start = timeout(patience, LazyConfigAcceptor::new(Acceptor::default(), stream)).await??;
    let name = start.client_hello().server_name().unwrap_or_default().to_ascii_lowercase();
    let host = shared.world.host(&name).filter(|host| host.secure()).map(|host| host.plan.name.clone());
    let behaviour = host.as_deref().map(|host| shared.behaviour(host)).unwrap_or_default();
    let (Some(host), Some(hostile)) = (host, behaviour.as_hostile()) else {
        return Ok(Some((timeout(patience, start.into_stream(shared.tls.clone())).await??, false)));
    };
    let form = match (hostile.row, hostile.whole()) {
        (Row::Silent, "handshake") => "handshake",
        (Row::Tls, form) => form,
        _ => return Ok(Some((timeout(patience, start.into_stream(shared.tls.clone())).await??, false))),
    };
    let mut deed = Deed::begin(shared.clone(), &host, form);
    if let Some(fault) = Fault::named(form) {
        let config = tls::settings(shared.authority.clone(), shared.world.clone(), Some(fault));
        let config = config.map_err(io::Error::other)?;
        return Ok(Some((timeout(patience, start.into_stream(config)).await??, true)));
    }
    let mut stream = start.io;
    let nothing = Script { steps: Vec::new(), ..Script::raw(0, "") };
    let script = match form {
        "handshake" => {
            deed.given_up = playing::hold(&mut stream, hostile.ms_or(HOLD_MS), stopped).await == Ended::GivenUp;
            return Ok(None);
        }
        "legacy" => Script::raw(0, alert(PROTOCOL_VERSION).to_vec()),
        "unrecognised" => Script::raw(0, alert(UNRECOGNISED_NAME).to_vec()),
        "clear-text" => Script::raw(400, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
        "closed" => nothing.then(Then::Reset),
        // The beginning of a handshake record that never gets far.
        _ => {
            let record = [&[0x16, 3, 3, 0x3f, 0xff, 2, 0, 0x3f, 0xfb][..], &[0; 16_000]].concat();
            nothing.drip(record, hostile.ms_or(DRIP_MS))
        }
    };
    let (_, ended) = playing::play(stream, &script, &mut deed, stopped).await;
    deed.given_up = ended == Ended::GivenUp;
    Ok(None)
}

/// A handshake that misbehaves, from its beginning in the proofs to its end.
struct Deed {
    shared: Arc<Shared>,
    host: String,
    began: Instant,
    given_up: bool,
}

impl Deed {
    fn begin(shared: Arc<Shared>, host: &str, form: &str) -> Deed {
        shared.proofs.begin(host, form);
        shared.proofs.note(host, |proof| proof.connections += 1);
        Deed { shared, host: host.into(), began: Instant::now(), given_up: false }
    }
}

impl Told for Deed {
    fn sent(&mut self, bytes: usize) {
        self.shared.proofs.note(&self.host, |proof| proof.bytes += bytes as u64);
    }

    fn last(&mut self) {}
}

impl Drop for Deed {
    fn drop(&mut self) {
        let held_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.shared.proofs.end(&self.host, held_ms, self.given_up);
    }
}
