//! The examples of the OpenAPI document, sent as a documentation page sends them, twice each.

use serde_json::Value;

use crate::server::{Answer, Server};

/// A request as a page fills it in; `None` where a required field is empty, which the page asks for.
struct Filled {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Option<Value>,
}

impl Filled {
    fn of(method: &str, path: &str, operation: &Value) -> Option<Self> {
        let content = &operation["requestBody"]["content"];
        let body = &content["application/json"]["example"];
        assert_eq!(content.is_null(), body.is_null(), "{method} {path} has no example");
        let (mut path, mut query, mut headers) = (path.to_owned(), Vec::new(), Vec::new());
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let schema = &parameter["schema"];
            let shown = [&parameter["example"], &schema["example"], &schema["default"]];
            let shown = shown.into_iter().find(|value| !value.is_null());
            let value = shown.map(|value| value.to_string().trim_matches('"').to_owned());
            let name = parameter["name"].as_str().unwrap();
            match (parameter["in"].as_str().unwrap(), value) {
                (_, None) if parameter["required"] == true => return None,
                (_, None) => {}
                ("path", Some(value)) => path = path.replace(&format!("{{{name}}}"), &value),
                ("query", Some(value)) => query.push(format!("{name}={value}")),
                (_, Some(value)) => headers.push((name.to_owned(), value)),
            }
        }
        if !query.is_empty() {
            path = format!("{path}?{}", query.join("&"));
        }
        headers.push(("content-type".to_owned(), "application/json".to_owned()));
        let body = (!body.is_null()).then(|| body.clone());
        Some(Self { method: method.to_owned(), path, headers, body })
    }

    fn send(&self, server: &Server) -> Answer {
        let headers: Vec<_> =
            self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let body = self.body.as_ref().map_or(String::new(), Value::to_string);
        match self.method.as_str() {
            "get" => server.get_with(&self.path, &headers),
            "post" => server.post(&self.path, &headers, body.as_bytes()),
            other => panic!("nothing is to be done to what is not named: {other} {}", self.path),
        }
    }
}

/// Whether all that an operation takes are files, or what programs alone can write.
fn takes_no_text(operation: &Value) -> bool {
    let binary = ["multipart/form-data", "application/octet-stream"];
    let content = operation["requestBody"]["content"].as_object();
    content.is_some_and(|content| content.keys().all(|kind| binary.contains(&kind.as_str())))
}

#[test]
fn every_example_answers_at_one_click_and_at_another() {
    let server = Server::start();
    let jobs = || {
        let list = server.get("/jobs?limit=200").json["jobs"].clone();
        list.as_array().unwrap().iter().map(|job| job["job_id"].clone()).collect::<Vec<_>>()
    };
    let document = server.get("/openapi.json").json;
    let (mut sent, mut files) = (0, Vec::new());
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            if takes_no_text(operation) {
                files.push(path.as_str());
                continue;
            }
            let Some(filled) = Filled::of(method, path, operation) else {
                assert!(path.contains('{'), "{method} {path} cannot be sent as it is shown");
                continue;
            };
            let before = jobs();
            for click in 1..=2 {
                let answer = filled.send(&server);
                let ok = (200..300).contains(&answer.status);
                assert!(ok, "click {click}: {method} {}: {}", filled.path, answer.text);
            }
            let after = jobs();
            assert!(after.ends_with(&before), "{method} {path} removed {before:?}, left {after:?}");
            sent += 1;
        }
    }
    assert_eq!(
        files,
        ["/functions/calls", "/import", "/import/changes", "/tensors"],
        "what cannot be shown as text"
    );
    assert!(sent >= 18 && jobs().len() >= 14, "{sent} operations, {} jobs", jobs().len());
    // What has to be named first is not there to be named by its example.
    let promote = &document["paths"]["/baselines/{name}/promote"]["post"]["parameters"][0];
    assert_eq!((&promote["required"], &promote["example"]), (&true.into(), &Value::Null));
}

#[test]
fn evaluations_come_first_and_the_clean_up_example_keeps_a_month() {
    let server = Server::start();
    let document = server.get("/openapi.json").json;
    let cleanup = &document["paths"]["/admin/cleanup-jobs"]["post"];
    let filled = Filled::of("post", "/admin/cleanup-jobs", cleanup).unwrap();
    assert_eq!(filled.path, "/admin/cleanup-jobs?older_than_s=2592000");
    // As it is written, and shown: maps are sorted once they are read.
    let text = server.get("/openapi.json").text;
    let (_, paths) = text.split_once("\"paths\": {").unwrap();
    let first = paths.trim_start().split('"').nth(1).unwrap();
    let tags = document["tags"].as_array().unwrap().iter().map(|tag| tag["name"].clone());
    assert_eq!(first, "/evaluate");
    assert_eq!(
        tags.collect::<Vec<_>>(),
        ["Kernels", "Jobs", "Gate", "Reports", "Machine", "Spmv", "Tensors", "Functions"]
    );
}
