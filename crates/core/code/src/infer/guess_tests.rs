//! Contracts of kernels in common styles.

use super::*;

fn parameters(all: &[(&str, &str)]) -> Vec<CompiledParameter> {
    let parameter = |(c_type, name): &(&str, &str)| CompiledParameter {
        name: Some((*name).to_owned()),
        c_type: (*c_type).to_owned(),
        bytes: if c_type.ends_with('*') { 8 } else { 4 },
    };
    all.iter().map(parameter).collect()
}

#[test]
fn guards_give_sizes_and_the_grid() {
    let source = "__global__ void k(const float* a, float* c, int rows, int cols) {\n\
        int r = blockIdx.y * blockDim.y + threadIdx.y; int q = blockIdx.x * blockDim.x + threadIdx.x;\n\
        if (r < rows && q < cols) c[r * cols + q] += a[q]; }";
    let all = [("const float*", "a"), ("float*", "c"), ("int", "rows"), ("int", "cols")];
    let guess = contract(Some(source), "k", &parameters(&all), &Wishes::default()).unwrap();
    let args = guess.io["args"].as_array().unwrap();
    assert_eq!(args[0]["tensor_spec"]["shape"], json!([256]));
    assert_eq!((&args[0]["role"], &args[1]["role"]), (&json!("input"), &json!("inout")));
    assert_eq!(args[1]["tensor_spec"]["shape"], json!([256, 256]));
    assert_eq!(
        guess.io["launch"]["grid"],
        json!({"x": "ceil_div(cols, 16)", "y": "ceil_div(rows, 16)"})
    );
    assert_eq!(guess.assumptions().len(), 5);
    let text = crate::infer::text(&guess, "cuda", "k.cu", "k", true);
    assert!(text.contains("# input, 256 elements") && text.contains("#   \"c\":"), "{text}");
}

#[test]
fn what_cannot_be_given_is_said() {
    let refused =
        contract(None, "k", &parameters(&[("Body*", "p")]), &Wishes::default()).unwrap_err();
    assert!(refused.contains("Body* p"), "{refused}");
    let unknown = CompiledParameter {
        name: None,
        c_type: "8-byte value of unknown type".to_owned(),
        bytes: 8,
    };
    let guess = contract(None, "k", &[unknown], &Wishes::default()).unwrap();
    assert!(guess.reasons[0].contains("a guess too"), "{:?}", guess.reasons);
}

/// The cost of hostile code is bounded by its length.
#[test]
fn definitions_in_circles_end() {
    let mut code = String::from("__global__ void k(float* x, int n) { int a0 = a1 + a2;");
    for at in 0..300 {
        code.push_str(&format!(
            "a{at} = a{} + a{} * a{};",
            (at + 1) % 300,
            (at + 7) % 300,
            (at + 13) % 300
        ));
    }
    code.push_str("x[a0] = a5[a1[a2]]; }");
    contract(Some(&code), "k", &parameters(&[("float*", "x"), ("int", "n")]), &Wishes::default())
        .unwrap();
}

/// Returns the launch of a kernel, and the roles and sizes of its tensors, as text.
fn guessed(source: &str, all: &[(&str, &str)]) -> String {
    let name = crate::infer::entries(source)[0].name.clone();
    let guess = contract(Some(source), &name, &parameters(all), &Wishes::default()).unwrap();
    let launch = &guess.io["launch"];
    let args = guess.io["args"].as_array().unwrap().iter();
    let tensors = args.filter(|arg| arg["type"] == "tensor").map(|arg| {
        let shape = arg["tensor_spec"]["shape"].as_array().unwrap().iter();
        let elements: u64 = shape.map(|extent| extent.as_u64().unwrap()).product();
        format!("{} {} {elements}", arg["name"], arg["role"])
    });
    let text = format!(
        "{} {} {}",
        launch["grid"],
        launch["block"],
        tensors.collect::<Vec<_>>().join(", ")
    );
    text.replace('"', "")
}

