/* SPDX-License-Identifier: MIT */
/* Implements tarn/history.h: joins ring, tables of stacks and texts, and symbols. */
#include "history/history.h"

#include "base/errinfo.h"
#include "base/host_mem.h"
#include "base/os_wait.h"
#include "base/sized.h"
#include "history/label.h"
#include "history/libunwind.h"
#include "history/stack.h"
#include "history/symbol.h"

#include <string.h>

enum {
    FRAMES_DEFAULT = 64,
    ANNOTATIONS_DEFAULT = 4096,
    STACK_BYTES_DEFAULT = 64 << 20,
    TEXT_BYTES_DEFAULT = 4 << 20
};

/* ---- recording: stacks ---- */

static struct tn_interned *stack_of(uint64_t id)
{
    return (struct tn_interned *)(uintptr_t)id;
}

static void stack_gone(void *context, const void *bytes, size_t size)
{
    const struct tarn_history *history = context;
    uint64_t host_stack;

    (void)size;
    memcpy(&host_stack, bytes, sizeof host_stack);
    if (host_stack != 0 && history->host.release) {
        history->host.release(history->host.context, host_stack);
    }
}

static size_t walk_stack(const struct tarn_history *history, uint64_t *addresses, uint64_t *hash)
{
    const size_t max = history->options.max_frames;

    switch ((enum tarn_stack_source)atomic_load_explicit(&history->stack_source,
                                                         memory_order_relaxed)) {
    case TARN_STACK_FRAME_POINTERS:
        return tn_stack_walk(addresses, max, hash);
    case TARN_STACK_UNWIND:
        return tn_stack_unwind(addresses, max, hash);
    case TARN_STACK_NONE:
        break;
    }
    return 0;
}

static void set_stack_source(struct tarn_history *history, enum tarn_stack_source source)
{
    if (source == TARN_STACK_UNWIND) {
        tn_libunwind_load();
    }
    atomic_store_explicit(&history->stack_source, (int)source, memory_order_relaxed);
}

static uint64_t history_capture(void *context, enum tarn_context_level level)
{
    struct tarn_history *history = context;
    uint64_t words[1 + TARN_STACK_FRAMES_MAX];

    if (tn_fork_passed(&history->fork)) {
        return 0;
    }
    (void)level;
    words[0] = history->host.capture ? history->host.capture(history->host.context) : 0;
    uint64_t hash = tn_stack_hash(0, words[0]);
    const size_t count = walk_stack(history, words + 1, &hash);

    if (count == 0 && words[0] == 0) {
        return 0;
    }
    bool found;
    struct tn_interned *stack =
        tn_intern_get(&history->stacks, words, (1 + count) * sizeof *words, hash, &found);

    if ((found || !stack) && words[0] != 0 && history->host.release) {
        history->host.release(history->host.context, words[0]); /* the table keeps its own
                                                                   reference */
    }
    return (uint64_t)(uintptr_t)stack;
}

static void history_retain(void *context, uint64_t stack)
{
    (void)context;
    tn_interned_retain(stack_of(stack));
}

static void history_release(void *context, uint64_t stack)
{
    tn_interned_release(&((struct tarn_history *)context)->stacks, stack_of(stack));
}

/* ---- recording: events ---- */

static const struct tn_extra *extra_of(const struct tn_interned *piece)
{
    return (const struct tn_extra *)(const void *)piece->bytes;
}

struct tn_extra_view tn_history_extra(const struct tn_interned *extra)
{
    if (!extra) {
        return (struct tn_extra_view){.compile_context = tn_no_compile_context,
                                      .user_metadata = ""};
    }
    const struct tn_extra *e = extra_of(extra);

    return (struct tn_extra_view){
        .pool_id = {e->pool_id[0], e->pool_id[1]},
        .compile_context = e->texts,
        .user_metadata = e->texts + strlen(e->texts) + 1,
    };
}

static bool event_is_plain(const struct tarn_trace_event *event)
{
    return (event->pool_id[0] | event->pool_id[1]) == 0 && event->user_metadata[0] == '\0' &&
           (tn_likely(event->compile_context == tn_no_compile_context) ||
            strcmp(event->compile_context, tn_no_compile_context) == 0);
}

