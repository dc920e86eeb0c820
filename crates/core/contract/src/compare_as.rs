//! Outputs with more than one correct content. The main type is [`CompareAs`].

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Mistakes, quoted};
use crate::{ArgKind, ArgSpec, KernelFamily, KernelType, TensorSpec};
use warpgauge_model::FailureCode;
use warpgauge_tensor::{ScaleBlocks, ScaleLayout, ScaleShape};

/// Rule for an output that has more than one correct content. A row is the part of a tensor that one index of its
/// first dimension selects.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompareAs {
    /// Whether rows may be in any order.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub any_order: bool,
    /// Name of a tensor of row offsets. Rows may be in any order within each of its segments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segments: Option<String>,
    /// Name of a tensor with the same number of rows. Neighbouring rows may be in any order if that tensor's rows are
    /// equal, e.g. the values that belong to equal keys of a sort.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub equal: Option<String>,
    /// Names of outputs whose rows correspond to the rows of this output. They are reordered with these rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub along: Vec<String>,
    /// Name of a tensor whose first element is the number of rows that are compared, or of an integer argument with
    /// this number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_to: Option<String>,
    /// Name of a tensor of the same shape, or with one element per row. Elements or rows whose mask is 0 are not
    /// compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mask: Option<String>,
    /// Value of empty rows, as in a hash table. Rows of the outputs in `along` that belong to empty rows are not
    /// compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empty: Option<f64>,
    /// Name of a tensor that the elements are indices into. An index is also correct if it selects a row equal to the
    /// expected one. If the expected indices are all different, the actual ones must be, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<String>,
    /// Scales of a quantised output, which its numbers are multiplied by in the comparison. Scales that are an output
    /// with an expectation are checked, too. A number matches within the sum of two half steps: that of the actual
    /// number and that of the expected number, each times its scale. If the request gives `atol` or `rtol`, they
    /// apply to numbers times scales.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scales: Option<ScalesOf>,
}

/// Tensor and layout of a quantised output's scales.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScalesOf {
    /// Name of the tensor of scales: an input, or an output with an expectation.
    pub of: String,
    /// Number of neighbouring values with a common scale, for each dimension, e.g. `[1, 32]`. Default: derived from
    /// the shapes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub block: Vec<u64>,
    /// Order of the scales in memory. Default: `rows`.
    #[serde(default, skip_serializing_if = "ScaleLayout::is_rows")]
    pub layout: ScaleLayout,
}

impl ScalesOf {
    /// Returns the assignment of scales to the numbers of an output.
    ///
    /// # Errors
    /// Returns a message if the scales do not fit the output.
    pub fn blocks(&self, output: &TensorSpec, scales: &TensorSpec) -> Result<ScaleBlocks, String> {
        let (dtype, shape) = (scales.dtype, &scales.shape[..]);
        let scales = ScaleShape { dtype, shape, block: &self.block, layout: self.layout };
        ScaleBlocks::new((output.dtype, &output.shape), scales)
    }
}

impl CompareAs {
    /// Returns the name of the tensor of scales if it is an output.
    pub fn output_of_scales(&self, args: &[ArgSpec]) -> Option<&String> {
        let of = self.scales.as_ref().map(|scales| &scales.of)?;
        args.iter().any(|arg| arg.name == *of && arg.is_output()).then_some(of)
    }

    /// Returns whether some or all rows may be in another order than the expected one.
    fn is_free(&self) -> bool {
        self.any_order || self.segments.is_some() || self.equal.is_some()
    }
}

/// Checks `compare_as` of a request against its arguments. `expected` returns whether an output has an expectation.
pub(super) fn check(
    all: &BTreeMap<String, CompareAs>,
    args: &[ArgSpec],
    kernel: KernelType,
    expected: impl Fn(&str) -> bool,
    mistakes: &mut Mistakes,
) {
    if all.is_empty() {
        return;
    }
    if kernel.family() != KernelFamily::Device {
        return report_family(kernel, mistakes);
    }
    let mut arranged = BTreeSet::new();
    for (name, how) in all {
        if mistakes.full() {
            return;
        }
        let one = One { args, path: format!("compare_as.{}", quoted(name)) };
        let Some(spec) = one.output(name, "", &expected, mistakes) else { continue };
        if how.along.len() > args.len() {
            let message = format!(
                "lists {} outputs, but the kernel has only {} arguments",
                how.along.len(),
                args.len()
            );
            mistakes.add(format!("{}.along", one.path), FailureCode::TooLarge, message);
            continue;
        }
        for other in std::iter::once(name).chain(&how.along).chain(how.output_of_scales(args)) {
            if !arranged.insert(other) {
                let message = format!(
                    "`{}` occurs more than once in `compare_as`; name it only once",
                    quoted(other)
                );
                mistakes.add(one.path.clone(), FailureCode::ConflictingFields, message);
            }
        }
        one.check(name, how, spec, &expected, mistakes);
    }
}

