// Made by `cargo xtask apply-types`.

types! {
    "networking.v1.HTTPIngressPath" HTTPIngressPath {
        backend "backend" one crate::networking::v1::IngressBackend;
        path "path" text;
        path_type "pathType" text;
    }
    "networking.v1.HTTPIngressRuleValue" HTTPIngressRuleValue {
        paths "paths" many crate::networking::v1::HTTPIngressPath;
    }
    "networking.v1.IPAddress" IPAddress {
        spec "spec" one crate::networking::v1::IPAddressSpec;
    }
    "networking.v1.IPAddressSpec" IPAddressSpec {
        parent_ref "parentRef" one crate::networking::v1::ParentReference;
    }
    "networking.v1.IPBlock" IPBlock {
        cidr "cidr" text;
        except "except" texts;
    }
    "networking.v1.Ingress" Ingress {
        spec "spec" one crate::networking::v1::IngressSpec;
    }
    "networking.v1.IngressBackend" IngressBackend {
        resource "resource" one crate::core::v1::TypedLocalObjectReference;
        service "service" one crate::networking::v1::IngressServiceBackend;
    }
    "networking.v1.IngressClass" IngressClass {
        spec "spec" one crate::networking::v1::IngressClassSpec;
    }
    "networking.v1.IngressClassParametersReference" IngressClassParametersReference {
        api_group "apiGroup" text;
        kind "kind" text;
        name "name" text;
        namespace "namespace" text;
        scope "scope" text;
    }
    "networking.v1.IngressClassSpec" IngressClassSpec {
        controller "controller" text;
        parameters "parameters" one crate::networking::v1::IngressClassParametersReference;
    }
    "networking.v1.IngressRule" IngressRule {
        host "host" text;
        http "http" one crate::networking::v1::HTTPIngressRuleValue;
    }
    "networking.v1.IngressServiceBackend" IngressServiceBackend {
        name "name" text;
        port "port" one crate::networking::v1::ServiceBackendPort;
    }
    "networking.v1.IngressSpec" IngressSpec {
        default_backend "defaultBackend" one crate::networking::v1::IngressBackend;
        ingress_class_name "ingressClassName" text;
        rules "rules" many crate::networking::v1::IngressRule;
        tls "tls" many crate::networking::v1::IngressTLS;
    }
    "networking.v1.IngressTLS" IngressTLS {
        hosts "hosts" texts;
        secret_name "secretName" text;
    }
    "networking.v1.NetworkPolicy" NetworkPolicy {
        spec "spec" one crate::networking::v1::NetworkPolicySpec;
    }
    "networking.v1.NetworkPolicyEgressRule" NetworkPolicyEgressRule {
        ports "ports" many crate::networking::v1::NetworkPolicyPort;
        to "to" many crate::networking::v1::NetworkPolicyPeer;
    }
    "networking.v1.NetworkPolicyIngressRule" NetworkPolicyIngressRule {
        from "from" many crate::networking::v1::NetworkPolicyPeer;
        ports "ports" many crate::networking::v1::NetworkPolicyPort;
    }
    "networking.v1.NetworkPolicyPeer" NetworkPolicyPeer {
        ip_block "ipBlock" one crate::networking::v1::IPBlock;
        namespace_selector "namespaceSelector" one crate::meta::v1::LabelSelector;
        pod_selector "podSelector" one crate::meta::v1::LabelSelector;
    }
    "networking.v1.NetworkPolicyPort" NetworkPolicyPort {
        end_port "endPort" one i32;
        port "port" int_or_string;
        protocol "protocol" text;
    }
    "networking.v1.NetworkPolicySpec" NetworkPolicySpec {
        egress "egress" many crate::networking::v1::NetworkPolicyEgressRule;
        ingress "ingress" many crate::networking::v1::NetworkPolicyIngressRule;
        pod_selector "podSelector" one crate::meta::v1::LabelSelector;
        policy_types "policyTypes" texts;
    }
    "networking.v1.ParentReference" ParentReference {
        group "group" text;
        name "name" text;
        namespace "namespace" text;
        resource "resource" text;
    }
    "networking.v1.ServiceBackendPort" ServiceBackendPort {
        name "name" text;
        number "number" one i32;
    }
    "networking.v1.ServiceCIDR" ServiceCIDR {
        spec "spec" one crate::networking::v1::ServiceCIDRSpec;
    }
    "networking.v1.ServiceCIDRSpec" ServiceCIDRSpec {
        cidrs "cidrs" texts;
    }
}

parts! {
    HTTPIngressPath
    HTTPIngressRuleValue
    IPAddressSpec
    IPBlock
    IngressBackend
    IngressClassParametersReference
    IngressClassSpec
    IngressRule
    IngressServiceBackend
    IngressSpec
    IngressTLS
    NetworkPolicyEgressRule
    NetworkPolicyIngressRule
    NetworkPolicyPeer
    NetworkPolicyPort
    NetworkPolicySpec
    ParentReference
    ServiceBackendPort
    ServiceCIDRSpec
}

kinds! {
    IPAddress "networking.k8s.io/v1" k8s_openapi::api::networking::v1::IPAddress;
    Ingress "networking.k8s.io/v1" k8s_openapi::api::networking::v1::Ingress;
    IngressClass "networking.k8s.io/v1" k8s_openapi::api::networking::v1::IngressClass;
    NetworkPolicy "networking.k8s.io/v1" k8s_openapi::api::networking::v1::NetworkPolicy;
    ServiceCIDR "networking.k8s.io/v1" k8s_openapi::api::networking::v1::ServiceCIDR;
}
