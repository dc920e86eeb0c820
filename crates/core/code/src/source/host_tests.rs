use super::*;

fn left_out(source: &str) -> Vec<String> {
    without_host_code(source).map_or_else(Vec::new, |code| code.left_out)
}

fn kept(source: &str) -> String {
    let text = without_host_code(source).expect("host code").text;
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

const FILE: &str = r#"
#include <vector>
#define HD __host__ __device__
typedef struct { float x, y; } point;
struct alignas(16) Body { float m; HD float twice() const { return 2 * m; } };
enum Kind { A, B };
static const int N = 1 << 10;
constexpr float SCALE = 2.0f;
const float WEIGHTS[3] = {1, 2, 3};
float* d_x;
int count = 0, *more[4];
std::vector<float> all{1, 2};
__constant__ float taps[8];
double getRand();
HD inline float half_of(float x) { return x / 2; }
template <class T, int W = (4 > 2)> __device__ T own(T x) { return x + W; }
template <class T> void host_template(T* p) { cudaFree(p); }
struct Body make_body(float m) { Body b; b.m = m; return b; }
namespace { namespace deep {
__global__ void kernel(float* x, int n) { int i = threadIdx.x; if (i < n) x[i] = own(half_of(x[i])) * SCALE; }
void launch(float* x) { kernel<<<1, 32>>>(x, N); }
} }
extern "C" void run() { deep::launch(d_x); }
extern "C" { __global__ void other(int* y) { *y = N; } int three() { return 3; } }
auto main(int argc, char** argv) -> int { if (argc) { return 1; } return 0; }
"#;

#[test]
fn functions_and_variables_of_the_host_go() {
    let found = without_host_code(FILE).unwrap();
    let names = [
        "WEIGHTS",
        "d_x",
        "count",
        "all",
        "getRand",
        "host_template",
        "make_body",
        "launch",
        "run",
        "three",
        "main",
    ];
    assert_eq!(found.left_out, names);
    assert_eq!(found.count, names.len());
}

#[test]
fn what_the_device_may_use_stays_where_it_is() {
    let text = without_host_code(FILE).unwrap().text;
    assert_eq!(text.len(), FILE.len());
    let gone = [
        "const float WEIGHTS",
        "float* d_x",
        "int count",
        "std::vector<float>",
        "double getRand",
        "template <class T> void host_template",
        "struct Body make_body",
        "void launch",
        "extern \"C\" void run",
        "auto main",
    ];
    for (before, now) in FILE.lines().zip(text.lines()) {
        let expected = match before {
            line if gone.iter().any(|start| line.starts_with(start)) => " ".repeat(line.len()),
            line => line.replace("int three() { return 3; }", &" ".repeat(25)),
        };
        assert_eq!(now, expected);
    }
}

#[test]
fn classes_of_the_host_go_where_nothing_names_them() {
    let source = "struct Clock { std::chrono::time_point t; double now() { return t; } };
        class Run : public Base { Clock clock; void go(); };
        struct Plain { int n; };
        struct Given { int n; Given(int n) : n(n) {} };
        struct Both { __device__ int get() { return 1; } };
        void run(Run& r) { r.go(); }
        __global__ void k(Given g, int* x) { x[0] = g.n; }";
    assert_eq!(left_out(source), ["Clock", "Run", "run"]);
}

#[test]
fn a_file_of_kernels_alone_has_none() {
    for source in [
        "",
        "__global__ void k(float* x) { x[0] = 1; }",
        "#define API __global__\nAPI void k() {}",
        "template <typename T> struct S { void f() { } };\nusing F = int(*)(int);",
        "static_assert(sizeof(int) == 4, \"x\");\nSOME_MACRO;\nunion U { int a; float b; };",
        "extern __shared__ float tile[];\n__device__ int a[2] = {1, 2};",
    ] {
        assert_eq!(left_out(source), [""; 0], "{source}");
    }
}

#[test]
fn what_does_not_pair_is_left_alone() {
    for source in ["int f() {", "void f() }", "int a[2;", "namespace a { void f() {}", "x"] {
        assert_eq!(without_host_code(source), None, "{source}");
    }
    assert_eq!(without_host_code(&format!("{}void f();", "namespace a {".repeat(200))), None);
}

#[test]
fn texts_and_comments_hide_nothing() {
    let source =
        "void f() { puts(\"}\"); /* } */ }\n__global__ void k() {} // main() {\nint g(int);";
    assert_eq!(left_out(source), ["f", "g"]);
    assert!(kept(source).starts_with("/* } */ __global__ void k() {} // main() {"));
}

proptest::proptest! {
    #[test]
    fn any_text_keeps_its_lines(source in "[a-z_(){}<>=;\\[\\] \\n\"'#/*]{0,80}") {
        if let Some(code) = without_host_code(&source) {
            assert_eq!(code.text.len(), source.len());
            assert_eq!(code.text.lines().count(), source.lines().count());
        }
    }
}
