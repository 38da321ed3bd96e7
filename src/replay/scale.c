/* SPDX-License-Identifier: MIT */
/*
 * Estimates a larger run: compiles the program again and multiplies the sizes of selected requests.
 * A rule selects requests by the stack of their trace entry (stacks are shared, so each is checked
 * once per rule) or by a function of the caller.
 */
#include "alloc/config/size_class.h"
#include "base/assertion.h"
#include "base/errinfo.h"
#include "base/expression.h"
#include "base/host_mem.h"
#include "replay/replay.h"
#include "snapshot/snapshot.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#define FACTOR_MIN  0x1p-10
#define FACTOR_MAX  0x1p10
#define FACTOR_STEP 0x1p-7

enum {
    RULES_MAX = 16
};

/* Result of a rule for a stack. */
enum verdict {
    NOT_LOOKED_AT,
    APPLIES,
    APPLIES_NOT
};

struct rule {
    struct tarn_scale_rule given;
    struct tn_matcher matcher;
    uint8_t *verdicts; /* enum verdict, by stack */
};

struct scaling {
    const struct tn_model *model;
    const struct tn_trace *trace;
    struct rule rules[RULES_MAX];
    size_t rule_count;
    size_t stack_count;
    uint8_t *freed; /* by slot, in a backward pass: whether the trace frees the block in it */
    size_t slot_count;
    bool changes; /* a size has changed */
    struct tarn_scale_info info;
};

/* ---- stacks ---- */

/* As strcasestr, which is an extension. */
static bool has_word(const char *text, const char *word)
{
    const size_t length = strlen(word);

    while (*text && strncasecmp(text, word, length) != 0) {
        text++;
    }
    return *text != '\0';
}

static bool frame_is_optimizer(const char *name, const char *file)
{
    return strstr(file, "/optim/") || has_word(name, "optimizer");
}

static bool rule_matches_frame(const struct rule *rule, const char *name, const char *file)
{
    if (rule->given.what != TARN_SCALE_MATCH) {
        return frame_is_optimizer(name, file);
    }
    return tn_matcher_finds(&rule->matcher, name, strnlen(name, TN_EXPRESSION_TEXT_MAX)) ||
           tn_matcher_finds(&rule->matcher, file, strnlen(file, TN_EXPRESSION_TEXT_MAX));
}

static bool rule_finds_frame(const struct scaling *s, const struct rule *rule, uint32_t number)
{
    const struct tn_stack stack = tn_model_stack(s->model, number);

    for (uint32_t i = 0; i < stack.count; i++) {
        const struct tn_frame *frame = tn_model_frame(s->model, stack.frames[i]);

        if (rule_matches_frame(rule, tn_model_string(s->model, frame->name).text,
                               tn_model_string(s->model, frame->filename).text)) {
            return true;
        }
    }
    return false;
}

static bool stack_has_frame(const struct scaling *s, const struct rule *rule, uint32_t stack)
{
    uint8_t *verdict = &rule->verdicts[stack];

    if (*verdict == NOT_LOOKED_AT) {
        *verdict = (uint8_t)(rule_finds_frame(s, rule, stack) ? APPLIES : APPLIES_NOT);
    }
    return *verdict == APPLIES;
}

/* ---- requests ---- */

/* A failed request counts as one that would have been freed. */
static bool outlives_trace(const struct scaling *s, const struct tn_op *op)
{
    return op->kind == TN_OP_ALLOC && !s->freed[op->slot];
}

static bool rule_selects(const struct scaling *s, const struct rule *rule, const struct tn_op *op)
{
    const uint32_t stack = tn_trace_at(s->model, s->trace, op->entry)->stack;

    switch (rule->given.what) {
    case TARN_SCALE_ALL:
        return true;
    case TARN_SCALE_BATCH:
        return !outlives_trace(s, op) && !stack_has_frame(s, rule, stack);
    case TARN_SCALE_MATCH:
        return stack_has_frame(s, rule, stack);
    case TARN_SCALE_CHOSEN:
        return rule->given.chooses(rule->given.context, op->entry);
    }
    return false;
}

static uint64_t scaled_size(uint64_t size, double factor)
{
    const double product = ceil((double)size * factor);

    return product < (double)TN_MAX_REQUEST ? (uint64_t)product : TN_MAX_REQUEST;
}

