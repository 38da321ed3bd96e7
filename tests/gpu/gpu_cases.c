/* SPDX-License-Identifier: MIT */
/* Allocators on a GPU: what they hand out is real memory, and nobody else's. */
#include "gpu/gpu_block.h"
#include "gpu/gpu_case.h"

#include "support/share.h"
#include "tarn/devices.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    LIVE_MAX = 64,
    CHURN_STEPS = 600,
    CHURN_BITS = 25, /* sizes up to 32 MiB */
    THREADS = 16,
    THREAD_STEPS = 400,
    THREAD_BITS = 21,
    CLEAN_STEPS = 150 /* between two times that the cache is emptied */
};

static bool all_hold(const struct gpu *gpu, const struct block *live, size_t count)
{
    bool right = DRIVER(cuCtxSynchronize());

    for (size_t i = 0; right && i < count; i++) {
        right = block_holds(gpu, &live[i]);
    }
    return right;
}

/* Blocks that come and go by chance. */
struct churn {
    struct tarn_allocator *allocator;
    tarn_stream stream;
    uint64_t random;
    unsigned bits; /* of sizes */
    int steps;
    size_t count;
    struct block live[LIVE_MAX];
};

static bool churn_add(const struct gpu *gpu, struct churn *churn)
{
    struct tarn_error error = {.status = TARN_OK};
    struct block *block = &churn->live[churn->count];

    *block = (struct block){.size = random_size(&churn->random, churn->bits),
                            .value = (unsigned char)random_next(&churn->random)};
    if (!TARN(tarn_allocator_alloc(churn->allocator, block->size, churn->stream, &block->ptr,
                                   &error))) {
        return false;
    }
    churn->count++;
    return block_fill(gpu, block, churn->stream);
}

static bool churn_remove(const struct gpu *gpu, struct churn *churn)
{
    struct tarn_error error = {.status = TARN_OK};
    const size_t at = random_next(&churn->random) % churn->count;
    const struct block block = churn->live[at];

    churn->live[at] = churn->live[--churn->count];
    return DRIVER(cuStreamSynchronize(churn->stream)) && block_holds(gpu, &block) &&
           TARN(tarn_allocator_free(churn->allocator, block.ptr, &error));
}

/* Every block keeps its bytes until it is freed, whatever happens to others. */
static bool churn_run(const struct gpu *gpu, struct churn *churn)
{
    struct tarn_error error = {.status = TARN_OK};
    bool right = true;

    for (int step = 1; right && step <= churn->steps; step++) {
        if (churn->count < LIVE_MAX && random_next(&churn->random) % 5 < 3) {
            right = churn_add(gpu, churn);
        } else if (churn->count > 0) {
            right = churn_remove(gpu, churn);
        }
        if (right && step % CLEAN_STEPS == 0) {
            right = TARN(tarn_allocator_empty_cache(churn->allocator, &error)) &&
                    all_hold(gpu, churn->live, churn->count);
        }
    }
    right = right && all_hold(gpu, churn->live, churn->count);
    while (right && churn->count > 0) {
        right = churn_remove(gpu, churn);
    }
    return right;
}

static bool churn(const struct gpu *gpu, struct tarn_allocator *allocator, uint64_t seed, int steps)
{
    struct churn churn = {
        .allocator = allocator, .random = seed, .bits = CHURN_BITS, .steps = steps};

    return churn_run(gpu, &churn);
}

static bool nothing_is_reserved(struct tarn_allocator *allocator)
{
    struct tarn_stats stats = {.struct_size = sizeof stats};
    struct tarn_findings findings = TARN_FINDINGS_INIT;
    struct tarn_error error = {.status = TARN_OK};

    if (!TARN(tarn_allocator_empty_cache(allocator, &error))) {
        return false;
    }
    tarn_allocator_get_stats(allocator, &stats);
    return CHECK(stats.by_pool[TARN_STAT_RESERVED_BYTES][TARN_STAT_ALL].current == 0) &&
           CHECK(tarn_allocator_check(allocator, &findings) == 0);
}

static bool churn_with(struct gpu *gpu, const char *settings)
{
    struct tarn_allocator *allocator = gpu_allocator(gpu, settings);
    struct tarn_stats stats = {.struct_size = sizeof stats};
    bool right = allocator && churn(gpu, allocator, 7, CHURN_STEPS);

    if (allocator) {
        right = right && nothing_is_reserved(allocator);
        tarn_allocator_get_stats(allocator, &stats);
        (void)snprintf(
            gpu->note, sizeof gpu->note, "%llu device allocs, peak reserved %llu MiB",
            (unsigned long long)stats.num_device_alloc,
            (unsigned long long)(stats.by_pool[TARN_STAT_RESERVED_BYTES][TARN_STAT_ALL].peak >>
                                 20));
    }
    tarn_allocator_destroy(allocator);
    return right;
}

