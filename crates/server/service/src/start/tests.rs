//! Jobs whose executor has no device, lacks a capability that it claimed, or dies.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::{LocalService, Storage};
use crate::error::ServiceError;
use crate::run_dir::RunDir;
use crate::settings::{ProcessRole, store_config};
use crate::submission::{Caller, JobRequest, JobSubmission};
use warpgauge_config::{CliOverrides, Config};
use warpgauge_contract::functions::{FunctionCall, FunctionOutcome, FunctionPlaces};
use warpgauge_contract::{CompileRequest, EvaluateRequest};
use warpgauge_executor::{
    BuiltCode, CodeOrder, ExecError, Executor, ExecutorFuture, JobOutcome, Offer, OfferedDevice,
    Progress, WorkOrder,
};
use warpgauge_job_views::Unready;
use warpgauge_model::{
    DeviceInfo, DeviceKind, DeviceState, ExecutorCapabilities, FailureCode, ImageFormat, JobState,
    SmLimits, Target,
};
use warpgauge_report::{CompileResponse, EvaluateResponse, ProfilePlan, Tooling};
use warpgauge_shared_tensors::{
    ExportedTensor, FreedMemory, HeldTensor, HolderError, HolderFuture, HolderSettings,
    TensorHolders, TensorLocation, TensorRegistry,
};
use warpgauge_store::Store;
use warpgauge_turns::Owner;

/// Result of an executor for the nth order.
type Behaviour = Box<dyn Fn(usize) -> Result<(), ExecError> + Send + Sync>;

/// An executor that claims to have devices of these names, and behaves as scripted.
struct Scripted {
    names: Mutex<Vec<&'static str>>,
    /// Number of orders that it received.
    given: AtomicUsize,
    behave: Behaviour,
}

impl Scripted {
    fn new(
        names: &[&'static str],
        behave: impl Fn(usize) -> Result<(), ExecError> + Send + Sync + 'static,
    ) -> Arc<Self> {
        let names = Mutex::new(names.to_vec());
        Arc::new(Self { names, given: AtomicUsize::new(0), behave: Box::new(behave) })
    }

    fn given(&self) -> usize {
        self.given.load(Ordering::SeqCst)
    }

    fn devices(&self) -> Vec<DeviceInfo> {
        let names = self.names.lock().unwrap().clone();
        names.iter().map(|name| device(name)).collect()
    }
}

impl Executor for Scripted {
    fn offer(&self) -> Offer {
        let devices = self.devices().into_iter().map(|info| OfferedDevice {
            info,
            state: DeviceState::Ready,
            busy: false,
            jobs_done: 0,
            restarts: 0,
            worker_sandbox: None,
            reading: Err("scripted".to_owned()),
        });
        Offer {
            devices: devices.collect(),
            waiting: 0,
            compilers: Vec::new(),
            compile_sandbox: String::new(),
        }
    }

    fn capabilities(&self) -> BoxFuture<'_, ExecutorCapabilities> {
        let devices = self.devices().iter().map(DeviceInfo::offer).collect();
        let capabilities = ExecutorCapabilities { devices, ..ExecutorCapabilities::default() };
        async { capabilities }.boxed()
    }

    fn run<'a>(&'a self, _: WorkOrder, _: &'a dyn Progress) -> ExecutorFuture<'a, JobOutcome> {
        let behaved = (self.behave)(self.given.fetch_add(1, Ordering::SeqCst));
        async move {
            behaved?;
            let text = include_str!("../../../../../openapi/examples/report.json");
            let report: EvaluateResponse = serde_json::from_str(text).unwrap();
            Ok(JobOutcome::Evaluated(Box::new(report)))
        }
        .boxed()
    }

    fn function_places(&self) -> FunctionPlaces {
        unreachable!("no test runs functions")
    }

    fn call_function(&self, _: FunctionCall) -> ExecutorFuture<'_, FunctionOutcome> {
        unreachable!("no test runs functions")
    }

    fn compile(&self, _: CompileRequest, _: Owner) -> ExecutorFuture<'_, CompileResponse> {
        unreachable!("no test compiles")
    }

    fn profile_plan(&self, _: EvaluateRequest) -> ExecutorFuture<'_, ProfilePlan> {
        unreachable!("no test profiles")
    }

    fn image(&self, _: CodeOrder) -> ExecutorFuture<'_, Result<BuiltCode, String>> {
        unreachable!("no test looks at code")
    }

    fn listing(
        &self,
        _: Arc<[u8]>,
        _: ImageFormat,
        _: Owner,
    ) -> ExecutorFuture<'_, Result<Arc<str>, String>> {
        unreachable!("no test looks at code")
    }

    fn cannot_list(&self, _: ImageFormat) -> Option<String> {
        None
    }

    fn tooling(&self, _: bool) -> BoxFuture<'_, Tooling> {
        unreachable!("no test asks for tools")
    }

    fn has_place(&self) -> ExecutorFuture<'_, ()> {
        async { Ok(()) }.boxed()
    }

    fn unready(&self) -> Vec<Unready> {
        Vec::new()
    }

    fn shutdown(&self, _: Duration) -> BoxFuture<'_, ()> {
        async {}.boxed()
    }
}

