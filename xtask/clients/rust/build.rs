//! Generates the client from what `warpgauge openapi --client` printed into the file that
//! `WARPGAUGE_CLIENT_SPEC` names.

use std::error::Error;
use std::path::Path;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let spec = env::var("WARPGAUGE_CLIENT_SPEC")
        .map_err(|_| "WARPGAUGE_CLIENT_SPEC names no file; `cargo xtask clients rust` sets it")?;
    println!("cargo:rerun-if-env-changed=WARPGAUGE_CLIENT_SPEC");
    println!("cargo:rerun-if-changed={spec}");
    let document = serde_json::from_slice(&fs::read(&spec)?)?;
    let code = progenitor_impl::Generator::default().generate_tokens(&document)?;
    let out = env::var_os("OUT_DIR").ok_or("cargo says where the output goes")?;
    fs::write(Path::new(&out).join("client.rs"), code.to_string())?;
    Ok(())
}
