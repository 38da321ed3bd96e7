/* SPDX-License-Identifier: MIT */
/* Recorded decisions, logs with one thing changed, and logs that make no sense. */
#include "support/test.h"

#include "support/cuda.h"
#include "support/file.h"
#include "support/share.h"
#include "support/temp.h"
#include "tarn/host.h"
#include "tarn/stats.h"
#include "tarn/verify.h"

#include <jansson.h>
#include <stdbool.h>

static struct tarn_verify_result verify(const char *path)
{
    struct tarn_verify_result result = {.struct_size = sizeof result};
    struct tarn_error error = {.text = ""};

    if (tarn_verify_log(path, NULL, &result, &error)) {
        fail_msg("%s: %s", path, error.text);
    }
    return result;
}

static void every_recorded_call_is_decided_alike(void **state)
{
    static const struct {
        const char *name;
        uint64_t calls;
    } logs[] = {
        {"big_default", 2238},
        {"capture-3", 3251},
        {"capture_reuse-3", 3251},
        {"capture_reuse_change-1", 3224},
        {"capture_reuse_expandable-5", 3182},
        {"capture_reuse_split-7", 3182},
        {"change_all-21", 3097},
        {"change_expandable_pools-21", 3194},
        {"change_split_limit-21", 3088},
        {"edges_split-21", 3048},
        {"full_split-21", 3218},
        {"large_segment_limit-21", 3070},
        {"lend_change-21", 3125},
        {"lend_expandable-21", 3079},
        {"lend_whole-21", 3084},
        {"limit_default", 2954},
        {"limit_expandable", 2867},
        {"limit_max_split_gc", 2812},
        {"limit_pools_gc-21", 3018},
        {"limit_pools_streams_expandable-21", 3119},
        {"limit_streams_gc-21", 3106},
        {"mixed_default", 3486},
        {"mixed_expandable", 3466},
        {"mixed_max_split", 3424},
        {"mixed_roundup4", 3284},
        {"mixed_roundup_list", 2756},
        {"multistream_again-21", 3179},
        {"multistream_default", 3256},
        {"multistream_expandable", 3281},
        {"pools_default", 3324},
        {"pools_grown_nested-21", 3122},
        {"pools_multistream", 3402},
        {"pools_streams-21", 3166},
        {"release-21", 3199},
        {"release_streams-21", 3161},
        {"small_default", 3951},
        {"split_expandable_limit-21", 3083},
    };

    (void)state;
    for (size_t i = 0; i < sizeof logs / sizeof *logs; i++) {
        char path[1024];

        (void)snprintf(path, sizeof path, "%s/decisions/%s.jsonl.gz", TEST_DATA_DIR, logs[i].name);
        const struct tarn_verify_result result = verify(path);

        if (result.differing > 0) {
            fail_msg("%s: %s", logs[i].name, result.first);
        }
        assert_int_equal(result.calls, logs[i].calls);
        assert_string_equal(result.first, "");
    }
}

/* ---- memory behind the addresses ---- */

/* A driver without a GPU, with as much memory as the recorded one. */
static const struct fake_cuda *fake_gpu(struct tarn_verify_options *options)
{
    const struct fake_cuda *fake = fake_open(FAKE_CUDA);

    fake->set_devices(1, (uint64_t)150109880320);
    *options = (struct tarn_verify_options){.struct_size = sizeof *options, .memory = cuda_open()};
    return fake;
}

static void blocks_keep_their_contents(void **state)
{
    static const char *const names[] = {
        "mixed_default",    "mixed_expandable", "multistream_default", "limit_expandable",
        "pools_streams-21", "full_split-21",    "capture_reuse-3",     "release-21"};
    struct tarn_verify_options options;
    const struct fake_cuda *fake = fake_gpu(&options);

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct tarn_verify_result result = {.struct_size = sizeof result};
        struct tarn_error error = {.text = ""};
        char path[1024];

        (void)snprintf(path, sizeof path, "%s/decisions/%s.jsonl.gz", TEST_DATA_DIR, names[i]);
        if (tarn_verify_log(path, &options, &result, &error) || result.differing > 0) {
            fail_msg("%s: %s%s", names[i], error.text, result.first);
        }
        assert_true(result.blocks_read > 500);
        assert_int_equal(fake->used_bytes(0), 0); /* all was given back */
        assert_true(fake->calls("cuMemAlloc_v2") > 0 || fake->calls("cuMemMap") > 0);
    }
    tarn_device_close(options.memory);
}

static void a_driver_that_refuses_is_told(void **state)
{
    struct tarn_verify_options options;
    const struct fake_cuda *fake = fake_gpu(&options);
    char path[1024];

    (void)state;
    (void)snprintf(path, sizeof path, "%s/decisions/small_default.jsonl.gz", TEST_DATA_DIR);
    fake->fail_nth("cuMemAlloc_v2", 2, 2); /* out of memory: the allocator's answers differ */
    struct tarn_verify_result result = {.struct_size = sizeof result};
    struct tarn_error error = {.text = ""};
    assert_int_equal(tarn_verify_log(path, &options, &result, &error), TARN_OK);
    assert_true(result.differing > 0);
    fake->fail_nth("cuMemcpyAsync", 1, 700);
    assert_int_equal(tarn_verify_log(path, &options, &result, &error), TARN_ERR_DEVICE);
    assert_non_null(strstr(error.text, "the block cannot be written: "));
    tarn_device_close(options.memory);

    options = (struct tarn_verify_options){0};
    assert_int_equal(tarn_verify_log(path, &options, &result, &error), TARN_ERR_INVALID_ARGUMENT);
}

/* A copy of the first lines of a recorded log, which may be changed by hand. */
static struct temp_file lines_of(const char *name, int count)
{
    char path[256];

    (void)snprintf(path, sizeof path, "decisions/%s.jsonl.gz", name);
    struct test_file file = test_file_read(path);
    const char *end = (const char *)file.bytes;

    for (int i = 0; i < count; i++) {
        end = strchr(end, '\n');
        assert_non_null(end);
        end++;
    }
    struct temp_file copy = temp_write(file.bytes, (size_t)(end - (const char *)file.bytes));

    free(file.bytes);
    return copy;
}

static void a_driver_that_cannot_read_is_told(void **state)
{
    struct tarn_verify_options options;
    const struct fake_cuda *fake = fake_gpu(&options);
    struct temp_file file = lines_of("small_default", 300);
    struct tarn_verify_result result = {.struct_size = sizeof result};
    struct tarn_error error = {.text = ""};
    uint64_t written = 0;
    uint64_t read = 0;

    (void)state;
    for (uint64_t n = 1;; n += 1 + n / 32) { /* those that follow repeat */
        fake->fail_nth("cuMemcpyAsync", n, 700);
        if (tarn_verify_log(file.path, &options, &result, &error) == TARN_OK) {
            break;
        }
        const bool is_written = strstr(error.text, ": the block cannot be written: ");

        assert_int_equal(error.status, TARN_ERR_DEVICE);
        assert_true(is_written || strstr(error.text, ": the block cannot be read: "));
        written += is_written;
        read += !is_written;
    }
    assert_true(written > 2);
    assert_true(read > 2);
    temp_remove(&file);
    tarn_device_close(options.memory);
}

/* Each host allocation fails once: either that is told, or nothing needed it; nothing is kept and
 * no difference is made up. Returns how often it was told. */
static uint64_t host_failures(const char *path, const struct tarn_verify_options *options)
{
    const uint64_t live = tarn_host_get_usage().live_bytes;
    uint64_t calls = 1;
    uint64_t failures = 0;

    for (uint64_t n = 0; n <= calls; n++) { /* none at first */
        const uint64_t before = tarn_host_get_usage().alloc_calls;
        struct tarn_verify_result result = {.struct_size = sizeof result};
        struct tarn_error error = {.status = TARN_OK};

        tarn_host_fail_nth(n);
        const enum tarn_status st = tarn_verify_log(path, options, &result, &error);

        tarn_host_fail_nth(0);
        calls = n == 0 ? tarn_host_get_usage().alloc_calls - before : calls;
        assert_int_equal(tarn_host_get_usage().live_bytes, live);
        assert_true(st == TARN_OK || (n > 0 && st == TARN_ERR_HOST_MEMORY));
        assert_int_equal(error.status, st);
        assert_int_equal(result.differing, 0);
        failures += st != TARN_OK;
    }
    return failures;
}