#[test]
fn macros_tell_of_loops_and_of_vectors() {
    let all = [("const float*", "x"), ("float*", "y"), ("int", "n")];
    let source = "#define LOOP(i, n) \\\n for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += blockDim.x * gridDim.x)\n\
        template <typename T> __global__ void k(const T* x, T* y, int n) { LOOP(i, n) { y[i] = x[i]; } }";
    assert_eq!(guessed(source, &all), "{x:ceil_div(n, 256)} {x:256} x input 65536, y output 65536");
    let source = "#define V(p) (reinterpret_cast<float4*>(&(p))[0])\n\
        __global__ void k(float* x, float* y, int n) { int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x); V(y[i]) = V(x[i]); if (i < n) {} }";
    let all = [("float*", "x"), ("float*", "y"), ("int", "n")];
    assert_eq!(
        guessed(source, &all),
        "{x:ceil_div(n, 1024)} {x:256} x input 65536, y output 65536"
    );
}

#[test]
fn pointers_that_move_and_stores_by_functions_are_followed() {
    let all = [("float*", "x"), ("float*", "y"), ("float*", "z"), ("int", "n")];
    let source = "__global__ void k(float* x, float* y, float* z, int n) { x += blockIdx.x * 10; y += n; \
        if (z != nullptr && blockIdx.x < n) { __stcs(x + threadIdx.x % 10, __ldg(&y[3])); } }";
    assert_eq!(
        guessed(source, &all),
        "{x:ceil_div(n, 256)} {x:256} x output 2560, y input 65540, z inout 1"
    );
    let source = "__global__ void k(float* x, float* y, float* z, int n) { int i = threadIdx.x; \
        for (int t = 0; t < n; ++t) { x += 7; z[i] = *x; } other(&y[i]); const float* const at = z + i; at[9]; }";
    let guess = guessed(source, &all);
    assert!(guess.contains("y inout 256") && guess.contains("z inout 265"), "{guess}");
}

#[test]
fn tiles_are_what_blocks_have() {
    let all = [("float*", "c"), ("int", "m"), ("int", "n")];
    let source = "#define MASK_WIDTH 5\n#define O_TILE 12\n#define BLOCK_ROWS 8\n__global__ void k(float* c, int m, int n) { \
        int y = blockIdx.y * O_TILE + threadIdx.y - MASK_WIDTH / 2, x = blockIdx.x * O_TILE + threadIdx.x; \
        __shared__ float s[3 * 256 + 3]; if (y < m && x < n) c[y * n + x] = 1; }";
    assert_eq!(
        guessed(source, &all),
        "{x:ceil_div(n, 12),y:ceil_div(m, 12)} {x:12,y:12} c output 65536"
    );
    let source = "template <const int BM, const int BN, const int TM, const int TN> __global__ void __launch_bounds__((BM * BN) / (TM * TN), 1) \
        k(float* c, int m, int n) { const unsigned row = blockIdx.y; c += row * BM * n + blockIdx.x * BN; c[threadIdx.x] = 1; }";
    assert!(guessed(source, &all).starts_with("{x:ceil_div(n, 64),y:ceil_div(m, 64)} {x:64} "));
    let source = "template <const unsigned SIDE> __global__ void k(float* c, int m, int n) { \
        int row = blockIdx.x * SIDE + threadIdx.x / SIDE, col = blockIdx.y * SIDE + threadIdx.x % SIDE; if (row < m && col < n) c[row * n + col] = 1; }";
    assert_eq!(
        guessed(source, &all),
        "{x:ceil_div(m, 32),y:ceil_div(n, 32)} {x:1024} c output 65536"
    );
    let source = "__global__ void k(float* c, int m, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; int all = m * n; if (i >= all) return; c[i] = 1; }";
    assert!(
        guessed(source, &all).starts_with("{x:ceil_div(m * n, 256)} "),
        "{}",
        guessed(source, &all)
    );
}

