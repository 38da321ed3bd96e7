/* SPDX-License-Identifier: MIT */
#include "device/sim_space.h"

#include "base/assertion.h"
#include "base/checked.h"
#include "base/finding.h"
#include "base/host_mem.h"

#include <inttypes.h>
#include <string.h>

static struct tn_sim_range *range_of(const struct tn_tree_node *node)
{
    return TN_TREE_ENTRY(node, struct tn_sim_range, node);
}

static int range_compare(const struct tn_tree_node *a, const struct tn_tree_node *b)
{
    return tn_tree_order_u64(range_of(a)->start, range_of(b)->start);
}

static uint64_t round_up_aligned(uint64_t address)
{
    return (address + TN_SIM_ALIGNMENT - 1) / TN_SIM_ALIGNMENT * TN_SIM_ALIGNMENT;
}

/* First address in the gap before the range that the device itself would hand out. */
static uint64_t range_gap_first(const struct tn_sim_range *range)
{
    const uint64_t first = round_up_aligned(range->gap_start);

    return first > range->floor ? first : range->floor;
}

static uint64_t range_gap(const struct tn_sim_range *range)
{
    const uint64_t first = range_gap_first(range);

    return first < range->start ? range->start - first : 0;
}

static uint64_t subtree_best_gap(const struct tn_tree_node *node)
{
    return node ? range_of(node)->best_gap : 0;
}

static void range_refresh(struct tn_tree_node *node)
{
    struct tn_sim_range *range = range_of(node);
    uint64_t best = range_gap(range);

    for (int side = 0; side < 2; side++) {
        const uint64_t below = subtree_best_gap(node->child[side]);

        best = below > best ? below : best;
    }
    range->best_gap = best;
}

void tn_sim_space_init(struct tn_sim_space *space, uint64_t base, uint64_t capacity)
{
    tn_assert(base % TN_SIM_ALIGNMENT == 0 && base < TN_SIM_SPACE_END);
    memset(space, 0, sizeof *space);
    tn_tree_init(&space->ranges, range_compare, range_refresh);
    space->base = base;
    space->capacity = capacity;
    space->end.start = TN_SIM_SPACE_END;
    space->end.floor = base;
    tn_tree_insert(&space->ranges, &space->end.node);
}

void tn_sim_space_fini(struct tn_sim_space *space)
{
    struct tn_sim_range *range;

    while ((range = tn_sim_space_first(space)) != NULL) {
        tn_sim_space_give(space, range);
    }
    tn_sim_space_script_clear(space);
}

/* Lowest range in the tree whose gap has room for `size`; NULL if none has. */
static struct tn_sim_range *space_find_gap(const struct tn_sim_space *space, uint64_t size)
{
    const struct tn_tree_node *node = space->ranges.root;

    if (subtree_best_gap(node) < size) {
        return NULL;
    }
    for (;;) {
        if (subtree_best_gap(node->child[0]) >= size) {
            node = node->child[0];
        } else if (range_gap(range_of(node)) >= size) {
            return range_of(node);
        } else {
            node = node->child[1];
        }
    }
}

/* The range before which `start` lies; never NULL for an address in the space. */
static struct tn_sim_range *space_find_next(const struct tn_sim_space *space, uint64_t start)
{
    const struct tn_sim_range key = {.start = start};

    return range_of(tn_tree_find_at_least(&space->ranges, &key.node));
}

/* The record whose gap holds all of [start, start + size), or NULL. */
static struct tn_sim_range *space_find_around(const struct tn_sim_space *space, uint64_t start,
                                              uint64_t size)
{
    uint64_t end;

    if (!tn_add_u64(start, size, &end) || end > TN_SIM_SPACE_END) {
        return NULL;
    }
    struct tn_sim_range *next = space_find_next(space, start);
    return next->gap_start <= start && end <= next->start ? next : NULL;
}

/* Address that somebody wants for the next range of that kind, 0 if nobody does. The script's head
 * is looked at, not consumed. */
