/* SPDX-License-Identifier: MIT */
/*
 * Private pools that sleep and wake: contents and addresses, what is refused, every device call and
 * every allocation of host memory failing, and threads that go on meanwhile.
 */
#include "support/any_stream.h"
#include "support/test.h"

#include "alloc/pool/asleep.h"
#include "support/child.h"
#include "support/rig.h"
#include "support/share.h"
#include "tarn/block.h"
#include "tarn/history.h"
#include "tarn/ipc.h"
#include "tarn/pool.h"
#include "tarn/sleep.h"

#include <fcntl.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

enum {
    BLOCKS = 6
};

static const struct tarn_pool_id pool = {0, 7};
static const struct tarn_pool_id other_pool = {0, 8};
static const struct tarn_sleep_options discard = {.struct_size = sizeof discard, .discard = true};

/* Both policies have segments of pages. */
static const char *const settings[] = {"policy:compact", "expandable_segments:True"};

static const uint64_t sizes[BLOCKS] = {512, 3 * MIB, 100 * KIB, 5 * MIB, MIB + 5 * KIB, 4 * MIB};

static tarn_ptr alloc_in(struct rig *rig, struct tarn_pool_id id, uint64_t size)
{
    assert_int_equal(tarn_allocator_begin_pool(rig->allocator, id, any_stream, NULL, NULL),
                     TARN_OK);
    const tarn_ptr ptr = rig_alloc(rig, size, 0);

    assert_int_equal(tarn_allocator_end_pool(rig->allocator, id, NULL), TARN_OK);
    return ptr;
}

static enum tarn_status try_alloc_in(struct rig *rig, struct tarn_pool_id id, uint64_t size)
{
    tarn_ptr ptr = 0;

    assert_int_equal(tarn_allocator_begin_pool(rig->allocator, id, any_stream, NULL, NULL),
                     TARN_OK);
    const enum tarn_status st = tarn_allocator_alloc(rig->allocator, size, 0, &ptr, &rig->error);

    assert_int_equal(tarn_allocator_end_pool(rig->allocator, id, NULL), TARN_OK);
    return st;
}

static void sleep_well(struct rig *rig, const struct tarn_sleep_options *options)
{
    if (tarn_allocator_sleep(rig->allocator, pool, options, &rig->error)) {
        fail_msg("%s", rig->error.text);
    }
    rig_check(rig);
}

static void wake_up(struct rig *rig)
{
    if (tarn_allocator_wake(rig->allocator, pool, &rig->error)) {
        fail_msg("%s", rig->error.text);
    }
    rig_check(rig);
}

static struct tarn_sleep_stats sleep_stats(struct rig *rig)
{
    struct tarn_sleep_stats stats = {.struct_size = sizeof stats};

    tarn_allocator_get_sleep_stats(rig->allocator, &stats);
    return stats;
}

/* ---- blocks with contents ---- */

static unsigned char *memory_of(struct rig *rig, tarn_ptr ptr, uint64_t size)
{
    unsigned char *memory = tarn_sim_host_memory(rig->device, ptr, size);

    assert_non_null(memory);
    return memory;
}

static void fill(struct rig *rig, tarn_ptr ptr, uint64_t size, unsigned char value)
{
    memset(memory_of(rig, ptr, size), value, size);
}

static bool holds(struct rig *rig, tarn_ptr ptr, uint64_t size, unsigned char value)
{
    const unsigned char *memory = memory_of(rig, ptr, size);

    return memory[0] == value && memcmp(memory, memory + 1, size - 1) == 0;
}

static void open_backed(struct rig *rig, const char *conf)
{
    rig_open_with(rig, (struct tarn_sim_options){.capacity = GIB, .backed = true}, conf);
}

/* Blocks of the pool with different contents, a hole among them, and one outside. */
struct dormitory {
    struct rig rig;
    tarn_ptr ptrs[BLOCKS];
    tarn_ptr outside;
};

static void dormitory_open(struct dormitory *d, const char *conf)
{
    open_backed(&d->rig, conf);
    d->outside = rig_alloc(&d->rig, 5 * MIB, 0);
    fill(&d->rig, d->outside, 5 * MIB, 99);
    for (int i = 0; i < BLOCKS; i++) {
        d->ptrs[i] = alloc_in(&d->rig, pool, sizes[i]);
        fill(&d->rig, d->ptrs[i], sizes[i], (unsigned char)(i + 1));
    }
    rig_free(&d->rig, alloc_in(&d->rig, pool, 6 * MIB));
}

static void dormitory_check(struct dormitory *d)
{
    for (int i = 0; i < BLOCKS; i++) {
        assert_true(holds(&d->rig, d->ptrs[i], sizes[i], (unsigned char)(i + 1)));
    }
    assert_true(holds(&d->rig, d->outside, 5 * MIB, 99));
}

static void dormitory_close(struct dormitory *d)
{
    for (int i = 0; i < BLOCKS; i++) {
        rig_free(&d->rig, d->ptrs[i]);
    }
    rig_free(&d->rig, d->outside);
    rig_close(&d->rig);
}

static void memory_goes_and_comes_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct dormitory d;

        dormitory_open(&d, settings[i]);
        const struct tarn_stats before = rig_stats(&d.rig);
        const int64_t reserved = rig_now(&d.rig, TARN_STAT_RESERVED_BYTES);
        const uint64_t used = sim_counters(d.rig.device).used_bytes;

        sleep_well(&d.rig, NULL);
        const struct tarn_sleep_stats stats = sleep_stats(&d.rig);
        const int64_t left = rig_now(&d.rig, TARN_STAT_RESERVED_BYTES);

        assert_true(left <= (int64_t)(20 * MIB)); /* the page of the block outside */
        assert_int_equal(sim_counters(d.rig.device).used_bytes, used - stats.bytes);
        assert_int_equal(left, reserved - (int64_t)stats.bytes);
        assert_int_equal(stats.pools, 1);
        assert_true(stats.host_bytes >= 13 * MIB && stats.host_bytes <= stats.bytes);
        assert_int_equal(sim_counters(d.rig.device).calls[TARN_SIM_HOST_ALLOC], 1);
        assert_true(tarn_allocator_is_asleep(d.rig.allocator, pool));
        assert_int_equal(rig_now(&d.rig, TARN_STAT_ALLOCATED_BYTES),
                         before.by_pool[TARN_STAT_ALLOCATED_BYTES][TARN_STAT_ALL].current);
        const tarn_ptr meanwhile = rig_alloc(&d.rig, 100 * MIB, 0);

        fill(&d.rig, meanwhile, 100 * MIB, 55);
        wake_up(&d.rig);
        assert_false(tarn_allocator_is_asleep(d.rig.allocator, pool));
        dormitory_check(&d);
        assert_true(holds(&d.rig, meanwhile, 100 * MIB, 55));
        assert_int_equal(sleep_stats(&d.rig).host_bytes, 0);
        assert_int_equal(sleep_stats(&d.rig).bytes, 0);
        assert_int_equal(sim_counters(d.rig.device).live_host, 0);
        assert_int_equal(sim_counters(d.rig.device).live_streams, 0); /* those of the copies */
        assert_string_equal(d.rig.error.text, "");
        assert_int_equal(sleep_stats(&d.rig).sleeps + sleep_stats(&d.rig).wakes, 2);
        assert_true(sleep_stats(&d.rig).sleep_ns > 0 && sleep_stats(&d.rig).wake_ns > 0);
        rig_free(&d.rig, meanwhile);
        dormitory_close(&d);
    }
}

static void contents_can_be_discarded(void **state)
{
    struct dormitory d;

    (void)state;
    dormitory_open(&d, "policy:compact");
    sleep_well(&d.rig, &discard);
    assert_int_equal(sleep_stats(&d.rig).host_bytes, 0);
    assert_int_equal(sim_counters(d.rig.device).calls[TARN_SIM_COPY], 0);
    wake_up(&d.rig);
    assert_int_equal(sim_counters(d.rig.device).calls[TARN_SIM_COPY], 0);
    fill(&d.rig, d.ptrs[3], sizes[3], 4); /* there is memory */
    dormitory_close(&d);
}

/* Whole pages of free blocks are not, and where nothing is allocated, nothing is copied. */
static void only_what_is_used_is_saved(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        tarn_ptr ptrs[3];
        struct rig rig;

        open_backed(&rig, settings[i]);
        for (int k = 0; k < 3; k++) {
            ptrs[k] = alloc_in(&rig, pool, 20 * MIB);
        }
        assert_true(ptrs[0] < ptrs[1] && ptrs[1] < ptrs[2]);
        rig_free(&rig, ptrs[1]);
        sleep_well(&rig, NULL);
        assert_int_equal(sleep_stats(&rig).host_bytes, 40 * MIB);
        wake_up(&rig);
        const struct tarn_sim_counters before = sim_counters(rig.device);

        rig_free(&rig, ptrs[0]);
        rig_free(&rig, ptrs[2]);
        sleep_well(&rig, NULL);
        assert_int_equal(sleep_stats(&rig).bytes, 60 * MIB);
        assert_int_equal(sleep_stats(&rig).host_bytes, 0);
        wake_up(&rig);
        assert_int_equal(sim_counters(rig.device).calls[TARN_SIM_STREAM_CREATE],
                         before.calls[TARN_SIM_STREAM_CREATE]);
        assert_int_equal(sim_counters(rig.device).calls[TARN_SIM_COPY],
                         before.calls[TARN_SIM_COPY]);
        rig_close(&rig);
    }
}

static void host_memory_can_stay(void **state)
{
    const struct tarn_sleep_options keep = {.struct_size = sizeof keep, .keep_host = true};
    struct dormitory d;

    (void)state;
    dormitory_open(&d, "policy:compact");
    sleep_well(&d.rig, &keep);
    wake_up(&d.rig);
    const uint64_t calls = sim_counters(d.rig.device).calls[TARN_SIM_HOST_ALLOC];

    assert_true(calls > 0 && sleep_stats(&d.rig).host_bytes > 0);
    fill(&d.rig, d.ptrs[3], sizes[3], 77);
    sleep_well(&d.rig, &keep);
    wake_up(&d.rig);
    assert_true(holds(&d.rig, d.ptrs[3], sizes[3], 77));
    assert_int_equal(sim_counters(d.rig.device).calls[TARN_SIM_HOST_ALLOC], calls);
    sleep_well(&d.rig, NULL);
    wake_up(&d.rig);
    assert_int_equal(sleep_stats(&d.rig).host_bytes, 0);
    dormitory_close(&d);
}

