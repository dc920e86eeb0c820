//! Tools round a worker, whatever they do: stand-ins of NVIDIA's programs start the scripted worker.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use warpgauge_metrics::ClockControl;
use warpgauge_model::{CacheState, FailureCode, Unavailable};
use warpgauge_nsight::{ToolName, ToolSearch, Tools, ncu, sanitizer};
use warpgauge_worker::protocol::{TracePlan, TraceView, TracedRun, WorkerJob};
use warpgauge_worker::{OneShot, OneShotEnd};

use crate::checks::{Check, LIMIT, fleet, job, lease, until_gone};

crate::checks![
    a_job_runs_under_a_tool,
    a_tool_that_never_starts_the_worker_is_told_apart,
    what_hangs_under_a_tool_is_ended,
    ncu_writes_a_report_and_reads_it,
    ncu_that_fails_says_why,
    ncu_is_started_again_while_others_have_the_counters,
    metrics_that_ncu_refuses_are_left_out,
    what_ncu_leaves_running_is_ended,
    the_sanitizer_is_heard,
];

const RAW: &str = "fixtures/tools/raw.csv";

const FINDINGS: &str = "\
========= Invalid __global__ write of size 4 bytes
=========     at k+0x100 in kernel.cu:5
=========     by thread (5,0,0) in block (0,0,0)
=========     Access to 0x7f86dac04214 is out of bounds
=========     and is 21 bytes after the nearest allocation at 0x7f86dac03200 of size 4096 bytes
========= 
";

/// Stand-ins in a directory of their own, with a mode.
struct Stand {
    directory: tempfile::TempDir,
    tools: Tools,
}

impl Stand {
    fn new(mode: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
        for name in ["ncu", "compute-sanitizer"] {
            fs::copy(root.join("fixtures/tools").join(name), directory.path().join(name)).unwrap();
        }
        fs::copy(root.join(RAW), directory.path().join("report.csv")).unwrap();
        let own = directory.path().join("own");
        fs::create_dir(&own).unwrap();
        let explicit = vec![directory.path().to_owned()];
        let tools = Tools::new(ToolSearch { explicit, last: Vec::new(), directory: own });
        let stand = Self { directory, tools };
        stand.set(mode);
        stand
    }

    fn set(&self, mode: &str) {
        fs::write(self.directory.path().join("mode"), mode).unwrap();
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.directory.path().join(file)).unwrap()
    }

    async fn ncu(&self, id: &str, limit: Duration) -> Result<ncu::NcuOutput, Unavailable> {
        self.ncu_of(id, limit, &["dram__bytes.sum", "x"]).await
    }

    async fn ncu_of(
        &self,
        id: &str,
        limit: Duration,
        metrics: &[&str],
    ) -> Result<ncu::NcuOutput, Unavailable> {
        let fleet = fleet(false).await;
        let directory = tempfile::tempdir().unwrap();
        let request = ncu::ProfileRun {
            subject: ncu::NcuTarget::Job(&job(id)),
            directory: directory.path(),
            metrics: ncu::Metrics::Named(metrics.iter().map(|&name| name.to_owned()).collect()),
            cache: CacheState::Cold,
            clocks: ClockControl::None,
            time_limit: limit,
        };
        let profiled = ncu::profile(&self.tools, &mut lease(&fleet).await, &request).await;
        // The lease serves on, whatever happened.
        let outcome = lease(&fleet).await.run(job("ok"), LIMIT, false, &|_| ()).await;
        assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
        profiled
    }
}

fn traced(id: &str) -> WorkerJob<TracePlan> {
    job(id).with(TracePlan { view: TraceView::Counters, cache: CacheState::Cold })
}

async fn under(script: &str, id: &str, limit: Duration) -> OneShotEnd<TracedRun> {
    let fleet = fleet(false).await;
    let directory = tempfile::tempdir().unwrap();
    let shot = OneShot {
        wrapper: ["/bin/sh", "-c", script, "sh"].map(OsString::from).into(),
        variables: vec![("GREETING".into(), "hello".into())],
        directory: directory.path().to_owned(),
        time_limit: limit,
    };
    lease(&fleet).await.run_under(&shot, traced(id)).await
}

