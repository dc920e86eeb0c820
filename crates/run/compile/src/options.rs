//! The compiler options that a caller may give.
//!
//! Only listed options are permitted; any other option is rejected, and the error names it. Options
//! that make the compiler read or write files are rejected with the reason. Options of nvcc that
//! have no meaning for NVRTC (host code, linking) are dropped.

use super::error::CompileError;
use warpgauge_contract::Backend;
use warpgauge_model::FailureCode;

/// Maximum number of options of one request.
const MAX_OPTIONS: usize = 256;

/// Maximum length of an option, bytes.
const MAX_OPTION_BYTES: usize = 4096;

/// Compiler options that passed the check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CheckedOptions {
    /// Words to add to the compiler's command line.
    pub words: Vec<String>,
    /// Suffix of architecture-specific (`a`) or family-specific (`f`) code, if requested.
    pub arch_suffix: Option<char>,
    /// Whether line information is requested.
    pub lineinfo: bool,
}

/// How an option is handled.
#[derive(Clone, Copy)]
enum Action {
    /// The option is passed to both compilers as `NAME` or `NAME=VALUE`.
    Pass,
    /// The option is passed to nvcc. It has no meaning for NVRTC.
    NvccOnly,
    Arch,
    /// The option requests line information.
    Lineinfo,
    /// The option contains options for the assembler.
    Ptxas,
    /// The option sets the number of threads of a compilation.
    Threads,
    /// The option is rejected, with this reason.
    Refuse(&'static str),
}

/// Whether an option takes a value, and its syntax.
#[derive(Clone, Copy, PartialEq)]
enum Value {
    No,
    /// `NAME=VALUE` or `NAME VALUE`.
    Yes,
    /// `NAME` or `NAME=VALUE`.
    Maybe,
    /// `-DX`: the value may follow without a separator.
    Joined,
}

struct Rule {
    /// All spellings of the option. The first is passed to the compiler.
    names: &'static [&'static str],
    value: Value,
    action: Action,
}

const fn rule(names: &'static [&'static str], value: Value, action: Action) -> Rule {
    Rule { names, value, action }
}

const FILES: &str = "the compiler reads only the toolkit's headers and the kernel's `files`; put code into \
                     source_code, and files that it includes into `files`";
const OUTPUT: &str = "the service determines the output";
const TOOLS: &str = "the service determines the parts of the compiler";

/// Maximum number of threads that a request may set for a compilation.
const MAX_THREADS: u32 = 8;

