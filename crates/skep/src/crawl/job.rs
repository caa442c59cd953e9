//! A crawl as meant, in a form that can be handed to the process that owns the archive.

use crate::failure::{Failure, Result};
use serde::{Deserialize, Serialize};
use skep_crawl::settings::Settings;
use skep_crawl::{Cookies, Run};
use skep_fetch::HeaderRule;
use skep_schedule::retry::Patience;
use std::net::SocketAddr;

/// A crawl. Nothing in it is relative to where it was typed.
#[derive(Debug, Serialize, Deserialize)]
pub struct Job {
    pub settings: Settings,
    pub fetch: Fetch,
    /// Every visit is told of, not only how it stands.
    pub each: bool,
    /// The archive is to keep the texts of its pages.
    #[serde(default)]
    pub text: bool,
    /// Who fetches besides this machine.
    #[serde(default)]
    pub hands: Hands,
    /// The seeds go to the network of which this archive is a node.
    #[serde(default)]
    pub network: bool,
}

/// Who fetches besides this machine.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Hands {
    /// Contributors do.
    pub contributors: bool,
    /// Nobody but contributors does.
    pub only: bool,
}

/// How it fetches: what is not kept in the archive, because it holds secrets or speaks of this machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Fetch {
    pub resolve: Vec<String>,
    pub name_servers: Vec<SocketAddr>,
    pub proxy: Option<String>,
    pub headers: Vec<Header>,
    pub cookies: String,
    pub roots_pem: Option<String>,
    pub workers: usize,
    pub patience_permille: u32,
    pub limits: skep_fetch::Limits,
}

impl Fetch {
    /// Hosts are where this says, `HOST=ADDR:PORT` each, and everything else is as usual.
    pub fn of(resolve: Vec<String>) -> Fetch {
        Fetch {
            resolve,
            name_servers: Vec::new(),
            proxy: None,
            headers: Vec::new(),
            cookies: String::new(),
            roots_pem: None,
            workers: 1,
            patience_permille: 1_000,
            limits: skep_fetch::Limits::default(),
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Header {
    pub host: Option<String>,
    pub name: String,
    pub value: String,
}

impl From<HeaderRule> for Header {
    fn from(rule: HeaderRule) -> Header {
        Header { host: rule.host, name: rule.name, value: rule.value }
    }
}

/// Where it is written how to slow a crawl down or to stop it.
const PAGE: &str = env!("CARGO_PKG_REPOSITORY");

/// Names the program, the page about it, and whoever runs it.
pub fn user_agent(contact: Option<&str>) -> String {
    let contact = contact.map(|contact| format!("; {contact}")).unwrap_or_default();
    format!("Mozilla/5.0 (compatible; skep/{}; +{PAGE}{contact})", env!("CARGO_PKG_VERSION"))
}

impl Job {
    /// The same, as the crawler wants it.
    pub fn run(&self) -> Result<Run> {
        let wrong = |error: &dyn std::fmt::Display| Failure::new("the crawl cannot be set up").because(error);
        let settings = self.settings.clone();
        let mut fetch = skep_fetch::Settings::new(&user_agent(settings.contact.as_deref()));
        fetch.allow_private = settings.allow_private;
        fetch.private_hosts.clone_from(&settings.private_host);
        fetch.own_hosts.clone_from(&settings.own);
        fetch.name_servers.clone_from(&self.fetch.name_servers);
        for text in &self.fetch.resolve {
            fetch.resolve.push(text.parse().map_err(|error| wrong(&error))?);
        }
        fetch.proxy = self.fetch.proxy.as_deref().map(str::parse).transpose().map_err(|error| wrong(&error))?;
        fetch.headers =
            self.fetch.headers.iter().map(|h| HeaderRule::new(h.host.as_deref(), &h.name, &h.value)).collect();
        fetch.roots_pem = self.fetch.roots_pem.as_ref().map(|pem| pem.as_bytes().to_vec());
        fetch.limits.clone_from(&self.fetch.limits);
        let cookies = Cookies::parse(&self.fetch.cookies)?;
        let patience = Patience { scale_permille: self.fetch.patience_permille, ..Patience::default() };
        Ok(Run {
            settings,
            fetch,
            cookies,
            workers: self.fetch.workers,
            patience,
            watch: false,
            judges: None,
            others: None,
            share: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_agent_names_program_page_and_contact() {
        let agent = user_agent(Some("crawl@example.org"));
        assert!(
            agent.contains("skep/0.") && agent.contains("+https://") && agent.ends_with("; crawl@example.org)"),
            "{agent}"
        );
        assert!(user_agent(None).ends_with(&format!("+{PAGE})")));
    }
}
