//! The worker's life: greeting, built-in kernels, jobs, end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit};

use super::args::WorkerArgs;
use super::device::counters::Counters;
use super::device::executor::Executor;
use super::io::link::Link;
use super::io::stdout::Printed;
use super::job;
use crate::frame::FrameError;
use crate::protocol::{FromWorker, PROTOCOL_VERSION, ToWorker, WorkerJob};
use warpgauge_device::libraries::Libraries;
use warpgauge_device::loader;
use warpgauge_model::Image;
use warpgauge_sandbox::device_worker::{self, Confinement};

/// Time for which idle counters stay reserved for the next request. Reserving them again takes 150
/// ms.
const COUNTERS_KEPT: Duration = Duration::from_secs(10);

/// Runs jobs for the parent until it sends an exit message or disconnects.
pub(super) fn run(args: &WorkerArgs) -> ExitCode {
    // In addition to the watchdog, the kernel kills this process when the thread that started it
    // ends. Under a tool, that thread may end before this process.
    if args.socket.is_none() {
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
    }
    // A core file of a worker that crashed takes many gigabytes and is of no use.
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    let _ = setrlimit(Resource::Core, none);
    // Confinement must precede the start of further threads and the first access to submitted data.
    let confinement = confine(args);
    let link = Link::open(args.socket.as_deref()).and_then(|link| Ok((link, Printed::start()?)));
    let (mut link, printed) = match link {
        Ok(both) => both,
        Err(error) => {
            eprintln!("warpgauge worker: cannot set up the connection to the server: {error}");
            return ExitCode::FAILURE;
        }
    };
    match serve(args, &mut link, printed, confinement) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("warpgauge worker: {reason}");
            // If the server is gone too, the message above must suffice.
            let _ = link.send(&FromWorker::Unable { reason });
            ExitCode::FAILURE
        }
    }
}

/// Confines this process. Under a tool, confines it as far as the tool permits.
fn confine(args: &WorkerArgs) -> Confinement {
    if args.socket.is_some() {
        return device_worker::confine_watched();
    }
    let libraries: Vec<_> =
        args.emulator.iter().chain(&args.cupti).chain(&args.library).cloned().collect();
    device_worker::confine(&args.run_dir(), &libraries)
}

fn serve(
    args: &WorkerArgs,
    link: &mut Link,
    printed: Printed,
    confinement: Confinement,
) -> Result<(), String> {
    match link.next() {
        Some(ToWorker::Hello { protocol: PROTOCOL_VERSION }) => {}
        Some(ToWorker::Hello { protocol }) => {
            return Err(format!(
                "the server uses protocol {protocol}, this worker uses {PROTOCOL_VERSION}: they \
                 are different builds of warpgauge"
            ));
        }
        other => return Err(format!("expected a greeting, got {other:?}")),
    }
    let loaded =
        loader::load(&args.choice(), &args.run_dir()).map_err(|error| error.to_string())?;
    let mut executor = Executor::open(&loaded, args.device, printed).map_err(|e| e.to_string())?;
    executor.is_judge = args.judge;
    executor.libraries = Libraries::new(args.library.clone());
    executor.counters = args.counters.then(|| Counters::new(args.cupti.clone(), args.device));
    let device = Box::new(executor.device().clone());
    let confinement = Box::new(confinement);
    let reading = Box::new(executor.reading());
    send(link, &FromWorker::Ready { protocol: PROTOCOL_VERSION, device, confinement, reading })?;
    loop {
        match next(&mut executor, link) {
            Some(ToWorker::Support(image)) => {
                load_support(&mut executor, &image, link, args.socket.is_none())?;
            }
            Some(ToWorker::Run(job)) if args.socket.is_some() => {
                return run_once(&mut executor, &job, link);
            }
            Some(ToWorker::Run(job)) => {
                if !run_job(&mut executor, &job, link)? {
                    return Ok(());
                }
            }
            Some(ToWorker::Release) => {
                release(&mut executor);
                send(link, &FromWorker::Idle)?;
            }
            Some(ToWorker::Exit) | None => return Ok(()),
            Some(ToWorker::Hello { .. }) => return Err("received a second greeting".to_owned()),
            Some(ToWorker::Socket) => {
                return Err("received a socket instead of a message".to_owned());
            }
        }
    }
}

/// Returns the next message. Releases idle counters while it waits, because no other program of the
/// machine can read counters while they are reserved.
fn next(executor: &mut Executor, link: &mut Link) -> Option<ToWorker> {
    if executor.counters.as_ref().is_some_and(Counters::are_held) {
        if let Some(message) = link.next_within(COUNTERS_KEPT) {
            return message;
        }
        release(executor);
    }
    link.next()
}

fn release(executor: &mut Executor) {
    if let Some(counters) = &mut executor.counters {
        counters.release();
    }
}

fn load_support(
    executor: &mut Executor,
    image: &Image,
    link: &mut Link,
    practise: bool,
) -> Result<(), String> {
    executor
        .load_support(image, practise)
        .map_err(|error| format!("cannot load the worker's kernels: {error}"))?;
    if let Some(counters) = &mut executor.counters {
        counters.warm_up(&executor.context);
    }
    send(link, &FromWorker::Idle)
}

/// Runs the only job of this process. Does not scrub: the driver clears the memory of a process
/// that ends, and the tool would see the scrubbing.
fn run_once(executor: &mut Executor, job: &WorkerJob, link: &mut Link) -> Result<(), String> {
    let end = catch_unwind(AssertUnwindSafe(|| job::run(executor, job, link)))
        .unwrap_or_else(|panic| job::panicked(job, panic.as_ref()));
    if end.lost {
        // Memory in a lost context cannot be freed.
        std::mem::forget(end.residue);
        return send(link, &FromWorker::Lost(Box::new(end.outcome)));
    }
    send(link, &FromWorker::Done(Box::new(end.outcome)))
}

/// Runs a job and cleans up after it. Returns `false` if this worker must end.
fn run_job(executor: &mut Executor, job: &WorkerJob, link: &mut Link) -> Result<bool, String> {
    let end = catch_unwind(AssertUnwindSafe(|| job::run(executor, job, link)))
        .unwrap_or_else(|panic| job::panicked(job, panic.as_ref()));
    if end.lost {
        send(link, &FromWorker::Lost(Box::new(end.outcome)))?;
        // Memory in a lost context cannot be freed, so it is leaked on purpose.
        std::mem::forget(end.residue);
        return Ok(false);
    }
    send(link, &FromWorker::Done(Box::new(end.outcome)))?;
    let scrubbed = executor.scrub(end.residue);
    let retired = scrubbed.retire.is_some();
    let (scrub_ms, retire) = (scrubbed.scrub_ms, scrubbed.retire);
    send(link, &FromWorker::Scrubbed { scrub_ms, retire })?;
    Ok(!retired)
}

fn send(link: &mut Link, message: &FromWorker) -> Result<(), String> {
    link.send(message)
        .map_err(|error: FrameError| format!("cannot send a message to the server: {error}"))
}
