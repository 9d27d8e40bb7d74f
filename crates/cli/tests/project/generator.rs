//! The generator's promises: what it gives compiles, passes its tests and describes itself; edits survive; what is
//! created and deleted leaves nothing behind.

use std::process::Command;

use serde_json::Value;

use crate::generated::{Project, copy, repository, turn};

/// A controller for a type that Kubernetes has.
const FOREIGN: [&str; 9] =
    ["create", "api", "--group", "apps", "--version", "v1", "--kind", "Deployment", "--resource=false"];

/// A kind of the project's.
const API: [&str; 8] = ["create", "api", "--group", "cache", "--version", "v1", "--kind", "RedisCluster"];

/// Another version of it.
const V2: [&str; 8] = ["create", "api", "--group", "cache", "--version", "v2", "--kind", "RedisCluster"];

fn with<'a>(args: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    args.iter().chain(more).copied().collect()
}

#[test]
fn a_project_compiles_passes_its_tests_and_describes_itself() {
    let _turn = turn();
    let project = Project::new("generated-operator");
    project.run(&API);
    project.run(&[
        "create",
        "api",
        "--group",
        "",
        "--version",
        "v1",
        "--kind",
        "Zone",
        "--namespaced",
        "false",
    ]);
    project.run(&with(&["create", "webhook"], &with(&API[2..], &["--defaulting", "--validation"])));
    project.run(&V2);
    project.run(&with(&["create", "webhook"], &with(&V2[2..], &["--conversion"])));
    project.run(&FOREIGN);
    project.run(&[
        "create",
        "api",
        "--group",
        "cache",
        "--version",
        "v1",
        "--kind",
        "Basket",
        "--controller=false",
    ]);
    assert!(!project.path().join("tests/basket.rs").exists());
    let formatted = Command::new("rustfmt")
        .args(["--edition", "2024", "--check", "src/main.rs", "src/lib.rs"])
        .args(["tests/redis_cluster.rs", "tests/zone.rs", "tests/deployment.rs"])
        .current_dir(project.path())
        .output()
        .expect("rustfmt runs");
    assert!(formatted.status.success(), "{}", String::from_utf8_lossy(&formatted.stdout));

    project.cargo(&["test", "--offline"]);

    project.run(&with(&API, &["--force", "--make"]));
    let once = project.tree();
    assert!(project.run(&["manifests"]).contains("config/ is what the types say"));
    assert_eq!(project.tree(), once, "a second time changes nothing");
    project.run(&["manifests", "--check"]);

    let crd = project.read("config/crd/redisclusters.cache.example.com.yaml");
    let crd: Value = serde_saphyr::from_str(&crd).expect("YAML");
    let versions: Vec<(&str, bool)> = crd["spec"]["versions"]
        .as_array()
        .expect("versions")
        .iter()
        .map(|v| (v["name"].as_str().unwrap_or_default(), v["storage"] == true))
        .collect();
    assert_eq!(versions, [("v2", false), ("v1", true)]);
    assert_eq!(crd["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["path"], "/convert");
    assert!(
        project.read("config/webhook/mutating.yaml").contains("/mutate-cache-example-com-v1-rediscluster")
    );

    only_controllers_and_only_types(&project);
    edits_in_manifests_are_kept(&project);
    packages(&project);
}

/// Part of the test above: what each of them has, and has not.
fn only_controllers_and_only_types(project: &Project) {
    let role = project.read("config/rbac/role.yaml");
    assert!(role.contains("- deployments/status\n"), "{role}");
    assert!(!role.contains("baskets"), "nothing reconciles them: {role}");
    assert!(project.path().join("config/crd/baskets.cache.example.com.yaml").is_file());
    let definitions =
        project.tree().into_keys().filter(|f| f.starts_with("config/crd/") && f.ends_with(".yaml"));
    assert_eq!(definitions.count(), 3, "none for Deployments");
}

/// Part of the test above, which has compiled the project.
fn edits_in_manifests_are_kept(project: &Project) {
    project.edit("config/manager/deployment.yaml", "memory: 256Mi", "memory: 1Gi");
    project.edit(
        "src/redis_cluster/mod.rs",
        "type Owns = ();",
        "type Owns = (k8s_openapi::api::core::v1::Service,);",
    );
    assert!(project.refused(&["manifests", "--check"]).contains("config/rbac/role.yaml"));
    project.run(&["manifests"]);
    assert!(project.read("config/manager/deployment.yaml").contains("memory: 1Gi"));
    let role = project.read("config/rbac/role.yaml");
    assert!(role.contains("- services\n"), "{role}");
}

/// Part of the test above.
fn packages(project: &Project) {
    project.run(&["package", "--yaml", "--kustomize", "--helm", "--image", "registry.example.com/a:1.2.3"]);
    let install = project.read("dist/install.yaml");
    let objects: Vec<Value> = serde_saphyr::from_multiple(&install).expect("YAML");
    assert_eq!(objects[0]["kind"], "Namespace");
    assert!(install.contains("image: registry.example.com/a:1.2.3"));
    assert!(install.contains("memory: 1Gi"), "edits in config/ are in the package");
    let values: Value = serde_saphyr::from_str(&project.read("dist/chart/values.yaml")).expect("YAML");
    assert_eq!(values["image"]["repository"], "registry.example.com/a");
    assert_eq!(values["image"]["tag"], "1.2.3");
    let deployment = project.read("dist/chart/templates/manager_deployment.yaml");
    assert!(deployment.contains("namespace: {{ .Release.Namespace }}"), "{deployment}");
    assert!(deployment.contains("resources: {{- toYaml .Values.resources | nindent 10 }}"), "{deployment}");
    let base: Value =
        serde_saphyr::from_str(&project.read("dist/kustomize/kustomization.yaml")).expect("YAML");
    for resource in base["resources"].as_array().expect("resources") {
        let path = format!("dist/kustomize/{}", resource.as_str().unwrap_or_default());
        assert!(project.path().join(&path).is_file(), "{path}");
    }
    let once = project.tree();
    project.run(&["package", "--yaml", "--kustomize", "--helm", "--image", "registry.example.com/a:1.2.3"]);
    assert_eq!(project.tree(), once, "a second time changes nothing");
}

#[test]
fn what_is_created_and_deleted_leaves_nothing_behind() {
    let project = Project::new("shop");
    let empty = project.tree();
    project.run(&API);
    let one = project.tree();
    project.run(&with(&API, &["--force"]));
    assert_eq!(project.tree(), one, "a second time changes nothing");
    project.run(&V2);
    project.run(&with(&["create", "webhook"], &with(&V2[2..], &["--conversion", "--defaulting"])));
    project.run(&with(&["delete"], &V2[1..]));
    assert_eq!(project.tree(), one);
    project.run(&with(&["delete"], &API[1..]));
    assert_eq!(project.tree(), empty);
}

#[test]
fn controllers_come_later_or_alone_and_go_again() {
    let project = Project::new("shop");
    let empty = project.tree();
    project.run(&API);
    let whole = project.tree();
    project.run(&with(&["delete"], &API[1..]));

    project.run(&with(&API, &["--controller=false"]));
    let types = project.tree();
    assert_eq!(project.read("src/redis_cluster/mod.rs").matches("pub mod").count(), 1);
    assert!(!project.read("src/lib.rs").contains(".operator("));
    project.run(&V2);
    assert!(!project.read("src/lib.rs").contains(".operator("), "another version changes nothing about that");
    project.run(&with(&["delete"], &V2[1..]));
    assert_eq!(project.tree(), types);
    project.run(&with(&API, &["--resource=false"]));
    assert_eq!(project.tree(), whole, "as if they had been made together");
    let refusal = project.refused(&with(&V2, &["--controller=false"]));
    assert!(refusal.contains("has its controller already, for all of its versions"), "{refusal}");
    project.run(&V2);
    project.run(&with(&["delete"], &V2[1..]));
    project.run(&with(&["delete"], &API[1..]));
    assert_eq!(project.tree(), empty);

    project.run(&FOREIGN);
    assert!(project.read("src/deployment/mod.rs").contains("use k8s_openapi::api::apps::v1::Deployment;"));
    let refusal = project.refused(&with(&["create", "webhook"], &with(&FOREIGN[2..8], &["--validation"])));
    assert!(refusal.contains("Deployment is made elsewhere"), "{refusal}");
    project.run(&with(&["delete"], &FOREIGN[1..8]));
    assert_eq!(project.tree(), empty);

    let certificate = ["api", "--group", "cert-manager.io", "--version", "v1", "--kind", "Certificate"];
    let external = ["--external-api-path", "cert_manager::v1::Cert"];
    project.run(&with(&["create"], &with(&certificate, &external)));
    let source = project.read("src/certificate/mod.rs");
    assert!(source.contains("use cert_manager::v1::Cert as Certificate;"), "{source}");
    project.run(&with(&["delete"], &certificate));
    assert_eq!(project.tree(), empty);
}

#[test]
fn edits_survive_what_is_created_later() {
    let project = Project::new("shop");
    project.run(&API);
    project.edit(
        "src/lib.rs",
        "use homeostat::Program;",
        "use homeostat::Program;\n\n/// Mine.\npub const MINE: u8 = 1;",
    );
    project.edit("src/redis_cluster/mod.rs", "// Apply here", "// I apply here");
    project.edit("Makefile", "IMG ?= shop:latest", "IMG ?= registry.example.com/shop:1");
    project.run(&["create", "api", "--group", "cache", "--version", "v1", "--kind", "Widget"]);
    project.run(&with(&["create", "webhook"], &with(&API[2..], &["--validation"])));
    let library = project.read("src/lib.rs");
    assert!(library.contains("pub const MINE") && library.contains("pub mod widget;"), "{library}");
    assert!(library.contains(".validating(redis_cluster::v1_webhook::Rules)"), "{library}");
    let kind = project.read("src/redis_cluster/mod.rs");
    assert!(kind.contains("// I apply here") && kind.contains("pub mod v1_webhook;"), "{kind}");
    assert!(project.read("Makefile").contains("registry.example.com/shop:1"));

    let before = project.tree();
    let refusal = project.refused(&with(&["delete"], &API[1..]));
    assert!(refusal.contains("src/redis_cluster/mod.rs has edits of yours that would be lost"), "{refusal}");
    assert_eq!(project.tree(), before, "a refusal changes nothing");
    project.run(&with(&with(&["delete"], &API[1..]), &["--force"]));
    assert!(!project.path().join("src/redis_cluster").exists());
    assert!(project.read("src/lib.rs").contains("pub const MINE"));
}

#[test]
fn edits_that_conflict_are_refused_or_marked() {
    let project = Project::new("shop");
    project.run(&API);
    project.edit("src/lib.rs", "pub mod redis_cluster;", "pub mod redis_cluster;\npub mod yet_another;");
    let before = project.tree();
    let other = ["create", "api", "--group", "cache", "--version", "v1", "--kind", "Widget"];
    let refusal = project.refused(&other);
    assert!(
        refusal.contains("src/lib.rs: your edits and the new text are about the same lines"),
        "{refusal}"
    );
    assert_eq!(project.tree(), before, "a refusal changes nothing");
    project.run(&with(&other, &["--mark-conflicts"]));
    assert!(project.read("src/lib.rs").contains("<<<<<<<"));
}

/// This repository's own projects are the generator's, with what people wrote in them.
#[test]
fn this_repositorys_projects_are_what_the_generator_gives() {
    for (path, apis) in [
        ("operators/redis", [["cache", "v1", "RedisCluster"]].as_slice()),
        ("examples/widget", [["", "v1", "Widget"]].as_slice()),
    ] {
        let here = repository().join(path);
        let project = Project::empty();
        copy(&here, project.path());
        let before = project.tree();
        for [group, version, kind] in apis {
            let said = project.run(&[
                "create",
                "api",
                "--group",
                group,
                "--version",
                version,
                "--kind",
                kind,
                "--force",
            ]);
            assert!(!said.contains("not written"), "{path}: {said}");
        }
        let after = project.tree();
        for (file, text) in &after {
            assert_eq!(
                before.get(file),
                Some(text),
                "{path}/{file}: run `homeostat create api --force` there"
            );
        }
    }
}
