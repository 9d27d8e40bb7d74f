// Made by `cargo xtask apply-types`.

types! {
    "batch.v1.CronJob" CronJob {
        spec "spec" one crate::batch::v1::CronJobSpec;
    }
    "batch.v1.CronJobSpec" CronJobSpec {
        concurrency_policy "concurrencyPolicy" text;
        failed_jobs_history_limit "failedJobsHistoryLimit" one i32;
        job_template "jobTemplate" one crate::batch::v1::JobTemplateSpec;
        schedule "schedule" text;
        starting_deadline_seconds "startingDeadlineSeconds" one i64;
        successful_jobs_history_limit "successfulJobsHistoryLimit" one i32;
        suspend "suspend" one bool;
        time_zone "timeZone" text;
    }
    "batch.v1.Job" Job {
        spec "spec" one crate::batch::v1::JobSpec;
    }
    "batch.v1.JobSpec" JobSpec {
        active_deadline_seconds "activeDeadlineSeconds" one i64;
        backoff_limit "backoffLimit" one i32;
        backoff_limit_per_index "backoffLimitPerIndex" one i32;
        completion_mode "completionMode" text;
        completions "completions" one i32;
        managed_by "managedBy" text;
        manual_selector "manualSelector" one bool;
        max_failed_indexes "maxFailedIndexes" one i32;
        parallelism "parallelism" one i32;
        pod_failure_policy "podFailurePolicy" one crate::batch::v1::PodFailurePolicy;
        pod_replacement_policy "podReplacementPolicy" text;
        selector "selector" one crate::meta::v1::LabelSelector;
        success_policy "successPolicy" one crate::batch::v1::SuccessPolicy;
        suspend "suspend" one bool;
        template "template" one crate::core::v1::PodTemplateSpec;
        ttl_seconds_after_finished "ttlSecondsAfterFinished" one i32;
    }
    "batch.v1.JobTemplateSpec" JobTemplateSpec {
        metadata "metadata" one crate::meta::v1::ObjectMeta;
        spec "spec" one crate::batch::v1::JobSpec;
    }
    "batch.v1.PodFailurePolicy" PodFailurePolicy {
        rules "rules" many crate::batch::v1::PodFailurePolicyRule;
    }
    "batch.v1.PodFailurePolicyOnExitCodesRequirement" PodFailurePolicyOnExitCodesRequirement {
        container_name "containerName" text;
        operator "operator" text;
        values "values" many i32;
    }
    "batch.v1.PodFailurePolicyOnPodConditionsPattern" PodFailurePolicyOnPodConditionsPattern {
        status "status" text;
        type_ "type" text;
    }
    "batch.v1.PodFailurePolicyRule" PodFailurePolicyRule {
        action "action" text;
        on_exit_codes "onExitCodes" one crate::batch::v1::PodFailurePolicyOnExitCodesRequirement;
        on_pod_conditions "onPodConditions" many crate::batch::v1::PodFailurePolicyOnPodConditionsPattern;
    }
    "batch.v1.SuccessPolicy" SuccessPolicy {
        rules "rules" many crate::batch::v1::SuccessPolicyRule;
    }
    "batch.v1.SuccessPolicyRule" SuccessPolicyRule {
        succeeded_count "succeededCount" one i32;
        succeeded_indexes "succeededIndexes" text;
    }
}

parts! {
    CronJobSpec
    JobSpec
    JobTemplateSpec
    PodFailurePolicy
    PodFailurePolicyOnExitCodesRequirement
    PodFailurePolicyOnPodConditionsPattern
    PodFailurePolicyRule
    SuccessPolicy
    SuccessPolicyRule
}

kinds! {
    CronJob "batch/v1" k8s_openapi::api::batch::v1::CronJob;
    Job "batch/v1" k8s_openapi::api::batch::v1::Job;
}
