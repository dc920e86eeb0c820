//! The options that a submission may pass to the compilers of an extension. Only options that
//! affect the generated code are accepted. Options that read or write files or choose programs, and
//! unknown options, are rejected.

use crate::error::CompileError;
use crate::options::{self, CheckedOptions};
use warpgauge_contract::Backend;
use warpgauge_model::FailureCode;

/// Maximum number of options of one kind, and maximum length of an option in bytes.
const MOST: usize = 128;
const LONGEST: usize = 1024;

/// Prefixes of g++ options that affect only the generated code and access no files.
const HOST: [&str; 12] =
    ["-O", "-g", "-std=", "-D", "-U", "-W", "-w", "-f", "-m", "-pthread", "-pedantic", "-ansi"];

/// Prefixes of options that match [`HOST`] but access files or choose programs. They are rejected.
const HOST_REFUSED: [&str; 20] = [
    "-Wl,",
    "-Wa,",
    "-Wp,",
    "-fplugin",
    "-fdump",
    "-fprofile",
    "-fauto-profile",
    "-fuse-ld",
    "-fmodule",
    "-fsave",
    "-fopt-info",
    "-fstack-usage",
    "-fcallgraph",
    "-fdiagnostics",
    "-flto",
    "-fsyntax",
    "-fpch",
    "-fdeps",
    "-gsplit",
    "-ftest-coverage",
];

/// CUDA libraries that may be linked. They are searched for beside PyTorch and in the toolkit.
const OF_CUDA: [&str; 11] = [
    "cuda",
    "cudart",
    "cublas",
    "cublasLt",
    "cudnn",
    "cufft",
    "curand",
    "cusolver",
    "cusparse",
    "nvrtc",
    "nvToolsExt",
];

/// Libraries of PyTorch and of the system, which the linker finds by name.
const FOUND_BY_NAME: [&str; 11] = [
    "torch",
    "torch_cpu",
    "torch_cuda",
    "torch_python",
    "c10",
    "c10_cuda",
    "m",
    "dl",
    "pthread",
    "gomp",
    "stdc++",
];

/// Checks the options that a submission passes to g++.
pub(super) fn host(given: &[String]) -> Result<Vec<String>, CompileError> {
    let mut words = Vec::new();
    for option in given.iter().map(|option| option.trim()).filter(|option| !option.is_empty()) {
        let known = HOST.iter().any(|start| option.starts_with(start));
        let refused = HOST_REFUSED.iter().any(|start| option.starts_with(start));
        if !known || refused || !sound(option) {
            return Err(unknown("extra_cflags", option));
        }
        words.push(option.to_owned());
    }
    bounded("extra_cflags", &words)?;
    Ok(words)
}

/// Checks options of nvcc. The result compiles only for this architecture, even if the options name
/// others.
pub(super) fn device(given: &[String], arch: u32) -> Result<CheckedOptions, CompileError> {
    bounded("extra_cuda_cflags", given)?;
    let mut words: Vec<String> = Vec::new();
    for option in given {
        if option.starts_with("-D") {
            words.push(option.clone());
        } else {
            words.extend(option.split_whitespace().map(str::to_owned));
        }
    }
    let (mut kept, mut host_words) = (Vec::new(), Vec::new());
    let mut rest = words.into_iter();
    while let Some(word) = rest.next() {
        let (name, joined) = match word.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (word.clone(), None),
        };
        let name = name.trim_start_matches('-');
        match name {
            "gencode" | "generate-code" | "arch" | "gpu-architecture" | "code" | "gpu-code" => {
                let value = joined.or_else(|| rest.next()).unwrap_or_default();
                if of_device(&value, arch) {
                    kept.push(format!("-arch={}", value.rsplit(['=', ',']).next().unwrap_or("")));
                }
            }
            "Xcompiler" | "compiler-options" => {
                let value = joined.or_else(|| rest.next()).unwrap_or_default();
                let parts = value.trim_matches(['\'', '"']).split(',').map(str::to_owned);
                host_words.extend(host(&parts.collect::<Vec<_>>())?);
            }
            // This option has no effect: every object is linked with others, and sources are
            // compiled one at a time.
            "threads" | "t" => {
                if joined.is_none() {
                    rest.next();
                }
            }
            _ => kept.push(word),
        }
    }
    let mut checked = options::check(&kept, Backend::Nvcc, arch)?;
    checked.words.extend(host_words.into_iter().flat_map(|word| ["-Xcompiler".to_owned(), word]));
    Ok(checked)
}

/// Returns whether an architecture option names only the device's architecture.
fn of_device(value: &str, arch: u32) -> bool {
    let names = value.split(['=', ',']).map(|part| part.trim_matches(['[', ']', '"', '\'']));
    let mut numbers = names.filter_map(|name| {
        let rest = name.strip_prefix("sm_").or_else(|| name.strip_prefix("compute_"))?;
        rest.trim_end_matches(['a', 'f']).parse::<u32>().ok()
    });
    let first = numbers.next();
    first == Some(arch) && numbers.all(|number| number == arch)
}

