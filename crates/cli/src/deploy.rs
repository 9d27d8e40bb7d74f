//! `homeostat deploy` and `undeploy`: the whole program in a cluster, from `config/`.

use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::DynamicObject;
use kube::runtime::wait::{await_condition, conditions};
use serde_json::Value;

use crate::complaint::Complaint;
use crate::config::{self, Manifest};
use crate::project::Project;
use crate::remote::{Definitions, Intent, MANAGER, Where, display};

/// Flags of `deploy`.
#[derive(clap::Args)]
#[command(after_help = "Example:
  homeostat deploy --image registry.example.com/redis-operator:0.1.0 --wait")]
pub(crate) struct Deploy {
    /// The image to run
    #[arg(long, value_name = "IMAGE")]
    image: String,
    /// Make definitions this project's that the cluster has from somebody else
    #[arg(long)]
    take_over: bool,
    /// Wait until the program runs, for two minutes at most
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    cluster: Where,
    /// The project's folder
    #[arg(long, default_value = ".", value_name = "FOLDER")]
    path: PathBuf,
}

/// Flags of `undeploy`.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  homeostat undeploy")]
pub(crate) struct Undeploy {
    #[command(flatten)]
    cluster: Where,
    /// The project's folder
    #[arg(long, default_value = ".", value_name = "FOLDER")]
    path: PathBuf,
}

/// How long `--wait` waits.
const PATIENCE: Duration = Duration::from_secs(120);

fn split(manifests: Vec<Manifest>) -> (Vec<Value>, Vec<Value>) {
    let definitions = config::definitions(&manifests);
    let others =
        manifests.into_iter().filter(|m| m.kind() != "CustomResourceDefinition").map(|m| m.object).collect();
    (definitions, others)
}

/// An image reference, as far as a mistake in it can be seen.
fn image(text: &str) -> Result<(), Complaint> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/:@".contains(c);
    if !text.is_empty() && text.chars().all(plain) && !text.starts_with(['/', ':', '@', '-']) {
        return Ok(());
    }
    Err(Complaint::usage_text(format!("{text:?} is no image; write it as registry.example.com/name:tag")))
}

/// Applies everything.
pub(crate) async fn deploy(args: &Deploy) -> Result<(), Complaint> {
    image(&args.image)?;
    let (root, project) = Project::find(&args.path)?;
    let mut manifests = config::read(&root)?;
    config::set_image(&mut manifests, &args.image);
    let (definitions, others) = split(manifests);
    let definitions = Definitions { project: project.name.clone(), objects: definitions };
    let mut remote = args.cluster.connect().await?;
    let all: Vec<Value> = definitions.objects.iter().chain(&others).cloned().collect();
    remote.demand_rights(Intent::Apply, &all).await?;
    definitions.demand_ours(&remote, args.take_over).await?;
    definitions.apply(&mut remote).await?;
    for object in &definitions.objects {
        println!("     applied  {}", display(object));
    }
    for object in &others {
        if remote.apply(object).await? {
            println!("     applied  {}", display(object));
        } else {
            println!(
                "     skipped  {} (the cluster has no kind {})",
                display(object),
                object["kind"].as_str().unwrap_or_default()
            );
        }
    }
    if args.wait {
        for object in others.iter().filter(|o| o["kind"] == "Deployment") {
            running(remote.client().clone(), object).await?;
        }
    }
    Ok(())
}

async fn running(client: kube::Client, object: &Value) -> Result<(), Complaint> {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    let (namespace, name) = (text("namespace"), text("name"));
    let api: Api<Deployment> = Api::namespaced(client, &namespace);
    let done = await_condition(api, &name, conditions::is_deployment_completed());
    match tokio::time::timeout(PATIENCE, done).await {
        Ok(result) => {
            result?;
            println!("     running  deployment/{name}");
            Ok(())
        }
        Err(_) => Err(Complaint::new(format!(
            "deployment/{name} does not run after {} s; see `kubectl --namespace {namespace} describe pods`",
            PATIENCE.as_secs()
        ))),
    }
}

/// Whether nobody else has had a hand in it. A namespace that was there before is not to go with what was put into it.
fn only_ours(object: &DynamicObject) -> bool {
    let mut managers = object.metadata.managed_fields.iter().flatten().filter(|m| m.subresource.is_none());
    managers.all(|m| m.manager.as_deref() == Some(MANAGER))
}

/// Deletes everything but the definitions, and with them the people's objects.
pub(crate) async fn undeploy(args: &Undeploy) -> Result<(), Complaint> {
    let (root, project) = Project::find(&args.path)?;
    let (_, mut others) = split(config::read(&root)?);
    others.reverse();
    let mut remote = args.cluster.connect().await?;
    let mut ours = Vec::new();
    for object in others {
        let Some(there) = remote.get(&object).await? else { continue };
        let label = there.metadata.labels.as_ref().and_then(|l| l.get("app.kubernetes.io/name"));
        let labelled = label.is_some_and(|l| *l == project.name) || object["metadata"]["labels"].is_null();
        if labelled && (object["kind"] != "Namespace" || only_ours(&there)) {
            ours.push(object);
        } else {
            println!(
                "        kept  {} (its labels don't say that it is {}'s)",
                display(&object),
                project.name
            );
        }
    }
    remote.demand_rights(Intent::Delete, &ours).await?;
    for object in &ours {
        if remote.delete(object).await? {
            println!("     deleted  {}", display(object));
        }
    }
    println!("The definitions and their objects stay; `homeostat uninstall` removes them");
    Ok(())
}
