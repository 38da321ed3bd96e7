/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "base/keyed_sort.h"
#include "tarn/host.h"

#include <stdlib.h>
#include <string.h>

enum {
    COUNT_MAX = 3000
};

static uint64_t random_state = 1;

static uint64_t random_bits(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return random_state >> 11;
}

/* By key, then by where it was, which its item says. */
static int compare(const void *left, const void *right)
{
    const struct tn_keyed *a = left;
    const struct tn_keyed *b = right;

    if (a->key != b->key) {
        return a->key < b->key ? -1 : 1;
    }
    return ((const char *)a->item > (const char *)b->item) -
           ((const char *)a->item < (const char *)b->item);
}

/* Keys that differ in the bits of `mask` only. */
static void sorts_as_qsort(size_t count, uint64_t mask, uint64_t base)
{
    static const char places[COUNT_MAX];
    static struct tn_keyed items[COUNT_MAX];
    static struct tn_keyed wanted[COUNT_MAX];

    for (size_t i = 0; i < count; i++) {
        const uint64_t bits = random_bits() << 32 ^ random_bits();

        items[i] = (struct tn_keyed){base ^ (bits & mask), &places[i]};
    }
    memcpy(wanted, items, count * sizeof *items);
    if (count > 0) {
        qsort(wanted, count, sizeof *wanted, compare);
    }
    assert_true(tn_keyed_sort(items, count));
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(items[i].key, wanted[i].key);
        assert_ptr_equal(items[i].item, wanted[i].item);
    }
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static void as_qsort(void **state)
{
    static const size_t counts[] = {0, 1, 2, 3, 17, 256, COUNT_MAX};
    static const uint64_t masks[] = {
        0, 0xff, 0xf00, 0xff00000000000000u, 0x8000000000000001u, 0x1fffffe00, UINT64_MAX};

    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        for (size_t k = 0; k < sizeof masks / sizeof *masks; k++) {
            sorts_as_qsort(counts[i], masks[k], 0x7f0000000000);
        }
    }
}

static void without_host_memory(void **state)
{
    struct tn_keyed items[] = {{3, NULL}, {1, NULL}, {2, NULL}};

    (void)state;
    tarn_host_fail_nth(1);
    assert_false(tn_keyed_sort(items, 3));
    tarn_host_fail_nth(0);
    assert_int_equal(items[0].key, 3);
    assert_int_equal(items[2].key, 2);
    assert_true(tn_keyed_sort(items, 3));
    assert_int_equal(items[0].key, 1);
    assert_int_equal(items[2].key, 3);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_qsort),
        cmocka_unit_test(without_host_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
