/* SPDX-License-Identifier: MIT */
/* A trace as a program: which operations it becomes, what is noted, what is refused. */
#include "support/test.h"

#include "alloc/config/size_class.h"
#include "replay/compile.h"
#include "support/trace.h"
#include "tarn/host.h"

#include <stdio.h>
#include <string.h>

struct made {
    struct trace_model trace;
    struct tn_program program;
};

static const struct tarn_config *default_config(void)
{
    static struct tarn_config config;

    assert_int_equal(tarn_config_parse("", &config, NULL), TARN_OK);
    return &config;
}

static void made_open(struct made *made, const struct trace_row *rows, size_t count,
                      const struct tn_model_segment *segments, size_t segment_count)
{
    struct tarn_error error = {.text = ""};

    trace_open(&made->trace, rows, count, segments, segment_count);
    if (tn_program_compile(&made->program, &made->trace.model, 0, default_config(), &error)) {
        fail_msg("%s", error.text);
    }
}

static void made_close(struct made *made)
{
    tn_program_fini(&made->program);
    trace_close(&made->trace);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static const struct tn_op *op_at(const struct made *made, size_t index)
{
    assert_true(index < made->program.ops.count);
    return &((const struct tn_op *)made->program.ops.items)[index];
}

/* Operation `index`: its kind, slot, queue and entry of the trace. */
static void op_is(const struct made *made, size_t index, enum tn_op_kind kind, uint32_t slot,
                  uint32_t queue, uint64_t entry)
{
    const struct tn_op *op = op_at(made, index);

    assert_int_equal(op->kind, kind);
    assert_int_equal(op->slot, slot);
    assert_int_equal(op->entry, entry);
    if (kind == TN_OP_FREE_WAITS) {
        assert_int_equal(op->queue, queue);
    }
}

static uint64_t number_at(const struct tn_vec *vec, size_t index)
{
    assert_true(index < vec->count);
    return ((const uint64_t *)vec->items)[index];
}

static void requests_and_frees_stand_as_they_are(void **state)
{
    static const struct trace_row rows[] = {
        {TN_TRACE_SEGMENT_ALLOC, A, 2 * MIB, 3},
        {TN_TRACE_ALLOC, A, 100, 3},
        {TN_TRACE_ALLOC, A + 512, 700, 3},
        {TN_TRACE_FREE_REQUESTED, A, 100, 3},
        {TN_TRACE_FREE_COMPLETED, A, 100, 3},
        {TN_TRACE_ALLOC, A, 200, 3},
        {TN_TRACE_SNAPSHOT, 0, 0, 0},
        {TN_TRACE_ANNOTATE, 0, 0, 0},
        {TN_TRACE_USER_DEFINED, 0, 0, 0},
        {TN_TRACE_OTHER, A, 5, 0},
    };
    static const struct tn_model_block blocks[] = {
        {.address = A, .size = 512, .requested_size = 200, .state = TN_BLOCK_ACTIVE_ALLOCATED},
        {.address = A + 512,
         .size = 1024,
         .requested_size = 700,
         .state = TN_BLOCK_ACTIVE_ALLOCATED},
        {.address = A + 1536, .size = 2 * MIB - 1536},
    };
    static const struct tn_model_segment segments[] = {
        {.address = A, .total_size = 2 * MIB, .stream = 3, .blocks = blocks, .block_count = 3}};
    struct made made;

    (void)state;
    made_open(&made, rows, 10, segments, 1);
    assert_int_equal(made.program.ops.count, 4);
    op_is(&made, 0, TN_OP_ALLOC, 0, 0, 1);
    op_is(&made, 1, TN_OP_ALLOC, 1, 0, 2);
    op_is(&made, 2, TN_OP_FREE, 0, 0, 3);
    op_is(&made, 3, TN_OP_ALLOC, 0, 0, 5); /* another block, in the slot that became free */
    assert_int_equal(op_at(&made, 1)->size, 700);
    assert_int_equal(op_at(&made, 1)->stream, 3);
    assert_int_equal(op_at(&made, 1)->address, A + 512);
    assert_int_equal(made.program.entry_count, 10);
    assert_int_equal(made.program.alloc_count, 3);
    assert_int_equal(made.program.slot_count, 2);
    assert_int_equal(made.program.queue_count, 0);
    assert_int_equal(made.program.oom_count, 0);
    assert_int_equal(made.program.device, 0);
    assert_true(made.program.complete);
    assert_int_equal(made.program.note_count, 0);
    assert_int_equal(made.program.segment_addresses.count, 1);
    assert_int_equal(number_at(&made.program.segment_addresses, 0), A);
    made_close(&made);
}

/* Completions come in the order of the frees within a queue; what overtakes gets another one. */
static void waiting_frees_are_queued_by_their_completions(void **state)
{
    static const struct trace_row rows[] = {
        {TN_TRACE_ALLOC, A, 512, 0},
        {TN_TRACE_ALLOC, A + 512, 512, 0},
        {TN_TRACE_ALLOC, A + 1024, 512, 0},
        {TN_TRACE_ALLOC, A + 1536, 512, 0},
        {TN_TRACE_FREE_REQUESTED, A, 512, 0},
        {TN_TRACE_FREE_REQUESTED, A + 512, 512, 0},
        {TN_TRACE_FREE_REQUESTED, A + 1024, 512, 0},
        {TN_TRACE_FREE_REQUESTED, A + 1536, 512, 0}, /* never completed */
        {TN_TRACE_FREE_COMPLETED, A + 512, 512, 0},
        {TN_TRACE_FREE_COMPLETED, A + 1024, 512, 0},
        {TN_TRACE_FREE_COMPLETED, A, 512, 0}, /* overtaken by both */
    };
    struct made made;

    (void)state;
    made_open(&made, rows, 11, NULL, 0);
    assert_int_equal(made.program.ops.count, 11);
    op_is(&made, 4, TN_OP_FREE_WAITS, 0, 1, 4);
    op_is(&made, 5, TN_OP_FREE_WAITS, 1, 0, 5);
    op_is(&made, 6, TN_OP_FREE_WAITS, 2, 0, 6);
    op_is(&made, 7, TN_OP_FREE_WAITS, 3, TN_NO_QUEUE, 7);
    op_is(&made, 8, TN_OP_COMPLETE, 1, 0, 8);
    op_is(&made, 9, TN_OP_COMPLETE, 2, 0, 9);
    op_is(&made, 10, TN_OP_COMPLETE, 0, 0, 10);
    assert_int_equal(made.program.queue_count, 2);
    made_close(&made);
}

/* What was given back in one go is one flush, at the first of its entries. */
static void segments_given_back_are_flushes(void **state)
{
    static const struct trace_row rows[] = {
        {TN_TRACE_SEGMENT_ALLOC, A, 20 * MIB, 0},    {TN_TRACE_SEGMENT_MAP, A + GIB, 20 * MIB, 0},
        {TN_TRACE_SEGMENT_FREE, A, 20 * MIB, 0},     {TN_TRACE_SEGMENT_UNMAP, A + GIB, 20 * MIB, 0},
        {TN_TRACE_SEGMENT_MAP, A + GIB, 2 * MIB, 0}, {TN_TRACE_SEGMENT_UNMAP, A + GIB, 2 * MIB, 0},
    };
    struct made made;

    (void)state;
    made_open(&made, rows, 6, NULL, 0);
    assert_int_equal(made.program.ops.count, 2);
    op_is(&made, 0, TN_OP_FLUSH, TN_NO_SLOT, 0, 2);
    op_is(&made, 1, TN_OP_FLUSH, TN_NO_SLOT, 0, 5);
    assert_int_equal(made.program.segment_addresses.count, 1);
    assert_int_equal(made.program.map_addresses.count, 2);
    assert_int_equal(number_at(&made.program.map_addresses, 1), A + GIB);
    made_close(&made);
}

static void failed_requests_are_tried_and_noted(void **state)
{
    static const struct trace_row rows[] = {
        {TN_TRACE_OOM, 7 * MIB, 200 * MIB, 4}, /* the address is what was free */
        {TN_TRACE_OOM, 7 * MIB, 100 * MIB, 0},
    };
    struct made made;

    (void)state;
    made_open(&made, rows, 2, NULL, 0);
    op_is(&made, 0, TN_OP_TRY, TN_NO_SLOT, 0, 0);
    op_is(&made, 1, TN_OP_TRY, TN_NO_SLOT, 0, 1);
    assert_int_equal(op_at(&made, 0)->size, 200 * MIB);
    assert_int_equal(op_at(&made, 0)->stream, 4);
    assert_int_equal(made.program.oom_count, 2);
    assert_int_equal(made.program.alloc_count, 0);
    assert_int_equal(made.program.note_count, 0);
    assert_int_equal(made.program.limit.below, UINT64_MAX); /* nothing was reserved */
    made_close(&made);
}

/* Blocks of the final state that no entry made: they have the first slots. */
static void what_was_there_before_has_the_first_slots(void **state)
{
    static const struct tn_model_block blocks[] = {
        {.address = A,
         .size = 2 * MIB,
         .requested_size = 2 * MIB,
         .state = TN_BLOCK_ACTIVE_ALLOCATED},
        {.address = A + 2 * MIB, .size = 18 * MIB, .state = TN_BLOCK_INACTIVE},
    };
    static const struct tn_model_segment segments[] = {{.address = A,
                                                        .total_size = 20 * MIB,
                                                        .is_large = true,
                                                        .blocks = blocks,
                                                        .block_count = 2}};
    static const struct trace_row rows[] = {
        {TN_TRACE_FREE_COMPLETED, A + 4 * MIB, 2 * MIB, 0}, /* freed before, completed here */
        {TN_TRACE_FREE_REQUESTED, A + 2 * MIB, 2 * MIB, 0},
        {TN_TRACE_FREE_COMPLETED, A + 2 * MIB, 2 * MIB, 0},
        {TN_TRACE_ALLOC, A + 2 * MIB, 5 * MIB, 0},
        {TN_TRACE_FREE_REQUESTED, A + 2 * MIB, 5 * MIB, 0},
        {TN_TRACE_FREE_COMPLETED, A + 2 * MIB, 5 * MIB, 0},
    };
    struct made made;

    (void)state;
    made_open(&made, rows, 6, segments, 1);
    const struct tn_start_block *start = made.program.start_blocks.items;

    assert_int_equal(made.program.start_blocks.count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(start[i].slot, i);
        assert_int_equal(start[i].address, A + 2 * MIB * i);
        assert_int_equal(start[i].waiting, i == 2);
    }
    assert_int_equal(made.program.ops.count, 4);
    op_is(&made, 0, TN_OP_COMPLETE, 2, 0, 0);
    op_is(&made, 1, TN_OP_FREE, 1, 0, 1);
    op_is(&made, 2, TN_OP_ALLOC, 1, 0, 3);
    op_is(&made, 3, TN_OP_FREE, 1, 0, 4);
    assert_int_equal(made.program.slot_count, 3);
    assert_false(made.program.complete);
    made_close(&made);
}

/* Traces recorded with skip_actions. */

static bool has_note(const struct made *made, const char *begin)
{
    for (uint32_t i = 0; i < made->program.note_count; i++) {
        if (strncmp(made->program.notes[i], begin, strlen(begin)) == 0) {
            return true;
        }
    }
    return false;
}

static void without_completions_frees_are_complete_at_once(void **state)
{
    static const struct trace_row rows[] = {
        {TN_TRACE_SEGMENT_ALLOC, A, 2 * MIB, 0}, {TN_TRACE_ALLOC, A, 512, 0},
        {TN_TRACE_FREE_REQUESTED, A, 512, 0},    {TN_TRACE_ALLOC, A, 512, 0},
        {TN_TRACE_FREE_REQUESTED, A, 512, 0},
    };
    struct made made;

    (void)state;
    made_open(&made, rows, 5, NULL, 0);
    op_is(&made, 1, TN_OP_FREE, 0, 0, 2);
    op_is(&made, 3, TN_OP_FREE, 0, 0, 4);
    assert_true(has_note(&made, "the trace has no free_completed events: "));
    assert_int_equal(made.program.note_count, 1);
    made_close(&made);
}

static void without_requests_to_free_completions_are_the_frees(void **state)
{
    static const struct trace_row rows[] = {
        {TN_TRACE_SEGMENT_ALLOC, A, 2 * MIB, 0}, {TN_TRACE_ALLOC, A, 512, 0},
        {TN_TRACE_FREE_COMPLETED, A, 512, 0},    {TN_TRACE_ALLOC, A, 512, 0},
        {TN_TRACE_FREE_COMPLETED, A, 512, 0},
    };
    struct made made;

    (void)state;
    made_open(&made, rows, 5, NULL, 0);
    assert_int_equal(made.program.ops.count, 4);
    op_is(&made, 1, TN_OP_FREE, 0, 0, 2);
    op_is(&made, 3, TN_OP_FREE, 0, 0, 4);
    assert_int_equal(made.program.note_count, 0);
    made_close(&made);
}

/* A block that lies over others says that they were freed, also where it only begins or ends in
 * one. */
static void without_frees_a_place_taken_again_is_free(void **state)
{
    static const struct trace_row rows[] = {
        {TN_TRACE_SEGMENT_ALLOC, A, 20 * MIB, 0},  {TN_TRACE_ALLOC, A, 4 * MIB, 0},
        {TN_TRACE_ALLOC, A + 4 * MIB, 4 * MIB, 0}, {TN_TRACE_ALLOC, A + 10 * MIB, 4 * MIB, 0},
        {TN_TRACE_ALLOC, A + 2 * MIB, 3 * MIB, 0}, /* over the first two */
        {TN_TRACE_ALLOC, A + 2 * MIB, 3 * MIB, 0}, /* the same place */
    };
    struct made made;

    (void)state;
    made_open(&made, rows, 6, NULL, 0);
    assert_int_equal(made.program.ops.count, 8);
    op_is(&made, 3, TN_OP_FREE, 0, 0, 4);
    op_is(&made, 4, TN_OP_FREE, 1, 0, 4);
    op_is(&made, 5, TN_OP_ALLOC, 1, 0, 4);
    op_is(&made, 6, TN_OP_FREE, 1, 0, 5);
    assert_true(has_note(
        &made, "3 frees are missing from the trace: each is assumed when its address "
               "is allocated again, so peaks are too high; of the peak of 12582912 bytes"));
    made_close(&made);
}

static void one_missing_free_is_made_when_its_place_is_taken(void **state)
{
    static const struct trace_row rows[] = {
        {TN_TRACE_SEGMENT_ALLOC, A, 2 * MIB, 0},
        {TN_TRACE_ALLOC, A, 512, 0},
        {TN_TRACE_ALLOC, A, 1024, 0},
        {TN_TRACE_FREE_REQUESTED, A, 1024, 0},
        {TN_TRACE_FREE_COMPLETED, A, 1024, 0},
    };
    struct made made;

    (void)state;
    made_open(&made, rows, 5, NULL, 0);
    op_is(&made, 1, TN_OP_FREE, 0, 0, 2);
    op_is(&made, 3, TN_OP_FREE, 0, 0, 3);
    assert_true(has_note(&made, "1 frees are missing from the trace: "));
    made_close(&made);
}

static void without_segments_that_is_said(void **state)
{
    static const struct tn_model_block blocks[] = {{.address = A, .size = 2 * MIB}};
    static const struct tn_model_segment segments[] = {
        {.address = A, .total_size = 2 * MIB, .blocks = blocks, .block_count = 1}};
    static const struct trace_row rows[] = {
        {TN_TRACE_ALLOC, A, 512, 0},
        {TN_TRACE_FREE_REQUESTED, A, 512, 0},
        {TN_TRACE_FREE_COMPLETED, A, 512, 0},
    };
    struct made made;

    (void)state;
    made_open(&made, rows, 3, NULL, 0);
    assert_int_equal(made.program.note_count, 1);
    assert_true(has_note(&made, "the trace records no segments: where"));
    made_close(&made);
    made_open(&made, rows, 3, segments, 1);
    assert_true(has_note(&made, "the trace records no segments: all 2097152 bytes"));
    made_close(&made);
}

/* Segments of a pool went back for want of memory, and it is used afterwards: its uses go on. */
static void a_pool_that_is_used_later_is_not_released(void **state)
{
    static const struct tn_model_block blocks[] = {{.address = A, .size = 20 * MIB}};
    static const struct tn_model_segment segments[] = {{.address = A,
                                                        .total_size = 20 * MIB,
                                                        .is_large = true,
                                                        .pool = {.id = {0, 7}},
                                                        .blocks = blocks,
                                                        .block_count = 1}};
    static const struct trace_row rows[] = {
        {TN_TRACE_SEGMENT_ALLOC, A, 20 * MIB, 0}, {TN_TRACE_ALLOC, A, 2 * MIB, 0},
        {TN_TRACE_FREE_REQUESTED, A, 2 * MIB, 0}, {TN_TRACE_FREE_COMPLETED, A, 2 * MIB, 0},
        {TN_TRACE_SEGMENT_FREE, A, 20 * MIB, 0},  {TN_TRACE_SEGMENT_ALLOC, A, 20 * MIB, 0},
        {TN_TRACE_ALLOC, A, 2 * MIB, 0},          {TN_TRACE_FREE_REQUESTED, A, 2 * MIB, 0},
        {TN_TRACE_FREE_COMPLETED, A, 2 * MIB, 0},
    };
    struct made made;

    (void)state;
    made_open(&made, rows, 9, segments, 1);
    for (size_t i = 0; i < made.program.ops.count; i++) {
        assert_int_not_equal(op_at(&made, i)->kind, TN_OP_RELEASE);
    }
    made_close(&made);
}

static void frees_of_nothing_known_are_left_out_and_noted(void **state)
{
    static const struct trace_row rows[] = {
        {TN_TRACE_SEGMENT_ALLOC, A, 2 * MIB, 0},    {TN_TRACE_ALLOC, A, 512, 0},
        {TN_TRACE_FREE_REQUESTED, A, 512, 0},       {TN_TRACE_FREE_COMPLETED, A, 512, 0},
        {TN_TRACE_FREE_REQUESTED, A, 512, 0}, /* again */
        {TN_TRACE_FREE_REQUESTED, A + MIB, 512, 0},
    };
    struct made made;

    (void)state;
    made_open(&made, rows, 6, NULL, 0);
    assert_int_equal(made.program.ops.count, 2);
    op_is(&made, 1, TN_OP_FREE, 0, 0, 2);
    assert_int_equal(made.program.note_count, 1);
    assert_string_equal(made.program.notes[0],
                        "2 frees of unknown blocks (1024 bytes) were ignored");
    made_close(&made);
}

/* Only of the device whose trace it is. */
static void requests_go_to_the_pools_of_the_final_segments(void **state)
{
    static const struct tn_model_segment segments[] = {
        {.address = A, .total_size = 2 * MIB, .pool = {{0, 1}}},
        {.address = A + 2 * MIB, .total_size = 2 * MIB, .pool = {{3, 0}}},
        {.address = A + 4 * MIB, .total_size = 2 * MIB},
        {.address = A, .total_size = 2 * MIB, .pool = {{0, 1}}, .device = 1},
    };
    static const struct trace_row rows[] = {
        {TN_TRACE_SEGMENT_ALLOC, A, 2 * MIB, 0},
        {TN_TRACE_ALLOC, A, 512, 0}, /* in a segment that is gone at the end */
        {TN_TRACE_FREE_REQUESTED, A, 512, 0},
        {TN_TRACE_FREE_COMPLETED, A, 512, 0},
        {TN_TRACE_SEGMENT_FREE, A, 2 * MIB, 0},
        {TN_TRACE_SEGMENT_ALLOC, A, 2 * MIB, 0},
        {TN_TRACE_ALLOC, A + 512, 512, 0},
        {TN_TRACE_SEGMENT_ALLOC, A + 2 * MIB, 2 * MIB, 0},
        {TN_TRACE_ALLOC, A + 4 * MIB - 512, 512, 0},
        {TN_TRACE_SEGMENT_ALLOC, A + 4 * MIB, 2 * MIB, 0},
        {TN_TRACE_ALLOC, A + 4 * MIB, 512, 0},
    };
    struct made made;

    (void)state;
    made_open(&made, rows, 11, segments, 4);
    assert_int_equal(made.program.pools.count, 3);
    assert_int_equal(op_at(&made, 0)->pool, 0);
    assert_int_equal(op_at(&made, 3)->pool, 1);
    assert_int_equal(op_at(&made, 4)->pool, 2);
    assert_int_equal(op_at(&made, 5)->pool, 0);
    const struct tarn_pool_id *pools = made.program.pools.items;
    assert_int_equal(pools[1].first, 0);
    assert_int_equal(pools[1].second, 1);
    assert_int_equal(pools[2].first, 3);
    made_close(&made);
}

/* The last rows of a trace get that pool. */
static void name_pool(struct made *made, size_t from, size_t count, uint64_t second)
{
    struct tn_trace_extra extra = *tn_model_extra(&made->trace.model, 0);
    uint32_t number;

    extra.has_pool = true;
    extra.pool = (struct tn_pool_id){{0, second}};
    assert_int_equal(tn_model_add_extra(&made->trace.model, &extra, &number), TARN_OK);
    for (size_t i = from; i < from + count; i++) {
        struct tn_trace_entry *entry = tn_chunked_vec_at(&made->trace.model.entries, i);

        entry->extra = number & 0x7ffffff;
    }
}

static void entries_name_their_pools(void **state)
{
    static const struct trace_row rows[] = {
        {TN_TRACE_SEGMENT_ALLOC, A, 2 * MIB, 0},
        {TN_TRACE_ALLOC, A, 512, 0},
        {TN_TRACE_FREE_REQUESTED, A, 512, 0},
        {TN_TRACE_FREE_COMPLETED, A, 512, 0},
        {TN_TRACE_OOM, 0, 4096, 0},
        {TN_TRACE_SEGMENT_FREE, A + 8 * MIB, 2 * MIB, 0}, /* of the default pool */
        {TN_TRACE_SEGMENT_FREE, A, 2 * MIB, 0},
    };
    struct made made = {0};
    struct tarn_error error;

    (void)state;
    trace_open(&made.trace, rows, 7, NULL, 0);
    name_pool(&made, 0, 5, 7);
    name_pool(&made, 6, 1, 7);
    assert_int_equal(
        tn_program_compile(&made.program, &made.trace.model, 0, default_config(), &error), TARN_OK);
    assert_int_equal(op_at(&made, 0)->pool, 1);
    assert_int_equal(op_at(&made, 2)->pool, 1);       /* the failed request */
    op_is(&made, 3, TN_OP_RELEASE, TN_NO_SLOT, 0, 5); /* before anything is given back */
    assert_int_equal(op_at(&made, 3)->pool, 1);
    assert_int_equal(((struct tarn_pool_id *)made.program.pools.items)[1].second, 7);
    made_close(&made);
}

/* Pools that all live and have several requests each: a search of a list for every request would
 * take minutes. Requests of pools for which the program has no number are noted. */
static void a_pool_is_found_among_many(void **state)
{
    enum {
        POOLS = UINT16_MAX + 2,
        REQUESTS = 8, /* of a pool */
        COUNT = POOLS * REQUESTS
    };
    struct trace_row *rows = test_calloc(COUNT, sizeof *rows);
    struct made made = {0};
    struct tarn_error error;

    (void)state;
    for (uint64_t i = 0; i < COUNT; i++) {
        rows[i] = (struct trace_row){TN_TRACE_ALLOC, A + i * 512, 512, 0};
    }
    trace_open(&made.trace, rows, COUNT, NULL, 0);
    for (size_t i = 0; i < POOLS; i++) {
        name_pool(&made, i * REQUESTS, REQUESTS, i + 1);
    }
    assert_int_equal(
        tn_program_compile(&made.program, &made.trace.model, 0, default_config(), &error), TARN_OK);
    assert_int_equal(made.program.pools.count, UINT16_MAX + 1);
    for (size_t i = 0; i < COUNT; i++) {
        const size_t pool = i / REQUESTS + 1;

        assert_int_equal(op_at(&made, i)->pool, pool <= UINT16_MAX ? pool : 0);
    }
    assert_int_equal(made.program.note_count, 3);
    assert_string_equal(made.program.notes[1],
                        "the trace has more than 65535 private pools: requests of the others count "
                        "as the default pool's");
    made_close(&made);
    test_free(rows);
}

/* Each free is overtaken by all after it, and gets a queue of its own: a search of all queues for
 * every completion would take minutes. */
static void a_queue_is_found_among_many(void **state)
{
    enum {
        BLOCKS = 300000
    };
    struct trace_row *rows = test_calloc(3 * (size_t)BLOCKS, sizeof *rows);
    struct made made;

    (void)state;
    for (uint64_t i = 0; i < BLOCKS; i++) {
        const uint64_t last = A + (BLOCKS - 1 - i) * 512;

        rows[i] = (struct trace_row){TN_TRACE_ALLOC, A + i * 512, 512, 0};
        rows[BLOCKS + i] = (struct trace_row){TN_TRACE_FREE_REQUESTED, A + i * 512, 512, 0};
        rows[2 * (size_t)BLOCKS + i] = (struct trace_row){TN_TRACE_FREE_COMPLETED, last, 512, 0};
    }
    rows[2 * BLOCKS - 1].address = A; /* so that no completion follows its free */
    rows[2 * BLOCKS - 1].action = TN_TRACE_SNAPSHOT;
    made_open(&made, rows, 3 * (size_t)BLOCKS, NULL, 0);
    assert_int_equal(made.program.queue_count, BLOCKS - 1);
    for (size_t i = 0; i < BLOCKS - 1; i++) {
        assert_int_equal(op_at(&made, BLOCKS + i)->queue, BLOCKS - 2 - i);
    }
    made_close(&made);
    test_free(rows);
}

static void what_is_given_back_in_a_request_is_for_want(void **state)
{
    static const struct trace_row rows[] = {
        {TN_TRACE_SEGMENT_ALLOC, A, 100 * MIB, 0},
        {TN_TRACE_SEGMENT_ALLOC, A + GIB, 100 * MIB, 0},
        {TN_TRACE_SEGMENT_FREE, A, 100 * MIB, 0}, /* by itself: a cache that was emptied */
        {TN_TRACE_SNAPSHOT, 0, 0, 0},
        {TN_TRACE_SEGMENT_FREE, A + GIB, 100 * MIB, 0}, /* there was room for 40 MiB more */
        {TN_TRACE_SEGMENT_ALLOC, A, 40 * MIB, 0},
        {TN_TRACE_ALLOC, A, 40 * MIB, 0},
        {TN_TRACE_SEGMENT_FREE, A + 2 * GIB, 1, 0}, /* 180 MiB more had not been had before */
        {TN_TRACE_SEGMENT_ALLOC, A + GIB, 180 * MIB, 0},
        {TN_TRACE_ALLOC, A + GIB, 180 * MIB, 0},
    };
    struct made made;

    (void)state;
    made_open(&made, rows, 10, NULL, 0);
    op_is(&made, 0, TN_OP_FLUSH, TN_NO_SLOT, 0, 2);
    op_is(&made, 1, TN_OP_FLUSH, TN_NO_SLOT, 0, 4);
    assert_int_equal(op_at(&made, 3)->kind, TN_OP_FLUSH_WANT);
    assert_int_equal(made.program.limit.at_least, 220 * MIB - 1);
    assert_int_equal(made.program.limit.below, 220 * MIB);
    made_close(&made);
}

static void limits_lie_between_what_was_had_and_what_was_refused(void **state)
{
    static const struct trace_row rows[] = {
        {TN_TRACE_SEGMENT_ALLOC, A, 100 * MIB, 0},
        {TN_TRACE_SEGMENT_FREE, A, 100 * MIB, 0},
        {TN_TRACE_OOM, 500 * MIB, 300 * MIB, 0}, /* the device had room: a limit refused */
        {TN_TRACE_OOM, 50 * MIB, 200 * MIB, 0},  /* the device refused */
    };
    static const struct trace_row refused[] = {
        {TN_TRACE_SEGMENT_ALLOC, A, 100 * MIB, 0},
        {TN_TRACE_ALLOC, A, 100 * MIB, 0},
        {TN_TRACE_OOM, 50 * MIB, 200 * MIB, 0}, /* the device refused */
    };
    struct tarn_config config;
    struct made made;
    struct tarn_error error;

    (void)state;
    made_open(&made, rows, 3, NULL, 0);
    assert_int_equal(made.program.limit.at_least, 100 * MIB);
    assert_int_equal(made.program.limit.below, 300 * MIB);
    assert_false(made.program.limit.by_device);
    made_close(&made);
    made_open(&made, rows, 1, NULL, 0);
    assert_int_equal(made.program.limit.below, UINT64_MAX); /* nothing was refused */
    made_close(&made);
    made_open(&made, &rows[2], 2, NULL, 0);
    assert_false(made.program.limit.by_device); /* nothing is known of segments */
    assert_int_equal(made.program.limit.below, UINT64_MAX);
    made_close(&made);
    made_open(&made, refused, 3, NULL, 0);
    assert_true(made.program.limit.by_device);
    assert_int_equal(made.program.limit.device, 150 * MIB);
    made_close(&made);

    /* Sizes that nobody requests bound nothing. */
    static const struct trace_row absurd[] = {
        {TN_TRACE_SEGMENT_ALLOC, A, 100 * MIB, 0},
        {TN_TRACE_SEGMENT_FREE, A, 100 * MIB, 0},
        {TN_TRACE_OOM, 500 * MIB, (uint64_t)1 << 60, 0},
    };

    made_open(&made, absurd, 3, NULL, 0);
    assert_int_equal(made.program.limit.at_least, 100 * MIB);
    assert_false(made.program.limit.by_device);
    made_close(&made);

    /* A collection says that its share of the limit was held. */
    static const struct trace_row collected[] = {
        {TN_TRACE_SEGMENT_ALLOC, A, 100 * MIB, 0},
        {TN_TRACE_SEGMENT_ALLOC, A + GIB, 60 * MIB, 0},
        {TN_TRACE_SEGMENT_FREE, A, 100 * MIB, 0},
        {TN_TRACE_SEGMENT_ALLOC, A, 40 * MIB, 0},
        {TN_TRACE_ALLOC, A, 40 * MIB, 0},
        {TN_TRACE_SEGMENT_ALLOC, A + 2 * GIB, 110 * MIB, 0},
    };
    assert_int_equal(tarn_config_parse("garbage_collection_threshold:0.5", &config, NULL), TARN_OK);
    trace_open(&made.trace, collected, 6, NULL, 0);
    assert_int_equal(tn_program_compile(&made.program, &made.trace.model, 0, &config, &error),
                     TARN_OK);
    assert_int_equal(op_at(&made, 0)->kind, TN_OP_FLUSH_WANT);
    assert_int_equal(made.program.limit.at_least, 210 * MIB);
    assert_int_equal(made.program.limit.below, 320 * MIB + 1);
    made_close(&made);

    /* So small a share says nothing. */
    assert_int_equal(tarn_config_parse("garbage_collection_threshold:0.00000000001", &config, NULL),
                     TARN_OK);
    trace_open(&made.trace, collected, 6, NULL, 0);
    assert_int_equal(tn_program_compile(&made.program, &made.trace.model, 0, &config, &error),
                     TARN_OK);
    assert_int_equal(made.program.limit.below, UINT64_MAX);
    made_close(&made);
}

/* Ranges of expandable segments are 9/8 of the device; what is nearer than 8 GiB is one range. */
static void where_ranges_begin_bounds_the_device(void **state)
{
    static const struct trace_row rows[] = {
        {TN_TRACE_SEGMENT_MAP, A + 90 * GIB, 20 * MIB, 0},
        {TN_TRACE_SEGMENT_MAP, A, 20 * MIB, 0},
        {TN_TRACE_SEGMENT_MAP, A + 8 * GIB, 20 * MIB, 0},
        {TN_TRACE_SEGMENT_MAP, A + 270 * GIB, 20 * MIB, 0},
        {TN_TRACE_SEGMENT_MAP, A + 271 * GIB, 20 * MIB, 0},
    };
    struct made made;

    (void)state;
    made_open(&made, rows, 5, NULL, 0);
    assert_int_equal(made.program.device_bound, 80 * GIB - TN_LARGE_BUFFER);
    made_close(&made);
    made_open(&made, &rows[3], 2, NULL, 0); /* one range */
    assert_int_equal(made.program.device_bound, (uint64_t)1 << 40);
    made_close(&made);
    made_open(&made, &(struct trace_row){TN_TRACE_ALLOC, A, 1, 0}, 1, NULL, 0); /* none */
    assert_int_equal(made.program.device_bound, (uint64_t)1 << 40);
    made_close(&made);
}

static void without_a_trace_there_is_no_program(void **state)
{
    static const struct trace_row rows[] = {{TN_TRACE_ALLOC, A, 512, 0}};
    static const int devices[] = {1, 2, -1, INT32_MAX, INT32_MIN};
    struct trace_model trace;

    (void)state;
    trace_open(&trace, rows, 1, NULL, 0);
    const uint64_t live = tarn_host_get_usage().live_bytes;

    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        struct tn_program program;
        struct tarn_error error = {.offset = 7};
        char text[128];

        (void)snprintf(text, sizeof text,
                       "the snapshot has no trace of device %d: record with "
                       "torch.cuda.memory._record_memory_history() before the run",
                       devices[i]);
        assert_int_equal(
            tn_program_compile(&program, &trace.model, devices[i], default_config(), &error),
            TARN_ERR_NOT_FOUND);
        assert_int_equal(error.status, TARN_ERR_NOT_FOUND);
        assert_int_equal(error.offset, -1);
        assert_string_equal(error.text, text);
        assert_int_equal(tarn_host_get_usage().live_bytes, live);
    }
    trace_close(&trace);
}