static bool extra_is_of(const struct tn_interned *extra, const struct tarn_trace_event *event)
{
    const struct tn_extra_view view = tn_history_extra(extra);

    return view.pool_id[0] == event->pool_id[0] && view.pool_id[1] == event->pool_id[1] &&
           strcmp(view.compile_context, event->compile_context) == 0 &&
           strcmp(view.user_metadata, event->user_metadata) == 0;
}

static void extra_drop(struct tarn_history *history, struct tn_interned *extra)
{
    if (extra) {
        tn_interned_release(&history->extras, extra);
    }
}

/* Interns the event's texts; NULL for lack of space. */
static TN_COLD struct tn_interned *extra_find(struct tarn_history *history,
                                              const struct tarn_trace_event *event)
{
    const size_t context_size = strlen(event->compile_context) + 1;
    const size_t metadata_size = strlen(event->user_metadata) + 1;
    const size_t size = sizeof(struct tn_extra) + context_size + metadata_size;
    struct tn_extra *extra = tn_host_alloc(size);
    struct tn_interned *piece = NULL;

    if (extra) {
        memcpy(extra->pool_id, event->pool_id, sizeof extra->pool_id);
        memcpy(extra->texts, event->compile_context, context_size);
        memcpy(extra->texts + context_size, event->user_metadata, metadata_size);
        piece = tn_intern_get(&history->extras, extra, size, tn_intern_hash(extra, size), NULL);
        tn_host_free(extra, size);
    } else {
        tn_intern_refuse(&history->extras);
    }
    return piece;
}

/* The interned extra for the event's pool and texts, with a reference for the ring's entry. Most
 * events reuse the previous one. */
static struct tn_interned *extra_get(struct tarn_history *history,
                                     const struct tarn_trace_event *event)
{
    if (tn_likely(event_is_plain(event))) {
        return NULL;
    }
    if (!history->last_extra || !extra_is_of(history->last_extra, event)) {
        extra_drop(history, history->last_extra);
        history->last_extra = extra_find(history, event);
    }
    if (history->last_extra) {
        tn_interned_retain(history->last_extra);
    }
    return history->last_extra;
}

static void entry_release(struct tarn_history *history, const struct tn_ring_entry *entry)
{
    if (entry->stack) {
        tn_interned_release(&history->stacks, entry->stack);
    }
    if (tn_unlikely(entry->extra != NULL)) {
        extra_drop(history, entry->extra);
    }
}

static void record(struct tarn_history *history, const struct tarn_trace_event *event)
{
    bool full;
    struct tn_ring_entry *entry = tn_ring_push(&history->ring, &full);

    if (full) {
        entry_release(history, entry);
    }
    entry->address = event->address;
    entry->size = event->size;
    entry->stream = event->stream;
    entry->ticks = history->now;
    entry->stack = stack_of(event->stack);
    if (entry->stack) {
        tn_interned_retain(entry->stack);
    }
    entry->extra = extra_get(history, event);
    entry->action = event->action;
    entry->device = event->device;
}

static void history_receive(void *context, const struct tarn_trace_event *event)
{
    struct tarn_history *history = context;

    if (tn_fork_passed(&history->fork)) {
        return;
    }
    tn_biased_lock_acquire(&history->lock);
    if (!event->same_time) {
        history->now = tn_ticks_now(history->origin.counted);
    }
    if (tn_unlikely((history->skip_actions >> (unsigned)event->action & 1) != 0)) {
        history->entries_skipped++;
    } else {
        record(history, event);
    }
    tn_biased_lock_release(&history->lock);
}

void tarn_history_get_sink(struct tarn_history *history, enum tarn_context_level level,
                           struct tarn_sink *sink_out)
{
    *sink_out = (struct tarn_sink){
        .context = history,
        .level = level,
        .capture = history_capture,
        .receive = history_receive,
        .retain = history_retain,
        .release = history_release,
    };
}

/* ---- annotations ---- */

