use serde_json::json;

use super::fake::FakeService;
use super::http::{Server, config};

#[tokio::test]
async fn a_machine_with_a_gpu_describes_it() {
    let server = Server::start().await;
    let health = server.get("/health").await.json();
    assert_eq!(health["status"], "healthy");
    assert_eq!(health["reasons"], json!([]));
    assert_eq!(health["gpu_available"], true);
    assert_eq!(health["gpu_count"], 1);
    assert_eq!(health["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(health["job_stats"]["total_jobs"], 1000);
    assert_eq!(health["job_stats"]["by_status"], json!({"completed": 998, "failed": 2}));
    assert_eq!(health["gpu_manager"]["available_gpus"], 1);

    let cuda = server.get("/cuda/info").await.json();
    assert_eq!(cuda["available"], true);
    assert_eq!(cuda["device_count"], 1);
    let device = &cuda["devices"][0];
    assert_eq!(
        (&device["device_id"], &device["major"], &device["minor"]),
        (&json!(0), &json!(9), &json!(0))
    );
    assert_eq!(device["total_memory"], 150_754_820_096_u64);

    assert_eq!(server.get("/info").await.json()["body_limit_bytes"], 500_000_000);
    assert_eq!(server.get("/devices").await.json()["devices"][0]["state"], "ready");
    let capabilities = server.get("/capabilities").await.json();
    assert_eq!(capabilities["compile"]["sandbox"], "landlock enforced");
    assert_eq!(capabilities["devices"][0]["machine_code"]["available"], true);
    let device = &capabilities["devices"][0];
    assert_eq!(device["counters"]["code"], "no_permission");
    assert!(device["counters"]["remedy"].as_str().unwrap().contains("CAP_SYS_ADMIN"));
    assert_eq!(device["profile"][0]["available"], false);
    assert_eq!(device["sanitize"]["available"], true);
    assert_eq!(capabilities["tools"][0]["version"], "2025.3.1.0");
    let again = server.get("/capabilities?refresh=true").await;
    assert_eq!((again.status, again.json()), (200, capabilities));
    assert_eq!(server.get("/health").await.header("x-gpu-type"), Some("NVIDIA H200"));
}

#[tokio::test]
async fn a_machine_without_devices_says_so() {
    let server = Server::with(config(), FakeService::new().without_devices()).await;
    let answer = server.get("/health").await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.header("x-gpu-type"), None);
    let health = answer.json();
    assert_eq!(health["status"], "unhealthy");
    assert_eq!(health["reasons"][0]["code"], "no_device");
    let live = server.get("/live").await;
    assert_eq!((live.status, live.json()), (200, json!({"status": "alive"})));
    let metrics = server.get("/metrics").await;
    assert!(metrics.text().contains("\nwarpgauge_ready{} 0.0\n"), "{}", metrics.text());
    assert_eq!(health["gpu_available"], false);
    assert_eq!(health["gpu_count"], 0);
    let cuda = server.get("/cuda/info").await.json();
    assert_eq!(
        cuda,
        json!({"available": false, "cuda_available": false, "device_count": 0, "devices": []})
    );
}
