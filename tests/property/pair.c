/* SPDX-License-Identifier: MIT */
#include "property/pair.h"

#include "alloc/engine/allocator.h"
#include "alloc/engine/engine.h"
#include "base/attr.h"
#include "device/device_ops.h"
#include "reference/model.h"
#include "support/view.h"
#include "tarn/host.h"
#include "tarn/sim.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct route {
    tarn_stream stream;
    bool all;
};

struct pair {
    struct tarn_device *device[2]; /* the allocator's, the reference's */
    struct tarn_allocator *real;
    struct ref_model *reference;
    tarn_ptr slot[OPS_SLOTS]; /* 0 = empty */
    tarn_ptr last[OPS_SLOTS]; /* what it had before */
    struct route route[OPS_POOLS];
    bool origin[OPS_STREAMS]; /* a capture began on the stream and is under way */
    struct tarn_checkpoint *real_checkpoint[OPS_POOLS];
    struct ref_checkpoint *reference_checkpoint[OPS_POOLS];
    uint64_t capacity;
    tarn_ptr armed[2];               /* what the memory callback of either frees, 0 = nothing */
    uint64_t observed;               /* calls of the out-of-memory observer */
    struct tarn_trace_event *events; /* of the allocator, since the operation began */
    size_t event_count;
    size_t event_capacity;
    enum program_mode mode;
    unsigned walk_every;
    unsigned until_walk;
    unsigned until_stats;
    uint64_t placed; /* allocations at an address that succeeded */
    char *text;
};

static bool pair_differ(struct pair *pair, const char *format, ...) TN_PRINTF(2, 3);

static bool pair_differ(struct pair *pair, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(pair->text, PAIR_TEXT_MAX, format, arguments);
    va_end(arguments);
    return false;
}

static void must(enum tarn_status status, const char *what)
{
    if (status != TARN_OK) {
        (void)fprintf(stderr, "%s failed: %s\n", what, tarn_status_text(status));
        abort();
    }
}

static void receive(void *context, const struct tarn_trace_event *event)
{
    struct pair *pair = context;

    if (pair->event_count == pair->event_capacity) {
        pair->event_capacity = pair->event_capacity * 2 + 64;
        pair->events = realloc(pair->events, pair->event_capacity * sizeof *pair->events);
        if (!pair->events) {
            abort();
        }
    }
    pair->events[pair->event_count++] = *event;
}

static void observe(void *context, const struct tarn_oom *oom)
{
    struct pair *pair = context;

    (void)oom;
    pair->observed++;
}

static bool callback_real(void *context, struct tarn_allocator *allocator, uint64_t size,
                          tarn_stream stream)
{
    struct pair *pair = context;
    const tarn_ptr ptr = pair->armed[0];

    (void)size;
    (void)stream;
    pair->armed[0] = 0;
    if (ptr) {
        must(tarn_allocator_free(allocator, ptr, NULL), "free in a callback");
    }
    return ptr != 0;
}

static bool callback_reference(void *context)
{
    struct pair *pair = context;
    const tarn_ptr ptr = pair->armed[1];

    pair->armed[1] = 0;
    if (ptr) {
        must(ref_free(pair->reference, ptr), "free in a callback");
    }
    return ptr != 0;
}

static bool filter(void *context, tarn_stream stream)
{
    const struct route *route = context;

    return route->all || route->stream == stream;
}

enum {
    STATS_EVERY = 7 /* operations, when nobody listens */
};

/* Whoever listens keeps caches closed. Opened for every stream, they open again after each call
 * that closed them. */
static void pair_open_caches(struct pair *pair)
{
    if (pair->mode == MODE_CACHES) {
#if TN_FAST_PATH
        struct tn_stream_caches *caches = &tn_allocator_engine(pair->real)->fast.caches;

        caches->calls_left = UINT32_MAX;
        caches->slow_calls = 0; /* whether they pay or not */
#endif
    }
}

struct pair *pair_create(const struct program *program, unsigned walk_every)
{
    const struct tarn_config settings = ops_config(program->config);
    struct tarn_sim_options options = {.struct_size = sizeof options,
                                       .capacity = ops_capacity(program->capacity)};
    struct pair *pair = calloc(1, sizeof *pair);

