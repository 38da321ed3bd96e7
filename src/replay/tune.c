/* SPDX-License-Identifier: MIT */
/*
 * A search over settings. A pick has the index of a value for each dimension, 0 = not set. The
 * first round tries each value alone; each further round expands the best picks not yet expanded,
 * changing one dimension at a time, until a round finds nothing better or the tries are used up.
 * Several threads compute a round; the next picks depend only on the results of whole rounds.
 */
#include "base/assertion.h"
#include "base/errinfo.h"
#include "base/host_mem.h"
#include "base/order.h"
#include "base/os_process.h"
#include "tarn/config.h"
#include "tarn/replay.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DIMENSIONS = 6,
    COLLECTION = 3, /* the dimension of garbage_collection_threshold */
    POLICY = 5,     /* that of policy, which PyTorch's own allocator does not know */
    TRIES_DEFAULT = 200,
    TRIES_MAX = 100000,
    THREADS_MAX = 64,
#ifdef TN_LIMITS_LOW /* tests/torture: that fewer picks are left */
    EXPANDED = 64
#else
    EXPANDED = 4 /* best picks per round */
#endif
};

struct dimension {
    const char *option;
    const char *const *values; /* NULL at the end; index 0, "not set", comes before them */
};

static const char *const grow_values[] = {"True", NULL};
static const char *const split_values[] = {"20",  "32",  "48",  "64",  "96",   "128", "192",
                                           "256", "384", "512", "768", "1024", NULL};
static const char *const round_values[] = {"2", "4", "8", "16", NULL};
static const char *const collect_values[] = {"0.6", "0.8", "0.9", NULL};
static const char *const policy_values[] = {"compact", NULL};
static const char *const segment_values[] = {"32", "64", "128", "256", NULL};

/* In the order in which they are tried. */
static const struct dimension dimensions[DIMENSIONS] = {
    {"expandable_segments", grow_values},       {"max_split_size_mb", split_values},
    {"roundup_power2_divisions", round_values}, {"garbage_collection_threshold", collect_values},
    {"large_segment_size_mb", segment_values},  {"policy", policy_values},
};

struct pick {
    uint8_t value[DIMENSIONS];
};

struct tried {
    struct pick pick;
    struct tarn_tune_row row;
    enum tarn_status status;
    enum tarn_tune_goal goal; /* of the search, for comparing */
    uint32_t number;          /* in the order of the search */
    bool expanded;            /* or not to be: row.removed */
};

struct tune {
    const struct tarn_replay *const *replays;
    size_t replay_count;
    struct tarn_tune_options options;
    struct tried *tried; /* options.tries + 1: the first has the recorded settings */
    uint32_t count;
    uint32_t computed;
    _Atomic uint32_t next; /* to be computed */
    _Atomic bool cancelled;
    bool is_limited;   /* without a limit there is no garbage collection */
    bool has_one_conf; /* all traces were recorded under the same settings */
};

/* ---- one pick ---- */

/* False when the settings exclude each other. */
static bool pick_conf(const struct pick *pick, char *conf)
{
    struct tarn_config config;
    size_t used = 0;

    conf[0] = '\0';
    for (size_t d = 0; d < DIMENSIONS; d++) {
        if (pick->value[d] > 0) {
            used +=
                (size_t)snprintf(conf + used, TARN_TUNE_CONF_MAX - used, "%s%s:%s", used ? "," : "",
                                 dimensions[d].option, dimensions[d].values[pick->value[d] - 1]);
        }
    }
    return tarn_config_parse(conf, &config, NULL) == TARN_OK;
}

static uint64_t peak(const struct tarn_replay_result *result, enum tarn_stat_kind kind)
{
    return (uint64_t)result->stats.by_pool[kind][TARN_STAT_ALL].peak;
}

static enum tarn_status try_trace(const struct tune *tune, const struct tarn_replay *replay,
                                  const char *conf, struct tarn_tune_row *row)
{
    const struct tarn_replay_options options = {.struct_size = sizeof options,
                                                .conf = conf,
                                                .memory_limit = tune->options.memory_limit,
                                                .device_total = tune->options.device_total,
                                                .stops_at_oom = tune->options.stops_at_oom};
    struct tarn_replay_result result = {.struct_size = sizeof result};
    enum tarn_status st = tarn_replay_run(replay, &options, &result, NULL);
    uint64_t capacity = 0;

    if (st) {
        return st;
    }
    row->peak_reserved += peak(&result, TARN_STAT_RESERVED_BYTES);
    row->peak_allocated += peak(&result, TARN_STAT_ALLOCATED_BYTES);
    row->peak_requested += peak(&result, TARN_STAT_REQUESTED_BYTES);
    row->device_calls += (uint64_t)(result.stats.num_device_alloc + result.stats.num_device_free);
    row->ooms += (uint64_t)result.stats.num_ooms;
    if (tune->options.goal == TARN_TUNE_CAPACITY) {
        st = tarn_replay_fit(replay, conf, &capacity, NULL);
        row->capacity += capacity;
    }
    return st;
}

