//! The proxy: a browser that is set to use it sees the past under its own addresses, so nothing has to be rewritten.
//!
//! `http://` is answered as asked for. For `https://` the proxy is each server itself, with a certificate of its own authority, which the
//! browser must trust: `http://skep.archive/ca.pem` gives it, and it is kept in the archive's settings. What time it is there is said on
//! `http://skep.archive/` for everything that comes from the same address, or by the header Accept-Datetime; else it is now.
//!
//! Archived pages run here under their own addresses, and may ask for any: a picture from `http://skep.archive/2014` must not set the reader's
//! time. That takes a word that stands on the proxy's own page, which no other page can read.

use crate::answer::{self, Answer, escape};
use crate::cdx::params::Params;
use crate::find::Looking;
use crate::limits::{CLIENTS_MAX, HOSTS_MAX, STEPS_ASIDE_MAX};
use crate::portal::{Portal, Scope};
use crate::replay::{self, Shown};
use crate::reply::{Reply, tell};
use crate::server::Error;
use crate::trouble::Trouble;
use crate::visit::{Connection, Visit};
use crate::{headers, memento, missing, routes, time};
use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use skep_archive::{Capture, Key};
use skep_url::Url;
use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_rustls::TlsAcceptor;

/// The name under which the proxy itself is asked.
const OWN_NAME: &str = "skep.archive";
/// The file with the authority's key and certificate, in the archive's settings.
const AUTHORITY: &str = "proxy-ca.pem";

/// What the proxy knows.
pub struct Proxy {
    portal: Arc<Portal>,
    authority: Authority,
    /// What time it is, by client.
    times: Mutex<HashMap<IpAddr, i64>>,
    secrets: [RandomState; 2],
}

/// Who vouches for the servers of the past.
struct Authority {
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
    // One key serves all hosts: making one for each would cost more than it proves.
    host_key: KeyPair,
    hosts: Mutex<HashMap<String, Arc<ServerConfig>>>,
}

fn params() -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name.push(DnType::CommonName, "Skep proxy: servers of the past");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
    Ok(params)
}

impl Authority {
    /// The one that is kept in this folder; made, if there is none yet.
    fn load(folder: &Path) -> Result<Authority, String> {
        let path = folder.join(AUTHORITY);
        let kept = std::fs::read_to_string(&path).ok();
        let begin = "-----BEGIN CERTIFICATE-----";
        let (key, certificate) = match kept.as_deref().and_then(|text| text.find(begin).map(|at| text.split_at(at))) {
            Some((key, certificate)) => {
                (KeyPair::from_pem(key).map_err(|error| error.to_string())?, certificate.to_owned())
            }
            None => {
                let key = KeyPair::generate().map_err(|error| error.to_string())?;
                let certificate =
                    params().and_then(|params| params.self_signed(&key)).map_err(|error| error.to_string())?.pem();
                let both = format!("{}{certificate}", key.serialize_pem());
                skep_archive::settings::replace(&path, both.as_bytes(), 0o600).map_err(|error| error.to_string())?;
                (key, certificate)
            }
        };
        let issuer = Issuer::new(params().map_err(|error| error.to_string())?, key);
        let host_key = KeyPair::generate().map_err(|error| error.to_string())?;
        Ok(Authority { certificate, issuer, host_key, hosts: Mutex::new(HashMap::new()) })
    }

    /// What a server of this name speaks TLS with.
    fn host(&self, name: &str) -> Option<Arc<ServerConfig>> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = hosts.get(name) {
            return Some(known.clone());
        }
        let mut params = CertificateParams::new(vec![name.to_owned()]).ok()?;
        params.distinguished_name.push(DnType::CommonName, "an archived server");
        params.use_authority_key_identifier_extension = true;
        let certificate: CertificateDer<'static> = params.signed_by(&self.host_key, &self.issuer).ok()?.der().clone();
        let key = PrivateKeyDer::Pkcs8(self.host_key.serialize_der().into());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .ok()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .ok()?;
        if hosts.len() >= HOSTS_MAX {
            hosts.clear();
        }
        let config = Arc::new(config);
        hosts.insert(name.to_owned(), config.clone());
        Some(config)
    }
}

