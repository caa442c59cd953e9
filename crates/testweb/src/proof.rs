//! What the web itself knows of its misdeeds: the server's side of the evidence, host by host.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

/// What a host did to its visitors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// Connections over which it was asked anything, or a TLS handshake was begun with it.
    pub connections: u64,
    /// Requests, also for what it answered as it should.
    pub requests: u64,
    /// Answers and handshakes in which it misbehaved.
    pub deeds: u64,
    /// Bytes sent in them, as far as the other side took them: bodies of lawful answers, everything of others.
    pub bytes: u64,
    /// Time that they took, in all. Those under way count when they are over.
    pub held_ms: u64,
    /// Those under way.
    pub under_way: u64,
    /// Those that the visitor broke off.
    pub given_up: u64,
    /// How often in each form, and how often a visitor did what it should not, by the names the table gives.
    pub forms: BTreeMap<String, u64>,
    /// Answers of the name server about the host, by form; `a` and `aaaa` for honest ones.
    pub dns: BTreeMap<String, u64>,
}

/// The name under which deeds of the web as a whole are kept.
pub const WEB: &str = "*";

/// All proofs of a web.
#[derive(Default)]
pub(crate) struct Proofs(Mutex<BTreeMap<String, Proof>>);

impl Proofs {
    /// Proofs for these hosts, and for the web as a whole.
    pub fn new<'h>(hosts: impl Iterator<Item = &'h str>) -> Proofs {
        let all = hosts.chain([WEB]).map(|name| (name.to_string(), Proof::default()));
        Proofs(Mutex::new(all.collect()))
    }

    /// All of them.
    pub fn all(&self) -> BTreeMap<String, Proof> {
        self.lock().clone()
    }

    /// That of one host.
    pub fn of(&self, host: &str) -> Option<Proof> {
        self.lock().get(host).cloned()
    }

    /// Everything is forgotten, but for what is under way.
    pub fn clear(&self) {
        for proof in self.lock().values_mut() {
            *proof = Proof { under_way: proof.under_way, ..Proof::default() };
        }
    }

    /// Changes the proof of a host, if there is such a host.
    pub fn note(&self, host: &str, change: impl FnOnce(&mut Proof)) {
        if let Some(proof) = self.lock().get_mut(host) {
            change(proof);
        }
    }

    /// A misdeed begins.
    pub fn begin(&self, host: &str, form: &str) {
        self.note(host, |proof| {
            proof.deeds += 1;
            proof.under_way += 1;
            *proof.forms.entry(form.to_string()).or_default() += 1;
        });
    }

    /// A misdeed is over.
    pub fn end(&self, host: &str, held_ms: u64, given_up: bool) {
        self.note(host, |proof| {
            proof.under_way = proof.under_way.saturating_sub(1);
            proof.held_ms += held_ms;
            proof.given_up += u64::from(given_up);
        });
    }

    /// Something that is only counted.
    pub fn count(&self, host: &str, form: &str) {
        self.note(host, |proof| *proof.forms.entry(form.to_string()).or_default() += 1);
    }

    /// An answer of the name server.
    pub fn named(&self, host: &str, form: &str) {
        self.note(host, |proof| *proof.dns.entry(form.to_string()).or_default() += 1);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Proof>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
