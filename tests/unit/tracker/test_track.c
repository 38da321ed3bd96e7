/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "support/child.h"

#include "tarn/event.h"
#include "tarn/host.h"
#include "tarn/tracker.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum {
    GPU,
    CPU
};

/* Names of modules in the order in which `open_tracker` adds them; 0 is outside of all. */
enum {
    MODEL = 1,
    LAYER
};

static struct tarn_tracker *open_tracker(const struct tarn_tracker_options *options)
{
    struct tarn_tracker *tracker = NULL;
    uint32_t id;

    assert_int_equal(tarn_tracker_create(options, &tracker, NULL), TARN_OK);
    assert_int_equal(tarn_tracker_add_name(tracker, TARN_TRACK_DEVICE, "cuda:0", &id, NULL), 0);
    assert_int_equal(id, GPU);
    assert_int_equal(tarn_tracker_add_name(tracker, TARN_TRACK_DEVICE, "cpu", &id, NULL), 0);
    assert_int_equal(id, CPU);
    assert_int_equal(tarn_tracker_add_name(tracker, TARN_TRACK_MODULE, "Model", &id, NULL), 0);
    assert_int_equal(id, MODEL);
    assert_int_equal(tarn_tracker_add_name(tracker, TARN_TRACK_MODULE, "Model.layer", &id, NULL),
                     0);
    assert_int_equal(id, LAYER);
    return tracker;
}

static void close_tracker(struct tarn_tracker *tracker)
{
    struct tarn_findings findings = TARN_FINDINGS_INIT;

    if (tarn_tracker_check(tracker, &findings)) {
        fail_msg("%s", findings.text[0]);
    }
    tarn_tracker_destroy(tracker);
    assert_int_equal(tarn_host_get_usage().live_count, 0);
}

static enum tarn_status apply(struct tarn_tracker *tracker, struct tarn_track_event event,
                              struct tarn_error *error)
{
    return tarn_tracker_apply(tracker, &event, 1, NULL, error);
}

#define must_apply(tracker, ...)                                                                   \
    assert_int_equal(apply(tracker, (struct tarn_track_event){__VA_ARGS__}, NULL), TARN_OK)

static struct tarn_track_row row_of(struct tarn_tracker *tracker, enum tarn_track_point moment,
                                    uint32_t device)
{
    struct tarn_track_row rows[TARN_TRACK_DEVICES_MAX];
    size_t count = 0;

    tarn_tracker_get_rows(tracker, moment, rows, TARN_TRACK_DEVICES_MAX, &count);
    for (size_t i = 0; i < count; i++) {
        if (rows[i].device == device) {
            return rows[i];
        }
    }
    return (struct tarn_track_row){.total = -1}; /* no row */
}

static int64_t bytes_of(struct tarn_tracker *tracker, uint32_t device, uint32_t category)
{
    return row_of(tracker, TARN_TRACK_NOW, device).bytes[category];
}

static void sizes_round_up_on_cuda_only(void **state)
{
    struct tarn_tracker_options options = {.struct_size = sizeof options, .granularity = 4096};
    struct tarn_tracker *tracker = open_tracker(NULL);

    (void)state;
    must_apply(tracker, .kind = TARN_TRACK_CREATE, .id = 1, .bytes = 513, .name = GPU);
    must_apply(tracker, .kind = TARN_TRACK_CREATE, .id = 2, .bytes = 513, .name = CPU);
    must_apply(tracker, .kind = TARN_TRACK_CREATE, .id = 3, .bytes = 0, .name = GPU);
    assert_int_equal(row_of(tracker, TARN_TRACK_NOW, GPU).total, 1024);
    assert_int_equal(row_of(tracker, TARN_TRACK_NOW, CPU).total, 513);
    close_tracker(tracker);

    tracker = open_tracker(&options);
    must_apply(tracker, .kind = TARN_TRACK_CREATE, .id = 1, .bytes = 513, .name = GPU);
    assert_int_equal(row_of(tracker, TARN_TRACK_NOW, GPU).total, 4096);
    close_tracker(tracker);

    options.granularity = 1;
    tracker = open_tracker(&options);
    must_apply(tracker, .kind = TARN_TRACK_CREATE, .id = 1, .bytes = 513, .name = GPU);
    assert_int_equal(row_of(tracker, TARN_TRACK_NOW, GPU).total, 513);
    close_tracker(tracker);

    static const struct {
        const char *name;
        int64_t bytes;
    } devices[] = {{"cuda", 1024}, {"cudaX", 513}, {"cud", 513}, {"cuda:11", 1024}};

    tracker = open_tracker(NULL);
    for (uint32_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        uint32_t id;

        assert_int_equal(
            tarn_tracker_add_name(tracker, TARN_TRACK_DEVICE, devices[i].name, &id, NULL), TARN_OK);
        must_apply(tracker, .kind = TARN_TRACK_CREATE, .id = i, .bytes = 513, .name = id);
        assert_int_equal(row_of(tracker, TARN_TRACK_NOW, id).total, devices[i].bytes);
    }
    close_tracker(tracker);
}

static void results_are_what_the_phase_says(void **state)
{
    struct tarn_tracker *tracker = open_tracker(NULL);
    const uint32_t automatic = TARN_TRACK_AUTO;

    (void)state;
    must_apply(tracker, .kind = TARN_TRACK_ENTER, .id = 5, .name = MODEL);
    must_apply(tracker, .kind = TARN_TRACK_CREATE, .id = 1, .bytes = 1, .name = CPU,
               .category = automatic);
    must_apply(tracker, .kind = TARN_TRACK_LEAVE, .id = 5);
    must_apply(tracker, .kind = TARN_TRACK_CREATE, .id = 2, .bytes = 10, .name = CPU,
               .category = automatic, .flags = TARN_TRACK_BACKWARD);
    /* A module that begins in backward is recomputed: its results are activations. */
    must_apply(tracker, .kind = TARN_TRACK_ENTER, .id = 5, .name = MODEL,
               .flags = TARN_TRACK_BACKWARD);
    must_apply(tracker, .kind = TARN_TRACK_CREATE, .id = 3, .bytes = 100, .name = CPU,
               .category = automatic, .flags = TARN_TRACK_BACKWARD);
    must_apply(tracker, .kind = TARN_TRACK_LEAVE, .id = 5, .flags = TARN_TRACK_BACKWARD);
    must_apply(tracker, .kind = TARN_TRACK_CREATE, .id = 4, .bytes = 1000, .name = CPU,
               .category = automatic, .flags = TARN_TRACK_BACKWARD);
    must_apply(tracker, .kind = TARN_TRACK_BEGIN_STEP);
    must_apply(tracker, .kind = TARN_TRACK_CREATE, .id = 6, .bytes = 10000, .name = CPU,
               .category = automatic);
    must_apply(tracker, .kind = TARN_TRACK_END_STEP);
    assert_int_equal(bytes_of(tracker, CPU, TARN_TRACK_ACTIVATION), 101);
    assert_int_equal(bytes_of(tracker, CPU, TARN_TRACK_TEMP), 1010);
    assert_int_equal(bytes_of(tracker, CPU, TARN_TRACK_OPTSTATE), 10000);
    close_tracker(tracker);
}

