/* SPDX-License-Identifier: MIT */
#include "render/oom_causes_table.h"

#include "base/assertion.h"
#include "base/escaped.h"
#include "base/plural.h"
#include "render/label_cut.h"

#include <inttypes.h>
#include <string.h>

enum {
    BEFORE_REQUESTER = 10 + 24 + 5, /* characters of its line: requests, sizes, ", by " */
    REQUESTERS_SHOWN = 10
};

const char *const tn_oom_verdict_words[] = {
    [TARN_OOM_FRAGMENTED] = "fragmented",
    [TARN_OOM_ELSEWHERE] = "wrong pool or stream",
    [TARN_OOM_FULL] = "really full",
    [TARN_OOM_OUTSIDE] = "outside the allocator",
    [TARN_OOM_ROUNDED] = "rounded by settings",
};

#define AT(member) .at = offsetof(struct tarn_oom_cause, member)

static const struct tn_row_column cause_columns[] = {
    {"verdict", NULL, TN_ROW_CHOICE, 0, AT(verdict), .words = tn_oom_verdict_words},
    {"refused_by_a_limit_of_the_allocator", NULL, TN_ROW_BOOL, 0, AT(is_limited)},
    {"requests", NULL, TN_ROW_COUNT, 0, AT(requests)},
    {"first_event", NULL, TN_ROW_EVENT, 0, AT(first_event)},
    {"last_event", NULL, TN_ROW_EVENT, 0, AT(last_event)},
    {0}};

const struct tn_row_table tn_oom_causes_table = {.columns = cause_columns,
                                                 .row_size = sizeof(struct tarn_oom_cause),
                                                 .context = tn_device_context};

#undef AT
#define AT(member) .at = offsetof(struct tarn_oom_remedy, member)

static const struct tn_row_column remedy_columns[] = {
    {"conf", NULL, TN_ROW_TEXT, 0, AT(text)},
    {"memory_bytes", NULL, TN_ROW_SIZE, 0, AT(memory)},
    {"peak_reserved_bytes", NULL, TN_ROW_SIZE, 0, AT(peak_reserved)},
    {0}};

const struct tn_row_table tn_oom_remedies_table = {.columns = remedy_columns,
                                                   .row_size = sizeof(struct tarn_oom_remedy),
                                                   .context = tn_device_context};

#undef AT

/* "16.00 MiB" or "2.00 MiB to 16.00 MiB" */
static void sizes_put(struct tn_text_out *out, uint64_t smallest, uint64_t largest)
{
    tn_text_printf(out, "%s", tn_text_size(out, (double)smallest).text);
    if (smallest < largest) {
        tn_text_printf(out, " to %s", tn_text_size(out, (double)largest).text);
    }
}

void tn_oom_cause_put(const struct tn_document *document, const struct tarn_oom_cause *cause)
{
    struct tn_text_out *out = document->text;
    struct tn_label_fit fit;

    if (cause->requests < 2) {
        return;
    }
    tn_text_printf(out,
                   "\n  %" PRIu64 " requests failed for this reason, from event %" PRIu64
                   " to %" PRIu64 "; \"--at oom:N\" shows each\n",
                   cause->requests, cause->first_event, cause->last_event);
    tn_assert(cause->requester_count > 0);
    tn_group_labels_fit(
        &fit, &cause->requesters[0].stack, cause->requester_count, sizeof *cause->requesters,
        document->columns > BEFORE_REQUESTER ? document->columns - BEFORE_REQUESTER : 0);
    for (size_t i = 0; i < cause->requester_count && i < REQUESTERS_SHOWN; i++) {
        const struct tarn_oom_requester *row = &cause->requesters[i];

        tn_text_printf(out, "  %6" PRIu64 "  ", row->requests);
        sizes_put(out, row->smallest, row->largest);
        tn_text_printf(out, ", by ");
        tn_text_puts(out, fit.count > 0 && fit.texts[i] ? fit.texts[i] : row->stack.text);
        tn_text_putc(out, '\n');
    }
    tn_label_fit_fini(&fit);
    if (cause->requester_count > REQUESTERS_SHOWN) {
        tn_text_printf(out, "          and %zu other %s\n",
                       cause->requester_count - REQUESTERS_SHOWN,
                       tn_plural(cause->requester_count - REQUESTERS_SHOWN, "stacks").text);
    }
}

void tn_oom_causes_put(struct tn_document *document, const struct tarn_oom_result *result)
{
    const struct tn_rows rows = {.rows = result->causes, .count = result->cause_count};

    tn_table_put(document, &tn_oom_causes_table, "causes", &rows);
}

static void remedy_put(struct tn_text_out *out, const struct tarn_oom_result *result,
                       const struct tarn_oom_remedy *remedy)
{
    const char *conf = remedy->conf[0] ? remedy->conf : "the default settings";

    if (remedy->memory > result->memory) {
        tn_text_printf(out, "  %s", tn_text_size(out, (double)remedy->memory).text);
        tn_text_printf(out, " of memory instead of %s, with the recorded settings\n",
                       tn_text_size(out, (double)result->memory).text);
        return;
    }
    tn_text_puts(out, "  ");
    tn_text_put_escaped(out, conf, strlen(conf), TN_ESCAPED_PLAIN);
    tn_text_printf(out, ", in the same memory: at most %s reserved\n",
                   tn_text_size(out, (double)remedy->peak_reserved).text);
}

static bool has_settings(const struct tarn_oom_result *result)
{
    return result->remedy_count > 0 && result->remedies[0].memory <= result->memory;
}

static void remedies_text(struct tn_text_out *out, const struct tarn_oom_result *result)
{
    if (!result->has_remedies) {
        return;
    }
    tn_text_puts(out, "\nwhat would have let the run finish\n");
    if (!has_settings(result)) {
        tn_text_puts(out, "  no settings: it fails in the same memory under all those that \"tarn "
                          "tune\" tries\n");
    }
    for (size_t i = 0; i < result->remedy_count; i++) {
        remedy_put(out, result, &result->remedies[i]);
    }
}

void tn_oom_remedies_put(struct tn_document *document, const struct tarn_oom_result *result)
{
    const struct tn_rows rows = {.rows = result->remedies, .count = result->remedy_count};

    if (document->text) {
        remedies_text(document->text, result);
    } else {
        tn_table_put(document, &tn_oom_remedies_table, "remedies", &rows);
    }
}
