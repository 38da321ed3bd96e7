/* SPDX-License-Identifier: MIT */
/* The compact policy: where requests go, and what stays behind when something fails. */
#include "support/test.h"

#include <stdlib.h>

#include "support/compact_rig.h"
#include "support/scarce.h"
#include "tarn/pool.h"
#include "tarn/pressure.h"
#include "tarn/request.h"

/* ---- places ---- */

/* A mapped block in the middle of a hole serves the request if the stream has too few free pages
 * for the beginning: here one of two, because a live block has part of the other. */
static void a_request_stays_in_the_middle_of_a_hole_when_pages_are_few(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    (void)rig_alloc(&rig, 2 * MIB, 0);
    const tarn_ptr first = rig_alloc(&rig, 4 * MIB, 0);
    const tarn_ptr second = rig_alloc(&rig, 3 * MIB, 0);

    (void)rig_alloc(&rig, 3 * MIB, 0);
    rig_free(&rig, first);
    (void)rig_alloc(&rig, 30 * MIB, 0);
    assert_int_equal(moved(&rig), 2);
    (void)rig_alloc(&rig, 20 * MIB, 0); /* the old addresses are unmapped */
    rig_free(&rig, second);
    assert_int_equal(rig_alloc(&rig, 3 * MIB, 0), second);
    assert_int_equal(moved(&rig), 2);
    rig_close(&rig);
}

/* While more slack is to end all moving, none is done to keep together what lives, unless memory is
 * short: 62 MiB are reserved, and one page more or none is plentiful. */
static void what_settled_stays_in_the_middle_of_a_hole_while_memory_is_plentiful(void **state)
{
    static const struct {
        uint64_t capacity;
        bool is_short;
    } cases[] = {{GIB, false}, {128 * MIB, false}, {126 * MIB, true}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rig rig;

        rig_open(&rig, cases[i].capacity, COMPACT);
        const tarn_ptr hole = leave_half_a_hole(&rig);

        assert_int_equal(reserved(&rig), 62 * MIB);
        rig_engine(rig.allocator)->compact.slack.grown_to = 1; /* much had moved before */
        assert_int_equal(rig_alloc(&rig, 7 * MIB, 0), hole + (cases[i].is_short ? 0 : 8 * MIB));
        rig_close(&rig);
    }
}

/* Of two holes of that size the one that has more pages, on both sides of what it lacks. */
static void the_hole_that_lacks_least_is_found_behind_others(void **state)
{
    static const uint64_t sizes[] = {8, 12, 2, 8, 4, 8, 2};
    tarn_ptr parts[7];
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    for (int i = 0; i < 7; i++) {
        parts[i] = rig_alloc(&rig, sizes[i] * MIB, 0);
    }
    rig_free(&rig, parts[1]);
    rig_free(&rig, parts[4]);
    (void)rig_alloc(&rig, 16 * MIB, 0);
    assert_int_equal(moved(&rig), 8);
    (void)rig_alloc(&rig, 20 * MIB, 0); /* the old addresses are unmapped */
    rig_free(&rig, parts[0]);
    rig_free(&rig, parts[3]);
    rig_free(&rig, parts[5]);
    assert_int_equal(rig_alloc(&rig, 20 * MIB, 0), parts[3]);
    rig_close(&rig);
}

/* Among places that lack as much, the one in the smallest hole: here one that it fills. */
static void a_hole_of_the_right_size_is_filled(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    const tarn_ptr first = rig_alloc(&rig, 2 * MIB, 0);
    const tarn_ptr hole = rig_alloc(&rig, 8 * MIB, 0);

    (void)rig_alloc(&rig, 2 * MIB, 0);
    rig_free(&rig, hole);
    (void)rig_alloc(&rig, 30 * MIB, 0);
    assert_int_equal(moved(&rig), 4);
    (void)rig_alloc(&rig, 20 * MIB, 0); /* the old addresses are unmapped */
    assert_int_equal(rig_alloc(&rig, 8 * MIB, 0), hole);
    assert_true(hole > first);
    rig_close(&rig);
}

/* Where old addresses leave no room in the stream's range, it gets another one. */
static void a_range_full_of_old_addresses_is_followed_by_another(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, 64 * MIB, COMPACT);
    const tarn_ptr first = rig_alloc(&rig, 2 * MIB, 1);
    const tarn_ptr hole = rig_alloc(&rig, 62 * MIB, 1);

    assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
    rig_free(&rig, hole);
    rig_free(&rig, rig_alloc(&rig, 62 * MIB, 2));
    assert_int_equal(moved(&rig), 31);
    const tarn_ptr ptr = rig_alloc(&rig, 40 * MIB, 1);

    assert_true(ptr < first || ptr >= first + 72 * MIB);
    assert_int_equal(reserved(&rig), 64 * MIB);
    rig_close(&rig);
}

