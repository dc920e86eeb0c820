//! Parses PTX text to a syntax tree.
//!
//! The parser knows the shape of PTX: directives, declarations, labels, and instructions with guard,
//! dotted modifiers and operands. The meaning of instructions is the task of lowering (`ir`). The parser
//! never recurses deeper than [`parse::MAX_DEPTH`], and keeps nothing larger than the text.

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
