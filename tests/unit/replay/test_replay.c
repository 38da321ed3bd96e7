/* SPDX-License-Identifier: MIT */
/* Recorded runs replayed: every figure measured on the GPU, and small traces made here. */
#include "support/test.h"

#include "snapshot/snapshot.h"
#include "support/pickle_out.h"
#include "tarn/host.h"
#include "tarn/replay.h"
#include "tarn/snapshot.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#define MIB ((uint64_t)1 << 20)

#ifndef TEST_DATA_DIR
#define TEST_DATA_DIR "tests/data" /* the build says where it is */
#endif

static struct tarn_replay *replay_in(const char *folder, const char *name)
{
    char path[1024];
    struct tarn_snapshot *snapshot = NULL;
    struct tarn_replay *replay = NULL;
    struct tarn_error error;

    (void)snprintf(path, sizeof path, "%s/%s/%s.pickle.gz", TEST_DATA_DIR, folder, name);
    if (tarn_snapshot_load(path, NULL, &snapshot, &error) ||
        tarn_replay_create(snapshot, -1, &replay, &error)) {
        fail_msg("%s: %s", name, error.text);
    }
    tarn_snapshot_destroy(snapshot);
    return replay;
}

static struct tarn_replay *replay_of(const char *name)
{
    return replay_in("snapshots", name);
}

static struct tarn_replay_result run(const struct tarn_replay *replay,
                                     struct tarn_replay_options options)
{
    struct tarn_replay_result result = {.struct_size = sizeof result};
    struct tarn_error error;

    options.struct_size = sizeof options;
    if (tarn_replay_run(replay, &options, &result, &error)) {
        fail_msg("%s", error.text);
    }
    return result;
}

static struct tarn_replay_info info_of(const struct tarn_replay *replay)
{
    struct tarn_replay_info info = {.struct_size = sizeof info};

    tarn_replay_get_info(replay, &info);
    return info;
}

static int64_t figure(const struct tarn_replay_result *result, const char *name)
{
    const struct tarn_stats *s = &result->stats;
    const struct {
        const char *name;
        int64_t value;
    } figures[] = {
        {"allocated_bytes.all.peak", s->by_pool[TARN_STAT_ALLOCATED_BYTES][TARN_STAT_ALL].peak},
        {"requested_bytes.all.peak", s->by_pool[TARN_STAT_REQUESTED_BYTES][TARN_STAT_ALL].peak},
        {"active_bytes.all.peak", s->by_pool[TARN_STAT_ACTIVE_BYTES][TARN_STAT_ALL].peak},
        {"reserved_bytes.all.peak", s->by_pool[TARN_STAT_RESERVED_BYTES][TARN_STAT_ALL].peak},
        {"segment.all.peak", s->by_pool[TARN_STAT_SEGMENT][TARN_STAT_ALL].peak},
        {"allocation.all.allocated", s->by_pool[TARN_STAT_ALLOCATION][TARN_STAT_ALL].allocated},
        {"num_alloc_retries", s->num_alloc_retries},
        {"num_ooms", s->num_ooms},
        {"num_device_alloc", s->num_device_alloc},
        {"num_device_free", s->num_device_free},
    };

    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        if (strcmp(figures[i].name, name) == 0) {
            return figures[i].value;
        }
    }
    fail_msg("measured.json has a figure that is not known: %s", name);
    return 0;
}

/* All integers of the measured run equal the replayed ones. */
static void figures_equal(const char *workload, const char *conf,
                          const struct tarn_replay_result *result)
{
    json_t *list = json_load_file(TEST_DATA_DIR "/measured.json", 0, NULL);
    const json_t *found = NULL;
    const char *key;
    json_t *value;
    int compared = 0;

    assert_non_null(list);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *entry = json_array_get(list, i);

        if (strcmp(json_string_value(json_object_get(entry, "workload")), workload) == 0 &&
            strcmp(json_string_value(json_object_get(entry, "conf")), conf) == 0) {
            found = entry;
        }
    }
    assert_non_null(found);
    json_object_foreach((json_t *)(uintptr_t)found, key, value)
    {
        if (json_is_integer(value)) {
            if (figure(result, key) != json_integer_value(value)) {
                fail_msg("%s, %s: %s is %lld, measured %lld", workload, conf, key,
                         (long long)figure(result, key), (long long)json_integer_value(value));
            }
            compared++;
        }
    }
    assert_int_equal(compared, 10);
    json_decref(list);
}

static void recorded_settings_reproduce_the_run(void **state)
{
    static const struct {
        const char *workload;
        const char *conf;
        uint64_t allocations;
    } rows[] = {
        {"tiny", "", 9},
        {"cudagraph", "", 142}, /* with private pools */
        {"multistream", "", 2979},
        {"resnet_sizes", "", 5977},
        {"gpt2_varlen", "", 11897},
        {"gpt2_varlen_expandable", "expandable_segments:True", 11897},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tarn_replay *replay = replay_of(rows[i].workload);
        const struct tarn_replay_info info = info_of(replay);
        const struct tarn_replay_result result = run(replay, (struct tarn_replay_options){0});

        assert_string_equal(info.conf, rows[i].conf);
        assert_true(info.complete);
        assert_int_equal(info.device, 0);
        assert_int_equal(info.allocations, rows[i].allocations);
        assert_int_equal(info.ooms, 0);
        assert_null(tarn_replay_get_note(replay, 0));
        assert_int_equal(result.allocations, rows[i].allocations);
        assert_int_equal(result.same_address, rows[i].allocations);
        assert_int_equal(result.first_other, -1);
        assert_int_equal(result.first_oom, -1);
        figures_equal(rows[i].workload, rows[i].conf, &result);
        tarn_replay_destroy(replay);
    }
}

/* Pools of graphs that were gone at the end, the limit behind collected garbage, and what lay in
 * expandable segments before the trace: the recorded run comes out exactly with them only. */
