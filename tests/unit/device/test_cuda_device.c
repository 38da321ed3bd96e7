/* SPDX-License-Identifier: MIT */
/* A GPU through the driver: opening, contexts, every call failing, shutdown, forks, captures. */
#define _GNU_SOURCE /* RTLD_NEXT, syscall */
#include "support/failing.h"
#include "support/test.h"

#include "support/child.h"

#include "support/cuda.h"
#include "support/system_use.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE      (2 * MIB)
#define UNTOUCHED 0x5a5a5a5a

FAILING_SYSCALL(SYS_pidfd_open, "pidfd_open")

static const struct fake_cuda *fake;
static struct tarn_device *device;

static int setup(void **state)
{
    (void)state;
    fake = fake_open(FAKE_CUDA);
    device = cuda_open();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tarn_device_close(device);
    assert_int_equal(fake->retained(0), 0);
    assert_int_equal(fake->depth(), 0);
    assert_int_equal(fake->alive(0), 0);
    return 0;
}

/* The driver itself, as a program beside this library uses it. */
static const struct tn_cuda_driver *driver(void)
{
    return &tn_cuda_from(device)->driver;
}

/* ---- opening ---- */

static void a_gpu_tells_what_it_is(void **state)
{
    struct tarn_device_info info = {.struct_size = sizeof info};
    uint64_t unused = 0;
    uint64_t total = 0;

    (void)state;
    fake->set_devices(3, 4 * GIB);
    struct tarn_device *third = cuda_open_at(FAKE_CUDA, 2);
    tarn_device_get_info(third, &info);
    assert_string_equal(info.backend, "cuda");
    assert_int_equal(info.ordinal, 2);
    assert_int_equal(info.total_memory, 4 * GIB);
    assert_int_equal(info.granularity, PAGE);
    const tarn_ptr ptr = sim_alloc_ok(third, GIB);
    assert_int_equal(fake->used_bytes(2), GIB);
    assert_int_equal(tarn_device_memory_info(third, &unused, &total), TARN_OK);
    assert_int_equal(unused, 3 * GIB);
    assert_int_equal(total, 4 * GIB);
    assert_int_equal(third->ops->free(third, ptr), TARN_OK);
    tarn_device_close(third);
    assert_int_equal(fake->retained(2), 0);
}

static void a_gpu_may_be_open_twice(void **state)
{
    struct tarn_device *again = cuda_open();

    (void)state;
    assert_int_equal(fake->retained(0), 2);
    const tarn_ptr ptr = sim_alloc_ok(again, MIB);
    assert_int_equal(device->ops->free(device, ptr), TARN_OK);
    tarn_device_close(again);
    assert_int_equal(fake->retained(0), 1);
    (void)sim_alloc_ok(device, MIB);
    fake->set_devices(1, GIB); /* what is left goes with the device */
}

static void a_number_without_a_gpu_is_refused(void **state)
{
    const struct tn_cuda_options options = {.ordinal = 1, .driver_path = FAKE_CUDA};
    struct tarn_device *other = NULL;
    struct tarn_error error = {.status = TARN_OK};

    (void)state;
    assert_int_equal(tn_cuda_open(&options, &other, &error), TARN_ERR_INVALID_ARGUMENT);
    assert_string_equal(error.text, "there is no GPU 1: this process sees 1, from \"cuda:0\" to "
                                    "\"cuda:0\"");
    fake->set_devices(2, GIB);
    assert_int_equal(tn_cuda_open(&options, &other, &error), TARN_OK);
    tarn_device_close(other);
}

/* The text names the function. */
static void opening_fails(const char *step, uint64_t n, int result)
{
    const struct tn_cuda_options options = {.driver_path = FAKE_CUDA};
    struct tarn_device *other = NULL;
    struct tarn_error error = {.status = TARN_OK};
    char text[128];

    fake->fail_nth(step, n, result);
    assert_int_equal(tn_cuda_open(&options, &other, &error), tn_cuda_status(result));
    assert_null(other);
    (void)snprintf(text, sizeof text, "GPU 0 cannot be used (%.*s: ", (int)strcspn(step, "_"),
                   step);
    if (!strstr(error.text, text)) {
        fail_msg("\"%s\" does not contain \"%s\"", error.text, text);
    }
}

static void each_step_of_opening_may_fail(void **state)
{
    static const char *const steps[] = {"cuDeviceGetCount",
                                        "cuDeviceGet",
                                        "cuDeviceGetAttribute",
                                        "cuDeviceTotalMem_v2",
                                        "cuMemGetAllocationGranularity",
                                        "cuDeviceGetPCIBusId",
                                        "cuDeviceGetDefaultMemPool",
                                        "cuDevicePrimaryCtxRetain"};
    const uint64_t host_bytes = tarn_host_get_usage().live_bytes;

    (void)state;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        opening_fails(steps[i], 1, TN_CU_INVALID_VALUE);
        opening_fails(steps[i], 1, TN_CU_OUT_OF_MEMORY);
    }
    for (uint64_t n = 1; n <= 4; n++) {
        opening_fails("cuDeviceGetAttribute", n, TN_CU_INVALID_VALUE);
    }
    assert_int_equal(fake->retained(0), 1);
    assert_int_equal(tarn_host_get_usage().live_bytes, host_bytes);
}

static void opening_needs_host_memory(void **state)
{
    const struct tn_cuda_options options = {.driver_path = FAKE_CUDA};
    struct tarn_device *other = NULL;
    struct tarn_error error = {.status = TARN_OK};

    (void)state;
    tarn_host_fail_nth(1);
    assert_int_equal(tn_cuda_open(&options, &other, &error), TARN_ERR_HOST_MEMORY);
    tarn_host_fail_nth(0);
    assert_string_equal(error.text, "host out of memory");
}

static void a_driver_may_show_no_gpu(void **state)
{
    const struct tn_cuda_options options = {.driver_path = FAKE_CUDA};
    struct tarn_device *other = NULL;
    struct tarn_error error = {.status = TARN_OK};

    (void)state;
    fake->set_devices(0, GIB);
    assert_int_equal(tn_cuda_open(&options, &other, NULL), TARN_ERR_NOT_FOUND);
    fake->set_devices(1, GIB);
    fake->set_devices(-1, GIB); /* none, but it starts */
    assert_int_equal(tn_cuda_open(&options, &other, &error), TARN_ERR_NOT_FOUND);
    assert_string_equal(error.text, "the NVIDIA driver shows this process no GPU");
    fake->set_devices(1, GIB);
}

/* ---- every operation, and everything that it may meet ---- */

/* What operations work on; made with the driver directly, but for events. */
struct things {
    uint64_t outputs[4]; /* that a failing operation must leave */
    uint64_t allocation;
    uint64_t pooled;
    uint64_t range;  /* two pages */
    uint64_t page;   /* mapped at the first of them */
    uint64_t second; /* not mapped */
    uint64_t event;  /* recorded */
    uint64_t stream; /* under capture, with a node */
    uint64_t node;   /* of it, with one parent */
    uint64_t spare_event;
    uint64_t spare_stream;
    uint64_t spare_range;
    struct tarn_device *peer;
    struct tn_ipc_handle handle; /* of the allocation */
    int descriptor;              /* of the page */
    void *pinned;
    void *made; /* pinned by an operation */
};

static unsigned char plain[4096]; /* the host's, not registered */
static unsigned char registered[4096];

typedef enum tarn_status operation(struct things *things);

