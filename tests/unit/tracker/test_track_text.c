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
    static const char *const odd[] = {"A", "B",     "\xc3\xa4\xc3\xb6\xc3\xbc\xc3\x9f",
                                      "",  "x\x1b", "y"};
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
    text = table_text(odd, 6, 2); /* characters count, not bytes; escapes as they are shown */
    assert_string_equal(text, "=====  ===\n"
                              "A      B\n"
                              "=====  ===\n"
                              "\xc3\xa4\xc3\xb6\xc3\xbc\xc3\x9f\n"
                              "x\\x1b  y\n"
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
        cmocka_unit_test(amounts_are_pythons),        cmocka_unit_test(other_units_are_refused),
        cmocka_unit_test(names_sort_as_people_count), cmocka_unit_test(tables_are_tabulates),
        cmocka_unit_test(everything_is_written),      cmocka_unit_test(nothing_tracked_is_said),
        cmocka_unit_test(failures_are_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
