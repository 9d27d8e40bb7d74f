//! Tests of operators against a control plane inside the test: everything of `homeostat_cluster`, and a [`World`] that
//! makes the usual things short.
//!
//! A test starts a world, defines kinds, runs operators, changes objects, and waits until nothing more happens
//! ([`World::settle`]). Then it looks: at objects, at conditions, or at the whole as a text ([`World::tree`]) that a
//! snapshot test keeps. With `#[tokio::test(start_paused = true)]` all of it runs in virtual time.
//!
//! ```
//! use homeostat::testing::World;
//! use homeostat::{Context, Next, Operator, Result};
//! use k8s_openapi::api::core::v1::{ConfigMap, Secret};
//!
//! /// A ConfigMap for each Secret.
//! struct Copies;
//!
//! impl Operator for Copies {
//!     type Resource = Secret;
//!     type Owns = (ConfigMap,);
//!     type Reads = ();
//!
//!     async fn reconcile(&self, secret: &Secret, cx: &Context<Self>) -> Result<Next> {
//!         let mut map = ConfigMap::default();
//!         map.metadata.name = secret.metadata.name.clone();
//!         cx.apply(map).await?;
//!         Ok(Next::done())
//!     }
//! }
//!
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
//! # runtime.block_on(async {
//! let world = World::start().await;
//! world.run(Copies).await;
//! let mut secret = Secret::default();
//! secret.metadata.name = Some("password".into());
//! world.create(&secret).await;
//! world.settle().await;
//! assert_eq!(
//!     world.tree("default").await,
//!     "Secret/password\n\
//!      └── ConfigMap/password\n\
//!      Service/kubernetes\n"
//! );
//! # });
//! ```

mod settle;
mod snapshot;
mod ticker;
mod tree;
mod world;

pub use homeostat_cluster::*;

pub use settle::{Settle, Settled, Unsettled};
pub use world::{World, until};
