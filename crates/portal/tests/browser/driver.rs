//! A browser, driven over the WebDriver protocol: a session of chromedriver, and the few commands that the tests need.
#![allow(dead_code, missing_docs, reason = "each program takes what it needs")]

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The variable that names chromedriver. Without it the browser tests say that they did not run.
pub const VARIABLE: &str = "SKEP_CHROMEDRIVER";

/// What has not come about by then does not.
const PATIENCE: Duration = Duration::from_secs(100);

/// chromedriver and one session in it; both end with this.
pub struct Browser {
    driver: Child,
    port: u16,
    session: String,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// `None`: there is no browser here, which was said. Everything but this machine is asked of the proxy.
    pub fn start(proxy_port: u16) -> Option<Browser> {
        let Some(program) = std::env::var_os(VARIABLE) else {
            eprintln!("browser tests not run: {VARIABLE} is not set");
            return None;
        };
        let mut driver = Command::new(program)
            .args(["--port=0", "--log-level=WARNING"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver starts");
        let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
        let port = loop {
            let line = lines.next().expect("chromedriver says on which port it listens").unwrap();
            if let Some((_, port)) = line.split_once("started successfully on port ") {
                break port.trim_end_matches('.').parse().unwrap();
            }
        };
        // Whoever is not listened to stops when the pipe is full.
        std::thread::spawn(move || lines.for_each(drop));
        let profile = tempfile::tempdir().unwrap();
        let mut browser = Browser { driver, port, session: String::new(), _profile: profile };
        let arguments = [
            "--headless".to_owned(),
            "--no-sandbox".to_owned(),
            "--disable-gpu".to_owned(),
            "--disable-quic".to_owned(),
            "--disable-dev-shm-usage".to_owned(),
            "--no-first-run".to_owned(),
            "--disable-background-networking".to_owned(),
            "--disable-component-update".to_owned(),
            "--disable-default-apps".to_owned(),
            "--disable-extensions".to_owned(),
            "--disable-sync".to_owned(),
            "--disable-features=OptimizationHints,AutofillServerCommunication,MediaRouter,Translate,HttpsUpgrades,HttpsFirstBalancedModeAutoEnable".to_owned(),
            "--window-size=1100,800".to_owned(),
            format!("--proxy-server=http://127.0.0.1:{proxy_port}"),
            format!("--user-data-dir={}", browser._profile.path().display()),
        ];
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "goog:chromeOptions": { "args": arguments },
            "unhandledPromptBehavior": "dismiss",
            "timeouts": { "script": 100_000, "pageLoad": 60_000 },
        } } });
        let made = browser.ask("POST", "/session", &wanted).expect("a session");
        browser.session = made["sessionId"].as_str().expect("a session's name").to_owned();
        Some(browser)
    }

    /// Goes to a page and waits for it.
    pub fn go(&self, url: &str) {
        self.command("url", &json!({ "url": url }));
    }

    /// What a function's body returns, run in the page.
    pub fn run(&self, body: &str) -> Value {
        self.command("execute/sync", &json!({ "script": body, "args": [] }))
    }

    /// The same for a body that calls `done(value)` when it likes.
    pub fn run_until(&self, body: &str) -> Value {
        let script = format!("const done = arguments[arguments.length - 1]; {body}");
        self.command("execute/async", &json!({ "script": script, "args": [] }))
    }

    /// Waits until a condition holds. It is asked again and again: a page that is being left takes what waits in it along.
    pub fn until(&self, condition: &str) {
        if let Err(last) = self.until_within(condition, PATIENCE) {
            panic!("{condition}: {last}");
        }
    }

    /// The same for so long at most; tells what was said last.
    pub fn until_within(&self, condition: &str, patience: Duration) -> Result<(), String> {
        let script = json!({ "script": format!("return Boolean({condition})"), "args": [] });
        let path = format!("/session/{}/execute/sync", self.session);
        let begun = Instant::now();
        loop {
            match self.ask("POST", &path, &script) {
                Ok(Value::Bool(true)) => return Ok(()),
                last if begun.elapsed() >= patience => return Err(format!("{last:?}")),
                _ => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// Waits until the page says that it is ready.
    pub fn ready(&self) {
        self.until("document.documentElement && document.documentElement.hasAttribute('data-done')");
    }

    /// Clicks on what the selector finds, as a person would.
    pub fn click(&self, selector: &str) {
        let found = self.command("element", &json!({ "using": "css selector", "value": selector }));
        let element =
            found.as_object().and_then(|one| one.values().next()).and_then(Value::as_str).expect("an element");
        self.command(&format!("element/{element}/click"), &json!({}));
    }

    /// All that follows happens in the frame that the selector finds; `None`: in the page itself.
    pub fn enter(&self, selector: Option<&str>) {
        let frame = match selector {
            Some(selector) => self.command("element", &json!({ "using": "css selector", "value": selector })),
            None => Value::Null,
        };
        self.command("frame", &json!({ "id": frame }));
    }

    /// A window of this size.
    pub fn resize(&self, width: u32, height: u32) {
        self.command("window/rect", &json!({ "width": width, "height": height }));
    }

    /// Writes what is seen to a file.
    pub fn picture(&self, path: &Path) {
        let text = self.ask("GET", &format!("/session/{}/screenshot", self.session), &Value::Null).expect("a picture");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, from_base64(text.as_str().unwrap())).unwrap();
    }

    fn command(&self, name: &str, body: &Value) -> Value {
        let result = self.ask("POST", &format!("/session/{}/{name}", self.session), body);
        result.unwrap_or_else(|error| panic!("{name} {body}: {error}"))
    }

    fn ask(&self, verb: &str, path: &str, body: &Value) -> Result<Value, String> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).map_err(|error| error.to_string())?;
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        let head = format!(
            "{verb} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            self.port,
            body.len()
        );
        stream
            .write_all(head.as_bytes())
            .and_then(|()| stream.write_all(body.as_bytes()))
            .map_err(|error| error.to_string())?;
        // chromedriver keeps the connection, whatever it is told.
        let mut reader = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).map_err(|error| error.to_string())?;
            if line.trim().is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().map_err(|_| "no length")?;
            }
        }
        let mut answer = vec![0; length];
        reader.read_exact(&mut answer).map_err(|error| error.to_string())?;
        let value: Value = serde_json::from_slice(&answer).map_err(|error| error.to_string())?;
        match value["value"]["error"].as_str() {
            Some(error) => Err(format!("{error}: {}", value["value"]["message"].as_str().unwrap_or_default())),
            None => Ok(value["value"].clone()),
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _closed = self.ask("DELETE", &format!("/session/{}", self.session), &Value::Null);
        let _killed = self.driver.kill();
        let _gone = self.driver.wait();
    }
}

/// Where pictures of pages land.
pub fn pictures() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    target.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target")).join("screenshots")
}

fn from_base64(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() * 3 / 4);
    let (mut bits, mut count) = (0u32, 0);
    for byte in text.bytes() {
        let six = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => continue,
        };
        bits = bits << 6 | u32::from(six);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    out
}
