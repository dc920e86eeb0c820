//! The prelude, which precedes a source: definitions that nvcc's headers provide and NVRTC does
//! not.

use std::collections::BTreeSet;

use super::cub;
use super::std_names::StdNames;
use warpgauge_code::source::{Token, TokenKind, included_header, tokenize, without_host_code};

pub(crate) const PRELUDE: &str = include_str!("prelude.cuh");

/// File name by which the compiler includes [`PRELUDE`].
pub(crate) const PRELUDE_NAME: &str = "warpgauge/prelude.cuh";

/// Name of the submitted source in diagnostics.
pub(crate) const SOURCE_NAME: &str = "kernel.cu";

/// Host headers that sources include although kernels need little of them. The prelude provides the
/// parts that kernels need.
pub(crate) const STUB_HEADERS: [&str; 47] = [
    "algorithm",
    "assert.h",
    "cassert",
    "cfloat",
    "climits",
    "cmath",
    "cstddef",
    "cstdint",
    "cstdio",
    "cstdlib",
    "cstring",
    "cuda.h",
    "cuda_runtime.h",
    "cuda_runtime_api.h",
    "device_functions.h",
    "device_launch_parameters.h",
    "driver_types.h",
    "float.h",
    "host_defines.h",
    "inttypes.h",
    "iostream",
    "limits",
    "limits.h",
    "math.h",
    "math_functions.h",
    "numeric",
    "sm_20_atomic_functions.h",
    "sm_20_intrinsics.h",
    "sm_30_intrinsics.h",
    "sm_32_atomic_functions.h",
    "sm_32_intrinsics.h",
    "sm_35_atomic_functions.h",
    "sm_35_intrinsics.h",
    "sm_60_atomic_functions.h",
    "sm_61_intrinsics.h",
    "stddef.h",
    "stdbool.h",
    "stdint.h",
    "stdio.h",
    "stdlib.h",
    "string",
    "string.h",
    "time.h",
    "type_traits",
    "utility",
    "vector_functions.h",
    "vector_types.h",
];

