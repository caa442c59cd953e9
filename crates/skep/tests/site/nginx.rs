//! A web server that is not ours: nginx with a configuration and a folder of its own, without root, whose log of accesses is the judge of
//! what a crawler asked for. `cargo xtask bench crawl` takes this file in, too.
#![allow(dead_code, missing_docs, reason = "each program takes what it needs")]

use std::io::{self, Error};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// One name and the folder of its files.
pub struct Host<'a> {
    pub name: &'a str,
    pub root: &'a Path,
}

/// One request, as nginx logged it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub host: String,
    pub status: u16,
    pub path: String,
    /// `-` without one.
    pub encoding: String,
    /// `-` without one.
    pub media: String,
}

/// A server that runs until it is stopped or dropped.
#[derive(Debug)]
pub struct Nginx {
    program: PathBuf,
    folder: PathBuf,
    address: SocketAddr,
    child: Option<Child>,
}

impl Nginx {
    /// Serves the hosts on a free port of 127.0.0.1; `folder` is empty and the server's own. With `packed`, files that have a
    /// neighbour `NAME.gz` are sent as that to whoever accepts gzip.
    pub fn start(program: &Path, folder: &Path, hosts: &[Host<'_>], packed: bool) -> io::Result<Nginx> {
        // The socket is opened here and handed down, the way nginx hands its own to a successor: no port can be lost to somebody else in
        // between, and a client may connect before nginx is up.
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        std::fs::write(folder.join("nginx.conf"), configuration(hosts, address, packed))?;
        std::fs::write(folder.join("access.log"), "")?;
        let mut nginx = Nginx { program: program.to_path_buf(), folder: folder.to_path_buf(), address, child: None };
        let child = nginx.command().env("NGINX", "0;").stdin(OwnedFd::from(listener)).spawn();
        let cannot =
            |error: Error| Error::new(error.kind(), format!("{} cannot be started: {error}", program.display()));
        nginx.child = Some(child.map_err(cannot)?);
        nginx.answers()?;
        Ok(nginx)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends it when everything is answered, and tells what was asked for.
    pub fn stop(mut self) -> io::Result<Vec<Line>> {
        self.quit()?;
        let text = std::fs::read_to_string(self.folder.join("access.log"))?;
        let lines: Option<Vec<Line>> = text.lines().filter(|line| !line.starts_with("up ")).map(parse).collect();
        lines.ok_or_else(|| Error::other(format!("a line of the log is not as it was configured: {text}")))
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("-p").arg(&self.folder).arg("-c").arg(self.folder.join("nginx.conf"));
        command.arg("-e").arg(self.folder.join("error.log")).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Returns once it has answered somebody.
    fn answers(&self) -> io::Result<()> {
        use std::io::{Read, Write};
        let mut stream = std::net::TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(std::time::Duration::from_secs(30)))?;
        stream.write_all(b"GET / HTTP/1.0\r\nHost: up\r\n\r\n")?;
        let mut answer = Vec::new();
        if stream.read_to_end(&mut answer).is_err() || !answer.starts_with(b"HTTP/1.1 204 ") {
            let said = std::fs::read_to_string(self.folder.join("error.log")).unwrap_or_default();
            return Err(Error::other(format!("nginx does not answer: {said}")));
        }
        Ok(())
    }

    fn quit(&mut self) -> io::Result<()> {
        let Some(mut child) = self.child.take() else { return Ok(()) };
        let told = self.command().args(["-s", "quit"]).stdin(Stdio::null()).status()?;
        if !told.success() {
            child.kill()?;
        }
        child.wait()?;
        Ok(())
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        if let Err(error) = self.quit() {
            eprintln!("nginx could not be ended: {error}");
        }
    }
}

fn configuration(hosts: &[Host<'_>], address: SocketAddr, packed: bool) -> String {
    // As whoever runs the test; nginx changes only from root to somebody else, and warns if anybody else speaks of it.
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    let user = if is_root { "user root;\n" } else { "" };
    let servers: String = hosts
        .iter()
        .map(|host| {
            format!("  server {{ listen {address}; server_name {}; root '{}'; }}\n", host.name, host.root.display())
        })
        .collect();
    let packed = if packed { "on" } else { "off" };
    format!(
        "{user}daemon off; worker_processes 1; pid nginx.pid; error_log error.log warn;
events {{ worker_connections 1024; }}
http {{
  types {{
    text/html html; text/css css; text/plain txt; text/javascript js; application/json json; image/svg+xml svg; image/png png;
    image/jpeg jpg jpeg; image/gif gif; image/x-icon ico; font/woff woff; font/woff2 woff2; application/pdf pdf;
  }}
  default_type application/octet-stream;
  log_format judge '$host $status $request_uri $sent_http_content_encoding $sent_http_content_type';
  access_log access.log judge;
  client_body_temp_path t; proxy_temp_path t; fastcgi_temp_path t; uwsgi_temp_path t; scgi_temp_path t;
  keepalive_requests 1000000; sendfile on; tcp_nopush on; gzip_static {packed};
  server {{ listen {address} default_server; server_name up; return 204; }}
{servers}}}
"
    )
}

fn parse(line: &str) -> Option<Line> {
    let words: Vec<&str> = line.split(' ').collect();
    let [host, status, path, encoding, media @ ..] = &words[..] else { return None };
    Some(Line {
        host: (*host).to_owned(),
        status: status.parse().ok()?,
        path: (*path).to_owned(),
        encoding: (*encoding).to_owned(),
        media: media.join(" "),
    })
}
