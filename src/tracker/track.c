/* SPDX-License-Identifier: MIT */
/* Implements tarn/tracker.h except its texts and logs: lifetime, events and queries. */
#include "base/assertion.h"
#include "base/errinfo.h"
#include "base/host_mem.h"
#include "tarn/event.h"
#include "tracker/track_core.h"

#include <string.h>

static const uint32_t names_max[TARN_TRACK_NAMES_COUNT] = {
    [TARN_TRACK_DEVICE] = TARN_TRACK_DEVICES_MAX,
    [TARN_TRACK_CATEGORY] = TARN_TRACK_CATEGORIES_MAX,
    [TARN_TRACK_STATE] = TARN_TRACK_STATES_MAX,
    [TARN_TRACK_MODULE] = TARN_TRACK_MODULES_MAX,
};

static const char *const names_texts[TARN_TRACK_NAMES_COUNT] = {
    [TARN_TRACK_DEVICE] = "devices",
    [TARN_TRACK_CATEGORY] = "categories",
    [TARN_TRACK_STATE] = "states",
    [TARN_TRACK_MODULE] = "module names",
};

/* ---- lifetime ---- */

static const char *const first_categories[] = {
#define CATEGORY_TEXT(name, text) text,
    TARN_TRACK_CATEGORY_MAP(CATEGORY_TEXT)
#undef CATEGORY_TEXT
};

static const char *const first_states[] = {
#define STATE_TEXT(name, text) text,
    TARN_TRACK_STATE_MAP(STATE_TEXT)
#undef STATE_TEXT
};

static enum tarn_status add_first_names(struct tarn_tracker *t, struct tarn_error *error)
{
    enum tarn_status st = TARN_OK;
    uint32_t id;

    for (size_t i = 0; !st && i < TARN_TRACK_CATEGORY_COUNT; i++) {
        st = tarn_tracker_add_name(t, TARN_TRACK_CATEGORY, first_categories[i], &id, error);
    }
    for (size_t i = 0; !st && i < TARN_TRACK_STATE_COUNT; i++) {
        st = tarn_tracker_add_name(t, TARN_TRACK_STATE, first_states[i], &id, error);
    }
    return st ? st : tarn_tracker_add_name(t, TARN_TRACK_MODULE, "Global", &id, error);
}

static enum tarn_status take_options(struct tarn_tracker *t,
                                     const struct tarn_tracker_options *options,
                                     struct tarn_error *error)
{
    const uint64_t granularity = options ? options->granularity : 0;

    if (options && options->struct_size != sizeof *options) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                       "the options of the tracker have an unknown size of %u bytes",
                       (unsigned)options->struct_size);
    }
    if (granularity > 1 << 30 || (granularity & (granularity - 1)) != 0) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                       "the granularity of %llu bytes is not a power of two up to 1 GiB",
                       (unsigned long long)granularity);
    }
    if (options) {
        t->options = *options;
    }
    t->options.granularity = granularity ? granularity : TN_TRACK_GRANULARITY;
    return TARN_OK;
}

enum tarn_status tarn_tracker_create(const struct tarn_tracker_options *options,
                                     struct tarn_tracker **tracker_out, struct tarn_error *error)
{
    struct tarn_tracker *t = tn_os_forks_watch() ? tn_host_alloc_zero(sizeof *t) : NULL;
    enum tarn_status st;

    if (!t) {
        return tn_fail_memory(error);
    }
    tn_lock_init(&t->lock, TN_LOCK_SINK);
    tn_fork_watch_init(&t->fork, NULL);
    for (size_t i = 0; i < TARN_TRACK_NAMES_COUNT; i++) {
        tn_name_list_init(&t->names[i], names_max[i]);
    }
    tn_storage_table_init(&t->storages);
    tn_owner_table_init(&t->owners);
    tn_iteration_list_init(&t->iterations);
    tn_vec_init(&t->order, sizeof(struct tn_module *));
    tn_vec_init(&t->scopes, sizeof(struct tn_scope));
    tn_vec_init(&t->active, sizeof(uint32_t));
    tn_vec_init(&t->listed, sizeof(uint32_t));
    st = take_options(t, options, error);
    st = st ? st : add_first_names(t, error);
    if (st) {
        tarn_tracker_destroy(t);
        return st;
    }
    *tracker_out = t;
    return TARN_OK;
}

