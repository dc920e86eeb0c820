//! Files of a server: other users cannot read them, and the server keeps them in its directories.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::contracts::increment;
use crate::server::{Server, data_directory, program_through, until};
use crate::support::{outcome, warpgauge};

/// All that is below a directory, without what is shared with other tests.
fn below(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap().flatten();
    let found = entries.filter(|entry| !entry.file_type().unwrap().is_symlink());
    found
        .flat_map(|entry| {
            let path = entry.path();
            let inner = if path.is_dir() { below(&path) } else { Vec::new() };
            inner.into_iter().chain([path])
        })
        .collect()
}

/// What others may look into.
fn open_to_others(data: &Path) -> Vec<String> {
    let all = below(data).into_iter().chain([data.to_owned()]);
    let open = all.filter_map(|path| {
        // What a running server removes meanwhile is closed well enough.
        let mode = path.symlink_metadata().ok()?.mode();
        (mode & 0o077 != 0).then(|| format!("{} {mode:o}", path.display()))
    });
    open.collect()
}

#[test]
fn nobody_else_looks_into_a_servers_files_whatever_the_umask() {
    let data = data_directory();
    let careless = program_through(&["sh", "-c", "umask 000; exec \"$0\" \"$@\""]);
    let server = Server::start_by(careless, data.path(), &[], &[]);
    let mut body = increment();
    // Large enough for files of its own.
    let noise: String = (0..8_000).map(|_| uuid::Uuid::new_v4().simple().to_string()).collect();
    let source = body["kernel"]["source_code"].as_str().unwrap();
    body["kernel"]["source_code"] = json!(format!("{source}\n// {noise}\n"));
    server.evaluate(&body);
    let files: Vec<PathBuf> = below(data.path());
    for name in ["warpgauge.db", "warpgauge.db-wal", "warpgauge.db-shm", "instances", "objects"] {
        assert!(files.iter().any(|path| path.ends_with(name)), "{name}: {files:?}");
    }
    assert!(files.iter().any(|path| path.ends_with("request")), "{files:?}");
    assert_eq!(open_to_others(data.path()), [""; 0]);
}

#[test]
fn what_an_earlier_server_left_open_is_closed() {
    let data = data_directory();
    let server = Server::start_in(data.path(), &[], &[]);
    server.evaluate(&increment());
    drop(server);
    for path in below(data.path()).into_iter().chain([data.path().to_owned()]) {
        let mode = if path.is_dir() { 0o777 } else { 0o666 };
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let server = Server::start_in(data.path(), &[], &[]);
    assert!(server.output().contains("closed to other users"), "{}", server.output());
    let mode = |name: &str| data.path().join(name).metadata().unwrap().mode() & 0o7777;
    let directories = ["", "objects", "instances", "run"].map(|name| (name, mode(name)));
    assert_eq!(directories.map(|(_, mode)| mode), [0o700; 4], "{directories:?}");
    assert_eq!(mode("warpgauge.db"), 0o600);
}

/// Who else writes to the directory could put another database, or machine code, in its place.
#[test]
fn a_directory_that_is_shared_is_refused() {
    let data = tempfile::tempdir().unwrap();
    std::fs::write(data.path().join("thesis.tex"), "").unwrap();
    let anybody = std::fs::Permissions::from_mode(0o1777);
    std::fs::set_permissions(data.path(), anybody).unwrap();
    let mut command = warpgauge(data.path(), &["--device", "emulator", "serve", "--port", "0"]);
    command.env("WARPGAUGE_DATA_DIR", data.path());
    let (code, _, error) = outcome(command.output().unwrap());
    assert_eq!(code, 1, "{error}");
    assert!(error.contains("thesis.tex") && error.contains("separate directory"), "{error}");
    assert_eq!(data.path().metadata().unwrap().mode() & 0o7777, 0o1777);
}

/// The database is moved away under a running server, and back.
#[test]
fn a_database_that_is_gone_is_noticed() {
    let data = data_directory();
    let server = Server::start_in(data.path(), &[], &[]);
    let before = server.evaluate(&increment());
    let (path, aside) = (data.path().join("warpgauge.db"), data.path().join("aside"));
    std::fs::rename(&path, &aside).unwrap();
    for route in ["/evaluate", "/evaluate?wait=false"] {
        let answer = server.post_json(route, &increment());
        assert_eq!((answer.status, &answer.json["code"]), (503, &json!("unavailable")));
        let error = answer.json["error"].as_str().unwrap();
        assert!(error.contains("database") && error.contains("moved away"), "{error}");
    }
    assert!(!path.exists(), "none was made in its place");
    // What a look found a moment ago does not keep a database away that is back.
    until("it is known", || (server.get("/health").status == 503).then_some(()));
    std::fs::rename(&aside, &path).unwrap();
    server.evaluate(&increment());
    let job = server.get(&format!("/jobs/{}", before["job_id"].as_str().unwrap()));
    assert_eq!((job.status, &job.json["state"]), (200, &json!("completed")));
}