static void what_no_snapshot_says_is_found(void **state)
{
    static const struct {
        const char *workload;
        const char *conf;
        uint64_t allocations;
        uint64_t limit;
        const char *note;
    } rows[] = {
        {"graphs", "", 209, 0, "segments of private pools"},
        {"graphs_expandable", "expandable_segments:True", 209, 0, "segments of private pools"},
        {"collected", "max_split_size_mb:200,garbage_collection_threshold:0.7", 3050, 14336 * MIB,
         "the recorded run had a memory limit of 14.00 GiB"},
        {"late_expandable", "expandable_segments:True", 332, 0, "the trace begins mid-run"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tarn_replay *replay = replay_in("what_if", rows[i].workload);
        const struct tarn_replay_info info = info_of(replay);
        const struct tarn_replay_result result =
            run(replay, (struct tarn_replay_options){.check = true});
        const char *note = tarn_replay_get_note(replay, 0);

        assert_string_equal(info.conf, rows[i].conf);
        assert_int_equal(info.memory_limit, rows[i].limit);
        assert_int_equal(result.allocations, rows[i].allocations);
        assert_int_equal(result.same_address, rows[i].allocations);
        assert_int_equal(result.first_other, -1);
        assert_non_null(note);
        assert_memory_equal(note, rows[i].note, strlen(rows[i].note));
        if (info.complete) {
            figures_equal(rows[i].workload, rows[i].conf, &result);
        }
        tarn_replay_destroy(replay);
    }
}

/* 500 MiB were there before the first entry. */
static void a_start_that_does_not_fit_is_said(void **state)
{
    struct tarn_replay *replay = replay_in("what_if", "late_expandable");
    const struct tarn_replay_options rooms[] = {
        {.device_total = 300 * MIB}, {.memory_limit = 300 * MIB}, {.device_total = 512 * MIB}};
    uint64_t capacity = 0;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        const struct tarn_replay_result result = run(replay, rooms[i]);

        assert_int_equal(result.start_failed, i < 2);
        assert_int_equal(result.first_oom, i < 2 ? 0 : -1);
        assert_int_equal(result.allocations, i < 2 ? 0 : 332);
        assert_int_equal(result.stats.num_ooms, i < 2);
    }
    assert_int_equal(tarn_replay_fit(replay, NULL, &capacity, NULL), TARN_OK);
    assert_true(capacity > 300 * MIB && capacity <= 512 * MIB);
    tarn_replay_destroy(replay);
}

/* What expandable segments would have taken, from runs recorded without them, equals what the GPU
 * took when they were on. */
static void other_settings_are_predicted(void **state)
{
    static const struct {
        const char *workload;
        int64_t reserved;
    } rows[] = {{"gpt2_varlen", 11020533760}, {"resnet_sizes", 7270825984}};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct tarn_replay *replay = replay_of(rows[i].workload);
        const struct tarn_replay_result result =
            run(replay, (struct tarn_replay_options){.conf = "expandable_segments:True"});

        assert_int_equal(figure(&result, "reserved_bytes.all.peak"), rows[i].reserved);
        tarn_replay_destroy(replay);
    }
}

/* In thousandths of what lives. */
static void the_compact_policy_reserves_little_more_than_what_lives(void **state)
{
    static const struct {
        const char *workload;
        int64_t most;
    } rows[] = {{"gpt2_varlen", 1012},
                {"resnet_sizes", 1012},
                {"oom", 1012},
                {"llama_generate", 1012},
                {"multistream", 1030}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tarn_replay *replay = replay_of(rows[i].workload);
        const struct tarn_replay_result result =
            run(replay, (struct tarn_replay_options){.conf = "policy:compact"});
        const int64_t active = figure(&result, "active_bytes.all.peak");

        assert_true(active > 0);
        assert_in_range(figure(&result, "reserved_bytes.all.peak"), active,
                        active * rows[i].most / 1000);
        tarn_replay_destroy(replay);
    }
}

static void a_prediction_equals_the_measured_run(void **state)
{
    struct tarn_replay *replay = replay_of("resnet_sizes");
    const struct tarn_replay_result result =
        run(replay, (struct tarn_replay_options){.conf = "expandable_segments:True"});

    (void)state;
    figures_equal("resnet_sizes", "expandable_segments:True", &result);
    tarn_replay_destroy(replay);
}

static void a_trace_from_mid_run_keeps_its_addresses(void **state)
{
    struct tarn_replay *replay = replay_of("llama_generate");
    const struct tarn_replay_info info = info_of(replay);
    const struct tarn_replay_result result = run(replay, (struct tarn_replay_options){0});

    (void)state;
    assert_false(info.complete);
    assert_int_equal(info.entries, 60000);
    assert_int_equal(result.allocations, 19866);
    assert_int_equal(result.same_address, 19866);
    assert_int_equal(figure(&result, "reserved_bytes.all.peak"), 757071872);
    assert_string_equal(tarn_replay_get_note(replay, 0),
                        "the trace begins mid-run: 45 segments (757071872 bytes) and 202 blocks "
                        "existed before its first event; they were rebuilt from the final "
                        "segments, and peaks are those of the recorded part");
    assert_null(tarn_replay_get_note(replay, 1));
    tarn_replay_destroy(replay);
}

/* Name of the frame that a stack begins with; "" without one. */
static const char *first_frame(const struct tn_model *model, uint32_t stack)
{
    const struct tn_stack frames = tn_model_stack(model, stack);

    return frames.count ? tn_model_string(model, tn_model_frame(model, frames.frames[0])->name).text
                        : "";
}

