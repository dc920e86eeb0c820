//! Exported functions that allocate, release and describe memory.

use std::ffi::{c_int, c_uint};
use std::sync::atomic::Ordering;

use crate::driver::c::abi::{Address, Handle, Location};
use crate::driver::c::code::{Code, Res};
use crate::driver::c::entry::{Out, api};
use crate::driver::state::context::{Context, current};
use crate::driver::state::ledger::{AllocationRequest, Block, Kind};
use crate::driver::state::registry::{device, registry};
use crate::driver::state::stream::{Stream, stream};
use crate::driver::state::task::Task;
use crate::memory::AllocKind;

/// Values of `CU_MEMHOSTALLOC_PORTABLE`, `_DEVICEMAP` and `_WRITECOMBINED`.
const HOST_FLAGS: c_uint = 7;
/// `CU_MEMHOSTREGISTER_PORTABLE`, `_DEVICEMAP`, `_READ_ONLY`; not `_IOMEMORY` (4).
const REGISTER_FLAGS: c_uint = 1 | 2 | 8;
/// Row alignment of pitched allocations, bytes.
const PITCH: usize = 512;

fn request(
    context: &Context,
    bytes: usize,
    kind: Kind,
    flags: u32,
    pool: Handle,
) -> AllocationRequest {
    let (context, device) = (context.handle, context.device);
    AllocationRequest { bytes: bytes as u64, kind, context, device, flags, pool }
}

/// Allocates in the current context. If the device is full, waits for queued releases and tries
/// again, like the real driver's pools.
pub fn allocate(bytes: usize, kind: Kind, flags: u32, pool: Handle) -> Res<u64> {
    let context = current()?;
    let ledger = &registry()?.ledger;
    match ledger.allocate(request(&context, bytes, kind, flags, pool)) {
        Err(Code::OUT_OF_MEMORY) if context.captures.load(Ordering::Acquire) == 0 => {
            context.drain();
            ledger.allocate(request(&context, bytes, kind, flags, pool))
        }
        answer => answer,
    }
}

/// Releases an allocation after the work that may use it has finished.
fn free(base: u64, kinds: &[Kind]) -> Res {
    let context = current()?;
    let ledger = &registry()?.ledger;
    ledger.begin(base, kinds)?;
    context.drain();
    context.core.check()?;
    ledger.release(base)
}

/// Implements `cuMemAllocAsync`: any stream may use the address at once, because the memory is new.
fn allocate_in_order(out: Out<Address>, bytes: usize, pool: Handle, stream: &Stream) -> Res {
    out.required()?;
    let pool_device = registry()?.pools.get(pool)?.device;
    if bytes == 0 {
        // cudarc creates empty slices this way, without an address.
        return out.set(0);
    }
    let kind = if stream.captures() { Kind::Graph } else { Kind::Device };
    let context = stream.context()?;
    let device = device(pool_device as c_int)?;
    let request =
        |context: &Context| AllocationRequest { device, ..request(context, bytes, kind, 0, pool) };
    let ledger = &registry()?.ledger;
    let base = match ledger.allocate(request(&context)) {
        Err(Code::OUT_OF_MEMORY) if !stream.captures() => {
            context.drain();
            ledger.allocate(request(&context))?
        }
        answer => answer?,
    };
    if kind == Kind::Graph {
        crate::driver::state::capture::record_allocation(stream, base)?;
    }
    out.set(base)
}

fn describe(address: Address) -> Res<(u64, u64)> {
    let memory = &registry()?.memory;
    let found = memory.allocation(address).ok_or(Code::NOT_FOUND)?;
    Ok((found.base, found.bytes))
}

fn pinned(out: Out<usize>, bytes: usize, flags: c_uint) -> Res {
    out.required()?;
    if flags & !HOST_FLAGS != 0 {
        return Err(Code::INVALID_VALUE);
    }
    out.set(allocate(bytes, Kind::Pinned, flags, 0)? as usize)
}

fn register(base: usize, bytes: usize, flags: c_uint) -> Res {
    let context = current()?;
    if base == 0 || bytes == 0 || flags & !REGISTER_FLAGS != 0 {
        return Err(Code::INVALID_VALUE);
    }
    let registry = registry()?;
    let made = registry.memory.map(base as *mut u8, bytes as u64, AllocKind::Host);
    made.map_err(|error| match error {
        crate::memory::MemoryError::Overlap { .. } => Code::HOST_MEMORY_ALREADY_REGISTERED,
        _ => Code::INVALID_VALUE,
    })?;
    let request = request(&context, bytes, Kind::Registered, flags, 0);
    registry.ledger.adopt(base as u64, request, None);
    Ok(())
}

fn host_block(address: usize) -> Res<Block> {
    let block = registry()?.ledger.find(address as u64).ok_or(Code::INVALID_VALUE)?;
    let host = matches!(block.kind, Kind::Pinned | Kind::Registered);
    if host { Ok(block) } else { Err(Code::INVALID_VALUE) }
}

