/* SPDX-License-Identifier: MIT */
/*
 * Planted corruption: one field of a good engine is changed, the check must say so, and find
 * nothing again when the field is back. The allocator is not called in between.
 */
#include "support/any_stream.h"
#include "support/child.h"
#include "support/test.h"

#include <signal.h>

#include "alloc/engine/core_check.h"
#include "alloc/pool/segment.h"
#include "support/rig.h"

#include <stdio.h>

/* An engine with something of everything: plain segments with used, free and waiting blocks, a
 * expandable one with a hole. */
struct bench {
    struct rig rig;
    struct tn_engine *engine;
    struct tn_block *used;    /* in a plain segment, with neighbours on both sides */
    struct tn_block *free;    /* beside it, the first of its bin */
    struct tn_block *second;  /* of the same bin */
    struct tn_block *waiting; /* with events pending */
    struct tn_block *hole;    /* an unmapped range */
    struct tn_segment *segment;
};

static struct tn_block *block_of(const struct bench *bench, tarn_ptr ptr)
{
    const struct tn_segment *segment = tn_segment_find(&bench->engine->heap, ptr);
    struct tn_block *block = segment ? segment->first : NULL;

    while (block && block->address != ptr) {
        block = block->next;
    }
    assert_non_null(block);
    return block;
}

static void bench_open(struct bench *bench)
{
    struct rig *rig = &bench->rig;
    tarn_ptr plain[6];
    tarn_ptr grown[3];

    rig_open_manual(rig, GIB, "");
    bench->engine = rig_engine(rig->allocator);
    for (int i = 0; i < 6; i++) {
        plain[i] = rig_alloc(rig, 3 * MIB, 0);
    }
    rig_free(rig, plain[1]);
    rig_record(rig, plain[3], 5);
    rig_record(rig, plain[3], 6);
    rig_free(rig, plain[3]);
    rig_free(rig, plain[4]);
    rig_configure(rig, "expandable_segments:True");
    for (int i = 0; i < 3; i++) {
        grown[i] = rig_alloc(rig, 20 * MIB, 1);
    }
    rig_free(rig, grown[1]);
    assert_int_equal(rig_totals(rig).segments, 2);
    struct tn_free_set *set = block_of(bench, grown[0])->set;

    /* Without waiting for the pending events, which a flush would do. */
    rig_free(rig, grown[2]);
    assert_true(set->unmapped.count == 1);
    bench->used = block_of(bench, plain[0])->next->next;
    bench->free = block_of(bench, plain[1]);
    bench->second = block_of(bench, plain[4]);
    bench->waiting = block_of(bench, plain[3]);
    bench->hole = set->unmapped.blocks[0];
    bench->segment = tn_segment_find(&bench->engine->heap, plain[0]);
    assert_int_equal(bench->used->address, plain[2]);
    rig_check(rig);
}

static uint64_t findings_count(const struct bench *bench, struct tarn_findings *findings)
{
    *findings = (struct tarn_findings)TARN_FINDINGS_INIT;
    const uint64_t count = tn_core_check(bench->engine, findings);

    assert_int_equal(count, findings->count);
    return count;
}

/* Expects at least one finding with `text` in one of them. */
static void finds(const struct bench *bench, const char *text)
{
    struct tarn_findings findings;
    bool found = false;

    assert_true(findings_count(bench, &findings) > 0);
    for (uint64_t i = 0; i < findings.count && i < TARN_FINDINGS_KEPT; i++) {
        found = found || strstr(findings.text[i], text);
    }
    if (!found) {
        fail_msg("nothing says \"%s\", the first of %llu says \"%s\"", text,
                 (unsigned long long)findings.count, findings.text[0]);
    }
}

static void finds_nothing(const struct bench *bench)
{
    struct tarn_findings findings;

    if (findings_count(bench, &findings) > 0) {
        fail_msg("%s", findings.text[0]);
    }
}

/* Changes a field, expects the finding, and puts the old value back. */
#define PLANT(bench, field, value, text)                                                           \
    do {                                                                                           \
        unsigned char kept[sizeof(field)];                                                         \
        memcpy(kept, &(field), sizeof kept);                                                       \
        (field) = (value);                                                                         \
        finds(bench, text);                                                                        \
        memcpy(&(field), kept, sizeof kept);                                                       \
        finds_nothing(bench);                                                                      \
    } while (0)

