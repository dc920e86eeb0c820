//! The kernels of the workers themselves, which write inputs and look at outputs.

use std::sync::Arc;

use futures_util::FutureExt;

use crate::error;
use warpgauge_compile::{CompileOptions, Compiler};
use warpgauge_contract::{KernelCode, KernelMetadata, KernelType};
use warpgauge_device::support;
use warpgauge_model::{Image, Target};
use warpgauge_worker::SupportSource;

/// Compiles them for the device that a worker holds.
pub(crate) fn support_source(compiler: &Arc<Compiler>) -> SupportSource {
    let compiler = Arc::clone(compiler);
    Arc::new(move |target: Target| {
        let compiler = Arc::clone(&compiler);
        async move {
            let kernel = KernelCode {
                source_code: Some(support::SOURCE.to_owned()),
                binary_b64: None,
                kernel_type: KernelType::Cuda,
                io: None,
                metadata: Some(KernelMetadata {
                    // Any will do: a worker looks its kernels up by name.
                    kernel_name: Some("wg_write".to_owned()),
                    compiler_options: support::OPTIONS.iter().map(|&o| o.to_owned()).collect(),
                    ..KernelMetadata::default()
                }),
            };
            // In a turn of the server's.
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
