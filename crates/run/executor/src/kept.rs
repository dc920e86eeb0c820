//! A kernel with its compilation, stored to answer later requests for its code.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use warpgauge_contract::{ArgSpec, IoContract, KernelCode, KernelType, TensorSpec};
use warpgauge_model::{CountedCode, ImageFormat, Target};

/// A kernel of a job, with the result of its compilation.
#[derive(Debug, Serialize, Deserialize)]
pub struct KeptKernel {
    /// `kernel`, or the kernel's name in a comparison.
    pub name: String,
    /// The submitted code, without the image of a binary and without arguments. The arguments of a
    /// Triton kernel are included without their content, because their types affect the
    /// compilation.
    pub code: KernelCode,
    /// The compilation target.
    pub target: Target,
    /// Whether the kernel was compiled with line information.
    pub lineinfo: bool,
    /// The compiler's messages.
    pub log: String,
    /// `None` for whole programs, and if the kernel did not compile.
    pub built: Option<BuiltImage>,
    /// Counts of each instruction of `built` in one launch. `None` if none were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<CountedCode>,
}

/// Compiled image that ran.
#[derive(Debug, Serialize, Deserialize)]
pub struct BuiltImage {
    #[serde(with = "warpgauge_model::byte_string")]
    pub image: Arc<[u8]>,
    pub format: ImageFormat,
    /// Intermediate forms of the source by language, unless they are compiled again on demand. A
    /// form that is the image itself is not included.
    #[serde(default)]
    pub stages: Vec<(String, String)>,
}

impl BuiltImage {
    /// Returns the text of an intermediate form of the source, if it is stored.
    pub fn stage(&self, language: &str) -> Option<&str> {
        let found = self.stages.iter().find(|(name, _)| name == language);
        found.map(|(_, text)| text.as_str())
    }
}

impl KeptKernel {
    /// Returns a kernel without a compilation.
    pub fn new(name: &str, code: &KernelCode, target: Target, lineinfo: bool, log: String) -> Self {
        let code = KernelCode {
            source_code: code.source_code.clone(),
            files: code.files.clone(),
            source_path: code.source_path.clone(),
            launches: code.launches.clone(),
            setup: code.setup.clone(),
            binary_b64: None,
            kernel_type: code.kernel_type,
            io: arguments_without_content(code),
            metadata: code.metadata.clone(),
        };
        Self { name: name.to_owned(), code, target, lineinfo, log, built: None, counted: None }
    }
}

/// Returns the arguments that are required to compile a Triton kernel again; `None` for other
/// kernels.
fn arguments_without_content(code: &KernelCode) -> Option<IoContract> {
    let io = code.io.as_ref().filter(|_| code.kernel_type == KernelType::Triton)?;
    let bare = |arg: &ArgSpec| ArgSpec {
        name: arg.name.clone(),
        kind: arg.kind,
        value: arg.value.clone(),
        value_of: None,
        tensor_spec: arg
            .tensor_spec
            .as_ref()
            .map(|spec| TensorSpec::new(spec.shape.clone(), spec.dtype)),
        fields: arg.fields.clone(),
        pointers: Vec::new(),
        texture: None,
        surface: None,
        symbol: None,
        role: arg.role,
        is_meta: arg.is_meta,
        descriptor: arg.descriptor.clone(),
        c_type: arg.c_type.clone(),
    };
    Some(IoContract { args: io.args.iter().map(bare).collect(), launch: io.launch.clone() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Code that is compiled again has the arguments that affect it, and no data of a caller.
    #[test]
    fn arguments_of_a_triton_kernel_are_kept_without_content() {
        let io = json!({
            "args": [
                {"name": "x", "type": "tensor", "role": "input",
                 "tensor_spec": {"shape": [2, 3], "dtype": "float16",
                     "data": {"data_b64": "AQIDBAUGBwgJCgsM"}}},
                {"name": "y", "type": "tensor", "role": "output",
                 "tensor_spec": {"shape": [6], "dtype": "float32", "init": {"kind": "randn"}}},
                {"name": "n", "type": "int", "value": 6},
                {"name": "BLOCK", "type": "int", "value": 8, "is_meta": true},
            ],
            "launch": {"grid": {"x": "n"}, "num_warps": 8},
        });
        for (kind, kept) in [("triton", true), ("cuda", false)] {
            let code = json!({"source_code": "x", "kernel_type": kind, "io": io});
            let code: KernelCode = serde_json::from_value(code).unwrap();
            let target =
                Target { compute_capability: (9, 0), driver_version: 13_000, emulated: true };
            let bare = KeptKernel::new("kernel", &code, target, false, String::new());
            let Some(io) = bare.code.io else {
                assert!(!kept);
                continue;
            };
            let text = serde_json::to_string(&io).unwrap();
            assert!(kept && !text.contains("randn") && !text.contains("data"), "{text}");
            assert_eq!(io.args[0].tensor_spec.as_ref().unwrap().shape, [2, 3]);
            assert_eq!((io.args[3].is_meta, io.launch.unwrap().num_warps), (true, Some(8)));
        }
    }
}
