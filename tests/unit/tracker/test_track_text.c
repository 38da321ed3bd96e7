/* SPDX-License-Identifier: MIT */
#include "support/collect.h"

#include "tarn/host.h"
#include "tracker/rst_table.h"
#include "tracker/track_text.h"

static enum tarn_units units_named(const char *name)
{
    switch (name[0]) {
    case 'B':
        return TARN_UNITS_BYTES;
    case 'K':
        return TARN_UNITS_KIB;
    case 'M':
        return TARN_UNITS_MIB;
    default:
        return TARN_UNITS_GIB;
    }
}

static const struct tn_track_unit *unit_of(const char *name)
{
    const struct tn_track_unit *unit = NULL;

    assert_int_equal(tn_track_unit_find(units_named(name), &unit, NULL), TARN_OK);
    return unit;
}

static void amount_is(int64_t bytes, const char *unit, const char *text)
{
    assert_string_equal(tn_amount_format(bytes, unit_of(unit)).text, text);
}

/* As Python prints round(bytes / unit, 2). */
static void amounts_are_pythons(void **state)
{
    (void)state;
    amount_is(17, "B", "17 B");
    amount_is(0, "KiB", "0.0 KiB");
    amount_is(12845056, "MiB", "12.25 MiB");
    amount_is(3670016, "MiB", "3.5 MiB");
    amount_is(15488, "KiB", "15.12 KiB"); /* 15.125: to the even one */
    amount_is(15616, "KiB", "15.25 KiB");
    amount_is(15744, "KiB", "15.38 KiB"); /* 15.375 */
    amount_is(1048570, "MiB", "1.0 MiB"); /* carries */
    amount_is(5, "KiB", "0.0 KiB");
    amount_is(6, "KiB", "0.01 KiB");
    amount_is(1127, "KiB", "1.1 KiB");
    amount_is(1075, "KiB", "1.05 KiB");
    amount_is(-1536, "KiB", "-1.5 KiB");
    amount_is(-1, "MiB", "0.0 MiB");
    amount_is(INT64_C(1) << 60, "GiB", "1073741824.0 GiB");
    assert_false(tn_amount_shows(5, unit_of("KiB")));
    assert_true(tn_amount_shows(6, unit_of("KiB")));
    assert_true(tn_amount_shows(1, unit_of("B")));
    assert_false(tn_amount_shows(0, unit_of("B")));
}

static void other_units_are_refused(void **state)
{
    const struct tn_track_unit *unit = NULL;
    struct tarn_error error;

    (void)state;
    assert_int_equal(tn_track_unit_find(TARN_UNITS_IEC, &unit, &error), TARN_ERR_INVALID_ARGUMENT);
    assert_string_equal(error.text, "Unsupported unit: 0. Supported units are: B, KiB, MiB, GiB");
    assert_int_equal(tn_track_unit_find((enum tarn_units)99, &unit, &error),
                     TARN_ERR_INVALID_ARGUMENT);
}

static void names_sort_as_people_count(void **state)
{
    static const char *const sorted[] = {"",     "1",      "1a",  "02",  "2b",
                                         "10",   "A",      "a10", "a.2", "A.3b",
                                         "a.10", "a.10.x", "ab",  "b",   "z\xc3\xa9"};
    const size_t count = sizeof sorted / sizeof sorted[0];

    (void)state;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < count; k++) {
            const int order = tn_natural_compare(sorted[i], sorted[k]);

            assert_int_equal((order > 0) - (order < 0), (i > k) - (i < k));
        }
    }
    assert_int_equal(tn_natural_compare("Layer.2", "layer.02"), 0);
    assert_true(tn_natural_compare("x99999999999999999999998", "x99999999999999999999999") < 0);
    assert_int_equal(tn_track_depth("a"), 1);
    assert_int_equal(tn_track_depth("a.b.c"), 3);
}

static char *table_text(const char *const *cells, size_t count, size_t columns)
{
    struct test_collect collect = {0};
    const struct tarn_writer writer = {test_collect_write, &collect};
    struct tn_rst_table table;
    struct tn_text_out out;

    tn_rst_table_init(&table, columns);
    for (size_t i = 0; i < count; i++) {
        tn_rst_table_add(&table, cells[i]);
    }
    tn_text_init(&out, &writer);
    assert_int_equal(tn_rst_table_put(&table, &out), TARN_OK);
    assert_int_equal(tn_text_finish(&out), TARN_OK);
    tn_rst_table_fini(&table);
    return collect.text;
}

