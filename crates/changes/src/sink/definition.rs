//! What a sink is: `settings/sinks/NAME.toml`, readable by its owner alone, because passwords stand in it.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use skep_archive::Archive;
use skep_archive::settings;
use skep_page::compare::{Class, Classes};

use super::template::Template;
use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::limits::{SINK_NAME_BYTES_MAX, SINKS_MAX};

const VERSION: u32 = 1;
/// Whoever may read this file may write to the sinks.
pub(super) const MODE: u32 = 0o600;

/// A sink as people decided it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Definition {
    version: u32,
    /// Where the events go.
    #[serde(flatten)]
    pub kind: Kind,
    /// Which of them.
    #[serde(default)]
    pub wanted: Wanted,
}

/// Where events go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Kind {
    /// To an HTTP address.
    Webhook {
        /// The address.
        url: String,
        /// What is sent.
        #[serde(default)]
        template: Template,
        /// By which what is sent is signed: `whsec_` and base64.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        secret: Option<String>,
        /// Sent as `Authorization: Bearer`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<String>,
    },
    /// To mailboxes.
    Smtp {
        /// The server: `smtp://user:password@host:587?tls=required`, `smtps://…`.
        url: String,
        /// From whom.
        from: String,
        /// To whom.
        to: Vec<String>,
        /// At most one mail in so many milliseconds.
        every_ms: u64,
    },
    /// To a stream of NATS.
    Nats {
        /// The server: `nats://host:4222`.
        url: String,
        /// The stream, which is made where there is none.
        stream: String,
        /// What subjects begin with; the type of the event follows.
        subject: String,
        /// By which the server knows us.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<String>,
        /// The seed of a key by which the server knows us: what it asks is signed, and the seed never leaves this machine.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        nkey: Option<String>,
    },
    /// To tables of PostgreSQL.
    Postgres {
        /// The database: `postgresql://user:password@host/database`.
        url: String,
        /// The schema in which the tables are; by default wherever the connection looks first.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        schema: Option<String>,
    },
}

/// Which events a sink wants.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Wanted {
    /// Of this host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Of URLs that begin like this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Of these classes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub class: Vec<String>,
    /// In which at least this share of the words changed, in ten thousandths.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub min_change: u16,
    /// Of this media type; `image/*` for all of a kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime: Option<String>,
    /// Of pages that were visited for this crawl or watch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch: Option<String>,
}

fn is_zero(number: &u16) -> bool {
    *number == 0
}

impl Wanted {
    /// As a filter of the stream.
    pub fn filter(&self) -> Result<Filter> {
        let mut classes = None;
        for name in &self.class {
            let named = Classes::from_name(name).ok_or_else(|| {
                let all: Vec<&str> = Class::ALL.iter().map(|class| class.name()).collect();
                Error::Sink {
                    what: format!("{name:?} is no class of change"),
                    hint: format!("there are: {}", all.join(", ")),
                }
            })?;
            classes = Some(Classes(classes.map_or(0, |known: Classes| known.0) | named.0));
        }
        let (host, prefix) = (self.host.clone(), self.prefix.clone());
        let (mime, watch) = (self.mime.clone(), self.watch.clone());
        Ok(Filter { host, prefix, classes, share_min: self.min_change, mime, watch, ..Filter::default() })
    }
}

impl Kind {
    /// One word for it.
    pub fn name(&self) -> &'static str {
        match self {
            Kind::Webhook { .. } => "webhook",
            Kind::Smtp { .. } => "smtp",
            Kind::Nats { .. } => "nats",
            Kind::Postgres { .. } => "postgres",
        }
    }

    /// Where it leads, for people: without passwords, and without paths, which are passwords at chat services.
    pub fn target(&self) -> String {
        match self {
            Kind::Webhook { url, template, .. } => format!("{} ({})", without_secrets(url, true), template.name()),
            Kind::Smtp { url, to, .. } => format!("{} for {}", without_secrets(url, true), to.join(", ")),
            Kind::Nats { url, stream, subject, .. } => {
                format!("{} {stream} {subject}.>", without_secrets(url, true))
            }
            Kind::Postgres { url, schema } => {
                let schema = schema.as_ref().map(|schema| format!(" {schema}")).unwrap_or_default();
                format!("{}{schema}", without_secrets(url, false))
            }
        }
    }
}

fn without_secrets(url: &str, cut_path: bool) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return "(not a URL)".to_owned() };
    let rest = match rest.rsplit_once('@') {
        // PostgreSQL takes any sign in a password, also those that end it elsewhere.
        Some((user, host)) if !cut_path => format!("{}@{host}", user.split(':').next().unwrap_or_default()),
        _ => rest.to_owned(),
    };
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (authority, path) = rest.find('/').map_or((rest, ""), |slash| rest.split_at(slash));
    let authority = match authority.rsplit_once('@') {
        Some((user, host)) if !cut_path => format!("{}@{host}", user.split(':').next().unwrap_or_default()),
        Some((_, host)) => host.to_owned(),
        None => authority.to_owned(),
    };
    let path = match path {
        "" | "/" => path,
        _ if cut_path => "/…",
        path => path,
    };
    format!("{scheme}://{authority}{path}")
}

/// Names that can be given to a sink: they are names of files.
pub fn check_name(name: &str) -> Result<()> {
    let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    if name.is_empty() || name.len() > SINK_NAME_BYTES_MAX || !name.bytes().all(fits) {
        return Err(Error::Sink {
            what: format!("{name:?} cannot name a sink"),
            hint: format!("up to {SINK_NAME_BYTES_MAX} small letters, digits and dashes"),
        });
    }
    Ok(())
}

