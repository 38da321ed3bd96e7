/* SPDX-License-Identifier: MIT */
/* Each comparison adds one line per difference to the call's text. */
#include "replay/verify_run.h"

#include <stdio.h>
#include <string.h>

/* ---- events ---- */

static bool event_equals(const struct tn_decision_log *log, const struct tn_json_value *logged,
                         const struct tarn_trace_event *sent)
{
    const char *action = tn_json_text(tn_json_at(logged, 0));

    if (strcmp(action, tarn_action_name(sent->action)) != 0) {
        return false;
    }
    /* The device's free memory depends on the machine. */
    return (sent->action == TARN_ACTION_OOM ||
            (uint64_t)tn_json_integer(tn_json_at(logged, 1)) == sent->address) &&
           (uint64_t)tn_json_integer(tn_json_at(logged, 2)) == sent->size &&
           tn_decision_log_stream(log, tn_json_at(logged, 3)) == sent->stream;
}

static void format_logged(const struct tn_decision_log *log, const struct tn_json_value *logged,
                          char *text, size_t size)
{
    if (!logged) {
        (void)snprintf(text, size, "nothing");
        return;
    }
    (void)snprintf(text, size, "%s 0x%llx %llu stream 0x%llx", tn_json_text(tn_json_at(logged, 0)),
                   (unsigned long long)tn_json_integer(tn_json_at(logged, 1)),
                   (unsigned long long)tn_json_integer(tn_json_at(logged, 2)),
                   (unsigned long long)tn_decision_log_stream(log, tn_json_at(logged, 3)));
}

static void format_sent(const struct tarn_trace_event *sent, char *text, size_t size)
{
    if (!sent) {
        (void)snprintf(text, size, "nothing");
        return;
    }
    (void)snprintf(text, size, "%s 0x%llx %llu stream 0x%llx", tarn_action_name(sent->action),
                   (unsigned long long)sent->address, (unsigned long long)sent->size,
                   (unsigned long long)sent->stream);
}

void tn_verify_compare_events(struct tn_verify_run *run)
{
    const size_t logged = tn_json_length(run->call.events);
    const struct tarn_trace_event *events = run->events.items;
    const size_t most = logged > run->events.count ? logged : run->events.count;

    for (size_t i = 0; i < most; i++) {
        const struct tn_json_value *expected = i < logged ? tn_json_at(run->call.events, i) : NULL;
        const struct tarn_trace_event *sent = i < run->events.count ? &events[i] : NULL;

        if (!expected || !sent || !event_equals(&run->log, expected, sent)) {
            char wanted[160];
            char got[160];

            format_logged(&run->log, expected, wanted, sizeof wanted);
            format_sent(sent, got, sizeof got);
            tn_verify_differs(run, "  event %llu: expected %s, got %s", (unsigned long long)i,
                              wanted, got);
        }
    }
}

/* ---- counters ---- */

struct named_number {
    const char *name;
    size_t offset; /* in struct tarn_stats */
};

static const struct named_number plain_numbers[] = {
    {"num_alloc_retries", offsetof(struct tarn_stats, num_alloc_retries)},
    {"num_ooms", offsetof(struct tarn_stats, num_ooms)},
    {"num_sync_all_streams", offsetof(struct tarn_stats, num_sync_all_streams)},
    {"num_device_alloc", offsetof(struct tarn_stats, num_device_alloc)},
    {"num_device_free", offsetof(struct tarn_stats, num_device_free)},
    {"max_split_size", offsetof(struct tarn_stats, max_split_size)},
};

/* A plain number by its name; NULL if unknown. */
static const int64_t *stats_number(const struct tarn_stats *stats, const char *name)
{
    for (size_t i = 0; i < sizeof plain_numbers / sizeof plain_numbers[0]; i++) {
        if (strcmp(plain_numbers[i].name, name) == 0) {
            return (const int64_t *)(const void *)((const char *)stats + plain_numbers[i].offset);
        }
    }
    return NULL;
}

/* The counters of all pools by name; NULL if unknown. */
static const struct tarn_stat *stats_by_pool(const struct tarn_stats *stats, const char *name)
{
    for (int kind = 0; kind < TARN_STAT_KINDS; kind++) {
        if (strcmp(tarn_stat_kind_name((enum tarn_stat_kind)kind), name) == 0) {
            return stats->by_pool[kind];
        }
    }
    return NULL;
}

static struct tarn_stats run_stats(const struct tn_verify_run *run)
{
    struct tarn_stats stats = {.struct_size = sizeof stats};