fn device(name: &str) -> DeviceInfo {
    DeviceInfo {
        ordinal: 0,
        kind: DeviceKind::Cuda,
        name: name.to_owned(),
        uuid: "GPU-0".to_owned(),
        target: Target { compute_capability: (9, 0), driver_version: 13_000, emulated: false },
        multiprocessors: 132,
        memory_bytes: 1 << 30,
        l2_bytes: 1 << 20,
        clock_khz: 1,
        memory_clock_khz: 1,
        memory_bus_bits: 1,
        max_shared_optin_bytes: 1 << 10,
        pci_bus_id: String::new(),
        sm: SmLimits::default(),
        unmonitored: None,
    }
}

/// A machine without processes that hold tensors.
struct NoHolders(TensorRegistry);

fn no_holders(settings: HolderSettings) -> Result<Arc<dyn TensorHolders>, String> {
    Ok(Arc::new(NoHolders(TensorRegistry::new(settings.limits))))
}

fn nothing<'a, T: Send + 'a>(place: TensorLocation) -> HolderFuture<'a, T> {
    let error = HolderError::Start { place, reason: "this is a test".to_owned() };
    async { Err(error) }.boxed()
}

impl TensorHolders for NoHolders {
    fn registry(&self) -> &TensorRegistry {
        &self.0
    }

    fn devices(&self) -> &[u32] {
        &[]
    }

    fn run_dir(&self) -> &Path {
        Path::new("")
    }

    fn emulator(&self) -> Option<&Path> {
        None
    }

    fn create(&self, place: TensorLocation, _: uuid::Uuid, _: u64) -> HolderFuture<'_, u64> {
        nothing(place)
    }

    fn copy<'a>(&'a self, held: &'a HeldTensor, _: uuid::Uuid) -> HolderFuture<'a, ()> {
        nothing(held.tensor.place)
    }

    fn fill<'a>(
        &'a self,
        at: FreedMemory,
        _: &'a Arc<std::fs::File>,
        _: u64,
        _: u64,
    ) -> HolderFuture<'a, ()> {
        nothing(at.place)
    }

    fn read<'a>(&'a self, held: &'a HeldTensor, _: u64) -> HolderFuture<'a, Vec<u8>> {
        nothing(held.tensor.place)
    }

    fn export<'a>(&'a self, held: &'a HeldTensor, _: bool) -> HolderFuture<'a, ExportedTensor> {
        nothing(held.tensor.place)
    }

    fn free(&self, _: Vec<FreedMemory>) -> BoxFuture<'_, ()> {
        async {}.boxed()
    }

    fn free_later(&self, _: Vec<FreedMemory>) {}

    fn end(&self) -> BoxFuture<'_, ()> {
        async {}.boxed()
    }
}

/// Starts a service over an executor. The services of a test share the store in `home`.
async fn service(home: &tempfile::TempDir, executor: Arc<Scripted>) -> LocalService {
    let directory = home.path().display().to_string();
    let env = |name: &str| (name == "WARPGAUGE_DATA_DIR").then(|| directory.clone());
    let config = Config::load(None, &env, &CliOverrides::default()).unwrap();
    let store = Store::open(&store_config(&config)).await.unwrap();
    let run_dir = RunDir::enter(&home.path().join("run")).unwrap();
    let storage = Storage { store, run_dir };
    LocalService::start(&config, ProcessRole::Server, storage, executor, no_holders).await.unwrap()
}

fn request(requires: &str) -> JobRequest {
    let contract = format!(
        r#"{{"kernel": {{"source_code": "x", "kernel_type": "cuda", "io": {{
            "args": [{{"name": "n", "type": "int", "value": 1}}],
            "launch": {{"grid": {{"x": 1}}, "block": {{"x": 1}}}}}}}}, "requires": {requires}}}"#
    );
    JobRequest::Evaluate(Box::new(serde_json::from_str(&contract).unwrap()))
}

async fn submit(service: &LocalService, requires: &str) -> Result<String, ServiceError> {
    let submission = JobSubmission::of(Caller::local());
    service.services.evaluations.submit(request(requires), submission).await.map(|job| job.job_id)
}

/// Waits for the end of a job, and returns its view.
async fn ended(service: &LocalService, id: &str) -> warpgauge_job_views::JobView {
    use futures_util::StreamExt;
    let mut news = service.services.jobs.watch(id, &Caller::local()).await.unwrap();
    while news.next().await.is_some() {}
    service.services.jobs.job(id, &Caller::local()).await.unwrap()
}

const H200: &str = r#"{"gpu_model": "H200"}"#;