const RULES: &[Rule] = &[
    rule(&["--use_fast_math", "-use_fast_math"], Value::No, Action::Pass),
    rule(&["--ftz", "-ftz"], Value::Yes, Action::Pass),
    rule(&["--prec-div", "-prec-div"], Value::Yes, Action::Pass),
    rule(&["--prec-sqrt", "-prec-sqrt"], Value::Yes, Action::Pass),
    rule(&["--fmad", "-fmad"], Value::Yes, Action::Pass),
    rule(&["--maxrregcount", "-maxrregcount"], Value::Yes, Action::Pass),
    rule(&["--std", "-std"], Value::Yes, Action::Pass),
    rule(&["--device-debug", "-G"], Value::No, Action::Pass),
    rule(&["--generate-line-info", "-lineinfo", "--lineinfo"], Value::No, Action::Lineinfo),
    rule(&["--extra-device-vectorization", "-extra-device-vectorization"], Value::No, Action::Pass),
    rule(&["--restrict", "-restrict"], Value::No, Action::Pass),
    rule(&["--dopt", "-dopt"], Value::Yes, Action::Pass),
    rule(&["--Ofast-compile", "-Ofast-compile", "-Ofc"], Value::Yes, Action::Pass),
    rule(&["--split-compile", "-split-compile"], Value::Yes, Action::Threads),
    rule(&["--device-int128", "-device-int128"], Value::No, Action::Pass),
    rule(&["--device-float128", "-device-float128"], Value::No, Action::Pass),
    rule(&["--diag-suppress", "-diag-suppress"], Value::Yes, Action::Pass),
    rule(&["--diag-warn", "-diag-warn"], Value::Yes, Action::Pass),
    rule(&["--diag-error", "-diag-error"], Value::Yes, Action::Pass),
    rule(&["--disable-warnings", "-w"], Value::No, Action::Pass),
    rule(&["--define-macro", "-D"], Value::Joined, Action::Pass),
    rule(&["--undefine-macro", "-U"], Value::Joined, Action::Pass),
    rule(&["--ptxas-options", "-Xptxas"], Value::Yes, Action::Ptxas),
    rule(&["--gpu-architecture", "-arch", "--arch"], Value::Yes, Action::Arch),
    rule(&["--gpu-code", "-code", "-gencode", "--generate-code"], Value::Yes, Action::Arch),
    rule(
        &["--default-device", "-default-device"],
        Value::No,
        Action::Refuse(
            "it would make host code compile for the device and change the meaning of the kernel",
        ),
    ),
    rule(&["--expt-relaxed-constexpr", "-expt-relaxed-constexpr"], Value::No, Action::NvccOnly),
    rule(&["--expt-extended-lambda", "-expt-extended-lambda"], Value::No, Action::NvccOnly),
    rule(&["--extended-lambda", "-extended-lambda"], Value::No, Action::NvccOnly),
    rule(&["-O0", "-O1", "-O2", "-O3"], Value::No, Action::NvccOnly),
    rule(&["--optimize", "-O"], Value::Yes, Action::NvccOnly),
    rule(&["--Werror", "-Werror"], Value::Maybe, Action::NvccOnly),
    rule(
        &["-Wall", "-Wextra"],
        Value::No,
        Action::Refuse("it is an option of the host compiler, and there is no host code"),
    ),
    rule(&["--machine", "-m"], Value::Yes, Action::NvccOnly),
    rule(&["-m64"], Value::No, Action::NvccOnly),
    rule(&["--debug", "-g"], Value::No, Action::NvccOnly),
    rule(
        &["-dlto", "--dlink-time-opt", "-lto", "--gen-opt-lto"],
        Value::No,
        Action::Refuse("link-time optimisation yields no loadable image here"),
    ),
    rule(
        &["-rdc", "--relocatable-device-code"],
        Value::Yes,
        Action::Refuse("relocatable code is not loadable; put all code into one source"),
    ),
    rule(
        &["-dc", "--device-c", "-dw", "--device-w"],
        Value::No,
        Action::Refuse("relocatable code is not loadable; put all code into one source"),
    ),
    rule(&["-I", "--include-path", "-isystem"], Value::Joined, Action::Refuse(FILES)),
    rule(&["-include", "--pre-include"], Value::Yes, Action::Refuse(FILES)),
    rule(&["-optf", "--options-file"], Value::Yes, Action::Refuse(FILES)),
    rule(&["-L", "-l", "--library", "--library-path"], Value::Joined, Action::Refuse(FILES)),
    rule(&["--use-bundled-headers"], Value::Yes, Action::Refuse(FILES)),
    rule(
        &["--pch", "-pch", "--create-pch", "--use-pch", "--pch-dir"],
        Value::Maybe,
        Action::Refuse(OUTPUT),
    ),
    rule(
        &["-o", "--output-file", "-odir", "--output-directory"],
        Value::Yes,
        Action::Refuse(OUTPUT),
    ),
    rule(&["--time", "-time"], Value::Yes, Action::Refuse(OUTPUT)),
    rule(&["--fdevice-time-trace", "-fdevice-time-trace"], Value::Yes, Action::Refuse(OUTPUT)),
    rule(
        &["-c", "-ptx", "-cubin", "-fatbin", "--ptx", "--cubin", "--fatbin", "-E", "-run"],
        Value::No,
        Action::Refuse(OUTPUT),
    ),
    rule(
        &["-keep", "--keep", "--dryrun", "-dryrun", "--fdevice-syntax-only"],
        Value::No,
        Action::Refuse(OUTPUT),
    ),
    rule(&["-keep-dir", "--keep-dir"], Value::Yes, Action::Refuse(OUTPUT)),
    rule(
        &["-Xcompiler", "--compiler-options", "-Xlinker", "-Xnvlink"],
        Value::Yes,
        Action::Refuse(TOOLS),
    ),
    rule(&["-ccbin", "--compiler-bindir"], Value::Yes, Action::Refuse(TOOLS)),
    rule(&["-x", "--x"], Value::Yes, Action::Refuse(TOOLS)),
];