/* A pool that has no memory yet sleeps like any other: nothing is allocated from it meanwhile. */
static void a_pool_without_memory_sleeps(void **state)
{
    struct rig rig;

    (void)state;
    open_backed(&rig, "policy:compact");
    assert_int_equal(tarn_allocator_begin_pool(rig.allocator, pool, any_stream, NULL, NULL),
                     TARN_OK);
    assert_int_equal(tarn_allocator_end_pool(rig.allocator, pool, NULL), TARN_OK);
    sleep_well(&rig, NULL);
    assert_true(tarn_allocator_is_asleep(rig.allocator, pool));
    assert_int_equal(try_alloc_in(&rig, pool, MIB), TARN_ERR_STATE);
    wake_up(&rig);
    assert_false(tarn_allocator_is_asleep(rig.allocator, pool));
    rig_free(&rig, alloc_in(&rig, pool, MIB));
    rig_close(&rig);
}

/* Of the lowest address nothing was kept. */
static void what_was_free_is_forgotten(void **state)
{
    struct rig rig;

    (void)state;
    open_backed(&rig, "policy:compact");
    const tarn_ptr first = alloc_in(&rig, pool, 30 * MIB);
    const tarn_ptr second = alloc_in(&rig, pool, 30 * MIB);
    const tarn_ptr third = alloc_in(&rig, pool, 30 * MIB);

    assert_true(first < second && second < third);
    rig_free(&rig, first);
    fill(&rig, third, 30 * MIB, 3);
    sleep_well(&rig, NULL);
    const uint64_t kept = sleep_stats(&rig).bytes;

    for (int i = 0; i < 3; i++) { /* the cache of a pool that is used stays */
        assert_int_equal(tarn_allocator_release_pool(rig.allocator, pool, NULL), TARN_OK);
    }
    rig_free(&rig, second);
    for (uint64_t n = 1; n < 8; n++) { /* what it takes to forget may not be there */
        tarn_host_fail_nth(n);
        const enum tarn_status st = tarn_allocator_empty_cache(rig.allocator, &rig.error);

        tarn_host_fail_nth(0);
        assert_true(st == TARN_OK || st == TARN_ERR_HOST_MEMORY);
        rig_check(&rig);
    }
    rig_empty_cache(&rig);
    assert_true(sleep_stats(&rig).bytes < kept);
    wake_up(&rig);
    assert_true(holds(&rig, third, 30 * MIB, 3));
    rig_free(&rig, third);
    rig_empty_cache(&rig);
    rig_close(&rig);
}

#define ROOM (4 * MIB)

enum {
    ROOMS = 4
};

/* A pool of large blocks, each with its number as contents, whose caller has left it. */
static void rooms_open(struct rig *rig, tarn_ptr *ptrs)
{
    open_backed(rig, "policy:compact");
    for (int i = 0; i < ROOMS; i++) {
        ptrs[i] = alloc_in(rig, pool, ROOM);
        assert_true(i == 0 || ptrs[i] == ptrs[i - 1] + ROOM);
        fill(rig, ptrs[i], ROOM, (unsigned char)(i + 1));
    }
}

/* Of what is freed while the pool sleeps neither memory nor contents come back. */
static void rooms_free(struct rig *rig, const tarn_ptr *ptrs, unsigned freed)
{
    for (int i = 0; i < ROOMS; i++) {
        assert_int_equal(tarn_allocator_release_pool(rig->allocator, pool, NULL), TARN_OK);
        if (freed >> i & 1U) {
            rig_free(rig, ptrs[i]);
        }
    }
    rig_empty_cache(rig);
    rig_check(rig);
    assert_int_equal(sleep_stats(rig).bytes, ROOM * (uint64_t)(ROOMS - __builtin_popcount(freed)));
}

static void rooms_close(struct rig *rig, const tarn_ptr *ptrs, unsigned freed)
{
    for (int i = 0; i < ROOMS; i++) {
        if (!(freed >> i & 1U)) {
            rig_free(rig, ptrs[i]);
        }
    }
    rig_close(rig);
}

/* Whichever blocks are freed, the contents of the others are theirs. */
static void what_is_left_keeps_its_contents(void **state)
{
    (void)state;
    for (unsigned freed = 1; freed + 1 < 1U << ROOMS; freed++) {
        tarn_ptr ptrs[ROOMS];
        struct rig rig;

        rooms_open(&rig, ptrs);
        sleep_well(&rig, NULL);
        rooms_free(&rig, ptrs, freed);
        wake_up(&rig);
        for (int i = 0; i < ROOMS; i++) {
            assert_true(freed >> i & 1U || holds(&rig, ptrs[i], ROOM, (unsigned char)(i + 1)));
        }
        rooms_close(&rig, ptrs, freed);
    }
}

/* The second block was free when the pool fell asleep: contents are saved in two runs. */
static void what_is_left_between_holes_keeps_its_contents(void **state)
{
    tarn_ptr ptrs[ROOMS];
    struct rig rig;

    (void)state;
    rooms_open(&rig, ptrs);
    rig_free(&rig, ptrs[1]);
    sleep_well(&rig, NULL);
    for (int i = 0; i < ROOMS; i++) {
        assert_int_equal(tarn_allocator_release_pool(rig.allocator, pool, NULL), TARN_OK);
    }
    rig_free(&rig, ptrs[2]);
    rig_empty_cache(&rig);
    assert_int_equal(sleep_stats(&rig).bytes, 2 * ROOM);
    wake_up(&rig);
    assert_true(holds(&rig, ptrs[0], ROOM, 1));
    assert_true(holds(&rig, ptrs[3], ROOM, 4));
    rooms_close(&rig, ptrs, 6);
}

/* Contents of an earlier sleep are nobody's. */
static void what_was_saved_once_is_not_forgotten_later(void **state)
{
    tarn_ptr ptrs[ROOMS];
    struct rig rig;

    (void)state;
    rooms_open(&rig, ptrs);
    sleep_well(&rig, NULL);
    wake_up(&rig);
    const uint64_t copies = sim_counters(rig.device).calls[TARN_SIM_COPY];

    sleep_well(&rig, &discard);
    rooms_free(&rig, ptrs, 2);
    wake_up(&rig);
    assert_int_equal(sim_counters(rig.device).calls[TARN_SIM_COPY], copies);
    assert_int_equal(sim_counters(rig.device).live_host, 0);
    rooms_close(&rig, ptrs, 2);
}

static void more_than_one_chunk_is_kept(void **state)
{
    const uint64_t size = 258 * MIB; /* a chunk is 256 MiB */
    struct rig rig;

    (void)state;
    open_backed(&rig, "policy:compact");
    const tarn_ptr before = alloc_in(&rig, pool, 30 * MIB);
    const tarn_ptr hole = alloc_in(&rig, pool, 30 * MIB); /* so that the next begins in a chunk */
    const tarn_ptr ptr = alloc_in(&rig, pool, size);
    const tarn_ptr behind = alloc_in(&rig, pool, MIB); /* small: in a segment of its own */

    assert_true(before < hole && hole < ptr && ptr < behind);
    assert_null(tarn_sim_host_memory(rig.device, ptr + size, 512));
    rig_free(&rig, hole);
    fill(&rig, before, 30 * MIB, 2);
    uint64_t *words = (uint64_t *)(void *)memory_of(&rig, ptr, size);

    for (uint64_t i = 0; i < size / 8; i += 8 * KIB) { /* one every 64 KiB */
        words[i] = i;
    }
    fill(&rig, behind, MIB, 3);
    sleep_well(&rig, NULL);
    assert_int_equal(sleep_stats(&rig).host_bytes, size + 32 * MIB); /* no hole */
    wake_up(&rig);
    words = (uint64_t *)(void *)memory_of(&rig, ptr, size);
    for (uint64_t i = 0; i < size / 8; i += 8 * KIB) { /* one every 64 KiB */
        assert_int_equal(words[i], i);
    }
    assert_true(holds(&rig, before, 30 * MIB, 2));
    assert_true(holds(&rig, behind, MIB, 3));
    rig_close(&rig);
}

/* ---- while it sleeps ---- */

static void nothing_is_allocated_from_a_sleeping_pool(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct dormitory d;

        dormitory_open(&d, settings[i]);
        sleep_well(&d.rig, NULL);
        assert_int_equal(try_alloc_in(&d.rig, pool, 512), TARN_ERR_STATE);
        assert_non_null(strstr(d.rig.error.text, "(0, 7) is asleep"));
        rig_free(&d.rig, alloc_in(&d.rig, other_pool, 512));
        rig_free(&d.rig, d.ptrs[3]);
        rig_check(&d.rig);
        assert_int_equal(try_alloc_in(&d.rig, pool, sizes[3]), TARN_ERR_STATE);
        wake_up(&d.rig);
        d.ptrs[3] = alloc_in(&d.rig, pool, sizes[3]);
        fill(&d.rig, d.ptrs[3], sizes[3], 4);
        dormitory_check(&d);
        dormitory_close(&d);
    }
}

static void frees_that_wait_for_streams_go_on(void **state)
{
    struct dormitory d;

    (void)state;
    dormitory_open(&d, "policy:compact");
    rig_record(&d.rig, d.ptrs[3], 1);
    rig_record(&d.rig, d.ptrs[1], 2);
    assert_int_equal(tarn_sim_block_stream(d.rig.device, 1), TARN_OK);
    rig_free(&d.rig, d.ptrs[3]);
    sleep_well(&d.rig, NULL);
    assert_int_equal(sim_counters(d.rig.device).forced_unblocks, 1); /* it waited */
    rig_free(&d.rig, d.ptrs[1]);
    wake_up(&d.rig);
    d.ptrs[3] = alloc_in(&d.rig, pool, sizes[3]);
    d.ptrs[1] = alloc_in(&d.rig, pool, sizes[1]);
    dormitory_close(&d);
}

static void pages_that_came_from_elsewhere_lose_their_old_address(void **state)
{
    struct rig rig;

    (void)state;
    rig_open_manual(&rig, GIB, "policy:compact,rules:2.14");
    rig_free(&rig, rig_alloc(&rig, 30 * MIB, 0));
    (void)alloc_in(&rig, pool, 30 * MIB);
    assert_int_equal(rig_engine(rig.allocator)->compact.pages_moved, 15);
    assert_int_equal(sim_counters(rig.device).live_mappings, 30);
    sleep_well(&rig, &discard);
    assert_int_equal(sim_counters(rig.device).used_bytes, 0);
    wake_up(&rig);
    rig_close(&rig);
}