static bool contents_survive(struct gpu *gpu)
{
    return churn_with(gpu, "");
}

static bool contents_survive_in_growing_segments(struct gpu *gpu)
{
    return churn_with(gpu, "expandable_segments:True");
}

static bool contents_survive_moving_pages(struct gpu *gpu)
{
    return churn_with(gpu, "policy:compact");
}

static bool contents_survive_without_caching(struct gpu *gpu)
{
    struct tarn_allocator *allocator = gpu_allocator(gpu, "");
    struct tarn_error error = {.status = TARN_OK};
    const bool right = allocator && TARN(tarn_allocator_set_enabled(allocator, false, &error)) &&
                       churn(gpu, allocator, 8, CHURN_STEPS / 4);

    tarn_allocator_destroy(allocator);
    return right;
}

/* ---- expandable segments ---- */

static bool segments_grow_and_shrink(struct gpu *gpu)
{
    struct tarn_allocator *allocator = gpu_allocator(gpu, "expandable_segments:True");
    struct tarn_error error = {.status = TARN_OK};
    struct block blocks[8];
    tarn_ptr base = 0;
    tarn_ptr first = 0;
    uint64_t before = 0;
    uint64_t after = 0;
    uint64_t total = 0;
    bool right = allocator != NULL;

    for (int i = 0; right && i < 8; i++) {
        blocks[i] = (struct block){.size = 20 * MIB, .value = (unsigned char)(i + 1)};
        right =
            TARN(tarn_allocator_alloc(allocator, blocks[i].size, 0, &blocks[i].ptr, &error)) &&
            block_fill(gpu, &blocks[i], 0) &&
            TARN(tarn_allocator_base_allocation(allocator, blocks[i].ptr, &base, NULL, &error)) &&
            CHECK(i == 0 || base == first);
        first = base;
    }
    /* Every second block goes, with its pages; the others keep their contents and addresses. */
    for (int i = 0; right && i < 8; i += 2) {
        right = TARN(tarn_allocator_free(allocator, blocks[i].ptr, &error));
    }
    right = right && CHECK(!tarn_device_memory_info(gpu->device, &before, &total)) &&
            TARN(tarn_allocator_empty_cache(allocator, &error)) &&
            CHECK(!tarn_device_memory_info(gpu->device, &after, &total)) &&
            CHECK(after >= before + 80 * MIB) && DRIVER(cuCtxSynchronize());
    for (int i = 1; right && i < 8; i += 2) {
        right = block_holds(gpu, &blocks[i]);
    }
    for (int i = 0; right && i < 8; i += 2) { /* into the holes again */
        right =
            TARN(tarn_allocator_alloc(allocator, blocks[i].size, 0, &blocks[i].ptr, &error)) &&
            block_fill(gpu, &blocks[i], 0) &&
            TARN(tarn_allocator_base_allocation(allocator, blocks[i].ptr, &base, NULL, &error)) &&
            CHECK(base == first);
    }
    right = right && all_hold(gpu, blocks, 8);
    for (int i = 0; right && i < 8; i++) {
        right = TARN(tarn_allocator_free(allocator, blocks[i].ptr, &error));
    }
    right = right && nothing_is_reserved(allocator);
    tarn_allocator_destroy(allocator);
    return right;
}

/* ---- streams ---- */

/* Keeps a stream of a real GPU busy for tens of milliseconds. */
static bool keep_busy(const struct gpu *gpu, tarn_stream stream, tarn_ptr ptr, uint64_t size)
{
    bool right = true;

    for (int i = 0; right && i < 400; i++) {
        right = DRIVER(cuMemsetD8Async(ptr, (unsigned char)i, size, stream));
    }
    return right;
}