/// Assembler options that neither read nor write files.
const PTXAS_ALLOWED: &[&str] = &[
    "-v",
    "--verbose",
    "-O",
    "--opt-level",
    "-dlcm",
    "--def-load-cache",
    "-dscm",
    "--def-store-cache",
    "-warn-spills",
    "--warn-on-spills",
    "-warn-lmem-usage",
    "--warn-on-local-memory-usage",
    "-w",
    "--disable-warnings",
    "-maxrregcount",
    "--maxrregcount",
    "-fmad",
    "--fmad",
    "-allow-expensive-optimizations",
    "--allow-expensive-optimizations",
    "-disable-optimizer-constants",
    "--disable-optimizer-constants",
    "-register-usage-level",
    "--register-usage-level",
];

/// Checks `options` for a device of architecture `arch` (10 × major + minor).
pub(crate) fn check(
    options: &[String],
    backend: Backend,
    arch: u32,
) -> Result<CheckedOptions, CompileError> {
    if options.len() > MAX_OPTIONS {
        let message =
            format!("{} compiler options; at most {MAX_OPTIONS} are allowed", options.len());
        return Err(CompileError::rejected(FailureCode::TooManyCompilerOptions, message));
    }
    let mut words = Vec::new();
    for option in options {
        if option.len() > MAX_OPTION_BYTES || option.contains('\0') {
            let message = format!(
                "a compiler option is longer than {MAX_OPTION_BYTES} bytes or \
                contains a NUL byte"
            );
            return Err(CompileError::rejected(FailureCode::InvalidCompilerOption, message));
        }
        // `-D` may define a text with spaces; in other options a space separates words.
        if option.starts_with("-D") {
            words.push(option.as_str());
        } else {
            words.extend(option.split_whitespace());
        }
    }
    let mut checked = CheckedOptions::default();
    let mut rest = words.as_slice();
    while let Some((word, tail)) = rest.split_first() {
        rest = tail;
        let (rule, joined) = find(word).ok_or_else(|| unknown(word))?;
        let value = match (joined, rule.value) {
            (None, Value::Yes | Value::Joined) => {
                let (value, tail) = rest.split_first().ok_or_else(|| no_value(word))?;
                rest = tail;
                Some(*value)
            }
            (joined, _) => joined,
        };
        apply(&mut checked, word, rule, value, backend, arch)?;
    }
    Ok(checked)
}

/// Returns the rule for a word of the command line, and the option's value if the word contains it.
fn find(word: &str) -> Option<(&'static Rule, Option<&str>)> {
    let exact = RULES.iter().find(|rule| rule.names.contains(&word));
    if let Some(rule) = exact {
        return Some((rule, None));
    }
    if let Some((name, value)) = word.split_once('=') {
        let takes = |r: &&Rule| r.value != Value::No && r.names.contains(&name);
        if let Some(rule) = RULES.iter().find(takes) {
            return Some((rule, Some(value)));
        }
    }
    RULES.iter().filter(|rule| rule.value == Value::Joined).find_map(|rule| {
        let short = rule.names.iter().filter(|name| name.len() == 2);
        short.filter_map(|name| word.strip_prefix(name)).map(|value| (rule, Some(value))).next()
    })
}

