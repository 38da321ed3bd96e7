/* SPDX-License-Identifier: MIT */
#include "report/oom_causes.h"

#include <string.h>

enum {
    REMEDIES_MAX = 6
};

static bool is_of(const struct tarn_oom_cause *cause, const struct tarn_oom_failure *oom)
{
    return cause->verdict == oom->verdict && cause->is_limited == oom->is_limited;
}

static struct tarn_oom_cause *cause_get(struct tarn_oom_cause *causes, size_t *count,
                                        const struct tarn_oom_result *result, size_t index)
{
    const struct tarn_oom_failure *oom = &result->ooms[index];

    for (size_t i = 0; i < *count; i++) {
        if (is_of(&causes[i], oom)) {
            return &causes[i];
        }
    }
    causes[*count] = (struct tarn_oom_cause){.verdict = oom->verdict,
                                             .is_limited = oom->is_limited,
                                             .first = index,
                                             .first_event = oom->event};
    return &causes[(*count)++];
}

/* ---- who made the requests of one cause ---- */

static struct tarn_oom_requester *requester_get(struct tarn_oom_requester *rows, size_t *count,
                                                const struct tarn_oom_failure *oom)
{
    for (size_t i = 0; i < *count; i++) {
        if (rows[i].stack.key == oom->stack.key) {
            return &rows[i];
        }
    }
    rows[*count] = (struct tarn_oom_requester){.smallest = UINT64_MAX, .stack = oom->stack};
    return &rows[(*count)++];
}

/* Most requests first, of equals the earlier one. */
static void requesters_sort(struct tarn_oom_requester *rows, size_t count)
{
    for (size_t i = 1; i < count; i++) { /* there are few */
        const struct tarn_oom_requester row = rows[i];
        size_t k = i;

        for (; k > 0 && rows[k - 1].requests < row.requests; k--) {
            rows[k] = rows[k - 1];
        }
        rows[k] = row;
    }
}

static bool requesters_make(struct tn_result *owner, const struct tarn_oom_result *result,
                            struct tarn_oom_cause *cause)
{
    struct tarn_oom_requester *rows =
        tn_arena_alloc_array(tn_result_arena(owner), result->oom_count, sizeof *rows);
    size_t count = 0;

    for (size_t i = 0; rows && i < result->oom_count; i++) {
        const struct tarn_oom_failure *oom = &result->ooms[i];

        if (is_of(cause, oom)) {
            struct tarn_oom_requester *row = requester_get(rows, &count, oom);

            row->requests++;
            row->smallest = oom->request < row->smallest ? oom->request : row->smallest;
            row->largest = oom->request > row->largest ? oom->request : row->largest;
        }
    }
    if (rows) {
        requesters_sort(rows, count);
    }
    cause->requesters = rows;
    cause->requester_count = count;
    return rows != NULL;
}

bool tn_oom_causes_make(struct tn_result *owner, struct tarn_oom_result *result)
{
    struct tarn_oom_cause *causes =
        tn_arena_alloc_array(tn_result_arena(owner), result->oom_count, sizeof *causes);
    size_t count = 0;

    for (size_t i = 0; causes && i < result->oom_count; i++) {
        struct tarn_oom_cause *cause = cause_get(causes, &count, result, i);

        cause->requests++;
        cause->last_event = result->ooms[i].event;
    }
    for (size_t i = 0; i < count; i++) {
        if (!requesters_make(owner, result, &causes[i])) {
            return false;
        }
    }
    result->causes = causes;
    result->cause_count = count;
    return causes != NULL;
}

/* ---- what would have helped ---- */

bool tn_oom_remedies_make(struct tn_result *owner, const struct tarn_report_options *options,
                          struct tarn_oom_result *result)
{
    if (!options->find_remedies) {
        return true;
    }
    struct tarn_oom_remedy *remedies =
        tn_arena_alloc_array(tn_result_arena(owner), REMEDIES_MAX, sizeof *remedies);

    if (!remedies) {
        return false;
    }
    result->memory = result->ooms[0].reserved + result->ooms[0].room;
    const size_t count = options->find_remedies(options->context, result->head.device,
                                                &result->memory, remedies, REMEDIES_MAX);

    result->has_remedies = count != SIZE_MAX;
    result->remedies = remedies;
    result->remedy_count = result->has_remedies ? count : 0;
    for (size_t i = 0; i < result->remedy_count; i++) {
        remedies[i].text = remedies[i].conf;
    }
    return true;
}
