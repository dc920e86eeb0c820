//! The support kernels of the workers, which write inputs and examine outputs.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::FutureExt;

use crate::error;
use warpgauge_compile::{CompileOptions, Compiler};
use warpgauge_contract::{KernelCode, KernelMetadata, KernelType};
use warpgauge_device::support;
use warpgauge_model::{Image, Target};
use warpgauge_worker::SupportSource;

/// Returns a function that compiles the support kernels for a worker's device.
pub(crate) fn support_source(compiler: &Arc<Compiler>) -> SupportSource {
    let compiler = Arc::clone(compiler);
    Arc::new(move |target: Target| {
        let compiler = Arc::clone(&compiler);
        async move {
            let kernel = KernelCode {
                source_code: Some(support::SOURCE.to_owned()),
                files: BTreeMap::new(),
                source_path: None,
                launches: Vec::new(),
                setup: Vec::new(),
                binary_b64: None,
                kernel_type: KernelType::Cuda,
                io: None,
                metadata: Some(KernelMetadata {
                    // Any of the kernels may be named here, because a worker looks them up by name.
                    kernel_name: Some("wg_write".to_owned()),
                    compiler_options: support::OPTIONS.iter().map(|&o| o.to_owned()).collect(),
                    ..KernelMetadata::default()
                }),
            };
            // The default options compile on behalf of the server.
            let options = CompileOptions::default();
            let artifact = compiler
                .compile(&kernel, &target, options)
                .await
                .map_err(|failure| error::chain(&failure))?;
            Ok(Image { bytes: Arc::clone(&artifact.image), format: artifact.format })
        }
        .boxed()
    })
}
