/* SPDX-License-Identifier: MIT */
/*
 * Applies events: one function per kind, which first validates and reserves memory, then changes
 * the state. The rules are those of PyTorch's tracker; names of its functions are in brackets.
 */
#include "base/assertion.h"
#include "base/errinfo.h"
#include "tracker/track_core.h"

#include <stdarg.h>
#include <stdio.h>

/* Sums of a few such numbers cannot overflow. */
#define SIZE_LIMIT  (INT64_C(1) << 60)
#define TOTAL_LIMIT (INT64_C(1) << 62)

/* ---- error messages ---- */

/* Names of events in messages, and whether the id is added. */
static const struct kind_text {
    const char *text;
    bool has_id;
} kind_texts[TARN_TRACK_KIND_COUNT] = {
    [TARN_TRACK_CREATE] = {"creation of storage", true},
    [TARN_TRACK_CLASSIFY] = {"classification of storage", true},
    [TARN_TRACK_RESIZE] = {"resizing of storage", true},
    [TARN_TRACK_DELETE] = {"deletion of storage", true},
    [TARN_TRACK_ENTER] = {"entering of module", true},
    [TARN_TRACK_INPUT] = {"input from storage", true},
    [TARN_TRACK_OUTPUT] = {"output to storage", true},
    [TARN_TRACK_READY] = {"readiness of a module", false},
    [TARN_TRACK_LEAVE] = {"leaving of module", true},
    [TARN_TRACK_ENTER_BACKWARD] = {"entering in backward of module", true},
    [TARN_TRACK_LEAVE_BACKWARD] = {"leaving in backward of module", true},
    [TARN_TRACK_END_BACKWARD] = {"end of backward", false},
    [TARN_TRACK_BEGIN_STEP] = {"start of an optimizer step", false},
    [TARN_TRACK_END_STEP] = {"end of an optimizer step", false},
    [TARN_TRACK_OP_DONE] = {"end of an operator", false},
    [TARN_TRACK_ACTIVE] = {"list of active modules", false},
    [TARN_TRACK_START] = {"start", false},
    [TARN_TRACK_RESET_MODULES] = {"reset of module statistics", false},
    [TARN_TRACK_FORGET_MODULE] = {"forgetting of module", true},
    [TARN_TRACK_BEGIN_ITERATION] = {"start of an iteration", false},
};

TN_COLD static enum tarn_status event_fail(const struct tarn_track_event *event,
                                           enum tarn_status status, struct tarn_error *error,
                                           const char *why)
{
    const struct kind_text *kind = &kind_texts[event->kind];

    return kind->has_id ? tn_fail(error, status, "%s %llu: %s", kind->text,
                                  (unsigned long long)event->id, why)
                        : tn_fail(error, status, "%s: %s", kind->text, why);
}

TN_COLD static enum tarn_status no_memory(const struct tarn_track_event *event,
                                          struct tarn_error *error)
{
    return event_fail(event, TARN_ERR_HOST_MEMORY, error, "no host memory");
}

/* ---- helpers ---- */

static uint32_t device_count(const struct tarn_tracker *t)
{
    return tn_name_list_count(&t->names[TARN_TRACK_DEVICE]);
}

static bool name_is_known(const struct tarn_tracker *t, enum tarn_track_names names, uint32_t id)
{
    return id < tn_name_list_count(&t->names[names]);
}

struct tn_scope *tn_track_scope(const struct tarn_tracker *t, uint32_t name)
{
    tn_assert(name < t->scopes.count);
    return (struct tn_scope *)t->scopes.items + name;
}

static uint32_t *active_names(const struct tarn_tracker *t)
{
    return t->active.items;
}

uint32_t tn_track_innermost(const struct tarn_tracker *t)
{
    return t->active.count > 0 ? active_names(t)[t->active.count - 1] : TN_MODULE_GLOBAL;
}

struct tn_module *tn_track_module_find(const struct tarn_tracker *t, uint64_t id)
{
    const uint64_t *found = tn_map_find(&t->modules, id + 1);

