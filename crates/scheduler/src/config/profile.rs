//! A profile of the configuration: which plugins are asked at which point, and with which weight.
//!
//! As in the reference, `multiPoint` names plugins for all points that they extend, and what is said about one point
//! stands over that.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use homeostat_model::Entropy;
use serde::Deserialize;
use serde_json::{Value, json};

use super::registry::{DEFAULT_PLUGINS, Registry};
use super::{ConfigurationError, DEFAULT_NAME};
use crate::framework::{Framework, MAX_PLUGINS, Plugin, Points};

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Enabled {
    name: String,
    #[serde(default)]
    weight: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Set {
    #[serde(default)]
    enabled: Vec<Enabled>,
    #[serde(default)]
    disabled: Vec<Enabled>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Plugins {
    #[serde(default)]
    multi_point: Set,
    #[serde(default)]
    queue_sort: Set,
    #[serde(default)]
    pre_enqueue: Set,
    #[serde(default)]
    pre_filter: Set,
    #[serde(default)]
    filter: Set,
    #[serde(default)]
    post_filter: Set,
    #[serde(default)]
    pre_score: Set,
    #[serde(default)]
    score: Set,
    #[serde(default)]
    reserve: Set,
    #[serde(default)]
    permit: Set,
    #[serde(default)]
    pre_bind: Set,
    #[serde(default)]
    bind: Set,
    #[serde(default)]
    post_bind: Set,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct PluginConfig {
    name: String,
    #[serde(default)]
    args: Value,
}

/// A profile.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Profile {
    #[serde(default)]
    scheduler_name: Option<String>,
    #[serde(default)]
    pub(super) percentage_of_nodes_to_score: Option<u32>,
    #[serde(default)]
    plugins: Plugins,
    #[serde(default)]
    plugin_config: Vec<PluginConfig>,
}

/// Says whether a plugin extends a point.
type Extends = fn(&dyn Plugin) -> bool;

struct Builder<'a> {
    place: &'a str,
    registry: &'a Registry,
    entropy: &'a Entropy,
    args: BTreeMap<&'a str, Value>,
    plugins: Vec<Arc<dyn Plugin>>,
    by_name: BTreeMap<String, usize>,
}

impl Builder<'_> {
    fn error<T>(&self, field: &str, text: impl Into<String>) -> Result<T, ConfigurationError> {
        Err(ConfigurationError::new(format!("{}.{field}", self.place), text))
    }

    /// The plugin of a name, made when it is first asked for.
    fn plugin(&mut self, name: &str, field: &str) -> Result<usize, ConfigurationError> {
        if let Some(at) = self.by_name.get(name) {
            return Ok(*at);
        }
        let Some(factory) = self.registry.get(name) else {
            let names: Vec<&str> = self.registry.names().collect();
            return self.error(field, format!("there is no plugin {name:?}; there are {}", names.join(", ")));
        };
        let none = Value::Null;
        let plugin = match factory(self.args.get(name).unwrap_or(&none), self.entropy) {
            Ok(plugin) => plugin,
            Err(why) => return self.error(&format!("pluginConfig[{name}].args"), why),
        };
        if self.plugins.len() == MAX_PLUGINS {
            return self.error(field, format!("at most {MAX_PLUGINS} plugins"));
        }
        self.plugins.push(plugin);
        self.by_name.insert(name.to_owned(), self.plugins.len() - 1);
        Ok(self.plugins.len() - 1)
    }

    /// The plugins of one point, in their order, with their weights.
    fn point(
        &mut self,
        multi: &[(String, i64)],
        own: &Set,
        field: &str,
        extends: Extends,
    ) -> Result<Vec<(usize, i64)>, ConfigurationError> {
        let field = format!("plugins.{field}");
        let mut listed: Vec<(usize, i64, bool)> = Vec::new();
        for (i, enabled) in own.enabled.iter().enumerate() {
            let at = self.plugin(&enabled.name, &format!("{field}.enabled[{i}]"))?;
            let plugin = self.plugins.get(at).cloned();
            if !plugin.is_some_and(|p| extends(&*p)) {
                return self.error(
                    &format!("{field}.enabled[{i}]"),
                    format!("plugin {:?} does not extend it", enabled.name),
                );
            }
            if listed.iter().any(|(p, ..)| *p == at) {
                return self.error(
                    &format!("{field}.enabled[{i}]"),
                    format!("plugin {:?} already registered", enabled.name),
                );
            }
            listed.push((at, enabled.weight, multi.iter().any(|(n, _)| *n == enabled.name)));
        }
        let disabled: BTreeSet<&str> = own.disabled.iter().map(|d| d.name.as_str()).collect();
        for name in disabled.iter().filter(|n| **n != "*") {
            self.plugin(name, &format!("{field}.disabled"))?;
        }
        // Those that stand over what is said for all points come first, then the rest of these, then what is new.
        let mut all: Vec<(usize, i64)> = listed.iter().filter(|l| l.2).map(|l| (l.0, l.1)).collect();
        if !disabled.contains("*") {
            for (name, weight) in multi {
                let at = self.plugin(name, "plugins.multiPoint")?;
                let here = self.plugins.get(at).cloned().is_some_and(|p| extends(&*p));
                if here && !disabled.contains(name.as_str()) && !listed.iter().any(|l| l.0 == at) {
                    all.push((at, *weight));
                }
            }
        }
        all.extend(listed.iter().filter(|l| !l.2).map(|l| (l.0, l.1)));
        Ok(all)
    }
}