/// Headers that only host code needs. Kernels need none of their content, so they are replaced by
/// empty files.
pub(crate) const HOST_HEADERS: [&str; 235] = [
    "ATen/ATen.h",
    "ATen/Dispatch.h",
    "ATen/cuda/CUDAContext.h",
    "ATen/cuda/Exceptions.h",
    "Windows.h",
    "aio.h",
    "alloca.h",
    "ammintrin.h",
    "any",
    "arm_neon.h",
    "arpa/inet.h",
    "array",
    "atomic",
    "barrier",
    "bit",
    "bits/stdc++.h",
    "bitset",
    "byteswap.h",
    "c10/cuda/CUDAException.h",
    "c10/cuda/CUDAGuard.h",
    "c10/cuda/CUDAStream.h",
    "cctype",
    "cerrno",
    "cfenv",
    "charconv",
    "chrono",
    "cinttypes",
    "clocale",
    "compare",
    "complex",
    "concepts",
    "condition_variable",
    "conio.h",
    "coroutine",
    "cpuid.h",
    "csetjmp",
    "csignal",
    "cstdarg",
    "ctime",
    "ctype.h",
    "cublas.h",
    "cublasLt.h",
    "cublasXt.h",
    "cublas_api.h",
    "cublas_v2.h",
    "cuchar",
    "cudaProfiler.h",
    "cuda_profiler_api.h",
    "cudnn.h",
    "cufft.h",
    "cufftXt.h",
    "cufftw.h",
    "curand.h",
    "curand_mtgp32_host.h",
    "cusolverDn.h",
    "cusolver_common.h",
    "cusparse.h",
    "cutensor.h",
    "cwchar",
    "cwctype",
    "deque",
    "direct.h",
    "dirent.h",
    "dlfcn.h",
    "emmintrin.h",
    "endian.h",
    "errno.h",
    "error.h",
    "exception",
    "execinfo.h",
    "execution",
    "expected",
    "fcntl.h",
    "features.h",
    "fenv.h",
    "filesystem",
    "fnmatch.h",
    "format",
    "fstream",
    "ftw.h",
    "functional",
    "future",
    "getopt.h",
    "glob.h",
    "grp.h",
    "helper_cuda.h",
    "helper_cuda_drvapi.h",
    "helper_cuda_gl.h",
    "helper_functions.h",
    "helper_gl.h",
    "helper_image.h",
    "helper_string.h",
    "helper_timer.h",
    "immintrin.h",
    "initializer_list",
    "intrin.h",
    "io.h",
    "iomanip",
    "ios",
    "iosfwd",
    "istream",
    "iterator",
    "langinfo.h",
    "latch",
    "libgen.h",
    "libintl.h",
    "link.h",
    "linux/limits.h",
    "list",
    "locale",
    "locale.h",
    "malloc.h",
    "map",
    "memory",
    "memory.h",
    "mpi.h",
    "mqueue.h",
    "mutex",
    "nccl.h",
    "net/if.h",
    "netdb.h",
    "netinet/in.h",
    "netinet/tcp.h",
    "nl_types.h",
    "nmmintrin.h",
    "numbers",
    "nvToolsExt.h",
    "nvToolsExtCuda.h",
    "nvml.h",
    "nvrtc.h",
    "nvrtc_helper.h",
    "nvtx3/nvToolsExt.h",
    "nvtx3/nvtx3.hpp",
    "omp.h",
    "opencv2/core.hpp",
    "opencv2/core/core.hpp",
    "opencv2/highgui.hpp",
    "opencv2/highgui/highgui.hpp",
    "opencv2/imgcodecs.hpp",
    "opencv2/imgproc.hpp",
    "opencv2/opencv.hpp",
    "optional",
    "ostream",
    "pmmintrin.h",
    "poll.h",
    "print",
    "process.h",
    "pthread.h",
    "pwd.h",
    "pybind11/numpy.h",
    "pybind11/pybind11.h",
    "pybind11/stl.h",
    "queue",
    "random",
    "ranges",
    "regex",
    "regex.h",
    "sched.h",
    "scoped_allocator",
    "search.h",
    "semaphore",
    "set",
    "setjmp.h",
    "shared_mutex",
    "signal.h",
    "smmintrin.h",
    "source_location",
    "span",
    "spawn.h",
    "sstream",
    "stack",
    "stdalign.h",
    "stdarg.h",
    "stdatomic.h",
    "stdexcept",
    "stdnoreturn.h",
    "stop_token",
    "string_view",
    "strings.h",
    "sys/epoll.h",
    "sys/file.h",
    "sys/ioctl.h",
    "sys/mman.h",
    "sys/param.h",
    "sys/prctl.h",
    "sys/queue.h",
    "sys/random.h",
    "sys/resource.h",
    "sys/select.h",
    "sys/socket.h",
    "sys/stat.h",
    "sys/syscall.h",
    "sys/sysinfo.h",
    "sys/time.h",
    "sys/timeb.h",
    "sys/times.h",
    "sys/types.h",
    "sys/uio.h",
    "sys/un.h",
    "sys/utsname.h",
    "sys/wait.h",
    "syslog.h",
    "system_error",
    "termios.h",
    "tgmath.h",
    "thread",
    "tmmintrin.h",
    "torch/all.h",
    "torch/csrc/autograd/custom_function.h",
    "torch/extension.h",
    "torch/library.h",
    "torch/script.h",
    "torch/torch.h",
    "torch/types.h",
    "tuple",
    "typeindex",
    "typeinfo",
    "uchar.h",
    "ucontext.h",
    "unistd.h",
    "unordered_map",
    "unordered_set",
    "utime.h",
    "valarray",
    "values.h",
    "variant",
    "vector",
    "wchar.h",
    "wctype.h",
    "windows.h",
    "winsock.h",
    "winsock2.h",
    "wmmintrin.h",
    "x86intrin.h",
    "xmmintrin.h",
];

/// Toolkit headers that do not use libcu++.
const PLAIN_HEADERS: [&str; 10] = [
    "cuComplex.h",
    "cuda_bf16.h",
    "cuda_fp16.h",
    "cuda_fp4.h",
    "cuda_fp6.h",
    "cuda_fp8.h",
    "math_constants.h",
    "mma.h",
    "crt/mma.h",
    "cuda_tf32.h",
];

