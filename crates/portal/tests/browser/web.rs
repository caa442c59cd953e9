//! The live web of the tests, as a proxy: it answers for every host there is, and writes down who asked for what.
#![allow(dead_code, missing_docs, reason = "each program takes what it needs")]

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A file of the web.
#[derive(Clone, Debug)]
pub struct File {
    pub url: String,
    pub media_type: String,
    pub body: Vec<u8>,
}

/// Files out of a text: each begins with `=== URL media-type`.
pub fn files(text: &str) -> Vec<File> {
    let sections = text.split("\n=== ").skip(1);
    sections
        .map(|section| {
            let (head, body) = section.split_once('\n').unwrap();
            let (url, media_type) = head.split_once(' ').unwrap();
            File { url: url.to_owned(), media_type: media_type.to_owned(), body: body.trim_end().as_bytes().to_vec() }
        })
        .collect()
}

/// The proxy; it listens until the test ends.
pub struct Web {
    pub port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Web {
    /// Answers with these files, and with a page that says so for everything else.
    pub fn of(files: &[File]) -> Web {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let files: Arc<HashMap<String, File>> =
            Arc::new(files.iter().map(|file| (file.url.clone(), file.clone())).collect());
        let log = asked.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (files, log) = (files.clone(), log.clone());
                std::thread::spawn(move || answer(stream, &files, &log));
            }
        });
        Web { port, asked }
    }

    /// What was asked for since the last time.
    pub fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

fn answer(stream: TcpStream, files: &HashMap<String, File>, log: &Mutex<Vec<String>>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut stream = stream;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let mut words = line.split(' ');
        let (verb, url) = (words.next()?.to_owned(), words.next()?.to_owned());
        let mut length = 0;
        loop {
            let mut header = String::new();
            reader.read_line(&mut header).ok()?;
            if header.trim().is_empty() {
                break;
            }
            if let Some((name, value)) = header.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().unwrap_or(0);
            }
        }
        std::io::copy(&mut std::io::Read::take(&mut reader, length), &mut std::io::sink()).ok()?;
        log.lock().unwrap().push(format!("{verb} {url}"));
        if verb == "CONNECT" {
            stream.write_all(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").ok()?;
            return None;
        }
        let url = url.split('#').next()?;
        let absent = File {
            url: url.to_owned(),
            media_type: "text/html".to_owned(),
            body: b"<!doctype html><title>Absent</title>absent".to_vec(),
        };
        let (status, file) = files.get(url).map_or(("404 Not Found", &absent), |file| ("200 OK", file));
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {}\r\nContent-Length: {}\r\nAccess-Control-Allow-Origin: *\r\nCache-Control: no-store\r\n\r\n",
            file.media_type,
            file.body.len()
        );
        let body = if verb == "HEAD" { &[] } else { file.body.as_slice() };
        stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body)).ok()?;
    }
}
