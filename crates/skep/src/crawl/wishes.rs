//! What a crawl is asked to be, as typed: flags and the file of `--config` have the same names and are read into the same fields.
//! [`Wishes::meant`] is the one place where flags, file and what an earlier command left are brought together.

use super::job::{Fetch, Header, Job};
use crate::failure::{Failure, Result};
use crate::{amount, doctor, seeds};
use clap::{Args, ValueEnum};
use serde::{Deserialize, Deserializer};
use skep_crawl::Cookies;
use skep_crawl::settings::{Reach, Settings, SiteSettings, Speed, Type};
use skep_fetch::{HeaderRule, Override, Proxy};
use skep_url::Url;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Flags, and keys of the file.
#[derive(Args, Deserialize, Default)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Wishes {
    /// Where to begin: URLs, hosts (example.org), or files with one of them a line
    #[arg(value_name = "URL|FILE")]
    seeds: Vec<String>,
    /// What the crawl is called; without it, its seeds name it
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// How far it goes: the seeds' hosts, their sites, what is below them, or everything that is linked
    #[arg(long, value_name = "host|site|prefix|all", hide_possible_values = true)]
    scope: Option<Scope>,
    /// Take in what matches, too: URL prefix, *.example.org, or a pattern with stars; may be repeated
    #[arg(long, value_name = "P")]
    include: Vec<String>,
    /// Throw out what matches; may be repeated
    #[arg(long, value_name = "P")]
    exclude: Vec<String>,
    /// Keep only these: html, image, style, script, font, media, document, data, other
    #[arg(long, value_name = "T,T,…", value_delimiter = ',')]
    types: Vec<String>,
    /// So many links from a seed
    #[arg(long, value_name = "N")]
    #[serde(deserialize_with = "word")]
    depth: Option<String>,
    /// At most so many pages
    #[arg(long, value_name = "N")]
    #[serde(deserialize_with = "word")]
    pages: Option<String>,
    /// At most so much, as in 10GB
    #[arg(long, value_name = "SIZE")]
    #[serde(deserialize_with = "word")]
    bytes: Option<String>,
    /// For so long, as in 2h
    #[arg(long, value_name = "DURATION")]
    #[serde(deserialize_with = "word")]
    time: Option<String>,
    /// How fast a site is visited: by the rule, at least so many milliseconds apart, or (own hosts only) as fast as it goes
    #[arg(long, value_name = "polite|MS|none")]
    #[serde(deserialize_with = "word")]
    pace: Option<String>,
    /// Hosts visited at once
    #[arg(long, value_name = "N")]
    concurrency: Option<u32>,
    /// Threads that fetch
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
    /// Cut queries off
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    strip_query: Option<bool>,
    /// Where a host is, whatever name servers say; *.example.test for all below; may be repeated
    #[arg(long, value_name = "HOST=ADDR[:PORT]")]
    resolve: Vec<String>,
    /// A host of yours, on all its ports: any pace; *.example.org for all below; may be repeated
    #[arg(long, value_name = "HOST")]
    own: Vec<String>,
    /// Do not ask for robots.txt on own hosts
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    ignore_robots: Option<bool>,
    /// Visit private addresses, too
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    allow_private: Option<bool>,
    /// A host that may be at a private address, where others may not; *.example.org for all below; may be repeated
    #[arg(long, value_name = "HOST")]
    private_host: Vec<String>,
    /// Whom the owner of a site can write to; goes into the user agent
    #[arg(long, value_name = "URL|MAIL")]
    contact: Option<String>,
    /// Send the cookies of this file, as browsers and wget export them
    #[arg(long, value_name = "FILE")]
    cookies: Option<PathBuf>,
    /// Send this header, 'NAME: VALUE', or to one host only, 'HOST NAME: VALUE'; may be repeated
    #[arg(long, value_name = "H")]
    header: Vec<String>,
    /// Go through a proxy: http://HOST:PORT or socks5://HOST:PORT, with USER:PASSWORD@ if it wants them
    #[arg(long, value_name = "URL")]
    proxy: Option<String>,
    /// Ask these name servers instead of the system's; may be repeated
    #[arg(long, value_name = "ADDR[:PORT]")]
    dns: Vec<String>,
    /// Trust the certificates of this PEM file, too
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// When an unchanged page gets a record again: after 30 days, or always
    #[arg(long, value_name = "monthly|always", hide_possible_values = true)]
    revisit: Option<Revisit>,
    /// Pause while less than this is free on the disk
    #[arg(long, value_name = "SIZE")]
    #[serde(deserialize_with = "word", alias = "reserve-bytes")]
    reserve: Option<String>,
    /// Waits between tries of a failing URL, in thousandths of what is usual
    #[arg(long, value_name = "N", hide = true)]
    patience: Option<u32>,

    // What only a file has: sections, and what the archive's own file of a crawl has, so that a copy of that is understood, too.
    #[arg(skip)]
    site: BTreeMap<String, SiteWishes>,
    #[arg(skip)]
    limits: Option<skep_fetch::Limits>,
    #[arg(skip)]
    time_ms: Option<u64>,
    #[arg(skip)]
    revisit_always: Option<bool>,
    #[arg(skip)]
    version: Option<u32>,
    #[arg(skip)]
    number: Option<u32>,
    #[arg(skip)]
    pass: Option<toml::Value>,
    #[arg(skip)]
    watch: Option<skep_crawl::Watch>,
}