static bool other_streams_are_waited_for(struct gpu *gpu)
{
    const uint64_t size = gpu->real ? 512 * MIB : 4 * MIB;
    struct tarn_allocator *allocator = gpu_allocator(gpu, "");
    struct tarn_error error = {.status = TARN_OK};
    tarn_stream streams[2] = {0};
    tn_event_handle done = 0;
    tarn_ptr block = 0;
    tarn_ptr other = 0;
    tarn_ptr again = 0;
    bool right = allocator && DRIVER(cuStreamCreate(&streams[0], TN_CU_STREAM_NON_BLOCKING)) &&
                 DRIVER(cuStreamCreate(&streams[1], TN_CU_STREAM_NON_BLOCKING)) &&
                 DRIVER(cuEventCreate(&done, TN_CU_EVENT_DISABLE_TIMING));

    right = right && TARN(tarn_allocator_alloc(allocator, size, streams[0], &block, &error)) &&
            keep_busy(gpu, streams[1], block, size) && DRIVER(cuEventRecord(done, streams[1])) &&
            TARN(tarn_allocator_record_stream(allocator, block, streams[1], &error)) &&
            TARN(tarn_allocator_free(allocator, block, &error)) &&
            TARN(tarn_allocator_alloc(allocator, size, streams[0], &other, &error));
    const bool busy = right && gpu->driver->cuEventQuery(done) == TN_CU_NOT_READY;

    right = right && CHECK(!gpu->real || !gpu->whole || busy) && CHECK(!busy || other != block) &&
            DRIVER(cuStreamSynchronize(streams[1])) &&
            TARN(tarn_allocator_alloc(allocator, size, streams[0], &again, &error)) &&
            CHECK(!busy || again == block) && TARN(tarn_allocator_free(allocator, other, &error)) &&
            TARN(tarn_allocator_free(allocator, again, &error)) && nothing_is_reserved(allocator);
    tarn_allocator_destroy(allocator);
    return DRIVER(cuEventDestroy_v2(done)) && DRIVER(cuStreamDestroy_v2(streams[0])) &&
           DRIVER(cuStreamDestroy_v2(streams[1])) && right;
}

/* ---- graphs ---- */

static bool on_stream(void *context, tarn_stream stream)
{
    return stream == *(const tarn_stream *)context;
}

/* Under capture: a block is set and copied to the one that stays; both come from the pool. */
static bool capture_work(const struct gpu *gpu, struct tarn_allocator *allocator,
                         tarn_stream stream, const struct block *input, struct block *result)
{
    struct tarn_error error = {.status = TARN_OK};
    tarn_ptr between = 0;
    tarn_ptr outside = 0;

    return TARN(tarn_allocator_alloc(allocator, result->size, stream, &between, &error)) &&
           TARN(tarn_allocator_alloc(allocator, result->size, stream, &result->ptr, &error)) &&
           DRIVER(cuMemcpyAsync(between, input->ptr, result->size, stream)) &&
           DRIVER(cuMemcpyAsync(result->ptr, between, result->size, stream)) &&
           /* Other streams go on getting memory from the device meanwhile, and giving it back. */
           TARN(tarn_allocator_alloc(allocator, 300 * MIB, 0, &outside, &error)) &&
           TARN(tarn_allocator_free(allocator, outside, &error)) &&
           TARN(tarn_allocator_free(allocator, between, &error));
}

static bool replay(const struct gpu *gpu, void *executable, tarn_stream stream, struct block *input,
                   struct block *result, unsigned char value)
{
    input->value = value;
    result->value = value;
    return block_fill(gpu, input, stream) && DRIVER(cuGraphLaunch(executable, stream)) &&
           DRIVER(cuStreamSynchronize(stream)) && block_holds(gpu, result);
}

static bool graph_with(struct gpu *gpu, const char *settings)
{
    const struct tarn_pool_id pool = {1, 0};
    struct tarn_allocator *allocator = gpu_allocator(gpu, settings);
    struct tarn_error error = {.status = TARN_OK};
    struct block input = {.size = 3 * MIB};
    struct block result = {.size = 3 * MIB};
    tarn_stream stream = 0;
    uint64_t capture = 0;
    uint32_t nodes = 0;
    tn_graph_node node = 0;
    void *graph = NULL;
    void *executable = NULL;
    bool right = allocator && DRIVER(cuStreamCreate(&stream, TN_CU_STREAM_NON_BLOCKING)) &&
                 TARN(tarn_allocator_alloc(allocator, input.size, stream, &input.ptr, &error)) &&
                 TARN(tarn_allocator_begin_pool(allocator, pool, on_stream, &stream, &error)) &&
                 DRIVER(cuStreamBeginCapture_v2(stream, TN_CU_CAPTURE_MODE_GLOBAL));

    right =
        right && capture_work(gpu, allocator, stream, &input, &result) &&
        CHECK(!gpu->device->ops->capture_info(gpu->device, stream, &capture, &node, 1, &nodes)) &&
        CHECK(capture != 0 && nodes == 1) &&
        CHECK(!gpu->device->ops->graph_node_parents(gpu->device, node, &node, 1, &nodes)) &&
        CHECK(nodes == 1) && DRIVER(cuStreamEndCapture(stream, &graph)) &&
        TARN(tarn_allocator_end_pool(allocator, pool, &error)) &&
        CHECK(!gpu->device->ops->capture_info(gpu->device, stream, &capture, NULL, 0, &nodes)) &&
        CHECK(capture == 0 && nodes == 0) &&
        DRIVER(cuGraphInstantiateWithFlags(&executable, graph, 0));
    for (unsigned char value = 1; right && value < 20; value++) {
        right = replay(gpu, executable, stream, &input, &result, value);
        /* What others do in between does not touch the pool. */
        right = right && churn(gpu, allocator, value, 20) && block_holds(gpu, &result);
    }
    right = right && DRIVER(cuGraphExecDestroy(executable)) && DRIVER(cuGraphDestroy(graph)) &&
            TARN(tarn_allocator_free(allocator, result.ptr, &error)) &&
            TARN(tarn_allocator_free(allocator, input.ptr, &error)) &&
            TARN(tarn_allocator_release_pool(allocator, pool, &error)) &&
            nothing_is_reserved(allocator);
    tarn_allocator_destroy(allocator);
    return right && DRIVER(cuStreamDestroy_v2(stream));
}

