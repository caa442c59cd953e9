//! Servers that are not ours, each with a folder of its own, without root: PostgreSQL on a socket in that folder, NATS with JetStream on a
//! port that it chose. They can be stopped hard and started again where they were. `cargo xtask bench postgres` takes this file in, too.
#![allow(dead_code, missing_docs, reason = "each program takes what it needs")]

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// How long a server may take to come up.
const UP_MAX: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(20);

/// A PostgreSQL server with one database.
pub struct Postgres {
    programs: PathBuf,
    folder: tempfile::TempDir,
    settings: Vec<String>,
    child: Option<Child>,
}

/// Files that a server has to show who it is.
pub struct Shown {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// A port that nobody has at the moment.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    listener.local_addr().expect("an address").port()
}

impl Postgres {
    /// One that speaks TLS on a port of this machine. Says how it is reached by name.
    pub fn start_secure(shown: &Shown) -> (Postgres, String) {
        let keys = tempfile::Builder::new().prefix("pgkeys").tempdir_in("/tmp").expect("a folder").keep();
        let own = |from: &Path, name: &str| {
            let path = keys.join(name);
            std::fs::copy(from, &path).expect("a copy");
            std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("its own");
            if let Some((user, group)) = unprivileged() {
                std::os::unix::fs::chown(&path, Some(user), Some(group)).expect("its own");
                std::os::unix::fs::chown(&keys, Some(user), Some(group)).expect("its own");
            }
            path.display().to_string()
        };
        let (certificate, key) = (own(&shown.certificate, "certificate.pem"), own(&shown.key, "key.pem"));
        let port = free_port();
        let settings = [
            "fsync=off".to_owned(),
            "listen_addresses=127.0.0.1".to_owned(),
            format!("port={port}"),
            "ssl=on".to_owned(),
            format!("ssl_cert_file={certificate}"),
            format!("ssl_key_file={key}"),
        ];
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        let server = Postgres::start(&settings);
        let _read_at_its_start = std::fs::remove_dir_all(&keys);
        (server, format!("postgresql://skep@localhost:{port}/postgres?sslmode=require"))
    }

    pub fn start(settings: &[&str]) -> Postgres {
        let folder = tempfile::Builder::new().prefix("pg").tempdir_in("/tmp").expect("a folder");
        let programs = programs();
        let mut postgres = Postgres {
            programs,
            folder,
            settings: settings.iter().map(|&text| text.to_owned()).collect(),
            child: None,
        };
        if let Some((user, group)) = unprivileged() {
            std::os::unix::fs::chown(postgres.folder.path(), Some(user), Some(group)).expect("a folder of its own");
        }
        let data = postgres.data();
        let mut initdb = postgres.program("initdb");
        initdb
            .args(["--auth", "trust", "--username", "skep", "--no-sync", "--encoding", "UTF8", "--locale", "C", "-D"])
            .arg(data);
        succeeds(&mut initdb);
        postgres.up();
        postgres
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// PostgreSQL refuses to be run by root.
    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        command.current_dir(self.folder.path()).stdin(Stdio::null());
        if let Some((user, group)) = unprivileged() {
            command.uid(user).gid(group);
        }
        command
    }

    /// Starts it again.
    pub fn up(&mut self) {
        let log =
            std::fs::File::options().create(true).append(true).open(self.folder.path().join("log")).expect("a log");
        let mut server = self.program("postgres");
        server.arg("-D").arg(self.data()).arg("-k").arg(self.folder.path());
        server.args(["-c", "listen_addresses=", "-c", "max_connections=20"]);
        for setting in &self.settings {
            server.args(["-c", setting]);
        }
        self.child = Some(server.stdout(Stdio::null()).stderr(log).spawn().expect("postgres starts"));
        let until = Instant::now() + UP_MAX;
        while !self.psql("SELECT 1").status.success() {
            assert!(
                Instant::now() < until,
                "{}",
                std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
            );
            std::thread::sleep(LOOK);
        }
    }

    /// Ends it at once: connections break, what was not committed is gone.
    pub fn kill(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        // SIGQUIT is its word for leaving everything as it is; its children go with it.
        let _gone = Command::new("kill").args(["-QUIT", &child.id().to_string()]).status();
        let _code = child.wait();
    }