impl Proxy {
    /// A proxy into this archive.
    pub fn new(portal: Arc<Portal>) -> Result<Proxy, Error> {
        let authority = Authority::load(&portal.archive.layout().settings())
            .map_err(|why| Error::Setting { what: format!("the proxy has no authority: {why}") })?;
        Ok(Proxy { portal, authority, times: Mutex::default(), secrets: [RandomState::new(), RandomState::new()] })
    }

    /// What accepts TLS for `host:port`.
    pub fn acceptor(&self, authority: &str) -> Option<TlsAcceptor> {
        let name = authority.rsplit_once(':').map_or(authority, |(name, _)| name).trim_matches(['[', ']']);
        self.authority.host(name).map(TlsAcceptor::from)
    }

    fn times(&self) -> std::sync::MutexGuard<'_, HashMap<IpAddr, i64>> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers one request; `tunnel` is the server that the browser believes to speak TLS with.
    pub async fn answer(&self, connection: Connection, parts: &Parts, tunnel: Option<&str>) -> Answer {
        if !matches!(parts.method, Method::GET | Method::HEAD) {
            return routes::not_allowed("GET, HEAD");
        }
        let path = parts.uri.path_and_query().map_or("/", |target| target.as_str());
        let url = match (tunnel, parts.uri.authority()) {
            (Some(server), _) => format!("https://{server}{path}"),
            (None, Some(server)) => format!("http://{server}{path}"),
            (None, None) => {
                let told = "This is a proxy: set it as the proxy of a browser, for http and https.";
                return answer::told(StatusCode::BAD_REQUEST, "A proxy", told);
            }
        };
        let Ok(url) = Url::parse(&url) else {
            return answer::told(StatusCode::BAD_REQUEST, "Not an address", "The address is not one of the web.");
        };
        if url.host_name() == OWN_NAME {
            return self.own(connection.peer, url.request_target());
        }
        let visit = Visit::of(&self.portal, parts);
        let moment = match visit.accept_datetime.as_deref().map(time::of_http) {
            Some(Some(moment)) => moment,
            Some(None) => {
                return answer::told(
                    StatusCode::BAD_REQUEST,
                    "Not a date",
                    "The header Accept-Datetime is not a date.",
                );
            }
            None => self.times().get(&connection.peer).copied().or(time::latest("9999")).unwrap_or(i64::MAX),
        };
        let work = move |look: &Looking<'_>, visit: &Visit, reply: Reply| show(look, &url, moment, visit, reply);
        routes::look(&self.portal, Scope::Everything, visit, work).await
    }

    /// What stands on the page for this client only, and proves that it was there.
    fn word(&self, peer: IpAddr) -> String {
        let [one, other] = &self.secrets;
        format!("{:016x}{:016x}", one.hash_one(peer), other.hash_one(peer))
    }

