/* SPDX-License-Identifier: MIT */
#include "support/report.h"

#include "tarn/report.h"

static enum tarn_status frag(const void *context, const struct tarn_writer *writer,
                             struct tarn_error *error)
{
    const struct report_asked *asked = context;

    return tarn_report_frag(asked->snapshot, &asked->options, writer, error);
}

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

static void what_pins(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(pinned);
    struct report_asked asked = {snapshot, {.struct_size = sizeof asked.options}};

    (void)state;
    says(&asked, "then: 142.0MiB reserved, 31.0MiB allocated, at event 4 of 8\n");
    struct tarn_selection selection = {.struct_size = sizeof selection, .at = {TARN_AT_ENTRY, 6}};

    asked.options.selection = &selection;
    says(&asked, "     31.0MiB   21.8%  requested by allocated blocks\n"
                 "      724.0B    0.0%  internal: rounded up to 512 bytes\n"
                 "        0.0B    0.0%  internal: behind blocks, too little to split off\n"
                 "    111.0MiB   78.2%  free in segments\n"
                 "    142.0MiB  100.0%  reserved\n"
                 "  largest free piece: 59.0MiB of 4, so 46.8% of what is free is fragmented\n");
    says(&asked, "pinned: 2 segments whose blocks take an eighth of them at most\n"
                 "      unused        used    blocks  segment             largest block allocated "
                 "by\n"
                 "     99.0MiB      1.0MiB         1  0x40000000          p.py:1:pin\n"
                 "      2.0MiB      1.0KiB         2  0xc0000000          s.py:4:small\n"
                 "    101.0MiB      1.0MiB         3                      total\n");
    asked.options.rows = 1;
    says(&asked, "      2.0MiB      1.0KiB         2                      others (1 segments)\n");
    asked.options.format = TARN_REPORT_JSON;
    says(&asked, "\"unused_bytes\": 103809024,\n");
    asked.options.format = TARN_REPORT_TEXT;
    selection.size_min = 1000;
    says(&asked, "segments are shared by blocks, so these are of all blocks");
    tarn_snapshot_destroy(snapshot);
}

static void nothing_pins(void **state)
{
    struct tarn_snapshot *snapshot =
        report_parse("{'segments': [], 'device_traces': [["
                     "{'action': 'alloc', 'addr': 512, 'size': 9, 'stream': 0}]]}");
    const struct report_asked asked = {snapshot, {.struct_size = sizeof asked.options}};

    (void)state;
    says(&asked, "no segment is pinned by few small blocks\n");
    says(&asked, "largest free piece: 0.0B of 0, so 0.0% of what is free is fragmented\n");
    tarn_snapshot_destroy(snapshot);
}

/* Blocks that the file says lie in no segment. */
static void outside(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(pinned);
    struct tarn_selection selection = {.struct_size = sizeof selection,
                                       .at = {.kind = TARN_AT_END}};
    const struct report_asked asked = {
        snapshot, {.struct_size = sizeof asked.options, .selection = &selection}};

    (void)state;
    says(&asked, "  300.0B more allocated in no segment that the file knows\n");
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
        cmocka_unit_test(what_pins),
        cmocka_unit_test(nothing_pins),
        cmocka_unit_test(outside),
        cmocka_unit_test(failures_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
