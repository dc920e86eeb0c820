//! Quantised tensors and their scales: generated inputs in each layout, and outputs that are compared with their scales.

use serde_json::{Value, json};

use crate::contracts::from_base64;
use crate::server::Server;

const DECODING: &str = r#"
static __device__ float number(unsigned char byte, int bits, int digits, int bias) {
    int sign = byte >> (bits - 1) & 1, rest = byte & ((1 << (bits - 1)) - 1);
    int e = rest >> digits, m = rest & ((1 << digits) - 1);
    float value = e == 0 ? ldexpf(m, 1 - bias - digits) : ldexpf(m + (1 << digits), e - bias - digits);
    return sign ? -value : value;
}
static __device__ int half_of(unsigned char byte, int i) { return i % 2 ? byte >> 4 : byte & 15; }
"#;

/// A format of quantised values: 128 rows of 128 numbers.
struct Format {
    dtype: &'static str,
    scales: (&'static str, Value),
    /// What `init` of the scales says beside their kind.
    more: Value,
    /// The value of number `i` of `q`.
    value: &'static str,
    /// C type of an element of `s`, and its value.
    scale: [&'static str; 2],
    /// The index of the scale in row `r` and column `c`, and a wrong one.
    at: [&'static str; 2],
}

const F4: &str = "number(half_of(q[i / 2], i), 4, 1, 1)";
const E8M0: [&str; 2] = ["unsigned char", "ldexpf(1, s[at] - 127)"];
const FLOAT: [&str; 2] = ["float", "s[at]"];

fn formats() -> [Format; 6] {
    let format =
        |dtype, scales, more, value, scale, at| Format { dtype, scales, more, value, scale, at };
    [
        format(
            "float4_e2m1fn_x2",
            ("float8_e8m0fnu", json!([128, 4])),
            json!({}),
            F4,
            E8M0,
            ["i / 32", "0"],
        ),
        format(
            "float4_e2m1fn_x2",
            ("float8_e4m3", json!([128, 8])),
            json!({"layout": "tiles_128x4"}),
            F4,
            ["unsigned char", "number(s[at], 8, 3, 7)"],
            ["c / 64 * 512 + r % 32 * 16 + r / 32 * 4 + c / 16 % 4", "i / 16"],
        ),
        format(
            "int4x2",
            ("float16", json!([4, 128])),
            json!({"block": [32, 1]}),
            "(half_of(q[i / 2], i) ^ 8) - 8",
            ["__half", "__half2float(s[at])"],
            ["r / 32 * 128 + c", "r / 32 * 128"],
        ),
        format("int8", ("float32", json!([1])), json!({}), "(signed char)q[i]", FLOAT, ["0", "0"]),
        format(
            "float8_e4m3",
            ("float32", json!([2, 3])),
            json!({"block": [64, 50]}),
            "number(q[i], 8, 3, 7)",
            FLOAT,
            ["r / 64 * 3 + c / 50", "c / 64 * 3 + r / 50"],
        ),
        format(
            "float8_e5m2",
            ("bfloat16", json!([4, 128])),
            json!({"layout": "transposed"}),
            "number(q[i], 8, 2, 15)",
            ["__nv_bfloat16", "__bfloat162float(s[at])"],
            ["c / 32 * 128 + r", "r / 32 * 128 + c"],
        ),
    ]
}

/// A contract whose kernel multiplies numbers with their scales, whose index is `at`.
fn dequantising(format: &Format, at: &str) -> Value {
    let kernel = |at: &str| {
        let source = format!(
            "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n{DECODING}\nextern \"C\" __global__ void k(const unsigned char* \
             q, const {}* s, float* y) {{\n    const int i = blockIdx.x * blockDim.x + threadIdx.x, r = i / 128, c = i % \
             128, at = {at};\n    y[i] = ({}) * {};\n}}",
            format.scale[0], format.value, format.scale[1],
        );
        json!({"kernel_type": "cuda", "source_code": source})
    };
    let bytes = if format.dtype.ends_with("x2") { 64 } else { 128 };
    let mut scales = json!({"kind": "scales", "of": "q", "seed": 2});
    scales.as_object_mut().unwrap().extend(format.more.as_object().unwrap().clone());
    let tensor = |name: &str, role: &str, spec: Value| json!({"name": name, "type": "tensor", "role": role, "tensor_spec": spec});
    let mut candidate = kernel(at);
    candidate["io"] = json!({
        "args": [
            tensor("q", "input", json!({"shape": [128, bytes], "dtype": format.dtype,
                "init": {"kind": "quantized", "of": "s", "std": 0.75, "seed": 2}})),
            tensor("s", "input", json!({"dtype": format.scales.0, "shape": format.scales.1, "init": scales})),
            tensor("y", "output", json!({"shape": [128, 128]})),
        ],
        "launch": {"grid": {"x": 128}, "block": {"x": 128}},
    });
    json!({
        "kernel": candidate, "num_trials": 3, "return_outputs": "all",
        "expected": {"y": {"kernel": kernel(format.at[0])}},
    })
}

#[test]
fn quantised_inputs_come_with_their_scales_in_each_layout() {
    let server = Server::start();
    for format in formats() {
        let name = format!("{} with {} {}", format.dtype, format.scales.0, format.scales.1);
        let report = server.evaluate(&dequantising(&format, format.at[0]));
        assert_eq!(report["verdict"], "correct", "{name}: {report:#}");
        assert_eq!(report["measurement"]["inputs"], "fresh", "{name}: {report:#}");
        // Numbers times their scales are normal ones, with the deviation that the contract gives.
        let bytes = from_base64(report["outputs"]["y"]["data_b64"].as_str().unwrap());
        let y = bytes.chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap()));
        let square = y.map(|y| f64::from(y).powi(2)).sum::<f64>() / (128.0 * 128.0);
        assert!((0.65..0.8).contains(&square.sqrt()), "{name}: {square}");
        if format.at[0] != format.at[1] {
            let report = server.evaluate(&dequantising(&format, format.at[1]));
            assert_eq!(report["verdict"], "wrong", "{name}: {report:#}");
        }
    }
}

#[test]
fn scales_that_do_not_fit_their_values_are_refused_at_their_path() {
    let server = Server::start();
    let [mx, tiles, ..] = formats();
    let of = "args[0].tensor_spec.init.of";
    let with = |format: &Format, name: usize, pointer: &str, value: Value| {
        let mut contract = dequantising(format, format.at[0]);
        let spec = contract.pointer_mut(&format!("/kernel/io/args/{name}/tensor_spec")).unwrap();
        *spec.pointer_mut(pointer).unwrap() = value;
        contract
    };
    for (contract, path, words) in [
        (with(&mx, 1, "/shape", json!([128, 3])), of, "do not fit"),
        (with(&mx, 1, "/init/of", json!("y")), of, "name each other"),
        (with(&mx, 0, "/dtype", json!("uint16")), "args[0].tensor_spec.init.kind", "not uint16"),
        (with(&mx, 1, "/init", json!({"kind": "randn"})), of, "kind: scales"),
        (
            with(&mx, 1, "/init", json!({"kind": "randn", "block": [1, 32]})),
            "args[1].tensor_spec.init.block",
            "`scales`",
        ),
        (with(&tiles, 1, "/shape", json!([64, 8])), of, "1024 scales"),
        (with(&tiles, 0, "/init/std", json!(0.01)), "args[0].tensor_spec.init.std", "`global`"),
    ] {
        let answer = server.post_json("/evaluate", &contract);
        let found = answer.text.contains(path) && answer.text.contains(words);
        assert!(answer.status == 400 && found, "{path} {words}: {}", answer.text);
    }
}

/// Dequantises 64 rows of 64 numbers of two tensors, which share their scales, zero points or global scale.
const SHARING: &str = r#"
#include <cuda_fp16.h>
DECODING
extern "C" __global__ void k(const unsigned char* q, const unsigned char* p, const SCALE* s, const unsigned char* z,
                             const float* g, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, at = i / 16;
    y[i] = VALUE(q) + 2 * VALUE(p);
}"#;

/// A contract with zero points (`uint4x2`) or with a global scale (`float4_e2m1fn_x2`), whose kernel has `value`.
fn sharing(dtype: &str, value: &str) -> Value {
    let has_zeros = dtype == "uint4x2";
    let (scale, scales) =
        if has_zeros { ("__half", "float16") } else { ("unsigned char", "float8_e4m3") };
    let kernel = |value: &str| {
        let source =
            SHARING.replace("DECODING", &format!("{DECODING}\n#define VALUE(q) ({value})"));
        json!({"kernel_type": "cuda", "source_code": source.replace("SCALE", scale)})
    };
    let right = if has_zeros {
        "(half_of(q[i / 2], i) - half_of(z[at / 2], at)) * __half2float(s[at])"
    } else {
        "number(half_of(q[i / 2], i), 4, 1, 1) * number(s[at], 8, 3, 7) * g[0]"
    };
    let input = |name: &str, shape: Value, dtype: &str, init: Value| json!({"name": name, "type": "tensor", "tensor_spec": {"shape": shape, "dtype": dtype, "init": init}});
    let values = || match has_zeros {
        true => json!({"kind": "quantized", "of": "s", "zeros": "z", "std": 0.02}),
        false => json!({"kind": "quantized", "of": "s", "global": "g", "std": 0.02}),
    };
    let z = if has_zeros {
        json!({"kind": "zero_points", "of": "q"})
    } else {
        json!({"kind": "randint"})
    };
    let g = if has_zeros {
        json!({"kind": "ones"})
    } else {
        json!({"kind": "global_scale", "of": "p"})
    };
    let mut candidate = kernel(if value.is_empty() { right } else { value });
    candidate["io"] = json!({
        "args": [
            input("q", json!([64, 32]), dtype, values()),
            input("p", json!([64, 32]), dtype, values()),
            input("s", json!([64, 4]), scales, json!({"kind": "scales", "of": "q"})),
            input("z", json!([64, 2]), "uint4x2", z),
            input("g", json!([1]), "float32", g),
            {"name": "y", "type": "tensor", "role": "output", "tensor_spec": {"shape": [64, 64]}},
        ],
        "launch": {"grid": {"x": 64}, "block": {"x": 64}},
    });
    json!({
        "kernel": candidate, "num_trials": 3, "return_outputs": "all",
        "expected": {"y": {"kernel": kernel(right)}},
    })
}

#[test]
fn zero_points_global_scales_and_shared_scales_are_generated() {
    let server = Server::start();
    for (dtype, wrong) in [
        ("uint4x2", "(half_of(q[i / 2], i) - 8) * __half2float(s[at])"),
        ("float4_e2m1fn_x2", "number(half_of(q[i / 2], i), 4, 1, 1) * number(s[at], 8, 3, 7)"),
    ] {
        let report = server.evaluate(&sharing(dtype, ""));
        assert_eq!(report["verdict"], "correct", "{dtype}: {report:#}");
        let bytes = from_base64(report["outputs"]["y"]["data_b64"].as_str().unwrap());
        let y = bytes.chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap()));
        let square = y.map(|y| f64::from(y).powi(2)).sum::<f64>() / (64.0 * 64.0);
        // Of x + 2 * y for independent numbers with a deviation of 0.02.
        assert!((0.038..0.05).contains(&square.sqrt()), "{dtype}: {}", square.sqrt());
        let report = server.evaluate(&sharing(dtype, wrong));
        assert_eq!(report["verdict"], "wrong", "{dtype}: {report:#}");
        let mut unlike = sharing(dtype, "");
        unlike["kernel"]["io"]["args"][1]["tensor_spec"]["init"]["std"] = json!(0.03);
        let answer = server.post_json("/evaluate", &unlike);
        let says = answer.text.contains("share `s` and differ");
        assert!(answer.status == 400 && says, "{dtype}: {}", answer.text);
    }
}

