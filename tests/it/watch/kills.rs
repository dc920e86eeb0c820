//! Watchers that are killed at any moment: every file is evaluated once.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Watching, folder, increment, names, result};
use crate::server::{Server, data_directory, until};

/// Files and kills, unless `WARPGAUGE_WATCH_FILES` and `WARPGAUGE_WATCH_KILLS` say otherwise.
const FILES: usize = 60;
const KILLS: usize = 5;

fn number(variable: &str, default: usize) -> usize {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn none_is_lost_and_none_is_done_twice() {
    let (files, kills) =
        (number("WARPGAUGE_WATCH_FILES", FILES), number("WARPGAUGE_WATCH_KILLS", KILLS));
    let (directory, kernels) = folder();
    let data = data_directory();
    let results = directory.path().join("results");
    let mut seed = 0x9E37_79B9_7F4A_7C15_u64;
    // One compilation serves all.
    for file in 0..files {
        fs::write(kernels.join(format!("k{file:05}.cu")), increment(0)).unwrap();
    }
    let began = Instant::now();
    let mut fetched = BTreeSet::new();
    for kill in 0..kills {
        let watching =
            Watching::begin(directory.path(), data.path(), &["--settle", "0", "--no-profile"]).0;
        // As many results later, and a moment more: kills fall on every step.
        let wanted = files * (kill + 1) / (kills + 2);
        until("results", || {
            for name in if results.exists() { names(&results) } else { Vec::new() } {
                // Whoever fetches a result takes it: a second one of the same file would be noticed.
                fs::remove_file(results.join(&name)).unwrap();
                assert!(fetched.insert(name.clone()), "{name} came twice");
            }
            (fetched.len() >= wanted).then_some(())
        });
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let moment = Instant::now() + Duration::from_micros(seed >> 44);
        while Instant::now() < moment {
            std::hint::spin_loop();
        }
        watching.kill();
    }
    let (last, said) = Watching::begin(
        directory.path(),
        data.path(),
        &["--once", "--settle", "0", "--no-profile"],
    );
    assert!(last.wait().success(), "{:#?}", said.iter().collect::<Vec<_>>());
    for name in names(&results) {
        assert!(fetched.insert(name.clone()), "{name} came twice");
    }
    assert_eq!(fetched.len(), files, "results");
    assert_eq!(names(&kernels), Vec::<String>::new());
    for below in ["jobs", "published", "ready", "gone"] {
        assert_eq!(
            names(&directory.path().join(".warpgauge").join(below)),
            Vec::<String>::new(),
            "{below}"
        );
    }
    println!("{files} files, {kills} kills: {:.1} s", began.elapsed().as_secs_f64());
    let server = Server::start_in(data.path(), &[], &[]);
    let mut jobs = 0;
    let mut cursor = String::new();
    loop {
        let page = server.get(&format!("/jobs?limit=100{cursor}"));
        // One that a kill fell on before its kernel ran ends so, and its file becomes another.
        let done = |job: &&Value| job["code"] != "attempts_exhausted";
        jobs += page.json["jobs"].as_array().expect("jobs").iter().filter(done).count();
        match page.json["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(jobs, files, "each was done by one job");
}

/// A kernel that hangs for `timeout` seconds.
fn hang(timeout: u32) -> String {
    increment(0)
        .replace("// num_trials: 1\n", &format!("// num_trials: 1\n// timeout: {timeout}\n"))
        .replace("x[threadIdx.x] += 1.0f;", "while (x[0] == x[0]) x[threadIdx.x] += 1.0f;")
}

#[test]
fn a_kernel_that_ran_when_its_watcher_was_killed_is_not_run_again() {
    for is_killed in [true, false] {
        let (directory, kernels) = folder();
        let data = data_directory();
        // Longer than any test takes: a second run would be noticed.
        fs::write(kernels.join("hang.cu"), hang(600)).unwrap();
        fs::write(kernels.join("later.cu"), increment(1)).unwrap();
        let arguments = ["--once", "--settle", "0", "--jobs", "1"];
        let begin = || Watching::begin(directory.path(), data.path(), &arguments).0;
        let jobs = |server: &Server| server.get("/jobs").json["jobs"].as_array().unwrap().clone();
        let watching = begin();
        // The store, as another process sees it.
        let server = Server::start_in(data.path(), &[], &[]);
        until("the kernel runs", || {
            let all = jobs(&server);
            let ended = all.iter().find(|job| job["state"] == "failed");
            assert!(ended.is_none(), "{ended:#?}");
            all.iter().any(|job| job["state"] == "profiling").then_some(())
        });
        if is_killed {
            watching.kill();
        } else {
            assert!(watching.end().success());
        }
        drop(server);
        assert!(names(&kernels).contains(&"hang.cu".to_owned()));

        assert!(begin().wait().success());
        let hung = result(directory.path(), "hang");
        assert_eq!(
            (&hung["success"], &hung["error"]["code"]),
            (&false.into(), &"interrupted".into())
        );
        assert!(hung["message"].as_str().unwrap().contains("once more"), "{hung}");
        assert_eq!(result(directory.path(), "later")["success"], true);
        assert_eq!(names(&kernels), Vec::<String>::new());

        // The file is another one now.
        fs::write(kernels.join("hang.cu"), increment(0)).unwrap();
        assert!(begin().wait().success());
        assert_eq!(result(directory.path(), "hang")["success"], true);
        let server = Server::start_in(data.path(), &[], &[]);
        assert_eq!(jobs(&server).len(), 3, "one for each file");
    }
}
