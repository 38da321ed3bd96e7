/* SPDX-License-Identifier: MIT */
/*
 * Flame graphs of a snapshot's segments, and of what two snapshots do not have in common: as folded
 * lines or as a picture. Segments are the same when address and size are, as in `_memory_viz
 * compare`.
 */
#include "tarn/report.h"

#include "base/errinfo.h"
#include "base/order.h"
#include "render/flame_svg.h"
#include "snapshot/snapshot.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NUMBER_MAX = 32 /* of the name of a stream or segment */
};

static const struct tarn_flame_options no_options = {.struct_size = sizeof no_options};

/* Where lines go: to a text at once, or into a tree that is drawn in the end. */
struct sink {
    struct tn_text_out out;
    struct tn_flame flame;
    const struct tn_model *model; /* of the lines that come now */
    bool folded;
};

static void place_add(struct tn_flame_path *path, const char *place)
{
    tn_flame_path_add_place(path, (struct tn_string){place, strlen(place)});
}

static bool sink_visit(void *context, const struct tn_fold_line *line)
{
    struct sink *sink = context;
    struct tn_flame_path path = {.leaf = tn_fold_leaf_name(line->leaf),
                                 .bytes = line->bytes,
                                 .is_negative = line->is_negative};
    char stream[NUMBER_MAX];
    char segment[NUMBER_MAX];

    (void)snprintf(stream, sizeof stream, "stream_%" PRIu64, line->segment->stream);
    (void)snprintf(segment, sizeof segment, "seg_%" PRIu64, line->segment->address);
    if (line->side) {
        place_add(&path, line->side);
    }
    place_add(&path, stream);
    if (line->by_segment) {
        place_add(&path, segment);
    }
    place_add(&path, tn_block_state_name((enum tn_block_state)line->state));
    if (line->leaf == TN_FOLD_STACK) {
        path.stack = tn_model_stack(sink->model, line->stack);
    }
    if (sink->folded) {
        tn_flame_path_put(&sink->out, sink->model, &path);
        return sink->out.status == TARN_OK;
    }
    return tn_flame_add(&sink->flame, sink->model, &path);
}

static enum tarn_status sink_init(struct sink *sink, const struct tarn_flame_options *options,
                                  const struct tarn_writer *writer)
{
    tn_text_init(&sink->out, writer);
    sink->out.units = options->units;
    sink->folded = options->folded;
    return options->folded ? TARN_OK : tn_flame_init(&sink->flame, "all");
}

/* Draws, if that is wanted, and releases. `good` is false when a line found no host memory, or no
 * writer. */
static enum tarn_status sink_finish(struct sink *sink, bool good, const char *title,
                                    struct tarn_error *error)
{
    if (!sink->folded) {
        good = good && tn_flame_layout(&sink->flame);
        if (good) {
            tn_flame_svg_put(&sink->out, &sink->flame, title, false);
        }
        tn_flame_fini(&sink->flame);
    }
    const enum tarn_status status = tn_text_finish(&sink->out);

    if (status) {
        return tn_fail(error, status, "cannot write the flame graph");
    }
    return good ? TARN_OK : tn_fail_memory(error);
}

static bool is_wanted(const struct tarn_flame_options *options,
                      const struct tn_model_segment *segment)
{
    return !options->one_device || segment->device == options->device;
}

enum tarn_status tarn_report_flame(const struct tarn_snapshot *snapshot, enum tarn_flame_view view,
                                   const struct tarn_flame_options *given,
                                   const struct tarn_writer *writer, struct tarn_error *error)
{
    const struct tarn_flame_options *options = given ? given : &no_options;
    const struct tn_model *model = tn_snapshot_model(snapshot);
    const struct tn_fold_line head = {.by_segment = view == TARN_FLAME_SEGMENTS};
    struct sink sink = {.model = model};
    const struct tn_fold_visitor visitor = {sink_visit, &sink};
    bool good = true;

    if (sink_init(&sink, options, writer)) {
        return tn_fail_memory(error);
    }
    for (size_t i = 0; good && i < model->segment_count; i++) {
        if (is_wanted(options, &model->segments[i])) {
            good = tn_fold_segment(&model->segments[i], &head, &visitor);
        }
    }
    return sink_finish(
        &sink, good, view == TARN_FLAME_SEGMENTS ? "GPU memory by segment" : "GPU memory by stack",
        error);
}

/* ---- two snapshots ---- */

static int segment_compare(const void *left, const void *right)
{
    const struct tn_model_segment *a = *(const struct tn_model_segment *const *)left;
    const struct tn_model_segment *b = *(const struct tn_model_segment *const *)right;
    const int order = tn_order(a->address, b->address);

    return order ? order : tn_order(a->total_size, b->total_size);
}

/* The segments of a snapshot, as pointers, in order of address and size. */
static bool segments_sort(struct tn_vec *sorted, const struct tn_model *model,
                          const struct tarn_flame_options *options)
{
    bool good = true;

    for (size_t i = 0; good && i < model->segment_count; i++) {
        const struct tn_model_segment *segment = &model->segments[i];

        good = !is_wanted(options, segment) || tn_vec_append(sorted, &segment, 1);
    }
    tn_vec_sort(sorted, segment_compare);
    return good;
}