void tarn_tracker_destroy(struct tarn_tracker *t)
{
    if (!t || tn_fork_passed(&t->fork)) {
        return;
    }
    tn_fork_watch_fini(&t->fork);
    for (size_t i = 0; i < t->order.count; i++) {
        tn_module_destroy(tn_track_module_at(t, i));
    }
    tn_map_fini(&t->modules);
    tn_vec_fini(&t->order);
    tn_vec_fini(&t->scopes);
    tn_vec_fini(&t->active);
    tn_vec_fini(&t->listed);
    tn_iteration_list_fini(&t->iterations);
    tn_breakdown_fini(&t->at_end);
    tn_breakdown_fini(&t->now);
    tn_breakdown_fini(&t->peaks);
    tn_breakdown_fini(&t->total_peak);
    tn_owner_table_fini(&t->owners);
    tn_storage_table_fini(&t->storages);
    for (size_t i = 0; i < TARN_TRACK_NAMES_COUNT; i++) {
        tn_name_list_fini(&t->names[i]);
    }
    tn_lock_fini(&t->lock);
    tn_host_free(t, sizeof *t);
}

/* ---- names ---- */

const char *tn_track_name(const struct tarn_tracker *t, enum tarn_track_names names, uint32_t id)
{
    return tn_name_list_text(&t->names[names], id);
}

static bool reserve_rows_of_module(const struct tn_module *module, size_t devices)
{
    for (size_t i = 0; i < module->state_count; i++) {
        struct tn_breakdown *call =
            tn_module_newest_call(module, tn_module_state_at(module, i)->state);

        if (!tn_breakdown_reserve(call, devices)) {
            return false;
        }
    }
    return true;
}

/* Reserves space for one more device in every peak. */
static bool reserve_rows(struct tarn_tracker *t, size_t devices)
{
    if (!tn_breakdown_reserve(&t->now, devices) || !tn_breakdown_reserve(&t->peaks, devices) ||
        !tn_breakdown_reserve(&t->total_peak, devices)) {
        return false;
    }
    for (size_t i = 0; i < t->order.count; i++) {
        if (!reserve_rows_of_module(tn_track_module_at(t, i), devices)) {
            return false;
        }
    }
    return true;
}

/* Allocates what else a new name needs, before the name itself; harmless if adding the name
 * fails. */
static bool reserve_for_name(struct tarn_tracker *t, enum tarn_track_names names)
{
    const size_t count = tn_name_list_count(&t->names[names]);

    if (names == TARN_TRACK_MODULE) {
        return tn_vec_reserve(&t->scopes, 1);
    }
    return names != TARN_TRACK_DEVICE || count >= TARN_TRACK_DEVICES_MAX ||
           reserve_rows(t, count + 1);
}

/* PyTorch's allocator rounds only on its own devices: type "cuda" with any index. */
static bool device_rounds(const char *text)
{
    return strncmp(text, "cuda", 4) == 0 && (text[4] == '\0' || text[4] == ':');
}

static enum tarn_status add_name(struct tarn_tracker *t, enum tarn_track_names names,
                                 const char *text, uint32_t *id_out)
{
    const uint32_t count = tn_name_list_count(&t->names[names]);
    enum tarn_status st;

    tn_assert(tn_lock_is_held(&t->lock));
    if (!reserve_for_name(t, names)) {
        return TARN_ERR_HOST_MEMORY;
    }
    st = tn_name_list_add(&t->names[names], text, id_out);
    if (st || *id_out < count) {
        return st;
    }
    if (names == TARN_TRACK_MODULE) {
        ((struct tn_scope *)t->scopes.items)[t->scopes.count++] = (struct tn_scope){0};
    } else if (names == TARN_TRACK_DEVICE) {
        t->rounds[*id_out] = device_rounds(text);
    }
    return TARN_OK;
}

