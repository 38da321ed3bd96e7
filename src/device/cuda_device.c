/* SPDX-License-Identifier: MIT */
#include "device/cuda_device.h"

#include "base/clock.h"
#include "base/errinfo.h"
#include "base/host_mem.h"
#include "device/last_error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    ERROR_TEXT_MAX = 256,
    USUAL_GRANULARITY = 2 << 20
};

static struct tn_cuda *cuda_of(struct tarn_device *device)
{
    return (struct tn_cuda *)device;
}

/* ---- one call ---- */

#define FORKED                                                                                     \
    "GPU %d was opened before this process was forked, and CUDA does not work in the child: open " \
    "it there, or start the child as a new program"

/* Sets this thread's text. */
static void say(const struct tn_cuda *cuda, const char *format, ...) TN_PRINTF(2, 3);

static void say(const struct tn_cuda *cuda, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    tn_last_error_set(cuda->id, format, args);
    va_end(args);
}

void tn_cuda_refuse(struct tn_cuda_call *call, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    tn_last_error_set(call->cuda->id, format, args);
    va_end(args);
    call->status = TARN_ERR_DEVICE;
}

bool tn_cuda_did(struct tn_cuda_call *call, const char *name, int result)
{
    char text[ERROR_TEXT_MAX];

    if (result == TN_CU_DEINITIALIZED && call->purpose == TN_CUDA_GIVES) {
        return false; /* the status stays TARN_OK: the driver freed it at shutdown */
    }
    call->status = tn_cuda_status(result);
    if (call->status != TARN_OK && call->status != TARN_ERR_NOT_READY) {
        tn_cuda_explain(&call->cuda->driver, name, result, text, sizeof text);
        say(call->cuda, "%s", text);
    }
    return call->status == TARN_OK;
}

/* Makes our context current if it is not. */
static bool context_enter(struct tn_cuda_call *call)
{
    const struct tn_cuda_driver *driver = &call->cuda->driver;
    void *current = NULL;

    if (!tn_cuda_did(call, "cuCtxGetCurrent", driver->cuCtxGetCurrent(&current))) {
        return false;
    }
    if (current == call->cuda->context) {
        return true;
    }
    call->pushed =
        tn_cuda_did(call, "cuCtxPushCurrent", driver->cuCtxPushCurrent_v2(call->cuda->context));
    return call->pushed;
}

bool tn_cuda_begin(struct tn_cuda_call *call, struct tarn_device *device,
                   enum tn_cuda_purpose purpose)
{
    struct tn_cuda *cuda = cuda_of(device);

    *call =
        (struct tn_cuda_call){.cuda = cuda, .purpose = purpose, .mode = TN_CU_CAPTURE_MODE_RELAXED};
    if (tn_fork_passed(&cuda->fork)) {
        tn_cuda_refuse(call, FORKED, device->ordinal);
        return false;
    }
    if (!context_enter(call)) {
        return false;
    }
    call->exchanged = tn_cuda_did(call, "cuThreadExchangeStreamCaptureMode",
                                  cuda->driver.cuThreadExchangeStreamCaptureMode(&call->mode));
    return call->exchanged;
}

enum tarn_status tn_cuda_end(struct tn_cuda_call *call)
{
    const struct tn_cuda_driver *driver = &call->cuda->driver;
    void *ours = NULL;

    /* Restoring the state fails only if the driver has shut down meanwhile; the call itself is
     * done, so return its status. */
    if (call->exchanged) {
        (void)driver->cuThreadExchangeStreamCaptureMode(&call->mode);
    }
    if (call->pushed) {
        (void)driver->cuCtxPopCurrent_v2(&ours);
    }
    return call->status;
}

/* ---- plain memory ---- */

void tn_cuda_op_alloc(struct tn_cuda_call *call, uint64_t size, tarn_ptr *address_out)
{
    uint64_t address = 0;

    if (tn_cuda_did(call, "cuMemAlloc", call->cuda->driver.cuMemAlloc_v2(&address, size))) {
        *address_out = address;
    }
}

void tn_cuda_op_free(struct tn_cuda_call *call, tarn_ptr address)
{
    if (address == 0) { /* the driver would ignore it */
        tn_cuda_refuse(call, "free of address 0");
    } else {
        (void)tn_cuda_did(call, "cuMemFree", call->cuda->driver.cuMemFree_v2(address));
    }
}

