/* SPDX-License-Identifier: MIT */
/*
 * Thousands of equal blocks under rules:2.14, the same calls on the allocator and on the reference
 * allocator: which of them serves a request is decided by the age of its segment. Segments go back
 * all the time, so that new ones lie below older ones.
 */
#include "support/any_stream.h"
#include "support/test.h"

#include "reference/model.h"
#include "support/draw.h"
#include "tarn/sim.h"

#include <stdlib.h>
#include <string.h>

#define MIB ((uint64_t)1 << 20)

enum {
    BLOCKS = 4096,
    STEPS = 30000,
    STREAMS = 2
};

static const struct tarn_pool_id the_pool = {0, 5};

/* Blocks of a few sizes only: most free ones have hundreds of equals. */
struct plan {
    const char *conf;
    uint64_t sizes[3];
    bool routed; /* all requests go to a private pool */
    bool rules;  /* change on the way */
};

static const struct plan plans[] = {
    {.conf = "rules:2.14", .sizes = {512, 512, 1536}},
    {.conf = "rules:2.14", .sizes = {MIB, MIB, MIB / 2}},
    {.conf = "rules:2.14", .sizes = {2 * MIB, 2 * MIB, 5 * MIB}},
    {.conf = "rules:2.14", .sizes = {20 * MIB, 12 * MIB, 20 * MIB}},
    {.conf = "rules:2.14", .sizes = {2 * MIB, MIB, 20 * MIB}, .routed = true},
    {.conf = "rules:2.14", .sizes = {2 * MIB, 2 * MIB, 20 * MIB}, .rules = true},
    {.conf = "rules:2.14,expandable_segments:True", .sizes = {2 * MIB, 512, 20 * MIB}},
    {.conf = "rules:2.14,max_split_size_mb:24,garbage_collection_threshold:0.5",
     .sizes = {30 * MIB, 30 * MIB, 2 * MIB}},
    {.conf = "rules:2.11", .sizes = {2 * MIB, 2 * MIB, 20 * MIB}},
};

struct both {
    struct tarn_device *device[2];
    struct tarn_allocator *real;
    struct ref_model *reference;
    uint64_t random;
    tarn_ptr live[BLOCKS];
    size_t count;
    uint64_t below; /* requests that were served below the address of the one before */
};

static void both_open(struct both *both, const struct plan *plan, uint64_t capacity)
{
    const struct tarn_sim_options options = {.struct_size = sizeof options, .capacity = capacity};
    struct tarn_config config;

    assert_int_equal(tarn_config_parse(plan->conf, &config, NULL), TARN_OK);
    assert_int_equal(tarn_sim_open(&options, &both->device[0], NULL), TARN_OK);
    assert_int_equal(tarn_sim_open(&options, &both->device[1], NULL), TARN_OK);
    assert_int_equal(tarn_allocator_create(both->device[0], &config, &both->real, NULL), TARN_OK);
    both->reference = ref_create(both->device[1], &config);
    assert_int_equal(tarn_allocator_set_memory_fraction(both->real, 0.9, NULL),
                     ref_set_fraction(both->reference, 0.9));
    if (plan->routed) {
        assert_int_equal(tarn_allocator_begin_pool(both->real, the_pool, any_stream, NULL, NULL),
                         ref_begin_pool(both->reference, the_pool, any_stream, NULL));
    }
}

static void both_close(struct both *both)
{
    tarn_allocator_destroy(both->real);
    ref_destroy(both->reference);
    tarn_device_close(both->device[0]);
    tarn_device_close(both->device[1]);
}

static void both_alloc(struct both *both, const struct plan *plan)
{
    const uint64_t size = plan->sizes[draw(&both->random) % 3];
    const tarn_stream stream = draw(&both->random) % 8 == 0 ? STREAMS - 1 : 0;
    tarn_ptr real = 0;
    tarn_ptr reference = 0;
    const enum tarn_status st = tarn_allocator_alloc(both->real, size, stream, &real, NULL);

    assert_int_equal(st, ref_alloc(both->reference, size, stream, &reference));
    assert_true(real == reference);
    if (st == TARN_OK) {
        both->below += both->count > 0 && real < both->live[both->count - 1];
        both->live[both->count++] = real;
    }
}

static void both_free(struct both *both)
{
    const size_t at = draw(&both->random) % both->count;
    const tarn_ptr ptr = both->live[at];

    both->live[at] = both->live[--both->count];
    assert_int_equal(tarn_allocator_free(both->real, ptr, NULL), TARN_OK);
    assert_int_equal(ref_free(both->reference, ptr), TARN_OK);
}

static void both_empty(struct both *both)
{
    assert_int_equal(tarn_allocator_empty_cache(both->real, NULL), TARN_OK);
    assert_int_equal(ref_empty_cache(both->reference, (struct tarn_pool_id){0, 0}), TARN_OK);
}

static void both_change_rules(struct both *both)
{
    struct tarn_config config;

    tarn_allocator_get_config(both->real, &config);
    config.rules = config.rules == TARN_RULES_2_14 ? TARN_RULES_2_11 : TARN_RULES_2_14;
    assert_int_equal(tarn_allocator_set_config(both->real, &config, NULL), TARN_OK);
    ref_set_config(both->reference, &config);
}

static void both_check(struct both *both)
{
    struct tarn_findings findings = TARN_FINDINGS_INIT;

    if (tarn_allocator_check(both->real, &findings) != 0) {
        fail_msg("%s", findings.text[0]);
    }
}

/* Allocations and frees in turns: until most of the blocks live, until few do. */
static void both_run(struct both *both, const struct plan *plan)
{
    for (int step = 0; step < STEPS; step++) {
        const bool growing = step / 3000 % 2 == 0;

        if (both->count < BLOCKS &&
            (both->count == 0 || (draw(&both->random) % 8 < 5) == growing)) {
            both_alloc(both, plan);
        } else {
            both_free(both);
        }
        if (draw(&both->random) % 512 == 0) {
            both_empty(both);
        }
        if (plan->rules && draw(&both->random) % 2048 == 0) {
            both_change_rules(both);
        }
        if (step % 5000 == 0) {
            both_check(both);
        }
    }
    both_check(both);
}

static void equal_blocks_are_the_same_on_both(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++) {
        static struct both both;

        memset(&both, 0, sizeof both);
        both.random = i + 1;
        both_open(&both, &plans[i], ((uint64_t)4 << 30) + plans[i].sizes[0] * BLOCKS);
        both_run(&both, &plans[i]);
        assert_true(both.below > STEPS / 20);
        both_close(&both);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_blocks_are_the_same_on_both),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
