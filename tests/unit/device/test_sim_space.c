/* SPDX-License-Identifier: MIT */
/* Address space and capacity, by example and against a map with one flag a granule. */
#include "support/test.h"

#include "support/sim.h"

#include <string.h>

#define GRANULE TN_SIM_ALIGNMENT

static void expect_sound(const struct tn_sim_space *space)
{
    struct tarn_findings findings = TARN_FINDINGS_INIT;

    if (tn_sim_space_check(space, &findings) != 0) {
        fail_msg("%s", findings.text[0]);
    }
}

static struct tn_sim_range *take(struct tn_sim_space *space, enum tn_sim_kind kind, uint64_t size)
{
    struct tn_sim_range *range = NULL;

    assert_int_equal(tn_sim_space_take(space, kind, size, &range), TARN_OK);
    expect_sound(space);
    return range;
}

static void lowest_gap_that_fits_is_taken(void **state)
{
    struct tn_sim_space space;

    (void)state;
    tn_sim_space_init(&space, SIM_BASE, GIB);
    struct tn_sim_range *a = take(&space, TN_SIM_PLAIN, 1);
    struct tn_sim_range *b = take(&space, TN_SIM_PLAIN, 3 * GRANULE);
    struct tn_sim_range *c = take(&space, TN_SIM_RESERVED, GRANULE);
    assert_int_equal(a->start, SIM_BASE);
    assert_int_equal(b->start, SIM_BASE + GRANULE);
    assert_int_equal(c->start, SIM_BASE + 4 * GRANULE);
    tn_sim_space_give(&space, b);
    expect_sound(&space);
    assert_int_equal(take(&space, TN_SIM_POOL, 4 * GRANULE)->start, SIM_BASE + 5 * GRANULE);
    assert_int_equal(take(&space, TN_SIM_PLAIN, 2 * GRANULE)->start, SIM_BASE + GRANULE);
    tn_sim_space_give(&space, a);
    assert_int_equal(take(&space, TN_SIM_PLAIN, GRANULE)->start, SIM_BASE);
    tn_sim_space_fini(&space);
}

static void ranges_are_found_by_address(void **state)
{
    struct tn_sim_space space;

    (void)state;
    tn_sim_space_init(&space, SIM_BASE, GIB);
    assert_null(tn_sim_space_first(&space));
    struct tn_sim_range *a = take(&space, TN_SIM_PLAIN, 100);
    assert_ptr_equal(tn_sim_space_find(&space, a->start), a);
    assert_ptr_equal(tn_sim_space_find(&space, a->start + 99), a);
    assert_null(tn_sim_space_find(&space, a->start + 100));
    assert_null(tn_sim_space_find(&space, a->start - 1));
    assert_null(tn_sim_space_find(&space, TN_SIM_SPACE_END));
    assert_ptr_equal(tn_sim_space_find_start(&space, a->start, TN_SIM_PLAIN), a);
    assert_null(tn_sim_space_find_start(&space, a->start, TN_SIM_POOL));
    assert_null(tn_sim_space_find_start(&space, a->start + 1, TN_SIM_PLAIN));
    assert_null(tn_sim_space_find_start(&space, TN_SIM_SPACE_END, TN_SIM_PLAIN));
    assert_ptr_equal(tn_sim_space_first(&space), a);
    assert_null(tn_sim_space_next(&space, a));
    tn_sim_space_fini(&space);
}

static void full_space_is_out_of_memory(void **state)
{
    struct tn_sim_space space;
    struct tn_sim_range *range = NULL;

    (void)state;
    tn_sim_space_init(&space, TN_SIM_SPACE_END - 2 * GRANULE, GIB);
    assert_int_equal(tn_sim_space_take(&space, TN_SIM_PLAIN, 3 * GRANULE, &range),
                     TARN_ERR_OUT_OF_MEMORY);
    assert_int_equal(tn_sim_space_take(&space, TN_SIM_PLAIN, UINT64_MAX, &range),
                     TARN_ERR_OUT_OF_MEMORY);
    (void)take(&space, TN_SIM_PLAIN, 2 * GRANULE);
    assert_int_equal(tn_sim_space_take(&space, TN_SIM_PLAIN, 1, &range), TARN_ERR_OUT_OF_MEMORY);
    tn_sim_space_fini(&space);
}