/// A section of the file: what differs for a site or a host.
#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
struct SiteWishes {
    #[serde(deserialize_with = "word")]
    pace: Option<String>,
    #[serde(deserialize_with = "word")]
    pages: Option<String>,
    #[serde(deserialize_with = "word")]
    bytes: Option<String>,
    pause: bool,
    weight_percent: Option<u32>,
}

#[derive(Clone, Copy, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Scope {
    Host,
    Site,
    Prefix,
    All,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Revisit {
    Monthly,
    Always,
}

/// A number or a text: `pages = 100` and `pages = "none"` both mean something.
fn word<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Number(u64),
        Text(String),
    }
    Ok(Some(match Written::deserialize(deserializer)? {
        Written::Number(number) => number.to_string(),
        Written::Text(text) => text,
    }))
}

/// Threads that fetch, if nothing is said: the engine and the disk want a share of the machine, too.
const WORKERS_MAX: usize = 64;
const WORKERS_DEFAULT_MAX: usize = 8;
/// A file of settings, cookies or certificates.
const FILE_BYTES_MAX: u64 = 16 << 20;
const CONTACT_BYTES_MAX: usize = 200;

impl Wishes {
    /// Reads the file of `--config`. Files that it names lie relative to it.
    pub fn load(path: &Path) -> Result<Wishes> {
        let text = read(path)?;
        let mut wishes: Wishes = toml::from_str(&text).map_err(|error| {
            let line = error.span().map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
            Failure::new(format!("line {line} of {} cannot be used", path.display()))
                .because(error.message())
                .hint("keys are named as the flags are, without the dashes: `skep help crawl`")
        })?;
        let folder = path.parent().unwrap_or(Path::new(""));
        for file in [&mut wishes.cookies, &mut wishes.ca].into_iter().flatten() {
            *file = folder.join(&*file);
        }
        for seed in wishes.seeds.iter_mut().filter(|seed| !seed.contains("://")) {
            let beside = folder.join(&*seed);
            if beside.is_file() {
                *seed = beside.display().to_string();
            }
        }
        Ok(wishes)
    }

    /// Nothing says which crawl is meant.
    pub fn is_nameless(&self) -> bool {
        self.name.is_none() && self.seeds.is_empty()
    }

    /// The name that was given.
    pub fn name(&self) -> Option<String> {
        self.name.clone()
    }

    /// The crawl of this name is meant.
    pub fn call(&mut self, name: String) {
        self.name = Some(name);
    }

    /// These wishes, and those of `below` where nothing is said here.
    pub fn over(self, below: Wishes) -> Wishes {
        fn list<T>(above: Vec<T>, below: Vec<T>) -> Vec<T> {
            if above.is_empty() { below } else { above }
        }
        Wishes {
            seeds: list(self.seeds, below.seeds),
            name: self.name.or(below.name),
            scope: self.scope.or(below.scope),
            include: list(self.include, below.include),
            exclude: list(self.exclude, below.exclude),
            types: list(self.types, below.types),
            depth: self.depth.or(below.depth),
            pages: self.pages.or(below.pages),
            bytes: self.bytes.or(below.bytes),
            // Two spellings of one wish: the upper one counts, whichever it is.
            time_ms: if self.time.is_some() { None } else { self.time_ms.or(below.time_ms) },
            time: self.time.or(below.time),
            pace: self.pace.or(below.pace),
            concurrency: self.concurrency.or(below.concurrency),
            workers: self.workers.or(below.workers),
            strip_query: self.strip_query.or(below.strip_query),
            resolve: list(self.resolve, below.resolve),
            own: list(self.own, below.own),
            ignore_robots: self.ignore_robots.or(below.ignore_robots),
            allow_private: self.allow_private.or(below.allow_private),
            private_host: list(self.private_host, below.private_host),
            contact: self.contact.or(below.contact),
            cookies: self.cookies.or(below.cookies),
            header: list(self.header, below.header),
            proxy: self.proxy.or(below.proxy),
            dns: list(self.dns, below.dns),
            ca: self.ca.or(below.ca),
            revisit_always: if self.revisit.is_some() { None } else { self.revisit_always.or(below.revisit_always) },
            revisit: self.revisit.or(below.revisit),
            reserve: self.reserve.or(below.reserve),
            patience: self.patience.or(below.patience),
            site: if self.site.is_empty() { below.site } else { self.site },
            limits: self.limits.or(below.limits),
            version: self.version.or(below.version),
            number: self.number.or(below.number),
            pass: self.pass.or(below.pass),
            watch: self.watch.or(below.watch),
        }
    }