    return found ? (struct tn_module *)(uintptr_t)*found : NULL; /* NOLINT(*-int-to-ptr) */
}

/* Counted bytes of a storage of that size on its device. */
static int64_t counted_bytes(const struct tarn_tracker *t, uint32_t device, int64_t size)
{
    const int64_t step = (int64_t)t->options.granularity;

    return t->rounds[device] ? (size + step - 1) & -step : size;
}

/* Saturating sums of inputs and outputs, because storages may be repeated without limit. */
static int64_t add_capped(int64_t a, int64_t b)
{
    return a > TOTAL_LIMIT - b ? TOTAL_LIMIT : a + b;
}

/* ---- bytes [_update_snap] ---- */

/* Adds `change` bytes to the storage's category, for its device and its owner. */
static void count_change(struct tarn_tracker *t, const struct tn_storage *storage, int64_t change)
{
    struct tarn_track_row *row = tn_breakdown_get(&t->now, storage->device);

    row->bytes[storage->category] += change;
    row->total += change;
    t->total += change;
    tn_owner_change(&t->owners, storage->owner, storage->category, change);
}

/* Removes an empty row after bytes were removed or a size changed. */
static void drop_empty_row(struct tarn_tracker *t, uint32_t device)
{
    struct tarn_track_row *row = tn_breakdown_find(&t->now, device);

    if (tn_always(row) && row->total == 0) { /* what changed has a row */
        tn_breakdown_remove(&t->now, row);
    }
}

static void set_category(struct tarn_tracker *t, struct tn_storage *storage, uint32_t category)
{
    struct tarn_track_row *row;

    if (storage->category == category) {
        return;
    }
    row = tn_breakdown_get(&t->now, storage->device);
    row->bytes[storage->category] -= storage->bytes;
    row->bytes[category] += storage->bytes;
    tn_owner_change(&t->owners, storage->owner, storage->category, -storage->bytes);
    tn_owner_change(&t->owners, storage->owner, category, storage->bytes);
    storage->category = category;
}

static void set_owner(struct tarn_tracker *t, struct tn_storage *storage, uint32_t owner)
{
    if (storage->owner != owner) {
        tn_owner_change(&t->owners, storage->owner, storage->category, -storage->bytes);
        tn_owner_change(&t->owners, owner, storage->category, storage->bytes);
        storage->owner = owner;
    }
}

static enum tarn_status set_size(struct tarn_tracker *t, const struct tarn_track_event *event,
                                 struct tn_storage *storage, struct tarn_error *error)
{
    const int64_t size = (int64_t)event->bytes;

    if (event->bytes > SIZE_LIMIT) {
        return event_fail(event, TARN_ERR_LIMIT, error, "more bytes than any memory has");
    }
    if (size == storage->size) {
        return TARN_OK;
    }
    const int64_t bytes = counted_bytes(t, storage->device, size);

    if (t->total > TOTAL_LIMIT - bytes) {
        return event_fail(event, TARN_ERR_LIMIT, error, "the sum is more than can be counted");
    }
    count_change(t, storage, bytes - storage->bytes);
    storage->size = size;
    storage->bytes = bytes;
    drop_empty_row(t, storage->device);
    return TARN_OK;
}

/* ---- storages ---- */

/* Adds an unknown storage. */
static enum tarn_status storage_enter(struct tarn_tracker *t, const struct tarn_track_event *event,
                                      uint32_t category, uint32_t module,
                                      struct tn_storage **storage_out, struct tarn_error *error)
{
    uint32_t owner;

    if (!name_is_known(t, TARN_TRACK_DEVICE, event->name)) {
        return event_fail(event, TARN_ERR_NOT_FOUND, error, "its device has no name");
    }
    if (event->bytes > SIZE_LIMIT) {
        return event_fail(event, TARN_ERR_LIMIT, error, "more bytes than any memory has");
    }
    const int64_t bytes = counted_bytes(t, event->name, (int64_t)event->bytes);

