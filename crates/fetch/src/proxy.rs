//! Proxies: CONNECT through HTTP, and SOCKS version 5.
//!
//! ```text
//!   SOCKS5   greeting   05 n methods…                      answer  05 method      (00 none, 02 user and password)
//!            user       01 len user len password           answer  01 00
//!            connect    05 01 00 type address port         answer  05 reply 00 type address port
//!                       type 01 IPv4, 03 name with its length before it, 04 IPv6
//! ```

use std::net::SocketAddr;

use skep_url::Credentials;
use skep_warc::http::{Head, Parsed};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::fault::ProxyFault;
use crate::limits::PROXY_HEAD_BYTES_MAX;

/// Where the proxy shall lead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Destination {
    /// An address that passed the gate.
    Address(SocketAddr),
    /// A name that the proxy resolves.
    Name(String, u16),
}

impl Destination {
    fn authority(&self) -> String {
        match self {
            Destination::Address(address) => address.to_string(),
            Destination::Name(name, port) => format!("{name}:{port}"),
        }
    }
}

fn lost(_: std::io::Error) -> ProxyFault {
    ProxyFault::Protocol
}

/// Asks an HTTP proxy for a tunnel.
pub(crate) async fn tunnel<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    to: &Destination,
    authorization: Option<&str>,
    user_agent: &str,
) -> Result<(), ProxyFault> {
    let authority = to.authority();
    let mut request = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\nUser-Agent: {user_agent}\r\n");
    if let Some(value) = authorization {
        request.push_str(&format!("Proxy-Authorization: {value}\r\n"));
    }
    request.push_str("\r\n");
    stream.write_all(request.as_bytes()).await.map_err(lost)?;
    stream.flush().await.map_err(lost)?;
    // Byte by byte up to the empty line: what follows it belongs to the tunnel.
    let mut bytes = Vec::with_capacity(512);
    while !(bytes.ends_with(b"\r\n\r\n") || bytes.ends_with(b"\n\n")) {
        if bytes.len() >= PROXY_HEAD_BYTES_MAX {
            return Err(ProxyFault::Protocol);
        }
        bytes.push(stream.read_u8().await.map_err(lost)?);
    }
    let mut head = Head::new();
    match (head.parse_response(&bytes, true), head.status()) {
        (Parsed::Complete { .. }, Some(200..300)) => Ok(()),
        (Parsed::Complete { .. }, Some(407)) => Err(ProxyFault::Credentials),
        (Parsed::Complete { .. }, Some(status)) => {
            Err(ProxyFault::Refused(format!("{status} {}", String::from_utf8_lossy(head.reason()).escape_debug())))
        }
        _ => Err(ProxyFault::Protocol),
    }
}

/// Asks a SOCKS5 proxy to connect.
pub(crate) async fn socks5<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    to: &Destination,
    credentials: Option<&Credentials>,
) -> Result<(), ProxyFault> {
    const VERSION: u8 = 5;
    const NONE: u8 = 0;
    const PASSWORD: u8 = 2;
    let greeting: &[u8] = if credentials.is_some() { &[VERSION, 2, NONE, PASSWORD] } else { &[VERSION, 1, NONE] };
    stream.write_all(greeting).await.map_err(lost)?;
    let mut answer = [0; 2];
    stream.read_exact(&mut answer).await.map_err(lost)?;
    match (answer, credentials) {
        ([VERSION, NONE], _) => {}
        ([VERSION, PASSWORD], Some(credentials)) => {
            let mut message = vec![1];
            for part in [&credentials.user, &credentials.password] {
                message.push(u8::try_from(part.len()).map_err(|_| ProxyFault::Credentials)?);
                message.extend_from_slice(part);
            }
            stream.write_all(&message).await.map_err(lost)?;
            stream.read_exact(&mut answer).await.map_err(|_| ProxyFault::Credentials)?;
            if answer[1] != 0 {
                return Err(ProxyFault::Credentials);
            }
        }
        ([VERSION, _], _) => return Err(ProxyFault::Credentials),
        _ => return Err(ProxyFault::Protocol),
    }

    let mut message = vec![VERSION, 1, 0];
    let port = match to {
        Destination::Address(SocketAddr::V4(address)) => {
            message.push(1);
            message.extend_from_slice(&address.ip().octets());
            address.port()
        }
        Destination::Address(SocketAddr::V6(address)) => {
            message.push(4);
            message.extend_from_slice(&address.ip().octets());
            address.port()
        }
        Destination::Name(name, port) => {
            let length =
                u8::try_from(name.len()).map_err(|_| ProxyFault::Refused("the name is too long".to_owned()))?;
            message.extend_from_slice(&[3, length]);
            message.extend_from_slice(name.as_bytes());
            *port
        }
    };
    message.extend_from_slice(&port.to_be_bytes());
    stream.write_all(&message).await.map_err(lost)?;
    let mut head = [0; 4];
    stream.read_exact(&mut head).await.map_err(lost)?;
    if head[0] != VERSION {
        return Err(ProxyFault::Protocol);
    }
    if head[1] != 0 {
        return Err(ProxyFault::Refused(reply(head[1]).to_owned()));
    }
    let bound = match head[3] {
        1 => 4,
        4 => 16,
        3 => usize::from(stream.read_u8().await.map_err(lost)?),
        _ => return Err(ProxyFault::Protocol),
    };
    let mut rest = [0; 255 + 2];
    stream.read_exact(&mut rest[..bound + 2]).await.map_err(lost)?;
    Ok(())
}

fn reply(code: u8) -> &'static str {
    match code {
        1 => "it failed",
        2 => "its rules do not allow it",
        3 => "the network cannot be reached",
        4 => "the host cannot be reached",
        5 => "the connection was refused",
        6 => "it took too long",
        7 => "it does not connect for others",
        8 => "it does not know this kind of address",
        _ => "it gave a reason that is not known",
    }
}