static void notes_have_an_end(void **state)
{
    static struct tn_program program; /* all zero */
    char text[2 * TN_NOTE_TEXT_MAX];

    (void)state;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    tn_program_note(&program, "%s", text);
    assert_int_equal(strlen(program.notes[0]), TN_NOTE_TEXT_MAX - 1);
    for (int i = 1; i < TN_NOTES_MAX + 3; i++) {
        tn_program_note(&program, "note %d", i);
    }
    assert_int_equal(program.note_count, TN_NOTES_MAX);
    assert_string_equal(program.notes[TN_NOTES_MAX - 1], "note 15");
}

/* A trace with all kinds of operations, so long that every array grows more than once. */
static size_t long_trace(struct trace_row *rows, size_t room)
{
    size_t count = 0;

    for (uint64_t i = 0; count + 8 <= room; i++) {
        const uint64_t address = A + i * 32 * MIB;
        const uint64_t range = A + i * 16 * GIB;

        rows[count++] = (struct trace_row){TN_TRACE_SEGMENT_ALLOC, address, 20 * MIB, 0};
        rows[count++] = (struct trace_row){TN_TRACE_SEGMENT_MAP, range, 2 * MIB, 0};
        rows[count++] = (struct trace_row){TN_TRACE_ALLOC, address, 20 * MIB, 0};
        if (i % 4 == 3) { /* these wait, complete and go back */
            rows[count++] = (struct trace_row){TN_TRACE_FREE_REQUESTED, address, 20 * MIB, 0};
            rows[count++] = (struct trace_row){TN_TRACE_SNAPSHOT, 0, 0, 0};
            rows[count++] = (struct trace_row){TN_TRACE_FREE_COMPLETED, address, 20 * MIB, 0};
            rows[count++] = (struct trace_row){TN_TRACE_SEGMENT_FREE, address, 20 * MIB, 0};
        }
    }
    return count;
}

