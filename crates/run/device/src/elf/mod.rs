//! Shared objects as files: the name that the dynamic loader knows one by.

mod soname;

pub use soname::{SonameError, shorten_soname};
