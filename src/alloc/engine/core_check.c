/* SPDX-License-Identifier: MIT */
#include "alloc/engine/core_check.h"

#include "alloc/engine/check_number.h"
#include "alloc/pool/asleep.h"
#include "alloc/pool/segment.h"
#include "base/finding.h"

/* What a walk over all blocks gives. */
struct tally {
    int64_t by_pool[TARN_STAT_KINDS][TARN_STAT_POOLS];
    uint64_t mapped;   /* bytes */
    uint64_t nodes;    /* blocks of any state */
    uint64_t in_sets;  /* free blocks in free sets */
    uint64_t unmapped; /* blocks in unmapped ranges */
    uint64_t allocated;
    uint64_t segments;
};

static void tally_add(struct tally *tally, enum tarn_stat_kind kind, const struct tn_pool *pool,
                      uint64_t amount)
{
    tally->by_pool[kind][TARN_STAT_ALL] += (int64_t)amount;
    tally->by_pool[kind][TARN_STAT_SMALL_POOL + tn_counter_pool(pool->is_small)] += (int64_t)amount;
}

/* I1, I2, I3 for one block and its neighbour above. */
static void check_links(const struct tn_segment *segment, const struct tn_block *block,
                        struct tarn_findings *findings)
{
    const struct tn_block *next = block->next;
    const uint64_t end = block->address + block->size;
    const uint64_t segment_end = segment->address + segment->size;

    if (block->size == 0 || block->size % 512 != 0 || block->address % 512 != 0) {
        tn_finding_add(findings, "block 0x%llx has size %llu: not multiples of 512",
                       (unsigned long long)block->address, (unsigned long long)block->size);
    }
    if (!next) {
        if (end != segment_end) {
            tn_finding_add(findings, "last block of segment 0x%llx ends at 0x%llx, not 0x%llx",
                           (unsigned long long)segment->address, (unsigned long long)end,
                           (unsigned long long)segment_end);
        }
        return;
    }
    if (next->prev != block || next->address != end) {
        tn_finding_add(findings, "block 0x%llx ends at 0x%llx but its neighbour is at 0x%llx",
                       (unsigned long long)block->address, (unsigned long long)end,
                       (unsigned long long)next->address);
    }
    if (tn_block_is_idle(block) && tn_block_is_idle(next) && block->mapped == next->mapped) {
        tn_finding_add(findings, "free neighbours 0x%llx and 0x%llx are not merged",
                       (unsigned long long)block->address, (unsigned long long)next->address);
    }
    if (next->set != block->set || next->expandable != block->expandable) {
        tn_finding_add(findings, "neighbours 0x%llx and 0x%llx differ in pool, stream or kind",
                       (unsigned long long)block->address, (unsigned long long)next->address);
    }
}

/* The record that the block names is its own. */
static bool has_record(const struct tn_engine *engine, const struct tn_block *block)
{
    return block->uses < engine->waits.record_count &&
           engine->waits.records[block->uses].block == block;
}

/* I4: the block is where its state says. */
static void check_place(const struct tn_engine *engine, const struct tn_block *block,
                        struct tally *tally, struct tarn_findings *findings)
{
    bool found = true;

    if (block->allocated) {
        found = block->mapped && tn_heap_find(&engine->heap, block->address) == block;
        tally->allocated++;
    } else if (block->uses) {
        found = block->mapped && has_record(engine, block);
    } else if (block->mapped) {
        found = tn_free_set_has(block->set, block);
        tally->in_sets++;
    } else {
        found = tn_free_set_has_unmapped(block->set, block);
        tally->unmapped++;
    }
    if (!found) {
        tn_finding_add(findings, "block 0x%llx (%s) is not where its state says",
                       (unsigned long long)block->address,
                       block->allocated ? "allocated" : (block->uses ? "waiting" : "free"));
    }
}

static void tally_block(struct tally *tally, const struct tn_block *block)
{
    const struct tn_pool *pool = block->set->pool;

    tally->nodes++;
    if (!block->mapped) {
        return;
    }
    tally->mapped += block->size;
    tally_add(tally, TARN_STAT_RESERVED_BYTES, pool, block->size);
    if (block->allocated) {
        tally_add(tally, TARN_STAT_ALLOCATION, pool, 1);
        tally_add(tally, TARN_STAT_ALLOCATED_BYTES, pool, block->size);
    }
    if (tn_block_is_active(block)) {
        tally_add(tally, TARN_STAT_ACTIVE, pool, 1);
        tally_add(tally, TARN_STAT_ACTIVE_BYTES, pool, block->size);
        tally_add(tally, TARN_STAT_REQUESTED_BYTES, pool, block->requested_size);
    } else if (tn_block_is_split(block) && !block->expandable) {
        tally_add(tally, TARN_STAT_INACTIVE_SPLIT, pool, 1);
        tally_add(tally, TARN_STAT_INACTIVE_SPLIT_BYTES, pool, block->size);
    }
}

