/* SPDX-License-Identifier: MIT */
/*
 * The compact policy while work is queued: nobody waits for the GPU between an allocation, its use
 * and its free, so pages move under kernels that still run. What blocks held is copied aside on
 * their streams just before they are freed, and compared at the end.
 */
#include "base/clock.h"
#include "gpu/gpu_block.h"
#include "gpu/gpu_case.h"
#include "support/any_stream.h"
#include "tarn/graph_pool.h"
#include "tarn/pages.h"
#include "tarn/sleep.h"

#include <stdlib.h>
#include <string.h>

enum {
    STREAMS = 3,
    ROUNDS = 8,
    ROUND_STEPS = 150,
    QUEUED_MAX = 48,  /* blocks at a time */
    PROBES = 3,       /* of a block: both ends and the middle */
    PROBE_BYTES = 64, /* each */
    FREES = ROUNDS * ROUND_STEPS
};

/* What probes of a freed block must have copied. */
struct expected {
    unsigned char values[FREES];
    size_t count;
};

struct queue {
    const struct gpu *gpu;
    struct tarn_allocator *allocator;
    uint64_t random;
    uint64_t pages_max; /* of a block */
    uint64_t live_max;  /* bytes of all */
    uint64_t live_bytes;
    tarn_stream streams[STREAMS];
    tn_event_handle event;
    struct block busy[STREAMS]; /* what keeps the streams busy */
    tarn_ptr probes;            /* PROBES * PROBE_BYTES for each free */
    struct block live[QUEUED_MAX];
    unsigned stream_of[QUEUED_MAX];
    size_t count;
    struct expected expected;
};

static bool queue_alloc(struct queue *queue, struct block *block, unsigned stream)
{
    struct tarn_error error = {.status = TARN_OK};

    return TARN(tarn_allocator_alloc(queue->allocator, block->size, queue->streams[stream],
                                     &block->ptr, &error));
}

/* Work of tens of milliseconds on a real GPU for every stream. */
static bool queue_keep_busy(const struct queue *queue)
{
    const struct gpu *gpu = queue->gpu;
    bool right = true;

    for (unsigned i = 0; i < STREAMS; i++) {
        for (int times = 0; right && times < (gpu->real ? 300 : 1); times++) {
            right = block_fill(gpu, &queue->busy[i], queue->streams[i]);
        }
    }
    return right;
}

static bool queue_add(struct queue *queue)
{
    const unsigned stream = (unsigned)(random_next(&queue->random) % STREAMS);
    struct block block = {.size = 2 * MIB * (1 + random_next(&queue->random) % queue->pages_max),
                          .value = (unsigned char)random_next(&queue->random)};

    if (queue->live_bytes + block.size > queue->live_max) {
        return true;
    }
    if (!queue_alloc(queue, &block, stream)) {
        return false;
    }
    queue->live_bytes += block.size;
    queue->stream_of[queue->count] = stream;
    queue->live[queue->count++] = block;
    return block_fill(queue->gpu, &block, queue->streams[stream]);
}

/* Copies what the block holds aside. */
static bool queue_probe(struct queue *queue, const struct block *block, tarn_stream stream)
{
    const struct gpu *gpu = queue->gpu;
    const size_t index = queue->expected.count++;
    const tarn_ptr at = queue->probes + index * PROBES * PROBE_BYTES;
    const uint64_t last = block->size - PROBE_BYTES;

    queue->expected.values[index] = block->value;
    return DRIVER(cuMemcpyAsync(at, block->ptr, PROBE_BYTES, stream)) &&
           DRIVER(cuMemcpyAsync(at + PROBE_BYTES, block->ptr + last / 2, PROBE_BYTES, stream)) &&
           DRIVER(cuMemcpyAsync(at + 2 * (uint64_t)PROBE_BYTES, block->ptr + last, PROBE_BYTES,
                                stream));
}

