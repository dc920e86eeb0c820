use super::*;

fn texts(items: &[&str]) -> Vec<String> {
    items.iter().map(|t| (*t).to_owned()).collect()
}

/// Returns the key of a fixed compilation after `change`.
fn key_with(change: impl FnOnce(&mut Owned)) -> Key {
    let mut owned = Owned {
        kind: KernelType::Cuda,
        code: b"__global__ void k() {}".to_vec(),
        options: texts(&["--use_fast_math"]),
        arch_suffix: None,
        backend: Backend::Nvrtc,
        names: texts(&["k<float>"]),
        fields: texts(&["n"]),
        kernel_name: Some("k".into()),
        target: Target { compute_capability: (9, 0), driver_version: 13000, emulated: false },
        lineinfo: false,
        compiler: Some(Compiler { name: "nvrtc 13.0".into(), stamp: (1, 2) }),
        prelude: "prelude".into(),
        headers: texts(&["13.0"]),
    };
    change(&mut owned);
    owned.key()
}

struct Owned {
    kind: KernelType,
    code: Vec<u8>,
    options: Vec<String>,
    arch_suffix: Option<char>,
    backend: Backend,
    names: Vec<String>,
    fields: Vec<String>,
    kernel_name: Option<String>,
    target: Target,
    lineinfo: bool,
    compiler: Option<Compiler>,
    prelude: String,
    headers: Vec<String>,
}

impl Owned {
    fn key(&self) -> Key {
        KeyInputs {
            kind: self.kind,
            code: &self.code,
            options: &self.options,
            arch_suffix: self.arch_suffix,
            backend: self.backend,
            name_expressions: &self.names,
            fields: &self.fields,
            kernel_name: self.kernel_name.as_deref(),
            target: self.target,
            lineinfo: self.lineinfo,
            compiler: self.compiler.clone(),
            prelude: &self.prelude,
            headers: &self.headers,
        }
        .key()
    }
}

#[track_caller]
fn matters(change: impl FnOnce(&mut Owned)) {
    assert_ne!(key_with(change), key_with(|_| {}));
}

#[test]
fn equal_inputs_have_equal_keys() {
    assert_eq!(key_with(|_| {}), key_with(|_| {}));
}

#[test]
fn the_kind_matters() {
    matters(|i| i.kind = KernelType::Ptx);
}

#[test]
fn the_code_matters() {
    matters(|i| i.code.push(b' '));
}

#[test]
fn the_options_and_their_order_matter() {
    matters(|i| i.options.clear());
    let ab = key_with(|i| i.options = texts(&["-DA=1", "-UA"]));
    assert_ne!(ab, key_with(|i| i.options = texts(&["-UA", "-DA=1"])));
}

#[test]
fn the_architecture_suffix_matters() {
    matters(|i| i.arch_suffix = Some('a'));
}

#[test]
fn the_backend_matters() {
    matters(|i| i.backend = Backend::Nvcc);
}

#[test]
fn the_name_expressions_matter() {
    matters(|i| i.names.push("k<int>".into()));
}

#[test]
fn the_fields_matter() {
    matters(|i| i.fields.push("inner.n".into()));
}

#[test]
fn the_kernel_name_matters() {
    matters(|i| i.kernel_name = None);
    matters(|i| i.kernel_name = Some("l".into()));
}

#[test]
fn every_part_of_the_target_matters() {
    matters(|i| i.target.compute_capability.0 = 8);
    matters(|i| i.target.compute_capability.1 = 3);
    matters(|i| i.target.driver_version = 12090);
    matters(|i| i.target.emulated = true);
}

#[test]
fn line_information_matters() {
    matters(|i| i.lineinfo = true);
}

#[test]
fn the_compiler_matters() {
    matters(|i| i.compiler = None);
    matters(|i| i.compiler = Some(Compiler { name: "nvrtc 13.1".into(), stamp: (1, 2) }));
    matters(|i| i.compiler = Some(Compiler { name: "nvrtc 13.0".into(), stamp: (2, 2) }));
    matters(|i| i.compiler = Some(Compiler { name: "nvrtc 13.0".into(), stamp: (1, 3) }));
}

#[test]
fn the_prelude_matters() {
    matters(|i| i.prelude.push('x'));
}

#[test]
fn the_headers_matter() {
    matters(|i| i.headers.clear());
}

#[test]
fn neighbouring_fields_do_not_run_into_each_other() {
    let one = key_with(|i| {
        i.options = texts(&["a"]);
        i.names = texts(&["b", "c"]);
    });
    let other = key_with(|i| {
        i.options = texts(&["a", "b"]);
        i.names = texts(&["c"]);
    });
    assert_ne!(one, other);
    let none = key_with(|i| i.kernel_name = None);
    assert_ne!(none, key_with(|i| i.kernel_name = Some(String::new())));
}