static void known_tensors_hide_what_follows_unless_told(void **state)
{
    for (int all = 0; all < 2; all++) {
        struct tarn_tracker_options options = {.struct_size = sizeof options, .all_storages = all};
        struct tarn_tracker *tracker = open_tracker(&options);
        const struct tarn_track_event events[] = {
            {.kind = TARN_TRACK_CREATE, .id = 1, .bytes = 7, .name = CPU},
            {.kind = TARN_TRACK_CREATE, .id = 1, .bytes = 7, .name = CPU, .flags = TARN_TRACK_MORE},
            {.kind = TARN_TRACK_CREATE, .id = 2, .bytes = 50, .name = CPU},
            {.kind = TARN_TRACK_CREATE, .id = 3, .bytes = 300, .name = CPU},
        };

        (void)state;
        assert_int_equal(tarn_tracker_apply(tracker, events, 4, NULL, NULL), TARN_OK);
        assert_int_equal(row_of(tracker, TARN_TRACK_NOW, CPU).total, all ? 357 : 307);
        close_tracker(tracker);
    }
}

static void a_device_goes_with_its_last_byte(void **state)
{
    struct tarn_tracker *tracker = open_tracker(NULL);

    (void)state;
    must_apply(tracker, .kind = TARN_TRACK_CREATE, .id = 1, .bytes = 5, .name = CPU);
    must_apply(tracker, .kind = TARN_TRACK_RESIZE, .id = 1, .bytes = 0);
    assert_int_equal(row_of(tracker, TARN_TRACK_NOW, CPU).total, -1);
    /* Nothing is re-classified: the device comes with zeros, as in PyTorch. */
    must_apply(tracker, .kind = TARN_TRACK_CLASSIFY, .id = 1, .category = TARN_TRACK_OTHER);
    assert_int_equal(row_of(tracker, TARN_TRACK_NOW, CPU).total, 0);
    must_apply(tracker, .kind = TARN_TRACK_DELETE, .id = 1);
    assert_int_equal(row_of(tracker, TARN_TRACK_NOW, CPU).total, 0);
    close_tracker(tracker);
}

static void one_moment_and_each_devices_own(void **state)
{
    struct tarn_tracker *tracker = open_tracker(NULL);

    (void)state;
    must_apply(tracker, .kind = TARN_TRACK_CREATE, .id = 1, .bytes = 5120, .name = GPU);
    must_apply(tracker, .kind = TARN_TRACK_OP_DONE);
    must_apply(tracker, .kind = TARN_TRACK_DELETE, .id = 1);
    must_apply(tracker, .kind = TARN_TRACK_CREATE, .id = 2, .bytes = 5000, .name = CPU);
    must_apply(tracker, .kind = TARN_TRACK_CREATE, .id = 3, .bytes = 512, .name = GPU);
    must_apply(tracker, .kind = TARN_TRACK_OP_DONE);
    assert_int_equal(row_of(tracker, TARN_TRACK_PEAKS, GPU).total, 5120);
    assert_int_equal(row_of(tracker, TARN_TRACK_PEAKS, CPU).total, 5000);
    assert_int_equal(row_of(tracker, TARN_TRACK_TOTAL_PEAK, GPU).total, 512);
    assert_int_equal(row_of(tracker, TARN_TRACK_TOTAL_PEAK, CPU).total, 5000);
    close_tracker(tracker);
}

/* One forward, backward and step of a model that keeps `leak` bytes more each time. */
static void run_iteration(struct tarn_tracker *tracker, uint64_t number, uint64_t leak)
{
    const uint64_t id = 100 + 10 * number;

    must_apply(tracker, .kind = TARN_TRACK_ENTER, .id = 1, .name = MODEL);
    must_apply(tracker, .kind = TARN_TRACK_CREATE, .id = id, .bytes = 1000, .name = CPU,
               .category = TARN_TRACK_ACTIVATION);
    must_apply(tracker, .kind = TARN_TRACK_OP_DONE);
    must_apply(tracker, .kind = TARN_TRACK_LEAVE, .id = 1);
    must_apply(tracker, .kind = TARN_TRACK_ENTER_BACKWARD, .id = 1);
    must_apply(tracker, .kind = TARN_TRACK_CREATE, .id = id + 1, .bytes = leak, .name = CPU,
               .category = TARN_TRACK_OTHER);
    must_apply(tracker, .kind = TARN_TRACK_OP_DONE, .flags = TARN_TRACK_BACKWARD);
    must_apply(tracker, .kind = TARN_TRACK_LEAVE_BACKWARD, .id = 1);
    must_apply(tracker, .kind = TARN_TRACK_END_BACKWARD);
    must_apply(tracker, .kind = TARN_TRACK_DELETE, .id = id);
}

static void iterations_need_no_reset(void **state)
{
    struct tarn_tracker *tracker = open_tracker(NULL);
    struct tarn_track_iteration it = {.struct_size = sizeof it};
    uint32_t number;
    size_t calls;

    (void)state;
    for (uint64_t i = 0; i < 3; i++) {
        run_iteration(tracker, i, i == 1 ? 64 : 0);
    }
    assert_int_equal(tarn_tracker_count_iterations(tracker), 3);
    assert_int_equal(tarn_tracker_get_iteration(tracker, 1, &it), TARN_OK);
    assert_int_equal(it.number, 1);
    assert_int_equal(it.begin_bytes, 0);
    assert_int_equal(it.peak_bytes, 1064);
    assert_int_equal(it.end_bytes, 64);
    assert_int_equal(it.growth[TARN_TRACK_OTHER], 64);
    assert_int_equal(it.growth[TARN_TRACK_ACTIVATION], 0);
    assert_int_equal(it.peak[TARN_TRACK_ACTIVATION], 1000);
    assert_int_equal(tarn_tracker_get_iteration(tracker, 2, &it), TARN_OK);
    assert_int_equal(it.begin_bytes, 64);
    assert_int_equal(it.growth[TARN_TRACK_OTHER], 0);
    assert_int_equal(tarn_tracker_get_iteration(tracker, 3, &it), TARN_ERR_NOT_FOUND);
    assert_int_equal(tarn_tracker_get_state(tracker, 0, 0, &number, &calls), TARN_OK);
    assert_int_equal(number, TARN_TRACK_PEAK_FORWARD);
    assert_int_equal(calls, 3);
    close_tracker(tracker);
}