static bool a_graph_keeps_its_memory(struct gpu *gpu)
{
    return graph_with(gpu, "");
}

static bool a_graph_keeps_its_memory_in_growing_segments(struct gpu *gpu)
{
    return graph_with(gpu, "expandable_segments:True");
}

static bool a_graph_keeps_its_memory_among_moving_pages(struct gpu *gpu)
{
    return graph_with(gpu, "policy:compact");
}

/* Two streams joined in one capture: the terminals are both nodes. */
static bool terminals_of_a_capture_are_read(struct gpu *gpu)
{
    struct tarn_device *device = gpu->device;
    struct tarn_error error = {.status = TARN_OK};
    struct tarn_allocator *allocator = gpu_allocator(gpu, "");
    tarn_stream streams[2] = {0};
    tn_graph_node nodes[4] = {0};
    tn_event_handle event = 0;
    uint64_t captures[2] = {0};
    uint32_t count = 0;
    tarn_ptr ptr = 0;
    void *graph = NULL;
    bool right = allocator && TARN(tarn_allocator_alloc(allocator, MIB, 0, &ptr, &error)) &&
                 DRIVER(cuStreamCreate(&streams[0], TN_CU_STREAM_NON_BLOCKING)) &&
                 DRIVER(cuStreamCreate(&streams[1], TN_CU_STREAM_NON_BLOCKING)) &&
                 CHECK(!device->ops->event_create(device, &event)) &&
                 DRIVER(cuStreamBeginCapture_v2(streams[0], TN_CU_CAPTURE_MODE_GLOBAL)) &&
                 DRIVER(cuMemsetD8Async(ptr, 1, 64, streams[0])) &&
                 CHECK(!device->ops->event_record(device, event, streams[0])) &&
                 CHECK(!device->ops->stream_wait_event(device, streams[1], event)) &&
                 DRIVER(cuMemsetD8Async(ptr, 2, 64, streams[1])) &&
                 DRIVER(cuMemsetD8Async(ptr + 4096, 3, 64, streams[0])) &&
                 CHECK(!device->ops->event_record(device, event, streams[1])) &&
                 CHECK(!device->ops->stream_wait_event(device, streams[0], event));

    right = right &&
            CHECK(!device->ops->capture_info(device, streams[0], &captures[0], nodes, 4, &count)) &&
            CHECK(count == 2 && nodes[0] != nodes[1]) &&
            CHECK(!device->ops->capture_info(device, streams[1], &captures[1], NULL, 0, &count)) &&
            CHECK(count == 1 && captures[0] == captures[1]) &&
            CHECK(!device->ops->capture_info(device, 0, &captures[1], NULL, 0, &count)) &&
            CHECK(captures[1] == 0) && DRIVER(cuStreamEndCapture(streams[0], &graph)) &&
            DRIVER(cuGraphDestroy(graph)) && TARN(tarn_allocator_free(allocator, ptr, &error));
    tarn_allocator_destroy(allocator);
    return right && CHECK(!device->ops->event_destroy(device, event)) &&
           DRIVER(cuStreamDestroy_v2(streams[0])) && DRIVER(cuStreamDestroy_v2(streams[1]));
}

/* ---- running out of memory ---- */

struct heard {
    int times;
    struct tarn_oom oom;
};