fn apply(
    checked: &mut CheckedOptions,
    word: &str,
    rule: &Rule,
    value: Option<&str>,
    backend: Backend,
    arch: u32,
) -> Result<(), CompileError> {
    let spelled = || match value {
        Some(value) => format!("{}={value}", rule.names[0]),
        None => rule.names[0].to_owned(),
    };
    match rule.action {
        Action::Pass => checked.words.push(spelled()),
        Action::NvccOnly if backend == Backend::Nvcc => checked.words.push(word_of(word, value)),
        Action::NvccOnly => {}
        Action::Lineinfo => checked.lineinfo = true,
        Action::Arch => checked.arch_suffix = arch_suffix(word, value, arch)?,
        Action::Threads => {
            let threads = match value.and_then(|value| value.parse().ok()) {
                // 0 means as many threads as there are cores.
                Some(0) => MAX_THREADS,
                Some(threads @ 1..=MAX_THREADS) => threads,
                _ => return Err(too_many_threads(word)),
            };
            checked.words.push(format!("{}={threads}", rule.names[0]));
        }
        Action::Ptxas => {
            for part in value.unwrap_or("").split(',') {
                check_ptxas(part)?;
            }
            checked.words.push(spelled());
        }
        Action::Refuse(reason) => {
            let message = format!("compiler option {word:?} is not allowed: {reason}");
            return Err(CompileError::rejected(FailureCode::CompilerOptionRefused, message));
        }
    }
    Ok(())
}

/// Returns the option in the caller's spelling, joined with its value if that is the next word.
fn word_of(word: &str, value: Option<&str>) -> String {
    match value {
        Some(value) if !word.contains('=') => format!("{word}={value}"),
        _ => word.to_owned(),
    }
}

/// Returns the suffix of an architecture option, which must name the device's architecture.
fn arch_suffix(word: &str, value: Option<&str>, arch: u32) -> Result<Option<char>, CompileError> {
    let value = value.unwrap_or("");
    let mut suffix = None;
    for part in value.split(['=', ',']) {
        let name = part.trim_matches(['[', ']', '"', '\'']);
        let Some(rest) = name.strip_prefix("sm_").or_else(|| name.strip_prefix("compute_")) else {
            if matches!(name, "arch" | "code" | "native") {
                continue;
            }
            return Err(wrong_arch(word, value, arch));
        };
        let (digits, tail) = rest.split_at(rest.trim_end_matches(['a', 'f']).len());
        if digits.parse() != Ok(arch) || tail.len() > 1 {
            return Err(wrong_arch(word, value, arch));
        }
        suffix = tail.chars().next().or(suffix);
    }
    Ok(suffix)
}

fn wrong_arch(word: &str, value: &str, arch: u32) -> CompileError {
    let asked = if word.contains('=') || value.is_empty() {
        word.to_owned()
    } else {
        format!("{word} {value}")
    };
    let message = format!(
        "compiler option {asked:?} names an architecture other than the device's sm_{arch}; \
         leave it out, since the service compiles for the device"
    );
    CompileError::rejected(FailureCode::WrongArchitecture, message)
}

fn check_ptxas(option: &str) -> Result<(), CompileError> {
    let name = option.split('=').next().unwrap_or(option);
    let level = name.strip_prefix("-O").is_some_and(|l| matches!(l, "0" | "1" | "2" | "3"));
    if level || PTXAS_ALLOWED.contains(&name) {
        return Ok(());
    }
    let message = format!("assembler option {option:?} is unknown or not allowed");
    Err(CompileError::rejected(FailureCode::UnknownCompilerOption, message))
}

fn unknown(word: &str) -> CompileError {
    let shown: String = word.chars().take(200).collect();
    let message = if shown.starts_with('-') {
        format!("unknown compiler option {shown:?}")
    } else {
        format!("{shown:?} is not a compiler option: options begin with a dash")
    };
    CompileError::rejected(FailureCode::UnknownCompilerOption, message)
}

fn too_many_threads(word: &str) -> CompileError {
    let message = format!(
        "compiler option {word:?} needs a number of threads from 1 to {MAX_THREADS}, or 0 for as many as \
         a compilation may have"
    );
    CompileError::rejected(FailureCode::InvalidCompilerOption, message)
}

fn no_value(word: &str) -> CompileError {
    let message = format!("compiler option {word:?} requires a value");
    CompileError::rejected(FailureCode::InvalidCompilerOption, message)
}

#[cfg(test)]
#[path = "options_tests.rs"]
mod tests;
