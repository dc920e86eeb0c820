//! Functions that callers send. Each call runs in a fresh fork, or in a fork that ran an earlier
//! call with the same owner, name, device and limits. It runs on the CPU, or on a GPU under the
//! device's lease. Only the caller uses the result; this module does not inspect it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::TorchBackend;
use super::builder::{Customer, Serving, python_host};
use super::held::Held;
use super::runs::{Leash, Side, of_unusable};
use super::waiting::{Maker, Seated, Terms, WaitingFunctions};
use crate::clock::ms;
use crate::error::{self, ExecError, Problem};
use crate::host::Host;
use warpgauge_contract::functions::{
    CallStatus, FunctionCall, FunctionLimits, FunctionOutcome, FunctionPlaces, OutcomeHead, Place,
    PlaceKind,
};
use warpgauge_model::{DeviceInfo, FailureCode};
use warpgauge_torch::{CallEnd, FunctionRunner, Queues, RunnerCall, RunnerOutput};
use warpgauge_turns::Owner;
use warpgauge_worker::queue::LeaseNeeds;

/// Runs functions that callers send.
pub(crate) struct Functions {
    host: Arc<Host>,
    torch: Arc<TorchBackend>,
    waiting: Arc<WaitingFunctions>,
}

impl Functions {
    pub(crate) fn new(host: &Arc<Host>, torch: &Arc<TorchBackend>) -> Self {
        Self { host: Arc::clone(host), torch: Arc::clone(torch), waiting: Arc::default() }
    }

    /// Ends the idle processes that wait for another call.
    pub(crate) fn end(&self) {
        self.waiting.end();
    }

    /// Returns the devices on which functions can run, with the limits on calls.
    pub(crate) fn places(&self) -> FunctionPlaces {
        let mut places = Vec::new();
        let reason = match self.torch.sides() {
            Ok(torch) => {
                let devices = self.host.fleet.devices().into_iter().map(|status| status.info);
                let gpus = devices.filter_map(|info| Some((torch.gpus.get(&info.ordinal)?, info)));
                places.extend(gpus.map(|(side, info)| Place {
                    kind: PlaceKind::Cuda,
                    ordinal: Some(info.ordinal),
                    uuid: Some(info.uuid),
                    name: Some(info.name),
                    // A GPU has one lease.
                    calls: 1,
                    threads: side.runners.threads(),
                }));
                places.push(Place {
                    kind: PlaceKind::Cpu,
                    ordinal: None,
                    uuid: None,
                    name: None,
                    calls: torch.cpu.runners.places(),
                    threads: torch.cpu.runners.threads(),
                });
                None
            }
            Err(error) => Some(error.to_string()),
        };
        FunctionPlaces {
            allowed: reason.is_none(),
            pickles_allowed: false,
            reason,
            places,
            limits: self.limits(),
        }
    }

    fn limits(&self) -> FunctionLimits {
        let limits = &self.host.config.limits;
        FunctionLimits {
            max_timeout_s: limits.max_function_s,
            max_memory_bytes: limits.max_function_memory_bytes,
            max_result_bytes: limits.max_function_result_bytes,
            max_body_bytes: self.host.config.server.body_limit_bytes,
            max_idle_s: self.host.config.devices.function_idle_s,
        }
    }

    /// Runs one call. Dropping the future ends the call's process.
    pub(crate) async fn run(&self, call: FunctionCall) -> Result<FunctionOutcome, ExecError> {
        let arrived = Instant::now();
        let limits = self.limits();
        call.head.check(&limits).map_err(|problem| invalid(problem.path, problem.message))?;
        let side = self.side_of(call.head.device.as_deref())?;
        let terms = Terms::of(&call).filter(|_| limits.max_idle_s > 0.0);
        let take = |terms| self.waiting.take(terms, side, &self.host.fleet);
        let waiting = terms.as_ref().and_then(take);
        let again = waiting.is_some();
        let seated = match waiting {
            Some(seated) => seated,
            None => {
                self.seated(side, call.head.device.as_deref(), Owner::named(&call.owner)).await?
            }
        };
        let queue_ms = ms(arrived);
        let began = Instant::now();
        let deadline = began + Duration::try_from_secs_f64(call.head.timeout).unwrap_or_default();
        seated.serving.until(deadline);
        let (head, program) = (call.head, call.program);
        let (place_kind, device, timeout) =
            (kind_of(head.device.as_ref()), head.device.clone(), head.timeout);
        let most_threads = side.runners.threads();
        let keep = terms.is_some();
        let callee = seated.callee;
        let collected = tokio::task::spawn_blocking(move || {
            let function = RunnerCall {
                program: &program,
                pickles: head.pickles,
                stand_in: head.stand_in,
                memory: head.memory_bytes.unwrap_or(limits.max_memory_bytes),
                threads: head.threads.map_or(most_threads, |t| most_threads.min(t as usize)),
                keep,
            };
            let callee = match callee {
                Maker::Ready(callee) => callee,
                Maker::Fresh(runner) => FunctionRunner::new(*runner, deadline)?,
            };
            let collected = callee.call(deadline, &function, limits.max_result_bytes);
            Ok((collected, callee))
        });
        let (collected, callee) = collected
            .await
            .map_err(|error| error::internal("running a function", &error))?
            .map_err(|what: String| {
                ExecError::Unavailable(format!("PyTorch cannot be used: {what}"))
            })?;
        let RunnerOutput { records, end, printed, waits } = collected;
        let seated = Seated { callee: Maker::Ready(callee), ..seated };
        match terms {
            Some(terms) if waits => {
                let idle = Duration::from_secs_f64(limits.max_idle_s);
                self.waiting.put(terms, seated, side, &self.host.fleet, idle);
            }
            _ => drop(seated),
        }
        let (status, reason) = told(end, timeout, limits.max_result_bytes);
        Ok(FunctionOutcome {
            head: OutcomeHead {
                status,
                reason,
                place: place_kind,
                device,
                queue_ms,
                run_ms: ms(began),
                again,
                printed,
            },
            records,
        })
    }

