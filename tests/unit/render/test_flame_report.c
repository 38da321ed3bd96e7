/* SPDX-License-Identifier: MIT */
#include "support/report.h"

#include "tarn/report.h"

static const char *const names[] = {"tiny",         "gpt2_varlen",   "gpt2_varlen_expandable",
                                    "resnet_sizes", "multistream",   "cudagraph",
                                    "oom",          "llama_generate"};

struct asked {
    const struct tarn_snapshot *before; /* NULL: one snapshot */
    const struct tarn_snapshot *snapshot;
    enum tarn_flame_view view;
    struct tarn_flame_options options;
};

static const struct tarn_flame_options folded = {.struct_size = sizeof folded, .folded = true};

static enum tarn_status flame(const void *context, const struct tarn_writer *writer,
                              struct tarn_error *error)
{
    const struct asked *asked = context;

    return asked->before
               ? tarn_report_compare(asked->before, asked->snapshot, &asked->options, writer, error)
               : tarn_report_flame(asked->snapshot, asked->view, &asked->options, writer, error);
}

static void equals_golden(const struct asked *asked, const char *name, const char *kind)
{
    char golden_name[128];

    (void)snprintf(golden_name, sizeof golden_name, "snapshots/%s.%s.folded.gz", name, kind);
    struct test_file golden = test_file_read(golden_name);
    report_says(flame, asked, (char *)golden.bytes);
    free(golden.bytes);
}

static void folded_stacks_equal_the_goldens(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct tarn_snapshot *snapshot = report_load(names[i]);
        struct asked asked = {NULL, snapshot, TARN_FLAME_SEGMENTS, folded};

        equals_golden(&asked, names[i], "segments");
        asked.view = TARN_FLAME_MEMORY;
        equals_golden(&asked, names[i], "memory");
        tarn_snapshot_destroy(snapshot);
    }
}

static void comparisons_equal_the_goldens(void **state)
{
    static const char *const pairs[] = {"cudagraph", "llama_generate", "oom"};

    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        char before_name[128];

        (void)snprintf(before_name, sizeof before_name, "%s.before", pairs[i]);
        struct tarn_snapshot *before = report_load(before_name);
        struct tarn_snapshot *after = report_load(pairs[i]);
        const struct asked asked = {before, after, TARN_FLAME_SEGMENTS, folded};

        equals_golden(&asked, pairs[i], "compare");
        tarn_snapshot_destroy(after);
        tarn_snapshot_destroy(before);
    }
}

/* The segments of the description of PyTorch's tool, and its text. */
static const char two_segments[] =
    "{'segments': [{'address': 139637976727552, 'total_size': 2097152, 'stream': 0, 'device': 0,"
    " 'blocks': [{'size': 1024, 'requested_size': 1000, 'state': 'active_allocated', 'frames': ["
    "  {'name': 'inner', 'filename': '/a/b/x.py', 'line': 7},"
    "  {'name': 'PyEval_Foo', 'filename': 'ceval.c', 'line': 1},"
    "  {'name': 'outer', 'filename': '/a/main.py', 'line': 99}]},"
    " {'size': 512, 'requested_size': 400, 'state': 'active_pending_free', 'frames': []},"
    " {'size': 2095616, 'requested_size': 0, 'state': 'inactive', 'frames': []}]},"
    "{'address': 139638245163008, 'total_size': 94371840, 'stream': 12, 'device': 1,"
    " 'blocks': [{'size': 31457280, 'requested_size': 31457180, 'state': 'active_allocated',"
    "  'frames': [{'name': 'inner', 'filename': '/a/b/x.py', 'line': 7}]},"
    " {'size': 31457280, 'requested_size': 30408704, 'state': 'active_allocated', 'frames': []},"
    " {'size': 31457280, 'requested_size': 7, 'state': 'inactive', 'frames': []}]}],"
    "'device_traces': []}";

