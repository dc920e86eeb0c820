//! Environment and open files of the server's children.

use std::collections::BTreeSet;
use std::os::fd::AsRawFd;
use std::path::Path;

use serde_json::json;

use crate::contracts::increment;
use crate::server::{Server, data_directory, emulated, program, until};

/// Processes that a process started, with all that those started.
pub fn descendants(process: u32) -> Vec<u32> {
    let listed = std::fs::read_dir("/proc").unwrap().flatten();
    let all: Vec<(u32, u32)> = listed
        .filter_map(|entry| {
            let id: u32 = entry.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
            let (_, after) = stat.rsplit_once(") ")?;
            Some((id, after.split(' ').nth(1)?.parse().ok()?))
        })
        .collect();
    let mut found = vec![process];
    let mut at = 0;
    while let Some(parent) = found.get(at).copied() {
        found.extend(all.iter().filter(|(_, of)| *of == parent).map(|(id, _)| *id));
        at += 1;
    }
    found.split_off(1)
}

/// Those that run kernels or judge them: compilers wait for work, too.
fn workers_of(server: u32) -> Vec<u32> {
    let is_worker = |process: &u32| {
        let command = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).contains("__worker")
    };
    descendants(server).into_iter().filter(is_worker).collect()
}

fn environment(process: u32) -> Option<Vec<String>> {
    let bytes = std::fs::read(format!("/proc/{process}/environ")).ok()?;
    let variables = bytes.split(|&byte| byte == 0).filter(|variable| !variable.is_empty());
    Some(variables.map(|variable| String::from_utf8_lossy(variable).into_owned()).collect())
}

/// What a process has open, as the links of its descriptors say.
fn open_files(process: u32) -> Option<Vec<String>> {
    let entries = std::fs::read_dir(format!("/proc/{process}/fd")).ok()?;
    let links = entries.flatten().filter_map(|entry| std::fs::read_link(entry.path()).ok());
    Some(links.map(|link| link.display().to_string()).collect())
}

const SECRETS: [(&str, &str); 5] = [
    ("WARPGAUGE_API_KEYS", "sesame-1"),
    ("WARPGAUGE_ADMIN_KEYS", "sesame-2"),
    ("WARPGAUGE_WEBHOOK_SECRET", "sesame-3-and-more-of-it"),
    ("AWS_SECRET_ACCESS_KEY", "sesame-4"),
    ("DATABASE_URL", "postgres://app:sesame-5@db/app"),
];

/// A server with secrets in its environment and a file that was left open for it.
fn server_with_secrets(data: &Path) -> (Server, std::fs::File) {
    let left = std::fs::File::create(data.join("left-open")).unwrap();
    rustix::io::fcntl_setfd(&left, rustix::io::FdFlags::empty()).unwrap();
    let handed_on = [("CUDA_MODULE_LOADING", "LAZY"), ("TMPDIR", "/tmp")];
    let environment = [&SECRETS[..], &handed_on].concat();
    (Server::start_by(program(), data, &[], &environment), left)
}

