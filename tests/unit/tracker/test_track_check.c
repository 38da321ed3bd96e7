/* SPDX-License-Identifier: MIT */
/* The checker sees what is wrong: each case spoils one thing that is kept twice. */
#include "support/test.h"

#include "tarn/host.h"
#include "tracker/track_core.h"

#include <string.h>

static struct tarn_tracker *open_used(void)
{
    static const struct tarn_track_event events[] = {
        {.kind = TARN_TRACK_CREATE, .id = 1, .bytes = 100},
        {.kind = TARN_TRACK_CREATE, .id = 2, .bytes = 50, .category = TARN_TRACK_OTHER},
        {.kind = TARN_TRACK_DELETE, .id = 2},
        {.kind = TARN_TRACK_ENTER, .id = 1, .name = 1},
        {.kind = TARN_TRACK_READY},
        {.kind = TARN_TRACK_OP_DONE},
    };
    struct tarn_tracker *tracker = NULL;
    uint32_t id;

    assert_int_equal(tarn_tracker_create(NULL, &tracker, NULL), TARN_OK);
    assert_int_equal(tarn_tracker_add_name(tracker, TARN_TRACK_DEVICE, "cpu", &id, NULL), 0);
    assert_int_equal(tarn_tracker_add_name(tracker, TARN_TRACK_MODULE, "M", &id, NULL), 0);
    assert_int_equal(
        tarn_tracker_apply(tracker, events, sizeof events / sizeof events[0], NULL, NULL), TARN_OK);
    return tracker;
}

/* The checker must say a sentence that has `text`. */
static void must_find(struct tarn_tracker *tracker, const char *text)
{
    struct tarn_findings findings = TARN_FINDINGS_INIT;
    bool found = false;

    assert_true(tarn_tracker_check(tracker, &findings) > 0);
    for (uint64_t i = 0; i < findings.count && i < TARN_FINDINGS_KEPT; i++) {
        found = found || strstr(findings.text[i], text);
    }
    if (!found) {
        fail_msg("not found: %s; but: %s", text, findings.text[0]);
    }
}

static void nothing_is_wrong(void **state)
{
    struct tarn_tracker *tracker = open_used();
    struct tarn_findings findings = TARN_FINDINGS_INIT;

    (void)state;
    assert_int_equal(tarn_tracker_check(tracker, &findings), 0);
    tarn_tracker_destroy(tracker);
    assert_int_equal(tarn_host_get_usage().live_count, 0);
}

static void sums_are_recomputed(void **state)
{
    struct tarn_tracker *tracker = open_used();

    (void)state;
    tracker->now.rows[0].bytes[0]++;
    must_find(tracker, "storages now, category 0: the row has 101 bytes, the sum is 100");
    must_find(tracker, "the row's total is 100 bytes, its categories add up to 101");
    tracker->now.rows[0].bytes[0]--;
    tracker->total++;
    must_find(tracker, "the total is 101 bytes, rows add up to 100");
    tracker->total--;
    tracker->total_peak_bytes++;
    must_find(tracker, "the peak's total is 101 bytes");
    tracker->total_peak_bytes--;
    ((struct tn_owner *)tracker->owners.owners.items)->now[0]++;
    must_find(tracker, "owners now, category 0");
    must_find(tracker, "owners at the total peak, category 0");
    must_find(tracker, "owners at the device's peak, category 0");
    tarn_tracker_destroy(tracker);
}

static void tables_are_compared(void **state)
{
    struct tarn_tracker *tracker = open_used();
    struct tn_module *module = tn_track_module_at(tracker, 0);

    (void)state;
    struct tn_storage *records = tracker->storages.records.items;
    uint64_t value;

    assert_int_equal(records[1].next_free, TN_STORAGE_NONE);
    records[1].next_free = 1; /* a list without end */
    must_find(tracker, "3 records are free and 1 known, but there are 2");
    records[1].next_free = TN_STORAGE_NONE;
    assert_true(tn_map_take(&tracker->modules, 1 + 1, &value));
    must_find(tracker, "module 1 is not in all tables");
    tn_map_insert(&tracker->modules, 1 + 1, value + 16);
    must_find(tracker, "module 1 is not in all tables");
    assert_true(tn_map_take(&tracker->modules, 1 + 1, &value));
    tn_map_insert(&tracker->modules, 1 + 1, value - 16);
    tracker->storages.first_free = TN_STORAGE_NONE;
    must_find(tracker, "0 records are free and 1 known, but there are 2");
    tn_track_scope(tracker, 1)->active = 0;
    must_find(tracker, "name 1 is active, but counts no module");
    must_find(tracker, "0 names count modules, but 1 are active");
    tn_track_scope(tracker, 1)->active = 1;
    tn_track_scope(tracker, 1)->first = NULL;
    must_find(tracker, "module 1 is not in all tables");
    tn_track_scope(tracker, 1)->first = module;
    tracker->order.count = 0;
    must_find(tracker, "1 modules by id, but 0 in order");
    tracker->order.count = 1;
    tn_module_newest_call(module, TARN_TRACK_PRE_FORWARD)->capacity--;
    must_find(tracker, "module 1 has room for 0 rows of 1");
    tn_module_newest_call(module, TARN_TRACK_PRE_FORWARD)->capacity++;
    tarn_tracker_destroy(tracker);
    assert_int_equal(tarn_host_get_usage().live_count, 0);
}

/* The numbers of records end before TN_STORAGE_NONE. */
static void the_table_of_storages_has_an_end(void **state)
{
    struct tarn_tracker *tracker = open_used();
    struct tn_storage_table *table = &tracker->storages;
    const size_t count = table->records.count;

    (void)state;
    assert_true(tn_storage_table_reserve(table)); /* a free record */
    const uint32_t first_free = table->first_free;

    table->first_free = TN_STORAGE_NONE;
    assert_true(tn_storage_table_reserve(table));
    table->records.count = TN_STORAGE_NONE;
    assert_false(tn_storage_table_reserve(table));
    table->records.count = count;
    table->first_free = first_free;
    tarn_tracker_destroy(tracker);
    assert_int_equal(tarn_host_get_usage().live_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_wrong),
        cmocka_unit_test(sums_are_recomputed),
        cmocka_unit_test(tables_are_compared),
        cmocka_unit_test(the_table_of_storages_has_an_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
