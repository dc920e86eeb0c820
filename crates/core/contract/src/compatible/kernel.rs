//! The kernel of a request: its metadata, arguments and launch.

use serde_json::{Value, json};
use warpgauge_document::{Document, DocumentError, PathSegment};

use super::{Adapter, KNOWN, settle_numbers};

impl Adapter {
    /// Adapts a kernel. `needs_launch`: whether a missing launch is filled in.
    pub(super) fn kernel(
        &mut self,
        kernel: &mut Document<'_>,
        needs_launch: bool,
    ) -> Result<(), DocumentError> {
        let kind = kernel.entry("kernel_type").and_then(|kind| kind.text());
        let kind = kind.map(|kind| kind.into_owned()).unwrap_or_default();
        let is_program = kernel.entry("launches").is_some();
        self.entry(kernel, "metadata", |adapter, metadata| {
            adapter.ignore_unknown(metadata, &KNOWN.metadata)
        })?;
        self.entry(kernel, "io", |adapter, io| {
            adapter.ignore_unknown(io, &KNOWN.io)?;
            adapter.entry(io, "args", Self::arguments)?;
            if matches!(kind.as_str(), "torch" | "torch_cuda" | "multi_kernel") {
                adapter.called(io)?;
            }
            if needs_launch && !is_program && io.entry("args").is_some() {
                adapter.missing_launch(io, &kind)?;
            }
            adapter.entry(io, "launch", Self::launch)
        })
    }

    /// Removes fields that a Python call does not support, so that the kernel can have the same `io` as a kernel that
    /// it is compared with.
    fn called(&mut self, io: &mut Document<'_>) -> Result<(), DocumentError> {
        if io.remove("launch").is_some_and(|launch| !launch.is_null()) {
            self.within(PathSegment::Field("launch".to_owned()), |adapter| {
                adapter.warn(
                    "a torch kernel is called and not launched: `launch` is ignored".to_owned(),
                )
            })?;
        }
        self.entry(io, "args", |adapter, arguments| {
            let is_constant =
                |argument: &Document<'_>| argument.entry("is_meta").is_some_and(Document::is_true);
            for index in arguments.remove_elements(is_constant) {
                adapter.within(PathSegment::Element(index), |adapter| {
                    adapter.warn(
                        "compile-time constants are for Triton kernels: it is ignored".to_owned(),
                    )
                })?;
            }
            Ok(())
        })
    }

    fn arguments(&mut self, arguments: &mut Document<'_>) -> Result<(), DocumentError> {
        for (index, argument) in arguments.elements_mut().iter_mut().enumerate() {
            self.within(PathSegment::Element(index), |adapter| adapter.argument(argument))?;
        }
        Ok(())
    }

    fn argument(&mut self, argument: &mut Document<'_>) -> Result<(), DocumentError> {
        self.ignore_unknown(argument, &KNOWN.argument)?;
        let text = |name: &str| argument.entry(name).and_then(|value| value.text());
        let is_tensor = text("type").as_deref() == Some("tensor");
        let is_read = matches!(text("role").as_deref(), None | Some("input" | "inout"));
        self.entry(argument, "tensor_spec", |adapter, spec| {
            adapter.ignore_unknown(spec, &KNOWN.tensor)?;
            adapter.entry(spec, "init", Self::init)?;
            adapter
                .entry(spec, "data", |adapter, data| adapter.ignore_unknown(data, &KNOWN.data))?;
            let has_content =
                ["init", "data", "shape_of"].iter().any(|name| spec.entry(name).is_some());
            if !is_tensor || !is_read || has_content || !spec.is_map() {
                return Ok(());
            }
            spec.insert("init", json!({"kind": "zeros"}));
            adapter.warn(
                "the kernel reads this tensor, which has neither `init` nor `data`: its content \
                 is undefined in the CUDA Evaluation Server, and zeros are used here"
                    .to_owned(),
            )
        })
    }

    fn init(&mut self, init: &mut Document<'_>) -> Result<(), DocumentError> {
        self.ignore_unknown(init, &KNOWN.init)?;
        settle_numbers(
            init,
            &["seed", "mean", "std", "low", "high", "fill_value", "start", "step"],
        );
        if init.is_map() && init.entry("kind").is_none() {
            init.insert("kind", Value::from("randn"));
            self.warn("`kind` is missing; it is `randn`".to_owned())?;
        }
        let is_full = init.entry("kind").and_then(|kind| kind.text()).as_deref() == Some("full");
        if is_full && init.entry("fill_value").is_none() {
            init.insert("fill_value", Value::from(0));
            self.warn("`fill_value` is missing; it is 0".to_owned())?;
        }
        Ok(())
    }

    /// Fills in the grid and, for a CUDA kernel, the block.
    fn missing_launch(&mut self, io: &mut Document<'_>, kind: &str) -> Result<(), DocumentError> {
        let defaults: &[(&'static str, u32)] = match kind {
            "cuda" => &[("grid", 1), ("block", 256)],
            "triton" => &[("grid", 1)],
            _ => return Ok(()),
        };
        if io.entry("launch").is_none() {
            io.insert("launch", json!({}));
        }
        self.entry(io, "launch", |adapter, launch| {
            for (name, default) in defaults {
                if launch.is_map() && launch.entry(name).is_none() {
                    launch.insert(name, json!({"x": default}));
                    adapter.warn(format!("`{name}` is missing; it is {{\"x\": {default}}}"))?;
                }
            }
            Ok(())
        })
    }

    fn launch(&mut self, launch: &mut Document<'_>) -> Result<(), DocumentError> {
        self.ignore_unknown(launch, &KNOWN.launch)?;
        settle_numbers(launch, &["num_warps", "num_stages"]);
        for name in ["grid", "block"] {
            self.entry(launch, name, |adapter, extents| {
                adapter.ignore_unknown(extents, &KNOWN.extents)?;
                settle_numbers(extents, &["x", "y", "z"]);
                Ok(())
            })?;
        }
        Ok(())
    }
}