static void traces_equal(const struct tn_model *recorded, const struct tn_model *made)
{
    uint64_t k = 0;

    for (uint64_t i = 0; i < recorded->traces[0].count; i++) {
        const struct tn_trace_entry *was = tn_trace_at(recorded, &recorded->traces[0], i);

        if (was->action == TN_TRACE_SNAPSHOT) { /* not the allocator's */
            continue;
        }
        const struct tn_trace_entry *is = tn_trace_at(made, &made->traces[0], k++);

        assert_int_equal(is->action, was->action);
        assert_int_equal(is->size, was->size);
        assert_int_equal(is->stream, was->stream);
        if (was->action == TN_TRACE_ALLOC || was->action == TN_TRACE_FREE_REQUESTED) {
            assert_int_equal(is->time_us, was->time_us);
        }
        if (was->action != TN_TRACE_OOM) { /* what the device had free */
            assert_int_equal(is->address, was->address);
        }
        if (was->action == TN_TRACE_ALLOC) {
            assert_string_equal(first_frame(made, is->stack), first_frame(recorded, was->stack));
        }
    }
    assert_int_equal(k, made->traces[0].count);
}

static struct tn_model_segment segment_at(const struct tn_model *model, uint64_t address)
{
    size_t i = 0;

    while (i < model->segment_count && model->segments[i].address != address) {
        i++;
    }
    assert_true(i < model->segment_count);
    return model->segments[i];
}

static void outcome_equals(const struct tn_model *recorded, const struct tn_model *made)
{
    traces_equal(recorded, made);
    assert_int_equal(made->segment_count, recorded->segment_count);
    assert_int_equal(made->annotation_count, recorded->annotation_count);
    for (size_t i = 0; i < recorded->segment_count; i++) {
        const struct tn_model_segment *was = &recorded->segments[i];
        const struct tn_model_segment is = segment_at(made, was->address);

        assert_int_equal(is.total_size, was->total_size);
        assert_int_equal(is.allocated_size, was->allocated_size);
        assert_int_equal(is.pool.id[0], was->pool.id[0]);
        assert_int_equal(is.pool.id[1], was->pool.id[1]);
        assert_int_equal(is.block_count, was->block_count);
        for (size_t k = 0; k < was->block_count; k++) {
            assert_int_equal(is.blocks[k].size, was->blocks[k].size);
            assert_int_equal(is.blocks[k].state, was->blocks[k].state);
        }
    }
}

/* The file does not say that the run had a limit of 7 GiB: the trace shows it. */
static void a_run_out_of_memory_comes_out_exactly(void **state)
{
    struct tarn_replay *replay = replay_of("oom");
    const struct tarn_replay_info info = info_of(replay);
    struct tarn_replay_result result = run(replay, (struct tarn_replay_options){0});

    (void)state;
    assert_int_equal(info.memory_limit, 7168 * MIB);
    assert_false(info.limit_is_device);
    assert_string_equal(tarn_replay_get_note(replay, 0),
                        "the recorded run had a memory limit of 7.00 GiB (7516192768 bytes), "
                        "inferred from its trace: with this limit the replay is exact");
    assert_int_equal(result.same_address, info.allocations);
    assert_int_equal(result.first_other, -1);
    assert_int_equal(result.first_oom, 4458);
    figures_equal("oom", info.conf, &result);

    const uint64_t whole = result.operations;

    result = run(replay, (struct tarn_replay_options){.stops_at_oom = true});
    assert_int_equal(result.first_oom, 4458);
    assert_true(result.operations < whole);
    result = run(replay, (struct tarn_replay_options){.conf = "expandable_segments:True",
                                                      .stops_at_oom = true});
    assert_int_equal(result.operations, whole);
    assert_true(figure(&result, "reserved_bytes.all.peak") <= (int64_t)(7168 * MIB));
    result = run(replay, (struct tarn_replay_options){.memory_limit = UINT64_MAX});
    assert_int_equal(result.first_oom, -1);
    assert_true(figure(&result, "reserved_bytes.all.peak") > (int64_t)(7168 * MIB));
    result = run(replay, (struct tarn_replay_options){.entries = 4458}); /* up to before it */
    assert_int_equal(result.first_oom, -1);
    assert_int_equal(result.same_address, result.allocations);
    result = run(replay, (struct tarn_replay_options){.memory_limit = 6000 * MIB});
    assert_true(result.first_oom >= 0 && result.first_oom < 4458);
    assert_true(figure(&result, "reserved_bytes.all.peak") <= (int64_t)(6000 * MIB));
    tarn_replay_destroy(replay);
}

/* A replay's snapshot of the recorded settings is the recorded one: the same trace, the same blocks
 * at the end. */
static void the_outcome_is_a_snapshot(void **state)
{
    static const char *const names[] = {"tiny", "cudagraph", "oom", "multistream"};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[1024];
        struct tarn_snapshot *recorded = NULL;
        struct tarn_snapshot *made = NULL;
        struct tarn_replay *replay = NULL;
        struct tarn_replay_result result = {.struct_size = sizeof result};
        struct tarn_error error;

        (void)snprintf(path, sizeof path, "%s/snapshots/%s.pickle.gz", TEST_DATA_DIR, names[i]);
        assert_int_equal(tarn_snapshot_load(path, NULL, &recorded, &error), TARN_OK);
        assert_int_equal(tarn_replay_create(recorded, -1, &replay, &error), TARN_OK);
        if (tarn_replay_capture(replay, recorded, NULL, &result, &made, &error)) {
            fail_msg("%s: %s", names[i], error.text);
        }
        outcome_equals(tn_snapshot_model(recorded), tn_snapshot_model(made));
        assert_int_equal(tarn_replay_capture(replay, NULL, NULL, &result, &made, &error),
                         TARN_ERR_INVALID_ARGUMENT);
        tarn_replay_destroy(replay);
        tarn_snapshot_destroy(made);
        tarn_snapshot_destroy(recorded);
    }
}

