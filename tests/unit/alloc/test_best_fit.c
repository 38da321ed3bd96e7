/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "alloc/pool/best_fit.h"
#include "support/sim.h"

/* A heap whose free blocks a test lays out by hand. Each is alone in its segment unless the test
 * links it to a neighbour. */
struct field {
    struct tn_heap heap;
    struct tn_block blocks[8];
    uint32_t count;
};

static void field_open(struct field *field, const char *conf)
{
    struct tarn_config config;

    assert_int_equal(tarn_config_parse(conf, &config, NULL), TARN_OK);
    *field = (struct field){0};
    tn_heap_init(&field->heap, sim_open(GIB), &config);
}

static void field_close(struct field *field)
{
    struct tarn_device *device = field->heap.device;

    for (uint32_t i = 0; i < field->count; i++) {
        struct tn_block *block = &field->blocks[i];

        if (block->mapped && tn_free_set_has(block->set, block)) {
            tn_pool_remove(block);
        }
    }
    tn_heap_fini(&field->heap);
    sim_close(device);
}

static struct tn_block *field_add(struct field *field, struct tn_pool *pool, uint64_t address,
                                  uint64_t size, bool expandable)
{
    struct tn_block *block = &field->blocks[field->count++];

    *block = (struct tn_block){
        .address = address,
        .size = size,
        .set = tn_pool_get_set(pool, 0),
        .mapped = true,
        .expandable = expandable,
    };
    tn_pool_insert(block);
    return block;
}

/* `room` unmapped bytes after a block of an expandable segment. */
static void field_add_room(struct field *field, struct tn_block *block, uint64_t room)
{
    struct tn_block *hole = &field->blocks[field->count++];

    *hole = (struct tn_block){
        .address = block->address + block->size,
        .size = room,
        .prev = block,
        .set = block->set,
        .expandable = true,
    };
    block->next = hole;
}

static struct tn_request request_of(struct field *field, uint64_t size)
{
    struct tn_request request = {.requested = size};

    tn_request_route(&field->heap, &request, NULL);
    assert_int_equal(tn_request_prepare(&field->heap, &field->heap.shard, &request, NULL), TARN_OK);
    return request;
}

/* The block that a request takes out of its set, NULL if none; it is put back. */
static struct tn_block *chosen(struct field *field, uint64_t size)
{
    struct tn_request request = request_of(field, size);

    if (!tn_best_fit(&field->heap, &request)) {
        assert_null(request.block);
        return NULL;
    }
    assert_false(tn_free_set_has(request.set, request.block));
    tn_pool_insert(request.block);
    return request.block;
}

static void an_exact_fit_is_taken(void **state)
{
    struct field field;

    (void)state;
    field_open(&field, "");
    struct tn_pool *pool = &field.heap.large;

    (void)field_add(&field, pool, 100 * MIB, 4 * MIB, false);
    struct tn_block *exact = field_add(&field, pool, 300 * MIB, 5 * MIB, false);

    (void)field_add(&field, pool, 200 * MIB, 5 * MIB + 512, false);
    assert_ptr_equal(chosen(&field, 5 * MIB), exact);
    assert_ptr_equal(chosen(&field, 5 * MIB - 511), exact); /* requests are rounded first */
    field_close(&field);
}

static void else_the_smallest_that_is_large_enough(void **state)
{
    struct field field;

    (void)state;
    field_open(&field, "");
    struct tn_pool *pool = &field.heap.large;

    (void)field_add(&field, pool, 100 * MIB, 20 * MIB, false);
    struct tn_block *smallest = field_add(&field, pool, 300 * MIB, 6 * MIB, false);

    (void)field_add(&field, pool, 200 * MIB, 5 * MIB, false);
    (void)field_add(&field, pool, 400 * MIB, 6 * MIB + 512, false);
    assert_ptr_equal(chosen(&field, 5 * MIB + 512), smallest);
    assert_null(chosen(&field, 20 * MIB + 512));
    field_close(&field);
}

static void of_equals_the_one_at_the_lowest_address(void **state)
{
    static const uint64_t order[] = {300, 100, 400, 200};
    struct field field;
    struct tn_block *lowest = NULL;

    (void)state;
    field_open(&field, "");
    for (int i = 0; i < 4; i++) {
        struct tn_block *block =
            field_add(&field, &field.heap.large, order[i] * MIB, 6 * MIB, false);

        lowest = order[i] == 100 ? block : lowest;
    }
    assert_ptr_equal(chosen(&field, 5 * MIB), lowest);
    tn_pool_remove(lowest);
    assert_int_equal(chosen(&field, 6 * MIB)->address, 200 * MIB);
    field_close(&field);
}

