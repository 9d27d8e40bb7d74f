//! The events that a kubelet tells about a pod's containers, with its reasons and texts.
//!
//! Source: kubelet's `events` package, `image_manager.go` and `kuberuntime_container.go`.

use homeostat_sdk::Event;
use k8s_openapi::api::core::v1::{Container, Pod, ResourceRequirements};
use serde::Serialize;

use crate::behavior::choice::Part;
use crate::pressure;
use crate::runtime::{News, Plan, ProbeKind, Sandbox, What, Why};
use crate::status::{DEADLINE, Pending, pull_error};
use homeostat_model::duration::go;

/// The events for one piece of news, in order, told by the pod's node and, but for those of the whole pod, about the
/// container.
pub(crate) fn events(plan: &Plan<'_>, sandbox: &Sandbox, news: &News) -> Vec<Event> {
    let node = plan.pod().spec.as_ref().and_then(|s| s.node_name.as_deref()).unwrap_or_default();
    let field = plan.containers.get(news.container).filter(|_| !news.what.is_of_pod()).map(|c| {
        let list = match c.part {
            Part::Init | Part::Sidecar => "initContainers",
            Part::Main => "containers",
            Part::Ephemeral => "ephemeralContainers",
        };
        format!("spec.{list}{{{}}}", c.name)
    });
    let told = texts(plan, sandbox, news).into_iter().map(|event| event.instance(node));
    match field {
        Some(field) => told.map(|event| event.field(&*field)).collect(),
        None => told.collect(),
    }
}

