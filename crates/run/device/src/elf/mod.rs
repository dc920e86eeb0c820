//! Reads and changes shared objects as files, in particular the SONAME, under which the dynamic
//! loader finds them.

mod soname;

pub use soname::{SonameError, shorten_soname};