static void text_drop(struct tarn_history *history, struct tn_interned *text)
{
    if (text) {
        tn_interned_release(&history->extras, text);
    }
}

static void annotation_release(struct tarn_history *history,
                               const struct tn_annotation_entry *annotation)
{
    text_drop(history, annotation->name);
    for (uint32_t i = 0; i < 2 * annotation->field_count; i++) {
        text_drop(history, annotation->fields[i]);
    }
}

static struct tn_interned *text_get(struct tarn_history *history, const char *text)
{
    const size_t size = strlen(text) + 1;

    return tn_intern_get(&history->extras, text, size, tn_intern_hash(text, size), NULL);
}

/* Whether all texts could be interned; releases the others if not. */
static bool annotation_fill(struct tarn_history *history, struct tn_annotation_entry *annotation,
                            const char *name, const struct tarn_annotation_field *fields)
{
    bool fits;

    annotation->name = text_get(history, name);
    fits = annotation->name != NULL;
    for (uint32_t i = 0; i < annotation->field_count; i++) {
        annotation->fields[(size_t)2 * i] = text_get(history, fields[i].key);
        annotation->fields[(size_t)2 * i + 1] = text_get(history, fields[i].value);
        fits = fits && annotation->fields[(size_t)2 * i] && annotation->fields[(size_t)2 * i + 1];
    }
    if (!fits) {
        annotation_release(history, annotation);
    }
    return fits;
}

static void annotation_push(struct tarn_history *history,
                            const struct tn_annotation_entry *annotation)
{
    const uint32_t max = history->options.max_annotations;
    struct tn_annotation_entry *slot = &history->annotations[history->annotation_next];

    if (history->annotation_count == max) {
        annotation_release(history, slot);
        history->annotations_overwritten++;
    } else {
        history->annotation_count++;
    }
    *slot = *annotation;
    history->annotation_next =
        history->annotation_next + 1 == max ? 0 : history->annotation_next + 1;
}

enum tarn_status tarn_history_annotate(struct tarn_history *history,
                                       enum tarn_annotation_stage stage, int device,
                                       const char *name, const struct tarn_annotation_field *fields,
                                       size_t field_count)
{
    struct tn_annotation_entry annotation = {
        .ticks = tn_ticks_now(history->origin.counted),
        .device = device,
        .stage = stage,
    };

    if (!name || (field_count > 0 && !fields) || field_count > TARN_ANNOTATION_FIELDS_MAX) {
        return TARN_ERR_INVALID_ARGUMENT;
    }
    if (tn_fork_passed(&history->fork)) {
        return TARN_ERR_STATE;
    }
    annotation.field_count = (uint32_t)field_count;
    if (!annotation_fill(history, &annotation, name, fields)) {
        return TARN_ERR_LIMIT;
    }
    tn_biased_lock_acquire(&history->lock);
    annotation_push(history, &annotation);
    tn_biased_lock_release(&history->lock);
    return TARN_OK;
}

/* ---- lifetime ---- */

static uint64_t or_default(uint64_t value, uint64_t standard)
{
    return value ? value : standard;
}

static enum tarn_status options_fill(const struct tarn_history_options *given,
                                     struct tarn_history_options *options, struct tarn_error *error)
{
    *options = (struct tarn_history_options){.struct_size = sizeof *options};
    if (given && !tn_sized_read(options, sizeof *options, given)) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                       "struct_size of the history's options is %u, not %zu", given->struct_size,
                       sizeof *given);
    }
    if ((unsigned)options->stack_source > TARN_STACK_NONE ||
        options->max_frames > TARN_STACK_FRAMES_MAX) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                       "a history takes stacks of up to %d frames from one of three sources",
                       TARN_STACK_FRAMES_MAX);
    }
    options->max_frames = (uint32_t)or_default(options->max_frames, FRAMES_DEFAULT);
    options->max_annotations = (uint32_t)or_default(options->max_annotations, ANNOTATIONS_DEFAULT);
    options->max_entries = or_default(options->max_entries, TARN_HISTORY_ENTRIES);
    options->max_stack_bytes = or_default(options->max_stack_bytes, STACK_BYTES_DEFAULT);
    options->max_text_bytes = or_default(options->max_text_bytes, TEXT_BYTES_DEFAULT);
    return TARN_OK;
}

