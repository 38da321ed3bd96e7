/* SPDX-License-Identifier: MIT */
/* What every private pool holds when most is reserved: of CUDA graphs and of MemPools, which a
 * trace does not tell apart. Pools are known by segments that are there at the end of the trace. */
#include "analysis/layout.h"
#include "base/order.h"
#include "report/reports.h"

static bool is_private(const uint64_t pool[2])
{
    return pool[0] != 0 || pool[1] != 0;
}

/* Without private segments no layout is needed, which takes time. */
static bool has_private(const struct tn_analysis *analysis)
{
    const struct tn_model *model = analysis->whole.model;
    bool found = false;

    for (size_t i = 0; i < model->segment_count && !found; i++) {
        found = model->segments[i].device == analysis->whole.device &&
                is_private(model->segments[i].pool.id);
    }
    return found;
}

static int pool_compare(const void *left, const void *right)
{
    const struct tarn_private_pool *a = left;
    const struct tarn_private_pool *b = right;
    const int order = tn_order(b->reserved, a->reserved);
    const int first = order ? order : tn_order(a->pool[0], b->pool[0]);

    return first ? first : tn_order(a->pool[1], b->pool[1]);
}

/* The pool, a new one if there is none yet. Rows of a pool follow each other. */
static struct tarn_private_pool *pool_get(struct tn_vec *pools, const uint64_t id[2])
{
    struct tarn_private_pool *rows = pools->items;

    if (pools->count > 0) {
        struct tarn_private_pool *last = &rows[pools->count - 1];

        if (last->pool[0] == id[0] && last->pool[1] == id[1]) {
            return last;
        }
    }
    struct tarn_private_pool *added = tn_vec_push(pools);

    if (added) {
        added->pool[0] = id[0];
        added->pool[1] = id[1];
    }
    return added;
}

static bool pools_sum(const struct tn_layout *layout, struct tn_vec *pools,
                      struct tarn_private_pools_result *result)
{
    const struct tn_layout_row *rows = layout->rows.items;

    for (size_t i = 0; i < layout->rows.count; i++) {
        if (!is_private(rows[i].pool.id)) {
            continue;
        }
        struct tarn_private_pool *pool = pool_get(pools, rows[i].pool.id);

        if (!pool) {
            return false;
        }
        pool->reserved += rows[i].reserved;
        pool->free += rows[i].free;
        result->reserved += rows[i].reserved;
    }
    tn_vec_sort(pools, pool_compare);
    return true;
}

static bool pools_make(const struct tn_report *report, const struct tn_analysis *analysis,
                       uint64_t event, struct tarn_private_pools_result *result)
{
    struct tn_layout layout;
    struct tn_vec pools;

    if (!tn_layout_collect_at(&layout, &analysis->whole, event)) {
        return false;
    }
    tn_vec_init(&pools, sizeof(struct tarn_private_pool));
    bool good = pools_sum(&layout, &pools, result);

    if (good && pools.count > 0) {
        result->pool_count = pools.count;
        result->pools =
            tn_result_copy(report->result, pools.items, pools.count, sizeof(*result->pools));
        good = result->pools != NULL;
    }
    tn_vec_fini(&pools);
    tn_layout_fini(&layout);
    return good;
}

enum tarn_status tn_private_pools_compute(const struct tn_report *report,
                                          const struct tn_analysis *analysis, void *result_out,
                                          struct tarn_error *error)
{
    struct tarn_private_pools_result *result = result_out;
    const struct tn_time_point *peak = &analysis->whole.reserved_peak;

    (void)error;
    result->at = tn_result_time_point(peak);
    return !has_private(analysis) || pools_make(report, analysis, peak->entry, result)
               ? TARN_OK
               : TARN_ERR_HOST_MEMORY;
}
