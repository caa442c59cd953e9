//! HTTPS: certificates by name, verified against the web's authority.

use skep_testweb::{HostPlan, Plan, Scheme, Shape, Web};

use crate::client::{Client, serve};

fn web() -> Web {
    let host = |name: &str, scheme| HostPlan::generated(name, Shape::pages(10)).scheme(scheme);
    serve(
        Plan::new(1)
            .host(host("plain.test", Scheme::Http))
            .host(host("secure.test", Scheme::Https))
            .host(host("www.secure.test", Scheme::Https))
            .host(host("both.test", Scheme::Both)),
    )
}

#[test]
fn each_host_has_its_certificate() {
    let web = web();
    for host in ["secure.test", "www.secure.test", "both.test"] {
        let address = web.address(host).unwrap();
        let page = Client::secure(address, host, web.authority_pem()).unwrap().get(host, "/", &[]);
        let truth = web.world().entry(&format!("https://{host}/"), web.now()).unwrap().unwrap();
        assert_eq!((page.status, page.body.len() as u64), (200, truth.bytes), "{host}");
    }
    assert!(web.requests().iter().all(|request| request.secure));
}

#[test]
fn a_stranger_s_authority_is_not_believed() {
    let (web, other) = (web(), web());
    let address = web.address("secure.test").unwrap();
    assert!(Client::secure(address, "secure.test", other.authority_pem()).is_err());
}

#[test]
fn hosts_without_tls_and_unknown_ones_have_no_certificate() {
    let web = web();
    for host in ["plain.test", "unknown.test"] {
        let address = web.address("plain.test").unwrap();
        assert!(Client::secure(address, host, web.authority_pem()).is_err(), "{host}");
    }
}

#[test]
fn plain_requests_to_a_secure_host_are_redirected() {
    let web = web();
    let seen = Client::plain(web.address("secure.test").unwrap()).get("secure.test", "/news/x?y=1", &[]);
    assert_eq!((seen.status, seen.header("location")), (301, Some("https://secure.test/news/x?y=1")));
    let both = Client::plain(web.address("both.test").unwrap()).get("both.test", "/", &[]);
    assert_eq!(both.status, 200);
}
