/* SPDX-License-Identifier: MIT */
/* Recorded snapshots: numbers taken from them with Python, and every way in which reading can fail.
 * */
#include "support/file.h"
#include "support/pickle_out.h"

#include "snapshot/snapshot.h"
#include "tarn/host.h"

#include <string.h>
#include <unistd.h>

/* Sums are modulo 2^64. `actions` in the order of enum tn_trace_action, up to OOM. */
struct facts {
    const char *name;
    size_t segments, blocks;
    uint64_t requested, sizes, addresses, times, frames, lines, streams;
    uint64_t actions[TN_TRACE_OOM + 1];
};

static const struct facts all_facts[] = {
    {"tiny",
     3,
     10,
     12584127u,
     230692031u,
     2795986033324544u,
     37699780326429290u,
     52u,
     9144u,
     0u,
     {9, 4, 4, 3, 0, 0, 0, 1, 0}},
    {"gpt2_varlen",
     174,
     178,
     68157440u,
     603141057993u,
     5020376656377334784u,
     9036631191188391053u,
     194080u,
     160173377u,
     0u,
     {11897, 11894, 11894, 174, 0, 0, 0, 1, 0}},
    {"gpt2_varlen_expandable",
     2,
     8,
     68157440u,
     602578017737u,
     2557289275388928u,
     9036631186077409777u,
     194072u,
     160154085u,
     0u,
     {11897, 11894, 11894, 0, 0, 174, 0, 1, 0}},
    {"resnet_sizes",
     122,
     125,
     68157440u,
     444748963940u,
     2527369035667653120u,
     13953524360615357021u,
     67068u,
     63035492u,
     0u,
     {5977, 5974, 5974, 122, 0, 0, 0, 1, 0}},
    {"llama_generate",
     45,
     45,
     33554432u,
     4679937613u,
     8431889614979294720u,
     15479939031243917026u,
     1218670u,
     1396425706u,
     0u,
     {19866, 20067, 20067, 0, 0, 0, 0, 0, 0}},
    {"multistream",
     71,
     76,
     68157440u,
     127824835724u,
     1266003494348422144u,
     16158843974353088560u,
     26118u,
     11447639u,
     11309097312u,
     {2979, 2976, 2974, 71, 0, 0, 0, 1, 0}},
    {"cudagraph",
     39,
     97,
     448327696u,
     2102533160u,
     47980198874867712u,
     613967851290308233u,
     1438u,
     1011043u,
     25190407200u,
     {142, 73, 73, 46, 7, 0, 0, 1, 0}},
    {"oom",
     219,
     221,
     68157440u,
     77433533508u,
     817240335659495424u,
     10485924670076846328u,
     37114u,
     33237907u,
     0u,
     {1848, 1845, 1845, 260, 41, 0, 0, 1, 1}},
};

static struct tarn_snapshot *load(const char *name)
{
    char path[1024];
    struct tarn_error error = {0};
    struct tarn_snapshot *snapshot;

    (void)snprintf(path, sizeof path, "%s/snapshots/%s.pickle.gz", TEST_DATA_DIR, name);
    const enum tarn_status status = tarn_snapshot_load(path, NULL, &snapshot, &error);
    assert_string_equal(error.text, "");
    assert_int_equal(status, TARN_OK);
    return snapshot;
}

static void check_segments(const struct tn_model *model, const struct facts *facts)
{
    size_t blocks = 0;
    uint64_t requested = 0;
    uint64_t streams = 0;

    for (size_t i = 0; i < model->segment_count; i++) {
        const struct tn_model_segment *segment = &model->segments[i];

        blocks += segment->block_count;
        streams += segment->stream;
        for (size_t j = 0; j < segment->block_count; j++) {
            const struct tn_model_block *block = &segment->blocks[j];

            assert_true(block->has_address && block->has_requested_size);
            assert_int_not_equal(block->stack, TN_STACK_NONE);
            requested += block->state == TN_BLOCK_ACTIVE_ALLOCATED ? block->requested_size : 0;
        }
    }
    assert_int_equal(blocks, facts->blocks);
    assert_int_equal(requested, facts->requested);
    assert_int_equal(streams, facts->streams);
}

