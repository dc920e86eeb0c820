//! Shared objects as files: the SONAME, under which the dynamic loader finds them.

mod soname;

pub use soname::{SonameError, shorten_soname};
