//! The page of a job that has not ended: its place in the queue, and the script that keeps it up to
//! date.

use serde_json::{Value, json};

use crate::contracts::{endless, increment};
use crate::server::{Answer, Server, until};

/// What a browser sends when an address is typed.
const BROWSER: (&str, &str) = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8");

/// Text that would run a script if it were no text.
const HOSTILE: &str = "<img src=x onerror=alert(1)>";

fn policy(answer: &Answer) -> &str {
    answer.header("content-security-policy").unwrap()
}

#[test]
fn a_waiting_job_has_a_page_with_its_place_in_the_queue() {
    let server = Server::start();
    let mut jobs = vec![json!({"request": endless(60.0), "label": HOSTILE})];
    // More than the server takes from the queue at a time.
    jobs.extend((0..12).map(|_| json!({"request": increment(), "label": HOSTILE})));
    let accepted = server.post_json("/jobs", &json!({"jobs": jobs}));
    assert_eq!(accepted.status, 202, "{}", accepted.text);
    let ids: Vec<&str> = accepted.json["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|job| job["job_id"].as_str().unwrap())
        .collect();
    let (long, last) = (ids[0], ids[ids.len() - 1]);
    let path = format!("/jobs/{last}");
    until("the first job runs", || {
        let job = server.get(&format!("/jobs/{long}")).json;
        (job["state"] == "profiling").then_some(())
    });
    let place = |text: &str| {
        let (before, _) = text.split_once(" of the same caller before it")?;
        before.rsplit('>').next()?.split(' ').next()?.parse::<usize>().ok()
    };
    let page = server.get_with(&path, &[BROWSER]);
    let before = place(&page.text).unwrap_or_else(|| panic!("{}", page.text));
    assert!((1..12).contains(&before), "{before}");
    let policy_now = policy(&page);
    assert!(policy_now.contains("script-src 'self'; connect-src 'self'"), "{policy_now}");
    assert!(policy_now.contains("require-trusted-types-for 'script'"), "{policy_now}");
    assert!(!policy_now.contains("unsafe"), "{policy_now}");
    assert!(!page.text.contains("<img") && page.text.matches("<script").count() == 1);
    assert!(page.text.contains(&format!("data-events=\"..{path}/events\"")), "{}", page.text);
    let (_, script) = page.text.split_once("<script type=\"module\" src=\"..").unwrap();
    let script = server.get(script.split('"').next().unwrap());
    assert_eq!(script.header("content-type"), Some("text/javascript; charset=utf-8"));
    assert_eq!(script.header("cache-control"), Some("public, max-age=31536000, immutable"));
    assert!(script.text.contains("EventSource") && !script.text.contains("innerHTML"));
    // A job before it that leaves moves it forward.
    let between = ids[ids.len() - 2];
    let cancelled = server.delete(&format!("/jobs/{between}"));
    assert_eq!(cancelled.json["outcome"], "cancelled", "{}", cancelled.text);
    let page = server.get_with(&path, &[BROWSER]);
    // The server may have taken further jobs from the queue meanwhile.
    let now = place(&page.text).unwrap_or_else(|| panic!("{}", page.text));
    assert!(now < before, "{now} of {before}");
    // Its events have the same number, until it leaves the queue and ends.
    server.delete(&format!("/jobs/{long}"));
    let events = server.get(&format!("{path}/events")).text;
    let data = events.lines().filter_map(|line| line.strip_prefix("data: "));
    let news: Vec<Value> = data.map(|line| serde_json::from_str(line).unwrap()).collect();
    let end = news.last().unwrap();
    assert_eq!((&end["state"], &end["ahead"]), (&json!("completed"), &Value::Null), "{events}");
    let page = server.get_with(&path, &[BROWSER]);
    assert!(!page.text.contains("<script") && !page.text.contains("http-equiv=\"refresh\""));
    assert!(!policy(&page).contains("script-src"), "{}", policy(&page));
}
