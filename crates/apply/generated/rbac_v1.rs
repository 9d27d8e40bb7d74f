// Made by `cargo xtask apply-types`.

types! {
    "rbac.v1.AggregationRule" AggregationRule {
        cluster_role_selectors "clusterRoleSelectors" many crate::meta::v1::LabelSelector;
    }
    "rbac.v1.ClusterRole" ClusterRole {
        aggregation_rule "aggregationRule" one crate::rbac::v1::AggregationRule;
        rules "rules" many crate::rbac::v1::PolicyRule;
    }
    "rbac.v1.ClusterRoleBinding" ClusterRoleBinding {
        role_ref "roleRef" one crate::rbac::v1::RoleRef;
        subjects "subjects" many crate::rbac::v1::Subject;
    }
    "rbac.v1.PolicyRule" PolicyRule {
        api_groups "apiGroups" texts;
        non_resource_urls "nonResourceURLs" texts;
        resource_names "resourceNames" texts;
        resources "resources" texts;
        verbs "verbs" texts;
    }
    "rbac.v1.Role" Role {
        rules "rules" many crate::rbac::v1::PolicyRule;
    }
    "rbac.v1.RoleBinding" RoleBinding {
        role_ref "roleRef" one crate::rbac::v1::RoleRef;
        subjects "subjects" many crate::rbac::v1::Subject;
    }
    "rbac.v1.RoleRef" RoleRef {
        api_group "apiGroup" text;
        kind "kind" text;
        name "name" text;
    }
    "rbac.v1.Subject" Subject {
        api_group "apiGroup" text;
        kind "kind" text;
        name "name" text;
        namespace "namespace" text;
    }
}

parts! {
    AggregationRule
    PolicyRule
    RoleRef
    Subject
}

kinds! {
    ClusterRole "rbac.authorization.k8s.io/v1" k8s_openapi::api::rbac::v1::ClusterRole;
    ClusterRoleBinding "rbac.authorization.k8s.io/v1" k8s_openapi::api::rbac::v1::ClusterRoleBinding;
    Role "rbac.authorization.k8s.io/v1" k8s_openapi::api::rbac::v1::Role;
    RoleBinding "rbac.authorization.k8s.io/v1" k8s_openapi::api::rbac::v1::RoleBinding;
}
