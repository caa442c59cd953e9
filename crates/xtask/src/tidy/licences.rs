//! Licences of all dependencies, direct and not, against the list in `deny.toml`; without a further tool to install.

use super::Finding;
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use serde_json::Value;

/// What `deny.toml` allows: everywhere, and for single packages beyond that.
struct Allowed {
    everywhere: Vec<String>,
    exceptions: Vec<(String, Vec<String>)>,
}

/// Every package of the lock file has to offer a licence on the list.
pub fn check(workspace: &Workspace) -> Result<Vec<Finding>> {
    let text = std::fs::read_to_string(workspace.root.join("deny.toml")).context("deny.toml cannot be read")?;
    let allowed = parse(&text)?;
    Ok(unlisted(&allowed, &workspace.metadata(true)?))
}

fn parse(text: &str) -> Result<Allowed> {
    let table: toml::Table = text.parse().context("deny.toml is not TOML")?;
    let names = |value: Option<&toml::Value>| -> Vec<String> {
        let list = value.and_then(toml::Value::as_array).map(Vec::as_slice).unwrap_or_default();
        list.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect()
    };
    let licences = table.get("licenses").context("deny.toml has no [licenses]")?;
    let exceptions = licences.get("exceptions").and_then(toml::Value::as_array).map(Vec::as_slice).unwrap_or_default();
    Ok(Allowed {
        everywhere: names(licences.get("allow")),
        exceptions: exceptions
            .iter()
            .filter_map(|one| Some((one.get("name")?.as_str()?.to_owned(), names(one.get("allow")))))
            .collect(),
    })
}

fn unlisted(allowed: &Allowed, metadata: &Value) -> Vec<Finding> {
    let mut found = Vec::new();
    for package in metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default() {
        let name = package["name"].as_str().unwrap_or_default();
        let exception = allowed.exceptions.iter().find(|(known, _)| known == name).map(|(_, list)| list.as_slice());
        let fits = |licence: &str| {
            let listed = |list: &[String]| list.iter().any(|one| one == licence);
            listed(&allowed.everywhere) || exception.is_some_and(listed)
        };
        match package["license"].as_str() {
            Some(expression) if satisfied(expression, &fits) => {}
            Some(expression) => {
                let reason = format!("dependency {name} is under `{expression}`, which the list does not allow");
                found.push(Finding::new("deny.toml", 1, reason));
            }
            None => found.push(Finding::new("deny.toml", 1, format!("dependency {name} names no licence"))),
        }
    }
    found
}

/// Whether an SPDX expression can be satisfied. `/` is the old spelling of OR; OR binds weakest, then AND, then WITH. An
/// expression that cannot be read satisfies nothing.
fn satisfied(expression: &str, fits: &dyn Fn(&str) -> bool) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    any(&mut rest, fits) == Some(true) && rest.is_empty()
}

fn any(rest: &mut &[&str], fits: &dyn Fn(&str) -> bool) -> Option<bool> {
    let mut answer = all(rest, fits)?;
    while let ["OR", tail @ ..] = *rest {
        *rest = tail;
        answer |= all(rest, fits)?;
    }
    Some(answer)
}

fn all(rest: &mut &[&str], fits: &dyn Fn(&str) -> bool) -> Option<bool> {
    let mut answer = one(rest, fits)?;
    while let ["AND", tail @ ..] = *rest {
        *rest = tail;
        answer &= one(rest, fits)?;
    }
    Some(answer)
}

fn one(rest: &mut &[&str], fits: &dyn Fn(&str) -> bool) -> Option<bool> {
    match *rest {
        ["(", tail @ ..] => {
            *rest = tail;
            let answer = any(rest, fits)?;
            let [")", tail @ ..] = *rest else { return None };
            *rest = tail;
            Some(answer)
        }
        [licence, "WITH", exception, tail @ ..] => {
            *rest = tail;
            Some(fits(&format!("{licence} WITH {exception}")))
        }
        [licence, tail @ ..] => {
            *rest = tail;
            Some(fits(licence))
        }
        [] => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(licence: &str) -> bool {
        ["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"].contains(&licence)
    }

    #[test]
    fn one_of_several_is_enough_and_all_of_several_are_needed() {
        for good in ["MIT", "GPL-3.0 OR MIT", "GPL-3.0/MIT", "MIT AND ISC", "(GPL-3.0 OR MIT) AND ISC"] {
            assert!(satisfied(good, &fits), "{good}");
        }
        for bad in ["GPL-3.0", "MIT AND GPL-3.0", "MIT OR (ISC", "", "Apache-2.0", "(GPL-3.0 OR LGPL-3.0) AND MIT"] {
            assert!(!satisfied(bad, &fits), "{bad}");
        }
        assert!(satisfied("Apache-2.0 WITH LLVM-exception OR GPL-3.0", &fits));
    }

    #[test]
    fn an_exception_holds_for_its_package_alone() {
        let list = "[licenses]\nallow = [\"MIT\"]\n[[licenses.exceptions]]\nname = \"a\"\nallow = [\"BSL-1.0\"]\n";
        let allowed = parse(list).expect("TOML");
        let metadata = serde_json::json!({ "packages": [
            { "name": "a", "license": "BSL-1.0" },
            { "name": "b", "license": "BSL-1.0" },
            { "name": "c", "license": "MIT" },
            { "name": "d", "license": null },
        ] });
        let reasons: Vec<String> = unlisted(&allowed, &metadata).into_iter().map(|found| found.reason).collect();
        assert_eq!(reasons.len(), 2);
        assert!(reasons[0].contains(" b ") && reasons[1].contains(" d "));
    }
}
