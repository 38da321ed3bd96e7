/* SPDX-License-Identifier: MIT */
/* Frees without host memory: the list itself, and that no decision depends on it. */
#include "support/test.h"

#include "alloc/pool/linked.h"
#include "support/rig.h"

enum {
    BLOCKS = 300,
    STREAMS = 3,
    STEPS = 4000
};

static uint64_t random_state;

static uint64_t random_below(uint64_t bound)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (random_state >> 33) % bound;
}

/* ---- the list ---- */

static _Alignas(TN_CACHE_LINE) struct tn_block nodes[4];

static void a_block_keeps_when_it_became_free(void **state)
{
    static const int64_t bases[] = {0, 1, 4194303, 4194304, INT64_C(1) << 40};
    struct tn_linked list = {0};

    (void)state;
    for (size_t i = 0; i < sizeof bases / sizeof bases[0]; i++) {
        for (size_t k = 0; k < 4; k++) {
            nodes[k].u.gc_base = bases[i] + (int64_t)k;
            tn_linked_add(&list, &nodes[k]);
        }
        assert_int_equal(tn_linked_count(&list), 4);
        for (size_t k = 0; k < 4; k++) {
            assert_true(tn_linked_has(&list, &nodes[k]));
            assert_int_equal(tn_linked_base(&nodes[k], bases[i] + 3), bases[i] + (int64_t)k);
            assert_int_equal(tn_linked_base(&nodes[k], bases[i] + 2000000), bases[i] + (int64_t)k);
        }
        for (size_t k = 0; k < 4; k++) { /* from the middle, the end and the beginning */
            struct tn_block *block = &nodes[(k * 3 + 1) % 4];

            tn_linked_remove(&list, block, bases[i] + 2000000);
            assert_false(tn_linked_has(&list, block));
            assert_int_equal(block->u.gc_base, bases[i] + (block - nodes));
        }
        assert_null(list.first);
    }
}

/* ---- decisions ---- */

/* One program, and what became of it. */
struct run {
    struct rig rig;
    bool is_scarce; /* no free gets host memory */
    tarn_ptr live[BLOCKS];
    bool blocked[STREAMS];
    uint64_t linked; /* frees after which a set had linked blocks */
    uint64_t decisions[STEPS];
    struct tarn_stats stats[STEPS / 100 + 1];
};

static bool has_linked(struct rig *rig)
{
    const struct tn_heap *heap = &rig_engine(rig->allocator)->heap;
    const struct tn_pool *pools[] = {&heap->small, &heap->large};

    for (unsigned i = 0; i < 2; i++) {
        for (uint32_t k = 0; k < pools[i]->count; k++) {
            if (pools[i]->sets[k]->linked.first) {
                return true;
            }
        }
    }
    return false;
}

static uint64_t draw_size(void)
{
    switch (random_below(4)) {
    case 0:
        return 1 + random_below(4096);
    case 1:
        return MIB + random_below(4 * MIB);
    case 2:
        return 2 * MIB * (1 + random_below(20));
    default:
        return 1 + random_below(40 * MIB);
    }
}

/* Returns the address, or the status if there is none. */
static uint64_t run_alloc(struct run *run, tarn_ptr *ptr)
{
    const uint64_t size = draw_size();
    const tarn_stream stream = random_below(STREAMS);
    const bool is_shared = random_below(8) == 0;
    const enum tarn_status st =
        tarn_allocator_alloc(run->rig.allocator, size, stream, ptr, &run->rig.error);

    if (st == TARN_OK && is_shared) {
        rig_record(&run->rig, *ptr, (stream + 1) % STREAMS);
    }
    return st ? (uint64_t)st : *ptr;
}

static void run_free(struct run *run, tarn_ptr *ptr)
{
    tarn_host_fail_nth(run->is_scarce ? 1 : 0);
    const enum tarn_status st = tarn_allocator_free(run->rig.allocator, *ptr, NULL);

    tarn_host_fail_nth(0);
    if (st) { /* one that has to wait says so, and has done nothing */
        assert_int_equal(st, TARN_ERR_HOST_MEMORY);
        rig_free(&run->rig, *ptr);
    }
    run->linked += has_linked(&run->rig);
    *ptr = 0;
}

/* Blocks a stream, or lets it go on, unless somebody waited for it in the meantime. */
static uint64_t run_turn(struct run *run, tarn_stream stream)
{
    struct tarn_device *device = run->rig.device;

    run->blocked[stream] = !run->blocked[stream];
    return (uint64_t)(run->blocked[stream] ? tarn_sim_block_stream(device, stream)
                                           : tarn_sim_unblock_stream(device, stream));
}

static uint64_t run_step(struct run *run)
{
    tarn_ptr *ptr = &run->live[random_below(BLOCKS)];

    if (random_below(50) == 0) {
        return run_turn(run, random_below(STREAMS));
    }
    if (*ptr) {
        run_free(run, ptr);
        return 0;
    }
    return run_alloc(run, ptr);
}

static void run_program(struct run *run, uint64_t seed, const char *conf, bool is_scarce)
{
    *run = (struct run){.is_scarce = is_scarce};
    random_state = seed;
    rig_open(&run->rig, 3072 * MIB, conf);
    rig_limit(&run->rig, seed % 3 == 0 ? 1.0 : 0.5);
    for (int step = 0; step < STEPS; step++) {
        run->decisions[step] = run_step(run);
        if (step % 100 == 0) {
            run->stats[step / 100] = rig_stats(&run->rig);
            rig_check(&run->rig);
        }
    }
    for (tarn_stream stream = 0; stream < STREAMS; stream++) {
        if (run->blocked[stream]) {
            (void)run_turn(run, stream);
        }
    }
    for (int k = 0; k < BLOCKS; k++) {
        if (run->live[k]) {
            run_free(run, &run->live[k]);
        }
    }
    run->stats[STEPS / 100] = rig_stats(&run->rig);
    rig_close(&run->rig);
}

static void no_decision_depends_on_host_memory_at_a_free(void **state)
{
    static const char *const settings[] = {"", "expandable_segments:True", "rules:2.14",
                                           "garbage_collection_threshold:0.6,max_split_size_mb:24",
                                           "policy:compact"};
    static struct run ample;
    static struct run scarce;

    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        run_program(&ample, seed, settings[seed % 5], false);
        run_program(&scarce, seed, settings[seed % 5], true);
        assert_int_equal(ample.linked, 0);
        assert_true(scarce.linked > 0);
        assert_memory_equal(ample.decisions, scarce.decisions, sizeof ample.decisions);
        assert_memory_equal(ample.stats, scarce.stats, sizeof ample.stats);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_keeps_when_it_became_free),
        cmocka_unit_test(no_decision_depends_on_host_memory_at_a_free),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