static void other_base_addresses_are_chosen(void **state)
{
    struct tarn_replay *replay = replay_of("gpt2_varlen");
    const struct tarn_replay_options options = {.base_address = (uint64_t)1 << 40};
    struct tarn_replay_result result = run(replay, options);
    struct tarn_error error;

    (void)state;
    assert_int_equal(result.same_address, 0);
    assert_int_equal(figure(&result, "requested_bytes.all.peak"), 10432354568);
    assert_int_equal(result.first_oom, -1);
    const struct tarn_replay_options odd = {.struct_size = sizeof odd, .base_address = 4096};
    assert_int_equal(tarn_replay_run(replay, &odd, &result, &error), TARN_ERR_INVALID_ARGUMENT);
    tarn_replay_destroy(replay);
}

static void a_small_device_runs_out(void **state)
{
    struct tarn_replay *replay = replay_of("gpt2_varlen");
    struct tarn_replay_result result =
        run(replay, (struct tarn_replay_options){.device_total = 11580473344});

    (void)state;
    assert_int_equal(result.first_oom, -1); /* exactly the peak is enough */
    result = run(replay, (struct tarn_replay_options){.device_total = 8000 * MIB});
    assert_true(result.first_oom > 0);
    assert_true(result.stats.num_ooms > 0);
    assert_true(figure(&result, "reserved_bytes.all.peak") <= (int64_t)(8000 * MIB));
    tarn_replay_destroy(replay);
}

static void every_invariant_holds_after_every_operation(void **state)
{
    static const char *const names[] = {"tiny", "cudagraph", "multistream"};
    static const char *const confs[] = {"", "expandable_segments:True", "max_split_size_mb:20"};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct tarn_replay *replay = replay_of(names[i]);

        for (size_t c = 0; c < 3; c++) {
            (void)run(replay, (struct tarn_replay_options){.conf = confs[c], .check = true});
        }
        tarn_replay_destroy(replay);
    }
}

static void a_replay_can_run_again(void **state)
{
    struct tarn_replay *replay = replay_of("multistream");
    struct tarn_replay_result first = run(replay, (struct tarn_replay_options){0});
    struct tarn_replay_result second = run(replay, (struct tarn_replay_options){0});

    (void)state;
    first.wall_ns = second.wall_ns = 0;
    assert_memory_equal(&first, &second, sizeof first);
    tarn_replay_destroy(replay);
}

static void misuse_is_refused(void **state)
{
    struct tarn_replay *replay = replay_of("tiny");
    struct tarn_replay_result result = {.struct_size = sizeof result};
    struct tarn_replay_options options = {.struct_size = sizeof options, .conf = "nonsense:1"};
    struct tarn_error error;

    (void)state;
    assert_int_equal(tarn_replay_run(replay, &options, &result, &error), TARN_ERR_CONFIG);
    assert_non_null(strstr(error.text, "nonsense"));
    assert_int_equal(tarn_replay_run(replay, NULL, &result, &error), TARN_OK);
    result.struct_size = 4;
    assert_int_equal(tarn_replay_run(replay, NULL, &result, &error), TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_replay_run(replay, NULL, NULL, &error), TARN_ERR_INVALID_ARGUMENT);

    /* A snapshot that it is not of: with other events, and without that device. */
    static const char *const others[] = {
        "{\"segments\":[],\"device_traces\":[[{\"action\":\"alloc\",\"addr\":1,\"size\":1,"
        "\"stream\":0}]]}",
        "{\"segments\":[],\"device_traces\":[]}"};

    for (size_t i = 0; i < 2; i++) {
        struct tarn_snapshot *other = NULL;
        struct tarn_snapshot *made = NULL;

        assert_int_equal(
            tarn_snapshot_load_memory(others[i], strlen(others[i]), NULL, &other, NULL), TARN_OK);
        result.struct_size = sizeof result;
        assert_int_equal(tarn_replay_capture(replay, other, NULL, &result, &made, &error),
                         TARN_ERR_INVALID_ARGUMENT);
        assert_string_equal(error.text, "the replay was not created from this snapshot");
        assert_null(made);
        tarn_snapshot_destroy(other);
    }
    tarn_replay_destroy(replay);
    tarn_replay_destroy(NULL);
}

static struct tarn_replay *replay_read(const char *json)
{
    struct tarn_snapshot *snapshot = NULL;
    struct tarn_replay *replay = NULL;
    struct tarn_error error = {.text = ""};

    assert_int_equal(tarn_snapshot_load_memory(json, strlen(json), NULL, &snapshot, NULL), TARN_OK);
    if (tarn_replay_create(snapshot, -1, &replay, &error)) {
        fail_msg("%s", error.text);
    }
    tarn_snapshot_destroy(snapshot);
    return replay;
}

/* A limit beyond the device is none; times far apart and settings of any kind are replayed. */
static void what_a_file_may_say(void **state)
{
    static const char *const confs[] = {"", "rules:2.14", "backend:cudaMallocAsync",
                                        "expandable_segments:True", "nonsense"};

    (void)state;
    for (size_t i = 0; i < sizeof confs / sizeof *confs; i++) {
        char json[2048];

        (void)snprintf(
            json, sizeof json,
            "{\"segments\":[],\"allocator_settings\":{\"PYTORCH_CUDA_ALLOC_CONF\":\"%s\"},"
            "\"device_traces\":[[{\"action\":\"segment_alloc\",\"addr\":4194304,\"size\":2097152,"
            "\"stream\":0,\"time_us\":1},{\"action\":\"alloc\",\"addr\":4194304,\"size\":512,"
            "\"stream\":0,\"time_us\":2},{\"action\":\"free_requested\",\"addr\":4194304,"
            "\"size\":512,\"stream\":0,\"time_us\":9000000000000000},{\"action\":"
            "\"free_completed\",\"addr\":4194304,\"size\":512,\"stream\":0,\"time_us\":"
            "9000000000000000},{\"action\":\"segment_free\",\"addr\":4194304,\"size\":2097152,"
            "\"stream\":0,\"time_us\":9000000000000001}]]}",
            confs[i]);
        struct tarn_replay *replay = replay_read(json);
        const struct tarn_replay_options options = {
            .struct_size = sizeof options, .conf = "", .memory_limit = UINT64_MAX / 2};
        struct tarn_replay_result result = {.struct_size = sizeof result};

        assert_int_equal(tarn_replay_run(replay, &options, &result, NULL), TARN_OK);
        assert_int_equal(result.first_oom, -1);
        assert_int_equal(result.stats.num_device_alloc, 1);
        tarn_replay_destroy(replay);
    }
}