static void host_failures_with_memory_are_reported(void **state)
{
    struct tarn_verify_options options;
    const struct fake_cuda *fake = fake_gpu(&options);
    struct temp_file file = lines_of("small_default", 40);

    (void)state;
    assert_true(host_failures(file.path, &options) > 10);
    assert_int_equal(fake->used_bytes(0), 0);
    temp_remove(&file);
    tarn_device_close(options.memory);
}

static void host_failures_at_a_checkpoint_are_reported(void **state)
{
    struct temp_file file = lines_of("release-21", 16); /* it is set in line 14 */

    (void)state;
    assert_true(host_failures(file.path, NULL) > 10);
    temp_remove(&file);
}

/* The driver's operations, of which copies from the device change a byte. */
static struct tn_device_ops damaging;
static const struct tn_device_ops *undamaged;

static enum tarn_status damaged_copy(struct tarn_device *device, const struct tn_copy *copy,
                                     tarn_stream stream)
{
    const enum tarn_status st = undamaged->copy(device, copy, stream);

    if (st == TARN_OK && !copy->to_device) {
        *(unsigned char *)(uintptr_t)copy->to ^= 1;
    }
    return st;
}

static void other_contents_differ(void **state)
{
    struct tarn_verify_options options;
    struct tarn_verify_result result = {.struct_size = sizeof result};
    struct tarn_error error = {.text = ""};

    (void)state;
    (void)fake_gpu(&options);
    undamaged = options.memory->ops;
    damaging = *undamaged;
    damaging.copy = damaged_copy;
    options.memory->ops = &damaging;
    struct temp_file file = lines_of("small_default", 300);

    assert_int_equal(tarn_verify_log(file.path, &options, &result, &error), TARN_OK);
    assert_true(result.blocks_read > 10);
    assert_int_equal(result.differing, result.blocks_read); /* each call that freed one */
    assert_non_null(strstr(result.first, "  contents: 1 bytes are not those written on line "));
    temp_remove(&file);
    options.memory->ops = undamaged;
    tarn_device_close(options.memory);
}

/* ---- logs with one thing changed ---- */

/* A log in memory, line by line. */
struct log_lines {
    json_t **lines; /* the header is line 0 */
    size_t count;
};

/* The first `count` lines of a recorded log. */
static struct log_lines log_read(const char *name, size_t count)
{
    char path[256];
    struct log_lines log = {.lines = calloc(count, sizeof(json_t *))};

    assert_non_null(log.lines);
    (void)snprintf(path, sizeof path, "decisions/%s.jsonl.gz", name);
    struct test_file file = test_file_read(path);

    for (char *at = (char *)file.bytes; *at && log.count < count; log.count++) {
        const size_t length = strcspn(at, "\n");

        log.lines[log.count] = json_loadb(at, length, 0, NULL);
        assert_non_null(log.lines[log.count]);
        at += length + (at[length] != '\0');
    }
    assert_int_equal(log.count, count);
    free(file.bytes);
    return log;
}

static void log_free(struct log_lines *log)
{
    for (size_t i = 0; i < log->count; i++) {
        json_decref(log->lines[i]);
    }
    free(log->lines);
}

static struct temp_file log_write(const struct log_lines *log)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    for (size_t i = 0; i < log->count; i++) {
        assert_int_equal(json_dumpf(log->lines[i], out, JSON_COMPACT), 0);
        (void)fputc('\n', out);
    }
    assert_int_equal(fclose(out), 0);
    struct temp_file file = temp_write(text, size);

    free(text);
    return file;
}

/* Index of the n-th line with that call, from 1 on. */
static size_t log_find(const struct log_lines *log, const char *op, int n)
{
    for (size_t i = 1; i < log->count; i++) {
        if (strcmp(json_string_value(json_object_get(log->lines[i], "op")), op) == 0 && --n == 0) {
            return i;
        }
    }
    fail_msg("the log has no such call %s", op);
    return 0;
}

/* Exactly this line differs, and the text says how. */
static void log_differs(const struct log_lines *log, size_t line, const char *op, const char *text)
{
    char begin[64];
    struct temp_file file = log_write(log);
    const struct tarn_verify_result result = verify(file.path);

    temp_remove(&file);
    (void)snprintf(begin, sizeof begin, "line %zu, %s (", line + 1, op);
    assert_int_equal(result.calls, log->count - 1);
    assert_int_equal(result.differing, 1);
    if (strncmp(result.first, begin, strlen(begin)) != 0 || !strstr(result.first, text)) {
        fail_msg("expected \"%s\" with \"%s\", got \"%s\"", begin, text, result.first);
    }
}

static void add_to(json_t *number, json_int_t amount)
{
    assert_true(json_is_integer(number));
    (void)json_integer_set(number, json_integer_value(number) + amount);
}

static void an_unchanged_copy_is_the_same(void **state)
{
    struct log_lines log = log_read("pools_default", 400);
    struct temp_file file = log_write(&log);

    (void)state;
    assert_int_equal(verify(file.path).differing, 0);
    temp_remove(&file);
    log_free(&log);
}

static void a_changed_pointer_differs(void **state)
{
    struct log_lines log = log_read("small_default", 300);
    const size_t line = log_find(&log, "malloc", 77);

    (void)state;
    add_to(json_object_get(log.lines[line], "ptr"), 512);
    log_differs(&log, line, "malloc", "  pointer: expected 0x");
    log_free(&log);
}

static json_t *event_of(const struct log_lines *log, size_t line, size_t index)
{
    return json_array_get(json_object_get(log->lines[line], "events"), index);
}

static void a_changed_event_differs(void **state)
{
    struct log_lines log = log_read("small_default", 300);
    const size_t line = log_find(&log, "free", 11);
    json_t *event = event_of(&log, line, 1);

    (void)state;
    add_to(json_array_get(event, 1), 512); /* address */
    log_differs(&log, line, "free", "  event 1: expected free_completed 0x");
    add_to(json_array_get(event, 1), -512);
    add_to(json_array_get(event, 2), 1); /* size */
    log_differs(&log, line, "free", "  event 1: expected free_completed 0x");
    add_to(json_array_get(event, 2), -1);
    add_to(json_array_get(event, 3), 1); /* stream */
    log_differs(&log, line, "free", "  event 1: expected free_completed 0x");
    add_to(json_array_get(event, 3), -1);
    (void)json_array_set_new(event, 0, json_string("segment_free"));
    log_differs(&log, line, "free", "  event 1: expected segment_free 0x");
    log_free(&log);
}

static void a_missing_or_additional_event_differs(void **state)
{
    struct log_lines log = log_read("small_default", 300);
    const size_t line = log_find(&log, "free", 11);
    json_t *events = json_object_get(log.lines[line], "events");

    (void)state;
    (void)json_array_append(events, json_array_get(events, 0));
    log_differs(&log, line, "free", ", got nothing");
    (void)json_array_remove(events, 2);
    (void)json_array_remove(events, 1);
    log_differs(&log, line, "free", "  event 1: expected nothing, got free_completed 0x");
    log_free(&log);
}

