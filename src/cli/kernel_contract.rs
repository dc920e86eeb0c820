//! Contracts for commands that accept a kernel file in place of a contract, such as `warpgauge eval
//! kernel.cu`.
//!
//! The contract is the file NAME.yaml next to the kernel, or text in the kernel's first comment.
//! Otherwise the program infers a contract, as `warpgauge init` does. A line on standard error
//! states where the contract comes from.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::args::Target;
use super::assume::KernelFlags;
use super::compile::kernel_type_of;
use super::contract_file::{ContractFile, LocalFiles, read_file};
use super::place::{self, Place};
use super::progress::Progress;
use super::terminal::{Terminal, plain_line};
use super::{CliError, sweep_axes};
use warpgauge_code::infer::Wishes;
use warpgauge_config::Config;
use warpgauge_watch::{Compile, ContractFrom, EvaluatorError, KernelRequest, request_with};

/// Maximum size of a kernel file, bytes.
const MAX_BYTES: u64 = 64 << 20;

/// Extensions of contract files next to a kernel. The first file that exists is used.
const CONTRACTS: [&str; 3] = ["yaml", "yml", "json"];

/// Maximum number of assumptions that the line on standard error lists.
const SHOWN: usize = 8;

/// A contract that was found in a kernel file or inferred.
struct FoundContract {
    fields: Map<String, Value>,
    /// The request, with the source of its contract and the assumptions of an inference.
    request: KernelRequest,
    /// Paths of the local files that the kernel includes or imports.
    beside: Vec<PathBuf>,
}

/// A kernel file for which no contract file exists.
pub(super) struct KernelFile {
    path: PathBuf,
    /// Name of the file.
    pub name: String,
    content: Vec<u8>,
}

impl KernelFile {
    pub(super) fn read(path: &Path) -> Result<Self, CliError> {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let content = read_file(path, MAX_BYTES)?;
        Ok(Self { path: path.to_owned(), name: name.unwrap_or_default(), content })
    }

