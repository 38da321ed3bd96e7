/* SPDX-License-Identifier: MIT */
#include "support/report.h"

#include "tarn/report.h"

static enum tarn_status frag(const void *context, const struct tarn_writer *writer,
                             struct tarn_error *error)
{
    const struct report_asked *asked = context;

    return tarn_report_frag(asked->snapshot, &asked->options, writer, error);
}

#define MIB ((uint64_t)1 << 20)

static void says(const struct report_asked *asked, const char *part)
{
    char *text = report_text(frag, asked);

    if (!strstr(text, part)) {
        fail_msg("\"%s\" is not in:\n%s", part, text);
    }
    free(text);
}

/* A segment of 100 MiB with 1 MiB in its middle, one of 40 MiB with 30 MiB, one of 2 MiB (small)
 * that two blocks of 100 and 200 bytes hold. Given back at the end. */
static const char pinned[] =
    "{'segments': ["
    "{'address': 1073741824, 'total_size': 104857600, 'device': 0, 'stream': 0,"
    " 'segment_type': 'large', 'blocks': []},"
    "{'address': 2147483648, 'total_size': 41943040, 'device': 0, 'stream': 0,"
    " 'segment_type': 'large', 'blocks': []}], 'device_traces': [["
    "{'action': 'segment_alloc', 'addr': 1073741824, 'size': 104857600, 'stream': 0},"
    "{'action': 'alloc', 'addr': 1115684864, 'size': 1048576, 'stream': 0, 'frames': ["
    " {'name': 'pin', 'filename': 'p.py', 'line': 1}]},"
    "{'action': 'segment_alloc', 'addr': 2147483648, 'size': 41943040, 'stream': 0},"
    "{'action': 'alloc', 'addr': 2147483648, 'size': 31457280, 'stream': 0, 'frames': ["
    " {'name': 'full', 'filename': 'f.py', 'line': 2}]},"
    "{'action': 'segment_alloc', 'addr': 3221225472, 'size': 2097152, 'stream': 0},"
    "{'action': 'alloc', 'addr': 3221225472, 'size': 100, 'stream': 0, 'frames': ["
    " {'name': 'tiny', 'filename': 't.py', 'line': 3}]},"
    "{'action': 'alloc', 'addr': 3221225984, 'size': 200, 'stream': 0, 'frames': ["
    " {'name': 'small', 'filename': 's.py', 'line': 4}]},"
    "{'action': 'segment_free', 'addr': 3221225472, 'size': 2097152, 'stream': 0}]]}";

static struct tarn_frag_result *compute(const struct report_asked *asked)
{
    struct tarn_frag_result *results;
    struct tarn_error error;
    size_t count;

    assert_int_equal(tarn_frag_compute(asked->snapshot, &asked->options, &results, &count, &error),
                     TARN_OK);
    assert_int_equal(count, 1);
    return results;
}

static void what_pins(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(pinned);
    struct tarn_selection selection = {.struct_size = sizeof selection, .at = {TARN_AT_EVENT, 6}};
    const struct report_asked asked = {
        snapshot, {.struct_size = sizeof asked.options, .selection = &selection, .rows = 1}};
    struct tarn_frag_result *frag = compute(&asked);

    (void)state;
    assert_int_equal(frag->at.event, 6);
    assert_int_equal(frag->state.reserved, 142 << 20);
    assert_int_equal(frag->state.rounding, 724);
    assert_int_equal(frag->state.slack, 0);
    assert_int_equal(frag->state.free, (111 << 20) - 1024);
    assert_int_equal(frag->state.largest_free, 59 << 20);
    assert_int_equal(frag->state.free_pieces, 4);
    assert_int_equal(frag->state.stuck, frag->state.free);
    assert_int_equal(frag->state.largest_stuck, 59 << 20);
    assert_int_equal(frag->state.scattered, frag->state.stuck - (59 << 20));
    assert_int_equal(frag->state.reserved, frag->state.requested + frag->state.rounding +
                                               frag->state.slack + frag->state.free);
    assert_int_equal(frag->pool_count, 2);
    assert_int_equal(frag->row_count, 1);
    assert_int_equal(frag->rows[0].address, 0x40000000);
    assert_int_equal(frag->rows[0].unused, 103809024);
    assert_string_equal(frag->rows[0].largest_block.text, "p.py:1:pin");
    assert_int_equal(frag->other_count, 1);
    assert_int_equal(frag->others.blocks, 2);
    assert_int_equal(frag->total.blocks, 3);
    assert_int_equal(frag->state_count, 8);
    assert_false(frag->is_of_all_blocks);
    tarn_report_destroy(frag);
    tarn_snapshot_destroy(snapshot);
}

