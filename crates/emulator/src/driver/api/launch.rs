//! Exported launch functions.

use std::ffi::c_uint;

use crate::driver::c::abi::{Handle, LaunchAttribute, LaunchConfigC};
use crate::driver::c::code::{Code, Res};
use crate::driver::c::entry::{In, api};
use crate::driver::state::launch::{Arguments, KernelTask, lacks};
use crate::driver::state::stream::stream;
use crate::driver::state::task::Task;
use crate::exec::LaunchConfig;

fn start(function_handle: Handle, config: LaunchConfig, on: Handle, arguments: Arguments) -> Res {
    let stream = stream(on)?;
    let task = KernelTask::new(function_handle, config, arguments, &stream.queue.core)?;
    if stream.context()?.handle != task.entry.context {
        return Err(Code::INVALID_HANDLE);
    }
    stream.submit(Task::Kernel(task))
}

/// Checks the attributes of an extended launch. Returns true for a cooperative launch.
fn cooperative(attributes: &[LaunchAttribute]) -> Res<bool> {
    let mut cooperative = false;
    for attribute in attributes {
        let value = &attribute.value.0;
        match attribute.id {
            2 => cooperative = value[0] != 0,
            // Cluster and preferred cluster dimensions.
            4 | 11 if value[..3] != [1, 1, 1] => {
                let [x, y, z, ..] = value;
                let text =
                    format!("thread block clusters of {x} × {y} × {z} blocks are not supported");
                return Err(lacks(&text));
            }
            // Attributes for events that fire within a launch, and for device-side graph updates.
            7 | 12 | 13 => {
                return Err(lacks(&format!("launch attribute {} is not supported", attribute.id)));
            }
            // Hints, which do not change any result: access policy, synchronisation policy, cluster
            // scheduling, overlap with the previous kernel, priority, memory domains, carveout.
            0 | 1 | 3..=6 | 8..=11 | 14 | 16 => {}
            _ => return Err(Code::INVALID_VALUE),
        }
    }
    Ok(cooperative)
}

/// Converts and checks an extended launch configuration.
pub fn extended(config: &LaunchConfigC) -> Res<LaunchConfig> {
    let attributes = config.attributes.list(config.attribute_count as usize)?;
    Ok(LaunchConfig {
        grid: config.grid,
        block: config.block,
        dynamic_shared_bytes: config.shared,
        cooperative: cooperative(&attributes)?,
    })
}

api! {
    fn cuLaunchKernel(
        function: Handle,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        shared: c_uint,
        stream: Handle,
        params: In<usize>,
        extra: In<usize>,
    ) {
        let config = LaunchConfig {
            grid: [grid_x, grid_y, grid_z],
            block: [block_x, block_y, block_z],
            dynamic_shared_bytes: shared,
            cooperative: false,
        };
        start(function, config, stream, Arguments { params, extra })
    }

    fn cuLaunchCooperativeKernel(
        function: Handle,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        shared: c_uint,
        stream: Handle,
        params: In<usize>,
    ) {
        let config = LaunchConfig {
            grid: [grid_x, grid_y, grid_z],
            block: [block_x, block_y, block_z],
            dynamic_shared_bytes: shared,
            cooperative: true,
        };
        start(function, config, stream, Arguments { params, extra: In::null() })
    }

    fn cuLaunchKernelEx(
        config: In<LaunchConfigC>,
        function: Handle,
        params: In<usize>,
        extra: In<usize>,
    ) {
        let config = config.get()?;
        start(function, extended(&config)?, config.stream, Arguments { params, extra })
    }
}