static void check_trace(const struct tn_model *model, const struct facts *facts)
{
    uint64_t sizes = 0, addresses = 0, times = 0, frames = 0, lines = 0;
    uint64_t actions[TN_TRACE_ACTION_COUNT] = {0};

    for (uint64_t i = 0; i < model->traces[0].count; i++) {
        const struct tn_trace_entry *entry = tn_trace_at(model, &model->traces[0], i);
        const struct tn_stack stack = tn_model_stack(model, entry->stack);

        actions[entry->action]++;
        sizes += entry->size;
        addresses += entry->address;
        times += (uint64_t)entry->time_us;
        frames += stack.count;
        for (uint32_t j = 0; j < stack.count; j++) {
            lines += (uint64_t)tn_model_frame(model, stack.frames[j])->line;
        }
        assert_int_equal(
            tn_model_string(model, tn_model_extra(model, entry->extra)->compile_context).length, 3);
    }
    assert_memory_equal(actions, facts->actions, sizeof facts->actions);
    assert_int_equal(sizes, facts->sizes);
    assert_int_equal(addresses, facts->addresses);
    assert_int_equal(times, facts->times);
    assert_int_equal(frames, facts->frames);
    assert_int_equal(lines, facts->lines);
}

static void recorded_snapshots_hold_what_python_counts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof all_facts / sizeof *all_facts; i++) {
        struct tarn_snapshot *snapshot = load(all_facts[i].name);
        const struct tn_model *model = tn_snapshot_model(snapshot);

        assert_int_equal(tarn_snapshot_segment_count(snapshot), all_facts[i].segments);
        assert_int_equal(tarn_snapshot_device_count(snapshot), 1);
        assert_int_equal(model->trace_count, 1);
        assert_int_equal(tarn_snapshot_trace_length(snapshot, 0),
                         tarn_snapshot_entry_count(snapshot));
        assert_int_equal(tarn_snapshot_walk_warnings(snapshot, NULL, NULL), 0);
        assert_true(tarn_snapshot_has_traces(snapshot));
        assert_false(tarn_snapshot_is_partial(snapshot));
        check_segments(model, &all_facts[i]);
        check_trace(model, &all_facts[i]);
        tarn_snapshot_destroy(snapshot);
    }
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static void settings_and_annotations_are_there(void **state)
{
    struct tarn_snapshot *snapshot = load("oom");
    const struct tn_model *model = tn_snapshot_model(snapshot);

    (void)state;
    assert_true(model->settings.present && model->settings.has_roundup);
    assert_string_equal(tn_model_string(model, model->settings.conf).text,
                        "max_split_size_mb:128,garbage_collection_threshold:0.6");
    assert_int_equal(model->settings.max_split_size, 134217728);
    assert_true(model->settings.garbage_collection_threshold == 0.6);
    assert_int_equal(model->settings.field_count, 4);
    assert_int_equal(model->annotation_count, 4);
    assert_string_equal(tn_model_string(model, model->annotations[0].stage).text, "START");
    tarn_snapshot_destroy(snapshot);
    snapshot = load("gpt2_varlen_expandable");
    assert_true(tn_snapshot_model(snapshot)->settings.expandable_segments);
    assert_int_equal(tn_snapshot_model(snapshot)->settings.max_split_size, -1);
    assert_true(tn_snapshot_model(snapshot)->segments[0].is_expandable);
    tarn_snapshot_destroy(snapshot);
    snapshot = load("cudagraph");
    model = tn_snapshot_model(snapshot);
    uint64_t pools = 0;
    for (size_t i = 0; i < model->segment_count; i++) {
        pools += model->segments[i].pool.id[0] != 0 || model->segments[i].pool.id[1] != 0;
    }
    assert_true(pools > 0);
    tarn_snapshot_destroy(snapshot);
}

static void snapshots_without_trace_load(void **state)
{
    static const char *const names[] = {"tiny.before", "cudagraph.before", "oom.before"};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct tarn_snapshot *snapshot = load(names[i]);

        assert_int_equal(tarn_snapshot_entry_count(snapshot), 0);
        assert_true(tarn_snapshot_segment_count(snapshot) > 0);
        tarn_snapshot_destroy(snapshot);
    }
}

