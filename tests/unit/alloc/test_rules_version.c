/* SPDX-License-Identifier: MIT */
/*
 * Decisions that newer versions of PyTorch changed: the same calls under both rules. Between a
 * torch.cuda.use_mem_pool's begin and end no graph is captured: 2.11 cannot tell, 2.13 can
 * (pytorch #175015, #181830). Of free blocks of one size 2.11 takes the one at the lowest address,
 * 2.13 the one whose segment is the oldest (pytorch #183591).
 */
#include "support/any_stream.h"
#include "support/test.h"

#include "support/rig.h"

#define MIB ((uint64_t)1 << 20)

static const struct tarn_pool_id user_pool = {0, 1};

static void begin_use(struct rig *rig)
{
    assert_int_equal(
        tarn_allocator_begin_pool(rig->allocator, user_pool, any_stream, NULL, &rig->error),
        TARN_OK);
}

static void end_use(struct rig *rig)
{
    assert_int_equal(tarn_allocator_end_pool(rig->allocator, user_pool, &rig->error), TARN_OK);
}

static void begin_capture(struct rig *rig)
{
    assert_int_equal(tarn_allocator_begin_capture(rig->allocator, &rig->error), TARN_OK);
}

static void end_capture(struct rig *rig)
{
    assert_int_equal(tarn_allocator_end_capture(rig->allocator, &rig->error), TARN_OK);
}

/* Whether a block of the pool that stream 7 used too serves the next request. Its work is done. */
static bool block_comes_back(struct rig *rig)
{
    const tarn_ptr first = rig_alloc(rig, MIB, 0);

    rig_record(rig, first, 7);
    rig_free(rig, first);
    const tarn_ptr second = rig_alloc(rig, MIB, 0);

    rig_free(rig, second);
    return first == second;
}

static void frees_are_deferred_during_captures_only(void **state)
{
    static const struct {
        const char *conf;
        bool captures;
        bool comes_back;
    } cases[] = {{"", false, false},
                 {"", true, false},
                 {"rules:2.11", false, false},
                 {"rules:2.14", false, true},
                 {"rules:2.14", true, false}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rig rig;

        rig_open(&rig, 64 * MIB, cases[i].conf);
        begin_use(&rig);
        if (cases[i].captures) {
            begin_capture(&rig);
        }
        assert_int_equal(block_comes_back(&rig), cases[i].comes_back);
        if (cases[i].captures) {
            end_capture(&rig);
        }
        end_use(&rig);
        assert_true(block_comes_back(&rig));
        rig_close(&rig);
    }
}

/* 60 of 80 MiB are cached in the default pool, and the user's pool needs 60. */
static void memory_is_released_for_a_users_pool(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, 80 * MIB, "rules:2.14");
    rig_free(&rig, rig_alloc(&rig, 60 * MIB, 0));
    begin_use(&rig);
    rig_free(&rig, rig_alloc(&rig, 60 * MIB, 0));
    assert_int_equal(rig_stats(&rig).num_alloc_retries, 1);
    end_use(&rig);
    rig_close(&rig);

    rig_open(&rig, 80 * MIB, "rules:2.14");
    rig_free(&rig, rig_alloc(&rig, 60 * MIB, 0));
    begin_use(&rig);
    begin_capture(&rig);
    rig_alloc_oom(&rig, 60 * MIB, 0);
    end_capture(&rig);
    end_use(&rig);
    rig_close(&rig);

    rig_open(&rig, 80 * MIB, "");
    rig_free(&rig, rig_alloc(&rig, 60 * MIB, 0));
    begin_use(&rig);
    rig_alloc_oom(&rig, 60 * MIB, 0);
    end_use(&rig);
    rig_close(&rig);
}

static void the_cache_is_emptied_unless_a_graph_is_captured(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, 80 * MIB, "rules:2.14");
    rig_free(&rig, rig_alloc(&rig, 60 * MIB, 0));
    begin_use(&rig);
    begin_capture(&rig);
    rig_empty_cache(&rig);
    assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 60 * MIB);
    end_capture(&rig);
    rig_empty_cache(&rig);
    assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 0);
    end_use(&rig);
    rig_close(&rig);
}

/* A capture counts for the whole device, as PyTorch's counter does; captures may overlap. */
static void captures_are_counted(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, 64 * MIB, "rules:2.14");
    assert_int_equal(tarn_allocator_end_capture(rig.allocator, &rig.error), TARN_ERR_STATE);
    assert_string_equal(rig.error.text, "no capture is under way");
    begin_capture(&rig);
    begin_capture(&rig);
    end_capture(&rig);
    assert_false(block_comes_back(&rig));
    end_capture(&rig);
    assert_true(block_comes_back(&rig));
    assert_int_equal(tarn_allocator_end_capture(rig.allocator, &rig.error), TARN_ERR_STATE);
    rig_close(&rig);
}

/* What was deferred under the old rules is waited for under the new ones, and vice versa. */
static void rules_can_change(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, 64 * MIB, "");
    begin_use(&rig);
    assert_false(block_comes_back(&rig));
    rig_configure(&rig, "rules:2.14");
    assert_true(block_comes_back(&rig));
    rig_configure(&rig, "expandable_segments:False"); /* an update keeps the rules */
    assert_true(block_comes_back(&rig));
    rig_configure(&rig, "rules:2.11");
    assert_false(block_comes_back(&rig));
    end_use(&rig);
    assert_true(block_comes_back(&rig));
    rig_close(&rig);
}

