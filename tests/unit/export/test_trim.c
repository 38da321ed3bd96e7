/* SPDX-License-Identifier: MIT */
#include "support/report.h"

#include "analysis/timeline.h"
#include "snapshot/snapshot.h"
#include "support/same_model.h"
#include "tarn/report.h"
#include "tarn/trim.h"

static struct tarn_snapshot *trimmed(const struct tarn_snapshot *snapshot,
                                     const struct tarn_trim_options *options)
{
    struct tarn_snapshot *made;
    struct tarn_error error;

    if (tarn_snapshot_trim(snapshot, options, &made, &error)) {
        fail_msg("%s", error.text);
    }
    return made;
}

static void is_consistent(const struct tarn_snapshot *snapshot)
{
    struct tarn_findings findings = TARN_FINDINGS_INIT;

    assert_int_equal(tarn_snapshot_check(snapshot, &findings, NULL), TARN_OK);
    if (findings.count > 0) {
        fail_msg("%s", findings.text[0]);
    }
}

static const char *const recorded[] = {
    "tiny.before", "tiny",        "cudagraph",    "multistream",
    "oom",         "gpt2_varlen", "resnet_sizes", "gpt2_varlen_expandable"};

static void everything_is_a_copy(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof recorded / sizeof *recorded; i++) {
        struct tarn_snapshot *snapshot = report_load(recorded[i]);
        struct tarn_snapshot *copy = trimmed(snapshot, NULL);

        same_model(tn_snapshot_model(snapshot), tn_snapshot_model(copy));
        tarn_snapshot_destroy(copy);
        tarn_snapshot_destroy(snapshot);
    }
}

/* Bytes reserved, and asked for in blocks in use, as the segments say. */
static void segments_are_as_at(const struct tarn_snapshot *part, const struct tn_time_point *moment)
{
    const struct tn_model *model = tn_snapshot_model(part);
    uint64_t reserved = 0;
    uint64_t requested = 0;

    for (size_t i = 0; i < model->segment_count; i++) {
        reserved += model->segments[i].total_size;
        requested += model->segments[i].requested_size;
    }
    assert_int_equal(reserved, moment->reserved);
    assert_int_equal(requested, moment->requested);
}

/* Cut anywhere it agrees with itself, and with what the whole trace says of that moment. */
static void a_cut_is_a_snapshot_of_that_moment(void **state)
{
    (void)state;
    for (size_t i = 1; i < sizeof recorded / sizeof *recorded; i++) {
        struct tarn_snapshot *snapshot = report_load(recorded[i]);
        const uint64_t count = tarn_snapshot_trace_length(snapshot, 0);
        struct tn_timeline timeline;

        assert_true(tn_timeline_init(&timeline, tn_snapshot_model(snapshot), 0));
        for (uint64_t k = 0; k < 7; k++) {
            const struct tarn_trim_options options = {.struct_size = sizeof options,
                                                      .has_events = true,
                                                      .first_event = k * count / 20,
                                                      .last_event = k * (count - 1) / 6};
            struct tarn_snapshot *part = trimmed(snapshot, &options);
            const struct tn_time_point moment = tn_timeline_at(&timeline, options.last_event);

            assert_int_equal(tarn_snapshot_trace_length(part, 0),
                             options.last_event - options.first_event + 1);
            is_consistent(part);
            segments_are_as_at(part, &moment);
            tarn_snapshot_destroy(part);
        }
        tn_timeline_fini(&timeline);
        tarn_snapshot_destroy(snapshot);
    }
}

