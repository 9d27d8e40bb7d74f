//! A first operator: keeps a ConfigMap for each Widget of `examples/widget-crd.yaml`.
//!
//!     kubectl apply -f examples/widget-crd.yaml -f examples/widget.yaml
//!     cargo run -p homeostat --example widget

use homeostat::{Context, Manager, Next, Operator, Result, process};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a `Widget` should be.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Widget", namespaced)]
pub struct WidgetSpec {
    color: Option<String>,
    size: Option<u8>,
}

struct Widgets;

impl Operator for Widgets {
    type Resource = Widget;
    type Owns = (ConfigMap,);
    type Reads = ();

    async fn reconcile(&self, widget: &Widget, cx: &Context<Self>) -> Result<Next> {
        let mut map = ConfigMap::default();
        map.metadata.name = widget.metadata.name.clone();
        let color = widget.spec.color.clone().unwrap_or_else(|| "grey".into());
        let size = widget.spec.size.unwrap_or(1).to_string();
        map.data = Some([("color".into(), color), ("size".into(), size)].into());
        cx.apply(map).await?;
        Ok(Next::done())
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    tracing_subscriber::fmt().init();
    let client = process::client(None, None).await?;
    Manager::new(client).with(Widgets).run(process::shutdown()).await?;
    Ok(())
}