enum tarn_status tarn_tracker_add_name(struct tarn_tracker *t, enum tarn_track_names names,
                                       const char *text, uint32_t *id_out, struct tarn_error *error)
{
    enum tarn_status st;

    if (tn_fork_passed(&t->fork)) {
        return tn_fork_refuse(error, "the tracker");
    }
    if ((unsigned)names >= TARN_TRACK_NAMES_COUNT || !text || text[0] == '\0') {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT, "a name of the tracker is empty");
    }
    if (strlen(text) >= TARN_TRACK_NAME_MAX) {
        return tn_fail(error, TARN_ERR_LIMIT, "a name of the tracker has more than %d bytes",
                       TARN_TRACK_NAME_MAX - 1);
    }
    tn_lock_acquire(&t->lock);
    st = add_name(t, names, text, id_out);
    tn_lock_release(&t->lock);
    if (st == TARN_ERR_LIMIT) {
        return tn_fail(error, st, "a tracker has at most %u %s", (unsigned)names_max[names],
                       names_texts[names]);
    }
    return st ? tn_fail_memory(error) : TARN_OK;
}

const char *tarn_tracker_get_name(struct tarn_tracker *t, enum tarn_track_names names, uint32_t id)
{
    const char *text = NULL;

    if ((unsigned)names < TARN_TRACK_NAMES_COUNT && !tn_fork_passed(&t->fork)) {
        tn_lock_acquire(&t->lock);
        text = tn_track_name(t, names, id);
        tn_lock_release(&t->lock);
    }
    return text;
}

uint32_t tarn_tracker_count_names(struct tarn_tracker *t, enum tarn_track_names names)
{
    uint32_t count = 0;

    if ((unsigned)names < TARN_TRACK_NAMES_COUNT && !tn_fork_passed(&t->fork)) {
        tn_lock_acquire(&t->lock);
        count = tn_name_list_count(&t->names[names]);
        tn_lock_release(&t->lock);
    }
    return count;
}

/* ---- events ---- */

/* The scope callback to make after an event. */
struct scope_news {
    const char *module; /* NULL = nothing happened */
    const char *innermost;
    bool begins;
    bool backward;
};

static bool event_begins_scope(const struct tarn_track_event *event)
{
    return event->kind == TARN_TRACK_ENTER || event->kind == TARN_TRACK_ENTER_BACKWARD;
}

static bool event_ends_scope(const struct tarn_track_event *event)
{
    return event->kind == TARN_TRACK_LEAVE || event->kind == TARN_TRACK_LEAVE_BACKWARD;
}

/* After the event was applied, when the module is known. */
static struct scope_news news_of(const struct tarn_tracker *t, const struct tarn_track_event *event)
{
    struct scope_news news = {.innermost =
                                  tn_track_name(t, TARN_TRACK_MODULE, tn_track_innermost(t))};

    if (event_begins_scope(event) || event_ends_scope(event)) {
        const struct tn_module *module = tn_track_module_find(t, event->id);

        tn_assert(module);
        news.module = tn_track_name(t, TARN_TRACK_MODULE, module->name);
        news.begins = event_begins_scope(event);
        news.backward = (event->flags & TARN_TRACK_BACKWARD) ||
                        event->kind == TARN_TRACK_ENTER_BACKWARD ||
                        event->kind == TARN_TRACK_LEAVE_BACKWARD;
    }
    return news;
}

/* Labels are best effort: out of memory keeps the old one, and of a long name the end is kept. */
static void set_label(const char *name)
{
    const size_t length = strlen(name);
    const char *text = length < TARN_LABEL_MAX ? name : name + (length - TARN_LABEL_MAX + 1);

    while (((unsigned char)*text & 0xc0) == 0x80) { /* not in the middle of a character */
        text++;
    }
    (void)!tarn_set_user_metadata(strcmp(name, "Global") == 0 ? "" : text);
}

static void tell(const struct tarn_tracker *t, const struct scope_news *news)
{
    if (!news->module) {
        return;
    }
    if (t->options.label_allocations) {
        set_label(news->innermost);
    }
    if (t->options.scope) {
        t->options.scope(t->options.scope_context, news->module, news->begins, news->backward);
    }
}

/* One event at a time, because scope callbacks run without the lock. */
static enum tarn_status apply_and_tell(struct tarn_tracker *t, const struct tarn_track_event *event,
                                       struct tarn_error *error)
{
    struct scope_news news = {0};
    enum tarn_status st;

    tn_lock_acquire(&t->lock);
    st = tn_track_apply(t, event, error);
    if (st == TARN_OK) {
        news = news_of(t, event);
    }
    tn_lock_release(&t->lock);
    tell(t, &news);
    return st;
}

