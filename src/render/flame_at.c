/* SPDX-License-Identifier: MIT */
/*
 * Flame graphs of any instant of a trace, or of what grew between two. Blocks are put together by
 * what they are grouped by and their stack, so that growth is that of a stack and not of blocks
 * that come and go; what shrank is not drawn, and its sum is said.
 */
#include "tarn/report.h"

#include "base/errinfo.h"
#include "base/size_text.h"
#include "render/flame_svg.h"
#include "report/result.h"
#include "snapshot/snapshot.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    TITLE_MAX = 256,
    GROUP_MAX = 512 /* bytes of a group's name; longer ones are cut */
};

/* What one stack of one group holds. */
struct holder {
    uint64_t key;
    uint64_t bytes[2]; /* at the earlier instant, at the later one */
    uint32_t seen;     /* of the view */
};

struct flame_moment {
    const struct tarn_report_options *options;
    const struct tarn_flame_at_options *how;
    struct tn_query query;
    struct tn_flame flame;
    struct tn_text_out out; /* for folded lines, then for the picture */
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

/* What holders are told by; without gaps, as it is hashed. */
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
    const int64_t found = tn_id_table_find(&holders->ids, hash, holder_equal, holders, &wanted);

    if (found != TN_ID_NOT_FOUND) {
        return (struct holder *)holders->items.items + found;
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
        if (!tn_frame_view_find(&analysis->query->view, lifetimes[i].stack, &seen) ||
            (analysis->keys.by != TARN_BY_STACK &&
             !tn_group_key_find(&analysis->keys, &lifetimes[i], &key))) {
            return false;
        }
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

/* The name of a group, collected. */
struct group_name {
    char text[GROUP_MAX];
    size_t length;
};

static enum tarn_status name_write(void *context, const char *bytes, size_t size)
{
    struct group_name *name = context;
    const size_t room = sizeof name->text - name->length;

    size = size < room ? size : room;
    memcpy(name->text + name->length, bytes, size);
    name->length += size;
    return TARN_OK;
}

static void name_set(struct group_name *name, const struct tn_group_keys *keys, uint64_t key)
{
    const struct tarn_writer writer = {name_write, name};
    struct tn_text_out out;

    name->length = 0;
    tn_text_init(&out, &writer);
    tn_group_key_put(&out, keys, key);
    if (tn_text_finish(&out)) { /* never: the writer does not fail */
        name->length = 0;
    }
}

/* A folded line. In names of groups ';' would begin another frame. */
static void folded_put(struct tn_text_out *out, const struct tn_model *model,
                       const struct tn_flame_path *path)
{
    const char *joint = "";

    if (path->device >= 0) {
        tn_text_printf(out, "device_%" PRId64, path->device);
        joint = ";";
    }
    if (path->group) {
        tn_text_puts(out, joint);
        for (size_t i = 0; i < path->group_length; i++) {
            const char c = path->group[i];

            tn_text_put(out, c == ';' ? "," : &c, 1);
        }
        joint = ";";
    }
    bool has_frames = false;

    for (uint32_t i = 0; i < path->stack.count; i++) {
        const uint32_t number = path->is_inverted ? i : path->stack.count - 1 - i;
        const struct tn_frame *frame = tn_model_frame(model, path->stack.frames[number]);

        if (!tn_fold_hides_frame(model, frame)) {
            const struct tn_string name = tn_model_string(model, frame->name);
            const struct tn_string file =
                tn_fold_base_name(tn_model_string(model, frame->filename));

            tn_text_puts(out, joint);
            tn_text_put_escaped(out, file.text, file.length, TN_ESCAPED_PLAIN);
            tn_text_printf(out, ":%" PRId64 ":", frame->line);
            tn_text_put_escaped(out, name.text, name.length, TN_ESCAPED_PLAIN);
            joint = ";";
            has_frames = true;
        }
    }
    if (!has_frames) {
        tn_text_printf(out, "%s%s", joint, path->is_known ? "(no frames)" : "(not recorded)");
    }
    tn_text_printf(out, " %" PRIu64 "\n", path->bytes);
}

static bool holder_draw(struct flame_moment *moment, const struct tn_analysis *analysis,
                        const struct holder *holder)
{
    struct group_name name = {.length = 0};
    struct tn_flame_path path = {
        .device = moment->shows_device ? analysis->timeline->device : -1,
        .stack = tn_frame_view_stack(&analysis->query->view, holder->seen),
        .is_known = holder->seen != TN_STACK_NONE,
        .is_inverted = moment->how->is_inverted,
    };

    if (holder->bytes[1] <= holder->bytes[0]) {
        moment->shrank += holder->bytes[0] - holder->bytes[1];
        return true;
    }
    path.bytes = holder->bytes[1] - holder->bytes[0];
    if (analysis->keys.by != TARN_BY_STACK) {
        name_set(&name, &analysis->keys, holder->key);
        path.group = name.text;
        path.group_length = name.length;
    }
    if (moment->how->folded) {
        folded_put(&moment->out, analysis->query->model, &path);
        return true;
    }
    return tn_flame_add_path(&moment->flame, analysis->query->model, &path);
}

static bool holders_draw(struct flame_moment *moment, const struct tn_analysis *analysis,
                         const struct tn_time_point *from, const struct tn_time_point *at)
{
    struct holders holders = {.budget = {0}};

    tn_vec_init(&holders.items, sizeof(struct holder));
    tn_id_table_init(&holders.ids, &holders.budget);
    bool good = holders_collect(&holders, analysis, from, at);
    const struct holder *items = holders.items.items;

    for (size_t i = 0; good && i < holders.items.count; i++) {
        good = holder_draw(moment, analysis, &items[i]);
    }
    tn_id_table_fini(&holders.ids);
    tn_vec_fini(&holders.items);
    return good;
}

static enum tarn_status device_draw(struct flame_moment *moment, const struct tn_analysis *analysis,
                                    struct tarn_error *error)
{
    const struct tarn_instant *wanted = &moment->how->from;
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
    moment->last = at;
    moment->left_out += at.left_out;
    return holders_draw(moment, analysis, is_growth ? &from : NULL, &at) ? TARN_OK
                                                                         : TARN_ERR_HOST_MEMORY;
}

static enum tarn_status devices_draw(struct flame_moment *moment, struct tarn_error *error)
{
    const struct tn_model *model = moment->query.model;
    enum tarn_status status = TARN_OK;

    for (size_t i = 0; status == TARN_OK && i < model->trace_count; i++) {
        struct tn_analysis analysis;

        if (model->traces[i].count == 0 ||
            (moment->options->one_device && (size_t)moment->options->device != i)) {
            continue;
        }
        status = tn_analysis_init(&analysis, &moment->query, i, error);
        if (status == TARN_OK) {
            status = device_draw(moment, &analysis, error);
            tn_analysis_fini(&analysis);
        }
    }
    return status;
}

static void title_make(const struct flame_moment *moment, char *title, size_t size)
{
    const bool is_growth = moment->how->from.kind != TARN_AT_UNSPECIFIED;
    int used = snprintf(title, size, "GPU memory%s", is_growth ? ": what grew" : " allocated");

    if (!moment->shows_device && moment->last.entry != TN_NEVER) {
        used +=
            snprintf(title + used, size - (size_t)used, " at event %" PRIu64, moment->last.entry);
    }
    if (moment->shrank > 0) {
        used += snprintf(title + used, size - (size_t)used, ", without %s that shrank",
                         tn_text_size(&moment->out, (double)moment->shrank).text);
    }
    if (moment->left_out > 0) {
        (void)snprintf(title + used, size - (size_t)used, ", without %s not selected",
                       tn_text_size(&moment->out, (double)moment->left_out).text);
    }
}

/* How many devices are drawn. */
static size_t devices_count(const struct flame_moment *moment)
{
    const struct tn_model *model = moment->query.model;
    size_t count = 0;

    for (size_t i = 0; i < model->trace_count; i++) {
        count += model->traces[i].count > 0;
    }
    return moment->options->one_device ? 1 : count;
}

/* The tree is there, for folded lines as well. */
static enum tarn_status moment_write(struct flame_moment *moment, struct tarn_error *error)
{
    char title[TITLE_MAX];
    enum tarn_status status = devices_draw(moment, error);

    if (status == TARN_OK && !moment->how->folded) {
        if (tn_flame_layout(&moment->flame)) {
            title_make(moment, title, sizeof title);
            tn_flame_svg_put(&moment->out, &moment->flame, title, moment->how->root_below);
        } else {
            status = TARN_ERR_HOST_MEMORY;
        }
    }
    if (status) {
        return status == TARN_ERR_HOST_MEMORY ? tn_fail_memory(error) : status;
    }
    status = tn_text_finish(&moment->out);
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
    struct flame_moment moment = {.options = given ? given : &defaults,
                                  .how = given_how ? given_how : &how_defaults};
    enum tarn_status status =
        tn_report_check_traces(model, moment.options->one_device, moment.options->device, error);

    if (status == TARN_OK) {
        status = tn_query_init(&moment.query, model, moment.options, error);
    }
    if (status) {
        return status;
    }
    moment.shows_device = devices_count(&moment) > 1;
    tn_text_init(&moment.out, writer);
    moment.out.units = moment.query.units;
    if (tn_flame_init(&moment.flame, "all") == TARN_OK) {
        status = moment_write(&moment, error);
        tn_flame_fini(&moment.flame);
    } else {
        status = tn_fail_memory(error);
    }
    tn_query_fini(&moment.query);
    return status;
}
