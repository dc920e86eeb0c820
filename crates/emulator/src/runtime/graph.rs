//! Graphs: creation by capture or node by node, and launch.

use std::ffi::c_uint;

use super::call::{driver, entered, runtime, streamed};
use super::copy::{Copy3D, described};
use super::launch::Dim3;
use super::symbol::part;
use super::unit::function;
use crate::driver::api::graph::{
    HostNodeParams, add, cuGraphAddChildGraphNode, cuGraphAddEmptyNode, cuGraphAddHostNode,
    cuGraphAddKernelNode_v2, cuGraphAddMemcpyNode, cuGraphAddMemsetNode, cuGraphClone,
    cuGraphCreate, cuGraphDestroy, cuGraphExecDestroy, cuGraphExecGetFlags,
    cuGraphExecKernelNodeSetParams_v2, cuGraphExecMemcpyNodeSetParams,
    cuGraphExecMemsetNodeSetParams, cuGraphExecUpdate_v2, cuGraphGetNodes, cuGraphGetRootNodes,
    cuGraphInstantiateWithFlags, cuGraphInstantiateWithParams, cuGraphLaunch, cuGraphNodeGetType,
    cuGraphUpload,
};
use crate::driver::c::abi::{
    Address, Handle, InstantiateParams, KernelNodeParams, Memcpy3D, MemsetNodeParams, UpdateInfo,
};
use crate::driver::c::code::Res;
use crate::driver::c::entry::{In, Out};
use crate::driver::state::task::Task;

/// The C structure `cudaKernelNodeParams`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct KernelNode {
    symbol: usize,
    grid: Dim3,
    block: Dim3,
    shared: c_uint,
    params: In<usize>,
    extra: In<usize>,
}

impl KernelNode {
    fn for_driver(&self) -> Res<KernelNodeParams> {
        Ok(KernelNodeParams {
            function: function(self.symbol)?,
            grid: self.grid.sizes(),
            block: self.block.sizes(),
            shared: self.shared,
            params: self.params,
            extra: self.extra,
            kernel: 0,
            context: entered()?.handle,
        })
    }
}

/// Passes a structure of the runtime itself as an input of a driver function.
fn lent<T: Copy>(value: &T) -> In<T> {
    // SAFETY: the value exists while it is borrowed, which is until the call returns.
    unsafe { In::from_address(std::ptr::from_ref(value) as usize) }
}

/// Arguments that describe a new node: the output for its handle, its graph, and the nodes that
/// precede it with their number.
struct Place(Out<Handle>, Handle, In<Handle>, usize);

fn add_copy(place: Place, copy: &Memcpy3D) -> Res {
    let Place(out, into, after, count) = place;
    driver!(cuGraphAddMemcpyNode(out, into, after, count, lent(copy), 0))
}

fn set_copy(exec: Handle, node: Handle, copy: &Memcpy3D) -> Res {
    driver!(cuGraphExecMemcpyNodeSetParams(exec, node, lent(copy), 0))
}