static void scripted_addresses_come_first_in_order(void **state)
{
    struct tn_sim_space space;

    (void)state;
    tn_sim_space_init(&space, SIM_BASE, GIB);
    assert_int_equal(tn_sim_space_script(&space, TN_SIM_PLAIN, 0x1000), TARN_OK);
    assert_int_equal(tn_sim_space_script(&space, TN_SIM_PLAIN, 0x1200), TARN_OK);
    assert_int_equal(tn_sim_space_script(&space, TN_SIM_PLAIN, SIM_BASE + 512), TARN_OK);
    assert_int_equal(tn_sim_space_script(&space, TN_SIM_RESERVED, 16 * GRANULE), TARN_OK);
    assert_int_equal(take(&space, TN_SIM_PLAIN, 0x400)->start, 0x1000);
    /* 0x1200 is inside the first: skipped for the device's choice */
    assert_int_equal(take(&space, TN_SIM_PLAIN, 256)->start, SIM_BASE);
    assert_int_equal(space.scripted_skipped, 1);
    assert_int_equal(take(&space, TN_SIM_PLAIN, 512)->start, SIM_BASE + 512);
    assert_int_equal(take(&space, TN_SIM_RESERVED, GRANULE)->start, 16 * GRANULE);
    assert_int_equal(take(&space, TN_SIM_PLAIN, 512)->start, SIM_BASE + GRANULE);
    tn_sim_space_fini(&space);
}

static void scripted_address_with_too_little_room_is_skipped(void **state)
{
    struct tn_sim_space space;

    (void)state;
    tn_sim_space_init(&space, SIM_BASE, GIB);
    assert_int_equal(tn_sim_space_script(&space, TN_SIM_PLAIN, TN_SIM_SPACE_END - 512), TARN_OK);
    assert_int_equal(take(&space, TN_SIM_PLAIN, 513)->start, SIM_BASE);
    assert_int_equal(space.scripted_skipped, 1);
    assert_int_equal(tn_sim_space_script(&space, TN_SIM_PLAIN, SIM_BASE + GRANULE), TARN_OK);
    tn_sim_space_script_clear(&space);
    assert_int_equal(space.script[TN_SIM_PLAIN].count, 0);
    tn_sim_space_fini(&space);
}

/* Their end is no number. */
static void scripted_address_at_the_end_of_all_numbers_is_skipped(void **state)
{
    struct tn_sim_space space;

    (void)state;
    tn_sim_space_init(&space, SIM_BASE, GIB);
    assert_int_equal(tn_sim_space_script(&space, TN_SIM_PLAIN, UINT64_MAX - 511), TARN_OK);
    assert_int_equal(tn_sim_space_script(&space, TN_SIM_PLAIN, UINT64_MAX - 511), TARN_OK);
    assert_int_equal(take(&space, TN_SIM_PLAIN, 512)->start, SIM_BASE);
    assert_int_equal(take(&space, TN_SIM_PLAIN, 1024)->size, 1024);
    assert_int_equal(space.scripted_skipped, 2);
    tn_sim_space_fini(&space);
}

