/* SPDX-License-Identifier: MIT */
/* The map against a plain list of what should be in it, with hashes that fall together. */
#include "support/test.h"

#include "alloc/pool/ptr_map.h"
#include "tarn/host.h"

#include <stdlib.h>
#include <string.h>

enum {
    BLOCKS = 4096
};

struct scene {
    struct tn_ptr_map map;
    struct tn_block *blocks; /* BLOCKS, at 64-byte boundaries */
    bool inside[BLOCKS];
    size_t host_bytes;
};

static void scene_open(struct scene *scene)
{
    *scene = (struct scene){.host_bytes = tarn_host_get_usage().live_bytes};
    scene->blocks = aligned_alloc(64, BLOCKS * sizeof *scene->blocks);
    assert_non_null(scene->blocks);
    memset(scene->blocks, 0, BLOCKS * sizeof *scene->blocks);
}

static void scene_close(struct scene *scene)
{
    tn_ptr_map_fini(&scene->map);
    free(scene->blocks);
    assert_int_equal(tarn_host_get_usage().live_bytes, scene->host_bytes);
}

static void put(struct scene *scene, uint32_t i)
{
    assert_true(tn_ptr_map_reserve(&scene->map, 1));
    tn_ptr_map_insert(&scene->map, &scene->blocks[i]);
    scene->inside[i] = true;
}

static void take(struct scene *scene, uint32_t i)
{
    uint64_t *slot = tn_ptr_map_slot(&scene->map, scene->blocks[i].address);

    if (!slot) {
        fail();
        return;
    }
    assert_ptr_equal(tn_ptr_entry_block(*slot), &scene->blocks[i]);
    tn_ptr_map_remove(&scene->map, slot);
    scene->inside[i] = false;
}

static void holds_what_it_should(const struct scene *scene)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < BLOCKS; i++) {
        struct tn_block *wanted = scene->inside[i] ? &scene->blocks[i] : NULL;

        assert_ptr_equal(tn_ptr_map_find(&scene->map, scene->blocks[i].address), wanted);
        count += scene->inside[i];
    }
    assert_int_equal(scene->map.count, count);
    assert_int_equal(scene->map.buckets & (scene->map.buckets - 1), 0); /* a power of two */
}

static uint64_t random_next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* Inserts and removes some of the first `count` at random; more of the one, then more of the
 * other. */
static void walk(struct scene *scene, uint64_t seed, uint32_t count)
{
    uint64_t state = seed;

    for (uint32_t round = 0; round < 10 * count; round++) {
        const uint32_t i = (uint32_t)(random_next(&state) % count);
        const bool grows = round / count % 2 == 0;

        if (scene->inside[i] && (!grows || random_next(&state) % 4 == 0)) {
            take(scene, i);
        } else if (!scene->inside[i] && (grows || random_next(&state) % 4 == 0)) {
            put(scene, i);
        }
        if (round % (count / 4) == 0) {
            holds_what_it_should(scene);
        }
    }
}

static void it_holds_what_was_put_in(void **state)
{
    struct scene scene;

    (void)state;
    scene_open(&scene);
    for (uint32_t i = 0; i < BLOCKS; i++) {
        scene.blocks[i].address = 0x7f0000000000 + (uint64_t)i * 512;
    }
    walk(&scene, 1, BLOCKS);
    holds_what_it_should(&scene);
    scene_close(&scene);
}

static uint64_t full_buckets(const struct tn_ptr_map *map)
{
    uint64_t full = 0;

    for (uint64_t i = 0; i < map->buckets; i++) {
        full += tn_bucket_holes(&map->entries[i * TN_BUCKET]) == 0;
    }
    return full;
}

/* Else a search reads more than one line. */
static void few_buckets_are_full(void **state)
{
    struct scene scene;

    (void)state;
    scene_open(&scene);
    for (uint32_t i = 0; i < BLOCKS; i++) {
        scene.blocks[i].address = 0x7f0000000000 + (uint64_t)i * 512;
        put(&scene, i);
        assert_true(full_buckets(&scene.map) * 40 <= scene.map.buckets + 40);
    }
    scene_close(&scene);
}

/* Addresses chosen so that they want the same few buckets: those spill over into others, from the
 * last bucket into the first ones. */
static void full_buckets_spill_and_fill_again(void **state)
{
    enum {
        COUNT = 300
    };

    (void)state;
    for (uint64_t first = 0; first < 256;
         first += 15) { /* of 256 buckets, each way to be the last */
        struct scene scene;
        uint64_t address = 512;

        scene_open(&scene);
        for (uint32_t i = 0; i < BLOCKS; i++) {
            while (i < COUNT && (tn_ptr_hash(address) >> 56) - first >= 8) {
                address += 512;
            }
            scene.blocks[i].address = address;
            address += 512;
        }
        walk(&scene, first + 1, COUNT);
        holds_what_it_should(&scene);
        scene_close(&scene);
    }
}

