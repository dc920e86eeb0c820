//! Converts a kernel file to a request. The contract is a file next to the kernel, or in the
//! kernel's first comment; otherwise it is inferred.

use base64::Engine as _;
use serde_json::{Map, Value, json};

use warpgauge_code::infer::{self, Wishes};
use warpgauge_contract::{BodyFormat, CodeForm, CompileRequest, EvaluateRequest, KernelType};
use warpgauge_document::path_text;
use warpgauge_report::CompileResponse;

use crate::comment;
use crate::evaluator::{EvaluatorError, FileRejection};
use crate::language;

/// File extensions of contracts.
pub(crate) const CONTRACTS: [(&str, BodyFormat); 3] =
    [("yaml", BodyFormat::Yaml), ("yml", BodyFormat::Yaml), ("json", BodyFormat::Json)];

/// Number of timed launches that an inferred contract requests.
const INFERRED_TRIALS: u32 = 20;

/// Time limit for a kernel with an inferred contract, seconds, as in the reference executor. A
/// kernel that hangs delays the other kernels in the folder for this time.
const INFERRED_TIMEOUT_S: f64 = 30.0;

/// Returns the kernel type for a file name, or `None` if the file is not a kernel.
pub fn kernel_type(name: &str) -> Option<KernelType> {
    if name.starts_with('.') {
        return None;
    }
    let (stem, ending) = name.rsplit_once('.')?;
    KernelType::of_extension(ending).filter(|_| !stem.is_empty())
}

/// A function that compiles a kernel in order to find its parameters.
pub type Compile<'c> =
    &'c mut dyn FnMut(&CompileRequest) -> Result<CompileResponse, EvaluatorError>;

/// Where a contract comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContractFrom {
    /// A file next to the kernel.
    File,
    /// The kernel's first comment.
    Comment,
    /// Inferred from the code.
    Inferred,
}

impl ContractFrom {
    /// Returns the name of the source, as it appears in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Comment => "comment",
            Self::Inferred => "inferred",
        }
    }
}

/// A kernel file's request, and the source of its contract.
#[derive(Debug, Clone)]
pub struct KernelRequest {
    pub request: EvaluateRequest,
    /// Source of the contract.
    pub from: ContractFrom,
    /// Assumptions of an inferred contract; empty if the contract was given.
    pub assumed: Vec<String>,
}

/// Returns the request for a kernel file. `contract` is the content of the contract file next to
/// it.
///
/// # Errors
/// The reason why there is no request, with a remedy.
pub fn request_of(
    name: &str,
    content: &[u8],
    contract: Option<(BodyFormat, &[u8])>,
    compile: Compile<'_>,
) -> Result<KernelRequest, EvaluatorError> {
    request_with(name, content, contract, &Wishes::default(), compile)
}

/// Works like [`request_of`], but parts of an inferred contract can be given.
///
/// # Errors
/// The reason why there is no request, with a remedy.
pub fn request_with(
    name: &str,
    content: &[u8],
    contract: Option<(BodyFormat, &[u8])>,
    wishes: &Wishes,
    compile: Compile<'_>,
) -> Result<KernelRequest, EvaluatorError> {
    let kind = kernel_type(name).ok_or_else(|| {
        FileRejection::new("unknown_file", format!("`{name}` is not a kernel file"))
    })?;
    let (kind, code) = in_its_language(name, kind, code(kind, content)?)?;
    let (from, given) = match contract {
        Some((format, bytes)) => (ContractFrom::File, Some(parsed(format, bytes)?)),
        None => match code.text().and_then(comment::contract) {
            Some(yaml) => (ContractFrom::Comment, Some(parsed(BodyFormat::Yaml, yaml.as_bytes())?)),
            None => (ContractFrom::Inferred, None),
        },
    };
    let (fields, assumed) = match given {
        Some(fields) => (completed(fields, name, kind, &code)?, Vec::new()),
        None => inferred(name, kind, &code, wishes, compile)?,
    };
    request(fields, from, assumed)
}

