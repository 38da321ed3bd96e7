/* SPDX-License-Identifier: MIT */
#include "tracker/track_text.h"

#include "base/assertion.h"
#include "base/errinfo.h"
#include "base/escaped.h"
#include "base/order.h"
#include "base/utf8.h"
#include "tracker/rst_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- amounts ---- */

static const struct tn_track_unit units[] = {
    [TARN_UNITS_BYTES] = {"B", 0},
    [TARN_UNITS_KIB] = {"KiB", 10},
    [TARN_UNITS_MIB] = {"MiB", 20},
    [TARN_UNITS_GIB] = {"GiB", 30},
};

enum tarn_status tn_track_unit_find(enum tarn_units wanted, const struct tn_track_unit **unit_out,
                                    struct tarn_error *error)
{
    if ((unsigned)wanted < sizeof units / sizeof units[0] && units[wanted].name) {
        *unit_out = &units[wanted];
        return TARN_OK;
    }
    return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                   "Unsupported unit: %d. Supported units are: B, KiB, MiB, GiB", (int)wanted);
}

/* Hundredths of the unit, rounded half to even as in Python's round: bytes divided by a power of
 * two are exact. */
static int64_t hundredths(int64_t bytes, unsigned shift)
{
    const int64_t one = INT64_C(1) << shift;
    const int64_t rest = (bytes & (one - 1)) * 100;
    const int64_t low = rest >> shift;
    const int64_t over = rest & (one - 1);
    const int64_t half = one >> 1;

    return (bytes >> shift) * 100 + low + (over > half || (over == half && (low & 1)));
}

bool tn_amount_shows(int64_t bytes, const struct tn_track_unit *unit)
{
    tn_assert(unit);
    return unit->shift == 0 ? bytes > 0 : hundredths(bytes, unit->shift) > 0;
}

struct tn_amount tn_amount_format(int64_t bytes, const struct tn_track_unit *unit)
{
    struct tn_amount amount;

    tn_assert(unit);
    if (unit->shift == 0) {
        (void)snprintf(amount.text, sizeof amount.text, "%" PRId64 " %s", bytes, unit->name);
        return amount;
    }
    const bool minus = bytes < 0;
    const int64_t parts = hundredths(minus ? -bytes : bytes, unit->shift);
    const int digits = parts % 10 == 0 ? 1 : 2; /* Python drops trailing zeros except the first */

    (void)snprintf(amount.text, sizeof amount.text, "%s%" PRId64 ".%0*" PRId64 " %s",
                   minus && parts > 0 ? "-" : "", parts / 100, digits,
                   digits == 1 ? parts % 100 / 10 : parts % 100, unit->name);
    return amount;
}

/* ---- output ---- */

static enum tarn_status hand_over(const struct tn_vec *text, const struct tarn_writer *writer)
{
    return text->count > 0 ? writer->write(writer->context, text->items, text->count) : TARN_OK;
}

enum tarn_status tn_track_write(struct tarn_tracker *t, tn_track_print *print, const void *how,
                                const struct tarn_writer *writer, struct tarn_error *error)
{
    struct tn_vec text;
    struct tn_text_out out;
    const struct tarn_writer memory = tn_text_to_vec(&text);
    enum tarn_status st;

    if (tn_fork_passed(&t->fork)) {
        return tn_fork_refuse(error, "the tracker");
    }
    tn_vec_init(&text, 1);
    tn_text_init(&out, &memory);
    tn_lock_acquire(&t->lock);
    st = print(&out, t, how);
    tn_lock_release(&t->lock);
    const enum tarn_status printed = tn_text_finish(&out);

    st = st ? st : printed;
    if (st) {
        st = tn_fail_memory(error);
        goto out;
    }
    st = hand_over(&text, writer);
    if (st) {
        st = tn_fail(error, st, "cannot write the tracker's text: %s", tarn_status_text(st));
    }
out:
    tn_vec_fini(&text);
    return st;
}

void tn_track_put_name(struct tn_text_out *out, const struct tarn_tracker *t,
                       enum tarn_track_names names, uint32_t id)
{
    const char *text = tn_track_name(t, names, id);

    tn_text_put_escaped(out, text, strlen(text), TN_ESCAPED_PLAIN);
}

