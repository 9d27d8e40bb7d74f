//! From a project to the text of its files.
//!
//! The texts are templates in `crates/cli/templates`; here is only what goes into them. Pure. Invariant: the same
//! project gives the same texts, in the same order.

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, UndefinedBehavior, Value, context};

use super::{Api, Project, foreign, names};
use crate::complaint::Complaint;

macro_rules! templates {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../templates/", $name, ".j2")))),*]
    };
}

/// Template by name.
const TEMPLATES: &[(&str, &str)] = templates![
    "homeostat.toml",
    "Cargo.toml",
    "Makefile",
    "Dockerfile",
    "dockerignore",
    "gitignore",
    "README.md",
    "main.rs",
    "lib.rs",
    "kind.rs",
    "types.rs",
    "controller.rs",
    "version.rs",
    "webhook.rs",
    "conversion.rs",
    "test.rs",
    "controller_test.rs",
    "sample.yaml",
];

/// Files of the project itself: path and template.
const PROJECT: &[(&str, &str)] = &[
    (super::FILE, "homeostat.toml"),
    ("Cargo.toml", "Cargo.toml"),
    ("Makefile", "Makefile"),
    ("Dockerfile", "Dockerfile"),
    (".dockerignore", "dockerignore"),
    (".gitignore", "gitignore"),
    ("README.md", "README.md"),
    ("src/main.rs", "main.rs"),
    ("src/lib.rs", "lib.rs"),
];

fn environment() -> Result<Environment<'static>, minijinja::Error> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    let syntax =
        SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true).build()?;
    environment.set_syntax(syntax);
    environment.add_function("method", method);
    environment.add_function("chain", chain);
    for (name, text) in TEMPLATES {
        environment.add_template(name, text)?;
    }
    Ok(environment)
}

/// The first line of a webhook's method, or its lines where it is too long for one, as rustfmt would have them.
fn method(name: &str, parameters: Vec<String>) -> String {
    let line = format!("    async fn {name}(&self, {}) -> Result<(), Denied> {{", parameters.join(", "));
    if line.len() <= 100 {
        return line;
    }
    let lines: String = parameters.iter().map(|p| format!("        {p},\n")).collect();
    format!("    async fn {name}(\n        &self,\n{lines}    ) -> Result<(), Denied> {{")
}

/// The last expression of a function: calls in a chain, on one line where rustfmt would have them so.
fn chain(start: &str, calls: Vec<String>) -> String {
    let line = format!("{start}{}", calls.concat());
    if line.len() <= 60 {
        return format!("    {line}");
    }
    let lines: Vec<String> = calls.iter().map(|c| format!("        {c}")).collect();
    format!("    {start}\n{}", lines.join("\n"))
}

/// The order in which rustfmt has modules: numbers by value, `_` before letters.
fn natural(name: &str) -> Vec<(u8, u64, char)> {
    let mut out = Vec::new();
    let mut chars = name.chars().peekable();
    while let Some(c) = chars.next() {
        match c.to_digit(10) {
            Some(digit) => {
                let mut number = u64::from(digit);
                while let Some(more) = chars.peek().and_then(|c| c.to_digit(10)) {
                    number = number.saturating_mul(10).saturating_add(u64::from(more));
                    chars.next();
                }
                out.push((1, number, ' '));
            }
            None if c == '_' => out.push((0, 0, c)),
            None => out.push((2, 0, c)),
        }
    }
    out
}

fn in_order(mut modules: Vec<String>) -> Vec<String> {
    modules.sort_by_key(|m| natural(m));
    modules
}

/// The modules of a kind's folder.
fn modules(project: &Project, kind: &Api) -> Vec<String> {
    let mut modules = Vec::new();
    if kind.external.is_some() {
        return modules;
    }
    for version in project.versions(&kind.kind) {
        modules.push(version.version.clone());
        if version.webhooks.defaulting || version.webhooks.validation {
            modules.push(format!("{}_webhook", version.version));
        }
        if version.webhooks.conversion && !modules.iter().any(|m| m == "conversion") {
            modules.push("conversion".to_owned());
        }
    }
    in_order(modules)
}

/// The paths of what belongs to a kind alone, and goes with it.
pub(crate) fn of_kind(project: &Project, api: &Api) -> Vec<String> {
    let module = api.module();
    let mut paths = vec![format!("src/{module}/mod.rs")];
    if api.controller {
        paths.push(format!("tests/{module}.rs"));
    }
    for version in project.versions(&api.kind) {
        paths.extend(of_version(version));
    }
    if project.versions(&api.kind).any(|v| v.webhooks.conversion) {
        paths.push(format!("src/{module}/conversion.rs"));
    }
    paths
}

/// The paths of what belongs to a version alone.
pub(crate) fn of_version(api: &Api) -> Vec<String> {
    if api.external.is_some() {
        return Vec::new();
    }
    let module = api.module();
    let mut paths = vec![format!("src/{module}/{}.rs", api.version), sample(api)];
    if api.webhooks.defaulting || api.webhooks.validation {
        paths.push(webhook(api));
    }
    paths
}

