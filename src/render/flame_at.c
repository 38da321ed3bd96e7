/* SPDX-License-Identifier: MIT */
/*
 * Flame graphs of any instant of a trace, or of the growth between two. Blocks are grouped by key
 * and stack, so that growth is that of a stack and not of blocks that come and go; what shrank is
 * not drawn, only its sum is shown.
 */
#include "tarn/report.h"

#include "base/assertion.h"
#include "base/errinfo.h"
#include "base/size_text.h"
#include "base/utf8.h"
#include "render/flame_svg.h"
#include "report/result.h"
#include "snapshot/snapshot.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    TITLE_MAX = 256,
    DEVICE_MAX = 32,
    GROUP_MAX = 512 /* bytes of a group's name; longer ones are cut */
};

/* What one stack of one group holds. */
struct holder {
    uint64_t key;
    uint64_t bytes[2]; /* at the earlier instant, at the later one */
    uint32_t seen;     /* of the view */
};

struct drawing {
    const struct tarn_report_options *options;
    const struct tarn_flame_at_options *how;
    struct tn_flame flame;
    struct tn_text_out out; /* for folded lines, then for the picture */
    struct tn_vec group;    /* char: the name of the group at hand */
    bool shows_device;
    uint64_t shrank;
    uint64_t left_out;
    struct tn_time_point last; /* of the device that was drawn last */
};

/* Holders of one device. */
struct holders {
    struct tn_budget budget; /* without a limit */
    struct tn_vec items;     /* struct holder */
    struct tn_id_table ids;  /* by key and stack */
};

/* The key of a holder; without padding, as it is hashed. */
struct holder_key {
    uint64_t key;
    uint64_t seen;
};

static bool holder_equal(const void *owner, uint32_t id, const void *key)
{
    const struct holders *holders = owner;
    const struct holder *holder = (const struct holder *)holders->items.items + id;
    const struct holder_key *wanted = key;

    return holder->key == wanted->key && holder->seen == wanted->seen;
}

static struct holder *holder_get(struct holders *holders, uint64_t key, uint32_t seen)
{
    const struct holder_key wanted = {key, seen};
    const uint32_t hash = tn_hash_bytes(&wanted, sizeof wanted);
    uint32_t id;

    if (tn_id_table_find(&holders->ids, hash, holder_equal, holders, &wanted, &id)) {
        return (struct holder *)holders->items.items + id;
    }
    if (!tn_id_table_add(&holders->ids, hash, (uint32_t)holders->items.count)) {
        return NULL;
    }
    struct holder *holder = tn_vec_push(&holders->items);

    if (holder) {
        *holder = (struct holder){.key = key, .seen = seen};
    }
    return holder;
}

/* `from` may be NULL: then nothing was held. */
static bool holders_collect(struct holders *holders, const struct tn_analysis *analysis,
                            const struct tn_time_point *from, const struct tn_time_point *at)
{
    const struct tn_lifetime *lifetimes = tn_timeline_lifetimes(analysis->timeline);

    for (size_t i = 0; i < analysis->timeline->lifetimes.count; i++) {
        const bool held[2] = {from && tn_lifetime_is_at(&lifetimes[i], from->entry),
                              tn_lifetime_is_at(&lifetimes[i], at->entry)};
        uint64_t key = 0;
        uint32_t seen;

        if (!held[0] && !held[1]) {
            continue;
        }
        bool found = tn_frame_view_find(&analysis->query->view, lifetimes[i].stack, &seen);

        if (!found) {
            return false;
        }
        if (analysis->keys.by != TARN_BY_STACK) {
            found = tn_group_key_find(&analysis->keys, &lifetimes[i], &key);
        }
        tn_assert(found); /* only frames can lack memory, and they have been found */
        struct holder *holder = holder_get(holders, key, seen);

        if (!holder) {
            return false;
        }
        for (int side = 0; side < 2; side++) {
            holder->bytes[side] += held[side] ? lifetimes[i].size : 0;
        }
    }
    return true;
}

/* ---- drawing ---- */

/* Adds the group as a place; borrowed until the next one. */
static bool group_add(struct drawing *drawing, const struct tn_group_keys *keys, uint64_t key,
                      struct tn_flame_path *path)
{
    const struct tarn_writer writer = tn_text_to_vec(&drawing->group);
    struct tn_text_out out;

    drawing->group.count = 0;
    tn_text_init(&out, &writer);
    tn_group_key_put(&out, keys, key);
    if (tn_text_finish(&out)) {
        return false;
    }
    const char *name = drawing->group.items;
    const int shown = tn_utf8_fit(name, drawing->group.count, GROUP_MAX);

    tn_flame_path_add_place(path, (struct tn_string){name, (size_t)shown});
    return true;
}

