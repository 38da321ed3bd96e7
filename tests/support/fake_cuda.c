/* SPDX-License-Identifier: MIT */
/*
 * See fake_cuda.h. FAKE_CUDA_LEVEL says what the library exports: 13 all of it, 11 what a driver of
 * that age has (the first cuGetProcAddress, edges without data), 10 no cuGetProcAddress at all.
 * With FAKE_CUDA_INCOMPLETE cuMemCreate is not there.
 *
 * One lock guards everything; the simulated devices have their own below it.
 */
#include "support/fake_cuda.h"

#include "device/cuda_abi.h"
#include "device/cuda_driver.h"
#include "device/device_ops.h"
#include "device/sim_device.h"
#include "tarn/sim.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXPORT       __attribute__((visibility("default")))
#define BASE         ((uint64_t)0x7f0000000000) /* where a simulated device begins by itself */
#define FAR          ((uint64_t)1 << 40)        /* between two devices */
#define LOSSY        725                        /* CUDA_ERROR_LOSSY_QUERY */
#define TURNS        16
#define NODES_MAX    256
#define WORKS_MAX    256
#define STACK_MAX    8
#define GRAPHS_MAX   16
#define WRITES_MAX   64
#define WRITES_RANGE ((size_t)64 << 10)

enum call {
#define TN_CUDA_SYM(exported, plain, since, need, parameters) CALL_##exported,
#include "device/cuda_syms.def"
#undef TN_CUDA_SYM
    CALL_COUNT
};

#define TN_CUDA_SYM(exported, plain, since, need, parameters) EXPORT int exported parameters;
#include "device/cuda_syms.def"
#undef TN_CUDA_SYM

static const char *const names[CALL_COUNT] = {
#define TN_CUDA_SYM(exported, plain, since, need, parameters) #exported,
#include "device/cuda_syms.def"
#undef TN_CUDA_SYM
};

struct plan {
    uint64_t left; /* calls until the one that fails; 0 = none */
    int result;
};

/* Work that a graph keeps: bytes set or copied. */
struct work {
    uint64_t to;
    uint64_t from; /* 0: set to `value` */
    size_t size;
    unsigned char value;
};

struct graph {
    uint64_t stream; /* that the capture began on */
    int device;
    int mode;
    bool capturing;
    bool used;
    size_t count;
    struct work works[WORKS_MAX];
};

/* A word of the host that the stream sets once it gets there. */
struct write {
    struct tarn_device *sim;
    tn_event_handle reached;
    _Atomic uint32_t *to;
    uint32_t value;
};

static struct {
    int version;
    int devices;
    uint64_t bytes;
    bool down;
    bool edge_data;
    bool spoiled;
    uint64_t calls[CALL_COUNT];
    struct plan plans[CALL_COUNT + 1]; /* the last: any */
    bool hidden[CALL_COUNT];
    int attributes[256];
    uint64_t threshold;
    int retained[FAKE_CUDA_DEVICES_MAX];
    bool peers[FAKE_CUDA_DEVICES_MAX][FAKE_CUDA_DEVICES_MAX];
    uint64_t claimed_stream;
    int claimed_device;
    struct tarn_device *sims[FAKE_CUDA_DEVICES_MAX];
    struct graph graphs[GRAPHS_MAX];
    struct write writes[WRITES_MAX];
    size_t write_count;
    struct tn_nvml_process processes[64];
    unsigned process_count;
    int nvml_init_result;
    int nvml_handle_result;
    int nvml_processes_result;
    struct tn_nvml_memory nvml_memory;
    int nvml_memory_result;
} fake;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static char contexts[FAKE_CUDA_DEVICES_MAX]; /* their addresses are the handles */
static char pools[FAKE_CUDA_DEVICES_MAX];

static _Thread_local void *stack[STACK_MAX];
static _Thread_local int stack_depth;
static _Thread_local int capture_mode;
/* What capture infos point at, in turns. */
static uint64_t nodes_told[TURNS][NODES_MAX];
static atomic_uint turns;
#if FAKE_CUDA_LEVEL >= 13
static const struct tn_cu_edge edges_told[NODES_MAX];
#endif

/* ---- steering ---- */

static void sims_close(void)
{
    fake.write_count = 0;
    for (int i = 0; i < FAKE_CUDA_DEVICES_MAX; i++) {
        tarn_device_close(fake.sims[i]);
        fake.sims[i] = NULL;
    }
}

static void sims_open(void)
{
    for (int i = 0; i < fake.devices; i++) {
        const struct tarn_sim_options options = {
            .struct_size = sizeof options, .ordinal = i, .capacity = fake.bytes, .backed = true};

        if (tarn_sim_open(&options, &fake.sims[i], NULL) != TARN_OK) {
            abort();
        }
    }
}

static void set_devices(int count, uint64_t bytes)
{
    (void)pthread_mutex_lock(&lock);
    sims_close();
    fake.devices = count;
    fake.bytes = bytes;
    sims_open();
    (void)pthread_mutex_unlock(&lock);
}

static void reset(void)
{
    (void)pthread_mutex_lock(&lock);
    sims_close();
    memset(&fake, 0, sizeof fake);
    fake.version = FAKE_CUDA_LEVEL >= 13 ? 13000 : 11080;
    fake.attributes[TN_CU_ATTRIBUTE_VMM_SUPPORTED] = 1;
    fake.attributes[TN_CU_ATTRIBUTE_POSIX_HANDLE_SUPPORTED] = 1;
    fake.attributes[TN_CU_ATTRIBUTE_RDMA_WITH_VMM_SUPPORTED] = 1;
    fake.attributes[TN_CU_ATTRIBUTE_MEMORY_POOLS_SUPPORTED] = 1;
    (void)pthread_mutex_unlock(&lock);
    set_devices(1, (uint64_t)1 << 30);
}

static void start(void)
{
    (void)pthread_once(&once, reset);
}

static enum call call_find(const char *exported)
{
    for (int i = 0; i < CALL_COUNT; i++) {
        if (strcmp(names[i], exported) == 0) {
            return (enum call)i;
        }
    }
    (void)fprintf(stderr, "fake_cuda: no function %s\n", exported);
    abort();
}

static void set_version(int version)
{
    fake.version = version;
}

static void set_attribute(int attribute, int value)
{
    fake.attributes[attribute] = value;
}

static void hide(const char *exported)
{
    fake.hidden[call_find(exported)] = true;
}

