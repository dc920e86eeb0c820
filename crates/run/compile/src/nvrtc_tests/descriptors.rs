//! Tests of tensor descriptors that host code would make: for the copy engine of compute capability 9.0,
//! and in parts for older devices.

use serde_json::{Value, json};

use super::triton::{installed, other};
use super::*;
use crate::artifact::{Constant, PassedValue};
use crate::ctype::CType;
use crate::toolchain::TritonInstall;
use warpgauge_model::{FailureCode, MapElement, MapSwizzle, TensorMap};

const COPY: &str = "
import triton
import triton.language as tl

@triton.jit
def copy(x, y, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    at = [tl.program_id(0) * ROWS, tl.program_id(1) * COLUMNS]
    y.store(at, x.load(at))
";

/// A hook provides the block shapes; the contract's differ.
const TUNED: &str = "
def blocks(given):
    for name in ('x', 'y'):
        given[name].block_shape = [given['ROWS'], given['COLUMNS']]

@triton.autotune([triton.Config({'ROWS': 16, 'COLUMNS': 128}, pre_hook=blocks)], key=[])
@triton.jit
";

fn request(source: &str, dtype: &str, descriptor: &Value, more: &Value) -> KernelCode {
    let tensor = |name: &str, role: &str| {
        json!({"name": name, "type": "tensor", "role": role, "descriptor": descriptor,
            "tensor_spec": {"shape": [100, 208], "dtype": dtype}})
    };
    let constant = |name: &str, value: u32| json!({"name": name, "type": "int", "value": value, "is_meta": true});
    let mut args = vec![tensor("x", "input"), tensor("y", "output")];
    if !source.contains("autotune") {
        args.extend([constant("ROWS", 32), constant("COLUMNS", 64)]);
    }
    serde_json::from_value(json!({
        "kernel_type": "triton", "source_code": source, "metadata": more,
        "io": {"args": args, "launch": {"grid": {"x": 4, "y": 4}}},
    }))
    .unwrap()
}

fn bench_of(triton: TritonInstall) -> Bench {
    let toolchain = Toolchain { triton: Some(triton), ..Toolchain::default() };
    Bench::with(toolchain, Duration::from_secs(120))
}

fn maps(built: &CompiledModule) -> Vec<(usize, TensorMap)> {
    let passed = built.launch.as_ref().unwrap().parameters.iter();
    let map = |one: &PassedValue| match one {
        PassedValue::Map { argument, map } => Some((*argument, map.clone())),
        _ => None,
    };
    passed.filter_map(map).collect()
}

async fn descriptors_of(triton: TritonInstall) {
    let bench = bench_of(triton);
    let block = json!({"block_shape": [32, 64]});
    let built = bench.compile(&request(COPY, "float32", &block, &json!({}))).await.unwrap();
    assert_eq!(built.format, ImageFormat::Cubin);
    let expected = TensorMap {
        element: MapElement::F32,
        shape: vec![100, 208],
        strides: vec![208, 1],
        // A row of a block is no longer than the pattern in shared memory, so each map needs two copies.
        block: vec![32, 32],
        swizzle: MapSwizzle::Bytes128,
        nan: false,
    };
    assert_eq!(maps(&built), [(0, expected.clone()), (1, expected.clone())]);
    let params = built.entry_kernel().params.as_ref().unwrap();
    assert_eq!((params[0].bytes, params[0].offset % 64), (128, 0));
    assert!(matches!(&params[5].ctype, CType::Aggregate(_)), "{params:?}");
    let passed = &built.launch.as_ref().unwrap().parameters;
    let whole = |value| PassedValue::Value(Constant::Int(value));
    assert_eq!(passed[1..5], [whole(100), whole(208), whole(208), whole(1)]);

    let nan = json!({"block_shape": [32, 64], "padding": "nan"});
    let half = bench.compile(&request(COPY, "bfloat16", &nan, &json!({}))).await.unwrap();
    let map = &maps(&half)[1].1;
    assert!(map.nan && map.element == MapElement::Bf16 && map.block == [32, 64], "{map:?}");

    let tuned = COPY.replace("@triton.jit\n", TUNED);
    let tuned = bench.compile(&request(&tuned, "float32", &block, &json!({}))).await.unwrap();
    assert_eq!(maps(&tuned)[0].1.block, [16, 32], "blocks are what the hook says");

    let older = json!({"compiler_options": ["arch=sm_89"]});
    let built = bench.compile(&request(COPY, "float32", &nan, &older)).await.unwrap();
    assert_eq!(maps(&built), []);
    let launch = built.launch.as_ref().unwrap();
    assert_eq!(launch.parameters[0], PassedValue::Argument(0));
    let params = built.entry_kernel().params.as_ref().unwrap();
    let padding = params.iter().position(|p| p.name.as_deref() == Some("x.padding[0]"));
    assert_eq!(launch.parameters[padding.unwrap()], whole(1));
}

#[tokio::test]
async fn descriptors_are_for_the_copy_engine_or_in_parts() {
    let installed = installed();
    needs!("Triton", installed.is_some());
    descriptors_of(installed.unwrap()).await;
}

#[tokio::test]
async fn another_version_makes_the_same_descriptors() {
    let installed = installed();
    needs!("Triton", installed.is_some());
    let other = other(&installed.unwrap());
    needs!("another version of Triton", other.is_some());
    descriptors_of(other.unwrap()).await;
}

/// The source runs in the interpreter that answers, and can write anything to it.
#[tokio::test]
async fn a_made_up_description_is_refused() {
    let installed = installed();
    needs!("Triton", installed.is_some());
    let bench = bench_of(installed.unwrap());
    let block = json!({"block_shape": [32, 64]});
    for (lie, says) in [
        ("meta.append(meta[0])", "descriptors are described"),
        ("meta[1] = None", "the code has 12 parameters"),
        ("meta[0]['block_size'] = [1 << 20, 32]", "its block"),
        ("meta[0]['block_size'] = [1] * 100000", "dimensions"),
        ("meta[0]['swizzle'] = 7", "number 7"),
        ("meta[0]['elem_type'] = 13", "type number 13"),
        ("meta[0]['elem_size'] = -1", "cannot be read"),
        ("meta[0] = 'all of it'", "cannot be read"),
        ("meta[0]['is_im2col'] = True", "im2col"),
        ("meta[0]['fp4_padded'] = True", "four bits"),
    ] {
        let source = format!(
            "import __main__ as main\nhonest = main.built\ndef built(*args):\n    \
             told = honest(*args)\n    meta = told['built']['metadata']['tensordesc_meta']\n    \
             {lie}\n    return told\nmain.built = built\n{COPY}"
        );
        let result = bench.compile(&request(&source, "float32", &block, &json!({}))).await;
        let Err(CompileError::Rejected(failure)) = result else { panic!("{lie}: {result:?}") };
        let told = format!("{} {}", failure.message, failure.log);
        assert!(told.contains(says), "{lie}: {told}");
        let known = [FailureCode::CompilerFailed, FailureCode::UnsupportedDecorator];
        assert!(known.contains(&failure.code), "{lie}: {:?}", failure.code);
    }
}
