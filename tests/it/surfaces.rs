//! Surface objects over tensors, and textures that need CUDA arrays.

use serde_json::{Value, json};

use crate::server::{Server, emulated};
use crate::support::has_nvcc;

fn tensor(name: &str, role: &str, dtype: &str, shape: &Value) -> Value {
    let mut spec = json!({"shape": shape, "dtype": dtype});
    if matches!(role, "input" | "inout") {
        spec["init"] = match dtype {
            "float32" | "float16" => json!({"kind": "randn", "seed": 3}),
            _ => json!({"kind": "randint", "low": 0, "high": 100, "seed": 3}),
        };
    }
    json!({"name": name, "type": "tensor", "role": role, "tensor_spec": spec})
}

fn surface(name: &str, tensor: &str) -> Value {
    json!({"name": name, "type": "surface", "surface": {"tensor": tensor}})
}

/// A kernel, and a reference that takes the tensors as pointers, launched alike.
fn contract(source: &str, reference: &str, args: &Value, output: &str) -> Value {
    let launch = json!({"grid": {"x": 4}, "block": {"x": 64}});
    json!({
        "kernel": {"kernel_type": "cuda", "source_code": source, "io": {"args": args, "launch": launch}},
        "expected": {output: {"kernel": {"kernel_type": "cuda", "source_code": reference,
                                         "io": {"launch": launch}}}},
        "num_trials": 3,
    })
}

/// Halves of rows of 20 texels change places, and one is added.
const SWAP: &str = r#"
extern "C" __global__ void swap(cudaSurfaceObject_t from, cudaSurfaceObject_t to, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, x = i % 20, y = i / 20;
    if (i < n) surf2Dwrite(surf2Dread<float>(from, 4 * x, y) + 1, to, 4 * ((x + 10) % 20), y);
}"#;

const SWAPPED: &str = r#"
extern "C" __global__ void swapped(const float* a, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i / 20 * 20 + (i % 20 + 10) % 20] = a[i] + 1;
}"#;

fn swap() -> Value {
    let shape = json!([9, 20]);
    let args = json!([
        surface("from", "a"),
        surface("to", "y"),
        tensor("a", "input", "float32", &shape),
        tensor("y", "output", "float32", &shape),
        {"name": "n", "type": "int", "value": 180},
    ]);
    contract(SWAP, SWAPPED, &args, "y")
}

#[test]
fn surfaces_of_two_dimensions_are_read_and_written() {
    let server = Server::start();
    for isolation in ["warm", "sealed"] {
        let mut contract = swap();
        contract["isolation"] = json!(isolation);
        let report = server.evaluate(&contract);
        assert_eq!(report["verdict"], "correct", "{report:#}");
        assert_eq!(report["measurement"]["inputs"], "fresh", "{report:#}");
    }
    let mut wrong = swap();
    wrong["kernel"]["source_code"] = json!(SWAP.replace("+ 10", "+ 11"));
    assert_eq!(server.evaluate(&wrong)["verdict"], "wrong");
    // A texel that nothing writes is what the output held before.
    let mut partial = swap();
    partial["kernel"]["source_code"] = json!(SWAP.replace("i < n", "i < n - 1"));
    assert_eq!(server.evaluate(&partial)["verdict"], "wrong");

    // A comparison with a kernel that takes pointers, both ways round.
    let custom = json!({"kernel_type": "cuda", "source_code": SWAPPED});
    let kernel = &swap()["kernel"];
    let request = json!({"ref_kernel": kernel, "custom_kernel": custom, "num_trials": 3});
    let report = server.post_json("/compare", &request).json;
    assert_eq!(report["verdict"], "correct", "{report:#}");

    // Beyond the edges: zeros and the nearest texel, and a fault where the kernel asks for nothing else.
    let beyond = SWAP.replace("from, 4 * x, y)", "from, 4 * x + 40, y, cudaBoundaryModeZero)");
    let mut zero = swap();
    zero["kernel"]["source_code"] = json!(beyond);
    let zeros = SWAPPED.replace("a[i] + 1", "(i % 20 < 10 ? a[i + 10] : 0) + 1");
    zero["expected"]["y"]["kernel"]["source_code"] = json!(zeros);
    let report = server.evaluate(&zero);
    assert_eq!(report["verdict"], "correct", "{report:#}");
    let mut clamp = zero.clone();
    clamp["kernel"]["source_code"] = json!(beyond.replace("Zero", "Clamp"));
    let clamped = SWAPPED.replace("a[i] + 1", "a[i / 20 * 20 + min(i % 20 + 10, 19)] + 1");
    clamp["expected"]["y"]["kernel"]["source_code"] = json!(clamped);
    let report = server.evaluate(&clamp);
    assert_eq!(report["verdict"], "correct", "{report:#}");
    let mut trap = zero.clone();
    trap["kernel"]["source_code"] = json!(beyond.replace(", cudaBoundaryModeZero", ""));
    let report = server.evaluate(&trap);
    assert_eq!(report["verdict"], "failed", "{report:#}");
    the_rest_needs!("the emulated device", emulated());
    let message = report["failure"]["message"].to_string();
    assert!(message.contains("outside a surface of 20 × 9 texels"), "{report:#}");
}

