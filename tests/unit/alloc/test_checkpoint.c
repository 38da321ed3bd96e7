/* SPDX-License-Identifier: MIT */
/* Checkpoints of private pools: PyTorch's TestBlockStateAbsorption, and what is refused. */
#include "support/any_stream.h"
#include "support/test.h"

#include "alloc/engine/checkpoint.h"
#include "support/rig.h"
#include "tarn/block.h"
#include "tarn/pool.h"

#include <stdlib.h>

static const struct tarn_pool_id graph = {0, 1};

/* The blocks of the pool: what must be the same after restoring. */
struct picture {
    struct {
        uint64_t address;
        uint64_t size;
        bool allocated;
        bool active;
    } blocks[128];
    int block_count;
    struct tarn_segment_info segments[64];
    int segment_count;
};

static bool picture_segment(void *context, const struct tarn_segment_info *segment)
{
    struct picture *picture = context;

    assert_true(picture->segment_count < 64);
    picture->segments[picture->segment_count++] = *segment;
    return true;
}

static bool picture_block(void *context, const struct tarn_block_info *block)
{
    struct picture *picture = context;
    const int i = picture->block_count++;

    assert_true(i < 128);
    picture->blocks[i].address = block->address;
    picture->blocks[i].size = block->size;
    picture->blocks[i].allocated = block->allocated;
    picture->blocks[i].active = block->active;
    return true;
}

static struct picture picture_take(struct rig *rig)
{
    struct picture picture = {0};
    const struct tarn_walker walker = {&picture, picture_segment, picture_block};

    assert_int_equal(tarn_allocator_walk_pool(rig->allocator, graph, &walker), TARN_OK);
    return picture;
}

static void picture_is(const struct picture *now, const struct picture *expected)
{
    assert_int_equal(now->segment_count, expected->segment_count);
    for (int i = 0; i < now->segment_count; i++) {
        const struct tarn_segment_info *a = &now->segments[i];
        const struct tarn_segment_info *b = &expected->segments[i];

        assert_int_equal(a->address, b->address);
        assert_int_equal(a->total_size, b->total_size);
        assert_int_equal(a->allocated_size, b->allocated_size);
        assert_int_equal(a->active_size, b->active_size);
        assert_int_equal(a->stream, b->stream);
        assert_int_equal(a->is_large, b->is_large);
    }
    assert_int_equal(now->block_count, expected->block_count);
    for (int i = 0; i < now->block_count; i++) {
        assert_int_equal(now->blocks[i].address, expected->blocks[i].address);
        assert_int_equal(now->blocks[i].size, expected->blocks[i].size);
        assert_int_equal(now->blocks[i].allocated, expected->blocks[i].allocated);
        assert_int_equal(now->blocks[i].active, expected->blocks[i].active);
    }
}

static int live_blocks(struct rig *rig)
{
    const struct picture picture = picture_take(rig);
    int live = 0;

    for (int i = 0; i < picture.block_count; i++) {
        live += picture.blocks[i].allocated;
    }
    return live;
}

static void begin(struct rig *rig)
{
    assert_int_equal(
        tarn_allocator_begin_pool(rig->allocator, graph, any_stream, NULL, &rig->error), TARN_OK);
}

static void end(struct rig *rig)
{
    assert_int_equal(tarn_allocator_end_pool(rig->allocator, graph, &rig->error), TARN_OK);
}

static struct tarn_checkpoint *take(struct rig *rig)
{
    struct tarn_checkpoint *checkpoint = NULL;

    assert_int_equal(tarn_allocator_get_checkpoint(rig->allocator, graph, &checkpoint, &rig->error),
                     TARN_OK);
    return checkpoint;
}

static struct tarn_checkpoint_delta restore(struct rig *rig,
                                            const struct tarn_checkpoint *checkpoint)
{
    struct tarn_checkpoint_delta delta = {0};

    if (tarn_allocator_set_checkpoint(rig->allocator, checkpoint, &delta, &rig->error)) {
        fail_msg("%s", rig->error.text);
    }
    rig_check(rig);
    return delta;
}

/* checkFunction: what was allocated and kept is restored to the same pool of blocks. */
static void restores_itself(struct rig *rig)
{
    const struct picture before = picture_take(rig);
    struct tarn_checkpoint *checkpoint = take(rig);
    struct tarn_checkpoint_delta delta = restore(rig, checkpoint);
    const struct picture after = picture_take(rig);

    picture_is(&after, &before);
    assert_int_equal(delta.freed_count, live_blocks(rig));
    assert_int_equal(delta.created_count, delta.freed_count);
    for (size_t i = 0; i < delta.freed_count; i++) {
        bool found = false;

        for (size_t k = 0; k < delta.created_count; k++) {
            found = found || delta.created[k] == delta.freed[i];
        }
        assert_true(found);
        rig_free(rig, delta.freed[i]);
    }
    tarn_checkpoint_delta_fini(&delta);
    /* And again from a pool with nothing handed out. */
    delta = restore(rig, checkpoint);
    assert_int_equal(delta.freed_count, 0);
    const struct picture again = picture_take(rig);

    picture_is(&again, &before);
    tarn_checkpoint_delta_fini(&delta);
    tarn_checkpoint_destroy(checkpoint);
}

/* Allocates, and frees all but those that are kept. */
static void run_and_keep(struct rig *rig, const uint64_t *sizes, const bool *keep, int count)
{
    tarn_ptr ptrs[64];

    begin(rig);
    for (int i = 0; i < count; i++) {
        ptrs[i] = rig_alloc(rig, sizes[i], 0);
    }
    for (int i = 0; i < count; i++) {
        if (!keep[i]) {
            rig_free(rig, ptrs[i]);
        }
    }
    end(rig);
}

static const char *const confs[] = {"", "expandable_segments:True"};

/* test_simple: sizes of every kind. */
static void simple(void **state)
{
    static const uint64_t sizes[] = {8 * MIB,  8 * MIB, 2 * MIB,  2 * MIB, 2 * MIB, 20 * MIB,
                                     20 * MIB, MIB,     20 * MIB, MIB,     512};
    static const bool keep[] = {false, true,  false, false, false, false,
                                false, false, true,  true,  true};

    (void)state;
    for (size_t c = 0; c < 2; c++) {
        struct rig rig;

        rig_open(&rig, GIB, confs[c]);
        run_and_keep(&rig, sizes, keep, 11);
        restores_itself(&rig);
        rig_close(&rig);
    }
}

/* Eleven blocks of 512 bytes, of which some are kept. */
static void eleven(const bool *keep)
{
    static const uint64_t sizes[] = {512, 512, 512, 512, 512, 512, 512, 512, 512, 512, 512};

    for (size_t c = 0; c < 2; c++) {
        struct rig rig;

        rig_open(&rig, GIB, confs[c]);
        run_and_keep(&rig, sizes, keep, 11);
        restores_itself(&rig);
        rig_close(&rig);
    }
}

/* test_allocated_in_middle_of_segment */
static void allocated_in_middle_of_segment(void **state)
{
    static const bool keep[11] = {[5] = true};

    (void)state;
    eleven(keep);
}

