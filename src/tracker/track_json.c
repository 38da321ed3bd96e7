/* SPDX-License-Identifier: MIT */
/* The tracker's state as JSON, with the spacing of Python's json.dumps. */
#include "tracker/track_json.h"

#include "base/escaped.h"

#include <inttypes.h>
#include <string.h>

static void put_key(struct tn_text_out *out, const char **between, const char *text)
{
    tn_text_printf(out, "%s\"", *between);
    tn_text_put_escaped(out, text, strlen(text), TN_ESCAPED_JSON);
    tn_text_puts(out, "\": ");
    *between = ", ";
}

static void put_number(struct tn_text_out *out, const char **between, const char *key,
                       int64_t number)
{
    put_key(out, between, key);
    tn_text_printf(out, "%" PRId64, number);
}

static void put_text(struct tn_text_out *out, const char **between, const char *key,
                     const char *text)
{
    put_key(out, between, key);
    tn_text_putc(out, '"');
    tn_text_put_escaped(out, text, strlen(text), TN_ESCAPED_JSON);
    tn_text_putc(out, '"');
}

static void put_categories(struct tn_text_out *out, const struct tarn_tracker *t,
                           const int64_t *bytes, const char **between)
{
    for (uint32_t c = 0; c < tn_name_list_count(&t->names[TARN_TRACK_CATEGORY]); c++) {
        put_number(out, between, tn_track_name(t, TARN_TRACK_CATEGORY, c), bytes[c]);
    }
}

static void put_row(struct tn_text_out *out, const struct tarn_tracker *t,
                    const struct tarn_track_row *row)
{
    const char *between = "";

    tn_text_putc(out, '{');
    put_categories(out, t, row->bytes, &between);
    put_number(out, &between, "Total", row->total);
    tn_text_putc(out, '}');
}

void tn_track_put_json(struct tn_text_out *out, const struct tarn_tracker *t,
                       const struct tn_breakdown *breakdown)
{
    const char *between = "";

    tn_text_putc(out, '{');
    for (size_t i = 0; i < breakdown->count; i++) {
        put_key(out, &between, tn_track_name(t, TARN_TRACK_DEVICE, breakdown->rows[i].device));
        put_row(out, t, &breakdown->rows[i]);
    }
    tn_text_putc(out, '}');
}

static void put_local_peaks(struct tn_text_out *out, const struct tarn_tracker *t,
                            const struct tn_module *module)
{
    const char *between = "";

    tn_text_putc(out, '{');
    for (size_t i = 0; i < module->peak_count; i++) {
        put_number(out, &between, tn_track_name(t, TARN_TRACK_DEVICE, module->peaks[i].device),
                   module->peaks[i].bytes);
    }
    tn_text_putc(out, '}');
}

static void put_calls(struct tn_text_out *out, const struct tarn_tracker *t,
                      const struct tn_module_state *state)
{
    tn_text_putc(out, '[');
    for (size_t i = 0; i < state->calls.count; i++) {
        tn_text_puts(out, i > 0 ? ", " : "");
        tn_track_put_json(out, t, (const struct tn_breakdown *)state->calls.items + i);
    }
    tn_text_putc(out, ']');
}

static void put_states(struct tn_text_out *out, const struct tarn_tracker *t,
                       const struct tn_module *module)
{
    const char *between = "";

    tn_text_putc(out, '{');
    for (size_t i = 0; i < module->states.count; i++) {
        const struct tn_module_state *state = tn_module_state_at(module, i);

        if (state->calls.count > 0) {
            put_key(out, &between, tn_track_name(t, TARN_TRACK_STATE, state->state));
            put_calls(out, t, state);
        }
    }
    tn_text_putc(out, '}');
}

static void put_module(struct tn_text_out *out, const struct tarn_tracker *t,
                       const struct tn_module *module)
{
    const char *between = "";

    tn_text_putc(out, '{');
    put_number(out, &between, "parameter_mem", module->parameter_bytes);
    put_number(out, &between, "buffer_mem", module->buffer_bytes);
    put_number(out, &between, "input_mem", module->input_bytes);
    put_key(out, &between, "output_mem");
    if (module->output_bytes < 0) {
        tn_text_puts(out, "null");
    } else {
        tn_text_printf(out, "%" PRId64, module->output_bytes);
    }
    put_key(out, &between, "local_peak");
    put_local_peaks(out, t, module);
    put_key(out, &between, "snapshots");
    put_states(out, t, module);
    tn_text_putc(out, '}');
}

/* Modules by name, as in a Python dictionary when several have the same name: in the position of
 * the first, with the contents of the last. */
