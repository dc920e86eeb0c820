//! Functions of the driver API that the emulator has not.
//!
//! They exist, so that a program which looks all of them up finds them, and answer
//! `CUDA_ERROR_NOT_SUPPORTED`: arrays, textures and surfaces; external memory and semaphores;
//! virtual memory management; multicast; green contexts; tensor maps; linking; stream memory
//! operations; events between processes; pools between processes; and parts of graphs that are
//! not captured from copies, memsets, kernels and host functions.

use super::entry::refused;

refused! {
    cuArray3DCreate_v2 cuArray3DGetDescriptor_v2 cuArrayCreate_v2 cuArrayDestroy
    cuArrayGetDescriptor_v2 cuArrayGetMemoryRequirements cuArrayGetPlane
    cuCtxFromGreenCtx cuCtxGetDevResource cuCtxGetExecAffinity cuCtxRecordEvent cuCtxWaitEvent
    cuDestroyExternalMemory cuDestroyExternalSemaphore
    cuDeviceGetDevResource cuDeviceGetGraphMemAttribute cuDeviceGetLuid cuDeviceGetNvSciSyncAttributes
    cuDeviceGetTexture1DLinearMaxWidth cuDeviceSetGraphMemAttribute
    cuDevResourceGenerateDesc cuDevSmResourceSplitByCount
    cuExternalMemoryGetMappedBuffer cuExternalMemoryGetMappedMipmappedArray
    cuFlushGPUDirectRDMAWrites
    cuGraphAddBatchMemOpNode cuGraphAddEventRecordNode cuGraphAddEventWaitNode
    cuGraphAddExternalSemaphoresSignalNode cuGraphAddExternalSemaphoresWaitNode
    cuGraphAddMemAllocNode cuGraphAddMemFreeNode cuGraphAddNode cuGraphAddNode_v2
    cuGraphChildGraphNodeGetGraph cuGraphConditionalHandleCreate cuGraphDebugDotPrint
    cuGraphDestroyNode cuGraphExecChildGraphNodeSetParams cuGraphExecHostNodeSetParams
    cuGraphExecNodeSetParams cuGraphHostNodeGetParams cuGraphHostNodeSetParams
    cuGraphKernelNodeCopyAttributes cuGraphKernelNodeGetAttribute cuGraphKernelNodeGetParams_v2
    cuGraphKernelNodeSetAttribute cuGraphKernelNodeSetParams_v2
    cuGraphMemcpyNodeGetParams cuGraphMemcpyNodeSetParams cuGraphMemsetNodeGetParams
    cuGraphMemsetNodeSetParams cuGraphNodeFindInClone cuGraphNodeGetDependencies_v2
    cuGraphNodeGetDependentNodes_v2 cuGraphNodeGetEnabled cuGraphNodeSetEnabled
    cuGraphNodeSetParams cuGraphReleaseUserObject cuGraphRemoveDependencies_v2
    cuGraphRetainUserObject
    cuGreenCtxCreate cuGreenCtxDestroy cuGreenCtxGetDevResource cuGreenCtxRecordEvent
    cuGreenCtxStreamCreate cuGreenCtxWaitEvent
    cuImportExternalMemory cuImportExternalSemaphore
    cuIpcGetEventHandle cuIpcOpenEventHandle
    cuLaunchCooperativeKernelMultiDevice
    cuLibraryGetManaged cuLibraryGetUnifiedFunction
    cuLinkAddData_v2 cuLinkAddFile_v2 cuLinkComplete cuLinkCreate_v2 cuLinkDestroy
    cuMemAddressFree cuMemAddressReserve cuMemBatchDecompressAsync cuMemCreate
    cuMemExportToShareableHandle cuMemGetAccess cuMemGetAllocationGranularity
    cuMemGetAllocationPropertiesFromHandle cuMemGetHandleForAddressRange
    cuMemImportFromShareableHandle cuMemMap cuMemMapArrayAsync cuMemPoolExportPointer
    cuMemPoolExportToShareableHandle cuMemPoolImportFromShareableHandle cuMemPoolImportPointer
    cuMemRangeGetAttribute cuMemRangeGetAttributes cuMemRelease cuMemRetainAllocationHandle
    cuMemSetAccess cuMemUnmap
    cuMemcpy3DBatchAsync_v2 cuMemcpy3DPeer cuMemcpy3DPeerAsync cuMemcpyAtoA_v2 cuMemcpyAtoD_v2
    cuMemcpyAtoHAsync_v2 cuMemcpyAtoH_v2 cuMemcpyBatchAsync_v2 cuMemcpyDtoA_v2
    cuMemcpyHtoAAsync_v2 cuMemcpyHtoA_v2
    cuMipmappedArrayCreate cuMipmappedArrayDestroy cuMipmappedArrayGetLevel
    cuModuleGetSurfRef cuModuleGetTexRef
    cuMulticastAddDevice cuMulticastBindAddr cuMulticastBindMem cuMulticastCreate
    cuMulticastGetGranularity cuMulticastUnbind
    cuProfilerInitialize cuSignalExternalSemaphoresAsync
    cuStreamBatchMemOp_v2 cuStreamBeginCaptureToGraph cuStreamGetAttribute cuStreamGetGreenCtx
    cuStreamSetAttribute cuStreamUpdateCaptureDependencies_v2 cuStreamWaitValue32_v2
    cuStreamWaitValue64_v2 cuStreamWriteValue32_v2 cuStreamWriteValue64_v2
    cuSurfObjectCreate cuSurfObjectDestroy cuTensorMapEncodeTiled cuTensorMapReplaceAddress
    cuTexObjectCreate cuTexObjectDestroy cuTexObjectGetResourceDesc
    cuUserObjectCreate cuUserObjectRelease cuUserObjectRetain
    cuWaitExternalSemaphoresAsync
}
