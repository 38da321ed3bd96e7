/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include <pthread.h>
#include <string.h>

#include "base/intern.h"
#include "tarn/host.h"

struct gone {
    int count;
    char last[64];
};

static void note_gone(void *context, const void *bytes, size_t size)
{
    struct gone *gone = context;

    gone->count++;
    memcpy(gone->last, bytes, size);
    gone->last[size] = '\0';
}

static struct tn_interned *get(struct tn_intern *intern, const char *text)
{
    return tn_intern_get(intern, text, strlen(text), tn_intern_hash(text, strlen(text)), NULL);
}

static void equal_bytes_are_one_piece(void **state)
{
    struct gone gone = {.count = 0};
    struct tn_intern intern;
    bool found = true;

    (void)state;
    tn_intern_init(&intern, TN_LOCK_STACKS, 1 << 20, note_gone, &gone);
    struct tn_interned *a = tn_intern_get(&intern, "abc", 3, 7, &found);

    assert_non_null(a);
    assert_false(found);
    assert_ptr_equal(tn_intern_get(&intern, "abc", 3, 7, &found), a);
    assert_true(found);
    struct tn_interned *b = tn_intern_get(&intern, "abd", 3, 7, &found); /* the same hash */
    struct tn_interned *c = tn_intern_get(&intern, "ab", 2, 7, &found);

    assert_non_null(b);
    assert_non_null(c);
    assert_true(a != b && a != c && b != c);
    assert_int_equal(tn_intern_usage(&intern).count, 3);
    tn_interned_release(&intern, a);
    assert_int_equal(gone.count, 0);
    tn_interned_retain(a);
    tn_interned_release(&intern, a);
    tn_interned_release(&intern, a);
    assert_int_equal(gone.count, 1);
    assert_string_equal(gone.last, "abc");
    tn_interned_release(&intern, c);
    tn_interned_release(&intern, b);
    assert_int_equal(gone.count, 3);
    assert_int_equal(tn_intern_usage(&intern).count, 0);
    assert_int_equal(tn_intern_usage(&intern).bytes, 0);
    tn_intern_fini(&intern);
}

/* Another thread may get a piece while its last holder gives it up: it stays. */
static void a_piece_that_is_held_again_stays(void **state)
{
    struct gone gone = {.count = 0};
    struct tn_intern intern;

    (void)state;
    tn_intern_init(&intern, TN_LOCK_STACKS, 1 << 20, note_gone, &gone);
    struct tn_interned *piece = get(&intern, "abc");

    assert_non_null(piece);
    tn_interned_retain(piece);
    tn_intern_release_last(&intern, piece);
    assert_int_equal(gone.count, 0);
    assert_ptr_equal(get(&intern, "abc"), piece);
    tn_interned_release(&intern, piece);
    tn_intern_release_last(&intern, piece);
    assert_int_equal(gone.count, 1);
    tn_intern_fini(&intern);
}

static void many_pieces_are_found_again(void **state)
{
    enum {
        MANY = 5000
    };
    static struct tn_interned *pieces[MANY];
    const uint64_t before = tarn_host_get_usage().live_bytes;
    struct tn_intern intern;

    (void)state;
    tn_intern_init(&intern, TN_LOCK_STACKS, 1 << 24, NULL, NULL);
    for (int i = 0; i < MANY; i++) {
        pieces[i] = tn_intern_get(&intern, &i, sizeof i, tn_intern_hash(&i, sizeof i), NULL);
        assert_non_null(pieces[i]);
    }
    for (int i = 0; i < MANY; i++) {
        assert_ptr_equal(tn_intern_get(&intern, &i, sizeof i, tn_intern_hash(&i, sizeof i), NULL),
                         pieces[i]);
        tn_interned_release(&intern, pieces[i]);
    }
    assert_int_equal(tn_intern_usage(&intern).bytes, tarn_host_get_usage().live_bytes - before);
    for (int i = 0; i < MANY; i += 2) {
        tn_interned_release(&intern, pieces[i]);
    }
    assert_int_equal(tn_intern_usage(&intern).count, MANY / 2);
    tn_intern_fini(&intern); /* what is still held goes as well */
    assert_int_equal(tarn_host_get_usage().live_bytes, before);
}