/* ---- the order of modules ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int lower(char c)
{
    return (unsigned char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

/* Compares two runs of digits as numbers of any length and advances past both. */
static int compare_numbers(const char **a, const char **b)
{
    size_t a_length = 0;
    size_t b_length = 0;

    while (**a == '0') {
        (*a)++;
    }
    while (**b == '0') {
        (*b)++;
    }
    while (is_digit((*a)[a_length])) {
        a_length++;
    }
    while (is_digit((*b)[b_length])) {
        b_length++;
    }
    const int order =
        a_length != b_length ? (a_length < b_length ? -1 : 1) : strncmp(*a, *b, a_length);

    *a += a_length;
    *b += b_length;
    return order;
}

/* Compares texts between numbers: the one that ends first is smaller. */
static int compare_texts(const char **a, const char **b)
{
    for (;; (*a)++, (*b)++) {
        const bool a_ends = **a == '\0' || is_digit(**a);
        const bool b_ends = **b == '\0' || is_digit(**b);

        if (a_ends || b_ends) {
            return (int)b_ends - (int)a_ends;
        }
        if (lower(**a) != lower(**b)) {
            return lower(**a) < lower(**b) ? -1 : 1;
        }
    }
}

int tn_natural_compare(const char *a, const char *b)
{
    for (;;) {
        int order = compare_texts(&a, &b);

        if (order != 0) {
            return order;
        }
        if (*a == '\0' || *b == '\0') {
            return (*a != '\0') - (*b != '\0');
        }
        order = compare_numbers(&a, &b);
        if (order != 0) {
            return order;
        }
    }
}

struct sorted_module {
    const struct tn_module *module;
    const char *name;
    size_t at; /* in order of first use */
};

static int module_compare(const void *left, const void *right)
{
    const struct sorted_module *a = left;
    const struct sorted_module *b = right;
    const int order = tn_natural_compare(a->name, b->name);

    return order ? order : tn_order(a->at, b->at);
}

/* Fills `sorted` with all modules, by name; false when host memory runs out. */
static bool modules_sort(const struct tarn_tracker *t, struct tn_vec *sorted)
{
    for (size_t i = 0; i < t->order.count; i++) {
        const struct tn_module *module = tn_track_module_at(t, i);
        const char *name = tn_track_name(t, TARN_TRACK_MODULE, module->name);

        if (!tn_vec_add(sorted, &(struct sorted_module){module, name, i})) {
            return false;
        }
    }
    tn_vec_sort(sorted, module_compare);
    return true;
}

uint32_t tn_track_depth(const char *name)
{
    uint32_t depth = 1;

    for (; *name; name++) {
        depth += *name == '.';
    }
    return depth;
}

/* ---- PyTorch's displays ---- */

struct display {
    const struct tn_track_unit *unit;
    enum tarn_track_format format;
    enum tarn_track_point point;
    uint32_t depth;
};

static uint32_t category_count(const struct tarn_tracker *t)
{
    return tn_name_list_count(&t->names[TARN_TRACK_CATEGORY]);
}

/* [_print_snapshot] */
static void put_breakdown(struct tn_text_out *out, const struct tarn_tracker *t,
                          const struct tn_breakdown *breakdown, const struct tn_track_unit *unit)
{
    if (breakdown->count == 0) {
        tn_text_puts(out, "No memory tracked.\n");
    }
    for (size_t i = 0; i < breakdown->count; i++) {
        const struct tarn_track_row *row = &breakdown->rows[i];

        if (!tn_amount_shows(row->total, unit)) {
            continue;
        }
        tn_text_puts(out, "Device: ");
        tn_track_put_name(out, t, TARN_TRACK_DEVICE, row->device);
        for (uint32_t c = 0; c < category_count(t); c++) {
            tn_text_puts(out, "\n\t");
            tn_track_put_name(out, t, TARN_TRACK_CATEGORY, c);
            tn_text_printf(out, ": %s", tn_amount_format(row->bytes[c], unit).text);
        }
        tn_text_printf(out, "\n\tTotal: %s\n", tn_amount_format(row->total, unit).text);
    }
}

static void table_add_head(struct tn_rst_table *table, const struct tarn_tracker *t)
{
    tn_rst_table_add(table, "Device");
    for (uint32_t c = 0; c < category_count(t); c++) {
        tn_rst_table_add(table, tn_track_name(t, TARN_TRACK_CATEGORY, c));
    }
    tn_rst_table_add(table, "Total");
}