    if (!pair) {
        abort();
    }
    pair->capacity = options.capacity;
    pair->mode = program->mode;
    pair->walk_every = walk_every;
    pair->until_walk = walk_every;
    pair->until_stats = 1;
    must(tarn_sim_open(&options, &pair->device[0], NULL), "tarn_sim_open");
    must(tarn_sim_open(&options, &pair->device[1], NULL), "tarn_sim_open");
    must(tarn_allocator_create(pair->device[0], &settings, &pair->real, NULL), "create");
    pair->reference = ref_create(pair->device[1], &settings);
    const struct tarn_sink sink = {.context = pair, .receive = receive};

    if (pair->mode == MODE_SINK) {
        must(tarn_allocator_add_sink(pair->real, &sink, NULL), "tarn_allocator_add_sink");
    }
    must(tarn_allocator_add_oom_observer(pair->real, observe, pair), "add observer");
    must(tarn_allocator_add_memory_callback(pair->real, callback_real, pair), "add callback");
    ref_set_callback(pair->reference, callback_reference, pair);
    return pair;
}

void pair_destroy(struct pair *pair)
{
    for (int i = 0; i < OPS_POOLS; i++) {
        tarn_checkpoint_destroy(pair->real_checkpoint[i]);
        ref_checkpoint_destroy(pair->reference_checkpoint[i]);
    }
    tarn_allocator_destroy(pair->real);
    ref_destroy(pair->reference);
    tarn_device_close(pair->device[0]);
    tarn_device_close(pair->device[1]);
    free(pair->events);
    free(pair);
}

/* ---- comparing ---- */

static bool same_status(struct pair *pair, enum tarn_status real, enum tarn_status reference)
{
    return real == reference || pair_differ(pair, "status: allocator %s, reference %s",
                                            tarn_status_name(real), tarn_status_name(reference));
}

static bool same_value(struct pair *pair, const char *what, uint64_t real, uint64_t reference)
{
    return real == reference ||
           pair_differ(pair, "%s: allocator %llu (0x%llx), reference %llu (0x%llx)", what,
                       (unsigned long long)real, (unsigned long long)real,
                       (unsigned long long)reference, (unsigned long long)reference);
}

static bool same_event(const struct tarn_trace_event *a, const struct tarn_trace_event *b)
{
    return a->action == b->action && a->address == b->address && a->size == b->size &&
           a->stream == b->stream && a->pool_id[0] == b->pool_id[0] &&
           a->pool_id[1] == b->pool_id[1];
}

static void event_text(const struct tarn_trace_event *event, char *text, size_t size)
{
    if (!event) {
        (void)snprintf(text, size, "none");
        return;
    }
    (void)snprintf(text, size, "%s 0x%llx %llu stream 0x%llx pool %llu,%llu",
                   tarn_action_name(event->action), (unsigned long long)event->address,
                   (unsigned long long)event->size, (unsigned long long)event->stream,
                   (unsigned long long)event->pool_id[0], (unsigned long long)event->pool_id[1]);
}

static bool same_events(struct pair *pair)
{
    size_t count;
    const struct tarn_trace_event *events = ref_events(pair->reference, &count);
    size_t i = 0;
    char real[160];
    char reference[160];

    if (pair->mode != MODE_SINK) {
        return true;
    }
    while (i < count && i < pair->event_count && same_event(&events[i], &pair->events[i])) {
        i++;
    }
    if (i == count && i == pair->event_count) {
        return true;
    }
    event_text(i < pair->event_count ? &pair->events[i] : NULL, real, sizeof real);
    event_text(i < count ? &events[i] : NULL, reference, sizeof reference);
    return pair_differ(pair, "event %zu: allocator %s; reference %s", i, real, reference);
}