static void observe(void *context, const struct tarn_oom *oom)
{
    struct heard *heard = context;

    heard->times++;
    heard->oom = *oom;
}

/* The message goes into the log as it is: it is what users see. */
static bool message_begins(const struct tarn_error *error, const char *begin)
{
    (void)printf("    %s\n", error->text);
    return CHECK(strncmp(error->text, begin, strlen(begin)) == 0);
}

static bool a_limit_holds(struct gpu *gpu)
{
    struct tarn_allocator *allocator = gpu_allocator(gpu, "");
    struct tarn_error error = {.status = TARN_OK};
    struct heard heard = {0};
    const double fraction = 400.0 * (double)MIB / (double)gpu->device->total_memory;
    tarn_ptr ptrs[32] = {0};
    int count = 0;
    bool right = allocator && CHECK(!tarn_allocator_add_oom_observer(allocator, observe, &heard)) &&
                 TARN(tarn_allocator_set_memory_fraction(allocator, fraction, &error));

    while (right && count < 32 &&
           tarn_allocator_alloc(allocator, 30 * MIB, 0, &ptrs[count], &error) == TARN_OK) {
        count++;
    }
    right = right && CHECK(count == 13) && CHECK(error.status == TARN_ERR_OUT_OF_MEMORY) &&
            CHECK(strstr(error.text, " MiB allowed; ")) &&
            message_begins(&error, "CUDA out of memory. Tried to allocate 30.00 MiB. GPU 0 has a "
                                   "total capacity of ") &&
            CHECK(heard.times == 1) && CHECK(heard.oom.requested == 30 * MIB) &&
            CHECK(heard.oom.reserved == 390 * MIB) && CHECK(heard.oom.device_free > 0);
    while (count > 0) {
        right = TARN(tarn_allocator_free(allocator, ptrs[--count], &error)) && right;
    }
    tarn_allocator_destroy(allocator);
    return right;
}

/* More than the GPU has, in one piece and in pages. */
static bool a_full_gpu_says_so_with(struct gpu *gpu, const char *settings)
{
    struct tarn_allocator *allocator = gpu_allocator(gpu, settings);
    struct tarn_error error = {.status = TARN_OK};
    struct block kept = {.size = 8 * MIB, .value = 9};
    struct heard heard = {0};
    tarn_ptr ptr = 0;
    bool right = allocator && CHECK(!tarn_allocator_add_oom_observer(allocator, observe, &heard)) &&
                 TARN(tarn_allocator_alloc(allocator, kept.size, 0, &kept.ptr, &error)) &&
                 block_fill(gpu, &kept, 0) &&
                 CHECK(tarn_allocator_alloc(allocator, gpu->device->total_memory + GIB, 0, &ptr,
                                            &error) == TARN_ERR_OUT_OF_MEMORY) &&
                 CHECK(ptr == 0) &&
                 message_begins(&error, "CUDA out of memory. Tried to allocate ") &&
                 CHECK(heard.times == 1) && CHECK(heard.oom.allocated == 8 * MIB);

    right = right && DRIVER(cuCtxSynchronize()) && block_holds(gpu, &kept) &&
            TARN(tarn_allocator_free(allocator, kept.ptr, &error)) &&
            nothing_is_reserved(allocator);
    tarn_allocator_destroy(allocator);
    return right;
}

static bool a_full_gpu_says_so(struct gpu *gpu)
{
    return a_full_gpu_says_so_with(gpu, "");
}

static bool a_full_gpu_says_so_to_growing_segments(struct gpu *gpu)
{
    return a_full_gpu_says_so_with(gpu, "expandable_segments:True");
}

static bool a_full_gpu_says_so_to_moving_pages(struct gpu *gpu)
{
    return a_full_gpu_says_so_with(gpu, "policy:compact");
}

/* ---- the stream-ordered backend ---- */

