/* SPDX-License-Identifier: MIT */
/*
 * What stands in for the driver's functions. Each calls the driver, or the allocator that serves in
 * its place, and reports what came of it. A free is reported before the driver carries it out, an
 * allocation after: see tarn/observer.h.
 */
#include "plug/preload/hooks.h"

#include "plug/preload/lookup.h"
#include "plug/preload/process.h"
#include "plug/preload/record.h"
#include "plug/preload/serve.h"
#include "plug/preload/share.h"

enum {
    STREAM_PER_THREAD = 2, /* CU_STREAM_PER_THREAD */
    LOCATION_DEVICE = 1    /* CU_MEM_LOCATION_TYPE_DEVICE */
};

/* Calls the driver's function; a driver that is not there, or lacks it, is not initialized. */
#define CALL(name, arguments)                                                                      \
    (driver && driver->name ? driver->name arguments : RUN_CU_NOT_INITIALIZED)

/* Of the calling thread's context, -1 without one. */
static int device_now(const struct run_driver *driver)
{
    int device = -1;

    return driver && driver->cuCtxGetDevice && driver->cuCtxGetDevice(&device) == RUN_CU_SUCCESS
               ? device
               : -1;
}

/* What the default stream of a _ptsz function is. */
static uint64_t own_stream(uint64_t stream)
{
    return stream == 0 ? STREAM_PER_THREAD : stream;
}

/* Reports how an allocation by the driver went; returns its result. */
static int report(const struct run_driver *driver, int result, enum run_kind kind,
                  const uint64_t *address, uint64_t size, uint64_t stream)
{
    if (result == RUN_CU_SUCCESS && address && *address != 0) {
        run_record_alloc(kind, device_now(driver), *address, size, stream);
    } else if (result == RUN_CU_OUT_OF_MEMORY) {
        run_record_failure(device_now(driver), size, stream);
    }
    return result;
}

/* ---- device memory ---- */

int cuMemAlloc_v2(uint64_t *address, size_t size)
{
    const struct run_driver *driver = run_driver();
    int result = RUN_CU_SUCCESS;

    if (!run_enter()) {
        return CALL(cuMemAlloc_v2, (address, size));
    }
    switch (address ? run_serve_alloc(device_now(driver), size, address) : RUN_SERVED_NOT) {
    case RUN_SERVED_NOT:
        result =
            report(driver, CALL(cuMemAlloc_v2, (address, size)), RUN_KIND_PLAIN, address, size, 0);
        break;
    case RUN_SERVED_OUT_OF_MEMORY:
        result = RUN_CU_OUT_OF_MEMORY;
        break;
    case RUN_SERVED:
        break;
    }
    run_leave();
    return result;
}

int cuMemAllocPitch_v2(uint64_t *address, size_t *pitch, size_t width, size_t height,
                       unsigned element)
{
    const struct run_driver *driver = run_driver();
    const bool follow = run_enter();
    int result = CALL(cuMemAllocPitch_v2, (address, pitch, width, height, element));

    if (follow) {
        const uint64_t row = result == RUN_CU_SUCCESS ? *pitch : width;

        result = report(driver, result, RUN_KIND_PLAIN, address, row * height, 0);
        run_leave();
    }
    return result;
}

int cuMemAllocManaged(uint64_t *address, size_t size, unsigned flags)
{
    const struct run_driver *driver = run_driver();
    const bool follow = run_enter();
    int result = CALL(cuMemAllocManaged, (address, size, flags));

    if (follow) {
        result = report(driver, result, RUN_KIND_MANAGED, address, size, 0);
        run_leave();
    }
    return result;
}

int cuMemFree_v2(uint64_t address)
{
    const struct run_driver *driver = run_driver();
    struct run_freed freed;
    int result = RUN_CU_SUCCESS;

    if (!run_enter()) {
        return CALL(cuMemFree_v2, (address));
    }
    if (!run_serve_free(address)) {
        run_record_free(address, &freed);
        result = freed.device < 0 && run_serve_owns(address) ? RUN_CU_INVALID_VALUE
                                                             : CALL(cuMemFree_v2, (address));
        if (result != RUN_CU_SUCCESS) {
            run_record_restore(&freed);
        }
    }
    run_leave();
    return result;
}

/* ---- by stream ---- */

typedef int alloc_async_function(uint64_t *address, size_t size, uint64_t stream);
typedef int free_async_function(uint64_t address, uint64_t stream);