static bool same_stat(struct pair *pair, const char *kind, const char *pool,
                      const struct tarn_stat *a, const struct tarn_stat *b)
{
    return (a->current == b->current && a->peak == b->peak && a->allocated == b->allocated &&
            a->freed == b->freed) ||
           pair_differ(pair,
                       "%s %s: allocator current %lld peak %lld allocated %lld freed %lld, "
                       "reference %lld %lld %lld %lld",
                       kind, pool, (long long)a->current, (long long)a->peak,
                       (long long)a->allocated, (long long)a->freed, (long long)b->current,
                       (long long)b->peak, (long long)b->allocated, (long long)b->freed);
}

static bool same_stats(struct pair *pair)
{
    struct tarn_stats a = {.struct_size = sizeof a};
    struct tarn_stats b = {.struct_size = sizeof b};
    const size_t from = offsetof(struct tarn_stats, by_pool);

    tarn_allocator_get_stats(pair->real, &a);
    ref_get_stats(pair->reference, &b);
    if (memcmp((const char *)&a + from, (const char *)&b + from, sizeof a - from) == 0) {
        return true;
    }
    for (unsigned kind = 0; kind < TARN_STAT_KINDS; kind++) {
        for (unsigned pool = 0; pool < TARN_STAT_POOLS; pool++) {
            if (!same_stat(pair, tarn_stat_kind_name((enum tarn_stat_kind)kind),
                           tarn_stat_pool_name((enum tarn_stat_pool)pool), &a.by_pool[kind][pool],
                           &b.by_pool[kind][pool])) {
                return false;
            }
        }
    }
    return same_stat(pair, "oversize_allocations", "", &a.oversize_allocations,
                     &b.oversize_allocations) &&
           same_stat(pair, "oversize_segments", "", &a.oversize_segments, &b.oversize_segments) &&
           pair_differ(pair,
                       "retries %lld ooms %lld syncs %lld allocs %lld frees %lld max split %lld, "
                       "reference %lld %lld %lld %lld %lld %lld",
                       (long long)a.num_alloc_retries, (long long)a.num_ooms,
                       (long long)a.num_sync_all_streams, (long long)a.num_device_alloc,
                       (long long)a.num_device_free, (long long)a.max_split_size,
                       (long long)b.num_alloc_retries, (long long)b.num_ooms,
                       (long long)b.num_sync_all_streams, (long long)b.num_device_alloc,
                       (long long)b.num_device_free, (long long)b.max_split_size);
}

static bool same_devices(struct pair *pair)
{
    struct tarn_sim_counters a = {.struct_size = sizeof a};
    struct tarn_sim_counters b = {.struct_size = sizeof b};

    tarn_sim_get_counters(pair->device[0], &a);
    tarn_sim_get_counters(pair->device[1], &b);
    return same_value(pair, "device bytes", a.used_bytes, b.used_bytes) &&
           same_value(pair, "device allocations", a.live_allocations, b.live_allocations) &&
           same_value(pair, "device mappings", a.live_mappings, b.live_mappings) &&
           same_value(pair, "device reservations", a.live_reservations, b.live_reservations) &&
           same_value(pair, "forced unblocks", a.forced_unblocks, b.forced_unblocks) &&
           same_value(pair, "device clock", tarn_sim_now_ns(pair->device[0]),
                      tarn_sim_now_ns(pair->device[1]));
}

static bool same_walks(struct pair *pair)
{
    struct view real = {0};
    struct view reference = {0};
    const struct tarn_walker real_walker = view_walker(&real);
    const struct tarn_walker reference_walker = view_walker(&reference);
    char text[PAIR_TEXT_MAX / 2];

    must(tarn_allocator_walk(pair->real, &real_walker), "walk");
    ref_walk(pair->reference, &reference_walker);
    const bool same = view_same(&real, &reference, text, sizeof text) ||
                      pair_differ(pair, "walk (allocator, reference): %s", text);

    view_fini(&real);
    view_fini(&reference);
    return same;
}

static bool checks(struct pair *pair)
{
    struct tarn_findings findings = TARN_FINDINGS_INIT;

    return tarn_allocator_check(pair->real, &findings) == 0 ||
           pair_differ(pair, "check: %s", findings.text[0]);
}

/* ---- operations ---- */