    /// As meant: over what an earlier command left under the same name in `settings_folder`. Every word is read and judged here.
    pub fn meant(self, settings_folder: &Path, each: bool) -> Result<Job> {
        if self.version.is_some_and(|version| version != skep_crawl::settings::VERSION) {
            return Err(Failure::new("this file of settings was written by another version of skep")
                .hint(format!("leave `version` out, or write `version = {}`", skep_crawl::settings::VERSION)));
        }
        let seeds = seeds::read(&self.seeds)?;
        let name = match &self.name {
            Some(name) => name.clone(),
            None if seeds.urls.is_empty() => {
                return Err(Failure::new("a crawl needs a place to begin").hint(
                    "`skep crawl https://example.org/`; `skep crawl --name NAME` goes on with one that has a name",
                ));
            }
            None => Settings::name_of(&seeds.urls),
        };
        let stored = Settings::load(settings_folder, &name).map_err(Failure::from)?;
        if stored.is_none() && seeds.urls.is_empty() {
            return Err(Failure::new(format!(
                "there is no crawl called {name}, and nothing says where it should begin"
            ))
            .hint(format!(
                "`skep crawl https://example.org/ --name {name}` begins it; `skep report` lists those that are there"
            )));
        }
        let mut settings = Settings { name, ..stored.unwrap_or_default() };
        if !seeds.urls.is_empty() {
            settings.seeds = seeds.urls;
        }
        self.change(&mut settings)?;
        settings.check().map_err(|error| explained(error, &settings))?;
        let mut fetch = self.fetch()?;
        let in_clear = in_clear(&fetch.headers, &settings.seeds);
        fetch.headers.extend(in_clear);
        fetch.headers.extend(
            seeds.credentials.iter().map(|(url, credentials)| Header::from(HeaderRule::basic(url, credentials))),
        );
        Ok(Job { settings, fetch, each, text: false, hands: Default::default(), network: false })
    }

    fn change(&self, settings: &mut Settings) -> Result<()> {
        fn set<T>(to: &mut T, wish: Option<T>) {
            if let Some(wish) = wish {
                *to = wish;
            }
        }
        set(&mut settings.scope, self.scope.map(Reach::from));
        set(&mut settings.include, given(&self.include));
        set(&mut settings.exclude, given(&self.exclude));
        set(&mut settings.types, given(&types(&self.types)?));
        set(&mut settings.depth, amount::bound(self.depth.as_deref(), depth)?);
        set(&mut settings.pages, amount::bound(self.pages.as_deref(), amount::count)?);
        set(&mut settings.bytes, amount::bound(self.bytes.as_deref(), amount::bytes)?);
        set(&mut settings.time_ms, self.time_ms.map(Some));
        set(&mut settings.time_ms, amount::bound(self.time.as_deref(), amount::duration_ms)?);
        set(&mut settings.reserve_bytes, amount::bound(self.reserve.as_deref(), amount::bytes)?);
        set(&mut settings.pace, self.pace.as_deref().map(pace).transpose()?);
        set(&mut settings.concurrency, self.concurrency);
        set(&mut settings.strip_query, self.strip_query);
        let hosts =
            |flag: &str, typed: &[String]| typed.iter().map(|host| host_name(flag, host)).collect::<Result<Vec<_>>>();
        set(&mut settings.own, given(&hosts("--own", &self.own)?));
        set(&mut settings.private_host, given(&hosts("--private-host", &self.private_host)?));
        set(&mut settings.ignore_robots, self.ignore_robots);
        set(&mut settings.allow_private, self.allow_private);
        set(&mut settings.contact, self.contact.as_deref().map(contact).transpose()?.map(Some));
        set(&mut settings.revisit_always, self.revisit_always);
        set(&mut settings.revisit_always, self.revisit.map(|revisit| revisit == Revisit::Always));
        if self.watch.is_some() {
            settings.watch.clone_from(&self.watch);
        }
        for (name, site) in &self.site {
            let bound = |typed: &Option<String>, read: fn(&str) -> Result<u64>| amount::bound(typed.as_deref(), read);
            let section = SiteSettings {
                pace: site.pace.as_deref().map(pace).transpose()?,
                pages: bound(&site.pages, amount::count)?.flatten(),
                bytes: bound(&site.bytes, amount::bytes)?.flatten(),
                pause: site.pause,
                weight_percent: site.weight_percent,
            };
            settings.site.insert(name.to_ascii_lowercase(), section);
        }
        Ok(())
    }

