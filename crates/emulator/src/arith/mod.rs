//! A GPU's number formats, roundings, NaNs, approximations and sums of products.
//!
//! These are pure functions of bits. They do not depend on instructions or registers.

pub(crate) mod approx;
pub(crate) mod dot;
pub(crate) mod nan;
pub(crate) mod soft;