/* Only the searching thread reports progress. */
static void tell(struct tune *tune, uint32_t begun)
{
    const struct tarn_progress *progress = &tune->options.progress;

    if (progress->report && !progress->report(progress->context, begun, tune->options.tries)) {
        atomic_store(&tune->cancelled, true);
    }
}

static void compute(struct tune *tune, bool tells)
{
    for (;;) {
        const uint32_t index = atomic_fetch_add(&tune->next, 1);

        if (index >= tune->count || atomic_load(&tune->cancelled)) {
            return;
        }
        struct tried *tried = &tune->tried[index];

        for (size_t i = 0; i < tune->replay_count && tried->status == TARN_OK; i++) {
            tried->status =
                try_trace(tune, tune->replays[i], index ? tried->row.conf : NULL, &tried->row);
        }
        if (tells) {
            tell(tune, index);
        }
    }
}

static void *compute_aside(void *context)
{
    compute(context, false);
    return NULL;
}

/* ---- order ---- */

/* Length of the first option of settings, in which commas also separate values in brackets. */
static size_t option_length(const char *conf)
{
    size_t length = 0;
    int depth = 0;

    for (; conf[length] && (depth > 0 || conf[length] != ','); length++) {
        depth += (conf[length] == '[') - (conf[length] == ']');
    }
    return length;
}

static unsigned options_set(const char *conf)
{
    unsigned count = 0;

    while (*conf) {
        conf += option_length(conf);
        conf += *conf == ',';
        count++;
    }
    return count;
}

enum {
    RANK_KEYS = 7
};

/* The first key that differs decides: the smaller one is better. For equal results, fewer options
 * win, then the earlier one. */
static void rank_fill(const struct tried *tried, uint64_t keys[RANK_KEYS])
{
    const struct tarn_tune_row *row = &tried->row;

    keys[0] = row->ooms;
    keys[1] = tried->goal == TARN_TUNE_CAPACITY ? row->capacity : 0;
    keys[2] = tried->goal == TARN_TUNE_DEVICE_CALLS ? row->device_calls : 0;
    keys[3] = row->peak_reserved;
    keys[4] = row->device_calls;
    keys[5] = options_set(row->conf);
    keys[6] = tried->number;
}

/* < 0 if the first is better. */
static int compare(const void *left, const void *right)
{
    uint64_t keys_a[RANK_KEYS];
    uint64_t keys_b[RANK_KEYS];
    int result = 0;

    rank_fill(left, keys_a);
    rank_fill(right, keys_b);
    for (size_t i = 0; i < RANK_KEYS && result == 0; i++) {
        result = tn_order(keys_a[i], keys_b[i]);
    }
    return result;
}

/* ---- rounds ---- */

static bool is_known(const struct tune *tune, const struct pick *pick)
{
    for (uint32_t i = 1; i < tune->count; i++) {
        if (memcmp(&tune->tried[i].pick, pick, sizeof *pick) == 0) {
            return true;
        }
    }
    return false;
}

static void add(struct tune *tune, const struct pick *pick)
{
    struct tried *tried = &tune->tried[tune->count];

    if (tune->count > tune->options.tries || is_known(tune, pick)) {
        return;
    }
    *tried = (struct tried){.pick = *pick, .goal = tune->options.goal, .number = tune->count};
    if (pick_conf(pick, tried->row.conf)) {
        tune->count++;
    }
}

static void add_neighbours(struct tune *tune, struct pick from)
{
    for (size_t d = 0; d < DIMENSIONS; d++) {
        const bool has_effect =
            (d != COLLECTION || tune->is_limited) && (d != POLICY || tune->options.tries_policies);
        struct pick pick = from;

        pick.value[d] = 0;
        add(tune, &pick);
        for (uint8_t v = 0; has_effect && dimensions[d].values[v]; v++) {
            pick.value[d] = (uint8_t)(v + 1);
            add(tune, &pick);
        }
    }
}