static size_t annotations_bytes(const struct tarn_history *history)
{
    return history->options.max_annotations * sizeof *history->annotations;
}

enum tarn_status tarn_history_create(const struct tarn_history_options *options,
                                     struct tarn_history **history_out, struct tarn_error *error)
{
    struct tarn_history_options filled;
    const enum tarn_status st = options_fill(options, &filled, error);
    struct tarn_history *history =
        st || !tn_os_forks_watch() ? NULL : tn_host_alloc_zero(sizeof *history);

    if (st) {
        return st;
    }
    if (history) {
        history->options = filled;
        history->annotations = tn_host_alloc(annotations_bytes(history));
    }
    if (!history || !history->annotations || !tn_ring_init(&history->ring, filled.max_entries)) {
        if (history) {
            tn_host_free(history->annotations, annotations_bytes(history));
        }
        tn_host_free(history, sizeof *history);
        return tn_fail_memory(error);
    }
    if (filled.host) {
        history->host = *filled.host;
    }
    history->options.host = NULL;
    history->skip_actions = filled.skip_actions;
    set_stack_source(history, filled.stack_source);
    history->origin = tn_tick_origin(tn_ticks_are_counted());
    tn_biased_lock_init(&history->lock, TN_LOCK_SINK);
    tn_lock_init(&history->symbol_lock, TN_LOCK_STACKS);
    tn_intern_init(&history->stacks, TN_LOCK_STACKS, filled.max_stack_bytes, stack_gone, history);
    tn_intern_init(&history->extras, TN_LOCK_STACKS, filled.max_text_bytes, NULL, NULL);
    tn_fork_watch_init(&history->fork, NULL);
    *history_out = history;
    return TARN_OK;
}

/* Under the lock. */
static void forget_entries(struct tarn_history *history)
{
    for (uint64_t i = 0; i < history->ring.count; i++) {
        entry_release(history, tn_ring_at(&history->ring, i));
    }
    tn_ring_clear(&history->ring);
    history->ring.overwritten = 0;
    history->clearings++;
    history->entries_skipped = 0;
    extra_drop(history, history->last_extra);
    history->last_extra = NULL;
}

static void forget_annotations(struct tarn_history *history)
{
    for (uint32_t i = 0; i < history->annotation_count; i++) {
        annotation_release(history, &history->annotations[i]);
    }
    history->annotation_count = 0;
    history->annotation_next = 0;
    history->annotations_overwritten = 0;
}

void tarn_history_clear(struct tarn_history *history)
{
    if (tn_fork_passed(&history->fork)) {
        return;
    }
    tn_biased_lock_acquire(&history->lock);
    forget_entries(history);
    forget_annotations(history);
    tn_biased_lock_release(&history->lock);
}

struct tarn_history *tn_history_pin(const struct tarn_sink *sink)
{
    struct tarn_history *history = sink->capture == history_capture ? sink->context : NULL;

    if (history) {
        (void)atomic_fetch_add_explicit(&history->pins, 1, memory_order_relaxed);
    }
    return history;
}

void tn_history_unpin(struct tarn_history *history)
{
    (void)atomic_fetch_sub_explicit(&history->pins, 1, memory_order_release);
}

static void wait_for_pins(const struct tarn_history *history)
{
    for (unsigned nap = 0; atomic_load_explicit(&history->pins, memory_order_acquire) > 0; nap++) {
        tn_os_nap(nap);
    }
}

void tarn_history_destroy(struct tarn_history *history)
{
    if (history && !tn_fork_passed(&history->fork)) {
        wait_for_pins(history);
        tn_fork_watch_fini(&history->fork);
        tarn_history_clear(history);
        tn_intern_fini(&history->stacks);
        tn_intern_fini(&history->extras);
        tn_symbols_destroy(history->symbols);
        tn_lock_fini(&history->symbol_lock);
        tn_ring_fini(&history->ring);
        tn_host_free(history->annotations, annotations_bytes(history));
        tn_biased_lock_fini(&history->lock);
        tn_host_free(history, sizeof *history);
    }
}