void tn_cuda_op_memory_info(struct tn_cuda_call *call, uint64_t *free_out, uint64_t *total_out)
{
    size_t unused = 0;
    size_t total = 0;

    if (tn_cuda_did(call, "cuMemGetInfo", call->cuda->driver.cuMemGetInfo_v2(&unused, &total))) {
        *free_out = unused;
        *total_out = total;
    }
}

static enum tarn_status cuda_processes(struct tarn_device *device, tarn_process_visitor visit,
                                       void *context, int *number_out)
{
    struct tn_cuda *cuda = cuda_of(device);
    char why[256];

    if (tn_fork_passed(&cuda->fork)) {
        say(cuda, FORKED, device->ordinal);
        return TARN_ERR_DEVICE;
    }
    *number_out = device->ordinal;
    const enum tarn_status st =
        tn_nvml_processes(&cuda->nvml, cuda->bus_id, visit, context, number_out, why, sizeof why);

    if (st) {
        say(cuda, "%s", why);
    }
    return st;
}

/* ---- streams ---- */

void tn_cuda_op_stream_wait(struct tn_cuda_call *call, tarn_stream stream)
{
    (void)tn_cuda_did(call, "cuStreamSynchronize", call->cuda->driver.cuStreamSynchronize(stream));
}

static enum tarn_status cuda_stream_check(struct tarn_device *device, tarn_stream stream)
{
    struct tn_cuda_call call;
    void *context = NULL;

    if (tn_cuda_begin(&call, device, TN_CUDA_TAKES) &&
        tn_cuda_did(&call, "cuStreamGetCtx", call.cuda->driver.cuStreamGetCtx(stream, &context)) &&
        context != call.cuda->context) {
        tn_cuda_refuse(&call, "the stream is not one of GPU %d", device->ordinal);
        call.status = TARN_ERR_INVALID_ARGUMENT;
    }
    return tn_cuda_end(&call);
}

void tn_cuda_op_stream_create(struct tn_cuda_call *call, tarn_stream *stream_out)
{
    uint64_t stream = 0;

    if (tn_cuda_did(call, "cuStreamCreate",
                    call->cuda->driver.cuStreamCreate(&stream, TN_CU_STREAM_NON_BLOCKING))) {
        *stream_out = stream;
    }
}

void tn_cuda_op_stream_destroy(struct tn_cuda_call *call, tarn_stream stream)
{
    (void)tn_cuda_did(call, "cuStreamDestroy", call->cuda->driver.cuStreamDestroy_v2(stream));
}

void tn_cuda_op_device_wait(struct tn_cuda_call *call)
{
    (void)tn_cuda_did(call, "cuCtxSynchronize", call->cuda->driver.cuCtxSynchronize());
}

/* ---- other functions ---- */

static uint64_t cuda_now_ns(struct tarn_device *device)
{
    (void)device;
    return tn_clock_now_ns();
}

static const char *cuda_last_error(struct tarn_device *device)
{
    return tn_last_error_get(cuda_of(device)->id);
}

static void events_close(struct tarn_device *device)
{
    struct tn_cuda_call call;
    const bool works = tn_cuda_begin(&call, device, TN_CUDA_TAKES);

    tn_cuda_events_fini(call.cuda, works);
    (void)tn_cuda_end(&call);
}

static void cuda_destroy(struct tarn_device *device)
{
    struct tn_cuda *cuda = cuda_of(device);

    if (tn_fork_passed(&cuda->fork)) {
        return; /* the parent keeps it */
    }
    events_close(device);
    /* Fails only if the driver has shut down. */
    (void)cuda->driver.cuDevicePrimaryCtxRelease_v2(cuda->device);
    tn_fork_watch_fini(&cuda->fork);
    tn_nvml_fini(&cuda->nvml);
    tn_host_free(cuda, sizeof *cuda);
}

/* Each call runs in the device's context and in relaxed capture mode; the purpose ASKS is for those
 * that see to it themselves. */