static const char two_devices[] =
    "{'segments': [{'device': 0, 'address': 4096, 'total_size': 1024, 'stream': 7,"
    " 'segment_type': 'small', 'blocks': [{'size': 512, 'requested_size': 500, 'state':"
    "  'active_allocated', 'frames': [{'name': 'secret', 'filename': '/home/me/secret.py',"
    "  'line': 3}]}, {'size': 512, 'requested_size': 0, 'state': 'inactive', 'frames': []}]},"
    " {'device': 1, 'address': 65536, 'total_size': 512, 'segment_type': 'small', 'blocks':"
    "  [{'size': 512, 'requested_size': 1, 'state': 'active_allocated'}]}],"
    " 'device_traces': [[{'action': 'segment_alloc', 'addr': 4096, 'size': 1024, 'stream': 7,"
    "  'time_us': 1000000}, {'action': 'alloc', 'addr': 4608, 'size': 300, 'stream': 7, 'time_us':"
    "  1000005}, {'action': 'alloc', 'addr': 4096, 'size': 500, 'stream': 7, 'time_us': 1000010,"
    "  'user_metadata': 'secret note', 'compile_context': 'N/A', 'frames': [{'name': 'secret',"
    "  'filename': '/home/me/secret.py', 'line': 3}, {'name': 'at::empty', 'filename':"
    "  '/src/empty.cc', 'line': 8}, {'name': 'forward', 'filename':"
    "  '/home/me/lib/site-packages/torch/nn/linear.py', 'line': 9}]},"
    "  {'action': 'free_requested', 'addr': 4608, 'size': 300, 'stream': 7, 'time_us': 1000020},"
    "  {'action': 'free_completed', 'addr': 4608, 'size': 300, 'stream': 7, 'time_us': 1000030}],"
    "  []],"
    " 'allocator_settings': {'PYTORCH_CUDA_ALLOC_CONF': 'max_split_size_mb:20', 'other': 'x'},"
    " 'external_annotations': [{'stage': 'START', 'name': 'secret range', 'device': 0, 'time_us':"
    "  1000005, 'path': '/home/me'}, {'stage': 'START', 'name': 'ProfilerStep#12', 'device': 0,"
    "  'time_us': 1000030}, {'stage': 'END', 'name': 'Optimizer.step#MyAdam.step', 'device': 1,"
    "  'time_us': 1000030}],"
    " 'host_segments': [{'address': 1, 'total_size': 1, 'blocks': [{'size': 1, 'state':"
    "  'inactive'}]}], 'host_traces': [[{'action': 'alloc', 'addr': 1, 'size': 1, 'stream': 0}]]}";

/* 64 is freed, 128 is not, 192 is only about to be, 256 is from before the trace. */
static void what_is_freed_can_be_left_out(void **state)
{
    static const enum tn_trace_action kept[] = {
        TN_TRACE_SEGMENT_ALLOC,  TN_TRACE_ALLOC, TN_TRACE_ANNOTATE,      TN_TRACE_FREE_REQUESTED,
        TN_TRACE_FREE_COMPLETED, TN_TRACE_ALLOC, TN_TRACE_FREE_REQUESTED};
    struct tarn_snapshot *snapshot = report_parse(
        "{'segments': [], 'device_traces': [["
        "{'action': 'segment_alloc', 'addr': 64, 'size': 1024, 'stream': 0},"
        "{'action': 'alloc', 'addr': 64, 'size': 32, 'stream': 0},"
        "{'action': 'annotate', 'addr': 64, 'size': 32, 'stream': 0, 'user_metadata': 'gone'},"
        "{'action': 'alloc', 'addr': 128, 'size': 32, 'stream': 0},"
        "{'action': 'annotate', 'addr': 128, 'size': 32, 'stream': 0, 'user_metadata': 'stays'},"
        "{'action': 'free_requested', 'addr': 64, 'size': 32, 'stream': 0},"
        "{'action': 'free_completed', 'addr': 64, 'size': 32, 'stream': 0},"
        "{'action': 'free_requested', 'addr': 256, 'size': 32, 'stream': 0},"
        "{'action': 'free_completed', 'addr': 256, 'size': 32, 'stream': 0},"
        "{'action': 'alloc', 'addr': 192, 'size': 32, 'stream': 0},"
        "{'action': 'free_requested', 'addr': 192, 'size': 32, 'stream': 0}]]}");
    struct tarn_trim_options options = {.struct_size = sizeof options, .drop_freed = true};
    struct tarn_snapshot *part = trimmed(snapshot, &options);
    const struct tn_model *model = tn_snapshot_model(part);

    (void)state;
    assert_int_equal(model->traces[0].count, sizeof kept / sizeof *kept);
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        assert_int_equal(tn_trace_at(model, &model->traces[0], i)->action, kept[i]);
    }
    assert_int_equal(tn_trace_at(model, &model->traces[0], 1)->address, 128);
    tarn_snapshot_destroy(part);
    options.has_events = true; /* the part does not free 64 */
    options.last_event = 2;
    part = trimmed(snapshot, &options);
    assert_int_equal(tarn_snapshot_trace_length(part, 0), 3);
    tarn_snapshot_destroy(part);
    tarn_snapshot_destroy(snapshot);
}