/// Definitions that a source needs in addition to its text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    /// Names that the prelude would define, but the source defines itself.
    own: BTreeSet<String>,
    /// Toolkit headers that define types that the source uses, e.g. `cuda_fp16.h`, but does not
    /// include.
    pub implied: Vec<&'static str>,
    /// Whether the source includes toolkit headers, so that header directories must be searched.
    pub includes_toolkit: bool,
    /// Whether the source includes headers that use libcu++.
    libcuxx: bool,
    /// Whether the source declares a texture reference, which CUDA 12 removed.
    pub texture_reference: bool,
    /// Whether the source draws random numbers with cuRAND on the device.
    pub uses_curand: bool,
    /// Names in namespace std that the source uses and libcu++ provides.
    std_names: StdNames,
    /// The part of CUB that the source uses, if it includes `cub/cub.cuh`.
    cub: Option<String>,
}

impl Needs {
    /// Returns whether one of the headers listed above is empty for this source. `curand.h` is not
    /// empty if the source uses `curand_kernel.h`, which needs its types.
    pub(crate) fn is_empty(&self, stub: &str) -> bool {
        !(self.uses_curand && stub == "curand.h")
    }

    /// Returns the names of toolkit headers that are replaced, each with the text that replaces it.
    pub(crate) fn replaced_headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.cub.as_deref().map(|used| (cub::WHOLE, used)).into_iter()
    }

    /// Returns whether the compiler must search header directories.
    pub(crate) fn headers(&self) -> bool {
        self.includes_toolkit || !self.implied.is_empty() || !self.std_names.is_empty()
    }
}

/// Returns the definitions that a source needs in addition to its text.
pub(crate) fn needs_of(source: &str) -> Needs {
    let tokens = tokenize(source);
    let mut needs = Needs::default();
    let mut included = BTreeSet::new();
    for token in tokens.iter().filter(|t| t.kind == TokenKind::Directive) {
        if let Some(header) = included_header(token.text) {
            if STUB_HEADERS.contains(&header) || HOST_HEADERS.contains(&header) {
                continue;
            }
            needs.includes_toolkit = true;
            needs.libcuxx |= !PLAIN_HEADERS.contains(&header);
            included.insert(header);
        }
    }
    let code: Vec<Token<'_>> =
        tokens.into_iter().filter(|t| t.kind != TokenKind::Directive).collect();
    let (mut half, mut bf16, mut fp8) = (false, false, false);
    for (at, token) in code.iter().enumerate() {
        if token.kind != TokenKind::Word {
            continue;
        }
        if is_defined_here(&code, at) {
            needs.own.insert(token.text.to_owned());
            continue;
        }
        match token.text {
            "half" => half |= is_used_as_type(&code, at),
            "half2" | "__half" | "__half2" | "half_raw" | "__half_raw" | "__float2half" => {
                half = true
            }
            word if word.contains("bfloat16") => bf16 = true,
            word if word.starts_with("__nv_fp8") => fp8 = true,
            _ => {}
        }
    }
    half &= !needs.own.contains("half");
    if !needs.own.contains("std") {
        // A source with host code is first compiled as a whole, but host functions do not need
        // libcu++.
        let device = without_host_code(source).map(|device| device.text);
        let device = tokenize(device.as_deref().unwrap_or(source));
        needs.std_names = StdNames::of(&device, &|name| needs.own.contains(name));
        needs.libcuxx |= !needs.std_names.is_empty();
    }
    needs.texture_reference =
        code.windows(2).any(|two| two[0].text == "texture" && two[1].text == "<");
    needs.uses_curand = included.contains("curand_kernel.h");
    needs.cub = included.contains(cub::WHOLE).then(|| cub::used(&code));
    for (wanted, header) in [(half, "cuda_fp16.h"), (bf16, "cuda_bf16.h"), (fp8, "cuda_fp8.h")] {
        if wanted && !included.contains(header) {
            needs.implied.push(header);
        }
    }
    needs
}

