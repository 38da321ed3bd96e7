/* SPDX-License-Identifier: MIT */
#include "reference/track_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void tm_init(struct tm_model *m)
{
    memset(m, 0, sizeof *m);
    m->recomputed = -1;
    m->entering = -1;
}

static int64_t storage_bytes(const struct tm_model *m, const struct tm_storage *s)
{
    return (int64_t)(m->rounds[s->device] ? (s->size + 511) / 512 * 512 : s->size);
}

struct tm_rows tm_now(const struct tm_model *m)
{
    struct tm_rows rows = {.count = m->order_count};

    memcpy(rows.order, m->order, sizeof rows.order);
    for (size_t i = 0; i < TM_STORAGES; i++) {
        const struct tm_storage *s = &m->storages[i];

        if (s->known) {
            rows.bytes[s->device][s->category] += storage_bytes(m, s);
        }
    }
    return rows;
}

static int64_t total_of(const struct tm_rows *rows, uint32_t device)
{
    int64_t total = 0;

    for (size_t c = 0; c < TM_CATEGORIES; c++) {
        total += rows->bytes[device][c];
    }
    return total;
}

static int64_t total_of_all(const struct tm_rows *rows)
{
    int64_t total = 0;

    for (uint32_t d = 0; d < TM_DEVICES; d++) {
        total += total_of(rows, d);
    }
    return total;
}

/* ---- entries of devices ---- */

static void entry_add(uint32_t *order, size_t *count, uint32_t device)
{
    for (size_t i = 0; i < *count; i++) {
        if (order[i] == device) {
            return;
        }
    }
    order[(*count)++] = device;
}

static void entry_drop_if_empty(struct tm_model *m, uint32_t device)
{
    const struct tm_rows now = tm_now(m);
    size_t kept = 0;

    for (size_t i = 0; i < m->order_count; i++) {
        if (m->order[i] != device || total_of(&now, device) != 0) {
            m->order[kept++] = m->order[i];
        }
    }
    m->order_count = kept;
}

/* ---- active modules ---- */

static bool is_active(const struct tm_model *m, uint32_t name)
{
    for (size_t i = 0; i < m->active_count; i++) {
        if (m->active[i] == name) {
            return true;
        }
    }
    return false;
}

/* The name whose first entering came last. */
static uint32_t innermost(const struct tm_model *m)
{
    uint32_t found = 0;
    bool seen[TM_NAMES] = {false};

    for (size_t i = 0; i < m->active_count; i++) {
        if (!seen[m->active[i]]) {
            seen[m->active[i]] = true;
            found = m->active[i];
        }
    }
    return found;
}

static void push_active(struct tm_model *m, uint32_t name)
{
    if (m->active_count == sizeof m->active / sizeof m->active[0]) {
        (void)fprintf(stderr, "track_model: no room\n");
        exit(1);
    }
    m->active[m->active_count++] = name;
}

/* Its latest entering ends; if it was entered before, it keeps its first place. */
static void pop_active(struct tm_model *m, uint32_t name)
{
    size_t last = m->active_count;

    for (size_t i = 0; i < m->active_count; i++) {
        last = m->active[i] == name ? i : last;
    }
    if (last < m->active_count) {
        m->active_count--;
        memmove(&m->active[last], &m->active[last + 1],
                (m->active_count - last) * sizeof m->active[0]);
    }
}

/* ---- storages ---- */

static uint32_t category_of(const struct tm_model *m, const struct tarn_track_event *e)
{
    if (e->category != TARN_TRACK_AUTO) {
        return e->category;
    }
    if (m->in_step) {
        return TARN_TRACK_OPTSTATE;
    }
    return (e->flags & TARN_TRACK_BACKWARD) && m->recomputed < 0 ? TARN_TRACK_TEMP
                                                                 : TARN_TRACK_ACTIVATION;
}

static void storage_new(struct tm_model *m, const struct tarn_track_event *e, uint32_t owner)
{
    struct tm_storage *s = &m->storages[e->id];

    *s = (struct tm_storage){true, e->bytes, e->name, category_of(m, e), owner};
    if (storage_bytes(m, s) > 0) {
        entry_add(m->order, &m->order_count, s->device);
    }
}

static void storage_resize(struct tm_model *m, const struct tarn_track_event *e)
{
    struct tm_storage *s = &m->storages[e->id];

    if (s->size != e->bytes) {
        s->size = e->bytes;
        entry_add(m->order, &m->order_count, s->device);
        entry_drop_if_empty(m, s->device);
    }
}

static bool do_create(struct tm_model *m, const struct tarn_track_event *e)
{
    const bool more = e->flags & TARN_TRACK_MORE;
    const bool known = m->storages[e->id].known;

    if (m->skips) {
        m->skips = more;
        return true;
    }
    m->skips = known && more && !m->all_storages;
    if (known) {
        storage_resize(m, e);
    } else {
        storage_new(m, e, innermost(m));
    }
    return true;
}

