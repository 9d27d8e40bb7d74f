//! The short form: annotations of a pod that say the simplest things about its containers.
//!
//! `simulation.homeostat.dev/KEY` is about the pod's main containers, `simulation.homeostat.dev/KEY.CONTAINER` about
//! the container of that name, whatever its part. They come before any Behavior. What can't be read is told in an
//! event, and has no effect.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;

use super::choice::{Part, Subject};
use super::{ContainerBehavior, Exit, Pull, Span, Stage, Stop};

/// What the annotations' names begin with.
pub(crate) const PREFIX: &str = "simulation.homeostat.dev/";
/// Names that an annotation may have, before `.CONTAINER`.
const KEYS: [&str; 6] = ["exit", "ready", "pull", "stop", "cpu", "memory"];

/// What the pod's annotations say of a container.
pub(crate) fn behavior(subject: &Subject<'_>) -> ContainerBehavior {
    let mut said = ContainerBehavior::default();
    for (name, value) in subject.pod.metadata.annotations.iter().flatten() {
        let Some(rest) = name.strip_prefix(PREFIX) else { continue };
        let (key, container) = rest.split_once('.').map_or((rest, None), |(k, c)| (k, Some(c)));
        let about = container.map_or(subject.part == Part::Main, |c| c == subject.name);
        if about {
            // What can't be read is told by `problems`.
            let _ = read(key, value, &mut said);
        }
    }
    said
}

/// What is wrong with the pod's annotations.
pub(crate) fn problems(pod: &Pod) -> Vec<String> {
    let names = pod.spec.iter().flat_map(|s| {
        let ephemeral = s.ephemeral_containers.iter().flatten().map(|c| c.name.as_str());
        s.init_containers.iter().flatten().chain(&s.containers).map(|c| c.name.as_str()).chain(ephemeral)
    });
    let names: Vec<&str> = names.collect();
    let annotations = pod.metadata.annotations.iter().flatten();
    let problem = |(name, value): (&String, &String)| {
        let rest = name.strip_prefix(PREFIX)?;
        let (key, container) = rest.split_once('.').map_or((rest, None), |(k, c)| (k, Some(c)));
        if let Some(container) = container.filter(|c| !names.contains(c)) {
            return Some(format!("annotation {name}: the pod has no container {container:?}"));
        }
        read(key, value, &mut ContainerBehavior::default())
            .err()
            .map(|why| format!("annotation {name}: {why}"))
    };
    annotations.filter_map(problem).collect()
}

fn read(key: &str, value: &str, said: &mut ContainerBehavior) -> Result<(), String> {
    let value = value.trim();
    match key {
        "exit" => said.run.get_or_insert_default().stages.push(exit(value)?),
        "ready" => {
            let stage = ready(value)?;
            said.run.get_or_insert_default().stages.insert(0, stage);
        }
        "pull" => said.pull = Some(pull(value)),
        "stop" => said.stop = Some(stop(value)?),
        "cpu" => said.usage.get_or_insert_default().cpu = Some(quantity(value)?),
        "memory" => said.usage.get_or_insert_default().memory = Some(quantity(value)?),
        _ => return Err(format!("there is no {key:?}; there are {}", KEYS.join(", "))),
    }
    Ok(())
}

/// `CODE [REASON] [after DURATION]`.
fn exit(value: &str) -> Result<Stage, String> {
    let form =
        || format!("{value:?} is not of the form CODE [REASON] [after DURATION], such as \"0 after 5s\"");
    let mut words = value.split_whitespace();
    let code: u8 = words.next().and_then(|w| w.parse().ok()).ok_or_else(form)?;
    let (mut reason, mut lasts) = (None, None);
    while let Some(word) = words.next() {
        if word == "after" {
            let span = words.next().ok_or_else(form)?;
            lasts = Some(Span::parse(span).map_err(|e| e.to_string())?);
        } else if reason.is_none() && lasts.is_none() {
            reason = Some(word.to_owned());
        } else {
            return Err(form());
        }
    }
    let reason = reason.or_else(|| (code == 137).then(|| "OOMKilled".to_owned()));
    Ok(Stage { lasts, exit: Some(Exit { code: code.into(), reason, message: None }), ..Stage::default() })
}

