//! Hearts are pure: time, chance and the outside come in as arguments. Which parts are hearts, and what each may not touch,
//! is the table below.

use super::{Finding, Source, lines};
use std::path::Path;

/// What a heart may not reach for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outside {
    Clock,
    Socket,
    Spawn,
    Chance,
}

use Outside::{Chance, Clock, Socket, Spawn};

impl Outside {
    fn names(self) -> &'static [&'static str] {
        match self {
            Clock => &["SystemTime::now", "Instant::now", "Timestamp::now", "Zoned::now", "Utc::now", "Local::now"],
            Socket => &[
                "TcpStream",
                "TcpListener",
                "TcpSocket",
                "UdpSocket",
                "UnixStream",
                "UnixListener",
                "UnixDatagram",
                "ToSocketAddrs",
                "tokio::net",
                "hyper::",
                "lookup_host",
            ],
            Spawn => &[
                "thread::spawn",
                "thread::scope",
                "thread::Builder",
                "thread::sleep",
                "tokio::spawn",
                "spawn_blocking",
                "Command::new",
                "tokio::time",
                "tokio::runtime",
            ],
            Chance => {
                &["thread_rng", "rand::rng", "rand::random", "OsRng", "getrandom::", "from_os_rng", "RandomState::new"]
            }
        }
    }

    fn advice(self) -> &'static str {
        match self {
            Clock => "take the time as an argument",
            Socket => "hand the bytes in; sockets live in the shell",
            Spawn => "return what to do; the shell does it",
            Chance => "take a seed or the bytes as an argument",
        }
    }
}

/// Folders or files, and what stays out of them.
const HEARTS: &[(&str, &[Outside])] = &[
    ("crates/url/src", &[Clock, Socket, Spawn, Chance]),
    ("crates/page/src", &[Clock, Socket, Spawn, Chance]),
    ("crates/schedule/src", &[Clock, Socket, Spawn, Chance]),
    ("crates/ring/src/links.rs", &[Clock, Socket, Spawn, Chance]),
    ("crates/changes/src", &[Clock, Socket, Spawn, Chance]),
    // The ring decides here; what talks to the network stands beside.
    ("crates/ring/src/audit.rs", &[Clock, Socket, Spawn, Chance]),
    ("crates/ring/src/chance.rs", &[Clock, Socket, Spawn, Chance]),
    ("crates/ring/src/copy.rs", &[Clock, Socket, Spawn, Chance]),
    ("crates/ring/src/epoch.rs", &[Clock, Socket, Spawn, Chance]),
    ("crates/ring/src/fact.rs", &[Clock, Socket, Spawn, Chance]),
    ("crates/ring/src/genesis.rs", &[Clock, Socket, Spawn, Chance]),
    ("crates/ring/src/holding", &[Clock, Socket, Spawn, Chance]),
    ("crates/ring/src/holding.rs", &[Clock, Socket, Spawn, Chance]),
    ("crates/ring/src/key.rs", &[Clock, Socket, Spawn, Chance]),
    ("crates/ring/src/lease.rs", &[Clock, Socket, Spawn, Chance]),
    ("crates/ring/src/message.rs", &[Clock, Socket, Spawn, Chance]),
    ("crates/ring/src/node", &[Clock, Socket, Spawn, Chance]),
    ("crates/ring/src/node.rs", &[Clock, Socket, Spawn, Chance]),
    ("crates/ring/src/pace.rs", &[Clock, Socket, Spawn, Chance]),
    ("crates/ring/src/placement.rs", &[Clock, Socket, Spawn, Chance]),
    ("crates/ring/src/relays.rs", &[Clock, Socket, Spawn, Chance]),
    ("crates/ring/src/repair.rs", &[Clock, Socket, Spawn, Chance]),
    ("crates/ring/src/roster.rs", &[Clock, Socket, Spawn, Chance]),
    ("crates/ring/src/settings.rs", &[Clock, Socket, Spawn, Chance]),
    ("crates/ring/src/simulate", &[Clock, Socket, Spawn, Chance]),
    ("crates/ring/src/simulate.rs", &[Clock, Socket, Spawn, Chance]),
    ("crates/ring/src/summary.rs", &[Clock, Socket, Spawn, Chance]),
    ("crates/ring/src/ticket.rs", &[Clock, Socket, Spawn, Chance]),
    ("crates/ring/src/view.rs", &[Clock, Socket, Spawn, Chance]),
    ("crates/ring/src/watch.rs", &[Clock, Socket, Spawn, Chance]),
    ("crates/contribute/src/addresses.rs", &[Clock, Socket, Spawn, Chance]),
    ("crates/contribute/src/columns.rs", &[Clock, Socket, Spawn, Chance]),
    ("crates/contribute/src/dispatch.rs", &[Clock, Socket, Spawn, Chance]),
    ("crates/contribute/src/envelope.rs", &[Clock, Socket, Spawn, Chance]),
    ("crates/contribute/src/follow.rs", &[Clock, Socket, Spawn, Chance]),
    ("crates/contribute/src/known_pages.rs", &[Clock, Socket, Spawn, Chance]),
    ("crates/contribute/src/message.rs", &[Clock, Socket, Spawn, Chance]),
    ("crates/contribute/src/meter.rs", &[Clock, Socket, Spawn, Chance]),
    ("crates/contribute/src/networks.rs", &[Clock, Socket, Spawn, Chance]),
    ("crates/contribute/src/tasks.rs", &[Clock, Socket, Spawn, Chance]),
    ("crates/contribute/src/trust.rs", &[Clock, Socket, Spawn, Chance]),
    // Reads files on several cores, and is otherwise a function of its bytes.
    ("crates/warc/src", &[Clock, Socket]),
];

