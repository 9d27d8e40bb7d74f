//! What a `Widget` stands for, and how the world is made to match it.

pub mod v1;

use homeostat::{Context, Next, Operator, Result, conditions};

use v1::Widget;

/// Makes the world match each `Widget`.
#[derive(Clone, Copy, Debug, Default)]
pub struct WidgetOperator;

impl Operator for WidgetOperator {
    type Resource = Widget;
    /// What it makes: watched, owner-referenced, garbage-collected, permitted. Such as `(Service, StatefulSet)`.
    type Owns = ();
    /// What it only reads: watched, and permitted to read. Such as `(Secret,)`.
    type Reads = ();

    fn name() -> &'static str {
        "widgets.example.com"
    }

    async fn reconcile(&self, object: &Widget, cx: &Context<Self>) -> Result<Next> {
        // Apply here what the object stands for: `cx.apply(service(object)).await?`.

        let mut status = object.status.clone().unwrap_or_default();
        status.observed_generation = object.metadata.generation;
        let ready = conditions::condition(object, "Ready", true, "Reconciled", "");
        conditions::set(&mut status.conditions, ready, cx.clock().now());
        cx.status(status).await?;
        Ok(Next::done())
    }
}