static void a_sleeping_pool_lends_nothing(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, 100 * MIB, "expandable_segments:True");
    const tarn_ptr kept = alloc_in(&rig, pool, 20 * MIB);

    rig_free(&rig, alloc_in(&rig, pool, 60 * MIB));
    assert_int_equal(tarn_allocator_set_pool_use_on_oom(rig.allocator, pool, true), TARN_OK);
    sleep_well(&rig, &discard);
    const tarn_ptr ptr = rig_alloc(&rig, 80 * MIB, 0);

    assert_int_equal(sleep_stats(&rig).pools, 1);
    rig_alloc_oom(&rig, 30 * MIB, 0);
    rig_free(&rig, ptr);
    wake_up(&rig); /* the cache goes */
    rig_free(&rig, kept);
    rig_close(&rig);
}

static void a_checkpoint_is_not_restored(void **state)
{
    struct tarn_checkpoint_delta delta = {0};
    struct tarn_checkpoint *checkpoint = NULL;
    struct dormitory d;

    (void)state;
    dormitory_open(&d, "policy:compact");
    assert_int_equal(
        tarn_allocator_get_checkpoint(d.rig.allocator, pool, &checkpoint, &d.rig.error), TARN_OK);
    sleep_well(&d.rig, NULL);
    assert_int_equal(
        tarn_allocator_set_checkpoint(d.rig.allocator, checkpoint, &delta, &d.rig.error),
        TARN_ERR_STATE);
    tarn_checkpoint_destroy(checkpoint);
    wake_up(&d.rig);
    dormitory_check(&d);
    dormitory_close(&d);
}

/* ---- what is refused ---- */

static void expect_sleep(struct rig *rig, struct tarn_pool_id id, enum tarn_status expected,
                         const char *text)
{
    assert_int_equal(tarn_allocator_sleep(rig->allocator, id, NULL, &rig->error), expected);
    if (!strstr(rig->error.text, text)) {
        fail_msg("%s", rig->error.text);
    }
    rig_check(rig);
}

static void what_cannot_sleep_is_refused(void **state)
{
    const struct tarn_sleep_options short_one = {.struct_size = 3};
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "policy:compact");
    (void)alloc_in(&rig, pool, 5 * MIB);
    expect_sleep(&rig, (struct tarn_pool_id){0, 0}, TARN_ERR_NOT_SUPPORTED, "default pools");
    expect_sleep(&rig, other_pool, TARN_ERR_NOT_FOUND, "no private pool (0, 8)");
    assert_int_equal(tarn_allocator_wake(rig.allocator, other_pool, NULL), TARN_ERR_NOT_FOUND);
    assert_false(tarn_allocator_is_asleep(rig.allocator, other_pool));
    assert_int_equal(tarn_allocator_wake(rig.allocator, pool, NULL), TARN_ERR_STATE);
    assert_int_equal(tarn_allocator_sleep(rig.allocator, pool, &short_one, NULL),
                     TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_allocator_begin_pool(rig.allocator, other_pool, any_stream, NULL, NULL),
                     TARN_OK);
    expect_sleep(&rig, pool, TARN_ERR_STATE, "captured");
    assert_int_equal(tarn_allocator_end_pool(rig.allocator, other_pool, NULL), TARN_OK);
    sleep_well(&rig, &discard);
    expect_sleep(&rig, pool, TARN_ERR_STATE, "asleep already");
    wake_up(&rig);
    sleep_well(&rig, &discard);
    wake_up(&rig);
    assert_true(sleep_stats(&rig).sleep_ns < UINT64_MAX / 2); /* times of both, added up */
    assert_true(sleep_stats(&rig).wake_ns < UINT64_MAX / 2);
    assert_int_equal(sleep_stats(&rig).sleeps, 2);
    assert_int_equal(sleep_stats(&rig).wakes, 2);
    rig_close(&rig);
}

static void plain_segments_are_refused(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    (void)alloc_in(&rig, pool, 5 * MIB);
    expect_sleep(&rig, pool, TARN_ERR_NOT_SUPPORTED, "expandable_segments:True");
    assert_false(tarn_allocator_is_asleep(rig.allocator, pool));
    (void)alloc_in(&rig, pool, 5 * MIB);
    rig_close(&rig);
    rig_open(&rig, GIB, "backend:cudaMallocAsync");
    assert_int_equal(tarn_allocator_sleep(rig.allocator, pool, NULL, &rig.error),
                     TARN_ERR_NOT_SUPPORTED);
    assert_false(tarn_allocator_is_asleep(rig.allocator, pool));
    assert_int_equal(sleep_stats(&rig).pools, 0);
    rig_close(&rig);
}

static void shared_memory_is_refused(void **state)
{
    unsigned char message[4096];
    size_t size = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "policy:compact");
    const tarn_ptr ptr = alloc_in(&rig, pool, 5 * MIB);

    sleep_well(&rig, &discard);
    assert_int_equal(
        tarn_ipc_export(rig.allocator, ptr, message, sizeof message, &size, &rig.error),
        TARN_ERR_STATE);
    wake_up(&rig);
    assert_int_equal(
        tarn_ipc_export(rig.allocator, ptr, message, sizeof message, &size, &rig.error), TARN_OK);
    expect_sleep(&rig, pool, TARN_ERR_STATE, "shared");
    rig_close(&rig);
}

/* Small and large blocks have segments of their own. Whichever is shared. */
static void one_shared_segment_is_enough(void **state)
{
    unsigned char message[4096];
    size_t size = 0;

    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        struct rig rig;

        rig_open(&rig, GIB, settings[i / 2]);
        const tarn_ptr ptrs[] = {alloc_in(&rig, pool, 100 * KIB), alloc_in(&rig, pool, 5 * MIB)};

        assert_int_equal(
            tarn_ipc_export(rig.allocator, ptrs[i % 2], message, sizeof message, &size, &rig.error),
            TARN_OK);
        expect_sleep(&rig, pool, TARN_ERR_STATE, "shared");
        assert_false(tarn_allocator_is_asleep(rig.allocator, pool));
        rig_close(&rig);
    }
}

/* Of a segment of several pages another one than the first. */
static void one_shared_page_is_enough(void **state)
{
    unsigned char message[4096];
    size_t size = 0;

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct rig rig;

        rig_open(&rig, GIB, settings[i]);
        (void)alloc_in(&rig, pool, 20 * MIB);
        const tarn_ptr ptr = alloc_in(&rig, pool, 20 * MIB);

        for (uint64_t n = 1; n < 4; n++) {
            tarn_host_fail_nth(n);
            const enum tarn_status st =
                tarn_ipc_export(rig.allocator, ptr, message, sizeof message, &size, &rig.error);

            tarn_host_fail_nth(0);
            assert_true(st == TARN_OK || (st == TARN_ERR_HOST_MEMORY && n == 1));
        }
        expect_sleep(&rig, pool, TARN_ERR_STATE, "shared");
        rig_close(&rig);
    }
}

/* The first descriptor that is free may be 0, in a process without a standard input. */
static void a_page_may_be_shared_as_descriptor_zero(void **state)
{
    unsigned char message[4096];
    size_t size = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "policy:compact");
    const tarn_ptr ptr = alloc_in(&rig, pool, 2 * MIB);
    const int input = dup(STDIN_FILENO);

    (void)close(STDIN_FILENO);
    enum tarn_status st[2];

    for (int i = 0; i < 2; i++) {
        st[i] = tarn_ipc_export(rig.allocator, ptr, message, sizeof message, &size, &rig.error);
    }
    const bool is_open = fcntl(STDIN_FILENO, F_GETFD) >= 0;

    assert_int_equal(st[0], TARN_OK);
    assert_int_equal(st[1], TARN_OK);
    assert_true(is_open);
    assert_int_equal(sim_counters(rig.device).calls[TARN_SIM_PAGE_EXPORT], 1);
    expect_sleep(&rig, pool, TARN_ERR_STATE, "shared");
    rig_close(&rig);
    assert_true(fcntl(STDIN_FILENO, F_GETFD) < 0);
    if (input >= 0) {
        (void)dup2(input, STDIN_FILENO);
        (void)close(input);
    }
}

static void child_tries(void *context)
{
    struct rig *rig = context;

    CHILD_REQUIRE(tarn_allocator_sleep(rig->allocator, pool, NULL, NULL) == TARN_ERR_STATE);
    CHILD_REQUIRE(tarn_allocator_wake(rig->allocator, pool, NULL) == TARN_ERR_STATE);
    CHILD_REQUIRE(!tarn_allocator_is_asleep(rig->allocator, pool));
}

/* What sleeps is no memory to allocate from, also where there is no other. */
static void a_sleeping_pool_has_no_largest_block(void **state)
{
    uint64_t largest = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, 64 * MIB, "policy:compact");
    rig_free(&rig, alloc_in(&rig, pool, 20 * MIB));
    assert_int_equal(tarn_allocator_sleep(rig.allocator, pool, NULL, &rig.error), TARN_OK);
    const tarn_ptr ptr = rig_alloc(&rig, 64 * MIB, 0);

    assert_int_equal(sim_counters(rig.device).used_bytes, 64 * MIB);
    assert_int_equal(tarn_allocator_cache_info(rig.allocator, &largest, &rig.error), TARN_OK);
    assert_int_equal(largest, 0);
    rig_free(&rig, ptr);
    rig_close(&rig);
}

static void a_forked_child_is_refused(void **state)
{
    struct dormitory d;

    (void)state;
    dormitory_open(&d, "policy:compact");
    sleep_well(&d.rig, NULL);
    child_run(child_tries, &d.rig);
    wake_up(&d.rig);
    dormitory_check(&d);
    dormitory_close(&d);
}

/* ---- without room ---- */

static void a_pool_without_room_stays_asleep(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        for (int limited = 0; limited < 2; limited++) {
            struct rig rig;

            rig_open(&rig, limited ? 4 * GIB : GIB, settings[i]);
            if (limited) {
                rig_limit(&rig, 0.25);
            }
            (void)alloc_in(&rig, pool, 400 * MIB);
            sleep_well(&rig, &discard);
            const tarn_ptr live = rig_alloc(&rig, 500 * MIB, 0);
            const tarn_ptr cached = rig_alloc(&rig, 300 * MIB, 1);

            assert_int_equal(tarn_allocator_wake(rig.allocator, pool, &rig.error),
                             TARN_ERR_OUT_OF_MEMORY);
            rig_check(&rig);
            assert_true(tarn_allocator_is_asleep(rig.allocator, pool));
            rig_free(&rig, cached);
            wake_up(&rig); /* with what was cached, but no more than is needed */
            assert_true(rig_now(&rig, TARN_STAT_RESERVED_BYTES) >= (int64_t)(1000 * MIB));
            rig_free(&rig, live);
            rig_close(&rig);
        }
    }
}

/* What sleeps is not on the device, so the failure counts it as neither allocated nor free. */
static void see_failure(void *context, const struct tarn_oom *oom)
{
    *(struct tarn_oom *)context = *oom;
}

