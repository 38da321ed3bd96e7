/* SPDX-License-Identifier: MIT */
#include "page/answers.h"

#include "base/escaped.h"
#include "tarn/findings.h"
#include "tarn/replay.h"
#include "tarn/report.h"

#include <inttypes.h>
#include <string.h>

/* What is being written. */
struct writing {
    struct tn_text_out out;
    bool hides_texts;
};

static void text_put(struct writing *to, const char *text)
{
    tn_text_putc(&to->out, '"');
    tn_text_put_escaped(&to->out, text, strlen(text), TN_ESCAPED_JSON);
    tn_text_putc(&to->out, '"');
}

static void text_or_null_put(struct writing *to, const char *text)
{
    if (text) {
        text_put(to, text);
    } else {
        tn_text_puts(&to->out, "null");
    }
}

/* "," before each item but the first. */
static void comma_put(struct writing *to, size_t i)
{
    if (i > 0) {
        tn_text_putc(&to->out, ',');
    }
}

/* The number of an event; null: there is none. */
static void event_put(struct writing *to, uint64_t event)
{
    if (event == TARN_NONE) {
        tn_text_puts(&to->out, "null");
    } else {
        tn_text_printf(&to->out, "%" PRIu64, event);
    }
}

/* Settings, which are the recording's own text or not: those that a search combines may be. */
static void conf_put(struct writing *to, const char *conf, bool is_own)
{
    text_or_null_put(to, to->hides_texts && (is_own || strchr(conf, ',')) ? NULL : conf);
}

/* ---- settings ---- */

static void tune_row_put(struct writing *to, const struct tarn_tune_row *row, bool is_recorded)
{
    tn_text_puts(&to->out, "[");
    conf_put(to, row->conf, is_recorded);
    tn_text_printf(&to->out, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]",
                   row->peak_reserved, row->peak_allocated, row->peak_requested, row->device_calls,
                   row->ooms);
}

static void settings_put(struct writing *to, const struct tarn_view_answers *answers)
{
    tn_text_puts(&to->out, ",\"settings\":[");
    for (size_t i = 0; i < answers->settings_count; i++) {
        const struct tarn_view_settings *settings = &answers->settings[i];

        comma_put(to, i);
        tn_text_printf(&to->out, "{\"device\":%d,\"missing\":", settings->device);
        text_or_null_put(to, settings->missing);
        tn_text_puts(&to->out, ",\"rows\":[");
        for (size_t row = 0; row < settings->count; row++) {
            comma_put(to, row);
            tune_row_put(to, &settings->rows[row], row == 0);
        }
        tn_text_puts(&to->out, "]}");
    }
    tn_text_puts(&to->out, "]");
}

/* ---- failed requests ---- */

static const char *answer_word(enum tarn_answer answer)
{
    return answer == TARN_ANSWER_YES ? "true" : answer == TARN_ANSWER_NO ? "false" : "null";
}

static void failure_put(struct writing *to, const struct tarn_oom_failure *oom)
{
    tn_text_printf(&to->out,
                   "{\"event\":%" PRIu64 ",\"expandable\":%s,\"unrounded\":%s,\"change\":%" PRId64
                   ",\"is_step\":%s,\"since\":",
                   oom->event, answer_word(oom->expandable_helps),
                   answer_word(oom->unrounded_helps), oom->changes.total.change,
                   oom->is_since_step ? "true" : "false");
    event_put(to, oom->since);
    tn_text_puts(&to->out, "}");
}

/* Settings that let the run finish in the memory that there was, then what the recorded ones
 * need. */
static void remedies_put(struct writing *to, const struct tarn_oom_result *result)
{
    for (size_t i = 0; i < result->remedy_count; i++) {
        const struct tarn_oom_remedy *remedy = &result->remedies[i];

        comma_put(to, i);
        tn_text_puts(&to->out, "[");
        conf_put(to, remedy->conf, remedy->memory > result->memory);
        tn_text_printf(&to->out, ",%" PRIu64 ",%" PRIu64 "]", remedy->memory,
                       remedy->peak_reserved);
    }
}

