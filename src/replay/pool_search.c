/* SPDX-License-Identifier: MIT */
#include "replay/pool_search.h"

#include "base/assertion.h"
#include "base/errinfo.h"
#include "base/host_mem.h"
#include "replay/run.h"

#include <string.h>

enum {
#ifdef TN_LIMITS_LOW /* tests/torture */
    POOLS_MAX = 1,
    OPERATIONS_MAX = 200
#else
    POOLS_MAX = 32,           /* found ones */
    OPERATIONS_MAX = 16 << 20 /* approximate bound of those replayed */
#endif
};

#define NO_LIFETIME UINT32_MAX

/* A segment from its allocation to its release; of an expandable one, the mapped part. */
struct lifetime {
    uint64_t address;
    uint64_t size;
    uint64_t mapped; /* current bytes */
    uint64_t start;  /* entry; 0 if it predates the trace */
    uint64_t end;    /* entry; UINT64_MAX: a final segment, whose pool is known */
    uint16_t pool;
};

struct pool_search {
    struct tn_program *program;
    const struct tn_model *model;
    const struct tn_trace *trace;
    const struct tarn_config *config;
    struct tarn_error *error;
    struct tn_vec lifetimes; /* struct lifetime, in the order of the trace */
    struct tn_vec ops;       /* struct tn_op: as compiled */
    uint32_t *lifetime_of;   /* by operation: the segment of a request's block */
    uint64_t replayed;       /* operations */
    uint16_t first_found;    /* index of the first pool found */
};

/* ---- segments ---- */

static struct lifetime *lifetime_at(const struct pool_search *s, uint64_t address, uint64_t entry)
{
    struct lifetime *lifetimes = s->lifetimes.items;

    for (size_t i = s->lifetimes.count; i-- > 0;) {
        if (address - lifetimes[i].address < lifetimes[i].size && lifetimes[i].start <= entry &&
            entry < lifetimes[i].end) {
            return &lifetimes[i];
        }
    }
    return NULL;
}

static bool lifetime_add(struct pool_search *s, uint64_t address, uint64_t size, uint64_t start)
{
    const struct lifetime added = {
        .address = address, .size = size, .mapped = size, .start = start, .end = UINT64_MAX};

    return tn_vec_add(&s->lifetimes, &added);
}

/* The expandable segment that a new range extends, or NULL. Ranges are mapped from its front on. */
static struct lifetime *lifetime_before(const struct pool_search *s, uint64_t address)
{
    struct lifetime *lifetimes = s->lifetimes.items;

    for (size_t i = s->lifetimes.count; i-- > 0;) {
        if (lifetimes[i].end == UINT64_MAX && address >= lifetimes[i].address &&
            address - lifetimes[i].address <= lifetimes[i].size + TN_RANGE_GAP) {
            return &lifetimes[i];
        }
    }
    return NULL;
}

static bool range_add(struct pool_search *s, uint64_t address, uint64_t size, uint64_t start)
{
    struct lifetime *grown = lifetime_before(s, address);

    if (!grown) {
        return lifetime_add(s, address, size, start);
    }
    grown->mapped += size;
    if (grown->size < address - grown->address + size) {
        grown->size = address - grown->address + size;
    }
    return true;
}

static void range_end(const struct pool_search *s, const struct tn_trace_entry *entry,
                      uint64_t index)
{
    struct lifetime *ended = lifetime_at(s, entry->address, index);

    if (ended) {
        ended->mapped -= ended->mapped < entry->size ? ended->mapped : entry->size;
        ended->end = ended->mapped == 0 ? index : UINT64_MAX;
    }
}

static bool lifetimes_find(struct pool_search *s)
{
    const struct tn_start_segment *before = s->program->start_segments.items;

    for (size_t i = 0; i < s->program->start_segments.count; i++) {
        if (!(before[i].is_expandable ? range_add(s, before[i].address, before[i].size, 0)
                                      : lifetime_add(s, before[i].address, before[i].size, 0))) {
            return false;
        }
    }
    for (uint64_t i = 0; i < s->trace->count; i++) {
        const struct tn_trace_entry *entry = tn_trace_at(s->model, s->trace, i);
        bool added = true;

        if (entry->action == TN_TRACE_SEGMENT_ALLOC) {
            added = lifetime_add(s, entry->address, entry->size, i);
        } else if (entry->action == TN_TRACE_SEGMENT_MAP) {
            added = range_add(s, entry->address, entry->size, i);
        } else if (tn_trace_gives_back(entry)) {
            range_end(s, entry, i);
        }
        if (!added) {
            return false;
        }
    }
    return true;
}

