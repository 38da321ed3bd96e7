/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "snapshot/pickle_rows.h"
#include "tarn/host.h"

#include <stdlib.h>
#include <string.h>

static const uint8_t row[] = "h\1h\2j\3\0\0\0h\4h\5h\6h\7e";
enum {
    ROW_SIZE = sizeof row - 1
};

struct rows {
    struct tn_budget budget;
    struct tn_arena arena;
    struct tn_row_cache cache;
};

static void rows_open(struct rows *rows)
{
    *rows = (struct rows){0};
    tn_arena_init(&rows->arena, &rows->budget);
    tn_row_cache_init(&rows->cache, &rows->arena);
}

static void rows_close(struct rows *rows)
{
    tn_arena_fini(&rows->arena);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static void only_rows_are_kept(void **state)
{
    static const uint8_t other_op[] = "h\1h\2j\3\0\0\0h\4h\5h\6N\7e";
    static const uint8_t no_end[] = "h\1h\2j\3\0\0\0h\4h\5h\6h\7h";
    static const uint8_t cut[] = "h\1h\2h\3h\4h\5h\6h\7h\7je";
    struct rows rows;

    (void)state;
    rows_open(&rows);
    tn_row_cache_keep(&rows.cache, other_op, sizeof other_op - 1, 1);
    tn_row_cache_keep(&rows.cache, no_end, sizeof no_end - 1, 1);
    tn_row_cache_keep(&rows.cache, cut, sizeof cut - 1, 1);
    tn_row_cache_keep(&rows.cache, row, 5, 1);
    assert_int_equal(rows.cache.bytes, 0);
    tn_row_cache_keep(&rows.cache, row, ROW_SIZE, 9);
    assert_int_equal(rows.cache.bytes, ROW_SIZE);
    assert_int_equal(tn_row_cache_find(&rows.cache, row, ROW_SIZE)->stack, 9);
    assert_null(tn_row_cache_find(&rows.cache, row, ROW_SIZE - 1));
    assert_null(tn_row_cache_find(&rows.cache, other_op, sizeof other_op - 1));
    tn_row_cache_drop(&rows.cache);
    assert_null(tn_row_cache_find(&rows.cache, row, ROW_SIZE));
    tn_row_cache_keep(&rows.cache, row, ROW_SIZE, 9);
    rows_close(&rows);
}

/* Whatever its storage contained before. */
static void a_cache_begins_empty(void **state)
{
    struct rows rows = {0};

    (void)state;
    tn_arena_init(&rows.arena, &rows.budget);
    memset(&rows.cache, 0x55, sizeof rows.cache);
    tn_row_cache_init(&rows.cache, &rows.arena);
    assert_null(tn_row_cache_find(&rows.cache, row, ROW_SIZE));
    assert_int_equal(rows.cache.bytes, 0);
    tn_row_cache_keep(&rows.cache, row, ROW_SIZE, 9);
    assert_int_equal(tn_row_cache_find(&rows.cache, row, ROW_SIZE)->stack, 9);
    rows_close(&rows);
}

/* No other opcode is among them, not even one as long as a memo read: a cached memo write would be
 * lost. The last byte is APPENDS. A row has at least 16 bytes. */
static void rows_consist_of_memo_reads(void **state)
{
    static const uint8_t write[] = "h\1h\2h\3h\4h\5h\6r\7\0\0\0e";
    static const uint8_t number[] = "h\1h\2h\3h\4h\5h\6J\7\0\0\0e";
    static const uint8_t none[] = "h\1h\2h\3h\4h\5h\6h\7h\10h\11e";
    static const uint8_t small[] = "h\1h\2h\3h\4h\5h\6h\7e\0\0";
    static const uint8_t least[] = "h\1h\2h\3h\4h\5j\6\0\0\0e";
    struct rows rows;

    (void)state;
    rows_open(&rows);
    tn_row_cache_keep(&rows.cache, write, sizeof write - 1, 1);
    tn_row_cache_keep(&rows.cache, number, sizeof number - 1, 1);
    tn_row_cache_keep(&rows.cache, none, sizeof none - 2, 1);
    tn_row_cache_keep(&rows.cache, none, sizeof none - 3, 1);
    tn_row_cache_keep(&rows.cache, small, TN_ROW_BYTES_LEAST - 1, 1);
    assert_int_equal(rows.cache.bytes, 0);
    tn_row_cache_keep(&rows.cache, least, TN_ROW_BYTES_LEAST, 3);
    assert_int_equal(rows.cache.bytes, TN_ROW_BYTES_LEAST);
    assert_int_equal(tn_row_cache_find(&rows.cache, least, TN_ROW_BYTES_LEAST)->stack, 3);
    rows_close(&rows);
}

/* Hundreds of rows that differ in one byte of their first 16 are all found. */
static void many_rows_are_found(void **state)
{
    enum {
        ALTERNATIVES = 200
    };
    uint8_t one[] = "h\1h\2h\3h\4h\5h\6h\7h\10e";
    struct rows rows;

    (void)state;
    rows_open(&rows);
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t place = 1; place < TN_ROW_BYTES_LEAST; place += 2) {
            const uint8_t before = one[place];

            for (uint32_t i = 0; i < ALTERNATIVES; i++) {
                const uint32_t stack = place * 1000 + i;

                one[place] = (uint8_t)(20 + i);
                if (round == 0) {
                    tn_row_cache_keep(&rows.cache, one, sizeof one - 1, stack);
                } else {
                    const struct tn_row *found =
                        tn_row_cache_find(&rows.cache, one, sizeof one - 1);

                    assert_non_null(found);
                    assert_int_equal(found->stack, stack);
                }
            }
            one[place] = before;
        }
    }
    rows_close(&rows);
}