/* Releases everything except the newest `kept` entries. Under the lock. */
static void release_oldest(struct tarn_history *history, uint64_t kept)
{
    for (uint64_t i = 0; i + kept < history->ring.count; i++) {
        entry_release(history, tn_ring_at(&history->ring, i));
    }
}

enum tarn_status tarn_history_set_max_entries(struct tarn_history *history, uint64_t max_entries,
                                              struct tarn_error *error)
{
    struct tn_ring fresh;

    if (tn_fork_passed(&history->fork)) {
        return tn_fork_refuse(error, "the history");
    }
    if (max_entries == 0) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT, "a history keeps at least one event");
    }
    if (!tn_ring_init(&fresh, max_entries)) {
        return tn_fail_memory(error);
    }
    tn_biased_lock_acquire(&history->lock);
    struct tn_ring old = history->ring;

    fresh.count = tn_ring_copy(&old, fresh.entries, max_entries);
    fresh.next = fresh.count == max_entries ? 0 : fresh.count;
    fresh.overwritten = old.overwritten + (old.count - fresh.count);
    release_oldest(history, fresh.count);
    history->ring = fresh;
    history->options.max_entries = max_entries;
    tn_biased_lock_release(&history->lock);
    tn_ring_fini(&old);
    return TARN_OK;
}

enum tarn_status tarn_history_set_stack_source(struct tarn_history *history,
                                               enum tarn_stack_source source)
{
    if (tn_fork_passed(&history->fork)) {
        return TARN_ERR_STATE;
    }
    if ((unsigned)source > TARN_STACK_NONE) {
        return TARN_ERR_INVALID_ARGUMENT;
    }
    set_stack_source(history, source);
    return TARN_OK;
}

void tarn_history_set_skip_actions(struct tarn_history *history, uint64_t actions)
{
    if (tn_fork_passed(&history->fork)) {
        return;
    }
    tn_biased_lock_acquire(&history->lock);
    history->skip_actions = actions;
    tn_biased_lock_release(&history->lock);
}

static void usage_read(struct tarn_history *history, struct tarn_history_usage *usage)
{
    tn_biased_lock_acquire(&history->lock);
    const struct tn_intern_usage stacks = tn_intern_usage(&history->stacks);
    const struct tn_intern_usage texts = tn_intern_usage(&history->extras);

    usage->entries = history->ring.count;
    usage->max_entries = history->ring.capacity;
    usage->entries_overwritten = history->ring.overwritten;
    usage->entries_skipped = history->entries_skipped;
    usage->annotations = history->annotation_count;
    usage->annotations_overwritten = history->annotations_overwritten;
    tn_biased_lock_release(&history->lock);
    usage->stacks = stacks.count;
    usage->stack_bytes = stacks.bytes;
    usage->stacks_dropped = stacks.refused;
    usage->texts = texts.count;
    usage->text_bytes = texts.bytes;
    usage->texts_dropped = texts.refused;
}

void tarn_history_get_usage(struct tarn_history *history, struct tarn_history_usage *usage_out)
{
    const uint32_t asked = usage_out->struct_size;
    struct tarn_history_usage usage = {.struct_size = asked};

    if (!tn_fork_passed(&history->fork)) {
        usage_read(history, &usage);
    }
    memcpy(usage_out, &usage, asked < sizeof usage ? asked : sizeof usage);
}

/* ---- reading ---- */

enum {
#ifdef TN_SCHEDULED /* tests/schedule: few events are many slices, or too many for the room */
    COPY_SLACK = 8,
    COPY_SLICE = 4
#else
    COPY_SLACK = 4096, /* events that may arrive between the two steps */
    COPY_SLICE = 2048  /* entries that are copied at a time */
#endif
};

