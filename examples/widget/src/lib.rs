//! What `widget-operator` consists of: a module for each kind, and the program that runs them.

pub mod widget;

use homeostat::Program;

/// The program. Its manifests follow from this, too: see `homeostat manifests`.
pub fn program() -> Program {
    Program::new(env!("CARGO_PKG_NAME"))
        .version(env!("CARGO_PKG_VERSION"))
        .kind::<widget::v1::Widget>()
        .operator(widget::WidgetOperator)
}
