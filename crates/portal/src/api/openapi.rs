//! The OpenAPI document, written from the table.

use super::asked::Asked;
use super::table::{ENDPOINTS, Endpoint, Gives, Place};
use super::{BASE, schemas};
use crate::access::May;
use crate::find::Looking;
use crate::trouble::Trouble;
use crate::visit::Visit;
use serde_json::{Map, Value, json};

/// Answers with the document.
pub fn tell(_: &Looking<'_>, _: &Asked, visit: &Visit) -> Result<Value, Trouble> {
    Ok(document(&visit.base))
}

/// The document for a portal at this place.
pub fn document(base: &str) -> Value {
    let mut paths = Map::new();
    for endpoint in ENDPOINTS {
        let here = paths.entry(endpoint.path).or_insert_with(|| json!({}));
        here[endpoint.method.to_ascii_lowercase()] = operation(endpoint);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "The catalogue of a Skep archive",
            "version": "1",
            "description": "What is in the archive. Times in parameters are 4 to 14 digits, in answers RFC 3339 or 14 digits. \
                            Lists come in pages: `next`, where there is one, is the parameter `after` of the page that follows.",
        },
        "servers": [{ "url": format!("{base}{BASE}") }],
        "paths": paths,
        "components": {
            "schemas": { "Problem": schemas::problem() },
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
    })
}

fn operation(endpoint: &Endpoint) -> Value {
    let parameters: Vec<Value> = endpoint
        .parameters
        .iter()
        .map(|parameter| {
            json!({
                "name": parameter.name,
                "in": if parameter.place == Place::Path { "path" } else { "query" },
                "required": parameter.required,
                "description": parameter.about,
                "schema": parameter.kind.schema(),
            })
        })
        .collect();
    let problem = |what: &str| {
        json!({
            "description": what,
            "content": { "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } } },
        })
    };
    let json_of =
        |shape: Value| json!({ "description": "The answer", "content": { "application/json": { "schema": shape } } });
    let mut responses = Map::new();
    match endpoint.gives {
        Gives::Json(shape) => drop(responses.insert("200".into(), json_of(shape()))),
        Gives::JsonFor(shape, _) => {
            responses.insert("200".into(), json_of(shape()));
            responses.insert("201".into(), json_of(shape()));
        }
        Gives::Bytes(media_type) => {
            let content = json!({ media_type: { "schema": { "type": "string", "format": "binary" } } });
            responses.insert("200".into(), json!({ "description": "The bytes", "content": content }));
        }
    }
    responses.insert("400".into(), problem("A parameter cannot be so"));
    responses.insert("404".into(), problem("It is not here"));
    responses.insert("default".into(), problem("It cannot be answered"));
    let mut operation = json!({
        "operationId": endpoint.id,
        "summary": endpoint.summary,
        "parameters": parameters,
        "responses": responses,
    });
    if let Gives::JsonFor(_, body) = endpoint.gives {
        operation["requestBody"] = json!({ "required": true, "content": { "application/json": { "schema": body() } } });
    }
    if endpoint.needs > May::Read {
        operation["security"] = json!([{ "token": [] }]);
        operation["responses"]["401"] = problem("A token is needed");
    }
    operation
}
