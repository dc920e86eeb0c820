//! The backends of this machine, by family of kernels.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};

use crate::backend::{Evaluator, KernelBackend, Purpose};
use crate::backends::device::DeviceBackend;
#[cfg(feature = "example-kernel")]
use crate::backends::example::ExampleBackend;
use crate::backends::library::LibraryBackend;
use crate::backends::program::ProgramBackend;
use crate::backends::torch::TorchBackend;
use crate::error::{self, ExecError};
use crate::host::Host;
use crate::progress::ActiveOrder;
use warpgauge_contract::{Checked, EvaluateRequest, KernelFamily};
use warpgauge_report::EvaluateResponse;

/// Selects the backend that evaluates a kernel, by the kernel's family.
pub(crate) struct Engine {
    pub(crate) host: Arc<Host>,
    pub(crate) device: Arc<DeviceBackend>,
    pub(crate) torch: Arc<TorchBackend>,
    library: LibraryBackend,
    program: ProgramBackend,
    #[cfg(feature = "example-kernel")]
    example: ExampleBackend,
}

impl Engine {
    pub(crate) fn new(host: Arc<Host>, torch: Arc<TorchBackend>) -> Self {
        let device = Arc::new(DeviceBackend::new(&host, &torch));
        Self {
            library: LibraryBackend::new(&device),
            device,
            #[cfg(feature = "example-kernel")]
            example: ExampleBackend::new(&host),
            program: ProgramBackend::new(&host),
            torch,
            host,
        }
    }

    /// Returns the backend for kernels of a family.
    pub(crate) fn backend(&self, family: KernelFamily) -> &dyn KernelBackend {
        match family {
            KernelFamily::Device => &*self.device,
            KernelFamily::Library => &self.library,
            KernelFamily::Torch => &*self.torch,
            KernelFamily::Program => &self.program,
            #[cfg(feature = "example-kernel")]
            KernelFamily::Example => &self.example,
        }
    }
}

impl Evaluator for Engine {
    fn evaluate<'a>(
        &'a self,
        job: &'a ActiveOrder<'_>,
        request: EvaluateRequest,
        purpose: Purpose,
    ) -> BoxFuture<'a, Result<EvaluateResponse, ExecError>> {
        match Checked::new(request, &self.host.limits) {
            Ok(request) => {
                self.backend(request.kernel.family()).evaluate(self, job, request, purpose)
            }
            Err(mistakes) => ready(Err(error::invalid(mistakes))).boxed(),
        }
    }
}