/* Whether the stream records a graph: then nothing is allocated now. */
static bool is_captured(const struct run_driver *driver, uint64_t stream)
{
    int status = 0;

    return driver && driver->cuStreamIsCapturing &&
           (driver->cuStreamIsCapturing(stream, &status) != RUN_CU_SUCCESS || status != 0);
}

/* `stream` goes to the driver; `used` is the stream that it means. */
static int alloc_async(alloc_async_function *call, uint64_t *address, size_t size, uint64_t stream,
                       uint64_t used)
{
    const struct run_driver *driver = run_driver();
    int result = RUN_CU_SUCCESS;

    if (!call || !run_enter()) {
        return call ? call(address, size, stream) : RUN_CU_NOT_INITIALIZED;
    }
    if (is_captured(driver, used)) {
        result = call(address, size, stream);
        run_leave();
        return result;
    }
    switch (address ? run_serve_alloc(device_now(driver), size, address) : RUN_SERVED_NOT) {
    case RUN_SERVED_NOT:
        result = report(driver, call(address, size, stream), RUN_KIND_ASYNC, address, size, used);
        break;
    case RUN_SERVED_OUT_OF_MEMORY:
        result = RUN_CU_OUT_OF_MEMORY;
        break;
    case RUN_SERVED:
        break;
    }
    run_leave();
    return result;
}

static int free_async(free_async_function *call, uint64_t address, uint64_t stream, uint64_t used)
{
    struct run_freed freed;
    int result = RUN_CU_SUCCESS;

    if (!call || !run_enter()) {
        return call ? call(address, stream) : RUN_CU_NOT_INITIALIZED;
    }
    if (!run_serve_free_async(address, used)) {
        run_record_free(address, &freed);
        result = freed.device < 0 && run_serve_owns(address) ? RUN_CU_INVALID_VALUE
                                                             : call(address, stream);
        if (result != RUN_CU_SUCCESS) {
            run_record_restore(&freed);
        }
    }
    run_leave();
    return result;
}

int cuMemAllocAsync(uint64_t *address, size_t size, uint64_t stream)
{
    const struct run_driver *driver = run_driver();

    return alloc_async(driver ? driver->cuMemAllocAsync : NULL, address, size, stream, stream);
}

int cuMemAllocAsync_ptsz(uint64_t *address, size_t size, uint64_t stream)
{
    const struct run_driver *driver = run_driver();

    return alloc_async(driver ? driver->cuMemAllocAsync_ptsz : NULL, address, size, stream,
                       own_stream(stream));
}

int cuMemFreeAsync(uint64_t address, uint64_t stream)
{
    const struct run_driver *driver = run_driver();

    return free_async(driver ? driver->cuMemFreeAsync : NULL, address, stream, stream);
}

int cuMemFreeAsync_ptsz(uint64_t address, uint64_t stream)
{
    const struct run_driver *driver = run_driver();

    return free_async(driver ? driver->cuMemFreeAsync_ptsz : NULL, address, stream,
                      own_stream(stream));
}

int cuMemAllocFromPoolAsync(uint64_t *address, size_t size, void *pool, uint64_t stream)
{
    const struct run_driver *driver = run_driver();
    const bool follow = run_enter();
    int result = CALL(cuMemAllocFromPoolAsync, (address, size, pool, stream));

    if (follow) {
        if (!is_captured(driver, stream)) {
            result = report(driver, result, RUN_KIND_ASYNC, address, size, stream);
        }
        run_leave();
    }
    return result;
}

int cuMemAllocFromPoolAsync_ptsz(uint64_t *address, size_t size, void *pool, uint64_t stream)
{
    const struct run_driver *driver = run_driver();
    const bool follow = run_enter();
    int result = CALL(cuMemAllocFromPoolAsync_ptsz, (address, size, pool, stream));

    if (follow) {
        if (!is_captured(driver, own_stream(stream))) {
            result = report(driver, result, RUN_KIND_ASYNC, address, size, own_stream(stream));
        }
        run_leave();
    }
    return result;
}

/* ---- pinned memory ---- */

static void host_report(int result, void *const *memory, size_t size)
{
    if (result == RUN_CU_SUCCESS && size > 0) {
        run_record_alloc(RUN_KIND_HOST, 0, (uint64_t)(uintptr_t)*memory, size, 0);
    }
}

int cuMemAllocHost_v2(void **memory, size_t size)
{
    const struct run_driver *driver = run_driver();
    const bool follow = run_enter();
    const int result = CALL(cuMemAllocHost_v2, (memory, size));

    if (follow) {
        host_report(result, memory, size);
        run_leave();
    }
    return result;
}