/* test_multiple_middle_allocations */
static void multiple_middle_allocations(void **state)
{
    static const bool keep[11] = {[5] = true, [8] = true};

    (void)state;
    eleven(keep);
}

/* test_middle_allocations_contiguous */
static void middle_allocations_contiguous(void **state)
{
    static const bool keep[11] = {[5] = true, [6] = true};

    (void)state;
    eleven(keep);
}

static void nothing_or_everything_kept(void **state)
{
    static const bool nothing[11] = {false};
    static const bool everything[11] = {true, true, true, true, true, true,
                                        true, true, true, true, true};

    (void)state;
    eleven(nothing);
    eleven(everything);
}

/* test_additional_free_following_checkpoint: a second graph in the pool, then back. */
static void additional_free_following_checkpoint(void **state)
{
    (void)state;
    for (size_t c = 0; c < 2; c++) {
        struct rig rig;

        rig_open(&rig, GIB, confs[c]);
        begin(&rig);
        (void)rig_alloc(&rig, 512, 0);
        end(&rig);
        const struct picture before = picture_take(&rig);
        struct tarn_checkpoint *checkpoint = take(&rig);

        begin(&rig);
        const tarn_ptr second = rig_alloc(&rig, 512, 0);

        end(&rig);
        struct tarn_checkpoint_delta delta = restore(&rig, checkpoint);
        const struct picture after = picture_take(&rig);

        assert_int_equal(delta.freed_count, 2);
        assert_int_equal(delta.created_count, 1);
        assert_int_equal(tarn_allocator_free(rig.allocator, second, NULL),
                         TARN_ERR_INVALID_POINTER);
        picture_is(&after, &before);
        tarn_checkpoint_delta_fini(&delta);
        tarn_checkpoint_destroy(checkpoint);
        rig_close(&rig);
    }
}

/* test_tensor_dies_after_checkpoint: live blocks 2, 1, 0. */
static void tensor_dies_after_checkpoint(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    begin(&rig);
    const tarn_ptr a = rig_alloc(&rig, 512, 0);
    const tarn_ptr b = rig_alloc(&rig, 512, 0);

    end(&rig);
    struct tarn_checkpoint *checkpoint = take(&rig);

    rig_free(&rig, a);
    rig_free(&rig, b);
    assert_int_equal(live_blocks(&rig), 0);
    struct tarn_checkpoint_delta delta = restore(&rig, checkpoint);

    assert_int_equal(live_blocks(&rig), 2);
    rig_free(&rig, a);
    assert_int_equal(live_blocks(&rig), 1);
    rig_free(&rig, b);
    assert_int_equal(live_blocks(&rig), 0);
    tarn_checkpoint_delta_fini(&delta);
    tarn_checkpoint_destroy(checkpoint);
    rig_close(&rig);
}

/* test_assigning_back_deleter_fns_to_tensor: three results of 2, 2 and 20 MiB. They die, are
 * restored, and what was restored is freed by whoever has it now: live blocks 3, 0, 3, 2, 1, 0. */
static void assigning_back_deleter_fns_to_tensor(void **state)
{
    static const uint64_t sizes[] = {2 * MIB, 2 * MIB, 20 * MIB};

    (void)state;
    for (size_t c = 0; c < 2; c++) {
        struct rig rig;
        tarn_ptr outputs[3];

        rig_open(&rig, GIB, confs[c]);
        begin(&rig);
        for (int i = 0; i < 3; i++) {
            const tarn_ptr ones = rig_alloc(&rig, sizes[i], 0);

            outputs[i] = rig_alloc(&rig, sizes[i], 0);
            rig_free(&rig, ones);
        }
        end(&rig);
        struct tarn_checkpoint *checkpoint = take(&rig);

        assert_int_equal(live_blocks(&rig), 3);
        for (int i = 0; i < 3; i++) {
            rig_free(&rig, outputs[i]);
        }
        assert_int_equal(live_blocks(&rig), 0);
        struct tarn_checkpoint_delta delta = restore(&rig, checkpoint);

        assert_int_equal(delta.freed_count, 0);
        assert_int_equal(delta.created_count, 3);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(live_blocks(&rig), 3 - i);
            rig_free(&rig, outputs[i]);
        }
        assert_int_equal(live_blocks(&rig), 0);
        assert_int_equal(tarn_allocator_free(rig.allocator, outputs[2], NULL),
                         TARN_ERR_INVALID_POINTER);
        tarn_checkpoint_delta_fini(&delta);
        tarn_checkpoint_destroy(checkpoint);
        rig_close(&rig);
    }
}

/* ---- a network ---- */

/* Floats of a feature map. */
static tarn_ptr map_alloc(struct rig *rig, uint64_t channels, uint64_t width)
{
    return rig_alloc(rig, channels * width * width * 4, 0);
}

/* A convolution and its normalisation: two results, of which one is kept; `workspace` bytes during
 * the convolution. */
static tarn_ptr convolution(struct rig *rig, uint64_t channels, uint64_t width, uint64_t workspace)
{
    const tarn_ptr space = workspace ? rig_alloc(rig, workspace, 0) : 0;
    const tarn_ptr raw = map_alloc(rig, channels, width);

    if (space) {
        rig_free(rig, space);
    }
    const tarn_ptr normal = map_alloc(rig, channels, width);

    rig_free(rig, raw);
    return normal;
}

/* Three convolutions beside a shortcut, which has one of its own where the shape changes. */
static tarn_ptr bottleneck(struct rig *rig, tarn_ptr input, uint64_t channels, uint64_t width,
                           bool first, uint64_t stride)
{
    const tarn_ptr a = convolution(rig, channels, width * stride, 0);
    const tarn_ptr b = convolution(rig, channels, width, channels * width * 4 * 36);

    rig_free(rig, a);
    const tarn_ptr out = convolution(rig, channels * 4, width, 0);

    rig_free(rig, b);
    if (first) {
        rig_free(rig, convolution(rig, channels * 4, width, 0));
    }
    rig_free(rig, input);
    return out;
}

/* The inference of a ResNet-50 on one image of 3 x 255 x 255. `kept` gets what each stage gave. */
static tarn_ptr resnet50(struct rig *rig, tarn_ptr *kept)
{
    static const struct {
        uint64_t channels;
        uint64_t width;
        int blocks;
    } stages[] = {{64, 64, 3}, {128, 32, 4}, {256, 16, 6}, {512, 8, 3}};
    const tarn_ptr stem = convolution(rig, 64, 128, 0);
    tarn_ptr x = map_alloc(rig, 64, 64);

    rig_free(rig, stem);
    for (int s = 0; s < 4; s++) {
        for (int i = 0; i < stages[s].blocks; i++) {
            x = bottleneck(rig, x, stages[s].channels, stages[s].width, i == 0,
                           s > 0 && i == 0 ? 2 : 1);
        }
        kept[s] = rig_alloc(rig, stages[s].channels * 16, 0); /* a mean of each channel */
    }
    const tarn_ptr mean = rig_alloc(rig, 8192, 0);

    rig_free(rig, x);
    const tarn_ptr logits = rig_alloc(rig, 4000, 0);

    rig_free(rig, mean);
    return logits;
}