/* Every cut of the bytes is refused, and what is shown of them is a part of the whole. */
static void truncation_at_every_byte(void **state)
{
    struct test_file file = test_file_read("snapshots/tiny.pickle.gz");
    uint64_t most_entries = 0;
    size_t most_segments = 0;

    (void)state;
    for (size_t size = 0; size < file.size; size++) {
        struct tarn_error error;
        struct tarn_snapshot *snapshot;
        uint8_t *cut = malloc(size + 1); /* so that a sanitizer sees a read past the end */

        memcpy(cut, file.bytes, size);
        assert_int_equal(tarn_snapshot_load_memory(cut, size, NULL, &snapshot, &error),
                         TARN_ERR_TRUNCATED);
        assert_int_equal(error.status, TARN_ERR_TRUNCATED);
        free(cut);
        if (snapshot) {
            const uint64_t entries = tarn_snapshot_entry_count(snapshot);
            const size_t segments = tarn_snapshot_segment_count(snapshot);

            assert_true(tarn_snapshot_is_partial(snapshot));
            assert_true(entries >= most_entries && segments >= most_segments);
            most_entries = entries;
            most_segments = segments;
        }
        tarn_snapshot_destroy(snapshot);
    }
    assert_int_equal(most_entries, 21);
    assert_int_equal(most_segments, 3);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
    free(file.bytes);
}

static void mutation_of_every_byte(void **state)
{
    static const uint8_t flips[] = {0x01, 0x02, 0x10, 0x80, 0xff};
    struct test_file file = test_file_read("snapshots/tiny.pickle.gz");

    (void)state;
    for (size_t i = 0; i < file.size; i++) {
        for (size_t j = 0; j < sizeof flips + 1; j++) {
            const uint8_t before = file.bytes[i];
            struct tarn_snapshot *snapshot;

            file.bytes[i] = j < sizeof flips ? before ^ flips[j] : 0;
            (void)!tarn_snapshot_load_memory(file.bytes, file.size, NULL, &snapshot, NULL);
            file.bytes[i] = before;
            tarn_snapshot_destroy(snapshot);
        }
    }
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
    free(file.bytes);
}

/* The reader may do without some memory (rows of frames that it remembers) or ask again, but
 * whatever it says must be true, and nothing may leak. */
static void every_host_failure_is_reported_or_survived(void **state)
{
    struct test_file file = test_file_read("snapshots/cudagraph.pickle.gz");
    uint64_t failures = 0;
    bool reached = true;

    (void)state;
    for (uint64_t n = 1; reached; n++) {
        const uint64_t calls = tarn_host_get_usage().alloc_calls;
        struct tarn_error error;
        struct tarn_snapshot *snapshot;

        tarn_host_fail_nth(n);
        const enum tarn_status status =
            tarn_snapshot_load_memory(file.bytes, file.size, NULL, &snapshot, &error);
        tarn_host_fail_nth(0);
        reached = tarn_host_get_usage().alloc_calls - calls >= n;
        if (status != TARN_OK) {
            assert_int_equal(status, TARN_ERR_HOST_MEMORY);
            assert_int_equal(error.status, TARN_ERR_HOST_MEMORY);
            assert_null(snapshot);
            failures++;
        } else {
            assert_int_equal(tarn_snapshot_entry_count(snapshot), 342);
            assert_int_equal(tarn_snapshot_segment_count(snapshot), 39);
        }
        tarn_snapshot_destroy(snapshot);
        assert_int_equal(tarn_host_get_usage().live_bytes, 0);
    }
    assert_true(failures > 40);
    free(file.bytes);
}