#define CALL_TAKES(name, parameters, arguments) CALL(name, TAKES, parameters, arguments)
#define CALL_GIVES(name, parameters, arguments) CALL(name, GIVES, parameters, arguments)
#define CALL_ASKS(name, parameters, arguments)
#define CALL(name, purpose, parameters, arguments)                                                 \
    static enum tarn_status cuda_##name parameters                                                 \
    {                                                                                              \
        struct tn_cuda_call call;                                                                  \
                                                                                                   \
        if (tn_cuda_begin(&call, device, TN_CUDA_##purpose)) {                                     \
            tn_cuda_op_##name arguments;                                                           \
        }                                                                                          \
        return tn_cuda_end(&call);                                                                 \
    }
#define ENTRY_TAKES(name) cuda_##name
#define ENTRY_GIVES(name) cuda_##name
#define ENTRY_ASKS(name)  tn_cuda_##name

#define TN_OP_DEVICE struct tarn_device *device
#define TN_OP_SELF   &call
#define TN_DEVICE_OP(NAME, name, purpose, parameters, arguments)                                   \
    CALL_##purpose(name, parameters, arguments)
#include "device/device_ops.def"
#undef TN_DEVICE_OP
#undef TN_OP_SELF
#undef TN_OP_DEVICE

static const struct tn_device_ops cuda_ops = {
    .name = "cuda",
#define TN_DEVICE_OP(NAME, name, purpose, parameters, arguments) .name = ENTRY_##purpose(name),
#include "device/device_ops.def"
#undef TN_DEVICE_OP
    .processes = cuda_processes,
    .stream_check = cuda_stream_check,
    .capture_info = tn_cuda_capture_info,
    .copy = tn_cuda_copy,
    .now_ns = cuda_now_ns,
    .last_error = cuda_last_error,
    .destroy = cuda_destroy,
};

struct tn_cuda *tn_cuda_from(struct tarn_device *device)
{
    return device && device->ops == &cuda_ops ? cuda_of(device) : NULL;
}

bool tn_cuda_get_current(const struct tn_cuda *cuda, void **context_out)
{
    *context_out = NULL;
    return cuda->driver.cuCtxGetCurrent(context_out) == TN_CU_SUCCESS;
}

/* ---- opening ---- */

static enum tarn_status open_failed(const struct tn_cuda *cuda, const char *name, int result,
                                    struct tarn_error *error)
{
    const enum tarn_status st = tn_cuda_status(result);
    char text[ERROR_TEXT_MAX];

    tn_cuda_explain(&cuda->driver, name, result, text, sizeof text);
    return tn_fail(error, st, "GPU %d cannot be used (%s)", cuda->base.ordinal, text);
}

static enum tarn_status ordinal_check(struct tn_cuda *cuda, struct tarn_error *error)
{
    int count = 0;
    int result = cuda->driver.cuDeviceGetCount(&count);

    if (result != TN_CU_SUCCESS) {
        return open_failed(cuda, "cuDeviceGetCount", result, error);
    }
    if (count == 0) {
        return tn_fail(error, TARN_ERR_NOT_FOUND, "the NVIDIA driver shows this process no GPU");
    }
    if (cuda->base.ordinal >= count) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                       "there is no GPU %d: this process sees %d, from \"cuda:0\" to \"cuda:%d\"",
                       cuda->base.ordinal, count, count - 1);
    }
    result = cuda->driver.cuDeviceGet(&cuda->device, cuda->base.ordinal);
    return result ? open_failed(cuda, "cuDeviceGet", result, error) : TARN_OK;
}

static int attribute_read(const struct tn_cuda *cuda, int attribute, bool *set_out)
{
    int value = 0;
    const int result = cuda->driver.cuDeviceGetAttribute(&value, attribute, cuda->device);

    *set_out = value != 0;
    return result;
}

/* Queries the capabilities of the GPU, and sets the properties of its pages. */
static enum tarn_status abilities_read(struct tn_cuda *cuda, bool *has_pools_out,
                                       struct tarn_error *error)
{
    bool posix_handles = false;
    bool rdma = false;
    int result = attribute_read(cuda, TN_CU_ATTRIBUTE_VMM_SUPPORTED, &cuda->has_virtual_memory);