static void tables_are_tabulates(void **state)
{
    static const char *const cells[] = {
        "State & Call", "Device", "Parameter",       "Total",  "Peak-Forward # 1",
        "cuda:0",       "512 B",  "512 B",           "",       "cpu",
        "100 B",        "100 B",  "Pre-Forward # 1", "cuda:0", "512 B",
        "512 B"};
    static const char *const odd[] = {
        "A", "B", "\xc3\xa4\xc3\xb6\xc3\xbc\xc3\x9f", "", "x\x1b", "y", "a\\b", "z"};
    char *text = table_text(cells, 16, 4);

    (void)state;
    assert_string_equal(text, "================  ========  ===========  =======\n"
                              "State & Call      Device    Parameter    Total\n"
                              "================  ========  ===========  =======\n"
                              "Peak-Forward # 1  cuda:0    512 B        512 B\n"
                              "..                cpu       100 B        100 B\n"
                              "Pre-Forward # 1   cuda:0    512 B        512 B\n"
                              "================  ========  ===========  =======\n");
    free(text);
    text = table_text(cells, 4, 4); /* the head only */
    assert_string_equal(text, "==============  ========  ===========  =======\n"
                              "State & Call    Device    Parameter    Total\n"
                              "==============  ========  ===========  =======\n"
                              "==============  ========  ===========  =======\n");
    free(text);
    text = table_text(odd, 8, 2); /* characters count, not bytes; escapes as they are shown */
    assert_string_equal(text, "=====  ===\n"
                              "A      B\n"
                              "=====  ===\n"
                              "\xc3\xa4\xc3\xb6\xc3\xbc\xc3\x9f\n"
                              "x\\x1b  y\n"
                              "a\\b    z\n"
                              "=====  ===\n");
    free(text);
}

/* ---- whole texts ---- */

static struct tarn_tracker *open_small(void)
{
    static const struct tarn_track_event events[] = {
        {.kind = TARN_TRACK_CREATE, .id = 1, .bytes = 300, .name = 1},
        {.kind = TARN_TRACK_START},
        {.kind = TARN_TRACK_ENTER, .id = 1, .name = 1},
        {.kind = TARN_TRACK_CLASSIFY, .id = 1},
        {.kind = TARN_TRACK_READY},
        {.kind = TARN_TRACK_ENTER, .id = 2, .name = 2},
        {.kind = TARN_TRACK_CREATE, .id = 2, .bytes = 700, .category = TARN_TRACK_AUTO},
        {.kind = TARN_TRACK_OP_DONE},
        {.kind = TARN_TRACK_LEAVE, .id = 2},
        {.kind = TARN_TRACK_LEAVE, .id = 1},
        {.kind = TARN_TRACK_DELETE, .id = 2},
    };
    struct tarn_tracker *tracker = NULL;
    uint32_t id;

    assert_int_equal(tarn_tracker_create(NULL, &tracker, NULL), TARN_OK);
    assert_int_equal(tarn_tracker_add_name(tracker, TARN_TRACK_DEVICE, "cuda:0", &id, NULL), 0);
    assert_int_equal(tarn_tracker_add_name(tracker, TARN_TRACK_DEVICE, "cpu", &id, NULL), 0);
    assert_int_equal(tarn_tracker_add_name(tracker, TARN_TRACK_MODULE, "M", &id, NULL), 0);
    assert_int_equal(tarn_tracker_add_name(tracker, TARN_TRACK_MODULE, "M.l", &id, NULL), 0);
    assert_int_equal(
        tarn_tracker_apply(tracker, events, sizeof events / sizeof events[0], NULL, NULL), TARN_OK);
    return tracker;
}

/* Everything that a tracker can write, one after the other. */
/* The beginning of the document. */
#define HEAD                                                                                       \
    "{\"schema\": \"tarn.track/1\", \"tool\": {\"name\": \"tarn\", \"version\": "                  \
    "\"" TARN_VERSION_STRING "\"}, "

static enum tarn_status write_all(struct tarn_tracker *tracker, const struct tarn_writer *writer)
{
    enum tarn_status st;