/* The same for a bit. */
#define PLANT_BIT(bench, field, value, text)                                                       \
    do {                                                                                           \
        const bool kept = (field);                                                                 \
        (field) = (value);                                                                         \
        finds(bench, text);                                                                        \
        (field) = kept;                                                                            \
        finds_nothing(bench);                                                                      \
    } while (0)

/* The same for a pointer to `type`. */
#define PLANT_LINK(bench, type, field, value, text)                                                \
    do {                                                                                           \
        type *const kept = (field);                                                                \
        (field) = (value);                                                                         \
        finds(bench, text);                                                                        \
        (field) = kept;                                                                            \
        finds_nothing(bench);                                                                      \
    } while (0)

static void sizes_and_addresses(void **state)
{
    struct bench b;

    (void)state;
    bench_open(&b);
    PLANT(&b, b.used->size, b.used->size + 512, "but its neighbour is at");
    PLANT(&b, b.used->size, b.used->size + 1, "not multiples of 512");
    PLANT(&b, b.used->size, 0, "not multiples of 512");
    PLANT(&b, b.used->address, b.used->address + 1, "not multiples of 512");
    PLANT(&b, b.used->address, b.used->address + 512, "but its neighbour is at");
    PLANT(&b, b.waiting->size, b.waiting->size - 512, "but its neighbour is at");
    PLANT(&b, b.segment->size, b.segment->size + 512, "last block of segment");
    PLANT(&b, b.segment->address, b.segment->address - 512, "first block of segment");
    rig_close(&b.rig);
}

static void links(void **state)
{
    struct bench b;

    (void)state;
    bench_open(&b);
    PLANT_LINK(&b, struct tn_block, b.used->prev, NULL, "but its neighbour is at");
    PLANT_LINK(&b, struct tn_block, b.free->next, b.waiting, "but its neighbour is at");
    PLANT_LINK(&b, struct tn_block, b.segment->first->prev, b.free, "first block of segment");
    PLANT_LINK(&b, struct tn_block, b.free->next, NULL, "last block of segment");
    rig_close(&b.rig);
}

static void states(void **state)
{
    struct bench b;

    (void)state;
    bench_open(&b);
    PLANT(&b, b.used->allocated, false, "is not where its state says");
    PLANT(&b, b.used->mapped, false, "(allocated) is not where its state says");
    PLANT(&b, b.free->allocated, true, "is not where its state says");
    PLANT(&b, b.free->mapped, false, "is not where its state says");
    PLANT(&b, b.free->slot, TN_SLOT_LINKED, "(free) is not where its state says");
    PLANT(&b, b.second->slot, b.second->slot + 1, "is not where its state says");
    PLANT(&b, b.second->slot, TN_LEAF_SLOTS, "is not where its state says");
    const struct tn_bin *bin = tn_free_set_bin(b.free->set, tn_free_set_class(b.free->size));

    PLANT_LINK(&b, struct tn_block, tn_leaf_blocks(&bin->leaf)[b.second->slot], b.free,
               "is not where its state says");
    PLANT(&b, b.waiting->mapped, false, "(waiting) is not where its state says");
    PLANT(&b, b.free->set->chunk_bits, 0, "is not where its state says");
    PLANT(&b, b.waiting->uses, 0, "is not where its state says");
    PLANT(&b, b.hole->mapped, true, "is not where its state says");
    PLANT_BIT(&b, b.used->expandable, true, "differ in pool, stream or kind");
    PLANT_LINK(&b, struct tn_free_set, b.used->set, b.hole->set, "differ in pool, stream or kind");
    rig_close(&b.rig);
}

static void free_neighbours_that_were_not_merged(void **state)
{
    struct bench b;

    (void)state;
    bench_open(&b);
    b.used->allocated = false; /* between a free block and a waiting one */
    finds(&b, "are not merged");
    b.used->allocated = true;
    finds_nothing(&b);
    rig_close(&b.rig);
}

