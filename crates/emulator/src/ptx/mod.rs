//! Parses PTX text to a syntax tree.
//!
//! The parser handles the structure of PTX: directives, declarations, labels, and instructions with
//! guard, dotted modifiers and operands. Lowering (`ir`) determines the meaning of instructions.
//! The recursion depth of the parser is at most [`parse::MAX_DEPTH`], and its memory is bounded by
//! the length of the text.

mod ast;
mod cursor;
mod decl;
mod error;
pub(crate) mod isa;
mod lex;
mod operand;
#[cfg(test)]
mod outline;
mod parse;
mod types;

pub(crate) use ast::{Func, FuncKind, InitValue, Instr, Operand, Stmt, StmtKind, Unit, Var};
pub use error::LoadError;
pub(crate) use parse::parse;
pub(crate) use types::{Space, Type};
