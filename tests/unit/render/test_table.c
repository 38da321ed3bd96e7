/* SPDX-License-Identifier: MIT */
/* One table in every format. */
#include "support/collect.h"

#include "render/share_bar.h"
#include "render/table.h"

struct sample {
    struct tarn_group group;
    uint64_t bytes;
    uint64_t part;
    uint64_t event;
    int64_t change;
    uint64_t pool[2];
    bool is_free;
};

#define AT(member) .at = offsetof(struct sample, member)
#define OF(member) .of = offsetof(struct sample, member)

static const struct tn_row_column columns[] = {
    {"bytes", "size", TN_ROW_SIZE, 0, AT(bytes)},
    {NULL, "share", TN_ROW_SHARE, 6, AT(bytes)},
    {"half", "half", TN_ROW_PERCENT, 6, AT(part), OF(bytes)},
    {"event", "event", TN_ROW_EVENT, 6, AT(event), .in = TN_IN_ROWS},
    {"change", "change", TN_ROW_CHANGE, 0, AT(change)},
    {"pool", NULL, TN_ROW_NUMBERS, 0, AT(pool), .in = TN_IN_ROWS},
    {"is_free", NULL, TN_ROW_BOOL, 0, AT(is_free), .in = TN_IN_ROWS},
    {NULL, "", TN_ROW_GROUP, 0, AT(group)},
    {0}};

struct place {
    int device;
};

static const struct tn_row_column context[] = {
    {"device", NULL, TN_ROW_INT, 0, .at = offsetof(struct place, device)}, {0}};

static const struct tn_row_table table = {
    .columns = columns, .row_size = sizeof(struct sample), .context = context, .has_others = true};

static const struct tn_row_table *const tables[] = {&table, NULL};

static const struct tarn_report_frame frames[] = {{"f\"", 2, "=a.py", 5, 1},
                                                  {"main", 4, "m,.py", 5, 20}};

static const struct sample rows[] = {
    {{.text = "a < b", .frames = frames, .frame_count = 2}, 1536, 768, 7, -512, {0, 3}, true},
    {{.text = "(no frames)"}, 512, 0, TARN_NONE, 1, {0, 0}, false}};
static const struct sample others = {.bytes = 1024, .part = 512};
static const struct sample total = {.bytes = 3072, .part = 1280, .change = -511};

static void comes_out_with(const struct tarn_report_options *options, const char *expected)
{
    const struct tn_rows all = {
        .rows = rows, .count = 2, .others = &others, .other_count = 4, .total = &total};
    const struct place place = {1};
    struct test_collect collect = {.text = calloc(1, 1)};
    const struct tarn_writer writer = {test_collect_write, &collect};
    struct tn_document document;

    tn_document_begin(&document, options, "test/1", tables, &writer);
    document.context = &place;
    if (document.json) {
        tn_json_open_object(document.json, "peak");
    }
    tn_table_put(&document, &table, "peak.groups", &all);
    assert_int_equal(tn_document_end(&document, NULL), TARN_OK);
    assert_string_equal(collect.text, expected);
    free(collect.text);
}

static void comes_out(enum tarn_report_format format, const char *expected)
{
    const struct tarn_report_options options = {.struct_size = sizeof options, .format = format};

    comes_out_with(&options, expected);
}

static void text(void **state)
{
    (void)state;
    comes_out(TARN_REPORT_TEXT,
              "        size   share    half   event       change  allocated by\n"
              "    1.50 KiB   50.0%   50.0%       7       -512 B  a < b\n"
              "       512 B   16.7%    0.0%       -         +1 B  (no frames)\n"
              "    1.00 KiB   33.3%   50.0%                 +0 B  others (4 stacks)\n"
              "    3.00 KiB  100.0%   41.7%               -511 B  total\n");
}