runtime! {
    fn cudaGraphCreate(out: Out<Handle>, flags: c_uint) {
        driver!(cuGraphCreate(out, flags))
    }

    fn cudaGraphDestroy(graph: Handle) {
        driver!(cuGraphDestroy(graph))
    }

    fn cudaGraphClone(out: Out<Handle>, original: Handle) {
        driver!(cuGraphClone(out, original))
    }

    fn cudaGraphAddKernelNode(
        out: Out<Handle>,
        into: Handle,
        after: In<Handle>,
        count: usize,
        params: In<KernelNode>,
    ) {
        let params = params.get()?.for_driver()?;
        driver!(cuGraphAddKernelNode_v2(out, into, after, count, lent(&params)))
    }

    fn cudaGraphAddMemcpyNode(
        out: Out<Handle>,
        into: Handle,
        after: In<Handle>,
        count: usize,
        copy: In<Copy3D>,
    ) {
        add(out, into, after, count, Task::Copy(copy.get()?.transfer()?))
    }

    fn cudaGraphAddMemcpyNode1D(
        out: Out<Handle>,
        into: Handle,
        after: In<Handle>,
        count: usize,
        dst: Address,
        src: Address,
        bytes: usize,
        kind: c_uint,
    ) {
        add_copy(Place(out, into, after, count), &described(dst, src, bytes, kind)?)
    }

    fn cudaGraphAddMemcpyNodeToSymbol(
        out: Out<Handle>,
        into: Handle,
        after: In<Handle>,
        count: usize,
        symbol: usize,
        src: Address,
        bytes: usize,
        offset: usize,
        kind: c_uint,
    ) {
        let dst = part(symbol, offset, bytes, kind, true)?;
        add_copy(Place(out, into, after, count), &described(dst, src, bytes, kind)?)
    }

    fn cudaGraphAddMemcpyNodeFromSymbol(
        out: Out<Handle>,
        into: Handle,
        after: In<Handle>,
        count: usize,
        dst: Address,
        symbol: usize,
        bytes: usize,
        offset: usize,
        kind: c_uint,
    ) {
        let src = part(symbol, offset, bytes, kind, false)?;
        add_copy(Place(out, into, after, count), &described(dst, src, bytes, kind)?)
    }

    fn cudaGraphAddMemsetNode(
        out: Out<Handle>,
        into: Handle,
        after: In<Handle>,
        count: usize,
        params: In<MemsetNodeParams>,
    ) {
        driver!(cuGraphAddMemsetNode(out, into, after, count, params, 0))
    }

    fn cudaGraphAddHostNode(
        out: Out<Handle>,
        into: Handle,
        after: In<Handle>,
        count: usize,
        params: In<HostNodeParams>,
    ) {
        driver!(cuGraphAddHostNode(out, into, after, count, params))
    }

    fn cudaGraphAddChildGraphNode(
        out: Out<Handle>,
        into: Handle,
        after: In<Handle>,
        count: usize,
        child: Handle,
    ) {
        driver!(cuGraphAddChildGraphNode(out, into, after, count, child))
    }

    fn cudaGraphAddEmptyNode(out: Out<Handle>, into: Handle, after: In<Handle>, count: usize) {
        driver!(cuGraphAddEmptyNode(out, into, after, count))
    }

    fn cudaGraphGetNodes(graph: Handle, nodes: Out<Handle>, count: Out<usize>) {
        driver!(cuGraphGetNodes(graph, nodes, count))
    }

    fn cudaGraphGetRootNodes(graph: Handle, nodes: Out<Handle>, count: Out<usize>) {
        driver!(cuGraphGetRootNodes(graph, nodes, count))
    }

    fn cudaGraphNodeGetType(node: Handle, out: Out<c_uint>) {
        driver!(cuGraphNodeGetType(node, out))
    }

    fn cudaGraphInstantiate(out: Out<Handle>, graph: Handle, flags: u64) {
        driver!(cuGraphInstantiateWithFlags(out, graph, flags))
    }

    fn cudaGraphInstantiateWithFlags(out: Out<Handle>, graph: Handle, flags: u64) {
        driver!(cuGraphInstantiateWithFlags(out, graph, flags))
    }

    fn cudaGraphInstantiateWithParams(
        out: Out<Handle>,
        graph: Handle,
        params: Out<InstantiateParams>,
    ) {
        driver!(cuGraphInstantiateWithParams(out, graph, params))
    }

    fn cudaGraphInstantiateWithParams_ptsz(
        out: Out<Handle>,
        graph: Handle,
        params: Out<InstantiateParams>,
    ) {
        driver!(cuGraphInstantiateWithParams(out, graph, params))
    }

    fn cudaGraphExecDestroy(exec: Handle) {
        driver!(cuGraphExecDestroy(exec))
    }

    fn cudaGraphExecGetFlags(exec: Handle, flags: Out<u64>) {
        driver!(cuGraphExecGetFlags(exec, flags))
    }

    fn cudaGraphExecUpdate(exec: Handle, graph: Handle, info: Out<UpdateInfo>) {
        driver!(cuGraphExecUpdate_v2(exec, graph, info))
    }

    fn cudaGraphExecKernelNodeSetParams(exec: Handle, node: Handle, params: In<KernelNode>) {
        let params = params.get()?.for_driver()?;
        driver!(cuGraphExecKernelNodeSetParams_v2(exec, node, lent(&params)))
    }

    fn cudaGraphExecMemcpyNodeSetParams1D(
        exec: Handle,
        node: Handle,
        dst: Address,
        src: Address,
        bytes: usize,
        kind: c_uint,
    ) {
        set_copy(exec, node, &described(dst, src, bytes, kind)?)
    }

    fn cudaGraphExecMemsetNodeSetParams(
        exec: Handle,
        node: Handle,
        params: In<MemsetNodeParams>,
    ) {
        driver!(cuGraphExecMemsetNodeSetParams(exec, node, params, 0))
    }
}

streamed! {
    fn cudaGraphLaunch / cudaGraphLaunch_ptsz [stream](exec: Handle, stream: Handle) {
        driver!(cuGraphLaunch(exec, stream))
    }

    fn cudaGraphUpload / cudaGraphUpload_ptsz [stream](exec: Handle, stream: Handle) {
        driver!(cuGraphUpload(exec, stream))
    }
}