static void fail_nth(const char *exported, uint64_t n, int result)
{
    (void)pthread_mutex_lock(&lock);
    fake.plans[exported ? call_find(exported) : CALL_COUNT] = (struct plan){n, result};
    (void)pthread_mutex_unlock(&lock);
}

static uint64_t calls(const char *exported)
{
    (void)pthread_mutex_lock(&lock);
    const uint64_t count = fake.calls[call_find(exported)];
    (void)pthread_mutex_unlock(&lock);
    return count;
}

static void shut_down(bool down)
{
    fake.down = down;
}

static void set_edge_data(bool carry)
{
    fake.edge_data = carry;
}

static bool block(int device, uint64_t stream)
{
    return tarn_sim_block_stream(fake.sims[device], stream) == TARN_OK;
}

/* What streams have got to. The lock is held. */
static void writes_settle(void)
{
    size_t kept = 0;

    for (size_t i = 0; i < fake.write_count; i++) {
        const struct write write = fake.writes[i];
        const struct tn_device_ops *ops = write.sim->ops;

        if (ops->event_query(write.sim, write.reached) == TARN_OK) {
            (void)ops->event_destroy(write.sim, write.reached);
            atomic_store(write.to, write.value);
        } else {
            fake.writes[kept++] = write;
        }
    }
    fake.write_count = kept;
}

static bool unblock(int device, uint64_t stream)
{
    const bool done = tarn_sim_unblock_stream(fake.sims[device], stream) == TARN_OK;

    (void)pthread_mutex_lock(&lock);
    writes_settle();
    (void)pthread_mutex_unlock(&lock);
    return done;
}

static void *context_now(void)
{
    return stack_depth > 0 ? stack[stack_depth - 1] : NULL;
}

static int depth_now(void)
{
    return stack_depth;
}

static int mode_now(void)
{
    return capture_mode;
}

static int retained(int device)
{
    return fake.retained[device];
}

static bool spoiled(void)
{
    return fake.spoiled;
}

static struct tarn_sim_counters counters_of(int device)
{
    struct tarn_sim_counters counters = {.struct_size = sizeof counters};

    tarn_sim_get_counters(fake.sims[device], &counters);
    return counters;
}

static uint64_t used_bytes(int device)
{
    return counters_of(device).used_bytes;
}

static uint64_t alive(int device)
{
    const struct tarn_sim_counters counters = counters_of(device);

    return counters.live_allocations + counters.live_pages + counters.live_mappings +
           counters.live_reservations + counters.live_events + counters.live_streams;
}

static void claim_stream(uint64_t stream, int device)
{
    fake.claimed_stream = stream;
    fake.claimed_device = device;
}

static void set_release_threshold(uint64_t bytes)
{
    fake.threshold = bytes;
}

static uint64_t release_threshold(void)
{
    return fake.threshold;
}

static void set_processes(const struct tn_nvml_process *processes, unsigned count)
{
    memcpy(fake.processes, processes, count * sizeof *processes);
    fake.process_count = count;
}

static void set_nvml_results(int init, int handle, int processes)
{
    fake.nvml_init_result = init;
    fake.nvml_handle_result = handle;
    fake.nvml_processes_result = processes;
}

static void set_nvml_memory(const struct tn_nvml_memory *memory, int result)
{
    fake.nvml_memory = *memory;
    fake.nvml_memory_result = result;
}

EXPORT fake_cuda_function fake_cuda;

const struct fake_cuda *fake_cuda(void)
{
    static const struct fake_cuda table = {
        .reset = reset,
        .set_version = set_version,
        .set_devices = set_devices,
        .set_attribute = set_attribute,
        .hide = hide,
        .fail_nth = fail_nth,
        .calls = calls,
        .shut_down = shut_down,
        .set_edge_data = set_edge_data,
        .block = block,
        .unblock = unblock,
        .context = context_now,
        .depth = depth_now,
        .mode = mode_now,
        .retained = retained,
        .spoiled = spoiled,
        .used_bytes = used_bytes,
        .alive = alive,
        .claim_stream = claim_stream,
        .set_release_threshold = set_release_threshold,
        .release_threshold = release_threshold,
        .set_processes = set_processes,
        .set_nvml_results = set_nvml_results,
        .set_nvml_memory = set_nvml_memory,
    };

    start();
    return &table;
}

/* ---- what every call begins with ---- */

static bool plan_is_due(struct plan *plan)
{
    return plan->left > 0 && --plan->left == 0;
}

/* Counts the call; 0 when it may go on. */
static int enter(enum call call)
{
    int result = TN_CU_SUCCESS;

    start();
    (void)pthread_mutex_lock(&lock);
    writes_settle();
    fake.calls[call]++;
    if (plan_is_due(&fake.plans[call])) {
        result = fake.plans[call].result;
    } else if (plan_is_due(&fake.plans[CALL_COUNT])) {
        result = fake.plans[CALL_COUNT].result;
    } else if (fake.down) {
        result = TN_CU_DEINITIALIZED;
    }
    (void)pthread_mutex_unlock(&lock);
    return result;
}

/* The same for what works on the current context's device. */
static int enter_context(enum call call, struct tarn_device **sim_out)
{
    const int result = enter(call);
    const char *context = context_now();

    if (result == TN_CU_SUCCESS && !context) {
        return TN_CU_INVALID_CONTEXT;
    }
    *sim_out = context ? fake.sims[context - contexts] : NULL;
    return result;
}