/* Where half the line is left for names. */
static void bars(void **state)
{
    struct tarn_report_options options = {.struct_size = sizeof options, .columns = 130};

    (void)state;
    comes_out_with(
        &options,
        "        size   share                 half   event       change  allocated by\n"
        "    1.50 KiB   50.0% ######         50.0%       7       -512 B  a < b\n"
        "       512 B   16.7% ##              0.0%       -         +1 B  (no frames)\n"
        "    1.00 KiB   33.3% ####           50.0%                 +0 B  others (4 stacks)\n"
        "    3.00 KiB  100.0%                41.7%               -511 B  total\n");
    options.is_utf8 = true;
    comes_out_with(
        &options,
        "        size   share                 half   event       change  allocated by\n"
        "    1.50 KiB   50.0% ██████         50.0%       7       -512 B  a < b\n"
        "       512 B   16.7% ██              0.0%       -         +1 B  (no frames)\n"
        "    1.00 KiB   33.3% ████           50.0%                 +0 B  others (4 stacks)\n"
        "    3.00 KiB  100.0%                41.7%               -511 B  total\n");
    options.columns = 127;
    comes_out_with(&options,
                   "        size   share    half   event       change  allocated by\n"
                   "    1.50 KiB   50.0%   50.0%       7       -512 B  a < b\n"
                   "       512 B   16.7%    0.0%       -         +1 B  (no frames)\n"
                   "    1.00 KiB   33.3%   50.0%                 +0 B  others (4 stacks)\n"
                   "    3.00 KiB  100.0%   41.7%               -511 B  total\n");
}

static void bar_is(double percent, unsigned width, bool is_utf8, const char *expected)
{
    struct test_collect collect = {.text = calloc(1, 1)};
    const struct tarn_writer writer = {test_collect_write, &collect};
    struct tn_text_out out;

    tn_text_init(&out, &writer);
    tn_share_bar_put(&out, percent, width, is_utf8);
    assert_int_equal(tn_text_finish(&out), TARN_OK);
    assert_string_equal(collect.text, expected);
    free(collect.text);
}

static void bars_of_any_length(void **state)
{
    (void)state;
    bar_is(0, 3, true, "   ");
    bar_is(0.01, 3, true, "▏  ");
    bar_is(50, 3, true, "█▌ ");
    bar_is(100, 3, true, "███");
    bar_is(0.01, 3, false, "   ");
    bar_is(50, 3, false, "## ");
    bar_is(100, 3, false, "###");
    assert_int_equal(tn_share_bar_width(0, 2), 0);
    assert_int_equal(tn_share_bar_width(80, 33), 6);
    assert_int_equal(tn_share_bar_width(80, 34), 0);
    assert_int_equal(tn_share_bar_width(100, 37), 12);
}

static void json_lines(void **state)
{
    (void)state;
    comes_out(
        TARN_REPORT_JSONL,
        "{\"device\":1,\"table\":\"peak.groups\",\"part\":\"row\",\"bytes\":1536,\"half\":768,"
        "\"event\":7,\"change\":-512,\"pool\":[0,3],\"is_free\":true,\"frames\":[{\"name\":"
        "\"f\\\"\",\"filename\":\"=a.py\",\"line\":1},{\"name\":\"main\",\"filename\":\"m,.py\","
        "\"line\":20}]}\n"
        "{\"device\":1,\"table\":\"peak.groups\",\"part\":\"row\",\"bytes\":512,\"half\":0,"
        "\"event\":null,\"change\":1,\"pool\":[0,0],\"is_free\":false,\"frames\":[]}\n"
        "{\"device\":1,\"table\":\"peak.groups\",\"part\":\"others\",\"stacks\":4,\"bytes\":1024,"
        "\"half\":512,\"change\":0}\n"
        "{\"device\":1,\"table\":\"peak.groups\",\"part\":\"total\",\"bytes\":3072,\"half\":1280,"
        "\"change\":-511}\n");
}

static void csv(void **state)
{
    (void)state;
    comes_out(TARN_REPORT_CSV,
              "device,table,part,bytes,half,event,change,pool,is_free,frames,stacks\n"
              "1,\"peak.groups\",\"row\",1536,768,7,-512,\"[0,3]\",true,"
              "\"m,.py:20:main;=a.py:1:f\"\"\",\n"
              "1,\"peak.groups\",\"row\",512,0,,1,\"[0,0]\",false,,\n"
              "1,\"peak.groups\",\"others\",1024,512,,0,,,,4\n"
              "1,\"peak.groups\",\"total\",3072,1280,,-511,,,,\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text),       cmocka_unit_test(bars), cmocka_unit_test(bars_of_any_length),
        cmocka_unit_test(json_lines), cmocka_unit_test(csv),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