/// Reports that kernels of this type do not support `compare_as`.
pub(super) fn report_family(kernel: KernelType, mistakes: &mut Mistakes) {
    let message = format!(
        "is for kernels of the types cuda, ptx, cubin, fatbin and triton; a {} kernel can order \
         its result itself",
        kernel.name()
    );
    mistakes.add("compare_as", FailureCode::WrongField, message);
}

/// One entry, for its messages.
struct One<'a> {
    args: &'a [ArgSpec],
    path: String,
}

impl<'a> One<'a> {
    fn check(
        &self,
        name: &str,
        how: &CompareAs,
        spec: &TensorSpec,
        expected: &impl Fn(&str) -> bool,
        mistakes: &mut Mistakes,
    ) {
        if let Some(scales) = &how.scales {
            return self.check_scales(name, (how, scales), spec, expected, mistakes);
        }
        mistakes.require(
            spec.dtype.parts() == 1,
            self.path.clone(),
            FailureCode::WrongType,
            || {
                format!(
                    "the elements of the output are {}, each of several numbers, and are compared \
                     in place: leave it out",
                    spec.dtype
                )
            },
        );
        let rows = spec.shape.first().copied().unwrap_or(1);
        let orders =
            [how.any_order, how.segments.is_some(), how.equal.is_some(), how.through.is_some()];
        let chosen = orders.into_iter().filter(|&chosen| chosen).count();
        mistakes.require(chosen < 2, self.path.clone(), FailureCode::ConflictingFields, || {
            "give one of `any_order`, `segments`, `equal` and `through`".to_owned()
        });
        let says = chosen > 0 || how.up_to.is_some() || how.mask.is_some() || how.empty.is_some();
        mistakes.require(says, self.path.clone(), FailureCode::MissingField, || {
            "has no effect: give `any_order`, `segments`, `equal`, `through`, `up_to`, `mask`, \
             `empty` or `scales`"
                .to_owned()
        });
        for (index, other) in how.along.iter().enumerate() {
            let field = format!(".along[{index}]");
            let found = self.output(other, &field, expected, mistakes);
            if let Some(found) = found.filter(|_| other != name) {
                self.has_rows(other, found, rows, &field, mistakes);
            } else if other == name {
                let message = "is the output itself".to_owned();
                mistakes.add(
                    format!("{}{field}", self.path),
                    FailureCode::ConflictingFields,
                    message,
                );
            }
        }
        mistakes.require(
            how.along.is_empty()
                || how.is_free()
                || how.empty.is_some()
                || how.up_to.is_some()
                || how.mask.is_some(),
            format!("{}.along", self.path),
            FailureCode::WrongField,
            || {
                "has an effect only if rows may move or are left out; here all rows are compared \
                in place"
                    .to_owned()
            },
        );
        mistakes.require(
            how.empty.is_none_or(f64::is_finite),
            format!("{}.empty", self.path),
            FailureCode::OutOfRange,
            || "must be a finite number".to_owned(),
        );
        self.check_tensors(how, spec, rows, expected, mistakes);
    }

    fn check_scales(
        &self,
        name: &str,
        (how, scales): (&CompareAs, &ScalesOf),
        spec: &TensorSpec,
        expected: &impl Fn(&str) -> bool,
        mistakes: &mut Mistakes,
    ) {
        let alone = CompareAs { scales: Some(scales.clone()), ..CompareAs::default() };
        mistakes.require(*how == alone, self.path.clone(), FailureCode::ConflictingFields, || {
            "`scales` cannot be combined with other fields: numbers are compared in place"
                .to_owned()
        });
        let quantized = spec.dtype.largest_quantized().is_some();
        mistakes.require(quantized, self.path.clone(), FailureCode::WrongType, || {
            format!(
                "the output is {}; float8_e4m3, float8_e5m2, float4_e2m1fn_x2, int8 and int4x2 have scales",
                spec.dtype
            )
        });
        let path = format!("{}.scales.of", self.path);
        let Some(found) = self.tensor(&scales.of, ".scales.of", expected, mistakes) else { return };
        if scales.of == name {
            let message = "is the output itself".to_owned();
            return mistakes.add(path, FailureCode::ConflictingFields, message);
        }
        if found.dtype.scale_range().is_none() {
            let message = format!(
                "the scales are {}; they can be float32, float16, bfloat16, float8_e4m3 or float8_e8m0fnu",
                found.dtype
            );
            return mistakes.add(path, FailureCode::WrongType, message);
        }
        if let Err(message) = scales.blocks(spec, found) {
            mistakes.add(path, FailureCode::ShapeMismatch, message);
        }
    }

