//! Tests of guessed contracts of Triton kernels.

use serde_json::{Value, json};

use super::contract;
use crate::infer::Wishes;

fn args(source: &str, wanted: Option<&str>) -> (Vec<Value>, Value) {
    let wishes = Wishes { kernel: wanted.map(str::to_owned), ..Wishes::default() };
    let guessed = contract(source, &wishes).unwrap();
    assert_eq!(guessed.guess.reasons.len(), guessed.guess.io["args"].as_array().unwrap().len());
    let args = guessed.guess.io["args"].as_array().unwrap().clone();
    (args, guessed.guess.io["launch"].clone())
}

fn outcome(source: &str) -> (Vec<Value>, Value) {
    args(source, None)
}

fn named<'a>(args: &'a [Value], name: &str) -> &'a Value {
    args.iter().find(|arg| arg["name"] == name).unwrap_or_else(|| panic!("no {name}: {args:?}"))
}

const ADD: &str = "
import torch, triton
import triton.language as tl

@triton.jit
def add_kernel(x_ptr, y_ptr, output_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(axis=0)
    offsets = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(output_ptr + offsets, x + y, mask=mask)

def add(x, y):
    output = torch.empty_like(x)
    n_elements = output.numel()
    grid = lambda meta: (triton.cdiv(n_elements, meta['BLOCK_SIZE']), )
    add_kernel[grid](x, y, output, n_elements, BLOCK_SIZE=1024, num_warps=8)
    return output
";

#[test]
fn host_code_names_sizes_constants_and_the_grid() {
    let (args, launch) = args(ADD, None);
    assert_eq!(args.len(), 5, "{args:?}");
    assert_eq!(named(&args, "x_ptr")["tensor_spec"]["shape"], json!([65536]));
    assert_eq!(named(&args, "output_ptr")["role"], "output");
    assert_eq!(named(&args, "n_elements")["value"], 65536);
    let block = named(&args, "BLOCK_SIZE");
    assert_eq!((&block["value"], &block["is_meta"]), (&json!(1024), &json!(true)));
    let grid = json!({"grid": {"x": "cdiv(n_elements,BLOCK_SIZE)"}, "num_warps": 8});
    assert_eq!(launch, grid);
    let other = Wishes { kernel: Some("other".to_owned()), ..Wishes::default() };
    assert!(contract(ADD, &other).unwrap_err().contains("it has: add_kernel"));
}

#[test]
fn without_host_code_names_and_uses_decide() {
    let source = "
@triton.autotune(configs=[triton.Config({'BLOCK_M': 32, 'BLOCK_N': 32}, num_warps=4)], key=['M'])
@triton.heuristics({'EVEN': lambda args: args['M'] % 32 == 0, 'FLAG': lambda args: not args['FLAG']})
@triton.jit
def k(a_ptr, index_ptr, c_ptr, M, N, stride_am, stride_an, scale, BLOCK_M: tl.constexpr,
      BLOCK_N: tl.constexpr, EVEN: tl.constexpr, FLAG: tl.constexpr, k_stages: tl.constexpr,
      HAS_BIAS: tl.constexpr = False):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    a_ptrs = a_ptr + rows[:, None] * stride_am + columns[None, :] * stride_an
    a = tl.load(a_ptrs, mask=(rows[:, None] < M) & (columns[None, :] < N))
    at = tl.load(index_ptr + columns, mask=columns < N)
    if FLAG:
        a = a * scale
    tl.atomic_add(c_ptr + at, tl.sum(a, axis=0), mask=columns < N)
";
    let (args, launch) = args(source, None);
    assert_eq!(named(&args, "a_ptr")["tensor_spec"]["shape"], json!([256, 256]));
    assert_eq!(named(&args, "stride_am")["value"], 256);
    assert_eq!(named(&args, "stride_an")["value"], 1);
    let index = &named(&args, "index_ptr")["tensor_spec"];
    assert_eq!((&index["dtype"], &index["init"]["kind"]), (&json!("int64"), &json!("randint")));
    let sum = named(&args, "c_ptr");
    assert_eq!(
        (&sum["role"], &sum["tensor_spec"]["init"]["kind"]),
        (&json!("inout"), &json!("zeros"))
    );
    assert_eq!(named(&args, "scale")["type"], "float");
    // A heuristic that reads what it decides needs a value; what is tuned, decided or has a default needs none.
    assert_eq!(named(&args, "FLAG")["value"], false);
    assert_eq!(named(&args, "k_stages")["value"], 2);
    for chosen in ["BLOCK_M", "BLOCK_N", "EVEN", "HAS_BIAS"] {
        assert!(args.iter().all(|arg| arg["name"] != chosen), "{chosen}: {args:?}");
    }
    assert_eq!(launch, json!({"grid": {"x": "cdiv(M, BLOCK_M)", "y": "cdiv(N, BLOCK_N)"}}));
}

#[test]
fn sizes_that_nothing_names_are_what_the_programs_reach() {
    let source = "
@triton.jit
def k(x_ptr, scale_ptr, y_ptr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at) * tl.load(scale_ptr + tl.arange(0, BLOCK)))
";
    let guessed = contract(source, &Wishes::default()).unwrap().guess;
    let (args, launch) = args(source, None);
    let (block, programs) = (&named(&args, "BLOCK")["value"], &launch["grid"]["x"]);
    let all = block.as_u64().unwrap() * programs.as_u64().unwrap();
    for name in ["x_ptr", "y_ptr"] {
        assert_eq!(named(&args, name)["tensor_spec"]["shape"], json!([all]), "{args:?}");
    }
    assert_eq!(named(&args, "scale_ptr")["tensor_spec"]["shape"], json!([block]));
    assert!(
        guessed.reasons[0].contains("guessed from 128 programs of BLOCK"),
        "{:?}",
        guessed.reasons
    );
    // Host code may give the grid and the block and no size.
    let host = "
def run(x, s, y):
    k[(12,)](x, s, y, BLOCK=256)
";
    let (args, launch) = outcome(&format!("{source}{host}"));
    assert_eq!(launch["grid"]["x"], 12);
    assert_eq!(named(&args, "x_ptr")["tensor_spec"]["shape"], json!([12 * 256]));
    // Blocks of several dimensions leave fewer programs.
    let square = source.replace("def k(", "def k(BLOCK_M: tl.constexpr, ").replace(
        "at = tl.program_id(0)",
        "row = tl.program_id(1) * BLOCK_M\n    at = row + tl.program_id(0)",
    );
    let (args, launch) = outcome(&square);
    let all = named(&args, "x_ptr")["tensor_spec"]["shape"][0].as_u64().unwrap();
    let programs = ["x", "y"].map(|axis| launch["grid"][axis].as_u64().unwrap());
    assert_eq!(all, programs[0] * programs[1] * 32 * 32);
    assert!(all <= 1 << 20, "{all}");
}