/* Numbers of the segments that exist at an entry; few at a time. */
struct present {
    struct tn_vec numbers; /* uint32_t */
    size_t next;           /* of the segments in the order of the trace */
};

static bool present_at(struct pool_search *s, struct present *present, uint64_t entry)
{
    const struct lifetime *lifetimes = s->lifetimes.items;

    while (present->next < s->lifetimes.count && lifetimes[present->next].start <= entry) {
        const uint32_t number = (uint32_t)present->next++;

        if (!tn_vec_add(&present->numbers, &number)) {
            return false;
        }
    }
    return true;
}

/* Also removes segments that have ended. */
static uint32_t present_find(const struct pool_search *s, struct present *present,
                             const struct tn_op *op)
{
    const struct lifetime *lifetimes = s->lifetimes.items;
    uint32_t *numbers = present->numbers.items;

    for (size_t i = present->numbers.count; i-- > 0;) {
        const struct lifetime *lifetime = &lifetimes[numbers[i]];

        if (lifetime->end <= op->entry) {
            numbers[i] = numbers[--present->numbers.count];
        } else if (op->address - lifetime->address < lifetime->size) {
            return numbers[i];
        }
    }
    return NO_LIFETIME;
}

static bool requests_place(struct pool_search *s)
{
    const struct tn_op *ops = s->ops.items;
    struct present present = {0};
    bool placed = true;

    s->lifetime_of = tn_host_alloc(s->ops.count * sizeof *s->lifetime_of);
    if (!s->lifetime_of) {
        return false;
    }
    tn_vec_init(&present.numbers, sizeof(uint32_t));
    for (size_t i = 0; i < s->ops.count && placed; i++) {
        s->lifetime_of[i] = NO_LIFETIME;
        if (ops[i].kind == TN_OP_ALLOC) {
            placed = present_at(s, &present, ops[i].entry);
            s->lifetime_of[i] = present_find(s, &present, &ops[i]);
        }
    }
    tn_vec_fini(&present.numbers);
    return placed;
}

/* The pool found for an operation; 0 if none. */
static uint16_t found_pool(const struct pool_search *s, size_t op)
{
    const struct lifetime *lifetimes = s->lifetimes.items;

    return s->lifetime_of[op] == NO_LIFETIME ? 0 : lifetimes[s->lifetime_of[op]].pool;
}

static uint64_t highest_id(const struct pool_search *s)
{
    const struct tarn_pool_id *known = s->program->pools.items;
    uint64_t highest = 0;

    for (size_t i = 0; i < s->program->pools.count; i++) {
        highest = known[i].first > highest ? known[i].first : highest;
    }
    return highest;
}

/* Whether there are numbers and ids for as many pools as may be found: a file may use them up. */
static bool has_room(const struct pool_search *s)
{
    return s->program->pools.count + POOLS_MAX <= (size_t)UINT16_MAX + 1 &&
           highest_id(s) <= UINT64_MAX - POOLS_MAX;
}

static bool is_worth_it(const struct pool_search *s)
{
    bool gave_back = false;

    for (uint64_t i = 0; i < s->trace->count; i++) {
        const struct tn_trace_entry *entry = tn_trace_at(s->model, s->trace, i);

        if (tn_model_extra(s->model, entry->extra)->has_pool) {
            return false;
        }
        gave_back = gave_back || tn_trace_gives_back(entry);
    }
    return gave_back && s->config->backend == TARN_BACKEND_NATIVE && has_room(s);
}

/* ---- programs with pools ---- */

static uint64_t last_request(const struct pool_search *s, uint16_t pool)
{
    const struct tn_op *ops = s->ops.items;

    for (size_t i = s->ops.count; i-- > 0;) {
        if (found_pool(s, i) == pool) {
            return ops[i].entry;
        }
    }
    return 0;
}

