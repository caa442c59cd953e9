//! The paths that people write into their watches, as selectors: `//main`, `//div[@id="news"]`, `//*[@class='price']//span`.

/// The selector that finds the same elements.
pub fn selector(path: &str) -> Result<String, String> {
    let wrong = || "a path that no selector says".to_owned();
    let path = path.trim().trim_end_matches("/text()");
    let rest = path.strip_prefix("//").ok_or_else(wrong)?;
    let parts: Result<Vec<String>, String> = rest.split("//").map(step).collect();
    Ok(parts?.join(" "))
}

/// One step: a name, and attributes in brackets.
fn step(step: &str) -> Result<String, String> {
    let wrong = || "a path that no selector says".to_owned();
    let (name, mut rest) = step.find('[').map_or((step, ""), |at| step.split_at(at));
    let plain = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    if name != "*" && !plain(name) {
        return Err(wrong());
    }
    let mut out = if name == "*" { String::new() } else { name.to_owned() };
    while !rest.is_empty() {
        let (test, after) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')).ok_or_else(wrong)?;
        out.push_str(&attribute(test).ok_or_else(wrong)?);
        rest = after;
    }
    if out.is_empty() { Err(wrong()) } else { Ok(out) }
}

/// `@id="x"`, `contains(@class, "x")`, `@data-kind`.
fn attribute(test: &str) -> Option<String> {
    let test = test.trim();
    let quoted = |text: &str| {
        let text = text.trim();
        let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        inner.or_else(|| text.strip_prefix('\'')?.strip_suffix('\'')).map(str::to_owned)
    };
    let word = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    if let Some(inside) = test.strip_prefix("contains(").and_then(|rest| rest.strip_suffix(')')) {
        let (name, value) = inside.split_once(',')?;
        let (name, value) = (name.trim().strip_prefix('@')?, quoted(value)?);
        return match name {
            "class" if word(&value) => Some(format!(".{value}")),
            name if word(name) && !value.contains(['"', ']']) => Some(format!("[{name}*=\"{value}\"]")),
            _ => None,
        };
    }
    let test = test.strip_prefix('@')?;
    let Some((name, value)) = test.split_once('=') else { return word(test).then(|| format!("[{test}]")) };
    let (name, value) = (name.trim(), quoted(value)?);
    match name {
        "id" if word(&value) => Some(format!("#{value}")),
        "class" if word(&value) => Some(format!(".{value}")),
        name if word(name) && !value.contains(['"', ']']) => Some(format!("[{name}=\"{value}\"]")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_selectors_or_are_left() {
        for (path, meant) in [
            ("//main", "main"),
            ("//*[@id=\"news\"]", "#news"),
            ("//div[@class='price']//span", "div.price span"),
            ("//div[contains(@class, 'box')][@data-kind=\"a\"]", "div.box[data-kind=\"a\"]"),
            ("//p/text()", "p"),
        ] {
            assert_eq!(selector(path).as_deref(), Ok(meant), "{path}");
        }
        for wrong in ["/html/body", "//div[1]", "//div/p", "//*", "//a[text()='x']", "", "//div[@id=", "count(//p)"] {
            assert!(selector(wrong).is_err(), "{wrong}");
        }
    }
}