    st = tarn_tracker_write_rows(tracker, TARN_TRACK_PEAKS, TARN_UNITS_BYTES, TARN_TRACK_TABLE,
                                 writer, NULL);
    st = st ? st
            : tarn_tracker_write_rows(tracker, TARN_TRACK_NOW, TARN_UNITS_BYTES, TARN_TRACK_TEXT,
                                      writer, NULL);
    st = st ? st
            : tarn_tracker_write_modules(tracker, 1, TARN_UNITS_BYTES, TARN_TRACK_TABLE, writer,
                                         NULL);
    st = st ? st
            : tarn_tracker_write_tree(tracker, TARN_TRACK_TOTAL_PEAK, 0, TARN_UNITS_BYTES, 10,
                                      writer, NULL);
    st = st ? st : tarn_tracker_write_iterations(tracker, TARN_UNITS_BYTES, writer, NULL);
    return st ? st : tarn_tracker_write_json(tracker, true, writer, NULL);
}

static void everything_is_written(void **state)
{
    struct test_collect collect = {0};
    const struct tarn_writer writer = {test_collect_write, &collect};
    struct tarn_tracker *tracker = open_small();

    (void)state;
    assert_int_equal(write_all(tracker, &writer), TARN_OK);
    char *modules = strstr(collect.text, "\"parameter_mem\""); /* from there on as recorded logs */

    assert_non_null(modules);
    assert_non_null(strstr(modules, "\"iterations\": [{\"number\": 0, \"begin\": 300, \"peak\": "
                                    "1324, \"end\": 300, \"at_peak\": {\"Parameter\": 300, "));
    assert_non_null(strstr(modules, "{\"module\": \"M.l\", \"device\": \"cuda:0\", "
                                    "\"Parameter\": 0, \"Buffer\": 0, \"Gradient\": 0, "
                                    "\"Activation\": 1024, "));
    *modules = '\0';
    assert_string_equal(
        collect.text,
        "========  ===========  ========  ==========  ============  ======  ==========  =======  "
        "=======\n"
        "Device    Parameter    Buffer    Gradient    Activation    Temp    Optstate    Other    "
        "Total\n"
        "========  ===========  ========  ==========  ============  ======  ==========  =======  "
        "=======\n"
        "cpu       300 B        0 B       0 B         0 B           0 B     0 B         0 B      "
        "300 B\n"
        "cuda:0    0 B          0 B       0 B         1024 B        0 B     0 B         0 B      "
        "1024 B\n"
        "========  ===========  ========  ==========  ============  ======  ==========  =======  "
        "=======\n"
        "Device: cpu\n\tParameter: 300 B\n\tBuffer: 0 B\n\tGradient: 0 B\n\tActivation: 0 B\n"
        "\tTemp: 0 B\n\tOptstate: 0 B\n\tOther: 0 B\n\tTotal: 300 B\n"
        "Module:  M\n"
        "================  ========  ===========  ========  ==========  ============  ======  "
        "==========  =======  =======\n"
        "State & Call      Device    Parameter    Buffer    Gradient    Activation    Temp    "
        "Optstate    Other    Total\n"
        "================  ========  ===========  ========  ==========  ============  ======  "
        "==========  =======  =======\n"
        "Peak-Forward # 1  cpu       300 B        0 B       0 B         0 B           0 B     "
        "0 B         0 B      300 B\n"
        "..                cuda:0    0 B          0 B       0 B         1024 B        0 B     "
        "0 B         0 B      1024 B\n"
        "Pre-Forward # 1   cpu       300 B        0 B       0 B         0 B           0 B     "
        "0 B         0 B      300 B\n"
        "Post-Forward # 1  cpu       300 B        0 B       0 B         0 B           0 B     "
        "0 B         0 B      300 B\n"
        "..                cuda:0    0 B          0 B       0 B         1024 B        0 B     "
        "0 B         0 B      1024 B\n"
        "================  ========  ===========  ========  ==========  ============  ======  "
        "==========  =======  =======\n"
        "1324 B at the peak: 300 B Parameter (P), 1024 B Activation (A)\n\n"
        "with children            own\n"
        "       1324 B          300 B  100.0%  PPAAAAAAAA  M\n"
        "       1024 B         1024 B   77.3%  AAAAAAAA      M.l\n"
        "iteration           start            peak             end  growth\n"
        "        0           300 B          1324 B           300 B  nothing\n" HEAD
        "\"peak\": {\"cpu\": {\"Parameter\": 300, \"Buffer\": 0, \"Gradient\": 0, \"Activation\": "
        "0, \"Temp\": 0, \"Optstate\": 0, \"Other\": 0, \"Total\": 300}, \"cuda:0\": "
        "{\"Parameter\": 0, \"Buffer\": 0, \"Gradient\": 0, \"Activation\": 1024, \"Temp\": 0, "
        "\"Optstate\": 0, \"Other\": 0, \"Total\": 1024}}, \"current\": {\"cpu\": {\"Parameter\": "
        "300, \"Buffer\": 0, \"Gradient\": 0, \"Activation\": 0, \"Temp\": 0, \"Optstate\": 0, "
        "\"Other\": 0, \"Total\": 300}}, \"modules\": {\"M\": {");
    tarn_tracker_destroy(tracker);
    free(collect.text);
}

