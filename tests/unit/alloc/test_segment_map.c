/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "alloc/pool/segment_map.h"
#include "support/rig.h"
#include "tarn/pool.h"

#define MIB ((uint64_t)1 << 20)
#define TIB ((uint64_t)1 << 40)

static struct tn_segment_map map;
static struct tn_segment segments[6];

/* One segment each, made in this order. */
static void map_fill(const uint64_t *addresses, size_t count, uint64_t size)
{
    tn_segment_map_init(&map);
    for (size_t i = 0; i < count; i++) {
        segments[i] = (struct tn_segment){.address = addresses[i], .size = size};
        tn_segment_map_insert(&map, &segments[i]);
    }
}

static void map_is_good(void)
{
    struct tarn_findings findings = TARN_FINDINGS_INIT;

    tn_segment_map_check(&map, &findings);
    if (findings.count > 0) {
        fail_msg("%s", findings.text[0]);
    }
}

static void places_are_in_the_order_of_making(void **state)
{
    static const uint64_t addresses[] = {40 * MIB, 8 * MIB, 64 * MIB, 2 * MIB};

    (void)state;
    map_fill(addresses, 4, 2 * MIB);
    map_is_good();
    for (uint64_t i = 0; i < 4; i++) {
        assert_int_equal(segments[i].number, i + 1);
        assert_int_equal(tn_segment_map_place(&map, addresses[i]), i * 2 * MIB);
        assert_int_equal(tn_segment_map_place(&map, addresses[i] + 512), i * 2 * MIB + 512);
        assert_ptr_equal(tn_segment_map_find(&map, addresses[i] + 2 * MIB - 1), &segments[i]);
        assert_null(tn_segment_map_find(&map, addresses[i] - 1));
    }
    assert_null(tn_segment_map_find(&map, 66 * MIB));
}

static void a_segment_in_the_place_of_another_is_the_newest(void **state)
{
    static const uint64_t addresses[] = {40 * MIB, 8 * MIB, 64 * MIB};

    (void)state;
    map_fill(addresses, 3, 2 * MIB);
    tn_segment_map_remove(&map, &segments[1]);
    map_is_good();
    assert_null(tn_segment_map_find(&map, 8 * MIB));
    tn_segment_map_insert(&map, &segments[1]);
    map_is_good();
    assert_int_equal(segments[1].number, 4);
    assert_true(tn_segment_map_place(&map, 8 * MIB) > tn_segment_map_place(&map, 64 * MIB));
    tn_segment_map_remove(&map, &segments[0]);
    tn_segment_map_remove(&map, &segments[2]);
    tn_segment_map_remove(&map, &segments[1]);
    map_is_good();
    assert_true(!map.oldest && !map.newest && map.bytes == 0);
}

static void packing_keeps_the_order(void **state)
{
    static const uint64_t addresses[] = {5 * TIB, TIB, 9 * TIB, 7 * TIB, 3 * TIB};
    static const uint64_t left[] = {0, 2, 3};

    (void)state;
    map_fill(addresses, 5, TIB);
    tn_segment_map_remove(&map, &segments[1]);
    tn_segment_map_remove(&map, &segments[4]);
    tn_segment_map_pack(&map);
    map_is_good();
    assert_int_equal(map.end, 3 * TIB);
    for (uint64_t i = 0; i < 3; i++) {
        assert_int_equal(tn_segment_map_place(&map, addresses[left[i]]), i * TIB);
    }
}

/* Full where the next place is beyond what keys hold, unless packing would hardly help. */
static void a_map_is_full_at_the_end_of_keys(void **state)
{
    static const uint64_t addresses[] = {0};

    (void)state;
    map_fill(addresses, 1, TIB);
    map.end = TN_SEGMENT_MAP_END - TIB;
    assert_false(tn_segment_map_is_full(&map, TIB));
    assert_true(tn_segment_map_is_full(&map, TIB + 512));
    map.bytes = TN_SEGMENT_MAP_END / 2;
    assert_false(tn_segment_map_is_full(&map, TIB + 512));
    map.bytes -= TIB + 512;
    assert_true(tn_segment_map_is_full(&map, TIB + 512));
    assert_false(tn_segment_map_is_full(&map, TIB + 1024));
}

