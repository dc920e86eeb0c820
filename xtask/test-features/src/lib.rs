//! Nothing but dependencies: Cargo.toml says what for.

#![forbid(unsafe_code)]