/* The last use of a block is on its own stream, or on another one, which waits for it. */
static bool queue_remove(struct queue *queue)
{
    const struct gpu *gpu = queue->gpu;
    struct tarn_error error = {.status = TARN_OK};
    const size_t at = random_next(&queue->random) % queue->count;
    const struct block block = queue->live[at];
    const tarn_stream own = queue->streams[queue->stream_of[at]];
    const tarn_stream last = random_next(&queue->random) % 4 > 0
                                 ? own
                                 : queue->streams[random_next(&queue->random) % STREAMS];
    bool right = true;

    queue->live[at] = queue->live[--queue->count];
    queue->stream_of[at] = queue->stream_of[queue->count];
    queue->live_bytes -= block.size;
    if (last != own) {
        right = DRIVER(cuEventRecord(queue->event, own)) &&
                DRIVER(cuStreamWaitEvent(last, queue->event, 0)) &&
                TARN(tarn_allocator_record_stream(queue->allocator, block.ptr, last, &error));
    }
    return right && queue_probe(queue, &block, last) &&
           TARN(tarn_allocator_free(queue->allocator, block.ptr, &error));
}

static bool queue_round(struct queue *queue)
{
    bool right = queue_keep_busy(queue);

    for (int step = 0; right && step < ROUND_STEPS; step++) {
        const bool adds =
            queue->count == 0 || (queue->count < QUEUED_MAX && random_next(&queue->random) % 9 < 5);

        right = adds ? queue_add(queue) : queue_remove(queue);
    }
    return right;
}

/* Every probe of every block that was freed. */
static bool queue_compare(const struct queue *queue)
{
    const struct gpu *gpu = queue->gpu;
    const size_t bytes = queue->expected.count * PROBES * PROBE_BYTES;
    unsigned char *copied = malloc(bytes + 1);
    bool right = CHECK(copied != NULL) && DRIVER(cuCtxSynchronize()) &&
                 (bytes == 0 || DRIVER(cuMemcpyDtoH_v2(copied, queue->probes, bytes)));

    for (size_t i = 0; right && i < bytes; i++) {
        right = CHECK(copied[i] == queue->expected.values[i / ((size_t)PROBES * PROBE_BYTES)]);
    }
    free(copied);
    return right;
}

static bool queue_open(struct queue *queue)
{
    const struct gpu *gpu = queue->gpu;
    struct block probes = {.size = (uint64_t)FREES * PROBES * PROBE_BYTES};
    bool right = CHECK(queue->allocator != NULL) &&
                 DRIVER(cuEventCreate(&queue->event, TN_CU_EVENT_DISABLE_TIMING));

    for (unsigned i = 0; right && i < STREAMS; i++) {
        queue->busy[i] = (struct block){.size = gpu->real ? 256 * MIB : 2 * MIB};
        right = DRIVER(cuStreamCreate(&queue->streams[i], TN_CU_STREAM_NON_BLOCKING)) &&
                queue_alloc(queue, &queue->busy[i], i);
    }
    right = right && queue_alloc(queue, &probes, 0);
    queue->probes = probes.ptr;
    return right;
}

static bool queue_close(struct queue *queue, bool right)
{
    const struct gpu *gpu = queue->gpu;

    tarn_allocator_destroy(queue->allocator);
    for (unsigned i = 0; i < STREAMS; i++) {
        right = (queue->streams[i] == 0 || DRIVER(cuStreamDestroy_v2(queue->streams[i]))) && right;
    }
    return (queue->event == 0 || DRIVER(cuEventDestroy_v2(queue->event))) && right;
}

static void queue_note(const struct queue *queue, struct gpu *gpu)
{
    struct tarn_page_stats pages = {.struct_size = sizeof pages};
    struct tarn_stats stats = {.struct_size = sizeof stats};

    tarn_allocator_get_page_stats(queue->allocator, &pages);
    tarn_allocator_get_stats(queue->allocator, &stats);
    (void)snprintf(gpu->note, sizeof gpu->note,
                   "%llu pages, %llu moved, %llu requests, %.1f ms, longest %.2f; peak %lld MiB",
                   (unsigned long long)pages.created, (unsigned long long)pages.moved,
                   (unsigned long long)pages.requests, (double)pages.request_ns / 1e6,
                   (double)pages.longest_ns / 1e6,
                   (long long)stats.by_pool[TARN_STAT_RESERVED_BYTES][TARN_STAT_ALL].peak >> 20);
}