/* ---- small traces made here ---- */

struct entry {
    const char *action;
    uint64_t address;
    uint64_t size;
    uint64_t stream;
};

struct final_block {
    uint64_t address;
    uint64_t size;
    const char *state;
};

static struct pickle_out pickle;
/* Of the entries of the trace made next: {0, N}, 0 = not named; NULL: none is. */
static const uint64_t *entry_pools;

/* A snapshot with one segment of these blocks (none: no segment) and this trace. */
static enum tarn_status load(const struct entry *entries, size_t count, uint64_t segment,
                             uint64_t segment_size, const struct final_block *blocks,
                             size_t block_count, struct tarn_snapshot **snapshot_out)
{
    struct pickle_out *p = &pickle;

    pickle_begin(p);
    pickle_dict(p);
    pickle_text(p, "segments");
    pickle_list(p);
    if (block_count > 0) {
        pickle_dict(p);
        pickle_item(p, "device", 0);
        pickle_item(p, "address", segment);
        pickle_item(p, "total_size", segment_size);
        pickle_item(p, "allocated_size", 0);
        pickle_item(p, "active_size", 0);
        pickle_item(p, "requested_size", 0);
        pickle_item(p, "stream", 0);
        pickle_item_text(p, "segment_type", "large");
        pickle_item_bool(p, "is_expandable", false);
        pickle_text(p, "blocks");
        pickle_list(p);
        for (size_t i = 0; i < block_count; i++) {
            pickle_dict(p);
            pickle_item(p, "address", blocks[i].address);
            pickle_item(p, "size", blocks[i].size);
            pickle_item(p, "requested_size", blocks[i].size);
            pickle_item_text(p, "state", blocks[i].state);
            pickle_dict_end(p);
        }
        pickle_list_end(p);
        pickle_dict_end(p);
    }
    pickle_list_end(p);
    pickle_text(p, "device_traces");
    pickle_list(p);
    pickle_list(p);
    for (size_t i = 0; i < count; i++) {
        pickle_dict(p);
        pickle_item_text(p, "action", entries[i].action);
        pickle_item(p, "addr", entries[i].address);
        pickle_item(p, "size", entries[i].size);
        pickle_item(p, "stream", entries[i].stream);
        if (entry_pools && entry_pools[i]) {
            pickle_item(p, "pool_id", 0);
            pickle_number(p, entry_pools[i]);
            pickle_put(p, "\x86", 1);
        }
        pickle_dict_end(p);
    }
    pickle_list_end(p);
    pickle_list_end(p);
    pickle_dict_end(p);
    pickle_end(p);
    return tarn_snapshot_load_memory(p->bytes, p->size, NULL, snapshot_out, NULL);
}

static struct tarn_replay *replay_made(const struct entry *entries, size_t count, uint64_t segment,
                                       uint64_t segment_size, const struct final_block *blocks,
                                       size_t block_count)
{
    struct tarn_snapshot *snapshot = NULL;
    struct tarn_replay *replay = NULL;
    struct tarn_error error = {.text = ""};

    assert_int_equal(load(entries, count, segment, segment_size, blocks, block_count, &snapshot),
                     TARN_OK);
    if (tarn_replay_create(snapshot, -1, &replay, &error)) {
        fail_msg("%s", error.text);
    }
    tarn_snapshot_destroy(snapshot);
    return replay;
}

#define A ((uint64_t)0x7f0000000000)

static void frees_wait_and_complete_where_they_did(void **state)
{
    static const struct entry trace[] = {
        {"segment_alloc", A, 30 * MIB, 0},
        {"alloc", A, 30 * MIB, 0},
        {"free_requested", A, 30 * MIB, 0}, /* used on another stream: waits */
        {"segment_alloc", A + 64 * MIB, 30 * MIB, 0},
        {"alloc", A + 64 * MIB, 30 * MIB, 0},
        {"free_requested", A + 64 * MIB, 30 * MIB, 0},
        {"free_completed", A + 64 * MIB, 30 * MIB, 0},
        {"free_completed", A, 30 * MIB, 0},
        {"alloc", A, 30 * MIB, 0},
        {"alloc", A + 64 * MIB, 30 * MIB, 0},
    };
    struct tarn_replay *replay = replay_made(trace, 10, 0, 0, NULL, 0);
    const struct tarn_replay_result result = run(replay, (struct tarn_replay_options){0});

    (void)state;
    assert_int_equal(result.allocations, 4);
    assert_int_equal(result.same_address, 4);
    assert_int_equal(result.stats.num_device_alloc, 2);
    tarn_replay_destroy(replay);
}

