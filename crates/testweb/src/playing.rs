//! Plays a script on the stream of a connection that HTTP has let go, until it is over or the peer has had enough.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::server::TlsStream;

use crate::hostile::script::{ENDLESS, Script, Step, Then};
use crate::limits;
use crate::server::told_to_stop;

/// A connection that can be broken off.
pub(crate) trait Peer: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// The connection below everything else.
    fn connection(&self) -> &TcpStream;
}

impl Peer for TcpStream {
    fn connection(&self) -> &TcpStream {
        self
    }
}

impl Peer for TlsStream<TcpStream> {
    fn connection(&self) -> &TcpStream {
        self.get_ref().0
    }
}

/// Told of what goes out.
pub(crate) trait Told {
    /// So many bytes were taken.
    fn sent(&mut self, bytes: usize);
    /// What follows is the last.
    fn last(&mut self);
}

/// How it came to an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// As the script says.
    Played,
    /// The peer left before the end.
    GivenUp,
    /// The web stops.
    Stopped,
}

/// Plays a script. Returns the stream when it is fit for another request.
pub(crate) async fn play<S: Peer>(
    stream: S,
    script: &Script,
    told: &mut impl Told,
    mut stopped: watch::Receiver<bool>,
) -> (Option<S>, Ended) {
    let (mut reading, mut writing) = tokio::io::split(stream);
    let mut more = false;
    let ended = tokio::select! {
        written = write(&mut writing, script, told) => match written {
            Ok(()) => Ended::Played,
            Err(_) => Ended::GivenUp,
        },
        () = peer_leaves(&mut reading, &mut more) => Ended::GivenUp,
        () = told_to_stop(&mut stopped) => Ended::Stopped,
    };
    let mut stream = reading.unsplit(writing);
    match script.then {
        // Bytes that came meanwhile are lost, so what follows them cannot be understood.
        Then::Keep if ended == Ended::Played && !more => return (Some(stream), ended),
        Then::Reset => drop(stream.connection().set_zero_linger()),
        Then::Keep | Then::Close | Then::Hold { .. } => {
            let goodbye = Duration::from_millis(limits::GOODBYE_MS);
            let _ = tokio::time::timeout(goodbye, stream.shutdown()).await;
        }
    }
    (None, ended)
}

async fn write(stream: &mut (impl AsyncWrite + Unpin), script: &Script, told: &mut impl Told) -> io::Result<()> {
    let ends = !matches!(script.then, Then::Hold { .. });
    for (place, step) in script.steps.iter().enumerate() {
        let last = ends && place + 1 == script.steps.len();
        match step {
            Step::Send(bytes) => {
                if last {
                    told.last();
                }
                send(stream, bytes, told).await?;
            }
            Step::Repeat { bytes, times, every_ms } => {
                let mut time = 0;
                while time < *times {
                    time += u64::from(*times != ENDLESS);
                    if last && time == *times {
                        told.last();
                    }
                    send(stream, bytes, told).await?;
                    pause(*every_ms).await;
                }
            }
            Step::Count { before, after, times } => {
                let mut piece = Vec::new();
                for number in 0..*times {
                    piece.extend_from_slice(before);
                    piece.extend_from_slice(number.to_string().as_bytes());
                    piece.extend_from_slice(after);
                    if piece.len() >= limits::FILE_PIECE_BYTES || number + 1 == *times {
                        send(stream, &Bytes::from(std::mem::take(&mut piece)), told).await?;
                    }
                }
            }
            Step::Drip { bytes, every_ms } => {
                for place in 0..bytes.len() {
                    if last && place + 1 == bytes.len() {
                        told.last();
                    }
                    send(stream, &bytes.slice(place..=place), told).await?;
                    pause(*every_ms).await;
                }
            }
        }
    }
    if let Then::Hold { ms } = script.then {
        pause(ms).await;
    }
    Ok(())
}

async fn pause(ms: u64) {
    if ms > 0 {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
}

async fn send(stream: &mut (impl AsyncWrite + Unpin), bytes: &Bytes, told: &mut impl Told) -> io::Result<()> {
    let mut left = &bytes[..];
    while !left.is_empty() {
        let taken = stream.write(left).await?;
        if taken == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        told.sent(taken);
        left = &left[taken..];
    }
    stream.flush().await
}

/// Returns when the peer closes; whatever it says before that is read and forgotten.
async fn peer_leaves(stream: &mut (impl AsyncRead + Unpin), more: &mut bool) {
    let mut piece = [0; 4_096];
    while let Ok(read) = stream.read(&mut piece).await {
        if read == 0 {
            return;
        }
        *more = true;
    }
}

/// Holds a connection open in silence until the peer leaves, the time is over or the web stops.
pub(crate) async fn hold(stream: &mut TcpStream, ms: u64, mut stopped: watch::Receiver<bool>) -> Ended {
    let mut more = false;
    tokio::select! {
        () = peer_leaves(stream, &mut more) => Ended::GivenUp,
        () = pause(ms) => Ended::Played,
        () = told_to_stop(&mut stopped) => Ended::Stopped,
    }
}