/* What the rest of a run is about is allocated at its end, and adds up to the same. */
static void without_what_is_freed_a_run_ends_the_same(void **state)
{
    const struct tarn_trim_options options = {.struct_size = sizeof options, .drop_freed = true};

    (void)state;
    for (size_t i = 1; i < sizeof recorded / sizeof *recorded; i++) {
        struct tarn_snapshot *snapshot = report_load(recorded[i]);
        struct tarn_snapshot *part = trimmed(snapshot, &options);
        struct tn_timeline whole;
        struct tn_timeline rest;

        assert_true(tn_timeline_init(&whole, tn_snapshot_model(snapshot), 0));
        assert_true(tn_timeline_init(&rest, tn_snapshot_model(part), 0));
        const uint64_t count = tarn_snapshot_trace_length(snapshot, 0);
        const uint64_t left = tarn_snapshot_trace_length(part, 0);
        const struct tn_time_point end = tn_timeline_at(&whole, count - 1);
        const struct tn_time_point same = tn_timeline_at(&rest, left - 1);

        assert_true(left < count);
        assert_int_equal(same.requested, end.requested);
        assert_int_equal(same.reserved, end.reserved);
        is_consistent(part);
        tn_timeline_fini(&rest);
        tn_timeline_fini(&whole);
        tarn_snapshot_destroy(part);
        tarn_snapshot_destroy(snapshot);
    }
}

static enum tarn_status json_write(const void *context, const struct tarn_writer *writer,
                                   struct tarn_error *error)
{
    return tarn_snapshot_write(context, TARN_SNAPSHOT_JSON, writer, error);
}

static void names_are_replaced(void **state)
{
    const struct tarn_trim_options options = {
        .struct_size = sizeof options, .anonymize = true, .drop_cpp = true};
    struct tarn_snapshot *snapshot = report_parse(two_devices);
    struct tarn_snapshot *part = trimmed(snapshot, &options);
    char *text = report_text(json_write, part);

    (void)state;
    assert_null(strstr(text, "secret"));
    assert_null(strstr(text, "home"));
    assert_null(strstr(text, "MyAdam"));
    assert_null(strstr(text, "empty"));
    assert_null(strstr(text, "100000"));
    assert_non_null(strstr(text, "{\"name\":\"function1\",\"filename\":\"file1.py\",\"line\":3}"));
    assert_non_null(strstr(text, "{\"name\":\"forward\",\"filename\":\"torch/nn/linear.py\","
                                 "\"line\":9}"));
    assert_non_null(strstr(text, "\"name\":\"ProfilerStep#12\""));
    assert_non_null(strstr(text, "\"name\":\"Optimizer.step#note"));
    assert_non_null(strstr(text, "\"compile_context\":\"N/A\""));
    assert_non_null(strstr(text, "max_split_size_mb:20"));
    free(text);
    tarn_snapshot_destroy(part);
    tarn_snapshot_destroy(snapshot);
}