static const struct tn_module *newest_of_name(const struct tarn_tracker *t, size_t at)
{
    const struct tn_module *first = tn_track_module_at(t, at);
    const struct tn_scope *scope = tn_track_scope(t, first->name);
    const struct tn_module *newest = first;

    if (scope->first == first && !first->next_of_name) {
        return first;
    }
    for (size_t i = 0; i < t->order.count; i++) {
        const struct tn_module *module = tn_track_module_at(t, i);

        if (module->name == first->name) {
            if (i < at) {
                return NULL; /* already written in that position */
            }
            newest = module;
        }
    }
    return newest;
}

static void put_modules(struct tn_text_out *out, const struct tarn_tracker *t)
{
    const char *between = "";

    tn_text_putc(out, '{');
    for (size_t i = 0; i < t->order.count; i++) {
        const struct tn_module *module = newest_of_name(t, i);

        if (module) {
            put_key(out, &between, tn_track_name(t, TARN_TRACK_MODULE, module->name));
            put_module(out, t, module);
        }
    }
    tn_text_putc(out, '}');
}

static void put_sums(struct tn_text_out *out, const struct tarn_tracker *t, const char **between,
                     const char *key, const int64_t *bytes)
{
    const char *inner = "";

    put_key(out, between, key);
    tn_text_putc(out, '{');
    put_categories(out, t, bytes, &inner);
    tn_text_putc(out, '}');
}

static void put_iteration(struct tn_text_out *out, const struct tarn_tracker *t,
                          const struct tn_iteration *iteration)
{
    const char *between = "";
    int64_t growth[TARN_TRACK_CATEGORIES_MAX];

    for (size_t c = 0; c < TARN_TRACK_CATEGORIES_MAX; c++) {
        growth[c] = iteration->end[c] - iteration->begin[c];
    }
    tn_text_putc(out, '{');
    put_number(out, &between, "number", (int64_t)iteration->number);
    put_number(out, &between, "begin", iteration->begin_total);
    put_number(out, &between, "peak", iteration->peak_total);
    put_number(out, &between, "end", iteration->end_total);
    put_sums(out, t, &between, "at_peak", iteration->peak);
    put_sums(out, t, &between, "growth", growth);
    tn_text_putc(out, '}');
}

static void put_iterations(struct tn_text_out *out, const struct tarn_tracker *t)
{
    tn_text_putc(out, '[');
    for (size_t i = 0; i < tn_iteration_list_count(&t->iterations); i++) {
        const struct tn_iteration iteration = tn_track_iteration(t, i);

        tn_text_puts(out, i > 0 ? ", " : "");
        put_iteration(out, t, &iteration);
    }
    tn_text_putc(out, ']');
}

/* A list, not a dictionary: the same module may have memory on several devices. */
static void put_owners(struct tn_text_out *out, const struct tarn_tracker *t)
{
    const char *next = "";

    tn_text_putc(out, '[');
    for (size_t i = 0; i < t->owners.owners.count; i++) {
        const struct tn_owner *owner = tn_owner_at(&t->owners, i);
        const int64_t *bytes = tn_owner_bytes(&t->owners, owner, TARN_TRACK_ONE_MOMENT);
        const char *between = "";
        int64_t total = 0;

        for (size_t c = 0; c < TARN_TRACK_CATEGORIES_MAX; c++) {
            total += bytes[c];
        }
        if (total == 0) {
            continue;
        }
        tn_text_printf(out, "%s{", next);
        next = ", ";
        put_text(out, &between, "module", tn_track_name(t, TARN_TRACK_MODULE, owner->module));
        put_text(out, &between, "device", tn_track_name(t, TARN_TRACK_DEVICE, owner->device));
        put_categories(out, t, bytes, &between);
        put_number(out, &between, "Total", total);
        tn_text_putc(out, '}');
    }
    tn_text_putc(out, ']');
}

static enum tarn_status print_json(struct tn_text_out *out, const struct tarn_tracker *t,
                                   const void *how)
{
    const bool *everything = how;

    tn_text_puts(out, "{\"peak\": ");
    tn_track_put_json(out, t, &t->peaks);
    tn_text_puts(out, ", \"current\": ");
    tn_track_put_json(out, t, tn_track_breakdown(t, TARN_TRACK_AT_END));
    tn_text_puts(out, ", \"modules\": ");
    put_modules(out, t);
    if (*everything) {
        tn_text_puts(out, ", \"moment\": ");
        tn_track_put_json(out, t, &t->moment);
        tn_text_puts(out, ", \"iterations\": ");
        put_iterations(out, t);
        tn_text_puts(out, ", \"owners\": ");
        put_owners(out, t);
    }
    tn_text_puts(out, "}\n");
    return TARN_OK;
}

enum tarn_status tarn_tracker_write_json(struct tarn_tracker *t, bool everything,
                                         const struct tarn_writer *writer, struct tarn_error *error)
{
    return tn_track_write(t, print_json, &everything, writer, error);
}
