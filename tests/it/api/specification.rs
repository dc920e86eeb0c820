use serde_json::Value;
use warpgauge_api::openapi;
use warpgauge_contract::{
    CompareRequest, ContractLimits, EvaluateRequest, SweepPlan, SweepRequest, validate,
    validate_compare,
};

/// Compares a file with what the code generates; with `WARPGAUGE_UPDATE_SPEC=1`, writes it.
fn check_file(name: &str, generated: &str) {
    let path = crate::server::root().join("openapi").join(name);
    if std::env::var_os("WARPGAUGE_UPDATE_SPEC").is_some_and(|value| value == "1") {
        std::fs::write(&path, generated).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    let line = stored.lines().zip(generated.lines()).position(|(one, other)| one != other);
    assert!(
        stored == generated,
        "openapi/{name} is not what the code serves (line {:?}); to update it, run \
         WARPGAUGE_UPDATE_SPEC=1 cargo test --test it api::specification",
        line.map(|line| line + 1),
    );
}

#[test]
fn the_stored_document_is_that_of_the_code() {
    check_file("warpgauge.yaml", &openapi::full_yaml());
}

fn full() -> Value {
    serde_json::from_str(&openapi::full_json()).unwrap()
}

fn client() -> Value {
    serde_json::from_str(&openapi::client_json()).unwrap()
}

/// Every operation with a label such as `post /evaluate`.
fn operations(document: &Value) -> Vec<(String, Value)> {
    let paths = document["paths"].as_object().unwrap();
    let operations = paths.iter().flat_map(|(path, operations)| {
        let operations = operations.as_object().unwrap().iter();
        operations.map(move |(method, operation)| (format!("{method} {path}"), operation.clone()))
    });
    operations.collect()
}

#[test]
fn every_operation_is_documented() {
    let operations = operations(&full());
    assert_eq!(operations.len(), 53);
    for (label, operation) in operations {
        let text = |key: &str| operation[key].as_str().unwrap_or_default().to_owned();
        assert!(!text("operationId").is_empty(), "{label}");
        assert!(operation["tags"].as_array().is_some_and(|tags| tags.len() == 1), "{label}");
        let summary = text("summary");
        assert!((4..40).contains(&summary.len()) && !summary.ends_with('.'), "{label}: {summary}");
        assert!(text("description").ends_with('.'), "{label}");
        for (status, answer) in operation["responses"].as_object().unwrap() {
            assert!(answer["description"].as_str().unwrap().len() > 5, "{label} {status}");
            let content = answer["content"].as_object().unwrap();
            assert!(!content.is_empty(), "{label} {status}");
            if ["200", "202"].contains(&status.as_str())
                && !content.contains_key("application/json")
            {
                let plain = |media: &Value| media["schema"]["type"] == "string";
                assert!(content.values().all(plain), "{label} {status}");
                continue;
            }
            let media = &content["application/json"];
            assert!(media["schema"]["$ref"].is_string(), "{label} {status}");
            assert!(media["example"].is_object(), "{label} {status} has no example");
        }
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            assert!(parameter["description"].is_string(), "{label}");
        }
    }
}

#[test]
fn errors_are_declared_where_they_can_happen() {
    for (label, operation) in operations(&full()) {
        let declared: Vec<&str> =
            operation["responses"].as_object().unwrap().keys().map(String::as_str).collect();
        let expected: &[&str] = match label.as_str() {
            "get /health" => &["200", "400", "403", "500", "503"],
            "get /live" => &["200", "400", "403", "500"],
            "post /" | "post /evaluate" | "post /execute" | "post /compare" | "post /sweep"
            | "post /gate" => &[
                "200", "202", "400", "401", "403", "404", "408", "409", "410", "413", "415", "429",
                "500", "503",
            ],
            "post /jobs" => &[
                "202", "400", "401", "403", "404", "408", "409", "410", "413", "415", "429", "500",
                "503",
            ],
            "post /baselines" | "post /profile/plan" => &[
                "200", "400", "401", "403", "404", "408", "409", "410", "413", "415", "429", "500",
                "503",
            ],
            "post /baselines/{name}/promote" => &[
                "200", "400", "401", "403", "404", "408", "409", "413", "415", "429", "500", "503",
            ],
            "get /baselines/{name}" | "delete /baselines/{name}" => {
                &["200", "400", "401", "403", "404", "429", "500", "503"]
            }
            "post /admin/cleanup-jobs" => &["200", "400", "401", "403", "429", "500", "503"],
            "get /jobs/{job_id}/events" => {
                &["200", "400", "401", "403", "404", "429", "500", "503"]
            }
            "delete /jobs/{job_id}" => &["200", "400", "401", "403", "404", "429", "500", "503"],
            "post /execute_spmv" | "post /upload_mtx" => {
                &["200", "400", "401", "403", "408", "409", "413", "415", "429", "500", "503"]
            }
            "post /execute_spmv_mtx" => &[
                "200", "400", "401", "403", "404", "408", "409", "413", "415", "429", "500", "503",
            ],
            "delete /check_mtx/{name}" | "get /check_mtx/{name}/data" => {
                &["200", "400", "401", "403", "404", "429", "500", "503"]
            }
            "post /tensors" | "post /tensors/from-array" => {
                &["200", "400", "401", "403", "408", "413", "415", "422", "429", "500", "503"]
            }
            label if label.starts_with("post") => {
                &["200", "400", "401", "403", "408", "413", "415", "429", "500", "503"]
            }
            label if label.contains("/tensors/{id}") || label.contains("/tensor-leases") => {
                &["200", "400", "401", "403", "404", "410", "429", "500", "503"]
            }
            label if label.contains("/artifacts") || label.ends_with("/{job_id}/code") => {
                &["200", "400", "401", "403", "404", "410", "429", "500", "503"]
            }
            label if label.starts_with("get /job/") || label.starts_with("get /jobs/") => {
                &["200", "400", "401", "403", "404", "429", "500", "503"]
            }
            _ => &["200", "400", "401", "403", "429", "500", "503"],
        };
        assert_eq!(declared, expected, "{label}");
        let limited = &operation["responses"]["429"];
        if limited.is_object() {
            assert!(limited["headers"]["RETRY-AFTER"].is_object(), "{label}");
        }
    }
}