static void a_flush_and_a_failed_request_come_again(void **state)
{
    static const struct entry trace[] = {
        {"segment_alloc", A, 30 * MIB, 0},     {"alloc", A, 30 * MIB, 0},
        {"free_requested", A, 30 * MIB, 0},    {"free_completed", A, 30 * MIB, 0},
        {"segment_free", A, 30 * MIB, 0},      {"segment_alloc", A + 512 * MIB, 40 * MIB, 0},
        {"alloc", A + 512 * MIB, 40 * MIB, 0}, {"oom", 5 * MIB, 200 * MIB, 0},
        {"snapshot", 0, 40 * MIB, 0},          {"user_defined", 0, 0, 0},
    };
    struct tarn_replay *replay = replay_made(trace, 10, 0, 0, NULL, 0);
    struct tarn_replay_result result = run(replay, (struct tarn_replay_options){0});

    (void)state;
    assert_int_equal(info_of(replay).ooms, 1);
    assert_int_equal(result.allocations, 2);
    assert_int_equal(result.same_address, 2);
    assert_int_equal(result.stats.num_device_free, 1);
    assert_int_equal(result.first_oom, 7); /* the device had 40 MiB for it, and 5 more free */
    assert_int_equal(info_of(replay).memory_limit, 45 * MIB);
    assert_true(info_of(replay).limit_is_device);
    result = run(replay, (struct tarn_replay_options){.memory_limit = UINT64_MAX});
    assert_int_equal(result.first_oom, -1);
    assert_int_equal(result.stats.num_device_free, 1);
    result = run(replay, (struct tarn_replay_options){.device_total = 128 * MIB});
    assert_int_equal(result.first_oom, 7);
    assert_int_equal(result.same_address, 2);
    tarn_replay_destroy(replay);
}

static bool says_newer_rules(const struct tarn_replay *replay)
{
    const char *note;
    size_t i = 0;

    while ((note = tarn_replay_get_note(replay, i)) && !strstr(note, "rules:2.14")) {
        i++;
    }
    return note != NULL;
}

/* The request of a pool released the default pool's memory, which only the newer rules do; a device
 * that has that much and no more shows it. */
static void the_rules_of_a_run_are_found(void **state)
{
    static const struct entry trace[] = {
        {"segment_alloc", A, 60 * MIB, 0},     {"alloc", A, 60 * MIB, 0},
        {"free_requested", A, 60 * MIB, 0},    {"free_completed", A, 60 * MIB, 0},
        {"segment_free", A, 60 * MIB, 0},      {"segment_alloc", A + 512 * MIB, 40 * MIB, 0},
        {"alloc", A + 512 * MIB, 40 * MIB, 0},
    };
    static const uint64_t pools[] = {0, 0, 0, 0, 0, 3, 3};

    entry_pools = pools;
    struct tarn_replay *replay = replay_made(trace, 7, 0, 0, NULL, 0);

    entry_pools = NULL;
    struct tarn_replay_result result = run(replay, (struct tarn_replay_options){0});

    (void)state;
    assert_int_equal(result.same_address, 2);
    assert_int_equal(result.first_oom, -1);
    assert_int_equal(info_of(replay).memory_limit, 64 * MIB);
    assert_true(says_newer_rules(replay));
    result = run(replay, (struct tarn_replay_options){.conf = "expandable_segments:False"});
    assert_int_equal(result.first_oom, -1); /* settings that name no rules keep them */
    result = run(replay, (struct tarn_replay_options){.conf = "rules:2.11"});
    assert_int_equal(result.first_oom, 6);
    tarn_replay_destroy(replay);
}

/* Of two free blocks of one size the older one serves, although the other has the lower address. */
static void the_order_of_a_run_is_found(void **state)
{
    static const struct entry trace[] = {
        {"segment_alloc", A, 30 * MIB, 0},
        {"alloc", A, 30 * MIB, 0},
        {"segment_alloc", A + 64 * MIB, 30 * MIB, 0},
        {"alloc", A + 64 * MIB, 30 * MIB, 0},
        {"free_requested", A, 30 * MIB, 0},
        {"free_completed", A, 30 * MIB, 0},
        {"segment_free", A, 30 * MIB, 0},
        {"user_defined", 0, 0, 0}, /* no request emptied the cache */
        {"segment_alloc", A, 30 * MIB, 0},
        {"alloc", A, 30 * MIB, 0},
        {"free_requested", A, 30 * MIB, 0},
        {"free_completed", A, 30 * MIB, 0},
        {"free_requested", A + 64 * MIB, 30 * MIB, 0},
        {"free_completed", A + 64 * MIB, 30 * MIB, 0},
        {"alloc", A + 64 * MIB, 30 * MIB, 0},
    };
    struct tarn_replay *replay = replay_made(trace, 15, 0, 0, NULL, 0);
    struct tarn_replay_result result = run(replay, (struct tarn_replay_options){0});

    (void)state;
    assert_int_equal(result.same_address, 4);
    assert_true(says_newer_rules(replay));
    result = run(replay, (struct tarn_replay_options){.conf = "rules:2.11"});
    assert_int_equal(result.same_address, 3);
    tarn_replay_destroy(replay);
}

static void blocks_from_before_the_trace_are_rebuilt(void **state)
{
    static const struct entry trace[] = {
        {"free_requested", A + 2 * MIB, 3 * MIB, 0}, /* was there at the beginning */
        {"free_completed", A + 2 * MIB, 3 * MIB, 0},
        {"alloc", A + 2 * MIB, 2 * MIB, 0},
    };
    static const struct final_block blocks[] = {
        {A, 2 * MIB, "active_allocated"},
        {A + 2 * MIB, 2 * MIB, "active_allocated"},
        {A + 4 * MIB, MIB, "inactive"},
        {A + 5 * MIB, 15 * MIB, "active_allocated"},
    };
    struct tarn_replay *replay = replay_made(trace, 3, A, 20 * MIB, blocks, 4);
    const struct tarn_replay_result result = run(replay, (struct tarn_replay_options){0});

    (void)state;
    assert_false(info_of(replay).complete);
    assert_non_null(tarn_replay_get_note(replay, 0));
    assert_int_equal(result.allocations, 1);
    assert_int_equal(result.same_address, 1);
    assert_int_equal(result.stats.by_pool[TARN_STAT_ALLOCATED_BYTES][TARN_STAT_ALL].peak, 20 * MIB);
    tarn_replay_destroy(replay);
}

