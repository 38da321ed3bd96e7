/* SPDX-License-Identifier: MIT */
/* The table of a process's allocators, on simulated devices. */
#include "support/test.h"

#include "support/child.h"
#include "support/cuda.h"

#include "devices/devices.h"
#include "tarn/host.h"
#include "tarn/pressure.h"
#include "tarn/sim.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    COUNT = 3
};

struct rig {
    struct tarn_devices *devices;
    struct tarn_device *sims[COUNT];
    struct tarn_error error;
};

static struct tarn_device *sim_of(int number, uint64_t capacity)
{
    const struct tarn_sim_options options = {
        .struct_size = sizeof options,
        .ordinal = number,
        .capacity = capacity,
        .base_address = 0x700000000000 + ((uint64_t)number << 40),
    };
    struct tarn_device *device = NULL;

    assert_int_equal(tarn_sim_open(&options, &device, NULL), TARN_OK);
    return device;
}

static void rig_init(struct rig *rig)
{
    assert_int_equal(tarn_devices_create(&rig->devices, &rig->error), TARN_OK);
    for (int i = 0; i < COUNT; i++) {
        rig->sims[i] = sim_of(i, GIB);
        assert_int_equal(tarn_devices_use(rig->devices, i, rig->sims[i], &rig->error), TARN_OK);
    }
}

static void rig_fini(struct rig *rig)
{
    tarn_devices_destroy(rig->devices);
    for (int i = 0; i < COUNT; i++) {
        tarn_device_close(rig->sims[i]);
    }
}

static tarn_ptr alloc(struct rig *rig, int number, uint64_t size, tarn_stream stream)
{
    tarn_ptr ptr = 0;

    assert_int_equal(tarn_devices_alloc(rig->devices, number, size, stream, &ptr, &rig->error),
                     TARN_OK);
    return ptr;
}

static uint64_t stat_of(struct rig *rig, int number, enum tarn_stat_kind kind)
{
    struct tarn_stats stats = {.struct_size = sizeof stats};

    tarn_allocator_get_stats(tarn_devices_find(rig->devices, number), &stats);
    return (uint64_t)stats.by_pool[kind][TARN_STAT_ALL].current;
}

static void memory_is_found_on_any_device(void **state)
{
    struct rig rig;
    tarn_ptr blocks[COUNT];
    struct tarn_allocator *owner = NULL;

    (void)state;
    rig_init(&rig);
    assert_int_equal(tarn_devices_find_owner(rig.devices, 0x1000, &owner, &rig.error),
                     TARN_ERR_INVALID_POINTER);
    assert_int_equal(tarn_devices_free(rig.devices, 0x1000, &rig.error), TARN_ERR_INVALID_POINTER);
    for (int i = 0; i < COUNT; i++) { /* 1 TiB apart: all have the same hint */
        assert_null(tarn_devices_find(rig.devices, i));
        blocks[i] = alloc(&rig, i, 3 * MIB, 0);
    }
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(tarn_devices_find_owner(rig.devices, blocks[i], &owner, &rig.error),
                         TARN_OK);
        assert_ptr_equal(owner, tarn_devices_find(rig.devices, i));
        assert_int_equal(tarn_devices_free(rig.devices, blocks[i], &rig.error), TARN_OK);
        assert_int_equal(stat_of(&rig, i, TARN_STAT_ALLOCATED_BYTES), 0);
    }
    assert_int_equal(tarn_devices_find_owner(rig.devices, 0x1000, &owner, &rig.error),
                     TARN_OK); /* which then refuses */
    assert_int_equal(tarn_devices_free(rig.devices, 0x1000, &rig.error), TARN_ERR_INVALID_POINTER);
    assert_non_null(strstr(rig.error.text, "0x1000"));
    assert_int_equal(tarn_devices_empty_pool(rig.devices, (struct tarn_pool_id){0, 0}, &rig.error),
                     TARN_OK);
    assert_int_equal(tarn_devices_empty_pool(rig.devices, (struct tarn_pool_id){0, 9}, &rig.error),
                     TARN_OK);
    assert_int_equal(stat_of(&rig, 2, TARN_STAT_RESERVED_BYTES), 0);
    rig_fini(&rig);
}

/* What was allocated while one device was open, whichever, is looked for there first when there
 * are others: no other is asked. */
static void memory_of_the_only_device_is_found_at_once(void **state)
{
    enum {
        MANY = 40
    };
    struct rig rig;
    tarn_ptr ptrs[MANY];
    tarn_ptr other = 0;

    (void)state;
    rig_init(&rig);
    for (int i = 0; i < MANY; i++) { /* over several units of the table */
        assert_int_equal(tarn_devices_alloc(rig.devices, 2, 3 * MIB, 0, &ptrs[i], NULL), TARN_OK);
    }
    struct tarn_allocator *first = tarn_devices_find(rig.devices, 2);

    assert_ptr_equal(atomic_load(&rig.devices->only), first);
    assert_int_equal(tarn_devices_free(rig.devices, 0x1234, &rig.error), TARN_ERR_INVALID_POINTER);
    assert_int_equal(tarn_devices_free(rig.devices, ptrs[0], &rig.error), TARN_OK);
    assert_int_equal(tarn_devices_alloc(rig.devices, 1, MIB, 0, &other, NULL), TARN_OK);
    assert_null(atomic_load(&rig.devices->only));
    for (int i = 0; i < TN_HINTS; i++) {
        const int expected = i == (int)((other >> 21) % TN_HINTS) ? 1 : 2;

        assert_int_equal(atomic_load(&rig.devices->hints[i]), expected);
    }
    for (int i = 1; i < MANY; i++) {
        assert_int_equal(tarn_devices_free(rig.devices, ptrs[i], &rig.error), TARN_OK);
    }
    assert_int_equal(tarn_devices_alloc(rig.devices, 0, MIB, 0, &ptrs[0], NULL), TARN_OK);
    assert_null(atomic_load(&rig.devices->only)); /* and stays so */
    assert_int_equal(atomic_load(&rig.devices->hints[0x123]), 2);
    assert_int_equal(tarn_devices_free(rig.devices, other, &rig.error), TARN_OK);
    assert_int_equal(tarn_devices_free(rig.devices, ptrs[0], &rig.error), TARN_OK);
    rig_fini(&rig);
}