#[test]
fn surfaces_have_channels_and_up_to_three_dimensions() {
    let server = Server::start();
    let halo = "extern \"C\" __global__ void k(cudaSurfaceObject_t s, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return;\n";
    let plain = "extern \"C\" __global__ void r(TYPE* a, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return;\n";
    for (dtype, ctype, channels, layered, shape, body, expected) in [
        (
            "float32",
            "float",
            1,
            false,
            json!([150]),
            "surf1Dwrite(3 * surf1Dread<float>(s, 4 * i), s, 4 * i);",
            "a[i] *= 3;",
        ),
        (
            "float32",
            "float",
            2,
            false,
            json!([5, 10, 3, 2]),
            "int x = i % 3 * 8, y = i / 3 % 10, z = i / 30; float2 v = surf3Dread<float2>(s, x, y, z);
             surf3Dwrite(make_float2(v.y, v.x + z), s, x, y, z);",
            "float x = a[2 * i]; a[2 * i] = a[2 * i + 1]; a[2 * i + 1] = x + i / 30;",
        ),
        (
            "uint8",
            "unsigned char",
            4,
            true,
            json!([5, 6, 5, 4]),
            "int x = i % 5 * 4, y = i / 5 % 6, z = i / 30; uchar4 v = surf2DLayeredread<uchar4>(s, x, y, z);
             v.w += z; surf2DLayeredwrite(v, s, x, y, z);",
            "a[4 * i + 3] += i / 30;",
        ),
        (
            "int16",
            "short",
            1,
            false,
            json!([10, 15]),
            "int x = i % 15 * 2, y = i / 15; surf2Dwrite(short(surf2Dread<short>(s, x, y) - 7), s, x, y);",
            "a[i] -= 7;",
        ),
    ] {
        let mut over = surface("s", "a");
        over["surface"]["channels"] = json!(channels);
        over["surface"]["layered"] = json!(layered);
        let a = tensor("a", "inout", dtype, &shape);
        let args = json!([over, a, {"name": "n", "type": "int", "value": 150}]);
        let source = format!("{halo}{body} }}");
        let reference = format!("{}{expected} }}", plain.replace("TYPE", ctype));
        let mut request = contract(&source, &reference, &args, "a");
        let report = server.evaluate(&request);
        assert_eq!(report["verdict"], "correct", "{shape}: {report:#}");
        request["kernel"]["source_code"] = json!(format!("{halo}if (i == 70) return; {body} }}"));
        assert_eq!(server.evaluate(&request)["verdict"], "wrong", "{shape}");
    }
}