/* Old addresses of other streams say nothing about a place: it is the beginning of the hole. */
static void old_addresses_of_other_streams_suggest_no_place(void **state)
{
    static const uint64_t sizes[] = {2, 20, 10, 2, 10, 2};
    tarn_ptr parts[6];
    struct rig rig;

    (void)state;
    rig_open(&rig, 4 * GIB, COMPACT);
    for (int i = 0; i < 6; i++) {
        parts[i] = rig_alloc(&rig, sizes[i] * MIB, 1);
    }
    rig_free(&rig, parts[1]);
    (void)rig_alloc(&rig, 30 * MIB, 1);
    (void)rig_alloc(&rig, 200 * MIB, 1); /* the old addresses are unmapped */
    assert_int_equal(moved(&rig), 10);
    assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
    assert_int_equal(tarn_sim_block_stream(rig.device, 2), TARN_OK);
    rig_free(&rig, parts[4]);
    (void)rig_alloc(&rig, 24 * MIB, 1);
    assert_int_equal(moved(&rig), 15);
    const tarn_ptr other = rig_alloc(&rig, 16 * MIB, 2);

    (void)rig_alloc(&rig, 2 * MIB, 2);
    rig_free(&rig, other);
    (void)rig_alloc(&rig, 30 * MIB, 2);
    assert_true(moved(&rig) > 15); /* up to the eighth page of stream 2 */
    rig_free(&rig, parts[2]);
    tarn_sim_advance_ns(rig.device, 1000000000);
    assert_int_equal(rig_alloc(&rig, 16 * MIB, 1), parts[1]);
    rig_close(&rig);
}

/* A place that begins with a mapped block behind old addresses, and is not filled. */
static void a_place_in_the_middle_that_was_not_filled_is_found_again(void **state)
{
    tarn_ptr parts[5];
    tarn_ptr ptr = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    for (int i = 0; i < 5; i++) {
        parts[i] = rig_alloc(&rig, 8 * MIB, 0);
    }
    rig_free(&rig, parts[3]);
    (void)rig_alloc(&rig, 30 * MIB, 0);
    (void)rig_alloc(&rig, 20 * MIB, 0); /* the old addresses are unmapped */
    assert_int_equal(tarn_sim_block_stream(rig.device, 0), TARN_OK);
    rig_free(&rig, parts[1]);
    (void)rig_alloc(&rig, 30 * MIB, 0);
    assert_int_equal(moved(&rig), 8);
    rig_free(&rig, parts[2]);
    for (int i = 0; i < 2; i++) {
        spend_time(&rig);
        if (i == 0) {
            tarn_sim_fail_nth(rig.device, TARN_SIM_MAP, 1, TARN_ERR_DEVICE);
            assert_int_equal(tarn_allocator_alloc(rig.allocator, 12 * MIB, 0, &ptr, NULL),
                             TARN_ERR_DEVICE);
            rig_check(&rig);
        } else {
            assert_int_equal(rig_alloc(&rig, 12 * MIB, 0), parts[2]);
        }
    }
    rig_close(&rig);
}

/* ---- old addresses that cannot be unmapped ---- */

static uint64_t records(struct rig *rig)
{
    return sim_counters(rig->device).calls[TARN_SIM_EVENT_RECORD];
}

/* Their event is done with all the same: it is used for other work meanwhile, and given up once. */
static void old_addresses_that_were_not_unmapped_need_no_event(void **state)
{
    tarn_ptr ptr = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    const tarn_ptr left = rig_alloc(&rig, 4 * MIB, 1);
    const tarn_ptr left_too = rig_alloc(&rig, 4 * MIB, 4);

    (void)leave_hole(&rig, 1);
    (void)rig_alloc(&rig, 40 * MIB, 1);
    assert_int_equal(moved(&rig), 15);
    tarn_sim_fail_nth(rig.device, TARN_SIM_UNMAP, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_alloc(rig.allocator, 50 * MIB, 1, &ptr, NULL), TARN_ERR_DEVICE);
    assert_int_equal(pages_of(&rig).retired, 15);
    assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
    assert_int_equal(tarn_sim_block_stream(rig.device, 4), TARN_OK);
    rig_free(&rig, left);
    rig_free(&rig, left_too);
    const tarn_ptr other = rig_alloc(&rig, 4 * MIB, 2); /* marks both */

    assert_int_equal(pages_of(&rig).retired, 0);
    rig_free(&rig, other);
    const uint64_t before = reserved(&rig);

    (void)rig_alloc(&rig, 4 * MIB, 3); /* marks stream 2, and takes its pages */
    assert_int_equal(reserved(&rig), before);
    (void)rig_alloc(&rig, 4 * MIB, 3);
    assert_int_equal(reserved(&rig), before + 4 * MIB); /* the others are not done */
    rig_close(&rig);
}

