//! Generates the client from `openapi/warpgauge-client.json`.

use std::error::Error;
use std::path::Path;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let home = env::var_os("CARGO_MANIFEST_DIR").ok_or("cargo says where the manifest is")?;
    let spec = Path::new(&home).join("../../../openapi/warpgauge-client.json");
    println!("cargo:rerun-if-changed={}", spec.display());
    let document = serde_json::from_slice(&fs::read(&spec)?)?;
    let code = progenitor_impl::Generator::default().generate_tokens(&document)?;
    let out = env::var_os("OUT_DIR").ok_or("cargo says where the output goes")?;
    fs::write(Path::new(&out).join("client.rs"), code.to_string())?;
    Ok(())
}
