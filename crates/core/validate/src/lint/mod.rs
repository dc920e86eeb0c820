//! Contract lint: checks whether a kernel that does not do the work could pass.
//!
//! A comparison can only be as strong as its expectation. These checks test the cheapest cheats against the
//! expectation itself, under the contract's tolerance: only zeros, one constant, a copy of an input, the previous
//! result. A cheat that passes is a weakness of the contract, not of the kernel, even if the expectation is
//! legitimate. A kernel that passes a weak contract is not called correct, unless the caller allows it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::compare::{Comparable, compare, enough};
use super::narrow::in_half;
use super::tolerance::resolve;
use super::{ResolvedTolerance, ToleranceBasis};
use constant::{best_constant, matches_of_constant};
use spread::Spread;
use warpgauge_tensor::element::for_dtype;
use warpgauge_tensor::{Dtype, real_view, unpacked};

mod constant;
mod spread;

/// Kind of weakness of a contract. Codes are never renamed.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum WeaknessCode {
    /// A single constant passes for the whole output. Choose inputs that make its elements differ.
    ExpectedConstant,
    /// An output that contains only zeros passes. Choose inputs whose result is not zero, or a
    /// smaller absolute tolerance.
    ZerosPass,
    /// The expected output is the same for every seed. Give an input a seeded random `init`, and a
    /// reference kernel instead of data.
    SeedInvariant,
    /// A copy of an input, or an unchanged `inout`, passes. Choose inputs that the kernel must
    /// change by more than the tolerance.
    InputPasses,
    /// The tolerance is so wide that a constant or noise passes. Lower `atol` and `rtol`, or raise
    /// `required_matched_ratio`.
    ToleranceTooLoose,
    /// The expected values pass even if they are rounded to float16, because moving the inputs by one unit in the
    /// last place changes them by more. Give a tolerance, or inputs to which the result is less sensitive.
    HalfPasses,
    /// The contract has no expectation for the output. Give `expected` data or a reference kernel.
    NoExpectation,
}

/// Weakness of a contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Weakness {
    /// Code of the weakness. It stays the same in later versions.
    pub code: WeaknessCode,
    /// Name of the output whose check is weak.
    pub output: String,
    /// Description of a useless kernel that would pass, with a remedy.
    pub message: String,
    /// Whether a kernel that passes gets the verdict `weak` because of this weakness, unless `allow_weak` is set.
    #[serde(default)]
    pub blocks: bool,
}

impl WeaknessCode {
    /// Returns each code with its meaning and a remedy, from the schema.
    pub fn meanings() -> BTreeMap<String, String> {
        let schema = schemars::schema_for!(WeaknessCode);
        let variants = schema.get("oneOf").and_then(|all| all.as_array());
        let described = variants.into_iter().flatten().filter_map(|variant| {
            let text = variant["description"].as_str()?.split_whitespace().collect::<Vec<_>>();
            Some((variant["const"].as_str()?.to_owned(), text.join(" ")))
        });
        described.collect()
    }

    /// Returns whether a kernel that passes a contract with this weakness is not called correct. An
    /// expectation that does not vary with the seed blocks only if the inputs vary.
    pub const fn blocks(self, seeded: bool) -> bool {
        match self {
            WeaknessCode::ExpectedConstant
            | WeaknessCode::ZerosPass
            | WeaknessCode::InputPasses
            | WeaknessCode::ToleranceTooLoose
            | WeaknessCode::HalfPasses => true,
            WeaknessCode::SeedInvariant => seeded,
            WeaknessCode::NoExpectation => false,
        }
    }
}

/// Content of one argument, with one entry per seed: raw little-endian elements in C order.
#[derive(Debug, Clone, Copy)]
pub struct ArgumentContents<'a> {
    pub name: &'a str,
    pub dtype: Dtype,
    pub shape: &'a [u64],
    /// Bytes for each seed. All arguments have the same seeds in the same order.
    pub seeds: &'a [&'a [u8]],
}

/// Facts about one checked output.
#[derive(Debug, Clone, Copy)]
pub struct OutputFacts<'a> {
    pub expected: ArgumentContents<'a>,
    /// Tolerance of the comparison.
    pub tolerance: &'a ResolvedTolerance,
    /// Whether any input, or initial content of an `inout`, depends on the seed. Content given as data, constants and
    /// ranges do not depend on it. If nothing does, one entry of `seeds` is enough.
    pub seeded: bool,
    /// Content that the kernel gets: inputs, and the initial content of `inout` arguments.
    pub inputs: &'a [ArgumentContents<'a>],
}

/// Number of elements below which two seeds may give the same values by chance.
const FEW: u64 = 16;

/// Returns whether an output with this number of elements needs more than two seeds.
pub fn needs_more_seeds(elements: u64) -> bool {
    elements < FEW
}

