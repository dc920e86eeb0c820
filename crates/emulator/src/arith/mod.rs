//! Numbers as a GPU computes with them: formats, roundings, NaNs, approximations, sums of products.
//!
//! Pure functions of bits, which know neither instructions nor registers.

pub(crate) mod approx;
pub(crate) mod dot;
pub(crate) mod nan;
pub(crate) mod soft;
