//! Import maps: JSON that says what the bare names of modules mean.
//!
//! ```text
//! { "imports": { name: address, … }, "scopes": { address: { name: address, … }, … }, "integrity": dropped }
//! ```

use serde_json::{Map, Value};

use super::address::Addresses;
use super::script::module;

/// Rewrites an import map. What is none stays as it is: a browser makes nothing of it either.
pub fn rewrite(text: &[u8], addresses: &mut Addresses, out: &mut Vec<u8>) {
    let Ok(Value::Object(map)) = serde_json::from_slice(text) else {
        out.extend_from_slice(text);
        return;
    };
    let mut new = Map::new();
    for (name, value) in map {
        match (name.as_str(), value) {
            ("integrity", _) => {}
            ("imports", Value::Object(names)) => drop(new.insert(name, names_of(names, addresses))),
            ("scopes", Value::Object(scopes)) => {
                let scopes = scopes.into_iter().map(|(scope, value)| match value {
                    Value::Object(names) => (scoped(&scope, addresses), names_of(names, addresses)),
                    other => (scope, other),
                });
                let scopes = scopes.collect();
                drop(new.insert(name, Value::Object(scopes)));
            }
            (_, other) => drop(new.insert(name, other)),
        }
    }
    // An end tag inside a string would end the element.
    let json = Value::Object(new).to_string().replace("</", "<\\/");
    out.extend_from_slice(json.as_bytes());
}

fn names_of(names: Map<String, Value>, addresses: &mut Addresses) -> Value {
    let rewritten = names.into_iter().map(|(name, value)| {
        let value = match value {
            Value::String(address) => Value::String(module(&address, addresses).unwrap_or(address)),
            other => other,
        };
        // A name may be an address itself, and is then written in scripts as its replay.
        (module(&name, addresses).unwrap_or(name), value)
    });
    Value::Object(rewritten.collect())
}

/// A scope need not look like an address to be one.
fn scoped(scope: &str, addresses: &mut Addresses) -> String {
    addresses.get("esm_", scope).unwrap_or_else(|| scope.to_owned())
}
