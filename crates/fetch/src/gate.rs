//! Which addresses and ports may be connected to. Pure: every socket address passes here just before `connect`.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, PoisonError, RwLock};

use skep_url::address::{self, Class};

use crate::fault::Refusal;

/// The gate in front of every connection.
///
/// A name is judged by nothing but the addresses it has at the moment of connecting, so a name that points elsewhere the
/// second time gains nothing.
#[derive(Debug, Clone)]
pub struct Gate {
    allow_private: bool,
    own: Listening,
}

/// Where this process listens, or has listened; shared by whoever begins to and by those who must not connect there.
#[derive(Debug, Clone, Default)]
pub struct Listening(Arc<RwLock<Vec<SocketAddr>>>);

impl Listening {
    /// From now on here, too. An unspecified address (`0.0.0.0:80`) stands for all of this machine.
    pub fn add(&self, address: SocketAddr) {
        let address = SocketAddr::new(address.ip().to_canonical(), address.port());
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if !all.contains(&address) {
            all.push(address);
        }
    }

    fn any(&self, is: impl Fn(&SocketAddr) -> bool) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).iter().any(is)
    }
}

impl Gate {
    /// A gate. `own`: addresses on which this process listens, refused always.
    pub fn new(allow_private: bool, own: &Listening) -> Gate {
        Gate { allow_private, own: own.clone() }
    }

    /// One that lets everything through that can be connected to.
    pub(crate) fn open() -> Gate {
        Gate::new(true, &Listening::default())
    }

    /// Are private addresses let through?
    pub fn allows_private(&self) -> bool {
        self.allow_private
    }

    /// Lets an address through, or says why not. `private_too`: this host was named as one's own.
    pub(crate) fn admit(&self, target: SocketAddr, private_too: bool) -> Result<Admitted, Refusal> {
        let class = address::class(target.ip());
        let refusal = Refusal { class, own: false };
        if self.is_own(target, None) {
            return Err(Refusal { own: true, ..refusal });
        }
        match class {
            Class::Public => Ok(Admitted(target)),
            // Nobody serves pages there, whatever the network.
            Class::ThisNetwork | Class::Multicast | Class::Broadcast | Class::Discard => Err(refusal),
            _ if self.allow_private || private_too => Ok(Admitted(target)),
            _ => Err(refusal),
        }
    }

    /// Lets the proxy through: the operator named it.
    pub(crate) fn admit_proxy(target: SocketAddr) -> Admitted {
        Admitted(target)
    }

    /// Does this process listen there? `local` is our end of a connection that stands: a connection whose ends have the same
    /// address leads to this machine, whatever names and routes lie between.
    pub(crate) fn is_own(&self, target: SocketAddr, local: Option<IpAddr>) -> bool {
        let ip = target.ip().to_canonical();
        let here = ip.is_loopback() || ip.is_unspecified() || local.map(|l| l.to_canonical()) == Some(ip);
        self.own.any(|own| own.port() == target.port() && (own.ip() == ip || (own.ip().is_unspecified() && here)))
    }
}

/// A socket address that passed the gate. Nothing else can be connected to, and nobody else can make one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Admitted(SocketAddr);

impl Admitted {
    pub fn target(self) -> SocketAddr {
        self.0
    }
}

/// Ports that belong to other protocols, which a request could be made to speak: the list of the Fetch standard, where a
/// browser refuses them, too, and stores that take commands line by line from whoever connects.
pub fn is_bad_port(port: u16) -> bool {
    BAD_PORTS.binary_search(&port).is_ok() || matches!(port, 6379 | 11211)
}

const BAD_PORTS: [u16; 83] = [
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109,
    110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531,
    532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060,
    5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted(gate: &Gate, target: &str) -> Result<(), Class> {
        gate.admit(target.parse().unwrap(), false).map(|_| ()).map_err(|refusal| refusal.class)
    }

    #[test]
    fn only_the_internet_passes() {
        let gate = Gate::new(false, &Listening::default());
        assert_eq!(admitted(&gate, "93.184.216.34:80"), Ok(()));
        assert_eq!(admitted(&gate, "[64:ff9b::8.8.8.8]:80"), Ok(()));
        for (target, class) in [
            ("127.0.0.1:80", Class::Loopback),
            ("10.1.2.3:80", Class::Private),
            ("100.64.0.1:80", Class::Shared),
            ("169.254.169.254:80", Class::Metadata),
            ("[::1]:80", Class::Loopback),
            ("[::ffff:127.0.0.1]:80", Class::Loopback),
            ("[64:ff9b::10.0.0.1]:80", Class::Private),
            ("0.0.0.0:80", Class::ThisNetwork),
        ] {
            assert_eq!(admitted(&gate, target), Err(class), "{target}");
        }
    }

    #[test]
    fn private_networks_pass_when_that_is_meant_and_nobody_is_asked_at_no_address() {
        let gate = Gate::open();
        for target in ["127.0.0.1:80", "10.1.2.3:80", "[::ffff:127.0.0.1]:80", "[fd00::1]:80"] {
            assert_eq!(admitted(&gate, target), Ok(()), "{target}");
        }
        for target in ["0.0.0.0:80", "[::]:80", "224.0.0.1:80", "255.255.255.255:80"] {
            assert!(admitted(&gate, target).is_err(), "{target}");
        }
        assert!(Gate::new(false, &Listening::default()).admit("127.0.0.1:80".parse().unwrap(), true).is_ok());
    }

    #[test]
    fn we_never_ask_ourselves() {
        let own = Listening::default();
        let gate = Gate::new(true, &own);
        assert!(gate.admit("127.0.0.1:8080".parse().unwrap(), true).is_ok());
        // A portal that begins while a crawl runs is not asked either.
        ["127.0.0.1:8080", "0.0.0.0:9090"].iter().for_each(|address| own.add(address.parse().unwrap()));
        let refused = |target: &str| gate.admit(target.parse().unwrap(), true).err().map(|r| r.own);
        assert_eq!(refused("127.0.0.1:8080"), Some(true));
        assert_eq!(refused("[::ffff:127.0.0.1]:8080"), Some(true));
        assert_eq!(refused("127.0.0.2:8080"), None);
        assert_eq!(refused("127.0.0.2:9090"), Some(true));
        assert_eq!(refused("[::1]:9090"), Some(true));
        assert_eq!(refused("10.0.0.7:9090"), None); // not known to be this machine …
        let local = Some("10.0.0.7".parse().unwrap());
        assert!(gate.is_own("10.0.0.7:9090".parse().unwrap(), local)); // … until the connection stands
    }

    #[test]
    fn ports_of_other_protocols() {
        assert!(BAD_PORTS.is_sorted());
        for port in [0, 22, 25, 53, 6000, 6379, 6667, 10080, 11211] {
            assert!(is_bad_port(port), "{port}");
        }
        for port in [80, 443, 8000, 8080, 8443, 65535] {
            assert!(!is_bad_port(port), "{port}");
        }
    }
}