/* An unused entry is none, even to a search for its bits of the hash. */
static void an_address_with_no_bits_in_its_tag_is_looked_for(void **state)
{
    struct scene scene;
    uint64_t address = 512;

    (void)state;
    scene_open(&scene);
    while (tn_ptr_tag(tn_ptr_hash(address)) != 0) {
        address += 512;
    }
    scene.blocks[0].address = 2 * address + 512;
    scene.blocks[1].address = address;
    put(&scene, 0);
    assert_null(tn_ptr_map_find(&scene.map, address));
    put(&scene, 1);
    assert_ptr_equal(tn_ptr_map_find(&scene.map, address), &scene.blocks[1]);
    take(&scene, 1);
    assert_null(tn_ptr_map_find(&scene.map, address));
    take(&scene, 0);
    scene_close(&scene);
}

static void it_gives_memory_back(void **state)
{
    struct scene scene;

    (void)state;
    scene_open(&scene);
    for (uint32_t i = 0; i < BLOCKS; i++) {
        scene.blocks[i].address = ((uint64_t)i + 1) * 2097152;
        put(&scene, i);
    }
    const size_t full = tn_ptr_map_memory(&scene.map);

    assert_int_equal(full, tarn_host_get_usage().live_bytes - scene.host_bytes);
    assert_true(full <= (size_t)BLOCKS * 32);
    for (uint32_t i = 0; i < BLOCKS; i++) {
        take(&scene, i);
        const uint64_t least = scene.map.count > 1 ? scene.map.count : 1;

        assert_true(tn_ptr_map_memory(&scene.map) <= 512 * least);
        if (i % 64 == 0) {
            holds_what_it_should(&scene);
        }
    }
    assert_int_equal(tn_ptr_map_memory(&scene.map), 512); /* eight buckets are the least */
    tn_ptr_map_fini(&scene.map);
    assert_int_equal(tn_ptr_map_memory(&scene.map), 0);
    put(&scene, 0); /* it is an empty map again */
    holds_what_it_should(&scene);
    scene_close(&scene);
}

/* Three entries of eight are used before more memory is taken. */
static void it_is_filled_before_it_grows(void **state)
{
    struct scene scene;

    (void)state;
    scene_open(&scene);
    for (uint32_t i = 0; i < BLOCKS; i++) {
        scene.blocks[i].address = ((uint64_t)i + 1) * 2097152;
        put(&scene, i);
        assert_true(i < 23 || tn_ptr_map_memory(&scene.map) <= (i + 1) * (size_t)128 / 3);
    }
    tn_ptr_map_fini(&scene.map);
    assert_true(tn_ptr_map_reserve(&scene.map, 3072)); /* all at once */
    assert_int_equal(tn_ptr_map_memory(&scene.map), (size_t)64 * 1024);
    scene_close(&scene);
}

static void without_host_memory_it_stays_as_it_was(void **state)
{
    struct scene scene;
    uint32_t i = 0;

    (void)state;
    scene_open(&scene);
    for (uint32_t at = 0; at < BLOCKS; at++) {
        scene.blocks[at].address = ((uint64_t)at + 1) * 512;
    }
    tarn_host_fail_nth(1);
    assert_false(tn_ptr_map_reserve(&scene.map, 1));
    for (; i < 100; i++) {
        put(&scene, i);
    }
    tarn_host_fail_nth(1);
    assert_false(tn_ptr_map_reserve(&scene.map, BLOCKS));
    tarn_host_fail_nth(0);
    assert_false(tn_ptr_map_reserve(&scene.map, UINT64_MAX - 5));
    holds_what_it_should(&scene);
    scene_close(&scene);
}

/* What was reserved is there until it is used, also when everything goes in between. */
static void it_keeps_room_when_asked_to(void **state)
{
    enum {
        COUNT = 500
    };
    struct scene scene;

    (void)state;
    scene_open(&scene);
    for (uint32_t i = 0; i < COUNT; i++) {
        scene.blocks[i].address = (uint64_t)(i + 1) * 512;
        put(&scene, i);
    }
    assert_true(tn_ptr_map_reserve(&scene.map, COUNT));
    const uint64_t buckets = scene.map.buckets;

    scene.map.keeps_room = true;
    for (uint32_t i = 0; i < COUNT; i++) {
        take(&scene, i);
    }
    assert_int_equal(scene.map.buckets, buckets);
    for (uint32_t i = 0; i < 2 * COUNT; i++) { /* nothing more is reserved */
        scene.blocks[i].address = (uint64_t)(i + 1) * 512;
        tn_ptr_map_insert(&scene.map, &scene.blocks[i]);
        scene.inside[i] = true;
    }
    scene.map.keeps_room = false;
    holds_what_it_should(&scene);
    for (uint32_t i = 0; i < 2 * COUNT; i++) {
        take(&scene, i);
    }
    assert_true(scene.map.buckets < buckets);
    scene_close(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_holds_what_was_put_in),
        cmocka_unit_test(few_buckets_are_full),
        cmocka_unit_test(full_buckets_spill_and_fill_again),
        cmocka_unit_test(an_address_with_no_bits_in_its_tag_is_looked_for),
        cmocka_unit_test(it_gives_memory_back),
        cmocka_unit_test(it_is_filled_before_it_grows),
        cmocka_unit_test(it_keeps_room_when_asked_to),
        cmocka_unit_test(without_host_memory_it_stays_as_it_was),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