    fn fetch(&self) -> Result<Fetch> {
        let wrong =
            |what: &str, error: &dyn std::fmt::Display| Failure::new(format!("{what} cannot be used")).because(error);
        for text in &self.resolve {
            text.parse::<Override>().map_err(|error| wrong("--resolve", &error))?;
        }
        if let Some(proxy) = &self.proxy {
            proxy.parse::<Proxy>().map_err(|error| wrong("--proxy", &error))?;
        }
        let cookies = self.cookies.as_deref().map(read).transpose()?.unwrap_or_default();
        Cookies::parse(&cookies).map_err(|error| {
            wrong("--cookies", &error)
                .hint("export them in the format of Netscape: seven fields a line, separated by tabs")
        })?;
        let roots_pem = self.ca.as_deref().map(read).transpose()?;
        if let (Some(path), Some(pem)) = (&self.ca, &roots_pem)
            && !pem.contains("-----BEGIN CERTIFICATE-----")
        {
            return Err(Failure::new(format!("{} holds no certificate", path.display())).hint(
                "a PEM file has lines -----BEGIN CERTIFICATE-----; `openssl x509 -inform der -in FILE` makes one",
            ));
        }
        let workers = self.workers.unwrap_or_else(|| {
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            cores.min(WORKERS_DEFAULT_MAX)
        });
        if !(1..=WORKERS_MAX).contains(&workers) {
            return Err(
                Failure::new(format!("{workers} workers cannot fetch")).hint(format!("from 1 to {WORKERS_MAX} can"))
            );
        }
        Ok(Fetch {
            resolve: self.resolve.clone(),
            name_servers: self.dns.iter().map(|text| doctor::name_server(text)).collect::<Result<_>>()?,
            proxy: self.proxy.clone(),
            headers: self.header.iter().map(|text| header(text)).collect::<Result<_>>()?,
            cookies,
            roots_pem,
            workers,
            patience_permille: self.patience.unwrap_or(1_000),
            limits: self.limits.clone().unwrap_or_default(),
        })
    }
}

impl From<Scope> for Reach {
    fn from(scope: Scope) -> Reach {
        match scope {
            Scope::Host => Reach::Host,
            Scope::Site => Reach::Site,
            Scope::Prefix => Reach::Prefix,
            Scope::All => Reach::All,
        }
    }
}

fn given<T: Clone>(list: &[T]) -> Option<Vec<T>> {
    (!list.is_empty()).then(|| list.to_vec())
}

/// The refusals that a person meets first say what to type.
fn explained(error: skep_crawl::Error, settings: &Settings) -> Failure {
    let failure = Failure::from(error);
    let host = settings.seeds.first().and_then(|seed| Url::parse(seed).ok()).map(|url| url.host_name().to_owned());
    let host = host.unwrap_or_else(|| "example.org".into());
    match (settings.own.is_empty(), settings.pace, settings.ignore_robots) {
        (true, Speed::None, _) => {
            failure.hint(format!("if {host} is yours, add --own {host}; otherwise leave --pace out"))
        }
        (true, _, true) => failure.hint(format!("if {host} is yours, add --own {host}")),
        _ => failure,
    }
}

fn depth(text: &str) -> Result<u16> {
    let count = amount::count(text)?;
    u16::try_from(count)
        .map_err(|_| Failure::new(format!("nothing is {text} links away")).hint("`--depth none` lifts the bound"))
}

fn pace(text: &str) -> Result<Speed> {
    text.parse().map_err(|why: String| {
        Failure::new(format!("{text:?} is no pace")).because(why).hint("--pace polite, or --pace 2000")
    })
}

