use serde_json::json;

use super::*;
use warpgauge_compile::{CType, KernelInfo, Param};
use warpgauge_contract::ArgSpec;
use warpgauge_model::FailureCode;
use warpgauge_worker::protocol::Argument;

fn kernel(types: &[(CType, u32)]) -> KernelInfo {
    let params = types
        .iter()
        .enumerate()
        .map(|(i, (ctype, bytes))| Param {
            name: Some(format!("p{i}")),
            ctype: ctype.clone(),
            bytes: *bytes,
            offset: 8 * i as u32,
            layout: None,
        })
        .collect();
    KernelInfo { symbol: "k".into(), name: "k".into(), params: Some(params), resources: None }
}

fn scalar(kind: &str, value: serde_json::Value) -> ArgSpec {
    serde_json::from_value(json!({"name": "x", "type": kind, "value": value})).unwrap()
}

fn bind_scalar(ctype: CType, bytes: u32, arg: ArgSpec) -> Result<Vec<u8>, String> {
    match bind_arguments(&kernel(&[(ctype, bytes)]), &[arg]) {
        Ok(bound) => match &bound[0] {
            Argument::Scalar(bytes) => Ok(bytes.clone()),
            _ => Err("a buffer".into()),
        },
        Err(errors) => Err(errors[0].message.clone()),
    }
}

#[test]
fn scalars_take_the_type_of_their_parameter() {
    let two = || scalar("float", json!(2.5));
    assert_eq!(bind_scalar(CType::F32, 4, two()).unwrap(), 2.5_f32.to_le_bytes());
    assert_eq!(bind_scalar(CType::F64, 8, two()).unwrap(), 2.5_f64.to_le_bytes());
    assert_eq!(bind_scalar(CType::F16, 2, two()).unwrap(), [0x00, 0x41]);
    let minus = || scalar("int", json!(-3));
    assert_eq!(bind_scalar(CType::I8, 1, minus()).unwrap(), (-3_i8).to_le_bytes());
    assert_eq!(bind_scalar(CType::I64, 8, minus()).unwrap(), (-3_i64).to_le_bytes());
    assert_eq!(bind_scalar(CType::F32, 4, minus()).unwrap(), (-3_f32).to_le_bytes());
    let large = || scalar("int", json!(u64::MAX));
    assert_eq!(bind_scalar(CType::U64, 8, large()).unwrap(), [0xff; 8]);
    assert_eq!(bind_scalar(CType::Bool, 1, scalar("bool", json!(true))).unwrap(), [1]);
    assert_eq!(
        bind_scalar(CType::Pointer { pointee: None, is_const: true }, 8, scalar("int", json!(0))),
        Ok(vec![0; 8])
    );
    // Every spelling that the contract accepts is bound.
    assert_eq!(
        bind_scalar(CType::F32, 4, scalar("float", json!("-.inf"))).unwrap(),
        f32::NEG_INFINITY.to_le_bytes()
    );
    assert_eq!(
        bind_scalar(CType::F32, 4, scalar("float", json!("-inf"))).unwrap(),
        f32::NEG_INFINITY.to_le_bytes()
    );
}

#[test]
fn values_that_do_not_survive_are_refused_by_name() {
    for (ctype, bytes, arg, part) in [
        (CType::U32, 4, scalar("int", json!(-1)), "unsigned int holds 0 to 4294967295"),
        (CType::I32, 4, scalar("int", json!(3_000_000_000_u64)), "int holds"),
        (CType::I32, 4, scalar("float", json!(2.5)), "whole numbers"),
        (CType::F32, 4, scalar("float", json!(1e300)), "beyond float"),
        (CType::Bool, 1, scalar("int", json!(2)), "a bool is"),
        (CType::Aggregate("P".into()), 8, scalar("int", json!(2)), "type `struct`"),
        (CType::Enumeration("E".into()), 1, scalar("int", json!(256)), "enum E holds -128 to 255"),
        (CType::Enumeration("E".into()), 4, scalar("float", json!(0.5)), "whole numbers"),
        (CType::I32, 4, scalar("int", json!("7")), "whole number"),
        (CType::Unknown, 2, scalar("float", json!(1.0)), "c_type"),
        (CType::Pointer { pointee: None, is_const: false }, 8, scalar("int", json!(64)), "tensor"),
    ] {
        let error = bind_scalar(ctype, bytes, arg).unwrap_err();
        assert!(error.contains(part) && error.contains('x'), "{error}");
    }
}

fn tensor(dtype: &str, role: &str) -> ArgSpec {
    serde_json::from_value(json!({
        "name": "t", "type": "tensor", "role": role,
        "tensor_spec": {"shape": [4], "dtype": dtype}
    }))
    .unwrap()
}