static void table_add_row(struct tn_rst_table *table, const struct tarn_tracker *t,
                          const struct tarn_track_row *row, const struct tn_track_unit *unit)
{
    tn_rst_table_add(table, tn_track_name(t, TARN_TRACK_DEVICE, row->device));
    for (uint32_t c = 0; c < category_count(t); c++) {
        tn_rst_table_add(table, tn_amount_format(row->bytes[c], unit).text);
    }
    tn_rst_table_add(table, tn_amount_format(row->total, unit).text);
}

/* [_print_snapshot_tabular] */
static enum tarn_status put_breakdown_table(struct tn_text_out *out, const struct tarn_tracker *t,
                                            const struct tn_breakdown *breakdown,
                                            const struct tn_track_unit *unit)
{
    struct tn_rst_table table;

    if (breakdown->count == 0) {
        tn_text_puts(out, "No memory tracked.\n");
        return TARN_OK;
    }
    tn_rst_table_init(&table, category_count(t) + 2);
    table_add_head(&table, t);
    for (size_t i = 0; i < breakdown->count; i++) {
        if (tn_amount_shows(breakdown->rows[i].total, unit)) {
            table_add_row(&table, t, &breakdown->rows[i], unit);
        }
    }
    const enum tarn_status st = tn_rst_table_put(&table, out);

    tn_rst_table_fini(&table);
    return st;
}

/* [display_snapshot] */
static enum tarn_status print_rows(struct tn_text_out *out, const struct tarn_tracker *t,
                                   const void *how)
{
    const struct display *display = how;
    const struct tn_breakdown *breakdown = tn_track_breakdown(t, display->point);

    if (display->format == TARN_TRACK_TABLE) {
        return put_breakdown_table(out, t, breakdown, display->unit);
    }
    put_breakdown(out, t, breakdown, display->unit);
    return TARN_OK;
}

static const struct tn_breakdown *call_at(const struct tn_module_state *state, size_t at)
{
    return (const struct tn_breakdown *)state->calls.items + at;
}

/* [_print_state_snapshots] */
static void put_states(struct tn_text_out *out, const struct tarn_tracker *t,
                       const struct tn_module *module, const struct tn_track_unit *unit)
{
    for (size_t i = 0; i < module->state_count; i++) {
        const struct tn_module_state *state = tn_module_state_at(module, i);

        tn_track_put_name(out, t, TARN_TRACK_STATE, state->state);
        tn_text_putc(out, '\n');
        for (size_t call = 0; call < state->calls.count; call++) {
            tn_text_printf(out, "# %zu:\n", call + 1);
            put_breakdown(out, t, call_at(state, call), unit);
        }
    }
    tn_text_putc(out, '\n');
}

/* A call's rows; only the first has its name. */
static void table_add_call(struct tn_rst_table *table, const struct tarn_tracker *t,
                           const struct tn_module_state *state, size_t call,
                           const struct tn_track_unit *unit)
{
    const struct tn_breakdown *breakdown = call_at(state, call);
    char name[TARN_TRACK_NAME_MAX + 32];
    bool is_first = true;

    (void)snprintf(name, sizeof name, "%s # %zu", tn_track_name(t, TARN_TRACK_STATE, state->state),
                   call + 1);
    for (size_t i = 0; i < breakdown->count; i++) {
        if (tn_amount_shows(breakdown->rows[i].total, unit)) {
            tn_rst_table_add(table, is_first ? name : "");
            table_add_row(table, t, &breakdown->rows[i], unit);
            is_first = false;
        }
    }
}

/* [_print_state_snapshots_tabular] */
static enum tarn_status put_states_table(struct tn_text_out *out, const struct tarn_tracker *t,
                                         const struct tn_module *module,
                                         const struct tn_track_unit *unit)
{
    enum tarn_status st = TARN_OK;
    struct tn_rst_table table;

    tn_rst_table_init(&table, category_count(t) + 3);
    tn_rst_table_add(&table, "State & Call");
    table_add_head(&table, t);
    for (size_t i = 0; i < module->state_count; i++) {
        const struct tn_module_state *state = tn_module_state_at(module, i);

        for (size_t call = 0; call < state->calls.count; call++) {
            table_add_call(&table, t, state, call, unit);
        }
    }
    if (tn_rst_table_rows(&table) > 1) {
        st = tn_rst_table_put(&table, out);
    } else { /* without rows the columns are unknown */
        tn_text_putc(out, '\n');
    }
    tn_rst_table_fini(&table);
    return st;
}

