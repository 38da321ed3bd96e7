/* SPDX-License-Identifier: MIT */
/* The category of what each entry of a trace asks for, as reports by category have it. */
#include "analysis/analysis.h"
#include "base/errinfo.h"
#include "base/host_mem.h"
#include "snapshot/snapshot.h"

#include <string.h>

struct tarn_categories {
    struct tn_query query;
    uint32_t *of_entry;
    size_t entry_count;
};

static void fill(struct tarn_categories *categories, const struct tn_analysis *analysis)
{
    const struct tn_timeline *timeline = analysis->timeline;
    const struct tn_lifetime *lifetimes = tn_timeline_lifetimes(timeline);
    const uint64_t *ooms = timeline->ooms.items;

    for (size_t i = 0; i < timeline->lifetimes.count; i++) {
        if (lifetimes[i].start != TN_NEVER) {
            categories->of_entry[lifetimes[i].start] = lifetimes[i].category;
        }
    }
    for (size_t i = 0; i < timeline->ooms.count; i++) {
        const struct tn_lifetime none = {
            .start = ooms[i],
            .end = ooms[i] + TN_TEMPORARY_ENTRIES + 1, /* neither hint applies */
            .stack = tn_trace_at(timeline->model, timeline->trace, ooms[i])->stack,
        };

        categories->of_entry[ooms[i]] =
            tn_category_of(&analysis->query->categories, &none, 0, false);
    }
}

static enum tarn_status find_all(struct tarn_categories *categories, size_t device,
                                 struct tarn_error *error)
{
    struct tn_analysis analysis;
    const enum tarn_status status = tn_analysis_init(&analysis, &categories->query, device, error);

    if (status == TARN_OK) {
        fill(categories, &analysis);
        tn_analysis_fini(&analysis);
    }
    return status;
}

enum tarn_status tarn_categories_create(const struct tarn_snapshot *snapshot, int device,
                                        const struct tarn_rules *rules,
                                        struct tarn_categories **categories_out,
                                        struct tarn_error *error)
{
    const struct tarn_report_options options = {
        .struct_size = sizeof options, .by = TARN_BY_CATEGORY, .rules = rules};
    const struct tn_model *model = tn_snapshot_model(snapshot);

    if (device < 0 || (size_t)device >= model->trace_count || model->traces[device].count == 0) {
        return tn_fail(error, TARN_ERR_NOT_FOUND, "the snapshot has no trace of device %d", device);
    }
    struct tarn_categories *made = tn_host_alloc_zero(sizeof *made);

    if (!made) {
        return tn_fail_memory(error);
    }
    enum tarn_status status = tn_query_init(&made->query, model, &options, error);

    if (status) {
        tn_host_free(made, sizeof *made);
        return status;
    }
    made->entry_count = (size_t)model->traces[device].count;
    made->of_entry = tn_host_alloc_zero(made->entry_count * sizeof *made->of_entry);
    status = made->of_entry ? find_all(made, (size_t)device, error) : tn_fail_memory(error);
    if (status) {
        tarn_categories_destroy(made);
        return status;
    }
    *categories_out = made;
    return TARN_OK;
}

void tarn_categories_destroy(struct tarn_categories *categories)
{
    if (categories) {
        tn_query_fini(&categories->query);
        tn_host_free(categories->of_entry, categories->entry_count * sizeof *categories->of_entry);
        tn_host_free(categories, sizeof *categories);
    }
}

const char *tarn_categories_get(const struct tarn_categories *categories, uint64_t entry)
{
    const char *hint;

    return entry < categories->entry_count
               ? tn_category_name(&categories->query.categories, categories->of_entry[entry], &hint)
               : NULL;
}

bool tarn_categories_have(const struct tarn_categories *categories, const char *name)
{
    const uint32_t count = tn_category_count(&categories->query.categories);
    bool found = false;

    for (uint32_t i = 0; i < count && !found; i++) {
        const char *hint;

        found = strcmp(tn_category_name(&categories->query.categories, i, &hint), name) == 0;
    }
    return found;
}
