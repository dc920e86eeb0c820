//! Exported graph functions.

use std::ffi::{c_uint, c_void};
use std::sync::Arc;

use super::memcpy::{fill, transfer_3d};
use crate::driver::c::abi::{
    Handle, InstantiateParams, KernelNodeParams, Memcpy3D, MemsetNodeParams, UpdateInfo,
};
use crate::driver::c::code::{Code, Res};
use crate::driver::c::entry::{In, Out, api};
use crate::driver::state::context::{Context, context, current};
use crate::driver::state::graph::{Exec, Graph, Node, kind};
use crate::driver::state::launch::{Arguments, KernelTask};
use crate::driver::state::registry::{fresh, registry};
use crate::driver::state::stream::stream;
use crate::driver::state::task::Task;
use crate::exec::LaunchConfig;

/// Values of `CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH`, `_UPLOAD`, `_DEVICE_LAUNCH` and
/// `_USE_NODE_PRIORITY`.
const AUTO_FREE: u64 = 1;
const UPLOAD: u64 = 2;
const DEVICE_LAUNCH: u64 = 4;
const ALL_FLAGS: u64 = 15;
/// Value of `CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED`: the update failed, because the topology
/// of the graph changed.
const TOPOLOGY_CHANGED: c_uint = 2;

fn graph(handle: Handle) -> Res<Arc<Graph>> {
    registry()?.graphs.get(handle)
}

fn node(handle: Handle) -> Res<Node> {
    graph(registry()?.nodes.get(handle)?.graph)?.node(handle)
}

/// Adds a node to a graph and returns its handle.
pub fn add(out: Out<Handle>, into: Handle, after: In<Handle>, count: usize, task: Task) -> Res {
    out.required()?;
    out.set(graph(into)?.add(into, task, &after.list(count)?)?)
}

fn context_or_current(handle: Handle) -> Res<Arc<Context>> {
    if handle == 0 { current() } else { context(handle) }
}

fn kernel_task(params: &KernelNodeParams) -> Res<Task> {
    let context = context_or_current(params.context)?;
    let function = if params.function == 0 { params.kernel } else { params.function };
    let config = LaunchConfig {
        grid: params.grid,
        block: params.block,
        dynamic_shared_bytes: params.shared,
        cooperative: false,
    };
    let arguments = Arguments { params: params.params, extra: params.extra };
    let task = KernelTask::new(function, config, arguments, &context.core)?;
    if task.entry.context != context.handle {
        return Err(Code::INVALID_HANDLE);
    }
    Ok(Task::Kernel(task))
}

fn memset_task(params: &MemsetNodeParams) -> Res<Task> {
    let element = u8::try_from(params.element).map_err(|_| Code::INVALID_VALUE)?;
    if !matches!(element, 1 | 2 | 4) {
        return Err(Code::INVALID_VALUE);
    }
    let size = [params.width, params.height];
    let fill = fill(params.dst, params.value, element, size, params.pitch);
    fill.check()?;
    Ok(Task::Fill(fill))
}

fn instantiate(handle: Handle, flags: u64) -> Res<Handle> {
    let both = AUTO_FREE | DEVICE_LAUNCH;
    if flags & !ALL_FLAGS != 0 || flags & both == both {
        return Err(Code::INVALID_VALUE);
    }
    if flags & DEVICE_LAUNCH != 0 {
        return Err(Code::NOT_SUPPORTED);
    }
    let plan = graph(handle)?.plan()?;
    let exec = Exec::new(current()?.handle, flags, plan);
    Ok(registry()?.execs.insert(Arc::new(exec)))
}

/// Stores a list of handles, or only its length if the list pointer is null.
fn list(out: Out<Handle>, count: Out<usize>, found: Vec<Handle>) -> Res {
    if out.is_null() {
        return count.set(found.len());
    }
    let room = count.get()?;
    count.set(found.len().min(room))?;
    let padding = room.saturating_sub(found.len()).min(found.len());
    out.fill(room, found.into_iter().chain(std::iter::repeat_n(0, padding)))
}

fn connect(into: Handle, from: In<Handle>, to: In<Handle>, count: usize) -> Res {
    let edges: Vec<_> = from.list(count)?.into_iter().zip(to.list(count)?).collect();
    graph(into)?.connect(&edges)
}