#[test]
fn a_worker_knows_and_holds_what_it_was_given_and_no_more() {
    let data = data_directory();
    let (server, left) = server_with_secrets(data.path());
    let key = [("content-type", "application/json"), ("x-api-key", "sesame-1")];
    let body = serde_json::to_vec(&increment()).unwrap();
    let answer = server.post("/evaluate", &key, &body);
    assert_eq!(answer.status, 200, "{}", answer.text);
    // The server itself has all of it, so the test can fail.
    assert!(left.as_raw_fd() > 2);
    let own = open_files(server.pid()).unwrap();
    assert!(own.iter().any(|file| file.ends_with("left-open")), "{own:?}");

    let allowed: BTreeSet<&str> =
        warpgauge_sandbox::environment::INHERITED.iter().copied().collect();
    let seen = until("workers", || {
        let workers = workers_of(server.pid());
        let known: Option<Vec<_>> = workers
            .into_iter()
            .map(|id| Some((id, environment(id)?, open_files(id)?)))
            .filter(|known| known.as_ref().is_none_or(|(_, variables, _)| !variables.is_empty()))
            .collect();
        known.filter(|known| !known.is_empty())
    });
    for (id, variables, files) in seen {
        for variable in &variables {
            let name = variable.split('=').next().unwrap();
            let given = [
                "LC_ALL",
                "LANG",
                "WARPGAUGE_EMULATOR_IPC_DIR",
                "WARPGAUGE_EMULATOR_IPC_OTHER_DIR",
            ];
            let known = allowed.contains(name) || given.contains(&name);
            assert!(known, "{id} has {name}");
            assert!(!variable.contains("sesame"), "{id} has {variable}");
        }
        assert!(variables.contains(&"CUDA_MODULE_LOADING=LAZY".to_owned()), "{variables:?}");
        for file in files {
            let ours = data.path().to_str().unwrap();
            let store = file.contains("warpgauge.db") || file.contains("/objects/");
            let kept = file.starts_with(ours) && !file.contains("/run/");
            assert!(!store && !kept && !file.ends_with("left-open"), "{id} holds {file}");
        }
    }
}

/// The kernel's own word on how a process is confined, and that capabilities say the same.
#[test]
fn a_worker_is_confined_and_capabilities_say_so() {
    let server = Server::start();
    assert_eq!(server.evaluate(&increment())["status"], "success");
    let status = |process: u32| std::fs::read_to_string(format!("/proc/{process}/status")).ok();
    let filtered = |status: &str| status.lines().any(|line| line == "Seccomp:\t2");
    assert!(!filtered(&status(server.pid()).unwrap()), "the server is not, so the test can fail");
    let workers = workers_of(server.pid()).into_iter().filter_map(status);
    let workers: Vec<String> = workers.filter(|status| status.contains("warpgauge")).collect();
    assert!(!workers.is_empty());
    for worker in workers {
        assert!(filtered(&worker) && worker.contains("NoNewPrivs:\t1"), "{worker}");
    }
    for device in server.get("/devices").json["devices"].as_array().unwrap() {
        // A worker has read the clocks, or says why it cannot.
        let (reading, why) = (&device["reading"], &device["no_reading"]);
        match device["device"]["kind"].as_str() {
            Some("emulator") => assert_eq!(*why, "an emulated device has no clocks", "{device}"),
            _ => assert!(reading["sm_clock_mhz"].is_number() || why.is_string(), "{device}"),
        }
        assert!(reading.is_null() != why.is_null(), "{device}");
    }
    let capabilities = server.get("/capabilities").json;
    for device in capabilities["devices"].as_array().unwrap() {
        let sandbox = device["worker_sandbox"].as_str().unwrap();
        assert!(sandbox.starts_with("landlock: f"), "{sandbox}");
        assert!(sandbox.ends_with("; seccomp: enforced"), "{sandbox}");
    }
}

