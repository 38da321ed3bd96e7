/* SPDX-License-Identifier: MIT */
/*
 * One history per device, like PyTorch's ring per device. It is created when the device is first
 * recorded and stays its event sink, enabled or disabled, until the device is closed: removing it
 * would require that no call of the allocator is in progress.
 *
 * `lock` guards all of this file. Opening a device takes the table's lock first, then this one.
 * libtarn is called under it, the interpreter never.
 */
#include "plug/pytorch/record.h"

#include "plug/pytorch/devices.h"
#include "plug/pytorch/locks.h"
#include "plug/pytorch/plug.h"
#include "plug/pytorch/py_frames.h"

#include <pthread.h>

enum {
    ENTRIES_UNLIMITED = 2097152, /* 56 bytes each, committed on use */
    FRAMES_OF_C = 128            /* of a stack */
};

struct recorded {
    struct tarn_allocator *allocator; /* NULL: not opened */
    struct tarn_history *history;     /* NULL: never recorded; else a sink of its events */
};

static pthread_mutex_t *const lock = &tn_torch_locks[TN_TORCH_LOCK_RECORD];
static struct recorded devices[TARN_TORCH_DEVICES_MAX];
static struct tarn_torch_recording wish = {.struct_size = sizeof wish}; /* off */

static uint64_t entries_of(const struct tarn_torch_recording *recording)
{
    return recording->max_entries == TARN_SIZE_UNLIMITED ? ENTRIES_UNLIMITED
                                                         : recording->max_entries;
}

static enum tarn_stack_source source_of(const struct tarn_torch_recording *recording)
{
    return recording->c_stacks ? TARN_STACK_UNWIND : TARN_STACK_NONE;
}

static bool is_async(struct tarn_allocator *allocator)
{
    struct tarn_config config = {.struct_size = sizeof config};

    tarn_allocator_get_config(allocator, &config);
    return config.backend == TARN_BACKEND_ASYNC;
}

/* A disabled history for the device's events. */
static enum tarn_status recorded_create(struct recorded *recorded, struct tarn_error *error)
{
    const struct tarn_history_options options = {
        .struct_size = sizeof options,
        .stack_source = source_of(&wish),
        .max_frames = FRAMES_OF_C,
        .max_entries = entries_of(&wish),
        .host = tn_py_open() ? &tn_py_frames : NULL,
    };
    struct tarn_history *history = NULL;
    struct tarn_sink sink;
    enum tarn_status st = tarn_history_create(&options, &history, error);

    if (st) {
        return st;
    }
    tarn_history_get_sink(history, TARN_CONTEXT_NEVER, &sink);
    st = tarn_allocator_add_sink(recorded->allocator, &sink, error);
    if (st == TARN_OK) {
        st =
            tarn_allocator_set_sink(recorded->allocator, history, false, TARN_CONTEXT_NEVER, error);
    }
    if (st) {
        tarn_history_destroy(history);
        return st;
    }
    recorded->history = history;
    return TARN_OK;
}

/* Everything that can fail. */
static enum tarn_status recorded_prepare(struct recorded *recorded, struct tarn_error *error)
{
    struct tarn_history_usage usage = {.struct_size = sizeof usage};

    if (!recorded->history) {
        return recorded_create(recorded, error);
    }
    tarn_history_get_usage(recorded->history, &usage);
    return usage.max_entries == entries_of(&wish)
               ? TARN_OK
               : tarn_history_set_max_entries(recorded->history, entries_of(&wish), error);
}

static void recorded_switch(const struct recorded *recorded)
{
    /* Neither can fail: the source is valid and the sink exists. */
    (void)!tarn_history_set_stack_source(recorded->history, source_of(&wish));
    tarn_history_set_skip_actions(recorded->history, wish.skip_actions);
    if (wish.clear) {
        tarn_history_clear(recorded->history);
    }
    (void)!tarn_allocator_set_sink(recorded->allocator, recorded->history, true, wish.level, NULL);
}

static void all_off(void)
{
    wish = (struct tarn_torch_recording){.struct_size = sizeof wish};
    for (int i = 0; i < TARN_TORCH_DEVICES_MAX; i++) {
        if (devices[i].history) {
            (void)!tarn_allocator_set_sink(devices[i].allocator, devices[i].history, false,
                                           TARN_CONTEXT_NEVER, NULL);
            tarn_history_clear(devices[i].history);
        }
    }
}

static enum tarn_status all_on(struct tarn_error *error)
{
    enum tarn_status st = TARN_OK;

    for (int i = 0; st == TARN_OK && i < TARN_TORCH_DEVICES_MAX; i++) {
        if (devices[i].allocator) {
            st = recorded_prepare(&devices[i], error);
        }
    }
    for (int i = 0; st == TARN_OK && i < TARN_TORCH_DEVICES_MAX; i++) {
        if (devices[i].allocator) {
            recorded_switch(&devices[i]);
        }
    }
    return st;
}

