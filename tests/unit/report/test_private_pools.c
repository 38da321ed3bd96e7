/* SPDX-License-Identifier: MIT */
#include "support/report.h"

#include "tarn/report.h"

static struct tarn_private_pools_result *pools_of(const struct tarn_snapshot *snapshot)
{
    struct tarn_private_pools_result *pools = NULL;
    struct tarn_error error;
    size_t count = 0;

    if (tarn_private_pools_compute(snapshot, NULL, &pools, &count, &error)) {
        fail_msg("%s", error.text);
    }
    assert_int_equal(count, 1);
    return pools;
}

/* Their sums are those of the rows of `frag`, which has each stream and size class of a pool. */
static void pools_are_those_of_frag(void **state)
{
    struct tarn_snapshot *snapshot = report_load("cudagraph");
    struct tarn_private_pools_result *pools = pools_of(snapshot);
    struct tarn_frag_result *frag = NULL;
    size_t count;
    uint64_t all = 0;

    (void)state;
    assert_int_equal(tarn_frag_compute(snapshot, NULL, &frag, &count, NULL), TARN_OK);
    assert_int_equal(pools->pool_count, 3);
    for (size_t i = 0; i < pools->pool_count; i++) {
        uint64_t reserved = 0;
        uint64_t free = 0;

        for (size_t k = 0; k < frag->pool_count; k++) {
            if (memcmp(frag->pools[k].pool, pools->pools[i].pool, sizeof pools->pools[i].pool) ==
                0) {
                reserved += frag->pools[k].reserved;
                free += frag->pools[k].free;
            }
        }
        assert_int_equal(pools->pools[i].reserved, reserved);
        assert_int_equal(pools->pools[i].free, free);
        assert_true(i == 0 || reserved <= pools->pools[i - 1].reserved);
        all += reserved;
    }
    assert_int_equal(pools->reserved, all);
    assert_int_equal(pools->at.reserved, frag->at.reserved);
    tarn_report_destroy(frag);
    tarn_report_destroy(pools);
    tarn_snapshot_destroy(snapshot);
}

static void a_run_without_any(void **state)
{
    struct tarn_snapshot *snapshot = report_load("tiny");
    struct tarn_private_pools_result *pools = pools_of(snapshot);

    (void)state;
    assert_int_equal(pools->pool_count, 0);
    assert_int_equal(pools->reserved, 0);
    assert_true(pools->at.reserved > 0);
    tarn_report_destroy(pools);
    tarn_snapshot_destroy(snapshot);
}

/* By what they reserve, then by their number; pools of another device are not among them. */
static void pools_have_an_order(void **state)
{
    static const struct {
        int device;
        int mib;
        int pool[2];
    } segments[] = {{1, 2, {9, 9}}, {0, 2, {1, 2}}, {0, 2, {2, 0}}, {0, 2, {0, 1}},
                    {0, 2, {1, 0}}, {0, 4, {0, 7}}, {0, 4, {0, 7}}, {0, 2, {0, 0}}};
    static const uint64_t wanted[][2] = {{0, 7}, {0, 1}, {1, 0}, {1, 2}, {2, 0}};
    char json[4096] = "{'segments': [";
    struct tarn_private_pools_result *pools = NULL;
    size_t count = 0;

    (void)state;
    for (int i = 0; i < 8; i++) {
        const size_t used = strlen(json);

        (void)snprintf(json + used, sizeof json - used,
                       "%s{'device': %d, 'address': %d, 'total_size': %d, 'stream': 0,"
                       " 'segment_type': 'large', 'segment_pool_id': [%d, %d], 'blocks':"
                       " [{'size': %d, 'state': 'inactive'}]}",
                       i > 0 ? ", " : "", segments[i].device, (i + 1) << 24, segments[i].mib << 20,
                       segments[i].pool[0], segments[i].pool[1], segments[i].mib << 20);
    }
    const size_t used = strlen(json);

    (void)snprintf(json + used, sizeof json - used,
                   "], 'device_traces': [[{'action': 'alloc',"
                   " 'addr': 134217728, 'size': 512,"
                   " 'stream': 0}]]}");
    struct tarn_snapshot *snapshot = report_parse(json);

    assert_int_equal(tarn_private_pools_compute(snapshot, NULL, &pools, &count, NULL), TARN_OK);
    assert_true(count >= 1);
    assert_int_equal(pools->pool_count, 5);
    assert_int_equal(pools->pools[0].reserved, 8 << 20);
    assert_int_equal(pools->reserved, 16 << 20);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(pools->pools[i].pool[0], wanted[i][0]);
        assert_int_equal(pools->pools[i].pool[1], wanted[i][1]);
    }
    tarn_report_destroy(pools);
    tarn_snapshot_destroy(snapshot);
}

static enum tarn_status compute(const void *context, const struct tarn_writer *writer,
                                struct tarn_error *error)
{
    const struct report_asked *asked = context;
    struct tarn_private_pools_result *pools = NULL;
    size_t count;

    (void)writer;
    const enum tarn_status status =
        tarn_private_pools_compute(asked->snapshot, &asked->options, &pools, &count, error);

    error->status = status;
    if (status == TARN_OK) {
        tarn_report_destroy(pools);
    }
    return status;
}

static void failures_leave_nothing(void **state)
{
    struct tarn_snapshot *snapshot = report_load("cudagraph");
    const struct report_asked asked = {snapshot, {.struct_size = sizeof asked.options}};

    (void)state;
    assert_true(report_fails_cleanly(compute, &asked) >= 5);
    tarn_snapshot_destroy(snapshot);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pools_are_those_of_frag),
        cmocka_unit_test(pools_have_an_order),
        cmocka_unit_test(a_run_without_any),
        cmocka_unit_test(failures_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