/// Returns the compilation that the header of a CUDA file requests in place of an evaluation, with
/// caveats. Python is compiled when it is evaluated.
pub(crate) fn compilation_of(name: &str, content: &[u8]) -> Option<(CompileRequest, Vec<String>)> {
    if kernel_type(name) != Some(KernelType::Cuda) {
        return None;
    }
    let code = code(KernelType::Cuda, content).ok()?;
    if !code.text().is_some_and(language::is_compiled_only) {
        return None;
    }
    let (KernelType::Cuda, code) = in_its_language(name, KernelType::Cuda, code).ok()? else {
        return None;
    };
    let has_main = code.text().is_some_and(infer::is_whole_program);
    let caveat = "the device code was compiled; the main() of the file was omitted";
    let mut kernel = Map::new();
    kernel.insert("kernel_type".to_owned(), json!(KernelType::Cuda));
    put_code(&mut kernel, &code);
    let request = serde_json::from_value(json!({"kernel": kernel})).ok()?;
    Some((request, has_main.then(|| caveat.to_owned()).into_iter().collect()))
}

fn request(
    fields: Map<String, Value>,
    from: ContractFrom,
    assumed: Vec<String>,
) -> Result<KernelRequest, EvaluatorError> {
    let request =
        warpgauge_contract::compatible_from_value(Value::Object(fields)).map_err(|error| {
            let at = match path_text(&error.path()) {
                root if root.is_empty() => ".".to_owned(),
                at => at,
            };
            let why = error.message();
            FileRejection::new("invalid_contract", format!("the contract: {at}: {why}"))
        })?;
    Ok(KernelRequest { request, from, assumed })
}

/// Returns the request for the first kernel in a program. It is used if the program cannot run;
/// `reason` is the reason.
///
/// # Errors
/// The reason why there is no request, with a remedy.
pub(crate) fn kernel_of_program(
    name: &str,
    content: &[u8],
    reason: &str,
    compile: Compile<'_>,
) -> Result<KernelRequest, EvaluatorError> {
    let code = code(KernelType::Cuda, content)?;
    if code.text().is_none_or(|text| infer::entries(text).is_empty()) {
        let message =
            format!("the file is a whole program, which cannot run on this machine: {reason}");
        return Err(FileRejection::new("whole_program", message).into());
    }
    let (fields, mut assumed) =
        inferred_kernel(name, KernelType::Cuda, &code, &Wishes::default(), compile)?;
    assumed.insert(0, format!("the program cannot run on this machine: {reason}"));
    request(fields, ContractFrom::Inferred, assumed)
}

/// Code in the form in which contracts contain it.
enum Code {
    Text(String),
    Image(String),
}

impl Code {
    fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Image(_) => None,
        }
    }
}

fn code(kind: KernelType, content: &[u8]) -> Result<Code, FileRejection> {
    if kind.code_form() == CodeForm::Binary {
        return Ok(Code::Image(base64::engine::general_purpose::STANDARD.encode(content)));
    }
    let refused = |message: String| Err(FileRejection::new("not_text", message));
    let is_empty = content.iter().all(u8::is_ascii_whitespace);
    match warpgauge_code::source::text_of(content.to_vec()) {
        Ok(_) if is_empty => refused("the file is empty: save a kernel in it".into()),
        Ok(text) if text.contains('\0') => refused("the file is binary: it has a zero byte".into()),
        Ok(text) => Ok(Code::Text(text)),
        Err(at) => {
            let is_utf16 = content.starts_with(&[0xFF, 0xFE]) || content.starts_with(&[0xFE, 0xFF]);
            let others = "save it as UTF-8; machine code has the name .cubin or .fatbin";
            let remedy = if is_utf16 { "it is UTF-16: save it as UTF-8" } else { others };
            refused(format!("the file is not source code: byte {at} is not UTF-8; {remedy}"))
        }
    }
}

