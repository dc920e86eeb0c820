//! The driver interface of the emulator, used as the product uses it: the shared library is
//! opened by its path, and everything else goes through cudarc, which finds it by its SONAME.

mod contexts;
mod graphs;
mod ipc;
mod kernels;
mod memory;
mod modules;
mod ptx;
mod setup;
mod streams;