/// What the kernel says of every process that a server has started: no capabilities, nor a way to any, and
/// an end before the server's where memory runs out.
#[test]
fn children_have_no_capabilities_and_end_before_the_server() {
    let server = Server::start();
    let torch = crate::torch::available();
    assert_eq!(server.evaluate(&increment())["status"], "success");
    if torch {
        let kernel = json!({"kernel": {
            "kernel_type": "torch",
            "source_code": "def f(x):\n    return x\ndef get_inputs():\n    return [torch.zeros(2)]\n",
            "metadata": {"function_name": "f"},
        }});
        assert_eq!(server.evaluate(&kernel)["status"], "success");
    }
    let own_score = score(server.pid()).unwrap();
    let namespace = |id: u32| std::fs::read_link(format!("/proc/{id}/ns/user")).ok();
    let children: Vec<(String, String, i32)> = descendants(server.pid())
        .into_iter()
        .filter_map(|id| {
            let command = std::fs::read(format!("/proc/{id}/cmdline")).ok()?;
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            // A spare that starts meanwhile sets NoNewPrivs before its filter.
            let status = until("the filter of a child that starts", || {
                let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok();
                let starts = status.as_ref().is_some_and(|status| {
                    status.contains("NoNewPrivs:\t1") && status.contains("Seccomp:\t0\n")
                });
                (!starts || command.contains("__compile")).then_some(status)
            })?;
            // Not one that ended meanwhile, nor one that has not begun.
            (status.contains("NoNewPrivs:\t1")).then_some(())?;
            // A compile child that waits for its request has no root directory of its own yet. Until then it
            // may change mounts, in namespaces of its own and nowhere else, and makes all calls.
            if command.contains("__compile") && status.contains("Seccomp:\t0\n") {
                if paths_are_visible(&server) {
                    assert!(status.contains("CapEff:\t0000000000000000\n"), "{status}");
                } else {
                    assert_ne!(namespace(id), namespace(server.pid()), "{status}");
                    assert!(status.contains("CapEff:\t0000000000200100\n"), "{status}");
                }
                return None;
            }
            Some((command.chars().take(80).collect(), status, score(id)?))
        })
        .collect();
    let kinds = children.iter().filter(|(command, ..)| command.contains("__worker"));
    assert!(kinds.count() >= 2 && children.len() >= if torch { 4 } else { 2 }, "{children:?}");
    for (command, status, score) in children {
        for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
            assert!(status.contains(&format!("{set}:\t0000000000000000\n")), "{command}: {status}");
        }
        if rustix::process::geteuid().is_root() {
            assert!(status.contains("CapBnd:\t0000000000000000\n"), "{command}: {status}");
        }
        assert!(status.contains("Seccomp:\t2\n"), "{command}: {status}");
        assert!(score >= 500 && score > own_score, "{command}: {score}");
    }
}

fn score(process: u32) -> Option<i32> {
    std::fs::read_to_string(format!("/proc/{process}/oom_score_adj")).ok()?.trim().parse().ok()
}

/// Compilers start without any environment of ours; one under way is caught while it reads its source.
#[test]
fn a_compiler_knows_no_more() {
    let data = data_directory();
    let (server, _left) = server_with_secrets(data.path());
    let url = server.url.clone();
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let stopped = std::sync::Arc::clone(&stop);
    let compiling = std::thread::spawn(move || {
        let headers = [("x-api-key", "sesame-1")];
        for round in 0.. {
            if stopped.load(std::sync::atomic::Ordering::Relaxed) {
                break;
            }
            // Never the same: the cache would answer.
            let unique = uuid::Uuid::new_v4().simple().to_string();
            let mut body = increment();
            let source = body["kernel"]["source_code"].as_str().unwrap();
            body["kernel"]["source_code"] = format!("{source}\n// {unique} {round}\n").into();
            let answer = crate::server::try_post(&url, "/evaluate", &headers, &body);
            assert!(answer.is_some_and(|answer| answer.status == 200));
        }
    });
    let caught = until("a compiler", || {
        descendants(server.pid()).into_iter().find_map(|id| {
            let command = std::fs::read(format!("/proc/{id}/cmdline")).ok()?;
            let compiles = String::from_utf8_lossy(&command).contains("__compile");
            compiles.then_some(())?;
            Some((environment(id)?, open_files(id)?))
        })
    });
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    compiling.join().unwrap();
    let (variables, files) = caught;
    for variable in variables {
        let name = variable.split('=').next().unwrap();
        assert!(["TMPDIR", "LC_ALL"].contains(&name), "{variable}");
    }
    for file in files {
        assert!(!file.contains("warpgauge.db") && !file.ends_with("left-open"), "{file}");
    }
}

