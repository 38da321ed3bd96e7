/* SPDX-License-Identifier: MIT */
/* What the checkers of a simulated device find: each field is made wrong and right again. */
#include "support/test.h"

#include "support/sim.h"

#include <string.h>

enum {
    S1 = 1,
    S2 = 2
};

/* Expects a finding with `text`; NULL: none. */
static void finds(struct tarn_device *device, const char *text)
{
    struct tarn_findings findings = TARN_FINDINGS_INIT;
    const uint64_t count = tn_sim_check(tn_sim_from(device), &findings);
    bool found = false;

    for (uint64_t i = 0; text && i < count && i < TARN_FINDINGS_KEPT; i++) {
        found = found || strstr(findings.text[i], text);
    }
    if (found != (text != NULL) || (count > 0) != found) {
        fail_msg("%llu findings, the first says \"%s\"", (unsigned long long)count,
                 count > 0 ? findings.text[0] : "");
    }
}

#define PLANT(device, field, value, text)                                                          \
    do {                                                                                           \
        unsigned char kept[sizeof(field)];                                                         \
        memcpy(kept, &(field), sizeof kept);                                                       \
        (field) = (value);                                                                         \
        finds(device, text);                                                                       \
        memcpy(&(field), kept, sizeof kept);                                                       \
        finds(device, NULL);                                                                       \
    } while (0)

static void the_address_space(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    struct tn_sim_space *space = &tn_sim_from(device)->space;
    const tarn_ptr first = sim_alloc_ok(device, 3 * MIB);
    const tarn_ptr second = sim_alloc_ok(device, MIB);

    (void)state;
    finds(device, NULL);
    for (int kind = 0; kind < TN_SIM_KIND_COUNT; kind++) {
        PLANT(device, space->live[kind], space->live[kind] + 1, "ranges of kind");
    }
    PLANT(device, space->peak, space->used - 1, "space: used");
    PLANT(device, space->capacity, space->used - 1, "space: used");
    struct tn_sim_range *range = tn_sim_space_find(space, second);

    PLANT(device, range->gap_start, range->gap_start - 512, "space: range at");
    PLANT(device, tn_sim_space_find(space, first)->size, 5 * MIB, "space: range at");
    PLANT(device, range->start, range->start - 512, "space: range at");
    PLANT(device, range->start, range->gap_start - 512, "space: range at");
    const uint64_t start = range->start;
    const uint64_t size = range->size;

    range->start = range->gap_start - 512; /* into the one before, up to the same end */
    range->size = start + size - range->start;
    finds(device, "space: range at");
    range->start = start;
    range->size = size;
    PLANT(device, space->ranges.root->height, 9, "tree: height 9 stored");
    assert_int_equal(device->ops->free(device, first), TARN_OK);
    assert_int_equal(device->ops->free(device, second), TARN_OK);
    sim_close(device);
}

static void the_pool(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    struct tn_sim_pool *pool = &tn_sim_from(device)->pool;
    tarn_ptr ptr = 0;

    (void)state;
    assert_int_equal(device->ops->pool_alloc(device, 700, S1, &ptr), TARN_OK);
    finds(device, NULL);
    PLANT(device, pool->reserved, pool->reserved + 512, "stored");
    PLANT(device, pool->used, 701, "stored");
    PLANT(device, pool->reserved_peak, pool->reserved - 1, "pool: peaks");
    PLANT(device, pool->used_peak, 699, "pool: peaks");
    PLANT(device, pool->free.count, pool->free.count + 1, "pool: 2 free blocks listed");
    struct tn_sim_range *chunk = tn_sim_space_first(&tn_sim_from(device)->space);

    PLANT(device, chunk->size, 512, "pool: block at"); /* its blocks are larger */
    PLANT(device, chunk->start, chunk->start + 512, "pool: block at");
    struct tn_sim_pool_block *first =
        TN_TREE_ENTRY(tn_tree_first(&pool->blocks), struct tn_sim_pool_block, by_address);
    struct tn_sim_pool_block *second =
        TN_TREE_ENTRY(tn_tree_next(&first->by_address), struct tn_sim_pool_block, by_address);

    assert_true(first->used && !second->used);
    PLANT(device, pool->blocks.root->height, 9, "tree: height 9 stored");
    PLANT(device, pool->free.root->height, 9, "tree: height 9 stored");
    PLANT(device, first->size, first->size + 512, "pool: block at"); /* they overlap */
    PLANT(device, first->asked, 0, " bytes, 0 requested");
    PLANT(device, first->asked, first->size + 1, " bytes, 1025 requested");
    PLANT(device, second->size, second->size + 512, "pool: block at"); /* behind its chunk */
    assert_int_equal(device->ops->pool_free(device, ptr, S1), TARN_OK);
    sim_close(device);
}