static void limits_are_kept(void **state)
{
    struct test_file file = test_file_read("snapshots/oom.pickle.gz");
    struct tarn_read_limits limits = {.struct_size = sizeof limits, .max_memory = 1 << 20};
    struct tarn_snapshot *snapshot;
    struct tarn_error error;

    (void)state;
    assert_int_equal(tarn_snapshot_load_memory(file.bytes, file.size, &limits, &snapshot, &error),
                     TARN_ERR_LIMIT);
    limits = (struct tarn_read_limits){.struct_size = sizeof limits, .max_bytes = 1000};
    assert_int_equal(tarn_snapshot_load_memory(file.bytes, file.size, &limits, &snapshot, &error),
                     TARN_ERR_LIMIT);
    limits = (struct tarn_read_limits){.struct_size = sizeof limits, .max_string = 10};
    assert_int_equal(tarn_snapshot_load_memory(file.bytes, file.size, &limits, &snapshot, &error),
                     TARN_ERR_LIMIT);
    limits = (struct tarn_read_limits){.struct_size = sizeof limits, .max_frames = 3};
    assert_int_equal(tarn_snapshot_load_memory(file.bytes, file.size, &limits, &snapshot, &error),
                     TARN_ERR_LIMIT);
    limits = (struct tarn_read_limits){.struct_size = 4};
    assert_int_equal(tarn_snapshot_load_memory(file.bytes, file.size, &limits, &snapshot, &error),
                     TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
    free(file.bytes);
}

static void files_that_cannot_be_read(void **state)
{
    struct tarn_snapshot *snapshot;
    struct tarn_error error;

    (void)state;
    assert_int_equal(tarn_snapshot_load(TEST_DATA_DIR "/no-such-file", NULL, &snapshot, &error),
                     TARN_ERR_IO);
    assert_non_null(strstr(error.text, "No such file"));
    assert_int_equal(tarn_snapshot_load(TEST_DATA_DIR, NULL, &snapshot, &error), TARN_ERR_IO);
    assert_null(snapshot);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* What is no pickle is named, with what to do. */
static void other_files_are_named(void **state)
{
    static const struct {
        const char *bytes;
        const char *said;
    } cases[] = {
        {"PK\x03\x04....", "zip archive"},
        {"PX", "does not begin like a pickle"},
        {"XK......", "does not begin like a pickle"},
        {"S'segments'", "protocol 0 or 1"},
        {"x(......", "does not begin like a pickle"},
        {"<!DOCTYPE html>", "HTML"},
        {"{\"segments\": 1}", "a list of segments"},
        {"{'segments': []}", "malformed JSON"},
        {"(dp0\nS'segments'", "protocol 0 or 1"},
        {"hello, world", "does not begin like a pickle"},
        {"\x80\x06.....", "protocol 6"},
        {"\x80\x01.....", "protocol 1"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tarn_snapshot *snapshot;
        struct tarn_error error;

        assert_int_equal(tarn_snapshot_load_memory(cases[i].bytes, strlen(cases[i].bytes), NULL,
                                                   &snapshot, &error),
                         TARN_ERR_FORMAT);
        assert_true(error.offset == 0 || !strstr(error.text, "is not a snapshot"));
        assert_non_null(strstr(error.text, cases[i].said));
        assert_null(snapshot);
        assert_int_equal(tarn_snapshot_load_memory(cases[i].bytes, strlen(cases[i].bytes), NULL,
                                                   &snapshot, NULL),
                         TARN_ERR_FORMAT);
    }
}

/* As a crash of the system may leave a file. */
static void zeros_are_no_snapshot(void **state)
{
    char bytes[64] = {0};
    struct tarn_snapshot *snapshot;
    struct tarn_error error;

    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tarn_snapshot_load_memory(bytes, sizeof bytes, NULL, &snapshot, &error),
                         TARN_ERR_FORMAT);
        assert_non_null(strstr(error.text, "does not begin like a pickle"));
        bytes[1] = 'x';
    }
}

/* A number of no device is none; one byte is no file. */
static void devices_and_bytes_are_counted(void **state)
{
    static const char json[] =
        "[{\"device\":-1,\"address\":1,\"total_size\":1,\"blocks\":[{\"size\":1,"
        "\"state\":\"inactive\"}]},{\"device\":2,\"address\":9,\"total_size\":1,\"blocks\":["
        "{\"size\":1,\"state\":\"inactive\"}]}]";
    struct tarn_snapshot *snapshot;

    (void)state;
    assert_int_equal(tarn_snapshot_load_memory(json, sizeof json - 1, NULL, &snapshot, NULL),
                     TARN_OK);
    assert_int_equal(tarn_snapshot_device_count(snapshot), 3);
    tarn_snapshot_destroy(snapshot);
    assert_int_equal(tarn_snapshot_load_memory("Q", 1, NULL, &snapshot, NULL), TARN_ERR_TRUNCATED);
    assert_null(snapshot);
    struct tarn_error error;

    assert_int_equal(tarn_snapshot_load_memory("", 0, NULL, &snapshot, &error), TARN_ERR_TRUNCATED);
    assert_non_null(strstr(error.text, "is empty"));
    assert_int_equal(error.offset, 0);
}

static void padding_is_fine_and_more_is_a_warning(void **state)
{
    struct test_file file = test_file_read("snapshots/tiny.pickle.gz");
    uint8_t *longer = calloc(1, file.size + 100);
    struct tarn_snapshot *snapshot;

    (void)state;
    memcpy(longer, file.bytes, file.size);
    assert_int_equal(tarn_snapshot_load_memory(longer, file.size + 100, NULL, &snapshot, NULL),
                     TARN_OK);
    assert_int_equal(tarn_snapshot_walk_warnings(snapshot, NULL, NULL), 0);
    tarn_snapshot_destroy(snapshot);
    longer[file.size + 50] = 1;
    longer[file.size + 60] = 1;
    assert_int_equal(tarn_snapshot_load_memory(longer, file.size + 100, NULL, &snapshot, NULL),
                     TARN_OK);
    assert_int_equal(tarn_snapshot_walk_warnings(snapshot, NULL, NULL), 1);
    assert_int_equal(tn_snapshot_model(snapshot)->warnings[0].offset, file.size + 50);
    assert_int_equal(tn_snapshot_model(snapshot)->warnings[0].count, 1);
    tarn_snapshot_destroy(snapshot);
    longer[file.size] = 1; /* and nothing behind it */
    assert_int_equal(tarn_snapshot_load_memory(longer, file.size + 1, NULL, &snapshot, NULL),
                     TARN_OK);
    assert_int_equal(tarn_snapshot_walk_warnings(snapshot, NULL, NULL), 1);
    tarn_snapshot_destroy(snapshot);
    free(longer);
    free(file.bytes);
}

/* Standard input, through a pipe that is smaller than the file. */
static void standard_input_is_read(void **state)
{
    char path[1024];
    struct tarn_snapshot *snapshot;

    (void)state;
    (void)snprintf(path, sizeof path, "%s/snapshots/oom.pickle.gz", TEST_DATA_DIR);
    FILE *in = fopen(path, "rb");
    assert_non_null(in);
    const int saved = dup(STDIN_FILENO);
    assert_true(dup2(fileno(in), STDIN_FILENO) >= 0);
    assert_int_equal(tarn_snapshot_load("-", NULL, &snapshot, NULL), TARN_OK);
    assert_true(dup2(saved, STDIN_FILENO) >= 0);
    (void)close(saved);
    (void)fclose(in);
    assert_int_equal(tarn_snapshot_entry_count(snapshot), 5841);
    tarn_snapshot_destroy(snapshot);
}

struct heard {
    uint64_t calls;
    uint64_t last;
    uint64_t total;
    uint64_t stop_at; /* calls */
};

static bool hear(void *context, uint64_t done, uint64_t total)
{
    struct heard *heard = context;

    assert_true(done >= heard->last && done <= total);
    heard->last = done;
    heard->total = total;
    return ++heard->calls != heard->stop_at;
}

static void progress_is_told_and_may_stop_reading(void **state)
{
    static const char *const names[] = {"tiny", "gpt2_varlen", "resnet_sizes"};
    struct tarn_snapshot *snapshot;
    struct tarn_error error;
    struct heard heard;
    const struct tarn_read_limits limits = {.struct_size = sizeof limits,
                                            .progress = {hear, &heard}};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[1024];

        (void)snprintf(path, sizeof path, "%s/snapshots/%s.pickle.gz", TEST_DATA_DIR, names[i]);
        heard = (struct heard){0};
        assert_int_equal(tarn_snapshot_load(path, &limits, &snapshot, &error), TARN_OK);
        tarn_snapshot_destroy(snapshot);
        assert_true(heard.calls > 0);
        assert_true(heard.total > 0);
        assert_int_equal(heard.last, heard.total); /* to the last byte */
        const uint64_t calls = heard.calls;

        /* The last calls come after all that matters was read. */
        for (uint64_t stop = 1; stop <= calls; stop++) {
            heard = (struct heard){.stop_at = stop};
            const enum tarn_status status = tarn_snapshot_load(path, &limits, &snapshot, &error);

            assert_true(status == TARN_ERR_CANCELLED || (status == TARN_OK && stop + 2 >= calls));
            assert_int_equal(snapshot != NULL, status == TARN_OK);
            if (status) {
                assert_non_null(strstr(error.text, "stopped by the caller"));
            }
            tarn_snapshot_destroy(snapshot);
        }
    }
}