static void tally_entry(struct tally *tally, const struct tn_undo_entry *entry, uint64_t requested,
                        int64_t sign)
{
    const struct tn_pool *pool = entry->block->set->pool;
    const uint64_t size = (uint64_t)sign * entry->block->size;

    tally_add(tally, TARN_STAT_ALLOCATION, pool, (uint64_t)sign);
    tally_add(tally, TARN_STAT_ALLOCATED_BYTES, pool, size);
    tally_add(tally, TARN_STAT_ACTIVE, pool, (uint64_t)sign);
    tally_add(tally, TARN_STAT_ACTIVE_BYTES, pool, size);
    tally_add(tally, TARN_STAT_REQUESTED_BYTES, pool, (uint64_t)sign * requested);
    tally_add(tally, TARN_STAT_INACTIVE_SPLIT, pool, (uint64_t)(sign * entry->split_blocks));
    tally_add(tally, TARN_STAT_INACTIVE_SPLIT_BYTES, pool, (uint64_t)(sign * entry->split_bytes));
}

/* Blocks that were freed in an undo log still look allocated, and the counters stand for another
 * position of its cursor. */
static void tally_log(struct tally *tally, const struct tn_undo_log *log)
{
    for (uint32_t i = log->cursor; i < log->end; i++) {
        tally_entry(tally, &log->entries[i], log->entries[i].block->requested_size, -1);
    }
    for (uint32_t i = log->counted; i < log->cursor; i++) {
        tally_entry(tally, &log->entries[i], log->entries[i].requested, -1);
    }
    for (uint32_t i = log->cursor; i < log->counted; i++) {
        tally_entry(tally, &log->entries[i], log->entries[i].requested, 1);
    }
}

/* The positions are in order, and every entry's block is allocated and has no uses: recording one
 * clears the log. */
static void check_log(const struct tn_undo_log *log, struct tally *tally,
                      struct tarn_findings *findings)
{
    if (log->end > TN_UNDO_ENTRIES || log->high > log->end || log->cursor < log->low ||
        log->cursor > log->high || log->counted < log->low || log->counted > log->high) {
        tn_finding_add(findings, "undo log: cursor %u between %u and %u of %u entries", log->cursor,
                       log->low, log->high, log->end);
        return;
    }
    tally_log(tally, log);
    for (uint32_t i = 0; i < log->end; i++) {
        const struct tn_block *block = log->entries[i].block;

        if (!block->allocated || block->uses != 0) {
            tn_finding_add(findings, "undo log: entry %u, block 0x%llx, is not as it was left", i,
                           (unsigned long long)block->address);
        }
    }
}

static void check_segment(const struct tn_engine *engine, const struct tn_segment *segment,
                          struct tally *tally, struct tarn_findings *findings)
{
    const struct tn_block *first = segment->first;

    tally->segments++;
    if (first->prev || first->address != segment->address) {
        tn_finding_add(findings, "first block of segment 0x%llx is at 0x%llx",
                       (unsigned long long)segment->address, (unsigned long long)first->address);
    }
    if (!segment->expandable) {
        tally_add(tally, TARN_STAT_SEGMENT, first->set->pool, 1);
    }
    for (const struct tn_block *b = first; b; b = b->next) {
        check_links(segment, b, findings);
        check_place(engine, b, tally, findings);
        tally_block(tally, b);
    }
}

/* I5. */
static void check_counters(const struct tn_engine *engine, const struct tally *tally,
                           struct tarn_findings *findings)
{
    struct tarn_stats stats;

    tn_counters_read(&engine->heap.shard.counters, &stats);
    for (int kind = 0; kind < TARN_STAT_KINDS; kind++) {
        for (int pool = 0; pool < TARN_STAT_POOLS; pool++) {
            const struct tarn_stat *stat = &stats.by_pool[kind][pool];
            const int64_t counted = tally->by_pool[kind][pool];

            if (stat->current != counted || stat->peak < stat->current) {
                tn_finding_add(findings, "%s.%s: current %lld, peak %lld, counted %lld",
                               tarn_stat_kind_name((enum tarn_stat_kind)kind),
                               tarn_stat_pool_name((enum tarn_stat_pool)pool),
                               (long long)stat->current, (long long)stat->peak, (long long)counted);
            }
        }
    }
}

