//! Binding: a contract's arguments to the parameters the compiled kernel really has.
//!
//! A scalar is converted to its parameter's C type only where the value survives; whatever does not
//! fit is an error that names the parameter. Nothing is guessed: where machine code does not tell a
//! type, the argument's declared kind and the parameter's size must settle it, or `c_type` must.

mod arguments;
mod ctype;
mod error;
mod mapped;
mod pointer;
mod scalar;

#[cfg(test)]
mod tests;

pub(crate) use arguments::{bind_arguments, bind_passed, value_bytes};
pub(crate) use error::{BindError, type_name};
pub(crate) use mapped::bind_map;