    if (t->total > TOTAL_LIMIT - bytes) {
        return event_fail(event, TARN_ERR_LIMIT, error, "the sum is more than can be counted");
    }
    if (!tn_owner_get(&t->owners, module, event->name, &owner) ||
        !tn_storage_table_reserve(&t->storages)) {
        return no_memory(event, error);
    }
    struct tn_storage *storage = tn_storage_add(&t->storages, event->id);

    storage->size = (int64_t)event->bytes;
    storage->bytes = bytes;
    storage->device = event->name;
    storage->category = category;
    storage->owner = owner;
    if (bytes > 0) {
        count_change(t, storage, bytes);
    }
    *storage_out = storage;
    return TARN_OK;
}

static uint32_t result_category(const struct tarn_tracker *t, const struct tarn_track_event *event)
{
    if (event->category != TARN_TRACK_AUTO) {
        return event->category;
    }
    if (t->in_step) {
        return TARN_TRACK_OPTSTATE;
    }
    return (event->flags & TARN_TRACK_BACKWARD) && !t->in_recomputation ? TARN_TRACK_TEMP
                                                                        : TARN_TRACK_ACTIVATION;
}

static enum tarn_status check_category(const struct tarn_tracker *t,
                                       const struct tarn_track_event *event,
                                       struct tarn_error *error)
{
    return event->category == TARN_TRACK_AUTO ||
                   name_is_known(t, TARN_TRACK_CATEGORY, event->category)
               ? TARN_OK
               : event_fail(event, TARN_ERR_NOT_FOUND, error, "its category has no name");
}

/* [_track] */
static enum tarn_status apply_create(struct tarn_tracker *t, const struct tarn_track_event *event,
                                     struct tarn_error *error)
{
    struct tn_storage *storage;
    const enum tarn_status st = check_category(t, event, error);

    if (st || t->tensor_is_done) {
        t->tensor_is_done = !st && (event->flags & TARN_TRACK_MORE);
        return st;
    }
    storage = tn_storage_find(&t->storages, event->id);
    t->tensor_is_done = storage && !t->options.all_storages && (event->flags & TARN_TRACK_MORE);
    return storage ? set_size(t, event, storage, error)
                   : storage_enter(t, event, result_category(t, event), tn_track_innermost(t),
                                   &storage, error);
}

/* Counts a storage as part of the module that is being entered for the first time. */
static void count_for_entering(struct tarn_tracker *t, const struct tn_storage *storage)
{
    struct tn_module *module = t->entering;

    if (storage->category == TARN_TRACK_PARAMETER) {
        module->parameter_bytes = add_capped(module->parameter_bytes, storage->bytes);
    } else if (storage->category == TARN_TRACK_BUFFER) {
        module->buffer_bytes = add_capped(module->buffer_bytes, storage->bytes);
    }
}

/* [_update_and_maybe_create_winfos] */
static enum tarn_status apply_classify(struct tarn_tracker *t, const struct tarn_track_event *event,
                                       struct tarn_error *error)
{
    struct tn_storage *storage = tn_storage_find(&t->storages, event->id);
    const bool is_new_modules = t->entering && t->entering_is_new;
    const uint32_t module = is_new_modules ? t->entering->name : tn_track_innermost(t);
    const uint32_t category = result_category(t, event);
    enum tarn_status st = check_category(t, event, error);
    uint32_t owner;

    if (st) {
        return st;
    }
    if (!storage) {
        st = storage_enter(t, event, category, module, &storage, error);
        if (st) {
            return st;
        }
        tn_assert(storage != NULL);
    } else if (is_new_modules) {
        if (!tn_owner_get(&t->owners, module, storage->device, &owner)) {
            return no_memory(event, error);
        }
        set_owner(t, storage, owner);
    }
    set_category(t, storage, category);
    if (is_new_modules) {
        count_for_entering(t, storage);
    }
    return TARN_OK;
}

