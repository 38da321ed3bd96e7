/* SPDX-License-Identifier: MIT */
/*
 * engine [--origin TEXT] [--scale X]: what the calls for engines cost, on the simulated device:
 * tries that fail, pools as handles, requests for which a callback has to make room. One line of
 * CSV each on standard output (figure.h), in ns per call or, where it says so, per pair.
 *
 *   try_fails_never_grow   no free block, and it may not grow
 *   try_fails_limit        the limit says no
 *   try_fails_refused      the device said no a moment ago
 *   try_pair               a try that a free block serves, and its free
 *   pool_pair              an allocation from a pool, and its free
 *   ring                   the oldest of 64 blocks is freed and another allocated, per pair
 *   pool_ring              the same from a pool
 *   alloc_fails            what tarn_allocator_alloc costs when it fails, with its message
 *   alloc_fails_quietly    and without one
 *   alloc_with_pressure    a callback frees one block, the request is served from it
 */
#include "figure.h"

#include "tarn/allocator.h"
#include "tarn/pool.h"
#include "tarn/pressure.h"
#include "tarn/request.h"

#include <stdlib.h>
#include <string.h>

#define MIB ((uint64_t)1 << 20)

enum {
    REPEATS = 15,
    BLOCKS = 100,
    RING = 64 /* a power of two, at most BLOCKS */
};

static const char *origin;
static double scale = 1.0;

struct state {
    struct tarn_allocator *allocator;
    struct tarn_pool *pool;
    struct tarn_error error;
    tarn_ptr blocks[BLOCKS];
    unsigned next; /* block that is evicted next */
};

static void must(enum tarn_status status)
{
    if (status) {
        (void)fprintf(stderr, "engine: %s\n", tarn_status_text(status));
        exit(1);
    }
}

static void fails(enum tarn_status status)
{
    if (status != TARN_ERR_OUT_OF_MEMORY) {
        (void)fprintf(stderr, "engine: a request that cannot be served was\n");
        exit(1);
    }
}

/* ---- what is measured ---- */

static void try_never_grow(struct state *state)
{
    tarn_ptr ptr;

    fails(tarn_alloc_try(state->allocator, 20 * MIB, 0, TARN_ALLOC_NEVER_GROW, &ptr));
}

static void try_plainly(struct state *state)
{
    tarn_ptr ptr;

    fails(tarn_alloc_try(state->allocator, 20 * MIB, 0, 0, &ptr));
}

static void try_pair(struct state *state)
{
    tarn_ptr ptr;

    must(tarn_alloc_try(state->allocator, 4096, 0, 0, &ptr));
    must(tarn_allocator_free(state->allocator, ptr, NULL));
}

static void pool_pair(struct state *state)
{
    tarn_ptr ptr;

    must(tarn_pool_alloc(state->pool, 4096, 0, &ptr, NULL));
    must(tarn_allocator_free(state->allocator, ptr, NULL));
}

/* Not in the order that the undo log is for. */
static void ring(struct state *state)
{
    tarn_ptr *oldest = &state->blocks[state->next++ % RING];

    must(tarn_allocator_free(state->allocator, *oldest, NULL));
    must(tarn_allocator_alloc(state->allocator, 4096, 0, oldest, NULL));
}

static void pool_ring(struct state *state)
{
    tarn_ptr *oldest = &state->blocks[state->next++ % RING];

    must(tarn_allocator_free(state->allocator, *oldest, NULL));
    must(tarn_pool_alloc(state->pool, 4096, 0, oldest, NULL));
}

static void alloc_fails(struct state *state)
{
    tarn_ptr ptr;

    fails(tarn_allocator_alloc(state->allocator, 20 * MIB, 0, &ptr, &state->error));
}

static void alloc_fails_quietly(struct state *state)
{
    tarn_ptr ptr;

    fails(tarn_allocator_alloc(state->allocator, 20 * MIB, 0, &ptr, NULL));
}

static uint64_t evict(void *context, const struct tarn_pressure *pressure)
{
    struct state *state = context;

    (void)pressure;
    must(tarn_allocator_free(state->allocator, state->blocks[state->next], NULL));
    return 10 * MIB;
}

static void alloc_with_pressure(struct state *state)
{
    must(tarn_allocator_alloc(state->allocator, 10 * MIB, 0, &state->blocks[state->next], NULL));
    state->next = (state->next + 1) % BLOCKS;
}

/* ---- measuring ---- */

/* All of the device is in use: 100 blocks of 10 MiB. */
static void fill(struct state *state)
{
    for (int i = 0; i < BLOCKS; i++) {
        must(tarn_allocator_alloc(state->allocator, 10 * MIB, 0, &state->blocks[i], NULL));
    }
}

static void fill_and_limit(struct state *state)
{
    fill(state);
    must(tarn_allocator_set_limit(state->allocator, 1000 * MIB, NULL));
}

static void fill_and_listen(struct state *state)
{
    fill(state);
    must(tarn_allocator_add_pressure_callback(state->allocator, evict, state));
}

static void nothing(struct state *state)
{
    (void)state;
}

struct measure {
    const char *pattern;
    void (*prepare)(struct state *state);
    void (*call)(struct state *state);
    long calls;
};

static const struct measure measures[] = {
    {"try_fails_never_grow", fill, try_never_grow, 200000},
    {"try_fails_limit", fill_and_limit, try_plainly, 200000},
    {"try_fails_refused", fill, try_plainly, 200000},
    {"try_pair", nothing, try_pair, 400000},
    {"pool_pair", nothing, pool_pair, 400000},
    {"ring", nothing, ring, 400000},
    {"pool_ring", nothing, pool_ring, 400000},
    {"alloc_fails", fill, alloc_fails, 2000},
    {"alloc_fails_quietly", fill, alloc_fails_quietly, 20000},
    {"alloc_with_pressure", fill_and_listen, alloc_with_pressure, 20000},
};

static double run(const struct measure *measure)
{
    struct state *state = bench_must_alloc(1, sizeof *state);
    const long calls = (long)((double)measure->calls * scale) + 1;

    must(tarn_allocator_create_on("sim:1000MiB", "", &state->allocator, NULL));
    must(tarn_pool_create(state->allocator, NULL, &state->pool, NULL));
    measure->prepare(state);
    for (int i = 0; i < 100; i++) {
        measure->call(state);
    }
    const double begin = bench_now_ns();

    for (long i = 0; i < calls; i++) {
        measure->call(state);
    }
    const double ns = (bench_now_ns() - begin) / (double)calls;

    tarn_pool_destroy(state->pool);
    tarn_allocator_destroy(state->allocator);
    free(state);
    return ns;
}

int main(int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--origin") == 0) {
            origin = argv[i + 1];
        } else if (strcmp(argv[i], "--scale") == 0) {
            scale = strtod(argv[i + 1], NULL);
        }
    }
    for (size_t m = 0; m < sizeof measures / sizeof measures[0]; m++) {
        double values[REPEATS];

        for (int i = 0; i < REPEATS; i++) {
            values[i] = run(&measures[m]);
        }
        const struct bench_figure figure = bench_figure_of(values, REPEATS);

        bench_figure_print(stdout, origin, "tarn", measures[m].pattern, "ns", &figure);
    }
    return 0;
}
