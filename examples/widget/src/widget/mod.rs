//! What a `Widget` stands for, and how the world is made to match it.

pub mod v1;

use homeostat::{Context, Next, Operator, Result, conditions};
use k8s_openapi::api::core::v1::ConfigMap;

use v1::Widget;

/// The ConfigMap that says what a widget is like. A pure function of the widget.
fn config_map(widget: &Widget) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = widget.metadata.name.clone();
    let color = widget.spec.color.clone().unwrap_or_else(|| "grey".into());
    let size = widget.spec.size.unwrap_or(1).to_string();
    map.data = Some([("color".into(), color), ("size".into(), size)].into());
    map
}

/// Makes the world match each `Widget`.
#[derive(Clone, Copy, Debug, Default)]
pub struct WidgetOperator;

impl Operator for WidgetOperator {
    type Resource = Widget;
    /// What it makes: watched, owner-referenced, garbage-collected, permitted. Such as `(Service, StatefulSet)`.
    type Owns = (ConfigMap,);
    /// What it only reads: watched, and permitted to read. Such as `(Secret,)`.
    type Reads = ();

    fn name() -> &'static str {
        "widgets.example.com"
    }

    async fn reconcile(&self, object: &Widget, cx: &Context<Self>) -> Result<Next> {
        cx.apply(config_map(object)).await?;

        let mut status = object.status.clone().unwrap_or_default();
        status.observed_generation = object.metadata.generation;
        let ready = conditions::condition(object, "Ready", true, "Reconciled", "");
        conditions::set(&mut status.conditions, ready, cx.clock().now());
        cx.status(status).await?;
        Ok(Next::done())
    }
}
