//! No name and no spelling leads to an address that was not meant.

use skep_fetch::{Class, Fault, Settings};
use skep_url::Url;
use skep_url::address;

use crate::server::{Server, fault, get};

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

#[tokio::test]
async fn addresses_in_urls() {
    let server = Server::always("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let port = server.address.port();
    for host in
        ["127.0.0.1", "0x7f.1", "2130706433", "127.1", "[::ffff:127.0.0.1]", "localhost", "x.localhost", "localhost."]
    {
        let exchange = get(Settings::new("x"), &url(&format!("http://{host}:{port}/"))).await;
        assert_eq!(exchange.fault, Some(Fault::AddressRefused(address::Class::Loopback)), "{host}");
        assert_eq!(exchange.fault.as_ref().unwrap().class(), Class::Refused);
        assert!(exchange.request.is_empty() && exchange.response.is_empty());
    }
    for (host, class) in [
        ("10.0.0.1", address::Class::Private),
        ("169.254.169.254", address::Class::Metadata),
        ("[64:ff9b::a00:1]", address::Class::Private),
        ("[fe80::1]", address::Class::LinkLocal),
        ("0.0.0.0", address::Class::ThisNetwork),
        ("[::]", address::Class::ThisNetwork),
    ] {
        let exchange = get(Settings::new("x"), &url(&format!("http://{host}:{port}/"))).await;
        assert_eq!(exchange.fault, Some(Fault::AddressRefused(class)), "{host}");
    }
    assert_eq!(server.connections(), 0);

    let mut open = Settings::new("x");
    open.allow_private = true;
    for host in ["127.0.0.1", "localhost", "x.localhost"] {
        assert_eq!(fault(&get(open.clone(), &url(&format!("http://{host}:{port}/"))).await), "", "{host}");
    }
    assert_eq!(fault(&get(open, &url(&format!("http://0.0.0.0:{port}/"))).await), "address-refused");
    assert_eq!(server.connections(), 3);
}

#[tokio::test]
async fn overrides_pass_the_gate_like_any_other_address() {
    let server = Server::always("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let mut settings = server.settings();
    settings.allow_private = false;
    assert_eq!(fault(&get(settings.clone(), &server.url("/")).await), "address-refused");
    settings.own_hosts = vec!["a.test".to_owned()];
    assert_eq!(fault(&get(settings.clone(), &server.url("/")).await), "");
    assert_eq!(fault(&get(settings, &url("http://b.test/")).await), "address-refused");
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn our_own_listeners_are_never_asked() {
    let server = Server::always("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    for own in [server.address, format!("0.0.0.0:{}", server.address.port()).parse().unwrap()] {
        let mut settings = server.settings();
        settings.own_addresses.add(own);
        settings.own_hosts = vec!["a.test".to_owned()];
        let exchange = get(settings, &server.url("/")).await;
        assert_eq!(exchange.fault, Some(Fault::OwnAddress), "{own}");
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn ports_of_other_protocols() {
    let server = Server::always("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let exchange = get(Settings::new("x"), &url("http://example.org:25/")).await;
    assert_eq!(exchange.fault, Some(Fault::PortRefused(25)));
    // An override without a port does not ask for the port either.
    let mut settings = server.settings();
    settings.resolve = vec!["a.test=127.0.0.1".parse().unwrap()];
    assert_eq!(fault(&get(settings, &url("http://a.test:6000/")).await), "port-refused");
    assert_eq!(fault(&get(server.settings(), &url("http://a.test:6000/")).await), "");
}
