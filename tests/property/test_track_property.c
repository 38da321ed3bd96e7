/* SPDX-License-Identifier: MIT */
/*
 * Random events through the tracker and the second one of tests/reference: after each, what is
 * there, the peaks and who had what in them must be equal; now and then all modules as well. A
 * difference is reported with its seed and event. Wrong events (half-random ids) must be refused by
 * both, and change nothing.
 */
#include "support/test.h"

#include "reference/track_model.h"
#include "tarn/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SEEDS = 60,
    EVENTS = 700
};

static const char *const device_names[TM_DEVICES] = {"cuda:0", "cpu", "cuda"};
static const char *const module_names[TM_NAMES] = {"Global", "M", "M.a", "M.b", "M.a.x", "Other"};

struct pair {
    struct tarn_tracker *tracker;
    struct tm_model model;
    uint64_t random;
    unsigned seed;
    int event;
};

static uint64_t draw(struct pair *pair, uint64_t below)
{
    pair->random ^= pair->random << 13;
    pair->random ^= pair->random >> 7;
    pair->random ^= pair->random << 17;
    return (pair->random >> 11) % below;
}

static void pair_open(struct pair *pair, unsigned seed)
{
    struct tarn_tracker_options options = {.struct_size = sizeof options, .all_storages = seed % 2};
    uint32_t id;

    tm_init(&pair->model);
    pair->seed = seed;
    pair->random = seed * 0x9e3779b97f4a7c15ULL + 1;
    pair->model.all_storages = options.all_storages;
    assert_int_equal(tarn_tracker_create(&options, &pair->tracker, NULL), TARN_OK);
    for (uint32_t i = 0; i < TM_DEVICES; i++) {
        pair->model.rounds[i] = i != 1;
        assert_int_equal(
            tarn_tracker_add_name(pair->tracker, TARN_TRACK_DEVICE, device_names[i], &id, NULL),
            TARN_OK);
        assert_int_equal(id, i);
    }
    for (uint32_t i = 0; i < TM_NAMES; i++) {
        assert_int_equal(
            tarn_tracker_add_name(pair->tracker, TARN_TRACK_MODULE, module_names[i], &id, NULL),
            TARN_OK);
        assert_int_equal(id, i);
    }
    assert_int_equal(tarn_tracker_add_name(pair->tracker, TARN_TRACK_CATEGORY, "Mine", &id, NULL),
                     TARN_OK);
    assert_int_equal(id, TM_CATEGORIES - 1);
    assert_int_equal(tarn_tracker_add_name(pair->tracker, TARN_TRACK_STATE, "Peak-Mine", &id, NULL),
                     TARN_OK);
    assert_int_equal(id, TM_STATES - 1);
}

static void check_rows(const struct pair *pair, const char *what, const struct tarn_track_row *rows,
                       size_t count, const struct tm_rows *model)
{
    bool same = count == model->count;

    for (size_t i = 0; same && i < count; i++) {
        int64_t total = 0;

        same = rows[i].device == model->order[i];
        for (size_t c = 0; same && c < TM_CATEGORIES; c++) {
            same = rows[i].bytes[c] == model->bytes[rows[i].device][c];
            total += rows[i].bytes[c];
        }
        same = same && total == rows[i].total;
    }
    if (!same) {
        fail_msg("seed %u, event %d: %s differs", pair->seed, pair->event, what);
    }
}

static void check_moment(const struct pair *pair, enum tarn_track_point moment, const char *what,
                         const struct tm_rows *model)
{
    struct tarn_track_row rows[TM_DEVICES];
    size_t count = 0;

    tarn_tracker_get_rows(pair->tracker, moment, rows, TM_DEVICES, &count);
    check_rows(pair, what, rows, count, model);
}

static bool model_has_peak(const struct tm_rows *peaks, uint32_t device)
{
    for (size_t i = 0; i < peaks->count; i++) {
        if (peaks->order[i] == device) {
            return true;
        }
    }
    return false;
}

static void check_owners(const struct pair *pair)
{
    const struct tm_model *m = &pair->model;
    struct tarn_track_row row;

    for (uint32_t name = 0; name < TM_NAMES; name++) {
        for (uint32_t d = 0; d < TM_DEVICES; d++) {
            assert_int_equal(
                tarn_tracker_get_owned(pair->tracker, TARN_TRACK_TOTAL_PEAK, name, d, &row), 0);
            assert_memory_equal(row.bytes, m->owned_at_moment[name][d],
                                sizeof m->owned_at_moment[name][d]);
            assert_int_equal(tarn_tracker_get_owned(pair->tracker, TARN_TRACK_PEAKS, name, d, &row),
                             0);
            if (model_has_peak(&m->peaks, d)) {
                assert_memory_equal(row.bytes, m->owned_at_peak[name][d],
                                    sizeof m->owned_at_peak[name][d]);
            }
        }
    }
}

static void check_module(const struct pair *pair, size_t index, const struct tarn_track_module *got)
{
    const struct tm_module *module = &pair->model.modules[got->id];
    struct tarn_track_row rows[TM_DEVICES];
    size_t calls[TM_STATES] = {0};

    assert_true(module->known);
    assert_int_equal(got->name, module->name);
    assert_int_equal(got->parameter_bytes, module->parameter_bytes);
    assert_int_equal(got->buffer_bytes, module->buffer_bytes);
    assert_int_equal(got->input_bytes, module->input_bytes);
    assert_int_equal(got->output_bytes, module->output_bytes);
    for (size_t s = 0; s < got->state_count; s++) {
        uint32_t state = 0;
        size_t call_count = 0;

        assert_int_equal(tarn_tracker_get_state(pair->tracker, index, s, &state, &call_count), 0);
        calls[state] = call_count;
        for (size_t call = 0; call < call_count; call++) {
            size_t count = 0;

            assert_int_equal(
                tarn_tracker_get_call(pair->tracker, index, s, call, rows, TM_DEVICES, &count), 0);
            check_rows(pair, "a module's call", rows, count, &module->calls[state][call]);
        }
    }
    assert_memory_equal(calls, module->call_count, sizeof calls);
}

