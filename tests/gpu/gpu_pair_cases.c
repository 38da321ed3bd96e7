/* SPDX-License-Identifier: MIT */
/* What a GPU has to do with others: copies to and from a second one, and pinned memory; and pools
 * that go back to an earlier state. */
#include "gpu/gpu_case.h"

#include "support/any_stream.h"
#include "tarn/copy.h"
#include "tarn/graph_pool.h"
#include "tarn/pinned.h"

#include <string.h>

enum {
    COPY_BYTES = 24 << 20, /* more than a page of a expandable segment */
    PINNED_ROUNDS = 200,
    PINNED_BYTES = 1 << 20
};

/* ---- two GPUs ---- */

static unsigned char pattern(size_t i, unsigned seed)
{
    return (unsigned char)(i * 7 + i / 4096 + seed);
}

static unsigned char buffer[COPY_BYTES];

static void buffer_fill(unsigned seed)
{
    for (size_t i = 0; i < COPY_BYTES; i++) {
        buffer[i] = pattern(i, seed);
    }
}

static bool buffer_holds(unsigned seed)
{
    for (size_t i = 0; i < COPY_BYTES; i++) {
        if (!CHECK(buffer[i] == pattern(i, seed))) {
            return false;
        }
    }
    return true;
}

/* From the host to one, to the other, to the host. */
static bool copy_across(struct tarn_allocator *from, struct tarn_allocator *to, unsigned seed)
{
    struct tarn_error error = {.status = TARN_OK};
    tarn_ptr source = 0;
    tarn_ptr target = 0;

    buffer_fill(seed);
    bool right = TARN(tarn_allocator_alloc(from, COPY_BYTES, 0, &source, &error)) &&
                 TARN(tarn_allocator_alloc(to, COPY_BYTES, 0, &target, &error)) &&
                 TARN(tarn_copy_from_host(from, source, buffer, COPY_BYTES, 0, &error)) &&
                 TARN(tarn_copy(to, target, from, source, COPY_BYTES, 0, &error));

    memset(buffer, 0, sizeof buffer);
    /* The copy is in the order of the source's stream. */
    right = right && TARN(tarn_copy_to_host(from, buffer, source, 1, 0, &error)) &&
            TARN(tarn_copy_to_host(to, buffer, target, COPY_BYTES, 0, &error)) &&
            buffer_holds(seed);
    return TARN(tarn_allocator_free(from, source, &error)) &&
           TARN(tarn_allocator_free(to, target, &error)) && right;
}

/* Both ways, with these settings on either side. */
static bool pair_with(struct gpu *gpu, struct gpu *other, const char *settings,
                      const char *other_settings)
{
    struct tarn_allocator *a = gpu_allocator(gpu, settings);
    struct tarn_allocator *b = gpu_allocator(other, other_settings);
    struct tarn_error error = {.status = TARN_OK};
    bool reaches = false;
    const bool right = a && b && copy_across(a, b, 1) && copy_across(b, a, 2) &&
                       TARN(tarn_allocator_reach_peer(a, b, &reaches, &error));

    (void)snprintf(gpu->note, sizeof gpu->note, "peer access: %s", reaches ? "yes" : "no");
    tarn_allocator_destroy(a);
    tarn_allocator_destroy(b);
    return right;
}

/* A stream of one GPU is no stream of the other: told when it is recorded, nothing lost. */
static bool streams_are_told_apart(const struct gpu *gpu, const struct gpu *other)
{
    struct tarn_allocator *allocator = gpu_allocator(gpu, "");
    struct tarn_error error = {.status = TARN_OK};
    tarn_stream foreign = 0;
    tarn_ptr ptr = 0;
    const bool right =
        allocator && CHECK(other->device->ops->stream_create(other->device, &foreign) == TARN_OK) &&
        TARN(tarn_allocator_alloc(allocator, MIB, 0, &ptr, &error)) &&
        CHECK(tarn_allocator_record_stream(allocator, ptr, foreign, &error) ==
              TARN_ERR_INVALID_ARGUMENT) &&
        TARN(tarn_allocator_free(allocator, ptr, &error)) &&
        CHECK(other->device->ops->stream_destroy(other->device, foreign) == TARN_OK);

    tarn_allocator_destroy(allocator);
    return right;
}