/* Of a pickle of any protocol that begins with an import or a call. */
static void imports_are_named(void **state)
{
    static const char *const files[] = {"c__main__\nName\n....", "i__main__\nName\n...."};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct tarn_snapshot *snapshot;
        struct tarn_error error;

        assert_int_equal(
            tarn_snapshot_load_memory(files[i], strlen(files[i]), NULL, &snapshot, &error),
            TARN_ERR_UNSAFE);
        assert_non_null(strstr(error.text, "`__main__.Name`"));
        assert_null(snapshot);
    }
}

/* A device counts that has a segment or an entry, with those of lower numbers. */
static void devices_are_those_with_something(void **state)
{
    static const struct {
        const char *json; /* ' stands for " */
        size_t devices;
    } cases[] = {
        {"[]", 0},
        {"{'segments':[],'device_traces':[[],[]]}", 0},
        {"{'segments':[],'device_traces':[[],[{'action':'alloc','addr':1}],[]]}", 2},
        {"[{'device':0,'address':1,'total_size':0,'blocks':[]}]", 1},
        {"[{'device':3,'address':1,'total_size':0,'blocks':[]}]", 4},
        {"[{'device':3,'address':1,'total_size':0,'blocks':[]},"
         "{'device':0,'address':9,'total_size':0,'blocks':[]},"
         "{'device':-1,'address':19,'total_size':0,'blocks':[]}]",
         4},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tarn_snapshot *snapshot;
        char text[256];

        (void)snprintf(text, sizeof text, "%s", cases[i].json);
        for (char *c = text; *c; c++) {
            *c = (char)(*c == '\'' ? '"' : *c);
        }
        assert_int_equal(tarn_snapshot_load_memory(text, strlen(text), NULL, &snapshot, NULL),
                         TARN_OK);
        assert_int_equal(tarn_snapshot_device_count(snapshot), cases[i].devices);
        tarn_snapshot_destroy(snapshot);
    }
}

