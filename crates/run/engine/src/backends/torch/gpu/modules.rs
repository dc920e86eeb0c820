//! Parameters and buffers of both sides' modules on the device.

use super::Gpu;
use super::stage::{Side, Stage};
use crate::backends::torch::fault::{Failed, Stop};
use crate::backends::torch::player::Player;
use crate::backends::torch::players::Players;
use crate::backends::torch::verification::ParameterHashes;
use warpgauge_device::locked::{ByteRange, Locks};
use warpgauge_model::gate_page::MOST_RANGES;
use warpgauge_report::{TorchMaking, TorchParameters};
use warpgauge_torch::{RunnerFault, TensorAt};

impl Stage<'_> {
    /// Copies the first reference's parameters and buffers to those of the candidate, on the device
    /// if both are contiguous.
    pub(super) fn share_parameters(
        &mut self,
        players: &Players,
    ) -> Result<Option<TorchParameters>, Stop> {
        let Self { gpu, candidate, references, .. } = self;
        let told = players.share_parameters(&mut |(reference, theirs), (own_player, own)| {
            let of_reference = &mut references[0].blocks;
            let is_open = of_reference.open(gpu, theirs);
            is_open.map_err(|what| reference.stopped(true, RunnerFault::Forged(what)))?;
            let is_open = candidate.blocks.open(gpu, own);
            is_open.map_err(|what| own_player.stopped(false, RunnerFault::Forged(what)))?;
            let their_fault =
                |error: &_| reference.stopped(true, reference.session.fault_of(error));
            let own_fault =
                |error: &_| own_player.stopped(false, own_player.session.fault_of(error));
            let from = of_reference.range(theirs).map_err(|error| their_fault(&error))?;
            let to = candidate.blocks.range(own).map_err(|error| own_fault(&error))?;
            if let (Some((source, from, bytes)), Some((target, to, room))) = (from, to)
                && theirs.is_contiguous()
                && own.is_contiguous()
                && bytes == room
            {
                let copied = target.copy_range_from_device(to, source, from, bytes, &gpu.stream);
                return copied.map_err(|error| Stop::Broken(error.to_string()));
            }
            let elements = of_reference.read(gpu, &reference.session, theirs);
            let elements = elements.map_err(|error| their_fault(&error))?;
            if own.block.is_none() {
                return own_player.overwrite(own, &elements).map_err(Stop::Candidate);
            }
            let written = candidate.blocks.overwrite(gpu, own, &elements);
            written.map_err(|error| own_fault(&error))
        })?;
        let synchronized = gpu.stream.synchronize();
        synchronized.map_err(|error| Stop::Broken(error.to_string()))?;
        let made = match players.candidate.loaded.on_device {
            true => TorchMaking::OnDevice,
            false => TorchMaking::AsWritten,
        };
        Ok(told.map(|told| TorchParameters { made: Some(made), ..told }))
    }

    /// Hashes the candidate's trained parameters.
    pub(super) fn candidate_parameters(
        &mut self,
        player: &mut Player,
    ) -> Result<Box<ParameterHashes>, Stop> {
        hashes(self.gpu, (&mut self.candidate, player, false), &mut self.locks)
    }

    /// Hashes the first reference's trained parameters.
    pub(super) fn reference_parameters(
        &mut self,
        player: &mut Player,
    ) -> Result<Box<ParameterHashes>, Stop> {
        hashes(self.gpu, (&mut self.references[0], player, true), &mut self.locks)
    }
}

/// Hashes a side's trained parameters, sorted by name. Buffers may change in a call and are
/// omitted.
fn hashes(
    gpu: &Gpu,
    (side, player, of_reference): (&mut Side, &mut Player, bool),
    locks: &mut Locks<'_>,
) -> Result<Box<ParameterHashes>, Stop> {
    let now = player.session.parameters();
    let now = now.map_err(|fault| player.stopped(of_reference, fault))?;
    let (mut hashed, mut ranges) = (Vec::new(), Vec::new());
    for parameter in now.iter().filter(|parameter| parameter.trained) {
        match whole_range(gpu, side, &parameter.tensor) {
            Ok(Some(range)) => ranges.push((parameter.name.clone(), range)),
            Ok(None) => {
                let elements = side.held(gpu, player, (parameter, of_reference))?;
                hashed.push((parameter.name.clone(), blake3::hash(&elements)));
            }
            Err(what) => return Err(player.stopped(of_reference, RunnerFault::Forged(what))),
        }
    }
    for some in ranges.chunks(MOST_RANGES) {
        let all: Vec<ByteRange> = some.iter().map(|(_, range)| *range).collect();
        let digests = locks.digests(&all).map_err(|error| Stop::Broken(error.to_string()))?;
        let named = some.iter().zip(digests);
        hashed.extend(named.map(|((name, _), digest)| (name.clone(), digest.into())));
    }
    if hashed.len() != now.iter().filter(|parameter| parameter.trained).count() {
        let failed = Failed::unusable("a parameter could not be hashed".to_owned());
        return Err(if of_reference { Stop::Reference(failed) } else { Stop::Candidate(failed) });
    }
    hashed.sort_by(|(name, _), (other, _)| name.cmp(other));
    Ok(hashed.into())
}

/// Returns the address range of a tensor, if it is contiguous on the device.
fn whole_range(gpu: &Gpu, side: &mut Side, tensor: &TensorAt) -> Result<Option<ByteRange>, String> {
    side.blocks.open(gpu, tensor)?;
    let range = side.blocks.range(tensor).map_err(|error| error.to_string())?;
    let whole = range.filter(|_| tensor.is_contiguous());
    Ok(whole.map(|(block, at, bytes)| (block.address() + at as u64, bytes as u64)))
}
