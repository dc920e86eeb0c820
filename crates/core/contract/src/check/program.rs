//! Checks of whole programs. A program launches its own kernels, and its output is all that can be
//! checked.

use super::code;
use crate::error::{ContractError, Mistakes, quoted};
use crate::{
    Backend, ContractLimits, EvaluateRequest, Expected, Isolation, KernelMetadata, KernelRuntime,
    KernelType, ReturnOutputs, Sanitize,
};
use warpgauge_model::FailureCode;

/// Maximum number of arguments of a command line, and longest argument, bytes.
const MOST_ARGUMENTS: usize = 256;
const LONGEST_ARGUMENT: usize = 4096;

/// Maximum size of standard input and of expected output, bytes.
const MOST_TEXT: usize = 1 << 20;

/// Keys of `expected` for a program: its standard output and its exit code.
const STDOUT: &str = "stdout";
const EXIT_CODE: &str = "exit_code";

/// Checks a program to evaluate.
pub(super) fn check(request: &EvaluateRequest, limits: &ContractLimits, mistakes: &mut Mistakes) {
    let kernel = &request.kernel;
    code::check(kernel, limits, "kernel", mistakes);
    mistakes.require(kernel.io.is_none(), "kernel.io", FailureCode::WrongField, || {
        "a program makes its own data and launches its own kernels: leave `io` out; its command \
         line is `metadata.arguments`"
            .to_owned()
    });
    if let Some(metadata) = &kernel.metadata {
        metadata_of(metadata, mistakes);
    }
    for (name, expected) in &request.expected {
        expectation(name, expected, mistakes);
    }
    settings(request, mistakes);
}

fn metadata_of(metadata: &KernelMetadata, mistakes: &mut Mistakes) {
    let path = "kernel.metadata";
    let theirs = [
        ("kernel_name", metadata.kernel_name.is_some()),
        ("name_expressions", !metadata.name_expressions.is_empty()),
        ("configuration", metadata.configuration.is_some()),
        ("function_name", metadata.function_name.is_some()),
        ("class_name", metadata.class_name.is_some()),
        ("method_name", metadata.method_name.is_some()),
        ("entry_point", metadata.entry_point.is_some()),
    ];
    for (field, given) in theirs {
        mistakes.require(!given, format!("{path}.{field}"), FailureCode::WrongField, || {
            "a program starts with its `main()`: leave it out".to_owned()
        });
    }
    let nvcc = metadata.backend != Some(Backend::Nvrtc);
    mistakes.require(nvcc, format!("{path}.backend"), FailureCode::WrongField, || {
        "programs are compiled by nvcc: leave it out".to_owned()
    });
    let fits = metadata.arguments.len() <= MOST_ARGUMENTS
        && metadata.arguments.iter().all(|word| word.len() <= LONGEST_ARGUMENT);
    mistakes.require(fits, format!("{path}.arguments"), FailureCode::TooLarge, || {
        format!("at most {MOST_ARGUMENTS} arguments of at most {LONGEST_ARGUMENT} bytes each")
    });
    let sound = metadata.arguments.iter().all(|word| !word.contains('\0'));
    mistakes.require(sound, format!("{path}.arguments"), FailureCode::InvalidValue, || {
        "an argument of a command line cannot contain NUL".to_owned()
    });
    let fits = metadata.stdin.as_ref().is_none_or(|text| text.len() <= MOST_TEXT);
    mistakes.require(fits, format!("{path}.stdin"), FailureCode::TooLarge, || {
        format!("standard input has at most {MOST_TEXT} bytes")
    });
}

fn expectation(name: &str, expected: &Expected, mistakes: &mut Mistakes) {
    let path = format!("expected.{}", quoted(name));
    let of_output = expected.data.is_some()
        || expected.kernel.is_some()
        || expected.bounds.is_some()
        || expected.matrix.is_some()
        || expected.times.is_some();
    let texts = usize::from(expected.text.is_some()) + usize::from(expected.contains.is_some());
    let fits = match name {
        STDOUT => !of_output && texts > 0 && expected.code.is_none(),
        EXIT_CODE => !of_output && texts == 0 && expected.code.is_some(),
        _ => {
            let message = "only `stdout` and `exit_code` of a program can be expected";
            return mistakes.add(path, FailureCode::UnknownOutput, message);
        }
    };
    mistakes.require(fits, path.clone(), FailureCode::WrongField, || match name {
        STDOUT => {
            "give the expected output of the program as `text`, or a part of it as `contains`"
                .to_owned()
        }
        _ => "give the expected exit code of the program as `code`".to_owned(),
    });
    let says_something = expected.contains.as_ref().is_none_or(|part| !part.is_empty());
    let at = format!("{path}.contains");
    mistakes.require(says_something, at, FailureCode::InvalidValue, || {
        "every output contains an empty text: give a part of what the program prints, or leave it \
         out"
        .to_owned()
    });
    let bytes = [&expected.text, &expected.contains].into_iter().flatten().map(String::len);
    let most = bytes.max().unwrap_or(0);
    mistakes.require(most <= MOST_TEXT, path, FailureCode::TooLarge, || {
        format!("{most} bytes; at most {MOST_TEXT} are compared")
    });
}

