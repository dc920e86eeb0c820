//! `/health` while nothing can be evaluated; `/live` works throughout.

use std::path::Path;

use serde_json::Value;

use crate::contracts::increment;
use crate::server::{Answer, Server, data_directory, emulated, until};

/// Codes of the reasons that an answer gives.
fn codes(answer: &Answer) -> Vec<String> {
    let reasons = answer.json["reasons"].as_array().expect("reasons");
    reasons.iter().map(|reason| reason["code"].as_str().unwrap().to_owned()).collect()
}

/// Waits until the server says that it is not ready for this reason, and returns what it says of it.
pub fn unready(server: &Server, code: &str) -> String {
    let answer = until(&format!("not ready: {code}"), || {
        let answer = server.get("/health");
        codes(&answer).contains(&code.to_owned()).then_some(answer)
    });
    assert_eq!(answer.status, 503, "{}", answer.text);
    assert_eq!(answer.json["status"], "unhealthy", "{}", answer.text);
    // What the reference has is there all the same.
    for field in ["gpu_available", "gpu_count", "job_stats", "gpu_manager", "version"] {
        assert!(!answer.json[field].is_null(), "{field}: {}", answer.text);
    }
    assert_eq!(server.get("/live").status, 200);
    let is = |reason: &&Value| reason["code"] == code;
    let reason = answer.json["reasons"].as_array().unwrap().iter().find(is).unwrap();
    reason["message"].as_str().unwrap().to_owned()
}

/// Waits until it is ready.
pub fn ready(server: &Server) {
    until("ready", || {
        let answer = server.get("/health");
        (answer.status == 200 && answer.json["status"] == "healthy").then_some(())
    });
    assert_eq!(server.get("/health").json["reasons"], serde_json::json!([]));
}

fn file(data: &Path) -> std::path::PathBuf {
    data.join("warpgauge.db")
}

#[test]
fn without_a_compiler_nothing_can_be_evaluated() {
    let data = data_directory();
    // Neither the one that is installed nor one of the system.
    std::fs::remove_file(data.path().join("toolchain")).unwrap();
    let nothing = tempfile::tempdir().unwrap();
    let environment = [
        ("PATH", nothing.path().to_str().unwrap()),
        ("HOME", nothing.path().to_str().unwrap()),
        ("VIRTUAL_ENV", ""),
        ("CUDA_HOME", ""),
        ("CUDA_PATH", ""),
        ("LD_LIBRARY_PATH", ""),
    ];
    let server = Server::start_in(data.path(), &[], &environment);
    let found = server.get("/info").json["compilers"].as_array().map_or(0, Vec::len);
    needs!("a machine without a CUDA toolkit in /usr/local", found == 0);
    let told = unready(&server, "no_compiler");
    for words in ["toolchain install", "WARPGAUGE_TOOLCHAIN"] {
        assert!(told.contains(words), "{told}");
    }
}

#[test]
fn a_compiler_that_is_removed_is_missed_and_one_that_comes_back_is_found() {
    needs!("the emulated device", emulated());
    let shared = data_directory();
    let found = std::fs::read_link(shared.path().join("toolchain")).unwrap();
    let data = data_directory();
    let server = Server::start_in(data.path(), &[], &[]);
    let compilers = server.get("/info").json["compilers"].to_string();
    // Others would do.
    let installed = ["nvrtc ", "triton "].map(|name| compilers.matches(name).count());
    let others = installed.iter().sum::<usize>() != compilers.matches("(cache").count()
        || compilers.contains("nvcc");
    needs!(
        "a machine with no other compiler than that of `toolchain install`",
        compilers.contains(data.path().to_str().unwrap()) && !others,
    );
    ready(&server);
    let link = data.path().join("toolchain");
    std::fs::remove_file(&link).unwrap();
    let told = unready(&server, "no_compiler");
    assert!(told.contains("is gone"), "{told}");
    std::os::unix::fs::symlink(found, &link).unwrap();
    ready(&server);
}

#[test]
fn a_database_that_is_gone_is_told() {
    let data = data_directory();
    let server = Server::start_in(data.path(), &[], &[]);
    ready(&server);
    std::fs::rename(file(data.path()), data.path().join("aside")).unwrap();
    let told = unready(&server, "database_gone");
    assert!(told.contains("move it back"), "{told}");
    let refused = server.post_json("/evaluate", &increment());
    assert_eq!(refused.status, 503, "{}", refused.text);
    for text in [&told, &refused.text] {
        assert!(!text.contains(data.path().to_str().unwrap()), "{text}");
    }
    let path = file(data.path());
    until("the log says where", || server.output().contains(path.to_str().unwrap()).then_some(()));
    std::fs::rename(data.path().join("aside"), file(data.path())).unwrap();
    ready(&server);
    server.evaluate(&increment());
    server.kill();
}

#[test]
fn a_database_that_is_damaged_is_told() {
    let data = data_directory();
    // Started twice: what the first wrote is in the file, not in its log.
    let first = Server::start_in(data.path(), &[], &[]);
    first.evaluate(&increment());
    first.terminate();
    first.wait();
    let server = Server::start_in(data.path(), &[], &[]);
    ready(&server);
    let bytes = std::fs::metadata(file(data.path())).unwrap().len() as usize;
    std::fs::write(file(data.path()), vec![0x5a; bytes]).unwrap();
    let told = unready(&server, "database_damaged");
    assert!(told.contains("docs/store.md"), "{told}");
    let contract = increment();
    for path in ["/evaluate", "/evaluate?wait=false"] {
        let refused = server.post_json(path, &contract);
        assert_eq!(refused.status, 503, "{path}: {}", refused.text);
        assert!(refused.text.contains("is damaged"), "{path}: {}", refused.text);
        assert!(!refused.text.contains(data.path().to_str().unwrap()), "{}", refused.text);
    }
    server.kill();
}

#[test]
fn a_data_directory_that_is_deleted_is_told() {
    let data = data_directory();
    let server = Server::start_in(data.path(), &[], &[]);
    ready(&server);
    std::fs::remove_dir_all(data.path()).unwrap();
    unready(&server, "database_gone");
    // There is nothing to go down in good order with.
    server.kill();
}