static void every_changed_counter_differs(void **state)
{
    struct log_lines log = log_read("limit_default", 120);
    const size_t line = log_find(&log, "malloc", 20);
    const json_t *names = json_object_get(log.lines[0], "brief");
    json_t *brief = json_object_get(log.lines[line], "brief");

    (void)state;
    assert_int_equal(json_array_size(names), json_array_size(brief));
    for (size_t i = 0; i < json_array_size(brief); i++) {
        char text[128];

        (void)snprintf(text, sizeof text, "  %s after the call: expected ",
                       json_string_value(json_array_get(names, i)));
        add_to(json_array_get(brief, i), 1);
        log_differs(&log, line, "malloc", text);
        add_to(json_array_get(brief, i), -1);
    }
    log_free(&log);
}

static void every_changed_statistic_differs(void **state)
{
    struct log_lines log = log_read("small_default", 300);
    const size_t line = log_find(&log, "stats", 1);
    json_t *stats = json_object_get(log.lines[line], "stats");
    const char *name;
    json_t *value;
    void *next;
    int changed = 0;

    (void)state;
    json_object_foreach_safe(stats, next, name, value)
    {
        json_t *number = value;

        while (json_is_array(number)) {
            number = json_array_get(number, json_array_size(number) - 1);
        }
        add_to(number, 1);
        log_differs(&log, line, "stats", name);
        add_to(number, -1);
        changed++;
    }
    assert_true(changed >= TARN_STAT_KINDS);
    log_free(&log);
}

static void every_changed_field_of_a_snapshot_differs(void **state)
{
    static const char *const numbers[] = {"total_size",  "requested_size", "allocated_size",
                                          "active_size", "is_large",       "is_expandable"};
    struct log_lines log = log_read("pools_default", 260);
    const size_t line = log_find(&log, "snapshot", 1);
    json_t *segments = json_object_get(log.lines[line], "segments");
    json_t *segment = json_array_get(segments, 0);
    json_t *block = json_array_get(json_object_get(segment, "blocks"), 0);

    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        add_to(json_object_get(segment, numbers[i]), 1);
        log_differs(&log, line, "snapshot", numbers[i]);
        add_to(json_object_get(segment, numbers[i]), -1);
    }
    add_to(json_array_get(json_object_get(segment, "pool"), 1), 1);
    log_differs(&log, line, "snapshot", "belongs to another pool");
    add_to(json_array_get(json_object_get(segment, "pool"), 1), -1);
    add_to(json_object_get(segment, "stream"), -1);
    log_differs(&log, line, "snapshot", "belongs to another stream");
    add_to(json_object_get(segment, "stream"), 1);
    add_to(json_object_get(segment, "address"), 512);
    log_differs(&log, line, "snapshot", "address expected ");
    add_to(json_object_get(segment, "address"), -512);
    for (size_t i = 0; i < json_array_size(block); i++) {
        add_to(json_array_get(block, i), 1);
        log_differs(&log, line, "snapshot", "  block 0x");
        add_to(json_array_get(block, i), -1);
    }
    (void)json_array_append(json_object_get(segment, "blocks"), block);
    log_differs(&log, line, "snapshot", " blocks, got ");
    (void)json_array_remove(json_object_get(segment, "blocks"),
                            json_array_size(json_object_get(segment, "blocks")) - 1);
    (void)json_array_remove(segments, json_array_size(segments) - 1);
    log_differs(&log, line, "snapshot", "segments, got ");
    log_free(&log);
}

static void a_changed_request_differs_there_first(void **state)
{
    struct log_lines log = log_read("small_default", 300);
    const size_t line = log_find(&log, "malloc", 40);
    char begin[32];

    (void)state;
    add_to(json_object_get(log.lines[line], "size"), 4096);
    struct temp_file file = log_write(&log);
    const struct tarn_verify_result result = verify(file.path);

    temp_remove(&file);
    (void)snprintf(begin, sizeof begin, "line %zu, malloc (", line + 1);
    assert_true(result.differing >= 1);
    assert_memory_equal(result.first, begin, strlen(begin));
    log_free(&log);
}

/* Failures that the log does not have, and successes that it does not have. */
static void outcomes_are_compared(void **state)
{
    struct log_lines log = log_read("pools_default", 260);
    const size_t line = log_find(&log, "begin_allocate_to_pool", 1);

    (void)state;
    (void)json_object_set_new(log.lines[line], "op", json_string("end_allocate_to_pool"));
    struct temp_file file = log_write(&log);
    struct tarn_verify_result result = verify(file.path);

    temp_remove(&file);
    assert_non_null(strstr(result.first, "expected success, got TARN_ERR_STATE"));
    (void)json_object_set_new(log.lines[line], "op", json_string("begin_allocate_to_pool_failed"));
    file = log_write(&log);
    result = verify(file.path);
    temp_remove(&file);
    assert_non_null(strstr(result.first, "expected a failure, got success"));
    log_free(&log);
}

/* The message up to what only the machine knows: amounts of other processes. */
static void a_changed_message_differs(void **state)
{
    struct log_lines log = log_read("limit_default", 2954);
    const size_t line = log_find(&log, "malloc", 1);
    size_t at = 0;

    (void)state;
    for (size_t i = line; i < log.count && at == 0; i++) {
        at = json_object_get(log.lines[i], "message") ? i : 0;
    }
    assert_true(at > 0);
    const char *message = json_string_value(json_object_get(log.lines[at], "message"));
    char *changed = strdup(message);

    assert_non_null(changed);
    char *digit = strstr(changed, "Tried to allocate ");

    assert_non_null(digit);
    digit[strlen("Tried to allocate ")] ^= 1; /* another digit */
    (void)json_object_set_new(log.lines[at], "message", json_string(changed));
    free(changed);
    log_differs(&log, at, "malloc", "  message: expected \"CUDA out of memory. Tried to allocate ");
    log_free(&log);
}

/* ... and after it, whatever form it has; without one there is nothing to compare. */
static void messages_of_any_form_are_compared(void **state)
{
    static const struct {
        const char *from, *to; /* the first such part of the message; NULL: all of it */
    } rows[] = {{" of which ", " or "},
                {"GPU 0", "GPU  0"},
                {" GiB allowed", " MiB allowed"},
                {" is free. ", " was free. "},
                {" in use. 2.00", " at hand. 2.00"},
                {NULL, "out of memory"},
                {NULL, " of which "}};
    struct log_lines log = log_read("limit_default", 2954);
    size_t at = 0;

    (void)state;
    for (size_t i = 1; i < log.count && at == 0; i++) {
        at = json_object_get(log.lines[i], "message") ? i : 0;
    }
    char *message = strdup(json_string_value(json_object_get(log.lines[at], "message")));

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char changed[4096];
        const char *part = rows[i].from ? strstr(message, rows[i].from) : message;

        assert_non_null(part);
        (void)snprintf(changed, sizeof changed, "%.*s%s%s", (int)(part - message), message,
                       rows[i].to, rows[i].from ? part + strlen(rows[i].from) : "");
        (void)json_object_set_new(log.lines[at], "message", json_string(changed));
        log_differs(&log, at, "malloc", "  message: expected \"");
    }
    (void)json_object_del(log.lines[at], "message");
    struct temp_file file = log_write(&log);

    assert_int_equal(verify(file.path).differing, 0);
    temp_remove(&file);
    free(message);
    log_free(&log);
}

/* What a checkpoint freed and created, and numbers of a snapshot that are none. */
static void a_changed_checkpoint_differs(void **state)
{
    struct log_lines log = log_read("change_expandable_pools-21", 80);
    const size_t line = log.count - 1;
    json_t *freed = json_object_get(log.lines[line], "freed");
    json_t *created = json_object_get(log.lines[line], "created");

    (void)state;
    add_to(json_array_get(freed, 0), 512);
    log_differs(&log, line, "set_checkpoint", " was not to be freed");
    add_to(json_array_get(freed, 0), -512);
    add_to(json_array_get(json_array_get(created, 0), 0), 512);
    log_differs(&log, line, "set_checkpoint", " was to be created");
    add_to(json_array_get(json_array_get(created, 0), 0), -512);
    (void)json_array_append_new(freed, json_integer(7));
    log_differs(&log, line, "set_checkpoint", "  expected 2 freed and 1 created, got 1 and 1");
    (void)json_array_remove(freed, 1);
    (void)json_array_clear(created);
    log_differs(&log, line, "set_checkpoint", "  expected 1 freed and 0 created, got 1 and 1");
    log_free(&log);
}

