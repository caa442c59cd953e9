//! The API, for people: the table of its questions, read aloud.

use super::frame;
use crate::access::May;
use crate::answer::{Answer, escape};
use crate::api::BASE;
use crate::api::table::{ENDPOINTS, Gives, Place};
use crate::cdx::params::Params;
use crate::find::Looking;
use crate::trouble::Trouble;
use crate::visit::Visit;

/// All questions.
pub fn page(look: &Looking<'_>, _: &Params, visit: &Visit) -> Result<Answer, Trouble> {
    let mut body = format!(
        "<p>Below <code>{}{BASE}</code>. <a href=\"{BASE}/openapi.json\">The OpenAPI document</a> says the same for programs. Times in parameters are 4 to \
         14 digits. Lists come in pages: <code>next</code>, where there is one, is the parameter <code>after</code> of the page that follows. What is \
         wrong is told as <code>application/problem+json</code>.</p>\n<p>The index is at <code>/cdx</code>, <code>/cdx/search/cdx</code> and \
         <code>/COLLECTION?url=</code>, archived pages at <code>/web/TIME/URL</code>, TimeMaps at <code>/web/timemap/link/URL</code>.</p>\n",
        escape(&visit.base)
    );
    for endpoint in ENDPOINTS {
        body.push_str(&format!(
            "<section><h2 id=\"{}\"><code>{} {BASE}{}</code></h2>\n<p>{}.{}</p>\n",
            endpoint.id,
            endpoint.method,
            escape(endpoint.path),
            escape(endpoint.summary),
            if endpoint.needs > May::Read { " <strong>Needs a token.</strong>" } else { "" },
        ));
        if !endpoint.parameters.is_empty() {
            body.push_str(
                "<div class=\"wide\"><table><thead><tr><th scope=\"col\">parameter</th><th scope=\"col\">is</th><th scope=\"col\">means</th></tr></thead><tbody>",
            );
            for parameter in endpoint.parameters {
                let place = match (parameter.place, parameter.required) {
                    (Place::Path, _) => " (in the path)",
                    (Place::Query, true) => " (required)",
                    (Place::Query, false) => "",
                };
                body.push_str(&format!(
                    "<tr><th scope=\"row\"><code>{}</code>{place}</th><td>{}</td><td>{}</td></tr>",
                    parameter.name,
                    escape(&parameter.kind.told()),
                    escape(parameter.about)
                ));
            }
            body.push_str("</tbody></table></div>\n");
        }
        let gives = match endpoint.gives {
            Gives::Json(shape) | Gives::JsonFor(shape, _) => {
                let shape = shape();
                let names: Vec<String> = shape["properties"]
                    .as_object()
                    .map(|fields| fields.keys().map(|name| format!("<code>{}</code>", escape(name))).collect())
                    .unwrap_or_default();
                match names.is_empty() {
                    true => "JSON".to_owned(),
                    false => format!("JSON with {}", names.join(", ")),
                }
            }
            Gives::Bytes(media_type) => format!("<code>{media_type}</code>"),
        };
        body.push_str(&format!("<p class=\"soft\">Gives {gives}.</p></section>\n"));
    }
    Ok(frame::page(look, "The API of this archive", &body))
}
