//! Storage: classes, volumes, claims, and what CSI drivers say of themselves.

pub(crate) mod claim;
mod class;
mod volume;

pub(super) use claim::Claims;
pub(super) use class::{AttributesClasses, CsiDrivers, CsiNodes, StorageClasses, VolumeAttachments};
pub(super) use volume::Volumes;
