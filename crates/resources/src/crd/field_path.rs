//! Paths into a schema, as selectable fields and the `fieldPath` of CEL rules have them: `.spec.a['b.c']`.

use super::props::{Props, object};

/// Follows a path through a schema. Returns the path in canonical form, its first name, and the schema it leads to;
/// a path into `additionalProperties: true` leads to none.
///
/// # Errors
/// The reference's words, to stand after `is an invalid path: `.
pub(crate) fn resolve<'a>(
    path: &str,
    schema: &'a Props,
    brackets: bool,
) -> Result<(String, String, Option<&'a Props>), String> {
    let tokens = tokens(path);
    let mut tokens = tokens.iter().map(String::as_str);
    let (mut canonical, mut first, mut at) = (String::new(), None, Some(schema));
    while let Some(token) = tokens.next() {
        let name = match token {
            "[" if !brackets => return Err("array notation is not allowed".to_owned()),
            "[" => {
                let quoted = tokens.next().ok_or("unexpected end of JSON path")?;
                let inner = quoted
                    .strip_prefix('\'')
                    .and_then(|t| t.strip_suffix('\''))
                    .filter(|_| quoted.len() >= 2);
                let inner = inner.ok_or_else(|| format!("expected single quoted string but got {quoted}"))?;
                let name = unescape(inner).ok_or("invalid string literal: invalid escape sequence")?;
                match tokens.next() {
                    None => return Err("unexpected end of JSON path".to_owned()),
                    Some("]") => {}
                    Some(other) => return Err(format!("expected ] but got {other}")),
                }
                name
            }
            "." => tokens.next().ok_or("unexpected end of JSON path")?.to_owned(),
            other => return Err(format!("expected [ or . but got: {other}")),
        };
        let missing = || "does not refer to a valid field".to_owned();
        let here = at.ok_or_else(missing)?;
        if let Some(properties) = object(here, "properties").filter(|p| !p.is_empty()) {
            at = Some(object(properties, &name).ok_or_else(missing)?);
            canonical.push('.');
            canonical.push_str(&name);
        } else if let Some(additional) = here.get("additionalProperties").filter(|v| !v.is_null()) {
            at = additional.as_object();
            canonical.push_str(&format!("[{name}]"));
        } else {
            return Err(missing());
        }
        first.get_or_insert(name);
    }
    Ok((canonical, first.unwrap_or_default(), at))
}

/// Splits at `.`, `[` and `]`, which are tokens themselves, outside single quotes.
fn tokens(path: &str) -> Vec<String> {
    let (mut tokens, mut current, mut quoted, mut escaped) = (Vec::new(), String::new(), false, false);
    for c in path.chars() {
        if quoted {
            current.push(c);
            if c == '\'' && !escaped {
                quoted = false;
                tokens.push(std::mem::take(&mut current));
            }
            escaped = c == '\\' && !escaped;
            continue;
        }
        match c {
            '.' | '[' | ']' => {
                if !current.is_empty() {
                    tokens.push(std::mem::take(&mut current));
                }
                tokens.push(c.to_string());
            }
            '\'' if current.is_empty() => {
                quoted = true;
                current.push(c);
            }
            c => current.push(c),
        }
    }
    if !current.is_empty() {
        tokens.push(current);
    }
    tokens
}

fn unescape(text: &str) -> Option<String> {
    let (mut out, mut chars) = (String::new(), text.chars());
    while let Some(c) = chars.next() {
        out.push(match c {
            '\\' => match chars.next()? {
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                c @ ('\\' | '\'' | '"') => c,
                _ => return None,
            },
            c => c,
        });
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(path: &str, brackets: bool, want: Result<&str, &str>) {
        let schema = json!({"properties": {
            "spec": {"properties": {"a": {"type": "string"}, "b.c": {"type": "string"}}},
            "labels": {"additionalProperties": {"type": "string"}},
        }});
        let found = schema.as_object().map(|s| resolve(path, s, brackets));
        let found = found.as_ref().map(|r| r.as_ref().map(|(p, ..)| p.as_str()).map_err(String::as_str));
        assert_eq!(found, Some(want), "{path}");
    }

    #[test]
    fn paths_resolve_or_say_why_not() {
        check(".spec.a", false, Ok(".spec.a"));
        check(".spec['b.c']", true, Ok(".spec.b.c"));
        check(".labels.x", false, Ok(".labels[x]"));
        check("spec.a", false, Err("expected [ or . but got: spec"));
        check(".spec.none", false, Err("does not refer to a valid field"));
        check(".spec.a[0]", false, Err("array notation is not allowed"));
        check(".spec[0]", true, Err("expected single quoted string but got 0"));
        check(".spec.", true, Err("unexpected end of JSON path"));
        check(".labels['x", true, Err("expected single quoted string but got 'x"));
    }
}
