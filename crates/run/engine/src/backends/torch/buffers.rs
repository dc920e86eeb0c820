//! Checks buffers that the reference's first call changes, such as running means. A candidate with
//! the same buffers must change them in the same way.

use super::MOST_BYTES;
use super::fault::Stop;
use super::player::Player;
use super::players::Players;
use warpgauge_tensor::Dtype;
use warpgauge_torch::ModuleParameter;
use warpgauge_validate::{Reason, ReasonCode, makes_change};

/// One buffer that candidate and reference have in common.
struct SharedBuffer {
    name: String,
    dtype: Dtype,
    shape: Vec<u64>,
    /// Elements of the buffer before any call.
    before: Vec<u8>,
}

/// The buffers that candidate and reference have in common.
#[derive(Default)]
pub(super) struct SharedBuffers(Vec<SharedBuffer>);

/// Reads the elements of a buffer.
pub(super) type ReadBuffer<'a> = dyn FnMut(&ModuleParameter) -> Result<Vec<u8>, Stop> + 'a;

/// Reads the elements of a buffer of the given player.
pub(super) type ReadOfPlayer<'a> =
    dyn FnMut(&Player, &ModuleParameter) -> Result<Vec<u8>, Stop> + 'a;

impl SharedBuffers {
    /// Finds the buffers that the candidate shares with its only reference: those with the same
    /// name, type and shape. It includes at most [`MOST_BYTES`]. The caller must call it before any
    /// call of candidate or reference. `read` reads one of the reference's buffers.
    pub(super) fn of(players: &Players, read: &mut ReadOfPlayer<'_>) -> Result<Self, Stop> {
        let [reference] = &players.expectations.references[..] else { return Ok(Self::default()) };
        if reference.outputs.is_some() {
            return Ok(Self::default());
        }
        let player = &reference.player;
        let (mut shared, mut left) = (Vec::new(), MOST_BYTES);
        for buffer in player.loaded.parameters.iter().filter(|one| !one.trained) {
            let (name, dtype, shape) = (&buffer.name, buffer.tensor.dtype, &buffer.tensor.shape);
            let is_same = |own: &ModuleParameter| {
                !own.trained
                    && (&own.name, own.tensor.dtype, &own.tensor.shape) == (name, dtype, shape)
            };
            let fits = buffer.tensor.span(left).is_ok();
            if fits && players.candidate.loaded.parameters.iter().any(is_same) {
                let before = read(player, buffer)?;
                left -= before.len() as u64;
                shared.push(SharedBuffer {
                    name: name.clone(),
                    dtype,
                    shape: shape.clone(),
                    before,
                });
            }
        }
        Ok(Self(shared))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns a reason if the candidate did not change a buffer as the reference did. Both must
    /// have made the same number of calls. The arguments contain, for each of the two, its current
    /// parameters and buffers, and a function that reads their elements.
    pub(super) fn verdict(
        &self,
        (theirs, read_theirs): (&[ModuleParameter], &mut ReadBuffer<'_>),
        (own, read_own): (&[ModuleParameter], &mut ReadBuffer<'_>),
    ) -> Result<Option<Reason>, Stop> {
        for SharedBuffer { name, dtype, shape, before } in &self.0 {
            let of_side = |held: &[ModuleParameter]| held.iter().position(|one| one.name == *name);
            let (Some(wanted), Some(own_index)) = (of_side(theirs), of_side(own)) else { continue };
            let wanted = read_theirs(&theirs[wanted])?;
            if wanted == *before {
                continue;
            }
            let found = &own[own_index];
            let is_alike = (found.tensor.dtype, &found.tensor.shape) == (*dtype, shape);
            if !is_alike || !makes_change(*dtype, before, &wanted, &read_own(found)?) {
                let message = format!(
                    "the reference's call changes the buffer `{name}`, but the candidate's call does not change its \
                     buffer in the same way; update it as the reference does, or leave it out of the module"
                );
                return Ok(Some(Reason::new(ReasonCode::OutputMismatch, message)));
            }
        }
        Ok(None)
    }
}
