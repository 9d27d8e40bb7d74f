// Made by `cargo xtask apply-types`.

types! {
    "core.v1.AWSElasticBlockStoreVolumeSource" AWSElasticBlockStoreVolumeSource {
        fs_type "fsType" text;
        partition "partition" one i32;
        read_only "readOnly" one bool;
        volume_id "volumeID" text;
    }
    "core.v1.Affinity" Affinity {
        node_affinity "nodeAffinity" one crate::core::v1::NodeAffinity;
        pod_affinity "podAffinity" one crate::core::v1::PodAffinity;
        pod_anti_affinity "podAntiAffinity" one crate::core::v1::PodAntiAffinity;
    }
    "core.v1.AppArmorProfile" AppArmorProfile {
        localhost_profile "localhostProfile" text;
        type_ "type" text;
    }
    "core.v1.AzureDiskVolumeSource" AzureDiskVolumeSource {
        caching_mode "cachingMode" text;
        disk_name "diskName" text;
        disk_uri "diskURI" text;
        fs_type "fsType" text;
        kind "kind" text;
        read_only "readOnly" one bool;
    }
    "core.v1.AzureFilePersistentVolumeSource" AzureFilePersistentVolumeSource {
        read_only "readOnly" one bool;
        secret_name "secretName" text;
        secret_namespace "secretNamespace" text;
        share_name "shareName" text;
    }
    "core.v1.AzureFileVolumeSource" AzureFileVolumeSource {
        read_only "readOnly" one bool;
        secret_name "secretName" text;
        share_name "shareName" text;
    }
    "core.v1.CSIPersistentVolumeSource" CSIPersistentVolumeSource {
        controller_expand_secret_ref "controllerExpandSecretRef" one crate::core::v1::SecretReference;
        controller_publish_secret_ref "controllerPublishSecretRef" one crate::core::v1::SecretReference;
        driver "driver" text;
        fs_type "fsType" text;
        node_expand_secret_ref "nodeExpandSecretRef" one crate::core::v1::SecretReference;
        node_publish_secret_ref "nodePublishSecretRef" one crate::core::v1::SecretReference;
        node_stage_secret_ref "nodeStageSecretRef" one crate::core::v1::SecretReference;
        read_only "readOnly" one bool;
        volume_attributes "volumeAttributes" text_map;
        volume_handle "volumeHandle" text;
    }
    "core.v1.CSIVolumeSource" CSIVolumeSource {
        driver "driver" text;
        fs_type "fsType" text;
        node_publish_secret_ref "nodePublishSecretRef" one crate::core::v1::LocalObjectReference;
        read_only "readOnly" one bool;
        volume_attributes "volumeAttributes" text_map;
    }
    "core.v1.Capabilities" Capabilities {
        add "add" texts;
        drop "drop" texts;
    }
    "core.v1.CephFSPersistentVolumeSource" CephFSPersistentVolumeSource {
        monitors "monitors" texts;
        path "path" text;
        read_only "readOnly" one bool;
        secret_file "secretFile" text;
        secret_ref "secretRef" one crate::core::v1::SecretReference;
        user "user" text;
    }
    "core.v1.CephFSVolumeSource" CephFSVolumeSource {
        monitors "monitors" texts;
        path "path" text;
        read_only "readOnly" one bool;
        secret_file "secretFile" text;
        secret_ref "secretRef" one crate::core::v1::LocalObjectReference;
        user "user" text;
    }
    "core.v1.CinderPersistentVolumeSource" CinderPersistentVolumeSource {
        fs_type "fsType" text;
        read_only "readOnly" one bool;
        secret_ref "secretRef" one crate::core::v1::SecretReference;
        volume_id "volumeID" text;
    }
    "core.v1.CinderVolumeSource" CinderVolumeSource {
        fs_type "fsType" text;
        read_only "readOnly" one bool;
        secret_ref "secretRef" one crate::core::v1::LocalObjectReference;
        volume_id "volumeID" text;
    }
    "core.v1.ClientIPConfig" ClientIPConfig {
        timeout_seconds "timeoutSeconds" one i32;
    }
    "core.v1.ClusterTrustBundleProjection" ClusterTrustBundleProjection {
        label_selector "labelSelector" one crate::meta::v1::LabelSelector;
        name "name" text;
        optional "optional" one bool;
        path "path" text;
        signer_name "signerName" text;
    }
    "core.v1.ConfigMap" ConfigMap {
        binary_data "binaryData" byte_map;
        data "data" text_map;
        immutable "immutable" one bool;
    }
    "core.v1.ConfigMapEnvSource" ConfigMapEnvSource {
        name "name" text;
        optional "optional" one bool;
    }
    "core.v1.ConfigMapKeySelector" ConfigMapKeySelector {
        key "key" text;
        name "name" text;
        optional "optional" one bool;
    }
    "core.v1.ConfigMapNodeConfigSource" ConfigMapNodeConfigSource {
        kubelet_config_key "kubeletConfigKey" text;
        name "name" text;
        namespace "namespace" text;
        resource_version "resourceVersion" text;
        uid "uid" text;
    }
    "core.v1.ConfigMapProjection" ConfigMapProjection {
        items "items" many crate::core::v1::KeyToPath;
        name "name" text;
        optional "optional" one bool;
    }
    "core.v1.ConfigMapVolumeSource" ConfigMapVolumeSource {
        default_mode "defaultMode" one i32;
        items "items" many crate::core::v1::KeyToPath;
        name "name" text;
        optional "optional" one bool;
    }
    "core.v1.Container" Container {
        args "args" texts;
        command "command" texts;
        env "env" many crate::core::v1::EnvVar;
        env_from "envFrom" many crate::core::v1::EnvFromSource;
        image "image" text;
        image_pull_policy "imagePullPolicy" text;
        lifecycle "lifecycle" one crate::core::v1::Lifecycle;
        liveness_probe "livenessProbe" one crate::core::v1::Probe;
        name "name" text;
        ports "ports" many crate::core::v1::ContainerPort;
        readiness_probe "readinessProbe" one crate::core::v1::Probe;
        resize_policy "resizePolicy" many crate::core::v1::ContainerResizePolicy;
        resources "resources" one crate::core::v1::ResourceRequirements;
        restart_policy "restartPolicy" text;
        restart_policy_rules "restartPolicyRules" many crate::core::v1::ContainerRestartRule;
        security_context "securityContext" one crate::core::v1::SecurityContext;
        startup_probe "startupProbe" one crate::core::v1::Probe;
        stdin "stdin" one bool;
        stdin_once "stdinOnce" one bool;
        termination_message_path "terminationMessagePath" text;
        termination_message_policy "terminationMessagePolicy" text;
        tty "tty" one bool;
        volume_devices "volumeDevices" many crate::core::v1::VolumeDevice;
        volume_mounts "volumeMounts" many crate::core::v1::VolumeMount;
        working_dir "workingDir" text;
    }
    "core.v1.ContainerPort" ContainerPort {
        container_port "containerPort" one i32;
        host_ip "hostIP" text;
        host_port "hostPort" one i32;
        name "name" text;
        protocol "protocol" text;
    }
    "core.v1.ContainerResizePolicy" ContainerResizePolicy {
        resource_name "resourceName" text;
        restart_policy "restartPolicy" text;
    }
    "core.v1.ContainerRestartRule" ContainerRestartRule {
        action "action" text;
        exit_codes "exitCodes" one crate::core::v1::ContainerRestartRuleOnExitCodes;
    }
    "core.v1.ContainerRestartRuleOnExitCodes" ContainerRestartRuleOnExitCodes {
        operator "operator" text;
        values "values" many i32;
    }
    "core.v1.DownwardAPIProjection" DownwardAPIProjection {
        items "items" many crate::core::v1::DownwardAPIVolumeFile;
    }
    "core.v1.DownwardAPIVolumeFile" DownwardAPIVolumeFile {
        field_ref "fieldRef" one crate::core::v1::ObjectFieldSelector;
        mode "mode" one i32;
        path "path" text;
        resource_field_ref "resourceFieldRef" one crate::core::v1::ResourceFieldSelector;
    }
    "core.v1.DownwardAPIVolumeSource" DownwardAPIVolumeSource {
        default_mode "defaultMode" one i32;
        items "items" many crate::core::v1::DownwardAPIVolumeFile;
    }
    "core.v1.EmptyDirVolumeSource" EmptyDirVolumeSource {
        medium "medium" text;
        size_limit "sizeLimit" text;
    }
    "core.v1.EndpointAddress" EndpointAddress {
        hostname "hostname" text;
        ip "ip" text;
        node_name "nodeName" text;
        target_ref "targetRef" one crate::core::v1::ObjectReference;
    }
    "core.v1.EndpointPort" EndpointPort {
        app_protocol "appProtocol" text;
        name "name" text;
        port "port" one i32;
        protocol "protocol" text;
    }
    "core.v1.EndpointSubset" EndpointSubset {
        addresses "addresses" many crate::core::v1::EndpointAddress;
        not_ready_addresses "notReadyAddresses" many crate::core::v1::EndpointAddress;
        ports "ports" many crate::core::v1::EndpointPort;
    }
    "core.v1.Endpoints" Endpoints {
        subsets "subsets" many crate::core::v1::EndpointSubset;
    }
    "core.v1.EnvFromSource" EnvFromSource {
        config_map_ref "configMapRef" one crate::core::v1::ConfigMapEnvSource;
        prefix "prefix" text;
        secret_ref "secretRef" one crate::core::v1::SecretEnvSource;
    }
    "core.v1.EnvVar" EnvVar {
        name "name" text;
        value "value" text;
        value_from "valueFrom" one crate::core::v1::EnvVarSource;
    }
    "core.v1.EnvVarSource" EnvVarSource {
        config_map_key_ref "configMapKeyRef" one crate::core::v1::ConfigMapKeySelector;
        field_ref "fieldRef" one crate::core::v1::ObjectFieldSelector;
        file_key_ref "fileKeyRef" one crate::core::v1::FileKeySelector;
        resource_field_ref "resourceFieldRef" one crate::core::v1::ResourceFieldSelector;
        secret_key_ref "secretKeyRef" one crate::core::v1::SecretKeySelector;
    }
    "core.v1.EphemeralContainer" EphemeralContainer {
        args "args" texts;
        command "command" texts;
        env "env" many crate::core::v1::EnvVar;
        env_from "envFrom" many crate::core::v1::EnvFromSource;
        image "image" text;
        image_pull_policy "imagePullPolicy" text;
        lifecycle "lifecycle" one crate::core::v1::Lifecycle;
        liveness_probe "livenessProbe" one crate::core::v1::Probe;
        name "name" text;
        ports "ports" many crate::core::v1::ContainerPort;
        readiness_probe "readinessProbe" one crate::core::v1::Probe;
        resize_policy "resizePolicy" many crate::core::v1::ContainerResizePolicy;
        resources "resources" one crate::core::v1::ResourceRequirements;
        restart_policy "restartPolicy" text;
        restart_policy_rules "restartPolicyRules" many crate::core::v1::ContainerRestartRule;
        security_context "securityContext" one crate::core::v1::SecurityContext;
        startup_probe "startupProbe" one crate::core::v1::Probe;
        stdin "stdin" one bool;
        stdin_once "stdinOnce" one bool;
        target_container_name "targetContainerName" text;
        termination_message_path "terminationMessagePath" text;
        termination_message_policy "terminationMessagePolicy" text;
        tty "tty" one bool;
        volume_devices "volumeDevices" many crate::core::v1::VolumeDevice;
        volume_mounts "volumeMounts" many crate::core::v1::VolumeMount;
        working_dir "workingDir" text;
    }
    "core.v1.EphemeralVolumeSource" EphemeralVolumeSource {
        volume_claim_template "volumeClaimTemplate" one crate::core::v1::PersistentVolumeClaimTemplate;
    }
    "core.v1.ExecAction" ExecAction {
        command "command" texts;
    }
    "core.v1.FCVolumeSource" FCVolumeSource {
        fs_type "fsType" text;
        lun "lun" one i32;
        read_only "readOnly" one bool;
        target_wwns "targetWWNs" texts;
        wwids "wwids" texts;
    }
    "core.v1.FileKeySelector" FileKeySelector {
        key "key" text;
        optional "optional" one bool;
        path "path" text;
        volume_name "volumeName" text;
    }
    "core.v1.FlexPersistentVolumeSource" FlexPersistentVolumeSource {
        driver "driver" text;
        fs_type "fsType" text;
        options "options" text_map;
        read_only "readOnly" one bool;
        secret_ref "secretRef" one crate::core::v1::SecretReference;
    }
    "core.v1.FlexVolumeSource" FlexVolumeSource {
        driver "driver" text;
        fs_type "fsType" text;
        options "options" text_map;
        read_only "readOnly" one bool;
        secret_ref "secretRef" one crate::core::v1::LocalObjectReference;
    }
    "core.v1.FlockerVolumeSource" FlockerVolumeSource {
        dataset_name "datasetName" text;
        dataset_uuid "datasetUUID" text;
    }
    "core.v1.GCEPersistentDiskVolumeSource" GCEPersistentDiskVolumeSource {
        fs_type "fsType" text;
        partition "partition" one i32;
        pd_name "pdName" text;
        read_only "readOnly" one bool;
    }
    "core.v1.GRPCAction" GRPCAction {
        port "port" one i32;
        service "service" text;
    }
    "core.v1.GitRepoVolumeSource" GitRepoVolumeSource {
        directory "directory" text;
        repository "repository" text;
        revision "revision" text;
    }
    "core.v1.GlusterfsPersistentVolumeSource" GlusterfsPersistentVolumeSource {
        endpoints "endpoints" text;
        endpoints_namespace "endpointsNamespace" text;
        path "path" text;
        read_only "readOnly" one bool;
    }
    "core.v1.GlusterfsVolumeSource" GlusterfsVolumeSource {
        endpoints "endpoints" text;
        path "path" text;
        read_only "readOnly" one bool;
    }
    "core.v1.HTTPGetAction" HTTPGetAction {
        host "host" text;
        http_headers "httpHeaders" many crate::core::v1::HTTPHeader;
        path "path" text;
        port "port" int_or_string;
        scheme "scheme" text;
    }
    "core.v1.HTTPHeader" HTTPHeader {
        name "name" text;
        value "value" text;
    }
    "core.v1.HostAlias" HostAlias {
        hostnames "hostnames" texts;
        ip "ip" text;
    }
    "core.v1.HostPathVolumeSource" HostPathVolumeSource {
        path "path" text;
        type_ "type" text;
    }
    "core.v1.ISCSIPersistentVolumeSource" ISCSIPersistentVolumeSource {
        chap_auth_discovery "chapAuthDiscovery" one bool;
        chap_auth_session "chapAuthSession" one bool;
        fs_type "fsType" text;
        initiator_name "initiatorName" text;
        iqn "iqn" text;
        iscsi_interface "iscsiInterface" text;
        lun "lun" one i32;
        portals "portals" texts;
        read_only "readOnly" one bool;
        secret_ref "secretRef" one crate::core::v1::SecretReference;
        target_portal "targetPortal" text;
    }
    "core.v1.ISCSIVolumeSource" ISCSIVolumeSource {
        chap_auth_discovery "chapAuthDiscovery" one bool;
        chap_auth_session "chapAuthSession" one bool;
        fs_type "fsType" text;
        initiator_name "initiatorName" text;
        iqn "iqn" text;
        iscsi_interface "iscsiInterface" text;
        lun "lun" one i32;
        portals "portals" texts;
        read_only "readOnly" one bool;
        secret_ref "secretRef" one crate::core::v1::LocalObjectReference;
        target_portal "targetPortal" text;
    }
    "core.v1.ImageVolumeSource" ImageVolumeSource {
        pull_policy "pullPolicy" text;
        reference "reference" text;
    }
    "core.v1.KeyToPath" KeyToPath {
        key "key" text;
        mode "mode" one i32;
        path "path" text;
    }
    "core.v1.Lifecycle" Lifecycle {
        post_start "postStart" one crate::core::v1::LifecycleHandler;
        pre_stop "preStop" one crate::core::v1::LifecycleHandler;
        stop_signal "stopSignal" text;
    }
    "core.v1.LifecycleHandler" LifecycleHandler {
        exec "exec" one crate::core::v1::ExecAction;
        http_get "httpGet" one crate::core::v1::HTTPGetAction;
        sleep "sleep" one crate::core::v1::SleepAction;
        tcp_socket "tcpSocket" one crate::core::v1::TCPSocketAction;
    }
    "core.v1.LimitRange" LimitRange {
        spec "spec" one crate::core::v1::LimitRangeSpec;
    }
    "core.v1.LimitRangeItem" LimitRangeItem {
        default_ "default" text_map;
        default_request "defaultRequest" text_map;
        max "max" text_map;
        max_limit_request_ratio "maxLimitRequestRatio" text_map;
        min "min" text_map;
        type_ "type" text;
    }
    "core.v1.LimitRangeSpec" LimitRangeSpec {
        limits "limits" many crate::core::v1::LimitRangeItem;
    }
    "core.v1.LocalObjectReference" LocalObjectReference {
        name "name" text;
    }
    "core.v1.LocalVolumeSource" LocalVolumeSource {
        fs_type "fsType" text;
        path "path" text;
    }
    "core.v1.NFSVolumeSource" NFSVolumeSource {
        path "path" text;
        read_only "readOnly" one bool;
        server "server" text;
    }
    "core.v1.Namespace" Namespace {
        spec "spec" one crate::core::v1::NamespaceSpec;
    }
    "core.v1.NamespaceSpec" NamespaceSpec {
        finalizers "finalizers" texts;
    }
    "core.v1.Node" Node {
        spec "spec" one crate::core::v1::NodeSpec;
    }
    "core.v1.NodeAffinity" NodeAffinity {
        preferred_during_scheduling_ignored_during_execution "preferredDuringSchedulingIgnoredDuringExecution" many crate::core::v1::PreferredSchedulingTerm;
        required_during_scheduling_ignored_during_execution "requiredDuringSchedulingIgnoredDuringExecution" one crate::core::v1::NodeSelector;
    }
    "core.v1.NodeConfigSource" NodeConfigSource {
        config_map "configMap" one crate::core::v1::ConfigMapNodeConfigSource;
    }
    "core.v1.NodeSelector" NodeSelector {
        node_selector_terms "nodeSelectorTerms" many crate::core::v1::NodeSelectorTerm;
    }
    "core.v1.NodeSelectorRequirement" NodeSelectorRequirement {
        key "key" text;
        operator "operator" text;
        values "values" texts;
    }
    "core.v1.NodeSelectorTerm" NodeSelectorTerm {
        match_expressions "matchExpressions" many crate::core::v1::NodeSelectorRequirement;
        match_fields "matchFields" many crate::core::v1::NodeSelectorRequirement;
    }
    "core.v1.NodeSpec" NodeSpec {
        config_source "configSource" one crate::core::v1::NodeConfigSource;
        external_id "externalID" text;
        pod_cidr "podCIDR" text;
        pod_cidrs "podCIDRs" texts;
        provider_id "providerID" text;
        taints "taints" many crate::core::v1::Taint;
        unschedulable "unschedulable" one bool;
    }
    "core.v1.ObjectFieldSelector" ObjectFieldSelector {
        api_version "apiVersion" text;
        field_path "fieldPath" text;
    }
    "core.v1.ObjectReference" ObjectReference {
        api_version "apiVersion" text;
        field_path "fieldPath" text;
        kind "kind" text;
        name "name" text;
        namespace "namespace" text;
        resource_version "resourceVersion" text;
        uid "uid" text;
    }
    "core.v1.PersistentVolume" PersistentVolume {
        spec "spec" one crate::core::v1::PersistentVolumeSpec;
    }
    "core.v1.PersistentVolumeClaim" PersistentVolumeClaim {
        spec "spec" one crate::core::v1::PersistentVolumeClaimSpec;
    }
    "core.v1.PersistentVolumeClaimSpec" PersistentVolumeClaimSpec {
        access_modes "accessModes" texts;
        data_source "dataSource" one crate::core::v1::TypedLocalObjectReference;
        data_source_ref "dataSourceRef" one crate::core::v1::TypedObjectReference;
        resources "resources" one crate::core::v1::VolumeResourceRequirements;
        selector "selector" one crate::meta::v1::LabelSelector;
        storage_class_name "storageClassName" text;
        volume_attributes_class_name "volumeAttributesClassName" text;
        volume_mode "volumeMode" text;
        volume_name "volumeName" text;
    }
    "core.v1.PersistentVolumeClaimTemplate" PersistentVolumeClaimTemplate {
        metadata "metadata" one crate::meta::v1::ObjectMeta;
        spec "spec" one crate::core::v1::PersistentVolumeClaimSpec;
    }
    "core.v1.PersistentVolumeClaimVolumeSource" PersistentVolumeClaimVolumeSource {
        claim_name "claimName" text;
        read_only "readOnly" one bool;
    }
    "core.v1.PersistentVolumeSpec" PersistentVolumeSpec {
        access_modes "accessModes" texts;
        aws_elastic_block_store "awsElasticBlockStore" one crate::core::v1::AWSElasticBlockStoreVolumeSource;
        azure_disk "azureDisk" one crate::core::v1::AzureDiskVolumeSource;
        azure_file "azureFile" one crate::core::v1::AzureFilePersistentVolumeSource;
        capacity "capacity" text_map;
        cephfs "cephfs" one crate::core::v1::CephFSPersistentVolumeSource;
        cinder "cinder" one crate::core::v1::CinderPersistentVolumeSource;
        claim_ref "claimRef" one crate::core::v1::ObjectReference;
        csi "csi" one crate::core::v1::CSIPersistentVolumeSource;
        fc "fc" one crate::core::v1::FCVolumeSource;
        flex_volume "flexVolume" one crate::core::v1::FlexPersistentVolumeSource;
        flocker "flocker" one crate::core::v1::FlockerVolumeSource;
        gce_persistent_disk "gcePersistentDisk" one crate::core::v1::GCEPersistentDiskVolumeSource;
        glusterfs "glusterfs" one crate::core::v1::GlusterfsPersistentVolumeSource;
        host_path "hostPath" one crate::core::v1::HostPathVolumeSource;
        iscsi "iscsi" one crate::core::v1::ISCSIPersistentVolumeSource;
        local "local" one crate::core::v1::LocalVolumeSource;
        mount_options "mountOptions" texts;
        nfs "nfs" one crate::core::v1::NFSVolumeSource;
        node_affinity "nodeAffinity" one crate::core::v1::VolumeNodeAffinity;
        persistent_volume_reclaim_policy "persistentVolumeReclaimPolicy" text;
        photon_persistent_disk "photonPersistentDisk" one crate::core::v1::PhotonPersistentDiskVolumeSource;
        portworx_volume "portworxVolume" one crate::core::v1::PortworxVolumeSource;
        quobyte "quobyte" one crate::core::v1::QuobyteVolumeSource;
        rbd "rbd" one crate::core::v1::RBDPersistentVolumeSource;
        scale_io "scaleIO" one crate::core::v1::ScaleIOPersistentVolumeSource;
        storage_class_name "storageClassName" text;
        storageos "storageos" one crate::core::v1::StorageOSPersistentVolumeSource;
        volume_attributes_class_name "volumeAttributesClassName" text;
        volume_mode "volumeMode" text;
        vsphere_volume "vsphereVolume" one crate::core::v1::VsphereVirtualDiskVolumeSource;
    }
    "core.v1.PhotonPersistentDiskVolumeSource" PhotonPersistentDiskVolumeSource {
        fs_type "fsType" text;
        pd_id "pdID" text;
    }
    "core.v1.Pod" Pod {
        spec "spec" one crate::core::v1::PodSpec;
    }
    "core.v1.PodAffinity" PodAffinity {
        preferred_during_scheduling_ignored_during_execution "preferredDuringSchedulingIgnoredDuringExecution" many crate::core::v1::WeightedPodAffinityTerm;
        required_during_scheduling_ignored_during_execution "requiredDuringSchedulingIgnoredDuringExecution" many crate::core::v1::PodAffinityTerm;
    }
    "core.v1.PodAffinityTerm" PodAffinityTerm {
        label_selector "labelSelector" one crate::meta::v1::LabelSelector;
        match_label_keys "matchLabelKeys" texts;
        mismatch_label_keys "mismatchLabelKeys" texts;
        namespace_selector "namespaceSelector" one crate::meta::v1::LabelSelector;
        namespaces "namespaces" texts;
        topology_key "topologyKey" text;
    }
    "core.v1.PodAntiAffinity" PodAntiAffinity {
        preferred_during_scheduling_ignored_during_execution "preferredDuringSchedulingIgnoredDuringExecution" many crate::core::v1::WeightedPodAffinityTerm;
        required_during_scheduling_ignored_during_execution "requiredDuringSchedulingIgnoredDuringExecution" many crate::core::v1::PodAffinityTerm;
    }
    "core.v1.PodCertificateProjection" PodCertificateProjection {
        certificate_chain_path "certificateChainPath" text;
        credential_bundle_path "credentialBundlePath" text;
        key_path "keyPath" text;
        key_type "keyType" text;
        max_expiration_seconds "maxExpirationSeconds" one i32;
        signer_name "signerName" text;
        user_annotations "userAnnotations" text_map;
    }
    "core.v1.PodDNSConfig" PodDNSConfig {
        nameservers "nameservers" texts;
        options "options" many crate::core::v1::PodDNSConfigOption;
        searches "searches" texts;
    }
    "core.v1.PodDNSConfigOption" PodDNSConfigOption {
        name "name" text;
        value "value" text;
    }
    "core.v1.PodOS" PodOS {
        name "name" text;
    }
    "core.v1.PodReadinessGate" PodReadinessGate {
        condition_type "conditionType" text;
    }
    "core.v1.PodResourceClaim" PodResourceClaim {
        name "name" text;
        resource_claim_name "resourceClaimName" text;
        resource_claim_template_name "resourceClaimTemplateName" text;
    }
    "core.v1.PodSchedulingGate" PodSchedulingGate {
        name "name" text;
    }
    "core.v1.PodSchedulingGroup" PodSchedulingGroup {
        pod_group_name "podGroupName" text;
    }
    "core.v1.PodSecurityContext" PodSecurityContext {
        app_armor_profile "appArmorProfile" one crate::core::v1::AppArmorProfile;
        fs_group "fsGroup" one i64;
        fs_group_change_policy "fsGroupChangePolicy" text;
        run_as_group "runAsGroup" one i64;
        run_as_non_root "runAsNonRoot" one bool;
        run_as_user "runAsUser" one i64;
        se_linux_change_policy "seLinuxChangePolicy" text;
        se_linux_options "seLinuxOptions" one crate::core::v1::SELinuxOptions;
        seccomp_profile "seccompProfile" one crate::core::v1::SeccompProfile;
        supplemental_groups "supplementalGroups" many i64;
        supplemental_groups_policy "supplementalGroupsPolicy" text;
        sysctls "sysctls" many crate::core::v1::Sysctl;
        windows_options "windowsOptions" one crate::core::v1::WindowsSecurityContextOptions;
    }
    "core.v1.PodSpec" PodSpec {
        active_deadline_seconds "activeDeadlineSeconds" one i64;
        affinity "affinity" one crate::core::v1::Affinity;
        automount_service_account_token "automountServiceAccountToken" one bool;
        containers "containers" many crate::core::v1::Container;
        dns_config "dnsConfig" one crate::core::v1::PodDNSConfig;
        dns_policy "dnsPolicy" text;
        enable_service_links "enableServiceLinks" one bool;
        ephemeral_containers "ephemeralContainers" many crate::core::v1::EphemeralContainer;
        host_aliases "hostAliases" many crate::core::v1::HostAlias;
        host_ipc "hostIPC" one bool;
        host_network "hostNetwork" one bool;
        host_pid "hostPID" one bool;
        host_users "hostUsers" one bool;
        hostname "hostname" text;
        hostname_override "hostnameOverride" text;
        image_pull_secrets "imagePullSecrets" many crate::core::v1::LocalObjectReference;
        init_containers "initContainers" many crate::core::v1::Container;
        node_name "nodeName" text;
        node_selector "nodeSelector" text_map;
        os "os" one crate::core::v1::PodOS;
        overhead "overhead" text_map;
        preemption_policy "preemptionPolicy" text;
        priority "priority" one i32;
        priority_class_name "priorityClassName" text;
        readiness_gates "readinessGates" many crate::core::v1::PodReadinessGate;
        resource_claims "resourceClaims" many crate::core::v1::PodResourceClaim;
        resources "resources" one crate::core::v1::ResourceRequirements;
        restart_policy "restartPolicy" text;
        runtime_class_name "runtimeClassName" text;
        scheduler_name "schedulerName" text;
        scheduling_gates "schedulingGates" many crate::core::v1::PodSchedulingGate;
        scheduling_group "schedulingGroup" one crate::core::v1::PodSchedulingGroup;
        security_context "securityContext" one crate::core::v1::PodSecurityContext;
        service_account "serviceAccount" text;
        service_account_name "serviceAccountName" text;
        set_hostname_as_fqdn "setHostnameAsFQDN" one bool;
        share_process_namespace "shareProcessNamespace" one bool;
        subdomain "subdomain" text;
        termination_grace_period_seconds "terminationGracePeriodSeconds" one i64;
        tolerations "tolerations" many crate::core::v1::Toleration;
        topology_spread_constraints "topologySpreadConstraints" many crate::core::v1::TopologySpreadConstraint;
        volumes "volumes" many crate::core::v1::Volume;
    }
    "core.v1.PodTemplate" PodTemplate {
        template "template" one crate::core::v1::PodTemplateSpec;
    }
    "core.v1.PodTemplateSpec" PodTemplateSpec {
        metadata "metadata" one crate::meta::v1::ObjectMeta;
        spec "spec" one crate::core::v1::PodSpec;
    }
    "core.v1.PortworxVolumeSource" PortworxVolumeSource {
        fs_type "fsType" text;
        read_only "readOnly" one bool;
        volume_id "volumeID" text;
    }
    "core.v1.PreferredSchedulingTerm" PreferredSchedulingTerm {
        preference "preference" one crate::core::v1::NodeSelectorTerm;
        weight "weight" one i32;
    }
    "core.v1.Probe" Probe {
        exec "exec" one crate::core::v1::ExecAction;
        failure_threshold "failureThreshold" one i32;
        grpc "grpc" one crate::core::v1::GRPCAction;
        http_get "httpGet" one crate::core::v1::HTTPGetAction;
        initial_delay_seconds "initialDelaySeconds" one i32;
        period_seconds "periodSeconds" one i32;
        success_threshold "successThreshold" one i32;
        tcp_socket "tcpSocket" one crate::core::v1::TCPSocketAction;
        termination_grace_period_seconds "terminationGracePeriodSeconds" one i64;
        timeout_seconds "timeoutSeconds" one i32;
    }
    "core.v1.ProjectedVolumeSource" ProjectedVolumeSource {
        default_mode "defaultMode" one i32;
        sources "sources" many crate::core::v1::VolumeProjection;
    }
    "core.v1.QuobyteVolumeSource" QuobyteVolumeSource {
        group "group" text;
        read_only "readOnly" one bool;
        registry "registry" text;
        tenant "tenant" text;
        user "user" text;
        volume "volume" text;
    }
    "core.v1.RBDPersistentVolumeSource" RBDPersistentVolumeSource {
        fs_type "fsType" text;
        image "image" text;
        keyring "keyring" text;
        monitors "monitors" texts;
        pool "pool" text;
        read_only "readOnly" one bool;
        secret_ref "secretRef" one crate::core::v1::SecretReference;
        user "user" text;
    }
    "core.v1.RBDVolumeSource" RBDVolumeSource {
        fs_type "fsType" text;
        image "image" text;
        keyring "keyring" text;
        monitors "monitors" texts;
        pool "pool" text;
        read_only "readOnly" one bool;
        secret_ref "secretRef" one crate::core::v1::LocalObjectReference;
        user "user" text;
    }
    "core.v1.ReplicationController" ReplicationController {
        spec "spec" one crate::core::v1::ReplicationControllerSpec;
    }
    "core.v1.ReplicationControllerSpec" ReplicationControllerSpec {
        min_ready_seconds "minReadySeconds" one i32;
        replicas "replicas" one i32;
        selector "selector" text_map;
        template "template" one crate::core::v1::PodTemplateSpec;
    }
    "core.v1.ResourceClaim" ResourceClaim {
        name "name" text;
        request "request" text;
    }
    "core.v1.ResourceFieldSelector" ResourceFieldSelector {
        container_name "containerName" text;
        divisor "divisor" text;
        resource "resource" text;
    }
    "core.v1.ResourceQuota" ResourceQuota {
        spec "spec" one crate::core::v1::ResourceQuotaSpec;
    }
    "core.v1.ResourceQuotaSpec" ResourceQuotaSpec {
        hard "hard" text_map;
        scope_selector "scopeSelector" one crate::core::v1::ScopeSelector;
        scopes "scopes" texts;
    }
    "core.v1.ResourceRequirements" ResourceRequirements {
        claims "claims" many crate::core::v1::ResourceClaim;
        limits "limits" text_map;
        requests "requests" text_map;
    }
    "core.v1.SELinuxOptions" SELinuxOptions {
        level "level" text;
        role "role" text;
        type_ "type" text;
        user "user" text;
    }
    "core.v1.ScaleIOPersistentVolumeSource" ScaleIOPersistentVolumeSource {
        fs_type "fsType" text;
        gateway "gateway" text;
        protection_domain "protectionDomain" text;
        read_only "readOnly" one bool;
        secret_ref "secretRef" one crate::core::v1::SecretReference;
        ssl_enabled "sslEnabled" one bool;
        storage_mode "storageMode" text;
        storage_pool "storagePool" text;
        system "system" text;
        volume_name "volumeName" text;
    }
    "core.v1.ScaleIOVolumeSource" ScaleIOVolumeSource {
        fs_type "fsType" text;
        gateway "gateway" text;
        protection_domain "protectionDomain" text;
        read_only "readOnly" one bool;
        secret_ref "secretRef" one crate::core::v1::LocalObjectReference;
        ssl_enabled "sslEnabled" one bool;
        storage_mode "storageMode" text;
        storage_pool "storagePool" text;
        system "system" text;
        volume_name "volumeName" text;
    }
    "core.v1.ScopeSelector" ScopeSelector {
        match_expressions "matchExpressions" many crate::core::v1::ScopedResourceSelectorRequirement;
    }
    "core.v1.ScopedResourceSelectorRequirement" ScopedResourceSelectorRequirement {
        operator "operator" text;
        scope_name "scopeName" text;
        values "values" texts;
    }
    "core.v1.SeccompProfile" SeccompProfile {
        localhost_profile "localhostProfile" text;
        type_ "type" text;
    }
    "core.v1.Secret" Secret {
        data "data" byte_map;
        immutable "immutable" one bool;
        string_data "stringData" text_map;
        type_ "type" text;
    }
    "core.v1.SecretEnvSource" SecretEnvSource {
        name "name" text;
        optional "optional" one bool;
    }
    "core.v1.SecretKeySelector" SecretKeySelector {
        key "key" text;
        name "name" text;
        optional "optional" one bool;
    }
    "core.v1.SecretProjection" SecretProjection {
        items "items" many crate::core::v1::KeyToPath;
        name "name" text;
        optional "optional" one bool;
    }
    "core.v1.SecretReference" SecretReference {
        name "name" text;
        namespace "namespace" text;
    }
    "core.v1.SecretVolumeSource" SecretVolumeSource {
        default_mode "defaultMode" one i32;
        items "items" many crate::core::v1::KeyToPath;
        optional "optional" one bool;
        secret_name "secretName" text;
    }
    "core.v1.SecurityContext" SecurityContext {
        allow_privilege_escalation "allowPrivilegeEscalation" one bool;
        app_armor_profile "appArmorProfile" one crate::core::v1::AppArmorProfile;
        capabilities "capabilities" one crate::core::v1::Capabilities;
        privileged "privileged" one bool;
        proc_mount "procMount" text;
        read_only_root_filesystem "readOnlyRootFilesystem" one bool;
        run_as_group "runAsGroup" one i64;
        run_as_non_root "runAsNonRoot" one bool;
        run_as_user "runAsUser" one i64;
        se_linux_options "seLinuxOptions" one crate::core::v1::SELinuxOptions;
        seccomp_profile "seccompProfile" one crate::core::v1::SeccompProfile;
        windows_options "windowsOptions" one crate::core::v1::WindowsSecurityContextOptions;
    }
    "core.v1.Service" Service {
        spec "spec" one crate::core::v1::ServiceSpec;
    }
    "core.v1.ServiceAccount" ServiceAccount {
        automount_service_account_token "automountServiceAccountToken" one bool;
        image_pull_secrets "imagePullSecrets" many crate::core::v1::LocalObjectReference;
        secrets "secrets" many crate::core::v1::ObjectReference;
    }
    "core.v1.ServiceAccountTokenProjection" ServiceAccountTokenProjection {
        audience "audience" text;
        expiration_seconds "expirationSeconds" one i64;
        path "path" text;
    }
    "core.v1.ServicePort" ServicePort {
        app_protocol "appProtocol" text;
        name "name" text;
        node_port "nodePort" one i32;
        port "port" one i32;
        protocol "protocol" text;
        target_port "targetPort" int_or_string;
    }
    "core.v1.ServiceSpec" ServiceSpec {
        allocate_load_balancer_node_ports "allocateLoadBalancerNodePorts" one bool;
        cluster_ip "clusterIP" text;
        cluster_ips "clusterIPs" texts;
        external_ips "externalIPs" texts;
        external_name "externalName" text;
        external_traffic_policy "externalTrafficPolicy" text;
        health_check_node_port "healthCheckNodePort" one i32;
        internal_traffic_policy "internalTrafficPolicy" text;
        ip_families "ipFamilies" texts;
        ip_family_policy "ipFamilyPolicy" text;
        load_balancer_class "loadBalancerClass" text;
        load_balancer_ip "loadBalancerIP" text;
        load_balancer_source_ranges "loadBalancerSourceRanges" texts;
        ports "ports" many crate::core::v1::ServicePort;
        publish_not_ready_addresses "publishNotReadyAddresses" one bool;
        selector "selector" text_map;
        session_affinity "sessionAffinity" text;
        session_affinity_config "sessionAffinityConfig" one crate::core::v1::SessionAffinityConfig;
        traffic_distribution "trafficDistribution" text;
        type_ "type" text;
    }
    "core.v1.SessionAffinityConfig" SessionAffinityConfig {
        client_ip "clientIP" one crate::core::v1::ClientIPConfig;
    }
    "core.v1.SleepAction" SleepAction {
        seconds "seconds" one i64;
    }
    "core.v1.StorageOSPersistentVolumeSource" StorageOSPersistentVolumeSource {
        fs_type "fsType" text;
        read_only "readOnly" one bool;
        secret_ref "secretRef" one crate::core::v1::ObjectReference;
        volume_name "volumeName" text;
        volume_namespace "volumeNamespace" text;
    }
    "core.v1.StorageOSVolumeSource" StorageOSVolumeSource {
        fs_type "fsType" text;
        read_only "readOnly" one bool;
        secret_ref "secretRef" one crate::core::v1::LocalObjectReference;
        volume_name "volumeName" text;
        volume_namespace "volumeNamespace" text;
    }
    "core.v1.Sysctl" Sysctl {
        name "name" text;
        value "value" text;
    }
    "core.v1.TCPSocketAction" TCPSocketAction {
        host "host" text;
        port "port" int_or_string;
    }
    "core.v1.Taint" Taint {
        effect "effect" text;
        key "key" text;
        time_added "timeAdded" text;
        value "value" text;
    }
    "core.v1.Toleration" Toleration {
        effect "effect" text;
        key "key" text;
        operator "operator" text;
        toleration_seconds "tolerationSeconds" one i64;
        value "value" text;
    }
    "core.v1.TopologySelectorLabelRequirement" TopologySelectorLabelRequirement {
        key "key" text;
        values "values" texts;
    }
    "core.v1.TopologySelectorTerm" TopologySelectorTerm {
        match_label_expressions "matchLabelExpressions" many crate::core::v1::TopologySelectorLabelRequirement;
    }
    "core.v1.TopologySpreadConstraint" TopologySpreadConstraint {
        label_selector "labelSelector" one crate::meta::v1::LabelSelector;
        match_label_keys "matchLabelKeys" texts;
        max_skew "maxSkew" one i32;
        min_domains "minDomains" one i32;
        node_affinity_policy "nodeAffinityPolicy" text;
        node_taints_policy "nodeTaintsPolicy" text;
        topology_key "topologyKey" text;
        when_unsatisfiable "whenUnsatisfiable" text;
    }
    "core.v1.TypedLocalObjectReference" TypedLocalObjectReference {
        api_group "apiGroup" text;
        kind "kind" text;
        name "name" text;
    }
    "core.v1.TypedObjectReference" TypedObjectReference {
        api_group "apiGroup" text;
        kind "kind" text;
        name "name" text;
        namespace "namespace" text;
    }
    "core.v1.Volume" Volume {
        aws_elastic_block_store "awsElasticBlockStore" one crate::core::v1::AWSElasticBlockStoreVolumeSource;
        azure_disk "azureDisk" one crate::core::v1::AzureDiskVolumeSource;
        azure_file "azureFile" one crate::core::v1::AzureFileVolumeSource;
        cephfs "cephfs" one crate::core::v1::CephFSVolumeSource;
        cinder "cinder" one crate::core::v1::CinderVolumeSource;
        config_map "configMap" one crate::core::v1::ConfigMapVolumeSource;
        csi "csi" one crate::core::v1::CSIVolumeSource;
        downward_api "downwardAPI" one crate::core::v1::DownwardAPIVolumeSource;
        empty_dir "emptyDir" one crate::core::v1::EmptyDirVolumeSource;
        ephemeral "ephemeral" one crate::core::v1::EphemeralVolumeSource;
        fc "fc" one crate::core::v1::FCVolumeSource;
        flex_volume "flexVolume" one crate::core::v1::FlexVolumeSource;
        flocker "flocker" one crate::core::v1::FlockerVolumeSource;
        gce_persistent_disk "gcePersistentDisk" one crate::core::v1::GCEPersistentDiskVolumeSource;
        git_repo "gitRepo" one crate::core::v1::GitRepoVolumeSource;
        glusterfs "glusterfs" one crate::core::v1::GlusterfsVolumeSource;
        host_path "hostPath" one crate::core::v1::HostPathVolumeSource;
        image "image" one crate::core::v1::ImageVolumeSource;
        iscsi "iscsi" one crate::core::v1::ISCSIVolumeSource;
        name "name" text;
        nfs "nfs" one crate::core::v1::NFSVolumeSource;
        persistent_volume_claim "persistentVolumeClaim" one crate::core::v1::PersistentVolumeClaimVolumeSource;
        photon_persistent_disk "photonPersistentDisk" one crate::core::v1::PhotonPersistentDiskVolumeSource;
        portworx_volume "portworxVolume" one crate::core::v1::PortworxVolumeSource;
        projected "projected" one crate::core::v1::ProjectedVolumeSource;
        quobyte "quobyte" one crate::core::v1::QuobyteVolumeSource;
        rbd "rbd" one crate::core::v1::RBDVolumeSource;
        scale_io "scaleIO" one crate::core::v1::ScaleIOVolumeSource;
        secret "secret" one crate::core::v1::SecretVolumeSource;
        storageos "storageos" one crate::core::v1::StorageOSVolumeSource;
        vsphere_volume "vsphereVolume" one crate::core::v1::VsphereVirtualDiskVolumeSource;
    }
    "core.v1.VolumeDevice" VolumeDevice {
        device_path "devicePath" text;
        name "name" text;
    }
    "core.v1.VolumeMount" VolumeMount {
        mount_path "mountPath" text;
        mount_propagation "mountPropagation" text;
        name "name" text;
        read_only "readOnly" one bool;
        recursive_read_only "recursiveReadOnly" text;
        sub_path "subPath" text;
        sub_path_expr "subPathExpr" text;
    }
    "core.v1.VolumeNodeAffinity" VolumeNodeAffinity {
        required "required" one crate::core::v1::NodeSelector;
    }
    "core.v1.VolumeProjection" VolumeProjection {
        cluster_trust_bundle "clusterTrustBundle" one crate::core::v1::ClusterTrustBundleProjection;
        config_map "configMap" one crate::core::v1::ConfigMapProjection;
        downward_api "downwardAPI" one crate::core::v1::DownwardAPIProjection;
        pod_certificate "podCertificate" one crate::core::v1::PodCertificateProjection;
        secret "secret" one crate::core::v1::SecretProjection;
        service_account_token "serviceAccountToken" one crate::core::v1::ServiceAccountTokenProjection;
    }
    "core.v1.VolumeResourceRequirements" VolumeResourceRequirements {
        limits "limits" text_map;
        requests "requests" text_map;
    }
    "core.v1.VsphereVirtualDiskVolumeSource" VsphereVirtualDiskVolumeSource {
        fs_type "fsType" text;
        storage_policy_id "storagePolicyID" text;
        storage_policy_name "storagePolicyName" text;
        volume_path "volumePath" text;
    }
    "core.v1.WeightedPodAffinityTerm" WeightedPodAffinityTerm {
        pod_affinity_term "podAffinityTerm" one crate::core::v1::PodAffinityTerm;
        weight "weight" one i32;
    }
    "core.v1.WindowsSecurityContextOptions" WindowsSecurityContextOptions {
        gmsa_credential_spec "gmsaCredentialSpec" text;
        gmsa_credential_spec_name "gmsaCredentialSpecName" text;
        host_process "hostProcess" one bool;
        run_as_user_name "runAsUserName" text;
    }
}

