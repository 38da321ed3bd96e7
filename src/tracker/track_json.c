/* SPDX-License-Identifier: MIT */
/* The tracker's state as JSON, with the spacing of Python's json.dumps. */
#include "tracker/track_text.h"

#include "base/json_text.h"

static void put_categories(struct tn_json_text *json, const struct tarn_tracker *t,
                           const int64_t *bytes)
{
    for (uint32_t c = 0; c < tn_name_list_count(&t->names[TARN_TRACK_CATEGORY]); c++) {
        tn_json_signed(json, tn_track_name(t, TARN_TRACK_CATEGORY, c), bytes[c]);
    }
}

static void put_breakdown(struct tn_json_text *json, const char *key, const struct tarn_tracker *t,
                          const struct tn_breakdown *breakdown)
{
    tn_json_open_object(json, key);
    for (size_t i = 0; i < breakdown->count; i++) {
        const struct tarn_track_row *row = &breakdown->rows[i];

        tn_json_open_object(json, tn_track_name(t, TARN_TRACK_DEVICE, row->device));
        put_categories(json, t, row->bytes);
        tn_json_signed(json, "Total", row->total);
        tn_json_close(json);
    }
    tn_json_close(json);
}

void tn_track_put_json(struct tn_text_out *out, const struct tarn_tracker *t,
                       const struct tn_breakdown *breakdown)
{
    struct tn_json_text json;

    tn_json_init(&json, out, TN_JSON_PYTHON);
    put_breakdown(&json, NULL, t, breakdown);
}

static void put_local_peaks(struct tn_json_text *json, const struct tarn_tracker *t,
                            const struct tn_module *module)
{
    tn_json_open_object(json, "local_peak");
    for (size_t i = 0; i < module->peak_count; i++) {
        tn_json_signed(json, tn_track_name(t, TARN_TRACK_DEVICE, module->peaks[i].device),
                       module->peaks[i].bytes);
    }
    tn_json_close(json);
}

static void put_states(struct tn_json_text *json, const struct tarn_tracker *t,
                       const struct tn_module *module)
{
    tn_json_open_object(json, "snapshots");
    for (size_t i = 0; i < module->state_count; i++) {
        const struct tn_module_state *state = tn_module_state_at(module, i);

        tn_json_open_array(json, tn_track_name(t, TARN_TRACK_STATE, state->state));
        for (size_t k = 0; k < state->calls.count; k++) {
            put_breakdown(json, NULL, t, (const struct tn_breakdown *)state->calls.items + k);
        }
        tn_json_close(json);
    }
    tn_json_close(json);
}

static void put_module(struct tn_json_text *json, const struct tarn_tracker *t,
                       const struct tn_module *module)
{
    tn_json_open_object(json, tn_track_name(t, TARN_TRACK_MODULE, module->name));
    tn_json_signed(json, "parameter_mem", module->parameter_bytes);
    tn_json_signed(json, "buffer_mem", module->buffer_bytes);
    tn_json_signed(json, "input_mem", module->input_bytes);
    if (module->output_bytes < 0) {
        tn_json_null(json, "output_mem");
    } else {
        tn_json_signed(json, "output_mem", module->output_bytes);
    }
    put_local_peaks(json, t, module);
    put_states(json, t, module);
    tn_json_close(json);
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

static void put_modules(struct tn_json_text *json, const struct tarn_tracker *t)
{
    tn_json_open_object(json, "modules");
    for (size_t i = 0; i < t->order.count; i++) {
        const struct tn_module *module = newest_of_name(t, i);

        if (module) {
            put_module(json, t, module);
        }
    }
    tn_json_close(json);
}

static void put_sums(struct tn_json_text *json, const struct tarn_tracker *t, const char *key,
                     const int64_t *bytes)
{
    tn_json_open_object(json, key);
    put_categories(json, t, bytes);
    tn_json_close(json);
}

static void put_iteration(struct tn_json_text *json, const struct tarn_tracker *t,
                          const struct tn_iteration *iteration)
{
    int64_t growth[TARN_TRACK_CATEGORIES_MAX];

    for (size_t c = 0; c < TARN_TRACK_CATEGORIES_MAX; c++) {
        growth[c] = iteration->end[c] - iteration->begin[c];
    }
    tn_json_open_object(json, NULL);
    tn_json_signed(json, "number", (int64_t)iteration->number);
    tn_json_signed(json, "begin", iteration->begin_total);
    tn_json_signed(json, "peak", iteration->peak_total);
    tn_json_signed(json, "end", iteration->end_total);
    put_sums(json, t, "at_peak", iteration->peak);
    put_sums(json, t, "growth", growth);
    tn_json_close(json);
}

static void put_iterations(struct tn_json_text *json, const struct tarn_tracker *t)
{
    tn_json_open_array(json, "iterations");
    for (size_t i = 0; i < tn_iteration_list_count(&t->iterations); i++) {
        const struct tn_iteration iteration = tn_track_iteration(t, i);

        put_iteration(json, t, &iteration);
    }
    tn_json_close(json);
}

/* A list, not a dictionary: the same module may have memory on several devices. */
static void put_owners(struct tn_json_text *json, const struct tarn_tracker *t)
{
    tn_json_open_array(json, "owners");
    for (size_t i = 0; i < t->owners.owners.count; i++) {
        const struct tn_owner *owner = tn_owner_at(&t->owners, i);
        const int64_t *bytes = tn_owner_bytes(&t->owners, owner, TARN_TRACK_TOTAL_PEAK);
        int64_t total = 0;

        for (size_t c = 0; c < TARN_TRACK_CATEGORIES_MAX; c++) {
            total += bytes[c];
        }
        if (total == 0) {
            continue;
        }
        tn_json_open_object(json, NULL);
        tn_json_word(json, "module", tn_track_name(t, TARN_TRACK_MODULE, owner->module));
        tn_json_word(json, "device", tn_track_name(t, TARN_TRACK_DEVICE, owner->device));
        put_categories(json, t, bytes);
        tn_json_signed(json, "Total", total);
        tn_json_close(json);
    }
    tn_json_close(json);
}

static enum tarn_status print_json(struct tn_text_out *out, const struct tarn_tracker *t,
                                   const void *how)
{
    const bool *everything = how;
    struct tn_json_text json;

    tn_json_begin_flat(&json, out, TN_JSON_PYTHON, "tarn.track/1");
    put_breakdown(&json, "peak", t, &t->peaks);
    put_breakdown(&json, "current", t, tn_track_breakdown(t, TARN_TRACK_AT_END));
    put_modules(&json, t);
    if (*everything) {
        put_breakdown(&json, "moment", t, &t->total_peak);
        put_iterations(&json, t);
        put_owners(&json, t);
    }
    tn_json_end(&json);
    return TARN_OK;
}

enum tarn_status tarn_tracker_write_json(struct tarn_tracker *t, bool everything,
                                         const struct tarn_writer *writer, struct tarn_error *error)
{
    return tn_track_write(t, print_json, &everything, writer, error);
}