static void a_snapshot_of_other_kinds_differs(void **state)
{
    struct log_lines log = log_read("pools_default", 3324);
    size_t line = log_find(&log, "snapshot", 1);

    for (int n = 2; json_array_size(json_object_get(log.lines[line], "segments")) == 0; n++) {
        line = log_find(&log, "snapshot", n);
    }
    json_t *segment = json_array_get(json_object_get(log.lines[line], "segments"), 0);
    json_t *block = json_array_get(json_object_get(segment, "blocks"), 0);
    json_t *size = json_incref(json_array_get(block, 0));
    json_t *total = json_incref(json_object_get(segment, "total_size"));

    (void)state;
    (void)json_object_set_new(segment, "total_size", json_string("7"));
    log_differs(&log, line, "snapshot", ": total_size expected 0, got ");
    (void)json_object_set_new(segment, "total_size", total);
    (void)json_array_set_new(block, 0, json_null());
    log_differs(&log, line, "snapshot", ": size expected 0, got ");
    (void)json_array_set_new(block, 0, size);
    add_to(json_array_get(json_object_get(segment, "pool"), 0), 1);
    log_differs(&log, line, "snapshot", ": belongs to another pool");
    log_free(&log);
}

/* ---- logs that make no sense ---- */

#define HEADER "{\"conf\":\"\",\"device_total\":1073741824,\"streams\":[0],\"brief\":[]}\n"
#define REST   "\"events\":[],\"brief\":[]}\n"

static void is_refused(const char *text, size_t size, enum tarn_status status, const char *says)
{
    struct temp_file file = temp_write(text, size);
    struct tarn_verify_result result = {.struct_size = sizeof result};
    struct tarn_error error = {.text = ""};
    const enum tarn_status st = tarn_verify_log(file.path, NULL, &result, &error);

    temp_remove(&file);
    if (st != status || !strstr(error.text, says)) {
        fail_msg("%s: expected \"%s\", got %s: \"%s\"", text, says, tarn_status_name(st),
                 error.text);
    }
    assert_int_equal(error.status, status);
    assert_null(strchr(error.text, '\n')); /* one sentence */
}

static void bad_logs_are_refused_with_their_line(void **state)
{
    static const struct {
        const char *text;
        const char *says;
    } rows[] = {
        {"", "the decision log is empty"},
        {"\n", "line 1 of the decision log: not JSON"},
        {"nonsense\n", "line 1 of the decision log: not JSON"},
        {"[1, 2]\n", "line 1 of the decision log: not a JSON object"},
        {"{}\n", "line 1 of the decision log: \"conf\" is missing or not a text"},
        {"{\"conf\":3}\n", "line 1 of the decision log: \"conf\" is missing or not a text"},
        {"{\"conf\":\"\"}\n", "\"device_total\" is missing or not a number from 0 on"},
        {"{\"conf\":\"\",\"device_total\":-1}\n", "\"device_total\" is missing or not a number"},
        {"{\"conf\":\"\",\"device_total\":1}\n", "\"streams\" is missing or not a list"},
        {"{\"conf\":\"\",\"device_total\":1,\"streams\":[]}\n", "\"brief\" is missing"},
        {"{\"conf\":\"\",\"device_total\":1,\"streams\":[\"a\"],\"brief\":[]}\n",
         "\"streams\" contains something other than numbers"},
        {"{\"conf\":\"\",\"device_total\":1,\"streams\":[],\"brief\":[1]}\n",
         "\"brief\" contains something other than names"},
        {HEADER "{\"op\":\"free\",\"id\":1,", "line 2 of the decision log: not JSON"},
        {HEADER "{}\n", "line 2 of the decision log: \"op\" is missing or not a text"},
        {HEADER "{\"op\":7}\n", "line 2 of the decision log: \"op\" is missing or not a text"},
        {HEADER "{\"op\":\"fly\"," REST, "line 2 of the decision log: unknown call \"fly\""},
        {HEADER "{\"op\":\"free\"," REST, "line 2 of the decision log: \"id\" is missing"},
        {HEADER "{\"op\":\"free\",\"id\":\"x\"," REST, "\"id\" is missing or not a number"},
        {HEADER "{\"op\":\"free\",\"id\":-3," REST, "\"id\" is missing or not a number"},
        {HEADER "{\"op\":\"free\",\"id\":1.5," REST, "\"id\" is missing or not a number"},
        {HEADER "{\"op\":\"free\",\"id\":1,\"id\":2," REST, "line 2 of the decision log: not JSON"},
        {HEADER "{\"op\":\"free\",\"id\":1,\"brief\":[]}\n", "\"events\" is missing"},
        {HEADER "{\"op\":\"free\",\"id\":1,\"events\":[]}\n", "\"brief\" is missing"},
        {HEADER "{\"op\":\"free\",\"id\":1,\"brief\":[],\"events\":[[1,2,3,4]]}\n",
         "event 0 is not [action, address, size, stream]"},
        {HEADER "{\"op\":\"free\",\"id\":1,\"brief\":[],\"events\":[[\"alloc\",2,3]]}\n",
         "event 0 is not [action, address, size, stream]"},
        {HEADER "{\"op\":\"malloc\",\"stream\":0,\"id\":1,\"ptr\":1," REST, "\"size\" is missing"},
        {HEADER "{\"op\":\"malloc\",\"size\":1,\"id\":1,\"ptr\":1," REST, "\"stream\" is missing"},
        {HEADER "{\"op\":\"malloc\",\"size\":1,\"stream\":1,\"id\":1,\"ptr\":1," REST,
         "stream 1 is not among the header's 1 streams"},
        {HEADER "{\"op\":\"malloc\",\"size\":1,\"stream\":0,\"ptr\":1," REST, "\"id\" is missing"},
        {HEADER "{\"op\":\"malloc\",\"size\":1,\"stream\":0,\"id\":1," REST, "\"ptr\" is missing"},
        {HEADER "{\"op\":\"malloc\",\"size\":1,\"stream\":0,\"id\":1,\"ptr\":\"\"," REST,
         "\"ptr\" is missing or not a number"},
        {HEADER "{\"op\":\"work\"," REST, "\"stream\" is missing"},
        {HEADER "{\"op\":\"join\",\"stream\":0," REST, "\"after\" is missing"},
        {HEADER "{\"op\":\"join\",\"stream\":0,\"after\":1," REST,
         "stream 1 is not among the header's 1 streams"},
        {HEADER
         "{\"op\":\"begin_allocate_to_pool\",\"pool\":[0,1],\"stream\":0,\"captured\":1," REST,
         "\"captured\" is missing or neither true nor false"},
        {HEADER "{\"op\":\"set_fraction\"," REST, "\"fraction\" is missing or not a number"},
        {HEADER "{\"op\":\"set_config\",\"conf\":[]," REST, "\"conf\" is missing or not a text"},
        {HEADER "{\"op\":\"release_pool\"," REST, "\"pool\" is missing or not a list"},
        {HEADER "{\"op\":\"release_pool\",\"pool\":[1]," REST, "\"pool\" is not a pair of numbers"},
        {HEADER "{\"op\":\"set_checkpoint\",\"pool\":[0,1]," REST, "\"freed\" is missing"},
        {HEADER "{\"op\":\"stats\",\"stats\":1," REST, "\"stats\" is not an object"},
        {HEADER "{\"op\":\"snapshot\"," REST, "\"segments\" is missing or not a list"},
        {HEADER "{\"op\":\"empty_cache\"," REST "{\"op\":\"fly\"," REST,
         "line 3 of the decision log: unknown call \"fly\""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        is_refused(rows[i].text, strlen(rows[i].text), TARN_ERR_FORMAT, rows[i].says);
    }
}

static void other_reasons_have_their_own_status(void **state)
{
    static const char bad_conf[] =
        "{\"conf\":\"nonsense:1\",\"device_total\":1,\"streams\":[],\"brief\":[]}\n";
    struct tarn_verify_result result = {.struct_size = sizeof result};
    struct tarn_error error;

    (void)state;
    is_refused(bad_conf, sizeof bad_conf - 1, TARN_ERR_CONFIG, "nonsense");
    assert_int_equal(tarn_verify_log("/nonexistent/log", NULL, &result, &error), TARN_ERR_IO);
    assert_int_equal(tarn_verify_log(NULL, NULL, &result, &error), TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_verify_log("x", NULL, NULL, &error), TARN_ERR_INVALID_ARGUMENT);
    result.struct_size = 8;
    assert_int_equal(tarn_verify_log("x", NULL, &result, &error), TARN_ERR_INVALID_ARGUMENT);
}

static void a_log_cut_in_its_packing_is_truncated(void **state)
{
    char path[1024];
    uint8_t bytes[4096];

    (void)state;
    (void)snprintf(path, sizeof path, "%s/decisions/small_default.jsonl.gz", TEST_DATA_DIR);
    FILE *in = fopen(path, "rb");

    assert_non_null(in);
    assert_int_equal(fread(bytes, 1, sizeof bytes, in), sizeof bytes);
    (void)fclose(in);
    is_refused((const char *)bytes, sizeof bytes, TARN_ERR_TRUNCATED, "");
}

/* Calls that cannot be: nothing crashes, and they differ. */
static void calls_without_sense_differ(void **state)
{
    static const char *const rows[] = {
        "{\"op\":\"free\",\"id\":5," REST,
        "{\"op\":\"record_stream\",\"id\":5,\"stream\":0," REST,
        "{\"op\":\"set_checkpoint\",\"pool\":[0,9],\"freed\":[],\"created\":[]," REST,
        "{\"op\":\"begin_allocate_to_pool\",\"pool\":[0,0],\"stream\":0," REST,
        "{\"op\":\"release_pool\",\"pool\":[0,-1]," REST,
        "{\"op\":\"set_fraction\",\"fraction\":1e300," REST,
        "{\"op\":\"set_config\",\"conf\":\"nonsense\"," REST,
        "{\"op\":\"malloc\",\"size\":9223372036854775807,\"stream\":0,\"id\":0,\"ptr\":0," REST,
        "{\"op\":\"snapshot\",\"segments\":[1,{},[]]," REST,
        "{\"op\":\"stats\",\"stats\":{\"x\":1,\"segment\":2}," REST,
        "{\"op\":\"empty_cache\",\"events\":[[\"oom\",1,2,3]],\"brief\":[1]}\n",
    };
    char text[1024];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        (void)snprintf(text, sizeof text, "%s%s", HEADER, rows[i]);
        struct temp_file file = temp_write(text, strlen(text));
        const struct tarn_verify_result result = verify(file.path);

        temp_remove(&file);
        if (result.calls != 1 || (result.differing != 1 && i != 1)) { /* 0 is a pointer */
            fail_msg("%s", rows[i]);
        }
    }
}

