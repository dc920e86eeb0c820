//! Loads PTX files and lists their kernels: `load FILE.ptx...`

use std::process::ExitCode;
use std::sync::Arc;

use warpgauge_emulator::{Memory, Module};

fn main() -> ExitCode {
    let memory = Arc::new(Memory::new());
    let mut code = ExitCode::SUCCESS;
    for path in std::env::args().skip(1) {
        let result = std::fs::read_to_string(&path).map_err(|e| e.to_string());
        let module =
            result.and_then(|text| Module::load(&text, &memory, 0).map_err(|e| e.to_string()));
        match module {
            Ok(module) => {
                for f in module.functions().filter_map(|n| module.function(n)) {
                    println!(
                        "{path}: {} (sm_{}, {} registers, {} bytes shared, {} local)",
                        f.name(),
                        f.target_sm(),
                        f.registers(),
                        f.static_shared_bytes(),
                        f.local_bytes()
                    );
                }
            }
            Err(e) => {
                eprintln!("{path}: {e}");
                code = ExitCode::FAILURE;
            }
        }
    }
    code
}
