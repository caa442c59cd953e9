//! Whose a site is: a file on its host says so. Only the node that leads the site asks it, however many are told of a wish: many nodes hurry
//! no site.

use serde::{Deserialize, Serialize};
use skep_url::Url;

use super::question::Question;
use super::{Shell, lock};
use crate::genesis::Slice;
use crate::key::Key;
use crate::limits::PROOF_BYTES_MAX;
use crate::message::PROTOCOL_PROOF;

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
    /// Has the node that leads a site look. Who is believed to lead may have ceased to: then the other holders are asked. While nobody leads,
    /// because nothing is crawled, the one that would lead first looks. Who speaks an older protocol knows nothing of such a file.
    pub fn proof(&self, host: &str) -> Proof {
        let Some(slice) = self.slice_of_host(host) else { return Proof::No(format!("{host} is no host.")) };
        let (mut asked, mut older) = (Vec::new(), None);
        for node in self.leader(slice).into_iter().chain(self.in_order(slice)) {
            if asked.contains(&node) {
                continue;
            }
            asked.push(node);
            if node != self.key && self.spoken(&node).is_none_or(|protocol| protocol < PROTOCOL_PROOF) {
                older = older.or(Some(node));
                continue;
            }
            let proof = match node == self.key {
                true => self.prove_here(host),
                false => self
                    .ask(node, &Question::Proof { host: host.to_owned() }, PROOF_BYTES_MAX)
                    .unwrap_or_else(|why| Proof::Later(format!("The node that visits {host} cannot say: {why}."))),
            };
            if proof != elsewhere(host) {
                return proof;
            }
        }
        Proof::Later(match older {
            Some(node) => format!(
                "Perhaps node {} visits {host}: it runs an older program, which does not know of such files.",
                node.short()
            ),
            None => format!("No node visits {host} at the moment."),
        })
    }

    /// Looks for another node, where this one leads.
    pub(super) fn prove_here(&self, host: &str) -> Proof {
        match self.slice_of_host(host) {
            Some(slice) if self.leads(slice) || self.would_lead(slice) => self.work.prove(host),
            Some(_) => elsewhere(host),
            None => Proof::No(format!("{host} is no host.")),
        }
    }

    /// Nobody leads, as far as this node has granted, and of the holders that are there it comes first. Who is cut off, or may have been
    /// called absent, knows neither: another may lead by now.
    fn would_lead(&self, slice: Slice) -> bool {
        let is_free = {
            let machine = lock(&self.machine);
            machine.node.core.may_act() && self.granted(&machine, slice).is_none()
        };
        is_free && self.in_order(slice).first() == Some(&self.key)
    }

    /// Holders of a slice that are there, this node among them, in the order in which they should lead.
    pub(super) fn in_order(&self, slice: Slice) -> Vec<Key> {
        let machine = lock(&self.machine);
        let view = &machine.node.view;
        let mut holders = view.in_order(slice, &view.holders(slice));
        let there = |node: &Key| view.roster.index(node).is_some_and(|index| view.roster.is_present(index));
        holders.retain(|node| *node == self.key || there(node));
        holders
    }

    fn slice_of_host(&self, host: &str) -> Option<Slice> {
        let url = Url::parse(&format!("http://{host}/")).ok().filter(|url| url.host_name() == host)?;
        Some(self.slice_of(url.key().site_hash()))
    }
}

/// What a node says that does not lead a site.
pub(super) fn elsewhere(host: &str) -> Proof {
    Proof::Later(format!("Another node visits {host} since a moment ago."))
}
