/* SPDX-License-Identifier: MIT */
/* Decision logs as snapshots: what they replay to, what is refused, missing memory. */
#include "support/test.h"

#include "snapshot/snapshot.h"
#include "support/temp.h"
#include "tarn/host.h"
#include "tarn/replay.h"
#include "tarn/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOG(name) TEST_DATA_DIR "/decisions/" name ".jsonl.gz"

static struct tarn_snapshot *snapshot_of(const char *path)
{
    struct tarn_snapshot *snapshot = NULL;
    struct tarn_error error;

    if (tarn_verify_snapshot(path, &snapshot, &error)) {
        fail_msg("%s: %s", path, error.text);
    }
    return snapshot;
}

/* Every block comes out where PyTorch had it. */
static void a_log_replays_to_what_was_recorded(void **state)
{
    static const struct {
        const char *path;
        const char *conf;
        uint64_t limit;
    } rows[] = {
        {LOG("mixed_default"), "", 0},
        {LOG("mixed_expandable"), "expandable_segments:True", 0},
        {LOG("pools_multistream"), "", 0},
        {LOG("limit_default"), "", (uint64_t)2 << 30},
        {LOG("limit_expandable"), "expandable_segments:True", (uint64_t)2 << 30},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tarn_snapshot *snapshot = snapshot_of(rows[i].path);
        struct tarn_replay_info info = {.struct_size = sizeof info};
        struct tarn_replay_result result = {.struct_size = sizeof result};
        struct tarn_replay *replay = NULL;

        assert_int_equal(tarn_replay_create(snapshot, -1, &replay, NULL), TARN_OK);
        tarn_replay_get_info(replay, &info);
        assert_string_equal(info.conf, rows[i].conf);
        assert_int_equal(info.memory_limit, rows[i].limit);
        assert_true(info.complete);
        assert_int_equal(tarn_replay_run(replay, NULL, &result, NULL), TARN_OK);
        assert_int_equal(result.first_other, -1);
        assert_true(result.allocations > 1000);
        tarn_replay_destroy(replay);
        tarn_snapshot_destroy(snapshot);
    }
}

static void every_log_can_be_replayed(void **state)
{
    static const char *const paths[] = {
        LOG("edges_split-21"), LOG("full_split-21"),        LOG("large_segment_limit-21"),
        LOG("lend_whole-21"),  LOG("limit_pools_gc-21"),    LOG("change_all-21"),
        LOG("capture-3"),      LOG("pools_grown_nested-21")};

    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct tarn_snapshot *snapshot = snapshot_of(paths[i]);
        struct tarn_replay_result result = {.struct_size = sizeof result};
        struct tarn_replay *replay = NULL;
        struct tarn_error error = {.text = ""};

        assert_int_equal(tarn_replay_create(snapshot, -1, &replay, &error), TARN_OK);
        if (tarn_replay_run(replay, NULL, &result, &error)) {
            fail_msg("%s: %s", paths[i], error.text);
        }
        tarn_replay_destroy(replay);
        tarn_snapshot_destroy(snapshot);
    }
}

static void the_snapshot_has_no_times_of_this_run(void **state)
{
    struct tarn_snapshot *snapshot = snapshot_of(LOG("small_default"));
    const struct tn_model *model = tn_snapshot_model(snapshot);

    (void)state;
    assert_true(model->traces[0].count > 0);
    for (uint64_t i = 0; i < model->traces[0].count; i++) {
        assert_int_equal(tn_trace_at(model, &model->traces[0], i)->time_us, TN_TIME_NONE);
    }
    tarn_snapshot_destroy(snapshot);
}

static void logs_are_told_by_their_content(void **state)
{
    (void)state;
    assert_true(tarn_verify_is_log(LOG("small_default")));
    assert_true(tarn_verify_is_log(TEST_DATA_DIR "/logs/same.jsonl"));
    assert_false(tarn_verify_is_log(TEST_DATA_DIR "/snapshots/tiny.pickle.gz"));
    assert_false(tarn_verify_is_log(TEST_DATA_DIR "/measured.json"));
    assert_false(tarn_verify_is_log(TEST_DATA_DIR "/nowhere"));
}