static void scripted_address_may_fill_a_gap_exactly(void **state)
{
    struct tn_sim_space space;

    (void)state;
    tn_sim_space_init(&space, SIM_BASE, GIB);
    (void)take(&space, TN_SIM_PLAIN, GRANULE);
    struct tn_sim_range *middle = take(&space, TN_SIM_PLAIN, 2 * GRANULE);
    (void)take(&space, TN_SIM_PLAIN, GRANULE);
    tn_sim_space_give(&space, middle);
    assert_int_equal(tn_sim_space_script(&space, TN_SIM_PLAIN, SIM_BASE + 2 * GRANULE), TARN_OK);
    assert_int_equal(take(&space, TN_SIM_PLAIN, GRANULE)->start, SIM_BASE + 2 * GRANULE);
    assert_int_equal(tn_sim_space_script(&space, TN_SIM_PLAIN, TN_SIM_SPACE_END - 512), TARN_OK);
    assert_int_equal(take(&space, TN_SIM_PLAIN, 512)->start, TN_SIM_SPACE_END - 512);
    tn_sim_space_fini(&space);
}

/* A script that is used as it is written needs no more memory however long it goes on. */
static void short_scripts_stay_small(void **state)
{
    struct tn_sim_space space;
    uint64_t bytes = 0;

    (void)state;
    tn_sim_space_init(&space, SIM_BASE, GIB);
    for (uint64_t i = 1; i <= 1000; i++) {
        assert_int_equal(tn_sim_space_script(&space, TN_SIM_PLAIN, i * GRANULE), TARN_OK);
        struct tn_sim_range *range = take(&space, TN_SIM_PLAIN, 1);

        assert_int_equal(range->start, i * GRANULE);
        tn_sim_space_give(&space, range);
        bytes = i == 1 ? tarn_host_get_usage().live_bytes : bytes;
        assert_int_equal(tarn_host_get_usage().live_bytes, bytes);
    }
    tn_sim_space_fini(&space);
}

static void long_scripts_wrap_without_loss(void **state)
{
    struct tn_sim_space space;
    uint64_t written = 0;
    uint64_t seen = 0;

    (void)state;
    tn_sim_space_init(&space, SIM_BASE, GIB);
    while (written < 1000) {
        for (int i = 0; i < 3; i++) {
            assert_int_equal(tn_sim_space_script(&space, TN_SIM_PLAIN, ++written * GRANULE),
                             TARN_OK);
        }
        for (int i = 0; i < 2; i++) {
            assert_int_equal(take(&space, TN_SIM_PLAIN, 1)->start, ++seen * GRANULE);
        }
    }
    tn_sim_space_fini(&space);
}

static tarn_ptr wish(void *context, bool reservation, uint64_t size)
{
    (void)reservation;
    (void)size;
    return *(tarn_ptr *)context;
}

/* Whoever decides addresses does so of what callers allocate and reserve. */
static void wishes_are_for_what_callers_ask_for(void **state)
{
    const enum tn_sim_kind kinds[] = {TN_SIM_PLAIN, TN_SIM_RESERVED, TN_SIM_POOL, TN_SIM_OPENED};
    tarn_ptr wanted = SIM_BASE;
    struct tn_sim_space space;

    (void)state;
    tn_sim_space_init(&space, SIM_BASE, GIB);
    space.oracle = wish;
    space.oracle_context = &wanted;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        wanted += 64 * GRANULE;
        const tarn_ptr start = take(&space, kinds[i], 1)->start;

        assert_int_equal(start == wanted, i < 2);
    }
    tn_sim_space_fini(&space);
}

static void scripts_are_limited(void **state)
{
    struct tn_sim_space space;

    (void)state;
    tn_sim_space_init(&space, SIM_BASE, GIB);
    assert_int_equal(tn_sim_space_script(&space, TN_SIM_PLAIN, SIM_BASE), TARN_OK);
    space.script[TN_SIM_PLAIN].count = TN_SIM_SCRIPT_MAX;
    assert_int_equal(tn_sim_space_script(&space, TN_SIM_PLAIN, SIM_BASE), TARN_ERR_LIMIT);
    assert_int_equal(tn_sim_space_script(&space, TN_SIM_RESERVED, SIM_BASE), TARN_OK);
    tn_sim_space_fini(&space);
}

