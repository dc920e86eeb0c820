//! Shared objects as files: the name that the dynamic loader knows one by.

#![forbid(unsafe_code)]

mod soname;

pub use soname::{SonameError, shorten_soname};
