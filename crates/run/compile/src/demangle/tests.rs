use super::*;
use crate::ctype::CType;

fn ptr(pointee: CType) -> CType {
    CType::Pointer { pointee: Some(Box::new(pointee)), is_const: false }
}

fn const_ptr(pointee: CType) -> CType {
    CType::Pointer { pointee: Some(Box::new(pointee)), is_const: true }
}

fn void_ptr() -> CType {
    CType::Pointer { pointee: None, is_const: false }
}

fn named(name: &str) -> CType {
    CType::Aggregate(name.into())
}

#[track_caller]
fn check(symbol: &str, name: &str, params: &[CType]) {
    let function = demangle(symbol).unwrap_or_else(|| panic!("{symbol} is not understood"));
    let found: Vec<CType> = function.params.iter().map(Type::ctype).collect();
    assert_eq!((function.name.as_str(), found.as_slice()), (name, params), "{symbol}");
}

#[test]
fn readable_names() {
    for (symbol, name) in [
        ("_Z10vector_addPKfS0_Pfi", "vector_add"),
        ("_ZN2ns5scaleIfEEvPT_i", "ns::scale<float>"),
        ("vector_add", "vector_add"),
        ("void tmpl<float>(T1 *, int)", "void tmpl<float>(T1 *, int)"),
        ("_Znonsense", "_Znonsense"),
        ("", ""),
    ] {
        assert_eq!(readable(symbol), name);
    }
}

#[test]
fn built_in_types() {
    use CType::*;
    check("_Z1kv", "k", &[]);
    check("_Z1kbcahst", "k", &[Bool, I8, I8, U8, I16, U16]);
    check("_Z1kijlmxy", "k", &[I32, U32, I64, U64, I64, U64]);
    check("_Z1kfd6__half13__nv_bfloat16", "k", &[F32, F64, F16, Bf16]);
    check("_Z1kDF16_DF16bDh", "k", &[F16, Bf16, F16]);
}

#[test]
fn pointers() {
    check(
        "_Z1kPfPKfPvPPf",
        "k",
        &[ptr(CType::F32), const_ptr(CType::F32), void_ptr(), ptr(ptr(CType::F32))],
    );
    check("_Z1kPVKi", "k", &[const_ptr(CType::I32)]);
    check("_Z1kPFvPfE", "k", &[void_ptr()]);
}

#[test]
fn substitutions_refer_to_what_came_before() {
    check(
        "_Z4axpyPKfS0_Pff",
        "axpy",
        &[const_ptr(CType::F32), const_ptr(CType::F32), ptr(CType::F32), CType::F32],
    );
    check("_Z1k1PS_PS_S0_", "k", &[named("P"), named("P"), ptr(named("P")), ptr(named("P"))]);
    check("_Z1kN2ns1PENS_1QEPS0_", "k", &[named("ns::P"), named("ns::Q"), ptr(named("ns::P"))]);
    check("_ZN2ns1kENS_1PEPKS0_", "ns::k", &[named("ns::P"), const_ptr(named("ns::P"))]);
}

#[test]
fn template_instances() {
    check("_Z2tkIfEvPT_i", "tk<float>", &[ptr(CType::F32), CType::I32]);
    check("_Z2tkIfLi256ELb1EEvPT_S0_", "tk<float, 256, true>", &[ptr(CType::F32), CType::F32]);
    check("_ZN2ns5scaleIdLin3EEEvPT_S1_", "ns::scale<double, -3>", &[ptr(CType::F64), CType::F64]);
    check("_Z1kI6__halfEvPKT_PS1_", "k<__half>", &[const_ptr(CType::F16), ptr(CType::F16)]);
    check("_Z1kIJfiEEvDpT_", "k<float, int>", &[CType::F32, CType::I32]);
    check("_Z1k3VecIfLi3EES0_", "k", &[named("Vec<float, 3>"), named("Vec<float, 3>")]);
    check("_Z1kSt4pairIifE", "k", &[named("std::pair<int, float>")]);
    check("_Z1kN4cuda3std4spanIfEE", "k", &[named("cuda::std::span<float>")]);
}

#[test]
fn unnamed_namespaces_and_static_kernels() {
    let symbol = "_ZN34_GLOBAL__N__00000000_9_kernel_cu_k2anEPf";
    check(symbol, "(anonymous namespace)::an", &[ptr(CType::F32)]);
    check("_ZL2stPf", "st", &[ptr(CType::F32)]);
}

#[test]
fn the_signature_probe_tells_the_parameters_of_another_function() {
    let function = demangle("_Z22__warpgauge_signature_IPFvPKfPfjdb1PyEEvv").unwrap();
    let params = function.template_args[0].function_params().unwrap();
    let found: Vec<CType> = params.iter().map(Type::ctype).collect();
    assert_eq!(
        found,
        [
            const_ptr(CType::F32),
            ptr(CType::F32),
            CType::U32,
            CType::F64,
            CType::Bool,
            named("P"),
            CType::U64,
        ]
    );
}

#[test]
fn references_are_not_given_a_type() {
    check("_Z1kRf", "k", &[CType::Unknown]);
}

#[test]
fn what_is_not_understood_is_refused() {
    for symbol in [
        "k",
        "",
        "_Z",
        "_Z1",
        "_Z9k",
        "_Z0f",
        "_ZN1kE",
        "_Z1kT_",
        "_Z1kS_",
        "_Z1kS9_",
        "_Z1kM1Pf",
        "_ZZ1fvE1kPf",
        "_Z1kIXadL_Z1gvEEEvv",
        "_Z1kIfEvT0_",
        "_Z1kP",
        "_Z1kA",
        "_Z1kAx_f",
        "_Z1kD",
        "_Z1kIf",
        "_Z99999999999999999999kf",
        "_Z1kDTfE",
    ] {
        let found = demangle(symbol);
        let harmless = found.as_ref().is_none_or(|f| symbol == "_ZN1kE" && f.params.is_empty());
        assert!(harmless, "{symbol}: {found:?}");
    }
}

#[test]
fn symbols_made_to_explode_are_refused_quickly() {
    let deep = format!("_Z1k{}f", "P".repeat(5000));
    assert!(demangle(&deep).is_none());
    // Each type names the previous one twice, which doubles it.
    let mut symbol = String::from("_Z1k1AIffE");
    for index in 0..40 {
        let previous = if index == 0 { "S0_".into() } else { format!("S{index}_") };
        symbol.push_str(&format!("S_I{previous}{previous}E"));
    }
    assert!(demangle(&symbol).is_none());
}

proptest::proptest! {
    #[test]
    fn any_symbol_is_survived(symbol in "_Z[0-9NISTPKFLEXJDva-k_]{0,80}") {
        demangle(&symbol);
    }
}
