//! redis-operator
fn main() {}
