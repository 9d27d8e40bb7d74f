//! Apply configurations: built-in kinds of which only what is set is sent.
//!
//! Server-side apply makes the sender own what is sent. The structs of k8s-openapi have required fields that are always
//! there, and no way to tell "empty" from "not said"; here nothing is there until it is set, and what is set is sent
//! even where it is empty. They are what client-go calls apply configurations.
//!
//! ```
//! use homeostat_apply::apps::v1::{Deployment, DeploymentSpec};
//! use homeostat_apply::core::v1::{Container, PodSpec, PodTemplateSpec};
//! use serde_json::{Value, json};
//!
//! // A sidecar for somebody else's Deployment: nothing but the sidecar becomes ours.
//! let sidecar = Deployment::new("shop").in_namespace("prod").spec(DeploymentSpec::new().template(
//!     PodTemplateSpec::new().spec(PodSpec::new().containers([
//!         Container::new().name("proxy").image("proxy:1").resources(
//!             homeostat_apply::core::v1::ResourceRequirements::new().limits([("memory", "64Mi")]),
//!         ),
//!     ])),
//! ));
//! assert_eq!(
//!     Value::from(sidecar),
//!     json!({
//!         "apiVersion": "apps/v1",
//!         "kind": "Deployment",
//!         "metadata": {"name": "shop", "namespace": "prod"},
//!         "spec": {"template": {"spec": {"containers": [
//!             {"name": "proxy", "image": "proxy:1", "resources": {"limits": {"memory": "64Mi"}}},
//!         ]}}},
//!     }),
//! );
//! ```
//!
//! [`Context::apply`](homeostat_sdk::Context::apply) takes them where it takes the kind itself, and returns the kind.
//! Nothing is checked here: the server does that. They can't be read; for that there are the types of k8s-openapi.
//! Invariant: a type is a map of JSON and nothing else, so the thousands of setters cost little to compile.

mod fields;
#[macro_use]
mod macros;

pub use fields::IntOrString;

/// Metadata and selectors, which all kinds share.
pub mod meta {
    /// `meta/v1`.
    pub mod v1 {
        include!("../generated/meta_v1.rs");
    }
}

/// Pods, Services, ConfigMaps, Secrets, and what belongs to them.
pub mod core {
    /// `v1`.
    pub mod v1 {
        include!("../generated/core_v1.rs");
    }
}

/// Deployments, StatefulSets, DaemonSets.
pub mod apps {
    /// `apps/v1`.
    pub mod v1 {
        include!("../generated/apps_v1.rs");
    }
}

/// Horizontal autoscalers.
pub mod autoscaling {
    /// `autoscaling/v2`.
    pub mod v2 {
        include!("../generated/autoscaling_v2.rs");
    }
}

/// Jobs and CronJobs.
pub mod batch {
    /// `batch/v1`.
    pub mod v1 {
        include!("../generated/batch_v1.rs");
    }
}

/// Leases.
pub mod coordination {
    /// `coordination.k8s.io/v1`.
    pub mod v1 {
        include!("../generated/coordination_v1.rs");
    }
}

/// Endpoint slices.
pub mod discovery {
    /// `discovery.k8s.io/v1`.
    pub mod v1 {
        include!("../generated/discovery_v1.rs");
    }
}

/// Ingresses and network policies.
pub mod networking {
    /// `networking.k8s.io/v1`.
    pub mod v1 {
        include!("../generated/networking_v1.rs");
    }
}

/// Disruption budgets.
pub mod policy {
    /// `policy/v1`.
    pub mod v1 {
        include!("../generated/policy_v1.rs");
    }
}

/// Roles and their bindings.
pub mod rbac {
    /// `rbac.authorization.k8s.io/v1`.
    pub mod v1 {
        include!("../generated/rbac_v1.rs");
    }
}

/// Priority classes.
pub mod scheduling {
    /// `scheduling.k8s.io/v1`.
    pub mod v1 {
        include!("../generated/scheduling_v1.rs");
    }
}

/// Storage classes and drivers.
pub mod storage {
    /// `storage.k8s.io/v1`.
    pub mod v1 {
        include!("../generated/storage_v1.rs");
    }
}
