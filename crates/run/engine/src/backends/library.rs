//! Backend for functions of NVIDIA's libraries, which replace kernels.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::device::DeviceBackend;
use crate::backend::{Contest, Evaluator, KernelBackend, Opened, Purpose};
use crate::error::ExecError;
use crate::host::Host;
use crate::prepare::libraries;
use crate::progress::ActiveOrder;
use warpgauge_contract::{Checked, EvaluateRequest};
use warpgauge_report::{EvaluateResponse, ToolReport};

/// Calls library functions in workers, through the backend for device code.
pub(crate) struct LibraryBackend {
    device: Arc<DeviceBackend>,
}

impl LibraryBackend {
    pub(crate) fn new(device: &Arc<DeviceBackend>) -> Self {
        Self { device: Arc::clone(device) }
    }
}

impl KernelBackend for LibraryBackend {
    fn tools(&self, host: &Host) -> Vec<ToolReport> {
        let devices = host.fleet.devices().into_iter().map(|status| status.info);
        let files = &host.compiler.toolchain().libraries;
        libraries::reports(files, &devices.collect::<Vec<_>>()).into()
    }

    fn evaluate<'a>(
        &'a self,
        evaluator: &'a dyn Evaluator,
        job: &'a ActiveOrder<'_>,
        request: Checked<EvaluateRequest>,
        purpose: Purpose,
    ) -> BoxFuture<'a, Result<EvaluateResponse, ExecError>> {
        self.device.evaluate(evaluator, job, request, purpose)
    }

    fn compare<'a>(&'a self, job: &'a ActiveOrder<'a>, contest: Contest) -> Opened<'a> {
        self.device.compare(job, contest)
    }
}