    result = result ? result
                    : attribute_read(cuda, TN_CU_ATTRIBUTE_POSIX_HANDLE_SUPPORTED, &posix_handles);
    result = result ? result : attribute_read(cuda, TN_CU_ATTRIBUTE_RDMA_WITH_VMM_SUPPORTED, &rdma);
    result = result ? result
                    : attribute_read(cuda, TN_CU_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, has_pools_out);
    if (result) {
        return open_failed(cuda, "cuDeviceGetAttribute", result, error);
    }
    cuda->page_prop = (struct tn_cu_mem_prop){
        .type = TN_CU_MEM_TYPE_PINNED,
        .requested_handle_types = posix_handles ? TN_CU_MEM_HANDLE_POSIX_FD : TN_CU_MEM_HANDLE_NONE,
        .location = {TN_CU_MEM_LOCATION_DEVICE, cuda->device},
        .flags = {.gpu_direct_rdma_capable = rdma}};
    return TARN_OK;
}

static enum tarn_status sizes_read(struct tn_cuda *cuda, struct tarn_error *error)
{
    size_t total = 0;
    size_t granularity = USUAL_GRANULARITY;
    int result = cuda->driver.cuDeviceTotalMem_v2(&total, cuda->device);

    if (result) {
        return open_failed(cuda, "cuDeviceTotalMem", result, error);
    }
    if (cuda->has_virtual_memory) {
        result = cuda->driver.cuMemGetAllocationGranularity(&granularity, &cuda->page_prop,
                                                            TN_CU_MEM_GRANULARITY_MINIMUM);
    }
    cuda->base.total_memory = total;
    cuda->base.granularity = granularity;
    return result ? open_failed(cuda, "cuMemGetAllocationGranularity", result, error) : TARN_OK;
}

static enum tarn_status names_read(struct tn_cuda *cuda, bool has_pools, struct tarn_error *error)
{
    int result =
        cuda->driver.cuDeviceGetPCIBusId(cuda->bus_id, (int)sizeof cuda->bus_id, cuda->device);

    if (result) {
        return open_failed(cuda, "cuDeviceGetPCIBusId", result, error);
    }
    cuda->base.bus_id = cuda->bus_id;
    result = has_pools ? cuda->driver.cuDeviceGetDefaultMemPool(&cuda->pool, cuda->device)
                       : TN_CU_SUCCESS;
    return result ? open_failed(cuda, "cuDeviceGetDefaultMemPool", result, error) : TARN_OK;
}

/* Fills a device that is zeroed except for its ordinal and driver. The context comes last because
 * it is the only resource to release. */
static enum tarn_status cuda_start(struct tn_cuda *cuda, struct tarn_error *error)
{
    bool has_pools = false;
    enum tarn_status st = ordinal_check(cuda, error);

    st = st ? st : abilities_read(cuda, &has_pools, error);
    st = st ? st : sizes_read(cuda, error);
    st = st ? st : names_read(cuda, has_pools, error);
    if (st) {
        return st;
    }
    const int result = cuda->driver.cuDevicePrimaryCtxRetain(&cuda->context, cuda->device);
    return result ? open_failed(cuda, "cuDevicePrimaryCtxRetain", result, error) : TARN_OK;
}

enum tarn_status tn_cuda_open(const struct tn_cuda_options *options,
                              struct tarn_device **device_out, struct tarn_error *error)
{
    struct tn_cuda *cuda = tn_host_alloc_zero(sizeof *cuda);

    if (!cuda) {
        return tn_fail_memory(error);
    }
    cuda->base = (struct tarn_device){.ops = &cuda_ops,
                                      .ordinal = options->ordinal,
                                      .per_thread_stream = TN_CU_STREAM_PER_THREAD};
    enum tarn_status st = tn_cuda_driver_open(options->driver_path, &cuda->driver, error);
    st = st ? st : cuda_start(cuda, error);
    if (st) {
        tn_host_free(cuda, sizeof *cuda);
        return st;
    }
    cuda->id = tn_last_error_new_device();
    tn_cuda_events_init(&cuda->events);
    tn_fork_watch_init(&cuda->fork, NULL);
    tn_nvml_init(&cuda->nvml, options->nvml_path);
    *device_out = &cuda->base;
    return TARN_OK;
}
