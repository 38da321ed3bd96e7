// SPDX-License-Identifier: MIT
// What src/device/cuda_abi.h and cuda_syms.def declare, held against a real cuda.h: it compiles
// only if all of it is right. With BREAK_ABI one declaration is wrong on purpose.
#define __CUDA_API_VERSION_INTERNAL // old versions of functions as well
#include <cuda.h>

#include "device/cuda_abi.h"

#include <cstddef>
#include <type_traits>

#ifdef BREAK_ABI
#define OFF_BY 1
#else
#define OFF_BY 0
#endif

// Parameters of the same number and sizes; what is a pointer here is one there.
template <class... Theirs, class... Ours>
constexpr bool same_signature(CUresult (*)(Theirs...), int (*)(Ours...))
{
    if constexpr (sizeof...(Theirs) != sizeof...(Ours)) {
        return false;
    } else {
        return ((sizeof(Theirs) == sizeof(Ours) &&
                 (std::is_pointer<Theirs>::value || !std::is_pointer<Ours>::value)) &&
                ...);
    }
}

#define TN_CUDA_SYM(exported, plain, since, need, parameters)                                      \
    static_assert(same_signature(decltype (&exported)(nullptr), (int(*) parameters) nullptr),      \
                  "the signature of " #exported);                                                  \
    static_assert(since <= CUDA_VERSION, "the version of " #exported);
#include "device/cuda_syms.def"
#undef TN_CUDA_SYM

#define SAME(ours, theirs) static_assert((long)(ours) == (long)(theirs), #theirs)

#define RESULT(name) SAME(TN_CU_##name, CUDA_ERROR_##name)
SAME(TN_CU_SUCCESS, CUDA_SUCCESS);
RESULT(INVALID_VALUE);
RESULT(OUT_OF_MEMORY);
RESULT(NOT_INITIALIZED);
RESULT(DEINITIALIZED);
RESULT(STUB_LIBRARY);
RESULT(DEVICE_UNAVAILABLE);
RESULT(NO_DEVICE);
RESULT(INVALID_DEVICE);
RESULT(INVALID_CONTEXT);
RESULT(ECC_UNCORRECTABLE);
RESULT(NVLINK_UNCORRECTABLE);
RESULT(CONTAINED);
RESULT(INVALID_HANDLE);
RESULT(NOT_FOUND);
RESULT(NOT_READY);
RESULT(ILLEGAL_ADDRESS);
RESULT(LAUNCH_TIMEOUT);
RESULT(PEER_ACCESS_ALREADY_ENABLED);
RESULT(CONTEXT_IS_DESTROYED);
RESULT(ASSERT);
RESULT(HARDWARE_STACK_ERROR);
RESULT(ILLEGAL_INSTRUCTION);
RESULT(MISALIGNED_ADDRESS);
RESULT(INVALID_ADDRESS_SPACE);
RESULT(INVALID_PC);
RESULT(LAUNCH_FAILED);
RESULT(NOT_SUPPORTED);
RESULT(MPS_CLIENT_TERMINATED);
RESULT(STREAM_CAPTURE_UNSUPPORTED);
RESULT(STREAM_CAPTURE_INVALIDATED);
RESULT(STREAM_CAPTURE_IMPLICIT);
RESULT(EXTERNAL_DEVICE);
RESULT(UNKNOWN);

SAME(TN_CU_ATTRIBUTE_VMM_SUPPORTED, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
SAME(TN_CU_ATTRIBUTE_POSIX_HANDLE_SUPPORTED,
     CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
SAME(TN_CU_ATTRIBUTE_RDMA_WITH_VMM_SUPPORTED,
     CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED);
SAME(TN_CU_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
SAME(TN_CU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
SAME(TN_CU_EVENT_DISABLE_TIMING, CU_EVENT_DISABLE_TIMING);
SAME(TN_CU_IPC_HANDLE_SIZE, CU_IPC_HANDLE_SIZE);
SAME(TN_CU_CAPTURE_NONE, CU_STREAM_CAPTURE_STATUS_NONE);
SAME(TN_CU_CAPTURE_ACTIVE, CU_STREAM_CAPTURE_STATUS_ACTIVE);
SAME(TN_CU_CAPTURE_INVALIDATED, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
SAME(TN_CU_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_GLOBAL);
SAME(TN_CU_CAPTURE_MODE_RELAXED, CU_STREAM_CAPTURE_MODE_RELAXED);
SAME(TN_CU_POOL_RELEASE_THRESHOLD, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
SAME(TN_CU_POOL_RESERVED_CURRENT, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
SAME(TN_CU_POOL_RESERVED_HIGH, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH);
SAME(TN_CU_POOL_USED_CURRENT, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
SAME(TN_CU_POOL_USED_HIGH + OFF_BY, CU_MEMPOOL_ATTR_USED_MEM_HIGH);
SAME(TN_CU_MEM_TYPE_PINNED, CU_MEM_ALLOCATION_TYPE_PINNED);
SAME(TN_CU_MEM_HANDLE_NONE, CU_MEM_HANDLE_TYPE_NONE);
SAME(TN_CU_MEM_HANDLE_POSIX_FD, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
SAME(TN_CU_MEM_LOCATION_DEVICE, CU_MEM_LOCATION_TYPE_DEVICE);
SAME(TN_CU_MEM_ACCESS_READ_WRITE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
SAME(TN_CU_MEM_GRANULARITY_MINIMUM, CU_MEM_ALLOC_GRANULARITY_MINIMUM);

#define FIELD(ours, our_field, theirs, their_field)                                                \
    SAME(offsetof(ours, our_field), offsetof(theirs, their_field));                                \
    SAME(sizeof(ours::our_field), sizeof(theirs::their_field))

SAME(sizeof(tn_cu_location), sizeof(CUmemLocation));
FIELD(tn_cu_location, type, CUmemLocation, type);
FIELD(tn_cu_location, id, CUmemLocation, id);
SAME(sizeof(tn_cu_mem_prop), sizeof(CUmemAllocationProp));
FIELD(tn_cu_mem_prop, type, CUmemAllocationProp, type);
FIELD(tn_cu_mem_prop, requested_handle_types, CUmemAllocationProp, requestedHandleTypes);
FIELD(tn_cu_mem_prop, location, CUmemAllocationProp, location);
FIELD(tn_cu_mem_prop, win32_handle_meta_data, CUmemAllocationProp, win32HandleMetaData);
SAME(offsetof(tn_cu_mem_prop, flags.compression_type),
     offsetof(CUmemAllocationProp, allocFlags.compressionType));
SAME(offsetof(tn_cu_mem_prop, flags.gpu_direct_rdma_capable),
     offsetof(CUmemAllocationProp, allocFlags.gpuDirectRDMACapable));
SAME(offsetof(tn_cu_mem_prop, flags.usage), offsetof(CUmemAllocationProp, allocFlags.usage));
SAME(sizeof(tn_cu_access), sizeof(CUmemAccessDesc));
FIELD(tn_cu_access, location, CUmemAccessDesc, location);
FIELD(tn_cu_access, flags, CUmemAccessDesc, flags);
SAME(sizeof(tn_cu_edge), sizeof(CUgraphEdgeData));
FIELD(tn_cu_edge, from_port, CUgraphEdgeData, from_port);
FIELD(tn_cu_edge, to_port, CUgraphEdgeData, to_port);
FIELD(tn_cu_edge, type, CUgraphEdgeData, type);
SAME(sizeof(tn_cu_ipc_handle), sizeof(CUipcMemHandle));
