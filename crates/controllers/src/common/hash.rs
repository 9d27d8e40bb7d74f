//! The hashes that become parts of names and labels: `pod-template-hash` and the suffixes of ControllerRevisions.
//!
//! They are the reference's constructions (FNV over the JSON that Go would print, in the alphabet of generated names).
//! Nothing relies on two programs giving the same hash: equality is always decided by contents.

use serde::Serialize;

/// The alphabet of generated names: no vowels, no look-alikes.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// FNV-1, 32 bits.
pub(crate) fn fnv1(parts: &[&[u8]]) -> u32 {
    parts
        .iter()
        .flat_map(|p| p.iter())
        .fold(0x811c_9dc5, |h: u32, b| h.wrapping_mul(0x0100_0193) ^ u32::from(*b))
}

/// FNV-1a, 32 bits.
pub(crate) fn fnv1a(parts: &[&[u8]]) -> u32 {
    parts
        .iter()
        .flat_map(|p| p.iter())
        .fold(0x811c_9dc5, |h: u32, b| (h ^ u32::from(*b)).wrapping_mul(0x0100_0193))
}

/// A number in letters that are safe in a name (`rand.SafeEncodeString` of its decimal digits).
pub(crate) fn safe(number: u32) -> String {
    number.to_string().bytes().map(|b| char::from(ALPHABET[usize::from(b) % ALPHABET.len()])).collect()
}

/// JSON as Go prints it: keys sorted, and `<`, `>`, `&` escaped.
pub(crate) fn go_json(value: &impl Serialize) -> String {
    // Through a value, whose keys are sorted. These characters only occur within strings.
    let text = serde_json::to_value(value).map(|v| v.to_string()).unwrap_or_default();
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            _ => out.push(c),
        }
    }
    out
}

/// `pod-template-hash` of a template; another one for each collision.
pub(crate) fn template(template: &impl Serialize, collisions: Option<i32>) -> String {
    let probe = collisions.map(|c| c.to_le_bytes());
    safe(fnv1a(&[go_json(template).as_bytes(), probe.as_ref().map_or(&[], |p| p.as_slice())]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_known_values() {
        assert_eq!(fnv1(&[b"a"]), 0x050c_5d7e);
        assert_eq!(fnv1a(&[b"a"]), 0xe40c_292c);
        assert_eq!(fnv1a(&[b"foo", b"bar"]), 0xbf9c_f968);
        // As in apimachinery: '0' is 48, and 48 % 27 is 21.
        assert_eq!(safe(10), format!("{}{}", char::from(ALPHABET[49 % 27]), char::from(ALPHABET[48 % 27])));
    }

    #[test]
    fn json_is_escaped_as_go_does() {
        assert_eq!(go_json(&json!({"b": "<a&b>", "a": 1})), r#"{"a":1,"b":"\u003ca\u0026b\u003e"}"#);
    }

    #[test]
    fn a_collision_changes_the_hash() {
        let t = json!({"spec": {}});
        assert_eq!(template(&t, None), template(&t, None));
        assert_ne!(template(&t, None), template(&t, Some(1)));
        assert_ne!(template(&t, Some(1)), template(&t, Some(2)));
    }
}