static void every_kind_of_block(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(two_segments);
    struct asked asked = {NULL, snapshot, TARN_FLAME_SEGMENTS, folded};
    static const char first[] =
        "stream_0;seg_139637976727552;active_allocated;main.py:99:outer;x.py:7:inner 1000\n"
        "stream_0;seg_139637976727552;active_allocated;<gaps> 24\n"
        "stream_0;seg_139637976727552;active_pending_free;<non-python> 400\n"
        "stream_0;seg_139637976727552;active_pending_free;<gaps> 112\n"
        "stream_0;seg_139637976727552;inactive;<non-python> 0\n"
        "stream_0;seg_139637976727552;inactive;<gaps> 2095616\n";
    static const char second[] =
        "stream_12;seg_139638245163008;active_allocated;x.py:7:inner 31457180\n"
        "stream_12;seg_139638245163008;active_allocated;<gaps> 100\n"
        "stream_12;seg_139638245163008;active_allocated;<non-python> 30408704\n"
        "stream_12;seg_139638245163008;active_allocated;<gaps> 1048576\n"
        "stream_12;seg_139638245163008;inactive;<non-python> 7\n"
        "stream_12;seg_139638245163008;inactive;<gaps> 31457273\n";
    char both[sizeof first + sizeof second];

    (void)state;
    (void)snprintf(both, sizeof both, "%s%s", first, second);
    report_says(flame, &asked, both);
    asked.options.one_device = true;
    asked.options.device = 1;
    report_says(flame, &asked, second);
    asked.options.device = 2;
    report_says(flame, &asked, "");
    tarn_snapshot_destroy(snapshot);
}

static void the_old_form_and_odd_sizes(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(
        "[{'address': 4096, 'total_size': 2560, 'blocks': [{'size': 2048,"
        "  'state': 'active_allocated', 'history': [{'addr': 4096, 'real_size': 100, 'frames': ["
        "   {'name': 'inner', 'filename': 'x.py', 'line': 7}]},"
        "   {'addr': 4096, 'real_size': 50}]},"
        " {'size': 512, 'requested_size': 600, 'state': 'active_allocated', 'frames': ["
        "   {'name': 'a\\u001bb\\nc', 'filename': '_start.py', 'line': -1},"
        "   {'name': 'train_start', 'filename': 'y.py', 'line': 1}]}]}]");
    const struct asked asked = {NULL, snapshot, TARN_FLAME_MEMORY, folded};

    (void)state;
    report_says(flame, &asked,
                "stream_0;active_allocated;x.py:7:inner 100\n"
                "stream_0;active_allocated;<no-context> 50\n"
                "stream_0;active_allocated;<gaps> 1898\n"
                "stream_0;active_allocated;_start.py:-1:a\\x1bb\\x0ac 600\n"
                "stream_0;active_allocated;<gaps> -88\n");
    tarn_snapshot_destroy(snapshot);
}

/* ---- pictures ---- */

static size_t count(const char *text, const char *part)
{
    size_t found = 0;

    for (const char *at = text; (at = strstr(at, part)) != NULL; at += strlen(part)) {
        found++;
    }
    return found;
}

/* The part of the file before its script. */
static char *boxes_of(const struct asked *asked)
{
    char *text = report_text(flame, asked);
    char *script = strstr(text, "<script>");

    assert_non_null(script);
    assert_int_equal(count(script, "<script"), 1);
    assert_non_null(strstr(script, "]]></script>\n</svg>\n"));
    *script = '\0';
    return text;
}

static void a_picture_has_a_box_for_every_path(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(two_segments);
    const struct asked asked = {
        NULL, snapshot, TARN_FLAME_MEMORY, {.struct_size = sizeof asked.options}};
    char *text = boxes_of(&asked);

    (void)state;
    assert_non_null(strstr(text, "<title>all (92.00 MiB, 100.00%, 96468992 bytes)</title>"));
    assert_non_null(strstr(text, "<title>stream_12 (90.00 MiB, 97.83%, 94371840 bytes)</title>"));
    assert_non_null(
        strstr(text, "<title>x.py:7:inner (30.00 MiB, 32.61%, 31457180 bytes)</title>"));
    assert_non_null(strstr(text, "data-o=\"94371840\" data-b=\"2097152\" data-d=\"1\""));
    /* Root; stream 12, its states, x.py, non-python, gaps, gaps; stream 0, inactive, gaps. The
     * rest is 1,543 bytes. */
    assert_int_equal(count(text, "<g class=\"f\""), 11);
    assert_non_null(strstr(text, "; 8 boxes too narrow to draw (1.51 KiB)"));
    free(text);
    tarn_snapshot_destroy(snapshot);
}