static void a_failure_counts_no_memory_that_sleeps(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct rig rig;
        struct tarn_oom oom = {0};

        rig_open(&rig, GIB, settings[i]);
        assert_int_equal(tarn_allocator_add_oom_observer(rig.allocator, see_failure, &oom),
                         TARN_OK);
        (void)alloc_in(&rig, pool, 300 * MIB);
        rig_free(&rig, alloc_in(&rig, pool, 200 * MIB)); /* is free in the pool */
        sleep_well(&rig, &discard);
        const tarn_ptr live = rig_alloc(&rig, 100 * MIB, 0);

        rig_alloc_oom(&rig, 2 * GIB, 0);
        const uint64_t reserved = (uint64_t)rig_now(&rig, TARN_STAT_RESERVED_BYTES);

        assert_true(reserved < 200 * MIB);
        assert_int_equal(oom.reserved, reserved);
        assert_int_equal(oom.allocated, 100 * MIB);
        assert_int_equal(oom.private_free, 0);
        wake_up(&rig);
        rig_alloc_oom(&rig, 2 * GIB, 0);
        assert_int_equal(oom.allocated, 400 * MIB);
        assert_int_equal(oom.private_free, 200 * MIB);
        rig_free(&rig, live);
        rig_close(&rig);
    }
}

static void a_pool_wakes_where_there_is_room_enough(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct rig rig;

        rig_open(&rig, 4 * GIB, settings[i]);
        rig_limit(&rig, 0.25);
        (void)alloc_in(&rig, pool, 400 * MIB);
        const uint64_t reserved = (uint64_t)rig_now(&rig, TARN_STAT_RESERVED_BYTES);

        sleep_well(&rig, &discard);
        tarn_sim_fail_nth(rig.device, TARN_SIM_MEMORY_INFO, 1, TARN_ERR_DEVICE);
        wake_up(&rig); /* within the limit; how much is free is not known */
        sleep_well(&rig, &discard);
        rig_limit(&rig, 0.01); /* less than the pool alone needs */
        assert_int_equal(tarn_allocator_wake(rig.allocator, pool, &rig.error),
                         TARN_ERR_OUT_OF_MEMORY);
        rig_limit(&rig, 1.0);
        tarn_sim_set_foreign_memory(rig.device, 4 * GIB - reserved + MIB); /* others have it */
        assert_int_equal(tarn_allocator_wake(rig.allocator, pool, &rig.error),
                         TARN_ERR_OUT_OF_MEMORY);
        assert_true(tarn_allocator_is_asleep(rig.allocator, pool));
        tarn_sim_set_foreign_memory(rig.device, 4 * GIB - reserved);
        wake_up(&rig);
        assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), reserved);
        rig_close(&rig);
    }
}

/* ---- the end of a pool ---- */

static void a_pool_may_be_released_asleep(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct dormitory d;

        dormitory_open(&d, settings[i]);
        sleep_well(&d.rig, NULL);
        for (int k = 0; k < BLOCKS + 1; k++) { /* every allocation took a use */
            assert_int_equal(tarn_allocator_release_pool(d.rig.allocator, pool, NULL), TARN_OK);
        }
        rig_empty_cache(&d.rig);
        rig_check(&d.rig);
        assert_int_equal(sleep_stats(&d.rig).pools, 1);
        for (int k = 0; k < BLOCKS; k++) {
            if (k != 3 && k != 0) {
                rig_free(&d.rig, d.ptrs[k]);
            }
        }
        rig_empty_cache(&d.rig);
        rig_check(&d.rig);
        wake_up(&d.rig);
        assert_true(holds(&d.rig, d.ptrs[3], sizes[3], 4));
        assert_true(holds(&d.rig, d.ptrs[0], sizes[0], 1));
        sleep_well(&d.rig, NULL);
        rig_free(&d.rig, d.ptrs[3]);
        rig_free(&d.rig, d.ptrs[0]);
        rig_empty_cache(&d.rig);
        assert_int_equal(sleep_stats(&d.rig).pools + sleep_stats(&d.rig).host_bytes, 0);
        assert_int_equal(sim_counters(d.rig.device).live_host, 0);
        rig_free(&d.rig, d.outside);
        rig_close(&d.rig);
    }
}

/* Small and large blocks have ranges of their own, and so has the rest of the program. */
static void empty_ranges_go_with_their_pool(void **state)
{
    (void)state;
    for (uint64_t n = 1; n < 3; n++) {
        struct rig rig;

        rig_open(&rig, GIB, "expandable_segments:True");
        rig_free(&rig, rig_alloc(&rig, 20 * MIB, 0));
        tarn_sim_fail_nth(rig.device, TARN_SIM_VA_RELEASE, 1, TARN_ERR_DEVICE);
        assert_int_equal(tarn_allocator_empty_cache(rig.allocator, &rig.error), TARN_ERR_DEVICE);
        assert_int_equal(sim_counters(rig.device).live_reservations,
                         1); /* empty, and not a pool's */
        const tarn_ptr small = alloc_in(&rig, pool, 512);
        const tarn_ptr large = alloc_in(&rig, pool, 20 * MIB);

        sleep_well(&rig, &discard);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(tarn_allocator_release_pool(rig.allocator, pool, NULL), TARN_OK);
        }
        rig_free(&rig, small);
        rig_free(&rig, large);
        tarn_sim_fail_nth(rig.device, TARN_SIM_VA_RELEASE, n, TARN_ERR_DEVICE);
        assert_int_equal(tarn_allocator_empty_cache(rig.allocator, &rig.error), TARN_ERR_DEVICE);
        assert_non_null(strstr(rig.error.text, "releasing addresses"));
        assert_int_equal(sim_counters(rig.device).live_reservations, 4 - n);
        rig_check(&rig);
        rig_empty_cache(&rig);
        assert_int_equal(sleep_stats(&rig).pools, 0);
        assert_int_equal(sim_counters(rig.device).live_reservations, 1);
        rig_free(&rig, rig_alloc(&rig, 20 * MIB, 0)); /* it is used again */
        assert_int_equal(sim_counters(rig.device).live_reservations, 1);
        rig_close(&rig);
    }
}

enum giving_back {
    TRIM_ALL,
    TRIM_POOL,
    RELEASE_STREAM,
    EMPTY_CACHE,
    WAYS
};

static enum tarn_status give_back(struct rig *rig, struct tarn_pool *handle, enum giving_back way)
{
    switch (way) {
    case TRIM_ALL:
        return tarn_allocator_trim(rig->allocator, 0, NULL, &rig->error);
    case TRIM_POOL:
        return tarn_pool_trim(handle, 0, NULL, &rig->error);
    case RELEASE_STREAM:
        return tarn_allocator_release_stream(rig->allocator, 0, &rig->error);
    case EMPTY_CACHE:
    case WAYS:
        break;
    }
    return tarn_allocator_empty_cache(rig->allocator, &rig->error);
}

/* What is free in a pool that sleeps is away already: nothing of it is there to be given back. */
static void a_sleeping_pool_has_nothing_to_give(void **state)
{
    (void)state;
    for (int i = 0; i < 2 * WAYS; i++) {
        struct tarn_pool *handle = NULL;
        tarn_ptr ptrs[3];
        struct rig rig;

        rig_open(&rig, GIB, settings[i % 2]);
        const tarn_ptr outside = rig_alloc(&rig, 20 * MIB, 0); /* which stays */

        assert_int_equal(tarn_pool_create(rig.allocator, NULL, &handle, &rig.error), TARN_OK);
        for (int k = 0; k < 3; k++) {
            assert_int_equal(tarn_pool_alloc(handle, 40 * MIB, 0, &ptrs[k], &rig.error), TARN_OK);
        }
        rig_free(&rig, ptrs[1]);
        assert_int_equal(
            tarn_allocator_sleep(rig.allocator, tarn_pool_get_id(handle), &discard, &rig.error),
            TARN_OK);
        if (give_back(&rig, handle, (enum giving_back)(i / 2))) {
            fail_msg("way %d: %s", i / 2, rig.error.text);
        }
        rig_check(&rig);
        assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 20 * MIB);
        assert_int_equal(tarn_allocator_wake(rig.allocator, tarn_pool_get_id(handle), &rig.error),
                         TARN_OK);
        rig_check(&rig);
        rig_free(&rig, ptrs[0]);
        rig_free(&rig, ptrs[2]);
        rig_free(&rig, outside);
        tarn_pool_destroy(handle);
        rig_close(&rig);
    }
}

static void an_allocator_may_end_while_a_pool_sleeps(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct dormitory d;

        dormitory_open(&d, settings[i]);
        sleep_well(&d.rig, NULL);
        rig_close(&d.rig);
    }
}

/* ---- events and walks ---- */

struct seen {
    uint64_t mapped;
    uint64_t unmapped;
    tarn_ptr lowest; /* address of an event; 0: none yet */
};

static void see(void *context, const struct tarn_trace_event *event)
{
    struct seen *seen = context;

    seen->mapped += event->action == TARN_ACTION_SEGMENT_MAP ? event->size : 0;
    seen->unmapped += event->action == TARN_ACTION_SEGMENT_UNMAP ? event->size : 0;
    seen->lowest = seen->lowest && seen->lowest < event->address ? seen->lowest : event->address;
}

static void events_tell_what_goes(void **state)
{
    struct seen seen = {0};
    const struct tarn_sink sink = {.context = &seen, .receive = see};
    struct dormitory d;

    (void)state;
    dormitory_open(&d, "policy:compact");
    const struct rig_totals before = rig_totals(&d.rig);

    assert_int_equal(tarn_allocator_add_sink(d.rig.allocator, &sink, NULL), TARN_OK);
    sleep_well(&d.rig, NULL);
    const uint64_t bytes = sleep_stats(&d.rig).bytes;

    assert_int_equal(seen.unmapped, bytes);
    assert_int_equal(seen.mapped, 0);
    assert_int_equal(rig_totals(&d.rig).reserved, before.reserved - bytes);
    assert_int_equal(rig_totals(&d.rig).allocated, 1);
    uint64_t largest = 0;

    assert_int_equal(tarn_allocator_cache_info(d.rig.allocator, &largest, NULL), TARN_OK);
    wake_up(&d.rig);
    assert_int_equal(seen.mapped, bytes);
    assert_int_equal(rig_totals(&d.rig).reserved, before.reserved);
    assert_int_equal(rig_totals(&d.rig).allocated, before.allocated);
    assert_int_equal(tarn_allocator_remove_sink(d.rig.allocator, &seen, NULL), TARN_OK);
    dormitory_close(&d);
}

/* A pool whose first pages are not mapped: events have the addresses and sizes of the others, and
 * the range counts once. */
