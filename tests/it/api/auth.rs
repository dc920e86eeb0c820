use warpgauge_api::{ServeError, serve};

use super::fake::FakeService;
use super::http::{CONTRACT, Server, config};

async fn keyed() -> Server {
    let mut config = config();
    config.api_keys = vec!["first-key".into(), "second-key".into()];
    Server::with(config, FakeService::new()).await
}

#[tokio::test]
async fn whatever_is_not_open_needs_a_key() {
    let server = keyed().await;
    for path in
        ["/", "/health", "/live", "/docs", "/openapi.json", "/openapi.yaml", "/openapi-client.json"]
    {
        let answer = server.get(path).await;
        assert!(answer.status < 400, "{path}: {}", answer.status);
    }
    for path in
        ["/info", "/devices", "/jobs", "/metrics", "/stats", "/jobs/1", "/job/1", "/nothing"]
    {
        let answer = server.get(path).await;
        answer.expect_error(401, "unauthorized");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer realm=\"warpgauge\""));
    }
    for path in ["/evaluate", "/compile", "/execute", "/health", "//health", "/health/"] {
        server.post(path, CONTRACT).await.expect_error(401, "unauthorized");
    }
}

#[tokio::test]
async fn any_configured_key_is_taken_in_either_header() {
    let server = keyed().await;
    for (header, admitted) in [
        ("x-api-key: first-key", true),
        ("X-API-KEY: second-key", true),
        ("authorization: Bearer first-key", true),
        ("authorization: bearer   second-key", true),
        ("x-api-key: first-ke", false),
        ("x-api-key: first-key2", false),
        ("x-api-key:", false),
        ("authorization: Bearer", false),
        ("authorization: Bearer ", false),
        ("authorization: Basic first-key", false),
        ("authorization: first-key", false),
        ("cookie: x-api-key=first-key", false),
    ] {
        let answer = server.send("GET", "/info", &[header], "").await;
        assert_eq!(answer.status, if admitted { 200 } else { 401 }, "{header}");
    }
    let wrong_and_right = ["x-api-key: wrong", "authorization: Bearer first-key"];
    assert_eq!(server.send("GET", "/info", &wrong_and_right, "").await.status, 200);
}

#[tokio::test]
async fn guesses_of_keys_are_bounded_and_keys_in_use_are_served() {
    let server = keyed().await;
    let guess =
        async |key: &str| server.send("GET", "/info", &[&format!("x-api-key: {key}")], "").await;
    assert_eq!(guess("first-key").await.status, 200);
    let mut refused = 0;
    for number in 0..200 {
        let answer = guess(&format!("guess-{number}")).await;
        if answer.status == 429 {
            refused += 1;
            assert_eq!(answer.json()["code"], "too_many_wrong_keys");
            let wait: u64 = answer.header("retry-after").unwrap().parse().unwrap();
            assert!((1..=60).contains(&wait), "{wait}");
        } else {
            answer.expect_error(401, "unauthorized");
        }
    }
    assert!(refused > 100, "{refused} of 200 guesses were not looked at");
    // A key in use from there is served, what needs no key is, and neither is a way to guess on.
    assert_eq!(guess("first-key").await.status, 200);
    let health = server.send("GET", "/health", &["x-api-key: second-key"], "").await;
    assert_eq!((health.status, health.json().get("gpu_count")), (200, None));
    assert_eq!(server.get("/info").await.status, 401);
}

#[tokio::test]
async fn without_a_key_only_loopback_is_served() {
    for host in ["0.0.0.0", "::", "192.0.2.1"] {
        for keys in [vec![], vec![String::new()]] {
            let mut config = config();
            config.host = host.into();
            config.api_keys = keys;
            let service = std::sync::Arc::new(FakeService::new());
            let bound = |address| panic!("listens on {address}");
            let error = serve(&config, service.services(), std::future::pending(), bound)
                .await
                .unwrap_err();
            assert!(matches!(error, ServeError::OpenToOthers { .. }), "{error}");
            assert!(error.to_string().contains("server.api_keys"), "{error}");
        }
    }
    let mut config = config();
    config.host = "0.0.0.0".into();
    config.api_keys = vec!["key".into()];
    let server = Server::with(config, FakeService::new()).await;
    assert!(server.address.ip().is_unspecified());
}
