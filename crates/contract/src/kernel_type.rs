//! What a kernel's code is: the types on the wire, and the families that the rest of warpgauge
//! distinguishes.
//!
//! [`KernelType::family`] is the only classifier. Code that treats kernels differently matches on the
//! family without a wildcard, so that the compiler lists what a new family lacks. Only code that reads or
//! compiles a kernel's text or image looks at the type itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a kernel's code is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KernelType {
    /// CUDA C++ source.
    Cuda,
    /// PTX assembly.
    Ptx,
    /// One ELF image of machine code.
    Cubin,
    /// A container of images for several architectures.
    Fatbin,
    /// Python source with a function or a module of PyTorch, called on a GPU where there is one, and on
    /// the CPU otherwise.
    Torch,
    /// As `torch`: source that builds an extension in CUDA C++ (`load_inline`).
    TorchCuda,
    /// Python source with a Triton kernel. Its host code is not run.
    Triton,
    /// As `torch`: Python whose `metadata.entry_point` is called. Triton kernels within it need a GPU.
    MultiKernel,
    /// No code: a function of a library of NVIDIA's, which `metadata.library` names. It takes the arguments
    /// that have its names, and decides its own launch. It needs a GPU, and is there to be compared with.
    Library,
    /// CUDA C++ source with a `main()`: a whole program, which nvcc compiles and which is run as it is. It
    /// has no `io`; `expected.stdout` and `expected.exit_code` say what it should print and return.
    Program,
}

/// Kernel types that are checked, run, timed and compared in the same way: by one backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KernelFamily {
    /// Code for a device, which a worker loads and launches.
    Device,
    /// A function of a library of NVIDIA's, which a worker calls.
    Library,
    /// Python, which a process of its own runs and a judge process calls.
    Torch,
    /// A whole program, which runs by itself.
    Program,
}

/// What runs a kernel, and so whose clock times it. Times of different runtimes are never compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelRuntime {
    /// A worker process, which launches it on its device.
    Worker,
    /// A runner process, whose calls a judge process times.
    Judge,
    /// A process of its own, which nothing times.
    Process,
}

/// How the code of a kernel is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeForm {
    /// As text in `source_code`.
    Text,
    /// As base64 in `binary_b64`.
    Binary,
    /// Not at all.
    Absent,
}

/// Extensions of files that hold a kernel, and what such a file holds unless its text shows otherwise.
pub const FILE_EXTENSIONS: [(&str, KernelType); 6] = [
    ("cu", KernelType::Cuda),
    ("cuh", KernelType::Cuda),
    ("py", KernelType::Triton),
    ("ptx", KernelType::Ptx),
    ("cubin", KernelType::Cubin),
    ("fatbin", KernelType::Fatbin),
];

impl KernelType {
    /// Every type, in the order of the wire documents.
    pub const ALL: [KernelType; 10] = [
        KernelType::Cuda,
        KernelType::Ptx,
        KernelType::Cubin,
        KernelType::Fatbin,
        KernelType::Torch,
        KernelType::TorchCuda,
        KernelType::Triton,
        KernelType::MultiKernel,
        KernelType::Library,
        KernelType::Program,
    ];

    /// The family whose backend runs this type.
    pub fn family(self) -> KernelFamily {
        match self {
            KernelType::Cuda
            | KernelType::Ptx
            | KernelType::Cubin
            | KernelType::Fatbin
            | KernelType::Triton => KernelFamily::Device,
            KernelType::Library => KernelFamily::Library,
            KernelType::Torch | KernelType::TorchCuda | KernelType::MultiKernel => {
                KernelFamily::Torch
            }
            KernelType::Program => KernelFamily::Program,
        }
    }

    /// The name used on the wire.
    pub fn name(self) -> &'static str {
        match self {
            KernelType::Cuda => "cuda",
            KernelType::Ptx => "ptx",
            KernelType::Cubin => "cubin",
            KernelType::Fatbin => "fatbin",
            KernelType::Torch => "torch",
            KernelType::TorchCuda => "torch_cuda",
            KernelType::Triton => "triton",
            KernelType::MultiKernel => "multi_kernel",
            KernelType::Library => "library",
            KernelType::Program => "program",
        }
    }

    /// How its code is sent.
    pub fn code_form(self) -> CodeForm {
        match self {
            KernelType::Cubin | KernelType::Fatbin => CodeForm::Binary,
            KernelType::Library => CodeForm::Absent,
            KernelType::Cuda
            | KernelType::Ptx
            | KernelType::Torch
            | KernelType::TorchCuda
            | KernelType::Triton
            | KernelType::MultiKernel
            | KernelType::Program => CodeForm::Text,
        }
    }

    /// Whether a kernel of this type can use the launch configuration of one of the other. A Triton grid
    /// counts programs, that of other device code counts blocks of threads; other families take none.
    pub fn shares_launch_with(self, other: Self) -> bool {
        let counts_programs = |one: Self| match one.family() {
            KernelFamily::Device => Some(one == KernelType::Triton),
            KernelFamily::Library | KernelFamily::Torch | KernelFamily::Program => None,
        };
        counts_programs(self).is_some() && counts_programs(self) == counts_programs(other)
    }

    /// The type that the extension of a file name suggests, in upper or lower case.
    pub fn of_extension(extension: &str) -> Option<Self> {
        let known = |(known, _): &&(&str, Self)| extension.eq_ignore_ascii_case(known);
        FILE_EXTENSIONS.iter().find(known).map(|(_, kernel_type)| *kernel_type)
    }
}

impl KernelFamily {
    /// What runs its kernels.
    pub fn runtime(self) -> KernelRuntime {
        match self {
            KernelFamily::Device | KernelFamily::Library => KernelRuntime::Worker,
            KernelFamily::Torch => KernelRuntime::Judge,
            KernelFamily::Program => KernelRuntime::Process,
        }
    }

    /// Whether a kernel may have gradients (`metadata.backward`).
    pub fn has_gradients(self) -> bool {
        match self {
            KernelFamily::Torch => true,
            KernelFamily::Device | KernelFamily::Library | KernelFamily::Program => false,
        }
    }

    /// Whether a run-time argument may be a text.
    pub fn takes_text(self) -> bool {
        match self {
            KernelFamily::Torch => true,
            KernelFamily::Device | KernelFamily::Library | KernelFamily::Program => false,
        }
    }

    /// Whether hardware metrics of its kernels can be collected.
    pub fn has_metrics(self) -> bool {
        match self {
            KernelFamily::Device | KernelFamily::Torch | KernelFamily::Program => true,
            KernelFamily::Library => false,
        }
    }

    /// Whether its kernels are compiled before they are run, so that `POST /compile` takes them.
    pub fn is_compiled(self) -> bool {
        match self {
            KernelFamily::Device => true,
            KernelFamily::Library | KernelFamily::Torch | KernelFamily::Program => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_types_are_listed_by_their_names() {
        let names = KernelType::ALL.map(|one| serde_json::to_value(one).expect("a name"));
        assert_eq!(names, KernelType::ALL.map(|one| serde_json::json!(one.name())));
        let schema = schemars::schema_for!(KernelType);
        let documented = schema.as_value()["oneOf"].as_array().expect("variants").len();
        assert_eq!(documented, KernelType::ALL.len());
    }

    #[test]
    fn extensions_suggest_a_type() {
        assert_eq!(KernelType::of_extension("CUBIN"), Some(KernelType::Cubin));
        assert_eq!(KernelType::of_extension("txt"), None);
    }
}
