// Made by `cargo xtask apply-types`.

types! {
    "coordination.v1.Lease" Lease {
        spec "spec" one crate::coordination::v1::LeaseSpec;
    }
    "coordination.v1.LeaseSpec" LeaseSpec {
        acquire_time "acquireTime" text;
        holder_identity "holderIdentity" text;
        lease_duration_seconds "leaseDurationSeconds" one i32;
        lease_transitions "leaseTransitions" one i32;
        preferred_holder "preferredHolder" text;
        renew_time "renewTime" text;
        strategy "strategy" text;
    }
}

parts! {
    LeaseSpec
}

kinds! {
    Lease "coordination.k8s.io/v1" k8s_openapi::api::coordination::v1::Lease;
}