/* ---- marks, waits and turns ---- */

/* A stream is marked once for what it freed, be it a single page. */
static void a_free_page_is_marked_once(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    const tarn_ptr page = rig_alloc(&rig, 2 * MIB, 1);

    (void)rig_alloc(&rig, 2 * MIB, 1);
    assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
    rig_free(&rig, page);
    (void)rig_alloc(&rig, 2 * MIB, 2);
    assert_int_equal(records(&rig), 1);
    (void)rig_alloc(&rig, 2 * MIB, 2);
    assert_int_equal(records(&rig), 1);
    rig_close(&rig);
}

/* Pages that a pool handle used for small requests serve others, too. */
static void pages_of_small_requests_of_a_pool_move(void **state)
{
    struct tarn_pool *pool = NULL;
    tarn_ptr ptr = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    assert_int_equal(tarn_pool_create(rig.allocator, NULL, &pool, &rig.error), TARN_OK);
    assert_int_equal(tarn_pool_alloc(pool, 512, 1, &ptr, &rig.error), TARN_OK);
    rig_free(&rig, ptr);
    (void)rig_alloc(&rig, 2 * MIB, 2);
    assert_int_equal(moved(&rig), 1);
    assert_int_equal(reserved(&rig), 2 * MIB);
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

/* Nobody waits for a stream whose free blocks have no whole page. */
static void a_stream_without_a_whole_page_is_not_waited_for(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, 4 * MIB, COMPACT);
    const tarn_ptr part = rig_alloc(&rig, 2 * MIB - 512, 1);

    (void)rig_alloc(&rig, 2 * MIB + 512, 1);
    assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
    rig_free(&rig, part);
    rig_alloc_oom(&rig, 2 * MIB, 2);
    assert_int_equal(device_waits(&rig), 0);
    assert_int_equal(records(&rig), 0);
    rig_close(&rig);
}

/* Time for pages of other streams is used up: spent by moving all that was created. */
static void use_up_time(struct rig *rig)
{
    rig_engine(rig->allocator)->compact.moving_ns = 1000000000;
}

/* A stream that others asked in vain takes no turns, and its pages move in any case; one that had
 * to give pages takes turns, and they do not. */
static void streams_take_turns_if_they_gave_pages(void **state)
{
    (void)state;
    for (int gives = 0; gives < 2; gives++) {
        struct rig rig;

        rig_open(&rig, GIB, COMPACT);
        assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
        (void)leave_hole(&rig, 1);
        if (gives) {
            rig_limit(&rig, 32.0 / 1024);
        }
        (void)rig_alloc(&rig, 10 * MIB, 2);
        assert_int_equal(moved(&rig), gives ? 5 : 0);
        rig_limit(&rig, 1.0);
        assert_int_equal(tarn_sim_unblock_stream(rig.device, 1), TARN_OK);
        rig_free(&rig, rig_alloc(&rig, 60 * MIB, 1)); /* needs pages */
        const uint64_t before = reserved(&rig);

        use_up_time(&rig);
        (void)rig_alloc(&rig, 60 * MIB, 3);
        assert_int_equal(reserved(&rig), before + (gives ? 60 * MIB : 0));
        rig_close(&rig);
    }
}

/* ---- host memory that is missing ---- */

/* What a request finds: as many free pages as it needs, or more. */
enum scarcity {
    PAGES_OF_THE_STREAM,
    PAGES_OF_A_BLOCK, /* some of them: its front stays */
    PAGES_OF_STREAMS, /* two others, which are done with them */
    PAGES_OF_POOLS,
    PAGES_OF_SMALL_REQUESTS, /* of pools */
    PAGES_TO_WAIT_FOR,
    PAGES_THAT_ARE_KEPT,
    PLACE_BEHIND_OLD_ADDRESSES,
    SCARCITIES
};

