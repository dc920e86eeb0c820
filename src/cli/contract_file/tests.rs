use super::*;
use warpgauge_contract::EvaluateRequest;

const LIMIT: u64 = 1 << 20;

struct Files(tempfile::TempDir);

impl Files {
    fn new(files: &[(&str, &[u8])]) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        for (name, content) in files {
            std::fs::write(directory.path().join(name), content).expect("writing a file");
        }
        Self(directory)
    }

    fn read(&self, name: &str) -> Result<ContractFile, ContractFileError> {
        ContractFile::read(&self.0.path().join(name), LIMIT)
    }

    /// Returns the message of an error, without the temporary directory.
    fn refusal(&self, name: &str) -> String {
        let directory = format!("{}/", self.0.path().display());
        let error = match self.read(name) {
            Ok(contract) => contract.typed::<EvaluateRequest>().expect_err("must be refused"),
            Err(error) => error,
        };
        error.to_string().replace(&directory, "")
    }
}

#[test]
fn the_three_formats_mean_the_same() {
    let value = serde_json::json!({"kernel": {"source_code": "x", "kernel_type": "cuda"},
                                   "num_trials": 7});
    let files = Files::new(&[
        ("c.json", value.to_string().as_bytes()),
        ("c.yaml", b"kernel: {source_code: x, kernel_type: cuda}\nnum_trials: 7\n"),
        ("c.msgpack", &rmp_serde::to_vec_named(&value).expect("encodes")),
    ]);
    for name in ["c.json", "c.yaml", "c.msgpack"] {
        let contract = files.read(name).expect(name);
        assert_eq!(Value::Object(contract.fields.clone()), value, "{name}");
        let request: EvaluateRequest = contract.typed().expect(name);
        assert_eq!(request.num_trials, Some(7));
    }
}

#[test]
fn source_files_are_replaced_in_kernels_and_references() {
    let files = Files::new(&[
        ("k.cu", b"__global__ void k() {}"),
        ("k.cubin", &[0, 255, 1]),
        (
            "c.yaml",
            b"kernel: {source_file: k.cu, kernel_type: cuda}\n\
              expected:\n  y: {kernel: {source_file: k.cubin, kernel_type: cubin}}\n",
        ),
    ]);
    let fields = files.read("c.yaml").expect("valid").fields;
    assert_eq!(fields["kernel"]["source_code"], "__global__ void k() {}");
    assert!(fields["kernel"].get("source_file").is_none());
    let reference = &fields["expected"]["y"]["kernel"];
    assert_eq!(reference["binary_b64"], "AP8B");
    assert!(reference.get("source_code").is_none());
}

#[test]
fn files_that_a_cuda_source_includes_travel_with_it() {
    let files = Files::new(&[
        ("k.cu", b"#include \"t.cuh\"\n__global__ void k() {}"),
        ("t.cuh", b"#include \"u.h\""),
        ("u.h", b"int u;"),
        ("cuda.yaml", b"kernel: {source_file: k.cu, kernel_type: cuda}"),
        ("own.yaml", b"kernel: {source_file: k.cu, kernel_type: cuda, files: {t.cuh: ''}}"),
        ("ptx.yaml", b"kernel: {source_file: k.cu, kernel_type: ptx}"),
    ]);
    let kernel = |name: &str| files.read(name).expect(name).fields["kernel"].clone();
    let expected = serde_json::json!({"t.cuh": "#include \"u.h\"", "u.h": "int u;"});
    assert_eq!(kernel("cuda.yaml")["files"], expected);
    assert!(kernel("cuda.yaml").get("source_path").is_none());
    assert_eq!(kernel("own.yaml")["files"], serde_json::json!({"t.cuh": ""}), "they are given");
    assert!(kernel("ptx.yaml").get("files").is_none());
}

