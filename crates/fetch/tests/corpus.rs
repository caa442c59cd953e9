//! Raw answers that nobody here wrote, sent byte for byte: all of them are kept as they were sent.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;

use skep_fetch::{Ask, Dns, Fetcher, Settings};
use skep_url::Url;

#[tokio::test]
async fn broken_answers_are_kept_byte_for_byte() {
    let Some(folder) = std::env::var_os("SKEP_CORPORA") else {
        eprintln!("corpus tests not run: SKEP_CORPORA is not set");
        return;
    };
    let folder = PathBuf::from(folder).join("vectors/http");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "asis"))
        .collect();
    files.sort();
    assert!(files.len() > 100, "{} answers", files.len());

    for path in files {
        let sent = std::fs::read(&path).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let answer = sent.clone();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let (mut request, mut byte) = (Vec::new(), [0]);
            while !request.ends_with(b"\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
                request.push(byte[0]);
            }
            let _ = stream.write_all(&answer);
            let _ = stream.shutdown(Shutdown::Write);
            while matches!(stream.read(&mut byte), Ok(1)) {}
        });
        let mut settings = Settings::new("skep-test/1");
        settings.allow_private = true;
        settings.resolve = vec![format!("a.test={address}").parse().unwrap()];
        let dns = Arc::new(Dns::new(&settings).unwrap());
        let fetcher = Fetcher::new(Arc::new(settings), dns).unwrap();
        let url = Url::parse("http://a.test/").unwrap();
        let exchange = fetcher.session(&url).get(&Ask::new(&url)).await;
        let kept = exchange.response.bytes(0, u64::MAX).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let all = [&exchange.interim[..], &kept].concat();
        assert_eq!(all.len() as u64 + exchange.surplus_bytes, sent.len() as u64, "{name}");
        assert!(sent.starts_with(&all), "{name}");
        assert!(exchange.fault.as_ref().is_none_or(|fault| fault.id() != "closed"), "{name}");
        server.join().unwrap();
    }
}