static void only_one_iteration_where_asked_for(void **state)
{
    struct tarn_tracker_options options = {.struct_size = sizeof options, .one_iteration = true};
    struct tarn_tracker *tracker = open_tracker(&options);
    struct tarn_error error;

    (void)state;
    run_iteration(tracker, 0, 0);
    assert_int_equal(
        apply(tracker, (struct tarn_track_event){.kind = TARN_TRACK_ENTER, .id = 1, .name = MODEL},
              &error),
        TARN_ERR_STATE);
    assert_non_null(strstr(error.text, "entering of module 1: MemTracker does not support memory "
                                       "tracking for multiple iterative calls."));
    must_apply(tracker, .kind = TARN_TRACK_RESET_MODULES);
    run_iteration(tracker, 1, 0);
    close_tracker(tracker);
}

/* In a steady run everything is reused. */
static void a_steady_run_needs_no_memory(void **state)
{
    struct tarn_tracker_options options = {.struct_size = sizeof options, .calls_kept = 2};
    struct tarn_tracker *tracker = open_tracker(&options);
    uint32_t number;
    size_t calls;

    (void)state;
    for (uint64_t i = 0; i < 400; i++) {
        run_iteration(tracker, i % 7, 0);
        must_apply(tracker, .kind = TARN_TRACK_DELETE, .id = 101 + 10 * (i % 7));
    }
    const uint64_t before = tarn_host_get_usage().alloc_calls;

    for (uint64_t i = 0; i < 400; i++) {
        run_iteration(tracker, i % 7, 0);
        must_apply(tracker, .kind = TARN_TRACK_DELETE, .id = 101 + 10 * (i % 7));
    }
    assert_int_equal(tarn_host_get_usage().alloc_calls, before);
    assert_int_equal(tarn_tracker_get_state(tracker, 0, 1, &number, &calls), TARN_OK);
    assert_int_equal(calls, 2);
    close_tracker(tracker);
}

/* As where another thread's operator ends while a module is being entered. */
static void an_operator_ends_the_entering(void **state)
{
    struct tarn_tracker *tracker = open_tracker(NULL);
    struct tarn_track_module module = {.struct_size = sizeof module};
    uint32_t number = 0;
    size_t calls = 0;

    (void)state;
    must_apply(tracker, .kind = TARN_TRACK_CREATE, .id = 1, .bytes = 512, .name = GPU,
               .category = TARN_TRACK_ACTIVATION);
    must_apply(tracker, .kind = TARN_TRACK_ENTER, .id = 1, .name = MODEL);
    must_apply(tracker, .kind = TARN_TRACK_INPUT, .id = 1);
    must_apply(tracker, .kind = TARN_TRACK_OP_DONE);
    must_apply(tracker, .kind = TARN_TRACK_INPUT, .id = 1); /* too late */
    must_apply(tracker, .kind = TARN_TRACK_READY);          /* it is */
    assert_int_equal(tarn_tracker_get_module(tracker, 0, &module), TARN_OK);
    assert_int_equal(module.input_bytes, 512);
    assert_int_equal(module.state_count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(tarn_tracker_get_state(tracker, 0, i, &number, &calls), TARN_OK);
        assert_int_equal(calls, 1);
    }
    close_tracker(tracker);
}

static void who_had_what_at_the_peak(void **state)
{
    struct tarn_tracker *tracker = open_tracker(NULL);
    struct tarn_track_row row;

    (void)state;
    must_apply(tracker, .kind = TARN_TRACK_CREATE, .id = 1, .bytes = 512, .name = GPU,
               .category = TARN_TRACK_ACTIVATION);
    must_apply(tracker, .kind = TARN_TRACK_ENTER, .id = 1, .name = MODEL);
    must_apply(tracker, .kind = TARN_TRACK_CLASSIFY, .id = 1, .category = TARN_TRACK_PARAMETER);
    must_apply(tracker, .kind = TARN_TRACK_READY);
    must_apply(tracker, .kind = TARN_TRACK_ENTER, .id = 2, .name = LAYER);
    must_apply(tracker, .kind = TARN_TRACK_CLASSIFY, .id = 1, .category = TARN_TRACK_PARAMETER);
    must_apply(tracker, .kind = TARN_TRACK_READY);
    must_apply(tracker, .kind = TARN_TRACK_CREATE, .id = 2, .bytes = 1024, .name = GPU,
               .category = TARN_TRACK_AUTO);
    must_apply(tracker, .kind = TARN_TRACK_OP_DONE);
    must_apply(tracker, .kind = TARN_TRACK_LEAVE, .id = 2);
    must_apply(tracker, .kind = TARN_TRACK_DELETE, .id = 2);
    must_apply(tracker, .kind = TARN_TRACK_OP_DONE);
    assert_int_equal(tarn_tracker_get_owned(tracker, TARN_TRACK_TOTAL_PEAK, LAYER, GPU, &row), 0);
    assert_int_equal(row.bytes[TARN_TRACK_PARAMETER], 512); /* the last to classify it */
    assert_int_equal(row.bytes[TARN_TRACK_ACTIVATION], 1024);
    assert_int_equal(row.total, 1536);
    assert_int_equal(tarn_tracker_get_owned(tracker, TARN_TRACK_NOW, LAYER, GPU, &row), 0);
    assert_int_equal(row.total, 512);
    assert_int_equal(tarn_tracker_get_owned(tracker, TARN_TRACK_NOW, 99, GPU, &row),
                     TARN_ERR_NOT_FOUND);
    close_tracker(tracker);
}