#[test]
fn launches_share_the_arrays_of_their_tensors() {
    let server = Server::start();
    // The second launch reads through a texture what the first has written to scratch memory, and a loop goes on.
    let source = r#"
extern "C" __global__ void first(cudaSurfaceObject_t from, cudaSurfaceObject_t to) {
    int x = threadIdx.x; surf2Dwrite(2 * surf2Dread<float>(from, 4 * x, 0), to, 4 * x, 0);
}
extern "C" __global__ void second(cudaTextureObject_t t, cudaSurfaceObject_t y) {
    int x = threadIdx.x;
    surf2Dwrite(surf2Dread<float>(y, 4 * x, 0) + tex2D<float>(t, x + 1.0f, 0.5f), y, 4 * x, 0);
}"#;
    let reference = r#"
extern "C" __global__ void all(const float* a, float* y) {
    int x = threadIdx.x; if (x < 50) y[x] += 3 * (a[x] + a[min(x + 1, 49)]);
}"#;
    let shape = json!([1, 50]);
    let block = json!({"x": 50});
    let step = |kernel: &str, args: Value| json!({"kernel": kernel, "args": args, "grid": {"x": 1}, "block": block});
    let mut scratch = tensor("m", "scratch", "float32", &shape);
    scratch["tensor_spec"].as_object_mut().unwrap().remove("init");
    let args = json!([
        surface("from", "a"), surface("middle", "m"), surface("to", "y"),
        {"name": "t", "type": "texture", "texture": {"tensor": "m", "filter": "linear"}},
        tensor("a", "input", "float32", &shape), tensor("y", "inout", "float32", &shape), scratch,
    ]);
    let request = json!({
        "kernel": {
            "kernel_type": "cuda", "source_code": source, "io": {"args": args},
            "launches": [
                step("first", json!(["from", "middle"])),
                {"repeat": 3, "steps": [step("second", json!(["t", "to"]))]},
            ],
        },
        "expected": {"y": {"kernel": {
            "kernel_type": "cuda", "source_code": reference, "io": {
                "launch": {"grid": {"x": 1}, "block": {"x": 64}},
            },
        }}},
        "tolerance": {"atol": 1e-5, "rtol": 1e-5},
        "num_trials": 3,
    });
    let report = server.evaluate(&request);
    assert_eq!(report["verdict"], "correct", "{report:#}");
    // What a step does to the memory of a tensor does not arrive in its array.
    let mut mixed = request.clone();
    let steps = mixed["kernel"]["launches"].as_array_mut().unwrap();
    steps.insert(1, json!({"memset": "y", "value": 0}));
    let answer = server.post_json("/evaluate", &mixed);
    assert_eq!(answer.status, 400, "{}", answer.text);
    assert!(answer.text.contains("tensor `y` is in a CUDA array"), "{}", answer.text);
}

/// Reads a volume of 5 × 6 × 7 texels in steps of 1.25 from beyond its edges on, with 8 × 8 × 10 steps.
const VOLUME: &str = r#"
extern "C" __global__ void volume(cudaTextureObject_t t, float* y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += 256)
        y[i] = tex3D<float>(t, ((i % 10 - 2) * 1.25f + SHIFT) / SCALE_X, ((i / 10 % 8 - 1) * 1.25f + SHIFT) / SCALE_Y, ((i / 80 - 1) * 1.25f + SHIFT) / SCALE_Z);
}"#;

/// The same for pointers: `AT(x, y, z)` is a texel.
const SAMPLED: &str = r#"
__device__ int clamped(int i, int n) { return min(max(i, 0), n - 1); }
__device__ int wrapped(int i, int n) { return ((i % n) + n) % n; }
__device__ int mirrored(int i, int n) { int m = wrapped(i, 2 * n); return min(m, 2 * n - 1 - m); }
extern "C" __global__ void sampled(const float* a, float* y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += 256) {
        float u = (i % 10 - 2) * 1.25f + SHIFT, v = (i / 10 % 8 - 1) * 1.25f + SHIFT, w = (i / 80 - 1) * 1.25f + SHIFT;
        auto at = [=](int x, int y, int z) { return AT; };
#if LINEAR
        u -= 0.5f; v -= 0.5f; w -= 0.5f;
        int x = floorf(u), q = floorf(v), z = floorf(w);
        float p = u - x, r = v - q, s = w - z, sum = 0;
        for (int c = 0; c < 8; c++)
            sum += (c & 1 ? p : 1 - p) * (c & 2 ? r : 1 - r) * (c & 4 ? s : 1 - s) * at(x + (c & 1), q + (c >> 1 & 1), z + (c >> 2));
        y[i] = sum;
#else
        y[i] = at(floorf(u), floorf(v), floorf(w));
#endif
    }
}"#;