/* SECRET stands in every text that a snapshot can have. */
static const char secrets[] =
    "{'SECRETtop': 'SECRETtop', 'segments': [{'device': 0, 'address': 4096, 'total_size': 1024,"
    " 'segment_type': 'small', 'SECRETkey': 'SECRETvalue', 'frames': [{'name': 'SECRETframe',"
    " 'filename': '/SECRETfolder/SECRET.cc', 'line': 1}], 'blocks': [{'size': 1024,"
    "  'requested_size': 500, 'state': 'active_allocated', 'SECRETkey': 1, 'frames': [{'name':"
    "  'SECRETname', 'filename': '/x/site-packages/torch/\\u0000SECRET.py', 'line': 3, "
    "'fx_node_op': 'SECRETop', 'fx_node_name':"
    "  'SECRETnode', 'fx_node_target': 'SECRETtarget', 'fx_original_trace': 'SECRETtrace'},"
    "  {'name': 'SECRETup', 'filename': '/x/site-packages/torch/../SECRET/me.py', 'line': 1}]}]}],"
    " 'device_traces': [[{'action': 'SECRETaction', 'addr': 1, 'size': 1, 'stream': 0},"
    "  {'action': 'SECRETother', 'addr': 1, 'size': 1, 'stream': 0},"
    "  {'action': 'alloc', 'addr': 4096, 'size': 500, 'stream': 7, 'time_us': 1000010,"
    "  'user_metadata': 'SECRETuser', 'internal_metadata': 'SECRETinternal', 'category':"
    "  'SECRETcategory', 'compile_context': 'SECRETcompile', 'SECRETkey': 'SECRETvalue', 'frames':"
    "  [{'name': 'SECRETfunction', 'filename': '/home/SECRET/a.py', 'line': 3}]}]],"
    " 'allocator_settings': {'PYTORCH_CUDA_ALLOC_CONF':"
    "  'max_split_size_mb:20,SECRETsetting:SECRETvalue,roundup_power2_divisions:[256:1,SECRET:2]',"
    "  'max_split_size': 20971520, 'SECRETkey': 'SECRETvalue', 'SECRETkey2': 5,"
    "  'pinned_num_register_threads': 1, 'backend': 'native SECRET', 'policy': '',"
    "  'max_cached_mb': '123456789012345678901'},"
    " 'external_annotations': [{'stage': 'SECRETstage', 'name': 'SECRETname', 'device': 0,"
    "  'time_us': 1000005, 'SECRETpath': 'SECRETvalue'}, {'stage': '', 'name': 'N/A\\u0000SECRET',"
    "  'device': 0, 'time_us': 1000005}, {'stage': 'END', 'name': 'ProfilerStep#1\\u0000SECRET',"
    "  'device': 0, 'time_us': 1000005}, {'stage': 'END', 'name': 'ProfilerStep#', 'device': 0,"
    "  'time_us': 1000005}, {'stage': 'END', 'name':"
    "  'ProfilerStep#SECRET', 'device': 0, 'time_us': 1000005}, {'stage': 'START', 'name':"
    "  'Optimizer.step#SECRET.step', 'device': 0, 'time_us': 1000030}],"
    " 'host_segments': [{'address': 1, 'total_size': 1, 'blocks': [{'size': 1, 'state':"
    "  'inactive', 'frames': [{'name': 'SECREThost', 'filename': 'SECRET.c', 'line': 1}]}]}],"
    " 'host_traces': [[{'action': 'SECREThost', 'addr': 1, 'size': 1, 'stream': 0,"
    "  'user_metadata': 'SECREThost'}]]}";

static enum tarn_status pickle_write(const void *context, const struct tarn_writer *writer,
                                     struct tarn_error *error)
{
    return tarn_snapshot_write(context, TARN_SNAPSHOT_PICKLE, writer, error);
}

/* Whether the bytes, which may have NULs, hold the word. */
static bool holds(const struct test_collect *bytes, const char *word)
{
    const size_t length = strlen(word);
    size_t at = 0;

    while (at + length <= bytes->size && memcmp(bytes->text + at, word, length) != 0) {
        at++;
    }
    return at + length <= bytes->size;
}

static void no_text_is_left(void **state)
{
    static const struct tarn_trim_options options = {.struct_size = sizeof options,
                                                     .anonymize = true};
    static const struct tarn_trim_options as_it_is = {.struct_size = sizeof as_it_is};
    struct tarn_snapshot *snapshot = report_parse(secrets);

    (void)state;
    for (int format = 0; format < 4; format++) {
        struct tarn_snapshot *part = trimmed(snapshot, format < 2 ? &options : &as_it_is);
        struct test_collect bytes = {0};
        const struct tarn_writer writer = {test_collect_write, &bytes};

        assert_int_equal((format % 2 ? json_write : pickle_write)(part, &writer, NULL), TARN_OK);
        assert_int_equal(holds(&bytes, "SECRET"), format >= 2); /* the test would see it */
        assert_true(holds(&bytes, "pinned_num_register_threads"));
        free(bytes.text);
        tarn_snapshot_destroy(part);
    }
    struct tarn_snapshot *part = trimmed(snapshot, &options);
    char *text = report_text(json_write, part);

    assert_non_null(strstr(text, "\"max_split_size_mb:20,other:other,"
                                 "roundup_power2_divisions:[256:1,other:2]\""));
    assert_non_null(strstr(text, "\"setting1\":\"other\",\"setting2\":5,"));
    assert_non_null(strstr(text, "\"backend\":\"native other\""));
    assert_non_null(strstr(text, "\"policy\":\"\""));
    assert_non_null(strstr(text, "\"max_cached_mb\":\"other\""));
    assert_non_null(strstr(text, "\"action\":\"word1\""));
    assert_non_null(strstr(text, "\"action\":\"word2\""));
    free(text);
    tarn_snapshot_destroy(part);
    tarn_snapshot_destroy(snapshot);
}

