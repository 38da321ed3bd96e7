/* SPDX-License-Identifier: MIT */
/*
 * Short-lived allocations: those freed within a few events. Where a group allocates blocks of one
 * size again and again, one block that is kept would do (`out=`, in-place operations, a cache), so
 * each row has its most frequent size.
 */
#include "base/order.h"
#include "report/label_apart.h"
#include "report/reports.h"

#include <stdlib.h>

enum {
    LIFETIME_MAX_DEFAULT = 64,
    SUM_COUNT = 3 /* of a row: allocations, allocated, lifetime_events */
};

/* One short-lived allocation. */
struct brief {
    uint64_t key;
    uint64_t size;
};

struct churn {
    struct tn_vec briefs;  /* struct brief */
    struct tn_row_set set; /* struct tarn_churn_row, most allocations first */
    struct tarn_churn_result *result;
};

static void row_count(struct tarn_churn_row *row, const struct tn_lifetime *lifetime)
{
    row->allocations++;
    row->allocated += lifetime->size;
    row->lifetime_events += lifetime->end - lifetime->start;
}

static bool brief_add(struct churn *churn, uint64_t key, const struct tn_lifetime *lifetime)
{
    struct tarn_churn_row *row = tn_row_get(&churn->set, key);
    const struct brief brief = {key, lifetime->size};

    if (!row || !tn_vec_append(&churn->briefs, &brief, 1)) {
        return false;
    }
    row_count(row, lifetime);
    row_count(&churn->result->total, lifetime);
    return true;
}

static int brief_compare(const void *left, const void *right)
{
    const struct brief *a = left;
    const struct brief *b = right;
    const int order = tn_order(a->key, b->key);

    return order ? order : tn_order(a->size, b->size);
}

/* Runs of one key and size, in order. */
static void sizes_find(struct churn *churn)
{
    const struct brief *briefs = churn->briefs.items;
    size_t from = 0;

    for (size_t i = 0; i < churn->briefs.count; i++) {
        const bool ends =
            i + 1 == churn->briefs.count || brief_compare(&briefs[i], &briefs[i + 1]) != 0;

        if (!ends) {
            continue;
        }
        struct tarn_churn_row *row = tn_row_known(&churn->set, briefs[i].key);
        const uint64_t count = i + 1 - from;

        if (count >= row->of_usual_size) {
            row->usual_size = briefs[i].size;
            row->of_usual_size = count;
        }
        from = i + 1;
    }
}

static int row_compare(const void *left, const void *right)
{
    const struct tarn_churn_row *a = left;
    const struct tarn_churn_row *b = right;
    int order = tn_order(b->allocations, a->allocations);

    order = order ? order : tn_order(b->allocated, a->allocated);
    return order ? order : tn_order(a->group.key, b->group.key);
}

static bool churn_fill(struct churn *churn, const struct tn_analysis *analysis)
{
    const struct tn_lifetime *lifetimes = tn_timeline_lifetimes(analysis->timeline);
    struct tarn_churn_result *result = churn->result;

    for (size_t i = 0; i < analysis->timeline->lifetimes.count; i++) {
        const struct tn_lifetime *lifetime = &lifetimes[i];
        uint64_t key;

        if (lifetime->start == TN_NEVER) {
            continue;
        }
        result->allocations++;
        result->allocated += lifetime->size;
        if (lifetime->end != TN_NEVER && lifetime->end - lifetime->start <= result->lifetime_max &&
            !(tn_group_key_find(&analysis->keys, lifetime, &key) &&
              brief_add(churn, key, lifetime))) {
            return false;
        }
    }
    if (churn->briefs.count > 0) {
        qsort(churn->briefs.items, churn->briefs.count, sizeof(struct brief), brief_compare);
        sizes_find(churn);
        tn_row_set_sort(&churn->set, row_compare);
    }
    return true;
}

enum tarn_status tn_churn_compute(const struct tn_report *report,
                                  const struct tn_analysis *analysis, void *result_out,
                                  struct tarn_error *error)
{
    const uint64_t wanted = report->options->lifetime_max;
    struct tarn_churn_result *result = result_out;
    struct churn churn = {.result = result};

    (void)error;
    result->lifetime_max = wanted > 0 ? wanted : LIFETIME_MAX_DEFAULT;
    tn_vec_init(&churn.briefs, sizeof(struct brief));
    tn_row_set_init(&churn.set, sizeof(struct tarn_churn_row),
                    offsetof(struct tarn_churn_row, allocations), SUM_COUNT);
    bool good = churn_fill(&churn, analysis);

    if (good) {
        result->row_count = tn_report_rows(report, churn.set.rows.count);
        result->other_count = churn.set.rows.count - result->row_count;
        tn_rows_sum(&churn.set, result->row_count, &result->others);
        result->rows = tn_rows_name(report->result, &churn.set, result->row_count, &analysis->keys);
        good = result->rows != NULL;
    }
    tn_row_set_fini(&churn.set);
    tn_vec_fini(&churn.briefs);
    return good ? TARN_OK : TARN_ERR_HOST_MEMORY;
}
