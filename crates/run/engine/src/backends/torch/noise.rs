//! Measures how much rounding changes the references' results. Copies of the references' objects
//! are called on inputs that are moved by units in the last place, before anything is verified. If
//! no input can be moved, parameters are moved instead.

use std::collections::BTreeMap;
use std::time::Instant;

use super::expectations::ReferencePlayer;
use super::fault::Stop;
use super::inputs::{self, Inputs};
use super::player::Player;
use super::values::{Named, Value};
use warpgauge_tensor::Dtype;
use warpgauge_torch::{ModuleParameter, TensorAt, TreeOf};
use warpgauge_validate::{
    Nudge, NudgedRun, QUICK, is_doubtful, may_round_inside, nudge_across, nudges, resolve_by_noise,
    sample,
};

/// Samples of the references' results for inputs moved by units in the last place, by the names of
/// outputs.
#[derive(Default)]
pub(super) struct Noise(BTreeMap<String, OutputNoise>);

/// Samples of one output of the references.
#[derive(Default)]
struct OutputNoise {
    runs: Vec<(Nudge, Dtype, Vec<u8>)>,
    /// Shorter floating-point type in which the reference computes, if any.
    computes_in: Option<Dtype>,
}

impl OutputNoise {
    fn of(runs: &[(Nudge, Dtype, Vec<u8>)]) -> Vec<NudgedRun<'_>> {
        runs.iter().map(|(nudge, _, output)| NudgedRun::of(nudge, output)).collect()
    }

    /// Returns whether the output changed so much that the reference may not be deterministic.
    fn is_doubtful(&self) -> bool {
        let Some(((_, dtype, first), others)) = self.runs.split_first() else { return false };
        let others = Self::of(others);
        let measured = resolve_by_noise(None, *dtype, first, (&others, self.computes_in));
        is_doubtful(*dtype, first, &measured)
    }

    /// Returns whether the reference may compute the output in a shorter type.
    fn may_round_inside(&self) -> bool {
        let Some(((_, dtype, first), others)) = self.runs.split_first() else { return false };
        may_round_inside(*dtype, first, &Self::of(others))
    }
}

impl Noise {
    /// Returns the measured runs of one output.
    pub(super) fn runs(&self, name: &str) -> Vec<NudgedRun<'_>> {
        self.0.get(name).map(|output| OutputNoise::of(&output.runs)).unwrap_or_default()
    }

    fn may_round_inside(&self) -> bool {
        self.0.values().any(OutputNoise::may_round_inside)
    }

    /// Records the shorter type in which the reference computes. It applies to all outputs whose
    /// differences rounding to a shorter type may explain.
    fn set_shorter_type(&mut self, shorter: Option<Dtype>) {
        let outputs = self.0.values_mut().filter(|output| output.may_round_inside());
        outputs.for_each(|output| output.computes_in = shorter);
    }

    /// Returns the shorter type in which the reference of an output computes. `None` if it computes
    /// in the output's type.
    pub(super) fn computes_in(&self, name: &str) -> Option<Dtype> {
        self.0.get(name)?.computes_in
    }
}

/// Calls a copy of a reference on moved inputs.
pub(super) trait NudgedCalls {
    /// Returns the element types of the tensors that the calls move.
    fn input_types(&mut self, player: &mut Player) -> Result<Vec<Dtype>, Stop>;

    /// Makes one call, and returns the relevant outputs, or samples of them, on the host.
    fn call(&mut self, reference: &mut ReferencePlayer, nudge: Nudge) -> Result<Named, Stop>;
}

impl Noise {
    /// Calls a copy of a reference on moved inputs. A reference that cannot be copied, or that
    /// rejects moved inputs, contributes no runs.
    pub(super) fn measure(
        &mut self,
        reference: &mut ReferencePlayer,
        calls: &mut dyn NudgedCalls,
    ) -> Result<(), Stop> {
        let found = of_reference(reference, calls);
        let ended = reference.player.session.aside(false);
        ended.map_err(|fault| reference.player.stopped(true, fault))?;
        match found {
            Ok(found) => self.0.extend(found.0),
            // The reference is still usable; it only rejected the copy or the call.
            Err(Stop::Reference(_)) => {}
            Err(stop) => return Err(stop),
        }
        Ok(())
    }
}

