//! Compiles a source. One pass has up to four compilations: with type queries, without them, type
//! queries alone, and queries for the layout of structures.
//!
//! The queries (see [`signature`](crate::signature)) must never fail a source that compiles without
//! them. If the compilation with them fails, the source is compiled unchanged, and that result
//! counts. If it fails, too, there is another pass without host code and with constexpr functions
//! for the device, if the source has either. The last pass has only the code that device code
//! reaches.

use std::collections::HashMap;
use std::time::Instant;

use crate::artifact::KernelInfo;
use crate::binary::{read_cubin, read_ptx};
use crate::ctype::CType;
use crate::describe::Knowledge;
use crate::diagnostics::{NO_FILE, is_header};
use crate::layout::{LayoutQueries, Offset};
use crate::prelude::{self, HOST_HEADERS, PRELUDE, PRELUDE_NAME, STUB_HEADERS};
use crate::protocol::{Built, SourceText};
use crate::signature::{self, MAX_PROBES};
use crate::{diagnostics, ptxas};
use warpgauge_code::source::{
    DeviceCode, SourceKernel, enumerations, find_kernels, reached_code, with_relaxed_constexpr,
    without_host_code, without_include,
};
use warpgauge_device::nvrtc::{self, NvrtcError, NvrtcFault};
use warpgauge_model::FailureCode;
use warpgauge_model::{Diagnostic, ImageFormat, Severity};

/// A failure that the source did not cause.
#[derive(Debug, thiserror::Error)]
pub(super) enum AttemptError {
    #[error(transparent)]
    Library(#[from] NvrtcError),
    /// The compiler's output cannot be read.
    #[error("the compiler's output cannot be read: {0}")]
    Image(String),
}

/// Maximum number of absent files for which `#include` directives are removed from a source.
const MAX_ABSENT: usize = 16;

/// Final result of compiling a source.
pub(super) enum Finished {
    Built(Box<Built>),
    Rejected { code: FailureCode, log: String, diagnostics: Vec<Diagnostic> },
}

/// Compiles a text with in-memory headers and name expressions.
pub(super) type Compile<'a> =
    dyn FnMut(&str, &[(&str, &str)], &[String]) -> Result<nvrtc::NvrtcOutcome, NvrtcError> + 'a;

/// A source and the names that it must provide.
pub(super) struct Attempts<'a> {
    pub source: &'a SourceText,
    /// Names that the caller requests. The compilation fails if one of them does not compile.
    pub name_expressions: &'a [String],
    /// Paths of the structure fields whose layout is requested.
    pub fields: &'a [String],
}

/// Names that are requested in addition to the caller's, by purpose.
#[derive(Default)]
struct Extra<'a> {
    /// Kernels that the image contains only if they are requested by name (`static`, unnamed
    /// namespaces).
    internal: Vec<String>,
    /// C++ name of each kernel whose type is queried. The second element is the symbol, if it is
    /// known in advance.
    probes: Vec<(String, Option<String>)>,
    /// Queries for the layout of structures.
    layouts: Option<LayoutQueries<'a>>,
}

/// Result of a successful compilation: code, log, and the symbols of the requested names.
struct Success {
    built: nvrtc::NvrtcCode,
    log: String,
    expressions: HashMap<String, String>,
    types: HashMap<String, Vec<CType>>,
    /// Symbols that encode the layout of structures.
    layouts: Vec<String>,
}