    tarn_allocator_get_stats(run->allocator, &stats);
    return stats;
}

void tn_verify_compare_brief(struct tn_verify_run *run)
{
    const struct tarn_stats stats = run_stats(run);

    for (uint32_t i = 0; i < run->log.brief_count; i++) {
        const char *name = run->log.brief[i];
        const struct tarn_stat *by_pool = stats_by_pool(&stats, name);
        const int64_t *number =
            by_pool ? &by_pool[TARN_STAT_ALL].current : stats_number(&stats, name);
        const struct tn_json_value *expected = tn_json_at(run->call.brief, i);

        if (!number || !tn_json_is(expected, TN_JSON_INTEGER) ||
            tn_json_integer(expected) != *number) {
            tn_verify_differs(run, "  %s after the call: expected %lld, got %lld", name,
                              (long long)tn_json_integer(expected),
                              number ? (long long)*number : -1LL);
        }
    }
}

static void compare_stat(struct tn_verify_run *run, const char *name, const char *pool,
                         const struct tn_json_value *expected, const struct tarn_stat *stat)
{
    const int64_t got[4] = {stat->current, stat->peak, stat->allocated, stat->freed};
    static const char *const parts[4] = {"current", "peak", "allocated", "freed"};

    for (size_t i = 0; i < 4; i++) {
        const struct tn_json_value *value = tn_json_at(expected, i);

        if (!tn_json_is(value, TN_JSON_INTEGER) || tn_json_integer(value) != got[i]) {
            tn_verify_differs(run, "  %s%s%s.%s: expected %lld, got %lld", name, pool[0] ? "." : "",
                              pool, parts[i], (long long)tn_json_integer(value), (long long)got[i]);
        }
    }
}

static void compare_counter(struct tn_verify_run *run, const struct tarn_stats *stats,
                            const char *name, const struct tn_json_value *expected)
{
    const struct tarn_stat *by_pool = stats_by_pool(stats, name);
    const int64_t *number = stats_number(stats, name);

    if (by_pool) {
        for (int pool = 0; pool < TARN_STAT_POOLS; pool++) {
            compare_stat(run, name, tarn_stat_pool_name((enum tarn_stat_pool)pool),
                         tn_json_at(expected, (size_t)pool), &by_pool[pool]);
        }
    } else if (strcmp(name, "oversize_allocations") == 0) {
        compare_stat(run, name, "", expected, &stats->oversize_allocations);
    } else if (strcmp(name, "oversize_segments") == 0) {
        compare_stat(run, name, "", expected, &stats->oversize_segments);
    } else if (!number || !tn_json_is(expected, TN_JSON_INTEGER) ||
               tn_json_integer(expected) != *number) {
        tn_verify_differs(run, "  %s: expected %lld, got %lld", name,
                          (long long)tn_json_integer(expected), number ? (long long)*number : -1LL);
    }
}

void tn_verify_compare_stats(struct tn_verify_run *run)
{
    const struct tarn_stats stats = run_stats(run);
    const struct tn_json_value *recorded = run->call.stats;

    for (size_t i = 0; i < tn_json_pairs(recorded); i++) {
        compare_counter(run, &stats, tn_json_key(recorded, i), tn_json_pair(recorded, i));
    }
}

/* ---- snapshots ---- */

struct snapshot_walk {
    struct tn_verify_run *run;
    const struct tn_json_value *segment; /* the current one */
    size_t segment_index;
    size_t block_index;
    uint64_t address;
};

static void compare_number(struct tn_verify_run *run, uint64_t address,
                           const struct tn_json_value *object, const char *key, uint64_t got)
{
    const struct tn_json_value *value = tn_json_get(object, key);

    if (!tn_json_is(value, TN_JSON_INTEGER) || (uint64_t)tn_json_integer(value) != got) {
        tn_verify_differs(run, "  segment 0x%llx: %s expected %lld, got %llu",
                          (unsigned long long)address, key, (long long)tn_json_integer(value),
                          (unsigned long long)got);
    }
}

static void finish_segment(struct snapshot_walk *walk)
{
    const struct tn_json_value *blocks = tn_json_get(walk->segment, "blocks");

    if (walk->segment && tn_json_length(blocks) != walk->block_index) {
        tn_verify_differs(walk->run, "  segment 0x%llx: expected %zu blocks, got %zu",
                          (unsigned long long)walk->address, tn_json_length(blocks),
                          walk->block_index);
    }
}

