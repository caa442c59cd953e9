//! What the doctor says about this machine, and about name servers made on the spot.

mod site;

use serde_json::Value;
use site::Site;
use std::net::{SocketAddr, UdpSocket};

/// What a name server answers.
#[derive(Clone, Copy, PartialEq)]
enum Manner {
    /// As it should.
    Honest,
    /// With an address, whatever the name.
    MakesUp,
    /// With "server failure".
    Fails,
}

/// A name server that lives as long as the test.
fn name_server(manner: Manner) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let address = socket.local_addr().expect("an address");
    std::thread::spawn(move || {
        let mut datagram = [0; 512];
        while let Ok((length, asker)) = socket.recv_from(&mut datagram) {
            let question = &datagram[..length];
            let impossible = question.windows(8).any(|part| part == b"\x07invalid");
            let (code, answers) = match manner {
                Manner::Fails => (2, 0),
                Manner::Honest if impossible => (3, 0),
                _ => (0, 1),
            };
            let mut answer = question.to_vec();
            (answer[2], answer[3], answer[7]) = (0x81, 0x80 | code, answers);
            if answers > 0 {
                // The name as in the question, A, IN, an hour, four bytes.
                answer.extend(b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x0e\x10\x00\x04\xc0\x00\x02\x07");
            }
            let _asker_left = socket.send_to(&answer, asker);
        }
    });
    address
}

fn examined(site: &Site, server: SocketAddr) -> (i32, Vec<Value>, String) {
    let ran = site.skep(&["doctor", "--json", "--dns", &server.to_string()]).exits_below(2);
    (ran.code, ran.json(), ran.talk)
}

fn about<'f>(findings: &'f [Value], what: &str) -> &'f Value {
    findings
        .iter()
        .find(|finding| finding["what"] == what)
        .unwrap_or_else(|| panic!("nothing about {what}: {findings:?}"))
}

#[test]
fn everything_is_looked_at_and_every_line_has_a_verdict() {
    let site = Site::new();
    let (code, findings, talk) = examined(&site, name_server(Manner::Honest));
    for what in ["open files", "name server", "clock", "free space", "local ports", "listening here"] {
        let finding = about(&findings, what);
        let verdict = finding["verdict"].as_str().expect("a verdict");
        assert!(["fine", "consider", "change"].contains(&verdict), "{finding}");
        assert_eq!(verdict == "fine", finding["advice"] == "", "{finding}");
    }
    let server = about(&findings, "name server");
    assert!(
        server["verdict"] == "fine" && server["value"].as_str().is_some_and(|v| v.contains("8 of 8 names")),
        "{server}"
    );
    assert_eq!(code == 1, findings.iter().any(|finding| finding["verdict"] == "change"));
    assert_eq!(talk, "");
    assert!(!site.archive().exists(), "to look is not to make");
}

#[test]
fn name_servers_that_lie_or_fail_must_be_changed() {
    let site = Site::new();
    for (manner, text) in [(Manner::MakesUp, "do not exist"), (Manner::Fails, "check the network")] {
        let server = name_server(manner);
        let (code, findings, _) = examined(&site, server);
        let finding = about(&findings, "name server");
        assert_eq!((code, finding["verdict"].as_str()), (1, Some("change")), "{finding}");
        assert!(
            finding["advice"].as_str().is_some_and(|advice| advice.contains(text) && advice.contains("--dns")),
            "{finding}"
        );
        let shown = site.skep(&["doctor", "--dns", &server.to_string()]).exits(1);
        assert!(
            shown.text().contains("change") && shown.talk.contains("name server: "),
            "{}{}",
            shown.text(),
            shown.talk
        );
    }
}

#[test]
fn few_files_are_found_and_the_way_to_more_is_told() {
    let site = Site::new();
    let server = name_server(Manner::Honest);
    let ran = site.shell(&format!("ulimit -n 200; skep doctor --json --dns {server}")).exits(1);
    let findings = ran.json();
    let files = about(&findings, "open files");
    assert!(files["value"] == "200" && files["verdict"] == "change", "{files}");
    assert!(files["advice"].as_str().is_some_and(|advice| advice.contains("ulimit")), "{files}");
}