static void without_a_trace_there_is_no_replay(void **state)
{
    static const struct entry trace[] = {{"alloc", A, 512, 0}};
    struct tarn_snapshot *snapshot = NULL;
    struct tarn_replay *replay = NULL;
    struct tarn_error error;

    (void)state;
    assert_int_equal(load(trace, 0, 0, 0, NULL, 0, &snapshot), TARN_OK);
    assert_int_equal(tarn_replay_create(snapshot, -1, &replay, &error), TARN_ERR_NOT_FOUND);
    assert_null(replay);
    tarn_snapshot_destroy(snapshot);
    assert_int_equal(load(trace, 1, 0, 0, NULL, 0, &snapshot), TARN_OK);
    assert_int_equal(tarn_replay_create(snapshot, 1, &replay, &error), TARN_ERR_NOT_FOUND);
    assert_int_equal(tarn_replay_create(snapshot, 70000, &replay, &error), TARN_ERR_NOT_FOUND);
    assert_null(replay);
    tarn_snapshot_destroy(snapshot);
}

/* Snapshots that no allocator ever was in. They may be refused; whatever is run must keep to the
 * allocator's rules, which `check` looks at. */
static void nonsense_is_survived(void **state)
{
    static const struct entry trace[] = {
        {"free_completed", A + 2 * MIB, 3 * MIB, 0},
        {"free_completed", A + 2 * MIB, 5 * MIB, 0},
        {"free_requested", A + 2 * MIB, 1, 0},
        {"alloc", A + 2 * MIB, 0, 0},
        {"alloc", A + 2 * MIB, UINT64_MAX, 1},
        {"alloc", 0, 1, 1},
        {"segment_free", A, UINT64_MAX, 0},
        {"segment_alloc", A + 1, 3, 0},
        {"segment_map", A + 7, 1, 0},
        {"segment_unmap", A + 9, 0, 0},
        {"free_requested", UINT64_MAX, 1, 0},
    };
    static const struct {
        uint64_t segment;
        uint64_t size;
        struct final_block blocks[3];
    } finals[] = {
        {A, 20 * MIB, {{A, 20 * MIB, "inactive"}}},
        {A + 1, 20 * MIB, {{A + 1, 20 * MIB, "active_allocated"}}},
        {A, 20 * MIB + 1, {{A, 7, "active_allocated"}, {A + 7, 20 * MIB, "inactive"}}},
        {A, 0, {{A, 512, "active_allocated"}}},
        {A, UINT64_MAX, {{A, UINT64_MAX, "active_allocated"}}},
        {UINT64_MAX - 511, 20 * MIB, {{UINT64_MAX - 511, 512, "active_allocated"}}},
        {0, 20 * MIB, {{0, 512, "active_allocated"}}},
        {A,
         20 * MIB,
         {{A, 5 * MIB, "active_allocated"},
          {A, 5 * MIB, "active_allocated"},
          {A, 5 * MIB, "active_pending_free"}}},
        {A,
         20 * MIB,
         {{A + MIB, 5 * MIB, "active_allocated"},
          {A + 3 * MIB, 50 * MIB, "active_pending_free"},
          {A + 4 * MIB, 0, "active_allocated"}}},
        {A, 20 * MIB, {{A - MIB, 5 * MIB, "active_allocated"}, {A + 30 * MIB, 512, "inactive"}}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof finals / sizeof *finals; i++) {
        for (size_t from = 0; from < 11; from++) {
            struct tarn_snapshot *snapshot = NULL;
            struct tarn_replay *replay = NULL;
            size_t blocks = 0;

            while (blocks < 3 && finals[i].blocks[blocks].state) {
                blocks++;
            }
            if (load(&trace[from], 11 - from, finals[i].segment, finals[i].size, finals[i].blocks,
                     blocks, &snapshot)) {
                continue; /* refused by the reader */
            }
            if (tarn_replay_create(snapshot, -1, &replay, NULL) == TARN_OK) {
                struct tarn_replay_result result = {.struct_size = sizeof result};
                struct tarn_replay_options options = {.struct_size = sizeof options, .check = true};

                for (size_t c = 0; c < 2; c++) {
                    struct tarn_error error = {.text = ""};

                    options.conf = c ? "expandable_segments:True" : NULL;
                    if (tarn_replay_run(replay, &options, &result, &error)) {
                        assert_int_not_equal(error.status, TARN_ERR_INTERNAL);
                        assert_int_not_equal(error.text[0], '\0');
                    }
                }
            }
            tarn_replay_destroy(replay);
            tarn_snapshot_destroy(snapshot);
        }
    }
}

/* ---- host memory ---- */

/* Fails each of the first host allocations of making and running a replay, and one in a hundred
 * of those that follow, which repeat; returns how many failures were told. The others were none: a
 * simulated device without host memory is short of memory, too, and then the allocator tries again.
 */
static uint64_t fail_each(const char *file, const char *conf, uint64_t allocations)
{
    const struct tarn_replay_options options = {.struct_size = sizeof options, .conf = conf};
    struct tarn_snapshot *snapshot = NULL;
    uint64_t failures = 0;
    uint64_t calls = UINT64_MAX;

    assert_int_equal(tarn_snapshot_load(file, NULL, &snapshot, NULL), TARN_OK);
    const uint64_t live = tarn_host_get_usage().live_bytes;

    for (uint64_t n = 1; n <= calls; n += 1 + n / 100) {
        const uint64_t before = tarn_host_get_usage().alloc_calls;
        struct tarn_replay *replay = NULL;
        struct tarn_replay_result result = {.struct_size = sizeof result};
        struct tarn_error error = {.status = TARN_OK};

        tarn_host_fail_nth(n);
        enum tarn_status st = tarn_replay_create(snapshot, -1, &replay, &error);

        st = st ? st : tarn_replay_run(replay, &options, &result, &error);
        calls = tarn_host_get_usage().alloc_calls - before;
        tarn_host_fail_nth(0);
        tarn_replay_destroy(replay);
        assert_int_equal(tarn_host_get_usage().live_bytes, live);
        assert_true(st == TARN_OK || st == TARN_ERR_HOST_MEMORY);
        assert_int_equal(error.status, st);
        assert_true(st || result.allocations == allocations);
        failures += st != TARN_OK;
        calls = st ? UINT64_MAX : calls;
    }
    tarn_snapshot_destroy(snapshot);
    return failures;
}

static void every_host_failure_is_reported(void **state)
{
    static const struct {
        const char *file;
        const char *conf;
        uint64_t allocations;
        uint64_t least;
    } rows[] = {
        {TEST_DATA_DIR "/snapshots/tiny.pickle.gz", "", 9, 15},
        {TEST_DATA_DIR "/snapshots/tiny.pickle.gz", "expandable_segments:True", 9, 15},
        {TEST_DATA_DIR "/what_if/graphs.pickle.gz", NULL, 209, 100},
        {TEST_DATA_DIR "/what_if/late_expandable.pickle.gz", NULL, 332, 50},
    };
    const uint64_t before = tarn_host_get_usage().live_bytes;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const uint64_t failures = fail_each(rows[i].file, rows[i].conf, rows[i].allocations);

        if (failures < rows[i].least) {
            fail_msg("%s: only %llu allocations to fail", rows[i].file,
                     (unsigned long long)failures);
        }
        assert_int_equal(tarn_host_get_usage().live_bytes, before);
    }
}