static bool two_gpus_exchange_memory(struct gpu *gpu)
{
    const struct tn_cuda_options options = {.ordinal = 1, .driver_path = gpu->path};
    static const char *const growing = "expandable_segments:True";
    struct gpu other = *gpu;
    struct tarn_error error = {.status = TARN_OK};
    const enum tarn_status st = tn_cuda_open(&options, &other.device, &error);

    if (st == TARN_ERR_INVALID_ARGUMENT) {
        (void)snprintf(gpu->skip, sizeof gpu->skip, "%.100s", error.text);
        return true;
    }
    if (!gpu_status_ok(__FILE__, __LINE__, "opening the second GPU", st, &error)) {
        return false;
    }
    const bool right = pair_with(gpu, &other, "", "") && pair_with(gpu, &other, growing, "") &&
                       pair_with(gpu, &other, "", growing) &&
                       pair_with(gpu, &other, growing, growing) &&
                       streams_are_told_apart(gpu, &other);

    tarn_device_close(other.device);
    return right;
}

/* ---- pinned memory ---- */

struct pinned_work {
    struct tarn_pinned *pinned;
    struct tarn_allocator *allocator;
    uint64_t stream;
    tarn_ptr target; /* PINNED_ROUNDS bytes, one a round */
};

/* Writes a byte into pinned memory, has the GPU fetch it from there, and frees the memory at once:
 * nobody else may get it before it was fetched. */
static bool pinned_round(const struct gpu *gpu, const struct pinned_work *work, unsigned round)
{
    struct tarn_error error = {.status = TARN_OK};
    void *memory = NULL;

    if (!TARN(tarn_pinned_alloc(work->pinned, PINNED_BYTES, &memory, &error))) {
        return false;
    }
    memset(memory, (int)(round + 1) & 0xff, PINNED_BYTES);
    return DRIVER(cuMemcpyAsync(work->target + round,
                                (uint64_t)(uintptr_t)memory + PINNED_BYTES - 1, 1, work->stream)) &&
           TARN(tarn_pinned_record_stream(work->pinned, memory, NULL, work->stream, &error)) &&
           TARN(tarn_pinned_free(work->pinned, memory, &error));
}

static bool pinned_rounds(const struct gpu *gpu, const struct pinned_work *work)
{
    struct tarn_error error = {.status = TARN_OK};
    unsigned char bytes[PINNED_ROUNDS] = {0};
    bool right = true;

    for (unsigned i = 0; right && i < PINNED_ROUNDS; i++) {
        right = pinned_round(gpu, work, i);
    }
    right = right && TARN(tarn_copy_to_host(work->allocator, bytes, work->target, PINNED_ROUNDS,
                                            work->stream, &error));
    for (unsigned i = 0; right && i < PINNED_ROUNDS; i++) {
        right = CHECK(bytes[i] == ((i + 1) & 0xff));
    }
    return right;
}

static bool pinned_with(struct gpu *gpu, const char *settings)
{
    struct pinned_work work = {.allocator = gpu_allocator(gpu, "")};
    struct tarn_error error = {.status = TARN_OK};
    struct tarn_config config;
    struct tarn_findings findings = TARN_FINDINGS_INIT;
    struct tarn_pinned_stats stats = {.struct_size = sizeof stats};
    bool right =
        work.allocator && TARN(tarn_config_parse(settings, &config, &error)) &&
        TARN(tarn_pinned_create(gpu->device, &config, &work.pinned, &error)) &&
        TARN(tarn_allocator_alloc(work.allocator, PINNED_ROUNDS, 0, &work.target, &error)) &&
        DRIVER(cuStreamCreate(&work.stream, TN_CU_STREAM_NON_BLOCKING)) &&
        pinned_rounds(gpu, &work);

    if (right) {
        tarn_pinned_get_stats(work.pinned, &stats);
        (void)snprintf(gpu->note, sizeof gpu->note, "%lld pieces for %d rounds",
                       (long long)stats.num_host_alloc, (int)PINNED_ROUNDS);
    }
    right = right && TARN(tarn_pinned_empty_cache(work.pinned, &error)) &&
            CHECK(tarn_pinned_check(work.pinned, &findings) == 0) &&
            DRIVER(cuStreamDestroy_v2(work.stream));
    tarn_pinned_destroy(work.pinned);
    tarn_allocator_destroy(work.allocator);
    return right;
}