/* Every wrong event names itself and changes nothing. */
static void wrong_events_are_refused(void **state)
{
    static const struct {
        struct tarn_track_event event;
        enum tarn_status status;
        const char *text;
    } wrong[] = {
        {{.kind = TARN_TRACK_DELETE, .id = 9},
         TARN_ERR_NOT_FOUND,
         "deletion of storage 9: it is unknown: never created, or already deleted"},
        {{.kind = TARN_TRACK_RESIZE, .id = 9},
         TARN_ERR_NOT_FOUND,
         "resizing of storage 9: it is unknown: never created, or already deleted"},
        {{.kind = TARN_TRACK_CREATE, .id = 9, .name = 7},
         TARN_ERR_NOT_FOUND,
         "creation of storage 9: its device has no name"},
        {{.kind = TARN_TRACK_CREATE, .id = 9, .category = 31},
         TARN_ERR_NOT_FOUND,
         "creation of storage 9: its category has no name"},
        {{.kind = TARN_TRACK_CLASSIFY, .id = 9, .category = 31},
         TARN_ERR_NOT_FOUND,
         "classification of storage 9: its category has no name"},
        {{.kind = TARN_TRACK_CREATE, .id = 9, .bytes = UINT64_MAX},
         TARN_ERR_LIMIT,
         "creation of storage 9: more bytes than any memory has"},
        {{.kind = TARN_TRACK_RESIZE, .id = 1, .bytes = UINT64_MAX},
         TARN_ERR_LIMIT,
         "resizing of storage 1: more bytes than any memory has"},
        {{.kind = TARN_TRACK_LEAVE, .id = 9},
         TARN_ERR_NOT_FOUND,
         "leaving of module 9: it is unknown: never entered, or destroyed"},
        {{.kind = TARN_TRACK_LEAVE, .id = 1},
         TARN_ERR_STATE,
         "leaving of module 1: it was not entered, or left before"},
        {{.kind = TARN_TRACK_ENTER, .id = 9, .name = 77},
         TARN_ERR_NOT_FOUND,
         "entering of module 9: it has no name"},
        {{.kind = TARN_TRACK_ENTER_BACKWARD, .id = 9},
         TARN_ERR_NOT_FOUND,
         "entering in backward of module 9: it is unknown: never entered, or destroyed"},
        {{.kind = TARN_TRACK_LEAVE_BACKWARD, .id = 9},
         TARN_ERR_NOT_FOUND,
         "leaving in backward of module 9: it is unknown: never entered, or destroyed"},
        {{.kind = TARN_TRACK_FORGET_MODULE, .id = 9},
         TARN_ERR_NOT_FOUND,
         "forgetting of module 9: it is unknown: never entered, or destroyed"},
        {{.kind = TARN_TRACK_OP_DONE, .flags = TARN_TRACK_IN_STATE, .name = 63},
         TARN_ERR_NOT_FOUND,
         "end of an operator: its state has no name"},
        {{.kind = TARN_TRACK_ACTIVE, .name = 63},
         TARN_ERR_NOT_FOUND,
         "list of active modules: the module has no name"},
        {{.kind = 999}, TARN_ERR_INVALID_ARGUMENT, "unknown kind of event 999"},
        {{.kind = TARN_TRACK_DELETE, .id = UINT64_MAX},
         TARN_ERR_INVALID_ARGUMENT,
         "deletion of storage 18446744073709551615: no id has this number"},
    };
    struct tarn_tracker *tracker = open_tracker(NULL);
    struct tarn_error error;

    (void)state;
    must_apply(tracker, .kind = TARN_TRACK_CREATE, .id = 1, .bytes = 5, .name = CPU);
    must_apply(tracker, .kind = TARN_TRACK_ENTER, .id = 1, .name = MODEL);
    must_apply(tracker, .kind = TARN_TRACK_LEAVE, .id = 1);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(apply(tracker, wrong[i].event, &error), wrong[i].status);
        assert_string_equal(error.text, wrong[i].text);
        assert_int_equal(row_of(tracker, TARN_TRACK_NOW, CPU).total, 5);
    }
    close_tracker(tracker);
}

/* A failed event does not make a module ready that is being entered. */
static void what_is_refused_changes_nothing(void **state)
{
    static const struct tarn_track_event wrong[] = {
        {.kind = TARN_TRACK_ENTER, .id = 9, .name = 77},
        {.kind = TARN_TRACK_ENTER, .id = 1, .name = MODEL}, /* one_iteration */
        {.kind = TARN_TRACK_LEAVE, .id = 9},
        {.kind = TARN_TRACK_LEAVE, .id = 2}, /* known, but not active */
        {.kind = TARN_TRACK_ENTER_BACKWARD, .id = 9},
        {.kind = TARN_TRACK_OP_DONE, .name = 77, .flags = TARN_TRACK_IN_STATE},
    };
    const struct tarn_tracker_options options = {.struct_size = sizeof options,
                                                 .one_iteration = true};
    struct tarn_tracker *tracker = open_tracker(&options);
    uint32_t number;
    size_t count;

    (void)state;
    must_apply(tracker, .kind = TARN_TRACK_ENTER, .id = 2, .name = LAYER);
    must_apply(tracker, .kind = TARN_TRACK_LEAVE, .id = 2);
    must_apply(tracker, .kind = TARN_TRACK_ENTER, .id = 1, .name = MODEL);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_not_equal(apply(tracker, wrong[i], NULL), TARN_OK);
        assert_int_equal(tarn_tracker_get_state(tracker, 1, 0, &number, &count),
                         TARN_ERR_NOT_FOUND);
    }
    must_apply(tracker, .kind = TARN_TRACK_READY);
    assert_int_equal(tarn_tracker_get_state(tracker, 1, 0, &number, &count), TARN_OK);
    assert_int_equal(number, TARN_TRACK_PEAK_FORWARD);
    assert_int_equal(count, 1);
    close_tracker(tracker);
}

static void a_batch_stops_at_its_first_error(void **state)
{
    struct tarn_tracker *tracker = open_tracker(NULL);
    const struct tarn_track_event events[] = {
        {.kind = TARN_TRACK_CREATE, .id = 1, .bytes = 5, .name = CPU},
        {.kind = TARN_TRACK_DELETE, .id = 2},
        {.kind = TARN_TRACK_DELETE, .id = 1},
    };
    size_t applied = 9;

    (void)state;
    assert_int_equal(tarn_tracker_apply(tracker, events, 3, &applied, NULL), TARN_ERR_NOT_FOUND);
    assert_int_equal(applied, 1);
    assert_int_equal(row_of(tracker, TARN_TRACK_NOW, CPU).total, 5);
    close_tracker(tracker);
}