impl Attempts<'_> {
    /// Compiles the source. If a file that it includes in quotes is absent, its `#include` is
    /// removed, and the device code must compile without the file.
    pub(super) fn run(&self, compile: &mut Compile<'_>) -> Result<Finished, AttemptError> {
        let mut finished = self.run_present(compile)?;
        let mut last = absent_file(&finished);
        if last.is_none() {
            return Ok(finished);
        }
        let mut source = self.source.clone();
        let mut absent = Vec::new();
        while let Some(name) = last.take()
            && absent.len() < MAX_ABSENT
            && without_file(&mut source, &name)
        {
            absent.push(name);
            match (Attempts { source: &source, ..*self }).run_present(compile)? {
                Finished::Built(mut built) => {
                    built.begin_with(absent.iter().map(|name| not_needed(name)).collect());
                    return Ok(Finished::Built(built));
                }
                rejected => last = absent_file(&rejected),
            }
        }
        if let (Finished::Rejected { diagnostics, .. }, Some(name)) =
            (&mut finished, absent.first())
        {
            diagnostics.push(needed(name));
        }
        Ok(finished)
    }

    /// Compiles the source or, if that fails, only its device code, including constexpr functions.
    fn run_present(&self, compile: &mut Compile<'_>) -> Result<Finished, AttemptError> {
        let finished = self.run_whole(compile)?;
        let Finished::Rejected { code: FailureCode::CompilationFailed, .. } = &finished else {
            return Ok(finished);
        };
        let mut note = Vec::new();
        let mut source = self.source.clone();
        let files = source.files.iter_mut().map(|(_, text)| text);
        for text in files.chain([&mut source.text]) {
            if let Some(device) = device_only(text, &mut note) {
                *text = device;
            }
        }
        let mut finished = match source == *self.source {
            true => finished,
            false => Attempts { source: &source, ..*self }.run_whole(compile)?,
        };
        if let Finished::Rejected { code: FailureCode::CompilationFailed, .. } = &finished
            && let Some(reached) = self.reached(compile, &source)?
        {
            return Ok(reached);
        }
        match &mut finished {
            Finished::Built(built) => built.begin_with(note),
            // The diagnostics now concern only the device code, and no longer the host code.
            Finished::Rejected { diagnostics, .. } => diagnostics.extend(note),
        }
        Ok(finished)
    }

    /// Compiles only the code that device code reaches, unless this is the text `tried`, which
    /// failed before. Returns the result only if it succeeds.
    fn reached(
        &self,
        compile: &mut Compile<'_>,
        tried: &SourceText,
    ) -> Result<Option<Finished>, AttemptError> {
        let texts = self.source.files.iter().map(|(_, text)| text.as_str());
        let texts: Vec<&str> = texts.chain([self.source.text.as_str()]).collect();
        let Some(reached) = reached_code(&texts) else { return Ok(None) };
        let mut source = self.source.clone();
        let mut note = Vec::new();
        let files = source.files.iter_mut().map(|(_, text)| text);
        for (text, device) in files.chain([&mut source.text]).zip(reached) {
            note.extend(device.iter().filter(|device| !device.left_out.is_empty()).map(left_out));
            if let Some(device) = device {
                *text = device.text;
            }
            if let Some(relaxed) = with_relaxed_constexpr(text) {
                *text = relaxed;
            }
        }
        if source == *tried || source == *self.source {
            return Ok(None);
        }
        match (Attempts { source: &source, ..*self }).run_whole(compile)? {
            Finished::Built(mut built) => {
                built.begin_with(note);
                Ok(Some(Finished::Built(built)))
            }
            // The diagnostics of the larger part of the source are more useful.
            Finished::Rejected { .. } => Ok(None),
        }
    }

    /// Compiles the source unchanged.
    fn run_whole(&self, compile: &mut Compile<'_>) -> Result<Finished, AttemptError> {
        let started = Instant::now();
        let kernels = find_kernels(&self.source.whole());
        let full = self.extra(&kernels);
        let first = self.attempt(compile, &full)?;
        let last = match first {
            // A compilation that exhausts the memory would do so again without the queries.
            Err((fault, _)) if fault != NvrtcFault::Memory && !full.is_empty() => {
                self.attempt(compile, &Extra::default())?
            }
            other => other,
        };
        let mut success = match last {
            Ok(success) => success,
            Err((fault, log)) => return Ok(rejected(fault, log)),
        };
        let mut infos = self.describe(&success, &kernels)?;
        let untyped: Vec<&str> =
            infos.iter().filter(|k| is_untyped(k)).map(|k| k.symbol.as_str()).collect();
        if !untyped.is_empty() {
            let probes = untyped.iter().take(MAX_PROBES);
            let probes = probes.map(|s| ((*s).to_owned(), Some((*s).to_owned()))).collect();
            let again = Extra { probes, ..Extra::default() };
            if let Ok(answers) = self.attempt(compile, &again)? {
                success.types.extend(answers.types);
                infos = self.describe(&success, &kernels)?;
            }
        }
        if let Some(queries) = LayoutQueries::new(self.fields, &infos) {
            let again = Extra { layouts: Some(queries), ..Extra::default() };
            if let Ok(answers) = self.attempt(compile, &again)?
                && let Some(queries) = &again.layouts
            {
                queries.answer(answers.layouts.iter().map(String::as_str), &mut infos);
            }
        }
        let (image, format) = match success.built.cubin {
            Some(cubin) => (cubin, ImageFormat::Cubin),
            None => (success.built.ptx, ImageFormat::Ptx),
        };
        let log = diagnostics::bound_log(ptxas::without_usage(&success.log));
        Ok(Finished::Built(Box::new(Built {
            image,
            format,
            kernels: infos,
            diagnostics: diagnostics::parse(&log),
            log,
            compiler_ms: started.elapsed().as_secs_f64() * 1e3,
        })))
    }

    /// Returns the names that are requested in addition to the caller's.
    fn extra(&self, kernels: &[SourceKernel]) -> Extra<'_> {
        let internal = kernels.iter().filter(|k| k.internal && !k.template).take(MAX_PROBES);
        let instances = self.name_expressions.iter().map(|name| (name.clone(), None));
        let c_kernels = kernels
            .iter()
            .filter(|k| k.extern_c)
            .map(|k| (k.name.clone(), Some(k.base_name().to_owned())));
        Extra {
            internal: internal.map(|k| k.name.clone()).collect(),
            probes: instances.chain(c_kernels).take(MAX_PROBES).collect(),
            layouts: None,
        }
    }

    /// Compiles once. Returns the code and the symbols, or the cause of the failure and the log.
    fn attempt(
        &self,
        compile: &mut Compile<'_>,
        extra: &Extra<'_>,
    ) -> Result<Result<Success, (NvrtcFault, String)>, NvrtcError> {
        let needs = prelude::needs_of(&self.source.whole());
        let mut text = prelude::prefix(&needs, self.source.toolkit_headers);
        text.push_str(&self.source.text);
        if !extra.probes.is_empty() {
            text.push_str(&signature::suffix());
        }
        if let Some(queries) = &extra.layouts {
            text.push_str(&queries.suffix(Offset::AddressOfNull));
        }
        let mut headers = vec![(PRELUDE_NAME, PRELUDE)];
        let stubs = STUB_HEADERS.iter().chain(&HOST_HEADERS).filter(|name| needs.is_empty(name));
        headers.extend(stubs.map(|name| (*name, "")));
        headers.extend(needs.replaced_headers());
        // A file of the source replaces the header with the same path.
        let files = &self.source.files;
        headers.retain(|(name, _)| !files.iter().any(|(path, _)| path == name));
        headers.extend(files.iter().map(|(path, text)| (path.as_str(), text.as_str())));
        let mut names = self.name_expressions.to_vec();
        names.extend(extra.internal.iter().cloned());
        names.extend(extra.probes.iter().map(|(kernel, _)| signature::probe(kernel)));
        names.extend(extra.layouts.iter().flat_map(LayoutQueries::instances));
        let outcome = compile(&text, &headers, &names)?;
        let mut built = match outcome.built {
            Ok(built) => built,
            Err(fault) => return Ok(Err((fault, outcome.log))),
        };
        let symbols = std::mem::take(&mut built.symbols);
        let (wanted, rest) = symbols.split_at(self.name_expressions.len().min(symbols.len()));
        let answers = rest.get(extra.internal.len()..).unwrap_or(&[]);
        let expressions: HashMap<String, String> =
            wanted.iter().cloned().zip(self.name_expressions.iter().cloned()).collect();
        let by_name: HashMap<&str, &str> = self
            .name_expressions
            .iter()
            .map(String::as_str)
            .zip(wanted.iter().map(String::as_str))
            .collect();
        let mut types = HashMap::new();
        for ((kernel, symbol), answer) in extra.probes.iter().zip(answers) {
            let symbol = symbol.as_deref().or_else(|| by_name.get(kernel.as_str()).copied());
            if let (Some(symbol), Some(answer)) = (symbol, signature::answer(answer)) {
                types.insert(symbol.to_owned(), answer);
            }
        }
        let layouts = answers.get(extra.probes.len()..).unwrap_or(&[]).to_vec();
        Ok(Ok(Success { built, log: outcome.log, expressions, types, layouts }))
    }

    fn describe(
        &self,
        success: &Success,
        kernels: &[SourceKernel],
    ) -> Result<Vec<KernelInfo>, AttemptError> {
        let knowledge = Knowledge {
            source: kernels,
            expressions: success.expressions.clone(),
            types: success.types.clone(),
            usage: ptxas::usage(&success.log),
            enumerations: enumerations(&self.source.whole()),
        };
        let infos: Vec<KernelInfo> = match &success.built.cubin {
            Some(cubin) => {
                let cubin = read_cubin(cubin).map_err(|e| AttemptError::Image(e.to_string()))?;
                cubin.kernels.into_iter().map(|k| knowledge.machine_code(k)).collect()
            }
            None => {
                let text = String::from_utf8_lossy(&success.built.ptx);
                let ptx = read_ptx(&text).map_err(|e| AttemptError::Image(e.to_string()))?;
                ptx.kernels.into_iter().map(|k| knowledge.ptx(k)).collect()
            }
        };
        Ok(infos.into_iter().filter(|k| !warpgauge_code::listing::is_probe(&k.symbol)).collect())
    }
}