static enum tarn_status recording_check(const struct tarn_torch_recording *recording,
                                        struct tarn_error *error)
{
    struct tarn_config config = {.struct_size = sizeof config};

    if (recording->struct_size != sizeof *recording ||
        (unsigned)recording->level > TARN_CONTEXT_ALL ||
        (recording->enabled && recording->max_entries == 0)) {
        return tn_torch_fail(error, TARN_ERR_INVALID_ARGUMENT,
                             "a history needs space for at least one event, and a known level");
    }
    const enum tarn_status st = tarn_torch_get_config(&config, error);

    if (st == TARN_OK && recording->enabled && config.backend == TARN_BACKEND_ASYNC) {
        return tn_torch_fail(error, TARN_ERR_NOT_SUPPORTED,
                             "backend:cudaMallocAsync has no history: the driver allocates");
    }
    return st;
}

enum tarn_status tarn_torch_record_history(const struct tarn_torch_recording *recording,
                                           struct tarn_error *error)
{
    enum tarn_status st = tn_torch_check_phase(error);

    if (st) {
        return st;
    }
    st = recording_check(recording, error);
    (void)pthread_mutex_lock(lock);
    if (st == TARN_OK && recording->enabled) {
        wish = *recording;
        tn_py_set_limit(wish.max_python_frames);
        st = all_on(error);
        wish.clear = false; /* applies now, not to devices opened later */
    }
    if (st || !recording->enabled) {
        all_off();
    }
    (void)pthread_mutex_unlock(lock);
    return st;
}

bool tarn_torch_is_recording(void)
{
    (void)pthread_mutex_lock(lock);
    const bool is = wish.enabled;

    (void)pthread_mutex_unlock(lock);
    return is;
}

struct tarn_history *tarn_torch_find_history(int device)
{
    struct tarn_history *history = NULL;

    if (device >= 0 && device < TARN_TORCH_DEVICES_MAX && !tn_torch_is_over()) {
        (void)pthread_mutex_lock(lock);
        history = devices[device].history;
        (void)pthread_mutex_unlock(lock);
    }
    return history;
}

void tarn_torch_get_python_frames(uint64_t *frames_out, uint64_t *dropped_out)
{
    const struct tn_py_usage usage = tn_py_usage();

    *frames_out = usage.frames;
    *dropped_out = usage.dropped;
}

enum tarn_status tn_torch_record_opened(int device, struct tarn_allocator *allocator,
                                        struct tarn_error *error)
{
    struct recorded *const recorded = &devices[device];
    enum tarn_status st = TARN_OK;

    (void)pthread_mutex_lock(lock);
    *recorded = (struct recorded){.allocator = allocator};
    if (wish.enabled && !is_async(allocator)) {
        st = recorded_prepare(recorded, error);
        if (st == TARN_OK) {
            recorded_switch(recorded);
        }
    }
    if (st) {
        *recorded = (struct recorded){0};
    }
    (void)pthread_mutex_unlock(lock);
    return st;
}

void tn_torch_record_closed(int device)
{
    (void)pthread_mutex_lock(lock);
    struct tarn_history *const history = devices[device].history;

    devices[device] = (struct recorded){0};
    (void)pthread_mutex_unlock(lock);
    tarn_history_destroy(history);
}

/* ---- snapshots ---- */

static size_t sources_list(struct tarn_capture_source *sources)
{
    size_t count = 0;

    (void)pthread_mutex_lock(lock);
    for (int i = 0; i < TARN_TORCH_DEVICES_MAX; i++) {
        if (devices[i].allocator) {
            sources[count++] = (struct tarn_capture_source){.allocator = devices[i].allocator,
                                                            .history = devices[i].history};
        }
    }
    (void)pthread_mutex_unlock(lock);
    return count;
}

enum tarn_status tarn_torch_capture(const struct tarn_capture_options *options,
                                    struct tarn_snapshot **snapshot_out, struct tarn_error *error)
{
    struct tarn_capture_source sources[TARN_TORCH_DEVICES_MAX];
    enum tarn_status st = tn_torch_check_phase(error);

    *snapshot_out = NULL;
    if (st) {
        return st;
    }
    const size_t count = sources_list(sources);

    if (count == 0) {
        return tn_torch_fail(error, TARN_ERR_NOT_FOUND,
                             "no device is in use yet: allocate something before a snapshot");
    }
    const int entered = tn_py_enter(); /* once, not for each stack */

    st = tarn_snapshot_capture(sources, count, options, snapshot_out, error);
    tn_py_leave(entered);
    return st;
}
