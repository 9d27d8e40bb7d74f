//! Sets of completion indexes in their text form: `1,3-5,7`.

use std::collections::BTreeSet;
use std::fmt::Write;

/// Reads a set; indexes from `limit` on are dropped, and so is what can't be read.
pub(super) fn parse(text: &str, limit: i32) -> BTreeSet<i32> {
    let mut set = BTreeSet::new();
    for part in text.split(',').filter(|p| !p.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (Ok(first), Ok(last)) = (first.parse::<i32>(), last.parse::<i32>()) else { continue };
        set.extend(first.max(0)..=last.min(limit - 1));
    }
    set
}

/// Writes a set: runs of three or more as a range, as the reference does of two or more.
pub(super) fn format(set: &BTreeSet<i32>) -> String {
    let mut out = String::new();
    let mut rest = set.iter().copied().peekable();
    while let Some(first) = rest.next() {
        let mut last = first;
        while rest.next_if_eq(&(last + 1)).is_some() {
            last += 1;
        }
        if !out.is_empty() {
            out.push(',');
        }
        // Writing to a string can't fail.
        let _ = match last - first {
            0 => write!(out, "{first}"),
            1 => write!(out, "{first},{last}"),
            _ => write!(out, "{first}-{last}"),
        };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(set: &[i32], text: &str) {
        let set: BTreeSet<i32> = set.iter().copied().collect();
        assert_eq!(format(&set), text);
        assert_eq!(parse(text, 100), set);
    }

    #[test]
    fn sets_are_written_in_ranges() {
        check(&[], "");
        check(&[3], "3");
        check(&[1, 3, 4, 5, 7], "1,3-5,7");
        check(&[0, 1], "0,1");
        check(&[0, 1, 2, 8, 9], "0-2,8,9");
    }

    #[test]
    fn what_cannot_be_read_is_dropped() {
        assert_eq!(format(&parse("1,x,-,3-2,5-9", 7)), "1,5,6");
    }
}
