//! Texture objects over tensors.

use serde_json::{Value, json};

use crate::server::{Server, emulated};

fn tensor(name: &str, role: &str, dtype: &str, shape: &Value) -> Value {
    let mut spec = json!({"shape": shape, "dtype": dtype});
    if role == "input" {
        spec["init"] = match dtype {
            "float32" | "float16" => json!({"kind": "randn", "seed": 3}),
            _ => json!({"kind": "randint", "low": 0, "high": 100, "seed": 3}),
        };
    }
    json!({"name": name, "type": "tensor", "role": role, "tensor_spec": spec})
}

/// A kernel with a texture over `a`, and a reference that takes `a` as a pointer. Both have `y` and `n` behind it.
fn contract(source: &str, reference: &str, texture: &Value, a: &Value, elements: u64) -> Value {
    let launch = json!({"grid": {"x": 4}, "block": {"x": 64}});
    let args = json!([
        {"name": "t", "type": "texture", "texture": texture}, a,
        tensor("y", "output", "float32", &json!([elements])),
        {"name": "n", "type": "int", "value": elements},
    ]);
    json!({
        "kernel": {"kernel_type": "cuda", "source_code": source, "io": {"args": args, "launch": launch}},
        "expected": {"y": {"kernel": {"kernel_type": "cuda", "source_code": reference,
                                      "io": {"launch": launch}}}},
        "num_trials": 3,
    })
}

const FETCH: &str = r#"
extern "C" __global__ void fetch(cudaTextureObject_t t, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2 * tex1Dfetch<float>(t, i - 1);
}"#;

const FETCHED: &str = r#"
extern "C" __global__ void fetched(const float* a, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = i ? 2 * a[i - 1] : 0.0f;
}"#;

fn fetch() -> Value {
    let a = tensor("a", "input", "float32", &json!([200]));
    contract(FETCH, FETCHED, &json!({"tensor": "a"}), &a, 200)
}

#[test]
fn textures_of_linear_memory_are_read_by_index() {
    let server = Server::start();
    let contract = fetch();
    for isolation in ["warm", "sealed"] {
        let mut contract = contract.clone();
        contract["isolation"] = json!(isolation);
        let report = server.evaluate(&contract);
        assert_eq!(report["verdict"], "correct", "{report:#}");
        assert_eq!(report["measurement"]["inputs"], "fresh", "{report:#}");
    }
    let mut wrong = contract.clone();
    wrong["kernel"]["source_code"] = json!(FETCH.replace("i - 1", "i"));
    assert_eq!(server.evaluate(&wrong)["verdict"], "wrong");

    // A list of launches names the texture, and comparisons take it.
    let mut steps = contract.clone();
    let kernel = &mut steps["kernel"];
    kernel["io"].as_object_mut().unwrap().remove("launch");
    kernel["launches"] =
        json!([{"kernel": "fetch", "args": ["t", "y", "n"], "grid": {"x": 4}, "block": {"x": 64}}]);
    let report = server.evaluate(&steps);
    assert_eq!(report["verdict"], "correct", "{report:#}");
    let custom = json!({"kernel_type": "cuda", "source_code": FETCHED});
    let request =
        json!({"ref_kernel": contract["kernel"], "custom_kernel": custom, "num_trials": 3});
    let report = server.post_json("/compare", &request).json;
    assert_eq!(report["verdict"], "correct", "{report:#}");
}

/// Reads every texel half a texel off, and beyond the edges.
const SAMPLE: &str = r#"
extern "C" __global__ void sample(cudaTextureObject_t t, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = tex2D<float>(t, (i % 20 - 2) * SCALE_X, (i / 20 - 2) * SCALE_Y);
}"#;