static void a_number_is_used_once(void **state)
{
    struct rig rig;
    struct tarn_allocator *allocator = NULL;

    (void)state;
    rig_init(&rig);
    assert_int_equal(tarn_devices_use(rig.devices, 0, rig.sims[1], &rig.error), TARN_ERR_STATE);
    assert_int_equal(tarn_devices_use(rig.devices, TARN_DEVICES_MAX, rig.sims[1], &rig.error),
                     TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_devices_open(rig.devices, -1, &allocator, &rig.error),
                     TARN_ERR_INVALID_ARGUMENT);
    assert_string_equal(rig.error.text, "invalid device -1: device numbers are 0 to 63");
    assert_int_equal(tarn_devices_open(rig.devices, 63, &allocator, &rig.error),
                     TARN_ERR_NOT_FOUND); /* no such GPU here */
    assert_null(allocator);
    assert_null(tarn_devices_find(rig.devices, TARN_DEVICES_MAX));
    assert_null(tarn_devices_find_history(rig.devices, -1));
    assert_ptr_equal(tarn_devices_shared(), tarn_devices_shared());
    tarn_devices_destroy(tarn_devices_shared()); /* stays */
    rig_fini(&rig);
}

static uint64_t split_size(struct rig *rig, int number)
{
    struct tarn_config config;
    struct tarn_allocator *allocator = NULL;

    assert_int_equal(tarn_devices_open(rig->devices, number, &allocator, &rig->error), TARN_OK);
    tarn_allocator_get_config(allocator, &config);
    return config.max_split_size;
}

static void settings_are_those_of_all(void **state)
{
    struct rig rig;
    struct tarn_config config;

    (void)state;
    rig_init(&rig);
    (void)alloc(&rig, 0, MIB, 0);
    assert_int_equal(tarn_devices_configure(rig.devices, "max_split_size_mb:30", &rig.error),
                     TARN_OK);
    assert_int_equal(tarn_devices_configure(rig.devices, "max_split_size_mb:x", &rig.error),
                     TARN_ERR_CONFIG);
    assert_int_equal(tarn_devices_configure(rig.devices, "backend:cudaMallocAsync", &rig.error),
                     TARN_ERR_CONFIG);
    assert_int_equal(tarn_devices_get_config(rig.devices, &config, &rig.error), TARN_OK);
    assert_int_equal(config.max_split_size, 30 * MIB);
    assert_int_equal(config.backend, TARN_BACKEND_NATIVE);
    assert_int_equal(split_size(&rig, 0), 30 * MIB);
    assert_int_equal(split_size(&rig, 1), 30 * MIB); /* opened later */
    assert_int_equal(tarn_devices_set_enabled(rig.devices, false, &rig.error), TARN_OK);
    (void)alloc(&rig, 2, MIB, 0);
    assert_int_equal(stat_of(&rig, 2, TARN_STAT_ALLOCATED_BYTES), 0);
    assert_false(tarn_devices_is_enabled(rig.devices));
    assert_int_equal(tarn_devices_set_enabled(rig.devices, true, &rig.error), TARN_OK);
    (void)alloc(&rig, 2, MIB, 0);
    assert_int_equal(stat_of(&rig, 2, TARN_STAT_ALLOCATED_BYTES), MIB);
    rig_fini(&rig);
}

/* Settings that were changed for one allocator alone may not go with what all are to get. */
static void an_allocator_of_its_own_settings_may_refuse(void **state)
{
    struct rig rig;
    struct tarn_config config;

    (void)state;
    rig_init(&rig);
    (void)alloc(&rig, 0, MIB, 0);
    (void)alloc(&rig, 1, MIB, 0);
    struct tarn_allocator *allocator = tarn_devices_find(rig.devices, 1);

    tarn_allocator_get_config(allocator, &config);
    config.large_segment_size = 64 * MIB;
    assert_int_equal(tarn_allocator_set_config(allocator, &config, &rig.error), TARN_OK);
    assert_int_equal(tarn_devices_configure(rig.devices, "max_split_size_mb:30", &rig.error),
                     TARN_ERR_CONFIG);
    assert_int_equal(tarn_devices_get_config(rig.devices, &config, &rig.error), TARN_OK);
    assert_int_equal(config.max_split_size, TARN_SIZE_UNLIMITED); /* those of the next device */
    rig_fini(&rig);
}

static void *open_aside(void *context)
{
    struct rig *rig = context;
    struct tarn_allocator *opened = NULL;
    struct tarn_error error;

    return tarn_devices_open(rig->devices, 0, &opened, &error) == TARN_OK ? opened : NULL;
}

