//! Between the three processes: frames over a stream, and connections handed over with a datagram.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketFlags, SocketType,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, Interest};
use tokio::net::UnixStream;

use crate::limits::FRAME_BYTES_MAX;
use crate::message::{Fetched, How};

/// What the owner allows the other two processes; the first frame that each gets.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Setup {
    /// How requests name us.
    pub user_agent: String,
    /// Private and special addresses are the owner's to allow.
    pub allow_private: bool,
    /// Addresses given by hand.
    pub resolve: Vec<String>,
    /// Name servers to ask.
    pub name_servers: Vec<std::net::SocketAddr>,
    /// Source address of connections.
    pub from: Option<IpAddr>,
    /// Further authorities to trust.
    pub roots_pem: Option<Vec<u8>>,
    /// A rate is bounded: the system's buffers are kept small.
    pub paced: bool,
    /// Memory of the fetcher.
    pub memory_bytes: u64,
    /// A table that says where addresses are.
    pub networks: Option<std::path::PathBuf>,
    /// Countries in it to which no connection is made.
    pub avoid: Vec<crate::trust::Place>,
}

/// What main tells the fetcher.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Order {
    /// Fetch this.
    Fetch(Errand),
    /// The connection with this host is not needed any more.
    Close {
        /// `scheme://name:port`.
        origin: String,
    },
    /// So many bytes may be read.
    Grant {
        /// How many; 0: none for long.
        bytes: u64,
    },
    /// Try what must not be possible, and say what happened.
    Try,
}

/// One URL to fetch.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Errand {
    /// By which the answer is known.
    pub ticket: u32,
    /// Its place in the bundle.
    pub number: u16,
    /// The URL.
    pub url: String,
    /// To be sent as `If-None-Match`.
    pub etag: Option<Vec<u8>>,
    /// To be sent as `If-Modified-Since`.
    pub last_modified: Option<Vec<u8>>,
    /// It is cut off after so long.
    pub most_ms: u32,
    /// How it is told.
    pub how: How,
    /// It is a robots.txt: which of these URLs does it allow?
    pub decide: Option<Vec<String>>,
}

/// What the fetcher tells main.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Told {
    /// It is locked in; how well, in words.
    Ready(Vec<String>),
    /// What came of an errand.
    Fetched(Box<Answered>),
    /// It wants to read.
    Want {
        /// How many bytes.
        bytes: u64,
    },
    /// What it tried: name, whether it was possible, what the system said.
    Tried(Vec<(String, bool, String)>),
}

/// What came of an errand.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Answered {
    /// Of which.
    pub ticket: u32,
    /// The line for the node.
    pub fetched: Fetched,
    /// The exchange, as it will be packed if the node wants it; empty where nothing came.
    #[serde(with = "crate::message::blob")]
    pub whole: Vec<u8>,
    /// Bytes that went over the line beside those that were granted, about: the request, and what it takes to agree on keys.
    pub beside_bytes: u64,
    /// What it cost, in milliseconds of the processor.
    pub cpu_ms: u64,
    /// The site, as politeness counts.
    pub site: String,
    /// The host is in trouble, or wants to be left alone: nothing more is asked of it.
    pub stop: bool,
    /// Where a robots.txt redirects to.
    pub redirect: Option<String>,
    /// What a robots.txt allows of the URLs asked about.
    pub rules: Option<Ruled>,
    /// An address or port that the owner's rules refuse.
    pub refused: bool,
}

/// What a robots.txt says about a bundle.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Ruled {
    /// One for each URL asked about.
    pub allowed: Vec<bool>,
    /// `Crawl-delay`.
    pub crawl_delay_ms: Option<u64>,
}