static void ooms_put(struct writing *to, const struct tarn_view_answers *answers)
{
    tn_text_puts(&to->out, ",\"ooms\":[");
    for (size_t i = 0; i < answers->oom_count; i++) {
        const struct tarn_oom_result *result = &answers->ooms[i];

        comma_put(to, i);
        tn_text_printf(
            &to->out, "{\"device\":%d,\"known\":%s,\"memory\":%" PRIu64 ",\"remedies\":[",
            result->head.device, result->has_remedies ? "true" : "false", result->memory);
        remedies_put(to, result);
        tn_text_puts(&to->out, "],\"failures\":[");
        for (size_t oom = 0; oom < result->oom_count; oom++) {
            comma_put(to, oom);
            failure_put(to, &result->ooms[oom]);
        }
        tn_text_puts(&to->out, "]}");
    }
    tn_text_puts(&to->out, "]");
}

/* ---- over time ---- */

static void frag_state_put(struct writing *to, const struct tarn_frag_state *state)
{
    tn_text_puts(&to->out, "[");
    event_put(to, state->event);
    tn_text_printf(&to->out,
                   ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
                   ",%" PRIu64 "]",
                   state->reserved, state->requested, state->free, state->releasable, state->stuck,
                   state->elsewhere, state->largest_stuck);
}

static void frag_put(struct writing *to, const struct tarn_view_answers *answers)
{
    tn_text_puts(&to->out, ",\"frag\":[");
    for (size_t i = 0; i < answers->frag_count; i++) {
        const struct tarn_frag_result *result = &answers->frag[i];

        comma_put(to, i);
        tn_text_printf(&to->out, "{\"device\":%d,\"states\":[", result->head.device);
        for (size_t state = 0; state < result->state_count; state++) {
            comma_put(to, state);
            frag_state_put(to, &result->states[state]);
        }
        tn_text_puts(&to->out, "]}");
    }
    tn_text_puts(&to->out, "]");
}

static void step_put(struct writing *to, const struct tarn_step *step)
{
    tn_text_puts(&to->out, "[");
    event_put(to, step->number);
    tn_text_printf(&to->out,
                   ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRId64
                   ",%" PRIu64 ",%" PRIu64 ",%s]",
                   step->first_event, step->last_event, step->peak, step->peak_event, step->end,
                   step->growth, step->reserved_peak, step->device_calls,
                   step->is_outlier ? "true" : "false");
}

static void steps_put(struct writing *to, const struct tarn_view_answers *answers)
{
    tn_text_puts(&to->out, ",\"steps\":[");
    for (size_t i = 0; i < answers->step_count; i++) {
        const struct tarn_steps_result *result = &answers->steps[i];

        comma_put(to, i);
        tn_text_printf(&to->out, "{\"device\":%d,\"others\":%" PRIu64 ",\"rows\":[",
                       result->head.device, result->other_count);
        for (size_t step = 0; step < result->row_count; step++) {
            comma_put(to, step);
            step_put(to, &result->rows[step]);
        }
        tn_text_puts(&to->out, "]}");
    }
    tn_text_puts(&to->out, "]");
}

/* ---- findings ---- */

static void findings_put(struct writing *to, const struct tarn_findings *findings)
{
    tn_text_puts(&to->out, ",\"findings\":");
    if (!findings) {
        tn_text_puts(&to->out, "null");
        return;
    }
    tn_text_printf(&to->out, "{\"count\":%" PRIu64 ",\"first\":[", findings->count);
    for (size_t i = 0; i < findings->count && i < TARN_FINDINGS_KEPT; i++) {
        comma_put(to, i);
        text_put(to, findings->text[i]);
    }
    tn_text_puts(&to->out, "]}");
}

static void answers_write(struct writing *to, const struct tarn_view_answers *answers)
{
    static const struct tarn_view_answers none = {.missing = "none were asked for"};

    answers = answers ? answers : &none;
    tn_text_puts(&to->out, "{\"missing\":");
    text_or_null_put(to, answers->missing);
    settings_put(to, answers);
    ooms_put(to, answers);
    frag_put(to, answers);
    steps_put(to, answers);
    findings_put(to, answers->findings);
    tn_text_puts(&to->out, "}");
}

bool tn_answers_put(const struct tarn_view_answers *answers, enum tarn_view_redact redact,
                    const struct tn_section_out *out)
{
    struct writing to = {.hides_texts = redact == TARN_VIEW_REDACT_ALL};
    struct tn_column column;

    tn_column_init(&column);
    const struct tarn_writer writer = tn_column_writer(&column);

    tn_text_init(&to.out, &writer);
    answers_write(&to, answers);
    const bool good = tn_text_finish(&to.out) == TARN_OK && tn_section_put(out, "answers", &column);

    tn_column_fini(&column);
    return good;
}