/* As long as the part that buckets are chosen by. */
static void rows_may_begin_alike(void **state)
{
    static const uint8_t one[] = "h\1h\2j\3\0\0\0h\4h\5h\6h\7h\10e";
    static const uint8_t other[] = "h\1h\2j\3\0\0\0h\4h\5h\6h\7h\11e";
    struct rows rows;

    (void)state;
    rows_open(&rows);
    tn_row_cache_keep(&rows.cache, one, sizeof one - 1, 1);
    assert_null(tn_row_cache_find(&rows.cache, other, sizeof other - 1));
    tn_row_cache_keep(&rows.cache, other, sizeof other - 1, 2);
    assert_int_equal(tn_row_cache_find(&rows.cache, one, sizeof one - 1)->stack, 1);
    assert_int_equal(tn_row_cache_find(&rows.cache, other, sizeof other - 1)->stack, 2);
    rows_close(&rows);
}

/* Of rows with one beginning only some are looked at, and of all only some MiB are kept. */
static void what_is_kept_has_bounds(void **state)
{
    enum {
        ALIKE = 12,
        LARGE = 6000000
    };
    uint8_t one[] = "h\1h\2j\3\0\0\0h\4h\5h\6h\7h\10e";
    uint8_t *large = malloc(LARGE);
    struct rows rows;

    (void)state;
    rows_open(&rows);
    for (unsigned i = 0; i < ALIKE; i++) {
        one[sizeof one - 3] = (uint8_t)(100 + i);
        tn_row_cache_keep(&rows.cache, one, sizeof one - 1, i + 1);
    }
    for (unsigned i = 0; i < ALIKE; i++) {
        one[sizeof one - 3] = (uint8_t)(100 + i);
        const struct tn_row *found = tn_row_cache_find(&rows.cache, one, sizeof one - 1);

        assert_true(i < ALIKE - 8 ? !found : found && found->stack == i + 1); /* the newest 8 */
    }
    for (size_t i = 0; i + 1 < LARGE; i += 2) {
        large[i] = 'h';
        large[i + 1] = 7;
    }
    large[LARGE - 2] = 'e';
    const uint64_t before = rows.cache.bytes;

    for (uint64_t i = 0; i < 4; i++) {
        tn_row_cache_keep(&rows.cache, large, LARGE - 1, 9);
    }
    assert_int_equal(rows.cache.bytes, before + 2 * (uint64_t)(LARGE - 1));
    /* one that just fits, with one long opcode because its size is even; then none */
    const size_t left = ((size_t)16 << 20) - rows.cache.bytes;
    uint8_t *last = large + LARGE - 1 - left;

    assert_int_equal(left % 2, 0);
    memcpy(last, "j\7\7\7\7", 5);
    tn_row_cache_keep(&rows.cache, last, left, 9);
    assert_int_equal(rows.cache.bytes, 16 << 20);
    tn_row_cache_keep(&rows.cache, row, ROW_SIZE, 9);
    assert_int_equal(rows.cache.bytes, 16 << 20);
    free(large);
    rows_close(&rows);
}

static void without_memory_nothing_is_kept(void **state)
{
    struct rows rows;

    (void)state;
    rows_open(&rows);
    tarn_host_fail_nth(1);
    tn_row_cache_keep(&rows.cache, row, ROW_SIZE, 9);
    tarn_host_fail_nth(0);
    assert_null(tn_row_cache_find(&rows.cache, row, ROW_SIZE));
    rows_close(&rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_rows_are_kept),
        cmocka_unit_test(a_cache_begins_empty),
        cmocka_unit_test(rows_consist_of_memo_reads),
        cmocka_unit_test(many_rows_are_found),
        cmocka_unit_test(rows_may_begin_alike),
        cmocka_unit_test(what_is_kept_has_bounds),
        cmocka_unit_test(without_memory_nothing_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
