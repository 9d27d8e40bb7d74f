//! The book's Rust blocks, compiled as documentation tests. There is nothing else here.
//!
//! The pages are in `src/`, for mdBook. Invariant: every page is in the summary and, where it has Rust, here
//! (`tests/pages.rs`).

#![cfg(doctest)]

/// One item for each page with Rust in it.
macro_rules! pages {
    ($($page:ident: $path:literal,)*) => {
        $(#[doc = include_str!($path)] pub mod $page {})*
    };
}

pages! {
    concepts: "src/concepts.md",
    external_resources: "src/recipes/external-resources.md",
    secret_rotation: "src/recipes/secret-rotation.md",
    webhooks: "src/recipes/webhooks.md",
    versions: "src/recipes/versions.md",
    many_clusters: "src/recipes/many-clusters.md",
    testing: "src/recipes/testing.md",
    virtual_time: "src/recipes/virtual-time.md",
    kube_rs: "src/from/kube-rs.md",
    schemas: "src/reference/schemas.md",
}