static void forget(struct pair *pair, tarn_ptr ptr)
{
    for (int i = 0; i < OPS_SLOTS; i++) {
        if (pair->slot[i] == ptr) {
            pair->last[i] = ptr;
            pair->slot[i] = 0;
        }
    }
}

static bool do_alloc(struct pair *pair, const struct op *op)
{
    const tarn_ptr armed = pair->armed[0];
    const uint64_t observed = pair->observed;
    const tarn_stream stream = ops_stream(op->stream);
    tarn_ptr a = 0;
    tarn_ptr b = 0;

    if (pair->slot[op->slot]) {
        return true;
    }
    const enum tarn_status real = tarn_allocator_alloc(pair->real, op->value, stream, &a, NULL);
    const enum tarn_status reference = ref_alloc(pair->reference, op->value, stream, &b);
    size_t count;
    const struct tarn_trace_event *events = ref_events(pair->reference, &count);
    const bool reported = count > 0 && events[count - 1].action == TARN_ACTION_OOM;

    if (!same_value(pair, "callback still armed", pair->armed[0], pair->armed[1])) {
        return false;
    }
    if (armed && !pair->armed[0]) {
        forget(pair, armed);
    }
    pair->slot[op->slot] = real == TARN_OK ? a : 0;
    return same_status(pair, real, reference) && same_value(pair, "pointer", a, b) &&
           same_value(pair, "calls of the observer", pair->observed - observed, reported);
}

static bool do_alloc_at(struct pair *pair, const struct op *op)
{
    const tarn_stream stream = ops_stream(op->stream);
    const tarn_ptr ptr = pair->last[op->slot] + ops_offset(op);

    if (pair->slot[op->slot] || pair->last[op->slot] == 0 || op->value == 0) {
        return true;
    }
    const enum tarn_status st = tarn_allocator_alloc_at(pair->real, op->value, stream, ptr, NULL);

    pair->slot[op->slot] = st == TARN_OK ? ptr : 0;
    pair->placed += st == TARN_OK;
    return same_status(pair, st, ref_alloc_at(pair->reference, op->value, stream, ptr));
}

static bool free_both(struct pair *pair, tarn_ptr ptr)
{
    for (int i = 0; i < 2; i++) {
        if (pair->armed[i] == ptr) {
            pair->armed[i] = 0;
        }
    }
    forget(pair, ptr);
    return same_status(pair, tarn_allocator_free(pair->real, ptr, NULL),
                       ref_free(pair->reference, ptr));
}

static bool do_record(struct pair *pair, const struct op *op)
{
    const tarn_ptr ptr = pair->slot[op->slot];
    const tarn_stream stream = ops_stream(op->stream);

    return same_status(pair, tarn_allocator_record_stream(pair->real, ptr, stream, NULL),
                       ref_record_stream(pair->reference, ptr, stream));
}

static bool do_base(struct pair *pair, const struct op *op)
{
    const tarn_ptr ptr = pair->slot[op->slot];
    tarn_ptr base[2] = {0, 0};
    uint64_t size[2] = {0, 0};

    if (!ptr) {
        return true;
    }
    return same_status(pair,
                       tarn_allocator_base_allocation(pair->real, ptr, &base[0], &size[0], NULL),
                       ref_base_allocation(pair->reference, ptr, &base[1], &size[1])) &&
           same_value(pair, "base", base[0], base[1]) &&
           same_value(pair, "base size", size[0], size[1]);
}

static bool do_cache_info(struct pair *pair, const struct op *op)
{
    uint64_t largest = op->value % 2 ? 1 : 0;
    const uint64_t reference = ref_cache_info(pair->reference, largest);

    return same_status(pair, tarn_allocator_cache_info(pair->real, &largest, NULL), TARN_OK) &&
           same_value(pair, "cache info", largest, reference);
}

static bool do_fraction(struct pair *pair, const struct op *op)
{
    /* Half of the time no limit: otherwise most programs would soon have a tiny one. */
    const double fraction = op->value % 2 ? 1.0 : (double)op->value / 256.0;

    return same_status(pair, tarn_allocator_set_memory_fraction(pair->real, fraction, NULL),
                       ref_set_fraction(pair->reference, fraction)) &&
           same_value(pair, "limit", tarn_allocator_get_limit(pair->real),
                      ref_get_limit(pair->reference));
}

