// Made by `cargo xtask apply-types`.

types! {
    "meta.v1.LabelSelector" LabelSelector {
        match_expressions "matchExpressions" many crate::meta::v1::LabelSelectorRequirement;
        match_labels "matchLabels" text_map;
    }
    "meta.v1.LabelSelectorRequirement" LabelSelectorRequirement {
        key "key" text;
        operator "operator" text;
        values "values" texts;
    }
    "meta.v1.ObjectMeta" ObjectMeta {
        annotations "annotations" text_map;
        finalizers "finalizers" texts;
        generate_name "generateName" text;
        labels "labels" text_map;
        name "name" text;
        namespace "namespace" text;
        owner_references "ownerReferences" many crate::meta::v1::OwnerReference;
        resource_version "resourceVersion" text;
        uid "uid" text;
    }
    "meta.v1.OwnerReference" OwnerReference {
        api_version "apiVersion" text;
        block_owner_deletion "blockOwnerDeletion" one bool;
        controller "controller" one bool;
        kind "kind" text;
        name "name" text;
        uid "uid" text;
    }
}

parts! {
    LabelSelector
    LabelSelectorRequirement
    ObjectMeta
    OwnerReference
}