/* Not of another stream, nor of the other pool, however well it fits. */
static void only_its_own_free_set_serves_a_request(void **state)
{
    struct field field;

    (void)state;
    field_open(&field, "");
    struct tn_block *block = field_add(&field, &field.heap.small, 100 * MIB, 2 * MIB, false);
    struct tn_request other = {.requested = MIB, .stream = 7};

    assert_null(chosen(&field, MIB + 512));
    tn_request_route(&field.heap, &other, NULL);
    assert_int_equal(tn_request_prepare(&field.heap, &field.heap.shard, &other, NULL), TARN_OK);
    assert_false(tn_best_fit(&field.heap, &other));
    assert_ptr_equal(chosen(&field, MIB), block);
    field_close(&field);
}

/* Of two blocks that can grow, the one with less room is kept for larger requests last. */
static void an_expandable_block_with_less_room_is_preferred(void **state)
{
    struct field field;

    (void)state;
    field_open(&field, "expandable_segments:True");
    struct tn_pool *pool = &field.heap.large;
    struct tn_block *first = field_add(&field, pool, 100 * MIB, 6 * MIB, true);
    struct tn_block *second = field_add(&field, pool, 300 * MIB, 8 * MIB, true);
    struct tn_block *third = field_add(&field, pool, 500 * MIB, 10 * MIB, true);

    field_add_room(&field, first, 80 * MIB);
    field_add_room(&field, second, 40 * MIB);
    field_add_room(&field, third, 20 * MIB);
    assert_ptr_equal(chosen(&field, 5 * MIB), third);
    third->next->size = 60 * MIB;
    assert_ptr_equal(chosen(&field, 5 * MIB), second); /* greedy: ends where the next has more */
    second->next->size = 90 * MIB;
    assert_ptr_equal(chosen(&field, 5 * MIB), first); /* ... also if a later one has less */
    second->next->size = 78 * MIB;
    assert_ptr_equal(chosen(&field, 5 * MIB), first); /* ... or as much */
    field_close(&field);
}

static void a_block_that_cannot_grow_ends_the_search(void **state)
{
    struct field field;

    (void)state;
    field_open(&field, "expandable_segments:True");
    struct tn_pool *pool = &field.heap.large;
    struct tn_block *growing = field_add(&field, pool, 100 * MIB, 6 * MIB, true);
    struct tn_block *plain = field_add(&field, pool, 300 * MIB, 8 * MIB, false);
    struct tn_block *last = field_add(&field, pool, 500 * MIB, 9 * MIB, true);

    field_add_room(&field, growing, 40 * MIB);
    assert_ptr_equal(chosen(&field, 5 * MIB), plain); /* less room, though of another kind */
    assert_ptr_equal(chosen(&field, 8 * MIB + 512), last);
    field_close(&field);
}

/* After a change of settings the set has both kinds. */
static void without_expandable_segments_their_blocks_are_skipped(void **state)
{
    struct field field;

    (void)state;
    field_open(&field, "");
    struct tn_pool *pool = &field.heap.large;

    (void)field_add(&field, pool, 100 * MIB, 6 * MIB, true);
    (void)field_add(&field, pool, 200 * MIB, 7 * MIB, true);
    assert_null(chosen(&field, 5 * MIB));
    struct tn_block *plain = field_add(&field, pool, 300 * MIB, 8 * MIB, false);

    assert_ptr_equal(chosen(&field, 5 * MIB), plain);
    field_close(&field);
}

static void max_split_size_keeps_oversize_blocks_for_oversize_requests(void **state)
{
    struct field field;

    (void)state;
    field_open(&field, "max_split_size_mb:40,max_non_split_rounding_mb:20");
    struct tn_block *oversize = field_add(&field, &field.heap.large, 100 * MIB, 60 * MIB, false);

    assert_null(chosen(&field, 40 * MIB - 512));
    assert_null(chosen(&field, 40 * MIB)); /* larger by max_non_split_rounding */
    assert_ptr_equal(chosen(&field, 40 * MIB + 512), oversize);
    assert_ptr_equal(chosen(&field, 60 * MIB), oversize);
    struct tn_block *below = field_add(&field, &field.heap.large, 300 * MIB, 40 * MIB - 512, false);

    assert_ptr_equal(chosen(&field, 2 * MIB), below);
    struct tn_block *exact = field_add(&field, &field.heap.large, 500 * MIB, 40 * MIB, false);

    assert_ptr_equal(chosen(&field, 40 * MIB), exact); /* of that size is oversize, both are */
    field_close(&field);
}