static void as_text(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(pinned);
    struct report_asked asked = {snapshot, {.struct_size = sizeof asked.options}};
    struct tarn_selection selection = {.struct_size = sizeof selection, .at = {TARN_AT_EVENT, 6}};

    (void)state;
    says(&asked, "memory: 142.00 MiB reserved, 31.00 MiB requested, at event 4 of 8\n");
    asked.options.selection = &selection;
    says(&asked, "   31.00 MiB   21.8%  requested by allocated blocks\n"
                 "       724 B    0.0%  internal: rounded up to 512 bytes\n"
                 "         0 B    0.0%  internal: remainders that were not split off\n"
                 "         0 B    0.0%  free: can be returned to the device at once\n"
                 "  111.00 MiB   78.2%  free: stuck beside live blocks\n"
                 "  142.00 MiB  100.0%  reserved\n"
                 "  stuck in 4 pieces, the largest of 59.00 MiB: 46.8% of it is in smaller ones\n");
    says(&asked, "pinned: 2 segments of which blocks use at most an eighth\n"
                 "      unused        used    blocks  segment             largest block allocated "
                 "by\n"
                 "   99.00 MiB    1.00 MiB         1  0x40000000          p.py:1:pin\n"
                 "    2.00 MiB    1.00 KiB         2  0xc0000000          s.py:4:small\n"
                 "  101.00 MiB    1.00 MiB         3                      total\n");
    selection.size_min = 1000;
    says(&asked, "segments are shared, so these figures cover all blocks");
    tarn_snapshot_destroy(snapshot);
}

static void nothing_pins(void **state)
{
    struct tarn_snapshot *snapshot =
        report_parse("{'segments': [], 'device_traces': [["
                     "{'action': 'alloc', 'addr': 512, 'size': 9, 'stream': 0}]]}");
    const struct report_asked asked = {snapshot, {.struct_size = sizeof asked.options}};
    struct tarn_frag_result *frag = compute(&asked);

    (void)state;
    assert_int_equal(frag->row_count, 0);
    assert_int_equal(frag->state.free_pieces, 0);
    says(&asked, "no segment is pinned by a few small blocks\n");
    says(&asked, "         0 B    0.0%  free: stuck beside live blocks\n"
                 "         0 B    0.0%  reserved\n\n");
    tarn_report_destroy(frag);
    tarn_snapshot_destroy(snapshot);
}

/* Memory of each kind: an empty segment of the main stream, one of it with a block, one of a
 * smaller stream with a block, an empty private pool, and pages of an expandable segment of which
 * the middle ones can be unmapped. */
static void what_is_free_is_divided(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(
        "{'segments': ["
        "{'address': 1073741824, 'total_size': 104857600, 'stream': 0, 'segment_type': 'large',"
        " 'blocks': [{'size': 104857600, 'state': 'inactive'}]},"
        "{'address': 2147483648, 'total_size': 31457280, 'stream': 0, 'segment_type': 'large',"
        " 'blocks': [{'size': 10485760, 'state': 'inactive'},"
        "  {'size': 12582912, 'requested_size': 12582912, 'state': 'active_allocated'},"
        "  {'size': 8388608, 'state': 'inactive'}]},"
        "{'address': 3221225472, 'total_size': 20971520, 'stream': 7, 'segment_type': 'large',"
        " 'blocks': [{'size': 2097152, 'requested_size': 2097152, 'state': 'active_allocated'},"
        "  {'size': 18874368, 'state': 'inactive'}]},"
        "{'address': 4294967296, 'total_size': 20971520, 'stream': 0, 'segment_type': 'large',"
        " 'segment_pool_id': [0, 1], 'blocks': [{'size': 20971520, 'state': 'inactive'}]},"
        "{'address': 8589934592, 'total_size': 83886080, 'stream': 0, 'segment_type': 'large',"
        " 'is_expandable': true, 'blocks': ["
        "  {'size': 5242880, 'requested_size': 5242880, 'state': 'active_allocated'},"
        "  {'size': 73400320, 'state': 'inactive'},"
        "  {'size': 5242880, 'requested_size': 5242880, 'state': 'active_allocated'}]}],"
        " 'device_traces': [[{'action': 'snapshot', 'addr': 0, 'size': 0, 'stream': 0}]]}");
    const struct report_asked asked = {snapshot, {.struct_size = sizeof asked.options}};
    struct tarn_frag_result *frag = compute(&asked);
    const struct tarn_frag_state *found = &frag->state;

    (void)state;
    assert_int_equal(found->releasable, 100 * MIB + 40 * MIB);
    assert_int_equal(found->stuck, 10 * MIB + 8 * MIB + 15 * MIB + 15 * MIB);
    assert_int_equal(found->stuck_pieces, 4);
    assert_int_equal(found->largest_stuck, 15 * MIB);
    assert_int_equal(found->scattered, 33 * MIB);
    assert_int_equal(found->elsewhere, 18 * MIB + 20 * MIB);
    assert_int_equal(found->free, found->releasable + found->stuck + found->elsewhere);
    says(&asked, "   38.00 MiB   15.2%  free: held by other streams or private pools\n");
    tarn_report_destroy(frag);
    tarn_snapshot_destroy(snapshot);
}

/* Blocks that the file says lie in no segment. */
static void outside(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(pinned);
    const struct tarn_selection selection = {.struct_size = sizeof selection,
                                             .at = {.kind = TARN_AT_END}};
    const struct report_asked asked = {
        snapshot, {.struct_size = sizeof asked.options, .selection = &selection}};
    struct tarn_frag_result *frag = compute(&asked);

    (void)state;
    assert_int_equal(frag->outside, 300);
    tarn_report_destroy(frag);
    tarn_snapshot_destroy(snapshot);
}

static void failures_leave_nothing(void **state)
{
    (void)state;
    report_leaves_nothing(frag, "cudagraph", 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_pins),    cmocka_unit_test(as_text),
        cmocka_unit_test(nothing_pins), cmocka_unit_test(what_is_free_is_divided),
        cmocka_unit_test(outside),      cmocka_unit_test(failures_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
