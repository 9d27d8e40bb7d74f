//! Rules of names, labels and object metadata, with apimachinery's texts.
//!
//! The functions of single values return what is wrong in words, empty when nothing is; those of objects return
//! field errors. Nothing here knows a resource beyond what a caller passes in.
//! Invariant: pure functions of their input.

mod names;
mod object_meta;

pub use names::{
    dns1035_label, dns1123_label, dns1123_label_value, dns1123_subdomain, dns1123_subdomain_value,
    field_manager, label_value, path_segment_name, qualified_name,
};
pub use object_meta::{
    Meta, annotations, label_selector, labels, managed_fields, object_meta, object_meta_update,
    owner_references,
};
