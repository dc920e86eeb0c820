//! Matrix instructions.

use super::FaultKind;
use super::block::Cta;
use super::fault::fault;
use super::grid::Worker;
use super::step::{At, Step};
use super::warp::Warp;
use crate::ir::Inst;

pub(super) fn run(
    _worker: &mut Worker<'_>,
    _cta: &mut Cta,
    _warp: &mut Warp,
    _at: &At,
    inst: &Inst,
) -> Step {
    Err(fault(
        FaultKind::IllegalInstruction,
        format!("{:?} cannot be executed", inst.op),
    ))
}
