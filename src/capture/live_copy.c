/* SPDX-License-Identifier: MIT */
#include "capture/live_copy.h"

#include "alloc/engine/allocator.h"
#include "base/clock.h"
#include "base/errinfo.h"
#include "base/host_mem.h"
#include "pinned/pinned_look.h"

#include <string.h>

enum {
#ifdef TN_SCHEDULED /* tests/schedule: so few that the first try fails */
    SEGMENTS_FIRST = 1,
    BLOCKS_FIRST = 2
#else
    SEGMENTS_FIRST = 64,
    BLOCKS_FIRST = 1024
#endif
};

bool tn_capture_options_read(const struct tarn_capture_options *options,
                             struct tarn_capture_options *read_out)
{
    const size_t first_version = offsetof(struct tarn_capture_options, observers);

    *read_out = (struct tarn_capture_options){.struct_size = sizeof *read_out};
    if (options &&
        (options->struct_size < first_version || options->struct_size > sizeof *options)) {
        return false;
    }
    if (options) {
        memcpy(read_out, options, options->struct_size);
        read_out->struct_size = sizeof *read_out;
    }
    return true;
}

/* ---- under the allocator's lock ---- */

static void copy_begin(void *context)
{
    struct tn_live_copy *copy = context;

    copy->held_ns = tn_clock_now_ns();
    copy->segment_count = 0;
    copy->block_count = 0;
    copy->page_count = 0;
    if (copy->source.allocator) { /* another sink may have taken its place */
        copy->has_stacks =
            copy->source.history &&
            tn_allocator_stack_keeper(copy->source.allocator) == copy->source.history;
    }
    if (copy->has_history) {
        tn_history_copy_take(copy->source.history, &copy->history);
    }
}

static bool copy_segment(void *context, const struct tarn_segment_info *segment)
{
    struct tn_live_copy *copy = context;

    if (copy->segment_count < copy->segment_capacity) {
        copy->segments[copy->segment_count] =
            (struct tn_copied_segment){.info = *segment, .first_block = copy->block_count};
    }
    copy->segment_count++;
    return true;
}

static bool copy_block(void *context, const struct tarn_block_info *block)
{
    struct tn_live_copy *copy = context;

    if (copy->block_count < copy->block_capacity) {
        copy->blocks[copy->block_count] = *block;
    }
    copy->block_count++;
    if (copy->segment_count <= copy->segment_capacity) {
        copy->segments[copy->segment_count - 1].block_count++;
    }
    return true;
}

static bool copy_page(void *context, const struct tn_page_info *page)
{
    struct tn_live_copy *copy = context;

    if (copy->page_count < copy->page_capacity) {
        copy->pages[copy->page_count] = *page;
    }
    copy->page_count++;
    return true;
}

static bool copy_is_whole(const struct tn_live_copy *copy)
{
    return copy->segment_count <= copy->segment_capacity &&
           copy->block_count <= copy->block_capacity && copy->page_count <= copy->page_capacity;
}

static bool copy_end(void *context)
{
    struct tn_live_copy *copy = context;

    copy->held_ns = tn_clock_now_ns() - copy->held_ns;
    return copy_is_whole(copy);
}

/* ---- without it ---- */

static void rooms_free(struct tn_live_copy *copy)
{
    tn_host_free(copy->segments, copy->segment_capacity * sizeof *copy->segments);
    tn_host_free(copy->blocks, copy->block_capacity * sizeof *copy->blocks);
    tn_host_free(copy->pages, copy->page_capacity * sizeof *copy->pages);
    copy->segments = NULL;
    copy->blocks = NULL;
    copy->pages = NULL;
}

/* Room for the counted items, and half as much again. Its pages are committed before the lock is
 * taken. */
