//! The files in `deploy/` agree with the program's metrics, settings and commands.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::contracts::increment;
use crate::openmetrics;
use crate::server::Server;
use crate::support::run;

const BOARD: &str = include_str!("../../deploy/grafana.json");
const RULES: &str = include_str!("../../deploy/prometheus-rules.yaml");
const UNIT: &str = include_str!("../../deploy/warpgauge.service");

/// Names of the samples that a server exposes, each with the names of its labels.
fn exposed() -> BTreeMap<String, BTreeSet<String>> {
    let server = Server::start();
    let families = openmetrics::parse(&server.get("/metrics").text);
    let mut names: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (name, family) in &families {
        let suffixes: &[&str] = match family.kind.as_str() {
            "counter" => &["_total"],
            "histogram" => &["_bucket", "_count", "_sum"],
            "info" => &["_info"],
            _ => &[""],
        };
        for suffix in suffixes {
            names.entry(format!("{name}{suffix}")).or_default();
        }
        for (sample, labels, _) in &family.samples {
            let known = names.entry(sample.clone()).or_default();
            known.extend(labels.iter().map(|(label, _)| label.clone()));
        }
    }
    names
}

/// Metrics of this program that a query has, each with the labels of its selector.
fn asked(query: &str) -> Vec<(String, BTreeSet<String>)> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = Vec::new();
    let mut rest = query;
    while let Some(at) = rest.find("warpgauge_") {
        let (before, from) = rest.split_at(at);
        let end = from.find(|c| !is_name(c)).unwrap_or(from.len());
        let (name, after) = from.split_at(end);
        rest = after;
        if before.ends_with(is_name) {
            continue;
        }
        let selector = after.strip_prefix('{').and_then(|inner| inner.split_once('}'));
        let labels = selector.map_or("", |(inner, _)| inner).split(',');
        let labels = labels.filter_map(|part| part.split_once(['=', '!']));
        let labels = labels.map(|(label, _)| label.trim().to_owned());
        found.push((name.to_owned(), labels.collect()));
    }
    found
}

/// Labels that Prometheus adds to each sample.
const SCRAPED: [&str; 2] = ["instance", "job"];

fn check(queries: &[String]) {
    let exposed = exposed();
    let mut count = 0;
    for query in queries {
        for (name, labels) in asked(query) {
            count += 1;
            let known = exposed.get(&name).unwrap_or_else(|| panic!("no metric {name}: {query}"));
            for label in labels.iter().filter(|label| !SCRAPED.contains(&label.as_str())) {
                // A family without samples shows no labels yet.
                let is_known = known.is_empty() || known.contains(label);
                assert!(is_known, "{name} has no label {label}: {query}");
            }
        }
    }
    assert!(count >= queries.len() / 2, "{queries:?}");
}

#[test]
fn queries_are_read() {
    let found =
        asked("sum(rate(warpgauge_a_total{b=\"c\",d!~\"e\"}[5m])) / warpgauge_f, x_warpgauge_g");
    let labels = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let expected = vec![
        ("warpgauge_a_total".to_owned(), labels(&["b", "d"])),
        ("warpgauge_f".to_owned(), labels(&[])),
    ];
    assert_eq!(found, expected);
}

#[test]
fn the_board_asks_for_metrics_that_exist() {
    let board: Value = serde_json::from_str(BOARD).unwrap();
    let panels = board["panels"].as_array().unwrap();
    let mut queries = Vec::new();
    let (mut ids, mut cells) = (BTreeSet::new(), BTreeSet::new());
    for panel in panels {
        let title = panel["title"].as_str().unwrap();
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{title}");
        let side = |name: &str| panel["gridPos"][name].as_u64().unwrap();
        assert!(side("x") + side("w") <= 24, "{title} leaves the grid");
        for x in side("x")..side("x") + side("w") {
            for y in side("y")..side("y") + side("h") {
                assert!(cells.insert((x, y)), "{title} lies upon another panel");
            }
        }
        let targets = panel["targets"].as_array().unwrap();
        assert!(!targets.is_empty(), "{title}");
        queries.extend(targets.iter().map(|one| one["expr"].as_str().unwrap().to_owned()));
    }
    let variables = board["templating"]["list"].as_array().unwrap();
    let names = variables.iter().map(|one| one["name"].as_str().unwrap()).collect::<Vec<_>>();
    for query in &queries {
        for used in query.split('$').skip(1) {
            assert!(names.iter().any(|name| used.starts_with(name)), "no variable: {query}");
        }
    }
    let asked_by_variables = variables.iter().filter_map(|one| one["query"].as_str());
    queries.extend(asked_by_variables.filter(|query| query.contains('(')).map(str::to_owned));
    check(&queries);
}

#[test]
fn the_rules_ask_for_metrics_that_exist() {
    let rules: Value = serde_saphyr::from_str(RULES).unwrap();
    let mut queries = Vec::new();
    let mut names = BTreeSet::new();
    for group in rules["groups"].as_array().unwrap() {
        for rule in group["rules"].as_array().unwrap() {
            let name = rule["alert"].as_str().unwrap();
            assert!(names.insert(name.to_owned()), "{name} is there twice");
            let known = ["alert", "expr", "for", "labels", "annotations"];
            for field in rule.as_object().unwrap().keys() {
                assert!(known.contains(&field.as_str()), "{name}: {field}");
            }
            assert!(rule["labels"]["severity"].is_string(), "{name}");
            for text in ["summary", "description"] {
                assert!(rule["annotations"][text].is_string(), "{name}: {text}");
            }
            queries.push(rule["expr"].as_str().unwrap().to_owned());
        }
    }
    assert!(queries.len() >= 5, "{queries:?}");
    check(&queries);
}