/// Returns the kernel type and the code of a file that ends in `.cu` but may be written in another
/// language.
fn in_its_language(
    name: &str,
    kind: KernelType,
    code: Code,
) -> Result<(KernelType, Code), FileRejection> {
    match (kind, code) {
        (KernelType::Cuda, Code::Text(text)) => {
            let (kind, text) = language::of_cuda_file(name, text)?;
            Ok((kind, Code::Text(text)))
        }
        (KernelType::Triton, Code::Text(text)) => {
            Ok((KernelType::Triton, Code::Text(language::of_python_file(text))))
        }
        other => Ok(other),
    }
}

fn parsed(format: BodyFormat, bytes: &[u8]) -> Result<Map<String, Value>, FileRejection> {
    match warpgauge_contract::parse(format, bytes) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(FileRejection::new(
            "invalid_contract",
            "the contract: expected a mapping that contains `kernel`",
        )),
        Err(error) => Err(FileRejection::new("invalid_contract", format!("the contract: {error}"))),
    }
}

/// Adds the file's code to a given contract.
fn completed(
    mut fields: Map<String, Value>,
    name: &str,
    kind: KernelType,
    code: &Code,
) -> Result<Map<String, Value>, FileRejection> {
    let kernel = fields.entry("kernel").or_insert_with(|| json!({}));
    let Value::Object(kernel) = kernel else {
        return Err(FileRejection::new(
            "invalid_contract",
            "the contract: kernel: expected a mapping",
        ));
    };
    if let Some(file) = kernel.remove("source_file")
        && file != name
    {
        return Err(FileRejection::new(
            "invalid_contract",
            format!(
                "the contract: kernel.source_file names {file}, but the contract belongs to `{name}`: remove the field"
            ),
        ));
    }
    for given in ["source_code", "binary_b64"] {
        if kernel.contains_key(given) {
            let message = format!(
                "the contract: kernel.{given} is set, but the kernel file is the code: remove the field"
            );
            return Err(FileRejection::new("invalid_contract", message));
        }
    }
    let named = kernel.contains_key("io")
        || kernel.get("metadata").is_some_and(|given| given.get("kernel_name").is_some());
    // A contract with launch parameters refers to a kernel, not to the program that contains the
    // kernel.
    let kind = match guessed(kind, code) {
        KernelType::Program if named => KernelType::Cuda,
        kind => kind,
    };
    let kind = serde_json::to_value(kind).unwrap_or_default();
    kernel.entry("kernel_type").or_insert(kind);
    put_code(kernel, code);
    let expected = fields.get("expected").and_then(Value::as_object);
    for (output, expectation) in expected.into_iter().flatten() {
        if expectation.get("kernel").is_some_and(|kernel| kernel.get("source_file").is_some()) {
            return Err(FileRejection::new(
                "invalid_contract",
                format!(
                    "the contract: expected.{output}.kernel.source_file: other files of the folder are \
                     separate kernels; set the reference as source_code"
                ),
            ));
        }
    }
    Ok(fields)
}

fn put_code(kernel: &mut Map<String, Value>, code: &Code) {
    match code {
        Code::Text(text) => kernel.insert("source_code".to_owned(), json!(text)),
        Code::Image(image) => kernel.insert("binary_b64".to_owned(), json!(image)),
    };
}

/// Returns the kernel type that the code shows. Python without a Triton kernel is PyTorch. CUDA C++
/// with a `main()` is a program.
fn guessed(kind: KernelType, code: &Code) -> KernelType {
    match (kind, code.text()) {
        (KernelType::Triton, Some(text)) if !text.contains("triton.jit") => KernelType::Torch,
        (KernelType::Cuda, Some(text)) if infer::is_whole_program(text) => KernelType::Program,
        _ => kind,
    }
}

/// Returns a contract for a program that has none, and the assumptions in it.
fn program(code: &Code) -> (Map<String, Value>, Vec<String>) {
    let mut kernel = Map::new();
    kernel.insert("kernel_type".to_owned(), json!(KernelType::Program));
    put_code(&mut kernel, code);
    let mut fields = Map::new();
    fields.insert("kernel".to_owned(), Value::Object(kernel));
    fields.insert("timeout".to_owned(), json!(INFERRED_TIMEOUT_S));
    let assumed = "the file is a whole program with a main(): it runs without arguments, and is correct if \
                   its exit code is 0; a contract can check more (expected.stdout)";
    (fields, vec![assumed.to_owned()])
}