static enum tarn_status do_alloc(struct things *t)
{
    return device->ops->alloc(device, MIB, &t->outputs[0]);
}

static enum tarn_status do_free(struct things *t)
{
    return device->ops->free(device, t->allocation);
}

static enum tarn_status do_memory_info(struct things *t)
{
    return device->ops->memory_info(device, &t->outputs[0], &t->outputs[1]);
}

static enum tarn_status do_event_create(struct things *t)
{
    return device->ops->event_create(device, &t->outputs[0]);
}

static enum tarn_status do_event_destroy(struct things *t)
{
    return device->ops->event_destroy(device, t->spare_event);
}

static enum tarn_status do_event_record(struct things *t)
{
    return device->ops->event_record(device, t->event, 0);
}

static enum tarn_status do_event_query(struct things *t)
{
    return device->ops->event_query(device, t->event);
}

static enum tarn_status do_event_wait(struct things *t)
{
    return device->ops->event_wait(device, t->event);
}

static enum tarn_status do_stream_wait(struct things *t)
{
    return device->ops->stream_wait(device, t->spare_stream);
}

static enum tarn_status do_stream_check(struct things *t)
{
    return device->ops->stream_check(device, t->spare_stream);
}

static enum tarn_status do_stream_wait_event(struct things *t)
{
    return device->ops->stream_wait_event(device, t->spare_stream, t->event);
}

static enum tarn_status do_stream_create(struct things *t)
{
    return device->ops->stream_create(device, &t->outputs[0]);
}

static enum tarn_status do_stream_destroy(struct things *t)
{
    return device->ops->stream_destroy(device, t->spare_stream);
}

static enum tarn_status do_device_wait(struct things *t)
{
    (void)t;
    return device->ops->device_wait(device);
}

static enum tarn_status do_capture_info(struct things *t)
{
    uint32_t count = UNTOUCHED;
    const enum tarn_status st =
        device->ops->capture_info(device, t->stream, &t->outputs[0], &t->outputs[1], 1, &count);

    t->outputs[2] = count;
    return st;
}

static enum tarn_status do_graph_node_parents(struct things *t)
{
    uint32_t count = UNTOUCHED;
    const enum tarn_status st =
        device->ops->graph_node_parents(device, t->node, &t->outputs[0], 1, &count);

    t->outputs[2] = count;
    return st;
}

static enum tarn_status do_va_reserve(struct things *t)
{
    return device->ops->va_reserve(device, PAGE, &t->outputs[0]);
}

static enum tarn_status do_va_release(struct things *t)
{
    return device->ops->va_release(device, t->spare_range, PAGE);
}

static enum tarn_status do_page_create(struct things *t)
{
    return device->ops->page_create(device, PAGE, &t->outputs[0]);
}

static enum tarn_status do_page_release(struct things *t)
{
    return device->ops->page_release(device, t->second);
}

static enum tarn_status do_map(struct things *t)
{
    return device->ops->map(device, t->range + PAGE, PAGE, t->second);
}

static enum tarn_status do_unmap(struct things *t)
{
    return device->ops->unmap(device, t->range, PAGE);
}

static enum tarn_status do_va_grant(struct things *t)
{
    return device->ops->va_grant(device, t->range, PAGE, 1);
}

static enum tarn_status do_pool_alloc(struct things *t)
{
    return device->ops->pool_alloc(device, MIB, 0, &t->outputs[0]);
}

static enum tarn_status do_pool_free(struct things *t)
{
    return device->ops->pool_free(device, t->pooled, 0);
}

static enum tarn_status do_pool_trim(struct things *t)
{
    (void)t;
    return device->ops->pool_trim(device, 0);
}

static enum tarn_status do_pool_info(struct things *t)
{
    return device->ops->pool_info(device, &t->outputs[0], &t->outputs[1]);
}

static enum tarn_status do_pool_peaks(struct things *t)
{
    return device->ops->pool_peaks(device, &t->outputs[0], &t->outputs[1]);
}

static enum tarn_status do_pool_reset_peaks(struct things *t)
{
    (void)t;
    return device->ops->pool_reset_peaks(device);
}

static enum tarn_status do_ipc_export(struct things *t)
{
    struct tn_ipc_handle handle;

    memcpy(&handle, t->outputs, sizeof t->outputs);
    const enum tarn_status st = device->ops->ipc_export(device, t->allocation, &handle);
    memcpy(t->outputs, &handle, sizeof t->outputs);
    return st;
}

static enum tarn_status do_ipc_open(struct things *t)
{
    return device->ops->ipc_open(device, &t->handle, &t->outputs[0], &t->outputs[1]);
}

static enum tarn_status do_ipc_close(struct things *t)
{
    return device->ops->ipc_close(device, t->allocation);
}

static enum tarn_status do_page_export(struct things *t)
{
    int descriptor = UNTOUCHED;
    const enum tarn_status st = device->ops->page_export(device, t->page, &descriptor);

    if (st == TARN_OK) {
        assert_int_equal(close(descriptor), 0);
    } else {
        assert_int_equal(descriptor, UNTOUCHED);
    }
    return st;
}

static enum tarn_status do_page_import(struct things *t)
{
    return device->ops->page_import(device, getpid(), t->descriptor, PAGE, &t->outputs[0]);
}

static enum tarn_status do_peer_reaches(struct things *t)
{
    bool reaches = false;
    const enum tarn_status st = device->ops->peer_reaches(device, t->peer, &reaches);

    assert_int_equal(reaches, st == TARN_OK);
    return st;
}

static enum tarn_status do_peer_enable(struct things *t)
{
    return device->ops->peer_enable(device, t->peer);
}

static enum tarn_status do_copy(struct things *t)
{
    const struct tn_copy copy = {.to_device = device,
                                 .from_device = device,
                                 .to = t->allocation,
                                 .from = t->allocation + 1024,
                                 .size = 512};

    return device->ops->copy(device, &copy, t->spare_stream);
}

static enum tarn_status do_copy_by_peer(struct things *t)
{
    const struct tn_copy copy = {.to_device = device,
                                 .from_device = t->peer,
                                 .to = t->allocation,
                                 .from = t->allocation + 1024,
                                 .size = 512,
                                 .by_peer = true};

    return device->ops->copy(device, &copy, t->spare_stream);
}

static enum tarn_status do_host_alloc(struct things *t)
{
    void *memory = NULL;
    const enum tarn_status st = device->ops->host_alloc(device, 4096, &memory);

    assert_int_equal(memory != NULL, st == TARN_OK);
    t->made = st == TARN_OK ? memory : t->made;
    return st;
}

static enum tarn_status do_host_free(struct things *t)
{
    const enum tarn_status st = device->ops->host_free(device, t->pinned);

    t->pinned = st == TARN_OK ? NULL : t->pinned;
    return st;
}

static enum tarn_status do_host_register(struct things *t)
{
    (void)t;
    return device->ops->host_register(device, plain, sizeof plain);
}

static enum tarn_status do_host_unregister(struct things *t)
{
    (void)t;
    return device->ops->host_unregister(device, registered);
}

/* An operation, the driver's function that does it, how often that is called, whether it gives
 * something back, and whether it takes another process to succeed. */
struct row {
    operation *run;
    const char *exported;
    const char *said; /* in messages */
    uint64_t times;
    bool gives;
    bool foreign;
};

