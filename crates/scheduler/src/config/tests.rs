//! Configurations as tables: what is read, and what is said about what is wrong.

use homeostat_model::Entropy;

use super::*;

fn head(rest: &str) -> String {
    format!("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n{rest}")
}

#[track_caller]
fn wrong(rest: &str, want: &str) {
    let why = Configuration::parse(&head(rest)).unwrap_err().to_string();
    assert!(why.contains(want), "{why}");
}

/// The names of the plugins at one point of the first profile, with the weights of scores.
fn at(rest: &str, point: &str) -> Vec<String> {
    let configuration = Configuration::parse(&head(rest)).unwrap();
    let framework = configuration.frameworks(&Registry::default(), &Entropy::seeded(1)).unwrap().remove(0);
    let name = |i: &usize| framework.plugins[*i].name().to_owned();
    let points = &framework.points;
    match point {
        "filter" => points.filter.iter().map(name).collect(),
        "score" => points.score.iter().map(|(i, w)| format!("{} {w}", name(i))).collect(),
        "permit" => points.permit.iter().map(name).collect(),
        "postFilter" => points.post_filter.iter().map(name).collect(),
        other => panic!("{other}"),
    }
}

#[test]
fn without_a_word_everything_is_the_references() {
    assert_eq!(Configuration::parse(&head("")).unwrap(), Configuration::default());
    let scores = [
        "TaintToleration 3",
        "NodeAffinity 2",
        "NodeResourcesFit 1",
        "PodTopologySpread 2",
        "InterPodAffinity 2",
        "NodeResourcesBalancedAllocation 1",
        "ImageLocality 1",
    ];
    assert_eq!(at("", "score"), scores);
    assert_eq!(at("", "postFilter"), ["DynamicResources", "DefaultPreemption"]);
    assert_eq!(at("", "filter").last().map(String::as_str), Some("NodeDeclaredFeatures"));
}

#[test]
fn what_is_about_the_process_is_accepted() {
    let text = head(
        "parallelism: 16\nleaderElection: {leaderElect: true}\nclientConnection: {kubeconfig: /etc/x}\n\
         enableProfiling: false\npodMaxBackoffSeconds: 20\npercentageOfNodesToScore: 30\n",
    );
    let configuration = Configuration::parse(&text).unwrap();
    assert_eq!(configuration.max_backoff, Duration::from_secs(20));
    let frameworks = configuration.frameworks(&Registry::default(), &Entropy::seeded(1)).unwrap();
    assert_eq!(frameworks[0].percentage, 30);
}

#[test]
fn plugins_are_taken_away_added_and_weighed() {
    let off = "profiles: [{plugins: {score: {disabled: [{name: '*'}], enabled: [{name: ImageLocality, weight: 7}]}}}]";
    assert_eq!(at(off, "score"), ["ImageLocality 7"]);
    let multi = "profiles: [{plugins: {multiPoint: {disabled: [{name: TaintToleration}], \
                 enabled: [{name: NodeAffinity, weight: 9}, {name: Gang}]}}}]";
    assert_eq!(at(multi, "score")[0], "NodeAffinity 9");
    assert_eq!(at(multi, "permit"), ["Gang"]);
    assert!(!at(multi, "filter").contains(&"TaintToleration".to_owned()));
    // What is said about one point stands over what is said about all, and comes first.
    let over = "profiles: [{plugins: {filter: {enabled: [{name: NodePorts}]}}}]";
    assert_eq!(at(over, "filter")[..2], ["NodePorts", "NodeUnschedulable"]);
    let only = "profiles: [{plugins: {filter: {disabled: [{name: NodePorts}]}}}]";
    assert!(!at(only, "filter").contains(&"NodePorts".to_owned()));
}

#[test]
fn every_default_plugin_can_be_named() {
    let names = "profiles: [{plugins: {multiPoint: {enabled: [{name: DynamicResources}, {name: NodeDeclaredFeatures}]}}, \
                 pluginConfig: [{name: DynamicResources, args: {kind: DynamicResourcesArgs, filterTimeout: 10s}}]}]";
    assert_eq!(at(names, "filter"), at("", "filter"));
    let off = "profiles: [{plugins: {multiPoint: {disabled: [{name: DynamicResources}, {name: NodeDeclaredFeatures}]}}}]";
    assert_eq!(at(off, "postFilter"), ["DefaultPreemption"]);
}