static bool holder_draw(struct drawing *drawing, const struct tn_analysis *analysis,
                        const struct holder *holder)
{
    struct tn_flame_path path = {
        .stack = tn_frame_view_stack(&analysis->query->view, holder->seen),
        .leaf = holder->seen != TN_STACK_NONE ? "(no frames)" : "(not recorded)",
        .is_inverted = drawing->how->is_inverted,
    };
    char device[DEVICE_MAX];

    if (holder->bytes[1] <= holder->bytes[0]) {
        drawing->shrank += holder->bytes[0] - holder->bytes[1];
        return true;
    }
    path.bytes = holder->bytes[1] - holder->bytes[0];
    if (drawing->shows_device) {
        const int length =
            snprintf(device, sizeof device, "device_%" PRId64, analysis->timeline->device);

        tn_flame_path_add_place(&path, (struct tn_string){device, (size_t)length});
    }
    if (analysis->keys.by != TARN_BY_STACK &&
        !group_add(drawing, &analysis->keys, holder->key, &path)) {
        return false;
    }
    if (drawing->how->folded) {
        tn_flame_path_put(&drawing->out, analysis->query->model, &path);
        return true;
    }
    return tn_flame_add(&drawing->flame, analysis->query->model, &path);
}

static bool holders_draw(struct drawing *drawing, const struct tn_analysis *analysis,
                         const struct tn_time_point *from, const struct tn_time_point *at)
{
    struct holders holders = {.budget = {0}};

    tn_vec_init(&holders.items, sizeof(struct holder));
    tn_id_table_init(&holders.ids, &holders.budget);
    bool good = holders_collect(&holders, analysis, from, at);
    const struct holder *items = holders.items.items;

    for (size_t i = 0; good && i < holders.items.count; i++) {
        good = holder_draw(drawing, analysis, &items[i]);
    }
    tn_id_table_fini(&holders.ids);
    tn_vec_fini(&holders.items);
    return good;
}

static enum tarn_status device_draw(void *context, const struct tn_analysis *analysis,
                                    struct tarn_error *error)
{
    struct drawing *drawing = context;
    const struct tarn_instant *wanted = &drawing->how->from;
    const bool is_growth = wanted->kind != TARN_AT_UNSPECIFIED;
    struct tn_time_point at;
    struct tn_time_point from;
    enum tarn_status status =
        tn_analysis_time_point(analysis, &analysis->query->selection.at,
                               is_growth ? TARN_AT_END : TARN_AT_PEAK, &at, error);

    if (status == TARN_OK && is_growth) {
        status = tn_analysis_time_point(analysis, wanted, TARN_AT_START, &from, error);
    }
    if (status) {
        return status;
    }
    drawing->out.units = analysis->query->units;
    drawing->last = at;
    drawing->left_out += at.left_out;
    return holders_draw(drawing, analysis, is_growth ? &from : NULL, &at) ? TARN_OK
                                                                          : TARN_ERR_HOST_MEMORY;
}

static void title_make(const struct drawing *drawing, char *title, size_t size)
{
    const bool is_growth = drawing->how->from.kind != TARN_AT_UNSPECIFIED;
    int used =
        snprintf(title, size, "%s", is_growth ? "GPU memory: what grew" : "Requested GPU memory");

    if (!drawing->shows_device && drawing->last.entry != TN_NEVER) {
        used +=
            snprintf(title + used, size - (size_t)used, " at event %" PRIu64, drawing->last.entry);
    }
    if (drawing->shrank > 0) {
        used += snprintf(title + used, size - (size_t)used, ", without %s that shrank",
                         tn_text_size(&drawing->out, (double)drawing->shrank).text);
    }
    if (drawing->left_out > 0) {
        (void)snprintf(title + used, size - (size_t)used, ", without %s not selected",
                       tn_text_size(&drawing->out, (double)drawing->left_out).text);
    }
}

/* The tree is there, for folded lines as well. */
static enum tarn_status flame_write(struct drawing *drawing, const struct tn_model *model,
                                    struct tarn_error *error)
{
    char title[TITLE_MAX];
    enum tarn_status status = tn_report_devices_found(model, drawing->options, TN_REPORT_STATE,
                                                      device_draw, drawing, error);

    if (status == TARN_OK && !drawing->how->folded) {
        if (tn_flame_layout(&drawing->flame)) {
            title_make(drawing, title, sizeof title);
            tn_flame_svg_put(&drawing->out, &drawing->flame, title, drawing->how->root_below);
        } else {
            status = TARN_ERR_HOST_MEMORY;
        }
    }
    if (status) {
        return status == TARN_ERR_HOST_MEMORY ? tn_fail_memory(error) : status;
    }
    status = tn_text_finish(&drawing->out);
    return status ? tn_fail(error, status, "cannot write the flame graph") : TARN_OK;
}

enum tarn_status tarn_report_flame_at(const struct tarn_snapshot *snapshot,
                                      const struct tarn_report_options *given,
                                      const struct tarn_flame_at_options *given_how,
                                      const struct tarn_writer *writer, struct tarn_error *error)
{
    static const struct tarn_report_options defaults = {.struct_size = sizeof defaults};
    static const struct tarn_flame_at_options how_defaults = {.struct_size = sizeof how_defaults};
    const struct tn_model *model = tn_snapshot_model(snapshot);
    struct drawing drawing = {.options = given ? given : &defaults,
                              .how = given_how ? given_how : &how_defaults};
    enum tarn_status status;

    drawing.shows_device = tn_report_device_count(model, drawing.options, TN_REPORT_STATE) > 1;
    tn_vec_init(&drawing.group, 1);
    tn_text_init(&drawing.out, writer);
    if (tn_flame_init(&drawing.flame, "all") == TARN_OK) {
        status = flame_write(&drawing, model, error);
        tn_flame_fini(&drawing.flame);
    } else {
        status = tn_fail_memory(error);
    }
    tn_vec_fini(&drawing.group);
    return status;
}