static void scale_op(struct scaling *s, struct tn_op *op)
{
    s->info.requests++;
    s->info.bytes += op->size;
    for (size_t i = 0; i < s->rule_count; i++) {
        if (rule_selects(s, &s->rules[i], op)) {
            s->info.selected++;
            s->info.bytes_selected += op->size;
            const uint64_t size = scaled_size(op->size, s->rules[i].given.factor);

            s->changes = s->changes || size != op->size;
            op->size = size;
            return;
        }
    }
}

static void scale_program(struct scaling *s, struct tn_program *program)
{
    struct tn_op *ops = program->ops.items;
    const struct tn_start_block *blocks = program->start_blocks.items;

    for (size_t i = program->ops.count; i-- > 0;) {
        if (ops[i].kind == TN_OP_FREE || ops[i].kind == TN_OP_FREE_WAITS) {
            s->freed[ops[i].slot] = 1;
        }
        if (ops[i].kind == TN_OP_ALLOC || ops[i].kind == TN_OP_TRY) {
            scale_op(s, &ops[i]);
        }
        if (ops[i].kind == TN_OP_ALLOC) {
            s->freed[ops[i].slot] = 0;
        }
    }
    for (size_t i = 0; i < program->start_blocks.count; i++) {
        s->info.bytes_unscaled += blocks[i].requested;
    }
}

/* Segments will have other sizes, so their recorded addresses, and what these imply about the
 * device, no longer apply. */
static void drop_addresses(struct tn_program *program)
{
    program->segment_addresses.count = 0;
    program->map_addresses.count = 0;
    program->device_bound = TN_DEVICE_BOUND_NONE;
}

/* ---- rules ---- */

static enum tarn_status rule_init(struct scaling *s, const struct tarn_scale_rule *given,
                                  struct tarn_error *error)
{
    struct rule *rule = &s->rules[s->rule_count];
    char why[TN_EXPRESSION_REASON_MAX];

    if ((unsigned)given->what > TARN_SCALE_CHOSEN ||
        !(given->factor >= FACTOR_MIN && given->factor <= FACTOR_MAX) ||
        (given->what == TARN_SCALE_MATCH && !given->pattern) ||
        (given->what == TARN_SCALE_CHOSEN && !given->chooses)) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                       "a factor is a number from 1/1024 to 1024, for requests that are selected "
                       "by batch, all, a pattern or a function");
    }
    *rule = (struct rule){.given = *given, .verdicts = tn_host_alloc_zero(s->stack_count)};
    if (!rule->verdicts) {
        return tn_fail_memory(error);
    }
    const enum tarn_status st = given->what == TARN_SCALE_MATCH
                                    ? tn_expression_init(&rule->matcher, given->pattern, why)
                                    : TARN_OK;

    if (st) {
        tn_host_free(rule->verdicts, s->stack_count);
        return tn_fail(error, st, "'%s' is no extended regular expression: %s", given->pattern,
                       why);
    }
    s->rule_count++;
    return TARN_OK;
}

static void scaling_fini(struct scaling *s)
{
    for (size_t i = 0; i < s->rule_count; i++) {
        if (s->rules[i].given.what == TARN_SCALE_MATCH) {
            tn_matcher_fini(&s->rules[i].matcher);
        }
        tn_host_free(s->rules[i].verdicts, s->stack_count);
    }
    tn_host_free(s->freed, s->slot_count);
}

/* On failure there is nothing to release. */
static enum tarn_status scaling_init(struct scaling *s, const struct tarn_replay *replay,
                                     const struct tn_model *model,
                                     const struct tarn_scale_rule *rules, size_t count,
                                     struct tarn_error *error)
{
    enum tarn_status st = TARN_OK;

    *s = (struct scaling){.model = model, .stack_count = model->stacks.count};
    if (count == 0 || count > RULES_MAX) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT, "between 1 and %d rules are required",
                       (int)RULES_MAX);
    }
    s->trace = &model->traces[replay->program.device];
    s->slot_count = (size_t)replay->program.slot_count + 1; /* never 0 */
    s->freed = tn_host_alloc_zero(s->slot_count);
    if (!s->freed) {
        return tn_fail_memory(error);
    }
    for (size_t i = 0; i < count && st == TARN_OK; i++) {
        st = rule_init(s, &rules[i], error);
    }
    if (st) {
        scaling_fini(s);
    }
    return st;
}

/* ---- the calls ---- */

