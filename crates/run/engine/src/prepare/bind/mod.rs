//! Binding of a contract's arguments to the actual parameters of the compiled kernel.
//!
//! A scalar is converted to its parameter's C type only if the value is preserved. Any mismatch is
//! an error that names the parameter. Nothing is guessed. If machine code does not contain a type,
//! `c_type` must give it, or the argument's kind and the parameter's size must determine it.

mod arguments;
mod ctype;
mod error;
mod mapped;
mod object;
mod pointer;
mod pointers;
mod scalar;
mod structure;

#[cfg(test)]
mod tests;

pub(crate) use arguments::{
    Passed, Tensors, bind_arguments, bind_passed, bind_passed_in, bind_passed_list, parameters_of,
    value_bytes,
};
pub(crate) use error::{BindError, type_name};
pub(crate) use mapped::bind_map;