struct scarce_request {
    struct tarn_pool *pools[2];
    uint64_t size;
    tarn_stream stream;
};

/* Streams are marked that have free pages, which needs host memory, too. */
static void mark_streams(struct rig *rig)
{
    for (tarn_stream i = 1; i <= 3; i++) {
        assert_int_equal(tarn_sim_block_stream(rig->device, i), TARN_OK);
    }
    (void)rig_alloc(rig, 2 * MIB, 4); /* a new page */
    for (tarn_stream i = 1; i <= 3; i++) {
        assert_int_equal(tarn_sim_unblock_stream(rig->device, i), TARN_OK);
    }
}

static void free_two(struct rig *rig, tarn_stream first, tarn_stream second)
{
    const tarn_ptr a = rig_alloc(rig, 10 * MIB, first);

    (void)rig_alloc(rig, 2 * MIB, first);
    const tarn_ptr b = rig_alloc(rig, 10 * MIB, second);

    (void)rig_alloc(rig, 2 * MIB, second);
    (void)rig_alloc(rig, 60 * MIB, first);
    rig_free(rig, a);
    rig_free(rig, b);
    mark_streams(rig);
}

/* Memory as far as the request needs it. */
static struct scarce_request scarce_request(struct rig *rig, enum scarcity what)
{
    struct scarce_request request = {.size = 20 * MIB, .stream = 1};
    tarn_ptr ptrs[2];

    if (what == PAGES_OF_STREAMS) {
        free_two(rig, 2, 3);
    } else if (what == PAGES_OF_THE_STREAM || what == PAGES_TO_WAIT_FOR) {
        free_two(rig, 1, 1);
    } else if (what == PAGES_OF_A_BLOCK) {
        ptrs[0] = rig_alloc(rig, 10 * MIB, 1);
        (void)rig_alloc(rig, 2 * MIB, 1);
        ptrs[1] = rig_alloc(rig, 10 * MIB, 1);
        rig_free(rig, ptrs[0]);
        rig_free(rig, ptrs[1]);
        request.size = 14 * MIB; /* the second block, and two pages of the first */
    } else if (what == PAGES_OF_POOLS || what == PAGES_OF_SMALL_REQUESTS) {
        const bool is_small = what == PAGES_OF_SMALL_REQUESTS;

        for (int i = 0; i < 2; i++) {
            assert_int_equal(tarn_pool_create(rig->allocator, NULL, &request.pools[i], &rig->error),
                             TARN_OK);
            assert_int_equal(tarn_pool_alloc(request.pools[i], is_small ? 512 : 10 * MIB,
                                             (tarn_stream)i + 1, &ptrs[i], &rig->error),
                             TARN_OK);
        }
        request.size = is_small ? 4 * MIB : 20 * MIB;
        rig_free(rig, ptrs[0]);
        rig_free(rig, ptrs[1]);
        mark_streams(rig);
    } else if (what == PAGES_THAT_ARE_KEPT) {
        keep_pages(rig, 1);
        request.size = 40 * MIB;
    } else {
        ptrs[0] = rig_alloc(rig, 4 * MIB, 1);
        ptrs[1] = rig_alloc(rig, 20 * MIB, 1);
        rig_free(rig, ptrs[1]);
        assert_int_equal(tarn_sim_block_stream(rig->device, 1), TARN_OK);
        rig_limit(rig, 24.0 / 1024);
        rig_free(rig, rig_alloc(rig, 20 * MIB, 2));
        assert_int_equal(moved(rig), 10);
    }
    if (what == PAGES_TO_WAIT_FOR) {
        assert_int_equal(tarn_sim_block_stream(rig->device, 1), TARN_OK);
        rig_limit(rig, (double)reserved(rig) / (double)GIB);
        request.stream = 2;
    }
    return request;
}

/* Host memory that is not to be had from some allocation on. */
struct lack {
    uint64_t calls;
    uint64_t from; /* 0: there is enough */
};

static void *lack_alloc(void *context, size_t size, size_t alignment)
{
    struct lack *lack = context;
    void *memory = NULL;

    lack->calls++;
    if (lack->from > 0 && lack->calls >= lack->from) {
        return NULL;
    }
    return posix_memalign(&memory, alignment > sizeof(void *) ? alignment : sizeof(void *), size)
               ? NULL
               : memory;
}

static void lack_release(void *context, void *memory, size_t size)
{
    (void)context;
    (void)size;
    free(memory);
}

