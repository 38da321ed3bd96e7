/* SPDX-License-Identifier: MIT */
/*
 * One history per device, like PyTorch's ring per device. It is made when the device is first
 * recorded and stays the allocator's sink, enabled or not: as in PyTorch, live blocks keep their
 * stacks while it is not.
 */
#include "devices/devices.h"

#include "base/sized.h"
#include "tarn/block.h"

#include <string.h>

static enum tarn_status history_make(struct tarn_devices *devices, struct tarn_allocator *allocator,
                                     struct tarn_history **history_out, struct tarn_error *error)
{
    const struct tarn_history_options options = {
        .struct_size = sizeof options,
        .stack_source = devices->recording.stack_source,
        .max_entries = devices->recording.max_entries,
        .host = devices->host.capture ? &devices->host : NULL,
    };
    struct tarn_sink sink;
    enum tarn_status st = tarn_history_create(&options, history_out, error);

    if (st) {
        return st;
    }
    tarn_history_get_sink(*history_out, TARN_CONTEXT_NEVER, &sink);
    st = tarn_allocator_add_sink(allocator, &sink, error);
    if (st) {
        tarn_history_destroy(*history_out);
        *history_out = NULL;
    }
    return st;
}

/* The lock is held. */
static enum tarn_status record_one(struct tarn_devices *devices, int number,
                                   struct tarn_allocator *allocator, struct tarn_error *error)
{
    const struct tarn_recording *recording = &devices->recording;
    struct tarn_history *history = atomic_load(&devices->entries[number].history);
    const enum tarn_status st =
        history ? tarn_history_set_max_entries(history, recording->max_entries, error)
                : history_make(devices, allocator, &history, error);

    if (st) {
        return st;
    }
    atomic_store(&devices->entries[number].history, history);
    tarn_history_set_skip_actions(history, recording->skip_actions);
    if (recording->clear) {
        tarn_history_clear(history);
    }
    return tarn_allocator_switch_sink(allocator, history, true, recording->level, error);
}

/* A device whose opening fails later keeps no history: its allocator, the only user, goes too. */
enum tarn_status tn_devices_record_new(struct tarn_devices *devices, int number,
                                       struct tarn_allocator *allocator, struct tarn_error *error)
{
    return atomic_load(&devices->is_recording) ? record_one(devices, number, allocator, error)
                                               : TARN_OK;
}

/* The lock is held. */
static void stop_all(struct tarn_devices *devices)
{
    atomic_store(&devices->is_recording, false);
    for (int i = 0; i < TARN_DEVICES_MAX; i++) {
        struct tarn_history *history = atomic_load(&devices->entries[i].history);

        if (history) {
            (void)!tarn_allocator_switch_sink(tn_devices_at(devices, i), history, false,
                                              TARN_CONTEXT_NEVER, NULL);
            tarn_history_clear(history);
        }
    }
}

/* The lock is held. */
static enum tarn_status record_all(struct tarn_devices *devices, struct tarn_error *error)
{
    enum tarn_status st = TARN_OK;

    for (int i = 0; st == TARN_OK && i < TARN_DEVICES_MAX; i++) {
        struct tarn_allocator *allocator = tn_devices_at(devices, i);

        st = allocator ? record_one(devices, i, allocator, error) : TARN_OK;
    }
    devices->recording.clear = false; /* applies now, not to devices opened later */
    return st;
}

static void recording_keep(struct tarn_devices *devices, const struct tarn_recording *recording)
{
    struct tarn_recording *kept = &devices->recording;

    devices->host = recording->host ? *recording->host : (struct tarn_host_frames){0};
    *kept = *recording;
    kept->host = NULL;
    if (kept->max_entries < 1) {
        kept->max_entries = 1;
    } else if (kept->max_entries >= PTRDIFF_MAX) { /* Python's way to say: without a limit */
        kept->max_entries = TARN_RECORDING_ENTRIES;
    }
}

enum tarn_status tarn_devices_record(struct tarn_devices *devices,
                                     const struct tarn_recording *recording,
                                     struct tarn_error *error)
{
    struct tarn_recording wish = {0};

    if (recording && !tn_sized_read(&wish, sizeof wish, recording)) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT, "a recording needs its struct_size");
    }
    enum tarn_status st = tn_devices_lock(devices, error);

    if (st) {
        return st;
    }
    if (recording) {
        recording_keep(devices, &wish);
        st = record_all(devices, error);
        atomic_store(&devices->is_recording, st == TARN_OK);
    }
    if (!recording || st) {
        stop_all(devices);
    }
    tn_lock_release(&devices->lock);
    return st;
}

bool tarn_devices_is_recording(struct tarn_devices *devices)
{
    return atomic_load_explicit(&devices->is_recording, memory_order_relaxed);
}

struct tarn_history *tarn_devices_find_history(struct tarn_devices *devices, int number)
{
    return tarn_devices_find(devices, number) ? atomic_load(&devices->entries[number].history)
                                              : NULL;
}

uint64_t tarn_devices_find_host_stack(struct tarn_devices *devices, tarn_ptr ptr)
{
    struct tarn_block block = {.struct_size = sizeof block};
    struct tarn_allocator *owner = NULL;

    if (tarn_devices_find_owner(devices, ptr, &owner, NULL) ||
        tarn_allocator_find_block(owner, ptr, &block, NULL)) {
        return 0;
    }
    const struct tarn_history *history =
        tarn_devices_find_history(devices, tarn_allocator_get_ordinal(owner));

    return history ? tarn_history_host_stack(history, block.stack) : 0;
}

/* That of a device that may not be open yet; NULL if it cannot be opened, or recording has ended
 * meanwhile. */
static struct tarn_history *open_history(struct tarn_devices *devices, int number)
{
    struct tarn_allocator *allocator = NULL;

    return tarn_devices_open(devices, number, &allocator, NULL)
               ? NULL
               : tarn_devices_find_history(devices, number);
}

void tarn_devices_annotate(struct tarn_devices *devices, int number,
                           const struct tarn_annotation_field *fields, size_t count)
{
    struct tarn_annotation_field kept[TARN_ANNOTATION_FIELDS_MAX];
    enum tarn_annotation_stage stage = TARN_ANNOTATION_START;
    const char *name = NULL;
    size_t kept_count = 0;

    for (size_t i = 0; i < count; i++) {
        if (strcmp(fields[i].key, "name") == 0) {
            name = fields[i].value;
        } else if (strcmp(fields[i].key, "stage") == 0) {
            stage =
                strcmp(fields[i].value, "END") == 0 ? TARN_ANNOTATION_END : TARN_ANNOTATION_START;
        } else if (kept_count < TARN_ANNOTATION_FIELDS_MAX) {
            kept[kept_count++] = fields[i];
        }
    }
    struct tarn_history *history =
        name && tarn_devices_is_recording(devices) ? open_history(devices, number) : NULL;

    if (history) { /* it counts what it drops */
        (void)!tarn_history_annotate(history, stage, number, name, kept, kept_count);
    }
}
