// Made by `cargo xtask apply-types`.

types! {
    "storage.v1.CSIDriver" CSIDriver {
        spec "spec" one crate::storage::v1::CSIDriverSpec;
    }
    "storage.v1.CSIDriverSpec" CSIDriverSpec {
        attach_required "attachRequired" one bool;
        fs_group_policy "fsGroupPolicy" text;
        node_allocatable_update_period_seconds "nodeAllocatableUpdatePeriodSeconds" one i64;
        pod_info_on_mount "podInfoOnMount" one bool;
        prevent_pod_scheduling_if_missing "preventPodSchedulingIfMissing" one bool;
        requires_republish "requiresRepublish" one bool;
        se_linux_mount "seLinuxMount" one bool;
        service_account_token_in_secrets "serviceAccountTokenInSecrets" one bool;
        storage_capacity "storageCapacity" one bool;
        token_requests "tokenRequests" many crate::storage::v1::TokenRequest;
        volume_lifecycle_modes "volumeLifecycleModes" texts;
    }
    "storage.v1.CSINode" CSINode {
        spec "spec" one crate::storage::v1::CSINodeSpec;
    }
    "storage.v1.CSINodeDriver" CSINodeDriver {
        allocatable "allocatable" one crate::storage::v1::VolumeNodeResources;
        name "name" text;
        node_id "nodeID" text;
        topology_keys "topologyKeys" texts;
    }
    "storage.v1.CSINodeSpec" CSINodeSpec {
        drivers "drivers" many crate::storage::v1::CSINodeDriver;
    }
    "storage.v1.CSIStorageCapacity" CSIStorageCapacity {
        capacity "capacity" text;
        maximum_volume_size "maximumVolumeSize" text;
        node_topology "nodeTopology" one crate::meta::v1::LabelSelector;
        storage_class_name "storageClassName" text;
    }
    "storage.v1.StorageClass" StorageClass {
        allow_volume_expansion "allowVolumeExpansion" one bool;
        allowed_topologies "allowedTopologies" many crate::core::v1::TopologySelectorTerm;
        mount_options "mountOptions" texts;
        parameters "parameters" text_map;
        provisioner "provisioner" text;
        reclaim_policy "reclaimPolicy" text;
        volume_binding_mode "volumeBindingMode" text;
    }
    "storage.v1.TokenRequest" TokenRequest {
        audience "audience" text;
        expiration_seconds "expirationSeconds" one i64;
    }
    "storage.v1.VolumeAttachment" VolumeAttachment {
        spec "spec" one crate::storage::v1::VolumeAttachmentSpec;
    }
    "storage.v1.VolumeAttachmentSource" VolumeAttachmentSource {
        inline_volume_spec "inlineVolumeSpec" one crate::core::v1::PersistentVolumeSpec;
        persistent_volume_name "persistentVolumeName" text;
    }
    "storage.v1.VolumeAttachmentSpec" VolumeAttachmentSpec {
        attacher "attacher" text;
        node_name "nodeName" text;
        source "source" one crate::storage::v1::VolumeAttachmentSource;
    }
    "storage.v1.VolumeAttributesClass" VolumeAttributesClass {
        driver_name "driverName" text;
        parameters "parameters" text_map;
    }
    "storage.v1.VolumeNodeResources" VolumeNodeResources {
        count "count" one i32;
    }
}

parts! {
    CSIDriverSpec
    CSINodeDriver
    CSINodeSpec
    TokenRequest
    VolumeAttachmentSource
    VolumeAttachmentSpec
    VolumeNodeResources
}

kinds! {
    CSIDriver "storage.k8s.io/v1" k8s_openapi::api::storage::v1::CSIDriver;
    CSINode "storage.k8s.io/v1" k8s_openapi::api::storage::v1::CSINode;
    CSIStorageCapacity "storage.k8s.io/v1" k8s_openapi::api::storage::v1::CSIStorageCapacity;
    StorageClass "storage.k8s.io/v1" k8s_openapi::api::storage::v1::StorageClass;
    VolumeAttachment "storage.k8s.io/v1" k8s_openapi::api::storage::v1::VolumeAttachment;
    VolumeAttributesClass "storage.k8s.io/v1" k8s_openapi::api::storage::v1::VolumeAttributesClass;
}