static enum tarn_status apply_resize(struct tarn_tracker *t, const struct tarn_track_event *event,
                                     struct tarn_error *error)
{
    struct tn_storage *storage = tn_storage_find(&t->storages, event->id);

    return storage ? set_size(t, event, storage, error)
                   : event_fail(event, TARN_ERR_NOT_FOUND, error,
                                "it is unknown: never created, or already deleted");
}

/* [_delete_callback] */
static enum tarn_status apply_delete(struct tarn_tracker *t, const struct tarn_track_event *event,
                                     struct tarn_error *error)
{
    struct tn_storage *storage = tn_storage_find(&t->storages, event->id);

    if (!storage) {
        return event_fail(event, TARN_ERR_NOT_FOUND, error,
                          "it is unknown: never created, or already deleted");
    }
    if (storage->bytes > 0) {
        count_change(t, storage, -storage->bytes);
        drop_empty_row(t, storage->device);
    }
    tn_storage_remove(&t->storages, storage);
    return TARN_OK;
}

/* ---- active modules ---- */

/* Space must be reserved. */
static void scope_begin(struct tarn_tracker *t, uint32_t name)
{
    if (tn_track_scope(t, name)->active++ == 0) {
        active_names(t)[t->active.count++] = name;
    }
}

static void scope_end(struct tarn_tracker *t, uint32_t name)
{
    struct tn_scope *scope = tn_track_scope(t, name);
    size_t at = t->active.count;

    if (scope->active == 0 || --scope->active > 0) {
        return;
    }
    do {
        at--;
    } while (active_names(t)[at] != name);
    t->active.count--;
    for (; at < t->active.count; at++) {
        active_names(t)[at] = active_names(t)[at + 1];
    }
}

static void scopes_end(struct tarn_tracker *t)
{
    for (size_t i = 0; i < t->active.count; i++) {
        tn_track_scope(t, active_names(t)[i])->active = 0;
    }
    t->active.count = 0;
}

/* Whether only modules of that name are active. */
static bool scope_is_root(const struct tarn_tracker *t, uint32_t name)
{
    return t->active.count == 0 || (t->active.count == 1 && active_names(t)[0] == name);
}

/* ---- modules ---- */

static void chain_enter(struct tarn_tracker *t, struct tn_module *module)
{
    struct tn_scope *scope = tn_track_scope(t, module->name);

    module->next_of_name = scope->first;
    scope->first = module;
}

static void chain_leave(struct tarn_tracker *t, const struct tn_module *module)
{
    struct tn_module **at = &tn_track_scope(t, module->name)->first;

    while (*at != module) {
        at = &(*at)->next_of_name;
    }
    *at = module->next_of_name;
}

struct tn_module *tn_track_module_at(const struct tarn_tracker *t, size_t at)
{
    return ((struct tn_module **)t->order.items)[at];
}

/* Records the module in a state. */
static void add_call(struct tarn_tracker *t, struct tn_module *module, uint32_t state)
{
    tn_module_add_call(module, state, &t->now, t->options.calls_kept);
}

static bool reserve_call(struct tarn_tracker *t, struct tn_module *module, uint32_t state)
{
    return tn_module_reserve_call(module, state, device_count(t), t->options.calls_kept);
}

/* Memory for finish_entering, before what else may fail: an event that fails changes nothing. */
static bool reserve_entering(struct tarn_tracker *t)
{
    const bool is_forward = t->entering_state == TARN_TRACK_PRE_FORWARD;

    return !t->entering ||
           ((!is_forward || reserve_call(t, t->entering, TARN_TRACK_PEAK_FORWARD)) &&
            reserve_call(t, t->entering, t->entering_state));
}