#[test]
fn the_function_around_a_kernel_gets_constants() {
    let source = "
def make(HEAD, dtype, eps=1e-6, *more, **options):
    @triton.jit
    def k(x_ptr, n_elements, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(x_ptr + at, at, mask=at < n_elements)
    return k

@triton.jit
def other(x_ptr, n_elements, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), n_elements)
";
    let (args, _) = args(source, Some("k"));
    assert_eq!(named(&args, "HEAD")["is_meta"], true);
    assert_eq!(named(&args, "dtype")["value"], "tl.float32");
    assert_eq!(args.len(), 5, "{args:?}");
    let (args, _) = self::args(source, Some("other"));
    assert_eq!(args.len(), 3, "{args:?}");
}

#[test]
fn helpers_are_followed_and_are_no_kernels() {
    let source = "
def _norm(x_ptr, out_ptr, row_stride, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    read(x_ptr + row * row_stride, out_ptr + row * row_stride, n_cols, BLOCK)
_norm = triton.jit(_norm)

@triton.jit
def read(x, out, n_cols, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n_cols), mask=at < n_cols)

def run(x):
    shape = x.shape
    x = x.view(-1, shape[-1])
    rows, n_cols = x.shape
    y = torch.empty((rows, n_cols), device=x.device)
    _norm[(rows,)](x, y, x.stride(0), n_cols, 1e-6, BLOCK=triton.next_power_of_2(n_cols))
";
    let guessed = contract(source, &Wishes::default()).unwrap();
    assert_eq!(guessed.entries, ["_norm"]);
    let (args, launch) = args(source, None);
    assert_eq!(named(&args, "out_ptr")["role"], "output");
    let shape = named(&args, "x_ptr")["tensor_spec"]["shape"].clone();
    assert_eq!(named(&args, "out_ptr")["tensor_spec"]["shape"], shape);
    assert_eq!(named(&args, "row_stride")["value"], shape[1]);
    assert_eq!(named(&args, "eps")["value"], 1e-6);
    assert_eq!(named(&args, "BLOCK")["value"], shape[1]);
    assert_eq!(launch["grid"]["x"], shape[0]);
}

/// Kernels of which each calls the next as `calls` says.
fn chain(calls: impl Fn(u32) -> String) -> String {
    let kernel = |own: u32| format!("@triton.jit\ndef k{own}(x):\n    {}pass\n", calls(own + 1));
    (0..100).map(kernel).collect()
}

/// Host code whose grid would be written out with 100⁹ names.
fn expansions() -> String {
    let sum = |own: u32| format!("    v{own} = {}1\n", format!("v{} + ", own + 1).repeat(100));
    "def run(a):\n".to_owned() + &(0..12).rev().map(sum).collect::<String>()
}

#[test]
fn hostile_modules_take_no_time() {
    let began = std::time::Instant::now();
    let many = |part: &str| part.repeat(20_000);
    let kernel = "@triton.jit\ndef k(x, n):\n    ";
    let circle = "def run(a):\n    b = torch.empty((a.shape[0], a.shape[0], a.shape[0]))\n    \
                  a = torch.empty((b.shape[0], b.shape[1], b.shape[2]))\n    k[(a.shape[0],)](a, b.shape[0])\n";
    for source in [
        kernel.to_owned() + &many("x = x + n; "),
        kernel.to_owned() + &many("y = x + y\n    ") + "tl.store(y, tl.load(y))",
        kernel.to_owned() + &many("tl.load(tl.load(") + "x",
        format!("{kernel}tl.store(x, n)\n{circle}"),
        many("@triton.jit\ndef k(x):\n    k(x)\n"),
        many("@triton.jit\n"),
        chain(|next| format!("k{next}(x)\n    ").repeat(50)),
        (0..400)
            .map(|depth| format!("{0}@triton.jit\n{0}def k{depth}(x):\n", " ".repeat(depth)))
            .collect(),
        format!("{kernel}tl.store(x, n)\n{}    k[(v0,)](a, 1)\n", expansions()),
        many("(["),
        "@triton.jit\ndef k".to_owned(),
        "@triton.jit\ndef k(*, x=, /, **y): tl.store(".to_owned(),
        "k = jit(k\n@jit\ndef k(a:tl.constexpr=(1\n k[".to_owned(),
    ] {
        let _ = contract(&source, &Wishes::default());
    }
    assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
}