fn sample(api: &Api) -> String {
    format!("config/samples/{}_{}.yaml", api.version, api.module())
}

fn webhook(api: &Api) -> String {
    format!("src/{}/{}_webhook.rs", api.module(), api.version)
}

/// Every file of `project`: path and text.
pub(crate) fn files(project: &Project) -> Result<Vec<(String, String)>, Complaint> {
    let environment = environment()?;
    let render = |template: &str, context: Value| -> Result<String, minijinja::Error> {
        environment.get_template(template)?.render(context)
    };
    let whole = whole(project);
    let mut files = Vec::new();
    for (path, template) in PROJECT {
        files.push(((*path).to_owned(), render(template, whole.clone())?));
    }
    for kind in project.kinds() {
        let module = kind.module();
        let context = || context! { kind => of(project, kind), ..whole.clone() };
        let (source, test) = match (&kind.external, kind.controller) {
            (Some(_), _) => ("controller.rs", Some("controller_test.rs")),
            (None, true) => ("kind.rs", Some("test.rs")),
            (None, false) => ("types.rs", None),
        };
        files.push((format!("src/{module}/mod.rs"), render(source, context())?));
        if let Some(test) = test {
            files.push((format!("tests/{module}.rs"), render(test, context())?));
        }
        if kind.external.is_some() {
            continue;
        }
        if project.versions(&kind.kind).any(|v| v.webhooks.conversion) {
            files.push((format!("src/{module}/conversion.rs"), render("conversion.rs", context())?));
        }
        for version in project.versions(&kind.kind) {
            let context =
                || context! { kind => of(project, kind), api => one(project, version), ..whole.clone() };
            files.push((format!("src/{module}/{}.rs", version.version), render("version.rs", context())?));
            files.push((sample(version), render("sample.yaml", context())?));
            if version.webhooks.defaulting || version.webhooks.validation {
                files.push((webhook(version), render("webhook.rs", context())?));
            }
        }
    }
    Ok(files)
}

/// What every template may use.
fn whole(project: &Project) -> Value {
    let kinds: Vec<Value> = project.kinds().into_iter().map(|k| of(project, k)).collect();
    context! {
        homeostat => project.homeostat.clone(),
        layout => project.layout,
        name => project.name.clone(),
        library => names::library(&project.name),
        domain => project.domain.clone(),
        namespaced => project.namespaced,
        sdk_path => project.sdk.path.clone(),
        sdk_version => env!("CARGO_PKG_VERSION").rsplit_once('.').map_or("0", |(minor, _)| minor),
        rust_version => env!("CARGO_PKG_RUST_VERSION"),
        modules => in_order(project.kinds().into_iter().map(Api::module).collect()),
        kinds => kinds,
        apis => project.apis.iter().map(|a| one(project, a)).collect::<Vec<_>>(),
    }
}

/// What belongs to a kind.
fn of(project: &Project, kind: &Api) -> Value {
    let versions: Vec<Value> = project.versions(&kind.kind).map(|v| one(project, v)).collect();
    context! {
        kind => kind.kind.clone(),
        module => kind.module(),
        group => kind.group.clone(),
        plural => kind.plural.clone(),
        namespaced => kind.namespaced,
        // The first version is stored until a person says otherwise.
        version => kind.version.clone(),
        versions => versions,
        modules => modules(project, kind),
        spokes => versions_but_first(project, kind),
        version_list => in_order(project.versions(&kind.kind).map(|v| v.version.clone()).collect()).join(", "),
        definition => kind.definition(),
        operator => operator(kind),
        controller => kind.controller,
        external => kind.external.clone(),
        import => kind.external.as_deref().map(|path| foreign::import(path, &kind.kind)),
        name => field_manager(kind),
        conversion => project.versions(&kind.kind).any(|v| v.webhooks.conversion),
        webhooks => project.versions(&kind.kind).any(|v| v.webhooks.any()),
    }
}

/// What belongs to a version of a kind.
fn one(project: &Project, api: &Api) -> Value {
    let stored = project.versions(&api.kind).next().is_some_and(|first| first == api);
    context! {
        kind => api.kind.clone(),
        module => api.module(),
        group => api.group.clone(),
        version => api.version.clone(),
        plural => api.plural.clone(),
        namespaced => api.namespaced,
        stored => stored,
        controller => api.controller,
        external => api.external.clone(),
        defaulting => api.webhooks.defaulting,
        validation => api.webhooks.validation,
        conversion => api.webhooks.conversion,
        admission => api.webhooks.defaulting || api.webhooks.validation,
    }
}

/// The calls that add a kind's versions to its conversion.
fn versions_but_first(project: &Project, kind: &Api) -> Vec<String> {
    let spokes = project.versions(&kind.kind).skip(1);
    spokes.map(|v| format!(".spoke::<{}::{}>()", v.version, v.kind)).collect()
}

/// The type that reconciles a kind.
fn operator(api: &Api) -> String {
    format!("{}Operator", api.kind)
}

/// The field manager of its writes: it says whose fields they are, so it depends on nothing that may change.
fn field_manager(api: &Api) -> String {
    api.definition().chars().take(128).collect()
}