static void virtual_memory(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    struct tn_sim_vmm *vmm = &tn_sim_from(device)->vmm;
    tarn_ptr base = 0;
    tn_page_handle page = 0;

    (void)state;
    assert_int_equal(device->ops->va_reserve(device, 2 * MIB, &base), TARN_OK);
    assert_int_equal(device->ops->page_create(device, 2 * MIB, &page), TARN_OK);
    assert_int_equal(device->ops->map(device, base, 2 * MIB, page), TARN_OK);
    PLANT(device, vmm->pages.root->height, 9, "tree: height 9 stored");
    PLANT(device, vmm->mappings.root->height, 9, "tree: height 9 stored");
    sim_close(device);
}

/* Checkers add to what others found, and say how much they found themselves. */
static void findings_are_counted(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    struct tn_sim *sim = tn_sim_from(device);
    struct tarn_findings findings = TARN_FINDINGS_INIT;
    tarn_ptr ptr = 0;

    (void)state;
    assert_int_equal(device->ops->pool_alloc(device, 700, S1, &ptr), TARN_OK);
    sim->pool.used++;
    sim->space.live[TN_SIM_PLAIN]++;
    assert_int_equal(tn_sim_pool_check(sim, &findings), 1);
    assert_int_equal(tn_sim_space_check(&sim->space, &findings), 1);
    assert_int_equal(tn_sim_check(sim, &findings), 2);
    assert_int_equal(findings.count, 4);
    sim->pool.used--;
    sim->space.live[TN_SIM_PLAIN]--;
    assert_int_equal(tn_sim_pool_check(sim, &findings), 0);
    assert_int_equal(tn_sim_space_check(&sim->space, &findings), 0);
    assert_int_equal(tn_sim_check(sim, &findings), 0);
    sim_close(device);
}

static struct tn_sim_stream *stream_in_capture(struct tarn_device *device)
{
    struct tn_tree_node *node = tn_tree_first(&tn_sim_from(device)->streams.streams);

    for (; node; node = tn_tree_next(node)) {
        struct tn_sim_stream *stream = TN_TREE_ENTRY(node, struct tn_sim_stream, node);

        if (stream->mark.capture != 0) {
            return stream;
        }
    }
    return NULL;
}

static void captures(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    struct tn_sim_graphs *graphs = &tn_sim_from(device)->streams.graphs;

    (void)state;
    assert_int_equal(tarn_sim_set_capturing(device, S1, true), TARN_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(tarn_sim_enqueue_ns(device, S1, 100), TARN_OK);
    }
    finds(device, NULL);
    struct tn_sim_stream *stream = stream_in_capture(device);

    if (!stream) {
        fail();
        return;
    }
    PLANT(device, stream->mark.capture, stream->mark.capture + 1, "which is over");
    tn_graph_node *last = stream->mark.nodes.items;

    PLANT(device, *last, *last + 1, "which is none");
    tn_graph_node *parents = graphs->first->edges.items;
    const size_t count = graphs->first->edges.count;

    assert_int_equal(count, 2); /* of the second node and of the third */
    for (size_t i = 0; i < count; i++) {
        PLANT(device, parents[i], parents[i] + 1, "comes after"); /* itself */
        PLANT(device, parents[i], 1, "comes after");              /* in another capture */
    }
    struct tn_sim_graph_node *first = graphs->first->nodes.items; /* comes after nothing */

    PLANT(device, first->parent_count, 1, "comes after");
    assert_int_equal(tarn_sim_set_capturing(device, S1, false), TARN_OK);
    sim_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_address_space),    cmocka_unit_test(the_pool),
        cmocka_unit_test(virtual_memory),       cmocka_unit_test(captures),
        cmocka_unit_test(findings_are_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
