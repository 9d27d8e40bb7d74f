// Made by `cargo xtask apply-types`.

types! {
    "discovery.v1.Endpoint" Endpoint {
        addresses "addresses" texts;
        conditions "conditions" one crate::discovery::v1::EndpointConditions;
        deprecated_topology "deprecatedTopology" text_map;
        hints "hints" one crate::discovery::v1::EndpointHints;
        hostname "hostname" text;
        node_name "nodeName" text;
        target_ref "targetRef" one crate::core::v1::ObjectReference;
        zone "zone" text;
    }
    "discovery.v1.EndpointConditions" EndpointConditions {
        ready "ready" one bool;
        serving "serving" one bool;
        terminating "terminating" one bool;
    }
    "discovery.v1.EndpointHints" EndpointHints {
        for_nodes "forNodes" many crate::discovery::v1::ForNode;
        for_zones "forZones" many crate::discovery::v1::ForZone;
    }
    "discovery.v1.EndpointPort" EndpointPort {
        app_protocol "appProtocol" text;
        name "name" text;
        port "port" one i32;
        protocol "protocol" text;
    }
    "discovery.v1.EndpointSlice" EndpointSlice {
        address_type "addressType" text;
        endpoints "endpoints" many crate::discovery::v1::Endpoint;
        ports "ports" many crate::discovery::v1::EndpointPort;
    }
    "discovery.v1.ForNode" ForNode {
        name "name" text;
    }
    "discovery.v1.ForZone" ForZone {
        name "name" text;
    }
}

parts! {
    Endpoint
    EndpointConditions
    EndpointHints
    EndpointPort
    ForNode
    ForZone
}

kinds! {
    EndpointSlice "discovery.k8s.io/v1" k8s_openapi::api::discovery::v1::EndpointSlice;
}