static bool the_driver_s_own_pool_serves(struct gpu *gpu)
{
    struct tarn_allocator *allocator = gpu_allocator(gpu, "backend:cudaMallocAsync");
    struct tarn_stats stats = {.struct_size = sizeof stats};
    struct tarn_error error = {.status = TARN_OK};
    tarn_stream streams[2] = {0};
    tarn_ptr ptr = 0;
    bool right = allocator && churn(gpu, allocator, 11, CHURN_STEPS / 2) &&
                 DRIVER(cuStreamCreate(&streams[0], TN_CU_STREAM_NON_BLOCKING)) &&
                 DRIVER(cuStreamCreate(&streams[1], TN_CU_STREAM_NON_BLOCKING));

    for (int i = 0; right && i < 20; i++) {
        right = TARN(tarn_allocator_alloc(allocator, 10 * MIB, streams[0], &ptr, &error)) &&
                DRIVER(cuMemsetD8Async(ptr, 1, 10 * MIB, streams[0])) &&
                TARN(tarn_allocator_record_stream(allocator, ptr, streams[1], &error)) &&
                TARN(tarn_allocator_free(allocator, ptr, &error));
    }
    if (right) {
        tarn_allocator_get_stats(allocator, &stats);
        (void)snprintf(
            gpu->note, sizeof gpu->note, "peak reserved %llu MiB",
            (unsigned long long)(stats.by_pool[TARN_STAT_RESERVED_BYTES][TARN_STAT_ALL].peak >>
                                 20));
        right = CHECK(stats.by_pool[TARN_STAT_RESERVED_BYTES][TARN_STAT_ALL].peak > 0) &&
                TARN(tarn_allocator_empty_cache(allocator, &error)) &&
                CHECK(tarn_allocator_alloc(allocator, gpu->device->total_memory + GIB, 0, &ptr,
                                           &error) == TARN_ERR_OUT_OF_MEMORY) &&
                message_begins(&error, "Allocation on device 0 would exceed allowed memory. (out "
                                       "of memory)");
    }
    tarn_allocator_destroy(allocator);
    return right && DRIVER(cuStreamDestroy_v2(streams[0])) &&
           DRIVER(cuStreamDestroy_v2(streams[1]));
}

/* In the capture of streams[0], which streams[1] joins: blocks of both, used on both, are freed. */
static bool free_in_capture(const struct gpu *gpu, struct tarn_allocator *allocator,
                            const tarn_stream streams[2], tn_event_handle event)
{
    struct tarn_device *device = gpu->device;
    struct tarn_error error = {.status = TARN_OK};
    bool right = CHECK(!device->ops->event_record(device, event, streams[0])) &&
                 CHECK(!device->ops->stream_wait_event(device, streams[1], event));

    for (int i = 0; right && i < 4; i++) {
        const tarn_stream own = streams[i % 2];
        tarn_ptr ptr = 0;

        right = TARN(tarn_allocator_alloc(allocator, MIB, own, &ptr, &error)) &&
                DRIVER(cuMemsetD8Async(ptr, 1, MIB, own)) &&
                (i < 2 || TARN(tarn_allocator_record_stream(allocator, ptr, streams[(i + 1) % 2],
                                                            &error))) &&
                TARN(tarn_allocator_free(allocator, ptr, &error));
    }
    return right;
}

/* CUDA ends no capture while a stream of it is not joined: one is the allocator's own. */
static bool a_capture_of_the_driver_s_pool_ends(struct gpu *gpu)
{
    const struct tarn_pool_id id = {0, 1};
    struct tarn_allocator *allocator = gpu_allocator(gpu, "backend:cudaMallocAsync");
    struct tarn_device *device = gpu->device;
    struct tarn_error error = {.status = TARN_OK};
    tarn_stream streams[2] = {0};
    tn_event_handle event = 0;
    void *graph = NULL;
    bool right = allocator && DRIVER(cuStreamCreate(&streams[0], TN_CU_STREAM_NON_BLOCKING)) &&
                 DRIVER(cuStreamCreate(&streams[1], TN_CU_STREAM_NON_BLOCKING)) &&
                 CHECK(!device->ops->event_create(device, &event)) &&
                 TARN(tarn_allocator_begin_pool(allocator, id, on_stream, &streams[0], &error)) &&
                 DRIVER(cuStreamBeginCapture_v2(streams[0], TN_CU_CAPTURE_MODE_RELAXED));

    right = right && free_in_capture(gpu, allocator, streams, event) &&
            TARN(tarn_allocator_end_pool(allocator, id, &error)) &&
            TARN(tarn_allocator_join_frees(allocator, streams[0], &error)) &&
            DRIVER(cuStreamEndCapture(streams[0], &graph)) && DRIVER(cuGraphDestroy(graph));
    tarn_allocator_destroy(allocator);
    return right && CHECK(!device->ops->event_destroy(device, event)) &&
           DRIVER(cuStreamDestroy_v2(streams[0])) && DRIVER(cuStreamDestroy_v2(streams[1]));
}

/* ---- threads ---- */

struct worker {
    const struct gpu *gpu;
    struct tarn_allocator *allocator;
    uint64_t seed;
    bool own_stream;
    uint64_t stream; /* that it made */
    bool right;
    pthread_t thread;
};

