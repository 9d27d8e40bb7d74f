//! `IntOrString` quantities such as `maxSurge: 25%`.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// The number that a count or a percentage of `total` stands for; `None` for a text that is no percentage.
pub(crate) fn of(value: &IntOrString, total: i32, round_up: bool) -> Option<i32> {
    match value {
        IntOrString::Int(n) => Some(*n),
        IntOrString::String(text) => {
            let percent: i64 = text.strip_suffix('%')?.parse().ok()?;
            let hundredths = percent.saturating_mul(i64::from(total));
            let n = if round_up {
                hundredths.saturating_add(99).div_euclid(100)
            } else {
                hundredths.div_euclid(100)
            };
            i32::try_from(n).ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, total: i32, up: Option<i32>, down: Option<i32>) {
        let value = text.parse().map_or_else(|_| IntOrString::String(text.to_owned()), IntOrString::Int);
        assert_eq!((of(&value, total, true), of(&value, total, false)), (up, down), "{text} of {total}");
    }

    #[test]
    fn counts_and_percentages() {
        check("3", 10, Some(3), Some(3));
        check("25%", 10, Some(3), Some(2));
        check("0%", 10, Some(0), Some(0));
        check("100%", 7, Some(7), Some(7));
        check("150%", 2, Some(3), Some(3));
        check("x", 2, None, None);
        check("1.5%", 2, None, None);
    }
}
