/* SPDX-License-Identifier: MIT */
/* Observers, callbacks and sinks that every allocator of a table has. */
#include "devices/devices.h"

#include "tarn/pressure.h"

static enum tarn_status attach(const struct tn_attachment *it, struct tarn_allocator *allocator,
                               struct tarn_error *error)
{
    enum tarn_status st = TARN_OK;

    if (it->sink.receive) {
        return tn_unless_unsupported(tarn_allocator_add_sink(allocator, &it->sink, error));
    }
    if (it->observer) {
        st = tarn_allocator_add_oom_observer(allocator, it->observer, it->context);
    } else {
        st = tarn_allocator_add_memory_callback(allocator, it->callback, it->context);
    }
    st = tn_unless_unsupported(st);
    return st ? tn_fail(error, st, "an allocator cannot be observed: %s", tarn_status_text(st))
              : TARN_OK;
}

/* Where it is not attached, nothing happens. */
static void detach(const struct tn_attachment *it, struct tarn_allocator *allocator)
{
    if (it->sink.receive) {
        (void)!tarn_allocator_remove_sink(allocator, it->context, NULL);
    } else if (it->observer) {
        (void)!tarn_allocator_remove_oom_observer(allocator, it->observer, it->context);
    } else {
        (void)!tarn_allocator_remove_memory_callback(allocator, it->callback, it->context);
    }
}

enum tarn_status tn_devices_attach(struct tarn_devices *devices, struct tarn_allocator *allocator,
                                   struct tarn_error *error)
{
    enum tarn_status st = TARN_OK;

    for (unsigned i = 0; st == TARN_OK && i < devices->attachment_count; i++) {
        st = attach(&devices->attachments[i], allocator, error);
    }
    return st;
}

static bool attachments_are_same(const struct tn_attachment *a, const struct tn_attachment *b)
{
    return a->context == b->context && a->sink.receive == b->sink.receive &&
           a->observer == b->observer && a->callback == b->callback;
}

static bool attachment_find(const struct tarn_devices *devices, const struct tn_attachment *it)
{
    for (unsigned i = 0; i < devices->attachment_count; i++) {
        if (attachments_are_same(&devices->attachments[i], it)) {
            return true;
        }
    }
    return false;
}

/* The lock is held. */
static enum tarn_status attach_everywhere(struct tarn_devices *devices,
                                          const struct tn_attachment *it, struct tarn_error *error)
{
    enum tarn_status st = TARN_OK;
    int i = 0;

    for (; st == TARN_OK && i < TARN_DEVICES_MAX; i++) {
        struct tarn_allocator *allocator = tn_devices_at(devices, i);

        st = allocator ? attach(it, allocator, error) : TARN_OK;
    }
    for (i -= 2; st != TARN_OK && i >= 0; i--) { /* the last one failed */
        struct tarn_allocator *allocator = tn_devices_at(devices, i);

        if (allocator) {
            detach(it, allocator);
        }
    }
    return st;
}

static enum tarn_status attachment_add(struct tarn_devices *devices, const struct tn_attachment *it,
                                       struct tarn_error *error)
{
    enum tarn_status st = tn_devices_lock(devices, error);

    if (st) {
        return st;
    }
    if (!attachment_find(devices, it)) {
        st = devices->attachment_count < TARN_DEVICES_ATTACHMENTS_MAX
                 ? attach_everywhere(devices, it, error)
                 : tn_fail(error, TARN_ERR_LIMIT, "devices have at most %d observers in common",
                           TARN_DEVICES_ATTACHMENTS_MAX);
        if (st == TARN_OK) {
            devices->attachments[devices->attachment_count++] = *it;
        }
    }
    tn_lock_release(&devices->lock);
    return st;
}

enum tarn_status tarn_devices_add_sink(struct tarn_devices *devices, const struct tarn_sink *sink,
                                       struct tarn_error *error)
{
    const struct tn_attachment it = {.sink = *sink, .context = sink->context};

    return sink->receive
               ? attachment_add(devices, &it, error)
               : tn_fail(error, TARN_ERR_INVALID_ARGUMENT, "a sink needs a function to receive");
}

enum tarn_status tarn_devices_add_oom_observer(struct tarn_devices *devices,
                                               tarn_oom_observer observer, void *context,
                                               struct tarn_error *error)
{
    const struct tn_attachment it = {.observer = observer, .context = context};

    return attachment_add(devices, &it, error);
}

enum tarn_status tarn_devices_add_memory_callback(struct tarn_devices *devices,
                                                  tarn_memory_callback callback, void *context,
                                                  struct tarn_error *error)
{
    const struct tn_attachment it = {.callback = callback, .context = context};

    return attachment_add(devices, &it, error);
}
