//! A worker without a device: it speaks the protocol and does what a job's name says.

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::mpsc::channel;

use warpgauge_device::GpuHealth;
use warpgauge_model::{DeviceInfo, DeviceKind, FailureCode, SmLimits, Target};
use warpgauge_sandbox::device_worker::Confinement;
use warpgauge_worker::frame;
use warpgauge_worker::protocol::ProbeReport;
use warpgauge_worker::protocol::{
    Blame, EvaluatedRun, FromWorker, GpuReading, PROTOCOL_VERSION, RunFailure, RunOutcome,
    TaskOutcome, ToWorker, TracedRun, WorkerJob, WorkerTask,
};

/// Socket in the job's directory that a slow scrub waits for.
pub const SCRUBBING: &str = "scrubbing";

pub fn main(args: &[String]) -> ExitCode {
    if args.iter().any(|arg| arg == "--probe") {
        let report = ProbeReport { devices: vec![device(0), device(1)], error: None };
        println!("a line that the driver prints");
        println!("{}", serde_json::to_string(&report).unwrap());
        return ExitCode::SUCCESS;
    }
    let at = args.iter().position(|arg| arg == "--device").unwrap();
    let ordinal = args[at + 1].parse().unwrap();
    let mut stream = match args.iter().position(|arg| arg == "--socket") {
        Some(at) => UnixStream::connect(&args[at + 1]).unwrap(),
        None => UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned().unwrap()),
    };
    let once = args.iter().any(|arg| arg == "--socket");
    loop {
        let message = match frame::read::<ToWorker>(&mut stream) {
            Ok(message) => message,
            Err(_) => return ExitCode::SUCCESS,
        };
        match message {
            ToWorker::Hello { .. } => {
                let device = Box::new(device(ordinal));
                let confinement = Box::new(Confinement::none("this worker is a script"));
                let protocol = PROTOCOL_VERSION;
                let reading =
                    Box::new(Ok(GpuReading { health: health(345), ..GpuReading::default() }));
                send(&mut stream, &FromWorker::Ready { protocol, device, confinement, reading });
            }
            ToWorker::Support(image) if *image.bytes == *b"broken" => {
                send(&mut stream, &FromWorker::Unable { reason: "bad image".to_owned() });
                return ExitCode::FAILURE;
            }
            ToWorker::Support(_) | ToWorker::Release => send(&mut stream, &FromWorker::Idle),
            ToWorker::Run(job) if once => {
                play_once(&mut stream, &job);
                return ExitCode::SUCCESS;
            }
            ToWorker::Run(job) => play(&mut stream, &job),
            ToWorker::Socket => unreachable!("no script judges"),
            ToWorker::Exit => return ExitCode::SUCCESS,
        }
    }
}

fn send(stream: &mut UnixStream, message: &FromWorker) {
    frame::write(stream, message).unwrap();
}

fn play(stream: &mut UnixStream, job: &WorkerJob) {
    if job.id == "die while loading" {
        eprintln!("loading went wrong");
        std::process::abort();
    }
    send(stream, &FromWorker::Started);
    send(stream, &FromWorker::Progress { trials: 1, statistics: None });
    match job.id.as_str() {
        "hang" => hang(),
        "kill itself" => {
            std::io::stderr().write_all(b"out of patience\n").unwrap();
            std::process::exit(7);
        }
        "speak out of turn" => send(stream, &FromWorker::Idle),
        _ => {}
    }
    send(stream, &FromWorker::Executed);
    if job.id == "lost" {
        send(stream, &FromWorker::Lost(Box::new(outcome(job))));
        std::process::exit(0);
    }
    send(stream, &FromWorker::Done(Box::new(outcome(job))));
    match job.id.as_str() {
        "die while scrubbing" => std::process::abort(),
        "scrub slowly" => {
            // Until whoever listens there hangs up.
            let mut until = UnixStream::connect(job.directory.join(SCRUBBING)).unwrap();
            until.read_to_end(&mut Vec::new()).unwrap();
            send(stream, &scrubbed(None));
        }
        "retire" => send(stream, &scrubbed(Some("not clean".to_owned()))),
        _ => send(stream, &scrubbed(None)),
    }
}

/// Under a tool: one job, and the end.
fn play_once(stream: &mut UnixStream, job: &WorkerJob) {
    assert!(
        matches!(job.task, WorkerTask::Trace(_)),
        "a job under a tool says what the tool is to see"
    );
    send(stream, &FromWorker::Started);
    match job.id.as_str() {
        "hang" => hang(),
        "kill itself" => std::process::exit(7),
        "lost" => {
            let blame = Blame::Candidate;
            let (code, message) = (FailureCode::IllegalAddress, "it went astray".to_owned());
            let failure = Some(RunFailure { code, message, blame });
            send(stream, &FromWorker::Lost(Box::new(RunOutcome { failure, ..outcome(job) })));
            std::process::exit(1);
        }
        _ => send(stream, &FromWorker::Done(Box::new(outcome(job)))),
    }
}

fn scrubbed(retire: Option<String>) -> FromWorker {
    FromWorker::Scrubbed { scrub_ms: 0.0, retire }
}

/// Waits for something that never comes.
fn hang() -> ! {
    let (_keep, never) = channel::<()>();
    let _ = never.recv();
    unreachable!("the sender is alive")
}

/// The process number stands in for a measurement, so that tests see which process answered.
fn outcome(job: &WorkerJob) -> RunOutcome {
    let number = u64::from(std::process::id());
    RunOutcome::default().map(|()| match &job.task {
        WorkerTask::Trace(_) => TaskOutcome::Traced(TracedRun { memory_bytes: Some(number) }),
        _ if job.id == "answer another task" => TaskOutcome::Traced(TracedRun::default()),
        _ => TaskOutcome::Evaluated(Box::new(EvaluatedRun {
            samples_ms: vec![0.5],
            warmup_launches: std::process::id(),
            health: (job.id == "read the clocks").then(|| [health(1980), health(1605)]),
            settings: Some(GpuReading::default().settings),
            ..EvaluatedRun::default()
        })),
    })
}

fn health(sm_clock_mhz: u32) -> GpuHealth {
    GpuHealth { sm_clock_mhz: Some(sm_clock_mhz), ..GpuHealth::default() }
}

fn device(ordinal: u32) -> DeviceInfo {
    let target = Target { compute_capability: (9, 0), driver_version: 13000, emulated: false };
    DeviceInfo {
        ordinal,
        kind: DeviceKind::Cuda,
        name: "scripted".to_owned(),
        uuid: format!("GPU-{ordinal}"),
        target,
        multiprocessors: 1,
        memory_bytes: 1 << 30,
        l2_bytes: 0,
        clock_khz: 0,
        memory_clock_khz: 0,
        memory_bus_bits: 0,
        max_shared_optin_bytes: 0,
        pci_bus_id: String::new(),
        sm: SmLimits::default(),
        unmonitored: None,
    }
}