#[test]
fn textures_of_three_dimensions_are_filtered_and_addressed_as_asked() {
    let server = Server::start();
    let inside = |f: &str| format!("a[({f}(z, 5) * 6 + {f}(y, 6)) * 7 + {f}(x, 7)]");
    let border =
        "((unsigned)x < 7 && (unsigned)y < 6 && (unsigned)z < 5 ? a[(z * 6 + y) * 7 + x] : 0.0f)"
            .to_owned();
    for (how, at) in [
        (json!({}), inside("clamped")),
        (json!({"address": "border"}), border.clone()),
        (json!({"filter": "linear"}), inside("clamped")),
        (json!({"filter": "linear", "address": "border"}), border),
        (json!({"normalized": true, "address": "wrap"}), inside("wrapped")),
        (json!({"normalized": true, "address": "mirror", "filter": "linear"}), inside("mirrored")),
    ] {
        let scales = if how["normalized"] == true { ["7", "6", "5"] } else { ["1"; 3] };
        let source = ["SCALE_X", "SCALE_Y", "SCALE_Z"].iter().zip(scales);
        let source = source.fold(VOLUME.to_owned(), |text, (name, by)| text.replace(name, by));
        // Between texels for the nearest one; where a GPU multiplies weights, products have eight bits.
        let (linear, shift) =
            if how["filter"] == "linear" { ("1", "0.0f") } else { ("0", "0.125f") };
        let source = source.replace("SHIFT", shift);
        let reference = SAMPLED.replace("AT;", &format!("{at};")).replace("LINEAR", linear);
        let reference = reference.replace("SHIFT", shift);
        let mut texture = how.clone();
        texture["tensor"] = json!("a");
        let args = json!([
            {"name": "t", "type": "texture", "texture": texture},
            tensor("a", "input", "float32", &json!([5, 6, 7])),
            tensor("y", "output", "float32", &json!([640])),
            {"name": "n", "type": "int", "value": 640},
        ]);
        let mut request = contract(&source, &reference, &args, "y");
        request["tolerance"] = json!({"atol": 1e-5, "rtol": 1e-5});
        let report = server.evaluate(&request);
        assert_eq!(report["verdict"], "correct", "{how}: {report:#}");
        request["kernel"]["source_code"] = json!(source.replace("1.25f +", "1.5f +"));
        assert_eq!(server.evaluate(&request)["verdict"], "wrong", "{how}");
    }
}

#[test]
fn textures_in_arrays_have_any_width_fractions_and_layers() {
    let server = Server::start();
    for (read, texture, shape, expected) in [
        // Rows of 52 bytes.
        ("tex2D<float>(t, i % 13, i / 13)", json!({}), json!([8, 13]), "a[i]"),
        (
            "tex1D<float>(t, i + 1.0f)",
            json!({"filter": "linear"}),
            json!([104]),
            "0.5f * (a[i] + a[min(i + 1, n - 1)])",
        ),
        ("tex1D<float>(t, i + 0.5f)", json!({"array": true}), json!([104]), "a[i]"),
        // No surface takes as many texels in one dimension.
        ("tex1D<float>(t, i + 39000.5f)", json!({"array": true}), json!([40_000]), "a[39000 + i]"),
        (
            "tex2DLayered<float>(t, i % 13 + 0.5f, i / 13 % 2 + 0.5f, i / 26)",
            json!({"layered": true, "filter": "linear"}),
            json!([4, 2, 13]),
            "a[i]",
        ),
    ] {
        let source = format!(
            "extern \"C\" __global__ void k(cudaTextureObject_t t, float* y, int n) {{
            int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = 3 * {read}; }}"
        );
        let reference = format!(
            "extern \"C\" __global__ void r(const float* a, float* y, int n) {{
            int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = 3 * ({expected}); }}"
        );
        let mut texture = texture.clone();
        texture["tensor"] = json!("a");
        let args = json!([
            {"name": "t", "type": "texture", "texture": texture},
            tensor("a", "input", "float32", &shape),
            tensor("y", "output", "float32", &json!([104])),
            {"name": "n", "type": "int", "value": 104},
        ]);
        let mut request = contract(&source, &reference, &args, "y");
        request["tolerance"] = json!({"atol": 1e-5, "rtol": 1e-5});
        let report = server.evaluate(&request);
        assert_eq!(report["verdict"], "correct", "{read}: {report:#}");
    }
}