/* Another thread opened it while this one waited. */
static void a_device_is_opened_once(void **state)
{
    struct rig rig;
    struct tarn_config config;
    struct tarn_allocator *allocator = NULL;
    void *found = NULL;
    pthread_t thread;

    (void)state;
    rig_init(&rig);
    assert_int_equal(tarn_config_parse("", &config, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_create(rig.sims[0], &config, &allocator, &rig.error), TARN_OK);
    struct tn_lock *lock = &rig.devices->lock;

    tn_lock_acquire(lock);
    const uint32_t taken = atomic_load(&lock->state);

    assert_int_equal(pthread_create(&thread, NULL, open_aside, &rig), 0);
    while (atomic_load(&lock->state) == taken) { /* until it waits */
        (void)sched_yield();
    }
    atomic_store(&rig.devices->entries[0].allocator, allocator);
    tn_lock_release(lock);
    assert_int_equal(pthread_join(thread, &found), 0);
    assert_ptr_equal(found, allocator);
    rig_fini(&rig);
}

struct seen {
    int events;
    int misses;
    int failures;
};

static void see_event(void *context, const struct tarn_trace_event *event)
{
    (void)event;
    ((struct seen *)context)->events++;
}

static bool see_miss(void *context, struct tarn_allocator *allocator, uint64_t size,
                     tarn_stream stream)
{
    (void)allocator;
    (void)size;
    (void)stream;
    ((struct seen *)context)->misses++;
    return false;
}

static void see_failure(void *context, const struct tarn_oom *oom)
{
    (void)oom;
    ((struct seen *)context)->failures++;
}

static void attach(struct rig *rig, struct seen *seen)
{
    const struct tarn_sink sink = {.context = seen, .receive = see_event};

    assert_int_equal(tarn_devices_add_sink(rig->devices, &sink, &rig->error), TARN_OK);
    assert_int_equal(tarn_devices_add_memory_callback(rig->devices, see_miss, seen, &rig->error),
                     TARN_OK);
    assert_int_equal(tarn_devices_add_oom_observer(rig->devices, see_failure, seen, &rig->error),
                     TARN_OK);
}

static void all_devices_are_observed(void **state)
{
    struct rig rig;
    struct seen seen = {0};
    tarn_ptr ptr = 0;

    (void)state;
    rig_init(&rig);
    (void)alloc(&rig, 0, MIB, 0);
    attach(&rig, &seen);
    attach(&rig, &seen); /* nothing twice */
    for (int i = 0; i < 2; i++) {
        const struct seen before = seen;

        (void)alloc(&rig, i, 30 * MIB, 0);
        assert_int_equal(seen.events, before.events + 2);
        assert_int_equal(seen.misses, before.misses + 1);
        assert_int_equal(tarn_devices_alloc(rig.devices, i, 2 * GIB, 0, &ptr, &rig.error),
                         TARN_ERR_OUT_OF_MEMORY);
        assert_int_equal(seen.failures, before.failures + 1);
    }
    rig_fini(&rig);
}

static void observers_fit_or_none_has_one(void **state)
{
    struct rig rig;
    struct seen seen[TARN_DEVICES_ATTACHMENTS_MAX] = {0};
    struct tarn_allocator *second = NULL;
    struct tarn_sink sink = {.receive = see_event};

    (void)state;
    rig_init(&rig);
    (void)alloc(&rig, 0, MIB, 0);
    assert_int_equal(tarn_devices_open(rig.devices, 1, &second, &rig.error), TARN_OK);
    for (int i = 0; i < TARN_SINKS_MAX; i++) { /* the second device is full */
        sink.context = &seen[i];
        assert_int_equal(tarn_allocator_add_sink(second, &sink, &rig.error), TARN_OK);
    }
    sink.context = &rig;
    assert_int_equal(tarn_devices_add_sink(rig.devices, &sink, &rig.error), TARN_ERR_LIMIT);
    assert_int_equal(tarn_allocator_switch_sink(tarn_devices_find(rig.devices, 0), &rig, true,
                                                TARN_CONTEXT_NEVER, NULL),
                     TARN_ERR_NOT_FOUND);
    for (int i = 0; i < TARN_DEVICES_ATTACHMENTS_MAX; i++) {
        assert_int_equal(
            tarn_devices_add_oom_observer(rig.devices, see_failure, &seen[i], &rig.error), TARN_OK);
    }
    assert_int_equal(tarn_devices_add_memory_callback(rig.devices, see_miss, &rig, &rig.error),
                     TARN_ERR_LIMIT);
    sink.receive = NULL;
    assert_int_equal(tarn_devices_add_sink(rig.devices, &sink, &rig.error),
                     TARN_ERR_INVALID_ARGUMENT);
    rig_fini(&rig);
}

static uint64_t entries_of(struct rig *rig, int number)
{
    struct tarn_history_usage usage = {.struct_size = sizeof usage};

    tarn_history_get_usage(tarn_devices_find_history(rig->devices, number), &usage);
    return usage.entries;
}

static void all_devices_are_recorded(void **state)
{
    const struct tarn_annotation_field fields[] = {
        {"name", "step"}, {"stage", "END"}, {"a", "1"}, {"b", "2"},
        {"c", "3"},       {"d", "4"},       {"e", "5"},
    };
    struct tarn_recording recording = {.struct_size = sizeof recording,
                                       .stack_source = TARN_STACK_NONE,
                                       .max_entries = UINT64_MAX};
    struct tarn_history_usage usage = {.struct_size = sizeof usage};
    struct rig rig;

    (void)state;
    rig_init(&rig);
    (void)alloc(&rig, 0, MIB, 0);
    tarn_devices_annotate(rig.devices, 0, fields, 7); /* no recording */
    assert_int_equal(tarn_devices_record(rig.devices, &recording, &rig.error), TARN_OK);
    assert_true(tarn_devices_is_recording(rig.devices));
    tarn_devices_annotate(rig.devices, 1, fields, 7);  /* before its first memory */
    tarn_devices_annotate(rig.devices, -1, fields, 7); /* no device has that number */
    for (int i = 0; i < 2; i++) {
        (void)alloc(&rig, i, 30 * MIB, 0);
        assert_int_equal(entries_of(&rig, i), 2);
    }
    tarn_devices_annotate(rig.devices, 1, fields + 1, 6); /* without a name: none */
    tarn_history_get_usage(tarn_devices_find_history(rig.devices, 1), &usage);
    assert_int_equal(usage.annotations, 1);
    assert_int_equal(usage.max_entries, TARN_RECORDING_ENTRIES);
    recording.max_entries = 0;
    recording.clear = true;
    recording.skip_actions = UINT64_C(1) << TARN_ACTION_ALLOC;
    assert_int_equal(tarn_devices_record(rig.devices, &recording, &rig.error), TARN_OK);
    (void)alloc(&rig, 0, MIB, 0);
    assert_int_equal(entries_of(&rig, 0), 0);
    assert_int_equal(tarn_devices_record(rig.devices, NULL, &rig.error), TARN_OK);
    assert_false(tarn_devices_is_recording(rig.devices));
    (void)alloc(&rig, 2, MIB, 0);
    assert_null(tarn_devices_find_history(rig.devices, 2));
    recording.struct_size = 0;
    assert_int_equal(tarn_devices_record(rig.devices, &recording, &rig.error),
                     TARN_ERR_INVALID_ARGUMENT);
    rig_fini(&rig);
}

static bool is_seven(void *context, tarn_stream stream)
{
    (void)context;
    return stream == 7;
}

static void see_gone(void *context)
{
    ((struct seen *)context)->events++;
}

static void a_filter_is_kept_until_its_routing_ends(void **state)
{
    const struct tarn_pool_id id = {0, 1};
    struct seen seen = {0};
    struct tarn_pool_route route = {.struct_size = sizeof route,
                                    .is_capture = true,
                                    .context = &seen,
                                    .accepts = is_seven,
                                    .gone = see_gone};
    struct rig rig;

    (void)state;
    rig_init(&rig);
    assert_int_equal(tarn_devices_begin_pool(rig.devices, 0, id, &route, &rig.error), TARN_OK);
    assert_int_equal(tarn_devices_begin_pool(rig.devices, 0, id, &route, &rig.error),
                     TARN_ERR_STATE);
    assert_int_equal(tarn_devices_begin_pool(rig.devices, 1, id, &route, &rig.error), TARN_OK);
    (void)alloc(&rig, 0, MIB, 7);
    assert_int_equal(tarn_devices_end_pool(rig.devices, 0, id, &rig.error), TARN_OK);
    assert_int_equal(seen.events, 1);
    assert_int_equal(tarn_devices_end_pool(rig.devices, 0, id, &rig.error), TARN_ERR_STATE);
    assert_int_equal(tarn_allocator_end_capture(tarn_devices_find(rig.devices, 0), NULL),
                     TARN_ERR_STATE); /* it has ended */
    assert_int_equal(tarn_allocator_end_capture(tarn_devices_find(rig.devices, 1), NULL), TARN_OK);
    route.struct_size = 0;
    assert_int_equal(tarn_devices_begin_pool(rig.devices, 0, id, &route, &rig.error),
                     TARN_ERR_INVALID_ARGUMENT);
    rig_fini(&rig);
    assert_int_equal(seen.events, 2); /* the other one's */
}

/* Each host allocation fails once; then it works, and nothing has leaked. */
static void failures_leave_nothing(void **state)
{
    const struct tarn_pool_id id = {0, 1};
    struct seen seen = {0};
    const struct tarn_pool_route route = {
        .struct_size = sizeof route, .context = &seen, .accepts = is_seven, .gone = see_gone};
    const struct tarn_recording recording = {
        .struct_size = sizeof recording, .stack_source = TARN_STACK_NONE, .max_entries = 5};
    struct rig rig;
    struct tarn_allocator *allocator = NULL;
    enum tarn_status st = TARN_ERR_HOST_MEMORY;

    (void)state;
    rig_init(&rig);
    assert_int_equal(tarn_devices_record(rig.devices, &recording, &rig.error), TARN_OK);
    attach(&rig, &seen);
    for (uint64_t n = 1; st != TARN_OK; n++) {
        tarn_host_fail_nth(n);
        st = tarn_devices_open(rig.devices, 0, &allocator, &rig.error);
        assert_true(st == TARN_OK || st == TARN_ERR_HOST_MEMORY);
        assert_true((st == TARN_OK) == (allocator != NULL));
        assert_true((st == TARN_OK) == (tarn_devices_find_history(rig.devices, 0) != NULL));
    }
    st = TARN_ERR_HOST_MEMORY;
    for (uint64_t n = 1; st != TARN_OK; n++) {
        tarn_host_fail_nth(n);
        st = tarn_devices_begin_pool(rig.devices, 0, id, &route, &rig.error);
        assert_true(st == TARN_OK || st == TARN_ERR_HOST_MEMORY);
        assert_int_equal(seen.events, 0);
    }
    assert_int_equal(tarn_devices_record(rig.devices, NULL, &rig.error), TARN_OK);
    (void)!tarn_devices_open(rig.devices, 1, &allocator, &rig.error);
    tarn_host_fail_nth(1);
    assert_int_equal(tarn_devices_record(rig.devices, &recording, &rig.error),
                     TARN_ERR_HOST_MEMORY);
    assert_false(tarn_devices_is_recording(rig.devices));
    tarn_host_fail_nth(0);
    rig_fini(&rig);
}

/* The second device is full: the first one loses again what it was given. */
static void full_devices_are_not_observed(void **state)
{
    struct rig rig;
    char places[TARN_OBSERVERS_MAX];
    struct tarn_allocator *first = NULL;
    struct tarn_allocator *second = NULL;

    (void)state;
    rig_init(&rig);
    assert_int_equal(tarn_devices_open(rig.devices, 0, &first, &rig.error), TARN_OK);
    assert_int_equal(tarn_devices_open(rig.devices, 2, &second, &rig.error), TARN_OK);
    for (int i = 0; i < TARN_OBSERVERS_MAX; i++) {
        assert_int_equal(tarn_allocator_add_oom_observer(second, see_failure, &places[i]), TARN_OK);
        assert_int_equal(tarn_allocator_add_memory_callback(second, see_miss, &places[i]), TARN_OK);
    }
    assert_int_equal(tarn_devices_add_oom_observer(rig.devices, see_failure, &rig, &rig.error),
                     TARN_ERR_LIMIT);
    assert_non_null(strstr(rig.error.text, "cannot be observed"));
    assert_int_equal(tarn_devices_add_memory_callback(rig.devices, see_miss, &rig, &rig.error),
                     TARN_ERR_LIMIT);
    assert_int_equal(tarn_allocator_remove_oom_observer(first, see_failure, &rig),
                     TARN_ERR_NOT_FOUND);
    assert_int_equal(tarn_allocator_remove_memory_callback(first, see_miss, &rig),
                     TARN_ERR_NOT_FOUND);
    rig_fini(&rig);
}

/* More sinks in common than an allocator takes: a device cannot be opened. */
static void a_device_that_cannot_be_observed_stays_closed(void **state)
{
    struct rig rig;
    char places[TARN_SINKS_MAX + 1];
    struct tarn_allocator *allocator = NULL;

    (void)state;
    rig_init(&rig);
    for (int i = 0; i <= TARN_SINKS_MAX; i++) {
        const struct tarn_sink sink = {.context = &places[i], .receive = see_event};

        assert_int_equal(tarn_devices_add_sink(rig.devices, &sink, &rig.error), TARN_OK);
    }
    assert_int_equal(tarn_devices_open(rig.devices, 0, &allocator, &rig.error), TARN_ERR_LIMIT);
    assert_null(allocator);
    assert_null(tarn_devices_find(rig.devices, 0));
    rig_fini(&rig);
}

/* One function with two contexts, and one context with two functions, are different observers. */
static bool see_other_miss(void *context, struct tarn_allocator *allocator, uint64_t size,
                           tarn_stream stream)
{
    return see_miss(context, allocator, size, stream);
}

static void observers_differ_by_function_and_context(void **state)
{
    struct rig rig;
    struct seen seen[2] = {0};

    (void)state;
    rig_init(&rig);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(
            tarn_devices_add_memory_callback(rig.devices, see_miss, &seen[i], &rig.error), TARN_OK);
        assert_int_equal(
            tarn_devices_add_memory_callback(rig.devices, see_other_miss, &seen[i], &rig.error),
            TARN_OK);
    }
    (void)alloc(&rig, 0, MIB, 0);
    assert_int_equal(seen[0].misses, 2);
    assert_int_equal(seen[1].misses, 2);
    rig_fini(&rig);
}

