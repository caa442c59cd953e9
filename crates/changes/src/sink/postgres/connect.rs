//! A connection to PostgreSQL. What `sslmode` says is obeyed; certificates are checked wherever there are any, and a server on this
//! machine need not have one.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, NoTls, TlsConnect, TlsStream};
use tokio_postgres::{Client, Config};
use tokio_rustls::TlsConnector;

use super::super::tls;
use crate::limits::POSTGRES_CONNECT_MS_MAX;

/// Connects, or says why not.
pub async fn connect(url: &str) -> Result<Client, String> {
    let mut config: Config = url.parse().map_err(|error: tokio_postgres::Error| said(&error))?;
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(Duration::from_millis(POSTGRES_CONNECT_MS_MAX));
    }
    if config.get_application_name().is_none() {
        config.application_name("skep");
    }
    let own = |host: &Host| match host {
        Host::Tcp(name) => name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback()),
        Host::Unix(_) => true,
    };
    let plain = match config.get_ssl_mode() {
        SslMode::Disable => true,
        SslMode::Prefer => config.get_hosts().iter().all(own),
        _ => false,
    };
    // The connection works on the thread of its sink, and ends with the client.
    if plain {
        let (client, connection) = config.connect(NoTls).await.map_err(|error| said(&error))?;
        tokio::spawn(connection);
        return Ok(client);
    }
    let (client, connection) = config.connect(Rustls(tls::config()?)).await.map_err(|error| {
        format!(
            "{}; the certificate is checked by the system's roots or SSL_CERT_FILE, sslmode=disable does without",
            said(&error)
        )
    })?;
    tokio::spawn(connection);
    Ok(client)
}

/// An error with its causes.
pub fn said(error: &tokio_postgres::Error) -> String {
    if let Some(told) = error.as_db_error() {
        return told.message().to_owned();
    }
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(deeper) = cause {
        let more = deeper.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = deeper.source();
    }
    text
}

#[derive(Clone)]
struct Rustls(Arc<ClientConfig>);

struct Connect {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

struct Stream<S>(tokio_rustls::client::TlsStream<S>);

impl<S> MakeTlsConnect<S> for Rustls
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Stream<S>;
    type TlsConnect = Connect;
    type Error = rustls::pki_types::InvalidDnsNameError;

    fn make_tls_connect(&mut self, domain: &str) -> Result<Connect, Self::Error> {
        Ok(Connect { config: self.0.clone(), name: ServerName::try_from(domain.to_owned())? })
    }
}

impl<S> TlsConnect<S> for Connect
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Stream<S>;
    type Error = std::io::Error;
    type Future = Pin<Box<dyn Future<Output = std::io::Result<Stream<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move { TlsConnector::from(self.config).connect(self.name, stream).await.map(Stream) })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Stream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Stream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Stream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