/* test_resnet: a network's memory, with its result alive, and then with results of its stages, too;
 * another run in the same pool in between. */
static void resnet(void **state)
{
    (void)state;
    for (size_t c = 0; c < 2; c++) {
        struct rig rig;
        tarn_ptr kept[4];
        tarn_ptr again[4];

        rig_open(&rig, GIB, confs[c]);
        begin(&rig);
        const tarn_ptr logits = resnet50(&rig, kept);

        for (int i = 0; i < 4; i++) {
            rig_free(&rig, kept[i]);
        }
        end(&rig);
        assert_int_equal(live_blocks(&rig), 1);
        restores_itself(&rig); /* hands `logits` out again */
        begin(&rig);
        (void)resnet50(&rig, kept);
        struct tarn_checkpoint *checkpoint = take(&rig);
        const struct picture before = picture_take(&rig);

        (void)resnet50(&rig, again);
        end(&rig);
        assert_int_equal(live_blocks(&rig), 11);
        struct tarn_checkpoint_delta delta = restore(&rig, checkpoint);
        const struct picture after = picture_take(&rig);

        picture_is(&after, &before);
        assert_int_equal(live_blocks(&rig), 6);
        assert_int_equal(delta.freed_count, 11);
        assert_int_equal(delta.created_count, 6);
        for (int i = 0; i < 4; i++) {
            rig_free(&rig, kept[i]);
        }
        rig_free(&rig, logits);
        assert_int_equal(live_blocks(&rig), 1);
        tarn_checkpoint_delta_fini(&delta);
        tarn_checkpoint_destroy(checkpoint);
        rig_close(&rig);
    }
}

static bool check_live(struct rig *rig, const tarn_ptr *expected, size_t count)
{
    bool live = false;

    assert_int_equal(
        tarn_allocator_check_pool_live(rig->allocator, graph, expected, count, &live, &rig->error),
        TARN_OK);
    return live;
}

/* test_check_pool_live_allocations */
static void check_pool_live_allocations(void **state)
{
    struct rig rig;
    bool live = false;

    (void)state;
    rig_open(&rig, GIB, "");
    assert_int_equal(tarn_allocator_check_pool_live(rig.allocator, graph, NULL, 0, &live, NULL),
                     TARN_ERR_NOT_FOUND);
    begin(&rig);
    const tarn_ptr a = rig_alloc(&rig, 16, 0);
    const tarn_ptr b = rig_alloc(&rig, 30 * MIB, 0);

    end(&rig);
    const tarn_ptr outside = rig_alloc(&rig, 16, 0);

    assert_true(check_live(&rig, (tarn_ptr[]){a, b}, 2));
    assert_true(check_live(&rig, (tarn_ptr[]){b, a}, 2));
    assert_false(check_live(&rig, (tarn_ptr[]){a}, 1));
    assert_false(check_live(&rig, (tarn_ptr[]){a, b, 0}, 3));
    assert_false(check_live(&rig, (tarn_ptr[]){a, outside}, 2));
    assert_false(check_live(&rig, NULL, 0));
    rig_free(&rig, b);
    assert_true(check_live(&rig, &a, 1));
    rig_free(&rig, a);
    assert_true(check_live(&rig, NULL, 0));
    rig_close(&rig);
}

/* Segments made after the checkpoint stay, wholly free. */
static void later_segments_stay_and_are_free(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    begin(&rig);
    (void)rig_alloc(&rig, 512, 0);
    struct tarn_checkpoint *checkpoint = take(&rig);
    const tarn_ptr later = rig_alloc(&rig, 30 * MIB, 0);
    const tarn_ptr on_other_stream = rig_alloc(&rig, 512, 4);
    struct tarn_checkpoint_delta delta = restore(&rig, checkpoint);

    assert_int_equal(delta.freed_count, 3);
    assert_int_equal(delta.created_count, 1);
    assert_int_equal(picture_take(&rig).segment_count, 3);
    assert_int_equal(live_blocks(&rig), 1);
    assert_int_equal(rig_alloc(&rig, 30 * MIB, 0), later);
    assert_int_equal(rig_alloc(&rig, 512, 4), on_other_stream);
    end(&rig);
    tarn_checkpoint_delta_fini(&delta);
    tarn_checkpoint_destroy(checkpoint);
    rig_close(&rig);
}

/* A checkpoint without any block is one, too. */
static void an_empty_pool_has_a_checkpoint(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    begin(&rig);
    struct tarn_checkpoint *checkpoint = take(&rig);

    (void)rig_alloc(&rig, 512, 0);
    struct tarn_checkpoint_delta delta = restore(&rig, checkpoint);

    assert_int_equal(delta.freed_count, 1);
    assert_int_equal(delta.created_count, 0);
    assert_int_equal(live_blocks(&rig), 0);
    end(&rig);
    tarn_checkpoint_delta_fini(&delta);
    tarn_checkpoint_destroy(checkpoint);
    tarn_checkpoint_destroy(NULL);
    rig_close(&rig);
}

static void restoring_is_refused(struct rig *rig, const struct tarn_checkpoint *checkpoint,
                                 enum tarn_status status)
{
    const struct picture before = picture_take(rig);
    const struct tarn_stats stats = rig_stats(rig);
    struct tarn_checkpoint_delta delta = {0};

    assert_int_equal(tarn_allocator_set_checkpoint(rig->allocator, checkpoint, &delta, &rig->error),
                     status);
    assert_int_equal(rig->error.status, status);
    const struct picture after = picture_take(rig);
    const struct tarn_stats now = rig_stats(rig);

    picture_is(&after, &before);
    assert_memory_equal(&now, &stats, sizeof now);
    rig_check(rig);
}

static void what_streams_use_cannot_be_restored(void **state)
{
    struct rig rig;
    struct tarn_checkpoint *none = NULL;

    (void)state;
    rig_open(&rig, GIB, "");
    begin(&rig);
    const tarn_ptr a = rig_alloc(&rig, 30 * MIB, 0);

    end(&rig);
    struct tarn_checkpoint *checkpoint = take(&rig);

    assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
    rig_record(&rig, a, 1);
    restoring_is_refused(&rig, checkpoint, TARN_ERR_STATE); /* used */
    rig_free(&rig, a);
    restoring_is_refused(&rig, checkpoint, TARN_ERR_STATE); /* waits */
    assert_int_equal(tarn_allocator_get_checkpoint(rig.allocator, graph, &none, &rig.error),
                     TARN_ERR_STATE);
    assert_null(none);
    assert_int_equal(tarn_sim_unblock_stream(rig.device, 1), TARN_OK);
    rig_free(&rig, rig_alloc(&rig, 512, 0)); /* completes the free */
    struct tarn_checkpoint_delta delta = restore(&rig, checkpoint);

    assert_int_equal(delta.created_count, 1);
    assert_int_equal(delta.created[0], a);
    tarn_checkpoint_delta_fini(&delta);
    tarn_checkpoint_destroy(checkpoint);
    rig_close(&rig);
}