static void sums_have_a_limit(void **state)
{
    struct tarn_tracker *tracker = open_tracker(NULL);
    const uint64_t large = UINT64_C(1) << 60;

    (void)state;
    for (uint64_t i = 0; i < 4; i++) {
        must_apply(tracker, .kind = TARN_TRACK_CREATE, .id = i, .bytes = large, .name = CPU);
    }
    assert_int_equal(apply(tracker,
                           (struct tarn_track_event){
                               .kind = TARN_TRACK_CREATE, .id = 5, .bytes = 1, .name = CPU},
                           NULL),
                     TARN_ERR_LIMIT);
    must_apply(tracker, .kind = TARN_TRACK_CREATE, .id = 6, .bytes = 0, .name = CPU);
    assert_int_equal(
        apply(tracker, (struct tarn_track_event){.kind = TARN_TRACK_RESIZE, .id = 6, .bytes = 1},
              NULL),
        TARN_ERR_LIMIT);
    /* Inputs may be named again and again. */
    must_apply(tracker, .kind = TARN_TRACK_ENTER, .id = 1, .name = MODEL);
    for (int i = 0; i < 20; i++) {
        must_apply(tracker, .kind = TARN_TRACK_INPUT, .id = 1);
    }
    must_apply(tracker, .kind = TARN_TRACK_READY);
    close_tracker(tracker);
}

static void names_have_limits(void **state)
{
    struct tarn_tracker *tracker = open_tracker(NULL);
    char text[TARN_TRACK_NAME_MAX + 1];
    enum tarn_status status = TARN_OK;
    struct tarn_error error;
    uint32_t id;

    (void)state;
    assert_int_equal(tarn_tracker_add_name(tracker, TARN_TRACK_DEVICE, "", &id, NULL),
                     TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_tracker_add_name(tracker, TARN_TRACK_DEVICE, NULL, &id, NULL),
                     TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_tracker_add_name(tracker, TARN_TRACK_NAMES_COUNT, "x", &id, NULL),
                     TARN_ERR_INVALID_ARGUMENT);
    memset(text, 'x', sizeof text);
    text[TARN_TRACK_NAME_MAX] = '\0';
    assert_int_equal(tarn_tracker_add_name(tracker, TARN_TRACK_MODULE, text, &id, NULL),
                     TARN_ERR_LIMIT);
    for (int i = 0; !status && i < 100; i++) {
        (void)snprintf(text, sizeof text, "cuda:%d", i);
        status = tarn_tracker_add_name(tracker, TARN_TRACK_DEVICE, text, &id, &error);
    }
    assert_int_equal(status, TARN_ERR_LIMIT);
    assert_string_equal(error.text, "a tracker has at most 64 devices");
    assert_int_equal(tarn_tracker_count_names(tracker, TARN_TRACK_DEVICE), 64);
    assert_string_equal(tarn_tracker_get_name(tracker, TARN_TRACK_CATEGORY, 5), "Optstate");
    assert_null(tarn_tracker_get_name(tracker, TARN_TRACK_CATEGORY, 99));
    assert_null(tarn_tracker_get_name(tracker, TARN_TRACK_NAMES_COUNT, 0));
    assert_int_equal(tarn_tracker_count_names(tracker, TARN_TRACK_NAMES_COUNT), 0);
    close_tracker(tracker);
}

static void wrong_options_are_refused(void **state)
{
    struct tarn_tracker_options options = {.struct_size = sizeof options, .granularity = 3};
    struct tarn_tracker *tracker = NULL;

    (void)state;
    assert_int_equal(tarn_tracker_create(&options, &tracker, NULL), TARN_ERR_INVALID_ARGUMENT);
    options.granularity = UINT64_C(1) << 31;
    assert_int_equal(tarn_tracker_create(&options, &tracker, NULL), TARN_ERR_INVALID_ARGUMENT);
    options = (struct tarn_tracker_options){.struct_size = 1};
    assert_int_equal(tarn_tracker_create(&options, &tracker, NULL), TARN_ERR_INVALID_ARGUMENT);
    tarn_tracker_destroy(NULL);
    assert_int_equal(tarn_host_get_usage().live_count, 0);
}

/* ---- scopes ---- */

struct heard {
    char text[512];
};

static void hear(void *context, const char *module, bool begins, bool backward)
{
    struct heard *heard = context;
    const size_t used = strlen(heard->text);

    (void)snprintf(heard->text + used, sizeof heard->text - used, "%c%s%s[%s] ", begins ? '+' : '-',
                   module, backward ? "'" : "", tarn_get_user_metadata());
}

static void scopes_are_told_and_labelled(void **state)
{
    struct heard heard = {""};
    const struct tarn_tracker_options options = {.struct_size = sizeof options,
                                                 .label_allocations = true,
                                                 .scope = hear,
                                                 .scope_context = &heard};
    struct tarn_tracker *tracker = open_tracker(&options);

    (void)state;
    must_apply(tracker, .kind = TARN_TRACK_ENTER, .id = 1, .name = MODEL);
    must_apply(tracker, .kind = TARN_TRACK_CREATE, .id = 1, .bytes = 5, .name = CPU);
    must_apply(tracker, .kind = TARN_TRACK_ENTER, .id = 2, .name = LAYER);
    must_apply(tracker, .kind = TARN_TRACK_LEAVE, .id = 2);
    must_apply(tracker, .kind = TARN_TRACK_LEAVE, .id = 1);
    must_apply(tracker, .kind = TARN_TRACK_ENTER_BACKWARD, .id = 2);
    must_apply(tracker, .kind = TARN_TRACK_LEAVE_BACKWARD, .id = 2);
    assert_string_equal(heard.text, "+Model[Model] +Model.layer[Model.layer] -Model.layer[Model] "
                                    "-Model[] +Model.layer'[Model.layer] -Model.layer'[] ");
    close_tracker(tracker);
}

/* Each without the other; in recomputation; events that fail. */
static void scopes_or_labels_alone(void **state)
{
    struct heard heard = {""};
    const struct tarn_tracker_options told = {
        .struct_size = sizeof told, .scope = hear, .scope_context = &heard};
    const struct tarn_tracker_options labelled = {.struct_size = sizeof labelled,
                                                  .label_allocations = true};
    const struct tarn_track_event events[] = {
        {.kind = TARN_TRACK_ENTER, .id = 1, .name = MODEL},
        {.kind = TARN_TRACK_ENTER, .id = 1, .name = MODEL, .flags = TARN_TRACK_BACKWARD},
        {.kind = TARN_TRACK_LEAVE, .id = 1, .flags = TARN_TRACK_BACKWARD},
        {.kind = TARN_TRACK_LEAVE, .id = 9},
        {.kind = TARN_TRACK_LEAVE, .id = 1},
    };
    struct tarn_tracker *tracker = open_tracker(&told);
    size_t applied;

    (void)state;
    assert_int_equal(tarn_tracker_apply(tracker, events, 5, &applied, NULL), TARN_ERR_NOT_FOUND);
    assert_int_equal(applied, 3);
    assert_string_equal(heard.text, "+Model[] +Model'[] -Model'[] ");
    close_tracker(tracker);
    tracker = open_tracker(&labelled);
    assert_int_equal(tarn_tracker_apply(tracker, events, 1, NULL, NULL), TARN_OK);
    assert_string_equal(tarn_get_user_metadata(), "Model");
    assert_int_equal(tarn_tracker_apply(tracker, &events[4], 1, NULL, NULL), TARN_OK);
    assert_string_equal(tarn_get_user_metadata(), "");
    close_tracker(tracker);
}

