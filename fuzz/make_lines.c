/* SPDX-License-Identifier: MIT */
/* Logs with one JSON object a line, profiles, and RMM's rows. */
#include "maker.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    LINES_MAX = 120,
    FIELDS_MAX = 32
};

/* A line: its operation, and its fields as NAME=K. K is what the field holds: a (b)oolean, (n)umber
 * of few, (s)ize, (a)ddress, (w)ord, (p)air, (t)ext, list of (N)umbers, (S)torages, (E)vents,
 * (P)airs, (W)ords. */
struct line_form {
    const char *op;
    const char *fields;
};

static const struct line_form track_forms[] = {
    {"create", "storages=S in_backward=b"},
    {"classify", "storages=S category=w after=w"},
    {"delete", "id=n"},
    {"op_done", "peak_state=w parents=W"},
    {"resize", "id=n bytes=s"},
    {"pre_forward", "module=t module_id=n inputs=S in_backward=b"},
    {"post_forward", "module=t module_id=n outputs=S in_backward=b"},
    {"pre_backward", "module=t module_id=n"},
    {"post_backward", "module=t module_id=n"},
    {"optimizer_step_begin", ""},
    {"optimizer_step_end", ""},
    {"reset_mod_stats", ""},
    {"begin_iteration", ""},
    {"mark", "what=t"},
};

static const struct line_form decision_forms[] = {
    {"malloc", "id=n size=s stream=n ptr=a events=E brief=N"},
    {"free", "id=n events=E brief=N"},
    {"malloc", "size=s stream=n error=t message=t events=E brief=N"},
    {"record_stream", "id=n stream=n events=E brief=N"},
    {"synchronize", "events=E brief=N"},
    {"empty_cache", "events=E brief=N"},
    {"reset_peak_stats", "events=E brief=N"},
    {"reset_accumulated_stats", "events=E brief=N"},
    {"set_fraction", "fraction=n events=E brief=N"},
    {"set_config", "conf=w events=E brief=N"},
    {"block_stream", "stream=n events=E brief=N"},
    {"unblock_stream", "stream=n events=E brief=N"},
    {"begin_allocate_to_pool", "pool=p stream=n captured=b events=E brief=N"},
    {"end_allocate_to_pool", "pool=p events=E brief=N"},
    {"release_pool", "pool=p events=E brief=N"},
    {"get_checkpoint", "pool=p events=E brief=N"},
    {"set_checkpoint", "pool=p freed=N created=P events=E brief=N"},
    {"set_pool_use_on_oom", "pool=p value=b events=E brief=N"},
    {"set_pool_no_split", "pool=p value=b events=E brief=N"},
    {"capture_begin", "stream=n events=E brief=N"},
    {"capture_end", "stream=n events=E brief=N"},
    {"work", "stream=n events=E brief=N"},
    {"join", "stream=n after=n events=E brief=N"},
    {"stats", "stats=w events=E brief=N"},
    {"snapshot", "segments=E events=E brief=N"},
};

static const char *const words[] = {
    "Parameter",
    "Peak-Forward",
    "Activation",
    "Gradient",
    "Optstate",
    "Other",
    "segment_alloc",
    "alloc",
    "free_completed",
    "free_requested",
    "expandable_segments:True",
    "max_split_size_mb:21",
    "cuda:0",
    "cpu",
};

static struct value *make_kind(struct maker *m, char kind);

/* What stands in one place of a list. */
static struct value *make_member(struct maker *m, char kind)
{
    static const char storage[] = "nsw";
    static const char event[] = "wasn";
    const char *kinds = kind == 'S' ? storage : kind == 'E' ? event : "an";
    struct value *row = make_container(m, VALUE_LIST, strlen(kinds));

    for (; *kinds; kinds++) {
        make_item(m, row, make_kind(m, *kinds));
    }
    return row;
}

static struct value *make_list(struct maker *m, char kind)
{
    struct value *list = make_container(m, VALUE_LIST, 16);

    while (list->count < 16 && dice_once_in(&m->dice, 2)) {
        make_item(m, list,
                  kind == 'N'   ? make_size(m)
                  : kind == 'W' ? make_text(m)
                                : make_member(m, kind));
    }
    return list;
}

static struct value *make_kind(struct maker *m, char kind)
{
    switch (kind) {
    case 'b':
        return make_bool(m);
    case 'n':
        return make_small(m, 8);
    case 's':
        return make_size(m);
    case 'a':
        return make_address(m);
    case 'w':
        return make_word(m, words, sizeof words / sizeof *words);
    case 'p':
        return make_pair(m);
    case 't':
        return make_text(m);
    default:
        return make_list(m, kind);
    }
}