/// Rejects settings about launches, because a program launches its kernels itself.
fn settings(request: &EvaluateRequest, mistakes: &mut Mistakes) {
    let meaningless = [
        ("num_trials", request.num_trials.is_some()),
        ("tolerance", request.tolerance.is_some()),
        ("work", request.work.is_some()),
        ("sanitize", request.sanitize != Sanitize::Off),
        ("return_outputs", request.return_outputs != ReturnOutputs::None),
        ("keep_outputs", !request.keep_outputs.is_empty()),
    ];
    for (field, given) in meaningless {
        mistakes.require(!given, field, FailureCode::WrongField, || {
            "a program launches its kernels itself, and its only output is what it prints: leave \
             it out"
                .to_owned()
        });
    }
    let alone = request.isolation != Isolation::Sealed;
    mistakes.require(alone, "isolation", FailureCode::WrongField, || {
        "a program runs in a separate process, and its launches cannot be sealed: leave it out"
            .to_owned()
    });
}

/// Rejects metadata of programs on a kernel that is not a program.
pub(super) fn check_others(metadata: &KernelMetadata, path: &str, mistakes: &mut Mistakes) {
    for (field, given) in
        [("arguments", !metadata.arguments.is_empty()), ("stdin", metadata.stdin.is_some())]
    {
        mistakes.require(!given, format!("{path}.{field}"), FailureCode::WrongField, || {
            "goes with `kernel_type: program`".to_owned()
        });
    }
}

/// Checks that the expected output of a kernel is not a text or an exit code.
pub(super) fn not_of_outputs(expected: &Expected, path: &str, mistakes: &mut Mistakes) {
    let fields = [
        ("text", expected.text.is_some()),
        ("contains", expected.contains.is_some()),
        ("code", expected.code.is_some()),
    ];
    for (field, given) in fields {
        mistakes.require(!given, format!("{path}.{field}"), FailureCode::WrongField, || {
            "goes with `kernel_type: program`: an output of a kernel is expected as `data`, or \
             computed by a reference `kernel`"
                .to_owned()
        });
    }
}

/// Returns whether a kernel is a program where none is allowed, and adds this as a mistake.
pub(crate) fn is_misplaced(kind: KernelType, path: &str, mistakes: &mut Mistakes) -> bool {
    let misplaced = match kind.family().runtime() {
        KernelRuntime::Process => true,
        KernelRuntime::Worker | KernelRuntime::Judge => false,
    };
    mistakes.require(!misplaced, path, FailureCode::UnsupportedKernelType, || {
        "a whole program can only be evaluated alone: it decides what it does and how often, so \
         its time cannot be compared"
            .to_owned()
    });
    misplaced
}

/// Checks that a gate can compare the times of a kernel. Those of a whole program cannot be
/// compared.
///
/// # Errors The kernel is a whole program.
pub fn check_comparable(request: &EvaluateRequest) -> Result<(), Vec<ContractError>> {
    let mut mistakes = Mistakes::new(1);
    is_misplaced(request.kernel.kernel_type, "kernel.kernel_type", &mut mistakes);
    mistakes.into_result()
}

impl EvaluateRequest {
    /// Returns the expected output of a program.
    pub fn expected_stdout(&self) -> Option<&Expected> {
        self.expected.get(STDOUT)
    }

