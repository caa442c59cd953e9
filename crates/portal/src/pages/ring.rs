//! The ring: nodes on the circle, who holds how much, what is missing, what moves. Drawn anew every few seconds.

use super::frame::{self, bytes, count, facts};
use crate::answer::{Answer, escape};
use crate::cdx::params::Params;
use crate::find::Looking;
use crate::trouble::Trouble;
use crate::visit::Visit;
use axum::http::{HeaderValue, header};
use serde_json::Value;

/// Seconds after which a browser asks again.
const AGAIN_S: &str = "5";
/// Slices in the table.
const SHOWN: usize = 1_024;

/// The page.
pub fn page(look: &Looking<'_>, _: &Params, _: &Visit) -> Result<Answer, Trouble> {
    let Some(others) = &look.portal.elsewhere else {
        let body = "<p>This archive belongs to no network. <code>skep network create</code> makes one, <code>skep node --join</code> joins one.</p>\n";
        return Ok(frame::page(look, "The ring", body));
    };
    let status = others.status();
    let number = |name: &str| status[name].as_u64().unwrap_or(0);
    let nodes = list(&status["nodes"]);
    let there =
        nodes.iter().filter(|node| matches!(node["state"].as_str(), Some("here" | "present" | "leaving"))).count();
    let mut body = facts(&[
        ("network", escape(status["network"].as_str().unwrap_or_default())),
        ("nodes there", format!("{} of {}", count(there as u64), count(nodes.len() as u64))),
        ("slices", count(number("slices"))),
        ("copies wanted", count(number("copies"))),
        ("led here", count(number("leads"))),
        ("held here", count(list(&status["held"]).len() as u64)),
        ("copied to here", bytes(number("pulled_bytes"))),
        (
            "sent, received",
            format!(
                "{}, {}",
                bytes(status["traffic"][0].as_u64().unwrap_or(0)),
                bytes(status["traffic"][1].as_u64().unwrap_or(0))
            ),
        ),
    ]);
    match status["settled"] == true {
        true => body.push_str(
            "<p><strong>Settled:</strong> every slice has its holders, and all of them have all that is here.</p>\n",
        ),
        false => {
            body.push_str("<p><strong>Not settled:</strong></p>\n<ul>\n");
            for why in list(&status["unsettled"]) {
                body.push_str(&format!("<li>{}</li>\n", text(why)));
            }
            body.push_str("</ul>\n");
        }
    }
    if let Some(name) = status["crawl"]["name"].as_str() {
        let of = |name: &str| count(status["crawl"]["progress"][name].as_u64().unwrap_or(0));
        body.push_str(&format!(
            "<p>Crawl <strong>{}</strong>, at this node: {} visited, {} waiting, {} out, {} links on their way to others.</p>\n",
            escape(name),
            of("visits"),
            of("waiting"),
            of("out"),
            of("unsent")
        ));
    }
    for split in list(&status["splits"]) {
        body.push_str(&format!(
            "<p>Site <code>{}</code> is split into {} slices since {}.</p>\n",
            text(&split["site"]),
            count(list(&split["slices"]).len() as u64),
            text(&split["since"])
        ));
    }
    body.push_str(&nearer(&status["near"]));
    body.push_str(&shared(&status["bodies"]));
    body.push_str(&circle(nodes));
    body.push_str("<h2>Nodes</h2>\n<table>\n<tr><th>node</th><th>state</th><th>holds</th><th>room</th><th>zone</th><th>owner</th><th>at</th></tr>\n");
    for node in nodes {
        let at = list(&node["addresses"]).first().map(text).unwrap_or_default();
        body.push_str(&format!(
            "<tr><td><code>{}</code></td><td>{}</td><td>{}</td><td>{} GB</td><td>{}</td><td><code>{}</code></td><td>{at}</td></tr>\n",
            short(&node["node"]),
            text(&node["state"]),
            count(node["holds"].as_u64().unwrap_or(0)),
            count(node["capacity_gb"].as_u64().unwrap_or(0)),
            text(&node["zone"]),
            short(&node["owner"])
        ));
    }
    body.push_str("</table>\n<h2>Slices held here</h2>\n<table>\n<tr><th>slice</th><th>epoch</th><th>leader</th><th>holders</th><th>whole copies</th><th>bytes</th><th>going on</th></tr>\n");
    for slice in list(&status["held"]).iter().take(SHOWN) {
        let holders: Vec<String> = list(&slice["holders"]).iter().map(short).collect();
        let mut going_on = Vec::new();
        if !slice["copying_to"].is_null() {
            going_on.push(format!("copied to {}", short(&slice["copying_to"])));
        }
        if !list(&slice["suspended"]).is_empty() {
            going_on.push("a copy is in doubt".to_owned());
        }
        if slice["surplus"] == true {
            going_on.push("kept until others have proven theirs".to_owned());
        }
        body.push_str(&format!(
            "<tr><td>{}</td><td>{}</td><td><code>{}</code></td><td><code>{}</code></td><td>{} of {}</td><td>{}</td><td>{}</td></tr>\n",
            count(slice["slice"].as_u64().unwrap_or(0)),
            text(&slice["epoch"]),
            short(&slice["leader"]),
            holders.join(" "),
            count(slice["copies"].as_u64().unwrap_or(0)),
            holders.len(),
            bytes(slice["bytes"].as_u64().unwrap_or(0)),
            going_on.join(", ")
        ));
    }
    body.push_str("</table>\n");
    let mut answer = frame::page(look, "The ring", &body);
    answer.headers_mut().insert(header::REFRESH, HeaderValue::from_static(AGAIN_S));
    Ok(answer)
}