static void pools_that_are_gone_are_refused(void **state)
{
    struct rig rig;
    struct tarn_checkpoint *checkpoint = NULL;

    (void)state;
    rig_open(&rig, GIB, "");
    assert_int_equal(tarn_allocator_get_checkpoint(rig.allocator, graph, &checkpoint, &rig.error),
                     TARN_ERR_NOT_FOUND);
    begin(&rig);
    const tarn_ptr a = rig_alloc(&rig, 30 * MIB, 0);

    end(&rig);
    checkpoint = take(&rig);
    assert_int_equal(tarn_allocator_release_pool(rig.allocator, graph, NULL), TARN_OK);
    restoring_is_refused(&rig, checkpoint, TARN_ERR_STATE);
    rig_free(&rig, a);
    rig_empty_cache(&rig);
    restoring_is_refused(&rig, checkpoint, TARN_ERR_NOT_FOUND);
    /* A new pool of that name does not have the segments. */
    begin(&rig);
    (void)rig_alloc(&rig, 512, 0);
    end(&rig);
    restoring_is_refused(&rig, checkpoint, TARN_ERR_STATE);
    tarn_checkpoint_destroy(checkpoint);
    rig_close(&rig);
}

/* A block in the pool, in a segment of its own at that address. */
static tarn_ptr alloc_graph_at(struct rig *rig, tarn_ptr address, uint64_t size, tarn_stream stream)
{
    assert_int_equal(tarn_sim_script_alloc(rig->device, address), TARN_OK);
    assert_int_equal(tarn_allocator_begin_pool(rig->allocator, graph, any_stream, NULL, NULL),
                     TARN_OK);
    const tarn_ptr ptr = rig_alloc(rig, size, stream);

    assert_int_equal(tarn_allocator_end_pool(rig->allocator, graph, NULL), TARN_OK);
    assert_int_equal(ptr, address);
    return ptr;
}

/* A pool made again under the same id has other segments at the same addresses. */
static void a_pool_that_was_made_again_is_refused(void **state)
{
    static const struct {
        uint64_t size;
        tarn_stream stream;
        const char *text; /* NULL: it fits */
    } again[] = {
        {22 * MIB, 1, "has only 23068672 of 31457280 bytes"},
        {30 * MIB, 2, "is not in its pool"},
        {100, 1, "is not in its pool"},
        {30 * MIB, 1, NULL},
        {40 * MIB, 1, NULL},
    };
    const tarn_ptr address = SIM_BASE + 256 * MIB;
    struct tarn_checkpoint *checkpoint = NULL;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    rig_free(&rig, alloc_graph_at(&rig, address, 30 * MIB, 1));
    assert_int_equal(tarn_allocator_get_checkpoint(rig.allocator, graph, &checkpoint, NULL),
                     TARN_OK);
    for (size_t i = 0; i < sizeof again / sizeof *again; i++) {
        struct tarn_checkpoint_delta delta = {0};

        assert_int_equal(tarn_allocator_release_pool(rig.allocator, graph, NULL), TARN_OK);
        rig_empty_cache(&rig);
        rig_free(&rig, alloc_graph_at(&rig, address, again[i].size, again[i].stream));
        const enum tarn_status st =
            tarn_allocator_set_checkpoint(rig.allocator, checkpoint, &delta, &rig.error);

        assert_int_equal(st, again[i].text ? TARN_ERR_STATE : TARN_OK);
        if (again[i].text && !strstr(rig.error.text, again[i].text)) {
            fail_msg("%s", rig.error.text);
        }
        tarn_checkpoint_delta_fini(&delta);
        rig_check(&rig);
    }
    tarn_checkpoint_destroy(checkpoint);
    rig_close(&rig);
}

/* Of two segments one was made, in which the second begins somewhere within, or at a block, or in
 * the last block. */
static void segments_that_grew_together_are_refused(void **state)
{
    static const uint64_t second[] = {30 * MIB, 20 * MIB, 10 * MIB};
    const tarn_ptr address = SIM_BASE + 256 * MIB;
    struct rig rig;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct tarn_checkpoint *checkpoint = NULL;
        struct tarn_checkpoint_delta delta = {0};

        rig_open(&rig, GIB, "");
        rig_free(&rig, alloc_graph_at(&rig, address, 20 * MIB, 1));
        rig_free(&rig, alloc_graph_at(&rig, address + 20 * MIB, 21 * MIB, 1));
        assert_int_equal(tarn_allocator_get_checkpoint(rig.allocator, graph, &checkpoint, NULL),
                         TARN_OK);
        assert_int_equal(tarn_allocator_release_pool(rig.allocator, graph, NULL), TARN_OK);
        assert_int_equal(tarn_allocator_release_pool(rig.allocator, graph, NULL), TARN_OK);
        rig_empty_cache(&rig);
        rig_free(&rig, alloc_graph_at(&rig, address, 42 * MIB, 1));
        const tarn_ptr front = alloc_graph_at(&rig, address, second[i], 1); /* splits it */

        assert_int_equal(
            tarn_allocator_set_checkpoint(rig.allocator, checkpoint, &delta, &rig.error),
            TARN_ERR_STATE);
        assert_non_null(strstr(rig.error.text, "is not in its pool"));
        tarn_checkpoint_delta_fini(&delta);
        rig_check(&rig);
        rig_free(&rig, front);
        tarn_checkpoint_destroy(checkpoint);
        rig_close(&rig);
    }
}

/* A pool that has a handle, so that its free memory can be given back. */
static struct tarn_checkpoint *checkpoint_of(struct rig *rig, const struct tarn_pool *pool)
{
    struct tarn_checkpoint *checkpoint = NULL;

    assert_int_equal(tarn_allocator_get_checkpoint(rig->allocator, tarn_pool_get_id(pool),
                                                   &checkpoint, &rig->error),
                     TARN_OK);
    return checkpoint;
}

static tarn_ptr alloc_of(struct rig *rig, struct tarn_pool *pool, uint64_t size)
{
    tarn_ptr ptr = 0;

    assert_int_equal(tarn_pool_alloc(pool, size, 0, &ptr, &rig->error), TARN_OK);
    return ptr;
}

static struct tarn_checkpoint_delta restored(struct rig *rig,
                                             const struct tarn_checkpoint *checkpoint)
{
    struct tarn_checkpoint_delta delta = {0};

    assert_int_equal(tarn_allocator_set_checkpoint(rig->allocator, checkpoint, &delta, &rig->error),
                     TARN_OK);
    rig_check(rig);
    return delta;
}

/* Of an expandable segment whose beginning is not mapped. */
static void a_range_behind_a_hole_is_restored(void **state)
{
    struct tarn_pool *pool = NULL;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "expandable_segments:True");
    assert_int_equal(tarn_pool_create(rig.allocator, NULL, &pool, &rig.error), TARN_OK);
    const tarn_ptr first = alloc_of(&rig, pool, 20 * MIB);
    const tarn_ptr second = alloc_of(&rig, pool, 20 * MIB);

    rig_free(&rig, first);
    assert_int_equal(tarn_pool_trim(pool, 0, NULL, &rig.error), TARN_OK);
    assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 20 * MIB);
    struct tarn_checkpoint *checkpoint = checkpoint_of(&rig, pool);
    struct tarn_checkpoint_delta delta = restored(&rig, checkpoint);

    assert_int_equal(delta.freed_count, 1);
    assert_int_equal(delta.created_count, 1);
    assert_int_equal(delta.created[0], second);
    assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 20 * MIB);
    tarn_checkpoint_delta_fini(&delta);
    tarn_checkpoint_destroy(checkpoint);
    rig_free(&rig, second);
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