    pub fn url(&self) -> String {
        format!("postgresql://skep@{}/postgres", self.folder.path().display().to_string().replace('/', "%2F"))
    }

    fn psql(&self, statement: &str) -> Output {
        let mut psql = self.program("psql");
        if let Some(port) = self.settings.iter().find_map(|setting| setting.strip_prefix("port=")) {
            psql.args(["-p", port]);
        }
        psql.arg("-h").arg(self.folder.path()).args([
            "-U",
            "skep",
            "-d",
            "postgres",
            "-X",
            "-A",
            "-t",
            "-q",
            "-v",
            "ON_ERROR_STOP=1",
            "-c",
            statement,
        ]);
        psql.output().expect("psql starts")
    }

    /// What a query answers: a line a row, `|` between columns.
    #[track_caller]
    pub fn ask(&self, statement: &str) -> Vec<String> {
        let output = self.psql(statement);
        assert!(output.status.success(), "{statement}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
    }

    #[track_caller]
    pub fn number(&self, statement: &str) -> i64 {
        self.ask(statement)[0].parse().expect("a number")
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Debian has them beside each other, one folder a version; elsewhere they are on the path.
fn programs() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = versions.map(|entry| entry.path().join("bin")).collect();
    found.retain(|folder| folder.join("initdb").is_file());
    found.sort();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let elsewhere = || std::env::split_paths(&path).find(|folder| folder.join("initdb").is_file());
    found.pop().or_else(elsewhere).expect("PostgreSQL is installed: `cargo xtask test` sees to it")
}

/// Whom root lends the server to: the user that Debian made for it, or nobody.
fn unprivileged() -> Option<(u32, u32)> {
    let own = std::fs::metadata("/proc/self").map(|facts| std::os::unix::fs::MetadataExt::uid(&facts)).unwrap_or(0);
    if own != 0 {
        return None;
    }
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let of = |name: &str| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut parts = line.split(':').skip(2);
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    };
    of("postgres").or_else(|| of("nobody")).or(Some((65_534, 65_534)))
}

fn succeeds(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A NATS server with JetStream.
pub struct Nats {
    folder: tempfile::TempDir,
    port: u16,
    shown: Option<Shown>,
    /// Settings that have no flag.
    settings: Option<String>,
    child: Option<Child>,
}

impl Nats {
    pub fn start() -> Nats {
        Nats::made(None, None)
    }

    /// One that lets in nobody but the user of this public key.
    pub fn start_knowing(user: &str) -> Nats {
        Nats::made(None, Some(format!("authorization: {{ users: [ {{ nkey: {user} }} ] }}\n")))
    }

    /// One that speaks nothing but TLS.
    pub fn start_secure(shown: Shown) -> Nats {
        Nats::made(Some(shown), None)
    }

    fn made(shown: Option<Shown>, settings: Option<String>) -> Nats {
        let folder = tempfile::tempdir().expect("a folder");
        let mut nats = Nats { folder, port: 0, shown, settings, child: None };
        nats.up();
        nats
    }

    /// Starts it again, at the same port.
    pub fn up(&mut self) {
        let ports = self.folder.path().join("ports");
        let _old = std::fs::remove_dir_all(&ports);
        std::fs::create_dir(&ports).expect("a folder");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
        let program = folders.map(|folder| folder.join("nats-server")).find(|path| path.is_file());
        let mut server = Command::new(program.expect("nats-server is installed: `cargo xtask test` sees to it"));
        server.args([
            "-js",
            "-a",
            "127.0.0.1",
            "-p",
            &if self.port == 0 { "-1".to_owned() } else { self.port.to_string() },
        ]);
        server.arg("-sd").arg(self.folder.path().join("store")).arg("--ports_file_dir").arg(&ports);
        server.arg("-l").arg(self.folder.path().join("log"));
        if let Some(Shown { certificate, key }) = &self.shown {
            server.arg("--tls").arg("--tlscert").arg(certificate).arg("--tlskey").arg(key);
        }
        if let Some(settings) = &self.settings {
            let path = self.folder.path().join("settings");
            std::fs::write(&path, settings).expect("a file");
            server.arg("-c").arg(path);
        }
        self.child = Some(server.stdin(Stdio::null()).spawn().expect("nats-server starts"));
        let until = Instant::now() + UP_MAX;
        loop {
            let found = port_in(&ports).filter(|port| std::net::TcpStream::connect(("127.0.0.1", *port)).is_ok());
            if let Some(port) = found {
                self.port = port;
                return;
            }
            let log = || std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            assert!(Instant::now() < until, "{}", log());
            std::thread::sleep(LOOK);
        }
    }

    pub fn kill(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        child.kill().expect("it can be killed");
        let _code = child.wait();
    }

    pub fn url(&self) -> String {
        match self.shown {
            Some(_) => format!("tls://localhost:{}", self.port),
            None => format!("nats://127.0.0.1:{}", self.port),
        }
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The server writes what it listens at: `{"nats": ["nats://127.0.0.1:4222"], …}`.
fn port_in(folder: &Path) -> Option<u16> {
    let file = std::fs::read_dir(folder).ok()?.flatten().next()?;
    let told: serde_json::Value = serde_json::from_slice(&std::fs::read(file.path()).ok()?).ok()?;
    let listens = told["nats"].get(0).or(told["tls"].get(0))?;
    listens.as_str()?.rsplit(':').next()?.parse().ok()
}

/// A mail server that puts each mail into a file of its folder: aiosmtpd, from the environment of the peers.
pub struct Mail {
    python: PathBuf,
    folder: tempfile::TempDir,
    port: u16,
    shown: Option<Shown>,
    child: Option<Child>,
}

impl Mail {
    /// `None` with a word about it where there is no such environment.
    pub fn start() -> Option<Mail> {
        Mail::showing(None)
    }

    /// One that speaks nothing but TLS.
    pub fn start_secure(shown: Shown) -> Option<Mail> {
        Mail::showing(Some(shown))
    }

    fn showing(shown: Option<Shown>) -> Option<Mail> {
        let Some(python) = std::env::var_os("SKEP_PYTHON").map(PathBuf::from) else {
            eprintln!("third-party checks not run: SKEP_PYTHON is not set");
            return None;
        };
        let folder = tempfile::tempdir().expect("a folder");
        let mut mail = Mail { python, folder, port: 0, shown, child: None };
        mail.up();
        Some(mail)
    }

    pub fn up(&mut self) {
        // The tests of other packages use it, too.
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../changes/tests/python/mailbox.py");
        let mut server = Command::new(&self.python);
        server.arg(script).arg(self.folder.path()).arg(self.port.to_string());
        if let Some(Shown { certificate, key }) = &self.shown {
            server.arg(certificate).arg(key);
        }
        let mut child = server.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("the mail server starts");
        // Its first line is its port.
        let (mut line, mut byte) = (String::new(), [0]);
        let out = child.stdout.as_mut().expect("its output");
        while out.read(&mut byte).expect("it talks") == 1 && byte[0] != b'\n' {
            line.push(char::from(byte[0]));
        }
        self.port = line.parse().unwrap_or_else(|_| panic!("the mail server said {line:?}"));
        self.child = Some(child);
    }

    pub fn kill(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        child.kill().expect("it can be killed");
        let _code = child.wait();
    }

    pub fn url(&self) -> String {
        match self.shown {
            Some(_) => format!("smtps://localhost:{}", self.port),
            None => format!("smtp://127.0.0.1:{}", self.port),
        }
    }

    /// The mails it has, as the script tells them: one object each.
    pub fn mails(&self) -> Vec<serde_json::Value> {
        let read = |entry: std::io::Result<std::fs::DirEntry>| {
            let path = entry.expect("a file").path();
            let whole = path.extension().is_some_and(|ending| ending == "json");
            whole.then(|| serde_json::from_slice(&std::fs::read(path).expect("a mail")).expect("JSON"))
        };
        std::fs::read_dir(self.folder.path()).expect("the folder").filter_map(read).collect()
    }
}

impl Drop for Mail {
    fn drop(&mut self) {
        self.kill();
    }
}