/* The recorded settings without one option each, since that option may do harm. */
static void add_removals(struct tune *tune)
{
    const char *conf = tune->tried[0].row.conf;

    for (const char *at = conf; tune->has_one_conf && *at && tune->count <= tune->options.tries;) {
        const size_t length = option_length(at);
        const size_t name = strcspn(at, ":");
        const char *rest = at + length + (at[length] == ',');

        if (strncmp(at, "rules:", strlen("rules:")) == 0) { /* as recorded in all tries */
            at = rest;
            continue;
        }
        struct tried *tried = &tune->tried[tune->count];
        struct tarn_config config;

        *tried =
            (struct tried){.goal = tune->options.goal, .number = tune->count, .expanded = true};
        memset(&tried->pick, UINT8_MAX, sizeof tried->pick); /* like no other */
        (void)snprintf(tried->row.removed, sizeof tried->row.removed, "%.*s",
                       (int)(name < length ? name : length), at);
        (void)snprintf(tried->row.conf, sizeof tried->row.conf, "%.*s%s",
                       (int)(at - conf) - (at > conf && !*rest), conf, rest);
        tune->count += tarn_config_parse(tried->row.conf, &config, NULL) == TARN_OK;
        at = rest;
    }
}

/* Computes the picks added. */
static enum tarn_status run_round(struct tune *tune)
{
    pthread_t threads[THREADS_MAX];
    uint32_t started = 0;
    enum tarn_status st = TARN_OK;

    atomic_store(&tune->next, tune->computed);
    while (started + 1 < tune->options.threads && started + tune->computed + 1 < tune->count &&
           pthread_create(&threads[started], NULL, compute_aside, tune) == 0) {
        started++;
    }
    compute(tune, true);
    for (uint32_t i = 0; i < started; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    for (uint32_t i = tune->computed; i < tune->count && st == TARN_OK; i++) {
        st = tune->tried[i].status;
    }
    tune->computed = tune->count;
    return atomic_load(&tune->cancelled) ? TARN_ERR_CANCELLED : st;
}

/* The best pick, or the best one not yet expanded; NULL if none. */
static struct tried *best(const struct tune *tune, bool must_be_open)
{
    struct tried *found = NULL;

    for (uint32_t i = 1; i < tune->computed; i++) {
        struct tried *tried = &tune->tried[i];

        if (!(must_be_open && tried->expanded) && (!found || compare(tried, found) < 0)) {
            found = tried;
        }
    }
    return found;
}

static enum tarn_status search(struct tune *tune)
{
    const struct tried *before = NULL;
    enum tarn_status st;

    if (tune->options.recommends && !tune->options.each) {
        add_removals(tune);
    }
    add_neighbours(tune, (struct pick){{0}});
    st = run_round(tune);
    while (st == TARN_OK && !tune->options.each && before != best(tune, false) &&
           tune->count <= tune->options.tries) {
        before = best(tune, false);
        for (int i = 0; i < EXPANDED; i++) {
            struct tried *from = best(tune, true);

            if (from) {
                from->expanded = true;
                add_neighbours(tune, from->pick);
            }
        }
        st = run_round(tune);
    }
    return st;
}

/* ---- the rows ---- */

enum {
    RESULTS = 5
};

static void results_fill(const struct tarn_tune_row *row, uint64_t results[RESULTS])
{
    results[0] = row->peak_reserved;
    results[1] = row->peak_allocated;
    results[2] = row->device_calls;
    results[3] = row->ooms;
    results[4] = row->capacity;
}

/* Whether a better row (the recorded settings aside) has the same results: this row's additional
 * options have no effect. */
static bool does_the_same(const struct tarn_tune_row *rows, size_t count,
                          const struct tarn_tune_row *row)
{
    uint64_t wanted[RESULTS];

    results_fill(row, wanted);
    for (size_t i = 1; i < count; i++) {
        uint64_t results[RESULTS];

        results_fill(&rows[i], results);
        if (memcmp(results, wanted, sizeof wanted) == 0) {
            return true;
        }
    }
    return false;
}

/* What is minimized. */
static uint64_t figure(const struct tried *tried)
{
    return tried->goal == TARN_TUNE_CAPACITY       ? tried->row.capacity
           : tried->goal == TARN_TUNE_DEVICE_CALLS ? tried->row.device_calls
                                                   : tried->row.peak_reserved;
}

/* Whether the first needs at most 1 % more than the second. */
static bool is_close(const struct tried *tried, const struct tried *to)
{
    return tried->row.ooms <= to->row.ooms && (double)figure(tried) <= 1.01 * (double)figure(to);
}

/* After sorting. The recorded settings are the simplest: nothing changes. */
static struct tried *recommended(const struct tune *tune)
{
    struct tried *simplest = &tune->tried[1];