/* The counters that are kept, each with a name that it is read by. */
struct kept_counter {
    struct tn_counter *counter;
    enum tarn_stat_kind kind;
};

enum {
    KEPT = 7
};

static void list_counters(struct tn_engine *engine, struct kept_counter list[KEPT])
{
    struct tn_counters *c = &engine->heap.shard.counters;

    list[0] = (struct kept_counter){&c->blocks.out, TARN_STAT_ALLOCATION};
    list[1] = (struct kept_counter){&c->bytes.out, TARN_STAT_ALLOCATED_BYTES};
    list[2] = (struct kept_counter){&c->requested, TARN_STAT_REQUESTED_BYTES};
    list[3] = (struct kept_counter){&c->split, TARN_STAT_INACTIVE_SPLIT};
    list[4] = (struct kept_counter){&c->split_bytes, TARN_STAT_INACTIVE_SPLIT_BYTES};
    list[5] = (struct kept_counter){&c->segments, TARN_STAT_SEGMENT};
    list[6] = (struct kept_counter){&c->reserved, TARN_STAT_RESERVED_BYTES};
}

static void counters(void **state)
{
    struct bench b;
    struct kept_counter list[KEPT];

    (void)state;
    bench_open(&b);
    list_counters(b.engine, list);
    for (int i = 0; i < KEPT; i++) {
        struct tn_counter *counter = list[i].counter;

        for (int pool = 0; pool < TN_POOLS; pool++) {
            char name[80];

            (void)snprintf(name, sizeof name, "%s.%s", tarn_stat_kind_name(list[i].kind),
                           tarn_stat_pool_name((enum tarn_stat_pool)(TARN_STAT_SMALL_POOL + pool)));
            PLANT(&b, counter->current[pool], counter->current[pool] + 1, name);
            if (counter->current[pool] > 0 && i >= 2) {
                PLANT(&b, counter->peak[TARN_STAT_SMALL_POOL + pool], counter->current[pool] - 1,
                      name);
            }
        }
    }
    struct tn_counters *c = &b.engine->heap.shard.counters;

    PLANT(&b, c->blocks.waiting[TN_SMALL], c->blocks.waiting[TN_SMALL] + 1, "active.small_pool");
    PLANT(&b, c->bytes.waiting[TN_LARGE], c->bytes.waiting[TN_LARGE] + 1,
          "active_bytes.large_pool");
    PLANT(&b, b.used->requested_size, b.used->requested_size - 1, "requested_bytes.all");
    rig_close(&b.rig);
}

#if TN_FAST_PATH
/* What was freed in the log looks as if it were allocated, and is not counted so. */
static void undo_log(void **state)
{
    struct bench b;

    (void)state;
    rig_open(&b.rig, GIB, "");
    b.engine = rig_engine(b.rig.allocator);
    const tarn_ptr first = rig_alloc(&b.rig, 512, 0);

    rig_free(&b.rig, rig_alloc(&b.rig, 1024, 0));
    struct tn_undo_log *log = &b.engine->fast.log;

    assert_int_equal(log->cursor, 0);
    assert_int_equal(log->end, 1);
    finds_nothing(&b);
    PLANT(&b, log->cursor, 2, "undo log: cursor 2 between 0 and 1 of 1 entries");
    PLANT(&b, log->counted, 2, "undo log: cursor");
    PLANT(&b, log->high, 2, "undo log: cursor");
    PLANT(&b, log->low, 2, "undo log: cursor");
    log->low = 1; /* above the cursor, and above what is counted */
    finds(&b, "undo log: cursor 0 between 1 and 1");
    log->cursor = 1;
    finds_nothing(&b); /* the entry again, but not yet counted */
    log->counted = 0;
    finds(&b, "undo log: cursor 1 between 1 and 1");
    log->low = 0;
    log->counted = 1;
    log->cursor = 0;
    finds_nothing(&b);
    PLANT(&b, log->end, TN_UNDO_ENTRIES + 1, "undo log: cursor");
    PLANT(&b, log->counted, 0, "allocated_bytes.all");
    PLANT(&b, log->entries[0].block->allocated, false, "undo log: entry 0");
    PLANT(&b, log->entries[0].block->uses, 1, "undo log: entry 0");
    (void)rig_stats(&b.rig); /* counts the entry back */
    PLANT(&b, log->entries[0].split_bytes, 512, "inactive_split_bytes.small_pool");
    const tarn_ptr again = rig_alloc(&b.rig, 1024, 0);

    assert_int_equal(log->cursor, 1);
    assert_int_equal(log->counted, 0);
    finds_nothing(&b); /* allocated again, but not yet counted */
    rig_free(&b.rig, again);
    rig_free(&b.rig, first);
    rig_close(&b.rig);
}
#endif