/* Under the lock: what was copied is no longer, or does not fit: begin with the oldest. */
static void copy_begin(const struct tarn_history *history, struct tn_history_copy *copy)
{
    const struct tn_ring *ring = &history->ring;
    const uint64_t count = ring->count < copy->capacity ? ring->count : copy->capacity;

    copy->clearings = history->clearings;
    copy->first = ring->overwritten + (ring->count - count);
    copy->filled = 0;
}

/* Under the lock: copies at most `max` more entries. */
static void copy_advance(const struct tarn_history *history, struct tn_history_copy *copy,
                         uint64_t max)
{
    const struct tn_ring *ring = &history->ring;
    const uint64_t end = ring->overwritten + ring->count;

    if (copy->clearings != history->clearings || copy->first + copy->filled < ring->overwritten ||
        end - copy->first > copy->capacity) {
        copy_begin(history, copy);
    }
    const uint64_t next = copy->first + copy->filled;
    const uint64_t count = end - next < max ? end - next : max;

    tn_ring_copy_range(ring, next - ring->overwritten, count, copy->room + copy->filled);
    copy->filled += count;
}

/* Copies what there is in slices, so that no event waits for long; as many as it has room for,
 * however fast events arrive. */
static void copy_ahead(struct tarn_history *history, struct tn_history_copy *copy)
{
    for (uint64_t i = 0; i <= copy->capacity / COPY_SLICE; i++) {
        tn_biased_lock_acquire(&history->lock);
        copy_advance(history, copy, COPY_SLICE);
        tn_biased_lock_release(&history->lock);
    }
}

bool tn_history_copy_prepare(struct tarn_history *history, struct tn_history_copy *copy)
{
    *copy = (struct tn_history_copy){.tick_length = 1.0};
    if (tn_fork_passed(&history->fork)) {
        return false;
    }
    tn_biased_lock_acquire(&history->lock);
    copy->capacity = history->ring.count + history->ring.count / 2 + COPY_SLACK;
    copy_begin(history, copy);
    tn_biased_lock_release(&history->lock);
    copy->room = tn_host_alloc(copy->capacity * sizeof *copy->room);
    copy->annotations = tn_host_alloc(annotations_bytes(history));
    if (!copy->room || !copy->annotations) {
        tn_host_free(copy->room, copy->capacity * sizeof *copy->room);
        tn_host_free(copy->annotations, annotations_bytes(history));
        return false;
    }
    memset(copy->room, 0, copy->capacity * sizeof *copy->room); /* commits the pages */
    memset(copy->annotations, 0, annotations_bytes(history));
    tn_lock_acquire(&history->symbol_lock);
    if (history->symbols) {
        tn_symbols_expect_modules(history->symbols);
    }
    tn_lock_release(&history->symbol_lock);
    tn_intern_begin_reading(&history->stacks);
    tn_intern_begin_reading(&history->extras);
    copy_ahead(history, copy);
    return true;
}

static void copy_annotations(const struct tarn_history *history, struct tn_history_copy *copy)
{
    const uint32_t count = history->annotation_count;
    const uint32_t max = history->options.max_annotations;
    const uint32_t begin = count == max ? history->annotation_next : 0;

    for (uint32_t i = 0; i < count; i++) {
        const uint32_t at = begin + i;

        copy->annotations[i] = history->annotations[at < max ? at : at - max];
    }
    copy->annotation_count = count;
}

void tn_history_copy_take(struct tarn_history *history, struct tn_history_copy *copy)
{
    tn_biased_lock_acquire(&history->lock);
    const uint64_t oldest = history->ring.overwritten;

    copy_advance(history, copy, UINT64_MAX);
    const uint64_t gone = copy->first < oldest ? oldest - copy->first : 0;

    copy->entries = copy->room + gone;
    copy->count = copy->filled - gone;
    copy_annotations(history, copy);
    tn_biased_lock_release(&history->lock);
    const struct tn_tick_origin now = tn_tick_origin(history->origin.counted);

    copy->tick_length = tn_tick_length(&history->origin, &now);
}