static void events_tell_where_it_goes(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct seen seen = {0};
        const struct tarn_sink sink = {.context = &seen, .receive = see};
        struct tarn_pool *handle = NULL;
        tarn_ptr ptrs[3];
        struct rig rig;

        rig_open(&rig, GIB, settings[i]);
        assert_int_equal(tarn_pool_create(rig.allocator, NULL, &handle, &rig.error), TARN_OK);
        for (int k = 0; k < 3; k++) {
            assert_int_equal(tarn_pool_alloc(handle, 40 * MIB, 0, &ptrs[k], &rig.error), TARN_OK);
        }
        rig_free(&rig, ptrs[0]);
        assert_int_equal(tarn_pool_trim(handle, 0, NULL, &rig.error), TARN_OK);
        const struct tarn_stats before = rig_stats(&rig);

        assert_int_equal(tarn_allocator_add_sink(rig.allocator, &sink, NULL), TARN_OK);
        assert_int_equal(
            tarn_allocator_sleep(rig.allocator, tarn_pool_get_id(handle), &discard, &rig.error),
            TARN_OK);
        assert_int_equal(seen.unmapped, 80 * MIB);
        assert_int_equal(seen.lowest, ptrs[1]);
        assert_int_equal(rig_stats(&rig).num_device_free, before.num_device_free + 1);
        assert_int_equal(rig_stats(&rig).num_device_alloc, before.num_device_alloc);
        assert_int_equal(tarn_allocator_wake(rig.allocator, tarn_pool_get_id(handle), &rig.error),
                         TARN_OK);
        assert_int_equal(seen.mapped, 80 * MIB);
        assert_int_equal(rig_stats(&rig).num_device_free, before.num_device_free + 1);
        assert_int_equal(rig_stats(&rig).num_device_alloc, before.num_device_alloc + 1);
        assert_int_equal(tarn_allocator_remove_sink(rig.allocator, &seen, NULL), TARN_OK);
        rig_free(&rig, ptrs[1]);
        rig_free(&rig, ptrs[2]);
        tarn_pool_destroy(handle);
        rig_close(&rig);
    }
}

/* With stacks, whose events have that of the call. */
static void events_have_the_stack_of_the_call(void **state)
{
    struct tarn_history *history = NULL;
    struct tarn_sink sink;
    struct dormitory d;

    (void)state;
    dormitory_open(&d, "policy:compact");
    assert_int_equal(tarn_history_create(NULL, &history, NULL), TARN_OK);
    tarn_history_get_sink(history, TARN_CONTEXT_ALL, &sink);
    assert_int_equal(tarn_allocator_add_sink(d.rig.allocator, &sink, NULL), TARN_OK);
    sleep_well(&d.rig, NULL);
    wake_up(&d.rig);
    struct tarn_history_usage usage = {.struct_size = sizeof usage};

    tarn_history_get_usage(history, &usage);
    assert_true(usage.stacks > 0);
    assert_int_equal(tarn_allocator_remove_sink(d.rig.allocator, history, NULL), TARN_OK);
    tarn_history_destroy(history);
    dormitory_check(&d);
    dormitory_close(&d);
}

/* What was mapped at an old address cannot be unmapped: the pool stays awake. */
static void an_old_address_may_stay(void **state)
{
    struct rig rig;

    (void)state;
    rig_open_manual(&rig, GIB, "policy:compact,rules:2.14");
    rig_free(&rig, rig_alloc(&rig, 30 * MIB, 0));
    (void)alloc_in(&rig, pool, 30 * MIB);
    assert_int_equal(sim_counters(rig.device).live_mappings, 30);
    tarn_sim_fail_nth(rig.device, TARN_SIM_UNMAP, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_sleep(rig.allocator, pool, &discard, &rig.error),
                     TARN_ERR_DEVICE);
    rig_check(&rig);
    sleep_well(&rig, &discard);
    wake_up(&rig);
    rig_close(&rig);
}

/* A limit that is not the reason: the device is full of what is cached. */
static void the_device_may_be_full_below_the_limit(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct rig rig;

        rig_open(&rig, GIB, settings[i]);
        rig_limit(&rig, 0.999);
        (void)alloc_in(&rig, pool, 200 * MIB);
        sleep_well(&rig, &discard);
        rig_free(&rig, rig_alloc(&rig, 400 * MIB, 0));
        tarn_sim_set_foreign_memory(rig.device, 500 * MIB);
        wake_up(&rig);
        tarn_sim_set_foreign_memory(rig.device, 0);
        rig_close(&rig);
    }
}

/* ---- failures ---- */

/* Something that fails once, in the n-th call of its kind. */
struct failure {
    bool host;
    enum tarn_sim_call call;
    enum tarn_status status;
    uint64_t n;
};

static void failure_plan(struct dormitory *d, const struct failure *failure, bool on)
{
    if (failure->host) {
        tarn_host_fail_nth(on ? failure->n : 0);
    } else {
        tarn_sim_fail_nth(d->rig.device, failure->call, on ? failure->n : 0, failure->status);
    }
}

/* The call with the failure, then again without. False if nothing failed. */
static bool fails_then_works(struct dormitory *d, const struct failure *failure, bool sleeps)
{
    const int64_t reserved = rig_now(&d->rig, TARN_STAT_RESERVED_BYTES);
    const uint64_t used = sim_counters(d->rig.device).used_bytes;
    const uint64_t failures = sim_counters(d->rig.device).failures;

    failure_plan(d, failure, true);
    const enum tarn_status st =
        sleeps ? tarn_allocator_sleep(d->rig.allocator, pool, NULL, &d->rig.error)
               : tarn_allocator_wake(d->rig.allocator, pool, &d->rig.error);

    failure_plan(d, failure, false);
    rig_check(&d->rig);
    if (st == TARN_OK) {
        return !failure->host && sim_counters(d->rig.device).failures > failures;
    }
    assert_int_equal(st, failure->host ? TARN_ERR_HOST_MEMORY : failure->status);
    assert_int_equal(tarn_allocator_is_asleep(d->rig.allocator, pool), !sleeps);
    assert_int_equal(rig_now(&d->rig, TARN_STAT_RESERVED_BYTES), reserved);
    assert_int_equal(sim_counters(d->rig.device).used_bytes, used);
    if (sleeps) {
        dormitory_check(d);
        sleep_well(&d->rig, NULL);
    } else {
        wake_up(&d->rig);
    }
    return true;
}

/* A page that the device refused to release is lost. */
static bool loses_a_page(const struct failure *failure)
{
    return !failure->host && failure->call == TARN_SIM_PAGE_RELEASE;
}

static bool night_with(const struct failure *failure, bool fails_asleep)
{
    struct dormitory d;

    dormitory_open(&d, settings[failure->n % 2]);
    bool fired = false;

    if (fails_asleep) {
        fired = fails_then_works(&d, failure, true);
        wake_up(&d.rig);
    } else {
        sleep_well(&d.rig, NULL);
        fired = fails_then_works(&d, failure, false);
    }
    dormitory_check(&d);
    dormitory_close(&d);
    return fired;
}

/* Each of the first calls fails, and every so many of the others. */
enum {
    NEAR = 12,
    FAR = 7
};

static void nights_with(struct failure failure)
{
    for (int asleep = 0; asleep < 2; asleep++) {
        failure.n = 1;
        while (night_with(&failure, asleep)) {
            assert_true(failure.n < 500);
            failure.n += failure.n < test_part(NEAR) ? 1 : FAR * test_share();
        }
    }
}

static void every_device_call_may_fail(void **state)
{
    static const enum tarn_sim_call calls[] = {
        TARN_SIM_DEVICE_WAIT, TARN_SIM_HOST_ALLOC,  TARN_SIM_COPY, TARN_SIM_STREAM_CREATE,
        TARN_SIM_STREAM_WAIT, TARN_SIM_PAGE_CREATE, TARN_SIM_MAP,  TARN_SIM_UNMAP,
    };

    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        nights_with((struct failure){.call = calls[i], .status = TARN_ERR_DEVICE});
    }
}

static void host_memory_may_fail(void **state)
{
    (void)state;
    nights_with((struct failure){.host = true, .status = TARN_ERR_HOST_MEMORY});
}

static void the_device_may_be_full(void **state)
{
    (void)state;
    nights_with((struct failure){.call = TARN_SIM_HOST_ALLOC, .status = TARN_ERR_OUT_OF_MEMORY});
}

/* Of a pool that is awake. The device refuses to unmap, and then to map again what was unmapped. */
static void fall_half_asleep(struct dormitory *d)
{
    tarn_sim_fail_nth(d->rig.device, TARN_SIM_UNMAP, 2, TARN_ERR_DEVICE);
    tarn_sim_fail_nth(d->rig.device, TARN_SIM_MAP, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_sleep(d->rig.allocator, pool, NULL, &d->rig.error),
                     TARN_ERR_DEVICE);
}

static void expect_failure(struct dormitory *d, enum tarn_status st, enum tarn_status expected,
                           const char *text)
{
    const struct tarn_sim_counters counters = sim_counters(d->rig.device);

    assert_int_equal(st, expected);
    if (!strstr(d->rig.error.text, text)) {
        fail_msg("%s", d->rig.error.text);
    }
    rig_check(&d->rig);
    assert_int_equal(counters.live_streams, 0);
    const uint64_t created =
        counters.calls[TARN_SIM_PAGE_CREATE] - (strstr(text, "creating memory pages") != NULL);

    assert_int_equal(counters.live_pages, created - counters.calls[TARN_SIM_PAGE_RELEASE]);
}

/* What was unmapped before is mapped again: memory, counters and events are as they were. */
static void a_sleep_that_fails_changes_nothing(void **state)
{
    (void)state;
    for (uint64_t n = 1; n < 3; n++) {
        struct seen seen = {0};
        const struct tarn_sink sink = {.context = &seen, .receive = see};
        struct dormitory d;

        dormitory_open(&d, "policy:compact");
        const struct tarn_stats before = rig_stats(&d.rig);
        const uint64_t used = sim_counters(d.rig.device).used_bytes;

        assert_int_equal(tarn_allocator_add_sink(d.rig.allocator, &sink, NULL), TARN_OK);
        tarn_sim_fail_nth(d.rig.device, TARN_SIM_UNMAP, n, TARN_ERR_DEVICE);
        expect_failure(&d, tarn_allocator_sleep(d.rig.allocator, pool, NULL, &d.rig.error),
                       TARN_ERR_DEVICE, "unmapping memory");
        assert_false(tarn_allocator_is_asleep(d.rig.allocator, pool));
        assert_int_equal(sim_counters(d.rig.device).used_bytes, used);
        assert_int_equal(seen.mapped, seen.unmapped);
        assert_int_equal(rig_stats(&d.rig).num_device_free, before.num_device_free);
        assert_int_equal(rig_stats(&d.rig).num_device_alloc, before.num_device_alloc);
        assert_int_equal(tarn_allocator_remove_sink(d.rig.allocator, &seen, NULL), TARN_OK);
        dormitory_check(&d);
        dormitory_close(&d);
    }
}