/* Devices without a trace have none, whatever the file has. */
static void other_devices_have_no_trace(void **state)
{
    static const char json[] =
        "{\"device_traces\":[[{\"action\":\"alloc\",\"addr\":1}]],\"segments\":["
        "{\"address\":512,\"total_size\":512,\"blocks\":[{\"size\":512,\"state\":\"inactive\"}]}]}";
    struct tarn_snapshot *snapshot;

    (void)state;
    assert_int_equal(tarn_snapshot_load_memory(json, sizeof json - 1, NULL, &snapshot, NULL),
                     TARN_OK);
    assert_int_equal(tarn_snapshot_trace_length(snapshot, 0), 1);
    assert_int_equal(tarn_snapshot_trace_length(snapshot, 1), 0);
    assert_int_equal(tarn_snapshot_trace_length(snapshot, 1000000), 0);
    tarn_snapshot_destroy(snapshot);
}

/* A truncated file of which nothing can be shown is truncated all the same. */
static void truncation_is_what_is_reported(void **state)
{
    struct tarn_snapshot *snapshot;
    struct pickle_out out;
    struct tarn_error error;

    (void)state;
    pickle_begin(&out);
    pickle_dict(&out);
    pickle_item(&out, "segments", 7);
    assert_int_equal(tarn_snapshot_load_memory(out.bytes, out.size, NULL, &snapshot, &error),
                     TARN_ERR_TRUNCATED);
    assert_null(snapshot);
    assert_int_equal(error.status, TARN_ERR_TRUNCATED);
    assert_null(strstr(error.text, "segments"));
}