static uint64_t space_wish(const struct tn_sim_space *space, enum tn_sim_kind kind, uint64_t size)
{
    const struct tn_sim_script *script = &space->script[kind];

    if (script->count > 0) {
        return script->address[script->head];
    }
    if (space->oracle && (kind == TN_SIM_PLAIN || kind == TN_SIM_RESERVED)) {
        return space->oracle(space->oracle_context, kind == TN_SIM_RESERVED, size);
    }
    return 0;
}

/* Where a range of that kind and size would go: before *next_out. */
static bool space_place(const struct tn_sim_space *space, enum tn_sim_kind kind, uint64_t size,
                        uint64_t *start_out, struct tn_sim_range **next_out)
{
    *start_out = space_wish(space, kind, size);
    if (*start_out != 0) {
        *next_out = space_find_around(space, *start_out, size);
        if (*next_out) {
            return true;
        }
    }
    *next_out = space_find_gap(space, size);
    if (!*next_out) {
        return false;
    }
    *start_out = range_gap_first(*next_out);
    return true;
}

static void script_consume(struct tn_sim_space *space, struct tn_sim_script *script, uint64_t start)
{
    if (script->count == 0) {
        return;
    }
    if (script->address[script->head] != start) {
        space->scripted_skipped++;
    }
    script->head++;
    script->count--;
}

enum tarn_status tn_sim_space_take(struct tn_sim_space *space, enum tn_sim_kind kind, uint64_t size,
                                   struct tn_sim_range **range_out)
{
    uint64_t start = 0;
    struct tn_sim_range *next = NULL;

    tn_assert(size > 0);
    if (!space_place(space, kind, size, &start, &next)) {
        return TARN_ERR_OUT_OF_MEMORY;
    }
    struct tn_sim_range *range = tn_host_alloc_zero(sizeof *range);
    if (!range) {
        return TARN_ERR_HOST_MEMORY;
    }
    script_consume(space, &space->script[kind], start);
    range->start = start;
    range->size = size;
    range->gap_start = next->gap_start;
    range->floor = space->base;
    range->kind = kind;
    next->gap_start = start + size;
    tn_tree_insert(&space->ranges, &range->node);
    tn_tree_refresh(&space->ranges, &next->node);
    space->live[kind]++;
    *range_out = range;
    return TARN_OK;
}

void tn_sim_space_give(struct tn_sim_space *space, struct tn_sim_range *range)
{
    struct tn_sim_range *next = range_of(tn_tree_next(&range->node));

    tn_assert(range != &space->end && space->live[range->kind] > 0);
    next->gap_start = range->gap_start;
    space->live[range->kind]--;
    tn_tree_remove(&space->ranges, &range->node);
    tn_tree_refresh(&space->ranges, &next->node);
    tn_host_free(range, sizeof *range);
}

struct tn_sim_range *tn_sim_space_find(const struct tn_sim_space *space, uint64_t address)
{
    const struct tn_sim_range key = {.start = address};
    const struct tn_tree_node *node = tn_tree_find_at_most(&space->ranges, &key.node);

    if (!node || address - range_of(node)->start >= range_of(node)->size) {
        return NULL;
    }
    return range_of(node);
}

struct tn_sim_range *tn_sim_space_find_start(const struct tn_sim_space *space, uint64_t address,
                                             enum tn_sim_kind kind)
{
    const struct tn_sim_range key = {.start = address};
    const struct tn_tree_node *node = tn_tree_find(&space->ranges, &key.node);

    if (!node || range_of(node)->size == 0 || range_of(node)->kind != kind) {
        return NULL;
    }
    return range_of(node);
}

struct tn_sim_range *tn_sim_space_first(const struct tn_sim_space *space)
{
    struct tn_sim_range *range = range_of(tn_tree_first(&space->ranges));

    return range == &space->end ? NULL : range;
}