static void every_host_failure_is_reported(void **state)
{
    static struct trace_row rows[400];
    const size_t count = long_trace(rows, sizeof rows / sizeof *rows);
    struct trace_model trace;
    enum tarn_status st = TARN_ERR_HOST_MEMORY;
    uint64_t failures = 0;

    (void)state;
    trace_open(&trace, rows, count, NULL, 0);
    const uint64_t live = tarn_host_get_usage().live_bytes;

    for (uint64_t n = 1; st != TARN_OK; n++) {
        struct tn_program program;
        struct tarn_error error = {.text = ""};

        tarn_host_fail_nth(n);
        st = tn_program_compile(&program, &trace.model, 0, default_config(), &error);
        tarn_host_fail_nth(0);
        if (st == TARN_OK) {
            assert_int_equal(program.alloc_count, 99);
            assert_int_equal(program.queue_count, 1);
            assert_true(program.device_bound < (uint64_t)1 << 40);
            tn_program_fini(&program);
        } else {
            assert_int_equal(st, TARN_ERR_HOST_MEMORY);
            assert_int_equal(error.status, st);
            assert_string_equal(error.text, tarn_status_text(TARN_ERR_HOST_MEMORY));
            failures++;
        }
        assert_int_equal(tarn_host_get_usage().live_bytes, live);
    }
    assert_true(failures >= 15);
    trace_close(&trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_and_frees_stand_as_they_are),
        cmocka_unit_test(waiting_frees_are_queued_by_their_completions),
        cmocka_unit_test(segments_given_back_are_flushes),
        cmocka_unit_test(failed_requests_are_tried_and_noted),
        cmocka_unit_test(what_was_there_before_has_the_first_slots),
        cmocka_unit_test(frees_of_nothing_known_are_left_out_and_noted),
        cmocka_unit_test(without_completions_frees_are_complete_at_once),
        cmocka_unit_test(without_requests_to_free_completions_are_the_frees),
        cmocka_unit_test(without_frees_a_place_taken_again_is_free),
        cmocka_unit_test(one_missing_free_is_made_when_its_place_is_taken),
        cmocka_unit_test(without_segments_that_is_said),
        cmocka_unit_test(a_pool_that_is_used_later_is_not_released),
        cmocka_unit_test(requests_go_to_the_pools_of_the_final_segments),
        cmocka_unit_test(entries_name_their_pools),
        cmocka_unit_test(a_pool_is_found_among_many),
        cmocka_unit_test(a_queue_is_found_among_many),
        cmocka_unit_test(what_is_given_back_in_a_request_is_for_want),
        cmocka_unit_test(limits_lie_between_what_was_had_and_what_was_refused),
        cmocka_unit_test(where_ranges_begin_bounds_the_device),
        cmocka_unit_test(without_a_trace_there_is_no_program),
        cmocka_unit_test(notes_have_an_end),
        cmocka_unit_test(every_host_failure_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