static void nothing_tracked_is_said(void **state)
{
    struct test_collect collect = {0};
    const struct tarn_writer writer = {test_collect_write, &collect};
    struct tarn_tracker *tracker = NULL;

    (void)state;
    assert_int_equal(tarn_tracker_create(NULL, &tracker, NULL), TARN_OK);
    assert_int_equal(write_all(tracker, &writer), TARN_OK);
    assert_string_equal(collect.text,
                        "No memory tracked.\nNo memory tracked.\nNo memory tracked.\n"
                        "No iterations.\n" HEAD
                        "\"peak\": {}, \"current\": {}, \"modules\": {}, \"moment\": {}, "
                        "\"iterations\": [], \"owners\": []}\n");
    tarn_tracker_destroy(tracker);
    free(collect.text);
}

static char *tree_text(struct tarn_tracker *tracker, enum tarn_track_point point, uint32_t depth,
                       uint32_t bar_width)
{
    struct test_collect collect = {0};
    const struct tarn_writer writer = {test_collect_write, &collect};

    assert_int_equal(
        tarn_tracker_write_tree(tracker, point, depth, TARN_UNITS_BYTES, bar_width, &writer, NULL),
        TARN_OK);
    return collect.text;
}

/* Names that begin alike, categories of the caller's, and bars of no and of too large a width. */
static void trees_have_what_is_asked(void **state)
{
    static const char *const modules[] = {"M.l2", "M", "M.l.x", "M.l10", "M.l", "N.a.b.c"};
    static const char *const categories[] = {"Zebra", "1st", "~end"};
    static const char *const head = "\n\nwith children            own\n";
    struct tarn_tracker *tracker = NULL;
    uint64_t storage = 0;
    uint32_t id;

    (void)state;
    assert_int_equal(tarn_tracker_create(NULL, &tracker, NULL), TARN_OK);
    assert_int_equal(tarn_tracker_add_name(tracker, TARN_TRACK_DEVICE, "cpu", &id, NULL), 0);
    for (uint32_t i = 0; i < 6; i++) {
        assert_int_equal(tarn_tracker_add_name(tracker, TARN_TRACK_MODULE, modules[i], &id, NULL),
                         TARN_OK);
        const struct tarn_track_event events[] = {
            {.kind = TARN_TRACK_ENTER, .id = i, .name = id},
            {.kind = TARN_TRACK_CREATE, .id = storage++, .bytes = 100, .category = i % 3},
            {.kind = TARN_TRACK_LEAVE, .id = i},
        };

        assert_int_equal(tarn_tracker_apply(tracker, events, 3, NULL, NULL), TARN_OK);
    }
    char *text = tree_text(tracker, TARN_TRACK_NOW, 0, 0);

    assert_string_equal(text, "600 B now: 200 B Parameter, 200 B Buffer, 200 B Gradient\n\n"
                              "with children            own\n"
                              "        500 B          100 B   83.3%  M\n"
                              "        200 B          100 B   33.3%    M.l\n"
                              "        100 B          100 B   16.7%      M.l.x\n"
                              "        100 B          100 B   16.7%    M.l2\n"
                              "        100 B          100 B   16.7%    M.l10\n"
                              "        100 B          100 B   16.7%        N.a.b.c\n");
    free(text);
    text = tree_text(tracker, TARN_TRACK_NOW, 2, 0); /* what is deeper counts above */
    assert_string_equal(strstr(text, head) + strlen(head),
                        "        500 B          100 B   83.3%  M\n"
                        "        200 B          100 B   33.3%    M.l\n"
                        "        100 B          100 B   16.7%    M.l2\n"
                        "        100 B          100 B   16.7%    M.l10\n");
    free(text);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(
            tarn_tracker_add_name(tracker, TARN_TRACK_CATEGORY, categories[i], &id, NULL), TARN_OK);
        const struct tarn_track_event event = {
            .kind = TARN_TRACK_CREATE, .id = storage++, .bytes = 200, .category = id};

        assert_int_equal(tarn_tracker_apply(tracker, &event, 1, NULL, NULL), TARN_OK);
    }
    text = tree_text(tracker, TARN_TRACK_NOW, 1, 4000);
    assert_non_null(strstr(text, "200 B Zebra (z), 200 B 1st (1), 200 B ~end (~)\n"));
    const char *bar = strstr(text, "50.0%  ") + strlen("50.0%  "); /* outside of all modules */

    assert_int_equal(strspn(bar, "z1~"), 60); /* half of the widest bar */
    assert_int_equal(strspn(bar, "z1~ "), 122);
    free(text);
    tarn_tracker_destroy(tracker);
}