/* Each step of saving says what failed, the first failure of two, and leaves the pool awake. */
static void a_sleep_says_what_failed(void **state)
{
    static const struct {
        enum tarn_sim_call call;
        enum tarn_status status;
        enum tarn_status waiting; /* fails as well */
        const char *text;
    } cases[] = {
        {TARN_SIM_HOST_ALLOC, TARN_ERR_DEVICE, TARN_OK, "allocating pinned memory for contents"},
        {TARN_SIM_STREAM_CREATE, TARN_ERR_DEVICE, TARN_OK, "creating a stream"},
        {TARN_SIM_COPY, TARN_ERR_DEVICE, TARN_OK, "copying contents"},
        {TARN_SIM_COPY, TARN_ERR_DEVICE, TARN_ERR_LIMIT, "copying contents"},
        {TARN_SIM_STREAM_WAIT, TARN_ERR_LIMIT, TARN_OK, "waiting for a copy"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dormitory d;

        dormitory_open(&d, "policy:compact");
        if (cases[i].waiting) {
            tarn_sim_fail_nth(d.rig.device, TARN_SIM_STREAM_WAIT, 1, cases[i].waiting);
        }
        tarn_sim_fail_nth(d.rig.device, cases[i].call, 1, cases[i].status);
        expect_failure(&d, tarn_allocator_sleep(d.rig.allocator, pool, NULL, &d.rig.error),
                       cases[i].status, cases[i].text);
        assert_false(tarn_allocator_is_asleep(d.rig.allocator, pool));
        assert_int_equal(sim_counters(d.rig.device).live_host, 0);
        dormitory_check(&d);
        dormitory_close(&d);
    }
}

/* Likewise a wake; the pool stays asleep without any memory. */
static void a_wake_says_what_failed(void **state)
{
    static const struct {
        enum tarn_sim_call call;
        uint64_t n;
        const char *text;
    } cases[] = {
        {TARN_SIM_PAGE_CREATE, 1, "creating memory pages"},
        {TARN_SIM_PAGE_CREATE, 3, "creating memory pages"},
        {TARN_SIM_MAP, 1, "mapping memory"},
        {TARN_SIM_MAP, 3, "mapping memory"},
        {TARN_SIM_STREAM_CREATE, 1, "creating a stream"},
        {TARN_SIM_COPY, 1, "copying contents"},
        {TARN_SIM_STREAM_WAIT, 1, "waiting for a copy"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dormitory d;

        dormitory_open(&d, "policy:compact");
        sleep_well(&d.rig, NULL);
        const uint64_t used = sim_counters(d.rig.device).used_bytes;

        tarn_sim_fail_nth(d.rig.device, cases[i].call, cases[i].n, TARN_ERR_DEVICE);
        expect_failure(&d, tarn_allocator_wake(d.rig.allocator, pool, &d.rig.error),
                       TARN_ERR_DEVICE, cases[i].text);
        assert_true(tarn_allocator_is_asleep(d.rig.allocator, pool));
        assert_int_equal(sim_counters(d.rig.device).used_bytes, used);
        wake_up(&d.rig);
        dormitory_check(&d);
        dormitory_close(&d);
    }
}

/* Contents cannot be copied back, and of what was mapped for them a part cannot be unmapped: the
 * rest is away again. */
static void a_wake_that_fails_keeps_no_more_than_it_must(void **state)
{
    struct dormitory d;

    (void)state;
    dormitory_open(&d, "policy:compact");
    sleep_well(&d.rig, NULL);
    const uint64_t away = sleep_stats(&d.rig).bytes;

    tarn_sim_fail_nth(d.rig.device, TARN_SIM_COPY, 1, TARN_ERR_DEVICE);
    tarn_sim_fail_nth(d.rig.device, TARN_SIM_UNMAP, 2, TARN_ERR_DEVICE);
    expect_failure(&d, tarn_allocator_wake(d.rig.allocator, pool, &d.rig.error), TARN_ERR_DEVICE,
                   "copying contents");
    assert_true(sleep_stats(&d.rig).bytes > 0 && sleep_stats(&d.rig).bytes < away);
    wake_up(&d.rig);
    dormitory_check(&d);
    dormitory_close(&d);
}

/* Every allocation of host memory that a sleep makes is one that it needs. */
static void a_sleep_without_host_memory_says_so(void **state)
{
    uint64_t calls = 1;

    (void)state;
    for (uint64_t n = 0; n <= calls; n++) {
        struct dormitory d;

        dormitory_open(&d, "policy:compact");
        const uint64_t before = tarn_host_get_usage().alloc_calls;

        if (n == 0) {
            sleep_well(&d.rig, NULL);
            calls = tarn_host_get_usage().alloc_calls - before;
            wake_up(&d.rig);
        } else {
            tarn_host_fail_nth(n);
            const enum tarn_status st =
                tarn_allocator_sleep(d.rig.allocator, pool, NULL, &d.rig.error);

            tarn_host_fail_nth(0);
            assert_int_equal(st, TARN_ERR_HOST_MEMORY);
            assert_false(tarn_allocator_is_asleep(d.rig.allocator, pool));
        }
        dormitory_check(&d);
        dormitory_close(&d);
    }
}

/* The part that could not be unmapped is not gone, even if the one after it could: the pool is
 * awake. */
static void a_failure_is_not_forgotten_over_what_follows(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct dormitory d;

        dormitory_open(&d, settings[i]);
        const uint64_t used = sim_counters(d.rig.device).used_bytes;

        tarn_sim_fail_nth(d.rig.device, TARN_SIM_UNMAP, 1, TARN_ERR_DEVICE);
        assert_int_equal(tarn_allocator_sleep(d.rig.allocator, pool, NULL, &d.rig.error),
                         TARN_ERR_DEVICE);
        rig_check(&d.rig);
        assert_false(tarn_allocator_is_asleep(d.rig.allocator, pool));
        assert_int_equal(sim_counters(d.rig.device).used_bytes, used);
        dormitory_check(&d);
        dormitory_close(&d);
    }
}

static void two_failures_leave_it_asleep(void **state)
{
    struct seen seen = {0};
    const struct tarn_sink sink = {.context = &seen, .receive = see};
    struct dormitory d;

    (void)state;
    dormitory_open(&d, "policy:compact");
    assert_int_equal(tarn_allocator_add_sink(d.rig.allocator, &sink, NULL), TARN_OK);
    fall_half_asleep(&d);
    rig_check(&d.rig);
    assert_true(tarn_allocator_is_asleep(d.rig.allocator, pool));
    assert_true(sleep_stats(&d.rig).bytes > 0);
    assert_int_equal(seen.mapped, 0); /* all of it, when it wakes */
    wake_up(&d.rig);
    assert_int_equal(seen.mapped, seen.unmapped);
    assert_int_equal(tarn_allocator_remove_sink(d.rig.allocator, &seen, NULL), TARN_OK);
    dormitory_check(&d);
    dormitory_close(&d);
}

/* A wake fails, and the device refuses to unmap what it had mapped. */
static void two_failures_of_a_wake_are_mended_by_the_next(void **state)
{
    static const struct {
        enum tarn_sim_call call;
        uint64_t n;
    } firsts[] = {{TARN_SIM_MAP, 3}, {TARN_SIM_COPY, 1}};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct dormitory d;

        dormitory_open(&d, "policy:compact");
        sleep_well(&d.rig, NULL);
        tarn_sim_fail_nth(d.rig.device, firsts[i].call, firsts[i].n, TARN_ERR_DEVICE);
        tarn_sim_fail_nth(d.rig.device, TARN_SIM_UNMAP, 1, TARN_ERR_DEVICE);
        const enum tarn_status st = tarn_allocator_wake(d.rig.allocator, pool, &d.rig.error);

        assert_int_equal(st, TARN_ERR_DEVICE);
        rig_check(&d.rig);
        assert_true(tarn_allocator_is_asleep(d.rig.allocator, pool));
        tarn_sim_fail_nth(d.rig.device, TARN_SIM_UNMAP, 0, TARN_OK);
        wake_up(&d.rig);
        dormitory_check(&d);
        dormitory_close(&d);
    }
}

/* What is free in the part that stayed does not go with the rest, and is there when the pool
 * wakes. */
static void a_part_that_stayed_is_not_forgotten(void **state)
{
    struct dormitory d;

    (void)state;
    dormitory_open(&d, "policy:compact");
    fall_half_asleep(&d);
    const uint64_t away = sleep_stats(&d.rig).bytes;
    const int64_t reserved = rig_now(&d.rig, TARN_STAT_RESERVED_BYTES);

    assert_true(away > 0);
    for (int k = 0; k < BLOCKS + 1; k++) {
        assert_int_equal(tarn_allocator_release_pool(d.rig.allocator, pool, NULL), TARN_OK);
    }
    for (int i = 1; i < BLOCKS; i++) {
        if (sizes[i] > MIB) { /* of the large pool, the second to go */
            rig_free(&d.rig, d.ptrs[i]);
        }
    }
    rig_empty_cache(&d.rig);
    rig_check(&d.rig);
    assert_int_equal(sleep_stats(&d.rig).bytes, away);
    assert_int_equal(rig_now(&d.rig, TARN_STAT_RESERVED_BYTES), reserved);
    wake_up(&d.rig);
    assert_true(holds(&d.rig, d.ptrs[0], sizes[0], 1));
    assert_true(holds(&d.rig, d.ptrs[2], sizes[2], 3));
    rig_free(&d.rig, d.ptrs[0]);
    rig_free(&d.rig, d.ptrs[2]);
    rig_free(&d.rig, d.outside);
    rig_close(&d.rig);
}

/* A pool wakes in more pieces than it fell asleep in: what was freed between them is forgotten. The
 * list of pieces needs host memory. */