int cuMemHostAlloc(void **memory, size_t size, unsigned flags)
{
    const struct run_driver *driver = run_driver();
    const bool follow = run_enter();
    const int result = CALL(cuMemHostAlloc, (memory, size, flags));

    if (follow) {
        host_report(result, memory, size);
        run_leave();
    }
    return result;
}

int cuMemFreeHost(void *memory)
{
    const struct run_driver *driver = run_driver();
    struct run_freed freed = {.device = -1};
    const bool follow = run_enter();

    if (follow) {
        run_record_free((uint64_t)(uintptr_t)memory, &freed);
    }
    const int result = CALL(cuMemFreeHost, (memory));

    if (follow) {
        if (result != RUN_CU_SUCCESS) {
            run_record_restore(&freed);
        }
        run_leave();
    }
    return result;
}

/* ---- virtual memory ---- */

int cuMemCreate(uint64_t *page, size_t size, const struct run_cu_prop *prop,
                unsigned long long flags)
{
    const struct run_driver *driver = run_driver();
    const bool follow = run_enter();
    const int result = CALL(cuMemCreate, (page, size, prop, flags));

    if (follow) {
        if (result == RUN_CU_SUCCESS && prop->location_type == LOCATION_DEVICE) {
            run_pages_created(prop->location_id, *page, size);
        } else if (result == RUN_CU_OUT_OF_MEMORY) {
            run_record_failure(prop->location_id, size, 0);
        }
        run_leave();
    }
    return result;
}

int cuMemRelease(uint64_t page)
{
    const struct run_driver *driver = run_driver();
    const bool follow = run_enter();

    if (follow) {
        run_pages_released(page);
    }
    const int result = CALL(cuMemRelease, (page));

    if (follow) {
        run_leave();
    }
    return result;
}

int cuMemRetainAllocationHandle(uint64_t *page, void *address)
{
    const struct run_driver *driver = run_driver();
    const bool follow = run_enter();
    const int result = CALL(cuMemRetainAllocationHandle, (page, address));

    if (follow) {
        if (result == RUN_CU_SUCCESS) {
            run_pages_retained(*page);
        }
        run_leave();
    }
    return result;
}

int cuMemMap(uint64_t address, size_t size, size_t offset, uint64_t page, unsigned long long flags)
{
    const struct run_driver *driver = run_driver();
    const bool follow = run_enter();
    const int result = CALL(cuMemMap, (address, size, offset, page, flags));

    if (follow) {
        if (result == RUN_CU_SUCCESS) {
            run_pages_mapped(page, address, size);
        }
        run_leave();
    }
    return result;
}

int cuMemUnmap(uint64_t address, size_t size)
{
    const struct run_driver *driver = run_driver();
    const bool follow = run_enter();

    if (follow) {
        run_pages_unmapped(address, size);
    }
    const int result = CALL(cuMemUnmap, (address, size));

    if (follow) {
        run_leave();
    }
    return result;
}

/* ---- what the program asks of its memory ---- */

int cuMemGetInfo_v2(size_t *unused, size_t *total)
{
    const struct run_driver *driver = run_driver();
    const bool follow = run_enter();
    const int result = CALL(cuMemGetInfo_v2, (unused, total));

    if (follow) {
        if (result == RUN_CU_SUCCESS) {
            run_serve_memory(device_now(driver), unused, total);
        }
        run_leave();
    }
    return result;
}

/* Whether the address is served by tarn; false inside of this library. */
static bool served_find(uint64_t address, uint64_t *base_out, uint64_t *size_out)
{
    bool found = false;

    if (run_enter()) {
        found = run_serve_find(address, base_out, size_out);
        run_leave();
    }
    return found;
}

int cuMemGetAddressRange_v2(uint64_t *base, size_t *size, uint64_t address)
{
    const struct run_driver *driver = run_driver();
    uint64_t start = 0;
    uint64_t length = 0;

    if (!served_find(address, &start, &length)) {
        return CALL(cuMemGetAddressRange_v2, (base, size, address));
    }
    if (base) {
        *base = start;
    }
    if (size) {
        *size = length;
    }
    return RUN_CU_SUCCESS;
}

/* The two attributes that are the allocation's, not the driver's. */
static void attribute_correct(int attribute, void *value, uint64_t base, uint64_t size)
{
    if (attribute == RUN_CU_RANGE_START) {
        *(uint64_t *)value = base;
    } else if (attribute == RUN_CU_RANGE_SIZE) {
        *(size_t *)value = size;
    }
}