#[test]
fn textures_and_surfaces_are_over_tensors() {
    let source = "__global__ void k(cudaTextureObject_t tex, cudaSurfaceObject_t out, cudaSurfaceObject_t both, const \
                  cudaTextureObject_t line, int width, int height, int depth) {\n\
                  int x = threadIdx.x; float4 v = tex3D<float4>(tex, x, 1, 2);\n\
                  unsigned char c = v.x; surf2Dwrite(c, out, x, 0); surf2Dwrite(c, out, x, 1);\n\
                  ushort2 u; surf2DLayeredread(&u, both, 4 * x, 0, 0);\n\
                  surf2DLayeredwrite(u, both, 4 * x, 0, 1); v.x += tex1D<float>(line, x); }";
    let handle = |name| ("unsigned long long", name);
    let all = [handle("tex"), handle("out"), handle("both"), handle("line")];
    let sizes = [("int", "width"), ("int", "height"), ("int", "depth")];
    let all = all.into_iter().chain(sizes).collect::<Vec<_>>();
    let guess = contract(Some(source), "k", &parameters(&all), &Wishes::default()).unwrap();
    let args = guess.io["args"].as_array().unwrap();
    let value = |name: &str| args.iter().find(|arg| arg["name"] == name).unwrap();
    let extents = ["depth", "height", "width"].map(|name| value(name)["value"].clone());
    let [depth, height, width] = &extents;
    assert_eq!(value("tex")["texture"], json!({"tensor": "tex_data", "channels": 4}));
    assert_eq!(value("tex_data")["tensor_spec"]["shape"], json!([depth, height, width, 4]));
    assert_eq!(value("tex_data")["role"], "input");
    assert_eq!(value("out")["surface"], json!({"tensor": "out_data"}));
    assert_eq!(value("out_data")["role"], "output");
    let texels = json!({"shape": [height, width], "dtype": "uint8"});
    assert_eq!(value("out_data")["tensor_spec"], texels);
    let both = json!({"tensor": "both_data", "channels": 2, "layered": true});
    assert_eq!((&value("both")["surface"], &value("both_data")["role"]), (&both, &json!("inout")));
    assert_eq!(value("both_data")["tensor_spec"]["dtype"], "uint16");
    assert_eq!(value("line")["texture"], json!({"tensor": "line_data", "array": true}));
    assert_eq!(guess.reasons.len(), args.len());

    for (body, why) in [
        ("y[0] = read(tex);", "`tex` is a texture, whose number of dimensions"),
        ("y[0] = tex2D<double>(tex, 0, 0);", "1 × float64"),
        ("y[0] = tex2D<float3>(tex, 0, 0).x;", "3 × float32"),
        ("y[0] = tex2D<Mine>(tex, 0, 0).x;", "type `Mine`"),
    ] {
        let source = format!("__global__ void k(float* y, cudaTextureObject_t tex) {{ {body} }}");
        let refused = contract(
            Some(&source),
            "k",
            &parameters(&[("float*", "y"), handle("tex")]),
            &Wishes::default(),
        );
        let refused = refused.unwrap_err();
        assert!(refused.contains(why) && refused.contains("by hand"), "{refused}");
    }
}

#[test]
fn arrays_of_pointers_point_into_a_tensor() {
    let source = "__global__ void k(const float* const* a, float** c, int batch, int n) {\n\
        int b = blockIdx.y; int i = blockIdx.x * blockDim.x + threadIdx.x; if (b >= batch || i >= n) return;\n\
        const float* x = a[b]; c[b][i] = 2 * x[i]; }";
    let all = [("const float* const*", "a"), ("float**", "c"), ("int", "batch"), ("int", "n")];
    let guess = contract(Some(source), "k", &parameters(&all), &Wishes::default()).unwrap();
    let args = guess.io["args"].as_array().unwrap();
    let names = args.iter().map(|arg| arg["name"].as_str().unwrap()).collect::<Vec<_>>();
    assert_eq!(names, ["a", "c", "batch", "n", "a_data", "c_data"]);
    let (batch, n) = (args[2]["value"].as_u64().unwrap(), args[3]["value"].as_u64().unwrap());
    for (at, tensor, role) in [(0, 4, "input"), (1, 5, "output")] {
        let entry = &args[at]["pointers"][0];
        assert_eq!(args[at]["type"], "pointers");
        assert_eq!((&entry["tensor"], &entry["count"]), (&args[tensor]["name"], &json!(batch)));
        let shape = &args[tensor]["tensor_spec"]["shape"];
        assert_eq!((&shape[0], &shape[1]), (&json!(batch), &entry["step"]));
        assert!(shape[1].as_u64().unwrap() >= n, "{guess:?}");
        assert_eq!(args[tensor]["role"], role);
    }
    assert_eq!(guess.assumptions().len(), 7);
    // Deeper pointers have no form in a contract.
    let refused =
        contract(None, "k", &parameters(&[("float***", "p")]), &Wishes::default()).unwrap_err();
    assert!(refused.contains("write the contract by hand"), "{refused}");
}