/// Infers a contract for code that has none.
fn inferred(
    name: &str,
    kind: KernelType,
    code: &Code,
    wishes: &Wishes,
    compile: Compile<'_>,
) -> Result<(Map<String, Value>, Vec<String>), EvaluatorError> {
    // If a kernel is named, it is evaluated in place of the program that contains it.
    if guessed(kind, code) == KernelType::Program && *wishes == Wishes::default() {
        return Ok(program(code));
    }
    inferred_kernel(name, kind, code, wishes, compile)
}

/// Infers a contract for a kernel that has none.
fn inferred_kernel(
    name: &str,
    kind: KernelType,
    code: &Code,
    wishes: &Wishes,
    compile: Compile<'_>,
) -> Result<(Map<String, Value>, Vec<String>), EvaluatorError> {
    let inferred = infer_contract(name, kind, code, wishes, compile)?;
    let mut fields = Map::new();
    let mut kernel = Map::new();
    kernel.insert("kernel_type".to_owned(), json!(inferred.kernel_type));
    put_code(&mut kernel, code);
    if !inferred.guess.io.is_empty() {
        kernel.insert("metadata".to_owned(), json!({"kernel_name": inferred.kernel_name}));
        kernel.insert("io".to_owned(), Value::Object(inferred.guess.io.clone()));
    }
    fields.insert("kernel".to_owned(), Value::Object(kernel));
    fields.insert("num_trials".to_owned(), json!(INFERRED_TRIALS));
    fields.insert("timeout".to_owned(), json!(INFERRED_TIMEOUT_S));
    let mut assumed = inferred.assumed;
    assumed.extend(inferred.guess.assumptions());
    Ok((fields, assumed))
}

/// An inferred contract of a kernel.
#[derive(Debug, Clone)]
pub struct InferredContract {
    /// Type of the kernel. The name of the file alone does not determine it.
    pub kernel_type: KernelType,
    /// Name of the kernel in the compiled image.
    pub kernel_name: String,
    /// Names of all kernels in the file.
    pub entries: Vec<String>,
    /// Inferred arguments and launch parameters.
    pub guess: infer::Guess,
    /// Assumptions in addition to those in `guess`.
    pub assumed: Vec<String>,
}

/// Infers the contract of a kernel in a file. `wishes` contains parts that are already fixed.
///
/// # Errors
/// The reason why the contract cannot be inferred, with a remedy.
pub fn infer_file(
    name: &str,
    content: &[u8],
    wishes: &Wishes,
    compile: Compile<'_>,
) -> Result<InferredContract, EvaluatorError> {
    let kind = kernel_type(name).ok_or_else(|| {
        FileRejection::new(
            "unknown_file",
            format!("`{name}` is not a kernel file: expected .cu, .ptx, .cubin, .fatbin or .py"),
        )
    })?;
    infer_contract(name, kind, &code(kind, content)?, wishes, compile)
}

