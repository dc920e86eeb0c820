use super::super::args::Command;
use super::super::args::testing::command;
use super::*;

/// Returns a directory with kernels and contracts.
fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, content) in [
        ("ref.cu", "reference"),
        ("a.cu", "a"),
        ("b.ptx", "b"),
        (
            "own.yaml",
            "kernel: {source_file: a.cu, kernel_type: cuda, io: {launch: {grid: {x: 3}}}}\nx: 1\n",
        ),
        (
            "contract.yaml",
            "kernel:\n  source_file: ref.cu\n  kernel_type: cuda\n  metadata:\n    \
             {kernel_name: k, compiler_options: [-O3], name_expressions: ['k<1>'], description: d}\n\
             num_trials: 7\ntolerance: {atol: 0.5, rtol: null}\nexpected: {y: {}}\nprofile: {}\nsanitize: memory\n",
        ),
        (
            "whole.yaml",
            "ref_kernel: {source_file: ref.cu, kernel_type: cuda}\n\
             candidates: [{name: a, kernel: {source_file: a.cu, kernel_type: cuda}}]\n",
        ),
        ("half.yaml", "ref_kernel: {source_file: ref.cu, kernel_type: cuda}\nrtol: 0.25\n"),
    ] {
        std::fs::write(directory.path().join(name), content).unwrap();
    }
    directory
}

/// Returns the body of the request for these arguments, with the notes. Names of files are names in
/// `directory`.
fn body_of(arguments: &[&str]) -> Result<(Value, Vec<String>), CliError> {
    let directory = directory();
    let arguments = arguments.iter().map(|argument| match argument.contains('.') {
        true if !argument.starts_with('0') => {
            directory.path().join(argument).to_str().unwrap().to_owned()
        }
        _ => (*argument).to_owned(),
    });
    let arguments = std::iter::once("compare".to_owned()).chain(arguments).collect::<Vec<_>>();
    let Command::Compare(args) = command(&arguments) else {
        panic!("parses as compare");
    };
    let mut file = ContractFile::read(&args.reference, 1 << 20)?;
    let notes = complete(&args, &mut file.fields, 1 << 20)?;
    Ok((Value::Object(file.fields), notes))
}

#[test]
fn a_contracts_kernel_becomes_the_reference() {
    let (body, notes) = body_of(&["contract.yaml", "a.cu"]).unwrap();
    let metadata = json!({"kernel_name": "k", "compiler_options": ["-O3"],
        "name_expressions": ["k<1>"]});
    let mut described = metadata.clone();
    described["description"] = json!("d");
    assert_eq!(
        body,
        json!({
            "ref_kernel": {"source_code": "reference", "kernel_type": "cuda",
                "metadata": described},
            "candidates": [{"name": "a.cu",
                "kernel": {"source_code": "a", "kernel_type": "cuda", "metadata": metadata}}],
            "num_trials": 7,
            "profile": {},
            "atol": 0.5,
        })
    );
    let note = "a comparison does not use `expected`, `sanitize`; the reference's outputs are \
                expected";
    assert_eq!(notes, [note]);
}

#[test]
fn fields_that_ask_for_nothing_are_left_out_without_a_note() {
    let contract = |outputs: Value| {
        let fields = json!({"kernel": {}, "sanitize": false, "expected": {}, "program": null,
            "return_outputs": outputs, "output_encoding": "npy"});
        fields.as_object().cloned().unwrap()
    };
    assert_eq!(from_contract(&mut contract(json!([]))), [""; 0]);
    assert_eq!(from_contract(&mut contract(json!("none"))), [""; 0]);
    let note = "a comparison does not use `output_encoding`, `return_outputs`";
    assert_eq!(from_contract(&mut contract(json!(["y"]))), [note]);
    let arranged = json!({"y": {"order": "any"}});
    let mut fields = json!({"kernel": {}, "compare_as": arranged}).as_object().cloned().unwrap();
    assert_eq!(from_contract(&mut fields), [""; 0]);
    assert_eq!(fields["compare_as"], arranged);
}

#[test]
fn flags_reach_the_comparison() {
    let flags =
        ["--atol", "0.125", "--rtol", "0.0", "--trials", "9", "--preset", "ci", "--kernel-name"];
    let arguments = [&["contract.yaml", "a.cu"], &flags[..], &["other"]].concat();
    let (body, _) = body_of(&arguments).unwrap();
    assert_eq!((&body["atol"], &body["rtol"]), (&json!(0.125), &json!(0.0)));
    assert_eq!(body["num_trials"], 9);
    assert_eq!(body["measure"], json!({"preset": "ci"}));
    assert_eq!(
        body["candidates"][0]["kernel"]["metadata"],
        json!({"kernel_name": "other", "compiler_options": ["-O3"]})
    );
    assert_eq!(body["ref_kernel"]["metadata"]["kernel_name"], "k");
}

#[test]
fn several_kernels_are_candidates_named_as_their_files() {
    let (body, _) = body_of(&["half.yaml", "a.cu", "b.ptx", "own.yaml"]).unwrap();
    assert_eq!(body["rtol"], 0.25);
    assert!(body.get("custom_kernel").is_none());
    let candidates = body["candidates"].as_array().unwrap();
    let names: Vec<_> = candidates.iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["a.cu", "b.ptx", "own.yaml"]);
    assert_eq!(candidates[1]["kernel"]["kernel_type"], "ptx");
    // A candidate's contract keeps its launch; of its other fields only the kernel counts.
    let io = &candidates[2]["kernel"]["io"];
    assert_eq!(io["launch"]["grid"]["x"], 3, "{io}");

    let (body, _) = body_of(&["half.yaml", "a.cu", "a.cu"]).unwrap();
    let name = body["candidates"][0]["name"].as_str().unwrap();
    assert!(name.ends_with("/a.cu"), "two of a name: {name}");
}

#[test]
fn a_whole_comparison_needs_nothing_else() {
    let (body, notes) = body_of(&["whole.yaml"]).unwrap();
    assert_eq!(body["candidates"][0]["kernel"]["source_code"], "a");
    assert_eq!(body["ref_kernel"]["source_code"], "reference");
    assert_eq!(notes, [] as [&str; 0]);
    let (whole, more) = (body_of(&["whole.yaml", "a.cu"]), "already names the kernels to compare");
    assert!(whole.unwrap_err().render().contains(more));
    let nothing = body_of(&["half.yaml"]).unwrap_err();
    assert!(nothing.render().contains("no kernel to compare"), "{}", nothing.render());
    assert_eq!(nothing.exit(), Exit::Usage);
}
