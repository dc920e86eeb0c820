//! Types of kernel code on the wire, and the families that the rest of warpgauge distinguishes.
//!
//! [`KernelType::family`] is the only classifier. Code that treats kernels differently matches on
//! the family without a wildcard, so that the compiler lists what a new family lacks. Only code
//! that reads or compiles a kernel's text or image inspects the type itself.

use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

/// Type of a kernel's code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KernelType {
    /// CUDA C++ source.
    Cuda,
    /// PTX assembly.
    Ptx,
    /// An ELF image of machine code for one architecture.
    Cubin,
    /// A container of images for several architectures.
    Fatbin,
    /// Python source with a function or a module of PyTorch. It runs on a GPU if there is one, and on the CPU
    /// otherwise.
    Torch,
    /// Python source that builds a PyTorch extension in CUDA C++ (`load_inline`). It runs as `torch` does.
    TorchCuda,
    /// Python source with a Triton kernel. Its host code does not run.
    Triton,
    /// Python source whose `metadata.entry_point` is called. It runs as `torch` does; Triton kernels in it need a
    /// GPU.
    MultiKernel,
    /// A function of an NVIDIA library, to compare kernels with. It has no code; `metadata.library` names the
    /// library. The function takes the arguments that have its parameters' names, and chooses its own launch. It
    /// needs a GPU.
    Library,
    /// CUDA C++ source with a `main()`: a whole program, which nvcc compiles and which runs unchanged. It has no
    /// `io`; `expected.stdout` and `expected.exit_code` give its output and exit code.
    Program,
    /// An expression over the contract's numbers. This kernel type is an example of how to add one.
    #[cfg(feature = "example-kernel")]
    #[schemars(skip)]
    Example,
}

/// Kernel types that one backend checks, runs, times and compares in the same way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KernelFamily {
    /// Code for a device, which a worker loads and launches.
    Device,
    /// A function of an NVIDIA library, which a worker calls.
    Library,
    /// Python code, which runs in a separate process and which a judge process calls.
    Torch,
    /// A whole program, which runs by itself.
    Program,
    /// An arithmetic expression, which the server evaluates.
    #[cfg(feature = "example-kernel")]
    Example,
}

/// The process that runs a kernel, whose clock times it. Times of different runtimes are never
/// compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelRuntime {
    /// A worker process, which launches the kernel on its device.
    Worker,
    /// A runner process, whose calls a judge process times.
    Judge,
    /// A separate process, which is not timed.
    Process,
}

/// Form in which a kernel's code is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeForm {
    /// Text in `source_code`.
    Text,
    /// Base64 in `binary_b64`.
    Binary,
    /// No code is sent.
    Absent,
}

/// File extensions of kernels, each with the type of kernel that such a file contains unless its text shows
/// another type.
pub const FILE_EXTENSIONS: [(&str, KernelType); 6] = [
    ("cu", KernelType::Cuda),
    ("cuh", KernelType::Cuda),
    ("py", KernelType::Triton),
    ("ptx", KernelType::Ptx),
    ("cubin", KernelType::Cubin),
    ("fatbin", KernelType::Fatbin),
];

/// Properties of a kernel type.
struct TypeTraits {
    name: &'static str,
    family: KernelFamily,
    code_form: CodeForm,
    tool: Option<&'static str>,
}

/// Properties of all kernels of a family.
struct FamilyTraits {
    runtime: KernelRuntime,
    noun: &'static str,
    has_gradients: bool,
    takes_text: bool,
    takes_none: bool,
    takes_launch: bool,
    has_metrics: bool,
}

impl KernelType {
    /// Every type that callers can use, in the order of the API's documents. `example` is for tests only.
    pub const ALL: &'static [KernelType] = &[
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

    fn traits(self) -> TypeTraits {
        use CodeForm::{Absent, Binary, Text};
        use KernelFamily::{Device, Library, Program, Torch};
        let of = |name, family, code_form, tool| TypeTraits { name, family, code_form, tool };
        // The requirements name only PyTorch; other Python modules are found when the code imports
        // them.
        let torch = Some("torch");
        match self {
            KernelType::Cuda => of("cuda", Device, Text, None),
            KernelType::Ptx => of("ptx", Device, Text, None),
            KernelType::Cubin => of("cubin", Device, Binary, None),
            KernelType::Fatbin => of("fatbin", Device, Binary, None),
            KernelType::Torch => of("torch", Torch, Text, torch),
            KernelType::TorchCuda => of("torch_cuda", Torch, Text, torch),
            KernelType::Triton => of("triton", Device, Text, Some("triton")),
            KernelType::MultiKernel => of("multi_kernel", Torch, Text, torch),
            KernelType::Library => of("library", Library, Absent, None),
            KernelType::Program => of("program", Program, Text, Some("program")),
            #[cfg(feature = "example-kernel")]
            KernelType::Example => of("example", KernelFamily::Example, Text, None),
        }
    }