fn infer_contract(
    name: &str,
    kind: KernelType,
    code: &Code,
    wishes: &Wishes,
    compile: Compile<'_>,
) -> Result<InferredContract, EvaluatorError> {
    if kind == KernelType::Triton {
        return infer_python(code.text().unwrap_or_default(), wishes);
    }
    let wanted = wishes.kernel.as_deref();
    let source = code.text();
    let entries = match (kind, source) {
        (KernelType::Cuda, Some(source)) => infer::entries(source),
        _ => Vec::new(),
    };
    let mut assumed = Vec::new();
    if kind == KernelType::Cuda && source.is_some_and(infer::is_whole_program) {
        if entries.is_empty() {
            return Err(FileRejection::new(
                "whole_program",
                "the file is a whole program without a kernel for which a contract could be inferred",
            )
            .into());
        }
        assumed.push(
            "the file is a whole program: its main() does not run, and does not determine sizes, contents or \
             launches here"
                .to_owned(),
        );
    }
    let chosen = match wanted {
        Some(wanted) => Some(wanted.to_owned()),
        None => entries.first().map(|entry| entry.name.clone()),
    };
    if wanted.is_none()
        && let Some(first) = entries.first()
    {
        if entries.len() > 1 {
            let names = entries.iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>();
            assumed.push(format!(
                "kernel: of {}, the first, `{}`, is evaluated; metadata.kernel_name in a contract chooses another",
                names.join(", "),
                first.name
            ));
        }
        if first.guessed_instance {
            assumed.push(format!("kernel: the template is instantiated as `{}`", first.name));
        }
    }
    compiled(name, kind, code, chosen.as_deref(), compile).and_then(|(symbol_name, parameters)| {
        let guess = infer::contract(source, &symbol_name, &parameters, wishes)
            .map_err(|message| FileRejection::new("contract_needed", message))?;
        let entries = entries.into_iter().map(|entry| entry.name).collect();
        Ok(InferredContract {
            kernel_type: kind,
            kernel_name: chosen.clone().unwrap_or(symbol_name),
            entries,
            guess,
            assumed,
        })
    })
}

/// Infers the contract of a Python file. The file contains a Triton kernel, or PyTorch code that
/// creates its inputs.
fn infer_python(source: &str, wishes: &Wishes) -> Result<InferredContract, EvaluatorError> {
    let has = |definition: &str| source.lines().any(|line| line.starts_with(definition));
    let makes_inputs = has("def get_inputs(");
    let is_torch = !source.contains("triton.jit") || makes_inputs && has("class Model");
    if is_torch && !makes_inputs {
        let message = "the inputs of the torch kernel are not known: define `get_inputs()` in the file, or put a contract \
                       beside it or in its first comment";
        return Err(FileRejection::new("contract_needed", message).into());
    }
    if is_torch {
        return Ok(InferredContract {
            kernel_type: KernelType::Torch,
            kernel_name: String::new(),
            entries: Vec::new(),
            guess: infer::Guess::default(),
            assumed: vec!["inputs: the values that `get_inputs()` of the file returns".to_owned()],
        });
    }
    let infer::python::TritonGuess { kernel_name, entries, guess } =
        infer::python::contract(source, wishes)
            .map_err(|message| FileRejection::new("contract_needed", message))?;
    let kernel_type = KernelType::Triton;
    Ok(InferredContract { kernel_type, kernel_name, entries, guess, assumed: Vec::new() })
}

