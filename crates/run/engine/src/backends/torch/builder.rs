//! Compiles extensions for the runners of an order, which have no compilers.
//!
//! Each runner has a socket to the server that judges cannot access. The server handles a runner's
//! build requests one at a time until a limit on their number or the end of the order. An invalid
//! message ends the service. Compilation counts towards the order's timeout, but not towards the
//! kernel's time.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use warpgauge_compile::{BuildOrder, BuildOutput, CompileError, Compiler, PythonHost};
use warpgauge_model::{DeviceInfo, FailureCode};
use warpgauge_report::TorchExtension;
use warpgauge_torch::{BuildSocket, NotBuilt, Runner, Versions};
use warpgauge_turns::Owner;

use crate::error::chain;

/// Maximum number of modules that a runner may have compiled, and of kernels that it may have
/// assembled.
const MOST_MODULES: u32 = 48;
const MOST_ASSEMBLED: u32 = 1024;

/// Maximum number of builds that a report lists.
const MOST_TOLD: usize = 64;

/// Maximum time that is reserved before the deadline to report a timeout. At most a tenth of the
/// remaining time is reserved.
const LEFT: Duration = Duration::from_millis(500);

/// Build service for the runners of one order. Dropping it ends running compilations.
pub(super) struct Serving {
    tasks: JoinSet<()>,
    told: Arc<Mutex<Vec<TorchExtension>>>,
    deadline: Arc<Mutex<Instant>>,
}

/// Owner of an order, and the compiler that builds the order's extensions.
pub(super) struct Customer<'a> {
    pub(super) compiler: &'a Arc<Compiler>,
    pub(super) owner: Owner,
}

/// State that the services of all runners of an order share.
#[derive(Clone)]
struct Desk {
    compiler: Arc<Compiler>,
    owner: Owner,
    python: Arc<PythonHost>,
    deadline: Arc<Mutex<Instant>>,
    /// List of builds for the report, in the first runner's service only.
    told: Option<Arc<Mutex<Vec<TorchExtension>>>>,
}

/// Describes how to build extensions for a Python process, based on the facts that its interpreter
/// reported.
pub(super) fn python_host(versions: &Versions, device: Option<&DeviceInfo>) -> PythonHost {
    let building = versions.building.clone();
    PythonHost {
        include: building.include,
        standard: building.standard,
        defines: building.defines,
        cuda: versions.cuda.clone(),
        arch: device.map(|info| info.target.architecture()),
    }
}

impl Serving {
    /// Starts the service for these runners until the deadline. The report lists the builds of the
    /// first runner.
    pub(super) fn begin(
        customer: &Customer<'_>,
        python: PythonHost,
        runners: &mut [Runner],
        deadline: Instant,
    ) -> Self {
        let (mut tasks, told) = (JoinSet::new(), Arc::default());
        let (compiler, python) = (Arc::clone(customer.compiler), Arc::new(python));
        let deadline = Arc::new(Mutex::new(deadline));
        let mut desk = Desk {
            compiler,
            owner: customer.owner,
            python,
            deadline: Arc::clone(&deadline),
            told: Some(Arc::clone(&told)),
        };
        for runner in runners {
            match runner.counter() {
                Ok(Some(counter)) => {
                    tasks.spawn(desk.clone().serve(counter));
                }
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(%error, "the build service of a torch kernel cannot start")
                }
            }
            desk.told = None;
        }
        Self { tasks, told, deadline }
    }

    /// Changes the deadline up to which the service accepts build requests.
    pub(super) fn until(&self, deadline: Instant) {
        *self.deadline.lock().unwrap_or_else(PoisonError::into_inner) = deadline;
    }

    /// Ends the service, and returns the builds of the first runner.
    pub(super) fn end(mut self) -> Vec<TorchExtension> {
        self.tasks.abort_all();
        std::mem::take(&mut *self.told.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Desk {
    async fn serve(self, mut counter: BuildSocket) {
        let (mut modules, mut assembled) = (0, 0);
        while let Some(order) = counter.order::<BuildOrder>().await {
            let (count, most) = match order {
                BuildOrder::Assembly(_) => (&mut assembled, MOST_ASSEMBLED),
                _ => (&mut modules, MOST_MODULES),
            };
            if *count == most {
                let message =
                    format!("at most {most} builds of this kind are allowed for one process");
                let _ = counter.refuse(not_built(FailureCode::NotSupported, message)).await;
                return;
            }
            *count += 1;
            let answered = match self.built(&order).await {
                Ok(built) => counter.hand_over(&built.object, &built.log).await,
                Err(why) => counter.refuse(why).await,
            };
            if answered.is_err() {
                return;
            }
        }
    }

    async fn built(&self, order: &BuildOrder) -> Result<BuildOutput, NotBuilt> {
        let began = Instant::now();
        let deadline = *self.deadline.lock().unwrap_or_else(PoisonError::into_inner);
        let left = deadline.saturating_duration_since(began);
        let limit = left.saturating_sub(LEFT.min(left / 10));
        let built = self.compiler.build_for_python(order, &self.python, limit, self.owner).await;
        self.tell(order, began.elapsed(), &built);
        built.map_err(why_not)
    }

    fn tell(&self, order: &BuildOrder, took: Duration, built: &Result<BuildOutput, CompileError>) {
        let Some(told) = &self.told else { return };
        let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() == MOST_TOLD {
            return;
        }
        let known = built.as_ref().ok();
        told.push(TorchExtension {
            // The name in a failed build may be invalid, and is not reported.
            name: known.map(|_| order.name().to_owned()).unwrap_or_default(),
            kind: order.kind().to_owned(),
            seconds: took.as_secs_f64(),
            built: known.is_some(),
            cached: known.is_some_and(|built| built.cached),
            how: known.map(|built| built.how.clone()).filter(|how| !how.is_empty()),
        });
    }
}

fn not_built(code: FailureCode, message: String) -> NotBuilt {
    NotBuilt { code: code.to_string(), message, log: String::new() }
}

/// Converts a compiler error to the message for the runner.
fn why_not(error: CompileError) -> NotBuilt {
    match error {
        CompileError::Rejected(failure) => {
            let (code, message) = (failure.code.to_string(), failure.message);
            NotBuilt { code, message, log: failure.log }
        }
        CompileError::Environment { .. } => not_built(FailureCode::NotSupported, error.to_string()),
        other => {
            tracing::warn!(error = %chain(&other), "an extension of a torch kernel was not compiled");
            not_built(FailureCode::CompilerFailed, other.to_string())
        }
    }
}