static uint64_t capture_nine(void *context)
{
    ((struct seen *)context)->events++;
    return 9;
}

static void a_full_device_is_not_recorded(void **state)
{
    struct rig rig;
    struct seen seen[TARN_SINKS_MAX] = {0};
    const struct tarn_host_frames host = {.context = &seen[0], .capture = capture_nine};
    struct tarn_recording recording = {.struct_size = sizeof recording,
                                       .level = TARN_CONTEXT_ALL,
                                       .stack_source = TARN_STACK_NONE,
                                       .max_entries = 10,
                                       .host = &host};
    const struct tarn_annotation_field fields[] = {{"name", "step"}, {"stage", "START"}};
    struct tarn_history_usage usage = {.struct_size = sizeof usage};

    (void)state;
    rig_init(&rig);
    assert_int_equal(tarn_devices_find_host_stack(rig.devices, SIM_BASE), 0); /* nothing is open */
    const tarn_ptr early = alloc(&rig, 0, MIB, 0);

    assert_int_equal(tarn_devices_record(rig.devices, &recording, &rig.error), TARN_OK);
    const tarn_ptr ptr = alloc(&rig, 0, MIB, 0);

    assert_true(seen[0].events > 0); /* the host's stacks are asked for */
    assert_int_equal(tarn_devices_find_host_stack(rig.devices, ptr), 9);
    assert_int_equal(tarn_devices_find_host_stack(rig.devices, early), 0);
    assert_int_equal(tarn_devices_find_host_stack(rig.devices, ptr + 1), 0);
    tarn_devices_annotate(rig.devices, 0, fields, 2);
    tarn_history_get_usage(tarn_devices_find_history(rig.devices, 0), &usage);
    assert_int_equal(usage.annotations, 1);
    assert_int_equal(tarn_devices_record(rig.devices, NULL, &rig.error), TARN_OK);
    tarn_devices_annotate(rig.devices, 0, fields, 2); /* nothing is recorded now */
    tarn_history_get_usage(tarn_devices_find_history(rig.devices, 0), &usage);
    assert_int_equal(usage.annotations, 0);
    const tarn_ptr other = alloc(&rig, 1, MIB, 0);

    assert_int_equal(tarn_devices_find_host_stack(rig.devices, other), 0); /* never recorded */
    for (int i = 0; i < TARN_SINKS_MAX; i++) {
        const struct tarn_sink sink = {.context = &seen[i], .receive = see_event};

        assert_int_equal(tarn_allocator_add_sink(tarn_devices_find(rig.devices, 1), &sink, NULL),
                         TARN_OK);
    }
    assert_int_equal(tarn_devices_record(rig.devices, &recording, &rig.error), TARN_ERR_LIMIT);
    assert_false(tarn_devices_is_recording(rig.devices));
    assert_null(tarn_devices_find_history(rig.devices, 1));
    rig_fini(&rig);
}