/* Of modules of one name the last counts, in the place of the first; names that are alike but for
 * case and zeros are in order of first use. */
static void modules_may_have_one_name(void **state)
{
    static const char *const names[] = {"l.2", "a", "L.02"};
    static const struct {
        uint32_t name;
        uint64_t bytes;
    } rows[] = {{1, 10}, {2, 20}, {1, 30}, {3, 40}, {1, 50}};
    struct test_collect collect = {0};
    const struct tarn_writer writer = {test_collect_write, &collect};
    struct tarn_tracker *tracker = NULL;
    uint32_t id;

    (void)state;
    assert_int_equal(tarn_tracker_create(NULL, &tracker, NULL), TARN_OK);
    assert_int_equal(tarn_tracker_add_name(tracker, TARN_TRACK_DEVICE, "cpu", &id, NULL), 0);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(tarn_tracker_add_name(tracker, TARN_TRACK_MODULE, names[i], &id, NULL),
                         TARN_OK);
        assert_int_equal(id, i + 1);
    }
    for (size_t i = 0; i < 5; i++) {
        const struct tarn_track_event events[] = {
            {.kind = TARN_TRACK_ENTER, .id = i, .name = rows[i].name},
            {.kind = TARN_TRACK_CLASSIFY, .id = i, .bytes = rows[i].bytes},
            {.kind = TARN_TRACK_LEAVE, .id = i},
        };

        assert_int_equal(tarn_tracker_apply(tracker, events, 3, NULL, NULL), TARN_OK);
    }
    assert_int_equal(tarn_tracker_write_json(tracker, false, &writer, NULL), TARN_OK);
    const char *first = strstr(collect.text, "\"modules\": {\"l.2\": {");
    const char *second = strstr(collect.text, "}, \"a\": {");
    const char *third = strstr(collect.text, "}, \"L.02\": {");

    assert_true(first && second && third && first < second && second < third);
    assert_null(strstr(second, "\"l.2\": {"));
    assert_non_null(strstr(first, "\"parameter_mem\": 50, "));
    assert_null(strstr(first, "\"parameter_mem\": 10, "));
    assert_null(strstr(first, "\"parameter_mem\": 30, "));
    free(collect.text);
    collect = (struct test_collect){0};
    assert_int_equal(
        tarn_tracker_write_modules(tracker, 9, TARN_UNITS_BYTES, TARN_TRACK_TEXT, &writer, NULL),
        TARN_OK);
    const char *at = strstr(collect.text, "Module:  a\n");

    for (size_t i = 0; i < 4; i++) { /* a, then both l.2 and L.02 by their first use */
        static const char *const order[] = {"Module:  l.2\n", "Module:  l.2\n", "Module:  L.02\n",
                                            "Module:  l.2\n"};

        at = at ? strstr(at + 1, "Module:") : NULL;
        assert_non_null(at);
        assert_memory_equal(at, order[i], strlen(order[i]));
    }
    assert_null(strstr(at + 1, "Module:"));
    free(collect.text);
    tarn_tracker_destroy(tracker);
}

