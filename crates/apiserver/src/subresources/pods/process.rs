//! What reads from, or talks to, the processes of a pod: logs, exec, attach, port-forward. Simulated nodes run none, so
//! whoever asks is told so in words; a container that isn't there or has not run is refused as in Kubernetes. Of a log
//! that never grows, `follow`, `sinceSeconds` and `sinceTime` change nothing.
//!
//! Source: `LogLocation` and `ExecLocation` of the pods' registry, and the kubelet's check of a container's state.

use std::sync::Arc;

use homeostat_model::Status;
use homeostat_model::status::Result;
use serde_json::Value;

use crate::object;
use crate::options::Query;
use crate::registry::Target;
use crate::respond::Answer;
use crate::server::{Call, Server};

/// The lists of a pod's containers, with those of their statuses.
const LISTS: [(&str, &str); 3] = [
    ("containers", "containerStatuses"),
    ("initContainers", "initContainerStatuses"),
    ("ephemeralContainers", "ephemeralContainerStatuses"),
];

fn pod(server: &Server, target: &Target, call: &Call) -> Result<Value> {
    let name = &call.info.path_name;
    let key = object::store_name(&call.info.namespace, name);
    let record = server.config.store.get(&target.resource.collection, &key);
    let record = record.ok_or_else(|| Status::not_found(&target.resource.id, name))?;
    Ok(crate::read::value(&record, target))
}

fn names<'a>(pod: &'a Value, list: &str) -> Vec<&'a str> {
    let items = pod["spec"][list].as_array().into_iter().flatten();
    items.filter_map(|c| c["name"].as_str()).collect()
}

/// The container that is meant: the one that is named, or the only one.
fn container<'a>(pod: &'a Value, given: &str) -> Result<&'a str> {
    let name = object::name(pod);
    if !given.is_empty() {
        let mut all = LISTS.iter().flat_map(|(list, _)| names(pod, list));
        return all
            .find(|n| *n == given)
            .ok_or_else(|| Status::bad_request(format!("container {given} is not valid for pod {name}")));
    }
    let (containers, init) = (names(pod, "containers"), names(pod, "initContainers"));
    match &containers[..] {
        [only] => Ok(only),
        _ => {
            let mut why = format!(
                "a container name must be specified for pod {name}, choose one of: [{}]",
                containers.join(" ")
            );
            if !init.is_empty() {
                why.push_str(&format!(" or one of the init containers: [{}]", init.join(" ")));
            }
            Err(Status::bad_request(why))
        }
    }
}

fn host(pod: &Value) -> Option<&str> {
    pod["spec"]["nodeName"].as_str().filter(|n| !n.is_empty())
}

/// When the run began whose log is asked for; why there is none, in the kubelet's words.
fn began<'a>(pod: &'a Value, container: &str, previous: bool) -> std::result::Result<&'a str, String> {
    let of = format!("container {container:?} in pod {:?}", object::name(pod));
    let mut statuses =
        LISTS.iter().flat_map(|(_, list)| pod["status"][list].as_array().into_iter().flatten());
    let Some(status) = statuses.find(|s| s["name"] == container) else {
        return Err(format!("{of} is not available"));
    };
    let (now, last) = (&status["state"], &status["lastState"]["terminated"]);
    // Ended without ever having run: there is no log of it.
    let ran = |end: &'a Value| {
        let id = end["containerID"].as_str().unwrap_or_default();
        (!id.is_empty()).then(|| end["startedAt"].as_str().unwrap_or_default())
    };
    if previous {
        return ran(last).ok_or_else(|| format!("previous terminated {of} not found"));
    }
    if now["running"].is_object() {
        return Ok(now["running"]["startedAt"].as_str().unwrap_or_default());
    }
    let ended = &now["terminated"];
    if ended.is_object() || last.is_object() {
        return ran(ended).or_else(|| ran(last)).ok_or_else(|| format!("{of} is terminated"));
    }
    Err(match now["waiting"]["reason"].as_str() {
        Some("ErrImagePull") => format!("{of} is waiting to start: image can't be pulled"),
        Some("ImagePullBackOff") => format!("{of} is waiting to start: trying and failing to pull image"),
        Some(reason) => format!("{of} is waiting to start: {reason}"),
        None => format!("{of} is waiting to start - no logs yet"),
    })
}

/// The part of a log that is asked for: its last lines, with times, no more than so many bytes.
fn part(lines: &[String], began: &str, query: &Query) -> String {
    let number = |key: &str| query.get(key).and_then(|n| n.parse::<usize>().ok());
    let timestamps = query.flag("timestamps");
    let skip = lines.len().saturating_sub(number("tailLines").unwrap_or(usize::MAX));
    let mut text = String::new();
    for line in lines.iter().skip(skip) {
        if timestamps {
            text.push_str(began);
            text.push(' ');
        }
        text.push_str(line);
        text.push('\n');
    }
    if let Some(limit) = number("limitBytes") {
        let end = (0..=limit.min(text.len())).rev().find(|i| text.is_char_boundary(*i));
        text.truncate(end.unwrap_or(0));
    }
    text
}

/// `GET pods/NAME/log`.
pub(crate) fn log(server: &Arc<Server>, target: &Target, call: &Call) -> Result<Answer> {
    let pod = pod(server, target, call)?;
    let container = container(&pod, call.query.get("container").unwrap_or_default())?;
    if host(&pod).is_none() {
        return Ok(Answer::text(204, ""));
    }
    let previous = call.query.flag("previous");
    let began = began(&pod, container, previous).map_err(Status::bad_request)?;
    let lines = [
        format!(
            "Container {container} of pod {}/{} is simulated: it has no process, and so no output of its own.",
            call.info.namespace, call.info.path_name
        ),
        "What it does is said by the pod's annotations simulation.homeostat.dev/* and by Behaviors \
         (kubectl get behaviors); without any it runs on and is ready."
            .to_owned(),
    ];
    Ok(Answer::text(200, part(&lines, began, &call.query)))
}

/// `exec`, `attach`, `portforward`, `proxy`: nodes here run nothing to connect to.
pub(crate) fn connect(server: &Arc<Server>, target: &Target, call: &Call, what: &str) -> Result<Answer> {
    let pod = pod(server, target, call)?;
    if matches!(what, "exec" | "attach") {
        container(&pod, call.query.get("container").unwrap_or_default())?;
    }
    let name = &call.info.path_name;
    Err(Status::bad_request(match host(&pod) {
        None => format!("pod {name} does not have a host assigned"),
        Some(node) => format!("node {node} is simulated: there is no process in pod {name}"),
    }))
}