    if (tune->has_one_conf && is_close(&tune->tried[0], simplest)) {
        return &tune->tried[0];
    }
    for (uint32_t i = 2; i < tune->count; i++) {
        if (is_close(&tune->tried[i], &tune->tried[1]) &&
            options_set(tune->tried[i].row.conf) < options_set(simplest->row.conf)) {
            simplest = &tune->tried[i];
        }
    }
    return simplest;
}

/* After sorting: the option without which the recorded settings do best, if it does harm. */
static struct tried *removal(const struct tune *tune)
{
    for (uint32_t i = 1; i < tune->count; i++) {
        if (tune->tried[i].row.removed[0]) {
            return is_close(&tune->tried[0], &tune->tried[i]) ? NULL : &tune->tried[i];
        }
    }
    return NULL;
}

/* The second row, and the third if there is something to remove. */
static size_t give_recommended(const struct tune *tune, struct tarn_tune_row *rows, size_t capacity)
{
    const struct tried *first = recommended(tune);
    const struct tried *harmful = removal(tune);

    if (capacity < 2) {
        return 1;
    }
    if (harmful && strcmp(harmful->row.conf, first->row.conf) == 0) {
        first = harmful; /* the same settings, with what they leave out */
        harmful = NULL;
    }
    rows[1] = first->row;
    if (!harmful || capacity < 3) {
        return 2;
    }
    rows[2] = harmful->row;
    return 3;
}

static size_t give_rows(struct tune *tune, struct tarn_tune_row *rows, size_t capacity)
{
    size_t count = 1;

    rows[0] = tune->tried[0].row;
    if (!tune->options.each) {
        qsort(&tune->tried[1], tune->count - 1, sizeof *tune->tried, compare);
    }
    tn_assert(tune->count > 1); /* at least the default settings were tried */
    if (!tune->options.each && tune->options.recommends) {
        count = give_recommended(tune, rows, capacity);
    }
    for (size_t i = 1; i < tune->count && count < capacity; i++) {
        if (tune->options.each || count < 2 || !does_the_same(rows, count, &tune->tried[i].row)) {
            rows[count++] = tune->tried[i].row;
        }
    }
    return count;
}

static bool have_one_conf(const struct tarn_replay *const *replays, size_t count, const char *conf)
{
    for (size_t i = 0; i < count; i++) {
        struct tarn_replay_info info = {.struct_size = sizeof info};

        tarn_replay_get_info(replays[i], &info);
        if (strcmp(info.conf, conf) != 0) {
            return false;
        }
    }
    return true;
}

static struct tarn_tune_options options_read(const struct tarn_tune_options *given)
{
    struct tarn_tune_options options = {.struct_size = sizeof options};

    if (given) {
        memcpy(&options, given,
               given->struct_size < sizeof options ? given->struct_size : sizeof options);
    }
    options.tries = options.tries ? options.tries : TRIES_DEFAULT;
    options.tries = options.tries < TRIES_MAX ? options.tries : TRIES_MAX;
    options.threads = options.threads ? options.threads : tn_os_processors();
    options.threads = options.threads < THREADS_MAX ? options.threads : THREADS_MAX;
    return options;
}

enum tarn_status tarn_replay_tune(const struct tarn_replay *const *replays, size_t count,
                                  const struct tarn_tune_options *options,
                                  struct tarn_tune_row *rows, size_t capacity, size_t *count_out,
                                  struct tarn_error *error)
{
    struct tune tune = {
        .replays = replays, .replay_count = count, .options = options_read(options)};
    struct tarn_replay_info info = {.struct_size = sizeof info};

    if (count == 0 || capacity == 0 || (unsigned)tune.options.goal > TARN_TUNE_CAPACITY) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                       "a trace, space for rows and a goal are required");
    }
    const size_t bytes = ((size_t)tune.options.tries + 1) * sizeof *tune.tried;

    tune.tried = tn_host_alloc_zero(bytes);
    if (!tune.tried) {
        return tn_fail_memory(error);
    }
    for (size_t i = count; i > 0; i--) { /* ends with the first */
        tarn_replay_get_info(replays[i - 1], &info);
        tune.is_limited = tune.is_limited || (info.memory_limit > 0 && !info.limit_is_device);
    }
    tune.is_limited = tune.options.memory_limit ? tune.options.memory_limit != UINT64_MAX
                                                : tune.is_limited && !tune.options.device_total;
    (void)snprintf(tune.tried[0].row.conf, sizeof tune.tried[0].row.conf, "%s", info.conf);
    tune.tried[0].goal = tune.options.goal;
    tune.has_one_conf = have_one_conf(replays, count, info.conf);
    tune.count = 1;
    const enum tarn_status st = search(&tune);

    if (st == TARN_OK) {
        *count_out = give_rows(&tune, rows, capacity);
    }
    tn_host_free(tune.tried, bytes);
    if (st == TARN_ERR_CANCELLED) {
        return tn_fail(error, st, "the search was stopped by the caller");
    }
    return st ? tn_fail(error, st, "a replay of the search failed: %s", tarn_status_text(st))
              : TARN_OK;
}