/* A new thread has no context current: calls of the allocator need none and leave none. */
static void *work(void *argument)
{
    struct worker *worker = argument;
    const struct gpu *gpu = worker->gpu;
    struct churn churn = {.allocator = worker->allocator,
                          .random = worker->seed,
                          .bits = THREAD_BITS,
                          .steps = (int)test_part(THREAD_STEPS)};
    void *context = tn_cuda_from(gpu->device)->context;
    struct tarn_error error = {.status = TARN_OK};
    tarn_ptr ptr = 0;
    void *current = &ptr;

    worker->right =
        TARN(tarn_allocator_alloc(worker->allocator, 30 * MIB, 0, &ptr, &error)) &&
        TARN(tarn_allocator_free(worker->allocator, ptr, &error)) &&
        DRIVER(cuCtxGetCurrent(&current)) && CHECK(current == NULL) &&
        DRIVER(cuCtxPushCurrent_v2(context)) &&
        (!worker->own_stream || DRIVER(cuStreamCreate(&churn.stream, TN_CU_STREAM_NON_BLOCKING))) &&
        churn_run(gpu, &churn) && DRIVER(cuCtxPopCurrent_v2(&context));
    worker->stream = churn.stream;
    return NULL;
}

static bool threads_with(struct gpu *gpu, const char *settings, bool own_streams)
{
    struct tarn_allocator *allocator = gpu_allocator(gpu, settings);
    struct worker workers[THREADS];
    int started = 0;
    bool right = allocator != NULL;

    for (; right && started < THREADS; started++) {
        struct worker *worker = &workers[started];

        *worker = (struct worker){.gpu = gpu,
                                  .allocator = allocator,
                                  .seed = (uint64_t)started + 100,
                                  .own_stream = own_streams};
        if (!CHECK(pthread_create(&worker->thread, NULL, work, worker) == 0)) {
            right = false;
            break;
        }
    }
    for (int i = 0; i < started; i++) {
        right = CHECK(pthread_join(workers[i].thread, NULL) == 0) && workers[i].right && right;
    }
    right = right && nothing_is_reserved(allocator);
    for (int i = 0; i < started; i++) { /* streams outlive what was cached for them */
        right = (workers[i].stream == 0 || DRIVER(cuStreamDestroy_v2(workers[i].stream))) && right;
    }
    tarn_allocator_destroy(allocator);
    return right;
}

static bool sixteen_threads(struct gpu *gpu)
{
    return threads_with(gpu, "", true);
}

static bool sixteen_threads_on_one_stream(struct gpu *gpu)
{
    return threads_with(gpu, "", false);
}

static bool sixteen_threads_in_growing_segments(struct gpu *gpu)
{
    return threads_with(gpu, "expandable_segments:True", true);
}

static bool sixteen_threads_move_pages(struct gpu *gpu)
{
    return threads_with(gpu, "policy:compact", true);
}

/* ---- contexts, children ---- */

static bool no_context_is_needed_and_none_is_left(struct gpu *gpu)
{
    struct tarn_allocator *allocator = gpu_allocator(gpu, "");
    struct tarn_error error = {.status = TARN_OK};
    void *context = NULL;
    void *current = &context;
    tarn_ptr ptr = 0;
    bool right = allocator && DRIVER(cuCtxPopCurrent_v2(&context)) &&
                 TARN(tarn_allocator_alloc(allocator, 100 * MIB, 0, &ptr, &error)) &&
                 TARN(tarn_allocator_free(allocator, ptr, &error)) &&
                 TARN(tarn_allocator_empty_cache(allocator, &error)) &&
                 DRIVER(cuCtxGetCurrent(&current)) && CHECK(current == NULL);

    right = DRIVER(cuCtxPushCurrent_v2(context)) && right;
    tarn_allocator_destroy(allocator);
    return right;
}

static bool the_current_device_is_found(struct gpu *gpu)
{
    struct tarn_devices *devices = NULL;
    struct tarn_error error = {.status = TARN_OK};
    void *context = NULL;
    tarn_ptr ptr = 0;

    if (!TARN(tarn_devices_create(&devices, &error))) {
        return false;
    }
    bool right = TARN(tarn_devices_use(devices, 5, gpu->device, &error)) &&
                 CHECK(tarn_devices_find_current(devices) == TARN_DEVICE_UNKNOWN) &&
                 TARN(tarn_devices_alloc(devices, 5, MIB, 0, &ptr, &error)) &&
                 CHECK(tarn_devices_find_current(devices) == 5) &&
                 DRIVER(cuCtxPopCurrent_v2(&context)) &&
                 CHECK(tarn_devices_find_current(devices) == TARN_DEVICE_UNBOUND);

    right = DRIVER(cuCtxPushCurrent_v2(context)) && right;
    right = TARN(tarn_devices_free(devices, ptr, &error)) && right;
    tarn_devices_destroy(devices);
    return right;
}