pub(super) fn folder(archive: &Archive) -> PathBuf {
    archive.layout().settings().join("sinks")
}

impl Definition {
    /// A sink.
    pub fn new(kind: Kind, wanted: Wanted) -> Definition {
        Definition { version: VERSION, kind, wanted }
    }

    fn path(folder: &Path, name: &str) -> PathBuf {
        folder.join(format!("{name}.toml"))
    }

    /// The sink of this name; `None` if there is none.
    pub fn load(archive: &Archive, name: &str) -> Result<Option<Definition>> {
        check_name(name)?;
        Ok(settings::load(&Definition::path(&folder(archive), name), VERSION)?)
    }

    /// Whether there is one of this name, whatever it says.
    pub(super) fn is_there(archive: &Archive, name: &str) -> Result<bool> {
        check_name(name)?;
        Ok(Definition::path(&folder(archive), name).is_file())
    }

    /// Every sink, by name, or why it is none: one file that makes no sense is no matter of the others.
    pub fn all(archive: &Archive) -> Vec<(String, Result<Definition>)> {
        let mut names = Vec::new();
        // No folder, no sinks.
        for entry in std::fs::read_dir(folder(archive)).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if let Some(name) = name.strip_suffix(".toml").filter(|name| check_name(name).is_ok()) {
                names.push(name.to_owned());
            }
        }
        names.sort();
        names.truncate(SINKS_MAX);
        let loaded = |name: String| {
            let definition = Definition::load(archive, &name).transpose()?;
            let told = definition.map_err(|error| Error::Sink {
                what: format!("the sink {name} cannot be read: {error}"),
                hint: format!("mend its file and start again, or `skep sink remove {name}`"),
            });
            Some((name, told))
        };
        names.into_iter().filter_map(loaded).collect()
    }

    pub(super) fn store(&self, archive: &Archive, name: &str) -> Result<()> {
        check_name(name)?;
        let folder = folder(archive);
        settings::create_folder(&folder)?;
        Ok(settings::store(&Definition::path(&folder, name), self, MODE)?)
    }

    pub(super) fn remove(archive: &Archive, name: &str) -> Result<()> {
        let path = Definition::path(&folder(archive), name);
        std::fs::remove_file(&path).map_err(|error| skep_archive::Error::io("cannot remove", &path, error))?;
        Ok(settings::sync_folder_of(&path)?)
    }

    /// Which events it wants. A database is a copy of all that is known, unless somebody said otherwise.
    pub(super) fn filter(&self) -> Result<Filter> {
        let mut filter = self.wanted.filter()?;
        if filter.classes.is_none() && matches!(self.kind, Kind::Postgres { .. }) {
            filter.classes = Classes::from_name("all");
        }
        Ok(filter)
    }

    /// Whether an event that takes another back is of use there. A person cannot unread a mail.
    pub(super) fn takes_back(&self) -> bool {
        match &self.kind {
            Kind::Webhook { template, .. } => *template == Template::Json,
            Kind::Smtp { .. } => false,
            Kind::Nats { .. } | Kind::Postgres { .. } => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_reads_back_and_shows_no_secret() {
        let kinds = [
            Kind::Webhook {
                url: "https://hooks.example/services/SECRET?k=SECRET".into(),
                template: Template::Slack,
                secret: Some("whsec_SECRET".into()),
                token: Some("SECRET".into()),
            },
            Kind::Smtp {
                url: "smtps://me:SECRET@mail.example:465/?x=SECRET".into(),
                from: "a@example.org".into(),
                to: vec!["b@example.org".into()],
                every_ms: 5,
            },
            Kind::Nats {
                url: "nats://u:SECRET@n:1".into(),
                stream: "S".into(),
                subject: "s".into(),
                token: None,
                nkey: Some("SUSECRET".into()),
            },
            Kind::Postgres { url: "postgresql://me:SECRET@db:5432/skep?password=SECRET".into(), schema: None },
        ];
        for kind in kinds {
            let wanted = Wanted {
                host: Some("h".into()),
                class: vec!["text".into()],
                min_change: 7,
                mime: Some("text/*".into()),
                ..Wanted::default()
            };
            let made = Definition::new(kind, wanted);
            let text = toml::to_string(&made).unwrap();
            assert_eq!(toml::from_str::<Definition>(&text).unwrap(), made, "{text}");
            assert!(!made.kind.target().contains("SECRET"), "{}", made.kind.target());
        }
        assert_eq!(without_secrets("postgresql://me:x@db/skep", false), "postgresql://me@db/skep");
        for secret in ["p/w", "p?w", "p#w", "p@w"] {
            let shown = without_secrets(&format!("postgresql://me:{secret}@db/skep?sslmode=require"), false);
            assert_eq!(shown, "postgresql://me@db/skep", "{secret}");
        }
    }

    #[test]
    fn names_are_names_of_files() {
        for good in ["a", "chat-2", "postgres"] {
            check_name(good).unwrap();
        }
        for wrong in ["", "A", "a/b", "..", "a.toml", "ä", &"x".repeat(SINK_NAME_BYTES_MAX + 1)] {
            assert_eq!(check_name(wrong).unwrap_err().id(), "sink", "{wrong}");
        }
    }
}