/* A pool's use ends before the first release of one of its segments after its last request. */
static uint64_t end_of_use(const struct pool_search *s, uint16_t pool)
{
    const struct lifetime *lifetimes = s->lifetimes.items;
    const uint64_t last = last_request(s, pool);
    uint64_t end = UINT64_MAX;

    for (size_t i = 0; i < s->lifetimes.count; i++) {
        if (lifetimes[i].pool == pool && lifetimes[i].end > last && lifetimes[i].end < end) {
            end = lifetimes[i].end;
        }
    }
    return end;
}

/* There is room. */
static void add_op(struct pool_search *s, const struct tn_op *op)
{
    struct tn_vec *ops = &s->program->ops;

    tn_assert(ops->count < ops->capacity);
    ((struct tn_op *)ops->items)[ops->count++] = *op;
}

/* Adds, before a flush, the ends of use of found pools up to the entry `next` of the next
 * operation. A flush has the number of the first entry that releases a segment. */
static void add_releases(struct pool_search *s, const struct tn_op *flush, uint64_t next,
                         uint64_t *ends, size_t count)
{
    for (size_t k = 0; k < count; k++) {
        tn_assert(ends[k] >= flush->entry); /* the flush of an earlier end has had it */
        if (ends[k] < next) {
            const struct tn_op release = {.kind = TN_OP_RELEASE,
                                          .pool = (uint16_t)(s->first_found + k),
                                          .entry = flush->entry,
                                          .slot = TN_NO_SLOT};

            ends[k] = UINT64_MAX;
            add_op(s, &release);
        }
    }
}

/* Rebuilds the operations with the pools of the segments and the ends of their use. */
static bool program_rebuild(struct pool_search *s)
{
    const struct tn_op *ops = s->ops.items;
    const size_t found = s->program->pools.count - s->first_found;
    uint64_t ends[POOLS_MAX] = {0};

    tn_assert(found <= POOLS_MAX);

    for (size_t k = 0; k < found; k++) {
        ends[k] = end_of_use(s, (uint16_t)(s->first_found + k));
    }
    s->program->ops.count = 0;
    if (!tn_vec_reserve(&s->program->ops, s->ops.count + found)) { /* each ends once */
        return false;
    }
    for (size_t i = 0; i < s->ops.count; i++) {
        const uint64_t next = i + 1 < s->ops.count ? ops[i + 1].entry : UINT64_MAX;

        if (ops[i].kind == TN_OP_FLUSH || ops[i].kind == TN_OP_FLUSH_WANT) {
            add_releases(s, &ops[i], next, ends, found);
        }
        struct tn_op op = ops[i];

        op.pool = found_pool(s, i) ? found_pool(s, i) : op.pool;
        add_op(s, &op);
    }
    return true;
}

/* ---- trying ---- */

struct attempt {
    uint64_t entry; /* the first that differs; UINT64_MAX: none */
    tarn_ptr taken; /* its address in the replay */
};

static enum tarn_status attempt(struct pool_search *s, struct attempt *out)
{
    const struct tn_runner_room room = tn_runner_room_recorded(&s->program->limit);
    struct tarn_replay_result result = {.struct_size = sizeof result};
    struct tn_runner runner;
    enum tarn_status st = tn_runner_open(&runner, s->program, s->config, &room, s->error);

    if (st) {
        return st;
    }
    runner.stop_at_other = true;
    s->replayed += s->program->ops.count;
    st = tn_run_program(&runner, &result, s->error);
    if (st == TARN_OK) {
        *out = (struct attempt){.entry = result.first_other < 0 ? UINT64_MAX
                                                                : (uint64_t)result.first_other,
                                .taken = runner.other};
    }
    tn_runner_close(&runner);
    return st;
}

/* The best choice of a pool for a segment. */
struct best {
    struct attempt attempt;
    struct lifetime *lifetime;
    uint16_t pool;
};

static enum tarn_status try_pools(struct pool_search *s, struct lifetime *lifetime,
                                  struct best *best)
{
    const uint16_t own = lifetime->pool;
    enum tarn_status st = TARN_OK;

    for (size_t pool = s->first_found; pool < s->program->pools.count && st == TARN_OK; pool++) {
        struct attempt made = {0};

        lifetime->pool = (uint16_t)pool;
        st = program_rebuild(s) ? attempt(s, &made) : tn_fail_memory(s->error);
        if (st == TARN_OK && made.entry > best->attempt.entry) {
            *best = (struct best){.attempt = made, .lifetime = lifetime, .pool = lifetime->pool};
        }
    }
    lifetime->pool = own;
    return st;
}

