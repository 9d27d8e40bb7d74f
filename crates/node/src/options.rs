//! How many simulated nodes there are and of what size, as the command line says it.
//!
//! Every error names the option and says what would do. Nothing here makes a node.

use std::collections::BTreeMap;

use homeostat_model::quantity::Quantity;
use homeostat_model::validation as names;

use crate::fleet::Fleet;

/// Pods that the addresses of a node suffice for.
const MOST_PODS: i128 = 250;

/// The nodes to simulate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeOptions {
    /// How many.
    pub count: usize,
    /// What each has, by resource; canonical quantities.
    pub capacity: BTreeMap<String, String>,
    /// Labels beyond those of every node. Several values go round: the first node has the first, and so on.
    pub labels: BTreeMap<String, Vec<String>>,
}

/// An option that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NodeOptionError {
    /// More nodes than there are addresses for.
    #[error("--nodes: {0} are too many; at most {max} have addresses", max = Fleet::MOST)]
    TooMany(usize),
    /// A part of the list that is no `name=value`.
    #[error("{option}: {text:?} is not of the form NAME=VALUE, such as {example}")]
    Form {
        /// The option.
        option: &'static str,
        /// The part.
        text: String,
        /// What would do.
        example: &'static str,
    },
    /// A name that no resource or label can have.
    #[error("{option}: {name:?} {why}")]
    Name {
        /// The option.
        option: &'static str,
        /// The name.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// A value that can't be.
    #[error("{option}: {name}={value} {why}")]
    Value {
        /// The option.
        option: &'static str,
        /// The name.
        name: String,
        /// The value.
        value: String,
        /// What is wrong with it.
        why: String,
    },
}

impl Default for NodeOptions {
    fn default() -> Self {
        Self::from(1)
    }
}

impl From<usize> for NodeOptions {
    /// So many nodes of the usual size.
    fn from(count: usize) -> Self {
        let capacity = [
            ("cpu", "32"),
            ("memory", "128Gi"),
            ("ephemeral-storage", "256Gi"),
            ("pods", "110"),
            ("hugepages-2Mi", "0"),
        ];
        let capacity = capacity.into_iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
        Self { count, capacity, labels: BTreeMap::new() }
    }
}

impl NodeOptions {
    /// From a number of nodes, a list of resources such as `cpu=32,memory=128Gi,nvidia.com/gpu=8`, and a list of labels
    /// such as `zone=a|b|c`. Lists may be empty; what isn't named is as usual.
    pub fn parse(count: usize, capacity: &str, labels: &str) -> Result<Self, NodeOptionError> {
        if count > Fleet::MOST {
            return Err(NodeOptionError::TooMany(count));
        }
        let mut options = Self::from(count);
        for (name, value) in pairs("--node-capacity", capacity, "cpu=32,memory=128Gi")? {
            options.capacity.insert(name.to_owned(), amount(name, value)?);
        }
        for (name, values) in pairs("--node-labels", labels, "zone=a|b|c")? {
            options.labels.insert(name.to_owned(), label(name, values)?);
        }
        Ok(options)
    }
}

fn pairs<'a>(
    option: &'static str,
    list: &'a str,
    example: &'static str,
) -> Result<Vec<(&'a str, &'a str)>, NodeOptionError> {
    let items = list.split(',').map(str::trim).filter(|i| !i.is_empty());
    let pair = |item: &'a str| {
        let form = || NodeOptionError::Form { option, text: item.to_owned(), example };
        let (name, value) = item.split_once('=').ok_or_else(form)?;
        let (name, value) = (name.trim(), value.trim());
        if name.is_empty() {
            return Err(form());
        }
        match names::qualified_name(name).into_iter().next() {
            Some(why) => Err(NodeOptionError::Name {
                option,
                name: name.to_owned(),
                why: format!("is no name: {why}"),
            }),
            None => Ok((name, value)),
        }
    };
    items.map(pair).collect()
}