static bool do_config(struct pair *pair, const struct op *op)
{
    const struct tarn_config config = ops_config(op->slot);

    ref_set_config(pair->reference, &config);
    return same_status(pair, tarn_allocator_set_config(pair->real, &config, NULL), TARN_OK);
}

static bool do_check_live(struct pair *pair, const struct op *op)
{
    bool live[2] = {false, false};
    tarn_ptr all[OPS_SLOTS];
    size_t count = 0;
    const struct tarn_pool_id id = ops_pool(op->slot);

    for (size_t i = 0; i < OPS_SLOTS; i++) {
        if (pair->slot[i] && (op->value >> (i % 8) & 1) == 0) {
            all[count++] = pair->slot[i];
        }
    }
    return same_status(pair,
                       tarn_allocator_check_pool_live(pair->real, id, all, count, &live[0], NULL),
                       ref_check_pool_live(pair->reference, id, all, count, &live[1])) &&
           same_value(pair, "live", live[0], live[1]);
}

static bool do_get_checkpoint(struct pair *pair, const struct op *op)
{
    const unsigned pool = op->slot % OPS_POOLS;
    struct tarn_checkpoint *real = NULL;
    struct ref_checkpoint *reference = NULL;
    const bool same =
        same_status(pair, tarn_allocator_get_checkpoint(pair->real, ops_pool(pool), &real, NULL),
                    ref_get_checkpoint(pair->reference, ops_pool(pool), &reference));

    if (real && reference) {
        tarn_checkpoint_destroy(pair->real_checkpoint[pool]);
        ref_checkpoint_destroy(pair->reference_checkpoint[pool]);
        pair->real_checkpoint[pool] = real;
        pair->reference_checkpoint[pool] = reference;
    }
    return same;
}

static bool same_pointers(struct pair *pair, const char *what, const tarn_ptr *a, size_t a_count,
                          const tarn_ptr *b, size_t b_count)
{
    bool same = same_value(pair, what, a_count, b_count);

    for (size_t i = 0; same && i < a_count; i++) {
        same = same_value(pair, what, a[i], b[i]);
    }
    return same;
}

static bool adopt(struct pair *pair, tarn_ptr ptr)
{
    for (int i = 0; i < OPS_SLOTS; i++) {
        if (!pair->slot[i]) {
            pair->slot[i] = ptr;
            return true;
        }
    }
    return free_both(pair, ptr);
}

static bool do_set_checkpoint(struct pair *pair, const struct op *op)
{
    const unsigned pool = op->slot % OPS_POOLS;
    struct tarn_checkpoint_delta a = {0};
    struct tarn_checkpoint_delta b = {0};

    if (!pair->real_checkpoint[pool]) {
        return true;
    }
    const enum tarn_status st =
        tarn_allocator_set_checkpoint(pair->real, pair->real_checkpoint[pool], &a, NULL);
    bool same = same_status(
        pair, st, ref_set_checkpoint(pair->reference, pair->reference_checkpoint[pool], &b));

    if (same && st == TARN_OK) {
        same =
            same_pointers(pair, "freed", a.freed, a.freed_count, b.freed, b.freed_count) &&
            same_pointers(pair, "created", a.created, a.created_count, b.created, b.created_count);
        pair->armed[0] = 0;
        pair->armed[1] = 0;
        for (size_t i = 0; same && i < a.freed_count; i++) {
            forget(pair, a.freed[i]);
        }
        for (size_t i = 0; same && i < a.created_count; i++) {
            same = adopt(pair, a.created[i]);
        }
        tarn_checkpoint_delta_fini(&a);
    }
    ref_delta_fini(&b);
    return same;
}