/* A block that waits for a stream stays between those that are free: in a segment that the
 * checkpoint does not know. */
static void what_lies_behind_a_waiting_block_is_freed(void **state)
{
    struct tarn_pool *pool = NULL;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    assert_int_equal(tarn_pool_create(rig.allocator, NULL, &pool, &rig.error), TARN_OK);
    const tarn_ptr full = alloc_of(&rig, pool, 20 * MIB);
    struct tarn_checkpoint *checkpoint = checkpoint_of(&rig, pool);

    rig_record(&rig, alloc_of(&rig, pool, 4 * MIB), 2);
    (void)alloc_of(&rig, pool, 4 * MIB);
    assert_int_equal(tarn_sim_block_stream(rig.device, 2), TARN_OK);
    struct tarn_checkpoint_delta delta = restored(&rig, checkpoint);

    assert_int_equal(delta.freed_count, 3);
    assert_int_equal(rig_now(&rig, TARN_STAT_ALLOCATED_BYTES), 20 * MIB);
    assert_int_equal(rig_now(&rig, TARN_STAT_ACTIVE_BYTES), 24 * MIB);
    assert_int_equal(tarn_sim_unblock_stream(rig.device, 2), TARN_OK);
    tarn_checkpoint_delta_fini(&delta);
    tarn_checkpoint_destroy(checkpoint);
    rig_free(&rig, full);
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

/* A block whose free needs an event that the device does not record: it waits, and the event is
 * recorded later. */
static void a_free_without_an_event_is_put_off(void **state)
{
    struct tarn_pool *pool = NULL;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    assert_int_equal(tarn_pool_create(rig.allocator, NULL, &pool, &rig.error), TARN_OK);
    const tarn_ptr full = alloc_of(&rig, pool, 20 * MIB);
    struct tarn_checkpoint *checkpoint = checkpoint_of(&rig, pool);
    const tarn_ptr used = alloc_of(&rig, pool, 4 * MIB);

    rig_record(&rig, used, 2);
    tarn_sim_fail_nth(rig.device, TARN_SIM_EVENT_RECORD, 1, TARN_ERR_DEVICE);
    struct tarn_checkpoint_delta delta = restored(&rig, checkpoint);

    assert_int_equal(delta.freed_count, 2);
    assert_int_equal(rig_now(&rig, TARN_STAT_ALLOCATED_BYTES), 20 * MIB);
    assert_int_equal(rig_now(&rig, TARN_STAT_ACTIVE_BYTES), 24 * MIB);
    assert_int_equal(tarn_allocator_free(rig.allocator, used, &rig.error),
                     TARN_ERR_INVALID_POINTER);
    rig_check(&rig);
    rig_free(&rig, rig_alloc(&rig, 512, 0)); /* completes the free */
    rig_free(&rig, rig_alloc(&rig, 512, 0));
    assert_int_equal(rig_now(&rig, TARN_STAT_ACTIVE_BYTES), 20 * MIB);
    tarn_checkpoint_delta_fini(&delta);
    tarn_checkpoint_destroy(checkpoint);
    rig_free(&rig, full);
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

/* What a block carries for its user is no use by a stream. */
static void blocks_with_user_data_are_restored(void **state)
{
    struct tarn_pool *pool = NULL;
    int user = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    assert_int_equal(tarn_pool_create(rig.allocator, NULL, &pool, &rig.error), TARN_OK);
    const tarn_ptr ptr = alloc_of(&rig, pool, 3 * MIB);

    assert_int_equal(tarn_allocator_set_user_data(rig.allocator, ptr, &user, 7, &rig.error),
                     TARN_OK);
    struct tarn_checkpoint *checkpoint = checkpoint_of(&rig, pool);
    struct tarn_checkpoint_delta delta = restored(&rig, checkpoint);
    struct tarn_block block = {.struct_size = sizeof block};

    assert_int_equal(delta.created_count, 1);
    assert_int_equal(tarn_allocator_find_block(rig.allocator, ptr, &block, &rig.error), TARN_OK);
    assert_null(block.user); /* it is another block */
    tarn_checkpoint_delta_fini(&delta);
    tarn_checkpoint_destroy(checkpoint);
    rig_free(&rig, ptr);
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

/* So many that the map of pointers has to grow before one is freed. */
static void many_blocks_need_room_in_the_map(void **state)
{
    enum {
        MANY = 300
    };
    struct tarn_checkpoint_delta delta = {0};
    struct tarn_pool *pool = NULL;
    enum tarn_status st = TARN_ERR_HOST_MEMORY;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    assert_int_equal(tarn_pool_create(rig.allocator, NULL, &pool, &rig.error), TARN_OK);
    for (int i = 0; i < MANY; i++) {
        (void)alloc_of(&rig, pool, 512);
    }
    struct tarn_checkpoint *checkpoint = checkpoint_of(&rig, pool);
    uint64_t failures = 0;

    for (uint64_t n = 1; st != TARN_OK; n++) {
        tarn_host_fail_nth(n);
        st = tarn_allocator_set_checkpoint(rig.allocator, checkpoint, &delta, &rig.error);
        tarn_host_fail_nth(0);
        assert_true(st == TARN_OK || st == TARN_ERR_HOST_MEMORY);
        assert_int_equal(rig_now(&rig, TARN_STAT_ALLOCATION), MANY);
        rig_check(&rig);
        failures += st != TARN_OK;
    }
    assert_true(failures >= 4);
    assert_int_equal(delta.created_count, MANY);
    tarn_checkpoint_delta_fini(&delta);
    delta = restored(&rig, checkpoint); /* the map, empty for a moment, does not shrink */
    assert_int_equal(delta.created_count, MANY);
    const struct tn_ptr_map *map = &rig_engine(rig.allocator)->heap.shard.map;

    assert_int_equal(map->count, MANY);
    assert_true(tn_ptr_map_room(map->buckets) >= MANY);
    assert_false(map->keeps_room);
    for (size_t i = 0; i < delta.created_count; i++) {
        rig_free(&rig, delta.created[i]);
    }
    tarn_checkpoint_delta_fini(&delta);
    tarn_checkpoint_destroy(checkpoint);
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

static void a_list_may_find_no_memory(void **state)
{
    tarn_ptr ptr = 0;
    bool live = true;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    ptr = alloc_graph_at(&rig, SIM_BASE, 20 * MIB, 1);
    tarn_host_fail_nth(1);
    assert_int_equal(
        tarn_allocator_check_pool_live(rig.allocator, graph, &ptr, 1, &live, &rig.error),
        TARN_ERR_HOST_MEMORY);
    tarn_host_fail_nth(0);
    assert_true(live);
    rig_free(&rig, ptr);
    rig_close(&rig);
}

static void without_host_memory_nothing_changes(void **state)
{
    static const uint64_t sizes[] = {512, 512, 512, 30 * MIB, 3 * MIB, 2 * MIB};
    static const bool keep[] = {false, true, false, true, false, true};
    struct rig rig;
    struct tarn_checkpoint *checkpoint = NULL;
    struct tarn_checkpoint_delta delta = {0};
    enum tarn_status st = TARN_ERR_HOST_MEMORY;
    uint64_t failures = 0;

    (void)state;
    rig_open(&rig, GIB, "");
    run_and_keep(&rig, sizes, keep, 6);
    for (uint64_t n = 1; st != TARN_OK; n++) {
        const uint64_t live = tarn_host_get_usage().live_bytes;

        tarn_host_fail_nth(n);
        st = tarn_allocator_get_checkpoint(rig.allocator, graph, &checkpoint, &rig.error);
        tarn_host_fail_nth(0);
        assert_true(st == TARN_OK || st == TARN_ERR_HOST_MEMORY);
        assert_true(st == TARN_OK || tarn_host_get_usage().live_bytes == live);
        failures += st != TARN_OK;
    }
    begin(&rig);
    (void)rig_alloc(&rig, 512, 0);
    end(&rig);
    const struct picture before = picture_take(&rig);

    st = TARN_ERR_HOST_MEMORY;
    for (uint64_t n = 1; st != TARN_OK; n++) {
        tarn_host_fail_nth(n);
        st = tarn_allocator_set_checkpoint(rig.allocator, checkpoint, &delta, &rig.error);
        tarn_host_fail_nth(0);
        assert_true(st == TARN_OK || st == TARN_ERR_HOST_MEMORY);
        rig_check(&rig);
        if (st) {
            const struct picture now = picture_take(&rig);

            picture_is(&now, &before);
            failures++;
        }
    }
    assert_true(failures >= 4);
    tarn_checkpoint_delta_fini(&delta);
    tarn_checkpoint_destroy(checkpoint);
    rig_close(&rig);
}

/* ---- the order in which segments are restored ---- */

static struct tarn_checkpoint_delta restore_by(struct rig *rig,
                                               const struct tarn_checkpoint *checkpoint,
                                               struct tn_checkpoint_order order)
{
    struct tarn_checkpoint_delta delta = {0};

    assert_int_equal(
        tn_checkpoint_set(rig_engine(rig->allocator), checkpoint, &order, &delta, &rig->error),
        TARN_OK);
    rig_check(rig);
    return delta;
}

static void pointers_are(const tarn_ptr *ptrs, size_t count, const tarn_ptr *expected,
                         size_t expected_count)
{
    assert_int_equal(count, expected_count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(ptrs[i], expected[i]);
    }
}

/* Four segments, each beginning where the one before it ends. Those that are named come first, by
 * any address inside; the rest by address. */
static void segments_are_restored_in_an_order(void **state)
{
    enum {
        COUNT = 4
    };
    static const int orders[][COUNT] = {
        {2, 0, 1, 3}, /* of which the first two are named */
        {3, 1, 0, 2}, {1, 0, 2, 3}, {0, 1, 2, 3}, {3, 2, 0, 1},
    };
    const tarn_ptr base = SIM_BASE + 256 * MIB;
    tarn_ptr ptrs[COUNT];
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    for (uint64_t i = 0; i < COUNT; i++) {
        ptrs[i] = alloc_graph_at(&rig, base + i * 20 * MIB, 20 * MIB, 1);
    }
    struct tarn_checkpoint *checkpoint = take(&rig);

    for (size_t k = 0; k < sizeof orders / sizeof *orders; k++) {
        for (uint64_t inside = 0; inside < 20 * MIB; inside += 10 * MIB) {
            const int *order = orders[k];
            const uint64_t named[] = {ptrs[order[0]] + inside, ptrs[order[1]] + inside};
            const int *other = orders[(k + 1) % (sizeof orders / sizeof *orders)];
            const uint64_t then[] = {ptrs[other[0]] + inside, ptrs[other[1]] + inside};
            struct tarn_checkpoint_delta delta =
                restore_by(&rig, checkpoint, (struct tn_checkpoint_order){named, 2, then, 2});

            for (int i = 0; i < COUNT; i++) {
                assert_int_equal(delta.freed[i], ptrs[order[i]]);
                assert_int_equal(delta.created[i], ptrs[other[i]]);
            }
            assert_int_equal(delta.freed_count, COUNT);
            assert_int_equal(delta.created_count, COUNT);
            tarn_checkpoint_delta_fini(&delta);
            assert_null(delta.freed);
            assert_null(delta.created);
            assert_int_equal(delta.freed_count + delta.created_count, 0);
            tarn_checkpoint_delta_fini(&delta); /* nothing any more */
        }
    }
    tarn_checkpoint_destroy(checkpoint);
    rig_close(&rig);
}

/* Ranges of one expandable segment, with holes between them, are restored each for itself. */
static void ranges_between_holes_are_restored_in_an_order(void **state)
{
    enum {
        COUNT = 5
    };
    struct tarn_pool *pool = NULL;
    tarn_ptr ptrs[COUNT];
    bool live = false;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "expandable_segments:True");
    assert_int_equal(tarn_pool_create(rig.allocator, NULL, &pool, &rig.error), TARN_OK);
    for (int i = 0; i < COUNT; i++) {
        ptrs[i] = alloc_of(&rig, pool, 20 * MIB);
    }
    rig_free(&rig, ptrs[1]);
    rig_free(&rig, ptrs[3]);
    assert_int_equal(tarn_pool_trim(pool, 0, NULL, &rig.error), TARN_OK);
    const tarn_ptr forward[] = {ptrs[0], ptrs[2], ptrs[4]};
    const tarn_ptr mixed[] = {ptrs[0], ptrs[4], ptrs[2]};
    const tarn_ptr backward[] = {ptrs[4], ptrs[2], ptrs[0]};
    const tarn_ptr *const orders[] = {forward, mixed, backward};
    struct tarn_checkpoint *checkpoint = checkpoint_of(&rig, pool);

    for (size_t k = 0; k < 3; k++) {
        struct tarn_checkpoint_delta delta = restore_by(
            &rig, checkpoint, (struct tn_checkpoint_order){orders[k], 3, orders[2 - k], 3});

        pointers_are(delta.freed, delta.freed_count, orders[k], 3);
        pointers_are(delta.created, delta.created_count, orders[2 - k], 3);
        tarn_checkpoint_delta_fini(&delta);
    }
    assert_int_equal(tarn_allocator_check_pool_live(rig.allocator, tarn_pool_get_id(pool), backward,
                                                    3, &live, &rig.error),
                     TARN_OK);
    assert_true(live);
    for (int i = 0; i < 3; i++) {
        rig_free(&rig, forward[i]);
    }
    tarn_checkpoint_destroy(checkpoint);
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

/* Pages at the end of a range went back to the device since. */
static void a_range_that_became_shorter_is_refused(void **state)
{
    struct tarn_checkpoint_delta delta = {0};
    struct tarn_pool *pool = NULL;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "expandable_segments:True");
    assert_int_equal(tarn_pool_create(rig.allocator, NULL, &pool, &rig.error), TARN_OK);
    const tarn_ptr first = alloc_of(&rig, pool, 20 * MIB);
    const tarn_ptr second = alloc_of(&rig, pool, 20 * MIB);
    struct tarn_checkpoint *checkpoint = checkpoint_of(&rig, pool);

    rig_free(&rig, second);
    assert_int_equal(tarn_pool_trim(pool, 0, NULL, &rig.error), TARN_OK);
    assert_int_equal(tarn_allocator_set_checkpoint(rig.allocator, checkpoint, &delta, &rig.error),
                     TARN_ERR_STATE);
    assert_non_null(strstr(rig.error.text, "has only 20971520 of 41943040 bytes"));
    rig_check(&rig);
    rig_free(&rig, first);
    tarn_checkpoint_destroy(checkpoint);
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

/* The address is that of another pool's segment by now, with the same stream and size. */
static void a_segment_of_another_pool_is_refused(void **state)
{
    const tarn_ptr address = SIM_BASE + 256 * MIB;
    struct tarn_checkpoint *checkpoint = NULL;
    struct tarn_checkpoint_delta delta = {0};
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    rig_free(&rig, alloc_graph_at(&rig, address, 30 * MIB, 1));
    checkpoint = take(&rig);
    assert_int_equal(tarn_allocator_release_pool(rig.allocator, graph, NULL), TARN_OK);
    rig_empty_cache(&rig);
    assert_int_equal(tarn_sim_script_alloc(rig.device, address), TARN_OK);
    assert_int_equal(rig_alloc(&rig, 30 * MIB, 1), address);
    begin(&rig); /* the pool again, with nothing */
    end(&rig);
    assert_int_equal(tarn_allocator_set_checkpoint(rig.allocator, checkpoint, &delta, &rig.error),
                     TARN_ERR_STATE);
    assert_non_null(strstr(rig.error.text, "is not in its pool"));
    assert_int_equal(rig_now(&rig, TARN_STAT_ALLOCATION), 1);
    tarn_checkpoint_destroy(checkpoint);
    rig_close(&rig);
}

/* ---- streams ---- */

static void a_checkpoint_counts_the_blocks_that_wait(void **state)
{
    struct tarn_checkpoint *checkpoint = NULL;
    tarn_ptr ptrs[2];
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    begin(&rig);
    for (int i = 0; i < 2; i++) {
        ptrs[i] = rig_alloc(&rig, 30 * MIB, 0);
    }
    end(&rig);
    assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
    for (int i = 0; i < 2; i++) {
        rig_record(&rig, ptrs[i], 1);
        rig_free(&rig, ptrs[i]);
    }
    assert_int_equal(tarn_allocator_get_checkpoint(rig.allocator, graph, &checkpoint, &rig.error),
                     TARN_ERR_STATE);
    assert_non_null(strstr(rig.error.text, "(0, 1) has 2 blocks that wait"));
    assert_int_equal(tarn_sim_unblock_stream(rig.device, 1), TARN_OK);
    rig_close(&rig);
}

/* Of events of frees. */
struct stacks {
    int count;
    tarn_ptr address[16];
    uint64_t stack[16];
};

static uint64_t some_stack(void *context, enum tarn_context_level level)
{
    (void)context;
    (void)level;
    return 77;
}

static void note_frees(void *context, const struct tarn_trace_event *event)
{
    struct stacks *stacks = context;

    if (event->action == TARN_ACTION_FREE_REQUESTED ||
        event->action == TARN_ACTION_FREE_COMPLETED) {
        assert_true(stacks->count < 16);
        stacks->address[stacks->count] = event->address;
        stacks->stack[stacks->count++] = event->stack;
    }
}

/* Frees that a capture deferred are completed by a checkpoint, and the device may refuse. Nobody
 * called for those frees, so that their events have no stack. */
static void a_checkpoint_completes_deferred_frees(void **state)
{
    struct stacks stacks = {.count = 0};
    const struct tarn_sink sink = {.context = &stacks,
                                   .level = TARN_CONTEXT_ALL,
                                   .capture = some_stack,
                                   .receive = note_frees};
    struct tarn_checkpoint *checkpoint = NULL;
    struct tarn_checkpoint_delta delta = {0};
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    const tarn_ptr before = rig_alloc(&rig, 40 * MIB, 0);

    rig_record(&rig, before, 1);
    begin(&rig);
    const tarn_ptr kept = rig_alloc(&rig, 20 * MIB, 0);
    const tarn_ptr ptr = rig_alloc(&rig, 30 * MIB, 0);

    rig_record(&rig, ptr, 1);
    rig_free(&rig, before);
    rig_free(&rig, ptr);
    end(&rig);
    assert_int_equal(rig_now(&rig, TARN_STAT_ACTIVE), 3);
    tarn_sim_fail_nth(rig.device, TARN_SIM_EVENT_RECORD, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_get_checkpoint(rig.allocator, graph, &checkpoint, &rig.error),
                     TARN_ERR_DEVICE);
    assert_null(checkpoint);
    assert_int_equal(tarn_allocator_add_sink(rig.allocator, &sink, &rig.error), TARN_OK);
    checkpoint = take(&rig);
    assert_int_equal(rig_now(&rig, TARN_STAT_ACTIVE), 2); /* `before` waits */
    assert_int_equal(stacks.count, 1);
    assert_int_equal(stacks.address[0], ptr);
    assert_int_equal(stacks.stack[0], 0);
    assert_int_equal(tarn_allocator_set_checkpoint(rig.allocator, checkpoint, &delta, &rig.error),
                     TARN_OK);
    pointers_are(delta.freed, delta.freed_count, &kept, 1);
    assert_int_equal(stacks.address[1], kept); /* the first that is freed */
    assert_int_equal(stacks.stack[1], 0);
    assert_int_equal(tarn_allocator_remove_sink(rig.allocator, &stacks, &rig.error), TARN_OK);
    tarn_checkpoint_delta_fini(&delta);
    tarn_checkpoint_destroy(checkpoint);
    rig_close(&rig);
}

/* Restoring frees blocks of segments that the checkpoint does not know, even if the device records
 * no event: they wait, for all of their streams, from the next request on. */
static void a_block_whose_event_fails_waits_later(void **state)
{
    struct tarn_pool *pool = NULL;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    assert_int_equal(tarn_pool_create(rig.allocator, NULL, &pool, &rig.error), TARN_OK);
    const tarn_ptr full = alloc_of(&rig, pool, 20 * MIB);
    struct tarn_checkpoint *checkpoint = checkpoint_of(&rig, pool);
    const tarn_ptr first = alloc_of(&rig, pool, 30 * MIB);
    const tarn_ptr second = alloc_of(&rig, pool, 40 * MIB);

    rig_record(&rig, second, 3);
    begin(&rig);
    rig_record(&rig, first, 2); /* in a capture, and the only ones of that block */
    rig_record(&rig, first, 4);
    end(&rig);
    for (tarn_stream stream = 2; stream <= 4; stream++) {
        assert_int_equal(tarn_sim_block_stream(rig.device, stream), TARN_OK);
    }
    tarn_sim_fail_nth(rig.device, TARN_SIM_EVENT_RECORD, 1, TARN_ERR_DEVICE);
    struct tarn_checkpoint_delta delta = restored(&rig, checkpoint);

    assert_int_equal(delta.freed_count, 3);
    assert_int_equal(rig_now(&rig, TARN_STAT_ACTIVE_BYTES), 90 * MIB);
    assert_int_equal(rig_now(&rig, TARN_STAT_ALLOCATED_BYTES), 20 * MIB);
    rig_free(&rig, rig_alloc(&rig, 512, 0)); /* tries again */
    assert_int_equal(rig_now(&rig, TARN_STAT_ACTIVE_BYTES), 90 * MIB);
    assert_int_equal(rig_engine(rig.allocator)->waits.pending, 3);
    for (tarn_stream stream = 2; stream <= 4; stream++) {
        assert_int_equal(tarn_sim_unblock_stream(rig.device, stream), TARN_OK);
        rig_free(&rig, rig_alloc(&rig, 512, 0));
        assert_int_equal(rig_now(&rig, TARN_STAT_ACTIVE_BYTES), (stream == 2   ? 90
                                                                 : stream == 3 ? 50
                                                                               : 20) *
                                                                    (int64_t)MIB);
    }
    tarn_checkpoint_delta_fini(&delta);
    tarn_checkpoint_destroy(checkpoint);
    rig_free(&rig, full);
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

/* Between the blocks of a range and those that are mapped now lies nothing: what is mapped behind
 * the address is another range. */
static void a_range_that_is_unmapped_is_refused(void **state)
{
    struct tarn_checkpoint_delta delta = {0};
    struct tarn_pool *pool = NULL;
    tarn_ptr ptrs[3];
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "expandable_segments:True");
    assert_int_equal(tarn_pool_create(rig.allocator, NULL, &pool, &rig.error), TARN_OK);
    for (int i = 0; i < 3; i++) {
        ptrs[i] = alloc_of(&rig, pool, 20 * MIB);
    }
    rig_free(&rig, ptrs[0]);
    rig_free(&rig, ptrs[2]);
    assert_int_equal(tarn_pool_trim(pool, 0, NULL, &rig.error), TARN_OK);
    struct tarn_checkpoint *checkpoint = checkpoint_of(&rig, pool); /* of the second alone */

    assert_int_equal(alloc_of(&rig, pool, 20 * MIB), ptrs[0]);
    assert_int_equal(alloc_of(&rig, pool, 20 * MIB), ptrs[2]);
    rig_free(&rig, ptrs[0]);
    rig_free(&rig, ptrs[1]);
    assert_int_equal(tarn_pool_trim(pool, 0, NULL, &rig.error), TARN_OK);
    assert_int_equal(tarn_allocator_set_checkpoint(rig.allocator, checkpoint, &delta, &rig.error),
                     TARN_ERR_STATE);
    assert_non_null(strstr(rig.error.text, "is not in its pool"));
    rig_check(&rig);
    rig_free(&rig, ptrs[2]);
    tarn_checkpoint_destroy(checkpoint);
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

/* Whichever allocation of the host fails, also those that can be done without: nothing is changed,
 * or all is restored, though the device refuses the event of a block that is freed. */
static void each_lack_of_host_memory_is_survived(void **state)
{
    bool failed = true;
    uint64_t failures = 0;

    (void)state;
    for (uint64_t n = 1; failed; n++) {
        struct tarn_checkpoint_delta delta = {0};
        struct tarn_pool *pool = NULL;
        struct rig rig;

        rig_open(&rig, GIB, "");
        assert_int_equal(tarn_pool_create(rig.allocator, NULL, &pool, &rig.error), TARN_OK);
        (void)alloc_of(&rig, pool, 20 * MIB);
        struct tarn_checkpoint *checkpoint = checkpoint_of(&rig, pool);

        for (uint64_t i = 0; i < 3; i++) {
            rig_record(&rig, alloc_of(&rig, pool, (30 + 2 * i) * MIB), 2);
        }
        tarn_sim_fail_nth(rig.device, TARN_SIM_EVENT_CREATE, 1, TARN_ERR_DEVICE);
        const uint64_t before = tarn_host_get_usage().alloc_calls;

        tarn_host_fail_nth(n);
        const enum tarn_status st =
            tarn_allocator_set_checkpoint(rig.allocator, checkpoint, &delta, &rig.error);

        tarn_host_fail_nth(0);
        tarn_sim_fail_nth(rig.device, TARN_SIM_EVENT_CREATE, 0, TARN_OK);
        failed = tarn_host_get_usage().alloc_calls - before >= n;
        assert_true(st == TARN_OK || (failed && st == TARN_ERR_HOST_MEMORY));
        assert_int_equal(delta.freed_count, st ? 0 : 4);
        assert_int_equal(delta.created_count, st ? 0 : 1);
        assert_int_equal(rig_now(&rig, TARN_STAT_ALLOCATION), st ? 4 : 1);
        rig_check(&rig);
        failures += st != TARN_OK;
        tarn_checkpoint_delta_fini(&delta);
        tarn_checkpoint_destroy(checkpoint);
        tarn_pool_destroy(pool);
        rig_close(&rig);
    }
    assert_true(failures >= 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(simple),
        cmocka_unit_test(allocated_in_middle_of_segment),
        cmocka_unit_test(multiple_middle_allocations),
        cmocka_unit_test(middle_allocations_contiguous),
        cmocka_unit_test(nothing_or_everything_kept),
        cmocka_unit_test(additional_free_following_checkpoint),
        cmocka_unit_test(tensor_dies_after_checkpoint),
        cmocka_unit_test(assigning_back_deleter_fns_to_tensor),
        cmocka_unit_test(resnet),
        cmocka_unit_test(check_pool_live_allocations),
        cmocka_unit_test(later_segments_stay_and_are_free),
        cmocka_unit_test(an_empty_pool_has_a_checkpoint),
        cmocka_unit_test(what_streams_use_cannot_be_restored),
        cmocka_unit_test(pools_that_are_gone_are_refused),
        cmocka_unit_test(a_pool_that_was_made_again_is_refused),
        cmocka_unit_test(segments_that_grew_together_are_refused),
        cmocka_unit_test(a_range_behind_a_hole_is_restored),
        cmocka_unit_test(what_lies_behind_a_waiting_block_is_freed),
        cmocka_unit_test(a_free_without_an_event_is_put_off),
        cmocka_unit_test(blocks_with_user_data_are_restored),
        cmocka_unit_test(many_blocks_need_room_in_the_map),
        cmocka_unit_test(a_list_may_find_no_memory),
        cmocka_unit_test(without_host_memory_nothing_changes),
        cmocka_unit_test(segments_are_restored_in_an_order),
        cmocka_unit_test(ranges_between_holes_are_restored_in_an_order),
        cmocka_unit_test(a_range_that_became_shorter_is_refused),
        cmocka_unit_test(a_segment_of_another_pool_is_refused),
        cmocka_unit_test(a_checkpoint_counts_the_blocks_that_wait),
        cmocka_unit_test(a_checkpoint_completes_deferred_frees),
        cmocka_unit_test(a_block_whose_event_fails_waits_later),
        cmocka_unit_test(a_range_that_is_unmapped_is_refused),
        cmocka_unit_test(each_lack_of_host_memory_is_survived),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