/* Failures of calls that could not succeed either: nothing differs. */
static void failures_without_sense_agree(void **state)
{
    static const struct {
        const char *line;
        const char *says; /* "": it agrees */
    } rows[] = {
        {"{\"op\":\"set_checkpoint_failed\",\"pool\":[0,9]," REST, ""},
        {"{\"op\":\"malloc\",\"size\":9223372036854775807,\"stream\":0,\"error\":\"oom\"," REST,
         ""},
        {"{\"op\":\"malloc\",\"size\":1,\"stream\":0,\"error\":\"oom\"," REST,
         "expected out of memory, got TARN_OK"},
        {"{\"op\":\"malloc\",\"size\":9223372036854775807,\"stream\":0,\"error\":\"oom\","
         "\"message\":\"1 GiB of which 1 GiB\"," REST,
         "  message: expected \"1 GiB of which 1 GiB\", got \"CUDA out of memory. "},
    };
    char text[1024];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        (void)snprintf(text, sizeof text, "%s%s", HEADER, rows[i].line);
        struct temp_file file = temp_write(text, strlen(text));
        const struct tarn_verify_result result = verify(file.path);

        temp_remove(&file);
        if (!strstr(result.first, rows[i].says) || (!rows[i].says[0] && result.differing > 0)) {
            fail_msg("%s: %s", rows[i].line, result.first);
        }
    }
}

/* A log uses so many pools, and no more, whichever call is their first. */
static void pools_have_a_limit(void **state)
{
    static const char *const last[] = {
        "{\"op\":\"begin_allocate_to_pool\",\"pool\":[0,999],\"stream\":0," REST,
        "{\"op\":\"get_checkpoint_failed\",\"pool\":[0,999]," REST,
    };
    char *text = malloc(300 * 128 + 1024);

    (void)state;
    for (size_t i = 0; i < sizeof last / sizeof *last; i++) {
        size_t used = (size_t)snprintf(text, 512, "%s", HEADER);
        struct tarn_verify_result result = {.struct_size = sizeof result};
        struct tarn_error error = {.text = ""};

        for (int pool = 0; pool < 256; pool++) {
            used += (size_t)snprintf(text + used, 128,
                                     "{\"op\":\"get_checkpoint_failed\",\"pool\":[0,%d]," REST,
                                     pool + 1);
        }
        struct temp_file file = temp_write(text, used);

        assert_int_equal(tarn_verify_log(file.path, NULL, &result, &error), TARN_OK);
        assert_int_equal(result.calls, 256);
        temp_remove(&file);
        const size_t full = used;

        used += (size_t)snprintf(text + used, 512, "%s",
                                 "{\"op\":\"set_checkpoint_failed\",\"pool\":[0,999]," REST);
        file = temp_write(text, used); /* it fails for want of a checkpoint, as recorded */
        assert_int_equal(tarn_verify_log(file.path, NULL, &result, &error), TARN_OK);
        assert_int_equal(result.calls, 257);
        assert_int_equal(result.differing, 0);
        temp_remove(&file);
        used = full;
        used += (size_t)snprintf(text + used, 512, "%s", last[i]);
        file = temp_write(text, used);
        assert_int_equal(tarn_verify_log(file.path, NULL, &result, &error), TARN_ERR_LIMIT);
        assert_non_null(strstr(error.text, "uses more than 256 pools"));
        temp_remove(&file);
    }
    free(text);
}

/* Bytes of the largest piece of host memory asked for. */
static size_t largest_piece;

static void *note_alloc(void *context, size_t size, size_t alignment)
{
    void *memory = NULL;

    (void)context;
    largest_piece = size > largest_piece ? size : largest_piece;
    alignment = alignment < sizeof(void *) ? sizeof(void *) : alignment;
    return posix_memalign(&memory, alignment, size) == 0 ? memory : NULL;
}

static void note_release(void *context, void *memory, size_t size)
{
    (void)context;
    (void)size;
    free(memory);
}

/* The same log with ids from 2^26, from 2^32 and up to the largest number: the same result, in no
 * more memory. */
static void ids_cost_by_number_not_by_value(void **state)
{
    static const json_int_t offsets[] = {0, ((json_int_t)1 << 26) - 50, (json_int_t)1 << 32,
                                         INT64_MAX - 300};
    const struct tarn_host_hooks hooks = {
        .struct_size = sizeof hooks, .alloc = note_alloc, .release = note_release};
    size_t plain = 0;

    (void)state;
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
        struct log_lines log = log_read("small_default", 300);

        for (size_t k = 1; k < log.count; k++) {
            json_t *id = json_object_get(log.lines[k], "id");

            if (id) {
                assert_true(json_integer_value(id) <= 300);
                add_to(id, offsets[i]);
            }
        }
        struct temp_file file = log_write(&log);

        largest_piece = 0;
        assert_int_equal(tarn_host_set_hooks(&hooks), TARN_OK);
        assert_int_equal(verify(file.path).differing, 0);
        assert_int_equal(tarn_host_set_hooks(NULL), TARN_OK);
        plain = i == 0 ? largest_piece : plain;
        assert_int_equal(largest_piece, plain);
        temp_remove(&file);
        log_free(&log);
    }
}