/* Adds an empty pool. */
static bool pool_add(struct pool_search *s)
{
    return tn_vec_add(&s->program->pools, &(struct tarn_pool_id){.first = highest_id(s) + 1});
}

static bool pool_is_used(const struct pool_search *s, uint16_t pool)
{
    const struct lifetime *lifetimes = s->lifetimes.items;

    for (size_t i = 0; i < s->lifetimes.count; i++) {
        if (lifetimes[i].pool == pool) {
            return true;
        }
    }
    return false;
}

/* Improves on an attempt that differs; *better_out: whether a choice reproduces more of the run. */
static enum tarn_status search_round(struct pool_search *s, struct attempt *at, bool *better_out)
{
    struct best best = {.attempt = *at};
    const struct tn_trace_entry *entry = tn_trace_at(s->model, s->trace, at->entry);
    struct lifetime *sides[] = {lifetime_at(s, entry->address, at->entry),
                                lifetime_at(s, at->taken, at->entry)};
    enum tarn_status st = TARN_OK;

    *better_out = false;
    if (!pool_is_used(s, (uint16_t)(s->program->pools.count - 1)) ||
        s->program->pools.count - s->first_found >= POOLS_MAX) {
        ; /* there is an empty one, or the limit is reached */
    } else if (!pool_add(s)) {
        return tn_fail_memory(s->error);
    }
    for (size_t i = 0; i < 2 && st == TARN_OK; i++) {
        if (sides[i] && sides[i]->end != UINT64_MAX) {
            st = try_pools(s, sides[i], &best);
        }
    }
    if (st == TARN_OK && best.lifetime) {
        best.lifetime->pool = best.pool;
        *at = best.attempt;
        *better_out = true;
    }
    return st;
}

static void note_pools(struct pool_search *s)
{
    unsigned found = 0;

    for (size_t pool = s->first_found; pool < s->program->pools.count; pool++) {
        found += pool_is_used(s, (uint16_t)pool);
    }
    if (found > 0) {
        tn_program_note(s->program,
                        "segments of private pools that were released before the end were "
                        "identified by the addresses of blocks: %u pools",
                        found);
    }
}

static enum tarn_status search(struct pool_search *s)
{
    struct attempt at = {0};
    enum tarn_status st = attempt(s, &at);
    bool better = true;

    if (st || at.entry == UINT64_MAX) {
        return st;
    }
    s->first_found = (uint16_t)s->program->pools.count;
    if (!lifetimes_find(s) || !requests_place(s) || !pool_add(s)) {
        return tn_fail_memory(s->error);
    }
    while (st == TARN_OK && better && at.entry != UINT64_MAX && s->replayed < OPERATIONS_MAX) {
        st = search_round(s, &at, &better);
    }
    if (st == TARN_OK && !program_rebuild(s)) {
        st = tn_fail_memory(s->error);
    }
    if (st == TARN_OK) {
        note_pools(s);
    }
    return st;
}

enum tarn_status tn_pool_search(struct tn_program *program, const struct tn_model *model,
                                const struct tarn_config *config, struct tarn_error *error)
{
    struct pool_search s = {.program = program,
                            .model = model,
                            .trace = &model->traces[program->device],
                            .config = config,
                            .error = error};
    const size_t pools = program->pools.count;

    tn_vec_init(&s.lifetimes, sizeof(struct lifetime));
    tn_vec_init(&s.ops, sizeof(struct tn_op));
    if (!is_worth_it(&s)) {
        return TARN_OK;
    }
    if (!tn_vec_reserve(&s.ops, program->ops.count)) {
        return tn_fail_memory(error);
    }
    tn_assert(program->ops.count > 0); /* what was given back is an operation */
    memcpy(s.ops.items, program->ops.items, program->ops.count * sizeof(struct tn_op));
    s.ops.count = program->ops.count;
    const enum tarn_status st = search(&s);

    if (st) { /* restore it */
        memcpy(program->ops.items, s.ops.items, s.ops.count * sizeof(struct tn_op));
        program->ops.count = s.ops.count;
        program->pools.count = pools;
    }
    if (s.lifetime_of) {
        tn_host_free(s.lifetime_of, s.ops.count * sizeof *s.lifetime_of);
    }
    tn_vec_fini(&s.ops);
    tn_vec_fini(&s.lifetimes);
    return st;
}