static struct lack lack;

/* With the n-th host allocation failing, or all from that one on; whether there are so many. */
static bool fails_at(enum scarcity what, uint64_t n, bool lasts)
{
    tarn_ptr ptr = 0;
    struct rig rig;

    rig_open(&rig, GIB, COMPACT);
    const struct scarce_request request = scarce_request(&rig, what);
    const uint64_t before = reserved(&rig);
    const uint64_t calls = tarn_host_get_usage().alloc_calls;

    scarce_begin(rig.allocator);
    tarn_host_fail_nth(lasts ? 0 : n);
    lack = (struct lack){.from = lasts ? n : 0};
    const enum tarn_status st =
        tarn_allocator_alloc(rig.allocator, request.size, request.stream, &ptr, &rig.error);
    const bool is_reached = tarn_host_get_usage().alloc_calls - calls >= n;

    tarn_host_fail_nth(0);
    lack.from = 0;
    scarce_end();
    assert_true(st == TARN_OK || st == TARN_ERR_HOST_MEMORY);
    rig_check(&rig);
    assert_int_equal(reserved(&rig), before);
    if (st != TARN_OK) {
        (void)rig_alloc(&rig, request.size, request.stream);
        assert_int_equal(reserved(&rig), before);
    }
    for (int i = 0; i < 2; i++) {
        if (request.pools[i]) {
            tarn_pool_destroy(request.pools[i]);
        }
    }
    rig_close(&rig);
    return is_reached;
}

/* A request that lacks host memory fails, or does without: it takes no new pages in place of free
 * ones, leaves nothing half done, and succeeds the next time. */
static void a_request_without_host_memory_takes_no_new_pages(void **state)
{
    const struct tarn_host_hooks hooks = {.struct_size = sizeof hooks,
                                          .alloc = lack_alloc,
                                          .release = lack_release,
                                          .context = &lack};

    (void)state;
    assert_int_equal(tarn_host_set_hooks(&hooks), TARN_OK);
    for (unsigned i = 0; i < 2 * SCARCITIES; i++) {
        uint64_t n = 1;

        while (fails_at(i / 2, n, i % 2)) {
            n++;
        }
        assert_true(n > 2);
    }
    assert_int_equal(tarn_host_set_hooks(NULL), TARN_OK);
}

/* ---- places that moving makes, and those that only few pages fill ---- */

/* A place at the beginning of a hole is looked for again when pages have moved: behind the old
 * addresses of a block there may be one that lacks less, here 2 of 5 pages. */
static void a_place_behind_pages_that_moved_is_found(void **state)
{
    tarn_ptr parts[4];
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    (void)rig_alloc(&rig, 2 * MIB, 1);
    for (int i = 0; i < 4; i++) {
        static const uint64_t sizes[] = {4 * MIB, 10 * MIB, 4 * MIB, 8 * MIB};

        parts[i] = rig_alloc(&rig, sizes[i], 1);
    }
    (void)rig_alloc(&rig, 2 * MIB, 1);
    rig_free(&rig, parts[2]);
    (void)rig_alloc(&rig, 30 * MIB, 1);
    (void)rig_alloc(&rig, 30 * MIB, 1); /* the old addresses are unmapped */
    assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
    rig_free(&rig, parts[0]);
    (void)rig_alloc(&rig, 30 * MIB, 1);
    assert_int_equal(moved(&rig), 4); /* two addresses are old, in front of the hole's blocks */
    rig_free(&rig, parts[1]);
    rig_free(&rig, parts[3]);
    tarn_sim_advance_ns(rig.device, 1000000000);
    assert_int_equal(rig_alloc(&rig, 10 * MIB, 1), parts[2]);
    assert_int_equal(moved(&rig), 9);
    assert_int_equal(pages_of(&rig).kept, 3);
    rig_check(&rig);
    rig_close(&rig);
}

/* Before a request fails nothing counts but the fewest pages: 2 that another stream has, and 4
 * shared ones where they are, in the middle of a hole. */