/* A module that could not be made ready for want of memory has nothing to show. */
static void states_without_calls_are_not_shown(void **state)
{
    static const struct tarn_track_event enter = {.kind = TARN_TRACK_ENTER, .id = 1, .name = 1};
    static const struct tarn_track_event ready = {.kind = TARN_TRACK_READY};
    enum tarn_status status = TARN_ERR_HOST_MEMORY;

    (void)state;
    for (uint64_t n = 1; status; n++) {
        struct test_collect collect = {0};
        const struct tarn_writer writer = {test_collect_write, &collect};
        struct tarn_tracker *tracker = NULL;
        uint32_t id;

        assert_int_equal(tarn_tracker_create(NULL, &tracker, NULL), TARN_OK);
        assert_int_equal(tarn_tracker_add_name(tracker, TARN_TRACK_DEVICE, "cpu", &id, NULL), 0);
        assert_int_equal(tarn_tracker_add_name(tracker, TARN_TRACK_MODULE, "M", &id, NULL), 0);
        assert_int_equal(tarn_tracker_apply(tracker, &enter, 1, NULL, NULL), TARN_OK);
        tarn_host_fail_nth(n);
        status = tarn_tracker_apply(tracker, &ready, 1, NULL, NULL);
        tarn_host_fail_nth(0);
        if (status) {
            assert_int_equal(tarn_tracker_write_modules(tracker, 1, TARN_UNITS_BYTES,
                                                        TARN_TRACK_TEXT, &writer, NULL),
                             TARN_OK);
            assert_int_equal(tarn_tracker_write_modules(tracker, 1, TARN_UNITS_BYTES,
                                                        TARN_TRACK_TABLE, &writer, NULL),
                             TARN_OK);
            assert_string_equal(collect.text, "Module:  M\n\nModule:  M\n\n");
            assert_int_equal(tarn_tracker_write_json(tracker, false, &writer, NULL), TARN_OK);
            assert_non_null(strstr(collect.text, "\"snapshots\": {}"));
        }
        free(collect.text);
        tarn_tracker_destroy(tracker);
        assert_true(n < 20);
    }
}

static void units_are_those_of_pytorch(void **state)
{
    const struct tarn_writer writer = {.write = test_collect_write};
    struct tarn_tracker *tracker = open_small();

    (void)state;
    assert_int_equal(tarn_tracker_write_rows(tracker, TARN_TRACK_NOW, TARN_UNITS_IEC,
                                             TARN_TRACK_TEXT, &writer, NULL),
                     TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        tarn_tracker_write_modules(tracker, 1, TARN_UNITS_IEC, TARN_TRACK_TEXT, &writer, NULL),
        TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        tarn_tracker_write_tree(tracker, TARN_TRACK_NOW, 0, TARN_UNITS_IEC, 0, &writer, NULL),
        TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_tracker_write_iterations(tracker, TARN_UNITS_IEC, &writer, NULL),
                     TARN_ERR_INVALID_ARGUMENT);
    tarn_tracker_destroy(tracker);
}

static enum tarn_status drop(void *context, const char *bytes, size_t size)
{
    (void)context;
    (void)bytes;
    (void)size;
    return TARN_OK;
}

/* Neither host memory nor the writer may fail unnoticed. */
static void failures_are_reported(void **state)
{
    struct test_collect collect = {.room = 1};
    const struct tarn_writer full = {test_collect_write, &collect};
    const struct tarn_writer writer = {.write = drop};
    struct tarn_tracker *tracker = open_small();
    const uint64_t live = tarn_host_get_usage().live_count;
    enum tarn_status status = TARN_ERR_HOST_MEMORY;

    (void)state;
    assert_int_equal(write_all(tracker, &full), TARN_ERR_IO);
    for (uint64_t n = 1; status; n++) {
        tarn_host_fail_nth(n);
        status = write_all(tracker, &writer);
        tarn_host_fail_nth(0);
        assert_true(status == TARN_OK || status == TARN_ERR_HOST_MEMORY);
        assert_int_equal(tarn_host_get_usage().live_count, live);
    }
    tarn_tracker_destroy(tracker);
    assert_int_equal(tarn_host_get_usage().live_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(amounts_are_pythons),
        cmocka_unit_test(other_units_are_refused),
        cmocka_unit_test(names_sort_as_people_count),
        cmocka_unit_test(tables_are_tabulates),
        cmocka_unit_test(everything_is_written),
        cmocka_unit_test(nothing_tracked_is_said),
        cmocka_unit_test(trees_have_what_is_asked),
        cmocka_unit_test(modules_may_have_one_name),
        cmocka_unit_test(states_without_calls_are_not_shown),
        cmocka_unit_test(units_are_those_of_pytorch),
        cmocka_unit_test(failures_are_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