/* A pipe can be read once only, and a log has a first line. */
static void what_cannot_be_a_log_is_none(void **state)
{
    static const char header[] = "{\"brief\":[]}\n";
    char path[64];
    int ends[2];
    struct temp_file file = temp_write(header, sizeof header - 1);

    (void)state;
    assert_true(tarn_verify_is_log(file.path));
    temp_remove(&file);
    file = temp_write("\n{\"brief\":[]}\n", sizeof header);
    assert_false(tarn_verify_is_log(file.path));
    temp_remove(&file);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], header, sizeof header - 1), sizeof header - 1);
    assert_int_equal(close(ends[1]), 0);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
    assert_false(tarn_verify_is_log(path));
    assert_int_equal(close(ends[0]), 0);
}

static void what_comes_out_otherwise_or_is_cut_is_refused(void **state)
{
    struct tarn_snapshot *snapshot = NULL;
    struct tarn_error error;
    const uint64_t live = tarn_host_get_usage().live_bytes;

    (void)state;
    assert_int_equal(tarn_verify_snapshot(TEST_DATA_DIR "/logs/changed.jsonl", &snapshot, &error),
                     TARN_ERR_FORMAT);
    assert_non_null(strstr(error.text, "tarn verify shows the first"));
    assert_int_not_equal(tarn_verify_snapshot(TEST_DATA_DIR "/logs/cut.jsonl", &snapshot, &error),
                         TARN_OK);
    assert_int_equal(tarn_verify_snapshot(TEST_DATA_DIR "/nowhere", &snapshot, &error),
                     TARN_ERR_IO);
    assert_null(snapshot);
    assert_int_equal(tarn_host_get_usage().live_bytes, live);
}

static size_t largest; /* piece of memory that was asked for */

static void *hook_alloc(void *context, size_t size, size_t alignment)
{
    void *memory = NULL;

    (void)context;
    largest = size > largest ? size : largest;
    return posix_memalign(&memory, alignment, size) == 0 ? memory : NULL;
}

static void hook_release(void *context, void *memory, size_t size)
{
    (void)context;
    (void)size;
    free(memory);
}

/* Its events decide, not how many a log might have. */
static void the_history_is_as_long_as_the_log(void **state)
{
    const struct tarn_host_hooks hooks = {
        .struct_size = sizeof hooks, .alloc = hook_alloc, .release = hook_release};
    struct tarn_snapshot *snapshot = NULL;

    (void)state;
    assert_int_equal(tarn_host_set_hooks(&hooks), TARN_OK);
    assert_int_equal(tarn_verify_snapshot(LOG("big_default"), &snapshot, NULL), TARN_OK);
    tarn_snapshot_destroy(snapshot);
    assert_int_equal(tarn_host_set_hooks(NULL), TARN_OK);
    assert_in_range(largest, 1, (size_t)16 << 20);
}

static void every_host_failure_is_reported(void **state)
{
    const uint64_t live = tarn_host_get_usage().live_bytes;
    enum tarn_status st = TARN_ERR_HOST_MEMORY;
    uint64_t failures = 0;

    (void)state;
    for (uint64_t n = 1; st != TARN_OK; n++) {
        struct tarn_snapshot *snapshot = NULL;
        struct tarn_error error = {.status = TARN_OK};

        tarn_host_fail_nth(n);
        st = tarn_verify_snapshot(TEST_DATA_DIR "/logs/same.jsonl", &snapshot, &error);
        tarn_host_fail_nth(0);
        assert_int_equal(snapshot != NULL, st == TARN_OK);
        tarn_snapshot_destroy(snapshot);
        assert_int_equal(tarn_host_get_usage().live_bytes, live);
        failures += st != TARN_OK;
    }
    assert_true(failures > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_log_replays_to_what_was_recorded),
        cmocka_unit_test(every_log_can_be_replayed),
        cmocka_unit_test(the_snapshot_has_no_times_of_this_run),
        cmocka_unit_test(logs_are_told_by_their_content),
        cmocka_unit_test(what_cannot_be_a_log_is_none),
        cmocka_unit_test(what_comes_out_otherwise_or_is_cut_is_refused),
        cmocka_unit_test(the_history_is_as_long_as_the_log),
        cmocka_unit_test(every_host_failure_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
