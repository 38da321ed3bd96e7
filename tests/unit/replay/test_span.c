/* SPDX-License-Identifier: MIT */
/* What lies where: overlaps of every kind, and the ends of the address space. */
#include "support/test.h"

#include "replay/span.h"
#include "tarn/host.h"

static void what_overlaps_is_taken_out(void **state)
{
    static const struct {
        uint64_t address;
        uint64_t size;
        bool found;
    } rows[] = {
        {50, 50, false},  {50, 51, true},  {150, 1, true},
        {199, 100, true}, {200, 1, false}, {0, UINT64_MAX, true},
        {100, 0, true},   {99, 0, false},  {UINT64_MAX, 1, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tn_spans spans;

        assert_true(tn_spans_init(&spans, 1));
        tn_spans_add(&spans, 100, 100, 7);
        const struct tn_span *taken = tn_spans_take(&spans, rows[i].address, rows[i].size);

        assert_int_equal(taken != NULL, rows[i].found);
        if (taken) {
            assert_int_equal(taken->slot, 7);
            assert_null(tn_spans_take(&spans, 0, UINT64_MAX));
        }
        tn_spans_fini(&spans);
    }
}

static void the_last_byte_belongs_to_a_span(void **state)
{
    struct tn_spans spans;

    (void)state;
    assert_true(tn_spans_init(&spans, 2));
    tn_spans_add(&spans, UINT64_MAX - 9, 100, 1); /* runs over the end */
    tn_spans_add(&spans, 5, 0, 2);
    assert_non_null(tn_spans_take(&spans, UINT64_MAX, 1));
    assert_non_null(tn_spans_take(&spans, 5, 1));
    tn_spans_fini(&spans);
}

static void missing_memory_is_told(void **state)
{
    struct tn_spans spans;

    (void)state;
    tarn_host_fail_nth(1);
    assert_false(tn_spans_init(&spans, 4));
    tarn_host_fail_nth(0);
    assert_true(tn_spans_init(&spans, 0));
    assert_null(tn_spans_take(&spans, 0, UINT64_MAX));
    tn_spans_fini(&spans);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_overlaps_is_taken_out),
        cmocka_unit_test(the_last_byte_belongs_to_a_span),
        cmocka_unit_test(missing_memory_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
