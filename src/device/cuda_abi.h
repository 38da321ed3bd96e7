/* SPDX-License-Identifier: MIT */
/*
 * What this library uses of the CUDA driver's binary interface: numbers and layouts, declared here
 * so that building needs no CUDA. tests/abi compares them with cuda.h where there is one.
 *
 * Handles that the device table passes on as numbers (streams, events, graph nodes, pages, device
 * addresses) are declared as uint64_t in the signatures of cuda_syms.def: on the 64-bit systems
 * that have a driver a pointer travels as such a number does. Others are `void *`.
 */
#ifndef TN_DEVICE_CUDA_ABI_H
#define TN_DEVICE_CUDA_ABI_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

static_assert(sizeof(void *) == sizeof(uint64_t), "the CUDA driver exists for 64-bit systems only");

/* The values of CUresult that are distinguished here. */
enum tn_cu_result {
    TN_CU_SUCCESS = 0,
    TN_CU_INVALID_VALUE = 1,
    TN_CU_OUT_OF_MEMORY = 2,
    TN_CU_NOT_INITIALIZED = 3,
    TN_CU_DEINITIALIZED = 4,
    TN_CU_STUB_LIBRARY = 34,
    TN_CU_DEVICE_UNAVAILABLE = 46,
    TN_CU_NO_DEVICE = 100,
    TN_CU_INVALID_DEVICE = 101,
    TN_CU_INVALID_CONTEXT = 201,
    TN_CU_ECC_UNCORRECTABLE = 214,
    TN_CU_NVLINK_UNCORRECTABLE = 220,
    TN_CU_CONTAINED = 226,
    TN_CU_INVALID_HANDLE = 400,
    TN_CU_NOT_FOUND = 500,
    TN_CU_NOT_READY = 600,
    TN_CU_ILLEGAL_ADDRESS = 700,
    TN_CU_LAUNCH_TIMEOUT = 702,
    TN_CU_PEER_ACCESS_ALREADY_ENABLED = 704,
    TN_CU_CONTEXT_IS_DESTROYED = 709,
    TN_CU_ASSERT = 710,
    TN_CU_HARDWARE_STACK_ERROR = 714,
    TN_CU_ILLEGAL_INSTRUCTION = 715,
    TN_CU_MISALIGNED_ADDRESS = 716,
    TN_CU_INVALID_ADDRESS_SPACE = 717,
    TN_CU_INVALID_PC = 718,
    TN_CU_LAUNCH_FAILED = 719,
    TN_CU_NOT_SUPPORTED = 801,
    TN_CU_MPS_CLIENT_TERMINATED = 810,
    TN_CU_STREAM_CAPTURE_UNSUPPORTED = 900,
    TN_CU_STREAM_CAPTURE_INVALIDATED = 901,
    TN_CU_STREAM_CAPTURE_IMPLICIT = 906,
    TN_CU_EXTERNAL_DEVICE = 911,
    TN_CU_UNKNOWN = 999
};

/* CUdevice_attribute */
enum {
    TN_CU_ATTRIBUTE_VMM_SUPPORTED = 102,
    TN_CU_ATTRIBUTE_POSIX_HANDLE_SUPPORTED = 103,
    TN_CU_ATTRIBUTE_RDMA_WITH_VMM_SUPPORTED = 110,
    TN_CU_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 115
};

enum {
    TN_CU_STREAM_NON_BLOCKING = 1,  /* CUstream_flags */
    TN_CU_EVENT_DISABLE_TIMING = 2, /* CUevent_flags */
    TN_CU_STREAM_LEGACY = 1,        /* CU_STREAM_LEGACY, a stream's handle */
    TN_CU_STREAM_PER_THREAD = 2,    /* CU_STREAM_PER_THREAD, a handle as well */
    TN_CU_IPC_LAZY_PEER_ACCESS = 1, /* CUipcMem_flags */
    TN_CU_HOST_PORTABLE = 1,        /* CU_MEMHOSTALLOC_PORTABLE and CU_MEMHOSTREGISTER_PORTABLE */
    TN_CU_IPC_HANDLE_SIZE = 64
};

/* CUstreamCaptureStatus and CUstreamCaptureMode */
enum {
    TN_CU_CAPTURE_NONE = 0,
    TN_CU_CAPTURE_ACTIVE = 1,
    TN_CU_CAPTURE_INVALIDATED = 2,
    TN_CU_CAPTURE_MODE_GLOBAL = 0,
    TN_CU_CAPTURE_MODE_RELAXED = 2
};

/* CUmemPool_attribute; each is a uint64_t */
enum {
    TN_CU_POOL_RELEASE_THRESHOLD = 4,
    TN_CU_POOL_RESERVED_CURRENT = 5,
    TN_CU_POOL_RESERVED_HIGH = 6,
    TN_CU_POOL_USED_CURRENT = 7,
    TN_CU_POOL_USED_HIGH = 8
};

enum {
    TN_CU_MEM_TYPE_PINNED = 1,        /* CUmemAllocationType */
    TN_CU_MEM_HANDLE_NONE = 0,        /* CUmemAllocationHandleType */
    TN_CU_MEM_HANDLE_POSIX_FD = 1,    /* the same */
    TN_CU_MEM_LOCATION_DEVICE = 1,    /* CUmemLocationType */
    TN_CU_MEM_ACCESS_READ_WRITE = 3,  /* CUmemAccess_flags */
    TN_CU_MEM_GRANULARITY_MINIMUM = 0 /* CUmemAllocationGranularity_flags */
};

/* CUmemLocation */
struct tn_cu_location {
    int type;
    int id;
};

/* CUmemAllocationProp */
struct tn_cu_mem_prop {
    int type;
    int requested_handle_types;
    struct tn_cu_location location;
    void *win32_handle_meta_data;
    struct {
        unsigned char compression_type;
        unsigned char gpu_direct_rdma_capable;
        unsigned short usage;
        unsigned char reserved[4];
    } flags;
};

/* CUmemAccessDesc */
struct tn_cu_access {
    struct tn_cu_location location;
    int flags;
};

/* CUgraphEdgeData */
struct tn_cu_edge {
    unsigned char from_port;
    unsigned char to_port;
    unsigned char type;
    unsigned char reserved[5];
};

/* CUipcMemHandle */
struct tn_cu_ipc_handle {
    char reserved[TN_CU_IPC_HANDLE_SIZE];
};

#endif
