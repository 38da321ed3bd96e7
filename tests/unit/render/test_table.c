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

/* Others without a total have no share of it; colors are for text alone. */
static void others_may_have_no_total(void **state)
{
    const struct tn_rows all = {.rows = rows, .count = 2, .others = &others, .other_count = 1};
    struct tarn_report_options options = {.struct_size = sizeof options};

    (void)state;
    for (unsigned width = 0; width < 2; width++) {
        struct test_collect collect = {.text = calloc(1, 1)};
        const struct tarn_writer writer = {test_collect_write, &collect};
        struct tn_document document;

        options.columns = width * 130;
        tn_document_begin(&document, &options, "test/1", tables, &writer);
        tn_table_put(&document, &table, "peak.groups", &all);
        assert_int_equal(tn_document_end(&document, NULL), TARN_OK);
        assert_non_null(strstr(collect.text, width > 0 ? "    1.00 KiB    0.0%                50.0%"
                                                       : "    1.00 KiB    0.0%   50.0%"));
        free(collect.text);
    }
    options.columns = 60; /* where columns get no more than they need */
    options.color = true;
    options.format = TARN_REPORT_JSONL;
    struct test_collect collect = {.text = calloc(1, 1)};
    const struct tarn_writer writer = {test_collect_write, &collect};
    const struct place place = {1};
    struct tn_document document;

    tn_document_begin(&document, &options, "test/1", tables, &writer);
    document.context = &place;
    tn_table_put(&document, &table, "peak.groups", &all);
    assert_int_equal(tn_document_end(&document, NULL), TARN_OK);
    assert_null(strchr(collect.text, '\x1b'));
    assert_null(strstr(collect.text, "total"));
    free(collect.text);
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

/* ---- columns of other kinds ---- */

struct odd {
    uint64_t bytes;
    uint64_t part;
    const uint64_t *items;
    size_t count;
    struct tarn_call call;
    struct tarn_group group;
};

#undef AT
#undef OF
#define AT(member) .at = offsetof(struct odd, member)
#define OF(member) .of = offsetof(struct odd, member)

static const struct tn_row_column odd_columns[] = {
    {"share", "a share", TN_ROW_SHARE, 6, AT(bytes)},
    {"grown", "grew in a few", TN_ROW_FRACTION, 20, AT(part), OF(bytes)},
    {"sum", "in the sum only", TN_ROW_COUNT, 30, AT(part), .in = TN_IN_TOTAL},
    {"items", NULL, TN_ROW_NUMBERS, 0, AT(items), OF(count), .in = TN_IN_ROWS},
    {NULL, "calls", TN_ROW_CHAIN, 0, AT(call), OF(group)},
    {0}};

static const struct tn_row_table odd_table = {.columns = odd_columns,
                                              .row_size = sizeof(struct odd)};

static char *odd_text(const struct tarn_report_options *options, const struct odd *row,
                      const char *heading)
{
    static const struct tn_row_table *const odd_tables[] = {&odd_table, NULL};
    const struct tn_rows all = {.rows = row, .count = 1, .total = row, .first_heading = heading};
    struct test_collect collect = {.text = calloc(1, 1)};
    const struct tarn_writer writer = {test_collect_write, &collect};
    struct tn_document document;

    tn_document_begin(&document, options, "test/1", odd_tables, &writer);
    if (document.json) {
        tn_json_open_object(document.json, "peak");
    }
    tn_table_put(&document, &odd_table, "groups", &all);
    assert_int_equal(tn_document_end(&document, NULL), TARN_OK);
    return collect.text;
}

static void columns_of_other_kinds(void **state)
{
    struct odd row = {.bytes = 7,
                      .part = 3,
                      .call = {.kind = TARN_CALL_CHAIN},
                      .group = {.text = "a < b", .frames = frames, .frame_count = 2}};
    struct tarn_report_options options = {.struct_size = sizeof options, .format = TARN_REPORT_CSV};
    char *text = odd_text(&options, &row, NULL);

    (void)state;
    assert_string_equal(text, "table,part,share,grown,sum,items,frames\n"
                              "\"groups\",\"row\",7,3,,,\"'=a.py:1:f\"\";m,.py:20:main\"\n"
                              "\"groups\",\"total\",7,3,3,,\"'=a.py:1:f\"\";m,.py:20:main\"\n");
    free(text);
    options.format = TARN_REPORT_JSON;
    text = odd_text(&options, &row, NULL);
    assert_non_null(strstr(text, "\"share\": 7,"));
    assert_non_null(strstr(text, "\"grown\": 3,"));
    assert_non_null(strstr(text, "\"items\": []"));
    free(text);
    options.format = TARN_REPORT_TEXT;
    options.columns = 90; /* where columns get no more than they need */
    text = odd_text(&options, &row, "first");
    assert_string_equal(text, "   first  grew in a few  in the sum only  calls\n"
                              "  100.0%       3 of 7                     a < b\n"
                              "  100.0%       3 of 7                  3  total\n");
    free(text);
}

/* Deep calls have a third of the line before them at most, and chains what is left. */
static void deep_calls_and_long_chains(void **state)
{
    char chain[6001];
    struct odd row = {.bytes = 7,
                      .part = 3,
                      .call = {.kind = TARN_CALL_CHAIN, .depth = 50},
                      .group = {.text = chain, .frames = frames, .frame_count = 2}};
    struct tarn_report_options options = {.struct_size = sizeof options, .columns = 30};

    (void)state;
    memset(chain, 'c', sizeof chain - 1);
    chain[sizeof chain - 1] = '\0';
    char *text = odd_text(&options, &row, NULL);
    const char *line = strchr(text, '\n') + 1;

    /* a blank cell, and 2 for each of 30 / 6 calls */
    assert_int_equal(strspn(strchr(line, '7') + 1, " "), 2 + 17 + 2 + 10);
    free(text);
    options.columns = 5900; /* more than a label that is cut has room for: it stays whole */
    text = odd_text(&options, &row, NULL);
    assert_non_null(strstr(text, chain));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text),
        cmocka_unit_test(bars),
        cmocka_unit_test(bars_of_any_length),
        cmocka_unit_test(json_lines),
        cmocka_unit_test(csv),
        cmocka_unit_test(others_may_have_no_total),
        cmocka_unit_test(columns_of_other_kinds),
        cmocka_unit_test(deep_calls_and_long_chains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