/// `never`, or `after DURATION`.
fn ready(value: &str) -> Result<Stage, String> {
    let lasts = match value.strip_prefix("after ") {
        Some(span) => Some(Span::parse(span.trim()).map_err(|e| e.to_string())?),
        None if value == "never" => None,
        None => return Err(format!("{value:?} is neither \"never\" nor \"after DURATION\"")),
    };
    Ok(Stage { lasts, started: false, ready: false, ..Stage::default() })
}

/// A duration, or else why the pull fails.
fn pull(value: &str) -> Pull {
    match Span::parse(value) {
        Ok(delay) => Pull { delay: Some(delay), ..Pull::default() },
        Err(_) => Pull { error: Some(value.to_owned()), ..Pull::default() },
    }
}

/// `never`, or `[CODE] after DURATION`.
fn stop(value: &str) -> Result<Stop, String> {
    if value == "never" {
        return Ok(Stop { ignore: true, ..Stop::default() });
    }
    let stage =
        exit(value.strip_prefix("after ").map_or(value.to_owned(), |v| format!("0 after {v}")).as_str());
    let stage = stage.map_err(|_| format!("{value:?} is neither \"never\" nor \"[CODE] after DURATION\""))?;
    let code = stage.exit.map_or(0, |e| e.code);
    Ok(Stop { delay: stage.lasts.or(Some(Span(Duration::ZERO))), code, ..Stop::default() })
}

fn quantity(value: &str) -> Result<String, String> {
    match homeostat_model::quantity::Quantity::parse(value) {
        Ok(_) => Ok(value.to_owned()),
        Err(e) => Err(format!("{value:?}: {e}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(key: &str, value: &str, want: Result<serde_json::Value, &str>) {
        let mut said = ContainerBehavior::default();
        let got = read(key, value, &mut said).map(|()| serde_json::to_value(&said).unwrap());
        assert_eq!(got, want.map_err(ToOwned::to_owned), "{key}: {value}");
    }

    fn stage(extra: serde_json::Value) -> serde_json::Value {
        let mut stage = serde_json::json!({"started": true, "ready": true, "live": true});
        for (k, v) in extra.as_object().unwrap() {
            stage[k] = v.clone();
        }
        serde_json::json!({"run": {"stages": [stage]}})
    }

    #[test]
    fn the_short_forms_say_what_the_long_ones_do() {
        use serde_json::json;
        check("exit", "0 after 5s", Ok(stage(json!({"for": "5s", "exit": {"code": 0}}))));
        check("exit", "137", Ok(stage(json!({"exit": {"code": 137, "reason": "OOMKilled"}}))));
        check("exit", "1 Broken after 1m", {
            Ok(stage(json!({"for": "1m0s", "exit": {"code": 1, "reason": "Broken"}})))
        });
        check("ready", "never", Ok(stage(json!({"started": false, "ready": false}))));
        check("ready", "after 30s", Ok(stage(json!({"for": "30s", "started": false, "ready": false}))));
        check("pull", "2s", Ok(json!({"pull": {"delay": "2s"}})));
        check("pull", "no such image", Ok(json!({"pull": {"error": "no such image"}})));
        check("stop", "never", Ok(json!({"stop": {"code": 0, "ignore": true}})));
        check("stop", "after 3s", Ok(json!({"stop": {"code": 0, "delay": "3s"}})));
        check("stop", "143 after 3s", Ok(json!({"stop": {"code": 143, "delay": "3s"}})));
        check("memory", "1Gi", Ok(json!({"usage": {"memory": "1Gi"}})));
        check("exit", "256", {
            Err("\"256\" is not of the form CODE [REASON] [after DURATION], such as \"0 after 5s\"")
        });
        check("exit", "0 after x", Err("\"x\" is no length of time; write one such as 300ms, 5s or 1h30m"));
        check("exits", "0", Err("there is no \"exits\"; there are exit, ready, pull, stop, cpu, memory"));
    }

    #[test]
    fn an_annotation_for_a_container_that_there_is_not_is_a_problem() {
        let pod: Pod = serde_json::from_value(serde_json::json!({
            "metadata": {"annotations": {"simulation.homeostat.dev/exit.b": "0", "other.dev/exit": "x"}},
            "spec": {"containers": [{"name": "a"}]}
        }))
        .unwrap();
        assert_eq!(
            problems(&pod),
            ["annotation simulation.homeostat.dev/exit.b: the pod has no container \"b\""]
        );
    }
}