static void hostile_names_stay_text(void **state)
{
    struct tarn_snapshot *snapshot =
        report_parse("[{'address': 1, 'total_size': 8192, 'blocks': [{'size': 8192,"
                     " 'requested_size': 8192, 'state': 'active_allocated', 'frames': ["
                     " {'name': '</script><script>alert(1)</script>\\u0000\\u0008\\u202e]]>',"
                     "  'filename': '</title><g onload=\\\"x()\\\">&', 'line': 1}]}]}]");
    struct asked asked = {
        NULL, snapshot, TARN_FLAME_SEGMENTS, {.struct_size = sizeof asked.options}};
    static const char turn[] = {'\xe2', '\x80', '\xae', '\0'}; /* U+202E */
    char *text = boxes_of(&asked);

    (void)state;
    assert_null(strstr(text, "alert(1)</script>"));
    assert_null(strstr(text, "onload=\""));
    assert_null(strstr(text, "]]>"));
    assert_null(strstr(text, turn));
    assert_non_null(strstr(text, "&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;"
                                 "\\x00\\x08\\u202e]]&gt;"));
    assert_int_equal(count(text, "<title>"), count(text, "</title>"));
    free(text);
    tarn_snapshot_destroy(snapshot);
}

/* The flame graph of one block whose function's name is `part`, so many times. */
static char *boxes_of_name(const char *part, int times)
{
    char json[20000] = "[{'address': 1, 'total_size': 1, 'blocks': [{'size': 1,"
                       " 'requested_size': 1, 'state': 'active_allocated', 'frames': ["
                       " {'name': '";
    for (int i = 0; i < times; i++) {
        (void)snprintf(json + strlen(json), sizeof json - strlen(json), "%s", part);
    }
    (void)snprintf(json + strlen(json), sizeof json - strlen(json),
                   "', 'filename': 'f', 'line': 1}]}]}]");
    struct tarn_snapshot *snapshot = report_parse(json);
    const struct asked asked = {
        NULL, snapshot, TARN_FLAME_MEMORY, {.struct_size = sizeof asked.options}};
    char *text = boxes_of(&asked);

    tarn_snapshot_destroy(snapshot);
    return text;
}

static void long_names_are_cut_between_characters(void **state)
{
    char *text = boxes_of_name("\xe4\xb8\x80", 3000);

    (void)state;
    assert_non_null(strstr(text, "\xe4\xb8\x80... (1 B"));
    assert_non_null(strstr(text, "\xe4\xb8\x80..</text>"));
    free(text);
}

/* A name may have half of a surrogate pair, as JSON can write it: its bytes count one by one. */
static void half_a_character_is_cut_as_well(void **state)
{
    char *text = boxes_of_name("\\ud800", 400);

    (void)state;
    assert_non_null(strstr(text, "\\ud800"));
    assert_non_null(strstr(text, "..</text>"));
    assert_null(strstr(text, "\xed"));
    free(text);
}

static void an_empty_picture(void **state)
{
    struct tarn_snapshot *snapshot = report_parse("[]");
    const struct asked asked = {
        NULL, snapshot, TARN_FLAME_MEMORY, {.struct_size = sizeof asked.options}};
    char *text = boxes_of(&asked);

    (void)state;
    assert_non_null(strstr(text, "0 B in total"));
    assert_null(strstr(text, "<g "));
    free(text);
    tarn_snapshot_destroy(snapshot);
}

/* ---- lists ---- */

static enum tarn_status lists(const void *context, const struct tarn_writer *writer,
                              struct tarn_error *error)
{
    const struct asked *asked = context;

    return tarn_report_compare_lists(asked->before, asked->snapshot, NULL, writer, NULL, error);
}