static void one_device_or_some_time(void **state)
{
    struct tarn_trim_options options = {
        .struct_size = sizeof options, .one_device = true, .device = 1};
    struct tarn_snapshot *snapshot = report_parse(two_devices);
    struct tarn_snapshot *part = trimmed(snapshot, &options);

    (void)state;
    assert_int_equal(tarn_snapshot_segment_count(part), 1);
    assert_int_equal(tarn_snapshot_trace_length(part, 0), 0);
    assert_int_equal(tn_snapshot_model(part)->annotation_count, 1);
    assert_int_equal(tn_snapshot_model(part)->host_segment_count, 1);
    tarn_snapshot_destroy(part);
    options = (struct tarn_trim_options){
        .struct_size = sizeof options, .has_time = true, .from_us = 5, .to_us = 25};
    part = trimmed(snapshot, &options);
    assert_int_equal(tarn_snapshot_trace_length(part, 0), 3);
    assert_int_equal(tn_snapshot_model(part)->annotation_count, 1);
    assert_int_equal(tn_snapshot_model(part)->host_segment_count, 0);
    assert_int_equal(tn_snapshot_model(part)->segments[0].blocks[1].state,
                     TN_BLOCK_ACTIVE_PENDING_FREE);
    is_consistent(part);
    tarn_snapshot_destroy(part);
    tarn_snapshot_destroy(snapshot);
}

/* Events and time limit each other; what is before the first event has no entry. */
static void parts_of_both_kinds(void **state)
{
    struct tarn_trim_options options = {.struct_size = sizeof options,
                                        .has_events = true,
                                        .first_event = 2,
                                        .last_event = 4,
                                        .has_time = true,
                                        .from_us = 5,
                                        .to_us = 25};
    struct tarn_snapshot *snapshot = report_parse(two_devices);
    struct tarn_snapshot *part = trimmed(snapshot, &options);

    (void)state;
    assert_int_equal(tarn_snapshot_trace_length(part, 0), 2); /* 2 and 3 */
    is_consistent(part);
    tarn_snapshot_destroy(part);
    tarn_snapshot_destroy(snapshot);
    snapshot = report_parse(
        "{'segments': [{'device': -1, 'address': 4096, 'total_size': 512, 'blocks': [{'size': 512,"
        " 'requested_size': 5, 'state': 'active_allocated'}]}, {'device': 0, 'address': 65536,"
        " 'total_size': 1024, 'blocks': [{'size': 512, 'requested_size': 300, 'state':"
        " 'active_allocated'}, {'size': 512, 'state': 'inactive'}]}], 'device_traces': [["
        "{'action': 'free_requested', 'addr': 66048, 'size': 300, 'stream': 0, 'time_us': 100},"
        "{'action': 'free_completed', 'addr': 66048, 'size': 300, 'stream': 0, 'time_us': 200},"
        "{'action': 'alloc', 'addr': 66148, 'size': 100, 'stream': 0, 'time_us': 300},"
        "{'action': 'free_completed', 'addr': 66148, 'size': 100, 'stream': 0, 'time_us': 400}]]}");
    options = (struct tarn_trim_options){
        .struct_size = sizeof options, .has_time = true, .from_us = -50, .to_us = -10};
    part =
        trimmed(snapshot, &options); /* before the first: the block is allocated, and not asked */
    assert_int_equal(tarn_snapshot_trace_length(part, 0), 0);
    const struct tn_model *model = tn_snapshot_model(part);
    bool found = false;

    assert_int_equal(model->segment_count, 2);
    for (size_t i = 0; i < model->segment_count; i++) {
        for (size_t k = 0; k < model->segments[i].block_count; k++) {
            const struct tn_model_block *block = &model->segments[i].blocks[k];

            if (block->address == 66048) {
                found = true;
                assert_int_equal(block->state, TN_BLOCK_ACTIVE_ALLOCATED);
                assert_int_equal(block->requested_size, 300);
            }
        }
    }
    assert_true(found);
    tarn_snapshot_destroy(part);
    tarn_snapshot_destroy(snapshot);
}