/* Of a long name the end is the label, from a whole character on. */
static void labels_end_as_long_names_do(void **state)
{
    const struct tarn_tracker_options options = {.struct_size = sizeof options,
                                                 .label_allocations = true};

    (void)state;
    for (size_t letters = 0; letters < 4; letters++) { /* before characters of two bytes */
        struct tarn_tracker *tracker = open_tracker(&options);
        char name[400] = "abc";
        uint32_t id;

        for (size_t at = letters; at + 2 < sizeof name; at += 2) {
            memcpy(name + at, "\xc3\xa9", 3);
        }
        assert_int_equal(tarn_tracker_add_name(tracker, TARN_TRACK_MODULE, name, &id, NULL), 0);
        must_apply(tracker, .kind = TARN_TRACK_ENTER, .id = 1, .name = id);
        const char *label = tarn_get_user_metadata();
        const size_t length = strlen(label);

        assert_true(length == TARN_LABEL_MAX - 1 || length == TARN_LABEL_MAX - 2);
        assert_int_equal((unsigned char)label[0], 0xc3);
        assert_string_equal(label, name + strlen(name) - length);
        must_apply(tracker, .kind = TARN_TRACK_LEAVE, .id = 1);
        close_tracker(tracker);
    }
}

/* ---- no host memory ---- */

/* Everything that an event may need memory for. */
static const struct tarn_track_event scenario[] = {
    {.kind = TARN_TRACK_CREATE, .id = 1, .bytes = 600, .name = GPU, .category = TARN_TRACK_AUTO},
    {.kind = TARN_TRACK_CLASSIFY, .id = 2, .bytes = 600, .name = CPU},
    {.kind = TARN_TRACK_START},
    {.kind = TARN_TRACK_ENTER, .id = 1, .name = MODEL},
    {.kind = TARN_TRACK_CLASSIFY, .id = 1},
    {.kind = TARN_TRACK_INPUT, .id = 2},
    {.kind = TARN_TRACK_READY},
    {.kind = TARN_TRACK_ENTER, .id = 2, .name = LAYER},
    {.kind = TARN_TRACK_CREATE, .id = 3, .bytes = 9, .name = CPU, .category = TARN_TRACK_AUTO},
    {.kind = TARN_TRACK_OP_DONE},
    {.kind = TARN_TRACK_ACTIVE, .name = MODEL},
    {.kind = TARN_TRACK_OP_DONE},
    {.kind = TARN_TRACK_LEAVE, .id = 2},
    {.kind = TARN_TRACK_LEAVE, .id = 1},
    {.kind = TARN_TRACK_ENTER_BACKWARD, .id = 2},
    {.kind = TARN_TRACK_OP_DONE, .flags = TARN_TRACK_BACKWARD},
    {.kind = TARN_TRACK_LEAVE_BACKWARD, .id = 2},
    {.kind = TARN_TRACK_END_BACKWARD},
    {.kind = TARN_TRACK_ENTER, .id = 1, .name = MODEL},
    {.kind = TARN_TRACK_OP_DONE},
    {.kind = TARN_TRACK_BEGIN_ITERATION},
    {.kind = TARN_TRACK_OP_DONE},
    {.kind = TARN_TRACK_RESET_MODULES},
    {.kind = TARN_TRACK_ENTER, .id = 3, .name = MODEL},
    {.kind = TARN_TRACK_ENTER, .id = 4, .name = LAYER}, /* and the one before is ready */
    {.kind = TARN_TRACK_LEAVE, .id = 4},
    {.kind = TARN_TRACK_ENTER, .id = 5, .name = LAYER},
    {.kind = TARN_TRACK_ENTER_BACKWARD, .id = 4},
    {.kind = TARN_TRACK_LEAVE_BACKWARD, .id = 4},
    {.kind = TARN_TRACK_LEAVE, .id = 5},
    {.kind = TARN_TRACK_LEAVE, .id = 3},
};

static void check_consistent(struct tarn_tracker *tracker)
{
    struct tarn_findings findings = TARN_FINDINGS_INIT;

    if (tarn_tracker_check(tracker, &findings)) {
        fail_msg("%s", findings.text[0]);
    }
}

/* Runs it with the n-th allocation failing; what failed is tried again. Returns whether one did. */
static bool run_failing(struct tarn_tracker *tracker, uint64_t n)
{
    const size_t count = sizeof scenario / sizeof scenario[0];
    bool failed = false;
    size_t at = 0;

    tarn_host_fail_nth(n);
    while (at < count) {
        size_t applied = 0;
        const enum tarn_status status =
            tarn_tracker_apply(tracker, scenario + at, count - at, &applied, NULL);

        at += applied;
        check_consistent(tracker);
        if (status) {
            assert_int_equal(status, TARN_ERR_HOST_MEMORY);
            assert_false(failed);
            failed = true;
        }
    }
    tarn_host_fail_nth(0);
    return failed;
}

static void every_allocation_may_fail(void **state)
{
    bool failed = true;

    (void)state;
    for (uint64_t n = 1; failed; n++) {
        struct tarn_tracker *tracker = open_tracker(NULL);

        failed = run_failing(tracker, n);
        assert_int_equal(row_of(tracker, TARN_TRACK_PEAKS, GPU).total, 1024);
        assert_int_equal(row_of(tracker, TARN_TRACK_PEAKS, CPU).total, 609);
        assert_int_equal(tarn_tracker_count_iterations(tracker), 3);
        close_tracker(tracker);
        assert_true(n < 1000);
    }
}

/* Iterations that begin because the root is entered again. */
static void a_new_iteration_may_fail(void **state)
{
    bool failed = false;

    (void)state;
    struct tarn_tracker *tracker = open_tracker(NULL);

    for (uint64_t i = 0; i < 100; i++) {
        const struct tarn_track_event enter = {.kind = TARN_TRACK_ENTER, .id = 1, .name = MODEL};

        tarn_host_fail_nth(i > 0);
        const enum tarn_status st = apply(tracker, enter, NULL);

        tarn_host_fail_nth(0);
        check_consistent(tracker);
        if (st) {
            assert_int_equal(st, TARN_ERR_HOST_MEMORY);
            failed = true;
            must_apply(tracker, .kind = TARN_TRACK_ENTER, .id = 1, .name = MODEL);
        }
        must_apply(tracker, .kind = TARN_TRACK_CREATE, .id = 1, .bytes = i + 1, .name = CPU);
        must_apply(tracker, .kind = TARN_TRACK_OP_DONE);
        must_apply(tracker, .kind = TARN_TRACK_LEAVE, .id = 1);
    }
    assert_true(failed);
    assert_int_equal(tarn_tracker_count_iterations(tracker), 100);
    close_tracker(tracker);
}