static void the_checker_finds_what_is_wrong(void **state)
{
    static const uint64_t addresses[] = {40 * MIB, 8 * MIB, 64 * MIB};
    uint64_t *const fields[] = {&segments[1].number, &segments[1].number, &segments[2].place,
                                &map.bytes, &map.end};
    static const uint64_t wrong[] = {7, 1, 512, 512, 512};

    (void)state;
    map_fill(addresses, 3, 2 * MIB);
    assert_int_equal(segments[0].number, 1);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct tarn_findings findings = TARN_FINDINGS_INIT;
        const uint64_t kept = *fields[i];

        *fields[i] = wrong[i];
        tn_segment_map_check(&map, &findings);
        assert_true(findings.count > 0);
        *fields[i] = kept;
        map_is_good();
    }
    struct tn_segment **const links[] = {&segments[0].older, &segments[1].older, &map.newest};

    for (size_t i = 0; i < 3; i++) {
        struct tarn_findings findings = TARN_FINDINGS_INIT;
        struct tn_segment *const kept = *links[i];

        *links[i] = i == 0 ? &segments[2] : NULL;
        tn_segment_map_check(&map, &findings);
        assert_int_equal(findings.count, 1);
        assert_true(i > 0 ||
                    strstr(findings.text[0], "segment 1 at place 0 comes after 0, up to 0"));
        *links[i] = kept;
        map_is_good();
    }
    struct tarn_findings findings = TARN_FINDINGS_INIT;

    map.by_address.count++;
    tn_segment_map_check(&map, &findings);
    assert_int_equal(findings.count, 1);
    map.by_address.count--;
    map_is_good();
}

/* A heap that has come to the end of the places packs its segments while blocks are in its sets,
 * and goes on in the same order. */
static void a_heap_packs_its_segments(void **state)
{
    struct rig rig;
    tarn_ptr ptrs[200];

    (void)state;
    rig_open(&rig, (uint64_t)8 << 30, "rules:2.14");
    const tarn_ptr gap = rig_alloc(&rig, 1024 * MIB, 0); /* in front of the others */

    for (int i = 0; i < 200; i++) {
        ptrs[i] = rig_alloc(&rig, 20 * MIB, 0);
    }
    rig_free(&rig, gap);
    rig_empty_cache(&rig);
    for (int i = 0; i < 200; i += 2) {
        rig_free(&rig, ptrs[i]);
    }
    struct tn_segment_map *const map_of = &rig_engine(rig.allocator)->heap.segments;

    map_of->end = TN_SEGMENT_MAP_END - 512;
    const tarn_ptr other = rig_alloc(&rig, 30 * MIB, 0); /* a new segment */

    rig_check(&rig);
    assert_int_equal(map_of->end, map_of->bytes);
    for (int i = 1; i < 200; i += 2) {
        rig_free(&rig, ptrs[i]);
    }
    rig_check(&rig);
    for (int i = 0; i < 200; i++) {
        assert_int_equal(rig_alloc(&rig, 20 * MIB, 0), ptrs[i]);
    }
    for (int i = 0; i < 200; i++) {
        rig_free(&rig, ptrs[i]);
    }
    rig_free(&rig, other);
    rig_close(&rig);
}

/* With pools of their own, and where sets are ordered by address. */
static void packing_keeps_the_order_of_private_pools(void **state)
{
    static const char *const settings[] = {"", "rules:2.14"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct tarn_pool *pool = NULL;
        tarn_ptr ptrs[3];
        struct rig rig;

        rig_open(&rig, GIB, settings[i]);
        const tarn_ptr gap = rig_alloc(&rig, 100 * MIB, 0); /* in front of the others */

        assert_int_equal(tarn_pool_create(rig.allocator, NULL, &pool, &rig.error), TARN_OK);
        for (int k = 0; k < 3; k++) {
            assert_int_equal(tarn_pool_alloc(pool, 20 * MIB, 0, &ptrs[k], &rig.error), TARN_OK);
        }
        tarn_ptr small[2] = {rig_alloc(&rig, MIB, 0)}; /* half of a segment */

        assert_int_equal(tarn_pool_alloc(pool, MIB, 0, &small[1], &rig.error), TARN_OK);
        rig_free(&rig, gap);
        rig_empty_cache(&rig);
        for (int k = 2; k >= 0; k--) {
            rig_free(&rig, ptrs[k]);
        }
        struct tn_segment_map *const map_of = &rig_engine(rig.allocator)->heap.segments;

        map_of->end = TN_SEGMENT_MAP_END - 512;
        const tarn_ptr other = rig_alloc(&rig, 30 * MIB, 0); /* a new segment */

        rig_check(&rig);
        assert_int_equal(map_of->end, map_of->bytes);
        for (int k = 0; k < 3; k++) {
            tarn_ptr again = 0;

            assert_int_equal(tarn_pool_alloc(pool, 20 * MIB, 0, &again, &rig.error), TARN_OK);
            assert_int_equal(again, ptrs[k]);
        }
        for (int k = 0; k < 3; k++) {
            rig_free(&rig, ptrs[k]);
        }
        rig_free(&rig, small[0]);
        rig_free(&rig, small[1]);
        rig_check(&rig);
        rig_free(&rig, other);
        tarn_pool_destroy(pool);
        rig_close(&rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_are_in_the_order_of_making),
        cmocka_unit_test(a_segment_in_the_place_of_another_is_the_newest),
        cmocka_unit_test(packing_keeps_the_order),
        cmocka_unit_test(a_map_is_full_at_the_end_of_keys),
        cmocka_unit_test(the_checker_finds_what_is_wrong),
        cmocka_unit_test(a_heap_packs_its_segments),
        cmocka_unit_test(packing_keeps_the_order_of_private_pools),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
