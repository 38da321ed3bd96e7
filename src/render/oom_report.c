/* SPDX-License-Identifier: MIT */
/* `tarn oom`: for each failed request the verdict in sentences, pools, holders and changes. */
#include "base/host_mem.h"
#include "base/plural.h"
#include "render/changes_table.h"
#include "render/holders_table.h"
#include "render/label_cut.h"
#include "render/oom_causes_table.h"
#include "render/pools_table.h"

#include <inttypes.h>

#define REQUESTED_BY "  requested by "

/* ---- text ---- */

static const char *size_of(struct tn_size_text *text, const struct tn_text_out *out, uint64_t bytes)
{
    *text = tn_text_size(out, (double)bytes);
    return text->text;
}

static void verdict_put(struct tn_text_out *out, const struct tarn_oom_failure *oom)
{
    struct tn_size_text a;
    struct tn_size_text b;
    struct tn_size_text c;

    tn_text_puts(out, "\n  verdict: ");
    tn_text_style(out, TN_STYLE_RED);
    tn_text_puts(out, tn_oom_verdict_words[oom->verdict]);
    tn_text_style(out, TN_STYLE_PLAIN);
    tn_text_puts(out, "\n  ");
    switch (oom->verdict) {
    case TARN_OOM_FRAGMENTED:
        if (oom->own.free < oom->request) {
            tn_text_printf(out,
                           "%s is free and %s more could be reserved, together enough for %s, but "
                           "not in one piece",
                           size_of(&a, out, oom->all_pools.free), size_of(&b, out, oom->room),
                           size_of(&c, out, oom->request));
            break;
        }
        tn_text_printf(out,
                       "%s is free in the request's own pool and stream, enough for %s, but the "
                       "largest of %" PRIu64 " pieces has %s",
                       size_of(&a, out, oom->own.free), size_of(&b, out, oom->request),
                       oom->own.free_pieces, size_of(&c, out, oom->own.largest_free));
        break;
    case TARN_OOM_ELSEWHERE:
        tn_text_printf(out,
                       "%s is free, enough for %s, but only %s of it in the request's own pool "
                       "and stream",
                       size_of(&a, out, oom->all_pools.free), size_of(&b, out, oom->request),
                       size_of(&c, out, oom->own.free));
        break;
    case TARN_OOM_ROUNDED:
        tn_text_printf(
            out,
            "only %s of %s reserved is free, but roundup_power2_divisions adds %s to the "
            "allocated blocks",
            size_of(&a, out, oom->all_pools.free), size_of(&b, out, oom->reserved),
            size_of(&c, out, oom->all_pools.by_settings));
        break;
    case TARN_OOM_FULL:
    case TARN_OOM_OUTSIDE:
        tn_text_printf(out, "only %s of %s reserved is free: too little for %s even in one piece",
                       size_of(&a, out, oom->all_pools.free), size_of(&b, out, oom->reserved),
                       size_of(&c, out, oom->request));
        break;
    }
    tn_text_putc(out, '\n');
}

/* What the compact policy promises. */
static void promise_put(struct tn_text_out *out, const struct tarn_oom_failure *oom)
{
    struct tn_size_text a;
    struct tn_size_text b;

    if (oom->is_compact) {
        tn_text_printf(out,
                       "  under policy:compact a request fails only if live blocks and the pages "
                       "that they partly use\n"
                       "  leave too little: %s is free in such pages, %s in whole ones\n",
                       size_of(&a, out, oom->all_pools.stuck),
                       size_of(&b, out, oom->all_pools.releasable));
    }
}

/* Who refused. */
static void refusal_put(struct tn_text_out *out, const struct tarn_oom_failure *oom)
{
    struct tn_size_text a;
    struct tn_size_text b;

    if (oom->is_limited) {
        tn_text_printf(out,
                       "  the device had %s free: a limit of the allocator refused, such as "
                       "set_per_process_memory_fraction\n",
                       size_of(&a, out, oom->device_free));
    } else {
        tn_text_printf(out, "  the device had %s free, and %s was requested from it\n",
                       size_of(&a, out, oom->device_free), size_of(&b, out, oom->segment));
    }
    if (oom->outside > 0) {
        tn_text_printf(out, "  %s of the device is used outside this allocator\n",
                       size_of(&a, out, oom->outside));
    }
}