struct tn_sim_range *tn_sim_space_next(const struct tn_sim_space *space,
                                       const struct tn_sim_range *range)
{
    struct tn_sim_range *next = range_of(tn_tree_next(&range->node));

    return next == &space->end ? NULL : next;
}

/* Makes room for one more at the end: by moving the waiting ones down, or by doubling. */
static enum tarn_status script_grow(struct tn_sim_script *script)
{
    if (script->head > script->capacity / 2) {
        memmove(script->address, script->address + script->head,
                script->count * sizeof *script->address);
        script->head = 0;
        return TARN_OK;
    }
    const size_t capacity = script->capacity ? script->capacity * 2 : 64;
    tarn_ptr *address = tn_host_resize(script->address, script->capacity * sizeof *address,
                                       capacity * sizeof *address);
    if (!address) {
        return TARN_ERR_HOST_MEMORY;
    }
    script->address = address;
    script->capacity = capacity;
    return TARN_OK;
}

enum tarn_status tn_sim_space_script(struct tn_sim_space *space, enum tn_sim_kind kind,
                                     tarn_ptr address)
{
    struct tn_sim_script *script = &space->script[kind];

    if (script->count >= TN_SIM_SCRIPT_MAX) {
        return TARN_ERR_LIMIT;
    }
    if (script->head + script->count == script->capacity) {
        const enum tarn_status st = script_grow(script);

        if (st != TARN_OK) {
            return st;
        }
    }
    script->address[script->head + script->count++] = address;
    return TARN_OK;
}

void tn_sim_space_script_clear(struct tn_sim_space *space)
{
    for (int kind = 0; kind < TN_SIM_KIND_COUNT; kind++) {
        struct tn_sim_script *script = &space->script[kind];

        tn_host_free(script->address, script->capacity * sizeof *script->address);
        *script = (struct tn_sim_script){0};
    }
}

uint64_t tn_sim_space_room(const struct tn_sim_space *space)
{
    const uint64_t left = space->capacity - space->used; /* used <= capacity always */

    return left > space->foreign ? left - space->foreign : 0;
}

bool tn_sim_space_charge(struct tn_sim_space *space, uint64_t bytes)
{
    if (bytes > tn_sim_space_room(space)) {
        return false;
    }
    space->used += bytes;
    space->peak = space->used > space->peak ? space->used : space->peak;
    return true;
}

void tn_sim_space_refund(struct tn_sim_space *space, uint64_t bytes)
{
    tn_assert(bytes <= space->used);
    space->used -= bytes;
}

uint64_t tn_sim_space_check(const struct tn_sim_space *space, struct tarn_findings *findings)
{
    const uint64_t before = findings->count;
    uint64_t live[TN_SIM_KIND_COUNT] = {0};
    uint64_t end = 0;

    (void)tn_tree_check(&space->ranges, findings);
    for (const struct tn_tree_node *node = tn_tree_first(&space->ranges); node;
         node = tn_tree_next(node)) {
        const struct tn_sim_range *range = range_of(node);

        if (range->gap_start != end || range->start < end) {
            tn_finding_add(findings,
                           "space: range at %#" PRIx64 " has gap from %#" PRIx64
                           ", range before ends at %#" PRIx64,
                           range->start, range->gap_start, end);
        }
        end = range->start + range->size;
        live[range->kind] += range->size > 0;
    }
    for (int kind = 0; kind < TN_SIM_KIND_COUNT; kind++) {
        if (live[kind] != space->live[kind]) {
            tn_finding_add(findings,
                           "space: %" PRIu64 " ranges of kind %d stored, %" PRIu64 " counted",
                           space->live[kind], kind, live[kind]);
        }
    }
    if (space->used > space->capacity || space->used > space->peak) {
        tn_finding_add(findings, "space: used %" PRIu64 ", capacity %" PRIu64 ", peak %" PRIu64,
                       space->used, space->capacity, space->peak);
    }
    return findings->count - before;
}
