// Made by `cargo xtask apply-types`.

types! {
    "scheduling.v1.PriorityClass" PriorityClass {
        description "description" text;
        global_default "globalDefault" one bool;
        preemption_policy "preemptionPolicy" text;
        value "value" one i32;
    }
}

kinds! {
    PriorityClass "scheduling.k8s.io/v1" k8s_openapi::api::scheduling::v1::PriorityClass;
}
