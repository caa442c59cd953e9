//! What one exchange costs: `cargo run --release -p skep-fetch --example cost -- [exchanges] [body bytes] [sessions]`.
//!
//! A server on loopback answers with a page of that size; the time is that of the client's thread alone, as the kernel counts it.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Instant;

use skep_fetch::{Ask, Dns, Fetcher, Settings};
use skep_url::Url;

fn serve(body_bytes: usize) -> std::io::Result<std::net::SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let head = format!(
        "HTTP/1.1 200 OK\r\nServer: cost\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nContent-Type: text/html; charset=utf-8\r\n\
         Content-Length: {body_bytes}\r\nLast-Modified: Thu, 01 Jan 1970 00:00:00 GMT\r\nConnection: keep-alive\r\n\
         ETag: \"5e4f5a2b-1f40\"\r\nAccept-Ranges: bytes\r\n\r\n"
    );
    let answer = Arc::new([head.as_bytes(), &vec![b'x'; body_bytes]].concat());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let answer = answer.clone();
            std::thread::spawn(move || {
                let _ = stream.set_nodelay(true);
                let mut request = [0; 4096];
                while matches!(stream.read(&mut request), Ok(1..)) && stream.write_all(&answer).is_ok() {}
            });
        }
    });
    Ok(address)
}

/// Nanoseconds that this thread was on a processor.
fn thread_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut numbers = std::env::args().skip(1).map(|word| word.parse::<usize>());
    let exchanges = numbers.next().transpose()?.unwrap_or(100_000);
    let body_bytes = numbers.next().transpose()?.unwrap_or(8_100);
    let sessions = numbers.next().transpose()?.unwrap_or(16).max(1);
    let mut settings = Settings::new("skep-cost/1 (+https://example.org/)");
    settings.allow_private = true;
    settings.resolve = vec![format!("*.test={}", serve(body_bytes)?).parse()?];
    let dns = Arc::new(Dns::new(&settings)?);
    let fetcher = Fetcher::new(Arc::new(settings), dns)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let local = tokio::task::LocalSet::new();
    let (began, before) = (Instant::now(), thread_ns());
    for number in 0..sessions {
        let fetcher = fetcher.clone();
        local.spawn_local(async move {
            let Ok(url) = Url::parse(&format!("http://h{number}.test/some/page/of/the/site.html?id={number}")) else {
                return;
            };
            let mut session = fetcher.session(&url);
            for _ in 0..exchanges / sessions {
                let exchange = session.get(&Ask::new(&url)).await;
                assert!(exchange.fault.is_none() && exchange.body_bytes() == body_bytes as u64);
            }
        });
    }
    runtime.block_on(local);
    let (wall, cpu) = (began.elapsed(), thread_ns() - before);
    let done = (exchanges / sessions * sessions) as f64;
    println!("{done} exchanges of {body_bytes} bytes over {sessions} connections");
    println!(
        "{:.1} µs of processor each, {:.0} exchanges per second",
        cpu as f64 / done / 1000.0,
        done / wall.as_secs_f64()
    );
    Ok(())
}
