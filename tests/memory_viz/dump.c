/* SPDX-License-Identifier: MIT */
/*
 * dump FILE [SETTINGS]: allocates on a simulated device with its history on, runs out of memory,
 * and writes a snapshot with stacks, of every kind of entry that there is without a GPU.
 */
#include "tarn/capture.h"
#include "tarn/graph_pool.h"
#include "tarn/sim.h"

#include <stdio.h>
#include <stdlib.h>

#define MIB ((uint64_t)1 << 20)

enum {
    PTRS = 64
};

static struct tarn_error error;

static void check(enum tarn_status status)
{
    if (status) {
        (void)fprintf(stderr, "%s: %s\n", tarn_status_name(status), error.text);
        exit(1);
    }
}

static tarn_ptr allocate(struct tarn_allocator *allocator, uint64_t size, tarn_stream stream)
{
    tarn_ptr ptr = 0;

    check(tarn_allocator_alloc(allocator, size, stream, &ptr, &error));
    return ptr;
}

/* Sizes of both pools and odd ones, freed in another order. */
static void train(struct tarn_allocator *allocator, tarn_stream stream)
{
    tarn_ptr ptrs[PTRS];

    for (uint64_t i = 0; i < PTRS; i++) {
        ptrs[i] = allocate(allocator, (i * i * 7919) % (6 * MIB) + 1 + i, stream);
    }
    for (uint64_t i = 0; i < PTRS; i++) {
        if (i % 5 != 0) {
            check(tarn_allocator_free(allocator, ptrs[(i * 13) % PTRS], &error));
        }
    }
}

static bool any_stream(void *context, tarn_stream stream)
{
    (void)context;
    (void)stream;
    return true;
}

static void work(struct tarn_allocator *allocator)
{
    const struct tarn_pool_id pool = {0, 3};
    tarn_ptr ptr;

    train(allocator, 0);
    train(allocator, 0x1230);
    ptr = allocate(allocator, 300 * MIB, 0);
    check(tarn_allocator_record_stream(allocator, ptr, 0x1230, &error));
    check(tarn_allocator_free(allocator, ptr, &error));
    check(tarn_allocator_begin_pool(allocator, pool, any_stream, NULL, &error));
    (void)allocate(allocator, 11 * MIB, 0);
    check(tarn_allocator_end_pool(allocator, pool, &error));
    check(tarn_allocator_annotate(allocator, allocate(allocator, 5000, 0), "a \"note\"", &error));
    if (tarn_allocator_alloc(allocator, 4096 * MIB, 0, &ptr, &error) != TARN_ERR_OUT_OF_MEMORY) {
        check(TARN_ERR_STATE);
    }
    check(tarn_allocator_empty_cache(allocator, &error));
    train(allocator, 0x1230);
}

int main(int argc, char **argv)
{
    struct tarn_capture_source source = {NULL, NULL};
    struct tarn_snapshot *snapshot = NULL;
    struct tarn_sink sink;

    if (argc < 2) {
        (void)fprintf(stderr, "usage: dump FILE [SETTINGS]\n");
        return 2;
    }
    check(tarn_allocator_create_on("sim:1GiB", argc > 2 ? argv[2] : "", &source.allocator, &error));
    check(tarn_history_create(NULL, &source.history, &error));
    tarn_history_get_sink(source.history, TARN_CONTEXT_ALL, &sink);
    check(tarn_allocator_add_sink(source.allocator, &sink, &error));
    work(source.allocator);
    for (int i = 0; i < 2; i++) { /* the second has the event that the first left */
        tarn_snapshot_destroy(snapshot);
        check(tarn_snapshot_capture(&source, 1, NULL, &snapshot, &error));
    }
    check(tarn_snapshot_save(snapshot, argv[1], &error));
    tarn_snapshot_destroy(snapshot);
    check(tarn_allocator_remove_sink(source.allocator, source.history, &error));
    tarn_allocator_destroy(source.allocator);
    tarn_history_destroy(source.history);
    return 0;
}
