// Made by `cargo xtask apply-types`.

types! {
    "apps.v1.ControllerRevision" ControllerRevision {
        data "data" json;
        revision "revision" one i64;
    }
    "apps.v1.DaemonSet" DaemonSet {
        spec "spec" one crate::apps::v1::DaemonSetSpec;
    }
    "apps.v1.DaemonSetSpec" DaemonSetSpec {
        min_ready_seconds "minReadySeconds" one i32;
        revision_history_limit "revisionHistoryLimit" one i32;
        selector "selector" one crate::meta::v1::LabelSelector;
        template "template" one crate::core::v1::PodTemplateSpec;
        update_strategy "updateStrategy" one crate::apps::v1::DaemonSetUpdateStrategy;
    }
    "apps.v1.DaemonSetUpdateStrategy" DaemonSetUpdateStrategy {
        rolling_update "rollingUpdate" one crate::apps::v1::RollingUpdateDaemonSet;
        type_ "type" text;
    }
    "apps.v1.Deployment" Deployment {
        spec "spec" one crate::apps::v1::DeploymentSpec;
    }
    "apps.v1.DeploymentSpec" DeploymentSpec {
        min_ready_seconds "minReadySeconds" one i32;
        paused "paused" one bool;
        progress_deadline_seconds "progressDeadlineSeconds" one i32;
        replicas "replicas" one i32;
        revision_history_limit "revisionHistoryLimit" one i32;
        selector "selector" one crate::meta::v1::LabelSelector;
        strategy "strategy" one crate::apps::v1::DeploymentStrategy;
        template "template" one crate::core::v1::PodTemplateSpec;
    }
    "apps.v1.DeploymentStrategy" DeploymentStrategy {
        rolling_update "rollingUpdate" one crate::apps::v1::RollingUpdateDeployment;
        type_ "type" text;
    }
    "apps.v1.ReplicaSet" ReplicaSet {
        spec "spec" one crate::apps::v1::ReplicaSetSpec;
    }
    "apps.v1.ReplicaSetSpec" ReplicaSetSpec {
        min_ready_seconds "minReadySeconds" one i32;
        replicas "replicas" one i32;
        selector "selector" one crate::meta::v1::LabelSelector;
        template "template" one crate::core::v1::PodTemplateSpec;
    }
    "apps.v1.RollingUpdateDaemonSet" RollingUpdateDaemonSet {
        max_surge "maxSurge" int_or_string;
        max_unavailable "maxUnavailable" int_or_string;
    }
    "apps.v1.RollingUpdateDeployment" RollingUpdateDeployment {
        max_surge "maxSurge" int_or_string;
        max_unavailable "maxUnavailable" int_or_string;
    }
    "apps.v1.RollingUpdateStatefulSetStrategy" RollingUpdateStatefulSetStrategy {
        max_unavailable "maxUnavailable" int_or_string;
        partition "partition" one i32;
    }
    "apps.v1.StatefulSet" StatefulSet {
        spec "spec" one crate::apps::v1::StatefulSetSpec;
    }
    "apps.v1.StatefulSetOrdinals" StatefulSetOrdinals {
        start "start" one i32;
    }
    "apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy" StatefulSetPersistentVolumeClaimRetentionPolicy {
        when_deleted "whenDeleted" text;
        when_scaled "whenScaled" text;
    }
    "apps.v1.StatefulSetSpec" StatefulSetSpec {
        min_ready_seconds "minReadySeconds" one i32;
        ordinals "ordinals" one crate::apps::v1::StatefulSetOrdinals;
        persistent_volume_claim_retention_policy "persistentVolumeClaimRetentionPolicy" one crate::apps::v1::StatefulSetPersistentVolumeClaimRetentionPolicy;
        pod_management_policy "podManagementPolicy" text;
        replicas "replicas" one i32;
        revision_history_limit "revisionHistoryLimit" one i32;
        selector "selector" one crate::meta::v1::LabelSelector;
        service_name "serviceName" text;
        template "template" one crate::core::v1::PodTemplateSpec;
        update_strategy "updateStrategy" one crate::apps::v1::StatefulSetUpdateStrategy;
        volume_claim_templates "volumeClaimTemplates" many crate::core::v1::PersistentVolumeClaim;
    }
    "apps.v1.StatefulSetUpdateStrategy" StatefulSetUpdateStrategy {
        rolling_update "rollingUpdate" one crate::apps::v1::RollingUpdateStatefulSetStrategy;
        type_ "type" text;
    }
}

parts! {
    DaemonSetSpec
    DaemonSetUpdateStrategy
    DeploymentSpec
    DeploymentStrategy
    ReplicaSetSpec
    RollingUpdateDaemonSet
    RollingUpdateDeployment
    RollingUpdateStatefulSetStrategy
    StatefulSetOrdinals
    StatefulSetPersistentVolumeClaimRetentionPolicy
    StatefulSetSpec
    StatefulSetUpdateStrategy
}

kinds! {
    ControllerRevision "apps/v1" k8s_openapi::api::apps::v1::ControllerRevision;
    DaemonSet "apps/v1" k8s_openapi::api::apps::v1::DaemonSet;
    Deployment "apps/v1" k8s_openapi::api::apps::v1::Deployment;
    ReplicaSet "apps/v1" k8s_openapi::api::apps::v1::ReplicaSet;
    StatefulSet "apps/v1" k8s_openapi::api::apps::v1::StatefulSet;
}