/* Blocks in the free sets of all pools. */
struct set_sizes {
    uint64_t in_sets;
    uint64_t unmapped;
    uint64_t outside; /* of bins, as the sets have counted them */
    uint64_t outside_found;
};

static void pool_sizes(const struct tn_pool *pool, struct set_sizes *sizes)
{
    for (uint32_t i = 0; i < pool->count; i++) {
        sizes->in_sets += tn_free_set_count(pool->sets[i]);
        sizes->unmapped += pool->sets[i]->unmapped.count;
        sizes->outside += pool->sets[i]->outside;
        sizes->outside_found += tn_free_set_outside(pool->sets[i]);
    }
}

/* Whether the first comes before the second in their set, which is by age: a walk over the set is
 * to agree, without the places that it has. */
static bool comes_before(const struct tn_engine *engine, const struct tn_block *a,
                         const struct tn_block *b)
{
    if (a->size != b->size) {
        return a->size < b->size;
    }
    const struct tn_segment *of_a = tn_segment_find(&engine->heap, a->address);
    const struct tn_segment *of_b = tn_segment_find(&engine->heap, b->address);

    return of_a->number != of_b->number ? of_a->number < of_b->number : a->address < b->address;
}

/* The set has the order of the settings, and if that is by age, a walk finds each of its blocks in
 * it. By address there is nothing that a walk could show: keys are made of what check_place has
 * compared them with. */
static void check_set_order(const struct tn_engine *engine, const struct tn_free_set *set,
                            struct tarn_findings *findings)
{
    const struct tarn_config *config = &engine->heap.config;
    const bool is_by_age = config->rules == TARN_RULES_2_14 && config->policy == TARN_POLICY_EXACT;
    const struct tn_block *before = NULL;
    uint64_t in_order = 0;
    uint64_t count = 0;

    tn_check_number("order of a free set", set->by_age != NULL, is_by_age, findings);
    if (!set->by_age) {
        return;
    }
    for (const struct tn_block *b = tn_free_set_first(set); b; b = tn_free_set_next(set, b)) {
        in_order += before ? comes_before(engine, before, b) : true;
        before = b;
        count++;
    }
    tn_check_number("blocks in order in a walk over a free set", in_order, count, findings);
    tn_check_number("blocks in a walk over a free set", tn_free_set_count(set), count, findings);
}

static void check_pool_order(const struct tn_engine *engine, const struct tn_pool *pool,
                             struct tarn_findings *findings)
{
    for (uint32_t i = 0; i < pool->count; i++) {
        check_set_order(engine, pool->sets[i], findings);
    }
}

/* Only where everything else is right: a walk over broken links may not end. */
static void check_order(const struct tn_engine *engine, struct tarn_findings *findings)
{
    check_pool_order(engine, &engine->heap.small, findings);
    check_pool_order(engine, &engine->heap.large, findings);
    for (const struct tn_private_pool *p = engine->heap.private_pools.first; p; p = p->next) {
        check_pool_order(engine, &p->small, findings);
        check_pool_order(engine, &p->large, findings);
    }
}

/* Bytes of mapped blocks in pools that sleep. */
static uint64_t bytes_away(const struct tn_engine *engine, unsigned pool)
{
    uint64_t bytes = 0;

    for (const struct tn_private_pool *p = engine->heap.private_pools.first; p; p = p->next) {
        bytes += p->asleep ? p->asleep->away[pool] : 0;
    }
    return bytes;
}

/* Bytes of the mapped blocks of a private pool's half. */
static uint64_t pool_mapped(const struct tn_engine *engine, const struct tn_pool *pool)
{
    uint64_t bytes = 0;

    for (const struct tn_segment *s = tn_segment_first(&engine->heap); s; s = tn_segment_next(s)) {
        for (const struct tn_block *b = s->first; b && b->set->pool == pool; b = b->next) {
            bytes += b->mapped ? b->size : 0;
        }
    }
    return bytes;
}

/* Both halves of the pool count what their blocks have, and so does the pool. Returns it. */
static uint64_t check_reserved(const struct tn_engine *engine, const struct tn_private_pool *pool,
                               struct tarn_findings *findings)
{
    const struct tn_counter *counted = &pool->record->reserved;
    uint64_t sum = 0;