#[test]
fn numbers_and_grids_of_the_file_are_taken() {
    let source = "#define N 1024\n__global__ void k(const float* a, float* c, int width, float rate) {\n\
        int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
        if (i < N) c[i] = a[i] * rate * width; }\n\
        int main() { int blocks = (N + 127) / 128; k<<<blocks, 128>>>(a, c, 24, 0.5f); }";
    let all = [("const float*", "a"), ("float*", "c"), ("int", "width"), ("float", "rate")];
    assert_eq!(guessed(source, &all), "{x:8} {x:128} a input 1024, c output 1024");
    let guess = contract(Some(source), "k", &parameters(&all), &Wishes::default()).unwrap();
    let values = guess.io["args"].as_array().unwrap()[2..].iter().map(|arg| &arg["value"]);
    assert_eq!(values.collect::<Vec<_>>(), [&json!(24), &json!(0.5)]);
    assert_eq!(guess.reasons[2], "24, as the file passes it");
}

#[test]
fn large_extents_of_a_file_shrink_together() {
    let source = "__global__ void k(const float* a, float* c, size_t fours, size_t all) {\n\
        const float4* a4 = reinterpret_cast<const float4*>(a);\n\
        float4* c4 = reinterpret_cast<float4*>(c);\n\
        size_t i = blockIdx.x * blockDim.x + threadIdx.x;\n\
        if (i < fours) c4[i] = a4[i]; }\n\
        int main() { int n = 1 << 20; int fours = n / 4; k<<<(fours + 255) / 256, 256>>>(a, c, fours, n); }";
    let all = [
        ("const float*", "a"),
        ("float*", "c"),
        ("unsigned long", "fours"),
        ("unsigned long", "all"),
    ];
    let expected = "{x:ceil_div(fours, 256)} {x:256} a input 65536, c output 65536";
    assert_eq!(guessed(source, &all), expected);
    let guess = contract(Some(source), "k", &parameters(&all), &Wishes::default()).unwrap();
    assert_eq!(guess.reasons[2], "16384, less than the 262144 that the file passes");
}

#[test]
fn dynamic_shared_memory_is_as_large_as_its_indices_reach() {
    let kernel = "__global__ void k(float* c, int d) { extern __shared__ float tile[];\n\
        float* second = &tile[32 * d]; second[threadIdx.x * d + 7] = c[threadIdx.x];\n\
        c[threadIdx.x] = second[threadIdx.x * d + 7] + tile[threadIdx.x]; }";
    let all = [("float*", "c"), ("int", "d")];
    let bytes = |source: &str| {
        let guess = contract(Some(source), "k", &parameters(&all), &Wishes::default()).unwrap();
        guess.io["launch"]["shared_memory_bytes"].as_u64().unwrap()
    };
    let launch = |third: &str| format!("{kernel}\nint main() {{ k<<<1, 32{third}>>>(c, 64); }}");
    assert!(bytes(&launch("")) >= 4 * (32 * 64 + 31 * 64 + 8));
    assert_eq!(bytes(&launch(", 20000 * sizeof(float) / 4")), 20_000);
}

#[test]
fn arrays_of_pointers_fix_the_grid() {
    let source = "__global__ void k(float** c, int n) {\n\
        int i = threadIdx.x; if (i < n) c[blockIdx.x][i] = 1; }";
    let all = [("float**", "c"), ("int", "n")];
    let guess = contract(Some(source), "k", &parameters(&all), &Wishes::default()).unwrap();
    assert_eq!(guess.io["launch"]["grid"], json!({"x": 4}));
}

#[test]
fn a_kernel_without_parameters_has_a_contract() {
    let guess = contract(Some("__global__ void k() {}"), "k", &[], &Wishes::default()).unwrap();
    let text = crate::infer::text(&guess, "cuda", "k.cu", "k", false);
    assert!(text.contains("    args: []\n"), "{text}");
}

