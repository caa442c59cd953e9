//! A client that keeps its connection and notices when an answer is not whole.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

/// What has not come by then does not.
const PATIENCE: Duration = Duration::from_secs(60);

/// One connection to the portal, made again where the portal ended it between two answers.
pub struct Client {
    address: String,
    stream: Option<BufReader<TcpStream>>,
}

/// An answer.
pub struct Got {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Got {
    pub fn header(&self, name: &str) -> Option<&str> {
        let field = |line: &'_ str| line.split_once(':').map(|(found, _)| found.eq_ignore_ascii_case(name));
        let line = self.head.lines().skip(1).find(|line| field(line) == Some(true))?;
        line.split_once(':').map(|(_, value)| value.trim())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Client {
    pub fn of(address: &str) -> Client {
        Client { address: address.to_owned(), stream: None }
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    /// Asks the portal, by its own name or another, and reads the answer to its end; an error says what was not whole.
    pub fn get(&mut self, host: Option<&str>, target: &str, more: &str) -> Result<Got, String> {
        let host = host.unwrap_or(&self.address).to_owned();
        let request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n");
        let fresh = self.stream.is_none();
        match self.exchange(&request) {
            // A connection that was at rest may have been ended meanwhile.
            Err(Broken::Unanswered(_)) if !fresh => self.exchange(&request),
            other => other,
        }
        .map_err(|broken| {
            self.stream = None;
            match broken {
                Broken::Unanswered(why) => format!("no answer to {target}: {why}"),
                Broken::Torn(why) => format!("the answer to {target} broke off: {why}"),
            }
        })
    }

    fn exchange(&mut self, request: &str) -> Result<Got, Broken> {
        let unanswered = |error: std::io::Error| Broken::Unanswered(error.to_string());
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => {
                let stream = TcpStream::connect(&self.address).map_err(unanswered)?;
                stream.set_read_timeout(Some(PATIENCE)).and_then(|()| stream.set_nodelay(true)).map_err(unanswered)?;
                BufReader::new(stream)
            }
        };
        stream.get_mut().write_all(request.as_bytes()).map_err(unanswered)?;
        let mut first = String::new();
        if stream.read_line(&mut first).map_err(unanswered)? == 0 {
            return Err(Broken::Unanswered("the connection ended".into()));
        }
        let got = read(first, &mut stream).map_err(|error| Broken::Torn(error.to_string()))?;
        if !got.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close")) {
            self.stream = Some(stream);
        }
        Ok(got)
    }
}

enum Broken {
    Unanswered(String),
    Torn(String),
}

fn read(first: String, stream: &mut impl BufRead) -> std::io::Result<Got> {
    let odd = |what: &str| std::io::Error::other(what.to_owned());
    let mut head = first;
    loop {
        let begun = head.len();
        if stream.read_line(&mut head)? == 0 {
            return Err(odd("within its head"));
        }
        if head[begun..].trim().is_empty() {
            break;
        }
    }
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(|| odd("no status"))?;
    let mut got = Got { status, head, body: Vec::new() };
    if let Some(length) = got.header("content-length") {
        let length: usize = length.parse().map_err(|_| odd("no length"))?;
        got.body.resize(length, 0);
        stream.read_exact(&mut got.body)?;
    } else if got.header("transfer-encoding").is_some() {
        loop {
            let mut size = String::new();
            stream.read_line(&mut size)?;
            let size = usize::from_str_radix(size.trim(), 16).map_err(|_| odd("no size of a chunk"))?;
            let begun = got.body.len();
            got.body.resize(begun + size, 0);
            stream.read_exact(&mut got.body[begun..])?;
            let mut end = [0; 2];
            stream.read_exact(&mut end)?;
            if size == 0 {
                break;
            }
        }
    } else if !matches!(got.status, 204 | 304) {
        return Err(odd("neither a length nor chunks"));
    }
    Ok(got)
}