#[test]
fn request_examples_are_valid_contracts() {
    let document = full();
    for path in ["/evaluate", "/execute"] {
        let content = &document["paths"][path]["post"]["requestBody"]["content"];
        assert_eq!(content.as_object().unwrap().len(), 6, "{path}");
        let example = &content["application/json"]["example"];
        serde_json::from_value::<EvaluateRequest>(example.clone()).unwrap();
        assert_eq!(&content["text/yaml"]["example"], example);
    }
    let content = &document["paths"]["/compare"]["post"]["requestBody"]["content"];
    let example = content["application/json"]["example"].clone();
    let request: CompareRequest = serde_json::from_value(example).unwrap();
    validate_compare(&request, &ContractLimits::default()).unwrap();
    let sweep = &document["paths"]["/sweep"]["post"];
    let example = &sweep["requestBody"]["content"]["application/json"]["example"];
    let request = serde_json::from_value::<SweepRequest>(example.clone()).unwrap();
    let plan = SweepPlan::new(request, &ContractLimits::default()).unwrap();
    validate(&plan.request(0).unwrap(), &ContractLimits::default()).unwrap();
    let answers = sweep["responses"]["200"]["content"].as_object().unwrap();
    let forms: Vec<_> = answers.keys().map(String::as_str).collect();
    assert_eq!(forms, ["application/json", "text/csv", "text/event-stream"]);
}

#[test]
fn generators_get_json_bodies_without_defaults() {
    let document = client();
    let mut seen = 0;
    for (label, operation) in operations(&document) {
        if let Some(content) = operation["requestBody"]["content"].as_object() {
            assert_eq!(content.keys().collect::<Vec<_>>(), ["application/json"], "{label}");
            seen += 1;
        }
    }
    assert_eq!(seen, 15);
    let text = document.to_string();
    assert!(!text.contains("\"default\":") && !text.contains("charset"));
    // All operations but those with pictures, files, forms, containers, events and metrics, which generators
    // refuse.
    assert!(full().to_string().contains("image/svg+xml") && !text.contains("image/"));
    assert_eq!(operations(&document).len() + 8, operations(&full()).len());
}

/// Java, Kotlin, C# and Go read every other format, and none, as 32 bits; progenitor and Java take one
/// type of answer.
#[test]
fn generators_get_wide_integers_and_one_type_of_answer() {
    let document = client();
    let mut integers = 0;
    integers_of(&document, &mut |schema, at| {
        let format = schema["format"].as_str().unwrap_or("none");
        assert!(["int32", "int64"].contains(&format), "{at}: {format}");
        integers += 1;
    });
    assert!(integers > 150, "{integers}");
    let memory = &document["components"]["schemas"]["DeviceReport"]["properties"]["memory_bytes"];
    assert_eq!((&memory["format"], &memory["minimum"]), (&"int64".into(), &0.into()));
    for (label, operation) in operations(&document) {
        let answers = operation["responses"].as_object().unwrap();
        let good = answers.keys().filter(|status| status.starts_with('2')).count();
        assert_eq!(good, 1, "{label}");
        let bad = answers.iter().filter(|(status, _)| !status.starts_with('2'));
        let bodies = bad.map(|(_, answer)| {
            answer["content"].as_object().and_then(|content| content.values().next()).cloned()
        });
        let bodies = bodies.map(|body| body.map(|body| body["schema"].to_string()));
        assert_eq!(bodies.collect::<std::collections::BTreeSet<_>>().len(), 1, "{label}");
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        assert!(parameters.clone().all(|parameter| parameter["name"] != "wait"), "{label}");
    }
    assert!(document["paths"]["/jobs"]["post"]["responses"]["202"].is_object());
    // The full document says what is so.
    let text = full().to_string();
    assert!(text.contains("uint64") && text.contains("\"name\":\"wait\""));
}

fn integers_of(value: &Value, see: &mut impl FnMut(&Value, &str)) {
    match value {
        Value::Object(fields) => {
            if value["type"] == "integer" {
                see(value, &value.to_string());
            }
            let schemas = fields.iter().filter(|(name, _)| *name != "example");
            schemas.for_each(|(_, inner)| integers_of(inner, see));
        }
        Value::Array(items) => items.iter().for_each(|item| integers_of(item, see)),
        _ => {}
    }
}

#[test]
fn keys_are_declared_and_health_needs_none() {
    let document = full();
    assert_eq!(document["components"]["securitySchemes"]["ApiKey"]["name"], "X-API-Key");
    assert_eq!(document["components"]["securitySchemes"]["Bearer"]["scheme"], "bearer");
    assert_eq!(document["security"].as_array().unwrap().len(), 3);
    assert_eq!(document["paths"]["/health"]["get"]["security"], serde_json::json!([]));
}