/// An item to link in addition to PyTorch.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Linked {
    /// Name of a CUDA library.
    OfCuda(String),
    /// An option that is passed to the linker unchanged.
    Option(String),
}

/// Checks options of the linker. They select libraries by name.
pub(super) fn link(given: &[String]) -> Result<Vec<Linked>, CompileError> {
    let mut linked = Vec::new();
    for option in given.iter().flat_map(|option| option.split_whitespace()) {
        let library = option.strip_prefix("-l");
        // The build determines the library directories and symbols itself.
        let ignored = ["-L", "-Wl,-rpath", "-Wl,--no-as-needed", "-Wl,--as-needed", "-O", "-s"];
        match library {
            Some(name) if OF_CUDA.contains(&name) => linked.push(Linked::OfCuda(name.to_owned())),
            Some(name) if FOUND_BY_NAME.contains(&name) => {
                linked.push(Linked::Option(option.to_owned()));
            }
            None if option == "-fopenmp" => linked.push(Linked::Option(option.to_owned())),
            None if ignored.iter().any(|start| option.starts_with(start)) => {}
            _ => return Err(unknown("extra_ldflags", option)),
        }
    }
    if linked.len() > MOST {
        return Err(too_many("extra_ldflags"));
    }
    Ok(linked)
}

/// Returns whether an option is a single word of acceptable length for a command line. Macros may
/// contain white space.
fn sound(option: &str) -> bool {
    let free = option.starts_with("-D");
    !option.chars().any(|c| c.is_control() || (c.is_whitespace() && !free))
        && option.len() <= LONGEST
}

fn bounded(name: &str, given: &[String]) -> Result<(), CompileError> {
    let fits = given.len() <= MOST
        && given.iter().all(|option| option.len() <= LONGEST && !option.contains('\0'));
    if fits {
        return Ok(());
    }
    Err(too_many(name))
}

fn too_many(name: &str) -> CompileError {
    let message =
        format!("{name}: at most {MOST} options of at most {LONGEST} bytes each are accepted");
    CompileError::rejected(FailureCode::TooManyCompilerOptions, message)
}

fn unknown(name: &str, option: &str) -> CompileError {
    let shown: String = option.chars().take(80).collect();
    let message = format!(
        "{name}: option {shown:?} is unknown or not allowed here: submissions choose what is generated and \
         which of CUDA's and PyTorch's libraries are linked, and no files or programs"
    );
    CompileError::rejected(FailureCode::CompilerOptionRefused, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    #[test]
    fn what_changes_the_code_is_taken_and_what_touches_files_is_not() {
        let taken = ["-O3", " -march=native ", "-fopenmp", "-DX=a b", "-std=c++20", "-Wall", ""];
        assert_eq!(host(&list(&taken)).unwrap().len(), 6);
        for refused in [
            "-I/etc",
            "-include /etc/passwd",
            "-fplugin=x.so",
            "-Wl,-T,x",
            "-o/tmp/x",
            "@file",
            "x.cpp",
            "-fdump-tree-all",
            "-specs=x",
            "-Bx",
            "-O2 -Ix",
            "-x",
            "-Wp,-MD,x",
        ] {
            assert!(host(&list(&[refused])).is_err(), "{refused}");
        }
        assert!(host(&vec!["-O2".to_owned(); MOST + 1]).is_err());
    }

    #[test]
    fn code_is_made_for_the_device_whatever_else_is_named() {
        let given = [
            "-O3",
            "--use_fast_math",
            "-gencode=arch=compute_80,code=sm_80",
            "-gencode",
            "arch=compute_90a,code=sm_90a",
            "-Xcompiler -O2,-Wall",
            "--threads 4",
            "-lineinfo",
        ];
        let checked = device(&list(&given), 90).unwrap();
        assert_eq!((checked.arch_suffix, checked.lineinfo), (Some('a'), true));
        assert_eq!(
            checked.words,
            ["-O3", "--use_fast_math", "-Xcompiler", "-O2", "-Xcompiler", "-Wall"]
        );
        for refused in ["-Xcompiler -I/etc", "-ccbin x", "-keep", "-rdc=true", "--unknown"] {
            assert!(device(&list(&[refused]), 90).is_err(), "{refused}");
        }
    }

    #[test]
    fn libraries_are_linked_by_name() {
        let given = ["-lcublas -lcudart", "-L/usr/local/cuda/lib64", "-fopenmp"];
        let library = |name: &str| Linked::OfCuda(name.to_owned());
        let option = Linked::Option("-fopenmp".to_owned());
        assert_eq!(link(&list(&given)).unwrap(), [library("cublas"), library("cudart"), option]);
        for refused in ["-lssl", "/etc/x.o", "-T", "-Wl,--script=x", "-l:x.so"] {
            assert!(link(&list(&[refused])).is_err(), "{refused}");
        }
    }
}