/* In an expandable segment a later block may be allowed: it is not tried. */
static void no_other_block_is_tried_after_a_refusal(void **state)
{
    struct field field;

    (void)state;
    field_open(&field, "expandable_segments:True,max_split_size_mb:40");
    struct tn_pool *pool = &field.heap.large;
    struct tn_block *allowed = field_add(&field, pool, 100 * MIB, 30 * MIB, true);
    struct tn_block *refused = field_add(&field, pool, 300 * MIB, 50 * MIB, true);

    field_add_room(&field, allowed, 400 * MIB);
    field_add_room(&field, refused, 10 * MIB);
    assert_null(chosen(&field, 20 * MIB));
    assert_true(tn_free_set_has(allowed->set, allowed));
    assert_true(tn_free_set_has(refused->set, refused));
    refused->next->size = 500 * MIB;
    assert_ptr_equal(chosen(&field, 20 * MIB), allowed);
    field_close(&field);
}

/* No more host memory is taken than what is asked for needs. */
static void spare_nodes_come_from_one_chunk_while_it_has_some(void **state)
{
    struct field field;

    (void)state;
    field_open(&field, "");
    struct tn_heap *heap = &field.heap;

    assert_true(tn_heap_reserve_spares(heap, &heap->shard, 1));
    assert_int_equal(heap->slab.chunks, 1);
    const uint32_t nodes =
        (uint32_t)(tn_block_slab_memory(&heap->slab) / sizeof(struct tn_block)) - 1;

    tarn_host_fail_nth(1);
    assert_true(tn_heap_reserve_spares(heap, &heap->shard, nodes));
    assert_int_equal(heap->shard.spare_count, nodes);
    assert_false(tn_heap_reserve_spares(heap, &heap->shard, nodes + 1));
    tarn_host_fail_nth(0);
    field_close(&field);
}

/* From the beginning, as later settings do. */
static void rules_order_the_blocks_of_a_heap(void **state)
{
    struct field field;

    (void)state;
    field_open(&field, "rules:2.14");
    assert_ptr_equal(tn_pool_get_set(&field.heap.small, 0)->by_age, &field.heap.segments);
    assert_ptr_equal(tn_pool_get_set(&field.heap.large, 0)->by_age, &field.heap.segments);
    field_close(&field);
    field_open(&field, "");
    assert_null(tn_pool_get_set(&field.heap.large, 0)->by_age);
    field_close(&field);
}

/* The compact policy takes the block that begins its hole, or none. */
static void compact_takes_only_a_block_that_begins_its_hole(void **state)
{
    struct field field;

    (void)state;
    field_open(&field, "policy:compact,expandable_segments:True");
    struct tn_block *block = field_add(&field, &field.heap.large, 100 * MIB, 6 * MIB, true);
    struct tn_block before = {.address = 90 * MIB, .size = 10 * MIB, .expandable = true};
    struct tn_request request = request_of(&field, 5 * MIB);

    assert_true(tn_request_is_placed(&field.heap, &request));
    block->prev = &before;
    before.next = block;
    assert_null(chosen(&field, 5 * MIB)); /* free in front of it: not mapped */
    before.allocated = true;
    assert_ptr_equal(chosen(&field, 5 * MIB), block);
    request = request_of(&field, MIB);
    assert_false(tn_request_is_placed(&field.heap, &request)); /* small requests share pages */
    request = request_of(&field, 5 * MIB);
    request.expandable = false;
    assert_false(tn_request_is_placed(&field.heap, &request)); /* nor do plain segments have any */
    field_close(&field);
}

/* Until pages may move, any block serves; the next request may get another one. */
static void compact_takes_any_block_until_it_is_tidy(void **state)
{
    struct field field;

    (void)state;
    field_open(&field, "policy:compact,expandable_segments:True");
    struct tn_block *block = field_add(&field, &field.heap.large, 100 * MIB, 6 * MIB, true);
    struct tn_block before = {.address = 90 * MIB, .size = 10 * MIB, .expandable = true};
    struct tn_request request = request_of(&field, 5 * MIB);

    block->prev = &before;
    before.next = block;
    field.heap.tidy_from_ns = 1000;
    assert_true(tn_best_fit(&field.heap, &request));
    assert_ptr_equal(request.block, block);
    assert_true(request.is_timed);
    tn_pool_insert(block);
    tarn_sim_advance_ns(field.heap.device, 1000);
    assert_null(chosen(&field, 5 * MIB));
    field_close(&field);
}

static bool splits(struct field *field, struct tn_block *block, uint64_t size)
{
    struct tn_request request = request_of(field, size);

    request.block = block;
    return tn_request_splits(&field->heap, &request);
}