    /// Returns the expected exit code of a program.
    pub fn expected_exit_code(&self) -> Option<u8> {
        self.expected.get(EXIT_CODE)?.code
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{CompareRequest, validate, validate_compare, validate_kernel};

    fn program() -> Value {
        json!({"kernel": {"kernel_type": "program", "source_code": "int main() {}"}})
    }

    fn with(changes: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
        let mut body = program();
        for (pointer, value) in changes {
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            let parent = body.pointer_mut(parent).unwrap();
            if !parent.is_object() {
                *parent = json!({});
            }
            parent[key] = value;
        }
        body
    }

    fn mistakes(body: Value) -> Vec<String> {
        let request: EvaluateRequest = serde_json::from_value(body).unwrap();
        let errors = validate(&request, &ContractLimits::default()).err().unwrap_or_default();
        errors.into_iter().map(|error| format!("{} {}", error.path, error.code)).collect()
    }

    #[test]
    fn a_program_needs_no_contract_and_may_be_expected_to_print() {
        assert!(mistakes(program()).is_empty());
        let metadata = json!({"arguments": ["-n", "12"], "stdin": "1 2", "backend": "nvcc",
            "compiler_options": ["-O3"]});
        for expected in [
            json!({"stdout": {"text": "done"}, "exit_code": {"code": 3}}),
            json!({"stdout": {"contains": "PASS"}}),
        ] {
            let body =
                with([("/kernel/metadata", metadata.clone()), ("/expected", expected.clone())]);
            assert!(mistakes(body.clone()).is_empty(), "{expected}");
            let request: EvaluateRequest = serde_json::from_value(body).unwrap();
            // A stored request must have the same meaning when it is read.
            let again: EvaluateRequest =
                serde_json::from_value(serde_json::to_value(&request).unwrap()).unwrap();
            assert_eq!(again.expected_exit_code(), request.expected_exit_code());
            assert_eq!(
                again.expected_stdout().unwrap().text,
                request.expected_stdout().unwrap().text
            );
        }
    }

    #[test]
    fn what_a_program_has_no_use_for_is_refused_by_name() {
        for (pointer, value, wanted) in [
            ("/kernel/io", json!({"args": []}), "kernel.io wrong_field"),
            ("/num_trials", json!(3), "num_trials wrong_field"),
            ("/sanitize", json!(true), "sanitize wrong_field"),
            ("/return_outputs", json!("all"), "return_outputs wrong_field"),
            ("/isolation", json!("sealed"), "isolation wrong_field"),
            ("/expected", json!({"y": {"text": "t"}}), "expected.y unknown_output"),
            ("/expected", json!({"stdout": {"code": 0}}), "expected.stdout wrong_field"),
            ("/expected", json!({"exit_code": {"text": "0"}}), "expected.exit_code wrong_field"),
            ("/expected", json!({"stdout": {}}), "expected.stdout wrong_field"),
            (
                "/expected",
                json!({"stdout": {"contains": ""}}),
                "expected.stdout.contains invalid_value",
            ),
            (
                "/kernel/metadata",
                json!({"kernel_name": "k"}),
                "kernel.metadata.kernel_name wrong_field",
            ),
            (
                "/kernel/metadata",
                json!({"backend": "nvrtc"}),
                "kernel.metadata.backend wrong_field",
            ),
            (
                "/kernel/metadata",
                json!({"arguments": ["a\0b"]}),
                "kernel.metadata.arguments invalid_value",
            ),
            (
                "/kernel/metadata",
                json!({"arguments": vec!["a"; 257]}),
                "kernel.metadata.arguments too_large",
            ),
            (
                "/kernel/metadata",
                json!({"stdin": "x".repeat(MOST_TEXT + 1)}),
                "kernel.metadata.stdin too_large",
            ),
        ] {
            assert_eq!(mistakes(with([(pointer, value)])), [wanted]);
        }
        for expected in [json!({"code": 256}), json!({"code": -1}), json!("0")] {
            let body = with([("/expected", json!({"exit_code": expected}))]);
            assert!(serde_json::from_value::<EvaluateRequest>(body).is_err());
        }
    }

    #[test]
    fn kernels_have_nothing_of_programs_and_programs_stand_beside_nothing() {
        let io = json!({"args": [{"name": "y", "type": "tensor", "role": "output",
            "tensor_spec": {"shape": [4], "dtype": "float32"}}],
            "launch": {"grid": {"x": 1}, "block": {"x": 32}}});
        let kernel = json!({"kernel_type": "cuda", "source_code": "k", "io": io});
        let mut body = json!({"kernel": kernel, "expected": {"y": {"text": "1"}}});
        assert!(mistakes(body.clone()).contains(&"expected.y.text wrong_field".to_owned()));
        body["expected"] = json!({"y": {"kernel": program()["kernel"]}});
        assert_eq!(
            mistakes(body.clone()),
            ["expected.y.kernel.kernel_type unsupported_kernel_type"]
        );
        body["expected"] = json!({});
        body["kernel"]["metadata"] = json!({"arguments": ["x"]});
        assert_eq!(mistakes(body.clone()), ["kernel.metadata.arguments wrong_field"]);
        for (reference, custom, path) in [
            (&kernel, &program()["kernel"], "custom_kernel.kernel_type"),
            (&program()["kernel"], &kernel, "ref_kernel.kernel_type"),
        ] {
            let pair = json!({"ref_kernel": reference, "custom_kernel": custom});
            let pair: CompareRequest = serde_json::from_value(pair).unwrap();
            let errors = validate_compare(&pair, &ContractLimits::default()).unwrap_err();
            assert_eq!((errors[0].path.as_str(), errors.len()), (path, 1));
        }
        let request: EvaluateRequest = serde_json::from_value(program()).unwrap();
        assert!(validate_kernel(&request.kernel, &ContractLimits::default()).is_err());
        assert!(check_comparable(&request).is_err());
    }
}