static void charges_stop_at_the_capacity(void **state)
{
    struct tn_sim_space space;

    (void)state;
    tn_sim_space_init(&space, SIM_BASE, 1000);
    assert_true(tn_sim_space_charge(&space, 600));
    assert_false(tn_sim_space_charge(&space, 401));
    assert_false(tn_sim_space_charge(&space, UINT64_MAX));
    space.foreign = 300;
    assert_int_equal(tn_sim_space_room(&space), 100);
    assert_false(tn_sim_space_charge(&space, 101));
    space.foreign = 5000;
    assert_int_equal(tn_sim_space_room(&space), 0);
    tn_sim_space_refund(&space, 600);
    space.foreign = 0;
    assert_true(tn_sim_space_charge(&space, 1000));
    assert_int_equal(space.peak, 1000);
    tn_sim_space_fini(&space);
}

enum {
    MAP_GRANULES = 64,
    MAP_STEPS = 20000
};

/* One flag a granule. Ranges are whole granules here, so that the map is exact. */
struct model {
    bool taken[MAP_GRANULES];
    struct tn_sim_range *range[MAP_GRANULES]; /* at its first granule */
};

static int model_place(const struct model *model, int granules)
{
    for (int at = 0; at + granules <= MAP_GRANULES; at++) {
        int n = 0;

        while (n < granules && !model->taken[at + n]) {
            n++;
        }
        if (n == granules) {
            return at;
        }
    }
    return -1;
}

static void model_set(struct model *model, int at, int granules, bool taken)
{
    for (int i = 0; i < granules; i++) {
        model->taken[at + i] = taken;
    }
}

static uint64_t random_next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static void model_take(struct model *model, struct tn_sim_space *space, int granules)
{
    const int at = model_place(model, granules);
    struct tn_sim_range *range = NULL;
    const enum tarn_status st =
        tn_sim_space_take(space, TN_SIM_PLAIN, (uint64_t)granules * GRANULE, &range);

    assert_int_equal(st, at < 0 ? TARN_ERR_OUT_OF_MEMORY : TARN_OK);
    if (st == TARN_OK) {
        assert_int_equal(range->start, space->base + (uint64_t)at * GRANULE);
        model_set(model, at, granules, true);
        model->range[at] = range;
    }
}

static void random_use_agrees_with_a_map(void **state)
{
    static struct model model;
    struct tn_sim_space space;
    uint64_t seed = 11;

    (void)state;
    tn_sim_space_init(&space, TN_SIM_SPACE_END - MAP_GRANULES * GRANULE, GIB);
    for (int step = 0; step < MAP_STEPS; step++) {
        const int at = (int)(random_next(&seed) % MAP_GRANULES);

        if (!model.range[at]) {
            model_take(&model, &space, 1 + (int)(random_next(&seed) % 9));
        } else {
            model_set(&model, at, (int)(model.range[at]->size / GRANULE), false);
            tn_sim_space_give(&space, model.range[at]);
            model.range[at] = NULL;
        }
        expect_sound(&space);
    }
    tn_sim_space_fini(&space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lowest_gap_that_fits_is_taken),
        cmocka_unit_test(ranges_are_found_by_address),
        cmocka_unit_test(full_space_is_out_of_memory),
        cmocka_unit_test(scripted_addresses_come_first_in_order),
        cmocka_unit_test(scripted_address_with_too_little_room_is_skipped),
        cmocka_unit_test(scripted_address_at_the_end_of_all_numbers_is_skipped),
        cmocka_unit_test(scripted_address_may_fill_a_gap_exactly),
        cmocka_unit_test(short_scripts_stay_small),
        cmocka_unit_test(long_scripts_wrap_without_loss),
        cmocka_unit_test(wishes_are_for_what_callers_ask_for),
        cmocka_unit_test(scripts_are_limited),
        cmocka_unit_test(charges_stop_at_the_capacity),
        cmocka_unit_test(random_use_agrees_with_a_map),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
