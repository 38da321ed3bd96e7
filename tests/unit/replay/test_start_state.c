/* SPDX-License-Identifier: MIT */
/* What was there before a trace: entries undone one by one, and what cannot be known. */
#include "support/test.h"

#include "replay/start_state.h"
#include "support/trace.h"
#include "tarn/host.h"

#include <string.h>

enum {
    USED = TN_BLOCK_ACTIVE_ALLOCATED,
    WAITS = TN_BLOCK_ACTIVE_PENDING_FREE,
    UNUSED = TN_BLOCK_INACTIVE
};

struct made {
    struct trace_model trace;
    struct tn_program program;
};

static enum tarn_status made_rebuild(struct made *made, struct tarn_error *error)
{
    tn_program_init(&made->program, 0);
    const struct tn_trace_source source = tn_source_of_device(&made->trace.model, 0);

    return tn_start_state_rebuild(&made->program, &source, error);
}

static void made_open(struct made *made, const struct trace_row *rows, size_t count,
                      const struct tn_model_segment *segments, size_t segment_count)
{
    trace_open(&made->trace, rows, count, segments, segment_count);
    assert_int_equal(made_rebuild(made, NULL), TARN_OK);
}

static void made_close(struct made *made)
{
    tn_program_fini(&made->program);
    trace_close(&made->trace);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static void segment_is(const struct made *made, size_t index, struct tn_start_segment wanted)
{
    const struct tn_start_segment *segments = made->program.start_segments.items;

    assert_true(index < made->program.start_segments.count);
    assert_int_equal(segments[index].address, wanted.address);
    assert_int_equal(segments[index].size, wanted.size);
    assert_int_equal(segments[index].stream, wanted.stream);
    assert_int_equal(segments[index].is_large, wanted.is_large);
    assert_int_equal(segments[index].is_expandable, wanted.is_expandable);
    assert_int_equal(segments[index].first_block, wanted.first_block);
    assert_int_equal(segments[index].block_count, wanted.block_count);
}

static void block_is(const struct made *made, size_t index, struct tn_start_block wanted)
{
    const struct tn_start_block *blocks = made->program.start_blocks.items;

    assert_true(index < made->program.start_blocks.count);
    assert_int_equal(blocks[index].address, wanted.address);
    assert_int_equal(blocks[index].size, wanted.size);
    assert_int_equal(blocks[index].requested, wanted.requested);
    assert_int_equal(blocks[index].waiting, wanted.waiting);
    assert_int_equal(blocks[index].slot, TN_NO_SLOT);
}

static void notes_are(const struct made *made, const char *first, const char *second)
{
    assert_int_equal(made->program.note_count, (first != NULL) + (second != NULL));
    if (first) {
        assert_string_equal(made->program.notes[0], first);
    }
    if (second) {
        assert_string_equal(made->program.notes[1], second);
    }
}

/* A large segment of 20 MiB at A with these blocks. */
static struct tn_model_segment large_segment(const struct tn_model_block *blocks, size_t count)
{
    return (struct tn_model_segment){.address = A,
                                     .total_size = 20 * MIB,
                                     .stream = 5,
                                     .is_large = true,
                                     .blocks = blocks,
                                     .block_count = count};
}

static void a_trace_from_the_beginning_starts_with_nothing(void **state)
{
    static const struct tn_model_block blocks[] = {
        {.address = A, .size = 2 * MIB, .requested_size = 2 * MIB, .state = USED},
        {.address = A + 2 * MIB, .size = 18 * MIB, .state = UNUSED},
    };
    const struct tn_model_segment segment = large_segment(blocks, 2);
    static const struct trace_row rows[] = {
        {TN_TRACE_SEGMENT_ALLOC, A + 64 * MIB, 2 * MIB, 0},
        {TN_TRACE_ALLOC, A + 64 * MIB, 512, 0},
        {TN_TRACE_FREE_REQUESTED, A + 64 * MIB, 512, 0},
        {TN_TRACE_FREE_COMPLETED, A + 64 * MIB, 512, 0},
        {TN_TRACE_SEGMENT_FREE, A + 64 * MIB, 2 * MIB, 0},
        {TN_TRACE_SEGMENT_ALLOC, A, 20 * MIB, 5},
        {TN_TRACE_ALLOC, A, 2 * MIB, 5},
    };
    struct made made;

    (void)state;
    made_open(&made, rows, 7, &segment, 1);
    assert_int_equal(made.program.start_segments.count, 0);
    assert_int_equal(made.program.start_blocks.count, 0);
    assert_true(made.program.complete);
    notes_are(&made, NULL, NULL);
    made_close(&made);
}

/* Nothing in the trace touches it: it is what the file shows at the end. Another device's segments
 * are not looked at. */
static void the_final_state_stands_where_nothing_happened(void **state)
{
    static const struct tn_model_block blocks[] = {
        {.address = A, .size = 2 * MIB, .requested_size = 2000000, .state = USED},
        {.address = A + 2 * MIB, .size = 6 * MIB, .requested_size = 9, .state = UNUSED},
        {.address = A + 8 * MIB, .size = 12 * MIB, .requested_size = 11 * MIB, .state = WAITS},
    };
    static const struct tn_model_block small[] = {
        {.address = A + 32 * MIB, .size = 2 * MIB, .state = UNUSED}};
    const struct tn_model_segment segments[] = {
        {.address = A + 32 * MIB, .total_size = 2 * MIB, .blocks = small, .block_count = 1},
        large_segment(blocks, 3),
        {.address = A + 64 * MIB, .total_size = 2 * MIB, .device = 1},
    };
    static const struct trace_row rows[] = {{TN_TRACE_SNAPSHOT, 0, 0, 0}};
    struct made made;

    (void)state;
    made_open(&made, rows, 1, segments, 3);
    assert_int_equal(made.program.start_segments.count, 2); /* by address */
    segment_is(
        &made, 0,
        (struct tn_start_segment){
            .address = A, .size = 20 * MIB, .stream = 5, .is_large = true, .block_count = 2});
    segment_is(
        &made, 1,
        (struct tn_start_segment){.address = A + 32 * MIB, .size = 2 * MIB, .first_block = 2});
    assert_int_equal(made.program.start_blocks.count, 2);
    block_is(&made, 0,
             (struct tn_start_block){.address = A, .size = 2 * MIB, .requested = 2000000});
    block_is(&made, 1,
             (struct tn_start_block){
                 .address = A + 8 * MIB, .size = 12 * MIB, .requested = 11 * MIB, .waiting = true});
    assert_false(made.program.complete);
    notes_are(&made,
              "the trace begins mid-run: 2 segments (23068672 bytes) and 2 blocks existed "
              "before its first event; they were rebuilt from the final segments, and peaks are "
              "those of the recorded part",
              NULL);
    made_close(&made);
}

/* Before it was freed a block was in use, before its completion it waited, before it was handed out
 * it was not there. */
static void blocks_are_undone_entry_by_entry(void **state)
{
    static const struct tn_model_block blocks[] = {
        {.address = A, .size = 2 * MIB, .requested_size = 2 * MIB, .state = USED},
        {.address = A + 2 * MIB, .size = 2 * MIB, .requested_size = 2 * MIB, .state = WAITS},
        {.address = A + 4 * MIB, .size = 16 * MIB, .state = UNUSED},
    };
    const struct tn_model_segment segment = large_segment(blocks, 3);
    static const struct trace_row rows[] = {
        {TN_TRACE_FREE_COMPLETED, A + 8 * MIB, 2 * MIB, 5},
        {TN_TRACE_FREE_REQUESTED, A + 4 * MIB, 2 * MIB - 300, 5},
        {TN_TRACE_FREE_COMPLETED, A + 4 * MIB, 2 * MIB - 300, 5},
        {TN_TRACE_ALLOC, A, 2 * MIB, 5},
        {TN_TRACE_FREE_REQUESTED, A + 2 * MIB, 2 * MIB - 5, 5},
        {TN_TRACE_ALLOC, A + 12 * MIB, 2 * MIB, 5},
        {TN_TRACE_FREE_REQUESTED, A + 12 * MIB, 2 * MIB, 5},
        {TN_TRACE_FREE_COMPLETED, A + 12 * MIB, 2 * MIB, 5},
    };
    struct made made;

    (void)state;
    made_open(&made, rows, 8, &segment, 1);
    assert_int_equal(made.program.start_blocks.count, 3);
    block_is(
        &made, 0,
        (struct tn_start_block){.address = A + 2 * MIB, .size = 2 * MIB, .requested = 2 * MIB - 5});
    block_is(&made, 1,
             (struct tn_start_block){
                 .address = A + 4 * MIB, .size = 2 * MIB, .requested = 2 * MIB - 300});
    block_is(&made, 2,
             (struct tn_start_block){
                 .address = A + 8 * MIB, .size = 2 * MIB, .requested = 2 * MIB, .waiting = true});
    made_close(&made);
}

/* A segment that was given back was there before, with what is freed in it. */
static void segments_given_back_come_again(void **state)
{
    static const struct trace_row rows[] = {
        {TN_TRACE_FREE_REQUESTED, A + MIB, 512, 1},
        {TN_TRACE_FREE_COMPLETED, A + MIB, 512, 1},
        {TN_TRACE_SEGMENT_FREE, A, 2 * MIB, 1},
        {TN_TRACE_SEGMENT_FREE, A + 64 * MIB, 22 * MIB, 2},
        {TN_TRACE_SEGMENT_UNMAP, A + 128 * MIB, 20 * MIB, 3},
        {TN_TRACE_SEGMENT_MAP, A + 256 * MIB, 20 * MIB, 3},
        {TN_TRACE_SEGMENT_UNMAP, A + 256 * MIB, 20 * MIB, 3},
    };
    struct made made;

    (void)state;
    made_open(&made, rows, 7, NULL, 0);
    assert_int_equal(made.program.start_segments.count, 3);
    segment_is(
        &made, 0,
        (struct tn_start_segment){.address = A, .size = 2 * MIB, .stream = 1, .block_count = 1});
    segment_is(&made, 1,
               (struct tn_start_segment){.address = A + 64 * MIB,
                                         .size = 22 * MIB,
                                         .stream = 2,
                                         .is_large = true,
                                         .first_block = 1});
    segment_is(&made, 2,
               (struct tn_start_segment){.address = A + 128 * MIB,
                                         .size = 20 * MIB,
                                         .stream = 3,
                                         .is_large = true,
                                         .is_expandable = true,
                                         .first_block = 1});
    assert_int_equal(made.program.start_blocks.count, 1);
    block_is(&made, 0, (struct tn_start_block){.address = A + MIB, .size = 512, .requested = 512});
    made_close(&made);
}

/* The sizes that blocks get when only their request is known, by the kind of segment. `gap` bytes
 * lie between the rounded request and the next block, which was there all the time. */
static void a_size_follows_from_the_request(void **state)
{
    static const struct {
        bool is_expandable;
        uint64_t gap;
        uint64_t size; /* of a request of 5 MiB - 1 */
    } rows[] = {
        {false, MIB, 6 * MIB},       /* so small a rest is not split off */
        {false, MIB + 512, 5 * MIB}, /* a free block of its own */
        {false, 0, 5 * MIB},
        {true, 512, 5 * MIB},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct tn_model_block blocks[] = {
            {.address = A + 5 * MIB + rows[i].gap,
             .size = MIB,
             .requested_size = 2 * MIB,
             .state = USED},
        };
        struct tn_model_segment segment = large_segment(blocks, 1);
        const struct trace_row trace[] = {{TN_TRACE_FREE_REQUESTED, A, 5 * MIB - 1, 5},
                                          {TN_TRACE_FREE_COMPLETED, A, 5 * MIB - 1, 5}};
        struct made made;

        segment.is_expandable = rows[i].is_expandable;
        made_open(&made, trace, 2, &segment, 1);
        assert_int_equal(made.program.start_blocks.count, 2);
        block_is(
            &made, 0,
            (struct tn_start_block){.address = A, .size = rows[i].size, .requested = 5 * MIB - 1});
        block_is(&made, 1, /* more than its size was never asked for */
                 (struct tn_start_block){
                     .address = A + 5 * MIB + rows[i].gap, .size = MIB, .requested = MIB});
        made_close(&made);
    }
}

static void a_request_of_nothing_is_a_block_of_512(void **state)
{
    const struct tn_model_segment segment = {.address = A, .total_size = 2 * MIB};
    static const struct trace_row rows[] = {{TN_TRACE_FREE_REQUESTED, A, 0, 0},
                                            {TN_TRACE_FREE_REQUESTED, A + 2 * MIB - 512, MIB, 0}};
    struct made made;

    (void)state;
    made_open(&made, rows, 2, &segment, 1);
    assert_int_equal(made.program.start_blocks.count, 2);
    block_is(&made, 0, (struct tn_start_block){.address = A, .size = 512});
    block_is(&made, 1, /* ends with its segment */
             (struct tn_start_block){.address = A + 2 * MIB - 512, .size = 512, .requested = 512});
    made_close(&made);
}

static void what_contradicts_is_left_out_and_noted(void **state)
{
    static const struct tn_model_block blocks[] = {
        {.address = A - 512, .size = 512, .state = USED},  /* in no segment: silently */
        {.address = A + 100, .size = 512, .state = USED},  /* no multiple of 512 */
        {.address = A + 1024, .size = 100, .state = USED}, /* nor its size */
        {.address = A + 2 * MIB, .size = 2 * MIB, .requested_size = MIB, .state = USED},
        {.address = A + 30 * MIB, .size = 2 * MIB, .state = USED}, /* in no segment */
    };
    const struct tn_model_segment segments[] = {
        large_segment(blocks, 5),
        {.address = A + 64 * MIB, .total_size = 0},
        {.address = A + 65 * MIB, .total_size = 2 * MIB + 1},
        {.address = A + 66 * MIB + 1, .total_size = 2 * MIB},
        {.address = UINT64_MAX - 511, .total_size = 2 * MIB},
        {.address = 0, .total_size = 2 * MIB}, /* not looked at */
    };
    static const struct trace_row rows[] = {{TN_TRACE_SNAPSHOT, 0, 0, 0}};
    struct made made;

    (void)state;
    made_open(&made, rows, 1, segments, 6);
    assert_int_equal(made.program.start_segments.count, 1);
    assert_int_equal(made.program.start_blocks.count, 1);
    block_is(&made, 0,
             (struct tn_start_block){.address = A + 2 * MIB, .size = 2 * MIB, .requested = MIB});
    notes_are(
        &made,
        "the trace begins mid-run: 1 segments (20971520 bytes) and 1 blocks existed before its "
        "first event; they were rebuilt from the final segments, and peaks are those of the "
        "recorded part",
        "6 segments or blocks contradict others or have an impossible size; they were ignored");
    made_close(&made);
}

/* Memory that grows comes in pages, of which none has a part. */
static void parts_of_pages_are_left_out(void **state)
{
    static const struct tn_model_segment segments[] = {
        {.address = A, .total_size = 2 * MIB, .is_expandable = true},
        {.address = A + 10 * MIB, .total_size = 2 * MIB + 512, .is_expandable = true},
        {.address = A + 21 * MIB, .total_size = 2 * MIB, .is_expandable = true},
        {.address = A + 31 * MIB, .total_size = MIB}, /* has none */
    };
    static const struct trace_row rows[] = {{TN_TRACE_SNAPSHOT, 0, 0, 0}};
    struct made made;

    (void)state;
    made_open(&made, rows, 1, segments, 4);
    assert_int_equal(made.program.start_segments.count, 2);
    segment_is(&made, 0,
               (struct tn_start_segment){.address = A, .size = 2 * MIB, .is_expandable = true});
    segment_is(&made, 1, (struct tn_start_segment){.address = A + 31 * MIB, .size = MIB});
    assert_string_equal(
        made.program.notes[1],
        "2 segments or blocks contradict others or have an impossible size; they were ignored");
    made_close(&made);
}

/* Bytes that two segments share belong to one of them. */
static void segments_that_overlap_are_noted(void **state)
{
    static const struct tn_model_segment segments[] = {
        {.address = A, .total_size = 20 * MIB, .is_large = true},
        {.address = A + 10 * MIB, .total_size = 4 * MIB, .is_large = true},
        {.address = A + 30 * MIB, .total_size = 10 * MIB, .is_large = true, .is_expandable = true},
        {.address = A + 38 * MIB, .total_size = 4 * MIB, .is_large = true, .is_expandable = true},
    };
    static const struct trace_row rows[] = {{TN_TRACE_SEGMENT_UNMAP, A + 41 * MIB, 3 * MIB, 0}};
    struct made made;

    (void)state;
    made_open(&made, rows, 1, segments, 4);
    assert_int_equal(made.program.start_segments.count, 4);
    for (uint64_t i = 0; i < 3; i++) {
        static const uint64_t bounds[] = {0, 10, 14, 20};

        segment_is(&made, i,
                   (struct tn_start_segment){.address = A + bounds[i] * MIB,
                                             .size = (bounds[i + 1] - bounds[i]) * MIB,
                                             .is_large = true});
    }
    segment_is(
        &made, 3, /* touching pages are one */
        (struct tn_start_segment){
            .address = A + 30 * MIB, .size = 14 * MIB, .is_large = true, .is_expandable = true});
    assert_string_equal(
        made.program.notes[1],
        "3 segments or blocks contradict others or have an impossible size; they were ignored");
    made_close(&made);
}

/* Pages were mapped at once, unmapped in pieces, and mapped again as one. */
static void pages_are_undone_by_range(void **state)
{
    static const struct tn_model_block blocks[] = {{.address = A, .size = 60 * MIB}};
    static const struct tn_model_segment segments[] = {{.address = A,
                                                        .total_size = 60 * MIB,
                                                        .is_large = true,
                                                        .is_expandable = true,
                                                        .blocks = blocks,
                                                        .block_count = 1}};
    static const struct trace_row rows[] = {
        {TN_TRACE_SEGMENT_MAP, A, 60 * MIB, 0},
        {TN_TRACE_SEGMENT_UNMAP, A + 20 * MIB, 20 * MIB, 0},
        {TN_TRACE_SEGMENT_UNMAP, A, 20 * MIB, 0},
        {TN_TRACE_SEGMENT_MAP, A, 40 * MIB, 0},
    };
    struct made made;

    (void)state;
    made_open(&made, rows, 4, segments, 1);
    assert_true(made.program.complete);
    assert_int_equal(made.program.start_segments.count, 0);
    made_close(&made);
    made_open(&made, rows + 1, 3, segments, 1); /* what was mapped before the trace */
    assert_false(made.program.complete);
    uint64_t bytes = 0;

    for (size_t i = 0; i < made.program.start_segments.count; i++) {
        bytes += ((const struct tn_start_segment *)made.program.start_segments.items)[i].size;
    }
    assert_int_equal(bytes, 60 * MIB);
    made_close(&made);
}

static void private_pools_of_before_are_noted(void **state)
{
    static const struct tn_model_block blocks[] = {{.address = A, .size = 20 * MIB}};
    static const struct tn_model_segment segments[] = {{.address = A,
                                                        .total_size = 20 * MIB,
                                                        .is_large = true,
                                                        .pool = {.id = {0, 3}},
                                                        .blocks = blocks,
                                                        .block_count = 1}};
    static const struct trace_row rows[] = {{TN_TRACE_ALLOC, A, 2 * MIB, 0},
                                            {TN_TRACE_FREE_REQUESTED, A, 2 * MIB, 0},
                                            {TN_TRACE_FREE_COMPLETED, A, 2 * MIB, 0}};
    struct made made;

    (void)state;
    made_open(&made, rows, 3, segments, 1);
    assert_string_equal(
        made.program.notes[1],
        "1 segments of private pools (20971520 bytes) existed before the trace: when their pools "
        "were in use is unknown, so their free memory counts as the default pool's");
    made_close(&made);
}

static void an_allocation_that_vanished_is_noted(void **state)
{
    static const struct trace_row rows[] = {{TN_TRACE_SEGMENT_ALLOC, A, 2 * MIB, 0},
                                            {TN_TRACE_ALLOC, A, 512, 0}};
    struct made made;

    (void)state;
    made_open(&made, rows, 2, NULL, 0);
    assert_true(made.program.complete);
    notes_are(&made,
              "1 allocations of the trace (512 bytes) are neither freed in it nor in the final "
              "segments; their blocks count as used until their address is allocated again",
              NULL);
    made_close(&made);
}

static void every_host_failure_is_reported(void **state)
{
    static struct trace_row rows[300];
    struct made made;
    struct tarn_error error;
    enum tarn_status st = TARN_ERR_HOST_MEMORY;
    uint64_t failures = 0;

    (void)state;
    for (uint64_t i = 0; i < 100; i++) {
        const uint64_t address = A + i * 32 * MIB;

        rows[i] = (struct trace_row){TN_TRACE_FREE_REQUESTED, address, 20 * MIB, 0};
        rows[100 + i] = (struct trace_row){TN_TRACE_FREE_COMPLETED, address, 20 * MIB, 0};
        rows[200 + i] = (struct trace_row){TN_TRACE_SEGMENT_FREE, address, 20 * MIB, 0};
    }
    trace_open(&made.trace, rows, 300, NULL, 0);
    const uint64_t live = tarn_host_get_usage().live_bytes;

    for (uint64_t n = 1; st != TARN_OK; n++) {
        error.text[0] = '\0';
        tarn_host_fail_nth(n);
        st = made_rebuild(&made, &error);
        tarn_host_fail_nth(0);
        if (st) {
            assert_int_equal(st, TARN_ERR_HOST_MEMORY);
            assert_int_equal(error.status, st);
            assert_string_equal(error.text, "host out of memory");
            failures++;
        } else {
            assert_int_equal(made.program.start_segments.count, 100);
            assert_int_equal(made.program.start_blocks.count, 100);
        }
        tn_program_fini(&made.program);
        assert_int_equal(tarn_host_get_usage().live_bytes, live);
    }
    assert_true(failures >= 5);
    trace_close(&made.trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trace_from_the_beginning_starts_with_nothing),
        cmocka_unit_test(the_final_state_stands_where_nothing_happened),
        cmocka_unit_test(blocks_are_undone_entry_by_entry),
        cmocka_unit_test(segments_given_back_come_again),
        cmocka_unit_test(a_size_follows_from_the_request),
        cmocka_unit_test(a_request_of_nothing_is_a_block_of_512),
        cmocka_unit_test(what_contradicts_is_left_out_and_noted),
        cmocka_unit_test(parts_of_pages_are_left_out),
        cmocka_unit_test(segments_that_overlap_are_noted),
        cmocka_unit_test(pages_are_undone_by_range),
        cmocka_unit_test(private_pools_of_before_are_noted),
        cmocka_unit_test(an_allocation_that_vanished_is_noted),
        cmocka_unit_test(every_host_failure_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