fn texts(plan: &Plan<'_>, sandbox: &Sandbox, news: &News) -> Vec<Event> {
    let Some(container) = plan.containers.get(news.container) else { return Vec::new() };
    let (name, image) = (container.name, container.image);
    let act = sandbox.containers.get(news.container).map(|r| plan.act(news.container, r.restarts));
    let pod = || {
        let meta = &plan.pod().metadata;
        let text = |t: &Option<String>| t.clone().unwrap_or_default();
        format!("{}_{}({})", text(&meta.name), text(&meta.namespace), text(&meta.uid))
    };
    let failed = |text: String| Event::warning("Failed", text).action("Starting");
    match &news.what {
        What::Pulling => {
            vec![Event::normal("Pulling", format!("Pulling image \"{image}\"")).action("Pulling")]
        }
        What::Pulled(took) => {
            let (took, size) = (go(*took), act.map_or(0, |a| a.size));
            let text = format!(
                "Successfully pulled image \"{image}\" in {took} ({took} including waiting). Image size: {size} bytes."
            );
            vec![Event::normal("Pulled", text).action("Pulling")]
        }
        What::Present => {
            let text = format!(
                "Container image \"{image}\" already present on machine and can be accessed by the pod"
            );
            vec![Event::normal("Pulled", text).action("Pulling")]
        }
        What::PullFailed => {
            let why = sandbox.containers.get(news.container).map(|r| pull_error(plan, news.container, r));
            let text = format!("Failed to pull image \"{image}\": {}", why.unwrap_or_default());
            vec![failed(text), failed("Error: ErrImagePull".to_owned())]
        }
        What::PullBackOff => vec![
            Event::normal("BackOff", format!("Back-off pulling image \"{image}\"")).action("Pulling"),
            failed("Error: ImagePullBackOff".to_owned()),
        ],
        What::NeverPull => {
            let text = format!("Container image \"{image}\" is not present with pull policy of Never");
            vec![
                Event::warning("ErrImageNeverPull", text).action("Pulling"),
                failed("Error: ErrImageNeverPull".to_owned()),
            ]
        }
        What::FailedMount => {
            let Some((volume, why)) = &plan.lacking.volume else { return Vec::new() };
            let text = format!("MountVolume.SetUp failed for volume \"{volume}\" : {why}");
            vec![Event::warning("FailedMount", text).action("Mounting")]
        }
        What::Misconfigured => {
            let why = plan.misconfigured(news.container).unwrap_or_default();
            vec![failed(format!("Error: {why}"))]
        }
        What::Started => vec![
            Event::normal("Created", "Container created").action("Starting"),
            Event::normal("Started", "Container started").action("Starting"),
        ],
        What::StartFailed => {
            let why = act.and_then(|a| a.start_error.clone()).unwrap_or_default();
            vec![
                Event::normal("Created", "Container created").action("Starting"),
                failed(format!("Error: {why}")),
            ]
        }
        What::Killing(why) => {
            let again = |what: &str| match container.restarts_after(137) {
                true => format!("Container {name} failed {what} probe, will be restarted"),
                false => format!("Container {name} failed {what} probe"),
            };
            let text = match why {
                Why::Stopping => format!("Stopping container {name}"),
                Why::Liveness => again("liveness"),
                Why::Startup => again("startup"),
                Why::Resize => format!("Container {name} resize requires restart"),
            };
            vec![Event::normal("Killing", text).action("Killing")]
        }
        What::BackOff => {
            let text = format!("Back-off restarting failed container {name} in pod {}", pod());
            vec![Event::warning("BackOff", text).action("Restarting")]
        }
        What::Unhealthy(kind) => {
            let (what, of) = match kind {
                ProbeKind::Startup => ("Startup", &container.startup),
                ProbeKind::Readiness => ("Readiness", &container.readiness),
                ProbeKind::Liveness => ("Liveness", &container.liveness),
            };
            let why = of.as_ref().map_or("", |p| p.failed);
            vec![Event::warning("Unhealthy", format!("{what} probe failed: {why}")).action("Probing")]
        }
        What::Deadline => vec![Event::normal("DeadlineExceeded", DEADLINE).action("Killing")],
        What::Evicted => {
            let why = sandbox.eviction.as_deref().unwrap_or_default();
            vec![Event::warning(pressure::REASON, why).action("Evicting")]
        }
        What::ResizeStarted => {
            let text = summary("Pod resize started", plan.pod(), "");
            vec![Event::normal("ResizeStarted", text).action("Resizing")]
        }
        What::ResizeCompleted => {
            let text = summary("Pod resize completed", plan.pod(), "");
            vec![Event::normal("ResizeCompleted", text).action("Resizing")]
        }
        What::ResizePending(Pending { reason, message }) => {
            let text = summary(&format!("Pod resize {reason}"), plan.pod(), message);
            vec![Event::warning(format!("Resize{reason}"), text).action("Resizing")]
        }
    }
}

/// What the events of a resize say of the resources that are asked for, in the order in which kubelets write it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary<'a> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    init_containers: Vec<Asked<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    containers: Vec<Asked<'a>>,
    generation: i64,
    #[serde(skip_serializing_if = "str::is_empty")]
    error: &'a str,
}

#[derive(Serialize)]
struct Asked<'a> {
    name: &'a str,
    resources: ResourceRequirements,
}

impl<'a> Asked<'a> {
    fn of(container: &'a Container) -> Self {
        Self { name: &container.name, resources: container.resources.clone().unwrap_or_default() }
    }
}

/// Source: kubelet's `podResizeMessage`. There is no `ResizeError`: a simulated runtime gives what was promised.
fn summary(begins: &str, pod: &Pod, error: &str) -> String {
    let spec = pod.spec.as_ref();
    let summary = Summary {
        init_containers: spec
            .iter()
            .flat_map(|s| s.init_containers.iter().flatten())
            .map(Asked::of)
            .collect(),
        containers: spec.iter().flat_map(|s| &s.containers).map(Asked::of).collect(),
        generation: pod.metadata.generation.unwrap_or_default(),
        error,
    };
    serde_json::to_string(&summary).map_or(begins.to_owned(), |summary| format!("{begins}: {summary}"))
}
