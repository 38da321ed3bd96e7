/* SPDX-License-Identifier: MIT */
#include "analysis/annotation.h"

#include "base/assertion.h"
#include "base/host_mem.h"
#include "base/map.h"
#include "base/order.h"

#include <string.h>

static struct tn_phase *phase_at(const struct tn_phases *phases, size_t number)
{
    return (struct tn_phase *)phases->phases.items + number;
}

static const struct tn_trace_entry *entry_at(const struct tn_timeline *timeline, uint64_t number)
{
    return tn_trace_at(timeline->model, timeline->trace, number);
}

/* Times that run backwards, which a damaged file has, give some entry of the trace. */
uint64_t tn_timeline_find_time(const struct tn_timeline *timeline, int64_t time_us)
{
    uint64_t low = 0;
    uint64_t high = timeline->trace->count;

    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;

        if (entry_at(timeline, middle)->time_us < time_us) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

int64_t tn_timeline_first_time(const struct tn_timeline *timeline)
{
    for (uint64_t i = 0; i < timeline->trace->count; i++) {
        const int64_t time_us = entry_at(timeline, i)->time_us;

        if (time_us != TN_TIME_NONE) {
            return time_us;
        }
    }
    return TN_TIME_NONE;
}

/* ---- phases ---- */

/* While annotations are read. `open`: name -> number of the phase that was opened last and is open
 * still; `outer`: what it hides, for each phase. */
struct reading {
    struct tn_phases *phases;
    struct tn_map open;
    struct tn_vec outer; /* uint64_t: number + 1, 0 = none */
};

static bool start_read(struct reading *reading, uint32_t name, uint64_t entry)
{
    const uint64_t number = reading->phases->phases.count;
    uint64_t *last = tn_map_find(&reading->open, (uint64_t)name + 1);
    struct tn_phase *phase = tn_vec_push(&reading->phases->phases);
    uint64_t *outer = phase ? tn_vec_push(&reading->outer) : NULL;

    if (!outer) {
        return false;
    }
    *phase = (struct tn_phase){
        .name = name, .start = entry, .end = reading->phases->timeline->trace->count};
    if (last) {
        *outer = *last + 1;
        *last = number;
        return true;
    }
    if (!tn_map_reserve(&reading->open, 1)) {
        return false;
    }
    tn_map_insert(&reading->open, (uint64_t)name + 1, number);
    return true;
}

/* An end without a start is of a phase that began before the trace did. */
static bool end_read(struct reading *reading, uint32_t name, uint64_t entry)
{
    uint64_t *last = tn_map_find(&reading->open, (uint64_t)name + 1);

    if (!last) {
        struct tn_phase *phase = tn_vec_push(&reading->phases->phases);
        uint64_t *outer = phase ? tn_vec_push(&reading->outer) : NULL;

        if (outer) {
            *phase = (struct tn_phase){.name = name, .start = 0, .end = entry};
        }
        return outer != NULL;
    }
    tn_assert(reading->outer.items && *last < reading->outer.count);
    struct tn_phase *phase = phase_at(reading->phases, *last);
    const uint64_t outer = ((const uint64_t *)reading->outer.items)[*last];

    phase->end = entry > phase->start ? entry : phase->start;
    if (outer > 0) {
        *last = outer - 1;
    } else {
        tn_map_remove(&reading->open, last);
    }
    return true;
}

static bool annotation_read(struct reading *reading, const struct tn_annotation *annotation)
{
    const struct tn_timeline *timeline = reading->phases->timeline;
    const struct tn_string stage = tn_model_string(timeline->model, annotation->stage);

    if (annotation->device != -1 && annotation->device != timeline->device) {
        return true;
    }
    const uint64_t entry = tn_timeline_find_time(timeline, annotation->time_us);

    if (strcmp(stage.text, "START") == 0) {
        return start_read(reading, annotation->name, entry);
    }
    return strcmp(stage.text, "END") != 0 || end_read(reading, annotation->name, entry);
}

static int phase_compare(const void *left, const void *right)
{
    const struct tn_phase *a = left;
    const struct tn_phase *b = right;

    if (a->start != b->start) {
        return a->start < b->start ? -1 : 1;
    }
    if (a->end != b->end) {
        return a->end > b->end ? -1 : 1;
    }
    return a->name < b->name ? -1 : a->name > b->name;
}

bool tn_phases_init(struct tn_phases *phases, const struct tn_timeline *timeline)
{
    const struct tn_model *model = timeline->model;
    struct reading reading = {.phases = phases};
    const bool has_times = tn_timeline_first_time(timeline) != TN_TIME_NONE;
    bool good = true;

    phases->timeline = timeline;
    tn_vec_init(&phases->phases, sizeof(struct tn_phase));
    tn_vec_init(&reading.outer, sizeof(uint64_t));
    for (size_t i = 0; has_times && good && i < model->annotation_count; i++) {
        good = annotation_read(&reading, &model->annotations[i]);
    }
    tn_vec_fini(&reading.outer);
    tn_map_fini(&reading.open);
    if (!good) {
        tn_phases_fini(phases);
        return false;
    }
    tn_vec_sort(&phases->phases, phase_compare);
    return true;
}

void tn_phases_fini(struct tn_phases *phases)
{
    tn_vec_fini(&phases->phases);
}

bool tn_phase_is_named(struct tn_string annotation, const char *name)
{
    const size_t length = strlen(name);

    return strncmp(annotation.text, name, length) == 0 &&
           (annotation.text[length] == '\0' || annotation.text[length] == '#');
}

/* ---- which phase an entry is in ---- */

/* The innermost phase of each entry: the one that began last. So phases are painted in the order of
 * their ends to beginnings, each only where nothing is painted yet; `next` jumps over what is. */
struct paint {
    uint32_t *name; /* an entry: string; then of the whole trace */
    uint64_t *next; /* an entry, and one behind: the first not painted at or after it */
};

static uint64_t paint_next(const struct paint *paint, uint64_t entry)
{
    uint64_t at = entry;

    while (paint->next[at] != at) {
        at = paint->next[at];
    }
    while (paint->next[entry] != at) {
        const uint64_t hop = paint->next[entry];

        paint->next[entry] = at;
        entry = hop;
    }
    return at;
}

static void phases_paint(const struct tn_phases *phases, const struct paint *paint)
{
    for (size_t i = phases->phases.count; i > 0; i--) {
        const struct tn_phase *phase = phase_at(phases, i - 1);
        uint64_t at = paint_next(paint, phase->start);

        while (at < phase->end) {
            paint->name[at] = phase->name;
            paint->next[at] = at + 1;
            at = paint_next(paint, at);
        }
    }
}

bool tn_phases_mark(const struct tn_phases *phases, struct tn_timeline *timeline)
{
    const size_t count = (size_t)timeline->trace->count;
    struct tn_lifetime *lifetimes = timeline->lifetimes.items;
    struct paint paint = {
        .name = tn_host_alloc_zero((count + 1) * sizeof *paint.name),
        .next = tn_host_alloc_zero((count + 1) * sizeof *paint.next),
    };
    const bool good = paint.name && paint.next;

    if (good) {
        for (size_t i = 0; i <= count; i++) {
            paint.next[i] = i;
        }
        phases_paint(phases, &paint);
        for (size_t i = 0; i < timeline->lifetimes.count; i++) {
            if (lifetimes[i].start != TN_NEVER) {
                lifetimes[i].annotation = paint.name[lifetimes[i].start];
            }
        }
    }
    tn_host_free(paint.next, (count + 1) * sizeof *paint.next);
    tn_host_free(paint.name, (count + 1) * sizeof *paint.name);
    return good;
}

/* Phases are sorted by start, so each marks only what follows all earlier ones. */
uint64_t tn_phases_cover(const struct tn_phases *phases, const char *name, uint8_t *marks)
{
    const struct tn_model *model = phases->timeline->model;
    uint64_t done = 0;
    uint64_t count = 0;

    for (size_t i = 0; i < phases->phases.count; i++) {
        const struct tn_phase *phase = phase_at(phases, i);

        if (!tn_phase_is_named(tn_model_string(model, phase->name), name)) {
            continue;
        }
        count++;
        for (uint64_t k = phase->start > done ? phase->start : done; k < phase->end; k++) {
            marks[k] = 1;
        }
        done = phase->end > done ? phase->end : done;
    }
    return count;
}

/* ---- steps ---- */

/* The boundaries that phases of one name give, unsorted: their starts or their ends. */
static bool boundaries_collect(const struct tn_phases *phases, const char *name, bool at_end,
                               struct tn_vec *ends)
{
    for (size_t i = 0; i < phases->phases.count; i++) {
        const struct tn_phase *phase = phase_at(phases, i);
        const uint64_t at = at_end ? phase->end : phase->start;
        const uint64_t end = at - 1; /* the last entry before it */

        if (tn_phase_is_named(tn_model_string(phases->timeline->model, phase->name), name) &&
            at > 0 && !tn_vec_append(ends, &end, 1)) {
            return false;
        }
    }
    return true;
}

bool tn_phases_steps(const struct tn_phases *phases, struct tn_vec *ends_out)
{
    uint64_t kept = 0;

    tn_vec_init(ends_out, sizeof(uint64_t));
    if (!boundaries_collect(phases, "ProfilerStep", false, ends_out) ||
        (ends_out->count == 0 && !boundaries_collect(phases, "Optimizer.step", true, ends_out))) {
        return false;
    }
    uint64_t *ends = ends_out->items;

    tn_vec_sort(ends_out, tn_order_numbers);
    if (ends) { /* there are some */
        for (size_t i = 1; i < ends_out->count; i++) {
            if (ends[i] != ends[kept]) {
                ends[++kept] = ends[i];
            }
        }
        ends_out->count = (size_t)kept + 1;
    }
    return true;
}

bool tn_trace_first_step(const struct tn_model *model, const struct tn_trace *trace, int64_t device,
                         uint64_t *entry_out)
{
    const struct tn_timeline timeline = {.model = model, .trace = trace, .device = device};
    struct tn_phases phases;
    struct tn_vec ends;

    if (!tn_phases_init(&phases, &timeline)) {
        return false;
    }
    const bool good = tn_phases_steps(&phases, &ends);

    *entry_out = good ? tn_steps_first(&ends) : 0;
    tn_vec_fini(&ends);
    tn_phases_fini(&phases);
    return good;
}
