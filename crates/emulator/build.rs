//! Gives the shared object the SONAME of the CUDA driver library.
//!
//! glibc satisfies a later `dlopen("libcuda.so.1")` from an already open object with that SONAME,
//! which is how a worker puts the emulator in the driver's place without `LD_LIBRARY_PATH`.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcuda.so.1");
    // Streams have threads that run the library's code: it stays loaded once it is.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rerun-if-changed=build.rs");
}