/* With a `slack`, requests get no more than what lives at most plus so many bytes: the policy's
 * promise is that none fails. */
static bool queue_run(struct gpu *gpu, uint64_t slack)
{
    struct queue queue = {.gpu = gpu,
                          .allocator = gpu_allocator(gpu, "policy:compact"),
                          .random = 5,
                          .pages_max = gpu->real ? 64 : 4,
                          .live_max = gpu->real ? 2 * GIB : 64 * MIB};
    struct tarn_error error = {.status = TARN_OK};
    struct tarn_findings findings = TARN_FINDINGS_INIT;
    bool right = queue_open(&queue);

    if (right && slack > 0) {
        struct tarn_stats stats = {.struct_size = sizeof stats};

        tarn_allocator_get_stats(queue.allocator, &stats);
        const uint64_t before =
            (uint64_t)stats.by_pool[TARN_STAT_RESERVED_BYTES][TARN_STAT_ALL].current;
        const double limit = (double)(before + queue.live_max + slack);

        right = TARN(tarn_allocator_set_memory_fraction(
            queue.allocator, limit / (double)gpu->device->total_memory, &error));
    }
    for (int round = 0; right && round < ROUNDS; round++) {
        right = queue_round(&queue);
    }
    right = right && queue_compare(&queue) &&
            CHECK(tarn_allocator_check(queue.allocator, &findings) == 0);
    if (queue.allocator) {
        queue_note(&queue, gpu);
    }
    return queue_close(&queue, right);
}

static bool pages_move_under_queued_work(struct gpu *gpu)
{
    return queue_run(gpu, 0);
}

static bool pages_move_at_the_limit(struct gpu *gpu)
{
    return queue_run(gpu, 4 * MIB);
}

/* ---- sleep and wake ---- */

static const struct tarn_pool_id tagged = {0, 1};

static bool tagged_alloc(const struct gpu *gpu, struct tarn_allocator *allocator,
                         struct block *block)
{
    struct tarn_error error = {.status = TARN_OK};

    (void)gpu;
    return TARN(tarn_allocator_begin_pool(allocator, tagged, any_stream, NULL, &error)) &&
           TARN(tarn_allocator_alloc(allocator, block->size, 0, &block->ptr, &error)) &&
           TARN(tarn_allocator_end_pool(allocator, tagged, &error));
}

/* A graph that fills the block. */
static bool graph_of_fill(const struct gpu *gpu, const struct block *block, tarn_stream stream,
                          void **executable_out)
{
    void *graph = NULL;

    return DRIVER(cuStreamBeginCapture_v2(stream, TN_CU_CAPTURE_MODE_GLOBAL)) &&
           block_fill(gpu, block, stream) && DRIVER(cuStreamEndCapture(stream, &graph)) &&
           DRIVER(cuGraphInstantiateWithFlags(executable_out, graph, 0)) &&
           DRIVER(cuGraphDestroy(graph));
}

enum {
    TAGGED = 3
};

/* Work is queued on the blocks when they go to sleep. */
static bool night(const struct gpu *gpu, struct tarn_allocator *allocator,
                  const struct block *blocks, tarn_stream stream)
{
    struct tarn_error error = {.status = TARN_OK};
    bool right = true;

    for (int i = 0; right && i < TAGGED; i++) {
        for (int times = 0; right && times < 100; times++) {
            right = block_fill(gpu, &blocks[i], stream);
        }
    }
    right = right && TARN(tarn_allocator_sleep(allocator, tagged, NULL, &error)) &&
            CHECK(tarn_allocator_is_asleep(allocator, tagged)) &&
            TARN(tarn_allocator_wake(allocator, tagged, &error));
    for (int i = 0; right && i < TAGGED; i++) {
        right = block_holds(gpu, &blocks[i]);
    }
    return right;
}