static bool do_pool(struct pair *pair, const struct op *op)
{
    const unsigned pool = op->slot % OPS_POOLS;
    const struct tarn_pool_id id = ops_pool(pool);
    struct tarn_allocator *real = pair->real;
    struct ref_model *reference = pair->reference;
    const bool on = op->value % 2 != 0;
    struct route route = pair->route[pool];
    enum tarn_status st;

    switch ((int)op->kind) {
    case OP_BEGIN_POOL:
        pair->route[pool] = (struct route){.stream = ops_stream(op->stream), .all = on};
        st = tarn_allocator_begin_pool(real, id, filter, &pair->route[pool], NULL);
        if (st) {
            pair->route[pool] = route;
        }
        return same_status(pair, st, ref_begin_pool(reference, id, filter, &pair->route[pool]));
    case OP_END_POOL:
        return same_status(pair, tarn_allocator_end_pool(real, id, NULL),
                           ref_end_pool(reference, id));
    case OP_ACQUIRE_POOL:
        return same_status(pair, tarn_allocator_acquire_pool(real, id, NULL),
                           ref_acquire_pool(reference, id));
    case OP_RELEASE_POOL:
        return same_status(pair, tarn_allocator_release_pool(real, id, NULL),
                           ref_release_pool(reference, id)) &&
               same_value(pair, "use count", tarn_allocator_pool_use_count(real, id),
                          ref_pool_use_count(reference, id));
    case OP_EMPTY_POOL:
        return same_status(pair, tarn_allocator_empty_pool(real, id, NULL),
                           ref_empty_cache(reference, id));
    case OP_USE_ON_OOM:
        return same_status(pair, tarn_allocator_set_pool_use_on_oom(real, id, on),
                           ref_set_use_on_oom(reference, id, on));
    case OP_NO_SPLIT:
        return same_status(pair, tarn_allocator_set_pool_no_split(real, id, on),
                           ref_set_no_split(reference, id, on));
    case OP_GET_CHECKPOINT:
        return do_get_checkpoint(pair, op);
    case OP_SET_CHECKPOINT:
        return do_set_checkpoint(pair, op);
    case OP_CHECK_LIVE:
        return do_check_live(pair, op);
    default:
        return true;
    }
}

static bool is_capturing(struct pair *pair, tarn_stream stream)
{
    struct tarn_device *device = pair->device[0];
    uint64_t capture = 0;
    uint32_t count = 0;

    must(device->ops->capture_info(device, stream, &capture, NULL, 0, &count), "capture info");
    return capture != 0;
}

/* Only whole captures end: the terminals of a stream that left one and joined it again would be
 * others than before, which no GPU does. */
static void do_capture(struct pair *pair, const struct op *op)
{
    const bool begin = op->kind == OP_BEGIN_CAPTURE;
    const tarn_stream stream = ops_stream(op->stream);
    bool *origin = &pair->origin[op->stream % OPS_STREAMS];

    if (begin ? is_capturing(pair, stream) : !*origin) {
        return;
    }
    *origin = begin;
    for (int i = 0; i < 2; i++) {
        must(tarn_sim_set_capturing(pair->device[i], stream, begin), "capturing");
    }
}

static bool do_join(struct pair *pair, const struct op *op)
{
    const tarn_stream stream = ops_stream(op->stream);
    const tarn_stream other = ops_stream(op->slot);

    return same_status(pair, tarn_sim_join_stream(pair->device[0], stream, other),
                       tarn_sim_join_stream(pair->device[1], stream, other));
}

static bool do_device(struct pair *pair, const struct op *op)
{
    const tarn_stream stream = ops_stream(op->stream);
    bool same = true;

    for (int i = 0; i < 2; i++) {
        switch ((int)op->kind) {
        case OP_BLOCK_STREAM:
            must(tarn_sim_block_stream(pair->device[i], stream), "block");
            break;
        case OP_UNBLOCK_STREAM:
            (void)!tarn_sim_unblock_stream(pair->device[i], stream);
            break;
        case OP_ENQUEUE:
            must(tarn_sim_enqueue_ns(pair->device[i], stream, op->value), "enqueue");
            break;
        case OP_ADVANCE:
            tarn_sim_advance_ns(pair->device[i], op->value);
            break;
        case OP_FOREIGN:
            tarn_sim_set_foreign_memory(pair->device[i], op->value * pair->capacity / 1024);
            break;
        default:
            same = do_pool(pair, op);
            i = 2;
            break;
        }
    }
    return same;
}