/// Returns the weakness of a contract that has no expectation for an output.
pub fn no_expectation(output: &str) -> Weakness {
    let message = format!(
        "`{output}` has no expectation, so any content passes; give `expected.{output}` as data \
         or as a reference kernel"
    );
    Weakness {
        code: WeaknessCode::NoExpectation,
        output: output.to_owned(),
        message,
        blocks: false,
    }
}

/// Returns every weakness of one checked output, in the order of the codes. A cheat counts only if it passes for
/// every given seed.
pub fn lint_output(facts: &OutputFacts<'_>) -> Vec<Weakness> {
    let ArgumentContents { dtype, shape, .. } = facts.expected;
    let (view, shape) = real_view(dtype, shape);
    let expected = ArgumentContents { dtype: view, shape: &shape, ..facts.expected };
    let numbers: Vec<_> = expected.seeds.iter().map(|bytes| unpacked(view, bytes)).collect();
    let numbers: Vec<&[u8]> = numbers.iter().map(|bytes| &**bytes).collect();
    for_dtype!(dtype, lint_as(&OutputFacts { expected, ..*facts }, &numbers))
}

/// Checks an output. `numbers` is the unpacked expected content.
fn lint_as<T: Comparable>(facts: &OutputFacts<'_>, numbers: &[&[u8]]) -> Vec<Weakness> {
    if facts.expected.seeds.iter().all(|bytes| bytes.len() < T::SIZE) {
        return Vec::new();
    }
    [
        constant_passes::<T>(facts, numbers),
        zeros_pass::<T>(facts, numbers),
        seed_invariant(facts),
        input_passes(facts),
        too_loose::<T>(facts, numbers),
        half_passes::<T>(facts),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn weakness(facts: &OutputFacts<'_>, code: WeaknessCode, what: &str) -> Option<Weakness> {
    let output = facts.expected.name;
    let message = format!("output `{output}`: {what}");
    Some(Weakness { code, output: output.to_owned(), message, blocks: code.blocks(facts.seeded) })
}

/// Returns whether writing `value` everywhere passes for every seed.
fn passes_everywhere<T: Comparable>(
    value: T,
    seeds: &[&[u8]],
    tolerance: &ResolvedTolerance,
) -> bool {
    seeds.iter().all(|expected| {
        let matched = matches_of_constant(value, expected, tolerance);
        enough(matched, (expected.len() / T::SIZE) as u64, tolerance)
    })
}

/// Returns the number of elements in all seeds together.
fn elements<T: Comparable>(numbers: &[&[u8]]) -> usize {
    numbers.iter().map(|bytes| bytes.len() / T::SIZE).sum()
}

/// Returns the tighter of the given tolerance and that by type and size of the expected values. Under it, only a
/// nearly constant output matches a constant.
fn tight(facts: &OutputFacts<'_>) -> ResolvedTolerance {
    let first = facts.expected.seeds.first().copied().unwrap_or_default();
    let by_size = resolve(None, facts.expected.dtype, first);
    ResolvedTolerance {
        atol: facts.tolerance.atol.min(by_size.atol),
        rtol: facts.tolerance.rtol.min(by_size.rtol),
        ..*facts.tolerance
    }
}

fn constant_passes<T: Comparable>(facts: &OutputFacts<'_>, numbers: &[&[u8]]) -> Option<Weakness> {
    // One element of one seed proves nothing, unless no seed can change it.
    if facts.seeded && elements::<T>(numbers) < 2 {
        return None;
    }
    let value = passing_constant::<T>(numbers, &tight(facts))?;
    let what = format!(
        "every element is expected to be {}, for every seed that was checked, so a kernel that \
         writes this constant passes; choose inputs that make the elements differ",
        value.text()
    );
    weakness(facts, WeaknessCode::ExpectedConstant, &what)
}

/// Returns a constant that passes under `tolerance` for every seed, if the search finds one.
fn passing_constant<T: Comparable>(seeds: &[&[u8]], tolerance: &ResolvedTolerance) -> Option<T> {
    let first = seeds.iter().find_map(|bytes| bytes.get(..T::SIZE).map(T::read));
    let guess = best_constant::<T>(seeds, tolerance).map(T::from_f64);
    [first, guess].into_iter().flatten().find(|value| passes_everywhere(*value, seeds, tolerance))
}

fn zeros_pass<T: Comparable>(facts: &OutputFacts<'_>, numbers: &[&[u8]]) -> Option<Weakness> {
    let zero = T::from_f64(0.0);
    if !passes_everywhere(zero, numbers, facts.tolerance) {
        return None;
    }
    let what = "an output that contains only zeros passes, for every seed that was checked; \
                choose inputs whose result is not zero, or a smaller absolute tolerance";
    weakness(facts, WeaknessCode::ZerosPass, what)
}

fn seed_invariant(facts: &OutputFacts<'_>) -> Option<Weakness> {
    let (first, others) = facts.expected.seeds.split_first()?;
    let same = |other: &&[u8]| other == first || passes(facts, first, other);
    // One seed proves nothing, unless no input depends on it.
    if (facts.seeded && others.is_empty()) || !others.iter().all(same) {
        return None;
    }
    let what = if facts.seeded {
        "the inputs vary with the seed, but the expected output does not vary by more than the \
         tolerance, so a stored result always passes; choose inputs that affect the result"
    } else {
        "neither the inputs nor the expected output vary with a seed, so a stored result always \
         passes; give an input a seeded random `init` and the expectation as a reference kernel"
    };
    weakness(facts, WeaknessCode::SeedInvariant, what)
}

fn passes(facts: &OutputFacts<'_>, actual: &[u8], expected: &[u8]) -> bool {
    let ArgumentContents { dtype, shape, .. } = facts.expected;
    compare(dtype, shape, actual, expected, None, facts.tolerance).passed
}

fn input_passes(facts: &OutputFacts<'_>) -> Option<Weakness> {
    let expected = &facts.expected;
    let candidate = facts.inputs.iter().find(|input| {
        let pairs = || input.seeds.iter().zip(expected.seeds);
        let alike = input.dtype.part() == expected.dtype
            && input.seeds.len() == expected.seeds.len()
            && pairs().all(|(input, expected)| input.len() == expected.len());
        alike && pairs().all(|(input, wanted)| input == wanted || passes(facts, input, wanted))
    })?;
    let what = if candidate.name == expected.name {
        "leaving it unchanged passes; choose inputs that the kernel must change by more than the \
         tolerance"
            .to_owned()
    } else {
        format!(
            "a copy of `{}` passes; choose inputs that the kernel must change by more than the \
             tolerance",
            candidate.name
        )
    };
    weakness(facts, WeaknessCode::InputPasses, &what)
}

/// Applies two tests: whether a constant passes that would not pass under the type's own tolerance, and whether the
/// tolerance of a typical element is at least the standard deviation of the expected values.
fn too_loose<T: Comparable>(facts: &OutputFacts<'_>, numbers: &[&[u8]]) -> Option<Weakness> {
    if elements::<T>(numbers) < 2 {
        return None;
    }
    let spread = Spread::of::<T>(numbers);
    let typical = facts.tolerance.atol + facts.tolerance.rtol * spread.mean_magnitude;
    let is_constant = || passing_constant::<T>(numbers, &tight(facts)).is_some();
    let wide = spread.std > 0.0 && typical >= spread.std;
    let constant =
        if wide || is_constant() { None } else { passing_constant::<T>(numbers, facts.tolerance) };
    let what = match constant {
        Some(value) => format!(
            "writing {} everywhere passes, because the allowed error or share of mismatches is so \
             large; lower `atol` and `rtol`, or raise `required_matched_ratio`",
            value.text()
        ),
        None if wide && !is_constant() => format!(
            "the tolerance of a typical element is {typical:.3e}, and the expected values spread \
             by {:.3e} (standard deviation), so noise passes; lower `atol` and `rtol`",
            spread.std
        ),
        None => return None,
    };
    weakness(facts, WeaknessCode::ToleranceTooLoose, &what)
}

/// Minimum number of elements for the test of half precision.
const FEW_ELEMENTS: usize = 32;

/// Tests whether half precision passes under a measured tolerance. The tolerance of a reference that rounds its
/// inputs itself has another basis. Values that float16 represents exactly, such as small integers, prove nothing.
fn half_passes<T: Comparable>(facts: &OutputFacts<'_>) -> Option<Weakness> {
    let is_wide = matches!(facts.expected.dtype, Dtype::Float32 | Dtype::Float64);
    // A few elements may all be near a float16 number by chance.
    let is_few = elements::<T>(facts.expected.seeds) < FEW_ELEMENTS;
    if !is_wide || is_few || facts.tolerance.basis != ToleranceBasis::ReferenceNoise {
        return None;
    }
    let passes_rounded = |expected: &&[u8]| {
        let values = || expected.chunks_exact(T::SIZE).map(|bytes| T::read(bytes).to_f64());
        let rounded = || values().map(in_half);
        let changed = values().zip(rounded()).filter(|(value, rounded)| value != rounded).count();
        let mut bytes = vec![0; expected.len()];
        for (bytes, value) in bytes.chunks_exact_mut(T::SIZE).zip(rounded()) {
            T::from_f64(value).write(bytes);
        }
        2 * changed > values().count() && passes(facts, &bytes, expected)
    };
    if !facts.expected.seeds.iter().all(passes_rounded) {
        return None;
    }
    let what = "the expected values rounded to float16 pass, because moving each input by one \
                unit in the last place changes the result by more; give `tolerance`, or inputs to \
                which the result is less sensitive";
    weakness(facts, WeaknessCode::HalfPasses, what)
}

#[cfg(test)]
mod tests;
