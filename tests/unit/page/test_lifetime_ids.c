/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "page/lifetime_ids.h"
#include "tarn/host.h"

#include <string.h>

static struct tn_lifetime_id step_of(struct tn_lifetime_ids *lifetimes, enum tn_trace_action action,
                                     uint64_t address)
{
    const struct tn_trace_entry entry = {.address = address, .action = action};
    struct tn_lifetime_id id;

    assert_true(tn_lifetime_ids_step(lifetimes, &entry, &id));
    return id;
}

static void what_lasts_is_numbered_anew(void **state)
{
    struct tn_lifetime_ids lifetimes;
    struct tn_vec carried;

    (void)state;
    tn_lifetime_ids_init(&lifetimes);
    for (uint64_t i = 0; i < 100; i++) {
        (void)step_of(&lifetimes, TN_TRACE_ALLOC, 512 * i);
    }
    for (uint64_t i = 0; i < 100; i++) {
        if (i % 10 != 3) {
            (void)step_of(&lifetimes, TN_TRACE_FREE_COMPLETED, 512 * i);
        }
    }
    tn_vec_init(&carried, sizeof(uint64_t));
    tarn_host_fail_nth(1);
    assert_false(tn_lifetime_ids_carry(&lifetimes, &carried));
    tarn_host_fail_nth(0);
    assert_true(tn_lifetime_ids_carry(&lifetimes, &carried));
    assert_int_equal(carried.count, 10);
    assert_int_equal(lifetimes.walk.count, 10);
    for (uint64_t i = 0; i < 10; i++) {
        assert_int_equal(((uint64_t *)carried.items)[i], 10 * i + 3);
        assert_int_equal(tn_lifetime_walk_at(&lifetimes.walk, 512 * (10 * i + 3)), i);
    }
    assert_int_equal(step_of(&lifetimes, TN_TRACE_ALLOC, 1 << 20).step.lifetime, 10);
    tn_vec_fini(&carried);
    tn_lifetime_ids_fini(&lifetimes);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* What a reader of the page does: the row and the freed from the places alone. */
struct reader {
    uint64_t row[64];
    uint64_t freed[64];
    uint64_t row_count;
    uint64_t freed_count;
};

static void reader_check(struct reader *reader, const struct tn_lifetime_id *id,
                         enum tn_trace_action action, uint64_t address, bool was_freed)
{
    const struct tn_lifetime_step *step = &id->step;
    const bool names_one = step->ended != TN_LIFETIME_NONE || !step->is_new;

    if (action == TN_TRACE_ALLOC) {
        assert_int_equal(id->reuse > 0, was_freed);
    }
    if (id->reuse > 0) {
        uint64_t *spot = &reader->freed[reader->freed_count - id->reuse];

        assert_int_equal(*spot, address);
        *spot = reader->freed[--reader->freed_count];
    }
    if (names_one && step->lifetime != TN_LIFETIME_NONE) {
        uint64_t *spot = &reader->row[reader->row_count - 1 - id->behind];

        assert_int_equal(*spot, step->ended != TN_LIFETIME_NONE ? step->ended : step->lifetime);
        if (step->ended != TN_LIFETIME_NONE || action == TN_TRACE_FREE_COMPLETED) {
            *spot = reader->row[--reader->row_count];
        }
    }
    if (step->is_new && action != TN_TRACE_FREE_COMPLETED) {
        reader->row[reader->row_count++] = step->lifetime;
    }
    if (action == TN_TRACE_FREE_COMPLETED && step->lifetime != TN_LIFETIME_NONE) {
        reader->freed[reader->freed_count++] = address;
    }
}

static void places_tell_lifetimes_and_addresses(void **state)
{
    static const enum tn_trace_action actions[] = {TN_TRACE_ALLOC, TN_TRACE_FREE_COMPLETED,
                                                   TN_TRACE_FREE_REQUESTED, TN_TRACE_ANNOTATE};
    struct reader reader = {.row_count = 0};
    bool freed[16] = {false};
    struct tn_lifetime_ids lifetimes;
    uint32_t seed = 7;

    (void)state;
    tn_lifetime_ids_init(&lifetimes);
    for (int i = 0; i < 5000; i++) {
        seed = seed * 1664525 + 1013904223;
        const uint64_t slot = seed >> 28;
        const enum tn_trace_action action = actions[seed >> 26 & 3];
        const struct tn_lifetime_id id = step_of(&lifetimes, action, 512 * slot);

        reader_check(&reader, &id, action, 512 * slot, freed[slot]);
        if (action == TN_TRACE_ALLOC) {
            freed[slot] = false;
        } else if (action == TN_TRACE_FREE_COMPLETED && id.step.lifetime != TN_LIFETIME_NONE) {
            freed[slot] = true;
        }
        if (i == 3000) { /* a page that begins here knows of no address that was freed before */
            struct tn_vec carried;

            tn_vec_init(&carried, sizeof(uint64_t));
            assert_true(tn_lifetime_ids_carry(&lifetimes, &carried));
            reader = (struct reader){.row_count = carried.count};
            for (uint64_t lifetime = 0; lifetime < carried.count; lifetime++) {
                reader.row[lifetime] = lifetime;
            }
            memset(freed, 0, sizeof freed);
            tn_vec_fini(&carried);
        }
    }
    assert_int_equal(reader.row_count, lifetimes.row.count);
    assert_int_equal(reader.freed_count, lifetimes.freed.count);
    tn_lifetime_ids_fini(&lifetimes);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static void failures_change_nothing(void **state)
{
    const struct tn_trace_entry entry = {.address = 512, .action = TN_TRACE_ALLOC};
    struct tn_lifetime_id id;
    struct tn_lifetime_ids lifetimes;

    (void)state;
    tn_lifetime_ids_init(&lifetimes);
    for (uint64_t n = 1; n <= 4; n++) {
        tarn_host_fail_nth(n);
        assert_false(tn_lifetime_ids_step(&lifetimes, &entry, &id));
        tarn_host_fail_nth(0);
        assert_int_equal(lifetimes.walk.count, 0);
        tn_lifetime_ids_fini(&lifetimes);
    }
    assert_true(tn_lifetime_ids_step(&lifetimes, &entry, &id));
    tn_lifetime_ids_fini(&lifetimes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_lasts_is_numbered_anew),
        cmocka_unit_test(places_tell_lifetimes_and_addresses),
        cmocka_unit_test(failures_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