/* Of several routings the one ends that was asked for; one that began elsewhere is not kept. */
static void routings_are_told_apart(void **state)
{
    const struct tarn_pool_id ids[] = {{0, 1}, {0, 2}, {1, 1}};
    const struct tarn_pool_id elsewhere = {3, 3};
    struct seen seen[3] = {0};
    struct rig rig;

    (void)state;
    rig_init(&rig);
    for (int i = 0; i < 3; i++) {
        struct tarn_pool_route route = {.struct_size = sizeof route,
                                        .context = &seen[i],
                                        .accepts = is_seven,
                                        .gone = i == 1 ? NULL : see_gone};

        assert_int_equal(tarn_devices_begin_pool(rig.devices, 0, ids[i], &route, &rig.error),
                         TARN_OK);
    }
    assert_int_equal(tarn_allocator_begin_pool(tarn_devices_find(rig.devices, 0), elsewhere,
                                               is_seven, NULL, &rig.error),
                     TARN_OK);
    assert_int_equal(tarn_devices_end_pool(rig.devices, 0, elsewhere, &rig.error), TARN_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(tarn_devices_end_pool(rig.devices, 0, ids[i], &rig.error), TARN_OK);
        assert_int_equal(seen[0].events, 1);
        assert_int_equal(seen[1].events, 0);
        assert_int_equal(seen[2].events, i == 2);
    }
    rig_fini(&rig);
}