/* A trace with so many different texts that the tables of the outcome grow with them. */
static void every_host_failure_of_an_outcome_is_reported(void **state)
{
    enum {
        BLOCKS = 100
    };
    static char text[BLOCKS * 512];
    size_t used = (size_t)snprintf(text, sizeof text, "{\"segments\":[],\"device_traces\":[[");
    struct tarn_snapshot *snapshot = NULL;
    struct tarn_replay *replay = NULL;
    struct tarn_replay_result result = {.struct_size = sizeof result};
    struct tarn_error error = {.text = ""};
    uint64_t failures = 0;
    uint64_t calls = UINT64_MAX;

    (void)state;
    for (int i = 0; i < BLOCKS; i++) {
        used += (size_t)snprintf(
            text + used, sizeof text - used,
            "%s{\"action\":\"alloc\",\"addr\":%d,\"size\":512,\"stream\":0,\"frames\":[],"
            "\"compile_context\":\"%0100d\",\"user_metadata\":\"%0100d\"}",
            i ? "," : "", 2097152 + 512 * i, i, i + BLOCKS);
    }
    used += (size_t)snprintf(text + used, sizeof text - used, "]]}");
    if (tarn_snapshot_load_memory(text, used, NULL, &snapshot, &error) ||
        tarn_replay_create(snapshot, -1, &replay, &error)) {
        fail_msg("%s", error.text);
    }
    for (uint64_t n = 1; n <= calls; n++) {
        const uint64_t live = tarn_host_get_usage().live_bytes;
        const uint64_t before = tarn_host_get_usage().alloc_calls;
        struct tarn_snapshot *made = NULL;

        tarn_host_fail_nth(n);
        const enum tarn_status st =
            tarn_replay_capture(replay, snapshot, NULL, &result, &made, &error);

        tarn_host_fail_nth(0);
        if (st == TARN_OK) { /* perhaps a device that was short of memory had some later */
            const struct tn_model *model = tn_snapshot_model(made);
            const struct tn_trace_entry *last = tn_trace_at(model, &model->traces[0], BLOCKS);
            const uint32_t context = tn_model_extra(model, last->extra)->compile_context;

            assert_int_equal(model->traces[0].count, BLOCKS + 1); /* and a segment */
            assert_int_equal(strtol(tn_model_string(model, context).text, NULL, 10), BLOCKS - 1);
            calls = tarn_host_get_usage().alloc_calls - before;
        } else {
            assert_int_equal(st, TARN_ERR_HOST_MEMORY);
            failures++;
        }
        tarn_snapshot_destroy(made);
        assert_int_equal(tarn_host_get_usage().live_bytes, live);
    }
    assert_true(failures > 20);
    tarn_replay_destroy(replay);
    tarn_snapshot_destroy(snapshot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recorded_settings_reproduce_the_run),
        cmocka_unit_test(other_settings_are_predicted),
        cmocka_unit_test(the_compact_policy_reserves_little_more_than_what_lives),
        cmocka_unit_test(a_prediction_equals_the_measured_run),
        cmocka_unit_test(a_trace_from_mid_run_keeps_its_addresses),
        cmocka_unit_test(a_run_out_of_memory_comes_out_exactly),
        cmocka_unit_test(the_outcome_is_a_snapshot),
        cmocka_unit_test(other_base_addresses_are_chosen),
        cmocka_unit_test(a_small_device_runs_out),
        cmocka_unit_test(every_invariant_holds_after_every_operation),
        cmocka_unit_test(a_replay_can_run_again),
        cmocka_unit_test(misuse_is_refused),
        cmocka_unit_test(what_a_file_may_say),
        cmocka_unit_test(frees_wait_and_complete_where_they_did),
        cmocka_unit_test(a_flush_and_a_failed_request_come_again),
        cmocka_unit_test(the_rules_of_a_run_are_found),
        cmocka_unit_test(the_order_of_a_run_is_found),
        cmocka_unit_test(blocks_from_before_the_trace_are_rebuilt),
        cmocka_unit_test(without_a_trace_there_is_no_replay),
        cmocka_unit_test(nonsense_is_survived),
        cmocka_unit_test(what_no_snapshot_says_is_found),
        cmocka_unit_test(a_start_that_does_not_fit_is_said),
        cmocka_unit_test(every_host_failure_of_an_outcome_is_reported),
        cmocka_unit_test(every_host_failure_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