static void the_fewest_pages_count_when_memory_is_short(void **state)
{
    tarn_ptr parts[2];
    struct rig rig;

    (void)state;
    rig_open_with(&rig, (struct tarn_sim_options){.capacity = GIB, .backed = true}, COMPACT);
    for (int i = 0; i < 2; i++) {
        parts[i] = rig_alloc(&rig, 8 * MIB, 1);
    }
    (void)rig_alloc(&rig, 2 * MIB, 1);
    share(&rig, parts[1]);
    rig_free(&rig, parts[0]);
    (void)rig_alloc(&rig, 30 * MIB, 1);
    assert_int_equal(moved(&rig), 4);
    (void)rig_alloc(&rig, 30 * MIB, 1); /* the old addresses are unmapped */
    rig_free(&rig, parts[1]);
    assert_int_equal(tarn_sim_block_stream(rig.device, 2), TARN_OK);
    const tarn_ptr other = rig_alloc(&rig, 4 * MIB, 2);

    rig_free(&rig, other);
    assert_int_equal(tarn_allocator_set_limit(rig.allocator, reserved(&rig), &rig.error), TARN_OK);
    tarn_sim_advance_ns(rig.device, 1000000000);
    assert_int_equal(rig_alloc(&rig, 12 * MIB, 1), parts[0] + 4 * MIB);
    assert_int_equal(moved(&rig), 6);
    assert_int_equal(device_waits(&rig), 1);
    rig_close(&rig);
}

/* A free block that waits for host memory has its place again before others look for its pages. */
static void pages_that_waited_for_host_memory_are_found(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    tarn_ptr parts[6];

    for (int i = 0; i < 6; i++) {
        parts[i] = rig_alloc(&rig, 6 * MIB, 1);
    }
    const struct tn_free_set *set = rig_engine(rig.allocator)->heap.large.sets[0];

    for (int i = 0; i < 5; i += 2) { /* no two are neighbours */
        tarn_host_fail_nth(1);
        rig_free(&rig, parts[i]);
        tarn_host_fail_nth(0);
    }
    assert_non_null(set->linked.first);
    (void)rig_alloc(&rig, 18 * MIB, 2);
    assert_null(set->linked.first);
    assert_int_equal(moved(&rig), 9);
    assert_int_equal(reserved(&rig), 36 * MIB);
    rig_close(&rig);
}

/* Every event that was created is destroyed once. */
static void each_event_is_destroyed_once(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    for (tarn_stream stream = 1; stream <= 3; stream++) {
        (void)leave_hole(&rig, stream);
        (void)rig_alloc(&rig, 40 * MIB, stream);
    }
    assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
    (void)leave_hole(&rig, 1);
    (void)rig_alloc(&rig, 40 * MIB, 2); /* a mark that is not done */
    tarn_allocator_destroy(rig.allocator);
    const struct tarn_sim_counters counters = sim_counters(rig.device);

    assert_true(counters.calls[TARN_SIM_EVENT_CREATE] > 1);
    assert_int_equal(counters.calls[TARN_SIM_EVENT_DESTROY], counters.calls[TARN_SIM_EVENT_CREATE]);
    sim_close(rig.device);
    assert_int_equal(tarn_host_get_usage().live_bytes, rig.host_bytes);
}

static bool see_requested(void *context, const struct tarn_block_info *block)
{
    uint64_t *most = context;

    if (!block->allocated && block->requested_size > *most) {
        *most = block->requested_size;
    }
    return true;
}

static bool see_segment(void *context, const struct tarn_segment_info *segment)
{
    (void)context;
    (void)segment;
    return true;
}

/* What is left of a page behind old addresses was never requested. */
static void a_rest_behind_old_addresses_was_not_requested(void **state)
{
    uint64_t most = 0;
    const struct tarn_walker walker = {&most, see_segment, see_requested};
    struct rig rig;

    (void)state;
    rig_open(&rig, 32 * MIB, COMPACT);
    const tarn_ptr first = rig_alloc(&rig, 4 * MIB, 1);
    const tarn_ptr last = rig_alloc(&rig, 20 * MIB, 1);

    rig_free(&rig, last);
    assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
    rig_free(&rig, rig_alloc(&rig, 28 * MIB, 2));
    assert_int_equal(rig_alloc(&rig, 5 * MIB, 1), first + 24 * MIB);
    rig_empty_cache(&rig);
    assert_int_equal(tarn_allocator_walk(rig.allocator, &walker), TARN_OK);
    assert_int_equal(most, 0);
    rig_close(&rig);
}

/* A try gets the pages of streams that take turns, too, where the device is full before it says so;
 * or host memory is missing, which is no lack of device memory. */