static bool pinned_memory_waits_for_its_streams(struct gpu *gpu)
{
    return pinned_with(gpu, "");
}

static bool pinned_memory_is_registered(struct gpu *gpu)
{
    return pinned_with(gpu, "pinned_use_cuda_host_register:True,pinned_num_register_threads:4");
}

static bool pinned_memory_has_a_thread(struct gpu *gpu)
{
    return pinned_with(gpu, "pinned_use_background_threads:True,pinned_reserve_segment_size_mb:4");
}

/* ---- checkpoints ---- */

/* A pool goes back to what it was: the same blocks at the same addresses, with their bytes. */
static bool checkpoint_with(struct gpu *gpu, const char *settings)
{
    const struct tarn_pool_id pool = {.second = 9};
    struct tarn_allocator *allocator = gpu_allocator(gpu, settings);
    struct tarn_checkpoint *checkpoint = NULL;
    struct tarn_checkpoint_delta delta = {0};
    struct tarn_error error = {.status = TARN_OK};
    unsigned char byte = 0;
    tarn_ptr kept = 0;
    tarn_ptr later = 0;
    bool right = allocator &&
                 TARN(tarn_allocator_begin_pool(allocator, pool, any_stream, NULL, &error)) &&
                 TARN(tarn_allocator_alloc(allocator, 3 * MIB, 0, &kept, &error)) &&
                 DRIVER(cuMemsetD8Async(kept, 77, 3 * MIB, 0)) &&
                 TARN(tarn_allocator_get_checkpoint(allocator, pool, &checkpoint, &error)) &&
                 TARN(tarn_allocator_free(allocator, kept, &error)) &&
                 TARN(tarn_allocator_alloc(allocator, 30 * MIB, 0, &later, &error)) &&
                 TARN(tarn_allocator_end_pool(allocator, pool, &error)) &&
                 TARN(tarn_allocator_set_checkpoint(allocator, checkpoint, &delta, &error)) &&
                 CHECK(delta.created_count == 1 && delta.created[0] == kept) &&
                 CHECK(delta.freed_count == 1 && delta.freed[0] == later) &&
                 TARN(tarn_copy_to_host(allocator, &byte, kept + 3 * MIB - 1, 1, 0, &error)) &&
                 CHECK(byte == 77) && TARN(tarn_allocator_free(allocator, kept, &error)) &&
                 TARN(tarn_allocator_release_pool(allocator, pool, &error));

    tarn_checkpoint_delta_fini(&delta);
    tarn_checkpoint_destroy(checkpoint);
    tarn_allocator_destroy(allocator);
    return right;
}

static bool a_checkpoint_is_restored(struct gpu *gpu)
{
    return checkpoint_with(gpu, "") && checkpoint_with(gpu, "expandable_segments:True");
}

const struct gpu_case gpu_pair_cases[] = {
    {"a_checkpoint_is_restored", a_checkpoint_is_restored},
    {"two_gpus_exchange_memory", two_gpus_exchange_memory},
    {"pinned_memory_waits_for_its_streams", pinned_memory_waits_for_its_streams},
    {"pinned_memory_is_registered", pinned_memory_is_registered},
    {"pinned_memory_has_a_thread", pinned_memory_has_a_thread},
    {NULL, NULL},
};