fn edges(handle: Handle) -> Res<(Vec<Handle>, Vec<Handle>)> {
    let nodes = graph(handle)?.nodes();
    let pairs = nodes.iter().flat_map(|node| node.after.iter().map(|&from| (from, node.handle)));
    Ok(pairs.unzip())
}

fn get_edges(handle: Handle, from: Out<Handle>, to: Out<Handle>, count: Out<usize>) -> Res {
    let (starts, ends) = edges(handle)?;
    if from.is_null() || to.is_null() {
        return count.set(starts.len());
    }
    let room = count.get()?;
    from.fill(room, starts.iter().copied())?;
    to.fill(room, ends)?;
    count.set(starts.len().min(room))
}

api! {
    fn cuGraphCreate(out: Out<Handle>, flags: c_uint) {
        out.required()?;
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        out.set(registry()?.graphs.insert(Arc::default()))
    }

    fn cuGraphDestroy(handle: Handle) {
        let registry = registry()?;
        let gone = registry.graphs.remove(handle)?;
        for node in gone.nodes() {
            registry.nodes.remove(node.handle)?;
        }
        Ok(())
    }

    fn cuGraphClone(out: Out<Handle>, original: Handle) {
        out.required()?;
        let handle = fresh();
        let copy = graph(original)?.copy(handle)?;
        registry()?.graphs.insert_as(handle, Arc::new(copy));
        out.set(handle)
    }

    fn cuGraphAddKernelNode_v2(
        out: Out<Handle>,
        into: Handle,
        after: In<Handle>,
        count: usize,
        params: In<KernelNodeParams>,
    ) {
        add(out, into, after, count, kernel_task(&params.get()?)?)
    }

    fn cuGraphAddMemcpyNode(
        out: Out<Handle>,
        into: Handle,
        after: In<Handle>,
        count: usize,
        copy: In<Memcpy3D>,
        context: Handle,
    ) {
        context_or_current(context)?;
        add(out, into, after, count, Task::Copy(transfer_3d(&copy.get()?)?))
    }

    fn cuGraphAddMemsetNode(
        out: Out<Handle>,
        into: Handle,
        after: In<Handle>,
        count: usize,
        params: In<MemsetNodeParams>,
        context: Handle,
    ) {
        context_or_current(context)?;
        add(out, into, after, count, memset_task(&params.get()?)?)
    }

    fn cuGraphAddEmptyNode(out: Out<Handle>, into: Handle, after: In<Handle>, count: usize) {
        add(out, into, after, count, Task::Empty)
    }

    fn cuGraphAddHostNode(
        out: Out<Handle>,
        into: Handle,
        after: In<Handle>,
        count: usize,
        params: In<HostNodeParams>,
    ) {
        let params = params.get()?;
        let function = params.function.ok_or(Code::INVALID_VALUE)?;
        let task = Task::Host { function, data: params.data as usize };
        add(out, into, after, count, task)
    }

    fn cuGraphAddChildGraphNode(
        out: Out<Handle>,
        into: Handle,
        after: In<Handle>,
        count: usize,
        child: Handle,
    ) {
        let plan = graph(child)?.plan()?;
        add(out, into, after, count, Task::Graph(Arc::new(plan)))
    }

    fn cuGraphAddDependencies(into: Handle, from: In<Handle>, to: In<Handle>, count: usize) {
        connect(into, from, to, count)
    }

    fn cuGraphAddDependencies_v2(
        into: Handle,
        from: In<Handle>,
        to: In<Handle>,
        data: *const c_void,
        count: usize,
    ) {
        // Edge data describe programmatic launches, which are not supported.
        if !data.is_null() {
            return Err(Code::NOT_SUPPORTED);
        }
        connect(into, from, to, count)
    }

    fn cuGraphGetNodes(handle: Handle, nodes: Out<Handle>, count: Out<usize>) {
        let found = graph(handle)?.nodes().iter().map(|node| node.handle).collect();
        list(nodes, count, found)
    }

    fn cuGraphGetRootNodes(handle: Handle, nodes: Out<Handle>, count: Out<usize>) {
        let all = graph(handle)?.nodes();
        let roots = all.iter().filter(|node| node.after.is_empty());
        list(nodes, count, roots.map(|node| node.handle).collect())
    }

    fn cuGraphGetEdges(
        handle: Handle,
        from: Out<Handle>,
        to: Out<Handle>,
        count: Out<usize>,
    ) {
        get_edges(handle, from, to, count)
    }

    fn cuGraphGetEdges_v2(
        handle: Handle,
        from: Out<Handle>,
        to: Out<Handle>,
        data: Out<u64>,
        count: Out<usize>,
    ) {
        get_edges(handle, from, to, count)?;
        if !data.is_null() && !from.is_null() {
            // For full dependencies all fields of the eight-byte record are zero.
            let edges = count.get()?;
            data.fill(edges, std::iter::repeat_n(0, edges))?;
        }
        Ok(())
    }

    fn cuGraphNodeGetType(handle: Handle, out: Out<c_uint>) {
        out.set(kind(&node(handle)?.task))
    }

    fn cuGraphNodeGetDependencies(handle: Handle, nodes: Out<Handle>, count: Out<usize>) {
        list(nodes, count, node(handle)?.after.into_iter().collect())
    }

    fn cuGraphInstantiateWithFlags(out: Out<Handle>, handle: Handle, flags: u64) {
        out.required()?;
        out.set(instantiate(handle, flags)?)
    }

    fn cuGraphInstantiateWithParams(
        out: Out<Handle>,
        handle: Handle,
        params: Out<InstantiateParams>,
    ) {
        out.required()?;
        let mut filled = params.get()?;
        let exec = instantiate(handle, filled.flags)?;
        if filled.flags & UPLOAD != 0 {
            registry()?.execs.get(exec)?.upload();
        }
        // CUDA_GRAPH_INSTANTIATE_SUCCESS.
        (filled.result, filled.error_node) = (0, 0);
        params.set(filled)?;
        out.set(exec)
    }

    fn cuGraphExecDestroy(handle: Handle) {
        registry()?.execs.remove(handle).map(|_| ())
    }

    fn cuGraphExecGetFlags(handle: Handle, flags: Out<u64>) {
        flags.set(registry()?.execs.get(handle)?.flags)
    }

    fn cuGraphExecKernelNodeSetParams_v2(
        exec: Handle,
        node: Handle,
        params: In<KernelNodeParams>,
    ) {
        registry()?.execs.get(exec)?.set(node, kernel_task(&params.get()?)?)
    }

    fn cuGraphExecMemcpyNodeSetParams(
        exec: Handle,
        node: Handle,
        copy: In<Memcpy3D>,
        context: Handle,
    ) {
        context_or_current(context)?;
        registry()?.execs.get(exec)?.set(node, Task::Copy(transfer_3d(&copy.get()?)?))
    }

    fn cuGraphExecMemsetNodeSetParams(
        exec: Handle,
        node: Handle,
        params: In<MemsetNodeParams>,
        context: Handle,
    ) {
        context_or_current(context)?;
        registry()?.execs.get(exec)?.set(node, memset_task(&params.get()?)?)
    }

    fn cuGraphExecUpdate_v2(exec: Handle, handle: Handle, info: Out<UpdateInfo>) {
        let plan = graph(handle)?.plan()?;
        let same = registry()?.execs.get(exec)?.update(plan);
        let result = if same { 0 } else { TOPOLOGY_CHANGED };
        info.set_if_asked(UpdateInfo { result, error_node: 0, error_from: 0 });
        if same { Ok(()) } else { Err(Code::GRAPH_EXEC_UPDATE_FAILURE) }
    }

    fn cuGraphUpload(exec: Handle, handle: Handle) {
        stream(handle)?;
        registry()?.execs.get(exec)?.upload();
        Ok(())
    }

    fn cuGraphLaunch(exec: Handle, handle: Handle) {
        let exec = registry()?.execs.get(exec)?;
        stream(handle)?.submit(Task::Graph(exec.plan()))
    }
}

/// The C structure `CUDA_HOST_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct HostNodeParams {
    function: crate::driver::c::abi::HostFn,
    data: *mut c_void,
}
