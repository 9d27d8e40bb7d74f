//! `Widget` against a control plane inside the test: an API server, garbage collection, namespaces, nodes. Its
//! time is virtual, so nothing here takes long.

use homeostat::testing::World;
use k8s_openapi::api::core::v1::ConfigMap;

use widget_operator::widget::WidgetOperator;
use widget_operator::widget::v1::{Widget, WidgetSpec};

#[tokio::test(start_paused = true)]
async fn it_becomes_ready() {
    let world = World::start().await;
    let program = widget_operator::program();
    for definition in program.parts().definitions().expect("definitions") {
        world.define_as(definition).await;
    }
    // With exactly the rights that follow from its types.
    world.run(WidgetOperator).await;

    let object = Widget::new("sample", WidgetSpec::default());
    world.create(&object).await;
    // Panics where the operator goes on writing for ever.
    world.settle().await;
    world.condition::<Widget>("sample", "Ready", true).await;
}

/// The user's own definition and object, from `examples/`.
fn example<T: serde::de::DeserializeOwned>(name: &str) -> T {
    let path = format!("{}/../{name}", env!("CARGO_MANIFEST_DIR"));
    serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_config_map_says_what_a_widget_is_like() {
    let world = World::start().await;
    let program = widget_operator::program();
    for definition in program.parts().definitions().expect("definitions") {
        world.define_as(definition).await;
    }
    world.run(WidgetOperator).await;
    let widget: Widget = example("widget.yaml");
    world.create(&widget).await;
    world.settle().await;
    let map: ConfigMap = world.get("my-widget").await.expect("a ConfigMap");
    let data = map.data.unwrap_or_default();
    assert_eq!((data["color"].as_str(), data["size"].as_str()), ("blue", "42"));

    // It comes back, and goes with its widget.
    world.delete::<ConfigMap>("my-widget").await;
    world.settle().await;
    assert!(world.get::<ConfigMap>("my-widget").await.is_some());
    world.delete::<Widget>("my-widget").await;
    world.settle().await;
    assert!(world.get::<ConfigMap>("my-widget").await.is_none());
}