async fn a_job_runs_under_a_tool() {
    let end = under("\"$@\"; echo $GREETING $?; pwd", "ok", LIMIT).await;
    assert!(end.outcome.failure.is_none(), "{:?}", end.outcome.failure);
    assert!(end.outcome.told.memory_bytes.is_some());
    assert!(end.tool.succeeded());
    assert!(end.tool.stdout.text.starts_with("hello 0\n"), "{}", end.tool.stdout.text);
    // Tools may close what they do not know, standard input included.
    let end = under("exec 0<&-; exec \"$@\"", "lost", LIMIT).await;
    assert_eq!(end.outcome.failure.unwrap().code, FailureCode::IllegalAddress);
    assert_eq!(end.tool.status.unwrap().code(), Some(1));
}

async fn a_tool_that_never_starts_the_worker_is_told_apart() {
    let end = under("echo sorry >&2; exit 4", "ok", LIMIT).await;
    assert_eq!(end.outcome.failure.unwrap().code, FailureCode::WorkerUnavailable);
    assert_eq!(end.tool.stderr.text, "sorry\n");
    let end = under("\"$@\"; echo ended", "kill itself", LIMIT).await;
    assert_eq!(end.outcome.failure.unwrap().code, FailureCode::WorkerDied);
}

async fn what_hangs_under_a_tool_is_ended() {
    let limit = Duration::from_millis(700);
    let start = Instant::now();
    for (script, id) in [("exec tail -f /dev/null", "ok"), ("exec \"$@\"", "hang")] {
        let end = under(script, id, limit).await;
        assert_eq!(end.outcome.failure.unwrap().code, FailureCode::Timeout, "{script}");
        assert!(end.tool.status.is_none(), "{script}");
    }
    // The worker has answered; it is the tool that does not end.
    let end = under("\"$@\"; exec tail -f /dev/null", "ok", limit).await;
    assert!(end.outcome.failure.is_none() && end.tool.status.is_none());
    assert!(start.elapsed() < LIMIT);
}

async fn ncu_writes_a_report_and_reads_it() {
    let stand = Stand::new("good");
    let profiled = stand.ncu("ok", LIMIT).await.unwrap();
    assert_eq!(profiled.tool, "Nsight Compute 2025.3.1.0");
    assert_eq!(profiled.tables, [stand.read("report.csv")]);
    assert_eq!(stand.read("asked"), "dram__bytes.sum,x\n");
    assert!(profiled.log.contains("9 passes"), "{}", profiled.log);
    assert_eq!(profiled.artifacts[0].name, "kernel.ncu-rep");
    assert_eq!(profiled.artifacts[0].bytes, stand.read("report.csv").len() as u64);
    let collected = ncu::collected(&profiled, &BTreeSet::from(["dram__bytes.sum", "x"])).unwrap();
    assert_eq!(collected.values["dram__bytes.sum"], 201_326_592.0);
    assert!(collected.missing.contains_key("x"), "{:?}", collected.missing);
    assert_eq!(collected.conditions.passes, Some(9));
}

async fn ncu_that_fails_says_why() {
    let stand = Stand::new("good");
    let short = Duration::from_millis(1500);
    let table = BTreeMap::from([
        ("permission", ("no_permission", LIMIT)),
        ("no-kernel", ("no_kernel", LIMIT)),
        ("full-disk", ("disk_full", LIMIT)),
        ("unreadable", ("unreadable_output", LIMIT)),
        ("dies", ("tool_died", LIMIT)),
        ("hang-first", ("timed_out", short)),
        ("hang-last", ("timed_out", short)),
    ]);
    for (mode, (code, limit)) in table {
        stand.set(mode);
        let why = stand.ncu("ok", limit).await.unwrap_err();
        assert_eq!(why.code, code, "{mode}: {why:?}");
        assert!(!why.reason.is_empty() && !why.remedy.is_empty(), "{mode}");
    }
    stand.set("good");
    let why = stand.ncu("lost", LIMIT).await.unwrap_err();
    assert_eq!(why.code, "application_failed", "{why:?}");
    assert!(why.reason.contains("it went astray"), "{why:?}");
    let nowhere = Stand::new("good");
    fs::remove_file(nowhere.directory.path().join("ncu")).unwrap();
    let installed = nowhere.tools.found(true).await.get(ToolName::Ncu).is_some();
    the_rest_needs!("a machine without ncu", !installed);
    assert_eq!(nowhere.ncu("ok", LIMIT).await.unwrap_err().code, "no_tool");
}