static void note_estimate(const struct scaling *s, struct tn_program *program)
{
    tn_program_note(program,
                    "an estimate: %llu of %llu requests are scaled, the others and their order are "
                    "as recorded; a larger run may use other algorithms and workspaces",
                    (unsigned long long)s->info.selected, (unsigned long long)s->info.requests);
    if (s->info.bytes_unscaled > 0) {
        tn_program_note(program, "%llu bytes were allocated before the trace and are not scaled",
                        (unsigned long long)s->info.bytes_unscaled);
    }
}

static void give_info(const struct scaling *s, struct tarn_scale_info *info_out)
{
    struct tarn_scale_info info = s->info;

    if (info_out) {
        info.struct_size = info_out->struct_size;
        memcpy(info_out, &info, info.struct_size < sizeof info ? info.struct_size : sizeof info);
    }
}

enum tarn_status tarn_replay_scale(const struct tarn_replay *replay,
                                   const struct tarn_snapshot *snapshot,
                                   const struct tarn_scale_rule *rules, size_t count,
                                   struct tarn_replay **scaled_out,
                                   struct tarn_scale_info *info_out, struct tarn_error *error)
{
    const struct tn_model *model = snapshot ? tn_snapshot_model(snapshot) : NULL;
    struct scaling scaling;
    struct tarn_replay *scaled = NULL;

    if (!model || !tn_replay_is_of(replay, model)) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                       "the replay was not created from this snapshot");
    }
    enum tarn_status st = scaling_init(&scaling, replay, model, rules, count, error);

    if (st) {
        return st;
    }
    st = tn_replay_repeat(replay, model, &scaled, error);
    if (st == TARN_OK) {
        scale_program(&scaling, &scaled->program);
        if (scaling.changes) {
            drop_addresses(&scaled->program);
        }
        note_estimate(&scaling, &scaled->program);
        give_info(&scaling, info_out);
        *scaled_out = scaled;
    }
    scaling_fini(&scaling);
    return st;
}

static enum tarn_status try_factor(const struct tarn_replay *replay,
                                   const struct tarn_snapshot *snapshot,
                                   struct tarn_scale_rule *rules, size_t count, double factor,
                                   const struct tarn_replay_options *options, bool *fits_out,
                                   struct tarn_error *error)
{
    struct tarn_replay_result result = {.struct_size = sizeof result};
    struct tarn_replay *scaled = NULL;

    for (size_t i = 0; i < count; i++) {
        rules[i].factor = factor;
    }
    enum tarn_status st = tarn_replay_scale(replay, snapshot, rules, count, &scaled, NULL, error);

    if (st == TARN_OK) {
        st = tarn_replay_run(scaled, options, &result, error);
        tarn_replay_destroy(scaled);
    }
    *fits_out = st == TARN_OK && result.first_oom < 0;
    return st;
}

enum tarn_status tarn_replay_scale_largest(const struct tarn_replay *replay,
                                           const struct tarn_snapshot *snapshot,
                                           const struct tarn_scale_rule *rules, size_t count,
                                           const struct tarn_replay_options *options,
                                           double *factor_out, struct tarn_error *error)
{
    struct tarn_scale_rule copy[RULES_MAX];
    double low = FACTOR_MIN;
    double high = FACTOR_MAX;
    bool fits = false;

    if (count > RULES_MAX) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT, "at most %d rules", (int)RULES_MAX);
    }
    memcpy(copy, rules, count * sizeof *rules);
    enum tarn_status st = try_factor(replay, snapshot, copy, count, high, options, &fits, error);

    if (st || fits) {
        *factor_out = high;
        return st;
    }
    st = try_factor(replay, snapshot, copy, count, low, options, &fits, error);
    if (st || !fits) {
        *factor_out = 0;
        return st;
    }
    high = 1;
    while (st == TARN_OK && fits) { /* near the answer; the largest factor does not fit */
        low = high > 1 ? high : low;
        high *= 2;
        st = high < FACTOR_MAX
                 ? try_factor(replay, snapshot, copy, count, high, options, &fits, error)
                 : TARN_OK;
        fits = fits && high < FACTOR_MAX;
    }
    while (st == TARN_OK && high - low > FACTOR_STEP) {
        const double middle = floor((low + high) / 2 / FACTOR_STEP) * FACTOR_STEP;

        tn_assert(middle > low); /* both are whole steps, but for the smallest factor */
        st = try_factor(replay, snapshot, copy, count, middle, options, &fits, error);
        if (fits) {
            low = middle;
        } else {
            high = middle;
        }
    }
    *factor_out = low;
    return st;
}