impl Extra<'_> {
    fn is_empty(&self) -> bool {
        self.internal.is_empty() && self.probes.is_empty()
    }
}

/// Returns whether a kernel has C linkage that the source scan missed, e.g. behind a macro.
fn is_untyped(kernel: &KernelInfo) -> bool {
    let unknown = |p: &crate::artifact::Param| matches!(p.ctype, CType::Unknown | CType::Integer);
    !kernel.symbol.starts_with("_Z") && kernel.params.iter().flatten().any(unknown)
}

/// Returns the text without host code and with constexpr functions compiled for the device. Returns
/// `None` if the source has neither. Adds the removed names to `note`.
fn device_only(text: &str, note: &mut Vec<Diagnostic>) -> Option<String> {
    let device = without_host_code(text);
    note.extend(device.iter().map(left_out));
    let text_left = device.map(|device| device.text);
    with_relaxed_constexpr(text_left.as_deref().unwrap_or(text)).or(text_left)
}

/// Returns the first absent file that a rejected source includes, if its name is a path below a
/// directory of headers.
fn absent_file(finished: &Finished) -> Option<String> {
    let Finished::Rejected { code: FailureCode::CompilationFailed, log, .. } = finished else {
        return None;
    };
    let name = log.split(NO_FILE).nth(1)?.split('"').next()?;
    is_header(name).then(|| name.to_owned())
}