static enum tarn_status apply_all(struct tarn_tracker *t, const struct tarn_track_event *events,
                                  size_t count, size_t *applied_out, struct tarn_error *error)
{
    enum tarn_status st = TARN_OK;
    size_t i = 0;

    tn_lock_acquire(&t->lock);
    for (; i < count; i++) {
        st = tn_track_apply(t, &events[i], error);
        if (tn_unlikely(st != TARN_OK)) {
            break;
        }
    }
    tn_lock_release(&t->lock);
    *applied_out = i;
    return st;
}

enum tarn_status tarn_tracker_apply(struct tarn_tracker *t, const struct tarn_track_event *events,
                                    size_t count, size_t *applied_out, struct tarn_error *error)
{
    enum tarn_status st = TARN_OK;
    size_t applied = 0;

    if (tn_fork_passed(&t->fork)) {
        st = tn_fork_refuse(error, "the tracker");
    } else if (t->options.scope || t->options.label_allocations) {
        while (applied < count && !st) {
            st = apply_and_tell(t, &events[applied], error);
            applied += st == TARN_OK;
        }
    } else {
        st = apply_all(t, events, count, &applied, error);
    }
    if (applied_out) {
        *applied_out = applied;
    }
    return st;
}

/* ---- queries ---- */

const struct tn_breakdown *tn_track_breakdown(const struct tarn_tracker *t,
                                              enum tarn_track_point point)
{
    switch (point) {
    case TARN_TRACK_PEAKS:
        return &t->peaks;
    case TARN_TRACK_TOTAL_PEAK:
        return &t->total_peak;
    case TARN_TRACK_AT_END:
        return t->is_ending ? &t->at_end : &t->now;
    case TARN_TRACK_NOW:
    case TARN_TRACK_POINT_COUNT:
        break;
    }
    return &t->now;
}

struct tn_iteration tn_track_iteration(const struct tarn_tracker *t, size_t at)
{
    const struct tn_breakdown *end = tn_track_breakdown(t, TARN_TRACK_AT_END);
    int64_t total = 0;

    for (size_t i = 0; i < end->count; i++) {
        total += end->rows[i].total;
    }
    return tn_iteration_list_at(&t->iterations, at, end, total);
}

static void copy_rows(const struct tn_breakdown *from, struct tarn_track_row *rows, size_t capacity,
                      size_t *count_out)
{
    const size_t count = from->count < capacity ? from->count : capacity;

    if (count > 0) {
        memcpy(rows, from->rows, count * sizeof *rows);
    }
    *count_out = from->count;
}

void tarn_tracker_get_rows(struct tarn_tracker *t, enum tarn_track_point point,
                           struct tarn_track_row *rows, size_t capacity, size_t *count_out)
{
    if (tn_fork_passed(&t->fork)) {
        *count_out = 0;
        return;
    }
    tn_lock_acquire(&t->lock);
    copy_rows(tn_track_breakdown(t, point), rows, capacity, count_out);
    tn_lock_release(&t->lock);
}

size_t tarn_tracker_count_modules(struct tarn_tracker *t)
{
    if (tn_fork_passed(&t->fork)) {
        return 0;
    }
    tn_lock_acquire(&t->lock);
    const size_t count = t->order.count;

    tn_lock_release(&t->lock);
    return count;
}

enum tarn_status tarn_tracker_get_module(struct tarn_tracker *t, size_t index,
                                         struct tarn_track_module *module_out)
{
    enum tarn_status st = TARN_ERR_NOT_FOUND;

    if (module_out->struct_size != sizeof *module_out) {
        return TARN_ERR_INVALID_ARGUMENT;
    }
    if (tn_fork_passed(&t->fork)) {
        return TARN_ERR_STATE;
    }
    tn_lock_acquire(&t->lock);
    if (index < t->order.count) {
        const struct tn_module *module = tn_track_module_at(t, index);

        *module_out = (struct tarn_track_module){
            .struct_size = sizeof *module_out,
            .name = module->name,
            .id = module->id,
            .parameter_bytes = module->parameter_bytes,
            .buffer_bytes = module->buffer_bytes,
            .input_bytes = module->input_bytes,
            .output_bytes = module->output_bytes,
            .state_count = (uint32_t)module->state_count,
        };
        st = TARN_OK;
    }
    tn_lock_release(&t->lock);
    return st;
}

