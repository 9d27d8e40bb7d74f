//! Which controllers run: the reference's `--controllers` list.
//!
//! `*` stands for all that are on by default, `name` adds one, `-name` takes one away; the order does not matter.
//! Names are kube-controller-manager's, its older aliases included, and `scheduler`.

use std::collections::BTreeSet;

/// A controller: its name and the alias that older releases used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Name, as in kube-controller-manager.
    pub name: &'static str,
    /// Its older name; the same as `name` where there was none.
    pub alias: &'static str,
}

/// A list that names something unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{name}\" is not in the list of known controllers: {}", .known.join(", "))]
pub struct UnknownController {
    /// The name in question.
    pub name: String,
    /// The names that there are.
    pub known: Vec<&'static str>,
}

/// Parses a list; returns the names of those that shall run.
pub fn parse(list: &str, known: &[Known]) -> Result<BTreeSet<&'static str>, UnknownController> {
    let find = |name: &str| {
        known.iter().find(|k| k.name == name || k.alias == name).map(|k| k.name).ok_or_else(|| {
            UnknownController { name: name.to_owned(), known: known.iter().map(|k| k.name).collect() }
        })
    };
    let (mut on, mut off, mut all) = (BTreeSet::new(), BTreeSet::new(), false);
    for item in list.split(',').map(str::trim).filter(|i| !i.is_empty()) {
        match item.strip_prefix('-') {
            Some(name) => drop(off.insert(find(name)?)),
            None if item == "*" => all = true,
            None => drop(on.insert(find(item)?)),
        }
    }
    Ok(known.iter().map(|k| k.name).filter(|n| (all || on.contains(n)) && !off.contains(n)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[Known] = &[
        Known { name: "deployment-controller", alias: "deployment" },
        Known { name: "garbage-collector-controller", alias: "garbagecollector" },
        Known { name: "scheduler", alias: "scheduler" },
    ];

    #[track_caller]
    fn check(list: &str, want: &[&str]) {
        assert_eq!(parse(list, KNOWN).unwrap().into_iter().collect::<Vec<_>>(), want, "{list}");
    }

    #[test]
    fn lists_read_as_the_references() {
        check("*", &["deployment-controller", "garbage-collector-controller", "scheduler"]);
        check("*,-scheduler", &["deployment-controller", "garbage-collector-controller"]);
        check("-deployment, *", &["garbage-collector-controller", "scheduler"]);
        check("garbagecollector", &["garbage-collector-controller"]);
        check("-scheduler", &[]);
        check("", &[]);
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_known_ones() {
        let why = parse("*,-shceduler", KNOWN).unwrap_err().to_string();
        assert!(
            why.starts_with("\"shceduler\" is not in the list of known controllers: deployment-controller, "),
            "{why}"
        );
    }
}
