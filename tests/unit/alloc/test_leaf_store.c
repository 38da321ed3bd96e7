/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include <string.h>

#include "alloc/pool/leaf_store.h"
#include "tarn/host.h"

enum {
    MANY = 5 * TN_LEAF_STORE_BATCH + 3
};

static void *pieces[MANY];

static void take_all(struct tn_leaf_store *store)
{
    for (int i = 0; i < MANY; i++) {
        pieces[i] = tn_leaf_store_take(store);
        assert_non_null(pieces[i]);
    }
}

static void give_all(struct tn_leaf_store *store)
{
    for (int i = 0; i < MANY; i++) {
        tn_leaf_store_give(store, pieces[i]);
    }
}

/* All of each piece is its owner's, and begins a cache line. */
static void pieces_are_apart(void **state)
{
    struct tn_leaf_store store = {0};

    (void)state;
    take_all(&store);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal((uintptr_t)pieces[i] % TN_CACHE_LINE, 0);
        memset(pieces[i], i, TN_LEAF_STORE_PIECE);
    }
    for (int i = 0; i < MANY; i++) {
        for (int at = 0; at < TN_LEAF_STORE_PIECE; at++) {
            assert_int_equal(((unsigned char *)pieces[i])[at], i);
        }
    }
    give_all(&store);
    tn_leaf_store_trim(&store);
}

static void the_host_is_asked_once_a_batch(void **state)
{
    const uint64_t calls = tarn_host_get_usage().alloc_calls;
    struct tn_leaf_store store = {0};

    (void)state;
    take_all(&store);
    assert_int_equal(tarn_host_get_usage().alloc_calls - calls, 6);
    give_all(&store);
    take_all(&store); /* again: from what was given back */
    assert_int_equal(tarn_host_get_usage().alloc_calls - calls, 6);
    give_all(&store);
    tn_leaf_store_trim(&store);
}

static void a_trim_keeps_what_is_used(void **state)
{
    const uint64_t live = tarn_host_get_usage().live_bytes;
    struct tn_leaf_store store = {0};

    (void)state;
    take_all(&store);
    assert_int_equal(tn_leaf_store_memory(&store), tarn_host_get_usage().live_bytes - live);
    for (int i = 1; i < MANY; i++) {
        tn_leaf_store_give(&store, pieces[i]);
    }
    tn_leaf_store_trim(&store);
    memset(pieces[0], 1, TN_LEAF_STORE_PIECE);
    assert_int_equal(tn_leaf_store_memory(&store), tarn_host_get_usage().live_bytes - live);
    tn_leaf_store_give(&store, pieces[0]);
    tn_leaf_store_trim(&store);
    assert_int_equal(tn_leaf_store_memory(&store), 0);
    assert_int_equal(tarn_host_get_usage().live_bytes, live);
}

static void without_host_memory_nothing_changes(void **state)
{
    struct tn_leaf_store store = {0};

    (void)state;
    tarn_host_fail_nth(1);
    assert_null(tn_leaf_store_take(&store));
    assert_int_equal(store.used, 0);
    tn_leaf_store_trim(&store);
    void *piece = tn_leaf_store_take(&store);

    assert_non_null(piece);
    tarn_host_fail_nth(1); /* the batch has more: no need to ask */
    void *other = tn_leaf_store_take(&store);

    tarn_host_fail_nth(0);
    assert_non_null(other);
    tn_leaf_store_give(&store, piece);
    tn_leaf_store_give(&store, other);
    tn_leaf_store_trim(&store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_apart),
        cmocka_unit_test(the_host_is_asked_once_a_batch),
        cmocka_unit_test(a_trim_keeps_what_is_used),
        cmocka_unit_test(without_host_memory_nothing_changes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