const QUANTISING: &str = r#"
static __device__ int code(float x) {
    const float of[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    int best = 0;
    for (int k = 1; k < 8; ++k) if (fabsf(of[k] - fabsf(x)) < fabsf(of[best] - fabsf(x))) best = k;
    return best | (x < 0 ? 8 : 0);
}
extern "C" __global__ void k(const float* x, signed char* q, SCALE* s) {
    const int row = threadIdx.x;
    float most = 0;
    for (int i = 0; i < 64; ++i) most = fmaxf(most, fabsf(x[row * 64 + i]));
    BODY
}"#;

/// A contract that quantises 64 rows of 64 numbers, one scale for each.
fn quantising(dtype: &str, [body, reference]: [&str; 2]) -> Value {
    let packed = dtype.ends_with("x2");
    let (scale, scales) =
        if packed { ("unsigned char", "float8_e8m0fnu") } else { ("float", "float32") };
    let kernel = |body: &str| {
        let source = QUANTISING.replace("SCALE", scale).replace("BODY", body);
        json!({"kernel_type": "cuda", "source_code": source})
    };
    let mut candidate = kernel(body);
    candidate["io"] = json!({
        "args": [
            {"name": "x", "type": "tensor", "tensor_spec": {"shape": [64, 64], "init": {"kind": "randn", "seed": 4}}},
            {"name": "q", "type": "tensor", "role": "output",
                "tensor_spec": {"shape": [64, if packed { 32 } else { 64 }], "dtype": dtype}},
            {"name": "s", "type": "tensor", "role": "output", "tensor_spec": {"shape": [64], "dtype": scales}},
        ],
        "launch": {"grid": {"x": 1}, "block": {"x": 64}},
    });
    let expected = json!({"kernel": kernel(reference)});
    json!({
        "kernel": candidate, "num_trials": 3, "expected": {"q": expected, "s": expected},
        "compare_as": {"q": {"scales": {"of": "s"}}},
    })
}

#[test]
fn quantised_outputs_are_compared_with_their_scales() {
    const BYTES: [&str; 2] = [
        "const float f = most / 127; s[row] = f; for (int i = 0; i < 64; ++i) q[row * 64 + i] = rintf(x[row * 64 + i] / f);",
        "const float f = 127 / most; s[row] = most * (1 / 127.0f); for (int i = 0; i < 64; ++i) q[row * 64 + i] = \
         rintf(x[row * 64 + i] * f);",
    ];
    // The exponent of the OCP's example, and the next larger one where numbers would saturate.
    const SMALL: [&str; 2] = [
        "int e = ilogbf(most) - 2; if (ldexpf(most, -e) > 6) e = e + 1; s[row] = e + 127; for (int i = 0; i < 32; ++i) \
         q[row * 32 + i] = code(ldexpf(x[row * 64 + 2 * i], -e)) | code(ldexpf(x[row * 64 + 2 * i + 1], -e)) << 4;",
        "int e = ilogbf(most) - 2; s[row] = e + 127; for (int i = 0; i < 64; i += 2) q[row * 32 + i / 2] = \
         code(ldexpf(x[row * 64 + i], -e)) | code(ldexpf(x[row * 64 + i + 1], -e)) << 4;",
    ];
    let server = Server::start();
    for (dtype, bodies, changes) in [
        (
            "int8",
            BYTES,
            &[
                ("rintf(", "truncf("),
                ("most / 127", "most / 63"),
                ("s[row] = f", "s[row] = f * 1.02f"),
                ("q[row * 64 + i] = ", "q[row * 64 + i] = (row == 3 && i == 5 ? 3 : 0) + "),
            ][..],
        ),
        (
            "float4_e2m1fn_x2",
            SMALL,
            &[
                ("> 6) e = e + 1", "> 0) e = e + 2"),
                ("s[row] = e + 127", "s[row] = e + 128"),
                ("q[row * 32 + i] =", "q[row * 32 + i] = (i == 9) * 32 ^"),
            ][..],
        ),
    ] {
        for isolation in ["warm", "sealed"] {
            let mut contract = quantising(dtype, bodies);
            contract["isolation"] = json!(isolation);
            let report = server.evaluate(&contract);
            assert_eq!(report["verdict"], "correct", "{dtype}: {report:#}");
            let tolerance = &report["validation"]["outputs"]["q"]["tolerance"];
            assert_eq!(tolerance["basis"], "scales", "{report:#}");
        }
        for (from, to) in changes {
            assert!(bodies[0].contains(from), "{from}");
            let changed = bodies[0].replace(from, to);
            let report = server.evaluate(&quantising(dtype, [&changed, bodies[1]]));
            assert_eq!(report["verdict"], "wrong", "{dtype}, {to}: {report:#}");
        }
    }
    // Number by number the scales of the two differ.
    let mut alone = quantising("float4_e2m1fn_x2", SMALL);
    alone.as_object_mut().unwrap().remove("compare_as");
    assert_eq!(server.evaluate(&alone)["verdict"], "wrong");
    // A tolerance is for numbers times scales.
    let truncated = BYTES[0].replace("rintf(", "truncf(");
    let mut contract = quantising("int8", [&truncated, BYTES[1]]);
    contract["tolerance"] = json!({"atol": 0.05});
    assert_eq!(server.evaluate(&contract)["verdict"], "correct");
    contract["tolerance"] = json!({"atol": 0.01});
    assert_eq!(server.evaluate(&contract)["verdict"], "wrong");
}

#[test]
fn scales_of_an_output_that_are_none_are_refused_at_their_path() {
    let server = Server::start();
    let with = |how: Value| {
        let mut contract = quantising("int8", ["s[row] = most;", "s[row] = most;"]);
        contract["compare_as"] = how;
        contract
    };
    for (how, path, words) in [
        (json!({"q": {"scales": {"of": "t"}}}), "compare_as.q.scales.of", "`t`"),
        (json!({"q": {"scales": {"of": "q"}}}), "compare_as.q.scales.of", "itself"),
        (json!({"s": {"scales": {"of": "x"}}}), "compare_as.s", "int8 and int4x2 have scales"),
        (
            json!({"q": {"scales": {"of": "s", "block": [2, 2]}}}),
            "compare_as.q.scales.of",
            "[32, 32]",
        ),
        (
            json!({"q": {"scales": {"of": "s"}, "any_order": true}}),
            "compare_as.q",
            "cannot be combined",
        ),
        (
            json!({"q": {"scales": {"of": "s"}}, "s": {"up_to": "x"}}),
            "compare_as.s",
            "more than once",
        ),
    ] {
        let answer = server.post_json("/evaluate", &with(how));
        let found = answer.text.contains(path) && answer.text.contains(words);
        assert!(answer.status == 400 && found, "{path} {words}: {}", answer.text);
    }
}