/* [display_modulewise_snapshots] */
static enum tarn_status print_modules(struct tn_text_out *out, const struct tarn_tracker *t,
                                      const void *how)
{
    const struct display *display = how;
    struct tn_vec sorted;
    enum tarn_status st;

    tn_vec_init(&sorted, sizeof(struct sorted_module));
    st = modules_sort(t, &sorted) ? TARN_OK : TARN_ERR_HOST_MEMORY;
    for (size_t i = 0; !st && i < sorted.count; i++) {
        const struct sorted_module *item = (const struct sorted_module *)sorted.items + i;
        const struct tn_module *module = item->module;

        if (tn_track_depth(item->name) > display->depth) {
            continue;
        }
        tn_text_puts(out, "Module:  ");
        tn_track_put_name(out, t, TARN_TRACK_MODULE, module->name);
        tn_text_putc(out, '\n');
        if (display->format == TARN_TRACK_TABLE) {
            st = put_states_table(out, t, module, display->unit);
        } else {
            put_states(out, t, module, display->unit);
        }
    }
    tn_vec_fini(&sorted);
    return st;
}

enum tarn_status tarn_tracker_write_rows(struct tarn_tracker *t, enum tarn_track_point point,
                                         enum tarn_units unit, enum tarn_track_format format,
                                         const struct tarn_writer *writer, struct tarn_error *error)
{
    struct display display = {.format = format, .point = point};
    const enum tarn_status st = tn_track_unit_find(unit, &display.unit, error);

    return st ? st : tn_track_write(t, print_rows, &display, writer, error);
}

enum tarn_status tarn_tracker_write_modules(struct tarn_tracker *t, uint32_t depth,
                                            enum tarn_units unit, enum tarn_track_format format,
                                            const struct tarn_writer *writer,
                                            struct tarn_error *error)
{
    struct display display = {.format = format, .depth = depth};
    const enum tarn_status st = tn_track_unit_find(unit, &display.unit, error);

    return st ? st : tn_track_write(t, print_modules, &display, writer, error);
}

/* ---- iterations ---- */

static void put_growth(struct tn_text_out *out, const struct tarn_tracker *t,
                       const struct tn_iteration *iteration, const struct tn_track_unit *unit)
{
    const char *between = "";

    for (uint32_t c = 0; c < category_count(t); c++) {
        const int64_t growth = iteration->end[c] - iteration->begin[c];

        if (growth != 0) {
            tn_text_printf(out, "%s%s%s ", between, growth > 0 ? "+" : "",
                           tn_amount_format(growth, unit).text);
            tn_track_put_name(out, t, TARN_TRACK_CATEGORY, c);
            between = ", ";
        }
    }
    tn_text_puts(out, *between ? "\n" : "nothing\n");
}

static enum tarn_status print_iterations(struct tn_text_out *out, const struct tarn_tracker *t,
                                         const void *how)
{
    const struct tn_track_unit *unit = how;
    const size_t count = tn_iteration_list_count(&t->iterations);

    if (count == 0) {
        tn_text_puts(out, "No iterations.\n");
        return TARN_OK;
    }
    tn_text_printf(out, "%9s  %14s  %14s  %14s  %s\n", "iteration", "start", "peak", "end",
                   "growth");
    for (size_t i = 0; i < count; i++) {
        const struct tn_iteration it = tn_track_iteration(t, i);

        tn_text_printf(out, "%9" PRIu64 "  %14s  %14s  %14s  ", it.number,
                       tn_amount_format(it.begin_total, unit).text,
                       tn_amount_format(it.peak_total, unit).text,
                       tn_amount_format(it.end_total, unit).text);
        put_growth(out, t, &it, unit);
    }
    return TARN_OK;
}

enum tarn_status tarn_tracker_write_iterations(struct tarn_tracker *t, enum tarn_units wanted,
                                               const struct tarn_writer *writer,
                                               struct tarn_error *error)
{
    const struct tn_track_unit *unit = NULL;
    const enum tarn_status st = tn_track_unit_find(wanted, &unit, error);

    if (st) {
        return st;
    }
    tn_assert(unit != NULL);
    return tn_track_write(t, print_iterations, unit, writer, error);
}