#[test]
fn surfaces_that_cannot_be_are_reported_by_name() {
    let server = Server::start();
    let with = |over: Value, dtype: &str, shape: Value| {
        let mut request = swap();
        let args = &mut request["kernel"]["io"]["args"];
        args[0]["surface"] = over;
        args[2] = tensor("a", "input", dtype, &shape);
        request
    };
    let over = |more: Value| {
        let mut surface = more;
        surface["tensor"] = json!("a");
        surface
    };
    for (surface, dtype, shape, why) in [
        (json!({"tensor": "b"}), "float32", json!([9, 20]), "no tensor is named `b`"),
        (json!({"tensor": "n"}), "float32", json!([9, 20]), "no tensor is named `n`"),
        (json!({}), "float32", json!([9, 20]), "tensor"),
        (over(json!({})), "float32", json!([0, 20]), "no texels"),
        (over(json!({})), "float64", json!([9, 20]), "two of int32"),
        (over(json!({})), "bool", json!([9, 20]), "not bool"),
        (over(json!({})), "uint8", json!([32_769]), "at most 32768"),
        (over(json!({})), "uint8", json!([65_537, 1]), "at most 131072 × 65536"),
        (over(json!({})), "uint8", json!([16_385, 1, 1]), "at most 16384 × 16384 × 16384"),
        (over(json!({"layered": true})), "uint8", json!([2049, 1, 1]), "× 2048"),
        (over(json!({"layered": true})), "float32", json!([9, 20]), "three dimensions"),
        (over(json!({"channels": 3})), "float32", json!([9, 3]), "1, 2 or 4"),
        (over(json!({"channels": 4})), "float32", json!([9, 20]), "4, the number of channels"),
        (over(json!({})), "float32", json!([2, 2, 2, 2]), "1 to 3"),
        (over(json!({"filter": "linear"})), "float32", json!([9, 20]), "filter"),
    ] {
        let answer = server.post_json("/evaluate", &with(surface.clone(), dtype, shape));
        assert_eq!(answer.status, 400, "{surface}: {}", answer.text);
        let says = |text: &str| answer.text.contains(text);
        assert!(says("kernel.io.args[0].surface") && says(why), "{surface}: {}", answer.text);
    }
    let refused = |request: &Value, why: &str| {
        let answer = server.post_json("/evaluate", request);
        assert!(answer.status == 400 && answer.text.contains(why), "{}", answer.text);
    };
    let mut missing = swap();
    missing["kernel"]["io"]["args"][0].as_object_mut().unwrap().remove("surface");
    refused(&missing, "needs `surface`");
    let mut role = swap();
    role["kernel"]["io"]["args"][1]["role"] = json!("output");
    refused(&role, "no `role`");
    // One kernel cannot write a tensor in its array and in its memory.
    let mut both = swap();
    both["kernel"]["source_code"] =
        json!(SWAP.replace("to, int n", "to, float* p, float* q, int n"));
    refused(&both, "tensor `y` is in a CUDA array");
    let mut number = swap();
    number["kernel"]["source_code"] = json!(SWAP.replace("cudaSurfaceObject_t to", "float to"));
    refused(&number, "kernel.io.args");
}

