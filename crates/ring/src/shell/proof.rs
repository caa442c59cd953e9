//! Whose a site is: a file on its host says so. Only the node that leads the site asks it, however many are told of a wish: many nodes hurry
//! no site.

use serde::{Deserialize, Serialize};
use skep_url::Url;

use super::Shell;
use super::question::Question;
use crate::limits::PROOF_BYTES_MAX;

/// What came of the look for such a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Proof {
    /// It is there and says so.
    Proven,
    /// The site cannot be asked now, and why.
    Later(String),
    /// It does not say so, and why.
    No(String),
}

impl Shell {
    /// Has the node that leads a site look.
    pub fn proof(&self, host: &str) -> Proof {
        let Some(slice) = self.slice_of_host(host) else { return Proof::No(format!("{host} is no host.")) };
        match self.leader(slice) {
            Some(leader) if leader == self.key => self.work.prove(host),
            Some(leader) => {
                let asked = self.ask(leader, &Question::Proof { host: host.to_owned() }, PROOF_BYTES_MAX);
                asked.unwrap_or_else(|why| Proof::Later(format!("The node that visits {host} cannot say: {why}.")))
            }
            None => Proof::Later(format!("No node visits {host} at the moment.")),
        }
    }

    /// Looks for another node, where this one leads.
    pub(super) fn prove_here(&self, host: &str) -> Proof {
        match self.slice_of_host(host) {
            Some(slice) if self.leads(slice) => self.work.prove(host),
            Some(_) => Proof::Later(format!("Another node visits {host} since a moment ago.")),
            None => Proof::No(format!("{host} is no host.")),
        }
    }

    fn slice_of_host(&self, host: &str) -> Option<crate::genesis::Slice> {
        let url = Url::parse(&format!("http://{host}/")).ok().filter(|url| url.host_name() == host)?;
        Some(self.slice_of(url.key().site_hash()))
    }
}