parts! {
    AWSElasticBlockStoreVolumeSource
    Affinity
    AppArmorProfile
    AzureDiskVolumeSource
    AzureFilePersistentVolumeSource
    AzureFileVolumeSource
    CSIPersistentVolumeSource
    CSIVolumeSource
    Capabilities
    CephFSPersistentVolumeSource
    CephFSVolumeSource
    CinderPersistentVolumeSource
    CinderVolumeSource
    ClientIPConfig
    ClusterTrustBundleProjection
    ConfigMapEnvSource
    ConfigMapKeySelector
    ConfigMapNodeConfigSource
    ConfigMapProjection
    ConfigMapVolumeSource
    Container
    ContainerPort
    ContainerResizePolicy
    ContainerRestartRule
    ContainerRestartRuleOnExitCodes
    DownwardAPIProjection
    DownwardAPIVolumeFile
    DownwardAPIVolumeSource
    EmptyDirVolumeSource
    EndpointAddress
    EndpointPort
    EndpointSubset
    EnvFromSource
    EnvVar
    EnvVarSource
    EphemeralContainer
    EphemeralVolumeSource
    ExecAction
    FCVolumeSource
    FileKeySelector
    FlexPersistentVolumeSource
    FlexVolumeSource
    FlockerVolumeSource
    GCEPersistentDiskVolumeSource
    GRPCAction
    GitRepoVolumeSource
    GlusterfsPersistentVolumeSource
    GlusterfsVolumeSource
    HTTPGetAction
    HTTPHeader
    HostAlias
    HostPathVolumeSource
    ISCSIPersistentVolumeSource
    ISCSIVolumeSource
    ImageVolumeSource
    KeyToPath
    Lifecycle
    LifecycleHandler
    LimitRangeItem
    LimitRangeSpec
    LocalObjectReference
    LocalVolumeSource
    NFSVolumeSource
    NamespaceSpec
    NodeAffinity
    NodeConfigSource
    NodeSelector
    NodeSelectorRequirement
    NodeSelectorTerm
    NodeSpec
    ObjectFieldSelector
    ObjectReference
    PersistentVolumeClaimSpec
    PersistentVolumeClaimTemplate
    PersistentVolumeClaimVolumeSource
    PersistentVolumeSpec
    PhotonPersistentDiskVolumeSource
    PodAffinity
    PodAffinityTerm
    PodAntiAffinity
    PodCertificateProjection
    PodDNSConfig
    PodDNSConfigOption
    PodOS
    PodReadinessGate
    PodResourceClaim
    PodSchedulingGate
    PodSchedulingGroup
    PodSecurityContext
    PodSpec
    PodTemplateSpec
    PortworxVolumeSource
    PreferredSchedulingTerm
    Probe
    ProjectedVolumeSource
    QuobyteVolumeSource
    RBDPersistentVolumeSource
    RBDVolumeSource
    ReplicationControllerSpec
    ResourceClaim
    ResourceFieldSelector
    ResourceQuotaSpec
    ResourceRequirements
    SELinuxOptions
    ScaleIOPersistentVolumeSource
    ScaleIOVolumeSource
    ScopeSelector
    ScopedResourceSelectorRequirement
    SeccompProfile
    SecretEnvSource
    SecretKeySelector
    SecretProjection
    SecretReference
    SecretVolumeSource
    SecurityContext
    ServiceAccountTokenProjection
    ServicePort
    ServiceSpec
    SessionAffinityConfig
    SleepAction
    StorageOSPersistentVolumeSource
    StorageOSVolumeSource
    Sysctl
    TCPSocketAction
    Taint
    Toleration
    TopologySelectorLabelRequirement
    TopologySelectorTerm
    TopologySpreadConstraint
    TypedLocalObjectReference
    TypedObjectReference
    Volume
    VolumeDevice
    VolumeMount
    VolumeNodeAffinity
    VolumeProjection
    VolumeResourceRequirements
    VsphereVirtualDiskVolumeSource
    WeightedPodAffinityTerm
    WindowsSecurityContextOptions
}

kinds! {
    ConfigMap "v1" k8s_openapi::api::core::v1::ConfigMap;
    Endpoints "v1" k8s_openapi::api::core::v1::Endpoints;
    LimitRange "v1" k8s_openapi::api::core::v1::LimitRange;
    Namespace "v1" k8s_openapi::api::core::v1::Namespace;
    Node "v1" k8s_openapi::api::core::v1::Node;
    PersistentVolume "v1" k8s_openapi::api::core::v1::PersistentVolume;
    PersistentVolumeClaim "v1" k8s_openapi::api::core::v1::PersistentVolumeClaim;
    Pod "v1" k8s_openapi::api::core::v1::Pod;
    PodTemplate "v1" k8s_openapi::api::core::v1::PodTemplate;
    ReplicationController "v1" k8s_openapi::api::core::v1::ReplicationController;
    ResourceQuota "v1" k8s_openapi::api::core::v1::ResourceQuota;
    Secret "v1" k8s_openapi::api::core::v1::Secret;
    Service "v1" k8s_openapi::api::core::v1::Service;
    ServiceAccount "v1" k8s_openapi::api::core::v1::ServiceAccount;
}