#[test]
fn wrong_source_files_are_refused_with_their_path() {
    let cases: &[(&str, &str)] = &[
        ("kernel: {source_file: 3}", "c.yaml: kernel.source_file: expected the name of a file"),
        (
            "kernel: {source_file: /etc/hostname}",
            "c.yaml: kernel.source_file: expected a path relative to the contract file",
        ),
        (
            "kernel: {source_file: k.cu, source_code: x}",
            "c.yaml: kernel.source_file: `source_code` is also set; set only one of them",
        ),
        (
            "expected: {y: {kernel: {source_file: k.cu, binary_b64: x}}}",
            "c.yaml: expected.y.kernel.source_file: `binary_b64` is also set; set only one of them",
        ),
        ("kernel: {source_file: none.cu}", "could not read none.cu: there is no such file"),
        ("kernel: {source_file: .}", ". is not a regular file; name a file"),
        ("kernel: {source_file: bad.cu}", "bad.cu: byte 1 is not UTF-8"),
    ];
    for (contract, expected) in cases {
        let files =
            Files::new(&[("c.yaml", contract.as_bytes()), ("k.cu", b"k"), ("bad.cu", b"a\xffb")]);
        assert_eq!(files.refusal("c.yaml"), *expected, "{contract}");
    }
}

#[test]
fn a_large_source_is_refused() {
    let large = vec![b' '; MAX_SOURCE_BYTES as usize + 1];
    let files = Files::new(&[
        ("k.cu", &large),
        ("c.yaml", b"kernel: {source_file: k.cu, kernel_type: cuda}"),
    ]);
    assert_eq!(
        files.refusal("c.yaml"),
        "k.cu is larger than 16.0 MiB, the most that is read; is it the right file?"
    );
}

#[test]
fn files_that_are_no_contract() {
    let files = Files::new(&[
        ("c.txt", b"{}"),
        ("list.json", b"[1]"),
        ("broken.json", b"{\n \"a\": ,}"),
        ("broken.yaml", b"a: [1,\nb: }"),
        ("cut.msgpack", &[0x82, 0xa1]),
        ("unknown.json", br#"{"kernel": {"kernel_type": "cuda", "colour": 1}}"#),
        ("large.json", &vec![b' '; LIMIT as usize + 1]),
    ]);
    assert!(files.refusal("c.txt").starts_with("c.txt: the name does not show the format"));
    assert_eq!(
        files.refusal("list.json"),
        "list.json: the document: expected a mapping that contains `kernel`"
    );
    let json = files.refusal("broken.json");
    assert!(json.starts_with("broken.json: ") && json.contains("(line 2, column 7)"), "{json}");
    let yaml = files.refusal("broken.yaml");
    assert!(yaml.contains("not YAML") && yaml.contains("(line 1, column 4)"), "{yaml}");
    let cut = files.refusal("cut.msgpack");
    assert!(cut.starts_with("cut.msgpack: ") && cut.contains("byte"), "{cut}");
    let unknown = files.refusal("unknown.json");
    assert!(unknown.contains("kernel.colour: unknown field `colour`"), "{unknown}");
    assert_eq!(
        files.refusal("large.json"),
        "large.json is larger than 1.0 MiB, the most that is read; is it the right file?"
    );
    assert_eq!(files.refusal("none.json"), "could not read none.json: there is no such file");
    // A missing file is reported before a wrong extension, and a similar name is offered.
    let near = files.refusal("brokn.jsn");
    assert_eq!(
        near,
        "could not read brokn.jsn: there is no such file (did you mean `broken.json`?)"
    );
    let line = files.refusal("no\nwhere.json");
    assert_eq!(line, "could not read no\u{fffd}where.json: there is no such file");
}

#[test]
fn a_yaml_alias_bomb_is_refused() {
    let mut bomb = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
    for i in 1..9 {
        let refs = vec![format!("*a{}", i - 1); 10].join(",");
        bomb.push_str(&format!("a{i}: &a{i} [{refs}]\n"));
    }
    let files = Files::new(&[("c.yaml", bomb.as_bytes())]);
    let message = files.refusal("c.yaml");
    assert!(message.contains("alias"), "{message}");
}

#[test]
fn long_scalars_are_accepted() {
    let data = "A".repeat(900_000);
    let yaml = format!("kernel: {{source_code: \"{data}\", kernel_type: cuda}}\n");
    let files = Files::new(&[("c.yaml", yaml.as_bytes())]);
    assert_eq!(files.read("c.yaml").expect("valid").fields["kernel"]["source_code"], data);
}