/* The end of [_pre_fw_hook], if a module is being entered. */
static void finish_entering(struct tarn_tracker *t)
{
    struct tn_module *module = t->entering;

    if (!module) {
        return;
    }
    if (t->entering_state == TARN_TRACK_PRE_FORWARD) {
        module->input_bytes = t->entering_inputs;
        tn_module_begin_peaks(module, &t->now);
        add_call(t, module, TARN_TRACK_PEAK_FORWARD);
    }
    add_call(t, module, t->entering_state);
    t->entering = NULL;
}

/* No module is being entered when another thread's events came in between. */
static enum tarn_status apply_ready(struct tarn_tracker *t, const struct tarn_track_event *event,
                                    struct tarn_error *error)
{
    if (!reserve_entering(t)) {
        return no_memory(event, error);
    }
    finish_entering(t);
    return TARN_OK;
}

static enum tarn_status module_enter_new(struct tarn_tracker *t,
                                         const struct tarn_track_event *event,
                                         struct tn_module **module_out, struct tarn_error *error)
{
    struct tn_module *module = tn_map_reserve(&t->modules, 1) && tn_vec_reserve(&t->order, 1)
                                   ? tn_module_create(event->id, event->name)
                                   : NULL;

    if (!module) {
        return no_memory(event, error);
    }
    tn_map_insert(&t->modules, event->id + 1, (uintptr_t)module);
    ((struct tn_module **)t->order.items)[t->order.count++] = module;
    chain_enter(t, module);
    *module_out = module;
    return TARN_OK;
}

/* A known module starts forward again; for a root that is a new iteration. */
static enum tarn_status module_enter_again(struct tarn_tracker *t,
                                           const struct tarn_track_event *event,
                                           struct tn_module *module, struct tarn_error *error)
{
    if (scope_is_root(t, event->name)) {
        if (t->options.one_iteration) {
            return event_fail(
                event, TARN_ERR_STATE, error,
                "MemTracker does not support memory tracking for multiple iterative calls. Either "
                "use ``reset_mod_stats`` to clear module memory stats for the previous iteration "
                "or file a github issue if you need this feature.");
        }
        if (!tn_iteration_list_reserve(&t->iterations)) {
            return no_memory(event, error);
        }
        tn_iteration_list_begin(&t->iterations, &t->now, t->total);
    }
    if (module->name != event->name) {
        chain_leave(t, module);
        module->name = event->name;
        chain_enter(t, module);
    }
    return TARN_OK;
}

/* The start of [_pre_fw_hook]. */
static enum tarn_status apply_enter(struct tarn_tracker *t, const struct tarn_track_event *event,
                                    struct tarn_error *error)
{
    struct tn_module *module = tn_track_module_find(t, event->id);
    const bool is_new = !module;
    const bool recomputes = module && (event->flags & TARN_TRACK_BACKWARD);
    enum tarn_status st = TARN_OK;

    if (!name_is_known(t, TARN_TRACK_MODULE, event->name)) {
        return event_fail(event, TARN_ERR_NOT_FOUND, error, "it has no name");
    }
    if (!reserve_entering(t) || !tn_vec_reserve(&t->active, 1)) {
        return no_memory(event, error);
    }
    if (is_new) {
        st = module_enter_new(t, event, &module, error);
    } else if (!recomputes) {
        st = module_enter_again(t, event, module, error);
    }
    if (st) {
        return st;
    }
    finish_entering(t);
    if (recomputes && !t->in_recomputation) {
        t->in_recomputation = true;
        t->recomputed = event->id;
    }
    scope_begin(t, event->name);
    t->entering = module;
    t->entering_is_new = is_new;
    t->entering_state = recomputes ? TARN_TRACK_PRE_FORWARD_AC : TARN_TRACK_PRE_FORWARD;
    t->entering_inputs = 0;
    t->leaving_outputs = 0;
    return TARN_OK;
}

/* [_track_inputs_or_outputs]: unknown storages count nothing. */
static int64_t known_bytes(const struct tarn_tracker *t, uint64_t id)
{
    const struct tn_storage *storage = tn_storage_find(&t->storages, id);

    return storage ? storage->bytes : 0;
}