static const struct tn_model_segment *segment_at(const struct tn_vec *sorted, size_t i)
{
    return ((const struct tn_model_segment *const *)sorted->items)[i];
}

static bool has_segment(const struct tn_vec *sorted, const struct tn_model_segment *segment)
{
    return sorted->count > 0 &&
           bsearch(&segment, sorted->items, sorted->count, sorted->item_size, segment_compare);
}

/* Both sides of a comparison. */
struct pair {
    const struct tn_model *models[2];
    struct tn_vec sorted[2]; /* const struct tn_model_segment * */
};

static void pair_fini(struct pair *pair)
{
    tn_vec_fini(&pair->sorted[0]);
    tn_vec_fini(&pair->sorted[1]);
}

static enum tarn_status pair_init(struct pair *pair, const struct tarn_snapshot *before,
                                  const struct tarn_snapshot *after,
                                  const struct tarn_flame_options *options,
                                  struct tarn_error *error)
{
    bool good = true;

    *pair = (struct pair){.models = {tn_snapshot_model(before), tn_snapshot_model(after)}};
    for (int i = 0; i < 2; i++) {
        tn_vec_init(&pair->sorted[i], sizeof(struct tn_model_segment *));
        good = good && segments_sort(&pair->sorted[i], pair->models[i], options);
    }
    if (good) {
        return TARN_OK;
    }
    pair_fini(pair);
    return tn_fail_memory(error);
}

static const char *const sides[2] = {"only_before", "only_after"};

enum tarn_status tarn_report_compare(const struct tarn_snapshot *before,
                                     const struct tarn_snapshot *after,
                                     const struct tarn_flame_options *given,
                                     const struct tarn_writer *writer, struct tarn_error *error)
{
    const struct tarn_flame_options *options = given ? given : &no_options;
    struct sink sink = {.model = NULL};
    const struct tn_fold_visitor visitor = {sink_visit, &sink};
    struct pair pair;
    bool good = true;
    const enum tarn_status status = pair_init(&pair, before, after, options, error);

    if (status) {
        return status;
    }
    if (sink_init(&sink, options, writer)) {
        pair_fini(&pair);
        return tn_fail_memory(error);
    }
    for (int side = 0; side < 2; side++) {
        const struct tn_fold_line head = {.side = sides[side], .by_segment = true};
        const struct tn_model *model = pair.models[side];

        sink.model = model;
        for (size_t i = 0; good && i < model->segment_count; i++) {
            const struct tn_model_segment *segment = &model->segments[i];

            if (is_wanted(options, segment) && !has_segment(&pair.sorted[!side], segment)) {
                good = tn_fold_segment(segment, &head, &visitor);
            }
        }
    }
    pair_fini(&pair);
    return sink_finish(&sink, good, "GPU memory of segments that only one snapshot has", error);
}

/* `only_before = [1, 2]`; returns how many. */
static uint64_t list_put(struct tn_text_out *out, const struct pair *pair, int side)
{
    const struct tn_vec *own = &pair->sorted[side];
    uint64_t count = 0;

    tn_text_printf(out, "%s = [", sides[side]);
    for (size_t i = 0; i < own->count; i++) {
        if (!has_segment(&pair->sorted[!side], segment_at(own, i))) {
            tn_text_printf(out, "%s%" PRIu64, count > 0 ? ", " : "", segment_at(own, i)->address);
            count++;
        }
    }
    tn_text_puts(out, "]\n");
    return count;
}

/* Segments of `before` whose address one of `after` has: an expandable segment keeps it. */
static uint64_t common_count(const struct pair *pair)
{
    const struct tn_vec *a = &pair->sorted[0];
    const struct tn_vec *b = &pair->sorted[1];
    uint64_t count = 0;
    size_t k = 0;

    for (size_t i = 0; i < a->count; i++) {
        const uint64_t address = segment_at(a, i)->address;

        while (k < b->count && segment_at(b, k)->address < address) {
            k++;
        }
        count += k < b->count && segment_at(b, k)->address == address;
    }
    return count;
}

enum tarn_status
tarn_report_compare_lists(const struct tarn_snapshot *before, const struct tarn_snapshot *after,
                          const struct tarn_flame_options *given, const struct tarn_writer *writer,
                          struct tarn_compare_counts *counts_out, struct tarn_error *error)
{
    struct tn_text_out out;
    struct pair pair;
    enum tarn_status status = pair_init(&pair, before, after, given ? given : &no_options, error);

    if (status) {
        return status;
    }
    tn_text_init(&out, writer);
    const struct tarn_compare_counts counts = {
        .only_before = list_put(&out, &pair, 0),
        .only_after = list_put(&out, &pair, 1),
        .before = pair.sorted[0].count,
        .after = pair.sorted[1].count,
        .common_addresses = common_count(&pair),
    };
    pair_fini(&pair);
    status = tn_text_finish(&out);
    if (status) {
        return tn_fail(error, status, "cannot write the lists");
    }
    if (counts_out) {
        *counts_out = counts;
    }
    return TARN_OK;
}