static bool tagged_memory_sleeps_and_wakes(struct gpu *gpu)
{
    struct tarn_allocator *allocator = gpu_allocator(gpu, "policy:compact");
    struct block blocks[TAGGED] = {{.size = 3 * MIB, .value = 3},
                                   {.size = 37 * MIB, .value = 37},
                                   {.size = 12 * KIB, .value = 12}};
    const struct block refilled = {.size = blocks[1].size, .value = 99};
    struct block by_graph = refilled;
    struct tarn_error error = {.status = TARN_OK};
    tarn_stream stream = 0;
    void *executable = NULL;
    bool right =
        CHECK(allocator != NULL) && DRIVER(cuStreamCreate(&stream, TN_CU_STREAM_NON_BLOCKING));

    for (int i = 0; right && i < TAGGED; i++) {
        right = tagged_alloc(gpu, allocator, &blocks[i]);
    }
    by_graph.ptr = blocks[1].ptr;
    right = right && night(gpu, allocator, blocks, stream) &&
            graph_of_fill(gpu, &by_graph, stream, &executable);
    /* A graph that was captured before replays into what came back. */
    const struct tarn_sleep_options discard = {.struct_size = sizeof discard, .discard = true};

    right = right && TARN(tarn_allocator_sleep(allocator, tagged, &discard, &error)) &&
            TARN(tarn_allocator_wake(allocator, tagged, &error)) &&
            DRIVER(cuGraphLaunch(executable, stream)) && DRIVER(cuCtxSynchronize()) &&
            block_holds(gpu, &by_graph) && DRIVER(cuGraphExecDestroy(executable));
    tarn_allocator_destroy(allocator);
    return right && DRIVER(cuStreamDestroy_v2(stream));
}

/* What the driver needs for the same, page by page, without an allocator. */
struct raw {
    struct tarn_device *device;
    tarn_ptr address;
    uint64_t size;
    tn_page_handle *pages;
    void **host; /* pieces of HOST_PIECE */
    tarn_stream stream;
};

#define HOST_PIECE (256 * MIB)

static bool raw_copy(const struct raw *raw, bool to_host)
{
    const struct tn_device_ops *ops = raw->device->ops;
    bool right = true;

    for (uint64_t at = 0; right && at < raw->size; at += HOST_PIECE) {
        const uint64_t left = raw->size - at;
        struct tn_copy copy = {.size = left < HOST_PIECE ? left : HOST_PIECE};
        const uint64_t host = (uint64_t)(uintptr_t)raw->host[at / HOST_PIECE];

        copy.to_device = to_host ? NULL : raw->device;
        copy.from_device = to_host ? raw->device : NULL;
        copy.to = to_host ? host : raw->address + at;
        copy.from = to_host ? raw->address + at : host;
        right = CHECK(ops->copy(raw->device, &copy, raw->stream) == TARN_OK);
    }
    return right && CHECK(ops->stream_wait(raw->device, raw->stream) == TARN_OK);
}

static bool raw_map(const struct raw *raw)
{
    const struct tn_device_ops *ops = raw->device->ops;
    bool right = true;

    for (uint64_t i = 0; right && i < raw->size / (2 * MIB); i++) {
        right = CHECK(ops->page_create(raw->device, 2 * MIB, &raw->pages[i]) == TARN_OK) &&
                CHECK(ops->map(raw->device, raw->address + i * 2 * MIB, 2 * MIB, raw->pages[i]) ==
                      TARN_OK);
    }
    return right;
}

static bool raw_unmap(const struct raw *raw)
{
    const struct tn_device_ops *ops = raw->device->ops;
    bool right = CHECK(ops->unmap(raw->device, raw->address, raw->size) == TARN_OK);

    for (uint64_t i = 0; right && i < raw->size / (2 * MIB); i++) {
        right = CHECK(ops->page_release(raw->device, raw->pages[i]) == TARN_OK);
    }
    return right;
}

static bool raw_open(struct raw *raw)
{
    const struct tn_device_ops *ops = raw->device->ops;
    const uint64_t pieces = (raw->size + HOST_PIECE - 1) / HOST_PIECE;

    raw->pages = calloc(raw->size / (2 * MIB), sizeof *raw->pages);
    raw->host = calloc(pieces, sizeof *raw->host);
    bool right = CHECK(raw->pages && raw->host) &&
                 CHECK(ops->stream_create(raw->device, &raw->stream) == TARN_OK) &&
                 CHECK(ops->va_reserve(raw->device, raw->size, &raw->address) == TARN_OK);

    for (uint64_t i = 0; right && i < pieces; i++) {
        right = CHECK(ops->host_alloc(raw->device, HOST_PIECE, &raw->host[i]) == TARN_OK);
    }
    return right && raw_map(raw);
}