/* What a replay with another setting says. */
static void answer_put(struct tn_text_out *out, enum tarn_answer answer, const char *setting)
{
    if (answer != TARN_ANSWER_UNKNOWN) {
        tn_text_printf(
            out, "  %s would %s\n", setting,
            answer == TARN_ANSWER_YES
                ? "have saved it: replayed with it, the run gets past this request in the "
                  "same memory"
                : "not have saved it: replayed with it, the run fails in the same memory");
    }
}

/* What would have helped. */
static void remedies_put(struct tn_text_out *out, const struct tarn_oom_failure *oom)
{
    struct tn_size_text size;

    if (oom->all_pools.waiting > 0) {
        tn_text_printf(out,
                       "  %s is freed but waits for other streams; it can be reused when they "
                       "are done\n",
                       size_of(&size, out, oom->all_pools.waiting));
    }
    tn_text_printf(out, "  emptying the cache would %s: %s is in entirely free segments\n",
                   oom->emptying_helps ? "have made room" : "not have helped",
                   size_of(&size, out, oom->all_pools.free_segments));
    answer_put(out, oom->expandable_helps, "expandable_segments:True");
    answer_put(out, oom->unrounded_helps, "no roundup_power2_divisions");
}

static void head_put(struct tn_text_out *out, const struct tarn_report_head *head,
                     const struct tarn_oom_failure *oom, const char *requester)
{
    struct tn_size_text sizes[3];

    tn_text_printf(out,
                   "device %d, event %" PRIu64 ": no memory for %s (%" PRIu64
                   " bytes, rounded) on stream %" PRIu64 "\n" REQUESTED_BY "%s\n",
                   head->device, oom->event, size_of(&sizes[0], out, oom->request), oom->request,
                   oom->stream, requester);
    tn_text_printf(out, "  %s reserved, %s of it requested\n",
                   size_of(&sizes[1], out, oom->reserved), size_of(&sizes[2], out, oom->requested));
    verdict_put(out, oom);
    promise_put(out, oom);
    refusal_put(out, oom);
    remedies_put(out, oom);
}

/* ---- tables ---- */

#define AT(member) .at = offsetof(struct tarn_oom_failure, member)

/* Members of a failure, and what tells the rows of its tables apart. */
static const struct tn_row_column oom_columns[] = {
    {"event", NULL, TN_ROW_EVENT, 0, AT(event)},
    {"rounded_request_bytes", NULL, TN_ROW_SIZE, 0, AT(request)},
    {"segment_bytes", NULL, TN_ROW_SIZE, 0, AT(segment)},
    {"stream", NULL, TN_ROW_COUNT, 0, AT(stream)},
    {"device_free_bytes", NULL, TN_ROW_SIZE, 0, AT(device_free)},
    {"refused_by_a_limit_of_the_allocator", NULL, TN_ROW_BOOL, 0, AT(is_limited)},
    {"reserved_bytes", NULL, TN_ROW_SIZE, 0, AT(reserved)},
    {"requested_bytes", NULL, TN_ROW_SIZE, 0, AT(requested)},
    {"verdict", NULL, TN_ROW_CHOICE, 0, AT(verdict), .words = tn_oom_verdict_words},
    {"emptying_the_cache_helps", NULL, TN_ROW_BOOL, 0, AT(emptying_helps)},
    {"expandable_segments_help", NULL, TN_ROW_ANSWER, 0, AT(expandable_helps)},
    {"no_rounding_by_settings_helps", NULL, TN_ROW_ANSWER, 0, AT(unrounded_helps)},
    {"frames", NULL, TN_ROW_FRAMES, 0, AT(stack)},
    {0}};

static const struct tn_row_table oom_table = {.columns = oom_columns,
                                              .row_size = sizeof(struct tarn_oom_failure),
                                              .context = tn_device_context};

#undef AT

/* What the tables of a failure are of. */
struct failure {
    int device;
    uint64_t event;
};