    /// What the proxy says about itself; the time is set by its own page only.
    fn own(&self, peer: IpAddr, target: &str) -> Answer {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let (asked, params) = (path.trim_matches('/'), Params::of(query));
        if asked == "ca.pem" {
            return answer::with(StatusCode::OK, "application/x-x509-ca-cert", self.authority.certificate.clone());
        }
        let wanted = params.get("time").unwrap_or(asked).trim();
        let moment = time::latest(wanted);
        if !wanted.is_empty() && wanted != "now" && moment.is_none() {
            let told = "http://skep.archive/2014 is the end of 2014, http://skep.archive/20140126 that day.";
            return answer::told(StatusCode::NOT_FOUND, "Not a time", told);
        }
        let word = self.word(peer);
        if !wanted.is_empty() && params.get("word") == Some(&word) {
            self.set(peer, moment);
            return answer::redirect(StatusCode::SEE_OTHER, &format!("http://{OWN_NAME}/"));
        }
        let now = self.times().get(&peer).map_or("now".to_owned(), |moment| time::http(*moment));
        let then = match (wanted, moment) {
            ("", _) => String::new(),
            (_, None) => "<p>Shall it be <strong>now</strong>, the newest there is?</p>".to_owned(),
            (_, Some(moment)) => format!("<p>Shall it be <strong>{}</strong>?</p>", escape(&time::http(moment))),
        };
        let body = format!(
            "<p>You see the web as it was at <strong>{}</strong>, or nearest to it.</p>{then}\
             <form action=\"http://{OWN_NAME}/\"><input type=\"hidden\" name=\"word\" value=\"{word}\">\
             <label>Time <input name=\"time\" value=\"{}\" placeholder=\"2014, 20140126 or now\" required></label> <button>Set it</button></form>\
             <p><code>http://{OWN_NAME}/2014</code> asks for the end of 2014, <code>http://{OWN_NAME}/20140126</code> for that day, \
             <code>http://{OWN_NAME}/now</code> for the newest. <a href=\"http://{OWN_NAME}/ca.pem\">The certificate</a> lets a browser \
             trust https addresses of the past.</p>",
            escape(&now),
            escape(wanted),
        );
        let mut answer = answer::page(StatusCode::OK, "Through the archive", &body);
        keep_inside(answer.headers_mut());
        answer
    }

    fn set(&self, peer: IpAddr, moment: Option<i64>) {
        let mut times = self.times();
        let Some(moment) = moment else {
            times.remove(&peer);
            return;
        };
        if times.len() >= CLIENTS_MAX {
            times.clear();
        }
        times.insert(peer, moment);
    }
}

/// Shows the capture of a URL nearest to a moment: of exactly this URL if there is one, so that http may lead to https.
fn show(look: &Looking<'_>, url: &Url, moment: i64, visit: &Visit, reply: Reply) {
    let mut reply = Some(reply);
    let result = nearest(look, url, moment).and_then(|found| match found {
        None => {
            tell(&mut reply, missing::page(look, url.as_str()));
            Ok(())
        }
        Some(capture) => {
            let head = |shown: &Shown<'_>| head(look, &capture, visit, shown);
            replay::deliver(look, &capture, visit, &mut reply, &head)
        }
    });
    if let Err(trouble) = result {
        look.portal.note(&trouble);
        tell(&mut reply, trouble.page());
    }
}

fn nearest(look: &Looking<'_>, url: &Url, moment: i64) -> Result<Option<Capture>, Trouble> {
    let mut other = None;
    for capture in look.nearest(&Key::of(url.as_str()), moment)?.take(STEPS_ASIDE_MAX) {
        let capture = capture?;
        if Url::parse(&capture.url).is_ok_and(|found| found == *url) {
            return Ok(Some(capture));
        }
        let leads_on = (300..400).contains(&capture.status);
        if !leads_on && other.is_none() {
            other = Some(capture);
        }
    }
    Ok(other)
}

/// Under its own address a page needs its own headers, all but those that would outlive the visit.
fn head(look: &Looking<'_>, capture: &Capture, visit: &Visit, shown: &Shown<'_>) -> Answer {
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = shown.status;
    let into = answer.headers_mut();
    if let Some(head) = shown.head {
        headers::hand_on(head, false, into);
        headers::hand_on_under_own_names(head, into);
    }
    let coding = shown.body_head.and_then(|head| head.header("content-encoding"));
    if let Some(coding) = coding.and_then(|value| HeaderValue::from_bytes(value).ok()) {
        into.insert(header::CONTENT_ENCODING, coding);
    }
    if !shown.media_type.is_empty() {
        into.insert(header::CONTENT_TYPE, answer::value(&shown.media_type));
    }
    keep_inside(into);
    memento::describe(into, &visit.base, look.scope, capture);
    answer
}

fn keep_inside(into: &mut HeaderMap) {
    into.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
}