/// Collectors of logs read a line at a time.
#[test]
fn a_log_of_json_has_a_line_for_each_job_that_ended() {
    let server = Server::start_configured("[log]\nformat = \"json\"\n");
    let right = server.evaluate(&increment());
    let mut contract = increment();
    contract["kernel"]["source_code"] = "no kernel".into();
    let broken = server.evaluate(&contract);
    let url = server.url.clone();
    server.terminate();
    let (_, output) = server.wait();
    let lines = output.lines().filter(|line| line.starts_with('{'));
    let lines = lines.map(|line| {
        serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"))
    });
    let lines = lines.collect::<Vec<_>>();
    for line in &lines {
        let has = |name: &str| line[name].is_string();
        assert!(has("time") && has("level") && has("target") && has("message"), "{line}");
    }
    assert!(lines.iter().any(|line| line["message"] == "listening"), "{url}: {output}");
    for report in [right, broken] {
        let own = lines.iter().filter(|line| line["job"] == report["job_id"]);
        let ended = own.filter(|line| line["message"] == "a job ended").collect::<Vec<_>>();
        assert_eq!(ended.len(), 1, "{output}");
        let (line, result) = (ended[0], &report["kernel_exec_result"]);
        assert_eq!((&line["verdict"], &line["kind"]), (&report["verdict"], &"evaluate".into()));
        assert_eq!(line["kernel"], result["metadata"]["kernel_name"], "{line}");
        let median = result["runtime_stats"]["median"].as_f64();
        let logged = line["median_ms"].as_f64();
        assert_eq!(logged.is_some(), median.is_some(), "{line}");
        let apart = median.zip(logged).map_or(0.0, |(a, b)| (a - b).abs());
        assert!(apart <= 1e-6 && line["seconds"].as_f64() > Some(0.0), "{line}");
    }
}

/// Settings that would take confinement or the GPU away from the server.
const FORBIDDEN: [&str; 6] = [
    "PrivateDevices",
    "RestrictNamespaces",
    "SystemCallFilter",
    "MemoryDenyWriteExecute",
    "ProtectKernelTunables",
    "ProtectProc",
];

#[test]
fn the_unit_starts_a_command_that_exists() {
    let lines = UNIT.lines().filter(|line| !line.starts_with('#') && line.contains('='));
    let settings = lines.map(|line| line.split_once('=').unwrap()).collect::<Vec<_>>();
    let value = |name: &str| settings.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
    for name in FORBIDDEN {
        assert_eq!(value(name), None, "{name}");
    }
    let start = value("ExecStart").unwrap();
    let words = start.split(' ').collect::<Vec<_>>();
    assert!(words[0].ends_with("/warpgauge"), "{start}");
    let (code, help, _) = run(&[words[1], "--help"]);
    assert_eq!(code, 0, "{start}");
    for flag in words.iter().filter(|word| word.starts_with("--")) {
        assert!(help.contains(flag), "{flag} of {start}");
    }
    let variable = value("Environment").unwrap().split_once('=').unwrap().0;
    let known = warpgauge_config::settings::SETTINGS.iter().any(|one| one.env == Some(variable));
    assert!(known, "{variable}");
    let stop: f64 = value("TimeoutStopSec").unwrap().parse().unwrap();
    let (_, config, _) = run(&["config", "--json"]);
    let config: Value = serde_json::from_str(&config).unwrap();
    let grace = find(&config, "server.shutdown_grace_s").expect("a grace");
    assert!(stop > grace, "systemd kills the server after {stop} s, which has {grace} s");
    let systemd = PathBuf::from("/usr/bin/systemd-analyze");
    the_rest_needs!("systemd-analyze", systemd.is_file());
    // The program need not be where the unit says.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("warpgauge.service");
    std::fs::write(&path, UNIT.replace(words[0], "/bin/true")).unwrap();
    let output = Command::new(systemd).args(["verify", "--man=no"]).arg(&path).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let about = said.lines().filter(|line| line.contains("warpgauge.service:"));
    assert_eq!(about.collect::<Vec<_>>(), [] as [&str; 0], "{said}");
}

/// The number of a setting, wherever the listing has it.
fn find(config: &Value, key: &str) -> Option<f64> {
    match config {
        Value::Array(items) => items.iter().find_map(|item| find(item, key)),
        Value::Object(fields) => {
            let own = fields.get("key").is_some_and(|name| name == key);
            let value = fields.get("value").or_else(|| fields.get(key));
            let number = value.and_then(|value| value.as_f64().or(value.get("value")?.as_f64()));
            match (own || fields.contains_key(key), number) {
                (true, Some(number)) => Some(number),
                _ => fields.values().find_map(|field| find(field, key)),
            }
        }
        _ => None,
    }
}
