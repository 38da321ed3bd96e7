/* SPDX-License-Identifier: MIT */
/*
 * Programs that use the driver as others do, each finding its functions in another way. What they
 * print is the same with and without `tarn run`: no address, and nothing that depends on who serves
 * the memory.
 */
#ifndef TESTS_PRELOAD_PROGRAM_H
#define TESTS_PRELOAD_PROGRAM_H

#include <stddef.h>
#include <stdint.h>

struct cu_prop {
    int type;
    int handle_types;
    int location_type;
    int location_id;
    void *meta;
    unsigned char compression;
    unsigned char rdma;
    unsigned short usage;
    unsigned char reserved[4];
};

struct cu_ipc_handle {
    char bytes[64];
};

struct cu_access {
    int location_type;
    int location_id;
    int flags;
};

/* exported, plain, CUDA version, parameters */
#define CU_FUNCTIONS(X)                                                                            \
    X(cuInit, cuInit, 2000, (unsigned flags))                                                      \
    X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, 7000, (void **context, int device))      \
    X(cuCtxPushCurrent_v2, cuCtxPushCurrent, 4000, (void *context))                                \
    X(cuStreamCreate, cuStreamCreate, 2000, (uint64_t * stream, unsigned flags))                   \
    X(cuStreamDestroy_v2, cuStreamDestroy, 4000, (uint64_t stream))                                \
    X(cuStreamSynchronize, cuStreamSynchronize, 2000, (uint64_t stream))                           \
    X(cuMemAlloc_v2, cuMemAlloc, 3020, (uint64_t * address, size_t size))                          \
    X(cuMemAllocPitch_v2, cuMemAllocPitch, 3020,                                                   \
      (uint64_t * address, size_t * pitch, size_t width, size_t height, unsigned element))         \
    X(cuMemAllocManaged, cuMemAllocManaged, 6000,                                                  \
      (uint64_t * address, size_t size, unsigned flags))                                           \
    X(cuMemFree_v2, cuMemFree, 3020, (uint64_t address))                                           \
    X(cuMemAllocAsync, cuMemAllocAsync, 11020, (uint64_t * address, size_t size, uint64_t stream)) \
    X(cuMemFreeAsync, cuMemFreeAsync, 11020, (uint64_t address, uint64_t stream))                  \
    X(cuMemAllocHost_v2, cuMemAllocHost, 3020, (void **memory, size_t size))                       \
    X(cuMemHostAlloc, cuMemHostAlloc, 2020, (void **memory, size_t size, unsigned flags))          \
    X(cuMemFreeHost, cuMemFreeHost, 2000, (void *memory))                                          \
    X(cuMemcpyHtoD_v2, cuMemcpyHtoD, 3020, (uint64_t to, const void *from, size_t size))           \
    X(cuMemcpyDtoH_v2, cuMemcpyDtoH, 3020, (void *to, uint64_t from, size_t size))                 \
    X(cuMemGetInfo_v2, cuMemGetInfo, 3020, (size_t * unused, size_t * total))                      \
    X(cuMemGetAddressRange_v2, cuMemGetAddressRange, 3020,                                         \
      (uint64_t * base, size_t * size, uint64_t address))                                          \
    X(cuPointerGetAttribute, cuPointerGetAttribute, 4000,                                          \
      (void *value, int attribute, uint64_t address))                                              \
    X(cuMemAddressReserve, cuMemAddressReserve, 10020,                                             \
      (uint64_t * address, size_t size, size_t alignment, uint64_t wanted,                         \
       unsigned long long flags))                                                                  \
    X(cuMemAddressFree, cuMemAddressFree, 10020, (uint64_t address, size_t size))                  \
    X(cuMemCreate, cuMemCreate, 10020,                                                             \
      (uint64_t * page, size_t size, const struct cu_prop *prop, unsigned long long flags))        \
    X(cuMemRelease, cuMemRelease, 10020, (uint64_t page))                                          \
    X(cuMemMap, cuMemMap, 10020,                                                                   \
      (uint64_t address, size_t size, size_t offset, uint64_t page, unsigned long long flags))     \
    X(cuMemUnmap, cuMemUnmap, 10020, (uint64_t address, size_t size))                              \
    X(cuMemSetAccess, cuMemSetAccess, 10020,                                                       \
      (uint64_t address, size_t size, const struct cu_access *access, size_t count))               \
    X(cuIpcGetMemHandle, cuIpcGetMemHandle, 4010,                                                  \
      (struct cu_ipc_handle * handle, uint64_t address))                                           \
    X(cuIpcOpenMemHandle_v2, cuIpcOpenMemHandle, 11000,                                            \
      (uint64_t * address, struct cu_ipc_handle handle, unsigned flags))                           \
    X(cuIpcCloseMemHandle, cuIpcCloseMemHandle, 4010, (uint64_t address))

struct cu {
#define CU_MEMBER(exported, plain, since, parameters) int(*exported) parameters;
    CU_FUNCTIONS(CU_MEMBER)
#undef CU_MEMBER
};

/* Allocates and frees in every way, and prints what it finds; 5 MiB stay allocated. */
void program_work(const struct cu *cu);

/* Two processes: one allocates, and the other reads and writes the same memory. */
void program_share(const struct cu *cu);

/* Four threads that allocate and free: 3200 calls of each. */
void program_threads(struct cu *cu);

/* Makes the device's context current. */
void program_begin(const struct cu *cu);

/* Ends the program with a message. */
_Noreturn void program_fail(const char *what);

/* All functions, by dlsym, which the caller passes. */
void program_find(struct cu *cu, void *library, void *(*find)(void *library, const char *name));

#endif