#[test]
fn pointers_to_structures_of_equal_fields_are_tensors_of_their_numbers() {
    let kernel = |fields: &str| {
        format!(
            "struct Body {{ {fields} }};\n__global__ void k(Body* all, int n) {{\n\
             int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) all[i].mass += 1; }}\n\
             int main() {{ k<<<1, 64>>>(all, 50); }}"
        )
    };
    let all = [("Body*", "all"), ("int", "n")];
    let guess =
        |fields: &str| contract(Some(&kernel(fields)), "k", &parameters(&all), &Wishes::default());
    let found = guess("float3 position, velocity; float mass;").unwrap();
    let spec = &found.io["args"][0]["tensor_spec"];
    assert_eq!((&spec["shape"], &spec["dtype"]), (&json!([350]), &json!("float32")));
    assert_eq!(
        guess("double mass; double x[4];").unwrap().io["args"][0]["tensor_spec"]["shape"],
        json!([250])
    );
    for other in [
        "float mass; int id;",
        "float mass; float4 x;",
        "float mass; float* x;",
        "float mass; float f() { return 1; }",
        "",
    ] {
        assert!(guess(other).unwrap_err().contains("Body* all"), "{other}");
    }
}

#[test]
fn what_is_asked_for_is_no_guess() {
    let source = "__global__ void k(const float* a, float* c, int n, float rate) {\n\
        int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) c[i] = a[i] * rate; }\n\
        int main() { k<<<64, 128>>>(a, c, 8192, 0.5f); }";
    let all = [("const float*", "a"), ("float*", "c"), ("int", "n"), ("float", "rate")];
    let values = [("n".to_owned(), 300_000.0), ("rate".to_owned(), 3.0)];
    let mut wishes = Wishes { values: values.into(), ..Wishes::default() };
    let guess = |wishes: &Wishes| contract(Some(source), "k", &parameters(&all), wishes).unwrap();
    let found = guess(&wishes);
    assert_eq!(found.io["args"][1]["tensor_spec"]["shape"], json!([300_000]));
    assert_eq!(
        (&found.io["args"][2]["value"], &found.io["args"][3]["value"]),
        (&json!(300_000), &json!(3.0))
    );
    assert_eq!(found.reasons[2], "300000, as asked");
    assert_eq!(found.io["launch"]["grid"]["x"], "ceil_div(n, 128)");
    (wishes.block, wishes.grid) = (Some([64, 1, 1]), Some([7, 2, 1]));
    let found = guess(&wishes);
    assert_eq!(found.io["launch"], json!({"grid": {"x": 7, "y": 2}, "block": {"x": 64}}));
}

#[test]
fn an_element_behind_a_cast_is_no_pointer() {
    let source = "__global__ void k(float* x, float* y, int w, int h) {\n\
        int row = blockIdx.x * blockDim.x + threadIdx.x; int col = blockIdx.y * blockDim.y + threadIdx.y;\n\
        if (row < h && col < w) { float4 v = reinterpret_cast<float4*>(&x[row * w + col * 4])[0];\n\
        auto u = reinterpret_cast<float4*>(&x[row * w + col * 4])[0]; y[row] = v.x + u.y; } }";
    let all = [("float*", "x"), ("float*", "y"), ("int", "w"), ("int", "h")];
    let guess = contract(Some(source), "k", &parameters(&all), &Wishes::default()).unwrap();
    let shape = guess.io["args"][0]["tensor_spec"]["shape"].as_array().unwrap().iter();
    let elements: u64 = shape.map(|extent| extent.as_u64().unwrap()).product();
    assert!(elements > 256 * 255 + 4 * 255, "{elements}");
}

#[test]
fn many_iterations_of_a_file_shrink() {
    let source = "__global__ void k(int iterations, unsigned long long* n) {\n\
        unsigned long long all = blockIdx.x; for (int i = 0; i < iterations; i++) all += i & 1;\n\
        atomicAdd(n, all); }\nint main() { k<<<256, 256>>>(100000, n); }";
    let all = [("int", "iterations"), ("unsigned long long*", "n")];
    let guess = contract(Some(source), "k", &parameters(&all), &Wishes::default()).unwrap();
    let iterations = guess.io["args"][0]["value"].as_u64().unwrap();
    assert!(iterations <= 10_000, "{iterations}");
}

#[test]
fn vectors_have_the_size_of_their_elements() {
    for (name, bytes) in [
        ("float4", 16),
        ("double2", 16),
        ("ulonglong2", 16),
        ("float2", 8),
        ("__nv_bfloat162", 4),
        ("half2", 4),
        ("uchar4", 4),
        ("short2", 4),
        ("half", 2),
        ("uint8_t", 1),
    ] {
        assert_eq!(crate::infer::kinds::size_of(name), Some(bytes), "{name}");
    }
    assert_eq!(crate::infer::kinds::size_of("Mine"), None);
}