static const struct tn_row_column failure_context[] = {
    {"device", NULL, TN_ROW_INT, 0, .at = offsetof(struct failure, device)},
    {"event", NULL, TN_ROW_EVENT, 0, .at = offsetof(struct failure, event)},
    {0}};

static const struct tn_row_table pool_table = {.columns = tn_pool_columns,
                                               .row_size = sizeof(struct tarn_pool_row),
                                               .context = failure_context};
static const struct tn_row_table holders_table = {.columns = tn_holders_columns,
                                                  .row_size = sizeof(struct tarn_holder),
                                                  .context = failure_context,
                                                  .has_others = true};
static const struct tn_row_table changes_table = {.columns = tn_changes_columns,
                                                  .row_size = sizeof(struct tarn_change),
                                                  .context = failure_context,
                                                  .has_others = true};

static void pools_put(struct tn_document *document, const struct tarn_oom_failure *oom)
{
    const struct tn_rows rows = {.rows = oom->pools,
                                 .count = oom->pool_count,
                                 .total = document->json ? NULL : &oom->all_pools};

    if (document->text) {
        tn_text_putc(document->text, '\n');
    }
    tn_table_put(document, &pool_table, "ooms.pools", &rows);
    if (document->json) {
        tn_object_put(document->json, "all_pools", &pool_table, &oom->all_pools, TN_IN_TOTAL);
    }
}

static void holders_put(struct tn_document *document, const struct tarn_report_head *head,
                        const struct tarn_oom_failure *oom)
{
    if (document->text) {
        tn_text_puts(document->text, "\n  who holds the memory\n");
    } else if (document->json) {
        tn_json_open_object(document->json, "holders");
    }
    tn_holders_put(document, &holders_table, "ooms.holders.groups", &oom->holders);
    if (document->json) {
        tn_json_close(document->json);
    } else if (document->text && head->is_part) {
        tn_text_put_size(document->text, (double)(oom->requested - oom->holders.total.bytes));
        tn_text_puts(document->text, "          requested by blocks that are not selected\n");
    }
}

static void changes_put(struct tn_document *document, const struct tarn_oom_failure *oom)
{
    if (document->text && oom->since == TARN_NONE) {
        return;
    }
    if (document->text) {
        tn_text_printf(document->text, "\n  what changed since event %" PRIu64 ", %s\n", oom->since,
                       oom->is_since_step ? "the end of the last step"
                                          : "in the last tenth of the trace before it");
    } else if (document->json) {
        tn_json_open_object(document->json, "changes_since");
        tn_json_number_or_null(document->json, "event", oom->since, TARN_NONE);
        tn_json_bool(document->json, "is_end_of_a_step", oom->is_since_step);
    }
    tn_changes_put(document, &changes_table, "ooms.changes_since.changes", &oom->changes);
    if (document->json) {
        tn_json_close(document->json);
    }
}

/* ---- devices ---- */

/* `requester` is for text. */
static void failure_put(struct tn_document *document, const struct tarn_report_head *head,
                        const struct tarn_oom_failure *oom, const char *requester)
{
    const struct failure failure = {head->device, oom->event};
    const struct tn_rows row = {.rows = oom, .count = 1};

    if (document->text) {
        head_put(document->text, head, oom, requester);
    } else if (document->json) {
        tn_json_open_object(document->json, NULL);
        tn_members_put(document->json, &oom_table, oom, TN_IN_ROWS);
    } else {
        tn_table_put(document, &oom_table, "ooms", &row);
    }
    document->context = &failure;
    pools_put(document, oom);
    holders_put(document, head, oom);
    changes_put(document, oom);
    document->context = head;
    if (document->json) {
        tn_json_close(document->json);
    }
}

/* Different stacks that made the first request of a cause, as far as a line of the terminal holds
 * them and they still differ. */
struct requesters {
    struct tarn_group *groups; /* room for one of each cause; NULL without host memory */
    size_t count;
    struct tn_label_fit fit;
};

static size_t requester_find(const struct requesters *requesters, uint64_t stack)
{
    size_t i = 0;

    while (i < requesters->count && requesters->groups[i].key != stack) {
        i++;
    }
    return i;
}

static const struct tarn_oom_failure *first_of(const struct tarn_oom_result *ooms, size_t cause)
{
    return &ooms->ooms[ooms->causes[cause].first];
}

