//! What its owner says to a contributor that runs, and sees of it: a socket in its folder, and a page on this machine.

use std::io;
use std::net::SocketAddr;
use std::os::unix::net::UnixListener as StdListener;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, UnixListener};

use crate::contributor::Main;

const SOCKET: &str = "control";
/// A contributor runs at the lowest priority: where there is much else to do its answer takes a while.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// Listens in the folder; one contributor at a time has it.
pub fn listen(folder: &Path) -> Result<StdListener, String> {
    let path = folder.join(SOCKET);
    if std::os::unix::net::UnixStream::connect(&path).is_ok() {
        return Err(format!("a contributor runs in {} already; --dir names another folder", folder.display()));
    }
    let _nobody_is_there = std::fs::remove_file(&path);
    let listener = StdListener::bind(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    listener.set_nonblocking(true).map_err(|error| error.to_string())?;
    Ok(listener)
}

/// It is gone.
pub fn gone(folder: &Path) {
    let _gone_already = std::fs::remove_file(folder.join(SOCKET));
}

/// Says a word to the contributor that runs in a folder, and hears how it stands.
pub fn say(folder: &Path, word: &str) -> io::Result<Value> {
    use std::io::{BufRead, Write};
    let mut stream = std::os::unix::net::UnixStream::connect(folder.join(SOCKET))?;
    stream.set_read_timeout(Some(ANSWER_MAX))?;
    stream.write_all(format!("{word}\n").as_bytes())?;
    let mut line = String::new();
    std::io::BufReader::new(stream).read_line(&mut line)?;
    serde_json::from_str(&line).map_err(io::Error::other)
}

pub(crate) async fn serve(socket: StdListener, main: Rc<Main>) {
    let Ok(listener) = UnixListener::from_std(socket) else { return };
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let main = main.clone();
        tokio::task::spawn_local(async move {
            let (read, mut write) = stream.into_split();
            let mut line = String::new();
            let mut read = BufReader::new(read.take(256));
            let _said_nothing = tokio::time::timeout(Duration::from_secs(5), read.read_line(&mut line)).await;
            let answer = match line.trim() {
                "try" => serde_json::json!({ "tried": main.try_sandbox().await }),
                word => main.hear(word),
            };
            let _left = write.write_all(format!("{answer}\n").as_bytes()).await;
        });
    }
}

/// A page about it, on this machine only; says where.
pub(crate) async fn page(address: SocketAddr, main: &Rc<Main>) -> Option<SocketAddr> {
    if !address.ip().is_loopback() {
        main.note(format!("no page: {address} is not on this machine"));
        return None;
    }
    let listener = match TcpListener::bind(address).await {
        Ok(listener) => listener,
        Err(error) => {
            main.note(format!("no page at {address}: {error}"));
            return None;
        }
    };
    let at = listener.local_addr().ok();
    let main = main.clone();
    tokio::task::spawn_local(async move {
        loop {
            let Ok((mut stream, _)) = listener.accept().await else {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let main = main.clone();
            tokio::task::spawn_local(async move {
                let mut request = vec![0; 2_048];
                let read = tokio::time::timeout(Duration::from_secs(5), stream.read(&mut request)).await;
                let Ok(Ok(read)) = read else { return };
                let request = String::from_utf8_lossy(&request[..read]).into_owned();
                let answer = answer(&request, &main.status());
                let _left = stream.write_all(answer.as_bytes()).await;
            });
        }
    });
    at
}

fn answer(request: &str, status: &Value) -> String {
    let with = |code: &str, mime: &str, body: String| {
        format!(
            "HTTP/1.1 {code}\r\nContent-Type: {mime}; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\
             Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'\r\nCache-Control: no-store\r\n\r\n{body}",
            body.len()
        )
    };
    let host = request.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("host:").map(str::to_owned));
    let host = host.unwrap_or_default();
    let name = host.trim().rsplit_once(':').map_or(host.trim(), |(name, _)| name);
    // A name that leads here from elsewhere is somebody's trick.
    if !matches!(name, "localhost" | "127.0.0.1" | "[::1]") {
        return with("421 Misdirected Request", "text/plain", "This page is for this machine.\n".into());
    }
    match request.split(' ').nth(1) {
        Some("/") => with("200 OK", "text/html", html(status)),
        Some("/status") => with("200 OK", "application/json", status.to_string()),
        _ => with("404 Not Found", "text/plain", "There is / and /status.\n".into()),
    }
}

fn escaped(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn html(status: &Value) -> String {
    let row = |name: &str, field: &str| format!("<tr><th>{name}</th><td>{}</td></tr>", escaped(&status[field]));
    let list = |field: &str, show: &dyn Fn(&Value) -> String| -> String {
        status[field].as_array().into_iter().flatten().map(|item| format!("<li>{}</li>", show(item))).collect()
    };
    let rows: String = [
        ("node", "node"),
        ("known there as", "name"),
        ("state", "state"),
        ("why not more", "why-not-more"),
        ("pages fetched", "pages"),
        ("bundles returned", "bundles-returned"),
        ("connections now", "connections"),
        ("bytes ever", "bytes"),
        ("bytes this month", "month-bytes"),
        ("bytes on disk", "disk-bytes"),
    ]
    .iter()
    .map(|(name, field)| row(name, field))
    .collect();
    let doing = |item: &Value| format!("{}: {}", escaped(&item["host"]), escaped(&item["doing"]));
    format!(
        "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"2\">\
         <title>skep contribute</title><style>body{{font:16px sans-serif;max-width:60em;margin:2em auto;padding:0 1em}}\
         th{{text-align:left;padding-right:2em}}</style></head><body><h1>Lending bandwidth</h1><table>{rows}</table>\
         <h2>In hand</h2><ul>{}</ul><h2>Sandbox</h2><ul>{}</ul><h2>Lately</h2><ul>{}</ul></body></html>\n",
        list("in-hand", &doing),
        list("sandbox", &escaped),
        list("lately", &escaped)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_for_this_machine_and_shows_what_hosts_are_called_harmlessly() {
        let status = serde_json::json!({ "node": "https://n.test/", "in-hand": [{ "host": "<b>", "doing": "x" }] });
        let ask = |host: &str, path: &str| answer(&format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"), &status);
        assert!(ask("127.0.0.1:7077", "/").contains("&lt;b&gt;: x"));
        assert!(ask("localhost:7077", "/status").contains("https://n.test/"));
        assert!(ask("evil.example:7077", "/").starts_with("HTTP/1.1 421"));
        assert!(ask("localhost", "/other").starts_with("HTTP/1.1 404"));
    }
}
