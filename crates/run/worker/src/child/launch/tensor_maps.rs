//! Arguments that are tensor maps: they hold the address of a buffer, and change when that moves.

use crate::child::device::executor::Executor;
use warpgauge_device::{Context, DeviceError, PreparedLaunch, TENSOR_MAP_BYTES, encode_tensor_map};
use warpgauge_model::{DeviceKind, FailureCode, TensorMap};

/// First compute capability with a copy engine that reads tensor maps.
const FIRST_MAJOR: u32 = 9;

/// An argument that is a tensor map.
pub(crate) struct BoundMap {
    context: Context,
    argument: usize,
    /// The buffer that it is of.
    pub buffer: usize,
    map: TensorMap,
    /// Where the buffer was when it was encoded.
    address: u64,
}

impl BoundMap {
    /// Encodes argument `argument`, which is of buffer `buffer` at `address`.
    ///
    /// # Errors
    /// The device has no such copy engine, or the driver refuses the map.
    pub(crate) fn new(
        executor: &Executor,
        (argument, buffer, address): (usize, usize, u64),
        map: &TensorMap,
    ) -> Result<(Self, [u8; TENSOR_MAP_BYTES]), DeviceError> {
        let device = &executor.device;
        let (major, minor) = device.target.compute_capability;
        // The emulator says itself that it has none, whatever it is asked to be.
        if major < FIRST_MAJOR && device.kind == DeviceKind::Cuda {
            let text = format!(
                "argument {argument} is for the copy engine of compute capability 9.0, and the \
                 device has {major}.{minor}"
            );
            let operation = "make a tensor descriptor";
            return Err(DeviceError::local(operation, FailureCode::NotSupported, text));
        }
        let context = executor.context.clone();
        let bytes = encode_tensor_map(&context, map, address)?;
        Ok((Self { context, argument, buffer, map: map.clone(), address }, bytes))
    }

    /// Encodes it anew, if its buffer has moved.
    pub(crate) fn follow(
        &mut self,
        address: u64,
        launch: &mut PreparedLaunch,
    ) -> Result<(), DeviceError> {
        if self.address != address {
            launch.set_argument(
                self.argument,
                &encode_tensor_map(&self.context, &self.map, address)?,
            );
            self.address = address;
        }
        Ok(())
    }
}