/// What came of giving bundles to holders nearer to the site; nothing where nothing did.
fn nearer(near: &Value) -> String {
    let number = |name: &str| near[name].as_u64().unwrap_or(0);
    let mut out = String::new();
    if number("measured") > 0 {
        out.push_str(&format!(
            "<p><strong>{}</strong> hosts are nearer to other holders, who fetched {} of {} bundles for this node, {} pages: \
             {} ms of connecting saved.</p>\n",
            count(number("hosts")),
            count(number("back")),
            count(number("bundles")),
            count(number("urls")),
            near["connect_ms_saved"].as_i64().unwrap_or(0)
        ));
    }
    if number("followed") > 0 {
        let followed = count(number("followed"));
        out.push_str(&format!("<p>{followed} bundles were fetched here for others who lead.</p>\n"));
    }
    out
}

/// Bodies that slices share; nothing where they share none.
fn shared(bodies: &Value) -> String {
    let number = |name: &str| bodies[name].as_u64().unwrap_or(0);
    let mut out = String::new();
    if number("referrers") > 0 {
        out.push_str(&format!(
            "<p><strong>{}</strong> URLs of slices led here refer to bodies of other slices: {} saved.</p>\n",
            count(number("referrers")),
            bytes(number("saved_bytes"))
        ));
    }
    if number("lost") > 0 {
        out.push_str(&format!("<p>{} of these bodies are with none of their holders.</p>\n", count(number("lost"))));
    }
    out
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> String {
    escape(value.as_str().unwrap_or_default())
}

fn short(key: &Value) -> String {
    escape(&key.as_str().unwrap_or_default().chars().take(8).collect::<String>())
}

/// Nodes where their keys put them; the more it holds, the larger the dot.
fn circle(nodes: &[Value]) -> String {
    let most = nodes.iter().filter_map(|node| node["holds"].as_u64()).max().unwrap_or(0).max(1);
    let mut out = String::from(
        "<svg viewBox=\"-120 -120 240 240\" width=\"360\" height=\"360\" role=\"img\" aria-label=\"Nodes on the ring\">\
         <circle r=\"100\" fill=\"none\" stroke=\"currentColor\" stroke-opacity=\".3\"/>\n",
    );
    for (number, node) in nodes.iter().enumerate() {
        let hue = number * 360 / nodes.len().max(1);
        let there = matches!(node["state"].as_str(), Some("here" | "present" | "leaving"));
        let (fill, opacity) = (format!("hsl({hue} 70% 45%)"), if there { "1" } else { ".25" });
        for (nth, place) in list(&node["places"]).iter().enumerate() {
            let angle = place.as_u64().unwrap_or(0) as f64 / 1000.0 * std::f64::consts::TAU;
            let radius =
                if nth == 0 { 3.0 + 6.0 * node["holds"].as_u64().unwrap_or(0) as f64 / most as f64 } else { 1.5 };
            out.push_str(&format!(
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"{radius:.1}\" fill=\"{fill}\" opacity=\"{opacity}\"><title>{} {}</title></circle>\n",
                100.0 * angle.sin(),
                -100.0 * angle.cos(),
                short(&node["node"]),
                text(&node["state"])
            ));
        }
    }
    out.push_str("</svg>\n");
    out
}
