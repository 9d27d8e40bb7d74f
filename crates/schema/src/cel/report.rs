//! Errors of an expression as cel-go prints them: line, column, the line itself and an arrow.
//!
//! All errors of one expression make one text, in the order of their places. Invariant: a text is bounded, whatever
//! is wrong with however long an expression.

/// What is wrong, and the byte where.
pub(super) type Fault = (usize, String);

/// Errors that one text shows.
const MOST: usize = 100;
/// Bytes of a line that is still shown.
const LONGEST: usize = 16384;

/// The text of all errors.
pub(super) fn display(source: &str, mut faults: Vec<Fault>) -> String {
    faults.sort_by_key(|(at, _)| *at);
    let more = faults.len().saturating_sub(MOST);
    let mut out: Vec<String> = faults.iter().take(MOST).map(|(at, why)| one(source, *at, why)).collect();
    if more > 0 {
        out.push(format!("{more} more errors were truncated"));
    }
    out.join("\n")
}

/// The text of one error.
pub(super) fn one(source: &str, at: usize, why: &str) -> String {
    let before = &source[..at.min(source.len())];
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |i| i + 1);
    let column = before[start..].chars().count();
    let head = format!("ERROR: <input>:{line}:{}: {why}", column + 1);
    let text = source[start..].split('\n').next().unwrap_or_default();
    if text.len() > LONGEST {
        return head;
    }
    // What is wider than a byte gets a wider mark.
    let arrow: String =
        before[start..].chars().map(|c| if c.len_utf8() > 1 { '\u{ff0e}' } else { '.' }).collect();
    let here = text.get(at.min(source.len()) - start..).and_then(|rest| rest.chars().next());
    let tip = if here.is_some_and(|c| c.len_utf8() > 1) { '\u{ff3e}' } else { '^' };
    format!("{head}\n | {}\n | {arrow}{tip}", text.replace('\t', " "))
}

/// An error that has no place.
pub(super) fn nowhere(why: &str) -> String {
    format!("ERROR: <input>:-1:0: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_print_in_order_of_their_places() {
        let faults = vec![(9, "second".to_owned()), (3, "first".to_owned())];
        assert_eq!(
            display("a ==\tb\n&& é", faults),
            "ERROR: <input>:1:4: first\n | a == b\n | ...^\nERROR: <input>:2:3: second\n | && é\n | ..^"
        );
        assert_eq!(one("'é' é", 5, "x"), "ERROR: <input>:1:5: x\n | 'é' é\n | .．..＾");
        let many = (0..150).map(|i| (i, "x".to_owned())).collect();
        assert!(display("y", many).ends_with("\n50 more errors were truncated"));
    }
}
