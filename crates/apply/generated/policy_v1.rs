// Made by `cargo xtask apply-types`.

types! {
    "policy.v1.PodDisruptionBudget" PodDisruptionBudget {
        spec "spec" one crate::policy::v1::PodDisruptionBudgetSpec;
    }
    "policy.v1.PodDisruptionBudgetSpec" PodDisruptionBudgetSpec {
        max_unavailable "maxUnavailable" int_or_string;
        min_available "minAvailable" int_or_string;
        selector "selector" one crate::meta::v1::LabelSelector;
        unhealthy_pod_eviction_policy "unhealthyPodEvictionPolicy" text;
    }
}

parts! {
    PodDisruptionBudgetSpec
}

kinds! {
    PodDisruptionBudget "policy/v1" k8s_openapi::api::policy::v1::PodDisruptionBudget;
}
