//! The share of bodies that one key may have beside others.

use super::fake::{FakeService, HANG};
use super::http::{CONTRACT, Server, config, contract_named};

const ONE: &str = "x-api-key: one";
const TWO: &str = "x-api-key: two";

async fn server() -> Server {
    let mut config = config();
    config.api_keys = vec!["one".into(), "two".into()];
    config.body_limit_bytes = 16 << 20;
    Server::with(config, FakeService::new()).await
}

#[tokio::test]
async fn large_bodies_of_one_key_leave_room_for_those_of_another() {
    let server = server().await;
    let padding = " ".repeat(15 << 20);
    let hanging = contract_named(HANG) + &padding;
    let mut running = Vec::new();
    for _ in 0..2 {
        running.push(server.open("POST", "/evaluate", &[ONE], &hanging).await);
    }
    let mut started = server.service.started.subscribe();
    started.wait_for(|count| *count == 2).await.unwrap();

    let body = CONTRACT.to_owned() + &padding;
    let refused = server.send("POST", "/evaluate", &[ONE], &body).await;
    let error = refused.expect_error(429, "too_many_large_bodies");
    assert!(error["error"].as_str().unwrap().contains("of this key"), "{error}");
    assert_eq!(refused.header("retry-after"), Some("1"));
    for (key, body) in [(TWO, body.as_str()), (ONE, CONTRACT)] {
        let answer = server.send("POST", "/evaluate", &[key], body).await;
        assert_eq!(answer.status, 200, "{key}: {}", answer.text());
    }
    server.service.release.add_permits(2);
    for mut connection in running {
        assert_eq!(connection.answer().await.status, 200);
    }
    let again = server.send("POST", "/evaluate", &[ONE], &body).await;
    assert_eq!(again.status, 200, "the room is not given back");
}
