//! Registers, and arithmetic on all lanes of a warp.

mod alu;
mod bits;
pub(super) mod cvt;
pub(super) mod float;
pub(super) mod half;
mod int;
pub(super) mod product;
mod regs;

pub(super) use alu::{Alu, Span, select};
pub(super) use regs::{ALL, Regs};