static void totals(void **state)
{
    struct bench b;

    (void)state;
    bench_open(&b);
    PLANT(&b, b.engine->heap.reserved, b.engine->heap.reserved - 512, "reserved bytes");
    PLANT(&b, b.engine->compact.retired.pages, 1, "retired pages");
    PLANT(&b, tn_segment_find(&b.engine->heap, b.hole->address)->expandable->retiring, 1,
          "retired pages of segments");
    PLANT(&b, b.engine->heap.shard.spare_count, b.engine->heap.shard.spare_count + 1,
          "block nodes");
    PLANT(&b, b.engine->heap.slab.live, b.engine->heap.slab.live + 1, "block nodes");
    PLANT(&b, b.engine->heap.shard.map.count, b.engine->heap.shard.map.count + 1,
          "pointers in the map");
    PLANT(&b, b.engine->heap.segments.by_address.count,
          b.engine->heap.segments.by_address.count + 1, "segments: 3");
    PLANT(&b, b.engine->heap.segments.bytes, 512, "segments by age");
    PLANT(&b, b.segment->number, 77, "at place");
    PLANT(&b, b.free->set->far.count, 1, "blocks in free sets");
    PLANT(&b, b.free->set->outside, 1, "blocks outside of bins");
    PLANT(&b, b.hole->set->unmapped.count, 0, "unmapped ranges");
    rig_close(&b.rig);
}

static void waits(void **state)
{
    struct bench b;

    (void)state;
    bench_open(&b);
    struct tn_stream_waits *w = &b.engine->waits;

    assert_int_equal(w->pending, 2);
    PLANT(&b, w->pending, 3, "pending events");
    PLANT(&b, w->records[b.waiting->uses].event_count, 1, "awaited events");
    PLANT(&b, w->queues[0].count, 0, "pending events");
    PLANT(&b, b.waiting->uses, UINT32_MAX, "is not where its state says");
    PLANT_LINK(&b, struct tn_block, w->records[b.waiting->uses].block, b.used,
               "is not where its state says");
    rig_close(&b.rig);
}

static bool no_stream(void *context, tarn_stream stream)
{
    (void)context;
    (void)stream;
    return false;
}

