//! The forms, by subject.

mod atomic;
mod bits;
mod compare;
mod control;
mod convert;
mod float;
mod half;
mod integer;
mod matrix;
mod memory;
mod special;
mod warp;

use super::form::Form;
use super::set::Set;

/// Every form. Their order is that of their kernels, and of the records of a dump.
pub fn all() -> Vec<Form> {
    let mut set = Set::default();
    integer::add(&mut set);
    bits::add(&mut set);
    compare::add(&mut set);
    float::add(&mut set);
    half::add(&mut set);
    convert::add(&mut set);
    memory::add(&mut set);
    atomic::add(&mut set);
    warp::add(&mut set);
    matrix::add(&mut set);
    control::add(&mut set);
    special::add(&mut set);
    set.forms
}