static void a_block_is_split_if_its_remainder_can_serve_requests(void **state)
{
    struct field field;

    (void)state;
    field_open(&field, "max_split_size_mb:40");
    struct tn_block *small = field_add(&field, &field.heap.small, 100 * MIB, 2 * MIB, false);
    struct tn_block *large = field_add(&field, &field.heap.large, 200 * MIB, 20 * MIB, false);
    struct tn_block *oversize = field_add(&field, &field.heap.large, 300 * MIB, 60 * MIB, false);

    small->size = MIB;
    assert_false(splits(&field, small, MIB));
    assert_true(splits(&field, small, MIB - 512));
    small->size = 2 * MIB;
    assert_false(splits(&field, large, 19 * MIB)); /* no large request asks for 1 MiB */
    assert_true(splits(&field, large, 19 * MIB - 512));
    assert_false(splits(&field, oversize, 45 * MIB));
    field.heap.config.expandable_segments = true; /* pages that are not needed are given back */
    assert_true(splits(&field, large, 20 * MIB - 512));
    assert_true(splits(&field, oversize, 45 * MIB));
    field_close(&field);
}

static void a_pool_without_splits_gives_whole_blocks(void **state)
{
    struct tn_private_pool owner = {.no_split = true};
    struct tn_request request = {.requested = 512};
    struct field field;

    (void)state;
    field_open(&field, "");
    struct tn_block *block = field_add(&field, &field.heap.small, 100 * MIB, 2 * MIB, false);

    tn_pool_init(&owner.small, true, &owner, NULL);
    tn_request_route(&field.heap, &request, &owner);
    assert_ptr_equal(request.pool, &owner.small);
    request.block = block;
    assert_false(tn_request_splits(&field.heap, &request));
    owner.no_split = false;
    assert_true(tn_request_splits(&field.heap, &request));
    tn_pool_fini(&owner.small);
    field_close(&field);
}

static tarn_ptr no_segment(void *context, uint64_t size, tarn_stream stream)
{
    (void)context;
    (void)size;
    (void)stream;
    return 0;
}

/* Segments of a pool with a source of its own are plain. */
static void requests_go_to_the_pool_of_their_size_and_owner(void **state)
{
    struct tn_private_pool owner = {0};
    struct tn_request request = {.requested = MIB};
    struct field field;

    (void)state;
    field_open(&field, "expandable_segments:True");
    tn_request_route(&field.heap, &request, NULL);
    assert_ptr_equal(request.pool, &field.heap.small);
    assert_true(request.expandable);
    request.requested = MIB + 1;
    tn_request_route(&field.heap, &request, NULL);
    assert_ptr_equal(request.pool, &field.heap.large);
    assert_int_equal(request.size, MIB + 512);
    tn_request_route(&field.heap, &request, &owner);
    assert_ptr_equal(request.pool, &owner.large);
    assert_true(request.expandable);
    owner.source.alloc = no_segment;
    tn_request_route(&field.heap, &request, &owner);
    assert_false(request.expandable);
    field_close(&field);
}

/* PyTorch counts searches only while it collects garbage, found or not. */
static void searches_age_the_pool_while_garbage_is_collected(void **state)
{
    struct field field;

    (void)state;
    field_open(&field, "garbage_collection_threshold:0.5");
    assert_null(chosen(&field, MIB));
    assert_int_equal(field.heap.small.find_count, 0); /* without a limit there is no garbage */
    field.heap.limit = 100 * MIB;
    (void)field_add(&field, &field.heap.small, 100 * MIB, 2 * MIB, false);
    assert_non_null(chosen(&field, MIB));
    assert_int_equal(field.heap.small.find_count, 1);
    struct tn_request request = request_of(&field, 2 * MIB);

    assert_false(tn_best_fit(&field.heap, &request));
    assert_int_equal(field.heap.large.find_count, 1);
    tn_fit_uncount(&field.heap, &request); /* the engine will search again */
    assert_int_equal(field.heap.large.find_count, 0);
    field_close(&field);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_exact_fit_is_taken),
        cmocka_unit_test(else_the_smallest_that_is_large_enough),
        cmocka_unit_test(of_equals_the_one_at_the_lowest_address),
        cmocka_unit_test(only_its_own_free_set_serves_a_request),
        cmocka_unit_test(an_expandable_block_with_less_room_is_preferred),
        cmocka_unit_test(a_block_that_cannot_grow_ends_the_search),
        cmocka_unit_test(without_expandable_segments_their_blocks_are_skipped),
        cmocka_unit_test(max_split_size_keeps_oversize_blocks_for_oversize_requests),
        cmocka_unit_test(no_other_block_is_tried_after_a_refusal),
        cmocka_unit_test(spare_nodes_come_from_one_chunk_while_it_has_some),
        cmocka_unit_test(rules_order_the_blocks_of_a_heap),
        cmocka_unit_test(compact_takes_only_a_block_that_begins_its_hole),
        cmocka_unit_test(compact_takes_any_block_until_it_is_tidy),
        cmocka_unit_test(a_block_is_split_if_its_remainder_can_serve_requests),
        cmocka_unit_test(a_pool_without_splits_gives_whole_blocks),
        cmocka_unit_test(requests_go_to_the_pool_of_their_size_and_owner),
        cmocka_unit_test(searches_age_the_pool_while_garbage_is_collected),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