fn lies() -> Result<(), ExecError> {
    Err(ExecError::NotOffered("the device is not there after all".to_owned()))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_has_is_refused_with_the_reason() {
    let home = tempfile::tempdir().unwrap();
    let nothing = Scripted::new(&[], |_| Ok(()));
    let service = service(&home, nothing).await;
    let refused = submit(&service, "{}").await.unwrap_err();
    assert!(refused.is_unavailable(), "{refused:?}");
    // The service has a device, but not the required one.
    let home = tempfile::tempdir().unwrap();
    let other = Scripted::new(&["NVIDIA L4"], |_| Ok(()));
    let service = self::service(&home, Arc::clone(&other)).await;
    let refused = submit(&service, H200).await.unwrap_err();
    let ServiceError::Exec(ExecError::Invalid(problems)) = refused else {
        panic!("it is a fault of the request")
    };
    assert_eq!(
        (&*problems[0].path, &problems[0].code),
        ("requires", &FailureCode::UnmetRequirements)
    );
    let message = &problems[0].message;
    assert!(message.contains("`H200`") && message.contains("NVIDIA L4 (sm_90)"), "{message}");
    let id = submit(&service, r#"{"gpu_model": "L4", "architecture": "sm_90"}"#).await.unwrap();
    assert_eq!(ended(&service, &id).await.state, JobState::Completed);
    assert_eq!(other.given(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_goes_to_who_has_what_it_requires() {
    let home = tempfile::tempdir().unwrap();
    let (small, large) =
        (Scripted::new(&["NVIDIA L4"], |_| Ok(())), Scripted::new(&["NVIDIA H200"], |_| Ok(())));
    let _there = service(&home, Arc::clone(&large)).await;
    let here = service(&home, Arc::clone(&small)).await;
    knows_of(&here, 1).await;
    let id = submit(&here, H200).await.unwrap();
    assert_eq!(ended(&here, &id).await.state, JobState::Completed);
    // A waiting caller gets the outcome through the store.
    let JobRequest::Evaluate(waited) = request(H200) else { unreachable!() };
    here.services.evaluations.evaluate(*waited, JobSubmission::of(Caller::local())).await.unwrap();
    assert_eq!((small.given(), large.given()), (0, 2));
}

/// Waits until the service has published its capabilities in the store.
async fn offered(service: &LocalService) {
    while service.store.membership().own_offer().is_none() {
        tokio::task::yield_now().await;
    }
}

/// Waits until the store has the capabilities of this many other services.
async fn knows_of(service: &LocalService, others: usize) {
    while service.store.membership().offers_of_others().await.unwrap().len() < others {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_that_is_not_met_after_all_goes_back_once() {
    let home = tempfile::tempdir().unwrap();
    let liar = Scripted::new(&["NVIDIA H200"], |_| lies());
    let here = service(&home, Arc::clone(&liar)).await;
    offered(&here).await;
    // No other process could take it.
    let id = submit(&here, H200).await.unwrap();
    let view = ended(&here, &id).await;
    assert_eq!((view.state, liar.given()), (JobState::Failed, 1));
    assert!(view.error.unwrap().contains("not there after all"));

    let honest = Scripted::new(&["NVIDIA H200"], |_| Ok(()));
    let home = tempfile::tempdir().unwrap();
    let liar = Scripted::new(&["NVIDIA H200"], |_| lies());
    let here = service(&home, Arc::clone(&liar)).await;
    offered(&here).await;
    let _there = service(&home, Arc::clone(&honest)).await;
    knows_of(&here, 1).await;
    let mut ids = Vec::new();
    for _ in 0..6 {
        ids.push(submit(&here, H200).await.unwrap());
    }
    for id in &ids {
        assert_eq!(ended(&here, id).await.state, JobState::Completed);
    }
    assert_eq!(honest.given(), ids.len(), "each is carried out once");
    // The executor may have received two orders before its first failure.
    assert!(liar.given() <= 2, "{} times", liar.given());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_executor_that_dies_in_the_middle_gives_the_order_back_with_the_reason() {
    let gone = || ExecError::Unavailable("the executor went away".to_owned());
    let home = tempfile::tempdir().unwrap();
    let once =
        Scripted::new(&["NVIDIA H200"], move |nth| if nth == 0 { Err(gone()) } else { Ok(()) });
    let here = service(&home, Arc::clone(&once)).await;
    offered(&here).await;
    let id = submit(&here, H200).await.unwrap();
    assert_eq!(ended(&here, &id).await.state, JobState::Completed);
    assert_eq!(once.given(), 2);

    let home = tempfile::tempdir().unwrap();
    let always = Scripted::new(&["NVIDIA H200"], move |_| Err(gone()));
    let here = service(&home, Arc::clone(&always)).await;
    let id = submit(&here, "{}").await.unwrap();
    let view = ended(&here, &id).await;
    assert_eq!((view.state, always.given()), (JobState::Failed, 3));
    assert!(view.error.unwrap().contains("the executor went away"));
}
