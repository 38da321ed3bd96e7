/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "history/ring.h"
#include "tarn/host.h"

/* Pushes entries with the addresses from `first` on; returns how many gave way. */
static uint64_t push(struct tn_ring *ring, uint64_t first, uint64_t count)
{
    uint64_t gone = 0;

    for (uint64_t i = 0; i < count; i++) {
        bool full;
        struct tn_ring_entry *entry = tn_ring_push(ring, &full);

        if (full) {
            assert_int_equal(entry->address, first + i - ring->capacity);
        }
        gone += full;
        entry->address = first + i;
    }
    return gone;
}

static void holds(const struct tn_ring *ring, uint64_t first, uint64_t count)
{
    struct tn_ring_entry copy[16];

    assert_int_equal(ring->count, count);
    for (uint64_t i = 0; i < count; i++) {
        assert_int_equal(tn_ring_at(ring, i)->address, first + i);
    }
    for (uint64_t wanted = 0; wanted <= 16; wanted++) {
        const uint64_t got = tn_ring_copy(ring, copy, wanted);

        assert_int_equal(got, wanted < count ? wanted : count);
        for (uint64_t i = 0; i < got; i++) { /* the newest */
            assert_int_equal(copy[i].address, first + count - got + i);
        }
    }
}

static void the_oldest_gives_way(void **state)
{
    (void)state;
    for (uint64_t capacity = 1; capacity <= 9; capacity++) {
        struct tn_ring ring;

        assert_true(tn_ring_init(&ring, capacity));
        holds(&ring, 0, 0);
        for (uint64_t i = 0; i < 3 * capacity + 1; i++) {
            assert_int_equal(push(&ring, i, 1), i >= capacity);
            holds(&ring, i < capacity ? 0 : i + 1 - capacity, i < capacity ? i + 1 : capacity);
        }
        assert_int_equal(ring.overwritten, 2 * capacity + 1);
        tn_ring_clear(&ring);
        holds(&ring, 0, 0);
        assert_int_equal(push(&ring, 100, capacity), 0);
        holds(&ring, 100, capacity);
        tn_ring_fini(&ring);
    }
}

static void a_ring_may_find_no_memory(void **state)
{
    struct tn_ring ring;

    (void)state;
    tarn_host_fail_nth(1);
    assert_false(tn_ring_init(&ring, 10));
    tarn_host_fail_nth(0);
    assert_false(tn_ring_init(&ring, UINT64_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_oldest_gives_way),
        cmocka_unit_test(a_ring_may_find_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