static const struct row rows[] = {
    {do_alloc, "cuMemAlloc_v2", "cuMemAlloc", 1, false, false},
    {do_free, "cuMemFree_v2", "cuMemFree", 1, true, false},
    {do_memory_info, "cuMemGetInfo_v2", "cuMemGetInfo", 1, false, false},
    {do_event_create, "cuEventCreate", "cuEventCreate", 1, false, false},
    {do_event_destroy, "cuEventDestroy_v2", "cuEventDestroy", 1, true, false},
    {do_event_record, "cuEventRecord", "cuEventRecord", 1, false, false},
    {do_event_query, "cuEventQuery", "cuEventQuery", 1, true, false},
    {do_event_wait, "cuEventSynchronize", "cuEventSynchronize", 1, true, false},
    {do_stream_wait, "cuStreamSynchronize", "cuStreamSynchronize", 1, true, false},
    {do_stream_check, "cuStreamGetCtx", "cuStreamGetCtx", 1, false, false},
    {do_stream_wait_event, "cuStreamWaitEvent", "cuStreamWaitEvent", 1, false, false},
    {do_stream_create, "cuStreamCreate", "cuStreamCreate", 1, false, false},
    {do_stream_destroy, "cuStreamDestroy_v2", "cuStreamDestroy", 1, true, false},
    {do_device_wait, "cuCtxSynchronize", "cuCtxSynchronize", 1, true, false},
    {do_capture_info, "cuStreamGetCaptureInfo_v3", "cuStreamGetCaptureInfo", 1, false, false},
    {do_graph_node_parents, "cuGraphNodeGetDependencies_v2", "cuGraphNodeGetDependencies", 2, false,
     false},
    {do_va_reserve, "cuMemAddressReserve", "cuMemAddressReserve", 1, false, false},
    {do_va_release, "cuMemAddressFree", "cuMemAddressFree", 1, true, false},
    {do_page_create, "cuMemCreate", "cuMemCreate", 1, false, false},
    {do_page_release, "cuMemRelease", "cuMemRelease", 1, true, false},
    {do_map, "cuMemMap", "cuMemMap", 1, false, false},
    {do_map, "cuMemSetAccess", "cuMemSetAccess", 1, false, false},
    {do_unmap, "cuMemUnmap", "cuMemUnmap", 1, true, false},
    {do_va_grant, "cuMemSetAccess", "cuMemSetAccess", 1, false, false},
    {do_pool_alloc, "cuMemAllocFromPoolAsync", "cuMemAllocFromPoolAsync", 1, false, false},
    {do_pool_alloc, "cuMemPoolSetAttribute", "cuMemPoolSetAttribute", 1, false, false},
    {do_pool_free, "cuMemFreeAsync", "cuMemFreeAsync", 1, true, false},
    {do_pool_trim, "cuMemPoolTrimTo", "cuMemPoolTrimTo", 1, true, false},
    {do_pool_info, "cuMemPoolGetAttribute", "cuMemPoolGetAttribute", 2, false, false},
    {do_pool_peaks, "cuMemPoolGetAttribute", "cuMemPoolGetAttribute", 2, false, false},
    {do_pool_reset_peaks, "cuMemPoolSetAttribute", "cuMemPoolSetAttribute", 2, false, false},
    {do_ipc_export, "cuIpcGetMemHandle", "cuIpcGetMemHandle", 1, false, false},
    {do_ipc_open, "cuIpcOpenMemHandle_v2", "cuIpcOpenMemHandle", 1, false, true},
    {do_ipc_close, "cuIpcCloseMemHandle", "cuIpcCloseMemHandle", 1, true, true},
    {do_page_export, "cuMemExportToShareableHandle", "cuMemExportToShareableHandle", 1, false,
     false},
    {do_page_import, "cuMemImportFromShareableHandle", "cuMemImportFromShareableHandle", 1, false,
     false},
    {do_peer_reaches, "cuDeviceCanAccessPeer", "cuDeviceCanAccessPeer", 1, false, false},
    {do_peer_enable, "cuCtxEnablePeerAccess", "cuCtxEnablePeerAccess", 1, false, false},
    {do_copy, "cuMemcpyAsync", "cuMemcpyAsync", 1, false, false},
    {do_copy_by_peer, "cuMemcpyPeerAsync", "cuMemcpyPeerAsync", 1, false, false},
    {do_host_alloc, "cuMemHostAlloc", "cuMemHostAlloc", 1, false, false},
    {do_host_free, "cuMemFreeHost", "cuMemFreeHost", 1, true, false},
    {do_host_register, "cuMemHostRegister_v2", "cuMemHostRegister", 1, false, false},
    {do_host_unregister, "cuMemHostUnregister", "cuMemHostUnregister", 1, true, false},
};

enum {
    ROW_COUNT = sizeof rows / sizeof *rows
};

#define DO(call) assert_int_equal(driver()->call, TN_CU_SUCCESS)

/* A device with two GPUs' worth of things, made in the primary context, which is left. */
static struct things things_make(void)
{
    struct tn_cu_mem_prop prop = tn_cuda_from(device)->page_prop;
    struct things t;
    int status = 0;
    int mode = TN_CU_CAPTURE_MODE_RELAXED;
    const uint64_t *nodes = NULL;
    const struct tn_cu_edge *edges = NULL;
    size_t count = 0;
    uint64_t capture = 0;
    void *context = tn_cuda_from(device)->context;

    memset(&t, 0, sizeof t);
    DO(cuCtxPushCurrent_v2(context));
    DO(cuMemAlloc_v2(&t.allocation, MIB));
    DO(cuMemAllocFromPoolAsync(&t.pooled, MIB, tn_cuda_from(device)->pool, 0));
    DO(cuMemAddressReserve(&t.range, 2 * PAGE, 0, 0, 0));
    DO(cuMemAddressReserve(&t.spare_range, PAGE, 0, 0, 0));
    DO(cuMemCreate(&t.page, PAGE, &prop, 0));
    DO(cuMemCreate(&t.second, PAGE, &prop, 0));
    DO(cuMemMap(t.range, PAGE, 0, t.page, 0));
    DO(cuStreamCreate(&t.stream, TN_CU_STREAM_NON_BLOCKING));
    DO(cuStreamCreate(&t.spare_stream, TN_CU_STREAM_NON_BLOCKING));
    DO(cuStreamBeginCapture_v2(t.stream, TN_CU_CAPTURE_MODE_GLOBAL));
    DO(cuMemsetD8Async(t.allocation, 1, 1, t.stream));
    DO(cuMemsetD8Async(t.allocation, 2, 1, t.stream));
    DO(cuThreadExchangeStreamCaptureMode(&mode));
    DO(cuStreamGetCaptureInfo_v3(t.stream, &status, &capture, NULL, &nodes, &edges, &count));
    t.node = nodes[0];
    DO(cuMemHostAlloc(&t.pinned, 4096, TN_CU_HOST_PORTABLE));
    DO(cuMemHostRegister_v2(registered, sizeof registered, TN_CU_HOST_PORTABLE));
    DO(cuThreadExchangeStreamCaptureMode(&mode));
    DO(cuCtxPopCurrent_v2(&context));
    atomic_store(&tn_cuda_from(device)->events.balance, -TN_CUDA_BALANCE_MAX); /* no flags */
    assert_int_equal(device->ops->event_create(device, &t.event), TARN_OK);
    assert_int_equal(device->ops->event_create(device, &t.spare_event), TARN_OK);
    assert_int_equal(device->ops->event_record(device, t.event, 0), TARN_OK);
    assert_int_equal(device->ops->ipc_export(device, t.allocation, &t.handle), TARN_OK);
    assert_int_equal(device->ops->page_export(device, t.page, &t.descriptor), TARN_OK);
    t.peer = cuda_open_at(FAKE_CUDA, 1);
    for (size_t i = 0; i < 4; i++) {
        t.outputs[i] = UNTOUCHED;
    }
    return t;
}