/* What may be shared is bounded by the size of the file; of a caller's limit, by that. */
static void what_is_shared_is_bounded(void **state)
{
    static const char json[] = "{\"segments\":[]}";
    const struct tarn_read_limits limits = {.struct_size = sizeof limits, .max_memory = 1 << 20};
    struct tarn_snapshot *snapshot;

    (void)state;
    assert_int_equal(tarn_snapshot_load_memory(json, sizeof json - 1, NULL, &snapshot, NULL),
                     TARN_OK);
    assert_int_equal(tn_model_written_limit(tn_snapshot_model(snapshot)), 256 << 20);
    tarn_snapshot_destroy(snapshot);
    assert_int_equal(tarn_snapshot_load_memory(json, sizeof json - 1, &limits, &snapshot, NULL),
                     TARN_OK);
    assert_int_equal(tn_model_written_limit(tn_snapshot_model(snapshot)),
                     TN_WRITTEN_PER_MEMORY << 20);
    tarn_snapshot_destroy(snapshot);
}

/* Limits follow an input of unknown size while it is read, and then stay. */
static void limits_no_longer_follow_what_was_read(void **state)
{
    static const char json[] = "{\"segments\":[]}";
    struct tarn_snapshot *snapshot;
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    const int saved = dup(STDIN_FILENO);

    assert_true(dup2(ends[0], STDIN_FILENO) >= 0);
    assert_int_equal(write(ends[1], json, sizeof json - 1), sizeof json - 1);
    (void)close(ends[1]);
    assert_int_equal(tarn_snapshot_load("-", NULL, &snapshot, NULL), TARN_OK);
    assert_true(dup2(saved, STDIN_FILENO) >= 0);
    (void)close(saved);
    (void)close(ends[0]);
    assert_null(tn_snapshot_model(snapshot)->budget.input);
    assert_int_equal(tn_model_written_limit(tn_snapshot_model(snapshot)), 256 << 20);
    tarn_snapshot_destroy(snapshot);
}

static void no_snapshot_comes_of_a_failure(void **state)
{
    static char somewhere;
    enum tarn_status status = TARN_ERR_HOST_MEMORY;

    (void)state;
    for (uint64_t n = 1; status != TARN_OK; n++) {
        struct tarn_snapshot *snapshot = (struct tarn_snapshot *)(void *)&somewhere;

        tarn_host_fail_nth(n);
        status = tn_snapshot_create(0, &snapshot);
        tarn_host_fail_nth(0);
        assert_int_equal(snapshot == NULL, status != TARN_OK);
        tarn_snapshot_destroy(snapshot);
        assert_int_equal(tarn_host_get_usage().live_bytes, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recorded_snapshots_hold_what_python_counts),
        cmocka_unit_test(settings_and_annotations_are_there),
        cmocka_unit_test(snapshots_without_trace_load),
        cmocka_unit_test(truncation_at_every_byte),
        cmocka_unit_test(mutation_of_every_byte),
        cmocka_unit_test(every_host_failure_is_reported_or_survived),
        cmocka_unit_test(limits_are_kept),
        cmocka_unit_test(files_that_cannot_be_read),
        cmocka_unit_test(other_files_are_named),
        cmocka_unit_test(zeros_are_no_snapshot),
        cmocka_unit_test(devices_and_bytes_are_counted),
        cmocka_unit_test(padding_is_fine_and_more_is_a_warning),
        cmocka_unit_test(standard_input_is_read),
        cmocka_unit_test(progress_is_told_and_may_stop_reading),
        cmocka_unit_test(imports_are_named),
        cmocka_unit_test(limits_no_longer_follow_what_was_read),
        cmocka_unit_test(no_snapshot_comes_of_a_failure),
        cmocka_unit_test(devices_are_those_with_something),
        cmocka_unit_test(other_devices_have_no_trace),
        cmocka_unit_test(truncation_is_what_is_reported),
        cmocka_unit_test(what_is_shared_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