static void a_try_gets_pages_of_streams_that_take_turns(void **state)
{
    bool is_reached = true;

    (void)state;
    for (uint64_t n = 1; is_reached; n++) {
        tarn_ptr ptr = 0;
        struct rig rig;

        rig_open(&rig, GIB, COMPACT);
        take_turns(&rig, 5);
        assert_int_equal(reserved(&rig), 80 * MIB);
        tarn_sim_set_foreign_memory(rig.device, GIB - 80 * MIB);
        const uint64_t calls = tarn_host_get_usage().alloc_calls;

        scarce_begin(rig.allocator);
        tarn_host_fail_nth(n);
        const enum tarn_status st =
            tarn_alloc_try(rig.allocator, 80 * MIB, 1, TARN_ALLOC_TRY, &ptr);

        is_reached = tarn_host_get_usage().alloc_calls - calls >= n;
        tarn_host_fail_nth(0);
        scarce_end();
        assert_true(st == TARN_OK || (st == TARN_ERR_HOST_MEMORY && is_reached));
        rig_close(&rig);
    }
}

/* What one event follows stays mapped as long as that is not known to be done: also the second run
 * of two, after a wait that failed. */
static void runs_of_one_event_are_unmapped_together(void **state)
{
    tarn_ptr parts[4];
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, COMPACT);
    for (int i = 0; i < 4; i++) {
        parts[i] = rig_alloc(&rig, 10 * MIB, 1);
    }
    assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
    rig_free(&rig, parts[0]);
    rig_free(&rig, parts[2]);
    (void)rig_alloc(&rig, 24 * MIB, 1);
    assert_int_equal(pages_of(&rig).retired, 10);
    tarn_sim_fail_nth(rig.device, TARN_SIM_EVENT_WAIT, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_empty_cache(rig.allocator, &rig.error), TARN_ERR_DEVICE);
    assert_int_equal(pages_of(&rig).retired, 10);
    rig_empty_cache(&rig);
    assert_int_equal(pages_of(&rig).retired, 0);
    rig_close(&rig);
}

/* A pool is looked at once per source: one event marks the stream, and one is recorded for its
 * pages, which turn out to be shared. */
static void shared_pages_cost_two_events(void **state)
{
    struct rig rig;

    (void)state;
    rig_open_with(&rig, (struct tarn_sim_options){.capacity = GIB, .backed = true}, COMPACT);
    const tarn_ptr ptr = rig_alloc(&rig, 30 * MIB, 0);

    (void)rig_alloc(&rig, 2 * MIB, 0);
    share(&rig, ptr);
    rig_free(&rig, ptr);
    (void)rig_alloc(&rig, 40 * MIB, 0);
    assert_int_equal(moved(&rig), 0);
    assert_int_equal(records(&rig), 2);
    rig_close(&rig);
}

/* ---- free pages that were shared, of pools ---- */

/* Pools with a free block of 20 MiB each whose pages were shared, and as many in the default pool,
 * at a limit without room for more. */
struct shared_pools {
    struct rig rig;
    struct tarn_pool *low;
    struct tarn_pool *same;
    struct tarn_pool *high;
    struct tarn_pool *still; /* its pages do not move */
};

static struct tarn_pool *shared_pool(struct rig *rig, struct tarn_pool_options options)
{
    struct tarn_pool *pool = NULL;
    tarn_ptr ptr = 0;

    options.struct_size = sizeof options;
    assert_int_equal(tarn_pool_create(rig->allocator, &options, &pool, &rig->error), TARN_OK);
    assert_int_equal(tarn_pool_alloc(pool, 20 * MIB, 1, &ptr, &rig->error), TARN_OK);
    share(rig, ptr);
    rig_free(rig, ptr);
    return pool;
}

static void shared_pools_open(struct shared_pools *shared)
{
    rig_open_with(&shared->rig, (struct tarn_sim_options){.capacity = GIB, .backed = true},
                  COMPACT);
    rig_limit(&shared->rig, 104.0 / 1024);
    const tarn_ptr ptr = rig_alloc(&shared->rig, 20 * MIB, 1);

    share(&shared->rig, ptr);
    rig_free(&shared->rig, ptr);
    shared->high = shared_pool(&shared->rig, (struct tarn_pool_options){.priority = 1});
    shared->same = shared_pool(&shared->rig, (struct tarn_pool_options){.priority = 0});
    shared->low = shared_pool(&shared->rig, (struct tarn_pool_options){.priority = -1});
    shared->still =
        shared_pool(&shared->rig, (struct tarn_pool_options){.priority = -1, .pages_stay = true});
    assert_int_equal(reserved(&shared->rig), 100 * MIB);
}

