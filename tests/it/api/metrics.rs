use super::fake::FakeService;
use super::http::{CONTRACT, Server, config};
use crate::openmetrics;

#[tokio::test]
async fn metrics_are_text_that_prometheus_reads() {
    let server = Server::start().await;
    server.post("/evaluate", CONTRACT).await;
    server.get("/jobs/nobody").await;
    server.get("/jobs/somebody-else").await;
    server.get("/no/such/path/whatever").await;
    server.send("BREW", "/health", &[], "").await;
    let answer = server.get("/metrics").await;
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.header("content-type"),
        Some("application/openmetrics-text; version=1.0.0; charset=utf-8")
    );
    let families = openmetrics::parse(answer.text());
    for family in families.values() {
        assert!(family.help.as_ref().is_some_and(|help| help.len() > 5), "{family:?}");
    }
    let times = &families["warpgauge_http_request_duration_seconds"];
    assert_eq!(times.value("_count", &[("method", "POST"), ("route", "/evaluate")]), 1.0);
    assert_eq!(times.value("_count", &[("route", "/jobs/{job_id}")]), 2.0);
    assert_eq!(times.value("_count", &[("route", "other")]), 2.0);
    let answers = &families["warpgauge_http_responses"];
    assert_eq!(answers.value("_total", &[("route", "/jobs/{job_id}"), ("status", "4xx")]), 2.0);
    assert!(!answer.text().contains("somebody-else") && !answer.text().contains("BREW"));
    assert_eq!(families["warpgauge_queue_capacity"].value("", &[]), 256.0);
    let build =
        families["warpgauge_build"].value("_info", &[("version", env!("CARGO_PKG_VERSION"))]);
    assert_eq!(build, 1.0);
    let up = families["warpgauge_device_up"].value("", &[("device", "0"), ("kind", "cuda")]);
    assert_eq!(up, 1.0);
    let uuids = |family: &str| -> Vec<String> {
        let labels = families[family].samples.iter().map(|(_, labels, _)| labels);
        let uuid = |labels: &Vec<(String, String)>| {
            labels.iter().find(|(name, _)| name == "uuid").map(|(_, uuid)| uuid.clone())
        };
        labels.map(|labels| uuid(labels).expect("a UUID")).collect()
    };
    let expected = uuids("warpgauge_device_up");
    assert!(expected.iter().all(|uuid| uuid.starts_with("GPU-")), "{expected:?}");
    for family in ["device_busy_seconds", "device_busy_ratio", "device_leases", "worker_restarts"] {
        assert_eq!(uuids(&format!("warpgauge_{family}")), expected, "{family}");
    }
    let stages = &families["warpgauge_stage_duration_seconds"];
    for stage in ["queue", "compile", "worker", "measure", "validate", "profile", "total"] {
        stages.value("_count", &[("stage", stage)]);
    }
}

#[tokio::test]
async fn what_is_refused_is_counted() {
    let server = Server::start().await;
    let count = async || {
        let text = server.get("/metrics").await;
        let families = openmetrics::parse(text.text());
        families["warpgauge_requests_rejected"].value("_total", &[("reason", "queue_full")])
    };
    let before = count().await;
    server.post("/evaluate", &super::http::contract_named("queue_full")).await;
    // Other tests of this process count too.
    assert!(count().await > before);
}

#[tokio::test]
async fn metrics_need_an_administrators_key_where_there_are_any() {
    let mut config = config();
    config.api_keys = vec!["key".into()];
    config.admin_keys = vec!["root".into()];
    let server = Server::with(config, FakeService::new()).await;
    for path in ["/metrics", "/stats"] {
        server.get(path).await.expect_error(401, "unauthorized");
        let with_key = server.send("GET", path, &["authorization: Bearer key"], "").await;
        with_key.expect_error(403, "forbidden");
    }
    let with_key = server.send("GET", "/metrics", &["authorization: Bearer root"], "").await;
    assert_eq!(with_key.status, 200);
}
