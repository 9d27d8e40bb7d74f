//! What the environment says about the export of traces: a pure function of its variables.
//!
//! Names and meaning are those of the OpenTelemetry specification ("Environment Variable Specification", "OTLP
//! Exporter"). Empty is unset. Invariant: without an endpoint nothing is exported, though the specification has a
//! default: an operator that nobody gave a collector stays silent.

use std::path::PathBuf;
use std::time::Duration;

use http::Uri;

const TRACES_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// How long the collector may take to answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Where to, and how.
#[derive(Debug, PartialEq)]
pub(super) struct Settings {
    /// With its path; `http` or `https`.
    pub(super) endpoint: Uri,
    pub(super) timeout: Duration,
    /// Whom to trust instead of the machine's authorities: a file of PEM.
    pub(super) certificate: Option<PathBuf>,
}

impl Settings {
    /// `None` where nothing is to be exported. An error says which variable is wrong.
    pub(super) fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, String> {
        let get = |name: &str| variable(name).map(|v| v.trim().to_owned()).filter(|v| !v.is_empty());
        // What is said for traces alone goes before what is said for all signals.
        let either = |what: &str| {
            let names = [format!("OTEL_EXPORTER_OTLP_TRACES_{what}"), format!("OTEL_EXPORTER_OTLP_{what}")];
            names.into_iter().find_map(|name| get(&name).map(|value| (name, value)))
        };

        if get("OTEL_SDK_DISABLED").is_some_and(|v| v.eq_ignore_ascii_case("true")) {
            return Ok(None);
        }
        let endpoint = match (get(TRACES_ENDPOINT), get(ENDPOINT)) {
            (Some(whole), _) => endpoint(TRACES_ENDPOINT, &whole, &whole)?,
            (None, Some(base)) => {
                endpoint(ENDPOINT, &base, &format!("{}/v1/traces", base.trim_end_matches('/')))?
            }
            (None, None) => return Ok(None),
        };
        match get("OTEL_TRACES_EXPORTER").as_deref() {
            None | Some("otlp") => {}
            Some("none") => return Ok(None),
            Some(other) => return Err(format!("OTEL_TRACES_EXPORTER={other}: otlp and none are known")),
        }
        if let Some((name, protocol)) = either("PROTOCOL").filter(|(_, p)| p != "http/protobuf") {
            return Err(format!("{name}={protocol}: only http/protobuf is spoken, as a rule at port 4318"));
        }
        let timeout = match either("TIMEOUT") {
            None => TIMEOUT,
            Some((name, text)) => Duration::from_millis(
                text.parse().map_err(|_| format!("{name}={text}: write milliseconds, as in 10000"))?,
            ),
        };
        let certificate = either("CERTIFICATE").map(|(_, path)| path.into());
        Ok(Some(Self { endpoint, timeout, certificate }))
    }
}

/// The endpoint that a variable names.
fn endpoint(name: &str, said: &str, whole: &str) -> Result<Uri, String> {
    let uri = whole.parse::<Uri>().ok().filter(|u| matches!(u.scheme_str(), Some("http" | "https")));
    uri.ok_or_else(|| format!("{name}={said}: write a URL, as in http://localhost:4318"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Option<Settings>, String> {
        Settings::read(|name| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned()))
    }

    #[track_caller]
    fn check(variables: &[(&str, &str)], expect: Option<&str>) {
        let endpoint = read(variables).unwrap().map(|s| s.endpoint.to_string());
        assert_eq!(endpoint.as_deref(), expect, "{variables:?}");
    }

    #[test]
    fn what_is_said_for_traces_goes_first() {
        let base = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318");
        let slash = ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://collector/otlp/");
        let whole = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://traces:1/in");
        check(&[], None);
        check(&[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")], None);
        check(&[base], Some("http://collector:4318/v1/traces"));
        check(&[slash], Some("https://collector/otlp/v1/traces"));
        check(&[base, whole], Some("http://traces:1/in"));
        check(&[base, ("OTEL_SDK_DISABLED", "True")], None);
        check(&[base, ("OTEL_SDK_DISABLED", "no")], Some("http://collector:4318/v1/traces"));
        check(&[base, ("OTEL_TRACES_EXPORTER", "none")], None);
        check(&[base, ("OTEL_TRACES_EXPORTER", "otlp")], Some("http://collector:4318/v1/traces"));
        check(
            &[base, ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")],
            Some("http://collector:4318/v1/traces"),
        );
    }

    #[test]
    fn how_long_and_whom_to_trust() {
        let base = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318");
        let plain = read(&[base]).unwrap().unwrap();
        assert_eq!((plain.timeout, plain.certificate), (TIMEOUT, None));
        let said = read(&[
            base,
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "1"),
            ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "250"),
            ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/ca.pem"),
        ]);
        let said = said.unwrap().unwrap();
        assert_eq!((said.timeout, said.certificate), (Duration::from_millis(250), Some("/ca.pem".into())));
    }

    #[test]
    fn mistakes_say_what_to_write() {
        let base = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318");
        for (variables, expect) in [
            (
                vec![("OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4318")],
                "OTEL_EXPORTER_OTLP_ENDPOINT=localhost:4318: write a URL, as in http://localhost:4318",
            ),
            (
                vec![("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "grpc://x")],
                "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=grpc://x: write a URL, as in http://localhost:4318",
            ),
            (
                vec![base, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")],
                "OTEL_EXPORTER_OTLP_PROTOCOL=grpc: only http/protobuf is spoken, as a rule at port 4318",
            ),
            (
                vec![base, ("OTEL_TRACES_EXPORTER", "zipkin")],
                "OTEL_TRACES_EXPORTER=zipkin: otlp and none are known",
            ),
            (
                vec![base, ("OTEL_EXPORTER_OTLP_TIMEOUT", "10s")],
                "OTEL_EXPORTER_OTLP_TIMEOUT=10s: write milliseconds, as in 10000",
            ),
        ] {
            assert_eq!(read(&variables).unwrap_err(), expect);
        }
    }
}