void tn_history_copy_release(struct tarn_history *history, struct tn_history_copy *copy)
{
    tn_intern_end_reading(&history->stacks);
    tn_intern_end_reading(&history->extras);
    tn_host_free(copy->room, copy->capacity * sizeof *copy->room);
    tn_host_free(copy->annotations, annotations_bytes(history));
}

int64_t tn_history_time_us(const struct tarn_history *history, const struct tn_history_copy *copy,
                           uint64_t ticks)
{
    return tn_tick_time_us(&history->origin, copy->tick_length, ticks);
}

uint64_t tn_history_host_stack(const struct tn_interned *stack)
{
    uint64_t host_stack = 0;

    if (stack) {
        memcpy(&host_stack, stack->bytes, sizeof host_stack);
    }
    return host_stack;
}

uint64_t tarn_history_host_stack(const struct tarn_history *history, uint64_t stack)
{
    return tn_fork_passed(&history->fork)
               ? 0
               : tn_history_host_stack((const struct tn_interned *)(uintptr_t)stack);
}

struct tarn_history_entry tn_history_entry_shown(const struct tarn_history *history,
                                                 const struct tn_history_copy *copy,
                                                 const struct tn_ring_entry *entry)
{
    const struct tn_extra_view extra = tn_history_extra(entry->extra);

    return (struct tarn_history_entry){
        .event = {.action = (enum tarn_action)entry->action,
                  .device = entry->device,
                  .address = entry->address,
                  .size = entry->size,
                  .stream = entry->stream,
                  .pool_id = {extra.pool_id[0], extra.pool_id[1]},
                  .stack = (uint64_t)(uintptr_t)entry->stack,
                  .compile_context = extra.compile_context,
                  .user_metadata = extra.user_metadata},
        .time_us = tn_history_time_us(history, copy, entry->ticks),
    };
}

enum tarn_status tarn_history_walk(struct tarn_history *history,
                                   bool (*visit)(void *context,
                                                 const struct tarn_history_entry *entry),
                                   void *context)
{
    struct tn_history_copy copy;
    bool more = true;

    if (tn_fork_passed(&history->fork)) {
        return TARN_ERR_STATE;
    }
    if (!tn_history_copy_prepare(history, &copy)) {
        return TARN_ERR_HOST_MEMORY;
    }
    tn_history_copy_take(history, &copy);
    for (uint64_t i = 0; i < copy.count && more; i++) {
        const struct tarn_history_entry entry =
            tn_history_entry_shown(history, &copy, &copy.entries[i]);

        more = visit(context, &entry);
    }
    tn_history_copy_release(history, &copy);
    return TARN_OK;
}

/* ---- names ---- */

/* Frames of one address, valid after the lock is released. NULL when host memory runs out. */
static const struct tarn_stack_frame *find_frames(struct tarn_history *history, uint64_t address,
                                                  size_t *count_out)
{
    const struct tarn_stack_frame *frames = NULL;

    tn_lock_acquire(&history->symbol_lock);
    if (!history->symbols) {
        history->symbols = tn_symbols_create();
    }
    if (history->symbols) {
        frames = tn_symbols_find(history->symbols, address, count_out);
    }
    tn_lock_release(&history->symbol_lock);
    return frames;
}

enum tarn_status tarn_history_visit_stack(struct tarn_history *history, uint64_t stack,
                                          tarn_frame_visitor visit, void *context)
{
    if (tn_fork_passed(&history->fork)) {
        return TARN_ERR_STATE;
    }
    const struct tn_interned *piece = stack_of(stack);

    if (!piece) {
        return TARN_OK;
    }
    const uint64_t *words = (const uint64_t *)(const void *)piece->bytes;

    for (uint64_t i = 1; i < piece->size / sizeof *words; i++) {
        size_t count = 0;
        const struct tarn_stack_frame *frames = find_frames(history, words[i], &count);

        if (!frames) {
            return TARN_ERR_HOST_MEMORY;
        }
        for (size_t k = 0; k < count; k++) {
            visit(context, &frames[k]);
        }
    }
    if (words[0] != 0 && history->host.describe) {
        history->host.describe(history->host.context, words[0], visit, context);
    }
    return TARN_OK;
}