static void making_one_may_fail(void **state)
{
    enum tarn_status status = TARN_ERR_HOST_MEMORY;

    (void)state;
    for (uint64_t n = 1; status; n++) {
        struct tarn_tracker *tracker = NULL;

        tarn_host_fail_nth(n);
        status = tarn_tracker_create(NULL, &tracker, NULL);
        tarn_host_fail_nth(0);
        if (status) {
            assert_int_equal(status, TARN_ERR_HOST_MEMORY);
            assert_int_equal(tarn_host_get_usage().live_count, 0);
        }
        tarn_tracker_destroy(tracker);
    }
}

/* A new device needs room in every newest call; a name that failed may be added again. */
static void adding_a_device_may_fail(void **state)
{
    enum tarn_status status = TARN_ERR_HOST_MEMORY;

    (void)state;
    for (uint64_t n = 1; status; n++) {
        struct tarn_tracker *tracker = open_tracker(NULL);
        uint32_t id = 99;

        must_apply(tracker, .kind = TARN_TRACK_ENTER, .id = 1, .name = MODEL);
        must_apply(tracker, .kind = TARN_TRACK_READY);
        tarn_host_fail_nth(n);
        status = tarn_tracker_add_name(tracker, TARN_TRACK_DEVICE, "xpu:0", &id, NULL);
        tarn_host_fail_nth(0);
        check_consistent(tracker);
        if (status) {
            assert_int_equal(status, TARN_ERR_HOST_MEMORY);
            assert_int_equal(tarn_tracker_add_name(tracker, TARN_TRACK_DEVICE, "xpu:0", &id, NULL),
                             TARN_OK);
        }
        assert_int_equal(id, 2);
        must_apply(tracker, .kind = TARN_TRACK_CREATE, .id = 1, .bytes = 3, .name = id);
        must_apply(tracker, .kind = TARN_TRACK_OP_DONE);
        close_tracker(tracker);
    }
}

/* ---- threads ---- */

enum {
    THREADS = 4,
    ROUNDS = 3000
};

struct worker {
    struct tarn_tracker *tracker;
    uint64_t first_id;
};

static void *work(void *argument)
{
    const struct worker *worker = argument;

    for (uint64_t i = 0; i < ROUNDS; i++) {
        const uint64_t id = worker->first_id + i % 16;
        const struct tarn_track_event events[] = {
            {.kind = TARN_TRACK_CREATE, .id = id, .bytes = 100, .name = CPU},
            {.kind = TARN_TRACK_OP_DONE},
            {.kind = TARN_TRACK_DELETE, .id = id},
        };

        if (tarn_tracker_apply(worker->tracker, events, 3, NULL, NULL)) {
            return argument;
        }
        (void)row_of(worker->tracker, TARN_TRACK_NOW, CPU);
    }
    return NULL;
}

static void threads_may_share_one(void **state)
{
    struct tarn_tracker *tracker = open_tracker(NULL);
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    void *result;

    (void)state;
    for (size_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){tracker, i * 1000};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_null(result);
    }
    assert_int_equal(row_of(tracker, TARN_TRACK_NOW, CPU).total, -1);
    assert_true(row_of(tracker, TARN_TRACK_PEAKS, CPU).total >= 100);
    close_tracker(tracker);
}

/* ---- queries ---- */

/* What is not there is not found, and no index is followed beyond the end. */
static void queries_end_where_the_tracker_does(void **state)
{
    struct tarn_tracker *tracker = open_tracker(NULL);
    struct tarn_track_module module = {.struct_size = sizeof module};
    struct tarn_track_iteration iteration = {.struct_size = sizeof iteration};
    struct tarn_track_row row;
    size_t count = 7;
    uint32_t number = 7;

    (void)state;
    assert_int_equal(tarn_tracker_count_modules(tracker), 0);
    assert_int_equal(tarn_tracker_get_module(tracker, 0, &module), TARN_ERR_NOT_FOUND);
    assert_int_equal(tarn_tracker_get_state(tracker, 0, 0, &number, &count), TARN_ERR_NOT_FOUND);
    must_apply(tracker, .kind = TARN_TRACK_ENTER, .id = 1, .name = MODEL);
    must_apply(tracker, .kind = TARN_TRACK_READY);
    must_apply(tracker, .kind = TARN_TRACK_CREATE, .id = 1, .bytes = 512, .name = GPU);
    must_apply(tracker, .kind = TARN_TRACK_OP_DONE);
    must_apply(tracker, .kind = TARN_TRACK_LEAVE, .id = 1);
    assert_int_equal(tarn_tracker_count_modules(tracker), 1);
    assert_int_equal(tarn_tracker_get_module(tracker, 0, &module), TARN_OK);
    assert_int_equal(module.name, MODEL);
    assert_int_equal(tarn_tracker_get_module(tracker, 1, &module), TARN_ERR_NOT_FOUND);
    module.struct_size--;
    assert_int_equal(tarn_tracker_get_module(tracker, 0, &module), TARN_ERR_INVALID_ARGUMENT);
    assert_true(module.state_count > 0);
    assert_int_equal(tarn_tracker_get_state(tracker, 0, 0, &number, &count), TARN_OK);
    assert_true(count > 0);
    assert_int_equal(tarn_tracker_get_call(tracker, 0, 0, count, &row, 1, &count),
                     TARN_ERR_NOT_FOUND);
    assert_int_equal(tarn_tracker_get_call(tracker, 0, 0, 0, &row, 1, &count), TARN_OK);
    assert_int_equal(count, 1);
    assert_int_equal(row.device, GPU);
    assert_int_equal(tarn_tracker_get_call(tracker, 0, 0, 0, NULL, 0, &count), TARN_OK);
    assert_int_equal(count, 1);
    assert_int_equal(tarn_tracker_get_call(tracker, 1, 0, 0, &row, 1, &count), TARN_ERR_NOT_FOUND);
    assert_int_equal(tarn_tracker_get_state(tracker, 0, module.state_count, &number, &count),
                     TARN_ERR_NOT_FOUND);
    assert_int_equal(tarn_tracker_get_state(tracker, 1, 0, &number, &count), TARN_ERR_NOT_FOUND);
    assert_int_equal(tarn_tracker_count_iterations(tracker), 1);
    assert_int_equal(tarn_tracker_get_iteration(tracker, 0, &iteration), TARN_OK);
    assert_int_equal(iteration.peak_bytes, 512);
    assert_int_equal(tarn_tracker_get_iteration(tracker, 1, &iteration), TARN_ERR_NOT_FOUND);
    iteration.struct_size++;
    assert_int_equal(tarn_tracker_get_iteration(tracker, 0, &iteration), TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_tracker_get_owned(tracker, TARN_TRACK_NOW, MODEL, GPU, &row), TARN_OK);
    assert_int_equal(row.total, 512);
    assert_int_equal(tarn_tracker_get_owned(tracker, TARN_TRACK_NOW, LAYER, GPU, &row), TARN_OK);
    assert_int_equal(row.total, 0);
    for (int point = TARN_TRACK_AT_END; point <= TARN_TRACK_POINT_COUNT; point++) { /* are now */
        assert_int_equal(
            tarn_tracker_get_owned(tracker, (enum tarn_track_point)point, MODEL, GPU, &row),
            TARN_OK);
        assert_int_equal(row.total, 512);
        assert_int_equal(row_of(tracker, (enum tarn_track_point)point, GPU).total, 512);
    }
    assert_int_equal(tarn_tracker_get_owned(tracker, TARN_TRACK_NOW, 99, GPU, &row),
                     TARN_ERR_NOT_FOUND);
    assert_int_equal(tarn_tracker_get_owned(tracker, TARN_TRACK_NOW, MODEL, 63, &row),
                     TARN_ERR_NOT_FOUND);
    assert_string_equal(tarn_tracker_get_name(tracker, TARN_TRACK_MODULE, MODEL), "Model");
    assert_null(tarn_tracker_get_name(tracker, TARN_TRACK_MODULE, 99));
    assert_null(tarn_tracker_get_name(tracker, TARN_TRACK_NAMES_COUNT, 0));
    assert_int_equal(tarn_tracker_count_names(tracker, TARN_TRACK_DEVICE), 2);
    assert_int_equal(tarn_tracker_count_names(tracker, TARN_TRACK_NAMES_COUNT), 0);
    close_tracker(tracker);
}