static void put_line(struct maker *m, const struct line_form *format, struct document *document)
{
    struct value *line = make_container(m, VALUE_DICT, FIELDS_MAX);
    const char *at = format->fields;
    char name[32];

    make_field(m, line, "op", value_text(&m->pool, format->op));
    while (*at) {
        const size_t length = strcspn(at, "=");

        (void)snprintf(name, sizeof name, "%.*s", (int)length, at);
        make_field(m, line, name, make_kind(m, at[length + 1]));
        at += length + 2;
        at += *at == ' ';
    }
    value_write_json(&m->pool, line, document);
    document_put_text(document, "\n");
}

static void put_lines(struct maker *m, const struct line_form *forms, unsigned count,
                      struct document *document)
{
    for (unsigned i = 0; i < LINES_MAX && dice_more(&m->dice); i++) {
        put_line(m, &forms[dice_below(&m->dice, count)], document);
    }
}

void make_track(struct maker *m, struct document *document)
{
    put_lines(m, track_forms, sizeof track_forms / sizeof *track_forms, document);
}

void make_decisions(struct maker *m, struct document *document)
{
    static const char *const names[] = {"allocated_bytes", "reserved_bytes", "active",
                                        "num_ooms",        "segment",        "fly"};
    struct value *header = make_container(m, VALUE_DICT, FIELDS_MAX);
    struct value *streams = make_container(m, VALUE_LIST, 4);
    struct value *brief = make_container(m, VALUE_LIST, 4);

    for (unsigned i = 0; i < 4; i++) {
        make_item(m, streams, value_uint(&m->pool, (uint64_t)i * 16));
        make_item(m, brief, make_word(m, names, 6));
    }
    make_field(m, header, "conf", make_word(m, words, sizeof words / sizeof *words));
    make_field(m, header, "device_total", value_uint(&m->pool, (uint64_t)1 << 32));
    make_field(m, header, "device_is_full", make_bool(m));
    make_field(m, header, "settled", make_bool(m));
    make_field(m, header, "streams", streams);
    make_field(m, header, "brief", brief);
    value_write_json(&m->pool, header, document);
    document_put_text(document, "\n");
    put_lines(m, decision_forms, sizeof decision_forms / sizeof *decision_forms, document);
}

static struct value *make_profile_event(struct maker *m)
{
    static const char *const kinds[] = {"cpu_instant_event", "python_function", "cpu_op",
                                        "user_annotation"};
    static const char *const names[] = {
        "[memory]", "[memory]", "train.py(12): step", "aten::linear", "nn.Module: Linear_0",
        "\x1b[1m"};
    struct value *event = make_container(m, VALUE_DICT, FIELDS_MAX);
    struct value *args = make_container(m, VALUE_DICT, FIELDS_MAX);

    make_field(m, event, "ph", value_text(&m->pool, dice_once_in(&m->dice, 2) ? "X" : "i"));
    make_field(m, event, "cat", make_word(m, kinds, 4));
    make_field(m, event, "name", make_word(m, names, 6));
    make_field(m, event, "ts", make_small(m, 65536));
    make_field(m, event, "dur", make_small(m, 4096));
    make_field(m, event, "tid", make_small(m, 3));
    make_field(m, args, "Bytes", make_size(m));
    make_field(m, args, "Addr", make_address(m));
    make_field(m, args, "Device Type", make_small(m, 3));
    make_field(m, args, "Device Id", make_small(m, 3));
    make_field(m, args, "Total Allocated", make_size(m));
    make_field(m, event, "args", args);
    return event;
}

void make_profile(struct maker *m, struct document *document)
{
    struct value *top = make_container(m, VALUE_DICT, FIELDS_MAX);
    struct value *events = make_container(m, VALUE_LIST, LINES_MAX);

    while (events->count < LINES_MAX && dice_more(&m->dice)) {
        make_item(m, events, make_profile_event(m));
    }
    make_field(m, top, "schemaVersion", make_small(m, 2));
    make_field(m, top, "baseTimeNanoseconds", value_uint(&m->pool, 1700000000000000000u));
    make_field(m, top, "traceEvents", events);
    value_write_json(&m->pool, top, document);
}

void make_rmm(struct maker *m, struct document *document)
{
    static const char *const actions[] = {"allocate", "free", "allocate failure", "fly"};
    char row[160];

    document_put_text(document, "Thread,Time,Action,Pointer,Size,Stream\n");
    for (unsigned i = 0; i < LINES_MAX && dice_more(&m->dice); i++) {
        (void)snprintf(row, sizeof row, "%u,%02u:%02u:59.%06u,%s,0x%" PRIx64 ",%" PRIu64 ",0x%x\n",
                       dice_below(&m->dice, 3), dice_below(&m->dice, 25), dice_below(&m->dice, 61),
                       dice_byte(&m->dice), actions[dice_below(&m->dice, 4)],
                       make_address(m)->number, make_size(m)->number, dice_below(&m->dice, 4));
        document_put_text(document, row);
    }
}