static enum tarn_status apply_input(struct tarn_tracker *t, const struct tarn_track_event *event,
                                    struct tarn_error *error)
{
    (void)error;
    if (t->entering) {
        t->entering_inputs = add_capped(t->entering_inputs, known_bytes(t, event->id));
    }
    return TARN_OK;
}

static enum tarn_status apply_output(struct tarn_tracker *t, const struct tarn_track_event *event,
                                     struct tarn_error *error)
{
    (void)error;
    t->leaving_outputs = add_capped(t->leaving_outputs, known_bytes(t, event->id));
    return TARN_OK;
}

static enum tarn_status module_get(struct tarn_tracker *t, const struct tarn_track_event *event,
                                   struct tn_module **module_out, struct tarn_error *error)
{
    *module_out = tn_track_module_find(t, event->id);
    return *module_out ? TARN_OK
                       : event_fail(event, TARN_ERR_NOT_FOUND, error,
                                    "it is unknown: never entered, or destroyed");
}

/* [_post_fw_hook] */
static enum tarn_status apply_leave(struct tarn_tracker *t, const struct tarn_track_event *event,
                                    struct tarn_error *error)
{
    const bool backward = event->flags & TARN_TRACK_BACKWARD;
    const uint32_t state = backward ? TARN_TRACK_POST_FORWARD_AC : TARN_TRACK_POST_FORWARD;
    struct tn_module *module = NULL;
    const enum tarn_status st = module_get(t, event, &module, error);

    if (st) {
        return st;
    }
    if (!backward && tn_track_scope(t, module->name)->active == 0) {
        return event_fail(event, TARN_ERR_STATE, error, "it was not entered, or left before");
    }
    if (!reserve_entering(t) || !reserve_call(t, module, state)) {
        return no_memory(event, error);
    }
    finish_entering(t);
    if (!backward) {
        module->output_bytes = t->leaving_outputs;
    } else if (t->in_recomputation && t->recomputed == event->id) {
        t->in_recomputation = false;
    }
    t->leaving_outputs = 0;
    add_call(t, module, state);
    scope_end(t, module->name);
    return TARN_OK;
}

/* [_pre_bw_hook] */
static enum tarn_status apply_enter_backward(struct tarn_tracker *t,
                                             const struct tarn_track_event *event,
                                             struct tarn_error *error)
{
    struct tn_module *module = NULL;
    const enum tarn_status st = module_get(t, event, &module, error);

    if (st) {
        return st;
    }
    if (!reserve_entering(t) || !tn_vec_reserve(&t->active, 1) ||
        !reserve_call(t, module, TARN_TRACK_PEAK_BACKWARD) ||
        !reserve_call(t, module, TARN_TRACK_PRE_BACKWARD)) {
        return no_memory(event, error);
    }
    finish_entering(t);
    scope_begin(t, module->name);
    tn_module_begin_peaks(module, &t->now);
    add_call(t, module, TARN_TRACK_PEAK_BACKWARD);
    add_call(t, module, TARN_TRACK_PRE_BACKWARD);
    return TARN_OK;
}

/* [_post_bw_hook]. A module whose inputs need no gradient may be left while inactive: the end of
 * backward already deactivated it. */
static enum tarn_status apply_leave_backward(struct tarn_tracker *t,
                                             const struct tarn_track_event *event,
                                             struct tarn_error *error)
{
    struct tn_module *module = NULL;
    const enum tarn_status st = module_get(t, event, &module, error);

    if (st) {
        return st;
    }
    if (!reserve_call(t, module, TARN_TRACK_POST_BACKWARD)) {
        return no_memory(event, error);
    }
    add_call(t, module, TARN_TRACK_POST_BACKWARD);
    scope_end(t, module->name);
    return TARN_OK;
}

static enum tarn_status apply_end_backward(struct tarn_tracker *t,
                                           const struct tarn_track_event *event,
                                           struct tarn_error *error)
{
    (void)event;
    (void)error;
    scopes_end(t);
    return TARN_OK;
}