    for (unsigned kind = 0; kind < TN_POOLS; kind++) {
        const uint64_t away = pool->asleep ? pool->asleep->away[kind] : 0;
        const uint64_t mapped = pool_mapped(engine, kind == TN_SMALL ? &pool->small : &pool->large);

        tn_check_number("reserved bytes of half a private pool",
                        (uint64_t)counted->current[kind] + away, mapped, findings);
        sum += mapped - away;
    }
    tn_check_number("reserved bytes of a private pool", pool->reserved, sum, findings);
    return sum;
}

static void check_record(const struct tn_pool_records *records, const struct tn_pool_record *record,
                         struct tarn_findings *findings)
{
    const int64_t reserved = tn_counter_all(&record->reserved);
    const int64_t peak = record->reserved.peak[TARN_STAT_ALL];

    if (tn_pool_record_find(records, record->id) != record) {
        tn_finding_add(findings, "the record of private pool (%llu, %llu) is not found by its id",
                       (unsigned long long)record->id.first, (unsigned long long)record->id.second);
    }
    if (peak < reserved) {
        tn_finding_add(findings, "a private pool reserves %lld bytes, at most %lld",
                       (long long)reserved, (long long)peak);
    }
}

/* Every pool has a record of its own, and all records together count what private pools have
 * reserved: those of pools that are gone, nothing. */
static void check_private_pools(const struct tn_engine *engine, struct tarn_findings *findings)
{
    const struct tn_private_pools *pools = &engine->heap.private_pools;
    uint64_t of_pools = 0;
    uint64_t of_records = 0;

    for (const struct tn_private_pool *p = pools->first; p; p = p->next) {
        if (p->record->pool != p) {
            tn_finding_add(findings, "private pool (%llu, %llu) has the record of another one",
                           (unsigned long long)p->id.first, (unsigned long long)p->id.second);
        }
        of_pools += check_reserved(engine, p, findings);
    }
    for (const struct tn_pool_record *r = pools->records.first; r; r = r->next) {
        check_record(&pools->records, r, findings);
        of_records += (uint64_t)tn_counter_all(&r->reserved);
    }
    tn_check_number("reserved bytes of all private pools", of_records, of_pools, findings);
}

static void check_sizes(const struct tn_engine *engine, const struct tally *tally,
                        struct tarn_findings *findings)
{
    struct set_sizes sizes = {0};
    uint64_t pointers = 0;
    uint64_t spares = 0;

    pool_sizes(&engine->heap.small, &sizes);
    pool_sizes(&engine->heap.large, &sizes);
    for (const struct tn_private_pool *p = engine->heap.private_pools.first; p; p = p->next) {
        pool_sizes(&p->small, &sizes);
        pool_sizes(&p->large, &sizes);
    }
    for (const struct tn_shard *s = &engine->heap.shard; s; s = s->next) {
        pointers += s->map.count;
        spares += s->spare_count;
    }
    tn_check_number("blocks in free sets", sizes.in_sets, tally->in_sets, findings);
    tn_check_number("blocks outside of bins", sizes.outside, sizes.outside_found, findings);
    tn_check_number("unmapped ranges", sizes.unmapped, tally->unmapped, findings);
    check_private_pools(engine, findings);
    tn_check_number("pointers in the map", pointers, tally->allocated, findings);
    tn_check_number("block nodes",
                    engine->heap.slab.live + engine->heap.heads.live - spares -
                        engine->heap.nodes_in_flight,
                    tally->nodes, findings);
    tn_check_number("segments", engine->heap.segments.by_address.count, tally->segments, findings);
    tn_check_number("reserved bytes",
                    engine->heap.reserved + bytes_away(engine, TN_SMALL) +
                        bytes_away(engine, TN_LARGE),
                    tally->mapped + tn_page_store_bytes(&engine->compact.store), findings);
}

/* Deferred blocks wait, for no event yet, and are the only ones with marks. */
static void check_deferred(const struct tn_engine *engine, struct tarn_findings *findings)
{
    const struct tn_stream_waits *waits = &engine->waits;
    uint64_t marked = 0;
    uint64_t marked_deferred = 0;

    for (uint32_t i = 1; i < waits->record_count; i++) {
        const struct tn_capture_marks *marks = &waits->records[i].marks;

        marked += marks->capture != 0;
        if ((marks->capture != 0) != (marks->nodes.count > 0)) {
            tn_finding_add(findings, "%zu marks of capture %llu", marks->nodes.count,
                           (unsigned long long)marks->capture);
        }
    }
    for (uint32_t i = 0; i < waits->deferred_count; i++) {
        const struct tn_block *block = waits->deferred[i];

        if (block->allocated || block->uses == 0 || !has_record(engine, block) ||
            waits->records[block->uses].event_count > 0) {
            tn_finding_add(findings, "deferred block 0x%llx does not wait for streams",
                           (unsigned long long)block->address);
        } else {
            marked_deferred += waits->records[block->uses].marks.capture != 0;
        }
    }
    tn_check_number("blocks with marks", marked, marked_deferred, findings);
}