#[test]
fn tensors_need_a_pointer_to_their_element_type() {
    let pointer = |element, is_const| {
        let pointee = Some(Box::new(element));
        kernel(&[(CType::Pointer { pointee, is_const }, 8)])
    };
    assert!(bind_arguments(&pointer(CType::F32, false), &[tensor("float32", "output")]).is_ok());
    assert!(bind_arguments(&pointer(CType::U32, true), &[tensor("int32", "input")]).is_ok());
    assert!(bind_arguments(&pointer(CType::U8, false), &[tensor("float32", "inout")]).is_ok());
    let error =
        bind_arguments(&pointer(CType::F64, false), &[tensor("float32", "output")]).unwrap_err();
    assert!(error[0].message.contains("pointer is to double"), "{error:?}");
    let error =
        bind_arguments(&pointer(CType::F32, true), &[tensor("float32", "output")]).unwrap_err();
    assert!(error[0].message.contains("const"), "{error:?}");
    let error = bind_arguments(&kernel(&[(CType::I32, 4)]), &[tensor("int32", "input")]);
    assert!(error.unwrap_err()[0].message.contains("is not a pointer"));
}

#[test]
fn a_wrong_count_lists_both_sides() {
    let kernel = kernel(&[(CType::F32, 4), (CType::I32, 4)]);
    let error = bind_arguments(&kernel, &[scalar("float", json!(1))]).unwrap_err();
    assert_eq!(error[0].code, FailureCode::ArgumentCount);
    assert!(
        error[0].message.contains("float p0, int p1") && error[0].message.contains("1 arguments")
    );
}

#[test]
fn machine_code_without_types_takes_declared_ones() {
    let mut arg = scalar("float", json!(1.5));
    arg.c_type = Some("double".into());
    assert_eq!(bind_scalar(CType::Unknown, 8, arg.clone()).unwrap(), 1.5_f64.to_le_bytes());
    assert!(bind_scalar(CType::Unknown, 4, arg.clone()).unwrap_err().contains("4 bytes"));
    assert!(bind_scalar(CType::F32, 4, arg.clone()).unwrap_err().contains("leave `c_type` out"));
    arg.c_type = Some("quad".into());
    assert!(bind_scalar(CType::Unknown, 8, arg).unwrap_err().contains("quad"));

    let mut blind = kernel(&[]);
    blind.params = None;
    let error = bind_arguments(&blind, &[scalar("int", json!(1))]).unwrap_err();
    assert!(error[0].message.contains("c_type"));
    let mut typed = scalar("int", json!(1));
    typed.c_type = Some("int".into());
    let bound = bind_arguments(&blind, &[tensor("float32", "output"), typed]).unwrap();
    assert!(matches!(bound[0], Argument::Buffer(0)));
    assert!(matches!(&bound[1], Argument::Scalar(bytes) if bytes[..] == [1, 0, 0, 0]));
}

#[test]
fn arrays_and_textures_stand_where_the_parameter_takes_them() {
    let args: Vec<ArgSpec> = serde_json::from_value(json!([
        {"name": "p", "type": "pointers", "pointers": ["x"]},
        {"name": "t", "type": "texture", "texture": {"tensor": "x"}},
        {"name": "x", "type": "tensor", "tensor_spec": {"shape": [8], "dtype": "float32"}},
        {"name": "n", "type": "int", "value": 8},
    ]))
    .unwrap();
    let to =
        |pointee: Option<CType>| CType::Pointer { pointee: pointee.map(Box::new), is_const: false };
    let pointers = || to(Some(to(Some(CType::F32))));
    let taken = |params: &[(CType, u32)]| {
        let kernel = kernel(params);
        let passed = parameters_of(&kernel, &args).unwrap();
        passed.iter().map(|one| one.name().to_owned()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(taken(&[(pointers(), 8), (CType::I32, 4)]), "p n");
    assert_eq!(taken(&[(CType::U64, 8), (CType::I32, 4)]), "t n");
    assert_eq!(taken(&[(to(Some(CType::F32)), 8), (CType::I32, 4)]), "x n");
    assert_eq!(taken(&[(pointers(), 8), (CType::U64, 8), (CType::I32, 4)]), "p t n");
    let all = [(pointers(), 8), (CType::U64, 8), (to(Some(CType::F32)), 8), (CType::I32, 4)];
    assert_eq!(taken(&all), "p t x n");
    // Where no list fits, the types decide what the message lists.
    assert_eq!(taken(&[(pointers(), 8)]), "p n");
    assert_eq!(taken(&[(CType::I32, 4)]), "x n");
}