/* Blocks over each other: one ends where the next one begins. */
static void blocks_over_each_other(void **state)
{
    const struct tarn_trim_options options = {
        .struct_size = sizeof options, .has_events = true, .last_event = 2};
    struct tarn_snapshot *snapshot =
        report_parse("{'segments': [], 'device_traces': [["
                     "{'action': 'segment_alloc', 'addr': 65536, 'size': 4096, 'stream': 0},"
                     "{'action': 'alloc', 'addr': 65536, 'size': 2048, 'stream': 0},"
                     "{'action': 'alloc', 'addr': 66048, 'size': 512, 'stream': 0},"
                     "{'action': 'free_completed', 'addr': 66048, 'size': 512, 'stream': 0},"
                     "{'action': 'free_completed', 'addr': 65536, 'size': 2048, 'stream': 0},"
                     "{'action': 'segment_free', 'addr': 65536, 'size': 4096, 'stream': 0}]]}");
    struct tarn_snapshot *part = trimmed(snapshot, &options);
    const struct tn_model *model = tn_snapshot_model(part);
    uint64_t at = 65536;

    (void)state;
    assert_int_equal(model->segment_count, 1);
    for (size_t k = 0; k < model->segments[0].block_count; k++) {
        assert_int_equal(model->segments[0].blocks[k].address, at);
        at += model->segments[0].blocks[k].size;
    }
    assert_int_equal(at, 65536 + 4096);
    tarn_snapshot_destroy(part);
    tarn_snapshot_destroy(snapshot);
}

/* A log of RMM's has no keys that entries came with, and an entry may have no time. */
static void entries_without_keys_or_times(void **state)
{
    static const char log[] = "Thread,Time,Action,Pointer,Size,Stream\n"
                              "1,10:00:00:000001,allocate,0x7f0000000000,1024,0\n"
                              "1,10:00:00:000002,free,0x7f0000000000,1024,0\n";
    const struct tarn_trim_options all = {.struct_size = sizeof all};
    const struct tarn_trim_options options = {
        .struct_size = sizeof options, .has_time = true, .from_us = 0, .to_us = 10};
    struct tarn_snapshot *snapshot;

    (void)state;
    assert_int_equal(tarn_snapshot_load_memory(log, sizeof log - 1, NULL, &snapshot, NULL),
                     TARN_OK);
    struct tarn_snapshot *part = trimmed(snapshot, &all);

    same_model(tn_snapshot_model(snapshot), tn_snapshot_model(part));
    tarn_snapshot_destroy(part);
    tarn_snapshot_destroy(snapshot);
    snapshot =
        report_parse("{'segments': [], 'device_traces': [["
                     "{'action': 'alloc', 'addr': 512, 'size': 9, 'stream': 0, 'time_us': 100},"
                     "{'action': 'alloc', 'addr': 1024, 'size': 9, 'stream': 0},"
                     "{'action': 'alloc', 'addr': 1536, 'size': 9, 'stream': 0, 'time_us': 105},"
                     "{'action': 'alloc', 'addr': 2048, 'size': 9, 'stream': 0}]]}");
    part = trimmed(snapshot, &options);
    assert_int_equal(tarn_snapshot_trace_length(part, 0), 3); /* up to the last that has one */
    tarn_snapshot_destroy(part);
    tarn_snapshot_destroy(snapshot);
}

/* As in a snapshot that was captured here and never was in a file. */
static void entries_without_an_order_of_keys(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(
        "{'segments': [], 'device_traces': [[{'action': 'alloc', 'addr': 512, 'size': 1000,"
        " 'stream': 0, 'user_metadata': 'x', 'strange': 1}]]}");
    struct tn_model *model = tn_snapshot_model_mutable(snapshot);
    struct tn_trace_entry *entry = tn_chunked_vec_at(&model->entries, 0);
    const struct tn_trace_extra made = {.user_metadata =
                                            tn_model_extra(model, entry->extra)->user_metadata};
    uint32_t number;

    (void)state;
    assert_int_equal(tn_model_add_extra(model, &made, &number), TARN_OK);
    entry->extra = number & 0x7ffffff;
    struct tarn_snapshot *copy = trimmed(snapshot, NULL);

    same_model(model, tn_snapshot_model(copy));
    tarn_snapshot_destroy(copy);
    tarn_snapshot_destroy(snapshot);
}