/* The same for what is unsafe while a capture in global mode is under way. */
static int enter_unsafe(enum call call, struct tarn_device **sim_out)
{
    const int result = enter_context(call, sim_out);

    for (int i = 0; result == TN_CU_SUCCESS && i < GRAPHS_MAX; i++) {
        if (fake.graphs[i].capturing && fake.graphs[i].mode == TN_CU_CAPTURE_MODE_GLOBAL &&
            capture_mode != TN_CU_CAPTURE_MODE_RELAXED) {
            fake.spoiled = true;
            return TN_CU_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    return result;
}

static int result_of(enum tarn_status st)
{
    switch ((int)st) {
    case TARN_OK:
        return TN_CU_SUCCESS;
    case TARN_ERR_OUT_OF_MEMORY:
    case TARN_ERR_HOST_MEMORY:
        return TN_CU_OUT_OF_MEMORY;
    case TARN_ERR_NOT_READY:
        return TN_CU_NOT_READY;
    default:
        return TN_CU_INVALID_VALUE;
    }
}

/* ---- the driver, devices, contexts ---- */

int cuInit(unsigned flags)
{
    const int result = enter(CALL_cuInit);

    if (result == TN_CU_SUCCESS && flags != 0) {
        return TN_CU_INVALID_VALUE;
    }
    return result == TN_CU_SUCCESS && fake.devices == 0 ? TN_CU_NO_DEVICE : result;
}

int cuDriverGetVersion(int *version)
{
    const int result = enter(CALL_cuDriverGetVersion);

    *version = fake.version;
    return result;
}

static const struct {
    int result;
    const char *name;
    const char *words;
} errors[] = {
    {TN_CU_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {TN_CU_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {TN_CU_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {TN_CU_DEINITIALIZED, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
    {TN_CU_STUB_LIBRARY, "CUDA_ERROR_STUB_LIBRARY", "CUDA driver is a stub library"},
    {TN_CU_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {TN_CU_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {TN_CU_ECC_UNCORRECTABLE, "CUDA_ERROR_ECC_UNCORRECTABLE",
     "uncorrectable ECC error encountered"},
    {TN_CU_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS",
     "an illegal memory access was encountered"},
    {TN_CU_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", NULL},
};

static int error_text(int result, bool name, const char **text)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        if (errors[i].result == result) {
            *text = name ? errors[i].name : errors[i].words;
            return TN_CU_SUCCESS;
        }
    }
    *text = NULL;
    return TN_CU_INVALID_VALUE;
}

int cuGetErrorName(int result, const char **text)
{
    return error_text(result, true, text);
}

int cuGetErrorString(int result, const char **text)
{
    return error_text(result, false, text);
}

int cuDeviceGetCount(int *count)
{
    const int result = enter(CALL_cuDeviceGetCount);

    *count = fake.devices > 0 ? fake.devices : 0;
    return result;
}

int cuDeviceGet(int *device, int ordinal)
{
    const int result = enter(CALL_cuDeviceGet);

    *device = ordinal;
    return result ? result : ordinal < fake.devices ? TN_CU_SUCCESS : TN_CU_INVALID_DEVICE;
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    const int result = enter(CALL_cuDeviceGetAttribute);

    (void)device;
    *value = fake.attributes[attribute];
    return result;
}

int cuDeviceGetPCIBusId(char *text, int size, int device)
{
    const int result = enter(CALL_cuDeviceGetPCIBusId);

    (void)snprintf(text, (size_t)size, "0000:%02X:00.0", device + 1);
    return result;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    const int result = enter(CALL_cuDeviceTotalMem_v2);

    (void)device;
    *bytes = fake.bytes;
    return result;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
    const int result = enter(CALL_cuDevicePrimaryCtxRetain);

    if (result == TN_CU_SUCCESS) {
        *context = &contexts[device];
        (void)pthread_mutex_lock(&lock);
        fake.retained[device]++;
        (void)pthread_mutex_unlock(&lock);
    }
    return result;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    const int result = enter(CALL_cuDevicePrimaryCtxRelease_v2);

    (void)pthread_mutex_lock(&lock);
    const bool was_retained = result != TN_CU_SUCCESS || fake.retained[device]-- > 0;
    (void)pthread_mutex_unlock(&lock);

    return was_retained ? result : TN_CU_INVALID_CONTEXT;
}

int cuCtxGetCurrent(void **context)
{
    const int result = enter(CALL_cuCtxGetCurrent);

    if (result == TN_CU_SUCCESS) {
        *context = context_now();
    }
    return result;
}

int cuCtxPushCurrent_v2(void *context)
{
    const int result = enter(CALL_cuCtxPushCurrent_v2);

    if (result == TN_CU_SUCCESS && stack_depth < STACK_MAX) {
        stack[stack_depth++] = context;
    }
    return result;
}

int cuCtxPopCurrent_v2(void **context)
{
    const int result = enter(CALL_cuCtxPopCurrent_v2);

    if (result == TN_CU_SUCCESS && stack_depth == 0) {
        return TN_CU_INVALID_CONTEXT;
    }
    if (result == TN_CU_SUCCESS) {
        *context = stack[--stack_depth];
    }
    return result;
}

int cuCtxSynchronize(void)
{
    struct tarn_device *sim = NULL;
    const int result = enter_unsafe(CALL_cuCtxSynchronize, &sim);

    return result ? result : result_of(sim->ops->device_wait(sim));
}

/* ---- plain memory and copies ---- */

int cuMemAlloc_v2(uint64_t *address, size_t size)
{
    struct tarn_device *sim = NULL;
    const int result = enter_unsafe(CALL_cuMemAlloc_v2, &sim);

    return result ? result : result_of(sim->ops->alloc(sim, size, address));
}

int cuMemFree_v2(uint64_t address)
{
    struct tarn_device *sim = NULL;
    const int result = enter_unsafe(CALL_cuMemFree_v2, &sim);

    return result ? result : address == 0 ? TN_CU_SUCCESS : result_of(sim->ops->free(sim, address));
}

int cuMemGetAddressRange_v2(uint64_t *base, size_t *size, uint64_t address)
{
    struct tarn_device *sim = NULL;
    int result = enter_context(CALL_cuMemGetAddressRange_v2, &sim);
    const struct tn_sim_range *range =
        result ? NULL : tn_sim_space_find(&tn_sim_from(sim)->space, address);

    if (result == TN_CU_SUCCESS && !range) {
        result = TN_CU_NOT_FOUND;
    } else if (result == TN_CU_SUCCESS) {
        *base = range->start;
        *size = range->size;
    }
    return result;
}

int cuMemGetInfo_v2(size_t *unused, size_t *total)
{
    struct tarn_device *sim = NULL;
    const int result = enter_context(CALL_cuMemGetInfo_v2, &sim);

    return result ? result : result_of(sim->ops->memory_info(sim, unused, total));
}

/* Host memory behind an address of any device. */
static void *host_of(uint64_t address, size_t size)
{
    void *host = NULL;

    for (int i = 0; i < fake.devices && !host; i++) {
        host = tarn_sim_host_memory(fake.sims[i], address, size);
    }
    return host;
}

/* One side of a copy, which may be the host's own memory. */
static void *side_of(uint64_t address, size_t size)
{
    void *host = host_of(address, size);

    return host ? host : (void *)(uintptr_t)address;
}

int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size)
{
    struct tarn_device *sim = NULL;
    const int result = enter_unsafe(CALL_cuMemcpyHtoD_v2, &sim);
    void *host = result ? NULL : host_of(to, size);

    if (!host) {
        return result ? result : TN_CU_INVALID_VALUE;
    }
    memcpy(host, from, size);
    return TN_CU_SUCCESS;
}

int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size)
{
    struct tarn_device *sim = NULL;
    const int result = enter_unsafe(CALL_cuMemcpyDtoH_v2, &sim);
    const void *host = result ? NULL : host_of(from, size);

    if (!host) {
        return result ? result : TN_CU_INVALID_VALUE;
    }
    memcpy(to, host, size);
    return TN_CU_SUCCESS;
}

static int work_do(const struct work *work)
{
    const void *from = work->from ? side_of(work->from, work->size) : NULL;
    void *to = from ? side_of(work->to, work->size) : host_of(work->to, work->size);

    if (!to) {
        return TN_CU_INVALID_VALUE;
    }
    if (from) {
        memmove(to, from, work->size);
    } else {
        memset(to, work->value, work->size);
    }
    return TN_CU_SUCCESS;
}

static uint64_t capture_of(struct tarn_device *sim, uint64_t stream)
{
    uint64_t capture = 0;
    uint32_t count = 0;

    return sim->ops->capture_info(sim, stream, &capture, NULL, 0, &count) ? 0 : capture;
}

/* The graph that work on the stream goes into, or NULL. */
static struct graph *graph_of(struct tarn_device *sim, uint64_t stream)
{
    const uint64_t capture = capture_of(sim, stream);

    for (int i = 0; capture != 0 && i < GRAPHS_MAX; i++) {
        if (fake.graphs[i].capturing && fake.sims[fake.graphs[i].device] == sim &&
            capture_of(sim, fake.graphs[i].stream) == capture) {
            return &fake.graphs[i];
        }
    }
    return NULL;
}

/* Contents change at once, also where a test has blocked the stream. */
static int work_queue(struct tarn_device *sim, uint64_t stream, const struct work *work)
{
    (void)pthread_mutex_lock(&lock);
    struct graph *graph = graph_of(sim, stream);
    int result = result_of(tarn_sim_enqueue_ns(sim, stream, 0));

    if (result == TN_CU_SUCCESS && !graph) {
        result = work_do(work);
    } else if (result == TN_CU_SUCCESS && graph->count < WORKS_MAX) {
        graph->works[graph->count++] = *work;
    }
    (void)pthread_mutex_unlock(&lock);
    return result;
}

int cuMemcpyAsync(uint64_t to, uint64_t from, size_t size, uint64_t stream)
{
    const struct work work = {.to = to, .from = from, .size = size};
    struct tarn_device *sim = NULL;
    const int result = enter_context(CALL_cuMemcpyAsync, &sim);

    return result ? result : work_queue(sim, stream, &work);
}

int cuMemcpyPeerAsync(uint64_t to, void *to_context, uint64_t from, void *from_context, size_t size,
                      uint64_t stream)
{
    const struct work work = {.to = to, .from = from, .size = size};
    struct tarn_device *sim = NULL;
    const int result = enter_context(CALL_cuMemcpyPeerAsync, &sim);

    (void)to_context;
    (void)from_context;
    return result ? result : work_queue(sim, stream, &work);
}

int cuMemsetD8Async(uint64_t to, unsigned char value, size_t size, uint64_t stream)
{
    const struct work work = {.to = to, .size = size, .value = value};
    struct tarn_device *sim = NULL;
    const int result = enter_context(CALL_cuMemsetD8Async, &sim);

    return result ? result : work_queue(sim, stream, &work);
}

/* ---- pinned host memory ---- */

int cuMemHostAlloc(void **memory, size_t size, unsigned flags)
{
    struct tarn_device *sim = NULL;
    const int result = enter_unsafe(CALL_cuMemHostAlloc, &sim);

    if (result == TN_CU_SUCCESS && flags != TN_CU_HOST_PORTABLE) {
        return TN_CU_INVALID_VALUE;
    }
    return result ? result : result_of(sim->ops->host_alloc(sim, size, memory));
}

int cuMemFreeHost(void *memory)
{
    struct tarn_device *sim = NULL;
    const int result = enter_unsafe(CALL_cuMemFreeHost, &sim);

    return result ? result : result_of(sim->ops->host_free(sim, memory));
}

int cuMemHostRegister_v2(void *memory, size_t size, unsigned flags)
{
    struct tarn_device *sim = NULL;
    const int result = enter_unsafe(CALL_cuMemHostRegister_v2, &sim);

    if (result == TN_CU_SUCCESS && flags != TN_CU_HOST_PORTABLE) {
        return TN_CU_INVALID_VALUE;
    }
    return result ? result : result_of(sim->ops->host_register(sim, memory, size));
}

int cuMemHostUnregister(void *memory)
{
    struct tarn_device *sim = NULL;
    const int result = enter_unsafe(CALL_cuMemHostUnregister, &sim);

    (void)pthread_mutex_lock(&lock);
    for (size_t i = 0; result == TN_CU_SUCCESS && i < fake.write_count; i++) {
        const size_t offset = (uintptr_t)fake.writes[i].to - (uintptr_t)memory;

        fake.spoiled |= offset < WRITES_RANGE; /* it would land in somebody else's memory */
    }
    (void)pthread_mutex_unlock(&lock);
    return result ? result : result_of(sim->ops->host_unregister(sim, memory));
}

/* ---- events and streams ---- */

int cuMemHostGetDevicePointer_v2(uint64_t *address, void *memory, unsigned flags)
{
    struct tarn_device *sim = NULL;
    const int result = enter_context(CALL_cuMemHostGetDevicePointer_v2, &sim);

    if (result == TN_CU_SUCCESS && flags != 0) {
        return TN_CU_INVALID_VALUE;
    }
    if (result == TN_CU_SUCCESS) {
        *address = (uintptr_t)memory;
    }
    return result;
}

#if FAKE_CUDA_LEVEL >= 11
int cuStreamWriteValue32_v2(uint64_t stream, uint64_t address, uint32_t value, unsigned flags)
{
    struct tarn_device *sim = NULL;
    const int result = enter_context(CALL_cuStreamWriteValue32_v2, &sim);
    struct write write = {.sim = sim, .to = (_Atomic uint32_t *)(uintptr_t)address, .value = value};

    if (result) {
        return result;
    }
    if (flags != 0 || sim->ops->event_create(sim, &write.reached) != TARN_OK) {
        return TN_CU_INVALID_VALUE;
    }
    (void)pthread_mutex_lock(&lock);
    const bool queued = fake.write_count < WRITES_MAX &&
                        sim->ops->event_record(sim, write.reached, stream) == TARN_OK;

    if (queued) {
        fake.writes[fake.write_count++] = write;
    } else {
        (void)sim->ops->event_destroy(sim, write.reached);
    }
    (void)pthread_mutex_unlock(&lock);
    return queued ? TN_CU_SUCCESS : TN_CU_INVALID_VALUE;
}
#endif

int cuEventCreate(uint64_t *event, unsigned flags)
{
    struct tarn_device *sim = NULL;
    const int result = enter_context(CALL_cuEventCreate, &sim);

    if (result == TN_CU_SUCCESS && flags != TN_CU_EVENT_DISABLE_TIMING) {
        return TN_CU_INVALID_VALUE;
    }
    return result ? result : result_of(sim->ops->event_create(sim, event));
}

int cuEventDestroy_v2(uint64_t event)
{
    struct tarn_device *sim = NULL;
    const int result = enter_context(CALL_cuEventDestroy_v2, &sim);

    return result ? result : result_of(sim->ops->event_destroy(sim, event));
}

int cuEventRecord(uint64_t event, uint64_t stream)
{
    struct tarn_device *sim = NULL;
    const int result = enter_context(CALL_cuEventRecord, &sim);

    return result ? result : result_of(sim->ops->event_record(sim, event, stream));
}

int cuEventQuery(uint64_t event)
{
    struct tarn_device *sim = NULL;
    const int result = enter_unsafe(CALL_cuEventQuery, &sim);

    return result ? result : result_of(sim->ops->event_query(sim, event));
}

int cuEventSynchronize(uint64_t event)
{
    struct tarn_device *sim = NULL;
    const int result = enter_unsafe(CALL_cuEventSynchronize, &sim);

    return result ? result : result_of(sim->ops->event_wait(sim, event));
}

int cuStreamCreate(uint64_t *stream, unsigned flags)
{
    struct tarn_device *sim = NULL;
    const int result = enter_context(CALL_cuStreamCreate, &sim);

    if (result == TN_CU_SUCCESS && flags != TN_CU_STREAM_NON_BLOCKING) {
        return TN_CU_INVALID_VALUE;
    }
    return result ? result : result_of(sim->ops->stream_create(sim, stream));
}

int cuStreamDestroy_v2(uint64_t stream)
{
    struct tarn_device *sim = NULL;
    const int result = enter_context(CALL_cuStreamDestroy_v2, &sim);

    return result ? result : result_of(sim->ops->stream_destroy(sim, stream));
}

int cuStreamSynchronize(uint64_t stream)
{
    struct tarn_device *sim = NULL;
    const int result = enter_unsafe(CALL_cuStreamSynchronize, &sim);

    return result ? result : result_of(sim->ops->stream_wait(sim, stream));
}

int cuStreamGetCtx(uint64_t stream, void **context)
{
    struct tarn_device *sim = NULL;
    const int result = enter_context(CALL_cuStreamGetCtx, &sim);

    if (result == TN_CU_SUCCESS) {
        const bool claimed = fake.claimed_stream != 0 && stream == fake.claimed_stream;

        *context = &contexts[claimed ? fake.claimed_device : sim->ordinal];
    }
    return result;
}

int cuStreamWaitEvent(uint64_t stream, uint64_t event, unsigned flags)
{
    struct tarn_device *sim = NULL;
    const int result = enter_context(CALL_cuStreamWaitEvent, &sim);

    if (result == TN_CU_SUCCESS && flags != 0) {
        return TN_CU_INVALID_VALUE;
    }
    return result ? result : result_of(sim->ops->stream_wait_event(sim, stream, event));
}

/* ---- captures and graphs ---- */

int cuThreadExchangeStreamCaptureMode(int *mode)
{
    const int result = enter(CALL_cuThreadExchangeStreamCaptureMode);

    if (result == TN_CU_SUCCESS) {
        const int before = capture_mode;

        capture_mode = *mode;
        *mode = before;
    }
    return result;
}

/* A graph whose capture begins on the stream; NULL when there are too many. */
static struct graph *graph_begin(struct tarn_device *sim, uint64_t stream, int mode)
{
    for (int i = 0; i < GRAPHS_MAX; i++) {
        if (!fake.graphs[i].used) {
            fake.graphs[i] = (struct graph){.stream = stream,
                                            .device = sim->ordinal,
                                            .mode = mode,
                                            .capturing = true,
                                            .used = true};
            return &fake.graphs[i];
        }
    }
    return NULL;
}

int cuStreamBeginCapture_v2(uint64_t stream, int mode)
{
    struct tarn_device *sim = NULL;
    int result = enter_context(CALL_cuStreamBeginCapture_v2, &sim);

    if (result == TN_CU_SUCCESS && (stream <= 1 || capture_of(sim, stream) != 0)) {
        return TN_CU_INVALID_VALUE;
    }
    if (result == TN_CU_SUCCESS) {
        (void)pthread_mutex_lock(&lock);
        result = graph_begin(sim, stream, mode)
                     ? result_of(tarn_sim_set_capturing(sim, stream, true))
                     : TN_CU_OUT_OF_MEMORY;
        (void)pthread_mutex_unlock(&lock);
    }
    return result;
}

int cuStreamEndCapture(uint64_t stream, void **graph_out)
{
    struct tarn_device *sim = NULL;
    int result = enter_context(CALL_cuStreamEndCapture, &sim);

    if (result != TN_CU_SUCCESS) {
        return result;
    }
    (void)pthread_mutex_lock(&lock);
    struct graph *graph = graph_of(sim, stream);

    if (!graph || graph->stream != stream) {
        result = TN_CU_INVALID_VALUE;
    } else {
        result = result_of(tarn_sim_set_capturing(sim, stream, false));
        graph->capturing = false;
        *graph_out = graph;
    }
    (void)pthread_mutex_unlock(&lock);
    return result;
}

/* What both signatures of the capture info give. */
static int capture_tell(struct tarn_device *sim, uint64_t stream, int *status, uint64_t *capture,
                        const uint64_t **nodes, size_t *count)
{
    uint64_t *told = nodes_told[atomic_fetch_add(&turns, 1) % TURNS];
    uint64_t number = 0;
    uint32_t terminals = 0;
    const int result =
        result_of(sim->ops->capture_info(sim, stream, &number, told, NODES_MAX, &terminals));

    *status = number == 0    ? TN_CU_CAPTURE_NONE
              : fake.spoiled ? TN_CU_CAPTURE_INVALIDATED
                             : TN_CU_CAPTURE_ACTIVE;
    if (*status == TN_CU_CAPTURE_ACTIVE) { /* else outputs stay as they were, as a driver's do */
        *capture = number;
        *nodes = told;
        *count = terminals;
    }
    return result;
}

int cuStreamIsCapturing(uint64_t stream, int *status)
{
    struct tarn_device *sim = NULL;
    const int result = enter_context(CALL_cuStreamIsCapturing, &sim);

    if (result == TN_CU_SUCCESS) {
        *status = stream > 1 && capture_of(sim, stream) ? TN_CU_CAPTURE_ACTIVE : TN_CU_CAPTURE_NONE;
    }
    return result;
}

int cuStreamGetCaptureInfo_v2(uint64_t stream, int *status, uint64_t *capture, void **graph,
                              const uint64_t **nodes, size_t *count)
{
    struct tarn_device *sim = NULL;
    const int result = enter_context(CALL_cuStreamGetCaptureInfo_v2, &sim);

    if (result == TN_CU_SUCCESS && stream <= 1) {
        return TN_CU_STREAM_CAPTURE_IMPLICIT;
    }
    if (result == TN_CU_SUCCESS && (graph || fake.edge_data)) {
        return fake.edge_data ? LOSSY : TN_CU_NOT_SUPPORTED;
    }
    return result ? result : capture_tell(sim, stream, status, capture, nodes, count);
}

int cuGraphNodeGetDependencies(uint64_t node, uint64_t *nodes, size_t *count)
{
    struct tarn_device *sim = NULL;
    const int result = enter_context(CALL_cuGraphNodeGetDependencies, &sim);
    uint32_t parents = 0;

    if (result != TN_CU_SUCCESS || fake.edge_data) {
        return result ? result : LOSSY;
    }
    const enum tarn_status st =
        sim->ops->graph_node_parents(sim, node, nodes, nodes ? (uint32_t)*count : 0, &parents);
    *count = !nodes || parents < *count ? parents : *count;
    return result_of(st);
}

#if FAKE_CUDA_LEVEL >= 13
int cuStreamGetCaptureInfo_v3(uint64_t stream, int *status, uint64_t *capture, void **graph,
                              const uint64_t **nodes, const struct tn_cu_edge **edges,
                              size_t *count)
{
    struct tarn_device *sim = NULL;
    const int result = enter_context(CALL_cuStreamGetCaptureInfo_v3, &sim);

    if (result == TN_CU_SUCCESS && stream <= 1) {
        return TN_CU_STREAM_CAPTURE_IMPLICIT;
    }
    if (result == TN_CU_SUCCESS && (graph || (fake.edge_data && !edges))) {
        return graph ? TN_CU_NOT_SUPPORTED : LOSSY;
    }
    if (edges) {
        *edges = edges_told;
    }
    return result ? result : capture_tell(sim, stream, status, capture, nodes, count);
}

int cuGraphNodeGetDependencies_v2(uint64_t node, uint64_t *nodes, struct tn_cu_edge *edges,
                                  size_t *count)
{
    struct tarn_device *sim = NULL;
    const int result = enter_context(CALL_cuGraphNodeGetDependencies_v2, &sim);
    uint32_t parents = 0;

    if (result != TN_CU_SUCCESS || (fake.edge_data && nodes && !edges)) {
        return result ? result : LOSSY;
    }
    const enum tarn_status st =
        sim->ops->graph_node_parents(sim, node, nodes, nodes ? (uint32_t)*count : 0, &parents);
    *count = !nodes || parents < *count ? parents : *count;
    if (nodes && edges) {
        memset(edges, fake.edge_data, *count * sizeof *edges);
    }
    return result_of(st);
}
#endif

int cuGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long flags)
{
    const int result = enter(CALL_cuGraphInstantiateWithFlags);
    struct graph *copy = result || flags ? NULL : malloc(sizeof *copy);

    if (!copy) {
        return result ? result : TN_CU_INVALID_VALUE;
    }
    memcpy(copy, graph, sizeof *copy);
    *executable = copy;
    return TN_CU_SUCCESS;
}

int cuGraphLaunch(void *executable, uint64_t stream)
{
    const struct graph *graph = executable;
    int result = enter(CALL_cuGraphLaunch);

    (void)stream;
    for (size_t i = 0; result == TN_CU_SUCCESS && i < graph->count; i++) {
        result = work_do(&graph->works[i]);
    }
    return result;
}

int cuGraphExecDestroy(void *executable)
{
    free(executable);
    return enter(CALL_cuGraphExecDestroy);
}

int cuGraphDestroy(void *graph)
{
    const int result = enter(CALL_cuGraphDestroy);

    ((struct graph *)graph)->used = false;
    return result;
}

/* ---- virtual memory ---- */

int cuMemAddressReserve(uint64_t *address, size_t size, size_t alignment, uint64_t wanted,
                        unsigned long long flags)
{
    struct tarn_device *sim = NULL;
    const int result = enter_unsafe(CALL_cuMemAddressReserve, &sim);

    if (result == TN_CU_SUCCESS && (alignment || wanted || flags)) {
        return TN_CU_INVALID_VALUE;
    }
    return result ? result : result_of(sim->ops->va_reserve(sim, size, address));
}

int cuMemAddressFree(uint64_t address, size_t size)
{
    struct tarn_device *sim = NULL;
    const int result = enter_unsafe(CALL_cuMemAddressFree, &sim);

    return result ? result : result_of(sim->ops->va_release(sim, address, size));
}

static bool prop_is_right(const struct tn_cu_mem_prop *prop)
{
    return prop->type == TN_CU_MEM_TYPE_PINNED &&
           prop->requested_handle_types ==
               fake.attributes[TN_CU_ATTRIBUTE_POSIX_HANDLE_SUPPORTED] &&
           prop->flags.gpu_direct_rdma_capable ==
               fake.attributes[TN_CU_ATTRIBUTE_RDMA_WITH_VMM_SUPPORTED] &&
           prop->location.type == TN_CU_MEM_LOCATION_DEVICE && prop->location.id < fake.devices &&
           !prop->win32_handle_meta_data;
}

#ifndef FAKE_CUDA_INCOMPLETE
int cuMemCreate(uint64_t *page, size_t size, const struct tn_cu_mem_prop *prop,
                unsigned long long flags)
{
    struct tarn_device *sim = NULL;
    const int result = enter_unsafe(CALL_cuMemCreate, &sim);

    if (result == TN_CU_SUCCESS && (flags != 0 || !prop_is_right(prop))) {
        return TN_CU_INVALID_VALUE;
    }
    return result ? result : result_of(sim->ops->page_create(sim, size, page));
}
#endif

int cuMemRelease(uint64_t page)
{
    struct tarn_device *sim = NULL;
    const int result = enter_unsafe(CALL_cuMemRelease, &sim);

    return result ? result : result_of(sim->ops->page_release(sim, page));
}

int cuMemMap(uint64_t address, size_t size, size_t offset, uint64_t page, unsigned long long flags)
{
    struct tarn_device *sim = NULL;
    const int result = enter_unsafe(CALL_cuMemMap, &sim);

    if (result == TN_CU_SUCCESS && (offset || flags)) {
        return TN_CU_INVALID_VALUE;
    }
    return result ? result : result_of(sim->ops->map(sim, address, size, page));
}

int cuMemUnmap(uint64_t address, size_t size)
{
    struct tarn_device *sim = NULL;
    const int result = enter_unsafe(CALL_cuMemUnmap, &sim);

    return result ? result : result_of(sim->ops->unmap(sim, address, size));
}

int cuMemSetAccess(uint64_t address, size_t size, const struct tn_cu_access *access, size_t count)
{
    struct tarn_device *sim = NULL;
    const int result = enter_unsafe(CALL_cuMemSetAccess, &sim);

    if (result == TN_CU_SUCCESS &&
        (count != 1 || access->flags != TN_CU_MEM_ACCESS_READ_WRITE ||
         access->location.type != TN_CU_MEM_LOCATION_DEVICE || access->location.id < 0 ||
         access->location.id >= fake.devices)) {
        return TN_CU_INVALID_VALUE;
    }
    return result ? result : result_of(sim->ops->va_grant(sim, address, size, access->location.id));
}

int cuMemGetAllocationGranularity(size_t *granularity, const struct tn_cu_mem_prop *prop, int which)
{
    const int result = enter(CALL_cuMemGetAllocationGranularity);

    if (result == TN_CU_SUCCESS &&
        (which != TN_CU_MEM_GRANULARITY_MINIMUM || !prop_is_right(prop))) {
        return TN_CU_INVALID_VALUE;
    }
    *granularity = fake.sims[0]->granularity;
    return result;
}

int cuMemExportToShareableHandle(void *handle, uint64_t page, int type, unsigned long long flags)
{
    struct tarn_device *sim = NULL;
    const int result = enter_unsafe(CALL_cuMemExportToShareableHandle, &sim);

    if (result == TN_CU_SUCCESS && (type != TN_CU_MEM_HANDLE_POSIX_FD || flags != 0)) {
        return TN_CU_INVALID_VALUE;
    }
    return result ? result : result_of(sim->ops->page_export(sim, page, handle));
}

int cuMemImportFromShareableHandle(uint64_t *page, void *handle, int type)
{
    const int descriptor = (int)(intptr_t)handle;
    struct tarn_device *sim = NULL;
    struct stat about;
    const int result = enter_unsafe(CALL_cuMemImportFromShareableHandle, &sim);

    if (result != TN_CU_SUCCESS || type != TN_CU_MEM_HANDLE_POSIX_FD ||
        fstat(descriptor, &about) != 0) {
        return result ? result : TN_CU_INVALID_VALUE;
    }
    return result_of(
        sim->ops->page_import(sim, getpid(), descriptor, (uint64_t)about.st_size, page));
}

/* ---- stream-ordered pools ---- */

int cuDeviceGetDefaultMemPool(void **pool, int device)
{
    const int result = enter(CALL_cuDeviceGetDefaultMemPool);

    *pool = &pools[device];
    return result;
}

static struct tarn_device *sim_of_pool(const void *pool)
{
    return fake.sims[(const char *)pool - pools];
}

int cuMemAllocFromPoolAsync(uint64_t *address, size_t size, void *pool, uint64_t stream)
{
    struct tarn_device *sim = NULL;
    const int result = enter_context(CALL_cuMemAllocFromPoolAsync, &sim);

    return result ? result
                  : result_of(sim->ops->pool_alloc(sim_of_pool(pool), size, stream, address));
}

int cuMemFreeAsync(uint64_t address, uint64_t stream)
{
    struct tarn_device *sim = NULL;
    const int result = enter_context(CALL_cuMemFreeAsync, &sim);

    return result ? result : result_of(sim->ops->pool_free(sim, address, stream));
}

int cuMemPoolTrimTo(void *pool, size_t keep)
{
    const int result = enter(CALL_cuMemPoolTrimTo);
    struct tarn_device *sim = sim_of_pool(pool);

    return result ? result : result_of(sim->ops->pool_trim(sim, keep));
}

int cuMemPoolGetAttribute(void *pool, int attribute, void *value)
{
    const int result = enter(CALL_cuMemPoolGetAttribute);
    struct tarn_device *sim = sim_of_pool(pool);
    uint64_t values[9] = {[TN_CU_POOL_RELEASE_THRESHOLD] = fake.threshold};

    if (result != TN_CU_SUCCESS || attribute > TN_CU_POOL_USED_HIGH) {
        return result ? result : TN_CU_INVALID_VALUE;
    }
    if (sim->ops->pool_info(sim, &values[TN_CU_POOL_RESERVED_CURRENT],
                            &values[TN_CU_POOL_USED_CURRENT]) ||
        sim->ops->pool_peaks(sim, &values[TN_CU_POOL_RESERVED_HIGH],
                             &values[TN_CU_POOL_USED_HIGH])) {
        return TN_CU_UNKNOWN;
    }
    memcpy(value, &values[attribute], sizeof values[attribute]);
    return TN_CU_SUCCESS;
}

int cuMemPoolSetAttribute(void *pool, int attribute, void *value)
{
    const int result = enter(CALL_cuMemPoolSetAttribute);
    struct tarn_device *sim = sim_of_pool(pool);
    uint64_t number = 0;

    memcpy(&number, value, sizeof number);
    if (result == TN_CU_SUCCESS && attribute == TN_CU_POOL_RELEASE_THRESHOLD) {
        fake.threshold = number;
        return TN_CU_SUCCESS;
    }
    if (result == TN_CU_SUCCESS && number != 0) {
        return TN_CU_INVALID_VALUE;
    }
    return result                              ? result
           : attribute == TN_CU_POOL_USED_HIGH ? result_of(sim->ops->pool_reset_peaks(sim))
                                               : TN_CU_SUCCESS;
}

/* ---- other devices, other processes ---- */

int cuDeviceCanAccessPeer(int *can, int device, int peer)
{
    const int result = enter(CALL_cuDeviceCanAccessPeer);

    *can = device != peer;
    return result;
}

int cuCtxEnablePeerAccess(void *peer_context, unsigned flags)
{
    struct tarn_device *sim = NULL;
    const int result = enter_context(CALL_cuCtxEnablePeerAccess, &sim);

    if (result == TN_CU_SUCCESS && flags != 0) {
        return TN_CU_INVALID_VALUE;
    }
    if (result == TN_CU_SUCCESS) {
        bool *enabled = &fake.peers[sim->ordinal][(char *)peer_context - contexts];

        if (*enabled) {
            return TN_CU_PEER_ACCESS_ALREADY_ENABLED;
        }
        *enabled = true;
    }
    return result;
}

int cuIpcGetMemHandle(struct tn_cu_ipc_handle *handle, uint64_t address)
{
    struct tarn_device *sim = NULL;
    struct tn_ipc_handle told = {{0}};
    int result = enter_unsafe(CALL_cuIpcGetMemHandle, &sim);

    result = result ? result : result_of(sim->ops->ipc_export(sim, address, &told));
    if (result == TN_CU_SUCCESS) {
        memcpy(handle, &told, sizeof told);
    }
    return result;
}

int cuIpcOpenMemHandle_v2(uint64_t *address, struct tn_cu_ipc_handle handle, unsigned flags)
{
    struct tarn_device *sim = NULL;
    struct tn_ipc_handle told;
    uint64_t size;
    const int result = enter_unsafe(CALL_cuIpcOpenMemHandle_v2, &sim);

    if (result == TN_CU_SUCCESS && flags != TN_CU_IPC_LAZY_PEER_ACCESS) {
        return TN_CU_INVALID_VALUE;
    }
    memcpy(&told, &handle, sizeof told);
    return result ? result : result_of(sim->ops->ipc_open(sim, &told, address, &size));
}

int cuIpcCloseMemHandle(uint64_t address)
{
    struct tarn_device *sim = NULL;
    const int result = enter_unsafe(CALL_cuIpcCloseMemHandle, &sim);

    return result ? result : result_of(sim->ops->ipc_close(sim, address));
}

/* ---- finding functions ---- */

#if FAKE_CUDA_LEVEL >= 11
static const struct {
    const char *plain;
    int since;
} rows[CALL_COUNT] = {
#define TN_CUDA_SYM(exported, plain, since, need, parameters) {#plain, since},
#include "device/cuda_syms.def"
#undef TN_CUDA_SYM
};

/* What this library lacks has no address. */
#if FAKE_CUDA_LEVEL < 13
#define cuStreamGetCaptureInfo_v3     NULL
#define cuGraphNodeGetDependencies_v2 NULL
#endif
#ifdef FAKE_CUDA_INCOMPLETE
#define cuMemCreate NULL
#endif

static const struct tn_cuda_driver functions = {
    NULL,
    0,
#define TN_CUDA_SYM(exported, plain, since, need, parameters) exported,
#include "device/cuda_syms.def"
#undef TN_CUDA_SYM
};

/* The newest function of that name that the version knows. */
static int address_of(const char *name, void **function, int version)
{
    int best = -1;

    start();
    *function = NULL;
    for (int i = 0; i < CALL_COUNT; i++) {
        if (strcmp(rows[i].plain, name) == 0 && rows[i].since <= version && !fake.hidden[i] &&
            (best < 0 || rows[i].since > rows[best].since)) {
            best = i;
        }
    }
    if (best >= 0) { /* the table's members stand in the order of the rows */
        memcpy(function,
               (const char *)&functions + offsetof(struct tn_cuda_driver, cuInit) +
                   (size_t)best * sizeof *function,
               sizeof *function);
    }
    return *function ? TN_CU_SUCCESS : TN_CU_NOT_FOUND;
}
#endif

#if FAKE_CUDA_LEVEL >= 13
EXPORT int cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags,
                               int *found);

int cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags, int *found)
{
    void *more = fake_cuda_more_find(name, version, flags);

    if (more) {
        *function = more;
        *found = 0;
        return TN_CU_SUCCESS;
    }
    const int result = flags & 2 ? TN_CU_INVALID_VALUE : address_of(name, function, version);

    *found = result;
    return result;
}
#elif FAKE_CUDA_LEVEL >= 11
EXPORT int cuGetProcAddress(const char *name, void **function, int version, uint64_t flags);

int cuGetProcAddress(const char *name, void **function, int version, uint64_t flags)
{
    return flags ? TN_CU_INVALID_VALUE : address_of(name, function, version);
}
#endif

/* ---- NVML ---- */

EXPORT int nvmlInit_v2(void);
EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, void **device);

int nvmlInit_v2(void)
{
    start();
    return fake.nvml_init_result;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, void **device)
{
    *device = &fake;
    return strcmp(bus_id, "0000:01:00.0") == 0 ? fake.nvml_handle_result : 6;
}

EXPORT int nvmlDeviceGetIndex(void *device, unsigned *index);

int nvmlDeviceGetIndex(void *device, unsigned *index)
{
    *index = 3;
    return device == &fake ? TN_NVML_SUCCESS : 2;
}

EXPORT int nvmlDeviceGetMemoryInfo(void *device, struct tn_nvml_memory *memory);

int nvmlDeviceGetMemoryInfo(void *device, struct tn_nvml_memory *memory)
{
    *memory = fake.nvml_memory;
    return device == &fake ? fake.nvml_memory_result : 2;
}

static int processes_tell(unsigned *count, struct tn_nvml_process *processes)
{
    const unsigned room = *count;

    *count = fake.process_count;
    if (fake.nvml_processes_result) {
        return fake.nvml_processes_result;
    }
    if (room < fake.process_count) {
        return TN_NVML_INSUFFICIENT_SIZE;
    }
    memcpy(processes, fake.processes, fake.process_count * sizeof *processes);
    return TN_NVML_SUCCESS;
}

#if FAKE_CUDA_LEVEL >= 13
EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count,
                                                   struct tn_nvml_process *processes);

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count,
                                            struct tn_nvml_process *processes)
{
    return device == &fake ? processes_tell(count, processes) : 2;
}
#else
EXPORT int nvmlDeviceGetComputeRunningProcesses_v2(void *device, unsigned *count,
                                                   struct tn_nvml_process *processes);

int nvmlDeviceGetComputeRunningProcesses_v2(void *device, unsigned *count,
                                            struct tn_nvml_process *processes)
{
    return device == &fake ? processes_tell(count, processes) : 2;
}
#endif
