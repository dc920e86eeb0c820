//! The real worker under a tool, on the emulated device: one job, as the tool sees it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use serde_json::{Value, json};
use warpgauge_contract::Role;
use warpgauge_device::{loader, support};
use warpgauge_model::{CacheState, FailureCode, Image, ImageFormat};
use warpgauge_tensor::{Dtype, InitKind, TensorInit};
use warpgauge_worker::protocol::{
    Argument, Blame, BufferContent, BufferSpec, KernelLaunch, KernelProgram, TracePlan, TraceView,
    TracedRun, WorkerJob,
};
use warpgauge_worker::queue::LeaseNeeds;
use warpgauge_worker::{DeviceChoice, Fleet, FleetConfig, OneShot, OneShotEnd};

use crate::server::{self, Server, emulated};

const LIMIT: Duration = Duration::from_secs(60);

/// Elements of each buffer.
const COUNT: u64 = 1000;

/// Compiles for the emulated device.
fn compile(server: &Server, source: &str, name: &str, options: &[&str]) -> Image {
    let metadata = json!({"kernel_name": name, "compiler_options": options});
    let kernel = json!({"kernel_type": "cuda", "source_code": source, "metadata": metadata});
    let answer = server.post_json("/compile", &json!({"kernel": kernel, "return_image": true}));
    let image: &Value = &answer.json["image_b64"];
    let engine = base64::engine::general_purpose::STANDARD;
    let bytes = engine.decode(image.as_str().unwrap_or_else(|| panic!("{}", answer.text)));
    Image { bytes: bytes.unwrap().into(), format: ImageFormat::Ptx }
}

fn buffer(name: &str, role: Role, content: BufferContent) -> BufferSpec {
    let (element, dtype) = (Dtype::Float32, Dtype::Float32);
    BufferSpec { name: name.to_owned(), element, dtype, shape: vec![COUNT], role, content }
}

/// `k(const float* in, float* sum, float* out)` on 4 blocks of 256 threads.
fn job(image: Image, directory: &Path, view: TraceView) -> WorkerJob<TracePlan> {
    let random = BufferContent::Init(Box::new(TensorInit::of_kind(InitKind::Randn)));
    let launch = KernelLaunch {
        image,
        symbol: "k".to_owned(),
        arguments: (0..3).map(Argument::Buffer).collect(),
        grid: [4, 1, 1],
        block: [256, 1, 1],
        shared_bytes: 0,
        cluster: None,
        cooperative: false,
    };
    let buffers = vec![
        buffer("in", Role::Input, random.clone()),
        buffer("sum", Role::Inout, random),
        buffer("out", Role::Output, BufferContent::Undefined),
    ];
    WorkerJob {
        id: "traced".to_owned(),
        directory: directory.to_owned(),
        program: KernelProgram { buffers, launches: launch.into() },
        task: TracePlan { view, cache: CacheState::Cold },
    }
}

async fn run(
    fleet: &Arc<Fleet>,
    image: &Image,
    view: TraceView,
    script: &str,
) -> OneShotEnd<TracedRun> {
    let directory = tempfile::tempdir().unwrap();
    let shot = OneShot {
        wrapper: ["/bin/sh", "-c", script, "sh"].map(OsString::from).into(),
        variables: Vec::new(),
        directory: directory.path().to_owned(),
        time_limit: LIMIT,
    };
    let mut lease = fleet.lease(&LeaseNeeds::default()).await.unwrap();
    lease.run_under(&shot, job(image.clone(), directory.path(), view)).await
}

async fn start_fleet(own: Image, run_dir: &Path) -> Arc<Fleet> {
    let config = FleetConfig {
        program: server::program_path(),
        devices: DeviceChoice::Emulator,
        emulator: emulator(),
        run_dir: run_dir.to_owned(),
        hot_spare: false,
        queue_capacity: 4,
        start_timeout: LIMIT,
        cupti: Vec::new(),
        libraries: Vec::new(),
    };
    let support = Arc::new(move |_| {
        let image = own.clone();
        Box::pin(async move { Ok(image) }) as std::pin::Pin<Box<_>>
    });
    Fleet::start(config, support).await.unwrap()
}

/// The emulator as the program under test finds it: named, or beside it.
fn emulator() -> Option<PathBuf> {
    if std::env::var_os(loader::EMULATOR_VARIABLE).is_some() {
        return None;
    }
    Some(server::program_path().with_file_name(loader::EMULATOR_FILE))
}

#[test]
fn a_tool_sees_one_job_and_nothing_that_the_kernel_prints() {
    needs!("the emulated device", emulated());
    let server = Server::start();
    let own = compile(&server, support::SOURCE, "wg_write", support::OPTIONS);
    let kernel = |body: &str| {
        let head = "extern \"C\" __global__ void k(const float* in, float* sum, float* out)";
        let index = "int t = blockIdx.x * blockDim.x + threadIdx.x; if (t >= 1000) return;";
        compile(&server, &format!("{head} {{ {index} {body} }}"), "k", &["-lineinfo"])
    };
    let good = kernel(
        "if (t == 0) printf(\"==ERROR== ERR_NVGPUCTRPERM\\n\"); sum[t] += in[t]; out[t] = sum[t];",
    );
    let stray = kernel("out[t + (1 << 28)] = in[t];");
    let missing = kernel("__trap();");
    let run_dir = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let fleet = start_fleet(own, run_dir.path()).await;
        let views = [
            (TraceView::Counters, 2),
            (TraceView::Timeline { launches: 3 }, 4),
            (TraceView::Checks, 1),
        ];
        for (view, launches) in views {
            // Standard input closed, and what the worker writes to its own streams kept.
            let end = run(&fleet, &good, view, "exec 0<&-; \"$@\"; echo ended $?").await;
            let outcome = &end.outcome;
            assert!(outcome.failure.is_none(), "{view:?}: {:?}", outcome.failure);
            assert_eq!(end.tool.stdout.text, "ended 0\n", "{view:?}");
            assert_eq!(outcome.printed.matches("==ERROR==").count(), launches, "{view:?}");
            assert!(outcome.function.is_some(), "{view:?}");
        }
        for (image, view) in [(&stray, TraceView::Checks), (&missing, TraceView::Counters)] {
            let end = run(&fleet, image, view, "exec \"$@\"").await;
            let failure = end.outcome.failure.expect("the kernel faults");
            assert_eq!(failure.blame, Blame::Candidate, "{failure:?}");
            assert_ne!(failure.code, FailureCode::WorkerDied, "{failure:?}");
        }
        fleet.shutdown(Duration::ZERO).await;
    });
}