/* Every call names what is wrong with its device. */
static void other_numbers_are_refused(void **state)
{
    const struct tarn_pool_id id = {0, 1};
    const struct tarn_pool_route route = {.struct_size = sizeof route, .accepts = is_seven};
    struct tarn_allocator *owner = NULL;
    struct rig rig;
    tarn_ptr ptr = 0;

    (void)state;
    rig_init(&rig);
    assert_int_equal(tarn_devices_alloc(rig.devices, TARN_DEVICES_MAX, 1, 0, &ptr, &rig.error),
                     TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_devices_begin_pool(rig.devices, TARN_DEVICES_MAX, id, &route, &rig.error),
                     TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_devices_end_pool(rig.devices, -1, id, &rig.error),
                     TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_devices_use(rig.devices, -1, rig.sims[0], &rig.error),
                     TARN_ERR_INVALID_ARGUMENT);
    ptr = alloc(&rig, 1, MIB, 0);
    assert_int_equal(tarn_devices_find_owner(rig.devices, ptr, &owner, &rig.error), TARN_OK);
    assert_ptr_equal(owner, tarn_devices_find(rig.devices, 1)); /* the only one */
    rig_fini(&rig);
}

/* What one device fails at, none is told of as done. */
static void failures_of_a_device_are_reported(void **state)
{
    struct rig rig;

    (void)state;
    rig_init(&rig);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(tarn_devices_free(rig.devices, alloc(&rig, i, 30 * MIB, 0), &rig.error),
                         TARN_OK);
    }
    tarn_sim_fail_nth(rig.sims[1], TARN_SIM_FREE, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_devices_empty_pool(rig.devices, (struct tarn_pool_id){0, 0}, &rig.error),
                     TARN_ERR_DEVICE);
    assert_int_equal(stat_of(&rig, 0, TARN_STAT_RESERVED_BYTES), 0);
    assert_true(stat_of(&rig, 2, TARN_STAT_RESERVED_BYTES) > 0);
    assert_int_equal(tarn_devices_empty_pool(rig.devices, (struct tarn_pool_id){0, 0}, &rig.error),
                     TARN_OK);
    assert_int_equal(stat_of(&rig, 2, TARN_STAT_RESERVED_BYTES), 0);
    rig_fini(&rig);
}

/* backend:cudaMallocAsync has no observers and no cache to switch off: it does without. */
static void another_backend_does_without(void **state)
{
    struct rig rig;
    struct seen seen = {0};

    (void)state;
    assert_int_equal(setenv("TARN_ALLOC_CONF", "backend:cudaMallocAsync", 1), 0);
    rig_init(&rig);
    (void)alloc(&rig, 0, MIB, 0);
    attach(&rig, &seen);
    (void)alloc(&rig, 1, MIB, 0);
    assert_int_equal(seen.events + seen.misses, 0);
    assert_int_equal(tarn_devices_set_enabled(rig.devices, false, &rig.error),
                     TARN_ERR_NOT_SUPPORTED);
    assert_true(tarn_devices_is_enabled(rig.devices));
    rig_fini(&rig);
    assert_int_equal(unsetenv("TARN_ALLOC_CONF"), 0);
}