fn types(words: &[String]) -> Result<Vec<Type>> {
    const ALL: [(&str, Type); 9] = [
        ("html", Type::Html),
        ("image", Type::Image),
        ("style", Type::Style),
        ("script", Type::Script),
        ("font", Type::Font),
        ("media", Type::Media),
        ("document", Type::Document),
        ("data", Type::Data),
        ("other", Type::Other),
    ];
    let one = |word: &String| {
        ALL.iter().find(|(name, _)| word.trim().eq_ignore_ascii_case(name)).map(|(_, kind)| *kind).ok_or_else(|| {
            Failure::new(format!("{word:?} is no type"))
                .hint(format!("types are {}", ALL.map(|(name, _)| name).join(", ")))
        })
    };
    words.iter().map(one).collect()
}

/// A host of the operator's, by name.
fn host_name(flag: &str, text: &str) -> Result<String> {
    let wrong = |why: &str| {
        let hint = format!("{flag} example.org, for all its ports");
        Failure::new(format!("{flag} {text} names no host")).because(why).hint(hint)
    };
    let (star, name) = text.strip_prefix("*.").map_or(("", text), |name| ("*.", name));
    let url = Url::parse(&format!("http://{name}/")).map_err(|error| wrong(&error.to_string()))?;
    if name.contains(['/', '*', '@', '?', '#']) || name.is_empty() {
        return Err(wrong("it is a host's name, without scheme or path; a star stands before a whole name only"));
    }
    if url.port() != 80 || text.ends_with(":80") {
        return Err(wrong("a host is meant on all its ports; leave the port out"));
    }
    Ok(format!("{star}{}", url.host_name()))
}

/// What goes into the user agent cannot end it.
fn contact(text: &str) -> Result<String> {
    let is_url = Url::parse(text).is_ok();
    let is_mail = text.split_once('@').is_some_and(|(name, host)| !name.is_empty() && host.contains('.'));
    let plain =
        text.bytes().all(|b| b.is_ascii_graphic() && !b"();\"\\".contains(&b)) && text.len() <= CONTACT_BYTES_MAX;
    if plain && (is_url || is_mail) {
        return Ok(text.to_owned());
    }
    Err(Failure::new(format!("{text:?} is no contact"))
        .hint("--contact https://example.org/about-our-crawl or --contact crawl@example.org"))
}

/// Secrets for a host without a scheme go over https; where a seed of that host is plain http, they are meant for that server, too.
fn in_clear(headers: &[Header], seeds: &[String]) -> Vec<Header> {
    let mut more: Vec<Header> = Vec::new();
    for header in headers.iter().filter(|header| header.host.as_ref().is_some_and(|host| !host.contains("://"))) {
        let secure = HeaderRule::new(header.host.as_deref(), &header.name, &header.value);
        for seed in seeds.iter().filter_map(|seed| Url::parse(seed).ok()).filter(|seed| !seed.is_https()) {
            // The same name and port over https: then the rule is about this server.
            let over_https = Url::parse(&skep_fetch::origin(&seed).replacen("http://", "https://", 1));
            let host = Some(skep_fetch::origin(&seed));
            let is_new = more.iter().all(|known| (&known.host, &known.name) != (&host, &header.name));
            if is_new && !secure.matches(&seed) && over_https.is_ok_and(|url| secure.matches(&url)) {
                more.push(Header { host, ..header.clone() });
            }
        }
    }
    more
}

/// `NAME: VALUE` or `HOST NAME: VALUE`.
fn header(text: &str) -> Result<Header> {
    let wrong = |why: &str| {
        Failure::new("--header cannot be used")
            .because(why)
            .hint("--header 'Accept-Language: en' or --header 'example.org Authorization: Bearer KEY'")
    };
    // A host may hold a colon itself, before its port: the name of the header is what stands before the first colon and blank.
    let (host, rest) = match text.split_once(' ') {
        Some((host, rest)) if !host.ends_with(':') && rest.contains(':') => (Some(host), rest),
        _ => (None, text),
    };
    let (name, value) = rest.split_once(':').ok_or_else(|| wrong("there is no colon between name and value"))?;
    let (name, value) = (name.trim(), value.trim());
    let secret = ["authorization", "cookie"].iter().any(|secret| name.eq_ignore_ascii_case(secret));
    if secret && host.is_none() {
        return Err(wrong(&format!("{name} is a secret and would go to every host; say for which one it is meant")));
    }
    if name.is_empty() || name.contains(char::is_whitespace) {
        return Err(wrong("a header has a name without blanks"));
    }
    Ok(Header { host: host.map(str::to_ascii_lowercase), name: name.to_owned(), value: value.to_owned() })
}

fn read(path: &Path) -> Result<String> {
    use std::io::Read;
    let failed = |error| Failure::reading(path, error);
    let mut text = String::new();
    std::fs::File::open(path).map_err(failed)?.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(failed)?;
    Ok(text)
}

#[cfg(test)]
mod tests;