/* What does not go with the device. */
static void things_close(struct things *things)
{
    tarn_device_close(things->peer);
    assert_int_equal(close(things->descriptor), 0);
}

/* What the operation gives when nothing is planned to fail. */
static enum tarn_status outcome(const struct row *row)
{
    return row->foreign ? TARN_ERR_DEVICE : TARN_OK;
}

static void expect_outcome(const struct row *row, struct things *things)
{
    const enum tarn_status st = row->run(things);

    if (st != outcome(row)) {
        fail_msg("%s: %s, %s", row->said, tarn_status_name(st), device->ops->last_error(device));
    }
}

static void expect_untouched(const struct things *things)
{
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(things->outputs[i], UNTOUCHED);
    }
}

static void fresh(int devices)
{
    tarn_device_close(device);
    fake->reset();
    fake->set_devices(devices, GIB);
    device = cuda_open();
}

/* "": nothing has failed. */
static void expect_text(const char *begin)
{
    const char *text = device->ops->last_error(device);

    if (strncmp(text, begin, strlen(begin)) != 0 || (begin[0] == '\0' && text[0] != '\0')) {
        fail_msg("\"%s\" does not begin with \"%s\"", device->ops->last_error(device), begin);
    }
}

/* One failing call of one operation; the operation works when it is tried again. */
static void row_fails(const struct row *row, const char *exported, const char *said, uint64_t n,
                      int result)
{
    fresh(2);
    struct things things = things_make();
    const uint64_t alive = fake->alive(0);

    fake->fail_nth(exported, n, result);
    assert_int_equal(row->run(&things), tn_cuda_status(result));
    assert_int_equal(fake->depth(), 0);
    assert_int_equal(fake->mode(), TN_CU_CAPTURE_MODE_GLOBAL);
    expect_untouched(&things);
    assert_int_equal(fake->alive(0), alive);
    expect_text(said);
    expect_outcome(row, &things);
    things_close(&things);
    fresh(1);
}

static void every_call_of_every_operation_may_fail(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROW_COUNT; i++) {
        for (uint64_t n = 1; n <= rows[i].times; n++) {
            row_fails(&rows[i], rows[i].exported, rows[i].said, n, TN_CU_OUT_OF_MEMORY);
            row_fails(&rows[i], rows[i].exported, rows[i].said, n, TN_CU_INVALID_VALUE);
        }
        row_fails(&rows[i], "cuCtxGetCurrent", "cuCtxGetCurrent: ", 1, TN_CU_NOT_INITIALIZED);
        row_fails(&rows[i], "cuCtxPushCurrent_v2", "cuCtxPushCurrent: ", 1, TN_CU_OUT_OF_MEMORY);
        row_fails(&rows[i], "cuThreadExchangeStreamCaptureMode",
                  "cuThreadExchangeStreamCaptureMode: ", 1, TN_CU_INVALID_VALUE);
    }
}

static void every_operation_leaves_the_context_as_it_was(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROW_COUNT; i++) {
        for (int current = -1; current < 2; current++) {
            void *context = NULL;
            int mode = 1; /* thread local */

            fresh(2);
            struct tarn_device *other = cuda_open_at(FAKE_CUDA, 1);
            struct things things = things_make();

            if (current >= 0) {
                DO(cuCtxPushCurrent_v2(tn_cuda_from(current ? other : device)->context));
            }
            DO(cuThreadExchangeStreamCaptureMode(&mode));
            const uint64_t pushes = fake->calls("cuCtxPushCurrent_v2");
            const void *before = fake->context();

            expect_outcome(&rows[i], &things);
            assert_int_equal(fake->calls("cuCtxPushCurrent_v2") - pushes, current == 0 ? 0 : 1);
            assert_ptr_equal(fake->context(), before);
            assert_int_equal(fake->mode(), 1);
            DO(cuThreadExchangeStreamCaptureMode(&mode));
            if (current >= 0) {
                DO(cuCtxPopCurrent_v2(&context));
            }
            assert_int_equal(fake->depth(), 0);
            tarn_device_close(other);
            things_close(&things);
        }
    }
    fresh(1);
}

static void no_operation_spoils_a_capture(void **state)
{
    uint64_t ignored = 0;

    (void)state;
    for (size_t i = 0; i < ROW_COUNT; i++) {
        fresh(2);
        struct things things = things_make();

        expect_outcome(&rows[i], &things);
        assert_false(fake->spoiled());
        things_close(&things);
    }
    void *context = tn_cuda_from(device)->context;
    DO(cuCtxPushCurrent_v2(context)); /* without a mode of its own the driver refuses */
    assert_int_equal(driver()->cuMemAlloc_v2(&ignored, 1), TN_CU_STREAM_CAPTURE_UNSUPPORTED);
    assert_true(fake->spoiled());
    DO(cuCtxPopCurrent_v2(&context));
    fresh(1);
}

static void a_driver_that_shut_down_takes_everything_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROW_COUNT; i++) {
        static const char *const first = "cuCtxGetCurrent: CUDA_ERROR_DEINITIALIZED, driver "
                                         "shutting down";
        fresh(2);
        struct things things = things_make();

        fake->shut_down(true);
        assert_int_equal(rows[i].run(&things), rows[i].gives ? TARN_OK : TARN_ERR_DEVICE);
        expect_untouched(&things);
        expect_text(rows[i].gives ? "" : first);
        fake->shut_down(false);
        if (rows[i].gives) { /* it may also go between the two */
            fake->fail_nth(rows[i].exported, 1, TN_CU_DEINITIALIZED);
            assert_int_equal(rows[i].run(&things), TARN_OK);
            assert_int_equal(fake->depth(), 0);
        }
        things_close(&things);
    }
    fresh(1);
    fake->shut_down(true);
    tarn_device_close(device); /* as the last destructors of a process do */
    fake->shut_down(false);
    fake->reset();
    device = cuda_open();
}

/* ---- forks ---- */

static void no_process(void *context, int64_t process, uint64_t used)
{
    (void)context;
    (void)process;
    (void)used;
}

static int run_in_child(void)
{
    const uint64_t calls = fake->calls("cuCtxGetCurrent");
    struct things things = {.allocation = 1, .peer = device};
    int number = 0;
    int wrong = 0;

    wrong += device->ops->processes(device, no_process, NULL, &number) != TARN_ERR_DEVICE;
    wrong += !strstr(device->ops->last_error(device), "before this process was forked");
    for (size_t i = 0; i < ROW_COUNT; i++) {
        wrong += rows[i].run != do_capture_info && rows[i].run(&things) != TARN_ERR_DEVICE;
        wrong += !strstr(device->ops->last_error(device), "before this process was forked");
    }
    things.stream = 7;
    wrong += do_capture_info(&things) != TARN_ERR_DEVICE;
    tarn_device_close(device);
    wrong += fake->retained(0) != 1;
    wrong += fake->calls("cuCtxGetCurrent") != calls;
    return wrong;
}