/// Doubles an image through surfaces, and reads a volume between its texels.
const PROGRAM: &str = r#"
#include <cstdio>
#include <vector>
__global__ void twice(cudaSurfaceObject_t from, cudaSurfaceObject_t to, int w, int h) {
    int x = threadIdx.x, y = threadIdx.y;
    if (x < w && y < h) surf2Dwrite(2 * surf2Dread<float>(from, 4 * x, y), to, 4 * x, y);
}
__global__ void between(cudaTextureObject_t t, float* y) {
    y[threadIdx.x] = tex3D<float>(t, 1.0f, 1.0f, threadIdx.x + 1.0f);
}
int main() {
    const int w = 7, h = 5;
    std::vector<float> host(w * h), back(w * h), tail(3);
    for (int i = 0; i < w * h; ++i) host[i] = i;
    cudaChannelFormatDesc one = cudaCreateChannelDesc<float>();
    cudaArray_t a, b, v;
    if (cudaMallocArray(&a, &one, w, h, cudaArraySurfaceLoadStore)) return 2;
    if (cudaMallocArray(&b, &one, w, h, cudaArraySurfaceLoadStore)) return 3;
    cudaMemcpy2DToArray(a, 0, 0, host.data(), w * 4, w * 4, h, cudaMemcpyHostToDevice);
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    cudaSurfaceObject_t from, to;
    resource.res.array.array = a;
    if (cudaCreateSurfaceObject(&from, &resource)) return 4;
    resource.res.array.array = b;
    if (cudaCreateSurfaceObject(&to, &resource)) return 5;
    twice<<<1, dim3(8, 8)>>>(from, to, w, h);
    cudaMemcpy2DFromArray(back.data(), w * 4, b, 0, 0, w * 4, h, cudaMemcpyDeviceToHost);
    for (int i = 0; i < w * h; ++i) if (back[i] != 2 * i) return 6;
    cudaMemcpy2DFromArray(tail.data(), 12, b, 16, 4, 12, 1, cudaMemcpyDeviceToHost);
    if (tail[2] != 2 * 34) return 7;
    if (cudaMemcpy2DFromArray(tail.data(), 12, b, 20, 4, 12, 1, cudaMemcpyDeviceToHost) != cudaErrorInvalidValue) return 8;
    cudaGetLastError();

    cudaExtent extent = make_cudaExtent(2, 2, 3);
    if (cudaMalloc3DArray(&v, &one, extent)) return 9;
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = make_cudaPitchedPtr(host.data(), 8, 2, 2);
    copy.dstArray = v;
    copy.extent = extent;
    copy.kind = cudaMemcpyHostToDevice;
    if (cudaMemcpy3D(&copy)) return 10;
    resource.res.array.array = v;
    // Drivers do not ask for the flag of arrays with surfaces.
    cudaSurfaceObject_t unflagged;
    if (cudaCreateSurfaceObject(&unflagged, &resource)) return 11;
    cudaDestroySurfaceObject(unflagged);
    cudaTextureDesc how = {};
    how.filterMode = cudaFilterModeLinear;
    for (auto& mode : how.addressMode) mode = cudaAddressModeClamp;
    cudaTextureObject_t texture;
    if (cudaCreateTextureObject(&texture, &resource, &how, nullptr)) return 12;
    float* y;
    cudaMalloc(&y, 12);
    between<<<1, 3>>>(texture, y);
    cudaMemcpy(tail.data(), y, 12, cudaMemcpyDeviceToHost);
    printf("%g %g %g\n", tail[0], tail[1], tail[2]);
    cudaDestroyTextureObject(texture); cudaDestroySurfaceObject(from);
    cudaFreeArray(a); cudaFreeArray(b); cudaFreeArray(v);
    return cudaGetLastError();
}
"#;

#[test]
fn programs_have_arrays_textures_and_surfaces() {
    needs!("nvcc", has_nvcc());
    let server = Server::start();
    let expected = json!({"stdout": {"text": "3.5 7.5 9.5"}, "exit_code": {"code": 0}});
    let kernel = json!({"kernel_type": "program", "source_code": PROGRAM});
    let report = server.evaluate(&json!({"kernel": kernel, "expected": expected, "timeout": 60.0}));
    assert_eq!(report["verdict"], "correct", "{report:#}");
}