/* What a restored checkpoint created has an id in the log. */
static void a_created_block_has_an_id_from_zero_on(void **state)
{
    struct log_lines log = log_read("change_expandable_pools-21", 80);
    const size_t line = log.count - 1;
    json_t *pair = json_array_get(json_object_get(log.lines[line], "created"), 0);
    struct tarn_verify_result result = {.struct_size = sizeof result};
    struct tarn_error error;
    char text[128];

    (void)state;
    (void)json_array_set_new(pair, 1, json_integer(-1));
    struct temp_file file = log_write(&log);

    (void)snprintf(text, sizeof text,
                   "line %zu of the decision log: id -1 is not a number from 0 on", line + 1);
    assert_int_equal(tarn_verify_log(file.path, NULL, &result, &error), TARN_ERR_FORMAT);
    assert_string_equal(error.text, text);
    assert_int_equal(error.offset, line + 1);
    temp_remove(&file);
    log_free(&log);
}

static void a_block_that_was_not_given_has_no_contents(void **state)
{
    static const char text[] =
        HEADER "{\"op\":\"malloc\",\"size\":9223372036854775807,\"stream\":0,\"id\":1,"
               "\"ptr\":0," REST;
    struct tarn_verify_options options;
    const struct fake_cuda *fake = fake_gpu(&options);
    struct temp_file file = temp_write(text, sizeof text - 1);
    struct tarn_verify_result result = {.struct_size = sizeof result};
    struct tarn_error error = {.text = ""};

    (void)state;
    assert_int_equal(tarn_verify_log(file.path, &options, &result, &error), TARN_OK);
    assert_non_null(strstr(result.first, "expected success, got TARN_ERR_OUT_OF_MEMORY"));
    assert_int_equal(fake->calls("cuMemcpyAsync"), 0);
    temp_remove(&file);
    tarn_device_close(options.memory);
}

/* A pool released while requests go to it, then flushed: the next request must not lead nowhere. */
static void a_pool_released_too_early_is_survived(void **state)
{
    static const char text[] =
        HEADER "{\"op\":\"begin_allocate_to_pool\",\"pool\":[0,1],\"stream\":0," REST
               "{\"op\":\"release_pool\",\"pool\":[0,1]," REST "{\"op\":\"empty_cache\"," REST
               "{\"op\":\"malloc\",\"size\":1,\"stream\":0,\"id\":1,\"ptr\":1," REST
               "{\"op\":\"get_checkpoint\",\"pool\":[0,1]," REST;
    struct temp_file file = temp_write(text, sizeof text - 1);

    (void)state;
    assert_int_equal(verify(file.path).calls, 5);
    temp_remove(&file);
}

/* A log with ' for ". */
static struct temp_file write_by_hand(const char *text)
{
    char *copy = strdup(text);

    assert_non_null(copy);
    for (char *at = copy; (at = strchr(at, '\'')) != NULL;) {
        *at = '"';
    }
    struct temp_file file = temp_write(copy, strlen(copy));

    free(copy);
    return file;
}

/* Two blocks of stream 1 are used on stream 2 in a capture and freed. */
#define SILENT "'events':[],'brief':[]}\n"
#define FREED_IN_CAPTURE                                                                           \
    "{'conf':'graph_capture_record_stream_reuse:True','device_total':1073741824,'settled':true,"   \
    "'streams':[0,4096,8192],'brief':[]}\n"                                                        \
    "{'op':'begin_allocate_to_pool','pool':[0,1],'stream':1,'captured':true," SILENT               \
    "{'op':'capture_begin','stream':1," SILENT "{'op':'work','stream':1," SILENT                   \
    "{'op':'malloc','size':31457280,'stream':1,'id':1,'ptr':2097152,'brief':[],"                   \
    "'events':[['segment_alloc',2097152,31457280,1],['alloc',2097152,31457280,1]]}\n"              \
    "{'op':'malloc','size':33554432,'stream':1,'id':2,'ptr':67108864,'brief':[],"                  \
    "'events':[['segment_alloc',67108864,33554432,1],['alloc',67108864,33554432,1]]}\n"            \
    "{'op':'join','stream':2,'after':1," SILENT "{'op':'work','stream':2," SILENT                  \
    "{'op':'record_stream','id':1,'stream':2," SILENT                                              \
    "{'op':'record_stream','id':2,'stream':2," SILENT                                              \
    "{'op':'free','id':1,'brief':[],'events':[['free_requested',2097152,31457280,1]]}\n"           \
    "{'op':'free','id':2,'brief':[],'events':[['free_requested',67108864,33554432,1]]}\n"          \
    "{'op':'malloc','size':512,'stream':2,'id':3,'ptr':134217728,'brief':[],"                      \
    "'events':[['segment_alloc',134217728,2097152,2],['alloc',134217728,512,2]]}\n"
#define JOINED_BACK "{'op':'join','stream':1,'after':2," SILENT

/* They come back in an order (of a hash table) that is not that of their frees. */
#define ALLOCATED_AGAIN                                                                            \
    "{'op':'malloc','size':31457280,'stream':1,'id':4,'ptr':2097152,'brief':[],"                   \
    "'events':[['free_completed',67108864,33554432,1],['free_completed',2097152,31457280,1],"      \
    "['alloc',2097152,31457280,1]]}\n"                                                             \
    "{'op':'capture_end','stream':1," SILENT "{'op':'end_allocate_to_pool','pool':[0,1]," SILENT

static void reuse_within_a_capture_is_replayed(void **state)
{
    struct temp_file file = write_by_hand(FREED_IN_CAPTURE JOINED_BACK ALLOCATED_AGAIN);
    struct tarn_verify_result result = verify(file.path);

    (void)state;
    temp_remove(&file);
    assert_string_equal(result.first, "");
    assert_int_equal(result.calls, 16);
    file = write_by_hand(FREED_IN_CAPTURE ALLOCATED_AGAIN);
    result = verify(file.path);
    temp_remove(&file);
    assert_int_equal(result.differing, 1);
    assert_non_null(strstr(result.first, "pointer: expected 0x200000"));
}

/* One block of stream 1 is never seen to be complete: it comes last, and its event differs. */
static void a_free_that_never_completes_comes_last(void **state)
{
    struct temp_file file = write_by_hand(
        FREED_IN_CAPTURE JOINED_BACK
        "{'op':'malloc','size':31457280,'stream':1,'id':4,'ptr':2097152,'brief':[],"
        "'events':[['free_completed',2097152,31457280,1],['alloc',2097152,31457280,1]]}\n");
    const struct tarn_verify_result result = verify(file.path);

    (void)state;
    temp_remove(&file);
    assert_int_equal(result.differing, 1);
    assert_non_null(strstr(result.first,
                           "  event 1: expected alloc 0x200000 31457280 stream 0x1000, got "
                           "free_completed 0x4000000 33554432 stream 0x1000"));
    assert_null(strstr(result.first, "event 0"));
}

/* ---- orders in which streams complete ---- */

/* A log of blocks of one segment, number i from 1 on used on stream uses[i - 1] and freed, and then
 * of a call with these completions, by number, and at most one event more. */
