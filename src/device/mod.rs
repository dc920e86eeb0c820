//! The only user of cudarc and the only `unsafe` code of the crate: driver and NVRTC.
