/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "base/arena.h"
#include "tarn/host.h"

#include <string.h>

static void pieces_are_apart_and_aligned(void **state)
{
    struct tn_budget budget = {0};
    struct tn_arena arena;
    char *pieces[200];

    (void)state;
    tn_arena_init(&arena, &budget);
    for (size_t i = 0; i < 200; i++) {
        pieces[i] = tn_arena_alloc(&arena, i * 37);
        assert_non_null(pieces[i]);
        assert_int_equal((uintptr_t)pieces[i] % 16, 0);
        memset(pieces[i], (int)i, i * 37);
    }
    for (size_t i = 0; i < 200; i++) {
        for (size_t j = 0; j < i * 37; j++) {
            assert_int_equal((unsigned char)pieces[i][j], i);
        }
    }
    tn_arena_fini(&arena);
    assert_int_equal(budget.used, 0);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static void a_large_piece_leaves_the_chunk_in_use(void **state)
{
    struct tn_budget budget = {0};
    struct tn_arena arena;

    (void)state;
    tn_arena_init(&arena, &budget);
    assert_non_null(tn_arena_alloc(&arena, 100000)); /* first of all */
    const char *before = tn_arena_alloc(&arena, 16);
    assert_non_null(tn_arena_alloc(&arena, 3 << 20));
    const char *after = tn_arena_alloc(&arena, 16);
    assert_ptr_equal(before + 16, after);
    tn_arena_fini(&arena);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static void sizes_that_cannot_be_are_refused(void **state)
{
    struct tn_budget budget = {.limit = 10000};
    struct tn_arena arena;

    (void)state;
    tn_arena_init(&arena, &budget);
    assert_null(tn_arena_alloc(&arena, SIZE_MAX));
    assert_int_equal(tn_budget_status(&budget), TARN_ERR_LIMIT);
    assert_null(tn_arena_alloc_array(&arena, SIZE_MAX / 4, 8));
    assert_null(tn_arena_alloc(&arena, 10000));
    assert_non_null(tn_arena_alloc(&arena, 100));
    tarn_host_fail_nth(1);
    assert_null(tn_arena_alloc(&arena, 4096));
    tarn_host_fail_nth(0);
    tn_arena_fini(&arena);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static void what_is_cleared_is_used_again(void **state)
{
    struct tn_budget budget = {0};
    struct tn_arena arena;

    (void)state;
    tn_arena_init(&arena, &budget);
    tn_arena_clear(&arena);
    assert_non_null(tn_arena_alloc(&arena, 1 << 20)); /* a chunk of its own */
    tn_arena_clear(&arena);
    assert_int_equal(budget.used, 0);
    const char *first = tn_arena_alloc(&arena, 16);
    const uint64_t used = budget.used;

    assert_non_null(tn_arena_alloc(&arena, 1 << 20));
    tn_arena_clear(&arena);
    assert_int_equal(budget.used, used);
    assert_ptr_equal(tn_arena_alloc(&arena, 32), first);
    tn_arena_fini(&arena);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_apart_and_aligned),
        cmocka_unit_test(a_large_piece_leaves_the_chunk_in_use),
        cmocka_unit_test(sizes_that_cannot_be_are_refused),
        cmocka_unit_test(what_is_cleared_is_used_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