/// Compiles the kernel, and returns its name and parameters.
fn compiled(
    name: &str,
    kind: KernelType,
    code: &Code,
    chosen: Option<&str>,
    compile: Compile<'_>,
) -> Result<(String, Vec<infer::CompiledParameter>), EvaluatorError> {
    let mut kernel = Map::new();
    kernel.insert("kernel_type".to_owned(), serde_json::to_value(kind).unwrap_or_default());
    put_code(&mut kernel, code);
    if let Some(chosen) = chosen {
        kernel.insert("metadata".to_owned(), json!({"kernel_name": chosen}));
    }
    let request: CompileRequest =
        serde_json::from_value(json!({"kernel": kernel})).map_err(|error| {
            FileRejection::new("internal", format!("the compilation's request: {error}"))
        })?;
    let response = compile(&request)?;
    let Some(report) = response.compile.filter(|_| response.compiled) else {
        let why = response.compilation_error.unwrap_or_else(|| "unknown reason".to_owned());
        return Err(
            FileRejection::new("compile_error", format!("{name} does not compile: {why}")).into()
        );
    };
    if report.symbol.is_empty() {
        let message = format!(
            "{name} has {} kernels; set metadata.kernel_name in a contract to one of them: {}",
            report.kernels.len(),
            report.kernels.join(", ")
        );
        return Err(FileRejection::new("contract_needed", message).into());
    }
    let entry = response.signatures.into_iter().find(|kernel| kernel.symbol == report.symbol);
    let told = entry.and_then(|entry| Some((entry.name, entry.parameters?)));
    let Some((entry, parameters)) = told else {
        let message = "the image does not list the kernel's parameters, or the server is too old to read them: write a contract";
        return Err(FileRejection::new("contract_needed", message).into());
    };
    let parameters = parameters.into_iter().map(|parameter| infer::CompiledParameter {
        name: parameter.name,
        c_type: parameter.c_type,
        bytes: parameter.bytes,
    });
    Ok((entry, parameters.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    fn refused(name: &str, content: &[u8], contract: Option<&str>) -> String {
        let contract = contract.map(|text| (BodyFormat::Yaml, text.as_bytes()));
        match request_of(name, content, contract, &mut |_| Err(EvaluatorError::Stopped))
            .unwrap_err()
        {
            EvaluatorError::Refused(refusal) => refusal.code,
            other => other.to_string(),
        }
    }

    #[test]
    fn what_is_no_kernel_is_refused_with_a_code() {
        assert_eq!(refused("a.cu", b"\xff\xfe", None), "not_text");
        assert_eq!(refused("a.cu", b"a\0b", None), "not_text");
        assert_eq!(refused("a.py", b"import torch", None), "contract_needed");
        assert_eq!(refused("a.cu", b"x", Some("- 1")), "invalid_contract");
        assert_eq!(refused("a.cu", b"x", Some("kernel: {source_file: b.cu}")), "invalid_contract");
        assert_eq!(refused("a.cu", b"x", Some("kernle: {}")), "invalid_contract");
        assert_eq!(refused("a.cu", b"__global__ void k() {}", None), "stopped");
    }

    #[test]
    fn a_file_with_a_main_is_a_program_unless_its_contract_means_a_kernel() {
        let kind = |content: &str, contract: Option<&str>| {
            let given = contract.map(|text| (BodyFormat::Yaml, text.as_bytes()));
            let made = request_of("a.cu", content.as_bytes(), given, &mut |_| {
                Err(EvaluatorError::Stopped)
            });
            made.unwrap().request.kernel.kernel_type
        };
        let source = "__global__ void k() {}\nint main() { k<<<1, 1>>>(); }";
        assert_eq!(kind(source, None), KernelType::Program);
        let made =
            request_of("a.cu", source.as_bytes(), None, &mut |_| Err(EvaluatorError::Stopped));
        assert_eq!(made.unwrap().request.timeout, INFERRED_TIMEOUT_S);
        assert_eq!(kind(source, Some("expected: {exit_code: {code: 0}}")), KernelType::Program);
        assert_eq!(kind(source, Some("kernel: {metadata: {arguments: [a]}}")), KernelType::Program);
        for contract in [
            "kernel: {metadata: {kernel_name: k}}",
            "kernel: {io: {args: []}}",
            "kernel: {kernel_type: cuda}",
        ] {
            assert_eq!(kind(source, Some(contract)), KernelType::Cuda, "{contract}");
        }
        let refused = kernel_of_program("a.cu", b"int main() {}", "no nvcc", &mut |_| {
            Err(EvaluatorError::Stopped)
        });
        match refused.unwrap_err() {
            EvaluatorError::Refused(refusal) => assert_eq!(refusal.code, "whole_program"),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn a_contract_gets_the_files_code() {
        let contract = "kernel: {source_file: a.cu}\nnum_trials: 3";
        let made =
            request_of("a.cu", b"code", Some((BodyFormat::Yaml, contract.as_bytes())), &mut |_| {
                Err(EvaluatorError::Stopped)
            })
            .unwrap();
        assert_eq!(made.request.kernel.source_code.as_deref(), Some("code"));
        assert_eq!((made.from, made.request.num_trials), (ContractFrom::File, Some(3)));
        let python = request_of(
            "a.py",
            b"# warpgauge contract:\n# kernel: {}\nimport torch",
            None,
            &mut |_| Err(EvaluatorError::Stopped),
        );
        assert_eq!(python.unwrap().request.kernel.kernel_type, KernelType::Torch);
    }
}
