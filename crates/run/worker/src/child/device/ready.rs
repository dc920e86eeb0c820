//! Modules of the current job that are loaded ahead.

use super::executor::Executor;
use crate::child::failure::{Failed, JobResult};
use crate::child::memory::residue::Residue;
use crate::child::memory::variables::Variables;
use crate::protocol::{Blame, KernelLaunch, Launches};
use warpgauge_device::Module;
use warpgauge_model::{Image, ImageFormat};

/// A module that is loaded, but not yet bound to buffers.
pub(crate) struct Ready {
    image: Image,
    blame: Blame,
    pub module: Module,
    pub variables: Variables,
}

impl Ready {
    pub(crate) fn load(
        executor: &Executor,
        launch: &KernelLaunch,
        residue: &mut Residue,
        blame: Blame,
    ) -> JobResult<Self> {
        let module = Module::load(&executor.context, &launch.image);
        let module = module.map_err(|error| Failed::device(error, blame))?;
        let Executor { context, emulator, .. } = executor;
        let variables = Variables::of(context, emulator.as_ref(), &module, &launch.image);
        residue.note_module(module.clone(), variables.clone());
        Ok(Self { image: launch.image.clone(), blame, module, variables })
    }
}

impl Executor {
    /// Loads the modules of a program before the buffers exist. If a module fails, this stops
    /// silently: loading the program later tries again and reports who is at fault.
    pub(crate) fn load_ahead(&mut self, launches: &Launches, residue: &mut Residue, blame: Blame) {
        let mut loaded: Vec<Ready> = Vec::new();
        for launch in launches.iter() {
            let is_library = launch.image.format == ImageFormat::Library;
            if is_library || loaded.iter().any(|ready| ready.image == launch.image) {
                continue;
            }
            match Ready::load(self, launch, residue, blame) {
                Ok(ready) => loaded.push(ready),
                Err(_) => break,
            }
        }
        self.ready.get_mut().append(&mut loaded);
    }

    /// Returns the module of a launch if it was loaded ahead and is not in use.
    pub(crate) fn take_ready(&self, launch: &KernelLaunch, blame: Blame) -> Option<Ready> {
        let mut all = self.ready.borrow_mut();
        let fits = |ready: &Ready| ready.blame == blame && ready.image == launch.image;
        let place = all.iter().position(fits)?;
        Some(all.swap_remove(place))
    }
}
