/* SPDX-License-Identifier: MIT */
/*
 * The calls for engines on a GPU: blocks of pools, with alignments and from tries, hold their
 * contents while callbacks make room for others, under each policy.
 */
#include "gpu/gpu_block.h"
#include "gpu/gpu_case.h"
#include "tarn/block.h"
#include "tarn/pool.h"
#include "tarn/pressure.h"
#include "tarn/request.h"

enum {
    POOLS = 3,
    LIVE_MAX = 96,
    STEPS = 500,
    BITS = 25,      /* sizes up to 32 MiB */
    LIMIT_MIB = 128 /* of all */
};

struct server {
    struct gpu *gpu;
    struct tarn_allocator *allocator;
    struct tarn_pool *pools[POOLS];
    uint64_t random;
    struct block live[LIVE_MAX];
    size_t count;
    unsigned evicted;
    unsigned tries_failed;
    bool right;
};

/* Frees the oldest block, whose contents must be there. */
static uint64_t server_evict(struct server *server)
{
    struct gpu *gpu = server->gpu;
    struct tarn_error error = {.status = TARN_OK};

    if (server->count == 0) {
        return 0;
    }
    const struct block block = server->live[0];

    server->live[0] = server->live[--server->count];
    server->right = server->right && DRIVER(cuCtxSynchronize()) && block_holds(gpu, &block) &&
                    TARN(tarn_allocator_free(server->allocator, block.ptr, &error));
    return block.size;
}

static uint64_t make_room(void *context, const struct tarn_pressure *pressure)
{
    struct server *server = context;

    server->evicted++;
    server->right = server->right && CHECK(pressure->bytes > 0);
    return server_evict(server);
}

static bool server_add(struct server *server)
{
    struct gpu *gpu = server->gpu;
    struct tarn_error error = {.status = TARN_OK};
    const uint64_t which = random_next(&server->random) % (POOLS + 1);
    const struct tarn_alloc_options options = {
        .struct_size = sizeof options,
        .pool = which < POOLS ? server->pools[which] : NULL,
        .alignment = random_next(&server->random) % 4 ? 0 : 64 * KIB,
        .flags = random_next(&server->random) % 2 ? TARN_ALLOC_WITHIN_BUDGET : 0,
    };
    struct block block = {.size = random_size(&server->random, BITS),
                          .value = (unsigned char)random_next(&server->random)};
    const enum tarn_status st =
        tarn_alloc_with(server->allocator, block.size, 0, &options, &block.ptr, &error);

    if (st == TARN_ERR_OUT_OF_MEMORY && options.flags) {
        server->tries_failed++;
        return true;
    }
    if (!gpu_status_ok(__FILE__, __LINE__, "tarn_alloc_with", st, &error) ||
        !CHECK(options.alignment == 0 || block.ptr % options.alignment == 0) ||
        !CHECK(tarn_allocator_usable_size(server->allocator, block.ptr) >= block.size)) {
        return false;
    }
    server->live[server->count++] = block;
    return block_fill(gpu, &block, 0);
}

static bool server_open(struct server *server, const char *settings)
{
    struct tarn_error error = {.status = TARN_OK};

    server->allocator = gpu_allocator(server->gpu, settings);
    server->right =
        server->allocator &&
        TARN(tarn_allocator_set_limit(server->allocator, LIMIT_MIB * MIB, &error)) &&
        TARN(tarn_allocator_set_soft_limit(server->allocator, LIMIT_MIB / 2 * MIB, &error)) &&
        CHECK(tarn_allocator_add_pressure_callback(server->allocator, make_room, server) ==
              TARN_OK);
    for (int i = 0; server->right && i < POOLS; i++) {
        const struct tarn_pool_options options = {.struct_size = sizeof options};

        server->right =
            TARN(tarn_pool_create(server->allocator, &options, &server->pools[i], &error));
    }
    return server->right;
}

/* All goes back to the GPU: the frame compares what is free. */
static bool server_close(struct server *server)
{
    struct tarn_findings findings = TARN_FINDINGS_INIT;

    while (server->count > 0) {
        (void)server_evict(server);
    }
    for (int i = 0; i < POOLS; i++) {
        tarn_pool_destroy(server->pools[i]);
    }
    if (server->allocator) {
        server->right =
            server->right && CHECK(tarn_allocator_check(server->allocator, &findings) == 0);
    }
    tarn_allocator_destroy(server->allocator);
    return server->right;
}

static bool serve(struct gpu *gpu, const char *settings)
{
    struct server server = {.gpu = gpu, .random = 11};
    bool right = server_open(&server, settings);

    for (int i = 0; right && i < STEPS; i++) {
        if (server.count < LIVE_MAX) {
            right = server_add(&server);
        }
        if (server.count == LIVE_MAX || random_next(&server.random) % 8 == 0) {
            (void)server_evict(&server);
        }
        right = right && server.right;
    }
    right = right && CHECK(server.evicted > 0) && CHECK(server.tries_failed > 0);
    (void)snprintf(gpu->note, sizeof gpu->note, "%u evicted, %u tries failed", server.evicted,
                   server.tries_failed);
    return server_close(&server) && right;
}

static bool a_server_evicts(struct gpu *gpu)
{
    return serve(gpu, "");
}

static bool a_server_evicts_in_growing_segments(struct gpu *gpu)
{
    return serve(gpu, "expandable_segments:True");
}

static bool a_server_evicts_and_pages_move(struct gpu *gpu)
{
    return serve(gpu, "policy:compact");
}

const struct gpu_case gpu_engine_cases[] = {
    {"a_server_evicts", a_server_evicts},
    {"a_server_evicts_in_growing_segments", a_server_evicts_in_growing_segments},
    {"a_server_evicts_and_pages_move", a_server_evicts_and_pages_move},
    {NULL, NULL},
};