static bool compare_segment(void *context, const struct tarn_segment_info *got)
{
    struct snapshot_walk *walk = context;
    struct tn_verify_run *run = walk->run;
    const struct tn_json_value *expected = tn_json_at(run->call.segments, walk->segment_index);
    const struct tn_json_value *pool = tn_json_get(expected, "pool");

    finish_segment(walk);
    walk->segment = expected;
    walk->segment_index++;
    walk->block_index = 0;
    walk->address = got->address;
    if (!expected) {
        tn_verify_differs(run, "  segment 0x%llx: not in the recorded snapshot",
                          (unsigned long long)got->address);
        return false;
    }
    compare_number(run, got->address, expected, "address", got->address);
    compare_number(run, got->address, expected, "total_size", got->total_size);
    compare_number(run, got->address, expected, "requested_size", got->requested_size);
    compare_number(run, got->address, expected, "allocated_size", got->allocated_size);
    compare_number(run, got->address, expected, "active_size", got->active_size);
    if (tn_decision_log_stream(&run->log, tn_json_get(expected, "stream")) != got->stream) {
        tn_verify_differs(run, "  segment 0x%llx: belongs to another stream",
                          (unsigned long long)got->address);
    }
    compare_number(run, got->address, expected, "is_large", got->is_large);
    compare_number(run, got->address, expected, "is_expandable", got->is_expandable);
    if ((uint64_t)tn_json_integer(tn_json_at(pool, 0)) != got->pool.first ||
        (uint64_t)tn_json_integer(tn_json_at(pool, 1)) != got->pool.second) {
        tn_verify_differs(run, "  segment 0x%llx: belongs to another pool",
                          (unsigned long long)got->address);
    }
    return true;
}

static bool compare_block(void *context, const struct tarn_block_info *got)
{
    struct snapshot_walk *walk = context;
    const struct tn_json_value *blocks = tn_json_get(walk->segment, "blocks");
    const struct tn_json_value *expected = tn_json_at(blocks, walk->block_index);
    const uint64_t numbers[4] = {got->size, got->requested_size, got->allocated, got->active};
    static const char *const names[4] = {"size", "requested_size", "allocated", "active"};

    walk->block_index++;
    for (size_t i = 0; i < 4 && expected; i++) {
        const struct tn_json_value *value = tn_json_at(expected, i);

        if (!tn_json_is(value, TN_JSON_INTEGER) || (uint64_t)tn_json_integer(value) != numbers[i]) {
            tn_verify_differs(walk->run, "  block 0x%llx: %s expected %lld, got %llu",
                              (unsigned long long)got->address, names[i],
                              (long long)tn_json_integer(value), (unsigned long long)numbers[i]);
        }
    }
    return true;
}

void tn_verify_compare_snapshot(struct tn_verify_run *run)
{
    struct snapshot_walk walk = {.run = run};
    const struct tarn_walker walker = {
        .context = &walk, .segment = compare_segment, .block = compare_block};
    const size_t expected = tn_json_length(run->call.segments);

    const enum tarn_status walked = tarn_allocator_walk(run->allocator, &walker);

    tn_assert(walked == TARN_OK); /* the caching engine can always be walked */
    (void)walked;
    finish_segment(&walk);
    if (walk.segment_index != expected) {
        tn_verify_differs(run, "  snapshot: expected %zu segments, got %zu", expected,
                          walk.segment_index);
    }
}

/* ---- messages ---- */

/* Skips the free bytes and the sentences about processes, which depend on the machine: only the
 * text before " of which " and from here on is compared. */
static const char *message_skip_machine(const char *text)
{
    const char *at = strstr(text, " is free. ");

    at = at ? at + strlen(" is free. ") : text;
    while (strncmp(at, "Process ", 8) == 0 || strncmp(at, "Including non-PyTorch", 21) == 0) {
        const char *end = strstr(at, " in use. ");

        if (!end) {
            break;
        }
        at = end + strlen(" in use. ");
    }
    return at;
}

void tn_verify_compare_message(struct tn_verify_run *run, const char *message)
{
    const char *expected = run->call.message;

    if (!expected) {
        return;
    }
    const char *expected_cut = strstr(expected, " of which ");
    const char *cut = strstr(message, " of which ");
    const bool same =
        expected_cut && cut
            ? expected_cut - expected == cut - message &&
                  strncmp(expected, message, (size_t)(cut - message)) == 0 &&
                  strcmp(message_skip_machine(expected_cut), message_skip_machine(cut)) == 0
            : strcmp(expected, message) == 0;

    if (!same) {
        tn_verify_differs(run, "  message: expected \"%s\", got \"%s\"", expected, message);
    }
}