static bool a_gpu_is_open_twice(struct gpu *gpu)
{
    const struct tn_cuda_options options = {.driver_path = gpu->path};
    struct tarn_device *again = NULL;
    struct tarn_error error = {.status = TARN_OK};
    tarn_ptr ptr = 0;
    const bool right = TARN(tn_cuda_open(&options, &again, &error)) &&
                       CHECK(!again->ops->alloc(again, MIB, &ptr)) &&
                       CHECK(!gpu->device->ops->free(gpu->device, ptr)) &&
                       CHECK(gpu->device->ops->alloc(gpu->device, MIB, &ptr) == TARN_OK) &&
                       CHECK(!again->ops->free(again, ptr));

    tarn_device_close(again);
    return right;
}

/* Exit status 0: the child was told, and nothing crashed. */
static int child_of_fork(const struct gpu *gpu, struct tarn_allocator *allocator)
{
    struct tarn_error error = {.status = TARN_OK};
    tarn_ptr ptr = 0;

    if (tarn_allocator_alloc(allocator, 700 * MIB, 0, &ptr, &error) != TARN_ERR_STATE ||
        !strstr(error.text, "before this process was forked")) {
        return 1;
    }
    tarn_allocator_destroy(allocator);
    tarn_device_close(gpu->device);
    return 0;
}

static bool a_forked_child_is_told(struct gpu *gpu)
{
    struct tarn_allocator *allocator = gpu_allocator(gpu, "");
    struct tarn_error error = {.status = TARN_OK};
    struct block block = {.size = MIB, .value = 3};
    int status = 1;
    bool right = allocator && TARN(tarn_allocator_alloc(allocator, MIB, 0, &block.ptr, &error)) &&
                 block_fill(gpu, &block, 0) && DRIVER(cuCtxSynchronize());

    if (right && gpu->whole) {
        const pid_t child = fork();

        if (child == 0) {
            _exit(child_of_fork(gpu, allocator));
        }
        right = CHECK(child > 0) && CHECK(waitpid(child, &status, 0) == child) &&
                CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    right = right && block_holds(gpu, &block) &&
            TARN(tarn_allocator_free(allocator, block.ptr, &error));
    tarn_allocator_destroy(allocator);
    return right;
}

const struct gpu_case gpu_cases[] = {
    {"contents_survive", contents_survive},
    {"contents_survive_in_growing_segments", contents_survive_in_growing_segments},
    {"contents_survive_moving_pages", contents_survive_moving_pages},
    {"contents_survive_without_caching", contents_survive_without_caching},
    {"segments_grow_and_shrink", segments_grow_and_shrink},
    {"other_streams_are_waited_for", other_streams_are_waited_for},
    {"a_graph_keeps_its_memory", a_graph_keeps_its_memory},
    {"a_graph_keeps_its_memory_in_growing_segments", a_graph_keeps_its_memory_in_growing_segments},
    {"a_graph_keeps_its_memory_among_moving_pages", a_graph_keeps_its_memory_among_moving_pages},
    {"terminals_of_a_capture_are_read", terminals_of_a_capture_are_read},
    {"decisions_are_the_same", gpu_decisions_are_the_same},
    {"a_limit_holds", a_limit_holds},
    {"a_full_gpu_says_so", a_full_gpu_says_so},
    {"a_full_gpu_says_so_to_growing_segments", a_full_gpu_says_so_to_growing_segments},
    {"a_full_gpu_says_so_to_moving_pages", a_full_gpu_says_so_to_moving_pages},
    {"the_driver_s_own_pool_serves", the_driver_s_own_pool_serves},
    {"a_capture_of_the_driver_s_pool_ends", a_capture_of_the_driver_s_pool_ends},
    {"sixteen_threads", sixteen_threads},
    {"sixteen_threads_on_one_stream", sixteen_threads_on_one_stream},
    {"sixteen_threads_in_growing_segments", sixteen_threads_in_growing_segments},
    {"sixteen_threads_move_pages", sixteen_threads_move_pages},
    {"no_context_is_needed_and_none_is_left", no_context_is_needed_and_none_is_left},
    {"the_current_device_is_found", the_current_device_is_found},
    {"a_gpu_is_open_twice", a_gpu_is_open_twice},
    {"a_forked_child_is_told", a_forked_child_is_told},
    {NULL, NULL},
};
