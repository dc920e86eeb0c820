//! The `warpgauge` program.

fn main() {}