/* A private pool with memory, and the record of one that is gone. */
static void private_pools(void **state)
{
    const struct tarn_pool_id id = {0, 1};
    const struct tarn_pool_id gone = {0, 2};
    struct bench b;

    (void)state;
    bench_open(&b);
    struct rig *rig = &b.rig;

    rig_configure(rig, "expandable_segments:False");
    assert_int_equal(tarn_allocator_begin_pool(rig->allocator, gone, any_stream, NULL, NULL),
                     TARN_OK);
    rig_free(rig, rig_alloc(rig, 3 * MIB, 0));
    assert_int_equal(tarn_allocator_end_pool(rig->allocator, gone, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_release_pool(rig->allocator, gone, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_empty_pool(rig->allocator, gone, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_begin_pool(rig->allocator, id, any_stream, NULL, NULL),
                     TARN_OK);
    (void)rig_alloc(rig, 3 * MIB, 0);
    struct tn_private_pools *pools = &b.engine->heap.private_pools;
    struct tn_private_pool *pool = pools->first;
    struct tn_pool_record *record = tn_pool_record_find(&pools->records, gone);

    assert_null(pool->next);
    assert_non_null(record);
    finds_nothing(&b);
    PLANT(&b, pool->reserved, 19 * MIB, "reserved bytes of a private pool");
    PLANT(&b, pool->record->reserved.current[TN_SMALL], 512, "of half a private pool");
    PLANT(&b, pool->record->reserved.current[TN_LARGE], 512, "of half a private pool");
    PLANT(&b, pool->record->reserved.peak[TARN_STAT_ALL], 512, "at most 512");
    PLANT(&b, record->reserved.current[TN_LARGE], 512, "reserved bytes of all private pools");
    PLANT(&b, record->id.second, 3, "is not found by its id");
    PLANT_LINK(&b, struct tn_private_pool, pool->record->pool, NULL, "the record of another one");
    rig_close(rig);
}

/* A block that was freed in a capture, beside those that wait for events. */
static void deferred(void **state)
{
    const struct tarn_pool_id id = {0, 1};
    struct bench b;

    (void)state;
    bench_open(&b);
    struct rig *rig = &b.rig;
    const struct tn_stream_waits *w = &b.engine->waits;

    rig_configure(rig, "graph_capture_record_stream_reuse:True");
    assert_int_equal(tarn_allocator_begin_pool(rig->allocator, id, no_stream, NULL, &rig->error),
                     TARN_OK);
    assert_int_equal(tarn_sim_set_capturing(rig->device, 1, true), TARN_OK);
    assert_int_equal(tarn_sim_join_stream(rig->device, 2, 1), TARN_OK);
    assert_int_equal(tarn_sim_enqueue_ns(rig->device, 2, 1), TARN_OK);
    const tarn_ptr ptr = rig_alloc(rig, 3 * MIB, 1);

    rig_record(rig, ptr, 2);
    rig_free(rig, ptr);
    assert_int_equal(w->deferred_count, 1);
    struct tn_block *block = w->deferred[0];
    struct tn_capture_marks *marks = &w->records[block->uses].marks;

    finds_nothing(&b);
    PLANT(&b, marks->nodes.count, 0, "0 marks of capture 1");
    PLANT(&b, marks->capture, 0, "1 marks of capture 0");
    PLANT(&b, b.engine->waits.deferred_count, 0, "blocks with marks");
    PLANT_LINK(&b, struct tn_block, w->deferred[0], b.used, "does not wait for streams");
    PLANT_LINK(&b, struct tn_block, w->deferred[0], b.waiting, "does not wait for streams");
    PLANT(&b, block->allocated, true, "does not wait for streams");
    PLANT(&b, block->uses, UINT32_MAX, "does not wait for streams");
    PLANT(&b, block->uses, 0, "does not wait for streams");
    rig_close(rig);
}

/* Findings beyond those that are kept are counted, and the check adds to what is there. */
static void many_findings_are_counted(void **state)
{
    struct bench b;
    struct kept_counter list[KEPT];
    struct tarn_findings findings = TARN_FINDINGS_INIT;

    (void)state;
    bench_open(&b);
    list_counters(b.engine, list);
    for (int i = 0; i < KEPT * TN_POOLS; i++) {
        list[i / TN_POOLS].counter->current[i % TN_POOLS] += 512;
    }
    assert_int_equal(tn_core_check(b.engine, &findings), 27);
    assert_int_equal(findings.count, 27);
    assert_int_equal(tn_core_check(b.engine, &findings), 27);
    assert_int_equal(findings.count, 54);
    for (int i = 0; i < KEPT * TN_POOLS; i++) {
        list[i / TN_POOLS].counter->current[i % TN_POOLS] -= 512;
    }
    finds_nothing(&b);
    rig_close(&b.rig);
}

/* The public check returns what it adds, with a list and without one. */
static void findings_are_returned(void **state)
{
    struct tarn_findings findings = TARN_FINDINGS_INIT;
    struct bench b;

    (void)state;
    bench_open(&b);
    assert_int_equal(tarn_allocator_check(b.rig.allocator, NULL), 0);
    b.engine->heap.reserved += 512;
    const uint64_t count = tarn_allocator_check(b.rig.allocator, &findings);

    assert_true(count > 0);
    assert_int_equal(count, findings.count);
    assert_int_equal(tarn_allocator_check(b.rig.allocator, NULL), count);
    b.engine->heap.reserved -= 512;
    rig_close(&b.rig);
}

/* Under rules:2.14 blocks of one size are in the order of their segments' age, in each free set: of
 * small and of large blocks, of the default pools and of others. */
static void every_free_set_has_its_order(void **state)
{
    struct tarn_findings findings;
    struct tarn_pool *pool = NULL;
    struct bench b = {0};

    (void)state;
    rig_open(&b.rig, GIB, "rules:2.14");
    b.engine = rig_engine(b.rig.allocator);
    assert_int_equal(tarn_pool_create(b.rig.allocator, NULL, &pool, &b.rig.error), TARN_OK);
    for (int i = 0; i < 4; i++) {
        const uint64_t size = i % 2 == 0 ? 512 : 3 * MIB;
        tarn_ptr ptr = 0;

        assert_int_equal(i < 2 ? tarn_allocator_alloc(b.rig.allocator, size, 0, &ptr, NULL)
                               : tarn_pool_alloc(pool, size, 0, &ptr, NULL),
                         TARN_OK);
        rig_free(&b.rig, ptr);
    }
    finds_nothing(&b);
    b.engine->heap.config.rules = TARN_RULES_2_11; /* then each of the four is wrong */
    finds(&b, "order of a free set");
    assert_int_equal(findings_count(&b, &findings), 4);
    b.engine->heap.config.rules = TARN_RULES_2_14;
    tarn_pool_destroy(pool);
    rig_close(&b.rig);
}

/* Under the compact policy every pool is in the present epoch. */
static void every_pool_has_its_epoch(void **state)
{
    struct tarn_pool *handle = NULL;
    struct bench b = {0};

    (void)state;
    rig_open(&b.rig, GIB, "policy:compact");
    b.engine = rig_engine(b.rig.allocator);
    assert_int_equal(tarn_pool_create(b.rig.allocator, NULL, &handle, &b.rig.error), TARN_OK);
    (void)rig_alloc(&b.rig, 3 * MIB, 0);
    struct tn_private_pool *pool = b.engine->heap.private_pools.first;

    assert_non_null(pool);
    finds_nothing(&b);
    PLANT(&b, b.engine->heap.small.find_count, 77, "epoch of a pool");
    PLANT(&b, b.engine->heap.large.find_count, 77, "epoch of a pool");
    PLANT(&b, pool->small.find_count, 77, "epoch of a pool");
    PLANT(&b, pool->large.find_count, 77, "epoch of a pool");
    tarn_pool_destroy(handle);
    rig_close(&b.rig);
}

/* What stops a checked program: the first finding. */
static void assert_wrong(struct tn_engine *engine)
{
    (void)signal(SIGABRT, child_count);
    engine->heap.reserved += 512;
    tn_core_assert_good(engine);
}

static void findings_stop_a_checked_program(void **state)
{
    struct rig rig;
    int status = 0;

    (void)state;
    rig_open(&rig, GIB, "");
    (void)rig_alloc(&rig, 3 * MIB, 0);
    struct tn_engine *const engine = rig_engine(rig.allocator); /* which a child cannot ask for */
    char said[256] = "";
    int ends[2];

    tn_core_assert_served(engine);
    tn_core_assert_good(engine);
    assert_int_equal(pipe(ends), 0);
    (void)fflush(NULL);
    const pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        (void)dup2(ends[1], STDERR_FILENO);
        assert_wrong(engine);
        child_exit(0);
    }
    assert_int_equal(close(ends[1]), 0);
    assert_true(read(ends[0], said, sizeof said - 1) > 0);
    assert_int_equal(close(ends[0]), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_non_null(strstr(said, "reserved bytes"));
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_and_addresses),
        cmocka_unit_test(links),
        cmocka_unit_test(states),
        cmocka_unit_test(free_neighbours_that_were_not_merged),
        cmocka_unit_test(counters),
#if TN_FAST_PATH
        cmocka_unit_test(undo_log),
#endif
        cmocka_unit_test(totals),
        cmocka_unit_test(waits),
        cmocka_unit_test(private_pools),
        cmocka_unit_test(deferred),
        cmocka_unit_test(many_findings_are_counted),
        cmocka_unit_test(findings_are_returned),
        cmocka_unit_test(every_free_set_has_its_order),
        cmocka_unit_test(every_pool_has_its_epoch),
        cmocka_unit_test(findings_stop_a_checked_program),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