    /// Calls `infer` with the name and the content of the file. `infer` may compile the kernel,
    /// with its local files, in `place`.
    pub(super) fn inferred<T>(
        &self,
        place: &mut dyn Place,
        infer: impl FnOnce(&str, &[u8], Compile<'_>) -> Result<T, EvaluatorError>,
    ) -> Result<T, CliError> {
        let mut failed = None;
        let inferred = infer(&self.name, &self.content, &mut |request| {
            let mut request = request.clone();
            let added = LocalFiles::add_to(&mut request.kernel, &self.path);
            let reply = added.map_err(CliError::from).and_then(|_| place.compile(request));
            reply.map(|reply| reply.value).map_err(|error| {
                failed = Some(error);
                EvaluatorError::Stopped
            })
        });
        inferred.map_err(|trouble| match (failed, trouble) {
            (Some(error), _) => error,
            (None, EvaluatorError::Refused(refusal)) if refusal.code == "compile_error" => {
                // The compiler knows the source under another name than that of the file.
                let own = format!("{}:", self.path.display());
                let text =
                    ["kernel.cu:", "kernel.py:"].iter().fold(refusal.message, |text, name| {
                        text.replace(&format!(" {name}"), &format!(" {own}"))
                    });
                CliError::NotCompiled(text)
            }
            (None, trouble) => CliError::Usage(trouble.to_string()),
        })
    }

    /// Returns the contract in the first comment, or an inferred contract. `wishes` contains parts
    /// that are already fixed. A line on standard error states where the contract comes from.
    pub(super) fn contract(
        &self,
        place: &mut dyn Place,
        terminal: Terminal,
        wishes: &Wishes,
    ) -> Result<ContractFile, CliError> {
        let FoundContract { fields, request, beside } = self.fields(place, wishes)?;
        self.announce(&fields, request.from, &request.assumed, terminal);
        Ok(ContractFile::of(&self.name, fields).with_source(&self.path, beside))
    }

    /// Returns the contract for several values of its numbers. Prints the assumptions of the
    /// inference.
    pub(super) fn contract_for_axes(
        &self,
        place: &mut dyn Place,
        terminal: Terminal,
        flags: &KernelFlags,
    ) -> Result<ContractFile, CliError> {
        let mut first = None;
        let mut files = Vec::new();
        let fields = sweep_axes::joined(&flags.assume, &mut |pick| {
            let wishes = flags.assume.wishes(flags.kernel_name.as_deref(), pick);
            let found = self.fields(place, &wishes)?;
            files = found.beside;
            first.get_or_insert((found.request.from, found.request.assumed));
            Ok(found.fields)
        })?;
        if let Some((from, assumed)) = first {
            self.announce(&fields, from, &assumed, terminal);
        }
        Ok(ContractFile::of(&self.name, fields).with_source(&self.path, files))
    }

    /// Returns the fields of the contract in the first comment, or of an inferred contract.
    fn fields(&self, place: &mut dyn Place, wishes: &Wishes) -> Result<FoundContract, CliError> {
        let found = self.inferred(place, |name, content, compile| {
            request_with(name, content, None, wishes, compile)
        });
        let mut found = found.map_err(|error| match error {
            CliError::Usage(text) => CliError::Usage(format!("{}: {text}", self.name)),
            other => other,
        })?;
        let beside = LocalFiles::add_to(&mut found.request.kernel, &self.path)?;
        let Ok(Value::Object(fields)) = serde_json::to_value(&found.request) else {
            return Err(CliError::Internal(format!(
                "the contract of {} is not an object",
                self.name
            )));
        };
        Ok(FoundContract { fields: given(fields), request: found, beside })
    }

    fn announce(
        &self,
        fields: &Map<String, Value>,
        from: ContractFrom,
        assumed: &[String],
        terminal: Terminal,
    ) {
        // A choice among several kernels, or among template arguments, is printed on a separate
        // line.
        for choice in assumed.iter().filter(|text| text.starts_with("kernel: ")) {
            terminal.note(&plain_line(&format!("warpgauge: {choice}")));
        }
        // The name of a file may contain control characters.
        terminal.note(&plain_line(&match from {
            ContractFrom::Inferred => line(&self.path, &fields["kernel"], assumed),
            _ => format!("warpgauge: the contract is in the first comment of {}", self.name),
        }));
    }
}

/// What the file on the command line contains.
enum Given {
    Contract(ContractFile),
    Kernel(KernelFile),
}

/// Reads a contract file, the contract file next to a kernel, or a kernel file without a contract
/// file.
fn read(path: &Path, limit: u64, terminal: Terminal) -> Result<Given, CliError> {
    if kernel_type_of(path).is_none() {
        return Ok(Given::Contract(ContractFile::read(path, limit)?));
    }
    let beside = CONTRACTS.map(|ending| path.with_extension(ending));
    match beside.iter().find(|contract| contract.is_file()) {
        Some(contract) => {
            let text = format!("warpgauge: the contract is {}", contract.display());
            terminal.note(&plain_line(&text));
            Ok(Given::Contract(ContractFile::read(contract, limit)?))
        }
        None => Ok(Given::Kernel(KernelFile::read(path)?)),
    }
}

/// Returns the paths at which a contract file next to a kernel may be.
pub(super) fn contracts_beside(path: &Path) -> Vec<PathBuf> {
    match kernel_type_of(path) {
        Some(_) => CONTRACTS.map(|ending| path.with_extension(ending)).to_vec(),
        None => Vec::new(),
    }
}

/// Opens the place that evaluates a contract or a kernel file, and returns the contract.
///
/// `infer` returns the contract for a kernel file that has none, and `complete` applies the flags
/// of the command to a contract. `stage` describes the work of the command in the progress line.
pub(super) fn open<'c>(
    path: &Path,
    target: (&'c Target, f64),
    (config, terminal): (&'c Config, Terminal),
    progress: (&Progress, &str),
    infer: impl FnOnce(&KernelFile, &mut dyn Place) -> Result<ContractFile, CliError>,
    complete: impl Fn(&mut ContractFile) -> Result<(), CliError>,
) -> Result<(Box<dyn Place + 'c>, ContractFile), CliError> {
    let mut place = None;
    let (_, contract) =
        open_in(&mut place, path, target, (config, terminal), progress, infer, complete)?;
    let none = || CliError::Internal("an opened place is missing".to_owned());
    Ok((place.ok_or_else(none)?, contract))
}

/// Works like [`open`], but the place remains open for further calls.
pub(super) fn open_in<'p, 'c>(
    place: &'p mut Option<Box<dyn Place + 'c>>,
    path: &Path,
    (target, patience_s): (&'c Target, f64),
    (config, terminal): (&'c Config, Terminal),
    (progress, stage): (&Progress, &str),
    infer: impl FnOnce(&KernelFile, &mut dyn Place) -> Result<ContractFile, CliError>,
    complete: impl Fn(&mut ContractFile) -> Result<(), CliError>,
) -> Result<(&'p mut (dyn Place + 'c), ContractFile), CliError> {
    let mut given = read(path, config.server.body_limit_bytes, terminal)?;
    // A mistake in a contract is reported before a device is opened.
    if let Given::Contract(contract) = &mut given {
        complete(contract)?;
    }
    let place = match place {
        Some(place) => place,
        none => none.insert(place::open(target, patience_s, config, terminal)?),
    };
    progress.stage(&place.stage(stage, "starting"));
    let contract = match given {
        Given::Contract(contract) => contract,
        Given::Kernel(kernel) => {
            let mut contract = infer(&kernel, &mut **place)?;
            complete(&mut contract)?;
            contract
        }
    };
    Ok((&mut **place, contract))
}

/// Removes the fields whose value is null.
fn given(fields: Map<String, Value>) -> Map<String, Value> {
    fields.into_iter().filter(|(_, value)| !value.is_null()).collect()
}

/// Returns the assumptions of a contract as one line.
fn line(path: &Path, kernel: &Value, assumed: &[String]) -> String {
    let args = kernel["io"]["args"].as_array().map_or(&[][..], Vec::as_slice);
    let mut parts = args.iter().filter_map(assumption).collect::<Vec<_>>();
    if let Some(more) = parts.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        parts.truncate(SHOWN);
        parts.push(format!("{more} more"));
    }
    let name = path.display();
    if parts.is_empty() {
        let first = assumed.first().map_or("a kernel without arguments", String::as_str);
        return format!("warpgauge: assumed: {first}");
    }
    format!(
        "warpgauge: assumed {}; `warpgauge init {name}` writes the contract to a file",
        parts.join(", ")
    )
}

/// Returns the assumption that a contract makes about an argument.
fn assumption(arg: &Value) -> Option<String> {
    let name = arg["name"].as_str()?;
    match arg["tensor_spec"]["shape"].as_array() {
        Some(shape) => {
            let extents = shape.iter().map(|extent| match extent {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            });
            let dtype = arg["tensor_spec"]["dtype"].as_str().unwrap_or_default();
            Some(format!("{name}: {dtype}[{}]", extents.collect::<Vec<_>>().join(", ")))
        }
        None if arg["value"].is_null() => None,
        None => Some(format!("{name} = {}", arg["value"])),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_line_names_each_argument() {
        let kernel = json!({"io": {"args": [
            {"name": "x", "tensor_spec": {"dtype": "float32", "shape": [65536]}},
            {"name": "a", "value": 2.0},
            {"name": "n", "value": 65536},
        ]}});
        let text = line(Path::new("scale.cu"), &kernel, &[]);
        assert_eq!(
            text,
            "warpgauge: assumed x: float32[65536], a = 2.0, n = 65536; `warpgauge init scale.cu` writes the \
             contract to a file"
        );
        let many = json!({"io": {"args": vec![json!({"name": "n", "value": 1}); 10]}});
        assert!(line(Path::new("k.cu"), &many, &[]).contains("n = 1, 2 more; "));
        let torch =
            line(Path::new("m.py"), &json!({}), &["inputs: those of `get_inputs()`".to_owned()]);
        assert_eq!(torch, "warpgauge: assumed: inputs: those of `get_inputs()`");
    }

    #[test]
    fn a_contract_beside_a_kernel_is_its_contract() {
        let folder = tempfile::tempdir().unwrap();
        let kernel = folder.path().join("k.cu");
        std::fs::write(&kernel, "__global__ void k() {}").unwrap();
        let quiet = Terminal {
            quiet: true,
            colour: false,
            interactive: false,
            verbose: false,
            width: None,
        };
        assert!(matches!(read(&kernel, 1 << 20, quiet), Ok(Given::Kernel(_))));
        std::fs::write(
            kernel.with_extension("yaml"),
            "kernel: {kernel_type: cuda, source_file: k.cu}\n",
        )
        .unwrap();
        let Ok(Given::Contract(contract)) = read(&kernel, 1 << 20, quiet) else {
            panic!("no contract")
        };
        assert_eq!(contract.fields["kernel"]["source_code"], "__global__ void k() {}");
    }
}