#[test]
fn profiles_have_names_of_their_own() {
    let two = head("profiles: [{schedulerName: a}, {schedulerName: b}]");
    assert_eq!(Configuration::parse(&two).unwrap().names(), ["a", "b"]);
    wrong(
        "profiles: [{schedulerName: a}, {schedulerName: a}]",
        "profiles[1].schedulerName: Duplicate value: \"a\"",
    );
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    for (rest, want) in [
        ("profile: []", "unknown field"),
        (
            "percentageOfNodesToScore: 101",
            "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]",
        ),
        ("podInitialBackoffSeconds: 0", "podInitialBackoffSeconds: Invalid value: 0: must be greater than 0"),
        (
            "podMaxBackoffSeconds: 1\npodInitialBackoffSeconds: 2",
            "podMaxBackoffSeconds: must be greater than",
        ),
        (
            "profiles: [{plugins: {filter: {enabled: [{name: NodeProts}]}}}]",
            "profiles[0].plugins.filter.enabled[0]: there is no plugin \"NodeProts\"; there are Accelerators, ",
        ),
        (
            "profiles: [{plugins: {filter: {enabled: [{name: ImageLocality}]}}}]",
            "profiles[0].plugins.filter.enabled[0]: plugin \"ImageLocality\" does not extend it",
        ),
        (
            "profiles: [{plugins: {bind: {disabled: [{name: '*'}]}}}]",
            "plugins.bind: at least one bind plugin is needed",
        ),
        ("profiles: [{plugins: {queueSort: {disabled: [{name: '*'}]}}}]", "no queue sort plugin is enabled"),
        ("profiles: [{pluginConfig: [{name: X}]}]", "profiles[0].pluginConfig[0]: there is no plugin \"X\""),
        (
            "profiles: [{pluginConfig: [{name: NodeName, args: {a: 1}}]}]",
            "profiles[0].pluginConfig[NodeName].args: takes no arguments",
        ),
        (
            "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: Best}}}]}]",
            "scoringStrategy.type: Unsupported value: \"Best\"",
        ),
        (
            "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: RequestedToCapacityRatio, \
             requestedToCapacityRatio: {shape: [{utilization: 5, score: 1}, {utilization: 5, score: 2}]}}}}]}]",
            "utilization values must be sorted in increasing order",
        ),
        (
            "profiles: [{pluginConfig: [{name: InterPodAffinity, args: {hardPodAffinityWeight: 200}}]}]",
            "hardPodAffinityWeight: not in valid range [0-100]",
        ),
        (
            "profiles: [{pluginConfig: [{name: PodTopologySpread, args: {kind: Other}}]}]",
            "kind must be PodTopologySpreadArgs",
        ),
        (
            "extenders: [{urlPrefix: nowhere}]",
            "extenders[0].urlPrefix: Invalid value: \"nowhere\": must be a URL",
        ),
        (
            "extenders: [{urlPrefix: 'http://x', prioritizeVerb: p}]",
            "extenders[0].weight: Invalid value: 0: must have a positive",
        ),
        (
            "extenders: [{urlPrefix: 'http://x', managedResources: [{name: cpu}]}]",
            "extenders[0].managedResources[0].name: Invalid value: \"cpu\": must be an extended resource",
        ),
        (
            "extenders: [{urlPrefix: 'http://x', bindVerb: b}, {urlPrefix: 'http://y', bindVerb: b}]",
            "only one can bind",
        ),
    ] {
        wrong(rest, want);
    }
    let other = "apiVersion: v1\nkind: Pod\n";
    let why = Configuration::parse(other).unwrap_err().to_string();
    assert_eq!(
        why,
        "apiVersion: v1, Kind=Pod is not kubescheduler.config.k8s.io/v1, Kind=KubeSchedulerConfiguration"
    );
}

#[test]
fn extenders_are_read_as_the_reference_writes_them() {
    let text = head(
        "extenders:\n- urlPrefix: https://127.0.0.1:8443/x/\n  filterVerb: filter\n  weight: 5\n  \
         prioritizeVerb: prioritize\n  preemptVerb: preempt\n  enableHTTPS: true\n  httpTimeout: 1m30s\n  \
         nodeCacheCapable: true\n  ignorable: true\n  tlsConfig: {insecure: true}\n  \
         managedResources: [{name: a.b/c, ignoredByScheduler: true}]\n",
    );
    let configuration = Configuration::parse(&text).unwrap();
    let extender = &configuration.extenders[0];
    assert_eq!((extender.timeout(), extender.bind_verb()), (Duration::from_secs(90), None));
    assert!(extender.manages("a.b/c") && extender.ignored_resources().eq(["a.b/c"]));
}