/// The same for a tensor of 8 × 16 elements: `AT(x, y)` is a texel, and x and y the coordinates without normalisation.
const SAMPLED: &str = r#"
__device__ int clamped(int i, int n) { return min(max(i, 0), n - 1); }
__device__ int wrapped(int i, int n) { return ((i % n) + n) % n; }
__device__ int mirrored(int i, int n) { int m = wrapped(i, 2 * n); return min(m, 2 * n - 1 - m); }
extern "C" __global__ void sampled(const TYPE* a, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float u = (i % 20 - 2) * STEP, v = (i / 20 - 2) * STEP;
    auto at = [=](int x, int y) { return AT; };
#if LINEAR
    u -= 0.5f; v -= 0.5f;
    int x = floorf(u), z = floorf(v);
    float p = u - x, q = v - z;
    y[i] = (1 - p) * (1 - q) * at(x, z) + p * (1 - q) * at(x + 1, z) + (1 - p) * q * at(x, z + 1) + p * q * at(x + 1, z + 1);
#else
    y[i] = at(floorf(u), floorf(v));
#endif
}"#;

#[test]
fn textures_of_two_dimensions_are_filtered_and_addressed_as_asked() {
    let server = Server::start();
    let inside = |f: &str| format!("float(a[{f}(y, 8) * 16 + {f}(x, 16)])");
    let border = "((unsigned)x < 16 && (unsigned)y < 8 ? float(a[y * 16 + x]) : 0.0f)".to_owned();
    // Steps of 1.25 texels are exact with 8 fractional bits.
    for (how, dtype, ctype, at) in [
        (json!({}), "float32", "float", inside("clamped")),
        (json!({"filter": "linear"}), "float32", "float", inside("clamped")),
        (json!({"filter": "linear", "address": "border"}), "float32", "float", border.clone()),
        (json!({"address": "border"}), "float32", "float", border),
        (json!({"address": "wrap", "normalized": true}), "float32", "float", inside("wrapped")),
        (
            json!({"address": "mirror", "normalized": true, "filter": "linear"}),
            "float32",
            "float",
            inside("mirrored"),
        ),
        (
            json!({"filter": "linear", "read": "normalized"}),
            "uint16",
            "unsigned short",
            format!("({} / 65535.0f)", inside("clamped")),
        ),
    ] {
        let normalized = how["normalized"] == true;
        let scales = if normalized { ["(1.25f / 16)", "(1.25f / 8)"] } else { ["1.25f"; 2] };
        let source = SAMPLE.replace("SCALE_X", scales[0]).replace("SCALE_Y", scales[1]);
        let linear = if how["filter"] == "linear" { "1" } else { "0" };
        let reference = SAMPLED.replace("TYPE", ctype).replace("STEP", "1.25f");
        let reference = reference.replace("AT;", &format!("{at};")).replace("LINEAR", linear);
        let mut texture = how.clone();
        texture["tensor"] = json!("a");
        let a = tensor("a", "input", dtype, &json!([8, 16]));
        let mut contract = contract(&source, &reference, &texture, &a, 240);
        contract["tolerance"] = json!({"atol": 1e-5, "rtol": 1e-5});
        let report = server.evaluate(&contract);
        assert_eq!(report["verdict"], "correct", "{how}: {report:#}");
        if linear == "1" {
            // Another filter gives other values.
            contract["kernel"]["io"]["args"][0]["texture"]["address"] = json!("clamp");
            contract["kernel"]["source_code"] = json!(source.replace("1.25f", "1.5f"));
            assert_eq!(server.evaluate(&contract)["verdict"], "wrong", "{how}");
        }
    }
}

