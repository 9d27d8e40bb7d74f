//! `Widget` against a control plane inside the test: an API server, garbage collection, namespaces, nodes. Its
//! time is virtual, so nothing here takes long.

use homeostat::testing::World;

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