static bool do_classify(struct tm_model *m, const struct tarn_track_event *e)
{
    struct tm_storage *s = &m->storages[e->id];
    const bool own = m->entering >= 0 && m->entering_is_new;
    struct tm_module *module = own ? &m->modules[m->entering] : NULL;
    const uint32_t owner = own ? module->name : innermost(m);

    if (!s->known) {
        storage_new(m, e, owner);
    } else {
        const uint32_t category = category_of(m, e);

        if (own) {
            s->owner = owner;
        }
        if (category != s->category) {
            s->category = category;
            entry_add(m->order, &m->order_count, s->device);
        }
    }
    if (own && s->category == TARN_TRACK_PARAMETER) {
        module->parameter_bytes += storage_bytes(m, s);
    } else if (own && s->category == TARN_TRACK_BUFFER) {
        module->buffer_bytes += storage_bytes(m, s);
    }
    return true;
}

static bool do_delete(struct tm_model *m, const struct tarn_track_event *e)
{
    struct tm_storage *s = &m->storages[e->id];

    if (s->known) {
        const bool counted = storage_bytes(m, s) > 0;

        s->known = false;
        if (counted) {
            entry_drop_if_empty(m, s->device);
        }
        return true;
    }
    return false;
}

/* ---- modules ---- */

static void record(struct tm_model *m, struct tm_module *module, uint32_t state)
{
    if (module->call_count[state] == TM_CALLS) {
        (void)fprintf(stderr, "track_model: no room\n");
        exit(1);
    }
    module->calls[state][module->call_count[state]++] = tm_now(m);
}

static void begin_peak(struct tm_model *m, struct tm_module *module, uint32_t state)
{
    const struct tm_rows now = tm_now(m);

    for (uint32_t d = 0; d < TM_DEVICES; d++) {
        module->highest[d] = total_of(&now, d);
    }
    record(m, module, state);
}

static void make_ready(struct tm_model *m)
{
    if (m->entering < 0) {
        return;
    }
    struct tm_module *module = &m->modules[m->entering];

    if (m->entering_recomputes) {
        record(m, module, TARN_TRACK_PRE_FORWARD_AC);
    } else {
        module->input_bytes = m->inputs;
        begin_peak(m, module, TARN_TRACK_PEAK_FORWARD);
        record(m, module, TARN_TRACK_PRE_FORWARD);
    }
    m->entering = -1;
}

static bool do_enter(struct tm_model *m, const struct tarn_track_event *e)
{
    make_ready(m);
    struct tm_module *module = &m->modules[e->id];

    m->entering_is_new = !module->known;
    m->entering_recomputes = module->known && (e->flags & TARN_TRACK_BACKWARD);
    if (!module->known) {
        memset(module, 0, sizeof *module);
        module->known = true;
        module->output_bytes = -1;
        module->name = e->name;
    } else if (!m->entering_recomputes) {
        module->name = e->name;
    }
    if (m->entering_recomputes && m->recomputed < 0) {
        m->recomputed = (int)e->id;
    }
    push_active(m, e->name);
    m->entering = (int)e->id;
    m->inputs = 0;
    m->outputs = 0;
    return true;
}

static bool do_leave(struct tm_model *m, const struct tarn_track_event *e)
{
    struct tm_module *module = &m->modules[e->id];
    const bool backward = e->flags & TARN_TRACK_BACKWARD;

    if (!module->known || (!backward && !is_active(m, module->name))) {
        return false; /* which changes nothing */
    }
    make_ready(m);
    if (backward) {
        m->recomputed = m->recomputed == (int)e->id ? -1 : m->recomputed;
    } else {
        module->output_bytes = m->outputs;
    }
    m->outputs = 0;
    record(m, module, backward ? TARN_TRACK_POST_FORWARD_AC : TARN_TRACK_POST_FORWARD);
    pop_active(m, module->name);
    return true;
}

static bool do_enter_backward(struct tm_model *m, const struct tarn_track_event *e)
{
    struct tm_module *module = &m->modules[e->id];

    if (!module->known) {
        return false;
    }
    make_ready(m);
    push_active(m, module->name);
    begin_peak(m, module, TARN_TRACK_PEAK_BACKWARD);
    record(m, module, TARN_TRACK_PRE_BACKWARD);
    return true;
}

static bool do_leave_backward(struct tm_model *m, const struct tarn_track_event *e)
{
    struct tm_module *module = &m->modules[e->id];

    if (module->known) {
        record(m, module, TARN_TRACK_POST_BACKWARD);
        pop_active(m, module->name);
    }
    return module->known;
}

/* ---- peaks ---- */

static void owned_now(const struct tm_model *m, int64_t owned[TM_NAMES][TM_DEVICES][TM_CATEGORIES])
{
    memset(owned, 0, sizeof(int64_t[TM_NAMES][TM_DEVICES][TM_CATEGORIES]));
    for (size_t i = 0; i < TM_STORAGES; i++) {
        const struct tm_storage *s = &m->storages[i];

        if (s->known) {
            owned[s->owner][s->device][s->category] += storage_bytes(m, s);
        }
    }
}