static void nothing_at_all(void **state)
{
    const struct tarn_trim_options options = {
        .struct_size = sizeof options, .has_time = true, .from_us = 500, .to_us = 600};
    struct tarn_snapshot *snapshot = report_parse(two_devices);
    struct tarn_snapshot *part = trimmed(snapshot, &options);

    (void)state;
    assert_int_equal(tarn_snapshot_entry_count(part), 0);
    is_consistent(part);
    tarn_snapshot_destroy(part);
    tarn_snapshot_destroy(snapshot);
}

static void wrong_parts(void **state)
{
    const struct tarn_trim_options wrong[] = {
        {.struct_size = sizeof wrong[0], .one_device = true, .device = 2},
        {.struct_size = sizeof wrong[0], .one_device = true, .device = -1},
        {.struct_size = sizeof wrong[0], .has_events = true, .first_event = 2, .last_event = 1},
        {.struct_size = sizeof wrong[0], .has_time = true, .from_us = 2, .to_us = 1}};
    struct tarn_snapshot *snapshot = report_parse(two_devices);

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct tarn_snapshot *part;
        struct tarn_error error;

        assert_int_equal(tarn_snapshot_trim(snapshot, &wrong[i], &part, &error),
                         i < 2 ? TARN_ERR_NOT_FOUND : TARN_ERR_INVALID_ARGUMENT);
        assert_null(part);
    }
    tarn_snapshot_destroy(snapshot);
}

/* The same of a list of segments whose blocks have a history. */
static void old_form(void **state)
{
    const struct tarn_trim_options options = {.struct_size = sizeof options, .anonymize = true};
    struct tarn_snapshot *snapshot =
        report_parse("[{'address': 1024, 'total_size': 512, 'blocks': [{'size': 512, 'state':"
                     " 'active_allocated', 'history': [{'addr': 1024, 'real_size': 500, 'frames':"
                     " [{'name': 'secret', 'filename': 'a', 'line': 1}]}]}]}]");
    struct tarn_snapshot *copy = trimmed(snapshot, NULL);

    (void)state;
    same_model(tn_snapshot_model(snapshot), tn_snapshot_model(copy));
    tarn_snapshot_destroy(copy);
    copy = trimmed(snapshot, &options);
    char *text = report_text(json_write, copy);

    assert_non_null(strstr(text, "\"history\":[{\"addr\":1024,\"real_size\":500,\"frames\":["
                                 "{\"name\":\"function1\",\"filename\":\"file1.cpp\","));
    assert_null(strstr(text, "secret"));
    free(text);
    tarn_snapshot_destroy(copy);
    tarn_snapshot_destroy(snapshot);
}

/* Making one and throwing it away, as a report. */
static enum tarn_status trim_twice(const void *context, const struct tarn_writer *writer,
                                   struct tarn_error *error)
{
    const struct tarn_trim_options options = {
        .struct_size = sizeof options, .has_events = true, .last_event = 2, .anonymize = true};
    struct tarn_snapshot *part;
    enum tarn_status status = tarn_snapshot_trim(context, &options, &part, error);

    (void)writer;
    if (status) {
        assert_null(part);
        return status;
    }
    tarn_snapshot_destroy(part);
    status = tarn_snapshot_trim(context, NULL, &part, error);
    tarn_snapshot_destroy(part);
    return status;
}

static void failures_leave_nothing(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(two_devices);

    (void)state;
    assert_true(report_fails_or_copes(trim_twice, snapshot) > 20);
    tarn_snapshot_destroy(snapshot);
    snapshot = report_parse(secrets);
    assert_true(report_fails_or_copes(trim_twice, snapshot) > 20);
    tarn_snapshot_destroy(snapshot);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_is_a_copy),
        cmocka_unit_test(a_cut_is_a_snapshot_of_that_moment),
        cmocka_unit_test(what_is_freed_can_be_left_out),
        cmocka_unit_test(without_what_is_freed_a_run_ends_the_same),
        cmocka_unit_test(names_are_replaced),
        cmocka_unit_test(no_text_is_left),
        cmocka_unit_test(one_device_or_some_time),
        cmocka_unit_test(parts_of_both_kinds),
        cmocka_unit_test(blocks_over_each_other),
        cmocka_unit_test(entries_without_keys_or_times),
        cmocka_unit_test(entries_without_an_order_of_keys),
        cmocka_unit_test(nothing_at_all),
        cmocka_unit_test(wrong_parts),
        cmocka_unit_test(old_form),
        cmocka_unit_test(failures_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
