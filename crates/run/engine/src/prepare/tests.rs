use super::*;
use warpgauge_compile::{CType, CompileTimings, KernelInfo, Param};
use warpgauge_model::ImageFormat;

/// A kernel that adds one to each of four elements.
const CONTRACT: &str = r#"{
    "kernel": {
        "source_code": "extern \"C\" __global__ void next(float* x) { x[threadIdx.x] += 1; }",
        "kernel_type": "cuda",
        "io": {
            "args": [{"name": "x", "type": "tensor", "role": "inout", "tensor_spec": {
                "shape": [4], "dtype": "float32",
                "data": {"data_b64": "AAAAAAAAgD8AAABAAABAQA==", "dtype": "float32", "shape": [4]}
            }}],
            "launch": {"grid": {"x": 1, "y": 1, "z": 1}, "block": {"x": 4, "y": 1, "z": 1}}
        }
    },
    "expected": {"x": {"data": {
        "data_b64": "AACAPwAAAEAAAEBAAACAQA==", "dtype": "float32", "shape": [4]
    }}}
}"#;

fn compiled() -> Compiled {
    let pointee = Some(Box::new(CType::F32));
    let param = Param {
        name: Some("x".to_owned()),
        ctype: CType::Pointer { pointee, is_const: false },
        bytes: 8,
        offset: 0,
        layout: None,
    };
    let kernel = KernelInfo {
        symbol: "next".to_owned(),
        name: "next".to_owned(),
        params: Some(vec![param]),
        resources: None,
    };
    let candidate = CompiledModule {
        variables: Vec::new(),
        image: Vec::new().into(),
        format: ImageFormat::Ptx,
        kernels: vec![kernel],
        entry: 0,
        compiler: String::new(),
        options: Vec::new(),
        log: String::new(),
        diagnostics: Vec::new(),
        key: String::new(),
        cache_hit: false,
        timings: CompileTimings::default(),
        launch: None,
        stages: Vec::new(),
    };
    Compiled { candidate, references: Vec::new() }
}

fn content(values: [f32; 4]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

#[test]
fn a_jobs_files_are_there_for_as_long_as_what_was_prepared() {
    let request: EvaluateRequest = serde_json::from_str(CONTRACT).unwrap();
    let layout = Layout {
        job_id: "job".to_owned(),
        directory: tempfile::tempdir().unwrap(),
        limits: ContractLimits::default(),
        trials: None,
        room: RoomShare::default(),
        computed: super::ComputedOutputs::default(),
    };
    let prepared = lay_out(&request, compiled(), layout).unwrap();
    // Another run may use a copy of the job, which names files but does not own them.
    let job = prepared.job.clone();
    let BufferContent::File(input) = &job.program.buffers[0].content else {
        panic!("data is kept in a file")
    };
    let (_, expected) = &job.task.checks.files[0];
    assert_eq!(std::fs::read(input).unwrap(), content([0.0, 1.0, 2.0, 3.0]));
    assert_eq!(std::fs::read(expected).unwrap(), content([1.0, 2.0, 3.0, 4.0]));
    assert!(job.directory.is_dir());
    drop(prepared);
    assert!(!job.directory.exists(), "what was prepared takes its files with it");
}
