//! Functions that launch kernels.

use std::cell::Cell;
use std::ffi::c_uint;

use super::call::{bare, driver, own, runtime, streamed};
use super::error::{INVALID_CONFIGURATION, MISSING_CONFIGURATION};
use super::unit;
use crate::driver::api::launch::{cuLaunchCooperativeKernel, cuLaunchKernel, cuLaunchKernelEx};
use crate::driver::c::abi::{Handle, LaunchAttribute, LaunchConfigC};
use crate::driver::c::code::{Code, Res};
use crate::driver::c::entry::{In, Out};
use crate::driver::state::launch::has_size;
use crate::exec::LaunchConfig;

/// The C structure `dim3`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Dim3 {
    x: c_uint,
    y: c_uint,
    z: c_uint,
}

impl Dim3 {
    /// Returns the sizes in x, y and z.
    pub fn sizes(self) -> [c_uint; 3] {
        [self.x, self.y, self.z]
    }
}

/// The C structure `cudaLaunchConfig_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Config {
    grid: Dim3,
    block: Dim3,
    shared: usize,
    stream: Handle,
    attributes: In<LaunchAttribute>,
    attribute_count: c_uint,
}

/// Configuration of a launch with `<<<>>>`.
#[derive(Clone, Copy)]
struct Call {
    grid: Dim3,
    block: Dim3,
    shared: usize,
    stream: Handle,
}

/// Maximum nesting of launches with `<<<>>>` in the arguments of such launches.
const MAX_CALLS: usize = 16;

/// Configurations of launches that have begun. There may be several, because arguments may launch
/// kernels too.
#[derive(Clone, Copy)]
struct Calls {
    open: [Call; MAX_CALLS],
    count: usize,
}

thread_local! {
    /// Launches of this thread. The value has no destructor, because a program may launch kernels
    /// after all thread-local destructors have run.
    static CALLS: Cell<Calls> = const { Cell::new(Calls { open: [NO_CALL; MAX_CALLS], count: 0 }) };
}

/// Value of an unused entry.
const NO_CALL: Call = {
    let none = Dim3 { x: 0, y: 0, z: 0 };
    Call { grid: none, block: none, shared: 0, stream: 0 }
};

impl Calls {
    fn push(call: Call) -> Res {
        let mut calls = CALLS.get();
        *calls.open.get_mut(calls.count).ok_or(Code::OUT_OF_MEMORY)? = call;
        calls.count += 1;
        CALLS.set(calls);
        Ok(())
    }

    fn pop() -> Res<Call> {
        let mut calls = CALLS.get();
        calls.count = calls.count.checked_sub(1).ok_or(MISSING_CONFIGURATION)?;
        CALLS.set(calls);
        Ok(calls.open[calls.count])
    }
}

impl Call {
    /// Returns the size of dynamic shared memory, or an error if the configuration exceeds the
    /// limits that apply to every kernel.
    fn check(&self) -> Res<u32> {
        let shared = u32::try_from(self.shared).map_err(|_| Code::INVALID_VALUE)?;
        let config = LaunchConfig {
            grid: self.grid.sizes(),
            block: self.block.sizes(),
            dynamic_shared_bytes: shared,
            cooperative: false,
        };
        if has_size(&config) { Ok(shared) } else { Err(INVALID_CONFIGURATION) }
    }

    fn start(self, symbol: usize, arguments: In<usize>, cooperative: bool) -> Res {
        let function = unit::function(symbol)?;
        let shared = self.check()?;
        let ([x, y, z], [bx, by, bz]) = (self.grid.sizes(), self.block.sizes());
        let stream = self.stream;
        if cooperative {
            return driver!(cuLaunchCooperativeKernel(
                function, x, y, z, bx, by, bz, shared, stream, arguments
            ));
        }
        let extra = In::null();
        driver!(cuLaunchKernel(function, x, y, z, bx, by, bz, shared, stream, arguments, extra))
    }
}

bare! {
    fn __cudaPushCallConfiguration(grid: Dim3, block: Dim3, shared: usize, stream: Handle) {
        Calls::push(Call { grid, block, shared, stream })
    }

    fn __cudaPopCallConfiguration(
        grid: Out<Dim3>,
        block: Out<Dim3>,
        shared: Out<usize>,
        stream: Out<Handle>,
    ) {
        let call = Calls::pop()?;
        grid.set(call.grid)?;
        block.set(call.block)?;
        shared.set(call.shared)?;
        stream.set(call.stream)
    }
}

streamed! {
    fn cudaLaunchKernel / cudaLaunchKernel_ptsz [stream](
        symbol: usize,
        grid: Dim3,
        block: Dim3,
        arguments: In<usize>,
        shared: usize,
        stream: Handle,
    ) {
        Call { grid, block, shared, stream }.start(symbol, arguments, false)
    }

    fn __cudaLaunchKernel / __cudaLaunchKernel_ptsz [stream](
        kernel: Handle,
        grid: Dim3,
        block: Dim3,
        arguments: In<usize>,
        shared: usize,
        stream: Handle,
    ) {
        Call { grid, block, shared, stream }.start(kernel, arguments, false)
    }

    fn cudaLaunchCooperativeKernel / cudaLaunchCooperativeKernel_ptsz [stream](
        symbol: usize,
        grid: Dim3,
        block: Dim3,
        arguments: In<usize>,
        shared: usize,
        stream: Handle,
    ) {
        Call { grid, block, shared, stream }.start(symbol, arguments, true)
    }
}

/// Launches a kernel with attributes. `stream` replaces the stream of the configuration.
fn extended(config: &Config, stream: Handle, symbol: usize, arguments: In<usize>) -> Res {
    let function = unit::function(symbol)?;
    let Config { grid, block, shared, attributes, attribute_count, .. } = *config;
    let shared = Call { grid, block, shared, stream }.check()?;
    let (grid, block) = (grid.sizes(), block.sizes());
    let mut config = LaunchConfigC { grid, block, shared, stream, attributes, attribute_count };
    // SAFETY: the configuration exists until the call returns.
    let place = unsafe { In::from_address(&raw mut config as usize) };
    driver!(cuLaunchKernelEx(place, function, arguments, In::null()))
}

runtime! {
    fn cudaLaunchKernelExC(config: In<Config>, symbol: usize, arguments: In<usize>) {
        let config = config.get()?;
        extended(&config, config.stream, symbol, arguments)
    }

    fn cudaLaunchKernelExC_ptsz(config: In<Config>, symbol: usize, arguments: In<usize>) {
        let config = config.get()?;
        extended(&config, own(config.stream), symbol, arguments)
    }
}
