//! Creating CRDs: each definition that the reference was sent, with the causes it refused it for.

use homeostat_model::field::Error;
use homeostat_model::validation::dns1123_subdomain;
use homeostat_resources::crd;
use serde_json::Value;

fn errors(mut definition: Value) -> Vec<Error> {
    crd::default(&mut definition);
    crd::prepare_create(&mut definition);
    // The API server checks names of all objects.
    let name = definition["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let mut errors: Vec<Error> = dns1123_subdomain(&name, false)
        .into_iter()
        .map(|e| Error::invalid("metadata.name", &*name, e))
        .collect();
    errors.extend(crd::validate_create(&definition));
    errors
}

/// Long texts were cut in the recording, and end with an ellipsis.
fn reads_as(found: &str, recorded: &str) -> bool {
    match recorded.strip_suffix('…') {
        Some(start) => found.starts_with(start.trim_end()),
        None => found == recorded,
    }
}

#[test]
fn every_recorded_definition_is_taken_or_refused_as_recorded() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("data/crd-creates.json")).unwrap();
    let mut wrong = Vec::new();
    for case in &cases {
        let mut found: Vec<(String, String, String)> = errors(case["crd"].clone())
            .into_iter()
            .map(|e| (e.kind.reason().to_owned(), e.path.clone(), e.body()))
            .collect();
        let mut missing = Vec::new();
        for cause in case["causes"].as_array().unwrap() {
            let text = |i: usize| cause[i].as_str().unwrap();
            let at = found.iter().position(|(r, p, m)| r == text(0) && p == text(1) && reads_as(m, text(2)));
            match at {
                Some(at) => drop(found.remove(at)),
                None => missing.push(cause.clone()),
            }
        }
        if !missing.is_empty() || !found.is_empty() {
            wrong.push(format!("{}:\n  missing {missing:#?}\n  instead {found:#?}", case["from"]));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}