/// A resource that a node can have, in canonical form.
fn amount(name: &str, value: &str) -> Result<String, NodeOptionError> {
    let option = "--node-capacity";
    let bad =
        |why: String| NodeOptionError::Value { option, name: name.to_owned(), value: value.to_owned(), why };
    let known =
        ["cpu", "memory", "ephemeral-storage", "pods"].contains(&name) || name.starts_with("hugepages-");
    if !known && !name.contains('/') {
        let why = "is no resource; there are cpu, memory, ephemeral-storage, pods, hugepages-SIZE, and extended ones \
                   with a domain, such as nvidia.com/gpu";
        return Err(NodeOptionError::Name { option, name: name.to_owned(), why: why.to_owned() });
    }
    let quantity = Quantity::parse(value)
        .map_err(|_| bad("is no quantity; write one such as 32, 500m or 128Gi".to_owned()))?;
    if quantity.signum() < 0 {
        return Err(bad("is less than nothing".to_owned()));
    }
    if name != "cpu" && !quantity.is_integer() {
        return Err(bad("must be whole".to_owned()));
    }
    if name == "pods" && quantity.value() > MOST_PODS {
        return Err(bad(format!("is too much: a node has addresses for {MOST_PODS} pods")));
    }
    Ok(quantity.to_string())
}

fn label(name: &str, values: &str) -> Result<Vec<String>, NodeOptionError> {
    let values: Vec<String> = values.split('|').map(str::trim).map(ToOwned::to_owned).collect();
    let bad = values.iter().find_map(|v| Some((v.clone(), names::label_value(v).into_iter().next()?)));
    match bad {
        Some((value, why)) => {
            let why = format!("is no label: {why}");
            Err(NodeOptionError::Value { option: "--node-labels", name: name.to_owned(), value, why })
        }
        None => Ok(values),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(count: usize, capacity: &str, labels: &str, want: Result<&str, &str>) {
        let got = NodeOptions::parse(count, capacity, labels).map_err(|e| e.to_string());
        let got = got.map(|o| {
            let show = |(k, v): (&String, &String)| format!("{k}={v}");
            o.capacity.iter().map(show).collect::<Vec<_>>().join(",")
        });
        match want {
            Ok(text) => assert_eq!(got.as_deref(), Ok(text)),
            Err(text) => assert!(got.as_ref().is_err_and(|e| e.contains(text)), "{got:?}"),
        }
    }

    #[test]
    fn capacities_are_read_over_the_usual_ones() {
        let usual = "cpu=32,ephemeral-storage=256Gi,hugepages-2Mi=0,memory=128Gi,pods=110";
        check(3, "", "", Ok(usual));
        check(
            3,
            "cpu=500m, memory=1024Mi,nvidia.com/gpu=8",
            "zone=a|b",
            Ok("cpu=500m,ephemeral-storage=256Gi,hugepages-2Mi=0,memory=1Gi,nvidia.com/gpu=8,pods=110"),
        );
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_would_do() {
        check(10_001, "", "", Err("--nodes: 10001 are too many; at most 10000 have addresses"));
        check(1, "cpu", "", Err("--node-capacity: \"cpu\" is not of the form NAME=VALUE, such as cpu=32"));
        check(1, "=4", "", Err("is not of the form NAME=VALUE"));
        check(1, "cpu=many", "", Err("--node-capacity: cpu=many is no quantity; write one such as 32"));
        check(1, "cpu=-1", "", Err("--node-capacity: cpu=-1 is less than nothing"));
        check(1, "gpu=8", "", Err("--node-capacity: \"gpu\" is no resource; there are cpu, memory"));
        check(1, "nvidia.com/gpu=1500m", "", Err("must be whole"));
        check(1, "pods=300", "", Err("is too much: a node has addresses for 250 pods"));
        check(1, "n!=1", "", Err("--node-capacity: \"n!\" is no name: "));
        check(1, "", "zone=a b", Err("--node-labels: zone=a b is no label: "));
    }

    #[test]
    fn values_of_a_label_go_round() {
        let options = NodeOptions::parse(4, "", "zone=a|b,rack=r").unwrap();
        assert_eq!(options.labels["zone"], ["a", "b"]);
        assert_eq!(options.labels["rack"], ["r"]);
    }
}