/// Folders and files inside of hearts that are shells, and what of them is a heart all the same.
const SHELLS: &[(&str, &[&str])] = &[
    ("crates/changes/src/side_by_side.rs", &[]),
    (
        "crates/changes/src/sink",
        &["backoff.rs", "batch.rs", "definition.rs", "sign.rs", "state.rs", "template.rs", "postgres/rows.rs"],
    ),
];

fn is_shell(path: &Path) -> bool {
    SHELLS.iter().any(|(shell, hearts)| {
        path.strip_prefix(shell).is_ok_and(|inside| !hearts.iter().any(|heart| inside == Path::new(heart)))
    })
}

/// Looks for the outside in every heart; a file's own tests may do as they like.
pub fn pure(sources: &[Source]) -> Vec<Finding> {
    let mut found = Vec::new();
    for source in sources.iter().filter(|source| source.ends_with("rs")) {
        for (heart, outside) in HEARTS {
            if !source.path.starts_with(Path::new(heart)) || is_shell(&source.path) {
                continue;
            }
            let split = lines::split(&source.text);
            for line in lines::without_tests(&split) {
                for kind in *outside {
                    if let Some(name) = kind.names().iter().find(|name| line.code.contains(**name)) {
                        let reason = format!("{name} in {heart}, which is pure: {}", kind.advice());
                        found.push(Finding::new(&source.path, line.number, reason));
                    }
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::source;
    use super::*;

    #[test]
    fn a_clock_in_a_heart_is_found_and_one_beside_it_is_not() {
        let text = "// Instant::now is for shells\nlet t = Instant::now();\n";
        assert_eq!(pure(&[source("crates/url/src/a.rs", text)])[0].line, 2);
        assert!(pure(&[source("crates/testweb/src/a.rs", text)]).is_empty());
        assert!(pure(&[source("crates/url/tests/a.rs", text)]).is_empty());
    }

    #[test]
    fn a_shell_inside_a_heart_may_reach_out_and_its_hearts_may_not() {
        let text = "let t = Instant::now();\n";
        assert!(pure(&[source("crates/changes/src/sink/run.rs", text)]).is_empty());
        assert_eq!(pure(&[source("crates/changes/src/sink/backoff.rs", text)]).len(), 1);
        assert_eq!(pure(&[source("crates/changes/src/judge.rs", text)]).len(), 1);
    }

    #[test]
    fn what_is_forbidden_differs_from_heart_to_heart() {
        let text = "std::thread::scope(|s| {});\n";
        assert_eq!(pure(&[source("crates/url/src/a.rs", text)]).len(), 1);
        assert!(pure(&[source("crates/warc/src/a.rs", text)]).is_empty());
    }

    #[test]
    fn a_files_own_tests_may_look_at_the_clock() {
        assert!(pure(&[source("crates/url/src/a.rs", "#[cfg(test)]\nmod tests { Instant::now(); }\n")]).is_empty());
    }
}
