/* SPDX-License-Identifier: MIT */
/* Which physical memory is alive: handles, references, mappings. The record is this file's. */
#include "plug/preload/record.h"

#include "support/test.h"

enum {
    RECORDS_MAX = 16
};

static uint64_t records[RECORDS_MAX];
static uint64_t bytes;

void run_record_alloc(enum run_kind kind, int device, uint64_t address, uint64_t size,
                      uint64_t stream)
{
    int i = 0;

    assert_int_equal(kind, RUN_KIND_PAGES);
    assert_int_equal(device, 1);
    assert_int_equal(stream, 0);
    while (records[i] != 0) {
        assert_int_not_equal(records[i], address);
        i++;
    }
    records[i] = address;
    bytes += size;
}

void run_record_free(uint64_t address, struct run_freed *freed_out)
{
    *freed_out = (struct run_freed){.device = -1};
    for (int i = 0; i < RECORDS_MAX; i++) {
        if (records[i] == address) {
            records[i] = 0;
            bytes -= 100;
            return;
        }
    }
    fail_msg("nothing is recorded as %llu", (unsigned long long)address);
}

static void test_a_page(void **state)
{
    (void)state;
    run_pages_created(1, 7, 100);
    assert_int_equal(bytes, 100);
    run_pages_mapped(7, 0x1000, 100);
    run_pages_unmapped(0x1000, 100);
    assert_int_equal(bytes, 100);
    run_pages_released(7);
    assert_int_equal(bytes, 0);
}

static void test_released_while_mapped(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 4; i++) { /* the driver gives the same number again */
        run_pages_created(1, 7, 100);
        run_pages_mapped(7, 0x1000 + 100 * i, 100);
        run_pages_released(7);
        assert_int_equal(bytes, 100 * (i + 1));
    }
    run_pages_unmapped(0x1000, 200);
    assert_int_equal(bytes, 200);
    run_pages_unmapped(0x1000 + 200, 200);
    assert_int_equal(bytes, 0);
}

static void test_mapped_twice_and_retained(void **state)
{
    (void)state;
    run_pages_created(1, 9, 100);
    run_pages_mapped(9, 0x1000, 100);
    run_pages_mapped(9, 0x2000, 100);
    run_pages_retained(9);
    run_pages_released(9);
    run_pages_unmapped(0x2000, 100);
    assert_int_equal(bytes, 100);
    run_pages_released(9);
    assert_int_equal(bytes, 100);
    run_pages_unmapped(0x1000, 100);
    assert_int_equal(bytes, 0);
}

static void test_others(void **state)
{
    (void)state;
    run_pages_mapped(5, 0x1000, 100); /* imported from another process */
    run_pages_unmapped(0x1000, 100);
    run_pages_released(5);
    run_pages_retained(5);
    assert_int_equal(bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_page),
        cmocka_unit_test(test_released_while_mapped),
        cmocka_unit_test(test_mapped_twice_and_retained),
        cmocka_unit_test(test_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
