//! Torch kernels are judged in a separate process. What they return costs the server nothing, and a
//! judge that ends gives no verdict.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{available, bare, expecting, on_cpu, right, wrong};
use crate::children::descendants;
use crate::server::{Server, until};

const DOUBLE: &str = "def f(x):\n    return x * 2";

/// Most memory that the server has had, bytes.
fn peak(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kibibytes: u64 = line.trim().strip_suffix(" kB").unwrap().trim().parse().unwrap();
    kibibytes << 10
}

/// Processes that judge, or wait to.
fn judges(server: &Server) -> Vec<u32> {
    let is_one = |process: &u32| {
        let words = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).contains("__torch-judge")
    };
    descendants(server.pid()).into_iter().filter(is_one).collect()
}

/// Forks that have a submission.
fn runners(server: &Server) -> usize {
    let is_one = |process: &u32| {
        let words = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).contains("has imported PyTorch, and forks")
    };
    descendants(server.pid()).iter().filter(|process| is_one(process)).count().saturating_sub(1)
}

/// How many files a process has open: two runners are ten of them.
fn open_files(process: u32) -> usize {
    std::fs::read_dir(format!("/proc/{process}/fd")).map_or(0, Iterator::count)
}

fn end(processes: &[u32]) {
    for process in processes {
        let number = rustix::process::Pid::from_raw(process.cast_signed()).unwrap();
        // One that has ended meanwhile is gone.
        let _ = rustix::process::kill_process(number, rustix::process::Signal::KILL);
    }
}

#[test]
fn what_is_returned_costs_the_server_neither_memory_nor_its_deadline() {
    needs!("PyTorch", available());
    let server = on_cpu();
    right(&server, "a first one", &expecting(DOUBLE, DOUBLE));
    let before = peak(&server);
    let mut large =
        bare("def get_inputs():\n    return []\ndef f():\n    return torch.ones(200_000_000)");
    large["num_trials"] = json!(1);
    large["timeout"] = json!(100.0);
    let report = server.evaluate(&large);
    assert!(report["kernel_exec_result"]["runtime"].as_f64().unwrap() > 0.0, "{report:#}");
    assert_eq!(report["outputs"]["output"]["shape"], json!([200_000_000]), "{report:#}");
    // It would have all of it travel, which is more than may.
    large["return_outputs"] = json!("all");
    let report = server.evaluate(&large);
    assert_eq!(report["failure"]["code"], "unusable_output", "{report:#}");
    assert!(report.to_string().contains("limits.max_output_bytes"), "{report:#}");
    // More than is judged on the host: no forgery.
    let mut larger = large.clone();
    larger["return_outputs"] = json!("none");
    let source = "def get_inputs():\n    return []\ndef f():\n    return torch.zeros(300_000_000)";
    larger["kernel"]["source_code"] = json!(source);
    let report = server.evaluate(&larger);
    assert_eq!(report["failure"]["code"], "unusable_output", "{report:#}");
    assert!(report.to_string().contains("takes 1200000000 bytes"), "{report:#}");
    // The system counts not quite exactly.
    let grown = peak(&server).saturating_sub(before);
    assert!(grown < 64 << 20, "the server has grown by {grown} bytes");

    // There is no time to look at it; nor at what is worse, since each call returns it.
    let late = "def get_inputs():\n    return []\ndef f():\n    return torch.ones(250_000_000)";
    let comparison = json!({
        "ref_kernel": {"kernel_type": "torch", "source_code": late},
        "custom_kernel": {"kernel_type": "torch", "source_code": late},
        "num_trials": 100, "timeout": 1.0,
    });
    let began = Instant::now();
    let answer = server.post_json("/compare", &comparison);
    let took = began.elapsed();
    assert!(took < Duration::from_secs(8), "{took:?}: {}", answer.text);
    let mut alone = bare(late);
    (alone["num_trials"], alone["timeout"]) = (json!(1000), json!(1.0));
    let began = Instant::now();
    wrong(&server, "late", &alone, "timeout", "within 1 s");
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    assert!(peak(&server).saturating_sub(before) < 64 << 20);
    right(&server, "after", &expecting(DOUBLE, DOUBLE));
}

#[test]
fn a_judge_that_ends_gives_no_verdict() {
    needs!("PyTorch", available());
    let server = on_cpu();
    right(&server, "before", &expecting(DOUBLE, DOUBLE));
    let long = "import threading\ndef f(x):\n    threading.Event().wait(0.05)\n    return x * 2";
    let mut request = expecting(long, DOUBLE);
    request["num_trials"] = json!(1000);
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| server.post_json("/evaluate", &request));
        let judging = until("one has both runners", || {
            judges(&server).into_iter().find(|judge| open_files(*judge) > 10)
        });
        end(&[judging]);
        let answer = asked.join().unwrap();
        assert_eq!(answer.status, 503, "{}", answer.text);
        assert!(answer.text.contains("no verdict"), "{}", answer.text);
        assert!(answer.text.contains("signal: 9"), "{}", answer.text);
    });
    until("its runners have ended", || (runners(&server) == 0).then_some(()));
    // One that waits for an order is replaced.
    let waiting = until("another waits", || Some(judges(&server)).filter(|all| !all.is_empty()));
    end(&waiting);
    right(&server, "after", &expecting(DOUBLE, DOUBLE));
    let report = right(&server, "again", &expecting(DOUBLE, DOUBLE));
    assert_eq!(report["validation"]["status"], Value::from("passed"));
}