#[test]
fn each_level_of_a_texture_is_the_only_one() {
    let server = Server::start();
    let at = "a[clamped(y, 8) * 16 + clamped(x, 16)]";
    let reference = SAMPLED.replace("TYPE", "float").replace("STEP", "1.25f");
    let reference = reference.replace("AT;", &format!("{at};")).replace("LINEAR", "1");
    let a = tensor("a", "input", "float32", &json!([8, 16]));
    let how = json!({"tensor": "a", "filter": "linear"});
    for (read, last) in [
        ("tex2DLod<float>(", "3.0f"),
        ("tex2DGrad<float>(", "make_float2(4, 0), make_float2(0, i)"),
    ] {
        let source = SAMPLE.replace("SCALE_X", "1.25f").replace("SCALE_Y", "1.25f");
        let source = source.replace("tex2D<float>(", read);
        let source = source.replace("* 1.25f);", &format!("* 1.25f, {last});"));
        let mut contract = contract(&source, &reference, &how, &a, 240);
        contract["tolerance"] = json!({"atol": 1e-5, "rtol": 1e-5});
        let report = server.evaluate(&contract);
        assert_eq!(report["verdict"], "correct", "{source}: {report:#}");
    }
}

#[test]
fn texels_have_channels_and_types() {
    let server = Server::start();
    let source = r#"
extern "C" __global__ void channels(cudaTextureObject_t t, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    char4 v = tex2D<char4>(t, i % 8, i / 8);
    y[i] = v.x + 2 * v.y - 3 * v.z + v.w;
}"#;
    let reference = r#"
extern "C" __global__ void plain(const signed char* a, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a[4 * i] + 2 * a[4 * i + 1] - 3 * a[4 * i + 2] + a[4 * i + 3];
}"#;
    let mut a = tensor("a", "input", "int8", &json!([4, 8, 4]));
    a["tensor_spec"]["init"] = json!({"kind": "randint", "low": -100, "high": 100, "seed": 3});
    let contract = contract(source, reference, &json!({"tensor": "a", "channels": 4}), &a, 32);
    let report = server.evaluate(&contract);
    assert_eq!(report["verdict"], "correct", "{report:#}");
}

#[test]
fn textures_that_cannot_be_are_reported_by_name() {
    let server = Server::start();
    let with = |texture: Value, dtype: &str, shape: Value| {
        let a = tensor("a", "input", dtype, &shape);
        contract(FETCH, FETCHED, &texture, &a, 200)
    };
    let over = |more: Value| {
        let mut texture = more;
        texture["tensor"] = json!("a");
        texture
    };
    for (texture, dtype, shape, why) in [
        (json!({"tensor": "b"}), "float32", json!([200]), "no tensor is named `b`"),
        (json!({"tensor": "n"}), "float32", json!([200]), "no tensor is named `n`"),
        (over(json!({})), "float32", json!([0]), "no texels"),
        (over(json!({})), "float32", json!([0, 8]), "no texels"),
        (over(json!({})), "float64", json!([200]), "two of int32"),
        (over(json!({})), "float32", json!([2, 2, 2, 8]), "1 to 3"),
        (over(json!({"layered": true})), "float32", json!([8, 8]), "three dimensions"),
        (over(json!({})), "uint8", json!([1, 1, 16_385]), "at most 16384 × 16384 × 16384"),
        (over(json!({"array": true})), "uint8", json!([131_073]), "at most 131072"),
        (over(json!({})), "uint8", json!([1, 1 << 18]), "at most 131072"),
        (over(json!({"channels": 3})), "float32", json!([8, 3]), "1, 2 or 4"),
        (over(json!({"channels": 4})), "float32", json!([8, 8]), "4, the number of channels"),
        (over(json!({"filter": "linear"})), "int32", json!([200]), "interpolates floats"),
        (over(json!({"filter": "linear"})), "int32", json!([8, 8]), "interpolates floats"),
        (over(json!({"address": "wrap"})), "float32", json!([8, 8]), "normalized"),
        (over(json!({"read": "normalized"})), "float32", json!([8, 8]), "8 or 16 bits"),
        (over(json!({"filter": "cubic"})), "float32", json!([8, 8]), "cubic"),
    ] {
        let answer = server.post_json("/evaluate", &with(texture.clone(), dtype, shape));
        assert_eq!(answer.status, 400, "{texture}: {}", answer.text);
        let says = |text: &str| answer.text.contains(text);
        assert!(says("kernel.io.args[0].texture") && says(why), "{texture}: {}", answer.text);
    }
    let mut missing = fetch();
    missing["kernel"]["io"]["args"][0].as_object_mut().unwrap().remove("texture");
    let answer = server.post_json("/evaluate", &missing);
    assert!(answer.status == 400 && answer.text.contains("needs `texture`"), "{}", answer.text);
    let mut pointer = fetch();
    pointer["kernel"]["source_code"] = json!(FETCHED);
    pointer["kernel"]["io"]["args"].as_array_mut().unwrap().remove(1);
    let answer = server.post_json("/evaluate", &pointer);
    assert_eq!(answer.status, 400, "{}", answer.text);

    // What the emulated device lacks is its own fault, and said by name.
    the_rest_needs!("the emulated device", emulated());
    let cube = "extern \"C\" __global__ void k(cudaTextureObject_t t, float* y, int n) {\n\
        y[threadIdx.x] = texCubemap<float>(t, 1, 0, 0); }";
    let mut contract = fetch();
    contract["kernel"]["source_code"] = json!(cube);
    let report = server.evaluate(&contract);
    assert_eq!(report["failure"]["code"], "not_supported", "{report:#}");
    assert!(report["failure"]["message"].to_string().contains("cube"), "{report:#}");
}