/// Sends a frame: its length, then what [`postcard`] makes of it.
pub async fn send<W: AsyncWrite + Unpin, T: Serialize>(to: &mut W, value: &T) -> io::Result<()> {
    // One frame, one write: whoever waits for it wakes up once.
    let mut bytes = postcard::to_extend(value, vec![0; 4]).map_err(io::Error::other)?;
    let length = u32::try_from(bytes.len() - 4).map_err(io::Error::other)?;
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    to.write_all(&bytes).await?;
    to.flush().await
}

/// A side that frames come from: its length and what follows, or many small ones, at one look.
pub fn gathered<R: AsyncRead>(from: R) -> BufReader<R> {
    BufReader::with_capacity(GATHERED_BYTES, from)
}

const GATHERED_BYTES: usize = 64 << 10;

/// The next frame; `None` when the other side is gone.
pub async fn receive<R: AsyncRead + Unpin, T: DeserializeOwned>(from: &mut R) -> io::Result<Option<T>> {
    let mut length = [0; 4];
    match from.read_exact(&mut length).await {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let length = u32::from_le_bytes(length) as usize;
    if length > FRAME_BYTES_MAX {
        return Err(io::Error::other("a frame longer than any"));
    }
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes).await?;
    postcard::from_bytes(&bytes).map(Some).map_err(io::Error::other)
}

/// The standard input of this process, as the stream that it is.
pub fn standard_input() -> io::Result<UnixStream> {
    stream(rustix::io::dup(rustix::stdio::stdin())?)
}

/// The standard output of this process, as the socket that it is.
pub fn standard_output() -> io::Result<OwnedFd> {
    Ok(rustix::io::dup(rustix::stdio::stdout())?)
}

/// A stream over a socket that is one.
pub fn stream(socket: OwnedFd) -> io::Result<UnixStream> {
    let socket = std::os::unix::net::UnixStream::from(socket);
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket)
}

/// Two ends of a socket that keeps messages apart.
pub fn packets() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// One end of it.
pub struct Packets {
    socket: UnixStream,
}

/// A packet is at most so long.
const PACKET_BYTES_MAX: usize = 16 << 10;

impl Packets {
    /// Over this socket.
    pub fn new(socket: OwnedFd) -> io::Result<Packets> {
        Ok(Packets { socket: stream(socket)? })
    }

    /// Sends a message, with a connection if there is one.
    pub async fn send<T: Serialize>(&self, value: &T, with: Option<&OwnedFd>) -> io::Result<()> {
        let bytes = postcard::to_stdvec(value).map_err(io::Error::other)?;
        if bytes.len() > PACKET_BYTES_MAX {
            return Err(io::Error::other("a packet longer than any"));
        }
        let sending = self.socket.async_io(Interest::WRITABLE, || {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            let given = with.map(|fd| [fd.as_fd()]);
            if let Some(given) = &given {
                control.push(SendAncillaryMessage::ScmRights(given));
            }
            let parts = [IoSlice::new(&bytes)];
            Ok(rustix::net::sendmsg(&self.socket, &parts, &mut control, SendFlags::NOSIGNAL)?)
        });
        sending.await.map(drop)
    }

    /// The next message, with the connection that came with it; `None` when the other side is gone.
    pub async fn receive<T: DeserializeOwned>(&self) -> io::Result<Option<(T, Option<OwnedFd>)>> {
        let mut bytes = vec![0; PACKET_BYTES_MAX];
        let receiving = self.socket.async_io(Interest::READABLE, || {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let mut parts = [IoSliceMut::new(&mut bytes)];
            let read = rustix::net::recvmsg(&self.socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC)?.bytes;
            let mut given = None;
            for message in control.drain() {
                if let RecvAncillaryMessage::ScmRights(mut sockets) = message {
                    given = sockets.next();
                }
            }
            Ok((read, given))
        });
        match receiving.await? {
            (0, _) => Ok(None),
            (read, given) => {
                let value = postcard::from_bytes(&bytes[..read]).map_err(io::Error::other)?;
                Ok(Some((value, given)))
            }
        }
    }
}