/* ---- other events ---- */

static enum tarn_status apply_begin_step(struct tarn_tracker *t,
                                         const struct tarn_track_event *event,
                                         struct tarn_error *error)
{
    (void)event;
    (void)error;
    t->in_step = true;
    return TARN_OK;
}

static enum tarn_status apply_end_step(struct tarn_tracker *t, const struct tarn_track_event *event,
                                       struct tarn_error *error)
{
    (void)event;
    (void)error;
    t->in_step = false;
    return TARN_OK;
}

static enum tarn_status apply_active(struct tarn_tracker *t, const struct tarn_track_event *event,
                                     struct tarn_error *error)
{
    if (!name_is_known(t, TARN_TRACK_MODULE, event->name)) {
        return event_fail(event, TARN_ERR_NOT_FOUND, error, "the module has no name");
    }
    return tn_vec_add(&t->listed, &event->name) ? TARN_OK : no_memory(event, error);
}

static void raise_peaks_of(struct tarn_tracker *t, uint32_t name, uint32_t state)
{
    for (struct tn_module *module = tn_track_scope(t, name)->first; module;
         module = module->next_of_name) {
        struct tn_breakdown *call = tn_module_newest_call(module, state);

        if (call) {
            tn_module_raise_peaks(module, call, &t->now);
        }
    }
}

static void raise_peaks(struct tarn_tracker *t)
{
    for (size_t i = 0; i < t->now.count; i++) {
        const struct tarn_track_row *row = &t->now.rows[i];
        const struct tarn_track_row *peak = tn_breakdown_find(&t->peaks, row->device);

        if (row->total > (peak ? peak->total : 0)) {
            tn_breakdown_put(&t->peaks, row);
            tn_owner_begin_device_peak(&t->owners, row->device);
        }
    }
    if (t->total > t->total_peak_bytes) {
        t->total_peak_bytes = t->total;
        tn_breakdown_copy(&t->total_peak, &t->now);
        tn_owner_begin_point(&t->owners);
    }
    tn_iteration_list_op_done(&t->iterations, &t->now, t->total);
}

/* [_update_peak_stats] */
static enum tarn_status apply_op_done(struct tarn_tracker *t, const struct tarn_track_event *event,
                                      struct tarn_error *error)
{
    const struct tn_vec *names = t->listed.count > 0 ? &t->listed : &t->active;
    uint32_t state =
        event->flags & TARN_TRACK_BACKWARD ? TARN_TRACK_PEAK_BACKWARD : TARN_TRACK_PEAK_FORWARD;

    if (event->flags & TARN_TRACK_IN_STATE) {
        state = event->name;
        if (!name_is_known(t, TARN_TRACK_STATE, state)) {
            return event_fail(event, TARN_ERR_NOT_FOUND, error, "its state has no name");
        }
    }
    if (!reserve_entering(t)) {
        return no_memory(event, error);
    }
    finish_entering(t);
    for (size_t i = 0; i < names->count; i++) {
        raise_peaks_of(t, ((const uint32_t *)names->items)[i], state);
    }
    t->listed.count = 0;
    raise_peaks(t);
    return TARN_OK;
}

/* [__enter__] */
static enum tarn_status apply_start(struct tarn_tracker *t, const struct tarn_track_event *event,
                                    struct tarn_error *error)
{
    if (!tn_iteration_list_reserve(&t->iterations)) {
        return no_memory(event, error);
    }
    tn_breakdown_copy(&t->peaks, &t->now);
    tn_breakdown_copy(&t->total_peak, &t->now);
    t->total_peak_bytes = t->total;
    for (uint32_t i = 0; i < device_count(t); i++) {
        tn_owner_begin_device_peak(&t->owners, i);
    }
    tn_owner_begin_point(&t->owners);
    tn_iteration_list_begin(&t->iterations, &t->now, t->total);
    return TARN_OK;
}