    /// Name on the wire.
    pub fn name(self) -> &'static str {
        self.traits().name
    }

    /// Returns the family, whose backend runs this type.
    pub fn family(self) -> KernelFamily {
        self.traits().family
    }

    /// Returns the form in which its code is sent.
    pub fn code_form(self) -> CodeForm {
        self.traits().code_form
    }

    /// Returns the tool that a machine needs besides a device and a CUDA compiler, by its name in
    /// capabilities. `None` means no tool, or one of the libraries of
    /// [`Library`](warpgauge_model::Library), which the kernel names.
    pub fn tool(self) -> Option<&'static str> {
        self.traits().tool
    }

    /// Returns the name of such a kernel in messages, such as `cuda kernel`.
    pub fn title(self) -> String {
        match self.family().noun() {
            noun if noun == self.name() => noun.to_owned(),
            noun => format!("{} {noun}", self.name()),
        }
    }

    /// Returns whether a kernel of this type can use the launch configuration of the other. A
    /// Triton grid counts programs; a grid of other device code counts blocks of threads.
    pub fn shares_launch_with(self, other: Self) -> bool {
        let takes_launch = |one: Self| one.family().traits().takes_launch;
        let counts_programs = |one: Self| one == KernelType::Triton;
        takes_launch(self) && takes_launch(other) && counts_programs(self) == counts_programs(other)
    }

    /// Returns whether kernels of this type can take arrays of pointers to tensors.
    pub fn takes_pointers(self) -> bool {
        self.has_launches() || matches!(self, Self::Triton)
    }

    /// Returns whether a kernel of this type may be a list of launches, and may have scratch
    /// memory.
    pub fn has_launches(self) -> bool {
        matches!(self, KernelType::Cuda | KernelType::Ptx | KernelType::Cubin | KernelType::Fatbin)
    }

    /// Returns whether a source of this type may have further files, which it includes or imports.
    pub fn has_files(self) -> bool {
        matches!(self, KernelType::Cuda | KernelType::Program | KernelType::Triton)
    }

    /// Returns the type of kernel in files with this extension, which may be in upper or lower case.
    pub fn of_extension(extension: &str) -> Option<Self> {
        let known = |(known, _): &&(&str, Self)| extension.eq_ignore_ascii_case(known);
        FILE_EXTENSIONS.iter().find(known).map(|(_, kernel_type)| *kernel_type)
    }
}

/// This implementation is not derived, because the error message of a derived one would list the type that is for
/// tests only.
impl<'de> Deserialize<'de> for KernelType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let mut known = KernelType::ALL.iter().copied();
        #[cfg(feature = "example-kernel")]
        let mut known = known.by_ref().chain([KernelType::Example]);
        known.find(|one| one.name() == name).ok_or_else(|| {
            let names: Vec<_> =
                KernelType::ALL.iter().map(|one| format!("`{}`", one.name())).collect();
            let names = names.join(", ");
            D::Error::custom(format_args!("unknown variant `{name}`, expected one of {names}"))
        })
    }
}

impl KernelFamily {
    /// Every family, in the order in which capabilities list their needs.
    pub const ALL: &'static [KernelFamily] = &[
        KernelFamily::Device,
        KernelFamily::Torch,
        KernelFamily::Program,
        KernelFamily::Library,
        #[cfg(feature = "example-kernel")]
        KernelFamily::Example,
    ];

    fn traits(self) -> FamilyTraits {
        match self {
            KernelFamily::Device => FamilyTraits {
                runtime: KernelRuntime::Worker,
                noun: "kernel",
                has_gradients: false,
                takes_text: false,
                takes_none: true,
                takes_launch: true,
                has_metrics: true,
            },
            KernelFamily::Library => FamilyTraits {
                runtime: KernelRuntime::Worker,
                noun: "kernel",
                has_gradients: false,
                takes_text: false,
                takes_none: false,
                takes_launch: false,
                has_metrics: false,
            },
            KernelFamily::Torch => FamilyTraits {
                runtime: KernelRuntime::Judge,
                noun: "kernel",
                has_gradients: true,
                takes_text: true,
                takes_none: true,
                takes_launch: false,
                has_metrics: true,
            },
            KernelFamily::Program => FamilyTraits {
                runtime: KernelRuntime::Process,
                noun: "program",
                has_gradients: false,
                takes_text: false,
                takes_none: false,
                takes_launch: false,
                has_metrics: true,
            },
            #[cfg(feature = "example-kernel")]
            KernelFamily::Example => FamilyTraits {
                runtime: KernelRuntime::Process,
                noun: "kernel",
                has_gradients: false,
                takes_text: false,
                takes_none: false,
                takes_launch: false,
                has_metrics: false,
            },
        }
    }

    /// Returns the kind of process that runs its kernels.
    pub fn runtime(self) -> KernelRuntime {
        self.traits().runtime
    }

    /// Returns the noun for its kernels in verdicts: `kernel` or `program`.
    pub fn noun(self) -> &'static str {
        self.traits().noun
    }

    /// Returns whether a kernel may have gradients (`metadata.backward`).
    pub fn has_gradients(self) -> bool {
        self.traits().has_gradients
    }

    /// Returns whether a run-time argument may be a string.
    pub fn takes_text(self) -> bool {
        self.traits().takes_text
    }

    /// Returns whether an argument may have no value: a null pointer, or Python's `None`.
    pub fn takes_none(self) -> bool {
        self.traits().takes_none
    }

    /// Returns whether hardware metrics of its kernels can be collected.
    pub fn has_metrics(self) -> bool {
        self.traits().has_metrics
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_types_are_listed_by_their_names() {
        for one in KernelType::ALL {
            assert_eq!(serde_json::to_value(one).expect("a name"), one.name());
            assert!(KernelFamily::ALL.contains(&one.family()), "{one:?}");
        }
        let schema = schemars::schema_for!(KernelType);
        let documented = schema.as_value()["oneOf"].as_array().expect("variants");
        let listed: Vec<_> = documented.iter().filter_map(|one| one["const"].as_str()).collect();
        let is_documented = |one: &&KernelType| listed.contains(&one.name());
        assert_eq!(KernelType::ALL.iter().filter(is_documented).count(), listed.len());
    }

    #[test]
    fn extensions_suggest_a_type() {
        assert_eq!(KernelType::of_extension("CUBIN"), Some(KernelType::Cubin));
        assert_eq!(KernelType::of_extension("txt"), None);
    }
}