static void a_pool_wakes_in_pieces(void **state)
{
    enum {
        COUNT = 60
    };
    enum tarn_status st = TARN_ERR_HOST_MEMORY;
    tarn_ptr ptrs[COUNT];
    unsigned failures = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "policy:compact");
    for (int i = 0; i < COUNT; i++) {
        ptrs[i] = alloc_in(&rig, pool, 2 * MIB);
    }
    sleep_well(&rig, &discard);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(tarn_allocator_release_pool(rig.allocator, pool, NULL), TARN_OK);
    }
    for (int i = 1; i < COUNT; i += 2) {
        rig_free(&rig, ptrs[i]);
    }
    for (uint64_t n = 1; st != TARN_OK; n++) { /* so does what is unmapped between them */
        tarn_host_fail_nth(n);
        st = tarn_allocator_empty_cache(rig.allocator, &rig.error);
        tarn_host_fail_nth(0);
        assert_true(st == TARN_OK || st == TARN_ERR_HOST_MEMORY);
        rig_check(&rig);
        failures += st != TARN_OK;
    }
    assert_true(failures > 0);
    assert_int_equal(sleep_stats(&rig).bytes, COUNT * MIB);
    st = TARN_ERR_HOST_MEMORY;
    failures = 0;
    for (uint64_t n = 1; st != TARN_OK; n++) {
        tarn_host_fail_nth(n);
        st = tarn_allocator_wake(rig.allocator, pool, &rig.error);
        tarn_host_fail_nth(0);
        assert_true(st == TARN_OK || st == TARN_ERR_HOST_MEMORY);
        assert_int_equal(tarn_allocator_is_asleep(rig.allocator, pool), st != TARN_OK);
        rig_check(&rig);
        failures += st != TARN_OK;
    }
    assert_true(failures > 0);
    for (int i = 0; i < COUNT; i += 2) {
        rig_free(&rig, ptrs[i]);
    }
    rig_close(&rig);
}

/* Small blocks until the next one needs a node that the host must provide. */
static void use_up_nodes(struct rig *rig)
{
    const struct tn_heap *heap = &rig_engine(rig->allocator)->heap;

    while (heap->slab.partial || heap->slab.spare || heap->shard.spare_count > 0) {
        (void)rig_alloc(rig, 512, 0);
    }
}

/* A block is divided into what is forgotten and what is not: that takes nodes. */
static void forgetting_needs_nodes(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "policy:compact");
    (void)alloc_in(&rig, pool, 30 * MIB);
    const tarn_ptr ptr = alloc_in(&rig, pool, 30 * MIB);

    (void)alloc_in(&rig, pool, 30 * MIB);
    sleep_well(&rig, &discard);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(tarn_allocator_release_pool(rig.allocator, pool, NULL), TARN_OK);
    }
    use_up_nodes(&rig);
    rig_free(&rig, ptr);
    const uint64_t away = sleep_stats(&rig).bytes;

    tarn_host_fail_nth(1);
    assert_int_equal(tarn_allocator_empty_cache(rig.allocator, &rig.error), TARN_ERR_HOST_MEMORY);
    tarn_host_fail_nth(0);
    rig_check(&rig);
    assert_int_equal(sleep_stats(&rig).bytes, away);
    rig_empty_cache(&rig);
    assert_int_equal(sleep_stats(&rig).bytes, away - 30 * MIB);
    wake_up(&rig);
    rig_close(&rig);
}

static void a_page_that_is_not_released_is_lost(void **state)
{
    const struct failure failure = {
        .call = TARN_SIM_PAGE_RELEASE, .n = 2, .status = TARN_ERR_DEVICE};
    struct dormitory d;

    (void)state;
    assert_true(loses_a_page(&failure));
    dormitory_open(&d, "policy:compact");
    failure_plan(&d, &failure, true);
    sleep_well(&d.rig, NULL);
    wake_up(&d.rig);
    dormitory_check(&d);
    tarn_allocator_destroy(d.rig.allocator);
    assert_int_equal(sim_counters(d.rig.device).live_pages, 1);
    tarn_device_close(d.rig.device);
}

/* ---- threads ---- */

struct worker {
    struct rig *rig;
    _Atomic bool stop;
};

static void *work(void *context)
{
    struct worker *worker = context;

    while (!atomic_load(&worker->stop)) {
        tarn_ptr ptr = 0;

        if (tarn_allocator_alloc(worker->rig->allocator, 3 * MIB, 5, &ptr, NULL) != TARN_OK ||
            tarn_allocator_free(worker->rig->allocator, ptr, NULL) != TARN_OK) {
            return worker;
        }
        if (tarn_allocator_empty_cache(worker->rig->allocator, NULL) != TARN_OK) {
            return worker;
        }
    }
    return NULL;
}

/* ---- while it moves ---- */

/* The allocator's lock is not held while contents are copied. So another call may come then, here
 * out of the first copy itself. */
static struct {
    const struct tn_device_ops *ops;
    struct tn_device_ops hooked;
    struct dormitory *dormitory;
    void (*meanwhile)(struct dormitory *d);
    int copies;
} moving;

static enum tarn_status copy_and_more(struct tarn_device *device, const struct tn_copy *copy,
                                      tarn_stream stream)
{
    device->ops = moving.ops; /* by which it is known */
    moving.copies++;
    moving.meanwhile(moving.dormitory);
    return device->ops->copy(device, copy, stream);
}

static void moving_begin(struct dormitory *d, void (*meanwhile)(struct dormitory *d))
{
    moving.ops = d->rig.device->ops;
    moving.hooked = *moving.ops;
    moving.hooked.copy = copy_and_more;
    moving.dormitory = d;
    moving.meanwhile = meanwhile;
    moving.copies = 0;
    d->rig.device->ops = &moving.hooked;
}

static void moving_end(const struct dormitory *d)
{
    assert_int_equal(moving.copies, 1);
    assert_ptr_equal(d->rig.device->ops, moving.ops);
}

static void refuse_meanwhile(struct dormitory *d)
{
    struct rig *rig = &d->rig;
    const struct rig_totals totals = rig_totals(rig);
    uint64_t largest = 0;

    expect_sleep(rig, pool, TARN_ERR_STATE, "is about to sleep or wake");
    assert_int_equal(tarn_allocator_wake(rig->allocator, pool, &rig->error), TARN_ERR_STATE);
    assert_non_null(strstr(rig->error.text, "is about to sleep or wake"));
    assert_int_equal(try_alloc_in(rig, pool, 512), TARN_ERR_STATE);
    assert_int_equal(totals.allocated, BLOCKS + 1); /* its blocks are shown */
    assert_int_equal(tarn_allocator_cache_info(rig->allocator, &largest, &rig->error), TARN_OK);
    rig_free(rig, rig_alloc(rig, 512, 0));
    rig_empty_cache(rig);
    rig_check(rig);
}

static void calls_of_a_moving_pool_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct dormitory d;

        dormitory_open(&d, settings[i]);
        moving_begin(&d, refuse_meanwhile);
        sleep_well(&d.rig, NULL);
        moving_end(&d);
        moving_begin(&d, refuse_meanwhile);
        wake_up(&d.rig);
        moving_end(&d);
        dormitory_check(&d);
        dormitory_close(&d);
    }
}

static void capture_meanwhile(struct dormitory *d)
{
    assert_int_equal(
        tarn_allocator_begin_pool(d->rig.allocator, other_pool, any_stream, NULL, NULL), TARN_OK);
}

/* A capture that began while contents were copied keeps the pool awake. */
static void a_capture_stops_what_is_about_to_sleep(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct dormitory d;

        dormitory_open(&d, settings[i]);
        moving_begin(&d, capture_meanwhile);
        expect_sleep(&d.rig, pool, TARN_ERR_STATE, "a graph is being captured");
        moving_end(&d);
        assert_false(tarn_allocator_is_asleep(d.rig.allocator, pool));
        assert_int_equal(tarn_allocator_end_pool(d.rig.allocator, other_pool, NULL), TARN_OK);
        dormitory_check(&d);
        sleep_well(&d.rig, NULL);
        wake_up(&d.rig);
        dormitory_check(&d);
        dormitory_close(&d);
    }
}

/* The last block and the last use go. */
static void release_meanwhile(struct dormitory *d)
{
    for (int k = 0; k < BLOCKS + 1; k++) {
        assert_int_equal(tarn_allocator_release_pool(d->rig.allocator, pool, NULL), TARN_OK);
    }
    for (int k = 0; k < BLOCKS; k++) {
        rig_free(&d->rig, d->ptrs[k]);
    }
    rig_empty_cache(&d->rig);
    rig_check(&d->rig);
}

static void a_pool_may_be_released_while_it_moves(void **state)
{
    (void)state;
    for (int waking = 0; waking < 4; waking++) {
        struct dormitory d;

        dormitory_open(&d, settings[waking / 2]);
        if (waking % 2) {
            sleep_well(&d.rig, NULL);
        }
        moving_begin(&d, release_meanwhile);
        if (waking % 2) {
            wake_up(&d.rig);
        } else {
            sleep_well(&d.rig, NULL);
        }
        moving_end(&d);
        rig_empty_cache(&d.rig);
        rig_check(&d.rig);
        assert_int_equal(sleep_stats(&d.rig).pools + sleep_stats(&d.rig).host_bytes, 0);
        rig_free(&d.rig, d.outside);
        rig_close(&d.rig);
    }
}

static void other_threads_go_on(void **state)
{
    struct dormitory d;
    struct worker worker = {.rig = &d.rig};
    pthread_t thread;
    void *failed = NULL;

    (void)state;
    dormitory_open(&d, "policy:compact");
    assert_int_equal(pthread_create(&thread, NULL, work, &worker), 0);
    for (int i = 0; i < 6; i++) {
        sleep_well(&d.rig, NULL);
        wake_up(&d.rig);
    }
    atomic_store(&worker.stop, true);
    assert_int_equal(pthread_join(thread, &failed), 0);
    assert_null(failed);
    dormitory_check(&d);
    dormitory_close(&d);
}

/* The default pools have the id (0, 0), and no other id has both numbers. */
static void one_number_of_an_id_may_be_zero(void **state)
{
    static const struct tarn_pool_id half = {5, 0};
    static const struct tarn_pool_id none = {0, 0};
    static const struct tarn_pool_id unknown = {6, 0};
    struct rig rig;

    (void)state;
    open_backed(&rig, "policy:compact");
    const tarn_ptr ptr = alloc_in(&rig, half, 5 * MIB);

    assert_int_equal(tarn_allocator_sleep(rig.allocator, half, NULL, &rig.error), TARN_OK);
    assert_true(tarn_allocator_is_asleep(rig.allocator, half));
    assert_int_equal(tarn_allocator_wake(rig.allocator, half, &rig.error), TARN_OK);
    assert_int_equal(tarn_allocator_sleep(rig.allocator, unknown, NULL, &rig.error),
                     TARN_ERR_NOT_FOUND);
    assert_int_equal(tarn_allocator_sleep(rig.allocator, none, NULL, &rig.error),
                     TARN_ERR_NOT_SUPPORTED);
    rig_free(&rig, ptr);
    rig_close(&rig);
}

static uint64_t clock_ns(void)
{
    struct timespec now;

    assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &now), 0);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Sleeps and wakes that succeed are counted, with a time that they can have taken. */
