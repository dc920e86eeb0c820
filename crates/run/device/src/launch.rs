//! Launches of kernels: shape, attributes and parameters. The main types are [`LaunchShape`] and
//! [`Params`].

use std::ffi::{c_int, c_uint, c_void};

use cudarc::driver::sys::{
    CUlaunchAttribute, CUlaunchAttributeID, CUlaunchAttributeValue,
    CUlaunchAttributeValue_union__bindgen_ty_1 as ClusterShape, CUlaunchConfig,
};

use super::stream::Stream;
use super::{DeviceError, KernelFunction};

use warpgauge_model::FailureCode;

/// Maximum number of blocks of a cluster that every device with clusters supports.
const PORTABLE_CLUSTER_BLOCKS: u64 = 8;

/// Shape and attributes of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaunchShape {
    /// Number of blocks in each dimension.
    pub grid: [u32; 3],
    /// Number of threads per block in each dimension.
    pub block: [u32; 3],
    /// Dynamic shared memory per block, bytes.
    pub shared_bytes: u32,
    /// Number of blocks per cluster in each dimension. `None` for a launch without clusters.
    pub cluster: Option<[u32; 3]>,
    /// Whether all blocks must be resident at the same time.
    pub cooperative: bool,
}

impl LaunchShape {
    /// Returns a one-dimensional launch without special attributes.
    pub fn linear(blocks: u32, threads: u32) -> Self {
        Self {
            grid: [blocks, 1, 1],
            block: [threads, 1, 1],
            shared_bytes: 0,
            cluster: None,
            cooperative: false,
        }
    }

    /// Returns the number of threads per block.
    pub fn block_threads(&self) -> u32 {
        self.block.iter().fold(1u32, |product, &extent| product.saturating_mul(extent))
    }
}

/// Kernel arguments, each as the bytes of its parameter.
#[derive(Debug, Clone, Default)]
pub struct Params {
    /// Slots of 16 bytes, so that every argument is aligned for any parameter type.
    storage: Vec<u128>,
    /// Index of the first slot of each argument.
    starts: Vec<usize>,
}

impl Params {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn push(&mut self, bytes: &[u8]) -> &mut Self {
        self.starts.push(self.storage.len());
        for chunk in bytes.chunks(16) {
            let mut slot = [0; 16];
            slot[..chunk.len()].copy_from_slice(chunk);
            self.storage.push(u128::from_ne_bytes(slot));
        }
        // An argument without bytes still needs a slot.
        if bytes.is_empty() {
            self.storage.push(0);
        }
        self
    }

    /// Appends a device address to the arguments.
    pub fn push_address(&mut self, address: u64) -> &mut Self {
        self.push(&address.to_ne_bytes())
    }

    /// Replaces the argument with this index, which must be an address.
    fn set_address(&mut self, index: usize, address: u64) {
        self.set(index, &address.to_ne_bytes());
    }

    /// Replaces the argument with this index by one of the same size.
    fn set(&mut self, index: usize, bytes: &[u8]) {
        let Some(&start) = self.starts.get(index) else { return };
        let end = self.starts.get(index + 1).copied().unwrap_or(self.storage.len());
        for (to, chunk) in self.storage[start..end].iter_mut().zip(bytes.chunks(16)) {
            let mut slot = [0; 16];
            slot[..chunk.len()].copy_from_slice(chunk);
            *to = u128::from_ne_bytes(slot);
        }
    }

    fn pointers(&self) -> Vec<*mut c_void> {
        let slot = |&start: &usize| (&raw const self.storage[start]).cast_mut().cast();
        self.starts.iter().map(slot).collect()
    }
}

/// A kernel with its arguments and shape, ready for repeated launches.
pub struct PreparedLaunch {
    function: KernelFunction,
    shape: LaunchShape,
    pointers: Vec<*mut c_void>,
    // The pointers refer to these arguments, to which nothing is added any more.
    params: Params,
    attributes: Vec<CUlaunchAttribute>,
    operation: String,
}

impl PreparedLaunch {
    /// Prepares a launch. Opts in to large shared memory and large clusters if required.
    ///
    /// The arguments must fit the kernel's parameters, because the driver reads as many bytes of
    /// each as the kernel declares. The caller of this layer has checked them against the compiled
    /// kernel, and each has at least 16 bytes of storage.
    ///
    /// # Errors
    /// Fails if the device does not support such a launch.
    pub fn new(
        function: KernelFunction,
        shape: LaunchShape,
        params: Params,
    ) -> Result<Self, DeviceError> {
        function.allow_shared(shape.shared_bytes)?;
        let mut attributes = Vec::new();
        if let Some([x, y, z]) = shape.cluster {
            let blocks = [x, y, z].iter().map(|&extent| u64::from(extent)).product::<u64>();
            if blocks > PORTABLE_CLUSTER_BLOCKS {
                function.allow_large_clusters()?;
            }
            attributes.push(attribute(
                CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                CUlaunchAttributeValue { clusterDim: ClusterShape { x, y, z } },
            ));
        }
        if shape.cooperative {
            attributes.push(attribute(
                CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
                CUlaunchAttributeValue { cooperative: 1 },
            ));
        }
        let operation = format!("launch {}", function.symbol());
        let pointers = params.pointers();
        Ok(Self { function, shape, pointers, params, attributes, operation })
    }

