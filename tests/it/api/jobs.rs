use super::http::{CONTRACT, Server};

#[tokio::test]
async fn an_evaluation_that_is_not_waited_for_can_be_fetched() {
    let server = Server::start().await;
    let accepted = server.post("/evaluate?wait=false", CONTRACT).await;
    assert_eq!(accepted.status, 202);
    let body = accepted.json();
    let job_id = body["job_id"].as_str().unwrap();
    let url = format!("/jobs/{job_id}");
    assert_eq!(accepted.header("location"), Some(url.as_str()));
    assert_eq!(body["status_url"], url);
    assert_eq!(body["status"], "submitted");

    let job = server.get(&url).await.json();
    assert_eq!(job["job_id"], job_id);
    assert_eq!(job["state"], "completed");
    assert_eq!(job["result"]["kernel_exec_result"]["compiled"], true);

    let state = server.get(&format!("/job/{job_id}")).await.json();
    assert_eq!(state["job_id"], job_id);
    assert_eq!(state["status"], "completed");
    assert_eq!(state["created_at"], 1_767_225_600.0);
    assert!(state["error"].is_null() && state.get("error").is_some(), "{state}");
}

#[tokio::test]
async fn jobs_that_are_not_there_are_404() {
    let server = Server::start().await;
    for id in ["nobody", "%00", "a%2Fb", &"x".repeat(5000)] {
        for path in [format!("/jobs/{id}"), format!("/job/{id}")] {
            let error = server.get(&path).await.expect_error(404, "no_such_job");
            assert!(error["error"].as_str().unwrap().len() < 300, "{error}");
        }
    }
}

#[tokio::test]
async fn artifacts_have_their_media_types_and_errors() {
    let server = Server::start().await;
    let accepted = server.post("/evaluate?wait=false", CONTRACT).await.json();
    let job = format!("/jobs/{}", accepted["job_id"].as_str().unwrap());
    let list = server.get(&format!("{job}/artifacts")).await.json();
    assert_eq!(list["artifacts"].as_array().unwrap().len(), 6);
    let ptx = server.get(&format!("{job}/artifacts/ptx?kernel=a%20b")).await;
    assert_eq!((ptx.status, ptx.text()), (200, "// a b\n"));
    assert_eq!(ptx.header("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(ptx.header("content-disposition"), Some("attachment; filename=\"kernel.ptx\""));
    assert_eq!(ptx.header("x-content-type-options"), Some("nosniff"));
    server.get(&format!("{job}/artifacts/log")).await.expect_error(410, "artifact_gone");
    server.get(&format!("{job}/artifacts/sass")).await.expect_error(404, "no_such_artifact");
    let error =
        server.get(&format!("{job}/artifacts/exe")).await.expect_error(404, "no_such_artifact");
    assert!(error["error"].as_str().unwrap().contains("ncu-rep"), "{error}");
    for path in ["artifacts", "artifacts/ptx", "roofline.svg"] {
        server.get(&format!("/jobs/nobody/{path}")).await.expect_error(404, "no_such_job");
    }
    let error =
        server.get(&format!("{job}/roofline.svg")).await.expect_error(404, "no_such_artifact");
    assert!(error["error"].as_str().unwrap().contains("profile"), "{error}");
}