static enum tarn_status apply_begin_iteration(struct tarn_tracker *t,
                                              const struct tarn_track_event *event,
                                              struct tarn_error *error)
{
    if (!tn_iteration_list_reserve(&t->iterations)) {
        return no_memory(event, error);
    }
    tn_iteration_list_begin(&t->iterations, &t->now, t->total);
    return TARN_OK;
}

/* The module is no longer in any table. */
static void module_drop(struct tarn_tracker *t, struct tn_module *module)
{
    chain_leave(t, module);
    if (t->entering == module) {
        t->entering = NULL;
    }
    tn_module_destroy(module);
}

static enum tarn_status apply_reset_modules(struct tarn_tracker *t,
                                            const struct tarn_track_event *event,
                                            struct tarn_error *error)
{
    const enum tarn_status st = apply_begin_iteration(t, event, error);
    uint64_t value;

    if (st) {
        return st;
    }
    for (size_t i = 0; i < t->order.count; i++) {
        struct tn_module *module = tn_track_module_at(t, i);

        (void)tn_map_take(&t->modules, module->id + 1, &value);
        module_drop(t, module);
    }
    t->order.count = 0;
    return TARN_OK;
}

static enum tarn_status apply_forget_module(struct tarn_tracker *t,
                                            const struct tarn_track_event *event,
                                            struct tarn_error *error)
{
    struct tn_module **order = t->order.items;
    struct tn_module *module;
    const enum tarn_status st = module_get(t, event, &module, error);
    uint64_t value;
    size_t at = 0;

    if (st) {
        return st;
    }
    while (order[at] != module) {
        at++;
    }
    t->order.count--;
    for (; at < t->order.count; at++) {
        order[at] = order[at + 1];
    }
    (void)tn_map_take(&t->modules, event->id + 1, &value);
    module_drop(t, module);
    return TARN_OK;
}

enum tarn_status tn_track_apply(struct tarn_tracker *tracker, const struct tarn_track_event *event,
                                struct tarn_error *error)
{
    static enum tarn_status (*const apply[TARN_TRACK_KIND_COUNT])(
        struct tarn_tracker *, const struct tarn_track_event *, struct tarn_error *) = {
        [TARN_TRACK_CREATE] = apply_create,
        [TARN_TRACK_CLASSIFY] = apply_classify,
        [TARN_TRACK_RESIZE] = apply_resize,
        [TARN_TRACK_DELETE] = apply_delete,
        [TARN_TRACK_ENTER] = apply_enter,
        [TARN_TRACK_INPUT] = apply_input,
        [TARN_TRACK_OUTPUT] = apply_output,
        [TARN_TRACK_READY] = apply_ready,
        [TARN_TRACK_LEAVE] = apply_leave,
        [TARN_TRACK_ENTER_BACKWARD] = apply_enter_backward,
        [TARN_TRACK_LEAVE_BACKWARD] = apply_leave_backward,
        [TARN_TRACK_END_BACKWARD] = apply_end_backward,
        [TARN_TRACK_BEGIN_STEP] = apply_begin_step,
        [TARN_TRACK_END_STEP] = apply_end_step,
        [TARN_TRACK_OP_DONE] = apply_op_done,
        [TARN_TRACK_ACTIVE] = apply_active,
        [TARN_TRACK_START] = apply_start,
        [TARN_TRACK_RESET_MODULES] = apply_reset_modules,
        [TARN_TRACK_FORGET_MODULE] = apply_forget_module,
        [TARN_TRACK_BEGIN_ITERATION] = apply_begin_iteration,
    };

    tn_assert(tn_lock_is_held(&tracker->lock));
    if (event->kind >= TARN_TRACK_KIND_COUNT) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT, "unknown kind of event %u",
                       (unsigned)event->kind);
    }
    if (event->id == UINT64_MAX) {
        return event_fail(event, TARN_ERR_INVALID_ARGUMENT, error, "no id has this number");
    }
    return apply[event->kind](tracker, event, error);
}
