use serde_json::{Value, json};

use super::http::{CONTRACT, Server, contract_named};

#[tokio::test]
async fn request_ids_are_echoed_if_they_can_go_into_a_log_line() {
    let server = Server::start().await;
    let long = "x".repeat(65);
    for (given, echoed) in
        [("run-7.a_B", true), ("a b", false), ("é", false), (&long, false), ("", false)]
    {
        let header = format!("x-request-id: {given}");
        let answer = server.send("GET", "/health", &[&header], "").await;
        let id = answer.header("x-request-id").unwrap();
        assert_eq!(id == given, echoed, "{given:?} became {id:?}");
        assert!((1..=64).contains(&id.len()));
    }
    let (one, two) = (server.get("/health").await, server.get("/nothing").await);
    assert_ne!(one.header("x-request-id"), two.header("x-request-id"));
}

#[tokio::test]
async fn answers_are_not_to_be_cached() {
    let server = Server::start().await;
    for path in ["/health", "/nothing", "/docs"] {
        assert_eq!(server.get(path).await.header("cache-control"), Some("no-store"), "{path}");
    }
}

#[tokio::test]
async fn browsers_run_and_frame_nothing_but_what_is_in_a_page() {
    let server = Server::start().await;
    for path in ["/", "/health", "/nothing", "/docs", "/openapi.json"] {
        let answer = server.get(path).await;
        let policy = answer.header("content-security-policy").unwrap_or_else(|| panic!("{path}"));
        for words in ["default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'"] {
            assert!(policy.contains(words), "{path}: {policy}");
        }
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(answer.header("x-frame-options"), Some("DENY"), "{path}");
        assert_eq!(answer.header("referrer-policy"), Some("same-origin"), "{path}");
        let scripts = policy.split(';').find(|part| part.trim_start().starts_with("script-src"));
        if path == "/docs" {
            assert_eq!(scripts.map(|list| list.matches("'sha256-").count()), Some(2), "{policy}");
            assert!(!policy.contains("unsafe"), "{policy}");
        }
    }
}

#[tokio::test]
async fn large_answers_are_compressed_for_those_who_want_it() {
    let server = Server::start().await;
    let body = CONTRACT.replacen('{', "{\"return_outputs\": \"all\",", 1);
    let want = ["accept-encoding: br, gzip;q=0.8"];
    let large = server.send("POST", "/evaluate", &want, &body).await;
    assert_eq!(large.header("content-encoding"), Some("gzip"));
    assert_eq!(large.header("vary"), Some("accept-encoding"));
    let mut text = String::new();
    assert_eq!(large.header("content-length"), Some(large.body.len().to_string().as_str()));
    let mut gzip = flate2::read::GzDecoder::new(&large.body[..]);
    std::io::Read::read_to_string(&mut gzip, &mut text).unwrap();
    let plain = server.post("/evaluate", &body).await;
    assert_eq!(plain.header("content-encoding"), None);
    let without_id = |text: &str| text.split_once(',').unwrap().1.to_owned();
    assert_eq!(without_id(&text), without_id(plain.text()));

    let small = server.send("GET", "/health", &want, "").await;
    assert_eq!(small.header("content-encoding"), None);
    let unwanted = ["accept-encoding: gzip;q=0, br"];
    let refused = server.send("POST", "/evaluate", &unwanted, &body).await;
    assert_eq!(refused.header("content-encoding"), None);
}

#[tokio::test]
async fn the_documentation_page_is_whole_and_fetches_nothing_from_elsewhere() {
    let server = Server::start().await;
    // A program, which takes anything, gets JSON at the front page; `pages` has what browsers get.
    let program = server.get("/").await;
    assert_eq!((program.status, program.header("vary")), (200, Some("accept")));
    let message = json!({"message": "GPU Tensor Server is running"});
    assert_eq!(serde_json::from_str::<Value>(program.text()).unwrap(), message);
    let page = server.get("/docs").await;
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    let html = page.text();
    assert!(html.contains("extern \\\"C\\\" __global__ void vector_add"), "no example");
    assert!(html.contains("\"securitySchemes\""), "no Authorize button");
    assert!(html.contains("SwaggerUIBundle({"));
    let fetched = ["src=\"http", "src='http", "href=\"http", "@import", "url(http"];
    let (_, outside_script) = html.rsplit_once("</script>").unwrap();
    let (head, _) = html.split_once("<script").unwrap();
    for sign in fetched {
        assert!(!head.contains(sign) && !outside_script.contains(sign), "{sign}");
    }
    assert_eq!(html.matches("</script>").count(), 2, "the document ends its script early");
}

#[tokio::test]
async fn head_is_get_without_a_body() {
    let server = Server::start().await;
    let answer = server.send("HEAD", "/health", &[], "").await;
    assert_eq!((answer.status, answer.body.len()), (200, 0));
    let missing = server.send("HEAD", "/nothing", &[], "").await;
    assert_eq!((missing.status, missing.body.len()), (404, 0));
    assert_eq!(server.post("/evaluate", &contract_named("kernel")).await.status, 200);
}