/* Two free blocks of one size, the one at the lower address in the newer segment, and what keeps
 * each from being a whole segment. */
struct two {
    tarn_ptr older;
    tarn_ptr newer;
    tarn_ptr beside_older;
    tarn_ptr beside_newer;
};

/* Two blocks of that size fill a segment, or leave a part that is smaller. */
static struct two two_open(struct rig *rig, uint64_t size)
{
    const tarn_ptr first = rig_alloc(rig, size, 0);
    const tarn_ptr beside_first = rig_alloc(rig, size, 0);
    struct two two = {.older = rig_alloc(rig, size, 0)};

    two.beside_older = rig_alloc(rig, size, 0);
    rig_free(rig, first);
    rig_free(rig, beside_first);
    rig_empty_cache(rig);
    two.newer = rig_alloc(rig, size, 0);
    two.beside_newer = rig_alloc(rig, size, 0);
    assert_true(two.newer < two.older);
    rig_free(rig, two.newer);
    rig_free(rig, two.older);
    return two;
}

static void two_close(struct rig *rig, const struct two *two)
{
    rig_free(rig, two->beside_older);
    rig_free(rig, two->beside_newer);
}

/* Where a block of that size is allocated; it is free again. */
static tarn_ptr next_of(struct rig *rig, uint64_t size)
{
    const tarn_ptr ptr = rig_alloc(rig, size, 0);

    rig_free(rig, ptr);
    return ptr;
}

/* Parts of small segments, of large ones, and whole segments. */
static void the_oldest_segment_serves(void **state)
{
    static const uint64_t sizes[] = {MIB, 8 * MIB, 64 * MIB};

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct rig rig;

        rig_open(&rig, 1024 * MIB, "rules:2.14");
        struct two two = two_open(&rig, sizes[i]);

        assert_int_equal(next_of(&rig, sizes[i]), two.older);
        two_close(&rig, &two);
        rig_close(&rig);

        rig_open(&rig, 1024 * MIB, "");
        two = two_open(&rig, sizes[i]);
        assert_int_equal(next_of(&rig, sizes[i]), two.newer);
        two_close(&rig, &two);
        rig_close(&rig);
    }
}

/* The parts of one segment are of one age. */
static void in_one_segment_the_lowest_address_serves(void **state)
{
    struct rig rig;
    tarn_ptr ptrs[6];

    (void)state;
    rig_open(&rig, 1024 * MIB, "rules:2.14");
    for (int i = 0; i < 6; i++) {
        ptrs[i] = rig_alloc(&rig, 3 * MIB, 0);
    }
    rig_free(&rig, ptrs[4]);
    rig_free(&rig, ptrs[0]);
    rig_free(&rig, ptrs[2]);
    assert_int_equal(next_of(&rig, 3 * MIB), ptrs[0]);
    for (int i = 1; i < 6; i += 2) {
        rig_free(&rig, ptrs[i]);
    }
    rig_close(&rig);
}

/* Blocks that are free already are put into the order of the new rules. */
static void the_order_changes_with_the_rules(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, 1024 * MIB, "");
    const struct two two = two_open(&rig, 64 * MIB);

    rig_configure(&rig, "rules:2.14");
    rig_check(&rig);
    const uint64_t calls = tarn_host_get_usage().alloc_calls;

    rig_configure(&rig, "rules:2.14"); /* nothing to order again */
    assert_int_equal(tarn_host_get_usage().alloc_calls, calls);
    assert_int_equal(next_of(&rig, 64 * MIB), two.older);
    rig_configure(&rig, "rules:2.11");
    rig_check(&rig);
    assert_int_equal(next_of(&rig, 64 * MIB), two.newer);
    two_close(&rig, &two);
    rig_close(&rig);
}

/* Places are chosen by address there, and pages come and go. */
static void the_compact_policy_prefers_low_addresses(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, 1024 * MIB, "policy:compact,rules:2.14");
    assert_null(rig_engine(rig.allocator)->heap.private_pools.by_age);
    rig_close(&rig);
}

/* Only the caching engine has a decision that depends on them. */
static void other_engines_take_captures_as_they_take_pools(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, 64 * MIB, "backend:cudaMallocAsync,rules:2.14");
    begin_capture(&rig);
    end_capture(&rig);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frees_are_deferred_during_captures_only),
        cmocka_unit_test(memory_is_released_for_a_users_pool),
        cmocka_unit_test(the_cache_is_emptied_unless_a_graph_is_captured),
        cmocka_unit_test(captures_are_counted),
        cmocka_unit_test(rules_can_change),
        cmocka_unit_test(the_oldest_segment_serves),
        cmocka_unit_test(in_one_segment_the_lowest_address_serves),
        cmocka_unit_test(the_order_changes_with_the_rules),
        cmocka_unit_test(the_compact_policy_prefers_low_addresses),
        cmocka_unit_test(other_engines_take_captures_as_they_take_pools),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