impl Profile {
    /// The scheduler's name.
    pub(super) fn name(&self) -> &str {
        self.scheduler_name.as_deref().filter(|n| !n.is_empty()).unwrap_or(DEFAULT_NAME)
    }

    /// The plugins for all points: the defaults, with what the configuration takes away and adds.
    fn multi(&self) -> Vec<(String, i64)> {
        let own = &self.plugins.multi_point;
        let gone = |name: &str| own.disabled.iter().any(|d| d.name == name || d.name == "*");
        let mut all: Vec<(String, i64)> = DEFAULT_PLUGINS
            .iter()
            .filter(|(name, _)| !gone(name))
            .map(|(name, weight)| {
                let again = own.enabled.iter().find(|e| e.name == *name);
                ((*name).to_owned(), again.map_or(*weight, |e| e.weight))
            })
            .collect();
        for enabled in &own.enabled {
            if !all.iter().any(|(name, _)| *name == enabled.name) {
                all.push((enabled.name.clone(), enabled.weight));
            }
        }
        all
    }

    /// Makes the framework, and says which plugin sorts the queue.
    pub(super) fn build<'a>(
        &'a self,
        place: &'a str,
        registry: &'a Registry,
        entropy: &'a Entropy,
        ignored: impl Iterator<Item = &'a str>,
    ) -> Result<(Framework, &'static str), ConfigurationError> {
        let mut args: BTreeMap<&str, Value> = BTreeMap::new();
        for (i, config) in self.plugin_config.iter().enumerate() {
            let place = format!("{place}.pluginConfig[{i}]");
            if registry.get(&config.name).is_none() {
                let text = format!("there is no plugin {:?}", config.name);
                return Err(ConfigurationError::new(place, text));
            }
            if args.insert(&config.name, config.args.clone()).is_some() {
                let text = format!("repeated config for plugin {}", config.name);
                return Err(ConfigurationError::new(place, text));
            }
        }
        // What extenders look after on their own is not the fit's business.
        let ignored: Vec<&str> = ignored.collect();
        if !ignored.is_empty() {
            let fit = args.entry("NodeResourcesFit").or_insert_with(|| json!({}));
            if fit.is_null() {
                *fit = json!({});
            }
            if let Value::Object(fields) = fit
                && let Value::Array(list) = fields.entry("ignoredResources").or_insert_with(|| json!([]))
            {
                list.extend(ignored.into_iter().map(Value::from));
            }
        }
        let mut b = Builder { place, registry, entropy, args, plugins: Vec::new(), by_name: BTreeMap::new() };
        let multi = self.multi();
        for (i, (name, _)) in multi.iter().enumerate() {
            b.plugin(name, &format!("plugins.multiPoint.enabled[{i}]"))?;
        }
        let p = &self.plugins;
        let only = |list: Vec<(usize, i64)>| list.into_iter().map(|(at, _)| at).collect::<Vec<usize>>();
        let mut points = Points {
            queue_sort: only(b.point(&multi, &p.queue_sort, "queueSort", |p| p.queue_sort().is_some())?),
            pre_enqueue: only(b.point(&multi, &p.pre_enqueue, "preEnqueue", |p| p.pre_enqueue().is_some())?),
            pre_filter: only(b.point(&multi, &p.pre_filter, "preFilter", |p| p.pre_filter().is_some())?),
            filter: only(b.point(&multi, &p.filter, "filter", |p| p.filter().is_some())?),
            post_filter: only(b.point(&multi, &p.post_filter, "postFilter", |p| p.post_filter().is_some())?),
            pre_score: only(b.point(&multi, &p.pre_score, "preScore", |p| p.pre_score().is_some())?),
            score: b.point(&multi, &p.score, "score", |p| p.score().is_some())?,
            reserve: only(b.point(&multi, &p.reserve, "reserve", |p| p.reserve().is_some())?),
            permit: only(b.point(&multi, &p.permit, "permit", |p| p.permit().is_some())?),
            pre_bind: only(b.point(&multi, &p.pre_bind, "preBind", |p| p.pre_bind().is_some())?),
            bind: only(b.point(&multi, &p.bind, "bind", |p| p.bind().is_some())?),
            post_bind: only(b.point(&multi, &p.post_bind, "postBind", |p| p.post_bind().is_some())?),
        };
        for (_, weight) in &mut points.score {
            if *weight == 0 {
                *weight = 1;
            }
            if !(1..=i64::from(i32::MAX)).contains(weight) {
                return b.error("plugins.score", "a weight must be positive");
            }
        }
        let sort = match points.queue_sort[..] {
            [one] => b.plugins.get(one).map_or("", |p| p.name()),
            [] => return b.error("plugins.queueSort", "no queue sort plugin is enabled"),
            _ => return b.error("plugins.queueSort", "only one queue sort plugin can be enabled"),
        };
        if points.bind.is_empty() {
            return b.error("plugins.bind", "at least one bind plugin is needed");
        }
        let framework = Framework {
            name: self.name().into(),
            plugins: b.plugins,
            points,
            percentage: self.percentage_of_nodes_to_score.unwrap_or(0),
        };
        Ok((framework, sort))
    }
}
