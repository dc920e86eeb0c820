//! What a fleet must do, whatever its workers do.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::net::UnixListener;

use warpgauge_model::{DeviceState, FailureCode, Image, ImageFormat};
use warpgauge_worker::protocol::{
    Blame, EvaluatePlan, EvaluatedRun, KernelLaunch, KernelProgram, RunOutcome, WorkerJob,
};
use warpgauge_worker::queue::LeaseNeeds;
use warpgauge_worker::{
    DeviceChoice, Fleet, FleetConfig, FleetError, Lease, LeaseError, RunEvent, SupportSource,
};

use crate::scripted::SCRUBBING;

pub type Check = fn() -> Pin<Box<dyn Future<Output = ()>>>;

/// Lists checks by their names.
#[macro_export]
macro_rules! checks {
    ($($function:ident),* $(,)?) => {
        pub const ALL: &[(&str, Check)] =
            &[$((stringify!($function), || Box::pin($function()))),*];
    };
}
checks![
    a_worker_is_used_again,
    a_device_has_the_clocks_that_a_worker_read_last,
    events_arrive_in_order,
    a_hanging_job_is_stopped_and_the_spare_takes_over,
    a_worker_that_dies_is_reported_with_what_it_said,
    what_makes_a_worker_unusable_replaces_it,
    dropping_a_running_lease_kills_the_worker,
    fresh_jobs_get_processes_of_their_own,
    leases_are_bounded_and_fair,
    a_device_that_nobody_waits_for_any_more_comes_back,
    a_device_without_workers_is_failed,
    shutdown_stops_what_runs,
    shutdown_lets_workers_clean_up_behind_what_was_answered,
    devices_are_chosen,
];

pub const LIMIT: Duration = Duration::from_secs(20);

fn config(devices: Vec<u32>, hot_spare: bool) -> FleetConfig {
    FleetConfig {
        program: std::env::current_exe().unwrap(),
        devices: DeviceChoice::Ordinals(devices),
        emulator: None,
        cupti: Vec::new(),
        libraries: Vec::new(),
        run_dir: std::env::temp_dir(),
        hot_spare,
        queue_capacity: 2,
        start_timeout: LIMIT,
    }
}

fn support(bytes: &'static [u8]) -> SupportSource {
    Arc::new(move |_| {
        let image = Image { bytes: bytes.into(), format: ImageFormat::Cubin };
        Box::pin(async move { Ok(image) })
    })
}

pub async fn fleet(hot_spare: bool) -> Arc<Fleet> {
    Fleet::start(config(vec![0], hot_spare), support(b"good")).await.unwrap()
}

pub async fn lease(fleet: &Arc<Fleet>) -> Lease {
    fleet.lease(&LeaseNeeds::default()).await.unwrap()
}

pub fn job(id: &str) -> WorkerJob<EvaluatePlan> {
    let image = Image { bytes: vec![1; 100_000].into(), format: ImageFormat::Cubin };
    let launch = KernelLaunch {
        image,
        symbol: "k".to_owned(),
        arguments: Vec::new(),
        grid: [1; 3],
        block: [1; 3],
        shared_bytes: 0,
        cluster: None,
        cooperative: false,
    };
    WorkerJob {
        id: id.to_owned(),
        directory: std::env::temp_dir(),
        program: KernelProgram { buffers: Vec::new(), launches: launch.into() },
        task: EvaluatePlan::default(),
    }
}

async fn run(fleet: &Arc<Fleet>, id: &str) -> RunOutcome<EvaluatedRun> {
    lease(fleet).await.run(job(id), LIMIT, false, &|_| ()).await
}

/// The process that answered a job without failure.
async fn process(fleet: &Arc<Fleet>) -> u32 {
    let outcome = run(fleet, "ok").await;
    assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
    outcome.told.warmup_launches
}

/// Waits until the fleet's first device looks as wanted.
async fn until(fleet: &Fleet, wanted: impl Fn(&warpgauge_worker::DeviceStatus) -> bool) {
    let reached = async {
        while !wanted(&fleet.devices()[0]) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LIMIT, reached).await.expect("the device gets there");
}

async fn a_worker_is_used_again() {
    let fleet = fleet(false).await;
    let first = process(&fleet).await;
    assert_eq!(process(&fleet).await, first);
    let device = &fleet.devices()[0];
    assert_eq!((device.jobs_done, device.restarts), (2, 0));
}