    /// Replaces the argument with this index, a device address, for later launches.
    pub fn set_address(&mut self, index: usize, address: u64) {
        self.params.set_address(index, address);
    }

    /// Replaces the argument with this index by another of the same size, for later launches.
    pub fn set_argument(&mut self, index: usize, bytes: &[u8]) {
        self.params.set(index, bytes);
    }

    /// Queues one launch.
    ///
    /// # Errors
    /// Fails if the driver rejects the shape, or an earlier fault has made the context unusable.
    pub fn launch(&mut self, stream: &Stream) -> Result<(), DeviceError> {
        let api = self.function.context().api();
        let result = if self.attributes.is_empty() {
            self.launch_plain(stream)
        } else {
            self.launch_with_attributes(stream)?
        };
        api.check(result, &self.operation)
    }

    fn launch_plain(&mut self, stream: &Stream) -> c_int {
        let LaunchShape { grid, block, shared_bytes, .. } = self.shape;
        // SAFETY: function and stream are alive; each pointer refers to at least 16 bytes that
        // outlive the call, which copies the arguments. The kernel can then access device memory
        // and page-locked memory, both of which belong to this process alone.
        unsafe {
            (self.function.context().api().launch)(
                self.function.handle,
                grid[0],
                grid[1],
                grid[2],
                block[0],
                block[1],
                block[2],
                shared_bytes,
                stream.handle,
                self.pointers.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        }
    }

    fn launch_with_attributes(&mut self, stream: &Stream) -> Result<c_int, DeviceError> {
        let Some(launch) = self.function.context().api().launch_ex else {
            let text = "this driver has no cuLaunchKernelEx: clusters and cooperative launches \
                        need CUDA 11.8 or later";
            return Err(DeviceError::local(
                self.operation.clone(),
                FailureCode::NotSupported,
                text,
            ));
        };
        let LaunchShape { grid, block, shared_bytes, .. } = self.shape;
        let config = CUlaunchConfig {
            gridDimX: grid[0],
            gridDimY: grid[1],
            gridDimZ: grid[2],
            blockDimX: block[0],
            blockDimY: block[1],
            blockDimZ: block[2],
            sharedMemBytes: shared_bytes,
            hStream: stream.handle,
            attrs: self.attributes.as_mut_ptr(),
            numAttrs: self.attributes.len() as c_uint,
        };
        // SAFETY: as for `launch_plain`; the attributes outlive the call too.
        Ok(unsafe {
            launch(&config, self.function.handle, self.pointers.as_mut_ptr(), std::ptr::null_mut())
        })
    }
}

fn attribute(id: CUlaunchAttributeID, value: CUlaunchAttributeValue) -> CUlaunchAttribute {
    CUlaunchAttribute { id, pad: [0; 4], value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_keep_their_bytes_and_are_aligned() {
        let mut params = Params::new();
        params.push(&[1, 2, 3]).push_address(0x1122_3344_5566_7788).push(&[]).push(&[9; 40]);
        let pointers = params.pointers();
        assert_eq!(pointers.len(), 4);
        assert!(pointers.iter().all(|pointer| pointer.addr() % 16 == 0));
        assert_eq!(params.storage[0].to_ne_bytes()[..3], [1, 2, 3]);
        assert_eq!(params.storage[1] as u64, 0x1122_3344_5566_7788);
        assert_eq!(params.starts, [0, 1, 2, 3]);
        params.set_address(1, 7);
        assert_eq!(params.pointers(), pointers, "arguments stay where they are");
        assert_eq!(params.storage[1], 7);
        // Surplus bytes are cut off at the end of the argument.
        params.set(3, &[5; 100]);
        params.set(0, &[4; 100]);
        assert_eq!(params.pointers(), pointers);
        let bytes = |slot: usize| params.storage[slot].to_ne_bytes();
        assert_eq!((bytes(0), params.storage[1]), ([4; 16], 7));
        assert_eq!([bytes(3), bytes(4), bytes(5)], [[5; 16]; 3]);
    }
}