    /// Starts a process for calls, with a permit and, on a GPU, the device's lease.
    async fn seated(
        &self,
        side: &Arc<Side>,
        device: Option<&str>,
        owner: Owner,
    ) -> Result<Seated, ExecError> {
        let place = side.runners.function_place(owner).await.map_err(of_unusable)?;
        let versions = side.runners.warm().await.map_err(of_unusable)?;
        let held = match device {
            None => None,
            Some(_) if versions.cuda.is_none() => {
                let why = "this PyTorch is built for the CPU only; install one that is built for \
                           CUDA, or leave `device` out";
                return Err(ExecError::NotOffered(why.to_owned()));
            }
            Some(uuid) => {
                let need =
                    LeaseNeeds { device: self.ordinal(uuid), owner, ..LeaseNeeds::default() };
                let lease = self.host.fleet.lease(&need).await.map_err(error::from_lease)?;
                Some(Held::new(lease, side, &self.host.fleet))
            }
        };
        let mut runner = side.runners.runner(Queues::Few).await.map_err(of_unusable)?;
        let leash = Leash(vec![runner.killer()]);
        if let Some(held) = &held {
            let earlier = held.ends([runner.killer()]);
            held.makes_next(earlier);
        }
        let device = device.and_then(|uuid| self.device(uuid));
        let python = python_host(&versions, device.as_ref());
        let forks = std::slice::from_mut(&mut runner);
        // Each call sets its own deadline.
        let customer = Customer { compiler: &self.host.compiler, owner };
        let serving = Serving::begin(&customer, python, forks, Instant::now());
        let callee = Maker::Fresh(Box::new(runner));
        Ok(Seated { callee, serving, _leash: leash, held, _place: place })
    }

    fn side_of(&self, device: Option<&str>) -> Result<&Arc<Side>, ExecError> {
        let torch = self.torch.sides()?;
        let Some(uuid) = device else { return Ok(&torch.cpu) };
        let side = self.ordinal(uuid).and_then(|ordinal| torch.gpus.get(&ordinal));
        side.ok_or_else(|| {
            let message = "there is no GPU of this uuid here; GET /functions/places lists those \
                           that functions can run on";
            invalid("device", message.to_owned())
        })
    }

    fn ordinal(&self, uuid: &str) -> Option<u32> {
        self.device(uuid).map(|info| info.ordinal)
    }

    fn device(&self, uuid: &str) -> Option<DeviceInfo> {
        let devices = self.host.fleet.devices().into_iter();
        devices.map(|status| status.info).find(|info| info.uuid == uuid)
    }
}

fn kind_of(device: Option<&String>) -> PlaceKind {
    match device {
        Some(_) => PlaceKind::Cuda,
        None => PlaceKind::Cpu,
    }
}

fn invalid(path: &str, message: String) -> ExecError {
    let code = FailureCode::InvalidData;
    ExecError::Invalid(vec![Problem { path: path.to_owned(), code, message }])
}

/// Converts the end of a call to its status and reason.
fn told(end: CallEnd, timeout: f64, most: u64) -> (CallStatus, Option<String>) {
    match end {
        CallEnd::Done => (CallStatus::Ended, None),
        CallEnd::TimedOut => {
            let reason = format!("the call did not end within {timeout} s (`timeout`)");
            (CallStatus::TimedOut, Some(reason))
        }
        CallEnd::Died(how) => (CallStatus::Died, Some(format!("its process ended: {how}"))),
        CallEnd::TooLarge => {
            let reason = format!(
                "the call returned more than {most} bytes (limits.max_function_result_bytes); \
                 return less, or in smaller chunks"
            );
            (CallStatus::TooLarge, Some(reason))
        }
        CallEnd::Garbled(what) => (CallStatus::Garbled, Some(what)),
    }
}