async fn a_device_has_the_clocks_that_a_worker_read_last() {
    let fleet = fleet(false).await;
    let clock = || {
        let reading = fleet.devices()[0].reading.clone().unwrap();
        (reading.reading.health.sm_clock_mhz, reading.after_launches)
    };
    until(&fleet, |device| device.ready_workers > 0).await;
    assert_eq!(clock(), (Some(345), false), "at the start");
    // A run without a reading changes nothing.
    process(&fleet).await;
    assert_eq!(clock(), (Some(345), false));
    run(&fleet, "read the clocks").await;
    assert_eq!(clock(), (Some(1605), true), "after the launches");
    // The next worker finds an idle device, which says less.
    let before = fleet.devices()[0].restarts;
    run(&fleet, "kill itself").await;
    until(&fleet, |device| device.restarts > before).await;
    assert_eq!(clock(), (Some(1605), true));
}

async fn events_arrive_in_order() {
    let fleet = fleet(false).await;
    let seen = Mutex::new(Vec::new());
    let record = |event| seen.lock().unwrap().push(event);
    lease(&fleet).await.run(job("ok"), LIMIT, false, &record).await;
    let expected =
        [RunEvent::Started, RunEvent::Progress { trials: 1, statistics: None }, RunEvent::Executed];
    assert_eq!(*seen.lock().unwrap(), expected);
}

async fn a_hanging_job_is_stopped_and_the_spare_takes_over() {
    let fleet = fleet(true).await;
    let first = process(&fleet).await;
    until(&fleet, |device| device.ready_workers == 2).await;
    let limit = Duration::from_millis(200);
    let start = Instant::now();
    let outcome = lease(&fleet).await.run(job("hang"), limit, false, &|_| ()).await;
    let failure = outcome.failure.unwrap();
    assert_eq!((failure.code, failure.blame), (FailureCode::Timeout, Blame::Candidate));
    assert!(start.elapsed() >= limit && start.elapsed() < limit + Duration::from_secs(1));
    until_gone(first).await;
    assert_ne!(process(&fleet).await, first);
    until(&fleet, |device| device.ready_workers == 2 && device.restarts == 1).await;
}

/// Whether a process exists and has not ended.
fn alive(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"));
    stat.is_ok_and(|stat| !stat.rsplit(')').next().unwrap().trim_start().starts_with('Z'))
}

pub async fn until_gone(process: u32) {
    let gone = async {
        while alive(process) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LIMIT, gone).await.expect("the process ends");
}

async fn a_worker_that_dies_is_reported_with_what_it_said() {
    let fleet = fleet(true).await;
    let failure = run(&fleet, "kill itself").await.failure.unwrap();
    assert_eq!((failure.code, failure.blame), (FailureCode::WorkerDied, Blame::Candidate));
    assert!(failure.message.contains("out of patience"), "{}", failure.message);
    assert!(failure.message.contains('7'), "{}", failure.message);
    let failure = run(&fleet, "die while loading").await.failure.unwrap();
    assert!(failure.message.contains("loading went wrong"), "{}", failure.message);
    process(&fleet).await;
}

async fn what_makes_a_worker_unusable_replaces_it() {
    let fleet = fleet(true).await;
    for id in ["lost", "retire", "die while scrubbing"] {
        let last = process(&fleet).await;
        let outcome = run(&fleet, id).await;
        assert!(outcome.failure.is_none(), "{id}");
        assert_ne!(process(&fleet).await, last, "{id}");
    }
    for id in ["speak out of turn", "answer another task"] {
        let failure = run(&fleet, id).await.failure.unwrap();
        assert_eq!((failure.code, failure.blame), (FailureCode::InternalError, Blame::Environment));
    }
    process(&fleet).await;
}

async fn dropping_a_running_lease_kills_the_worker() {
    let fleet = fleet(true).await;
    let first = process(&fleet).await;
    let (started, mut begun) = tokio::sync::mpsc::channel(4);
    let mut lease = lease(&fleet).await;
    let hanging = tokio::spawn(async move {
        let tell = |_| started.try_send(()).unwrap_or_default();
        lease.run(job("hang"), LIMIT, false, &tell).await
    });
    begun.recv().await.unwrap();
    hanging.abort();
    assert!(hanging.await.unwrap_err().is_cancelled());
    let second = process(&fleet).await;
    assert_ne!(second, first);
    until_gone(first).await;
}

async fn fresh_jobs_get_processes_of_their_own() {
    let fleet = fleet(true).await;
    let warm = process(&fleet).await;
    let mut lease = lease(&fleet).await;
    let mut seen = vec![warm];
    for _ in 0..3 {
        let outcome = lease.run(job("ok"), LIMIT, true, &|_| ()).await;
        assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
        seen.push(outcome.told.warmup_launches);
    }
    drop(lease);
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 4);
    process(&fleet).await;
}