/* As many events are in the queues as the waiting blocks wait for. */
static void check_waits(const struct tn_engine *engine, struct tarn_findings *findings)
{
    const struct tn_stream_waits *waits = &engine->waits;
    uint64_t queued = 0;
    uint64_t awaited = 0;

    for (uint32_t i = 0; i < waits->queue_count; i++) {
        queued += waits->queues[i].count;
    }
    for (uint32_t i = 1; i < waits->record_count; i++) {
        awaited += waits->records[i].block ? waits->records[i].event_count : 0;
    }
    tn_check_number("pending events", waits->pending, queued, findings);
    tn_check_number("awaited events", awaited, queued, findings);
}

static void check_epoch(const struct tn_pool *pool, int64_t epoch, struct tarn_findings *findings)
{
    tn_check_number("epoch of a pool", (uint64_t)pool->find_count, (uint64_t)epoch, findings);
}

/* Retired runs are what their segments count; under the compact policy all pools are in the present
 * epoch. */
static void check_compact(const struct tn_engine *engine, struct tarn_findings *findings)
{
    const struct tn_compact *compact = &engine->compact;
    const struct tn_retired_run *runs = compact->retired.runs.items;
    uint64_t pages = 0;
    uint64_t of_segments = 0;

    for (size_t i = 0; i < compact->retired.runs.count; i++) {
        pages += runs[i].end - runs[i].begin;
    }
    for (const struct tn_segment *s = tn_segment_first(&engine->heap); s; s = tn_segment_next(s)) {
        of_segments += s->expandable ? s->expandable->retiring : 0;
    }
    tn_check_number("retired pages", compact->retired.pages, pages, findings);
    tn_check_number("retired pages of segments", of_segments, pages, findings);
    if (!tn_compact_is_on(&engine->heap)) {
        return;
    }
    check_epoch(&engine->heap.small, compact->order.epoch, findings);
    check_epoch(&engine->heap.large, compact->order.epoch, findings);
    for (const struct tn_private_pool *p = engine->heap.private_pools.first; p; p = p->next) {
        check_epoch(&p->small, compact->order.epoch, findings);
        check_epoch(&p->large, compact->order.epoch, findings);
    }
}

uint64_t tn_core_check(const struct tn_engine *engine, struct tarn_findings *findings)
{
    const uint64_t before = findings->count;
    struct tally tally = {0};

    for (const struct tn_segment *s = tn_segment_first(&engine->heap); s; s = tn_segment_next(s)) {
        check_segment(engine, s, &tally, findings);
    }
    for (uint32_t i = 0; i < tn_fast_log_count(&engine->fast); i++) {
        check_log(tn_fast_log(&engine->fast, i), &tally, findings);
    }
    tally_add(&tally, TARN_STAT_RESERVED_BYTES, &engine->heap.large,
              tn_page_store_bytes(&engine->compact.store));
    tally_add(&tally, TARN_STAT_RESERVED_BYTES, &engine->heap.small, -bytes_away(engine, TN_SMALL));
    tally_add(&tally, TARN_STAT_RESERVED_BYTES, &engine->heap.large, -bytes_away(engine, TN_LARGE));
    check_sizes(engine, &tally, findings);
    check_counters(engine, &tally, findings);
    check_waits(engine, findings);
    check_deferred(engine, findings);
    check_compact(engine, findings);
    tn_segment_map_check(&engine->heap.segments, findings);
    if (findings->count == before) {
        check_order(engine, findings);
    }
    return findings->count - before;
}

void tn_core_assert_good(const struct tn_engine *engine)
{
    struct tarn_findings findings = TARN_FINDINGS_INIT;

    if (tn_core_check(engine, &findings) > 0) {
        tn_assert_failed(findings.text[0], "allocator", (int)findings.count);
    }
}

void tn_core_assert_served(struct tn_engine *engine)
{
    tn_biased_lock_acquire(&engine->heap.lock);
    if (!tn_fast_has_caches(&engine->fast)) { /* their locks are not held */
        tn_core_assert_good(engine);
    }
    tn_biased_lock_release(&engine->heap.lock);
}