static void lists_are_in_order(void **state)
{
    struct tarn_snapshot *before = report_load("cudagraph.before");
    struct tarn_snapshot *after = report_load("cudagraph");
    struct tarn_snapshot *other = report_load("tiny");
    struct test_collect collect = {0};
    const struct tarn_writer writer = {test_collect_write, &collect};
    const struct asked asked = {before, after, TARN_FLAME_SEGMENTS, folded};
    struct tarn_compare_counts counts;

    (void)state;
    report_says(lists, &asked,
                "only_before = []\nonly_after = [140703095062528, 140703128616960,"
                " 140703229280256, 140703260737536, 140703363497984, 140704586137600,"
                " 140704615497728, 140704630177792, 140704657440768, 140704688898048,"
                " 140704703578112, 140704724549632, 140704743424000, 140704760201216,"
                " 140704774881280, 140704806338560, 140704833601536, 140704835698688]\n");
    assert_int_equal(tarn_report_compare_lists(other, after, NULL, &writer, &counts, NULL),
                     TARN_OK);
    assert_int_equal(counts.before, 3);
    assert_int_equal(counts.only_before, 3);
    assert_int_equal(counts.only_after, counts.after);
    assert_int_equal(counts.common_addresses, 0);
    free(collect.text);
    collect.text = NULL;
    collect.size = 0;

    struct tarn_snapshot *low = report_parse(
        "[{'address': 4096, 'total_size': 512, 'blocks': [{'size': 512, 'state': 'inactive'}]}]");
    struct tarn_snapshot *high = report_parse(
        "[{'address': 8192, 'total_size': 512, 'blocks': [{'size': 512, 'state': 'inactive'}]},"
        "{'address': 4096, 'total_size': 1024, 'blocks': [{'size': 1024, 'state': 'inactive'}]}]");

    assert_int_equal(tarn_report_compare_lists(high, low, NULL, &writer, &counts, NULL), TARN_OK);
    assert_string_equal(collect.text, "only_before = [4096, 8192]\nonly_after = [4096]\n");
    assert_int_equal(counts.common_addresses, 1); /* which has another size */
    assert_int_equal(tarn_report_compare_lists(high, other, NULL, &writer, &counts, NULL), TARN_OK);
    assert_int_equal(counts.only_before, 2);
    tarn_snapshot_destroy(high);
    high = report_parse("[]");
    assert_int_equal(tarn_report_compare_lists(low, high, NULL, &writer, &counts, NULL), TARN_OK);
    assert_int_equal(counts.only_before, 1);
    assert_int_equal(counts.after, 0);
    tarn_snapshot_destroy(high);
    tarn_snapshot_destroy(low);
    assert_true(report_fails_cleanly(lists, &asked) >= 2);
    report_is_refused(lists, &asked);
    free(collect.text);
    tarn_snapshot_destroy(other);
    tarn_snapshot_destroy(after);
    tarn_snapshot_destroy(before);
}

static void failures_leave_nothing(void **state)
{
    struct tarn_snapshot *before = report_load("oom.before");
    struct tarn_snapshot *snapshot = report_load("cudagraph");
    struct asked asked = {
        before, snapshot, TARN_FLAME_SEGMENTS, {.struct_size = sizeof asked.options}};

    (void)state;
    assert_true(report_fails_cleanly(flame, &asked) >= 8);
    report_is_refused(flame, &asked);
    asked.options.folded = true;
    report_is_refused(flame, &asked);
    asked.before = NULL;
    report_is_refused(flame, &asked);
    asked.options.folded = false;
    assert_true(report_fails_cleanly(flame, &asked) >= 6);
    tarn_snapshot_destroy(snapshot);
    tarn_snapshot_destroy(before);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folded_stacks_equal_the_goldens),
        cmocka_unit_test(comparisons_equal_the_goldens),
        cmocka_unit_test(every_kind_of_block),
        cmocka_unit_test(the_old_form_and_odd_sizes),
        cmocka_unit_test(a_picture_has_a_box_for_every_path),
        cmocka_unit_test(hostile_names_stay_text),
        cmocka_unit_test(long_names_are_cut_between_characters),
        cmocka_unit_test(half_a_character_is_cut_as_well),
        cmocka_unit_test(an_empty_picture),
        cmocka_unit_test(lists_are_in_order),
        cmocka_unit_test(failures_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