static void requesters_init(struct requesters *requesters, const struct tn_document *document,
                            const struct tarn_oom_result *ooms)
{
    const size_t before = sizeof REQUESTED_BY - 1;
    const size_t room = document->columns > before ? document->columns - before : 0;

    *requesters = (struct requesters){
        .groups = tn_host_alloc((ooms->cause_count + 1) * sizeof(struct tarn_group))};
    for (size_t i = 0; requesters->groups && i < ooms->cause_count; i++) {
        const struct tarn_group *group = &first_of(ooms, i)->stack;

        if (requester_find(requesters, group->key) == requesters->count) {
            requesters->groups[requesters->count++] = *group;
        }
    }
    tn_group_labels_fit(&requesters->fit, requesters->groups, requesters->count,
                        sizeof(struct tarn_group), room);
}

static void requesters_fini(struct requesters *requesters, const struct tarn_oom_result *ooms)
{
    tn_label_fit_fini(&requesters->fit);
    tn_host_free(requesters->groups, (ooms->cause_count + 1) * sizeof(struct tarn_group));
}

static const char *requester_label(const struct requesters *requesters,
                                   const struct tarn_group *group)
{
    const size_t i = requester_find(requesters, group->key);

    return i < requesters->fit.count && requesters->fit.texts[i] ? requesters->fit.texts[i]
                                                                 : group->text;
}

/* The first failure of each cause, with the number of the others. */
static void causes_text(struct tn_document *document, const struct tarn_oom_result *ooms)
{
    struct requesters requesters;

    requesters_init(&requesters, document, ooms);
    for (size_t i = 0; i < ooms->cause_count; i++) {
        const struct tarn_oom_failure *first = first_of(ooms, i);

        if (i > 0) {
            tn_text_putc(document->text, '\n');
        }
        failure_put(document, &ooms->head, first, requester_label(&requesters, &first->stack));
        tn_oom_cause_put(document, &ooms->causes[i]);
    }
    requesters_fini(&requesters, ooms);
    if (ooms->later_ooms > 0) {
        tn_text_printf(document->text, "\n%" PRIu64 " later %s failed as well\n", ooms->later_ooms,
                       tn_plural(ooms->later_ooms, "requests").text);
    }
    tn_oom_remedies_put(document, ooms);
}

static void oom_put(struct tn_document *document, const struct tarn_report_options *options,
                    const void *result)
{
    const struct tarn_oom_result *ooms = result;

    if (document->json) {
        tn_json_open_array(document->json, "ooms");
    } else if (document->text) {
        tn_selection_put(document->text, options, &ooms->head);
        if (ooms->oom_count == 0) {
            tn_text_printf(document->text, "device %d: no request failed in %" PRIu64 " events\n",
                           ooms->head.device, ooms->head.last_event - ooms->head.first_event + 1);
        }
    }
    if (document->text) {
        causes_text(document, ooms);
        return;
    }
    for (size_t i = 0; i < ooms->oom_count; i++) {
        failure_put(document, &ooms->head, &ooms->ooms[i], NULL);
    }
    if (document->json) {
        tn_json_close(document->json);
        tn_json_number(document->json, "later_ooms", ooms->later_ooms);
    }
    tn_oom_causes_put(document, ooms);
    tn_oom_remedies_put(document, ooms);
}

static const struct tn_row_table *const tables[] = {&oom_table,
                                                    &pool_table,
                                                    &holders_table,
                                                    &changes_table,
                                                    &tn_oom_causes_table,
                                                    &tn_oom_remedies_table,
                                                    NULL};

enum tarn_status tarn_report_oom(const struct tarn_snapshot *snapshot,
                                 const struct tarn_report_options *options,
                                 const struct tarn_writer *writer, struct tarn_error *error)
{
    static const struct tn_device_report report = {.schema = "tarn.oom/1",
                                                   .compute = tn_oom_compute,
                                                   .result_size = sizeof(struct tarn_oom_result),
                                                   .tables = tables,
                                                   .put = oom_put,
                                                   .has_own_heading = true};

    return tn_devices_report(&report, snapshot, options, writer, error);
}