    fn check_tensors(
        &self,
        how: &CompareAs,
        spec: &TensorSpec,
        rows: u64,
        expected: &impl Fn(&str) -> bool,
        mistakes: &mut Mistakes,
    ) {
        if let Some(count) = &how.up_to {
            let scalar =
                self.args.iter().find(|arg| arg.name == *count && arg.kind == ArgKind::Int);
            if scalar.is_none() {
                self.tensor(count, ".up_to", expected, mistakes);
            }
        }
        if let Some(offsets) = &how.segments {
            self.tensor(offsets, ".segments", expected, mistakes);
        }
        if let Some(keys) = &how.equal
            && let Some(found) = self.tensor(keys, ".equal", expected, mistakes)
        {
            self.has_rows(keys, found, rows, ".equal", mistakes);
        }
        if let Some(mask) = &how.mask
            && let Some(found) = self.tensor(mask, ".mask", expected, mistakes)
        {
            let elements = found.shape.iter().product::<u64>();
            let fits = found.shape == spec.shape || elements == rows;
            mistakes.require(fits, format!("{}.mask", self.path), FailureCode::ShapeMismatch, || {
                format!("`{}` has neither the output's shape nor an element for each of {rows} rows", quoted(mask))
            });
        }
        if let Some(keys) = &how.through {
            self.tensor(keys, ".through", expected, mistakes);
            let whole = !spec.dtype.is_float();
            mistakes.require(
                whole,
                format!("{}.through", self.path),
                FailureCode::WrongType,
                || {
                    format!(
                        "the elements of the output are {}, which cannot be indices",
                        spec.dtype
                    )
                },
            );
        }
    }

    fn has_rows(
        &self,
        name: &str,
        spec: &TensorSpec,
        rows: u64,
        field: &str,
        mistakes: &mut Mistakes,
    ) {
        let own = spec.shape.first().copied().unwrap_or(1);
        mistakes.require(
            own == rows,
            format!("{}{field}", self.path),
            FailureCode::ShapeMismatch,
            || format!("`{}` has {own} rows, the output {rows}", quoted(name)),
        );
    }

    /// Returns the output of this name, and reports a mistake unless it has an expectation.
    fn output(
        &self,
        name: &str,
        field: &str,
        expected: &impl Fn(&str) -> bool,
        mistakes: &mut Mistakes,
    ) -> Option<&'a TensorSpec> {
        let known = |arg: &ArgSpec| arg.is_output() && expected(name);
        self.named(name, field, (&known, "no output with an expectation"), mistakes)
    }

    /// Returns an input, or an output that has an expectation.
    fn tensor(
        &self,
        name: &str,
        field: &str,
        expected: &impl Fn(&str) -> bool,
        mistakes: &mut Mistakes,
    ) -> Option<&'a TensorSpec> {
        let known = |arg: &ArgSpec| match arg.is_output() {
            true => expected(name),
            false => arg.is_read(),
        };
        let otherwise = "neither an input tensor nor an output with an expectation";
        self.named(name, field, (&known, otherwise), mistakes)
    }

    /// Returns the tensor of this name if `known` accepts it, and reports `otherwise` if not.
    fn named(
        &self,
        name: &str,
        field: &str,
        (known, otherwise): (&dyn Fn(&ArgSpec) -> bool, &str),
        mistakes: &mut Mistakes,
    ) -> Option<&'a TensorSpec> {
        let arg = self.args.iter().find(|arg| arg.name == name && known(arg));
        let spec = arg.and_then(|arg| arg.tensor_spec.as_ref());
        if spec.is_none() {
            let message = format!("`{}` is {otherwise}", quoted(name));
            mistakes.add(format!("{}{field}", self.path), FailureCode::UnknownOutput, message);
        }
        spec
    }
}