int cuPointerGetAttribute(void *value, int attribute, uint64_t address)
{
    const struct run_driver *driver = run_driver();
    const int result = CALL(cuPointerGetAttribute, (value, attribute, address));
    uint64_t base = 0;
    uint64_t size = 0;

    if (result == RUN_CU_SUCCESS && served_find(address, &base, &size)) {
        attribute_correct(attribute, value, base, size);
    }
    return result;
}

int cuPointerGetAttributes(unsigned count, const int *attributes, void **values, uint64_t address)
{
    const struct run_driver *driver = run_driver();
    const int result = CALL(cuPointerGetAttributes, (count, attributes, values, address));
    uint64_t base = 0;
    uint64_t size = 0;

    if (result == RUN_CU_SUCCESS && served_find(address, &base, &size)) {
        for (unsigned i = 0; i < count; i++) {
            attribute_correct(attributes[i], values[i], base, size);
        }
    }
    return result;
}

/* ---- shared with other processes ---- */

int cuIpcGetMemHandle(struct run_cu_ipc_handle *handle, uint64_t address)
{
    const struct run_driver *driver = run_driver();
    uint64_t base = 0;
    uint64_t size = 0;

    if (!handle || !served_find(address, &base, &size) || !run_enter()) {
        return CALL(cuIpcGetMemHandle, (handle, address));
    }
    const bool exported = run_share_export(base, handle);

    run_leave();
    return exported ? RUN_CU_SUCCESS : RUN_CU_NOT_SUPPORTED;
}

typedef int ipc_open_function(uint64_t *address, struct run_cu_ipc_handle handle, unsigned flags);

static int ipc_open(const struct run_driver *driver, ipc_open_function *call, uint64_t *address,
                    const struct run_cu_ipc_handle *handle, unsigned flags)
{
    if (!address || !run_share_made(handle) || !run_enter()) {
        return call ? call(address, *handle, flags) : RUN_CU_NOT_INITIALIZED;
    }
    const bool opened = run_share_open(device_now(driver), handle, address);

    run_leave();
    return opened ? RUN_CU_SUCCESS : RUN_CU_INVALID_VALUE;
}

int cuIpcOpenMemHandle(uint64_t *address, struct run_cu_ipc_handle handle, unsigned flags)
{
    const struct run_driver *driver = run_driver();

    return ipc_open(driver, driver ? driver->cuIpcOpenMemHandle : NULL, address, &handle, flags);
}

int cuIpcOpenMemHandle_v2(uint64_t *address, struct run_cu_ipc_handle handle, unsigned flags)
{
    const struct run_driver *driver = run_driver();

    return ipc_open(driver, driver ? driver->cuIpcOpenMemHandle_v2 : NULL, address, &handle, flags);
}

int cuIpcCloseMemHandle(uint64_t address)
{
    const struct run_driver *driver = run_driver();

    if (!run_enter()) {
        return CALL(cuIpcCloseMemHandle, (address));
    }
    const int result =
        run_serve_close(address) ? RUN_CU_SUCCESS : CALL(cuIpcCloseMemHandle, (address));

    run_leave();
    return result;
}

/* ---- resetting ---- */

typedef int reset_function(int device);

static int device_reset(reset_function *call, int device)
{
    if (!call || !run_enter()) {
        return call ? call(device) : RUN_CU_NOT_INITIALIZED;
    }
    run_serve_reset(device);
    run_record_reset(device);
    const int result = call(device);

    run_leave();
    return result;
}

int cuDevicePrimaryCtxReset(int device)
{
    const struct run_driver *driver = run_driver();

    return device_reset(driver ? driver->cuDevicePrimaryCtxReset : NULL, device);
}

int cuDevicePrimaryCtxReset_v2(int device)
{
    const struct run_driver *driver = run_driver();

    return device_reset(driver ? driver->cuDevicePrimaryCtxReset_v2 : NULL, device);
}

/* ---- finding functions ---- */

static void proc_replace(int result, const char *name, void **function)
{
    void *hook = NULL;

    if (result == RUN_CU_SUCCESS && function) {
        run_driver_ask();
        hook = run_lookup_replace(name, *function);
    }
    if (hook) {
        *function = hook;
    }
}

int cuGetProcAddress(const char *name, void **function, int version, uint64_t flags)
{
    const struct run_driver *driver = run_driver();
    const int result = CALL(cuGetProcAddress, (name, function, version, flags));

    if (!run_is_inside()) {
        proc_replace(result, name, function);
    }
    return result;
}

int cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags, int *found)
{
    const struct run_driver *driver = run_driver();
    const int result = CALL(cuGetProcAddress_v2, (name, function, version, flags, found));

    if (!run_is_inside()) {
        proc_replace(result, name, function);
    }
    return result;
}