/* Never more than the limit; what found no room is counted, and finds some when others went. */
static void memory_is_bounded(void **state)
{
    static const char big[600] = {'x'};
    struct tn_intern intern;

    (void)state;
    tn_intern_init(&intern, TN_LOCK_STACKS, 2000, NULL, NULL);
    struct tn_interned *a = tn_intern_get(&intern, big, 600, 1, NULL);
    struct tn_interned *b = tn_intern_get(&intern, big, 599, 2, NULL);

    assert_non_null(a);
    assert_non_null(b);
    assert_null(tn_intern_get(&intern, big, 598, 3, NULL));
    assert_int_equal(tn_intern_usage(&intern).refused, 1);
    assert_true(tn_intern_usage(&intern).bytes <= 2000);
    tn_interned_release(&intern, a);
    a = tn_intern_get(&intern, big, 598, 3, NULL);
    assert_non_null(a);
    tn_intern_refuse(&intern);
    assert_int_equal(tn_intern_usage(&intern).refused, 2);
    tn_interned_release(&intern, a);
    tn_interned_release(&intern, b);
    tn_intern_fini(&intern);

    tn_intern_init(&intern, TN_LOCK_STACKS, 100, NULL, NULL); /* not even buckets */
    assert_null(get(&intern, "a"));
    tn_intern_fini(&intern);
}

/* With the n-th host allocation failing: NULL and counted, or it worked. */
static void host_memory_may_be_missing(void **state)
{
    (void)state;
    for (uint64_t n = 1;; n++) {
        struct tn_interned *pieces[200];
        struct tn_intern intern;
        uint64_t made = 0;

        tn_intern_init(&intern, TN_LOCK_STACKS, 1 << 20, NULL, NULL);
        const uint64_t calls = tarn_host_get_usage().alloc_calls;

        tarn_host_fail_nth(n);
        for (int i = 0; i < 200; i++) {
            pieces[made] = tn_intern_get(&intern, &i, sizeof i, (uint64_t)i << 32, NULL);
            made += pieces[made] != NULL;
        }
        const bool failed = tarn_host_get_usage().alloc_calls - calls >= n;

        tarn_host_fail_nth(0);
        assert_int_equal(tn_intern_usage(&intern).count, made);
        assert_int_equal(made + tn_intern_usage(&intern).refused, 200);
        assert_true(made >= 199);
        for (uint64_t i = 0; i < made; i++) {
            tn_interned_release(&intern, pieces[i]);
        }
        assert_int_equal(tn_intern_usage(&intern).bytes, 0);
        tn_intern_fini(&intern);
        if (!failed) {
            break;
        }
    }
}

/* What goes while somebody reads is still there, but not to be found. */
static void readers_keep_what_goes(void **state)
{
    struct gone gone = {.count = 0};
    struct tn_intern intern;

    (void)state;
    tn_intern_init(&intern, TN_LOCK_STACKS, 1 << 20, note_gone, &gone);
    struct tn_interned *a = get(&intern, "first");

    tn_intern_begin_reading(&intern);
    tn_intern_begin_reading(&intern);
    tn_interned_release(&intern, a);
    assert_int_equal(gone.count, 0);
    assert_memory_equal(a->bytes, "first", 5);
    struct tn_interned *again = get(&intern, "first");

    assert_ptr_not_equal(again, a);
    tn_intern_end_reading(&intern);
    assert_int_equal(gone.count, 0);
    tn_intern_end_reading(&intern);
    assert_int_equal(gone.count, 1);
    tn_interned_release(&intern, again);
    assert_int_equal(gone.count, 2);
    assert_int_equal(tn_intern_usage(&intern).bytes, 0);
    tn_intern_fini(&intern);
}

static void *hold_and_release(void *argument)
{
    struct tn_intern *intern = argument;

    for (int i = 0; i < 20000; i++) {
        const int key = i % 7;
        struct tn_interned *piece =
            tn_intern_get(intern, &key, sizeof key, (uint64_t)key << 32, NULL);

        tn_interned_retain(piece);
        tn_interned_release(intern, piece);
        tn_interned_release(intern, piece);
    }
    return NULL;
}

/* Threads find, hold and drop the same few pieces; in the end nothing is left. */
static void threads_share_pieces(void **state)
{
    struct tn_intern intern;
    pthread_t threads[4];

    (void)state;
    tn_intern_init(&intern, TN_LOCK_STACKS, 1 << 20, NULL, NULL);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, hold_and_release, &intern), 0);
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(tn_intern_usage(&intern).count, 0);
    assert_int_equal(tn_intern_usage(&intern).bytes, 0);
    tn_intern_fini(&intern);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_bytes_are_one_piece),
        cmocka_unit_test(many_pieces_are_found_again),
        cmocka_unit_test(a_piece_that_is_held_again_stays),
        cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(host_memory_may_be_missing),
        cmocka_unit_test(readers_keep_what_goes),
        cmocka_unit_test(threads_share_pieces),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