static struct temp_file freed_on_streams(const int *uses, int count, const char *call,
                                         const int *completed, int completed_count,
                                         const char *last)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    (void)fprintf(out, "{'conf':'','device_total':1073741824,'streams':[0,1,2,3,4,5,6,7,8],"
                       "'brief':[]}\n");
    for (int i = 0; i < count; i++) {
        (void)fprintf(out,
                      "{'op':'malloc','size':512,'stream':0,'id':%d,'ptr':%d,'brief':[],"
                      "'events':[%s['alloc',%d,512,0]]}\n",
                      i, 2097152 + 512 * i, i ? "" : "['segment_alloc',2097152,2097152,0],",
                      2097152 + 512 * i);
    }
    for (int i = 0; i < count; i++) {
        (void)fprintf(out, "{'op':'record_stream','id':%d,'stream':%d," SILENT, i, uses[i]);
        (void)fprintf(out,
                      "{'op':'free','id':%d,'brief':[],'events':[['free_requested',%d,512,0]]}\n",
                      i, 2097152 + 512 * i);
    }
    (void)fprintf(out, "{%s,'brief':[],'events':[", call);
    for (int i = 0; i < completed_count; i++) {
        (void)fprintf(out, "%s['free_completed',%d,512,0]", i ? "," : "",
                      2097152 + 512 * (completed[i] - 1));
    }
    (void)fprintf(out, "%s]}\n", last);
    assert_int_equal(fclose(out), 0);
    struct temp_file file = write_by_hand(text);

    free(text);
    return file;
}

#define ASKS      "'op':'malloc','size':512,'stream':0,'id':99,'ptr':2097152"
#define ALLOCATED ",['alloc',2097152,512,0]"
#define RELEASED  ",['segment_free',2097152,2097152,0]"

/* The order of streams is that of a hash table: any is right, up to seven of them. Within a stream
 * it is that of the frees. */
static void streams_complete_in_any_order(void **state)
{
    static const struct {
        const char *call;
        const char *last;
        int uses[8];
        int completed[8];
        int count; /* of blocks */
        int done;  /* of `completed` */
        int differing;
    } rows[] = {
        {ASKS, ALLOCATED, {1, 2, 3, 4, 5, 6, 7}, {7, 2, 5, 4, 3, 6, 1}, 7, 7, 0},
        {ASKS, ALLOCATED, {1, 2, 3, 4, 5, 6, 7, 8}, {8, 2, 5, 4, 3, 6, 1, 7}, 8, 8, 1},
        {ASKS, ALLOCATED, {1, 2, 3, 4, 5, 6, 7, 8}, {1, 2, 3, 4, 5, 6, 7, 8}, 8, 8, 0},
        {ASKS, ALLOCATED, {1, 1, 2}, {3, 1, 2}, 3, 3, 0},
        {ASKS, ALLOCATED, {1, 1, 2}, {2, 1, 3}, 3, 3, 1},
        {"'op':'empty_cache'", RELEASED, {1, 1, 2}, {3, 1, 2}, 3, 3, 0},
        {"'op':'empty_cache'", RELEASED, {1, 1, 2}, {3, 1}, 3, 2, 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct temp_file file = freed_on_streams(rows[i].uses, rows[i].count, rows[i].call,
                                                 rows[i].completed, rows[i].done, rows[i].last);
        const struct tarn_verify_result result = verify(file.path);

        temp_remove(&file);
        assert_int_equal(result.calls, 3 * rows[i].count + 1);
        if (result.differing != (uint64_t)rows[i].differing) {
            fail_msg("row %zu: %s", i, result.first);
        }
    }
}

/* A device that is full still gives what the log shows. */
static void a_full_device_gives_what_it_gave(void **state)
{
    struct temp_file file = write_by_hand(
        "{'conf':'expandable_segments:True','device_total':1073741824,'device_is_full':true,"
        "'streams':[0],'brief':[]}\n"
        "{'op':'malloc','size':512,'stream':0,'id':1,'ptr':2097152,'brief':[],"
        "'events':[['segment_map',2097152,2097152,0],['alloc',2097152,512,0]]}\n"
        "{'op':'malloc','size':20971520,'stream':0,'error':'oom','brief':[],"
        "'events':[['oom',0,20971520,0]]}\n");
    const struct tarn_verify_result result = verify(file.path);

    (void)state;
    temp_remove(&file);
    assert_string_equal(result.first, "");
    assert_int_equal(result.calls, 2);
}

/* Calls that no device lets one make are no decisions. */
static void impossible_captures_are_refused(void **state)
{
    static const char *const logs[] = {
        FREED_IN_CAPTURE "{'op':'join','stream':1,'after':0," SILENT,
        FREED_IN_CAPTURE "{'op':'capture_begin','stream':0," SILENT
                         "{'op':'join','stream':1,'after':0," SILENT,
    };

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct temp_file file = write_by_hand(logs[i]);
        struct tarn_verify_result result = {.struct_size = sizeof result};
        struct tarn_error error = {.text = ""};
        char says[64];

        (void)snprintf(says, sizeof says, "line %d of the decision log: join of", 14 + i);
        assert_int_equal(tarn_verify_log(file.path, NULL, &result, &error), TARN_ERR_FORMAT);
        temp_remove(&file);
        if (!strstr(error.text, says)) {
            fail_msg("expected \"%s\", got \"%s\"", says, error.text);
        }
    }
}

/* Addresses that no device gives: it chooses one itself, and that differs. */
static void impossible_addresses_are_not_taken(void **state)
{
    static const char *const confs[] = {"", "expandable_segments:True"};
    static const char *const addresses[] = {
        "7", "-1", "-512", "-2097152", "513", "2097153", "9223372036854775296"};
    static const char *const actions[] = {"segment_alloc", "segment_map"};

    (void)state;
    for (size_t c = 0; c < 2; c++) {
        for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
            char text[1024];

            (void)snprintf(text, sizeof text,
                           "{\"conf\":\"%s\",\"device_total\":1073741824,\"streams\":[0],"
                           "\"brief\":[]}\n{\"op\":\"malloc\",\"size\":1,\"stream\":0,\"id\":1,"
                           "\"ptr\":1,\"brief\":[],\"events\":[[\"%s\",%s,2097152,0]]}\n",
                           confs[c], actions[c], addresses[i]);
            struct temp_file file = temp_write(text, strlen(text));

            assert_int_equal(verify(file.path).differing, 1);
            temp_remove(&file);
        }
    }
}

/* ---- logs with any value replaced ---- */

/* What replacing each value of a line led to. */
struct replaced {
    struct log_lines *log; /* up to a few lines behind the one at hand */
    uint64_t refused;
    uint64_t differing;
    uint64_t same;
};

/* The log is refused with a text, or a call differs, or nobody looks at that value; it leaks
 * nothing. */
static void replaced_verify(struct replaced *replaced)
{
    const uint64_t live = tarn_host_get_usage().live_bytes;
    struct temp_file file = log_write(replaced->log);
    struct tarn_verify_result result = {.struct_size = sizeof result};
    struct tarn_error error = {.text = ""};
    const enum tarn_status status = tarn_verify_log(file.path, NULL, &result, &error);

    temp_remove(&file);
    assert_int_equal(tarn_host_get_usage().live_bytes, live);
    if (status == TARN_OK) {
        replaced->differing += result.differing > 0;
        replaced->same += result.differing == 0;
        assert_true((result.first[0] != '\0') == (result.differing > 0));
    } else {
        replaced->refused++;
        assert_int_equal(error.status, status);
        assert_true(error.text[0] != '\0');
        assert_int_not_equal(status, TARN_ERR_INTERNAL);
        assert_int_not_equal(status, TARN_ERR_HOST_MEMORY);
    }
}

static void replace_all(struct replaced *replaced, json_t *parent);

