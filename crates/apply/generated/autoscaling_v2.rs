// Made by `cargo xtask apply-types`.

types! {
    "autoscaling.v2.ContainerResourceMetricSource" ContainerResourceMetricSource {
        container "container" text;
        name "name" text;
        target "target" one crate::autoscaling::v2::MetricTarget;
    }
    "autoscaling.v2.CrossVersionObjectReference" CrossVersionObjectReference {
        api_version "apiVersion" text;
        kind "kind" text;
        name "name" text;
    }
    "autoscaling.v2.ExternalMetricSource" ExternalMetricSource {
        metric "metric" one crate::autoscaling::v2::MetricIdentifier;
        target "target" one crate::autoscaling::v2::MetricTarget;
    }
    "autoscaling.v2.HPAScalingPolicy" HPAScalingPolicy {
        period_seconds "periodSeconds" one i32;
        type_ "type" text;
        value "value" one i32;
    }
    "autoscaling.v2.HPAScalingRules" HPAScalingRules {
        policies "policies" many crate::autoscaling::v2::HPAScalingPolicy;
        select_policy "selectPolicy" text;
        stabilization_window_seconds "stabilizationWindowSeconds" one i32;
        tolerance "tolerance" text;
    }
    "autoscaling.v2.HorizontalPodAutoscaler" HorizontalPodAutoscaler {
        spec "spec" one crate::autoscaling::v2::HorizontalPodAutoscalerSpec;
    }
    "autoscaling.v2.HorizontalPodAutoscalerBehavior" HorizontalPodAutoscalerBehavior {
        scale_down "scaleDown" one crate::autoscaling::v2::HPAScalingRules;
        scale_up "scaleUp" one crate::autoscaling::v2::HPAScalingRules;
    }
    "autoscaling.v2.HorizontalPodAutoscalerSpec" HorizontalPodAutoscalerSpec {
        behavior "behavior" one crate::autoscaling::v2::HorizontalPodAutoscalerBehavior;
        max_replicas "maxReplicas" one i32;
        metrics "metrics" many crate::autoscaling::v2::MetricSpec;
        min_replicas "minReplicas" one i32;
        scale_target_ref "scaleTargetRef" one crate::autoscaling::v2::CrossVersionObjectReference;
    }
    "autoscaling.v2.MetricIdentifier" MetricIdentifier {
        name "name" text;
        selector "selector" one crate::meta::v1::LabelSelector;
    }
    "autoscaling.v2.MetricSpec" MetricSpec {
        container_resource "containerResource" one crate::autoscaling::v2::ContainerResourceMetricSource;
        external "external" one crate::autoscaling::v2::ExternalMetricSource;
        object "object" one crate::autoscaling::v2::ObjectMetricSource;
        pods "pods" one crate::autoscaling::v2::PodsMetricSource;
        resource "resource" one crate::autoscaling::v2::ResourceMetricSource;
        type_ "type" text;
    }
    "autoscaling.v2.MetricTarget" MetricTarget {
        average_utilization "averageUtilization" one i32;
        average_value "averageValue" text;
        type_ "type" text;
        value "value" text;
    }
    "autoscaling.v2.ObjectMetricSource" ObjectMetricSource {
        described_object "describedObject" one crate::autoscaling::v2::CrossVersionObjectReference;
        metric "metric" one crate::autoscaling::v2::MetricIdentifier;
        target "target" one crate::autoscaling::v2::MetricTarget;
    }
    "autoscaling.v2.PodsMetricSource" PodsMetricSource {
        metric "metric" one crate::autoscaling::v2::MetricIdentifier;
        target "target" one crate::autoscaling::v2::MetricTarget;
    }
    "autoscaling.v2.ResourceMetricSource" ResourceMetricSource {
        name "name" text;
        target "target" one crate::autoscaling::v2::MetricTarget;
    }
}

parts! {
    ContainerResourceMetricSource
    CrossVersionObjectReference
    ExternalMetricSource
    HPAScalingPolicy
    HPAScalingRules
    HorizontalPodAutoscalerBehavior
    HorizontalPodAutoscalerSpec
    MetricIdentifier
    MetricSpec
    MetricTarget
    ObjectMetricSource
    PodsMetricSource
    ResourceMetricSource
}

kinds! {
    HorizontalPodAutoscaler "autoscaling/v2" k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
}
