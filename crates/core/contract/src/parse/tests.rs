use super::*;
use crate::{EvaluateRequest, Extent, Role};
use warpgauge_model::FailureCode;
use warpgauge_tensor::Dtype;

const YAML: &str = r#"
kernel:
  kernel_type: cuda
  source_code: |
    extern "C" __global__ void scale(float* x, int n) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) x[i] *= 2.0f;
    }
  io:
    args:
      - {name: x, type: tensor, role: inout, tensor_spec: {shape: [1024], dtype: float32,
         init: {kind: randn, seed: 42}}}
      - name: n
        type: int
        value: 1024
    launch:
      grid: {x: "ceil_div(n, 256)"}
      block: {x: 256, y: 1, z: 1}
  metadata: {kernel_name: scale, compiler_options: ["-O3"]}
num_trials: 50
timeout: 30
tolerance: {atol: 1e-5}
sanitize: true
return_outputs: [x]
"#;

fn check(request: &EvaluateRequest) {
    assert_eq!(request.num_trials, Some(50));
    assert_eq!(request.timeout, 30.0);
    let source = request.kernel.source_code.as_deref().unwrap();
    assert!(source.starts_with("extern \"C\"") && source.contains("\n  int i"));
    let io = request.kernel.io.as_ref().unwrap();
    assert_eq!(io.args[0].role, Role::Inout);
    let spec = io.args[0].tensor_spec.as_ref().unwrap();
    assert_eq!((spec.shape.as_slice(), spec.dtype), (&[1024][..], Dtype::Float32));
    assert_eq!(spec.init.as_ref().unwrap().seed, Some(42));
    assert_eq!(io.args[1].value, Some(serde_json::json!(1024)));
    let launch = io.launch.as_ref().unwrap();
    let grid = launch.grid.as_ref().unwrap();
    assert_eq!(grid.x, Extent::Expression("ceil_div(n, 256)".to_owned()));
    assert_eq!(launch.block.as_ref().unwrap().x, Extent::Value(256));
    assert_eq!(request.tolerance.as_ref().unwrap().atol, Some(1e-5));
}

#[test]
fn an_argument_may_be_called_n_in_yaml() {
    for name in ["n", "y", "no", "on"] {
        let text = format!("name: {name}\ntype: int\nvalue: 4\n");
        let arg: crate::ArgSpec = parse(BodyFormat::Yaml, text.as_bytes()).unwrap();
        assert_eq!(arg.name, name);
    }
}

#[test]
fn the_three_formats_carry_the_same_request() {
    let request: EvaluateRequest = parse(BodyFormat::Yaml, YAML.as_bytes()).unwrap();
    check(&request);
    let json = serde_json::to_vec(&request).unwrap();
    check(&parse(BodyFormat::Json, &json).unwrap());
    check(&parse(BodyFormat::Yaml, &json).unwrap());
    let msgpack = rmp_serde::to_vec_named(&request).unwrap();
    check(&parse(BodyFormat::MsgPack, &msgpack).unwrap());
}

#[test]
fn escapes_and_exponents_of_yaml_are_read() {
    let text = "kernel: {kernel_type: ptx, source_code: \"a\\tb\"}\ntimeout: 1e1\n";
    let request: EvaluateRequest = parse(BodyFormat::Yaml, text.as_bytes()).unwrap();
    assert_eq!((request.kernel.source_code.as_deref(), request.timeout), (Some("a\tb"), 10.0));
}

#[test]
fn anchors_of_an_ordinary_size_work() {
    let text = r#"
kernel:
  kernel_type: cuda
  source_code: "x"
  io:
    args:
      - {name: a, type: tensor, tensor_spec: &spec {shape: [64, 64], init: {kind: randn}}}
      - {name: b, type: tensor, tensor_spec: *spec}
      - {name: c, type: tensor, tensor_spec: {<<: *spec, dtype: float16}}
"#;
    let request: EvaluateRequest = parse(BodyFormat::Yaml, text.as_bytes()).unwrap();
    let args = request.kernel.io.unwrap().args;
    assert_eq!(args[1].tensor_spec.as_ref().unwrap().shape, [64, 64]);
    assert_eq!(args[2].tensor_spec.as_ref().unwrap().dtype, Dtype::Float16);
}

fn refused(format: BodyFormat, body: &[u8]) -> ParseError {
    parse::<EvaluateRequest>(format, body).expect_err("must be refused")
}

/// Returns a JSON request whose first argument has this tensor_spec.
fn with_spec(spec: &str) -> String {
    format!(
        r#"{{"kernel": {{"kernel_type": "cuda", "source_code": "",
          "io": {{"args": [{{"name": "x", "type": "tensor", "tensor_spec": {spec}}}]}}}}}}"#
    )
}