static void settings_that_make_no_sense_open_nothing(void **state)
{
    struct rig rig;
    struct tarn_config config;
    struct tarn_allocator *allocator = NULL;

    (void)state;
    assert_int_equal(setenv("TARN_ALLOC_CONF", "nonsense:1", 1), 0);
    rig_init(&rig);
    assert_int_equal(tarn_devices_get_config(rig.devices, &config, &rig.error), TARN_ERR_CONFIG);
    assert_int_equal(tarn_devices_configure(rig.devices, "", &rig.error), TARN_ERR_CONFIG);
    assert_int_equal(tarn_devices_open(rig.devices, 0, &allocator, &rig.error), TARN_ERR_CONFIG);
    assert_non_null(strstr(rig.error.text, "nonsense"));
    assert_int_equal(setenv("TARN_ALLOC_CONF", "max_split_size_mb:40", 1), 0);
    assert_int_equal(split_size(&rig, 0), 40 * MIB); /* it was not kept */
    rig_fini(&rig);
    assert_int_equal(unsetenv("TARN_ALLOC_CONF"), 0);
}

/* A device that the table opens is closed with it. */
static void a_gpu_is_opened_on_demand(void **state)
{
    struct tarn_devices *devices = NULL;
    struct tarn_error error = {.text = ""};
    struct tarn_allocator *allocator = NULL;
    tarn_ptr ptr = 0;

    (void)state;
    tarn_host_fail_nth(1);
    assert_int_equal(tarn_devices_create(&devices, &error), TARN_ERR_HOST_MEMORY);
    assert_null(devices);
    tarn_host_fail_nth(0);
    const struct fake_cuda *fake = fake_open(FAKE_CUDA);

    fake->set_devices(1, GIB);
    assert_int_equal(tarn_devices_create(&devices, &error), TARN_OK);
    const uint64_t live = tarn_host_get_usage().live_bytes;

    if (tarn_devices_alloc(devices, 0, MIB, 0, &ptr, &error)) {
        fail_msg("%s", error.text);
    }
    assert_true(fake->used_bytes(0) >= MIB);
    assert_int_equal(tarn_devices_open(devices, 0, &allocator, &error), TARN_OK);
    assert_ptr_equal(allocator, tarn_devices_find(devices, 0));
    assert_int_equal(tarn_devices_free(devices, ptr, &error), TARN_OK);
    tarn_devices_destroy(devices);
    assert_int_equal(fake->used_bytes(0), 0);
    assert_true(tarn_host_get_usage().live_bytes < live);
}

static const struct tn_cuda_driver *open_gpus(struct tarn_devices *devices, int count,
                                              void **contexts)
{
    const struct tn_cuda *cuda = NULL;
    tarn_ptr ptr = 0;

    for (int i = 0; i < count; i++) {
        assert_int_equal(tarn_devices_alloc(devices, i, MIB, 0, &ptr, NULL), TARN_OK);
        cuda = tn_cuda_from(devices->entries[i].device);
        contexts[i] = cuda->context;
    }
    return &cuda->driver;
}

/* What a binding asks before each allocation. */
static void the_current_device_is_that_of_the_context(void **state)
{
    const struct fake_cuda *fake = fake_open(FAKE_CUDA);
    struct tarn_devices *devices = NULL;
    struct tarn_device *sim = sim_of(0, GIB);
    void *contexts[3] = {NULL};
    void *popped = NULL;
    int other = 0;

    (void)state;
    fake->set_devices(4, GIB);
    assert_int_equal(tarn_devices_create(&devices, NULL), TARN_OK);
    assert_int_equal(tarn_devices_find_current(devices), TARN_DEVICE_UNKNOWN); /* none is open */
    assert_int_equal(tarn_devices_use(devices, 3, sim, NULL), TARN_OK);
    const struct tn_cuda_driver *driver = open_gpus(devices, 3, contexts);

    assert_int_equal(tarn_devices_find_current(devices), TARN_DEVICE_UNBOUND);
    for (int i = 2; i >= 0; i--) {
        assert_int_equal(driver->cuCtxPushCurrent_v2(contexts[i]), TN_CU_SUCCESS);
        assert_int_equal(tarn_devices_find_current(devices), i);
        assert_ptr_equal(fake->context(), contexts[i]);
    }
    const uint64_t calls = fake->calls("cuCtxGetCurrent");

    (void)tarn_devices_find_current(devices);
    assert_int_equal(fake->calls("cuCtxGetCurrent"), calls + 1);
    fake->fail_nth("cuCtxGetCurrent", 1, TN_CU_INVALID_CONTEXT);
    assert_int_equal(tarn_devices_find_current(devices), TARN_DEVICE_UNKNOWN);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(driver->cuCtxPopCurrent_v2(&popped), TN_CU_SUCCESS);
    }
    assert_int_equal(driver->cuCtxPushCurrent_v2(&other), TN_CU_SUCCESS);
    assert_int_equal(tarn_devices_find_current(devices), TARN_DEVICE_UNKNOWN);
    assert_int_equal(driver->cuCtxPopCurrent_v2(&popped), TN_CU_SUCCESS);
    tarn_devices_destroy(devices);
    tarn_device_close(sim);
}