static const struct tn_module_state *find_state(const struct tarn_tracker *t, size_t index,
                                                size_t state_index)
{
    const struct tn_module *module = index < t->order.count ? tn_track_module_at(t, index) : NULL;

    return module && state_index < module->state_count ? tn_module_state_at(module, state_index)
                                                       : NULL;
}

enum tarn_status tarn_tracker_get_state(struct tarn_tracker *t, size_t index, size_t state_index,
                                        uint32_t *state_out, size_t *call_count_out)
{
    if (tn_fork_passed(&t->fork)) {
        return TARN_ERR_STATE;
    }
    tn_lock_acquire(&t->lock);
    const struct tn_module_state *state = find_state(t, index, state_index);

    if (state) {
        *state_out = state->state;
        *call_count_out = state->calls.count;
    }
    tn_lock_release(&t->lock);
    return state ? TARN_OK : TARN_ERR_NOT_FOUND;
}

enum tarn_status tarn_tracker_get_call(struct tarn_tracker *t, size_t index, size_t state_index,
                                       size_t call, struct tarn_track_row *rows, size_t capacity,
                                       size_t *count_out)
{
    if (tn_fork_passed(&t->fork)) {
        return TARN_ERR_STATE;
    }
    tn_lock_acquire(&t->lock);
    const struct tn_module_state *state = find_state(t, index, state_index);
    const bool found = state && call < state->calls.count;

    if (found) {
        copy_rows((const struct tn_breakdown *)state->calls.items + call, rows, capacity,
                  count_out);
    }
    tn_lock_release(&t->lock);
    return found ? TARN_OK : TARN_ERR_NOT_FOUND;
}

size_t tarn_tracker_count_iterations(struct tarn_tracker *t)
{
    if (tn_fork_passed(&t->fork)) {
        return 0;
    }
    tn_lock_acquire(&t->lock);
    const size_t count = tn_iteration_list_count(&t->iterations);

    tn_lock_release(&t->lock);
    return count;
}

enum tarn_status tarn_tracker_get_iteration(struct tarn_tracker *t, size_t index,
                                            struct tarn_track_iteration *iteration_out)
{
    struct tn_iteration found = {0};

    if (iteration_out->struct_size != sizeof *iteration_out) {
        return TARN_ERR_INVALID_ARGUMENT;
    }
    if (tn_fork_passed(&t->fork)) {
        return TARN_ERR_STATE;
    }
    tn_lock_acquire(&t->lock);
    const bool known = index < tn_iteration_list_count(&t->iterations);

    if (known) {
        found = tn_track_iteration(t, index);
    }
    tn_lock_release(&t->lock);
    if (!known) {
        return TARN_ERR_NOT_FOUND;
    }
    iteration_out->number = found.number;
    iteration_out->begin_bytes = found.begin_total;
    iteration_out->peak_bytes = found.peak_total;
    iteration_out->end_bytes = found.end_total;
    for (size_t c = 0; c < TARN_TRACK_CATEGORIES_MAX; c++) {
        iteration_out->growth[c] = found.end[c] - found.begin[c];
        iteration_out->peak[c] = found.peak[c];
    }
    return TARN_OK;
}

enum tarn_status tarn_tracker_get_owned(struct tarn_tracker *t, enum tarn_track_point point,
                                        uint32_t module, uint32_t device,
                                        struct tarn_track_row *row_out)
{
    const int64_t *bytes;
    enum tarn_status st = TARN_ERR_NOT_FOUND;

    *row_out = (struct tarn_track_row){.device = device};
    if (tn_fork_passed(&t->fork)) {
        return TARN_ERR_STATE;
    }
    tn_lock_acquire(&t->lock);
    if (tn_track_name(t, TARN_TRACK_MODULE, module) &&
        tn_track_name(t, TARN_TRACK_DEVICE, device)) {
        const struct tn_owner *owner = tn_owner_find(&t->owners, module, device);

        st = TARN_OK;
        if (owner) {
            bytes = tn_owner_bytes(&t->owners, owner, point);
            memcpy(row_out->bytes, bytes, sizeof row_out->bytes);
        }
    }
    tn_lock_release(&t->lock);
    for (size_t c = 0; c < TARN_TRACK_CATEGORIES_MAX; c++) {
        row_out->total += row_out->bytes[c];
    }
    return st;
}