/* `old` is a member of an object, or an element of an array. */
static void replace_one(struct replaced *replaced, json_t *parent, const char *key, size_t index,
                        json_t *old)
{
    enum {
        OTHERS = 6
    };
    json_t *const others[OTHERS] = {json_null(),      json_integer(-1), json_integer(1LL << 62),
                                    json_string("x"), json_array(),     json_object()};

    json_incref(old);
    for (size_t i = 0; i < OTHERS; i++) {
        assert_int_equal(key ? json_object_set_new(parent, key, others[i])
                             : json_array_set_new(parent, index, others[i]),
                         0);
        replaced_verify(replaced);
    }
    assert_int_equal(key ? json_object_set(parent, key, old) : json_array_set(parent, index, old),
                     0);
    replace_all(replaced, old);
    json_decref(old);
}

/* Of arrays the first two elements. */
static void replace_all(struct replaced *replaced, json_t *parent)
{
    if (json_is_object(parent)) {
        const char *keys[64];
        const char *key;
        json_t *value;
        size_t count = 0;

        assert_true(json_object_size(parent) <= 64);
        json_object_foreach(parent, key, value)
        {
            keys[count++] = key;
        }
        for (size_t i = 0; i < count; i++) {
            replace_one(replaced, parent, keys[i], 0, json_object_get(parent, keys[i]));
        }
    }
    for (size_t i = 0; i < json_array_size(parent) && i < 2; i++) {
        replace_one(replaced, parent, NULL, i, json_array_get(parent, i));
    }
}

/* The first line of each call, and the header. */
static void any_value_may_be_another(void **state)
{
    static const struct {
        const char *name;
        size_t lines;
    } logs[] = {{"capture_reuse_change-1", 240},
                {"limit_pools_gc-21", 260},
                {"release_streams-21", 430},
                {"pools_streams-21", 340}};
    char seen[32][32] = {""};
    size_t seen_count = 0;
    struct replaced replaced = {.log = NULL};

    (void)state;
    for (size_t i = 0; i < sizeof logs / sizeof *logs; i++) {
        struct log_lines log = log_read(logs[i].name, logs[i].lines);
        const size_t count = log.count;

        replaced.log = &log;
        for (size_t line = 0; line < count; line++) {
            const char *op =
                line > 0 ? json_string_value(json_object_get(log.lines[line], "op")) : "";
            size_t known = 0;

            while (known < seen_count && strcmp(seen[known], op) != 0) {
                known++;
            }
            if (known == seen_count) {
                assert_true(seen_count < 32);
                (void)snprintf(seen[seen_count++], sizeof *seen, "%s", op);
                log.count = line + 4 < count ? line + 4 : count;
                replace_all(&replaced, log.lines[line]);
                log.count = count;
            }
        }
        log_free(&log);
    }
    assert_true(seen_count > 15);
    assert_true(replaced.refused > 500 && replaced.differing > 500);
    assert_true(replaced.same < (replaced.refused + replaced.differing) / 4); /* not looked at */
}

static void every_host_failure_is_reported(void **state)
{
    static const struct {
        const char *name;
        size_t lines;
    } logs[] = {{"pools_default", 600},
                {"multistream_expandable", 600},
                {"change_expandable_pools-21", 80}}; /* up to a checkpoint */
    uint64_t failures = 0;

    (void)state;
    for (size_t i = 0; i < sizeof logs / sizeof *logs; i++) {
        struct log_lines log = log_read(logs[i].name, logs[i].lines);
        struct temp_file file = log_write(&log);
        const uint64_t live = tarn_host_get_usage().live_bytes;
        uint64_t calls = UINT64_MAX;

        /* Later ones repeat. */
        for (uint64_t n = 1; n <= calls; n += test_share() + n / test_part(60)) {
            const uint64_t before = tarn_host_get_usage().alloc_calls;
            struct tarn_verify_result result = {.struct_size = sizeof result};
            struct tarn_error error = {.status = TARN_OK};

            tarn_host_fail_nth(n);
            const enum tarn_status st = tarn_verify_log(file.path, NULL, &result, &error);

            tarn_host_fail_nth(0);
            calls = st ? calls : tarn_host_get_usage().alloc_calls - before;
            assert_int_equal(tarn_host_get_usage().live_bytes, live);
            if (st == TARN_OK && result.differing > 0) {
                fail_msg("allocation %llu: %s", (unsigned long long)n, result.first);
            }
            assert_true(st == TARN_OK || st == TARN_ERR_HOST_MEMORY);
            assert_int_equal(error.status, st);
            failures += st != TARN_OK;
        }
        temp_remove(&file);
        log_free(&log);
    }
    assert_true(failures > 30);
}

static void blocking_a_stream_needs_memory(void **state)
{
    struct temp_file file = write_by_hand(
        "{'conf':'','device_total':1073741824,'settled':true,'streams':[0,4096],'brief':[]}\n"
        "{'op':'block_stream','stream':1," SILENT "{'op':'unblock_stream','stream':1," SILENT);
    struct tarn_error error = {.status = TARN_ERR_HOST_MEMORY};
    uint64_t told = 0;

    (void)state;
    for (uint64_t n = 1; error.status != TARN_OK; n++) {
        struct tarn_verify_result result = {.struct_size = sizeof result};

        error = (struct tarn_error){.status = TARN_OK};
        tarn_host_fail_nth(n);
        const enum tarn_status st = tarn_verify_log(file.path, NULL, &result, &error);

        tarn_host_fail_nth(0);
        assert_true(st == TARN_ERR_HOST_MEMORY || (st == TARN_OK && result.differing == 0));
        assert_int_equal(error.status, st);
        told += strstr(error.text, "line 2 of the decision log: block_stream of stream 0x1000: ") !=
                NULL;
    }
    assert_true(told > 0);
    temp_remove(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_recorded_call_is_decided_alike),
        cmocka_unit_test(blocks_keep_their_contents),
        cmocka_unit_test(a_driver_that_refuses_is_told),
        cmocka_unit_test(a_driver_that_cannot_read_is_told),
        cmocka_unit_test(host_failures_with_memory_are_reported),
        cmocka_unit_test(host_failures_at_a_checkpoint_are_reported),
        cmocka_unit_test(other_contents_differ),
        cmocka_unit_test(a_block_that_was_not_given_has_no_contents),
        cmocka_unit_test(an_unchanged_copy_is_the_same),
        cmocka_unit_test(a_changed_pointer_differs),
        cmocka_unit_test(a_changed_event_differs),
        cmocka_unit_test(a_missing_or_additional_event_differs),
        cmocka_unit_test(every_changed_counter_differs),
        cmocka_unit_test(every_changed_statistic_differs),
        cmocka_unit_test(every_changed_field_of_a_snapshot_differs),
        cmocka_unit_test(a_changed_request_differs_there_first),
        cmocka_unit_test(outcomes_are_compared),
        cmocka_unit_test(a_changed_message_differs),
        cmocka_unit_test(bad_logs_are_refused_with_their_line),
        cmocka_unit_test(other_reasons_have_their_own_status),
        cmocka_unit_test(a_log_cut_in_its_packing_is_truncated),
        cmocka_unit_test(messages_of_any_form_are_compared),
        cmocka_unit_test(a_changed_checkpoint_differs),
        cmocka_unit_test(a_snapshot_of_other_kinds_differs),
        cmocka_unit_test(failures_without_sense_agree),
        cmocka_unit_test(pools_have_a_limit),
        cmocka_unit_test(calls_without_sense_differ),
        cmocka_unit_test(ids_cost_by_number_not_by_value),
        cmocka_unit_test(a_created_block_has_an_id_from_zero_on),
        cmocka_unit_test(a_pool_released_too_early_is_survived),
        cmocka_unit_test(reuse_within_a_capture_is_replayed),
        cmocka_unit_test(a_free_that_never_completes_comes_last),
        cmocka_unit_test(streams_complete_in_any_order),
        cmocka_unit_test(a_full_device_gives_what_it_gave),
        cmocka_unit_test(blocking_a_stream_needs_memory),
        cmocka_unit_test(impossible_captures_are_refused),
        cmocka_unit_test(impossible_addresses_are_not_taken),
        cmocka_unit_test(any_value_may_be_another),
        cmocka_unit_test(every_host_failure_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