static bool do_op(struct pair *pair, const struct op *op)
{
    const tarn_ptr ptr = op->slot < OPS_SLOTS ? pair->slot[op->slot] : 0;

    switch ((int)op->kind) {
    case OP_ALLOC:
        return do_alloc(pair, op);
    case OP_ALLOC_AT:
        return do_alloc_at(pair, op);
    case OP_FREE:
        return ptr == 0 || free_both(pair, ptr);
    case OP_FREE_WRONG:
        return same_status(pair, tarn_allocator_free(pair->real, ptr + 256, NULL),
                           ref_free(pair->reference, ptr + 256));
    case OP_RECORD:
        return do_record(pair, op);
    case OP_EMPTY_CACHE:
        return same_status(pair, tarn_allocator_empty_cache(pair->real, NULL),
                           ref_empty_cache(pair->reference, (struct tarn_pool_id){0, 0}));
    case OP_SET_CONFIG:
        return do_config(pair, op);
    case OP_SET_FRACTION:
        return do_fraction(pair, op);
    case OP_RESET_PEAK:
        tarn_allocator_reset_peak_stats(pair->real);
        ref_reset_peak_stats(pair->reference);
        return true;
    case OP_RESET_ACCUMULATED:
        tarn_allocator_reset_accumulated_stats(pair->real);
        ref_reset_accumulated_stats(pair->reference);
        return true;
    case OP_BASE:
        return do_base(pair, op);
    case OP_CACHE_INFO:
        return do_cache_info(pair, op);
    case OP_ARM_CALLBACK:
        pair->armed[0] = ptr;
        pair->armed[1] = ptr;
        return true;
    case OP_WALK:
        pair->until_walk = 1;
        return true;
    case OP_BEGIN_CAPTURE:
    case OP_END_CAPTURE:
        do_capture(pair, op);
        return true;
    case OP_JOIN:
        return do_join(pair, op);
    case OP_ANNOUNCE_CAPTURE:
        return same_status(pair, tarn_allocator_begin_capture(pair->real, NULL),
                           ref_begin_capture(pair->reference));
    case OP_ANNOUNCE_END:
        return same_status(pair, tarn_allocator_end_capture(pair->real, NULL),
                           ref_end_capture(pair->reference));
    default:
        return do_device(pair, op);
    }
}

uint64_t pair_placed(const struct pair *pair)
{
    return pair->placed;
}

uint64_t pair_reclaimed(const struct pair *pair)
{
    return ref_reclaimed_in_capture(pair->reference);
}

bool pair_apply(struct pair *pair, const struct op *op, char text[PAIR_TEXT_MAX])
{
    pair->text = text;
    pair->event_count = 0;
    ref_clear_events(pair->reference);
    pair_open_caches(pair);
    if (!do_op(pair, op) || !same_events(pair)) {
        return false;
    }
    if (--pair->until_stats == 0 || pair->until_walk == 1) {
        pair->until_stats = pair->mode == MODE_SINK ? 1 : STATS_EVERY;
        if (!same_stats(pair)) {
            return false;
        }
    }
    if (--pair->until_walk > 0) {
        return true;
    }
    pair->until_walk = pair->walk_every;
    return same_devices(pair) && same_walks(pair) && checks(pair);
}

size_t pair_run(const struct program *program, unsigned walk_every, char text[PAIR_TEXT_MAX])
{
    const uint64_t live = tarn_host_get_usage().live_count;
    struct pair *pair = pair_create(program, walk_every);
    size_t done = 0;

    while (done < program->count && pair_apply(pair, &program->ops[done], text)) {
        done++;
    }
    if (done == program->count) {
        const struct op walk = {.kind = OP_WALK};

        done -= done > 0 && !pair_apply(pair, &walk, text);
    }
    pair_destroy(pair);
    if (done > 0 && done == program->count && tarn_host_get_usage().live_count != live) {
        (void)snprintf(text, PAIR_TEXT_MAX, "host memory leaks");
        done--;
    }
    return done;
}