async fn leases_are_bounded_and_fair() {
    let fleet = fleet(false).await;
    let held = lease(&fleet).await;
    let order = Arc::new(Mutex::new(Vec::new()));
    let wait = |name: char| {
        let (fleet, order) = (Arc::clone(&fleet), Arc::clone(&order));
        tokio::spawn(async move {
            let _lease = lease(&fleet).await;
            order.lock().unwrap().push(name);
        })
    };
    let first = wait('a');
    until_waiting(&fleet, 1).await;
    let second = wait('b');
    until_waiting(&fleet, 2).await;
    match fleet.lease(&LeaseNeeds::default()).await.map(drop) {
        Err(LeaseError::QueueFull { waiting: 2, retry_after }) => {
            assert!(retry_after >= Duration::from_secs(1));
        }
        other => panic!("{other:?}"),
    }
    let elsewhere = LeaseNeeds { device: Some(9), ..LeaseNeeds::default() };
    let refused = fleet.lease(&elsewhere).await.map(drop);
    assert!(matches!(refused, Err(LeaseError::NoSuchDevice { .. })));
    drop(held);
    first.await.unwrap();
    second.await.unwrap();
    assert_eq!(*order.lock().unwrap(), ['a', 'b']);
}

async fn a_device_that_nobody_waits_for_any_more_comes_back() {
    let fleet = fleet(false).await;
    let held = lease(&fleet).await;
    let need = LeaseNeeds::default();
    let mut waiting = Box::pin(fleet.lease(&need));
    tokio::select! {
        biased;
        granted = &mut waiting => panic!("{:?}", granted.map(drop)),
        () = std::future::ready(()) => {}
    }
    until_waiting(&fleet, 1).await;
    // Handed over to one who goes away before looking.
    drop(held);
    drop(waiting);
    assert_eq!(run(&fleet, "fine").await.failure, None);
}

async fn until_waiting(fleet: &Fleet, count: usize) {
    let reached = async {
        while fleet.waiting() != count {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LIMIT, reached).await.expect("the waiter arrives");
}

async fn a_device_without_workers_is_failed() {
    let fleet = Fleet::start(config(vec![0], true), support(b"broken")).await.unwrap();
    match fleet.lease(&LeaseNeeds::default()).await.map(drop) {
        Err(LeaseError::Failed { device: 0, reason }) => assert!(reason.contains("bad image")),
        other => panic!("{other:?}"),
    }
    let state = fleet.devices()[0].state.clone();
    assert!(matches!(state, DeviceState::Failed { .. }), "{state:?}");
}

async fn shutdown_stops_what_runs() {
    let fleet = fleet(false).await;
    let (started, mut begun) = tokio::sync::mpsc::channel(4);
    let mut lease = lease(&fleet).await;
    let running = tokio::spawn(async move {
        let tell = |_| started.try_send(()).unwrap_or_default();
        lease.run(job("hang"), LIMIT, false, &tell).await
    });
    begun.recv().await.unwrap();
    let waiting = tokio::spawn({
        let fleet = Arc::clone(&fleet);
        async move { fleet.lease(&LeaseNeeds::default()).await.map(drop) }
    });
    until_waiting(&fleet, 1).await;
    fleet.shutdown(Duration::from_millis(50)).await;
    assert_eq!(waiting.await.unwrap(), Err(LeaseError::ShuttingDown));
    let failure = running.await.unwrap().failure.unwrap();
    assert_eq!(failure.code, FailureCode::ShuttingDown);
    let refused = fleet.lease(&LeaseNeeds::default()).await.map(drop);
    assert_eq!(refused, Err(LeaseError::ShuttingDown));
}

async fn shutdown_lets_workers_clean_up_behind_what_was_answered() {
    let fleet = fleet(false).await;
    let directory = tempfile::tempdir().unwrap();
    let scrubbing = UnixListener::bind(directory.path().join(SCRUBBING)).unwrap();
    let job = WorkerJob { directory: directory.path().to_owned(), ..job("scrub slowly") };
    let answer = lease(&fleet).await.run(job, LIMIT, false, &|_| ()).await;
    assert_eq!(answer.failure, None);
    assert!(fleet.devices()[0].busy, "the answer does not wait for the scrubbing");
    // The shutdown has begun when the scrub ends.
    tokio::join!(biased; fleet.shutdown(Duration::ZERO), async {
        drop(scrubbing.accept().await.unwrap());
    });
    assert!(!fleet.devices()[0].busy, "the worker was not given its time");
}

async fn devices_are_chosen() {
    let fleet = Fleet::start(config(vec![1], false), support(b"good")).await.unwrap();
    assert_eq!(lease(&fleet).await.device().ordinal, 1);
    match Fleet::start(config(vec![0, 5], false), support(b"good")).await.map(drop) {
        Err(FleetError::NoSuchDevice { ordinal: 5, there: 2 }) => {}
        other => panic!("{other:?}"),
    }
    let mut missing = config(vec![0], false);
    missing.program = "/nonexistent/warpgauge".into();
    let refused = Fleet::start(missing, support(b"good")).await.map(drop);
    assert!(matches!(refused, Err(FleetError::Probe { .. })), "{refused:?}");
}