static void check_modules(const struct pair *pair)
{
    struct tarn_findings findings = TARN_FINDINGS_INIT;
    const size_t count = tarn_tracker_count_modules(pair->tracker);
    size_t known = 0;

    for (size_t i = 0; i < TM_MODULES; i++) {
        known += pair->model.modules[i].known;
    }
    assert_int_equal(count, known);
    for (size_t i = 0; i < count; i++) {
        struct tarn_track_module module = {.struct_size = sizeof module};

        assert_int_equal(tarn_tracker_get_module(pair->tracker, i, &module), TARN_OK);
        check_module(pair, i, &module);
    }
    if (tarn_tracker_check(pair->tracker, &findings)) {
        fail_msg("seed %u, event %d: %s", pair->seed, pair->event, findings.text[0]);
    }
}

static struct tarn_track_event draw_event(struct pair *pair)
{
    static const enum tarn_track_kind kinds[] = {
        TARN_TRACK_CREATE,         TARN_TRACK_CREATE,         TARN_TRACK_CREATE,
        TARN_TRACK_CREATE,         TARN_TRACK_OP_DONE,        TARN_TRACK_OP_DONE,
        TARN_TRACK_OP_DONE,        TARN_TRACK_OP_DONE,        TARN_TRACK_CLASSIFY,
        TARN_TRACK_CLASSIFY,       TARN_TRACK_RESIZE,         TARN_TRACK_DELETE,
        TARN_TRACK_DELETE,         TARN_TRACK_DELETE,         TARN_TRACK_ENTER,
        TARN_TRACK_ENTER,          TARN_TRACK_READY,          TARN_TRACK_LEAVE,
        TARN_TRACK_LEAVE,          TARN_TRACK_INPUT,          TARN_TRACK_OUTPUT,
        TARN_TRACK_ENTER_BACKWARD, TARN_TRACK_LEAVE_BACKWARD, TARN_TRACK_END_BACKWARD,
        TARN_TRACK_BEGIN_STEP,     TARN_TRACK_END_STEP,       TARN_TRACK_START,
        TARN_TRACK_RESET_MODULES,  TARN_TRACK_FORGET_MODULE,
    };
    struct tarn_track_event event = {0};

    event.kind = (uint16_t)kinds[draw(pair, sizeof kinds / sizeof kinds[0])];
    /* The rare ones are rarer still, or nothing would last. */
    if (event.kind >= TARN_TRACK_START && draw(pair, 8) > 0) {
        event.kind = TARN_TRACK_OP_DONE;
    }
    event.flags = (uint16_t)(draw(pair, 3) == 0 ? TARN_TRACK_BACKWARD : 0);
    if (event.kind == TARN_TRACK_CREATE && draw(pair, 4) == 0) {
        event.flags |= TARN_TRACK_MORE;
    }
    event.category =
        draw(pair, 2) ? (uint32_t)TARN_TRACK_AUTO : (uint32_t)draw(pair, TM_CATEGORIES);
    event.bytes = draw(pair, 3) ? draw(pair, 5000) : 0;
    if (event.kind <= TARN_TRACK_DELETE || event.kind == TARN_TRACK_INPUT ||
        event.kind == TARN_TRACK_OUTPUT) {
        event.id = draw(pair, TM_STORAGES);
        event.name = (uint32_t)draw(pair, TM_DEVICES);
    } else {
        event.id = draw(pair, TM_MODULES);
        event.name = (uint32_t)(1 + draw(pair, TM_NAMES - 1));
    }
    if (event.kind == TARN_TRACK_OP_DONE && draw(pair, 8) == 0) {
        event.flags |= TARN_TRACK_IN_STATE;
        event.name = TM_STATES - 1;
    }
    return event;
}

static void step(struct pair *pair)
{
    const struct tarn_track_event event = draw_event(pair);
    struct tarn_error error = {.text = ""};

    /* The slow one has little room for nested modules. */
    if (pair->model.active_count > 40 &&
        (event.kind == TARN_TRACK_ENTER || event.kind == TARN_TRACK_ENTER_BACKWARD)) {
        return;
    }
    const bool right = tm_apply(&pair->model, &event);
    const enum tarn_status status = tarn_tracker_apply(pair->tracker, &event, 1, NULL, &error);

    if ((status == TARN_OK) != right) {
        fail_msg("seed %u, event %d of kind %u: %s", pair->seed, pair->event, (unsigned)event.kind,
                 right ? error.text : "was not refused");
    }
    const struct tm_rows now = tm_now(&pair->model);

    check_moment(pair, TARN_TRACK_NOW, "what is there", &now);
    check_moment(pair, TARN_TRACK_PEAKS, "the peak of each device", &pair->model.peaks);
    check_moment(pair, TARN_TRACK_TOTAL_PEAK, "the peak of all", &pair->model.moment);
    check_owners(pair);
}

static void same_as_reference(void **state)
{
    static struct pair pair; /* large */

    (void)state;
    for (unsigned seed = 0; seed < SEEDS; seed++) {
        pair_open(&pair, seed);
        for (pair.event = 0; pair.event < EVENTS; pair.event++) {
            step(&pair);
            if (pair.event % 50 == 0) {
                check_modules(&pair);
            }
        }
        check_modules(&pair);
        tarn_tracker_destroy(pair.tracker);
    }
    assert_int_equal(tarn_host_get_usage().live_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_as_reference)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