static bool raw_close(struct raw *raw)
{
    const struct tn_device_ops *ops = raw->device->ops;
    const uint64_t pieces = (raw->size + HOST_PIECE - 1) / HOST_PIECE;
    bool right = raw_unmap(raw) &&
                 CHECK(ops->va_release(raw->device, raw->address, raw->size) == TARN_OK) &&
                 CHECK(ops->stream_destroy(raw->device, raw->stream) == TARN_OK);

    for (uint64_t i = 0; right && i < pieces; i++) {
        right = CHECK(ops->host_free(raw->device, raw->host[i]) == TARN_OK);
    }
    return right;
}

/* Nanoseconds to go and to come back. */
static bool raw_night(struct gpu *gpu, uint64_t size, uint64_t times_out[2])
{
    struct raw raw = {.device = gpu->device, .size = size};
    bool right = raw_open(&raw);
    uint64_t began = tn_clock_now_ns();

    right = right && raw_copy(&raw, true) && raw_unmap(&raw);
    times_out[0] = tn_clock_now_ns() - began;
    began = tn_clock_now_ns();
    right = right && raw_map(&raw) && raw_copy(&raw, false);
    times_out[1] = tn_clock_now_ns() - began;
    right = right && raw_close(&raw);
    free(raw.pages);
    free(raw.host);
    return right;
}

/* The second of two nights, which finds its host memory pinned; the first one's sleep in [2]. */
static bool tagged_nights(struct gpu *gpu, uint64_t size, uint64_t times_out[3])
{
    const struct tarn_sleep_options keep = {.struct_size = sizeof keep, .keep_host = true};
    struct tarn_allocator *allocator = gpu_allocator(gpu, "policy:compact");
    struct block block = {.size = size, .value = 40};
    struct tarn_error error = {.status = TARN_OK};
    bool right = CHECK(allocator != NULL) && tagged_alloc(gpu, allocator, &block) &&
                 block_fill(gpu, &block, 0) && DRIVER(cuCtxSynchronize());

    for (int i = 0; right && i < 2; i++) {
        uint64_t began = tn_clock_now_ns();

        right = TARN(tarn_allocator_sleep(allocator, tagged, &keep, &error));
        times_out[i == 0 ? 2 : 0] = tn_clock_now_ns() - began;
        began = tn_clock_now_ns();
        right = right && TARN(tarn_allocator_wake(allocator, tagged, &error));
        times_out[1] = tn_clock_now_ns() - began;
    }
    right = right && block_holds(gpu, &block);
    tarn_allocator_destroy(allocator);
    return right;
}

static bool sleeping_costs_what_the_driver_needs(struct gpu *gpu)
{
    const uint64_t size = gpu->real ? 40 * GIB : 64 * MIB;
    uint64_t raw[2] = {0};
    uint64_t ours[3] = {0};

    if (gpu->device->total_memory < size + size / 4 || !gpu->whole) {
        (void)snprintf(gpu->skip, sizeof gpu->skip, "times are of interest only, for 40 GiB");
        return true;
    }
    const bool right = raw_night(gpu, size, raw) && tagged_nights(gpu, size, ours);

    (void)snprintf(gpu->note, sizeof gpu->note,
                   "%llu MiB: sleep %.1f ms (pinning too %.1f), wake %.1f; driver alone %.1f, %.1f",
                   (unsigned long long)(size / MIB), (double)ours[0] / 1e6, (double)ours[2] / 1e6,
                   (double)ours[1] / 1e6, (double)raw[0] / 1e6, (double)raw[1] / 1e6);
    return right;
}

const struct gpu_case gpu_compact_cases[] = {
    {"pages_move_under_queued_work", pages_move_under_queued_work},
    {"pages_move_at_the_limit", pages_move_at_the_limit},
    {"tagged_memory_sleeps_and_wakes", tagged_memory_sleeps_and_wakes},
    {"sleeping_costs_what_the_driver_needs", sleeping_costs_what_the_driver_needs},
    {NULL, NULL},
};
