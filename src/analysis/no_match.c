/* SPDX-License-Identifier: MIT */
#include "analysis/no_match.h"

#include "base/errinfo.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum {
    TEXT_MAX = 1024,
    NAMED_MAX = 8, /* streams and pools */
    NAME_SHOWN = 120
};

struct text {
    char bytes[TEXT_MAX];
    size_t length;
};

static void TN_PRINTF(2, 3) text_add(struct text *text, const char *format, ...)
{
    va_list args;
    int length;

    va_start(args, format);
    length = vsnprintf(text->bytes + text->length, TEXT_MAX - text->length, format, args);
    va_end(args);
    if (length > 0) {
        text->length += (size_t)length;
        text->length = text->length < TEXT_MAX ? text->length : TEXT_MAX - 1;
    }
}

static const struct tn_lifetime *lifetime_at(const struct tn_analysis *analysis, size_t number)
{
    return tn_timeline_lifetimes(&analysis->whole) + number;
}

/* Whether the list, of at most NAMED_MAX, has the number now; false when it is full. */
static bool number_add(uint64_t *list, size_t *count, uint64_t number)
{
    for (size_t i = 0; i < *count; i++) {
        if (list[i] == number) {
            return true;
        }
    }
    if (*count == NAMED_MAX) {
        return false;
    }
    list[(*count)++] = number;
    return true;
}

static void streams_add(struct text *text, const struct tn_analysis *analysis)
{
    uint64_t streams[NAMED_MAX];
    size_t count = 0;
    bool all = true;

    for (size_t i = 0; i < analysis->whole.lifetimes.count && all; i++) {
        all = number_add(streams, &count, lifetime_at(analysis, i)->stream);
    }
    text_add(text, "; it has blocks on stream%s ", count == 1 ? "" : "s");
    for (size_t i = 0; i < count; i++) {
        text_add(text, "%s%" PRIu64, i > 0 ? ", " : "", streams[i]);
    }
    text_add(text, "%s", all ? "" : " and others");
}

static void pools_add(struct text *text, const struct tn_analysis *analysis)
{
    const struct tn_pool_id *pools = analysis->pool_streams.pools.items;
    const size_t count = analysis->pool_streams.pools.count;
    const char *joint = "; it has blocks in ";

    for (size_t i = 1; i < count && i <= NAMED_MAX; i++) {
        if (pools[i].id[0] == 0 && pools[i].id[1] == 0) {
            text_add(text, "%sthe default pool", joint);
        } else {
            text_add(text, "%sthe private pool %" PRIu64 ",%" PRIu64, joint, pools[i].id[0],
                     pools[i].id[1]);
        }
        joint = ", ";
    }
    text_add(text, "%s",
             count <= 1              ? "; in which pools its blocks are is unknown"
             : count - 1 > NAMED_MAX ? " and others"
                                     : "");
}

static void sizes_add(struct text *text, const struct tn_analysis *analysis)
{
    uint64_t least = UINT64_MAX;
    uint64_t most = 0;

    for (size_t i = 0; i < analysis->whole.lifetimes.count; i++) {
        const uint64_t size = lifetime_at(analysis, i)->size;

        least = size < least ? size : least;
        most = size > most ? size : most;
    }
    text_add(text, "; its blocks have %" PRIu64 " to %" PRIu64 " bytes", least, most);
}

/* The innermost frame of the largest block that has any. */
static void frame_add(struct text *text, const struct tn_analysis *analysis)
{
    const struct tn_model *model = analysis->whole.model;
    const struct tn_lifetime *largest = NULL;

    for (size_t i = 0; i < analysis->whole.lifetimes.count; i++) {
        const struct tn_lifetime *lifetime = lifetime_at(analysis, i);

        if (tn_model_stack(model, lifetime->stack).count > 0 &&
            (!largest || lifetime->size > largest->size)) {
            largest = lifetime;
        }
    }
    if (!largest) {
        text_add(text, "; its blocks have no stacks");
        return;
    }
    const struct tn_frame *frame =
        tn_model_frame(model, tn_model_stack(model, largest->stack).frames[0]);
    const char *file = tn_model_string(model, frame->filename).text;
    const char *name = tn_model_string(model, frame->name).text;
    const char *base = strrchr(file, '/') ? strrchr(file, '/') + 1 : file;

    text_add(text, "; its largest block is of %.*s:%" PRId64 ":%.*s; upper and lower case differ",
             tn_utf8_cut(base, NAME_SHOWN), base, frame->line, tn_utf8_cut(name, NAME_SHOWN), name);
}

bool tn_no_match(const struct tn_analysis *analysis)
{
    return tn_analysis_limits_blocks(analysis) && analysis->timeline->lifetimes.count == 0;
}

enum tarn_status tn_no_match_fail(const struct tn_analysis *analysis, struct tarn_error *error)
{
    const struct tarn_selection *selection = &analysis->query->selection;
    struct text text = {.length = 0};

    if (analysis->whole.lifetimes.count == 0) {
        return tn_fail(error, TARN_ERR_NOT_FOUND,
                       "nothing is selected: device %" PRId64 " has no blocks",
                       analysis->whole.device);
    }
    if (selection->match) {
        frame_add(&text, analysis);
    }
    if (selection->one_stream) {
        streams_add(&text, analysis);
    }
    if (selection->pools != TARN_POOLS_ALL) {
        pools_add(&text, analysis);
    }
    if (selection->size_min > 0 || selection->size_max > 0) {
        sizes_add(&text, analysis);
    }
    return tn_fail(error, TARN_ERR_NOT_FOUND,
                   "nothing is selected: none of the %zu blocks of device %" PRId64 " matches%s",
                   analysis->whole.lifetimes.count, analysis->whole.device, text.bytes);
}