static bool rooms_get(struct tn_live_copy *copy)
{
    const uint64_t segments = copy->segment_count + copy->segment_count / 2 + SEGMENTS_FIRST;
    const uint64_t blocks = copy->block_count + copy->block_count / 2 + BLOCKS_FIRST;
    const uint64_t pages = copy->page_count + copy->page_count / 2;

    rooms_free(copy);
    copy->segment_capacity = segments;
    copy->block_capacity = blocks;
    copy->page_capacity = pages;
    copy->segments = tn_host_alloc_zero(segments * sizeof *copy->segments);
    copy->blocks = tn_host_alloc_zero(blocks * sizeof *copy->blocks);
    copy->pages = pages > 0 ? tn_host_alloc_zero(pages * sizeof *copy->pages) : NULL;
    return copy->segments && copy->blocks && (copy->pages || pages == 0);
}

static enum tarn_status copy_try(struct tn_live_copy *copy,
                                 const struct tarn_capture_options *options,
                                 struct tarn_error *error)
{
    const struct tn_look look = {
        .context = copy,
        .begin = copy_begin,
        .walker = {.context = copy, .segment = copy_segment, .block = copy_block},
        .page = copy_page,
        .end = copy_end,
    };

    if (!rooms_get(copy)) {
        return tn_fail_memory(error);
    }
    if (copy->pinned) {
        return tn_pinned_look(copy->pinned, &look, error);
    }
    if (copy->observer) {
        return tn_observer_look(copy->observer, &look, error);
    }
    return tn_allocator_look(copy->source.allocator, options->only_pool ? &options->pool : NULL,
                             &look, error);
}

/* The sources are in it. Other threads may allocate meanwhile; but each try has room for half as
 * much again as the one before found, so either they or the host memory come to an end. */
static enum tarn_status copy_make(struct tn_live_copy *copy,
                                  const struct tarn_capture_options *options,
                                  struct tarn_error *error)
{
    enum tarn_status status = TARN_OK;

    if (copy->has_history && tn_fork_passed(&copy->source.history->fork)) {
        return tn_fork_refuse(error, "the history");
    }
    if (copy->has_history && !tn_history_copy_prepare(copy->source.history, &copy->history)) {
        return tn_fail_memory(error);
    }
    do {
        status = copy_try(copy, options, error);
    } while (status == TARN_OK && !copy_is_whole(copy));
    if (status) {
        tn_live_copy_fini(copy);
    }
    return status;
}

enum tarn_status tn_live_copy_init(struct tn_live_copy *copy,
                                   const struct tarn_capture_source *source,
                                   const struct tarn_capture_options *options, bool with_history,
                                   struct tarn_error *error)
{
    *copy = (struct tn_live_copy){
        .source = *source,
        .device = tn_allocator_ordinal(source->allocator),
        .has_history = with_history && source->history,
    };
    tarn_allocator_get_config(source->allocator, &copy->config);
    return copy_make(copy, options, error);
}

enum tarn_status tn_live_copy_pinned(struct tn_live_copy *copy, struct tarn_pinned *pinned,
                                     struct tarn_history *history, struct tarn_error *error)
{
    const struct tarn_capture_options options = {.struct_size = sizeof options};

    *copy = (struct tn_live_copy){
        .source = {.history = history},
        .pinned = pinned,
        .has_history = history != NULL,
        .has_stacks = history && tn_pinned_stack_keeper(pinned) == history,
    };
    copy->device = tn_pinned_ordinal(pinned);
    return copy_make(copy, &options, error);
}

enum tarn_status tn_live_copy_observed(struct tn_live_copy *copy, struct tarn_observer *observer,
                                       bool with_history, struct tarn_error *error)
{
    const struct tarn_capture_options options = {.struct_size = sizeof options};
    struct tarn_history *history = tn_observer_history(observer);

    *copy = (struct tn_live_copy){
        .source = {.history = history},
        .observer = observer,
        .device = tn_observer_ordinal(observer),
        .has_history = with_history && history,
        .has_stacks = history != NULL,
    };
    tarn_config_init(&copy->config);
    return copy_make(copy, &options, error);
}

void tn_live_copy_fini(struct tn_live_copy *copy)
{
    rooms_free(copy);
    if (copy->has_history) {
        tn_history_copy_release(copy->source.history, &copy->history);
    }
}