/// Who runs as the same user, and is not root, cannot read the server's environment.
#[test]
fn the_servers_environment_is_closed_to_others_of_its_user() {
    needs!("the emulated device", emulated());
    if !rustix::process::geteuid().is_root() {
        let server = Server::start_with(&[], &SECRETS);
        assert!(environment(server.pid()).is_none());
        assert!(environment(std::process::id()).is_some(), "as of any other process of the user");
    }
    the_rest_needs!("root", rustix::process::geteuid().is_root());
    // Nobody's, like the reader.
    let nobody = ["--reuid", "65534", "--regid", "65534", "--clear-groups"];
    let tools = std::process::Command::new("setpriv").arg("--version").output();
    assert!(tools.is_ok(), "this test needs setpriv (package util-linux)");
    let data = tempfile::Builder::new().permissions(open_to_all()).tempdir().unwrap();
    std::os::unix::fs::chown(data.path(), Some(65_534), Some(65_534)).unwrap();
    let through = [&["setpriv"][..], &nobody].concat();
    let program = crate::server::program_through(&through);
    let server = Server::start_by(program, data.path(), &[], &SECRETS);
    let read = |process: u32| {
        let path = format!("/proc/{process}/environ");
        std::process::Command::new("setpriv").args(nobody).args(["cat", &path]).output().unwrap()
    };
    assert!(!read(server.pid()).status.success());
    let workers = until("a worker", || Some(workers_of(server.pid())).filter(|w| !w.is_empty()));
    until("workers are closed too", || {
        workers.iter().all(|worker| !read(*worker).status.success()).then_some(())
    });
    // It could, were the server as any other process of its user.
    let mut other = std::process::Command::new("setpriv");
    let mut other = other.args(nobody).args(["tail", "-f", "/dev/null"]).spawn().unwrap();
    until("another is open", || read(other.id()).status.success().then_some(()));
    other.kill().unwrap();
    other.wait().unwrap();
}

fn open_to_all() -> std::fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o755)
}

/// Whether the server warns that its children have no root directory of their own.
pub fn paths_are_visible(server: &Server) -> bool {
    let warnings = server.get("/capabilities").json["warnings"].clone();
    warnings.as_array().unwrap().iter().any(|it| it["code"] == "paths_are_visible")
}

/// Where the server says that paths are hidden, compilers, programs and torch kernels find none that they
/// were not granted; where it warns that they are visible, they find them.
#[test]
fn children_find_no_path_that_they_are_not_granted() {
    let data = data_directory();
    let given = data.path().join("given.h");
    std::fs::write(&given, "").unwrap();
    let server = Server::start_by(program(), data.path(), &[], &[]);
    let visible = paths_are_visible(&server);
    let given = given.display();
    let mut kernel = increment();
    kernel["kernel"]["source_code"] = json!(format!(
        "#if __has_include(\"{given}\")\n#error found\n#endif\n{}",
        kernel["kernel"]["source_code"].as_str().unwrap()
    ));
    // NVRTC says the same of a closed file and of none by itself.
    assert_eq!(server.evaluate(&kernel)["status"], "success");
    if crate::support::has_nvcc() {
        kernel["kernel"]["metadata"]["backend"] = json!("nvcc");
        let report = server.evaluate(&kernel);
        assert_eq!(report["status"] == "success", !visible, "{report}");
        let source = format!(
            "#include <cstdio>\n#include <sys/stat.h>\nint main() {{ struct stat s; \
             for (auto path : {{\"{given}\", \"/etc/passwd\", \"/proc/1\"}}) \
                 std::printf(\"%d\", stat(path, &s)); }}\n"
        );
        let report = server.evaluate(&json!({
            "kernel": {"kernel_type": "program", "source_code": source}, "timeout": 60.0,
        }));
        let printed = if visible { "000" } else { "-1-1-1" };
        assert_eq!(report["program"]["stdout"]["text"], printed, "{report}");
    }
    if crate::torch::available() {
        let source = format!(
            "import os\ndef f(x):\n    print([os.path.exists(p) for p in ('{given}', '/etc/passwd')])\n    \
             return x\ndef get_inputs():\n    return [torch.zeros(2)]\n"
        );
        let report = server.evaluate(&json!({"kernel": {
            "kernel_type": "torch", "source_code": source, "metadata": {"function_name": "f"},
        }}));
        let printed = report["printed"].as_str().unwrap_or_default();
        let expected = if visible { "[True, True]" } else { "[False, False]" };
        assert!(printed.starts_with(expected), "{report}");
    }
}
