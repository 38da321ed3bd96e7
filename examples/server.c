/* SPDX-License-Identifier: MIT */
/*
 * server [DEVICE [SNAPSHOT]]: a server's memory. Weights live in the default pool, the key-value
 * caches of sequences in pages of a pool of their own. Memory is limited; when it is short, the
 * sequence that was used least recently is evicted. At the end SNAPSHOT, if given, is written, for
 * `tarn peak` and `tarn view`.
 */
#include "example.h"

#include <tarn/capture.h>
#include <tarn/history.h>
#include <tarn/pool.h>
#include <tarn/pressure.h>
#include <tarn/request.h>
#include <tarn/snapshot.h>

#include <inttypes.h>
#include <string.h>

#define MIB ((uint64_t)1 << 20)

enum {
    SEQUENCES = 32,
    PAGES_MAX = 24,  /* of one sequence */
    PAGE = 2 << 20,  /* bytes */
    LIMIT_MIB = 256, /* of everything */
    SOFT_MIB = 224,  /* from here on sequences are evicted before the device is asked */
    WEIGHTS_MIB = 96,
    STEPS = 400
};

struct sequence {
    tarn_ptr pages[PAGES_MAX];
    int count;
    unsigned used; /* step of its last use */
};

struct server {
    struct tarn_allocator *allocator;
    struct tarn_pool *pool;
    struct sequence sequences[SEQUENCES];
    const struct sequence *busy; /* must not be evicted */
    unsigned step;
    unsigned evictions;
};

/* Frees the pages of a sequence and returns their bytes. */
static uint64_t drop(struct server *server, struct sequence *sequence)
{
    const uint64_t bytes = (uint64_t)sequence->count * PAGE;
    struct tarn_error error;

    while (sequence->count > 0) {
        CHECK(tarn_allocator_free(server->allocator, sequence->pages[--sequence->count], &error));
    }
    return bytes;
}

/* The device or a limit says no, or the soft limit is passed: makes room. Runs on the thread whose
 * request it is, with no lock held. */
static uint64_t evict(void *context, const struct tarn_pressure *pressure)
{
    struct server *server = context;
    struct sequence *oldest = NULL;

    (void)pressure; /* says how much is missing, and why */
    for (int i = 0; i < SEQUENCES; i++) {
        struct sequence *s = &server->sequences[i];

        if (s != server->busy && s->count > 0 && (!oldest || s->used < oldest->used)) {
            oldest = s;
        }
    }
    server->evictions += oldest != NULL;
    return oldest ? drop(server, oldest) : 0;
}

/* One more page, cheaply if there is room, else by eviction. */
static void grow(struct server *server, struct sequence *sequence)
{
    tarn_ptr *page = &sequence->pages[sequence->count];
    struct tarn_error error;

    if (tarn_pool_alloc_try(server->pool, PAGE, 0, TARN_ALLOC_WITHIN_BUDGET, page) != TARN_OK) {
        CHECK(tarn_pool_alloc(server->pool, PAGE, 0, page, &error));
    }
    sequence->count++;
}

/* A step of the sequence: its cache grows by a page, or it ends and another one begins. */
static void serve(struct server *server, struct sequence *sequence)
{
    server->busy = sequence;
    sequence->used = ++server->step;
    if (sequence->count == PAGES_MAX) {
        (void)drop(server, sequence);
    }
    grow(server, sequence);
    server->busy = NULL;
}

static void save(struct server *server, struct tarn_history *history, const char *path)
{
    const struct tarn_capture_source source = {server->allocator, history};
    struct tarn_snapshot *snapshot;
    struct tarn_error error;

    CHECK(tarn_snapshot_capture(&source, 1, NULL, &snapshot, &error));
    CHECK(tarn_snapshot_save(snapshot, path, &error));
    tarn_snapshot_destroy(snapshot);
}

int main(int argc, char **argv)
{
    const struct tarn_pool_options options = {
        .struct_size = sizeof options, .name = "kv cache", .priority = 1};
    const struct tarn_alloc_options weights = {.struct_size = sizeof weights, .name = "weights"};
    static struct server server;
    struct tarn_history *history;
    struct tarn_error error;
    struct tarn_sink sink;
    tarn_ptr ptr;

    CHECK(tarn_allocator_create_on(argc > 1 ? argv[1] : NULL, NULL, &server.allocator, &error));
    CHECK(tarn_history_create(NULL, &history, &error));
    tarn_history_get_sink(history, TARN_CONTEXT_STATE, &sink);
    CHECK(tarn_allocator_add_sink(server.allocator, &sink, &error));

    CHECK(tarn_allocator_set_limit(server.allocator, LIMIT_MIB * MIB, &error));
    CHECK(tarn_allocator_set_soft_limit(server.allocator, SOFT_MIB * MIB, &error));
    CHECK(tarn_pool_create(server.allocator, &options, &server.pool, &error));
    CHECK(tarn_alloc_with(server.allocator, WEIGHTS_MIB * MIB, 0, &weights, &ptr, &error));
    if (tarn_allocator_add_pressure_callback(server.allocator, evict, &server) != TARN_OK) {
        return 1;
    }

    unsigned random = 1;

    for (int i = 0; i < STEPS; i++) {
        random = random * 1103515245u + 12345u;
        serve(&server, &server.sequences[(random >> 16) % SEQUENCES]);
    }

    struct tarn_pool_stats stats = {.struct_size = sizeof stats};

    CHECK(tarn_pool_get_stats(server.pool, &stats));
    (void)printf("%u steps, %u evictions; the cache has %" PRIu64 " pages, %" PRIu64
                 " MiB reserved\n",
                 server.step, server.evictions, stats.blocks, stats.reserved / MIB);
    EXPECT(server.evictions > 0 && stats.blocks > 0);
    EXPECT(stats.reserved_peak <= (LIMIT_MIB - WEIGHTS_MIB) * MIB);
    if (argc > 2) {
        save(&server, history, argv[2]);
    }

    for (int i = 0; i < SEQUENCES; i++) {
        (void)drop(&server, &server.sequences[i]);
    }
    CHECK(tarn_allocator_free(server.allocator, ptr, &error));
    CHECK(tarn_allocator_remove_pressure_callback(server.allocator, evict, &server));
    tarn_pool_destroy(server.pool);
    tarn_allocator_destroy(server.allocator);
    tarn_history_destroy(history);
    return 0;
}