/* ---- a forked child ---- */

/* A tracker is its parent's: a lock may have been held when the child was made. */
static void child_asks(void *context)
{
    struct tarn_tracker *tracker = context;
    const struct tarn_track_event event = {.kind = TARN_TRACK_OP_DONE};
    struct tarn_track_module module = {.struct_size = sizeof module};
    struct tarn_track_iteration iteration = {.struct_size = sizeof iteration};
    struct tarn_track_row row;
    struct tarn_error error = {.text = ""};
    size_t count = 7;
    uint32_t number;

    CHILD_REQUIRE(tarn_tracker_apply(tracker, &event, 1, &count, &error) == TARN_ERR_STATE);
    CHILD_REQUIRE(count == 0 && strstr(error.text, "the tracker") != NULL);
    CHILD_REQUIRE(tarn_tracker_add_name(tracker, TARN_TRACK_MODULE, "x", &number, &error) ==
                  TARN_ERR_STATE);
    CHILD_REQUIRE(tarn_tracker_get_name(tracker, TARN_TRACK_MODULE, MODEL) == NULL);
    CHILD_REQUIRE(tarn_tracker_count_names(tracker, TARN_TRACK_MODULE) == 0);
    count = 7;
    tarn_tracker_get_rows(tracker, TARN_TRACK_NOW, &row, 1, &count);
    CHILD_REQUIRE(count == 0);
    CHILD_REQUIRE(tarn_tracker_count_modules(tracker) == 0);
    CHILD_REQUIRE(tarn_tracker_get_module(tracker, 0, &module) == TARN_ERR_STATE);
    CHILD_REQUIRE(tarn_tracker_get_state(tracker, 0, 0, &number, &count) == TARN_ERR_STATE);
    CHILD_REQUIRE(tarn_tracker_get_call(tracker, 0, 0, 0, &row, 1, &count) == TARN_ERR_STATE);
    CHILD_REQUIRE(tarn_tracker_count_iterations(tracker) == 0);
    CHILD_REQUIRE(tarn_tracker_get_iteration(tracker, 0, &iteration) == TARN_ERR_STATE);
    CHILD_REQUIRE(tarn_tracker_get_owned(tracker, TARN_TRACK_NOW, MODEL, GPU, &row) ==
                  TARN_ERR_STATE);
    tarn_tracker_destroy(tracker); /* leaves it alone */
}

static void a_forked_child_is_refused(void **state)
{
    struct tarn_tracker *tracker = open_tracker(NULL);

    (void)state;
    must_apply(tracker, .kind = TARN_TRACK_CREATE, .id = 1, .bytes = 512, .name = GPU);
    child_run(child_asks, tracker);
    assert_int_equal(row_of(tracker, TARN_TRACK_NOW, GPU).total, 512);
    close_tracker(tracker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_round_up_on_cuda_only),
        cmocka_unit_test(results_are_what_the_phase_says),
        cmocka_unit_test(known_tensors_hide_what_follows_unless_told),
        cmocka_unit_test(a_device_goes_with_its_last_byte),
        cmocka_unit_test(one_moment_and_each_devices_own),
        cmocka_unit_test(iterations_need_no_reset),
        cmocka_unit_test(only_one_iteration_where_asked_for),
        cmocka_unit_test(a_steady_run_needs_no_memory),
        cmocka_unit_test(an_operator_ends_the_entering),
        cmocka_unit_test(who_had_what_at_the_peak),
        cmocka_unit_test(wrong_events_are_refused),
        cmocka_unit_test(what_is_refused_changes_nothing),
        cmocka_unit_test(a_batch_stops_at_its_first_error),
        cmocka_unit_test(sums_have_a_limit),
        cmocka_unit_test(names_have_limits),
        cmocka_unit_test(wrong_options_are_refused),
        cmocka_unit_test(scopes_are_told_and_labelled),
        cmocka_unit_test(scopes_or_labels_alone),
        cmocka_unit_test(labels_end_as_long_names_do),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(a_new_iteration_may_fail),
        cmocka_unit_test(making_one_may_fail),
        cmocka_unit_test(adding_a_device_may_fail),
        cmocka_unit_test(queries_end_where_the_tracker_does),
        cmocka_unit_test(a_forked_child_is_refused),
        cmocka_unit_test(threads_may_share_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
