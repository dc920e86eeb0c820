//! Stored baselines from the command line: at a server, and on this machine.

use serde_json::json;
use sqlx::Connection;

use super::*;
use crate::server::{Server, data_directory};

/// The commands as a pipeline uses them; `place` says where baselines are.
fn keeps_a_baseline(place: &[&str]) {
    let repository = Repository::new();
    let run = |words: &[&str]| repository.run(&[words, place].concat());
    let json = |words: &[&str]| {
        let (exit, stdout, stderr) = run(&[words, &["--json"]].concat());
        assert_eq!((exit, stderr.as_str()), (0, ""), "{words:?} {stdout}");
        serde_json::from_str::<Value>(&stdout).unwrap()
    };
    let gate = |more: &[&str]| repository.gate(&[more, place].concat());
    assert_eq!(json(&["baselines", "list"]), json!({"baselines": []}));
    let (exit, _, stderr) = run(&["baselines", "show", "main"]);
    assert!(exit == 2 && stderr.contains("no baseline `main`"), "{exit} {stderr}");
    let (exit, _, stderr) = gate(&["--baseline", "stored:main"]);
    assert!(exit == 1 && stderr.contains("no baseline `main`"), "{exit} {stderr}");

    // What is in the working tree, run once.
    let stored = json(&["baselines", "store", "main", "perf/suite.yaml"]);
    let head = repository.git(&["rev-parse", "HEAD"]);
    assert_eq!((&stored["commit"], &stored["cases"]), (&head.trim().into(), &json!(["repeat"])));
    assert_eq!(json(&["baselines", "list"])["baselines"], json!([stored]));
    let (_, page, _) = run(&["baselines", "list"]);
    assert!(page.contains("main      1") && page.contains("warpgauge emulator"), "{page}");
    repository.write("perf/k/loop.ptx", ".version 7.0\nnonsense");
    let (exit, _, stderr) = run(&["baselines", "store", "other", "perf/suite.yaml"]);
    assert!(exit == 2 && stderr.contains("cases[0].contract"), "{exit} {stderr}");

    // What does not pass stays where it is; what passes is the baseline.
    repository.change(MORE);
    let (exit, stdout, stderr) = gate(&["--baseline", "stored:main", "--promote", "main"]);
    assert_eq!(exit, 2, "{stderr}");
    let said = "not promoted: the verdict is REGRESSION, not PASS; the baseline main is unchanged";
    assert!(stdout.ends_with(&format!("{said}\n")), "{stdout}");
    assert_eq!(json(&["baselines", "list"])["baselines"], json!([stored]));
    repository.commit("more");
    let (exit, stdout, stderr) = gate(&["--baseline", "HEAD", "--promote", "main"]);
    assert_eq!(exit, 0, "{stderr}");
    assert!(stdout.ends_with("promoted: the candidate is now the baseline main\n"), "{stdout}");
    let shown = json(&["baselines", "show", "main"]);
    let head = repository.git(&["rev-parse", "HEAD"]);
    assert_eq!(shown["commit"], head.trim());
    let job = shown["promoted_from"].as_str().unwrap();
    assert!(stdout.contains(&format!("\njob {job}\n")), "{stdout}");
    let code = shown["cases"]["repeat"]["kernel"]["source_code"].as_str().unwrap();
    assert!(code.contains(MORE.1));
    assert_eq!(gate(&["--baseline", "stored:main"]).0, 0);

    // By the job, later and under another name.
    let promoted = json(&["baselines", "promote", "release-1", "--job", job]);
    assert_eq!((&promoted["name"], &promoted["promoted_from"]), (&"release-1".into(), &job.into()));
    let (exit, _, stderr) = run(&["baselines", "promote", "x", "--job", "nobody"]);
    assert!(exit == 2 && stderr.contains("no job nobody"), "{exit} {stderr}");
    let (exit, _, stderr) = gate(&["--baseline", "HEAD", "--promote", "../x"]);
    assert!(exit == 1 && stderr.contains("--promote: name: must be"), "{exit} {stderr}");
    assert_eq!(json(&["baselines", "delete", "main"]), json!({"name": "main"}));
    let (exit, stdout, _) = run(&["baselines", "delete", "release-1"]);
    assert_eq!((exit, stdout.as_str()), (0, "removed release-1\n"));
    assert_eq!(run(&["baselines", "list"]).1, "no baselines\n");
    assert_eq!(run(&["baselines", "delete", "main"]).0, 2);
}

#[test]
fn baselines_are_kept_at_a_server() {
    needs!("the emulated device", emulated());
    let server = Server::start();
    keeps_a_baseline(&["--server", &server.url]);
}

#[test]
fn baselines_are_kept_on_this_machine() {
    needs!("the emulated device", emulated());
    keeps_a_baseline(&[]);
}

#[tokio::test]
async fn a_baseline_of_another_driver_is_refused_with_the_difference() {
    needs!("the emulated device", emulated());
    let repository = Repository::new();
    let data = data_directory();
    let server = Server::start_in(data.path(), &[], &[]);
    let place = ["--server", server.url.as_str()];
    let store = ["baselines", "store", "main", "perf/suite.yaml", "--json"];
    let (exit, _, stderr) = repository.run(&[&store[..], &place].concat());
    assert_eq!(exit, 0, "{stderr}");
    let mut baseline = server.get("/baselines/main").json;
    server.terminate();
    assert!(server.wait().0.success());
    // As a machine with another driver would have left it.
    baseline["pin"]["driver"] = "580.1".into();
    let url = format!("sqlite://{}", data.path().join("warpgauge.db").display());
    let mut database = sqlx::SqliteConnection::connect(&url).await.unwrap();
    sqlx::query("UPDATE baselines SET codec = 0, body = $1, pin = $2")
        .bind(baseline.to_string().into_bytes())
        .bind(baseline["pin"].to_string())
        .execute(&mut database)
        .await
        .unwrap();
    database.close().await.unwrap();
    let told = "the baseline is pinned to a different driver: 580.1 then, unknown now; use a machine \
                of that kind, or store a baseline for this one";
    let server = Server::start_in(data.path(), &[], &[]);
    let place = ["--baseline", "stored:main", "--server", server.url.as_str()];
    let (exit, stdout, stderr) = repository.gate(&place);
    assert_eq!((exit, stdout.as_str()), (1, ""), "{stderr}");
    assert!(stderr.contains(told) && stderr.contains("conditions_differ"), "{stderr}");
    server.terminate();
    assert!(server.wait().0.success());
    // The same on the machine itself.
    let data = data.path().to_str().unwrap();
    let mut command = repository.command(&["--baseline", "stored:main"]);
    let (exit, _, stderr) = outcome(command.env("WARPGAUGE_DATA_DIR", data).output().unwrap());
    assert_eq!(exit, 1, "{stderr}");
    assert!(stderr.contains(&format!("perf/suite.yaml against stored:main: {told}")), "{stderr}");
}
