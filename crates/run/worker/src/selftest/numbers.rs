//! Checks that random numbers from secret seeds have the distribution that the contract requests.

use super::bench::{Bench, buffer, init};
use super::checks::ensure;
use super::content::{BLOCKS, described};
use crate::protocol::{Argument, BufferContent};
use warpgauge_contract::Role;
use warpgauge_device::support::InitParams;
use warpgauge_tensor::{Dtype, InitKind, TensorInit};

/// Number of elements of a tensor; not a multiple of 4.
const ELEMENTS: u64 = 50_003;

/// First word of a finding if there is no difference.
const NOTHING: u32 = 1 << 30;

/// Largest permitted deviation of a count from its expected value, in standard deviations. Seeds
/// are fixed, so the result does not vary between runs.
const DEVIATIONS: f64 = 4.0;

/// Thresholds, and the probability that a normal number is below each.
const NORMAL: [(f64, f64); 9] = [
    (-3.0, 0.001_349_898),
    (-2.0, 0.022_750_132),
    (-1.0, 0.158_655_254),
    (-0.1, 0.460_172_163),
    (0.0, 0.5),
    (0.5, 0.691_462_461),
    (1.5, 0.933_192_799),
    (2.5, 0.993_790_335),
    (3.5, 0.999_767_371),
];

/// Checks every element type and kind. The numbers must be within the bounds, have the contract's
/// distribution, and be recognised. Another seed, another argument and the contract's generator
/// must give other numbers.
pub(super) async fn secret_numbers(bench: &Bench) -> Result<String, String> {
    let mut drawn = 0;
    for dtype in Dtype::ALL {
        for kind in [InitKind::Uniform, InitKind::Randn, InitKind::Randint] {
            let mut spec = init(kind);
            if kind != InitKind::Randn {
                (spec.low, spec.high) = (Some(1.0), Some(100.0));
            }
            let Ok(params) = secret(&spec, dtype, "tensor") else { continue };
            let what = |text: &str| format!("{dtype} {kind:?}: {text}");
            let (words, found) = write_and_look(bench, params, params, dtype).await?;
            ensure(found == NOTHING, || what("content that was just written is not recognised"))?;
            let contract =
                InitParams::new(&spec, (dtype, &[]), "tensor").map_err(|e| e.to_string())?;
            let seed = spec.seed.map(|seed| seed + 1);
            let reseeded = TensorInit { seed, ..spec.clone() };
            let others =
                [contract, secret(&spec, dtype, "b")?, secret(&reseeded, dtype, "tensor")?];
            for other in others {
                let (_, found) = write_and_look(bench, params, other, dtype).await?;
                ensure(found < NOTHING, || what("other content has the same numbers"))?;
            }
            drawn += 1;
            if dtype != Dtype::Float32 {
                continue;
            }
            let numbers = words[..ELEMENTS as usize].iter();
            let numbers = numbers.map(|&word| f64::from(f32::from_bits(word))).collect::<Vec<_>>();
            match kind {
                InitKind::Randn => are_normal(&numbers),
                _ => are_uniform(&numbers),
            }
            .map_err(|text| what(&text))?;
        }
    }
    Ok(format!("{drawn} combinations have the expected distribution and are recognised"))
}

fn secret(spec: &TensorInit, dtype: Dtype, name: &str) -> Result<InitParams, String> {
    InitParams::secret(spec, (dtype, &[]), name).map_err(|error| error.to_string())
}

/// Writes a tensor and compares it with described content. Returns its 32-bit words and the index
/// of the first byte that differs.
async fn write_and_look(
    bench: &Bench,
    written: InitParams,
    looked_for: InitParams,
    dtype: Dtype,
) -> Result<(Vec<u32>, u32), String> {
    let mut nothing = init(InitKind::Full);
    nothing.fill_value = Some(f64::from(NOTHING));
    let padded = ELEMENTS.next_multiple_of(4);
    let buffers = vec![
        buffer("tensor", dtype, padded, Role::Output, BufferContent::Undefined),
        buffer("lowest", Dtype::Uint64, 1, Role::Inout, BufferContent::Init(Box::new(nothing))),
    ];
    let write = vec![Argument::Buffer(0), described(written, 0, ELEMENTS, dtype)];
    let look =
        vec![Argument::Buffer(0), described(looked_for, 0, ELEMENTS, dtype), Argument::Buffer(1)];
    let mut job = bench.job(bench.support("wg_write", write, BLOCKS), buffers);
    job.program.launches.rest = vec![bench.support("wg_look", look, BLOCKS)];
    let outcome = bench.succeed(job).await?;
    Ok((bench.words(&outcome, 0)?, bench.words(&outcome, 1)?[0]))
}

fn are_normal(numbers: &[f64]) -> Result<(), String> {
    let zeros = numbers.iter().filter(|&&number| number == 0.0).count();
    ensure(zeros == 0, || format!("{zeros} are zero"))?;
    ensure(numbers.iter().all(|number| number.abs() < 8.3), || "too far out".to_owned())?;
    are_below(numbers, &NORMAL)?;
    // Neighbours and their magnitudes must be uncorrelated; two neighbours come from one pair.
    for distance in [1, 2, 4] {
        let pairs = || numbers.iter().zip(&numbers[distance..]);
        are_unrelated(pairs().map(|(a, b)| a * b), 1.0)?;
        are_unrelated(pairs().map(|(a, b)| (a * a - 1.0) * (b * b - 1.0)), 2.0)?;
    }
    Ok(())
}

fn are_uniform(numbers: &[f64]) -> Result<(), String> {
    let within = numbers.iter().all(|number| (1.0..=100.0).contains(number));
    ensure(within, || "beyond the bounds".to_owned())?;
    let deciles = (1..10).map(|tenth| (1.0 + 9.9 * f64::from(tenth), f64::from(tenth) / 10.0));
    are_below(numbers, &deciles.collect::<Vec<_>>())
}

/// Checks that the fraction of numbers below each threshold matches its probability.
fn are_below(numbers: &[f64], thresholds: &[(f64, f64)]) -> Result<(), String> {
    let all = numbers.len() as f64;
    for &(threshold, probability) in thresholds {
        let below = numbers.iter().filter(|&&number| number < threshold).count() as f64;
        let deviation = (all * probability * (1.0 - probability)).sqrt();
        let off = (below - all * probability) / deviation;
        ensure(off.abs() < DEVIATIONS, || {
            format!("{below} of {all} are below {threshold}: {off:.1} deviations off")
        })?;
    }
    Ok(())
}

/// Checks that products with this standard deviation have a mean near zero.
fn are_unrelated(products: impl Iterator<Item = f64>, deviation: f64) -> Result<(), String> {
    let (count, sum) = products.fold((0.0, 0.0), |(count, sum), x| (count + 1.0, sum + x));
    let off: f64 = sum / f64::sqrt(count) / deviation;
    ensure(off.abs() < DEVIATIONS, || format!("neighbours are related: {off:.1} deviations"))
}