#[test]
fn mistakes_are_named_in_every_format() {
    let spec = "kernel.io.args[0].tensor_spec";
    let cases = [
        (with_spec(r#"{"shape": [4], "dtyp": "float32"}"#), "unknown_field", ".dtyp", "`dtype`"),
        (with_spec(r#"{"shape": [4], "dtype": "float33"}"#), "invalid_value", ".dtype", "float32"),
        (with_spec(r#"{"shape": [4, {}]}"#), "wrong_type", ".shape[1]", ""),
        (with_spec(r#"{"shape": [-4]}"#), "", ".shape[0]", ""),
        (with_spec(r#"{"shape": 4}"#), "wrong_type", ".shape", ""),
        (with_spec(r#"{"dtype": "f32"}"#), "missing_field", "", "`shape`"),
        (
            with_spec(r#"{"shape": [4], "data": {"data_b64": "A*=="}}"#),
            "invalid_value",
            ".data.data_b64",
            "character 1",
        ),
        (
            with_spec(r#"{"shape": [4], "init": {"kind": "random"}}"#),
            "invalid_value",
            ".init.kind",
            "uniform",
        ),
    ];
    for (json, code, path, word) in cases {
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        let bodies = [
            (BodyFormat::Json, json.clone().into_bytes()),
            (BodyFormat::Yaml, serde_saphyr::to_string(&value).unwrap().into_bytes()),
            (BodyFormat::MsgPack, rmp_serde::to_vec_named(&value).unwrap()),
        ];
        for (format, body) in bodies {
            let error = refused(format, &body);
            assert_eq!(error.path, format!("{spec}{path}"), "{format}: {error:?}");
            assert!(code.is_empty() || error.code.as_str() == code, "{format}: {error:?}");
            assert!(error.message.contains(word), "{format}: {error:?}");
            if format != BodyFormat::MsgPack {
                assert!(error.line.is_some() && error.column.is_some(), "{format}: {error:?}");
            }
        }
    }
}

#[test]
fn malformed_and_truncated_bodies() {
    let json = with_spec(r#"{"shape": [4]}"#);
    let msgpack = {
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        rmp_serde::to_vec_named(&value).unwrap()
    };
    for cut in [1, 10, 60, json.len() - 1] {
        assert_eq!(
            refused(BodyFormat::Json, &json.as_bytes()[..cut]).code,
            FailureCode::TruncatedBody
        );
    }
    for cut in [1, 10, 60, msgpack.len() - 1] {
        let error = refused(BodyFormat::MsgPack, &msgpack[..cut]);
        assert_eq!(error.code, FailureCode::TruncatedBody);
        assert!(error.offset.is_some_and(|offset| offset <= cut as u64), "{error:?}");
    }
    let error = refused(BodyFormat::Json, b"{\"kernel\": {,}}");
    assert_eq!(
        (error.code.as_str(), error.line, error.column),
        ("malformed_json", Some(1), Some(13))
    );
    let error = refused(BodyFormat::Yaml, b"num_trials: 5\nkernel: {kernel_type: \"cuda\n");
    assert_eq!(error.code, FailureCode::MalformedYaml);
    assert!(error.line.is_some(), "{error:?}");
    assert_eq!(refused(BodyFormat::Yaml, b"a: \xff").code, FailureCode::MalformedYaml);
    assert_eq!(refused(BodyFormat::MsgPack, b"\xc1").code, FailureCode::MalformedMsgpack);
    assert_eq!(refused(BodyFormat::MsgPack, b"\x80\x80").offset, Some(1));
    assert_eq!(refused(BodyFormat::Json, b"{} {}").path, "");
    for format in [BodyFormat::Json, BodyFormat::Yaml, BodyFormat::MsgPack] {
        assert_eq!(refused(format, b"").code, FailureCode::TruncatedBody);
    }
    let error = refused(BodyFormat::Yaml, b"- 1\n- 2\n");
    assert_eq!((error.code.as_str(), error.path.as_str()), ("wrong_type", ""), "{error:?}");
}

#[test]
fn deep_nesting_is_an_error_not_a_crash() {
    let deep = "[".repeat(10_000);
    for value in [deep.clone(), "{\"a\":".repeat(10_000)] {
        let json = format!(
            r#"{{"kernel": {{"kernel_type": "cuda", "io": {{"args": [
               {{"name": "x", "type": "int", "value": {value}"#
        );
        for body in [&value, &json] {
            assert_ne!(refused(BodyFormat::Json, body.as_bytes()).code.as_str(), "");
            assert_ne!(refused(BodyFormat::Yaml, body.as_bytes()).code.as_str(), "");
        }
        assert_eq!(refused(BodyFormat::Json, json.as_bytes()).code, FailureCode::TooDeep);
        assert_eq!(refused(BodyFormat::Yaml, json.as_bytes()).code, FailureCode::TooDeep);
    }
    assert_eq!(refused(BodyFormat::MsgPack, &[0x91; 10_000]).code, FailureCode::TooDeep);
    let block: String = (0..10_000).map(|i| format!("{}a:\n", " ".repeat(i.min(3000)))).collect();
    assert_ne!(refused(BodyFormat::Yaml, block.as_bytes()).code.as_str(), "");
}

#[test]
fn alias_bombs_are_refused() {
    let mut nodes = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let previous = level - 1;
        let list = vec![format!("*a{previous}"); 9].join(", ");
        nodes.push_str(&format!("a{level}: &a{level} [{list}]\n"));
    }
    let scalar = format!("kernel: &k {}\nl: [{}]\n", "x".repeat(200_000), "*k, ".repeat(5000));
    let options = format!(
        "kernel:\n  kernel_type: cuda\n  source_code: &s {}\n  \
         metadata: {{compiler_options: [{}]}}\n",
        "x".repeat(200_000),
        "*s, ".repeat(5000)
    );
    for bomb in [&nodes, &scalar] {
        // An untyped value keeps everything.
        let error = parse::<serde_json::Value>(BodyFormat::Yaml, bomb.as_bytes()).unwrap_err();
        assert_eq!(error.code, FailureCode::TooLarge, "{error:?}");
    }
    assert_eq!(refused(BodyFormat::Yaml, options.as_bytes()).code, FailureCode::TooLarge);
}

#[test]
fn bodies_that_would_grow_in_memory_are_refused() {
    let json = format!("{{\"kernel\": {{\"value\": [{}1]}}}}", "1,".repeat(MAX_VALUES));
    let yaml = format!("kernel:\n  value:\n{}", "  - 1\n".repeat(MAX_VALUES));
    let msgpack = rmp_serde::to_vec(&vec![0u8; MAX_VALUES]).unwrap();
    for (format, body) in [
        (BodyFormat::Json, json.as_bytes()),
        (BodyFormat::Yaml, yaml.as_bytes()),
        (BodyFormat::MsgPack, &msgpack),
    ] {
        let error = parse::<serde_json::Value>(format, body).unwrap_err();
        assert_eq!(error.code, FailureCode::TooLarge, "{format}: {error:?}");
    }
    // Commas and brackets in strings are not values, whatever escapes surround them.
    for filler in [",", "[", "\\\",{", "\\\\,", ",\\n\\\\\\\"[["] {
        let text = format!("\"{}\"", filler.repeat(MAX_VALUES));
        let parsed: String = parse(BodyFormat::Json, text.as_bytes()).unwrap();
        assert!(parsed.len() >= MAX_VALUES);
    }
}

#[test]
fn numbers_the_contract_cannot_hold() {
    let top = |field: &str| format!(r#"{{"kernel": {{"kernel_type": "cuda"}}, {field}}}"#);
    for (field, path) in [
        (r#""num_trials": -1"#, "num_trials"),
        (r#""num_trials": 1.5"#, "num_trials"),
        (r#""num_trials": 5000000000"#, "num_trials"),
        (r#""timeout": "soon""#, "timeout"),
        (r#""sanitize": "everything""#, "sanitize"),
        (r#""return_outputs": 3"#, "return_outputs"),
    ] {
        for format in [BodyFormat::Json, BodyFormat::Yaml] {
            let error = refused(format, top(field).as_bytes());
            assert_eq!(error.path, path, "{format}: {error:?}");
            assert!(["wrong_type", "invalid_value"].contains(&error.code.as_str()), "{error:?}");
        }
    }
}

/// Some clients send null for a choice that they leave open.
#[test]
fn no_choice_of_outputs_is_the_default() {
    let text = r#"{"kernel": {"kernel_type": "cuda"}, "return_outputs": null}"#;
    for format in [BodyFormat::Json, BodyFormat::Yaml] {
        let request: EvaluateRequest = parse(format, text.as_bytes()).unwrap();
        assert_eq!(request.return_outputs, crate::ReturnOutputs::None, "{format}");
    }
}

#[test]
fn infinities_in_yaml_reach_scalars_as_text() {
    let text = "kernel: {kernel_type: cuda, io: {args: [{name: a, type: float, value: -.inf}]}}";
    let request: EvaluateRequest = parse(BodyFormat::Yaml, text.as_bytes()).unwrap();
    assert_eq!(request.kernel.io.unwrap().args[0].value, Some(serde_json::json!("-.inf")));
}

/// A measurement, to run with `--ignored --nocapture`.
#[test]
#[ignore = "a measurement, not a check"]
fn memory_of_a_body_of_300_megabytes() {
    let peak = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap().to_owned();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
    };
    let mut body = with_spec(r#"{"shape": [56250000], "data": {"data_b64": "HERE"}}"#).into_bytes();
    let at = body.windows(4).position(|window| window == b"HERE").unwrap();
    let tail = body.split_off(at);
    body.reserve_exact(300_000_100);
    body.extend(std::iter::repeat_n(b"QUJD", 75_000_000).flatten());
    body.extend(&tail[4..]);
    for format in [BodyFormat::Json, BodyFormat::Yaml] {
        let (before, start) = (peak(), std::time::Instant::now());
        let request: EvaluateRequest = parse(format, &body).unwrap();
        let time = start.elapsed();
        println!("{format}: {time:?}, peak {before} MB before, {} MB after", peak());
        let io = request.kernel.io.unwrap();
        let data = io.args[0].tensor_spec.as_ref().unwrap().data.as_ref().unwrap();
        assert_eq!(data.data_b64.decoded_len(), Ok(225_000_000));
    }
}