static void sleeps_and_wakes_are_measured(void **state)
{
    struct dormitory d;
    const uint64_t begin_ns = clock_ns();

    (void)state;
    dormitory_open(&d, "policy:compact");
    const struct tarn_sleep_stats first = sleep_stats(&d.rig);

    assert_int_equal(first.bytes + first.host_bytes + first.pools, 0); /* never asleep */
    assert_int_equal(tarn_allocator_wake(d.rig.allocator, pool, &d.rig.error), TARN_ERR_STATE);
    assert_int_equal(tarn_allocator_sleep(d.rig.allocator, other_pool, NULL, &d.rig.error),
                     TARN_ERR_NOT_FOUND);
    const struct tarn_sleep_stats failed = sleep_stats(&d.rig);

    assert_int_equal(failed.sleeps + failed.wakes, 0);
    assert_int_equal(failed.sleep_ns + failed.wake_ns, 0);
    sleep_well(&d.rig, NULL);
    wake_up(&d.rig);
    const struct tarn_sleep_stats stats = sleep_stats(&d.rig);

    assert_int_equal(stats.sleeps, 1);
    assert_int_equal(stats.wakes, 1);
    assert_true(stats.sleep_ns > 0 && stats.wake_ns > 0);
    assert_true(stats.sleep_ns + stats.wake_ns <= clock_ns() - begin_ns);
    dormitory_close(&d);
}

/* Waking takes the cache of others where there is no room. The pool can go afterwards, also if it
 * was released while it slept. */
static void a_pool_goes_after_a_wake_that_made_room(void **state)
{
    (void)state;
    for (int early = 0; early < 2; early++) {
        struct rig rig;

        rig_open_with(&rig, (struct tarn_sim_options){.capacity = 64 * MIB, .backed = true},
                      "policy:compact");
        const tarn_ptr ptr = alloc_in(&rig, pool, 40 * MIB);

        sleep_well(&rig, &discard);
        rig_free(&rig, rig_alloc(&rig, 50 * MIB, 0));
        if (early) {
            assert_int_equal(tarn_allocator_release_pool(rig.allocator, pool, NULL), TARN_OK);
        }
        wake_up(&rig);
        assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 64 * MIB);
        if (!early) {
            assert_int_equal(tarn_allocator_release_pool(rig.allocator, pool, NULL), TARN_OK);
        }
        rig_free(&rig, ptr);
        rig_empty_cache(&rig);
        assert_null(rig_engine(rig.allocator)->heap.private_pools.first);
        rig_close(&rig);
    }
}

/* Whichever allocation of the host fails: a pool that fell asleep has given all of its memory
 * back. */
static void without_host_memory_a_pool_sleeps_wholly_or_not(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        unsigned failures = 0;
        bool failed = true;

        for (uint64_t n = 1; failed; n++) {
            struct rig rig;

            rig_open(&rig, GIB, settings[i]);
            const tarn_ptr small = alloc_in(&rig, pool, 512);
            const tarn_ptr large = alloc_in(&rig, pool, 30 * MIB);
            const uint64_t used = sim_counters(rig.device).used_bytes;
            const uint64_t before = tarn_host_get_usage().alloc_calls;

            tarn_host_fail_nth(n);
            const enum tarn_status st =
                tarn_allocator_sleep(rig.allocator, pool, &discard, &rig.error);

            tarn_host_fail_nth(0);
            failed = tarn_host_get_usage().alloc_calls - before >= n;
            assert_true(st == TARN_OK || (failed && st == TARN_ERR_HOST_MEMORY));
            failures += st != TARN_OK;
            rig_check(&rig);
            assert_int_equal(sleep_stats(&rig).bytes, st ? 0 : used);
            assert_int_equal(sim_counters(rig.device).used_bytes, st ? used : 0);
            if (st == TARN_OK) {
                wake_up(&rig);
            }
            rig_free(&rig, small);
            rig_free(&rig, large);
            rig_close(&rig);
        }
        assert_true(failures > 0);
    }
}

/* A sleep that found no host memory half way leaves nothing to the next one, which saves as much as
 * it would have. */
static void a_failed_sleep_saves_nothing(void **state)
{
    enum {
        COUNT = 6
    };
    bool tried_again = false;

    (void)state;
    for (uint64_t n = 1; !tried_again; n++) {
        tarn_ptr ptrs[COUNT];
        struct rig rig;

        open_backed(&rig, "policy:compact");
        for (int i = 0; i < COUNT; i++) {
            ptrs[i] = alloc_in(&rig, pool, 2 * MIB);
        }
        for (int i = 1; i < COUNT; i += 2) {
            rig_free(&rig, ptrs[i]);
        }
        tarn_host_fail_nth(n);
        const enum tarn_status st = tarn_allocator_sleep(rig.allocator, pool, NULL, &rig.error);

        tarn_host_fail_nth(0);
        assert_int_equal(st, TARN_ERR_HOST_MEMORY);
        const struct tn_asleep *asleep =
            rig_engine(rig.allocator)->heap.private_pools.first->asleep;

        if (asleep && asleep->saved.bytes > 0) { /* of the pieces that it knew */
            sleep_well(&rig, NULL);
            assert_int_equal(sleep_stats(&rig).host_bytes, COUNT * MIB);
            tried_again = true;
        }
        for (int i = 0; i < COUNT; i += 2) {
            rig_free(&rig, ptrs[i]);
        }
        rig_close(&rig);
    }
}

/* A block that was freed while its pool slept has no memory to lend. */
static void what_is_freed_asleep_is_not_lent(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct rig rig;

        rig_open(&rig, 100 * MIB, settings[i]);
        const tarn_ptr kept = alloc_in(&rig, pool, 20 * MIB);
        const tarn_ptr freed = alloc_in(&rig, pool, 60 * MIB);

        assert_int_equal(tarn_allocator_set_pool_use_on_oom(rig.allocator, pool, true), TARN_OK);
        sleep_well(&rig, &discard);
        rig_free(&rig, freed);
        const tarn_ptr ptr = rig_alloc(&rig, 80 * MIB, 0);

        rig_alloc_oom(&rig, 60 * MIB, 0);
        rig_check(&rig);
        rig_free(&rig, ptr);
        wake_up(&rig);
        rig_free(&rig, kept);
        rig_close(&rig);
    }
}

int main(void)
{
    const struct CMUnitTest by_one_thread[] = {
        cmocka_unit_test(memory_goes_and_comes_back),
        cmocka_unit_test(contents_can_be_discarded),
        cmocka_unit_test(only_what_is_used_is_saved),
        cmocka_unit_test(host_memory_can_stay),
        cmocka_unit_test(a_pool_without_memory_sleeps),
        cmocka_unit_test(more_than_one_chunk_is_kept),
        cmocka_unit_test(what_was_free_is_forgotten),
        cmocka_unit_test(what_is_left_keeps_its_contents),
        cmocka_unit_test(what_is_left_between_holes_keeps_its_contents),
        cmocka_unit_test(what_was_saved_once_is_not_forgotten_later),
        cmocka_unit_test(nothing_is_allocated_from_a_sleeping_pool),
        cmocka_unit_test(frees_that_wait_for_streams_go_on),
        cmocka_unit_test(pages_that_came_from_elsewhere_lose_their_old_address),
        cmocka_unit_test(a_sleeping_pool_lends_nothing),
        cmocka_unit_test(a_checkpoint_is_not_restored),
        cmocka_unit_test(what_cannot_sleep_is_refused),
        cmocka_unit_test(plain_segments_are_refused),
        cmocka_unit_test(shared_memory_is_refused),
        cmocka_unit_test(one_shared_segment_is_enough),
        cmocka_unit_test(one_shared_page_is_enough),
        cmocka_unit_test(a_sleeping_pool_has_no_largest_block),
        cmocka_unit_test(a_page_may_be_shared_as_descriptor_zero),
        cmocka_unit_test(a_forked_child_is_refused),
        cmocka_unit_test(a_pool_without_room_stays_asleep),
        cmocka_unit_test(a_failure_counts_no_memory_that_sleeps),
        cmocka_unit_test(a_pool_wakes_where_there_is_room_enough),
        cmocka_unit_test(a_pool_may_be_released_asleep),
        cmocka_unit_test(empty_ranges_go_with_their_pool),
        cmocka_unit_test(a_sleeping_pool_has_nothing_to_give),
        cmocka_unit_test(an_allocator_may_end_while_a_pool_sleeps),
        cmocka_unit_test(events_tell_what_goes),
        cmocka_unit_test(events_tell_where_it_goes),
        cmocka_unit_test(events_have_the_stack_of_the_call),
        cmocka_unit_test(an_old_address_may_stay),
        cmocka_unit_test(the_device_may_be_full_below_the_limit),
        cmocka_unit_test(every_device_call_may_fail),
        cmocka_unit_test(host_memory_may_fail),
        cmocka_unit_test(the_device_may_be_full),
        cmocka_unit_test(a_sleep_that_fails_changes_nothing),
        cmocka_unit_test(a_sleep_says_what_failed),
        cmocka_unit_test(a_sleep_without_host_memory_says_so),
        cmocka_unit_test(a_wake_says_what_failed),
        cmocka_unit_test(a_wake_that_fails_keeps_no_more_than_it_must),
        cmocka_unit_test(a_failure_is_not_forgotten_over_what_follows),
        cmocka_unit_test(two_failures_leave_it_asleep),
        cmocka_unit_test(two_failures_of_a_wake_are_mended_by_the_next),
        cmocka_unit_test(a_part_that_stayed_is_not_forgotten),
        cmocka_unit_test(a_pool_wakes_in_pieces),
        cmocka_unit_test(forgetting_needs_nodes),
        cmocka_unit_test(a_page_that_is_not_released_is_lost),
        cmocka_unit_test(one_number_of_an_id_may_be_zero),
        cmocka_unit_test(sleeps_and_wakes_are_measured),
        cmocka_unit_test(a_pool_goes_after_a_wake_that_made_room),
        cmocka_unit_test(without_host_memory_a_pool_sleeps_wholly_or_not),
        cmocka_unit_test(a_failed_sleep_saves_nothing),
        cmocka_unit_test(what_is_freed_asleep_is_not_lent),
    };
    const struct CMUnitTest beside_others[] = {
        cmocka_unit_test(other_threads_go_on),
        cmocka_unit_test(calls_of_a_moving_pool_are_refused),
        cmocka_unit_test(a_capture_stops_what_is_about_to_sleep),
        cmocka_unit_test(a_pool_may_be_released_while_it_moves),
    };

    return (test_one_thread() ? cmocka_run_group_tests(by_one_thread, NULL, NULL) : 0) +
           cmocka_run_group_tests(beside_others, NULL, NULL);
}
