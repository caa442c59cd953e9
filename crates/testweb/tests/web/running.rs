//! The control server: what can be asked and set while the web runs.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use skep_testweb::{Entry, HostPlan, Map, Plan, Proof, Report, Robots, Settings, Shape, Time, Web};

use crate::client::{Client, Response, serve_with};

fn web() -> Web {
    let plan = Plan::new(1)
        .host(HostPlan::generated("a.one.test", Shape::pages(30)))
        .host(HostPlan::generated("a.two.test", Shape::pages(30)).robots(Robots::Careful));
    serve_with(plan, Settings { clock: Some(skep_testweb::Clock::still(Time::BEGIN)), ..Settings::default() })
}

fn control(web: &Web) -> Client {
    let address: SocketAddr = web.map().control["http://".len()..].trim_end_matches('/').parse().unwrap();
    Client::plain(address)
}

fn post(client: &mut Client, path: &str, body: &str) -> Response {
    client.write(format!("POST {path} HTTP/1.1\r\nHost: c\r\nContent-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
    client.receive(false).unwrap()
}

#[test]
fn the_same_answers_as_the_library() {
    let web = web();
    let mut client = control(&web);
    let map: Map = serde_json::from_slice(&client.get("c", "/map", &[]).body).unwrap();
    assert_eq!(&map, web.map());
    assert_eq!(client.get("c", "/authority.pem", &[]).text(), web.authority_pem());

    let truth = client.get("c", "/truth?host=a.two.test&at=2020-03-01", &[]).text();
    let entries: Vec<Entry> = truth.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let host = web.world().host("a.two.test").unwrap();
    let known: Vec<Entry> = host.truth("2020-03-01".parse().unwrap()).map(|entry| entry.unwrap()).collect();
    assert_eq!(entries.len(), known.len());
    assert!(entries.iter().zip(&known).all(|(a, b)| a.url == b.url && a.digest == b.digest));
    let all = client.get("c", "/truth", &[]).text();
    assert!(all.lines().count() > entries.len());
    let entry: Entry = serde_json::from_slice(&client.get("c", "/entry?url=http%3A//a.one.test/", &[]).body).unwrap();
    assert_eq!(entry.url, "http://a.one.test/");

    Client::plain(web.address("a.one.test").unwrap()).get("a.one.test", "/", &[]);
    let report: Report = serde_json::from_slice(&client.get("c", "/audit", &[]).body).unwrap();
    assert_eq!((report.requests, report.offences.len()), (1, 1), "the control server is not audited");
    assert!(client.get("c", "/audit.txt", &[]).text().contains("robots-unasked"));
    assert_eq!(client.get("c", "/requests", &[]).text().lines().count(), 1);
}

#[test]
fn clock_behaviours_and_policy_are_set() {
    let web = web();
    let mut client = control(&web);
    assert!(client.get("c", "/clock", &[]).text().contains("2020-01-01T00:00:00Z"));
    let set = post(&mut client, "/clock?to=2021-06-01T00:00:00Z&speed=0", "");
    assert!(set.text().contains("2021-06-01T00:00:00Z"), "{}", set.text());
    assert_eq!(web.now(), "2021-06-01".parse().unwrap());

    let refuse = r#"{"trouble": {"refuse": {"status": 503, "retry_after_seconds": 9, "one_in": 1}}}"#;
    assert_eq!(post(&mut client, "/behaviour?host=a.one.test", refuse).status, 200);
    let seen = Client::plain(web.address("a.one.test").unwrap()).get("a.one.test", "/", &[]);
    assert_eq!((seen.status, seen.header("retry-after")), (503, Some("9")));
    assert_eq!(post(&mut client, "/behaviour?host=a.one.test", "").status, 200);
    let seen = Client::plain(web.address("a.one.test").unwrap()).get("a.one.test", "/", &[]);
    assert_eq!(seen.status, 200);

    assert_eq!(post(&mut client, "/audit", r#"{"site_gap_ms": 5}"#).status, 200);
    let report: Report = serde_json::from_slice(&client.get("c", "/audit", &[]).body).unwrap();
    assert_eq!(report.requests, 0);
}

#[test]
fn wrong_questions_are_explained() {
    let web = web();
    let mut client = control(&web);
    for (path, told) in [
        ("/truth?at=yesterday", "is no time"),
        ("/truth?host=b.test", "there is no host"),
        ("/entry?url=http://b.test/", "of no host"),
        ("/entry", "of no host"),
        ("/nothing", "GET / lists"),
    ] {
        let seen = client.get("c", path, &[]);
        assert_eq!(seen.status, 400, "{path}");
        assert!(seen.text().contains(told), "{path}: {}", seen.text());
    }
    for (path, body, told) in [
        ("/clock?speed=fast", "", "no number"),
        ("/behaviour?host=b.test", "", "there is no host"),
        ("/behaviour?host=a.one.test", "{\"delay_ms\": 99999999999}", "at most"),
        ("/behaviour?host=a.one.test", "{\"wrong\": 1}", "unknown field"),
        ("/audit", "[", "EOF"),
    ] {
        let seen = post(&mut client, path, body);
        assert_eq!(seen.status, 400, "{path} {body}");
        assert!(seen.text().contains(told), "{path}: {}", seen.text());
    }
}

#[test]
fn rows_and_proofs_are_told_and_forgotten() {
    let web = web();
    let mut client = control(&web);
    let rows: serde_json::Value = serde_json::from_slice(&client.get("c", "/rows", &[]).body).unwrap();
    assert_eq!(rows.as_array().unwrap().len(), 48);
    assert_eq!((&rows[0]["name"], &rows[47]["number"]), (&"maze".into(), &48.into()));
    let behaviour = r#"{"trouble": {"hostile": {"row": "bombs", "bytes": 1000000}}}"#;
    assert_eq!(post(&mut client, "/behaviour?host=a.one.test", behaviour).status, 200);
    let bomb = Client::plain(web.address("a.one.test").unwrap()).get("a.one.test", "/bombs/gzip", &[]);
    let mut proof = Proof { under_way: 1, ..Proof::default() };
    while proof.under_way > 0 {
        proof = serde_json::from_slice(&client.get("c", "/proofs?host=a.one.test", &[]).body).unwrap();
    }
    assert_eq!((proof.deeds, proof.forms["gzip"]), (1, 1));
    assert!(proof.bytes > bomb.body.len() as u64);
    let all: BTreeMap<String, Proof> = serde_json::from_slice(&client.get("c", "/proofs", &[]).body).unwrap();
    assert_eq!(all["a.one.test"], web.proof("a.one.test").unwrap());
    assert!(all.contains_key("*"));
    assert_eq!(client.get("c", "/proofs?host=x", &[]).status, 400);
    post(&mut client, "/proofs", "");
    assert_eq!(web.proof("a.one.test").unwrap().deeds, 0);
    let refused = post(&mut client, "/behaviour?host=*", r#"{"trouble": {"hostile": {"row": "peers"}}}"#);
    assert!(refused.text().contains("nothing a server can do"), "{}", refused.text());
}