/// Reads four neighbours of a point of each texel, and beyond the edges.
const GATHER: &str = r#"
extern "C" __global__ void gather(cudaTextureObject_t t, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    VECTOR v = tex2Dgather<VECTOR>(t, (i % 20 - 2) * 1.25f, (i / 20 - 2) * 1.25f, CHANNEL);
    y[i] = v.x + 2 * v.y + 4 * v.z + 8 * v.w;
}"#;

/// The same for a tensor of 8 × 16 texels: left below, right below, right above and left above.
const GATHERED: &str = r#"
extern "C" __global__ void gathered(const TYPE* a, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int x = floorf((i % 20 - 2) * 1.25f - 0.5f), z = floorf((i / 20 - 2) * 1.25f - 0.5f);
    auto at = [=](int x, int y) {
        x = min(max(x, 0), 15); y = min(max(y, 0), 7);
        return float(a[(y * 16 + x) * CHANNELS + CHANNEL]);
    };
    y[i] = at(x, z + 1) + 2 * at(x + 1, z + 1) + 4 * at(x + 1, z) + 8 * at(x, z);
}"#;

#[test]
fn four_neighbours_of_a_texture_are_read_at_once() {
    needs!("the emulated device", emulated());
    let server = Server::start();
    for (more, dtype, types, channels, channel) in [
        (json!({}), "float32", ["float", "float4"], 1, 0),
        (json!({"filter": "linear"}), "float32", ["float", "float4"], 1, 0),
        (json!({"channels": 4}), "float32", ["float", "float4"], 4, 3),
        (json!({"channels": 2}), "uint8", ["unsigned char", "uchar4"], 2, 1),
        (json!({"array": true}), "int32", ["int", "int4"], 1, 0),
    ] {
        let mut texture = more.clone();
        texture["tensor"] = json!("a");
        let filled = |source: &str| {
            source
                .replace("CHANNELS", &channels.to_string())
                .replace("CHANNEL", &channel.to_string())
                .replace("VECTOR", types[1])
                .replace("TYPE", types[0])
        };
        let shape = if channels == 1 { json!([8, 16]) } else { json!([8, 16, channels]) };
        let a = tensor("a", "input", dtype, &shape);
        let mut contract = contract(&filled(GATHER), &filled(GATHERED), &texture, &a, 240);
        let report = server.evaluate(&contract);
        assert_eq!(report["verdict"], "correct", "{more} {dtype}: {report:#}");
        let wrong = filled(GATHER).replace("v.x + 2 * v.y", "v.y + 2 * v.x");
        contract["kernel"]["source_code"] = json!(wrong);
        let report = server.evaluate(&contract);
        assert_eq!(report["verdict"], "wrong", "{more} {dtype}: {report:#}");
    }
}