/// Returns whether the source defines a name: `typedef … NAME;`, `using NAME =`, `struct NAME`,
/// `namespace NAME`, `TYPE NAME =`.
fn is_defined_here(code: &[Token<'_>], at: usize) -> bool {
    let before = at.checked_sub(1).map(|b| code[b]);
    let after = code.get(at + 1).map_or("", |t| t.text);
    match before.map(|t| t.text) {
        Some("using") => after == "=",
        Some("struct" | "class" | "union") => after == "{" || after == ":",
        Some("namespace") => after == "{",
        _ if after == ";" => {
            let start = code[..at].iter().rposition(|t| matches!(t.text, ";" | "{" | "}"));
            code.get(start.map_or(0, |s| s + 1)).is_some_and(|t| t.text == "typedef")
        }
        _ if after == "=" || after == "{" => {
            let typed = before.is_some_and(|t| t.kind == TokenKind::Word && t.text != "return");
            typed && code.get(at + 2).is_none_or(|t| t.text != "=")
        }
        _ => false,
    }
}

/// Returns whether a name is used as a type instead of a variable: `half x`, `half*`, `half&`,
/// `<half>`, `(half)`.
fn is_used_as_type(code: &[Token<'_>], at: usize) -> bool {
    let is_word = |t: Option<&Token<'_>>| t.is_some_and(|t| t.kind == TokenKind::Word);
    let after = code.get(at + 1);
    let template_argument = at > 0 && matches!(code[at - 1].text, "<" | ",");
    let cast = at > 0 && code[at - 1].text == "(" && after.is_some_and(|t| t.text == ")");
    let pointer = after.is_some_and(|t| matches!(t.text, "*" | "&"))
        && (is_word(code.get(at + 2)) || code.get(at + 2).is_some_and(|t| t.text == ")"));
    let closes = after.is_some_and(|t| matches!(t.text, ">" | ","));
    is_word(after) || pointer || cast || (template_argument && closes)
}

/// Returns the lines to insert before the source. The last of them sets the line number, so that
/// diagnostics show the line numbers of the submitted source.
pub(crate) fn prefix(needs: &Needs, with_implied: bool) -> String {
    let mut text = String::new();
    for name in &needs.own {
        text.push_str(&format!("#define WARPGAUGE_OWN_{name}\n"));
    }
    if needs.libcuxx && with_implied {
        text.push_str("#define WARPGAUGE_LIBCUXX\n");
    }
    text.push_str(&format!("#include \"{PRELUDE_NAME}\"\n"));
    if with_implied {
        for header in &needs.implied {
            text.push_str(&format!("#include <{header}>\n"));
        }
        if !needs.std_names.is_empty() {
            text.push_str(&needs.std_names.declarations());
        }
    }
    text.push_str(&format!("#line 1 \"{SOURCE_NAME}\"\n"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_used_without_their_header_imply_it() {
        let implied = |source: &str| needs_of(source).implied;
        assert_eq!(implied("__global__ void k(const half* x) {}"), ["cuda_fp16.h"]);
        assert_eq!(implied("template void f<half>();"), ["cuda_fp16.h"]);
        assert_eq!(implied("__nv_bfloat16 x;"), ["cuda_bf16.h"]);
        assert_eq!(implied("#include <cuda_fp16.h>\n__half x;"), [""; 0]);
        assert_eq!(implied("int half = n / 2; x[half] = y[half * 2];"), [""; 0]);
        assert_eq!(implied("// half precision\nfloat x;"), [""; 0]);
    }

    #[test]
    fn habitual_headers_need_no_toolkit_headers() {
        assert!(!needs_of("#include <cuda_runtime.h>\n#include <math.h>\n").headers());
        assert!(needs_of("#include <cub/cub.cuh>\n").libcuxx);
        assert!(!needs_of("# include \"mma.h\"\n").libcuxx);
        assert!(needs_of("# include \"mma.h\"\n").headers());
    }

    #[test]
    fn names_the_source_defines_are_left_to_it() {
        let source = "typedef unsigned long long uint64_t;\nusing int64_t = long long;\n
            const float INFINITY = 1e30f; x.INT_MAX == 3; namespace std { } if (a == NAN) b = c;";
        let own = needs_of(source).own;
        for name in ["uint64_t", "int64_t", "INFINITY", "std"] {
            assert!(own.contains(name), "{name}: {own:?}");
        }
        assert!(!own.contains("INT_MAX") && !own.contains("NAN"), "{own:?}");
        let prefix = prefix(&needs_of(source), true);
        assert!(prefix.contains("#define WARPGAUGE_OWN_uint64_t\n"));
        assert!(prefix.ends_with("#line 1 \"kernel.cu\"\n"));
    }

    #[test]
    fn stub_headers_are_sorted_and_unique() {
        let all = || STUB_HEADERS.into_iter().chain(HOST_HEADERS);
        assert_eq!(all().collect::<BTreeSet<&str>>().len(), all().count());
    }
}