static void a_forked_child_gets_an_error_from_every_call(void **state)
{
    int status = 1;

    (void)state;
    const pid_t child = fork();
    if (child == 0) {
        child_exit(run_in_child());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    const tarn_ptr ptr = sim_alloc_ok(device, MIB); /* here all is as it was */
    assert_int_equal(device->ops->free(device, ptr), TARN_OK);
}

/* ---- texts ---- */

static void *other_thread(void *argument)
{
    tarn_ptr ptr = 0;

    *(bool *)argument = strcmp(device->ops->last_error(device), "") == 0 &&
                        device->ops->alloc(device, 2 * GIB, &ptr) == TARN_ERR_OUT_OF_MEMORY &&
                        strcmp(device->ops->last_error(device),
                               "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY, out of memory") == 0;
    return NULL;
}

static void last_errors_are_per_thread_and_device(void **state)
{
    struct tarn_device *again = cuda_open();
    tarn_ptr ptr = 7;
    pthread_t thread;
    bool right = false;

    (void)state;
    expect_text("");
    assert_int_equal(device->ops->free(device, sim_alloc_ok(device, MIB)), TARN_OK);
    expect_text(""); /* success has no text */
    assert_int_equal(device->ops->alloc(device, 0, &ptr), TARN_ERR_DEVICE);
    assert_int_equal(ptr, 7);
    assert_string_equal(device->ops->last_error(device),
                        "cuMemAlloc: CUDA_ERROR_INVALID_VALUE, invalid argument");
    assert_string_equal(again->ops->last_error(again), "");
    assert_int_equal(pthread_create(&thread, NULL, other_thread, &right), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(right);
    expect_text("cuMemAlloc: CUDA_ERROR_INVALID_VALUE");
    assert_int_equal(again->ops->free(again, 0), TARN_ERR_DEVICE);
    assert_string_equal(again->ops->last_error(again), "free of address 0");
    tarn_device_close(again);
}

static void a_lost_device_says_so(void **state)
{
    tarn_ptr ptr = 0;

    (void)state;
    fake->fail_nth("cuMemAlloc_v2", 1, TN_CU_ILLEGAL_ADDRESS);
    assert_int_equal(device->ops->alloc(device, MIB, &ptr), TARN_ERR_DEVICE);
    assert_string_equal(
        device->ops->last_error(device),
        "cuMemAlloc: CUDA_ERROR_ILLEGAL_ADDRESS, an illegal memory access was "
        "encountered; this process can no longer use the device and must be restarted");
}

/* ---- what GPUs can do ---- */

static void pages_ask_for_what_the_gpu_can_do(void **state)
{
    (void)state;
    for (int able = 0; able < 4; able++) {
        tn_page_handle page = 0;

        fake->set_attribute(TN_CU_ATTRIBUTE_POSIX_HANDLE_SUPPORTED, able & 1);
        fake->set_attribute(TN_CU_ATTRIBUTE_RDMA_WITH_VMM_SUPPORTED, able >> 1);
        struct tarn_device *other = cuda_open(); /* the fake compares the properties */
        assert_int_equal(other->ops->page_create(other, PAGE, &page), TARN_OK);
        assert_int_equal(other->ops->page_release(other, page), TARN_OK);
        tarn_device_close(other);
    }
}

static void a_gpu_without_virtual_memory_says_so(void **state)
{
    uint64_t out = 7;

    (void)state;
    fake->set_attribute(TN_CU_ATTRIBUTE_VMM_SUPPORTED, 0);
    struct tarn_device *other = cuda_open();
    assert_int_equal(other->granularity, PAGE);
    assert_int_equal(other->ops->va_reserve(other, PAGE, &out), TARN_ERR_DEVICE);
    assert_string_equal(other->ops->last_error(other),
                        "GPU 0 has no virtual memory management, which expandable segments need");
    assert_int_equal(other->ops->page_create(other, PAGE, &out), TARN_ERR_DEVICE);
    assert_int_equal(out, 7);
    assert_int_equal(other->ops->map(other, PAGE, PAGE, 1), TARN_ERR_DEVICE);
    assert_int_equal(fake->calls("cuMemMap"), 0);
    assert_int_equal(other->ops->va_grant(other, PAGE, PAGE, 0), TARN_ERR_DEVICE);
    assert_int_equal(fake->depth(), 0);
    tarn_device_close(other);
}

static void a_gpu_without_pools_says_so(void **state)
{
    uint64_t out = 7;

    (void)state;
    fake->set_attribute(TN_CU_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 0);
    struct tarn_device *other = cuda_open();
    assert_int_equal(other->ops->pool_alloc(other, MIB, 0, &out), TARN_ERR_DEVICE);
    assert_string_equal(other->ops->last_error(other),
                        "GPU 0 has no memory pools, which backend:cudaMallocAsync needs");
    assert_int_equal(out, 7);
    assert_int_equal(other->ops->pool_free(other, PAGE, 0), TARN_ERR_DEVICE);
    assert_int_equal(other->ops->pool_trim(other, 0), TARN_ERR_DEVICE);
    assert_int_equal(other->ops->pool_info(other, &out, &out), TARN_ERR_DEVICE);
    assert_int_equal(other->ops->pool_reset_peaks(other), TARN_ERR_DEVICE);
    assert_int_equal(out, 7);
    assert_int_equal(fake->depth(), 0);
    tarn_device_close(other);
}

static void a_mapping_without_access_does_not_stay(void **state)
{
    tarn_ptr range = 0;
    tn_page_handle page = 0;

    (void)state;
    assert_int_equal(device->ops->va_reserve(device, PAGE, &range), TARN_OK);
    assert_int_equal(device->ops->page_create(device, PAGE, &page), TARN_OK);
    fake->fail_nth("cuMemSetAccess", 1, TN_CU_OUT_OF_MEMORY);
    assert_int_equal(device->ops->map(device, range, PAGE, page), TARN_ERR_OUT_OF_MEMORY);
    expect_text("cuMemSetAccess: ");
    assert_int_equal(fake->alive(0), 2);
    assert_int_equal(device->ops->page_release(device, page), TARN_OK);
    assert_int_equal(device->ops->va_release(device, range, PAGE), TARN_OK);
}

static void access_is_given_to_gpus_only(void **state)
{
    tarn_ptr range = 0;
    tn_page_handle page = 0;

    (void)state;
    fake->set_devices(2, GIB);
    assert_int_equal(device->ops->va_reserve(device, PAGE, &range), TARN_OK);
    assert_int_equal(device->ops->page_create(device, PAGE, &page), TARN_OK);
    assert_int_equal(device->ops->map(device, range, PAGE, page), TARN_OK);
    assert_int_equal(device->ops->va_grant(device, range, PAGE, 1), TARN_OK);
    assert_int_equal(device->ops->va_grant(device, range, PAGE, 2), TARN_ERR_DEVICE);
    assert_int_equal(device->ops->va_grant(device, range, PAGE, -1), TARN_ERR_DEVICE);
    fake->set_devices(1, GIB);
}

static void the_pool_is_changed_by_its_first_use_only(void **state)
{
    tarn_ptr ptr = 0;

    (void)state;
    fake->set_release_threshold(5);
    assert_int_equal(device->ops->pool_trim(device, 0), TARN_OK);
    assert_int_equal(fake->release_threshold(), 5);
    assert_int_equal(device->ops->pool_alloc(device, MIB, 0, &ptr), TARN_OK);
    assert_true(fake->release_threshold() == UINT64_MAX);
    assert_int_equal(device->ops->pool_free(device, ptr, 0), TARN_OK);
    fake->set_release_threshold(6); /* the program's own wish */
    assert_int_equal(device->ops->pool_alloc(device, MIB, 0, &ptr), TARN_OK);
    assert_int_equal(fake->release_threshold(), 6);
    assert_int_equal(device->ops->pool_free(device, ptr, 0), TARN_OK);
    assert_int_equal(device->ops->pool_trim(device, 0), TARN_OK);
    assert_int_equal(fake->used_bytes(0), 0);
}

/* ---- captures ---- */

/* A node that the node comes after, and that comes after none. */
static tn_graph_node first_of(struct tarn_device *other, tn_graph_node node)
{
    uint32_t count = 1;

    for (tn_graph_node before = node; count > 0;) {
        node = before;
        assert_int_equal(other->ops->graph_node_parents(other, node, &before, 1, &count), TARN_OK);
    }
    return node;
}

/* How often the driver was asked for the parents of a node. */
static uint64_t parents_asked(const struct fake_cuda *driver_fake)
{
    return driver_fake->calls("cuGraphNodeGetDependencies") +
           driver_fake->calls("cuGraphNodeGetDependencies_v2");
}

/* Joins 40 streams under capture to one and checks what the device says of the graph. */
static void capture_is_read(const char *path, bool edge_data)
{
    enum {
        STREAMS = 40
    };
    const struct fake_cuda *driver_fake = fake_open(path);
    struct tarn_device *other = cuda_open_at(path, 0);
    const struct tn_device_ops *ops = other->ops;
    const struct tn_cuda_driver *direct = &tn_cuda_from(other)->driver;
    void *context = tn_cuda_from(other)->context;
    tarn_stream streams[STREAMS];
    tn_graph_node nodes[STREAMS + 1];
    tn_event_handle event = 0;
    uint64_t capture = 9;
    uint32_t count = 9;
    tarn_ptr ptr = sim_alloc_ok(other, MIB);
    void *graph = NULL;

    assert_int_equal(ops->event_create(other, &event), TARN_OK);
    for (int i = 0; i < STREAMS; i++) {
        assert_int_equal(ops->stream_create(other, &streams[i]), TARN_OK);
    }
    assert_int_equal(ops->capture_info(other, streams[0], &capture, nodes, STREAMS, &count),
                     TARN_OK);
    assert_int_equal(capture, 0);
    assert_int_equal(count, 0);
    assert_int_equal(direct->cuCtxPushCurrent_v2(context), TN_CU_SUCCESS);
    assert_int_equal(direct->cuStreamBeginCapture_v2(streams[0], TN_CU_CAPTURE_MODE_GLOBAL),
                     TN_CU_SUCCESS);
    assert_int_equal(ops->capture_info(other, streams[0], &capture, NULL, 0, &count), TARN_OK);
    assert_int_not_equal(capture, 0);
    assert_int_equal(count, 0);
    assert_int_equal(direct->cuMemsetD8Async(ptr, 1, 1, streams[0]), TN_CU_SUCCESS);
    assert_int_equal(ops->event_record(other, event, streams[0]), TARN_OK);
    for (int i = 1; i < STREAMS; i++) {
        assert_int_equal(ops->stream_wait_event(other, streams[i], event), TARN_OK);
        assert_int_equal(direct->cuMemsetD8Async(ptr, 1, 1, streams[i]), TN_CU_SUCCESS);
    }
    for (int i = 1; i < STREAMS; i++) {
        assert_int_equal(ops->event_record(other, event, streams[i]), TARN_OK);
        assert_int_equal(ops->stream_wait_event(other, streams[0], event), TARN_OK);
    }
    driver_fake->set_edge_data(edge_data);
    /* Terminals: as many as there is room for, and how many there are. */
    memset(nodes, 0, sizeof nodes);
    assert_int_equal(ops->capture_info(other, streams[0], &capture, nodes, 2, &count), TARN_OK);
    assert_int_equal(count, STREAMS);
    assert_int_not_equal(nodes[1], 0);
    assert_int_equal(nodes[2], 0);
    driver_fake->set_edge_data(false);
    assert_int_equal(direct->cuMemsetD8Async(ptr, 1, 1, streams[0]), TN_CU_SUCCESS);
    assert_int_equal(ops->capture_info(other, streams[0], &capture, nodes, 1, &count), TARN_OK);
    assert_int_equal(count, 1);
    const tn_graph_node last = nodes[0];

    driver_fake->set_edge_data(edge_data);
    for (uint32_t room = 0; room <= STREAMS + 1; room++) {
        const struct tarn_host_usage before = tarn_host_get_usage();
        const uint64_t asked = parents_asked(driver_fake);

        memset(nodes, 0, sizeof nodes);
        assert_int_equal(ops->graph_node_parents(other, last, room ? nodes : NULL, room, &count),
                         TARN_OK);
        /* For how many, and for as many as there is room for; up to 32 need no host memory. */
        assert_int_equal(parents_asked(driver_fake) - asked, room > 0 ? 2 : 1);
        assert_int_equal(tarn_host_get_usage().alloc_calls - before.alloc_calls, room > 32);
        assert_int_equal(tarn_host_get_usage().live_bytes, before.live_bytes);
        assert_int_equal(count, STREAMS);
        for (uint32_t i = 0; i < STREAMS; i++) {
            assert_int_equal(nodes[i] != 0, i < room);
        }
    }
    const tn_graph_node first = first_of(other, last);
    const uint64_t asked = parents_asked(driver_fake);

    assert_int_equal(ops->graph_node_parents(other, first, nodes, STREAMS, &count), TARN_OK);
    assert_int_equal(count, 0);
    assert_int_equal(parents_asked(driver_fake) - asked, 1);
    count = 77;
    tarn_host_fail_nth(1); /* the places for many edges */
    assert_int_equal(ops->graph_node_parents(other, last, nodes, STREAMS, &count),
                     TARN_ERR_HOST_MEMORY);
    tarn_host_fail_nth(0);
    assert_int_equal(count, 77);
    assert_int_equal(ops->graph_node_parents(other, 12345, nodes, STREAMS, &count),
                     TARN_ERR_DEVICE);
    driver_fake->set_edge_data(false);

    /* The default stream is in none, and asking does not harm the capture. */
    for (tarn_stream stream = 0; stream <= TN_CU_STREAM_LEGACY; stream++) {
        capture = 9;
        assert_int_equal(ops->capture_info(other, stream, &capture, NULL, 0, &count), TARN_OK);
        assert_int_equal(capture, 0);
        assert_int_equal(count, 0);
    }
    /* A capture that failed has no graph to speak of. */
    assert_int_equal(direct->cuMemFree_v2(ptr), TN_CU_STREAM_CAPTURE_UNSUPPORTED);
    capture = 9;
    assert_int_equal(ops->capture_info(other, streams[0], &capture, NULL, 0, &count),
                     TARN_ERR_DEVICE);
    assert_int_equal(capture, 9);
    assert_non_null(strstr(other->ops->last_error(other), "failed before"));
    assert_int_equal(direct->cuStreamEndCapture(streams[0], &graph), TN_CU_SUCCESS);
    assert_int_equal(direct->cuGraphDestroy(graph), TN_CU_SUCCESS);
    assert_int_equal(direct->cuCtxPopCurrent_v2(&context), TN_CU_SUCCESS);
    for (int i = 0; i < STREAMS; i++) {
        assert_int_equal(ops->stream_destroy(other, streams[i]), TARN_OK);
    }
    assert_int_equal(ops->event_destroy(other, event), TARN_OK);
    assert_int_equal(ops->free(other, ptr), TARN_OK);
    assert_int_equal(driver_fake->alive(0), 0);
    tarn_device_close(other);
}

static void graphs_under_capture_are_read(void **state)
{
    (void)state;
    tarn_device_close(device);
    capture_is_read(FAKE_CUDA, false);
    capture_is_read(FAKE_CUDA, true);
    capture_is_read(FAKE_CUDA_11, false);
    capture_is_read(FAKE_CUDA_10, false);
    fake = fake_open(FAKE_CUDA);
    device = cuda_open();
}

/* ---- other processes ---- */

/* What a process shares, and the bytes in it. */
struct shared {
    pid_t process;
    struct tn_ipc_handle handle;
    int descriptor;
};

/* Exit status of the other process: how much went wrong; 99 where the system forbids descriptors
 * of other processes. */
static int share_in_child(const struct shared *shared)
{
    const uint64_t host_bytes = tarn_host_get_usage().live_bytes;
    tarn_ptr address = 0;
    tarn_ptr range = 0;
    uint64_t size = 0;
    tn_page_handle page = 0;
    unsigned char byte = 0;
    int wrong = 0;

    fake->reset(); /* the parent's devices are the parent's */
    device = cuda_open();
    const struct tn_device_ops *ops = device->ops;
    void *context = tn_cuda_from(device)->context;

    wrong += driver()->cuCtxPushCurrent_v2(context) != TN_CU_SUCCESS;
    fake->fail_nth("cuMemGetAddressRange_v2", 1, TN_CU_INVALID_VALUE);
    wrong += ops->ipc_open(device, &shared->handle, &address, &size) != TARN_ERR_DEVICE;
    wrong += fake->alive(0) != 0 || address != 0 || size != 0; /* closed again */
    wrong += ops->ipc_open(device, &shared->handle, &address, &size) != TARN_OK;
    wrong += size != MIB;
    wrong += ops->ipc_open(device, &shared->handle, &address, &size) != TARN_ERR_DEVICE; /* twice */
    wrong += driver()->cuMemcpyDtoH_v2(&byte, address, 1) != TN_CU_SUCCESS || byte != 5;
    wrong += driver()->cuMemsetD8Async(address, 6, 1, 0) != TN_CU_SUCCESS;
    wrong += ops->ipc_close(device, address) != TARN_OK;
    (void)close(0); /* then that may be the number of the page */
    if (ops->page_import(device, shared->process, shared->descriptor, PAGE, &page) != TARN_OK) {
        return strstr(ops->last_error(device), "does not let this process") ? 99 : 50;
    }
    wrong += ops->va_reserve(device, PAGE, &range) != TARN_OK;
    wrong += ops->map(device, range, PAGE, page) != TARN_OK;
    wrong += driver()->cuMemcpyDtoH_v2(&byte, range, 1) != TN_CU_SUCCESS || byte != 7;
    wrong += ops->unmap(device, range, PAGE) != TARN_OK;
    wrong += ops->page_release(device, page) != TARN_OK;
    wrong += ops->va_release(device, range, PAGE) != TARN_OK;
    wrong += ops->page_import(device, shared->process, 9999, PAGE, &page) != TARN_ERR_DEVICE;
    wrong += !strstr(ops->last_error(device), "has no descriptor 9999");
    wrong += fake->alive(0) != 0;
    tarn_device_close(device);
    wrong += fake->depth() != 1;
    return wrong + (tarn_host_get_usage().live_bytes != host_bytes);
}

static void memory_is_shared_with_another_process(void **state)
{
    const struct tn_device_ops *ops = device->ops;
    void *context = tn_cuda_from(device)->context;
    struct shared shared = {.process = getpid()};
    tarn_ptr ptr = 0;
    tarn_ptr range = 0;
    tn_page_handle page = 0;
    unsigned char byte = 0;
    int status = 1;

    (void)state;
    assert_int_equal(ops->alloc(device, MIB, &ptr), TARN_OK);
    assert_int_equal(ops->va_reserve(device, PAGE, &range), TARN_OK);
    assert_int_equal(ops->page_create(device, PAGE, &page), TARN_OK);
    assert_int_equal(ops->map(device, range, PAGE, page), TARN_OK);
    DO(cuCtxPushCurrent_v2(context));
    DO(cuMemsetD8Async(ptr, 5, 1, 0));
    DO(cuMemsetD8Async(range, 7, 1, 0));
    assert_int_equal(ops->ipc_export(device, ptr, &shared.handle), TARN_OK);
    assert_int_equal(ops->page_export(device, page, &shared.descriptor), TARN_OK);
    const pid_t child = fork();
    if (child == 0) {
        void *gone = NULL;

        (void)driver()->cuCtxPopCurrent_v2(&gone);
        child_exit(share_in_child(&shared));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    DO(cuMemcpyDtoH_v2(&byte, ptr, 1));
    assert_int_equal(byte, 6); /* the other process wrote it */
    DO(cuCtxPopCurrent_v2(&context));
    assert_int_equal(close(shared.descriptor), 0);
    assert_int_equal(ops->unmap(device, range, PAGE), TARN_OK);
    assert_int_equal(ops->page_release(device, page), TARN_OK);
    assert_int_equal(ops->va_release(device, range, PAGE), TARN_OK);
    assert_int_equal(ops->free(device, ptr), TARN_OK);
    if (WEXITSTATUS(status) == 99) {
        print_message("skip: the system lets no process take descriptors of another\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_gpu_that_cannot_share_pages_says_so(void **state)
{
    tn_page_handle page = 0;
    int descriptor = 7;

    (void)state;
    fake->set_attribute(TN_CU_ATTRIBUTE_POSIX_HANDLE_SUPPORTED, 0);
    struct tarn_device *other = cuda_open();
    assert_int_equal(other->ops->page_create(other, PAGE, &page), TARN_OK);
    assert_int_equal(other->ops->page_export(other, page, &descriptor), TARN_ERR_DEVICE);
    assert_int_equal(descriptor, 7);
    assert_non_null(strstr(other->ops->last_error(other), "cannot share pages"));
    tn_page_handle imported = 7;

    assert_int_equal(other->ops->page_import(other, getpid(), 0, PAGE, &imported), TARN_ERR_DEVICE);
    assert_int_equal(imported, 7);
    assert_non_null(strstr(other->ops->last_error(other), "cannot share pages"));
    assert_int_equal(other->ops->page_release(other, page), TARN_OK);
    tarn_device_close(other);
}

/* What the driver opens, and the memory that it says it is in. */
static uint64_t opened_at;
static uint64_t opened_base;

static int open_there(uint64_t *address_out, struct tn_cu_ipc_handle handle, unsigned flags)
{
    (void)handle;
    (void)flags;
    *address_out = opened_at;
    return TN_CU_SUCCESS;
}

static int close_there(uint64_t address)
{
    return address == opened_at ? TN_CU_SUCCESS : TN_CU_INVALID_VALUE;
}

static int say_range(uint64_t *base_out, size_t *size_out, uint64_t address)
{
    (void)address;
    *base_out = opened_base;
    *size_out = PAGE;
    return TN_CU_SUCCESS;
}

static void what_the_driver_opens_is_in_its_memory(void **state)
{
    struct tn_cuda_driver *called = &tn_cuda_from(device)->driver;
    const struct tn_cuda_driver right = *called;
    const struct tn_ipc_handle handle = {{0}};
    static const struct {
        uint64_t base;
        uint64_t at;
        uint64_t size; /* 0: refused */
    } cases[] = {
        {PAGE, PAGE, PAGE},
        {PAGE, PAGE + 512, PAGE - 512},
        {PAGE, PAGE - 1, 0},
        {PAGE, 2 * PAGE + 1, 0},
    };

    (void)state;
    called->cuIpcOpenMemHandle_v2 = open_there;
    called->cuIpcCloseMemHandle = close_there;
    called->cuMemGetAddressRange_v2 = say_range;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tarn_ptr address = 7;
        uint64_t size = 7;

        opened_base = cases[i].base;
        opened_at = cases[i].at;
        const enum tarn_status st = device->ops->ipc_open(device, &handle, &address, &size);

        assert_int_equal(st, cases[i].size ? TARN_OK : TARN_ERR_DEVICE);
        assert_int_equal(address, cases[i].size ? cases[i].at : 7);
        assert_int_equal(size, cases[i].size ? cases[i].size : 7);
        if (st) {
            expect_text("the driver opened 0x");
        } else {
            assert_int_equal(device->ops->ipc_close(device, address), TARN_OK);
        }
    }
    *called = right;
}

/* The driver has what it needs once a page is imported. */
static void an_import_keeps_no_descriptor(void **state)
{
    tn_page_handle page = 0;
    tn_page_handle imported = 0;
    int descriptor = -1;

    (void)state;
    assert_int_equal(device->ops->page_create(device, PAGE, &page), TARN_OK);
    assert_int_equal(device->ops->page_export(device, page, &descriptor), TARN_OK);
    fake->fail_nth("cuMemImportFromShareableHandle", 1, TN_CU_INVALID_VALUE);
    const int descriptors = open_descriptors();

    assert_int_equal(device->ops->page_import(device, getpid(), descriptor, PAGE, &imported),
                     TARN_ERR_DEVICE);
    assert_int_equal(open_descriptors(), descriptors);
    assert_int_equal(device->ops->page_import(device, getpid(), descriptor, PAGE, &imported),
                     TARN_OK);
    assert_int_equal(open_descriptors(), descriptors + 1); /* the fake driver's own */
    assert_int_equal(device->ops->page_release(device, imported), TARN_OK);
    assert_int_equal(open_descriptors(), descriptors);
    assert_int_equal(close(descriptor), 0);
    assert_int_equal(device->ops->page_release(device, page), TARN_OK);
}

static void descriptors_may_be_refused(void **state)
{
    tn_page_handle page = 7;

    (void)state;
    fail_calls("pidfd_open", 0, 1, EPERM);
    assert_int_equal(device->ops->page_import(device, getpid(), 0, PAGE, &page), TARN_ERR_DEVICE);
    assert_true(fail_none());
    assert_int_equal(page, 7);
    expect_text("the system does not let this process take descriptors of process ");
}

static void streams_of_other_gpus_are_told(void **state)
{
    tarn_stream stream = 0;

    (void)state;
    fresh(2);
    assert_int_equal(device->ops->stream_create(device, &stream), TARN_OK);
    assert_int_equal(device->ops->stream_check(device, stream), TARN_OK);
    assert_int_equal(device->ops->stream_check(device, 0), TARN_OK);
    fake->claim_stream(stream, 1);
    assert_int_equal(device->ops->stream_check(device, stream), TARN_ERR_INVALID_ARGUMENT);
    assert_string_equal(device->ops->last_error(device), "the stream is not one of GPU 0");
    assert_int_equal(device->ops->stream_destroy(device, stream), TARN_OK);
    fresh(1);
}

static void peers_are_enabled_once(void **state)
{
    bool reaches = false;

    (void)state;
    fake->set_devices(2, GIB);
    struct tarn_device *peer = cuda_open_at(FAKE_CUDA, 1);
    assert_int_equal(device->ops->peer_reaches(device, peer, &reaches), TARN_OK);
    assert_true(reaches);
    assert_int_equal(device->ops->peer_enable(device, peer), TARN_OK);
    assert_int_equal(device->ops->peer_enable(device, peer), TARN_OK); /* the driver objects */
    tarn_device_close(peer);
    fake->set_devices(1, GIB);
}

/* Without NVML's number the device's own says which it is. */
static void a_gpu_has_a_number_of_its_own(void **state)
{
    int number = 77;

    (void)state;
    assert_int_equal(device->ops->processes(device, no_process, NULL, &number), TARN_OK);
    assert_int_equal(number, 3);
    tn_cuda_from(device)->nvml.get_index = NULL;
    assert_int_equal(device->ops->processes(device, no_process, NULL, &number), TARN_OK);
    assert_int_equal(number, device->ordinal);
}

static void the_current_context_is_the_threads(void **state)
{
    const struct tn_cuda *cuda = tn_cuda_from(device);
    void *context = cuda->context;

    (void)state;
    assert_true(tn_cuda_get_current(cuda, &context));
    assert_null(context);
    DO(cuCtxPushCurrent_v2(cuda->context));
    assert_true(tn_cuda_get_current(cuda, &context));
    assert_ptr_equal(context, cuda->context);
    fake->fail_nth("cuCtxGetCurrent", 1, TN_CU_NOT_INITIALIZED);
    assert_false(tn_cuda_get_current(cuda, &context));
    assert_null(context);
    DO(cuCtxPopCurrent_v2(&context));
}

static void other_devices_are_no_gpus(void **state)
{
    struct tarn_device *sim = sim_open(GIB);

    (void)state;
    assert_null(tn_cuda_from(NULL));
    assert_null(tn_cuda_from(sim));
    assert_non_null(tn_cuda_from(device));
    assert_true(device->ops->now_ns(device) > 0);
    sim_close(sim);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_gpu_tells_what_it_is),
        CASE(a_gpu_may_be_open_twice),
        CASE(a_number_without_a_gpu_is_refused),
        CASE(each_step_of_opening_may_fail),
        CASE(opening_needs_host_memory),
        CASE(a_driver_may_show_no_gpu),
        CASE(every_call_of_every_operation_may_fail),
        CASE(every_operation_leaves_the_context_as_it_was),
        CASE(no_operation_spoils_a_capture),
        CASE(a_driver_that_shut_down_takes_everything_back),
        CASE(a_forked_child_gets_an_error_from_every_call),
        CASE(last_errors_are_per_thread_and_device),
        CASE(a_lost_device_says_so),
        CASE(pages_ask_for_what_the_gpu_can_do),
        CASE(a_gpu_without_virtual_memory_says_so),
        CASE(a_gpu_without_pools_says_so),
        CASE(a_mapping_without_access_does_not_stay),
        CASE(access_is_given_to_gpus_only),
        CASE(the_pool_is_changed_by_its_first_use_only),
        CASE(graphs_under_capture_are_read),
        CASE(memory_is_shared_with_another_process),
        CASE(a_gpu_that_cannot_share_pages_says_so),
        CASE(peers_are_enabled_once),
        CASE(what_the_driver_opens_is_in_its_memory),
        CASE(an_import_keeps_no_descriptor),
        CASE(descriptors_may_be_refused),
        CASE(streams_of_other_gpus_are_told),
        CASE(a_gpu_has_a_number_of_its_own),
        CASE(the_current_context_is_the_threads),
        CASE(other_devices_are_no_gpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
