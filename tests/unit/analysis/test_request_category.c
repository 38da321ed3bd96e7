/* SPDX-License-Identifier: MIT */
/* Which category each entry of a trace asks for. */
#include "support/report.h"

#include "analysis/category.h"
#include "snapshot/snapshot.h"

#define FRAMES(file, name) "'frames': [{'filename': '" file "', 'line': 3, 'name': '" name "'}]"
#define ENTRY(action, addr, frames)                                                                \
    "{'action': '" action "', 'addr': " #addr ", 'size': 512, 'stream': 0, " frames "}"
#define ADAM    FRAMES("/torch/optim/adam.py", "step")
#define FORWARD FRAMES("model.py", "forward")
#define OTHER   FRAMES("train.py", "run")

static const char trace[] =
    "{'segments': [], 'device_traces': [[" ENTRY("alloc", 512, OTHER) "," /* 0: never freed */
    ENTRY("alloc", 1024, ADAM) ","                                        /* 1 */
    ENTRY("alloc", 1536, FORWARD) ","                                     /* 2 */
    ENTRY("free_requested", 1024, ADAM) ","                               /* 3 */
    ENTRY("free_completed", 1024, ADAM) ","                               /* 4 */
    ENTRY("alloc", 1024, OTHER) ","                                       /* 5: freed at once */
    ENTRY("free_requested", 1024, OTHER) ","                              /* 6 */
    ENTRY("free_completed", 1024,
          OTHER) ","                                                                         /* 7 */
                 "{'action': 'oom', 'device_free': 1, 'size': 9, 'stream': 0, " FORWARD "}," /* 8 */
                 "{'action': 'oom', 'device_free': 1, 'size': 9, 'stream': 0, " OTHER "}"    /* 9 */
                 "]]}";

static struct tarn_categories *make(const struct tarn_snapshot *snapshot,
                                    const struct tarn_rules *rules)
{
    struct tarn_categories *categories = NULL;

    assert_int_equal(tarn_categories_create(snapshot, 0, rules, &categories, NULL), TARN_OK);
    return categories;
}

static const char *const wanted[] = {"parameter",    "optimizer",   "activation",   "unclassified",
                                     "unclassified", "temporary",   "unclassified", "unclassified",
                                     "activation",   "unclassified"};

static void each_entry_has_the_category_of_reports(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(trace);
    struct tarn_categories *categories = make(snapshot, NULL);

    (void)state;
    for (uint64_t i = 0; i < 10; i++) {
        assert_string_equal(tarn_categories_get(categories, i), wanted[i]);
    }
    assert_null(tarn_categories_get(categories, 10));
    assert_null(tarn_categories_get(categories, UINT64_MAX));
    tarn_categories_destroy(categories);
    tarn_snapshot_destroy(snapshot);
}

static void names_are_those_of_the_rules(void **state)
{
    static const char text[] = "mine: train\\.py\nours: model\\.py\n";
    struct tarn_snapshot *snapshot = report_parse(trace);
    struct tarn_rules *rules = NULL;

    (void)state;
    assert_int_equal(tn_rules_parse(text, sizeof text - 1, "x", &rules, NULL), TARN_OK);
    struct tarn_categories *categories = make(snapshot, rules);

    assert_string_equal(tarn_categories_get(categories, 0), "mine");
    assert_string_equal(tarn_categories_get(categories, 2), "ours");
    assert_true(tarn_categories_have(categories, "mine"));
    assert_true(tarn_categories_have(categories, "unclassified"));
    assert_true(tarn_categories_have(categories, "parameter"));
    assert_true(tarn_categories_have(categories, "temporary"));
    assert_false(tarn_categories_have(categories, "activation"));
    assert_false(tarn_categories_have(categories, ""));
    tarn_categories_destroy(categories);
    tarn_categories_destroy(NULL);
    tarn_rules_destroy(rules);
    tarn_snapshot_destroy(snapshot);
}

/* What is asked for in each category is what the report by category says of it. */
static void the_sums_are_those_of_top(void **state)
{
    static const char *const rows[] = {"activation", "temporary",    "optimizer",
                                       "parameter",  "unclassified", "gradient"};
    static const uint64_t sums[] = {4282, 4558, 1480, 149, 236, 1192}; /* "tarn top" */
    struct tarn_snapshot *snapshot = report_load("gpt2_varlen");
    const struct tn_model *model = tn_snapshot_model(snapshot);
    struct tarn_categories *categories = make(snapshot, NULL);
    uint64_t counts[6] = {0};

    (void)state;
    for (uint64_t i = 0; i < model->traces[0].count; i++) {
        const bool asks = tn_trace_at(model, &model->traces[0], i)->action == TN_TRACE_ALLOC;

        for (size_t k = 0; k < 6 && asks; k++) {
            counts[k] += strcmp(tarn_categories_get(categories, i), rows[k]) == 0;
        }
    }
    assert_memory_equal(counts, sums, sizeof sums);
    tarn_categories_destroy(categories);
    tarn_snapshot_destroy(snapshot);
}

static void a_device_without_a_trace_is_refused(void **state)
{
    static const int devices[] = {-1, 1, INT32_MAX};
    struct tarn_snapshot *snapshot = report_parse(trace);
    struct tarn_categories *categories = NULL;

    (void)state;
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        assert_int_equal(tarn_categories_create(snapshot, devices[i], NULL, &categories, NULL),
                         TARN_ERR_NOT_FOUND);
    }
    tarn_snapshot_destroy(snapshot);
    snapshot = report_parse("{'segments': [], 'device_traces': [[]]}"); /* one of no events */
    assert_int_equal(tarn_categories_create(snapshot, 0, NULL, &categories, NULL),
                     TARN_ERR_NOT_FOUND);
    assert_null(categories);
    tarn_snapshot_destroy(snapshot);
}

static void failures_leave_nothing(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(trace);
    const uint64_t live = tarn_host_get_usage().live_bytes;
    enum tarn_status status = TARN_ERR_HOST_MEMORY;
    uint64_t failures = 0;

    (void)state;
    for (uint64_t n = 1; status != TARN_OK; n++) {
        struct tarn_categories *categories = NULL;

        tarn_host_fail_nth(n);
        status = tarn_categories_create(snapshot, 0, NULL, &categories, NULL);
        tarn_host_fail_nth(0);
        assert_true(status == TARN_OK || status == TARN_ERR_HOST_MEMORY);
        assert_int_equal(categories != NULL, status == TARN_OK);
        for (uint64_t i = 0; categories && i < 10; i++) { /* it can do without some */
            assert_string_equal(tarn_categories_get(categories, i), wanted[i]);
        }
        tarn_categories_destroy(categories);
        assert_int_equal(tarn_host_get_usage().live_bytes, live);
        failures += status != TARN_OK;
    }
    assert_true(failures >= 15);
    tarn_snapshot_destroy(snapshot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_entry_has_the_category_of_reports),
        cmocka_unit_test(names_are_those_of_the_rules),
        cmocka_unit_test(the_sums_are_those_of_top),
        cmocka_unit_test(a_device_without_a_trace_is_refused),
        cmocka_unit_test(failures_leave_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
