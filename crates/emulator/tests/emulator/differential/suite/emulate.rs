//! Runs forms on the emulator, without its driver interface.

use std::sync::Arc;
use std::time::{Duration, Instant};

use warpgauge_emulator::{
    AllocKind, LaunchConfig, LaunchOptions, Memory, Module as Loaded, launch,
};

use super::dump::Record;
use super::form::{FILL, Form, PARAM_DATA};
use super::module::{Module, kernel, text};

/// Runs all forms of a module; their records in its order.
pub fn run(forms: &[Form], module: &Module) -> Vec<(usize, Record)> {
    let memory = Arc::new(Memory::new());
    if let Ok(loaded) = Loaded::load(&module.text, &memory, 0) {
        return module.forms.iter().map(|i| (*i, one(&memory, &loaded, forms, *i))).collect();
    }
    // Only those that the emulator refuses are lost.
    let alone = |i: usize| match Loaded::load(&text(forms, &[i]), &memory, 0) {
        Ok(loaded) => one(&memory, &loaded, forms, i),
        Err(e) => Record::Refused(e.to_string()),
    };
    module.forms.iter().map(|i| (*i, alone(*i))).collect()
}

fn one(memory: &Arc<Memory>, module: &Loaded, forms: &[Form], i: usize) -> Record {
    execute(memory, module, &forms[i], &kernel(i)).unwrap_or_else(Record::Failed)
}

fn execute(
    memory: &Arc<Memory>,
    module: &Loaded,
    form: &Form,
    name: &str,
) -> Result<Record, String> {
    let function = module.function(name).ok_or("the module does not have the kernel")?;
    let upload = |bytes: &[u8]| {
        let va = memory.alloc(bytes.len() as u64, AllocKind::Device(0));
        let va = va.map_err(|e| e.to_string())?;
        memory.write(va, bytes).map_err(|e| e.to_string())?;
        Ok::<u64, String>(va)
    };
    let input = upload(&form.inputs())?;
    let mut out = vec![FILL; form.output_bytes()];
    let output = upload(&out)?;
    let params = [&input.to_le_bytes()[..], &output.to_le_bytes(), &PARAM_DATA].concat();
    let config = LaunchConfig {
        grid: [form.grid, 1, 1],
        block: form.block,
        dynamic_shared_bytes: 0,
        cooperative: false,
    };
    let options = LaunchOptions {
        deadline: Some(Instant::now() + Duration::from_secs(60)),
        cancel: None,
        printf: &|_| {},
        sm_count: 16,
        device: 0,
        sanitize: false,
        count: false,
        by_instruction: false,
        order: 0,
    };
    launch(&function, memory, &config, &params, &options).map_err(|e| e.to_string())?;
    memory.read(output, &mut out).map_err(|e| e.to_string())?;
    for va in [input, output] {
        memory.free(va).map_err(|e| e.to_string())?;
    }
    Ok(Record::Ran(out))
}
