//! The process boundary: what a device worker is asked, what it answers, and who watches it.

pub mod protocol;