static void take_device(struct tm_rows *rows, const struct tm_rows *now, uint32_t device)
{
    memcpy(rows->bytes[device], now->bytes[device], sizeof rows->bytes[device]);
    entry_add(rows->order, &rows->count, device);
}

static void take_owned_device(struct tm_model *m, uint32_t device)
{
    int64_t owned[TM_NAMES][TM_DEVICES][TM_CATEGORIES];

    owned_now(m, owned);
    for (size_t n = 0; n < TM_NAMES; n++) {
        memcpy(m->owned_at_peak[n][device], owned[n][device], sizeof owned[n][device]);
    }
}

static void raise_module(struct tm_module *module, const struct tm_rows *now, uint32_t state)
{
    struct tm_rows *call = &module->calls[state][module->call_count[state] - 1];

    for (size_t i = 0; i < now->count; i++) {
        const uint32_t d = now->order[i];

        if (total_of(now, d) > module->highest[d]) {
            module->highest[d] = total_of(now, d);
            take_device(call, now, d);
        }
    }
}

static bool do_op_done(struct tm_model *m, const struct tarn_track_event *e)
{
    const uint32_t state = e->flags & TARN_TRACK_IN_STATE   ? e->name
                           : e->flags & TARN_TRACK_BACKWARD ? TARN_TRACK_PEAK_BACKWARD
                                                            : TARN_TRACK_PEAK_FORWARD;

    make_ready(m);
    const struct tm_rows now = tm_now(m);

    for (size_t i = 0; i < TM_MODULES; i++) {
        struct tm_module *module = &m->modules[i];

        if (module->known && is_active(m, module->name) && module->call_count[state] > 0) {
            raise_module(module, &now, state);
        }
    }
    for (size_t i = 0; i < now.count; i++) {
        if (total_of(&now, now.order[i]) > total_of(&m->peaks, now.order[i])) {
            take_device(&m->peaks, &now, now.order[i]);
            take_owned_device(m, now.order[i]);
        }
    }
    if (total_of_all(&now) > total_of_all(&m->moment)) {
        m->moment = now;
        owned_now(m, m->owned_at_moment);
    }
    return true;
}

static bool do_start(struct tm_model *m)
{
    m->peaks = tm_now(m);
    m->moment = m->peaks;
    owned_now(m, m->owned_at_moment);
    owned_now(m, m->owned_at_peak);
    return true;
}

static void forget(struct tm_model *m, size_t id)
{
    m->modules[id].known = false;
    m->entering = m->entering == (int)id ? -1 : m->entering;
}

bool tm_apply(struct tm_model *m, const struct tarn_track_event *e)
{
    const int64_t bytes =
        e->id < TM_STORAGES && m->storages[e->id].known ? storage_bytes(m, &m->storages[e->id]) : 0;

    switch ((enum tarn_track_kind)e->kind) {
    case TARN_TRACK_CREATE:
        return do_create(m, e);
    case TARN_TRACK_CLASSIFY:
        return do_classify(m, e);
    case TARN_TRACK_RESIZE:
        if (m->storages[e->id].known) {
            storage_resize(m, e);
            return true;
        }
        return false;
    case TARN_TRACK_DELETE:
        return do_delete(m, e);
    case TARN_TRACK_ENTER:
        return do_enter(m, e);
    case TARN_TRACK_INPUT:
        m->inputs += m->entering >= 0 ? bytes : 0;
        return true;
    case TARN_TRACK_OUTPUT:
        m->outputs += bytes;
        return true;
    case TARN_TRACK_READY:
        make_ready(m);
        return true;
    case TARN_TRACK_LEAVE:
        return do_leave(m, e);
    case TARN_TRACK_ENTER_BACKWARD:
        return do_enter_backward(m, e);
    case TARN_TRACK_LEAVE_BACKWARD:
        return do_leave_backward(m, e);
    case TARN_TRACK_END_BACKWARD:
        m->active_count = 0;
        return true;
    case TARN_TRACK_BEGIN_STEP:
    case TARN_TRACK_END_STEP:
        m->in_step = e->kind == TARN_TRACK_BEGIN_STEP;
        return true;
    case TARN_TRACK_OP_DONE:
        return do_op_done(m, e);
    case TARN_TRACK_START:
        return do_start(m);
    case TARN_TRACK_RESET_MODULES:
        for (size_t i = 0; i < TM_MODULES; i++) {
            forget(m, i);
        }
        return true;
    case TARN_TRACK_FORGET_MODULE: {
        const bool known = m->modules[e->id].known;

        forget(m, e->id);
        return known;
    }
    case TARN_TRACK_ACTIVE:
    case TARN_TRACK_BEGIN_ITERATION:
    case TARN_TRACK_KIND_COUNT:
        break;
    }
    return true;
}
