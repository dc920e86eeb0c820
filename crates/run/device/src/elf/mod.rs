//! Shared objects as files: the SONAME, by which the dynamic loader finds them.

mod soname;

pub use soname::{SonameError, shorten_soname};
