//! A program that was here before.

fn main() {}