static void shared_pools_close(struct shared_pools *shared)
{
    tarn_pool_destroy(shared->low);
    tarn_pool_destroy(shared->same);
    tarn_pool_destroy(shared->high);
    tarn_pool_destroy(shared->still);
    rig_close(&shared->rig);
}

static uint64_t reserved_of(struct tarn_pool *pool)
{
    struct tarn_pool_stats stats = {.struct_size = sizeof stats};

    assert_int_equal(tarn_pool_get_stats(pool, &stats), TARN_OK);
    return stats.reserved;
}

/* As much as the request needs: those of the default pools first. */
static void shared_pages_go_back_as_far_as_needed(void **state)
{
    struct shared_pools shared;

    (void)state;
    shared_pools_open(&shared);
    (void)rig_alloc(&shared.rig, 20 * MIB, 2);
    assert_int_equal(reserved(&shared.rig), 100 * MIB);
    assert_int_equal(reserved_of(shared.low), 20 * MIB);
    assert_int_equal(reserved_of(shared.same), 20 * MIB);
    assert_int_equal(reserved_of(shared.high), 20 * MIB);
    assert_int_equal(reserved_of(shared.still), 20 * MIB);
    shared_pools_close(&shared);
}

/* Of pools that have no higher priority than the request, and whose pages may move. */
static void shared_pages_of_a_higher_priority_stay(void **state)
{
    struct shared_pools shared;

    (void)state;
    shared_pools_open(&shared);
    (void)rig_alloc(&shared.rig, 62 * MIB, 2);
    assert_int_equal(reserved_of(shared.low), 0);
    assert_int_equal(reserved_of(shared.same), 0);
    assert_int_equal(reserved_of(shared.high), 20 * MIB);
    assert_int_equal(reserved_of(shared.still), 20 * MIB);
    shared_pools_close(&shared);
}

/* The device refuses: the request says so, whichever pool it was. */
static void shared_pages_that_do_not_go_back_are_reported(void **state)
{
    (void)state;
    for (uint64_t n = 1; n <= 30; n += 5) {
        struct shared_pools shared;
        tarn_ptr ptr = 0;

        shared_pools_open(&shared);
        tarn_sim_fail_nth(shared.rig.device, TARN_SIM_UNMAP, n, TARN_ERR_DEVICE);
        assert_int_equal(
            tarn_allocator_alloc(shared.rig.allocator, 62 * MIB, 2, &ptr, &shared.rig.error),
            TARN_ERR_DEVICE);
        rig_check(&shared.rig);
        (void)rig_alloc(&shared.rig, 62 * MIB, 2);
        shared_pools_close(&shared);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_stays_in_the_middle_of_a_hole_when_pages_are_few),
        cmocka_unit_test(what_settled_stays_in_the_middle_of_a_hole_while_memory_is_plentiful),
        cmocka_unit_test(the_hole_that_lacks_least_is_found_behind_others),
        cmocka_unit_test(a_hole_of_the_right_size_is_filled),
        cmocka_unit_test(a_range_full_of_old_addresses_is_followed_by_another),
        cmocka_unit_test(old_addresses_of_other_streams_suggest_no_place),
        cmocka_unit_test(a_place_in_the_middle_that_was_not_filled_is_found_again),
        cmocka_unit_test(old_addresses_that_were_not_unmapped_need_no_event),
        cmocka_unit_test(a_free_page_is_marked_once),
        cmocka_unit_test(pages_of_small_requests_of_a_pool_move),
        cmocka_unit_test(a_stream_without_a_whole_page_is_not_waited_for),
        cmocka_unit_test(streams_take_turns_if_they_gave_pages),
        cmocka_unit_test(a_request_without_host_memory_takes_no_new_pages),
        cmocka_unit_test(a_place_behind_pages_that_moved_is_found),
        cmocka_unit_test(the_fewest_pages_count_when_memory_is_short),
        cmocka_unit_test(pages_that_waited_for_host_memory_are_found),
        cmocka_unit_test(each_event_is_destroyed_once),
        cmocka_unit_test(a_rest_behind_old_addresses_was_not_requested),
        cmocka_unit_test(a_try_gets_pages_of_streams_that_take_turns),
        cmocka_unit_test(runs_of_one_event_are_unmapped_together),
        cmocka_unit_test(shared_pages_cost_two_events),
        cmocka_unit_test(shared_pages_go_back_as_far_as_needed),
        cmocka_unit_test(shared_pages_of_a_higher_priority_stay),
        cmocka_unit_test(shared_pages_that_do_not_go_back_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
