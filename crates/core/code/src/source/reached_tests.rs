use super::*;

/// What is left of files, without white space at the ends of lines and without empty lines.
fn left(files: &[&str]) -> Vec<String> {
    let shown = |(text, code): (&&str, Option<DeviceCode>)| {
        let text = code.map_or_else(|| (*text).to_owned(), |code| code.text);
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.collect::<Vec<_>>().join("\n")
    };
    files.iter().zip(reached_code(files).expect("device code")).map(shown).collect()
}

const KERNEL: &str = "__global__ void k(float* x) { x[0] = 1; }";

#[test]
fn what_no_kernel_names_goes() {
    for host in [
        "typedef vector<bool> HuffCode;\ntypedef map<unsigned char, HuffCode> M;",
        "using std::cerr;",
        "template <int n> using Results = std::vector<int>;",
        "const char *name = \"x\";",
        "struct option { const char* n; int a; };\nstatic struct option opts[] = { {\"a\", 1}, {0, 0} };",
        "template <typename Real> class P { public: P(unsigned n); private: unsigned m; };\n\
         template <typename Real> P<Real>::P(unsigned n) : m(n) {}\ntemplate class P<float>;",
        "class A { B* b; public: void f(); };\nclass B { A* a; public: void g(); };",
        "#include <thrust/device_vector.h>\nusing namespace thrust;\nthrust::device_vector<int> v;",
        "#include <thrust/scan.h>\nvoid f() { auto even = [] __device__ (int x) { return x % 2 == 0; }; thrust::g(even); }",
        "enum Level { LOW, HIGH };\nclass Log { static enum Level level; public: void f(); };",
        "static_assert(sizeof(std::string) == 32, \"x\");",
    ] {
        assert_eq!(left(&[&format!("{host}\n{KERNEL}")]), [KERNEL], "{host}");
    }
}

#[test]
fn what_a_kernel_reaches_stays() {
    for device in [
        "typedef float real;\ntypedef real (*fn)(real);\n__device__ fn f;",
        "enum Kind { A, B = 4 };\n__device__ int b = B;",
        "struct __align__(8) Pair { float m, s; };\n__device__ Pair p;",
        "struct Inner { int n; };\nstruct Outer { Inner inner; };\n__global__ void o(Outer x) {}",
        "#define ELEMENT Inner\nstruct Inner { int n; };\n__global__ void o(ELEMENT x) {}",
        "using Real = float;\ntemplate <class T> using Vec = T*;\n__global__ void o(Vec<Real> x) {}",
        "#include <thrust/complex.h>\n__global__ void o(thrust::complex<float> x) {}",
        "using namespace std;\nnamespace cg = cooperative_groups;\n__device__ cg::thread_block* b;",
    ] {
        assert_eq!(left(&[device]), [device], "{device}");
    }
}

#[test]
fn a_class_in_a_header_stays_where_the_source_names_it() {
    let header = "class Host { public: Host(int); };\nstruct Given { int n; };";
    let source = "#include \"h.h\"\nHost::Host(int) {}\n__global__ void k(Given g) {}";
    assert_eq!(
        left(&[header, source]),
        ["struct Given { int n; };", "#include \"h.h\"\n__global__ void k(Given g) {}"]
    );
}

#[test]
fn numbers_that_follow_from_numbers_become_constants() {
    let source = "const float a = 1.5f;\nconst float b = -a;\nstatic const int n = 4, m = n * 2;\n\
                  __global__ void k(float* x) { x[m] = b; }";
    let expected = "WG_CX float a = 1.5f;\nWG_CX float b = -a;\nstatic WG_CX int n = 4, m = n * 2;\n\
                    __global__ void k(float* x) { x[m] = b; }";
    assert_eq!(left(&[source]), [expected]);
}

#[test]
fn a_file_without_kernels_and_one_that_does_not_pair_have_none() {
    assert!(reached_code(&["int f() { return 1; }"]).is_none());
    assert!(reached_code(&["__global__ void k() {"]).is_none());
}

proptest::proptest! {
    #[test]
    fn any_text_keeps_its_lines(source in "[a-z_(){}<>=;\\[\\] \\n\"'#/*]{0,80}") {
        let source = format!("{source}\n__global__ void k() {{}}");
        for code in reached_code(&[&source]).into_iter().flatten().flatten() {
            assert_eq!(code.text.len(), source.len());
            assert_eq!(code.text.lines().count(), source.lines().count());
        }
    }
}
