use super::*;

fn only(source: &str) -> SourceKernel {
    let mut kernels = find_kernels(source);
    assert_eq!(kernels.len(), 1, "{kernels:?}");
    kernels.remove(0)
}

fn names(kernel: &SourceKernel) -> Vec<&str> {
    kernel.params.iter().map(|p| p.as_deref().unwrap_or("?")).collect()
}

#[test]
fn a_plain_kernel() {
    let k = only("__global__ void add(const float* a, float *__restrict__ b, unsigned int n) {}");
    assert_eq!((k.name.as_str(), k.extern_c, k.template, k.internal), ("add", false, false, false));
    assert_eq!(names(&k), ["a", "b", "n"]);
}

#[test]
fn c_linkage_by_word_and_by_block() {
    assert!(only("extern \"C\" __global__ void k(int a) {}").extern_c);
    assert!(only("extern \"C\" { __global__ void k(int a) {} }").extern_c);
    let two = find_kernels("extern \"C\" { void f(); } __global__ void k() {}");
    assert!(!two[0].extern_c);
}

#[test]
fn attributes_before_the_name_are_not_the_name() {
    let source = "__global__ void __launch_bounds__(256, 2) k(int a) {}
        __launch_bounds__(128) __global__ void l(int b) {}
        __global__ __cluster_dims__(2, 1, 1) void __attribute__((noinline)) m(int c) {}";
    let found: Vec<String> = find_kernels(source).into_iter().map(|k| k.name).collect();
    assert_eq!(found, ["k", "l", "m"]);
}

#[test]
fn namespaces_make_the_name() {
    assert_eq!(only("namespace a { namespace b { __global__ void k() {} } }").name, "a::b::k");
    assert_eq!(only("namespace a::b { __global__ void k() {} }").name, "a::b::k");
    assert_eq!(only("inline namespace v1 { __global__ void k() {} }").name, "v1::k");
    let after = only("namespace a { struct S { int x; }; void f() {} } __global__ void k() {}");
    assert_eq!(after.name, "k");
}

#[test]
fn internal_kernels_are_marked() {
    let unnamed = only("namespace { __global__ void k(float* x) {} }");
    assert_eq!((unnamed.name.as_str(), unnamed.internal), ("k", true));
    assert!(only("static __global__ void k() {}").internal);
    assert!(only("__global__ static void k() {}").internal);
}

#[test]
fn templates_are_marked_and_their_instances_are_not_kernels_of_the_source() {
    let k = only(
        "template <typename T, int N = (3 > 2)> __global__ void k(T* x, T v) {}
         template <> __global__ void k<int>(int* x, int v) {}
         template __global__ void k<float>(float*, float);",
    );
    assert!(k.template);
    assert_eq!(names(&k), ["x", "v"]);
}

#[test]
fn what_only_looks_like_a_kernel() {
    assert!(find_kernels("// __global__ void a() {}\n/* __global__ void b() {} */").is_empty());
    assert!(find_kernels("const char* s = \"__global__ void a() {}\";").is_empty());
    assert!(find_kernels("#define K __global__ void a() {}\n").is_empty());
    assert!(find_kernels("struct S { __global__ void a() {} };").is_empty());
    assert!(find_kernels("__global__").is_empty());
    assert!(find_kernels("__global__ void k(").is_empty());
    assert!(find_kernels("__global__ void k;").is_empty());
}

#[test]
fn a_declaration_and_its_definition_are_one() {
    let source = "extern \"C\" __global__ void k(int, float*);
        extern \"C\" __global__ void k(int n, float* x) {}";
    assert_eq!(names(&only(source)), ["n", "x"]);
}

#[test]
fn overloads_stay_apart() {
    assert_eq!(find_kernels("__global__ void k(int a) {} __global__ void k(float b) {}").len(), 2);
}

#[test]
fn parameter_names_where_they_are_plain() {
    let cases: [(&str, &[&str]); 9] = [
        ("", &[]),
        ("void", &[]),
        ("int", &["?"]),
        ("unsigned int, float", &["?", "?"]),
        ("P p, ns::Q q, const P", &["p", "q", "?"]),
        ("Vec<float, 3> v, Map<int, Vec<float, 2>> m", &["v", "m"]),
        ("float a[16], int n = (1, 2)", &["a", "n"]),
        ("float (*f)(int), int n", &["?", "n"]),
        ("const __grid_constant__ P p, float const* const x", &["p", "x"]),
    ];
    for (list, expected) in cases {
        let k = only(&format!("__global__ void k({list}) {{}}"));
        assert_eq!(names(&k), expected, "{list}");
    }
}

#[test]
fn the_number_of_kernels_is_bounded() {
    let source: String = (0..5000).map(|i| format!("__global__ void k{i}(int a) {{}}\n")).collect();
    assert_eq!(find_kernels(&source).len(), MAX_KERNELS);
}

proptest::proptest! {
    #[test]
    fn any_text_is_searched(
        source in "(__global__|namespace|template|extern \"C\"|[{}();,<>]| a|::|void ){0,40}",
    ) {
        find_kernels(&source);
    }
}
