//! The parts that can be installed.

use super::super::torch::{self, TORCH};
use super::super::triton::{PINNED, TRITON};
use super::InstallError;

/// An installable part. Each has a separate directory below `toolchain`.
pub(super) struct Part {
    pub(super) name: String,
    pub(super) packages: Vec<String>,
    pub(super) kind: Kind,
    /// Whether dependencies of the packages are also installed.
    pub(super) with_needs: bool,
    /// Text about the disk space that the part needs.
    pub(super) room: &'static str,
    /// Text about the platforms for which wheels exist.
    pub(super) wheels: &'static str,
    /// Remedy to suggest if the wheels cannot be downloaded.
    pub(super) instead: &'static str,
}

/// The compiler or package that a part contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Nvrtc,
    Nvcc,
    Triton,
    Torch,
}

impl Part {
    pub(super) fn nvrtc(major: u32) -> Result<Self, InstallError> {
        let packages: &[&str] = match major {
            // For CUDA 12, headers are separate packages; NVRTC 13 contains them.
            12 => &["nvidia-cuda-nvrtc-cu12", "nvidia-cuda-runtime-cu12", "nvidia-cuda-cccl-cu12"],
            13 => &["nvidia-cuda-nvrtc>=13,<14"],
            _ => return Err(InstallError::Version { major }),
        };
        let packages = packages.iter().map(|p| (*p).to_owned()).collect();
        Ok(Self::of_cuda(format!("nvrtc-{major}"), packages, Kind::Nvrtc))
    }

    pub(super) fn nvcc() -> Self {
        let packages = [
            "nvidia-cuda-nvcc",
            "nvidia-nvvm",
            "nvidia-cuda-runtime",
            "nvidia-cuda-crt",
            "nvidia-cuda-cccl",
            "nvidia-cuda-cuobjdump",
            "nvidia-cuda-nvdisasm",
        ];
        let mut packages: Vec<String> = packages.iter().map(|p| format!("{p}>=13,<14")).collect();
        // Only cuRAND's headers are kept, for kernels that draw random numbers. cuRAND has a
        // separate version number.
        packages.push("nvidia-curand>=10.4,<11".to_owned());
        Self::of_cuda("nvcc-13".into(), packages, Kind::Nvcc)
    }

    fn of_cuda(name: String, packages: Vec<String>, kind: Kind) -> Self {
        Self {
            name,
            packages,
            kind,
            with_needs: false,
            room: "NVRTC needs about 220 MB, nvcc about 350 MB",
            wheels: "they are built for Linux on x86-64 and aarch64",
            instead: "install a CUDA toolkit and set CUDA_HOME",
        }
    }

    pub(super) fn triton() -> Self {
        Self {
            name: TRITON.name.into(),
            // Many sources compare versions with `packaging` before they define a kernel.
            packages: vec![format!("triton=={PINNED}"), "packaging".into()],
            kind: Kind::Triton,
            with_needs: false,
            room: "Triton needs about 230 MB, and 900 MB during the installation",
            wheels: "they are built for CPython on Linux with glibc, on x86-64 and aarch64",
            instead: "name a Python that has Triton in compile.python (WARPGAUGE_PYTHON)",
        }
    }
    pub(super) fn torch() -> Self {
        Self {
            name: TORCH.name.into(),
            packages: vec![format!("torch=={}", torch::PINNED), "numpy".into()],
            kind: Kind::Torch,
            with_needs: true,
            room: "PyTorch needs about 5 GB, and as much again during the installation",
            wheels: "they are built for CPython on Linux with glibc, on x86-64 and aarch64",
            instead: "name a Python that has PyTorch in compile.python (WARPGAUGE_PYTHON)",
        }
    }
}