/// Removes the directives that include a file in quotes from the source and its files. Returns
/// whether there were any.
fn without_file(source: &mut SourceText, name: &str) -> bool {
    let mut is_changed = false;
    let files = source.files.iter_mut().map(|(_, text)| text);
    for text in files.chain([&mut source.text]) {
        if let Some(without) = without_include(text, name) {
            (*text, is_changed) = (without, true);
        }
    }
    is_changed
}

fn not_needed(name: &str) -> Diagnostic {
    Diagnostic {
        severity: Severity::Warning,
        ..Diagnostic::note(format!(
            "`#include \"{name}\"` is left out: the file is absent, and the device code compiles without it"
        ))
    }
}

fn needed(name: &str) -> Diagnostic {
    Diagnostic::note(format!(
        "`{name}` is absent, but the device code needs it: provide it in `kernel.files`; the command line sends files \
         that the source finds from its own directory"
    ))
}

/// Returns a note that names the host code with which the source was not compiled.
fn left_out(device: &DeviceCode) -> Diagnostic {
    let more = device.count - device.left_out.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let message = format!(
        "host code is left out, since only kernels are compiled here: {}{more}",
        device.left_out.join(", ")
    );
    Diagnostic::note(message)
}

fn rejected(fault: NvrtcFault, log: String) -> Finished {
    let code = match fault {
        NvrtcFault::Source => FailureCode::CompilationFailed,
        NvrtcFault::Option => FailureCode::CompilerOptionRefused,
        NvrtcFault::Memory => FailureCode::CompilerOutOfMemory,
        NvrtcFault::Compiler => FailureCode::CompilerFailed,
    };
    let log = diagnostics::bound_log(ptxas::without_usage(&log));
    Finished::Rejected { code, diagnostics: diagnostics::parse(&log), log }
}