static void child_is_refused(void *context)
{
    struct rig *rig = context;
    const struct tarn_pool_id id = {0, 1};
    const struct tarn_pool_route route = {.struct_size = sizeof route, .accepts = is_seven};
    const struct tarn_recording recording = {.struct_size = sizeof recording};
    struct tarn_config config;
    struct tarn_allocator *allocator = NULL;

    CHILD_REQUIRE(tarn_devices_open(rig->devices, 0, &allocator, NULL) == TARN_ERR_STATE);
    CHILD_REQUIRE(tarn_devices_get_config(rig->devices, &config, NULL) == TARN_ERR_STATE);
    CHILD_REQUIRE(tarn_devices_use(rig->devices, 5, rig->sims[0], NULL) == TARN_ERR_STATE);
    CHILD_REQUIRE(tarn_devices_set_enabled(rig->devices, true, NULL) == TARN_ERR_STATE);
    CHILD_REQUIRE(tarn_devices_begin_pool(rig->devices, 0, id, &route, NULL) == TARN_ERR_STATE);
    CHILD_REQUIRE(tarn_devices_end_pool(rig->devices, 0, id, NULL) == TARN_ERR_STATE);
    CHILD_REQUIRE(tarn_devices_record(rig->devices, &recording, &rig->error) == TARN_ERR_STATE);
    CHILD_REQUIRE(strstr(rig->error.text, "forked after CUDA started"));
    CHILD_REQUIRE(tarn_devices_add_memory_callback(rig->devices, see_miss, NULL, NULL) ==
                  TARN_ERR_STATE);
    tarn_devices_destroy(rig->devices); /* does nothing */
}

/* Exit status of a child: whether it could open device 1, and change the settings. */
static int child_of(struct rig *rig)
{
    const pid_t child = fork();
    int status = -1;

    if (child == 0) {
        struct tarn_allocator *allocator = NULL;
        const enum tarn_status opened = tarn_devices_open(rig->devices, 1, &allocator, &rig->error);
        const enum tarn_status configured = tarn_devices_configure(rig->devices, "", &rig->error);

        child_exit(opened == configured ? (int)opened : 99);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WEXITSTATUS(status);
}

static void children_of_users_are_refused(void **state)
{
    struct rig rig;

    (void)state;
    rig_init(&rig);
    assert_int_equal(tarn_devices_configure(rig.devices, "", &rig.error), TARN_OK);
    tarn_devices_destroy(NULL);
    (void)alloc(&rig, 1, MIB, 0);
    assert_int_equal(child_of(&rig), TARN_ERR_STATE);
    (void)alloc(&rig, 1, MIB, 0); /* the parent goes on */
    child_run(child_is_refused, &rig);
    (void)alloc(&rig, 1, MIB, 0);
    rig_fini(&rig);
}

static void a_child_may_be_the_first(void **state)
{
    struct rig rig;
    int status = -1;

    (void)state;
    assert_int_equal(tarn_devices_create(&rig.devices, &rig.error), TARN_OK);
    const pid_t child = fork();

    if (child == 0) {
        struct tarn_device *own = sim_of(1, GIB);

        child_exit(tarn_devices_use(rig.devices, 1, own, &rig.error) ? 98 : child_of(&rig));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WEXITSTATUS(status), TARN_OK); /* the grandchild's: nothing was open either */
    tarn_devices_destroy(rig.devices);
}

static void the_latest_failure_is_kept(void **state)
{
    struct rig rig;
    struct tarn_error error = {.status = TARN_OK};

    (void)state;
    rig_init(&rig);
    tarn_devices_keep_error(rig.devices, &error); /* none */
    assert_false(tarn_devices_last_error(rig.devices, &error));
    (void)!tarn_devices_free(rig.devices, 5, &error);
    tarn_devices_keep_error(rig.devices, &error);
    assert_true(tarn_devices_last_error(rig.devices, &rig.error));
    assert_string_equal(rig.error.text, "the pointer was not allocated by tarn");
    rig_fini(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_found_on_any_device),
        cmocka_unit_test(memory_of_the_only_device_is_found_at_once),
        cmocka_unit_test(a_number_is_used_once),
        cmocka_unit_test(settings_are_those_of_all),
        cmocka_unit_test(an_allocator_of_its_own_settings_may_refuse),
        cmocka_unit_test(a_device_is_opened_once),
        cmocka_unit_test(all_devices_are_observed),
        cmocka_unit_test(observers_fit_or_none_has_one),
        cmocka_unit_test(all_devices_are_recorded),
        cmocka_unit_test(a_filter_is_kept_until_its_routing_ends),
        cmocka_unit_test(failures_leave_nothing),
        cmocka_unit_test(full_devices_are_not_observed),
        cmocka_unit_test(a_device_that_cannot_be_observed_stays_closed),
        cmocka_unit_test(observers_differ_by_function_and_context),
        cmocka_unit_test(a_full_device_is_not_recorded),
        cmocka_unit_test(routings_are_told_apart),
        cmocka_unit_test(other_numbers_are_refused),
        cmocka_unit_test(failures_of_a_device_are_reported),
        cmocka_unit_test(another_backend_does_without),
        cmocka_unit_test(settings_that_make_no_sense_open_nothing),
        cmocka_unit_test(a_gpu_is_opened_on_demand),
        cmocka_unit_test(the_current_device_is_that_of_the_context),
        cmocka_unit_test(children_of_users_are_refused),
        cmocka_unit_test(a_child_may_be_the_first),
        cmocka_unit_test(the_latest_failure_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
