//! Jobs and their list as pages, for browsers.

use serde_json::json;

use super::fake::FakeService;
use super::http::{Answer, CONTRACT, Server, config, contract_named};

/// What a browser sends when an address is typed.
const BROWSER: &str = "accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

async fn browse(server: &Server, path: &str) -> Answer {
    server.send("GET", path, &[BROWSER], "").await
}

/// Checks what holds for every page without a script, and gives its text.
fn page(answer: &Answer, status: u16) -> &str {
    let policy = answer.header("content-security-policy").unwrap();
    assert!(!policy.contains("script-src") && !policy.contains("connect-src"), "{policy}");
    let html = any_page(answer, status);
    assert!(!html.contains("<script"), "{html}");
    html
}

/// Checks what holds for the first page of the list, which has a script, and gives its text.
fn listed(answer: &Answer) -> &str {
    let html = any_page(answer, 200);
    let policy = answer.header("content-security-policy").unwrap();
    assert!(policy.contains("script-src 'self'; connect-src 'self'; "), "{policy}");
    assert!(policy.contains("require-trusted-types-for 'script'"), "{policy}");
    assert!(html.matches("<script").count() == 1 && html.contains("assets/list-"), "{html}");
    html
}

/// Checks what holds for every page, also for one with a script, and gives its text.
fn any_page(answer: &Answer, status: u16) -> &str {
    assert_eq!(answer.status, status, "{answer:?}");
    assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"));
    let policy = answer.header("content-security-policy").unwrap();
    for words in ["default-src 'none'", "style-src 'self'", "frame-ancestors 'none'"] {
        assert!(policy.contains(words), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    let html = answer.text();
    assert!(html.starts_with("<!DOCTYPE html>") && html.ends_with("</html>"), "{html}");
    assert!(!html.contains(" style="), "{html}");
    html
}

#[tokio::test]
async fn a_browser_gets_a_page_of_a_job_and_a_program_its_json() {
    let server = Server::start().await;
    let accepted = server.post("/evaluate?wait=false", CONTRACT).await.json();
    let path = format!("/jobs/{}", accepted["job_id"].as_str().unwrap());
    let answer = browse(&server, &path).await;
    let html = page(&answer, 200);
    assert_eq!(answer.header("vary"), Some("accept"));
    for text in ["CORRECT", "vector_add", "Median time of a launch", "href=\"../docs\""] {
        assert!(html.contains(text), "{text}: {html}");
    }
    assert!(html.contains(&format!("href=\"..{path}/artifacts/")), "no artifacts: {html}");
    for accept in ["accept: */*", "accept: application/json", "accept: text/html;q=0.5, */*"] {
        let answer = server.send("GET", &path, &[accept], "").await;
        assert_eq!(answer.json()["state"], "completed", "{accept}");
        assert_eq!(answer.header("vary"), Some("accept"), "{accept}");
    }
    assert_eq!(server.get(&path).await.json()["state"], "completed");
    let head = server.send("HEAD", &path, &[BROWSER], "").await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    // The code has a page of its lines.
    let code = browse(&server, &format!("{path}/code?kernel=kernel")).await;
    let html = page(&code, 200);
    for text in
        ["id=\"L0-2\"", "add.s32 %r1, %r1, 1", "href=\"../../docs\"", "Instructions from elsewhere"]
    {
        assert!(html.contains(text), "{text}: {html}");
    }
    page(&browse(&server, "/jobs/nobody/code").await, 404);
    // What else is at a job's address is not a page's.
    let list = browse(&server, &format!("{path}/artifacts")).await;
    assert!(list.json()["artifacts"].is_array());
}

#[tokio::test]
async fn two_jobs_are_compared_by_what_their_reports_hold() {
    let server = Server::start().await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        let accepted = server.post("/evaluate?wait=false", CONTRACT).await.json();
        ids.push(accepted["job_id"].as_str().unwrap().to_owned());
    }
    let path = format!("/jobs/{}?compare={}", ids[0], ids[1]);
    let answer = browse(&server, &path).await;
    assert!(page(&answer, 200).contains("Build and launch"));
    server.get(&path).await.expect_error(400, "unknown_parameter");
    let missing = browse(&server, &format!("/jobs/{}?compare=nobody", ids[0])).await;
    page(&missing, 404);
}

#[tokio::test]
async fn the_front_page_lists_jobs_for_browsers() {
    let server = Server::start().await;
    assert!(listed(&browse(&server, "/").await).contains("There are no jobs yet"));
    let label = "%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E";
    let accepted = server.post(&format!("/evaluate?wait=false&label={label}"), CONTRACT).await;
    let job_id = accepted.json()["job_id"].as_str().unwrap().to_owned();
    let answer = browse(&server, "/").await;
    let html = listed(&answer);
    assert_eq!(answer.header("vary"), Some("accept"));
    assert!(html.contains(&format!("href=\"./jobs/{job_id}\"")), "{html}");
    assert!(
        html.contains("&lt;img src=x onerror=alert(1)&gt;") && !html.contains("<img"),
        "{html}"
    );
    // The script is a file of the server.
    let (_, script) = html.split_once("<script type=\"module\" src=\".").unwrap();
    let script = server.get(script.split('"').next().unwrap()).await;
    assert_eq!(script.header("content-type"), Some("text/javascript; charset=utf-8"));
    assert!(script.text().contains("XMLHttpRequest"), "{}", script.text());
    let message = json!({"message": "GPU Tensor Server is running"});
    assert_eq!(server.get("/").await.json(), message, "programs get what they got before");
}

#[tokio::test]
async fn links_filter_the_list_of_jobs_and_pages_keep_the_filter() {
    let server = Server::start().await;
    let request: serde_json::Value = serde_json::from_str(CONTRACT).unwrap();
    let item = |label: &str| json!({"request": request, "label": label});
    let items = (0..51).map(|_| item("many & more")).chain([item("single")]).collect::<Vec<_>>();
    assert_eq!(server.post("/jobs", &json!({"jobs": items}).to_string()).await.status, 202);
    let label = "label=many%20%26%20more";
    let answer = browse(&server, &format!("/?state=completed&kind=evaluate&{label}")).await;
    let html = listed(&answer);
    assert_eq!(html.matches("<span class=\"tag").count(), 50, "{html}");
    assert!(!html.contains(">single<"), "{html}");
    let (_, rest) =
        html.split_once("href=\"./?state=completed&amp;kind=evaluate&amp;label=").unwrap();
    assert!(rest.contains("rel=\"next\""), "{html}");
    let next = html.split("<a href=\".").find(|link| link.contains("rel=\"next\"")).unwrap();
    let next = next.split('"').next().unwrap().replace("&amp;", "&");
    assert!(next.contains(label) && next.contains("&cursor="), "{next}");
    let older = browse(&server, &next).await;
    let older = page(&older, 200);
    assert_eq!(older.matches("<span class=\"tag").count(), 1, "{older}");
    assert!(older.contains("Newest jobs"), "{older}");
    for query in [
        "state=failed&state=timed_out",
        "kind=gate",
        "verdict=wrong",
        "decision=PASS",
        "label=other",
    ] {
        let answer = browse(&server, &format!("/?{query}")).await;
        assert!(listed(&answer).contains("No job matches the filter."), "{query}");
    }
    // A form sends fields that are empty.
    assert!(listed(&browse(&server, "/?label=").await).contains(">single<"));
    for (query, reason) in [
        ("state=done", "there is no state"),
        ("kind=gates", "did you mean <code>gate</code>?"),
        ("verdict=worng", "did you mean <code>wrong</code>?"),
        ("decision=pass", "there is no decision"),
        ("lable=a", "did you mean <code>label</code>?"),
        ("label=a&label=b", "label: given several times"),
    ] {
        let answer = browse(&server, &format!("/?{query}")).await;
        assert!(page(&answer, 400).contains(reason), "{query}: {answer:?}");
    }
}

#[tokio::test]
async fn devices_have_a_page_with_what_the_machine_can_do() {
    let server = Server::start().await;
    let answer = browse(&server, "/devices").await;
    let html = page(&answer, 200);
    assert_eq!(answer.header("vary"), Some("accept"));
    for text in [
        "NVIDIA H200",
        "ready",
        "sm_90",
        "healthy",
        "memory and race checks",
        "install Nsight Systems",
        "nvrtc 13.0.88",
    ] {
        assert!(html.contains(text), "{text}: {html}");
    }
    assert_eq!(server.get("/devices").await.json()["devices"][0]["state"], "ready");
    let empty = Server::with(config(), FakeService::new().without_devices()).await;
    let answer = browse(&empty, "/devices").await;
    let html = page(&answer, 200);
    assert!(html.contains("unhealthy") && html.contains("no device works"), "{html}");
    page(&browse(&server, "/devices?refresh=true").await, 400);
}

#[tokio::test]
async fn the_history_has_a_page() {
    let server = Server::start().await;
    let answer = browse(&server, "/history?limit=100").await;
    let html = page(&answer, 200);
    for text in ["2026-01-05", "3f1c0a9", "slower by", "<svg", "./history?case=scale&amp;limit=100"]
    {
        assert!(html.contains(text), "{text}: {html}");
    }
    let none = browse(&server, "/history?case=%3Cimg%3E").await;
    assert!(page(&none, 200).contains("&lt;img&gt;</bdi></code> has no result."), "{none:?}");
    for query in ["limit=0", "limit=20001", "branch=main", "format=png"] {
        page(&browse(&server, &format!("/history?{query}")).await, 400);
    }
    // Programs, and browsers that request a format, get what they got before.
    assert_eq!(server.get("/history").await.json()["series"][0]["key"]["case"], "scale");
    let svg = browse(&server, "/history?format=svg").await;
    assert_eq!(svg.header("content-type"), Some("image/svg+xml"));
    let json = browse(&server, "/history?format=json").await;
    assert_eq!(json.json()["truncated"], false);
}

#[tokio::test]
async fn pages_show_the_data_of_their_owner_only() {
    let mut config = config();
    config.api_keys = vec!["first-key".into(), "second-key".into()];
    let server = Server::with(config, FakeService::new()).await;
    let send = async |method: &str, path: &str, key: &str, body: &str| {
        let key = format!("x-api-key: {key}");
        let json = "content-type: application/json";
        server.send(method, path, &[BROWSER, &key, json], body).await
    };
    let path = "/evaluate?wait=false&label=of-the-first";
    assert_eq!(send("POST", path, "first-key", CONTRACT).await.status, 202);
    for (key, own, sees) in [("first-key", 200, true), ("second-key", 404, false)] {
        for path in ["/", "/?label=of-the-first"] {
            let list = send("GET", path, key, "").await;
            assert_eq!(listed(&list).contains("jobs/job-1"), sees, "{key} {path}");
        }
        page(&send("GET", "/jobs/job-1", key, "").await, own);
    }
    let mut branches = Vec::new();
    for key in ["first-key", "second-key"] {
        let history = send("GET", "/history", key, "").await;
        let html = page(&history, 200).to_owned();
        let owner = blake3::hash(key.as_bytes()).to_hex()[..16].to_owned();
        assert!(html.contains(&owner), "{html}");
        branches.push((owner, html));
    }
    assert!(!branches[0].1.contains(&branches[1].0) && !branches[1].1.contains(&branches[0].0));
}

#[tokio::test]
async fn the_style_sheet_of_a_page_is_kept_for_long() {
    let mut config = config();
    config.api_keys = vec!["key".into()];
    let server = Server::with(config, FakeService::new()).await;
    let key = ["x-api-key: key", BROWSER];
    let html = server.send("GET", "/", &key, "").await;
    let (_, rest) = html.text().split_once("rel=\"stylesheet\" href=\".").unwrap();
    let path = rest.split('"').next().unwrap();
    // Without a key, as browsers fetch it.
    let sheet = server.get(path).await;
    assert_eq!(
        (sheet.status, sheet.header("content-type")),
        (200, Some("text/css; charset=utf-8"))
    );
    assert_eq!(sheet.header("cache-control"), Some("public, max-age=31536000, immutable"));
    assert!(sheet.text().contains("prefers-color-scheme"));
    for other in ["/assets/page-0000000000000000.css", "/assets/", "/assets/a/b"] {
        server.get(other).await.expect_error(404, "not_found");
    }
}

#[tokio::test]
async fn a_page_that_needs_a_key_says_what_to_do() {
    let mut config = config();
    config.api_keys = vec!["first-key".into(), "second-key".into()];
    let server = Server::with(config, FakeService::new()).await;
    for (path, command) in [
        ("/", "warpgauge jobs list"),
        ("/jobs/job-1", "warpgauge jobs show job-1 --html job.html"),
        ("/devices", "curl -H"),
        ("/history", "warpgauge history"),
    ] {
        let answer = browse(&server, path).await;
        let html = page(&answer, 401);
        assert!(html.contains("This page needs an API key"), "{html}");
        assert!(html.contains(command), "{html}");
        let challenge = answer.header("www-authenticate").unwrap();
        assert!(challenge.starts_with("Basic realm=\"warpgauge\""), "{challenge}");
        let wrong = server.send("GET", path, &[BROWSER, "x-api-key: wrong"], "").await;
        page(&wrong, 401);
    }
    let program = server.get("/jobs/job-1").await;
    program.expect_error(401, "unauthorized");
}

#[tokio::test]
async fn errors_of_pages_are_pages() {
    let server = Server::start().await;
    let html = browse(&server, "/jobs/%3Cscript%3E").await;
    assert!(page(&html, 404).contains("There is no such page"));
    let long = browse(&server, &format!("/jobs/{}", "x".repeat(5000))).await;
    assert!(page(&long, 404).len() < 4_000);
    // Other operations answer browsers in JSON, too.
    browse(&server, "/nothing").await.expect_error(404, "not_found");
    let refused = server.send("POST", "/evaluate", &[BROWSER], &contract_named("invalid")).await;
    assert_eq!(refused.header("content-type"), Some("application/json"));
}

#[tokio::test]
async fn the_front_of_the_book_is_there_with_and_without_a_slash() {
    let server = Server::start().await;
    for path in ["/book", "/book/"] {
        let answer = server.get(path).await;
        assert_eq!(answer.status, 307, "{path}");
        let first = answer.header("location").unwrap();
        assert!(first.starts_with("/book/") && first.len() > "/book/".len(), "{first}");
        assert_eq!(server.get(first).await.status, 200, "{first}");
    }
    server.get("/book/nothing").await.expect_error(404, "not_found");
}

/// A form with these fields, as browsers send it.
async fn submit(server: &Server, fields: &[(&str, &str)]) -> Answer {
    let mut body = String::new();
    for (name, value) in fields {
        let head = format!("--B\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n");
        body.push_str(&format!("{head}{value}\r\n"));
    }
    body.push_str("--B--\r\n");
    let length = format!("content-length: {}", body.len());
    let headers = [BROWSER, "content-type: multipart/form-data; boundary=B", length.as_str()];
    server.send("POST", "/submit", &headers, body).await
}

#[tokio::test]
async fn a_kernel_is_submitted_from_a_page() {
    let server = Server::start().await;
    let answer = browse(&server, "/submit?example=vector_add").await;
    let html = page(&answer, 200);
    for text in ["vector_add", "source_code: &quot;", "<option value=\"cu\" selected>"] {
        assert!(html.contains(text), "{text}: {html}");
    }
    assert!(!html.contains("source_file: reference"), "{html}");
    page(&browse(&server, "/submit?example=none").await, 400);
    page(&browse(&server, "/submit").await, 200);

    let contract = CONTRACT.replace("source_code", "unused");
    let contract: serde_json::Value = serde_json::from_str(&contract).unwrap();
    let io = json!({"kernel": {"io": contract["kernel"]["io"]}}).to_string();
    let fields =
        [("language", "cu"), ("source", "__global__ void k(float* x) {}\r\n"), ("label", "a b")];
    let sent = [&fields[..], &[("contract", io.as_str()), ("action", "evaluate")]].concat();
    let answer = submit(&server, &sent).await;
    assert_eq!(answer.status, 303, "{answer:?}");
    let location = answer.header("location").unwrap();
    let job = server.get(&format!("/{location}")).await.json();
    assert_eq!((&job["kind"], &job["label"]), (&json!("evaluate"), &json!("a b")));

    // What cannot be accepted leaves the form as it was typed.
    for (contract, text) in [
        ("kernel: [", "contract"),
        ("kernel: {source_code: x}", "the kernel file is the code"),
        ("</textarea><script>", "contract"),
    ] {
        let sent = [&fields[..], &[("contract", contract), ("action", "evaluate")]].concat();
        let answer = submit(&server, &sent).await;
        let html = page(&answer, 400);
        assert!(html.contains("not accepted") && html.contains(text), "{html}");
        assert!(html.contains("__global__ void k(float* x) {}\n</textarea>"), "{html}");
        assert!(html.contains("value=\"a b\""), "{html}");
    }
    let wrong = submit(&server, &[("language", "rs"), ("source", "x")]).await;
    assert!(page(&wrong, 400).contains("must be one of cu, ptx, py"));
    let plain = server.send("POST", "/submit", &[BROWSER, "content-length: 1"], "a").await;
    page(&plain, 415);
}

#[tokio::test]
async fn a_job_is_cancelled_from_its_page() {
    let server = Server::start().await;
    let hangs = contract_named(super::fake::HANG);
    let accepted = server.post("/evaluate?wait=false", &hangs).await.json();
    let path = format!("/jobs/{}", accepted["job_id"].as_str().unwrap());
    let answer = browse(&server, &path).await;
    let html = any_page(&answer, 200);
    let policy = answer.header("content-security-policy").unwrap();
    // The job has not ended, so the page follows its events.
    assert!(policy.contains("script-src 'self'; connect-src 'self'; "), "{policy}");
    assert!(html.contains("<script type=\"module\" src=\"../assets/live-"), "{html}");
    assert!(html.contains(&format!("action=\"..{path}/cancel\"")), "{html}");
    let length = "content-length: 0";
    let other = [BROWSER, length, "origin: http://evil.example"];
    page(&server.send("POST", &format!("{path}/cancel"), &other, "").await, 403);
    let cancelled = server.send("POST", &format!("{path}/cancel"), &[BROWSER, length], "").await;
    let id = path.trim_start_matches("/jobs/");
    assert_eq!((cancelled.status, cancelled.header("location")), (303, Some(&*format!("../{id}"))));
    let again = server.send("POST", &format!("{path}/cancel"), &[BROWSER, length], "").await;
    assert_eq!(again.status, 303);
    let none = server.send("POST", "/jobs/nobody/cancel", &[BROWSER, length], "").await;
    assert!(page(&none, 404).contains("href=\"../../assets/"), "{none:?}");
}

/// A browser asks its user for a password, and then adds it to the requests of all pages.
#[tokio::test]
async fn a_browser_sends_the_key_as_a_password() {
    let mut config = config();
    config.api_keys = vec!["ke:y".into()];
    let server = Server::with(config, FakeService::new()).await;
    // `user:ke:y`, and `user:other`.
    let [key, wrong] =
        ["dXNlcjprZTp5", "dXNlcjpvdGhlcg=="].map(|token| format!("authorization: Basic {token}"));
    listed(&server.send("GET", "/", &[BROWSER, &key], "").await);
    page(&server.send("GET", "/", &[BROWSER, &wrong], "").await, 401);
    for bad in ["authorization: Basic", "authorization: Basic !", "authorization: Basic dXNlcg=="] {
        page(&server.send("GET", "/", &[BROWSER, bad], "").await, 401);
    }
    let own = "origin: http://localhost";
    let other = "origin: http://evil.example";
    let json = "content-type: application/json";
    let length = format!("content-length: {}", CONTRACT.len());
    for (headers, status) in [
        (vec![key.as_str(), own], 200),
        (vec![key.as_str(), other], 403),
        (vec![key.as_str()], 403),
        (vec![key.as_str(), "sec-fetch-site: cross-site"], 403),
        (vec!["x-api-key: ke:y"], 200),
    ] {
        let sent = [&headers[..], &[json, length.as_str()]].concat();
        let answer = server.send("POST", "/evaluate", &sent, CONTRACT).await;
        assert_eq!(answer.status, status, "{headers:?}: {answer:?}");
    }
    let read = [key.as_str(), "sec-fetch-site: cross-site", "sec-fetch-mode: no-cors"];
    assert_eq!(server.send("GET", "/jobs", &read, "").await.status, 403);
}

#[tokio::test]
async fn forms_need_keys_and_come_from_pages_of_this_server() {
    let mut config = config();
    config.api_keys = vec!["secret".into()];
    let server = Server::with(config, FakeService::new()).await;
    for path in ["/submit", "/import"] {
        page(&browse(&server, path).await, 401);
    }
    page(&submit(&server, &[("source", "x")]).await, 401);
    let server = Server::start().await;
    let other = [BROWSER, "origin: http://evil.example", "content-length: 0"];
    page(&server.send("POST", "/submit", &other, "").await, 403);
    page(&server.send("POST", "/import", &other, "").await, 403);
}
