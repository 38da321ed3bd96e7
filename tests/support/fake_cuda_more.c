/* SPDX-License-Identifier: MIT */
/*
 * Functions of the driver that the library does not call and programs do: for the tests of
 * `tarn run`. They are made of those of fake_cuda.c.
 */
#include "support/fake_cuda.h"

#include "device/cuda_abi.h"

#include <pthread.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

#define TN_CUDA_SYM(exported, plain, since, need, parameters) EXPORT int exported parameters;
#include "device/cuda_syms.def"
#undef TN_CUDA_SYM

enum {
    PITCH = 512,
    RANGE_START = 11,
    RANGE_SIZE = 12,
    PER_THREAD = 2
};

EXPORT int cuCtxGetDevice(int *device);
EXPORT int cuDevicePrimaryCtxReset_v2(int device);
EXPORT int cuMemAllocAsync(uint64_t *address, size_t size, uint64_t stream);
EXPORT int cuMemAllocAsync_ptsz(uint64_t *address, size_t size, uint64_t stream);
EXPORT int cuMemFreeAsync_ptsz(uint64_t address, uint64_t stream);
EXPORT int cuMemAllocFromPoolAsync_ptsz(uint64_t *address, size_t size, void *pool,
                                        uint64_t stream);
EXPORT int cuMemAllocManaged(uint64_t *address, size_t size, unsigned flags);
EXPORT int cuMemAllocHost_v2(void **memory, size_t size);
EXPORT int cuMemAllocPitch_v2(uint64_t *address, size_t *pitch, size_t width, size_t height,
                              unsigned element);
EXPORT int cuMemAllocMagic(uint64_t *address, size_t size);
EXPORT int cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags,
                               int *found);
EXPORT int cuGetProcAddress(const char *name, void **function, int version, uint64_t flags);
EXPORT int cuPointerGetAttribute(void *value, int attribute, uint64_t address);
EXPORT int cuPointerGetAttributes(unsigned count, const int *attributes, void **values,
                                  uint64_t address);

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void *contexts[FAKE_CUDA_DEVICES_MAX]; /* the devices' */

static void contexts_find(void)
{
    for (int i = 0; i < FAKE_CUDA_DEVICES_MAX; i++) {
        (void)cuDevicePrimaryCtxRetain(&contexts[i], i);
        (void)cuDevicePrimaryCtxRelease_v2(i);
    }
}

int cuCtxGetDevice(int *device)
{
    void *now = NULL;
    const int result = cuCtxGetCurrent(&now);

    (void)pthread_once(&once, contexts_find);
    for (int i = 0; result == TN_CU_SUCCESS && now && i < FAKE_CUDA_DEVICES_MAX; i++) {
        if (contexts[i] == now) {
            *device = i;
            return TN_CU_SUCCESS;
        }
    }
    return TN_CU_INVALID_CONTEXT;
}

int cuDevicePrimaryCtxReset_v2(int device)
{
    (void)device;
    return TN_CU_SUCCESS; /* memory stays, which the tests do not look at */
}

int cuMemAllocAsync(uint64_t *address, size_t size, uint64_t stream)
{
    void *pool = NULL;
    int device = 0;
    int result = cuCtxGetDevice(&device);

    result = result ? result : cuDeviceGetDefaultMemPool(&pool, device);
    return result ? result : cuMemAllocFromPoolAsync(address, size, pool, stream);
}

static uint64_t own_stream(uint64_t stream)
{
    return stream == 0 ? PER_THREAD : stream;
}

int cuMemAllocAsync_ptsz(uint64_t *address, size_t size, uint64_t stream)
{
    return cuMemAllocAsync(address, size, own_stream(stream));
}

int cuMemFreeAsync_ptsz(uint64_t address, uint64_t stream)
{
    return cuMemFreeAsync(address, own_stream(stream));
}

int cuMemAllocFromPoolAsync_ptsz(uint64_t *address, size_t size, void *pool, uint64_t stream)
{
    return cuMemAllocFromPoolAsync(address, size, pool, own_stream(stream));
}

int cuMemAllocManaged(uint64_t *address, size_t size, unsigned flags)
{
    return flags == 1 ? cuMemAlloc_v2(address, size) : TN_CU_INVALID_VALUE;
}

int cuMemAllocHost_v2(void **memory, size_t size)
{
    return cuMemHostAlloc(memory, size, TN_CU_HOST_PORTABLE);
}

int cuMemAllocPitch_v2(uint64_t *address, size_t *pitch, size_t width, size_t height,
                       unsigned element)
{
    (void)element;
    *pitch = (width + PITCH - 1) / PITCH * PITCH;
    return cuMemAlloc_v2(address, *pitch * height);
}

/* Drivers keep the first of the two. */
int cuGetProcAddress(const char *name, void **function, int version, uint64_t flags)
{
    int found = 0;

    return cuGetProcAddress_v2(name, function, version, flags, &found);
}

/* One that a later driver might have. */
int cuMemAllocMagic(uint64_t *address, size_t size)
{
    return cuMemAlloc_v2(address, size);
}

int cuPointerGetAttribute(void *value, int attribute, uint64_t address)
{
    uint64_t base = 0;
    size_t size = 0;
    const int result = cuMemGetAddressRange_v2(&base, &size, address);

    if (result == TN_CU_SUCCESS && attribute == RANGE_START) {
        memcpy(value, &base, sizeof base);
    } else if (result == TN_CU_SUCCESS && attribute == RANGE_SIZE) {
        memcpy(value, &size, sizeof size);
    }
    return result;
}

int cuPointerGetAttributes(unsigned count, const int *attributes, void **values, uint64_t address)
{
    int result = TN_CU_SUCCESS;

    for (unsigned i = 0; i < count && result == TN_CU_SUCCESS; i++) {
        result = cuPointerGetAttribute(values[i], attributes[i], address);
    }
    return result;
}

/* ---- finding them ---- */

#define MORE(X)                                                                                    \
    X(cuCtxGetDevice, cuCtxGetDevice, 2000, 0)                                                     \
    X(cuDevicePrimaryCtxReset_v2, cuDevicePrimaryCtxReset, 11000, 0)                               \
    X(cuMemAllocAsync, cuMemAllocAsync, 11020, 0)                                                  \
    X(cuMemAllocAsync_ptsz, cuMemAllocAsync, 11020, 2)                                             \
    X(cuMemFreeAsync_ptsz, cuMemFreeAsync, 11020, 2)                                               \
    X(cuMemAllocFromPoolAsync_ptsz, cuMemAllocFromPoolAsync, 11020, 2)                             \
    X(cuMemAllocManaged, cuMemAllocManaged, 6000, 0)                                               \
    X(cuMemAllocHost_v2, cuMemAllocHost, 3020, 0)                                                  \
    X(cuMemAllocPitch_v2, cuMemAllocPitch, 3020, 0)                                                \
    X(cuMemAllocMagic, cuMemAllocMagic, 13000, 0)                                                  \
    X(cuPointerGetAttribute, cuPointerGetAttribute, 4000, 0)                                       \
    X(cuPointerGetAttributes, cuPointerGetAttributes, 7000, 0)

void *fake_cuda_more_find(const char *name, int version, uint64_t flags)
{
    void *found = NULL;

#define MORE_LOOK(exported, plain, since, kind)                                                    \
    if (strcmp(name, #plain) == 0 && version >= (since) && (flags & 2) == (kind)) {                \
        __typeof__(&(exported)) function = exported;                                               \
                                                                                                   \
        memcpy(&found, &function, sizeof found);                                                   \
    }
    MORE(MORE_LOOK)
#undef MORE_LOOK
    return found;
}