api! {
    fn cuMemAlloc_v2(out: Out<Address>, bytes: usize) {
        out.required()?;
        out.set(allocate(bytes, Kind::Device, 0, 0)?)
    }

    fn cuMemAllocPitch_v2(
        out: Out<Address>,
        pitch: Out<usize>,
        width: usize,
        height: usize,
        element: c_uint,
    ) {
        out.required()?;
        pitch.required()?;
        if !matches!(element, 4 | 8 | 16) || width == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let row = width.checked_next_multiple_of(PITCH).ok_or(Code::INVALID_VALUE)?;
        let bytes = row.checked_mul(height).ok_or(Code::INVALID_VALUE)?;
        out.set(allocate(bytes, Kind::Device, 0, 0)?)?;
        pitch.set(row)
    }

    fn cuMemAllocManaged(out: Out<Address>, bytes: usize, flags: c_uint) {
        out.required()?;
        // CU_MEM_ATTACH_GLOBAL or CU_MEM_ATTACH_HOST.
        if !matches!(flags, 1 | 2) {
            return Err(Code::INVALID_VALUE);
        }
        out.set(allocate(bytes, Kind::Managed, flags, 0)?)
    }

    fn cuMemFree_v2(base: Address) {
        if base == 0 {
            return current().map(|_| ());
        }
        free(base, &[Kind::Device, Kind::Managed])
    }

    fn cuMemAllocAsync(out: Out<Address>, bytes: usize, handle: Handle) {
        let stream = stream(handle)?;
        let pool = stream.context()?.device.pool.load(Ordering::Acquire);
        allocate_in_order(out, bytes, pool, &stream)
    }

    fn cuMemAllocFromPoolAsync(out: Out<Address>, bytes: usize, pool: Handle, handle: Handle) {
        allocate_in_order(out, bytes, pool, &*stream(handle)?)
    }

    fn cuMemFreeAsync(base: Address, handle: Handle) {
        let stream = stream(handle)?;
        if base == 0 {
            return Ok(());
        }
        let ledger = &registry()?.ledger;
        if stream.captures() && ledger.begin(base, &[Kind::Graph]).is_ok() {
            // The graph owns the memory until the graph is destroyed, so that every replay can use
            // it.
            return stream.submit(Task::Empty);
        }
        stream.forbid_capture()?;
        ledger.begin(base, &[Kind::Device, Kind::Managed])?;
        if !ledger.leave(base) {
            return Err(Code::INVALID_VALUE);
        }
        stream.submit(Task::Free { base })
    }

    fn cuMemGetInfo_v2(free: Out<usize>, total: Out<usize>) {
        let device = current()?.device;
        let used = registry()?.ledger.used(device.ordinal);
        free.set(device.total_bytes.saturating_sub(used) as usize)?;
        total.set(device.total_bytes as usize)
    }

    fn cuMemGetAddressRange_v2(base: Out<Address>, bytes: Out<usize>, address: Address) {
        current()?;
        let found = describe(address)?;
        base.set_if_asked(found.0);
        bytes.set_if_asked(found.1 as usize);
        Ok(())
    }

    fn cuMemAllocHost_v2(out: Out<usize>, bytes: usize) {
        pinned(out, bytes, 0)
    }

    fn cuMemHostAlloc(out: Out<usize>, bytes: usize, flags: c_uint) {
        pinned(out, bytes, flags)
    }

    fn cuMemFreeHost(base: usize) {
        free(base as u64, &[Kind::Pinned])
    }

    fn cuMemHostRegister_v2(base: usize, bytes: usize, flags: c_uint) {
        register(base, bytes, flags)
    }

    fn cuMemHostUnregister(base: usize) {
        let kinds = [Kind::Registered];
        let known = registry()?.ledger.begin(base as u64, &kinds);
        known.map_err(|_| Code::HOST_MEMORY_NOT_REGISTERED)?;
        free(base as u64, &kinds)
    }

    fn cuMemHostGetDevicePointer_v2(out: Out<Address>, address: usize, flags: c_uint) {
        current()?;
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        host_block(address)?;
        out.set(address as Address)
    }

    fn cuMemHostGetFlags(flags: Out<c_uint>, address: usize) {
        current()?;
        flags.set(host_block(address)?.flags)
    }

    fn cuMemPrefetchAsync_v2(
        address: Address,
        bytes: usize,
        _to: Location,
        _flags: c_uint,
        handle: Handle,
    ) {
        // All devices share one memory, so prefetching has no effect.
        managed(address, bytes)?;
        stream(handle).map(|_| ())
    }

    fn cuMemAdvise_v2(address: Address, bytes: usize, _advice: c_uint, _place: Location) {
        current()?;
        managed(address, bytes)
    }
}

/// Checks that a range is within one allocation of managed memory.
pub fn managed(address: Address, bytes: usize) -> Res {
    let block = registry()?.ledger.find(address).filter(|block| block.kind == Kind::Managed);
    let block = block.ok_or(Code::INVALID_VALUE)?;
    let room = block.base + block.bytes - address;
    if bytes == 0 || bytes as u64 > room { Err(Code::INVALID_VALUE) } else { Ok(()) }
}
