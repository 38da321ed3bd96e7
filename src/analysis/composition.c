/* SPDX-License-Identifier: MIT */
#include "analysis/composition.h"

#include "base/size_text.h"

bool tn_composition_init(struct tn_composition *composition, const struct tn_analysis *analysis,
                         const struct tn_time_point *moment)
{
    composition->moment = *moment;
    return tn_groups_collect(&composition->groups, analysis, moment->entry);
}

void tn_composition_fini(struct tn_composition *composition)
{
    tn_groups_fini(&composition->groups);
}

static void line_put(struct tn_text_out *out, uint64_t bytes, const char *what)
{
    tn_text_put_size(out, (double)bytes);
    tn_text_printf(out, "          %s\n", what);
}

/* Why reserved is more than in use. Of one stream or pool nobody says what else is in its segments
 * when blocks are picked by something else as well, so it is said where it is certain only. */
static void gap_put(struct tn_text_out *out, const struct tn_analysis *analysis,
                    const struct tn_time_point *moment)
{
    const bool is_limited = analysis->timeline->reserved.count > 0;
    const uint64_t used = moment->requested + (is_limited ? 0 : moment->left_out);

    if (tn_analysis_is_part(analysis)) {
        line_put(out, moment->left_out, "in use as well, left out by the selection");
    }
    if (!is_limited || !tn_analysis_picks_blocks(analysis)) {
        line_put(out, moment->reserved > used ? moment->reserved - used : 0,
                 "reserved and not in use: cached, between blocks, or lost to rounding");
    }
}

bool tn_composition_put(struct tn_text_out *out, const struct tn_analysis *analysis,
                        const struct tn_composition *composition, const char *what, uint64_t limit)
{
    tn_time_point_put(out, analysis, what, &composition->moment);
    if (!analysis->query->tree) {
        tn_groups_put(out, &analysis->keys, &composition->groups, limit);
    } else if (!tn_groups_put_tree(out, analysis, &composition->groups, limit)) {
        return false;
    }
    gap_put(out, analysis, &composition->moment);
    if (composition->groups.before > 0) {
        line_put(out, composition->groups.before,
                 analysis->timeline->first > 0 ? "of the total was there before that part"
                                               : "of the total was there before the first entry");
    }
    return true;
}

bool tn_composition_put_json(struct tn_json_text *json, const struct tn_analysis *analysis,
                             const struct tn_composition *composition, const char *key,
                             uint64_t limit)
{
    tn_json_open_object(json, key);
    tn_time_point_put_json(json, analysis, &composition->moment);
    tn_groups_put_json(json, &analysis->keys, &composition->groups, limit);
    const bool good = !analysis->query->tree ||
                      tn_groups_put_tree_json(json, analysis, &composition->groups, limit);

    tn_json_close(json);
    return good;
}