async fn ncu_is_started_again_while_others_have_the_counters() {
    let stand = Stand::new("busy");
    let profiled = stand.ncu("ok", LIMIT).await.unwrap();
    assert_eq!(stand.read("attempts").lines().count(), 3);
    assert!(!profiled.log.contains("driver resource"), "{}", profiled.log);
    // Not for ever.
    stand.set("busy");
    fs::remove_file(stand.directory.path().join("attempts")).unwrap();
    let why = stand.ncu("ok", Duration::from_millis(400)).await.unwrap_err();
    assert!(["counters_busy", "timed_out"].contains(&why.code.as_str()), "{why:?}");
}

async fn metrics_that_ncu_refuses_are_left_out() {
    let stand = Stand::new("refuses");
    let names = ["dram__bytes.sum", "unknown__metric", "x"];
    for _ in 0..2 {
        let profiled = stand.ncu_of("ok", LIMIT, &names).await.unwrap();
        assert_eq!(stand.read("asked"), "dram__bytes.sum,x\n");
        let collected = ncu::collected(&profiled, &BTreeSet::from(names)).unwrap();
        assert!(collected.missing.contains_key("unknown__metric"), "{:?}", collected.missing);
    }
    // Once was enough.
    assert_eq!(stand.read("refusals").lines().count(), 1);
}

async fn what_ncu_leaves_running_is_ended() {
    let stand = Stand::new("daemon");
    stand.ncu("ok", LIMIT).await.unwrap();
    until_gone(stand.read("daemon").trim().parse().unwrap()).await;
}

async fn the_sanitizer_is_heard() {
    let stand = Stand::new("good");
    let fleet = fleet(false).await;
    let check = async |id: &str, name: &str, limit| {
        let directory = tempfile::tempdir().unwrap();
        let request = sanitizer::CheckRun {
            job: &job(id),
            directory: directory.path(),
            check: sanitizer::Check::ALL.into_iter().find(|check| check.name() == name).unwrap(),
            time_limit: limit,
        };
        sanitizer::check(&stand.tools, &mut lease(&fleet).await, &request).await
    };
    let checked = check("ok", "memcheck", LIMIT).await.unwrap();
    assert!(checked.log.complete() && checked.log.findings.is_empty(), "{:?}", checked.log);
    fs::write(stand.directory.path().join("findings"), FINDINGS).unwrap();
    // A kernel that faults is what it is there for.
    let checked = check("lost", "memcheck", LIMIT).await.unwrap();
    assert_eq!(checked.outcome.failure.unwrap().code, FailureCode::IllegalAddress);
    let found = &checked.log.findings[0];
    assert_eq!((found.check, found.count), ("out_of_bounds", 1));
    assert_eq!(found.source.as_deref(), Some("kernel.cu:5"));
    stand.set("no-driver");
    let why = check("ok", "racecheck", LIMIT).await.unwrap_err();
    assert_eq!(why.code, "no_kernel");
    assert!(why.reason.contains("before first instrumented API call"), "{why:?}");
    stand.set("hang-first");
    let why = check("ok", "initcheck", Duration::from_millis(500)).await.unwrap_err();
    assert_eq!(why.code, "timed_out");
    stand.set("dies");
    let why = check("ok", "synccheck", LIMIT).await.unwrap_err();
    assert_eq!(why.code, "tool_died", "{why:?}");
}