fn of_reference(
    reference: &mut ReferencePlayer,
    calls: &mut dyn NudgedCalls,
) -> Result<Noise, Stop> {
    let mut noise = Noise::default();
    let types = calls.input_types(&mut reference.player)?;
    let mut planned = nudges(types.iter().copied(), None);
    let mut fewest: Option<usize> = None;
    let (mut done, mut is_quick, mut is_watched) = (0, true, false);
    while let Some(nudge) = planned.get(done).copied() {
        // A fresh copy makes each call, so that no call depends on an earlier one.
        let player = &mut reference.player;
        player.session.aside(true).map_err(|fault| player.stopped(true, fault))?;
        let began = Instant::now();
        let returned = calls.call(reference, nudge)?;
        is_quick &= began.elapsed() < QUICK;
        for (name, value) in returned {
            let Value::Tensor { dtype, bytes, .. } = value else { continue };
            if dtype.is_float() {
                let elements = bytes.len() / dtype.size();
                fewest = Some(fewest.map_or(elements, |fewest| fewest.min(elements)));
            }
            let output = noise.0.entry(name).or_default();
            output.runs.push((nudge, dtype, sample(&bytes, dtype)));
        }
        done += 1;
        if done < planned.len() || nudge.steps == 0 {
            continue;
        }
        // Outputs with few elements need more runs.
        let all = nudges(types.iter().copied(), fewest.filter(|_| is_quick));
        let more = all.into_iter().filter(|nudge| !planned.contains(nudge));
        planned.extend(more.collect::<Vec<_>>());
        if done == planned.len() && !is_watched && noise.may_round_inside() {
            is_watched = true;
            let shorter = shorter_type(reference, calls)?;
            noise.set_shorter_type(shorter);
            let across = shorter.and_then(nudge_across);
            let is_new = |nudge: &Nudge| planned.iter().all(|other| other.steps != nudge.steps);
            planned.extend(across.filter(is_new));
        }
        if done == planned.len() && noise.0.values().any(OutputNoise::is_doubtful) {
            let repeats = if is_quick { Nudge::REPEATS } else { 1 };
            planned.extend(std::iter::repeat_n(Nudge::NONE, repeats));
        }
    }
    Ok(noise)
}

/// Returns the shortest type in which a copy of a reference computes, judged by the types of its
/// operators' results. Compiled code is not observed.
fn shorter_type(
    reference: &mut ReferencePlayer,
    calls: &mut dyn NudgedCalls,
) -> Result<Option<Dtype>, Stop> {
    let player = &mut reference.player;
    player.session.watch_aside().map_err(|fault| player.stopped(true, fault))?;
    match calls.call(reference, Nudge::NONE) {
        Ok(_) => {}
        // Compiled code may reject being observed.
        Err(Stop::Reference(_)) => return Ok(None),
        Err(stop) => return Err(stop),
    }
    let player = &mut reference.player;
    let seen = player.session.shorter_types();
    let seen = seen.map_err(|fault| player.stopped(true, fault))?;
    Ok([Dtype::Bfloat16, Dtype::Float16].into_iter().find(|dtype| seen.contains(dtype)))
}

/// Calls copies of a reference on the CPU.
pub(super) struct HostNudges<'a> {
    pub inputs: &'a Inputs,
    pub seed: Option<u64>,
    pub generator: u64,
    /// Whether parameters are moved because no input can be.
    pub of_parameters: bool,
}

impl NudgedCalls for HostNudges<'_> {
    fn input_types(&mut self, player: &mut Player) -> Result<Vec<Dtype>, Stop> {
        let given = match self.inputs.tree() {
            Some(given) => types_of(&given, |layout| layout.dtype),
            None => {
                let shown = player.show(self.inputs, self.seed).map_err(Stop::Reference)?;
                let again = player.show(self.inputs, self.seed).map_err(Stop::Reference)?;
                // Inputs that differ at each generation would change the result more than a move by
                // units in the last place.
                if !shown.has_content_of(&again) {
                    return Ok(Vec::new());
                }
                types_of(&again.arguments, |tensor| tensor.dtype)
            }
        };
        let (types, of_parameters) = moved_types(given, player);
        self.of_parameters = of_parameters;
        Ok(types)
    }

    fn call(&mut self, reference: &mut ReferencePlayer, nudge: Nudge) -> Result<Named, Stop> {
        let player = &mut reference.player;
        let shown = player.show(self.inputs, self.seed).map_err(Stop::Reference)?;
        let tensors = match self.of_parameters {
            false => shown.tensors(),
            true => {
                let held = player.session.parameters();
                trained(&held.map_err(|fault| player.stopped(true, fault))?)
            }
        };
        let moved = inputs::nudge(&player.session, &tensors, nudge);
        moved.map_err(|fault| player.stopped(true, fault))?;
        let only = reference.outputs.clone();
        reference.played(self.inputs, &shown, self.generator, only.as_deref())
    }
}

/// Returns the element types to move: those of the inputs, or those of the parameters if no input
/// can be moved. The flag is true if they are those of the parameters.
pub(super) fn moved_types(inputs: Vec<Dtype>, player: &Player) -> (Vec<Dtype>, bool) {
    let parameters = trained(&player.loaded.parameters);
    let of_parameters = nudges(inputs.iter().copied(), None).is_empty() && !parameters.is_empty();
    let types = parameters.into_iter().map(|parameter| parameter.dtype);
    (if of_parameters { types.collect() } else { inputs }, of_parameters)
}

/// Returns the locations of the trained parameters.
pub(super) fn trained(parameters: &[ModuleParameter]) -> Vec<TensorAt> {
    let trained = parameters.iter().filter(|parameter| parameter.trained);
    trained.map(|parameter| parameter.tensor.clone()).collect()
}

fn types_of<T>(arguments: &TreeOf<T>, dtype: impl Fn(&T) -> Dtype) -> Vec<Dtype> {
    let leaves = arguments.leaves("").into_iter();
    let tensors = leaves.filter_map(|(_, leaf)| match leaf {
        TreeOf::Tensor(tensor) => Some(dtype(tensor)),
        _ => None,
    });
    tensors.collect()
}
